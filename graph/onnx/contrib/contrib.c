/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/onnx/contrib/contrib.h"

#include "graph/node.h"
#include "graph/onnx/convert.h"
#include "graph/op/reduce.h"

KilnValue *
kiln_onnx_step_add_operand(const KilnOnnxSteps *s, KilnValue *a, uint32_t i)
{
    KilnValue *b = kiln_onnx_operand(s->call, i);
    return b ? kiln_onnx_step_add(s, a, b) : a;
}

KilnValue *
kiln_onnx_step_results(const KilnOnnxSteps *s, KilnOp op, const void *attrs, KilnValue *x,
                       uint32_t n, const char *suffix)
{
    g_autofree char *name = g_strdup_printf("%s.%s", s->call->base, suffix);
    const KilnNodeSpec spec = { .op = op,
                                .operands = &x,
                                .n_operands = 1,
                                .n_results = n,
                                .attrs = attrs,
                                .result_name = name };
    KilnNode *node = x ? kiln_node_new(s->call->function, &spec, s->error) : NULL;
    for (uint32_t i = 0; node && i < n; i++)
        node->results[i].made_up = true;
    return node ? node->results : NULL;
}

KilnValue *
kiln_onnx_step_greatest(const KilnOnnxSteps *s, KilnValue *x, int64_t k)
{
    return kiln_onnx_step_greatest_of(s, x, kiln_onnx_ints(s->call, "k", &k, 1));
}

KilnValue *
kiln_onnx_step_greatest_of(const KilnOnnxSteps *s, KilnValue *x, KilnValue *k)
{
    const KilnAttrs_top_k attrs = { .axis = -1, .largest = true, .sorted = true };
    g_autofree char *name = g_strdup_printf("%s.best", s->call->base);
    KilnValue *operands[] = { x, k };
    const KilnNodeSpec spec = { .op = KILN_OP_top_k,
                                .operands = operands,
                                .n_operands = 2,
                                .n_results = 2,
                                .attrs = &attrs,
                                .result_name = name };
    KilnNode *node = x && k ? kiln_node_new(s->call->function, &spec, s->error) : NULL;
    for (uint32_t i = 0; node && i < 2; i++)
        node->results[i].made_up = true;
    return node ? node->results : NULL;
}

/* perm[d] is the dim that becomes dim @d: the last one comes behind the first one. */
static void
channels_second(int rank, int64_t *perm)
{
    for (int d = 0; d < rank; d++)
        perm[d] = d == 0 ? 0 : d == 1 ? rank - 1 : d - 1;
}

KilnValue *
kiln_onnx_step_channels_second(const KilnOnnxSteps *s, KilnValue *a)
{
    int64_t perm[KILN_MAX_RANK];
    if (a && a->type.rank < 2) {
        kiln_onnx_unsupported(s->call, s->error, "channels that are last in an operand of rank %d",
                              a->type.rank);
        return NULL;
    }
    channels_second(a ? a->type.rank : 0, perm);
    return a ? kiln_onnx_step_transpose(s, a, perm, (uint32_t)a->type.rank) : NULL;
}

KilnValue *
kiln_onnx_step_channels_last(const KilnOnnxSteps *s, KilnValue *a)
{
    int64_t perm[KILN_MAX_RANK], back[KILN_MAX_RANK];
    int rank = a ? a->type.rank : 0;
    channels_second(rank, perm);
    for (int d = 0; d < rank; d++)
        back[perm[d]] = d;
    return a ? kiln_onnx_step_transpose(s, a, back, (uint32_t)rank) : NULL;
}
