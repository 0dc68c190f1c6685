/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights of the cpu target are good for all extents of the other operands. For each kernel
 * that packs, a table has weights, and extents around them. Of each form that some extents prefer,
 * the packed bytes are the same for all extents, and all extents run with it. */
#include "backends/cpu/cpu.h"
#include "ir/kernel.h"
#include "ir/target.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is not of the packed operands. */
typedef struct {
    int64_t batch; /* images, matrices, or rows of a recurrent net */
    int64_t y, x;  /* of an image; y alone: rows of a matrix, or steps */
} Extents;

// clang-format off
static const Extents rows[] = {
    { 1, 1, 1 }, { 1, 2, 1 }, { 1, 3, 1 }, { 1, 5, 1 }, { 1, 7, 1 }, { 1, 16, 1 }, { 1, 64, 1 }, { 1, 333, 1 }, { 1, 2048, 1 },
    { 3, 1, 1 }, { 3, 2, 1 }, { 4, 16, 1 }, { 2, 333, 1 },
};
static const Extents images[] = {
    { 1, 1, 1 }, { 1, 1, 2 }, { 1, 2, 2 }, { 1, 3, 3 }, { 1, 4, 4 }, { 1, 5, 9 }, { 1, 7, 7 },
    { 1, 8, 8 }, { 1, 13, 16 }, { 1, 14, 14 }, { 1, 17, 16 }, { 1, 28, 28 }, { 1, 33, 40 },
    { 1, 64, 64 }, { 1, 1, 64 }, { 1, 64, 1 }, { 2, 1, 1 }, { 7, 1, 1 }, { 7, 2, 3 }, { 3, 7, 7 },
    { 16, 7, 7 }, { 2, 33, 33 }, { 2, 64, 48 },
};
static const Extents sequences[] = {
    { 1, 1, 1 }, { 1, 2, 1 }, { 1, 7, 1 }, { 1, 64, 1 }, { 1, 300, 1 }, { 2, 3, 1 }, { 5, 64, 1 }, { 64, 4, 1 }, { 300, 2, 1 },
};
// clang-format on

static void
fill_bytes(RefCase *c)
{
    uint32_t i = c->instr.n_operands - 1, state = i;
    for (int64_t k = 0; k < kiln_type_bytes(&c->buffers[i].type); k++) {
        state = state * 1664525u + 1013904223u;
        ((uint8_t *)c->data[i])[k] = (uint8_t)(state >> 24);
    }
}

/* An operand of any type with values that depend on its number and its extents alone. */
static void
operand(RefCase *c, KilnDType dtype, int rank, const int64_t *dims)
{
    case_in(c, dtype, rank, dims, NULL);
    if (kiln_dtype_is_float(dtype))
        cpu_fill(c, c->instr.n_operands - 1, c->instr.n_operands);
    else
        fill_bytes(c);
}

/* --- products --- */

typedef struct {
    int64_t n, k;
    KilnDType dtype;
    bool transposed; /* of gemm */
    int64_t matrices;
} Matrix;

// clang-format off
static const Matrix matrices[] = {
    { 100, 70, KILN_DTYPE_f32, false, 1 },
    { 17, 300, KILN_DTYPE_f32, true, 1 },
    { 1, 64, KILN_DTYPE_f32, false, 1 },
    { 5, 40, KILN_DTYPE_f32, true, 1 },
    { 96, 515, KILN_DTYPE_f32, false, 1 },
    { 33, 300, KILN_DTYPE_f16, true, 1 },
    { 17, 300, KILN_DTYPE_bf16, false, 1 },
    { 2, 90, KILN_DTYPE_f16, false, 1 },
    { 64, 270, KILN_DTYPE_bf16, true, 1 },
    { 20, 40, KILN_DTYPE_f16, false, 3 },
};
static const Matrix bytes_matrices[] = {
    { 100, 70, KILN_DTYPE_i8, false, 1 }, { 17, 33, KILN_DTYPE_u8, true, 1 },
    { 1, 64, KILN_DTYPE_i8, false, 1 }, { 64, 128, KILN_DTYPE_u8, true, 1 },
};
// clang-format on

