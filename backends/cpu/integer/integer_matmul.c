/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/integer/integer_matmul.h"

#include "backends/cpu/extents.h"
#include "backends/cpu/integer/integer_kernel.h"
#include "backends/cpu/integer/integer_store.h"
#include "backends/cpu/parallel.h"

#include <string.h>

enum {
    ROW_BLOCK = 32,  /* rows of a task: a multiple of all tiles' */
    PANEL_BLOCK = 4, /* panels of a task */
    FLIP = 0x80,     /* between s8 and u8 */
};

static int64_t
groups_of(const KilnIntegerMatmul *p)
{
    return ceil_div(p->k, KILN_INTEGER_GROUP);
}

static int64_t
panels_of(const KilnIntegerMatmul *p)
{
    const int cols = kiln_integer_kernels()->cols;
    return ceil_div(p->n, cols);
}

static int64_t
panel_size(const KilnIntegerMatmul *p)
{
    return groups_of(p) * KILN_INTEGER_GROUP * kiln_integer_kernels()->cols;
}

/* --- the right side: panels, then the sums of their columns --- */

static int64_t
sums_at(const KilnIntegerMatmul *p)
{
    return round_up(panels_of(p) * panel_size(p), 64);
}

int64_t
kiln_integer_matmul_packed_size(const KilnIntegerMatmul *p)
{
    const int64_t sums = panels_of(p) * kiln_integer_kernels()->cols * (int64_t)sizeof(int32_t);
    return sums_at(p) + round_up(sums, 64);
}

/* One panel; columns and depth beyond the matrix are 0. */
static void
pack_panel(const KilnIntegerMatmul *p, const uint8_t *b, void *packed, int64_t panel)
{
    const KilnIntegerKernels *kernels = kiln_integer_kernels();
    const int64_t cols = kernels->cols, first = panel * cols, groups = groups_of(p);
    const int64_t there = p->n - first < cols ? p->n - first : cols;
    const uint8_t bit = p->b_signed ? 0 : FLIP;
    uint8_t rows[KILN_INTEGER_GROUP][KILN_INTEGER_MAX_COLS] = { { 0 } };
    const uint8_t *from[KILN_INTEGER_GROUP] = { rows[0], rows[1], rows[2], rows[3] };
    uint8_t *to = (uint8_t *)packed + panel * panel_size(p);
    int32_t sums[KILN_INTEGER_MAX_COLS] = { 0 };
    for (int64_t g = 0; g < groups; g++) {
        for (int i = 0; i < KILN_INTEGER_GROUP; i++) {
            const int64_t k = g * KILN_INTEGER_GROUP + i;
            const bool inside = k < p->k;
            for (int64_t c = 0; c < there; c++) {
                const uint8_t byte =
                    inside ? b[k * p->b_row + (first + c) * p->b_col] ^ bit : (uint8_t)0;
                rows[i][c] = byte;
                sums[c] += (int8_t)byte;
            }
        }
        kernels->interleave(from, to + g * KILN_INTEGER_GROUP * cols, cols, 0);
    }
    memcpy((char *)packed + sums_at(p) + first * (int64_t)sizeof *sums, sums,
           (size_t)cols * sizeof *sums);
}

void
kiln_integer_matmul_pack(const KilnIntegerMatmul *p, const void *b, void *packed, KilnSlice slice)
{
    const int64_t panels = panels_of(p);
    for (int64_t i = kiln_slice_begin(slice, panels); i < kiln_slice_end(slice, panels); i++)
        pack_panel(p, b, packed, i);
}

/* --- scratch: rows, their sums, what zero points and bias add per column, packed panels --- */

typedef struct {
    int64_t row_sums, base, sums, zeros, panels, end;
} Layout;

static Layout
layout_of(const KilnIntegerMatmul *p, bool packed)
{
    const int64_t columns = panels_of(p) * kiln_integer_kernels()->cols;
    const int64_t vector = round_up(columns * (int64_t)sizeof(int32_t), 64);
    Layout l;
    l.row_sums = round_up(p->m * groups_of(p) * KILN_INTEGER_GROUP, 64);
    l.base = l.row_sums + round_up(p->m * (int64_t)sizeof(int32_t), 64);
    l.sums = l.base + vector;
    l.zeros = l.sums + vector;
    l.panels = l.zeros + vector;
    l.end = l.panels + (packed ? 0 : kiln_integer_matmul_packed_size(p));
    return l;
}

int64_t
kiln_integer_matmul_scratch_size(const KilnIntegerMatmul *p, bool packed)
{
    return layout_of(p, packed).end;
}

typedef struct {
    const KilnIntegerMatmul *p;
    const KilnIntegerArgs *args;
    const KilnIntegerKernels *kernels;
    uint8_t *rows;
    int32_t *row_sums, *base, *sums, *zeros;
    void *packed; /* in scratch; NULL where it came packed */
    const char *right;
    int64_t groups, row_blocks;
    int32_t a_zero; /* of the rows as u8 */
} Run;

