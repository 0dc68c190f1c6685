/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of a program: folded while compiling, at the first run, or read from disk; what the
 * cache holds of them. Names are those of the checklist in docs/constants.md. */
#include "runtime/bind.h"
#include "runtime/program.h"
#include "tests/unit/runtime_case.h"

#include "graph/base/alloc.h"
#include "graph/tensor.h"
#include "kiln.h"
#include "runtime/constant_cache.h"
#include "runtime/digest/digest.h"
#include "tests/fold_case.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static float x[MLP_WIDTH], w1[MLP_WEIGHT], w2[MLP_WEIGHT];

static void
fill_all(void)
{
    mlp_fill(x, MLP_WIDTH, 1);
    mlp_fill(w1, MLP_WEIGHT, 2);
    mlp_fill(w2, MLP_WEIGHT, 3);
}

TestSuite(constants, .init = fill_all);

/* How a program of the example is to be made. */
typedef struct {
    const char *text;
    const char *target;
    KilnConstantCache *cache;
    const char *directory;
    bool late; /* %w1 comes with the first run too */
} Mlp;

static KilnProgram *
compile(const Mlp *mlp)
{
    g_autoptr(GBytes) value = g_bytes_new_static(w1, sizeof w1);
    const KilnConstantInput constants[] = {
        { "w1", KILN_CONSTANT_COMPILE, mlp->late ? NULL : value },
        { "w2", KILN_CONSTANT_RUN, NULL },
    };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = 1;
    options.target = mlp->target;
    options.constants = constants;
    options.n_constants = G_N_ELEMENTS(constants);
    options.cache = mlp->cache;
    options.cache_dir = mlp->directory;
    return program_of(mlp->text, &options);
}

static KilnSession *
open_session(const Mlp *mlp, KilnProgram *program)
{
    GError *error = NULL;
    KilnSession *session = kiln_session_new(program, NULL, &error);
    cr_assert(session, "%s", error ? error->message : "");
    bind(session, 0, x, sizeof x);
    if (mlp->late)
        bind(session, 1, w1, sizeof w1);
    bind(session, 2, w2, sizeof w2);
    return session;
}

static void
run_to(KilnSession *session, float out[MLP_WIDTH])
{
    GError *error = NULL;
    must(kiln_session_run(session, &error), error);
    memcpy(out, kiln_session_output(session, 0, NULL, NULL), MLP_WIDTH * sizeof *out);
}

/* What the unfolded program gives for the present weights. */
static void
reference(const char *target, float out[MLP_WIDTH])
{
    const Mlp plain = { .text = mlp_plain, .target = target, .late = true };
    g_autoptr(KilnProgram) program = compile(&plain);
    g_autoptr(KilnSession) session = open_session(&plain, program);
    run_to(session, out);
}

static void
expect_reference(KilnSession *session, const char *target)
{
    float want[MLP_WIDTH], got[MLP_WIDTH];
    run_to(session, got);
    reference(target, want);
    cr_expect_arr_eq(got, want, sizeof want);
}

static KilnConstantCacheStats
stats_of(KilnConstantCache *cache)
{
    KilnConstantCacheStats stats = KILN_CONSTANT_CACHE_STATS_INIT;
    kiln_constant_cache_stats(cache, &stats, NULL);
    return stats;
}

/* --- the two forms --- */

Test(constants, CTF_32_first_run_folds_later_ones_do_not)
{
    static const char *const targets[] = { "ref", "cpu" }, *const texts[] = { mlp_two, mlp_three };
    for (int i = 0; i < 8; i++) {
        const Mlp mlp = { .text = texts[i & 1], .target = targets[i >> 1 & 1], .late = i >> 2 };
        g_autoptr(KilnProgram) program = compile(&mlp);
        cr_expect_eq(kiln_program_fold_runs(program), 0);
        g_autoptr(KilnSession) session = open_session(&mlp, program);
        for (int r = 0; r < 5; r++)
            expect_reference(session, mlp.target);
        cr_expect_eq(kiln_program_fold_runs(program), 1);
        uint64_t before = kiln_alloc_count();
        float out[MLP_WIDTH];
        run_to(session, out);
        cr_expect_eq(kiln_alloc_count(), before);
    }
}

