/* SPDX-License-Identifier: Apache-2.0 */
/* kiln compare: the first value that two pipelines, two backends or two dumps do not agree on.
 *
 * Values are matched by name. Of a model those count that it has itself, for names that passes make
 * up may mean anything; "first" is in the model's order. Behind them come the outputs as the whole
 * road gives them, lowered and planned. */
#include "graph/arena.h"
#include "graph/binding.h"
#include "kiln.h"
#include "passes/context/options.h"
#include "passes/context/report.h"
#include "passes/manager/manager.h"
#include "passes/manager/numerics.h"
#include "passes/manager/results.h"
#include "passes/pass.h"
#include "runtime/compile.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"
#include "runtime/shapes/texts.h"
#include "runtime/specialise.h"
#include "runtime/tensors/tensor_compare.h"
#include "tools/command.h"
#include "tools/execute.h"
#include "tools/inputs.h"
#include "tools/values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The official tolerance of tests, where no class says more. */
static const double RTOL = 1e-3, ATOL = 1e-7;
static const double UNSTATED = -1;

typedef struct {
    KilnInputs inputs;
    double rtol, atol;
    gboolean all;
} CompareOptions;

/* A value of side A that waits for its like. */
typedef struct {
    char *op, *type; /* type: NULL of files */
    KilnTensor *tensor;
    unsigned order;
} Waiting;

/* A value of both sides. */
typedef struct {
    char *name, *op_a, *op_b, *type;
    unsigned order;
    KilnType shape;
    KilnTolerance tolerance;
    KilnDifference difference;
} Row;

/* What the passes of both sides may have done to a value. */
typedef struct {
    KilnNumerics numerics;
    uint32_t n_rounding; /* changes that round: their errors add up */
} Reach;

typedef struct {
    GHashTable *waiting;  /* key_of() a value of A → Waiting */
    GHashTable *times[2]; /* name → how many values of that name A and B had so far */
    GHashTable *order;    /* name → place in the model + 1; NULL: any name counts, as it comes */
    GPtrArray *rows;      /* Row*: what diverges */
    unsigned n_a, agree, only_a, only_b, other_type;
    /* how far values may differ */
    KilnTolerance stated;
    bool by_class;
    Reach of_graph, of_outputs; /* these also pass through instructions */
    const Reach *reach;         /* of the values that are visited */
    KilnErrorTerms terms;
    char *labels[2];
} Compare;

static void
waiting_free(gpointer data)
{
    Waiting *waiting = data;
    g_free(waiting->op);
    g_free(waiting->type);
    kiln_tensor_free(waiting->tensor);
    g_free(waiting);
}

static void
row_free(gpointer data)
{
    Row *row = data;
    g_free(row->name);
    g_free(row->op_a);
    g_free(row->op_b);
    g_free(row->type);
    g_free(row);
}

static void
compare_init(Compare *compare)
{
    *compare = (Compare){
        .waiting = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, waiting_free),
        .times = { g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                   g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL) },
        .rows = g_ptr_array_new_with_free_func(row_free),
    };
}

static void
compare_clear(Compare *compare)
{
    g_hash_table_unref(compare->waiting);
    g_hash_table_unref(compare->times[0]);
    g_hash_table_unref(compare->times[1]);
    g_clear_pointer(&compare->order, g_hash_table_unref);
    g_ptr_array_unref(compare->rows);
    g_free(compare->labels[0]);
    g_free(compare->labels[1]);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Compare, compare_clear)

/* --- matching --- */

/* The place of a value; false where it is none of the model's. Outputs stand behind all. */
static bool
place_of(const Compare *compare, const char *name, unsigned *out)
{
    if (!compare->order)
        return true;
    *out = GPOINTER_TO_UINT(g_hash_table_lookup(compare->order, name));
    return *out > 0;
}

/* Tells the values of a name apart: a loop computes one in each iteration. */
static char *
key_of(GHashTable *times, const char *name)
{
    guint n = GPOINTER_TO_UINT(g_hash_table_lookup(times, name));
    g_hash_table_replace(times, g_strdup(name), GUINT_TO_POINTER(n + 1));
    return g_strdup_printf("%u:%s", n, name);
}