static RefCase *
matmul_of(KilnInstrKind kind, const Matrix *m, const Extents *e, KilnDType out, KilnDType in)
{
    RefCase *c = case_new(kind);
    if (m->matrices > 1) {
        case_out(c, out, DIMS(e->batch, m->matrices, e->y, m->n));
        operand(c, in, DIMS(e->batch, m->matrices, e->y, m->k));
        operand(c, m->dtype, DIMS(m->matrices, m->k, m->n));
        return c;
    }
    case_out(c, out, DIMS(e->batch, e->y, m->n));
    operand(c, in, DIMS(e->batch, e->y, m->k));
    operand(c, m->dtype, DIMS(m->k, m->n));
    return c;
}

static RefCase *
matmul(uint32_t i, const Extents *e)
{
    return matmul_of(KILN_INSTR_matmul, &matrices[i], e, KILN_DTYPE_f32, KILN_DTYPE_f32);
}

static RefCase *
matmul_integer(uint32_t i, const Extents *e)
{
    return matmul_of(KILN_INSTR_matmul_integer, &bytes_matrices[i], e, KILN_DTYPE_i32,
                     KILN_DTYPE_u8);
}

static RefCase *
gemm_of(const Matrix *m, const Extents *e, KilnDType out, KilnDType in)
{
    RefCase *c = case_new(KILN_INSTR_gemm);
    const int64_t n_rows = e->batch * e->y;
    CASE_ATTRS(c, gemm)->transB = m->transposed;
    case_out(c, out, DIMS(n_rows, m->n));
    operand(c, in, DIMS(n_rows, m->k));
    operand(c, m->dtype, DIMS(m->transposed ? m->n : m->k, m->transposed ? m->k : m->n));
    return c;
}

static RefCase *
gemm(uint32_t i, const Extents *e)
{
    RefCase *c = gemm_of(&matrices[i], e, KILN_DTYPE_f32, KILN_DTYPE_f32);
    if (i % 2)
        operand(c, KILN_DTYPE_f32, DIMS(e->batch * e->y, 1));
    else
        operand(c, KILN_DTYPE_f32, DIMS(matrices[i].n));
    return c;
}

/* n, k, bits, block, element type of the zero points (string: there are none) */
static const struct {
    int64_t n, k, bits, block;
    KilnDType zeros;
} nbits[] = { { 100, 300, 4, 32, KILN_DTYPE_string }, { 17, 600, 4, 128, KILN_DTYPE_u8 },
              { 33, 270, 8, 16, KILN_DTYPE_u8 },      { 5, 515, 2, 64, KILN_DTYPE_f32 },
              { 40, 90, 4, 10, KILN_DTYPE_f32 },      { 1, 64, 8, 64, KILN_DTYPE_string } };

static RefCase *
matmul_nbits(uint32_t i, const Extents *e)
{
    const int64_t n = nbits[i].n, blocks = (nbits[i].k - 1) / nbits[i].block + 1;
    const bool bytes = nbits[i].zeros == KILN_DTYPE_u8;
    RefCase *c = case_new(KILN_INSTR_matmul_nbits);
    CASE_ATTRS(c, matmul_nbits)->K = nbits[i].k;
    CASE_ATTRS(c, matmul_nbits)->N = n;
    CASE_ATTRS(c, matmul_nbits)->bits = nbits[i].bits;
    CASE_ATTRS(c, matmul_nbits)->block_size = nbits[i].block;
    case_out(c, KILN_DTYPE_f32, DIMS(e->batch, e->y, n));
    operand(c, KILN_DTYPE_f32, DIMS(e->batch, e->y, nbits[i].k));
    operand(c, KILN_DTYPE_u8, DIMS(n, blocks, nbits[i].block * nbits[i].bits / 8));
    operand(c, KILN_DTYPE_f32, DIMS(n, blocks));
    if (nbits[i].zeros != KILN_DTYPE_string)
        operand(c, nbits[i].zeros, DIMS(n, bytes ? (blocks * nbits[i].bits - 1) / 8 + 1 : blocks));
    else
        case_absent(c);
    operand(c, KILN_DTYPE_f32, DIMS(n));
    return c;
}

/* --- convolutions --- */

typedef struct {
    int64_t ic, oc, group, kernel[2], stride[2], dilation[2], pad[4];
} Window;

