/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/integer/integer_planes.h"

#include "backends/cpu/extents.h"
#include "backends/cpu/movement/move_bytes.h"
#include "backends/cpu/parallel.h"

#include <math.h>
#include <string.h>

enum {
    FLIP = 0x80,          /* between s8 and u8 */
    CHUNK = 1024,         /* pixels whose channels are put side by side at once */
    FEW = 8,              /* bytes that need no call */
    WIDE = 16,            /* a step of copies that write too much */
    WHOLE = 16,           /* what is put side by side is a multiple of that */
    TASK_BYTES = 1 << 14, /* about what a task should copy */
    /* The widest load, and a tile of pixels of the longest stride of singles. */
    SLACK = 64 + KILN_INTEGER_MAX_COLS * KILN_INTEGER_GROUP,
};

/* --- geometry --- */

static int64_t
last_tap(const KilnIntegerConv *c, int d)
{
    return (c->kernel[d] - 1) * c->dilation[d];
}

double
kiln_integer_planes_size(const KilnIntegerConv *c)
{
    double bytes = (double)c->ic * KILN_INTEGER_GROUP;
    for (int d = 0; d < 2; d++) {
        const double last = (double)(c->kernel[d] - 1) * (double)c->dilation[d];
        const double stride = (double)c->stride[d];
        bytes *= fmin(last + 1, stride) * (last / stride + (double)c->out[d]);
    }
    return bytes;
}

/* Groups of one channel, whose bytes for four results lie close enough together. */
static bool
is_single(const KilnIntegerConv *c)
{
    const int64_t taps = min_of(c->kernel[1], KILN_INTEGER_GROUP), most = KILN_INTEGER_SLIDE;
    return c->ic == c->groups && c->oc == c->groups && c->stride[1] <= most / 3 &&
           (taps == 1 || c->dilation[1] <= most) &&
           3 * c->stride[1] + (taps - 1) * c->dilation[1] <= most &&
           c->stride[1] <= KILN_INTEGER_GROUP;
}

KilnIntegerPlanes
kiln_integer_planes(const KilnIntegerConv *c)
{
    KilnIntegerPlanes p = { .single = is_single(c) };
    int64_t extent[2];
    for (int d = 0; d < 2; d++) {
        p.phases[d] = min_of(last_tap(c, d) + 1, c->stride[d]);
        extent[d] = last_tap(c, d) / c->stride[d] + c->out[d];
    }
    if (p.single)
        p.phases[1] = 1;
    p.rows = extent[0];
    p.pitch = extent[1];
    p.step = p.single ? c->stride[1] : KILN_INTEGER_GROUP;
    p.plane = p.rows * p.pitch * p.step;
    p.unit = p.plane * p.phases[0] * p.phases[1];
    p.units = p.single ? 1 : ceil_div(c->ic / c->groups, KILN_INTEGER_GROUP);
    p.results = (c->out[0] - 1) * p.pitch + c->out[1];
    p.taps_of_row = p.single ? ceil_div(c->kernel[1], KILN_INTEGER_GROUP) : c->kernel[1];
    p.end = c->groups * p.units * p.unit + SLACK;
    return p;
}

int64_t
kiln_integer_planes_groups(const KilnIntegerConv *c, const KilnIntegerPlanes *p)
{
    return p->units * c->kernel[0] * p->taps_of_row;
}

int64_t
kiln_integer_planes_weight(const KilnIntegerConv *c, const KilnIntegerPlanes *p, int64_t group,
                           int64_t i)
{
    const int64_t of_unit = c->kernel[0] * p->taps_of_row, tap = group % of_unit;
    if (p->single) {
        const int64_t kx = tap % p->taps_of_row * KILN_INTEGER_GROUP + i;
        return kx < c->kernel[1] ? tap / p->taps_of_row * c->kernel[1] + kx : -1;
    }
    const int64_t channel = group / of_unit * KILN_INTEGER_GROUP + i;
    return channel < c->ic / c->groups ? channel * of_unit + tap : -1;
}

void
kiln_integer_planes_find_taps(const KilnIntegerConv *c, const KilnIntegerPlanes *p, int64_t *taps)
{
    const int64_t row = p->pitch * p->step;
    for (int64_t unit = 0; unit < p->units; unit++) {
        for (int64_t ky = 0; ky < c->kernel[0]; ky++) {
            const int64_t y = ky * c->dilation[0];
            const int64_t plane = unit * p->unit + y % c->stride[0] * p->phases[1] * p->plane;
            for (int64_t k = 0; k < p->taps_of_row; k++) {
                const int64_t x = k * (p->single ? KILN_INTEGER_GROUP : 1) * c->dilation[1];
                *taps++ =
                    plane + y / c->stride[0] * row +
                    (p->single ? x : x % c->stride[1] * p->plane + x / c->stride[1] * p->step);
            }
        }
    }
}

