/* SPDX-License-Identifier: Apache-2.0 */
/* What depends on the order of elements along one axis: arg_max, arg_min, hardmax, top_k.
 *
 * NaN counts as larger than every number (numpy's sort order), but for arg_min, which finds the
 * first NaN as numpy's argmin does. Equal elements stand in order of their index. */
#include "backends/ref/kernel.h"

/* < 0, 0, > 0: a before, with, after b in ascending order. */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int
compare(RefClass class_, RefValue a, RefValue b)
{
    switch (class_) {
    case REF_FLOAT:
        if (a.f != a.f || b.f != b.f)
            return (a.f != a.f) - (b.f != b.f);
        return ORDER(a.f, b.f);
    case REF_SIGNED:
        return ORDER(a.s, b.s);
    default:
        return ORDER(a.u, b.u);
    }
}

/* A line of elements along the axis. */
typedef struct {
    KilnDType dtype;
    const void *data;
    int64_t base, step, length;
} Line;

static RefValue
line_at(const Line *line, int64_t i)
{
    return ref_load(line->dtype, line->data, line->base + i * line->step);
}

static Line
line_of(const KilnKernelArgs *args, uint32_t operand, RefSplit split, int64_t number)
{
    const int64_t outer = number / split.inner, inner = number % split.inner;
    return (Line){ .dtype = ref_type(args, operand)->dtype,
                   .data = args->data[operand],
                   .base = outer * split.axis * split.inner + inner,
                   .step = split.inner,
                   .length = split.axis };
}

/* The index of the extreme element of a line that has one. */
static int64_t
extreme(const Line *line, bool max, bool last)
{
    const RefClass class_ = ref_class(line->dtype);
    int64_t best = 0;
    for (int64_t i = 1; i < line->length; i++) {
        RefValue x = line_at(line, i), y = line_at(line, best);
        int ascending = compare(class_, x, y);
        /* NaN is the extreme of both kinds. */
        bool nan = class_ == REF_FLOAT && (x.f != x.f || y.f != y.f);
        int better = max || nan ? ascending : -ascending;
        if (better > 0 || (better == 0 && last))
            best = i;
    }
    return best;
}

static const char *
arg_reduce(const KilnKernelArgs *args, int64_t axis, bool max, bool last)
{
    const RefSplit split = ref_split(ref_type(args, 1), axis);
    const int64_t lines = split.outer * split.inner;
    if (lines > 0 && split.axis == 0)
        return "arg_max or arg_min of no elements";
    for (int64_t i = 0; i < lines; i++) {
        Line line = line_of(args, 1, split, i);
        ((int64_t *)args->data[0])[i] = extreme(&line, max, last);
    }
    return NULL;
}

const char *
kiln_ref_arg_max(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_arg_max *attrs = kiln_instr_attrs(args->instr, arg_max);
    return arg_reduce(args, attrs->axis, true, attrs->select_last_index);
}

const char *
kiln_ref_arg_min(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_arg_min *attrs = kiln_instr_attrs(args->instr, arg_min);
    return arg_reduce(args, attrs->axis, false, attrs->select_last_index);
}

/* 1 at the first of the largest elements, 0 elsewhere. */
const char *
kiln_ref_hardmax(const KilnKernelArgs *args)
{
    const KilnType *type = ref_type(args, 1);
    const RefSplit split = ref_split(type, kiln_instr_attrs(args->instr, hardmax)->axis);
    for (int64_t i = 0; i < split.outer * split.inner; i++) {
        Line line = line_of(args, 1, split, i);
        const int64_t best = extreme(&line, true, false);
        for (int64_t k = 0; k < line.length; k++)
            ref_store_float(type->dtype, args->data[0], line.base + k * line.step, k == best);
    }
    return NULL;
}

/* True where element @a of the line comes before element @b in the result of top_k. */
static bool
comes_before(const Line *line, bool largest, int64_t a, int64_t b)
{
    int order = compare(ref_class(line->dtype), line_at(line, a), line_at(line, b));
    return order == 0 ? a < b : largest ? order > 0 : order < 0;
}

/* The first elements of a line in the order of top_k, as a heap of their indices: none of the n
 * comes later than the one at its root. It lies where the result's indices will. */
typedef struct {
    const Line *line;
    int64_t *indices; /* one every @step */
    int64_t step;
    bool largest;
} Heap;

static int64_t *
heap_at(const Heap *heap, int64_t i)
{
    return &heap->indices[i * heap->step];
}

/* Lets @index sink from the root of the first @n. */
static void
heap_sink(const Heap *heap, int64_t n, int64_t root, int64_t index)
{
    int64_t at = root;
    for (int64_t below; (below = 2 * at + 1) < n; at = below) {
        int64_t left = *heap_at(heap, below);
        if (below + 1 < n &&
            comes_before(heap->line, heap->largest, left, *heap_at(heap, below + 1)))
            left = *heap_at(heap, ++below);
        if (!comes_before(heap->line, heap->largest, index, left))
            break;
        *heap_at(heap, at) = left;
    }
    *heap_at(heap, at) = index;
}

/* Leaves the indices of the first @k elements in order. */
static void
find_first(const Heap *heap, int64_t k)
{
    for (int64_t i = 0; i < k; i++)
        *heap_at(heap, i) = i;
    for (int64_t root = k / 2; root-- > 0;)
        heap_sink(heap, k, root, *heap_at(heap, root));
    for (int64_t i = k; k && i < heap->line->length; i++) {
        if (comes_before(heap->line, heap->largest, i, *heap_at(heap, 0)))
            heap_sink(heap, k, 0, i);
    }
    for (int64_t n = k; n-- > 1;) {
        int64_t index = *heap_at(heap, n);
        *heap_at(heap, n) = *heap_at(heap, 0);
        heap_sink(heap, n, 0, index);
    }
}

/* Sorted in any case: without `sorted` every order is right. */
const char *
kiln_ref_top_k(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_top_k *attrs = kiln_instr_attrs(args->instr, top_k);
    const RefSplit in = ref_split(ref_type(args, 2), attrs->axis);
    const RefSplit out = ref_split(ref_type(args, 0), attrs->axis);
    if (out.axis > in.axis)
        return "top_k of fewer than k elements";
    const size_t size = kiln_dtype_size(ref_type(args, 2)->dtype);
    for (int64_t i = 0; i < in.outer * in.inner; i++) {
        const Line from = line_of(args, 2, in, i), to = line_of(args, 0, out, i);
        const Heap heap = { &from, (int64_t *)args->data[1] + to.base, to.step, attrs->largest };
        find_first(&heap, to.length);
        for (int64_t k = 0; k < to.length; k++)
            ref_copy_element(args->data[0], to.base + k * to.step, from.data,
                             from.base + *heap_at(&heap, k) * from.step, size);
    }
    return NULL;
}
