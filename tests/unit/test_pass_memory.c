/* SPDX-License-Identifier: Apache-2.0 */
/* What the IR passes promise of memory: hoisting deallocs, sinking allocs, removing dead ones and
 * sharing buffers never raise a peak, neither that of lives nor that of a heap which follows alloc
 * and dealloc. On models and on every golden that is a function of the second level. */
#include "passes/context/options.h"
#include "passes/pipeline/pipeline.h"
#include "tests/unit/ir_peaks.h"

#include "graph/onnx/onnx.h"
#include "ir/ir.h"
#include "passes/manager/manager.h"

#include <criterion/criterion.h>
#include <string.h>

static void
run(KilnIRModule *ir, const char *passes, const char *what)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnPassPipeline) pipeline = kiln_pass_pipeline_parse_inline(passes, &error);
    cr_assert(pipeline, "%s", error ? error->message : "");
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.check_changed = true;
    cr_assert(kiln_pipeline_run_ir(pipeline, ir, &options, NULL, &error), "%s: %s: %s", what,
              passes, error ? error->message : "");
}

/* Each pass where the one before left off: what the default pipeline has, and the same again in
 * another order. */
static void
expect_no_higher_peaks(KilnIRModule *ir, const char *what)
{
    static const char *const passes[] = {
        "fuse-tails",    "fuse-norm",          "stack-elementwise,sink-allocs,hoist-dealloc",
        "share-buffers", "sink-allocs",        "hoist-dealloc",
        "share-buffers", "delete-dead-allocs", "ir-peephole",
        "dse",           "hoist-dealloc",      "sink-allocs",
        "share-buffers", "delete-dead-allocs"
    };
    for (size_t p = 0; p < G_N_ELEMENTS(passes); p++) {
        g_autofree Peaks *before = g_new(Peaks, ir->functions->len + 1);
        for (guint i = 0; i < ir->functions->len; i++)
            before[i] = peaks_of(g_ptr_array_index(ir->functions, i), NULL);
        run(ir, passes[p], what);
        for (guint i = 0; i < ir->functions->len; i++) {
            const KilnIRFunction *function = g_ptr_array_index(ir->functions, i);
            Peaks after = peaks_of(function, NULL);
            cr_expect(after.live <= before[i].live && after.heap <= before[i].heap,
                      "%s: %s (number %zu) raises the peaks of @%s: lives %ld to %ld, heap %ld to "
                      "%ld",
                      what, passes[p], p, function->name, (long)before[i].live, (long)after.live,
                      (long)before[i].heap, (long)after.heap);
        }
    }
}

/* What the passes are for: freed early and allocated late, a heap needs no more than lives do. */
static void
expect_tight(const KilnIRModule *ir, const char *what)
{
    for (guint i = 0; i < ir->functions->len; i++) {
        Peaks peaks = peaks_of(g_ptr_array_index(ir->functions, i), NULL);
        cr_expect_eq(peaks.heap, peaks.live, "%s: lives need %ld bytes, the heap has %ld", what,
                     (long)peaks.live, (long)peaks.heap);
    }
}

Test(pass_memory, peaks_of_models_never_rise)
{
    static const char *const names[] = { "lenet",         "mlp",       "mobilenet_v2",
                                         "squeezenet1_1", "resnet18",  "shufflenet_v2_x1_0",
                                         "bert_small",    "lstm2_256", "unet16_256",
                                         "wavenet_32" };
    if (!g_file_test(KILN_SHARED_DIR "/models", G_FILE_TEST_IS_DIR))
        cr_skip_test("no models beside the source tree");
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *path =
            g_build_filename(KILN_SHARED_DIR, "models", names[i], "model.onnx", NULL);
        KilnModule *module = kiln_onnx_import_file(path, &error);
        cr_assert(module, "%s", error ? error->message : "");
        g_autoptr(KilnIRModule) ir = kiln_ir_module_new(module);
        KilnIRFunction *function = kiln_lower(kiln_module_entry(module), &error);
        cr_assert(function, "%s: %s", names[i], error ? error->message : "");
        g_ptr_array_add(ir->functions, function);
        expect_no_higher_peaks(ir, names[i]);
        expect_tight(ir, names[i]);
    }
}

/* The part of a golden file before `# ----`; NULL where it is not of the second level. */
static KilnIRModule *
read_golden(const char *path)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return NULL;
    char *end = strstr(text, "\n# ----\n");
    if (end)
        end[1] = '\0';
    if (!strstr(text, "\nfunc @"))
        return NULL;
    KilnIRModule *ir = kiln_ir_module_parse(text, strlen(text), path, &error);
    cr_assert(ir, "%s", error ? error->message : "");
    return ir;
}

Test(pass_memory, peaks_of_goldens_never_rise)
{
    static const char *const folders[] = { "ir-peephole",        "dse",
                                           "hoist-dealloc",      "sink-allocs",
                                           "share-buffers",      "delete-dead-allocs",
                                           "make-weights-const", "stack-elementwise" };
    unsigned read = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(folders); i++) {
        g_autofree char *folder =
            g_build_filename(KILN_SOURCE_DIR, "tests", "golden", folders[i], NULL);
        g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
        cr_assert(dir, "no folder %s", folder);
        const char *name;
        while ((name = g_dir_read_name(dir)) != NULL) {
            g_autofree char *path = g_build_filename(folder, name, NULL);
            g_autoptr(KilnIRModule) ir = read_golden(path);
            if (!ir)
                continue;
            expect_no_higher_peaks(ir, path);
            read++;
        }
    }
    cr_expect(read > 50, "only %u goldens are functions of the second level", read);
}
