/* SPDX-License-Identifier: Apache-2.0 */
/* A scale per channel in front of a convolution with one window, as squeeze-and-excitation blocks
 * have it, goes into the weights of each run where those are much less than the activations:
 *
 *     x   s                x    w   s
 *      \ /                 |     \ /
 *      mul    w     =>     |     mul
 *        \   /              \   /
 *        conv               conv
 *
 * Weights of convolutions with one window lie in blocks of 16 input by 16 output channels, without
 * AVX-512 of 8 by 8: a scale is that of one row in all blocks of its input channels. */
#include "backends/onednn/region.h"
#include "graph/op/multiplicative.h"

static const KilnBuffer *
scale_of(const KilnInstr *mul)
{
    const KilnBuffer *a = kiln_instr_operand(mul, 1), *b = kiln_instr_operand(mul, 2);
    return kiln_type_same_shape(&a->type, &mul->operands[0].buffer->type) ? b : a;
}

static const KilnBuffer *
scaled_by(const KilnInstr *mul)
{
    const KilnBuffer *a = kiln_instr_operand(mul, 1), *scale = scale_of(mul);
    return a == scale ? kiln_instr_operand(mul, 2) : a;
}

static int64_t
padded(int64_t channels)
{
    int64_t block = kiln_onednn_block();
    return (channels + block - 1) / block * block;
}

/* One picture, all input channels at once, one window. */
static bool
takes_scale(const KilnInstr *conv, const KilnBuffer *y)
{
    if (!conv || conv->kind != KILN_INSTR_conv || kiln_instr_operand(conv, 1) != y ||
        kiln_instr_attrs(conv, conv)->group != 1 || y->type.rank != 4 || y->type.dims[0] != 1)
        return false;
    const KilnType *w = &kiln_instr_operand(conv, 2)->type;
    return w->dims[2] == 1 && w->dims[3] == 1;
}

/* What a step of own kernels takes beside what is computed: its operands and its own steps are
 * looked up. */
static const double step_us = 0.3;

/* The weights are read and written, with a number for each of their input channels. */
static bool
pays(const Builder *builder, const KilnInstr *conv, const KilnType *y)
{
    const KilnType *w = &kiln_instr_operand(conv, 2)->type;
    int64_t weights = padded(w->dims[0]) * padded(w->dims[1]);
    KilnCost work = { weights, (int64_t)sizeof(float) * (2 * weights + padded(w->dims[1])) };
    double own = step_us + kiln_target_work_us(builder->target, &work);
    return kiln_onednn_pass_us(y, LAYOUT_BLOCKED) > own;
}

bool
kiln_onednn_defer_scale(Builder *builder, const KilnInstr *instr)
{
    const KilnBuffer *y = kiln_instr_operand(instr, 0);
    const KilnInstr *reader = kiln_onednn_only_reader(y);
    if (instr->kind != KILN_INSTR_mul || builder->layout != LAYOUT_BLOCKED ||
        !takes_scale(reader, y) || builder->done[reader->id] || !pays(builder, reader, &y->type))
        return false;
    const KilnBuffer *x = scaled_by(instr), *scale = scale_of(instr);
    dnnl_memory_desc_t md = kiln_onednn_md(&x->type, LAYOUT_BLOCKED);
    if (x == scale || !kiln_type_same_shape(&x->type, &y->type) ||
        !kiln_onednn_is_per_channel(&scale->type, &y->type) || !builder->values[x->id] ||
        !dnnl_memory_desc_equal(kiln_onednn_slot_md(builder, kiln_onednn_slot(builder, x)), &md))
        return false;
    builder->scaling[y->id] = instr;
    builder->done[instr->id] = false; /* what it reads is still needed */
    return true;
}

const KilnBuffer *
kiln_onednn_unscaled(const Builder *builder, const KilnBuffer *x)
{
    const KilnInstr *mul = builder->scaling[x->id];
    return mul ? scaled_by(mul) : x;
}

bool
kiln_onednn_settle_scale(Builder *builder, const KilnBuffer *x, const dnnl_memory_desc_t *weights)
{
    const KilnInstr *mul = builder->scaling[x->id];
    dnnl_memory_desc_t expected;
    if (!mul)
        return true;
    dnnl_format_tag_t tag = kiln_onednn_block() == 16 ? dnnl_ABcd16b16a : dnnl_ABcd8b8a;
    bool known = dnnl_memory_desc_init_by_tag(&expected, weights->ndims, weights->dims, dnnl_f32,
                                              tag) == dnnl_success;
    builder->done[mul->id] = true;
    if (known && dnnl_memory_desc_equal(&expected, weights))
        return true;
    builder->scaling[x->id] = NULL;
    return kiln_onednn_build_elementwise(builder, mul);
}

uint32_t
kiln_onednn_scale_weights(Builder *builder, const KilnBuffer *x, uint32_t slot)
{
    const KilnInstr *mul = builder->scaling[x->id];
    if (!mul || slot == UINT32_MAX)
        return slot;
    dnnl_memory_desc_t md = *kiln_onednn_slot_md(builder, slot);
    dnnl_memory_desc_t row = kiln_onednn_channels_md(&x->type, LAYOUT_BLOCKED);
    int64_t block = kiln_onednn_block(), channels = padded(x->type.dims[1]);
    int64_t blocks = (int64_t)(dnnl_memory_desc_get_size(&md) / sizeof(float)) / channels / block;
    KilnType types[] = {
        kiln_type_make(KILN_DTYPE_f32, 3, (int64_t[]){ blocks, channels, block }),
        kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ channels, 1 }),
    };
    uint32_t scale = kiln_onednn_slot_as(builder, scale_of(mul), &row);
    KilnCustom *custom =
        scale == UINT32_MAX ? NULL : kiln_onednn_own(builder, KILN_OP_mul, NULL, types, 2);
    if (!custom)
        return UINT32_MAX;
    uint32_t scaled = kiln_onednn_unread(builder, &md);
    kiln_onednn_add_custom(builder, custom, (uint32_t[]){ scaled, slot, scale }, 3);
    return scaled;
}
