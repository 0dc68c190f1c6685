/* SPDX-License-Identifier: Apache-2.0 */
/* Own kernels for the steps of regions in which the library masks NaN. The inside of this backend.
 */
#ifndef KILN_BACKENDS_ONEDNN_CAREFUL_H
#define KILN_BACKENDS_ONEDNN_CAREFUL_H

#include "backends/onednn/region.h"

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

#endif
