/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/random/flow.h"

#include "backends/ref/ref.h"
#include "exec/eval.h"
#include "graph/base/number.h"
#include "graph/function.h"
#include "graph/graph.h"
#include "graph/module.h"
#include "graph/module/decompose.h"
#include "graph/onnx/onnx.h"
#include "graph/op/flow.h"
#include "graph/tensor.h"
#include "ir/ir.h"
#include "kiln.h"
#include "passes/manager/numerics.h"
#include "passes/manager/results.h"
#include "passes/pass.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/bind.h"
#include "runtime/open/template.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"
#include "tests/random/given.h"
#include "tests/random/ways.h"
#include "tests/unit/op_named.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Whether a program may be refused where it has an `if`, `loop` or `scan`. It is counted then. */
#define MAY_BE_REFUSED false

static const char *const refusals[] = {
    "this operator has no instruction",
    "expected a known shape, found ",
    "expected a static type, found ",
};

enum {
    SETS = 2,    /* of inputs */
    THREADS = 2, /* sessions with 1 … */
};

typedef struct {
    const char *name, *pipeline, *target; /* pipeline NULL: the exact passes of `default` */
    KilnNumerics numerics;
    bool offloads; /* all that the vendor has, and a program is saved and loaded */
} FlowWay;

static const FlowWay flow_ways[FLOW_WAYS] = {
    { "none on ref", "none", "ref", KILN_NUMERICS_E, false },
    { "exact passes on ref", NULL, "ref", KILN_NUMERICS_E, false },
    { "none on cpu", "none", "cpu", KILN_NUMERICS_U, false },
    { "default on cpu", "default", "cpu", KILN_NUMERICS_U, false },
    { "offload on cpu", "offload", "cpu", KILN_NUMERICS_U, true },
};

/* --- what the reference computes --- */

/* A set of inputs. */
typedef struct {
    GPtrArray *inputs; /* KilnTensor* */
    KilnResults *expected;
    KilnErrorTerms terms;  /* of all iterations */
    double most;           /* the largest magnitude of a float on the way */
    uint64_t seen, inside; /* results of nodes, and those in regions */
} Case;

typedef struct {
    const Subject *subject;
    uint64_t seed;
    KilnModel *model;
    FlowSeen *seen;
    Case cases[SETS];
} Trial;

static void
look_at(Case *set, const KilnTensor *tensor)
{
    const KilnDType dtype = tensor->type.dtype;
    if (!kiln_dtype_is_float(dtype))
        return;
    if (dtype == KILN_DTYPE_f32) /* an f64 made of it is no better */
        set->terms.epsilon = FLT_EPSILON;
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, NULL);
    for (int64_t i = 0; bytes && i < kiln_type_elements(&tensor->type); i++) {
        const double x = fabs(kiln_element_as_f64(dtype, g_bytes_get_data(bytes, NULL), i));
        set->most = x <= set->most ? set->most : isfinite(x) ? x : INFINITY;
    }
}

static gboolean
see(const KilnValue *value, KilnTensor **io_tensor, void *data, GError **error)
{
    Case *set = data;
    (void)error;
    set->seen++;
    set->inside += value->def->function->owner != NULL;
    if (value->index == 0)
        set->terms.terms += kiln_node_terms(value->def, NULL);
    look_at(set, *io_tensor);
    return TRUE;
}

static gboolean
case_init(Case *set, const Subject *subject, uint64_t number, GError **error)
{
    const KilnFunction *function = kiln_module_entry(subject->module);
    const KilnWatch watch = { .see = see, .data = set };
    set->terms.terms = 1;
    set->inputs = kiln_random_inputs(function, NULL, number + 1, error);
    for (guint i = 0; set->inputs && i < set->inputs->len; i++)
        look_at(set, g_ptr_array_index(set->inputs, i));
    set->expected =
        set->inputs ? kiln_results_watched(function, kiln_ref_target(), set->inputs, &watch, error)
                    : NULL;
    return set->expected != NULL;
}

