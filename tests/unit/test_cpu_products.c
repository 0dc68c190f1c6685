/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu target's conv, conv_transpose, gemm and matmul as instructions: how types and attributes
 * become a problem of the kernels. Every case runs with plain operands and with packed weights, on
 * small integers, so that results are exact. */
#include "backends/cpu/cpu.h"
#include "ir/target.h"
#include "tests/unit/exact_memory.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_OPERANDS = 4,
};

/* An instruction in a function of its own, and its operands' data. */
typedef struct {
    KilnModule *module;
    KilnIRFunction *function;
    KilnInstr *instr;
    float *data[MAX_OPERANDS];
} Case;

typedef struct {
    int rank; /* -1: absent */
    int64_t dims[6];
} Shape;

static float *
values(int64_t n, uint32_t seed)
{
    float *x = exact_memory(4 * n);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)((int)(seed >> 24) % 9 - 4);
    }
    return x;
}

static Case
case_new(KilnInstrKind kind, const Shape *shapes, uint32_t n, const void *attrs)
{
    static const char *const names[] = { "y", "a", "b", "c" };
    Case c = { .module = kiln_module_new() };
    c.function = kiln_ir_function_new(c.module, "f");
    KilnBuffer *buffers[MAX_OPERANDS] = { NULL };
    for (uint32_t i = 0; i < n; i++) {
        if (shapes[i].rank < 0)
            continue;
        KilnType type = kiln_type_make(KILN_DTYPE_f32, shapes[i].rank, shapes[i].dims);
        KilnBufferKind buffer_kind = i == 0   ? KILN_BUFFER_OUTPUT
                                     : i == 2 ? KILN_BUFFER_WEIGHT
                                              : KILN_BUFFER_INPUT;
        buffers[i] = kiln_ir_add_buffer(c.function, buffer_kind, names[i], &type);
        c.data[i] = values(kiln_type_elements(&type), i + 1);
    }
    GError *error = NULL;
    c.instr = kiln_instr_new(c.function, kind, buffers, n, attrs, NULL, &error);
    cr_assert(c.instr, "%s", error ? error->message : "");
    return c;
}

static void
case_free(Case *c)
{
    for (int i = 0; i < MAX_OPERANDS; i++)
        free(c->data[i]);
    kiln_ir_function_free(c->function);
    kiln_module_free(c->module);
}

/* The result, new; @threads of 0 is one thread with packed weights. */
static float *
case_run(const Case *c, int threads)
{
    const KilnKernel *kernel = kiln_target_find(kiln_cpu_target(), c->instr);
    cr_assert(kernel, "no kernel");
    KilnBuffer *weights = kiln_instr_operand(c->instr, 2);
    weights->is_const = threads == 0;
    void *data[MAX_OPERANDS], *packed = NULL;
    memcpy(data, c->data, sizeof data);
    size_t bytes = (size_t)kiln_type_bytes(&kiln_instr_operand(c->instr, 0)->type);
    data[0] = exact_memory((int64_t)bytes);
    memset(data[0], 0xff, bytes);
    uint32_t form = kiln_kernel_form(kernel, c->instr);
    if (threads == 0 && kernel->packed_bytes(c->instr, form) > 0) {
        packed = exact_memory((int64_t)kernel->packed_bytes(c->instr, form));
        const void *sources[MAX_OPERANDS] = { NULL, NULL, data[2], NULL };
        cr_assert_null(kernel->pack(c->instr, form, sources, packed, KILN_SLICE_WHOLE));
        data[2] = NULL; /* run() does not read it */
    }
    threads = MAX(threads, 1);
    size_t scratch = kernel->scratch_bytes(c->instr, form, threads);
    KilnKernelArgs args = { .instr = c->instr,
                            .data = data,
                            .scratch = exact_memory((int64_t)scratch),
                            .packed = packed,
                            .form = form,
                            .threads = threads };
    cr_assert_null(kernel->run(&args));
    free(args.scratch);
    free(packed);
    return data[0];
}

/* All ways to run give @expected, which is freed. */
static void
case_gives(Case *c, double *expected, const char *what)
{
    int64_t n = kiln_type_elements(&kiln_instr_operand(c->instr, 0)->type);
    for (int threads = 0; threads <= 2; threads++) {
        float *found = case_run(c, threads);
        for (int64_t i = 0; i < n; i++)
            cr_assert_eq((double)found[i], expected[i], "%s, element %d: expected %g, found %g",
                         what, (int)i, expected[i], (double)found[i]);
        free(found);
    }
    free(expected);
    case_free(c);
}

