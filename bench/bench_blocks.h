/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic programs put together from blocks of text. */
#ifndef KILN_BENCH_BENCH_BLOCKS_H
#define KILN_BENCH_BENCH_BLOCKS_H

#include <glib.h>
#include <stdint.h>

enum {
    BENCH_LIVE = 8 /* values that later blocks may read */
};

/** Lines of a program in which `{x}` and `{y}` stand for values that are live, `{i}` for the number
 * of the block, which makes names unique. What it makes is called %r{i}. */
typedef struct {
    const char *body;
    const char *beside; /* lines that stand elsewhere: constants, or what ends a function */
} BenchBlock;

typedef struct {
    const BenchBlock *blocks;
    unsigned n_blocks;
    uint64_t seed;
    GString *body, *beside;
    unsigned body_lines, beside_lines;
    unsigned n_added;
    char *live[BENCH_LIVE]; /* names, with their sigils */
} BenchBuilder;

/** The live values are @live with a number behind it to begin with. */
void bench_builder_init(BenchBuilder *builder, const BenchBlock *blocks, unsigned n_blocks,
                        uint64_t seed, const char *live);
void bench_builder_clear(BenchBuilder *builder);
/** Adds any of the blocks; its result takes the place of the value that it read. */
void bench_builder_add(BenchBuilder *builder);

#endif
