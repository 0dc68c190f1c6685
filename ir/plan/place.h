/* SPDX-License-Identifier: Apache-2.0 */
/* Places buffers with fixed lives in one arena, for the memory plan. Only the first step, the last
 * step and the size of a life count. Sizes must sum to less than 2^63. */
#ifndef KILN_IR_PLAN_PLACE_H
#define KILN_IR_PLAN_PLACE_H

#include "ir/life.h"

/** Work of exact search for the plan of a program: about 20 ms. */
#define KILN_PLACE_WORK INT64_C(12000000)

/** More buffers are not searched: recursion is one level per buffer, and the search seldom ends. */
#define KILN_PLACE_EXACT_MAX 1024

/** Sets offsets and returns the height. Tries greedy orders. If they miss the bound, searches
 * exactly with about @work units of kiln_place_within(). @out_bound (or NULL) is the greatest
 * proved bound: a plan of that height is optimal. Deterministic. */
int64_t kiln_place(KilnLife *lives, uint32_t n, int64_t work, int64_t *out_bound);

/** Fills @pressure, per life, with the most bytes that live at once during it. Returns the greatest
 * pressure: no placement is lower. */
int64_t kiln_place_pressure(const KilnLife *lives, uint32_t n, int64_t *pressure);

/** One plan in n log n steps: lives in the order of their first steps, each at the lowest gap. Sets
 * offsets and returns the height, which is the lowest if all sizes are equal. */
int64_t kiln_place_stream(KilnLife *lives, uint32_t n);

/** Places the same lives again and again, with other sizes. */
typedef struct KilnFirstFit KilnFirstFit;

/** @lives are borrowed. Their steps must stay. */
KilnFirstFit *kiln_first_fit_new(KilnLife *lives, uint32_t n);
void kiln_first_fit_free(KilnFirstFit *fit);
/** Sets offsets and returns the height. Depends on the sizes alone. Allocates nothing. */
int64_t kiln_first_fit_place(KilnFirstFit *fit);
/** The same for lives that begin behind step @step; the others stay where they are. */
int64_t kiln_first_fit_place_behind(KilnFirstFit *fit, int64_t step);

typedef enum {
    KILN_PLACED,
    KILN_PLACEMENT_IMPOSSIBLE, /* proved: no offsets fit */
    KILN_PLACEMENT_UNDECIDED,  /* the budget ran out */
} KilnPlacement;

/** Searches for offsets that end at @capacity or below. Stops when it finds them, proves that there
 * are none, or has used up *@work. One unit of work is a look at one buffer or section, 1 to 2
 * nanoseconds. Sets the offsets that it finds. More than KILN_PLACE_EXACT_MAX buffers are
 * undecided. */
KilnPlacement kiln_place_within(KilnLife *lives, uint32_t n, int64_t capacity, int64_t *work);

#endif
