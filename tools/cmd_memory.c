/* SPDX-License-Identifier: Apache-2.0 */
/* kiln memory: the memory plan, its bounds, and a picture of it. */
#include "graph/binding.h"
#include "graph/size.h"
#include "ir/open.h"
#include "ir/plan.h"
#include "ir/plan/plan_open.h"
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "runtime/bind.h"
#include "runtime/compile.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"
#include "runtime/open/template.h"
#include "runtime/program.h"
#include "runtime/specialise.h"
#include "tools/command.h"
#include "tools/memory_svg.h"
#include "tools/overwrite.h"
#include "tools/trace.h"

#include <stdio.h>

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

static const char *
kind_of(const KilnLife *life)
{
    if (!life->buffer)
        return "scratch";
    return life->buffer->kind == KILN_BUFFER_INPUT    ? "input"
           : life->buffer->kind == KILN_BUFFER_OUTPUT ? "output"
                                                      : "buffer";
}

/* The most scratch that one instruction has, of the arena's bytes. */
static int64_t
scratch_bytes(const KilnMemoryPlan *plan)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        if (!plan->lives[i].buffer)
            most = MAX(most, plan->lives[i].size);
    }
    return most;
}

static bool
lives_at(const KilnLife *life, int64_t step)
{
    return life->first <= step && step <= life->last;
}

/* What lives at the peak only because other instructions need it: why lb_live is above lb_node. */
static bool
waits_at(const KilnLife *life, const KilnMemoryPeak *peak)
{
    if (!life->buffer || !life->size || !lives_at(life, peak->step))
        return false;
    for (uint32_t i = 0; i < peak->instr->n_operands; i++) {
        KilnBuffer *buffer = peak->instr->operands[i].buffer;
        if (buffer && kiln_buffer_origin(buffer) == life->buffer)
            return false;
    }
    return true;
}

/* The names of the buffers that live at @peak; of @waiting only those that no operand needs. */
static void
write_names(KilnJson *json, const char *key, const KilnMemoryPeak *peak, const KilnMemoryPlan *plan,
            bool waiting)
{
    kiln_json_array(json, key);
    for (uint32_t i = 0; i < plan->n_lives && peak->instr; i++) {
        const KilnLife *life = &plan->lives[i];
        if (waiting ? !waits_at(life, peak) : !lives_at(life, peak->step) || !life->size)
            continue;
        g_autofree char *name = kiln_life_name(life);
        kiln_json_string(json, NULL, name);
    }
    kiln_json_end_array(json);
}

static void
write_peak(KilnJson *json, const KilnMemoryPeak *peak, const KilnMemoryPlan *plan)
{
    kiln_json_object(json, "peak");
    kiln_json_int(json, "step", peak->step);
    kiln_json_string(json, "instr", peak->instr ? kiln_instr_label(peak->instr) : "");
    write_names(json, "buffers", peak, plan, false);
    write_names(json, "waiting", peak, plan, true);
    kiln_json_end_object(json);
}

static void
write_limit(KilnJson *json, int64_t limit, const KilnMemoryExcess *excess,
            const KilnMemoryPlan *plan)
{
    kiln_json_object(json, "limit");
    kiln_json_int(json, "bytes", limit);
    kiln_json_bool(json, "fits", !excess);
    kiln_json_bool(json, "proven", !excess || excess->proven);
    kiln_json_array(json, "do_not_fit");
    for (uint32_t i = 0; excess && i < excess->n_lives; i++) {
        g_autofree char *name = kiln_life_name(&plan->lives[excess->lives[i]]);
        kiln_json_string(json, NULL, name);
    }
    kiln_json_end_array(json);
    kiln_json_end_object(json);
}

static const int64_t NO_LIMIT = INT64_MIN;

/* The plan of an open function. */
typedef struct {
    KilnOpenPlan *at;
    KilnIRFunction *expressions; /* a copy with the same ids of buffers */
    bool most;                   /* the plan holds for all numbers within the bounds */
} Open;

