/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor is split into a sequence, and a sequence is joined to a tensor. Parts are copied in
 * rows: all that lies behind the axis is one run of bytes. */
#include "backends/ref/items/items.h"
#include "graph/base/alloc.h"
#include "backends/ref/kernel.h"
#include "graph/base/item.h"
#include "graph/base/number.h"
#include "graph/kiln-items.h"
#include "graph/kiln-types.h"
#include "graph/type.h"
#include "ir/instr.h"
#include "ir/ir.h"
#include "ir/kernel.h"

#include <string.h>

/* Elements in front of @axis, and behind it. */
static void
around_axis(const KilnType *type, int axis, int64_t *out_before, int64_t *out_behind)
{
    *out_before = *out_behind = 1;
    for (int d = 0; d < axis; d++)
        *out_before *= type->dims[d];
    for (int d = axis + 1; d < type->rank; d++)
        *out_behind *= type->dims[d];
}

/* --- split_to_sequence --- */

enum {
    MOST_EMPTY = 1 << 20 /* parts without elements: of others the data has as many at least */
};

typedef struct {
    const KilnKernelArgs *args;
    KilnType part; /* its dim along the axis is that of each part */
    int axis;
    bool drops; /* parts do not have the axis */
    int64_t before, behind;
} Splitter;

/* Elements @from … @from + @n - 1 along the axis as a new item. */
static KilnItem *
cut(Splitter *s, int64_t from, int64_t n)
{
    const KilnType *x = ref_type(s->args, 1);
    const size_t size = kiln_dtype_size(x->dtype);
    const int64_t row = n * s->behind, pitch = x->dims[s->axis] * s->behind;
    void *to;
    KilnType type = s->part;
    type.dims[s->axis] = n;
    if (s->drops) {
        type.rank--;
        for (int d = s->axis; d < type.rank; d++)
            type.dims[d] = s->part.dims[d + 1];
    }
    const char *data = (const char *)s->args->data[1] + (size_t)(from * s->behind) * size;
    if (x->dtype == KILN_DTYPE_string) { /* an item copies its texts, so its elements lie dense */
        const KilnText **texts = kiln_item_scratch(s->args->texts, (size_t)(s->before * row));
        for (int64_t b = 0; texts && row && b < s->before; b++)
            memcpy(texts + b * row, data + (size_t)(b * pitch) * size, (size_t)row * size);
        KilnItem *copy = texts ? kiln_item_make_copy(s->args->texts, &type, texts) : NULL;
        kiln_free(texts);
        return copy;
    }
    KilnItem *item = kiln_item_make_tensor(s->args->texts, &type, &to);
    for (int64_t b = 0; item && row && b < s->before; b++)
        memcpy((char *)to + (size_t)(b * row) * size, data + (size_t)(b * pitch) * size,
               (size_t)row * size);
    return item;
}

static const char *
add_part(Splitter *s, KilnItem **list, int64_t at, int64_t n)
{
    KilnItem *part = cut(s, at, n);
    if (part)
        *list = kiln_item_insert(s->args->texts, *list, kiln_item_length(*list), part);
    return part && *list ? NULL : ref_no_items;
}

/* The lengths that operand 2 lists. */
static const char *
split_by_list(Splitter *s, int64_t size, KilnItem **list)
{
    const KilnType *lengths = ref_type(s->args, 2);
    const char *why = NULL;
    int64_t at = 0;
    for (int64_t i = 0; !why && i < ref_elements(lengths); i++) {
        int64_t n = kiln_element_as_i64(lengths->dtype, s->args->data[2], i);
        if (n < 0 || n > size - at)
            return "the lengths of the parts do not add up to the extent of the axis";
        why = add_part(s, list, at, n);
        at += n;
    }
    return !why && at != size ? "the lengths of the parts do not add up to the extent of the axis"
                              : why;
}

