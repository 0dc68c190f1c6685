/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes are stored from the roots downwards. The two branches of a test lie side by side, behind
 * their node. */
#include "graph/onnx/ml/forest.h"

#include "graph/base/alloc.h"
#include "graph/base/budget.h"
#include "graph/infer/tree_operands.h"
#include "graph/onnx/convert.h"
#include "graph/op/learn.h"
#include "graph/tensor.h"

#include <math.h>
#include <string.h>

/* A node of the operands. */
typedef struct {
    double split;
    int32_t feature, child;
    bool missing;
    int64_t leaf; /* its number; -1: it is a test */
} Stored;

typedef struct {
    KilnForest *forest;
    GArray *stored; /* Stored */
    GArray *queue;  /* int64_t: nodes that have a place, and are to be stored there */
    bool parked;    /* some branch leads on to a node that is stored once */
} Builder;

void
kiln_forest_init(KilnForest *forest)
{
    forest->nodes = g_array_new(FALSE, TRUE, sizeof(KilnForestNode));
    forest->members = g_array_new(FALSE, FALSE, sizeof(double));
    forest->entries = g_array_new(FALSE, FALSE, sizeof(KilnForestEntry));
    forest->roots = g_array_new(FALSE, FALSE, sizeof(int64_t));
}

void
kiln_forest_clear(KilnForest *forest)
{
    g_array_unref(forest->nodes);
    g_array_unref(forest->members);
    g_array_unref(forest->entries);
    g_array_unref(forest->roots);
}

/* --- entries --- */

static int
by_node(const void *a, const void *b)
{
    const KilnForestEntry *x = a, *y = b;
    return x->node < y->node ? -1 : x->node > y->node;
}

void
kiln_forest_sort_entries(KilnForest *forest)
{
    g_array_sort(forest->entries, by_node); /* which keeps the order of equal ones */
    for (int64_t e = 0; e < forest->entries->len; e++) {
        const KilnForestEntry *entry = &g_array_index(forest->entries, KilnForestEntry, e);
        KilnForestNode *node = kiln_forest_node(forest, entry->node);
        if (node->mode != KILN_BRANCH_LEAF)
            continue;
        if (!node->n)
            node->first = e;
        node->n++;
    }
}

/* --- which nodes are reached --- */

/* How often a test is stored with a branch to @yes, or to the other. */
static int64_t
branches(const KilnForestNode *node, bool yes)
{
    switch (node->mode) {
    case KILN_BRANCH_EQ:
        return yes ? 1 : 2;
    case KILN_BRANCH_NEQ:
        return yes ? 2 : 1;
    case KILN_BRANCH_MEMBER:
        return yes ? MAX(node->n, 1) : node->n + 1;
    default:
        return 1;
    }
}

static void
reach(KilnForest *forest, int64_t i, GArray *stack)
{
    KilnForestNode *node = kiln_forest_node(forest, i);
    if (node->reached)
        return;
    node->reached = true;
    node->parked = node->place = -1;
    node->waiting = 0;
    g_array_append_val(stack, i);
}

static void
count_branches(KilnForest *forest)
{
    g_autoptr(GArray) stack = g_array_new(FALSE, FALSE, sizeof(int64_t));
    for (guint r = 0; r < forest->roots->len; r++)
        reach(forest, g_array_index(forest->roots, int64_t, r), stack);
    while (stack->len) {
        const KilnForestNode *node =
            kiln_forest_node(forest, g_array_index(stack, int64_t, stack->len - 1));
        g_array_set_size(stack, stack->len - 1);
        if (node->mode == KILN_BRANCH_LEAF)
            continue;
        for (int yes = 0; yes < 2; yes++) {
            reach(forest, yes ? node->yes : node->no, stack);
            kiln_forest_node(forest, yes ? node->yes : node->no)->waiting += branches(node, yes);
        }
    }
}

/* --- storing --- */

static int64_t
make_room(Builder *b, guint n)
{
    const int64_t first = b->stored->len;
    g_array_set_size(b->stored, b->stored->len + n);
    return first;
}

static Stored *
at(const Builder *b, int64_t place)
{
    return &((Stored *)(void *)b->stored->data)[place];
}