// clang-format off
static const Window windows[] = {
    { 24, 40, 1, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } },
    { 64, 48, 1, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 } },
    { 300, 33, 1, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 } },
    { 20, 36, 1, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1, 1, 1 } },
    { 64, 64, 1, { 3, 3 }, { 1, 1 }, { 12, 12 }, { 12, 12, 12, 12 } },
    { 24, 36, 4, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } },
    { 9, 18, 9, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } },
    { 3, 16, 1, { 7, 7 }, { 2, 2 }, { 1, 1 }, { 3, 3, 3, 3 } },
    { 12, 20, 1, { 2, 3 }, { 2, 1 }, { 1, 1 }, { 0, 1, 1, 0 } },
    { 128, 130, 1, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } },
    { 70, 30, 1, { 2, 2 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 } },
};
static const Window transposed_windows[] = {
    { 8, 6, 1, { 2, 2 }, { 2, 2 }, { 1, 1 }, { 0, 0, 0, 0 } },
    { 16, 70, 1, { 4, 4 }, { 2, 2 }, { 1, 1 }, { 1, 1, 1, 1 } },
    { 12, 30, 2, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } },
    { 100, 24, 1, { 4, 4 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 } },
    { 6, 5, 1, { 5, 3 }, { 3, 2 }, { 1, 2 }, { 2, 1, 0, 1 } },
};
static const Window winograd_windows[] = {
    { 24, 40, 1, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } },
    { 70, 230, 1, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } },
    { 5, 3, 1, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 2, 2, 2, 2 } },
};
static const Window bytes_windows[] = {
    { 24, 40, 1, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 } },
    { 64, 48, 1, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0, 0, 0 } },
    { 9, 9, 9, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1, 1, 1 } },
    { 24, 36, 4, { 3, 2 }, { 1, 2 }, { 2, 1 }, { 1, 1, 1, 1 } },
};
// clang-format on

static int64_t
out_dim(const Window *w, int d, int64_t in, bool transposed)
{
    int64_t reach = (w->kernel[d] - 1) * w->dilation[d] + 1, pads = w->pad[d] + w->pad[d + 2];
    if (transposed)
        return (in - 1) * w->stride[d] + reach - pads;
    return in + pads < reach ? 0 : (in + pads - reach) / w->stride[d] + 1;
}

#define SET_WINDOW(c, id, w)                                                                       \
    do {                                                                                           \
        KilnInstrAttrs_##id *attrs_ = CASE_ATTRS(c, id);                                           \
        attrs_->group = (w)->group;                                                                \
        attrs_->strides = CASE_INTS(c, (w)->stride[0], (w)->stride[1]);                            \
        attrs_->dilations = CASE_INTS(c, (w)->dilation[0], (w)->dilation[1]);                      \
        attrs_->pads = CASE_INTS(c, (w)->pad[0], (w)->pad[1], (w)->pad[2], (w)->pad[3]);           \
    } while (0)

/* NULL where the window does not fit the image. */
static RefCase *
window_case(KilnInstrKind kind, const Window *w, const Extents *e, const KilnDType dtypes[3])
{
    bool transposed = kind == KILN_INSTR_conv_transpose;
    int64_t y = out_dim(w, 0, e->y, transposed), x = out_dim(w, 1, e->x, transposed);
    if (y < 1 || x < 1)
        return NULL;
    RefCase *c = case_new(kind);
    if (transposed)
        SET_WINDOW(c, conv_transpose, w);
    else if (kind == KILN_INSTR_conv_integer)
        SET_WINDOW(c, conv_integer, w);
    else
        SET_WINDOW(c, conv, w);
    case_out(c, dtypes[0], DIMS(e->batch, w->oc, y, x));
    operand(c, dtypes[1], DIMS(e->batch, w->ic, e->y, e->x));
    operand(c, dtypes[2],
            DIMS(transposed ? w->ic : w->oc, (transposed ? w->oc : w->ic) / w->group, w->kernel[0],
                 w->kernel[1]));
    return c;
}

static const KilnDType floats[] = { KILN_DTYPE_f32, KILN_DTYPE_f32, KILN_DTYPE_f32 };

static RefCase *
conv(uint32_t i, const Extents *e)
{
    return window_case(KILN_INSTR_conv, &windows[i], e, floats);
}

static RefCase *
conv_transpose(uint32_t i, const Extents *e)
{
    return window_case(KILN_INSTR_conv_transpose, &transposed_windows[i], e, floats);
}

static RefCase *
conv_winograd(uint32_t i, const Extents *e)
{
    RefCase *c = window_case(KILN_INSTR_conv, &winograd_windows[i], e, floats);
    if (c)
        CASE_ATTRS(c, conv)->algorithm = "winograd";
    return c;
}

