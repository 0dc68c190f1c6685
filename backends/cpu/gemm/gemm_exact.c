/* SPDX-License-Identifier: Apache-2.0 */
/* Packing floats in 28 bits. Weights are looked at twice, by fit() and by pack(), panel by panel as
 * floats on the stack: nothing else is as big as they are. */
#include "backends/cpu/gemm/gemm_exact.h"

#include "backends/cpu/extents.h"
#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/gemm/gemm_pack.h"
#include "backends/cpu/parallel.h"

#include <string.h>

enum {
    STEPS = KILN_GEMM_EXACT_STEPS,
    ROWS = KILN_GEMM_EXACT_ROWS,
    CODES = 16,
    WORTH = 16,         /* one byte in so many is gained, or it is not worth while, */
    WORTH_BYTES = 4096, /* and this many: a page */
};

/* A panel's block of depth as floats, and what it becomes. */
typedef struct {
    uint32_t floats[KILN_GEMM_MAX_DEPTH * KILN_GEMM_MAX_COLS];
    int64_t depth, pitch, vector;
} Block;

static void
block_read(Block *b, const KilnGemmPlan *plan, const KilnGemmSide *side, KilnGemmSpot spot)
{
    KilnGemmPanel panel = kiln_gemm_panel(plan, &plan->cols, spot.panel);
    KilnGemmDepth depth = kiln_gemm_depth(plan, spot.k);
    b->depth = depth.size;
    b->pitch = panel.pitch;
    b->vector = plan->kernels->vector;
    kiln_gemm_pack_panel(plan, side, &panel, depth, (float *)(void *)b->floats);
}

static unsigned
exponent_of(uint32_t x)
{
    return x >> 23 & 0xff;
}

/* The most frequent exponents; of equal ones the smallest. */
static void
choose_exponents(const Block *b, uint8_t *exponents)
{
    uint32_t counts[4][256] = { { 0 } }; /* apart: equal neighbours would wait for each other */
    for (int64_t i = 0; i < b->depth * b->pitch; i += 4) {
        for (int j = 0; j < 4; j++)
            counts[j][exponent_of(b->floats[i + j])]++;
    }
    for (int e = 0; e < 256; e++)
        counts[0][e] += counts[1][e] + counts[2][e] + counts[3][e];
    for (int code = 0; code < CODES; code++) {
        int most = 0;
        for (int e = 1; e < 256; e++)
            most = counts[0][e] > counts[0][most] ? e : most;
        exponents[code] = (uint8_t)most;
        counts[0][most] = 0;
    }
}

/* 16 for an exponent that has none. */
static void
invert(const uint8_t *exponents, uint8_t *codes)
{
    memset(codes, CODES, 256);
    for (int code = CODES - 1; code >= 0; code--)
        codes[exponents[code]] = (uint8_t)code;
}

/* Floats of a piece: @group of vector @v. */
static const uint32_t *
piece_floats(const Block *b, int64_t group, int64_t v)
{
    return b->floats + group * STEPS * b->pitch + v * b->vector;
}

static bool
is_raw(const Block *b, const uint32_t *floats, const uint8_t *codes)
{
    unsigned seen = 0;
    for (int s = 0; s < STEPS; s++) {
        for (int64_t i = 0; i < b->vector; i++)
            seen |= codes[exponent_of(floats[s * b->pitch + i])];
    }
    return seen & CODES;
}

static void
describe(const Block *b, KilnGemmExactBlock *out)
{
    uint8_t codes[256];
    choose_exponents(b, out->exponents);
    invert(out->exponents, codes);
    for (int64_t v = 0; v * b->vector < b->pitch; v++) {
        for (int64_t group = 0; group < b->depth / STEPS; group++)
            out->raw[v] |= (uint32_t)is_raw(b, piece_floats(b, group, v), codes) << group;
    }
}

/* Bytes of a block of @depth steps and @pitch columns. */
static int64_t
block_bytes(const KilnGemmPlan *plan, const KilnGemmExactBlock *block, int64_t depth, int64_t pitch)
{
    int64_t groups = depth / STEPS;
    int64_t gained = groups * (pitch / plan->kernels->vector) - __builtin_popcount(block->raw[0]) -
                     __builtin_popcount(block->raw[1]);
    int64_t bytes = 4 * (depth * pitch - gained * plan->kernels->vector);
    return round_up(bytes, KILN_GEMM_EXACT_ALIGN);
}

/* Blocks lie in the order in which they are described. */
static int64_t
n_blocks(const KilnGemmPlan *plan)
{
    int64_t depths = plan->depth ? ceil_div(plan->depth, plan->depth_block) : 0;
    return depths * plan->cols.panels;
}

static KilnGemmSpot
spot_of(const KilnGemmPlan *plan, int64_t index)
{
    return (KilnGemmSpot){ index % plan->cols.panels,
                           index / plan->cols.panels * plan->depth_block };
}

static int64_t
bytes_at(const KilnGemmPlan *plan, const KilnGemmExactBlock *blocks, int64_t index)
{
    KilnGemmSpot spot = spot_of(plan, index);
    return block_bytes(plan, blocks + index, kiln_gemm_depth(plan, spot.k).size,
                       kiln_gemm_panel(plan, &plan->cols, spot.panel).pitch);
}

