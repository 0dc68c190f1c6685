/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over other types than f32, for any processor. */
#include "graph/base/number.h"

#include <stdint.h>

static void
f32_to_f16(void *out, const void *in, int64_t n)
{
    const float *from = in;
    for (int64_t i = 0; i < n; i++)
        ((uint16_t *)out)[i] = kiln_f32_to_f16(from[i]);
}

static void
f16_to_f32(void *out, const void *in, int64_t n)
{
    const uint16_t *from = in;
    for (int64_t i = 0; i < n; i++)
        ((float *)out)[i] = kiln_f16_to_f32(from[i]);
}

#define F32_TO_F16 f32_to_f16
#define F16_TO_F32 f16_to_f32
#define TYPED kiln_cpu_typed_portable
#include "backends/cpu/elementwise/typed_loops.h"
