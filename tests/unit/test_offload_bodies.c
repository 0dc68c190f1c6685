/* SPDX-License-Identifier: Apache-2.0 */
/* Regions that no pass of Kiln made: bodies of declarations that come with a text or a program
 * file. What the vendor cannot compute runs as instructions, and computes the same. */
#include "ir/target.h"
#include "kiln.h"
#include "runtime/bind.h"
#include "runtime/program.h"
#include "runtime/targets.h"
#include "tests/unit/runtime_case.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *name, *text;
    uint32_t calls; /* that the vendor takes, where there is one */
    float from;     /* of the inputs' elements, which go up in steps of 1/8 */
} Body;

/* One input, one output, one constant weight. */
#define FUNC(x, w, y)                                                                              \
    "func @f {\n  weight @w : " w " const\n  input @x : " x "\n  output @y : " y "\n"              \
    "  call @r @out @y, @in @x, @in @w\n}\n"                                                       \
    "constants { @w = random_normal(seed=3, std=0.5) : " w " }\n"                                  \
    "declare @r(" x ", " w ") -> " y " body(%a: " x ", %w: " w " constant=compile) {\n"

static const Body bodies[] = {
    { "product",
      FUNC("f32[4,6]", "f32[6,8]", "f32[4,8]") "  %m = gemm(%a, %w) : f32[4,8]\n  return %m\n}\n",
      1, -1 },
    { "alpha of a product",
      FUNC("f32[4,6]", "f32[6,8]",
           "f32[4,8]") "  %m = gemm(%a, %w) {alpha=2} : f32[4,8]\n  return %m\n}\n",
      0, -1 },
    { "product of a transposed matrix",
      FUNC("f32[6,4]", "f32[6,8]",
           "f32[4,8]") "  %m = gemm(%a, %w) {transA=true} : f32[4,8]\n  return %m\n}\n",
      0, -1 },
    { "beta of a product",
      FUNC("f32[4,8]", "f32[8,8]",
           "f32[4,8]") "  %m = gemm(%a, %w, %a) {beta=0.5} : f32[4,8]\n  return %m\n}\n",
      0, -1 },
    { "average that rounds up",
      FUNC("f32[1,4,6,6]", "f32[4]",
           "f32[1,4,3,3]") "  %m = average_pool(%a) {ceil_mode=true, count_include_pad=true, "
                           "kernel_shape=[3,3], "
                           "strides=[2,2]} : f32[1,4,3,3]\n  return %m\n}\n",
      0, -1 },
    { "groups of a transposed convolution",
      FUNC("f32[1,4,5,5]", "f32[4,2,3,3]",
           "f32[1,4,7,7]") "  %m = conv_transpose(%a, %w) {group=2} : f32[1,4,7,7]\n  return "
                           "%m\n}\n",
      0, -1 },
    { "convolution",
      FUNC("f32[1,4,8,8]", "f32[8,4,3,3]",
           "f32[1,8,6,6]") "  %m = conv(%a, %w) : f32[1,8,6,6]\n  return %m\n}\n",
      1, -1 },
    { "convolution with computed weights",
      FUNC("f32[1,4,8,8]", "f32[8,4,3,3]",
           "f32[1,8,6,6]") "  %v = mul(%w, %w) : f32[8,4,3,3]\n  %m = conv(%a, %v) : "
                           "f32[1,8,6,6]\n  return %m\n}\n",
      0, -1 },
    { "weights under another name",
      FUNC("f32[1,4,8,8]", "f32[32,9]",
           "f32[1,8,6,6]") "  %i = const @i : i64[4]\n  %v = reshape(%w, %i) : f32[8,4,3,3]\n"
                           "  %m = conv(%a, %v) : f32[1,8,6,6]\n  return %m\n}\n"
                           "constants { @i = [8,4,3,3] : i64[4] }\n",
      0, -1 },
    { "residual under another name",
      FUNC("f32[1,16,6,6]", "f32[16,16,1,1]",
           "f32[1,16,6,6]") "  %c = conv(%a, %w) : f32[1,16,6,6]\n  %r = relu(%c) : f32[1,16,6,6]\n"
                            "  %i = identity(%r) : f32[1,16,6,6]\n  %d = conv(%i, %w) : "
                            "f32[1,16,6,6]\n"
                            "  %s = add(%d, %r) : f32[1,16,6,6]\n  %m = mul(%s, %i) : "
                            "f32[1,16,6,6]\n"
                            "  return %m\n}\n",
      0, -1 },
    /* Packed otherwise than it was computed, and then a residual. */
    { "residual that is packed",
      "graph @f(%x: f32[1,16,6,6]) {\n  %k = const @w : f32[16,16,1,1]\n"
      "  %q, %p, %y = vendor.graph @r(%x, %k) body(%a: f32[1,16,6,6], "
      "%w: f32[16,16,1,1] constant=compile) {\n"
      "    %c = conv(%a, %w) : f32[1,16,6,6]\n    %q = pack(%c) : f32[1,16,6,6]:acdb\n"
      "    %r = relu(%c) : f32[1,16,6,6]\n    %e = conv(%r, %w) : f32[1,16,6,6]\n"
      "    %p = pack(%r) : f32[1,16,6,6]:aBcd16b\n    %d = conv(%e, %w) : f32[1,16,6,6]\n"
      "    %s = add(%d, %r) : f32[1,16,6,6]\n    %y = pack(%s) : f32[1,16,6,6]:acdb\n"
      "    return %q, %p, %y\n"
      "  } : f32[1,16,6,6]:acdb, f32[1,16,6,6]:aBcd16b, f32[1,16,6,6]:acdb\n"
      "  %v = unpack(%p) : f32[1,16,6,6]\n  %u = unpack(%q) : f32[1,16,6,6]\n"
      "  %z = unpack(%y) : f32[1,16,6,6]\n  return %v, %u, %z\n}\n"
      "constants { @w = random_normal(seed=3, std=0.5) : f32[16,16,1,1] }\n",
      1, -1 },
    /* As instructions it shares the weight of the function around it, and brings another one. */
    { "constants of the region",
      FUNC("f32[4,6]", "f32[6,8]",
           "f32[4,8]") "  %k = const @w : f32[6,8]\n  %p = mul(%w, %k) : f32[6,8] loc(\"/Mul\")\n"
                       "  %m = gemm(%a, %p) {alpha=2} : f32[4,8]\n  %b = const @b : f32[8]\n"
                       "  %s = add(%m, %b) : f32[4,8]\n  return %s\n}\n"
                       "constants { @b = [1,2,3,4,5,6,7,8] : f32[8] }\n",
      0, -1 },
    { "a custom_op by itself",
      FUNC("f32[4,6]", "f32[6,8]",
           "f32[4,8]") "  %m = gemm(%a, %w) {alpha=2} : f32[4,8]\n"
                       "  %s = custom_op @c0(%m) body(%i: f32[4,8]) {\n"
                       "    %h = hard_sigmoid(%i) : f32[4,8]\n    return %h\n  } : f32[4,8]\n"
                       "  return %s\n}\n",
      0, -1 },
    { "nothing but its argument", FUNC("f32[4,6]", "f32[6,8]", "f32[4,6]") "  return %a\n}\n", 1,
      -1 },
};

