/* SPDX-License-Identifier: Apache-2.0 */
/* Sets how floats are rounded. A program may use another rounding mode, flush denormal numbers to
 * zero, or trap. Results must not depend on that. Kiln computes in the default environment on every
 * thread and restores the caller's environment afterwards. */
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
    KILN_MXCSR_DEFAULT = 0x1f80, /* rounds to nearest, keeps denormal numbers, never traps */
    KILN_MXCSR_FLAGS = 0x3f,
};

/** Sets the default environment. Returns the one before, for kiln_float_env_leave(). */
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
