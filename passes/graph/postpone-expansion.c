/* SPDX-License-Identifier: Apache-2.0 */
/* postpone-expansion: what makes a value bigger goes below what computes each element by itself.
 *
 *      w: [8,1,32]                      w: [8,1,32]
 *         |                                |
 *       expand [2,8,32,32]            cast · mul 2 · cast      [8,1,32]
 *         |                  =>            |
 *     cast · mul 2 · cast               expand [2,8,32,32]
 *         |                                |
 *
 * Also tile, and constant_of_shape, whose only number is computed with and then expanded. So the
 * arithmetic runs on the few elements that differ, and where w is constant it is folded, which
 * the bigger result is not.
 *
 *   move   any element-wise operator but those with a scale along an axis
 *
 * What else the operator reads must be equal wherever w is repeated: it broadcasts to the shape of
 * w, is a literal of equal elements, or is expanded itself from what broadcasts to it. The
 * expansion has no other reader, so that nothing is computed twice, more elements than w, and the
 * shape of the result.
 *
 * requires nothing, preserves nothing; class E: the same operation on the same numbers, fewer
 * times. Forward sweeps: a chain moves node by node, each in front of all expansions above it.
 * Nothing moves an expansion up, so the pass ends. Must run before analyse-constness and
 * constant-fold, for which it makes room, and before fold-tile-add, which lets the operator repeat
 * what it reads. */
#include "graph/infer/infer.h"
#include "graph/op/activation.h"
#include "graph/op/expand.h"
#include "graph/op/generate.h"
#include "graph/op/quantize.h"
#include "passes/pass.h"
#include "passes/query/facts.h"
#include "passes/query/movement.h"

#include <string.h>

static const char rule[] = "move";

enum {
    SPLAT_LOOK = 65536, /* elements of a literal that are compared */
};

/* What stands for an operand on few elements. */
typedef struct {
    KilnValue *value; /* NULL: an absent operand, or equal elements */
    bool equal;       /* each of them `element` */
    uint8_t element[8];
    KilnType type;
} Small;

/* --- what is expanded --- */

/* The bits of all elements of @value, a literal or a constant_of_shape. */
static bool
equal_elements(const KilnValue *value, uint8_t element[8])
{
    const KilnConstant *constant = kiln_value_constant(value);
    if (constant)
        return kiln_tensor_is_splat(constant->tensor, SPLAT_LOOK, element);
    const KilnNode *fill = kiln_value_def_of(value, KILN_OP_constant_of_shape);
    if (!fill)
        return false;
    const KilnConstant *number = kiln_attrs(fill, constant_of_shape)->value;
    memset(element, 0, 8);
    return !number || kiln_tensor_is_splat(number->tensor, 1, element);
}

static Small
small_scalar(const KilnValue *value, const uint8_t element[8])
{
    Small small = { .equal = true, .type = kiln_type_scalar(value->type.dtype) };
    memcpy(small.element, element, sizeof small.element);
    return small;
}

/* @value without what repeats it; @tiles: also where that is not what broadcasting does. */
static Small
without_expansion(const KilnValue *value, bool tiles)
{
    uint8_t element[8];
    if (value->type.rank != 0 && equal_elements(value, element))
        return small_scalar(value, element);
    const KilnNode *def = value->def;
    bool expanded = def && (def->op == KILN_OP_expand ||
                            (def->op == KILN_OP_tile && (tiles || kiln_tile_broadcasts(def))));
    KilnValue *from = expanded ? def->operands[0].value : (KilnValue *)value;
    return (Small){ .value = from, .type = from->type };
}

static bool
is_expansion(const KilnNode *node)
{
    return node && (node->op == KILN_OP_expand || node->op == KILN_OP_tile ||
                    node->op == KILN_OP_constant_of_shape);
}

/* Extents that likely say more elements than @small has. */
static bool
grows(const KilnType *small, const KilnType *type)
{
    return kiln_type_likely_elements(small) < kiln_type_likely_elements(type);
}

