/* SPDX-License-Identifier: Apache-2.0 */
/* Packs the constant operands of tree_ensemble: nodes in one line each, tops of trees in sets of
 * exits. Here all numbers are checked, so that walks need not look whether nodes exist. */
#include "backends/cpu/learn/tree_pack.h"

#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "graph/infer/tree_operands.h"

#include <math.h>
#include <string.h>

enum {
    OUT,
    KILN_TREE_OPERANDS,
    N_OPERANDS
};

/* In front of all else. */
typedef struct {
    int64_t features;
    int64_t single;
} Head;

bool
kiln_cpu_tree_ensemble_supports(const KilnInstr *instr)
{
    for (uint32_t i = 0; i < N_OPERANDS; i++) {
        if (cpu_type(instr, i)->layout)
            return false;
    }
    return true;
}

KilnCpuAggregate
kiln_cpu_forest_aggregate(const KilnInstr *instr)
{
    const char *name = kiln_instr_attrs(instr, tree_ensemble)->aggregate;
    return strcmp(name, "SUM") == 0   ? KILN_CPU_SUM
           : strcmp(name, "MAX") == 0 ? KILN_CPU_MAX
                                      : KILN_CPU_MIN;
}

static int64_t
length(const KilnInstr *instr, uint32_t i)
{
    return cpu_type(instr, i)->dims[0];
}

/* Takes room for @n elements of @size bytes at *@at. */
static const void *
take(const void *packed, size_t *at, int64_t n, size_t size)
{
    const size_t begin = *at;
    *at += (size_t)round_up(n * (int64_t)size, KILN_CPU_LINE);
    return packed ? (const char *)packed + begin : NULL;
}

/* Where everything lies in @packed, which may be NULL. Returns the bytes. */
static size_t
lay_out(const KilnInstr *instr, const void *packed, KilnCpuForest *f)
{
    const bool narrow = cpu_type(instr, X)->dtype == KILN_DTYPE_f32;
    const int64_t n = length(instr, FEATURES), m = length(instr, TARGETS);
    const int64_t trees = length(instr, ROOTS), tops = narrow ? trees : 0;
    size_t at = KILN_CPU_LINE;
    *f = (KilnCpuForest){ .n_trees = trees, .n_nodes = n, .n_entries = m };
    f->trees = take(packed, &at, trees, sizeof(KilnCpuTree));
    f->tests = take(packed, &at, tops * KILN_CPU_TOP_TESTS, sizeof(KilnCpuTreeTest));
    f->exits = take(packed, &at, tops * KILN_CPU_TOP_EXITS, sizeof(int32_t));
    f->nodes = take(packed, &at, n, narrow ? sizeof(KilnCpuNode32) : sizeof(KilnCpuNode64));
    f->missing = take(packed, &at, n, 1);
    f->starts = take(packed, &at, n + 1, sizeof(int32_t));
    f->targets = take(packed, &at, m, sizeof(int32_t));
    f->weights = take(packed, &at, m, narrow ? sizeof(float) : sizeof(double));
    return at;
}

void
kiln_cpu_forest_read(const KilnInstr *instr, const void *packed, KilnCpuForest *out)
{
    const Head *head = packed;
    lay_out(instr, packed, out);
    out->features = head->features;
    out->single = head->single;
}

size_t
kiln_cpu_tree_ensemble_packed(const KilnInstr *instr, uint32_t form)
{
    (void)form;
    KilnCpuForest forest;
    return lay_out(instr, NULL, &forest);
}

/* --- nodes --- */

/* What is being packed: the parts of the forest, to write. */
typedef struct {
    KilnCpuForest f;
    KilnCpuTree *trees;
    KilnCpuTreeTest *tests;
    int32_t *exits;
    KilnCpuNode32 *narrow; /* NULL for f64 */
    KilnCpuNode64 *wide;
    Head *head;
} Packing;

static int32_t
int_at(const void *data, int64_t i)
{
    int32_t value;
    memcpy(&value, (const char *)data + i * (int64_t)sizeof value, sizeof value);
    return value;
}

static int32_t
child_of(const Packing *p, int64_t i)
{
    return p->narrow ? p->narrow[i].child : p->wide[i].child;
}

