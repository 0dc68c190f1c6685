/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend's products of f64 and of integers of 32 and 64 bits against the reference. */
#include "graph/kiln-types.h"
#include "ir/instr.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <string.h>

static const Tolerance near = { 1e-13, 1e-13 };

static const KilnDType types[] = { KILN_DTYPE_f64, KILN_DTYPE_i32, KILN_DTYPE_i64, KILN_DTYPE_u32,
                                   KILN_DTYPE_u64 };

typedef struct {
    int rank_a, rank_b, rank;
    int64_t a[4], b[4], out[4];
} Shapes;

static const Shapes shapes[] = {
    { 2, 2, 2, { 1, 1 }, { 1, 1 }, { 1, 1 } },
    { 2, 2, 2, { 5, 7 }, { 7, 3 }, { 5, 3 } },
    { 2, 2, 2, { 8, 64 }, { 64, 33 }, { 8, 33 } },
    { 2, 2, 2, { 3, 0 }, { 0, 5 }, { 3, 5 } },
    { 1, 2, 1, { 9 }, { 9, 20 }, { 20 } },
    { 2, 1, 1, { 6, 9 }, { 9 }, { 6 } },
    { 1, 1, 0, { 9 }, { 9 }, { 0 } },
    { 3, 3, 3, { 4, 5, 6 }, { 4, 6, 17 }, { 4, 5, 17 } },
    { 3, 2, 3, { 4, 5, 6 }, { 6, 17 }, { 4, 5, 17 } },
    { 4, 3, 4, { 2, 1, 5, 6 }, { 3, 6, 4 }, { 2, 3, 5, 4 } },
};

/* Integers of all bits, so that sums wrap. */
static void
add(RefCase *c, KilnDType dtype, int rank, const int64_t *dims)
{
    const uint32_t i = c->instr.n_operands;
    case_in(c, dtype, rank, dims, NULL);
    cpu_fill(c, i, i);
    Random r = { i };
    const int64_t n = kiln_type_elements(&c->buffers[i].type);
    for (int64_t k = 0; dtype != KILN_DTYPE_f64 && k < n; k++) {
        const uint64_t bits = (uint64_t)below(&r, 1u << 28) * 0x9e3779b97f4a7c15u;
        const size_t size = kiln_dtype_size(dtype);
        memcpy((char *)c->data[i] + (size_t)k * size, &bits, size);
    }
}

Test(cpu_gemm_number, matmul)
{
    for (size_t t = 0; t < G_N_ELEMENTS(types); t++) {
        for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
            g_autoptr(RefCase) c = case_new(KILN_INSTR_matmul);
            case_out(c, types[t], shapes[i].rank, shapes[i].out);
            add(c, types[t], shapes[i].rank_a, shapes[i].a);
            add(c, types[t], shapes[i].rank_b, shapes[i].b);
            cpu_agrees(c, near, kiln_dtype_name(types[t]));
        }
    }
}

static void
check_gemm(KilnDType dtype, int transposed, int c_form, float alpha, float beta)
{
    const int64_t m = 6, k = 40, n = 19;
    const int64_t straight_a[] = { m, k }, turned_a[] = { k, m };
    const int64_t straight_b[] = { k, n }, turned_b[] = { n, k }, out[] = { m, n };
    static const int64_t forms[][2] = { { 6, 19 }, { 1, 19 }, { 6, 1 }, { 1, 1 } };
    g_autoptr(RefCase) c = case_new(KILN_INSTR_gemm);
    KilnInstrAttrs_gemm *attrs = CASE_ATTRS(c, gemm);
    attrs->alpha = alpha;
    attrs->beta = beta;
    attrs->transA = transposed & 1;
    attrs->transB = transposed >> 1;
    case_out(c, dtype, 2, out);
    add(c, dtype, 2, attrs->transA ? turned_a : straight_a);
    add(c, dtype, 2, attrs->transB ? turned_b : straight_b);
    if (c_form == 4)
        add(c, dtype, 1, &n);
    else if (c_form < 4)
        add(c, dtype, 2, forms[c_form]);
    cpu_agrees(c, near, kiln_dtype_name(dtype));
}

Test(cpu_gemm_number, gemm)
{
    for (size_t t = 0; t < G_N_ELEMENTS(types); t++) {
        for (int transposed = 0; transposed < 4; transposed++) {
            for (int c_form = 0; c_form < 6; c_form++) {
                check_gemm(types[t], transposed, c_form, 1, 1);
                if (types[t] == KILN_DTYPE_f64)
                    check_gemm(types[t], transposed, c_form, 0.5f, -2);
            }
        }
    }
}

/* --- conv of f64 --- */

typedef struct {
    int rank;
    int64_t in[5], weights[5], out[5], group;
    int64_t stride[3], dilation[3], pads[6];
} Conv;

Test(cpu_gemm_number, conv)
{
    static const Conv convs[] = {
        { 4,
          { 2, 3, 7, 9 },
          { 5, 3, 3, 3 },
          { 2, 5, 7, 9 },
          1,
          { 1, 1 },
          { 1, 1 },
          { 1, 1, 1, 1 } },
        { 4,
          { 1, 6, 8, 8 },
          { 9, 2, 3, 2 },
          { 1, 9, 3, 5 },
          3,
          { 2, 2 },
          { 1, 1 },
          { 0, 1, 0, 2 } },
        { 4,
          { 1, 4, 9, 9 },
          { 4, 1, 3, 3 },
          { 1, 4, 9, 9 },
          4,
          { 1, 1 },
          { 2, 2 },
          { 2, 2, 2, 2 } },
        { 3, { 3, 2, 40 }, { 17, 2, 5 }, { 3, 17, 18 }, 1, { 2 }, { 1 }, { 0, 0 } },
        { 5,
          { 1, 2, 4, 5, 6 },
          { 3, 2, 2, 3, 3 },
          { 1, 3, 5, 3, 4 },
          1,
          { 1, 1, 1 },
          { 1, 1, 1 },
          { 1, 0, 0, 1, 0, 0 } },
        { 4,
          { 0, 3, 4, 4 },
          { 2, 3, 1, 1 },
          { 0, 2, 4, 4 },
          1,
          { 1, 1 },
          { 1, 1 },
          { 0, 0, 0, 0 } },
    };
    for (size_t i = 0; i < 2 * G_N_ELEMENTS(convs); i++) {
        const Conv *v = &convs[i / 2];
        const uint32_t n = (uint32_t)v->rank - 2;
        g_autoptr(RefCase) c = case_new(KILN_INSTR_conv);
        KilnInstrAttrs_conv *attrs = CASE_ATTRS(c, conv);
        attrs->group = v->group;
        attrs->strides = kiln_ints_make(c->arena, v->stride, n);
        attrs->dilations = kiln_ints_make(c->arena, v->dilation, n);
        attrs->pads = kiln_ints_make(c->arena, v->pads, 2 * n);
        case_out(c, KILN_DTYPE_f64, v->rank, v->out);
        add(c, KILN_DTYPE_f64, v->rank, v->in);
        add(c, KILN_DTYPE_f64, v->rank, v->weights);
        if (i % 2)
            add(c, KILN_DTYPE_f64, 1, v->weights);
        cpu_agrees(c, near, "conv");
    }
}
