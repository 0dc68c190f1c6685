/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering of movement: starts, steps, pads and permutations come from shape operands and become
 * attributes; what only generates is an expanded scalar. */
#include "graph/infer/infer.h"
#include "graph/node.h"
#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/slice.h"
#include "ir/lower/lower_priv.h"

#include <string.h>

static gboolean
prefix(const KilnNode *node, GError **error)
{
    kiln_prefix_error(error, "%s (%s): ", kiln_node_label(node), kiln_op_info(node->op)->name);
    return FALSE;
}

gboolean
kiln_lower_attrs_transpose(KilnLower *l, const KilnNode *node, void *attrs, GError **error)
{
    KilnInstrAttrs_transpose *transpose = attrs;
    int perm[KILN_MAX_RANK];
    int64_t wide[KILN_MAX_RANK];
    int rank = kiln_node_operand(node, 0)->type.rank;
    if (!kiln_transpose_perm(node, perm, error))
        return prefix(node, error);
    for (int d = 0; d < rank; d++)
        wide[d] = perm[d];
    transpose->perm = kiln_lower_ints(l, wide, rank);
    return TRUE;
}

gboolean
kiln_lower_attrs_slice(KilnLower *l, const KilnNode *node, void *attrs, GError **error)
{
    KilnInstrAttrs_slice *slice = attrs;
    KilnSliceBox box;
    bool known;
    int rank = kiln_node_operand(node, 0)->type.rank;
    if (!kiln_slice_resolve(node, &box, &known, error))
        return prefix(node, error);
    if (!known)
        return kiln_lower_throw_unknown(node, 1, error);
    slice->starts = kiln_lower_ints_open(l, box.start, box.open_start, rank);
    slice->steps = kiln_lower_ints(l, box.step, rank);
    return TRUE;
}

/* The expressions of paddings, in the order of dims: all at the front, then all behind. */
static void
find_open_pads(const KilnNode *node, const KilnDim **open)
{
    const KilnType *x = &kiln_node_operand(node, 0)->type;
    const KilnValue *axes = kiln_node_operand(node, 3);
    const KilnExtents *extents = kiln_node_operand(node, 1)->extents;
    uint32_t n = extents ? extents->n / 2 : 0;
    int64_t number;
    for (uint32_t i = 0; i < 2 * n; i++) {
        int d = axes ? kiln_type_axis(x, axes->known->v[i % n]) : (int)(i % n);
        if (!kiln_dim_is_number(extents->v[i], &number))
            open[d + (i < n ? 0 : x->rank)] = extents->v[i];
    }
}

static gboolean
fill_pads(KilnLower *l, const KilnNode *node, KilnInstrAttrs_pad *pad, GError **error)
{
    int64_t pads[2 * KILN_MAX_RANK], end[KILN_MAX_RANK];
    bool known;
    int rank = kiln_node_operand(node, 0)->type.rank;
    if (!kiln_pad_resolve(node, pads, end, &known, error))
        return prefix(node, error);
    if (!known)
        return kiln_lower_throw_unknown(node, 1, error);
    memcpy(pads + rank, end, (size_t)rank * sizeof *end);
    const KilnDim *open[2 * KILN_MAX_RANK] = { NULL };
    find_open_pads(node, open);
    pad->pads = kiln_lower_ints_open(l, pads, open, 2 * rank);
    return TRUE;
}

/* What quantized data without a value is padded with: real 0, which is stored as its zero point. */
static gboolean
zero_of(KilnLower *l, const KilnNode *node, KilnBuffer **out, GError **error)
{
    const KilnType type = kiln_node_operand(node, 0)->type;
    const KilnQuant *quant = type.quant;
    *out = NULL;
    for (uint32_t i = 0; quant && quant->axis >= 0 && i < quant->n; i++) {
        if (quant->zero_points[i])
            return kiln_lower_throw(node, KILN_ERROR_UNSUPPORTED, error,
                                    "expected one zero point for all that is padded");
    }
    if (!quant || quant->axis >= 0 || quant->zero_points[0] == 0)
        return TRUE;
    KilnType scalar = kiln_type_scalar(type.dtype), plain = scalar;
    scalar.quant = quant;
    *out =
        kiln_lower_weight(l, "zero", kiln_tensor_new_splat(&plain, quant->zero_points[0]), &scalar);
    return TRUE;
}

gboolean
kiln_lower_pad(KilnLower *l, const KilnNode *node, GError **error)
{
    KilnInstrAttrs_pad attrs = { .mode = kiln_attrs(node, pad)->mode };
    if (!fill_pads(l, node, &attrs, error))
        return FALSE;
    KilnBuffer *operands[] = { NULL, kiln_lower_operand(l, node, 0),
                               kiln_lower_operand(l, node, 2) };
    bool constant = g_str_equal(attrs.mode, "constant");
    if (constant && !operands[2] && !zero_of(l, node, &operands[2], error))
        return FALSE;
    operands[0] = kiln_lower_result(l, node, 0);
    return kiln_lower_emit(l, node, KILN_INSTR_pad, operands, operands[2] ? 3 : 2, &attrs, error);
}

