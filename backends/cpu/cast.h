/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between f32 and f16 where the processor has instructions for them. Private to the
 * folder. */
#pragma once

#include <stdint.h>

#if defined(__x86_64__)
/** For processors with AVX2: rounds half to even. */
void kiln_cpu_f32_to_f16_avx2(uint16_t *out, const float *x, int64_t n);
void kiln_cpu_f16_to_f32_avx2(float *out, const uint16_t *x, int64_t n);
#endif
