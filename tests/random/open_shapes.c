/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/random/open_shapes.h"

#include "graph/attr.h"
#include "graph/error.h"
#include "graph/graph.h"
#include "graph/module.h"
#include "graph/tensor.h"
#include "graph/type.h"
#include "ir/ir.h"
#include "ir/verify/verify_priv.h"
#include "passes/pass.h"
#include "runtime/bind.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"
#include "runtime/session.h"
#include "runtime/specialise.h"
#include "backends/ref/ref.h"
#include "kiln.h"
#include "passes/manager/numerics.h"
#include "passes/manager/results.h"
#include "passes/pipeline/pipeline.h"
#include "tests/random/given.h"
#include "tests/random/opened.h"
#include "tests/random/ways.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>

enum {
    WAY_NONE,
    WAY_EXACT,
    WAY_DEFAULT,
    WAY_OFFLOAD,
    FILE_EVERY = 4,  /* of so many programs one is written to a file and read */
    LEAST_OPEN = 85, /* percent of the programs; 94 were seen */
};

static const char *const pipeline_names[OPEN_WAYS] = { "none", "exact", "default", "offload" };
static const char *const numbers_names[N_NUMBERS] = { "primes", "ones", "equal",
                                                      "large",  "zero", "zeros" };

/* What a program for numbers makes of them. */
typedef struct {
    KilnResults *results; /* NULL: @why */
    GError *why;
} Outcome;

typedef struct {
    Opened opened;
    uint64_t seed;
    KilnModel *model;
    KilnBinding *bindings[N_NUMBERS];
    GPtrArray *inputs[N_NUMBERS]; /* KilnTensor* */
    OpenSeen *seen;
    unsigned way; /* the pipeline */
    char *reason; /* why its program is not open; NULL: it is */
    Outcome outcomes[N_NUMBERS];
} Trial;

static gboolean
trial_init(Trial *trial, GError **error)
{
    if (!kiln_module_verify(trial->opened.module, error) ||
        !(trial->model = given_load(trial->opened.module, error)))
        return FALSE;
    for (Numbers n = 0; n < N_NUMBERS; n++) {
        trial->bindings[n] = opened_bindings(&trial->opened, n);
        if (!(trial->inputs[n] = opened_inputs(&trial->opened, trial->bindings[n], error)))
            return FALSE;
    }
    return TRUE;
}

static void
forget_outcomes(Trial *trial)
{
    for (Numbers n = 0; n < N_NUMBERS; n++) {
        g_clear_pointer(&trial->outcomes[n].results, kiln_results_free);
        g_clear_error(&trial->outcomes[n].why);
    }
    g_clear_pointer(&trial->reason, g_free);
}

static void
trial_clear(Trial *trial)
{
    forget_outcomes(trial);
    for (Numbers n = 0; n < N_NUMBERS; n++) {
        g_clear_pointer(&trial->bindings[n], g_free);
        g_clear_pointer(&trial->inputs[n], g_ptr_array_unref);
    }
    kiln_model_unref(trial->model);
    opened_clear(&trial->opened);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Trial, trial_clear)

/* --- programs --- */

static void
keep_reason(const char *line, void *data)
{
    static const char mark[] = "compiled for each shape";
    const char *at = strstr(line, mark);
    Trial *trial = data;
    if (!at)
        return;
    g_free(trial->reason);
    trial->reason = g_strdup(at + strlen(mark));
}

static const char *
target_of(const Trial *trial)
{
    return trial->seed % 8 == 5 ? "ref" : "cpu";
}

static void
drop_folding(GPtrArray *entries)
{
    for (guint i = entries->len; i-- > 0;) {
        KilnPipelineEntry *entry = g_ptr_array_index(entries, i);
        if (entry->group)
            drop_folding(entry->group);
        if (entry->group ? !entry->group->len : strcmp(entry->pass->id, "constant-fold") == 0)
            g_ptr_array_remove_index(entries, i);
    }
}