static void
place_at(Builder *b, int64_t i, int64_t place)
{
    KilnForestNode *node = kiln_forest_node(b->forest, i);
    node->place = place;
    if (node->mode == KILN_BRANCH_LEAF)
        *at(b, place) = (Stored){ INFINITY, 0, (int32_t)place, true, i };
    else
        g_array_append_val(b->queue, i);
}

/* Node @i is what the branch at @place leads to. */
static void
lead_to(Builder *b, int64_t i, int64_t place)
{
    KilnForestNode *node = kiln_forest_node(b->forest, i);
    if (node->mode == KILN_BRANCH_LEAF || (node->waiting == 1 && node->parked < 0)) {
        node->waiting--;
        place_at(b, i, place);
        return;
    }
    *at(b, place) = (Stored){ INFINITY, 0, (int32_t)node->parked, true, -1 };
    node->parked = place;
    b->parked = true;
    if (--node->waiting)
        return;
    const int64_t own = make_room(b, 1);
    for (int64_t next, p = node->parked; p >= 0; p = next) {
        next = at(b, p)->child;
        at(b, p)->child = (int32_t)own;
    }
    place_at(b, i, own);
}

/* The test x <= @split at @place. Returns the place of its first branch. */
static int64_t
test(Builder *b, int64_t place, const KilnForestNode *node, double split, bool missing)
{
    const int64_t child = make_room(b, 2);
    *at(b, place) = (Stored){ split, (int32_t)node->feature, (int32_t)child, missing, -1 };
    return child;
}

/* The largest number of the element type that is less than @x. NaN: there is none. */
static double
below(const Builder *b, double x)
{
    if (isinf(x) && x < 0)
        return (double)NAN;
    return b->forest->dtype == KILN_DTYPE_f32 ? (double)nextafterf((float)x, -INFINITY)
                                              : nextafter(x, -(double)INFINITY);
}

/* The test whether the feature is one of @n members. */
static void
store_members(Builder *b, const KilnForestNode *node, const double *members, int64_t n)
{
    int64_t place = node->place;
    if (!n) {
        const int64_t child = test(b, place, node, (double)NAN, node->missing);
        lead_to(b, node->yes, child);
        lead_to(b, node->no, child + 1);
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t less = test(b, place, node, below(b, members[k]), false);
        const int64_t same = test(b, less + 1, node, members[k], node->missing);
        lead_to(b, node->no, less);
        lead_to(b, node->yes, same);
        place = same + 1;
    }
    lead_to(b, node->no, place);
}

/* The test x == split. */
static void
store_equal(Builder *b, const KilnForestNode *node)
{
    store_members(b, node, &node->split, 1);
}

/* The same with exchanged branches. NaN always is another number. */
static void
store_not_equal(Builder *b, const KilnForestNode *node)
{
    KilnForestNode other = *node;
    other.yes = node->no;
    other.no = node->yes;
    other.missing = false;
    store_equal(b, &other);
}

/* The test x <= split, or x < split, or the opposite of one. */
static void
store_order(Builder *b, const KilnForestNode *node)
{
    const bool strict = node->mode == KILN_BRANCH_LT || node->mode == KILN_BRANCH_GTE;
    /* Nothing is above NaN or below it, so that its branches stay as they are. */
    const bool exchange =
        !isnan(node->split) && (node->mode == KILN_BRANCH_GT || node->mode == KILN_BRANCH_GTE);
    const int64_t child = test(b, node->place, node, strict ? below(b, node->split) : node->split,
                               node->missing != exchange);
    lead_to(b, exchange ? node->no : node->yes, child);
    lead_to(b, exchange ? node->yes : node->no, child + 1);
}

static void
store(Builder *b, int64_t i)
{
    const KilnForestNode node = *kiln_forest_node(b->forest, i);
    const double *members = (const double *)(const void *)b->forest->members->data;
    if (node.mode == KILN_BRANCH_EQ)
        store_equal(b, &node);
    else if (node.mode == KILN_BRANCH_NEQ)
        store_not_equal(b, &node);
    else if (node.mode == KILN_BRANCH_MEMBER)
        store_members(b, &node, node.n ? members + node.first : NULL, node.n);
    else
        store_order(b, &node);
}

