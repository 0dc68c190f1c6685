/* SPDX-License-Identifier: Apache-2.0 */
/* tree_ensemble with constant trees, which are checked and packed when the program is bound. A task
 * takes a block of rows through all trees in order, so sums have the order of the specification.
 * Rows of f32 take the tops of trees in vectors. Few rows, and rows of f64, walk through several
 * trees at a time. */
#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/learn/tree_ensemble.h"
#include "backends/cpu/learn/tree_pack.h"
#include "backends/cpu/parallel.h"

#include <math.h>

enum {
    OUT,
    X,
    LANES = 8,     /* walks at a time */
    FEW_ROWS = 8,  /* for which a block does not pay */
    ROW_TASK = 16, /* rows of a task that walk by themselves */
    BLOCK = KILN_CPU_TOP_ROWS,
};

typedef struct {
    const KilnKernelArgs *args;
    KilnCpuForest forest;
    KilnCpuAggregate how;
    int64_t rows, features, targets;
    void (*top)(const KilnCpuTreeBlock *block, const KilnCpuTree *tree,
                const KilnCpuTreeTest *tests, uint32_t *sets);
} Ensemble;

/* --- scores --- */

#define AGGREGATE(T)                                                                               \
    static inline void add_leaf_##T(const Ensemble *e, T *scores, int64_t leaf)                    \
    {                                                                                              \
        const KilnCpuForest *f = &e->forest;                                                       \
        for (int32_t i = f->starts[leaf]; i < f->starts[leaf + 1]; i++)                            \
            scores[f->targets[i]] =                                                                \
                kiln_cpu_aggregate_##T(e->how, scores[f->targets[i]], ((const T *)f->weights)[i]); \
    }                                                                                              \
    static void begin_##T(const Ensemble *e, T *scores, int64_t n)                                 \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            scores[i] = e->how == KILN_CPU_SUM ? 0 : (T)NAN;                                       \
    }                                                                                              \
    static void end_##T(const Ensemble *e, T *scores, int64_t n)                                   \
    {                                                                                              \
        for (int64_t i = 0; i < n && e->how != KILN_CPU_SUM; i++)                                  \
            scores[i] = isnan(scores[i]) ? 0 : scores[i];                                          \
    }
AGGREGATE(float)
AGGREGATE(double)
#undef AGGREGATE

/* --- a row through several trees --- */

#define WALK(T, Node)                                                                              \
    static inline int32_t step_##T(const Ensemble *e, const T *x, int32_t i, bool nan)             \
    {                                                                                              \
        const Node *node = (const Node *)e->forest.nodes + i;                                      \
        const T value = x[node->feature];                                                          \
        bool second = !(value <= node->split);                                                     \
        if (nan)                                                                                   \
            second = second && node->child != i && !(isnan(value) && e->forest.missing[i]);        \
        return node->child + second;                                                               \
    }                                                                                              \
    static inline __attribute__((always_inline)) void walk_##T(                                    \
        const Ensemble *e, const T *x, int32_t depth, bool nan, int32_t at[LANES])                 \
    {                                                                                              \
        for (int32_t d = 0; d < depth; d++) {                                                      \
            int32_t moved = 0;                                                                     \
            for (int l = 0; l < LANES; l++) {                                                      \
                const int32_t next = step_##T(e, x, at[l], nan);                                   \
                moved |= next ^ at[l];                                                             \
                at[l] = next;                                                                      \
            }                                                                                      \
            if (!moved)                                                                            \
                return;                                                                            \
        }                                                                                          \
    }                                                                                              \
    static void score_row_##T(const Ensemble *e, int64_t row)                                      \
    {                                                                                              \
        const T *x = (const T *)e->args->data[X] + row * e->features;                              \
        T *scores = (T *)e->args->data[OUT] + row * e->targets;                                    \
        const KilnCpuTree *trees = e->forest.trees;                                                \
        bool nan = false;                                                                          \
        for (int64_t f = 0; f < e->features; f++)                                                  \
            nan |= isnan(x[f]);                                                                    \
        begin_##T(e, scores, e->targets);                                                          \
        for (int64_t t = 0; t < e->forest.n_trees; t += LANES) {                                   \
            const int64_t n = min_of(LANES, e->forest.n_trees - t);                                \
            int32_t at[LANES], depth = 0;                                                          \
            for (int64_t l = 0; l < LANES; l++) {                                                  \
                at[l] = trees[t + min_of(l, n - 1)].root;                                          \
                depth = trees[t + min_of(l, n - 1)].depth > depth                                  \
                            ? trees[t + min_of(l, n - 1)].depth                                    \
                            : depth;                                                               \
            }                                                                                      \
            if (nan)                                                                               \
                walk_##T(e, x, depth, true, at);                                                   \
            else                                                                                   \
                walk_##T(e, x, depth, false, at);                                                  \
            for (int64_t l = 0; l < n; l++)                                                        \
                add_leaf_##T(e, scores, at[l]);                                                    \
        }                                                                                          \
        end_##T(e, scores, e->targets);                                                            \
    }
WALK(float, KilnCpuNode32)
WALK(double, KilnCpuNode64)
#undef WALK