gboolean
kiln_lower_attrs_trilu(KilnLower *l, const KilnNode *node, void *attrs, GError **error)
{
    (void)l;
    const KilnValue *k = kiln_node_operand(node, 1);
    if (k && (!k->known || k->known->n != 1 || kiln_lower_is_open(k)))
        return kiln_lower_throw_unknown(node, 1, error);
    ((KilnInstrAttrs_trilu *)attrs)->k = k ? k->known->v[0] : 0;
    return TRUE;
}

/* One slice per result that something reads. */
gboolean
kiln_lower_split(KilnLower *l, const KilnNode *node, GError **error)
{
    const KilnType *x = &kiln_node_operand(node, 0)->type;
    int axis = kiln_type_axis(x, kiln_attrs(node, split)->axis);
    int64_t starts[KILN_MAX_RANK] = { 0 }, steps[KILN_MAX_RANK];
    const KilnDim *open[KILN_MAX_RANK] = { NULL };
    KilnSize start = kiln_size_make(0);
    for (int d = 0; d < KILN_MAX_RANK; d++)
        steps[d] = 1;
    if (axis < 0)
        return kiln_lower_throw(node, KILN_ERROR_SHAPE, error, "axis is out of range");
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (kiln_lower_wants(l, node, r)) {
            KilnInstrAttrs_slice attrs = { .starts = kiln_lower_ints_open(l, starts, open, x->rank),
                                           .steps = kiln_lower_ints(l, steps, x->rank) };
            KilnBuffer *operands[] = { kiln_lower_result(l, node, r),
                                       kiln_lower_operand(l, node, 0) };
            if (!kiln_lower_emit(l, node, KILN_INSTR_slice, operands, 2, &attrs, error))
                return FALSE;
        }
        start = kiln_size_add(start, kiln_type_size(&node->results[r].type, axis));
        starts[axis] = start.n;
        open[axis] = start.dim;
    }
    return TRUE;
}

/* A condition that is known selects by a const list of indices. */
gboolean
kiln_lower_compress(KilnLower *l, const KilnNode *node, GError **error)
{
    const KilnType *x = &kiln_node_operand(node, 0)->type;
    const KilnKnown *condition = kiln_node_operand(node, 1)->known;
    const KilnValue *result = &node->results[0];
    int64_t stated = kiln_attrs(node, compress)->axis;
    bool flat = stated == G_MININT64;
    if (!condition || kiln_lower_is_open(kiln_node_operand(node, 1)))
        return kiln_lower_throw_unknown(node, 1, error);
    if (flat && x->layout)
        return kiln_lower_throw(node, KILN_ERROR_UNSUPPORTED, error,
                                "it flattens operand 0, whose layout is blocked");
    g_autofree int64_t *indices = g_new(int64_t, condition->n + 1);
    int64_t n = 0;
    for (int64_t i = 0; i < condition->n; i++) {
        if (condition->v[i])
            indices[n++] = i;
    }
    KilnType list = kiln_type_make(KILN_DTYPE_i64, 1, &n);
    KilnTensor *tensor = kiln_tensor_new_copy(&list, indices, error);
    if (!tensor)
        return FALSE;
    g_autofree char *name = g_strconcat(result->name, "_indices", NULL);
    KilnBuffer *weight = kiln_lower_weight(l, name, tensor, NULL);
    KilnBuffer *data = kiln_lower_operand(l, node, 0);
    if (flat && x->rank != 1) {
        KilnType line = data->type;
        KilnSize all = kiln_type_size_elements(x);
        line.rank = 1;
        line.quant = result->type.quant;
        line.dims[0] = all.n;
        line.open[0] = all.dim;
        data = kiln_ir_view(l->ir, result->name, data, 0, &line, NULL);
    }
    KilnInstrAttrs_gather attrs = { .axis = flat ? 0 : kiln_type_axis(x, stated) };
    KilnBuffer *operands[] = { kiln_lower_result(l, node, 0), data, weight };
    return kiln_lower_emit(l, node, KILN_INSTR_gather, operands, 3, &attrs, error);
}

gboolean
kiln_lower_constant_of_shape(KilnLower *l, const KilnNode *node, GError **error)
{
    const KilnValue *result = &node->results[0];
    const KilnConstant *value = kiln_attrs(node, constant_of_shape)->value;
    KilnType scalar = kiln_type_scalar(result->type.dtype);
    uint8_t element[8] = { 0 };
    if (value && !kiln_tensor_is_splat(value->tensor, 1, element))
        return kiln_lower_throw(node, KILN_ERROR_UNSUPPORTED, error,
                                "value: expected one element, found constant @%s", value->name);
    g_autofree char *name = g_strconcat(result->name, "_value", NULL);
    KilnBuffer *weight =
        kiln_lower_weight(l, name, kiln_tensor_new_splat_bits(&scalar, element), NULL);
    KilnBuffer *operands[] = { kiln_lower_result(l, node, 0), weight };
    return kiln_lower_emit(l, node, KILN_INSTR_expand, operands, 2, NULL, error);
}
