/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions: which implementation, in which layout. */
#include "backends/onednn/region.h"

#include <string.h>

typedef struct {
    const KilnBuffer *y, *x, *w, *bias;
    dnnl_dims_t strides, dilates, before, after;
    int64_t given_dilations[KILN_MAX_RANK];
    int64_t group;
    dnnl_memory_desc_t weights; /* plain bytes as the library names their dims */
    /* The library takes a bias and what follows on the way out of a transposed convolution, but in
     * a loop over single elements, for many times as long as the rest: they get a step. */
    bool transposed;
} Conv;

/* Operands and windows of @instr, of either kind. */
static Conv
conv_of(const KilnInstr *instr, KilnInts strides, KilnInts dilations, KilnInts pads)
{
    Conv conv = { .y = kiln_instr_operand(instr, 0),
                  .x = kiln_instr_operand(instr, 1),
                  .w = kiln_instr_operand(instr, 2),
                  .bias = kiln_instr_operand(instr, 3),
                  .group = 1 };
    uint32_t n = (uint32_t)conv.x->type.rank - 2;
    for (uint32_t i = 0; i < n; i++) {
        conv.strides[i] = strides.n ? strides.v[i] : 1;
        conv.given_dilations[i] = dilations.n ? dilations.v[i] : 1;
        conv.dilates[i] = conv.given_dilations[i] - 1;
        conv.before[i] = pads.n ? pads.v[i] : 0;
        conv.after[i] = pads.n ? pads.v[n + i] : 0;
    }
    return conv;
}

/* [O,I,…] as [G,O/G,I,…]. */
static dnnl_memory_desc_t
weights_of_conv(const Conv *conv)
{
    dnnl_memory_desc_t plain = kiln_onednn_plain(&conv->w->type), md = plain;
    dnnl_dims_t dims = { conv->group, plain.dims[0] / conv->group };
    for (int i = 1; i < plain.ndims; i++)
        dims[i + 1] = plain.dims[i];
    if (conv->group > 1)
        dnnl_memory_desc_reshape(&md, &plain, plain.ndims + 1, dims);
    return md;
}

/* [I,O,…] with the dims named [O,I,…]. */
static dnnl_memory_desc_t
weights_of_transposed(const Conv *conv)
{
    dnnl_memory_desc_t plain = kiln_onednn_plain(&conv->w->type), md = plain;
    int order[DNNL_MAX_NDIMS];
    for (int i = 0; i < plain.ndims; i++)
        order[i] = i < 2 ? 1 - i : i;
    dnnl_memory_desc_permute_axes(&md, &plain, order);
    return md;
}

static bool
has_bias_inside(const Conv *conv)
{
    return conv->bias && !conv->transposed;
}

static bool
has_bias_behind(const Conv *conv)
{
    return conv->bias && conv->transposed;
}

static dnnl_primitive_desc_t
choose(const Conv *conv, const dnnl_memory_desc_t *x, const dnnl_memory_desc_t *y,
       dnnl_alg_kind_t alg, dnnl_primitive_attr_t attr, const char **name)
{
    dnnl_memory_desc_t w = conv->weights, bias;
    w.format_kind = dnnl_format_kind_any;
    if (has_bias_inside(conv))
        bias = kiln_onednn_plain(&conv->bias->type);
    const dnnl_memory_desc_t *b = has_bias_inside(conv) ? &bias : NULL;
    dnnl_status_t status;
    union {
        dnnl_convolution_desc_t conv;
        dnnl_deconvolution_desc_t deconv;
    } op;
    if (conv->transposed)
        status = dnnl_dilated_deconvolution_forward_desc_init(
            &op.deconv, dnnl_forward_inference, alg, x, &w, b, y, conv->strides, conv->dilates,
            conv->before, conv->after);
    else
        status = dnnl_dilated_convolution_forward_desc_init(
            &op.conv, dnnl_forward_inference, alg, x, &w, b, y, conv->strides, conv->dilates,
            conv->before, conv->after);
    return status == dnnl_success ? kiln_onednn_choose(&op, attr, name) : NULL;
}

static bool
is_joined(const Builder *builder, const KilnBuffer *whole)
{
    kiln_foreach_buffer_use (use, whole) {
        const KilnInstr *user = use->user;
        if (use->access == KILN_ACCESS_OUT && user->kind == KILN_INSTR_concat &&
            builder->joins[user->operands[1].buffer->id].concat == user)
            return true;
    }
    return false;
}

