/* SPDX-License-Identifier: Apache-2.0 */
/* replace-zero-scale: what is quantized in steps that are 0 as an f16 is read as 0.
 *
 *     x : i8 q(1e-9,3)             const 0 : i8 q(1,0)
 *        |                  =>        |
 *      reader                       reader
 *
 * for dequantize_linear, rescale_quantized and element-wise arithmetic, whose operands may have any
 * parameters. Accelerators keep scales in f16, where a scale below 2^-25 divides by 0.
 *
 * requires nothing, preserves nothing; class L, under the flag quant-lossy: numbers below 2^-9 are
 * lost, which is all that 16 bits of such steps represent. The shape must be known. */
#include "passes/rule.h"

#include "graph/base/number.h"
#include "passes/query/quant_range.h"

static bool
is_zero_scale(const KilnValue *operand)
{
    return operand && kiln_quant_is_uniform(&operand->type) &&
           kiln_f32_to_f16(operand->type.quant->scales[0]) == 0;
}

static KilnValue *
zero_of(const KilnMatch *match, const KilnType *like)
{
    static const float scale = 1;
    static const int32_t zero_point = 0;
    const KilnQuant quant = { -1, 1, &scale, &zero_point };
    KilnType type = *like, stored = *like;
    type.quant = &quant;
    stored.quant = NULL;
    return kiln_build_constant_as(match->root->function, match->root, "zero",
                                  kiln_tensor_new_splat(&stored, 0), &type);
}

static bool
read_zero(KilnMatch *match)
{
    const KilnNode *root = match->root;
    g_autofree KilnValue **operands = g_new(KilnValue *, root->n_operands);
    bool found = false;
    for (uint32_t i = 0; i < root->n_operands; i++) {
        operands[i] = root->operands[i].value;
        if (!is_zero_scale(operands[i]))
            continue;
        found = true;
        GUARD(shape_known, kiln_type_is_static(&operands[i]->type));
        GUARD(plain, !operands[i]->type.layout);
        operands[i] = zero_of(match, &operands[i]->type);
    }
    if (!found)
        return false;
    return kiln_match_replace(match,
                              kiln_match_build_typed(match, root->op, root->attrs, operands,
                                                     root->n_operands, &root->results[0].type));
}

static const KilnRule rules[] = {
    LOSSY_RULE("read-zero", KILN_FLAG(quant_lossy),
               "(dequantize_linear|rescale_quantized|add|sub|mul|div|min|max|relu|clip "
               "?:quantized ...)",
               read_zero),
};

RULE_PASS(replace_zero_scale, FORWARD);
