/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transposed convolution in two steps, a block of output channels at a time: the product of the
 * weights [channels * taps, ic] with the image [ic, positions] gives what every input position adds
 * to the output around it; then every output row gathers its contributions, tap after tap, so that
 * each sum has one order and one writer.
 */
#include "backends/cpu/conv.h"

#include "backends/cpu/gemm.h"
#include "backends/cpu/parallel.h"

#include <stddef.h>

enum {
    BLOCK_FLOATS = 2 << 20, /* contributions of one block of channels, if it has several */
    GATHER_ROWS = 8,        /* of a task */
};

typedef struct {
    const KilnCpuConv *conv;
    int64_t taps, positions; /* of the kernel, of the input */
    int64_t channels;        /* outputs of a group */
    int64_t block;           /* channels at a time */
} Blocks;

static int64_t
times3(const int64_t v[3])
{
    return v[0] * v[1] * v[2];
}

static Blocks
blocks_of(const KilnCpuConv *c)
{
    Blocks b = { .conv = c, .taps = times3(c->kernel), .positions = times3(c->in) };
    b.channels = c->oc / c->groups;
    int64_t floats;
    bool fits = !__builtin_mul_overflow(b.taps, b.positions, &floats) && floats <= BLOCK_FLOATS;
    b.block = !fits ? 1 : floats == 0 ? b.channels : BLOCK_FLOATS / floats;
    if (b.block > b.channels)
        b.block = b.channels;
    return b;
}

/* The product for @channels output channels of one group. */
static KilnCpuGemm
product_of(const Blocks *b, int64_t channels)
{
    const KilnCpuConv *c = b->conv;
    KilnCpuGemm g = kiln_cpu_gemm_dense(channels * b->taps, b->positions, c->ic / c->groups);
    g.a_row = 1;
    g.a_col = b->channels * b->taps;
    g.a_packed = c->weights_packed;
    g.isa = c->isa;
    return g;
}

/* Bytes of the packed weights of a group: whole blocks, then what is left. */
static int64_t
group_pack_size(const Blocks *b)
{
    if (b->block == 0)
        return 0;
    KilnCpuGemm whole = product_of(b, b->block), rest = product_of(b, b->channels % b->block);
    return b->channels / b->block * kiln_cpu_gemm_pack_a_size(&whole) +
           kiln_cpu_gemm_pack_a_size(&rest);
}

int64_t
kiln_cpu_conv_transpose_pack_size(const KilnCpuConv *conv)
{
    Blocks b = blocks_of(conv);
    return conv->groups * group_pack_size(&b);
}

void
kiln_cpu_conv_transpose_pack(const KilnCpuConv *conv, const void *src, float *dst)
{
    Blocks b = blocks_of(conv);
    int64_t group_floats = conv->ic / conv->groups * b.channels * b.taps;
    for (int64_t g = 0; g < conv->groups; g++) {
        for (int64_t first = 0; first < b.channels; first += b.block) {
            int64_t left = b.channels - first;
            KilnCpuGemm gemm = product_of(&b, left < b.block ? left : b.block);
            gemm.a_packed = true;
            kiln_cpu_gemm_pack_a(&gemm, (const char *)src + 4 * (g * group_floats + first * b.taps),
                                 dst);
            dst += kiln_cpu_gemm_pack_a_size(&gemm) / 4;
        }
    }
}

int64_t
kiln_cpu_conv_transpose_scratch_size(const KilnCpuConv *conv, int threads)
{
    Blocks b = blocks_of(conv);
    if (b.block == 0)
        return 0;
    KilnCpuGemm whole = product_of(&b, b.block), rest = product_of(&b, b.channels % b.block);
    int64_t product = kiln_cpu_gemm_scratch_size(&whole, threads), bytes;
    int64_t of_rest = kiln_cpu_gemm_scratch_size(&rest, threads);
    if (of_rest > product)
        product = of_rest;
    bool too_big = __builtin_mul_overflow(b.block * b.taps, b.positions, &bytes) ||
                   __builtin_mul_overflow(bytes, 4, &bytes) ||
                   __builtin_add_overflow(bytes, product + 64, &bytes);
    return too_big ? INT64_MAX : bytes;
}

typedef struct {
    const Blocks *blocks;
    const float *parts; /* [channels * taps, positions] */
    float *out;         /* of the block's first channel */
    const float *bias;  /* likewise, or NULL */
    int64_t rows;       /* of the block's output */
} GatherJob;