/* The residual may be overwritten: nothing reads it any more, nor does this convolution while it
 * writes. A constant may not, in whatever layout it is given: the next run reads it again. */
static bool
dies_here(const Builder *builder, const Conv *conv, const PostOps *post)
{
    if (!post->n || !post->ops[0].is_binary || post->ops[0].alg != dnnl_binary_add)
        return false;
    const KilnBuffer *other = post->ops[0].other;
    if (kiln_onednn_is_constant(builder, other))
        return false;
    for (uint32_t i = 1; i < post->n; i++) {
        if (post->ops[i].is_binary && post->ops[i].other == other)
            return false;
    }
    if (other == kiln_onednn_unscaled(builder, conv->x) || other->kind != KILN_BUFFER_ALLOC ||
        !kiln_type_same_shape(&other->type, &post->result->type))
        return false;
    /* The parts of a concat may be read after it. */
    if (is_joined(builder, other))
        return false;
    kiln_foreach_buffer_use (use, other) {
        const KilnInstr *user = use->user;
        /* Another name of it, until the results are brought where they are wanted. */
        bool name = user->kind == KILN_INSTR_copy || user->kind == KILN_INSTR_pack;
        if (name || (user->kind != KILN_INSTR_dealloc && !builder->done[user->id]))
            return false;
    }
    return true;
}

/* The slot that the sum is added to: the residual's own, where it lies as @md says. */
static uint32_t
residual_slot(const Builder *builder, const PostOps *post, const dnnl_memory_desc_t *md)
{
    uint32_t slot = kiln_onednn_slot(builder, post->ops[0].other);
    const Slot *found = &g_array_index(builder->region->slots, Slot, slot);
    bool fits = found->place == SLOT_WORKSPACE && dnnl_memory_desc_equal(&found->md, md);
    return fits ? slot : UINT32_MAX;
}

/* False where the library has nothing allowed in @layout: *@out_made says whether that is all. */
static bool
make_in_layout(Builder *builder, const Conv *conv, PostOps *post, Layout layout, bool *out_made)
{
    *out_made = false;
    bool first = layout == LAYOUT_BLOCKED && conv->x->type.dims[1] <= FEW_CHANNELS;
    dnnl_memory_desc_t x = kiln_onednn_md(&conv->x->type, first ? LAYOUT_PLAIN : layout);
    dnnl_memory_desc_t y = kiln_onednn_md(&conv->y->type, layout);
    kiln_onednn_post_layout(post, layout);
    const PostOps nothing = { .result = post->result };
    const PostOps *inside = conv->transposed ? &nothing : post;
    uint32_t residual =
        dies_here(builder, conv, inside) ? residual_slot(builder, inside, &y) : UINT32_MAX;
    bool sum = residual != UINT32_MAX;
    dnnl_primitive_attr_t attr = kiln_onednn_attr(inside, sum);
    if (!attr)
        return true;
    const char *name = "";
    dnnl_alg_kind_t alg = conv->transposed ? dnnl_deconvolution_direct : dnnl_convolution_direct;
    dnnl_primitive_desc_t pd = choose(conv, &x, &y, alg, attr, &name);
    dnnl_primitive_attr_destroy(attr);
    if (!pd)
        return true;
    *out_made = true;
    g_autoptr(GArray) args = g_array_new(FALSE, FALSE, sizeof(StepArg));
    dnnl_memory_desc_t w = *dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    if (!kiln_onednn_settle_scale(builder, conv->x, &w)) {
        dnnl_primitive_desc_destroy(pd);
        return false;
    }
    uint32_t weights = kiln_onednn_packed(builder, conv->w, &conv->weights, &w);
    StepArg fixed[] = {
        { DNNL_ARG_SRC, kiln_onednn_slot_as(builder, kiln_onednn_unscaled(builder, conv->x), &x) },
        { DNNL_ARG_WEIGHTS, kiln_onednn_scale_weights(builder, conv->x, weights) },
        { DNNL_ARG_BIAS, 0 },
    };
    if (has_bias_inside(conv)) {
        dnnl_memory_desc_t bias = kiln_onednn_plain(&conv->bias->type);
        fixed[2].slot = kiln_onednn_slot_as(builder, conv->bias, &bias);
    }
    bool good = kiln_onednn_post_args(builder, inside, sum, args);
    for (uint32_t i = 0; i < (has_bias_inside(conv) ? 3 : 2); i++) {
        good &= fixed[i].slot != UINT32_MAX;
        g_array_append_val(args, fixed[i]);
    }
    if (!good) {
        dnnl_primitive_desc_destroy(pd);
        return false;
    }
    StepArg result = { DNNL_ARG_DST, residual };
    if (sum)
        kiln_onednn_enter(builder, post->result, residual);
    else
        result.slot = kiln_onednn_result(builder, post->result, &y);
    g_array_append_val(args, result);
    g_autofree char *type = kiln_type_to_string(&conv->w->type);
    g_autofree char *what =
        g_strdup_printf("%s %s %s", conv->transposed ? "conv_transpose" : "conv", type,
                        layout == LAYOUT_BLOCKED ? "in blocks" : "channels last");
    if (!kiln_onednn_add(builder, pd, (const StepArg *)(const void *)args->data, args->len, what,
                         name))
        return false;
    if (has_bias_behind(conv) &&
        !kiln_onednn_add_bias(builder, conv->bias, post, layout, result.slot))
        return false;
    return kiln_onednn_add_own(builder, post, result.slot);
}

