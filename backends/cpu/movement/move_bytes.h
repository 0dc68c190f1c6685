/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of few bytes, rows of small images above all: a call of memcpy takes longer than they do.
 * Private to the folder. */
#ifndef KILN_BACKENDS_CPU_MOVEMENT_MOVE_BYTES_H
#define KILN_BACKENDS_CPU_MOVEMENT_MOVE_BYTES_H

#include <stddef.h>
#include <string.h>

/* @n bytes, of which @size … 2 * @size there are, as two moves that may overlap. */
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

/* The same with up to MOVE_STEP - 1 bytes more read and written: for rows one behind the other,
 * where the next one writes over what is too much of this. */
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