/* The input row that adds to output coordinate @o through tap @t, or -1. */
static int64_t
source_row(const KilnCpuConv *c, int d, int64_t o, int64_t t)
{
    int64_t at = o + c->pad[d] - t * c->dilation[d];
    if (at < 0 || at % c->stride[d] != 0)
        return -1;
    at /= c->stride[d];
    return at < c->in[d] ? at : -1;
}

/* Add one row of contributions of tap @t: input x goes to x * stride + shift. */
static void
add_row(const KilnCpuConv *c, int64_t t, const float *restrict in, float *restrict out)
{
    int64_t stride = c->stride[2], shift = t * c->dilation[2] - c->pad[2];
    int64_t lo = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    int64_t room = c->out[2] - shift;
    int64_t hi = room <= 0 ? 0 : (room + stride - 1) / stride;
    if (hi > c->in[2])
        hi = c->in[2];
    for (int64_t x = lo; x < hi; x++)
        out[x * stride + shift] += in[x];
}

/* One row of the output of one channel; rows count through the block's channels. */
static void
gather_row(const GatherJob *job, int64_t row)
{
    const KilnCpuConv *c = job->blocks->conv;
    int64_t width = c->out[2], y = row % c->out[1], z = row / c->out[1] % c->out[0];
    int64_t channel = row / (c->out[0] * c->out[1]);
    float *out = job->out + row * width;
    float bias = job->bias ? job->bias[channel] : 0.0f;
    for (int64_t x = 0; x < width; x++)
        out[x] = bias;
    const float *parts = job->parts + channel * job->blocks->taps * job->blocks->positions;
    for (int64_t tz = 0; tz < c->kernel[0]; tz++) {
        for (int64_t ty = 0; ty < c->kernel[1]; ty++) {
            int64_t iz = source_row(c, 0, z, tz), iy = source_row(c, 1, y, ty);
            if (iz < 0 || iy < 0)
                continue;
            for (int64_t tx = 0; tx < c->kernel[2]; tx++) {
                int64_t tap = (tz * c->kernel[1] + ty) * c->kernel[2] + tx;
                const float *part = parts + tap * job->blocks->positions;
                add_row(c, tx, part + (iz * c->in[1] + iy) * c->in[2], out);
            }
        }
    }
    for (int64_t x = 0; x < width; x++) {
        float v = c->lo > out[x] ? c->lo : out[x];
        out[x] = c->hi < v ? c->hi : v;
    }
}

static void
gather_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const GatherJob *job = data;
    int64_t end = (task + 1) * GATHER_ROWS;
    for (int64_t row = task * GATHER_ROWS; row < end && row < job->rows; row++)
        gather_row(job, row);
}

/* One group of one image. */
static void
run_group(const Blocks *b, const KilnCpuConvArgs *args, int64_t image, int64_t group)
{
    const KilnCpuConv *c = b->conv;
    int64_t inputs = c->ic / c->groups, outputs = times3(c->out);
    int64_t part_floats = (b->block * b->taps * b->positions + 15) / 16 * 16;
    const char *weights = args->weights;
    weights +=
        c->weights_packed ? group * group_pack_size(b) : 4 * group * inputs * b->channels * b->taps;
    for (int64_t first = 0; first < b->channels; first += b->block) {
        int64_t left = b->channels - first, channels = left < b->block ? left : b->block;
        KilnCpuGemm gemm = product_of(b, channels);
        KilnCpuGemmArgs gemm_args = {
            .a = c->weights_packed ? weights : weights + 4 * first * b->taps,
            .b = args->in + (image * c->ic + group * inputs) * b->positions,
            .out = args->scratch,
            .scratch = args->scratch + part_floats,
            .threads = args->threads,
        };
        kiln_cpu_gemm_run(&gemm, &gemm_args);
        if (c->weights_packed)
            weights += kiln_cpu_gemm_pack_a_size(&gemm);
        int64_t channel = group * b->channels + first;
        GatherJob job = { .blocks = b,
                          .parts = args->scratch,
                          .out = args->out + (image * c->oc + channel) * outputs,
                          .bias = args->bias ? args->bias + channel : NULL,
                          .rows = channels * c->out[0] * c->out[1] };
        int64_t tasks = (job.rows + GATHER_ROWS - 1) / GATHER_ROWS;
        kiln_cpu_parallel(tasks, args->threads, gather_task, &job);
    }
}

void
kiln_cpu_conv_transpose_run(const KilnCpuConv *conv, const KilnCpuConvArgs *args)
{
    Blocks b = blocks_of(conv);
    if (b.block == 0 || times3(conv->out) == 0)
        return;
    for (int64_t image = 0; image < conv->batch; image++) {
        for (int64_t group = 0; group < conv->groups; group++)
            run_group(&b, args, image, group);
    }
}