static RefCase *
conv_integer(uint32_t i, const Extents *e)
{
    static const KilnDType dtypes[] = { KILN_DTYPE_i32, KILN_DTYPE_u8, KILN_DTYPE_i8 };
    return window_case(KILN_INSTR_conv_integer, &bytes_windows[i], e, dtypes);
}

/* --- quantized --- */

static RefCase *
quantize(RefCase *c)
{
    static const float scales[] = { 3.0f, 0.02f, 0.05f };
    static const int32_t zeros[] = { 3, 100, 0 };
    static const KilnQuant quants[] = { { -1, 1, (float *)scales, (int32_t *)zeros },
                                        { -1, 1, (float *)scales + 1, (int32_t *)zeros + 1 },
                                        { -1, 1, (float *)scales + 2, (int32_t *)zeros + 2 } };
    for (uint32_t i = 0; c && i < 3; i++)
        c->buffers[i].type.quant = &quants[i];
    return c;
}

static RefCase *
matmul_quantized(uint32_t i, const Extents *e)
{
    return quantize(
        matmul_of(KILN_INSTR_matmul, &bytes_matrices[i], e, KILN_DTYPE_u8, KILN_DTYPE_u8));
}

static RefCase *
gemm_quantized(uint32_t i, const Extents *e)
{
    return quantize(gemm_of(&bytes_matrices[i], e, KILN_DTYPE_u8, KILN_DTYPE_u8));
}

static RefCase *
conv_quantized(uint32_t i, const Extents *e)
{
    static const KilnDType dtypes[] = { KILN_DTYPE_u8, KILN_DTYPE_u8, KILN_DTYPE_i8 };
    return quantize(window_case(KILN_INSTR_conv, &bytes_windows[i], e, dtypes));
}

/* --- recurrent nets --- */

// clang-format off
static const struct {
    int64_t input, hidden;
    bool linear_before_reset; /* of gru */
} nets[] = { { 7, 20, false }, { 300, 1, true }, { 60, 17, false } };
// clang-format on

static RefCase *
recurrent(KilnInstrKind kind, uint32_t i, const Extents *e)
{
    bool lstm = kind == KILN_INSTR_lstm;
    int64_t n = nets[i].hidden, d = i == 0 ? 2 : 1;
    int64_t gates = n * (lstm ? 4 : kind == KILN_INSTR_gru ? 3 : 1);
    RefCase *c = case_new(kind);
    CASE_ATTRS(c, rnn)->direction = d == 2 ? "bidirectional" : "forward";
    CASE_ATTRS(c, rnn)->hidden_size = n;
    if (kind == KILN_INSTR_gru)
        CASE_ATTRS(c, gru)->linear_before_reset = nets[i].linear_before_reset;
    case_out(c, KILN_DTYPE_f32, DIMS(e->y, d, e->batch, n));
    for (int k = 0; k < (lstm ? 2 : 1); k++)
        case_out(c, KILN_DTYPE_f32, DIMS(d, e->batch, n));
    operand(c, KILN_DTYPE_f32, DIMS(e->y, e->batch, nets[i].input));
    operand(c, KILN_DTYPE_f32, DIMS(d, gates, nets[i].input));
    operand(c, KILN_DTYPE_f32, DIMS(d, gates, n));
    for (uint32_t w = c->instr.n_operands - 2; w < c->instr.n_operands; w++) {
        float *weights = c->data[w]; /* so small that gates do not saturate */
        for (int64_t k = 0; k < kiln_type_elements(&c->buffers[w].type); k++)
            weights[k] *= 0.03f;
    }
    return c;
}

static RefCase *
lstm(uint32_t i, const Extents *e)
{
    return recurrent(KILN_INSTR_lstm, i, e);
}

static RefCase *
gru(uint32_t i, const Extents *e)
{
    return recurrent(KILN_INSTR_gru, i, e);
}

static RefCase *
rnn(uint32_t i, const Extents *e)
{
    return recurrent(KILN_INSTR_rnn, i, e);
}

/* --- trees --- */

