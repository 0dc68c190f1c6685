/* SPDX-License-Identifier: Apache-2.0 */
/* max_pool of bytes, plain ones or quantized with the same parameters on both sides, one to three
 * spatial dims.
 *
 * Windows of a row that lie inside the image are computed side by side (byte_windows.h), the others
 * one by one; in three dims plane by plane. The least is what windows without an element give.
 * Operands: result, data. */
#include "backends/cpu/extents.h"
#include "backends/cpu/integer/byte_windows.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/reduce/pool_windows.h"
#include "ir/kernel.h"

#include <string.h>

enum {
    FLIP = 0x80,
    TASK_BYTES = 1 << 16, /* about what a task should read */
    CHUNK = 256,
};

typedef struct {
    KilnCpuPool p;
    KilnCpuLargestBytes largest;
    const uint8_t *in;
    uint8_t *out, flip;
    int64_t first, end; /* windows of a row that hang over neither end of it */
    int64_t bundle;     /* planes of the result of a task */
} Run;

/* Which taps of window @at of dim @d lie inside, and where the first of them is. */
typedef struct {
    int64_t n, start;
} Taps;

static Taps
taps_inside(const KilnCpuPool *p, int d, int64_t at)
{
    const int64_t start = at * p->stride[d] - p->pad[d], step = p->dilation[d];
    if (start >= 0 && start + (p->kernel[d] - 1) * step < p->in[d])
        return (Taps){ p->kernel[d], start }; /* most: without a division */
    const int64_t first = start < 0 ? ceil_div(-start, step) : 0;
    const int64_t end = p->in[d] > start ? ceil_div(p->in[d] - start, step) : 0;
    return (Taps){ min_of(end, p->kernel[d]) - first, start + first * step };
}

/* Of windows of @planes planes, @pitch bytes from one to the next; where there is none, the least.
 */
static void
largest_windows(const Run *r, KilnCpuByteWindows w, int64_t planes, int64_t pitch)
{
    if (planes <= 0 || w.rows <= 0 || w.taps <= 0) {
        memset(w.out, r->flip, (size_t)w.n);
        return;
    }
    r->largest(&w);
    for (int64_t k = 1; k < planes; k++) {
        for (int64_t i = 0; i < w.n; i += CHUNK) {
            uint8_t more[CHUNK];
            KilnCpuByteWindows part = w;
            part.x += k * pitch + i * w.stride;
            part.out = more;
            part.n = min_of(w.n - i, CHUNK);
            r->largest(&part);
            for (int64_t j = 0; j < part.n; j++) {
                uint8_t *best = &w.out[i + j];
                *best = (more[j] ^ r->flip) > (*best ^ r->flip) ? more[j] : *best;
            }
        }
    }
}

/* Row @y of the result, from the image at @x, whose planes under the row's windows are @planes. */
static void
pool_row(const Run *r, const uint8_t *x, Taps planes, int64_t y, uint8_t *out)
{
    const KilnCpuPool *p = &r->p;
    const int64_t plane = p->in[1] * p->in[2];
    const Taps rows = taps_inside(p, 1, y);
    const int64_t pitch = p->dilation[0] * plane;
    KilnCpuByteWindows w = { .rows = rows.n,
                             .pitch = p->dilation[1] * p->in[2],
                             .stride = p->stride[2],
                             .dilation = p->dilation[2],
                             .flip = r->flip };
    /* The rows behind it are computed behind it. */
    const int64_t rest = (p->out[1] - y) * p->out[2];
    x += planes.start * plane + rows.start * p->in[2];
    for (int64_t q = 0; q < p->out[2]; q += w.n) {
        const Taps taps = taps_inside(p, 2, q);
        w.taps = taps.n;
        w.n = q >= r->first && q < r->end ? r->end - q : 1;
        w.out = out + q;
        w.x = x + taps.start;
        w.spare = planes.n == 1 ? rest - q - w.n : 0;
        largest_windows(r, w, planes.n, pitch);
    }
}

static void
run_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Run *r = data;
    const KilnCpuPool *p = &r->p;
    const int64_t image_in = p->in[0] * p->in[1] * p->in[2];
    const int64_t end = min_of((task + 1) * r->bundle, p->planes * p->out[0]);
    for (int64_t i = task * r->bundle; i < end; i++) {
        const int64_t number = i / p->out[0];
        const int64_t image = number / p->channels, channel = number % p->channels;
        const uint8_t *x = r->in + image * p->in_image + channel * image_in;
        const Taps planes = taps_inside(p, 0, i % p->out[0]);
        uint8_t *out = r->out + image * p->out_image +
                       (i - image * p->channels * p->out[0]) * p->out[1] * p->out[2];
        for (int64_t y = 0; y < p->out[1]; y++, out += p->out[2])
            pool_row(r, x, planes, y, out);
    }
}

static void
find_inside(Run *r)
{
    const KilnCpuPool *p = &r->p;
    const int64_t reach = (p->kernel[2] - 1) * p->dilation[2] - p->pad[2];
    r->first = min_of(ceil_div(p->pad[2], p->stride[2]), p->out[2]);
    r->end = p->in[2] > reach ? min_of(ceil_div(p->in[2] - reach, p->stride[2]), p->out[2]) : 0;
}

bool
kiln_cpu_pool_bytes_supports(const KilnInstr *instr)
{
    const KilnType *out = cpu_type(instr, 0), *in = cpu_type(instr, 1);
    if (in->rank < 3 || in->rank > 5 || !cpu_all_plain(instr, in->dtype) || cpu_type(instr, 2) ||
        !kiln_quant_equal(out->quant, in->quant))
        return false;
    const KilnCpuPool p = kiln_cpu_pool_of(instr);
    return p.kernel[0] > 0 && p.kernel[1] > 0 && p.kernel[2] > 0 && p.pad[2] >= 0;
}

const char *
kiln_cpu_pool_bytes(const KilnKernelArgs *args)
{
    Run r = { .p = kiln_cpu_pool_of(args->instr),
              .largest = kiln_cpu_largest_bytes(),
              .in = args->data[1],
              .out = args->data[0],
              .flip = cpu_type(args->instr, 1)->dtype == KILN_DTYPE_i8 ? FLIP : 0 };
    const KilnCpuPool *p = &r.p;
    const int64_t reads = p->in[1] * p->in[2] * p->kernel[0];
    find_inside(&r);
    r.bundle = units_per_task(TASK_BYTES, reads);
    kiln_cpu_parallel(ceil_div(p->planes * p->out[0], r.bundle), args->threads, run_task, &r);
    return NULL;
}
