/* SPDX-License-Identifier: Apache-2.0 */
/* The loops around the register tile. A task is one block of rows × columns of one batch item; it
 * packs what it needs into its thread's scratch, sums over the blocks of depth in order, and is the
 * only one to write its part of the output. */
#include "backends/cpu/gemm/gemm_core.h"

#include "backends/cpu/extents.h"
#include "backends/cpu/gemm/gemm_exact.h"
#include "backends/cpu/gemm/gemm_nbits.h"
#include "backends/cpu/gemm/gemm_pack.h"
#include "backends/cpu/parallel.h"

#include <math.h>
#include <stddef.h>

/* A side during a task: panels [first, first + count) of one block of depth at panels. */
typedef struct {
    const KilnGemmCut *cut;
    KilnGemmSide side;
    int64_t first, end;
    float *block;         /* task-owned panels, or NULL when they are packed or read in place */
    const void *packed;   /* the whole packed side */
    int64_t block_offset; /* pitches in front of the first panel */
    int64_t start;        /* of that panel */
} TaskSide;

typedef struct {
    const KilnGemmCall *call;
    TaskSide rows, cols;
    float *out, *stage;
    const float *bias, *residual;
    int64_t stage_pitch;
    int64_t row0, col0; /* of the block */
} Task;

typedef struct {
    int64_t rows, cols, out, bias, residual;
} BatchOffsets;

static BatchOffsets
batch_offsets(const KilnGemmBatch *batch, int64_t item)
{
    BatchOffsets o = { 0, 0, 0, 0, 0 };
    for (int d = batch->rank - 1; d >= 0; d--) {
        int64_t i = item % batch->dims[d];
        item /= batch->dims[d];
        o.rows += i * batch->rows[d];
        o.cols += i * batch->cols[d];
        o.out += i * batch->out[d];
        o.bias += i * batch->bias[d];
        o.residual += i * batch->residual[d];
    }
    return o;
}

static KilnGemmSide
side_at(KilnGemmSide side, int64_t offset)
{
    side.base = (const char *)side.base + kiln_gemm_element_size(side.storage) * offset;
    return side;
}

static float *
whole_packed(const KilnGemmCall *call, bool rows, int64_t item)
{
    const KilnGemmPlan *p = call->plan;
    return rows ? call->scratch + p->whole_rows / p->batch * item
                : call->scratch + p->whole_rows + p->whole_cols / p->batch * item;
}

/* Packing one panel of a side that is packed before the tasks, over all blocks of depth. */
static void
pack_whole_panel(const KilnGemmCall *call, bool rows, int64_t task)
{
    const KilnGemmPlan *p = call->plan;
    const KilnGemmCut *cut = rows ? &p->rows : &p->cols;
    int64_t item = task / cut->panels, panel = task % cut->panels;
    BatchOffsets offsets = batch_offsets(&call->batch, item);
    KilnGemmSide side =
        rows ? side_at(call->rows, offsets.rows) : side_at(call->cols, offsets.cols);
    for (int64_t k = 0; k < p->depth; k += p->depth_block)
        kiln_gemm_pack_into(p, cut, &side, (KilnGemmSpot){ panel, k },
                            whole_packed(call, rows, item));
}

static void
pack_rows_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    pack_whole_panel(data, true, task);
}

static void
pack_cols_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    pack_whole_panel(data, false, task);
}

/* Column panels that can be read in place stay where they are. */
static KilnGemmDirect
direct_panel(const KilnGemmPlan *p, const TaskSide *s, const KilnGemmPanel *panel, int64_t k)
{
    if (!s->block || s->cut != &p->cols)
        return (KilnGemmDirect){ .base = NULL };
    return kiln_gemm_direct(p, &s->side, panel, k);
}

