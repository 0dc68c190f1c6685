/* SPDX-License-Identifier: Apache-2.0 */
/* kiln memory: the memory plan, its bounds, and a picture of it. */
#include "tools/command.h"
#include "tools/memory_svg.h"
#include "tools/trace.h"

#include <stdio.h>
#include <string.h>

static const char *
name_of(const KilnLife *life, char **storage)
{
    if (life->buffer)
        return life->buffer->name;
    *storage = g_strdup_printf("scratch of %s", kiln_instr_label(life->scratch_of));
    return *storage;
}

/* The instruction that works at each step. */
static const KilnInstr **
steps_of(const KilnIRFunction *function, int64_t n_steps)
{
    const KilnInstr **steps = g_new0(const KilnInstr *, (size_t)n_steps + 1);
    int64_t step = 0;
    kiln_foreach_instr (instr, function) {
        if (!kiln_instr_is_bookkeeping(instr) && step < n_steps)
            steps[step++] = instr;
    }
    return steps;
}

static double
efficiency(const KilnMemoryPlan *plan)
{
    return plan->arena ? (double)plan->lb_live / (double)plan->arena : 1;
}

static void
print_json(const KilnIRFunction *function, const KilnMemoryPlan *plan)
{
    g_autofree const KilnInstr **steps = steps_of(function, plan->n_steps);
    JsonArray *buffers = json_array_new();
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        const KilnLife *life = &plan->lives[i];
        g_autofree char *storage = NULL;
        JsonObject *entry = json_object_new();
        json_object_set_string_member(entry, "name", name_of(life, &storage));
        json_object_set_int_member(entry, "def", life->first);
        json_object_set_int_member(entry, "last_use", life->last);
        json_object_set_int_member(entry, "size", life->size);
        json_object_set_int_member(entry, "offset", life->offset);
        json_object_set_string_member(
            entry, "def_instr", steps[life->first] ? kiln_instr_label(steps[life->first]) : "");
        json_object_set_string_member(entry, "last_instr",
                                      steps[life->last] ? kiln_instr_label(steps[life->last]) : "");
        json_array_add_object_element(buffers, entry);
    }
    JsonObject *root = json_object_new();
    json_object_set_int_member(root, "sum", plan->sum);
    json_object_set_int_member(root, "lb_node", plan->lb_node);
    json_object_set_int_member(root, "lb_live", plan->lb_live);
    json_object_set_int_member(root, "arena", plan->arena);
    json_object_set_double_member(root, "efficiency", efficiency(plan));
    json_object_set_boolean_member(root, "proven_optimal", plan->proven_optimal);
    json_object_set_double_member(root, "plan_ms", plan->plan_ms);
    json_object_set_array_member(root, "buffers", buffers);
    kiln_print_json(root);
}

static void
print_text(const KilnMemoryPlan *plan, bool quiet)
{
    printf("arena    %12" G_GINT64_FORMAT " bytes, %s\n", plan->arena,
           plan->arena == plan->lb_live ? "optimal: equal to lb_live"
           : plan->proven_optimal       ? "optimal: the search found that nothing is lower"
                                        : "not proved optimal");
    printf("lb_live  %12" G_GINT64_FORMAT "  most that is live at one step of this order\n",
           plan->lb_live);
    printf("lb_node  %12" G_GINT64_FORMAT "  most that one instruction needs, in any order\n",
           plan->lb_node);
    printf("sum      %12" G_GINT64_FORMAT "  without sharing (%.1f times the arena)\n", plan->sum,
           plan->arena ? (double)plan->sum / (double)plan->arena : 1.0);
    printf("efficiency %.3f, planned in %.2f ms, %u buffers, %" G_GINT64_FORMAT " steps\n",
           efficiency(plan), plan->plan_ms, plan->n_lives, plan->n_steps);
    if (quiet)
        return;
    printf("\n%12s %12s %6s %6s  %s\n", "offset", "bytes", "first", "last", "buffer");
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        const KilnLife *life = &plan->lives[i];
        g_autofree char *storage = NULL;
        printf("%12" G_GINT64_FORMAT " %12" G_GINT64_FORMAT " %6" G_GINT64_FORMAT
               " %6" G_GINT64_FORMAT "  %s\n",
               life->offset, life->size, life->first, life->last, name_of(life, &storage));
    }
}

