/* SPDX-License-Identifier: Apache-2.0 */
/* Weights in 28 bits: the bits of products with the same weights in floats, on every instruction
 * set; which weights are packed so; heads that lie; programs that hold such weights. */
#include "backends/cpu/gemm/gemm_exact.h"

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/gemm_kernel.h"
#include "backends/cpu/isa.h"
#include "ir/slice.h"
#include "kiln.h"
#include "runtime/digest/digest.h"
#include "runtime/tensors/file.h"
#include "runtime/program_file.h"
#include "tests/unit/exact_memory.h"
#include "tests/unit/runtime_case.h"

#include <criterion/logging.h>
#include <glib/gstdio.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(cpu_gemm_exact);

static uint32_t
random_bits(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 32);
}

/* About normal, so that exponents are as those of a model's weights: a few are very small. */
static void
fill_normal(float *x, int64_t n)
{
    uint64_t seed = 1;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j < 4; j++)
            sum += (double)random_bits(&seed) / 4294967296.0 - 0.5;
        x[i] = (float)(0.05 * sum);
    }
}

/* What weights may be, too: zeros of both signs, denormals, infinities, NaNs with a payload, all of
 * them coded, for others have ten exponents. One of them for some columns at most: which of two
 * NaNs a sum keeps is the compiler's choice. */
static void
fill_odd(float *x, int64_t n)
{
    static const uint32_t odd[] = { 0x7fc12345, 0x80000000, 1,          0x807fffff, 0x7f800000,
                                    0xff800000, 0xffd54321, 0x7f7fffff, 0x00800000, 0x7fa00001 };
    uint64_t seed = 3;
    for (int64_t i = 0; i < n; i++) {
        uint32_t random = random_bits(&seed), exponent = random >> 23 & 7;
        uint32_t bits = (random & 0x807fffff) | (exponent ? 118 + exponent : i % 2) << 23;
        memcpy(x + i, &bits, 4);
    }
    for (int64_t i = 0; i < n; i += 37)
        x[i] = i % 2 ? 0.0f : -0.0f;
    for (int64_t i = 0, next = 0; next < n; next += 2101 + i++)
        memcpy(x + next, &odd[i % (int64_t)G_N_ELEMENTS(odd)], 4);
}

/* @g's right operand in 28 bits, packed in @n slices, the last one first; NULL where it is not. */
static char *
pack(const KilnCpuGemm *g, const float *b, int64_t n, int threads, int64_t *bytes)
{
    int64_t size = kiln_cpu_gemm_exact_head_size(g);
    cr_assert_gt(size, 0);
    void *head = memset(exact_memory(size), 0, (size_t)size);
    *bytes = kiln_cpu_gemm_exact_fit(g, b, head, threads);
    char *packed = *bytes ? memset(exact_memory(*bytes), 0, (size_t)*bytes) : NULL;
    if (packed)
        memcpy(packed, head, (size_t)size);
    for (int64_t i = n; packed && i-- > 0;)
        kiln_cpu_gemm_exact_pack(g, b, packed, (KilnSlice){ i, n });
    free(head);
    return packed;
}

static float *
product(KilnCpuGemm g, const KilnCpuGemmArgs *operands, const void *packed, int threads)
{
    KilnCpuGemmArgs args = *operands;
    args.threads = threads;
    args.b = packed;
    args.out = exact_memory(4 * g.m * g.n);
    g.b_packed = true;
    memset(args.out, 0xff, (size_t)(4 * g.m * g.n));
    args.scratch = exact_memory(kiln_cpu_gemm_scratch_size(&g, threads));
    kiln_cpu_gemm_run(&g, &args);
    free(args.scratch);
    return args.out;
}

