/* SPDX-License-Identifier: Apache-2.0 */
/* How floats are rounded. A program may have set another rounding mode, flush denormal numbers to
 * zero, or trap: results must not depend on it. Kiln computes in the default environment, on every
 * thread, and gives the caller's back. */
#ifndef KILN_EXEC_FLOAT_ENV_H
#define KILN_EXEC_FLOAT_ENV_H

#include <fenv.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

typedef struct {
    int rounding;
    unsigned control; /* of the vector unit, with its flags */
} KilnFloatEnv;

enum {
    KILN_MXCSR_DEFAULT = 0x1f80, /* to nearest, denormal numbers are numbers, nothing traps */
    KILN_MXCSR_FLAGS = 0x3f,
};

/** Sets the default; returns what was set. */
static inline KilnFloatEnv
kiln_float_env_enter(void)
{
    KilnFloatEnv before = { .rounding = fegetround() };
    if (before.rounding != FE_TONEAREST)
        fesetround(FE_TONEAREST);
#if defined(__SSE__)
    before.control = _mm_getcsr();
    if ((before.control & ~(unsigned)KILN_MXCSR_FLAGS) != KILN_MXCSR_DEFAULT)
        _mm_setcsr(KILN_MXCSR_DEFAULT);
#endif
    return before;
}

static inline void
kiln_float_env_leave(KilnFloatEnv before)
{
    if (before.rounding != FE_TONEAREST)
        fesetround(before.rounding);
#if defined(__SSE__)
    if ((before.control & ~(unsigned)KILN_MXCSR_FLAGS) != KILN_MXCSR_DEFAULT)
        _mm_setcsr(before.control);
#endif
}

#endif