static gboolean
store_all(Builder *b, const KilnOnnxSteps *s)
{
    KilnForest *forest = b->forest;
    count_branches(forest);
    for (guint r = 0; r < forest->roots->len; r++) {
        const int64_t root = g_array_index(forest->roots, int64_t, r);
        const KilnForestNode *node = kiln_forest_node(forest, root);
        if (!node->waiting && node->place < 0)
            place_at(b, root, make_room(b, 1));
    }
    for (guint q = 0; q < b->queue->len; q++) {
        store(b, g_array_index(b->queue, int64_t, q));
        if (b->stored->len > G_MAXINT32 / 4)
            return kiln_onnx_throw(s->call, KILN_ERROR_LIMIT, s->error, "has too many nodes");
        if (!kiln_checkpoint(s->error))
            return FALSE;
    }
    for (int64_t i = 0; i < forest->nodes->len; i++) {
        const KilnForestNode *node = kiln_forest_node(forest, i);
        if (node->reached ? node->place >= 0 : !forest->complete)
            continue;
        g_autofree char *name = forest->name(forest->data, i);
        if (!node->reached)
            return kiln_onnx_throw(s->call, KILN_ERROR_INVALID, s->error,
                                   KILN_FOREST_BRANCHES
                                   "%s: expected a node below the root of its tree, to "
                                   "which no branch leads",
                                   name);
        return kiln_onnx_throw(
            s->call, KILN_ERROR_INVALID, s->error,
            KILN_FOREST_BRANCHES "expected trees, found a branch that leads back to %s", name);
    }
    if (b->parked) { /* whose other branch must exist, too */
        const int64_t end = make_room(b, 1);
        *at(b, end) = (Stored){ INFINITY, 0, (int32_t)end, true, -1 };
    }
    return TRUE;
}

/* --- operands --- */

static void
put(KilnDType dtype, void *data, guint i, double value)
{
    if (dtype == KILN_DTYPE_f32)
        ((float *)data)[i] = (float)value;
    else
        ((double *)data)[i] = value;
}

enum {
    KILN_TREE_OPERANDS,
    N_OPERANDS
};

static int64_t
count_entries(const Builder *b)
{
    int64_t n = 0;
    for (guint i = 0; i < b->stored->len; i++) {
        const Stored *stored = at(b, i);
        n += stored->leaf < 0 ? 0 : kiln_forest_node(b->forest, stored->leaf)->n;
    }
    return n;
}

static void
write_nodes(const Builder *b, void *const *data)
{
    const KilnForest *forest = b->forest;
    for (guint r = 0; r < forest->roots->len; r++)
        ((int32_t *)data[ROOTS])[r] =
            (int32_t)kiln_forest_node(forest, g_array_index(forest->roots, int64_t, r))->place;
    for (guint i = 0; i < b->stored->len; i++) {
        const Stored *stored = at(b, i);
        ((int32_t *)data[FEATURES])[i] = stored->feature;
        ((int32_t *)data[CHILDREN])[i] = stored->child;
        ((uint8_t *)data[MISSING])[i] = stored->missing;
        put(forest->dtype, data[SPLITS], i, stored->split);
    }
}

static void
write_entries(const Builder *b, void *const *data)
{
    guint n = 0;
    for (guint i = 0; i < b->stored->len; i++) {
        const Stored *stored = at(b, i);
        const KilnForestNode *leaf =
            stored->leaf < 0 ? NULL : kiln_forest_node(b->forest, stored->leaf);
        ((int32_t *)data[STARTS])[i] = (int32_t)n;
        for (int64_t e = 0; leaf && e < leaf->n; e++, n++) {
            const KilnForestEntry *entry =
                &g_array_index(b->forest->entries, KilnForestEntry, leaf->first + e);
            ((int32_t *)data[TARGETS])[n] = (int32_t)entry->target;
            put(b->forest->dtype, data[WEIGHTS], n, entry->weight);
        }
    }
    ((int32_t *)data[STARTS])[b->stored->len] = (int32_t)n;
}