static gboolean
take_a(const KilnNamedValue *value, void *data, GError **error)
{
    (void)error;
    Compare *compare = data;
    unsigned order = ++compare->n_a;
    if (!place_of(compare, value->of, &order))
        return TRUE;
    Waiting *waiting = g_new0(Waiting, 1);
    *waiting = (Waiting){ .op = g_strdup(value->op),
                          .type = g_strdup(value->type),
                          .tensor = kiln_tensor_copy(value->tensor),
                          .order = order };
    g_hash_table_replace(compare->waiting, key_of(compare->times[0], value->name), waiting);
    return TRUE;
}

static gboolean
tolerance_for(const Compare *compare, const KilnTensor *a, const KilnTensor *b, KilnTolerance *out,
              GError **error)
{
    *out = compare->stated;
    const Reach *reach = compare->reach;
    if (!compare->by_class || a->type.dtype == KILN_DTYPE_string ||
        reach->numerics == KILN_NUMERICS_L)
        return TRUE;
    *out = (KilnTolerance){ .bits = reach->numerics == KILN_NUMERICS_E };
    KilnErrorTerms terms = compare->terms;
    terms.terms *= MAX(reach->n_rounding, 1);
    return out->bits || kiln_numerics_bound(a, b, reach->numerics, &terms, &out->atol, error);
}

static gboolean
compare_both(Compare *compare, const Waiting *a, const KilnNamedValue *b, GError **error)
{
    KilnTolerance tolerance;
    KilnDifference difference;
    if (!tolerance_for(compare, a->tensor, b->tensor, &tolerance, error) ||
        !kiln_tensor_difference(b->tensor, a->tensor, &tolerance, &difference, error))
        return FALSE;
    if (difference.n_bad == 0) {
        compare->agree++;
        return TRUE;
    }
    Row *row = g_new0(Row, 1);
    *row = (Row){ .name = g_strdup(b->name),
                  .op_a = g_strdup(a->op),
                  .op_b = g_strdup(b->op),
                  .type = kiln_type_to_string(&a->tensor->type),
                  .order = a->order,
                  .shape = a->tensor->type,
                  .tolerance = tolerance,
                  .difference = difference };
    g_ptr_array_add(compare->rows, row);
    return TRUE;
}

static gboolean
take_b(const KilnNamedValue *value, void *data, GError **error)
{
    Compare *compare = data;
    unsigned order;
    if (!place_of(compare, value->of, &order))
        return TRUE;
    g_autofree char *key = key_of(compare->times[1], value->name);
    Waiting *a = g_hash_table_lookup(compare->waiting, key);
    if (!a) {
        compare->only_b++;
        return TRUE;
    }
    bool same = g_strcmp0(a->type, value->type) == 0 &&
                kiln_type_equal(&a->tensor->type, &value->tensor->type);
    gboolean good = TRUE;
    if (same)
        good = compare_both(compare, a, value, error);
    else
        compare->other_type++;
    g_clear_pointer(&a->tensor, kiln_tensor_free);
    return good;
}

static int
compare_rows(gconstpointer a, gconstpointer b)
{
    const Row *x = *(Row *const *)a, *y = *(Row *const *)b;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Counts what has no like, and puts what diverges in order. */
static gboolean
finish(Compare *compare, GError **error)
{
    unsigned n = g_hash_table_size(compare->waiting);
    compare->only_a = n - compare->agree - compare->other_type - compare->rows->len;
    g_ptr_array_sort(compare->rows, compare_rows);
    return compare->agree + compare->rows->len > 0 ||
           kiln_throw(error, KILN_ERROR_INVALID,
                      "nothing to compare: %s and %s have no value of one name and type",
                      compare->labels[0], compare->labels[1]);
}

/* --- models --- */

typedef struct {
    const char *text; /* of --pipeline, or of --passes */
    bool passes;
    const char *backend;
} Side;

/* What is compared: --pipeline, then --passes. One of them is compared with the model as it is, or,
 * where two backends are given, with itself on the other. */
static gboolean
read_sides(const KilnOptions *options, Side sides[2], GError **error)
{
    unsigned n = options->pipelines ? g_strv_length(options->pipelines) : 0;
    unsigned n_backends = options->backends ? g_strv_length(options->backends) : 0;
    unsigned n_sides = n + (options->passes != NULL);
    if (n_sides > 2 || n_backends > 2)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "expected two pipelines and two backends at most, found %u and %u",
                          n_sides, n_backends);
    Side given[2] = { { .text = "default" }, { .text = "default" } };
    for (unsigned i = 0; i < n; i++)
        given[i].text = options->pipelines[i];
    if (options->passes)
        given[n] = (Side){ .text = options->passes, .passes = true };
    bool one = n_sides < 2, other_backend = n_backends == 2;
    sides[0] = !one || other_backend ? given[0] : (Side){ .text = "none" };
    sides[1] = given[one ? 0 : 1];
    for (unsigned side = 0; side < 2; side++)
        sides[side].backend = n_backends ? options->backends[MIN(side, n_backends - 1)] : "cpu";
    return TRUE;
}