static void
run_rows(const void *data, int64_t task, int thread)
{
    const Ensemble *e = data;
    (void)thread;
    const int64_t end = min_of(e->rows, (task + 1) * ROW_TASK);
    for (int64_t row = task * ROW_TASK; row < end; row++) {
        if (cpu_type(e->args->instr, X)->dtype == KILN_DTYPE_f32)
            score_row_float(e, row);
        else
            score_row_double(e, row);
    }
}

/* --- a block of rows through a tree --- */

/* Rows below the exits of the top. Features lie as in the block. */
static inline __attribute__((always_inline)) void
walk_lanes(const Ensemble *e, const float *x, int32_t depth, bool nan, int32_t at[LANES])
{
    const KilnCpuNode32 *nodes = e->forest.nodes;
    for (int32_t d = 0; d < depth; d++) {
        int32_t moved = 0;
        for (int l = 0; l < LANES; l++) {
            const KilnCpuNode32 *node = nodes + at[l];
            const float value = x[node->feature * (int64_t)BLOCK + l];
            bool second = !(value <= node->split);
            if (nan)
                second =
                    second && node->child != at[l] && !(isnan(value) && e->forest.missing[at[l]]);
            const int32_t next = node->child + second;
            moved |= next ^ at[l];
            at[l] = next;
        }
        if (!moved)
            return;
    }
}

static void
score_tree(const Ensemble *e, const KilnCpuTreeBlock *block, int64_t t, float *scores)
{
    const KilnCpuTree *tree = &e->forest.trees[t];
    const KilnCpuNode32 *nodes = e->forest.nodes;
    const int32_t *exits = e->forest.exits + t * KILN_CPU_TOP_EXITS;
    uint32_t sets[BLOCK];
    int32_t at[BLOCK];
    e->top(block, tree, e->forest.tests + t * KILN_CPU_TOP_TESTS, sets);
    for (int64_t r = 0; r < block->rows; r++)
        at[r] = exits[__builtin_ctz(sets[r])];
    if (tree->below) {
        for (int64_t r = block->rows; r < round_up(block->rows, LANES); r++)
            at[r] = at[0];
        for (int64_t r = 0; r < block->rows; r += LANES) {
            if (block->has_nan)
                walk_lanes(e, block->x + r, tree->below, true, at + r);
            else
                walk_lanes(e, block->x + r, tree->below, false, at + r);
        }
    }
    if (e->forest.single) {
        for (int64_t r = 0; r < block->rows; r++)
            scores[r] = kiln_cpu_aggregate_float(e->how, scores[r], nodes[at[r]].weight);
        return;
    }
    for (int64_t r = 0; r < block->rows; r++)
        add_leaf_float(e, scores + r * e->targets, at[r]);
}

/* Rows [first, first + rows) feature after feature. Rows behind the last are copies of it. */
static bool
turn(const Ensemble *e, int64_t first, int64_t rows, float *to)
{
    const float *x = (const float *)e->args->data[X];
    bool nan = false;
    for (int64_t r = 0; r < BLOCK; r++) {
        const float *row = x + (first + min_of(r, rows - 1)) * e->features;
        for (int64_t f = 0; f < e->features; f++) {
            to[f * BLOCK + r] = row[f];
            nan |= isnan(row[f]);
        }
    }
    return nan;
}

static void
run_block(const void *data, int64_t task, int thread)
{
    const Ensemble *e = data;
    const int64_t first = task * BLOCK, rows = min_of(BLOCK, e->rows - first);
    float *own = (float *)e->args->scratch + (size_t)thread * (size_t)(e->features * BLOCK);
    float *scores = (float *)e->args->data[OUT] + first * e->targets;
    const KilnCpuTreeBlock block = { own, rows, turn(e, first, rows, own) };
    begin_float(e, scores, rows * e->targets);
    for (int64_t t = 0; t < e->forest.n_trees; t++)
        score_tree(e, &block, t, scores);
    end_float(e, scores, rows * e->targets);
}

size_t
kiln_cpu_tree_ensemble_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    const KilnType *x = cpu_type(instr, X);
    if (x->dtype != KILN_DTYPE_f32 || x->dims[0] < FEW_ROWS)
        return 0;
    return (size_t)(threads > 1 ? threads : 1) * (size_t)x->dims[1] * BLOCK * sizeof(float);
}

const char *
kiln_cpu_tree_ensemble(const KilnKernelArgs *args)
{
    const KilnType *x = cpu_type(args->instr, X), *out = cpu_type(args->instr, OUT);
    Ensemble e = { .args = args,
                   .rows = x->dims[0],
                   .features = x->dims[1],
                   .targets = out->dims[1],
                   .top = kiln_cpu_tree_top_portable };
    if (!args->packed)
        return kiln_cpu_trees_unpacked(args);
    kiln_cpu_forest_read(args->instr, args->packed, &e.forest);
    e.how = kiln_cpu_forest_aggregate(args->instr);
    if (e.forest.features > e.features)
        return "a tree reads a feature that does not exist";
    if (x->dtype != KILN_DTYPE_f32 || e.rows < FEW_ROWS) {
        kiln_cpu_parallel(ceil_div(e.rows, ROW_TASK), args->threads, run_rows, &e);
        return NULL;
    }
    e.top = KILN_CPU_OF_ISA(KILN_CPU_ISA_AUTO, kiln_cpu_tree_top);
    kiln_cpu_parallel(ceil_div(e.rows, BLOCK), args->threads, run_block, &e);
    return NULL;
}