/* Counts in *@io_checked; the other operand is the vectors where it does not. */
static void
check(KilnCpuGemm g, void (*fill)(float *x, int64_t n), int *io_checked)
{
    if (kiln_cpu_gemm_exact_head_size(&g) == 0)
        return;
    cr_expect(kiln_cpu_gemm_exact_suits(&g));
    ++*io_checked;
    float *a = exact_memory(4 * g.m * g.k), *b = exact_memory(4 * g.k * g.n),
          *bias = exact_memory(4 * g.n);
    for (int64_t i = 0; i < g.m * g.k; i++)
        a[i] = cosf((float)i);
    fill_normal(bias, g.n);
    fill(b, g.k * g.n);
    void *floats = exact_memory(kiln_cpu_gemm_pack_b_size(&g));
    kiln_cpu_gemm_pack_b(&g, b, floats, KILN_SLICE_WHOLE);
    int64_t bytes, again_bytes;
    char *packed = pack(&g, b, 1, 1, &bytes), *again = pack(&g, b, 5, 3, &again_bytes);
    cr_assert(packed && again && bytes == again_bytes);
    cr_expect_eq(memcmp(packed, again, (size_t)bytes), 0, "slices and threads");
    cr_expect(kiln_cpu_gemm_exact_is_sound(&g, packed, bytes));
    KilnCpuGemmArgs args = { .a = a, .bias = bias };
    float *want = product(g, &args, floats, 1);
    g.b_storage = KILN_GEMM_EXACT;
    for (int threads = 1; threads <= 4; threads++) {
        float *out = product(g, &args, packed, threads);
        cr_assert_eq(memcmp(out, want, (size_t)(4 * g.m * g.n)), 0, "%s %ldx%ldx%ld %d threads",
                     kiln_cpu_isa_name(g.isa), (long)g.m, (long)g.n, (long)g.k, threads);
        free(out);
    }
    free(want);
    free(packed);
    free(again);
    free(floats);
    free(bias);
    free(b);
    free(a);
}

static void
check_isa(KilnCpuIsa isa)
{
    /* A panel and parts of one, pairs and what is left of them; depths of many blocks, and of steps
       behind the last group. */
    static const int64_t shapes[][2] = { { 64, 600 }, { 96, 515 },   { 75, 1003 },
                                         { 16, 999 }, { 1000, 257 }, { 33, 2048 } };
    if (!kiln_cpu_isa_supported(isa)) {
        cr_log_info("skipped: this machine has no %s", kiln_cpu_isa_name(isa));
        return;
    }
    for (int64_t m = 1; m <= 4; m++) {
        int checked = 0;
        for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
            KilnCpuGemm g = kiln_cpu_gemm_dense(m, shapes[i][0], shapes[i][1]);
            g.isa = isa;
            g.tail.hi = 1.0f;
            check(g, fill_normal, &checked);
            g.b_row = 1;
            g.b_col = g.k;
            check(g, fill_odd, &checked);
        }
        cr_expect_geq(checked, (int)G_N_ELEMENTS(shapes), "%d rows: most shapes are transposed",
                      (int)m);
    }
}

Test(cpu_gemm_exact, portable_gives_the_bits_of_floats)
{
    check_isa(KILN_CPU_ISA_PORTABLE);
}

Test(cpu_gemm_exact, avx2_gives_the_bits_of_floats)
{
    check_isa(KILN_CPU_ISA_AVX2);
}

Test(cpu_gemm_exact, avx512_gives_the_bits_of_floats)
{
    check_isa(KILN_CPU_ISA_AVX512);
}

/* Sixteen exponents and not one more are short; weights of all exponents stay floats. */
Test(cpu_gemm_exact, exponents_decide)
{
    KilnCpuGemm g = kiln_cpu_gemm_dense(1, 64, 512);
    float *b = exact_memory(4 * g.k * g.n);
    int64_t bytes = 0;
    double share = 0;
    for (int exponents = 16; exponents <= 17; exponents++) {
        for (int64_t i = 0; i < g.k * g.n; i++)
            b[i] = ldexpf(i % 3 ? 1.25f : -1.75f, (int)(i % exponents) - 8);
        free(pack(&g, b, 1, 1, &bytes));
        share = (double)bytes / (double)(4 * g.k * g.n);
        cr_expect(exponents == 16 ? share > 0.87 && share < 0.88 : bytes == 0, "%d: %g", exponents,
                  share);
    }
    fill_normal(b, g.k * g.n);
    free(pack(&g, b, 1, 1, &bytes));
    share = (double)bytes / (double)(4 * g.k * g.n);
    cr_expect(share > 0.87 && share < 0.89, "%g", share);
    uint64_t seed = 7;
    for (int64_t i = 0; i < g.k * g.n; i++) {
        uint32_t bits = random_bits(&seed);
        memcpy(b + i, &bits, 4);
    }
    free(pack(&g, b, 1, 1, &bytes));
    cr_expect_eq(bytes, 0);
    g.m = 5;
    cr_expect_not(kiln_cpu_gemm_exact_suits(&g), "more rows read floats");
    free(b);
}