Test(constants, CTF_02_value_given_to_compile_is_not_bound)
{
    GError *error = NULL;
    const Mlp mlp = { .text = mlp_three };
    g_autoptr(KilnProgram) program = compile(&mlp);
    g_autoptr(KilnSession) session = open_session(&mlp, program);
    cr_expect(!kiln_session_bind_input(session, 1, w1, sizeof w1, &error));
    expect_error(&error, KILN_ERROR_USAGE, "input w1: its value was set");
    cr_expect_eq(kiln_program_n_inputs(program), 3);
    cr_expect_str_eq(kiln_program_input(program, 2)->name, "w2");
}

Test(constants, CTF_02_marked_in_options_only)
{
    /* No fold functions: the value becomes a weight, the rest is bound at every run. */
    const Mlp mlp = { .text = mlp_plain };
    g_autoptr(KilnProgram) program = compile(&mlp);
    g_autoptr(KilnSession) session = open_session(&mlp, program);
    expect_reference(session, NULL);
}

Test(constants, CTF_03_value_of_a_run_constant_is_not_read_before_the_first_run)
{
    const Mlp mlp = { .text = mlp_two };
    size_t size = (sizeof w2 + 4095) / 4096 * 4096;
    void *page = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(page, MAP_FAILED);
    g_autoptr(KilnProgram) program = compile(&mlp);
    g_autoptr(KilnSession) session = open_session(&mlp, program);
    bind(session, 2, page, sizeof w2);
    cr_assert_eq(mprotect(page, size, PROT_READ | PROT_WRITE), 0);
    memcpy(page, w2, sizeof w2);
    expect_reference(session, NULL);
    munmap(page, size);
}

Test(constants, CTF_39_constant_result)
{
    static const char text[] = "graph @runtime_fold(%w: f32[2,2] constant=run) {\n"
                               "  %f = transpose(%w) {perm=[1,0]} : f32[2,2]\n"
                               "  return %f\n"
                               "}\n"
                               "graph @g(%x: f32[2,2], %f: f32[2,2]) {\n"
                               "  %y = add(%x, %f) : f32[2,2]\n"
                               "  return %f, %y\n"
                               "}\n"
                               "fold(%x: f32[2,2], %w: f32[2,2] constant=run) {\n"
                               "  %f = run @runtime_fold(%w)\n"
                               "}\n";
    const float zeros[4] = { 0 }, w[4] = { 1, 2, 3, 4 }, want[4] = { 1, 3, 2, 4 };
    g_autoptr(KilnSession) session = session_of(text);
    bind(session, 0, zeros, sizeof zeros);
    bind(session, 1, w, sizeof w);
    GError *error = NULL;
    for (int i = 0; i < 2; i++) {
        must(kiln_session_run(session, &error), error);
        cr_expect_arr_eq(kiln_session_output(session, 0, NULL, NULL), want, sizeof want);
        cr_expect_arr_eq(kiln_session_output(session, 1, NULL, NULL), want, sizeof want);
    }
}

