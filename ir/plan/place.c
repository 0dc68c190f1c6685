/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets in one arena for buffers whose lives are fixed.
 *
 * Greedy placement: buffers in some order, each at the lowest gap (first fit) or the tightest gap
 * (best fit) that the buffers already placed and alive with it leave. Which order is best depends
 * on the network, so several are tried, in a fixed sequence, until the arena is as small as the
 * most that lives at once, below which nothing goes, or until a budget of visited pairs is spent:
 * a count, not a time, so that plans are the same on every machine. What visits all pairs that live
 * at once costs too much where there are many: then a plan in the order of execution comes first,
 * and an order that spends twice the budget is given up.
 *
 * Where all orders miss that bound, exact search is asked for a plan at the bound, and then for one
 * between it and the best plan. Each capacity that it proves impossible raises the bound. */
#include "ir/plan/place.h"

#include <stdlib.h>

enum {
    /* The work of all orders together, about a nanosecond each. None begins behind it, but for the
       first where there is no plan yet, and none goes on behind twice as much. */
    WORK_MAX = 200 * 1000 * 1000,
    INDEX_VISIT_WORK = 32,
    NEIGHBOUR_WORK = 16,
    /* Up to so many buffers, or so many per buffer that lives at once, walking all that are placed
       beats asking the index. */
    LIST_MAX = 1024,
    LIST_MAX_PER_ALIVE = 64,
    FEW = 32,
    /* Of the work of exact search, what goes to the bound, and what to each capacity above it. */
    BOUND_PERCENT = 60,
    STEP_PERCENT = 15,
    STEP_WORK_MIN = 100 * 1000,
    NOT_PLACED = -1,
};

/* Lives in order of their first step, with the latest last step of the placed ones per subtree: an
 * implicit balanced interval tree, leaves first at @n_leaves. */
typedef struct {
    KilnLife **sorted;
    int64_t *latest;
    uint32_t n, n_leaves;
} Index;

typedef struct {
    KilnLife *lives;
    uint32_t n;
    Index index;
    uint32_t *leaf; /* of each life */
    bool uses_index;
    GArray *placed;     /* const KilnLife*: in order of offset; empty where the index is used */
    GArray *neighbours; /* const KilnLife*: placed and alive with the one being placed */
    int64_t *pressure;  /* of each life: the most that lives at once while it does */
    int64_t work;
} Planner;

typedef int64_t (*KeyFn)(const Planner *planner, uint32_t i);

/* --- the index of placed lives --- */

static int
by_first(gconstpointer a, gconstpointer b)
{
    const KilnLife *x = *(KilnLife *const *)a, *y = *(KilnLife *const *)b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y; /* of one array: the order of the lives */
}

static void
index_clear(Index *index)
{
    for (uint32_t i = 0; i < 2 * index->n_leaves; i++)
        index->latest[i] = NOT_PLACED;
}

static void
index_init(Index *index, KilnLife *lives, uint32_t n)
{
    index->n = n;
    for (index->n_leaves = 1; index->n_leaves < n;)
        index->n_leaves *= 2;
    index->sorted = g_new(KilnLife *, n + 1);
    index->latest = g_new(int64_t, 2 * (size_t)index->n_leaves);
    for (uint32_t i = 0; i < n; i++)
        index->sorted[i] = &lives[i];
    qsort(index->sorted, n, sizeof *index->sorted, by_first);
}

static void
index_add(Index *index, uint32_t leaf)
{
    int64_t last = index->sorted[leaf]->last;
    for (uint32_t at = leaf + index->n_leaves; at; at /= 2)
        index->latest[at] = MAX(index->latest[at], last);
}

/* Collects the placed lives of the subtree @at (leaves [low, low + width)) that begin at @last or
 * before and end at @first or behind. */
static void
index_collect(Planner *planner, uint32_t at, uint32_t low, uint32_t width, const KilnLife *life)
{
    const Index *index = &planner->index;
    planner->work += INDEX_VISIT_WORK;
    if (low >= index->n || index->latest[at] < life->first ||
        index->sorted[low]->first > life->last)
        return;
    if (width == 1) {
        g_array_append_val(planner->neighbours, index->sorted[low]);
        return;
    }
    index_collect(planner, 2 * at, low, width / 2, life);
    index_collect(planner, 2 * at + 1, low + width / 2, width / 2, life);
}

/* --- placing --- */

