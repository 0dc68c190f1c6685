/* SPDX-License-Identifier: Apache-2.0 */
/* transpose, concat, slice, expand, tile, depth_to_space, space_to_depth, channel_shuffle of any
 * element type: each states which element goes where as a nest of loops. Operands: result, data; of
 * concat any number.
 */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/movement/columns.h"
#include "backends/cpu/movement/strided.h"
#include "backends/cpu/movement/strided_operands.h"
#include "backends/cpu/parallel.h"

#include <string.h>

enum {
    ROWS = 4096, /* of a task that joins columns */
};

bool
kiln_cpu_movement_supports(const KilnInstr *instr)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnType *type = cpu_type(instr, i);
        if (type && type->layout)
            return false;
    }
    return true;
}

/* Copies to the result and from operand 1, from element @first on. */
static void
copy(const KilnKernelArgs *args, const KilnCpuNest *nest, int64_t first)
{
    size_t size = kiln_dtype_size(cpu_type(args->instr, 0)->dtype);
    kiln_cpu_nest_copy(nest,
                       &(KilnCpuEnds){ .to = args->data[0],
                                       .from = (const char *)args->data[1] + first * (int64_t)size,
                                       .size = size,
                                       .threads = args->threads });
}

const char *
kiln_cpu_transpose(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_transpose *attrs = kiln_instr_attrs(args->instr, transpose);
    const KilnType *out = cpu_type(args->instr, 0);
    int64_t to[KILN_MAX_RANK], from[KILN_MAX_RANK];
    kiln_cpu_strides(args->instr, 0, to);
    kiln_cpu_strides(args->instr, 1, from);
    KilnCpuNest nest = { 0 };
    for (int d = 0; d < out->rank; d++)
        kiln_cpu_nest_add(&nest, out->dims[d], to[d], from[attrs->perm.v[d]]);
    copy(args, &nest, 0);
    return NULL;
}

/* --- concat of columns --- */

typedef struct {
    char *to;
    const char *columns[KILN_CPU_COLUMNS_MOST];
    KilnCpuJoinColumns join;
    int64_t n, size, rows; /* n: of columns */
} Columns;

static void
join_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Columns *c = data;
    const int64_t first = task * ROWS, n = min_of(ROWS, c->rows - first);
    const char *columns[KILN_CPU_COLUMNS_MOST];
    for (int64_t k = 0; k < c->n; k++)
        columns[k] = c->columns[k] + first * c->size;
    c->join(c->to + first * c->n * c->size, columns, n);
}

/* Joins parts of one element in each row of the result; false where they are others. */
static bool
join_columns(const KilnKernelArgs *args, int axis)
{
    const KilnType *out = cpu_type(args->instr, 0);
    const int64_t size = (int64_t)kiln_dtype_size(out->dtype), n = args->instr->n_operands - 1;
    Columns c = { .to = args->data[0], .n = n, .size = size, .rows = 1 };
    bool good = kiln_cpu_has_columns(n) && !kiln_buffer_is_strided(args->instr->operands[0].buffer);
    for (uint32_t i = 1; good && i < args->instr->n_operands; i++) {
        const KilnType *part = cpu_type(args->instr, i);
        for (int d = axis; d < part->rank; d++)
            good &= part->dims[d] == 1;
        good &= !kiln_buffer_is_strided(args->instr->operands[i].buffer);
        c.columns[i - 1] = args->data[i];
    }
    if (!good)
        return false;
    for (int d = 0; d < axis; d++)
        c.rows *= out->dims[d];
    c.join = kiln_cpu_columns()->join[__builtin_ctzll((unsigned long long)size)][n];
    kiln_cpu_parallel(ceil_div(c.rows, ROWS), args->threads, join_task, &c);
    return true;
}

const char *
kiln_cpu_concat(const KilnKernelArgs *args)
{
    const KilnType *out = cpu_type(args->instr, 0);
    int axis = kiln_type_axis(out, kiln_instr_attrs(args->instr, concat)->axis);
    size_t size = kiln_dtype_size(out->dtype);
    int64_t to[KILN_MAX_RANK], from[KILN_MAX_RANK], at = 0;
    if (join_columns(args, axis))
        return NULL;
    kiln_cpu_strides(args->instr, 0, to);
    for (uint32_t i = 1; i < args->instr->n_operands; i++) {
        const KilnType *part = cpu_type(args->instr, i);
        KilnCpuNest nest = { 0 };
        kiln_cpu_strides(args->instr, i, from);
        for (int d = 0; d < out->rank; d++)
            kiln_cpu_nest_add(&nest, part->dims[d], to[d], from[d]);
        kiln_cpu_nest_copy(&nest, &(KilnCpuEnds){ .to = (char *)args->data[0] + at * (int64_t)size,
                                                  .from = args->data[i],
                                                  .size = size,
                                                  .threads = args->threads });
        at += part->dims[axis] * to[axis];
    }
    return NULL;
}

