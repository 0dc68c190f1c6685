/* SPDX-License-Identifier: Apache-2.0 */
/* kiln passes, kiln ops: listings straight from the tables. */
#include "passes/pipeline/pipeline.h"
#include "runtime/pipeline.h"
#include "runtime/targets.h"
#include "tools/command.h"

#include "passes/manager/numerics.h"
#include "passes/rule.h"

#include <stdio.h>

#define X(id, text) text,
static const char *const flag_names[] = { KILN_FLAG_MAP(X) };
#undef X

static void
print_options(const KilnPassInfo *pass)
{
    const KilnOptionTable *table = pass->options;
    for (uint32_t i = 0; table && i < table->n; i++) {
        const KilnAttrInfo *option = &table->attrs[i];
        g_autofree char *name = g_strdelimit(g_strdup(option->name), "_", '-');
        printf("    %-20s ", name);
        switch (option->kind) {
        case KILN_ATTR_BOOL:
            printf("%s\n", option->otherwise.i ? "true" : "false");
            break;
        case KILN_ATTR_INT:
            printf("%" G_GINT64_FORMAT "\n", option->otherwise.i);
            break;
        case KILN_ATTR_FLOAT:
            printf("%g\n", option->otherwise.f);
            break;
        case KILN_ATTR_STRING:
            printf("%s", option->otherwise.s ? option->otherwise.s : "");
            printf(table->choices && table->choices[i] ? " (%s)\n" : "\n", table->choices[i]);
            break;
        default:
            printf("[]\n");
            break;
        }
    }
}

static void
set_options_json(JsonObject *entry, const KilnPassInfo *pass)
{
    JsonObject *options = json_object_new();
    const KilnOptionTable *table = pass->options;
    for (uint32_t i = 0; table && i < table->n; i++) {
        const KilnAttrInfo *option = &table->attrs[i];
        g_autofree char *name = g_strdelimit(g_strdup(option->name), "_", '-');
        switch (option->kind) {
        case KILN_ATTR_BOOL:
            json_object_set_boolean_member(options, name, option->otherwise.i != 0);
            break;
        case KILN_ATTR_INT:
            json_object_set_int_member(options, name, option->otherwise.i);
            break;
        case KILN_ATTR_FLOAT:
            json_object_set_double_member(options, name, option->otherwise.f);
            break;
        case KILN_ATTR_STRING:
            json_object_set_string_member(options, name,
                                          option->otherwise.s ? option->otherwise.s : "");
            break;
        default:
            json_object_set_array_member(options, name, json_array_new());
            break;
        }
    }
    json_object_set_object_member(entry, "options", options);
}

/* The built-in passes, then those of plug-ins: KilnPassInfo*. */
static GPtrArray *
all_passes(const KilnPipeline *pipeline)
{
    GPtrArray *all = g_ptr_array_new();
    for (uint32_t i = 0; i < kiln_pass_count(); i++)
        g_ptr_array_add(all, (gpointer)kiln_pass_at(i));
    g_ptr_array_extend(all, pipeline->passes->extra, NULL, NULL);
    return all;
}

/* @passes: KilnPassInfo* */
static void
list_passes_json(const GPtrArray *passes)
{
    JsonArray *array = json_array_new();
    for (guint i = 0; i < passes->len; i++) {
        const KilnPassInfo *pass = g_ptr_array_index(passes, i);
        JsonObject *entry = json_object_new();
        json_object_set_string_member(entry, "name", pass->id);
        json_object_set_string_member(entry, "level",
                                      pass->level == KILN_LEVEL_GRAPH ? "graph" : "ir");
        json_object_set_string_member(entry, "numerics", kiln_numerics_name(pass->numerics));
        json_object_set_string_member(entry, "summary", pass->summary);
        set_options_json(entry, pass);
        json_array_add_object_element(array, entry);
    }
    JsonObject *root = json_object_new();
    json_object_set_array_member(root, "passes", array);
    kiln_print_json(root);
}

static void
list_rules_json(const KilnRule *rules, uint32_t n)
{
    JsonArray *array = json_array_new();
    for (uint32_t i = 0; i < n; i++) {
        JsonObject *entry = json_object_new();
        json_object_set_string_member(entry, "name", rules[i].name);
        json_object_set_string_member(entry, "numerics", kiln_numerics_name(rules[i].numerics));
        json_object_set_string_member(entry, "pattern", rules[i].pattern);
        JsonArray *flags = json_array_new();
        for (uint32_t bit = 0; bit < KILN_N_FLAGS; bit++) {
            if (rules[i].flags & 1u << bit)
                json_array_add_string_element(flags, flag_names[bit]);
        }
        json_object_set_array_member(entry, "flags", flags);
        json_array_add_object_element(array, entry);
    }
    JsonObject *root = json_object_new();
    json_object_set_array_member(root, "rules", array);
    kiln_print_json(root);
}

