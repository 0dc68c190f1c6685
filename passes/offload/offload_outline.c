/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/offload/offload_outline.h"

#include "graph/function.h"
#include "graph/module/folding.h"
#include "graph/module/outline.h"
#include "graph/node.h"
#include "graph/op/bounds.h"
#include "graph/op/offload.h"

typedef struct {
    const GPtrArray *members; /* KilnNode* */
    GHashTable *inside;       /* a set of the same */
    KilnFunction *body;
    GHashTable *values;  /* of the function → of the body */
    GPtrArray *captured; /* KilnValue* */
    GPtrArray *results;  /* KilnValue* of the function, and in the body below */
    GPtrArray *inner;
} Outline;

/* Literals in place of attributes. */
static bool
is_cloned(const KilnNode *node, uint32_t i)
{
    bool attribute = node->op == KILN_OP_clip ? i > 0 : kiln_op_is_shape_operand(node->op, i);
    return attribute && kiln_value_constant(node->operands[i].value);
}

static bool
read_outside(const Outline *outline, const KilnValue *value)
{
    kiln_foreach_use (use, value) {
        if (!g_hash_table_contains(outline->inside, use->user))
            return true;
    }
    return false;
}

KilnValue *
kiln_offload_capture(KilnFunction *body, KilnValue *value, GHashTable *values, GPtrArray *captured,
                     GError **error)
{
    const char *name = kiln_function_unique_name(body, value->name);
    KilnArgument *argument = kiln_function_add_argument(body, name, &value->type, error);
    if (!argument)
        return NULL;
    if (kiln_value_constant(value))
        argument->constness = KILN_CONSTNESS_COMPILE;
    g_hash_table_insert(values, value, &argument->value);
    g_ptr_array_add(captured, value);
    return &argument->value;
}

static bool
capture(Outline *outline, const KilnNode *node, uint32_t i, GError **error)
{
    KilnValue *inner = kiln_offload_capture(outline->body, node->operands[i].value, outline->values,
                                            outline->captured, error);
    if (inner && kiln_operand_is_fixed(node, i))
        ((KilnArgument *)inner)->constness = KILN_CONSTNESS_COMPILE;
    return inner != NULL;
}

static bool
bring_operands(Outline *outline, KilnNode *node, GError **error)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *value = node->operands[i].value;
        if (!value || g_hash_table_contains(outline->values, value))
            continue;
        bool ok = is_cloned(node, i) ? kiln_node_copy(outline->body, value->def, outline->values,
                                                      NULL, NULL, error) != NULL
                                     : capture(outline, node, i, error);
        if (!ok)
            return false;
    }
    return true;
}

static bool
fill_body(Outline *outline, GError **error)
{
    for (guint m = 0; m < outline->members->len; m++) {
        KilnNode *node = g_ptr_array_index(outline->members, m);
        if (!bring_operands(outline, node, error) ||
            !kiln_node_copy(outline->body, node, outline->values, NULL, NULL, error))
            return false;
        for (uint32_t r = 0; r < node->n_results; r++) {
            KilnValue *result = &node->results[r];
            if (!read_outside(outline, result))
                continue;
            g_ptr_array_add(outline->results, result);
            g_ptr_array_add(outline->inner, g_hash_table_lookup(outline->values, result));
        }
    }
    return kiln_function_set_results(outline->body, (KilnValue *const *)outline->inner->pdata, NULL,
                                     outline->inner->len, error);
}

static KilnNode *
make_node(KilnFunction *function, const Outline *outline, const char *callee, GError **error)
{
    guint n = outline->results->len;
    g_autofree KilnType *types = g_new0(KilnType, n + 1);
    for (guint i = 0; i < n; i++)
        types[i] = ((KilnValue *)g_ptr_array_index(outline->results, i))->type;
    KilnAttrs_vendor_graph attrs = { .callee = callee, .body = outline->body };
    return kiln_node_new(function,
                         &(KilnNodeSpec){ .op = KILN_OP_vendor_graph,
                                          .operands = (KilnValue *const *)outline->captured->pdata,
                                          .n_operands = outline->captured->len,
                                          .n_results = n,
                                          .attrs = &attrs,
                                          .types = types },
                         error);
}

KilnNode *
kiln_offload_outline(KilnFunction *function, const GPtrArray *members, const char *callee,
                     GError **error)
{
    Outline outline = { .members = members,
                        .inside = g_hash_table_new(NULL, NULL),
                        .body = kiln_function_new_region(function->module, "body"),
                        .values = g_hash_table_new(NULL, NULL),
                        .captured = g_ptr_array_new(),
                        .results = g_ptr_array_new(),
                        .inner = g_ptr_array_new() };
    for (guint m = 0; m < members->len; m++)
        g_hash_table_add(outline.inside, g_ptr_array_index(members, m));
    KilnNode *node =
        fill_body(&outline, error) ? make_node(function, &outline, callee, error) : NULL;
    for (guint i = 0; node && i < outline.results->len; i++)
        kiln_value_replace(g_ptr_array_index(outline.results, i), &node->results[i]);
    for (guint m = members->len; node && m > 0; m--)
        kiln_node_remove(g_ptr_array_index(members, m - 1));
    g_hash_table_unref(outline.inside);
    g_hash_table_unref(outline.values);
    g_ptr_array_unref(outline.captured);
    g_ptr_array_unref(outline.results);
    g_ptr_array_unref(outline.inner);
    return node;
}

static const char *
callee_of(const KilnNode *node)
{
    return node->op == KILN_OP_custom_op ? kiln_attrs(node, custom_op)->callee
                                         : kiln_attrs(node, vendor_graph)->callee;
}

uint32_t
kiln_offload_next_number(const KilnModule *module, KilnOp op, char prefix)
{
    uint32_t next = 0;
    for (guint f = 0; f < module->all_functions->len; f++) {
        const KilnFunction *function = g_ptr_array_index(module->all_functions, f);
        kiln_foreach_node (node, function) {
            const char *callee = node->op == op ? callee_of(node) : NULL;
            uint64_t number =
                callee && callee[0] == prefix ? g_ascii_strtoull(callee + 1, NULL, 10) : UINT32_MAX;
            if (number < UINT32_MAX) /* others are no numbers of ours */
                next = MAX(next, (uint32_t)number + 1);
        }
    }
    return next;
}
