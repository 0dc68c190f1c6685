/* SPDX-License-Identifier: Apache-2.0 */
/* Programs on disk: what is loaded computes the same bits, lies in the map, and is believed only as
 * far as it was checked. OFF-14. */
#include "runtime/bind.h"
#include "ir/instr.h"
#include "ir/vendor.h"
#include "kiln.h"
#include "runtime/kiln-pipeline.h"
#include "runtime/program.h"
#include "runtime/targets.h"
#include "tests/unit/program_damage.h"
#include "tests/unit/runtime_case.h"
#include "runtime/tensors/file.h"
#include "runtime/program_file.h"
#include "tests/fold_case.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

/* Packed, plain, generated and mutable weights, scratch and a stack. */
static const char mixed[] =
    "func @f {\n  weight @w : f32[64,48] const\n  weight @v : f32[48] const\n"
    "  weight @k : f32[8,1,3,3] const\n  weight @state = _ : f32[8,48]\n"
    "  input @x : f32[8,64]\n  input @p : f32[1,1,16,16]\n"
    "  output @y : f32[8,48]\n  output @q : f32[1,8,16,16]\n"
    "  %a = alloc : f32[8,48]\n  gemm @out %a, @in @x, @in @w, @in @v\n"
    "  add @out @state, @in @state, @in %a\n  exp @out @y, @in @state\n  dealloc %a\n"
    "  %c = alloc : f32[1,8,16,16]\n"
    "  conv @out %c, @in @p, @in @k, _ {pads=[1,1,1,1]}\n"
    "  stack @out @q, @in %c { relu; mul 0.5 }\n  dealloc %c\n}\n"
    "constants { @w = random_normal(seed=1, std=1) : f32[64,48]\n"
    "  @v = random_normal(seed=2, std=1) : f32[48]\n"
    "  @k = random_normal(seed=3, std=1) : f32[8,1,3,3] }";

static char *folder;

static void
make_folder(void)
{
    folder = g_dir_make_tmp("kiln-programs-XXXXXX", NULL);
}

static void
remove_folder(void)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_unlink(path);
    }
    g_rmdir(folder);
    g_free(folder);
}

TestSuite(programs, .init = make_folder, .fini = remove_folder);

static char *
path_of(const char *name)
{
    return g_build_filename(folder, name, NULL);
}

static KilnProgram *
load(const char *path)
{
    GError *error = NULL;
    KilnProgram *program = kiln_program_load(path, NULL, &error);
    cr_assert(program, "%s", error ? error->message : "");
    return program;
}

/* @program, written and read. */
static KilnProgram *
again(KilnProgram *program)
{
    GError *error = NULL;
    g_autofree char *path = path_of("again.kiln-program");
    must(kiln_program_save(program, path, &error), error);
    return load(path);
}

/* The file of @program. */
static GBytes *
file_of(KilnProgram *program)
{
    GError *error = NULL;
    g_autofree char *path = path_of("saved.kiln-program");
    must(kiln_program_save(program, path, &error), error);
    return kiln_file_map(path, NULL);
}

static GBytes *
saved(const char *text)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = 1;
    g_autoptr(KilnProgram) program = program_of(text, &options);
    return file_of(program);
}

/* --- the same program --- */

static void
bind_random(KilnSession *session, KilnProgram *program, GPtrArray *keep)
{
    for (unsigned i = 0; i < kiln_program_n_inputs(program); i++) {
        const KilnTensorInfo *info = kiln_program_input(program, i);
        float *data = g_malloc((size_t)info->bytes);
        mlp_fill(data, (int)(info->bytes / 4), i + 5);
        g_ptr_array_add(keep, data);
        bind(session, i, data, (size_t)info->bytes);
    }
}

