/* SPDX-License-Identifier: Apache-2.0 */
/* out[position, oc] = sum over taps of in[position + tap, ic] * w[tap][ic, oc]: positions are rows,
 * output channels are vectorised. The sums of a panel of channels lie in scratch, channels of a
 * position side by side; each tap adds the product of the box of positions that have it inside the
 * image. They are turned into planes at the end.
 *
 * Packed weights have all taps, so that they are good for images of any size. Results of large
 * images are taken in strips of positions that follow each other. Images are taken in rounds, and
 * the depth of a round in steps, whose image side is gathered before the panels of channels pass
 * over it. Nothing here depends on the number of threads. */
#include "backends/cpu/conv/conv_taps.h"

#include "backends/cpu/extents.h"
#include "backends/cpu/gemm/gemm_core.h"
#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/stack/tail.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum {
    MAX_TAPS = 64,
    MAX_POSITIONS = 1024,  /* of a strip; larger images are faster in other ways */
    MAX_DEPTH = 1 << 16,   /* and width, in channels: no product of extents can overflow */
    ROUND_ROWS = 512,      /* positions of a round that has several images */
    STEP_FLOATS = 1 << 20, /* of the image side that are gathered at a time */
    FEW_PANELS = 4,        /* are too few tasks for a team */
    BLOCK = KILN_GEMM_MAX_DEPTH,
};

/* A tap and the positions [first, first + n) of each dim that have it inside the image. */
typedef struct {
    int64_t number, at[3];
    int64_t first[3], n[3];
    int64_t rows;   /* positions of an image */
    int64_t before; /* of the taps in front */
} Tap;

typedef struct {
    const KilnCpuConv *conv;
    const KilnGemmKernels *kernels;
    int64_t ic, oc; /* of a group */
    int64_t positions, panels;
    int64_t plane; /* positions of a channel of the result */
    int64_t all_taps;
    int64_t width;   /* of a panel: vectors of a tile, or one where there would be few panels */
    int64_t abreast; /* panels that a task reads at once */
    int64_t round;   /* images */
    int64_t step;    /* input channels of a group that are gathered at a time: whole blocks */
    int64_t rows;    /* of all taps, of one image */
    int n_taps;
    Tap taps[MAX_TAPS];
} Plan;

bool
kiln_conv_taps_supports(const KilnCpuConv *c)
{
    int64_t positions = 1, taps = 1, reach;
    if (!c->weights_packed || c->ic < 1 || c->oc < 1 || c->ic > MAX_DEPTH || c->oc > MAX_DEPTH)
        return false;
    for (int d = 0; d < 3; d++) {
        bool fits = c->out[d] >= 1 && c->out[d] <= MAX_POSITIONS && c->kernel[d] >= 1 &&
                    c->kernel[d] <= MAX_TAPS && c->in[d] >= 1 && c->pad[d] >= 0 &&
                    !__builtin_mul_overflow(c->kernel[d], c->dilation[d], &reach);
        if (!fits)
            return false;
        positions *= c->out[d];
        taps *= c->kernel[d];
    }
    return positions <= MAX_POSITIONS && taps <= MAX_TAPS && c->batch >= 1;
}

/* The box of positions of @tap; false where it is empty. */
static bool
find_box(const KilnCpuConv *c, Tap *tap)
{
    tap->rows = 1;
    for (int d = 0; d < 3; d++) {
        int64_t x = tap->at[d] * c->dilation[d] - c->pad[d]; /* of the first position */
        int64_t first = x < 0 ? ceil_div(-x, c->stride[d]) : 0;
        int64_t end = x < c->in[d] ? min_of(c->out[d], (c->in[d] - 1 - x) / c->stride[d] + 1) : 0;
        tap->first[d] = first;
        tap->n[d] = end > first ? end - first : 0;
        tap->rows *= tap->n[d];
    }
    return tap->rows > 0;
}

