/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bytes on the cpu backend: the inner loops of every instruction set that this machine
 * has against plain ones, and instructions against the reference, all of them bit for bit. Values
 * are anything that a byte holds, and the ends of it, where sums of pairs exceed 16 bits. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/integer/integer_kernel.h"
#include "backends/cpu/isa.h"
#include "cpu_case.h"
#include "ir/target.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <string.h>

static uint32_t state = 1;

static uint32_t
next(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

typedef enum {
    ANY,  /* all values */
    ENDS, /* the least and the greatest */
    N_VALUES
} Values;

static void
fill(RefCase *c, uint32_t i, Values values)
{
    const KilnType *type = &c->buffers[i].type;
    for (int64_t k = 0; k < kiln_type_elements(type); k++)
        ((uint8_t *)c->data[i])[k] = (uint8_t)(values == ANY                  ? next(256)
                                               : type->dtype == KILN_DTYPE_i8 ? 127 + next(2)
                                                                              : 255 * next(2));
}

static void
bytes(RefCase *c, KilnDType dtype, Values values, int rank, const int64_t *dims)
{
    case_in(c, dtype, rank, dims, NULL);
    fill(c, c->instr.n_operands - 1, values);
}

static const KilnDType types[] = { KILN_DTYPE_i8, KILN_DTYPE_u8 };

/* --- loops --- */

enum {
    GROUPS = 9
};

static void
check_loops(const KilnIntegerKernels *kernels, const char *isa)
{
    const int cols = kernels->cols;
    uint8_t rows[KILN_INTEGER_MAX_ROWS][GROUPS * 4];
    int8_t columns[GROUPS * 4][KILN_INTEGER_MAX_COLS], panel[GROUPS * 4 * KILN_INTEGER_MAX_COLS];
    int32_t sums[KILN_INTEGER_MAX_ROWS * KILN_INTEGER_MAX_COLS];
    const uint8_t *at[KILN_INTEGER_MAX_ROWS];
    for (int round = 0; round < 40; round++) {
        for (int k = 0; k < GROUPS * 4; k++) {
            for (int r = 0; r < KILN_INTEGER_MAX_ROWS; r++)
                rows[r][k] = (uint8_t)(round % 2 ? next(256) : 255);
            for (int j = 0; j < cols; j++)
                columns[k][j] = (int8_t)(round % 2 ? (int)next(256) - 128 : -128 + 255 * (j % 2));
        }
        for (int g = 0; g < GROUPS; g++) {
            const uint8_t *from[4];
            for (int k = 0; k < 4; k++)
                from[k] = (const uint8_t *)columns[4 * g + k];
            kernels->interleave(from, (uint8_t *)panel + g * 4 * cols, cols, 0);
        }
        for (int r = 0; r < kernels->rows; r++)
            at[r] = rows[r];
        for (int n = 1; n <= kernels->rows; n += kernels->rows - 1) {
            const int64_t n_cols = n == 1 ? cols : 1 + (int64_t)next((uint32_t)cols);
            kernels->tile(n, n_cols, at, panel, GROUPS, sums);
            for (int i = 0; i < n * cols; i++) {
                if (i % cols >= n_cols)
                    continue;
                int32_t sum = 0;
                for (int k = 0; k < GROUPS * 4; k++)
                    sum += rows[i / cols][k] * columns[k][i % cols];
                cr_assert_eq(sums[i], sum, "%s: sum %d of %d rows", isa, i, n);
            }
        }
    }
}

/* Rows of weights by pixels that lie in groups, or as single bytes @stride apart. Taps are
 * anywhere, and overlap. */
static void
check_conv_loops(const KilnIntegerKernels *kernels, const char *isa)
{
    enum {
        APART = 5, /* bytes from tap to tap */
        BYTES = GROUPS * APART + KILN_INTEGER_MAX_COLS * 4 + 64,
    };
    uint8_t pixels[BYTES];
    int8_t weights[GROUPS * KILN_INTEGER_MAX_ROWS * 4];
    int32_t sums[KILN_INTEGER_MAX_ROWS * KILN_INTEGER_MAX_COLS];
    int64_t taps[GROUPS];
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < BYTES; i++)
            pixels[i] = (uint8_t)(round % 2 ? next(256) : 255);
        for (size_t i = 0; i < sizeof weights; i++)
            weights[i] =
                (int8_t)(round % 2 ? (int)next(256) - 128 : -128 + 255 * (int)(i % 3 == 0));
        for (int g = 0; g < GROUPS; g++)
            taps[g] = (GROUPS - 1 - g) * APART;
        KilnIntegerSlide slide = { .stride = 1 + (round / 2) % 4 };
        const int dilation = (15 - 3 * (int)slide.stride) / 3;
        for (int i = 0; i < 64; i++) {
            slide.words[i / 4] = (int)slide.stride * (i / 16) + i / 4 % 4;
            slide.bytes[i] = (int8_t)(i / 4 % 4 * (int)slide.stride + i % 4 * dilation);
        }
        const bool single = round % 4 > 1, row = single || round % 8 > 5;
        const int n = 1 + (int)next((uint32_t)kernels->cols), rows = row ? 1 : kernels->rows;
        const KilnIntegerTaps read = { taps, GROUPS, single ? &slide : NULL };
        if (row)
            kernels->conv_row(n, pixels, &read, weights, sums);
        else
            kernels->conv_tile(n, pixels, &read, weights, sums, kernels->cols);
        for (int r = 0; r < rows; r++) {
            for (int p = 0; p < n; p++) {
                int32_t sum = 0;
                for (int g = 0; g < GROUPS; g++) {
                    for (int k = 0; k < 4; k++) {
                        const int64_t at =
                            single ? slide.stride * p + k * dilation : (int64_t)p * 4 + k;
                        sum += pixels[taps[g] + at] * weights[(g * rows + r) * 4 + k];
                    }
                }
                cr_assert_eq(sums[r * kernels->cols + p], sum, "%s: row %d, pixel %d of %d", isa, r,
                             p, n);
            }
        }
    }
}

