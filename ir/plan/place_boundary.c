/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/plan/place_boundary.h"

#include <string.h>

enum {
    FEW_SUBSETS = 3000,     /* of a boundary's buffers: so many are always listed */
    MANY_SUBSETS = 40000,   /* and so many where there is work for it */
    SUBSET_WORK = 8,        /* of listing and sorting one */
    SUBSETS_SHARE = 8,      /* of the budget, for one of all else */
    PARTED_MAX = 14,        /* buffers of a boundary whose partitions are listed */
    PARTED_SIDE_MAX = 10,   /* of one side: so few that all subsets are listed */
    PARTITIONS_MAX = 16,    /* more say little */
    PARTITION_STEPS = 3000, /* spent on one boundary */
};

/* --- subsets --- */

static int
by_sum(gconstpointer a, gconstpointer b)
{
    const KilnSubset *x = a, *y = b;
    if (x->sum != y->sum)
        return x->sum < y->sum ? -1 : 1;
    int n = __builtin_popcountll(x->mask) - __builtin_popcountll(y->mask);
    if (n)
        return n;
    return x->mask < y->mask ? -1 : x->mask > y->mask;
}

/* Those of one buffer, of two, and so on, until there are enough. */
static GArray *
list_subsets(const KilnBoundaries *boundaries, const uint32_t *list, uint32_t n)
{
    const Search *search = boundaries->search;
    GArray *out = g_array_new(FALSE, FALSE, sizeof(KilnSubset));
    for (uint32_t i = 0; i < n; i++) {
        KilnSubset one = { search->buffers[list[i]].size, UINT64_C(1) << i };
        g_array_append_val(out, one);
    }
    for (guint k = 0; k < out->len && out->len < boundaries->subsets_max; k++) {
        KilnSubset base = g_array_index(out, KilnSubset, k);
        for (uint32_t i = 64 - (uint32_t)__builtin_clzll(base.mask); i < n; i++) {
            KilnSubset more = { base.sum + search->buffers[list[i]].size, base.mask | UINT64_C(1)
                                                                                          << i };
            g_array_append_val(out, more);
        }
    }
    return out;
}

uint32_t
kiln_boundary_find(const KilnBoundary *boundary, int64_t sum)
{
    uint32_t low = 0, high = boundary->n_sums;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (boundary->sums[middle].sum < sum)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* --- partitions --- */

typedef struct {
    KilnBoundary *boundary;
    GArray *subsets;    /* of the ends */
    GArray *partitions; /* uint64_t */
    uint64_t parts[KILN_BOUNDARY_MAX + 1];
    uint32_t steps;
} Parting;

/* Adds the partition of @n parts, if it is new. */
static void
add_partition(Parting *parting, uint32_t n)
{
    parting->parts[n++] = 0;
    const uint64_t *known = (const uint64_t *)(void *)parting->partitions->data;
    for (guint begin = 0, end; begin < parting->partitions->len; begin = end) {
        for (end = begin; known[end++];)
            continue;
        if (end - begin == n && !memcmp(known + begin, parting->parts, n * sizeof *known))
            return;
    }
    g_array_append_vals(parting->partitions, parting->parts, n);
    parting->boundary->n_partitions++;
}

/* Parts @ends and @begins, after @n parts. Each part is that of the first end that is left. */
static void
part(Parting *parting, uint64_t ends, uint64_t begins, uint32_t n)
{
    if (!ends) {
        add_partition(parting, n);
        return;
    }
    const KilnBoundary *boundary = parting->boundary;
    for (guint k = 0; k < parting->subsets->len && parting->steps < PARTITION_STEPS; k++) {
        const KilnSubset *subset = &g_array_index(parting->subsets, KilnSubset, k);
        if ((subset->mask & ~ends) || !(subset->mask & ends & -ends))
            continue;
        parting->parts[n] = subset->mask;
        uint32_t at = kiln_boundary_find(boundary, subset->sum);
        for (; at < boundary->n_sums && boundary->sums[at].sum == subset->sum; at++) {
            parting->steps++;
            uint64_t mask = boundary->sums[at].mask;
            if (!(mask & ~begins) && boundary->n_partitions <= PARTITIONS_MAX)
                part(parting, ends & ~subset->mask, begins & ~mask, n + 1);
        }
    }
}

/* Keeps those subsets of what ends whose sum something has that begins. */
static void
keep_matched(const KilnBoundary *boundary, GArray *subsets)
{
    guint kept = 0;
    for (guint k = 0; k < subsets->len; k++) {
        KilnSubset subset = g_array_index(subsets, KilnSubset, k);
        uint32_t at = kiln_boundary_find(boundary, subset.sum);
        if (at < boundary->n_sums && boundary->sums[at].sum == subset.sum)
            g_array_index(subsets, KilnSubset, kept++) = subset;
    }
    g_array_set_size(subsets, kept);
}

static void
find_partitions(KilnBoundaries *boundaries, KilnBoundary *boundary)
{
    if (boundary->n_ends + boundary->n_begins > PARTED_MAX ||
        MAX(boundary->n_ends, boundary->n_begins) > PARTED_SIDE_MAX)
        return;
    Parting parting = { .boundary = boundary,
                        .subsets = list_subsets(boundaries, boundary->ends, boundary->n_ends),
                        .partitions = g_array_new(FALSE, FALSE, sizeof(uint64_t)) };
    keep_matched(boundary, parting.subsets);
    part(&parting, (UINT64_C(1) << boundary->n_ends) - 1, (UINT64_C(1) << boundary->n_begins) - 1,
         0);
    if (parting.steps >= PARTITION_STEPS || boundary->n_partitions > PARTITIONS_MAX)
        boundary->n_partitions = 0;
    boundaries->work += parting.steps + parting.subsets->len;
    g_array_unref(parting.subsets);
    boundary->partitions = (uint64_t *)(void *)g_array_free(parting.partitions, FALSE);
}

/* --- boundaries --- */

static int
by_size(gconstpointer a, gconstpointer b, gpointer data)
{
    const KilnBoundaries *boundaries = data;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    int64_t x = boundaries->search->buffers[i].size, y = boundaries->search->buffers[k].size;
    if (x != y)
        return x > y ? -1 : 1;
    if (boundaries->last[i] != boundaries->last[k])
        return boundaries->last[i] < boundaries->last[k] ? -1 : 1;
    return i < k ? -1 : i > k;
}

/* Lists the buffers whose entry of @sections, and @more, is @s. */
static uint32_t *
list_buffers(KilnBoundaries *boundaries, const uint32_t *sections, uint32_t more, uint32_t s,
             uint32_t *out_n)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (uint32_t i = 0; i < boundaries->search->n; i++) {
        if (sections[i] + more == s)
            g_array_append_val(list, i);
    }
    *out_n = list->len;
    boundaries->work += boundaries->search->n;
    g_array_sort_with_data(list, by_size, boundaries);
    return (uint32_t *)(void *)g_array_free(list, FALSE);
}

