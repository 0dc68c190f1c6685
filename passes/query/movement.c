/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/movement.h"

#include "graph/infer/infer.h"
#include "graph/node.h"
#include "graph/op/concat.h"
#include "graph/op/reshape.h"
#include "graph/op/slice.h"
#include "passes/query/extents.h"

int
kiln_concat_axis(const KilnNode *concat)
{
    return kiln_type_axis(&concat->results[0].type, kiln_attrs(concat, concat)->axis);
}

bool
kiln_tile_broadcasts(const KilnNode *tile)
{
    const KilnType *x = &tile->operands[0].value->type;
    const KilnKnown *counts = tile->operands[1].value->known;
    if (!counts || counts->n != x->rank)
        return false;
    for (int d = 0; d < x->rank; d++) {
        if (counts->v[d] != 1 && x->dims[d] != 1)
            return false;
    }
    return true;
}

/* --- parts --- */

static bool
all_ones(const KilnValue *steps)
{
    if (!steps)
        return true;
    for (int64_t i = 0; steps->known && i < steps->known->n; i++) {
        if (steps->known->v[i] != 1)
            return false;
    }
    return steps->known != NULL;
}

/* The one axis of @node, a slice, that it cuts; the first that it names where it cuts none; -1
 * where it cuts several or that is not known. */
static int
cut_axis(const KilnNode *node, const KilnSliceBox *box)
{
    const KilnType *x = &node->operands[0].value->type;
    const KilnValue *starts = kiln_node_operand(node, 1), *ends = kiln_node_operand(node, 2);
    const KilnValue *axes = kiln_node_operand(node, 3);
    if (!starts->known || !ends->known || (axes && !axes->known))
        return -1;
    int found = -1;
    bool cuts = false;
    for (int64_t i = 0; i < starts->known->n; i++) {
        int d = kiln_type_axis(x, axes ? axes->known->v[i] : i);
        if (d < 0 || x->dims[d] < 0)
            return -1;
        bool cut = box->extent[d] != x->dims[d];
        if (cut && cuts)
            return -1;
        found = cut || found < 0 ? d : found;
        cuts |= cut;
    }
    return found;
}

static bool
part_of_slice(const KilnNode *node, KilnPart *part)
{
    KilnSliceBox box;
    bool known;
    g_autoptr(GError) unfit = NULL;
    if (!all_ones(kiln_node_operand(node, 4)) || node->operands[0].value->type.rank < 0 ||
        !kiln_slice_resolve(node, &box, &known, &unfit))
        return false;
    int axis = cut_axis(node, &box);
    if (axis < 0)
        return false;
    *part = (KilnPart){ node->operands[0].value, axis, box.start[axis],
                        box.start[axis] + box.extent[axis] };
    return true;
}

static bool
part_of_split(const KilnNode *node, uint32_t result, KilnPart *part)
{
    const KilnType *x = &node->operands[0].value->type;
    int axis = kiln_type_axis(x, kiln_attrs(node, split)->axis);
    if (x->rank < 0 || axis < 0)
        return false;
    *part = (KilnPart){ node->operands[0].value, axis, 0, 0 };
    for (uint32_t i = 0; i <= result; i++) {
        int64_t extent = node->results[i].type.dims[axis];
        if (extent < 0)
            return false;
        part->begin = part->end;
        part->end += extent;
    }
    return true;
}

bool
kiln_part_of(const KilnValue *value, const KilnFunction *function, KilnPart *part)
{
    const KilnNode *node = value ? value->def : NULL;
    if (!node || node->function != function)
        return false;
    if (node->op == KILN_OP_slice)
        return part_of_slice(node, part);
    return node->op == KILN_OP_split && part_of_split(node, value->index, part);
}

KilnType
kiln_part_type(const KilnPart *part, int64_t n)
{
    KilnType type = part->source->type;
    type.dims[part->axis] = n;
    type.open[part->axis] = NULL;
    type.layout = NULL;
    return type;
}

KilnValue *
kiln_part_build(KilnFunction *function, KilnNode *before, const KilnPart *part,
                const KilnType *type, GError **error)
{
    int64_t axis = part->axis;
    KilnType own = type ? *type : kiln_part_type(part, part->end - part->begin);
    KilnValue *operands[] = { part->source, kiln_build_ints(function, before, &part->begin, 1),
                              kiln_build_ints(function, before, &part->end, 1),
                              kiln_build_ints(function, before, &axis, 1) };
    KilnNodeSpec spec = { .op = KILN_OP_slice,
                          .operands = operands,
                          .n_operands = G_N_ELEMENTS(operands),
                          .types = &own,
                          .before = before };
    KilnNode *node = kiln_node_new(function, &spec, error);
    return node ? &node->results[0] : NULL;
}

/* --- elements along an axis --- */

KilnValue *
kiln_element_build(KilnFunction *function, KilnNode *before, KilnValue *value, int axis,
                   int64_t index, GError **error)
{
    const KilnPart part = { .source = value, .axis = axis, .begin = index, .end = index + 1 };
    const int64_t at = axis;
    KilnValue *operands[] = { kiln_part_build(function, before, &part, NULL, error), NULL };
    if (!operands[0])
        return NULL;
    operands[1] = kiln_build_ints(function, before, &at, 1);
    return kiln_build(function, before, KILN_OP_squeeze, NULL, operands, 2, error);
}

