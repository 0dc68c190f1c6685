/* SPDX-License-Identifier: Apache-2.0 */
/* Trees as the kernel of tree_ensemble packs them, and the walk of a block of rows through the top
 * of a tree, one loop per instruction set. Private to the folder.
 *
 * The top of a tree has up to 31 tests, nearest to the root, and one exit more than tests. Exits
 * are numbered from left to right. A row begins with the set of all exits. Each test that sends it
 * to the second branch takes the exits of the first branch from the set. The least exit that is
 * left is the right one, whatever the order of the tests. So a vector of rows takes all tests of a
 * top without a look at the outcomes. Below its exit each row walks by itself. */
#ifndef KILN_BACKENDS_CPU_LEARN_TREE_ENSEMBLE_H
#define KILN_BACKENDS_CPU_LEARN_TREE_ENSEMBLE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    KILN_CPU_TOP_EXITS = 32, /* bits of a set */
    KILN_CPU_TOP_TESTS = KILN_CPU_TOP_EXITS - 1,
    KILN_CPU_TOP_ROWS = 64, /* of a block */
};

typedef struct {
    float split;
    int32_t feature;
    uint32_t keep; /* the exits that are left where the split is exceeded */
} KilnCpuTreeTest;

typedef struct {
    int32_t root;
    int32_t tests;    /* of the top */
    int32_t ordinary; /* the first of them, which send NaN to the second branch */
    int32_t below;    /* tests below the deepest exit; 0: all exits are leaves */
    int32_t depth;    /* tests below the root */
} KilnCpuTree;

/** A block of rows, feature after feature: number f of row r is x[f KILN_CPU_TOP_ROWS + r]. */
typedef struct {
    const float *x;
    int64_t rows; /* others are computed, too, up to a whole vector */
    bool has_nan;
} KilnCpuTreeBlock;

/** Stores the set of exits of each row. */
extern void kiln_cpu_tree_top_portable(const KilnCpuTreeBlock *block, const KilnCpuTree *tree,
                                       const KilnCpuTreeTest *tests, uint32_t *sets);
extern void kiln_cpu_tree_top_avx2(const KilnCpuTreeBlock *block, const KilnCpuTree *tree,
                                   const KilnCpuTreeTest *tests, uint32_t *sets);
extern void kiln_cpu_tree_top_avx512(const KilnCpuTreeBlock *block, const KilnCpuTree *tree,
                                     const KilnCpuTreeTest *tests, uint32_t *sets);

#endif
