/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of a top for a block of rows. A file per instruction set defines TREE_TOP and the
 * vocabulary of vectors. Sets of exits are the bits of floats. */
#include "backends/cpu/learn/tree_ensemble.h"

enum {
    GROUP = 4 /* vectors of rows at a time */
};

static inline V
set_bits(uint32_t set)
{
    return V_FROM_BITS(VI_SET1((int32_t)set));
}

/* @nan: rows may have NaN, which ordinary tests send to the second branch. */
static inline __attribute__((always_inline)) void
take_tests(const KilnCpuTreeBlock *block, const KilnCpuTreeTest *tests, int64_t n, int64_t row,
           bool nan, V sets[GROUP])
{
    for (int64_t t = 0; t < n; t++) {
        const float *x = block->x + tests[t].feature * (int64_t)KILN_CPU_TOP_ROWS + row;
        const V split = V_SET1(tests[t].split), keep = set_bits(tests[t].keep);
        for (int g = 0; g < GROUP; g++) {
            const V value = V_LOAD(x + g * VW), kept = V_AND(sets[g], keep);
            sets[g] = nan ? V_SELECT(V_LE(value, split), sets[g], kept)
                          : V_SELECT(V_LT(split, value), kept, sets[g]);
        }
    }
}

void
TREE_TOP(const KilnCpuTreeBlock *block, const KilnCpuTree *tree, const KilnCpuTreeTest *tests,
         uint32_t *sets)
{
    for (int64_t row = 0; row < block->rows; row += GROUP * VW) {
        V group[GROUP];
        for (int g = 0; g < GROUP; g++)
            group[g] = set_bits(UINT32_MAX);
        take_tests(block, tests, tree->ordinary, row, block->has_nan, group);
        take_tests(block, tests + tree->ordinary, tree->tests - tree->ordinary, row, false, group);
        for (int g = 0; g < GROUP; g++)
            V_STORE((float *)(void *)(sets + row + g * VW), group[g]);
    }
}
