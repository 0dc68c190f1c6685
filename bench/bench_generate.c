/* SPDX-License-Identifier: Apache-2.0 */
/* Hard problems for the memory planner. A square of UNITS by UNITS is cut into rectangles: time
 * from left to right, bytes from the bottom up. Three ways of cutting:
 *
 *   - guillotine: a rectangle is cut in two, again and again;
 *   - pinwheel: now and then into five, four of which turn around the one in the middle;
 *   - skyline: rectangles are stacked, each on the lowest place, until all is full.
 *
 * Cuts lie on a grid, coarse or fine, in time and in bytes apart: a coarse one makes many buffers
 * of equal lives or sizes. Where gaps are wanted buffers are left out, become smaller or live for
 * less time, but for those that live at one moment, which keep the optimum where it was. */
#include "bench/bench_generate.h"

#include "ir/life.h"

#include <math.h>

enum {
    UNITS = 1024,
    UNIT = 1024, /* steps, and bytes */
    BUFFERS_MIN = 150,
    BUFFERS_MAX = 500,
    TRIES = 64, /* to cut one rectangle */
};

typedef enum {
    GUILLOTINE,
    PINWHEEL,
    SKYLINE,
    N_CUTS,
} Cut;

static const char *const cut_names[] = { "guillotine", "pinwheel", "skyline" };

typedef struct {
    int from[2], to[2]; /* time, bytes */
} Rect;

typedef struct {
    uint64_t state; /* of the generator of random numbers */
    Cut cut;
    int n;       /* buffers that are wanted */
    int grid[2]; /* units between places where cuts may lie */
    int shape;   /* -1: lives are short, 0, 1: lives are long */
    int giants;  /* buffers that are cut off first: much of all bytes, for a short time */
    int percent; /* of the area becomes gaps */
    GArray *rects;
} Generator;

