/* SPDX-License-Identifier: Apache-2.0 */
/* merge-batched-adds: what is added to each part of a value is added once, before it is taken
 * apart.
 *
 *            x                                     x   s
 *         /     \                                   \ /
 *     x[0:2]   x[2:5]                               add
 *       |        |                                 /   \
 *      add s    add s              =>         [0:2]     [2:5]
 *       |        |                              |         |
 *
 *   part-arithmetic   any element-wise operator that broadcasts its two operands, the part on the
 *                     same side of all
 *
 * requires nothing, preserves nothing; class E: the same operation on each element, in another
 * place. The parts are slices along one axis, or the results of a split, that are all of x in
 * order; nothing else reads them; s does not vary along the axis and makes the parts no bigger. As
 * many elements are computed and copied as before, in one go. One forward sweep: the first of the
 * operators stands before all others, so that what it reads is there for the merged one. */
#include "graph/op/activation.h"
#include "graph/op/quantize.h"
#include "graph/op/slice.h"
#include "passes/pass.h"
#include "passes/query/literal.h"
#include "passes/query/movement.h"

static const char rule[] = "part-arithmetic";

/* The operators that are applied to the parts of one value, in order of the parts. */
typedef struct {
    KilnPart part;    /* of the first */
    uint32_t side;    /* the operand that is the part */
    GPtrArray *nodes; /* KilnNode* */
} Group;

/* Scales stand along an axis of their own, and slopes are repeated where data are not. */
static bool
may_grow(const KilnNode *node, uint32_t side)
{
    return node->op != KILN_OP_quantize_linear && node->op != KILN_OP_dequantize_linear &&
           (node->op != KILN_OP_prelu || side == 0);
}

static bool
is_binary(const KilnNode *node)
{
    return kiln_op_has(node->op, KILN_TRAIT_ELEMENTWISE) && node->n_operands == 2;
}

/* --- finding groups --- */

/* The one node that reads @part, if it does to it what @first does to its part. */
static KilnNode *
same_arithmetic(const KilnValue *part, const KilnNode *first, uint32_t side)
{
    if (!kiln_value_single_use(part))
        return NULL;
    KilnNode *node = part->first_use->user;
    const KilnOpInfo *info = kiln_op_info(first->op);
    bool same = node->op == first->op && node->n_operands == 2 &&
                node->function == first->function && part->first_use->index == side &&
                node->operands[1 - side].value == first->operands[1 - side].value &&
                kiln_attrs_equal(info->attrs, info->n_attrs, node->attrs, first->attrs);
    return same ? node : NULL;
}

typedef struct {
    int64_t begin, end;
    KilnValue *value;
} Piece;

static int
by_begin(const void *left, const void *right)
{
    const Piece *a = left, *b = right;
    return a->begin != b->begin ? (a->begin < b->begin ? -1 : 1)
                                : (a->end > b->end) - (a->end < b->end);
}

/* The parts of a value that @maker makes, if it is a split, or that all slices of it are; by where
 * they begin. */
static GArray *
pieces_of(const KilnFunction *function, const KilnNode *maker, const KilnPart *like)
{
    GArray *pieces = g_array_new(FALSE, FALSE, sizeof(Piece));
    kiln_foreach_use (use, like->source) {
        if (use->index != 0 || use->user->op != maker->op ||
            (maker->op == KILN_OP_split && use->user != maker))
            continue;
        for (uint32_t r = 0; r < use->user->n_results; r++) {
            KilnPart part;
            KilnValue *value = &use->user->results[r];
            if (kiln_part_of(value, function, &part) && part.source == like->source &&
                part.axis == like->axis) {
                Piece piece = { part.begin, part.end, value };
                g_array_append_val(pieces, piece);
            }
        }
    }
    g_array_sort(pieces, by_begin);
    return pieces;
}

/* The parts must follow each other from the first element to the last, each read by its like. */
static bool
find_group(KilnPassContext *context, KilnNode *first, Group *group)
{
    g_autoptr(GArray) pieces =
        pieces_of(first->function, first->operands[group->side].value->def, &group->part);
    int64_t at = 0;
    for (guint i = 0; i < pieces->len; i++) {
        const Piece *piece = &g_array_index(pieces, Piece, i);
        PASS_GUARD(consecutive, piece->begin == at);
        KilnNode *node = same_arithmetic(piece->value, first, group->side);
        PASS_GUARD(same_arithmetic, node != NULL);
        g_ptr_array_add(group->nodes, node);
        at = piece->end;
    }
    PASS_GUARD(complete, at == group->part.source->type.dims[group->part.axis]);
    PASS_GUARD(several, group->nodes->len > 1);
    return true;
}

