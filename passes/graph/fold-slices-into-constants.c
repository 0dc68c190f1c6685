/* SPDX-License-Identifier: Apache-2.0 */
/* fold-slices-into-constants: a part of a constant becomes a constant of its own.
 *
 *     const @w           const @w'           const @w             const @w'   const @w"
 *        |          =>      |                   |           =>       |           |
 *    slice 2:5              |                 split                  |           |
 *        |                                    /   \
 *
 * requires nothing, preserves nothing; class E: elements are moved. The constant stays for who else
 * reads it, so that parts may take storage beside it: where all that was computed in the module
 * would come to more than `max-bytes`, the slice stays. A splat's parts, and runs of a mapped
 * file's bytes, take none. */
#include "graph/base/alloc.h"
#include "graph/infer/infer.h"
#include "passes/query/literal.h"
#include "passes/query/movement.h"
#include "passes/rule.h"

#include <string.h>

#define OPTIONS(OPTION, CHOICE) OPTION(INT, max_bytes, 268435456)
PASS_OPTIONS(fold_slices_into_constants, OPTIONS);

/* Elements of a tensor, from the first of them on and by strides in elements. */
typedef struct {
    const KilnTensor *tensor;
    int64_t base;
    int64_t strides[KILN_MAX_RANK];
} Walk;

static Walk
walk_of(const KilnTensor *tensor, const KilnSliceBox *box)
{
    Walk walk = { .tensor = tensor };
    int64_t stride = 1;
    for (int d = tensor->type.rank - 1; d >= 0; d--) {
        walk.base += box->start[d] * stride;
        walk.strides[d] = box->extent[d] > 1 ? box->step[d] * stride : 0;
        (void)__builtin_mul_overflow(stride, tensor->type.dims[d], &stride);
    }
    return walk;
}

/* One run of elements, as they are stored. */
static bool
is_run(const Walk *walk, const KilnType *type)
{
    int64_t stride = 1;
    for (int d = type->rank - 1; d >= 0; d--) {
        if (type->dims[d] != 1 && walk->strides[d] != stride)
            return false;
        stride *= type->dims[d];
    }
    return true;
}

/* --- making parts --- */

/* A handle on bytes that the tensor has in its file. */
static KilnTensor *
share(const Walk *walk, const KilnType *type)
{
    const KilnTensor *tensor = walk->tensor;
    size_t at = (size_t)walk->base * kiln_dtype_size(type->dtype);
    g_autoptr(GBytes) bytes =
        g_bytes_new_from_bytes(tensor->bytes, at, (size_t)kiln_type_bytes(type));
    KilnTensor *part = kiln_tensor_new_data(type, bytes, NULL);
    part->file = g_strdup(tensor->file);
    part->file_offset = tensor->file_offset + (int64_t)at;
    part->mapped = true;
    return part;
}

static KilnTensor *
copy(const Walk *walk, const KilnType *type, GError **error)
{
    size_t size = kiln_dtype_size(type->dtype), bytes = (size_t)kiln_type_bytes(type);
    g_autoptr(GBytes) payload = kiln_tensor_view(walk->tensor, error);
    void *to;
    g_autoptr(GBytes) made = payload ? kiln_bytes_new(1, bytes, &to, error) : NULL;
    if (!made)
        return NULL;
    const uint8_t *from = g_bytes_get_data(payload, NULL);
    int64_t index[KILN_MAX_RANK] = { 0 }, at = walk->base;
    for (int64_t k = 0, n = kiln_type_elements(type); k < n; k++) {
        memcpy((uint8_t *)to + (size_t)k * size, from + (size_t)at * size, size);
        for (int d = type->rank - 1; d >= 0; d--) {
            at += walk->strides[d];
            if (++index[d] < type->dims[d])
                break;
            at -= walk->strides[d] * type->dims[d];
            index[d] = 0;
        }
    }
    kiln_tensor_drop_pages(walk->tensor);
    return kiln_tensor_compact(kiln_tensor_new_data(type, made, error));
}

/* No byte of the part is new. */
static bool
takes_no_storage(const KilnTensor *tensor, const Walk *walk, const KilnType *type)
{
    return tensor->kind == KILN_TENSOR_SPLAT ||
           (tensor->kind == KILN_TENSOR_DATA && tensor->mapped && tensor->file &&
            is_run(walk, type));
}