static void
check_isa(const KilnIntegerKernels *kernels, const char *isa)
{
    check_loops(kernels, isa);
    check_conv_loops(kernels, isa);
}

Test(cpu_integer, loops_of_every_instruction_set)
{
    check_isa(&kiln_integer_kernels_portable, "portable");
#if defined(__x86_64__)
    if (kiln_cpu_isa_best() >= KILN_CPU_ISA_AVX2)
        check_isa(&kiln_integer_kernels_avx2, "AVX2");
    if (kiln_cpu_isa_best() >= KILN_CPU_ISA_AVX512)
        check_isa(&kiln_integer_kernels_avx512, "AVX-512");
#endif
    check_isa(kiln_integer_kernels(), "the best");
}

/* --- instructions --- */

typedef struct {
    int64_t batch, ic, oc, group, in[2], kernel[2], stride[2], dilation[2], pad[4];
} Window;

// clang-format off
static const Window windows[] = {
    { 1, 3, 5, 1, { 9, 8 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 } },
    { 2, 5, 17, 1, { 7, 7 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } },
    { 1, 3, 9, 1, { 23, 22 }, { 7, 7 }, { 2, 2 }, { 1, 1 }, { 3, 3, 3, 3 } },
    { 1, 8, 6, 1, { 9, 9 }, { 1, 1 }, { 2, 2 }, { 1, 1 }, { 0, 0, 0, 0 } },
    { 2, 12, 12, 12, { 11, 10 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } },
    { 1, 6, 12, 6, { 13, 14 }, { 5, 3 }, { 2, 3 }, { 1, 2 }, { 2, 1, 0, 3 } },
    { 1, 6, 8, 2, { 10, 9 }, { 3, 2 }, { 1, 2 }, { 3, 2 }, { 4, 5, 3, 2 } },
    { 1, 2, 3, 1, { 2, 3 }, { 2, 2 }, { 3, 3 }, { 1, 1 }, { 5, 4, 4, 6 } },
    { 1, 2, 3, 1, { 8, 9 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { -1, 0, 0, -2 } },
    { 1, 70, 150, 1, { 6, 6 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } },
    { 1, 4, 8, 4, { 70, 60 }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } },
    /* Groups of one channel: strides and dilations that single bytes go with, and others. */
    { 1, 5, 5, 5, { 15, 33 }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1, 1, 1 } },
    { 1, 3, 3, 3, { 12, 70 }, { 5, 7 }, { 1, 1 }, { 1, 2 }, { 2, 6, 2, 6 } },
    { 1, 3, 3, 3, { 9, 20 }, { 2, 3 }, { 1, 4 }, { 1, 1 }, { 0, 1, 0, 1 } },
    { 1, 3, 3, 3, { 9, 21 }, { 1, 1 }, { 1, 4 }, { 1, 9 }, { 0, 0, 0, 0 } },
    { 1, 3, 3, 3, { 9, 40 }, { 3, 4 }, { 1, 3 }, { 1, 3 }, { 0, 0, 0, 0 } },
    /* Rows longer than what is put side by side at once. */
    { 1, 5, 3, 1, { 3, 1500 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 } },
    { 1, 5, 3, 1, { 2, 1100 }, { 3, 3 }, { 1, 2 }, { 1, 1 }, { 1, 1, 1, 1 } },
};
// clang-format on

