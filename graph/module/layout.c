/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/module/layout.h"

#include "graph/infer/infer.h"
#include "graph/op/concat.h"
#include "graph/op/expand.h"
#include "graph/op/layout.h"
#include "graph/op/slice.h"
#include "graph/op/transpose.h"

#include <string.h>

/* --- loops --- */

bool
kiln_layout_of(const KilnType *type, KilnLayout *out)
{
    int64_t extents[2 * KILN_MAX_RANK];
    *out = (KilnLayout){ .rank = type->rank };
    if (!kiln_type_is_static(type))
        return false;
    for (int d = 0; d < type->rank; d++) {
        extents[d] = type->dims[d];
        out->dim[d] = out->outer[d] = d;
        out->block[d] = 1;
    }
    if (type->layout && !kiln_layout_physical(type, &out->rank, extents, NULL))
        return false;
    const char *tag = type->layout;
    for (int l = 0; tag && l < out->rank; l++) {
        while (!g_ascii_isalpha(*tag))
            tag++;
        out->dim[l] = g_ascii_tolower(*tag++) - 'a';
        if (l < type->rank)
            out->outer[out->dim[l]] = l;
        else
            out->block[out->dim[l]] *= extents[l];
    }
    memcpy(out->extent, extents, sizeof extents);
    return true;
}

bool
kiln_layout_is_whole(const KilnType *type, const KilnLayout *layout)
{
    for (int d = 0; d < type->rank; d++) {
        if (type->dims[d] % layout->block[d])
            return false;
    }
    return true;
}

bool
kiln_layout_flatten(const KilnType *type, KilnType *out)
{
    KilnLayout layout;
    if (!kiln_layout_of(type, &layout) || layout.rank > KILN_MAX_RANK)
        return false;
    *out = kiln_type_make(type->dtype, layout.rank, layout.extent);
    for (int d = 0; d < type->rank; d++) {
        const KilnDim *dim = type->open[d];
        if (dim && layout.block[d] > 1) {
            KilnDimTable *table = kiln_dim_table_of(dim);
            dim = kiln_dim_ceil(table, dim, kiln_dim_number(table, layout.block[d]));
        }
        out->open[layout.outer[d]] = dim;
    }
    return true;
}

/* --- operators --- */

bool
kiln_layout_follows(const KilnNode *node, uint32_t i, const KilnType *result)
{
    const KilnValue *value = kiln_node_operand(node, i);
    if (!value)
        return false;
    if (kiln_op_has(node->op, KILN_TRAIT_ELEMENTWISE))
        return value->type.rank == result->rank && kiln_type_elements(&value->type) != 1;
    return i == 0 || node->op == KILN_OP_concat;
}

static bool
is_reduction(KilnOp op)
{
    return kiln_infer_function(op) == kiln_infer_reduce;
}

/* What broadcasts has one element along a dim, which must not be cut into blocks. */
static bool
carries_elementwise(const KilnNode *node, const KilnType *result, const KilnLayout *layout)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (!value || kiln_type_elements(&value->type) == 1)
            continue;
        if (value->type.rank != result->rank)
            return false;
        for (int d = 0; d < result->rank; d++) {
            bool repeats = value->type.dims[d] == 1 && layout->block[d] == 1;
            if (value->type.dims[d] != result->dims[d] && !repeats)
                return false;
        }
    }
    return true;
}

static bool
carries_slice(const KilnNode *node, const KilnType *result, const KilnLayout *layout)
{
    KilnSliceBox box;
    bool known;
    if (!kiln_slice_resolve(node, &box, &known, NULL) || !known)
        return false;
    for (int d = 0; d < result->rank; d++) {
        if (layout->block[d] > 1 && (box.step[d] != 1 || box.start[d] % layout->block[d]))
            return false;
    }
    return true;
}

