/* SPDX-License-Identifier: Apache-2.0 */
/* lp_pool and global_lp_pool: the p-th root of the sum of |x|^p, in f64; average_pool of f64. A row
 * of results takes one tap of all its windows after the other, which costs an addition for each tap
 * of each window. Planes of global pools are folded in blocks. Padding adds nothing. Operands:
 * result, data. */
#include "backends/cpu/elementwise/typed.h"
#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/reduce/fold.h"
#include "backends/cpu/reduce/pool_windows.h"
#include "graph/base/number.h"
#include "ir/kernel.h"

#include <math.h>

enum {
    PIECE = 256, /* windows of a row, or elements of a plane, that are looked at together */
    TASK_TAPS = 1 << 14,
};

typedef struct {
    KilnCpuPool p;
    KilnDType dtype;
    size_t size;
    double power;         /* 0: of average_pool, which adds elements as they are */
    KilnCpuCastRow widen; /* NULL: of f64 */
    const char *in;
    char *out;
    int64_t length;       /* of a plane */
    int64_t rows, bundle; /* rows of a task */
} LpPool;

static double
root_of(const LpPool *l, double sum)
{
    return l->power == 1 ? sum : l->power == 2 ? sqrt(sum) : pow(sum, 1 / l->power);
}

/* --- windows --- */

#define ADD_TAPS(name, T)                                                                          \
    static void add_##name(const LpPool *l, double *restrict sums, int64_t at, int64_t n)          \
    {                                                                                              \
        const T *x = (const T *)(const void *)l->in + at;                                          \
        const int64_t stride = l->p.stride[2];                                                     \
        const double power = l->power;                                                             \
        if (power == 2) {                                                                          \
            for (int64_t i = 0; i < n; i++)                                                        \
                sums[i] += (double)x[i * stride] * (double)x[i * stride];                          \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; power == 0 && i < n; i++)                                              \
            sums[i] += (double)x[i * stride];                                                      \
        for (int64_t i = 0; power != 0 && i < n; i++) {                                            \
            const double size = fabs((double)x[i * stride]);                                       \
            sums[i] += power == 1 ? size : pow(size, power);                                       \
        }                                                                                          \
    }
ADD_TAPS(f32, float)
ADD_TAPS(f64, double)
#undef ADD_TAPS

/* The sums of windows @first to @first + @n of row @row. */
static void
sum_windows(const LpPool *l, int64_t row, int64_t first, int64_t n, double *sums)
{
    const KilnCpuPool *p = &l->p;
    const int64_t y = row % p->out[1], z = row / p->out[1] % p->out[0];
    const int64_t plane = row / p->out[1] / p->out[0];
    for (int64_t i = 0; i < n; i++)
        sums[i] = p->average ? -0.0 : 0; /* an average of nothing but -0 is -0 */
    for (int64_t k = 0; k < times3(p->kernel); k++) {
        const int64_t k2 = k % p->kernel[2], k1 = k / p->kernel[2] % p->kernel[1];
        const int64_t k0 = k / p->kernel[2] / p->kernel[1];
        const int64_t i0 = z * p->stride[0] + k0 * p->dilation[0] - p->pad[0];
        const int64_t i1 = y * p->stride[1] + k1 * p->dilation[1] - p->pad[1];
        if (i0 < 0 || i0 >= p->in[0] || i1 < 0 || i1 >= p->in[1])
            continue;
        const KilnCpuSpan span = kiln_cpu_pool_span(p, k2, first, n);
        const int64_t x = (first + span.begin) * p->stride[2] + k2 * p->dilation[2] - p->pad[2];
        const int64_t at = plane * times3(p->in) + (i0 * p->in[1] + i1) * p->in[2] + x;
        if (span.begin == span.end)
            continue;
        if (l->dtype == KILN_DTYPE_f64)
            add_f64(l, sums + span.begin, at, span.end - span.begin);
        else
            add_f32(l, sums + span.begin, at, span.end - span.begin);
    }
}

/* Taps that an average of window @at of dim @d is divided by; 0: it has no element. */
static int64_t
taps_of(const KilnCpuPool *p, int d, int64_t at)
{
    KilnCpuPool inside = *p;
    inside.count_padding = false;
    return kiln_cpu_pool_taps(&inside, d, at) == 0 ? 0 : kiln_cpu_pool_taps(p, d, at);
}

/* Stores the results of @n windows of row @row from @first on. @taps: of each in its row. */
static void
store_windows(const LpPool *l, int64_t row, int64_t first, int64_t n, const double *sums,
              const int64_t *taps)
{
    const KilnCpuPool *p = &l->p;
    const int64_t y = row % p->out[1], z = row / p->out[1] % p->out[0];
    const int64_t to = row * p->out[2] + first;
    const int64_t rows = p->average ? taps_of(p, 0, z) * taps_of(p, 1, y) : 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t count = p->average ? rows * taps[i] : 0;
        const double mean = count == 0 ? 0 : sums[i] / (double)count;
        kiln_element_store_f64(l->dtype, l->out, to + i, p->average ? mean : root_of(l, sums[i]));
    }
}

