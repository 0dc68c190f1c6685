/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Winograd convolution in rounds of whole rows of tiles, as many as keep what lies between the
 * transforms in the second-level cache or near it. In a round, one after the other, each spread
 * over the team:
 *
 *   image ──split, Bᵀ d B──▶ V[36][ic][tiles] ──36 products U V──▶ M[36][oc][tiles] ──Aᵀ m A──▶
 * rows
 *
 * Weights are U[36][panels of oc][ic][oc in the panel], as the register tile of the matrix product
 * wants them. All bounds follow from the shape and the instruction set, so no sum depends on
 * threads.
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
    ROUND_FLOATS = 1 << 19, /* of V and M together */
    PANELS_PER_TASK = 8,
    CHANNELS_PER_TASK = 4,
    LINE = 16,      /* floats of a cache line */
    PACKED_RUN = 8, /* input channels whose weights are brought to their 36 places together, which
                       lie so far apart that lines of them meet in one set of a cache */
};

typedef struct {
    const KilnCpuConv *conv;
    const KilnGemmKernels *gemm;
    const KilnWinogradKernels *kernels;
    int64_t height, width, tiles_y, tiles_x;
    int64_t pitch;     /* of a plane of the split input */
    int64_t rows;      /* of tiles, in a full round */
    int64_t row_pitch; /* tiles from one row of tiles to the next in V and M: tiles_x, or pitch,
                          with a tile between rows that nobody reads */
    int64_t tiles;     /* floats of a row of V and M */
    int64_t plane;     /* floats of one plane of the split input */
    int64_t v_point, m_point; /* floats from one of the 36 matrices to the next */
    int64_t panels;           /* of output channels */
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

/* The plan with @rows of tiles in a round. */
static void
plan_round(Plan *p, int64_t rows)
{
    int64_t vector = LINE; /* of the widest instruction set: one layout for all */
    int64_t dense = round_up(rows * p->tiles_x, vector), flat = round_up(rows * p->pitch, vector);
    p->rows = rows;
    p->row_pitch = flat > dense ? p->tiles_x : p->pitch;
    p->tiles = flat > dense ? dense : flat;
    p->plane = round_up(
        (rows + 1) * p->pitch + KILN_WINOGRAD_SLACK + p->tiles - rows * p->row_pitch, LINE);
    p->v_point = point_pitch(p->conv->ic, p->tiles);
    p->m_point = point_pitch(p->conv->oc, p->tiles);
}

static Plan
plan_of(const KilnCpuConv *c)
{
    Plan p = { .conv = c,
               .gemm = kiln_gemm_kernels(c->isa),
               .kernels = kiln_winograd_kernels(c->isa),
               .height = c->out[1],
               .width = c->out[2],
               .tiles_y = (c->out[1] + 3) / 4,
               .tiles_x = (c->out[2] + 3) / 4 };
    p.pitch = p.tiles_x + 1;
    p.panels = (c->oc + p.gemm->max_rows - 1) / p.gemm->max_rows;
    double of_row = (double)POINTS * (double)(c->ic + c->oc) * (double)p.tiles_x;
    int64_t rows = of_row < ROUND_FLOATS ? (int64_t)(ROUND_FLOATS / of_row) : 1;
    int64_t rounds = (p.tiles_y + rows - 1) / rows;
    plan_round(&p, (p.tiles_y + rounds - 1) / rounds);
    return p;
}

/* --- weights --- */

/* Channels are spread evenly over panels. */
static int64_t
panel_start(const Plan *p, int64_t panel)
{
    return panel * p->conv->oc / p->panels;
}

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
    for (int64_t i = 0; i < POINTS; i++)
        memcpy(dst + i * c->ic * c->oc + first * c->ic + k * n, points[i],
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

/* --- scratch: V, M, and per thread the split input or the finished planes --- */

static int64_t
thread_floats(const Plan *p)
{
    int64_t split = 16 * p->plane + round_up(4 * p->pitch, LINE), finished = 16 * p->tiles;
    return split > finished ? split : finished;
}

int64_t
kiln_winograd_scratch_size(const KilnCpuConv *c, int threads)
{
    Plan p = plan_of(c);
    double floats = (double)POINTS * ((double)p.v_point + (double)p.m_point) +
                    (double)threads * (double)thread_floats(&p);
    if (floats > 0x1p60)
        return INT64_MAX;
    return 4 * (POINTS * (p.v_point + p.m_point) + threads * thread_floats(&p));
}

/* --- a round --- */

typedef struct {
    const Plan *plan;
    const KilnCpuConvArgs *args;
    int64_t image, first; /* first row of tiles */
    int64_t rows, tiles;  /* of this round: the last may have fewer */
    float *v, *m, *of_threads;
} Round;

/* The planes of channel @channel of the round's rows of tiles. */
static void
split_channel(const Round *round, int64_t channel, float *planes, float *line)
{
    const Plan *p = round->plan;
    const KilnCpuConv *c = p->conv;
    const float *in = round->args->in + round->image * kiln_conv_in_image(c, round->args) +
                      channel * c->in[1] * c->in[2];
    int64_t used = (round->rows + 1) * p->pitch;
    for (int64_t y = 0; y < 4 * (round->rows + 1); y++) {
        int64_t from = 4 * round->first + y - c->pad[1];
        KilnWinogradRow row = { .row = from >= 0 && from < c->in[1] ? in + from * c->in[2] : NULL,
                                .line = line,
                                .planes = planes + 4 * (y % 4) * p->plane + y / 4 * p->pitch,
                                .plane = p->plane,
                                .pitch = p->pitch,
                                .width = c->in[2],
                                .pad = c->pad[2] };
        p->kernels->row(&row);
    }
    for (int64_t i = 0; i < 16; i++) /* what vectors read behind the last tile */
        memset(planes + i * p->plane + used, 0, (size_t)(p->plane - used) * sizeof *planes);
}

static void
input_task(const void *data, int64_t task, int thread)
{
    const Round *round = data;
    const Plan *p = round->plan;
    float *planes = round->of_threads + thread * thread_floats(p), *line = planes + 16 * p->plane;
    int64_t channel = task * CHANNELS_PER_TASK, end = channel + CHANNELS_PER_TASK;
    bool flat = p->row_pitch == p->pitch;
    for (; channel < end && channel < p->conv->ic; channel++) {
        split_channel(round, channel, planes, line);
        float *out = round->v + channel * p->tiles;
        int64_t rows = flat ? 1 : round->rows;
        for (int64_t y = 0; y < rows; y++) {
            int64_t rest = round->tiles - y * p->row_pitch; /* the last row fills up the vector */
            KilnWinogradInput in = { .in = planes + y * p->pitch,
                                     .plane = p->plane,
                                     .pitch = p->pitch,
                                     .n = y + 1 < rows ? p->tiles_x : rest,
                                     .out = out + y * p->row_pitch,
                                     .out_pitch = p->v_point };
            p->kernels->input(&in);
        }
    }
}

/* The products of one panel of output channels at one point. */
static void
panel_products(const Round *round, int64_t point, int64_t panel)
{
    const Plan *p = round->plan;
    const KilnCpuConv *c = p->conv;
    int64_t first = panel_start(p, panel), rows = panel_start(p, panel + 1) - first;
    const float *weights = (const float *)round->args->weights + point * c->ic * c->oc;
    const float *a = weights + first * c->ic, *b = round->v + point * p->v_point;
    float *out = round->m + point * p->m_point + first * p->tiles;
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
            p->gemm->tile(&tile);
        }
    }
}

