/* SPDX-License-Identifier: Apache-2.0 */
/* Open programs on disk: one file for all shapes, whose weights are packed already. */
#include "kiln.h"
#include "runtime/bind.h"
#include "runtime/program.h"
#include "runtime/program_file.h"
#include "runtime/session.h"
#include "runtime/tensors/file.h"
#include "tests/unit/program_damage.h"
#include "tests/unit/runtime_case.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

/* A product with rows that are named, a constant that is small, one that is generated, and a value
 * that is appended to. */
static const char mixed[] =
    "graph @f(%x: f32[T,64], %past: f32[P,48]) {\n"
    "  %w = const @w : f32[64,48]\n  %v = const @v : f32[48]\n  %s = const @s : f32[1,48]\n"
    "  %a = matmul(%x, %w) : f32[T,48]\n  %b = add(%a, %v) : f32[T,48]\n"
    "  %c = gelu(%b) : f32[T,48]\n  %d = mul(%c, %s) : f32[T,48]\n"
    "  %all = concat(%past, %d) {axis=0} : f32[P+T,48]\n"
    "  %e = softmax(%all) {axis=1} : f32[P+T,48]\n"
    "  return %e as y, %all\n}\n"
    "constants { @w = random_normal(seed=1, std=0.1) : f32[64,48]\n"
    "  @v = random_normal(seed=2, std=1) : f32[48]\n  @s = splat(0.5) : f32[1,48] }\n";

enum {
    MOST = 40
};

static char *folder;

static void
make_folder(void)
{
    folder = g_dir_make_tmp("kiln-open-programs-XXXXXX", NULL);
}

static void
remove_folder(void)
{
    g_autofree char *path = g_build_filename(folder, "p", NULL);
    g_unlink(path);
    g_rmdir(folder);
    g_free(folder);
}

TestSuite(programs_open, .init = make_folder, .fini = remove_folder);

static KilnProgram *
compiled(const char *text, const KilnDimRange *ranges, unsigned n_ranges)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = 1;
    options.ranges = ranges;
    options.n_ranges = n_ranges;
    return program_of(text, &options);
}

static GBytes *
file_of(KilnProgram *program)
{
    GError *error = NULL;
    g_autofree char *path = g_build_filename(folder, "p", NULL);
    must(kiln_program_save(program, path, &error), error);
    return kiln_file_map(path, NULL);
}

static KilnProgram *
loaded(GBytes *file)
{
    GError *error = NULL;
    KilnProgram *program = kiln_program_load_bytes(file, "file", NULL, &error);
    cr_assert(program, "%s", error ? error->message : "");
    return program;
}

static void
fill(float *data, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        data[i] = (float)((i * 7919 + seed * 104729) % 997) / 499 - 1;
}

static KilnSession *
session_for(KilnProgram *program)
{
    GError *error = NULL;
    KilnSession *session = kiln_session_new(program, NULL, &error);
    cr_assert(session, "%s", error ? error->message : "");
    return session;
}

static gboolean
run_at(KilnSession *session, int64_t rows, int64_t past, GError **error)
{
    static float x[MOST * 64], p[MOST * 48];
    const int64_t x_dims[] = { rows, 64 }, p_dims[] = { past, 48 };
    fill(x, G_N_ELEMENTS(x), 1);
    fill(p, G_N_ELEMENTS(p), 2);
    return kiln_session_bind_input_shaped(session, 0, x, 2, x_dims, error) &&
           kiln_session_bind_input_shaped(session, 1, p, 2, p_dims, error) &&
           kiln_session_run(session, error);
}

static const int64_t shapes[][2] = { { 1, 1 }, { 7, 5 }, { MOST, MOST }, { 1, MOST }, { 33, 2 } };

Test(programs_open, compute_the_same_bits)
{
    GError *error = NULL;
    g_autoptr(KilnProgram) program = compiled(mixed, NULL, 0);
    g_autoptr(GBytes) file = file_of(program);
    g_autoptr(KilnProgram) again = loaded(file);
    g_autoptr(KilnSession) first = session_for(program), second = session_for(again);
    cr_expect_str_eq(kiln_program_input(again, 0)->dim_names[0], "T");
    cr_expect_str_eq(kiln_program_output(again, 1)->dim_names[0], "P+T");
    cr_expect_eq(kiln_program_output(again, 1)->dims[0], -1);
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        must(run_at(first, shapes[i][0], shapes[i][1], &error), error);
        must(run_at(second, shapes[i][0], shapes[i][1], &error), error);
        expect_same_outputs(first, second, 2);
    }
}

