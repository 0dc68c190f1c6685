/* SPDX-License-Identifier: Apache-2.0 */
/* The steps at which buffers are first and last touched and written, and the bytes alive at each
 * step. IR passes that put one buffer inside another keep them up to date. Facts are about origins:
 * a view counts for the buffer that it aliases. */
#ifndef KILN_PASSES_QUERY_IR_LIVES_H
#define KILN_PASSES_QUERY_IR_LIVES_H

#include "passes/pass.h"

typedef struct {
    int32_t first, last; /* steps of the instructions that touch the buffer; -1: none does */
    int32_t last_write;  /* -1: nothing writes it */
    int32_t n_writes;
    int64_t size; /* bytes in the arena; 0 for all but allocs */
    bool called;  /* calls touch it; their demands on addresses are not known */
} KilnFacts;

/* Where an instruction stands. */
typedef struct {
    int32_t position; /* ascends along the list */
    int32_t step;     /* counts the instructions that do work */
} KilnStanding;

/* Bytes per step as a tree of maxima: node i has the children 2i and 2i + 1. */
typedef struct {
    int64_t most; /* the maximum below, @plus included */
    int64_t plus; /* added to all steps below */
} KilnLivesNode;

typedef struct KilnLives {
    KilnIRFunction *function;
    uint64_t stamp;       /* of the function, when the lives were found */
    KilnFacts *facts;     /* by buffer id */
    uint32_t n_ids;       /* later instructions have this id or a greater one */
    KilnStanding *places; /* by instruction id */
    int64_t n_steps;
    int64_t limit;    /* bytes that may live at one step: the peak at the start */
    int64_t n_leaves; /* of the tree */
    KilnLivesNode *tree;
    size_t facts_room, places_room, tree_room; /* bytes */
} KilnLives;

/** The lives in @function as it is, with scratch on the context's target. Found again only after a
 * change. A caller that changes lives but not the function changes them back. Borrowed: valid until
 * the next call. */
KilnLives *kiln_pass_lives(KilnPassContext *context, KilnIRFunction *function);
void kiln_lives_free(KilnLives *lives);

static inline KilnFacts *
kiln_lives_facts(const KilnLives *lives, const KilnBuffer *origin)
{
    return &lives->facts[origin->id];
}
/** Adds @bytes at the steps from @first to @last; nothing where @last < @first. */
void kiln_lives_add(KilnLives *lives, int64_t first, int64_t last, int64_t bytes);
/** Whether no step has more than the limit. */
bool kiln_lives_fits(const KilnLives *lives);

/** Lets all users of the alloc @part use @view, which lies in @whole, and removes the alloc. Frees
 * @whole no earlier than @part was freed. Facts of @whole take in those of @part; bytes stay. */
void kiln_lives_replace(KilnLives *lives, KilnBuffer *part, KilnBuffer *view, KilnBuffer *whole);

/** Moves the alloc or view that makes @buffer in front of @before, if it stands behind @position.
 * Does the same for the buffers that it is a view of. */
void kiln_lives_define_before(KilnLives *lives, KilnBuffer *buffer, KilnInstr *before,
                              int64_t position);

/* --- fusion of two instructions, the first of which computes a buffer that only the second one
 * reads; the fused one takes the place of the first --- */

/** True if the context's target has a kernel for @fused, which may be a draft. It must be no more
 * of a fallback than those of @first and @second. True without a target. */
bool kiln_fuse_has_kernel(const KilnPassContext *context, const KilnInstr *fused,
                          const KilnInstr *first, const KilnInstr *second);
/** Removes @first, @second and the alloc between them. Before that, the fused instruction stands in
 * front of @first and writes operand 0 of @second. */
void kiln_fuse_finish(KilnLives *lives, KilnInstr *first, KilnInstr *second);

#endif
