/* SPDX-License-Identifier: Apache-2.0 */
/* Operands into panels. Sources may lie at any byte address (weights in a mapped file do): all
 * loads are unaligned ones or memcpy. */
#include "backends/cpu/gemm/gemm_pack.h"

#include "backends/cpu/gemm/gemm_nbits.h"
#include "graph/base/number.h"

#include <string.h>

KilnGemmPanel
kiln_gemm_panel(const KilnGemmPlan *plan, const KilnGemmCut *cut, int64_t index)
{
    KilnGemmPanel p;
    index += cut->first;
    if (cut == &plan->rows) { /* balanced: panels differ by one row at most */
        p.offset = index * cut->all / cut->all_panels;
        p.extent = (index + 1) * cut->all / cut->all_panels - p.offset;
        p.pitch = p.extent;
        p.start = p.offset - cut->first * cut->all / cut->all_panels;
        return p;
    }
    int64_t width = plan->kernels->max_cols;
    p.offset = index * width;
    p.extent = cut->all - p.offset < width ? cut->all - p.offset : width;
    p.pitch = cut->pitch - p.offset < width ? cut->pitch - p.offset : width;
    p.start = p.offset - cut->first * width;
    return p;
}

/* Neither stride is 1: element by element. */
static void
pack_scattered(const KilnGemmSide *side, const KilnGemmPanel *panel, KilnGemmDepth depth,
               float *dst)
{
    const char *src = side->base;
    for (int64_t k = 0; k < depth.size; k++, dst += panel->pitch) {
        const char *row = src + 4 * ((depth.start + k) * side->stride_k);
        for (int64_t i = 0; i < panel->extent; i++)
            memcpy(dst + i, row + 4 * (panel->start + i) * side->stride_i, 4);
        for (int64_t i = panel->extent; i < panel->pitch; i++)
            dst[i] = 0.0f;
    }
}

static void
pack_strided(const KilnGemmPlan *plan, const KilnGemmSide *side, const KilnGemmPanel *panel,
             KilnGemmDepth depth, float *dst)
{
    const char *base = side->base;
    if (side->stride_i == 1 || panel->extent == 1) {
        KilnGemmCopy copy = { .dst = dst,
                              .pitch = panel->pitch,
                              .depth = depth.size,
                              .src = base + 4 * (panel->start * side->stride_i +
                                                 depth.start * side->stride_k),
                              .stride = side->stride_k,
                              .n_runs = 1 };
        copy.runs[0] = (KilnGemmRun){ 0, 0, (int32_t)panel->extent };
        plan->kernels->copy(&copy);
    } else if (side->stride_k == 1) {
        KilnGemmTranspose transpose = { .dst = dst,
                                        .pitch = panel->pitch,
                                        .depth = depth.size,
                                        .lanes = panel->extent,
                                        .src = base +
                                               4 * (panel->start * side->stride_i + depth.start),
                                        .stride = side->stride_i };
        plan->kernels->transpose(&transpose);
    } else {
        pack_scattered(side, panel, depth, dst);
    }
}

/* A step of a panel's depth, as it is stored in 16 bits. */
static void
gather_narrow(const KilnGemmSide *side, const KilnGemmPanel *panel, int64_t k, uint16_t *row)
{
    const char *src = (const char *)side->base + 2 * k * side->stride_k;
    for (int64_t i = 0; i < panel->extent; i++)
        memcpy(row + i, src + 2 * (panel->start + i) * side->stride_i, 2);
    for (int64_t i = panel->extent; i < panel->pitch; i++)
        row[i] = 0;
}

/* Panels of floats from 16 bits, for more rows than would widen them as they read. */
static void
pack_widened(const KilnGemmSide *side, const KilnGemmPanel *panel, KilnGemmDepth depth, float *dst)
{
    uint16_t row[KILN_GEMM_MAX_COLS];
    bool bf16 = side->storage == KILN_GEMM_BF16;
    for (int64_t k = 0; k < depth.size; k++, dst += panel->pitch) {
        gather_narrow(side, panel, depth.start + k, row);
        for (int64_t i = 0; i < panel->pitch; i++)
            dst[i] = bf16 ? kiln_bf16_to_f32(row[i]) : kiln_f16_to_f32(row[i]);
    }
}

