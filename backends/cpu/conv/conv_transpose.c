/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolution in two steps, a block of output channels at a time: the product of the
 * weights [channels * taps, ic] with the image [ic, positions] gives what every input position adds
 * to the output around it; then every output row gathers its contributions, tap after tap, so that
 * each sum has one order and one writer. */
#include "backends/cpu/conv/conv.h"

#include "backends/cpu/conv/conv_kernel.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/stack/tail.h"

#include <string.h>

enum {
    BLOCK_FLOATS = 3 << 17, /* contributions of one block of channels, if it has several */
    GATHER_ROWS = 8,        /* of a task */
};

typedef struct {
    const KilnCpuConv *conv;
    int64_t taps, positions; /* of the kernel, of the input */
    int64_t channels;        /* outputs of a group */
    int64_t block;           /* channels at a time */
} Blocks;

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

/* Floats of one remainder's part of an output row, and room for vectors that reach over its end. */
static int64_t
way_pitch(const KilnCpuConv *c)
{
    return c->out[2] / c->stride[2] + 1 + 16;
}

/* Remainders that an output row has; weave() reads two where the stride is 2. */
static int64_t
way_count(const KilnCpuConv *c)
{
    int64_t width = c->out[2] < 2 ? 2 : c->out[2];
    return c->stride[2] < width ? c->stride[2] : width;
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

void
kiln_transposed_terms(const KilnCpuConv *conv, double terms[KILN_CPU_TERMS])
{
    Blocks b = blocks_of(conv);
    KilnCpuGemm product = product_of(&b, b.channels);
    double images = (double)conv->batch * (double)conv->groups;
    kiln_matmul_terms(&product, terms);
    terms[0] *= images;
    terms[1] = 4 * images * (double)product.m * (double)product.n;
    terms[2] = 4 * (double)conv->batch * (double)conv->oc * (double)times3(conv->out);
    terms[3] = 1;
}

int64_t
kiln_cpu_conv_transpose_pack_size(const KilnCpuConv *conv)
{
    Blocks b = blocks_of(conv);
    return conv->groups * group_pack_size(&b);
}

void
kiln_cpu_conv_transpose_pack(const KilnCpuConv *conv, const void *src, float *dst, KilnSlice slice)
{
    Blocks b = blocks_of(conv);
    int64_t group_floats = conv->ic / conv->groups * b.channels * b.taps;
    for (int64_t g = 0; g < conv->groups; g++) {
        for (int64_t first = 0; first < b.channels; first += b.block) {
            int64_t left = b.channels - first;
            KilnCpuGemm gemm = product_of(&b, left < b.block ? left : b.block);
            gemm.a_packed = true;
            kiln_cpu_gemm_pack_a(&gemm, (const char *)src + 4 * (g * group_floats + first * b.taps),
                                 dst, slice);
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
    int64_t product = kiln_cpu_gemm_scratch_size(&whole, threads), bytes, ways;
    int64_t of_rest = kiln_cpu_gemm_scratch_size(&rest, threads);
    if (of_rest > product)
        product = of_rest;
    bool too_big = __builtin_mul_overflow(way_pitch(conv), way_count(conv), &ways) ||
                   __builtin_mul_overflow(ways, 4 * (threads > 1 ? threads : 1), &ways) ||
                   __builtin_mul_overflow(b.block * b.taps, b.positions, &bytes) ||
                   __builtin_mul_overflow(bytes, 4, &bytes) ||
                   __builtin_add_overflow(bytes, (ways > product ? ways : product) + 64, &bytes);
    return too_big ? INT64_MAX : bytes;
}

typedef struct {
    const Blocks *blocks;
    const float *parts; /* [channels * taps, positions] */
    float *out;         /* of the block's first channel */
    const float *bias;  /* likewise, or NULL */
    int64_t rows;       /* of the block's output */
    float *ways;        /* of each thread: stride arrays of pitch floats */
    int64_t pitch;
    const KilnConvKernels *kernels;
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

/* Add one row of contributions of tap @t: input x goes to x * stride + shift of the output, which
   is place x + shift / stride of the way shift % stride. */
static void
add_row(const GatherJob *job, int64_t t, const float *in, float *ways)
{
    const KilnCpuConv *c = job->blocks->conv;
    int64_t stride = c->stride[2], shift = t * c->dilation[2] - c->pad[2];
    int64_t way = (shift % stride + stride) % stride, place = (shift - way) / stride;
    int64_t lo = place >= 0 ? 0 : -place;
    int64_t room = c->out[2] - way <= 0 ? 0 : (c->out[2] - way + stride - 1) / stride - place;
    int64_t hi = room < c->in[2] ? room : c->in[2];
    if (lo < hi)
        job->kernels->add(ways + way * job->pitch + place + lo, in + lo, hi - lo);
}

/* One row of the output of one channel; rows count through the block's channels. Sums are kept in
   one array for each remainder modulo the stride, where contributions lie side by side. */
static void
gather_row(const GatherJob *job, int64_t row, float *ways)
{
    const KilnCpuConv *c = job->blocks->conv;
    int64_t y = row % c->out[1], z = row / c->out[1] % c->out[0];
    int64_t channel = row / (c->out[0] * c->out[1]);
    memset(ways, 0, (size_t)(4 * way_count(c) * job->pitch));
    const float *parts = job->parts + channel * job->blocks->taps * job->blocks->positions;
    for (int64_t tz = 0; tz < c->kernel[0]; tz++) {
        for (int64_t ty = 0; ty < c->kernel[1]; ty++) {
            int64_t iz = source_row(c, 0, z, tz), iy = source_row(c, 1, y, ty);
            if (iz < 0 || iy < 0)
                continue;
            for (int64_t tx = 0; tx < c->kernel[2]; tx++) {
                int64_t tap = (tz * c->kernel[1] + ty) * c->kernel[2] + tx;
                const float *part = parts + tap * job->blocks->positions;
                add_row(job, tx, part + (iz * c->in[1] + iy) * c->in[2], ways);
            }
        }
    }
    KilnWeave weave = { .dst = job->out + row * c->out[2],
                        .src = ways,
                        .ways = c->stride[2],
                        .pitch = job->pitch,
                        .length = c->out[2],
                        .bias = job->bias ? job->bias[channel] : 0.0f,
                        .lo = c->tail.lo,
                        .hi = c->tail.hi };
    job->kernels->weave(&weave);
    kiln_cpu_tail_activate(&c->tail, weave.dst, weave.length);
}

static void
gather_task(const void *data, int64_t task, int thread)
{
    const GatherJob *job = data;
    float *ways = job->ways + thread * job->pitch * way_count(job->blocks->conv);
    int64_t end = (task + 1) * GATHER_ROWS;
    for (int64_t row = task * GATHER_ROWS; row < end && row < job->rows; row++)
        gather_row(job, row, ways);
}

/* One group of one image. */
static void
run_group(const Blocks *b, const KilnCpuConvArgs *args, int64_t image, int64_t group)
{
    const KilnCpuConv *c = b->conv;
    int64_t inputs = c->ic / c->groups, outputs = times3(c->out);
    int64_t part_floats = round_up(b->block * b->taps * b->positions, KILN_CPU_LINE_FLOATS);
    const char *weights = args->weights;
    weights +=
        c->weights_packed ? group * group_pack_size(b) : 4 * group * inputs * b->channels * b->taps;
    for (int64_t first = 0; first < b->channels; first += b->block) {
        int64_t left = b->channels - first, channels = left < b->block ? left : b->block;
        KilnCpuGemm gemm = product_of(b, channels);
        KilnCpuGemmArgs gemm_args = {
            .a = c->weights_packed ? weights : weights + 4 * first * b->taps,
            .b = args->in + image * kiln_conv_in_image(c, args) + group * inputs * b->positions,
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
                          .out =
                              args->out + image * kiln_conv_out_image(c, args) + channel * outputs,
                          .bias = args->bias ? args->bias + channel : NULL,
                          .rows = channels * c->out[0] * c->out[1],
                          .ways = gemm_args.scratch,
                          .pitch = way_pitch(c),
                          .kernels = kiln_conv_kernels(c->isa, c->out[2]) };
        int64_t tasks = ceil_div(job.rows, GATHER_ROWS);
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