static void
pack_block(const KilnGemmPlan *p, const TaskSide *s, KilnGemmDepth depth)
{
    float *dst = s->block;
    for (int64_t i = s->first; dst && i < s->end; i++) {
        KilnGemmPanel panel = kiln_gemm_panel(p, s->cut, i);
        if (!direct_panel(p, s, &panel, depth.start).base)
            kiln_gemm_pack_panel(p, &s->side, &panel, depth, dst);
        dst += panel.pitch * depth.size;
    }
}

static const void *
panel_data(const TaskSide *s, const KilnGemmPanel *panel, KilnGemmDepth depth)
{
    if (s->block)
        return s->block + depth.size * (panel->offset - s->block_offset);
    return (const char *)s->packed + kiln_gemm_packed_offset(s->cut, panel, depth);
}

/* A row whose elements lie side by side is a panel as it is. */
static bool
row_in_place(const KilnGemmPlan *p, const KilnGemmSide *rows)
{
    return p->rows.extent == 1 && rows->kind == KILN_GEMM_STRIDED &&
           rows->storage == KILN_GEMM_F32 && rows->stride_k == 1 &&
           (uintptr_t)rows->base % sizeof(float) == 0;
}

/* Where a column panel's block of depth is, and in *@exact how it is stored, if not as floats. */
static const void *
col_data(const Task *t, const KilnGemmPanel *col, KilnGemmDepth depth,
         const KilnGemmExactBlock **exact)
{
    const KilnGemmPlan *p = t->call->plan;
    if (p->cols.storage == KILN_GEMM_NBITS)
        return (const char *)t->cols.packed +
               col->offset * kiln_gemm_nbits_column(t->cols.side.nbits, p->depth);
    if (p->cols.storage != KILN_GEMM_EXACT)
        return panel_data(&t->cols, col, depth);
    const KilnGemmExactBlock *head = t->cols.packed;
    *exact = kiln_gemm_exact_block(p, head, col->start / p->kernels->max_cols, depth.start);
    return kiln_gemm_exact_data(head, *exact);
}

/* The panel behind @col, where the two make a pair: few rows, and both whole and packed. */
static bool
pair_panel(const Task *t, int64_t j, const KilnGemmPanel *col, KilnGemmPanel *beside)
{
    const KilnGemmPlan *p = t->call->plan;
    bool packed = !t->cols.block && p->kernels->pair[p->cols.storage];
    if (!packed || p->rows.extent > p->kernels->pair_rows || j + 1 >= t->cols.end)
        return false;
    *beside = kiln_gemm_panel(p, &p->cols, j + 1);
    return col->pitch == beside->pitch && col->pitch == p->kernels->max_cols;
}

/* What is read behind the blocks of column panel @j, and of the one beside, if it is a pair: the
 * tile asks for it. */
static void
find_soon(const Task *t, int64_t j, KilnGemmDepth depth, KilnGemmTile *tile)
{
    const KilnGemmPlan *p = t->call->plan;
    const KilnGemmExactBlock *head = t->cols.packed;
    int64_t k = depth.start;
    j += tile->beside ? 2 : 1;
    if (j >= t->cols.end) {
        j = t->cols.first;
        k += depth.size;
    }
    tile->soon = tile->soon_beside = tile->b; /* of the last ones */
    if (k >= p->depth)
        return;
    const KilnGemmExactBlock *next = kiln_gemm_exact_block(p, head, j, k);
    tile->soon = tile->soon_beside = kiln_gemm_exact_data(head, next);
    if (j + 1 < t->cols.end)
        tile->soon_beside = kiln_gemm_exact_data(head, next + 1);
}

/* All row panels against one column panel, or the two of a pair: the innermost loop, which keeps
 * the panel in cache. */
