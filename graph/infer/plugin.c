/* SPDX-License-Identifier: Apache-2.0 */
/* The shape functions of plug-ins. What they do not know, the builder may have stated. */
#include "graph/infer/common.h"

#include "graph/graph.h"
#include "graph/kiln-op.h"

#include "graph/op/plugin.h"
#include "graph/plugin/plugin.h"
#include "graph/plugin/shape.h"

static gboolean
throw_missing(const KilnPluginColumns *columns, GError **error)
{
    g_autofree char *name = kiln_plugin_name(columns->domain, columns->op_type);
    g_autofree char *opsets = kiln_plugin_opsets(columns->domain, columns->op_type);
    return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                      "operator %s of opset %" G_GINT64_FORMAT ": %s", name, columns->opset,
                      opsets ? opsets : KILN_PLUGIN_HINT);
}

/* "com.example:Softsign2 of plug-in ./softsign2.so: …", in front of the text that is there. */
static gboolean
prefix(const KilnOpDescription *op, GError **error)
{
    g_autofree char *name = kiln_plugin_name(op->domain, op->name);
    kiln_prefix_error(error, "%s of %s: ", name, kiln_plugin_from(op));
    return FALSE;
}

static gboolean
check_count(const char *what, unsigned found, unsigned least, unsigned most, GError **error)
{
    if (found >= least && (most >= KILN_OP_ANY_NUMBER || found <= most))
        return TRUE;
    g_autofree char *expected =
        kiln_arity_text(least, most >= KILN_OP_ANY_NUMBER ? (uint32_t)KILN_MANY : most);
    return kiln_throw(error, KILN_ERROR_INVALID, "expected %s %s, found %u", expected, what, found);
}

static gboolean
check_node(const KilnInfer *in, const KilnOpDescription *op, const KilnPluginColumns *columns,
           GError **error)
{
    const KilnNode *node = in->node;
    const bool pure = op->flags & KILN_OP_PURE;
    if (pure != (node->op == KILN_OP_plugin_op))
        return kiln_throw(error, KILN_ERROR_INVALID, "expected %s, found %s",
                          pure ? "plugin_op" : "plugin_effect", kiln_op_info(node->op)->name);
    if (!check_count("inputs", node->n_operands, op->min_inputs, op->max_inputs, error) ||
        !check_count("outputs", node->n_results, op->min_outputs, op->max_outputs, error))
        return FALSE;
    for (unsigned i = 0; i < op->min_inputs; i++) {
        if (!kiln_infer_type(in, i))
            return kiln_throw(error, KILN_ERROR_INVALID, "input %u is required, found none", i);
    }
    return kiln_plugin_check_attributes(columns, op, error);
}

/* Takes what is not known from the stated types. */
static void
complete(KilnInfer *in)
{
    for (uint32_t r = 0; in->given && r < in->node->n_results; r++) {
        KilnType *type = &in->out[r];
        const KilnType *given = &in->given[r];
        if (type->rank < 0 && given->dtype == type->dtype && given->rank >= 0) {
            *type = *given;
            type->quant = NULL;
            type->layout = NULL;
        }
        for (int d = 0; type->rank == given->rank && d < type->rank; d++) {
            if (kiln_type_knows_dim(type, d))
                continue;
            type->dims[d] = given->dims[d];
            type->open[d] = given->open[d];
        }
    }
}

KILN_INFER(plugin)
{
    const KilnPluginColumns columns = kiln_node_plugin_columns(in->node);
    const KilnOpDescription *op = kiln_plugin_find(columns.domain, columns.op_type, columns.opset);
    if (!op)
        return throw_missing(&columns, error);
    if (!check_node(in, op, &columns, error))
        return prefix(op, error);
    g_autofree bool *stated = g_new0(bool, in->node->n_results + 1);
    KilnOpShape shape = { .in = in, .stated = stated };
    void *memory = kiln_arena_alloc(in->arena, kiln_op_attributes_bytes(&columns, false) + 1);
    kiln_op_attributes_init(&shape.attributes, op, &columns, memory, false);
    gboolean good = kiln_op_shape_ask(&shape, error);
    g_free(shape.why);
    if (!good)
        return prefix(op, error);
    complete(in);
    return TRUE;
}
