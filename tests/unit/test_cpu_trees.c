/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend's tree_ensemble against the reference, to the bit: trees of many shapes, tests
 * that lead NaN to either branch, and numbers that do not exist. */
#include "graph/base/number.h"
#include "graph/infer/tree_operands.h"
#include "ir/instr.h"
#include "ir/kernel.h"
#include "ir/slice.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <string.h>

static const Tolerance exact = { 0, 0 };

enum {
    OUT,
    KILN_TREE_OPERANDS,
    MAX_NODES = 4096
};

typedef struct {
    KilnDType dtype;
    int64_t rows, features, trees, targets, depth;
    const char *aggregate;
    int entries; /* of a leaf, at most */
    int early;   /* of 16 nodes, so many are leaves */
    int missing; /* of 16 tests, so many lead NaN to the first branch */
    int nan;     /* of 16 numbers, so many are NaN */
    bool always; /* some tests are always true */
} Forest;

typedef struct {
    double features[MAX_NODES], splits[MAX_NODES], children[MAX_NODES], missing[MAX_NODES];
    double starts[MAX_NODES + 1], targets[MAX_NODES * 3], weights[MAX_NODES * 3];
    double roots[MAX_NODES];
    int64_t nodes, entries;
} Lists;

static double
real(Random *r)
{
    return (double)(float)((double)below(r, 2001) / 500 - 2);
}

/* Stores a tree at node @i, whose children go to the end of the list. */
static void
grow(const Forest *f, Lists *l, Random *r, int64_t i, int64_t depth)
{
    l->features[i] = (double)below(r, (uint32_t)f->features);
    l->splits[i] = real(r);
    l->missing[i] = below(r, 16) < f->missing;
    l->children[i] = (double)i;
    if (!depth || below(r, 16) < f->early || l->nodes + 64 > MAX_NODES)
        return;
    if (f->always && below(r, 4) == 0) {
        l->splits[i] = (double)INFINITY;
        l->missing[i] = 1;
    }
    const int64_t child = l->nodes;
    l->children[i] = (double)child;
    l->nodes += 2;
    grow(f, l, r, child, depth - 1);
    grow(f, l, r, child + 1, depth - 1);
}

static void
add_entries(const Forest *f, Lists *l, Random *r)
{
    for (int64_t i = 0; i < l->nodes; i++) {
        const int64_t n = f->entries > 1 ? below(r, (uint32_t)f->entries + 1) : f->entries;
        l->starts[i] = (double)l->entries;
        for (int64_t k = 0; k < n && l->children[i] == (double)i; k++) {
            l->targets[l->entries] = (double)below(r, (uint32_t)f->targets);
            l->weights[l->entries++] = real(r);
        }
    }
    l->starts[l->nodes] = (double)l->entries;
}

static RefCase *
case_of(const Forest *f, const Lists *l, Random *r)
{
    RefCase *c = case_new(KILN_INSTR_tree_ensemble);
    const int64_t n = f->rows * f->features;
    g_autofree double *x = g_new0(double, (gsize)n + 1);
    for (int64_t i = 0; i < n; i++)
        x[i] = below(r, 16) < f->nan ? (double)NAN : real(r);
    CASE_ATTRS(c, tree_ensemble)->aggregate = f->aggregate;
    CASE_ATTRS(c, tree_ensemble)->n_targets = f->targets;
    case_out(c, f->dtype, 2, (int64_t[]){ f->rows, f->targets });
    case_in(c, f->dtype, 2, (int64_t[]){ f->rows, f->features }, x);
    case_in(c, KILN_DTYPE_i32, 1, (int64_t[]){ f->trees }, l->roots);
    case_in(c, KILN_DTYPE_i32, 1, (int64_t[]){ l->nodes }, l->features);
    case_in(c, f->dtype, 1, (int64_t[]){ l->nodes }, l->splits);
    case_in(c, KILN_DTYPE_i32, 1, (int64_t[]){ l->nodes }, l->children);
    case_in(c, KILN_DTYPE_bool, 1, (int64_t[]){ l->nodes }, l->missing);
    case_in(c, KILN_DTYPE_i32, 1, (int64_t[]){ l->nodes + 1 }, l->starts);
    case_in(c, KILN_DTYPE_i32, 1, (int64_t[]){ l->entries }, l->targets);
    case_in(c, f->dtype, 1, (int64_t[]){ l->entries }, l->weights);
    return c;
}

static RefCase *
forest_case(const Forest *f, uint32_t seed)
{
    Random r = { seed };
    g_autofree Lists *l = g_new0(Lists, 1);
    for (int64_t t = 0; t < f->trees; t++) {
        l->roots[t] = (double)l->nodes++;
        grow(f, l, &r, (int64_t)l->roots[t], f->depth);
    }
    add_entries(f, l, &r);
    return case_of(f, l, &r);
}