static void
run_col_panel(const Task *t, const KilnGemmPanel *col, const KilnGemmPanel *beside,
              KilnGemmDepth depth)
{
    const KilnGemmCall *call = t->call;
    const KilnGemmPlan *p = call->plan;
    KilnGemmTile tile = { .depth = depth.size,
                          .b_pitch = col->pitch,
                          .nbits = t->cols.side.nbits,
                          .k = depth.start,
                          .cols = col->extent,
                          .first = depth.start == 0,
                          .last = depth.start + depth.size == p->depth,
                          .alpha = 1.0f,
                          .lo = -INFINITY,
                          .hi = INFINITY };
    if (!p->staged) {
        tile.alpha = call->alpha;
        tile.beta = call->beta;
        tile.bias_row = call->bias_row;
        tile.bias_col = call->bias_col;
    }
    if (!t->stage) {
        tile.lo = call->tail.lo;
        tile.hi = call->tail.hi;
    }
    tile.b = col_data(t, col, depth, &tile.b_block);
    const float *next = (const float *)tile.b + depth.size * col->pitch; /* as a rule */
    KilnGemmDirect direct = direct_panel(p, &t->cols, col, depth.start);
    if (beside) {
        tile.beside = col_data(t, beside, depth, &tile.beside_block);
        tile.cols += beside->extent;
    }
    if (direct.base) {
        tile.b = direct.base;
        tile.b_offsets = direct.offsets;
        tile.b_pitch = direct.pitch;
    }
    if (p->cols.storage == KILN_GEMM_EXACT)
        find_soon(t, col->start / p->kernels->max_cols, depth, &tile);
    for (int64_t i = t->rows.first; i < t->rows.end; i++) {
        KilnGemmPanel row = kiln_gemm_panel(p, &p->rows, i);
        tile.a = panel_data(&t->rows, &row, depth);
        tile.rows = row.extent;
        if (p->cols.storage != KILN_GEMM_EXACT) {
            /* A tile asks for a line at each step: the first ones for the next column panel. */
            int64_t asked = (i - t->rows.first) * KILN_CPU_LINE_FLOATS;
            tile.soon = asked < col->pitch ? next + asked * depth.size
                                           : (const float *)tile.a + row.extent * depth.size;
        }
        if (t->stage) {
            tile.out = t->stage + (row.start - t->row0) * t->stage_pitch + col->start - t->col0;
            tile.out_pitch = t->stage_pitch;
        } else {
            int64_t at = row.start * call->out_row + col->start;
            tile.out = t->out + at;
            tile.out_pitch = call->out_row;
            tile.residual = t->residual ? t->residual + at : NULL;
        }
        if (t->bias && !p->staged)
            tile.bias = t->bias + row.start * tile.bias_row + col->start * tile.bias_col;
        if (beside)
            p->kernels->pair[p->cols.storage](&tile);
        else
            p->kernels->tile[p->cols.storage](&tile);
    }
}

/* The column panels of a task, for one block of depth. */
static void
run_block(const Task *t, KilnGemmDepth depth)
{
    const KilnGemmPlan *p = t->call->plan;
    for (int64_t j = t->cols.first; j < t->cols.end; j++) {
        KilnGemmPanel col = kiln_gemm_panel(p, &p->cols, j), beside;
        bool pair = pair_panel(t, j, &col, &beside);
        run_col_panel(t, &col, pair ? &beside : NULL, depth);
        j += pair;
    }
}

/* Sums kept in scratch go to an output with any strides. */
static void
store_scattered(const Task *t, int64_t rows, int64_t cols)
{
    const KilnGemmCall *c = t->call;
    for (int64_t j = 0; j < cols; j++) {
        int64_t at = t->row0 * c->out_row + (t->col0 + j) * c->out_col;
        float *out = t->out + at;
        const float *residual = t->residual ? t->residual + at : NULL;
        const float *bias = t->bias;
        if (bias)
            bias += t->row0 * c->bias_row + (t->col0 + j) * c->bias_col;
        for (int64_t i = 0; i < rows; i++) {
            float x = c->alpha * t->stage[i * t->stage_pitch + j];
            x += bias ? c->beta * bias[i * c->bias_row] : 0.0f;
            x += residual ? residual[i * c->out_row] : 0.0f;
            x = c->tail.lo > x ? c->tail.lo : x;
            out[i * c->out_row] = c->tail.hi < x ? c->tail.hi : x;
        }
    }
}

