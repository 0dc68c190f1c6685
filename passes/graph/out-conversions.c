/* SPDX-License-Identifier: Apache-2.0 */
/* out-conversions: a cast between floats beside a quantization is part of it.
 *
 *     x : f16         x : f32          x : i8 q(s,z)
 *      |               |                   |
 *    cast : f32      cast : f16        dequantize : f32
 *      |               |                   |
 *   quantize        quantize             cast : f16
 *      =>              =>                  =>
 *   quantize(x)     quantize(x)        dequantize(x) : f16     f16, bf16 and f64 alike
 *
 * requires nothing, preserves nothing. A cast that widens is exact, and dequantize rounds its f32
 * product to whatever float is asked for: class E. Class QS, under the flag quant-lossy, where a
 * narrowing cast to f16 goes that a quantization to 8 bits follows: it rounds to eleven bits, and
 * nothing that it makes infinite or flushes is more than a step away as long as the range stays
 * below 65504 and steps above 2^-24. */
#include "graph/base/number.h"
#include "graph/op/quantize.h"
#include "passes/query/quant_range.h"
#include "passes/rule.h"

static bool
quantize_directly(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    const KilnType *type = &match->root->results[0].type;
    return kiln_match_replace(
        match, kiln_match_build_typed(match, KILN_OP_quantize_linear, NULL, &x, 1, type));
}

static bool
skip_widening(KilnMatch *match)
{
    KilnDType from = kiln_match_value(match, "x")->type.dtype;
    GUARD(widens, kiln_dtype_is_half(from));
    return quantize_directly(match);
}

static bool
skip_narrowing(KilnMatch *match)
{
    const KilnType *type = &match->root->results[0].type;
    double low, high, coarsest, finest;
    GUARD(eight_bits, kiln_quant_is_regular(type) && kiln_dtype_size(type->dtype) == 1);
    kiln_quant_real_range(type, &low, &high);
    kiln_quant_steps(type, &coarsest, &finest);
    double most = kiln_float_format(KILN_DTYPE_f16)->largest;
    GUARD(in_range, low > -most && high < most);
    GUARD(steps_are_seen, finest >= 0x1p-24);
    return quantize_directly(match);
}

static bool
dequantize_directly(KilnMatch *match)
{
    KilnValue *x = kiln_match_value(match, "x");
    const KilnType *type = &match->root->results[0].type;
    return kiln_match_replace(
        match, kiln_match_build_typed(match, KILN_OP_dequantize_linear, NULL, &x, 1, type));
}

static const KilnRule rules[] = {
    RULE("quantize-of-widened", E, "(quantize_linear (cast ?x:float):f32)", skip_widening),
    FLAGGED_RULE("quantize-of-narrowed", QS, KILN_FLAG(quant_lossy),
                 "(quantize_linear (cast ?x:f32):f16)", skip_narrowing),
    RULE("cast-of-dequantized", E, "(cast (dequantize_linear ?x:quantized):f32):float",
         dequantize_directly),
};

RULE_PASS(out_conversions, FORWARD);
