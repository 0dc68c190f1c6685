/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution as an implicit matrix product: weights [oc, ic * taps] times the image seen as
 * [ic * taps, positions], whose panels the blocked core gathers as it goes. A kernel of one tap
 * that visits every position needs no gathering at all. Depthwise convolutions have their own file,
 * and so have those whose images are small beside the window or beside the weights, which are a
 * product for each tap.
 *
 * Images are taken in rounds, as many as keep their halo copies within a budget. */
#include "backends/cpu/conv/conv.h"

#include "backends/cpu/conv/conv_careful.h"
#include "backends/cpu/conv/conv_depthwise.h"
#include "backends/cpu/conv/conv_halo.h"
#include "backends/cpu/conv/conv_taps.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/gemm/gemm_core.h"
#include "backends/cpu/gemm/gemm_pack.h"
#include "backends/cpu/gemm/gemm_plan.h"
#include "backends/cpu/parallel.h"

#include <stddef.h>
#include <string.h>

enum {
    ROUND_FLOATS = 1 << 20, /* halo copies of one round, if it has several images */
    COPY_TASKS = 16,
};

/* The convolution as a product, and where its parts of scratch lie. */
typedef struct {
    const KilnCpuConv *conv;
    KilnHalo halo;
    int64_t positions, depth;
    int64_t round;  /* images at a time */
    bool swapped;   /* positions are rows, channels are vectorised */
    bool pointwise; /* one tap, every position: the image is a plain matrix */
} Product;

static KilnGemmShape
shape_of(const Product *p, int64_t images, bool swapped)
{
    const KilnCpuConv *c = p->conv;
    int64_t channels = c->oc / c->groups;
    return (KilnGemmShape){ .isa = c->isa,
                            .rows = swapped ? p->positions : channels,
                            .cols = swapped ? channels : p->positions,
                            .depth = p->depth,
                            .batch = images * c->groups,
                            .rows_packed = !swapped && c->weights_packed,
                            .cols_packed = swapped && c->weights_packed,
                            .staged = swapped && p->positions != 1,
                            .residual = c->tail.residual };
}

static Product
product_of(const KilnCpuConv *c)
{
    Product p = { .conv = c, .halo = kiln_halo_of(c), .positions = times3(c->out) };
    p.depth = c->ic / c->groups * times3(c->kernel);
    p.pointwise = p.halo.direct && times3(c->kernel) == 1 && times3(c->in) == p.positions;
    KilnGemmShape straight = shape_of(&p, 1, false), swapped = shape_of(&p, 1, true);
    p.swapped = kiln_gemm_cost(&swapped) < kiln_gemm_cost(&straight);
    if (c->weights_packed && c->form != KILN_CONV_BEST)
        p.swapped = c->form == KILN_CONV_TURNED;
    p.round = c->batch;
    int64_t image;
    if (!p.halo.direct) {
        if (__builtin_mul_overflow(p.halo.plane, c->ic, &image))
            image = ROUND_FLOATS;
        p.round = image > 0 ? ROUND_FLOATS / image : c->batch;
        if (p.round > c->batch)
            p.round = c->batch;
        if (p.round < 1)
            p.round = 1;
    }
    return p;
}

static KilnGemmPlan
plan_of(const Product *p, int64_t images)
{
    KilnGemmShape shape = shape_of(p, images, p->swapped);
    return kiln_gemm_plan(&shape);
}

static int64_t
offsets_bytes(const Product *p)
{
    return p->pointwise ? 0 : round_up(p->depth * 8, KILN_CPU_LINE);
}

/* In units of kiln_gemm_cost(): a float of weights that comes from beyond the second-level cache,
   and one that is gathered for the product. */
static const double weight_float = 0.6, gather_float = 1.5;

/* By how much products of taps must be faster. */
static const double taps_margin = 0.9;

/* Whether products of taps are the fastest. */
static bool
prefers_taps(const KilnCpuConv *c)
{
    if (!kiln_conv_taps_supports(c))
        return false;
    Product p = product_of(c);
    KilnGemmShape shape = shape_of(&p, 1, p.swapped);
    double images = (double)c->batch * (double)c->groups;
    double depth = (double)p.depth, floats = (double)(c->oc / c->groups) * depth;
    double product = images * (kiln_gemm_cost(&shape) + weight_float * floats);
    if (!p.pointwise)
        product += gather_float * images * depth * (double)p.positions;
    KilnTapsCost taps = kiln_conv_taps_cost(c);
    double by_taps = taps.all + weight_float * taps.bytes / 4;
    return taps.bytes > 0 && by_taps < taps_margin * product;
}