static void
trial_clear(Trial *trial)
{
    for (unsigned i = 0; i < SETS; i++) {
        g_clear_pointer(&trial->cases[i].inputs, g_ptr_array_unref);
        g_clear_pointer(&trial->cases[i].expected, kiln_results_free);
    }
    kiln_model_unref(trial->model);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Trial, trial_clear)

static void
count_flows(FlowSeen *seen, const KilnFunction *function, unsigned depth)
{
    kiln_foreach_node (node, function) {
        const bool flow =
            node->op == KILN_OP_if || node->op == KILN_OP_loop || node->op == KILN_OP_scan;
        if (!flow)
            continue;
        seen->flows[node->op == KILN_OP_if ? 0 : node->op == KILN_OP_loop ? 1 : 2]++;
        seen->nested[MIN(depth, G_N_ELEMENTS(seen->nested) - 1)]++;
        kiln_foreach_region (region, node)
            count_flows(seen, region, depth + 1);
    }
}

/* --- comparisons --- */

static double
largest(const KilnTensor *tensor)
{
    Case alone = { 0 };
    look_at(&alone, tensor);
    return alone.most;
}

/* As subject_compare() does, with what was seen in all iterations. */
static gboolean
is_close(const Case *set, const KilnResults *found, GError **error)
{
    const KilnResults *before = set->expected;
    const KilnNumerics numerics =
        set->most * set->terms.terms < FLT_MAX ? KILN_NUMERICS_U : KILN_NUMERICS_L;
    for (guint i = 0; i < before->tensors->len; i++) {
        const char *name = g_ptr_array_index(before->names, i);
        const KilnTensor *a = g_ptr_array_index(before->tensors, i);
        const KilnTensor *b = kiln_results_find(found, name);
        if (!b)
            return kiln_throw(error, KILN_ERROR_MISMATCH, "%s is gone", name);
        const double own = MAX(largest(a), largest(b));
        KilnErrorTerms terms = set->terms;
        terms.terms *= own > 0 && isfinite(own) ? set->most / own : 1;
        if (!kiln_compare_numerics(a, b, numerics, &terms, error)) {
            g_prefix_error(error, "%s: ", name);
            return FALSE;
        }
    }
    return TRUE;
}

/* True where both are empty and differ only in dims in which one of them has 0. */
static bool
is_emptied(const KilnType *a, const KilnType *b)
{
    bool same = a->rank == b->rank && a->dtype == b->dtype && !kiln_type_elements(a) &&
                !kiln_type_elements(b);
    for (int d = 0; same && d < a->rank; d++)
        same = a->dims[d] == b->dims[d] || !a->dims[d] || !b->dims[d];
    return same;
}

/* ONNX leaves open which dims an empty stack has where a run decides those of its elements. Such a
 * dim is 0, as in ONNX Runtime. Who knows more of the graph, because passes or the reader of a
 * model removed an idle loop in front, knows the dim. */
static void
settle_empty(const KilnResults *expected, KilnResults *found)
{
    for (guint i = 0; i < expected->tensors->len; i++) {
        const KilnTensor *a = g_ptr_array_index(expected->tensors, i);
        for (guint k = 0; k < found->tensors->len; k++) {
            KilnTensor **b = (KilnTensor **)&g_ptr_array_index(found->tensors, k);
            const bool same = strcmp(g_ptr_array_index(expected->names, i),
                                     g_ptr_array_index(found->names, k)) == 0;
            if (!same || !is_emptied(&a->type, &(*b)->type))
                continue;
            kiln_tensor_free(*b);
            *b = kiln_tensor_copy(a);
        }
    }
}

static gboolean
compare(const Trial *trial, const FlowWay *way, const Case *set, const KilnResults *found,
        GError **error)
{
    const bool exact = way->numerics == KILN_NUMERICS_E;
    trial->seen->runs++;
    if (kiln_results_compare(set->expected, found, KILN_NUMERICS_E, exact ? error : NULL)) {
        trial->seen->equal++;
        return TRUE;
    }
    if (exact || !is_close(set, found, error))
        return FALSE;
    trial->seen->close++;
    return TRUE;
}

/* --- programs --- */