const char *
kiln_ref_split_to_sequence(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_split_to_sequence *attrs =
        kiln_instr_attrs(args->instr, split_to_sequence);
    const KilnType *x = ref_type(args, 1);
    Splitter s = { .args = args, .part = *x, .axis = kiln_type_axis(x, attrs->axis) };
    const int64_t size = x->dims[s.axis];
    KilnItem *list = NULL;
    const char *why = NULL;
    s.part = kiln_type_make(x->dtype, x->rank, x->dims);
    s.drops = !ref_has(args, 2) && !attrs->keepdims;
    around_axis(x, s.axis, &s.before, &s.behind);
    bool empty = ref_elements(x) == 0;
    if (ref_has(args, 2) && ref_type(args, 2)->rank == 1) {
        why = split_by_list(&s, size, &list);
    } else {
        int64_t each =
            ref_has(args, 2) ? kiln_element_as_i64(ref_type(args, 2)->dtype, args->data[2], 0) : 1;
        if (each < 1)
            return "a part has less than one element along the axis";
        if (empty && size / each >= MOST_EMPTY)
            return "a tensor without elements has more than 1048575 parts";
        for (int64_t at = 0; !why && at < size; at += MIN(each, size - at))
            why = add_part(&s, &list, at, MIN(each, size - at));
    }
    if (!why)
        *(KilnItem **)args->data[0] = list;
    return why;
}

/* --- concat_from_sequence --- */

/* The shape of the tensors of a sequence, one behind the other along @axis, or stacked there. */
static const char *
joined_type(const KilnItem *list, int axis, bool stacks, KilnType *out)
{
    const size_t n = kiln_item_length(list);
    if (n == 0)
        return "the sequence is empty";
    const KilnType first = kiln_item_type(kiln_item_get(list, 0));
    if (stacks ? first.rank >= KILN_MAX_RANK || axis > first.rank : axis >= first.rank)
        return "a tensor has a lower rank than the model allows";
    int64_t length = 0;
    for (size_t i = 0; i < n; i++) {
        const KilnType type = kiln_item_type(kiln_item_get(list, i));
        bool fits = type.rank == first.rank && type.dtype == first.dtype;
        for (int d = 0; fits && d < type.rank; d++)
            fits = type.dims[d] == first.dims[d] || (!stacks && d == axis);
        if (!fits)
            return "the tensors have shapes that do not fit";
        length += stacks ? 1 : type.dims[axis];
    }
    *out = first;
    out->rank += stacks ? 1 : 0;
    for (int d = out->rank - 1; stacks && d > axis; d--)
        out->dims[d] = first.dims[d - 1];
    out->dims[axis] = length;
    return NULL;
}

const char *
kiln_ref_concat_dims(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_concat_dims *attrs = kiln_instr_attrs(args->instr, concat_dims);
    int64_t *out = args->data[0];
    KilnType type;
    const char *why = joined_type(ref_item(args, 1), (int)attrs->axis, attrs->new_axis, &type);
    for (uint32_t i = 0; !why && i < attrs->dims.n; i++) {
        if (attrs->dims.v[i] >= type.rank)
            return "a tensor has a lower rank than the model allows";
        out[i] = type.dims[attrs->dims.v[i]];
    }
    return why;
}

const char *
kiln_ref_concat_from_sequence(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_concat_from_sequence *attrs =
        kiln_instr_attrs(args->instr, concat_from_sequence);
    const KilnItem *list = ref_item(args, 1);
    const KilnType *out = ref_type(args, 0);
    const int axis = (int)attrs->axis;
    KilnType type;
    const char *why = joined_type(list, axis, attrs->new_axis, &type);
    int64_t before, behind, at = 0;
    bool fits = !why && type.rank == out->rank && type.dtype == out->dtype;
    for (int d = 0; fits && d < type.rank; d++)
        fits = type.dims[d] == out->dims[d];
    if (!fits)
        return why ? why : "the tensors have other shapes than the model allows";
    around_axis(&type, axis, &before, &behind);
    const size_t size = kiln_dtype_size(type.dtype);
    const int64_t pitch = type.dims[axis] * behind;
    for (size_t i = 0; i < kiln_item_length(list); i++) {
        const KilnItem *item = kiln_item_get(list, i);
        int rank;
        const int64_t row = (attrs->new_axis ? 1 : kiln_item_dims(item, &rank)[axis]) * behind;
        const char *from = kiln_item_data(item);
        for (int64_t b = 0; row && b < before; b++) {
            char *to = (char *)args->data[0] + (size_t)(b * pitch + at) * size;
            if (!kiln_ref_copy_elements(args, type.dtype, to, from + (size_t)(b * row) * size, row))
                return ref_no_items;
        }
        at += row;
    }
    return NULL;
}
