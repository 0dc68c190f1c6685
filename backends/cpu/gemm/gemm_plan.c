/* SPDX-License-Identifier: Apache-2.0 */
/* Block bounds of the matrix product. Nothing here may look at the number of threads: the tasks
 * that a plan makes are the same for all, and so are the bits.
 *
 * Sizes: a column panel of one depth block stays in the first-level cache while all row panels of a
 * task pass by, the packed blocks of a task stay in the second level. A product too small for eight
 * tasks of a useful size gets four, two or one, which any team divides evenly. */
#include "backends/cpu/gemm/gemm_plan.h"

#include "backends/cpu/extents.h"

enum {
    BLOCK_ROW_PANELS = 40,
    BLOCK_COL_PANELS = 16,
    TASKS = 8,              /* enough for a team of up to 8 */
    TASK_WORK = 32 * 1024,  /* vector multiply-adds that make a task worth its overhead */
    STREAM_WORK = 4,        /* as many take as long as a vector of columns that comes from memory */
    WHOLE_FLOATS = 1 << 20, /* pack a side at once up to this */
    REPEAT_FLOATS = 4096,   /* up to this packing it again and again costs less than a start of the
                               team for it */
};

const KilnGemmKernels *
kiln_gemm_kernels(KilnCpuIsa isa)
{
    return KILN_CPU_OF_ISA(isa, &kiln_gemm_kernels);
}

double
kiln_gemm_cost(const KilnGemmShape *s)
{
    int64_t vectors = ceil_div(s->cols, kiln_gemm_kernels(s->isa)->vector);
    double tiles = (double)vectors * (double)(2 * s->rows + (s->rows == 1)) * (double)s->depth;
    return tiles + (s->staged ? 6.0 * (double)s->rows * (double)s->cols : 0.0);
}

static bool
fits_whole(const KilnGemmPlan *p, const KilnGemmCut *cut)
{
    return cut->pitch * p->depth * p->batch <= WHOLE_FLOATS;
}

/* Split further until there are tasks for a team. Splitting a side makes every task read all of the
   other one: the longer side is split first, unless the other would be packed again and again. */
static void
cut_tasks(KilnGemmPlan *p, bool rows_packed, bool cols_packed)
{
    int64_t rows = p->rows.extent < STREAM_WORK ? STREAM_WORK : p->rows.extent;
    int64_t work = rows * ceil_div(p->cols.extent, p->kernels->vector) * (p->depth + 1);
    int64_t want = TASKS;
    while (want > 1 && want * TASK_WORK > work * p->batch)
        want /= 2;
    bool rows_first = p->rows.extent > p->cols.extent;
    if (rows_first ? !cols_packed && !fits_whole(p, &p->cols)
                   : !rows_packed && !fits_whole(p, &p->rows))
        rows_first = !rows_first;
    for (int i = 0; i < 2; i++) {
        KilnGemmCut *cut = rows_first == (i == 0) ? &p->rows : &p->cols;
        int64_t others = p->batch * p->rows.blocks * p->cols.blocks / cut->blocks;
        if (others * cut->blocks < want)
            cut->blocks = min_of(ceil_div(want, others), cut->panels);
    }
}

/* Packing that several tasks would repeat is done once before them, where it fits. */
static KilnGemmPack
pack_of(const KilnGemmPlan *p, const KilnGemmCut *cut, bool packed, int64_t others)
{
    if (packed)
        return KILN_GEMM_PACK_NEVER;
    bool small = cut->pitch * p->depth <= REPEAT_FLOATS;
    return others > 1 && !small && fits_whole(p, cut) ? KILN_GEMM_PACK_WHOLE : KILN_GEMM_PACK_BLOCK;
}

/* Few rows have an own tile for each number of them, and others do not know narrow columns. */
static int64_t
panel_rows(const KilnGemmShape *s)
{
    int64_t most = kiln_gemm_kernels(s->isa)->max_rows;
    bool narrow = s->cols_packed && s->storage != KILN_GEMM_F32;
    return narrow ? min_of(most, KILN_GEMM_NARROW_ROWS) : most;
}

/* Rows are spread over their panels evenly. Of some panels the extent is at most that, so that as
 * many of them always have the same plan. */
static KilnGemmCut
rows_of(const KilnGemmShape *s)
{
    KilnGemmCut cut = { .all_panels = ceil_div(s->rows, panel_rows(s)),
                        .all = s->rows,
                        .pitch = s->rows,
                        .first = s->rows_part.first };
    cut.panels = s->rows_part.n ? s->rows_part.n : cut.all_panels;
    if (cut.all_panels > 0)
        cut.extent = min_of(cut.all, cut.panels * ceil_div(cut.all, cut.all_panels));
    cut.blocks = ceil_div(cut.panels, BLOCK_ROW_PANELS);
    return cut;
}

