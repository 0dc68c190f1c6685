/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences: what goes in, comes out and is left out. Positions below 0 count from the end. */
#include "backends/ref/items/items.h"
#include "graph/attr.h"
#include "graph/base/number.h"
#include "graph/kiln-items.h"
#include "graph/kiln-types.h"
#include "graph/texts.h"
#include "graph/type.h"
#include "ir/ir.h"
#include "ir/kernel.h"

#include <string.h>

static const char out_of_range[] = "the position lies outside of the sequence";

/* --- elements --- */

bool
kiln_ref_copy_elements(const KilnKernelArgs *args, KilnDType dtype, void *to, const void *from,
                       int64_t n)
{
    const KilnText *const *texts = from;
    const KilnText **out = to;
    if (dtype != KILN_DTYPE_string) {
        if (n)
            memcpy(to, from, (size_t)n * kiln_dtype_size(dtype));
        return true;
    }
    for (int64_t i = 0; i < n; i++) { /* the item may be gone before the run ends */
        KilnText text = kiln_text_of(texts[i]);
        if (!kiln_text_new_copy(args->texts, text.text, text.length, &out[i]))
            return false;
    }
    return true;
}

KilnItem *
kiln_ref_as_item(const KilnKernelArgs *args, uint32_t i)
{
    const KilnType *type = ref_type(args, i);
    if (!kiln_dtype_is_item(type->dtype))
        return kiln_item_make_copy(args->texts, type, args->data[i]);
    KilnItem *item = ref_item(args, i);
    return item ? item : kiln_item_make_list(args->texts, type->dtype, NULL, 0);
}

const char *
kiln_ref_take_out(const KilnKernelArgs *args, const KilnItem *item)
{
    const KilnType *type = ref_type(args, 0);
    if (kiln_dtype_is_item(type->dtype)) {
        *(const KilnItem **)args->data[0] = item;
        return NULL;
    }
    const KilnType is = kiln_item_type(item);
    bool fits = is.dtype == type->dtype && is.rank == type->rank;
    for (int d = 0; fits && d < is.rank; d++)
        fits = is.dims[d] == type->dims[d];
    if (!fits)
        return "the tensor has another shape than the model allows";
    return kiln_ref_copy_elements(args, is.dtype, args->data[0], kiln_item_data(item),
                                  kiln_type_elements(&is))
               ? NULL
               : ref_no_items;
}

/* --- positions --- */

/* The integer in operand @i, or @otherwise where it is absent. */
static int64_t
integer_of(const KilnKernelArgs *args, uint32_t i, int64_t otherwise)
{
    return ref_has(args, i) ? kiln_element_as_i64(ref_type(args, i)->dtype, args->data[i], 0)
                            : otherwise;
}

/* The position in operand @i, counted from the front, up to @most. False where it is out of range.
 */
static bool
position_of(const KilnKernelArgs *args, uint32_t i, int64_t otherwise, int64_t n, int64_t most,
            size_t *out)
{
    int64_t at = integer_of(args, i, otherwise);
    *out = (size_t)(at < 0 ? at + n : at);
    return at >= -n && at <= most;
}

/* --- instructions --- */

const char *
kiln_ref_item_none(const KilnKernelArgs *args)
{
    *(KilnItem **)args->data[0] = NULL;
    return NULL;
}

const char *
kiln_ref_item_list(const KilnKernelArgs *args)
{
    KilnItem *list = NULL;
    const size_t n = args->instr->n_operands - 1;
    if (n == 1) {
        KilnItem *item = kiln_ref_as_item(args, 1);
        return item ? ref_give_item(args, kiln_item_make_list(args->texts, ref_type(args, 0)->dtype,
                                                              &item, 1))
                    : ref_no_items;
    }
    for (uint32_t i = 1; i <= n; i++) { /* appending takes constant time */
        KilnItem *item = kiln_ref_as_item(args, i);
        list = item ? kiln_item_insert(args->texts, list, i - 1, item) : NULL;
        if (!list)
            return ref_no_items;
    }
    return ref_give_item(args, list);
}

/* The tensor at a place of a sequence, or in an optional. NULL and *@out_why: there is none. */
static const KilnItem *
find_tensor(const KilnKernelArgs *args, uint32_t from, const char **out_why)
{
    const KilnItem *list = ref_item(args, from);
    const int64_t n = (int64_t)kiln_item_length(list);
    size_t at;
    bool optional = ref_type(args, from)->dtype == KILN_DTYPE_optional;
    *out_why = optional ? "the optional is empty" : out_of_range;
    return position_of(args, from + 1, 0, n, n - 1, &at) ? kiln_item_get(list, at) : NULL;
}

const char *
kiln_ref_item_dims(const KilnKernelArgs *args)
{
    const KilnInts dims = kiln_instr_attrs(args->instr, item_dims)->dims;
    int64_t *out = args->data[0];
    const char *why;
    const KilnItem *item = find_tensor(args, 1, &why);
    if (!item)
        return why;
    int rank;
    const int64_t *found = kiln_item_dims(item, &rank);
    for (uint32_t i = 0; i < dims.n; i++) {
        if (dims.v[i] >= rank)
            return "the tensor has a lower rank than the model allows";
        out[i] = found[dims.v[i]];
    }
    return NULL;
}

const char *
kiln_ref_sequence_at(const KilnKernelArgs *args)
{
    const char *why;
    const KilnItem *item = find_tensor(args, 1, &why);
    return item ? kiln_ref_take_out(args, item) : why;
}

const char *
kiln_ref_sequence_insert(const KilnKernelArgs *args)
{
    const KilnItem *sequence = ref_item(args, 1);
    const int64_t n = (int64_t)kiln_item_length(sequence);
    size_t at;
    if (!position_of(args, 3, n, n, n, &at))
        return out_of_range;
    KilnItem *item = kiln_ref_as_item(args, 2);
    return item ? ref_give_item(args, kiln_item_insert(args->texts, sequence, at, item))
                : ref_no_items;
}

const char *
kiln_ref_sequence_erase(const KilnKernelArgs *args)
{
    const KilnItem *sequence = ref_item(args, 1);
    const int64_t n = (int64_t)kiln_item_length(sequence);
    size_t at;
    if (!position_of(args, 2, n - 1, n, n - 1, &at) || n == 0)
        return out_of_range;
    return ref_give_item(args, kiln_item_erase(args->texts, sequence, at));
}

const char *
kiln_ref_sequence_length(const KilnKernelArgs *args)
{
    *(int64_t *)args->data[0] = (int64_t)kiln_item_length(ref_item(args, 1));
    return NULL;
}