/* The same extents, but for leading ones. */
static bool
same_but_for_ones(const KilnType *a, const KilnType *b)
{
    const KilnType *longer = a->rank > b->rank ? a : b;
    KilnType padded = longer == a ? *b : *a;
    int more = longer->rank - padded.rank;
    KilnType ones = kiln_type_scalar(padded.dtype);
    ones.rank = longer->rank;
    for (int d = 0; d < longer->rank; d++) {
        ones.dims[d] = d < more ? 1 : padded.dims[d - more];
        ones.open[d] = d < more ? NULL : padded.open[d - more];
    }
    return kiln_type_same_shape(&ones, longer);
}

static bool
is_plain(const KilnNode *node)
{
    bool plain = !node->results[0].type.layout && !node->results[0].type.quant;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        plain &= !value || (!value->type.layout && !value->type.quant);
    }
    return plain;
}

/* Each element of the result hangs on the elements at its place alone. */
static bool
is_elementwise(const KilnNode *node)
{
    return kiln_op_has(node->op, KILN_TRAIT_ELEMENTWISE) && node->op != KILN_OP_quantize_linear &&
           node->op != KILN_OP_dequantize_linear;
}

/* --- conditions --- */

/* The shape of @node on few elements: that of what is expanded, for else another operand varies
 * where that is repeated. */
static bool
stays_small(const Small *operands, const KilnNode *node, const Small *x, bool exact, KilnType *out)
{
    KilnType shape = x->type;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (node->operands[i].value &&
            !kiln_infer_broadcast_shapes(&shape, &operands[i].type, &shape, NULL))
            return false;
    }
    /* prelu repeats its slopes and never its data. */
    if (node->op == KILN_OP_prelu && !kiln_type_same_shape(&operands[0].type, &shape))
        return false;
    *out = shape;
    out->dtype = node->results[0].type.dtype;
    return exact ? kiln_type_same_shape(&shape, &x->type) : same_but_for_ones(&shape, &x->type);
}

/* What is expanded behind @node, which gives @small elements then, has the shape that it has now:
 * an operand of equal elements makes it no bigger, and gives it no more dims. */
static bool
shape_is_kept(const KilnNode *node, const KilnType *expanded, const KilnType *small, bool exact)
{
    const KilnType *result = &node->results[0].type;
    if (exact)
        return kiln_type_same_shape(expanded, result);
    return same_but_for_ones(expanded, result) && result->rank == MAX(expanded->rank, small->rank);
}

/* Fills @operands with what stands for those of @node without @expansion, and @out with the type
 * that it has on them. */
static bool
may_move(KilnPassContext *context, const KilnNode *node, const KilnNode *expansion, Small *operands,
         KilnType *out)
{
    const KilnValue *expanded = &expansion->results[0];
    bool exact = expansion->op == KILN_OP_tile; /* one number of repeats per dim */
    Small x = without_expansion(expanded, true);
    PASS_GUARD(elementwise, is_elementwise(node));
    PASS_GUARD(only_reader, kiln_only_reader(expanded, node));
    PASS_GUARD(plain, is_plain(node) && is_plain(expansion));
    PASS_GUARD(extents_known, kiln_type_is_known(&expanded->type) && kiln_type_is_known(&x.type));
    PASS_GUARD(grows, grows(&x.type, &expanded->type));
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value)
            operands[i] = value == expanded ? x : without_expansion(value, false);
    }
    PASS_GUARD(equal_where_repeated, stays_small(operands, node, &x, exact, out));
    PASS_GUARD(shape_kept, shape_is_kept(node, &expanded->type, out, exact));
    return true;
}

/* --- rewriting --- */

static KilnValue *
build_operand(KilnNode *before, const Small *small)
{
    if (!small->equal)
        return small->value;
    KilnTensor *tensor = kiln_tensor_new_splat_bits(&small->type, small->element);
    return kiln_build_constant(before->function, before, "number", tensor);
}