static bool
find_boundary(KilnBoundaries *boundaries, uint32_t s)
{
    const Buffer *buffers = boundaries->search->buffers;
    KilnBoundary *boundary = &boundaries->at[s];
    boundary->ends = list_buffers(boundaries, boundaries->last, 1, s, &boundary->n_ends);
    boundary->begins = list_buffers(boundaries, boundaries->first, 0, s, &boundary->n_begins);
    if (MAX(boundary->n_ends, boundary->n_begins) > KILN_BOUNDARY_MAX)
        return false;
    for (uint32_t k = 1; k < boundary->n_begins; k++) {
        uint32_t i = boundary->begins[k - 1], j = boundary->begins[k];
        if (buffers[i].size == buffers[j].size && boundaries->last[i] == boundaries->last[j])
            boundary->twins |= UINT64_C(1) << k;
    }
    for (uint32_t k = 0; k < boundary->n_ends; k++)
        boundary->complete = MAX(boundary->complete, boundaries->first[boundary->ends[k]]);
    GArray *sums = list_subsets(boundaries, boundary->begins, boundary->n_begins);
    g_array_sort(sums, by_sum);
    boundary->n_sums = sums->len;
    boundaries->work += (int64_t)SUBSET_WORK * sums->len;
    boundary->sums = (KilnSubset *)(void *)g_array_free(sums, FALSE);
    find_partitions(boundaries, boundary);
    return true;
}

KilnBoundaries *
kiln_boundaries_new(const Search *search, bool backward, int64_t budget)
{
    uint32_t n = search->n_sections - 1; /* behind the last one nothing lives */
    int64_t subsets = budget / SUBSETS_SHARE / SUBSET_WORK / (n + 1);
    for (uint32_t s = 0; s < n; s++) {
        if (search->sections[s].rest != search->capacity)
            return NULL;
    }
    KilnBoundaries *boundaries = g_new0(KilnBoundaries, 1);
    *boundaries =
        (KilnBoundaries){ .search = search,
                          .backward = backward,
                          .n_sections = n,
                          .subsets_max = (uint32_t)CLAMP(subsets, FEW_SUBSETS, MANY_SUBSETS),
                          .first = g_new(uint32_t, (size_t)search->n + 1),
                          .last = g_new(uint32_t, (size_t)search->n + 1),
                          .at = g_new0(KilnBoundary, (size_t)n + 1) };
    for (uint32_t i = 0; i < search->n; i++) {
        const Buffer *buffer = &search->buffers[i];
        boundaries->first[i] = backward ? n - 1 - buffer->last : buffer->first;
        boundaries->last[i] = backward ? n - 1 - buffer->first : buffer->last;
    }
    for (uint32_t s = 1; s < n; s++) {
        if (!find_boundary(boundaries, s)) {
            kiln_boundaries_free(boundaries);
            return NULL;
        }
    }
    return boundaries;
}

void
kiln_boundaries_free(KilnBoundaries *boundaries)
{
    if (!boundaries)
        return;
    for (uint32_t s = 0; s < boundaries->n_sections; s++) {
        g_free(boundaries->at[s].ends);
        g_free(boundaries->at[s].begins);
        g_free(boundaries->at[s].sums);
        g_free(boundaries->at[s].partitions);
    }
    g_free(boundaries->first);
    g_free(boundaries->last);
    g_free(boundaries->at);
    g_free(boundaries);
}
