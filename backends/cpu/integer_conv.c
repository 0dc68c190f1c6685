/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/integer_conv.h"

#include "backends/cpu/extents.h"
#include "backends/cpu/parallel.h"

#include <math.h>

enum {
    FLIP = 0x80,             /* between s8 and u8 */
    TASK_PRODUCTS = 1 << 18, /* about what a task should have */
    FEW_PANELS = 16,         /* fewer tasks than that are cut by channels */
    CHANNEL_BLOCK = 64,
    SLACK = 2 * KILN_INTEGER_MAX_COLS, /* read behind the last plane */
};

/* --- geometry --- */

typedef struct {
    int64_t depth, groups;  /* of a row of weights: taps × channels, and in groups of four */
    int64_t phases[2];      /* of the strides: those that a tap reads */
    int64_t rows, pitch;    /* of a plane */
    int64_t plane, channel; /* bytes */
    int64_t pixels, panels; /* counted through the pitch */
    int64_t panel_run, panel_runs, channel_blocks, channel_block;
} Shape;

double
kiln_integer_conv_planes(const KilnIntegerConv *c)
{
    double bytes = (double)c->ic;
    for (int d = 0; d < 2; d++) {
        const double last = (double)(c->kernel[d] - 1) * (double)c->dilation[d];
        const double stride = (double)c->stride[d];
        bytes *= fmin(last + 1, stride) * (last / stride + (double)c->out[d]);
    }
    return bytes;
}

static Shape
shape_of(const KilnIntegerConv *c)
{
    const int64_t cols = kiln_integer_kernels()->cols, oc = c->oc / c->groups;
    Shape s = { .depth = c->ic / c->groups * c->kernel[0] * c->kernel[1] };
    s.groups = ceil_div(s.depth, KILN_INTEGER_GROUP);
    int64_t extent[2];
    for (int d = 0; d < 2; d++) {
        const int64_t last = (c->kernel[d] - 1) * c->dilation[d];
        s.phases[d] = last + 1 < c->stride[d] ? last + 1 : c->stride[d];
        extent[d] = last / c->stride[d] + c->out[d];
    }
    s.rows = extent[0];
    s.pitch = extent[1];
    s.plane = s.rows * s.pitch;
    s.channel = s.plane * s.phases[0] * s.phases[1];
    s.pixels = (c->out[0] - 1) * s.pitch + c->out[1];
    s.panels = ceil_div(s.pixels, cols);
    const int64_t products = s.depth * oc * cols;
    s.panel_run = products < TASK_PRODUCTS ? TASK_PRODUCTS / (products + 1) + 1 : 1;
    s.panel_runs = ceil_div(s.panels, s.panel_run);
    const bool few = s.panel_runs * c->groups < FEW_PANELS;
    s.channel_block = few ? CHANNEL_BLOCK : oc;
    s.channel_blocks = ceil_div(oc, s.channel_block);
    return s;
}

/* --- weights: rows, then their sums --- */

static int64_t
row_pitch(const Shape *s)
{
    return s->groups * KILN_INTEGER_GROUP;
}

static int64_t
sums_at(const KilnIntegerConv *c, const Shape *s)
{
    return round_up(c->oc * row_pitch(s), 64);
}

static int64_t
packed_size(const KilnIntegerConv *c, const Shape *s)
{
    return sums_at(c, s) + round_up(c->oc * (int64_t)sizeof(int32_t), 64);
}

int64_t
kiln_integer_conv_packed_size(const KilnIntegerConv *c)
{
    const Shape s = shape_of(c);
    return packed_size(c, &s);
}

void
kiln_integer_conv_pack(const KilnIntegerConv *c, const void *w, void *packed, KilnSlice slice)
{
    const Shape s = shape_of(c);
    const int64_t pitch = row_pitch(&s), end = kiln_slice_end(slice, c->oc);
    for (int64_t i = kiln_slice_begin(slice, c->oc); i < end; i++) {
        uint8_t *to = (uint8_t *)packed + i * pitch;
        const uint32_t sum = kiln_integer_kernels()->flip(to, (const uint8_t *)w + i * s.depth,
                                                          s.depth, c->w_signed ? FLIP : 0);
        memset(to + s.depth, 0, (size_t)(pitch - s.depth));
        memcpy((char *)packed + sums_at(c, &s) + i * (int64_t)sizeof sum, &sum, sizeof sum);
    }
}

/* --- scratch: planes of an image, where taps lie, zeros, weights, and each thread's panel --- */

typedef struct {
    int64_t taps, blank, weights, panels, panel, end;
} Layout;

