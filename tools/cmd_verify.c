/* SPDX-License-Identifier: Apache-2.0 */
/* kiln verify: runs every case below the given folders that has the layout of ONNX's backend tests
 * - model.onnx and test_data_set_N/{input,output}_N.pb - and compares under the official rules. */
#include "kiln.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"
#include "runtime/shapes/texts.h"
#include "runtime/tensors/item_compare.h"
#include "runtime/tensors/tensor_file.h"
#include "tools/command.h"
#include "tools/execute.h"
#include "tools/tolerance.h"
#include "tools/trace.h"

#include <errno.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    CASE_PASS,
    CASE_FAIL,
    CASE_SKIP,
} CaseStatus;

typedef struct {
    KilnOptions *options;
    KilnPipeline *pipeline;
    double rtol, atol; /* negative: the case's own, or the official ones */
    gboolean poison;
    unsigned counts[3];
    KilnJson json;    /* of --json: in the array of cases */
    GPtrArray *chain; /* resolved paths of the folders that are being visited */
} Verify;

typedef struct {
    CaseStatus status;
    char *reason;
    double worst_abs, worst_rel;
    KilnMemoryReport memory; /* where it passed */
} CaseResult;

#define OFFICIAL_RTOL 1e-3
#define OFFICIAL_ATOL 1e-7
#define BF16_RTOL 0x1p-6 /* the official one where an output is bf16: two steps of that type */
#define UNSET -DBL_MAX   /* of --rtol and --atol */

/* --- one case --- */

static gboolean
read_tolerance(const Verify *verify, const char *dir, double *rtol, double *atol, GError **error)
{
    *rtol = OFFICIAL_RTOL;
    *atol = OFFICIAL_ATOL;
    g_autofree char *path = g_build_filename(dir, "data.json", NULL);
    if (g_file_test(path, G_FILE_TEST_EXISTS) && !kiln_tolerance_read(path, rtol, atol, error))
        return FALSE;
    *rtol = verify->rtol >= 0 ? verify->rtol : *rtol;
    *atol = verify->atol >= 0 ? verify->atol : *atol;
    return TRUE;
}

static KilnTensor *
load_numbered(const char *dir, const char *kind, unsigned i, const KilnInfoList *list,
              GError **error)
{
    g_autofree char *file = g_strdup_printf("%s/%s_%u.pb", dir, kind, i);
    return kiln_tensor_file_load(file, &list->types[i], NULL, error);
}

/* ONNX's test data up to version 1.12 stores bfloat16 as bare 16-bit patterns: they are taken for
 * what the model says. */
static void
take_as(KilnTensor *tensor, KilnDType dtype)
{
    if (tensor && tensor->type.dtype == KILN_DTYPE_u16 && dtype == KILN_DTYPE_bf16)
        tensor->type.dtype = KILN_DTYPE_bf16;
}

/* A file that nothing reads is taken for a mistake: of the case, or of what was made of its model.
 */
static gboolean
check_count(const char *dir, const char *kind, unsigned n, GError **error)
{
    g_autofree char *file = g_strdup_printf("%s/%s_%u.pb", dir, kind, n);
    return !g_file_test(file, G_FILE_TEST_EXISTS) ||
           kiln_throw(error, KILN_ERROR_FORMAT, "expected %u %s%s, as the model has, found %s", n,
                      kind, n == 1 ? "" : "s", file);
}

