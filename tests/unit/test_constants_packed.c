/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that are known when a program is compiled, or at its first run, are packed like those of
 * the model: docs/constants.md. */
#include "runtime/bind.h"
#include "runtime/program.h"
#include "tests/unit/runtime_case.h"

#include "graph/base/alloc.h"
#include "kiln.h"
#include "runtime/constant_cache.h"
#include "tests/fold_case.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum {
    CHANNELS = 64,
    SIDE = 14,
    X = CHANNELS * SIDE * SIDE,
    W = CHANNELS * CHANNELS * 9,
};

static float x[X], w[W];

static void
fill_all(void)
{
    mlp_fill(x, X, 1);
    mlp_fill(w, W, 2);
}

TestSuite(constants_packed, .init = fill_all);

/* How the weights of the convolution are given. */
typedef enum {
    WAY_LITERAL,
    WAY_COMPILE,
    WAY_LATE, /* could have been given to compile, and comes with the first run */
    WAY_RUN,
    WAY_INPUT,
    N_WAYS,
} Way;

static const char conv[] = "graph @g(%x: f32[1,64,14,14], %w: f32[64,64,3,3]) {\n"
                           "  %y = conv(%x, %w) {pads=[1,1,1,1]} : f32[1,64,14,14]\n"
                           "  return %y\n"
                           "}\n";

/* The same with the weights written into it. */
static char *
literal_text(void)
{
    g_autofree char *base64 = g_base64_encode((const guchar *)w, sizeof w);
    return g_strdup_printf("graph @g(%%x: f32[1,64,14,14]) {\n"
                           "  %%w = const @w : f32[64,64,3,3]\n"
                           "  %%y = conv(%%x, %%w) {pads=[1,1,1,1]} : f32[1,64,14,14]\n"
                           "  return %%y\n"
                           "}\n"
                           "constants { @w = base64(\"%s\") : f32[64,64,3,3] }\n",
                           base64);
}

typedef struct {
    Way way;
    const char *target;
    bool one_algorithm;
    KilnConstantCache *cache;
} Made;

static KilnProgram *
compile(const Made *made)
{
    g_autofree char *literal = made->way == WAY_LITERAL ? literal_text() : NULL;
    g_autoptr(GBytes) value = g_bytes_new(w, sizeof w);
    const KilnConstantInput constant = { "w",
                                         made->way == WAY_RUN ? KILN_CONSTANT_RUN
                                                              : KILN_CONSTANT_COMPILE,
                                         made->way == WAY_COMPILE ? value : NULL };
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = 1;
    options.target = made->target;
    options.no_offload = made->one_algorithm;
    options.cache = made->cache;
    options.constants = &constant;
    options.n_constants = made->way != WAY_LITERAL && made->way != WAY_INPUT;
    return program_of(literal ? literal : conv, &options);
}

static KilnSession *
open_session(KilnProgram *program)
{
    GError *error = NULL;
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.profile = true;
    KilnSession *session = kiln_session_new(program, &options, &error);
    cr_assert(session, "%s", error ? error->message : "");
    must(kiln_session_bind_input(session, 0, x, sizeof x, &error), error);
    if (kiln_program_n_inputs(program) > 1 && !program->values[1])
        must(kiln_session_bind_input(session, 1, w, sizeof w, &error), error);
    return session;
}

static const float *
result_of(KilnSession *session)
{
    GError *error = NULL;
    must(kiln_session_run(session, &error), error);
    return kiln_session_output(session, 0, NULL, NULL);
}

/* What a program gives that is made for this. */
static void
fresh(const Made *made, float out[X])
{
    Made alone = *made;
    alone.cache = NULL;
    g_autoptr(KilnProgram) program = compile(&alone);
    g_autoptr(KilnSession) session = open_session(program);
    memcpy(out, result_of(session), X * sizeof *out);
}

static const char *
kernel_of(KilnSession *session)
{
    unsigned n;
    const KilnProfileEntry *const *entries = kiln_session_profile(session, &n);
    cr_assert_eq(n, 1);
    return entries[0]->kernel;
}