/* Whether products of taps are to compute @c. */
static bool
is_by_taps(const KilnCpuConv *c)
{
    if (c->form != KILN_CONV_BEST)
        return c->weights_packed && c->form == KILN_CONV_TAPS;
    return prefers_taps(c);
}

KilnConvForm
kiln_cpu_conv_best_form(const KilnCpuConv *conv)
{
    KilnCpuConv c = *conv;
    c.form = KILN_CONV_BEST;
    if (kiln_conv_is_depthwise(&c))
        return KILN_CONV_STRAIGHT; /* the only one */
    if (prefers_taps(&c))
        return KILN_CONV_TAPS;
    return product_of(&c).swapped ? KILN_CONV_TURNED : KILN_CONV_STRAIGHT;
}

/* Bytes of the halo copies of one round; false when no number can say it. */
static bool
halo_bytes(const Product *p, int64_t *bytes)
{
    *bytes = 0;
    if (p->halo.direct)
        return true;
    return !__builtin_mul_overflow(p->halo.plane, p->conv->ic, bytes) &&
           !__builtin_mul_overflow(*bytes, p->round * 4, bytes) &&
           !__builtin_add_overflow(*bytes, 63, bytes) && ((*bytes &= ~(int64_t)63), true);
}

/* --- weights that are not finite --- */

/* Packed weights of a group, and behind those of all groups a number per panel, where padding may
 * be read: 1 where a weight of it is not finite. */
typedef struct {
    Product product;
    KilnGemmPlan plan;
    const KilnGemmCut *cut; /* of @plan */
    int64_t group;          /* floats */
    const char *base;       /* of packed weights, or of plain ones */
} Weights;

static void
set_weights(Weights *weights, const KilnCpuConv *conv, const void *base)
{
    weights->product = product_of(conv);
    weights->plan = plan_of(&weights->product, 1);
    weights->cut = weights->product.swapped ? &weights->plan.cols : &weights->plan.rows;
    weights->group = kiln_gemm_packed_floats(&weights->plan, weights->cut);
    weights->base = base;
}

static int64_t
marks_bytes(const KilnCpuConv *conv, const Weights *weights)
{
    return conv->pads ? round_up(4 * conv->groups * weights->cut->panels, KILN_CPU_LINE) : 0;
}

static uint32_t *
marks_of(const KilnCpuConv *conv, const Weights *weights)
{
    return (uint32_t *)(void *)((char *)weights->base + 4 * conv->groups * weights->group);
}

/* Of one panel of group @g, which is packed. */
static void
mark_panel(const KilnCpuConv *conv, const Weights *weights, int64_t g, int64_t index)
{
    const KilnGemmPlan *plan = &weights->plan;
    KilnGemmPanel panel = kiln_gemm_panel(plan, weights->cut, index);
    bool finite = true;
    for (int64_t k = 0; k < plan->depth; k += plan->depth_block) {
        KilnGemmDepth depth = kiln_gemm_depth(plan, k);
        const char *at = weights->base + 4 * g * weights->group +
                         kiln_gemm_packed_offset(weights->cut, &panel, depth);
        finite &= kiln_all_finite(at, depth.size * panel.pitch);
    }
    marks_of(conv, weights)[g * weights->cut->panels + index] = !finite;
}

static void
mark(const KilnCpuConv *conv, float *packed, KilnSlice slice)
{
    Weights weights;
    set_weights(&weights, conv, packed);
    int64_t panels = weights.cut->panels, end = kiln_slice_end(slice, panels);
    for (int64_t g = 0; g < conv->groups && conv->pads; g++) {
        for (int64_t i = kiln_slice_begin(slice, panels); i < end; i++)
            mark_panel(conv, &weights, g, i);
    }
}

