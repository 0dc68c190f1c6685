/* SPDX-License-Identifier: Apache-2.0 */
/* matmul and gemm of f64 and of integers of 32 and 64 bits, and conv of f64, without tails. A task
 * has some columns of a matrix: it copies them from the right operand into a panel, and multiplies
 * all rows with it. The columns of conv are windows. Operands: result, a, b; of gemm also c, which
 * is broadcast; of conv result, data, weights, bias. */
#include "backends/cpu/extents.h"
#include "backends/cpu/gemm/number_tile.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "ir/kernel.h"
#include "ir/tail.h"

#include <string.h>

enum {
    ROWS = KILN_CPU_TILE_ROWS,
    LINE = KILN_CPU_TILE_LINE,
};

/* A matrix in memory: elements between rows and between columns. */
typedef struct {
    const char *at;
    int64_t row, column;
} Matrix;

/* Extents of a conv. Missing dims stand in front with extent 1. */
typedef struct {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
} Windows;

typedef struct {
    const KilnKernelArgs *args;
    KilnDType dtype;
    int64_t size;
    int64_t m, k, n;
    int64_t columns, panels; /* of a panel, and panels of a matrix */
    Matrix a, b;
    char *out;
    int rank;                                                                   /* of the batch */
    int64_t batch[KILN_MAX_RANK], step_a[KILN_MAX_RANK], step_b[KILN_MAX_RANK]; /* matrices */
    char *scratch;
    int64_t part;                     /* bytes of a thread */
    const KilnInstrAttrs_gemm *attrs; /* NULL: matmul */
    const char *c;
    int64_t c_row, c_column;
    const Windows *windows; /* NULL: no conv, whose matrices are images by groups of channels */
    int64_t groups;
    const double *bias; /* of rows; NULL: none */
} Product;

static void
fill_panel(const Product *p, const char *b, int64_t first, int64_t n, char *panel)
{
    const size_t size = (size_t)p->size;
    if (n < p->columns && p->k > 0)
        memset(panel, 0, (size_t)(p->k * LINE));
    for (int64_t k = 0; k < p->k; k++) {
        char *to = panel + k * LINE;
        const char *from = b + (k * p->b.row + first * p->b.column) * p->size;
        if (p->b.column == 1) {
            memcpy(to, from, (size_t)n * size);
            continue;
        }
        for (int64_t j = 0; j < n; j++)
            memcpy(to + j * p->size, from + j * p->b.column * p->size, size);
    }
}

/* alpha × sum + beta × c; integers have no factors. */
static void
finish_row(const Product *p, int64_t row, int64_t first, int64_t n, char *sums)
{
    const char *c = p->c ? p->c + (row * p->c_row + first * p->c_column) * p->size : NULL;
    for (int64_t j = 0; j < n; j++) {
        const char *term = c ? c + j * p->c_column * p->size : NULL;
        if (p->dtype == KILN_DTYPE_f64) {
            const double more =
                c ? (double)p->attrs->beta * *(const double *)(const void *)term : 0;
            double *sum = (double *)(void *)sums + j;
            *sum = (double)p->attrs->alpha * *sum + more;
        } else if (c && p->size == 4) {
            ((uint32_t *)(void *)sums)[j] += *(const uint32_t *)(const void *)term;
        } else if (c) {
            ((uint64_t *)(void *)sums)[j] += *(const uint64_t *)(const void *)term;
        }
    }
}

/* As fill_panel(), from windows @first … of channels from @x on. A row of the panel is a tap. */
static void
fill_windows(const Product *p, const double *x, int64_t first, int64_t n, double *panel)
{
    const Windows *w = p->windows;
    const int64_t taps = times3(w->kernel);
    int64_t at[3][LINE / sizeof(double)];
    memset(panel, 0, (size_t)(p->k * LINE));
    for (int64_t j = 0; j < n; j++) {
        int64_t rest = first + j;
        for (int d = 2; d >= 0; d--) {
            at[d][j] = rest % w->out[d] * w->stride[d] - w->pad[d];
            rest /= w->out[d];
        }
    }
    for (int64_t k = 0; k < p->k; k++, panel += p->columns) {
        const double *plane = x + k / taps * times3(w->in);
        const int64_t k0 = k % taps / (w->kernel[1] * w->kernel[2]) * w->dilation[0];
        const int64_t k1 = k % taps / w->kernel[2] % w->kernel[1] * w->dilation[1];
        const int64_t k2 = k % w->kernel[2] * w->dilation[2];
        for (int64_t j = 0; j < n; j++) {
            const int64_t i0 = at[0][j] + k0, i1 = at[1][j] + k1, i2 = at[2][j] + k2;
            if ((uint64_t)i0 < (uint64_t)w->in[0] && (uint64_t)i1 < (uint64_t)w->in[1] &&
                (uint64_t)i2 < (uint64_t)w->in[2])
                panel[j] = plane[(i0 * w->in[1] + i1) * w->in[2] + i2];
        }
    }
}

