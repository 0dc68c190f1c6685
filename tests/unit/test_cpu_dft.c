/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend's dft against the reference: lengths of all small factors and of large primes,
 * signals that are shorter or longer, every axis, real and complex numbers. */
#include "ir/instr.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

/* Both round from double. */
static const Tolerance rounded = { 1e-6, 2e-6 };

typedef struct {
    int64_t length, extent; /* of the transform and of the signal */
    int64_t outer, inner;
    bool complex, inverse, onesided;
} Signal;

static void
try_signal(const Signal *s)
{
    const bool real = s->inverse && s->onesided;
    const int64_t out = s->onesided && !s->inverse ? s->length / 2 + 1 : s->length;
    g_autofree char *what = g_strdup_printf("length %d of %d, %d around, %d within", (int)s->length,
                                            (int)s->extent, (int)s->outer, (int)s->inner);
    g_autoptr(RefCase) c = case_new(KILN_INSTR_dft);
    CASE_ATTRS(c, dft)->axis = 1;
    CASE_ATTRS(c, dft)->inverse = s->inverse;
    CASE_ATTRS(c, dft)->onesided = s->onesided;
    CASE_ATTRS(c, dft)->length = CASE_INTS(c, s->length);
    case_out(c, KILN_DTYPE_f32, 4, (int64_t[]){ s->outer, out, s->inner, real ? 1 : 2 });
    cpu_in(c, 4, (int64_t[]){ s->outer, s->extent, s->inner, s->complex ? 2 : 1 });
    cpu_agrees(c, rounded, what);
}

static void
try_length(int64_t n, int64_t outer, int64_t inner)
{
    try_signal(&(Signal){ n, n, outer, inner, .complex = true });
    try_signal(&(Signal){ n, n + 2, outer, inner, .inverse = true });
    try_signal(&(Signal){ n, MAX(n - 1, 1), outer, inner, .onesided = true });
    try_signal(&(Signal){ n, n / 2 + 1, outer, inner, .complex = true, .inverse = true,
                          .onesided = true });
}

Test(cpu_dft, lengths)
{
    for (int64_t n = 1; n <= 40; n++)
        try_length(n, 2, 1);
    static const int64_t lengths[] = { 49, 64, 97, 121, 143, 169, 210, 251, 256, 360, 509 };
    for (size_t i = 0; i < G_N_ELEMENTS(lengths); i++)
        try_length(lengths[i], 1, 3);
}

Test(cpu_dft, lines)
{
    try_length(16, 37, 1);
    try_length(12, 1, 23);
    try_length(17, 3, 11);
    try_signal(&(Signal){ 8, 8, 0, 3, .complex = false });
    try_signal(&(Signal){ 8, 0, 2, 3, .complex = true });
}