static void
expect_same_runs(KilnProgram *program, KilnProgram *loaded)
{
    unsigned n_in = kiln_program_n_inputs(program), n_out = kiln_program_n_outputs(program);
    cr_assert_eq(kiln_program_n_inputs(loaded), n_in);
    cr_assert_eq(kiln_program_n_outputs(loaded), n_out);
    for (unsigned i = 0; i < n_in; i++)
        cr_expect_str_eq(kiln_program_input(loaded, i)->name, kiln_program_input(program, i)->name);
    g_autoptr(GPtrArray) keep = g_ptr_array_new_with_free_func(g_free);
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.poison = TRUE;
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
    g_autoptr(KilnSession) other = kiln_session_new(loaded, &options, NULL);
    bind_random(session, program, keep);
    bind_random(other, loaded, keep);
    for (int r = 0; r < 3; r++) { /* states go on from run to run */
        run(session);
        run(other);
        expect_same_outputs(session, other, n_out);
    }
}

static void
expect_same_program(KilnProgram *program, KilnProgram *loaded)
{
    KilnMemoryReport a = KILN_MEMORY_REPORT_INIT, b = KILN_MEMORY_REPORT_INIT;
    kiln_program_memory(program, &a, NULL);
    kiln_program_memory(loaded, &b, NULL);
    cr_expect(a.sum == b.sum && a.lb_node == b.lb_node && a.lb_live == b.lb_live &&
              a.arena == b.arena && a.weights == b.weights &&
              a.proven_optimal == b.proven_optimal && b.plan_ms == 0);
    expect_same_runs(program, loaded);
}

Test(programs, compute_the_same_bits)
{
    static const char *const targets[] = { "cpu", "ref" };
    for (size_t t = 0; t < G_N_ELEMENTS(targets); t++) {
        KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
        options.target = targets[t];
        options.threads = 2;
        g_autoptr(KilnProgram) program = program_of(mixed, &options);
        g_autoptr(KilnProgram) loaded = again(program);
        expect_same_program(program, loaded);
    }
}

Test(programs, of_onnx_files)
{
    GError *error = NULL;
    static const char *const pipelines[] = { "default", "offload", "none", "fold" };
    for (size_t i = 0; i < G_N_ELEMENTS(pipelines); i++) {
        g_autoptr(KilnModel) model = kiln_model_load(DIGITS, NULL);
        g_autoptr(KilnPipeline) pipeline = kiln_pipeline_load(pipelines[i], &error);
        KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
        options.pipeline = pipeline;
        g_autoptr(KilnProgram) program = kiln_program_compile(model, &options, &error);
        cr_assert(program, "%s", error ? error->message : "");
        g_autoptr(KilnProgram) loaded = again(program);
        expect_same_program(program, loaded);
        g_autoptr(KilnProgram) twice = again(loaded);
        expect_same_program(program, twice);
    }
}

/* What is written is decided by the model and its options alone. */
Test(programs, files_are_equal)
{
    g_autoptr(GBytes) once = saved(mixed), twice = saved(mixed);
    g_autofree char *path = path_of("saved.kiln-program");
    g_autoptr(KilnProgram) loaded = load(path);
    g_autoptr(GBytes) third = file_of(loaded);
    cr_expect(g_bytes_equal(once, twice) && g_bytes_equal(once, third));
}