static void
add_bias(double *sums, int64_t n, double bias)
{
    for (int64_t j = 0; j < n; j++)
        sums[j] += bias;
}

static void
run_task(const void *data, int64_t task, int thread)
{
    const Product *p = data;
    const KilnCpuNumberTiles *tiles = kiln_cpu_number_tiles();
    const int64_t first = task % p->panels * p->columns, n = min_of(p->columns, p->n - first);
    int64_t at_a = 0, at_b = 0, rest = task / p->panels;
    _Alignas(64) char sums[ROWS * LINE];
    char *panel = p->scratch + thread * p->part;
    char *out = p->out + task / p->panels * p->m * p->n * p->size;
    for (int d = p->rank - 1; d >= 0; d--) {
        at_a += rest % p->batch[d] * p->step_a[d];
        at_b += rest % p->batch[d] * p->step_b[d];
        rest /= p->batch[d];
    }
    const int64_t matrix = task / p->panels;
    if (p->windows)
        fill_windows(p,
                     (const double *)(const void *)p->b.at +
                         matrix * (p->k / times3(p->windows->kernel)) * times3(p->windows->in),
                     first, n, (double *)(void *)panel);
    else
        fill_panel(p, p->b.at + at_b * p->k * p->n * p->size, first, n, panel);
    for (int64_t i = 0; i < p->m; i += tiles->rows) {
        const KilnCpuNumberTile tile = {
            .a = p->a.at + (at_a * p->m * p->k + i * p->a.row) * p->size,
            .panel = panel,
            .out = sums,
            .a_row = p->a.row,
            .a_column = p->a.column,
            .depth = p->k,
            .rows = min_of(tiles->rows, p->m - i),
        };
        if (p->dtype == KILN_DTYPE_f64)
            tiles->f64(&tile);
        else if (p->size == 4)
            tiles->u32(&tile);
        else
            tiles->u64(&tile);
        for (int64_t r = 0; r < tile.rows; r++) {
            char *row = sums + r * LINE;
            if (p->attrs)
                finish_row(p, i + r, first, n, row);
            if (p->bias)
                add_bias((double *)(void *)row, n, p->bias[matrix % p->groups * p->m + i + r]);
            memcpy(out + ((i + r) * p->n + first) * p->size, row, (size_t)(n * p->size));
        }
    }
}

static bool
is_plain_product(const KilnInstr *instr, uint32_t operands)
{
    const KilnType *out = cpu_type(instr, 0);
    const KilnTail tail = kiln_instr_tail(instr);
    for (uint32_t i = 0; i < operands; i++) {
        const KilnType *type = cpu_type(instr, i);
        if (type && (type->layout || type->dtype != out->dtype))
            return false;
    }
    return !tail.residual && tail.activation == KILN_N_INSTRS;
}

static void
run(Product *p)
{
    const KilnKernelArgs *args = p->args;
    int64_t matrices = 1;
    p->dtype = cpu_type(args->instr, 0)->dtype;
    p->size = (int64_t)kiln_dtype_size(p->dtype);
    p->out = args->data[0];
    p->a.at = args->data[p->windows ? 2 : 1];
    p->b.at = args->data[p->windows ? 1 : 2];
    p->scratch = args->scratch;
    p->part = p->k * LINE;
    p->columns = LINE / p->size;
    p->panels = ceil_div(p->n, p->columns);
    for (int d = 0; d < p->rank; d++)
        matrices *= p->batch[d];
    if (p->m > 0)
        kiln_cpu_parallel(matrices * p->panels, args->threads, run_task, p);
}

/* --- matmul --- */

bool
kiln_cpu_matmul_number_supports(const KilnInstr *instr)
{
    return is_plain_product(instr, 3);
}

static size_t
scratch_for(int64_t depth, int threads)
{
    return (size_t)threads * (size_t)depth * LINE;
}

size_t
kiln_cpu_matmul_number_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    const KilnType *a = cpu_type(instr, 1);
    return scratch_for(a->dims[a->rank - 1], threads);
}

/* Matrices of @type between neighbours along each dim of the batch, which it is aligned with at the
 * right. */
static void
batch_steps(const Product *p, const KilnType *type, int64_t steps[KILN_MAX_RANK])
{
    const int rank = type->rank > 2 ? type->rank - 2 : 0;
    int64_t step = 1;
    for (int d = p->rank - 1; d >= 0; d--) {
        const int from = d - (p->rank - rank);
        const int64_t dim = from < 0 ? 1 : type->dims[from];
        steps[d] = dim == 1 ? 0 : step;
        step *= dim;
    }
}

/* numpy's: an operand of one dim is a row on the left, a column on the right. */
const char *
kiln_cpu_matmul_number(const KilnKernelArgs *args)
{
    const KilnType *out = cpu_type(args->instr, 0);
    const KilnType *a = cpu_type(args->instr, 1), *b = cpu_type(args->instr, 2);
    Product p = { .args = args,
                  .m = a->rank > 1 ? a->dims[a->rank - 2] : 1,
                  .k = a->dims[a->rank - 1],
                  .n = b->rank > 1 ? b->dims[b->rank - 1] : 1 };
    const int most = a->rank > b->rank ? a->rank : b->rank;
    p.a = (Matrix){ .row = p.k, .column = 1 };
    p.b = (Matrix){ .row = p.n, .column = 1 };
    p.rank = most > 2 ? most - 2 : 0;
    for (int d = 0; d < p.rank; d++)
        p.batch[d] = out->dims[d];
    batch_steps(&p, a, p.step_a);
    batch_steps(&p, b, p.step_b);
    run(&p);
    return NULL;
}

