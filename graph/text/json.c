/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as JSON. */
#include "graph/text/json.h"

#include "graph/base/number.h"
#include "graph/node.h"

#include <math.h>

#define FIELD(T, info, attrs) (*(T const *)((const char *)(attrs) + (info)->offset))

static void write_function(KilnJson *json, const char *key, const KilnFunction *function);

/* --- values --- */

void
kiln_json_float(KilnJson *json, const char *key, double value)
{
    if (isfinite(value))
        kiln_json_number(json, key, value);
    else
        kiln_json_string(json, key, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

/* A float's shortest decimal: 0.1 and not what 0.1f is as a double. */
static void
add_f32(KilnJson *json, const char *key, float value)
{
    g_autoptr(GString) text = g_string_new(NULL);
    kiln_print_f32(text, value);
    kiln_json_float(json, key, isfinite(value) ? g_ascii_strtod(text->str, NULL) : (double)value);
}

/* --- attributes --- */

static void
add_list(KilnJson *json, const KilnAttrInfo *info, const void *attrs)
{
    kiln_json_array(json, info->name);
    if (info->kind == KILN_ATTR_INTS) {
        KilnInts list = FIELD(KilnInts, info, attrs);
        for (uint32_t i = 0; i < list.n; i++) {
            const KilnDim *open = kiln_ints_open(list, i);
            g_autofree char *text = open ? kiln_dim_to_string(open) : NULL;
            if (text)
                kiln_json_string(json, NULL, text);
            else
                kiln_json_int(json, NULL, list.v[i]);
        }
    } else if (info->kind == KILN_ATTR_FLOATS) {
        KilnFloats list = FIELD(KilnFloats, info, attrs);
        for (uint32_t i = 0; i < list.n; i++)
            add_f32(json, NULL, list.v[i]);
    } else {
        KilnStrings list = FIELD(KilnStrings, info, attrs);
        for (uint32_t i = 0; i < list.n; i++)
            kiln_json_string(json, NULL, list.v[i]);
    }
    kiln_json_end_array(json);
}

static void
add_attr(KilnJson *json, const KilnAttrInfo *info, const void *attrs)
{
    const char *name = info->name;
    switch (info->kind) {
    case KILN_ATTR_INT:
        kiln_json_int(json, name, FIELD(KilnC_INT, info, attrs));
        break;
    case KILN_ATTR_BOOL:
        kiln_json_bool(json, name, FIELD(KilnC_BOOL, info, attrs));
        break;
    case KILN_ATTR_FLOAT:
        add_f32(json, name, FIELD(KilnC_FLOAT, info, attrs));
        break;
    case KILN_ATTR_STRING:
        if (FIELD(KilnC_STRING, info, attrs))
            kiln_json_string(json, name, FIELD(KilnC_STRING, info, attrs));
        else
            kiln_json_null(json, name);
        break;
    case KILN_ATTR_INTS:
    case KILN_ATTR_FLOATS:
    case KILN_ATTR_STRINGS:
        add_list(json, info, attrs);
        break;
    case KILN_ATTR_DTYPE:
        kiln_json_string(json, name, kiln_dtype_name(FIELD(KilnC_DTYPE, info, attrs)));
        break;
    case KILN_ATTR_CONSTANT:
        kiln_json_string(json, name, FIELD(KilnC_CONSTANT, info, attrs)->name);
        break;
    case KILN_ATTR_FUNCTION:
        write_function(json, name, FIELD(KilnC_FUNCTION, info, attrs));
        break;
    }
}

void
kiln_json_attrs(KilnJson *json, const KilnAttrInfo *infos, uint32_t n, const void *attrs)
{
    kiln_json_object(json, "attrs");
    for (uint32_t i = 0; i < n; i++) {
        if (!kiln_attr_is_default(&infos[i], attrs))
            add_attr(json, &infos[i], attrs);
    }
    kiln_json_end_object(json);
}

/* --- functions --- */

static void
write_value(KilnJson *json, const KilnValue *value)
{
    kiln_json_string(json, "name", value->name);
    kiln_json_type(json, "type", &value->type);
}

static void
write_arguments(KilnJson *json, const KilnFunction *function)
{
    static const char *const constness[] = {
        [KILN_CONSTNESS_COMPILE] = "compile", [KILN_CONSTNESS_RUN] = "run"
    };
    kiln_json_array(json, "arguments");
    for (guint i = 0; i < function->arguments->len; i++) {
        const KilnArgument *argument = kiln_function_argument(function, i);
        kiln_json_object(json, NULL);
        write_value(json, &argument->value);
        if (constness[argument->constness])
            kiln_json_string(json, "constant", constness[argument->constness]);
        if (argument->variable) {
            kiln_json_bool(json, "variable", TRUE);
        }
        if (argument->range)
            kiln_json_string(json, "range", argument->range);
        kiln_json_end_object(json);
    }
    kiln_json_end_array(json);
}

static void
write_node(KilnJson *json, const KilnNode *node)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    kiln_json_object(json, NULL);
    kiln_json_string(json, "op", info->name);
    kiln_json_string(json, "name", kiln_node_label(node));
    kiln_json_array(json, "operands");
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value)
            kiln_json_string(json, NULL, value->name);
        else
            kiln_json_null(json, NULL);
    }
    kiln_json_end_array(json);
    kiln_json_array(json, "results");
    for (uint32_t i = 0; i < node->n_results; i++) {
        kiln_json_object(json, NULL);
        write_value(json, &node->results[i]);
        kiln_json_end_object(json);
    }
    kiln_json_end_array(json);
    kiln_json_attrs(json, info->attrs, info->n_attrs, node->attrs);
    kiln_json_end_object(json);
}

