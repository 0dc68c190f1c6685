/* SPDX-License-Identifier: Apache-2.0 */
/* kiln info: what a model is: what its file says of itself, inputs and outputs, operators, size. */
#include "tools/command.h"

#include "graph/module/define.h"
#include "graph/op/structure.h"
#include "graph/plugin/plugin.h"
#include "kiln.h"
#include "passes/context/report.h"
#include "passes/manager/unit.h"
#include "passes/pass.h"
#include "runtime/model.h"
#include "runtime/program.h"
#include "runtime/specialise.h"
#include "runtime/targets.h"

#include <stdio.h>
#include <string.h>

/* --- operators --- */

typedef struct {
    char *name; /* the id in the text form; DOMAIN:Name of an operator of a plug-in or of nobody */
    unsigned n;
} OpCount;

static void
clear_count(gpointer count)
{
    g_free(((OpCount *)count)->name);
}

/* Takes @name over. */
static void
count(GArray *counts, GHashTable *index, char *name)
{
    gpointer at;
    if (g_hash_table_lookup_extended(index, name, NULL, &at)) {
        g_array_index(counts, OpCount, GPOINTER_TO_UINT(at)).n++;
        g_free(name);
        return;
    }
    OpCount first = { name, 1 };
    g_hash_table_insert(index, name, GUINT_TO_POINTER(counts->len));
    g_array_append_val(counts, first);
}

static char *
op_name(const KilnNode *node)
{
    if (kiln_node_is_plugin(node)) {
        const KilnPluginColumns columns = kiln_node_plugin_columns(node);
        return kiln_plugin_name(columns.domain, columns.op_type);
    }
    if (node->op != KILN_OP_unknown)
        return g_strdup(kiln_op_info(node->op)->name);
    const KilnAttrs_unknown *attrs = kiln_attrs(node, unknown);
    return *attrs->domain ? g_strdup_printf("%s:%s", attrs->domain, attrs->op_type)
                          : g_strdup(attrs->op_type);
}

static char *
instr_name(const KilnInstr *instr)
{
    if (instr->kind != KILN_INSTR_plugin_op)
        return g_strdup(kiln_instr_info(instr->kind)->name);
    const KilnInstrAttrs_plugin_op *attrs = kiln_instr_attrs(instr, plugin_op);
    return kiln_plugin_name(attrs->domain, attrs->op_type);
}

static void
count_nodes(GArray *counts, GHashTable *index, const KilnFunction *function)
{
    kiln_foreach_node (node, function) {
        if (node->op != KILN_OP_const && node->op != KILN_OP_return)
            count(counts, index, op_name(node));
        kiln_foreach_region (region, node)
            count_nodes(counts, index, region);
    }
}

static int
more_first(gconstpointer a, gconstpointer b)
{
    const OpCount *left = a, *right = b;
    return left->n != right->n ? (left->n < right->n ? 1 : -1) : strcmp(left->name, right->name);
}

/* OpCount, the most frequent first. */
static GArray *
count_ops(const KilnModel *model)
{
    GArray *counts = g_array_new(FALSE, FALSE, sizeof(OpCount));
    g_array_set_clear_func(counts, clear_count);
    g_autoptr(GHashTable) index = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; model->ir && i < model->ir->functions->len; i++) {
        kiln_foreach_instr (instr, (KilnIRFunction *)g_ptr_array_index(model->ir->functions, i))
            count(counts, index, instr_name(instr));
    }
    for (guint i = 0; i < model->module->functions->len; i++)
        count_nodes(counts, index, g_ptr_array_index(model->module->functions, i));
    g_array_sort(counts, more_first);
    return counts;
}

static KilnUnitCost
cost_of(const KilnModel *model)
{
    KilnUnit unit = { .level = model->ir ? KILN_LEVEL_IR : KILN_LEVEL_GRAPH,
                      .module = model->module,
                      .ir = model->ir };
    return kiln_unit_cost(&unit);
}

/* --- text --- */

/* A line, unless the file says nothing there. What it says stays on the line. */
static void
print_line(const char *what, const char *text)
{
    g_autofree char *line = kiln_one_line(text);
    if (*line)
        printf("%-12s %s\n", what, line);
}

