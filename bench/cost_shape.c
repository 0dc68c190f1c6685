/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cost_shape.h"

#include "bench/bench_stats.h"
#include "graph/base/write_file.h"
#include "graph/error.h"
#include "kiln.h"

#include <math.h>
#include <string.h>

enum {
    MIN_ROUNDS = 7,
};

static const char *const kinds[N_SHAPE_KINDS] = {
    [SHAPE_CONV] = "conv",
    [SHAPE_DEPTHWISE] = "depthwise",
    [SHAPE_CONV_TRANSPOSE] = "conv_transpose",
    [SHAPE_MAX_POOL] = "max_pool",
    [SHAPE_GLOBAL_AVERAGE_POOL] = "global_average_pool",
    [SHAPE_MATMUL] = "matmul",
    [SHAPE_REORDER] = "reorder",
    [SHAPE_SOFTMAX] = "softmax",
    [SHAPE_LAYER_NORMALIZATION] = "layer_normalization",
    [SHAPE_REDUCTION] = "reduction",
    [SHAPE_LSTM] = "lstm",
    [SHAPE_ADD] = "add",
    [SHAPE_SIGMOID] = "sigmoid",
    [SHAPE_SWISH] = "swish",
    [SHAPE_TAIL_ADD] = "tail_add",
    [SHAPE_TAIL_SWISH] = "tail_swish",
    [SHAPE_CONCAT] = "concat",
    [SHAPE_BIAS] = "bias",
    [SHAPE_FAR_WEIGHTS] = "far_weights",
};
static const char *const ways[N_WAYS] = {
    [WAY_DIRECT] = "direct",
    [WAY_WINOGRAD] = "winograd",
    [WAY_LAST] = "last",
    [WAY_BLOCKED] = "blocked",
};

const char *
cost_shape_kind(ShapeKind kind)
{
    return kinds[kind];
}

const char *
cost_shape_way(ShapeWay way)
{
    return ways[way];
}

static bool
read_kind(const char *text, Shape *shape)
{
    for (int kind = 0; kind < N_SHAPE_KINDS; kind++) {
        if (strcmp(kinds[kind], text) == 0) {
            shape->kind = (ShapeKind)kind;
            return true;
        }
    }
    return false;
}

bool
cost_shape_has_layouts(ShapeKind kind)
{
    return kind != SHAPE_MATMUL && (kind < SHAPE_SOFTMAX || kind > SHAPE_LSTM);
}

bool
cost_shape_is_difference(ShapeKind kind)
{
    return kind == SHAPE_TAIL_ADD || kind == SHAPE_TAIL_SWISH || kind == SHAPE_FAR_WEIGHTS;
}

bool
cost_shape_has_choice(ShapeKind kind)
{
    return kind <= SHAPE_LSTM && kind != SHAPE_REORDER;
}

int
cost_shape_result(const Shape *shape)
{
    if (shape->kind == SHAPE_GLOBAL_AVERAGE_POOL)
        return 1;
    if (shape->kind == SHAPE_CONV_TRANSPOSE)
        return shape->extent * shape->stride;
    return (shape->extent + 2 * cost_shape_pad(shape) - shape->kernel) / shape->stride + 1;
}

/* Windows of two, which halve a picture, have none. */
int
cost_shape_pad(const Shape *shape)
{
    return (shape->kernel - 1) / 2;
}

/* --- time --- */

/* Caches hold something else afterwards. */
static void
flush_caches(void)
{
    enum {
        BYTES = 96 << 20,
        LINE = 64
    };
    static volatile char *other;
    if (!other)
        other = g_malloc0(BYTES);
    for (size_t i = 0; i < BYTES; i += LINE)
        other[i]++;
}

/* Seconds; infinite where it failed. */
static double
time_run(CostRun run, void *data)
{
    double begin = bench_now();
    bool good = run(data);
    return good ? bench_now() - begin : INFINITY;
}

typedef struct {
    CostRun run;
    void *data, *base; /* base: NULL of what is no difference */
    bool far;          /* each run of @data begins with caches that hold something else */
    double min_time;
} Timing;

/* Seconds by the least times: what else the machine does makes runs longer, never shorter. Caches
 * that hold something else make a run as long as memory pleases: of these it is the median. */