int64_t
kiln_gemm_exact_head_size(const KilnGemmPlan *plan)
{
    int64_t bytes = n_blocks(plan) * (int64_t)sizeof(KilnGemmExactBlock);
    return round_up(bytes, KILN_GEMM_EXACT_ALIGN);
}

typedef struct {
    const KilnGemmPlan *plan;
    const KilnGemmSide *side;
    KilnGemmExactBlock *blocks;
} Fit;

static void
fit_task(const void *data, int64_t index, int thread)
{
    (void)thread;
    const Fit *fit = data;
    Block b;
    block_read(&b, fit->plan, fit->side, spot_of(fit->plan, index));
    describe(&b, fit->blocks + index);
}

int64_t
kiln_gemm_exact_fit(const KilnGemmPlan *plan, const KilnGemmSide *side, int threads,
                    KilnGemmExactBlock *head)
{
    Fit fit = { plan, side, head };
    int64_t n = n_blocks(plan), floats = 4 * kiln_gemm_packed_floats(plan, &plan->cols);
    if (floats < WORTH_BYTES)
        return 0;
    kiln_cpu_parallel(n, threads, fit_task, &fit);
    int64_t end = kiln_gemm_exact_head_size(plan);
    for (int64_t i = 0; i < n; i++) {
        head[i].at = (uint32_t)(end / KILN_GEMM_EXACT_ALIGN);
        head[i].bytes = (uint32_t)bytes_at(plan, head, i);
        end += head[i].bytes;
    }
    int64_t gained = floats - end;
    bool worth = gained >= floats / WORTH && gained >= WORTH_BYTES;
    return worth && end / KILN_GEMM_EXACT_ALIGN <= UINT32_MAX ? end : 0;
}

bool
kiln_gemm_exact_is_sound(const KilnGemmPlan *plan, const KilnGemmExactBlock *head, int64_t bytes)
{
    int64_t end = kiln_gemm_exact_head_size(plan);
    if (bytes < end)
        return false;
    for (int64_t i = 0; i < n_blocks(plan); i++) {
        if (head[i].at != end / KILN_GEMM_EXACT_ALIGN || head[i].bytes != bytes_at(plan, head, i))
            return false;
        end += head[i].bytes;
    }
    return end == bytes;
}

/* Eight steps of a vector of columns in 28 bits each. Returns the end. */
static uint32_t *
pack_piece(const Block *b, const uint32_t *floats, const uint8_t *codes, uint32_t *dst)
{
    int64_t n = b->vector, pitch = b->pitch;
    for (int64_t i = 0; i < n; i++) {
        uint32_t word = 0;
        for (int s = 0; s < STEPS; s++)
            word |= (uint32_t)codes[exponent_of(floats[s * pitch + i])] << 4 * s;
        dst[i] = word;
    }
    dst += n;
    for (int r = 0; r < ROWS; r++, dst += n) {
        const uint32_t *row = floats + r * pitch, *rest = floats + (ROWS + r / 3) * pitch;
        int turn = 24 - r % 3 * 8; /* of the rest's third to its place, leftwards */
        for (int64_t i = 0; i < n; i++)
            dst[i] =
                (row[i] & 0x807fffff) | ((rest[i] << turn | rest[i] >> (32 - turn)) & 0x7f800000);
    }
    return dst;
}

static void
pack_block(const Block *b, const KilnGemmExactBlock *block, uint32_t *dst)
{
    uint8_t codes[256];
    invert(block->exponents, codes);
    int64_t groups = b->depth / STEPS;
    for (int64_t group = 0; group < groups; group++) {
        for (int64_t v = 0; v * b->vector < b->pitch; v++) {
            const uint32_t *floats = piece_floats(b, group, v);
            if (!(block->raw[v] >> group & 1)) {
                dst = pack_piece(b, floats, codes, dst);
                continue;
            }
            for (int s = 0; s < STEPS; s++, dst += b->vector)
                memcpy(dst, floats + s * b->pitch, (size_t)b->vector * 4);
        }
    }
    memcpy(dst, b->floats + groups * STEPS * b->pitch,
           (size_t)((b->depth - groups * STEPS) * b->pitch) * 4);
}

void
kiln_gemm_exact_pack(const KilnGemmPlan *plan, const KilnGemmSide *side, KilnSlice slice,
                     KilnGemmExactBlock *head)
{
    int64_t panels = plan->cols.panels;
    int64_t begin = kiln_slice_begin(slice, panels), end = kiln_slice_end(slice, panels);
    for (int64_t k = 0; k < plan->depth; k += plan->depth_block) {
        for (int64_t i = begin; i < end; i++) {
            const KilnGemmExactBlock *block = kiln_gemm_exact_block(plan, head, i, k);
            void *dst = (char *)head + (int64_t)block->at * KILN_GEMM_EXACT_ALIGN;
            Block b;
            block_read(&b, plan, side, (KilnGemmSpot){ i, k });
            pack_block(&b, block, dst);
        }
    }
}