/* Of three features: two tests and three leaves; one leaf. */
static RefCase *
trees(uint32_t i, const Extents *e)
{
    static const double roots[] = { 0, 5 }, features[] = { 2, 0, 0, 0, 0, 0 };
    static const double splits[] = { 0.5, -1, 0, 0, 0, 0 }, children[] = { 1, 3, 2, 3, 4, 5 };
    static const double starts[] = { 0, 0, 0, 1, 2, 3, 4 }, targets[] = { 0, 1, 0, 1 };
    static const double missing[6], weights[] = { 0.5, -2, 3, 0.25 }, one[4];
    const KilnDType dtype = i / 2 ? KILN_DTYPE_f64 : KILN_DTYPE_f32, index = KILN_DTYPE_i32;
    RefCase *c = case_new(KILN_INSTR_tree_ensemble);
    CASE_ATTRS(c, tree_ensemble)->n_targets = i % 2 + 1;
    case_out(c, dtype, DIMS(e->batch * e->y, i % 2 + 1));
    operand(c, dtype, DIMS(e->batch * e->y, 3));
    case_in(c, index, DIMS(2), roots);
    case_in(c, index, DIMS(6), features);
    case_in(c, dtype, DIMS(6), splits);
    case_in(c, index, DIMS(6), children);
    case_in(c, KILN_DTYPE_bool, DIMS(6), missing);
    case_in(c, index, DIMS(7), starts);
    case_in(c, index, DIMS(4), i % 2 ? targets : one);
    case_in(c, dtype, DIMS(4), weights);
    return c;
}

/* --- elements of few bits --- */

// clang-format off
static const KilnDType packed_types[] = { KILN_DTYPE_i4, KILN_DTYPE_u2, KILN_DTYPE_f6e2m3, KILN_DTYPE_f4e2m1 };
static const Extents no_others[] = { { 1, 1, 1 } };
// clang-format on

/* The data is the weight, and its scales have no other extents. */
static RefCase *
dequantize(uint32_t i, const Extents *e)
{
    (void)e;
    RefCase *c = case_new(KILN_INSTR_dequantize_linear);
    CASE_ATTRS(c, dequantize_linear)->block_size = 32;
    case_out(c, KILN_DTYPE_f32, DIMS(13, 333));
    case_in(c, packed_types[i], DIMS(13, 333), NULL);
    fill_bytes(c);
    operand(c, KILN_DTYPE_f32, DIMS(13, 11));
    return c;
}

/* --- the table --- */

typedef struct {
    const char *kernel;
    KilnInstrKind instr;
    RefCase *(*make)(uint32_t weights, const Extents *e); /* NULL where there is no such case */
    size_t n_weights;
    const Extents *extents;
    size_t n_extents;
    Tolerance tolerance;
} Row;

#define LIST(array) G_N_ELEMENTS(array)
#define OVER(extents_) .extents = (extents_), .n_extents = G_N_ELEMENTS(extents_)
#define CLOSE                                                                                      \
    {                                                                                              \
        2e-4, 1e-5                                                                                 \
    }

// clang-format off
static const Row table[] = {
    { "cpu:conv", KILN_INSTR_conv, conv, LIST(windows), OVER(images), CLOSE },
    { "cpu:conv_integer", KILN_INSTR_conv_integer, conv_integer, LIST(bytes_windows), OVER(images), { 0, 0 } },
    { "cpu:conv_quantized", KILN_INSTR_conv, conv_quantized, LIST(bytes_windows), OVER(images), { 0, 0 } },
    { "cpu:conv_transpose", KILN_INSTR_conv_transpose, conv_transpose, LIST(transposed_windows), OVER(images), CLOSE },
    { "cpu:conv_winograd", KILN_INSTR_conv, conv_winograd, LIST(winograd_windows), OVER(images), { 2e-3, 1e-4 } },
    { "cpu:dequantize_linear", KILN_INSTR_dequantize_linear, dequantize, LIST(packed_types), OVER(no_others), { 0, 0 } },
    { "cpu:gemm", KILN_INSTR_gemm, gemm, LIST(matrices) - 1, OVER(rows), CLOSE },
    { "cpu:gemm_quantized", KILN_INSTR_gemm, gemm_quantized, LIST(bytes_matrices), OVER(rows), { 0, 0 } },
    { "cpu:matmul", KILN_INSTR_matmul, matmul, LIST(matrices), OVER(rows), CLOSE },
    { "cpu:matmul_integer", KILN_INSTR_matmul_integer, matmul_integer, LIST(bytes_matrices), OVER(rows), { 0, 0 } },
    { "cpu:matmul_nbits", KILN_INSTR_matmul_nbits, matmul_nbits, LIST(nbits), OVER(rows), { 5e-2, 1e-5 } },
    { "cpu:matmul_quantized", KILN_INSTR_matmul, matmul_quantized, LIST(bytes_matrices), OVER(rows), { 0, 0 } },
    { "cpu:recurrent", KILN_INSTR_gru, gru, LIST(nets), OVER(sequences), { 1e-5, 1e-5 } },
    { "cpu:recurrent", KILN_INSTR_lstm, lstm, LIST(nets), OVER(sequences), { 1e-5, 1e-5 } },
    { "cpu:recurrent", KILN_INSTR_rnn, rnn, LIST(nets), OVER(sequences), { 1e-5, 1e-5 } },
    { "cpu:tree_ensemble", KILN_INSTR_tree_ensemble, trees, 4, OVER(rows), { 0, 0 } },
};
// clang-format on