/* Folding has the bits of the reference: `ref` runs with it, and `cpu` without. */
static KilnPipeline *
load_exact(const Trial *trial, GError **error)
{
    bool on_ref = strcmp(target_of(trial), "ref") == 0;
    KilnPipeline *pipeline =
        ways_exact_pipeline(on_ref && trial->seed % 3 == 0 ? trial->seed / 24 : 0, error);
    if (pipeline && !on_ref)
        drop_folding(pipeline->passes->graph);
    return pipeline;
}

static KilnPipeline *
load_pipeline(const Trial *trial, GError **error)
{
    return trial->way == WAY_EXACT ? load_exact(trial, error)
                                   : kiln_pipeline_load(pipeline_names[trial->way], error);
}

/* @numbers: those that it is for; N_NUMBERS: it is open. */
static KilnProgram *
compile(Trial *trial, Numbers numbers, GError **error)
{
    g_autoptr(KilnPipeline) pipeline = load_pipeline(trial, error);
    const unsigned n = kiln_model_n_inputs(trial->model);
    g_autofree KilnShape *shapes = g_new0(KilnShape, n + 1);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.pipeline = pipeline;
    options.target = target_of(trial);
    options.threads = 1;
    options.prefer_memory = trial->seed % 7 == 2;
    options.no_offload =
        trial->way < WAY_DEFAULT || (trial->way == WAY_DEFAULT && trial->seed % 3 != 0);
    for (unsigned i = 0; numbers < N_NUMBERS && i < n; i++) {
        const KilnBinding *binding = &trial->bindings[numbers][i];
        shapes[i] = (KilnShape){ kiln_model_input(trial->model, i)->name, binding->rank, { 0 } };
        memcpy(shapes[i].dims, binding->dims, sizeof shapes[i].dims);
        options.n_shapes = n;
    }
    const KilnConstantInput constant = { n ? kiln_model_input(trial->model, trial->seed % n)->name
                                           : NULL,
                                         KILN_CONSTANT_RUN, NULL };
    options.constants = &constant;
    options.n_constants = n && trial->seed % 3 == 0;
    options.shapes = shapes;
    options.log = numbers == N_NUMBERS ? keep_reason : NULL;
    options.data = trial;
    return pipeline ? kiln_program_compile(trial->model, &options, error) : NULL;
}

/* --- runs --- */

static KilnResults *
run_at(const Trial *trial, KilnSession *session, Numbers numbers, GError **error)
{
    const GPtrArray *inputs = trial->inputs[numbers];
    g_autoptr(GPtrArray) bound = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    for (guint i = 0; i < inputs->len; i++) {
        const KilnBinding *binding = &trial->bindings[numbers][i];
        GBytes *bytes = kiln_tensor_view(g_ptr_array_index(inputs, i), error);
        if (!bytes)
            return NULL;
        g_ptr_array_add(bound, bytes);
        if (!kiln_session_bind_input_shaped(session, i, g_bytes_get_data(bytes, NULL),
                                            binding->rank, binding->dims, error))
            return NULL;
    }
    return kiln_session_run(session, error) ? given_results(session, error) : NULL;
}

static KilnSession *
make_session(const Trial *trial, KilnProgram *program, bool checked, GError **error)
{
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.seeded = TRUE;
    options.poison = checked && trial->seed % 3 == 1;
    options.profile = checked && trial->seed % 5 == 1;
    return kiln_session_new(program, &options, error);
}

static void
run_for_numbers(Trial *trial, Numbers numbers)
{
    Outcome *out = &trial->outcomes[numbers];
    g_autoptr(KilnProgram) program = compile(trial, numbers, &out->why);
    g_autoptr(KilnSession) session =
        program ? make_session(trial, program, false, &out->why) : NULL;
    out->results = session ? run_at(trial, session, numbers, &out->why) : NULL;
}

/* --- comparisons --- */

typedef struct {
    bool halves, quantized;
} Kinds;