/* @options become those of the side, as if it had been asked for alone. */
static KilnPipeline *
choose_side(KilnOptions *options, const Side *side, GError **error)
{
    g_free(options->passes);
    options->passes = side->passes ? g_strdup(side->text) : NULL;
    options->pipeline = side->passes ? NULL : side->text;
    options->backend = side->backend;
    return kiln_options_pipeline(options, error);
}

/* The types of inputs that are asked for, --shape included. */
static GPtrArray *
make_inputs(const CompareOptions *own, const KilnOptions *options, const KilnModel *model,
            GError **error)
{
    g_autoptr(GPtrArray) inputs = g_ptr_array_new_with_free_func((GDestroyNotify)kiln_tensor_free);
    g_autofree KilnBinding *bindings = kiln_options_bindings(options, model, error);
    g_autofree KilnType *types = g_new0(KilnType, model->inputs.n + 1);
    for (unsigned i = 0; bindings && i < model->inputs.n; i++) {
        types[i] = model->inputs.types[i];
        if (bindings[i].rank != KILN_RANK_UNKNOWN && !kiln_dtype_is_item(types[i].dtype))
            types[i] = kiln_type_make(types[i].dtype, bindings[i].rank, bindings[i].dims);
    }
    for (unsigned i = 0; bindings && i < model->inputs.n; i++) {
        KilnTensor *tensor = kiln_inputs_tensor(&own->inputs, model, i, types, NULL, error);
        if (!tensor)
            return NULL;
        g_ptr_array_add(inputs, tensor);
    }
    return bindings ? g_steal_pointer(&inputs) : NULL;
}

/* The outputs of the whole road. */
static gboolean
run_program(KilnOptions *options, KilnModel *model, KilnPipeline *pipeline, const GPtrArray *inputs,
            KilnNamedValueFn see, Compare *compare, GError **error)
{
    KilnSessionOptions session = KILN_SESSION_OPTIONS_INIT;
    session.seeded = TRUE;
    session.seed = model->module->seed;
    KilnCompileOptions compile;
    KilnShape *shapes = NULL;
    if (!kiln_options_compile(options, model, pipeline, &compile, &shapes, error))
        return FALSE;
    g_auto(KilnExecution) execution = { 0 };
    gboolean good = kiln_execution_open(&execution, model, &compile, &session, error);
    kiln_shapes_free(shapes, compile.n_shapes);
    for (unsigned i = 0; good && i < inputs->len; i++)
        good = kiln_execution_bind(&execution, i, g_ptr_array_index(inputs, i), error);
    if (!good || !kiln_execution_run(&execution, 1, error))
        return FALSE;
    g_autoptr(GPtrArray) outputs = kiln_execution_outputs(&execution, error);
    return outputs && kiln_values_of_outputs(execution.program, outputs, see, compare, error);
}

static void
widen(Reach *reach, const KilnPipeline *pipeline, const KilnPassReport *report)
{
    uint32_t n_rounding;
    KilnNumerics numerics = kiln_pass_report_numerics(report, pipeline->passes, &n_rounding);
    reach->numerics = MAX(reach->numerics, numerics);
    reach->n_rounding += n_rounding;
}