static float
packed_weight(const void *data, int64_t oc, int64_t ic, int64_t tap)
{
    const Weights *weights = data;
    const KilnCpuConv *c = weights->product.conv;
    int64_t channels = c->oc / c->groups, row = oc % channels, k = ic * times3(c->kernel) + tap;
    int64_t index = 0;
    KilnGemmPanel panel = kiln_gemm_panel(&weights->plan, weights->cut, index);
    while (row >= panel.start + panel.extent)
        panel = kiln_gemm_panel(&weights->plan, weights->cut, ++index);
    KilnGemmDepth depth =
        kiln_gemm_depth(&weights->plan, k / weights->plan.depth_block * weights->plan.depth_block);
    const float *at =
        (const float *)(const void *)(weights->base + 4 * (oc / channels) * weights->group +
                                      kiln_gemm_packed_offset(weights->cut, &panel, depth));
    return at[(k - depth.start) * panel.pitch + row - panel.start];
}

static float
plain_weight(const void *data, int64_t oc, int64_t ic, int64_t tap)
{
    const Weights *weights = data;
    const KilnCpuConv *c = weights->product.conv;
    float value;
    memcpy(&value, weights->base + 4 * ((oc * (c->ic / c->groups) + ic) * times3(c->kernel) + tap),
           sizeof value);
    return value;
}

static bool
has_mark(const KilnCpuConv *conv, const Weights *weights)
{
    if (!conv->weights_packed)
        return !kiln_all_finite(weights->base,
                                conv->oc * (conv->ic / conv->groups) * times3(conv->kernel));
    if (!conv->pads)
        return !kiln_all_finite(weights->base, conv->groups * weights->group);
    const uint32_t *marks = marks_of(conv, weights);
    uint32_t any = 0;
    for (int64_t i = 0; i < conv->groups * weights->cut->panels; i++)
        any |= marks[i];
    return any;
}

/* False where the fast way is right. */
static bool
run_carefully(const KilnCpuConv *conv, const KilnCpuConvArgs *args)
{
    if (!kiln_conv_reads_padding(conv))
        return false;
    Weights weights;
    set_weights(&weights, conv, args->weights);
    if (!has_mark(conv, &weights))
        return false;
    KilnConvWeights reader = { conv->weights_packed ? packed_weight : plain_weight, &weights };
    kiln_conv_careful_run(conv, args, &reader);
    return true;
}

int64_t
kiln_cpu_conv_pack_size(const KilnCpuConv *conv)
{
    if (kiln_conv_is_depthwise(conv))
        return 4 * conv->oc * times3(conv->kernel);
    if (is_by_taps(conv))
        return kiln_conv_taps_pack_size(conv);
    Weights weights;
    set_weights(&weights, conv, NULL);
    return 4 * conv->groups * weights.group + marks_bytes(conv, &weights);
}

void
kiln_cpu_conv_pack(const KilnCpuConv *conv, const void *src, float *dst, KilnSlice slice)
{
    if (kiln_conv_is_depthwise(conv)) {
        kiln_conv_depthwise_pack(conv, src, dst, slice);
        return;
    }
    if (is_by_taps(conv)) {
        kiln_conv_taps_pack(conv, src, dst, slice);
        return;
    }
    Product p = product_of(conv);
    KilnGemmPlan plan = plan_of(&p, 1);
    const KilnGemmCut *cut = p.swapped ? &plan.cols : &plan.rows;
    KilnGemmSide side = { .kind = KILN_GEMM_STRIDED, .stride_i = p.depth, .stride_k = 1 };
    for (int64_t g = 0; g < conv->groups; g++) {
        side.base = (const char *)src + 4 * g * (conv->oc / conv->groups) * p.depth;
        kiln_gemm_pack_side(&plan, cut, &side, slice,
                            dst + g * kiln_gemm_packed_floats(&plan, cut));
    }
    mark(conv, dst, slice);
}

int64_t
kiln_cpu_conv_scratch_size(const KilnCpuConv *conv, int threads)
{
    if (kiln_conv_is_depthwise(conv))
        return kiln_conv_depthwise_scratch_size(conv, threads);
    if (is_by_taps(conv))
        return kiln_conv_taps_scratch_size(conv);
    Product p = product_of(conv);
    int64_t halo, total, rest = p.round > 0 ? conv->batch % p.round : 0;
    KilnGemmPlan full = plan_of(&p, p.round), last = plan_of(&p, rest);
    int64_t product = kiln_gemm_scratch_size(&full, threads);
    int64_t of_last = kiln_gemm_scratch_size(&last, threads);
    if (of_last > product)
        product = of_last;
    if (!halo_bytes(&p, &halo) || __builtin_add_overflow(halo, offsets_bytes(&p) + product, &total))
        return INT64_MAX;
    return total;
}

