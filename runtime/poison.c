/* SPDX-License-Identifier: Apache-2.0 */
/* Fills memory of the arena with NaN once no later instruction reads it (session/poison.c). */
#include "runtime/session.h"

#include <stdlib.h>
#include <string.h>

enum {
    POISON = 0xFF
};

struct KilnPoison {
    const KilnLife **by_last; /* in order of the last step */
    uint32_t n, next;
};

static int
compare_last(gconstpointer a, gconstpointer b)
{
    const KilnLife *x = *(const KilnLife *const *)a, *y = *(const KilnLife *const *)b;
    return x->last < y->last ? -1 : x->last > y->last;
}

KilnPoison *
kiln_poison_new(const KilnMemoryPlan *plan)
{
    KilnPoison *poison = g_new0(KilnPoison, 1);
    poison->n = plan->n_lives;
    poison->by_last = g_new(const KilnLife *, plan->n_lives + 1);
    for (uint32_t i = 0; i < plan->n_lives; i++)
        poison->by_last[i] = &plan->lives[i];
    qsort(poison->by_last, poison->n, sizeof *poison->by_last, compare_last);
    return poison;
}

void
kiln_poison_free(KilnPoison *poison)
{
    if (!poison)
        return;
    g_free(poison->by_last);
    g_free(poison);
}

void
kiln_poison_fill(void *memory, size_t size)
{
    if (size)
        memset(memory, POISON, size);
}

void
kiln_poison_step(KilnPoison *poison, char *arena, int64_t step)
{
    if (step == 0)
        poison->next = 0;
    while (poison->next < poison->n && poison->by_last[poison->next]->last <= step) {
        const KilnLife *life = poison->by_last[poison->next++];
        kiln_poison_fill(arena + life->offset, (size_t)life->size);
    }
}
