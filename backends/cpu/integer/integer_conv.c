/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/integer/integer_conv.h"

#include "backends/cpu/extents.h"
#include "backends/cpu/integer/integer_kernel.h"
#include "backends/cpu/integer/integer_store.h"
#include "backends/cpu/movement/move_bytes.h"
#include "backends/cpu/parallel.h"

#include <string.h>

enum {
    FLIP = 0x80,                            /* between s8 and u8 */
    TASK_PRODUCTS = 1 << 20,                /* about what a task should have */
    MAX_STRIP = 16 * KILN_INTEGER_MAX_COLS, /* pixels of a task */
    MAX_SUMS = 4 * KILN_INTEGER_MAX_ROWS * KILN_INTEGER_MAX_COLS,
    ENOUGH_TASKS = 16, /* fewer than that are cut by channels */
};

/* --- geometry --- */

typedef struct {
    KilnIntegerPlanes planes;
    int64_t depth, groups;               /* products of a sum; and how many fours */
    int64_t oc, rows, tiles;             /* of a group: channels, of a tile, tiles */
    int64_t panels, run, runs;           /* tiles of pixels, of a task, tasks of them */
    int64_t tile_block, n_blocks;        /* tiles of channels of a task, tasks of them */
    int64_t group_block, n_group_blocks; /* groups of a task, tasks of them */
} Shape;

static Shape
shape_of(const KilnIntegerConv *c)
{
    const KilnIntegerKernels *kernels = kiln_integer_kernels();
    Shape s = { .planes = kiln_integer_planes(c), .oc = c->oc / c->groups };
    s.depth = c->ic / c->groups * c->kernel[0] * c->kernel[1];
    s.groups = kiln_integer_planes_groups(c, &s.planes);
    s.rows = s.oc == 1 ? 1 : kernels->rows;
    s.tiles = ceil_div(s.oc, s.rows);
    s.panels = ceil_div(s.planes.results, kernels->cols);
    const double products = (double)s.groups * KILN_INTEGER_GROUP * (double)(s.oc * kernels->cols);
    s.run = products < TASK_PRODUCTS ? (int64_t)(TASK_PRODUCTS / products) : 1;
    s.run = min_of(s.run, min_of(MAX_STRIP, MAX_SUMS / s.rows) / kernels->cols);
    s.runs = ceil_div(s.panels, s.run);
    const int64_t tasks = s.runs * c->groups;
    s.tile_block =
        tasks > 0 && tasks < ENOUGH_TASKS ? ceil_div(s.tiles * tasks, ENOUGH_TASKS) : s.tiles;
    s.n_blocks = ceil_div(s.tiles, s.tile_block);
    const double of_task = products * (double)min_of(s.run, s.panels);
    s.group_block = 1;
    if (tasks > ENOUGH_TASKS && of_task < TASK_PRODUCTS)
        s.group_block = min_of((int64_t)(TASK_PRODUCTS / of_task), tasks / ENOUGH_TASKS);
    s.n_group_blocks = ceil_div(c->groups, s.group_block);
    return s;
}

/* --- weights: tiles of [groups][rows][4], the sum of each channel's, and ones for the products
 * that a sum has --- */

static int64_t
tile_size(const Shape *s)
{
    return s->groups * s->rows * KILN_INTEGER_GROUP;
}

static int64_t
sums_at(const KilnIntegerConv *c, const Shape *s)
{
    return round_up(c->groups * s->tiles * tile_size(s), KILN_CPU_LINE);
}

static int64_t
packed_size(const KilnIntegerConv *c, const Shape *s)
{
    return sums_at(c, s) + round_up(c->oc * (int64_t)sizeof(int32_t), KILN_CPU_LINE);
}

int64_t
kiln_integer_conv_packed_size(const KilnIntegerConv *c)
{
    const Shape s = shape_of(c);
    return packed_size(c, &s);
}

