/* SPDX-License-Identifier: Apache-2.0 */
/* Prints graphs: whatever is printed here, parse.c reads back to an equal graph. */
#include "graph/text/print.h"

#include "graph/base/names.h"
#include "graph/base/number.h"
#include "graph/base/random.h"
#include "graph/grow/reserve.h"
#include "graph/module/folding.h"
#include "graph/module/regions.h"
#include "graph/node.h"
#include "graph/op/random.h"

#include <stdio.h>
#include <string.h>

#define FIELD(T, info, attrs) (*(T const *)((const char *)(attrs) + (info)->offset))

void
kiln_sigil_print(char sigil, const char *name, GString *out)
{
    g_string_append_c(out, sigil);
    kiln_name_print(name, out);
}

void
kiln_loc_print(const char *name, const char *result, GString *out)
{
    if (!name || g_strcmp0(name, result) == 0)
        return;
    g_string_append(out, " loc(");
    kiln_string_print(name, out);
    g_string_append_c(out, ')');
}

/* --- attributes --- */

#define PRINT_LIST(list, print_element)                                                            \
    do {                                                                                           \
        g_string_append_c(out, '[');                                                               \
        for (uint32_t i = 0; i < (list).n; i++) {                                                  \
            g_string_append(out, i ? "," : "");                                                    \
            print_element;                                                                         \
        }                                                                                          \
        g_string_append_c(out, ']');                                                               \
    } while (0)

static void
print_optional_string(const char *text, GString *out)
{
    if (text)
        kiln_string_print(text, out);
    else
        g_string_append_c(out, '_');
}

void
kiln_print_number(int64_t number, const KilnDim *open, GString *out)
{
    if (open)
        kiln_dim_print(open, out);
    else
        g_string_append_printf(out, "%" G_GINT64_FORMAT, number);
}

static void
print_attr(const KilnAttrInfo *info, const void *attrs, GString *out)
{
    switch (info->kind) {
    case KILN_ATTR_INT:
        g_string_append_printf(out, "%" G_GINT64_FORMAT, FIELD(KilnC_INT, info, attrs));
        break;
    case KILN_ATTR_BOOL:
        g_string_append(out, FIELD(KilnC_BOOL, info, attrs) ? "true" : "false");
        break;
    case KILN_ATTR_FLOAT:
        kiln_print_f32(out, FIELD(KilnC_FLOAT, info, attrs));
        break;
    case KILN_ATTR_STRING:
        print_optional_string(FIELD(KilnC_STRING, info, attrs), out);
        break;
    case KILN_ATTR_INTS: {
        KilnInts list = FIELD(KilnInts, info, attrs);
        PRINT_LIST(list, kiln_print_number(list.v[i], kiln_ints_open(list, i), out));
        break;
    }
    case KILN_ATTR_FLOATS: {
        KilnFloats list = FIELD(KilnFloats, info, attrs);
        PRINT_LIST(list, kiln_print_f32(out, list.v[i]));
        break;
    }
    case KILN_ATTR_STRINGS: {
        KilnStrings list = FIELD(KilnStrings, info, attrs);
        PRINT_LIST(list, kiln_string_print(list.v[i], out));
        break;
    }
    case KILN_ATTR_DTYPE:
        g_string_append(out, kiln_dtype_name(FIELD(KilnC_DTYPE, info, attrs)));
        break;
    case KILN_ATTR_CONSTANT:
        kiln_sigil_print('@', FIELD(KilnC_CONSTANT, info, attrs)->name, out);
        break;
    case KILN_ATTR_FUNCTION: /* printed as a block */
        break;
    }
}

/* The callee stands in front of the operands. */
static bool
is_listed(const KilnAttrInfo *info, const void *attrs)
{
    return info->kind != KILN_ATTR_FUNCTION && strcmp(info->name, KILN_ATTR_CALLEE) != 0 &&
           !kiln_attr_is_default(info, attrs);
}

