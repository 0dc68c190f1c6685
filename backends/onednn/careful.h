/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of regions in which the library masks NaN: own kernels for them, and the proof that there
 * is no NaN. The inside of this backend. */
#ifndef KILN_BACKENDS_ONEDNN_CAREFUL_H
#define KILN_BACKENDS_ONEDNN_CAREFUL_H

#include "backends/onednn/region.h"

/* --- where the library masks NaN (careful.c) --- */

/** True where the library's form of @instr gives a number for NaN. */
bool kiln_onednn_masks(const KilnInstr *instr);
/** Of @post (NULL: nothing) the first that masks; its length where none does. */
uint32_t kiln_onednn_first_mask(const PostOps *post);

/** Own kernels for what masks on the way out of an operation, and for all behind that. */
typedef struct {
    KilnCustom *ops[POST_MAX]; /* owned */
    uint32_t first;
} CarefulTail;

/** Fills @out; false, and nothing in it, where own kernels cannot do one of them in @layout. */
bool kiln_onednn_careful_tail(Builder *builder, const PostOps *post, Layout layout,
                              CarefulTail *out);
void kiln_onednn_careful_clear(CarefulTail *tail);
/** Steps of careful runs for @tail, which is emptied, in place of what lies in @slot. */
bool kiln_onednn_add_tail(Builder *builder, const PostOps *post, CarefulTail *tail, uint32_t slot);
/** A step of careful runs in place of the one that reads @from and writes @to. */
bool kiln_onednn_add_careful_unary(Builder *builder, const PostOp *op, uint32_t from, uint32_t to);

typedef struct {
    dnnl_dims_t kernel, strides, dilates, before, after;
} PoolWindow;

bool kiln_onednn_add_careful_pool(Builder *builder, const KilnInstr *instr,
                                  const PoolWindow *window, uint32_t from, uint32_t to);
bool kiln_onednn_add_careful_rows(Builder *builder, const KilnInstr *instr, int64_t columns,
                                  uint32_t from, uint32_t to);

/* --- what is proved finite (guard.c) --- */

/** Before a step: the bound of a value that it computes, of those of its operands (guard.c):
 * factor * x[0] * x[1] + x[2] + plus, where an operand that is absent (UINT32_MAX) is left out. */
typedef struct {
    guint step;
    uint32_t y;       /* buffer id; UINT32_MAX: it must be finite, no more */
    uint32_t x[3];    /* buffer ids */
    uint32_t slot[3]; /* where operands lie by then; UINT32_MAX: nowhere */
    float factor, plus, cap;
    bool joins; /* y is as great as it was before, too */
    bool masks; /* the library masks NaN here */
} Guard;

/** A constant operand of the call, whose bound is known when weights are packed. */
typedef struct {
    uint32_t value; /* buffer id */
    uint32_t operand;
    size_t floats;
} Measured;

/** The greatest absolute value of @n floats, at least 1; INFINITY where one is not finite. */
float kiln_onednn_greatest(const void *data, size_t n);
/** What must be known before @step of the results of @instr, which was built from there on. */
void kiln_onednn_add_guards(Builder *builder, const KilnInstr *instr, guint step);
/** Leaves those that a step which masks depends on. */
void kiln_onednn_finish_guards(Builder *builder);
/** Finds the constants that are measured when weights are packed. */
void kiln_onednn_note_constants(Builder *builder);
/** Writes the bounds of constants to the begin of @packed. @data: of operands, NULL: not known. */
void kiln_onednn_measure(const Region *region, const void *const *data, void *packed);
/** Fills @bounds with what is known before a run. */
void kiln_onednn_begin_guards(const Region *region, const KilnKernelArgs *args, float *bounds);
/** True where all that @step computes will be finite. @addresses: of slots. @next: the first guard
 * that was not asked yet. */
bool kiln_onednn_prove(const Region *region, guint step, void *const *addresses, float *bounds,
                       guint *next);

#endif
