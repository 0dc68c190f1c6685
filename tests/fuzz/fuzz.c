/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz.h"

#include "ir/ir.h"
#include "kiln.h"
#include "passes/context/options.h"
#include "runtime/compile.h"
#include "runtime/model.h"
#include "runtime/pipeline.h"
#include "runtime/program.h"
#include "runtime/session.h"
#include "runtime/specialise.h"
#include "runtime/targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);

enum {
    MAX_ARENA = 1 << 20, /* bytes of what is run */
};

static char *directory; /* of fuzz_file() */

static void
forget_directory(void)
{
    GDir *files = g_dir_open(directory, 0, NULL);
    for (const char *name; files && (name = g_dir_read_name(files));) {
        g_autofree char *path = g_build_filename(directory, name, NULL);
        unlink(path);
    }
    if (files)
        g_dir_close(files);
    rmdir(directory);
    g_free(directory);
}

/* Whatever is printed lands in a file that must stay empty; libFuzzer itself writes to standard
 * error. */
int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    g_log_set_always_fatal(G_LOG_LEVEL_WARNING | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_ERROR);
    int file = memfd_create("stdout", 0);
    if (file < 0 || dup2(file, STDOUT_FILENO) < 0)
        abort();
    close(file);
    return 0;
}

static void
check_printed(void)
{
    fflush(stdout);
    if (lseek(STDOUT_FILENO, 0, SEEK_END) != 0) {
        fprintf(stderr, "something was printed\n");
        abort();
    }
}

void
fuzz_expect(bool good, const GError *error)
{
    check_printed();
    if (good != !error ||
        (error && (error->domain != KILN_ERROR || error->code < 0 || error->code >= KILN_N_ERRORS ||
                   !*error->message || !g_utf8_validate(error->message, -1, NULL)))) {
        fprintf(stderr, "a wrong error: %s\n", error ? error->message : "none");
        abort();
    }
}

void
fuzz_expect_passes(bool good, const GError *error)
{
    fuzz_expect(good, error);
    if (error && (error->code == KILN_ERROR_PASS || error->code == KILN_ERROR_MISMATCH)) {
        fprintf(stderr, "a pass failed: %s\n", error->message);
        abort();
    }
}

void
fuzz_run(KilnProgram *program)
{
    g_autoptr(GError) error = NULL;
    KilnMemoryReport memory = KILN_MEMORY_REPORT_INIT;
    kiln_program_memory(program, &memory, NULL);
    if (memory.arena < 0 || memory.arena > MAX_ARENA)
        return;
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    fuzz_expect(session, error);
    g_autoptr(GPtrArray) inputs = g_ptr_array_new_with_free_func(g_free);
    for (unsigned i = 0; session && i < kiln_program_n_inputs(program); i++) {
        const KilnTensorInfo *info = kiln_program_input(program, i);
        if (info->bytes < 0 || info->bytes > MAX_ARENA)
            return;
        uint8_t *data = g_malloc0((gsize)info->bytes);
        for (int64_t k = 0; k < info->bytes; k++)
            data[k] = info->dtype == KILN_DTYPE_bool ? k % 3 == 0 : (uint8_t)(k % 5 == 3 ? k : 0);
        g_ptr_array_add(inputs, data);
        bool bound = kiln_session_bind_input(session, i, data, (size_t)info->bytes, &error);
        fuzz_expect(bound, error);
        if (!bound)
            return;
    }
    if (session)
        fuzz_expect(kiln_session_run(session, &error), error);
}

/* The dims that @model leaves open: 1 to 3. */
static KilnShape *
small_shapes(const KilnModel *model, unsigned *n, unsigned way)
{
    unsigned n_inputs = kiln_model_n_inputs(model);
    KilnShape *shapes = g_new0(KilnShape, n_inputs + 1);
    *n = 0;
    for (unsigned i = 0; i < n_inputs; i++) {
        const KilnTensorInfo *info = kiln_model_input(model, i);
        KilnShape shape = { info->name, info->rank < 0 ? 2 : info->rank, { 0 } };
        bool open = info->rank < 0;
        for (int d = 0; d < shape.rank; d++) {
            bool known = info->rank >= 0 && info->dims[d] >= 0;
            shape.dims[d] = known ? info->dims[d] : 1 + way % 3;
            open |= !known;
        }
        if (open)
            shapes[(*n)++] = shape;
    }
    return shapes;
}

void
fuzz_compile(KilnModel *model, unsigned way)
{
    g_autoptr(GError) error = NULL;
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    g_autofree KilnShape *shapes = small_shapes(model, &options.n_shapes, way);
    options.shapes = shapes;
    options.threads = 1;
    options.memory_limit = 16 << 20;
    options.target = way % 4 == 1 ? "ref" : "cpu";
    options.no_offload = way % 4 != 3;
    options.prefer_memory = way % 7 == 2;
    options.train = way % 11 == 3;
    g_autoptr(KilnProgram) program = kiln_program_compile(model, &options, &error);
    fuzz_expect_passes(program, error);
    if (program)
        fuzz_run(program);
}

void
fuzz_check(const KilnModel *model, unsigned way)
{
    g_autoptr(GError) error = NULL;
    unsigned n_shapes;
    g_autofree KilnShape *shapes = small_shapes(model, &n_shapes, way);
    g_autofree KilnBinding *bindings = g_new0(KilnBinding, kiln_model_n_inputs(model) + 1);
    for (unsigned i = 0; i < kiln_model_n_inputs(model); i++) {
        bindings[i].rank = KILN_RANK_UNKNOWN;
        for (unsigned s = 0; s < n_shapes; s++) {
            if (strcmp(shapes[s].input, kiln_model_input(model, i)->name) != 0)
                continue;
            bindings[i].rank = shapes[s].rank;
            memcpy(bindings[i].dims, shapes[s].dims, sizeof shapes[s].dims);
        }
    }
    g_autoptr(KilnPipeline) pipeline = kiln_pipeline_load("default", NULL);
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    options.target = kiln_target_choose("cpu", false, NULL);
    options.check_target = kiln_target_by_name("ref", NULL);
    options.check_changed = options.check_numerics = true;
    options.mode = way % 11 == 3 ? KILN_MODE_TRAIN : KILN_MODE_INFER;
    g_autoptr(KilnIRModule) ir = NULL;
    if (model->ir_text) {
        ir = kiln_compile_ir_text(model, pipeline->passes, &options, NULL, &error);
    } else {
        KilnModule *module =
            kiln_compile_graph(model, bindings, pipeline->passes, &options, NULL, &error);
        if (module)
            ir = kiln_compile_ir(module, pipeline->passes, &options, NULL, &error);
    }
    fuzz_expect_passes(ir, error);
}

char *
fuzz_copy(const uint8_t *data, size_t size)
{
    char *copy = g_malloc(MAX(size, 1));
    if (size)
        memcpy(copy, data, size);
    return copy;
}

const char *
fuzz_file(const char *ending, const uint8_t *data, size_t size)
{
    static char *path;
    if (!directory) {
        directory = g_dir_make_tmp("kiln-fuzz-XXXXXX", NULL);
        if (!directory)
            abort();
        atexit(forget_directory);
    }
    g_free(path);
    path = g_strdup_printf("%s/file%s", directory, ending);
    if (!g_file_set_contents_full(path, (const char *)data, (gssize)size, G_FILE_SET_CONTENTS_NONE,
                                  0666, NULL))
        abort();
    return path;
}