static const Row *
row_of(const KilnKernel *kernel)
{
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
        if (table[i].instr == kernel->instr && strcmp(table[i].kernel, kernel->name) == 0)
            return &table[i];
    }
    return NULL;
}

Test(cpu_forms, every_kernel_that_packs_is_in_the_table)
{
    const KilnTarget *target = kiln_cpu_target();
    size_t n = 0;
    for (uint32_t i = 0; i < target->n_kernels; i++) {
        const KilnKernel *kernel = &target->kernels[i];
        if (!kernel->pack)
            continue;
        cr_expect(row_of(kernel), "%s of %s is not in the table", kernel->name,
                  kiln_instr_info(kernel->instr)->name);
        n++;
    }
    cr_expect_eq(n, G_N_ELEMENTS(table));
}

/* --- what is checked --- */

/* The weights of a row, and what each form of them is packed to. */
typedef struct {
    const Row *row;
    uint32_t weights;
    bool wanted[KILN_KERNEL_FORMS]; /* by some extents */
    void *packed[KILN_KERNEL_FORMS];
    size_t bytes[KILN_KERNEL_FORMS];
} Packed;

static RefCase *
make(const Packed *p, size_t e)
{
    RefCase *c = p->row->make(p->weights, &p->row->extents[e]);
    if (!c)
        return NULL;
    const KilnKernel *any = kiln_target_find(kiln_cpu_target(), &c->instr);
    for (uint32_t i = 1; i < c->instr.n_operands; i++) /* weights behind the first input */
        c->buffers[i].is_const = any && i >= 2 && (any->packs >> i & 1);
    cr_assert_str_eq(cpu_kernel(c)->name, p->row->kernel);
    return c;
}

static char *
describe(const Packed *p, size_t e, uint32_t form, const char *what)
{
    const Extents *at = &p->row->extents[e];
    return g_strdup_printf("%s, weights %u, extents %d %d %d, form %u%s", p->row->kernel,
                           p->weights, (int)at->batch, (int)at->y, (int)at->x, form, what);
}

static void *
pack(const RefCase *c, uint32_t form, size_t *bytes)
{
    const KilnKernel *kernel = cpu_kernel(c);
    const void *sources[CASE_MAX_OPERANDS] = { NULL };
    for (uint32_t i = 0; i < c->instr.n_operands; i++)
        sources[i] = kernel->packs >> i & 1 ? c->data[i] : NULL;
    *bytes = kernel->packed_bytes(&c->instr, form);
    return cpu_pack_in(c, kernel, form, sources, 1);
}

/* The same bytes as for the extents before. */
static void
check_packed(Packed *p, const RefCase *c, size_t e, uint32_t form)
{
    g_autofree char *what = describe(p, e, form, "");
    size_t bytes;
    void *packed = pack(c, form, &bytes);
    cr_assert_gt(bytes, 0, "%s", what);
    if (!p->packed[form]) {
        p->packed[form] = packed;
        p->bytes[form] = bytes;
        return;
    }
    cr_assert_eq(bytes, p->bytes[form], "%s: %zu bytes, earlier %zu", what, bytes, p->bytes[form]);
    cr_assert_eq(memcmp(packed, p->packed[form], bytes), 0, "%s: other bytes", what);
    free(packed);
}