static void
print_number(const char *what, int64_t number)
{
    if (number)
        printf("%-12s %" G_GINT64_FORMAT "\n", what, number);
}

static void
print_metadata(const KilnMetadata *metadata)
{
    g_autofree char *producer =
        g_strjoin(*metadata->producer_version ? " " : "", metadata->producer_name,
                  metadata->producer_version, NULL);
    print_line("graph", metadata->graph_name);
    print_line("producer", producer);
    print_line("domain", metadata->domain);
    print_number("version", metadata->model_version);
    print_number("ir version", metadata->ir_version);
    for (unsigned i = 0; i < metadata->n_opsets; i++) {
        const char *domain = metadata->opsets[i].domain;
        g_autofree char *name = kiln_one_line(*domain ? domain : "ai.onnx");
        printf("%-12s %s %" G_GINT64_FORMAT "\n", "opset", name, metadata->opsets[i].version);
    }
    print_line("doc", metadata->doc_string);
    for (unsigned i = 0; i < metadata->n_properties; i++) {
        g_autofree char *key = kiln_one_line(metadata->properties[i].key);
        g_autofree char *value = kiln_one_line(metadata->properties[i].value);
        printf("%-12s %s = %s\n", "property", key, value);
    }
}

static void
print_infos(const char *what, const KilnInfoList *list)
{
    for (unsigned i = 0; i < list->n; i++) {
        g_autofree char *type = kiln_type_to_string(&list->types[i]);
        g_autofree char *name = kiln_one_line(list->info[i].name);
        g_autofree char *shown = kiln_one_line(type);
        printf("%-12s %s: %s\n", what, name, shown);
    }
}

/* Names of dims that data decides, and the most that each can be. */
static void
print_defined(const KilnModel *model)
{
    KilnDefined defined[KILN_DEFINED_MAX];
    kiln_foreach_node (node, kiln_module_entry(model->module)) {
        uint32_t n = model->ir ? 0 : kiln_node_defines(node, defined);
        for (uint32_t i = 0; i < n; i++) {
            const KilnSize *most = &defined[i].most;
            g_autofree char *bound = most->dim ? kiln_dim_to_string(most->dim)
                                               : g_strdup_printf("%" G_GINT64_FORMAT, most->n);
            printf("%-12s %s: 0..%s, which data decides\n", "dim",
                   kiln_dim_as_name(defined[i].name), most->lost ? "" : bound);
        }
    }
}

/* The model with names for dims that data decides; NULL where there is none. */
static KilnModel *
with_defined(const KilnModel *model)
{
    if (model->ir || !kiln_data_may_decide(model->module))
        return NULL;
    const KilnTarget *reference = kiln_target_by_name("ref", NULL);
    KilnModule *shaped = kiln_specialise(model->module, NULL, reference, NULL);
    return shaped ? kiln_model_beside(model, shaped, NULL) : NULL;
}

static void
print_info(const KilnOptions *options, const KilnModel *model, const KilnModel *shaped,
           const GArray *counts)
{
    KilnUnitCost cost = cost_of(model);
    unsigned n = 0;
    print_metadata(kiln_model_metadata(model));
    print_infos("input", &shaped->inputs);
    print_infos("output", &shaped->outputs);
    if (shaped != model)
        print_defined(shaped);
    for (guint i = 0; i < counts->len; i++)
        n += g_array_index(counts, OpCount, i).n;
    printf("%-12s %u\n", model->ir ? "instructions" : "nodes", n);
    printf("%-12s %" G_GINT64_FORMAT " bytes\n", "constants", cost.constant_bytes);
    printf("%-12s %.6g million operations\n", "work", (double)cost.flops / 1e6);
    for (guint i = 0; i < counts->len && !options->quiet; i++) {
        const OpCount *op = &g_array_index(counts, OpCount, i);
        g_autofree char *name = kiln_one_line(op->name);
        printf("%12u %s\n", op->n, name);
    }
}

/* --- JSON --- */

