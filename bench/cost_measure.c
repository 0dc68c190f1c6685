/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cost_measure.h"

#include "bench/bench_case.h"
#include "bench/bench_side.h"
#include "bench/cost_vendor.h"
#include "kiln.h"

#include <math.h>

enum {
    SWEEPS = 3, /* over all shapes: what disturbs one does not last that long */
};

/* --- what is measured --- */

/* Of what has no pictures; NULL where own kernels lack it. */
static char *
line_of_rows(const Shape *shape)
{
    int rows = shape->extent, in = shape->in, out = shape->out;
    g_autofree char *x = g_strdup_printf("@in @x: f32[%d,%d]", rows, in);
    switch (shape->kind) {
    case SHAPE_MATMUL:
        return g_strdup_printf("matmul @out @y: f32[%d,%d], %s, @in @w: f32[%d,%d] const", rows,
                               out, x, in, out);
    case SHAPE_SOFTMAX:
        return g_strdup_printf("softmax @out @y: f32[%d,%d], %s {axis=1}", rows, in, x);
    case SHAPE_LAYER_NORMALIZATION:
        return g_strdup_printf("layer_normalization @out @y: f32[%d,%d], %s, @in @s: f32[%d] "
                               "const, @in @b: f32[%d] const {axis=1}",
                               rows, in, x, in, in);
    case SHAPE_REDUCTION:
        return g_strdup_printf("reduce_mean @out @y: f32[%d,1], %s {axes=[1]}", rows, x);
    case SHAPE_LSTM:
        return g_strdup_printf(
            "lstm @out @y: f32[%d,1,1,%d], _, _, @in @x: f32[%d,1,%d], @in @w: f32[1,%d,%d] "
            "const, @in @r: f32[1,%d,%d] const, @in @b: f32[1,%d] const {hidden_size=%d}",
            rows, out, rows, in, 4 * out, in, 4 * out, out, 8 * out, out);
    default:
        return NULL;
    }
}

/* A convolution of one tap with what follows it, or without. */
static char *
line_of_tail(const Shape *shape, const char *types, bool bare)
{
    bool add = shape->kind == SHAPE_TAIL_ADD && !bare;
    g_autofree char *residual = add ? g_strdup_printf(", _, @in @r: f32[1,%d,%d,%d]", shape->out,
                                                      shape->extent, shape->extent)
                                    : g_strdup("");
    return g_strdup_printf("conv %s, @in @w: f32[%d,%d,1,1] const%s%s", types, shape->out,
                           shape->in, residual,
                           bare || add ? "" : " {activation=\"swish\", activation_params=[1]}");
}

/* Of what works on pictures as they are. */
static char *
line_of_values(const Shape *shape)
{
    g_autofree char *type =
        g_strdup_printf("f32[1,%d,%d,%d]", shape->in, shape->extent, shape->extent);
    switch (shape->kind) {
    case SHAPE_REORDER:
        return g_strdup_printf("transpose @out @y: f32[1,%d,%d,%d], @in @x: %s {perm=[0,2,3,1]}",
                               shape->extent, shape->extent, shape->in, type);
    case SHAPE_ADD:
        return g_strdup_printf("add @out @y: %s, @in @x: %s, @in @z: %s", type, type, type);
    case SHAPE_SIGMOID:
    case SHAPE_SWISH:
        return g_strdup_printf("%s @out @y: %s, @in @x: %s", cost_shape_kind(shape->kind), type,
                               type);
    default:
        return line_of_rows(shape);
    }
}

/* The instruction of @shape as a case, of a difference also what it is more than; NULL where own
 * kernels have no such way. */
static char *
line_of(const Shape *shape, ShapeWay way, bool bare)
{
    int half = cost_shape_pad(shape), y = cost_shape_result(shape), in = shape->in,
        out = shape->out;
    bool winograd = shape->kind == SHAPE_CONV && shape->kernel == 3 && shape->stride == 1;
    if (way == WAY_WINOGRAD && !winograd)
        return NULL;
    g_autofree char *types = g_strdup_printf("@out @y: f32[1,%d,%d,%d], @in @x: f32[1,%d,%d,%d]",
                                             out, y, y, in, shape->extent, shape->extent);
    switch (shape->kind) {
    case SHAPE_CONV:
    case SHAPE_DEPTHWISE: {
        bool depthwise = shape->kind == SHAPE_DEPTHWISE;
        return g_strdup_printf(
            "conv %s, @in @w: f32[%d,%d,%d,%d] const {group=%d, pads=[%d,%d,%d,%d], "
            "strides=[%d,%d], algorithm=\"%s\"}",
            types, out, depthwise ? 1 : in, shape->kernel, shape->kernel, depthwise ? in : 1, half,
            half, half, half, shape->stride, shape->stride, cost_shape_way(way));
    }
    case SHAPE_CONV_TRANSPOSE:
        return g_strdup_printf(
            "conv_transpose %s, @in @w: f32[%d,%d,%d,%d] const {strides=[%d,%d]}", types, in, out,
            shape->kernel, shape->kernel, shape->stride, shape->stride);
    case SHAPE_MAX_POOL:
        return g_strdup_printf(
            "max_pool %s {kernel_shape=[%d,%d], pads=[%d,%d,%d,%d], strides=[%d,%d]}", types,
            shape->kernel, shape->kernel, half, half, half, half, shape->stride, shape->stride);
    case SHAPE_GLOBAL_AVERAGE_POOL:
        return g_strdup_printf("global_average_pool %s", types);
    case SHAPE_TAIL_ADD:
    case SHAPE_TAIL_SWISH:
        return line_of_tail(shape, types, bare);
    default:
        return line_of_values(shape);
    }
}

