/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a lowered region to a list of oneDNN's primitives. */
#ifndef KILN_BACKENDS_ONEDNN_COMPILE_H
#define KILN_BACKENDS_ONEDNN_COMPILE_H

#include "ir/compiled.h"
#include "ir/target.h"

/** Implements KilnVendor.compile() of ir/vendor.h. */
KilnCompiled *kiln_onednn_compile(const KilnIRFunction *function, const KilnTarget *target,
                                  const bool *constant, int threads, const KilnInstr **out_refused,
                                  GError **error);

#endif
