/* SPDX-License-Identifier: Apache-2.0 */
/* The proof that the steps of a region compute finite numbers. The inside of this backend. */
#ifndef KILN_BACKENDS_ONEDNN_FINITE_H
#define KILN_BACKENDS_ONEDNN_FINITE_H

#include "backends/onednn/region.h"
#include "ir/kernel.h"

/** Before a step: the bound of a value that it computes, of those of its operands:
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
