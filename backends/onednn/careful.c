/* SPDX-License-Identifier: Apache-2.0 */
/* What the library masks NaN in: relu, clip, maxima, minima, softmax. Of finite numbers it computes
 * what own kernels do, and faster. So a region has such steps twice:
 *
 *     fast       the library's, while all that they read is proved finite (finite.c)
 *     careful    own kernels, in a run that has met what may be no number
 *
 * Where the library masks on the way out of another operation, the careful run has that operation
 * without, and own kernels behind it, in place. Both read the same weights and write the same
 * slots. Own kernels work on the loops over memory, so that no layout needs a copy. */
#include "backends/onednn/careful.h"

#include "graph/base/shared.h"
#include "graph/op/activation.h"
#include "graph/op/additive.h"
#include "graph/op/bounds.h"
#include "graph/op/multiplicative.h"
#include "graph/op/pool.h"
#include "graph/op/reduce.h"
#include "graph/op/softmax.h"

/* The library computes relu and clip by minimum and maximum, whose second operand it is where one
 * of them is no number. With a slope it asks for the sign, and NaN passes. */
bool
kiln_onednn_masks(const KilnInstr *instr)
{
    switch (instr->kind) {
    case KILN_INSTR_relu:
    case KILN_INSTR_clip:
    case KILN_INSTR_max_pool:
    case KILN_INSTR_global_max_pool:
    case KILN_INSTR_softmax:
    case KILN_INSTR_reduce_max:
    case KILN_INSTR_reduce_min:
        return true;
    case KILN_INSTR_leaky_relu:
        return kiln_instr_attrs(instr, leaky_relu)->alpha == 0;
    default:
        return false;
    }
}

uint32_t
kiln_onednn_first_mask(const PostOps *post)
{
    uint32_t i = 0;
    while (post && i < post->n && !kiln_onednn_masks(post->ops[i].instr))
        i++;
    return i;
}

/* --- element-wise operators, in place --- */

/* The loops over memory of what lies in @layout. */
static KilnType
loops_of(const KilnType *type, Layout layout)
{
    int64_t dims[KILN_MAX_RANK], block = kiln_onednn_block();
    int n = 0;
    if (layout == LAYOUT_PLAIN || type->rank < 3)
        return kiln_type_make(type->dtype, type->rank, type->dims);
    dims[n++] = type->dims[0];
    if (layout == LAYOUT_BLOCKED)
        dims[n++] = (type->dims[1] + block - 1) / block;
    for (int i = 2; i < type->rank; i++)
        dims[n++] = type->dims[i];
    dims[n++] = layout == LAYOUT_BLOCKED ? block : type->dims[1];
    return kiln_type_make(type->dtype, n, dims);
}

/* The same of @type, which broadcasts to @result and lies plain: one number per channel, or the
 * same for all of them. False where no loops say it. */
static bool
broadcast_loops(const KilnType *type, const KilnType *result, Layout layout, KilnType *out)
{
    int64_t dims[KILN_MAX_RANK], of_channel = 1, block = kiln_onednn_block();
    int lead = result->rank - type->rank, n = 0;
    for (int i = 0; i < result->rank; i++)
        dims[i] = i < lead ? 1 : type->dims[i - lead];
    KilnType whole = kiln_type_make(type->dtype, result->rank, dims);
    if (layout == LAYOUT_PLAIN || result->rank < 3 || kiln_type_same_shape(&whole, result)) {
        *out = loops_of(&whole, layout);
        return true;
    }
    for (int i = 2; i < result->rank; i++)
        of_channel *= dims[i];
    bool one = dims[1] == 1, whole_blocks = dims[1] % block == 0 || layout != LAYOUT_BLOCKED;
    if (!one && (of_channel != 1 || dims[0] != 1 || !whole_blocks))
        return false;
    int64_t loops[KILN_MAX_RANK];
    loops[n++] = dims[0];
    if (layout == LAYOUT_BLOCKED)
        loops[n++] = one ? 1 : dims[1] / block;
    for (int i = 2; i < result->rank; i++)
        loops[n++] = dims[i];
    loops[n++] = layout == LAYOUT_BLOCKED && !one ? block : dims[1];
    *out = kiln_type_make(type->dtype, n, loops);
    return true;
}

/* What is added to fill the last block is zero, and must stay that. */
static bool
keeps_zero(const PostOp *op)
{
    switch (op->instr->kind) {
    case KILN_INSTR_sigmoid:
        return false;
    case KILN_INSTR_clip:
        return op->alpha <= 0 && op->beta >= 0;
    default:
        return true;
    }
}

