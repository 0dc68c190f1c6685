/* SPDX-License-Identifier: Apache-2.0 */
/* grid_sample of f32 in up to three dims, where a position is made of no more than 16 elements. A
 * block of positions has a table of these elements and their weights, which all channels share.
 * Operands: result, data, grid. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"

#include <math.h>
#include <string.h>

enum {
    BLOCK = 64,
    MAX_DIMS = 3,
    MAX_TAPS = 4,      /* in one dim */
    MAX_ELEMENTS = 16, /* in all */
};

typedef enum {
    ZEROS,
    BORDER,
    REFLECTION,
} Padding;

typedef struct {
    const float *from, *grid;
    float *to;
    Padding padding;
    bool align;
    int dims, taps, elements;
    int64_t extents[MAX_DIMS];
    uint8_t tap_of[MAX_ELEMENTS][MAX_DIMS];    /* of an element, in each dim */
    int64_t channels, size, positions, blocks; /* of one picture */
} Sampler;

/* Element k of position i lies at[k][i] behind the begin of a channel; < 0: it is a zero. reads has
 * the same elements, and any one in place of a zero: most positions have none, and those that have
 * are looked at again. */
typedef struct {
    int32_t at[MAX_ELEMENTS][BLOCK], reads[MAX_ELEMENTS][BLOCK];
    float weights[MAX_ELEMENTS][BLOCK];
    int with_zeros[BLOCK], n_with_zeros; /* positions */
} Table;

typedef struct {
    int64_t at[MAX_TAPS];
    double weights[MAX_TAPS];
} Taps;

static double
mirror(double x, double low, double high)
{
    double range = high - low;
    if (x >= low && x <= high)
        return x;
    if (!(range > 0) || !isfinite(x))
        return low;
    double over = fmod(x < low ? low - x : x - high, 2 * range);
    double back = over <= range ? over : 2 * range - over;
    return x < low ? low + back : high - back;
}

static double
clamp(double x, double low, double high)
{
    return !(x > low) ? low : x < high ? x : high;
}

/* Far outside one position is like another. */
static double
settle(const Sampler *s, double x, int64_t n)
{
    double edge = s->align ? 0 : 0.5;
    if (s->padding == REFLECTION)
        return mirror(x, -edge, (double)(n - 1) + edge);
    return clamp(x, -MAX_TAPS, (double)(n + MAX_TAPS));
}

static int64_t
element_at(const Sampler *s, int64_t i, int64_t n)
{
    if (i >= 0 && i < n)
        return i;
    if (s->padding == ZEROS)
        return -1;
    double x = s->padding == BORDER ? (double)i : settle(s, (double)i, n);
    return (int64_t)clamp(x, 0, (double)(n - 1));
}

static void
fill_taps(const Sampler *s, double coordinate, int64_t n, Taps *taps)
{
    double x =
        s->align ? (coordinate + 1) / 2 * (double)(n - 1) : ((coordinate + 1) * (double)n - 1) / 2;
    x = settle(s, s->taps == 1 ? nearbyint(x) : x, n);
    double first = (double)(int64_t)x;
    first -= first > x;
    double t = x - first;
    if (s->taps == 1) {
        taps->weights[0] = 1;
    } else if (s->taps == 2) {
        taps->weights[0] = 1 - t;
        taps->weights[1] = t;
    } else {
        /* Keys' kernel, a = -0.75. */
        double u = 1 - t;
        taps->weights[0] = -0.75 * t * u * u;
        taps->weights[1] = (1.25 * t - 2.25) * t * t + 1;
        taps->weights[2] = (1.25 * u - 2.25) * u * u + 1;
        taps->weights[3] = -0.75 * u * t * t;
        first -= 1;
    }
    for (int k = 0; k < s->taps; k++)
        taps->at[k] = element_at(s, (int64_t)first + k, n);
}

static void
fill_position(const Sampler *s, const float *position, int i, Table *table)
{
    Taps taps[MAX_DIMS];
    bool with_zeros = false;
    for (int d = 0; d < s->dims; d++)
        fill_taps(s, (double)position[s->dims - 1 - d], s->extents[d], &taps[d]);
    for (int k = 0; k < s->elements; k++) {
        double weight = 1;
        int64_t at = 0;
        for (int d = 0; d < s->dims; d++) {
            int64_t here = taps[d].at[s->tap_of[k][d]];
            weight *= taps[d].weights[s->tap_of[k][d]];
            at = here < 0 || at < 0 ? -1 : at * s->extents[d] + here;
        }
        /* What weighs nothing is not read: an infinity there must not matter. */
        table->at[k][i] = weight == 0 ? -1 : (int32_t)at;
        table->reads[k][i] = weight == 0 || at < 0 ? 0 : (int32_t)at;
        table->weights[k][i] = (float)weight;
        with_zeros |= weight == 0 || at < 0;
    }
    if (with_zeros)
        table->with_zeros[table->n_with_zeros++] = i;
}