/* A panel of output positions: one run for each stretch inside a row of the output. */
static void
pack_image(const KilnGemmPlan *plan, const KilnGemmSide *side, const KilnGemmPanel *panel,
           KilnGemmDepth depth, float *dst)
{
    const KilnGemmImage *image = &side->image;
    KilnGemmCopy copy = { .dst = dst,
                          .pitch = panel->pitch,
                          .depth = depth.size,
                          .src = side->base,
                          .offsets = image->offsets + depth.start };
    int64_t x = panel->start % image->out[2], y = panel->start / image->out[2];
    int64_t z = y / image->out[1];
    y %= image->out[1];
    for (int64_t at = 0; at < panel->extent;) {
        int64_t len = image->out[2] - x;
        if (len > panel->extent - at)
            len = panel->extent - at;
        copy.runs[copy.n_runs++] = (KilnGemmRun){ z * image->pitch[0] + y * image->pitch[1] + x,
                                                  (int32_t)at, (int32_t)len };
        at += len;
        x = 0;
        if (++y == image->out[1]) {
            y = 0;
            z++;
        }
    }
    plan->kernels->copy(&copy);
}

/* Panels of floats from numbers of few bits, for more rows than would convert them as they read. */
static void
pack_numbers(const KilnGemmPlan *plan, const KilnGemmSide *side, const KilnGemmPanel *panel,
             KilnGemmDepth depth, float *dst)
{
    const int64_t column = kiln_gemm_nbits_column(side->nbits, plan->depth);
    plan->kernels->unpack(
        &(KilnGemmUnpack){ .dst = dst,
                           .src = (const char *)side->base + panel->offset * column,
                           .nbits = side->nbits,
                           .pitch = panel->pitch,
                           .k = depth.start,
                           .depth = depth.size });
}

/* Rows that lie a multiple of this apart would fight for the same few sets of the cache, unless
   they are read only once. */
enum {
    CONFLICT_BYTES = 2048
};

KilnGemmDirect
kiln_gemm_direct(const KilnGemmPlan *plan, const KilnGemmSide *side, const KilnGemmPanel *panel,
                 int64_t k)
{
    KilnGemmDirect d = { .base = NULL };
    if (panel->extent % plan->kernels->vector != 0 || side->storage != KILN_GEMM_F32)
        return d;
    if (side->kind == KILN_GEMM_IMAGE) {
        const KilnGemmImage *image = &side->image;
        int64_t x = panel->start % image->out[2], row = panel->start / image->out[2];
        if (x + panel->extent > image->out[2] || image->channel_pitch * 4 % CONFLICT_BYTES == 0)
            return d;
        int64_t y = row % image->out[1], z = row / image->out[1];
        d.offsets = image->offsets + k;
        d.base = (const float *)side->base + z * image->pitch[0] + y * image->pitch[1] + x;
    } else if (side->stride_i == 1 && (uintptr_t)side->base % sizeof(float) == 0 &&
               (side->stride_k * 4 % CONFLICT_BYTES != 0 || plan->rows.panels == 1)) {
        d.pitch = side->stride_k;
        d.base = (const float *)side->base + panel->start + k * side->stride_k;
    }
    return d;
}

void
kiln_gemm_pack_panel(const KilnGemmPlan *plan, const KilnGemmSide *side, const KilnGemmPanel *panel,
                     KilnGemmDepth depth, float *dst)
{
    if (side->kind == KILN_GEMM_IMAGE)
        pack_image(plan, side, panel, depth, dst);
    else if (side->kind == KILN_GEMM_NUMBERS)
        pack_numbers(plan, side, panel, depth, dst);
    else if (side->storage != KILN_GEMM_F32)
        pack_widened(side, panel, depth, dst);
    else
        pack_strided(plan, side, panel, depth, dst);
}

void
kiln_gemm_pack_into(const KilnGemmPlan *plan, const KilnGemmCut *cut, const KilnGemmSide *side,
                    KilnGemmSpot spot, void *packed)
{
    KilnGemmPanel panel = kiln_gemm_panel(plan, cut, spot.panel);
    KilnGemmDepth depth = kiln_gemm_depth(plan, spot.k);
    void *dst = (char *)packed + kiln_gemm_packed_offset(cut, &panel, depth);
    if (cut->storage == KILN_GEMM_F32) {
        kiln_gemm_pack_panel(plan, side, &panel, depth, dst);
        return;
    }
    for (int64_t k = 0; k < depth.size; k++)
        gather_narrow(side, &panel, depth.start + k, (uint16_t *)dst + k * panel.pitch);
}

void
kiln_gemm_pack_side(const KilnGemmPlan *plan, const KilnGemmCut *cut, const KilnGemmSide *side,
                    KilnSlice slice, void *dst)
{
    int64_t begin = kiln_slice_begin(slice, cut->panels), end = kiln_slice_end(slice, cut->panels);
    for (int64_t k = 0; k < plan->depth; k += plan->depth_block) {
        for (int64_t i = begin; i < end; i++)
            kiln_gemm_pack_into(plan, cut, side, (KilnGemmSpot){ i, k }, dst);
    }
}
