/* SPDX-License-Identifier: Apache-2.0 */
/* Fourier transforms of KILN_CPU_DFT_LANES signals at once: number k of lane l is element
 * [k][l] of two arrays, one of real and one of imaginary parts. They are double: where terms of a
 * sum cancel each other, floats would leave more than a rounded result may. Private to the folder.
 */
#ifndef KILN_BACKENDS_CPU_SIGNAL_DFT_H
#define KILN_BACKENDS_CPU_SIGNAL_DFT_H

#include <stddef.h>
#include <stdint.h>

enum {
    KILN_CPU_DFT_LANES = 8,
    KILN_CPU_DFT_RADIX = 13, /* the largest prime that has butterflies */
    KILN_CPU_DFT_STAGES = 40,
};

/** One stage of a transform of n numbers that fall into @stride interleaved ones of @length:
 * butterflies of @radix numbers. The results are @stride × @radix interleaved ones. */
typedef struct {
    const double *re, *im;
    double *to_re, *to_im;
    const double *cosines, *sines; /* n each, of 2πi / n; the sines with the sign of e^(-2πi / n) */
    int64_t n, length, stride;
    int radix;
} KilnCpuDftStage;

typedef void (*KilnCpuDftLoops)(const KilnCpuDftStage *stage);
extern void kiln_cpu_dft_stage_portable(const KilnCpuDftStage *stage);
extern void kiln_cpu_dft_stage_avx2(const KilnCpuDftStage *stage);
extern void kiln_cpu_dft_stage_avx512(const KilnCpuDftStage *stage);

/** How @n numbers are transformed. A length with a large prime factor becomes a convolution of
 * @padded numbers: x is multiplied by a chirp, which makes the transform depend on differences of
 * indices alone. Tables lie behind the struct. */
typedef struct {
    int64_t n;
    int64_t padded; /* n where it needs no convolution: the length of what stages transform */
    int n_stages;
    int radix[KILN_CPU_DFT_STAGES];
} KilnCpuDftPlan;

/** Bytes of a plan with its tables. */
size_t kiln_cpu_dft_plan_size(int64_t n);
/** Makes the plan and its tables in @plan, which has kiln_cpu_dft_plan_size(@n) bytes. */
void kiln_cpu_dft_plan(int64_t n, KilnCpuDftPlan *plan);
/** Doubles of scratch that a transform needs: its four arrays. */
int64_t kiln_cpu_dft_scratch_size(int64_t n);
/** Transforms the first n numbers of the two arrays at the begin of @work, each of which has room
 * for `padded` numbers. Returns where the results are: real parts, and imaginary ones `padded`
 * numbers behind them. */
const double *kiln_cpu_dft_run(const KilnCpuDftPlan *plan, double *work);

#endif
