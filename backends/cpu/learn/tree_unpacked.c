/* SPDX-License-Identifier: Apache-2.0 */
/* tree_ensemble of trees that are not constant, or not packed: each step checks the numbers that it
 * reads. */
#include "backends/cpu/kernel.h"
#include "backends/cpu/learn/tree_pack.h"
#include "graph/infer/tree_operands.h"

#include <math.h>

enum {
    OUT,
    KILN_TREE_OPERANDS
};

typedef struct {
    const KilnKernelArgs *args;
    KilnCpuAggregate how;
    const int32_t *features, *children, *starts, *targets;
    int64_t nodes, columns, entries, n_targets;
} Trees;

/* The leaf of a row, or -1 where a number is wrong; then what adds its entries to the scores. */
#define UNPACKED(T)                                                                                \
    static int64_t find_leaf_##T(const Trees *t, const T *x, int64_t i)                            \
    {                                                                                              \
        while (i >= 0 && i < t->nodes && t->children[i] != i) {                                    \
            const int64_t child = t->children[i], feature = t->features[i];                        \
            if (child < i || child + 1 >= t->nodes || feature < 0 || feature >= t->columns)        \
                return -1;                                                                         \
            const T value = x[feature];                                                            \
            const bool first = isnan(value) ? ((const uint8_t *)t->args->data[MISSING])[i]         \
                                            : value <= ((const T *)t->args->data[SPLITS])[i];      \
            i = first ? child : child + 1;                                                         \
        }                                                                                          \
        return i < t->nodes ? i : -1;                                                              \
    }                                                                                              \
    static bool add_leaf_##T(const Trees *t, T *scores, int64_t leaf)                              \
    {                                                                                              \
        const int64_t first = t->starts[leaf], end = t->starts[leaf + 1];                          \
        const T *weights = t->args->data[WEIGHTS];                                                 \
        if (first < 0 || end > t->entries)                                                         \
            return false;                                                                          \
        for (int64_t e = first; e < end; e++) {                                                    \
            if (t->targets[e] < 0 || t->targets[e] >= t->n_targets)                                \
                return false;                                                                      \
            T *score = scores + t->targets[e];                                                     \
            *score = kiln_cpu_aggregate_##T(t->how, *score, weights[e]);                           \
        }                                                                                          \
        return true;                                                                               \
    }                                                                                              \
    static const char *score_row_##T(const Trees *t, int64_t row)                                  \
    {                                                                                              \
        const T *x = (const T *)t->args->data[X] + row * t->columns;                               \
        T *scores = (T *)t->args->data[OUT] + row * t->n_targets;                                  \
        const int32_t *roots = t->args->data[ROOTS];                                               \
        for (int64_t k = 0; k < t->n_targets; k++)                                                 \
            scores[k] = t->how == KILN_CPU_SUM ? 0 : (T)NAN;                                       \
        for (int64_t tree = 0; tree < cpu_type(t->args->instr, ROOTS)->dims[0]; tree++) {          \
            const int64_t leaf = find_leaf_##T(t, x, roots[tree]);                                 \
            if (leaf < 0)                                                                          \
                return "a node of a tree has a child or a feature that does not exist";            \
            if (!add_leaf_##T(t, scores, leaf))                                                    \
                return "an entry of a leaf, or its target, does not exist";                        \
        }                                                                                          \
        for (int64_t k = 0; k < t->n_targets && t->how != KILN_CPU_SUM; k++)                       \
            scores[k] = isnan(scores[k]) ? 0 : scores[k];                                          \
        return NULL;                                                                               \
    }
UNPACKED(float)
UNPACKED(double)
#undef UNPACKED

const char *
kiln_cpu_trees_unpacked(const KilnKernelArgs *args)
{
    const KilnType *x = cpu_type(args->instr, X);
    const Trees t = { .args = args,
                      .how = kiln_cpu_forest_aggregate(args->instr),
                      .features = args->data[FEATURES],
                      .children = args->data[CHILDREN],
                      .starts = args->data[STARTS],
                      .targets = args->data[TARGETS],
                      .nodes = cpu_type(args->instr, FEATURES)->dims[0],
                      .columns = x->dims[1],
                      .entries = cpu_type(args->instr, TARGETS)->dims[0],
                      .n_targets = cpu_type(args->instr, OUT)->dims[1] };
    const char *failure = NULL;
    for (int64_t row = 0; row < x->dims[0] && !failure; row++)
        failure = x->dtype == KILN_DTYPE_f32 ? score_row_float(&t, row) : score_row_double(&t, row);
    return failure;
}