static int64_t
new_bytes(const KilnConstant *constant, const KilnSliceBox *box, const KilnType *type)
{
    Walk walk = walk_of(constant->tensor, box);
    return takes_no_storage(constant->tensor, &walk, type) ? 0 : kiln_type_bytes(type);
}

/* The elements of @box as a constant of @type; NULL where memory is short. */
static KilnValue *
part_of_constant(KilnMatch *match, const KilnSliceBox *box, const KilnType *type)
{
    const KilnConstant *constant = kiln_value_constant(kiln_match_value(match, "c"));
    const KilnTensor *tensor = constant->tensor;
    KilnType plain = kiln_type_make(type->dtype, type->rank, type->dims);
    Walk walk = walk_of(tensor, box);
    bool shares = takes_no_storage(tensor, &walk, type);
    KilnTensor *part = !shares ? copy(&walk, &plain, match->error)
                       : tensor->kind == KILN_TENSOR_SPLAT
                           ? kiln_tensor_new_splat_bits(&plain, tensor->splat)
                           : share(&walk, &plain);
    if (!part)
        return NULL;
    KilnValue *value =
        kiln_moved_constant(match->root->function, match->root, constant->name, part, type);
    kiln_value_constant(value)->charged = kiln_tensor_storage(part) * !shares;
    kiln_value_constant(value)->base = constant->base;
    return value;
}

/* --- the rules --- */

static bool
may_read(KilnMatch *match, const KilnConstant *constant)
{
    GUARD(has_bytes, kiln_tensor_is_readable(constant->tensor));
    GUARD(plain, !constant->type.layout);
    return true;
}

/* @bytes: those of the new parts. */
static bool
has_room(KilnMatch *match, const KilnModule *module, int64_t bytes)
{
    const Options *options = kiln_pass_options(match->context);
    int64_t room = options->max_bytes;
    GUARD(max_bytes, bytes == 0 || bytes <= room - kiln_charged_bytes(module));
    return true;
}

static bool
fold_slice(KilnMatch *match)
{
    const KilnNode *slice = match->root;
    const KilnConstant *constant = kiln_value_constant(kiln_match_value(match, "c"));
    const KilnType *type = &slice->results[0].type;
    KilnSliceBox box;
    bool known;
    if (!may_read(match, constant) || !kiln_slice_resolve(slice, &box, &known, match->error))
        return false;
    GUARD(bounds_known, known);
    if (!has_room(match, constant->module, new_bytes(constant, &box, type)))
        return false;
    return kiln_match_replace(match, part_of_constant(match, &box, type));
}

static KilnSliceBox
box_of(const KilnPart *part)
{
    KilnSliceBox box = { .start = { 0 } };
    for (int d = 0; d < part->source->type.rank; d++) {
        bool cut = d == part->axis;
        box.start[d] = cut ? part->begin : 0;
        box.step[d] = 1;
        box.extent[d] = cut ? part->end - part->begin : part->source->type.dims[d];
    }
    return box;
}

static bool
fold_split(KilnMatch *match)
{
    KilnNode *split = match->root;
    const KilnConstant *constant = kiln_value_constant(kiln_match_value(match, "c"));
    g_autofree KilnSliceBox *boxes = g_new0(KilnSliceBox, split->n_results);
    g_autofree KilnValue **parts = g_new0(KilnValue *, split->n_results);
    int64_t bytes = 0;
    if (!may_read(match, constant))
        return false;
    for (uint32_t i = 0; i < split->n_results; i++) {
        KilnPart part;
        GUARD(bounds_known, kiln_part_of(&split->results[i], split->function, &part));
        boxes[i] = box_of(&part);
        bytes += new_bytes(constant, &boxes[i], &split->results[i].type);
    }
    if (!has_room(match, constant->module, bytes))
        return false;
    for (uint32_t i = 0; i < split->n_results; i++) {
        const KilnValue *result = &split->results[i];
        if (result->n_uses && !(parts[i] = part_of_constant(match, &boxes[i], &result->type)))
            return false;
    }
    for (uint32_t i = 0; i < split->n_results; i++) {
        if (parts[i])
            kiln_match_replace_result(match, i, parts[i]);
    }
    return true;
}

static const KilnRule rules[] = {
    RULE("slice-of-constant", E, "(slice $c ? ? ...)", fold_slice),
    RULE("split-of-constant", E, "(split $c ...)", fold_split),
};

RULE_PASS(fold_slices_into_constants, FORWARD);