static int64_t
count(const Shape *s)
{
    int64_t n = 1;
    for (int d = 0; d < s->rank; d++)
        n *= s->dims[d];
    return n;
}

/* --- matmul --- */

/* Offset of matrix @item (counted through the result's batch dims) in an operand. */
static int64_t
matrix_at(const Shape *s, const Shape *out, int out_batch, int64_t item, int64_t matrix)
{
    int64_t at = 0, step = matrix;
    for (int d = 1; d <= out_batch; d++) {
        int64_t i = item % out->dims[out_batch - d];
        item /= out->dims[out_batch - d];
        if (s->rank - 2 - d < 0)
            continue;
        int64_t dim = s->dims[s->rank - 2 - d];
        at += (dim == 1 ? 0 : i) * step;
        step *= dim;
    }
    return at;
}

static double *
naive_matmul(const Case *c, const Shape *s)
{
    const Shape *out = &s[0], *a = &s[1], *b = &s[2];
    int64_t m = a->rank > 1 ? a->dims[a->rank - 2] : 1, n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    int64_t k = a->dims[a->rank - 1], total = count(out);
    int batch = out->rank - (a->rank > 1) - (b->rank > 1);
    double *y = g_new0(double, total + 1);
    for (int64_t i = 0; i < total; i++) {
        int64_t item = i / (m * n), row = i / n % m, col = i % n;
        const float *x = c->data[1] + matrix_at(a, out, batch, item, m * k) + row * k;
        const float *w = c->data[2] + matrix_at(b, out, batch, item, k * n) + col;
        for (int64_t t = 0; t < k; t++)
            y[i] += (double)x[t] * (double)w[t * n];
    }
    return y;
}

Test(cpu_products, matmul)
{
    static const Shape cases[][3] = {
        { { 2, { 3, 5 } }, { 2, { 3, 4 } }, { 2, { 4, 5 } } },
        { { 2, { 1, 70 } }, { 2, { 1, 33 } }, { 2, { 33, 70 } } },
        { { 0, { 0 } }, { 1, { 7 } }, { 1, { 7 } } },
        { { 1, { 6 } }, { 1, { 7 } }, { 2, { 7, 6 } } },
        { { 1, { 6 } }, { 2, { 6, 7 } }, { 1, { 7 } } },
        { { 2, { 3, 6 } }, { 3, { 3, 6, 7 } }, { 1, { 7 } } },
        { { 2, { 3, 6 } }, { 1, { 7 } }, { 3, { 3, 7, 6 } } },
        { { 3, { 3, 20, 5 } }, { 3, { 3, 20, 4 } }, { 2, { 4, 5 } } },
        { { 4, { 2, 3, 4, 5 } }, { 4, { 2, 1, 4, 6 } }, { 3, { 3, 6, 5 } } },
        { { 4, { 2, 3, 4, 5 } }, { 3, { 3, 4, 6 } }, { 4, { 2, 1, 6, 5 } } },
        { { 4, { 2, 3, 4, 5 } }, { 2, { 4, 6 } }, { 4, { 2, 3, 6, 5 } } },
        { { 3, { 2, 4, 5 } }, { 3, { 2, 4, 0 } }, { 3, { 2, 0, 5 } } },
        { { 3, { 0, 4, 5 } }, { 3, { 0, 4, 6 } }, { 2, { 6, 5 } } },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Case c = case_new(KILN_INSTR_matmul, cases[i], 3, NULL);
        g_autofree char *what = g_strdup_printf("case %d", (int)i);
        case_gives(&c, naive_matmul(&c, cases[i]), what);
    }
}

/* --- gemm --- */

static double *
naive_gemm(const Case *c, const Shape *s, const KilnInstrAttrs_gemm *attrs)
{
    int64_t m = s[0].dims[0], n = s[0].dims[1], k = s[1].dims[attrs->transA ? 0 : 1];
    double *y = g_new0(double, m *n);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t t = 0; t < k; t++)
                sum += (double)c->data[1][attrs->transA ? t * m + i : i * k + t] *
                       (double)c->data[2][attrs->transB ? j * k + t : t * n + j];
            y[i * n + j] = (double)attrs->alpha * sum;
            if (s[3].rank < 0)
                continue;
            int64_t cols = s[3].rank > 0 ? s[3].dims[s[3].rank - 1] : 1;
            int64_t rows = s[3].rank > 1 ? s[3].dims[0] : 1;
            int64_t at = (rows == 1 ? 0 : i) * cols + (cols == 1 ? 0 : j);
            y[i * n + j] += (double)attrs->beta * (double)c->data[3][at];
        }
    }
    return y;
}