/* A head that is not that of its bytes. */
Test(cpu_gemm_exact, heads_are_checked)
{
    KilnCpuGemm g = kiln_cpu_gemm_dense(1, 80, 600);
    float *b = exact_memory(4 * g.k * g.n);
    fill_normal(b, g.k * g.n);
    int64_t bytes;
    char *packed = pack(&g, b, 1, 1, &bytes);
    KilnGemmExactBlock *blocks = (KilnGemmExactBlock *)(void *)packed, whole = blocks[1];
    cr_expect(kiln_cpu_gemm_exact_is_sound(&g, packed, bytes));
    cr_expect_not(kiln_cpu_gemm_exact_is_sound(&g, packed, bytes - 64));
    cr_expect_not(kiln_cpu_gemm_exact_is_sound(&g, packed, 64));
    cr_expect_not(kiln_cpu_gemm_exact_is_sound(&g, packed, 0));
    blocks[1].at++;
    cr_expect_not(kiln_cpu_gemm_exact_is_sound(&g, packed, bytes));
    blocks[1] = whole;
    blocks[1].bytes += 64;
    cr_expect_not(kiln_cpu_gemm_exact_is_sound(&g, packed, bytes));
    blocks[1] = whole;
    blocks[1].raw[0] = (1 << 25) - 1; /* nearly none of them are */
    cr_expect_not(kiln_cpu_gemm_exact_is_sound(&g, packed, bytes));
    free(packed);
    free(b);
}

/* --- programs --- */

static const char model[] = "graph @f(%x: f32[1,600]) {\n  %w = const @w : f32[600,320]\n"
                            "  %y = matmul(%x, %w) : f32[1,320]\n  return %y\n}\n"
                            "constants { @w = random_normal(seed=1, std=0.05) : f32[600,320] }";

static KilnProgram *
compiled(gboolean prefer_memory, int threads)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = threads;
    options.prefer_memory = prefer_memory;
    options.no_offload = TRUE;
    return program_of(model, &options);
}

static void
run_program(KilnProgram *program, float *out)
{
    GError *error = NULL;
    float x[600];
    for (int i = 0; i < 600; i++)
        x[i] = sinf((float)i);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    cr_assert(session, "%s", error ? error->message : "");
    bind(session, 0, x, sizeof x);
    must(kiln_session_run(session, &error), error);
    memcpy(out, kiln_session_output(session, 0, NULL, NULL), 320 * sizeof *out);
}

static int64_t
weight_bytes(KilnProgram *program)
{
    KilnMemoryReport memory = KILN_MEMORY_REPORT_INIT;
    kiln_program_memory(program, &memory, NULL);
    return memory.weights;
}

Test(cpu_gemm_exact, prefer_memory_packs_fewer_bytes_for_the_same_bits)
{
    g_autoptr(KilnProgram) fast = compiled(FALSE, 1), small = compiled(TRUE, 2);
    float want[320], out[320];
    run_program(fast, want);
    run_program(small, out);
    cr_expect_arr_eq(want, out, sizeof want);
    cr_expect_geq(weight_bytes(fast), 600 * 320 * 4);
    cr_expect_lt(weight_bytes(small), weight_bytes(fast) * 0.89);
}

/* What was measured is not measured again, and a file is not believed. */
Test(cpu_gemm_exact, saved_programs_hold_them)
{
    GError *error = NULL;
    g_autoptr(KilnProgram) program = compiled(TRUE, 1);
    float want[320], out[320];
    run_program(program, want);
    g_autofree char *path = NULL;
    close(g_file_open_tmp("kiln-exact-XXXXXX", &path, NULL));
    must(kiln_program_save(program, path, &error), error);
    g_autoptr(GBytes) file = kiln_file_map(path, NULL);
    g_autoptr(KilnProgram) loaded = kiln_program_load_bytes(file, "file", NULL, &error);
    cr_assert(loaded, "%s", error ? error->message : "");
    cr_expect_eq(weight_bytes(loaded), weight_bytes(program));
    run_program(loaded, out);
    cr_expect_arr_eq(want, out, sizeof want);

    size_t size;
    const void *data = g_bytes_get_data(file, &size);
    char *copy = memcpy(g_aligned_alloc(1, size, 64), data, size);
    KilnProgramHeader *header = (KilnProgramHeader *)(void *)copy;
    KilnSection *sections = (KilnSection *)(void *)(copy + sizeof *header);
    for (uint32_t i = 0; i < header->n_sections; i++) {
        if (sections[i].kind == KILN_SECTION_PACKED)
            ((KilnGemmExactBlock *)(void *)(copy + sections[i].offset))->at += 1000;
        sections[i].digest = kiln_digest(copy + sections[i].offset, sections[i].size);
    }
    header->digest = kiln_program_header_digest(header, sections);
    g_autoptr(GBytes) damaged = g_bytes_new_with_free_func(copy, size, g_aligned_free, copy);
    g_autoptr(KilnProgram) refused = kiln_program_load_bytes(damaged, "file", NULL, &error);
    cr_assert_null(refused);
    expect_error(&error, KILN_ERROR_INVALID, "packed weights: expected what cpu:matmul packs");
    g_unlink(path);
}
