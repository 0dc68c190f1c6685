/* SPDX-License-Identifier: Apache-2.0 */
/* squared_distance: Σ (x[n,f] - y[m,f])² for each row of x and each of y. */
#include "backends/ref/kernel.h"

const char *
kiln_ref_squared_distance(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0), *x = ref_type(args, 1);
    const int64_t features = x->dims[1];
    for (int64_t n = 0; n < out->dims[0]; n++) {
        for (int64_t m = 0; m < out->dims[1]; m++) {
            double sum = 0;
            for (int64_t f = 0; f < features; f++) {
                const double a = ref_load_float(x->dtype, args->data[1], n * features + f);
                const double b = ref_load_float(x->dtype, args->data[2], m * features + f);
                sum += (a - b) * (a - b);
            }
            ref_store_float(out->dtype, args->data[0], n * out->dims[1] + m, sum);
        }
    }
    return NULL;
}
