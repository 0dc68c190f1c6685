/* SPDX-License-Identifier: Apache-2.0 */
/* What integer_rows.h needs of 512-bit vectors, but for the dot product. */
#pragma once

#include "backends/cpu/integer_interleave_x86.h"

#include <string.h>

#define VI __m512i
#define LANES 16
#define ROWS 8
#define COLS 48
#define VI_ZERO _mm512_setzero_si512()
#define VI_STORE(p, v) _mm512_storeu_si512(p, v)
#define VI_BYTES(p) _mm512_loadu_si512(p)
#define VI_SPREAD(p) spread(p)

static inline __m512i
spread(const uint8_t *p)
{
    int32_t bits;
    memcpy(&bits, p, sizeof bits);
    return _mm512_set1_epi32(bits);
}
