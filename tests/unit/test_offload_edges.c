/* SPDX-License-Identifier: Apache-2.0 */
/* What the vendor's kernels are not made for: numbers that are not finite, which its relu, clip,
 * maxima and softmax would lose, and values without elements, by which its costs would divide. */
#include "ir/compiled.h"
#include "ir/instr.h"
#include "kiln.h"
#include "runtime/bind.h"
#include "tests/unit/offload_case.h"
#include "tests/unit/runtime_case.h"

#include <math.h>
#include <string.h>

#define OFFLOAD "partition-offload{when=always,min-us=0},compile-offload"

// clang-format off
/* In front of the result, the weights. Capitals are extents. */
static const char *const graphs[][2] = {
    { "%c = conv(%x, %w) {pads=[1,1,1,1]} %y = relu(%c)", "[O,C,3,3]" },
    { "%c = conv(%x, %w) %l = const @lo : f32[] %h = const @hi : f32[] %y = clip(%c, %l, %h)", "[O,C,1,1]" },
    { "%c = conv(%x, %w) {group=16, pads=[1,1,1,1]} %y = relu(%c)", "[16,1,3,3]" },
    { "%c = conv(%x, %w) {pads=[1,1,1,1]} %a = add(%c, %x) %y = relu(%a)", "[C,C,3,3]" },
    { "%c = conv(%x, %w) {pads=[1,1,1,1]} %r = relu(%c) %a = add(%r, %x) %y = sigmoid(%a)", "[C,C,3,3]" },
    { "%c = conv(%x, %w) {pads=[1,1,1,1]} %l = leaky_relu(%c) {alpha=0.1} %y = max_pool(%l) {kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]}", "[O,C,3,3]" },
    { "%r = relu(%x) %c = conv(%r, %w) %y = global_max_pool(%c)", "[O,C,1,1]" },
    { "%c = conv_transpose(%x, %w, %b) %y = relu(%c)", "[C,O,2,2]" },
    { "%c = conv(%x, %w) %d = conv(%x, %w) {strides=[1,1]} %j = concat(%c, %d) {axis=1} %y = relu(%j)", "[O,C,1,1]" },
    { "%m = matmul(%x, %w) %y = relu(%m)", "[W,O]" },
    { "%m = matmul(%x, %w) %a = add(%m, %b) %l = const @lo : f32[] %h = const @hi : f32[] %y = clip(%a, %l, %h)", "[W,O]" },
    { "%m = matmul(%x, %w) %y = gelu(%m)", "[W,O]" },
    { "%m = matmul(%x, %w) %y = softmax(%m) {axis=-1}", "[W,O]" },
    { "%s = softmax(%x) {axis=-1} %y = tanh(%s)", "[O]" },
    { "%s = layer_normalization(%x, %w) {axis=-1} %y = relu(%s)", "[W]" },
    { "%y = average_pool(%x) {kernel_shape=[3,3], pads=[1,1,1,1]}", "[O]" },
};

/* Of three dims: what is reduced. */
static const char *const rows[] = {
    "%r = reduce_max(%x, %axes) %y = sigmoid(%r)", "%r = reduce_min(%x, %axes) %y = tanh(%r)",
    "%r = reduce_sum(%x, %axes) %y = relu(%r)", "%r = reduce_mean(%x, %axes) %y = sigmoid(%r)",
};
// clang-format on

typedef struct {
    int64_t extent[26]; /* per capital */
} Extents;

/* Capitals in lists of extents, and the ends of lines. */
static char *
filled(const char *text, const Extents *extents)
{
    g_autoptr(GString) out = g_string_new(NULL);
    for (const char *at = text; *at; at++) {
        if (at > text && *at >= 'A' && *at <= 'Z' && strchr("[,", at[-1]) && strchr(",]", at[1]))
            g_string_append_printf(out, "%" G_GINT64_FORMAT, extents->extent[*at - 'A']);
        else if (at > text && *at == '%' && at[-1] == ' ' && strchr("])})", at[-2]))
            g_string_append(out, "\n  %");
        else
            g_string_append_c(out, *at);
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}

static char *
graph_text(size_t i, const Extents *extents)
{
    bool windows = strstr(graphs[i][0], "conv") || strstr(graphs[i][0], "pool");
    g_autofree char *text =
        g_strdup_printf("graph @f(%%x: f32[%s,H,W]) {\n  %%w = const @w : f32%s\n"
                        "  %%b = const @b : f32[O]\n  %s\n  return %%y\n}\nconstants {\n"
                        "  @w = random_normal(seed=3, std=0.2) : f32%s\n"
                        "  @b = random_normal(seed=4, std=0.2) : f32[O]\n"
                        "  @lo = [-0.5] : f32[]\n  @hi = [0.5] : f32[]\n}\n",
                        windows ? "N,C" : "N", graphs[i][1], graphs[i][0], graphs[i][1]);
    return filled(text, extents);
}

static char *
rows_text(size_t i, const Extents *extents)
{
    g_autofree char *text =
        g_strdup_printf("graph @f(%%x: f32[N,H,W]) {\n  %%axes = const @axes : i64[1]\n  %s\n"
                        "  return %%y\n}\nconstants {\n  @axes = [2] : i64[1]\n}\n",
                        rows[i]);
    return filled(text, extents);
}

static void
fill(float *x, int64_t n, const float *special, int one_in)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = special && i % one_in == one_in / 2 ? *special : (float)((i * 37 % 101) - 50) / 50;
}

