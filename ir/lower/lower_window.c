/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of convolutions, poolings and recurrent layers: auto_pad, sizes that weights tell and
 * lists that may be left out are resolved. */
#include "graph/infer/common.h"
#include "graph/infer/infer.h"
#include "graph/node.h"
#include "graph/op/recurrent.h"
#include "ir/instr.h"
#include "ir/lower/lower_priv.h"

static bool
all_are(const int64_t *values, int n, int64_t value)
{
    for (int i = 0; i < n; i++) {
        if (values[i] != value)
            return false;
    }
    return true;
}

gboolean
kiln_lower_attrs_window(KilnLower *l, const KilnNode *node, void *attrs, GError **error)
{
    KilnInstrKind kind = KILN_INSTR_conv;
    kiln_lower_namesake(node, &kind);
    KilnWindow window;
    if (!kiln_window_resolve(node, &window, error)) {
        kiln_prefix_error(error, "%s (%s): ", kiln_node_label(node), kiln_op_info(node->op)->name);
        return FALSE;
    }
    int64_t pads[2 * KILN_MAX_RANK];
    const KilnDim *open_pads[2 * KILN_MAX_RANK];
    bool open = false;
    for (int i = 0; i < window.rank; i++) {
        pads[i] = window.pads_begin[i];
        pads[window.rank + i] = window.pads_end[i];
        open_pads[i] = window.open_begin[i];
        open_pads[window.rank + i] = window.open_end[i];
        open |= window.open_begin[i] || window.open_end[i];
    }
    struct {
        const char *name;
        const int64_t *values;
        int n;
        int64_t otherwise; /* of every element, where the list is empty */
    } lists[] = { { "kernel_shape", window.kernel, window.rank, -1 },
                  { "strides", window.strides, window.rank, 1 },
                  { "dilations", window.dilations, window.rank, 1 },
                  { "pads", pads, 2 * window.rank, 0 } };
    const KilnInstrInfo *info = kiln_instr_info(kind);
    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
        if (!kiln_attr_find(info->attrs, info->n_attrs, lists[i].name))
            continue; /* kernel_shape, where weights tell it */
        bool usual = all_are(lists[i].values, lists[i].n, lists[i].otherwise);
        *(KilnInts *)kiln_lower_field(kind, attrs, lists[i].name) =
            kiln_lower_ints(l, lists[i].values, usual ? 0 : lists[i].n);
    }
    if (open)
        *(KilnInts *)kiln_lower_field(kind, attrs, "pads") =
            kiln_lower_ints_open(l, pads, open_pads, 2 * window.rank);
    return TRUE;
}

gboolean
kiln_lower_attrs_recurrent(KilnLower *l, const KilnNode *node, void *attrs, GError **error)
{
    (void)error;
    static const char *const usual[] = { "Sigmoid", "Tanh", "Tanh" };
    KilnInstrKind kind = node->op == KILN_OP_lstm  ? KILN_INSTR_lstm
                         : node->op == KILN_OP_gru ? KILN_INSTR_gru
                                                   : KILN_INSTR_rnn;
    uint32_t gates = kind == KILN_INSTR_lstm ? 3 : kind == KILN_INSTR_gru ? 2 : 1;
    const KilnType *recurrence = &kiln_node_operand(node, 2)->type;
    uint32_t directions = (uint32_t)recurrence->dims[0];
    KilnC_INT *hidden = kiln_lower_field(kind, attrs, "hidden_size");
    *hidden = recurrence->dims[2];
    KilnStrings *names = kiln_lower_field(kind, attrs, "activations");
    if (names->n)
        return TRUE;
    names->n = gates * directions;
    names->v = kiln_arena_new0(l->ir->arena, const char *, names->n);
    for (uint32_t i = 0; i < names->n; i++)
        names->v[i] = gates == 1 ? "Tanh" : usual[i % gates];
    return TRUE;
}

gboolean
kiln_lower_attrs_col2im(KilnLower *l, const KilnNode *node, void *attrs, GError **error)
{
    KilnInstrAttrs_col2im *col2im = attrs;
    const KilnKnown *block = kiln_node_operand(node, 2)->known;
    if (!block || block->n > KILN_MAX_RANK || kiln_lower_is_open(kiln_node_operand(node, 2)))
        return kiln_lower_throw_unknown(node, 2, error);
    col2im->block_shape = kiln_lower_ints(l, block->v, (int)block->n);
    return TRUE;
}