/* `{pads=[2,2,2,2], group=2}` without defaults; nothing where all are defaults. Floats read back
 * to the same bits. */
static void
print_attrs(const KilnAttrInfo *infos, uint32_t n, const void *attrs, GString *out)
{
    const char *separator = "{";
    for (uint32_t i = 0; i < n; i++) {
        if (!is_listed(&infos[i], attrs))
            continue;
        g_string_append_printf(out, "%s%s=", separator, infos[i].name);
        print_attr(&infos[i], attrs, out);
        separator = ", ";
    }
    if (*separator == ',')
        g_string_append_c(out, '}');
}

void
kiln_attrs_print_spaced(const KilnAttrInfo *infos, uint32_t n, const void *attrs, GString *out)
{
    gsize before = out->len;
    g_string_append_c(out, ' ');
    print_attrs(infos, n, attrs, out);
    if (out->len == before + 1)
        g_string_truncate(out, before);
}

/* --- functions and nodes --- */

static void print_node(const KilnNode *node, int indent, GString *out);

static void
print_constness(KilnConstness constness, GString *out)
{
    static const char *const words[] = { [KILN_CONSTNESS_RUN] = "run",
                                         [KILN_CONSTNESS_COMPILE] = "compile",
                                         [KILN_CONSTNESS_LITERAL] = "literal" };
    if (words[constness])
        g_string_append_printf(out, " constant=%s", words[constness]);
}

/* KilnArgument* */
static void
print_arguments(const GPtrArray *arguments, GString *out)
{
    g_string_append_c(out, '(');
    for (guint i = 0; i < arguments->len; i++) {
        const KilnArgument *argument = g_ptr_array_index(arguments, i);
        g_string_append(out, i ? ", " : "");
        kiln_sigil_print('%', argument->value.name, out);
        g_string_append(out, ": ");
        kiln_type_print(&argument->value.type, out);
        print_constness(argument->constness, out);
        g_string_append(out, argument->variable ? " variable" : "");
        if (argument->range)
            g_string_append_printf(out, " in %s", argument->range);
    }
    g_string_append_c(out, ')');
}

static void
print_body(const KilnFunction *function, int indent, GString *out)
{
    g_string_append(out, "{\n");
    kiln_foreach_node (node, function) {
        kiln_print_indent(out, indent + KILN_TEXT_INDENT);
        print_node(node, indent + KILN_TEXT_INDENT, out);
        g_string_append_c(out, '\n');
    }
    kiln_print_indent(out, indent);
    g_string_append_c(out, '}');
}

/* `body @name(arguments) {…}`: label, name and arguments only where they say something. */
static void
print_region(const KilnNode *node, const KilnAttrInfo *info, int indent, GString *out)
{
    const KilnFunction *region = FIELD(KilnC_FUNCTION, info, node->attrs);
    if (!region)
        return;
    bool named = strcmp(region->name, info->name) != 0;
    bool bare = kiln_region_is_bare(node->op) && !named && region->arguments->len == 0;
    g_string_append_c(out, ' ');
    if (!bare)
        g_string_append(out, kiln_region_label(info));
    if (named) {
        g_string_append_c(out, ' ');
        kiln_sigil_print('@', region->name, out);
    }
    if (region->arguments->len)
        print_arguments(region->arguments, out);
    g_string_append(out, bare ? "" : " ");
    print_body(region, indent, out);
}

static void
print_operand(const KilnValue *value, GString *out)
{
    if (value)
        kiln_sigil_print('%', value->name, out);
    else
        g_string_append_c(out, '_');
}

static void
print_return(const KilnNode *node, GString *out)
{
    const GPtrArray *names = node->function->result_names;
    g_string_append(out, "return");
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        g_string_append(out, i ? ", " : " ");
        print_operand(value, out);
        const char *name = i < names->len ? g_ptr_array_index(names, i) : NULL;
        if (!value || !name || strcmp(name, value->name) == 0)
            continue;
        g_string_append(out, " as ");
        kiln_word_print(name, out);
    }
}

