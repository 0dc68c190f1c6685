/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products on the blocked core: folds batch dims into rows where they continue each other,
 * and chooses which operand is vectorised. The form of packed operands says which; else the extents
 * do. */
#include "backends/cpu/gemm/gemm.h"

#include "backends/cpu/gemm/gemm_core.h"
#include "backends/cpu/gemm/gemm_exact.h"
#include "backends/cpu/gemm/gemm_nbits_pack.h"
#include "backends/cpu/gemm/gemm_pack.h"
#include "backends/cpu/gemm/gemm_plan.h"

#include <string.h>

/* A problem after folding, and the plan for it. */
typedef struct {
    KilnCpuGemm g;
    KilnGemmPlan plan;
    bool swapped; /* op(B) is the row side: out is computed as its transpose */
} Prepared;

KilnCpuGemm
kiln_cpu_gemm_dense(int64_t m, int64_t n, int64_t k)
{
    return (KilnCpuGemm){ .m = m,
                          .n = n,
                          .k = k,
                          .a_row = k,
                          .a_col = 1,
                          .b_row = n,
                          .b_col = 1,
                          .out_row = n,
                          .alpha = 1.0f,
                          .beta = 1.0f,
                          .tail = kiln_cpu_tail_none() };
}

static void
drop_batch_dim(KilnCpuGemm *g, int d)
{
    size_t bytes = (size_t)(--g->rank - d) * sizeof(int64_t);
    memmove(g->dims + d, g->dims + d + 1, bytes);
    memmove(g->a_batch + d, g->a_batch + d + 1, bytes);
    memmove(g->b_batch + d, g->b_batch + d + 1, bytes);
    memmove(g->out_batch + d, g->out_batch + d + 1, bytes);
    memmove(g->bias_batch + d, g->bias_batch + d + 1, bytes);
}

/* The last batch dim continues the rows: one taller product packs op(B) once. */
static bool
fold_last_dim(KilnCpuGemm *g)
{
    int d = g->rank - 1;
    bool continues = g->b_batch[d] == 0 && g->out_batch[d] == g->m * g->out_row && !g->a_packed &&
                     g->a_batch[d] == g->m * g->a_row && g->bias_batch[d] == g->m * g->bias_row;
    if (!continues)
        return false;
    g->m *= g->dims[d];
    g->rank--;
    return true;
}

static bool
unit_or_zero(int64_t stride)
{
    return stride == 0 || stride == 1;
}

static KilnCpuGemm
fold(const KilnCpuGemm *gemm)
{
    KilnCpuGemm g = *gemm;
    for (int d = g.rank - 1; d >= 0; d--) {
        if (g.dims[d] == 1)
            drop_batch_dim(&g, d);
    }
    while (g.rank > 0 && fold_last_dim(&g))
        continue;
    return g;
}

static KilnGemmShape
straight_shape(const KilnCpuGemm *g)
{
    int64_t batch = 1;
    for (int d = 0; d < g->rank; d++)
        batch *= g->dims[d];
    return (KilnGemmShape){
        .isa = g->isa,
        .rows = g->m,
        .cols = g->n,
        .depth = g->k,
        .batch = batch,
        .rows_packed = g->a_packed,
        .cols_packed = g->b_packed,
        .rows_part = { g->first_panel, g->n_panels },
        .staged = !unit_or_zero(g->bias_col),
        .residual = g->tail.residual,
    };
}

static KilnGemmShape
swapped_shape(const KilnCpuGemm *g)
{
    KilnGemmShape s = straight_shape(g);
    s.rows = g->n;
    s.cols = g->m;
    s.rows_packed = g->b_packed;
    s.cols_packed = g->a_packed;
    s.cols_part = s.rows_part;
    s.rows_part = (KilnGemmPart){ 0, 0 };
    s.staged = g->out_row != 1 || !unit_or_zero(g->bias_row);
    return s;
}

static KilnCpuGemmForm
best_form(const KilnCpuGemm *folded)
{
    KilnGemmShape straight = straight_shape(folded), swapped = swapped_shape(folded);
    if (kiln_gemm_cost(&swapped) < kiln_gemm_cost(&straight))
        return KILN_CPU_GEMM_TURNED;
    bool narrow = folded->b_storage == KILN_GEMM_BF16 || folded->b_storage == KILN_GEMM_F16;
    return narrow && folded->m <= KILN_GEMM_NARROW_ROWS ? KILN_CPU_GEMM_NARROW
                                                        : KILN_CPU_GEMM_STRAIGHT;
}

KilnCpuGemmForm
kiln_cpu_gemm_best_form(const KilnCpuGemm *gemm)
{
    KilnCpuGemm g = fold(gemm);
    return best_form(&g);
}

/* Few rows convert numbers of few bits in registers. For more, each task makes panels of floats. */
static bool
reads_numbers(const KilnCpuGemm *folded)
{
    return folded->m <= KILN_GEMM_NARROW_ROWS;
}