static void
check_run(const Packed *p, RefCase *c, const CpuCall *call, size_t e)
{
    void *out[CASE_MAX_OPERANDS] = { NULL };
    g_autofree char *what = describe(p, e, call->form, call->fitted ? ", fitted" : "");
    const char *error = cpu_run(c, call, out);
    cr_assert_null(error, "%s: %s", what, error);
    for (uint32_t i = 0; i < c->instr.n_operands; i++) {
        if (out[i])
            cpu_compare(c, i, out[i], p->row->tolerance, what);
    }
    cpu_free(out);
}

static void
check_extents(Packed *p, size_t e)
{
    g_autoptr(RefCase) c = make(p, e);
    if (!c)
        return;
    const KilnFitted *fitted = cpu_kernel(c)->fitted;
    cr_assert_null(case_run(c));
    for (uint32_t form = 0; form < KILN_KERNEL_FORMS; form++) {
        if (!p->wanted[form])
            continue;
        check_packed(p, c, e, form);
        for (int threads = 1; threads <= 2; threads++)
            check_run(p, c, &(CpuCall){ threads, .packed = true, .form = form }, e);
        if (fitted && cpu_fits(c, fitted, form))
            check_run(p, c, &(CpuCall){ 2, .packed = true, .form = form, .fitted = fitted }, e);
    }
}

/* True where several forms are wanted. */
static bool
check_weights(const Row *row, uint32_t weights)
{
    Packed p = { .row = row, .weights = weights };
    int n = 0;
    for (size_t e = 0; e < row->n_extents; e++) {
        g_autoptr(RefCase) c = make(&p, e);
        uint32_t form = c ? kiln_kernel_form(cpu_kernel(c), &c->instr) : 0;
        cr_assert_lt(form, KILN_KERNEL_FORMS);
        n += c && !p.wanted[form];
        p.wanted[form] |= c != NULL;
    }
    for (size_t e = 0; e < row->n_extents; e++)
        check_extents(&p, e);
    for (int form = 0; form < KILN_KERNEL_FORMS; form++)
        free(p.packed[form]);
    return n > 1;
}

static void
check(const char *name)
{
    const KilnKernel *kernel = NULL;
    bool several = false;
    for (size_t r = 0; r < G_N_ELEMENTS(table); r++) {
        if (strcmp(table[r].kernel, name) != 0)
            continue;
        for (uint32_t w = 0; w < table[r].n_weights; w++)
            several |= check_weights(&table[r], w);
        const Packed any = { .row = &table[r] };
        g_autoptr(RefCase) c = make(&any, table[r].n_extents - 1);
        kernel = cpu_kernel(c);
    }
    cr_assert(kernel);
    cr_expect_eq(several, kernel->form != NULL, "%s: several forms: %d", name, several);
}

Test(cpu_forms, conv)
{
    check("cpu:conv");
}

Test(cpu_forms, conv_transpose)
{
    check("cpu:conv_transpose");
}

Test(cpu_forms, conv_winograd)
{
    check("cpu:conv_winograd");
}

/* Weights of the first run that are not finite are packed for the direct way. */
Test(cpu_forms, spare)
{
    const Row *row = NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++)
        row = strcmp(table[i].kernel, "cpu:conv_winograd") == 0 ? &table[i] : row;
    cr_assert(row);
    const Packed p = { .row = row };
    for (size_t e = 0; e < row->n_extents; e++) {
        g_autoptr(RefCase) c = make(&p, e);
        c->buffers[2].kind = KILN_BUFFER_INPUT;
        ((float *)c->data[2])[5] = INFINITY;
        const KilnFitted *spare = cpu_kernel(c)->spare;
        cr_assert(cpu_fits(c, spare, 0));
        cr_assert_null(case_run(c));
        check_run(&p, c, &(CpuCall){ 2, .packed = true, .fitted = spare }, e);
    }
}

Test(cpu_forms, products)
{
    check("cpu:gemm");
    check("cpu:matmul");
}

Test(cpu_forms, recurrent)
{
    check("cpu:recurrent");
}

Test(cpu_forms, trees)
{
    check("cpu:tree_ensemble");
}

Test(cpu_forms, bytes)
{
    check("cpu:conv_integer");
    check("cpu:conv_quantized");
    check("cpu:gemm_quantized");
    check("cpu:matmul_integer");
    check("cpu:matmul_quantized");
}

Test(cpu_forms, few_bits)
{
    check("cpu:matmul_nbits");
}