Test(constants_packed, one_kernel_and_one_result_as_of_a_literal)
{
    for (int own = 0; own < 2; own++) {
        const Made literal = { .way = WAY_LITERAL, .one_algorithm = own };
        g_autoptr(KilnProgram) program = compile(&literal);
        g_autoptr(KilnSession) session = open_session(program);
        float want[X];
        memcpy(want, result_of(session), sizeof want);
        for (Way way = WAY_COMPILE; way <= WAY_RUN; way++) {
            const Made made = { .way = way, .one_algorithm = own };
            g_autoptr(KilnProgram) other = compile(&made);
            g_autoptr(KilnSession) of_other = open_session(other);
            cr_expect_arr_eq(result_of(of_other), want, sizeof want, "way %d", way);
            cr_expect_str_eq(kernel_of(of_other), kernel_of(session), "way %d", way);
            const KilnSpecialisation *a = g_ptr_array_index(program->specialisations, 0),
                                     *b = g_ptr_array_index(other->specialisations, 0);
            cr_expect_eq(a->calls[0].packed_bytes, b->calls[0].packed_bytes);
            cr_expect_gt(b->calls[0].packed_bytes, 0);
        }
    }
}

Test(constants_packed, one_algorithm_without_offload_in_every_way)
{
    float want[X], got[X];
    fresh(&(Made){ .way = WAY_INPUT, .one_algorithm = true }, want);
    for (Way way = 0; way < N_WAYS; way++) {
        fresh(&(Made){ .way = way, .one_algorithm = true }, got);
        cr_expect_arr_eq(got, want, sizeof want, "way %d", way);
    }
}

/* Where results are no numbers, they are none in the reference, and of the same kind. */
static void
expect_like_reference(const float *got, const char *what)
{
    float want[X];
    fresh(&(Made){ .way = WAY_INPUT, .target = "ref" }, want);
    for (int i = 0; i < X; i++) {
        bool same = isnan(want[i])   ? isnan(got[i])
                    : isinf(want[i]) ? got[i] == want[i]
                                     : fabsf(got[i] - want[i]) < 1e-3f;
        cr_assert(same, "%s: element %d: expected %g, found %g", what, i, want[i], got[i]);
    }
}

Test(constants_packed, weights_that_are_not_finite_stay_direct)
{
    static const float values[] = { NAN, INFINITY, -INFINITY };
    float got[X];
    for (size_t v = 0; v < G_N_ELEMENTS(values); v++) {
        w[9 * 5 + 4] = values[v];
        for (Way way = 0; way < N_WAYS; way++) {
            fresh(&(Made){ .way = way }, got);
            expect_like_reference(got, "fresh");
        }
    }
}

Test(constants_packed, each_entry_has_its_own_form)
{
    const Made made = { .way = WAY_RUN };
    g_autoptr(KilnProgram) program = compile(&made);
    g_autoptr(KilnSession) session = open_session(program);
    float want[X];
    fresh(&made, want);
    for (int i = 0; i < 3; i++) {
        cr_expect_arr_eq(result_of(session), want, sizeof want);
        float kept = w[7];
        w[7] = INFINITY;
        kiln_program_invalidate_constants(program);
        expect_like_reference(result_of(session), "after the change");
        w[7] = kept;
        kiln_program_invalidate_constants(program);
    }
}

Test(constants_packed, what_changed_is_packed_again)
{
    static float others[W];
    GError *error = NULL;
    const Made made = { .way = WAY_RUN };
    g_autoptr(KilnProgram) program = compile(&made);
    g_autoptr(KilnSession) session = open_session(program);
    float before[X], want[X];
    memcpy(before, result_of(session), sizeof before);
    /* In place: the next run looks again once it is told. */
    mlp_fill(w, W, 3);
    kiln_program_invalidate_constants(program);
    fresh(&made, want);
    cr_expect_arr_eq(result_of(session), want, sizeof want);
    cr_expect_arr_neq(want, before, sizeof want);
    /* Bound elsewhere. */
    mlp_fill(others, W, 2);
    must(kiln_session_bind_input(session, 1, others, sizeof others, &error), error);
    cr_expect_arr_eq(result_of(session), before, sizeof before);
}

