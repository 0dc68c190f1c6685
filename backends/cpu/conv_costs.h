/* SPDX-License-Identifier: Apache-2.0 */
/* What the algorithms of a convolution cost: microseconds on one thread by each term that
 * kiln_direct_terms() and kiln_winograd_terms() count. Written by kiln-fit-costs from
 * bench/costs/conv.csv, which says what it was measured on. */
#pragma once

// clang-format off
#define KILN_DIRECT_COSTS { 8.73e-05, 6.277e-06, 3.934 }
#define KILN_WINOGRAD_COSTS { 5.277e-05, 0.01116, 0.007848, 2.424e-05, 3.885 }
// clang-format on