/* What sessions did with a program does not show in its file. */
Test(programs_open, files_are_equal)
{
    GError *error = NULL;
    g_autoptr(KilnProgram) program = compiled(mixed, NULL, 0), other = compiled(mixed, NULL, 0);
    g_autoptr(KilnSession) session = session_for(program);
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++)
        must(run_at(session, shapes[i][0], shapes[i][1], &error), error);
    g_autoptr(GBytes) used = file_of(program), fresh = file_of(other);
    cr_expect(g_bytes_equal(used, fresh));
    g_autoptr(KilnProgram) again = loaded(fresh);
    g_autoptr(GBytes) rewritten = file_of(again);
    cr_expect(g_bytes_equal(rewritten, fresh));
}

/* Packed and plain weights are those of the file: nothing is packed, and nothing is copied. */
Test(programs_open, weights_lie_in_the_file)
{
    GError *error = NULL;
    g_autoptr(KilnProgram) program = compiled(mixed, NULL, 0);
    g_autoptr(GBytes) file = file_of(program);
    g_autoptr(KilnProgram) again = loaded(file);
    g_autoptr(KilnSession) session = session_for(again);
    size_t size;
    const char *start = g_bytes_get_data(file, &size);
    unsigned n = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        must(run_at(session, shapes[i][0], shapes[i][1], &error), error);
        for (uint32_t c = 0; c < session->made->n_calls; c++) {
            GBytes *packed = session->made->calls[c].packed;
            const char *data = packed ? g_bytes_get_data(packed, NULL) : NULL;
            cr_expect(!data || (data >= start && data < start + size), "%s",
                      session->made->calls[c].kernel->name);
            n += data != NULL;
        }
    }
    cr_expect_geq(n, G_N_ELEMENTS(shapes));
}

