/* SPDX-License-Identifier: Apache-2.0 */
/* resize of the last two dims: nearest for any element type, linear for f32. Each of the two has a
 * table of the elements that a coordinate of the result is made of: two and their weights, one
 * where the second weighs nothing (an infinity there must not matter). Operands: result, data. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"

#include <math.h>
#include <string.h>

enum {
    TASK_BYTES = 1 << 16,
};

/* --- coordinates --- */

typedef enum {
    HALF_PIXEL,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    N_COORDINATES /* none of these */
} Coordinates;

static Coordinates
coordinates_of(const KilnInstrAttrs_resize *attrs)
{
    static const char *const names[N_COORDINATES] = {
        [HALF_PIXEL] = "half_pixel",
        [PYTORCH_HALF_PIXEL] = "pytorch_half_pixel",
        [ALIGN_CORNERS] = "align_corners",
        [ASYMMETRIC] = "asymmetric",
    };
    int i = 0;
    while (i < N_COORDINATES && strcmp(attrs->coordinate_transformation_mode, names[i]) != 0)
        i++;
    return (Coordinates)i;
}

/* A scale that equals the ratio of the extents rounded stands for the ratio. */
static double
scale_of(const KilnInstr *instr, int d)
{
    const KilnFloats *scales = &kiln_instr_attrs(instr, resize)->scales;
    double ratio = (double)cpu_type(instr, 0)->dims[d] / (double)cpu_type(instr, 1)->dims[d];
    float given = (uint32_t)d < scales->n ? scales->v[d] : 0.0f;
    return given > 0 && given != (float)ratio ? (double)given : ratio;
}

static double
original(Coordinates coordinates, int64_t i, int64_t in, double scale)
{
    double x = (double)i, out = (double)in * scale;
    switch (coordinates) {
    case ALIGN_CORNERS:
        return out == 1 ? 0 : x * (double)(in - 1) / (out - 1);
    case ASYMMETRIC:
        return x / scale;
    default:
        return (x + 0.5) / scale - 0.5;
    }
}

static double
round_by(const char *mode, double x)
{
    bool half = x - floor(x) == 0.5;
    if (strcmp(mode, "floor") == 0 || (half && strcmp(mode, "round_prefer_floor") == 0))
        return floor(x);
    if (strcmp(mode, "ceil") == 0 || half)
        return ceil(x);
    return floor(x + 0.5);
}

static int64_t
clamp(double x, int64_t n)
{
    return !(x > 0) ? 0 : x >= (double)(n - 1) ? n - 1 : (int64_t)x;
}

/* --- tables --- */

/* Of one dim, per coordinate of the result. Nearest has no more than the first. */
typedef struct {
    int64_t in, out;
    int64_t *first, *second;
    float *first_weight, *second_weight; /* the second is 0 where there is one element only */
} Axis;

typedef struct {
    const char *from;
    char *to;
    Axis y, x;
    int64_t size, rows, rows_per_task;
} Resize;

static void
fill_axis(const KilnInstr *instr, int d, Axis *axis)
{
    const KilnInstrAttrs_resize *attrs = kiln_instr_attrs(instr, resize);
    Coordinates coordinates = coordinates_of(attrs);
    bool linear = strcmp(attrs->mode, "linear") == 0;
    double scale = scale_of(instr, d);
    for (int64_t i = 0; i < axis->out; i++) {
        bool only = coordinates == PYTORCH_HALF_PIXEL && axis->out <= 1;
        double x = only ? 0 : original(coordinates, i, axis->in, scale), low = floor(x);
        axis->first[i] = clamp(linear ? low : round_by(attrs->nearest_mode, x), axis->in);
        if (!linear)
            continue;
        axis->second[i] = clamp(low + 1, axis->in);
        bool one = axis->second[i] == axis->first[i];
        axis->second_weight[i] = one ? 0.0f : (float)(x - low);
        axis->first_weight[i] = one ? 1.0f : (float)(1 - (x - low));
    }
}

static Axis
place_axis(const KilnInstr *instr, int d, char **scratch)
{
    Axis axis = { .in = cpu_type(instr, 1)->dims[d], .out = cpu_type(instr, 0)->dims[d] };
    axis.first = (int64_t *)*scratch;
    axis.second = axis.first + axis.out;
    axis.first_weight = (float *)(axis.second + axis.out);
    axis.second_weight = axis.first_weight + axis.out;
    *scratch = (char *)(axis.second_weight + axis.out);
    fill_axis(instr, d, &axis);
    return axis;
}

