/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about buffers in one walk; bytes per step in a tree, so that a change of a life and the
 * question for the peak cost a logarithm of the number of steps. */
#include "passes/lives.h"

#include "graph/alloc.h"
#include "ir/plan.h"

/* Facts of one operand at step @step. */
static void
note(KilnLives *lives, const KilnInstr *instr, const KilnBufferUse *use, int64_t step)
{
    KilnFacts *facts = &lives->facts[kiln_buffer_origin(use->buffer)->id];
    if (facts->first < 0)
        facts->first = step;
    facts->last = step;
    facts->called |= instr->kind == KILN_INSTR_call;
    if (use->access == KILN_ACCESS_IN)
        return;
    facts->n_writes++;
    facts->last_write = step;
}

static void
walk(KilnLives *lives)
{
    int64_t position = 0;
    kiln_foreach_instr (instr, lives->function) {
        lives->position[instr->id] = position++;
        if (kiln_instr_is_bookkeeping(instr))
            continue;
        lives->steps[instr->id] = lives->n_steps;
        for (uint32_t i = 0; i < instr->n_operands; i++) {
            if (instr->operands[i].buffer)
                note(lives, instr, &instr->operands[i], lives->n_steps);
        }
        lives->n_steps++;
    }
}

KilnLives *
kiln_lives_new(KilnIRFunction *function, const KilnTarget *target)
{
    KilnLives *lives = g_new0(KilnLives, 1);
    guint n = function->buffers->len;
    lives->function = function;
    lives->n_ids = function->next_id;
    lives->facts = g_new0(KilnFacts, n + 1);
    lives->position = g_new0(int64_t, (gsize)function->next_id + 1);
    lives->steps = g_new0(int64_t, (gsize)function->next_id + 1);
    for (guint i = 0; i <= n; i++)
        lives->facts[i].first = lives->facts[i].last = lives->facts[i].last_write = -1;
    walk(lives);
    for (lives->n_leaves = 1; lives->n_leaves < lives->n_steps;)
        lives->n_leaves *= 2;
    lives->most = g_new0(int64_t, 2 * lives->n_leaves);
    lives->plus = g_new0(int64_t, 2 * lives->n_leaves);
    g_autoptr(KilnMemoryPlan) plan = kiln_liveness(function, target, 1);
    for (uint32_t i = 0; i < plan->n_lives && plan->sum < INT64_MAX; i++) {
        const KilnLife *life = &plan->lives[i];
        if (life->buffer)
            lives->facts[life->buffer->id].size = life->size;
        kiln_lives_add(lives, life->first, life->last, life->size);
    }
    lives->limit = plan->lb_live;
    return lives;
}

void
kiln_lives_free(KilnLives *lives)
{
    if (!lives)
        return;
    g_free(lives->facts);
    g_free(lives->position);
    g_free(lives->steps);
    g_free(lives->most);
    g_free(lives->plus);
    g_free(lives);
}

/* --- bytes --- */

static void
add_below(KilnLives *lives, int64_t node, int64_t begin, int64_t end, const int64_t range[2],
          int64_t bytes)
{
    if (range[1] < begin || range[0] >= end)
        return;
    if (range[0] <= begin && end - 1 <= range[1]) {
        lives->most[node] += bytes;
        lives->plus[node] += bytes;
        return;
    }
    int64_t middle = begin + (end - begin) / 2;
    add_below(lives, 2 * node, begin, middle, range, bytes);
    add_below(lives, 2 * node + 1, middle, end, range, bytes);
    int64_t left = lives->most[2 * node], right = lives->most[2 * node + 1];
    lives->most[node] = lives->plus[node] + (left > right ? left : right);
}

void
kiln_lives_add(KilnLives *lives, int64_t first, int64_t last, int64_t bytes)
{
    int64_t range[] = { first, last };
    if (first <= last)
        add_below(lives, 1, 0, lives->n_leaves, range, bytes);
}

bool
kiln_lives_fits(const KilnLives *lives)
{
    return lives->most[1] <= lives->limit;
}

/* --- buffers --- */

static KilnInstr *
dealloc_of(const KilnBuffer *buffer)
{
    kiln_foreach_buffer_use (use, buffer) {
        if (use->user->kind == KILN_INSTR_dealloc)
            return use->user;
    }
    return NULL;
}

void
kiln_lives_replace(KilnLives *lives, KilnBuffer *part, KilnBuffer *view, KilnBuffer *whole)
{
    KilnInstr *early = whole->kind == KILN_BUFFER_ALLOC ? dealloc_of(whole) : NULL;
    KilnInstr *late = dealloc_of(part);
    if (early && late && lives->position[late->id] > lives->position[early->id]) {
        kiln_instr_move(early, late);
        lives->position[early->id] = lives->position[late->id];
    }
    KilnFacts *facts = kiln_lives_facts(lives, whole);
    const KilnFacts *gone = kiln_lives_facts(lives, part);
    facts->first = MIN(facts->first, gone->first);
    facts->last = MAX(facts->last, gone->last);
    facts->last_write = MAX(facts->last_write, gone->last_write);
    facts->n_writes += gone->n_writes;
    facts->called |= gone->called;
    kiln_foreach_buffer_use_safe (use, part) {
        if (use->user != part->def && use->user != late)
            kiln_instr_set_operand(use->user, use->index, view);
    }
    if (late)
        kiln_instr_remove(late);
    kiln_instr_remove(part->def);
}

void
kiln_lives_define_before(KilnLives *lives, KilnBuffer *buffer, KilnInstr *before, int64_t position)
{
    if (buffer->kind == KILN_BUFFER_VIEW)
        kiln_lives_define_before(lives, buffer->base, before, position);
    int64_t *at = buffer->def ? &lives->position[buffer->def->id] : NULL;
    if (at && *at > position) {
        kiln_instr_move(buffer->def, before);
        *at = position;
    }
}