/* --- the model --- */

static double
elements(int64_t batch, int64_t channels, const int64_t extent[3])
{
    return (double)batch * (double)channels * (double)extent[0] * (double)extent[1] *
           (double)extent[2];
}

KilnCpuCostKind
kiln_direct_terms(const KilnCpuConv *conv, double terms[KILN_CPU_TERMS])
{
    if (kiln_conv_is_depthwise(conv)) {
        kiln_depthwise_terms(conv, terms);
        return KILN_CPU_COST_depthwise;
    }
    if (is_by_taps(conv)) {
        KilnTapsCost taps = kiln_conv_taps_cost(conv);
        terms[0] = taps.products;
        terms[1] = taps.all - taps.products;
        terms[2] = taps.bytes;
        terms[3] = 1;
        terms[4] = terms[5] = 0;
        return KILN_CPU_COST_taps;
    }
    Product p = product_of(conv);
    KilnGemmShape shape = shape_of(&p, conv->batch, p.swapped);
    terms[0] = (double)shape.batch * kiln_gemm_cost(&shape);
    terms[1] = 4 * (elements(conv->batch, conv->ic, conv->in) +
                    elements(conv->batch, conv->oc, conv->out) +
                    elements(conv->oc, conv->ic / conv->groups, conv->kernel));
    terms[2] = 1;
    for (int i = 3; i < KILN_CPU_TERMS; i++)
        terms[i] = 0;
    return times3(conv->kernel) == 1 ? KILN_CPU_COST_pointwise : KILN_CPU_COST_direct;
}

/* Offset in the image of every step of depth: channels outermost, as in the weights. */
static void
fill_offsets(const Product *p, int64_t *offsets)
{
    const KilnCpuConv *c = p->conv;
    int64_t taps = times3(c->kernel), t[3];
    for (int64_t i = 0; i < taps && i < p->depth; i++) {
        t[0] = i / (c->kernel[1] * c->kernel[2]);
        t[1] = i / c->kernel[2] % c->kernel[1];
        t[2] = i % c->kernel[2];
        offsets[i] = kiln_halo_tap(c, &p->halo, t);
    }
    for (int64_t i = taps; i < p->depth; i++)
        offsets[i] = offsets[i - taps] + p->halo.plane;
}

typedef struct {
    const Product *product;
    const float *in;
    float *halo;
    int64_t rows;  /* of all planes of the round */
    int64_t image; /* floats from one image to the next */
} CopyJob;

static void
copy_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const CopyJob *job = data;
    const Product *p = job->product;
    int64_t plane_rows = kiln_halo_rows(&p->halo), plane_in = times3(p->conv->in);
    int64_t row = task * job->rows / COPY_TASKS, end = (task + 1) * job->rows / COPY_TASKS;
    while (row < end) {
        int64_t plane = row / plane_rows, start = plane * plane_rows;
        int64_t stop = end < start + plane_rows ? end : start + plane_rows;
        int64_t from = plane / p->conv->ic * job->image + plane % p->conv->ic * plane_in;
        KilnHaloCopy copy = { .in = job->in + from,
                              .plane = job->halo + plane * p->halo.plane,
                              .first = row - start,
                              .end = stop - start };
        kiln_halo_copy(p->conv, &p->halo, &copy);
        row = stop;
    }
}

static KilnGemmSide
image_side(const Product *p, const float *image, const int64_t *offsets)
{
    const KilnCpuConv *c = p->conv;
    KilnGemmSide side = { .base = image };
    if (p->pointwise) {
        side.kind = KILN_GEMM_STRIDED;
        side.stride_i = 1;
        side.stride_k = p->halo.plane;
        return side;
    }
    side.kind = KILN_GEMM_IMAGE;
    side.image = (KilnGemmImage){ .offsets = offsets,
                                  .out = { c->out[0], c->out[1], c->out[2] },
                                  .pitch = { p->halo.pitch[0], p->halo.pitch[1] },
                                  .channel_pitch = p->halo.plane };
    KilnGemmImage *i = &side.image;
    if (i->pitch[1] == i->out[2]) { /* rows follow each other: one long row */
        i->out[2] *= i->out[1];
        i->out[1] = 1;
        i->pitch[1] = i->pitch[0];
    }
    return side;
}

