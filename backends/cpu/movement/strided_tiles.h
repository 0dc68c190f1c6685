/* SPDX-License-Identifier: Apache-2.0 */
/* The template of copies of two loops over units of SIZE bytes. It copies rows and planes. One loop
 * of a plane runs along the target, the other along the source. Planes are transposed in
 * registers, LANES × LANES units at a time. Each of log2(LANES) rounds interleaves vector k with
 * vector k + LANES / 2. strided.c includes this once per size. It defines SIZE and its
 * logarithm SIZE_LOG, UNIT (an integer of SIZE bytes), LANES and the interleavings LOW and HIGH. A
 * unit may lie at any address. */

#define PASTE_(a, b) a##b

#include <string.h>
#define PASTE(a, b) PASTE_(a, b)
#define NAME(base) PASTE(base, SIZE)
#define BLOCK NAME(block)

static inline UNIT
NAME(load)(const char *from)
{
    UNIT unit;
    memcpy(&unit, from, SIZE);
    return unit;
}

static void
NAME(rows)(const Piece *p)
{
    for (int64_t j = 0; j < p->n1; j++) {
        char *to = p->to + j * p->to1;
        const char *from = p->from + j * p->from1;
        if (p->from0 == 0 && p->to0 == SIZE) {
            UNIT unit = NAME(load)(from);
            for (int64_t i = 0; i < p->n0; i++)
                memcpy(to + i * SIZE, &unit, SIZE);
        } else if (p->to0 == SIZE && columns_of(p->from0, SIZE)) {
            p->columns->pick[SIZE_LOG][p->from0 / SIZE](to, from, p->n0);
        } else if (p->to0 == SIZE) {
            for (int64_t i = 0; i < p->n0; i++)
                memcpy(to + i * SIZE, from + i * p->from0, SIZE);
        } else {
            for (int64_t i = 0; i < p->n0; i++)
                memcpy(to + i * p->to0, from + i * p->from0, SIZE);
        }
    }
}

typedef UNIT NAME(Lanes) __attribute__((vector_size(16)));

static inline void
NAME(block)(char *to, int64_t to1, const char *from, int64_t from0)
{
    NAME(Lanes) a[LANES], b[LANES];
    for (int i = 0; i < LANES; i++)
        memcpy(&a[i], from + i * from0, 16);
    for (int round = 1; round < LANES; round *= 2) {
        for (int k = 0; k < LANES / 2; k++) {
            b[2 * k] = __builtin_shufflevector(a[k], a[k + LANES / 2], LOW);
            b[2 * k + 1] = __builtin_shufflevector(a[k], a[k + LANES / 2], HIGH);
        }
        for (int k = 0; k < LANES; k++)
            a[k] = b[k];
    }
    for (int j = 0; j < LANES; j++)
        memcpy(to + j * to1, &a[j], 16);
}

/* Copies a plane. to0 and from1 are SIZE. Few columns have loops of their own. */
static void
NAME(plane)(const Piece *p)
{
    const bool joins = p->to1 == p->n0 * SIZE && columns_of(p->to1, SIZE);
    const bool splits = p->from0 == p->n1 * SIZE && columns_of(p->from0, SIZE);
    if (joins) {
        const char *columns[KILN_CPU_COLUMNS_MOST];
        for (int64_t k = 0; k < p->n0; k++)
            columns[k] = p->from + k * p->from0;
        p->columns->join[SIZE_LOG][p->n0](p->to, columns, p->n1);
        return;
    }
    if (splits) {
        char *columns[KILN_CPU_COLUMNS_MOST];
        for (int64_t k = 0; k < p->n1; k++)
            columns[k] = p->to + k * p->to1;
        p->columns->split[SIZE_LOG][p->n1](columns, p->from, p->n0);
        return;
    }
    int64_t whole0 = p->n0 / LANES * LANES, whole1 = p->n1 / LANES * LANES;
    for (int64_t j = 0; j < whole1; j += LANES) {
        for (int64_t i = 0; i < whole0; i += LANES)
            BLOCK(p->to + i * SIZE + j * p->to1, p->to1, p->from + i * p->from0 + j * SIZE,
                  p->from0);
    }
    for (int64_t j = 0; j < p->n1; j++) {
        for (int64_t i = j < whole1 ? whole0 : 0; i < p->n0; i++)
            memcpy(p->to + i * SIZE + j * p->to1, p->from + i * p->from0 + j * SIZE, SIZE);
    }
}

#undef PASTE_
#undef PASTE
#undef NAME
#undef BLOCK
#undef UNIT
#undef SIZE
#undef SIZE_LOG
#undef LANES
#undef LOW
#undef HIGH
