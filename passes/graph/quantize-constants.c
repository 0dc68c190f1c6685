/* SPDX-License-Identifier: Apache-2.0 */
/* quantize-constants: a literal that is only read to be quantized is stored quantized.
 *
 *     const w : f32                 const w' : i8 q(s,z)
 *        |                             |
 *     quantize_linear        =>
 *        |
 *
 * Where another type reads the same bits, the literal gets that type:
 *
 *     storage_cast(constant)    =>    the constant under the other type
 *
 * requires nothing, preserves nothing; class E: the bits are those that the kernel would store. A
 * literal with other readers stays: it would be in memory twice (`constant-fold` evaluates what is
 * left, within its budget). Splats need no memory: `optimize-quantization` quantizes them whoever
 * reads them. */
#include "passes/rule.h"

#include "passes/query/literal.h"
#include "passes/query/quant_range.h"

static bool
quantize(KilnMatch *match)
{
    KilnNode *root = match->root;
    const KilnValue *literal = kiln_match_value(match, "w");
    const KilnType *type = &root->results[0].type;
    GUARD(single_use, kiln_value_single_use(literal));
    KilnTensor *tensor = kiln_quant_convert(literal, type, match->error);
    if (!tensor)
        return false;
    KilnValue *quantized = kiln_build_constant_as(match->root->function, root,
                                                  kiln_value_constant(literal)->name, tensor, type);
    return kiln_match_replace(match, quantized);
}

static bool
cast(KilnMatch *match)
{
    const KilnType *type = &match->root->results[0].type;
    return kiln_match_replace(match,
                              kiln_literal_recast(match->root, kiln_match_value(match, "w"), type));
}

static const KilnRule rules[] = {
    RULE("quantize-literal", E, "(quantize_linear $w)", quantize),
    RULE("cast-literal", E, "(storage_cast $w)", cast),
};

RULE_PASS(quantize_constants, FORWARD);
