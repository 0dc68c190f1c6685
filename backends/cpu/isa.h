/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction sets that the kernels of the cpu backend are written for. A problem names one, or
 * AUTO for the best of this machine. Results are bit-identical for one instruction set only. */
#ifndef KILN_BACKENDS_CPU_ISA_H
#define KILN_BACKENDS_CPU_ISA_H

#include <stdbool.h>

typedef enum {
    KILN_CPU_ISA_AUTO, /* the best that this processor and its operating system support */
    KILN_CPU_ISA_PORTABLE,
    KILN_CPU_ISA_AVX2,
    KILN_CPU_ISA_AVX512,
} KilnCpuIsa;

/** Returns the best instruction set of this machine, never AUTO. It is detected once. Safe from any
 * thread. The environment variable KILN_CPU_ISA (portable, avx2, avx512) limits it: for tests, and
 * for equal bits on unlike machines. */
KilnCpuIsa kiln_cpu_isa_best(void);

/** True if kernels for @isa may run here. AUTO and PORTABLE always may. */
bool kiln_cpu_isa_supported(KilnCpuIsa isa);

/** Returns @isa, or the best instruction set for AUTO. */
KilnCpuIsa kiln_cpu_isa_resolve(KilnCpuIsa isa);

/** The object or the function for @isa, where there is one for each: @name, or its address, with
 * _portable, _avx2 and _avx512 behind. AUTO is the best of this machine. */
#if defined(__x86_64__)
#define KILN_CPU_OF_ISA(isa, name)                                                                 \
    (kiln_cpu_isa_resolve(isa) == KILN_CPU_ISA_AVX512 ? name##_avx512                              \
     : kiln_cpu_isa_resolve(isa) == KILN_CPU_ISA_AVX2 ? name##_avx2                                \
                                                      : name##_portable)
#else
#define KILN_CPU_OF_ISA(isa, name) ((void)(isa), name##_portable)
#endif

/** Returns "auto", "portable", "avx2" or "avx512". */
const char *kiln_cpu_isa_name(KilnCpuIsa isa);

#endif
