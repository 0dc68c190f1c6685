/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/elementwise/look_up.h"

#include "backends/cpu/isa.h"

void
kiln_cpu_look_up_portable(uint8_t *to, const uint8_t *x, int64_t n, const uint8_t *table)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = table[x[i]];
}

KilnCpuLookUp
kiln_cpu_look_up_bytes(void)
{
#if defined(__x86_64__)
    const KilnCpuIsa isa = kiln_cpu_isa_best();
    if (isa == KILN_CPU_ISA_AVX512)
        return __builtin_cpu_supports("avx512vbmi") ? kiln_cpu_look_up_avx512vbmi
                                                    : kiln_cpu_look_up_avx512;
    if (isa == KILN_CPU_ISA_AVX2)
        return kiln_cpu_look_up_avx2;
#endif
    return kiln_cpu_look_up_portable;
}
