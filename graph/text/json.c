/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON by json-glib. */
#include "graph/text/json.h"

#include "graph/base/number.h"
#include "graph/node.h"

#include <math.h>

#define FIELD(T, info, attrs) (*(T const *)((const char *)(attrs) + (info)->offset))

static void write_function(JsonBuilder *builder, const KilnFunction *function);

/* --- values --- */

static void
add_string(JsonBuilder *builder, const char *value)
{
    g_autofree char *valid = g_utf8_make_valid(value, -1);
    json_builder_add_string_value(builder, valid);
}

void
kiln_json_string(JsonBuilder *builder, const char *name, const char *value)
{
    json_builder_set_member_name(builder, name);
    add_string(builder, value);
}

void
kiln_json_type(JsonBuilder *builder, const char *name, const KilnType *type)
{
    g_autofree char *text = kiln_type_to_string(type);
    kiln_json_string(builder, name, text);
}

void
kiln_json_float(JsonBuilder *builder, double value)
{
    if (isfinite(value))
        json_builder_add_double_value(builder, value);
    else
        json_builder_add_string_value(builder, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

/* A float's shortest decimal: 0.1 and not what 0.1f is as a double. */
static void
add_f32(JsonBuilder *builder, float value)
{
    g_autoptr(GString) text = g_string_new(NULL);
    kiln_print_f32(text, value);
    kiln_json_float(builder, isfinite(value) ? g_ascii_strtod(text->str, NULL) : (double)value);
}

/* --- attributes --- */

static void
add_list(JsonBuilder *builder, const KilnAttrInfo *info, const void *attrs)
{
    json_builder_begin_array(builder);
    if (info->kind == KILN_ATTR_INTS) {
        KilnInts list = FIELD(KilnInts, info, attrs);
        for (uint32_t i = 0; i < list.n; i++) {
            const KilnDim *open = kiln_ints_open(list, i);
            g_autofree char *text = open ? kiln_dim_to_string(open) : NULL;
            if (text)
                json_builder_add_string_value(builder, text);
            else
                json_builder_add_int_value(builder, list.v[i]);
        }
    } else if (info->kind == KILN_ATTR_FLOATS) {
        KilnFloats list = FIELD(KilnFloats, info, attrs);
        for (uint32_t i = 0; i < list.n; i++)
            add_f32(builder, list.v[i]);
    } else {
        KilnStrings list = FIELD(KilnStrings, info, attrs);
        for (uint32_t i = 0; i < list.n; i++)
            add_string(builder, list.v[i]);
    }
    json_builder_end_array(builder);
}

static void
add_attr(JsonBuilder *builder, const KilnAttrInfo *info, const void *attrs)
{
    switch (info->kind) {
    case KILN_ATTR_INT:
        json_builder_add_int_value(builder, FIELD(KilnC_INT, info, attrs));
        break;
    case KILN_ATTR_BOOL:
        json_builder_add_boolean_value(builder, FIELD(KilnC_BOOL, info, attrs));
        break;
    case KILN_ATTR_FLOAT:
        add_f32(builder, FIELD(KilnC_FLOAT, info, attrs));
        break;
    case KILN_ATTR_STRING:
        if (FIELD(KilnC_STRING, info, attrs))
            add_string(builder, FIELD(KilnC_STRING, info, attrs));
        else
            json_builder_add_null_value(builder);
        break;
    case KILN_ATTR_INTS:
    case KILN_ATTR_FLOATS:
    case KILN_ATTR_STRINGS:
        add_list(builder, info, attrs);
        break;
    case KILN_ATTR_DTYPE:
        add_string(builder, kiln_dtype_name(FIELD(KilnC_DTYPE, info, attrs)));
        break;
    case KILN_ATTR_CONSTANT:
        add_string(builder, FIELD(KilnC_CONSTANT, info, attrs)->name);
        break;
    case KILN_ATTR_FUNCTION:
        write_function(builder, FIELD(KilnC_FUNCTION, info, attrs));
        break;
    }
}

void
kiln_json_attrs(JsonBuilder *builder, const KilnAttrInfo *infos, uint32_t n, const void *attrs)
{
    json_builder_set_member_name(builder, "attrs");
    json_builder_begin_object(builder);
    for (uint32_t i = 0; i < n; i++) {
        if (kiln_attr_is_default(&infos[i], attrs))
            continue;
        json_builder_set_member_name(builder, infos[i].name);
        add_attr(builder, &infos[i], attrs);
    }
    json_builder_end_object(builder);
}

/* --- functions --- */

static void
write_value(JsonBuilder *builder, const KilnValue *value)
{
    kiln_json_string(builder, "name", value->name);
    kiln_json_type(builder, "type", &value->type);
}

static void
write_arguments(JsonBuilder *builder, const KilnFunction *function)
{
    static const char *const constness[] = {
        [KILN_CONSTNESS_COMPILE] = "compile", [KILN_CONSTNESS_RUN] = "run"
    };
    json_builder_set_member_name(builder, "arguments");
    json_builder_begin_array(builder);
    for (guint i = 0; i < function->arguments->len; i++) {
        const KilnArgument *argument = kiln_function_argument(function, i);
        json_builder_begin_object(builder);
        write_value(builder, &argument->value);
        if (constness[argument->constness])
            kiln_json_string(builder, "constant", constness[argument->constness]);
        if (argument->variable) {
            json_builder_set_member_name(builder, "variable");
            json_builder_add_boolean_value(builder, TRUE);
        }
        if (argument->range)
            kiln_json_string(builder, "range", argument->range);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

static void
write_node(JsonBuilder *builder, const KilnNode *node)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    json_builder_begin_object(builder);
    kiln_json_string(builder, "op", info->name);
    kiln_json_string(builder, "name", kiln_node_label(node));
    json_builder_set_member_name(builder, "operands");
    json_builder_begin_array(builder);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value)
            add_string(builder, value->name);
        else
            json_builder_add_null_value(builder);
    }
    json_builder_end_array(builder);
    json_builder_set_member_name(builder, "results");
    json_builder_begin_array(builder);
    for (uint32_t i = 0; i < node->n_results; i++) {
        json_builder_begin_object(builder);
        write_value(builder, &node->results[i]);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
    kiln_json_attrs(builder, info->attrs, info->n_attrs, node->attrs);
    json_builder_end_object(builder);
}

static void
write_results(JsonBuilder *builder, const KilnFunction *function)
{
    const KilnNode *last = kiln_function_return(function);
    json_builder_set_member_name(builder, "results");
    json_builder_begin_array(builder);
    for (uint32_t i = 0; last && i < last->n_operands && i < function->result_names->len; i++) {
        const KilnValue *value = last->operands[i].value;
        json_builder_begin_object(builder);
        kiln_json_string(builder, "name", g_ptr_array_index(function->result_names, i));
        kiln_json_string(builder, "value", value->name);
        kiln_json_type(builder, "type", &value->type);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

static void
write_function(JsonBuilder *builder, const KilnFunction *function)
{
    json_builder_begin_object(builder);
    kiln_json_string(builder, "name", function->name);
    write_arguments(builder, function);
    json_builder_set_member_name(builder, "nodes");
    json_builder_begin_array(builder);
    kiln_foreach_node (node, function) {
        if (node->op != KILN_OP_return)
            write_node(builder, node);
    }
    json_builder_end_array(builder);
    write_results(builder, function);
    json_builder_end_object(builder);
}

/* --- modules --- */

void
kiln_json_constants(JsonBuilder *builder, const KilnModule *module)
{
    json_builder_set_member_name(builder, "constants");
    json_builder_begin_array(builder);
    for (guint i = 0; i < module->constants->len; i++) {
        const KilnConstant *constant = g_ptr_array_index(module->constants, i);
        json_builder_begin_object(builder);
        kiln_json_string(builder, "name", constant->name);
        kiln_json_type(builder, "type", &constant->type);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

void
kiln_json_finish(JsonBuilder *builder, GString *out)
{
    JsonNode *root = json_builder_get_root(builder);
    JsonGenerator *generator = json_generator_new();
    json_generator_set_pretty(generator, TRUE);
    json_generator_set_root(generator, root);
    gsize length;
    g_autofree char *text = json_generator_to_data(generator, &length);
    g_string_append_len(out, text, (gssize)length);
    g_string_append_c(out, '\n');
    g_object_unref(generator);
    json_node_unref(root);
    g_object_unref(builder);
}

gboolean
kiln_module_json(const KilnModule *module, GString *out)
{
    JsonBuilder *builder = json_builder_new();
    json_builder_begin_object(builder);
    json_builder_set_member_name(builder, "schema_version");
    json_builder_add_int_value(builder, KILN_JSON_SCHEMA_VERSION);
    json_builder_set_member_name(builder, "functions");
    json_builder_begin_array(builder);
    for (guint i = 0; i < module->functions->len; i++)
        write_function(builder, g_ptr_array_index(module->functions, i));
    json_builder_end_array(builder);
    kiln_json_constants(builder, module);
    json_builder_end_object(builder);
    kiln_json_finish(builder, out);
    return TRUE;
}