KilnIntegerSlide
kiln_integer_planes_slide(const KilnIntegerConv *c)
{
    const int taps = (int)min_of(c->kernel[1], KILN_INTEGER_GROUP);
    KilnIntegerSlide s = { .stride = c->stride[1] };
    for (int i = 0; i < 16; i++)
        s.words[i] = (int32_t)c->stride[1] * (i / 4) + i % 4;
    for (int i = 0; i < 64; i++) {
        const int pixel = i / 4 % 4,
                  k = i % 4 < taps ? i % 4 : 0; /* any byte beside a weight of 0 */
        s.bytes[i] = (int8_t)(pixel * (int)c->stride[1] + (k ? k * (int)c->dilation[1] : 0));
    }
    return s;
}

/* --- copying --- */

/* What is written of rows of a plane, in bytes from the begin of each: copied from @at on, blank in
 * front and behind. */
typedef struct {
    int64_t left, at, n, right;
    int64_t from,
        from_row;  /* where it lies in a row that it is copied from, and how long that is */
    int64_t exact; /* last rows that may not be copied wide; -1: all */
} Part;

typedef struct {
    const KilnIntegerConv *c;
    const KilnIntegerPlanes *p;
    const KilnIntegerKernels *kernels;
    const uint8_t *x;
    uint8_t *to, zero, bit;    /* zero as u8; what makes u8 of a stored byte */
    uint8_t zeros[FEW];        /* of these */
    int64_t size;              /* bytes of an element: a quad, or a single */
    int64_t all_rows, rows, n; /* of the padded image; of a task; tasks of a unit */
    Part singles;              /* of every row of them */
} Fill;

