/* SPDX-License-Identifier: Apache-2.0 */
/* col2im: every element of the image is the sum of the block elements that a window would have read
 * there. Operands: result [N, C, …], columns [N, C × block, blocks]. Floats are added in double. */
#include "backends/ref/kernel.h"
#include "ir/kernel.h"

typedef struct {
    int rank; /* of the image without N and C */
    const int64_t *image;
    int64_t block[KILN_MAX_RANK], blocks[KILN_MAX_RANK];
    int64_t strides[KILN_MAX_RANK], dilations[KILN_MAX_RANK], begin[KILN_MAX_RANK];
} Blocks;

static Blocks
blocks_of(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_col2im *attrs = kiln_instr_attrs(args->instr, col2im);
    Blocks b = { .rank = ref_type(args, 0)->rank - 2, .image = ref_type(args, 0)->dims + 2 };
    for (int d = 0; d < b.rank; d++) {
        const uint32_t at = (uint32_t)d;
        b.block[d] = attrs->block_shape.v[d];
        b.strides[d] = kiln_ints_at(attrs->strides, at, 1);
        b.dilations[d] = kiln_ints_at(attrs->dilations, at, 1);
        b.begin[d] = kiln_ints_at(attrs->pads, at, 0);
        const int64_t end = kiln_ints_at(attrs->pads, at + (uint32_t)b.rank, 0);
        b.blocks[d] =
            (b.image[d] + b.begin[d] + end - b.dilations[d] * (b.block[d] - 1) - 1) / b.strides[d] +
            1;
    }
    return b;
}

/* The block that has its element @offset at @index of the image; -1 if there is none. */
static int64_t
block_at(const Blocks *b, const int64_t *index, const int64_t *offset)
{
    int64_t block = 0;
    for (int d = 0; d < b->rank; d++) {
        const int64_t from = index[d] + b->begin[d] - offset[d] * b->dilations[d];
        if (from < 0 || from % b->strides[d] != 0 || from / b->strides[d] >= b->blocks[d])
            return -1;
        block = block * b->blocks[d] + from / b->strides[d];
    }
    return block;
}

const char *
kiln_ref_col2im(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0);
    const KilnDType dtype = out->dtype;
    const Blocks b = blocks_of(args);
    const int64_t pixels = ref_count(b.image, 0, b.rank), size = ref_count(b.block, 0, b.rank);
    const int64_t blocks = ref_count(b.blocks, 0, b.rank);
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t at = 0; at < ref_elements(out); at++) {
        const int64_t columns = at / pixels * size;
        int64_t offset[KILN_MAX_RANK] = { 0 };
        RefValue sum = { 0 };
        for (int64_t e = 0; e < size; e++) {
            const int64_t block = block_at(&b, index, offset);
            if (block >= 0) {
                const RefValue x = ref_load(dtype, args->data[1], (columns + e) * blocks + block);
                if (kiln_dtype_is_float(dtype))
                    sum.f += x.f;
                else
                    sum.u = dtype == KILN_DTYPE_bool ? sum.u | x.u : sum.u + x.u;
            }
            ref_next(offset, b.block, b.rank);
        }
        ref_store(dtype, args->data[0], at, sum);
        ref_next(index, b.image, b.rank);
    }
    return NULL;
}
