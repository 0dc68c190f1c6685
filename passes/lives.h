/* SPDX-License-Identifier: Apache-2.0 */
/* Where buffers are first and last touched and written, and how many bytes live at each step: kept
 * up to date by IR passes that let one buffer lie inside another. Facts are of origins: views count
 * for what they alias. */
#ifndef KILN_PASSES_LIVES_H
#define KILN_PASSES_LIVES_H

#include "ir/target.h"

typedef struct {
    int64_t first, last; /* steps of the instructions that touch the buffer; -1: none does */
    int64_t last_write;  /* -1: nothing writes it */
    int64_t n_writes;
    int64_t size; /* bytes in the arena: 0 for what is no alloc */
    bool called;  /* calls touch it: what they ask of addresses is not known */
} KilnFacts;

typedef struct {
    KilnIRFunction *function;
    KilnFacts *facts;  /* by buffer id */
    uint32_t n_ids;    /* instructions with this id or a greater one were made since */
    int64_t *position; /* by instruction id: ascends along the list */
    int64_t *steps;    /* by instruction id, of those that do work */
    int64_t n_steps;
    int64_t limit;        /* bytes that may live at one step: as many as at the start */
    int64_t n_leaves;     /* of the tree below */
    int64_t *most, *plus; /* bytes per step as a tree of maxima: node i over 2i and 2i + 1 */
} KilnLives;

KilnLives *kiln_lives_new(KilnIRFunction *function, const KilnTarget *target);
void kiln_lives_free(KilnLives *lives);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnLives, kiln_lives_free)

static inline KilnFacts *
kiln_lives_facts(const KilnLives *lives, const KilnBuffer *origin)
{
    return &lives->facts[origin->id];
}
/** @bytes more at the steps from @first to @last; none where @last < @first. */
void kiln_lives_add(KilnLives *lives, int64_t first, int64_t last, int64_t bytes);
/** Whether no step has more than the limit. */
bool kiln_lives_fits(const KilnLives *lives);

/** All that names the alloc @part names @view instead; the alloc goes, and @whole, in which @view
 * lies, is freed no earlier than @part was. Facts of @whole take those of @part in; bytes are not
 * touched. */
void kiln_lives_replace(KilnLives *lives, KilnBuffer *part, KilnBuffer *view, KilnBuffer *whole);

/** Where the alloc or view that makes @buffer stands behind @position, it moves there, in front of
 * @before; so do those that it is a view of. */
void kiln_lives_define_before(KilnLives *lives, KilnBuffer *buffer, KilnInstr *before,
                              int64_t position);

#endif
