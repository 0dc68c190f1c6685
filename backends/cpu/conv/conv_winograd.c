/* SPDX-License-Identifier: Apache-2.0 */
/* A Winograd convolution in rounds of tiles. In a round:
 *
 *   image ──split, Bᵀ d B──▶ V[36][ic][tiles], and for every group of output channels
 *   V ──36 products U V──▶ M[36][oc of the group][tiles] ──Aᵀ m A──▶ rows
 *
 * Weights are U[groups][36][panels of oc][ic][oc in the panel], as the register tile of the matrix
 * product wants them. These groups are the same for all images; large rounds split them further.
 * What a thread has computed is best read by itself, so rounds share nothing but U. An image's
 * tiles, in vectors of 16, are cut into a part for each thread of a team:
 *
 *   │ part 0: round, round, … │ part 1: round, round, … │ rest │
 *
 * The vectors of the rest, fewer than parts or all, belong to the last round of every part: each
 * transforms them all and computes a share of their output channels. Images with fewer vectors than
 * threads have rounds that all share: V by all, each group of output channels by one; so have those
 * that each thread would transform whole to a V that its own cache does not hold. A thread that is
 * done before the others takes rounds of theirs, or, where each has but one, groups of output
 * channels: processors are not equally fast at all times. No sum depends on the cut. */
#include "backends/cpu/conv/conv_winograd.h"

#include "backends/cpu/conv/winograd_kernel.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/gemm_plan.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/stack/tail.h"
#include "exec/team.h"
#include "exec/wait.h"

#include <math.h>
#include <string.h>

enum {
    POINTS = KILN_WINOGRAD_POINTS,
    ROUND_TILES = 96,       /* in a round at least */
    GROUP_FLOATS = 1 << 18, /* of M */
    OWN_FLOATS = 1 << 19,   /* of V, about what stays in a core's own cache: more comes from one
                               that cores share, whoever wrote it */
    TEAM = 4, /* panels and groups of output channels are so many times a number where they can be:
                 evenly spread over teams of two and four */
    TRANSFORM = 32, /* output channels whose products take as long as transforming their input */
    LINE = 16,      /* floats of a cache line, and of the widest vector: one layout for all */
    CHANNELS_PER_TASK = 4,
    PACKED_RUN = 8, /* input channels whose weights are brought to their 36 places together, which
                       lie so far apart that lines of them meet in one set of a cache */
};

typedef struct {
    const KilnCpuConv *conv;
    const KilnGemmKernels *gemm;
    const KilnWinogradKernels *kernels;
    int64_t height, width, tiles_y, tiles_x;
    int64_t vectors, rest;    /* of an image, and behind its parts */
    int64_t parts, rounds;    /* of an image, and of a part */
    bool shared;              /* its rounds, by the team */
    int64_t tiles;            /* of the largest round, with the rest: floats of a row of V and M */
    int64_t pitch, plane;     /* of the split input: from one row of tiles to the next, floats */
    int64_t panels, groups;   /* of output channels */
    int64_t packed_groups;    /* in which weights lie: each is one group of a round, or several */
    int64_t v_point, m_point; /* floats from one of the 36 matrices to the next */
} Plan;

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
    int64_t first = panel_start(p, group * p->panels / p->packed_groups),
            end = panel_start(p, (group + 1) * p->panels / p->packed_groups);
    return p->conv->ic * (first * POINTS + (end - first) * point + panel_start(p, panel) - first);
}

/* Weights are read once a round, so a round is so big that what lies between its transforms is not
 * less than they are. Vectors. */
static double
round_tiles(const KilnCpuConv *c)
{
    double tiles = (double)c->ic * (double)c->oc / (double)(c->ic + c->oc);
    return tiles > ROUND_TILES ? tiles : ROUND_TILES;
}

static int64_t
full_round(const Plan *p)
{
    double rows = ceil(round_tiles(p->conv) / (double)p->tiles_x);
    int64_t whole = rows < (double)p->tiles_y ? (int64_t)rows : p->tiles_y;
    return ceil_div(whole * p->tiles_x, LINE);
}