Test(constants, CTF_41_open_shapes_fold_when_they_are_known)
{
    static const char text[] = "graph @runtime_fold(%w: f32[N,2] constant=run) {\n"
                               "  %f = transpose(%w) {perm=[1,0]} : f32[2,N]\n"
                               "  return %f\n"
                               "}\n"
                               "graph @g(%x: f32[2,N], %f: f32[2,N]) {\n"
                               "  %y = add(%x, %f) : f32[2,N]\n"
                               "  return %y\n"
                               "}\n"
                               "fold(%x: f32[2,N], %w: f32[N,2] constant=run) {\n"
                               "  %f = run @runtime_fold(%w)\n"
                               "}\n";
    const float zeros[6] = { 0 }, w[6] = { 1, 2, 3, 4, 5, 6 };
    const float want2[4] = { 1, 3, 2, 4 }, want3[6] = { 1, 3, 5, 2, 4, 6 };
    GError *error = NULL;
    g_autoptr(KilnProgram) program = program_of(text, NULL);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    for (int i = 0; i < 4; i++) {
        int64_t n = i % 2 ? 3 : 2;
        bind_shaped(session, 0, zeros, DIMS(2, n));
        bind_shaped(session, 1, w, DIMS(n, 2));
        must(kiln_session_run(session, &error), error);
        cr_expect_arr_eq(kiln_session_output(session, 0, NULL, NULL), n == 3 ? want3 : want2,
                         (size_t)n * 2 * sizeof *w);
    }
    /* One program has what was computed for either number. */
    cr_expect_eq(kiln_program_fold_runs(program), 2);
    cr_expect_eq(program->specialisations->len, 0);
    cr_expect_eq(program->templates->len, 1);
}

/* Constants are computed again for other numbers of the names that they depend on, and for other
 * bytes. */
Test(constants, CTF_41_constants_follow_the_names_that_they_have)
{
    static const char text[] = "graph @runtime_fold(%w: f32[N] constant=run) {\n"
                               "  %e = floor(%w) : f32[N]\n"
                               "  return %e\n"
                               "}\n"
                               "graph @f(%x: f32[M,N], %e: f32[N]) {\n"
                               "  %y = mul(%x, %e) : f32[M,N]\n"
                               "  return %y\n"
                               "}\n"
                               "fold(%x: f32[M,N], %w: f32[N] constant=run) {\n"
                               "  %e = run @runtime_fold(%w)\n"
                               "}\n";
    static const struct {
        int64_t m, n;
        unsigned long long runs;
    } steps[] = { { 2, 4, 1 },  { 7, 4, 1 }, { 1, 4, 1 }, { 1, 5, 2 },
                  { 16, 5, 2 }, { 2, 4, 2 }, { 0, 5, 2 }, { 2, 5, 2 } };
    GError *error = NULL;
    float left[16 * 5], right[5] = { 1, -2, 3, 4, -5 };
    for (size_t i = 0; i < G_N_ELEMENTS(left); i++)
        left[i] = (float)(i % 13) - 6;
    g_autoptr(KilnProgram) program = program_of(text, NULL);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    for (size_t s = 0; s < G_N_ELEMENTS(steps); s++) {
        int64_t m = steps[s].m, n = steps[s].n;
        bind_shaped(session, 0, left, DIMS(m, n));
        bind_shaped(session, 1, right, DIMS(n));
        must(kiln_session_run(session, &error), error);
        const float *y = kiln_session_output(session, 0, NULL, NULL);
        for (int64_t i = 0; i < m * n; i++)
            cr_expect_eq(y[i], left[i] * right[i % n], "step %zu, element %d", s, (int)i);
        cr_expect_eq(kiln_program_fold_runs(program), steps[s].runs, "step %zu", s);
    }
    right[0] = 9;
    kiln_program_invalidate_constants(program);
    must(kiln_session_run(session, &error), error);
    cr_expect_eq(kiln_program_fold_runs(program), 3);
    cr_expect_eq(program->specialisations->len, 0);
    cr_expect_eq(program->templates->len, 2); /* one for dims of 0 */
}