static bool
fits(KilnPassContext *context, const KilnNode *node, const Group *group)
{
    const KilnType *part = &node->operands[group->side].value->type;
    const KilnType *other = &node->operands[1 - group->side].value->type;
    const KilnType *x = &group->part.source->type;
    uint32_t along = 1u << group->part.axis;
    PASS_GUARD(plain, !x->layout && !x->quant && !other->layout && !other->quant);
    PASS_GUARD(broadcasts, may_grow(node, group->side));
    PASS_GUARD(same_for_all, !(kiln_broadcast_dims(other, x) & along));
    PASS_GUARD(no_bigger, kiln_type_equal_shape(part, &node->results[0].type));
    return true;
}

/* --- rewriting --- */

static KilnNode *
build_merged(KilnNode *first, const Group *group, GError **error)
{
    KilnValue *operands[2];
    operands[group->side] = group->part.source;
    operands[1 - group->side] = first->operands[1 - group->side].value;
    KilnType type = group->part.source->type;
    type.dtype = first->results[0].type.dtype;
    KilnNodeSpec spec = { .op = first->op,
                          .operands = operands,
                          .n_operands = 2,
                          .attrs = first->attrs,
                          .types = &type,
                          .before = first };
    return kiln_node_new(first->function, &spec, error);
}

/* The node that takes @merged apart as @maker took its own operand. */
static KilnNode *
build_parts(KilnNode *maker, KilnValue *merged, KilnNode *before, GError **error)
{
    g_autofree KilnValue **operands = g_new(KilnValue *, maker->n_operands);
    g_autofree KilnType *types = g_new(KilnType, maker->n_results);
    for (uint32_t i = 0; i < maker->n_operands; i++)
        operands[i] = i ? maker->operands[i].value : merged;
    for (uint32_t r = 0; r < maker->n_results; r++) {
        types[r] = maker->results[r].type;
        types[r].dtype = merged->type.dtype;
    }
    KilnNodeSpec spec = { .op = maker->op,
                          .name = maker->name,
                          .operands = operands,
                          .n_operands = maker->n_operands,
                          .n_results = maker->n_results,
                          .attrs = maker->attrs,
                          .types = types,
                          .before = before };
    return kiln_node_new(before->function, &spec, error);
}

static gboolean
merge(KilnPassContext *context, KilnNode *first, const Group *group, GError **error)
{
    KilnNode *merged = build_merged(first, group, error), *parts = NULL;
    const KilnNode *of = NULL;
    if (!merged)
        return FALSE;
    kiln_pass_note(context, rule, "%s and %u more", kiln_node_label(first), group->nodes->len - 1);
    for (guint i = 0; i < group->nodes->len; i++) {
        KilnNode *node = g_ptr_array_index(group->nodes, i);
        const KilnValue *part = node->operands[group->side].value;
        if (part->def != of) {
            of = part->def;
            parts = build_parts(part->def, &merged->results[0],
                                of->op == KILN_OP_split ? first : node, error);
            if (!parts)
                return FALSE;
        }
        kiln_value_replace(&node->results[0], &parts->results[part->index]);
    }
    return TRUE;
}

/* --- the sweep --- */

/* The group of @node, if it is the first of one. @tried: what was looked at before, splits and
 * sources of slices. */
static bool
begins_group(KilnPassContext *context, KilnNode *node, uint32_t side, GHashTable *tried,
             Group *group)
{
    const KilnValue *part = node->operands[side].value;
    *group = (Group){ .side = side };
    if (!kiln_part_of(part, node->function, &group->part))
        return false;
    bool by_split = part->def->op == KILN_OP_split;
    const void *key = by_split ? (const void *)part->def : (const void *)group->part.source;
    if (!g_hash_table_add(tried, (gpointer)key))
        return false;
    group->nodes = g_ptr_array_new();
    if (fits(context, node, group) && find_group(context, node, group))
        return true;
    g_clear_pointer(&group->nodes, g_ptr_array_unref);
    return false;
}

GRAPH_PASS(merge_batched_adds);

gboolean
kiln_pass_merge_batched_adds(KilnFunction *function, KilnPassContext *context, bool *changed,
                             GError **error)
{
    *changed = false;
    g_autoptr(GHashTable) tried = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) replaced = g_ptr_array_new();
    kiln_foreach_node (node, function) {
        for (uint32_t side = 0; side < 2 && is_binary(node); side++) {
            Group group;
            if (!begins_group(context, node, side, tried, &group))
                continue;
            gboolean ok = merge(context, node, &group, error);
            g_ptr_array_extend(replaced, group.nodes, NULL, NULL);
            g_ptr_array_unref(group.nodes);
            if (!ok)
                return FALSE;
            *changed = true;
            break;
        }
    }
    for (guint i = 0; i < replaced->len; i++)
        kiln_node_remove_if_dead(g_ptr_array_index(replaced, i));
    return TRUE;
}
