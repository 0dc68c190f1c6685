/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operators, which oneDNN applies on the way out of another operation. */
#include "backends/onednn/region.h"

#include <math.h>

static bool
clip(const KilnInstr *instr, PostOp *out)
{
    const KilnBuffer *low = kiln_instr_operand(instr, 2), *high = kiln_instr_operand(instr, 3);
    *out = (PostOp){ .alg = dnnl_eltwise_clip, .alpha = -INFINITY, .beta = INFINITY };
    return (!low || kiln_onednn_scalar(low, &out->alpha)) &&
           (!high || kiln_onednn_scalar(high, &out->beta));
}

/* The further operand is the one that is not computed by what came before; both may be. */
static bool
binary(const KilnInstr *instr, dnnl_alg_kind_t alg, PostOp *out)
{
    *out = (PostOp){ .is_binary = true, .alg = alg };
    const KilnType *type = &instr->operands[0].buffer->type;
    for (uint32_t i = 1; i < instr->n_operands; i++) {
        const KilnBuffer *buffer = instr->operands[i].buffer;
        if (buffer->type.rank > type->rank || buffer->type.rank == 0)
            return false;
    }
    return instr->n_operands == 3;
}

bool
kiln_onednn_elementwise(const KilnInstr *instr, PostOp *out)
{
    *out = (PostOp){ .alpha = 0, .beta = 0 };
    switch (instr->kind) {
    case KILN_INSTR_relu:
        out->alg = dnnl_eltwise_relu;
        return true;
    case KILN_INSTR_leaky_relu:
        out->alg = dnnl_eltwise_relu;
        out->alpha = kiln_instr_attrs(instr, leaky_relu)->alpha;
        return true;
    case KILN_INSTR_elu:
        out->alg = dnnl_eltwise_elu;
        out->alpha = kiln_instr_attrs(instr, elu)->alpha;
        return true;
    case KILN_INSTR_sigmoid:
        out->alg = dnnl_eltwise_logistic;
        return true;
    case KILN_INSTR_tanh:
        out->alg = dnnl_eltwise_tanh;
        return true;
    case KILN_INSTR_swish:
        out->alg = dnnl_eltwise_swish;
        out->alpha = kiln_instr_attrs(instr, swish)->alpha;
        return true;
    case KILN_INSTR_hard_swish:
        out->alg = dnnl_eltwise_hardswish;
        return true;
    case KILN_INSTR_gelu:
        out->alg = g_str_equal(kiln_instr_attrs(instr, gelu)->approximate, "tanh")
                       ? dnnl_eltwise_gelu_tanh
                       : dnnl_eltwise_gelu_erf;
        return true;
    case KILN_INSTR_clip:
        return clip(instr, out);
    case KILN_INSTR_add:
        return binary(instr, dnnl_binary_add, out);
    case KILN_INSTR_mul:
        return binary(instr, dnnl_binary_mul, out);
    case KILN_INSTR_sub:
        return binary(instr, dnnl_binary_sub, out);
    default:
        return false;
    }
}

const KilnInstr *
kiln_onednn_writer(const KilnBuffer *buffer)
{
    kiln_foreach_buffer_use (use, buffer) {
        if (use->access == KILN_ACCESS_OUT && use->user->kind != KILN_INSTR_alloc)
            return use->user;
    }
    return NULL;
}

const KilnInstr *
kiln_onednn_only_reader(const KilnBuffer *buffer)
{
    const KilnInstr *reader = NULL;
    if (buffer->kind != KILN_BUFFER_ALLOC)
        return NULL;
    kiln_foreach_buffer_use (use, buffer) {
        if (use->access == KILN_ACCESS_OUT || use->user->kind == KILN_INSTR_dealloc)
            continue;
        if (reader)
            return NULL;
        reader = use->user;
    }
    return reader;
}

static bool
is_same_shape(const KilnBuffer *a, const KilnBuffer *b)
{
    return kiln_type_same_shape(&a->type, &b->type);
}

/* The library keeps one pair of parameters per algorithm: of two clips, or of relu and leaky_relu,
 * behind one operation, both would use those of the first. */
