/* SPDX-License-Identifier: Apache-2.0 */
/* Scaled dot-product attention: softmax(scale × Q Kᵀ + mask) V, a query at a time; everything is in
 * double and rounded once. Operands: result, queries, keys, values, mask. */
#include "backends/ref/elementwise/scalar.h"
#include "backends/ref/kernel.h"
#include "ir/kernel.h"

#include <math.h>

size_t
kiln_ref_attention_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    const KilnType *keys = &kiln_instr_operand(instr, 2)->type;
    return (size_t)keys->dims[keys->rank - 2] * sizeof(double);
}

/* The first element of row @row of operand @i under the dims in front of @index. */
static int64_t
row_of(const KilnKernelArgs *args, uint32_t i, int64_t *index, int rank, int64_t row)
{
    index[rank - 2] = row;
    index[rank - 1] = 0;
    return ref_broadcast_offset(ref_type(args, i), index, rank);
}

static double
dot(const KilnKernelArgs *args, int64_t query, int64_t key, int64_t n)
{
    const KilnDType dtype = ref_type(args, 0)->dtype;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += ref_load_float(dtype, args->data[1], query + i) *
               ref_load_float(dtype, args->data[2], key + i);
    return sum;
}

/* The scores of the query in row @m become shares that add up to 1. */
static void
score(const KilnKernelArgs *args, int64_t *index, int64_t m, double *scores)
{
    const KilnType *out = ref_type(args, 0), *keys = ref_type(args, 2);
    const double scale = (double)kiln_instr_attrs(args->instr, attention)->scale;
    const int64_t n = keys->dims[keys->rank - 2], depth = keys->dims[keys->rank - 1];
    double max = -INFINITY, sum = 0;
    for (int64_t s = 0; s < n; s++) {
        const int64_t query = row_of(args, 1, index, out->rank, m);
        const int64_t key = row_of(args, 2, index, out->rank, s);
        scores[s] = scale * dot(args, query, key, depth);
        if (ref_has(args, 4)) {
            index[out->rank - 2] = m;
            index[out->rank - 1] = s;
            int64_t at = ref_broadcast_offset(ref_type(args, 4), index, out->rank);
            scores[s] += ref_load_float(out->dtype, args->data[4], at);
        }
        max = ref_max(max, scores[s]);
    }
    for (int64_t s = 0; s < n; s++)
        sum += scores[s] = exp(scores[s] - max);
    for (int64_t s = 0; s < n; s++)
        scores[s] /= sum;
}

const char *
kiln_ref_attention(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0), *keys = ref_type(args, 2);
    const int64_t rows = out->dims[out->rank - 2], width = out->dims[out->rank - 1];
    const int64_t n = keys->dims[keys->rank - 2];
    double *scores = args->scratch;
    int64_t index[KILN_MAX_RANK] = { 0 }, at = 0;
    while (at < ref_elements(out)) {
        for (int64_t m = 0; m < rows; m++) {
            score(args, index, m, scores);
            const int64_t values = row_of(args, 3, index, out->rank, 0);
            for (int64_t e = 0; e < width; e++) {
                double sum = 0;
                for (int64_t s = 0; s < n; s++)
                    sum += scores[s] *
                           ref_load_float(out->dtype, args->data[3], values + s * width + e);
                ref_store_float(out->dtype, args->data[0], at++, sum);
            }
        }
        ref_next(index, out->dims, out->rank - 2);
    }
    return NULL;
}