/* By what the passes on graphs did to @module. */
static void
widen_by_graph(Compare *compare, const KilnPipeline *pipeline, const KilnPassReport *report,
               const KilnModule *module, const GPtrArray *inputs)
{
    g_autoptr(KilnArena) arena = kiln_arena_new();
    const KilnDimBinding numbers = kiln_results_numbers(arena, kiln_module_entry(module), inputs);
    KilnErrorTerms terms = kiln_error_terms(kiln_module_entry(module), &numbers);
    widen(&compare->of_graph, pipeline, report);
    widen(&compare->of_outputs, pipeline, report);
    compare->terms = kiln_error_terms_join(&compare->terms, &terms);
}

/* By what those on instructions do to @module, which is taken over. */
static gboolean
widen_by_ir(Compare *compare, KilnOptions *options, const KilnPipeline *pipeline,
            KilnModule *module, GError **error)
{
    KilnPassOptions pass_options;
    g_autoptr(KilnModule) taken = module;
    if (!kiln_options_passes(options, pipeline, &pass_options, error))
        return FALSE;
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    g_autoptr(KilnIRModule) ir =
        kiln_compile_ir(g_steal_pointer(&taken), pipeline->passes, &pass_options, report, error);
    if (ir)
        widen(&compare->of_outputs, pipeline, report);
    return ir != NULL;
}

static gboolean
visit_side(KilnOptions *options, const Side *side, KilnModel *model, const GPtrArray *inputs,
           KilnNamedValueFn see, Compare *compare, GError **error)
{
    g_autoptr(KilnPassReport) report = kiln_pass_report_new();
    g_autoptr(KilnPipeline) pipeline = choose_side(options, side, error);
    g_autoptr(KilnModule) module =
        pipeline ? kiln_values_optimize(options, model, pipeline, inputs, report, error) : NULL;
    if (!module)
        return FALSE;
    widen_by_graph(compare, pipeline, report, module, inputs);
    compare->reach = &compare->of_graph;
    const KilnValueWatcher watcher = { see, compare, NULL };
    if (!kiln_values_of_graph(options, model, module, inputs, &watcher, error) ||
        !widen_by_ir(compare, options, pipeline, g_steal_pointer(&module), error))
        return FALSE;
    compare->reach = &compare->of_outputs;
    return run_program(options, model, pipeline, inputs, see, compare, error);
}

static GHashTable *
order_of(const KilnModel *model)
{
    GHashTable *order = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    unsigned n = 0;
    kiln_foreach_node (node, kiln_module_entry(model->module)) {
        for (uint32_t r = 0; r < node->n_results; r++)
            g_hash_table_insert(order, g_strdup(node->results[r].name), GUINT_TO_POINTER(++n));
    }
    for (unsigned i = 0; i < model->outputs.n; i++)
        g_hash_table_insert(order, g_strconcat("output ", model->outputs.info[i].name, NULL),
                            GUINT_TO_POINTER(++n));
    return order;
}

static gboolean
compare_model(KilnOptions *options, const CompareOptions *own, const char *path, Compare *compare,
              GError **error)
{
    Side sides[2];
    g_autofree char *passes = g_strdup(options->passes); /* which choose_side() replaces */
    if (!read_sides(options, sides, error))
        return FALSE;
    for (unsigned side = 0; side < 2; side++) {
        if (sides[side].passes)
            sides[side].text = passes;
        compare->labels[side] = g_strdup_printf("%s on %s", sides[side].text, sides[side].backend);
    }
    g_autoptr(KilnModel) model = kiln_options_load(options, path, NULL, error);
    if (!model || !kiln_inputs_check_names(&own->inputs, model, error))
        return FALSE;
    if (model->ir_text)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "expected a model at the graph level, found %s at the ir level", path);
    g_autoptr(GPtrArray) inputs = make_inputs(own, options, model, error);
    if (!inputs)
        return FALSE;
    model->module->seed = own->inputs.run_seed;
    compare->order = order_of(model);
    compare->by_class = own->rtol == UNSTATED && own->atol == UNSTATED;
    if (strcmp(sides[0].backend, sides[1].backend) != 0) {
        /* Kernels of their own round as they like. */
        compare->of_graph = compare->of_outputs = (Reach){ KILN_NUMERICS_U, 1 };
    }
    return visit_side(options, &sides[0], model, inputs, take_a, compare, error) &&
           visit_side(options, &sides[1], model, inputs, take_b, compare, error);
}