static bool
run_side(void *data)
{
    return kiln_session_run(((BenchSide *)data)->session, NULL);
}

static gboolean
measure_own(Shape *shape, ShapeWay way, double min_time, GError **error)
{
    BenchSide sides[2] = { { .program = NULL }, { .program = NULL } };
    int n_sides = cost_shape_is_difference(shape->kind) ? 2 : 1;
    gboolean good = TRUE, has = TRUE;
    for (int i = 0; good && i < n_sides; i++) {
        g_autofree char *line = line_of(shape, way, i == 1);
        g_autoptr(BenchCase) one = line ? bench_case_new(line, error) : NULL;
        has = line != NULL;
        good = one && bench_side_open(&sides[i], one->model, "cpu", 1, error);
    }
    if (good)
        shape->us[way] =
            cost_shape_time(shape, run_side, &sides[0], n_sides > 1 ? &sides[1] : NULL, min_time);
    for (int i = 0; i < n_sides; i++)
        bench_side_clear(&sides[i]);
    return good || !has;
}

/* Shape number @at, whose least times so far are kept. The least of several differences would be
 * that of the worst base: they are measured once, for longer. */
static gboolean
measure(GArray *shapes, guint at, Shape shape, double min_time, GError **error)
{
    bool difference = cost_shape_is_difference(shape.kind);
    if (difference && at < shapes->len)
        return TRUE;
    min_time = difference ? min_time : min_time / SWEEPS;
    for (int way = WAY_DIRECT; way < WAY_LAST; way++) {
        if (!measure_own(&shape, (ShapeWay)way, min_time, error))
            return FALSE;
    }
    shape.us[WAY_LAST] = cost_vendor_us(&shape, false, min_time);
    if (cost_shape_has_layouts(shape.kind))
        shape.us[WAY_BLOCKED] = cost_vendor_us(&shape, true, min_time);
    for (int way = 0; way < N_WAYS; way++)
        shape.us[way] = round(shape.us[way] * 100) / 100; /* as written to disk */
    if (at == shapes->len) {
        g_array_append_val(shapes, shape);
        return TRUE;
    }
    Shape *before = &g_array_index(shapes, Shape, at);
    for (int way = 0; way < N_WAYS; way++)
        before->us[way] = MIN(before->us[way], shape.us[way]);
    return TRUE;
}

typedef struct {
    Shape like;
    const int (*channels)[2];
    size_t n;
    const int *extents; /* 0 ends them */
} Set;

/* Of a sweep over all shapes: how many were seen, and measured. */
typedef struct {
    guint seen, measured;
} Sweep;

/* All channels and extents of @set that are worth their time, and in the part that is wanted. */
static gboolean
measure_set(GArray *shapes, Sweep *sweep, const Set *set, const CostMeasure *how, GError **error)
{
    const double most = 2e9; /* operations: what is bigger takes long and says nothing new */
    for (size_t c = 0; c < set->n; c++) {
        for (const int *extent = set->extents; *extent; extent++) {
            Shape shape = set->like;
            shape.in = set->channels[c][0];
            shape.out = set->channels[c][1];
            shape.extent = *extent;
            double taps = shape.kernel * shape.kernel, y = cost_shape_result(&shape);
            y = cost_shape_has_layouts(shape.kind) ? y : sqrt(y);
            if (2.0 * shape.in * shape.out * taps * y * y > most ||
                sweep->seen++ % how->parts != how->part)
                continue;
            if (!measure(shapes, sweep->measured++, shape, how->min_time, error))
                return FALSE;
        }
    }
    return TRUE;
}

/* Channels read and given, and extents. */
static const int window[][2] = { { 16, 16 },   { 32, 32 },  { 64, 64 },  { 128, 128 }, { 256, 256 },
                                 { 512, 512 }, { 16, 64 },  { 64, 128 }, { 128, 64 },  { 96, 32 },
                                 { 256, 64 },  { 64, 256 }, { 48, 192 }, { 24, 24 } };
