/* SPDX-License-Identifier: Apache-2.0 */
/* Why a plan exceeds a limit: the instruction at the peak, and buffers that do not fit together
 * although any of them could be left out. */
#include "ir/plan.h"
#include "ir/plan/place.h"

#include <string.h>

enum {
    /* Search for all questions together, in plans' budgets: a few tenths of a second. */
    BUDGETS = 10
};

KilnMemoryPeak
kiln_memory_peak(const KilnIRFunction *function, const KilnMemoryPlan *plan)
{
    KilnMemoryPeak peak = { .step = -1 };
    g_autofree int64_t *live = kiln_memory_live_bytes(plan);
    for (int64_t step = 0; step < plan->n_steps; step++) {
        if (live[step] <= peak.bytes && peak.step >= 0)
            continue;
        peak.bytes = live[step];
        peak.step = step;
    }
    int64_t step = 0;
    kiln_foreach_instr (instr, function) {
        if (!kiln_instr_is_bookkeeping(instr) && step++ == peak.step)
            peak.instr = instr;
    }
    return peak;
}

static gint
biggest_first(gconstpointer a, gconstpointer b, gpointer data)
{
    const KilnMemoryPlan *plan = data;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    if (plan->lives[i].size != plan->lives[k].size)
        return plan->lives[i].size > plan->lives[k].size ? -1 : 1;
    return i < k ? -1 : i > k;
}

/* The biggest of those that live at the peak, until they exceed the limit: as few as can be. */
static void
take_peak(KilnMemoryExcess *excess, const KilnMemoryPlan *plan, int64_t limit)
{
    g_autoptr(GArray) alive = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        if (plan->lives[i].first <= excess->peak.step && excess->peak.step <= plan->lives[i].last)
            g_array_append_val(alive, i);
    }
    g_array_sort_with_data(alive, biggest_first, (gpointer)plan);
    int64_t sum = 0;
    for (guint i = 0; i < alive->len && sum <= limit; i++) {
        uint32_t life = g_array_index(alive, uint32_t, i);
        excess->lives[excess->n_lives++] = life;
        sum += plan->lives[life].size;
    }
    excess->proven = true;
}

/* Whether the lives that @wanted marks have no plan within @limit: proved, not just not found. */
static bool
cannot_fit(const KilnMemoryPlan *plan, const bool *wanted, int64_t limit, int64_t *work)
{
    g_autofree KilnLife *lives = g_new(KilnLife, plan->n_lives);
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        if (wanted[i])
            lives[n++] = plan->lives[i];
    }
    int64_t given = MIN(*work, KILN_PLACE_WORK), left = given;
    KilnPlacement found = kiln_place_within(lives, n, limit, &left);
    *work -= given - left;
    return found == KILN_PLACEMENT_IMPOSSIBLE;
}

/* All lives, and one after the other left out if the others still do not fit. */
static void
take_core(KilnMemoryExcess *excess, const KilnMemoryPlan *plan, int64_t limit)
{
    g_autofree bool *wanted = g_new(bool, plan->n_lives);
    int64_t work = BUDGETS * KILN_PLACE_WORK;
    memset(wanted, true, plan->n_lives * sizeof *wanted);
    excess->proven = cannot_fit(plan, wanted, limit, &work);
    for (uint32_t i = 0; i < plan->n_lives && excess->proven && work > 0; i++) {
        wanted[i] = false;
        wanted[i] = !cannot_fit(plan, wanted, limit, &work);
    }
    for (uint32_t i = 0; i < plan->n_lives && excess->proven; i++) {
        if (wanted[i])
            excess->lives[excess->n_lives++] = i;
    }
}

KilnMemoryExcess *
kiln_memory_excess(const KilnIRFunction *function, const KilnMemoryPlan *plan, int64_t limit)
{
    if (plan->arena <= limit)
        return NULL;
    KilnMemoryExcess *excess = g_new0(KilnMemoryExcess, 1);
    excess->lives = g_new(uint32_t, plan->n_lives);
    excess->limit = limit;
    excess->peak = kiln_memory_peak(function, plan);
    if (plan->lb_live > limit)
        take_peak(excess, plan, limit);
    else
        take_core(excess, plan, limit);
    return excess;
}

void
kiln_memory_excess_free(KilnMemoryExcess *excess)
{
    if (!excess)
        return;
    g_free(excess->lives);
    g_free(excess);
}

char *
kiln_life_name(const KilnLife *life)
{
    return life->buffer ? g_strdup(life->buffer->name)
                        : g_strdup_printf("scratch of %s", kiln_instr_label(life->scratch_of));
}

gboolean
kiln_memory_excess_throw(const KilnMemoryExcess *excess, const KilnMemoryPlan *plan, GError **error)
{
    enum {
        NAMED_MAX = 8
    };
    const KilnMemoryPeak *peak = &excess->peak;
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_printf(text,
                    "expected an arena of at most %" G_GINT64_FORMAT
                    " bytes, the plan needs %" G_GINT64_FORMAT " (lower bound %" G_GINT64_FORMAT
                    "); most lives at %s (%s), %" G_GINT64_FORMAT " bytes",
                    excess->limit, plan->arena, plan->lb_live,
                    peak->instr ? kiln_instr_label(peak->instr) : "no instruction",
                    peak->instr ? kiln_instr_info(peak->instr->kind)->name : "", peak->bytes);
    g_string_append(text, excess->proven ? "; together do not fit:" : "; no lower plan was found");
    for (uint32_t i = 0; i < excess->n_lives && i < NAMED_MAX; i++) {
        const KilnLife *life = &plan->lives[excess->lives[i]];
        g_autofree char *name = kiln_life_name(life);
        g_string_append_printf(text, "%s %s (%" G_GINT64_FORMAT ")", i ? "," : "", name,
                               life->size);
    }
    if (excess->n_lives > NAMED_MAX)
        g_string_append_printf(text, " and %u more", excess->n_lives - NAMED_MAX);
    return kiln_throw(error, KILN_ERROR_LIMIT, "%s", text->str);
}
