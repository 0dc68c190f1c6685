/* SPDX-License-Identifier: Apache-2.0 */
/* Which loops of integer_kernel.h this machine runs. Dot products of bytes are a feature beside the
 * instruction sets of isa.h; it changes no bit. */
#include "backends/cpu/integer/integer_kernel.h"

#include "backends/cpu/isa.h"

#include <pthread.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const KilnIntegerKernels *best = &kiln_integer_kernels_portable;

static void
find(void)
{
#if defined(__x86_64__)
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    const KilnCpuIsa isa = kiln_cpu_isa_best();
    if (isa == KILN_CPU_ISA_AVX512) {
        const bool vnni = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && ecx >> 11 & 1;
        best = vnni ? &kiln_integer_kernels_avx512vnni : &kiln_integer_kernels_avx512;
    } else if (isa == KILN_CPU_ISA_AVX2) {
        const bool vnni = __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && eax >> 4 & 1;
        best = vnni ? &kiln_integer_kernels_avxvnni : &kiln_integer_kernels_avx2;
    }
#endif
}

const KilnIntegerKernels *
kiln_integer_kernels(void)
{
    pthread_once(&once, find);
    return best;
}