/* What `kiln memory` prints. */
typedef struct {
    const KilnIRFunction *function;
    const KilnMemoryPlan *plan;
    KilnMemoryPeak peak;
    int64_t limit;                  /* NO_LIMIT: none */
    const KilnMemoryExcess *excess; /* NULL: within the limit */
    const Open *open;               /* NULL: the function has numbers */
} Report;

/* --- open functions --- */

/* The bytes of a life as an expression; NULL where they are a number or not known as one. */
static char *
expression_of(const Open *open, const KilnLife *life)
{
    if (!open || !life->buffer)
        return NULL;
    const KilnBuffer *buffer = g_ptr_array_index(open->expressions->buffers, life->buffer->id);
    KilnSize size = kiln_type_size_bytes(&buffer->type);
    return size.dim ? kiln_dim_to_string(size.dim) : NULL;
}

/* past=64, t=16, or the bounds where the plan holds for all of them: past=1..512, t=1..8%8 */
static char *
numbers_text(const Open *open)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const KilnDimBinding *binding = open->at->binding;
    for (uint32_t i = 0; i < binding->n; i++) {
        const KilnBoundName *name = &binding->names[i];
        KilnDimFacts facts;
        kiln_dim_facts(kiln_dim_name(open->expressions->module->dims, name->name), &facts);
        g_string_append_printf(text, "%s%s=", i ? ", " : "", name->name);
        if (open->most)
            g_string_append_printf(text, "%" G_GINT64_FORMAT "..", facts.lo);
        g_string_append_printf(text, "%" G_GINT64_FORMAT, open->most ? facts.hi : name->number);
        if (open->most && facts.divisor > 1)
            g_string_append_printf(text, "%%%" G_GINT64_FORMAT, facts.divisor);
    }
    return kiln_one_line(text->str);
}

static void
write_open(KilnJson *json, const Open *open)
{
    kiln_json_object(json, "open");
    kiln_json_object(json, "at");
    const KilnDimBinding *binding = open->at->binding;
    for (uint32_t i = 0; i < binding->n; i++)
        kiln_json_int(json, binding->names[i].name, binding->names[i].number);
    kiln_json_end_object(json);
    kiln_json_bool(json, "at_most", open->most);
    kiln_json_end_object(json);
}

static void
write_buffers(KilnJson *json, const Report *report)
{
    const KilnMemoryPlan *plan = report->plan;
    g_autofree const KilnInstr **steps = steps_of(report->function, plan->n_steps);
    kiln_json_array(json, "buffers");
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        const KilnLife *life = &plan->lives[i];
        const KilnInstr *first = steps[life->first], *last = steps[life->last];
        g_autofree char *name = kiln_life_name(life);
        g_autofree char *expression = expression_of(report->open, life);
        kiln_json_object(json, NULL);
        kiln_json_string(json, "name", name);
        kiln_json_string(json, "kind", kind_of(life));
        kiln_json_int(json, "def", life->first);
        kiln_json_int(json, "last_use", life->last);
        kiln_json_int(json, "size", life->size);
        kiln_json_int(json, "offset", life->offset);
        kiln_json_string(json, "def_instr", first ? kiln_instr_label(first) : "");
        kiln_json_string(json, "last_instr", last ? kiln_instr_label(last) : "");
        if (expression)
            kiln_json_string(json, "bytes", expression);
        kiln_json_end_object(json);
    }
    kiln_json_end_array(json);
}

static gboolean
print_json(const Report *report, GError **error)
{
    const KilnMemoryPlan *plan = report->plan;
    g_autoptr(GString) text = g_string_new(NULL);
    KilnJson json = kiln_report_begin(text);
    kiln_json_int(&json, "sum", plan->sum);
    kiln_json_int(&json, "lb_node", plan->lb_node);
    kiln_json_int(&json, "lb_live", plan->lb_live);
    kiln_json_int(&json, "arena", plan->arena);
    kiln_json_number(&json, "efficiency", efficiency(plan));
    kiln_json_bool(&json, "proven_optimal", plan->proven_optimal);
    kiln_json_number(&json, "plan_ms", plan->plan_ms);
    kiln_json_int(&json, "scratch", scratch_bytes(plan));
    write_peak(&json, &report->peak, plan);
    if (report->limit != NO_LIMIT)
        write_limit(&json, report->limit, report->excess, plan);
    if (report->open)
        write_open(&json, report->open);
    write_buffers(&json, report);
    return kiln_report_print(&json, error);
}