static const int late[][2] = { { 128, 128 }, { 256, 256 }, { 512, 512 }, { 96, 160 } };
static const int strided[][2] = { { 64, 128 }, { 128, 256 }, { 256, 512 } };
static const int first[][2] = { { 3, 16 }, { 3, 24 }, { 3, 32 }, { 3, 64 }, { 1, 16 } };
static const int pointwise[][2] = { { 16, 64 },    { 96, 16 },  { 16, 96 },   { 96, 24 },
                                    { 24, 144 },   { 144, 32 }, { 32, 192 },  { 192, 64 },
                                    { 64, 384 },   { 384, 96 }, { 576, 160 }, { 960, 320 },
                                    { 320, 1280 }, { 58, 58 },  { 116, 116 }, { 232, 232 },
                                    { 464, 1024 }, { 64, 64 },  { 256, 64 },  { 64, 256 },
                                    { 512, 128 },  { 384, 48 }, { 512, 1000 } };
static const int deep[][2] = { { 24, 24 },   { 32, 32 },   { 58, 58 },   { 96, 96 },
                               { 116, 116 }, { 144, 144 }, { 192, 192 }, { 232, 232 },
                               { 384, 384 }, { 576, 576 }, { 960, 960 } };
static const int grown[][2] = { { 16, 16 }, { 64, 32 }, { 128, 64 }, { 256, 128 } };
static const int pooled[][2] = { { 24, 24 }, { 64, 64 }, { 128, 128 }, { 256, 256 }, { 512, 512 } };
static const int square[] = { 7, 13, 14, 28, 56, 112, 0 }, even[] = { 14, 28, 56, 112, 0 };
static const int big[] = { 56, 112, 224, 0 }, halved[] = { 7, 13, 14, 27, 28, 55, 56, 111, 112, 0 };
static const int tiny[] = { 2, 4, 8, 0 };
static const int small[] = { 7, 13, 14, 0 }, rows[] = { 1, 4, 16, 32, 64, 128, 512, 0 };
static const int products[][2] = { { 64, 64 },    { 256, 256 }, { 256, 1024 }, { 1024, 256 },
                                   { 512, 1000 }, { 128, 512 }, { 768, 768 } };
static const int moved[][2] = { { 3, 3 },   { 24, 24 },   { 58, 58 },
                                { 64, 64 }, { 232, 232 }, { 512, 512 } };
static const int wide[][2] = { { 8, 1 },   { 50, 1 },  { 64, 1 },   { 128, 1 },
                               { 256, 1 }, { 768, 1 }, { 1000, 1 }, { 4096, 1 } };
static const int plain[][2] = { { 32, 32 }, { 64, 64 }, { 256, 256 } };
static const int tails[][2] = { { 16, 128 }, { 32, 192 }, { 32, 256 }, { 64, 256 } };
static const int halves[][2] = { { 32, 32 }, { 64, 64 }, { 256, 256 }, { 512, 512 } };
static const int mid[] = { 28, 56, 0 };
static const int far[][2] = { { 256, 256 }, { 256, 384 }, { 384, 384 },
                              { 512, 256 }, { 256, 512 }, { 512, 512 } };
static const int last[] = { 7, 0 };
static const int states[][2] = { { 32, 32 },   { 64, 64 },   { 128, 128 },
                                 { 128, 256 }, { 256, 256 }, { 256, 512 } };
