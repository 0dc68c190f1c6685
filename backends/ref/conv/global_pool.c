/* SPDX-License-Identifier: Apache-2.0 */
/* global_average_pool, global_max_pool, global_lp_pool: one value per image and channel. The
 * average of nothing is NaN (0/0), the greatest of nothing minus infinity; a NaN is never lost. */
#include "backends/ref/kernel.h"
#include "ir/kernel.h"

#include <math.h>

/* The planes of the operand. */
typedef struct {
    KilnDType dtype;
    int64_t n, size;
} Planes;

static Planes
planes_of(const KilnKernelArgs *args)
{
    const KilnType *in = ref_type(args, 1);
    return (Planes){ in->dtype, ref_count(in->dims, 0, 2), ref_count(in->dims, 2, in->rank) };
}

const char *
kiln_ref_global_average_pool(const KilnKernelArgs *args)
{
    Planes planes = planes_of(args);
    for (int64_t p = 0; p < planes.n; p++) {
        double sum = 0;
        for (int64_t i = 0; i < planes.size; i++)
            sum += ref_load_float(planes.dtype, args->data[1], p * planes.size + i);
        ref_store_float(planes.dtype, args->data[0], p, sum / (double)planes.size);
    }
    return NULL;
}

const char *
kiln_ref_global_max_pool(const KilnKernelArgs *args)
{
    Planes planes = planes_of(args);
    for (int64_t p = 0; p < planes.n; p++) {
        double greatest = -INFINITY;
        for (int64_t i = 0; i < planes.size; i++) {
            double value = ref_load_float(planes.dtype, args->data[1], p * planes.size + i);
            if (value > greatest || isnan(value))
                greatest = value;
            if (isnan(greatest))
                break;
        }
        ref_store_float(planes.dtype, args->data[0], p, greatest);
    }
    return NULL;
}

const char *
kiln_ref_global_lp_pool(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_global_lp_pool *attrs = kiln_instr_attrs(args->instr, global_lp_pool);
    Planes planes = planes_of(args);
    double p = (double)attrs->p;
    for (int64_t plane = 0; plane < planes.n; plane++) {
        double sum = 0;
        for (int64_t i = 0; i < planes.size; i++) {
            double value = ref_load_float(planes.dtype, args->data[1], plane * planes.size + i);
            sum += pow(fabs(value), p);
        }
        ref_store_float(planes.dtype, args->data[0], plane, pow(sum, 1 / p));
    }
    return NULL;
}