/* The layout of the region first, then whatever there is. As make_in_layout(). */
static bool
make(Builder *builder, const Conv *conv, PostOps *post, bool *out_made)
{
    Layout layouts[] = { builder->layout, LAYOUT_CHANNELS_LAST, LAYOUT_BLOCKED };
    for (size_t i = 0; i < G_N_ELEMENTS(layouts); i++) {
        *out_made = false;
        if (i > 0 && layouts[i] == builder->layout)
            continue;
        /* Nor does the library add one number to a block that is not full. */
        if (has_bias_behind(conv) && conv->y->type.dims[1] == 1 && layouts[i] == LAYOUT_BLOCKED)
            continue;
        if (!make_in_layout(builder, conv, post, layouts[i], out_made))
            return false;
        if (*out_made)
            return true;
    }
    return true;
}

/* What the library has no implementation with behind it is a step of its own. */
static bool
build(Builder *builder, const Conv *conv)
{
    PostOps post = { .result = conv->y };
    /* The bias of a transposed convolution is a binary step, which leaves out what follows it where
     * channels do not fill the last block. */
    bool whole = conv->y->type.dims[1] % kiln_onednn_block() == 0, made = false;
    if (!conv->transposed || (has_bias_behind(conv) && whole))
        post = kiln_onednn_absorb(builder, conv->y, !conv->transposed);
    do {
        if (!make(builder, conv, &post, &made))
            return false;
    } while (!made && kiln_onednn_release(builder, conv->y, &post));
    return made || kiln_throw(builder->error, KILN_ERROR_UNSUPPORTED,
                              "oneDNN has no implementation for it that is allowed");
}

bool
kiln_onednn_build_conv(Builder *builder, const KilnInstr *instr)
{
    const KilnInstrAttrs_conv *attrs = kiln_instr_attrs(instr, conv);
    Conv conv = conv_of(instr, attrs->strides, attrs->dilations, attrs->pads);
    conv.group = attrs->group;
    conv.weights = weights_of_conv(&conv);
    return build(builder, &conv);
}

bool
kiln_onednn_build_conv_transpose(Builder *builder, const KilnInstr *instr)
{
    const KilnInstrAttrs_conv_transpose *attrs = kiln_instr_attrs(instr, conv_transpose);
    Conv conv = conv_of(instr, attrs->strides, attrs->dilations, attrs->pads);
    conv.transposed = true;
    /* What the result is longer by at its end is padding that is not cut off. */
    for (int i = 0; i < conv.x->type.rank - 2; i++)
        conv.after[i] = (conv.x->type.dims[i + 2] - 1) * conv.strides[i] + 1 +
                        (conv.w->type.dims[i + 2] - 1) * conv.given_dilations[i] - conv.before[i] -
                        conv.y->type.dims[i + 2];
    conv.weights = weights_of_transposed(&conv);
    return build(builder, &conv);
}