/* --- folders --- */

static gboolean
compare_folders(char **dirs, Compare *compare, GError **error)
{
    compare->labels[0] = g_strdup(dirs[0]);
    compare->labels[1] = g_strdup(dirs[1]);
    return kiln_values_of_folder(dirs[0], take_a, compare, error) &&
           kiln_values_of_folder(dirs[1], take_b, compare, error);
}

/* --- printing --- */

static char *
index_text(const KilnType *type, int64_t at)
{
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int d = type->rank - 1; d >= 0; d--) {
        index[d] = at % type->dims[d];
        at /= type->dims[d];
    }
    GString *out = g_string_new("[");
    for (int d = 0; d < type->rank; d++)
        g_string_append_printf(out, "%s%" G_GINT64_FORMAT, d ? "," : "", index[d]);
    return g_string_free(g_string_append_c(out, ']'), FALSE);
}

static char *
tolerance_text(const KilnTolerance *tolerance)
{
    if (tolerance->bits)
        return g_strdup("equal bits");
    if (tolerance->rtol == 0)
        return g_strdup_printf("%.3g", tolerance->atol);
    return g_strdup_printf("%.3g + %.3g of the value", tolerance->atol, tolerance->rtol);
}

static void
print_row(const Row *row)
{
    const KilnDifference *found = &row->difference;
    g_autofree char *allowed = tolerance_text(&row->tolerance);
    g_autofree char *name = kiln_one_line(row->name);
    printf("%s", name);
    if (row->op_a)
        printf(" (%s in A, %s in B)", row->op_a, row->op_b);
    printf(": %s\n  %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " elements differ; allowed: %s\n",
           row->type, found->n_bad, found->n, allowed);
    if (found->worst < 0)
        return; /* texts */
    g_autofree char *index = index_text(&row->shape, found->worst);
    printf("  the worst is %s: %.9g in A, %.9g in B\n", index, found->want, found->got);
    printf("  largest differences: absolute %.3g, relative %.3g", found->max_abs, found->max_rel);
    if (kiln_dtype_is_float(row->shape.dtype))
        printf(", %.3g ULP", found->max_ulp);
    printf("\n");
}

static void
print_text(const KilnOptions *options, const CompareOptions *own, const Compare *compare)
{
    guint n = compare->rows->len;
    printf("A: %s\nB: %s\n", compare->labels[0], compare->labels[1]);
    printf("%u values in both: %u agree, %u differ (%u only in A, %u only in B, %u with another "
           "type)\n",
           compare->agree + n, compare->agree, n, compare->only_a, compare->only_b,
           compare->other_type);
    if (n == 0 || options->quiet)
        return;
    printf("first: ");
    for (guint i = 0; i < (own->all ? n : 1); i++)
        print_row(g_ptr_array_index(compare->rows, i));
}

static void
write_row(KilnJson *json, const Row *row)
{
    const KilnDifference *found = &row->difference;
    kiln_json_object(json, NULL);
    kiln_json_string(json, "name", row->name);
    if (row->op_a) {
        kiln_json_string(json, "op_a", row->op_a);
        kiln_json_string(json, "op_b", row->op_b);
    }
    kiln_json_string(json, "type", row->type);
    kiln_json_int(json, "elements", found->n);
    kiln_json_int(json, "differ", found->n_bad);
    kiln_json_number(json, "max_abs", found->max_abs);
    kiln_json_number(json, "max_rel", found->max_rel);
    kiln_json_number(json, "max_ulp", found->max_ulp);
    kiln_json_bool(json, "bits", row->tolerance.bits);
    kiln_json_number(json, "atol", row->tolerance.atol);
    kiln_json_number(json, "rtol", row->tolerance.rtol);
    if (found->worst >= 0) {
        g_autofree char *index = index_text(&row->shape, found->worst);
        kiln_json_string(json, "index", index);
        kiln_json_number(json, "a", found->want);
        kiln_json_number(json, "b", found->got);
    }
    kiln_json_end_object(json);
}

