/* SPDX-License-Identifier: Apache-2.0 */
/* Random instructions of the cpu target's products, recurrent nets and normalizations against the
 * reference kernels: extents around the widths of vectors and tiles, none, batches that are
 * broadcast, operands that are absent, weights in 16 bits, NaN and infinities. */
#include "graph/base/number.h"
#include "ir/instr.h"
#include "ir/tail.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    CASES = 250,
    CASES_LONG = 4000
};

static uint32_t
n_cases(void)
{
    return getenv("KILN_TEST_LONG") ? CASES_LONG : CASES;
}

/* An extent: mostly near a width of vectors or tiles, sometimes none. */
static int64_t
extent(Random *r, int64_t most)
{
    static const int64_t widths[] = { 1, 4, 6, 8, 14, 16, 32, 48, 64, 256 };
    int64_t n = below(r, 3) ? widths[below(r, G_N_ELEMENTS(widths))] + below(r, 3) - 1
                            : below(r, (uint32_t)most + 1);
    return n > most ? most : n;
}

/* Small whole numbers and quarters, whose sums are exact whatever the order; with @wild now and
   then what is no number, too big for sums, or a zero with a sign. */
static void
fill(RefCase *c, uint32_t i, Random *r, bool wild)
{
    static const double odd[] = { NAN, INFINITY, -INFINITY, -0.0, 1e-41, -1e-41 };
    const KilnType *type = &c->buffers[i].type;
    for (int64_t k = 0; k < kiln_type_elements(type); k++) {
        double x = ((double)below(r, 17) - 8) / 4;
        if (wild && below(r, 40) == 0)
            x = odd[below(r, G_N_ELEMENTS(odd))];
        kiln_element_store_f64(type->dtype, c->data[i], k, x);
    }
}

static void
add_in(RefCase *c, KilnDType dtype, int rank, const int64_t *dims, Random *r, bool wild)
{
    case_in(c, dtype, rank, dims, NULL);
    fill(c, c->instr.n_operands - 1, r, wild);
}

/* Problems that @make draws from @seed on; every eighth has odd numbers. */
static void
agree(uint32_t seed, RefCase *(*make)(Random *r, bool wild), Tolerance tolerance)
{
    Random r = { seed };
    for (uint32_t i = 0; i < n_cases(); i++) {
        g_autoptr(RefCase) c = make(&r, i % 8 == 7);
        g_autofree char *what = g_strdup_printf("case %u", i);
        cpu_agrees(c, tolerance, what);
    }
}

static KilnDType
stored(Random *r)
{
    static const KilnDType dtypes[] = { KILN_DTYPE_f32, KILN_DTYPE_bf16, KILN_DTYPE_f16 };
    return dtypes[below(r, 2) ? 0 : below(r, 3)];
}

/* Of matmul and gemm. */
static void
add_tail(RefCase *c, int rank, const int64_t *dims, Random *r, bool wild)
{
    static const char *const tails[] = { "none", "none", "relu", "clip" };
    static float bounds[] = { -2.5f, 7.0f };
    const char *tail = tails[below(r, 4)];
    if (below(r, 2))
        add_in(c, KILN_DTYPE_f32, rank, dims, r, wild);
    else
        case_absent(c);
    const KilnTailFields fields = kiln_tail_fields(c->instr.kind, c->instr.attrs);
    *fields.activation = tail;
    if (strcmp(tail, "clip") == 0)
        *fields.params = (KilnFloats){ 2, bounds };
}

static const Tolerance none = { 1e-40, 0 };