static void
write_shape(KilnJson *json, const KilnTensorInfo *info)
{
    if (info->rank < 0) {
        kiln_json_null(json, "shape");
        return;
    }
    kiln_json_array(json, "shape");
    for (int d = 0; d < info->rank; d++) {
        if (info->dims[d] >= 0)
            kiln_json_int(json, NULL, info->dims[d]);
        else
            kiln_json_string(json, NULL, info->dim_names[d]);
    }
    kiln_json_end_array(json);
}

static void
write_infos(KilnJson *json, const char *key, const KilnInfoList *list)
{
    kiln_json_array(json, key);
    for (unsigned i = 0; i < list->n; i++) {
        const KilnTensorInfo *info = &list->info[i];
        kiln_json_object(json, NULL);
        kiln_json_string(json, "name", info->name);
        kiln_json_type(json, "type", &list->types[i]);
        kiln_json_string(json, "dtype", kiln_dtype_name(info->dtype));
        write_shape(json, info);
        kiln_json_end_object(json);
    }
    kiln_json_end_array(json);
}

static void
write_metadata(KilnJson *json, const KilnMetadata *metadata)
{
    kiln_json_string(json, "graph_name", metadata->graph_name);
#define X(field, number) kiln_json_string(json, #field, metadata->field);
    KILN_METADATA_TEXTS(X)
#undef X
#define X(field, number) kiln_json_int(json, #field, metadata->field);
    KILN_METADATA_NUMBERS(X)
#undef X
    kiln_json_array(json, "opsets");
    for (unsigned i = 0; i < metadata->n_opsets; i++) {
        kiln_json_object(json, NULL);
        kiln_json_string(json, "domain", metadata->opsets[i].domain);
        kiln_json_int(json, "version", metadata->opsets[i].version);
        kiln_json_end_object(json);
    }
    kiln_json_end_array(json);
    kiln_json_array(json, "properties");
    for (unsigned i = 0; i < metadata->n_properties; i++) {
        kiln_json_object(json, NULL);
        kiln_json_string(json, "key", metadata->properties[i].key);
        kiln_json_string(json, "value", metadata->properties[i].value);
        kiln_json_end_object(json);
    }
    kiln_json_end_array(json);
}

static gboolean
print_json(const KilnModel *model, const KilnModel *shaped, const GArray *counts, GError **error)
{
    KilnUnitCost cost = cost_of(model);
    g_autoptr(GString) text = g_string_new(NULL);
    KilnJson json = kiln_report_begin(text);
    write_metadata(&json, kiln_model_metadata(model));
    write_infos(&json, "inputs", &model->inputs);
    write_infos(&json, "outputs", &shaped->outputs);
    kiln_json_string(&json, "level", model->ir ? "ir" : "graph");
    kiln_json_int(&json, "constant_bytes", cost.constant_bytes);
    kiln_json_int(&json, "flops", cost.flops);
    kiln_json_array(&json, "ops");
    for (guint i = 0; i < counts->len; i++) {
        const OpCount *op = &g_array_index(counts, OpCount, i);
        kiln_json_object(&json, NULL);
        kiln_json_string(&json, "op", op->name);
        kiln_json_int(&json, "n", op->n);
        kiln_json_end_object(&json);
    }
    kiln_json_end_array(&json);
    return kiln_report_print(&json, error);
}

static int
info(KilnOptions *options, char **operands, void *data, GError **error)
{
    (void)data;
    g_autoptr(KilnProgram) program = NULL;
    g_autoptr(KilnModel) model = kiln_options_load(options, operands[0], &program, error);
    if (!model)
        return KILN_EXIT_FAILED;
    g_autoptr(GArray) counts = count_ops(model);
    g_autoptr(KilnModel) with_names = with_defined(model);
    const KilnModel *shaped = with_names ? with_names : model;
    if (options->json)
        return print_json(model, shaped, counts, error) ? KILN_EXIT_OK : KILN_EXIT_FAILED;
    print_info(options, model, shaped, counts);
    return KILN_EXIT_OK;
}

int
kiln_command_info(int argc, char **argv)
{
    const KilnUsage usage = {
        .command = "info",
        .operands = "MODEL",
        .n_operands = KILN_OPERANDS_ONE,
        .summary = "Describes a model: the metadata of its file, its inputs, outputs and "
                   "operators, and its size.",
        .work = info,
    };
    return kiln_command(&usage, argc, argv, NULL);
}