Test(constants_packed, evicted_and_packed_again)
{
    g_autoptr(KilnConstantCache) cache = kiln_constant_cache_new(-1);
    const Made made = { .way = WAY_RUN, .cache = cache };
    g_autoptr(KilnProgram) program = compile(&made);
    g_autoptr(KilnSession) session = open_session(program);
    KilnConstantCacheStats stats = KILN_CONSTANT_CACHE_STATS_INIT;
    float want[X];
    memcpy(want, result_of(session), sizeof want);
    const KilnSpecialisation *specialisation = g_ptr_array_index(program->specialisations, 0);
    for (unsigned i = 1; i <= 3; i++) {
        kiln_constant_cache_stats(cache, &stats, NULL);
        cr_expect_eq(stats.bytes, (int64_t)specialisation->calls[0].packed_bytes);
        cr_expect_eq(stats.fills, i);
        kiln_constant_cache_set_capacity(cache, 0);
        kiln_constant_cache_stats(cache, &stats, NULL);
        cr_expect_eq(stats.bytes, 0);
        kiln_constant_cache_set_capacity(cache, i == 3 ? 0 : -1);
        cr_expect_arr_eq(result_of(session), want, sizeof want);
    }
}

Test(constants_packed, a_run_that_finds_nothing_changed_allocates_nothing)
{
    const Made made = { .way = WAY_RUN };
    g_autoptr(KilnProgram) program = compile(&made);
    g_autoptr(KilnSession) session = open_session(program);
    result_of(session);
    uint64_t before = kiln_alloc_count();
    result_of(session);
    cr_expect_eq(kiln_alloc_count(), before);
}

Test(constants_packed, sessions_with_equal_weights_share_what_is_packed)
{
    static float copy[W];
    GError *error = NULL;
    g_autoptr(KilnConstantCache) cache = kiln_constant_cache_new(-1);
    const Made made = { .way = WAY_RUN, .cache = cache };
    g_autoptr(KilnProgram) program = compile(&made);
    g_autoptr(KilnSession) a = open_session(program);
    g_autoptr(KilnSession) b = open_session(program);
    memcpy(copy, w, sizeof copy);
    must(kiln_session_bind_input(b, 1, copy, sizeof copy, &error), error);
    float want[X];
    memcpy(want, result_of(a), sizeof want);
    cr_expect_arr_eq(result_of(b), want, sizeof want);
    KilnConstantCacheStats stats = KILN_CONSTANT_CACHE_STATS_INIT;
    kiln_constant_cache_stats(cache, &stats, NULL);
    cr_expect_eq(stats.fills, 1);
    cr_expect_eq(stats.entries, 1);
}

Test(constants_packed, no_memory_for_them_is_reported_and_made_good)
{
    GError *error = NULL;
    const Made made = { .way = WAY_RUN };
    g_autoptr(KilnProgram) program = compile(&made);
    g_autoptr(KilnSession) session = open_session(program);
    kiln_alloc_inject_failure(1);
    cr_expect(!kiln_session_run(session, &error));
    kiln_alloc_inject_failure(0);
    expect_error(&error, KILN_ERROR_MEMORY, "y: packed weights: ");
    float want[X];
    fresh(&made, want);
    cr_expect_arr_eq(result_of(session), want, sizeof want);
}