/* What packed weights hang on: nothing of an image. */
static Plan
weights_of(const KilnCpuConv *c)
{
    Plan p = { .conv = c,
               .kernels = kiln_gemm_kernels(c->isa),
               .ic = c->ic / c->groups,
               .oc = c->oc / c->groups,
               .all_taps = times3(c->kernel) };
    p.width = p.kernels->max_cols;
    if (c->groups * ceil_div(p.oc, p.width) < FEW_PANELS)
        p.width = p.kernels->vector;
    p.panels = ceil_div(p.oc, p.width);
    return p;
}

/* The plan for the positions of @c, which are some of a result with @plane of them. */
static Plan
plan_of(const KilnCpuConv *c, int64_t plane)
{
    Plan p = weights_of(c);
    p.positions = times3(c->out);
    p.plane = plane;
    int64_t most = 0;
    for (int64_t i = 0, n = times3(c->kernel); i < n; i++) {
        Tap *tap = &p.taps[p.n_taps];
        *tap = (Tap){ .number = i,
                      .at = { i / (c->kernel[1] * c->kernel[2]), i / c->kernel[2] % c->kernel[1],
                              i % c->kernel[2] },
                      .before = p.rows };
        if (!find_box(c, tap))
            continue;
        p.rows += tap->rows;
        most = tap->rows > most ? tap->rows : most;
        p.n_taps++;
    }
    p.round = ROUND_ROWS / p.positions > 1 ? min_of(ROUND_ROWS / p.positions, c->batch) : 1;
    p.round = ceil_div(c->batch, ceil_div(c->batch, p.round));
    /* Few rows wait for weights: two streams come faster than one. */
    bool pairs = p.kernels->pair[KILN_GEMM_F32] && p.width == p.kernels->max_cols &&
                 most * p.round <= p.kernels->pair_rows;
    p.abreast = pairs ? 2 : 1;
    int64_t blocks = STEP_FLOATS / (BLOCK * c->groups * p.round * (p.rows > 0 ? p.rows : 1));
    p.step = min_of((blocks > 1 ? blocks : 1) * BLOCK, p.ic);
    return p;
}

/* Floats of a panel's vectors. */
static int64_t
pitch_of(const Plan *p, int64_t panel)
{
    int64_t vector = p->kernels->vector, left = p->oc - panel * p->width;
    return min_of(p->width, round_up(left, vector));
}

static int64_t
panel_floats(const Plan *p, int64_t panel)
{
    return p->all_taps * p->ic * pitch_of(p, panel);
}

/* Where the weights of a panel begin: of whole panels are all but the last of a group. */
static int64_t
panel_start(const Plan *p, int64_t group, int64_t panel)
{
    int64_t group_floats = (p->panels - 1) * panel_floats(p, 0) + panel_floats(p, p->panels - 1);
    return group * group_floats + panel * panel_floats(p, 0);
}

int64_t
kiln_conv_taps_pack_size(const KilnCpuConv *c)
{
    Plan p = weights_of(c);
    return 4 * panel_start(&p, c->groups, 0);
}

/* Where the weights of tap @number begin in a panel, for the block of depth at @block. */
static int64_t
tap_start(const Plan *p, int64_t block, int64_t number, int64_t pitch)
{
    return (block * p->all_taps + number * min_of(BLOCK, p->ic - block)) * pitch;
}

/* The taps of input channels [@first, @end) of a panel, whose weights turn @turned holds, channel
 * by channel and tap by tap, to block after block of depth, tap after tap. */
static void
place_rows(const Plan *p, const float *turned, int64_t first, int64_t n, int64_t pitch, float *dst)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t channel = (first + i) / p->all_taps, number = (first + i) % p->all_taps;
        int64_t block = channel / BLOCK * BLOCK;
        memcpy(dst + tap_start(p, block, number, pitch) + (channel - block) * pitch,
               turned + i * pitch, 4 * (size_t)pitch);
    }
}