Test(cpu_products, gemm)
{
    static const Shape biases[] = {
        { -1, { 0 } },     { 0, { 0 } },     { 1, { 37 } },    { 1, { 1 } },
        { 2, { 18, 37 } }, { 2, { 18, 1 } }, { 2, { 1, 37 } }, { 2, { 1, 1 } },
    };
    for (int i = 0; i < 4 * (int)G_N_ELEMENTS(biases); i++) {
        KilnInstrAttrs_gemm attrs = { .alpha = 0.5f, .beta = 2.0f, .activation = "none" };
        attrs.transA = i & 1;
        attrs.transB = i & 2;
        Shape s[] = { { 2, { 18, 37 } },
                      { 2, { attrs.transA ? 21 : 18, attrs.transA ? 18 : 21 } },
                      { 2, { attrs.transB ? 37 : 21, attrs.transB ? 21 : 37 } },
                      biases[i / 4] };
        Case c = case_new(KILN_INSTR_gemm, s, s[3].rank < 0 ? 3 : 4, &attrs);
        g_autofree char *what = g_strdup_printf("case %d", i);
        case_gives(&c, naive_gemm(&c, s, &attrs), what);
    }
}

/* --- convolution --- */

/* Adds each product of weight and window element; transposed goes from the operand to the result.
 */
static double *
naive_conv(const Case *c, const Shape *s, const KilnInstrAttrs_conv *attrs, bool transpose)
{
    const Shape *large = &s[transpose ? 0 : 1], *small = &s[transpose ? 1 : 0], *w = &s[2];
    int spatial = w->rank - 2;
    int64_t groups = attrs->group, lc = large->dims[1] / groups, sc = small->dims[1] / groups;
    int64_t large_plane = count(large) / large->dims[0] / large->dims[1];
    int64_t small_plane = count(small) / small->dims[0] / small->dims[1];
    int64_t taps = count(w) / w->dims[0] / w->dims[1];
    double *y = g_new0(double, count(&s[0]) + 1);
    for (int64_t i = 0; s[3].rank > 0 && i < count(&s[0]); i++)
        y[i] = (double)c->data[3][i / (count(&s[0]) / s[0].dims[0] / s[0].dims[1]) % s[0].dims[1]];
    for (int64_t i = 0; i < s[0].dims[0] * groups * sc * lc * taps * small_plane; i++) {
        int64_t p = i % small_plane, t = i / small_plane % taps, l = i / small_plane / taps % lc;
        int64_t sm = i / small_plane / taps / lc % sc,
                g = i / small_plane / taps / lc / sc % groups;
        int64_t image = i / small_plane / taps / lc / sc / groups, at = 0, step = 1;
        int64_t weight = ((g * sc + sm) * lc + l) * taps + t, small_p = p;
        bool inside = true;
        for (int d = spatial - 1; d >= 0; d--) {
            int64_t x = p % small->dims[d + 2] * attrs->strides.v[d] +
                        t % w->dims[d + 2] * attrs->dilations.v[d] - attrs->pads.v[d];
            inside = inside && x >= 0 && x < large->dims[d + 2];
            at += x * step;
            step *= large->dims[d + 2];
            p /= small->dims[d + 2];
            t /= w->dims[d + 2];
        }
        int64_t from = ((image * groups + g) * lc + l) * large_plane + at;
        int64_t to = ((image * groups + g) * sc + sm) * small_plane + small_p;
        if (inside && transpose)
            y[from] += (double)c->data[2][weight] * (double)c->data[1][to];
        else if (inside)
            y[to] += (double)c->data[2][weight] * (double)c->data[1][from];
    }
    return y;
}

typedef struct {
    Shape shapes[4];
    int64_t strides[3], dilations[3], pads[6], group;
} ConvCase;