size_t
kiln_cpu_resize_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    const KilnType *out = cpu_type(instr, 0);
    return (size_t)(out->dims[out->rank - 2] + out->dims[out->rank - 1]) *
           (2 * sizeof(int64_t) + 2 * sizeof(float));
}

/* --- rows --- */

#define PICK(bytes)                                                                                \
    for (int64_t i = 0; i < x->out; i++)                                                           \
        memcpy(to + i * (bytes), from + x->first[i] * (bytes), (bytes));

static void
pick_row(const Axis *x, char *to, const char *from, int64_t size)
{
    switch (size) {
    case 1:
        PICK(1) break;
    case 2:
        PICK(2) break;
    case 4:
        PICK(4) break;
    default:
        PICK(8) break;
    }
}
#undef PICK

/* A row like the one before is copied from it. */
static void
nearest_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Resize *r = data;
    int64_t first = task * r->rows_per_task, end = first + r->rows_per_task;
    int64_t bytes = r->x.out * r->size;
    for (int64_t row = first; row < end && row < r->rows; row++) {
        int64_t y = row % r->y.out, source = row / r->y.out * r->y.in + r->y.first[y];
        char *to = r->to + row * bytes;
        if (row > first && y > 0 && r->y.first[y] == r->y.first[y - 1])
            memcpy(to, to - bytes, (size_t)bytes);
        else
            pick_row(&r->x, to, r->from + source * r->x.in * r->size, r->size);
    }
}

static inline float
between(const Axis *x, const float *from, int64_t i)
{
    float a = from[x->first[i]], b = from[x->second[i]];
    float mixed = x->first_weight[i] * a + x->second_weight[i] * b;
    return x->second_weight[i] == 0.0f ? a : mixed;
}

static void
linear_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Resize *r = data;
    int64_t first = task * r->rows_per_task, end = first + r->rows_per_task;
    for (int64_t row = first; row < end && row < r->rows; row++) {
        int64_t y = row % r->y.out, plane = row / r->y.out * r->y.in * r->x.in;
        const float *from = (const float *)r->from + plane;
        const float *above = from + r->y.first[y] * r->x.in;
        const float *below = from + r->y.second[y] * r->x.in;
        float *to = (float *)r->to + row * r->x.out;
        float upper = r->y.first_weight[y], lower = r->y.second_weight[y];
        for (int64_t i = 0; lower == 0.0f && i < r->x.out; i++)
            to[i] = between(&r->x, above, i);
        for (int64_t i = 0; lower != 0.0f && i < r->x.out; i++)
            to[i] = upper * between(&r->x, above, i) + lower * between(&r->x, below, i);
    }
}

/* --- the kernel --- */

bool
kiln_cpu_resize_supports(const KilnInstr *instr)
{
    const KilnInstrAttrs_resize *attrs = kiln_instr_attrs(instr, resize);
    const KilnType *out = cpu_type(instr, 0), *in = cpu_type(instr, 1);
    bool linear = strcmp(attrs->mode, "linear") == 0;
    if (!linear && strcmp(attrs->mode, "nearest") != 0)
        return false;
    if (linear && (in->dtype != KILN_DTYPE_f32 || attrs->exclude_outside || attrs->antialias))
        return false;
    for (int d = 0; d < in->rank - 2; d++) {
        if (out->dims[d] != in->dims[d] || (in->dims[d] > 0 && scale_of(instr, d) != 1.0))
            return false;
    }
    return in->rank >= 2 && coordinates_of(attrs) != N_COORDINATES &&
           kiln_cpu_movement_supports(instr);
}

const char *
kiln_cpu_resize(const KilnKernelArgs *args)
{
    const KilnType *out = cpu_type(args->instr, 0);
    int64_t total = kiln_type_elements(out);
    if (total == 0)
        return NULL;
    if (kiln_type_elements(cpu_type(args->instr, 1)) == 0)
        return "there is nothing to resize";
    char *scratch = args->scratch;
    Resize r = { .from = args->data[1],
                 .to = args->data[0],
                 .size = (int64_t)kiln_dtype_size(out->dtype),
                 .rows = total / out->dims[out->rank - 1] };
    r.y = place_axis(args->instr, out->rank - 2, &scratch);
    r.x = place_axis(args->instr, out->rank - 1, &scratch);
    r.rows_per_task = units_per_task(TASK_BYTES, r.x.out * r.size);
    bool linear = strcmp(kiln_instr_attrs(args->instr, resize)->mode, "linear") == 0;
    kiln_cpu_parallel(ceil_div(r.rows, r.rows_per_task), args->threads,
                      linear ? linear_task : nearest_task, &r);
    return NULL;
}