/* matmul: op(A) and op(B) have up to two batch dims, each of which may be broadcast, or one dim. */
static RefCase *
matmul_case(Random *r, bool wild)
{
    int64_t m = extent(r, 70), n = extent(r, 70), k = extent(r, 300);
    int rank_a = 1 + (int)below(r, 4), rank_b = 1 + (int)below(r, 4);
    int64_t batch[2] = { below(r, 4), 1 + below(r, 3) }, a[4], b[4], out[4];
    int rank = 0, batch_a = rank_a > 2 ? rank_a - 2 : 0, batch_b = rank_b > 2 ? rank_b - 2 : 0;
    for (int d = 2 - MAX(batch_a, batch_b); d < 2; d++) {
        int at_a = d - 2 + batch_a, at_b = d - 2 + batch_b;
        int64_t of_a = below(r, 3) ? batch[d] : 1, of_b = below(r, 3) ? batch[d] : 1;
        if (at_a >= 0)
            a[at_a] = of_a;
        if (at_b >= 0)
            b[at_b] = of_b;
        out[rank++] = at_a < 0 ? of_b : at_b < 0 || of_b == 1 ? of_a : of_b;
    }
    a[rank_a - 1] = k;
    if (rank_a > 1)
        a[rank_a - 2] = out[rank++] = m;
    b[rank_b > 1 ? rank_b - 2 : 0] = k;
    if (rank_b > 1)
        b[rank_b - 1] = out[rank++] = n;
    RefCase *c = case_new(KILN_INSTR_matmul);
    case_out(c, KILN_DTYPE_f32, rank, out);
    add_in(c, KILN_DTYPE_f32, rank_a, a, r, wild);
    add_in(c, stored(r), rank_b, b, r, wild);
    add_tail(c, rank, out, r, wild);
    return c;
}

static RefCase *
gemm_case(Random *r, bool wild)
{
    static const float factors[] = { 1, 1, 0, -0.5f, 2 };
    int64_t m = extent(r, 70), n = extent(r, 70), k = extent(r, 600);
    RefCase *c = case_new(KILN_INSTR_gemm);
    KilnInstrAttrs_gemm *attrs = CASE_ATTRS(c, gemm);
    attrs->transA = below(r, 2);
    attrs->transB = below(r, 2);
    attrs->alpha = factors[below(r, 5)];
    attrs->beta = factors[below(r, 5)];
    case_out(c, KILN_DTYPE_f32, DIMS(m, n));
    add_in(c, KILN_DTYPE_f32, 2, attrs->transA ? (int64_t[]){ k, m } : (int64_t[]){ m, k }, r,
           wild);
    add_in(c, stored(r), 2, attrs->transB ? (int64_t[]){ n, k } : (int64_t[]){ k, n }, r, wild);
    int64_t bias[] = { below(r, 2) ? m : 1, below(r, 2) ? n : 1 };
    int rank = (int)below(r, 3);
    if (below(r, 4))
        add_in(c, KILN_DTYPE_f32, rank, bias + 2 - rank, r, wild);
    else
        case_absent(c);
    add_tail(c, DIMS(m, n), r, wild);
    return c;
}

Test(cpu_random, products)
{
    agree(1, gemm_case, none);
    agree(4, matmul_case, none);
}

/* --- layer_normalization, rms_normalization --- */

static RefCase *
norm_case(Random *r, bool wild)
{
    bool layer = below(r, 2);
    int rank = 1 + (int)below(r, 3), axis = (int)below(r, (uint32_t)rank);
    int64_t dims[3], stats[3];
    for (int d = 0; d < rank; d++) {
        dims[d] = extent(r, rank == 1 ? 300 : 40);
        stats[d] = d < axis ? dims[d] : 1;
    }
    RefCase *c = case_new(layer ? KILN_INSTR_layer_normalization : KILN_INSTR_rms_normalization);
    CASE_ATTRS(c, layer_normalization)->axis = below(r, 2) ? axis : axis - rank;
    case_out(c, KILN_DTYPE_f32, rank, dims);
    add_in(c, KILN_DTYPE_f32, rank, dims, r, wild);
    add_in(c, KILN_DTYPE_f32, rank - axis, dims + axis, r, wild);
    if (layer) {
        if (below(r, 2))
            add_in(c, KILN_DTYPE_f32, rank - axis, dims + axis, r, wild);
        else
            case_absent(c);
        for (int i = 0; i < 2; i++) {
            if (below(r, 2))
                case_out(c, KILN_DTYPE_f32, rank, stats);
            else
                case_absent(c);
        }
    }
    if (below(r, 2))
        add_in(c, KILN_DTYPE_f32, rank, dims, r, wild);
    return c;
}