Test(constants, CTF_12_run_fold_takes_what_the_compile_fold_made)
{
    static const char text[] =
        "graph @compiletime_fold(%w1: f32[2,2] constant=compile) {\n"
        "  %p = transpose(%w1) {perm=[1,0]} : f32[2,2]\n"
        "  return %p\n"
        "}\n"
        "graph @runtime_fold(%w2: f32[2,2] constant=run, %p: f32[2,2]) {\n"
        "  %f = add(%p, %w2) : f32[2,2]\n"
        "  return %f\n"
        "}\n"
        "graph @g(%x: f32[2,2], %f: f32[2,2]) {\n"
        "  %y = mul(%x, %f) : f32[2,2]\n"
        "  return %y\n"
        "}\n"
        "fold(%x: f32[2,2], %w1: f32[2,2] constant=compile, %w2: f32[2,2] constant=run) {\n"
        "  %p = compile @compiletime_fold(%w1)\n"
        "  %f = run @runtime_fold(%w2, %p)\n"
        "}\n";
    const float ones[4] = { 1, 1, 1, 1 }, a[4] = { 1, 2, 3, 4 }, b[4] = { 10, 20, 30, 40 };
    const float want[4] = { 11, 23, 32, 44 };
    g_autoptr(GBytes) value = g_bytes_new_static(a, sizeof a);
    const KilnConstantInput constant = { "w1", KILN_CONSTANT_COMPILE, value };
    for (int late = 0; late < 2; late++) {
        GError *error = NULL;
        KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
        options.constants = &constant;
        options.n_constants = !late;
        g_autoptr(KilnProgram) program = program_of(text, &options);
        g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
        bind(session, 0, ones, sizeof ones);
        if (late)
            bind(session, 1, a, sizeof a);
        bind(session, 2, b, sizeof b);
        must(kiln_session_run(session, &error), error);
        cr_expect_arr_eq(kiln_session_output(session, 0, NULL, NULL), want, sizeof want);
        cr_expect_eq(kiln_program_fold_runs(program), 1);
    }
}

/* --- wrong use --- */

static void
expect_compile_error(const KilnConstantInput *constants, unsigned n, KilnError code,
                     const char *message)
{
    GError *error = NULL;
    g_autoptr(KilnModel) model = model_of(mlp_plain);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.constants = constants;
    options.n_constants = n;
    cr_expect_null(kiln_program_compile(model, &options, &error));
    expect_error(&error, code, message);
}

Test(constants, wrong_options)
{
    g_autoptr(GBytes) small = g_bytes_new_static(w1, 8);
    const KilnConstantInput unknown = { "nobody", KILN_CONSTANT_RUN, NULL };
    const KilnConstantInput wrong_when = { "w1", (KilnConstantWhen)7, NULL };
    const KilnConstantInput wrong_size = { "w1", KILN_CONSTANT_COMPILE, small };
    const KilnConstantInput twice[] = { { "w1", KILN_CONSTANT_RUN, NULL },
                                        { "w1", KILN_CONSTANT_RUN, NULL } };
    expect_compile_error(&unknown, 1, KILN_ERROR_USAGE, "the model has no input nobody");
    expect_compile_error(&wrong_when, 1, KILN_ERROR_USAGE, "expected when 0 or 1, found 7");
    expect_compile_error(&wrong_size, 1, KILN_ERROR_SHAPE, "expected 1024 bytes, found 8");
    expect_compile_error(twice, 2, KILN_ERROR_USAGE, "stated twice");
}

/* At the second level nothing but the binding sees functions and the fold block together. */
static void
expect_fold_error(const char *calls, const char *message)
{
    GError *error = NULL;
    g_autofree char *text =
        g_strdup_printf("func @fold {\n  input @w : f32[2,2]\n  output @f : f32[2,2]\n"
                        "  transpose @out @f, @in @w {perm=[1,0]}\n}\n"
                        "func @g {\n  input @x : f32[2,2]\n  input @f : f32[2,2]\n"
                        "  output @y : f32[2,2]\n  add @out @y, @in @x, @in @f\n}\n%s",
                        calls);
    g_autoptr(KilnModel) model = model_of(text);
    g_autoptr(KilnProgram) program = kiln_program_compile(model, NULL, &error);
    cr_expect_eq(!program, message != NULL, "%s", error ? error->message : calls);
    if (message)
        expect_error(&error, KILN_ERROR_INVALID, message);
}

