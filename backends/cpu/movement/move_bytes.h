/* SPDX-License-Identifier: Apache-2.0 */
/* Copies few bytes, such as rows of small images, faster than a call of memcpy. Private to the
 * folder. */
#ifndef KILN_BACKENDS_CPU_MOVEMENT_MOVE_BYTES_H
#define KILN_BACKENDS_CPU_MOVEMENT_MOVE_BYTES_H

#include <stddef.h>
#include <string.h>

/* Moves @n bytes, from @size to 2 * @size, as two moves that may overlap. */
#define MOVE_TWICE(to, from, n, size)                                                              \
    do {                                                                                           \
        char first_[size], last_[size];                                                            \
        memcpy(first_, from, size);                                                                \
        memcpy(last_, (from) + (n) - (size), size);                                                \
        memcpy(to, first_, size);                                                                  \
        memcpy((to) + (n) - (size), last_, size);                                                  \
    } while (0)

static inline void
move_bytes(void *to_, const void *from_, size_t n)
{
    char *to = to_;
    const char *from = from_;
    if (n > 64)
        memcpy(to, from, n);
    else if (n >= 32)
        MOVE_TWICE(to, from, n, 32);
    else if (n >= 16)
        MOVE_TWICE(to, from, n, 16);
    else if (n >= 8)
        MOVE_TWICE(to, from, n, 8);
    else if (n >= 4)
        MOVE_TWICE(to, from, n, 4);
    else {
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
    }
}

enum {
    MOVE_STEP = 16
};

/* Like move_bytes(), but reads and writes up to MOVE_STEP - 1 bytes more. For rows that follow each
 * other: the next row overwrites the excess. */
static inline void
move_wide(void *to_, const void *from_, size_t n)
{
    char *to = to_, step[MOVE_STEP];
    const char *from = from_;
    for (size_t i = 0; i < n; i += MOVE_STEP) {
        memcpy(step, from + i, MOVE_STEP);
        memcpy(to + i, step, MOVE_STEP);
    }
}

#endif
