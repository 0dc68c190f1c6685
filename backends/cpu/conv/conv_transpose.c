/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolution in two steps, a window of output channels at a time: the product of the
 * weights [channels * taps, ic] with the image [ic, positions] gives what every input position adds
 * to the output around it; then every output row gathers its contributions, tap after tap, so that
 * each sum has one order and one writer. Windows are panels of the packed weights, which know
 * nothing of the image: a window may end within a channel.
 *
 * A depthwise one needs no product: output rows gather the image itself, each tap times its weight,
 * which costs a vector operation for each tap and vector of the image. Its weights are packed as
 * they lie. */
#include "backends/cpu/conv/conv.h"

#include "backends/cpu/conv/conv_depthwise.h"
#include "backends/cpu/conv/conv_kernel.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/stack/tail.h"

#include <string.h>

enum {
    BLOCK_FLOATS = 3 << 17, /* contributions of a window, if it has several panels */
    GATHER_ROWS = 8,        /* of a task */
    SHIFTS = 16,            /* taps of a row of the kernel whose places are found once */
};

typedef struct {
    const KilnCpuConv *conv;
    int64_t taps, positions; /* of the kernel, of the input */
    int64_t channels;        /* outputs of a group */
    KilnCpuGemm product;     /* of a group: a row is a tap of a channel */
    int64_t panels, window;  /* of rows: of a group, and at a time */
    int64_t panel_rows;      /* of the largest */
} Blocks;

/* The product of the weights of a group with the image. */
static KilnCpuGemm
product_of(const Blocks *b)
{
    const KilnCpuConv *c = b->conv;
    const int64_t rows = b->channels * b->taps;
    KilnCpuGemm g = kiln_cpu_gemm_dense(rows, b->positions, c->ic / c->groups);
    g.a_row = 1;
    g.a_col = rows;
    g.a_packed = c->weights_packed;
    g.isa = c->isa;
    switch (c->form) {
    case KILN_CONV_BEST:
        g.form = kiln_cpu_gemm_best_form(&g);
        break;
    case KILN_CONV_TURNED:
        g.form = KILN_CPU_GEMM_TURNED;
        break;
    default:
        g.form = KILN_CPU_GEMM_STRAIGHT;
    }
    return g;
}

/* All panels, or those whose contributions have room beside rows that an earlier window left. */
static int64_t
window_of(const Blocks *b)
{
    int64_t rows = BLOCK_FLOATS / (b->positions > 0 ? b->positions : 1);
    if (b->product.m <= rows)
        return b->panels;
    int64_t window = (rows - (b->taps - 1)) / b->panel_rows;
    return window < 1 ? 1 : min_of(window, b->panels);
}