static const char *
pack_nodes(Packing *p, const void *const *data)
{
    const int64_t n = p->f.n_nodes;
    for (int64_t i = 0; i < n; i++) {
        const int32_t child = int_at(data[CHILDREN], i), feature = int_at(data[FEATURES], i);
        const bool leaf = child == i;
        if (!leaf && (child < i || child + 1 >= n))
            return "a node of a tree has a child that does not exist, or that lies before it";
        if (!leaf && feature < 0)
            return "a node of a tree has a feature that does not exist";
        if (!leaf && feature >= p->head->features)
            p->head->features = (int64_t)feature + 1;
        if (p->narrow) {
            p->narrow[i] = (KilnCpuNode32){ INFINITY, leaf ? 0 : feature, child, 0 };
            if (!leaf)
                memcpy(&p->narrow[i].split, (const float *)data[SPLITS] + i, sizeof(float));
        } else {
            p->wide[i] = (KilnCpuNode64){ (double)INFINITY, leaf ? 0 : feature, child };
            if (!leaf)
                memcpy(&p->wide[i].split, (const double *)data[SPLITS] + i, sizeof(double));
        }
    }
    return NULL;
}

/* The weight of each leaf, if it has one entry. */
static void
pack_single(Packing *p)
{
    for (int64_t i = 0; i < p->f.n_nodes && p->head->single; i++) {
        if (p->narrow[i].child != i)
            continue;
        p->head->single = p->f.starts[i + 1] - p->f.starts[i] == 1;
        if (p->head->single)
            p->narrow[i].weight = ((const float *)p->f.weights)[p->f.starts[i]];
    }
}

static const char *
check_entries(const Packing *p, int64_t targets)
{
    for (int64_t i = 0; i < p->f.n_nodes; i++) {
        const int32_t first = p->f.starts[i], end = p->f.starts[i + 1];
        if (first < 0 || first > end || end > p->f.n_entries)
            return "entries of a leaf do not exist";
    }
    for (int64_t e = 0; e < p->f.n_entries; e++) {
        if (p->f.targets[e] < 0 || p->f.targets[e] >= targets)
            return "the target of a leaf does not exist";
    }
    return NULL;
}

/* --- tops --- */

/* A node of a top. */
typedef struct {
    int32_t node;
    int first, second; /* of a test: its branches in the list; -1: it is an exit */
} TopNode;

typedef struct {
    TopNode nodes[2 * KILN_CPU_TOP_EXITS];
    int n, exits;
} Top;

static bool
is_leaf(const Packing *p, int32_t i)
{
    return child_of(p, i) == i;
}

/* The node itself, or the one to which tests lead that are always true. */
static int32_t
skip(const Packing *p, int32_t i)
{
    while (!is_leaf(p, i) && isinf(p->narrow[i].split) && p->narrow[i].split > 0 && p->f.missing[i])
        i = p->narrow[i].child;
    return i;
}

/* The tests nearest to the root, level after level. */
static void
find_top(const Packing *p, int32_t root, Top *top)
{
    top->nodes[0] = (TopNode){ skip(p, root), -1, -1 };
    top->n = top->exits = 1;
    for (int i = 0; i < top->n && top->exits < KILN_CPU_TOP_EXITS; i++) {
        TopNode *node = &top->nodes[i];
        if (is_leaf(p, node->node))
            continue;
        const int32_t child = child_of(p, node->node);
        node->first = top->n++;
        node->second = top->n++;
        top->nodes[node->first] = (TopNode){ skip(p, child), -1, -1 };
        top->nodes[node->second] = (TopNode){ skip(p, child + 1), -1, -1 };
        top->exits++;
    }
}

/* Numbers the exits below @i from @exit on, and stores the tests: ordinary ones from the start,
 * others from the end. Returns the next number. The recursion is as deep as a top. */
