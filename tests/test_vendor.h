/* SPDX-License-Identifier: Apache-2.0 */
/* A vendor for tests of offload, with or without a library. It takes products, convolutions, pools,
 * softmax, LSTM, operators that may follow them, and own kernels in custom_ops. It refuses to
 * compile an lrn or a convolution with stride 3. Its kernels must never run: tests evaluate the
 * bodies of regions. */
#ifndef KILN_TESTS_TEST_VENDOR_H
#define KILN_TESTS_TEST_VENDOR_H

#include "ir/compiled.h"
#include "ir/target.h"
#include "ir/vendor.h"

extern const KilnVendor test_vendor;
/** Its compile function, for tests that wrap it. */
KilnCompiled *test_vendor_compile(const KilnIRFunction *region, const KilnTarget *target,
                                  const bool *constant, int threads, const KilnInstr **out_refused,
                                  GError **error);
/** The reference with that vendor. */
KilnTarget test_vendor_target(void);

#endif
