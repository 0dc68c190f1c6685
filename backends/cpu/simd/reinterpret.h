/* SPDX-License-Identifier: Apache-2.0 */
/* REINTERPRET(name, To, From): a function that gives the bits of a From the type To. */
#ifndef KILN_BACKENDS_CPU_SIMD_REINTERPRET_H
#define KILN_BACKENDS_CPU_SIMD_REINTERPRET_H

#include <string.h>

#define REINTERPRET(name, To, From)                                                                \
    static inline To name(From from)                                                               \
    {                                                                                              \
        To to;                                                                                     \
        _Static_assert(sizeof to == sizeof from, "the same bits");                                 \
        memcpy(&to, &from, sizeof to);                                                             \
        return to;                                                                                 \
    }

#endif
