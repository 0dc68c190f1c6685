/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for quantized operands. Float kernels on f64 copies define their results. */
#ifndef KILN_BACKENDS_REF_INTEGER_QUANTIZED_H
#define KILN_BACKENDS_REF_INTEGER_QUANTIZED_H

#include "backends/ref/kernel.h"
#include "ir/target.h"

/** Runs the float kernel of the instruction on f64 copies of its operands. The copies hold real
 * numbers; for products, steps from the zero point. @ref has the float kernels. */
const char *kiln_ref_quantized(const KilnTarget *ref, const KilnKernelArgs *args);
bool kiln_ref_quantized_supports(const KilnTarget *ref, const KilnInstr *instr);
size_t kiln_ref_quantized_scratch(const KilnTarget *ref, const KilnInstr *instr, int threads);

#endif
