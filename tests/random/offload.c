/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/random/offload.h"

#include "graph/op/offload.h"
#include "kiln.h"
#include "passes/manager/results.h"
#include "runtime/program.h"
#include "runtime/pipeline.h"
#include "ir/compiled.h"
#include "ir/vendor.h"
#include "passes/pipeline/pipeline.h"
#include "passes/rule.h"
#include "runtime/bind.h"
#include "runtime/targets.h"
#include "tests/random/given.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    Subject *subject;
    Given given;
    KilnModel *model;
    OffloadSeen seen; /* of this graph: none or some */
} Trial;

/* --- a vendor that refuses --- */

static struct {
    KilnVendor vendor;
    const KilnVendor *real;
    uint64_t seed, refused;
    char version[96];
} refusing;

static bool
is_refused(const KilnInstr *instr)
{
    if (instr->kind == KILN_INSTR_call || instr->kind == KILN_INSTR_pack ||
        instr->kind == KILN_INSTR_unpack ||
        kiln_instr_info(instr->kind)->flags & KILN_INSTR_BOOKKEEPING)
        return false;
    uint32_t first = 0; /* of an LSTM results may be absent */
    while (!instr->operands[first].buffer)
        first++;
    const KilnType *type = &instr->operands[first].buffer->type;
    g_autofree char *text = g_strdup_printf("%d %" G_GINT64_FORMAT, (int)instr->kind,
                                            type->rank ? type->dims[type->rank - 1] : 0);
    return given_draw(text, refusing.seed, 5) == 0;
}

/* Operators by what they are, so that what is left of a region is refused again; now and then the
 * vendor does not say which one it was. */
static KilnCompiled *
compile_some(const KilnIRFunction *region, const KilnTarget *target, const bool *constant,
             int threads, const KilnInstr **out_refused, GError **error)
{
    kiln_foreach_instr (instr, region) {
        if (!is_refused(instr))
            continue;
        refusing.refused++;
        if (refusing.seed % 4)
            *out_refused = instr;
        return kiln_throw_null(error, KILN_ERROR_UNSUPPORTED, "injected failure");
    }
    return refusing.real->compile(region, target, constant, threads, out_refused, error);
}

/* The target that programs are compiled for by name. */
static KilnTarget *
cpu(void)
{
    return (KilnTarget *)kiln_target_by_name("cpu", NULL);
}

/* Another version, so that the kernel cache gives nothing that was not refused. */
static void
begin_refusing(uint64_t seed)
{
    refusing.real = cpu()->vendor;
    refusing.vendor = *refusing.real;
    refusing.vendor.compile = compile_some;
    refusing.vendor.version = refusing.version;
    refusing.seed = seed;
    refusing.refused = 0;
    g_snprintf(refusing.version, sizeof refusing.version, "%s but %" G_GUINT64_FORMAT,
               refusing.real->version, seed);
    cpu()->vendor = &refusing.vendor;
}

static void
end_refusing(void)
{
    cpu()->vendor = refusing.real;
}

/* --- programs --- */

static const struct {
    const char *name, *pipeline;
    int threads;
    bool single, memory, refuses;
    bool first; /* the bits of those that follow it are its own */
    bool saved; /* and of a program that is saved and loaded */
} rows[] = {
    { .name = "offload", .pipeline = "offload", .threads = 1, .first = true },
    { .name = "offload on 2 threads", .pipeline = "offload", .threads = 2, .saved = true },
    { .name = "offload on 3 threads", .pipeline = "offload", .threads = 3 },
    { .name = "default", .pipeline = "default", .threads = 1, .first = true },
    { .name = "default on 3 threads", .pipeline = "default", .threads = 3, .saved = true },
    { .name = "single", .pipeline = "offload", .threads = 2, .single = true, .first = true },
    { .name = "memory", .pipeline = "default", .threads = 2, .memory = true, .first = true },
    { .name = "failures", .pipeline = "offload", .threads = 2, .refuses = true, .first = true },
};

/* Regions are small here. */
static void
set_options(KilnPassPipeline *passes, KilnPipelineEntry *entry, bool single)
{
    if (entry->pass && strcmp(entry->pass->id, "partition-offload") == 0) {
        if (single)
            given_set_option(passes, entry, "policy", "single");
        given_set_option(passes, entry, "min-us", "0");
    } else if (entry->pass && strcmp(entry->pass->id, "compile-offload") == 0) {
        given_set_option(passes, entry, "min-us", "0");
    }
}

static KilnPipeline *
pipeline_of(size_t row, GError **error)
{
    KilnPipeline *pipeline = kiln_pipeline_load(rows[row].pipeline, error);
    KilnPassPipeline *passes = pipeline ? pipeline->passes : NULL;
    for (guint i = 0; passes && i < passes->graph->len; i++) {
        if (strcmp(rows[row].pipeline, "offload") == 0)
            set_options(passes, g_ptr_array_index(passes->graph, i), rows[row].single);
    }
    return pipeline;
}