static int64_t
panel_tasks(const Plan *p)
{
    return (p->panels + PANELS_PER_TASK - 1) / PANELS_PER_TASK;
}

static void
product_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Round *round = data;
    int64_t per_point = panel_tasks(round->plan), first = task % per_point * PANELS_PER_TASK;
    for (int64_t i = first; i < first + PANELS_PER_TASK && i < round->plan->panels; i++)
        panel_products(round, task / per_point, i);
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
    int64_t end = 4 * (round->first + round->rows);
    for (int64_t y = 4 * round->first; y < end && y < p->height; y++) {
        int64_t row = at + y * p->width;
        KilnWinogradStore store = { .row = out + row,
                                    .planes = planes + 4 * (y % 4) * p->tiles +
                                              (y / 4 - round->first) * p->row_pitch,
                                    .residual = residual ? residual + row : NULL,
                                    .plane = p->tiles,
                                    .width = p->width,
                                    .lo = c->tail.lo,
                                    .hi = c->tail.hi };
        p->kernels->store(&store);
    }
    int64_t first = 4 * round->first;
    end = end < p->height ? end : p->height;
    kiln_cpu_tail_activate(&c->tail, out + at + first * p->width, (end - first) * p->width);
}

static void
output_task(const void *data, int64_t task, int thread)
{
    const Round *round = data;
    const Plan *p = round->plan;
    const KilnCpuConv *c = p->conv;
    float *planes = round->of_threads + thread * thread_floats(p);
    bool clips = !round->args->residual; /* what is added later is clipped later */
    int64_t channel = task * CHANNELS_PER_TASK, end = channel + CHANNELS_PER_TASK;
    for (; channel < end && channel < c->oc; channel++) {
        KilnWinogradOutput out = { .in = round->m + channel * p->tiles,
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

static void
run_round(Round *round)
{
    const Plan *p = round->plan;
    int threads = round->args->threads;
    int64_t in_tasks = (p->conv->ic + CHANNELS_PER_TASK - 1) / CHANNELS_PER_TASK;
    int64_t out_tasks = (p->conv->oc + CHANNELS_PER_TASK - 1) / CHANNELS_PER_TASK;
    kiln_cpu_parallel(in_tasks, threads, input_task, round);
    kiln_cpu_parallel(POINTS * panel_tasks(p), threads, product_task, round);
    kiln_cpu_parallel(out_tasks, threads, output_task, round);
}

void
kiln_winograd_run(const KilnCpuConv *c, const KilnCpuConvArgs *args)
{
    Plan p = plan_of(c);
    float *m = args->scratch + POINTS * p.v_point;
    for (int64_t image = 0; image < c->batch; image++) {
        for (int64_t first = 0; first < p.tiles_y; first += p.rows) {
            int64_t left = p.tiles_y - first, rows = left < p.rows ? left : p.rows;
            Round round = { .plan = &p,
                            .args = args,
                            .image = image,
                            .first = first,
                            .rows = rows,
                            .tiles = round_up(rows * p.row_pitch, LINE),
                            .v = args->scratch,
                            .m = m,
                            .of_threads = m + POINTS * p.m_point };
            run_round(&round);
        }
    }
}

/* --- the model --- */

void
kiln_winograd_terms(const KilnCpuConv *c, double terms[KILN_CPU_TERMS])
{
    Plan p = plan_of(c);
    double rounds = (double)((p.tiles_y + p.rows - 1) / p.rows) * (double)c->batch;
    double tiles = (double)p.tiles * rounds, narrow = (double)LINE / (double)p.gemm->vector;
    KilnGemmShape product = { .isa = c->isa, .rows = c->oc, .cols = p.tiles, .depth = c->ic };
    terms[0] = POINTS * rounds * kiln_gemm_cost(&product);
    terms[1] = narrow * tiles * (double)c->ic;
    terms[2] = narrow * tiles * (double)c->oc;
    terms[3] = rounds * 4 * POINTS * (double)c->ic * (double)c->oc;
    terms[4] = 1;
    terms[5] = 0;
}