/* Attributes, result and factors of @window; all spatial dims, or the last one alone. */
#define WINDOW(c, id, w, first)                                                                    \
    do {                                                                                           \
        KilnInstrAttrs_##id *attrs_ = CASE_ATTRS(c, id);                                           \
        attrs_->group = (w)->group;                                                                \
        if (first) {                                                                               \
            attrs_->strides = CASE_INTS(c, (w)->stride[1]);                                        \
            attrs_->dilations = CASE_INTS(c, (w)->dilation[1]);                                    \
            attrs_->pads = CASE_INTS(c, (w)->pad[1], (w)->pad[3]);                                 \
        } else {                                                                                   \
            attrs_->strides = CASE_INTS(c, (w)->stride[0], (w)->stride[1]);                        \
            attrs_->dilations = CASE_INTS(c, (w)->dilation[0], (w)->dilation[1]);                  \
            attrs_->pads = CASE_INTS(c, (w)->pad[0], (w)->pad[1], (w)->pad[2], (w)->pad[3]);       \
        }                                                                                          \
    } while (0)

static void
factors(RefCase *c, const Window *w, int first, KilnDType out, const KilnDType dtypes[2],
        Values values)
{
    int64_t o[4] = { w->batch, w->oc }, x[4] = { w->batch, w->ic },
            k[4] = { w->oc, w->ic / w->group };
    const int rank = 4 - first;
    for (int d = first; d < 2; d++) {
        const int64_t window = (w->kernel[d] - 1) * w->dilation[d] + 1;
        x[2 + d - first] = w->in[d];
        k[2 + d - first] = w->kernel[d];
        o[2 + d - first] = (w->in[d] + w->pad[d] + w->pad[d + 2] - window) / w->stride[d] + 1;
    }
    case_out(c, out, rank, o);
    bytes(c, dtypes[0], values, rank, x);
    bytes(c, dtypes[1], values, rank, k);
}

Test(cpu_integer, conv_integer_has_the_bits_of_the_reference)
{
    for (size_t i = 0; i < G_N_ELEMENTS(windows); i++) {
        for (uint32_t form = 0; form < 16; form++) {
            const KilnDType dtypes[2] = { types[form & 1], types[form >> 1 & 1] };
            const Values values = (Values)(form >> 2 & 1);
            const int first = (int)(form >> 3);
            g_autoptr(RefCase) c = case_new(KILN_INSTR_conv_integer);
            WINDOW(c, conv_integer, &windows[i], first);
            factors(c, &windows[i], first, KILN_DTYPE_i32, dtypes, values);
            if (form != 0) {
                bytes(c, dtypes[0], values, SCALAR);
                bytes(c, dtypes[1], values, 1, (int64_t[]){ form & 4 ? 1 : windows[i].oc });
            }
            cpu_agrees(c, (Tolerance){ 0, 0 }, "conv_integer");
        }
    }
}

static KilnQuant
scales_of(float *scales, int32_t *zeros, int64_t n, int axis, KilnDType dtype)
{
    for (int64_t i = 0; i < n; i++) {
        scales[i] = 0.01f + 0.001f * (float)next(20);
        zeros[i] = (int32_t)next(256) - (dtype == KILN_DTYPE_i8 ? 128 : 0);
    }
    return (KilnQuant){ axis, (uint32_t)n, scales, zeros };
}

/* Quantized types on result and factors, the weights' per channel where @axis is not -1. */
typedef struct {
    float scales[3][256];
    int32_t zeros[3][256];
    KilnQuant quant[3];
} Quants;

static void
quantize(RefCase *c, Quants *q, int64_t channels, int axis, float factor)
{
    for (uint32_t i = 0; i < 3; i++) {
        const bool weights = i == 2 && axis >= 0;
        q->quant[i] = scales_of(q->scales[i], q->zeros[i], weights ? channels : 1,
                                weights ? axis : -1, c->buffers[i].type.dtype);
        c->buffers[i].type.quant = &q->quant[i];
    }
    q->scales[0][0] *= factor;
}