static int64_t
common_divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* In vectors of an image; behind the last part is the rest. */
static int64_t
part_start(const Plan *p, int64_t part)
{
    return part * (p->vectors - p->rest) / p->parts;
}

/* Time of the slowest part with @rest vectors for all, times parts: what a vector of columns of an
 * output channel takes is 1. A column alone in a vector is taken for nothing. */
static int64_t
time_of_parts(const Plan *p, int64_t rest)
{
    int64_t own = ceil_div(p->vectors - rest, p->parts), oc = p->conv->oc;
    bool edge = kiln_gemm_has_edge(oc, p->tiles_y * p->tiles_x, LINE);
    int64_t shared = rest > 0 ? rest - edge : 0;
    return p->parts * (own * (TRANSFORM + oc) + rest * TRANSFORM) + shared * oc;
}

/* Images are spread over the team before they are cut. Vectors too few for all are better
 * transformed by each than left to some, unless they are many and output channels are few; so are
 * all vectors of a small image whose last one has a single column, but where their V is large. */
static void
cut_images(Plan *p, int threads)
{
    const KilnCpuConv *c = p->conv;
    p->vectors = ceil_div(p->tiles_y * p->tiles_x, LINE);
    p->parts = threads / common_divisor(c->batch, threads);
    p->shared = p->vectors < p->parts;
    p->parts = p->shared ? 1 : p->parts;
    int64_t full = full_round(p), rest = p->vectors % p->parts;
    p->rest = time_of_parts(p, rest) <= time_of_parts(p, 0) ? rest : 0;
    if (p->parts > 1 && p->vectors <= full &&
        time_of_parts(p, p->vectors) < time_of_parts(p, p->rest))
        p->rest = p->vectors;
    double v = (double)c->ic * (double)p->vectors * (POINTS * LINE);
    if (p->rest == p->vectors && v > OWN_FLOATS) {
        p->shared = true;
        p->parts = 1;
        p->rest = 0;
    }
    int64_t part = ceil_div(p->vectors - p->rest, p->parts);
    p->rounds = part > full ? ceil_div(part, full) : 1;
    p->tiles = LINE * (ceil_div(part, p->rounds) + p->rest);
}

/* How many rows of tiles some tiles that follow each other may touch, and one below for windows. */
static int64_t
rows_of(const Plan *p, int64_t vectors)
{
    int64_t rows = vectors > 0 ? (LINE * vectors - 1 + p->tiles_x - 1) / p->tiles_x + 2 : 0;
    return rows < p->tiles_y + 1 ? rows : p->tiles_y + 1;
}

/* Groups of panels for rounds of @vectors vectors. */
static int64_t
groups_of(const Plan *p, int64_t vectors)
{
    double groups = (double)POINTS * (double)p->conv->oc * (double)(LINE * vectors) / GROUP_FLOATS;
    int64_t n = groups < (double)p->panels ? round_up((int64_t)groups + 1, TEAM) : p->panels;
    return n < p->panels ? n : p->panels;
}

/* What weights hang on: nothing of an image. */
static Plan
weights_of(const KilnCpuConv *c)
{
    Plan p = { .conv = c,
               .gemm = kiln_gemm_kernels(c->isa),
               .kernels = kiln_winograd_kernels(c->isa) };
    p.panels = ceil_div(c->oc, p.gemm->max_rows);
    p.panels = p.panels > 2 ? round_up(p.panels, TEAM) : p.panels;
    p.packed_groups = groups_of(&p, (int64_t)ceil(round_tiles(c) / LINE));
    return p;
}

static Plan
plan_of(const KilnCpuConv *c, int threads)
{
    Plan p = weights_of(c);
    p.height = c->out[1];
    p.width = c->out[2];
    p.tiles_y = ceil_div(c->out[1], KILN_WINOGRAD_TILE);
    p.tiles_x = ceil_div(c->out[2], KILN_WINOGRAD_TILE);
    cut_images(&p, threads);
    p.pitch = p.tiles_x + 1;
    int64_t rows = rows_of(&p, p.tiles / LINE - p.rest) + rows_of(&p, p.rest);
    p.plane = round_up(rows * p.pitch + KILN_WINOGRAD_READ, LINE);
    p.v_point = point_pitch(c->ic, p.tiles);
    p.groups = p.packed_groups * ceil_div(groups_of(&p, full_round(&p)), p.packed_groups);
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
    while ((group + 1) * p->panels / p->packed_groups <= panel)
        group++;
    for (int64_t i = 0; i < POINTS; i++)
        memcpy(dst + panel_weights(p, group, i, panel) + k * n, points[i],
               (size_t)(run * n) * sizeof *dst);
}