typedef union {
    KilnAttrs_random_normal normal;
    KilnAttrs_random_uniform uniform;
} RandomAttrs;

/* The attributes of @node without a stream that its name says. */
static const void *
stated_attrs(const KilnNode *node, RandomAttrs *copy)
{
    const int64_t *stream = kiln_node_stream(node);
    if (!stream || *stream != kiln_random_stream(node->results[0].name))
        return node->attrs;
    if (node->op == KILN_OP_random_normal) {
        copy->normal = *kiln_attrs(node, random_normal);
        copy->normal.stream = 0;
    } else {
        copy->uniform = *kiln_attrs(node, random_uniform);
        copy->uniform.stream = 0;
    }
    return copy;
}

static void
print_operation(const KilnNode *node, int indent, GString *out)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    g_string_append(out, info->name);
    if (node->op == KILN_OP_const) {
        const KilnConstant *constant = kiln_attrs(node, const)->value;
        g_string_append_c(out, ' ');
        if (constant)
            kiln_sigil_print('@', constant->name, out);
        else
            g_string_append_c(out, '_');
        return;
    }
    const KilnAttrInfo *callee = kiln_attr_find(info->attrs, info->n_attrs, KILN_ATTR_CALLEE);
    if (callee && FIELD(KilnC_STRING, callee, node->attrs)) {
        g_string_append_c(out, ' ');
        kiln_sigil_print('@', FIELD(KilnC_STRING, callee, node->attrs), out);
    }
    g_string_append_c(out, '(');
    for (uint32_t i = 0; i < node->n_operands; i++) {
        g_string_append(out, i ? ", " : "");
        print_operand(node->operands[i].value, out);
    }
    g_string_append_c(out, ')');
    RandomAttrs copy;
    kiln_attrs_print_spaced(info->attrs, info->n_attrs, stated_attrs(node, &copy), out);
    for (uint32_t i = 0; i < info->n_attrs; i++) {
        if (info->attrs[i].kind == KILN_ATTR_FUNCTION)
            print_region(node, &info->attrs[i], indent, out);
    }
}

static void
print_node(const KilnNode *node, int indent, GString *out)
{
    if (node->op == KILN_OP_return) {
        print_return(node, out);
        kiln_loc_print(node->name, NULL, out);
        return;
    }
    for (uint32_t i = 0; i < node->n_results; i++) {
        g_string_append(out, i ? ", " : "");
        kiln_sigil_print('%', node->results[i].name, out);
    }
    g_string_append(out, node->n_results ? " = " : "");
    print_operation(node, indent, out);
    for (uint32_t i = 0; i < node->n_results; i++) {
        g_string_append(out, i ? ", " : " : ");
        kiln_type_print(&node->results[i].type, out);
    }
    print_constness(node->mark, out);
    kiln_loc_print(node->name, node->n_results ? node->results[0].name : NULL, out);
}

void
kiln_node_print(const KilnNode *node, GString *out)
{
    print_node(node, 0, out);
}

void
kiln_function_print(const KilnFunction *function, GString *out)
{
    g_string_append(out, "graph ");
    kiln_sigil_print('@', function->name, out);
    print_arguments(function->arguments, out);
    g_string_append_c(out, ' ');
    print_body(function, 0, out);
    g_string_append_c(out, '\n');
}

/* --- modules --- */

static void
print_types(const KilnType *types, uint32_t n, GString *out)
{
    for (uint32_t i = 0; i < n; i++) {
        g_string_append(out, i ? ", " : "");
        kiln_type_print(&types[i], out);
    }
}

