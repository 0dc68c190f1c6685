/* SPDX-License-Identifier: Apache-2.0 */
/* What the vendor library takes for a shape, data and result in a layout of its own. */
#ifndef KILN_BENCH_COST_VENDOR_H
#define KILN_BENCH_COST_VENDOR_H

#include "bench/cost_shape.h"

#include <stdbool.h>

/** The least microseconds of a run on one thread, of runs that last @min_time seconds together; 0
 * where there is no library, or nothing in it that Kiln takes. @blocked: channels in blocks, else
 * last. */
double cost_vendor_us(const Shape *shape, bool blocked, double min_time);

#endif