/* The outputs of @text, whose input is @from and what follows; the calls in *@out_calls. */
static GBytes *
outputs_of(const Body *body, const char *target, gboolean no_offload, uint32_t *out_calls)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.target = target;
    options.no_offload = no_offload;
    g_autoptr(KilnProgram) program = program_of(body->text, &options);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, NULL);
    const KilnTensorInfo *input = kiln_program_input(program, 0);
    g_autofree float *x = g_malloc((gsize)input->bytes);
    for (int64_t i = 0; i < input->bytes / 4; i++)
        x[i] = body->from + (float)(i % 29) / 8;
    bind(session, 0, x, (size_t)input->bytes);
    run(session);
    const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
    *out_calls = 0;
    for (uint32_t c = 0; c < made->n_calls; c++)
        *out_calls += made->calls[c].instr->kind == KILN_INSTR_call;
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    const void *data = kiln_session_output(session, 0, &info, NULL);
    return g_bytes_new(data, (gsize)info.bytes);
}

Test(offload_bodies, OFF_06_run_as_instructions_where_the_vendor_lacks_something)
{
    const KilnTarget *target = kiln_target_by_name("cpu", NULL);
    /* Without AVX-512 the library's products are left to own kernels, and blocks have 8
     * channels. */
    bool wide = target->isa == KILN_ISA_AVX512 && !g_getenv("ONEDNN_MAX_CPU_ISA");
    for (size_t i = 0; i < G_N_ELEMENTS(bodies); i++) {
        const Body *body = &bodies[i];
        bool needs_wide = strstr(body->text, " = gemm(") || strstr(body->text, ":aBcd16b");
        bool takes = target->vendor && (wide || !needs_wide);
        uint32_t calls;
        g_autoptr(GBytes) want = outputs_of(body, "ref", TRUE, &calls);
        g_autoptr(GBytes) got = outputs_of(body, "cpu", FALSE, &calls);
        cr_expect_eq(calls, takes ? body->calls : 0, "%s: %u calls", body->name, calls);
        gsize size;
        const float *a = g_bytes_get_data(want, &size), *b = g_bytes_get_data(got, NULL);
        for (gsize k = 0; k < size / sizeof *a; k++)
            cr_assert(fabsf(a[k] - b[k]) <= 1e-4f * (1 + fabsf(a[k])),
                      "%s: element %zu: expected %g, found %g", body->name, k, (double)a[k],
                      (double)b[k]);
    }
}