/* Type 1 is folded into the file, Type 2 at the first run of what is loaded. */
Test(programs, constants_of_the_first_run)
{
    static float x[MLP_WIDTH], w1[MLP_WEIGHT], w2[MLP_WEIGHT];
    mlp_fill(x, MLP_WIDTH, 1);
    mlp_fill(w1, MLP_WEIGHT, 2);
    mlp_fill(w2, MLP_WEIGHT, 3);
    static const char *const texts[] = { mlp_plain, mlp_two, mlp_three };
    for (int i = 0; i < 6; i++) {
        g_autoptr(GBytes) value = g_bytes_new_static(w1, sizeof w1);
        bool late = i >= 3;
        const KilnConstantInput constants[] = {
            { "w1", KILN_CONSTANT_COMPILE, late ? NULL : value },
            { "w2", KILN_CONSTANT_RUN, NULL },
        };
        KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
        options.constants = constants;
        options.n_constants = G_N_ELEMENTS(constants);
        g_autoptr(KilnProgram) program = program_of(texts[i % 3], &options);
        g_autoptr(KilnProgram) loaded = again(program);
        KilnProgram *programs[] = { program, loaded };
        KilnSession *sessions[2];
        for (int p = 0; p < 2; p++) {
            cr_assert_eq(kiln_program_n_inputs(programs[p]), 3);
            sessions[p] = kiln_session_new(programs[p], NULL, NULL);
            bind(sessions[p], 0, x, sizeof x);
            if (late)
                bind(sessions[p], 1, w1, sizeof w1);
            bind(sessions[p], 2, w2, sizeof w2);
            run(sessions[p]);
            run(sessions[p]);
        }
        cr_expect_eq(kiln_program_fold_runs(loaded), kiln_program_fold_runs(program));
        expect_same_outputs(sessions[0], sessions[1], 1);
        GError *error = NULL;
        if (!late) {
            cr_expect_not(kiln_session_bind_input(sessions[1], 1, w1, sizeof w1, &error));
            expect_error(&error, KILN_ERROR_USAGE, "its value was set");
        }
        kiln_session_free(sessions[0]);
        kiln_session_free(sessions[1]);
    }
}

/* --- where it lies --- */

Test(programs, weights_lie_in_the_file)
{
    g_autoptr(GBytes) file = saved(mixed);
    GError *error = NULL;
    g_autoptr(KilnProgram) program = kiln_program_load_bytes(file, "mixed", NULL, &error);
    cr_assert(program, "%s", error ? error->message : "");
    const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
    size_t size;
    const char *start = g_bytes_get_data(file, &size);
    unsigned n = 0;
    for (uint32_t i = 0; i < made->n_weights + made->n_calls; i++) {
        GBytes *bytes =
            i < made->n_weights ? made->weights[i] : made->calls[i - made->n_weights].packed;
        const char *data = bytes ? g_bytes_get_data(bytes, NULL) : NULL;
        cr_expect(!data || (data >= start && data < start + size));
        n += data != NULL;
    }
    cr_expect_geq(n, 2);
    cr_expect_eq(made->n_states, 1);
}