static uint64_t
next_random(Generator *generator)
{
    uint64_t z = generator->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* From 0 to @n - 1. */
static int
random_below(Generator *generator, int n)
{
    return (int)(next_random(generator) % (uint64_t)n);
}

static void
add(Generator *generator, int t0, int y0, int t1, int y1)
{
    Rect rect = { { t0, y0 }, { t1, y1 } };
    if (t0 < t1 && y0 < y1)
        g_array_append_val(generator->rects, rect);
}

static Rect
take(Generator *generator, guint i)
{
    GArray *rects = generator->rects;
    Rect rect = g_array_index(rects, Rect, i);
    g_array_index(rects, Rect, i) = g_array_index(rects, Rect, rects->len - 1);
    g_array_set_size(rects, rects->len - 1);
    return rect;
}

/* --- cutting --- */

/* Grid lines inside @rect along @axis. */
static int
lines_inside(const Generator *generator, const Rect *rect, int axis)
{
    int grid = generator->grid[axis];
    return (rect->to[axis] - 1) / grid - rect->from[axis] / grid;
}

static int
random_line(Generator *generator, const Rect *rect, int axis)
{
    int grid = generator->grid[axis];
    int lines = lines_inside(generator, rect, axis);
    return (rect->from[axis] / grid + 1 + random_below(generator, lines)) * grid;
}

/* The axis of the next cut of @rect: that of its longer side, most often. */
static int
choose_axis(Generator *generator, const Rect *rect)
{
    double side[2];
    for (int axis = 0; axis < 2; axis++)
        side[axis] = rect->to[axis] - rect->from[axis];
    side[0] *= generator->shape < 0 ? 4 : generator->shape > 0 ? 0.25 : 1;
    bool is_time = random_below(generator, 1000) * (side[0] + side[1]) < 1000 * side[0];
    int axis = is_time ? 0 : 1;
    return lines_inside(generator, rect, axis) ? axis : 1 - axis;
}

static void
cut_in_two(Generator *generator, guint i)
{
    Rect rect = g_array_index(generator->rects, Rect, i), other = rect;
    int axis = choose_axis(generator, &rect);
    if (!lines_inside(generator, &rect, axis))
        return;
    int line = random_line(generator, &rect, axis);
    rect.to[axis] = other.from[axis] = line;
    g_array_index(generator->rects, Rect, i) = rect;
    g_array_append_val(generator->rects, other);
}

/* Five out of one, where two lines of each axis lie inside it. */
static bool
cut_in_five(Generator *generator, guint i)
{
    Rect whole = g_array_index(generator->rects, Rect, i);
    int low[2], high[2];
    for (int axis = 0; axis < 2; axis++) {
        if (lines_inside(generator, &whole, axis) < 2)
            return false;
        do {
            low[axis] = random_line(generator, &whole, axis);
            high[axis] = random_line(generator, &whole, axis);
        } while (low[axis] >= high[axis]);
    }
    take(generator, i);
    int t0 = whole.from[0], y0 = whole.from[1], t1 = whole.to[0], y1 = whole.to[1];
    add(generator, low[0], low[1], high[0], high[1]);
    if (random_below(generator, 2)) {
        add(generator, t0, y0, high[0], low[1]);
        add(generator, high[0], y0, t1, high[1]);
        add(generator, low[0], high[1], t1, y1);
        add(generator, t0, low[1], low[0], y1);
    } else {
        add(generator, low[0], y0, t1, low[1]);
        add(generator, high[0], low[1], t1, y1);
        add(generator, t0, high[1], high[0], y1);
        add(generator, t0, y0, low[0], high[1]);
    }
    return true;
}

/* A rectangle to cut: the bigger of a few, so that sizes differ, but not without limit. */
static guint
choose_rect(Generator *generator)
{
    guint best = 0;
    int64_t most = -1;
    for (int k = 0; k < 4; k++) {
        guint i = (guint)random_below(generator, (int)generator->rects->len);
        const Rect *rect = &g_array_index(generator->rects, Rect, i);
        int64_t area =
            (int64_t)(rect->to[0] - rect->from[0]) * (int64_t)(rect->to[1] - rect->from[1]);
        if (area > most) {
            most = area;
            best = i;
        }
    }
    return best;
}

static void
cut_up(Generator *generator)
{
    for (int k = 0; k < TRIES * generator->n && (int)generator->rects->len < generator->n; k++) {
        guint i = choose_rect(generator);
        bool turns = generator->cut == PINWHEEL && !random_below(generator, 3);
        if (!turns || !cut_in_five(generator, i))
            cut_in_two(generator, i);
    }
}

/* --- stacking --- */

/* A length of about @mean units on the grid of @axis, at most @most. */
static int
random_length(Generator *generator, int axis, double mean, int most)
{
    int grid = generator->grid[axis];
    double share = random_below(generator, 1000) / 1000.0;
    double length = mean * (0.1 + 3.6 * share * share); /* the mean of which is 1.3 means */
    int lines = MAX((int)(length / grid + 0.5), 1);
    return MIN(lines * grid, most);
}

/* Fills the square from the bottom up. */
static void
stack(Generator *generator)
{
    int top[UNITS] = { 0 };
    int grid = generator->grid[0];
    double wide = UNITS / sqrt(generator->n), high = wide;
    double factor = generator->shape < 0 ? 0.4 : generator->shape > 0 ? 2.5 : 1;
    wide = MAX(wide * factor, grid);
    high = MAX(UNITS / (generator->n * wide / UNITS), generator->grid[1]);
    for (;;) {
        int t = 0, end, reach = UNITS;
        for (int k = grid; k < UNITS; k += grid)
            t = top[k] < top[t] ? k : t;
        if (top[t] >= UNITS)
            return;
        for (end = t; end < UNITS && top[end] == top[t];)
            end += grid;
        end = MIN(end, UNITS);
        if (t > 0)
            reach = MIN(reach, top[t - 1]);
        if (end < UNITS)
            reach = MIN(reach, top[end]);
        int width = random_length(generator, 0, wide, end - t);
        int height = random_length(generator, 1, high, UNITS - top[t]);
        if (!random_below(generator, 3)) /* level with what stands beside it */
            height = MIN(reach - top[t], (int)(4 * high) + 1);
        /* Nothing is left that is too low for the grid. */
        if (UNITS - top[t] - height < generator->grid[1])
            height = UNITS - top[t];
        if (end - t - width < grid)
            width = end - t;
        add(generator, t, top[t], t + width, top[t] + height);
        for (int k = t, base = top[t]; k < t + width; k++)
            top[k] = base + height;
    }
}

/* --- the square, and its gaps --- */

/* Cuts buffers off the square that hold most of all bytes for a short time each. */
static void
cut_giants(Generator *generator)
{
    for (int k = 0; k < generator->giants; k++) {
        Rect rect = take(generator, generator->rects->len - 1);
        int grid = generator->grid[0], high = generator->grid[1];
        int life = grid * (1 + random_below(generator, 3));
        int size = high * MAX((UNITS / high) * (40 + random_below(generator, 50)) / 100, 1);
        int t = rect.from[0] + (rect.to[0] - rect.from[0]) / (generator->giants - k + 1);
        t = t / grid * grid;
        bool is_low = random_below(generator, 2);
        if (t + life >= rect.to[0] || t <= rect.from[0]) {
            g_array_append_val(generator->rects, rect);
            return;
        }
        add(generator, t, is_low ? 0 : UNITS - size, t + life, is_low ? size : UNITS);
        add(generator, t, is_low ? size : 0, t + life, is_low ? UNITS : UNITS - size);
        add(generator, rect.from[0], 0, t, UNITS);
        add(generator, t + life, 0, rect.to[0], UNITS);
    }
}

/* Makes gaps, but for what lives at one moment. */
static void
thin(Generator *generator)
{
    int moment = random_below(generator, UNITS);
    int64_t left = (int64_t)UNITS * UNITS * generator->percent / 100;
    for (int k = 0; k < TRIES * generator->n && left > 0; k++) {
        guint i = (guint)random_below(generator, (int)generator->rects->len);
        Rect *rect = &g_array_index(generator->rects, Rect, i);
        if (rect->from[0] <= moment && moment < rect->to[0])
            continue;
        int axis = random_below(generator, 2), other = 1 - axis;
        int side = rect->to[axis] - rect->from[axis];
        int cut = 1 + random_below(generator, MAX(side / 3, 1));
        left -= (int64_t)cut * (rect->to[other] - rect->from[other]);
        rect->to[axis] -= cut;
        if (rect->from[axis] == rect->to[axis])
            take(generator, i);
    }
}

static void
choose_family(Generator *generator, bool gaps)
{
    static const int grids[] = { 1, 1, 4, 16, 32, 64 };
    static const int percents[] = { 2, 5, 10 };
    generator->cut = (Cut)random_below(generator, N_CUTS);
    generator->n = BUFFERS_MIN + random_below(generator, BUFFERS_MAX - BUFFERS_MIN + 1);
    do {
        for (int axis = 0; axis < 2; axis++)
            generator->grid[axis] = grids[random_below(generator, G_N_ELEMENTS(grids))];
    } while (generator->grid[0] * generator->grid[1] > 512);
    generator->shape = random_below(generator, 3) - 1;
    generator->giants = random_below(generator, 2) * random_below(generator, 8);
    generator->percent = gaps ? percents[random_below(generator, G_N_ELEMENTS(percents))] : 0;
}

static void
fill(Generator *generator)
{
    g_array_set_size(generator->rects, 0);
    if (generator->cut == SKYLINE) {
        generator->giants = 0;
        stack(generator);
    } else {
        add(generator, 0, 0, UNITS, UNITS);
        cut_giants(generator);
        cut_up(generator);
    }
    thin(generator);
}

Problem *
problem_generate(uint64_t seed, bool gaps)
{
    Generator generator = { .state = seed * UINT64_C(0xd1342543de82ef95) + 1,
                            .rects = g_array_new(FALSE, FALSE, sizeof(Rect)) };
    do {
        choose_family(&generator, gaps);
        fill(&generator);
    } while (generator.rects->len < BUFFERS_MIN || generator.rects->len > BUFFERS_MAX);
    Problem *problem = problem_new(NULL);
    static const char shapes[] = "s-l";
    problem->name = g_strdup_printf("%s-t%d-b%d-%c-g%d-p%d-%" G_GUINT64_FORMAT ".%d.csv",
                                    cut_names[generator.cut], generator.grid[0], generator.grid[1],
                                    shapes[generator.shape + 1], generator.giants,
                                    generator.percent, seed, UNITS * UNIT);
    problem->capacity = UNITS * UNIT;
    while (generator.rects->len) {
        guint i = (guint)random_below(&generator, (int)generator.rects->len);
        Rect rect = take(&generator, i);
        KilnLife life = { .first = (int64_t)rect.from[0] * UNIT,
                          .last = (int64_t)rect.to[0] * UNIT - 1,
                          .size = (int64_t)(rect.to[1] - rect.from[1]) * UNIT };
        g_ptr_array_add(problem->ids, g_strdup_printf("%u", problem->lives->len));
        g_array_append_val(problem->lives, life);
    }
    g_array_unref(generator.rects);
    return problem;
}
