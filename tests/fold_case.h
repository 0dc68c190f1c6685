/* SPDX-License-Identifier: Apache-2.0 */
/* The example with three weights of the client's document, in its two printed forms and without
 * folding. %w0 is a literal, %w1 is known at compile time, %w2 at the first run. The weights are
 * stored transposed. Folding transposes them once. */
#ifndef KILN_TESTS_FOLD_CASE_H
#define KILN_TESTS_FOLD_CASE_H

#include <glib.h>
#include <unistd.h>

enum {
    MLP_WIDTH = 16,
    MLP_WEIGHT = MLP_WIDTH * MLP_WIDTH,
};

#define MLP_ENTRY                                                                                  \
    "graph @mlp(%x: f32[1,16], %f0: f32[16,16], %f1: f32[16,16], %f2: f32[16,16]) {\n"             \
    "  %a = matmul(%x, %f0) : f32[1,16]\n"                                                         \
    "  %b = matmul(%a, %f1) : f32[1,16]\n"                                                         \
    "  %c = matmul(%b, %f2) : f32[1,16]\n"                                                         \
    "  return %c\n"                                                                                \
    "}\n"
#define MLP_SIGNATURE                                                                              \
    "(%x: f32[1,16], %w1: f32[16,16] constant=compile, %w2: f32[16,16] constant=run)"
#define MLP_CONSTANTS "constants { @w0 = random_normal(seed=7, std=0.2) : f32[16,16] }\n"

static const char mlp_two[] =
    "graph @runtime_fold(%w1: f32[16,16] constant=compile, %w2: f32[16,16] constant=run) {\n"
    "  %w0 = const @w0 : f32[16,16]\n"
    "  %f0 = transpose(%w0) {perm=[1,0]} : f32[16,16]\n"
    "  %f1 = transpose(%w1) {perm=[1,0]} : f32[16,16]\n"
    "  %f2 = transpose(%w2) {perm=[1,0]} : f32[16,16]\n"
    "  return %f0, %f1, %f2\n"
    "}\n" MLP_ENTRY "fold" MLP_SIGNATURE " {\n"
    "  %f0, %f1, %f2 = run @runtime_fold(%w1, %w2)\n"
    "}\n" MLP_CONSTANTS;

static const char mlp_three[] = "graph @compiletime_fold(%w1: f32[16,16] constant=compile) {\n"
                                "  %w0 = const @w0 : f32[16,16]\n"
                                "  %f0 = transpose(%w0) {perm=[1,0]} : f32[16,16]\n"
                                "  %f1 = transpose(%w1) {perm=[1,0]} : f32[16,16]\n"
                                "  return %f0, %f1\n"
                                "}\n"
                                "graph @runtime_fold(%w2: f32[16,16] constant=run) {\n"
                                "  %f2 = transpose(%w2) {perm=[1,0]} : f32[16,16]\n"
                                "  return %f2\n"
                                "}\n" MLP_ENTRY "fold" MLP_SIGNATURE " {\n"
                                "  %f0, %f1 = compile @compiletime_fold(%w1)\n"
                                "  %f2 = run @runtime_fold(%w2)\n"
                                "}\n" MLP_CONSTANTS;

static const char mlp_plain[] = "graph @mlp" MLP_SIGNATURE " {\n"
                                "  %w0 = const @w0 : f32[16,16]\n"
                                "  %f0 = transpose(%w0) {perm=[1,0]} : f32[16,16]\n"
                                "  %f1 = transpose(%w1) {perm=[1,0]} : f32[16,16]\n"
                                "  %f2 = transpose(%w2) {perm=[1,0]} : f32[16,16]\n"
                                "  %a = matmul(%x, %f0) : f32[1,16]\n"
                                "  %b = matmul(%a, %f1) : f32[1,16]\n"
                                "  %c = matmul(%b, %f2) : f32[1,16]\n"
                                "  return %c\n"
                                "}\n" MLP_CONSTANTS;

/** Fills @n floats in [-1, 1) from @seed. */
static inline void
mlp_fill(float *data, int n, unsigned seed)
{
    for (unsigned i = 0; i < (unsigned)n; i++)
        data[i] = (float)((i * 2654435761u + seed * 40503u) % 2000) / 1000 - 1;
}

/** Removes the files that fold functions left in @directory, and the folder. */
static inline void
mlp_remove_folder(const char *directory)
{
    g_autoptr(GDir) files = g_dir_open(directory, 0, NULL);
    for (const char *name; (name = g_dir_read_name(files));) {
        g_autofree char *path = g_build_filename(directory, name, NULL);
        unlink(path);
    }
    rmdir(directory);
}

#endif