/* Channels beyond the group's, and bytes that are no products, are 0. */
static void
pack_tile(const KilnIntegerConv *c, const Shape *s, const uint8_t *w, char *packed, int64_t tile)
{
    int8_t *to = (int8_t *)packed + tile * tile_size(s);
    const int64_t first = tile % s->tiles * s->rows, group = tile / s->tiles;
    const uint8_t bit = c->w_signed ? 0 : FLIP;
    int32_t sums[KILN_INTEGER_MAX_ROWS] = { 0 };
    for (int64_t g = 0; g < s->groups; g++) {
        for (int i = 0; i < KILN_INTEGER_GROUP; i++) {
            const int64_t at = kiln_integer_planes_weight(c, &s->planes, g, i);
            for (int64_t r = 0; r < s->rows; r++) {
                const int64_t channel = first + r;
                const uint8_t byte = at >= 0 && channel < s->oc
                                         ? w[(group * s->oc + channel) * s->depth + at] ^ bit
                                         : (uint8_t)0;
                to[(g * s->rows + r) * KILN_INTEGER_GROUP + i] = (int8_t)byte;
                sums[r] += (int8_t)byte;
            }
        }
    }
    const int64_t n = min_of(s->rows, s->oc - first);
    memcpy(packed + sums_at(c, s) + (group * s->oc + first) * (int64_t)sizeof *sums, sums,
           (size_t)n * sizeof *sums);
}

void
kiln_integer_conv_pack(const KilnIntegerConv *c, const void *w, void *packed, KilnSlice slice)
{
    const Shape s = shape_of(c);
    const int64_t tiles = c->groups * s.tiles, end = kiln_slice_end(slice, tiles);
    for (int64_t i = kiln_slice_begin(slice, tiles); i < end; i++)
        pack_tile(c, &s, w, packed, i);
}

/* --- scratch: planes of an image, where taps lie, ones for each product, what is
 * added to sums, weights --- */

typedef struct {
    int64_t taps, ones, adds, weights, end;
} Layout;

static Layout
layout_of(const KilnIntegerConv *c, const Shape *s, bool packed)
{
    Layout l;
    l.taps = round_up(s->planes.end, KILN_CPU_LINE);
    l.ones = l.taps + round_up(s->groups * (int64_t)sizeof(int64_t), KILN_CPU_LINE);
    l.adds = l.ones + round_up(s->groups * KILN_INTEGER_GROUP, KILN_CPU_LINE);
    l.weights = l.adds + round_up(c->oc * (int64_t)sizeof(int32_t), KILN_CPU_LINE);
    l.end = l.weights + (packed ? 0 : packed_size(c, s));
    return l;
}

int64_t
kiln_integer_conv_scratch_size(const KilnIntegerConv *c, bool packed)
{
    const Shape s = shape_of(c);
    return layout_of(c, &s, packed).end;
}

typedef struct {
    const KilnIntegerConv *c;
    const KilnIntegerArgs *args;
    const KilnIntegerKernels *kernels;
    Shape s;
    uint8_t *planes;
    int8_t *ones;
    KilnIntegerTaps taps;
    int32_t *adds; /* to the sums of each channel */
    const char *weights;
    KilnIntegerSlide slide;
    bool zeros;  /* weights have zero points, as s8 */
    int64_t out; /* first element of this image's result */
} Run;

/* --- strips: runs of pixels, of which a task computes blocks of channels --- */

/* A run of a strip's pixels that are results, in bytes as they are stored: where it begins in the
 * strip and in a plane of results. */
typedef struct {
    int64_t from, to;
    int32_t n;
    bool wide; /* others of the strip follow where a wide copy writes too much */
} Piece;

typedef struct {
    int64_t pixel, n; /* the first, and how many there are */
    int n_pieces;
    Piece pieces[MAX_STRIP];
    _Alignas(KILN_CPU_LINE) int32_t sums[MAX_STRIP]; /* of its bytes, where needed */
} Strip;

static const uint8_t *
pixel_at(const Run *r, int64_t group, int64_t pixel)
{
    const KilnIntegerPlanes *p = &r->s.planes;
    return r->planes + group * p->units * p->unit + pixel * p->step;
}

/* Of one row of weights. */
static void
find_sums(const Run *r, int64_t group, const Strip *strip, const int8_t *weights, int32_t *sums)
{
    const int64_t cols = r->kernels->cols;
    for (int64_t i = 0; i < strip->n; i += cols)
        r->kernels->conv_row(min_of(strip->n - i, cols), pixel_at(r, group, strip->pixel + i),
                             &r->taps, weights, sums + i);
}