static int
by_offset(gconstpointer a, gconstpointer b)
{
    const KilnLife *x = *(KilnLife *const *)a, *y = *(KilnLife *const *)b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* The offset for @life between its neighbours, which are in order of offset. */
static int64_t
find_gap(const GArray *neighbours, int64_t size, bool best_fit)
{
    int64_t top = 0, best = -1, best_gap = INT64_MAX;
    for (guint i = 0; i < neighbours->len; i++) {
        const KilnLife *other = g_array_index(neighbours, KilnLife *, i);
        int64_t gap = other->offset - top;
        if (gap >= size && !best_fit)
            return top;
        if (gap >= size && gap < best_gap) {
            best = top;
            best_gap = gap;
        }
        top = MAX(top, other->offset + other->size);
    }
    return best >= 0 ? best : top;
}

/* Most lives have a few neighbours, which need no call for each comparison. */
static void
sort_neighbours(GArray *neighbours)
{
    if (neighbours->len > FEW) {
        g_array_sort(neighbours, by_offset);
        return;
    }
    KilnLife **lives = (KilnLife **)(void *)neighbours->data;
    for (guint i = 1; i < neighbours->len; i++) {
        KilnLife *life = lives[i];
        guint k = i;
        for (; k > 0 && lives[k - 1]->offset > life->offset; k--)
            lives[k] = lives[k - 1];
        lives[k] = life;
    }
}

/* Fills neighbours with what is placed and alive with @life, in order of offset. */
static void
find_neighbours(Planner *planner, const KilnLife *life)
{
    g_array_set_size(planner->neighbours, 0);
    if (planner->uses_index) {
        index_collect(planner, 1, 0, planner->index.n_leaves, life);
        sort_neighbours(planner->neighbours);
        return;
    }
    planner->work += planner->placed->len;
    for (guint i = 0; i < planner->placed->len; i++) {
        const KilnLife *other = g_array_index(planner->placed, const KilnLife *, i);
        if (other->first <= life->last && life->first <= other->last)
            g_array_append_val(planner->neighbours, other);
    }
    planner->work += NEIGHBOUR_WORK * planner->neighbours->len;
}

static void
add_placed(Planner *planner, uint32_t i)
{
    const KilnLife *life = &planner->lives[i];
    if (planner->uses_index) {
        index_add(&planner->index, planner->leaf[i]);
        return;
    }
    guint low = 0, high = planner->placed->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(planner->placed, const KilnLife *, middle)->offset < life->offset)
            low = middle + 1;
        else
            high = middle;
    }
    g_array_insert_val(planner->placed, low, life);
}

/* Places all in @order; the height, or INT64_MAX once it would reach @limit or costs too much. */
static int64_t
place_in_order(Planner *planner, const uint32_t *order, bool best_fit, int64_t limit)
{
    int64_t height = 0;
    index_clear(&planner->index);
    g_array_set_size(planner->placed, 0);
    for (uint32_t i = 0; i < planner->n; i++) {
        KilnLife *life = &planner->lives[order[i]];
        life->offset = 0;
        if (!life->size)
            continue;
        find_neighbours(planner, life);
        life->offset = find_gap(planner->neighbours, life->size, best_fit);
        height = MAX(height, life->offset + life->size);
        if (height >= limit || (limit < INT64_MAX && planner->work > 2 * (int64_t)WORK_MAX))
            return INT64_MAX;
        add_placed(planner, order[i]);
    }
    return height;
}

/* --- orders: a primary and a secondary key, greatest first, then execution order --- */

static int64_t
key_size(const Planner *planner, uint32_t i)
{
    return planner->lives[i].size;
}

static int64_t
key_length(const Planner *planner, uint32_t i)
{
    return planner->lives[i].last - planner->lives[i].first + 1;
}

static int64_t
key_area(const Planner *planner, uint32_t i)
{
    int64_t area;
    bool overflow = __builtin_mul_overflow(key_size(planner, i), key_length(planner, i), &area);
    return overflow ? INT64_MAX : area;
}

static int64_t
key_earliness(const Planner *planner, uint32_t i)
{
    return -planner->lives[i].first;
}

static int64_t
key_pressure(const Planner *planner, uint32_t i)
{
    return planner->pressure[i];
}

/* The portfolio, in the order in which it is tried, each by first fit and then by best fit. */
static const struct {
    KeyFn primary, secondary;
} orders[] = {
    { key_size, key_earliness }, { key_size, key_length }, { key_pressure, key_size },
    { key_area, key_size },      { key_length, key_size }, { key_earliness, key_size },
};

typedef struct {
    int64_t primary, secondary, first;
    uint32_t i;
} Ranked;

