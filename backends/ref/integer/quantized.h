/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of quantized operands by way of f64 copies: what they mean, in terms of the float
 * kernels. */
#ifndef KILN_BACKENDS_REF_INTEGER_QUANTIZED_H
#define KILN_BACKENDS_REF_INTEGER_QUANTIZED_H

#include "backends/ref/kernel.h"

/** The float kernel of the instruction runs on f64 copies of its operands: the reals that quantized
 * operands stand for, or, for products, the steps that they count. @ref has the float kernels. */
const char *kiln_ref_quantized(const KilnTarget *ref, const KilnKernelArgs *args);
bool kiln_ref_quantized_supports(const KilnTarget *ref, const KilnInstr *instr);
size_t kiln_ref_quantized_scratch(const KilnTarget *ref, const KilnInstr *instr, int threads);

#endif
