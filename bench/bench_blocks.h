/* SPDX-License-Identifier: Apache-2.0 */
/* Builds synthetic programs from blocks of text. */
#ifndef KILN_BENCH_BENCH_BLOCKS_H
#define KILN_BENCH_BENCH_BLOCKS_H

#include <glib.h>
#include <stdint.h>

enum {
    BENCH_LIVE = 8 /* values that later blocks may read */
};

/** Lines of a program. `{x}` and `{y}` stand for live values, `{i}` for the number of the block,
 * which makes names unique. The result of a block is called %r{i}. */
typedef struct {
    const char *body;
    const char *beside; /* lines that stand elsewhere: constants, or the end of a function */
} BenchBlock;

typedef struct {
    const BenchBlock *blocks;
    unsigned n_blocks;
    uint64_t seed;
    GString *body, *beside;
    unsigned body_lines, beside_lines;
    unsigned n_added;
    char *live[BENCH_LIVE]; /* names with their sigils */
} BenchBuilder;

/** The first live values are called @live with a number behind it. */
void bench_builder_init(BenchBuilder *builder, const BenchBlock *blocks, unsigned n_blocks,
                        uint64_t seed, const char *live);
void bench_builder_clear(BenchBuilder *builder);
/** Adds a random block. Its result replaces the live value that it reads as {x}. */
void bench_builder_add(BenchBuilder *builder);

#endif
