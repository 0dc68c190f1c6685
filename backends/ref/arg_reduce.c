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

/* Of the elements that come after @previous (-1: of all), the one that comes before the others. */
static int64_t
next_in_order(const Line *line, bool largest, int64_t previous)
{
    int64_t best = -1;
    for (int64_t i = 0; i < line->length; i++) {
        bool candidate = previous < 0 || comes_before(line, largest, previous, i);
        if (candidate && (best < 0 || comes_before(line, largest, i, best)))
            best = i;
    }
    return best;
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
        int64_t at = -1;
        for (int64_t k = 0; k < to.length; k++) {
            at = next_in_order(&from, attrs->largest, at);
            const int64_t where = to.base + k * to.step;
            ref_copy_element(args->data[0], where, from.data, from.base + at * from.step, size);
            ((int64_t *)args->data[1])[where] = at;
        }
    }
    return NULL;
}