static void
look_at(Kinds *kinds, const KilnValue *value)
{
    kinds->halves |= kiln_dtype_is_half(value->type.dtype);
    kinds->quantized |= value->type.quant != NULL;
}

static Kinds
kinds_of(const KilnFunction *function)
{
    Kinds kinds = { false, false };
    for (guint i = 0; i < function->arguments->len; i++)
        look_at(&kinds, &kiln_function_argument(function, i)->value);
    kiln_foreach_node (node, function) {
        for (uint32_t r = 0; r < node->n_results; r++)
            look_at(&kinds, &node->results[r]);
    }
    return kinds;
}

/* How far results may move. Passes may do for numbers what they do not do for names: those of
 * `default` round in another way, and lowering rounds halves and quantized values. */
static KilnNumerics
numerics_of(const Trial *trial)
{
    const Kinds kinds = kinds_of(kiln_module_entry(trial->opened.module));
    if (trial->way == WAY_NONE)
        return KILN_NUMERICS_E;
    if (kinds.quantized)
        return KILN_NUMERICS_QS;
    return trial->way >= WAY_DEFAULT || kinds.halves ? KILN_NUMERICS_U : KILN_NUMERICS_E;
}

static gboolean
is_close(const Trial *trial, Numbers numbers, const KilnResults *found, GError **error)
{
    g_autoptr(KilnModule) module =
        kiln_specialise(trial->opened.module, trial->bindings[numbers], kiln_ref_target(), error);
    if (!module)
        return FALSE;
    KilnResults *expected = trial->outcomes[numbers].results;
    Subject subject = {
        .module = module, .inputs = trial->inputs[numbers], .expected = expected, .most = -1
    };
    expected->terms = kiln_error_terms(kiln_module_entry(module), NULL);
    return subject_compare(&subject, found, numerics_of(trial), error);
}

static gboolean
compare(Trial *trial, Numbers numbers, const KilnResults *found, GError **error)
{
    bool exact = numerics_of(trial) == KILN_NUMERICS_E;
    const KilnResults *expected = trial->outcomes[numbers].results;
    if (kiln_results_compare(expected, found, KILN_NUMERICS_E, exact ? error : NULL)) {
        trial->seen->equal++;
        return TRUE;
    }
    if (exact || !is_close(trial, numbers, found, error))
        return FALSE;
    trial->seen->close++;
    return TRUE;
}

/* A run finds in its data what a program for numbers found in literals when it was compiled. */
static gboolean
compare_errors(const GError *expected, const GError *found, GError **error)
{
    bool at_run = g_error_matches(found, KILN_ERROR, KILN_ERROR_RUN);
    if (at_run || (expected->domain == found->domain && expected->code == found->code))
        return TRUE;
    return kiln_throw(error, KILN_ERROR_MISMATCH, "expected the error '%s', found '%s'",
                      expected->message, found->message);
}

/* What the session stands at is a function like any other. */
static gboolean
verify_instance(const KilnSession *session, GError **error)
{
    const KilnIRFunction *function = session->made->function;
    return kiln_ir_verify(function, error) && kiln_verify_plan(function, error);
}

static bool
has_zero(Numbers numbers)
{
    return numbers == NUMBERS_ZERO || numbers == NUMBERS_ZEROS;
}

static gboolean
step(Trial *trial, KilnSession *session, Numbers numbers, GError **error)
{
    const Outcome *outcome = &trial->outcomes[numbers];
    OpenSeen *seen = trial->seen;
    g_autoptr(GError) why = NULL;
    g_autoptr(KilnSpecialisation) before =
        session->made ? kiln_specialisation_ref(session->made) : NULL;
    g_autoptr(KilnResults) found = run_at(trial, session, numbers, &why);
    if (found && !outcome->results && trial->way != WAY_NONE)
        return TRUE; /* a pass may remove what fails */
    if (!found != !outcome->results)
        return kiln_throw(error, KILN_ERROR_MISMATCH, "expected %s%s, found %s%s",
                          outcome->results ? "results" : "the error ",
                          outcome->results ? "" : outcome->why->message,
                          found ? "results" : "the error ", found ? "" : why->message);
    seen->errors += !found;
    if (!found)
        return compare_errors(outcome->why, why, error);
    bool instance = session->made->instance != NULL;
    bool zero = has_zero(numbers);
    if (session->program->templates->len) {
        *(zero ? &seen->zeros : &seen->runs) += 1;
        *(zero ? &seen->with_zeros : &seen->instances) += instance;
    }
    if (!zero && instance && before && before->instance && before != session->made)
        return kiln_throw(error, KILN_ERROR_MISMATCH, "the session took another instance");
    return compare(trial, numbers, found, error) && (!instance || verify_instance(session, error));
}

