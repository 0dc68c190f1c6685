/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks in random order over a few live values. */
#include "bench/bench_blocks.h"

void
bench_builder_init(BenchBuilder *builder, const BenchBlock *blocks, unsigned n_blocks,
                   uint64_t seed, const char *live)
{
    *builder = (BenchBuilder){ .blocks = blocks,
                               .n_blocks = n_blocks,
                               .seed = seed,
                               .body = g_string_new(NULL),
                               .beside = g_string_new(NULL) };
    for (int i = 0; i < BENCH_LIVE; i++)
        builder->live[i] = g_strdup_printf("%s%d", live, i);
}

void
bench_builder_clear(BenchBuilder *builder)
{
    g_string_free(builder->body, TRUE);
    g_string_free(builder->beside, TRUE);
    for (int i = 0; i < BENCH_LIVE; i++)
        g_free(builder->live[i]);
}

static uint64_t
next(BenchBuilder *builder)
{
    uint64_t z = builder->seed += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Appends @text with {x}, {y} and {i} filled in; returns its lines. */
static unsigned
fill(GString *out, const char *text, const char *x, const char *y, unsigned i)
{
    unsigned lines = 0;
    for (; *text; text++) {
        if (*text != '{' || !text[1] || text[2] != '}') {
            lines += *text == '\n';
            g_string_append_c(out, *text);
            continue;
        }
        if (text[1] == 'i')
            g_string_append_printf(out, "%u", i);
        else
            g_string_append(out, text[1] == 'x' ? x : y);
        text += 2;
    }
    return lines;
}

void
bench_builder_add(BenchBuilder *builder)
{
    uint64_t random = next(builder);
    const BenchBlock *block = &builder->blocks[random % builder->n_blocks];
    unsigned x = random >> 20 & (BENCH_LIVE - 1), y = random >> 40 & (BENCH_LIVE - 1);
    unsigned i = builder->n_added++;
    builder->body_lines += fill(builder->body, block->body, builder->live[x], builder->live[y], i);
    builder->beside_lines += fill(builder->beside, block->beside, "", "", i);
    g_free(builder->live[x]);
    builder->live[x] = g_strdup_printf("%%r%u", i);
}
