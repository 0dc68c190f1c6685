/* SPDX-License-Identifier: Apache-2.0 */
/* transpose, concat, slice, expand, tile, depth_to_space, space_to_depth, channel_shuffle,
 * reverse_sequence: every element of the result is an element of an operand, and a nest of loops
 * says which. */
#include "backends/ref/kernel.h"
#include "backends/ref/movement/nest.h"

const char *
kiln_ref_transpose(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_transpose *attrs = kiln_instr_attrs(args->instr, transpose);
    const KilnType *out = ref_type(args, 0), *in = ref_type(args, 1);
    int64_t to[KILN_MAX_RANK], from[KILN_MAX_RANK];
    ref_strides(out, to);
    ref_strides(in, from);
    RefNest nest = { 0 };
    for (int d = 0; d < out->rank; d++)
        ref_nest_add(&nest, out->dims[d], to[d], from[attrs->perm.v[d]]);
    kiln_ref_nest_copy(&nest, args->data[0], args->data[1], kiln_dtype_size(out->dtype));
    return NULL;
}

const char *
kiln_ref_concat(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_concat *attrs = kiln_instr_attrs(args->instr, concat);
    const KilnType *out = ref_type(args, 0);
    size_t size = kiln_dtype_size(out->dtype);
    RefSplit whole = ref_split(out, attrs->axis);
    int64_t at = 0;
    for (uint32_t i = 1; i < args->instr->n_operands; i++) {
        RefSplit part = ref_split(ref_type(args, i), attrs->axis);
        RefNest nest = { 0 };
        ref_nest_add(&nest, part.outer, whole.axis * whole.inner, part.axis * part.inner);
        ref_nest_add(&nest, part.axis * part.inner, 1, 1);
        kiln_ref_nest_copy(&nest, ref_at_out(args->data[0], at * whole.inner, size), args->data[i],
                           size);
        at += part.axis;
    }
    return NULL;
}

/* Element o of a dim is element start + o × step of the operand's; steps may be negative. */
const char *
kiln_ref_slice(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_slice *attrs = kiln_instr_attrs(args->instr, slice);
    const KilnType *out = ref_type(args, 0), *in = ref_type(args, 1);
    size_t size = kiln_dtype_size(out->dtype);
    int64_t to[KILN_MAX_RANK], from[KILN_MAX_RANK], first = 0;
    ref_strides(out, to);
    ref_strides(in, from);
    RefNest nest = { 0 };
    for (int d = 0; d < out->rank; d++) {
        first += kiln_ints_at(attrs->starts, (uint32_t)d, 0) * from[d];
        ref_nest_add(&nest, out->dims[d], to[d],
                     from[d] * kiln_ints_at(attrs->steps, (uint32_t)d, 1));
    }
    /* Of an empty slice not even the first element need exist. */
    if (ref_elements(out) > 0)
        kiln_ref_nest_copy(&nest, args->data[0], ref_at(args->data[1], first, size), size);
    return NULL;
}

const char *
kiln_ref_expand(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0);
    int64_t to[KILN_MAX_RANK], from[KILN_MAX_RANK];
    ref_strides(out, to);
    ref_broadcast_strides(ref_type(args, 1), out, from);
    RefNest nest = { 0 };
    for (int d = 0; d < out->rank; d++)
        ref_nest_add(&nest, out->dims[d], to[d], from[d]);
    kiln_ref_nest_copy(&nest, args->data[0], args->data[1], kiln_dtype_size(out->dtype));
    return NULL;
}

/* Each dim is two loops: which copy, and where in it. The copies follow from the two shapes. */
const char *
kiln_ref_tile(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0), *in = ref_type(args, 1);
    if (ref_elements(out) == 0)
        return NULL;
    int64_t to[KILN_MAX_RANK], from[KILN_MAX_RANK];
    ref_strides(out, to);
    ref_strides(in, from);
    RefNest nest = { 0 };
    for (int d = 0; d < out->rank; d++) {
        ref_nest_add(&nest, out->dims[d] / in->dims[d], in->dims[d] * to[d], 0);
        ref_nest_add(&nest, in->dims[d], to[d], from[d]);
    }
    kiln_ref_nest_copy(&nest, args->data[0], args->data[1], kiln_dtype_size(out->dtype));
    return NULL;
}

/* The shallow side is [n, c, h × block, w × block]; on the deep side [n, C, h, w] the channel C
 * splits into block row, block column and c. DCR: C = (row × block + column) × c_count + c;
 * CRD: C = (c × block + row) × block + column. */