KilnValue *
kiln_join_build(KilnFunction *function, KilnNode *before, KilnValue *const *values, uint32_t n,
                int axis, GError **error)
{
    const KilnAttrs_concat attrs = { .axis = axis };
    return n == 1 ? values[0]
                  : kiln_build(function, before, KILN_OP_concat, &attrs, values, n, error);
}

KilnValue *
kiln_stack_build(KilnFunction *function, KilnNode *before, KilnValue *const *values, uint32_t n,
                 int axis, GError **error)
{
    const int64_t at = axis;
    KilnValue *axes = kiln_build_ints(function, before, &at, 1);
    g_autofree KilnValue **rows = g_new0(KilnValue *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        KilnValue *operands[] = { values[i], axes };
        rows[i] = kiln_build(function, before, KILN_OP_unsqueeze, NULL, operands, 2, error);
        if (!rows[i])
            return NULL;
    }
    return kiln_join_build(function, before, rows, n, axis, error);
}

/* --- reshapes --- */

bool
kiln_op_only_reshapes(KilnOp op)
{
    return op == KILN_OP_reshape || op == KILN_OP_flatten || op == KILN_OP_squeeze ||
           op == KILN_OP_unsqueeze;
}

/* The target of a `reshape` of @value to the shape of @type in numbers, right for any open extents.
 * A single open dim is -1. If several are open, each that @value has at the same place is 0. One
 * more may be -1 if no other dim can be empty. False if neither works. */
static bool
reshape_target(const KilnType *value, const KilnType *type, int64_t target[KILN_MAX_RANK],
               bool *allowzero)
{
    int open = 0, copied = 0, inferred = -1;
    bool empty = false;
    for (int d = 0; d < type->rank; d++) {
        target[d] = type->dims[d];
        empty |= type->dims[d] == 0;
        if (type->dims[d] >= 0)
            continue;
        open++;
        bool copies =
            d < value->rank && value->dims[d] < 0 && kiln_type_equal_dims(value, d, type, d);
        copied += copies;
        inferred = copies ? inferred : d;
        target[d] = copies ? 0 : -1;
    }
    *allowzero = open == 0 && empty; /* an extent of 0 means 0 here */
    if (open == 1 && !empty) {
        for (int d = 0; d < type->rank; d++)
            target[d] = type->dims[d] < 0 ? -1 : target[d];
        return true;
    }
    if (type->rank < 0 || open == 0 || empty)
        return type->rank >= 0 && open == 0;
    /* A -1 beside a dim that turns out to be empty would say nothing. */
    return open == copied || (open == copied + 1 && kiln_dims_are_positive(type, inferred));
}

bool
kiln_reshape_can_build(const KilnFunction *function, KilnValue *value, const KilnType *type)
{
    int64_t target[KILN_MAX_RANK];
    bool allowzero;
    return reshape_target(&value->type, type, target, &allowzero) ||
           kiln_extents_can_build(function, value, type, true);
}

/* The target as numbers, else as what is read from other values: all dims, or all but one. */
static KilnValue *
reshape_operand(KilnFunction *function, KilnNode *before, KilnValue *value, const KilnType *type,
                bool *allowzero, GError **error)
{
    int64_t target[KILN_MAX_RANK];
    g_autoptr(GError) failure = NULL;
    if (reshape_target(&value->type, type, target, allowzero))
        return kiln_build_ints(function, before, target, (uint32_t)type->rank);
    KilnValue *shape = kiln_extents_build(function, before, value, type, false, &failure);
    *allowzero = shape != NULL;
    if (!shape && !failure)
        shape = kiln_extents_build(function, before, value, type, true, &failure);
    if (failure)
        g_propagate_error(error, g_steal_pointer(&failure));
    return shape;
}

KilnValue *
kiln_reshape_build(KilnFunction *function, KilnNode *before, KilnValue *value, const KilnType *type,
                   GError **error)
{
    KilnAttrs_reshape attrs = { .allowzero = false };
    KilnValue *shape = reshape_operand(function, before, value, type, &attrs.allowzero, error);
    if (!shape)
        return NULL;
    KilnNodeSpec spec = { .op = KILN_OP_reshape,
                          .operands = (KilnValue *[]){ value, shape },
                          .n_operands = 2,
                          .attrs = &attrs,
                          .types = type,
                          .before = before };
    KilnNode *node = kiln_node_new(function, &spec, error);
    return node ? &node->results[0] : NULL;
}

/* --- constants --- */

KilnValue *
kiln_moved_constant(KilnFunction *function, KilnNode *before, const char *name, KilnTensor *tensor,
                    const KilnType *type)
{
    KilnAttrs_const attrs = { .value =
                                  kiln_module_add_constant(function->module, name, tensor, type) };
    KilnNodeSpec spec = {
        .op = KILN_OP_const, .attrs = &attrs, .before = before, .result_name = name
    };
    return &kiln_node_new(function, &spec, NULL)->results[0];
}