static Layout
layout_of(const KilnIntegerConv *c, const Shape *s, bool packed, int threads)
{
    Layout l;
    l.taps = round_up(c->ic * s->channel + SLACK, 64);
    l.blank = l.taps + round_up(s->depth * (int64_t)sizeof(int64_t), 64);
    /* Zeros for depth beyond the weights, then a row of ones for the sums of columns. */
    l.weights = l.blank + round_up(SLACK + row_pitch(s), 64);
    l.panels = l.weights + (packed ? 0 : packed_size(c, s));
    l.panel = round_up(row_pitch(s) * kiln_integer_kernels()->cols, 64);
    l.end = l.panels + l.panel * (threads > 1 ? threads : 1);
    return l;
}

int64_t
kiln_integer_conv_scratch_size(const KilnIntegerConv *c, bool packed, int threads)
{
    const Shape s = shape_of(c);
    return layout_of(c, &s, packed, threads).end;
}

typedef struct {
    const KilnIntegerConv *c;
    const KilnIntegerArgs *args;
    const KilnIntegerKernels *kernels;
    Shape s;
    const uint8_t *x; /* of this image */
    int8_t *planes, *blank;
    uint8_t *ones;
    int64_t *taps;
    const char *weights;
    char *panels;
    int64_t panel_bytes, out; /* first element of this image's result */
} Run;

/* --- planes --- */

/* Which elements of a plane's rows lie inside of the image, where column 0 is at @first of it. */
typedef struct {
    int64_t first, begin, end;
} Span;

static Span
span_of(const Run *r, int64_t first)
{
    const int64_t width = r->c->in[1], step = r->c->stride[1], pitch = r->s.pitch;
    Span s = { first, first < 0 ? (-first + step - 1) / step : 0,
               width > first ? (width - first + step - 1) / step : 0 };
    s.begin = s.begin < pitch ? s.begin : pitch;
    s.end = s.end < s.begin ? s.begin : s.end < pitch ? s.end : pitch;
    return s;
}

/* Row @y of the image; outside is real 0. */
static void
copy_row(const Run *r, const uint8_t *image, int64_t y, const Span *s, int8_t *to)
{
    const KilnIntegerConv *c = r->c;
    const uint8_t bit = c->x_signed ? 0 : FLIP;
    const int8_t zero = (int8_t)((uint8_t)r->args->params.left_zero ^ bit);
    const int64_t step = c->stride[1], pitch = r->s.pitch;
    if (y < 0 || y >= c->in[0]) {
        memset(to, zero, (size_t)pitch);
        return;
    }
    for (int64_t i = 0; i < s->begin; i++)
        to[i] = zero;
    for (int64_t i = s->end; i < pitch; i++)
        to[i] = zero;
    r->kernels->pick((uint8_t *)to + s->begin, image + y * c->in[1] + s->first + s->begin * step,
                     s->end - s->begin, step, bit);
}

static void
copy_channel(const void *data, int64_t channel, int thread)
{
    (void)thread;
    const Run *r = data;
    const KilnIntegerConv *c = r->c;
    const uint8_t *image = r->x + channel * c->in[0] * c->in[1];
    int8_t *to = r->planes + channel * r->s.channel;
    for (int64_t py = 0; py < r->s.phases[0]; py++) {
        for (int64_t px = 0; px < r->s.phases[1]; px++) {
            const Span span = span_of(r, px - c->pad[1]);
            for (int64_t row = 0; row < r->s.rows; row++, to += r->s.pitch)
                copy_row(r, image, row * c->stride[0] + py - c->pad[0], &span, to);
        }
    }
}

/* Where each tap of a group's channels lies behind the group's first plane. */
static void
find_taps(const Run *r)
{
    const KilnIntegerConv *c = r->c;
    int64_t *tap = r->taps;
    for (int64_t channel = 0; channel < c->ic / c->groups; channel++) {
        for (int64_t ky = 0; ky < c->kernel[0]; ky++) {
            const int64_t y = ky * c->dilation[0];
            for (int64_t kx = 0; kx < c->kernel[1]; kx++) {
                const int64_t x = kx * c->dilation[1];
                const int64_t phase = y % c->stride[0] * r->s.phases[1] + x % c->stride[1];
                *tap++ = channel * r->s.channel + phase * r->s.plane +
                         y / c->stride[0] * r->s.pitch + x / c->stride[1];
            }
        }
    }
}

/* --- panels --- */