enum {
    TURN_ROWS = 64,
    TURN_COLS = 16
}; /* turned at a time, in the first-level cache */

/* Transposed in small blocks. */
void
kiln_gemm_store_turned(const KilnGemmTurn *s)
{
    float turned[TURN_COLS * TURN_ROWS];
    KilnGemmFinish f = { .alpha = s->alpha, .lo = s->tail->lo, .hi = s->tail->hi };
    KilnGemmTranspose turn = { .dst = turned, .pitch = TURN_ROWS, .stride = s->sums_pitch };
    for (int64_t i = 0; i < s->rows; i += TURN_ROWS) {
        f.n = turn.lanes = s->rows - i < TURN_ROWS ? s->rows - i : TURN_ROWS;
        for (int64_t j = 0; j < s->cols; j += TURN_COLS) {
            turn.depth = s->cols - j < TURN_COLS ? s->cols - j : TURN_COLS;
            turn.src = s->sums + i * s->sums_pitch + j;
            s->kernels->transpose(&turn);
            for (int64_t k = 0; k < turn.depth; k++) {
                int64_t col = j + k, at = i + col * s->out_col;
                f.out = s->out + at;
                f.residual = s->residual ? s->residual + at : NULL;
                f.sums = turned + k * TURN_ROWS;
                f.bias = s->bias ? s->beta * s->bias[col * s->bias_col] : 0.0f;
                s->kernels->finish(&f);
            }
        }
    }
}

/* Sums kept in scratch go to an output whose rows are dense. */
static void
store_turned(const Task *t, int64_t rows, int64_t cols)
{
    const KilnGemmCall *c = t->call;
    int64_t at = t->row0 + t->col0 * c->out_col;
    KilnGemmTurn turn = { .kernels = c->plan->kernels,
                          .sums = t->stage,
                          .sums_pitch = t->stage_pitch,
                          .rows = rows,
                          .cols = cols,
                          .out = t->out + at,
                          .out_col = c->out_col,
                          .bias = t->bias ? t->bias + t->col0 * c->bias_col : NULL,
                          .bias_col = c->bias_col,
                          .residual = t->residual ? t->residual + at : NULL,
                          .alpha = c->alpha,
                          .beta = c->beta,
                          .tail = &c->tail };
    kiln_gemm_store_turned(&turn);
}

/* Sums kept in scratch that have all but the tail. Adding -0 changes no bit. */
static void
store_kept(const Task *t, int64_t rows, int64_t cols)
{
    const KilnGemmCall *c = t->call;
    KilnGemmFinish f = {
        .n = cols, .alpha = 1.0f, .bias = -0.0f, .lo = c->tail.lo, .hi = c->tail.hi
    };
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = (t->row0 + i) * c->out_row + t->col0;
        f.out = t->out + at;
        f.residual = t->residual ? t->residual + at : NULL;
        f.sums = t->stage + i * t->stage_pitch;
        c->plan->kernels->finish(&f);
    }
}

/* The activation of a block that is stored but for it; its rows or its columns are dense. */
static void
activate(const Task *t, int64_t rows, int64_t cols)
{
    const KilnGemmCall *c = t->call;
    bool by_rows = c->out_col == 1 && (c->out_row != 1 || cols >= rows);
    int64_t lines = by_rows ? rows : cols, pitch = by_rows ? c->out_row : c->out_col;
    float *out = t->out + t->row0 * c->out_row + t->col0 * c->out_col;
    for (int64_t i = 0; c->tail.activation && i < lines; i++)
        kiln_cpu_tail_activate(&c->tail, out + i * pitch, by_rows ? cols : rows);
}

