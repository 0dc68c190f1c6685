/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over other types than f32, for AVX2. */
#include "backends/cpu/simd/half_f16c.h"

#define F32_TO_F16 f32_to_f16
#define F16_TO_F32 f16_to_f32
#define TYPED kiln_cpu_typed_avx2
#include "backends/cpu/elementwise/typed_loops.h"
