/* SPDX-License-Identifier: Apache-2.0 */
/* mel_weight_matrix: a triangle over the bins of a spectrum for each band; the bands are evenly
 * spaced on the mel scale, 2595 log10(1 + f / 700). Operands: result [bins, bands], bands, length
 * of the DFT, samples a second, lowest and highest frequency. */
#include "backends/ref/kernel.h"

#include <math.h>

static const double FAR = 0x1p40; /* no spectrum has so many bins */

static double
operand(const KilnKernelArgs *args, uint32_t i)
{
    const KilnDType dtype = ref_type(args, i)->dtype;
    return kiln_dtype_is_float(dtype) ? ref_load_float(dtype, args->data[i], 0)
                                      : (double)ref_load_int(dtype, args->data[i], 0);
}

static double
mel(double hertz)
{
    return 2595 * log1p(hertz / 700) / log(10);
}

/* The bin of edge @i of the bands + 2 edges. */
static int64_t
edge(const KilnKernelArgs *args, int64_t i, int64_t bands)
{
    const double low = mel(operand(args, 4)), high = mel(operand(args, 5));
    const double at = low + (double)i * ((high - low) / (double)(bands + 2));
    const double hertz = 700 * expm1(at / 2595 * log(10));
    const double bin = floor((operand(args, 2) + 1) * hertz / operand(args, 3));
    return ref_truncate_signed(bin > FAR ? FAR : bin < -FAR ? -FAR : bin);
}

static void
store(const KilnKernelArgs *args, int64_t at, double weight)
{
    const KilnDType dtype = ref_type(args, 0)->dtype;
    if (kiln_dtype_is_float(dtype))
        ref_store_float(dtype, args->data[0], at, weight);
    else
        ref_store_int(dtype, args->data[0], at, (int64_t)weight);
}

/* The weight of bin @j in a triangle. */
static double
weight_of(int64_t j, int64_t left, int64_t peak, int64_t right)
{
    if (j >= peak && j < right)
        return (double)(right - j) / (double)(right - peak);
    if (j == peak)
        return left <= peak ? 1 : 0;
    return j >= left && j < peak ? (double)(j - left) / (double)(peak - left) : 0;
}

const char *
kiln_ref_mel_weight_matrix(const KilnKernelArgs *args)
{
    const int64_t bins = ref_type(args, 0)->dims[0], bands = ref_type(args, 0)->dims[1];
    for (int64_t i = 0; i < bands; i++) {
        const int64_t left = edge(args, i, bands), peak = edge(args, i + 1, bands);
        const int64_t right = edge(args, i + 2, bands);
        for (int64_t j = 0; j < bins; j++)
            store(args, j * bands + i, weight_of(j, left, peak, right));
    }
    return NULL;
}
