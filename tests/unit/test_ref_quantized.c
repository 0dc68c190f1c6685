/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on quantized operands in the reference backend: the algebra of bytes against exact
 * integers, over all pairs; products against sums by hand. */
#include "graph/base/number.h"
#include "ir/instr.h"
#include "ref_case.h"

#include <math.h>
#include <stdint.h>

__extension__ typedef __int128 Wide;

/* --- exact rationals --- */

/* number / 2^shift, as every float is. */
typedef struct {
    Wide number;
    int shift;
} Dyadic;

static Dyadic
dyadic(float value)
{
    int exponent;
    float mantissa = frexpf(value, &exponent);
    return (Dyadic){ (Wide)ldexpf(mantissa, 24), 24 - exponent };
}

/* numerator / denominator · 2^up, rounded half to even. */
static int64_t
round_ratio(Wide numerator, Wide denominator, int up)
{
    if (denominator < 0) {
        numerator = -numerator;
        denominator = -denominator;
    }
    for (; up > 0; up--)
        numerator *= 2;
    for (; up < 0; up++)
        denominator *= 2;
    Wide whole = numerator / denominator, rest = numerator % denominator;
    if (rest < 0) {
        rest += denominator;
        whole--;
    }
    bool odd = whole & 1;
    if (rest * 2 > denominator || (rest * 2 == denominator && odd))
        whole++;
    return (int64_t)whole;
}

/* --- the algebra of bytes --- */

typedef struct {
    KilnDType dtype;
    float scale;
    int32_t zero;
} Params;

static int64_t
saturate(KilnDType dtype, int64_t value)
{
    bool is_signed = kiln_dtype_is_signed(dtype);
    int bits = 8 * (int)kiln_dtype_size(dtype);
    int64_t low = is_signed ? -((int64_t)1 << (bits - 1)) : 0;
    return CLAMP(value, low, low + ((int64_t)1 << bits) - 1);
}

/* @a and @b are steps from the zero point. */
static int64_t
exact(KilnInstrKind kind, int64_t a, int64_t b, const Params p[3])
{
    Dyadic x = dyadic(p[1].scale), y = dyadic(p[2].scale), out = dyadic(p[0].scale);
    x.number *= a;
    y.number *= b;
    if (kind == KILN_INSTR_mul)
        return round_ratio(x.number * y.number, out.number, out.shift - x.shift - y.shift);
    if (kind == KILN_INSTR_div && b == 0) /* an infinity saturates; 0/0 is no number */
        return a ? (a < 0 ? -100000 : 100000) : 0;
    if (kind == KILN_INSTR_div)
        return round_ratio(x.number, y.number * out.number, out.shift + y.shift - x.shift);
    for (; x.shift < y.shift; x.shift++)
        x.number *= 2;
    for (; y.shift < x.shift; y.shift++)
        y.number *= 2;
    Wide value = kind == KILN_INSTR_add   ? x.number + y.number
                 : kind == KILN_INSTR_sub ? x.number - y.number
                 : kind == KILN_INSTR_min ? MIN(x.number, y.number)
                                          : MAX(x.number, y.number);
    return round_ratio(value, out.number, out.shift - x.shift);
}

static void
set_quant(RefCase *c, uint32_t i, const Params *p)
{
    KilnQuant *quant = kiln_arena_new0(c->arena, KilnQuant, 1);
    *quant = (KilnQuant){ -1, 1, &p->scale, &p->zero };
    c->buffers[i].type.quant = quant;
}

static void
check_all_pairs(KilnInstrKind kind, const Params p[3])
{
    g_autoptr(RefCase) c = case_new(kind);
    g_autofree double *column = g_new(double, 256);
    int64_t low = kiln_dtype_is_signed(p[1].dtype) ? -128 : 0;
    int64_t low_b = kiln_dtype_is_signed(p[2].dtype) ? -128 : 0;
    case_out(c, p[0].dtype, DIMS(256, 256));
    for (int i = 0; i < 256; i++)
        column[i] = (double)(low + i);
    case_in(c, p[1].dtype, DIMS(256, 1), column);
    for (int i = 0; i < 256; i++)
        column[i] = (double)(low_b + i);
    case_in(c, p[2].dtype, DIMS(256), column);
    for (uint32_t i = 0; i < 3; i++)
        set_quant(c, i, &p[i]);
    cr_assert_null(case_run(c));
    int wrong = 0;
    for (int64_t i = 0; i < 256; i++) {
        for (int64_t j = 0; j < 256; j++) {
            int64_t a = low + i - p[1].zero, b = low_b + j - p[2].zero;
            int64_t expected = saturate(p[0].dtype, exact(kind, a, b, p) + p[0].zero);
            int64_t found = kiln_element_as_i64(p[0].dtype, c->data[0], i * 256 + j);
            if (expected != found && wrong++ == 0)
                cr_log_error("%s of %d and %d: expected %d, found %d", kiln_instr_info(kind)->name,
                             (int)a, (int)b, (int)expected, (int)found);
        }
    }
    cr_expect_eq(wrong, 0);
}