/* @elements is a constant where this is called, so that the sum stays in a register. */
static inline __attribute__((always_inline)) void
sum_elements(const Table *table, int elements, const float *from, int n, float *sums)
{
    for (int i = 0; i < n; i++) {
        float sum = 0;
        for (int k = 0; k < elements; k++)
            sum += table->weights[k][i] * from[table->reads[k][i]];
        sums[i] = sum;
    }
}

static void
sample_channel(const Sampler *s, const Table *table, const float *from, int n, float *sums)
{
    switch (s->elements) {
    case 1:
        sum_elements(table, 1, from, n, sums);
        break;
    case 4:
        sum_elements(table, 4, from, n, sums);
        break;
    case 8:
        sum_elements(table, 8, from, n, sums);
        break;
    default:
        sum_elements(table, s->elements, from, n, sums);
    }
    for (int z = 0; z < table->n_with_zeros; z++) {
        const int i = table->with_zeros[z];
        float sum = 0;
        for (int k = 0; k < s->elements; k++)
            sum += table->at[k][i] < 0 ? 0 : table->weights[k][i] * from[table->at[k][i]];
        sums[i] = sum;
    }
}

static void
sample_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Sampler *s = data;
    int64_t picture = task / s->blocks, first = task % s->blocks * BLOCK;
    int n = (int)min_of(s->positions - first, BLOCK);
    const float *position = s->grid + (picture * s->positions + first) * s->dims;
    Table table;
    table.n_with_zeros = 0;
    for (int i = 0; i < n; i++)
        fill_position(s, position + i * s->dims, i, &table);
    for (int64_t plane = picture * s->channels; plane < (picture + 1) * s->channels; plane++) {
        const float *from = s->from + plane * s->size;
        sample_channel(s, &table, from, n, s->to + plane * s->positions + first);
    }
}

static int
taps_of(const KilnInstr *instr)
{
    const char *mode = kiln_instr_attrs(instr, grid_sample)->mode;
    return strcmp(mode, "nearest") == 0 ? 1 : strcmp(mode, "linear") == 0 ? 2 : MAX_TAPS;
}

static int
elements_of(const KilnInstr *instr)
{
    int elements = 1;
    for (int d = 2; d < cpu_type(instr, 1)->rank; d++)
        elements *= taps_of(instr);
    return elements;
}

bool
kiln_cpu_grid_sample_supports(const KilnInstr *instr)
{
    const KilnType *in = cpu_type(instr, 1);
    int64_t size = 1;
    for (int d = 2; d < in->rank; d++)
        size = size > INT32_MAX ? size : size * in->dims[d];
    return cpu_all_plain(instr, KILN_DTYPE_f32) && in->rank <= MAX_DIMS + 2 &&
           elements_of(instr) <= MAX_ELEMENTS && size <= INT32_MAX;
}

const char *
kiln_cpu_grid_sample(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_grid_sample *attrs = kiln_instr_attrs(args->instr, grid_sample);
    const KilnType *out = cpu_type(args->instr, 0), *in = cpu_type(args->instr, 1);
    bool border = strcmp(attrs->padding_mode, "border") == 0;
    bool zeros = strcmp(attrs->padding_mode, "zeros") == 0;
    Sampler s = { .from = args->data[1],
                  .grid = args->data[2],
                  .to = args->data[0],
                  .padding = border  ? BORDER
                             : zeros ? ZEROS
                                     : REFLECTION,
                  .align = attrs->align_corners,
                  .dims = in->rank - 2,
                  .taps = taps_of(args->instr),
                  .elements = elements_of(args->instr),
                  .channels = in->dims[1],
                  .size = 1,
                  .positions = 1 };
    for (int d = 0; d < s.dims; d++) {
        s.extents[d] = in->dims[d + 2];
        s.size *= s.extents[d];
        s.positions *= out->dims[d + 2];
    }
    for (int k = 0; k < s.elements; k++) {
        for (int d = 0, rest = k; d < s.dims; d++, rest /= s.taps)
            s.tap_of[k][d] = (uint8_t)(rest % s.taps);
    }
    if (kiln_type_elements(out) == 0)
        return NULL;
    if (s.size == 0)
        return "there is nothing to sample";
    s.blocks = ceil_div(s.positions, BLOCK);
    kiln_cpu_parallel(in->dims[0] * s.blocks, args->threads, sample_task, &s);
    return NULL;
}