static void
keep_small_regions(KilnPassPipeline *passes)
{
    for (guint i = 0; i < passes->graph->len; i++) {
        KilnPipelineEntry *entry = g_ptr_array_index(passes->graph, i);
        const char *id = entry->pass ? entry->pass->id : "";
        if (strcmp(id, "partition-offload") == 0 || strcmp(id, "compile-offload") == 0)
            given_set_option(passes, entry, "min-us", "0");
    }
}

static KilnProgram *
compile(const Trial *trial, const FlowWay *way, GError **error)
{
    /* no constant is computed by the first run: a program for open dims refuses that */
    const uint64_t folding = trial->seed & 1;
    g_autoptr(KilnPipeline) pipeline = way->pipeline ? kiln_pipeline_load(way->pipeline, error)
                                                     : ways_exact_pipeline(folding, error);
    if (pipeline && way->offloads)
        keep_small_regions(pipeline->passes);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.pipeline = pipeline;
    options.target = way->target;
    options.threads = THREADS;
    options.prefer_memory = trial->seed % 7 == 2 && !way->offloads;
    options.no_offload =
        (trial->seed % 3 != 0 && !way->offloads) || way->numerics == KILN_NUMERICS_E;
    return pipeline ? kiln_program_compile(trial->model, &options, error) : NULL;
}

static KilnResults *
run_on(KilnSession *session, const Case *set, GError **error)
{
    g_autoptr(GPtrArray) bound = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    for (guint i = 0; i < set->inputs->len; i++) {
        if (!given_bind(session, i, g_ptr_array_index(set->inputs, i), bound, error))
            return NULL;
    }
    return kiln_session_run(session, error) ? given_results(session, error) : NULL;
}

/* Each set of inputs in turn, and the first again. @first: what another session found; it is
 * filled, or must have the same bits. */
static gboolean
run_session(const Trial *trial, const FlowWay *way, KilnProgram *program, int threads,
            KilnResults **first, GError **error)
{
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.seeded = TRUE;
    options.threads = threads;
    options.poison = threads == 1 && trial->seed % 3 == 1;
    g_autoptr(KilnSession) session = kiln_session_new(program, &options, error);
    for (unsigned i = 0; session && i <= SETS; i++) {
        const Case *set = &trial->cases[i % SETS];
        KilnResults **kept = &first[i % SETS];
        g_autoptr(KilnResults) found = run_on(session, set, error);
        if (found)
            settle_empty(set->expected, found);
        if (!found || !compare(trial, way, set, found, error) ||
            (*kept && !kiln_results_compare(*kept, found, KILN_NUMERICS_E, error))) {
            g_prefix_error(error, "run %u, threads %d: ", i, threads);
            return FALSE;
        }
        if (!*kept)
            *kept = g_steal_pointer(&found);
    }
    return session != NULL;
}

/* Why a program was refused; NULL: another error. */
static const char *
refusal_of(const GError *error)
{
    for (size_t i = 0; MAY_BE_REFUSED && i < G_N_ELEMENTS(refusals); i++) {
        if (strstr(error->message, refusals[i]))
            return refusals[i];
    }
    return NULL;
}

static void
count_refusal(FlowSeen *seen, unsigned way, const char *reason)
{
    if (!seen->reasons)
        seen->reasons = g_hash_table_new(g_str_hash, g_str_equal);
    const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(seen->reasons, reason));
    g_hash_table_replace(seen->reasons, (char *)reason, GUINT_TO_POINTER(n + 1));
    seen->refused[way]++;
}

/* A branch or loop of @ir calls a region. */
static bool
calls_inside(const KilnIRModule *ir)
{
    for (guint f = 0; f + 1 < ir->functions->len; f++) {
        kiln_foreach_instr (instr, (const KilnIRFunction *)g_ptr_array_index(ir->functions, f)) {
            if (instr->kind == KILN_INSTR_call)
                return true;
        }
    }
    return false;
}

