/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions: which implementation, in which layout. */
#include "backends/onednn/careful.h"
#include "backends/onednn/region.h"

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

/* @weights: how they lie; NULL: as the library likes them. */
static dnnl_primitive_desc_t
choose(const Conv *conv, const dnnl_memory_desc_t *x, const dnnl_memory_desc_t *y,
       const dnnl_memory_desc_t *weights, dnnl_primitive_attr_t attr, const char **name)
{
    dnnl_alg_kind_t alg = conv->transposed ? dnnl_deconvolution_direct : dnnl_convolution_direct;
    dnnl_memory_desc_t w = weights ? *weights : conv->weights, bias;
    if (!weights)
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

/* A convolution in a layout: of all runs, or once for fast ones, with all of @post, and once for
 * careful ones, with what stands in front of the first that masks NaN. */
typedef struct {
    Layout layout;
    dnnl_memory_desc_t x, y;
    const PostOps *inside;
    uint32_t residual; /* the slot that is added to; UINT32_MAX: none */
    dnnl_primitive_desc_t pd, careful;
    const char *name, *careful_name;
    CarefulTail tail;
} Made;

static void
made_clear(Made *made)
{
    if (made->pd)
        dnnl_primitive_desc_destroy(made->pd);
    if (made->careful)
        dnnl_primitive_desc_destroy(made->careful);
    kiln_onednn_careful_clear(&made->tail);
}

static dnnl_primitive_desc_t
choose_with(const Conv *conv, const Made *made, const PostOps *post,
            const dnnl_memory_desc_t *weights, const char **name)
{
    dnnl_primitive_attr_t attr = kiln_onednn_attr(post, made->residual != UINT32_MAX);
    dnnl_primitive_desc_t pd = attr ? choose(conv, &made->x, &made->y, weights, attr, name) : NULL;
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    return pd;
}

static PostOps
head_of(const Made *made)
{
    PostOps head = *made->inside;
    head.n = made->tail.first;
    return head;
}

/* False where the library has nothing allowed. */
static bool
choose_both(Builder *builder, const Conv *conv, Made *made)
{
    made->pd = choose_with(conv, made, made->inside, NULL, &made->name);
    if (!made->pd || !kiln_onednn_careful_tail(builder, made->inside, made->layout, &made->tail))
        return false;
    if (made->tail.first == made->inside->n)
        return true;
    PostOps head = head_of(made);
    made->careful = choose_with(conv, made, &head,
                                dnnl_primitive_desc_query_md(made->pd, dnnl_query_weights_md, 0),
                                &made->careful_name);
    return made->careful != NULL;
}

/* Adds the step of *@pd, which is taken over, with @post. */
static bool
add_step(Builder *builder, const Conv *conv, const Made *made, const PostOps *post,
         dnnl_primitive_desc_t *pd, const char *name, const StepArg fixed[4])
{
    g_autoptr(GArray) args = g_array_new(FALSE, FALSE, sizeof(StepArg));
    RunKind when = builder->when;
    if (!kiln_onednn_post_args(builder, post, made->residual != UINT32_MAX, args))
        return false;
    for (uint32_t i = 0; i < (has_bias_inside(conv) ? 4 : 3); i++)
        g_array_append_val(args, fixed[i]);
    g_autofree char *type = kiln_type_to_string(&conv->w->type);
    g_autofree char *what =
        g_strdup_printf("%s %s %s", conv->transposed ? "conv_transpose" : "conv", type,
                        made->layout == LAYOUT_BLOCKED ? "in blocks" : "channels last");
    builder->when = when;
    return kiln_onednn_add(builder, g_steal_pointer(pd), (const StepArg *)(const void *)args->data,
                           args->len, what, name);
}

static bool
add_both(Builder *builder, const Conv *conv, Made *made, const StepArg fixed[4])
{
    PostOps head = head_of(made);
    if (!made->careful)
        return add_step(builder, conv, made, made->inside, &made->pd, made->name, fixed);
    builder->when = RUN_FAST;
    bool good = add_step(builder, conv, made, made->inside, &made->pd, made->name, fixed);
    builder->when = RUN_CAREFUL;
    good = good && add_step(builder, conv, made, &head, &made->careful, made->careful_name, fixed);
    builder->when = RUN_ANY;
    return good && kiln_onednn_add_tail(builder, made->inside, &made->tail, fixed[0].slot);
}

/* Slots of what is read and written: the result, the operand, weights, bias. */
static bool
find_operands(Builder *builder, const Conv *conv, const Made *made, const PostOps *post,
              StepArg fixed[4])
{
    dnnl_memory_desc_t w = *dnnl_primitive_desc_query_md(made->pd, dnnl_query_weights_md, 0);
    if (!kiln_onednn_settle_scale(builder, conv->x, &w))
        return false;
    uint32_t weights = kiln_onednn_packed(builder, conv->w, &conv->weights, &w);
    fixed[1].slot = kiln_onednn_slot_as(builder, kiln_onednn_unscaled(builder, conv->x), &made->x);
    fixed[2].slot = kiln_onednn_scale_weights(builder, conv->x, weights);
    if (has_bias_inside(conv)) {
        dnnl_memory_desc_t bias = kiln_onednn_plain(&conv->bias->type);
        fixed[3].slot = kiln_onednn_slot_as(builder, conv->bias, &bias);
    }
    for (int i = 1; i < 4; i++) {
        if (fixed[i].slot == UINT32_MAX)
            return false;
    }
    fixed[0].slot = made->residual;
    if (made->residual == UINT32_MAX)
        fixed[0].slot = kiln_onednn_result(builder, post->result, &made->y);
    else
        kiln_onednn_enter(builder, post->result, made->residual);
    return true;
}

/* False where the library has nothing allowed in @layout: *@out_made says whether that is all. */
static bool
make_in_layout(Builder *builder, const Conv *conv, PostOps *post, Layout layout, bool *out_made)
{
    bool first = layout == LAYOUT_BLOCKED && conv->x->type.dims[1] <= FEW_CHANNELS;
    kiln_onednn_post_layout(post, layout);
    const PostOps nothing = { .result = post->result };
    Made made = { .layout = layout,
                  .x = kiln_onednn_md(&conv->x->type, first ? LAYOUT_PLAIN : layout),
                  .y = kiln_onednn_md(&conv->y->type, layout),
                  .inside = conv->transposed ? &nothing : post,
                  .residual = UINT32_MAX };
    if (dies_here(builder, conv, made.inside))
        made.residual = residual_slot(builder, made.inside, &made.y);
    *out_made = choose_both(builder, conv, &made);
    if (!*out_made && builder->error && *builder->error) {
        made_clear(&made);
        return false;
    }
    StepArg fixed[] = {
        { DNNL_ARG_DST, 0 }, { DNNL_ARG_SRC, 0 }, { DNNL_ARG_WEIGHTS, 0 }, { DNNL_ARG_BIAS, 0 }
    };
    bool good = !*out_made || (find_operands(builder, conv, &made, post, fixed) &&
                               add_both(builder, conv, &made, fixed));
    made_clear(&made);
    if (!good || !*out_made)
        return good;
    if (has_bias_behind(conv) &&
        !kiln_onednn_add_bias(builder, conv->bias, post, layout, fixed[0].slot))
        return false;
    return kiln_onednn_add_own(builder, post, fixed[0].slot);
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