void
kiln_conv_taps_pack(const KilnCpuConv *c, const void *src, float *dst, KilnSlice slice)
{
    Plan p = weights_of(c);
    float turned[BLOCK * KILN_GEMM_MAX_COLS];
    int64_t n = c->groups * p.panels, depth = p.ic * p.all_taps;
    for (int64_t i = kiln_slice_begin(slice, n); i < kiln_slice_end(slice, n); i++) {
        int64_t group = i / p.panels, panel = i % p.panels, start = panel * p.width;
        KilnGemmTranspose turn = { .dst = turned,
                                   .pitch = pitch_of(&p, panel),
                                   .lanes = min_of(p.width, p.oc - start),
                                   .stride = depth };
        for (int64_t k = 0; k < depth; k += BLOCK) {
            turn.depth = min_of(BLOCK, depth - k);
            turn.src = (const char *)src + 4 * ((group * p.oc + start) * depth + k);
            p.kernels->transpose(&turn);
            place_rows(&p, turned, k, turn.depth, turn.pitch, dst + panel_start(&p, group, panel));
        }
    }
}

/* Scratch: the image side of a step, then the sums of all panels. */
static int64_t
gathered_floats(const Plan *p)
{
    return round_up(p->conv->groups * p->step * p->rows * p->round, KILN_CPU_LINE_FLOATS);
}

/* Floats of the sums of a panel, but for the last of a group, and of all of a group. */
static int64_t
group_sums(const Plan *p)
{
    int64_t cols = (p->panels - 1) * p->width + pitch_of(p, p->panels - 1);
    return p->round * p->positions * cols;
}

/* --- strips of positions --- */

/* The positions of strips, but for the last ones of a dim: whole rows, or parts of one. */
typedef struct {
    int64_t n[3];
    int64_t strips[3];
} Strips;

static Strips
strips_of(const KilnCpuConv *c)
{
    Strips s;
    int64_t room = MAX_POSITIONS;
    for (int d = 2; d >= 0; d--) {
        s.n[d] = min_of(c->out[d], room);
        s.strips[d] = ceil_div(c->out[d], s.n[d]);
        room = s.strips[d] > 1 ? 1 : room / s.n[d];
    }
    return s;
}

/* The convolution whose results are strip @index of @c, and in *@out_start where they begin in a
 * channel of the result. */
static KilnCpuConv
strip_at(const KilnCpuConv *c, const Strips *s, int64_t index, int64_t *out_start)
{
    KilnCpuConv strip = *c;
    int64_t step = 1;
    *out_start = 0;
    for (int d = 2; d >= 0; d--) {
        int64_t first = index % s->strips[d] * s->n[d];
        index /= s->strips[d];
        strip.out[d] = min_of(s->n[d], c->out[d] - first);
        strip.pad[d] = c->pad[d] - first * c->stride[d];
        *out_start += first * step;
        step *= c->out[d];
    }
    return strip;
}

int64_t
kiln_conv_taps_scratch_size(const KilnCpuConv *c)
{
    if (times3(c->out) == 0)
        return 0;
    Strips s = strips_of(c);
    int64_t most = 0, start;
    for (int64_t i = 0; i < times3(s.strips); i++) {
        KilnCpuConv strip = strip_at(c, &s, i, &start);
        Plan p = plan_of(&strip, times3(c->out));
        int64_t floats = gathered_floats(&p) + c->groups * group_sums(&p);
        most = floats > most ? floats : most;
    }
    return 4 * most;
}

/* --- a step of a round --- */

typedef struct {
    const Plan *plan;
    const KilnCpuConvArgs *args;
    int64_t image, images; /* of the round */
    int64_t channel, end;  /* of a group's input channels: the step */
    float *gathered, *sums;
} Step;

/* Rows of a tap's product that one tile takes. */
typedef struct {
    int64_t start, extent;
} Rows;

static Rows
rows_of(const Step *step, const Tap *tap, int64_t number, int64_t n)
{
    int64_t all = tap->rows * step->images, start = number * all / n;
    return (Rows){ start, (number + 1) * all / n - start };
}

