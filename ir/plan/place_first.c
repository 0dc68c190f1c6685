/* SPDX-License-Identifier: Apache-2.0 */
/* First fit for lives whose sizes change from run to run: in order of size, each at the lowest
 * place that is free as long as it lives. The lists of lives that overlap are made once.
 *
 * What lives from the first step to the last comes before all others. So its place depends on
 * nothing that lives shorter, and what it keeps from run to run may stay there. */
#include "ir/plan/place.h"

#include "graph/base/number.h"

struct KilnFirstFit {
    KilnLife *lives;
    uint32_t n;
    uint32_t *first;  /* per life: where its list begins in @meets; n + 1 entries */
    uint32_t *meets;  /* lives that overlap */
    uint32_t *order;  /* lives in the order of placement */
    bool *placed;     /* per life */
    int64_t last;     /* step of all lives */
    uint32_t *nearby; /* placed lives that overlap the one that is placed, by offset */
};

static bool
overlap(const KilnLife *a, const KilnLife *b)
{
    return a->first <= b->last && b->first <= a->last;
}

KilnFirstFit *
kiln_first_fit_new(KilnLife *lives, uint32_t n)
{
    KilnFirstFit *fit = g_new0(KilnFirstFit, 1);
    GArray *meets = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    fit->lives = lives;
    fit->n = n;
    fit->first = g_new0(uint32_t, (gsize)n + 1);
    fit->order = g_new0(uint32_t, (gsize)n + 1);
    fit->nearby = g_new0(uint32_t, (gsize)n + 1);
    fit->placed = g_new0(bool, (gsize)n + 1);
    for (uint32_t i = 0; i < n; i++)
        fit->last = MAX(fit->last, lives[i].last);
    for (uint32_t i = 0; i < n; i++) {
        fit->order[i] = i;
        for (uint32_t k = 0; k < n; k++) {
            if (k != i && overlap(&lives[i], &lives[k]))
                g_array_append_val(meets, k);
        }
        fit->first[i + 1] = meets->len;
    }
    fit->meets = (uint32_t *)g_array_free(meets, FALSE);
    return fit;
}

void
kiln_first_fit_free(KilnFirstFit *fit)
{
    if (!fit)
        return;
    g_free(fit->first);
    g_free(fit->meets);
    g_free(fit->order);
    g_free(fit->placed);
    g_free(fit->nearby);
    g_free(fit);
}

static bool
comes_before(const KilnFirstFit *fit, uint32_t a, uint32_t b)
{
    const KilnLife *left = &fit->lives[a], *right = &fit->lives[b];
    bool always = left->first == 0 && left->last == fit->last;
    if (always != (right->first == 0 && right->last == fit->last))
        return always;
    int64_t x = fit->lives[a].size, y = fit->lives[b].size;
    return x != y ? x > y : a < b;
}

/* The order of the last time is nearly that of this time. */
static void
sort_by_size(KilnFirstFit *fit)
{
    for (uint32_t i = 1; i < fit->n; i++) {
        uint32_t life = fit->order[i], at = i;
        for (; at > 0 && comes_before(fit, life, fit->order[at - 1]); at--)
            fit->order[at] = fit->order[at - 1];
        fit->order[at] = life;
    }
}

static uint32_t
list_nearby(KilnFirstFit *fit, uint32_t life)
{
    uint32_t n = 0;
    for (uint32_t m = fit->first[life]; m < fit->first[life + 1]; m++) {
        uint32_t other = fit->meets[m], at = n;
        if (!fit->placed[other])
            continue;
        for (; at > 0 && fit->lives[fit->nearby[at - 1]].offset > fit->lives[other].offset; at--)
            fit->nearby[at] = fit->nearby[at - 1];
        fit->nearby[at] = other;
        n++;
    }
    return n;
}

int64_t
kiln_first_fit_place(KilnFirstFit *fit)
{
    return kiln_first_fit_place_behind(fit, -1);
}

int64_t
kiln_first_fit_place_behind(KilnFirstFit *fit, int64_t step)
{
    int64_t arena = 0;
    sort_by_size(fit);
    for (uint32_t i = 0; i < fit->n; i++) {
        fit->placed[i] = fit->lives[i].first <= step && fit->lives[i].size > 0;
        if (fit->placed[i])
            arena = MAX(arena, kiln_add_capped(fit->lives[i].offset, fit->lives[i].size));
    }
    for (uint32_t i = 0; i < fit->n; i++) {
        KilnLife *life = &fit->lives[fit->order[i]];
        int64_t at = 0;
        if (life->first <= step)
            continue;
        uint32_t n = life->size ? list_nearby(fit, fit->order[i]) : 0;
        for (uint32_t k = 0; k < n; k++) {
            const KilnLife *other = &fit->lives[fit->nearby[k]];
            if (other->offset - at >= life->size)
                break;
            at = MAX(at, kiln_add_capped(other->offset, other->size));
        }
        life->offset = at;
        fit->placed[fit->order[i]] = life->size > 0;
        arena = MAX(arena, kiln_add_capped(at, life->size));
    }
    return arena;
}