static KilnProgram *
saved_and_loaded(KilnProgram *program)
{
    GError *error = NULL;
    g_autofree char *directory = g_dir_make_tmp("kiln-packed-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(directory, "p.kilnprog", NULL);
    must(kiln_program_save(program, path, &error), error);
    KilnProgram *loaded = kiln_program_load(path, NULL, &error);
    cr_assert(loaded, "%s", error ? error->message : "");
    unlink(path);
    rmdir(directory);
    return loaded;
}

Test(constants_packed, of_programs_that_were_saved)
{
    for (Way way = WAY_COMPILE; way <= WAY_RUN; way++) {
        const Made made = { .way = way };
        float want[X];
        g_autoptr(KilnProgram) program = compile(&made);
        g_autoptr(KilnSession) session = open_session(program);
        memcpy(want, result_of(session), sizeof want);
        g_autoptr(KilnProgram) loaded = saved_and_loaded(program);
        g_autoptr(KilnSession) again = open_session(loaded);
        cr_expect_arr_eq(result_of(again), want, sizeof want);
        cr_expect_str_eq(kernel_of(again), kernel_of(session));
        if (way == WAY_COMPILE)
            continue;
        w[100] = NAN;
        kiln_program_invalidate_constants(loaded);
        expect_like_reference(result_of(again), "loaded");
        w[100] = 0.5f;
    }
}

/* One operand of a packing is a literal, the other one comes with the first run; and what is folded
 * lies in the cache as it is packed, not as it is. */
Test(constants_packed, beside_literals_and_behind_fold_functions)
{
    static const char text[] = "graph @g(%x: f32[5,1,16], %w: f32[1,16,64] constant=run) {\n"
                               "  %t = neg(%w) : f32[1,16,64]\n"
                               "  %s = transpose(%t) {perm=[0,2,1]} : f32[1,64,16]\n"
                               "  %r = const @r : f32[1,64,16]\n"
                               "  %y, %h, %c = lstm(%x, %s, %r) {hidden_size=16} : "
                               "f32[5,1,1,16], f32[1,1,16], f32[1,1,16]\n"
                               "  return %y\n"
                               "}\n"
                               "constants { @r = random_normal(seed=5, std=0.3) : f32[1,64,16] }\n";
    static const char *const targets[] = { "ref", "cpu" };
    GError *error = NULL;
    float want[80];
    for (int t = 0; t < 2; t++) {
        KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
        options.target = targets[t];
        options.no_offload = true;
        g_autoptr(KilnProgram) program = program_of(text, &options);
        for (int loaded = 0; loaded < 2; loaded++) {
            g_autoptr(KilnProgram) it =
                loaded ? saved_and_loaded(program) : kiln_program_ref(program);
            g_autoptr(KilnSession) session = kiln_session_new(it, NULL, &error);
            must(kiln_session_bind_input(session, 0, x, 80 * sizeof *x, &error), error);
            must(kiln_session_bind_input(session, 1, w, 1024 * sizeof *w, &error), error);
            const float *got = result_of(session);
            if (t == 0)
                memcpy(want, got, sizeof want);
            for (int i = 0; i < 80; i++)
                cr_expect_float_eq(got[i], want[i], 1e-5f);
            const KilnSpecialisation *made = g_ptr_array_index(it->specialisations, 0);
            const KilnCacheEntry *entry = made->folder->latest;
            cr_expect_eq(entry->n_buffers, t ? 2 : 1);
            cr_expect_eq(g_bytes_get_size(entry->buffers[0].bytes), t ? 0 : 4096);
            cr_expect_eq(entry->buffers[0].type.dims[1], 64);
        }
    }
}

Test(constants_packed, what_lies_on_disk_is_packed_from_there)
{
    GError *error = NULL;
    g_autofree char *directory = g_dir_make_tmp("kiln-packed-XXXXXX", NULL);
    static const char text[] = "graph @g(%x: f32[4,64], %w: f32[64,64] constant=run) {\n"
                               "  %t = neg(%w) : f32[64,64]\n"
                               "  %y = matmul(%x, %t) : f32[4,64]\n"
                               "  return %y\n"
                               "}\n";
    float want[256];
    for (int i = 0; i < 2; i++) {
        KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
        options.cache_dir = directory;
        g_autoptr(KilnProgram) program = program_of(text, &options);
        g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
        must(kiln_session_bind_input(session, 0, x, sizeof want, &error), error);
        must(kiln_session_bind_input(session, 1, w, 4096 * sizeof *w, &error), error);
        const float *got = result_of(session);
        if (i == 0)
            memcpy(want, got, sizeof want);
        cr_expect_arr_eq(got, want, sizeof want);
        cr_expect_eq(kiln_program_fold_runs(program), i ? 0 : 1);
    }
    mlp_remove_folder(directory);
}

/* --- the second level --- */

Test(constants_packed, the_second_level_says_what_is_the_same_in_every_run)
{
    static const char text[] = "func @g {\n  input @x : f32[1,64,14,14]\n"
                               "  input @w : f32[64,64,3,3] const\n"
                               "  output @y : f32[1,64,14,14]\n"
                               "  conv @out @y, @in @x, @in @w {pads=[1,1,1,1]}\n}\n";
    GError *error = NULL;
    g_autoptr(KilnProgram) program = program_of(text, NULL);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    must(kiln_session_bind_input(session, 0, x, sizeof x, &error), error);
    must(kiln_session_bind_input(session, 1, w, sizeof w, &error), error);
    expect_like_reference(result_of(session), "ir");
    const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
    cr_expect_eq(made->calls[0].late, 1);
}

Test(constants_packed, an_input_may_not_be_written)
{
    static const char text[] = "func @g {\n  input @w : f32[2] const\n  output @y : f32[2]\n"
                               "  copy @out @w, @in @y\n}\n";
    GError *error = NULL;
    g_autoptr(GBytes) bytes = g_bytes_new_static(text, strlen(text));
    g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, "case.kiln", &error);
    cr_expect_null(model);
    expect_error(&error, KILN_ERROR_INVALID, "writes input @w");
}