Test(cpu_random, norms)
{
    agree(2, norm_case, (Tolerance){ 1e-5, 1e-5 });
}

/* Nothing is normalized, however often. */
Test(cpu_random, many_empty_runs, .timeout = 30)
{
    static const KilnInstrKind kinds[] = { KILN_INSTR_layer_normalization,
                                           KILN_INSTR_rms_normalization,
                                           KILN_INSTR_batch_normalization, KILN_INSTR_lrn };
    const int64_t many = INT64_C(1) << 40;
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        bool runs = i < 2;
        g_autoptr(RefCase) c = case_new(kinds[i]);
        case_out(c, KILN_DTYPE_f32, DIMS(many, 1, 0));
        case_in(c, KILN_DTYPE_f32, DIMS(many, 1, 0), NULL);
        for (int k = 0; k < (runs ? 1 : i == 2 ? 4 : 0); k++)
            case_in(c, KILN_DTYPE_f32, DIMS(runs ? 0 : 1), VALUES(1));
        void *out[CASE_MAX_OPERANDS] = { NULL };
        cr_expect_null(cpu_run(c, &(CpuCall){ .threads = 2 }, out));
        cpu_free(out);
    }
}

/* --- rnn, gru, lstm --- */

static void
scale(RefCase *c, double by)
{
    float *x = c->data[c->instr.n_operands - 1];
    for (int64_t i = 0; i < kiln_type_elements(&c->buffers[c->instr.n_operands - 1].type); i++)
        x[i] *= (float)by;
}

static RefCase *
recurrent_case(Random *r, bool wild)
{
    static const KilnInstrKind kinds[] = { KILN_INSTR_rnn, KILN_INSTR_gru, KILN_INSTR_lstm };
    static const char *const directions[] = { "forward", "reverse", "bidirectional" };
    static const char *relus[] = { "Relu", "relu" };
    KilnInstrKind kind = kinds[below(r, 3)];
    bool lstm = kind == KILN_INSTR_lstm;
    int64_t steps = below(r, 12), batch = extent(r, 20), in = extent(r, 40), n = extent(r, 80);
    int64_t way = below(r, 3);
    int64_t d = way == 2 ? 2 : 1, gates = lstm ? 4 : kind == KILN_INSTR_gru ? 3 : 1;
    int64_t state[] = { d, batch, n };
    RefCase *c = case_new(kind);
    CASE_ATTRS(c, rnn)->direction = directions[way];
    CASE_ATTRS(c, rnn)->hidden_size = n;
    if (kind == KILN_INSTR_gru)
        CASE_ATTRS(c, gru)->linear_before_reset = below(r, 2);
    if (kind == KILN_INSTR_rnn && below(r, 2))
        CASE_ATTRS(c, rnn)->activations = (KilnStrings){ 2, relus };
    if (below(r, 3))
        case_out(c, KILN_DTYPE_f32, DIMS(steps, d, batch, n));
    else
        case_absent(c);
    for (int i = 0; i < 1 + lstm; i++) {
        if (below(r, 3))
            case_out(c, KILN_DTYPE_f32, 3, state);
        else
            case_absent(c);
    }
    add_in(c, KILN_DTYPE_f32, DIMS(steps, batch, in), r, wild);
    add_in(c, KILN_DTYPE_f32, DIMS(d, gates * n, in), r, wild);
    scale(c, 0.1);
    add_in(c, KILN_DTYPE_f32, DIMS(d, gates * n, n), r, wild);
    scale(c, 0.1);
    if (below(r, 2))
        add_in(c, KILN_DTYPE_f32, DIMS(d, 2 * gates * n), r, wild);
    else
        case_absent(c);
    case_absent(c);
    for (int i = 0; i < 1 + lstm; i++) {
        if (below(r, 2))
            add_in(c, KILN_DTYPE_f32, 3, state, r, wild);
        else
            case_absent(c);
    }
    return c;
}

Test(cpu_random, recurrent)
{
    agree(3, recurrent_case, (Tolerance){ 1e-5, 1e-5 });
}
