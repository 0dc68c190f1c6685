/* SPDX-License-Identifier: Apache-2.0 */
/* det: determinants of square matrices by elimination with row pivoting, in double. */
#include "backends/ref/kernel.h"
#include "ir/kernel.h"

#include <math.h>

size_t
kiln_ref_det_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    const KilnType *in = &kiln_instr_operand(instr, 1)->type;
    int64_t n = in->dims[in->rank - 1];
    return (size_t)(n * n) * sizeof(double);
}

static void
swap_rows(double *m, int64_t n, int64_t a, int64_t b)
{
    for (int64_t j = 0; j < n; j++) {
        double keep = m[a * n + j];
        m[a * n + j] = m[b * n + j];
        m[b * n + j] = keep;
    }
}

/* Destroys @m. The determinant of the empty matrix is one. */
static double
determinant(double *m, int64_t n)
{
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++) {
            if (fabs(m[i * n + k]) > fabs(m[pivot * n + k]))
                pivot = i;
        }
        if (pivot != k) {
            swap_rows(m, n, pivot, k);
            det = -det;
        }
        det *= m[k * n + k];
        if (m[k * n + k] == 0)
            return 0;
        for (int64_t i = k + 1; i < n; i++) {
            double factor = m[i * n + k] / m[k * n + k];
            for (int64_t j = k; j < n; j++)
                m[i * n + j] -= factor * m[k * n + j];
        }
    }
    return det;
}

const char *
kiln_ref_det(const KilnKernelArgs *args)
{
    const KilnType *in = ref_type(args, 1);
    int64_t n = in->dims[in->rank - 1], matrices = ref_count(in->dims, 0, in->rank - 2);
    double *m = args->scratch;
    for (int64_t b = 0; b < matrices; b++) {
        for (int64_t i = 0; i < n * n; i++)
            m[i] = ref_load_float(in->dtype, args->data[1], b * n * n + i);
        ref_store_float(in->dtype, args->data[0], b, determinant(m, n));
    }
    return NULL;
}