static gboolean
walk(Trial *trial, KilnProgram *program, unsigned order, GError **error)
{
    Numbers numbers[N_NUMBERS];
    g_autofree char *salt = g_strdup_printf("order %u", order);
    for (unsigned i = 0; i < N_NUMBERS; i++)
        numbers[i] = (Numbers)i;
    for (unsigned i = N_NUMBERS - 1; i > 0; i--) {
        unsigned j = given_draw(salt, trial->seed + i, i + 1);
        Numbers swap = numbers[i];
        numbers[i] = numbers[j];
        numbers[j] = swap;
    }
    g_autoptr(KilnSession) session = make_session(trial, program, true, error);
    for (unsigned i = 0; session && i < N_NUMBERS; i++) {
        if (step(trial, session, numbers[i], error))
            continue;
        g_prefix_error(error, "%s after %s: ", numbers_names[numbers[i]],
                       i ? numbers_names[numbers[i - 1]] : "nothing");
        return FALSE;
    }
    return session != NULL;
}

/* --- files --- */

/* @program, written and read. */
static KilnProgram *
load_again(KilnProgram *program, GError **error)
{
    g_autofree char *path = NULL;
    int file = g_file_open_tmp("kiln-open-XXXXXX", &path, error);
    if (file < 0)
        return NULL;
    g_close(file, NULL);
    KilnProgram *again =
        kiln_program_save(program, path, error) ? kiln_program_load(path, NULL, error) : NULL;
    g_unlink(path);
    return again;
}

/* A file has no graph: what the open program refuses, it refuses. So are dims of 0. */
static gboolean
compare_file(Trial *trial, KilnSession *session, KilnSession *again, Numbers numbers,
             GError **error)
{
    g_autoptr(GError) why = NULL;
    g_autoptr(KilnResults) expected = run_at(trial, session, numbers, NULL);
    g_autoptr(KilnResults) found = run_at(trial, again, numbers, &why);
    if (!session->made || !session->made->instance)
        return TRUE;
    if (has_zero(numbers) && g_error_matches(why, KILN_ERROR, KILN_ERROR_SHAPE))
        return TRUE;
    if (!found != !expected)
        return kiln_throw(error, KILN_ERROR_MISMATCH,
                          "%s: the program of a file: expected %s, found %s",
                          numbers_names[numbers], expected ? "results" : "an error",
                          found ? "results" : why->message);
    trial->seen->files += found != NULL;
    return !found || kiln_results_compare(expected, found, KILN_NUMERICS_E, error);
}

static gboolean
agree_with_file(Trial *trial, KilnProgram *program, GError **error)
{
    if (!program->templates->len || trial->seed % 3 == 0 || (trial->seed + trial->way) % FILE_EVERY)
        return TRUE;
    for (unsigned i = 0; i < program->inputs.n; i++) {
        if (program->value_inputs[i])
            return TRUE;
    }
    g_autoptr(KilnProgram) again = load_again(program, error);
    g_autoptr(KilnSession) session = again ? make_session(trial, program, true, error) : NULL;
    g_autoptr(KilnSession) other = session ? make_session(trial, again, true, error) : NULL;
    gboolean good = other != NULL;
    for (unsigned i = 0; good && i < N_NUMBERS; i++)
        good = compare_file(trial, session, other, (Numbers)i, error);
    return good;
}

