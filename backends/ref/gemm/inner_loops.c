/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of rows.h, expanded for every float and integer type. */
#include "backends/ref/gemm/inner_loops.h"

#define FIELD f
#define TEMPLATE "backends/ref/gemm/inner_loops_type.h"
#include "backends/ref/elementwise/for_floats.h"
#undef FIELD

/* Unsigned arithmetic wraps; a signed element is sign-extended by the conversion. */
#define FIELD u
#define LOAD(pointer, i) ((uint64_t)(pointer)[i])
#define STORE(pointer, i, value) ((pointer)[i] = (T)(value))
#define NAME(x) x##_i8
#define T int8_t
#include "backends/ref/gemm/inner_loops_type.h"
#undef NAME
#undef T
#define NAME(x) x##_i16
#define T int16_t
#include "backends/ref/gemm/inner_loops_type.h"
#undef NAME
#undef T
#define NAME(x) x##_i32
#define T int32_t
#include "backends/ref/gemm/inner_loops_type.h"
#undef NAME
#undef T
#define NAME(x) x##_i64
#define T int64_t
#include "backends/ref/gemm/inner_loops_type.h"
#undef NAME
#undef T
#define NAME(x) x##_u8
#define T uint8_t
#include "backends/ref/gemm/inner_loops_type.h"
#undef NAME
#undef T
#define NAME(x) x##_u16
#define T uint16_t
#include "backends/ref/gemm/inner_loops_type.h"
#undef NAME
#undef T
#define NAME(x) x##_u32
#define T uint32_t
#include "backends/ref/gemm/inner_loops_type.h"
#undef NAME
#undef T
#define NAME(x) x##_u64
#define T uint64_t
#include "backends/ref/gemm/inner_loops_type.h"
#undef NAME
#undef T

const RefRows *
kiln_ref_rows(KilnDType dtype)
{
    static const RefRows *const rows[KILN_N_DTYPES] = {
        [KILN_DTYPE_f32] = &rows_f32,   [KILN_DTYPE_f64] = &rows_f64, [KILN_DTYPE_f16] = &rows_f16,
        [KILN_DTYPE_bf16] = &rows_bf16, [KILN_DTYPE_i8] = &rows_i8,   [KILN_DTYPE_i16] = &rows_i16,
        [KILN_DTYPE_i32] = &rows_i32,   [KILN_DTYPE_i64] = &rows_i64, [KILN_DTYPE_u8] = &rows_u8,
        [KILN_DTYPE_u16] = &rows_u16,   [KILN_DTYPE_u32] = &rows_u32, [KILN_DTYPE_u64] = &rows_u64,
    };
    return rows[dtype];
}
