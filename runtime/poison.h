/* SPDX-License-Identifier: Apache-2.0 */
/* Fills dead memory with NaN. An instruction that reads unwritten or overwritten memory then
 * changes results. */
#ifndef KILN_RUNTIME_POISON_H
#define KILN_RUNTIME_POISON_H

#include "ir/plan.h"

/** The bytes of an arena that die at each step. */
typedef struct KilnPoison KilnPoison;

/** @plan is borrowed. */
KilnPoison *kiln_poison_new(const KilnMemoryPlan *plan);
void kiln_poison_free(KilnPoison *poison);

/** Fills @size bytes: 0xFF is NaN in every float type, -1 or the greatest in integers. */
void kiln_poison_fill(void *memory, size_t size);
/** Fills the bytes that the instruction at @step touched last. Steps come in order, from 0. */
void kiln_poison_step(KilnPoison *poison, char *arena, int64_t step);

#endif