/* Integers are added as such; what a region only hands on keeps its bytes. */
Test(offload_bodies, OFF_06_other_element_types)
{
    static const struct {
        const char *type;
        size_t size;
    } types[] = { { "i32", 4 }, { "i64", 8 } };
    for (size_t t = 0; t < G_N_ELEMENTS(types); t++) {
        const char *type = types[t].type;
        g_autofree char *text = g_strdup_printf(
            "func @f {\n  input @x : %s[4]\n  output @y : %s[4]\n  output @z : %s[4]\n"
            "  call @r @out @y, @out @z, @in @x\n}\n"
            "declare @r(%s[4]) -> (%s[4], %s[4]) body(%%a: %s[4]) {\n"
            "  %%s = add(%%a, %%a) : %s[4]\n  return %%s, %%a\n}\n",
            type, type, type, type, type, type, type, type);
        g_autoptr(KilnSession) session = session_of(text);
        int64_t wide[] = { 1, 1 << 30, -5, 0x7f800001 },
                doubled[] = { 2, 1ll << 31, -10, 0xff000002 };
        int32_t narrow[] = { 1, 1 << 29, -5, 0x3f800001 },
                twice[] = { 2, 1 << 30, -10, 0x7f000002 };
        const void *x = t ? (void *)wide : narrow, *want = t ? (void *)doubled : twice;
        bind(session, 0, x, 4 * types[t].size);
        run(session);
        cr_expect_arr_eq((const char *)kiln_session_output(session, 0, NULL, NULL),
                         (const char *)want, 4 * types[t].size, "%s", type);
        cr_expect_arr_eq((const char *)kiln_session_output(session, 1, NULL, NULL), (const char *)x,
                         4 * types[t].size, "%s", type);
    }
}

/* A region whose argument is declared constant is compiled for weights that are packed. */
Test(offload_bodies, operands_that_must_be_constant)
{
    if (!kiln_target_by_name("cpu", NULL)->vendor)
        cr_skip_test("built without a vendor library");
    static const char text[] = "func @f {\n  %s @w%s : f32[8,4,3,3]%s\n  input @x : f32[1,4,8,8]\n"
                               "  output @y : f32[1,8,6,6]\n"
                               "  call @r @out @y, @in @x, @in @w\n%s}\n"
                               "declare @r(f32[1,4,8,8], f32[8,4,3,3]) -> f32[1,8,6,6] "
                               "body(%%a: f32[1,4,8,8], %%w: f32[8,4,3,3] constant=compile) {\n"
                               "  %%m = conv(%%a, %%w) : f32[1,8,6,6]\n  return %%m\n}\n";
    static const char *const ways[][4] = {
        { "input", "", "", "" },
        { "weight", " = _", "", "  neg @out @w, @in @w\n" },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
        GError *error = NULL;
        g_autofree char *full =
            g_strdup_printf(text, ways[i][0], ways[i][1], ways[i][2], ways[i][3]);
        g_autoptr(KilnModel) model = model_of(full);
        cr_expect_null(kiln_program_compile(model, NULL, &error));
        expect_error(&error, KILN_ERROR_INVALID,
                     "(call): expected a constant weight as operand 2, which @r packs, found w");
    }
}