/* Operands, unpacked and packed, on some numbers of threads: all of these have the same bits. */
static void
try_forest(Forest f)
{
    static const KilnDType dtypes[] = { KILN_DTYPE_f32, KILN_DTYPE_f64 };
    for (size_t d = 0; d < G_N_ELEMENTS(dtypes); d++) {
        f.dtype = dtypes[d];
        g_autofree char *what = g_strdup_printf("%d rows, %d trees of depth %d", (int)f.rows,
                                                (int)f.trees, (int)f.depth);
        g_autoptr(RefCase) c = forest_case(&f, (uint32_t)(f.rows * 7 + f.trees + f.depth));
        cpu_agrees(c, exact, what);
    }
}

Test(cpu_trees, shapes)
{
    static const int64_t rows[] = { 0, 1, 7, 8, 9, 63, 64, 65, 130, 200 };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (int64_t depth = 0; depth < 8; depth++)
            try_forest((Forest){ .rows = rows[i],
                                 .features = 3,
                                 .trees = 5,
                                 .targets = 1,
                                 .depth = depth,
                                 .aggregate = "SUM",
                                 .entries = 1 });
        try_forest((Forest){ .rows = rows[i],
                             .features = 4,
                             .trees = 17,
                             .targets = 1,
                             .depth = 20,
                             .aggregate = "SUM",
                             .entries = 1,
                             .early = 5 });
    }
    try_forest((Forest){ .rows = 20, .features = 3, .trees = 0, .targets = 2, .aggregate = "MIN" });
}

Test(cpu_trees, entries)
{
    static const char *const names[] = { "SUM", "MIN", "MAX" };
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        for (int entries = 0; entries < 4; entries++) {
            try_forest((Forest){ .rows = 70,
                                 .features = 5,
                                 .trees = 9,
                                 .targets = 4,
                                 .depth = 6,
                                 .aggregate = names[i],
                                 .entries = entries,
                                 .early = 2 });
            try_forest((Forest){ .rows = 70,
                                 .features = 5,
                                 .trees = 9,
                                 .targets = 1,
                                 .depth = 6,
                                 .aggregate = names[i],
                                 .entries = entries,
                                 .early = 2 });
        }
    }
}

Test(cpu_trees, nan_takes_either_branch)
{
    static const int64_t rows[] = { 3, 64, 100 };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        for (int missing = 0; missing <= 16; missing += 8) {
            for (int64_t depth = 1; depth < 10; depth += 2)
                try_forest((Forest){ .rows = rows[i],
                                     .features = 4,
                                     .trees = 6,
                                     .targets = 1,
                                     .depth = depth,
                                     .aggregate = "SUM",
                                     .entries = 1,
                                     .missing = missing,
                                     .nan = 3,
                                     .early = 1,
                                     .always = true });
        }
    }
}

/* What the packed kernel and the unpacked one say of operand @i with @value as its element @k. */
static void
expect_wrong(uint32_t i, int64_t k, double value, const char *expected)
{
    const Forest f = { .dtype = KILN_DTYPE_f32,
                       .rows = 40,
                       .features = 3,
                       .trees = 2,
                       .targets = 2,
                       .depth = 2,
                       .aggregate = "SUM",
                       .entries = 1 };
    g_autoptr(RefCase) c = forest_case(&f, 1);
    kiln_element_store_f64(c->buffers[i].type.dtype, c->data[i], k, value);
    const KilnKernel *kernel = cpu_kernel(c);
    void *out[CASE_MAX_OPERANDS] = { NULL };
    const char *unpacked = cpu_run(c, &(CpuCall){ .threads = 1 }, out);
    cpu_free(out);
    cr_expect(case_run(c) && unpacked, "operand %u: no error", i);
    g_autofree char *packed = g_malloc0(kernel->packed_bytes(&c->instr, 0) + 64);
    void *aligned = packed + (64 - (uintptr_t)packed % 64);
    const char *found =
        kernel->pack(&c->instr, 0, (const void *const *)c->data, aligned, KILN_SLICE_WHOLE);
    cr_expect(found && strstr(found, expected), "operand %u: %s", i, found ? found : "no error");
}

Test(cpu_trees, numbers_that_do_not_exist)
{
    expect_wrong(ROOTS, 0, 99, "the root");
    expect_wrong(ROOTS, 1, -1, "the root");
    expect_wrong(CHILDREN, 0, 99, "a child");
    expect_wrong(CHILDREN, 2, 0, "a child");
    expect_wrong(CHILDREN, 0, 13, "a child");
    expect_wrong(FEATURES, 0, -1, "a feature");
    expect_wrong(STARTS, 14, 99, "entries");
    expect_wrong(TARGETS, 0, 2, "the target");
}

Test(cpu_trees, a_feature_beyond_the_rows)
{
    const Forest f = { .dtype = KILN_DTYPE_f32,
                       .rows = 40,
                       .features = 3,
                       .trees = 1,
                       .targets = 1,
                       .depth = 2,
                       .aggregate = "SUM",
                       .entries = 1 };
    g_autoptr(RefCase) c = forest_case(&f, 1);
    ((int32_t *)c->data[FEATURES])[0] = 3;
    void *out[CASE_MAX_OPERANDS] = { NULL };
    const char *found = cpu_run(c, &(CpuCall){ .threads = 2, .packed = true }, out);
    cpu_free(out);
    cr_expect_str_eq(found ? found : "none", "a tree reads a feature that does not exist");
    cr_expect(case_run(c));
}
