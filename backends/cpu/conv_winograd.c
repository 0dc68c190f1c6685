/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Winograd convolution in rounds of whole rows of tiles. In a round:
 *
 *   image ──split, Bᵀ d B──▶ V[36][ic][tiles], and for every group of output channels
 *   V ──36 products U V──▶ M[36][oc of the group][tiles] ──Aᵀ m A──▶ rows
 *
 * Weights are U[groups][36][panels of oc][ic][oc in the panel], as the register tile of the matrix
 * product wants them. What a thread has computed is best read by itself, so each of a team takes
 * rounds of its own; the last rounds, too few for all, are each shared: V by all, each group of
 * output channels from its products to its rows by one. All bounds follow from the shape and the
 * instruction set, and no sum depends on who computes it.
 */
#include "backends/cpu/conv_winograd.h"

#include "backends/cpu/cost.h"
#include "backends/cpu/gemm_core.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/winograd_kernel.h"

#include <math.h>
#include <string.h>

enum {
    POINTS = KILN_WINOGRAD_POINTS,
    ROUND_TILES = 96, /* in a round at least */
    ROUND_TRIES = 16,
    GROUP_FLOATS = 1 << 18, /* of M */
    TEAM = 4, /* panels and groups of output channels are so many times a number where they can be:
                 evenly spread over teams of two and four */
    CHANNELS_PER_TASK = 4,
    LINE = 16,      /* floats of a cache line, and of the widest vector: one layout for all */
    PACKED_RUN = 8, /* input channels whose weights are brought to their 36 places together, which
                       lie so far apart that lines of them meet in one set of a cache */
};

typedef struct {
    const KilnCpuConv *conv;
    const KilnGemmKernels *gemm;
    const KilnWinogradKernels *kernels;
    int64_t height, width, tiles_y, tiles_x;
    int64_t rows;             /* of tiles in a full round */
    int64_t full_rounds;      /* of an image: one with fewer rows may follow */
    int64_t tiles;            /* floats of a row of V and M */
    int64_t pitch, plane;     /* of the split input: from one row of tiles to the next, floats */
    int64_t panels, groups;   /* of output channels */
    int64_t v_point, m_point; /* floats from one of the 36 matrices to the next */
} Plan;

static int64_t
round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

bool
kiln_winograd_supports(const KilnCpuConv *c)
{
    bool ok =
        c->groups == 1 && c->kernel[0] == 1 && c->in[0] == 1 && c->out[0] == 1 && c->pad[0] == 0;
    for (int d = 1; d < 3; d++)
        ok &= c->kernel[d] == 3 && c->stride[d] == 1 && c->dilation[d] == 1 && c->out[d] > 0;
    return ok && c->batch > 0 && c->ic > 0 && c->oc > 0;
}

/* An odd number of cache lines: 36 streams that far apart do not meet in one set of a cache. */
static int64_t
point_pitch(int64_t channels, int64_t tiles)
{
    int64_t lines = channels * tiles / LINE;
    return (lines | 1) * LINE;
}

