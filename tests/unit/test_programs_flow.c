/* SPDX-License-Identifier: Apache-2.0 */
/* Programs with branches and loops on disk: what their bodies pack lies in the file. */
#include "kiln.h"
#include "runtime/bind.h"
#include "runtime/flow/bodies.h"
#include "runtime/program.h"
#include "runtime/program_file.h"
#include "runtime/tensors/file.h"
#include "tests/unit/program_damage.h"
#include "tests/unit/runtime_case.h"

#include <criterion/criterion.h>
#include <glib/gstdio.h>

/* A product and a convolution in a loop, a product in a branch of it, and one around it with the
 * same weight. A bias is read as it is. */
static const char nested[] =
    "graph @f(%x: f32[24,24], %p: f32[1,8,9,9], %n: i64[]) {\n"
    "  %w = const @w : f32[24,24]\n  %zero = const @zero : f32[]\n"
    "  %y, %q = loop(%n, _, %x, %p) body(%i: i64[], %go: bool[], %a: f32[24,24], %c: "
    "f32[1,8,9,9]) {\n"
    "    %k = const @k : f32[8,8,3,3]\n    %b = const @b : f32[24]\n"
    "    %m = matmul(%a, %w) : f32[24,24]\n    %t = add(%m, %b) : f32[24,24]\n"
    "    %d = conv(%c, %k) {pads=[1,1,1,1]} : f32[1,8,9,9]\n    %e = tanh(%d) : f32[1,8,9,9]\n"
    "    %sum = reduce_sum(%t) {keepdims=false} : f32[]\n    %high = greater(%sum, %zero) : "
    "bool[]\n"
    "    %r = if(%high) then {\n      %v = const @v : f32[24,24]\n"
    "      %s = matmul(%t, %v) : f32[24,24]\n      return %s\n"
    "    } else {\n      %u = sigmoid(%t) : f32[24,24]\n      return %u\n    } : f32[24,24]\n"
    "    return %go, %r, %e\n"
    "  } : f32[24,24], f32[1,8,9,9]\n"
    "  %z = matmul(%y, %w) : f32[24,24]\n  return %z, %q\n}\n"
    "constants { @w = random_normal(seed=1, std=0.2) : f32[24,24]\n"
    "  @v = random_normal(seed=2, std=0.2) : f32[24,24]\n"
    "  @k = random_normal(seed=3, std=0.1) : f32[8,8,3,3]\n"
    "  @b = random_normal(seed=4, std=0.1) : f32[24]\n  @zero = splat(0) : f32[] }\n";

enum {
    ROWS = 24 * 24,
    PICTURE = 8 * 9 * 9,
};

static GBytes *
file_of(KilnProgram *program)
{
    GError *error = NULL;
    g_autofree char *path = NULL;
    int file = g_file_open_tmp("kiln-flow-XXXXXX", &path, &error);
    must(file >= 0, error);
    must(g_close(file, &error), error);
    must(kiln_program_save(program, path, &error), error);
    g_autoptr(GBytes) map = kiln_file_map(path, NULL);
    GBytes *copy = g_bytes_new(g_bytes_get_data(map, NULL), g_bytes_get_size(map));
    g_unlink(path);
    return copy;
}

static KilnProgram *
compiled(gboolean prefer_memory)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = 1;
    options.prefer_memory = prefer_memory;
    return program_of(nested, &options);
}

static KilnProgram *
loaded(GBytes *file)
{
    GError *error = NULL;
    KilnProgram *program = kiln_program_load_bytes(file, "file", NULL, &error);
    must(program != NULL, error);
    return program;
}

static KilnSession *
run_of(KilnProgram *program)
{
    static float x[ROWS], p[PICTURE];
    const int64_t n = 4;
    KilnSession *session = kiln_session_new(program, NULL, NULL);
    for (int i = 0; i < ROWS; i++)
        x[i] = (float)(i * 37 % 101) / 50 - 1;
    for (int i = 0; i < PICTURE; i++)
        p[i] = (float)(i * 41 % 103) / 50 - 1;
    bind(session, 0, x, sizeof x);
    bind(session, 1, p, sizeof p);
    bind(session, 2, &n, sizeof n);
    run(session);
    return session;
}