static void
copy_rows(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Run *r = data;
    const int64_t pitch = r->groups * KILN_INTEGER_GROUP, k = r->p->k, first = task * ROW_BLOCK;
    const int64_t end = first + ROW_BLOCK < r->p->m ? first + ROW_BLOCK : r->p->m;
    for (int64_t i = first; i < end; i++) {
        uint8_t *to = r->rows + i * pitch;
        const uint32_t sum =
            r->kernels->flip(to, r->args->left + i * k, k, r->p->a_signed ? FLIP : 0);
        r->row_sums[i] = (int32_t)sum;
        memset(to + k, 0, (size_t)(pitch - k));
    }
}

static void
pack_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Run *r = data;
    pack_panel(r->p, r->args->right, r->packed, task);
}

/* The columns' part of (a - a_zero) * (b - b_zero), summed:
 * ab - a_zero * (sum(b) - k * b_zero) - sum(a) * b_zero. */
static void
find_columns(const Run *r)
{
    const KilnIntegerArgs *args = r->args;
    const int64_t columns = panels_of(r->p) * r->kernels->cols;
    const int32_t *right_sums = (const int32_t *)(const void *)(r->right + sums_at(r->p));
    const int32_t shift = r->p->b_signed ? 0 : FLIP;
    for (int64_t c = 0; c < columns; c++) {
        const bool there = c < r->p->n;
        const int32_t zero = there ? args->params.zeros[args->params.one_zero ? 0 : c] - shift : 0;
        r->base[c] = args->bias && there ? args->bias[c] : 0;
        r->zeros[c] = zero;
        r->sums[c] = (int32_t)((uint32_t)right_sums[c] - (uint32_t)r->p->k * (uint32_t)zero);
    }
}

/* A tile's rows and what is stored of them. */
static void
run_tile(const Run *r, int64_t first, int64_t panel)
{
    const KilnIntegerKernels *kernels = r->kernels;
    const int64_t cols = kernels->cols, column = panel * cols;
    const int64_t n_rows = r->p->m - first < kernels->rows ? r->p->m - first : kernels->rows;
    const int64_t n = r->p->n - column < cols ? r->p->n - column : cols;
    const uint8_t *rows[KILN_INTEGER_MAX_ROWS];
    _Alignas(64) int32_t sums[KILN_INTEGER_MAX_ROWS * KILN_INTEGER_MAX_COLS];
    for (int i = 0; i < kernels->rows; i++) {
        const int64_t row = first + (i < n_rows ? i : n_rows - 1);
        rows[i] = r->rows + row * r->groups * KILN_INTEGER_GROUP;
    }
    const int8_t *at = (const int8_t *)r->right + panel * panel_size(r->p);
    kernels->tile((int)n_rows, n, rows, at, r->groups, sums);
    for (int64_t i = 0; i < n_rows; i++) {
        const KilnIntegerFix fix = { .row_zero = r->a_zero,
                                     .row_sum = r->row_sums[first + i],
                                     .base = r->base + column,
                                     .sums = r->sums + column,
                                     .zeros = r->zeros + column };
        kernels->fix(sums + i * cols, n, &fix);
        const size_t to = (size_t)((first + i) * r->p->n + column);
        kiln_integer_store(kernels, &r->args->params.store,
                           (char *)r->args->out +
                               to * kiln_integer_out_size(&r->args->params.store),
                           sums + i * cols, n, column);
    }
}

static void
run_block(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Run *r = data;
    const int64_t first_row = task % r->row_blocks * ROW_BLOCK;
    const int64_t first_panel = task / r->row_blocks * PANEL_BLOCK, panels = panels_of(r->p);
    for (int64_t panel = first_panel; panel < panels && panel < first_panel + PANEL_BLOCK;
         panel++) {
        for (int64_t row = first_row; row < r->p->m && row < first_row + ROW_BLOCK;
             row += r->kernels->rows)
            run_tile(r, row, panel);
    }
}

void
kiln_integer_matmul_run(const KilnIntegerMatmul *p, const KilnIntegerArgs *args)
{
    const Layout at = layout_of(p, args->packed != NULL);
    char *scratch = args->scratch;
    Run r = { .p = p,
              .args = args,
              .kernels = kiln_integer_kernels(),
              .rows = (uint8_t *)scratch,
              .row_sums = (int32_t *)(void *)(scratch + at.row_sums),
              .base = (int32_t *)(void *)(scratch + at.base),
              .sums = (int32_t *)(void *)(scratch + at.sums),
              .zeros = (int32_t *)(void *)(scratch + at.zeros),
              .packed = args->packed ? NULL : scratch + at.panels,
              .groups = groups_of(p),
              .row_blocks = ceil_div(p->m, ROW_BLOCK),
              .a_zero = args->params.left_zero + (p->a_signed ? FLIP : 0) };
    r.right = args->packed ? args->packed : r.packed;
    kiln_cpu_parallel(r.row_blocks, args->threads, copy_rows, &r);
    if (r.packed)
        kiln_cpu_parallel(panels_of(p), args->threads, pack_task, &r);
    find_columns(&r);
    const int64_t panel_blocks = round_up(panels_of(p), PANEL_BLOCK) / PANEL_BLOCK;
    kiln_cpu_parallel(r.row_blocks * panel_blocks, args->threads, run_block, &r);
}