static int64_t
tiles_of(const Plan *p, const Tap *tap, int64_t images)
{
    return ceil_div(tap->rows * images, p->kernels->max_rows);
}

/* Row @row of a tap's product: image and position. */
typedef struct {
    int64_t image, at[3];
} Place;

static Place
place_of(const Tap *tap, int64_t row)
{
    Place place = { .image = row / tap->rows };
    int64_t i = row % tap->rows;
    place.at[2] = tap->first[2] + i % tap->n[2];
    place.at[1] = tap->first[1] + i / tap->n[2] % tap->n[1];
    place.at[0] = tap->first[0] + i / tap->n[2] / tap->n[1];
    return place;
}

static void
next_place(const Tap *tap, Place *place)
{
    for (int d = 2; d >= 0; d--) {
        if (++place->at[d] < tap->first[d] + tap->n[d])
            return;
        place->at[d] = tap->first[d];
    }
    place->image++;
}

/* What a place is in the sums of a round. */
static int64_t
sum_of(const Plan *p, const Place *place)
{
    const int64_t *out = p->conv->out;
    return place->image * p->positions + (place->at[0] * out[1] + place->at[1]) * out[2] +
           place->at[2];
}

/* What it reads of the images of a round at a tap, in floats from the first channel. */
static int64_t
read_of(const Step *step, const Tap *tap, const Place *place)
{
    const KilnCpuConv *c = step->plan->conv;
    int64_t x[3];
    for (int d = 0; d < 3; d++)
        x[d] = place->at[d] * c->stride[d] + tap->at[d] * c->dilation[d] - c->pad[d];
    return place->image * kiln_conv_in_image(c, step->args) + (x[0] * c->in[1] + x[1]) * c->in[2] +
           x[2];
}

/* The image side of a group, block of depth and tap, all of them panels of tiles. */
static float *
gathered_at(const Step *step, int64_t group, int64_t block, const Tap *tap)
{
    const Plan *p = step->plan;
    int64_t channels = step->end - step->channel, depth = min_of(BLOCK, step->end - block);
    return step->gathered + step->images * (p->rows * (group * channels + block - step->channel) +
                                            tap->before * depth);
}

static void
gather_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Step *step = data;
    const Plan *p = step->plan;
    const KilnCpuConv *c = p->conv;
    int64_t blocks = ceil_div(step->end - step->channel, BLOCK), plane = times3(c->in);
    const Tap *tap = &p->taps[task % p->n_taps];
    int64_t block = step->channel + task / p->n_taps % blocks * BLOCK;
    int64_t group = task / p->n_taps / blocks, n = tiles_of(p, tap, step->images);
    KilnGemmCopy copy = { .dst = gathered_at(step, group, block, tap),
                          .depth = min_of(BLOCK, step->end - block),
                          .src = step->args->in + step->image * kiln_conv_in_image(c, step->args) +
                                 (group * p->ic + block) * plane,
                          .stride = plane };
    Place place = place_of(tap, 0);
    for (int64_t i = 0; i < n; i++) {
        Rows rows = rows_of(step, tap, i, n);
        copy.pitch = rows.extent;
        copy.n_runs = 0;
        for (int64_t k = 0; k < rows.extent; k++, next_place(tap, &place)) {
            int64_t src = read_of(step, tap, &place);
            KilnGemmRun *last = copy.n_runs ? &copy.runs[copy.n_runs - 1] : NULL;
            if (last && last->src + last->len == src)
                last->len++;
            else
                copy.runs[copy.n_runs++] = (KilnGemmRun){ src, (int32_t)k, 1 };
        }
        p->kernels->copy(&copy);
        copy.dst += rows.extent * copy.depth;
    }
}

/* Where the sums of a panel begin. */
static float *
sums_of(const Step *step, int64_t group, int64_t panel)
{
    const Plan *p = step->plan;
    return step->sums + group * group_sums(p) + panel * p->width * p->round * p->positions;
}