static void
blank(const Fill *f, uint8_t *to, int64_t n)
{
    if (n > FEW) {
        memset(to, f->zero, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        to[i] = f->zero;
}

/* Which of a row's @n elements lie in columns @begin … @end - 1, where element i is column
 * @first + i * @step. */
typedef struct {
    int64_t begin, end;
} Span;

static Span
span_of(int64_t begin, int64_t end, int64_t first, int64_t step, int64_t n)
{
    Span s = { begin > first ? ceil_div(begin - first, step) : 0,
               end > first ? ceil_div(end - first, step) : 0 };
    s.begin = min_of(s.begin, n);
    s.end = s.end < s.begin ? s.begin : min_of(s.end, n);
    return s;
}

/* Rows of the padded image in the first plane of their phase, one after the other. */
typedef struct {
    uint8_t *at;
    int64_t phase, phases, plane; /* of the row; of the stride; bytes from one to the next */
    int64_t row;                  /* bytes */
} Rows;

static Rows
rows_from(const Fill *f, int64_t unit, int64_t row)
{
    const KilnIntegerPlanes *p = f->p;
    Rows r = { .phase = row % f->c->stride[0],
               .phases = f->c->stride[0],
               .plane = p->phases[1] * p->plane,
               .row = p->pitch * p->step };
    r.at = f->to + unit * p->unit + r.phase * r.plane + row / r.phases * r.row;
    return r;
}

static void
next(Rows *r)
{
    r->at += r->plane;
    if (++r->phase == r->phases) {
        r->phase = 0;
        r->at += r->row - r->phases * r->plane;
    }
}

static void
blank_rows(const Fill *f, int64_t unit, int64_t first, int64_t end)
{
    Rows rows = rows_from(f, unit, first);
    for (int64_t row = first; row < end; row++, next(&rows)) {
        for (int64_t phase = 0; phase < f->p->phases[1]; phase++)
            blank(f, rows.at + phase * f->p->plane, rows.row);
    }
}

static void
copy_elements(const Fill *f, uint8_t *to, const uint8_t *from, int64_t n)
{
    const int64_t step = f->c->stride[1];
    if (!f->p->single && step > 1)
        f->kernels->pick((uint32_t *)(void *)to, (const uint32_t *)(const void *)from, n, step);
    else if (f->p->single && f->bit)
        f->kernels->flip(to, from, n, f->bit);
    else if (n > 0)
        move_bytes(to, from, (size_t)(n * f->size));
}

static void
copy_row(const Fill *f, uint8_t *to, const uint8_t *from, const Part *part)
{
    blank(f, to, part->left);
    copy_elements(f, to + part->at, from + part->from, part->n / f->size);
    blank(f, to + part->at + part->n, part->right);
}

/* In steps, without a branch for each length: up to WIDE bytes too much are written, and read. */
static void
copy_row_wide(const Fill *f, uint8_t *to, const uint8_t *from, const Part *part, uint8_t bit)
{
    memcpy(to, f->zeros, FEW);
    for (int64_t i = 0; i < part->n; i += WIDE) {
        uint8_t bytes[WIDE];
        memcpy(bytes, from + part->from + i, WIDE);
        for (int k = 0; k < WIDE; k++)
            bytes[k] ^= bit;
        memcpy(to + part->at + i, bytes, WIDE);
    }
    memcpy(to + part->at + part->n, f->zeros, FEW);
}

/* How many rows of @row bytes lie, at least in part, between the end of one and @end bytes from its
 * begin. */
static int64_t
rows_reached(int64_t end, int64_t row)
{
    return end > row ? ceil_div(end - row, row) : 0;
}

/* What rows that are copied so write and read too much lies in rows behind them, of the same plane,
 * which are still to be written: all may be but the last ones. */
static int64_t
exact_rows(const Fill *f, const Part *part)
{
    const KilnIntegerConv *c = f->c;
    const bool contiguous = f->p->single || c->stride[1] == 1;
    if (!contiguous || part->n <= 0 || part->left > FEW || part->right > FEW)
        return -1;
    const int64_t steps = round_up(part->n, WIDE), row = f->p->pitch * f->p->step;
    const int64_t end = part->at + (steps > part->n + FEW ? steps : part->n + FEW);
    const int64_t written = rows_reached(end, row) * c->stride[0];
    const int64_t read = rows_reached(part->from + steps, part->from_row);
    return written > read ? written : read;
}

/* Columns @begin … @end - 1 of the padded image, which come from rows of those columns alone, and
 * what is left and right of the image. */
static Part
part_of(const Fill *f, int64_t phase, int64_t begin, int64_t end)
{
    const KilnIntegerConv *c = f->c;
    const int64_t step = f->p->single ? 1 : c->stride[1], size = f->size;
    const int64_t n = f->p->pitch * f->p->step / size, column = phase - c->pad[1];
    const Span s = span_of(begin, end, column, step, n);
    const bool whole = begin == 0 && end == c->in[1];
    Part part = { .left = begin == 0 ? s.begin * size : 0,
                  .at = s.begin * size,
                  .n = (s.end - s.begin) * size,
                  .right = end == c->in[1] ? (n - s.end) * size : 0,
                  .from = (column + s.begin * step - begin) * size,
                  .from_row = (end - begin) * size };
    part.exact = whole ? exact_rows(f, &part) : -1;
    return part;
}

/* @part of @n rows that lie in the image. */
static void
copy_part(const Fill *f, Rows rows, int64_t n, const uint8_t *from, const Part *part)
{
    const Part p = *part;                          /* which no byte that is written aliases */
    const uint8_t bit = f->p->single ? f->bit : 0; /* quads have it already */
    int64_t i = 0;
    for (; p.exact >= 0 && i < n - p.exact; i++, from += p.from_row, next(&rows))
        copy_row_wide(f, rows.at, from, &p, bit);
    for (; i < n; i++, from += p.from_row, next(&rows))
        copy_row(f, rows.at, from, &p);
}

/* Channels side by side, of at most CHUNK pixels; reads and writes no more than those. */
static void
make_quads(const Fill *f, const uint8_t *from, int64_t plane, int64_t channels, int64_t n,
           uint8_t *quads)
{
    static const uint8_t none[CHUNK];
    uint8_t last[KILN_INTEGER_GROUP][WHOLE], last_quads[WHOLE * KILN_INTEGER_GROUP];
    const uint8_t *rows[KILN_INTEGER_GROUP];
    const int64_t whole = n / WHOLE * WHOLE;
    for (int k = 0; k < KILN_INTEGER_GROUP; k++)
        rows[k] = k < channels ? from + k * plane : none;
    f->kernels->interleave(rows, quads, whole, f->bit);
    if (whole == n)
        return;
    for (int k = 0; k < KILN_INTEGER_GROUP; k++)
        rows[k] = memcpy(last[k], rows[k] + whole, (size_t)(n - whole));
    f->kernels->interleave(rows, last_quads, WHOLE, f->bit);
    memcpy(quads + whole * KILN_INTEGER_GROUP, last_quads,
           (size_t)((n - whole) * KILN_INTEGER_GROUP));
}

/* Rows @first … @end - 1 of the padded image, which lie in the image: some rows at once, or parts
 * of one. */
static void
copy_quads(const Fill *f, int64_t unit, int64_t first, int64_t end)
{
    const KilnIntegerConv *c = f->c;
    const int64_t plane = c->in[0] * c->in[1], width = c->in[1], of_group = c->ic / c->groups;
    const int64_t quad = unit % f->p->units * KILN_INTEGER_GROUP;
    const int64_t channels = min_of(KILN_INTEGER_GROUP, of_group - quad);
    const int64_t n_rows = width < CHUNK ? CHUNK / width : 1;
    const uint8_t *from = f->x + (unit / f->p->units * of_group + quad) * plane;
    /* Where a row of the plane is one of the image. */
    const bool straight = f->p->phases[1] == 1 && c->stride[1] == 1 && c->pad[1] == 0 &&
                          f->p->pitch == width && c->stride[0] == 1;
    _Alignas(KILN_CPU_LINE) uint8_t quads[CHUNK * KILN_INTEGER_GROUP];
    for (int64_t row = first; row < end; row += n_rows) {
        const int64_t last = min_of(end, row + n_rows);
        for (int64_t x = 0; x < width; x += CHUNK) {
            const int64_t stop = min_of(width, x + CHUNK);
            uint8_t *to = straight ? rows_from(f, unit, row).at + x * f->size : quads;
            make_quads(f, from + (row - c->pad[0]) * width + x, plane, channels,
                       (last - row) * (stop - x), to);
            for (int64_t phase = 0; !straight && phase < f->p->phases[1]; phase++) {
                const Part part = part_of(f, phase, x, stop);
                Rows rows = rows_from(f, unit, row);
                rows.at += phase * f->p->plane;
                copy_part(f, rows, last - row, quads, &part);
            }
        }
    }
}

/* Rows @first … @end - 1 of the padded image, all of which taps read. */
static void
copy_rows(const Fill *f, int64_t unit, int64_t first, int64_t end)
{
    const KilnIntegerConv *c = f->c;
    const int64_t begin = c->pad[0] > first ? c->pad[0] : first;
    const int64_t last = min_of(c->pad[0] + c->in[0], end);
    const bool empty = begin >= last || c->in[1] == 0;
    blank_rows(f, unit, first, empty ? end : begin);
    if (empty)
        return;
    blank_rows(f, unit, last, end);
    if (f->p->single)
        copy_part(f, rows_from(f, unit, begin), last - begin,
                  f->x + (unit * c->in[0] + begin - c->pad[0]) * c->in[1], &f->singles);
    else
        copy_quads(f, unit, begin, last);
}

/* Rows are numbered without those that no tap reads, which lie behind the phases of a stride. */
static void
copy_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Fill *f = data;
    const int64_t phases = f->p->phases[0], stride = f->c->stride[0];
    const int64_t end = min_of((task % f->n + 1) * f->rows, f->all_rows);
    for (int64_t row = task % f->n * f->rows; row < end;) {
        const int64_t stop = phases == stride ? end : min_of(end, (row / phases + 1) * phases);
        const int64_t first = row / phases * stride + row % phases;
        copy_rows(f, task / f->n, first, first + stop - row);
        row = stop;
    }
}

void
kiln_integer_planes_fill(const KilnIntegerConv *c, const KilnIntegerPlanes *p, const uint8_t *x,
                         int32_t zero, uint8_t *to, int threads)
{
    const int64_t units = c->groups * p->units;
    const int64_t bytes = p->phases[1] * p->pitch * p->step;
    Fill f = { .c = c, .p = p, .kernels = kiln_integer_kernels(), .x = x, .to = to };
    f.size = p->single ? 1 : KILN_INTEGER_GROUP;
    f.bit = c->x_signed ? FLIP : 0;
    f.zero = (uint8_t)zero ^ f.bit;
    f.all_rows = p->rows * p->phases[0];
    f.rows = min_of(ceil_div(TASK_BYTES, bytes + 1), f.all_rows);
    f.n = ceil_div(f.all_rows, f.rows);
    memset(f.zeros, f.zero, FEW);
    f.singles = part_of(&f, 0, 0, c->in[1]);
    memset(to + units * p->unit, 0, SLACK);
    kiln_cpu_parallel(units * f.n, threads, copy_task, &f);
}