static gboolean
print_json(const Compare *compare, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    KilnJson json = kiln_report_begin(text);
    kiln_json_string(&json, "a", compare->labels[0]);
    kiln_json_string(&json, "b", compare->labels[1]);
    kiln_json_int(&json, "agree", compare->agree);
    kiln_json_int(&json, "only_a", compare->only_a);
    kiln_json_int(&json, "only_b", compare->only_b);
    kiln_json_int(&json, "other_type", compare->other_type);
    kiln_json_array(&json, "diverging");
    for (guint i = 0; i < compare->rows->len; i++)
        write_row(&json, g_ptr_array_index(compare->rows, i));
    kiln_json_end_array(&json);
    return kiln_report_print(&json, error);
}

/* --- the command --- */

static gboolean
check_values(CompareOptions *own, Compare *compare, GError **error)
{
    if ((own->rtol < 0 && own->rtol != UNSTATED) || isnan(own->rtol))
        return kiln_throw(error, KILN_ERROR_USAGE, "--rtol: expected 0 or more, found %g",
                          own->rtol);
    if ((own->atol < 0 && own->atol != UNSTATED) || isnan(own->atol))
        return kiln_throw(error, KILN_ERROR_USAGE, "--atol: expected 0 or more, found %g",
                          own->atol);
    compare->stated.rtol = own->rtol == UNSTATED ? RTOL : own->rtol;
    compare->stated.atol = own->atol == UNSTATED ? ATOL : own->atol;
    if (!own->inputs.random_text)
        own->inputs.random_text = g_strdup("1");
    return kiln_inputs_check(&own->inputs, error);
}

static int
compare_work(KilnOptions *options, char **operands, void *data, GError **error)
{
    CompareOptions *own = data;
    g_auto(Compare) compare;
    compare_init(&compare);
    if (!check_values(own, &compare, error))
        return KILN_EXIT_USAGE;
    if (!operands[1] && g_file_test(operands[0], G_FILE_TEST_IS_DIR)) {
        kiln_throw(error, KILN_ERROR_USAGE, "expected a second folder to compare %s with",
                   operands[0]);
        return KILN_EXIT_USAGE;
    }
    gboolean good = operands[1] ? compare_folders(operands, &compare, error)
                                : compare_model(options, own, operands[0], &compare, error);
    kiln_clear_progress(options);
    if (!good || !finish(&compare, error))
        return KILN_EXIT_FAILED;
    if (!options->json)
        print_text(options, own, &compare);
    else if (!print_json(&compare, error))
        return KILN_EXIT_FAILED;
    return compare.rows->len ? KILN_EXIT_MISMATCH : KILN_EXIT_OK;
}

int
kiln_command_compare(int argc, char **argv)
{
    CompareOptions own = { .inputs = KILN_INPUTS_INIT, .rtol = UNSTATED, .atol = UNSTATED };
    const GOptionEntry entries[] = {
        { "rtol", 0, 0, G_OPTION_ARG_DOUBLE, &own.rtol,
          "Set the relative tolerance (default: that of the classes of the passes)", "R" },
        { "atol", 0, 0, G_OPTION_ARG_DOUBLE, &own.atol,
          "Set the absolute tolerance (default: that of the classes of the passes)", "A" },
        { "all", 0, 0, G_OPTION_ARG_NONE, &own.all, "Show all values that differ, in order", NULL },
        G_OPTION_ENTRY_NULL,
    };
    const KilnUsage usage = {
        .command = "compare",
        .operands = "MODEL | DIR_A DIR_B",
        .n_operands = KILN_OPERANDS_TWO,
        .summary = "Finds the first value of a model that differs between two pipelines, two "
                   "backends, or two folders of `kiln run --dump-values`. Exits with status 4 if "
                   "there is one.",
        .entries = entries,
        .passes = true,
        .two_sides = true,
        .inputs = &own.inputs,
        .work = compare_work,
    };
    int status = kiln_command(&usage, argc, argv, &own);
    kiln_inputs_clear(&own.inputs);
    return status;
}