static bool
has_regions_inside(const KilnProgram *program)
{
    for (guint i = 0; i < program->specialisations->len; i++) {
        const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, i);
        if (made->ir && calls_inside(made->ir))
            return true;
    }
    for (guint i = 0; i < program->templates->len; i++) {
        const KilnTemplate *template = g_ptr_array_index(program->templates, i);
        if (template->ir && calls_inside(template->ir))
            return true;
    }
    return false;
}

/* *@out is NULL where no file can hold @program: it is made anew for values of its inputs. */
static gboolean
save_and_load(KilnProgram *program, KilnProgram **out, GError **error)
{
    g_autoptr(GError) why = NULL;
    g_autofree char *path = NULL;
    int file = g_file_open_tmp("kiln-flow-XXXXXX", &path, error);
    if (file < 0)
        return FALSE;
    close(file);
    const gboolean saved = kiln_program_save(program, path, &why);
    *out = saved ? kiln_program_load(path, NULL, error) : NULL;
    unlink(path);
    if (saved)
        return *out != NULL;
    const bool refused = strstr(why->message, "cannot be saved") != NULL;
    if (!refused)
        g_propagate_error(error, g_steal_pointer(&why));
    return refused;
}

/* @first: what the sessions of @program found. */
static gboolean
run_saved(const Trial *trial, const FlowWay *way, KilnProgram *program, KilnResults **first,
          GError **error)
{
    g_autoptr(KilnProgram) loaded = NULL;
    if (!save_and_load(program, &loaded, error) ||
        (loaded && !run_session(trial, way, loaded, 1, first, error))) {
        g_prefix_error(error, "saved and loaded: ");
        return FALSE;
    }
    trial->seen->saved += loaded != NULL;
    return TRUE;
}

static gboolean
run_program(const Trial *trial, unsigned way, GError **error)
{
    KilnResults *first[SETS] = { NULL };
    g_autoptr(KilnProgram) program = compile(trial, &flow_ways[way], error);
    gboolean good = program != NULL;
    for (int threads = 1; good && threads <= THREADS; threads++)
        good = run_session(trial, &flow_ways[way], program, threads, first, error);
    if (good && flow_ways[way].offloads) {
        trial->seen->regions += has_regions_inside(program);
        good = run_saved(trial, &flow_ways[way], program, first, error);
    }
    for (unsigned i = 0; i < SETS; i++)
        kiln_results_free(first[i]);
    return good;
}

static gboolean
agree_under(const Trial *trial, unsigned way, bool *fired, GError **error)
{
    GError *why = NULL;
    if (run_program(trial, way, &why)) {
        trial->seen->programs[way]++;
        *fired = true;
        return TRUE;
    }
    const char *refusal = refusal_of(why);
    if (refusal) {
        count_refusal(trial->seen, way, refusal);
        g_error_free(why);
        return TRUE;
    }
    g_prefix_error(&why, "%s: ", flow_ways[way].name);
    g_propagate_error(error, why);
    return FALSE;
}

/* Whether ONNX has all operators and types of the graph. It has no number for the stream of a draw
 * without a seed. */
static bool
onnx_has_all(const KilnFunction *function)
{
    kiln_foreach_node (node, function) {
        const bool known = *kiln_op_info(node->op)->onnx || kiln_node_decomposes(node) ||
                           node->op == KILN_OP_return || node->op == op_named("define");
        if (!known || kiln_node_stream(node))
            return false;
        for (uint32_t r = 0; r < node->n_results; r++) {
            if (node->results[r].type.quant)
                return false;
        }
        kiln_foreach_region (region, node) {
            if (!onnx_has_all(region))
                return false;
        }
    }
    for (guint i = 0; i < function->arguments->len; i++) {
        if (kiln_function_argument(function, i)->value.type.quant)
            return false;
    }
    return true;
}

static bool
has_decomposed(const KilnFunction *function)
{
    kiln_foreach_node (node, function) {
        if (kiln_node_decomposes(node))
            return true;
        kiln_foreach_region (region, node) {
            if (has_decomposed(region))
                return true;
        }
    }
    return false;
}

/* The graph, written as a model of ONNX and read, computes the same bits. Where ONNX expresses an
 * operator by others, these round more often. */