static void
print_declaration(const KilnDeclaration *declaration, GString *out)
{
    g_string_append(out, "declare ");
    kiln_sigil_print('@', declaration->name, out);
    g_string_append_c(out, '(');
    print_types(declaration->operands, declaration->n_operands, out);
    g_string_append(out, ") -> ");
    print_types(declaration->results, declaration->n_results, out);
    g_string_append(out, declaration->n_results ? "" : "()");
    if (declaration->body) {
        g_string_append(out, " body");
        if (declaration->body->arguments->len)
            print_arguments(declaration->body->arguments, out);
        g_string_append_c(out, ' ');
        print_body(declaration->body, 0, out);
    }
    g_string_append_c(out, '\n');
}

static void
print_declarations(const KilnModule *module, GString *out)
{
    for (guint i = 0; i < module->declarations->len; i++)
        print_declaration(g_ptr_array_index(module->declarations, i), out);
}

/* `%f0, %f1 = compile @compiletime_fold(%w)` */
static void
print_fold(const KilnFolding *folding, const KilnFold *fold, GString *out)
{
    for (uint32_t i = 0; i < fold->n_results; i++) {
        g_string_append(out, i ? ", " : "");
        kiln_sigil_print('%', fold->results[i], out);
    }
    g_string_append(out, fold->when == KILN_CONSTNESS_COMPILE ? " = compile " : " = run ");
    kiln_sigil_print('@', fold->function, out);
    g_string_append_c(out, '(');
    for (uint32_t i = 0; i < fold->n_operands; i++) {
        g_string_append(out, i ? ", " : "");
        kiln_sigil_print('%', kiln_folding_name(folding, fold->operands[i]), out);
    }
    g_string_append_c(out, ')');
}

/* `fold(arguments) { calls }` */
static void
print_folding(const KilnFolding *folding, GString *out)
{
    g_string_append(out, "fold");
    print_arguments(folding->signature, out);
    g_string_append(out, " {\n");
    for (guint i = 0; i < folding->folds->len; i++) {
        kiln_print_indent(out, KILN_TEXT_INDENT);
        print_fold(folding, g_ptr_array_index(folding->folds, i), out);
        g_string_append_c(out, '\n');
    }
    g_string_append(out, "}\n");
}

/* An empty line between blocks: where something was printed after @start. */
static gsize
separate(GString *out, gsize start)
{
    if (out->len > start)
        g_string_append_c(out, '\n');
    return out->len;
}

gboolean
kiln_module_print_rest(const KilnModule *module, const KilnPrintOptions *options, gsize start,
                       GString *out, GError **error)
{
    bool constants = module->constants->len && !(options && options->no_constants);
    g_autoptr(GString) dims = g_string_new(NULL);
    kiln_dims_print(module->dims, dims);
    if (dims->len) {
        start = separate(out, start);
        g_string_append_len(out, dims->str, (gssize)dims->len);
    }
    if (module->folding) {
        start = separate(out, start);
        print_folding(module->folding, out);
    }
    if (module->declarations->len) {
        start = separate(out, start);
        print_declarations(module, out);
    }
    if (!kiln_metadata_is_empty(&module->metadata) && !(options && options->no_constants)) {
        start = separate(out, start);
        kiln_metadata_print(&module->metadata, out);
    }
    if (!constants)
        return kiln_reserve_check_lost(error);
    separate(out, start);
    return kiln_constants_print(module, options, out, error);
}

gboolean
kiln_module_print(const KilnModule *module, const KilnPrintOptions *options, GString *out,
                  GError **error)
{
    gsize start = out->len;
    for (guint i = 0; i < module->functions->len; i++) {
        separate(out, start);
        kiln_function_print(g_ptr_array_index(module->functions, i), out);
    }
    return kiln_module_print_rest(module, options, start, out, error);
}

void
kiln_node_dump(const KilnNode *node)
{
    g_autoptr(GString) text = g_string_new(NULL);
    kiln_node_print(node, text);
    fprintf(stderr, "%s\n", text->str);
}