/* --- gemm --- */

bool
kiln_cpu_gemm_number_supports(const KilnInstr *instr)
{
    const KilnInstrAttrs_gemm *attrs = kiln_instr_attrs(instr, gemm);
    const bool plain = attrs->alpha == 1 && (!cpu_type(instr, 3) || attrs->beta == 1);
    return is_plain_product(instr, 4) && (plain || cpu_type(instr, 0)->dtype == KILN_DTYPE_f64);
}

size_t
kiln_cpu_gemm_number_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    const KilnType *a = cpu_type(instr, 1);
    return scratch_for(a->dims[kiln_instr_attrs(instr, gemm)->transA ? 0 : 1], threads);
}

const char *
kiln_cpu_gemm_number(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_gemm *attrs = kiln_instr_attrs(args->instr, gemm);
    const KilnType *out = cpu_type(args->instr, 0), *c = cpu_type(args->instr, 3);
    const KilnType *a = cpu_type(args->instr, 1), *b = cpu_type(args->instr, 2);
    Product p = { .args = args,
                  .m = out->dims[0],
                  .k = a->dims[attrs->transA ? 0 : 1],
                  .n = out->dims[1],
                  .attrs = attrs,
                  .c = c ? args->data[3] : NULL };
    p.a =
        (Matrix){ .row = attrs->transA ? 1 : a->dims[1], .column = attrs->transA ? a->dims[1] : 1 };
    p.b =
        (Matrix){ .row = attrs->transB ? 1 : b->dims[1], .column = attrs->transB ? b->dims[1] : 1 };
    if (c && c->rank > 0)
        p.c_column = c->dims[c->rank - 1] == 1 ? 0 : 1;
    if (c && c->rank > 1)
        p.c_row = c->dims[0] == 1 ? 0 : c->dims[1];
    run(&p);
    return NULL;
}

/* --- conv --- */

static Windows
windows_of(const KilnInstr *instr)
{
    const KilnInstrAttrs_conv *attrs = kiln_instr_attrs(instr, conv);
    const KilnType *out = cpu_type(instr, 0), *in = cpu_type(instr, 1), *w = cpu_type(instr, 2);
    Windows windows;
    for (int d = 0; d < 3; d++) {
        const int from = d - (5 - in->rank);
        const uint32_t i = (uint32_t)from;
        const bool missing = from < 0;
        windows.in[d] = missing ? 1 : in->dims[from + 2];
        windows.out[d] = missing ? 1 : out->dims[from + 2];
        windows.kernel[d] = missing ? 1 : w->dims[from + 2];
        windows.stride[d] = missing ? 1 : kiln_ints_at(attrs->strides, i, 1);
        windows.dilation[d] = missing ? 1 : kiln_ints_at(attrs->dilations, i, 1);
        windows.pad[d] = missing ? 0 : kiln_ints_at(attrs->pads, i, 0);
    }
    return windows;
}

bool
kiln_cpu_conv_number_supports(const KilnInstr *instr)
{
    const KilnType *in = cpu_type(instr, 1), *w = cpu_type(instr, 2);
    const int64_t groups = kiln_instr_attrs(instr, conv)->group;
    return is_plain_product(instr, 4) && in->rank >= 3 && in->rank <= 5 && groups > 0 &&
           w->dims[0] % groups == 0 && w->dims[1] * groups == in->dims[1] &&
           kiln_type_elements(w) > 0;
}

size_t
kiln_cpu_conv_number_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    const KilnType *w = cpu_type(instr, 2);
    return scratch_for(w->dims[0] ? kiln_type_elements(w) / w->dims[0] : 0, threads);
}

/* A batch of images by groups: the matrices of weights repeat with the images. */
const char *
kiln_cpu_conv_number(const KilnKernelArgs *args)
{
    const KilnType *in = cpu_type(args->instr, 1), *w = cpu_type(args->instr, 2);
    const int64_t groups = kiln_instr_attrs(args->instr, conv)->group;
    const Windows windows = windows_of(args->instr);
    Product p = { .args = args,
                  .m = w->dims[0] / groups,
                  .k = kiln_type_elements(w) / w->dims[0],
                  .n = times3(windows.out),
                  .rank = 2,
                  .batch = { in->dims[0], groups },
                  .step_a = { 0, 1 },
                  .windows = &windows,
                  .groups = groups,
                  .bias = cpu_type(args->instr, 3) ? args->data[3] : NULL };
    p.a = (Matrix){ .row = p.k, .column = 1 };
    run(&p);
    return NULL;
}
