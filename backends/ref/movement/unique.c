/* SPDX-License-Identifier: Apache-2.0 */
/* unique: each slice along an axis once, in order or as they come first. NaN equals NaN and is
 * greater than all numbers. Slices are sorted by merging, so that equal ones stay as they stand. */
#include "backends/ref/kernel.h"
#include "graph/type.h"

typedef struct {
    KilnDType dtype;
    const void *data;
    RefSplit split;
} Slices;

static int
compare_floats(double a, double b)
{
    bool a_nan = a != a, b_nan = b != b;
    return a_nan || b_nan ? a_nan - b_nan : (a > b) - (a < b);
}

static int
compare(const Slices *slices, int64_t a, int64_t b)
{
    const RefSplit *split = &slices->split;
    int order = 0;
    for (int64_t k = 0; k < split->outer * split->inner && !order; k++) {
        int64_t o = k / split->inner, i = k % split->inner;
        if (slices->dtype == KILN_DTYPE_string) {
            const KilnText *const *texts = slices->data;
            order = kiln_text_compare(texts[(o * split->axis + a) * split->inner + i],
                                      texts[(o * split->axis + b) * split->inner + i]);
            continue;
        }
        RefValue x =
            ref_load(slices->dtype, slices->data, (o * split->axis + a) * split->inner + i);
        RefValue y =
            ref_load(slices->dtype, slices->data, (o * split->axis + b) * split->inner + i);
        RefClass class = ref_class(slices->dtype);
        order = class == REF_FLOAT    ? compare_floats(x.f, y.f)
                : class == REF_SIGNED ? (x.s > y.s) - (x.s < y.s)
                                      : (x.u > y.u) - (x.u < y.u);
    }
    return order;
}

/* Sorts @order, of @n slices, with room for as many at @spare. */
static void
sort(const Slices *slices, int64_t *order, int64_t *spare, int64_t n)
{
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t from = 0; from < n; from += 2 * width) {
            int64_t a = from, middle = MIN(from + width, n), b = middle,
                    end = MIN(from + 2 * width, n);
            for (int64_t at = from; at < end; at++) {
                bool left = b == end || (a < middle && compare(slices, order[a], order[b]) <= 0);
                spare[at] = order[left ? a++ : b++];
            }
        }
        memcpy(order, spare, (size_t)n * sizeof *order);
    }
}

static int64_t
n_slices(const KilnInstr *instr)
{
    const KilnType *x = &instr->operands[5].buffer->type;
    int64_t axis = kiln_instr_attrs(instr, unique)->axis;
    return axis == G_MININT64 ? ref_elements(x) : ref_split(x, axis).axis;
}

size_t
kiln_ref_unique_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    return (size_t)n_slices(instr) * 4 * sizeof(int64_t);
}

static void
copy_slice(const Slices *slices, int64_t from, void *to, int64_t place, int64_t count)
{
    const RefSplit *split = &slices->split;
    size_t size = kiln_dtype_size(slices->dtype) * (size_t)split->inner;
    for (int64_t o = 0; o < split->outer; o++)
        ref_copy_element(to, o * count + place, slices->data, o * split->axis + from, size);
}

/* Writes to @first the index of the first slice that is as each one, and to @place its place among
 * the unique ones. Returns how many these are. */
static int64_t
group(const Slices *slices, const int64_t *order, bool sorted, int64_t *first, int64_t *place)
{
    int64_t n = slices->split.axis, count = 0;
    for (int64_t k = 0; k < n; k++) {
        bool begins = k == 0 || compare(slices, order[k - 1], order[k]) != 0;
        first[order[k]] = begins ? order[k] : first[order[k - 1]];
        if (begins)
            place[order[k]] = count++;
    }
    for (int64_t i = 0, next = 0; !sorted && i < n; i++) {
        if (first[i] == i)
            place[i] = next++;
    }
    return count;
}

const char *
kiln_ref_unique(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_unique *attrs = kiln_instr_attrs(args->instr, unique);
    const KilnType *x = ref_type(args, 5);
    int64_t n = n_slices(args->instr);
    Slices slices = { x->dtype, args->data[5], { 1, n, 1 } };
    int64_t *order = args->scratch, *spare = order + n, *first = spare + n, *place = first + n;
    int64_t *indices = args->data[2], *inverse = args->data[3], *counts = args->data[4];
    if (attrs->axis != G_MININT64)
        slices.split = ref_split(x, attrs->axis);
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    sort(&slices, order, spare, n);
    int64_t count = group(&slices, order, attrs->sorted, first, place);
    for (int64_t i = 0; i < n; i++) {
        if (first[i] == i) {
            copy_slice(&slices, i, args->data[0], place[i], count);
            if (indices)
                indices[place[i]] = i;
            if (counts)
                counts[place[i]] = 0;
        }
        if (inverse)
            inverse[i] = place[first[i]];
        if (counts)
            counts[place[first[i]]]++;
    }
    const int64_t used = count * slices.split.outer * slices.split.inner;
    if (x->dtype == KILN_DTYPE_string) /* the rest of the room holds strings, too */
        memset((const KilnText **)args->data[0] + used, 0,
               (size_t)(ref_elements(ref_type(args, 0)) - used) * sizeof(KilnText *));
    *(int64_t *)args->data[1] = count;
    return NULL;
}