static void
run_rows(const void *data, int64_t task, int thread)
{
    (void)thread;
    const LpPool *l = data;
    const int64_t end = min_of((task + 1) * l->bundle, l->rows), width = l->p.out[2];
    for (int64_t first = 0; first < width; first += PIECE) {
        const int64_t n = min_of(PIECE, width - first);
        int64_t taps[PIECE];
        for (int64_t i = 0; l->p.average && i < n; i++)
            taps[i] = taps_of(&l->p, 2, first + i);
        for (int64_t row = task * l->bundle; row < end; row++) {
            double sums[PIECE];
            sum_windows(l, row, first, n, sums);
            store_windows(l, row, first, n, sums, taps);
        }
    }
}

bool
kiln_cpu_lp_pool_supports(const KilnInstr *instr)
{
    const KilnType *in = cpu_type(instr, 1);
    if (in->rank < 3 || in->rank > 5 || in->layout || cpu_type(instr, 0)->layout)
        return false;
    const KilnCpuPool p = kiln_cpu_pool_of(instr);
    int64_t taps = p.kernel[0];
    return !__builtin_mul_overflow(taps, p.kernel[1], &taps) &&
           !__builtin_mul_overflow(taps, p.kernel[2], &taps);
}

static LpPool
pool_of(const KilnKernelArgs *args, int64_t power)
{
    const KilnDType dtype = cpu_type(args->instr, 1)->dtype;
    return (LpPool){ .dtype = dtype,
                     .size = kiln_dtype_size(dtype),
                     .power = (double)power,
                     .widen = kiln_cpu_typed(KILN_CPU_ISA_AUTO)->cast[dtype][KILN_DTYPE_f64],
                     .in = args->data[1],
                     .out = args->data[0] };
}

static const char *
run_windows(const KilnKernelArgs *args, int64_t power)
{
    LpPool l = pool_of(args, power);
    l.p = kiln_cpu_pool_of(args->instr);
    if (kiln_type_elements(cpu_type(args->instr, 0)) == 0)
        return NULL;
    l.rows = l.p.planes * l.p.out[0] * l.p.out[1];
    l.bundle = units_per_task(TASK_TAPS, l.p.out[2] * times3(l.p.kernel));
    kiln_cpu_parallel(ceil_div(l.rows, l.bundle), args->threads, run_rows, &l);
    return NULL;
}

const char *
kiln_cpu_lp_pool(const KilnKernelArgs *args)
{
    return run_windows(args, kiln_instr_attrs(args->instr, lp_pool)->p);
}

const char *
kiln_cpu_average_windows(const KilnKernelArgs *args)
{
    return run_windows(args, 0);
}

/* --- planes --- */

static double
sum_plane(const LpPool *l, int64_t plane)
{
    const KilnCpuFold fold = l->power == 1 ? KILN_CPU_FOLD_sizes : KILN_CPU_FOLD_squares;
    const KilnCpuFoldLoop loop = kiln_cpu_folds()->row[fold][KILN_DTYPE_f64];
    const bool quick = l->power == 1 || l->power == 2;
    KilnCpuFolded sum = { .f = 0 };
    for (int64_t i = 0; i < l->length; i += PIECE) {
        double wide[PIECE];
        const int64_t n = min_of(PIECE, l->length - i);
        const void *x = l->in + (size_t)(plane * l->length + i) * l->size;
        if (l->widen)
            l->widen(wide, x, n);
        const double *values = l->widen ? wide : x;
        for (int64_t k = 0; !quick && k < n; k++)
            sum.f += pow(fabs(values[k]), l->power);
        if (quick)
            loop(values, n, &sum);
    }
    return sum.f;
}

static void
run_planes(const void *data, int64_t task, int thread)
{
    (void)thread;
    const LpPool *l = data;
    const int64_t end = min_of((task + 1) * l->bundle, l->rows);
    for (int64_t plane = task * l->bundle; plane < end; plane++)
        kiln_element_store_f64(l->dtype, l->out, plane, root_of(l, sum_plane(l, plane)));
}

bool
kiln_cpu_global_lp_pool_supports(const KilnInstr *instr)
{
    return !cpu_type(instr, 0)->layout && !cpu_type(instr, 1)->layout;
}

const char *
kiln_cpu_global_lp_pool(const KilnKernelArgs *args)
{
    const KilnType *in = cpu_type(args->instr, 1);
    LpPool l = pool_of(args, kiln_instr_attrs(args->instr, global_lp_pool)->p);
    l.rows = in->dims[0] * in->dims[1];
    l.length = l.rows ? kiln_type_elements(in) / l.rows : 0;
    l.bundle = units_per_task(TASK_TAPS, l.length);
    kiln_cpu_parallel(ceil_div(l.rows, l.bundle), args->threads, run_planes, &l);
    return NULL;
}