Test(constants, fold_blocks_that_do_not_fit_the_second_level)
{
    expect_fold_error("fold(%x: f32[2,2], %w: f32[2,2]) { %f = run @fold(%w) }", NULL);
    expect_fold_error("fold(%x: f32[2,2], %w: f32[2,3]) { %f = run @fold(%w) }",
                      "@fold: input @w: expected f32[2,2], found f32[2,3]");
    expect_fold_error("fold(%x: f32[9,2], %w: f32[2,2]) { %f = run @fold(%w) }",
                      "@g: input @x: expected f32[2,2], found f32[9,2]");
    expect_fold_error("fold(%x: f32[2,2], %w: f32[2,2]) { %f = run @nobody(%w) }",
                      "expected a function @nobody with 1 outputs, found none");
    expect_fold_error("fold(%x: f32[2,2], %w: f32[2,2]) { %f, %g = run @fold(%w) }",
                      "expected a function @fold with 2 outputs, found another number of them");
    expect_fold_error("fold(%x: f32[2,2], %w: f32[2,2]) { %f = run @fold(%w, %x) }",
                      "@fold: expected 2 inputs, found 1");
}

Test(constants, wrong_directory)
{
    GError *error = NULL;
    g_autoptr(KilnModel) model = model_of(mlp_two);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.cache_dir = DIGITS "/below-a-file";
    cr_expect_null(kiln_program_compile(model, &options, &error));
    expect_error(&error, KILN_ERROR_IO, "cannot be made");
}

/* --- the cache --- */

Test(constants, CTF_30_index_to_buffer_shape_strides)
{
    g_autoptr(KilnConstantCache) cache = kiln_constant_cache_new(-1);
    const Mlp mlp = { .text = mlp_two, .target = "ref", .cache = cache }; /* which packs nothing */
    g_autoptr(KilnProgram) program = compile(&mlp);
    g_autoptr(KilnSession) session = open_session(&mlp, program);
    float out[MLP_WIDTH];
    run_to(session, out);
    const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
    const KilnCacheEntry *entry = made->folder->latest;
    cr_assert_eq(entry->n_buffers, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const KilnCachedBuffer *buffer = &entry->buffers[i];
        cr_expect_eq(buffer->index, i + 1);
        cr_expect_eq(buffer->type.rank, 2);
        cr_expect(buffer->type.dims[0] == MLP_WIDTH && buffer->type.dims[1] == MLP_WIDTH);
        cr_expect(buffer->strides[0] == MLP_WIDTH && buffer->strides[1] == 1);
        cr_expect_eq(g_bytes_get_size(buffer->bytes), sizeof w1);
        cr_expect_eq((uintptr_t)g_bytes_get_data(buffer->bytes, NULL) % KILN_ALIGNMENT, 0);
    }
    cr_expect_eq(stats_of(cache).bytes, 3 * (int64_t)sizeof w1);
}

static gboolean
make_one(void *data, KilnCacheFilled *out, GError **error)
{
    KilnType type = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ 4 });
    out[0].tensor = kiln_tensor_new_copy(&type, data, error);
    return out[0].tensor != NULL;
}

