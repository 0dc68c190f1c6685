/* SPDX-License-Identifier: Apache-2.0 */
/* Writes DOT. Functions are numbered in the order of the walk, so that ids depend on the module
 * alone. */
#include "graph/text/json.h"

#include "graph/module/regions.h"
#include "graph/text/print.h"

typedef struct {
    GHashTable *numbers; /* KilnFunction* → its number + 1; looked up only */
    GString *out;
} Dot;

static void write_function(Dot *dot, const KilnFunction *function, const char *label, int indent);

static guint
number_of(const Dot *dot, const KilnFunction *function)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(dot->numbers, function)) - 1;
}

/* Printed names hold no control characters; quotes and backslashes are what DOT minds. */
static void
write_label(Dot *dot, const GString *text)
{
    for (const char *at = text->str; *at; at++) {
        if (*at == '\n') {
            g_string_append(dot->out, "\\n");
            continue;
        }
        if (*at == '"' || *at == '\\')
            g_string_append_c(dot->out, '\\');
        g_string_append_c(dot->out, *at);
    }
}

static void
write_box(Dot *dot, const char *id, const char *shape, const GString *label, int indent)
{
    kiln_print_indent(dot->out, indent);
    g_string_append_printf(dot->out, "%s [shape=%s, label=\"", id, shape);
    write_label(dot, label);
    g_string_append(dot->out, "\"];\n");
}

static void
write_edge(Dot *dot, const KilnUse *use, const char *to, int indent)
{
    const KilnValue *value = use->value;
    kiln_print_indent(dot->out, indent);
    if (value->def) {
        g_string_append_printf(dot->out, "f%u_n%u -> %s", number_of(dot, value->def->function),
                               value->def->id, to);
    } else {
        const KilnArgument *argument = (const KilnArgument *)value;
        g_string_append_printf(dot->out, "f%u_a%u -> %s", number_of(dot, argument->function),
                               value->index, to);
    }
    g_autoptr(GString) label = g_string_new(NULL);
    kiln_sigil_print('%', value->name, label);
    g_string_append(dot->out, " [label=\"");
    write_label(dot, label);
    g_string_append(dot->out, "\"];\n");
}

static void
write_value(const KilnValue *value, GString *label)
{
    g_string_append_c(label, '\n');
    kiln_sigil_print('%', value->name, label);
    g_string_append(label, ": ");
    kiln_type_print(&value->type, label);
}

static void
write_node(Dot *dot, const KilnNode *node, int indent)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    bool constant = node->op == KILN_OP_const && kiln_attrs(node, const)->value;
    g_autoptr(GString) label = g_string_new(info->name);
    if (constant) {
        g_string_append_c(label, ' ');
        kiln_sigil_print('@', kiln_attrs(node, const)->value->name, label);
    } else {
        kiln_attrs_print_spaced(info->attrs, info->n_attrs, node->attrs, label);
    }
    for (uint32_t i = 0; i < node->n_results; i++)
        write_value(&node->results[i], label);
    kiln_loc_print(node->name, node->n_results ? node->results[0].name : NULL, label);
    char id[40];
    g_snprintf(id, sizeof id, "f%u_n%u", number_of(dot, node->function), node->id);
    write_box(dot, id, constant ? "ellipse" : "box", label, indent);
    kiln_foreach_region (region, node)
        write_function(dot, region, kiln_region_label(&info->attrs[i_region]), indent);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (node->operands[i].value)
            write_edge(dot, &node->operands[i], id, indent);
    }
}

static void
write_function(Dot *dot, const KilnFunction *function, const char *label, int indent)
{
    guint number = g_hash_table_size(dot->numbers);
    g_hash_table_insert(dot->numbers, (gpointer)function, GUINT_TO_POINTER(number + 1));
    g_autoptr(GString) title = g_string_new(label);
    g_string_append_c(title, ' ');
    kiln_sigil_print('@', function->name, title);
    kiln_print_indent(dot->out, indent);
    g_string_append_printf(dot->out, "subgraph cluster_%u {\n", number);
    kiln_print_indent(dot->out, indent + KILN_TEXT_INDENT);
    g_string_append(dot->out, "label=\"");
    write_label(dot, title);
    g_string_append(dot->out, "\";\n");
    for (guint i = 0; i < function->arguments->len; i++) {
        g_autoptr(GString) argument = g_string_new("argument");
        write_value(&kiln_function_argument(function, i)->value, argument);
        char id[40];
        g_snprintf(id, sizeof id, "f%u_a%u", number, i);
        write_box(dot, id, "ellipse", argument, indent + KILN_TEXT_INDENT);
    }
    kiln_foreach_node (node, function)
        write_node(dot, node, indent + KILN_TEXT_INDENT);
    kiln_print_indent(dot->out, indent);
    g_string_append(dot->out, "}\n");
}

void
kiln_module_dot(const KilnModule *module, GString *out)
{
    Dot dot = { .numbers = g_hash_table_new(NULL, NULL), .out = out };
    g_string_append(out, "digraph kiln {\n  node [fontname=\"monospace\"];\n");
    for (guint i = 0; i < module->functions->len; i++)
        write_function(&dot, g_ptr_array_index(module->functions, i), "graph", KILN_TEXT_INDENT);
    g_string_append(out, "}\n");
    g_hash_table_unref(dot.numbers);
}