static int
number_exits(const Packing *p, const Top *top, int i, int exit, int64_t t, int *ordinary, int *end)
{
    const TopNode *node = &top->nodes[i];
    if (node->first < 0) {
        p->exits[t * KILN_CPU_TOP_EXITS + exit] = node->node;
        return exit + 1;
    }
    const int middle = number_exits(p, top, node->first, exit, t, ordinary, end);
    const uint64_t first = ((uint64_t)1 << middle) - ((uint64_t)1 << exit);
    const int place = p->f.missing[node->node] ? --*end : (*ordinary)++;
    p->tests[t * KILN_CPU_TOP_TESTS + place] =
        (KilnCpuTreeTest){ p->narrow[node->node].split, p->narrow[node->node].feature,
                           (uint32_t)~first };
    return number_exits(p, top, node->second, middle, t, ordinary, end);
}

static void
pack_top(const Packing *p, int64_t t, const int32_t *depths)
{
    KilnCpuTree *tree = &p->trees[t];
    Top top;
    int ordinary = 0, end;
    find_top(p, tree->root, &top);
    end = tree->tests = top.exits - 1;
    number_exits(p, &top, 0, 0, t, &ordinary, &end);
    tree->ordinary = ordinary;
    for (int e = 0; e < top.exits; e++) {
        const int32_t depth = depths[p->exits[t * KILN_CPU_TOP_EXITS + e]];
        tree->below = depth > tree->below ? depth : tree->below;
    }
    for (int e = top.exits; e < KILN_CPU_TOP_EXITS; e++)
        p->exits[t * KILN_CPU_TOP_EXITS + e] = 0;
}

/* The longest way from each node to a leaf. They stand where entries begin, until these are known:
 * there is a number for each node. */
static void
find_depths(const Packing *p, int32_t *depths)
{
    for (int64_t i = p->f.n_nodes - 1; i >= 0; i--) {
        const int32_t child = child_of(p, i);
        const int32_t *below = depths + child;
        depths[i] = child == i ? 0 : 1 + (below[0] > below[1] ? below[0] : below[1]);
    }
}

static const char *
pack_trees(const Packing *p, const void *roots, const int32_t *depths)
{
    for (int64_t t = 0; t < p->f.n_trees; t++) {
        const int32_t root = int_at(roots, t);
        if (root < 0 || root >= p->f.n_nodes)
            return "the root of a tree does not exist";
        p->trees[t] = (KilnCpuTree){ .root = root, .depth = depths[root] };
        if (p->narrow)
            pack_top(p, t, depths);
    }
    return NULL;
}

const char *
kiln_cpu_tree_ensemble_prepack(const KilnInstr *instr, uint32_t form, const void *const *data,
                               void *packed, KilnSlice slice)
{
    (void)form;
    Packing p = { 0 };
    if (slice.index)
        return NULL;
    memset(packed, 0, kiln_cpu_tree_ensemble_packed(instr, form));
    lay_out(instr, packed, &p.f);
    const bool narrow = cpu_type(instr, X)->dtype == KILN_DTYPE_f32;
    const int64_t targets = kiln_instr_attrs(instr, tree_ensemble)->n_targets;
    const size_t real = narrow ? sizeof(float) : sizeof(double);
    int32_t *starts = (int32_t *)p.f.starts;
    p.head = packed;
    p.trees = (KilnCpuTree *)p.f.trees;
    p.tests = (KilnCpuTreeTest *)p.f.tests;
    p.exits = (int32_t *)p.f.exits;
    p.narrow = narrow ? (KilnCpuNode32 *)p.f.nodes : NULL;
    p.wide = narrow ? NULL : (KilnCpuNode64 *)p.f.nodes;
    p.head->single = narrow && targets == 1;
    memcpy((void *)p.f.missing, data[MISSING], (size_t)p.f.n_nodes);
    memcpy((void *)p.f.targets, data[TARGETS], (size_t)p.f.n_entries * sizeof(int32_t));
    memcpy((void *)p.f.weights, data[WEIGHTS], (size_t)p.f.n_entries * real);
    const char *failure = pack_nodes(&p, data);
    if (failure)
        return failure;
    find_depths(&p, starts);
    failure = pack_trees(&p, data[ROOTS], starts);
    memcpy(starts, data[STARTS], (size_t)(p.f.n_nodes + 1) * sizeof(int32_t));
    failure = failure ? failure : check_entries(&p, targets);
    if (!failure)
        pack_single(&p);
    return failure;
}