static void
print_peak(const KilnMemoryPeak *peak, const KilnMemoryPlan *plan)
{
    if (!peak->instr)
        return;
    g_autofree char *label = kiln_one_line(kiln_instr_label(peak->instr));
    printf("peak     step %" G_GINT64_FORMAT ", %s (%s)", peak->step, label,
           kiln_instr_info(peak->instr->kind)->name);
    bool any = false;
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        if (!waits_at(&plan->lives[i], peak))
            continue;
        g_autofree char *name = kiln_one_line(plan->lives[i].buffer->name);
        printf("%s %s", any ? "," : "; also live:", name);
        any = true;
    }
    printf("\n");
}

/* The bytes that are live at the peak, as an expression. */
static char *
live_text(const Report *report)
{
    const KilnMemoryPlan *plan = report->plan;
    KilnSize sum = kiln_size_make(0);
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        const KilnLife *life = &plan->lives[i];
        if (life->first > report->peak.step || life->last < report->peak.step)
            continue;
        const KilnBuffer *buffer =
            life->buffer ? g_ptr_array_index(report->open->expressions->buffers, life->buffer->id)
                         : NULL;
        sum = kiln_size_add(sum, buffer ? kiln_type_size_bytes(&buffer->type)
                                        : kiln_size_make(life->size));
    }
    return sum.dim && !sum.lost ? kiln_dim_to_string(sum.dim) : NULL;
}

static void
print_live(const Report *report)
{
    g_autofree char *text = report->open && report->peak.instr ? live_text(report) : NULL;
    if (text)
        printf("live     %s bytes at the peak, with scratch memory as here\n", text);
}

static void
print_arena(const Report *report)
{
    const KilnMemoryPlan *plan = report->plan;
    const char *optimal = plan->arena == plan->lb_live ? "optimal: equal to lb_live"
                          : plan->proven_optimal       ? "optimal: the search proves it"
                                                       : "not proved optimal";
    const Open *open = report->open;
    g_autofree char *at = open ? numbers_text(open) : NULL;
    if (!open)
        printf("arena    %12" G_GINT64_FORMAT " bytes, %s\n", plan->arena, optimal);
    else if (open->most)
        printf("arena    %12" G_GINT64_FORMAT " bytes at most, for all of %s; %s\n", plan->arena,
               at, optimal);
    else
        printf("arena    %12" G_GINT64_FORMAT " bytes for %s; %s\n", plan->arena, at, optimal);
}

static void
print_buffers(const Report *report)
{
    const KilnMemoryPlan *plan = report->plan;
    printf("\n%12s %12s %6s %6s  %s\n", "offset", "bytes", "first", "last", "buffer");
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        const KilnLife *life = &plan->lives[i];
        g_autofree char *raw = kiln_life_name(life);
        g_autofree char *name = kiln_one_line(raw);
        g_autofree char *text = expression_of(report->open, life);
        g_autofree char *expression = text ? kiln_one_line(text) : NULL;
        printf("%12" G_GINT64_FORMAT " %12" G_GINT64_FORMAT " %6" G_GINT64_FORMAT
               " %6" G_GINT64_FORMAT "  %s%s%s\n",
               life->offset, life->size, life->first, life->last, name, expression ? " = " : "",
               expression ? expression : "");
    }
}