static void
check_conv(const ConvCase *cases, int n, bool transpose)
{
    for (int i = 0; i < n; i++) {
        const ConvCase *k = &cases[i];
        uint32_t spatial = (uint32_t)k->shapes[0].rank - 2;
        KilnInstrAttrs_conv attrs = { .group = k->group,
                                      .activation = "none",
                                      .algorithm = "direct" };
        attrs.strides = (KilnInts){ .n = spatial, .v = (int64_t *)k->strides };
        attrs.dilations = (KilnInts){ .n = spatial, .v = (int64_t *)k->dilations };
        attrs.pads = (KilnInts){ .n = 2 * spatial, .v = (int64_t *)k->pads };
        KilnInstrAttrs_conv_transpose mirrored = { .group = attrs.group,
                                                   .activation = "none",
                                                   .strides = attrs.strides,
                                                   .dilations = attrs.dilations,
                                                   .pads = attrs.pads };
        Case c = case_new(transpose ? KILN_INSTR_conv_transpose : KILN_INSTR_conv, k->shapes,
                          k->shapes[3].rank < 0 ? 3 : 4,
                          transpose ? (const void *)&mirrored : (const void *)&attrs);
        g_autofree char *what = g_strdup_printf("case %d", i);
        case_gives(&c, naive_conv(&c, k->shapes, &attrs, transpose), what);
    }
}

#define ABSENT                                                                                     \
    {                                                                                              \
        -1,                                                                                        \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

// clang-format off
Test(cpu_products, conv)
{
    static const ConvCase cases[] = {
        { { { 4, { 2, 6, 5, 4 } }, { 4, { 2, 3, 9, 8 } }, { 4, { 6, 3, 3, 3 } }, { 1, { 6 } } },
          { 2, 2 }, { 1, 1 }, { 1, 1, 1, 0 }, 1 },
        { { { 3, { 1, 8, 12 } }, { 3, { 1, 4, 16 } }, { 3, { 8, 2, 3 } }, ABSENT },
          { 1 }, { 2 }, { 0, 0 }, 2 },
        { { { 5, { 1, 2, 3, 4, 5 } }, { 5, { 1, 3, 4, 4, 5 } }, { 5, { 2, 3, 2, 1, 3 } }, { 1, { 2 } } },
          { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 1, 0, 0, 1 }, 1 },
        { { { 4, { 1, 5, 7, 7 } }, { 4, { 1, 5, 7, 7 } }, { 4, { 5, 1, 3, 3 } }, { 1, { 5 } } },
          { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 5 },
    };
    check_conv(cases, (int)G_N_ELEMENTS(cases), false);
}

Test(cpu_products, conv_transpose)
{
    static const ConvCase cases[] = {
        { { { 4, { 2, 3, 10, 12 } }, { 4, { 2, 6, 5, 6 } }, { 4, { 6, 3, 2, 2 } }, { 1, { 3 } } },
          { 2, 2 }, { 1, 1 }, { 0, 0, 0, 0 }, 1 },
        { { { 4, { 1, 4, 10, 11 } }, { 4, { 1, 6, 5, 6 } }, { 4, { 6, 2, 3, 3 } }, ABSENT },
          { 2, 2 }, { 1, 1 }, { 1, 1, 0, 1 }, 2 },
        { { { 3, { 1, 2, 14 } }, { 3, { 1, 3, 10 } }, { 3, { 3, 2, 3 } }, { 1, { 2 } } },
          { 1 }, { 2 }, { 0, 0 }, 1 },
    };
    check_conv(cases, (int)G_N_ELEMENTS(cases), true);
}
// clang-format on

Test(cpu_products, falls_back_where_types_do_not_fit)
{
    Shape s[] = { { 2, { 3, 5 } }, { 2, { 3, 4 } }, { 2, { 4, 5 } } };
    Case c = case_new(KILN_INSTR_matmul, s, 3, NULL);
    for (uint32_t i = 0; i < 3; i++)
        kiln_instr_operand(c.instr, i)->type.dtype = KILN_DTYPE_i16;
    cr_assert_null(kiln_target_find(kiln_cpu_target(), c.instr));
    case_free(&c);
    ConvCase k = { .shapes = { { 6, { 1, 1, 1, 1, 1, 1 } },
                               { 6, { 1, 1, 1, 1, 1, 1 } },
                               { 6, { 1, 1, 1, 1, 1, 1 } },
                               ABSENT } };
    c = case_new(KILN_INSTR_conv, k.shapes, 3, NULL);
    cr_assert_null(kiln_target_find(kiln_cpu_target(), c.instr), "four spatial dims");
    case_free(&c);
}