static void
bias(RefCase *c, int rank, const int64_t *dims)
{
    case_in(c, KILN_DTYPE_i32, rank, dims, NULL);
    static const float scale = 0.0001f;
    static const int32_t zero = 0;
    static const KilnQuant steps = { -1, 1, &scale, &zero };
    const uint32_t i = c->instr.n_operands - 1;
    c->buffers[i].type.quant = &steps; /* those of the sums: read as they are */
    for (int64_t k = 0; k < kiln_type_elements(&c->buffers[i].type); k++)
        ((int32_t *)c->data[i])[k] = (int32_t)next(20000) - 10000;
}

Test(cpu_integer, quantized_conv_has_the_bits_of_the_reference)
{
    for (size_t i = 0; i < G_N_ELEMENTS(windows); i++) {
        const Window w = windows[i];
        for (uint32_t form = 0; form < 16; form++) {
            const KilnDType dtypes[2] = { types[form & 1], types[form >> 1 & 1] };
            static Quants q;
            g_autoptr(RefCase) c = case_new(KILN_INSTR_conv);
            WINDOW(c, conv, &w, 0);
            factors(c, &w, 0, types[form >> 2 & 1], dtypes, form == 3 ? ENDS : ANY);
            quantize(c, &q, w.oc, form & 8 ? 0 : -1, form % 5 ? 10 : 1e-30f);
            if (form & 2) {
                bias(c, 1, (int64_t[]){ w.oc });
                q.zeros[0][0] = 0;
            }
            cpu_agrees(c, (Tolerance){ 0, 0 }, "quantized");
        }
    }
}

/* The reference has them: strides as long as the padding make planes whose bytes no int64_t says.
 */
Test(cpu_integer, planes_that_no_number_can_say)
{
    const int64_t far = INT64_C(1) << 30;
    const Window w = {
        1, 1, 1, 1, { 8, 8 }, { 2, 2 }, { far, far }, { far - 1, far - 1 }, { far, far, far, far }
    };
    const KilnDType dtypes[2] = { KILN_DTYPE_u8, KILN_DTYPE_i8 };
    g_autoptr(RefCase) c = case_new(KILN_INSTR_conv_integer);
    WINDOW(c, conv_integer, &w, 0);
    factors(c, &w, 0, KILN_DTYPE_i32, dtypes, ANY);
    cr_assert_null(kiln_target_find(kiln_cpu_target(), &c->instr));
}

/* Infinity times no sum is no number, and is stored as real 0. */
Test(cpu_integer, scales_whose_product_no_float_holds)
{
    const KilnDType dtypes[2] = { KILN_DTYPE_u8, KILN_DTYPE_i8 };
    static Quants q;
    g_autoptr(RefCase) c = case_new(KILN_INSTR_conv);
    const Window *w = &windows[1];
    WINDOW(c, conv, w, 0);
    factors(c, w, 0, KILN_DTYPE_u8, dtypes, ENDS);
    quantize(c, &q, w->oc, -1, 1);
    q.scales[1][0] = q.scales[2][0] = 3e38f;
    q.zeros[1][0] = q.zeros[2][0] = 0;
    memset(c->data[2], 0, (size_t)kiln_type_elements(&c->buffers[2].type) / 2);
    cpu_agrees(c, (Tolerance){ 0, 0 }, "quantized");
}

/* M, K, N: tiles, panels and groups whole, one less, one more; several tasks. */
static const int64_t sizes[][3] = { { 1, 1, 1 },    { 1, 64, 48 },   { 8, 4, 48 }, { 7, 3, 47 },
                                    { 9, 5, 49 },   { 33, 19, 200 }, { 4, 0, 5 },  { 2, 1031, 16 },
                                    { 70, 64, 33 }, { 40, 258, 17 } };

Test(cpu_integer, matmul_integer_has_the_bits_of_the_reference)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        const int64_t m = sizes[i][0], k = sizes[i][1], n = sizes[i][2];
        for (uint32_t form = 0; form < 16; form++) {
            const KilnDType a = types[form & 1], b = types[form >> 1 & 1];
            const Values values = (Values)(form >> 2 & 1);
            g_autoptr(RefCase) c = case_new(KILN_INSTR_matmul_integer);
            case_out(c, KILN_DTYPE_i32, DIMS(m, n));
            bytes(c, a, values, DIMS(m, k));
            bytes(c, b, values, DIMS(k, n));
            if (form != 0) {
                bytes(c, a, values, SCALAR);
                bytes(c, b, values, 1, (int64_t[]){ form & 8 ? n : 1 });
            }
            cpu_agrees(c, (Tolerance){ 0, 0 }, "matmul_integer");
        }
    }
}

