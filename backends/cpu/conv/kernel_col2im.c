/* SPDX-License-Identifier: Apache-2.0 */
/* col2im in f32: a task adds the blocks of one channel to its image, one element of the blocks
 * after another, in rows. Operands: result [N, C, …], columns [N, C × block, blocks]. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"

#include <string.h>

typedef struct {
    float *to;
    const float *from;
    int rank; /* of the image without N and C */
    const int64_t *image;
    int64_t pixels, size, count; /* of an image, of a block, of blocks */
    int64_t block[KILN_MAX_RANK], blocks[KILN_MAX_RANK];
    int64_t strides[KILN_MAX_RANK], dilations[KILN_MAX_RANK], begin[KILN_MAX_RANK];
} Blocks;

static Blocks
blocks_of(const KilnInstr *instr)
{
    const KilnInstrAttrs_col2im *attrs = kiln_instr_attrs(instr, col2im);
    const KilnType *out = cpu_type(instr, 0);
    Blocks b = {
        .rank = out->rank - 2, .image = out->dims + 2, .pixels = 1, .size = 1, .count = 1
    };
    for (int d = 0; d < b.rank; d++) {
        const uint32_t at = (uint32_t)d;
        b.block[d] = attrs->block_shape.v[d];
        b.strides[d] = kiln_ints_at(attrs->strides, at, 1);
        b.dilations[d] = kiln_ints_at(attrs->dilations, at, 1);
        b.begin[d] = kiln_ints_at(attrs->pads, at, 0);
        const int64_t end = kiln_ints_at(attrs->pads, at + (uint32_t)b.rank, 0);
        const int64_t room = b.image[d] + b.begin[d] + end - b.dilations[d] * (b.block[d] - 1) - 1;
        b.blocks[d] = room / b.strides[d] + 1;
        b.pixels *= b.image[d];
        b.size *= b.block[d];
        b.count *= b.blocks[d];
    }
    return b;
}

/* The blocks whose element at distance @shift from the begin of the padding lies in the image of
 * @extent elements: [*first, *end). */
static void
inside(int64_t shift, int64_t stride, int64_t extent, int64_t blocks, int64_t *first, int64_t *end)
{
    *first = shift < 0 ? ceil_div(-shift, stride) : 0;
    *end = shift >= extent ? 0 : min_of(blocks, (extent - 1 - shift) / stride + 1);
}

/* Adds element @offset of all blocks, which begin at @from. */
static void
add_element(const Blocks *b, float *image, const float *from, const int64_t *offset)
{
    const int last = b->rank - 1;
    int64_t index[KILN_MAX_RANK] = { 0 }, first, end;
    const int64_t shift = offset[last] * b->dilations[last] - b->begin[last];
    const int64_t stride = b->strides[last], rows = b->count / b->blocks[last];
    inside(shift, stride, b->image[last], b->blocks[last], &first, &end);
    for (int64_t row = 0; row < rows; row++, from += b->blocks[last]) {
        int64_t at = 0;
        bool there = true;
        for (int d = 0; d < last; d++) {
            const int64_t i = index[d] * b->strides[d] + offset[d] * b->dilations[d] - b->begin[d];
            there &= i >= 0 && i < b->image[d];
            at = at * b->image[d] + i;
        }
        float *to = image + at * b->image[last] + shift;
        if (there && stride == 1) {
            for (int64_t i = first; i < end; i++)
                to[i] += from[i];
        } else if (there) {
            for (int64_t i = first; i < end; i++)
                to[i * stride] += from[i];
        }
        for (int d = last - 1; d >= 0 && ++index[d] == b->blocks[d]; d--)
            index[d] = 0;
    }
}

static void
add_channel(const void *data, int64_t channel, int thread)
{
    (void)thread;
    const Blocks *b = data;
    float *image = b->to + channel * b->pixels;
    const float *from = b->from + channel * b->size * b->count;
    int64_t offset[KILN_MAX_RANK] = { 0 };
    memset(image, 0, (size_t)b->pixels * sizeof *image);
    for (int64_t e = 0; e < b->size; e++) {
        add_element(b, image, from + e * b->count, offset);
        for (int d = b->rank - 1; d >= 0 && ++offset[d] == b->block[d]; d--)
            offset[d] = 0;
    }
}

const char *
kiln_cpu_col2im(const KilnKernelArgs *args)
{
    const KilnType *out = cpu_type(args->instr, 0);
    Blocks b = blocks_of(args->instr);
    b.to = args->data[0];
    b.from = args->data[1];
    if (kiln_type_elements(out) > 0)
        kiln_cpu_parallel(out->dims[0] * out->dims[1], args->threads, add_channel, &b);
    return NULL;
}