/* --- the whole --- */

static void
count_program(const Trial *trial, const KilnProgram *program)
{
    OpenSeen *seen = trial->seen;
    bool open = program->templates->len > 0;
    seen->programs[trial->way]++;
    seen->open[trial->way] += open;
    if (open)
        return;
    if (!seen->reasons)
        seen->reasons = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    const char *reason = trial->reason ? trial->reason : "no reason";
    guint n = GPOINTER_TO_UINT(g_hash_table_lookup(seen->reasons, reason));
    g_hash_table_replace(seen->reasons, g_strdup(reason), GUINT_TO_POINTER(n + 1));
}

static gboolean
agree_under(Trial *trial, unsigned way, GError **error)
{
    bool any = false;
    trial->way = way;
    forget_outcomes(trial);
    for (Numbers n = 0; n < N_NUMBERS; n++) {
        run_for_numbers(trial, n);
        any |= trial->outcomes[n].results != NULL;
    }
    g_autoptr(GError) why = NULL;
    g_autoptr(KilnProgram) program = compile(trial, N_NUMBERS, &why);
    if (!program && any)
        g_propagate_error(error, g_steal_pointer(&why));
    if (!program)
        return !any;
    for (unsigned order = 0; order < 2; order++) {
        if (!walk(trial, program, order, error))
            return FALSE;
    }
    if (any)
        count_program(trial, program);
    return agree_with_file(trial, program, error);
}

gboolean
open_agrees(uint64_t seed, Subject *subject, OpenSeen *seen, bool *fired, GError **error)
{
    OpenSeen ignored = { 0 };
    g_auto(Trial) trial = { .seed = seed, .seen = seen ? seen : &ignored };
    *fired = opened_init(&trial.opened, subject->module, seed);
    trial.seen->graphs++;
    trial.seen->varying += *fired;
    if (!*fired)
        return TRUE;
    gboolean good = trial_init(&trial, error);
    for (unsigned way = 0; good && way < OPEN_WAYS; way++) {
        if (way == WAY_OFFLOAD && !OPEN_IS_FOR_VENDOR(seed))
            continue;
        good = agree_under(&trial, way, error);
        if (!good)
            g_prefix_error(error, "%s: ", pipeline_names[way]);
    }
    open_seen_clear(&ignored);
    return good;
}

/* --- counts --- */

void
open_seen_clear(OpenSeen *seen)
{
    g_clear_pointer(&seen->reasons, g_hash_table_unref);
}

static void
print_reasons(const OpenSeen *seen)
{
    GHashTableIter iter;
    gpointer reason, n;
    if (!seen->reasons)
        return;
    g_hash_table_iter_init(&iter, seen->reasons);
    while (g_hash_table_iter_next(&iter, &reason, &n))
        printf("  not open %u times: %s\n", GPOINTER_TO_UINT(n), (const char *)reason);
}

bool
open_summarize(const OpenSeen *seen)
{
    bool enough = true;
    printf("  %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " graphs have names\n", seen->varying,
           seen->graphs);
    for (unsigned way = 0; way < OPEN_WAYS; way++) {
        printf("  %s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " programs are open\n",
               pipeline_names[way], seen->open[way], seen->programs[way]);
        enough &= seen->open[way] * 100 >= seen->programs[way] * LEAST_OPEN;
    }
    printf("  %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
           " runs of them by instances, %" G_GUINT64_FORMAT " runs failed as they should\n",
           seen->instances, seen->runs, seen->errors);
    printf("  %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " runs with a dim of 0 by instances\n",
           seen->with_zeros, seen->zeros);
    printf("  %" G_GUINT64_FORMAT " runs of programs that were read from files\n", seen->files);
    printf("  %" G_GUINT64_FORMAT " runs with equal bits, %" G_GUINT64_FORMAT " within the bound\n",
           seen->equal, seen->close);
    print_reasons(seen);
    return enough;
}