static void
add_row(float *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* The product of one tile, @rows of @tap, to its places among @sums and, of a pair, @beside. */
static void
add_tile(const Step *step, const Tap *tap, Rows rows, KilnGemmTile *tile, float *sums,
         float *beside)
{
    const Plan *p = step->plan;
    int64_t pitch = tile->b_pitch, width = beside ? 2 * pitch : pitch;
    Place place = place_of(tap, rows.start), last = place_of(tap, rows.start + rows.extent - 1);
    float product[KILN_GEMM_MAX_ROWS * KILN_GEMM_MAX_COLS];
    int64_t first = sum_of(p, &place);
    bool dense = !beside && sum_of(p, &last) - first == rows.extent - 1;
    tile->rows = rows.extent;
    tile->first = !dense;
    tile->out = dense ? sums + first * pitch : product;
    tile->out_pitch = tile->cols = width;
    if (beside)
        p->kernels->pair[KILN_GEMM_F32](tile);
    else if (rows.extent < KILN_GEMM_MANY_ROWS)
        p->kernels->tile[KILN_GEMM_F32](tile);
    else
        p->kernels->sums(tile);
    for (int64_t i = 0; !dense && i < rows.extent; i++, next_place(tap, &place)) {
        int64_t at = sum_of(p, &place) * pitch;
        add_row(sums + at, product + i * width, pitch);
        if (beside)
            add_row(beside + at, product + i * width + pitch, pitch);
    }
}

/* A panel's sums are complete: to the planes of its channels. */
static void
store_panel(const Step *step, int64_t group, int64_t panel, const float *sums)
{
    const Plan *p = step->plan;
    const KilnCpuConvArgs *args = step->args;
    int64_t start = panel * p->width, channel = group * p->oc + start;
    KilnGemmTurn turn = { .kernels = p->kernels,
                          .rows = p->positions,
                          .cols = min_of(p->width, p->oc - start),
                          .sums_pitch = pitch_of(p, panel),
                          .out_col = p->plane,
                          .bias = args->bias ? args->bias + channel : NULL,
                          .bias_col = 1,
                          .alpha = 1.0f,
                          .beta = 1.0f,
                          .tail = &p->conv->tail };
    for (int64_t i = 0; i < step->images; i++) {
        int64_t image = step->image + i, at = channel * p->plane;
        turn.sums = sums + i * p->positions * turn.sums_pitch;
        turn.out = args->out + image * kiln_conv_out_image(p->conv, args) + at;
        turn.residual = args->residual
                            ? args->residual + image * kiln_conv_residual_image(p->conv, args) + at
                            : NULL;
        kiln_gemm_store_turned(&turn);
        for (int64_t j = 0; j < turn.cols; j++)
            kiln_cpu_tail_activate(&p->conv->tail, turn.out + j * p->plane, p->positions);
    }
}

/* One panel of output channels over the step, or two that are read at once. */
static void
run_panel(const Step *step, int64_t group, int64_t panel, bool pair)
{
    const Plan *p = step->plan;
    int64_t pitch = pitch_of(p, panel);
    const float *weights = (const float *)step->args->weights + panel_start(p, group, panel);
    float *sums = sums_of(step, group, panel);
    float *beside = pair ? sums_of(step, group, panel + 1) : NULL;
    KilnGemmTile tile = { .b_pitch = pitch, .alpha = 1.0f, .lo = -INFINITY, .hi = INFINITY };
    for (int64_t block = step->channel; block < step->end; block += BLOCK) {
        tile.depth = min_of(BLOCK, step->end - block);
        for (int t = 0; t < p->n_taps; t++) {
            const Tap *tap = &p->taps[t];
            const float *b = weights + tap_start(p, block, tap->number, pitch);
            const float *a = gathered_at(step, group, block, tap);
            int64_t n = tiles_of(p, tap, step->images);
            tile.b = b;
            tile.beside = b + panel_floats(p, panel);
            for (int64_t i = 0; i < n; i++) {
                Rows rows = rows_of(step, tap, i, n);
                tile.a = a;
                tile.soon = b + (pitch + i * 16) * tile.depth;
                add_tile(step, tap, rows, &tile, sums, beside);
                a += rows.extent * tile.depth;
            }
        }
    }
}

static void
panels_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Step *step = data;
    const Plan *p = step->plan;
    int64_t tasks = ceil_div(p->panels, p->abreast), group = task / tasks;
    int64_t first = task % tasks * p->abreast, end = min_of(first + p->abreast, p->panels);
    for (int64_t i = first; step->channel == 0 && i < end; i++)
        memset(sums_of(step, group, i), 0,
               4 * (size_t)(step->images * p->positions * pitch_of(p, i)));
    bool pair = end - first == 2 && pitch_of(p, end - 1) == pitch_of(p, first);
    for (int64_t i = first; i < end; i += pair ? 2 : 1)
        run_panel(step, group, i, pair);
    for (int64_t i = first; step->end == p->ic && i < end; i++)
        store_panel(step, group, i, sums_of(step, group, i));
}

