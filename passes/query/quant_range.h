/* SPDX-License-Identifier: Apache-2.0 */
/* What passes ask of quantized types: which reals they hold, what saturates between two of them,
 * and the arithmetic of the kernels on single numbers, bit by bit.
 *
 * A quantized type stands for the reals scale · (stored - zero point), a grid with a lowest and a
 * highest point; one grid per tensor, or one per index of an axis. Rounding to a grid is monotone,
 * so what holds of the ends of a grid holds between them. */
#ifndef KILN_PASSES_QUERY_QUANT_RANGE_H
#define KILN_PASSES_QUERY_QUANT_RANGE_H

#include "graph/type.h"

typedef struct {
    KilnDType dtype;
    float scale;
    int32_t zero_point;
    int64_t lowest, highest; /* stored */
} KilnGrid;

/** True where the functions below may look at @type: quantized, 8 or 16 bits, scales positive,
 * finite and normal, zero points whose distance to any stored number is exact in f32. A zero point
 * may lie outside the element type's range: then the range does not contain 0. */
bool kiln_quant_is_regular(const KilnType *type);
/** Scales and zero points along an axis. */
bool kiln_quant_is_per_axis(const KilnType *type);
/** One scale and zero point for all of a regular type. */
bool kiln_quant_is_uniform(const KilnType *type);
/** The grid of index @i of the axis; of any index where the type is uniform. */
KilnGrid kiln_quant_grid(const KilnType *type, uint32_t i);
/** How many grids go with one another in values of these types that have one shape: 1 where both
 * are uniform; 0 where one is not regular, or they have different axes. */
uint32_t kiln_quant_common(const KilnType *a, const KilnType *b);
/** Equal element types and quantization, whatever the shapes. */
bool kiln_quant_same(const KilnType *a, const KilnType *b);
/** @type with the element type and the quantization of @stored. */
KilnType kiln_quant_stored_as(const KilnType *type, const KilnType *stored);
/** The reals that a regular type represents, over all its grids. */
void kiln_quant_real_range(const KilnType *type, double *low, double *high);
/** The coarsest and the finest step of a regular type. */
void kiln_quant_steps(const KilnType *type, double *coarsest, double *finest);
/** No real of [@low, @high] saturates in any grid of a regular type. */
bool kiln_quant_holds_reals(const KilnType *type, double low, double high);

/* --- the arithmetic of the kernels: f32, rounded half to even, saturating --- */

double kiln_grid_real(const KilnGrid *grid, int64_t stored);
int64_t kiln_grid_quantize(const KilnGrid *grid, float x);
float kiln_grid_dequantize(const KilnGrid *grid, int64_t stored);
int64_t kiln_grid_rescale(const KilnGrid *from, const KilnGrid *to, int64_t stored);

/* --- types of one shape --- */

/** No value of @from saturates when it is rescaled to @to: the range of @to includes that of @from,
 * up to what rounding forgives. */
bool kiln_quant_holds(const KilnType *to, const KilnType *from);
/** Whatever saturates in @wide is an end of @narrow, too, when it is rescaled to @narrow: a value
 * that goes to @narrow directly is clamped as one that goes by way of @wide. */
bool kiln_quant_clamps(const KilnType *narrow, const KilnType *wide);
/** A real that is rounded to @middle first is at most one stored number of @last away from one that
 * goes to @last directly, saturation aside: the steps of @middle are at most twice as wide. */
bool kiln_quant_steps_fit(const KilnType *middle, const KilnType *last);
/** Every stored value of @first is rescaled to stored values of @last that are at most @steps
 * apart, with and without a detour over @middle. Tries them all; false where they are too many. */
bool kiln_quant_detour_is_within(const KilnType *first, const KilnType *middle,
                                 const KilnType *last, int64_t steps);
/** Every stored value of @from stands for the same f32 when it is rescaled to @to. Tries them all;
 * false where they are too many. */
bool kiln_quant_rescale_is_exact(const KilnType *from, const KilnType *to);
/** quantize(dequantize(stored)) is stored for every value, in f32 between. */
bool kiln_quant_survives_f32(const KilnType *type);

#endif
