/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering of what lies in a layout:
 *
 *      %y = concat(%a, %b) {axis=1}         concat @out %y, @in %a, @in %b {axis=3}
 *              : f32[1,64,7,7]:acdb    =>          with %y = alloc : f32[1,7,7,64]
 */
#include "graph/module/layout.h"
#include "ir/lower/lower_priv.h"

bool
kiln_lower_is_flat(const KilnNode *node)
{
    const KilnType *result = node->n_results ? &node->results[0].type : NULL;
    if (!result || !result->layout)
        return false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && kiln_layout_follows(node, i, result) &&
            g_strcmp0(value->type.layout, result->layout) != 0)
            return false;
    }
    return kiln_layout_carries(node, result);
}

KilnBuffer *
kiln_lower_form(KilnLower *l, const KilnValue *value, KilnBuffer *buffer, bool flat)
{
    KilnType type = value->type;
    if (!buffer || !type.layout || (flat && !kiln_layout_flatten(&value->type, &type)) ||
        kiln_type_equal(&type, &buffer->type))
        return buffer;
    KilnBuffer *other = g_hash_table_lookup(l->forms, value);
    if (!other) {
        other = kiln_ir_view(l->ir, value->name, buffer, 0, &type, NULL);
        g_hash_table_insert(l->forms, (gpointer)value, other);
    }
    return other;
}

/* --- attributes --- */

/* @per_dim, one number per dim, as one per loop: of blocks where the dim is split, and @inner for
 * the loops over their insides. */
static void
spread(const KilnLayout *layout, const int64_t *per_dim, int64_t inner, bool scale,
       int64_t *per_loop)
{
    for (int l = 0; l < layout->rank; l++) {
        int d = layout->dim[l];
        bool outer = layout->outer[d] == l;
        per_loop[l] = outer ? per_dim[d] / (scale ? layout->block[d] : 1) : inner;
    }
}

const void *
kiln_lower_flat_attrs(KilnLower *l, KilnInstrKind kind, const void *attrs, const KilnType *result)
{
    const KilnInstrInfo *info = kiln_instr_info(kind);
    KilnLayout layout;
    int64_t loops[2 * KILN_MAX_RANK];
    if (!attrs || !kiln_layout_of(result, &layout))
        return attrs;
    void *copy = kiln_instr_attrs_new(kind, l->ir->arena);
    kiln_attrs_copy(info->attrs, info->n_attrs, copy, attrs, l->ir->arena);
    if (kind == KILN_INSTR_concat || kind == KILN_INSTR_channel_shuffle) {
        int64_t *axis = kiln_lower_field(kind, copy, "axis");
        *axis = layout.outer[*axis];
    } else if (kind == KILN_INSTR_slice) {
        KilnInstrAttrs_slice *slice = copy;
        spread(&layout, slice->starts.v, 0, true, loops);
        slice->starts = kiln_lower_ints(l, loops, layout.rank);
        spread(&layout, slice->steps.v, 1, false, loops);
        slice->steps = kiln_lower_ints(l, loops, layout.rank);
    } else if (kind == KILN_INSTR_pad) {
        KilnInstrAttrs_pad *pad = copy;
        spread(&layout, pad->pads.v, 0, true, loops);
        spread(&layout, pad->pads.v + result->rank, 0, true, loops + layout.rank);
        pad->pads = kiln_lower_ints(l, loops, 2 * layout.rank);
    } else if (kiln_attr_find(info->attrs, info->n_attrs, "axes")) {
        KilnInts *axes = kiln_lower_field(kind, copy, "axes");
        bool reduced[2 * KILN_MAX_RANK] = { false };
        int n = 0;
        for (uint32_t i = 0; i < axes->n; i++)
            reduced[layout.outer[axes->v[i]]] = true;
        for (int loop = 0; loop < layout.rank; loop++) {
            if (reduced[loop])
                loops[n++] = loop;
        }
        *axes = kiln_lower_ints(l, loops, n);
    }
    return copy;
}