/* All parts alike: where they are whole blocks, each begins with one. */
static bool
carries_split(const KilnNode *node, const KilnType *result, const KilnLayout *layout)
{
    const KilnType *x = &node->operands[0].value->type;
    int axis = kiln_type_axis(x, kiln_attrs(node, split)->axis);
    g_autofree int64_t *parts = g_new(int64_t, node->n_results);
    if (axis < 0 || x->rank != result->rank ||
        !kiln_split_resolve(node, x->dims[axis], parts, NULL))
        return false;
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (parts[r] < 0 || parts[r] % layout->block[axis])
            return false;
    }
    return true;
}

static bool
carries_pad(const KilnNode *node, const KilnType *result, const KilnLayout *layout)
{
    int64_t begin[KILN_MAX_RANK], end[KILN_MAX_RANK];
    bool known;
    if (!kiln_pad_resolve(node, begin, end, &known, NULL) || !known)
        return false;
    for (int d = 0; d < result->rank; d++) {
        if (layout->block[d] > 1 && (begin[d] || end[d]))
            return false;
    }
    return true;
}

static bool
carries_reduction(const KilnNode *node, const KilnType *result, const KilnLayout *layout)
{
    bool reduced[KILN_MAX_RANK], known;
    if (!kiln_reduce_axes(node, reduced, &known, NULL) || !known ||
        node->operands[0].value->type.rank != result->rank)
        return false;
    for (int d = 0; d < result->rank; d++) {
        if (layout->block[d] > 1 && reduced[d])
            return false;
    }
    return true;
}

static bool
carries_op(const KilnNode *node, const KilnType *result, const KilnLayout *layout)
{
    if (kiln_node_has_blocks(node))
        return false;
    if (kiln_op_has(node->op, KILN_TRAIT_ELEMENTWISE))
        return carries_elementwise(node, result, layout);
    if (is_reduction(node->op))
        return carries_reduction(node, result, layout);
    switch (node->op) {
    case KILN_OP_concat:
        return true;
    case KILN_OP_slice:
        return carries_slice(node, result, layout);
    case KILN_OP_split:
        return carries_split(node, result, layout);
    case KILN_OP_pad:
        return carries_pad(node, result, layout);
    case KILN_OP_channel_shuffle: {
        int axis = kiln_type_axis(result, kiln_attrs(node, channel_shuffle)->axis);
        return axis >= 0 && layout->block[axis] == 1;
    }
    default:
        return false;
    }
}

bool
kiln_layout_carries(const KilnNode *node, const KilnType *result)
{
    KilnLayout layout;
    if (node->n_results != 1 && node->op != KILN_OP_split)
        return false;
    if (!kiln_layout_of(result, &layout) || layout.rank > KILN_MAX_RANK || result->quant ||
        kiln_type_elements(result) <= 1 || !kiln_layout_is_whole(result, &layout))
        return false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = kiln_node_operand(node, i);
        if (!value || !kiln_layout_follows(node, i, result))
            continue;
        KilnType laid = value->type;
        laid.layout = result->layout;
        KilnLayout loops;
        bool broadcasts = kiln_op_has(node->op, KILN_TRAIT_ELEMENTWISE);
        if (laid.quant || laid.rank != result->rank || !kiln_layout_of(&laid, &loops) ||
            (!broadcasts && !kiln_layout_is_whole(&laid, &loops)))
            return false;
    }
    return carries_op(node, result, &layout);
}

KilnValue *
kiln_value_reorder(KilnFunction *function, KilnNode *before, KilnValue *value, const char *tag,
                   GError **error)
{
    KilnType type = value->type;
    type.layout = tag;
    KilnNodeSpec spec = { .op = tag ? KILN_OP_pack : KILN_OP_unpack,
                          .operands = &value,
                          .n_operands = 1,
                          .types = &type,
                          .result_name = kiln_value_constant(value) ? value->name : NULL,
                          .before = before };
    KilnNode *node = kiln_node_new(function, &spec, error);
    return node ? &node->results[0] : NULL;
}