Test(ref_quantized, algebra_of_all_pairs_of_bytes)
{
    static const KilnInstrKind kinds[] = { KILN_INSTR_add, KILN_INSTR_sub, KILN_INSTR_mul,
                                           KILN_INSTR_div, KILN_INSTR_min, KILN_INSTR_max };
    static const Params params[][3] = {
        { { KILN_DTYPE_i8, 0.1f, 0 }, { KILN_DTYPE_i8, 0.1f, 0 }, { KILN_DTYPE_i8, 0.1f, 0 } },
        { { KILN_DTYPE_i8, 0.25f, 3 }, { KILN_DTYPE_i8, 0.5f, -7 }, { KILN_DTYPE_i8, 0.125f, 9 } },
        { { KILN_DTYPE_u8, 0.2f, 100 }, { KILN_DTYPE_i8, 0.1f, 5 }, { KILN_DTYPE_u8, 0.3f, 128 } },
        { { KILN_DTYPE_i8, 0.7f, -128 },
          { KILN_DTYPE_u8, 0.01f, 0 },
          { KILN_DTYPE_u8, 1.5f, 255 } },
        { { KILN_DTYPE_i16, 0.003f, 0 }, { KILN_DTYPE_i8, 3.f, 1 }, { KILN_DTYPE_i8, 7.f, -1 } },
    };
    for (size_t k = 0; k < G_N_ELEMENTS(kinds); k++) {
        for (size_t i = 0; i < G_N_ELEMENTS(params); i++)
            check_all_pairs(kinds[k], params[i]);
    }
}

/* --- one operand --- */

/* With equal parameters nothing is rounded. */
Test(ref_quantized, choosing_is_exact)
{
    static const Params p = { KILN_DTYPE_i8, 0.1f, 17 };
    double all[256];
    for (int i = 0; i < 256; i++)
        all[i] = i - 128;
    g_autoptr(RefCase) relu = case_new(KILN_INSTR_relu);
    g_autoptr(RefCase) pool = case_new(KILN_INSTR_max_pool);
    g_autoptr(RefCase) clip = case_new(KILN_INSTR_clip);
    case_out(relu, p.dtype, DIMS(256));
    case_in(relu, p.dtype, DIMS(256), all);
    case_out(pool, p.dtype, DIMS(1, 1, 255));
    case_in(pool, p.dtype, DIMS(1, 1, 256), all);
    CASE_ATTRS(pool, max_pool)->kernel_shape = CASE_INTS(pool, 2);
    CASE_ATTRS(pool, max_pool)->strides = CASE_INTS(pool, 1);
    case_out(clip, p.dtype, DIMS(256));
    case_in(clip, p.dtype, DIMS(256), all);
    case_in(clip, KILN_DTYPE_f32, SCALAR, VALUES(-1));
    case_in(clip, KILN_DTYPE_f32, SCALAR, VALUES(2));
    for (uint32_t i = 0; i < 2; i++) {
        set_quant(relu, i, &p);
        set_quant(pool, i, &p);
        set_quant(clip, i, &p);
    }
    double expected[256];
    for (int i = 0; i < 256; i++)
        expected[i] = MAX(i - 128, 17);
    case_gives(relu, expected, 0);
    case_gives(pool, all + 1, 0);
    for (int i = 0; i < 256; i++)
        expected[i] = CLAMP(i - 128, 7, 37);
    case_gives(clip, expected, 0);
}

/* The exact table of hard_swish: x · min(max(x/6 + 1/2, 0), 1), where Glow loses digits. */
Test(ref_quantized, N10_hard_swish_of_all_bytes)
{
    static const Params params[][2] = {
        { { KILN_DTYPE_i8, 0.04f, -120 }, { KILN_DTYPE_i8, 0.05f, 3 } },
        { { KILN_DTYPE_u8, 0.02f, 10 }, { KILN_DTYPE_u8, 0.03f, 128 } },
        { { KILN_DTYPE_i8, 0.5f, 0 }, { KILN_DTYPE_i8, 1.f, 0 } },
    };
    for (size_t k = 0; k < G_N_ELEMENTS(params); k++) {
        const Params *to = &params[k][0], *from = &params[k][1];
        const int low = from->dtype == KILN_DTYPE_i8 ? -128 : 0;
        double all[256], expected[256];
        for (int i = 0; i < 256; i++) {
            all[i] = low + i;
            long double x = (long double)from->scale * (low + i - from->zero);
            long double gate = CLAMP(x / 6 + 0.5L, 0, 1);
            long double steps = rintl(x * gate / (long double)to->scale) + to->zero;
            expected[i] = (double)saturate(to->dtype, (int64_t)steps);
        }
        g_autoptr(RefCase) c = case_new(KILN_INSTR_hard_swish);
        case_out(c, to->dtype, DIMS(256));
        case_in(c, from->dtype, DIMS(256), all);
        set_quant(c, 0, to);
        set_quant(c, 1, from);
        case_gives(c, expected, 0);
    }
}