static void
run_strip(const KilnCpuConv *c, int64_t plane, const KilnCpuConvArgs *args)
{
    Plan p = plan_of(c, plane);
    Step step = { .plan = &p,
                  .args = args,
                  .gathered = args->scratch,
                  .sums = args->scratch + gathered_floats(&p) };
    for (step.image = 0; step.image < c->batch; step.image += p.round) {
        step.images = min_of(p.round, c->batch - step.image);
        for (step.channel = 0; step.channel < p.ic; step.channel = step.end) {
            step.end = min_of(step.channel + p.step, p.ic);
            int64_t blocks = ceil_div(step.end - step.channel, BLOCK);
            kiln_cpu_parallel(c->groups * blocks * p.n_taps, args->threads, gather_task, &step);
            kiln_cpu_parallel(c->groups * ceil_div(p.panels, p.abreast), args->threads, panels_task,
                              &step);
        }
    }
}

void
kiln_conv_taps_run(const KilnCpuConv *c, const KilnCpuConvArgs *args)
{
    Strips s = strips_of(c);
    KilnCpuConvArgs of_strip = *args;
    of_strip.out_image = kiln_conv_out_image(c, args);
    of_strip.residual_image = kiln_conv_residual_image(c, args);
    for (int64_t i = 0; i < times3(s.strips); i++) {
        int64_t start;
        KilnCpuConv strip = strip_at(c, &s, i, &start);
        of_strip.out = args->out + start;
        of_strip.residual = args->residual ? args->residual + start : NULL;
        run_strip(&strip, times3(c->out), &of_strip);
    }
}

/* --- the model --- */

/* In quarter cycles. */
static const double gather_float = 1.5, add_vector = 6, tile_start = 120, store_float = 6;

KilnTapsCost
kiln_conv_taps_cost(const KilnCpuConv *c)
{
    Plan p = plan_of(c, times3(c->out));
    double rounds = (double)c->batch / (double)p.round, groups = (double)c->groups;
    double blocks = (double)ceil_div(p.ic, BLOCK),
           vectors = (double)ceil_div(p.oc, p.kernels->vector);
    double rows = (double)p.rows * (double)c->batch * groups, tiles = 0, fewest = 0;
    for (int t = 0; t < p.n_taps; t++) {
        double of_tap = (double)tiles_of(&p, &p.taps[t], p.round);
        tiles += of_tap;
        fewest += p.taps[t].rows * p.round == 1;
    }
    KilnTapsCost cost = { .products =
                              vectors * (double)p.ic * (2 * rows + groups * rounds * fewest) };
    int64_t floats = panel_start(&p, c->groups, 0) / p.all_taps * p.n_taps;
    cost.bytes = 4.0 * rounds * (double)floats;
    cost.all = cost.products + gather_float * rows * (double)p.ic +
               add_vector * vectors * rows * blocks +
               tile_start * rounds * groups * tiles * blocks * (double)p.panels +
               store_float * (double)c->batch * (double)c->oc * (double)p.positions;
    return cost;
}
