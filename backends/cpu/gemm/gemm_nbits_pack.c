/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/gemm/gemm_nbits_pack.h"

#include "backends/cpu/extents.h"
#include "backends/cpu/gemm/gemm_pack.h"
#include "backends/cpu/gemm/gemm_plan.h"
#include "ir/slice.h"

#include <string.h>

/* A panel that is packed. */
typedef struct {
    const KilnGemmNbits *nbits;
    const KilnGemmNbitsSource *source;
    KilnGemmPanel panel;
    int64_t blocks;
} Panel;

/* Up to four bytes as a word. */
static uint32_t
word_of(const uint8_t *bytes, int64_t n)
{
    uint32_t word = 0;
    for (int64_t i = 0; i < n && i < 4; i++)
        word |= (uint32_t)bytes[i] << 8 * i;
    return word;
}

static uint8_t
zero_of(const Panel *p, int64_t column, int64_t block)
{
    const int bits = p->nbits->bits;
    const int64_t row = ceil_div(p->blocks * bits, 8);
    const uint8_t byte = (uint8_t)p->source->zeros[column * row + block * bits / 8];
    return (uint8_t)(byte >> block * bits % 8 & ((1 << bits) - 1));
}

/* Scales and zero points of @block for column @i of the panel. */
static void
pack_head(const Panel *p, int64_t block, int64_t i, char *to)
{
    const int64_t column = p->panel.start + i, at = (column * p->blocks + block) * 4;
    char *zeros = to + 4 * p->panel.pitch;
    memcpy(to + 4 * i, p->source->scales + at, 4);
    if (p->nbits->zeros == KILN_GEMM_ZEROS_F32)
        memcpy(zeros + 4 * i, p->source->zeros + at, 4);
    else if (p->nbits->zeros == KILN_GEMM_ZEROS_U8)
        zeros[i] = (char)zero_of(p, column, block);
}

static void
pack_block(const Panel *p, int64_t block, char *to)
{
    const int64_t pitch = p->panel.pitch, bytes = p->nbits->block * p->nbits->bits / 8;
    memset(to, 0, (size_t)(kiln_gemm_nbits_block(p->nbits) * pitch));
    for (int64_t i = 0; i < p->panel.extent; i++)
        pack_head(p, block, i, to);
    to += kiln_gemm_nbits_head(p->nbits) * pitch;
    for (int64_t i = 0; i < p->panel.extent; i++) {
        const uint8_t *from =
            p->source->numbers + ((p->panel.start + i) * p->blocks + block) * bytes;
        for (int64_t at = 0; at < bytes; at += 4) {
            const uint32_t word = word_of(from + at, bytes - at);
            memcpy(to + at * pitch + 4 * i, &word, sizeof word);
        }
    }
}

void
kiln_gemm_nbits_pack(const KilnGemmPlan *plan, const KilnGemmNbits *nbits,
                     const KilnGemmNbitsSource *source, KilnSlice slice, void *packed)
{
    const int64_t panels = plan->cols.panels, column = kiln_gemm_nbits_column(nbits, plan->depth);
    Panel p = { nbits, source, .blocks = ceil_div(plan->depth, nbits->block) };
    for (int64_t j = kiln_slice_begin(slice, panels); j < kiln_slice_end(slice, panels); j++) {
        p.panel = kiln_gemm_panel(plan, &plan->cols, j);
        char *to = (char *)packed + p.panel.offset * column;
        for (int64_t block = 0; block < p.blocks; block++)
            pack_block(&p, block, to + block * p.panel.pitch * kiln_gemm_nbits_block(nbits));
    }
}
