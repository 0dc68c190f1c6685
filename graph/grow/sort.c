/* SPDX-License-Identifier: Apache-2.0 */
/* Merge sort: halves are sorted, and the lower one is copied out to be merged. */
#include "graph/grow/sort.h"

#include "graph/grow/reserve.h"

#include <string.h>

enum {
    SHORT = 8,       /* elements that are inserted one by one */
    ON_STACK = 1024, /* bytes that need no memory */
};

typedef struct {
    char *room; /* for half of the elements, and at least one */
    size_t size;
    GCompareDataFunc compare;
    gpointer data;
} Sort;

static void
insert_each(const Sort *sort, char *first, size_t n)
{
    size_t size = sort->size;
    for (size_t i = 1; i < n; i++) {
        char *at = first + i * size;
        char *to = at;
        while (to > first && sort->compare(to - size, at, sort->data) > 0)
            to -= size;
        if (to == at)
            continue;
        memcpy(sort->room, at, size);
        memmove(to + size, to, (size_t)(at - to));
        memcpy(to, sort->room, size);
    }
}

static void
sort_range(const Sort *sort, char *first, size_t n)
{
    if (n <= SHORT) {
        insert_each(sort, first, n);
        return;
    }
    size_t size = sort->size;
    size_t half = n / 2;
    char *upper = first + half * size, *end = first + n * size;
    sort_range(sort, first, half);
    sort_range(sort, upper, n - half);
    if (sort->compare(upper - size, upper, sort->data) <= 0)
        return;
    memcpy(sort->room, first, half * size);
    char *lower = sort->room, *lower_end = sort->room + half * size;
    for (char *to = first; lower < lower_end; to += size) {
        bool take_upper = upper < end && sort->compare(lower, upper, sort->data) > 0;
        char **from = take_upper ? &upper : &lower;
        if (size == sizeof(gpointer))
            memcpy(to, *from, sizeof(gpointer)); /* a load and a store */
        else
            memcpy(to, *from, size);
        *from += size;
    }
}

void
kiln_sort(void *elements, size_t n, size_t size, GCompareDataFunc compare, gpointer data)
{
    if (n < 2)
        return;
    _Alignas(max_align_t) char on_stack[ON_STACK];
    size_t needed = n / 2 * size;
    void *taken = needed > ON_STACK ? kiln_take(needed, "sorting") : NULL;
    Sort sort = { taken ? taken : on_stack, size, compare, data };
    sort_range(&sort, elements, n);
    g_free(taken);
}

typedef struct {
    GCompareFunc compare;
} Plain;

static gint
compare_plain(gconstpointer a, gconstpointer b, gpointer data)
{
    return ((const Plain *)data)->compare(a, b);
}

void
kiln_sort_plain(void *elements, size_t n, size_t size, GCompareFunc compare)
{
    kiln_sort(elements, n, size, compare_plain, &(Plain){ compare });
}