/* Dims images × groups of the batched product. */
static KilnGemmBatch
batch_of(const Product *p, const KilnGemmPlan *plan, const KilnCpuConvArgs *args, int64_t images)
{
    const KilnCpuConv *c = p->conv;
    int64_t channels = c->oc / c->groups, weights = channels * p->depth;
    if (c->weights_packed)
        weights = kiln_gemm_packed_floats(plan, p->swapped ? &plan->cols : &plan->rows);
    int64_t image[2] = { c->ic * p->halo.plane, c->ic / c->groups * p->halo.plane };
    if (p->halo.direct)
        image[0] = kiln_conv_in_image(c, args);
    KilnGemmBatch b = { .rank = 2,
                        .dims = { images, c->groups },
                        .out = { kiln_conv_out_image(c, args), channels * p->positions },
                        .bias = { 0, channels },
                        .residual = { kiln_conv_residual_image(c, args),
                                      channels * p->positions } };
    for (int d = 0; d < 2; d++) {
        b.rows[d] = p->swapped ? image[d] : d * weights;
        b.cols[d] = p->swapped ? d * weights : image[d];
    }
    return b;
}

static void
run_round(const Product *p, const KilnCpuConvArgs *args, int64_t first, int64_t images)
{
    const KilnCpuConv *c = p->conv;
    KilnGemmPlan plan = plan_of(p, images);
    int64_t halo_size = 0;
    halo_bytes(p, &halo_size);
    int64_t *offsets = (int64_t *)(void *)args->scratch;
    float *halo = args->scratch + offsets_bytes(p) / 4;
    int64_t in_image = kiln_conv_in_image(c, args);
    const float *in = args->in + first * in_image;
    if (!p->halo.direct) {
        CopyJob job = { p, in, halo, images * c->ic * kiln_halo_rows(&p->halo), in_image };
        kiln_cpu_parallel(COPY_TASKS, args->threads, copy_task, &job);
    }
    KilnGemmSide image = image_side(p, p->halo.direct ? in : halo, offsets);
    KilnGemmSide weights = { .kind = c->weights_packed ? KILN_GEMM_PACKED : KILN_GEMM_STRIDED,
                             .base = args->weights,
                             .stride_i = p->depth,
                             .stride_k = 1 };
    int64_t residual_at = first * kiln_conv_residual_image(c, args);
    KilnGemmCall call = { .plan = &plan,
                          .rows = p->swapped ? image : weights,
                          .cols = p->swapped ? weights : image,
                          .out = args->out + first * kiln_conv_out_image(c, args),
                          .out_row = p->swapped ? 1 : p->positions,
                          .out_col = p->swapped ? p->positions : 1,
                          .bias = args->bias,
                          .bias_row = p->swapped ? 0 : 1,
                          .bias_col = p->swapped ? 1 : 0,
                          .residual = args->residual ? args->residual + residual_at : NULL,
                          .alpha = 1.0f,
                          .beta = 1.0f,
                          .tail = c->tail,
                          .batch = batch_of(p, &plan, args, images),
                          .scratch = halo + halo_size / 4,
                          .threads = args->threads };
    kiln_gemm_run(&call);
}

void
kiln_cpu_conv_run(const KilnCpuConv *conv, const KilnCpuConvArgs *args)
{
    if (kiln_conv_is_depthwise(conv)) {
        kiln_conv_depthwise_run(conv, args);
        return;
    }
    if (conv->batch == 0 || conv->oc == 0 || times3(conv->out) == 0)
        return;
    if (is_by_taps(conv)) {
        kiln_conv_taps_run(conv, args);
        return;
    }
    if (run_carefully(conv, args))
        return;
    Product p = product_of(conv);
    if (!p.pointwise)
        fill_offsets(&p, (int64_t *)(void *)args->scratch);
    for (int64_t first = 0; first < conv->batch; first += p.round) {
        int64_t left = conv->batch - first;
        run_round(&p, args, first, left < p.round ? left : p.round);
    }
}