const char *
kiln_cpu_slice(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_slice *attrs = kiln_instr_attrs(args->instr, slice);
    const KilnType *out = cpu_type(args->instr, 0);
    int64_t to[KILN_MAX_RANK], from[KILN_MAX_RANK], first = 0;
    kiln_cpu_strides(args->instr, 0, to);
    kiln_cpu_strides(args->instr, 1, from);
    KilnCpuNest nest = { 0 };
    for (int d = 0; d < out->rank; d++) {
        first += kiln_ints_at(attrs->starts, (uint32_t)d, 0) * from[d];
        kiln_cpu_nest_add(&nest, out->dims[d], to[d],
                          from[d] * kiln_ints_at(attrs->steps, (uint32_t)d, 1));
    }
    if (kiln_type_elements(out) > 0) /* else not even the first element need exist */
        copy(args, &nest, first);
    return NULL;
}

/* Dims are aligned at the right. */
const char *
kiln_cpu_expand(const KilnKernelArgs *args)
{
    const KilnType *out = cpu_type(args->instr, 0), *in = cpu_type(args->instr, 1);
    int64_t to[KILN_MAX_RANK], from[KILN_MAX_RANK];
    kiln_cpu_strides(args->instr, 0, to);
    kiln_cpu_strides(args->instr, 1, from);
    KilnCpuNest nest = { 0 };
    for (int d = 0; d < out->rank; d++) {
        int own = d - (out->rank - in->rank);
        bool repeats = own < 0 || in->dims[own] == 1;
        kiln_cpu_nest_add(&nest, out->dims[d], to[d], repeats ? 0 : from[own]);
    }
    copy(args, &nest, 0);
    return NULL;
}

/* Each dim is two loops: which copy, and where in it. */
const char *
kiln_cpu_tile(const KilnKernelArgs *args)
{
    const KilnType *out = cpu_type(args->instr, 0), *in = cpu_type(args->instr, 1);
    if (kiln_type_elements(out) == 0)
        return NULL;
    int64_t to[KILN_MAX_RANK], from[KILN_MAX_RANK];
    kiln_cpu_strides(args->instr, 0, to);
    kiln_cpu_strides(args->instr, 1, from);
    KilnCpuNest nest = { 0 };
    for (int d = 0; d < out->rank; d++) {
        kiln_cpu_nest_add(&nest, out->dims[d] / in->dims[d], in->dims[d] * to[d], 0);
        kiln_cpu_nest_add(&nest, in->dims[d], to[d], from[d]);
    }
    copy(args, &nest, 0);
    return NULL;
}

/* The deep side is [n, channels × block × block, h, w], the other one
 * [n, channels, h × block, w × block]. In mode CRD the channels are the slowest part of the deep
 * side's second dim, else the fastest. */
static const char *
move_depth(const KilnKernelArgs *args, const KilnType *deep, int64_t block, bool crd)
{
    const int64_t *dims = deep->dims;
    if (block < 1 || dims[1] % (block * block) != 0)
        return "the channels are no multiple of the block";
    int64_t plane = dims[2] * dims[3], channels = dims[1] / (block * block);
    int64_t row = dims[3] * block; /* of the other side */
    int64_t deep_row = (crd ? block : block * channels) * plane;
    int64_t deep_column = (crd ? 1 : channels) * plane;
    int64_t deep_channel = (crd ? block * block : 1) * plane;
    const int64_t loops[6][3] = {
        /* extent, stride of the deep side, stride of the other one */
        { dims[0], dims[1] * plane, dims[1] * plane },
        { channels, deep_channel, block * block * plane },
        { dims[2], dims[3], row * block },
        { block, deep_row, row },
        { dims[3], 1, block },
        { block, deep_column, 1 },
    };
    bool to_deep = deep == cpu_type(args->instr, 0);
    KilnCpuNest nest = { 0 };
    for (int i = 0; i < 6; i++)
        kiln_cpu_nest_add(&nest, loops[i][0], loops[i][to_deep ? 1 : 2], loops[i][to_deep ? 2 : 1]);
    copy(args, &nest, 0);
    return NULL;
}

const char *
kiln_cpu_depth_to_space(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_depth_to_space *attrs = kiln_instr_attrs(args->instr, depth_to_space);
    return move_depth(args, cpu_type(args->instr, 1), attrs->blocksize,
                      strcmp(attrs->mode, "CRD") == 0);
}

const char *
kiln_cpu_space_to_depth(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_space_to_depth *attrs = kiln_instr_attrs(args->instr, space_to_depth);
    return move_depth(args, cpu_type(args->instr, 0), attrs->blocksize,
                      strcmp(attrs->mode, "CRD") == 0);
}

/* Channel i × (channels / group) + j becomes channel j × group + i. */
const char *
kiln_cpu_channel_shuffle(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_channel_shuffle *attrs = kiln_instr_attrs(args->instr, channel_shuffle);
    const KilnType *type = cpu_type(args->instr, 0);
    const int64_t channels = type->dims[attrs->axis], group = attrs->group;
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < type->rank; d++)
        *(d < attrs->axis ? &outer : &inner) *= d == attrs->axis ? 1 : type->dims[d];
    KilnCpuNest nest = { 0 };
    kiln_cpu_nest_add(&nest, outer, channels * inner, channels * inner);
    kiln_cpu_nest_add(&nest, channels / group, group * inner, inner);
    kiln_cpu_nest_add(&nest, group, inner, channels / group * inner);
    kiln_cpu_nest_add(&nest, inner, 1, 1);
    copy(args, &nest, 0);
    return NULL;
}