static gboolean
run_data_set(const Verify *verify, KilnExecution *execution, const char *dir, double rtol,
             double atol, CaseResult *result, GError **error)
{
    if (!check_count(dir, "input", execution->program->inputs.n, error) ||
        !check_count(dir, "output", execution->program->outputs.n, error))
        return FALSE;
    for (unsigned i = 0; i < execution->program->inputs.n; i++) {
        g_autoptr(KilnTensor) tensor =
            load_numbered(dir, "input", i, &execution->program->inputs, error);
        take_as(tensor, execution->program->inputs.info[i].dtype);
        if (!tensor || !kiln_execution_bind(execution, i, tensor, error))
            return FALSE;
    }
    if (!kiln_execution_run(execution, 1, error))
        return FALSE;
    for (unsigned i = 0; i < execution->program->outputs.n; i++) {
        g_autoptr(KilnTensor) want =
            load_numbered(dir, "output", i, &execution->program->outputs, error);
        take_as(want, execution->program->outputs.info[i].dtype);
        g_autoptr(KilnTensor) got = want ? kiln_execution_output(execution, i, error) : NULL;
        double worst_abs = 0, worst_rel = 0;
        bool wide = got && got->type.dtype == KILN_DTYPE_bf16 && verify->rtol < 0;
        gboolean fine = got && kiln_value_compare(got, want, wide ? MAX(rtol, BF16_RTOL) : rtol,
                                                  atol, &worst_abs, &worst_rel, error);
        result->worst_abs = MAX(result->worst_abs, worst_abs);
        result->worst_rel = MAX(result->worst_rel, worst_rel);
        if (!fine) {
            kiln_prefix_error(error, "output %s: ", execution->program->outputs.info[i].name);
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean
run_data_sets(const Verify *verify, const char *dir, KilnModel *model, KilnExecution *execution,
              CaseResult *result, GError **error)
{
    double rtol, atol;
    KilnCompileOptions compile;
    KilnShape *shapes = NULL;
    if (!read_tolerance(verify, dir, &rtol, &atol, error) ||
        !kiln_options_compile(verify->options, model, verify->pipeline, &compile, &shapes, error))
        return FALSE;
    compile.progress = NULL;
    KilnSessionOptions session = KILN_SESSION_OPTIONS_INIT;
    session.poison = verify->poison;
    session.seeded = TRUE;
    session.threads = verify->options->threads;
    gboolean fine = kiln_execution_open(execution, model, &compile, &session, error);
    unsigned n = 0;
    for (; fine; n++) {
        g_autofree char *set = g_strdup_printf("%s/test_data_set_%u", dir, n);
        if (!g_file_test(set, G_FILE_TEST_IS_DIR))
            break;
        g_ptr_array_set_size(execution->views, 0);
        fine = run_data_set(verify, execution, set, rtol, atol, result, error);
        if (!fine && n)
            kiln_prefix_error(error, "test_data_set_%u: ", n);
    }
    if (fine && !n)
        fine = kiln_throw(error, KILN_ERROR_IO, "%s: expected test_data_set_0, found none", dir);
    fine = fine && kiln_program_memory(execution->program, &result->memory, error);
    kiln_shapes_free(shapes, compile.n_shapes);
    return fine;
}

static char *
unsupported_reason(KilnUnsupported *const *found, unsigned n)
{
    GString *text = g_string_new("unsupported ");
    for (unsigned i = 0; i < n && i < 3; i++)
        g_string_append_printf(text, "%s%s(%s): %s", i ? ", " : "", found[i]->op, found[i]->dtype,
                               found[i]->reason);
    if (n > 3)
        g_string_append_printf(text, " and %u more", n - 3);
    return g_string_free(text, FALSE);
}

/* What a case is a case of: a model, or a program that was compiled of one; NULL: there is none. */
static char *
find_model(const char *dir)
{
    static const char *const names[] = { "model.onnx", "model.kiln-program" };
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(dir, names[i], NULL);
        if (g_file_test(path, G_FILE_TEST_EXISTS))
            return g_steal_pointer(&path);
    }
    return NULL;
}

static CaseResult
run_case(const Verify *verify, const char *dir, const char *name)
{
    CaseResult result = { .status = CASE_FAIL, .memory = KILN_MEMORY_REPORT_INIT };
    g_autofree char *suspect = kiln_suspect_reason(name);
    if (suspect)
        return (CaseResult){ .status = CASE_SKIP,
                             .reason = g_strconcat("suspect: ", suspect, NULL) };
    g_autoptr(GError) error = NULL;
    g_autofree char *path = find_model(dir);
    g_auto(KilnExecution) execution = { 0 };
    g_autoptr(KilnModel) model =
        kiln_options_load(verify->options, path, &execution.program, &error);
    unsigned n = 0;
    g_autofree KilnUnsupported **found = NULL;
    if (model && !execution.program)
        found = kiln_model_check(model, verify->options->backend, &n, &error);
    if (n)
        return (CaseResult){ .status = CASE_SKIP, .reason = unsupported_reason(found, n) };
    if (model && (found || execution.program) &&
        run_data_sets(verify, dir, model, &execution, &result, &error))
        result.status = CASE_PASS;
    else
        result.reason = g_strdup(error->message);
    return result;
}

/* --- finding cases --- */

static void
write_memory(KilnJson *json, const KilnMemoryReport *memory)
{
    kiln_json_object(json, "memory");
    kiln_json_int(json, "lb_live", memory->lb_live);
    kiln_json_int(json, "arena", memory->arena);
    kiln_json_bool(json, "proven_optimal", memory->proven_optimal);
    kiln_json_number(json, "plan_ms", memory->plan_ms);
    kiln_json_end_object(json);
}

static void
write_case(KilnJson *json, const char *name, const CaseResult *result)
{
    static const char *const statuses[] = { "pass", "fail", "skip" };
    kiln_json_object(json, NULL);
    kiln_json_string(json, "name", name);
    kiln_json_string(json, "status", statuses[result->status]);
    kiln_json_string(json, "reason", result->reason ? result->reason : "");
    kiln_json_number(json, "max_abs", result->worst_abs);
    kiln_json_number(json, "max_rel", result->worst_rel);
    if (result->status == CASE_PASS)
        write_memory(json, &result->memory);
    kiln_json_end_object(json);
}

static void
report_case(Verify *verify, const char *name, CaseResult *result)
{
    static const char *const words[] = { "PASS", "FAIL", "SKIP" };
    verify->counts[result->status]++;
    if (!verify->options->json) {
        g_autofree char *reason = result->reason ? kiln_one_line(result->reason) : NULL;
        if (!verify->options->quiet || result->status == CASE_FAIL)
            printf(reason ? "%s %s: %s\n" : "%s %s\n", words[result->status], name, reason);
        fflush(stdout);
    } else {
        write_case(&verify->json, name, result);
    }
    g_free(result->reason);
}

static int
compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static gboolean visit(Verify *verify, const char *dir, const char *name, GError **error);

static gboolean
visit_below(Verify *verify, const char *dir, const char *name, GError **error)
{
    g_autoptr(GError) inner = NULL;
    g_autoptr(GDir) listing = g_dir_open(dir, 0, &inner);
    if (!listing)
        return kiln_throw(error, KILN_ERROR_IO, "%s: cannot be read: %s", dir, inner->message);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (const char *entry; (entry = g_dir_read_name(listing));)
        g_ptr_array_add(names, g_strdup(entry));
    g_ptr_array_sort(names, compare_names);
    for (guint i = 0; i < names->len; i++) {
        const char *entry = g_ptr_array_index(names, i);
        g_autofree char *below = g_build_filename(dir, entry, NULL);
        g_autofree char *below_name = *name ? g_build_filename(name, entry, NULL) : g_strdup(entry);
        if (g_file_test(below, G_FILE_TEST_IS_DIR) && !visit(verify, below, below_name, error))
            return FALSE;
    }
    return TRUE;
}

/* Depth first, names in order; @name is the path below the folder that the user gave. A folder that
 * a link leads back to is not visited inside itself. */
static gboolean
visit(Verify *verify, const char *dir, const char *name, GError **error)
{
    g_autofree char *model = find_model(dir);
    if (model) {
        kiln_trace_step(verify->options->progress.trace, "case", name);
        CaseResult result = run_case(verify, dir, name);
        report_case(verify, name, &result);
        return TRUE;
    }
    char *real = realpath(dir, NULL);
    bool inside = real && g_ptr_array_find_with_equal_func(verify->chain, real, g_str_equal, NULL);
    if (!real || inside) {
        free(real);
        return real ||
               kiln_throw(error, KILN_ERROR_IO, "%s: cannot be read: %s", dir, g_strerror(errno));
    }
    g_ptr_array_add(verify->chain, real);
    gboolean fine = visit_below(verify, dir, name, error);
    g_ptr_array_set_size(verify->chain, (int)verify->chain->len - 1);
    return fine;
}

static unsigned
n_cases(const Verify *verify)
{
    return verify->counts[CASE_PASS] + verify->counts[CASE_FAIL] + verify->counts[CASE_SKIP];
}

static gboolean
verify_all(Verify *verify, char **dirs, GError **error)
{
    for (; *dirs; dirs++) {
        unsigned before = n_cases(verify);
        g_autofree char *model = find_model(*dirs), *own = g_path_get_basename(*dirs);
        if (!visit(verify, *dirs, model ? own : "", error))
            return FALSE;
        if (n_cases(verify) == before)
            return kiln_throw(error, KILN_ERROR_IO,
                              "%s: expected cases (model.onnx beside test_data_set_0), found none",
                              *dirs);
    }
    return TRUE;
}

static gboolean
print_end(Verify *verify, GError **error)
{
    const unsigned *counts = verify->counts;
    if (!verify->options->json) {
        printf("%u passed, %u failed, %u skipped\n", counts[CASE_PASS], counts[CASE_FAIL],
               counts[CASE_SKIP]);
        return TRUE;
    }
    kiln_json_end_array(&verify->json);
    kiln_json_int(&verify->json, "passed", counts[CASE_PASS]);
    kiln_json_int(&verify->json, "failed", counts[CASE_FAIL]);
    kiln_json_int(&verify->json, "skipped", counts[CASE_SKIP]);
    return kiln_report_print(&verify->json, error);
}

typedef struct {
    double rtol, atol;
    gboolean poison;
} VerifyOptions;

static gboolean
check_tolerance(const char *option, double value, GError **error)
{
    return value >= 0 || value == UNSET ||
           kiln_throw(error, KILN_ERROR_USAGE, "--%s: expected 0 or more, found %g", option, value);
}

static int
verify_work(KilnOptions *options, char **operands, void *data, GError **error)
{
    const VerifyOptions *own = data;
    if (!check_tolerance("rtol", own->rtol, error) || !check_tolerance("atol", own->atol, error))
        return KILN_EXIT_USAGE;
    g_autoptr(KilnPipeline) pipeline = kiln_options_pipeline(options, error);
    if (!pipeline)
        return KILN_EXIT_FAILED;
    g_autoptr(GPtrArray) chain = g_ptr_array_new_with_free_func(free);
    g_autoptr(GString) text = g_string_new(NULL);
    Verify verify = { .options = options,
                      .pipeline = pipeline,
                      .rtol = own->rtol,
                      .atol = own->atol,
                      .poison = own->poison,
                      .json = kiln_report_begin(text),
                      .chain = chain };
    kiln_json_array(&verify.json, "cases");
    if (!verify_all(&verify, operands, error) || !print_end(&verify, error))
        return KILN_EXIT_FAILED;
    return verify.counts[CASE_FAIL] ? KILN_EXIT_FAILED : KILN_EXIT_OK;
}

int
kiln_command_verify(int argc, char **argv)
{
    VerifyOptions own = { UNSET, UNSET, FALSE };
    const GOptionEntry entries[] = {
        { "rtol", 0, 0, G_OPTION_ARG_DOUBLE, &own.rtol,
          "Set the relative tolerance (default: that of each case)", "R" },
        { "atol", 0, 0, G_OPTION_ARG_DOUBLE, &own.atol,
          "Set the absolute tolerance (default: that of each case)", "A" },
        { "poison", 0, 0, G_OPTION_ARG_NONE, &own.poison,
          "Run each case again with dead memory filled with NaN, and fail if a result changes",
          NULL },
        G_OPTION_ENTRY_NULL,
    };
    const KilnUsage usage = {
        .command = "verify",
        .operands = "DIR…",
        .n_operands = KILN_OPERANDS_SOME,
        .summary =
            "Runs every test case below DIR and compares its outputs with the expected ones.",
        .entries = entries,
        .work = verify_work,
    };
    return kiln_command(&usage, argc, argv, &own);
}