static void
print_text(const Report *report, bool quiet)
{
    const KilnMemoryPlan *plan = report->plan;
    print_arena(report);
    if (report->open && report->open->most) {
        printf("proved   each buffer has a place of the most bytes that its expression can be\n");
        printf("asked    kernels want no more scratch memory at %s%" G_GINT64_FORMAT " shapes\n",
               report->open->at->asked_all ? "any of the " : "", report->open->at->n_asked);
    }
    printf("lb_live  %12" G_GINT64_FORMAT "  largest size that is live at one step\n",
           plan->lb_live);
    printf("lb_node  %12" G_GINT64_FORMAT "  largest size that one instruction needs\n",
           plan->lb_node);
    printf("sum      %12" G_GINT64_FORMAT "  without sharing (%.1f times the arena)\n", plan->sum,
           plan->arena ? (double)plan->sum / (double)plan->arena : 1.0);
    printf("scratch  %12" G_GINT64_FORMAT "  largest scratch memory of one kernel, in the arena\n",
           scratch_bytes(plan));
    print_peak(&report->peak, plan);
    print_live(report);
    printf("efficiency %.3f, planned in %.2f ms, %u buffers, %" G_GINT64_FORMAT " steps\n",
           efficiency(plan), plan->plan_ms, plan->n_lives, plan->n_steps);
    if (!quiet)
        print_buffers(report);
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
    return kiln_write_result(path, out->str, out->len, error);
}

/* Where a model cannot be compiled for open dims: the way out, and why. */
static void
say_what_is_open(const KilnModel *model, const KilnBinding *bindings, GError **error)
{
    for (unsigned i = 0; i < model->inputs.n; i++) {
        const char *name = model->inputs.info[i].name;
        if (!kiln_binding_is_open(&bindings[i]) || kiln_type_is_static(&model->inputs.types[i]))
            continue;
        kiln_prefix_error(error, "input %s: its shape is open: give --shape %s=…; ", name, name);
        return;
    }
}

static KilnIRModule *
compile(const KilnOptions *options, const KilnModel *model, const KilnPipeline *pipeline,
        const KilnPassOptions *pass_options, GError **error)
{
    g_autofree KilnBinding *bindings = kiln_options_bindings(options, model, error);
    if (!bindings)
        return NULL;
    /* One report for both levels, so that --bisect-limit and --stop-after count on. */
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    if (model->ir_text)
        return kiln_compile_ir_text(model, pipeline->passes, pass_options, report, error);
    KilnModule *module =
        kiln_compile_graph(model, bindings, pipeline->passes, pass_options, report, error);
    KilnIRModule *ir =
        module ? kiln_compile_ir(module, pipeline->passes, pass_options, report, error) : NULL;
    if (!ir)
        say_what_is_open(model, bindings, error);
    return ir;
}

typedef struct {
    char *svg, *csv;
    gint64 limit; /* bytes */
    gboolean io;
} MemoryOptions;

static int
show(const MemoryOptions *memory, KilnOptions *options, const KilnIRFunction *function,
     const KilnMemoryPlan *plan, const Open *open, GError **error)
{
    KilnMemoryPeak peak = kiln_memory_peak(function, plan);
    if ((memory->csv && !write_csv(memory->csv, plan, error)) ||
        (memory->svg && !kiln_memory_svg_write(memory->svg, plan, &peak, error)))
        return KILN_EXIT_FAILED;
    kiln_clear_progress(options);
    bool shown = (memory->csv && kiln_is_stdout(memory->csv)) ||
                 (memory->svg && kiln_is_stdout(memory->svg));
    g_autoptr(KilnMemoryExcess) excess =
        memory->limit != NO_LIMIT ? kiln_memory_excess(function, plan, memory->limit) : NULL;
    Report report = { function, plan, peak, memory->limit, excess, open };
    if (options->json && !shown && !print_json(&report, error))
        return KILN_EXIT_FAILED;
    if (!options->json && !shown)
        print_text(&report, options->quiet);
    return !excess || kiln_memory_excess_throw(excess, plan, error) ? KILN_EXIT_OK
                                                                    : KILN_EXIT_FAILED;
}

/* What scratch memory depends on. */
typedef struct {
    const KilnTarget *target;
    int threads;
} Machine;