static TaskSide
task_side(const KilnGemmCall *call, const KilnGemmCut *cut, int64_t block, KilnGemmSide side)
{
    TaskSide s = { .cut = cut, .side = side, .packed = side.base };
    s.first = block * cut->panels / cut->blocks;
    s.end = (block + 1) * cut->panels / cut->blocks;
    KilnGemmPanel first = kiln_gemm_panel(call->plan, cut, s.first);
    s.block_offset = first.offset;
    s.start = first.start;
    return s;
}

static int64_t
side_end(const KilnGemmPlan *plan, const TaskSide *s)
{
    KilnGemmPanel last = kiln_gemm_panel(plan, s->cut, s->end - 1);
    return last.start + last.extent;
}

static void
product_task(const void *data, int64_t number, int thread)
{
    const KilnGemmCall *call = data;
    const KilnGemmPlan *p = call->plan;
    int64_t blocks = p->rows.blocks * p->cols.blocks;
    int64_t item = number / blocks, block = number % blocks;
    BatchOffsets offsets = batch_offsets(&call->batch, item);
    float *scratch = call->scratch + p->whole_rows + p->whole_cols +
                     thread * (p->task_rows + p->task_cols + p->task_stage);

    Task t = { .call = call, .out = call->out + offsets.out };
    t.bias = call->bias ? call->bias + offsets.bias : NULL;
    t.residual = call->residual ? call->residual + offsets.residual : NULL;
    t.rows = task_side(call, &p->rows, block / p->cols.blocks, side_at(call->rows, offsets.rows));
    t.cols = task_side(call, &p->cols, block % p->cols.blocks, side_at(call->cols, offsets.cols));
    bool in_place = row_in_place(p, &call->rows);
    if (p->rows.pack == KILN_GEMM_PACK_WHOLE && !in_place)
        t.rows.packed = whole_packed(call, true, item);
    if (p->cols.pack == KILN_GEMM_PACK_WHOLE)
        t.cols.packed = whole_packed(call, false, item);
    t.rows.block = p->rows.pack == KILN_GEMM_PACK_BLOCK && !in_place ? scratch : NULL;
    t.cols.block = p->cols.pack == KILN_GEMM_PACK_BLOCK ? scratch + p->task_rows : NULL;
    t.row0 = t.rows.start;
    t.col0 = t.cols.start;
    int64_t rows = side_end(p, &t.rows) - t.row0, cols = side_end(p, &t.cols) - t.col0;
    t.stage = p->staged || p->kept ? scratch + p->task_rows + p->task_cols : NULL;
    t.stage_pitch = cols;

    int64_t k = 0;
    do { /* once even without depth: the output is the bias then */
        KilnGemmDepth depth = kiln_gemm_depth(p, k);
        pack_block(p, &t.rows, depth);
        pack_block(p, &t.cols, depth);
        run_block(&t, depth);
        k += depth.size;
    } while (k < p->depth);
    if (p->kept)
        store_kept(&t, rows, cols);
    else if (p->staged && call->out_row == 1 && (!call->bias || call->bias_row == 0))
        store_turned(&t, rows, cols);
    else if (p->staged)
        store_scattered(&t, rows, cols);
    activate(&t, rows, cols);
}

void
kiln_gemm_run(const KilnGemmCall *call)
{
    const KilnGemmPlan *p = call->plan;
    if (p->rows.pack == KILN_GEMM_PACK_WHOLE && !row_in_place(p, &call->rows))
        kiln_cpu_parallel(p->rows.panels * p->batch, call->threads, pack_rows_task, call);
    if (p->cols.pack == KILN_GEMM_PACK_WHOLE)
        kiln_cpu_parallel(p->cols.panels * p->batch, call->threads, pack_cols_task, call);
    kiln_cpu_parallel(p->batch * p->rows.blocks * p->cols.blocks, call->threads, product_task,
                      call);
}