/* --- products --- */

static const Params x8 = { KILN_DTYPE_u8, 0.5f, 10 }, w8 = { KILN_DTYPE_i8, 0.25f, 0 };

Test(ref_quantized, matmul_rounds_once)
{
    static const Params y = { KILN_DTYPE_i8, 0.25f, 1 };
    g_autoptr(RefCase) c = case_new(KILN_INSTR_matmul);
    case_out(c, y.dtype, DIMS(2, 2));
    case_in(c, x8.dtype, DIMS(2, 2), VALUES(11, 12, 10, 200));
    case_in(c, w8.dtype, DIMS(2, 2), VALUES(1, -1, 2, 1));
    set_quant(c, 0, &y);
    set_quant(c, 1, &x8);
    set_quant(c, 2, &w8);
    /* Sums 5, 1, 380, 190, times 0.5. */
    case_gives(c, VALUES(3, 1, 127, 96), 0);
}

/* Weights have a scale per channel, bias the product of the scales; padding is the zero point. */
Test(ref_quantized, conv_by_channel)
{
    static const Params y = { KILN_DTYPE_i8, 0.5f, -2 };
    g_autoptr(RefCase) c = case_new(KILN_INSTR_conv);
    case_out(c, y.dtype, DIMS(1, 2, 3));
    case_in(c, x8.dtype, DIMS(1, 1, 3), VALUES(11, 12, 14));
    case_in(c, w8.dtype, DIMS(2, 1, 2), VALUES(1, 3, -2, 5));
    case_in(c, KILN_DTYPE_i32, DIMS(2), VALUES(4, -4));
    CASE_ATTRS(c, conv)->pads = CASE_INTS(c, 1, 0);
    const KilnQuant w = { 0, 2, (float[]){ 1, 2 }, (int32_t[]){ 0, 1 } };
    const KilnQuant b = { 0, 2, (float[]){ 0.5f, 1 }, (int32_t[]){ 0, 0 } };
    set_quant(c, 0, &y);
    set_quant(c, 1, &x8);
    c->buffers[2].type.quant = &w;
    c->buffers[3].type.quant = &b;
    /* Sums 0·1+1·3, 1·1+2·3, 2·1+4·3 and 4; 0·-3+1·4, 1·-3+2·4, 2·-3+4·4 and -4, times 1 and 2. */
    case_gives(c, VALUES(5, 9, 16, -2, 0, 10), 0);
}

/* Sums wrap in 32 bits, like those of qlinear_matmul. */
Test(ref_quantized, sums_wrap)
{
    static const Params wide = { KILN_DTYPE_i16, 1, 0 }, y = { KILN_DTYPE_i16, 1048576.f, 0 };
    g_autoptr(RefCase) c = case_new(KILN_INSTR_gemm);
    case_out(c, y.dtype, DIMS(1, 1));
    case_in(c, wide.dtype, DIMS(1, 3), VALUES(32767, 32767, 32767));
    case_in(c, wide.dtype, DIMS(3, 1), VALUES(32767, 32767, 32767));
    set_quant(c, 0, &y);
    set_quant(c, 1, &wide);
    set_quant(c, 2, &wide);
    /* 3 · 32767² - 2³² = -1073938429 */
    case_gives(c, VALUES(-1024), 0);
}

Test(ref_quantized, pools_and_concat_rescale)
{
    static const Params x = { KILN_DTYPE_i8, 0.5f, 0 }, y = { KILN_DTYPE_u8, 0.25f, 100 };
    g_autoptr(RefCase) pool = case_new(KILN_INSTR_global_average_pool);
    case_out(pool, y.dtype, DIMS(1, 2, 1));
    case_in(pool, x.dtype, DIMS(1, 2, 4), VALUES(1, 2, 3, 5, -100, -100, -100, -100));
    set_quant(pool, 0, &y);
    set_quant(pool, 1, &x);
    case_gives(pool, VALUES(106, 0), 0); /* 11/4 · 2 = 5.5 goes to 6 */
    g_autoptr(RefCase) cat = case_new(KILN_INSTR_concat);
    case_out(cat, y.dtype, DIMS(4));
    case_in(cat, x.dtype, DIMS(2), VALUES(1, -60));
    case_in(cat, y.dtype, DIMS(2), VALUES(3, 255));
    set_quant(cat, 0, &y);
    set_quant(cat, 1, &x);
    set_quant(cat, 2, &y);
    case_gives(cat, VALUES(102, 0, 3, 255), 0);
}
