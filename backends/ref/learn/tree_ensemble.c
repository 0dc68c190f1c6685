/* SPDX-License-Identifier: Apache-2.0 */
/* tree_ensemble: each row goes down each tree. Sums are in the element type, tree after tree and
 * entry after entry of a leaf: their order is part of the meaning. Targets without any entry are 0.
 * Operands: result; rows, roots, features, splits, children, missing, starts, targets, weights. */
#include "backends/ref/kernel.h"
#include "graph/infer/tree_operands.h"

#include <math.h>

enum {
    OUT,
    KILN_TREE_OPERANDS
};

static int64_t
number_at(const KilnKernelArgs *args, uint32_t i, int64_t k)
{
    return ((const int32_t *)args->data[i])[k];
}

/* Returns the node behind @node for row @row, or @node itself if it is a leaf; -1: bad numbers. */
static int64_t
step(const KilnKernelArgs *args, int64_t row, int64_t node)
{
    const KilnType *x = ref_type(args, X);
    const int64_t feature = number_at(args, FEATURES, node);
    int64_t child = number_at(args, CHILDREN, node);
    if (child == node)
        return node;
    if (child < node || child + 1 >= ref_type(args, FEATURES)->dims[0] || feature < 0 ||
        feature >= x->dims[1])
        return -1;
    const double value = ref_load_float(x->dtype, args->data[X], row * x->dims[1] + feature);
    const double split = ref_load_float(x->dtype, args->data[SPLITS], node);
    const bool first =
        isnan(value) ? ((const uint8_t *)args->data[MISSING])[node] != 0 : value <= split;
    return first ? child : child + 1;
}

/* The score of a target after an entry. NaN: it has no entry yet. */
static double
aggregate(char how, double score, double weight)
{
    if (how == 'S')
        return score + weight;
    return isnan(score) || (how == 'X' ? weight > score : weight < score) ? weight : score;
}

static const char *
add_leaf(const KilnKernelArgs *args, char how, int64_t row, int64_t leaf)
{
    const KilnType *out = ref_type(args, OUT);
    const int64_t n = ref_type(args, TARGETS)->dims[0];
    const int64_t first = number_at(args, STARTS, leaf), end = number_at(args, STARTS, leaf + 1);
    if (first < 0 || end > n)
        return "entries of a leaf do not exist";
    for (int64_t e = first; e < end; e++) {
        const int64_t target = number_at(args, TARGETS, e);
        if (target < 0 || target >= out->dims[1])
            return "the target of a leaf does not exist";
        const int64_t at = row * out->dims[1] + target;
        ref_store_float(out->dtype, args->data[OUT], at,
                        aggregate(how, ref_load_float(out->dtype, args->data[OUT], at),
                                  ref_load_float(out->dtype, args->data[WEIGHTS], e)));
    }
    return NULL;
}

static const char *
sum_row(const KilnKernelArgs *args, char how, int64_t row)
{
    const int64_t nodes = ref_type(args, FEATURES)->dims[0];
    for (int64_t tree = 0; tree < ref_type(args, ROOTS)->dims[0]; tree++) {
        int64_t node = number_at(args, ROOTS, tree), before = -1;
        if (node < 0 || node >= nodes)
            return "the root of a tree does not exist";
        for (; node >= 0 && node != before; node = step(args, row, node))
            before = node;
        if (node < 0)
            return "a node of a tree has a child or a feature that does not exist";
        const char *failure = add_leaf(args, how, row, node);
        if (failure)
            return failure;
    }
    return NULL;
}

const char *
kiln_ref_tree_ensemble(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, OUT);
    const char *name = kiln_instr_attrs(args->instr, tree_ensemble)->aggregate;
    const char how = name[0] == 'S' ? 'S' : name[2]; /* S, N of MIN, X of MAX */
    const int64_t scores = ref_elements(out);
    for (int64_t i = 0; i < scores; i++)
        ref_store_float(out->dtype, args->data[OUT], i, how == 'S' ? 0.0 : (double)NAN);
    for (int64_t row = 0; row < out->dims[0]; row++) {
        const char *failure = sum_row(args, how, row);
        if (failure)
            return failure;
    }
    for (int64_t i = 0; i < scores && how != 'S'; i++) {
        if (isnan(ref_load_float(out->dtype, args->data[OUT], i)))
            ref_store_float(out->dtype, args->data[OUT], i, 0);
    }
    return NULL;
}