static void
make_panel(const Run *r, int64_t group, int64_t pixel, int8_t *to)
{
    const int8_t *base = r->planes + group * (r->c->ic / r->c->groups) * r->s.channel + pixel;
    const int64_t depth = r->s.depth, step = r->kernels->cols * KILN_INTEGER_GROUP;
    for (int64_t k = 0; k < depth; k += KILN_INTEGER_GROUP, to += step) {
        const int8_t *from[KILN_INTEGER_GROUP];
        for (int i = 0; i < KILN_INTEGER_GROUP; i++)
            from[i] = k + i < depth ? base + r->taps[k + i] : r->blank;
        r->kernels->interleave(from, to);
    }
}

/* A run of a panel's pixels that are results: where it begins in the panel and in a plane of
 * results. */
typedef struct {
    int32_t from, n;
    int64_t to;
} Piece;

static int
find_pieces(const Run *r, int64_t pixel, int64_t n, Piece pieces[KILN_INTEGER_MAX_COLS])
{
    const int64_t width = r->c->out[1], pitch = r->s.pitch;
    int count = 0;
    for (int64_t done = 0; done < n;) {
        const int64_t y = (pixel + done) / pitch, x = (pixel + done) % pitch;
        const int64_t left = n - done, valid = width - x;
        if (valid > 0)
            pieces[count++] =
                (Piece){ (int32_t)done, (int32_t)(left < valid ? left : valid), y * width + x };
        done += pitch - x;
    }
    return count;
}

/* Sums of one channel: all are scaled at once, and then go where they belong. */
static void
store(const Run *r, int64_t channel, const Piece *pieces, int n_pieces, const int32_t *sums)
{
    const int64_t plane = r->out + channel * r->c->out[0] * r->c->out[1];
    const size_t size = kiln_integer_out_size(&r->args->params.store);
    const int64_t n = n_pieces ? pieces[n_pieces - 1].from + pieces[n_pieces - 1].n : 0;
    char *to = (char *)r->args->out + (size_t)plane * size;
    if (n_pieces == 1 && pieces->from == 0) {
        kiln_integer_store(r->kernels, &r->args->params.store, to + (size_t)pieces->to * size, sums,
                           n, channel, false);
        return;
    }
    char scaled[KILN_INTEGER_MAX_COLS];
    const char *from = (const char *)sums;
    if (r->args->params.store.factors) {
        kiln_integer_store(r->kernels, &r->args->params.store, scaled, sums, n, channel, false);
        from = scaled;
    }
    for (int i = 0; i < n_pieces; i++)
        memcpy(to + (size_t)pieces[i].to * size, from + (size_t)pieces[i].from * size,
               (size_t)pieces[i].n * size);
}

/* What zero points and the bias add to the sums of channel @channel. */
static KilnIntegerFix
fix_of(const Run *r, int64_t channel, const int32_t *sums)
{
    const KilnIntegerArgs *args = r->args;
    uint32_t row_sum;
    memcpy(&row_sum, r->weights + sums_at(r->c, &r->s) + channel * (int64_t)sizeof row_sum,
           sizeof row_sum);
    const uint32_t x_zero = (uint32_t)(args->params.left_zero - (r->c->x_signed ? 0 : FLIP));
    const uint32_t w_zero = (uint32_t)(args->params.zeros[args->params.one_zero ? 0 : channel] +
                                       (r->c->w_signed ? FLIP : 0));
    const uint32_t bias = args->bias ? (uint32_t)args->bias[channel] : 0;
    const uint32_t add = bias + (uint32_t)r->s.depth * x_zero * w_zero - x_zero * row_sum;
    return (KilnIntegerFix){ .add = (int32_t)add, .row_zero = (int32_t)w_zero, .sums = sums };
}

/* A group of one channel: its taps are read where they lie, by one row. */
static void
run_window(const Run *r, int64_t channel, int64_t panel)
{
    const int64_t cols = r->kernels->cols, pixel = panel * cols;
    const int64_t n = r->s.pixels - pixel < cols ? r->s.pixels - pixel : cols;
    _Alignas(64) int32_t sums[KILN_INTEGER_MAX_COLS];
    Piece pieces[KILN_INTEGER_MAX_COLS];
    const int n_pieces = find_pieces(r, pixel, n, pieces);
    const int8_t *base = r->planes + channel * (r->c->ic / r->c->groups) * r->s.channel + pixel;
    const uint8_t *row = (const uint8_t *)r->weights + channel * row_pitch(&r->s);
    KilnIntegerFix fix = fix_of(r, channel, sums);
    r->kernels->window(base, r->taps, r->s.depth, row, fix.row_zero, sums);
    fix.row_zero = 0;
    r->kernels->fix(sums, n, &fix);
    store(r, channel, pieces, n_pieces, sums);
}

