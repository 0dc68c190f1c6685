/* SPDX-License-Identifier: Apache-2.0 */
/* Proves that the steps of a region compute finite numbers. Private to this backend. */
#ifndef KILN_BACKENDS_ONEDNN_FINITE_H
#define KILN_BACKENDS_ONEDNN_FINITE_H

#include "backends/onednn/region.h"
#include "ir/kernel.h"

/** A bound of a value that a step computes, checked before the step. With the bounds of operands:
 * factor * x[0] * x[1] + x[2] + plus. An absent operand (UINT32_MAX) is left out. */
typedef struct {
    guint step;
    uint32_t y;       /* buffer id; UINT32_MAX: only the bound is checked */
    uint32_t x[3];    /* buffer ids */
    uint32_t slot[3]; /* of the operands before the step; UINT32_MAX: none */
    float factor, plus, cap;
    bool joins; /* the old bound of y stays if it is greater */
    bool masks; /* the library masks NaN here */
} Guard;

/** A constant operand of the call. Its bound is measured when weights are packed. */
typedef struct {
    uint32_t value; /* buffer id */
    uint32_t operand;
    size_t floats;
} Measured;

/** Adds guards for the results of @instr, whose steps begin at @step. */
void kiln_onednn_add_guards(Builder *builder, const KilnInstr *instr, guint step);
/** Drops the guards behind the last step that masks NaN: nothing needs them. */
void kiln_onednn_finish_guards(Builder *builder);
/** Finds the constants that are measured when weights are packed. */
void kiln_onednn_note_constants(Builder *builder);
/** Writes the bounds of constants to the start of @packed. @data: per operand; NULL: not known. */
void kiln_onednn_measure(const Region *region, const void *const *data, void *packed);
/** Fills @bounds with the bounds that are known before a run. */
void kiln_onednn_begin_guards(const Region *region, const KilnKernelArgs *args, float *bounds);
/** True if all results of @step will be finite. @addresses: one per slot. @next: the first guard
 * that was not checked yet. */
bool kiln_onednn_prove(const Region *region, guint step, void *const *addresses, float *bounds,
                       guint *next);

#endif