typedef struct {
    const KilnType *deep;
    int64_t block;
    bool crd;
    bool to_depth; /* which side is written */
} DepthMove;

static const char *
move_depth(const KilnKernelArgs *args, const DepthMove *move)
{
    const int64_t *deep = move->deep->dims;
    int64_t block = move->block, plane = deep[2] * deep[3];
    if (block < 1 || deep[1] % (block * block) != 0)
        return "the channels are no multiple of the block";
    int64_t channels = deep[1] / (block * block), row = deep[3] * block;
    int64_t row_step = (move->crd ? block : block * channels) * plane;
    int64_t column_step = (move->crd ? 1 : channels) * plane;
    int64_t channel_step = (move->crd ? block * block : 1) * plane;
    const int64_t loops[6][3] = {
        /* extent, stride on the deep side, stride on the shallow side */
        { deep[0], deep[1] * plane, deep[1] * plane },
        { channels, channel_step, block * block * plane },
        { deep[2], deep[3], row * block },
        { block, row_step, row },
        { deep[3], 1, block },
        { block, column_step, 1 },
    };
    RefNest nest = { 0 };
    for (int i = 0; i < 6; i++)
        ref_nest_add(&nest, loops[i][0], loops[i][move->to_depth ? 1 : 2],
                     loops[i][move->to_depth ? 2 : 1]);
    kiln_ref_nest_copy(&nest, args->data[0], args->data[1],
                       kiln_dtype_size(ref_type(args, 0)->dtype));
    return NULL;
}

const char *
kiln_ref_depth_to_space(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_depth_to_space *attrs = kiln_instr_attrs(args->instr, depth_to_space);
    return move_depth(args, &(DepthMove){ .deep = ref_type(args, 1),
                                          .block = attrs->blocksize,
                                          .crd = strcmp(attrs->mode, "CRD") == 0 });
}

const char *
kiln_ref_space_to_depth(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_space_to_depth *attrs = kiln_instr_attrs(args->instr, space_to_depth);
    return move_depth(args, &(DepthMove){ .deep = ref_type(args, 0),
                                          .block = attrs->blocksize,
                                          .crd = strcmp(attrs->mode, "CRD") == 0,
                                          .to_depth = true });
}

/* Channel i × (channels / group) + j becomes channel j × group + i. */
const char *
kiln_ref_channel_shuffle(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_channel_shuffle *attrs = kiln_instr_attrs(args->instr, channel_shuffle);
    const KilnType *type = ref_type(args, 0);
    const RefSplit split = ref_split(type, attrs->axis);
    const int64_t length = split.axis / attrs->group;
    RefNest nest = { 0 };
    ref_nest_add(&nest, split.outer, split.axis * split.inner, split.axis * split.inner);
    ref_nest_add(&nest, length, attrs->group * split.inner, split.inner);
    ref_nest_add(&nest, attrs->group, split.inner, length * split.inner);
    ref_nest_add(&nest, split.inner, 1, 1);
    kiln_ref_nest_copy(&nest, args->data[0], args->data[1], kiln_dtype_size(type->dtype));
    return NULL;
}

/* The first `length` steps of each sequence run backwards, the rest stays. */
const char *
kiln_ref_reverse_sequence(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_reverse_sequence *attrs = kiln_instr_attrs(args->instr, reverse_sequence);
    const KilnType *type = ref_type(args, 0);
    size_t size = kiln_dtype_size(type->dtype);
    int64_t strides[KILN_MAX_RANK], index[KILN_MAX_RANK] = { 0 };
    ref_strides(type, strides);
    int batch = kiln_type_axis(type, attrs->batch_axis);
    int time = kiln_type_axis(type, attrs->time_axis);
    for (int64_t i = 0; i < type->dims[batch]; i++) {
        int64_t length = ref_load_int(ref_type(args, 2)->dtype, args->data[2], i);
        if (length < 0 || length > type->dims[time])
            return "a sequence length is negative or over the time dimension";
    }
    if (ref_elements(type) == 0)
        return NULL;
    do {
        int64_t length = ref_load_int(ref_type(args, 2)->dtype, args->data[2], index[batch]);
        int64_t to = ref_offset(index, strides, type->rank), from = to;
        if (index[time] < length)
            from += (length - 1 - 2 * index[time]) * strides[time];
        ref_copy_element(args->data[0], to, args->data[1], from, size);
    } while (ref_next(index, type->dims, type->rank));
    return NULL;
}