static Blocks
blocks_of(const KilnCpuConv *c)
{
    Blocks b = { .conv = c, .taps = times3(c->kernel), .positions = times3(c->in) };
    b.channels = c->oc / c->groups;
    b.product = product_of(&b);
    b.panels = kiln_cpu_gemm_panels(&b.product);
    b.panel_rows = kiln_cpu_gemm_panel_start(&b.product, 1);
    if (b.panels > 0 && b.panel_rows < ceil_div(b.product.m, b.panels))
        b.panel_rows = ceil_div(b.product.m, b.panels);
    if (b.panels > 0)
        b.window = window_of(&b);
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

/* Panels [first, first + n) of a group's rows. */
typedef struct {
    int64_t first, n;
    int64_t start, rows; /* of the group */
} Window;

static Window
window_at(const Blocks *b, int64_t first)
{
    Window w = { .first = first, .n = min_of(b->window, b->panels - first) };
    w.start = kiln_cpu_gemm_panel_start(&b->product, first);
    w.rows = kiln_cpu_gemm_panel_start(&b->product, first + w.n) - w.start;
    return w;
}

static KilnCpuGemm
product_of_window(const Blocks *b, const Window *w)
{
    KilnCpuGemm g = b->product;
    if (g.a_packed) {
        g.first_panel = w->first;
        g.n_panels = w->n;
    } else {
        g.m = w->rows;
    }
    return g;
}

/* Bytes of the contributions of a window, behind those of a channel that it completes. False when
 * no number can say it. */
static bool
parts_bytes(const Blocks *b, int64_t *bytes)
{
    int64_t rows = b->product.m;
    if (b->window < b->panels)
        rows = min_of(rows, b->window * b->panel_rows + b->taps - 1);
    return !__builtin_mul_overflow(rows, b->positions, bytes) &&
           !__builtin_mul_overflow(*bytes, 4, bytes) &&
           !__builtin_add_overflow(*bytes, KILN_CPU_LINE - 1, bytes) &&
           ((*bytes -= *bytes % KILN_CPU_LINE), true);
}

KilnConvForm
kiln_cpu_conv_transpose_best_form(const KilnCpuConv *conv)
{
    KilnCpuConv c = *conv;
    c.form = KILN_CONV_BEST;
    return blocks_of(&c).product.form == KILN_CPU_GEMM_TURNED ? KILN_CONV_TURNED
                                                              : KILN_CONV_STRAIGHT;
}

void
kiln_transposed_terms(const KilnCpuConv *conv, double terms[KILN_CPU_TERMS])
{
    Blocks b = blocks_of(conv);
    double images = (double)conv->batch * (double)conv->groups;
    kiln_matmul_terms(&b.product, terms);
    terms[0] *= kiln_conv_is_depthwise(conv) ? 0 : images;
    terms[1] = 4 * images * (double)b.product.m * (double)b.product.n;
    terms[2] = 4 * (double)conv->batch * (double)conv->oc * (double)times3(conv->out);
    terms[3] = 1;
}

int64_t
kiln_cpu_conv_transpose_pack_size(const KilnCpuConv *conv)
{
    if (kiln_conv_is_depthwise(conv))
        return 4 * conv->oc * times3(conv->kernel);
    Blocks b = blocks_of(conv);
    return conv->groups * kiln_cpu_gemm_pack_a_size(&b.product);
}

void
kiln_cpu_conv_transpose_pack(const KilnCpuConv *conv, const void *src, float *dst, KilnSlice slice)
{
    if (kiln_conv_is_depthwise(conv)) {
        kiln_conv_depthwise_pack(conv, src, dst, slice);
        return;
    }
    Blocks b = blocks_of(conv);
    int64_t group = conv->ic / conv->groups * b.product.m;
    for (int64_t g = 0; g < conv->groups; g++)
        kiln_cpu_gemm_pack_a(&b.product, (const char *)src + 4 * g * group,
                             dst + g * kiln_cpu_gemm_pack_a_size(&b.product) / 4, slice);
}

int64_t
kiln_cpu_conv_transpose_scratch_size(const KilnCpuConv *conv, int threads)
{
    Blocks b = blocks_of(conv);
    const bool depthwise = kiln_conv_is_depthwise(conv);
    int64_t most = 0, bytes = 0, ways;
    for (int i = 0; !depthwise && b.panels > 0 && i < 3; i++) {
        /* The first window, one with a row more, as others may have, and the last one. */
        Window window = window_at(&b, i < 2 ? 0 : (b.panels - 1) / b.window * b.window);
        window.rows += i == 1;
        KilnCpuGemm product = product_of_window(&b, &window);
        int64_t of_product = kiln_cpu_gemm_scratch_size(&product, threads);
        most = of_product > most ? of_product : most;
    }
    bool too_big = __builtin_mul_overflow(way_pitch(conv), way_count(conv), &ways) ||
                   __builtin_mul_overflow(ways, 4 * (threads > 1 ? threads : 1), &ways) ||
                   (!depthwise && !parts_bytes(&b, &bytes)) ||
                   __builtin_add_overflow(bytes, ways > most ? ways : most, &bytes);
    return too_big ? INT64_MAX : bytes;
}

/* Where a tap adds a row: place x of the input goes to place + x of the way, for x in lo … hi. */
typedef struct {
    int64_t way, place, lo, hi;
} Shift;

typedef struct {
    const Blocks *blocks;
    const float *parts;   /* [channels * taps, positions]; depthwise: the image */
    const float *weights; /* depthwise: [channels * taps]; else NULL */
    float *out;           /* of the first channel */
    const float *bias;    /* likewise, or NULL */
    int64_t rows;         /* of the output of all channels */
    float *ways;          /* of each thread: stride arrays of pitch floats */
    int64_t pitch;
    Shift shifts[SHIFTS];
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

/* Input x of tap @t goes to x * stride + shift of the output, which is place x + shift / stride of
   the way shift % stride. */
static Shift
shift_of(const KilnCpuConv *c, int64_t t)
{
    int64_t stride = c->stride[2], shift = t * c->dilation[2] - c->pad[2];
    Shift s = { .way = (shift % stride + stride) % stride };
    s.place = (shift - s.way) / stride;
    s.lo = s.place >= 0 ? 0 : -s.place;
    int64_t room = c->out[2] - s.way <= 0 ? 0 : (c->out[2] - s.way + stride - 1) / stride - s.place;
    s.hi = min_of(room, c->in[2]);
    return s;
}

/* Weight @t of @weights, which lie at any byte address; NULL: all are 1. */
static float
weight_of(const float *weights, int64_t t)
{
    float weight = 1;
    if (weights)
        memcpy(&weight, weights + t, sizeof weight);
    return weight;
}

/* Add the contributions of a row of taps: those of the first at @in, others @step floats on.
   @weights: of the taps, or NULL. */
static void
add_rows(const GatherJob *job, const float *in, int64_t step, const float *weights, float *ways)
{
    const KilnCpuConv *c = job->blocks->conv;
    for (int64_t t = 0; t < c->kernel[2]; t++, in += step) {
        const Shift s = t < SHIFTS ? job->shifts[t] : shift_of(c, t);
        if (s.lo < s.hi)
            job->kernels->add(ways + s.way * job->pitch + s.place + s.lo, in + s.lo,
                              weight_of(weights, t), s.hi - s.lo);
    }
}

/* One row of the output of one channel; rows count through the channels. Sums are kept in
   one array for each remainder modulo the stride, where contributions lie side by side. */
static void
gather_row(const GatherJob *job, int64_t row, float *ways)
{
    const KilnCpuConv *c = job->blocks->conv;
    int64_t y = row % c->out[1], z = row / c->out[1] % c->out[0];
    int64_t channel = row / (c->out[0] * c->out[1]);
    memset(ways, 0, (size_t)(4 * way_count(c) * job->pitch));
    const int64_t taps = job->blocks->taps, positions = job->blocks->positions;
    const float *weights = job->weights ? job->weights + channel * taps : NULL;
    const float *parts =
        job->parts + (weights ? channel / job->blocks->channels : channel * taps) * positions;
    for (int64_t tz = 0; tz < c->kernel[0]; tz++) {
        const int64_t iz = source_row(c, 0, z, tz);
        for (int64_t ty = 0; iz >= 0 && ty < c->kernel[1]; ty++) {
            const int64_t iy = source_row(c, 1, y, ty);
            if (iy < 0)
                continue;
            const int64_t tap = (tz * c->kernel[1] + ty) * c->kernel[2];
            const float *in = parts + (iz * c->in[1] + iy) * c->in[2];
            add_rows(job, weights ? in : in + tap * positions, weights ? 0 : positions,
                     weights ? weights + tap : NULL, ways);
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

/* Makes the output of @n channels from @channel on, which begins at @out. @job has the parts, the
 * weights and the ways. */
static void
gather(GatherJob job, const KilnCpuConvArgs *args, int64_t out, int64_t channel, int64_t n)
{
    const KilnCpuConv *c = job.blocks->conv;
    job.out = args->out + out;
    job.bias = args->bias ? args->bias + channel : NULL;
    job.rows = n * c->out[0] * c->out[1];
    job.pitch = way_pitch(c);
    job.kernels = kiln_conv_kernels(c->isa, c->out[2]);
    for (int64_t t = 0; t < SHIFTS && t < c->kernel[2]; t++)
        job.shifts[t] = shift_of(c, t);
    kiln_cpu_parallel(ceil_div(job.rows, GATHER_ROWS), args->threads, gather_task, &job);
}

/* One group of one image. Rows of a channel whose others come with the next window are carried
 * over to it. */
static void
run_group(const Blocks *b, const KilnCpuConvArgs *args, int64_t image, int64_t group)
{
    const KilnCpuConv *c = b->conv;
    int64_t inputs = c->ic / c->groups, bytes = 0, carried = 0, channel = group * b->channels;
    parts_bytes(b, &bytes);
    const char *weights = args->weights;
    weights += group * (c->weights_packed ? kiln_cpu_gemm_pack_a_size(&b->product)
                                          : 4 * inputs * b->product.m);
    int64_t out = image * kiln_conv_out_image(c, args);
    if (b->taps == 0) /* nothing but the bias */
        gather((GatherJob){ .blocks = b, .ways = args->scratch }, args,
               out + channel * times3(c->out), channel, b->channels);
    for (int64_t first = 0; first < b->panels; first += b->window) {
        Window window = window_at(b, first);
        KilnCpuGemm product = product_of_window(b, &window);
        KilnCpuGemmArgs gemm_args = {
            .a = c->weights_packed ? weights : weights + 4 * window.start,
            .b = args->in + image * kiln_conv_in_image(c, args) + group * inputs * b->positions,
            .out = args->scratch + carried * b->positions,
            .scratch = args->scratch + bytes / 4,
            .threads = args->threads,
        };
        kiln_cpu_gemm_run(&product, &gemm_args);
        int64_t rows = carried + window.rows, whole = rows / b->taps;
        gather((GatherJob){ .blocks = b, .parts = args->scratch, .ways = gemm_args.scratch }, args,
               out + channel * times3(c->out), channel, whole);
        carried = rows - whole * b->taps;
        memmove(args->scratch, args->scratch + whole * b->taps * b->positions,
                (size_t)(4 * carried * b->positions));
        channel += whole;
    }
}

void
kiln_cpu_conv_transpose_run(const KilnCpuConv *conv, const KilnCpuConvArgs *args)
{
    const bool depthwise = kiln_conv_is_depthwise(conv);
    Blocks b = blocks_of(conv);
    if (times3(conv->out) == 0)
        return;
    for (int64_t image = 0; image < conv->batch; image++) {
        for (int64_t group = 0; !depthwise && group < conv->groups; group++)
            run_group(&b, args, image, group);
        if (depthwise)
            gather((GatherJob){ .blocks = &b,
                                .parts = args->in + image * kiln_conv_in_image(conv, args),
                                .weights = args->weights,
                                .ways = args->scratch },
                   args, image * kiln_conv_out_image(conv, args), 0, conv->oc);
    }
}