static void
write_results(KilnJson *json, const KilnFunction *function)
{
    const KilnNode *last = kiln_function_return(function);
    kiln_json_array(json, "results");
    for (uint32_t i = 0; last && i < last->n_operands && i < function->result_names->len; i++) {
        const KilnValue *value = last->operands[i].value;
        kiln_json_object(json, NULL);
        kiln_json_string(json, "name", g_ptr_array_index(function->result_names, i));
        kiln_json_string(json, "value", value->name);
        kiln_json_type(json, "type", &value->type);
        kiln_json_end_object(json);
    }
    kiln_json_end_array(json);
}

static void
write_function(KilnJson *json, const char *key, const KilnFunction *function)
{
    kiln_json_object(json, key);
    kiln_json_string(json, "name", function->name);
    write_arguments(json, function);
    kiln_json_array(json, "nodes");
    kiln_foreach_node (node, function) {
        if (node->op != KILN_OP_return)
            write_node(json, node);
    }
    kiln_json_end_array(json);
    write_results(json, function);
    kiln_json_end_object(json);
}

/* --- modules --- */

void
kiln_json_constants(KilnJson *json, const KilnModule *module)
{
    kiln_json_array(json, "constants");
    for (guint i = 0; i < module->constants->len; i++) {
        const KilnConstant *constant = g_ptr_array_index(module->constants, i);
        kiln_json_object(json, NULL);
        kiln_json_string(json, "name", constant->name);
        kiln_json_type(json, "type", &constant->type);
        kiln_json_end_object(json);
    }
    kiln_json_end_array(json);
}

void
kiln_module_json(const KilnModule *module, GString *out)
{
    KilnJson json = { .out = out, .pretty = true };
    kiln_json_object(&json, NULL);
    kiln_json_int(&json, "schema_version", KILN_JSON_SCHEMA_VERSION);
    kiln_json_array(&json, "functions");
    for (guint i = 0; i < module->functions->len; i++)
        write_function(&json, NULL, g_ptr_array_index(module->functions, i));
    kiln_json_end_array(&json);
    kiln_json_constants(&json, module);
    kiln_json_end_object(&json);
    g_string_append_c(out, '\n');
}