void
kiln_winograd_pack(const KilnCpuConv *c, const void *src, float *dst, KilnSlice slice)
{
    Plan p = weights_of(c);
    int64_t runs = ceil_div(c->ic, PACKED_RUN), end = kiln_slice_end(slice, p.panels * runs);
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

static int64_t
scratch_of_team(const KilnCpuConv *c, int threads)
{
    Plan p = plan_of(c, threads);
    double floats = (double)POINTS * ((double)p.v_point + (double)p.m_point) +
                    (double)planes_floats(&p) + (double)p.tiles;
    return floats * threads > 0x1p60 ? INT64_MAX : 4 * threads * layout_of(&p).end;
}

/* A smaller team may need more: its parts, and what is left behind them, are larger. */
int64_t
kiln_winograd_scratch_size(const KilnCpuConv *c, int threads)
{
    int64_t most = 0;
    for (int team = 1; team <= threads; team++) {
        int64_t bytes = scratch_of_team(c, team);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* --- a round --- */

/* Tiles of an image that follow each other. */
typedef struct {
    int64_t first, end;
    int64_t column;    /* in V and M */
    int64_t plane_row; /* of the first tile in the split input */
} Piece;

typedef struct {
    const Plan *plan;
    const KilnCpuConvArgs *args;
    int64_t image;
    Piece pieces[2];                /* its own tiles, and the rest of the image */
    int64_t own, tiles;             /* columns of V and M: of its own, and all; whole vectors, but
                                       for the last of an image */
    int64_t first_panel, end_panel; /* that it computes of the rest */
    float *v, *m, *planes;
    int32_t *places; /* of every tile in a plane of the split input */
} Round;

static int64_t
first_row(const Round *round, int piece)
{
    return round->pieces[piece].first / round->plan->tiles_x;
}

static int64_t
end_row(const Round *round, int piece)
{
    const Piece *s = &round->pieces[piece];
    return s->end > s->first ? (s->end - 1) / round->plan->tiles_x + 1 : first_row(round, piece);
}

/* What fills the last vector of an image repeats the last tile. */
static void
find_places(const Round *round)
{
    const Plan *p = round->plan;
    for (int i = 0; i < 2; i++) {
        const Piece *s = &round->pieces[i];
        int64_t columns = round_up(s->end - s->first, LINE);
        int64_t y = s->plane_row, x = s->first % p->tiles_x;
        for (int64_t k = 0; k < columns; k++) {
            round->places[s->column + k] = (int32_t)(y * p->pitch + x);
            if (s->first + k + 1 >= s->end)
                continue;
            y += x + 1 == p->tiles_x;
            x = x + 1 == p->tiles_x ? 0 : x + 1;
        }
    }
}

/* Tiles of vectors [@first, @first + @n) of an image, at column @column. */
static Piece
piece_of(const Plan *p, int64_t first, int64_t n, int64_t column)
{
    int64_t tiles = p->tiles_y * p->tiles_x, start = LINE * first, end = LINE * (first + n);
    return (Piece){ .first = start < tiles ? start : tiles,
                    .end = end < tiles ? end : tiles,
                    .column = column };
}

/* Round @number of part @part of an image, in the scratch of @thread. */
static Round
round_of(const Plan *p, const KilnCpuConvArgs *args, int64_t part, int64_t number, int thread)
{
    Layout layout = layout_of(p);
    float *scratch = args->scratch + thread * layout.end;
    Round round = { .plan = p,
                    .args = args,
                    .v = scratch + layout.v,
                    .m = scratch + layout.m,
                    .planes = scratch + layout.planes,
                    .places = (int32_t *)(void *)(scratch + layout.places) };
    int64_t start = part_start(p, part), length = part_start(p, part + 1) - start;
    int64_t first = start + number * length / p->rounds;
    int64_t own = start + (number + 1) * length / p->rounds - first;
    round.first_panel = part * p->panels / p->parts;
    round.end_panel = (part + 1) * p->panels / p->parts;
    bool last = number == p->rounds - 1 && round.first_panel < round.end_panel;
    int64_t rest = last ? p->rest : 0;
    round.pieces[0] = piece_of(p, first, own, 0);
    round.own = round.pieces[0].end - round.pieces[0].first;
    round.pieces[1] = piece_of(p, p->vectors - p->rest, rest, round.own);
    round.tiles = round.own + round.pieces[1].end - round.pieces[1].first;
    round.pieces[1].plane_row = own > 0 ? end_row(&round, 0) - first_row(&round, 0) + 1 : 0;
    find_places(&round);
    return round;
}

/* The planes of channel @channel of the rows of tiles of a piece. */
static void
split_channel(const Round *round, int piece, int64_t channel)
{
    const Plan *p = round->plan;
    const KilnCpuConv *c = p->conv;
    const float *in = round->args->in + round->image * kiln_conv_in_image(c, round->args) +
                      channel * c->in[1] * c->in[2];
    int64_t first = first_row(round, piece), rows = end_row(round, piece) - first;
    int64_t n = KILN_WINOGRAD_TILE * rows + KILN_WINOGRAD_WINDOW - KILN_WINOGRAD_TILE;
    float *planes = round->planes + round->pieces[piece].plane_row * p->pitch;
    for (int64_t y = 0; rows > 0 && y < n; y++) {
        int64_t from = KILN_WINOGRAD_TILE * first + y - c->pad[1];
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
transform_channels(const Round *round, int64_t first, int64_t end)
{
    const Plan *p = round->plan;
    for (int64_t channel = first; channel < end; channel++) {
        for (int i = 0; i < 2; i++)
            split_channel(round, i, channel);
        KilnWinogradInput in = { .in = round->planes,
                                 .at = round->places,
                                 .plane = p->plane,
                                 .pitch = p->pitch,
                                 .n = round_up(round->tiles, LINE),
                                 .out = round->v + channel * p->tiles,
                                 .out_pitch = p->v_point };
        p->kernels->input(&in);
    }
}

/* Columns of V and M that panel @panel of output channels has in a round. */
static int64_t
columns_of(const Round *round, int64_t panel)
{
    bool rest = panel >= round->first_panel && panel < round->end_panel;
    return rest ? round->tiles : round->own;
}

/* The products of a panel of output channels at one point, with its weights @a, to @out. */
static void
panel_products(const Round *round, const float *a, int64_t panel, int64_t point, float *out)
{
    const Plan *p = round->plan;
    const KilnCpuConv *c = p->conv;
    const float *b = round->v + point * p->v_point;
    int64_t rows = panel_start(p, panel + 1) - panel_start(p, panel);
    int64_t columns = columns_of(round, panel);
    for (int64_t k = 0; k < c->ic; k += KILN_GEMM_MAX_DEPTH) {
        int64_t left = c->ic - k, depth = left < KILN_GEMM_MAX_DEPTH ? left : KILN_GEMM_MAX_DEPTH;
        for (int64_t i = 0, cols; i < columns; i += cols) {
            cols = kiln_gemm_step(p->gemm, columns - i);
            const float *panel_a = a + k * rows;
            KilnGemmTile tile = { .a = panel_a,
                                  .b = b + k * p->tiles + i,
                                  .soon = panel_a + (i ? 0 : depth * rows),
                                  .out = out + i,
                                  .depth = depth,
                                  .b_pitch = p->tiles,
                                  .out_pitch = p->tiles,
                                  .rows = rows,
                                  .cols = cols,
                                  .first = k == 0,
                                  .alpha = 1.0f,
                                  .lo = -INFINITY,
                                  .hi = INFINITY };
            p->gemm->sums(&tile);
        }
    }
}

/* A channel's results of a piece, from the finished planes to its rows of the image. */
static void
store_tiles(const Round *round, int piece, int64_t channel)
{
    const Plan *p = round->plan;
    const KilnCpuConv *c = p->conv;
    const Piece *s = &round->pieces[piece];
    float *out = round->args->out + round->image * kiln_conv_out_image(c, round->args);
    const float *residual = round->args->residual;
    if (residual)
        residual += round->image * kiln_conv_residual_image(c, round->args);
    for (int64_t at = s->first; at < s->end;) {
        int64_t ty = at / p->tiles_x, tx = at % p->tiles_x;
        int64_t next = (ty + 1) * p->tiles_x < s->end ? (ty + 1) * p->tiles_x : s->end;
        int64_t x = KILN_WINOGRAD_TILE * tx, end_x = KILN_WINOGRAD_TILE * (next - ty * p->tiles_x);
        int64_t width = (end_x < p->width ? end_x : p->width) - x;
        for (int r = 0; r < KILN_WINOGRAD_TILE && KILN_WINOGRAD_TILE * ty + r < p->height; r++) {
            int64_t row = (channel * p->height + KILN_WINOGRAD_TILE * ty + r) * p->width + x;
            KilnWinogradStore store = { .row = out + row,
                                        .planes = round->planes + 4 * r * p->tiles + s->column +
                                                  at - s->first,
                                        .residual = residual ? residual + row : NULL,
                                        .soon = channel + 1 < c->oc ? p->height * p->width : 0,
                                        .plane = p->tiles,
                                        .width = width,
                                        .lo = c->tail.lo,
                                        .hi = c->tail.hi };
            p->kernels->store(&store);
            kiln_cpu_tail_activate(&c->tail, out + row, width);
        }
        at = next;
    }
}

/* An output channel, from its @n sums of each point at @m to its tiles of the image. */
static void
finish_channel(const Round *round, int64_t channel, const float *m, int64_t n)
{
    const Plan *p = round->plan;
    const KilnCpuTail *tail = &p->conv->tail;
    bool clips = !round->args->residual; /* what is added later is clipped later */
    KilnWinogradOutput out = { .in = m,
                               .in_pitch = p->m_point,
                               .n = n,
                               .out = round->planes,
                               .out_pitch = p->tiles,
                               .bias = round->args->bias ? round->args->bias[channel] : 0.0f,
                               .lo = clips ? tail->lo : -INFINITY,
                               .hi = clips ? tail->hi : INFINITY };
    p->kernels->output(&out);
    store_tiles(round, 0, channel);
    if (n > round->own)
        store_tiles(round, 1, channel);
}

/* A group of output channels, from V to its tiles of the image. */
static void
compute_group(const Round *round, int64_t group)
{
    const Plan *p = round->plan;
    const float *weights = round->args->weights;
    int64_t first_panel = group_start(p, group), end_panel = group_start(p, group + 1);
    int64_t first = panel_start(p, first_panel), packed = group * p->packed_groups / p->groups;
    for (int64_t point = 0; point < POINTS; point++) {
        for (int64_t panel = first_panel; panel < end_panel; panel++) {
            const float *a = weights + panel_weights(p, packed, point, panel);
            panel_products(round, a, panel, point,
                           round->m + point * p->m_point +
                               (panel_start(p, panel) - first) * p->tiles);
        }
    }
    for (int64_t panel = first_panel; panel < end_panel; panel++) {
        for (int64_t channel = panel_start(p, panel); channel < panel_start(p, panel + 1);
             channel++)
            finish_channel(round, channel, round->m + (channel - first) * p->tiles,
                           columns_of(round, panel));
    }
}

typedef struct {
    const Plan *plan;
    const KilnCpuConvArgs *args;
} Run;

/* Round @number of all images: parts of an image follow each other, and rounds of a part. */
static void
round_task(const void *data, int64_t number, int thread)
{
    const Run *run = data;
    const Plan *p = run->plan;
    Round round = round_of(p, run->args, number / p->rounds % p->parts, number % p->rounds, thread);
    round.image = number / p->rounds / p->parts;
    transform_channels(&round, 0, p->conv->ic);
    for (int64_t i = 0; i < p->groups; i++)
        compute_group(&round, i);
}

/* What a thread needs for its share of a round: M and planes of its own. */
static Round
share_of(const Round *round, int thread)
{
    Layout layout = layout_of(round->plan);
    Round share = *round;
    float *scratch = round->args->scratch + thread * layout.end;
    share.m = scratch + layout.m;
    share.planes = scratch + layout.planes;
    return share;
}

static void
transform_task(const void *data, int64_t task, int thread)
{
    Round share = share_of(data, thread);
    int64_t first = task * CHANNELS_PER_TASK, end = first + CHANNELS_PER_TASK,
            ic = share.plan->conv->ic;
    transform_channels(&share, first, end < ic ? end : ic);
}

static void
group_task(const void *data, int64_t group, int thread)
{
    Round share = share_of(data, thread);
    compute_group(&share, group);
}

static void
share_images(const Plan *p, const KilnCpuConvArgs *args)
{
    for (int64_t i = 0; i < p->conv->batch * p->rounds; i++) {
        Round round = round_of(p, args, 0, i % p->rounds, 0);
        round.image = i / p->rounds;
        kiln_cpu_parallel(ceil_div(p->conv->ic, CHANNELS_PER_TASK), args->threads, transform_task,
                          &round);
        kiln_cpu_parallel(p->groups, args->threads, group_task, &round);
    }
}

/* The only round of a part of an image. */
typedef struct {
    KilnWord transformed; /* 1: V is there, and @round says of what */
    Round round;
} Part;

typedef struct {
    Run run;
    Part *parts; /* of all images */
} Parts;

/* Of each part first its V, in the scratch of the thread that has the part's number, then its
 * groups of output channels one by one, by whoever has time. */
static void
part_task(const void *data, int64_t task, int thread)
{
    const Parts *parts = data;
    const Plan *p = parts->run.plan;
    int64_t number = task / (1 + p->groups), step = task % (1 + p->groups);
    Part *part = &parts->parts[number];
    if (step > 0) {
        kiln_word_await(&part->transformed, 0);
        Round share = share_of(&part->round, thread);
        compute_group(&share, step - 1);
        return;
    }
    part->round = round_of(p, parts->run.args, number % p->parts, 0, (int)number);
    part->round.image = number / p->parts;
    Round share = share_of(&part->round, thread);
    transform_channels(&share, 0, p->conv->ic);
    kiln_word_set(&part->transformed, 1);
}

void
kiln_winograd_run(const KilnCpuConv *c, const KilnCpuConvArgs *args)
{
    Plan p = plan_of(c, args->threads);
    Run run = { &p, args };
    int64_t parts = c->batch * p.parts;
    if (p.shared) {
        share_images(&p, args);
    } else if (p.rounds == 1 && parts == args->threads && parts > 1 && parts <= KILN_TEAM_SHARES) {
        Part list[KILN_TEAM_SHARES];
        for (int64_t i = 0; i < parts; i++)
            list[i].transformed = (KilnWord){ 0 };
        Parts all = { run, list };
        kiln_cpu_parallel(parts * (1 + p.groups), args->threads, part_task, &all);
    } else {
        kiln_cpu_parallel(parts * p.rounds, args->threads, round_task, &run);
    }
}

/* --- the model --- */

void
kiln_winograd_terms(const KilnCpuConv *c, double terms[KILN_CPU_TERMS])
{
    Plan p = plan_of(c, 1);
    double rounds = (double)p.rounds * (double)c->batch;
    double tiles = (double)LINE * (double)p.vectors * (double)c->batch;
    double narrow = (double)LINE / (double)p.gemm->vector;
    int64_t of_image = p.tiles_y * p.tiles_x;
    of_image -= kiln_gemm_has_edge(c->oc, of_image, p.gemm->vector);
    KilnGemmShape product = {
        .isa = c->isa, .rows = c->oc, .cols = ceil_div(of_image, p.rounds), .depth = c->ic
    };
    terms[0] = POINTS * rounds * kiln_gemm_cost(&product);
    terms[1] = narrow * tiles * (double)c->ic;
    terms[2] = narrow * tiles * (double)c->oc;
    terms[3] = rounds * 4 * POINTS * (double)c->ic * (double)c->oc;
    terms[4] = 1;
    terms[5] = 0;
}
