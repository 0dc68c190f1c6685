/* SPDX-License-Identifier: Apache-2.0 */
/* Dead memory filled with NaN: an instruction that reads what nothing wrote, or what another one
 * has since written over, changes results then. */
#ifndef KILN_RUNTIME_POISON_H
#define KILN_RUNTIME_POISON_H

#include "ir/plan.h"

/** Which bytes of an arena die at which step. */
typedef struct KilnPoison KilnPoison;

/** @plan is borrowed. */
KilnPoison *kiln_poison_new(const KilnMemoryPlan *plan);
void kiln_poison_free(KilnPoison *poison);

/** Fills @size bytes: 0xFF is NaN in every float type, -1 or the greatest in integers. */
void kiln_poison_fill(void *memory, size_t size);
/** Fills what the instruction at @step was the last to touch. Steps come in order, from 0. */
void kiln_poison_step(KilnPoison *poison, char *arena, int64_t step);

#endif