Test(constants, CTF_31_indexes_are_never_given_twice)
{
    GError *error = NULL;
    float data[2][4] = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } };
    g_autoptr(KilnConstantCache) cache = kiln_constant_cache_new(-1);
    KilnCacheEntry *entries[2];
    for (int i = 0; i < 2; i++) {
        KilnDigest key = kiln_digest(data[i], sizeof data[i]);
        entries[i] = kiln_constant_cache_acquire(cache, &key, 1, make_one, data[i], &error);
        cr_assert(entries[i]);
    }
    cr_expect_eq(entries[0]->buffers[0].index, 1);
    cr_expect_eq(entries[1]->buffers[0].index, 2);
    cr_expect_arr_eq(g_bytes_get_data(entries[0]->buffers[0].bytes, NULL), data[0], 16);
    cr_expect_arr_eq(g_bytes_get_data(entries[1]->buffers[0].bytes, NULL), data[1], 16);
    for (int i = 0; i < 2; i++) {
        kiln_cache_entry_unpin(entries[i]);
        kiln_cache_entry_unref(entries[i]);
    }
    /* Also not after the first ones are gone. */
    KilnDigest key = kiln_digest(data[0], sizeof data[0]);
    entries[0] = kiln_constant_cache_acquire(cache, &key, 1, make_one, data[0], &error);
    cr_expect_eq(entries[0]->buffers[0].index, 3);
    kiln_cache_entry_unpin(entries[0]);
    kiln_cache_entry_unref(entries[0]);
}

Test(constants, CTF_35_evicted_between_runs_and_filled_again)
{
    g_autoptr(KilnConstantCache) cache = kiln_constant_cache_new(-1);
    const Mlp mlp = { .text = mlp_two, .cache = cache };
    g_autoptr(KilnProgram) program = compile(&mlp);
    g_autoptr(KilnSession) session = open_session(&mlp, program);
    expect_reference(session, NULL);
    for (unsigned i = 1; i <= 3; i++) {
        kiln_constant_cache_set_capacity(cache, 0);
        cr_expect_eq(stats_of(cache).bytes, 0);
        cr_expect_eq(stats_of(cache).evictions, i);
        kiln_constant_cache_set_capacity(cache, -1);
        for (int r = 0; r < 3; r++)
            expect_reference(session, NULL);
        cr_expect_eq(kiln_program_fold_runs(program), i + 1);
    }
}

Test(constants, CTF_35_least_recently_used_goes_first)
{
    /* Room for two of three programs. */
    enum {
        SIZE = 3 * sizeof w1
    };
    g_autoptr(KilnConstantCache) cache = kiln_constant_cache_new(2 * SIZE);
    const Mlp mlp = { .text = mlp_two, .cache = cache };
    g_autoptr(KilnProgram) program = compile(&mlp);
    KilnSession *sessions[3];
    static float weights[3][MLP_WEIGHT];
    float out[MLP_WIDTH];
    for (unsigned i = 0; i < 3; i++) {
        mlp_fill(weights[i], MLP_WEIGHT, 10 + i);
        sessions[i] = open_session(&mlp, program);
        bind(sessions[i], 2, weights[i], sizeof weights[i]);
    }
    run_to(sessions[0], out);
    run_to(sessions[1], out);
    run_to(sessions[2], out); /* 0 goes */
    cr_expect_eq(stats_of(cache).bytes, 2 * SIZE);
    cr_expect_eq(kiln_program_fold_runs(program), 3);
    run_to(sessions[1], out);
    run_to(sessions[2], out);
    cr_expect_eq(kiln_program_fold_runs(program), 3);
    run_to(sessions[0], out); /* one of the others goes */
    cr_expect_eq(kiln_program_fold_runs(program), 4);
    cr_expect_eq(stats_of(cache).bytes, 2 * SIZE);
    for (int i = 0; i < 3; i++)
        kiln_session_free(sessions[i]);
}

Test(constants, CTF_36_failure_is_reported_and_made_good)
{
    g_autoptr(KilnConstantCache) cache = kiln_constant_cache_new(-1);
    const Mlp mlp = { .text = mlp_three, .cache = cache };
    g_autoptr(KilnProgram) program = compile(&mlp);
    g_autoptr(KilnSession) session = open_session(&mlp, program);
    GError *error = NULL;
    kiln_alloc_inject_failure(1);
    cr_expect(!kiln_session_run(session, &error));
    kiln_alloc_inject_failure(0);
    expect_error(&error, KILN_ERROR_MEMORY, "@runtime_fold: ");
    cr_expect_null(kiln_session_output(session, 0, NULL, NULL));
    cr_expect_eq(stats_of(cache).failures, 1);
    cr_expect_eq(stats_of(cache).entries, 0);
    expect_reference(session, NULL);
    cr_expect_eq(kiln_program_fold_runs(program), 1);
}