static Prepared
prepare(const KilnCpuGemm *gemm)
{
    Prepared p = { .g = fold(gemm) };
    KilnCpuGemm *g = &p.g;
    if (g->form == KILN_CPU_GEMM_BEST)
        g->form = g->b_storage == KILN_GEMM_NBITS ? KILN_CPU_GEMM_STRAIGHT : best_form(g);
    p.swapped = g->form == KILN_CPU_GEMM_TURNED;
    KilnGemmShape shape = p.swapped ? swapped_shape(g) : straight_shape(g);
    if (g->form == KILN_CPU_GEMM_NARROW || (!p.swapped && g->b_storage == KILN_GEMM_EXACT))
        shape.storage = g->b_storage;
    if (g->b_storage == KILN_GEMM_NBITS && reads_numbers(g)) {
        shape.cols_packed = true;
        shape.storage = KILN_GEMM_NBITS;
    }
    p.plan = kiln_gemm_plan(&shape);
    return p;
}

static KilnGemmSide
side_a(const KilnCpuGemm *g, const void *a, bool packed)
{
    return (KilnGemmSide){ .kind = packed ? KILN_GEMM_PACKED : KILN_GEMM_STRIDED,
                           .base = a,
                           .stride_i = g->a_row,
                           .stride_k = g->a_col };
}

static KilnGemmSide
side_b(const KilnCpuGemm *g, const void *b, bool packed)
{
    if (g->b_storage == KILN_GEMM_NBITS)
        return (KilnGemmSide){ .kind = reads_numbers(g) ? KILN_GEMM_PACKED : KILN_GEMM_NUMBERS,
                               .storage = KILN_GEMM_NBITS,
                               .base = b,
                               .nbits = &g->nbits };
    return (KilnGemmSide){ .kind = packed ? KILN_GEMM_PACKED : KILN_GEMM_STRIDED,
                           .storage = g->b_storage,
                           .base = b,
                           .stride_i = g->b_col,
                           .stride_k = g->b_row };
}

static int64_t
packed_bytes(const KilnGemmPlan *plan, const KilnGemmCut *cut)
{
    return kiln_gemm_element_size(cut->storage) * kiln_gemm_packed_floats(plan, cut);
}

/* Packed operands have a form of their own. */
static Prepared
prepare_packed(const KilnCpuGemm *gemm, bool a)
{
    KilnCpuGemm packed = *gemm;
    packed.a_packed |= a;
    packed.b_packed |= !a;
    packed.n_panels = packed.first_panel = 0;
    return prepare(&packed);
}

static const KilnGemmCut *
cut_of_a(const Prepared *p)
{
    return p->swapped ? &p->plan.cols : &p->plan.rows;
}

static const KilnGemmCut *
cut_of_b(const Prepared *p)
{
    return p->swapped ? &p->plan.rows : &p->plan.cols;
}

int64_t
kiln_cpu_gemm_panels(const KilnCpuGemm *gemm)
{
    Prepared p = prepare_packed(gemm, true);
    return cut_of_a(&p)->panels;
}

int64_t
kiln_cpu_gemm_panel_start(const KilnCpuGemm *gemm, int64_t panel)
{
    Prepared p = prepare_packed(gemm, true);
    const KilnGemmCut *cut = cut_of_a(&p);
    return panel < cut->panels ? kiln_gemm_panel(&p.plan, cut, panel).start : cut->extent;
}

int64_t
kiln_cpu_gemm_pack_a_size(const KilnCpuGemm *gemm)
{
    Prepared p = prepare_packed(gemm, true);
    return packed_bytes(&p.plan, cut_of_a(&p));
}

int64_t
kiln_cpu_gemm_pack_b_size(const KilnCpuGemm *gemm)
{
    Prepared p = prepare_packed(gemm, false);
    return packed_bytes(&p.plan, cut_of_b(&p));
}

void
kiln_cpu_gemm_pack_a(const KilnCpuGemm *gemm, const void *src, float *dst, KilnSlice slice)
{
    Prepared p = prepare_packed(gemm, true);
    KilnGemmSide side = side_a(&p.g, src, false);
    kiln_gemm_pack_side(&p.plan, cut_of_a(&p), &side, slice, dst);
}

void
kiln_cpu_gemm_pack_b(const KilnCpuGemm *gemm, const void *src, void *dst, KilnSlice slice)
{
    Prepared p = prepare_packed(gemm, false);
    KilnGemmSide side = side_b(&p.g, src, false);
    kiln_gemm_pack_side(&p.plan, cut_of_b(&p), &side, slice, dst);
}

bool
kiln_cpu_gemm_exact_suits(const KilnCpuGemm *gemm)
{
    return fold(gemm).m <= KILN_GEMM_NARROW_ROWS;
}

int64_t
kiln_cpu_gemm_exact_head_size(const KilnCpuGemm *gemm)
{
    Prepared p = prepare_packed(gemm, false);
    return !p.swapped && gemm->b_storage == KILN_GEMM_F32 ? kiln_gemm_exact_head_size(&p.plan) : 0;
}

