/* SPDX-License-Identifier: Apache-2.0 */
/* Queries for quantized types: the reals that they hold, saturation between two of them, and the
 * arithmetic of the kernels on single numbers, bit by bit.
 *
 * A quantized type stands for the reals scale · (stored - zero point): a grid with a lowest and a
 * highest point. There is one grid per tensor, or one per index of an axis. Rounding to a grid is
 * monotone, so a test of the ends of a grid covers the points between them. */
#ifndef KILN_PASSES_QUERY_QUANT_RANGE_H
#define KILN_PASSES_QUERY_QUANT_RANGE_H

#include "graph/module.h"

typedef struct {
    KilnDType dtype;
    float scale;
    int32_t zero_point;
    int64_t lowest, highest; /* stored */
} KilnGrid;

/** True if the functions below may look at @type: quantized, 8 or 16 bits, scales positive, finite
 * and normal, zero points whose distance to any stored number is exact in f32. A zero point may lie
 * outside the element type's range: then the range does not contain 0. */
bool kiln_quant_is_regular(const KilnType *type);
/** True if scales and zero points vary along an axis. */
bool kiln_quant_is_per_axis(const KilnType *type);
/** True if a regular type has one scale and zero point. */
bool kiln_quant_is_uniform(const KilnType *type);
/** The grid of index @i of the axis; of any index if the type is uniform. */
KilnGrid kiln_quant_grid(const KilnType *type, uint32_t i);
/** The number of pairs of grids in values of one shape with these types: 1 if both are uniform; 0
 * if one is not regular, or they have different axes. */
uint32_t kiln_quant_common(const KilnType *a, const KilnType *b);
/** True if element types and quantization are equal, whatever the shapes. */
bool kiln_quant_same(const KilnType *a, const KilnType *b);
/** @type with the element type and the quantization of @stored. */
KilnType kiln_quant_stored_as(const KilnType *type, const KilnType *stored);
/** The reals that a regular type represents, over all its grids. */
void kiln_quant_real_range(const KilnType *type, double *low, double *high);
/** The coarsest and the finest step of a regular type. */
void kiln_quant_steps(const KilnType *type, double *coarsest, double *finest);
/** True if no real of [@low, @high] saturates in any grid of a regular type. */
bool kiln_quant_holds_reals(const KilnType *type, double low, double high);

/* --- the arithmetic of the kernels: f32, rounded half to even, saturating --- */

double kiln_grid_real(const KilnGrid *grid, int64_t stored);
int64_t kiln_grid_quantize(const KilnGrid *grid, float x);
float kiln_grid_dequantize(const KilnGrid *grid, int64_t stored);
int64_t kiln_grid_rescale(const KilnGrid *from, const KilnGrid *to, int64_t stored);

/* --- types of one shape --- */

/** True if no value of @from saturates when it is rescaled to @to: the range of @to includes that
 * of @from, except for rounding. */
bool kiln_quant_holds(const KilnType *to, const KilnType *from);
/** True if every value that saturates in @wide becomes an end of @narrow when it is rescaled to it.
 * So @narrow clamps a value in the same way with and without a detour by way of @wide. */
bool kiln_quant_clamps(const KilnType *narrow, const KilnType *wide);
/** True if rounding to @middle first changes the stored number of @last by at most one, saturation
 * aside: the steps of @middle are at most twice as wide. */
bool kiln_quant_steps_fit(const KilnType *middle, const KilnType *last);
/** True if a detour over @middle changes the stored value of @last by at most @steps, for every
 * stored value of @first. Tries them all; false if they are too many. */
bool kiln_quant_detour_is_within(const KilnType *first, const KilnType *middle,
                                 const KilnType *last, int64_t steps);
/** True if every stored value of @from stands for the same f32 when it is rescaled to @to. Tries
 * them all; false if they are too many. */
bool kiln_quant_rescale_is_exact(const KilnType *from, const KilnType *to);
/** True if quantize(dequantize(stored)) == stored for every value, in f32 between. */
bool kiln_quant_survives_f32(const KilnType *type);

/* --- literals, quantized at compile time with the same bits as the kernels --- */

/** Applies quantize_linear, dequantize_linear or rescale_quantized to @to to a literal of numbers
 * whose quantized types are regular (passes/query/quant_range.h). A splat stays a splat if
 * possible. NULL without an error for anything else; NULL and @error if memory is short. */
KilnTensor *kiln_quant_convert(const KilnValue *literal, const KilnType *to, GError **error);
/** True if the result for a splat is a splat, which needs no storage. */
bool kiln_quant_converts_splat(const KilnValue *literal, const KilnType *to);

#endif