static void
note(const char *line, void *data)
{
    Trial *trial = data;
    trial->seen.merges |= g_str_has_prefix(line, "merge-offload: merge:");
}

static KilnProgram *
compile(Trial *trial, size_t row, GError **error)
{
    g_autoptr(KilnPipeline) pipeline = pipeline_of(row, error);
    if (!pipeline)
        return NULL;
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.pipeline = pipeline;
    options.threads = rows[row].threads;
    options.prefer_memory = rows[row].memory;
    options.log = note;
    options.data = trial;
    bool refuses = rows[row].refuses && cpu()->vendor;
    if (refuses)
        begin_refusing(trial->given.seed);
    KilnProgram *program = given_compile(&trial->given, WAY_MIXED, trial->model, &options, error);
    if (refuses) {
        end_refusing();
        trial->seen.refused |= refusing.refused > 0;
    }
    return program;
}

/* --- what they are made of --- */

static bool
has_custom(const KilnFunction *body)
{
    kiln_foreach_node (node, body) {
        if (node->op == KILN_OP_custom_op)
            return true;
    }
    return false;
}

/* What comes in a layout, but for weights. */
static bool
has_layout(const KilnFunction *body)
{
    for (guint i = 0; i < body->arguments->len; i++) {
        const KilnArgument *argument = kiln_function_argument(body, i);
        if (argument->value.type.layout && argument->constness != KILN_CONSTNESS_COMPILE)
            return true;
    }
    return false;
}

static void
look(Trial *trial, const KilnProgram *program)
{
    const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
    for (uint32_t c = 0; c < made->n_calls; c++) {
        const KilnInstr *instr = made->calls[c].instr;
        const KilnFunction *body = instr->kind == KILN_INSTR_call ? instr->declaration->body : NULL;
        trial->seen.winograd |= strstr(made->calls[c].kernel->name, "winograd") != NULL;
        trial->seen.regions |= instr->kind == KILN_INSTR_call;
        trial->seen.customs |= body && has_custom(body);
        trial->seen.layouts |= body && has_layout(body);
    }
}

/* --- trials --- */

static KilnResults *
results_of(const Trial *trial, KilnProgram *program, bool poison, GError **error)
{
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.poison = poison;
    return given_run(&trial->given, WAY_MIXED, program, &options, error);
}

static KilnResults *
results_of_saved(const Trial *trial, KilnProgram *program, GError **error)
{
    g_autofree char *path = NULL;
    int file = g_file_open_tmp("kiln-random-XXXXXX.kilnp", &path, error);
    if (file < 0)
        return NULL;
    close(file);
    g_autoptr(KilnProgram) loaded =
        kiln_program_save(program, path, error) ? kiln_program_load(path, NULL, error) : NULL;
    unlink(path);
    return loaded ? results_of(trial, loaded, false, error) : NULL;
}

/* *@io_first: of the last row that is a first one. */
static gboolean
try_row(Trial *trial, size_t row, KilnResults **io_first, GError **error)
{
    g_autoptr(KilnProgram) program = compile(trial, row, error);
    g_autoptr(KilnResults) results =
        program ? results_of(trial, program, rows[row].first, error) : NULL;
    if (!results)
        return FALSE;
    look(trial, program);
    if (!rows[row].first && !kiln_results_compare(*io_first, results, KILN_NUMERICS_E, error))
        return FALSE;
    if (rows[row].first && !subject_compare(trial->subject, results, KILN_NUMERICS_U, error))
        return FALSE;
    if (rows[row].saved) {
        trial->seen.saved = 1;
        g_autoptr(KilnResults) loaded = results_of_saved(trial, program, error);
        if (!loaded || !kiln_results_compare(results, loaded, KILN_NUMERICS_E, error)) {
            g_prefix_error(error, "saved and loaded: ");
            return FALSE;
        }
    }
    if (rows[row].first) {
        kiln_results_free(*io_first);
        *io_first = g_steal_pointer(&results);
    }
    return TRUE;
}

static void
add_seen(OffloadSeen *all, const OffloadSeen *one)
{
    all->graphs++;
    all->regions += one->regions;
    all->merges += one->merges;
    all->customs += one->customs;
    all->layouts += one->layouts;
    all->winograd += one->winograd;
    all->refused += one->refused;
    all->saved += one->saved;
}

gboolean
offload_agrees(uint64_t seed, Subject *subject, OffloadSeen *seen, bool *fired, GError **error)
{
    Trial trial = { .subject = subject };
    given_init(&trial.given, subject, seed, seed % 2);
    trial.model = given_load(trial.given.module, error);
    KilnResults *first = NULL;
    gboolean good = trial.model != NULL;
    for (size_t row = 0; good && row < G_N_ELEMENTS(rows); row++) {
        good = try_row(&trial, row, &first, error);
        if (!good)
            g_prefix_error(error, "%s: ", rows[row].name);
    }
    kiln_results_free(first);
    if (trial.model)
        kiln_model_unref(trial.model);
    given_clear(&trial.given);
    *fired = trial.seen.regions;
    if (seen)
        add_seen(seen, &trial.seen);
    return good;
}