static bool
is_mixed_up(const PostOps *post, const PostOp *op)
{
    for (uint32_t i = 0; i < post->n && !op->is_binary; i++) {
        const PostOp *other = &post->ops[i];
        if (!other->is_binary && other->alg == op->alg &&
            (other->alpha != op->alpha || other->beta != op->beta))
            return true;
    }
    return false;
}

PostOps
kiln_onednn_absorb(Builder *builder, const KilnBuffer *buffer, bool binaries)
{
    PostOps post = { .result = buffer };
    while (post.n < POST_MAX) {
        const KilnInstr *next = kiln_onednn_only_reader(post.result);
        PostOp *op = &post.ops[post.n];
        if (!next || !kiln_onednn_elementwise(next, op) ||
            !is_same_shape(next->operands[0].buffer, buffer) || (op->is_binary && !binaries) ||
            is_mixed_up(&post, op))
            break;
        if (op->is_binary) {
            uint32_t mine = next->operands[1].buffer == post.result ? 1 : 2;
            op->other = next->operands[3 - mine].buffer;
            op->swapped = mine == 2;
            bool asymmetric = op->alg == dnnl_binary_sub && op->swapped;
            if (op->other == post.result || asymmetric ||
                !kiln_onednn_is_available(builder, op->other))
                break;
        }
        op->instr = next;
        builder->done[next->id] = true;
        post.result = next->operands[0].buffer;
        if (kiln_onednn_own_pays(builder, next)) {
            post.own = next;
            break;
        }
        post.n++;
    }
    return post;
}

bool
kiln_onednn_release(Builder *builder, const KilnBuffer *buffer, PostOps *post)
{
    if (!post->own && !post->n)
        return false;
    const KilnInstr *last = post->own ? post->own : post->ops[--post->n].instr;
    post->own = NULL;
    builder->done[last->id] = false;
    post->result = post->n ? post->ops[post->n - 1].instr->operands[0].buffer : buffer;
    return true;
}

void
kiln_onednn_post_layout(PostOps *post, Layout layout)
{
    const KilnType *result = &post->result->type;
    for (uint32_t p = 0; p < post->n; p++) {
        PostOp *op = &post->ops[p];
        if (!op->is_binary)
            continue;
        bool same = is_same_shape(post->result, op->other);
        KilnType type = op->other->type;
        int lead = result->rank - type.rank;
        for (int i = result->rank; i-- > 0;)
            type.dims[i] = i < lead ? 1 : type.dims[i - lead];
        type.rank = result->rank;
        op->md = op->seen_as = kiln_onednn_md(&type, same ? layout : LAYOUT_PLAIN);
    }
}

dnnl_primitive_attr_t
kiln_onednn_attr(const PostOps *post, bool sum)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(&attr);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success)
        status = dnnl_post_ops_create(&ops);
    for (uint32_t i = 0; status == dnnl_success && post && i < post->n; i++) {
        const PostOp *op = &post->ops[i];
        if (op->is_binary && sum && i == 0)
            status = dnnl_post_ops_append_sum(ops, 1.0f);
        else if (op->is_binary)
            status = dnnl_post_ops_append_binary(ops, op->alg, &op->seen_as);
        else
            status = dnnl_post_ops_append_eltwise(ops, 1.0f, op->alg, op->alpha, op->beta);
    }
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(attr, ops);
    if (ops)
        dnnl_post_ops_destroy(ops);
    if (status == dnnl_success)
        return attr;
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return NULL;
}

bool
kiln_onednn_post_args(Builder *builder, const PostOps *post, bool sum, GArray *args)
{
    for (uint32_t i = sum ? 1 : 0; i < post->n; i++) {
        const PostOp *op = &post->ops[i];
        if (!op->is_binary)
            continue;
        uint32_t slot = kiln_onednn_slot_as(builder, op->other, &op->md);
        StepArg arg = { DNNL_ARG_ATTR_MULTIPLE_POST_OP((int)i) | DNNL_ARG_SRC_1,
                        kiln_onednn_alias(builder, slot, &op->seen_as) };
        if (slot == UINT32_MAX)
            return false;
        g_array_append_val(args, arg);
    }
    return true;
}