static KilnGemmCut
cols_of(const KilnGemmShape *s)
{
    const KilnGemmKernels *k = kiln_gemm_kernels(s->isa);
    KilnGemmCut cut = { .all_panels = ceil_div(s->cols, k->max_cols),
                        .all = s->cols,
                        .pitch = round_up(s->cols, k->vector),
                        .first = s->cols_part.first };
    cut.panels = s->cols_part.n ? s->cols_part.n : cut.all_panels;
    cut.extent = min_of(cut.all, (cut.first + cut.panels) * k->max_cols) - cut.first * k->max_cols;
    cut.blocks = ceil_div(cut.panels, BLOCK_COL_PANELS);
    if (s->cols_packed)
        cut.storage = s->storage;
    return cut;
}

KilnGemmPlan
kiln_gemm_plan(const KilnGemmShape *s)
{
    const KilnGemmKernels *k = kiln_gemm_kernels(s->isa);
    KilnGemmPlan p = { .kernels = k, .depth = s->depth, .batch = s->batch, .staged = s->staged };
    p.rows = rows_of(s);
    p.cols = cols_of(s);
    int64_t blocks = ceil_div(s->depth, KILN_GEMM_MAX_DEPTH);
    p.depth_block = blocks > 0 ? ceil_div(s->depth, blocks) : 0;
    p.kept = s->residual && !s->staged && blocks > 1;
    if (s->rows == 0 || s->cols == 0 || s->batch == 0)
        return p;
    cut_tasks(&p, s->rows_packed, s->cols_packed);
    p.rows.pack = pack_of(&p, &p.rows, s->rows_packed, p.cols.blocks);
    p.cols.pack = pack_of(&p, &p.cols, s->cols_packed, p.rows.blocks);
    int64_t block_rows = ceil_div(p.rows.panels, p.rows.blocks) * panel_rows(s);
    int64_t block_cols = ceil_div(p.cols.panels, p.cols.blocks) * k->max_cols;
    if (p.rows.pack == KILN_GEMM_PACK_WHOLE)
        p.whole_rows = round_up(p.rows.pitch * p.depth, KILN_CPU_LINE_FLOATS) * p.batch;
    if (p.cols.pack == KILN_GEMM_PACK_WHOLE)
        p.whole_cols = round_up(p.cols.pitch * p.depth, KILN_CPU_LINE_FLOATS) * p.batch;
    if (p.rows.pack == KILN_GEMM_PACK_BLOCK)
        p.task_rows = round_up(block_rows * p.depth_block, KILN_CPU_LINE_FLOATS);
    if (p.cols.pack == KILN_GEMM_PACK_BLOCK)
        p.task_cols = round_up(block_cols * p.depth_block, KILN_CPU_LINE_FLOATS);
    if (p.staged || p.kept)
        p.task_stage = round_up(block_rows * block_cols, KILN_CPU_LINE_FLOATS);
    return p;
}

int64_t
kiln_gemm_packed_floats(const KilnGemmPlan *plan, const KilnGemmCut *cut)
{
    return round_up(cut->pitch * plan->depth, KILN_CPU_LINE_FLOATS);
}

int64_t
kiln_gemm_scratch_size(const KilnGemmPlan *p, int threads)
{
    int64_t task = p->task_rows + p->task_cols + p->task_stage;
    return 4 * (p->whole_rows + p->whole_cols + task * (threads > 1 ? threads : 1));
}

/* What a side takes in shared scratch at most. */
static int64_t
most_whole(const KilnGemmPlan *p, const KilnGemmCut *cut)
{
    if (cut->pack == KILN_GEMM_PACK_NEVER)
        return 0;
    int64_t rounding = KILN_CPU_LINE_FLOATS * p->batch;
    return fits_whole(p, cut) ? cut->pitch * p->depth * p->batch + rounding
                              : WHOLE_FLOATS + rounding;
}

/* Fewer rows or columns are not cut into larger blocks than BLOCK_ROW_PANELS × BLOCK_COL_PANELS. */
int64_t
kiln_gemm_scratch_bound(const KilnGemmPlan *p, int threads)
{
    int64_t rows = min_of(p->rows.panels, BLOCK_ROW_PANELS) * p->kernels->max_rows;
    int64_t cols = min_of(p->cols.panels, BLOCK_COL_PANELS) * p->kernels->max_cols, task = 0;
    if (p->rows.pack != KILN_GEMM_PACK_NEVER)
        task += round_up(rows * p->depth_block, KILN_CPU_LINE_FLOATS);
    if (p->cols.pack != KILN_GEMM_PACK_NEVER)
        task += round_up(cols * p->depth_block, KILN_CPU_LINE_FLOATS);
    if (p->staged || p->kept)
        task += round_up(rows * cols, KILN_CPU_LINE_FLOATS);
    return 4 *
           (most_whole(p, &p->rows) + most_whole(p, &p->cols) + task * (threads > 1 ? threads : 1));
}