/* The number that @pinned has for the dim of that name; -1 where it has none. */
static int64_t
pinned_number(const KilnIRFunction *function, const KilnInfoList *pinned, const char *name)
{
    for (guint i = 0; pinned && i < function->inputs->len; i++) {
        const KilnType *type = &((const KilnBuffer *)g_ptr_array_index(function->inputs, i))->type;
        for (int d = 0; d < type->rank; d++) {
            if (g_strcmp0(kiln_type_dim_name(type, d), name) == 0 && pinned->types[i].dims[d] >= 0)
                return pinned->types[i].dims[d];
        }
    }
    return -1;
}

/* Likely numbers of all names, but for those that @pinned has. *@out_any is true where it has one.
 */
static KilnDimBinding *
numbers_of(const KilnIRFunction *function, const KilnInfoList *pinned, bool *out_any)
{
    KilnDimBinding *numbers = kiln_dim_binding_copy(function->arena, function->open->binding);
    *out_any = false;
    for (uint32_t i = 0; i < numbers->n; i++) {
        const char *name = numbers->names[i].name;
        int64_t number = pinned_number(function, pinned, name);
        *out_any |= number >= 0;
        numbers->names[i].number =
            number >= 0 ? number : kiln_dim_hint(kiln_dim_name(function->module->dims, name));
    }
    return numbers;
}

/* Instructions without scratch have no line. */
static void
drop_empty_scratch(KilnMemoryPlan *plan)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        if (plan->lives[i].buffer || plan->lives[i].size)
            plan->lives[n++] = plan->lives[i];
    }
    plan->n_lives = n;
}

/* @pinned: inputs some of whose dims have numbers; NULL: none has. */
static int
show_open(const MemoryOptions *memory, KilnOptions *options, const KilnIRFunction *function,
          const Machine *machine, const KilnInfoList *pinned, GError **error)
{
    uint32_t flags = memory->io ? KILN_PLAN_IO : 0;
    bool any;
    const KilnDimBinding *numbers = numbers_of(function, pinned, &any);
    g_autoptr(KilnOpenPlan) plan =
        any ? NULL : kiln_open_plan_most(function, machine->target, machine->threads, flags);
    bool most = plan != NULL;
    if (!most && !any && memory->limit != NO_LIMIT) {
        kiln_throw(error, KILN_ERROR_USAGE,
                   "--limit: expected numbers or upper bounds for all open dims: give --shape");
        return KILN_EXIT_USAGE;
    }
    if (!most)
        plan =
            kiln_open_plan_at(function, numbers, machine->target, machine->threads, flags, error);
    if (!plan)
        return KILN_EXIT_FAILED;
    g_autoptr(KilnIRFunction) expressions = kiln_ir_function_copy(function);
    const Open open = { plan, expressions, most };
    drop_empty_scratch(plan->plan);
    return show(memory, options, plan->function, plan->plan, &open, error);
}

/* The plan of a program that was compiled before. */
static int
show_program(const MemoryOptions *memory, KilnOptions *options, const KilnProgram *program,
             GError **error)
{
    if (memory->io) {
        kiln_throw(error, KILN_ERROR_USAGE,
                   "--io: expected a model, found %s, which is compiled already",
                   program->model->name);
        return KILN_EXIT_USAGE;
    }
    if (program->open) {
        const KilnTemplate *template = g_ptr_array_index(program->templates, 0);
        return show_open(memory, options, template->function,
                         &(Machine){ program->target, program->threads }, &program->inputs, error);
    }
    const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
    return show(memory, options, made->function, made->plan, NULL, error);
}

/* The functions of branches and loops, which come before the entry: a call of one has room for what
 * it needs. */
static gboolean
plan_inside(const KilnIRModule *ir, const Machine *machine, GError **error)
{
    for (guint i = 0; i + 1 < ir->functions->len; i++) {
        g_autoptr(KilnMemoryPlan) plan = kiln_memory_plan(g_ptr_array_index(ir->functions, i),
                                                          machine->target, machine->threads, error);
        if (!plan)
            return FALSE;
    }
    return TRUE;
}

