/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about buffers in one walk; bytes per step in a tree, so that a change of a life and the
 * question for the peak cost a logarithm of the number of steps. */
#include "passes/query_ir/lives.h"

#include "ir/changes.h"
#include "ir/plan.h"
#include "passes/context/context.h"

#include <string.h>

/* Facts of one operand at step @step. */
static void
note(KilnLives *lives, const KilnInstr *instr, const KilnBufferUse *use, int32_t step)
{
    const KilnBuffer *origin = kiln_buffer_origin(use->buffer);
    KilnFacts *facts = &lives->facts[origin->id];
    if (facts->first < 0) {
        facts->first = step;
        facts->size = origin->kind == KILN_BUFFER_ALLOC ? kiln_buffer_bytes_planned(origin) : 0;
    }
    facts->last = step;
    facts->called |= instr->kind == KILN_INSTR_call;
    if (use->access == KILN_ACCESS_IN)
        return;
    facts->n_writes++;
    facts->last_write = step;
}

/* Facts and places; scratch[i] is that of step i. */
static void
walk(KilnLives *lives, const KilnTarget *target, int64_t *scratch)
{
    int32_t position = 0, step = 0;
    KilnAhead ahead = { .n = 0 };
    kiln_foreach_instr (instr, lives->function) {
        kiln_ahead_note(&ahead, instr);
        lives->places[instr->id] = (KilnStanding){ position++, step };
        if (kiln_instr_is_bookkeeping(instr))
            continue;
        for (uint32_t i = 0; i < instr->n_operands; i++) {
            if (instr->operands[i].buffer)
                note(lives, instr, &instr->operands[i], step);
        }
        scratch[step++] = kiln_instr_scratch_bytes(instr, target, 1);
    }
    lives->n_steps = step;
}

/* Turns scratch[i] into the bytes that live at step i. False where the sum of all sizes is too big:
 * then none is known. */
static bool
add_sizes(KilnLives *lives, int64_t *bytes)
{
    int64_t sum = 0;
    guint n = lives->function->buffers->len;
    for (int64_t i = 0; i < lives->n_steps; i++) {
        if (__builtin_add_overflow(sum, bytes[i], &sum))
            return false;
    }
    for (guint i = 0; i < n; i++) {
        if (__builtin_add_overflow(sum, lives->facts[i].size, &sum))
            return false;
    }
    g_autofree int64_t *more = g_new0(int64_t, lives->n_steps + 1);
    for (guint i = 0; i < n; i++) {
        const KilnFacts *facts = &lives->facts[i];
        if (facts->size) {
            more[facts->first] += facts->size;
            more[facts->last + 1] -= facts->size;
        }
    }
    int64_t live = 0;
    for (int64_t i = 0; i < lives->n_steps; i++)
        bytes[i] += live += more[i];
    return true;
}

static void *
with_room(void *memory, size_t *room, size_t bytes)
{
    if (*room >= bytes)
        return memory;
    g_free(memory);
    *room = bytes + bytes / 4;
    return g_malloc(*room);
}

static void
plant(KilnLives *lives, const int64_t *bytes)
{
    for (lives->n_leaves = 1; lives->n_leaves < lives->n_steps;)
        lives->n_leaves *= 2;
    size_t size = 2 * (size_t)lives->n_leaves * sizeof *lives->tree;
    lives->tree = with_room(lives->tree, &lives->tree_room, size);
    memset(lives->tree, 0, size);
    for (int64_t i = 0; i < lives->n_steps; i++)
        lives->tree[lives->n_leaves + i].most = bytes[i];
    for (int64_t i = lives->n_leaves; --i > 0;)
        lives->tree[i].most = MAX(lives->tree[2 * i].most, lives->tree[2 * i + 1].most);
    lives->limit = lives->tree[1].most;
}

static void
find(KilnLives *lives, KilnIRFunction *function, const KilnTarget *target)
{
    guint n = function->buffers->len;
    lives->function = function;
    lives->stamp = function->stamp;
    lives->n_ids = function->next_id;
    lives->facts = with_room(lives->facts, &lives->facts_room, (n + 1) * sizeof *lives->facts);
    lives->places = with_room(lives->places, &lives->places_room,
                              ((size_t)function->next_id + 1) * sizeof *lives->places);
    for (guint i = 0; i <= n; i++)
        lives->facts[i] = (KilnFacts){ .first = -1, .last = -1, .last_write = -1 };
    g_autofree int64_t *bytes = g_new(int64_t, (gsize)function->n_instrs + 1);
    walk(lives, target, bytes);
    bool known = add_sizes(lives, bytes);
    if (!known) {
        memset(bytes, 0, (size_t)lives->n_steps * sizeof *bytes);
        for (guint i = 0; i < n; i++)
            lives->facts[i].size = 0;
    }
    plant(lives, bytes);
    if (!known)
        lives->limit = INT64_MAX;
}

KilnLives *
kiln_pass_lives(KilnPassContext *context, KilnIRFunction *function)
{
    if (!context->lives)
        context->lives = g_new0(KilnLives, 1);
    KilnLives *lives = context->lives;
    if (lives->function != function || lives->stamp != function->stamp)
        find(lives, function, kiln_pass_target(context));
    return lives;
}

void
kiln_lives_free(KilnLives *lives)
{
    if (!lives)
        return;
    g_free(lives->facts);
    g_free(lives->places);
    g_free(lives->tree);
    g_free(lives);
}

/* --- bytes --- */

static void
add_below(KilnLivesNode *tree, int64_t node, int64_t begin, int64_t end, const int64_t range[2],
          int64_t bytes)
{
    if (range[1] < begin || range[0] >= end)
        return;
    if (range[0] <= begin && end - 1 <= range[1]) {
        tree[node].most += bytes;
        tree[node].plus += bytes;
        return;
    }
    int64_t middle = begin + (end - begin) / 2;
    add_below(tree, 2 * node, begin, middle, range, bytes);
    add_below(tree, 2 * node + 1, middle, end, range, bytes);
    tree[node].most = tree[node].plus + MAX(tree[2 * node].most, tree[2 * node + 1].most);
}

void
kiln_lives_add(KilnLives *lives, int64_t first, int64_t last, int64_t bytes)
{
    int64_t range[] = { first, last };
    if (first <= last)
        add_below(lives->tree, 1, 0, lives->n_leaves, range, bytes);
}

bool
kiln_lives_fits(const KilnLives *lives)
{
    return lives->tree[1].most <= lives->limit;
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
    KilnStanding *places = lives->places;
    if (early && late && places[late->id].position > places[early->id].position) {
        kiln_instr_move(early, late);
        places[early->id].position = places[late->id].position;
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
    KilnStanding *at = buffer->def ? &lives->places[buffer->def->id] : NULL;
    if (at && at->position > position) {
        kiln_instr_move(buffer->def, before);
        at->position = (int32_t)position;
    }
}
