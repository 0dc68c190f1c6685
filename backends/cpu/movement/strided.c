/* SPDX-License-Identifier: Apache-2.0 */
/* Nests of loops as pieces of two loops each. Loops are ordered by their stride in the target,
 * those that continue each other are merged, and a short contiguous run becomes one unit. What is
 * left decides the piece: rows that are contiguous on both sides (memcpy), planes that are
 * transposed, or rows with strides. All bounds follow from the nest alone. */
#include "backends/cpu/movement/strided.h"

#include "backends/cpu/extents.h"
#include "backends/cpu/movement/columns.h"
#include "backends/cpu/parallel.h"

#include <string.h>

enum {
    TASK_BYTES = 1 << 16,
    MAX_UNIT = 8,          /* bytes of a run that is copied as a unit */
    PLANE_ELEMENTS = 4096, /* of a plane's piece: both sides stay in the first-level cache */
    PLANE_SIDE = 64,
};

/* Two loops; strides in bytes. Loop 0 is the inner one. */
typedef struct {
    char *to;
    const char *from;
    int64_t n0, n1, to0, to1, from0, from1;
    const KilnCpuColumns *columns;
} Piece;

/* True where @stride bytes are as many elements of @size as there are loops for. */
static inline bool
columns_of(int64_t stride, int64_t size)
{
    return stride % size == 0 && kiln_cpu_has_columns(stride / size);
}

/* Bytes that lie side by side: one unit of n0 bytes per turn of loop 1. */
static void
runs(const Piece *p)
{
    for (int64_t j = 0; j < p->n1; j++)
        memcpy(p->to + j * p->to1, p->from + j * p->from1, (size_t)p->n0);
}

// clang-format off
#define SIZE 1
#define SIZE_LOG 0
#define UNIT uint8_t
#define LANES 16
#define LOW  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#include "backends/cpu/movement/strided_tiles.h"
#define SIZE 2
#define SIZE_LOG 1
#define UNIT uint16_t
#define LANES 8
#define LOW  0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#include "backends/cpu/movement/strided_tiles.h"
#define SIZE 4
#define SIZE_LOG 2
#define UNIT uint32_t
#define LANES 4
#define LOW  0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#include "backends/cpu/movement/strided_tiles.h"
#define SIZE 8
#define SIZE_LOG 3
#define UNIT uint64_t
#define LANES 2
#define LOW  0, 2
#define HIGH 1, 3
#include "backends/cpu/movement/strided_tiles.h"
// clang-format on

/* --- the nest in its simplest form --- */

typedef struct {
    int64_t n, to, from; /* strides in bytes */
} Loop;

typedef struct {
    int rank;
    Loop loops[KILN_CPU_MAX_LOOPS + 2]; /* from the outermost in */
    int64_t unit;
} Loops;

/* Without loops of one turn, ordered by the target's strides. False where nothing is to copy. */
static bool
order_loops(const KilnCpuNest *nest, int64_t size, Loops *out)
{
    out->rank = 0;
    out->unit = size;
    for (int d = 0; d < nest->rank; d++) {
        Loop loop = { nest->extents[d], nest->to[d] * size, nest->from[d] * size };
        if (loop.n == 0)
            return false;
        if (loop.n == 1)
            continue;
        int at = out->rank++;
        for (; at > 0 && out->loops[at - 1].to < loop.to; at--)
            out->loops[at] = out->loops[at - 1];
        out->loops[at] = loop;
    }
    return true;
}

static void
merge_loops(Loops *loops)
{
    int n = 0;
    for (int d = 0; d < loops->rank; d++) {
        Loop inner = loops->loops[d];
        Loop *outer = n > 0 ? &loops->loops[n - 1] : NULL;
        if (outer && outer->to == inner.n * inner.to && outer->from == inner.n * inner.from)
            *outer = (Loop){ outer->n * inner.n, inner.to, inner.from };
        else
            loops->loops[n++] = inner;
    }
    loops->rank = n;
}

/* --- pieces --- */

typedef struct {
    void (*copy)(const Piece *piece);
    Piece first;
    int64_t cut0, cut1; /* of a piece's two loops */
    /* Loops over pieces, from the outermost in; the last two count cuts of the piece's loops. */
    int rank;
    Loop loops[KILN_CPU_MAX_LOOPS + 2];
    int64_t pieces, pieces_per_task;
} Copy;

/* Takes the loop at @at out of the nest; one turn where there is none. */
static Loop
take_loop(Loops *loops, int at)
{
    if (at < 0)
        return (Loop){ 1, 0, 0 };
    Loop loop = loops->loops[at];
    for (int d = at + 1; d < loops->rank; d++)
        loops->loops[d - 1] = loops->loops[d];
    loops->rank--;
    return loop;
}

/* The innermost loop walks along neither side, another one along the source: a plane. */
static int
plane_loop(const Loops *loops)
{
    const Loop *inner = &loops->loops[loops->rank - 1];
    if (inner->to != loops->unit)
        return -1;
    for (int d = loops->rank - 2; d >= 0; d--) {
        if (loops->loops[d].from == loops->unit)
            return d;
    }
    return -1;
}