static double
time_once(const Timing *t)
{
    double best = INFINITY, least = t->base ? INFINITY : 0, end = bench_cpu_now() + t->min_time;
    for (int n = 0; n < MIN_ROUNDS || bench_cpu_now() < end; n++) {
        if (t->base)
            least = MIN(least, time_run(t->run, t->base));
        if (!t->far)
            best = MIN(best, time_run(t->run, t->data));
    }
    double far[MIN_ROUNDS];
    for (int n = 0; t->far && n < MIN_ROUNDS; n++) {
        flush_caches();
        far[n] = time_run(t->run, t->data);
    }
    return (t->far ? bench_stats(far, MIN_ROUNDS).median : best) - least;
}

double
cost_shape_time(const Shape *shape, CostRun run, void *data, void *base, double min_time)
{
    enum {
        DIFFERENCES = 5
    };
    Timing timing = { run, data, base, shape->kind == SHAPE_FAR_WEIGHTS, min_time };
    double all[DIFFERENCES];
    int n = base ? DIFFERENCES : 1;
    timing.min_time /= n;
    for (int i = 0; i < n; i++) {
        all[i] = time_once(&timing);
        if (!isfinite(all[i]))
            return 0;
    }
    return MAX(bench_stats(all, (unsigned)n).median, 0) * 1e6;
}

gboolean
cost_shapes_kinds(const char *text, uint32_t *out, GError **error)
{
    g_auto(GStrv) names = g_strsplit(text, ",", -1);
    *out = 0;
    for (int i = 0; names[i]; i++) {
        Shape shape = { .kind = SHAPE_CONV };
        if (!read_kind(names[i], &shape))
            return kiln_throw(error, KILN_ERROR_USAGE, "there is no kind '%s'", names[i]);
        *out |= 1u << shape.kind;
    }
    return TRUE;
}

/* --- on disk --- */

static const char columns[] =
    "kind,in,out,kernel,stride,extent,direct_us,winograd_us,last_us,blocked_us";

gboolean
cost_shapes_write(const char *path, const GArray *shapes, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_printf(text, "# %s; one thread; - is not computed that way\n%s\n", kiln_build_info(),
                    columns);
    for (guint i = 0; i < shapes->len; i++) {
        const Shape *s = &g_array_index(shapes, Shape, i);
        g_string_append_printf(text, "%s,%d,%d,%d,%d,%d", kinds[s->kind], s->in, s->out, s->kernel,
                               s->stride, s->extent);
        for (int way = 0; way < N_WAYS; way++) {
            if (s->us[way] > 0)
                g_string_append_printf(text, ",%.2f", s->us[way]);
            else
                g_string_append(text, ",-");
        }
        g_string_append_c(text, '\n');
    }
    return kiln_file_write(path, text->str, text->len, error);
}

enum {
    MAX_EXTENT = 1 << 15, /* a product of two is an int */
};

static bool
read_shape(const char *line, Shape *shape)
{
    enum {
        FIRST_WAY = 6,
    };
    g_auto(GStrv) fields = g_strsplit(line, ",", -1);
    int *const numbers[FIRST_WAY] = { NULL,           &shape->in,     &shape->out,
                                      &shape->kernel, &shape->stride, &shape->extent };
    if (g_strv_length(fields) != FIRST_WAY + N_WAYS || !read_kind(fields[0], shape))
        return false;
    for (int i = 1; i < FIRST_WAY; i++) {
        guint64 number;
        if (!g_ascii_string_to_unsigned(fields[i], 10, 1, MAX_EXTENT, &number, NULL))
            return false;
        *numbers[i] = (int)number;
    }
    for (int way = 0; way < N_WAYS; way++) {
        const char *text = fields[FIRST_WAY + way];
        char *end = NULL;
        bool none = strcmp(text, "-") == 0;
        shape->us[way] = none ? 0 : g_ascii_strtod(text, &end);
        if (!none && (end == text || *end || !(shape->us[way] > 0) || !isfinite(shape->us[way])))
            return false;
    }
    return true;
}

gboolean
cost_shapes_read(const char *path, GArray *shapes, GError **error)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, error))
        return FALSE;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (int i = 0; lines[i]; i++) {
        Shape shape = { .kind = SHAPE_CONV };
        if (!lines[i][0] || lines[i][0] == '#' || strcmp(lines[i], columns) == 0)
            continue;
        if (!read_shape(lines[i], &shape))
            return kiln_throw(
                error, KILN_ERROR_PARSE,
                "%s:%d: expected %s, all above zero and the numbers up to %d, found %s", path,
                i + 1, columns, MAX_EXTENT, lines[i]);
        g_array_append_val(shapes, shape);
    }
    return TRUE;
}