/* The format of the MiniMalloc benchmarks: half-open intervals. */
static gboolean
write_csv(const char *path, const KilnMemoryPlan *plan, GError **error)
{
    g_autoptr(GString) out = g_string_new("id,lower,upper,size\n");
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        const KilnLife *life = &plan->lives[i];
        g_string_append_printf(
            out, "%u,%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT "\n", i,
            life->first, life->last + 1, life->size);
    }
    return kiln_file_write(path, out->str, out->len, error);
}

static KilnIRModule *
compile(KilnOptions *options, const char *path, const KilnPipeline *pipeline,
        const KilnPassOptions *pass_options, GError **error)
{
    g_autoptr(KilnModel) model = kiln_options_load(options, path, error);
    g_autofree KilnBinding *bindings =
        model ? kiln_options_bindings(options, model, true, error) : NULL;
    if (!bindings)
        return NULL;
    /* One report for both levels, so that --bisect-limit and --stop-after count on. */
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    if (model->ir_text)
        return kiln_compile_ir_text(model, pipeline->passes, pass_options, report, error);
    KilnModule *module =
        kiln_compile_graph(model, bindings, pipeline->passes, pass_options, report, error);
    return module ? kiln_compile_ir(module, pipeline->passes, pass_options, report, error) : NULL;
}

typedef struct {
    char *svg, *csv;
} MemoryOptions;

static int
show(KilnOptions *options, char **operands, void *data, GError **error)
{
    const MemoryOptions *memory = data;
    g_autoptr(KilnPipeline) pipeline = kiln_options_pipeline(options, error);
    KilnPassOptions pass_options;
    if (!pipeline || !kiln_options_passes(options, pipeline, &pass_options, error))
        return KILN_EXIT_FAILED;
    g_autoptr(KilnIRModule) ir = compile(options, operands[0], pipeline, &pass_options, error);
    if (!ir)
        return KILN_EXIT_FAILED;
    KilnIRFunction *function = g_ptr_array_index(ir->functions, ir->functions->len - 1);
    kiln_trace_step(options->progress.trace, "plan", function->name);
    g_autoptr(KilnMemoryPlan) plan =
        kiln_memory_plan(function, pass_options.target, pass_options.threads, error);
    if (!plan || (memory->csv && !write_csv(memory->csv, plan, error)) ||
        (memory->svg && !kiln_memory_svg_write(memory->svg, plan, error)))
        return KILN_EXIT_FAILED;
    kiln_clear_progress(options);
    if (options->json)
        print_json(function, plan);
    else
        print_text(plan, options->quiet);
    return KILN_EXIT_OK;
}

int
kiln_command_memory(int argc, char **argv)
{
    MemoryOptions memory = { 0 };
    const GOptionEntry entries[] = {
        { "svg", 0, 0, G_OPTION_ARG_FILENAME, &memory.svg,
          "Draw the plan: steps across, addresses up", "F" },
        { "csv", 0, 0, G_OPTION_ARG_FILENAME, &memory.csv, "Write id,lower,upper,size", "F" },
        G_OPTION_ENTRY_NULL,
    };
    const KilnUsage usage = {
        .command = "memory",
        .operands = "MODEL",
        .n_operands = KILN_OPERANDS_ONE,
        .summary = "Shows the memory plan of a model: bounds, arena, where each buffer lies.",
        .entries = entries,
        .passes = true,
        .work = show,
    };
    int status = kiln_command(&usage, argc, argv, &memory);
    g_free(memory.svg);
    g_free(memory.csv);
    return status;
}
