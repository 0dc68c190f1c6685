/* SPDX-License-Identifier: Apache-2.0 */
/* Own kernels for steps in which the library masks NaN. Private to this backend. */
#ifndef KILN_BACKENDS_ONEDNN_CAREFUL_H
#define KILN_BACKENDS_ONEDNN_CAREFUL_H

#include "backends/onednn/region.h"
#include "exec/custom.h"
#include "ir/ir.h"

/** True if the library's form of @instr gives a number for NaN. */
bool kiln_onednn_masks(const KilnInstr *instr);
/** The index of the first operation of @post that masks NaN; post->n if none does. NULL: 0. */
uint32_t kiln_onednn_first_mask(const PostOps *post);

/** Own kernels for the first operation of a tail that masks NaN, and for all behind it. */
typedef struct {
    KilnCustom *ops[POST_MAX]; /* owned */
    uint32_t first;
} CarefulTail;

/** Fills @out. False, with an empty @out, if own kernels lack an operation in @layout. */
bool kiln_onednn_careful_tail(Builder *builder, const PostOps *post, Layout layout,
                              CarefulTail *out);
void kiln_onednn_careful_clear(CarefulTail *tail);
/** Adds steps of careful runs that apply @tail to @slot in place. Empties @tail. */
bool kiln_onednn_add_tail(Builder *builder, const PostOps *post, CarefulTail *tail, uint32_t slot);
/** Adds a step of careful runs that computes @op from slot @from into slot @to. */
bool kiln_onednn_add_careful_unary(Builder *builder, const PostOp *op, uint32_t from, uint32_t to);

typedef struct {
    dnnl_dims_t kernel, strides, dilates, before, after;
} PoolWindow;

bool kiln_onednn_add_careful_pool(Builder *builder, const KilnInstr *instr,
                                  const PoolWindow *window, uint32_t from, uint32_t to);
bool kiln_onednn_add_careful_rows(Builder *builder, const KilnInstr *instr, int64_t columns,
                                  uint32_t from, uint32_t to);

#endif
