/* SPDX-License-Identifier: Apache-2.0 */
/* narrow-weights: weights that few rows read are stored in 16 bits.
 *
 *     const w : f32[k,n]            const w' : bf16[k,n]
 *        |                             |
 *     matmul(x, w)            =>    cast : f32[k,n]
 *                                      |
 *                                   matmul(x, cast)
 *
 * for matmul and gemm of at most `max-rows` rows, which wait for their weights to come from memory:
 * half the bytes take half the time. merge-cast-into-matmul removes the cast, on the IR.
 *
 * requires nothing, preserves nothing; class L, under the flag quant-lossy: a weight keeps eight of
 * its bits. Weights of less than `min-bytes` stay in a cache, and what is read by others, too,
 * would be in memory twice. Last, for casts hide literals from the rules. */
#include "passes/rule.h"

#include "graph/op/cast.h"
#include "passes/fold/constant_pool.h"

#define OPTIONS(OPTION, CHOICE)                                                                    \
    OPTION(INT, max_rows, 4)                                                                       \
    OPTION(INT, min_bytes, 262144)
PASS_OPTIONS(narrow_weights, OPTIONS);

/* Rows of the result; -1 where they are not known. */
static int64_t
count_rows(const KilnType *type)
{
    int64_t rows = 1;
    if (!kiln_type_is_static(type))
        return -1;
    for (int d = 0; d + 1 < type->rank; d++)
        rows *= type->dims[d];
    return rows;
}

static bool
narrow(KilnMatch *match)
{
    const Options *options = kiln_pass_options(match->context);
    KilnNode *root = match->root;
    const KilnValue *literal = kiln_match_value(match, "w");
    const KilnType *type = &literal->type;
    int64_t rows = count_rows(&root->results[0].type);
    GUARD(f32, type->dtype == KILN_DTYPE_f32);
    GUARD(matrix, type->rank == 2 && !type->layout);
    GUARD(few_rows, rows >= 0 && rows <= options->max_rows);
    GUARD(big, kiln_type_bytes(type) >= options->min_bytes);
    GUARD(single_use, kiln_value_single_use(literal));
    const KilnConstant *constant = kiln_value_constant(literal);
    KilnTensor *stored = kiln_tensor_convert(constant->tensor, KILN_DTYPE_bf16, match->error);
    if (!stored)
        return false;
    KilnValue *small = kiln_build_constant(match->root->function, root, constant->name, stored);
    KilnAttrs_cast attrs = kiln_cast_to(KILN_DTYPE_f32);
    KilnValue *wide = kiln_match_build(match, KILN_OP_cast, &attrs, &small, 1);
    if (!wide)
        return false;
    KilnValue *operands[3] = { NULL };
    for (uint32_t i = 0; i < root->n_operands; i++)
        operands[i] = root->operands[i].value;
    operands[1] = wide;
    return kiln_match_replace(match,
                              kiln_match_build_typed(match, root->op, root->attrs, operands,
                                                     root->n_operands, &root->results[0].type));
}

static const KilnRule rules[] = {
    LOSSY_RULE("narrow-weight", KILN_FLAG(quant_lossy), "(matmul|gemm ?x $w ...)", narrow),
};

RULE_PASS(narrow_weights, FORWARD);
