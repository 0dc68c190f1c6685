/* SPDX-License-Identifier: Apache-2.0 */
/* Which instruction set the kernels of the cpu backend run on. A problem names one, or leaves the
 * choice to the processor (AUTO); results are bit-identical for a given instruction set only. */
#ifndef KILN_BACKENDS_CPU_ISA_H
#define KILN_BACKENDS_CPU_ISA_H

#include <stdbool.h>

typedef enum {
    KILN_CPU_ISA_AUTO, /* the best that this processor and its operating system support */
    KILN_CPU_ISA_PORTABLE,
    KILN_CPU_ISA_AVX2,
    KILN_CPU_ISA_AVX512,
} KilnCpuIsa;

/** The best instruction set of this machine; never AUTO. Detected once, safe from any thread. The
 * environment variable KILN_CPU_ISA (portable, avx2, avx512) limits it: for tests, and for equal
 * bits on unlike machines. */
KilnCpuIsa kiln_cpu_isa_best(void);

/** True when kernels for @isa may run here. AUTO and PORTABLE always may. */
bool kiln_cpu_isa_supported(KilnCpuIsa isa);

/** @isa itself, or the best one for AUTO. */
KilnCpuIsa kiln_cpu_isa_resolve(KilnCpuIsa isa);

/** "auto", "portable", "avx2" or "avx512". */
const char *kiln_cpu_isa_name(KilnCpuIsa isa);

#endif