static KilnNode *
build_small(KilnNode *node, const Small *operands, const KilnType *type, GError **error)
{
    g_autofree KilnValue **values = g_new0(KilnValue *, node->n_operands);
    for (uint32_t i = 0; i < node->n_operands; i++)
        values[i] = node->operands[i].value ? build_operand(node, &operands[i]) : NULL;
    KilnNodeSpec spec = { .op = node->op,
                          .name = node->name,
                          .operands = values,
                          .n_operands = node->n_operands,
                          .attrs = node->attrs,
                          .types = type,
                          .before = node };
    return kiln_node_new(node->function, &spec, error);
}

/* Expands @small as @expansion did, which constant_of_shape does without reading anything. */
static KilnNode *
build_expansion(KilnNode *node, const KilnNode *expansion, KilnValue *small, GError **error)
{
    bool fill = expansion->op == KILN_OP_constant_of_shape;
    KilnValue *operands[] = { small, kiln_node_operand(expansion, fill ? 0 : 1) };
    KilnNodeSpec spec = { .op = fill ? KILN_OP_expand : expansion->op,
                          .name = expansion->name,
                          .operands = operands,
                          .n_operands = 2,
                          .types = &node->results[0].type,
                          .before = node };
    return kiln_node_new(node->function, &spec, error);
}

/* Returns what computes on few elements now. */
static KilnNode *
move(KilnPassContext *context, KilnNode *node, const KilnNode *expansion, const Small *operands,
     const KilnType *type, GError **error)
{
    KilnNode *small = build_small(node, operands, type, error);
    KilnNode *below = small ? build_expansion(node, expansion, &small->results[0], error) : NULL;
    if (!below)
        return NULL;
    kiln_pass_note(context, rule, "%s below %s", kiln_node_label(expansion), kiln_node_label(node));
    kiln_value_replace(&node->results[0], &below->results[0]);
    kiln_node_remove_if_dead(node);
    return small;
}

/* Moves @node in front of an expansion that it reads. *@out_small: what it became; NULL where there
 * is none that it may move in front of. */
static gboolean
move_one(KilnPassContext *context, KilnNode *node, KilnNode **out_small, GError **error)
{
    *out_small = NULL;
    for (uint32_t i = 0; i < node->n_operands && node->n_results == 1; i++) {
        const KilnValue *value = node->operands[i].value;
        const KilnNode *def = value ? value->def : NULL;
        if (!is_expansion(def) || def->function != node->function)
            continue;
        KilnType type;
        g_autofree Small *operands = g_new0(Small, node->n_operands);
        if (!may_move(context, node, def, operands, &type))
            continue;
        *out_small = move(context, node, def, operands, &type, error);
        return *out_small != NULL;
    }
    return TRUE;
}

static gboolean
sweep(KilnFunction *function, KilnPassContext *context, bool *any, GError **error)
{
    *any = false;
    kiln_foreach_node_safe (node, function) {
        KilnNode *at = node, *small;
        do { /* an expansion may read another one */
            if (!move_one(context, at, &small, error))
                return FALSE;
            *any |= small != NULL;
            at = small;
        } while (small);
    }
    return TRUE;
}

GRAPH_PASS(postpone_expansion);

gboolean
kiln_pass_postpone_expansion(KilnFunction *function, KilnPassContext *context, bool *changed,
                             GError **error)
{
    const uint32_t *n_of_op = kiln_function_order(function)->n_of_op;
    bool any;
    *changed = false;
    if (!n_of_op[KILN_OP_expand] && !n_of_op[KILN_OP_tile] && !n_of_op[KILN_OP_constant_of_shape])
        return TRUE;
    do { /* an expansion that lost a reader may have a single one now, which came before */
        if (!sweep(function, context, &any, error))
            return FALSE;
        *changed |= any;
    } while (any);
    return TRUE;
}