/* Batches on the left, on both sides, broadcast, and vectors. */
Test(cpu_integer, matmul_integer_of_batches)
{
    static const struct {
        int ranks[3];
        int64_t out[4], a[4], b[4];
    } shapes[] = {
        { { 3, 3, 2 }, { 3, 5, 7 }, { 3, 5, 6 }, { 6, 7 } },
        { { 4, 4, 4 }, { 2, 3, 5, 7 }, { 2, 3, 5, 6 }, { 2, 3, 6, 7 } },
        { { 4, 3, 4 }, { 2, 3, 5, 7 }, { 3, 5, 6 }, { 2, 1, 6, 7 } },
        { { 1, 1, 2 }, { 7 }, { 6 }, { 6, 7 } },
        { { 2, 3, 1 }, { 3, 5 }, { 3, 5, 6 }, { 6 } },
        { { 2, 1, 3 }, { 2, 7 }, { 6 }, { 2, 6, 7 } },
        { { 0, 1, 1 }, { 0 }, { 6 }, { 6 } },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_matmul_integer);
        case_out(c, KILN_DTYPE_i32, shapes[i].ranks[0], shapes[i].out);
        bytes(c, KILN_DTYPE_u8, ANY, shapes[i].ranks[1], shapes[i].a);
        bytes(c, KILN_DTYPE_i8, ANY, shapes[i].ranks[2], shapes[i].b);
        bytes(c, KILN_DTYPE_u8, ANY, SCALAR);
        bytes(c, KILN_DTYPE_i8, ANY, SCALAR);
        cpu_agrees(c, (Tolerance){ 0, 0 }, "batches");
    }
}

Test(cpu_integer, quantized_products_have_the_bits_of_the_reference)
{
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        const int64_t m = sizes[i][0], k = sizes[i][1], n = sizes[i][2];
        for (uint32_t form = 0; form < 16; form++) {
            const bool gemm = form & 2, transposed = gemm && (form & 4);
            static Quants q;
            g_autoptr(RefCase) c = case_new(gemm ? KILN_INSTR_gemm : KILN_INSTR_matmul);
            case_out(c, types[form & 1], DIMS(m, n));
            bytes(c, types[form >> 1 & 1], ANY, DIMS(m, k));
            if (transposed)
                bytes(c, types[form >> 3], ANY, DIMS(n, k));
            else
                bytes(c, types[form >> 3], ANY, DIMS(k, n));
            quantize(c, &q, n, form & 1 ? (transposed ? 0 : 1) : -1, 10);
            if (gemm) {
                CASE_ATTRS(c, gemm)->alpha = 1;
                CASE_ATTRS(c, gemm)->beta = 1;
                CASE_ATTRS(c, gemm)->transB = transposed;
                bias(c, 1, (int64_t[]){ n });
            }
            cpu_agrees(c, (Tolerance){ 0, 0 }, "quantized");
        }
    }
}

/* What the range is, what NaN and infinities make of it, and one that is empty. */
Test(cpu_integer, dynamic_quantize_has_the_bits_of_the_reference)
{
    static const int64_t lengths[] = { 0, 1, 5, 64, 100, 16384, 40001 };
    static const double odd[] = { 0.25, NAN, INFINITY, -INFINITY, -0.0, 1e38, -3e38 };
    for (size_t i = 0; i < G_N_ELEMENTS(lengths); i++) {
        for (size_t k = 0; k < G_N_ELEMENTS(odd); k++) {
            g_autofree double *values = g_new(double, (gsize)lengths[i] + 1);
            for (int64_t j = 0; j < lengths[i]; j++)
                values[j] = (double)((int)next(2000) - (k % 2 ? 1500 : 0)) / 64;
            if (lengths[i])
                values[next((uint32_t)lengths[i])] = odd[k];
            g_autoptr(RefCase) c = case_new(KILN_INSTR_dynamic_quantize_linear);
            case_out(c, KILN_DTYPE_u8, DIMS(lengths[i]));
            case_out(c, KILN_DTYPE_f32, SCALAR);
            case_out(c, KILN_DTYPE_u8, SCALAR);
            case_in(c, KILN_DTYPE_f32, DIMS(lengths[i]), values);
            cpu_agrees(c, (Tolerance){ 0, 0 }, "dynamic_quantize_linear");
        }
    }
}
