/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering of what works along axes: every axis is counted from the front, every list of axes is
 * complete and ascending. */
#include "ir/lower/lower_priv.h"
#include "graph/infer/infer.h"
#include "graph/op/gather.h"
#include "graph/op/norm.h"
#include "graph/node.h"

static KilnInstrKind
kind_of(const KilnNode *node)
{
    KilnInstrKind kind = KILN_INSTR_copy;
    kiln_lower_namesake(node, &kind);
    return kind;
}

static gboolean
set_axis(const KilnNode *node, void *attrs, const KilnType *type, int64_t stated, GError **error)
{
    /* A scalar has no axis: 0 stands for "none" there. */
    int axis = type->rank == 0 ? 0 : kiln_type_axis(type, stated);
    if (axis < 0)
        return kiln_lower_throw(node, KILN_ERROR_SHAPE, error,
                                "axis: expected one of rank %d, found %" G_GINT64_FORMAT,
                                type->rank, stated);
    *(KilnC_INT *)kiln_lower_field(kind_of(node), attrs, "axis") = axis;
    return TRUE;
}

gboolean
kiln_lower_attrs_axis(KilnLower *l, const KilnNode *node, void *attrs, GError **error)
{
    (void)l;
    int64_t stated = *(KilnC_INT *)kiln_lower_field(kind_of(node), attrs, "axis");
    return set_axis(node, attrs, &kiln_node_operand(node, 0)->type, stated, error);
}

gboolean
kiln_lower_attrs_one_hot(KilnLower *l, const KilnNode *node, void *attrs, GError **error)
{
    (void)l;
    return set_axis(node, attrs, &node->results[0].type, kiln_attrs(node, one_hot)->axis, error);
}

/* With one scale for all, `axis` means nothing and may fit no dim: it stays as it is. */
gboolean
kiln_lower_attrs_quantize(KilnLower *l, const KilnNode *node, void *attrs, GError **error)
{
    const KilnValue *scale = kiln_node_operand(node, 1);
    if (!scale || kiln_type_elements(&scale->type) == 1)
        return TRUE;
    return kiln_lower_attrs_axis(l, node, attrs, error);
}

gboolean
kiln_lower_attrs_cum_sum(KilnLower *l, const KilnNode *node, void *attrs, GError **error)
{
    (void)l;
    const KilnKnown *axis = kiln_node_operand(node, 1)->known;
    if (!axis || axis->n != 1 || kiln_lower_is_open(kiln_node_operand(node, 1)))
        return kiln_lower_throw_unknown(node, 1, error);
    return set_axis(node, attrs, &kiln_node_operand(node, 0)->type, axis->v[0], error);
}

/* The length of the signal is a number, or an expression where dims are open. */
static gboolean
find_length(KilnLower *l, const KilnNode *node, KilnInstrAttrs_dft *dft, GError **error)
{
    KilnDimTable *dims = node->function->module->dims;
    const KilnValue *stated = kiln_node_operand(node, 1);
    const KilnType *x = &kiln_node_operand(node, 0)->type;
    const KilnDim *open = kiln_type_dim(x, (int)dft->axis, dims);
    int64_t length = x->dims[dft->axis];
    if (stated) {
        if (!stated->known || stated->known->n != 1)
            return kiln_lower_throw_unknown(node, 1, error);
        length = stated->known->v[0];
        open = kiln_lower_is_open(stated) ? stated->extents->v[0] : NULL;
    } else if (dft->inverse && dft->onesided) {
        length = 2 * (length - 1);
        open = kiln_dim_scale(dims, kiln_dim_sub(dims, open, kiln_dim_number(dims, 1)), 2);
    }
    if (kiln_dim_is_number(open, &length))
        open = NULL;
    dft->length = kiln_lower_ints_open(l, &length, &open, 1);
    return TRUE;
}

gboolean
kiln_lower_attrs_dft(KilnLower *l, const KilnNode *node, void *attrs, GError **error)
{
    KilnInstrAttrs_dft *dft = attrs;
    int axis;
    bool known;
    if (!kiln_dft_axis(node, &axis, &known, error)) {
        kiln_prefix_error(error, "%s (dft): ", kiln_node_label(node));
        return FALSE;
    }
    if (!known || kiln_lower_is_open(kiln_node_operand(node, 2)))
        return kiln_lower_throw_unknown(node, 2, error);
    dft->axis = axis;
    return find_length(l, node, dft, error);
}

static KilnInts
marked_axes(KilnLower *l, const bool marked[KILN_MAX_RANK])
{
    int64_t axes[KILN_MAX_RANK];
    int n = 0;
    for (int d = 0; d < KILN_MAX_RANK; d++) {
        if (marked[d])
            axes[n++] = d;
    }
    return kiln_lower_ints(l, axes, n);
}

gboolean
kiln_lower_attrs_mean_variance(KilnLower *l, const KilnNode *node, void *attrs, GError **error)
{
    const KilnType *x = &kiln_node_operand(node, 0)->type;
    static int64_t usual[] = { 0, 2, 3 }; /* what the specification says where none are stated */
    KilnInts stated = kiln_attrs(node, mean_variance_normalization)->axes;
    if (!stated.n)
        stated = (KilnInts){ .n = G_N_ELEMENTS(usual), .v = usual };
    bool marked[KILN_MAX_RANK] = { false };
    for (uint32_t i = 0; i < stated.n; i++) {
        int axis = kiln_type_axis(x, stated.v[i]);
        if (axis < 0)
            return kiln_lower_throw(node, KILN_ERROR_SHAPE, error,
                                    "axes: expected axes of rank %d, found %" G_GINT64_FORMAT,
                                    x->rank, stated.v[i]);
        marked[axis] = true;
    }
    ((KilnInstrAttrs_mean_variance_normalization *)attrs)->axes = marked_axes(l, marked);
    return TRUE;
}

/* Reductions that leave one element as it is; the others square it, take its logarithm or its
 * absolute value. */
static bool
keeps_one(KilnInstrKind kind)
{
    return kind == KILN_INSTR_reduce_max || kind == KILN_INSTR_reduce_mean ||
           kind == KILN_INSTR_reduce_min || kind == KILN_INSTR_reduce_prod ||
           kind == KILN_INSTR_reduce_sum;
}

/* A reduction over no axis of a tensor that has some is stated with noop_with_empty_axes: every
 * element is a group of its own. */
gboolean
kiln_lower_reduce(KilnLower *l, const KilnNode *node, GError **error)
{
    const KilnType *x = &kiln_node_operand(node, 0)->type;
    KilnInstrKind kind = kind_of(node);
    bool reduced[KILN_MAX_RANK], known;
    if (!kiln_reduce_axes(node, reduced, &known, error))
        return FALSE;
    if (!known)
        return kiln_lower_throw_unknown(node, 1, error);
    KilnInts axes = marked_axes(l, reduced);
    if (!axes.n && x->rank && keeps_one(kind))
        return kiln_lower_unchanged(l, node, error);
    void *attrs = kiln_instr_attrs_new(kind, l->ir->arena);
    *(KilnInts *)kiln_lower_field(kind, attrs, "axes") = axes;
    return kiln_lower_generic(l, node, kind, attrs, error);
}
