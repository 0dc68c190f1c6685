/* SPDX-License-Identifier: Apache-2.0 */
/* The time of the vendor library for a shape, with data and result in its own layout. */
#ifndef KILN_BENCH_COST_VENDOR_H
#define KILN_BENCH_COST_VENDOR_H

#include "bench/cost_shape.h"

#include <stdbool.h>

/** The least microseconds of a run on one thread, of runs that last @min_time seconds together. 0
 * if there is no library, or Kiln takes nothing in it. @blocked: channels in blocks, else last. */
double cost_vendor_us(const Shape *shape, bool blocked, double min_time);

#endif
