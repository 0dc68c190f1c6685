/* SPDX-License-Identifier: Apache-2.0 */
/* Detection of the instruction set. The answer is a constant of the machine, so it is computed once
 * and only read afterwards. The environment may ask for less than the machine has. */
#include "backends/cpu/isa.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static KilnCpuIsa best = KILN_CPU_ISA_PORTABLE;

#if defined(__x86_64__)
/* Not every compiler's __builtin_cpu_supports knows it. Each question takes a microsecond or ten in
 * a virtual machine; what has AVX2 has an answer to this one. */
static bool
has_f16c(void)
{
    unsigned eax, ebx, ecx, edx;
    __cpuid(1, eax, ebx, ecx, edx);
    return ecx & bit_F16C;
}
#endif

static void
detect(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (avx2)
        best = avx512 ? KILN_CPU_ISA_AVX512 : KILN_CPU_ISA_AVX2;
#endif
    const char *limit = getenv("KILN_CPU_ISA");
    for (KilnCpuIsa isa = KILN_CPU_ISA_PORTABLE; limit && isa < best; isa++) {
        if (strcmp(limit, kiln_cpu_isa_name(isa)) == 0)
            best = isa;
    }
}

KilnCpuIsa
kiln_cpu_isa_best(void)
{
    pthread_once(&once, detect);
    return best;
}

bool
kiln_cpu_isa_supported(KilnCpuIsa isa)
{
    return isa <= kiln_cpu_isa_best();
}

KilnCpuIsa
kiln_cpu_isa_resolve(KilnCpuIsa isa)
{
    return isa == KILN_CPU_ISA_AUTO ? kiln_cpu_isa_best() : isa;
}

const char *
kiln_cpu_isa_name(KilnCpuIsa isa)
{
    static const char *const names[] = {
        [KILN_CPU_ISA_AUTO] = "auto",
        [KILN_CPU_ISA_PORTABLE] = "portable",
        [KILN_CPU_ISA_AVX2] = "avx2",
        [KILN_CPU_ISA_AVX512] = "avx512",
    };
    return names[isa];
}