static void
find_pieces(const Run *r, int64_t first, Strip *strip)
{
    const int64_t size = (int64_t)kiln_integer_out_size(&r->args->params.store);
    const int64_t width = r->c->out[1], pitch = r->s.planes.pitch, all = r->s.planes.results;
    strip->pixel = first * r->kernels->cols;
    strip->n = min_of(all - strip->pixel, r->s.run * r->kernels->cols);
    strip->n_pieces = 0;
    int64_t y = strip->pixel / pitch, x = strip->pixel % pitch;
    for (int64_t done = 0; done < strip->n; done += pitch - x, x = 0, y++) {
        if (x < width)
            strip->pieces[strip->n_pieces++] =
                (Piece){ .from = done * size,
                         .to = (y * width + x) * size,
                         .n = (int32_t)(min_of(strip->n - done, width - x) * size) };
    }
    const Piece *last = strip->n_pieces ? &strip->pieces[strip->n_pieces - 1] : NULL;
    for (int i = 0; i < strip->n_pieces; i++) {
        Piece *p = &strip->pieces[i];
        p->wide = p->to + p->n + MOVE_STEP <= last->to + last->n;
    }
}

/* The zero point of a channel's weights as s8. */
static int32_t
weight_zero(const Run *r, int64_t channel)
{
    const KilnIntegerParams *params = &r->args->params;
    return params->zeros[params->one_zero ? 0 : channel] - (r->c->w_signed ? 0 : FLIP);
}

/* What zero points of weights and, of sums that are stored themselves, addends make of them. */
static void
adjust(const Run *r, int64_t channel, const Strip *strip, int32_t *sums)
{
    if (r->zeros) {
        const KilnIntegerFix fix = { .row_zero = weight_zero(r, channel), .sums = strip->sums };
        r->kernels->fix(sums, strip->n, &fix);
    }
    const uint32_t add = (uint32_t)r->adds[channel];
    for (int64_t i = 0; !r->args->params.store.factors && i < strip->n; i++)
        sums[i] = (int32_t)((uint32_t)sums[i] + add);
}

static void
move_pieces(const Strip *strip, char *to, const char *from)
{
    for (int i = 0; i < strip->n_pieces; i++) {
        const Piece p = strip->pieces[i];
        if (p.wide)
            move_wide(to + p.to, from + p.from, (size_t)p.n);
        else
            move_bytes(to + p.to, from + p.from, (size_t)p.n);
    }
}

/* Sums of some channels, @pitch apart: scaled, and then where they belong; straight there where
 * that is a run of whole blocks. */
static void
store(const Run *r, int64_t channel, int64_t n_rows, const Strip *strip, int32_t *sums,
      int64_t pitch)
{
    const KilnIntegerOut *out = &r->args->params.store;
    const int64_t size = (int64_t)kiln_integer_out_size(out);
    const int64_t plane = r->c->out[0] * r->c->out[1];
    uint8_t scaled[MAX_SUMS + MOVE_STEP];
    const char *from = (const char *)sums;
    char *to = (char *)r->args->out + (r->out + channel * plane) * size;
    for (int64_t k = 0; k < n_rows; k++)
        adjust(r, channel + k, strip, sums + k * pitch);
    if (out->factors) {
        const Piece *p = strip->pieces;
        const bool whole =
            strip->n_pieces == 1 && p->n == strip->n && strip->n % KILN_INTEGER_BLOCK == 0;
        const KilnIntegerScale scale = { .factors = out->factors + (out->one_factor ? 0 : channel),
                                         .one = out->one_factor,
                                         .adds = r->adds + channel,
                                         .is_signed = out->is_signed,
                                         .zero = out->zero };
        r->kernels->scale_rows(whole ? (uint8_t *)to + p->to : scaled, whole ? plane : pitch, sums,
                               pitch, n_rows, strip->n, &scale);
        if (whole)
            return;
        from = (const char *)scaled;
    }
    for (int64_t k = 0; k < n_rows; k++)
        move_pieces(strip, to + k * plane * size, from + k * pitch * size);
}