static int
plan_and_show(const MemoryOptions *memory, KilnOptions *options, const KilnModel *model,
              const KilnPipeline *pipeline, GError **error)
{
    KilnPassOptions pass_options;
    if (!kiln_options_passes(options, pipeline, &pass_options, error))
        return KILN_EXIT_FAILED;
    g_autoptr(KilnIRModule) ir = compile(options, model, pipeline, &pass_options, error);
    if (!ir)
        return KILN_EXIT_FAILED;
    KilnIRFunction *function = g_ptr_array_index(ir->functions, ir->functions->len - 1);
    kiln_trace_step(options->progress.trace, "plan", function->name);
    const Machine machine = { pass_options.target, pass_options.threads };
    if (function->open)
        return show_open(memory, options, function, &machine, NULL, error);
    if (!plan_inside(ir, &machine, error))
        return KILN_EXIT_FAILED;
    g_autoptr(KilnMemoryPlan) plan = kiln_memory_plan_with(
        function, pass_options.target, pass_options.threads, memory->io ? KILN_PLAN_IO : 0, error);
    return plan ? show(memory, options, function, plan, NULL, error) : KILN_EXIT_FAILED;
}

static int
memory_work(KilnOptions *options, char **operands, void *data, GError **error)
{
    const MemoryOptions *memory = data;
    if (memory->limit < 0 && memory->limit != NO_LIMIT) {
        kiln_throw(error, KILN_ERROR_USAGE,
                   "--limit: expected a number of bytes, found %" G_GINT64_FORMAT, memory->limit);
        return KILN_EXIT_USAGE;
    }
    if (memory->csv && memory->svg && kiln_is_stdout(memory->csv) && kiln_is_stdout(memory->svg)) {
        kiln_throw(error, KILN_ERROR_USAGE,
                   "--csv and --svg: expected one of them to be -, found both");
        return KILN_EXIT_USAGE;
    }
    g_autoptr(KilnPipeline) pipeline = kiln_options_pipeline(options, error);
    g_autoptr(KilnProgram) program = NULL;
    g_autoptr(KilnModel) model =
        pipeline ? kiln_options_load(options, operands[0], &program, error) : NULL;
    const char *const outputs[] = { memory->csv ? memory->csv : memory->svg,
                                    memory->csv ? memory->svg : NULL, NULL };
    const KilnFiles files = { .model = model, .path = operands[0], .outputs = outputs };
    if (!model || !kiln_check_overwrite(options, &files, error))
        return KILN_EXIT_FAILED;
    return program ? show_program(memory, options, program, error)
                   : plan_and_show(memory, options, model, pipeline, error);
}

int
kiln_command_memory(int argc, char **argv)
{
    MemoryOptions memory = { .limit = NO_LIMIT };
    const GOptionEntry entries[] = {
        { "svg", 0, 0, G_OPTION_ARG_FILENAME, &memory.svg,
          "Draw the plan to this file; `-` draws it in place of the report", "F" },
        { "csv", 0, 0, G_OPTION_ARG_FILENAME, &memory.csv,
          "Write the buffers as CSV to this file; `-` writes it in place of the report", "F" },
        { "limit", 0, 0, G_OPTION_ARG_INT64, &memory.limit,
          "Fail if the arena exceeds this, and name the buffers that do not fit", "BYTES" },
        { "io", 0, 0, G_OPTION_ARG_NONE, &memory.io, "Plan the inputs and outputs, too", NULL },
        G_OPTION_ENTRY_NULL,
    };
    const KilnUsage usage = {
        .command = "memory",
        .operands = "MODEL",
        .n_operands = KILN_OPERANDS_ONE,
        .summary = "Shows the memory plan: its size, its bounds, the place of each buffer.",
        .entries = entries,
        .passes = true,
        .work = memory_work,
    };
    int status = kiln_command(&usage, argc, argv, &memory);
    g_free(memory.svg);
    g_free(memory.csv);
    return status;
}