static gboolean
agree_with_onnx(const Trial *trial, GError **error)
{
    g_autoptr(GByteArray) out = g_byte_array_new();
    if (!kiln_onnx_export(trial->subject->module, out, error))
        return FALSE;
    g_autoptr(GBytes) bytes = g_byte_array_free_to_bytes(g_steal_pointer(&out));
    g_autoptr(KilnModule) again = kiln_onnx_import(bytes, NULL, error);
    const bool rounds = has_decomposed(kiln_module_entry(trial->subject->module));
    for (unsigned i = 0; again && i < SETS; i++) {
        const Case *set = &trial->cases[i];
        g_autoptr(KilnResults) found =
            kiln_results_on(kiln_module_entry(again), kiln_ref_target(), set->inputs, error);
        if (found)
            settle_empty(set->expected, found);
        const bool same =
            found && (rounds ? is_close(set, found, error)
                             : kiln_results_compare(set->expected, found, KILN_NUMERICS_E, error));
        if (!same)
            return FALSE;
    }
    return again != NULL;
}

gboolean
flow_agrees(uint64_t seed, Subject *subject, FlowSeen *seen, bool *fired, GError **error)
{
    FlowSeen ignored = { 0 };
    g_auto(Trial) trial = { .subject = subject, .seed = seed, .seen = seen ? seen : &ignored };
    trial.seen->graphs++;
    count_flows(trial.seen, kiln_module_entry(subject->module), 0);
    gboolean good = (trial.model = given_load(subject->module, error)) != NULL;
    for (unsigned i = 0; good && i < SETS; i++) {
        good = case_init(&trial.cases[i], subject, i, error);
        trial.seen->iterations += trial.cases[i].inside;
    }
    if (good && onnx_has_all(kiln_module_entry(subject->module)) &&
        !agree_with_onnx(&trial, error)) {
        g_prefix_error(error, "as a model of ONNX: ");
        good = FALSE;
    }
    for (unsigned way = 0; good && way < FLOW_WAYS; way++)
        good = agree_under(&trial, way, fired, error);
    flow_seen_clear(&ignored);
    return good;
}

/* --- counts --- */

void
flow_seen_clear(FlowSeen *seen)
{
    g_clear_pointer(&seen->reasons, g_hash_table_unref);
}

bool
flow_summarize(const FlowSeen *seen)
{
    GHashTableIter iter;
    gpointer reason, n;
    uint64_t refused = 0;
    printf("  %" G_GUINT64_FORMAT " if, %" G_GUINT64_FORMAT " loop, %" G_GUINT64_FORMAT
           " scan; %" G_GUINT64_FORMAT " outside, %" G_GUINT64_FORMAT
           " in others, %" G_GUINT64_FORMAT " deeper; %" G_GUINT64_FORMAT
           " values inside were computed\n",
           seen->flows[0], seen->flows[1], seen->flows[2], seen->nested[0], seen->nested[1],
           seen->nested[2], seen->iterations);
    for (unsigned way = 0; way < FLOW_WAYS; way++) {
        printf("  %s: %" G_GUINT64_FORMAT " programs ran, %" G_GUINT64_FORMAT " were refused\n",
               flow_ways[way].name, seen->programs[way], seen->refused[way]);
        refused += seen->refused[way];
    }
    printf("  %" G_GUINT64_FORMAT " programs called a vendor inside, %" G_GUINT64_FORMAT
           " ran out of a file\n",
           seen->regions, seen->saved);
    printf("  %" G_GUINT64_FORMAT " runs: %" G_GUINT64_FORMAT " with equal bits, %" G_GUINT64_FORMAT
           " within the bound\n",
           seen->runs, seen->equal, seen->close);
    if (seen->reasons)
        g_hash_table_iter_init(&iter, seen->reasons);
    while (seen->reasons && g_hash_table_iter_next(&iter, &reason, &n))
        printf("  refused %u times: %s\n", GPOINTER_TO_UINT(n), (const char *)reason);
    return MAY_BE_REFUSED || refused == 0;
}
