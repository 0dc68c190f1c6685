/* SPDX-License-Identifier: Apache-2.0 */
/* kiln passes, kiln ops: listings straight from the tables. */
#include "tools/command.h"

#include "backends/cpu/left_to_ref.h"
#include "graph/kiln-op.h"
#include "graph/plugin/plugin.h"
#include "passes/manager/numerics.h"
#include "passes/pipeline/pipeline.h"
#include "passes/rule.h"
#include "runtime/pipeline.h"
#include "runtime/targets.h"

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
write_options(KilnJson *json, const KilnPassInfo *pass)
{
    kiln_json_object(json, "options");
    const KilnOptionTable *table = pass->options;
    for (uint32_t i = 0; table && i < table->n; i++) {
        const KilnAttrInfo *option = &table->attrs[i];
        g_autofree char *name = g_strdelimit(g_strdup(option->name), "_", '-');
        switch (option->kind) {
        case KILN_ATTR_BOOL:
            kiln_json_bool(json, name, option->otherwise.i != 0);
            break;
        case KILN_ATTR_INT:
            kiln_json_int(json, name, option->otherwise.i);
            break;
        case KILN_ATTR_FLOAT:
            kiln_json_number(json, name, option->otherwise.f);
            break;
        case KILN_ATTR_STRING:
            kiln_json_string(json, name, option->otherwise.s ? option->otherwise.s : "");
            break;
        default:
            kiln_json_array(json, name);
            kiln_json_end_array(json);
            break;
        }
    }
    kiln_json_end_object(json);
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
static gboolean
list_passes_json(const GPtrArray *passes, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    KilnJson json = kiln_report_begin(text);
    kiln_json_array(&json, "passes");
    for (guint i = 0; i < passes->len; i++) {
        const KilnPassInfo *pass = g_ptr_array_index(passes, i);
        kiln_json_object(&json, NULL);
        kiln_json_string(&json, "name", pass->id);
        kiln_json_string(&json, "level", pass->level == KILN_LEVEL_GRAPH ? "graph" : "ir");
        kiln_json_string(&json, "numerics", kiln_numerics_name(pass->numerics));
        kiln_json_string(&json, "summary", pass->summary);
        write_options(&json, pass);
        kiln_json_end_object(&json);
    }
    kiln_json_end_array(&json);
    return kiln_report_print(&json, error);
}

static gboolean
list_rules_json(const KilnRule *rules, uint32_t n, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    KilnJson json = kiln_report_begin(text);
    kiln_json_array(&json, "rules");
    for (uint32_t i = 0; i < n; i++) {
        kiln_json_object(&json, NULL);
        kiln_json_string(&json, "name", rules[i].name);
        kiln_json_string(&json, "numerics", kiln_numerics_name(rules[i].numerics));
        kiln_json_string(&json, "pattern", rules[i].pattern);
        kiln_json_array(&json, "flags");
        for (uint32_t bit = 0; bit < KILN_N_FLAGS; bit++) {
            if (rules[i].flags & 1u << bit)
                kiln_json_string(&json, NULL, flag_names[bit]);
        }
        kiln_json_end_array(&json);
        kiln_json_end_object(&json);
    }
    kiln_json_end_array(&json);
    return kiln_report_print(&json, error);
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
    if (options->json)
        return list_rules_json(rules, n, error) ? KILN_EXIT_OK : KILN_EXIT_FAILED;
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
    if (options->json)
        return list_passes_json(passes, error) ? KILN_EXIT_OK : KILN_EXIT_FAILED;
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

/* Operators of plug-ins, as lines if @json is NULL. */
static void
list_plugins(KilnJson *json)
{
    g_autoptr(GPtrArray) ops = kiln_plugin_list();
    if (json)
        kiln_json_array(json, "plugins");
    for (guint i = 0; i < ops->len; i++) {
        const KilnOpDescription *op = g_ptr_array_index(ops, i);
        g_autofree char *name = kiln_plugin_name(op->domain, op->name);
        g_autofree char *opsets = op->last_opset
                                      ? g_strdup_printf("%d-%d", op->first_opset, op->last_opset)
                                      : g_strdup_printf("%d-", op->first_opset);
        if (!json) {
            printf("%-28s opset %-6s %s: %s\n", name, opsets, kiln_plugin_from(op),
                   op->summary ? op->summary : "");
            continue;
        }
        kiln_json_object(json, NULL);
        kiln_json_string(json, "onnx", name);
        kiln_json_int(json, "since", op->first_opset);
        kiln_json_int(json, "last", op->last_opset);
        kiln_json_bool(json, "pure", op->flags & KILN_OP_PURE);
        kiln_json_string(json, "from", kiln_plugin_from(op));
        kiln_json_string(json, "summary", op->summary ? op->summary : "");
        kiln_json_end_object(json);
    }
    if (json)
        kiln_json_end_array(json);
}

static gboolean
list_ops_json(const KilnTarget *target, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    KilnJson json = kiln_report_begin(text);
    kiln_json_array(&json, "ops");
    kiln_foreach_op (id) {
        const KilnOpInfo *op = kiln_op_info(id);
        uint32_t dtypes;
        kiln_json_object(&json, NULL);
        kiln_json_string(&json, "name", op->name);
        kiln_json_string(&json, "onnx", op->onnx);
        kiln_json_int(&json, "since", op->since);
        kiln_json_bool(&json, "kernel", has_kernel(target, op->name, &dtypes));
        kiln_json_end_object(&json);
    }
    kiln_json_end_array(&json);
    list_plugins(&json);
    return kiln_report_print(&json, error);
}

/* Types of ref's kernels, without those for quantized integers. */
static uint32_t
ref_dtypes(const KilnTarget *target, KilnInstrKind kind)
{
    uint32_t dtypes = 0;
    while (target->fallback && !g_str_equal(target->name, "ref"))
        target = target->fallback;
    for (uint32_t i = 0; i < target->n_kernels; i++) {
        if (target->kernels[i].instr == kind && !target->kernels[i].quantized)
            dtypes |= target->kernels[i].dtypes;
    }
    return dtypes;
}

/* What only ref computes, with the reason that is stated for it. */
static gboolean
list_slow(const KilnTarget *target, bool as_json, GError **error)
{
    const KilnTarget *cpu = kiln_target_by_name("cpu", NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    KilnJson json = kiln_report_begin(text);
    kiln_json_array(&json, "slow");
    for (int kind = 0; kind < KILN_N_INSTRS; kind++) {
        const uint32_t dtypes = ref_dtypes(target, (KilnInstrKind)kind);
        for (int dtype = 0; dtype < KILN_N_DTYPES; dtype++) {
            if (!(dtypes >> dtype & 1) ||
                kiln_cpu_has_kernel(cpu, (KilnInstrKind)kind, (KilnDType)dtype))
                continue;
            const char *reason = kiln_cpu_left_to_ref(cpu, (KilnInstrKind)kind, (KilnDType)dtype);
            const char *name = kiln_instr_info((KilnInstrKind)kind)->name;
            if (!as_json)
                printf("%-28s %-5s %s\n", name, kiln_dtype_name((KilnDType)dtype),
                       reason ? reason : "no reason is stated");
            kiln_json_object(&json, NULL);
            kiln_json_string(&json, "instruction", name);
            kiln_json_string(&json, "dtype", kiln_dtype_name((KilnDType)dtype));
            kiln_json_string(&json, "reason", reason ? reason : "");
            kiln_json_end_object(&json);
        }
    }
    kiln_json_end_array(&json);
    return as_json ? kiln_report_print(&json, error) : TRUE;
}

static int
list_ops(KilnOptions *options, char **operands, void *data, GError **error)
{
    (void)operands;
    const gboolean *speed = data;
    const KilnTarget *target =
        kiln_target_by_name(options->backend ? options->backend : "cpu", NULL);
    if (*speed)
        return list_slow(target, options->json, error) ? KILN_EXIT_OK : KILN_EXIT_FAILED;
    if (options->json)
        return list_ops_json(target, error) ? KILN_EXIT_OK : KILN_EXIT_FAILED;
    kiln_foreach_op (id) {
        const KilnOpInfo *op = kiln_op_info(id);
        uint32_t dtypes;
        has_kernel(target, op->name, &dtypes);
        printf("%-28s %-26s", op->name, *op->onnx ? op->onnx : "-");
        print_dtypes(dtypes);
        printf("\n");
    }
    list_plugins(NULL);
    return KILN_EXIT_OK;
}

int
kiln_command_ops(int argc, char **argv)
{
    gboolean speed = FALSE;
    const GOptionEntry entries[] = {
        { "speed", 0, 0, G_OPTION_ARG_NONE, &speed,
          "List the instructions and types that only the reference kernels compute", NULL },
        G_OPTION_ENTRY_NULL,
    };
    const KilnUsage usage = {
        .command = "ops",
        .summary =
            "Lists the operators: name, ONNX name, element types of the kernels. An operator "
            "that compiling removes needs no kernel.",
        .entries = entries,
        .work = list_ops,
    };
    return kiln_command(&usage, argc, argv, &speed);
}