static int
list_rules(const KilnOptions *options, const char *id, GError **error)
{
    const KilnPassInfo *pass = kiln_pass_find(id);
    if (!pass) {
        g_autofree char *hint = kiln_suggest_pass(NULL, id);
        kiln_throw(error, KILN_ERROR_USAGE,
                   "--rules: expected a pass, found %s%s\n`kiln passes` lists them.", id, hint);
        return KILN_EXIT_USAGE;
    }
    uint32_t n = pass->rules ? pass->rules->n : 0;
    const KilnRule *rules = n ? pass->rules->rules : NULL;
    if (options->json) {
        list_rules_json(rules, n);
        return KILN_EXIT_OK;
    }
    for (uint32_t i = 0; i < n; i++) {
        printf("%-2s %-28s %s", kiln_numerics_name(rules[i].numerics), rules[i].name,
               rules[i].pattern);
        const char *before = "  needs ";
        for (uint32_t bit = 0; bit < KILN_N_FLAGS; bit++) {
            if (!(rules[i].flags & 1u << bit))
                continue;
            printf("%s%s", before, flag_names[bit]);
            before = ", ";
        }
        putchar('\n');
    }
    if (!n)
        printf("%s is written in C, without rules.\n", id);
    return KILN_EXIT_OK;
}

static int
list_passes(KilnOptions *options, char **operands, void *data, GError **error)
{
    (void)operands;
    char *const *rules = data;
    if (*rules)
        return list_rules(options, *rules, error);
    const KilnPipelineSource nothing = { .text = "",
                                         .plugins = (const char *const *)options->plugins };
    g_autoptr(KilnPipeline) pipeline = kiln_pipeline_open(&nothing, error);
    if (!pipeline)
        return KILN_EXIT_FAILED;
    g_autoptr(GPtrArray) passes = all_passes(pipeline);
    if (options->json) {
        list_passes_json(passes);
        return KILN_EXIT_OK;
    }
    for (guint i = 0; i < passes->len; i++) {
        const KilnPassInfo *pass = g_ptr_array_index(passes, i);
        printf("%-5s %-2s %-22s %s\n", pass->level == KILN_LEVEL_GRAPH ? "graph" : "ir",
               kiln_numerics_name(pass->numerics), pass->id, pass->summary);
        if (!options->quiet)
            print_options(pass);
    }
    return KILN_EXIT_OK;
}

int
kiln_command_passes(int argc, char **argv)
{
    g_autofree char *rules = NULL;
    const GOptionEntry entries[] = {
        { "rules", 0, 0, G_OPTION_ARG_STRING, &rules,
          "List the rules of this pass with their numerics classes", "PASS" },
        G_OPTION_ENTRY_NULL,
    };
    const KilnUsage usage = {
        .command = "passes",
        .summary =
            "Lists the passes: level, numerics class, name, summary and options.\n\n"
            "Classes: E exact, Z exact except signs of zeros, U rounding, QT one quantization "
            "step at ties, QS a quantization step left out, L lossy.",
        .entries = entries,
        .work = list_passes,
    };
    return kiln_command(&usage, argc, argv, &rules);
}

/* --- operators --- */

static bool
has_kernel(const KilnTarget *target, const char *name, uint32_t *dtypes)
{
    KilnInstrKind kind;
    *dtypes = 0;
    for (; kiln_instr_from_name(name, &kind) && target; target = target->fallback) {
        for (uint32_t i = 0; i < target->n_kernels; i++)
            *dtypes |= target->kernels[i].instr == kind ? target->kernels[i].dtypes : 0;
    }
    return *dtypes != 0;
}

static void
print_dtypes(uint32_t dtypes)
{
    for (int i = 0; i < KILN_N_DTYPES; i++) {
        if (dtypes >> i & 1)
            printf(" %s", kiln_dtype_name((KilnDType)i));
    }
}

static int
list_ops(KilnOptions *options, char **operands, void *data, GError **error)
{
    (void)operands, (void)data, (void)error;
    const KilnTarget *target =
        kiln_target_by_name(options->backend ? options->backend : "cpu", NULL);
    JsonArray *array = json_array_new();
    kiln_foreach_op (id) {
        const KilnOpInfo *op = kiln_op_info(id);
        uint32_t dtypes;
        bool runs = has_kernel(target, op->name, &dtypes);
        if (options->json) {
            JsonObject *entry = json_object_new();
            json_object_set_string_member(entry, "name", op->name);
            json_object_set_string_member(entry, "onnx", op->onnx);
            json_object_set_int_member(entry, "since", op->since);
            json_object_set_boolean_member(entry, "kernel", runs);
            json_array_add_object_element(array, entry);
            continue;
        }
        printf("%-28s %-26s", op->name, *op->onnx ? op->onnx : "-");
        print_dtypes(dtypes);
        printf("\n");
    }
    if (!options->json) {
        json_array_unref(array);
        return KILN_EXIT_OK;
    }
    JsonObject *root = json_object_new();
    json_object_set_array_member(root, "ops", array);
    kiln_print_json(root);
    return KILN_EXIT_OK;
}

int
kiln_command_ops(int argc, char **argv)
{
    const KilnUsage usage = {
        .command = "ops",
        .summary =
            "Lists the operators: name, ONNX name, element types of the kernels. An operator "
            "that compiling removes needs no kernel.",
        .work = list_ops,
    };
    return kiln_command(&usage, argc, argv, NULL);
}