/* The result for an input with *@special (NULL: none) among every @one_in elements. */
static GArray *
result_of(KilnProgram *program, const float *special, int one_in)
{
    GError *error = NULL;
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    cr_assert(session, "%s", error ? error->message : "");
    const KilnTensorInfo *input = kiln_program_input(program, 0);
    g_autofree float *x = g_malloc((gsize)input->bytes + 1);
    fill(x, input->bytes / 4, special, one_in);
    bind(session, 0, x, (size_t)input->bytes);
    run(session);
    run(session);
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    const float *data = kiln_session_output(session, 0, &info, &error);
    cr_assert(data || error == NULL, "%s", error ? error->message : "");
    GArray *result = g_array_new(FALSE, FALSE, sizeof(float));
    g_array_append_vals(result, data, (guint)(info.bytes / 4));
    return result;
}

static void
expect_same(const GArray *expected, const GArray *found, const char *text, float special)
{
    cr_assert_eq(expected->len, found->len);
    /* Sums of great numbers may cancel. */
    float scale = 1e-4f + (isfinite(special) ? 1e-5f * fabsf(special) : 0);
    for (guint i = 0; i < expected->len; i++) {
        float a = g_array_index(expected, float, i), b = g_array_index(found, float, i);
        bool same = isnan(a)   ? isnan(b)
                    : isinf(a) ? a == b
                               : fabsf(a - b) <= scale + 1e-4f * fabsf(a);
        cr_expect(same, "%s: of %g, element %u: expected %g, found %g", text, (double)special, i,
                  (double)a, (double)b);
        if (!same)
            return;
    }
}

/* Own kernels against the vendor's, which go on from a run with such numbers to one without. */
static bool
try_not_finite(const char *text)
{
    static const float specials[] = { NAN, INFINITY, -INFINITY, -0.0f, 3e37f };
    g_autoptr(KilnProgram) own = offload_program(text, NULL, 1);
    g_autoptr(KilnProgram) vendor = offload_program(text, OFFLOAD, 2);
    for (size_t s = 0; s < G_N_ELEMENTS(specials); s++) {
        for (int one_in = 5; one_in < 500; one_in *= 9) {
            g_autoptr(GArray) a = result_of(own, &specials[s], one_in);
            g_autoptr(GArray) b = result_of(vendor, &specials[s], one_in);
            expect_same(a, b, text, specials[s]);
        }
    }
    g_autoptr(GArray) a = result_of(own, NULL, 1);
    g_autoptr(GArray) b = result_of(vendor, NULL, 1);
    expect_same(a, b, text, 0);
    return offload_calls(vendor) > 0;
}

Test(offload_edges, not_finite, .timeout = 120)
{
    if (!offload_has_vendor())
        cr_skip_test("no vendor library");
    for (int wide = 0; wide < 2; wide++) { /* blocks of channels that are full, and not */
        Extents extents;
        for (int i = 0; i < 26; i++)
            extents.extent[i] = wide ? 16 : 9;
        extents.extent['C' - 'A'] = 16;
        extents.extent['O' - 'A'] = wide ? 32 : 19;
        extents.extent['N' - 'A'] = 2;
        size_t taken = 0;
        for (size_t i = 0; i < G_N_ELEMENTS(graphs); i++) {
            g_autofree char *text = graph_text(i, &extents);
            taken += try_not_finite(text);
        }
        for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
            g_autofree char *text = rows_text(i, &extents);
            taken += try_not_finite(text);
        }
        cr_expect(taken >= 14 || !offload_has_all(), "the vendor took %zu", taken);
    }
}