static int
by_rank(gconstpointer a, gconstpointer b)
{
    const Ranked *x = a, *y = b;
    if (x->primary != y->primary)
        return x->primary > y->primary ? -1 : 1;
    if (x->secondary != y->secondary)
        return x->secondary > y->secondary ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

static void
sort_by(const Planner *planner, size_t which, uint32_t *order)
{
    g_autofree Ranked *ranked = g_new(Ranked, planner->n + 1);
    for (uint32_t i = 0; i < planner->n; i++)
        ranked[i] = (Ranked){ .primary = orders[which].primary(planner, i),
                              .secondary = orders[which].secondary(planner, i),
                              .first = planner->lives[i].first,
                              .i = i };
    qsort(ranked, planner->n, sizeof *ranked, by_rank);
    for (uint32_t i = 0; i < planner->n; i++)
        order[i] = ranked[i].i;
}

/* --- the planner --- */

typedef struct {
    int64_t *offsets; /* of the best plan so far */
    int64_t height;   /* its height */
    int64_t bound;    /* proved: no plan is lower */
    int64_t work;     /* that exact search may still do */
} Best;

/* Keeps the offsets that stand in the lives, where they are lower. */
static void
keep(const Planner *planner, Best *best, int64_t height)
{
    if (height >= best->height)
        return;
    best->height = height;
    for (uint32_t i = 0; i < planner->n; i++)
        best->offsets[i] = planner->lives[i].offset;
}

static void
place_greedily(Planner *planner, Best *best)
{
    g_autofree uint32_t *order = g_new(uint32_t, planner->n);
    for (size_t i = 0; i < 2 * G_N_ELEMENTS(orders) && best->height > best->bound; i++) {
        bool best_fit = i % 2;
        if (best->height < INT64_MAX && planner->work > WORK_MAX)
            break;
        if (!best_fit)
            sort_by(planner, i / 2, order);
        keep(planner, best, place_in_order(planner, order, best_fit, best->height));
    }
}

/* What all sizes are multiples of: so are the heights of plans without a gap below a buffer. */
static int64_t
find_unit(const Planner *planner)
{
    int64_t unit = 0;
    for (uint32_t i = 0; i < planner->n; i++) {
        for (int64_t size = planner->lives[i].size; size;) {
            int64_t rest = unit % size;
            unit = size;
            size = rest;
        }
    }
    return unit;
}

/* Looks for a plan no higher than @capacity, a multiple of @unit, by @share of the work. */
static KilnPlacement
try_capacity(const Planner *planner, Best *best, int64_t capacity, int64_t unit, int64_t share)
{
    int64_t left = share;
    KilnPlacement found = kiln_place_within(planner->lives, planner->n, capacity, &left);
    best->work -= share - left;
    if (found == KILN_PLACEMENT_IMPOSSIBLE)
        best->bound = capacity + unit;
    if (found != KILN_PLACED)
        return found;
    int64_t height = 0;
    for (uint32_t i = 0; i < planner->n; i++)
        height = MAX(height, planner->lives[i].offset + planner->lives[i].size);
    keep(planner, best, height);
    return found;
}

/* Halves the range between bound and height until they meet. What a share of the work does not
 * decide counts as too low, until it is asked again with the work that is left in the end. */
static void
place_exactly(const Planner *planner, Best *best)
{
    int64_t unit = find_unit(planner);
    try_capacity(planner, best, best->bound, unit, best->work / 100 * BOUND_PERCENT);
    while (best->height > best->bound && best->work > 0) {
        int64_t low = best->bound;
        while (best->height > low && best->work > 0) {
            int64_t capacity = low + (best->height - low) / unit / 2 * unit;
            int64_t share = MAX(best->work / 100 * STEP_PERCENT, (int64_t)STEP_WORK_MIN);
            share = MIN(share, best->work);
            if (try_capacity(planner, best, capacity, unit, share) != KILN_PLACED)
                low = capacity + unit;
        }
    }
}

/* True where few of many buffers live at once. */
static bool
is_sparse(const KilnLife *lives, uint32_t n)
{
    double alive = 0; /* summed over the steps, then their mean */
    int64_t first = INT64_MAX, last = 0;
    for (uint32_t i = 0; i < n; i++) {
        alive += (double)(lives[i].last - lives[i].first + 1);
        first = MIN(first, lives[i].first);
        last = MAX(last, lives[i].last);
    }
    alive /= (double)(last - first + 1);
    return n > LIST_MAX && n > LIST_MAX_PER_ALIVE * alive;
}

int64_t
kiln_place(KilnLife *lives, uint32_t n, int64_t work, int64_t *out_bound)
{
    g_autofree int64_t *offsets = g_new0(int64_t, n);
    Best best = { .offsets = offsets, .height = n ? INT64_MAX : 0, .work = work };
    Planner planner = { .lives = lives,
                        .n = n,
                        .uses_index = is_sparse(lives, n),
                        .leaf = g_new(uint32_t, n),
                        .placed = g_array_new(FALSE, FALSE, sizeof(KilnLife *)),
                        .neighbours = g_array_new(FALSE, FALSE, sizeof(KilnLife *)),
                        .pressure = g_new0(int64_t, n) };
    index_init(&planner.index, lives, n);
    for (uint32_t i = 0; i < n; i++)
        planner.leaf[planner.index.sorted[i] - lives] = i;
    best.bound = kiln_place_pressure(lives, n, planner.pressure);
    if (n > LIST_MAX)
        keep(&planner, &best, kiln_place_stream(lives, n));
    place_greedily(&planner, &best);
    if (best.height > best.bound && n <= KILN_PLACE_EXACT_MAX)
        place_exactly(&planner, &best);
    for (uint32_t i = 0; i < n; i++)
        lives[i].offset = offsets[i];
    g_free(planner.index.sorted);
    g_free(planner.index.latest);
    g_free(planner.leaf);
    g_free(planner.pressure);
    g_array_unref(planner.placed);
    g_array_unref(planner.neighbours);
    if (out_bound)
        *out_bound = best.bound;
    return best.height;
}
