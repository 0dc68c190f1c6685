/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts at the edges of a region: by tags, which values lie in them, and which is faster. */
#include "backends/onednn/region.h"
#include "graph/op/concat.h"
#include "graph/op/conv.h"
#include "graph/op/offload.h"

static const char *
tag_of(Layout layout, int rank)
{
    static const char *const tags[][6] = {
        { [3] = "acb", [4] = "acdb", [5] = "acdeb" },
        { [3] = "aBc16b", [4] = "aBcd16b", [5] = "aBcde16b" },
        { [3] = "aBc8b", [4] = "aBcd8b", [5] = "aBcde8b" },
    };
    return tags[layout == LAYOUT_CHANNELS_LAST ? 0 : kiln_onednn_block() == 16 ? 1 : 2][rank];
}

Layout
kiln_onednn_layout_of_tag(const KilnType *type)
{
    for (int layout = 1; layout < N_LAYOUTS && type->layout && type->rank <= 5; layout++) {
        if (g_strcmp0(tag_of((Layout)layout, type->rank), type->layout) == 0)
            return (Layout)layout;
    }
    return LAYOUT_PLAIN;
}

/* --- the vendor's table: layouts are counted without the plain one --- */

Layout
kiln_onednn_layout_at(uint32_t i)
{
    return (Layout)(i + 1);
}

uint32_t
kiln_onednn_layout_index(Layout layout)
{
    return (uint32_t)layout - 1;
}

const char *
kiln_onednn_layout_tag(uint32_t layout, int rank)
{
    return rank >= 3 && rank <= 5 ? tag_of(kiln_onednn_layout_at(layout), rank) : NULL;
}

/* Reads operand 0 and gives its result in the layout of the region. */
static bool
is_window(const KilnNode *node)
{
    Window window;
    return kiln_onednn_window_of_node(node, &window);
}

/* As kiln_onednn_build_concat() does: what is no whole block is joined in channels-last. */
static bool
is_joined_in(const KilnNode *concat, Layout layout)
{
    for (uint32_t i = 0; i < concat->n_operands; i++) {
        if (layout == LAYOUT_BLOCKED &&
            concat->operands[i].value->type.dims[1] % kiln_onednn_block())
            return false;
    }
    return true;
}

static bool
reads_laid(const KilnNode *node, GHashTable *laid)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (g_hash_table_contains(laid, node->operands[i].value))
            return true;
    }
    return false;
}

/* Operand or result @i of @node, a custom_op that reads what lies in @layout, lies in it. */
static bool
custom_lies_in(const KilnNode *node, uint32_t i, bool is_result, Layout layout)
{
    const KilnFunction *body = kiln_attrs(node, custom_op)->body;
    g_autoptr(GHashTable) inner = kiln_onednn_custom_laid(body, layout);
    const KilnValue *value = is_result ? kiln_function_return(body)->operands[i].value
                                       : &kiln_function_argument(body, i)->value;
    return inner && g_hash_table_contains(inner, value);
}

/* @result of @node lies in @layout, where @laid (a set of KilnValue) are the values before. */
static bool
gives_layout(const KilnNode *node, const KilnValue *result, GHashTable *laid, Layout layout)
{
    if (result->type.rank < 3 || result->type.rank > 5)
        return false;
    if (is_window(node))
        return true;
    if (node->op == KILN_OP_concat)
        return is_joined_in(node, layout);
    if (node->op == KILN_OP_custom_op)
        return reads_laid(node, laid) && custom_lies_in(node, result->index, true, layout);
    if (!kiln_op_has(node->op, KILN_TRAIT_ELEMENTWISE))
        return false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && kiln_type_same_shape(&value->type, &result->type) &&
            g_hash_table_contains(laid, value))
            return true;
    }
    return false;
}

static bool
reads_layout(const KilnNode *node, uint32_t i, GHashTable *laid, Layout layout)
{
    const KilnType *type = &node->operands[i].value->type;
    if (is_window(node)) {
        bool few =
            node->op == KILN_OP_conv && layout == LAYOUT_BLOCKED && type->dims[1] <= FEW_CHANNELS;
        return i == 0 && !few;
    }
    if (node->op == KILN_OP_concat)
        return is_joined_in(node, layout);
    if (node->op == KILN_OP_custom_op)
        return reads_laid(node, laid) && custom_lies_in(node, i, false, layout);
    return kiln_op_has(node->op, KILN_TRAIT_ELEMENTWISE) &&
           kiln_type_same_shape(type, &node->results[0].type) &&
           g_hash_table_contains(laid, &node->results[0]);
}

bool
kiln_onednn_lies_in(const KilnFunction *body, const KilnValue *value, uint32_t layout)
{
    if (value->type.rank < 3 || value->type.rank > 5)
        return false;
    g_autoptr(GHashTable) laid = g_hash_table_new(NULL, NULL);
    kiln_foreach_node (node, body) {
        for (uint32_t r = 0; r < node->n_results; r++) {
            KilnValue *result = &node->results[r];
            if (gives_layout(node, result, laid, kiln_onednn_layout_at(layout)))
                g_hash_table_add(laid, result);
        }
    }
    if (value->def)
        return g_hash_table_contains(laid, value);
    kiln_foreach_use (use, value) {
        if (use->user->n_results &&
            reads_layout(use->user, use->index, laid, kiln_onednn_layout_at(layout)))
            return true;
    }
    return false;
}