static KilnCustom *
own_clip(const Builder *builder, const PostOp *op, const KilnType *type)
{
    KilnType scalar = kiln_type_make(KILN_DTYPE_f32, 0, NULL);
    KilnTensor *bounds[] = { kiln_tensor_new_splat(&scalar, op->alpha),
                             kiln_tensor_new_splat(&scalar, op->beta) };
    return kiln_onednn_own_with(builder, KILN_OP_clip, NULL, type, 1, bounds, 2);
}

static KilnCustom *
own_unary(const Builder *builder, const PostOp *op, const KilnType *type)
{
    const KilnInstr *instr = op->instr;
    KilnAttrs_leaky_relu leaky;
    KilnAttrs_elu elu;
    KilnAttrs_swish swish;
    KilnAttrs_gelu gelu;
    switch (instr->kind) {
    case KILN_INSTR_relu:
        return kiln_onednn_own(builder, KILN_OP_relu, NULL, type, 1);
    case KILN_INSTR_clip:
        return own_clip(builder, op, type);
    case KILN_INSTR_leaky_relu:
        leaky.alpha = kiln_instr_attrs(instr, leaky_relu)->alpha;
        return kiln_onednn_own(builder, KILN_OP_leaky_relu, &leaky, type, 1);
    case KILN_INSTR_elu:
        elu.alpha = kiln_instr_attrs(instr, elu)->alpha;
        return kiln_onednn_own(builder, KILN_OP_elu, &elu, type, 1);
    case KILN_INSTR_sigmoid:
        return kiln_onednn_own(builder, KILN_OP_sigmoid, NULL, type, 1);
    case KILN_INSTR_tanh:
        return kiln_onednn_own(builder, KILN_OP_tanh, NULL, type, 1);
    case KILN_INSTR_swish:
        swish.alpha = kiln_instr_attrs(instr, swish)->alpha;
        return kiln_onednn_own(builder, KILN_OP_swish, &swish, type, 1);
    case KILN_INSTR_hard_swish:
        return kiln_onednn_own(builder, KILN_OP_hard_swish, NULL, type, 1);
    default:
        gelu.approximate = kiln_instr_attrs(instr, gelu)->approximate;
        return kiln_onednn_own(builder, KILN_OP_gelu, &gelu, type, 1);
    }
}

/* @op on what lies in @layout as @result; NULL where own kernels cannot on the loops over it. */
static KilnCustom *
own_elementwise(const Builder *builder, const PostOp *op, const KilnType *result, Layout layout)
{
    bool padded = layout == LAYOUT_BLOCKED && result->dims[1] % kiln_onednn_block();
    KilnType types[] = { loops_of(result, layout), { 0 } };
    if (padded && !keeps_zero(op))
        return NULL;
    if (!op->is_binary)
        return own_unary(builder, op, types);
    KilnOp kind = op->alg == dnnl_binary_add   ? KILN_OP_add
                  : op->alg == dnnl_binary_sub ? KILN_OP_sub
                                               : KILN_OP_mul;
    if (!broadcast_loops(&op->other->type, result, layout, &types[1]))
        return NULL;
    return kiln_onednn_own(builder, kind, NULL, types, 2);
}

bool
kiln_onednn_careful_tail(Builder *builder, const PostOps *post, Layout layout, CarefulTail *out)
{
    *out = (CarefulTail){ .first = kiln_onednn_first_mask(post) };
    GError **error = builder->error, *why = NULL;
    builder->error = &why; /* it is no error of the region's that there is none */
    bool good = true;
    for (uint32_t i = out->first; good && i < post->n; i++) {
        out->ops[i] = own_elementwise(builder, &post->ops[i], &post->result->type, layout);
        good = out->ops[i] != NULL;
    }
    builder->error = error;
    if (why && !g_error_matches(why, KILN_ERROR, KILN_ERROR_UNSUPPORTED))
        g_propagate_error(error, g_steal_pointer(&why)); /* no memory: not to be passed over */
    g_clear_error(&why);
    if (!good)
        kiln_onednn_careful_clear(out);
    return good;
}

void
kiln_onednn_careful_clear(CarefulTail *tail)
{
    for (uint32_t i = 0; i < POST_MAX; i++) {
        kiln_shared_unref(kiln_custom_shared(tail->ops[i]));
        tail->ops[i] = NULL;
    }
}

bool
kiln_onednn_add_tail(Builder *builder, const PostOps *post, CarefulTail *tail, uint32_t slot)
{
    bool good = true;
    for (uint32_t i = tail->first; good && i < post->n; i++) {
        const PostOp *op = &post->ops[i];
        uint32_t slots[] = { slot, slot, 0 };
        if (op->is_binary)
            slots[2] = kiln_onednn_slot_as(builder, op->other, &op->md);
        good = slots[2] != UINT32_MAX;
        if (!good)
            break;
        builder->when = RUN_CAREFUL;
        kiln_onednn_add_custom(builder, g_steal_pointer(&tail->ops[i]), slots,
                               op->is_binary ? 3 : 2);
        builder->when = RUN_ANY;
    }
    kiln_onednn_careful_clear(tail);
    return good;
}