static int64_t
ceil_div(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* Channels are spread evenly over panels, and panels over groups. */
static int64_t
panel_start(const Plan *p, int64_t panel)
{
    return panel * p->conv->oc / p->panels;
}

static int64_t
group_start(const Plan *p, int64_t group)
{
    return group * p->panels / p->groups;
}

/* Weights of a panel at a point: of a group of panels all points follow each other, so that a group
 * is read from the first to the last. */
static int64_t
panel_weights(const Plan *p, int64_t group, int64_t point, int64_t panel)
{
    int64_t first = panel_start(p, group_start(p, group)),
            end = panel_start(p, group_start(p, group + 1));
    return p->conv->ic * (first * POINTS + (end - first) * point + panel_start(p, panel) - first);
}

/* Weights are read once a round, so a round is so big that what lies between its transforms is not
 * less than they are; up to twice as many rows if that fills vectors better. */
static int64_t
rows_of_round(const Plan *p)
{
    const KilnCpuConv *c = p->conv;
    double tiles = (double)c->ic * (double)c->oc / (double)(c->ic + c->oc);
    double least = ceil((tiles > ROUND_TILES ? tiles : ROUND_TILES) / (double)p->tiles_x);
    int64_t first = least < (double)p->tiles_y ? (int64_t)least : p->tiles_y, best = first;
    int64_t end = first < ROUND_TRIES ? 2 * first : first + ROUND_TRIES, best_tiles = INT64_MAX;
    for (int64_t rows = first; rows <= end && rows <= p->tiles_y; rows++) {
        int64_t rest = p->tiles_y % rows;
        int64_t all = p->tiles_y / rows * round_up(rows * p->tiles_x, LINE) +
                      round_up(rest * p->tiles_x, LINE);
        if (all < best_tiles) {
            best = rows;
            best_tiles = all;
        }
    }
    return best;
}

static Plan
plan_of(const KilnCpuConv *c)
{
    Plan p = { .conv = c,
               .gemm = kiln_gemm_kernels(c->isa),
               .kernels = kiln_winograd_kernels(c->isa),
               .height = c->out[1],
               .width = c->out[2],
               .tiles_y = ceil_div(c->out[1], KILN_WINOGRAD_TILE),
               .tiles_x = ceil_div(c->out[2], KILN_WINOGRAD_TILE) };
    p.rows = rows_of_round(&p);
    p.full_rounds = p.tiles_y / p.rows;
    p.tiles = round_up(p.rows * p.tiles_x, LINE);
    p.pitch = p.tiles_x + 1;
    p.plane = round_up((p.rows + 1) * p.pitch + KILN_WINOGRAD_READ, LINE);
    p.v_point = point_pitch(c->ic, p.tiles);
    p.panels = ceil_div(c->oc, p.gemm->max_rows);
    p.panels = p.panels > 2 ? round_up(p.panels, TEAM) : p.panels;
    double groups = (double)POINTS * (double)c->oc * (double)p.tiles / GROUP_FLOATS;
    p.groups = groups < (double)p.panels ? round_up((int64_t)groups + 1, TEAM) : p.panels;
    p.groups = p.groups < p.panels ? p.groups : p.panels;
    int64_t panels = ceil_div(p.panels, p.groups);
    p.m_point = point_pitch(panels * ceil_div(c->oc, p.panels), p.tiles);
    return p;
}

/* --- weights --- */

int64_t
kiln_winograd_pack_size(const KilnCpuConv *c)
{
    int64_t floats;
    if (__builtin_mul_overflow(c->ic, c->oc, &floats) ||
        __builtin_mul_overflow(floats, 4 * POINTS, &floats))
        return INT64_MAX;
    return floats;
}

/* Of one panel, from input channel @k on. */
static void
pack_run(const Plan *p, const void *src, float *dst, int64_t panel, int64_t k)
{
    float points[POINTS][PACKED_RUN * LINE];
    const KilnCpuConv *c = p->conv;
    int64_t first = panel_start(p, panel), n = panel_start(p, panel + 1) - first;
    int64_t left = c->ic - k, run = left < PACKED_RUN ? left : PACKED_RUN;
    for (int64_t i = 0; i < run; i++) {
        KilnWinogradWeights w = { .src = (const char *)src + 4 * 9 * (first * c->ic + k + i),
                                  .stride = 9 * c->ic,
                                  .channels = n,
                                  .out = points[0] + i * n,
                                  .out_pitch = PACKED_RUN * LINE };
        p->kernels->weights(&w);
    }
    int64_t group = 0;
    while (group_start(p, group + 1) <= panel)
        group++;
    for (int64_t i = 0; i < POINTS; i++)
        memcpy(dst + panel_weights(p, group, i, panel) + k * n, points[i],
               (size_t)(run * n) * sizeof *dst);
}

void
kiln_winograd_pack(const KilnCpuConv *c, const void *src, float *dst, KilnSlice slice)
{
    Plan p = plan_of(c);
    int64_t runs = (c->ic + PACKED_RUN - 1) / PACKED_RUN,
            end = kiln_slice_end(slice, p.panels * runs);
    for (int64_t at = kiln_slice_begin(slice, p.panels * runs); at < end; at++) {
        int64_t panel = at / runs, k = at % runs * PACKED_RUN;
        pack_run(&p, src, dst, panel, k);
    }
}

/* --- scratch: per thread V, M, and the split input or the finished planes --- */

static int64_t
planes_floats(const Plan *p)
{
    int64_t split = 16 * p->plane, finished = 16 * p->tiles + LINE;
    return split > finished ? split : finished;
}

/* Where the parts of a thread's scratch begin; places are int32_t. */
typedef struct {
    int64_t v, m, planes, places, end;
} Layout;

static Layout
layout_of(const Plan *p)
{
    Layout l = { .v = 0, .m = POINTS * p->v_point };
    l.planes = l.m + POINTS * p->m_point;
    l.places = l.planes + planes_floats(p);
    l.end = l.places + p->tiles;
    return l;
}

int64_t
kiln_winograd_scratch_size(const KilnCpuConv *c, int threads)
{
    Plan p = plan_of(c);
    double floats = (double)POINTS * ((double)p.v_point + (double)p.m_point) +
                    (double)planes_floats(&p) + (double)p.tiles;
    return floats * threads > 0x1p60 ? INT64_MAX : 4 * threads * layout_of(&p).end;
}

/* --- a round --- */

typedef struct {
    const Plan *plan;
    const KilnCpuConvArgs *args;
    int64_t image, first; /* first row of tiles */
    int64_t rows, tiles;  /* of this round: the last may have fewer */
    float *v;
    int32_t *places; /* of every tile in a plane of the split input */
} Round;

static float *
thread_scratch(const Plan *p, const KilnCpuConvArgs *args, int thread)
{
    return args->scratch + thread * layout_of(p).end;
}

/* The round from row @first of the tiles of an image on, with V in the scratch of @thread. */
static Round
round_of(const Plan *p, const KilnCpuConvArgs *args, int64_t image, int64_t first, int thread)
{
    Layout layout = layout_of(p);
    float *scratch = thread_scratch(p, args, thread);
    Round round = { .plan = p,
                    .args = args,
                    .image = image,
                    .first = first,
                    .v = scratch + layout.v,
                    .places = (int32_t *)(void *)(scratch + layout.places) };
    int64_t left = p->tiles_y - round.first;
    round.rows = left < p->rows ? left : p->rows;
    round.tiles = round_up(round.rows * p->tiles_x, LINE);
    int32_t place = 0;
    int64_t i = 0;
    for (int64_t y = 0; y < round.rows; y++) {
        for (int64_t x = 0; x < p->tiles_x; x++)
            round.places[i++] = place = (int32_t)(y * p->pitch + x);
    }
    while (i < round.tiles) /* what fills the last vector repeats the last tile */
        round.places[i++] = place;
    return round;
}

/* The planes of channel @channel of the round's rows of tiles. */
static void
split_channel(const Round *round, int64_t channel, float *planes)
{
    const Plan *p = round->plan;
    const KilnCpuConv *c = p->conv;
    const float *in = round->args->in + round->image * kiln_conv_in_image(c, round->args) +
                      channel * c->in[1] * c->in[2];
    int64_t n = KILN_WINOGRAD_TILE * round->rows + KILN_WINOGRAD_WINDOW - KILN_WINOGRAD_TILE;
    for (int64_t y = 0; y < n; y++) {
        int64_t from = KILN_WINOGRAD_TILE * round->first + y - c->pad[1];
        KilnWinogradRow row = { .row = from >= 0 && from < c->in[1] ? in + from * c->in[2] : NULL,
                                .planes = planes + 4 * (y % 4) * p->plane + y / 4 * p->pitch,
                                .plane = p->plane,
                                .n = p->pitch,
                                .soon = channel + 1 < c->ic ? c->in[1] * c->in[2] : 0,
                                .width = c->in[2],
                                .pad = c->pad[2] };
        p->kernels->row(&row);
    }
}

static void
input_task(const void *data, int64_t task, int thread)
{
    const Round *round = data;
    const Plan *p = round->plan;
    float *planes = thread_scratch(p, round->args, thread) + layout_of(p).planes;
    int64_t channel = task * CHANNELS_PER_TASK, end = channel + CHANNELS_PER_TASK;
    for (; channel < end && channel < p->conv->ic; channel++) {
        split_channel(round, channel, planes);
        KilnWinogradInput in = { .in = planes,
                                 .at = round->places,
                                 .plane = p->plane,
                                 .pitch = p->pitch,
                                 .n = round->tiles,
                                 .out = round->v + channel * p->tiles,
                                 .out_pitch = p->v_point };
        p->kernels->input(&in);
    }
}

/* The products of @rows output channels at one point, with the panel of weights @a, to @out. */
static void
panel_products(const Round *round, const float *a, int64_t rows, int64_t point, float *out)
{
    const Plan *p = round->plan;
    const KilnCpuConv *c = p->conv;
    const float *b = round->v + point * p->v_point;
    for (int64_t k = 0; k < c->ic; k += KILN_GEMM_MAX_DEPTH) {
        int64_t left = c->ic - k, depth = left < KILN_GEMM_MAX_DEPTH ? left : KILN_GEMM_MAX_DEPTH;
        for (int64_t i = 0; i < round->tiles; i += p->gemm->max_cols) {
            int64_t cols = round->tiles - i;
            const float *panel_a = a + k * rows;
            KilnGemmTile tile = { .a = panel_a,
                                  .b = b + k * p->tiles + i,
                                  .soon = panel_a + (i ? 0 : depth * rows),
                                  .out = out + i,
                                  .depth = depth,
                                  .b_pitch = p->tiles,
                                  .out_pitch = p->tiles,
                                  .rows = rows,
                                  .cols = cols < p->gemm->max_cols ? cols : p->gemm->max_cols,
                                  .first = k == 0,
                                  .alpha = 1.0f,
                                  .lo = -INFINITY,
                                  .hi = INFINITY };
            p->gemm->sums(&tile);
        }
    }
}

static void
store_channel(const Round *round, int64_t channel, const float *planes)
{
    const Plan *p = round->plan;
    const KilnCpuConv *c = p->conv;
    int64_t at = channel * p->height * p->width;
    float *out = round->args->out + round->image * kiln_conv_out_image(c, round->args);
    const float *residual = round->args->residual;
    if (residual)
        residual += round->image * kiln_conv_residual_image(c, round->args);
    int64_t first = KILN_WINOGRAD_TILE * round->first,
            end = KILN_WINOGRAD_TILE * (round->first + round->rows);
    end = end < p->height ? end : p->height;
    for (int64_t y = first; y < end; y++) {
        int64_t row = at + y * p->width;
        KilnWinogradStore store = { .row = out + row,
                                    .planes = planes + 4 * (y % 4) * p->tiles +
                                              (y / 4 - round->first) * p->tiles_x,
                                    .residual = residual ? residual + row : NULL,
                                    .soon = channel + 1 < c->oc ? p->height * p->width : 0,
                                    .plane = p->tiles,
                                    .width = p->width,
                                    .lo = c->tail.lo,
                                    .hi = c->tail.hi };
        p->kernels->store(&store);
    }
    kiln_cpu_tail_activate(&c->tail, out + at + first * p->width, (end - first) * p->width);
}

/* A group of output channels, from V to its rows of the image. */
static void
group_task(const void *data, int64_t group, int thread)
{
    const Round *round = data;
    const Plan *p = round->plan;
    const KilnCpuConv *c = p->conv;
    Layout layout = layout_of(p);
    float *scratch = thread_scratch(p, round->args, thread);
    const float *weights = round->args->weights;
    float *m = scratch + layout.m, *planes = scratch + layout.planes;
    int64_t first_panel = group_start(p, group), end_panel = group_start(p, group + 1);
    int64_t first = panel_start(p, first_panel), end = panel_start(p, end_panel);
    for (int64_t point = 0; point < POINTS; point++) {
        for (int64_t panel = first_panel; panel < end_panel; panel++) {
            int64_t channel = panel_start(p, panel), rows = panel_start(p, panel + 1) - channel;
            panel_products(round, weights + panel_weights(p, group, point, panel), rows, point,
                           m + point * p->m_point + (channel - first) * p->tiles);
        }
    }
    bool clips = !round->args->residual; /* what is added later is clipped later */
    for (int64_t channel = first; channel < end; channel++) {
        KilnWinogradOutput out = { .in = m + (channel - first) * p->tiles,
                                   .in_pitch = p->m_point,
                                   .n = round->tiles,
                                   .out = planes,
                                   .out_pitch = p->tiles,
                                   .bias = round->args->bias ? round->args->bias[channel] : 0.0f,
                                   .lo = clips ? c->tail.lo : -INFINITY,
                                   .hi = clips ? c->tail.hi : INFINITY };
        p->kernels->output(&out);
        store_channel(round, channel, planes);
    }
}

static int64_t
input_tasks(const Plan *p)
{
    return ceil_div(p->conv->ic, CHANNELS_PER_TASK);
}

typedef struct {
    const Plan *plan;
    const KilnCpuConvArgs *args;
} Run;

/* Full round number @number of all images. */
static void
full_round_task(const void *data, int64_t number, int thread)
{
    const Run *run = data;
    const Plan *p = run->plan;
    int64_t image = number / p->full_rounds, first = number % p->full_rounds * p->rows;
    Round round = round_of(p, run->args, image, first, thread);
    for (int64_t i = 0; i < input_tasks(p); i++)
        input_task(&round, i, thread);
    for (int64_t i = 0; i < p->groups; i++)
        group_task(&round, i, thread);
}

static void
share_round(const Run *run, int64_t image, int64_t first)
{
    const Plan *p = run->plan;
    int threads = run->args->threads;
    Round round = round_of(p, run->args, image, first, 0);
    kiln_cpu_parallel(input_tasks(p), threads, input_task, &round);
    kiln_cpu_parallel(p->groups, threads, group_task, &round);
}

void
kiln_winograd_run(const KilnCpuConv *c, const KilnCpuConvArgs *args)
{
    Plan p = plan_of(c);
    Run run = { &p, args };
    int64_t full = c->batch * p.full_rounds, alone = full - full % args->threads;
    kiln_cpu_parallel(alone, args->threads, full_round_task, &run);
    for (int64_t i = alone; i < full; i++)
        share_round(&run, i / p.full_rounds, i % p.full_rounds * p.rows);
    for (int64_t image = 0; p.tiles_y % p.rows && image < c->batch; image++)
        share_round(&run, image, p.full_rounds * p.rows);
}

/* --- the model --- */

void
kiln_winograd_terms(const KilnCpuConv *c, double terms[KILN_CPU_TERMS])
{
    Plan p = plan_of(c);
    double rounds = (double)ceil_div(p.tiles_y, p.rows) * (double)c->batch;
    double tiles = (double)p.tiles * rounds, narrow = (double)LINE / (double)p.gemm->vector;
    KilnGemmShape product = { .isa = c->isa, .rows = c->oc, .cols = p.tiles, .depth = c->ic };
    terms[0] = POINTS * rounds * kiln_gemm_cost(&product);
    terms[1] = narrow * tiles * (double)c->ic;
    terms[2] = narrow * tiles * (double)c->oc;
    terms[3] = rounds * 4 * POINTS * (double)c->ic * (double)c->oc;
    terms[4] = 1;
    terms[5] = 0;
}
