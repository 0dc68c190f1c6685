/* SPDX-License-Identifier: Apache-2.0 */
/* Where buffers are first and last touched and written, and how many bytes live at each step: kept
 * up to date by IR passes that let one buffer lie inside another. Facts are of origins: views count
 * for what they alias. */
#ifndef KILN_PASSES_QUERY_IR_LIVES_H
#define KILN_PASSES_QUERY_IR_LIVES_H

#include "ir/target.h"
#include "passes/pass.h"

typedef struct {
    int32_t first, last; /* steps of the instructions that touch the buffer; -1: none does */
    int32_t last_write;  /* -1: nothing writes it */
    int32_t n_writes;
    int64_t size; /* bytes in the arena: 0 for what is no alloc */
    bool called;  /* calls touch it: what they ask of addresses is not known */
} KilnFacts;

/* Where an instruction stands. */
typedef struct {
    int32_t position; /* ascends along the list */
    int32_t step;     /* of those that do work */
} KilnStanding;

/* Bytes per step as a tree of maxima: node i over 2i and 2i + 1. */
typedef struct {
    int64_t most; /* below, with what was added here */
    int64_t plus; /* what was added here */
} KilnLivesNode;

typedef struct KilnLives {
    KilnIRFunction *function;
    uint64_t stamp;       /* of the function, when these were its lives */
    KilnFacts *facts;     /* by buffer id */
    uint32_t n_ids;       /* instructions with this id or a greater one were made since */
    KilnStanding *places; /* by instruction id */
    int64_t n_steps;
    int64_t limit;    /* bytes that may live at one step: as many as at the start */
    int64_t n_leaves; /* of the tree */
    KilnLivesNode *tree;
    size_t facts_room, places_room, tree_room; /* bytes */
} KilnLives;

/** The lives in @function as it is, with scratch on the context's target: found once, until
 * something changes. Who changes lives without the function changes them back. Borrowed: valid
 * until asked for anew. */
KilnLives *kiln_pass_lives(KilnPassContext *context, KilnIRFunction *function);
void kiln_lives_free(KilnLives *lives);

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
