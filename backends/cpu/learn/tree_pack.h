/* SPDX-License-Identifier: Apache-2.0 */
/* The packed operands of tree_ensemble. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_LEARN_TREE_PACK_H
#define KILN_BACKENDS_CPU_LEARN_TREE_PACK_H

#include "backends/cpu/learn/tree_ensemble.h"
#include "ir/kernel.h"

#include <math.h>

typedef enum {
    KILN_CPU_SUM,
    KILN_CPU_MIN,
    KILN_CPU_MAX
} KilnCpuAggregate;

/** A test x <= split leads to `child`, or to the node behind it. A leaf leads to itself: its split
 * is above all numbers. */
typedef struct {
    float split;
    int32_t feature, child;
    float weight; /* of a leaf, where forests are single */
} KilnCpuNode32;
typedef struct {
    double split;
    int32_t feature, child;
} KilnCpuNode64;

/** What is packed, once it is found to be right. */
typedef struct {
    int64_t n_trees, n_nodes, n_entries;
    int64_t features; /* that rows must have */
    bool single;      /* f32: there is one target, and each leaf has one entry */
    const KilnCpuTree *trees;
    const KilnCpuTreeTest *tests; /* KILN_CPU_TOP_TESTS for each tree of f32 */
    const int32_t *exits;         /* nodes: KILN_CPU_TOP_EXITS for each tree of f32 */
    const void *nodes;            /* KilnCpuNode32 or KilnCpuNode64 */
    const uint8_t *missing;
    const int32_t *starts, *targets;
    const void *weights;
} KilnCpuForest;

void kiln_cpu_forest_read(const KilnInstr *instr, const void *packed, KilnCpuForest *out);
KilnCpuAggregate kiln_cpu_forest_aggregate(const KilnInstr *instr);
/** Runs on operands that are not packed. */
const char *kiln_cpu_trees_unpacked(const KilnKernelArgs *args);

/** The score of a target after an entry. NaN: it has no entry yet. */
static inline float
kiln_cpu_aggregate_float(KilnCpuAggregate how, float score, float weight)
{
    if (how == KILN_CPU_SUM)
        return score + weight;
    return isnan(score) || (how == KILN_CPU_MAX ? weight > score : weight < score) ? weight : score;
}
static inline double
kiln_cpu_aggregate_double(KilnCpuAggregate how, double score, double weight)
{
    if (how == KILN_CPU_SUM)
        return score + weight;
    return isnan(score) || (how == KILN_CPU_MAX ? weight > score : weight < score) ? weight : score;
}

#endif