Test(programs_open, bounds_are_kept)
{
    GError *error = NULL;
    const KilnDimRange ranges[] = { { .name = "T", .least = 1, .most = 16 },
                                    { .name = "P", .least = 4, .most = 32, .multiple = 4 } };
    g_autoptr(KilnProgram) program = compiled(mixed, ranges, G_N_ELEMENTS(ranges));
    g_autoptr(GBytes) file = file_of(program);
    g_autoptr(KilnProgram) again = loaded(file);
    g_autoptr(KilnSession) session = session_for(again);
    must(run_at(session, 16, 32, &error), error);
    int64_t arena = session->made->arena_bytes;
    must(run_at(session, 1, 4, &error), error);
    cr_expect_eq(session->made->arena_bytes, arena);
    cr_expect_not(run_at(session, 17, 4, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "expected 1..16, found 17");
    cr_expect_not(run_at(session, 1, 6, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "dim P");
    must(run_at(session, 3, 8, &error), error);
}

/* No graph is there to make another program of. */
Test(programs_open, other_shapes_are_refused)
{
    GError *error = NULL;
    static const char text[] = "graph @f(%x: f32[N,2], %y: f32[N,2]) {\n"
                               "  %z = add(%x, %y) : f32[N,2]\n  return %z\n}\n";
    g_autoptr(KilnProgram) program = compiled(text, NULL, 0);
    g_autoptr(GBytes) file = file_of(program);
    g_autoptr(KilnProgram) again = loaded(file);
    g_autoptr(KilnSession) session = session_for(again);
    static const float data[8] = { 1 };
    const int64_t two[] = { 2, 2 }, three[] = { 3, 2 }, wide[] = { 2, 3 };
    must(kiln_session_bind_input_shaped(session, 0, data, 2, two, &error), error);
    must(kiln_session_bind_input_shaped(session, 1, data, 2, three, &error), error);
    cr_expect_not(kiln_session_run(session, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "input y: dim N: expected one number, found 2 and 3");
    cr_expect_not(kiln_session_bind_input_shaped(session, 1, data, 2, wide, &error));
    expect_error(&error, KILN_ERROR_SHAPE, "input y");
    must(kiln_session_bind_input_shaped(session, 1, data, 2, two, &error), error);
    must(kiln_session_run(session, &error), error);
}

Test(programs_open, values_carry)
{
    GError *error = NULL;
    g_autoptr(KilnProgram) program = compiled(mixed, NULL, 0);
    g_autoptr(GBytes) file = file_of(program);
    g_autoptr(KilnProgram) again = loaded(file);
    KilnProgram *programs[] = { program, again };
    KilnSession *sessions[2];
    float x[2 * 64];
    fill(x, G_N_ELEMENTS(x), 3);
    for (int p = 0; p < 2; p++) {
        sessions[p] = session_for(programs[p]);
        must(kiln_session_carry(sessions[p], 1, 1, &error), error);
        must(run_at(sessions[p], 2, 3, &error), error);
        for (int i = 0; i < 9; i++) {
            bind_shaped(sessions[p], 0, x, DIMS(2, 64));
            must(kiln_session_run(sessions[p], &error), error);
        }
    }
    expect_same_outputs(sessions[0], sessions[1], 2);
    kiln_session_free(sessions[0]);
    kiln_session_free(sessions[1]);
}

/* A value that is known when the program is compiled: one that shapes depend on, and another. */
Test(programs_open, known_values_stay_known)
{
    static const char text[] = "graph @f(%x: f32[N,2], %s: i64[2], %b: f32[2]) {\n"
                               "  %y = reshape(%x, %s) : f32[?,?]\n"
                               "  %z = add(%x, %b) : f32[N,2]\n  return %y, %z\n}\n";
    static const int64_t shape[] = { 2, -1 };
    static const float bias[] = { 10, 20 }, x[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    g_autoptr(GBytes) first = g_bytes_new_static(shape, sizeof shape);
    g_autoptr(GBytes) second = g_bytes_new_static(bias, sizeof bias);
    const KilnConstantInput constants[] = { { "s", KILN_CONSTANT_COMPILE, first },
                                            { "b", KILN_CONSTANT_COMPILE, second } };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.constants = constants;
    options.n_constants = G_N_ELEMENTS(constants);
    g_autoptr(KilnProgram) program = program_of(text, &options);
    g_autoptr(GBytes) file = file_of(program);
    g_autoptr(KilnProgram) again = loaded(file);
    g_autoptr(KilnSession) session = session_for(again);
    GError *error = NULL;
    for (int64_t rows = 2; rows <= 4; rows += 2) {
        bind_shaped(session, 0, x, DIMS(rows, 2));
        must(kiln_session_run(session, &error), error);
        KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
        const float *y = kiln_session_output(session, 0, &info, &error);
        must(y != NULL, error);
        cr_expect_eq(info.dims[0], 2);
        cr_expect_eq(info.dims[1], rows);
        const float *z = kiln_session_output(session, 1, NULL, &error);
        must(z != NULL, error);
        cr_expect_eq(z[0], 11);
        cr_expect_eq(z[2 * rows - 1], x[2 * rows - 1] + 20);
    }
    cr_expect_not(kiln_session_bind_input(session, 2, bias, sizeof bias, &error));
    expect_error(&error, KILN_ERROR_USAGE, "its value was set");
}

/* Each run counts anew, and what is computed of a count follows. */
Test(programs_open, counts_are_those_of_the_run)
{
    static const char text[] = "graph @f(%x: f32[N]) {\n  %i = non_zero(%x) : i64[1,?]\n"
                               "  %n = size(%i) : i64[]\n  %c = cast(%n) {to=f32} : f32[]\n"
                               "  %y = mul(%x, %c) : f32[N]\n  return %y\n}\n";
    static const float x[][4] = { { 1, 0, 0, 0 }, { 1, 1, 0, 0 }, { 1, 1, 1, 1 }, { 1, 0, 1, 0 } };
    g_autoptr(KilnProgram) program = compiled(text, NULL, 0);
    g_autoptr(GBytes) file = file_of(program);
    g_autoptr(KilnProgram) again = loaded(file);
    g_autoptr(KilnSession) session = session_for(again);
    GError *error = NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(x); i++) {
        bind_shaped(session, 0, x[i], DIMS(4));
        must(kiln_session_run(session, &error), error);
        const float *y = kiln_session_output(session, 0, NULL, &error);
        must(y != NULL, error);
        cr_expect_eq(y[0], x[i][0] + x[i][1] + x[i][2] + x[i][3], "run %zu: found %g", i, y[0]);
    }
}

Test(programs_open, values_that_decide_shapes_are_refused)
{
    GError *error = NULL;
    static const char text[] = "graph @f(%x: f32[N], %s: i64[1]) {\n"
                               "  %y = reshape(%x, %s) : f32[?]\n  return %y\n}\n";
    g_autofree char *path = g_build_filename(folder, "p", NULL);
    g_autoptr(KilnProgram) program = compiled(text, NULL, 0);
    cr_expect_not(kiln_program_save(program, path, &error));
    expect_error(
        &error, KILN_ERROR_USAGE,
        "cannot be saved: expected shapes that depend on no value of a run, found ones that "
        "depend on the value of input s");
    cr_expect_not(g_file_test(path, G_FILE_TEST_EXISTS));
}

Test(programs_open, ranks_that_are_open_are_refused)
{
    GError *error = NULL;
    g_autofree char *path = g_build_filename(folder, "p", NULL);
    g_autoptr(KilnProgram) program =
        compiled("graph @f(%x: f32[*]) {\n  %y = relu(%x) : f32[*]\n  return %y\n}\n", NULL, 0);
    cr_expect_not(kiln_program_save(program, path, &error));
    expect_error(&error, KILN_ERROR_UNSUPPORTED, "found one that is compiled for each shape: ");
    cr_expect_not(g_file_test(path, G_FILE_TEST_EXISTS));
}

static KilnSection *
find_section(Damaged *copy, KilnSectionKind kind)
{
    uint32_t i = 0;
    while (i < copy->header->n_sections && copy->sections[i].kind != kind)
        i++;
    cr_assert_lt(i, copy->header->n_sections, "no section of kind %d", kind);
    return &copy->sections[i];
}

Test(programs_open, nonsense_is_refused)
{
    GError *error = NULL;
    g_autoptr(KilnProgram) program = compiled(mixed, NULL, 0);
    g_autoptr(GBytes) file = file_of(program);
    Damaged copy = copy_of(file);
    KilnSection *section = find_section(&copy, KILN_SECTION_FORMS);
    KilnStoredForm *forms = (KilnStoredForm *)(copy.data + section->offset);
    const KilnStoredForm whole = forms[0];
    strcpy(forms[0].kernel, "cpu:another");
    sign(&copy);
    refuses(&copy, copy.size, KILN_ERROR_UNSUPPORTED, "expected kernel cpu:another as it was when");
    memset(forms[0].kernel, 'x', sizeof forms[0].kernel);
    sign(&copy);
    refuses(&copy, copy.size, KILN_ERROR_UNSUPPORTED, "as it was when");
    forms[0] = whole;
    forms[0].call = 1000;
    sign(&copy);
    refuses(&copy, copy.size, KILN_ERROR_INVALID, "expected a call below");
    forms[0] = whole;
    section->size--;
    sign(&copy);
    refuses(&copy, copy.size, KILN_ERROR_INVALID, "forms: expected a multiple of ");
    section->size++;
    for (uint32_t i = 1; i < copy.header->n_sections; i++) {
        KilnSection old = copy.sections[i];
        if (old.kind == KILN_SECTION_CONSTANT)
            continue; /* found by the run, which wants the values */
        copy.sections[i].index += 100;
        g_autoptr(KilnProgram) refused = load_signed(&copy, NULL);
        cr_expect(!refused, "section %u", i);
        copy.sections[i] = old;
    }
    /* The weights of another form: as many bytes as a kernel expects, or an error. */
    forms[0].fitted = 1;
    g_autoptr(KilnProgram) fitted = load_signed(&copy, &error);
    cr_assert(fitted);
    g_autoptr(KilnSession) session = session_for(fitted);
    cr_expect_not(run_at(session, 1, 1, &error) && run_at(session, 7, 5, &error));
    expect_error(&error, KILN_ERROR_INVALID, "packed weights: expected what");
    g_aligned_free(copy.data);
}

/* Whatever bytes the text and the forms have: an error, or a program that runs. */
Test(programs_open, random_damage_with_right_checksums)
{
    g_autoptr(KilnProgram) program = compiled(mixed, NULL, 0);
    g_autoptr(GBytes) file = file_of(program);
    Damaged copy = copy_of(file);
    uint64_t seed = 1;
    int n_refused = 0, n = 1500;
    for (int i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const KilnSection *section = &copy.sections[(seed >> 56) % 2];
        char *byte = copy.data + section->offset + (seed >> 20) % section->size;
        char old = *byte;
        *byte = (char)(seed >> 40);
        GError *error = NULL;
        g_autoptr(KilnProgram) damaged = load_signed(&copy, &error);
        cr_assert(!damaged == (error != NULL));
        n_refused += !damaged;
        g_clear_error(&error);
        if (damaged && kiln_program_n_inputs(damaged) == 2) {
            g_autoptr(KilnSession) session = session_for(damaged);
            for (size_t k = 0; k < G_N_ELEMENTS(shapes); k++)
                run_at(session, shapes[k][0], shapes[k][1], NULL);
        }
        *byte = old;
    }
    cr_expect_gt(n_refused, n / 4);
    g_aligned_free(copy.data);
}
