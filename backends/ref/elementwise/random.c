/* SPDX-License-Identifier: Apache-2.0 */
/* random_normal and random_uniform: element i depends on the seed and i alone, whatever the number
 * of threads. A seed of 0 is none: then on the seed of the run, the stream, and i. */
#include "backends/ref/kernel.h"
#include "graph/base/random.h"

static uint64_t
run_seed(const KilnKernelArgs *args)
{
    return args->run_seed ? *args->run_seed : 0;
}

const char *
kiln_ref_random_normal(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_random_normal *attrs = kiln_instr_attrs(args->instr, random_normal);
    const KilnType *type = ref_type(args, 0);
    const uint64_t seed = kiln_random_seed_of(attrs->seed, attrs->stream, run_seed(args));
    const int64_t n = ref_elements(type);
    for (int64_t i = 0; i < n; i++) {
        double x = kiln_random_normal(seed, (uint64_t)i);
        ref_store_float(type->dtype, args->data[0], i,
                        (double)attrs->mean + (double)attrs->scale * x);
    }
    return NULL;
}

/* Of [low, high): a number that rounds up to high becomes low. */
const char *
kiln_ref_random_uniform(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_random_uniform *attrs = kiln_instr_attrs(args->instr, random_uniform);
    const KilnType *type = ref_type(args, 0);
    const double low = (double)attrs->low, high = (double)attrs->high;
    const uint64_t seed = kiln_random_seed_of(attrs->seed, attrs->stream, run_seed(args));
    const int64_t n = ref_elements(type);
    for (int64_t i = 0; i < n; i++) {
        double x = low + (high - low) * kiln_random_unit(seed, (uint64_t)i);
        ref_store_float(type->dtype, args->data[0], i, x);
        if (ref_load_float(type->dtype, args->data[0], i) >= high)
            ref_store_float(type->dtype, args->data[0], i, low);
    }
    return NULL;
}