/* The operands behind the first. Inference reads their numbers, so they are written before. */
static gboolean
make_operands(const Builder *b, const KilnOnnxSteps *s, int64_t entries, KilnValue **operands)
{
    static const char *const names[] = { "x",       "roots",  "features", "splits", "children",
                                         "missing", "starts", "targets",  "weights" };
    const KilnDType reals = b->forest->dtype, index = KILN_DTYPE_i32;
    const KilnDType dtypes[] = { reals,           index, index, reals, index,
                                 KILN_DTYPE_bool, index, index, reals };
    const int64_t n = b->stored->len, trees = b->forest->roots->len;
    const int64_t lengths[] = { 0, trees, n, n, n, n, n + 1, entries, entries };
    GBytes *bytes[N_OPERANDS] = { NULL };
    void *data[N_OPERANDS] = { NULL };
    bool good = true;
    for (uint32_t i = ROOTS; i < N_OPERANDS && good; i++) {
        bytes[i] =
            kiln_bytes_new((size_t)lengths[i], kiln_dtype_size(dtypes[i]), &data[i], s->error);
        good = bytes[i] != NULL;
    }
    if (good) {
        write_nodes(b, data);
        write_entries(b, data);
    }
    for (uint32_t i = ROOTS; i < N_OPERANDS; i++) {
        const KilnType type = kiln_type_make(dtypes[i], 1, &lengths[i]);
        KilnTensor *tensor = good ? kiln_tensor_new_data(&type, bytes[i], s->error) : NULL;
        operands[i] = tensor ? kiln_onnx_helper(s->call, names[i], tensor) : NULL;
        good = good && tensor;
        if (bytes[i])
            g_bytes_unref(bytes[i]);
    }
    return good;
}

static KilnValue *
build_node(const Builder *b, const KilnOnnxSteps *s, KilnValue *x)
{
    const KilnForest *forest = b->forest;
    const int64_t entries = count_entries(b);
    const bool average = strcmp(forest->aggregate, "AVERAGE") == 0;
    KilnAttrs_tree_ensemble attrs = { .aggregate = average ? "SUM" : forest->aggregate,
                                      .n_targets = forest->n_targets };
    KilnValue *operands[N_OPERANDS] = { x };
    if (entries > G_MAXINT32) {
        kiln_onnx_throw(s->call, KILN_ERROR_LIMIT, s->error, "has too many weights of leaves");
        return NULL;
    }
    if (!make_operands(b, s, entries, operands))
        return NULL;
    KilnValue *scores =
        kiln_onnx_build(s->call, KILN_OP_tree_ensemble, &attrs, operands, N_OPERANDS, s->error);
    return average ? kiln_onnx_step_div_number(s, scores, forest->roots->len) : scores;
}

/* Tests read features of the rows, and entries add to targets. */
static gboolean
check_numbers(const KilnOnnxSteps *s, const KilnForest *forest, const KilnValue *x)
{
    const int64_t features = x->type.dims[1] < 0 ? G_MAXINT32 : x->type.dims[1];
    for (int64_t i = 0; i < forest->nodes->len; i++) {
        const KilnForestNode *node = kiln_forest_node(forest, i);
        if (node->mode == KILN_BRANCH_LEAF || (node->feature >= 0 && node->feature < features))
            continue;
        g_autofree char *name = forest->name(forest->data, i);
        return kiln_onnx_throw(
            s->call, KILN_ERROR_INVALID, s->error,
            "attribute 'nodes_featureids': %s: expected a feature from 0 to %" G_GINT64_FORMAT
            ", found %" G_GINT64_FORMAT,
            name, features - 1, node->feature);
    }
    for (guint e = 0; e < forest->entries->len; e++) {
        const int64_t target = g_array_index(forest->entries, KilnForestEntry, e).target;
        if (target < 0 || target >= forest->n_targets)
            return kiln_onnx_throw(s->call, KILN_ERROR_INVALID, s->error,
                                   "attribute '%s': weight %u: expected a target from 0 to "
                                   "%" G_GINT64_FORMAT ", found %" G_GINT64_FORMAT,
                                   forest->targets, e, forest->n_targets - 1, target);
    }
    return TRUE;
}

KilnValue *
kiln_forest_build(const KilnOnnxSteps *s, KilnForest *forest, KilnValue *x)
{
    if (!forest->roots->len) {
        kiln_onnx_throw(s->call, KILN_ERROR_INVALID, s->error,
                        "attribute 'tree_roots': expected trees, found none");
        return NULL;
    }
    if (!check_numbers(s, forest, x))
        return NULL;
    g_autoptr(GArray) stored = g_array_new(FALSE, TRUE, sizeof(Stored));
    g_autoptr(GArray) queue = g_array_new(FALSE, FALSE, sizeof(int64_t));
    Builder b = { forest, stored, queue, false };
    return store_all(&b, s) ? build_node(&b, s, x) : NULL;
}
