/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices of bytes minus their zero points. Results are i32, which wraps, or scaled to
 * bytes. Left rows are copied as u8, padded to groups of four, with their sums. The right matrix is
 * packed into panels of columns as s8, with the sums of its columns. A constant one is packed when
 * a program is bound, any other in every run. Work is cut by shape into blocks of rows by groups of
 * panels. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_INTEGER_INTEGER_MATMUL_H
#define KILN_BACKENDS_CPU_INTEGER_INTEGER_MATMUL_H

#include "backends/cpu/integer/integer_args.h"
#include "ir/slice.h"

typedef struct {
    int64_t m, n, k;
    int64_t b_row, b_col; /* strides of the right matrix */
    bool a_signed, b_signed;
} KilnIntegerMatmul;

int64_t kiln_integer_matmul_packed_size(const KilnIntegerMatmul *p);
void kiln_integer_matmul_pack(const KilnIntegerMatmul *p, const void *b, void *packed,
                              KilnSlice slice);
int64_t kiln_integer_matmul_scratch_size(const KilnIntegerMatmul *p, bool packed);
/** Multiplies two matrices. */
void kiln_integer_matmul_run(const KilnIntegerMatmul *p, const KilnIntegerArgs *args);

#endif