/* Tiles @first … @end - 1 of the channels of a group. */
static void
run_tiles(const Run *r, int64_t group, int64_t first, int64_t end, Strip *strip)
{
    const Shape *s = &r->s;
    const int64_t cols = r->kernels->cols, pitch = s->run * cols;
    _Alignas(KILN_CPU_LINE) int32_t sums[MAX_SUMS + MOVE_STEP];
    if (r->zeros)
        find_sums(r, group, strip, r->ones, strip->sums);
    for (int64_t tile = first; tile < end; tile++) {
        const int8_t *weights =
            (const int8_t *)r->weights + (group * s->tiles + tile) * tile_size(s);
        const int64_t channel = tile * s->rows, n_rows = min_of(s->rows, s->oc - channel);
        if (s->rows == 1)
            find_sums(r, group, strip, weights, sums);
        for (int64_t i = 0; s->rows > 1 && i < strip->n; i += cols)
            r->kernels->conv_tile(min_of(strip->n - i, cols), pixel_at(r, group, strip->pixel + i),
                                  &r->taps, weights, sums + i, pitch);
        store(r, group * s->oc + channel, n_rows, strip, sums, pitch);
    }
}

static void
run_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Run *r = data;
    const Shape *s = &r->s;
    const int64_t block = task % s->n_blocks, rest = task / s->n_blocks;
    const int64_t first = block * s->tile_block, groups = rest / s->runs * s->group_block;
    const int64_t end = min_of(groups + s->group_block, r->c->groups);
    Strip strip;
    find_pieces(r, rest % s->runs * s->run, &strip);
    for (int64_t group = groups; group < end; group++)
        run_tiles(r, group, first, min_of(first + s->tile_block, s->tiles), &strip);
}

static void
pack_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Run *r = data;
    pack_tile(r->c, &r->s, r->args->right, (char *)r->weights, task);
}

/* What zero points and the bias add to the sums of each channel. */
static void
find_adds(const Run *r)
{
    const KilnIntegerConv *c = r->c;
    const uint32_t x_zero = (uint32_t)(r->args->params.left_zero + (c->x_signed ? FLIP : 0));
    for (int64_t i = 0; i < c->oc; i++) {
        const uint32_t bias = r->args->bias ? (uint32_t)r->args->bias[i] : 0;
        uint32_t row_sum;
        memcpy(&row_sum, r->weights + sums_at(c, &r->s) + i * (int64_t)sizeof row_sum,
               sizeof row_sum);
        r->adds[i] = (int32_t)(bias + x_zero * ((uint32_t)r->s.depth * (uint32_t)weight_zero(r, i) -
                                                row_sum));
    }
}

/* What all images share. */
static void
prepare(Run *r)
{
    const KilnIntegerConv *c = r->c;
    if (r->s.planes.single)
        r->slide = kiln_integer_planes_slide(c);
    for (int64_t i = 0; i < (r->args->params.one_zero ? 1 : c->oc); i++)
        r->zeros |= weight_zero(r, i) != 0;
    for (int64_t g = 0; r->zeros && g < r->s.groups; g++) {
        for (int i = 0; i < KILN_INTEGER_GROUP; i++)
            r->ones[g * KILN_INTEGER_GROUP + i] =
                kiln_integer_planes_weight(c, &r->s.planes, g, i) >= 0;
    }
    if (!r->args->packed)
        kiln_cpu_parallel(c->groups * r->s.tiles, r->args->threads, pack_task, r);
    find_adds(r);
}

void
kiln_integer_conv_run(const KilnIntegerConv *c, const KilnIntegerArgs *args)
{
    Run r = { .c = c, .args = args, .kernels = kiln_integer_kernels(), .s = shape_of(c) };
    const Layout at = layout_of(c, &r.s, args->packed != NULL);
    char *scratch = args->scratch;
    if (c->out[0] <= 0 || c->out[1] <= 0)
        return;
    r.planes = (uint8_t *)scratch;
    int64_t *taps = (int64_t *)(void *)(scratch + at.taps);
    kiln_integer_planes_find_taps(c, &r.s.planes, taps);
    r.taps = (KilnIntegerTaps){ taps, r.s.groups, r.s.planes.single ? &r.slide : NULL };
    r.ones = (int8_t *)scratch + at.ones;
    r.adds = (int32_t *)(void *)(scratch + at.adds);
    r.weights = args->packed ? args->packed : scratch + at.weights;
    prepare(&r);
    const int64_t tasks = r.s.n_group_blocks * r.s.runs * r.s.n_blocks;
    for (int64_t image = 0; image < c->batch; image++) {
        r.out = image * c->oc * c->out[0] * c->out[1];
        kiln_integer_planes_fill(c, &r.s.planes, args->left + image * c->ic * c->in[0] * c->in[1],
                                 args->params.left_zero, r.planes, args->threads);
        kiln_cpu_parallel(tasks, args->threads, run_task, &r);
    }
}