/* The pages of a file are read-only and private: of the page cache, which all processes share. */
Test(programs, pages_are_those_of_the_file)
{
    g_autofree char *path = path_of("saved.kiln-program");
    g_bytes_unref(saved(mixed));
    g_autoptr(KilnProgram) program = load(path);
    const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
    g_autofree char *maps = NULL;
    cr_assert(g_file_get_contents("/proc/self/maps", &maps, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(maps, "\n", -1);
    unsigned n = 0;
    for (char **line = lines; *line; line++) {
        if (!g_str_has_suffix(*line, path))
            continue;
        char *end;
        uint64_t low = g_ascii_strtoull(*line, &end, 16);
        uint64_t high = g_ascii_strtoull(end + 1, &end, 16);
        cr_expect(g_str_has_prefix(end, " r--p "), "%s", *line);
        for (uint32_t c = 0; c < made->n_calls; c++) {
            GBytes *packed = made->calls[c].packed;
            uint64_t at = packed ? (uintptr_t)g_bytes_get_data(packed, NULL) : 0;
            n += at >= low && at < high;
        }
    }
    cr_expect_geq(n, 1);
}

/* Of a vendor's regions alone. */
static KilnProgram *
program_of_regions(void)
{
    static const char text[] = "graph @f(%x: f32[1,20,9,9]) {\n"
                               "  %w = const @w : f32[40,20,3,3]\n  %b = const @b : f32[40]\n"
                               "  %v = const @v : f32[21,40,1,1]\n  %d = const @d : f32[21,1,3,3]\n"
                               "  %c = conv(%x, %w, %b) {pads=[1,1,1,1]} : f32[1,40,9,9]\n"
                               "  %e = conv(%c, %v) : f32[1,21,9,9]\n"
                               "  %g = conv(%e, %d) {group=21, pads=[1,1,1,1]} : f32[1,21,9,9]\n"
                               "  %s = add(%g, %e) : f32[1,21,9,9]\n  return %s\n}\n"
                               "constants { @w = random_normal(seed=1, std=0.2) : f32[40,20,3,3]\n"
                               "  @b = random_normal(seed=2, std=0.2) : f32[40]\n"
                               "  @v = random_normal(seed=3, std=0.2) : f32[21,40,1,1]\n"
                               "  @d = random_normal(seed=4, std=0.2) : f32[21,1,3,3] }\n";
    GError *error = NULL;
    g_autoptr(KilnPipeline) pipeline =
        kiln_pipeline_parse("partition-offload{when=always,min-us=0},compile-offload", &error);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.pipeline = pipeline;
    options.threads = 1;
    return program_of(text, &options);
}

/* The vendor's layouts pad channels to whole blocks. Padding is written when weights are packed and
 * never after: runs of a program file would meet a fault. */
Test(programs, padding_of_the_vendor_is_in_the_file)
{
    if (!kiln_target_by_name("cpu", NULL)->vendor)
        cr_skip_test("built without a vendor library");
    g_autoptr(KilnProgram) program = program_of_regions();
    const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
    size_t packed = 0;
    for (uint32_t c = 0; c < made->n_calls; c++)
        packed += made->calls[c].instr->kind == KILN_INSTR_call ? made->calls[c].packed_bytes : 0;
    cr_expect_gt(packed, 4 * (40 * 20 * 9 + 40 + 21 * 40 + 21 * 9) + 1024);
    g_autoptr(KilnProgram) loaded = again(program);
    expect_same_program(program, loaded);
}

/* A program is used where its bytes are aligned, from a copy where they are not. */
Test(programs, of_memory)
{
    g_autoptr(GBytes) file = saved(mixed);
    size_t size;
    const char *data = g_bytes_get_data(file, &size);
    char *moved = g_malloc(size + 1);
    memcpy(moved + 1, data, size);
    g_autoptr(GBytes) bytes = g_bytes_new_with_free_func(moved + 1, size, g_free, moved);
    GError *error = NULL;
    g_autoptr(KilnProgram) program = kiln_program_load_bytes(bytes, NULL, NULL, &error);
    cr_assert(program, "%s", error ? error->message : "");
    g_autoptr(KilnProgram) reloaded = again(program);
    expect_same_program(program, reloaded);
    /* The plan took another time than that of the file. */
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = 1;
    g_autoptr(KilnProgram) other = program_of(mixed, &options);
    expect_same_runs(other, program);
}

static const char *
run_nothing(const KilnFrame *frame, unsigned *at)
{
    *at = 1;
    return frame->calls && frame->arena ? "nothing" : NULL;
}

/* Of an object that is linked: its entry function runs, and its number of calls has to be right. */
Test(programs, OFF_12_of_objects)
{
    g_autoptr(GBytes) file = saved(mixed);
    size_t size;
    const void *data = g_bytes_get_data(file, &size);
    KilnObject object = { 1, "object", data, size, 3, run_nothing };
    GError *error = NULL;
    cr_expect_null(kiln_program_load_object(&object, &error));
    expect_error(&error, KILN_ERROR_USAGE, "KilnObject: expected a size of");
    object.size = sizeof object;
    cr_expect_null(kiln_program_load_object(&object, &error));
    expect_error(&error, KILN_ERROR_INVALID, "object: expected 5 calls, found 3");
    object.n_calls = 5;
    g_autoptr(KilnProgram) program = kiln_program_load_object(&object, &error);
    cr_assert(program, "%s", error ? error->message : "");
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
    g_autoptr(GPtrArray) keep = g_ptr_array_new_with_free_func(g_free);
    bind_random(session, program, keep);
    run_fails(session, KILN_ERROR_RUN, "(add): nothing");
}

/* --- refusals --- */

Test(programs, nothing_half_is_written)
{
    GError *error = NULL;
    g_autofree char *path = path_of("no/such/folder");
    g_autoptr(KilnProgram) program = program_of(mixed, NULL);
    cr_expect_not(kiln_program_save(program, path, &error));
    expect_error(&error, KILN_ERROR_IO, path);
    cr_expect_not(kiln_program_save(program, folder, &error));
    expect_error(&error, KILN_ERROR_IO, folder);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    cr_expect_null(g_dir_read_name(dir));
}

Test(programs, models_and_programs_are_told_apart)
{
    GError *error = NULL;
    g_autoptr(GBytes) file = saved(mixed);
    cr_expect_null(kiln_model_load_bytes(file, "p", &error));
    expect_error(&error, KILN_ERROR_FORMAT, "p: expected a model, found a compiled program");
    cr_expect_null(kiln_program_load(DIGITS, NULL, &error));
    expect_error(&error, KILN_ERROR_FORMAT, "expected a compiled program, found another kind");
    cr_expect_null(kiln_program_load("/nowhere", NULL, &error));
    expect_error(&error, KILN_ERROR_IO, "/nowhere");
    KilnLoadOptions options = { .size = 1 };
    cr_expect_null(kiln_program_load_bytes(file, "p", &options, &error));
    expect_error(&error, KILN_ERROR_USAGE, "KilnLoadOptions: expected a size, found");
}

/* --- damage --- */

Test(programs, OFF_14_altered_bytes_are_found)
{
    g_autoptr(GBytes) file = saved(mixed);
    Damaged copy = copy_of(file);
    /* Every byte of the header and the table, and some of all else. */
    size_t table = sizeof *copy.header + copy.header->n_sections * sizeof *copy.sections;
    for (size_t at = 0; at < table; at++) {
        copy.data[at] ^= 0x40;
        KilnError code = at >= 8 && at < 12 ? KILN_ERROR_UNSUPPORTED : KILN_ERROR_FORMAT;
        refuses(&copy, copy.size, code, "file: ");
        copy.data[at] ^= 0x40;
    }
    for (size_t at = table; at < copy.size; at += 61) {
        copy.data[at] ^= 0x01;
        refuses(&copy, copy.size, KILN_ERROR_FORMAT, "file: the file is damaged");
        copy.data[at] ^= 0x01;
    }
    for (uint32_t i = 0; i < copy.header->n_sections; i++) {
        const KilnSection *section = &copy.sections[i];
        for (int part = 0; part < 3 && section->size; part++) {
            char *byte = copy.data + section->offset + (section->size - 1) * (size_t)part / 2;
            *byte ^= 0x80;
            refuses(&copy, copy.size, KILN_ERROR_FORMAT, "the checksum of");
            *byte ^= 0x80;
        }
    }
    g_aligned_free(copy.data);
}

Test(programs, OFF_14_cut_files_are_found)
{
    g_autoptr(GBytes) file = saved(mixed);
    Damaged copy = copy_of(file);
    for (size_t size = 0; size < copy.size; size += size < 1024 ? 1 : 997)
        refuses(&copy, size, KILN_ERROR_FORMAT, "file: ");
    refuses(&copy, copy.size - 1, KILN_ERROR_FORMAT, "cut short or damaged");
    g_aligned_free(copy.data);
}

Test(programs, OFF_14_other_makers_are_refused)
{
    g_autoptr(GBytes) file = saved(mixed);
    Damaged copy = copy_of(file);
    const KilnProgramHeader whole = *copy.header;
    strcpy(copy.header->version, "0.0.9");
    sign(&copy);
    refuses(&copy, copy.size, KILN_ERROR_UNSUPPORTED,
            "file: expected a program of kiln " KILN_VERSION
            ", found one of kiln 0.0.9: compile the model "
            "again");
    *copy.header = whole;
    strcpy(copy.header->isa, "NEON");
    sign(&copy);
    refuses(&copy, copy.size, KILN_ERROR_UNSUPPORTED, "kernels, found one for NEON: compile");
    *copy.header = whole;
    strcpy(copy.header->vendor, "acme 1.2");
    sign(&copy);
    refuses(&copy, copy.size, KILN_ERROR_UNSUPPORTED, "found one that calls acme 1.2");
    *copy.header = whole;
    strcpy(copy.header->target, "gpu");
    sign(&copy);
    refuses(&copy, copy.size, KILN_ERROR_USAGE, "file: expected a backend (cpu, ref), found gpu");
    *copy.header = whole;
    copy.header->threads = 0;
    sign(&copy);
    refuses(&copy, copy.size, KILN_ERROR_FORMAT, "its number of threads is impossible");
    *copy.header = whole;
    memset(copy.header->version, 'x', sizeof copy.header->version);
    sign(&copy);
    refuses(&copy, copy.size, KILN_ERROR_FORMAT, "its header is malformed");
    *copy.header = whole;
    copy.header->format++;
    refuses(&copy, copy.size, KILN_ERROR_UNSUPPORTED, "found format 9: compile the model again");
    g_aligned_free(copy.data);
}

/* Checksums are right, and what they are of is not: calls that are other kernels', scratch outside
 * the arena or over what lives, weights of another size. */
Test(programs, nonsense_is_refused)
{
    g_autoptr(GBytes) file = saved(mixed);
    Damaged copy = copy_of(file);
    const KilnSection *section = &copy.sections[KILN_SECTION_CALLS];
    cr_assert_eq(section->kind, KILN_SECTION_CALLS);
    KilnStoredCall *calls = (KilnStoredCall *)(copy.data + section->offset);
    const KilnStoredCall whole = calls[0];
    strcpy(calls[0].kernel, "cpu:another");
    sign(&copy);
    refuses(&copy, copy.size, KILN_ERROR_UNSUPPORTED, "expected kernel cpu:another as it was when");
    calls[0] = whole;
    calls[0].vendor.low ^= 1;
    sign(&copy);
    refuses(&copy, copy.size, KILN_ERROR_UNSUPPORTED, "as it was when the program was compiled");
    calls[0] = whole;
    static const int64_t offsets[] = { 64, 1, INT64_MAX, INT64_MIN, INT64_MAX & ~63ll };
    for (uint32_t c = 0; c < section->size / sizeof *calls; c++) {
        int64_t scratch = calls[c].scratch;
        for (size_t i = 0; i < G_N_ELEMENTS(offsets); i++) {
            if ((offsets[i] < 0) == (scratch < 0))
                continue;
            calls[c].scratch = offsets[i];
            g_autoptr(KilnProgram) program = load_signed(&copy, NULL);
            cr_expect(!program || offsets[i] == 64);
        }
        calls[c].scratch = scratch;
    }
    /* A weight that is another section's bytes. */
    for (uint32_t i = 2; i < copy.header->n_sections; i++) {
        KilnSection old = copy.sections[i];
        copy.sections[i].index += 100;
        g_autoptr(KilnProgram) program = load_signed(&copy, NULL);
        cr_expect(!program, "section %u", i);
        copy.sections[i] = old;
    }
    g_aligned_free(copy.data);
}

/* A file with a section of each kind that constants and names have. Of the inputs, %w is known and
 * %x, %v are not: %v comes with the first run, which adds it to a constant. */
static GBytes *
saved_with_constants(void)
{
    static const char text[] =
        "graph @now(%w: f32[16,16] constant=compile) {\n"
        "  %u = transpose(%w) {perm=[1,0]} : f32[16,16]\n  return %u\n}\n"
        "graph @fold(%v: f32[16,16] constant=run) {\n"
        "  %k = const @k : f32[16,16]\n  %t = add(%v, %k) : f32[16,16]\n  return %t\n}\n"
        "graph @f(%x: f32[16,16], %t: f32[16,16], %u: f32[16,16]) {\n"
        "  %a = matmul(%x, %t) : f32[16,16]\n  %b = add(%a, %u) : f32[16,16]\n"
        "  return %b as x\n}\n"
        "fold(%x: f32[16,16], %v: f32[16,16] constant=run, %w: f32[16,16] constant=compile) {\n"
        "  %u = compile @now(%w)\n  %t = run @fold(%v)\n}\n"
        "constants { @k = [0";
    g_autoptr(GString) full = g_string_new(text);
    for (int i = 1; i < MLP_WEIGHT; i++)
        g_string_append_printf(full, ", %d", i);
    g_string_append(full, "] : f32[16,16] }\n");
    static float w[MLP_WEIGHT];
    mlp_fill(w, MLP_WEIGHT, 2);
    g_autoptr(GBytes) value = g_bytes_new_static(w, sizeof w);
    const KilnConstantInput constants[] = { { "v", KILN_CONSTANT_RUN, NULL },
                                            { "w", KILN_CONSTANT_COMPILE, value } };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.constants = constants;
    options.n_constants = G_N_ELEMENTS(constants);
    g_autoptr(KilnProgram) program = program_of(full->str, &options);
    return file_of(program);
}

Test(programs, nonsense_about_constants_is_refused)
{
    g_autoptr(GBytes) file = saved_with_constants();
    Damaged copy = copy_of(file);
    unsigned found[KILN_N_SECTION_KINDS] = { 0 };
    for (uint32_t i = 0; i < copy.header->n_sections; i++) {
        KilnSection *section = &copy.sections[i], old = *section;
        found[section->kind]++;
        section->index += 100;
        sign(&copy);
        refuses(&copy, copy.size, KILN_ERROR_INVALID, "file: ");
        *section = old;
        if (section->kind == KILN_SECTION_VALUE) {
            /* The same value of inputs that are read: by the entry, and by the first run. */
            for (section->index = 0; section->index < 2; section->index++) {
                sign(&copy);
                refuses(&copy, copy.size, KILN_ERROR_INVALID, "that no call reads, found 1024");
            }
            *section = old;
        }
        if (section->kind != KILN_SECTION_VALUE && section->kind != KILN_SECTION_OUTPUT)
            continue;
        char *last = copy.data + section->offset + --section->size, byte = *last;
        *last = 0;
        sign(&copy);
        refuses(&copy, copy.size, KILN_ERROR_INVALID,
                section->kind == KILN_SECTION_VALUE
                    ? "input w: expected a value of 1024 bytes that "
                      "no call reads, found 1023 bytes"
                    : "output 0: its name does not end");
        *last = byte;
        *section = old;
    }
    cr_expect(found[KILN_SECTION_VALUE] && found[KILN_SECTION_CONSTANT] &&
              found[KILN_SECTION_OUTPUT]);
    g_aligned_free(copy.data);
}

/* A file of regions; NULL where there is no vendor library to make regions. */
static GBytes *
saved_regions(void)
{
    if (!kiln_target_by_name("cpu", NULL)->vendor)
        return NULL;
    g_autoptr(KilnProgram) program = program_of_regions();
    return file_of(program);
}

/* Loads @copy, whose first run fails with @text; NULL: it does not. */
static void
first_run(Damaged *copy, const char *text)
{
    GError *error = NULL;
    g_autoptr(KilnProgram) program = load_signed(copy, &error);
    cr_assert(program, "%s", error ? error->message : "");
    g_autoptr(GPtrArray) keep = g_ptr_array_new_with_free_func(g_free);
    for (int i = 0; i < 2; i++) { /* what fails once fails again */
        g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
        bind_random(session, program, keep);
        gboolean good = kiln_session_run(session, &error);
        cr_assert_eq(good, !text, "%s", error ? error->message : "");
        if (text)
            expect_error(&error, KILN_ERROR_RUN, text);
    }
}

/* Loading asks the vendor nothing. The first run does, and believes no file: memory was planned as
 * that says. */
Test(programs, regions_are_described_by_their_first_run)
{
    g_autoptr(GBytes) file = saved_regions();
    if (!file)
        cr_skip_test("built without a vendor library");
    Damaged copy = copy_of(file);
    uint64_t before = kiln_kernel_cache_compiled();
    GError *error = NULL;
    g_autoptr(KilnProgram) loaded = kiln_program_load_bytes(file, "file", NULL, &error);
    cr_assert(loaded, "%s", error ? error->message : "");
    cr_expect_eq(kiln_kernel_cache_compiled(), before);
    first_run(&copy, NULL);
    cr_expect_gt(kiln_kernel_cache_compiled(), before);

    const KilnSection *section = &copy.sections[KILN_SECTION_CALLS];
    KilnStoredCall *calls = (KilnStoredCall *)(copy.data + section->offset);
    const KilnStoredCall whole = calls[0];
    cr_assert_gt(whole.scratch_bytes, 64);
    calls[0].scratch_bytes = 64;
    g_autofree char *sizes =
        g_strdup_printf("expected a region with 64 bytes of scratch, found one "
                        "with %" G_GUINT64_FORMAT,
                        whole.scratch_bytes);
    first_run(&copy, sizes);
    calls[0].scratch_bytes = UINT64_MAX;
    sign(&copy);
    refuses(&copy, copy.size, KILN_ERROR_INVALID, "expected scratch in an arena of");
    calls[0] = whole;
    calls[0].packed_bytes -= 64;
    sign(&copy);
    refuses(&copy, copy.size, KILN_ERROR_INVALID, "packed weights: expected ");
    calls[0] = whole;
    calls[0].vendor.low ^= 1;
    first_run(&copy, "as it was when the program was compiled");
    calls[0] = whole;
    KilnSection *operands = &copy.sections[KILN_SECTION_OPERANDS];
    cr_assert_eq(operands->kind, KILN_SECTION_OPERANDS);
    char *last = copy.data + operands->offset + operands->size - 1;
    cr_assert_eq(*last, 1);
    *last = 2;
    sign(&copy);
    refuses(&copy, copy.size, KILN_ERROR_INVALID, "expected 0 or 1, found 2");
    *last = 0;
    operands->size--;
    sign(&copy);
    refuses(&copy, copy.size, KILN_ERROR_INVALID, " operands, found ");
    g_aligned_free(copy.data);
}

/* Whatever bytes the text, the table of calls and the operands of a region hold: an error, or a
 * program that runs. */
static void
damage_at_random(GBytes *file, int n, uint64_t n_sections)
{
    Damaged copy = copy_of(file);
    uint64_t seed = 1;
    int n_refused = 0;
    for (int i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const KilnSection *section = &copy.sections[(seed >> 56) % n_sections];
        char *byte = copy.data + section->offset + (seed >> 20) % section->size;
        char old = *byte;
        *byte = (char)(seed >> 40);
        GError *error = NULL;
        g_autoptr(KilnProgram) program = load_signed(&copy, &error);
        cr_assert(!program == (error != NULL));
        n_refused += !program;
        if (program && kiln_program_n_inputs(program) <= 2) {
            KilnMemoryReport memory = KILN_MEMORY_REPORT_INIT;
            kiln_program_memory(program, &memory, NULL);
            g_autoptr(KilnSession) session =
                memory.arena < 1 << 24 ? kiln_session_new(program, NULL, NULL) : NULL;
            static float data[4096];
            for (unsigned k = 0; session && k < kiln_program_n_inputs(program); k++) {
                size_t size = (size_t)kiln_program_input(program, k)->bytes;
                if (size <= sizeof data)
                    bind(session, k, data, size);
            }
            if (session)
                kiln_session_run(session, NULL);
        }
        g_clear_error(&error);
        *byte = old;
    }
    cr_expect_gt(n_refused, n / 4);
    g_aligned_free(copy.data);
}

Test(programs, random_damage_with_right_checksums)
{
    g_autoptr(GBytes) file = saved(mixed);
    damage_at_random(file, 2000, 2);
}

Test(programs, random_damage_of_regions)
{
    g_autoptr(GBytes) file = saved_regions();
    if (!file)
        cr_skip_test("built without a vendor library");
    damage_at_random(file, 300, 3);
}