Test(constants, CTF_37_same_address_other_content)
{
    const Mlp mlp = { .text = mlp_two };
    g_autoptr(KilnProgram) program = compile(&mlp);
    g_autoptr(KilnSession) session = open_session(&mlp, program);
    expect_reference(session, NULL);
    /* Declared invalid. */
    mlp_fill(w2, MLP_WEIGHT, 20);
    kiln_program_invalidate_constants(program);
    float out[MLP_WIDTH], want[MLP_WIDTH];
    run_to(session, out);
    reference(NULL, want);
    cr_expect_arr_eq(out, want, sizeof want);
    cr_expect_eq(kiln_program_fold_runs(program), 2);
    /* Bound again: memory that was freed and given out once more. */
    mlp_fill(w2, MLP_WEIGHT, 21);
    bind(session, 2, w2, sizeof w2);
    run_to(session, out);
    reference(NULL, want);
    cr_expect_arr_eq(out, want, sizeof want);
    /* Unchanged: found by its content. */
    kiln_program_invalidate_constants(program);
    run_to(session, out);
    cr_expect_arr_eq(out, want, sizeof want);
}

Test(constants, CTF_38_no_capacity_same_results)
{
    g_autoptr(KilnConstantCache) cache = kiln_constant_cache_new(0);
    const Mlp mlp = { .text = mlp_two, .cache = cache };
    g_autoptr(KilnProgram) program = compile(&mlp);
    g_autoptr(KilnSession) session = open_session(&mlp, program);
    for (unsigned i = 1; i <= 3; i++) {
        expect_reference(session, NULL);
        cr_expect_eq(stats_of(cache).bytes, 0);
        cr_expect_eq(kiln_program_fold_runs(program), i);
    }
}

Test(constants, CTF_42_each_session_has_its_own_weights)
{
    static float others[MLP_WEIGHT];
    mlp_fill(others, MLP_WEIGHT, 30);
    const Mlp mlp = { .text = mlp_three };
    g_autoptr(KilnProgram) program = compile(&mlp);
    g_autoptr(KilnSession) a = open_session(&mlp, program);
    g_autoptr(KilnSession) b = open_session(&mlp, program);
    bind(b, 2, others, sizeof others);
    float first[MLP_WIDTH], second[MLP_WIDTH];
    for (int i = 0; i < 3; i++) {
        expect_reference(a, NULL);
        run_to(b, i ? second : first);
    }
    cr_expect_arr_eq(first, second, sizeof first);
    run_to(a, second);
    cr_expect_arr_neq(first, second, sizeof first);
    cr_expect_eq(kiln_program_fold_runs(program), 2);
}

Test(constants, one_model_two_programs_one_copy)
{
    GError *error = NULL;
    g_autoptr(KilnModel) model = kiln_model_load(DIGITS, &error);
    g_autoptr(KilnProgram) first = kiln_program_compile(model, NULL, &error);
    KilnConstantCacheStats before = stats_of(model->cache);
    cr_expect_gt(before.weight_bytes, 0);
    g_autoptr(KilnProgram) second = kiln_program_compile(model, NULL, &error);
    KilnConstantCacheStats after = stats_of(model->cache);
    cr_expect_eq(after.weight_bytes, before.weight_bytes);
    cr_expect_gt(after.shared_weights, before.shared_weights);
    g_clear_pointer(&first, kiln_program_unref);
    cr_expect_eq(stats_of(model->cache).weight_bytes, before.weight_bytes);
    g_clear_pointer(&second, kiln_program_unref);
    cr_expect_eq(stats_of(model->cache).weight_bytes, 0);
}