/* Packed weights of @made and of its bodies, and how many of them lie in @file. */
static void
count(const KilnSpecialisation *made, GBytes *file, unsigned *packed, unsigned *inside)
{
    size_t size;
    const char *start = g_bytes_get_data(file, &size);
    for (uint32_t c = 0; c < made->n_calls; c++) {
        GBytes *bytes = made->calls[c].packed;
        const char *data = bytes ? g_bytes_get_data(bytes, NULL) : NULL;
        *packed += data != NULL;
        *inside += data && data >= start && data < start + size;
    }
    for (guint i = 0; made->bodies && i < made->bodies->len; i++)
        count(((const KilnBody *)g_ptr_array_index(made->bodies, i))->made, file, packed, inside);
}

/* A program reads a file in place only if it is aligned. */
static GBytes *
aligned(GBytes *file)
{
    Damaged copy = copy_of(file);
    return g_bytes_new_with_free_func(copy.data, copy.size, g_aligned_free, copy.data);
}

Test(programs_flow, weights_of_bodies_lie_packed_in_the_file)
{
    for (int frugal = 0; frugal < 2; frugal++) {
        g_autoptr(KilnProgram) program = compiled(frugal);
        g_autoptr(GBytes) written = file_of(program);
        g_autoptr(GBytes) file = aligned(written);
        g_autoptr(KilnProgram) again = loaded(file);
        g_autoptr(KilnSession) first = run_of(program), second = run_of(again);
        unsigned packed = 0, inside = 0;
        count(g_ptr_array_index(again->specialisations, 0), file, &packed, &inside);
        cr_expect_geq(packed, 4);
        cr_expect_eq(inside, packed, "%u of %u", inside, packed);
        expect_same_outputs(first, second, 2);
        g_autoptr(GBytes) rewritten = file_of(again);
        cr_expect(g_bytes_equal(rewritten, file));
    }
}

static const KilnSection *
find(const Damaged *copy, KilnSectionKind kind, uint32_t index)
{
    for (uint32_t i = 0; i < copy->header->n_sections; i++) {
        if (copy->sections[i].kind == (uint32_t)kind && copy->sections[i].index == index)
            return &copy->sections[i];
    }
    return NULL;
}

static void
refuses_signed(Damaged *copy, KilnError code, const char *text)
{
    GError *error = NULL;
    g_autoptr(KilnProgram) program = load_signed(copy, &error);
    cr_assert_null(program, "expected the error '%s'", text);
    expect_error(&error, code, text);
}

/* The kernel of the process packs otherwise than the one that the file says. */
Test(programs_flow, weights_of_other_kernels_are_refused)
{
    g_autoptr(KilnProgram) program = compiled(FALSE);
    g_autoptr(GBytes) file = file_of(program);
    Damaged copy = copy_of(file);
    const KilnSection *section = find(&copy, KILN_SECTION_FORMS, 0);
    cr_assert(section);
    KilnStoredForm *forms = (KilnStoredForm *)(copy.data + section->offset);
    const KilnStoredForm before = forms[0];
    forms[0].kernel[0]++;
    refuses_signed(&copy, KILN_ERROR_UNSUPPORTED, "compile the model again");
    forms[0] = before;
    forms[0].form++;
    refuses_signed(&copy, KILN_ERROR_UNSUPPORTED, "compile the model again");
    forms[0] = before;
    forms[0].fitted = 7;
    refuses_signed(&copy, KILN_ERROR_UNSUPPORTED, "compile the model again");
    forms[0] = before;
    forms[0].call = UINT32_MAX; /* so nobody has its weights */
    refuses_signed(&copy, KILN_ERROR_INVALID, "forms: expected a call below");
    forms[0] = before;
    GError *error = NULL;
    g_autoptr(KilnProgram) whole = load_signed(&copy, &error);
    must(whole != NULL, error);
    g_clear_pointer(&whole, kiln_program_unref);
    g_aligned_free(copy.data);
}

Test(programs_flow, random_damage_with_right_checksums)
{
    g_autoptr(KilnProgram) program = compiled(FALSE);
    g_autoptr(GBytes) file = file_of(program);
    Damaged copy = copy_of(file);
    const KilnSection *section = find(&copy, KILN_SECTION_FORMS, 0);
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    for (int i = 0; i < 300; i++) {
        GError *error = NULL;
        char *byte = copy.data + section->offset + g_rand_int_range(rand, 0, (int)section->size);
        const char old = *byte;
        *byte ^= (char)(1 << g_rand_int_range(rand, 0, 8));
        g_autoptr(KilnProgram) other = load_signed(&copy, &error);
        cr_assert(!other == (error != NULL));
        g_clear_error(&error);
        *byte = old;
    }
    g_aligned_free(copy.data);
}