static void
run_panel(const Run *r, int64_t group, int64_t panel, int64_t first, int64_t end, int8_t *memory)
{
    const KilnIntegerKernels *kernels = r->kernels;
    const int64_t cols = kernels->cols, pixel = panel * cols, pitch = row_pitch(&r->s);
    const int64_t n = r->s.pixels - pixel < cols ? r->s.pixels - pixel : cols;
    _Alignas(64) int32_t column_sums[KILN_INTEGER_MAX_COLS];
    _Alignas(64) int32_t sums[KILN_INTEGER_MAX_ROWS * KILN_INTEGER_MAX_COLS];
    const uint8_t *rows[KILN_INTEGER_MAX_ROWS] = { r->ones };
    Piece pieces[KILN_INTEGER_MAX_COLS];
    const int n_pieces = find_pieces(r, pixel, n, pieces);
    make_panel(r, group, pixel, memory);
    kernels->tile(1, n, rows, memory, r->s.groups, column_sums);
    for (int64_t channel = first; channel < end; channel += kernels->rows) {
        const int64_t n_rows = end - channel < kernels->rows ? end - channel : kernels->rows;
        for (int i = 0; i < kernels->rows; i++)
            rows[i] =
                (const uint8_t *)r->weights + (channel + (i < n_rows ? i : n_rows - 1)) * pitch;
        kernels->tile((int)n_rows, n, rows, memory, r->s.groups, sums);
        for (int64_t i = 0; i < n_rows; i++) {
            const KilnIntegerFix fix = fix_of(r, channel + i, column_sums);
            kernels->fix(sums + i * cols, n, &fix);
            store(r, channel + i, pieces, n_pieces, sums + i * cols);
        }
    }
}

static void
run_task(const void *data, int64_t task, int thread)
{
    const Run *r = data;
    const Shape *s = &r->s;
    const int64_t block = task % s->channel_blocks, rest = task / s->channel_blocks;
    const int64_t group = rest / s->panel_runs, oc = r->c->oc / r->c->groups;
    const int64_t first = rest % s->panel_runs * s->panel_run;
    const int64_t begin = block * s->channel_block;
    const int64_t end = begin + s->channel_block < oc ? begin + s->channel_block : oc;
    int8_t *memory = (int8_t *)r->panels + thread * r->panel_bytes;
    for (int64_t panel = first; panel < s->panels && panel < first + s->panel_run; panel++) {
        if (oc == 1)
            run_window(r, group, panel);
        else
            run_panel(r, group, panel, group * oc + begin, group * oc + end, memory);
    }
}

static void
pack_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Run *r = data;
    const int64_t n = ceil_div(r->c->oc, CHANNEL_BLOCK);
    kiln_integer_conv_pack(r->c, r->args->right, (char *)r->weights, (KilnSlice){ task, n });
}

void
kiln_integer_conv_run(const KilnIntegerConv *c, const KilnIntegerArgs *args)
{
    Run r = { .c = c, .args = args, .kernels = kiln_integer_kernels(), .s = shape_of(c) };
    const Layout at = layout_of(c, &r.s, args->packed != NULL, args->threads);
    char *scratch = args->scratch;
    r.planes = (int8_t *)scratch;
    r.taps = (int64_t *)(void *)(scratch + at.taps);
    r.blank = (int8_t *)(scratch + at.blank);
    r.ones = (uint8_t *)r.blank + SLACK;
    r.weights = args->packed ? args->packed : scratch + at.weights;
    r.panels = scratch + at.panels;
    r.panel_bytes = at.panel;
    memset(r.blank, 0, SLACK);
    memset(r.ones, 1, (size_t)row_pitch(&r.s));
    memset(r.planes + c->ic * r.s.channel, 0, SLACK);
    find_taps(&r);
    if (!args->packed)
        kiln_cpu_parallel(ceil_div(c->oc, CHANNEL_BLOCK), args->threads, pack_task, &r);
    const int64_t tasks = c->groups * r.s.panel_runs * r.s.channel_blocks;
    for (int64_t image = 0; image < c->batch; image++) {
        r.x = args->left + image * c->ic * c->in[0] * c->in[1];
        r.out = image * c->oc * c->out[0] * c->out[1];
        kiln_cpu_parallel(c->ic, args->threads, copy_channel, &r);
        kiln_cpu_parallel(tasks, args->threads, run_task, &r);
    }
}