static const Set sets[] = {
    { { .kind = SHAPE_CONV, .kernel = 3, .stride = 1 }, window, G_N_ELEMENTS(window), square },
    { { .kind = SHAPE_CONV, .kernel = 3, .stride = 1 }, late, G_N_ELEMENTS(late), tiny },
    { { .kind = SHAPE_CONV, .kernel = 3, .stride = 2 }, strided, G_N_ELEMENTS(strided), even },
    { { .kind = SHAPE_CONV, .kernel = 3, .stride = 2 }, strided, G_N_ELEMENTS(strided), tiny },
    { { .kind = SHAPE_CONV, .kernel = 3, .stride = 2 }, first, G_N_ELEMENTS(first), big },
    { { .kind = SHAPE_CONV, .kernel = 7, .stride = 2 }, first, G_N_ELEMENTS(first), big },
    { { .kind = SHAPE_CONV, .kernel = 1, .stride = 1 },
      pointwise,
      G_N_ELEMENTS(pointwise),
      square },
    { { .kind = SHAPE_CONV, .kernel = 1, .stride = 2 }, strided, G_N_ELEMENTS(strided), even },
    { { .kind = SHAPE_DEPTHWISE, .kernel = 3, .stride = 1 }, deep, G_N_ELEMENTS(deep), square },
    { { .kind = SHAPE_DEPTHWISE, .kernel = 3, .stride = 2 }, deep, G_N_ELEMENTS(deep), even },
    { { .kind = SHAPE_DEPTHWISE, .kernel = 5, .stride = 1 }, deep, G_N_ELEMENTS(deep), small },
    { { .kind = SHAPE_CONV_TRANSPOSE, .kernel = 2, .stride = 2 },
      grown,
      G_N_ELEMENTS(grown),
      even },
    { { .kind = SHAPE_MAX_POOL, .kernel = 3, .stride = 2 }, pooled, G_N_ELEMENTS(pooled), halved },
    { { .kind = SHAPE_MAX_POOL, .kernel = 2, .stride = 2 }, pooled, G_N_ELEMENTS(pooled), even },
    { { .kind = SHAPE_GLOBAL_AVERAGE_POOL, .kernel = 1, .stride = 1 },
      pooled,
      G_N_ELEMENTS(pooled),
      small },
    { { .kind = SHAPE_MATMUL, .kernel = 1, .stride = 1 }, products, G_N_ELEMENTS(products), rows },
    { { .kind = SHAPE_REORDER, .kernel = 1, .stride = 1 }, moved, G_N_ELEMENTS(moved), square },
    { { .kind = SHAPE_SOFTMAX, .kernel = 1, .stride = 1 }, wide, G_N_ELEMENTS(wide), rows },
    { { .kind = SHAPE_LAYER_NORMALIZATION, .kernel = 1, .stride = 1 },
      wide,
      G_N_ELEMENTS(wide),
      rows },
    { { .kind = SHAPE_REDUCTION, .kernel = 1, .stride = 1 }, wide, G_N_ELEMENTS(wide), rows },
    { { .kind = SHAPE_LSTM, .kernel = 1, .stride = 1 }, states, G_N_ELEMENTS(states), rows },
    { { .kind = SHAPE_ADD, .kernel = 1, .stride = 1 }, plain, G_N_ELEMENTS(plain), even },
    { { .kind = SHAPE_SIGMOID, .kernel = 1, .stride = 1 }, plain, G_N_ELEMENTS(plain), even },
    { { .kind = SHAPE_SWISH, .kernel = 1, .stride = 1 }, plain, G_N_ELEMENTS(plain), even },
    { { .kind = SHAPE_TAIL_ADD, .kernel = 1, .stride = 1 }, tails, G_N_ELEMENTS(tails), mid },
    { { .kind = SHAPE_TAIL_SWISH, .kernel = 1, .stride = 1 }, tails, G_N_ELEMENTS(tails), mid },
    { { .kind = SHAPE_CONCAT, .kernel = 1, .stride = 1 }, halves, G_N_ELEMENTS(halves), square },
    { { .kind = SHAPE_BIAS, .kernel = 1, .stride = 1 }, halves, G_N_ELEMENTS(halves), square },
    { { .kind = SHAPE_FAR_WEIGHTS, .kernel = 3, .stride = 1 }, far, G_N_ELEMENTS(far), last },
};

static gboolean
measure_kinds(GArray *shapes, const CostMeasure *how, GError **error)
{
    for (int n = 0; n < SWEEPS; n++) {
        Sweep sweep = { 0, 0 };
        for (size_t i = 0; i < G_N_ELEMENTS(sets); i++) {
            if ((how->kinds >> sets[i].like.kind & 1) &&
                !measure_set(shapes, &sweep, &sets[i], how, error))
                return FALSE;
        }
    }
    return TRUE;
}

static bool
is_same(const Shape *a, const Shape *b)
{
    return a->kind == b->kind && a->in == b->in && a->out == b->out && a->kernel == b->kernel &&
           a->stride == b->stride && a->extent == b->extent;
}

static Shape *
find(const GArray *shapes, const Shape *like)
{
    for (guint i = 0; i < shapes->len; i++) {
        Shape *shape = &g_array_index(shapes, Shape, i);
        if (is_same(shape, like))
            return shape;
    }
    return NULL;
}

/* What is measured no more goes where all of its kind was measured. */
gboolean
cost_shapes_measure(GArray *shapes, const CostMeasure *how, GError **error)
{
    g_autoptr(GArray) made = g_array_new(FALSE, FALSE, sizeof(Shape));
    if (!measure_kinds(made, how, error))
        return FALSE;
    for (guint i = shapes->len; how->parts == 1 && i-- > 0;) {
        const Shape *shape = &g_array_index(shapes, Shape, i);
        if ((how->kinds >> shape->kind & 1) && !find(made, shape))
            g_array_remove_index(shapes, i);
    }
    for (guint i = 0; i < made->len; i++) {
        const Shape *shape = &g_array_index(made, Shape, i);
        Shape *before = find(shapes, shape);
        if (before)
            *before = *shape;
        else
            g_array_append_vals(shapes, shape, 1);
    }
    return TRUE;
}