/* Activations of a squeeze-and-excitation block, whose scale goes into the weights of the second
 * convolution. The scaled activations are not stored. Their bound is far above them: one channel of
 * the first convolution has a great negative bias, and relu makes zeros of it. The second
 * convolution has great weights for these zeros. */
static const char scaled[] = "graph @f(%x: f32[1,16,40,40]) {\n"
                             "  %u = const @u : f32[16,16,1,1]\n  %b = const @b : f32[16]\n"
                             "  %v = const @v : f32[16,16,1,1]\n  %w = const @w : f32[16,16,1,1]\n"
                             "  %c = conv(%x, %u, %b)\n  %a = relu(%c)\n"
                             "  %g = global_average_pool(%a)\n  %e = conv(%g, %v)\n"
                             "  %s = sigmoid(%e)\n  %m = mul(%a, %s)\n  %d = conv(%m, %w)\n"
                             "  %y = relu(%d)\n  return %y\n}\n"
                             "constants {\n"
                             "  @u = random_normal(seed=3, std=0.2) : f32[16,16,1,1]\n"
                             "  @v = random_normal(seed=4, std=0.2) : f32[16,16,1,1]\n";

static char *
scaled_text(void)
{
    g_autoptr(GString) text = g_string_new(scaled);
    g_string_append(text, "  @b = [-1e30");
    for (int i = 1; i < 16; i++)
        g_string_append(text, ", 0.5");
    g_string_append(text, "] : f32[16]\n  @w = [");
    for (int i = 0; i < 256; i++)
        g_string_append(text, i % 16 == 0 ? (i ? ", 1e10" : "1e10") : ", 0.1");
    g_string_append(text, "] : f32[16,16,1,1]\n}\n");
    return g_string_free(g_steal_pointer(&text), FALSE);
}

Test(offload_edges, values_that_no_step_stores_are_proved_by_what_it_reads)
{
    if (!offload_has_vendor())
        cr_skip_test("no vendor library");
    static const float nan = NAN;
    g_autofree char *text = scaled_text();
    g_autoptr(KilnProgram) own = offload_program(text, NULL, 1);
    g_autoptr(KilnProgram) vendor = offload_program(text, OFFLOAD, 1);
    cr_assert_eq(offload_calls(vendor), 1);
    const KilnSpecialisation *made = g_ptr_array_index(vendor->specialisations, 0);
    const KilnCompiled *compiled = NULL;
    for (uint32_t c = 0; c < made->n_calls; c++) {
        if (made->calls[c].instr->kind == KILN_INSTR_call)
            compiled = kiln_call_compiled(made->calls[c].instr);
    }
    g_autoptr(GArray) a = result_of(own, NULL, 1);
    g_autoptr(GArray) b = result_of(vendor, NULL, 1);
    expect_same(a, b, "scaled", 0);
    cr_expect_eq(atomic_load(&compiled->begun_anew), 0);
    g_autoptr(GArray) c = result_of(own, &nan, 100);
    g_autoptr(GArray) d = result_of(vendor, &nan, 100);
    expect_same(c, d, "scaled", nan);
    cr_expect_eq(atomic_load(&compiled->begun_anew), 2);
}

/* Each extent 0 in turn; false where types do not fit then. */
static bool
try_empty(const char *text)
{
    static const char *const pipelines[] = { "default", "offload" };
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = g_bytes_new(text, strlen(text));
    g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, "empty", &error);
    for (size_t i = 0; model && i < G_N_ELEMENTS(pipelines); i++) {
        KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
        options.pipeline = kiln_pipeline_load(pipelines[i], &error);
        options.threads = 2;
        g_autoptr(KilnProgram) program = kiln_program_compile(model, &options, &error);
        kiln_pipeline_unref(options.pipeline);
        if (!program)
            return false;
        G_GNUC_UNUSED g_autoptr(GArray) result = result_of(program, NULL, 1);
    }
    return model != NULL;
}

Test(offload_edges, empty, .timeout = 120)
{
    size_t n = G_N_ELEMENTS(graphs), tried = 0;
    for (size_t i = 0; i < n + G_N_ELEMENTS(rows); i++) {
        for (int zero = 0; zero < 26; zero++) {
            Extents extents;
            for (int k = 0; k < 26; k++)
                extents.extent[k] = k == zero ? 0 : 16;
            g_autofree char *text = i < n ? graph_text(i, &extents) : rows_text(i - n, &extents);
            tried += try_empty(text);
        }
    }
    cr_expect_gt(tried, 100u);
}
