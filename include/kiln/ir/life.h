/* SPDX-License-Identifier: Apache-2.0 */
/* Lives of buffers, which a memory plan places. */
#ifndef KILN_IR_LIFE_H
#define KILN_IR_LIFE_H

#include "ir/ir.h"

G_BEGIN_DECLS

/** A buffer's life: from step @first to step @last, both included. Steps count the instructions
 * that do work, from 0. */
typedef struct {
    KilnBuffer *buffer; /* an alloc, or an input or output; NULL: scratch of one instruction */
    const KilnInstr *scratch_of;
    int64_t first, last;
    int64_t size;   /* aligned up to KILN_ALIGNMENT */
    int64_t offset; /* set by the plan */
} KilnLife;

G_END_DECLS

#endif