int64_t
kiln_cpu_gemm_exact_fit(const KilnCpuGemm *gemm, const void *src, void *head, int threads)
{
    Prepared p = prepare_packed(gemm, false);
    KilnGemmSide side = side_b(&p.g, src, false);
    return kiln_gemm_exact_fit(&p.plan, &side, threads, head);
}

void
kiln_cpu_gemm_exact_pack(const KilnCpuGemm *gemm, const void *src, void *head, KilnSlice slice)
{
    Prepared p = prepare_packed(gemm, false);
    KilnGemmSide side = side_b(&p.g, src, false);
    kiln_gemm_exact_pack(&p.plan, &side, slice, head);
}

bool
kiln_cpu_gemm_exact_is_sound(const KilnCpuGemm *gemm, const void *head, int64_t bytes)
{
    Prepared p = prepare_packed(gemm, false);
    return kiln_gemm_exact_is_sound(&p.plan, head, bytes);
}

int64_t
kiln_cpu_gemm_nbits_size(const KilnCpuGemm *gemm)
{
    Prepared p = prepare(gemm);
    return p.plan.cols.pitch * kiln_gemm_nbits_column(&gemm->nbits, gemm->k);
}

void
kiln_cpu_gemm_nbits_pack(const KilnCpuGemm *gemm, const KilnGemmNbitsSource *source, void *packed,
                         KilnSlice slice)
{
    Prepared p = prepare(gemm);
    kiln_gemm_nbits_pack(&p.plan, &gemm->nbits, source, slice, packed);
}

int64_t
kiln_cpu_gemm_scratch_size(const KilnCpuGemm *gemm, int threads)
{
    Prepared p = prepare(gemm);
    return kiln_gemm_scratch_size(&p.plan, threads);
}

/* Every number of rows up to MOST_TRIED is asked for. Above it there is a bound, which is higher
 * than need be. */
int64_t
kiln_cpu_gemm_scratch_up_to(const KilnCpuGemm *gemm, int threads)
{
    enum {
        MOST_TRIED = 256
    };
    KilnCpuGemm fewer = *gemm;
    int64_t bytes = 0;
    for (fewer.m = MIN(gemm->m, MOST_TRIED); fewer.m > 0; fewer.m--)
        bytes = MAX(bytes, kiln_cpu_gemm_scratch_size(&fewer, threads));
    if (gemm->m > MOST_TRIED) {
        Prepared p = prepare(gemm);
        bytes = MAX(bytes, kiln_gemm_scratch_bound(&p.plan, threads));
    }
    return bytes;
}

void
kiln_cpu_gemm_run(const KilnCpuGemm *gemm, const KilnCpuGemmArgs *args)
{
    Prepared p = prepare(gemm);
    const KilnCpuGemm *g = &p.g;
    KilnGemmSide a = side_a(g, args->a, g->a_packed), b = side_b(g, args->b, g->b_packed);
    KilnGemmCall call = { .plan = &p.plan,
                          .rows = p.swapped ? b : a,
                          .cols = p.swapped ? a : b,
                          .out = args->out,
                          .out_row = p.swapped ? 1 : g->out_row,
                          .out_col = p.swapped ? g->out_row : 1,
                          .bias = args->bias,
                          .bias_row = p.swapped ? g->bias_col : g->bias_row,
                          .bias_col = p.swapped ? g->bias_row : g->bias_col,
                          .residual = args->residual,
                          .alpha = g->alpha,
                          .beta = g->beta,
                          .tail = g->tail,
                          .scratch = args->scratch,
                          .threads = args->threads };
    call.batch.rank = g->rank;
    for (int d = 0; d < g->rank; d++) {
        call.batch.dims[d] = g->dims[d];
        call.batch.rows[d] = p.swapped ? g->b_batch[d] : g->a_batch[d];
        call.batch.cols[d] = p.swapped ? g->a_batch[d] : g->b_batch[d];
        call.batch.out[d] = g->out_batch[d];
        call.batch.bias[d] = g->bias_batch[d];
        call.batch.residual[d] = g->out_batch[d];
    }
    kiln_gemm_run(&call);
}

void
kiln_matmul_terms(const KilnCpuGemm *gemm, double terms[KILN_CPU_TERMS])
{
    Prepared p = prepare(gemm);
    KilnGemmShape shape = { .isa = p.g.isa,
                            .rows = p.swapped ? p.g.n : p.g.m,
                            .cols = p.swapped ? p.g.m : p.g.n,
                            .depth = p.g.k,
                            .staged = p.plan.staged };
    double batch = (double)p.plan.batch, m = (double)p.g.m, n = (double)p.g.n, k = (double)p.g.k;
    terms[0] = batch * kiln_gemm_cost(&shape);
    terms[1] = 4 * batch * m * (n + k);
    terms[2] = 4 * batch * n * k;
    terms[3] = 1;
    for (int i = 4; i < KILN_CPU_TERMS; i++)
        terms[i] = 0;
}
