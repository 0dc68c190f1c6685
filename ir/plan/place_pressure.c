/* SPDX-License-Identifier: Apache-2.0 */
/* How much lives at once: a range maximum over the events inside each life, by a tree of maxima. */
#include "ir/plan/place.h"

#include <stdlib.h>

typedef struct {
    int64_t step;
    int64_t change;
} Event;

static int
by_step(gconstpointer a, gconstpointer b)
{
    const Event *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return x->change < y->change ? -1 : x->change > y->change; /* what ends makes room first */
}

/* Fills @alive with the bytes that live from the step of each event on, in order of steps; returns
 * the most. */
static int64_t
sweep(const KilnLife *lives, uint32_t n, Event *events, int64_t *alive)
{
    for (uint32_t i = 0; i < n; i++) {
        const KilnLife *life = &lives[i];
        events[2 * i] = (Event){ life->first, life->size };
        events[2 * i + 1] = (Event){ life->last + 1, -life->size };
    }
    qsort(events, 2 * (size_t)n, sizeof *events, by_step);
    int64_t now = 0, most = 0;
    for (uint32_t i = 0; i < 2 * n; i++) {
        now += events[i].change;
        alive[i] = now;
        most = MAX(most, now);
    }
    for (uint32_t i = 2 * n; i-- > 1;) {
        if (events[i - 1].step == events[i].step)
            alive[i - 1] = alive[i];
    }
    return most;
}

/* The first event at @step or later. */
static uint32_t
find_event(const Event *events, uint32_t n, int64_t step)
{
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (events[middle].step < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int64_t
kiln_place_pressure(const KilnLife *lives, uint32_t n_lives, int64_t *pressure)
{
    uint32_t n = 2 * n_lives, leaves = 1;
    while (leaves < n)
        leaves *= 2;
    g_autofree Event *events = g_new(Event, n + 1);
    g_autofree int64_t *most = g_new0(int64_t, 2 * (size_t)leaves);
    int64_t bound = sweep(lives, n_lives, events, most + leaves);
    for (uint32_t at = leaves - 1; at; at--)
        most[at] = MAX(most[2 * at], most[2 * at + 1]);
    for (uint32_t i = 0; i < n_lives; i++) {
        const KilnLife *life = &lives[i];
        uint32_t low = leaves + find_event(events, n, life->first);
        uint32_t high = leaves + find_event(events, n, life->last + 1);
        int64_t inside = 0;
        for (; low < high; low /= 2, high /= 2) {
            if (low & 1) {
                inside = MAX(inside, most[low]);
                low++;
            }
            if (high & 1) {
                high--;
                inside = MAX(inside, most[high]);
            }
        }
        pressure[i] = inside;
    }
    return bound;
}
