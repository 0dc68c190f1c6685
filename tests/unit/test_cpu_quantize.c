/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend's conversions between f32 and quantized types, and tables: bits of the reference.
 */
#include "backends/cpu/isa.h"
#include "backends/cpu/elementwise/look_up.h"
#include "cpu_case.h"
#include "ir/instr.h"
#include "tests/unit/ref_case.h"

#include <math.h>

static void
check(KilnInstrKind kind, KilnDType stored, int64_t rows, const KilnQuant *quant)
{
    bool quantizes = kind == KILN_INSTR_quantize_linear;
    g_autoptr(RefCase) c = case_new(kind);
    g_autofree double *values = g_new(double, (gsize)rows * 300);
    for (int64_t i = 0; i < rows * 300; i++)
        values[i] = quantizes ? (double)(i - rows * 150) / 4 : (double)(i * 7919 % 65536);
    if (quantizes && rows) {
        values[0] = NAN;
        values[1] = INFINITY;
        values[2] = -INFINITY;
        values[3] = 1e30;
    }
    case_out(c, quantizes ? stored : KILN_DTYPE_f32, DIMS(rows, 2, 150));
    case_in(c, quantizes ? KILN_DTYPE_f32 : stored, DIMS(rows, 2, 150), values);
    c->buffers[quantizes ? 0 : 1].type.quant = quant;
    cpu_agrees(c, (Tolerance){ 0, 0 }, kiln_dtype_name(stored));
}

Test(cpu_quantize, has_the_bits_of_the_reference)
{
    static const KilnDType stored[] = { KILN_DTYPE_i8, KILN_DTYPE_u8, KILN_DTYPE_i16,
                                        KILN_DTYPE_u16 };
    for (size_t i = 0; i < G_N_ELEMENTS(stored); i++) {
        for (int64_t rows = 0; rows <= 150; rows += 75) {
            const KilnQuant one = { -1, 1, (float[]){ 0.3f }, (int32_t[]){ 17 } };
            const KilnQuant two = { 1, 2, (float[]){ 0.3f, 0.5f }, (int32_t[]){ 17, 0 } };
            check(KILN_INSTR_quantize_linear, stored[i], rows, &one);
            check(KILN_INSTR_quantize_linear, stored[i], rows, &two);
            check(KILN_INSTR_dequantize_linear, stored[i], rows, &one);
            check(KILN_INSTR_dequantize_linear, stored[i], rows, &two);
        }
    }
}

Test(cpu_quantize, tables_of_every_size)
{
    static const KilnDType tables[] = { KILN_DTYPE_u8, KILN_DTYPE_i16, KILN_DTYPE_f32,
                                        KILN_DTYPE_i64 };
    double table[256];
    enum {
        N = 40013
    };
    g_autofree double *values = g_new(double, N);
    for (int i = 0; i < 256; i++)
        table[i] = i * 37 % 251;
    for (size_t i = 0; i < G_N_ELEMENTS(tables); i++) {
        for (KilnDType x = KILN_DTYPE_i8;; x = KILN_DTYPE_u8) {
            for (int k = 0; k < N; k++)
                values[k] = k * 31 % 256 - (x == KILN_DTYPE_i8 ? 128 : 0);
            g_autoptr(RefCase) c = case_new(KILN_INSTR_lookup_table);
            case_out(c, tables[i], DIMS(N));
            case_in(c, x, DIMS(N), values);
            case_in(c, tables[i], DIMS(256), table);
            cpu_agrees(c, (Tolerance){ 0, 0 }, kiln_dtype_name(tables[i]));
            if (x == KILN_DTYPE_u8)
                break;
        }
    }
}

/* Of every length, with what lies behind untouched, and in place. */
Test(cpu_quantize, tables_of_bytes_on_every_instruction_set)
{
    const struct {
        KilnCpuLookUp look_up;
        bool runs;
    } ways[] = {
        { kiln_cpu_look_up_portable, true },
#if defined(__x86_64__)
        { kiln_cpu_look_up_avx2, kiln_cpu_isa_supported(KILN_CPU_ISA_AVX2) },
        { kiln_cpu_look_up_avx512, kiln_cpu_isa_supported(KILN_CPU_ISA_AVX512) },
        { kiln_cpu_look_up_avx512vbmi, __builtin_cpu_supports("avx512vbmi") },
#endif
    };
    enum {
        MOST = 260
    };
    uint8_t table[256], x[MOST], to[MOST + 1];
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)(i * 37 + 11);
    for (size_t w = 0; w < G_N_ELEMENTS(ways); w++) {
        for (int n = 0; ways[w].runs && n <= MOST; n++) {
            for (int i = 0; i < MOST; i++)
                to[i] = x[i] = (uint8_t)(i * 29);
            to[n] = 77;
            ways[w].look_up(to, n % 2 ? to : x, n, table);
            for (int i = 0; i < n; i++)
                cr_assert_eq(to[i], table[x[i]], "way %zu, byte %d of %d", w, i, n);
            cr_assert_eq(to[n], 77);
        }
    }
}