static void
choose_copy(Copy *copy, const Loops *loops, bool plane)
{
    switch (loops->unit) {
    case 1:
        copy->copy = plane ? plane1 : rows1;
        break;
    case 2:
        copy->copy = plane ? plane2 : rows2;
        break;
    case 4:
        copy->copy = plane ? plane4 : rows4;
        break;
    default:
        copy->copy = plane ? plane8 : rows8;
        break;
    }
}

/* How many turns of the two loops, of @unit bytes each, make a piece. */
static void
cut_piece(Copy *copy, int64_t n0, int64_t n1, int64_t unit, bool plane)
{
    if (plane) {
        copy->cut0 = n1 < PLANE_SIDE ? PLANE_ELEMENTS / n1 : PLANE_SIDE;
        copy->cut1 = n0 < PLANE_SIDE ? PLANE_ELEMENTS / n0 : PLANE_SIDE;
    } else {
        copy->cut0 = TASK_BYTES / unit;
        copy->cut1 = n0 * unit < TASK_BYTES ? TASK_BYTES / (n0 * unit) : 1;
    }
    copy->cut0 = min_of(copy->cut0, n0);
    copy->cut1 = min_of(copy->cut1, n1);
}

static void
make_pieces(Copy *copy, Loops *loops)
{
    Loop inner = take_loop(loops, loops->rank - 1);
    bool plane = false;
    int64_t unit = loops->unit;
    if (inner.to == unit && inner.from == unit && inner.n * unit > MAX_UNIT) {
        inner = (Loop){ inner.n * unit, 1, 1 };
        unit = 1;
        copy->copy = runs;
    } else {
        loops->loops[loops->rank++] = inner;
        bool whole = inner.to == unit && inner.from == unit && loops->rank > 1 &&
                     (inner.n * unit & (inner.n * unit - 1)) == 0;
        if (whole) { /* a run of 2, 4 or 8 bytes is one unit */
            take_loop(loops, loops->rank - 1);
            loops->unit = unit = inner.n * unit;
        }
        int along = plane_loop(loops);
        plane = along >= 0;
        choose_copy(copy, loops, plane);
        inner = take_loop(loops, loops->rank - 1);
        if (plane) { /* becomes the next one */
            Loop moved = take_loop(loops, along);
            loops->loops[loops->rank++] = moved;
        }
    }
    Loop outer = take_loop(loops, loops->rank - 1);
    cut_piece(copy, inner.n, outer.n, unit, plane);
    copy->first.n0 = inner.n;
    copy->first.to0 = inner.to;
    copy->first.from0 = inner.from;
    copy->first.n1 = outer.n;
    copy->first.to1 = outer.to;
    copy->first.from1 = outer.from;
    memcpy(copy->loops, loops->loops, (size_t)loops->rank * sizeof *copy->loops);
    copy->rank = loops->rank;
    copy->loops[copy->rank++] =
        (Loop){ ceil_div(outer.n, copy->cut1), copy->cut1 * outer.to, copy->cut1 * outer.from };
    copy->loops[copy->rank++] =
        (Loop){ ceil_div(inner.n, copy->cut0), copy->cut0 * inner.to, copy->cut0 * inner.from };
    copy->pieces = 1;
    for (int d = 0; d < copy->rank; d++)
        copy->pieces *= copy->loops[d].n;
    int64_t bytes = copy->cut0 * copy->cut1 * unit;
    copy->pieces_per_task = units_per_task(TASK_BYTES, bytes);
}

static void
run_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Copy *copy = data;
    int64_t index[KILN_CPU_MAX_LOOPS + 2], rest = task * copy->pieces_per_task;
    int64_t n = min_of(copy->pieces_per_task, copy->pieces - rest);
    Piece piece = copy->first;
    for (int d = copy->rank - 1; d >= 0; d--) {
        const Loop *loop = &copy->loops[d];
        index[d] = rest % loop->n;
        rest /= loop->n;
        piece.to += index[d] * loop->to;
        piece.from += index[d] * loop->from;
    }
    int last = copy->rank - 1;
    for (int64_t i = 0; i < n; i++) {
        piece.n0 = min_of(copy->cut0, copy->first.n0 - index[last] * copy->cut0);
        piece.n1 = min_of(copy->cut1, copy->first.n1 - index[last - 1] * copy->cut1);
        copy->copy(&piece);
        for (int d = last; d >= 0; d--) {
            const Loop *loop = &copy->loops[d];
            piece.to += loop->to;
            piece.from += loop->from;
            if (++index[d] < loop->n)
                break;
            piece.to -= loop->n * loop->to;
            piece.from -= loop->n * loop->from;
            index[d] = 0;
        }
    }
}

void
kiln_cpu_nest_copy(const KilnCpuNest *nest, const KilnCpuEnds *ends)
{
    Loops loops;
    if (!order_loops(nest, (int64_t)ends->size, &loops))
        return;
    merge_loops(&loops);
    if (loops.rank == 0) {
        memcpy(ends->to, ends->from, ends->size);
        return;
    }
    Copy copy = { .first = { .to = ends->to, .from = ends->from, .columns = kiln_cpu_columns() } };
    make_pieces(&copy, &loops);
    kiln_cpu_parallel(ceil_div(copy.pieces, copy.pieces_per_task), ends->threads, run_task, &copy);
}