/* --- operators by themselves --- */

static bool
add_alone(Builder *builder, KilnCustom *custom, uint32_t from, uint32_t to)
{
    if (!custom)
        return false;
    builder->when = RUN_CAREFUL;
    kiln_onednn_add_custom(builder, custom, (uint32_t[]){ to, from }, 2);
    builder->when = RUN_ANY;
    return true;
}

bool
kiln_onednn_add_careful_unary(Builder *builder, const PostOp *op, uint32_t from, uint32_t to)
{
    const KilnType *type = &op->instr->operands[0].buffer->type;
    size_t bytes = dnnl_memory_desc_get_size(kiln_onednn_slot_md(builder, from));
    int64_t n = (int64_t)(bytes / sizeof(float));
    KilnType flat = kiln_type_make(KILN_DTYPE_f32, 1, &n);
    if (n != kiln_type_elements(type) && !keeps_zero(op))
        return kiln_throw(builder->error, KILN_ERROR_UNSUPPORTED,
                          "expected a bound that keeps zero, found %g to %g", (double)op->alpha,
                          (double)op->beta);
    return add_alone(builder, own_unary(builder, op, &flat), from, to);
}

/* Windows of a picture as windows over the loops over memory, where those are pictures too: the
 * loops over channels are one dim in front, and one behind of which a window has one place. */
bool
kiln_onednn_add_careful_pool(Builder *builder, const KilnInstr *instr, const PoolWindow *window,
                             uint32_t from, uint32_t to)
{
    const KilnType *x = &kiln_instr_operand(instr, 1)->type;
    KilnType loops = loops_of(x, builder->layout);
    int64_t dims[KILN_MAX_RANK], lists[4][2 * KILN_MAX_RANK];
    int n = x->rank - 2, spatial = 0, rank = 0;
    if (n > 2 && builder->layout != LAYOUT_PLAIN)
        return kiln_throw(builder->error, KILN_ERROR_UNSUPPORTED,
                          "own kernels have no pool of volumes in this layout");
    bool last = builder->layout == LAYOUT_CHANNELS_LAST;
    dims[rank++] = loops.dims[0];
    if (last)
        dims[rank++] = 1;
    for (int i = 1; i < loops.rank; i++)
        dims[rank++] = loops.dims[i];
    spatial = rank - 2;
    for (int i = 0; i < spatial; i++) {
        bool inside = i < n;
        lists[0][i] = inside ? window->kernel[i] : 1;
        lists[1][i] = inside ? window->strides[i] : 1;
        lists[2][i] = inside ? window->dilates[i] + 1 : 1;
        lists[3][i] = inside ? window->before[i] : 0;
        lists[3][spatial + i] = inside ? window->after[i] : 0;
    }
    uint32_t k = (uint32_t)spatial;
    KilnAttrs_max_pool attrs = { .auto_pad = "NOTSET",
                                 .kernel_shape = { .n = k, .v = lists[0] },
                                 .strides = { .n = k, .v = lists[1] },
                                 .dilations = { .n = k, .v = lists[2] },
                                 .pads = { .n = 2 * k, .v = lists[3] } };
    KilnType type = kiln_type_make(KILN_DTYPE_f32, rank, dims);
    return add_alone(builder, kiln_onednn_own(builder, KILN_OP_max_pool, &attrs, &type, 1), from,
                     to);
}

bool
kiln_onednn_add_careful_rows(Builder *builder, const KilnInstr *instr, int64_t columns,
                             uint32_t from, uint32_t to)
{
    const KilnType *x = &kiln_instr_operand(instr, 1)->type;
    KilnType rows =
        kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ kiln_type_elements(x) / columns, columns });
    if (instr->kind == KILN_INSTR_softmax) {
        KilnAttrs_softmax attrs = { .axis = 1 };
        return add_alone(builder, kiln_onednn_own(builder, KILN_OP_softmax, &attrs, &rows, 1), from,
                         to);
    }
    int64_t axis = 1;
    KilnType list = kiln_type_make(KILN_DTYPE_i64, 1, (int64_t[]){ 1 });
    KilnTensor *axes = kiln_tensor_new_copy(&list, &axis, builder->error);
    KilnOp op = instr->kind == KILN_INSTR_reduce_max ? KILN_OP_reduce_max : KILN_OP_reduce_min;
    return axes && add_alone(builder, kiln_onednn_own_with(builder, op, NULL, &rows, 1, &axes, 1),
                             from, to);
}