Test(constants, programs_of_one_cache_fold_once)
{
    g_autoptr(KilnConstantCache) cache = kiln_constant_cache_new(-1);
    const Mlp mlp = { .text = mlp_two, .cache = cache };
    g_autoptr(KilnProgram) a = compile(&mlp);
    g_autoptr(KilnProgram) b = compile(&mlp);
    g_autoptr(KilnSession) of_a = open_session(&mlp, a);
    g_autoptr(KilnSession) of_b = open_session(&mlp, b);
    expect_reference(of_a, NULL);
    expect_reference(of_b, NULL);
    cr_expect_eq(kiln_program_fold_runs(a) + kiln_program_fold_runs(b), 1);
    cr_expect_eq(stats_of(cache).entries, 1);
}

/* --- on disk --- */

static char *
only_file(const char *directory)
{
    g_autoptr(GDir) dir = g_dir_open(directory, 0, NULL);
    const char *name = g_dir_read_name(dir);
    char *path = name ? g_build_filename(directory, name, NULL) : NULL;
    cr_assert(path && !g_dir_read_name(dir), "%s: expected one file", directory);
    return path;
}

/* Runs the two-function form once in a program of its own. */
static void
run_with(const char *directory, unsigned fold_runs)
{
    const Mlp mlp = { .text = mlp_two, .directory = directory };
    g_autoptr(KilnProgram) program = compile(&mlp);
    g_autoptr(KilnSession) session = open_session(&mlp, program);
    expect_reference(session, NULL);
    cr_expect_eq(kiln_program_fold_runs(program), fold_runs);
}

Test(constants, on_disk_from_one_process_to_the_next)
{
    g_autofree char *directory = g_dir_make_tmp("kiln-constants-XXXXXX", NULL);
    run_with(directory, 1);
    g_autofree char *path = only_file(directory);
    run_with(directory, 0);
    unlink(path);
    run_with(directory, 1);
    unlink(path);
    rmdir(directory);
}

Test(constants, on_disk_damage_is_found_and_mended)
{
    g_autofree char *directory = g_dir_make_tmp("kiln-constants-XXXXXX", NULL);
    run_with(directory, 1);
    g_autofree char *path = only_file(directory), *whole = NULL;
    gsize length;
    cr_assert(g_file_get_contents(path, &whole, &length, NULL));
    /* A bit anywhere in the header or the payloads; the paddings between them say nothing. */
    const gsize places[] = { 0, 8, 12, 16, 32, 48, 56, 4096, 4096 + sizeof w1 - 1, length - 4096 };
    for (gsize i = 0; i < G_N_ELEMENTS(places); i++) {
        whole[places[i]] ^= 4;
        cr_assert(g_file_set_contents(path, whole, (gssize)length, NULL));
        run_with(directory, 1);
        whole[places[i]] ^= 4;
        run_with(directory, 0);
    }
    /* Cut anywhere; another file altogether; a folder in its place. */
    for (gsize cut = 0; cut < length - 4096; cut += 1000) {
        cr_assert(g_file_set_contents(path, whole, (gssize)cut, NULL));
        run_with(directory, 1);
    }
    cr_assert(g_file_set_contents(path, mlp_two, -1, NULL));
    run_with(directory, 1);
    run_with(directory, 0);
    unlink(path);
    cr_assert_eq(g_mkdir(path, 0700), 0);
    run_with(directory, 1);
    rmdir(path);
    rmdir(directory);
}

Test(constants, on_disk_compile_time_results)
{
    g_autofree char *directory = g_dir_make_tmp("kiln-constants-XXXXXX", NULL);
    const Mlp mlp = { .text = mlp_three, .directory = directory };
    for (int i = 0; i < 2; i++) {
        g_autoptr(KilnProgram) program = compile(&mlp);
        g_autoptr(KilnSession) session = open_session(&mlp, program);
        expect_reference(session, NULL);
        cr_expect_eq(kiln_program_fold_runs(program), i ? 0 : 1);
    }
    mlp_remove_folder(directory);
}
