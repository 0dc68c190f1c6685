/* SPDX-License-Identifier: Apache-2.0 */
/* Exact placement where no section has a gap: a beam search through time.
 *
 * A section is a stretch of time in which the same buffers live. Without gaps, a plan of a section
 * is an order of its buffers. At the boundary to the next section some buffers end, some begin, and
 * the others stay where they are. The buffers that end lie in groups, side by side. A group of
 * buffers that begin takes the place of each, with an equal sum of sizes.
 *
 * The search decides only which buffers form groups. It leaves orders open as long as it can. A
 * state is the set of all orders that the groups so far allow (place_tree.h). A state without an
 * order is dropped. In the last section any order will do. From there the search goes back and
 * orders each group within its place.
 *
 *   - The beam keeps the states of a section that allow the most orders, with a small disturbance.
 *   - States that allow equal orders of equal buffers are one state.
 *   - The search first groups the ending buffer that the fewest others may join.
 *   - Buffers that must end side by side are kept so as soon as all of them live.
 *
 * Attempts differ in direction, in their kind, and in the disturbance. The first ones list the
 * groupings that may follow from each state, up to a limit. The limit cuts off the best groupings
 * where many buffers end at once. All later attempts find these group by group, for all states
 * together (place_cross.c). */
#include "ir/plan/place_sweep.h"

#include "ir/plan/place_boundary.h"

#include <string.h>

enum {
    LOW = 45875,   /* 0.7: bonuses of SweepKind */
    HIGH = 104857, /* 1.6: what a begin adds to the freedom of known plans, on average */
};

/* Narrow attempts come first: several of them cost less than a wide one, and solve more together.
 * Attempts behind these are of the last two kinds in turn. */
static const SweepKind kinds[] = {
    { 60, false, false, 1, LOW },  { 60, false, false, 1, LOW }, { 60, true, false, 1, LOW },
    { 60, true, false, 1, HIGH },  { 60, true, true, 1, HIGH },  { 120, true, false, 1, LOW },
    { 120, true, false, 1, HIGH }, { 120, true, false, 3, LOW }, { 240, true, false, 1, HIGH },
    { 240, true, false, 1, LOW },  { 480, true, true, 1, HIGH }, { 960, false, false, 3, LOW },
    { 960, true, true, 1, HIGH },
};

enum {
    NEXT_MIN = 40,       /* states that may follow from one, where many states are */
    FILL_FACTOR = 40,    /* states that should follow from all, over the width */
    STATE_WORK = 300000, /* for finding these, where as many states are as the width */
    SIBLINGS_FACTOR = 2, /* states that one may leave, over what it leaves if all leave as many */
    PROBE_WORK = 20000,  /* for finding out whether any state follows */
    DISTURBANCE = 20 * 65536, /* in the unit of KilnOrder.freedom */
};

/* --- groups --- */

KilnOrder *
kiln_sweep_leaf(const Sweep *sweep, KilnOrderStore *store, uint32_t i)
{
    uint64_t size = (uint64_t)sweep->search->buffers[i].size;
    return kiln_order_leaf(store, i,
                           size * UINT64_C(0x9e3779b97f4a7c15) + sweep->boundaries->last[i]);
}

KilnOrder *
kiln_sweep_join(Sweep *sweep, const KilnBoundary *boundary, KilnOrder *order, uint64_t mask)
{
    for (uint64_t rest = mask; rest; rest &= rest - 1)
        sweep->scratch.groups[boundary->ends[__builtin_ctzll(rest)]] = 1;
    KilnOrder *joined =
        kiln_order_join(&sweep->scratch, order, 1, (uint32_t)__builtin_popcountll(mask));
    for (uint64_t rest = mask; rest; rest &= rest - 1)
        sweep->scratch.groups[boundary->ends[__builtin_ctzll(rest)]] = 0;
    return joined;
}

/* Replaces what ends by what begins, group by group. */
static KilnOrder *
cross(Sweep *sweep, KilnOrder *order, const uint8_t *end_groups, const uint8_t *begin_groups,
      uint32_t n_groups)
{
    const KilnBoundary *boundary = sweep->boundary;
    KilnOrderStore *store = &sweep->scratch;
    KilnOrder *replacements[KILN_BOUNDARY_MAX + 1] = { NULL };
    for (uint32_t g = 1; g <= n_groups; g++) {
        KilnOrder *list[KILN_BOUNDARY_MAX];
        uint32_t n = 0;
        for (uint32_t k = 0; k < boundary->n_begins; k++) {
            if (begin_groups[k] == g)
                list[n++] = kiln_sweep_leaf(sweep, store, boundary->begins[k]);
        }
        replacements[g] = kiln_order_any(store, list, n);
    }
    for (uint32_t k = 0; k < boundary->n_ends; k++)
        store->groups[boundary->ends[k]] = end_groups[k];
    KilnOrder *crossed = kiln_order_replace(store, order, replacements);
    for (uint32_t k = 0; k < boundary->n_ends; k++)
        store->groups[boundary->ends[k]] = 0;
    return crossed;
}

/* --- what must end side by side --- */

/* Counts up to two ways to part the ends of @boundary that @order allows; *@out_order is the order
 * that the last of them leaves. */
static uint32_t
count_partitions(Sweep *sweep, const KilnBoundary *boundary, KilnOrder *order,
                 KilnOrder **out_order)
{
    uint32_t allowed = 0;
    const uint64_t *part = boundary->partitions;
    for (uint32_t p = 0; p < boundary->n_partitions && allowed < 2; p++, part++) {
        KilnOrder *joined = order;
        for (; *part; part++)
            joined = joined ? kiln_sweep_join(sweep, boundary, joined, *part) : NULL;
        if (!joined)
            continue;
        allowed++;
        *out_order = joined;
    }
    return allowed;
}

/* Those orders that the boundaries allow all of whose ends live from this section on; or NULL. */
static KilnOrder *
look_ahead(Sweep *sweep, KilnOrder *order)
{
    for (uint32_t s = sweep->s + 1; s < sweep->boundaries->n_sections && order; s++) {
        const KilnBoundary *boundary = &sweep->boundaries->at[s];
        if (!boundary->n_partitions || boundary->complete != sweep->s)
            continue;
        KilnOrder *only = NULL;
        uint32_t n = count_partitions(sweep, boundary, order, &only);
        if (n < 2)
            order = only;
    }
    return order;
}

/* --- the states that follow from one --- */

void
kiln_sweep_add(Sweep *sweep, KilnOrder *order)
{
    order = look_ahead(sweep, order);
    if (order && sweep->probing)
        sweep->found++;
    if (!order || sweep->probing || !g_hash_table_add(sweep->seen, GSIZE_TO_POINTER(order->hash)))
        return;
    Layer *layer = &sweep->layers[sweep->s];
    double disturbance = kiln_place_disturbance(sweep->turn, (uint32_t)order->hash) - 1;
    State state = { .order = order,
                    .score = (double)order->freedom + DISTURBANCE * disturbance,
                    .parent = sweep->parent,
                    .groups = layer->groups->len };
    g_array_append_vals(layer->groups, sweep->end_groups, sweep->boundary->n_ends);
    g_array_append_vals(layer->groups, sweep->begin_groups, sweep->boundary->n_begins);
    g_array_append_val(layer->states, state);
    sweep->found++;
}

static void
add_state(Sweep *sweep, KilnOrder *order, uint32_t n_groups)
{
    kiln_sweep_add(sweep, cross(sweep, order, sweep->end_groups, sweep->begin_groups, n_groups));
}

static bool
is_spent(const Sweep *sweep)
{
    return sweep->found >= sweep->found_max || sweep->scratch.work > sweep->work_max;
}

/* Ends below a node: all, and those that may lie beside what is outside of it. */
typedef struct {
    uint64_t all, outer;
    bool full; /* only ends are below */
} Ends;

static void
pair_up(uint64_t *mates, uint64_t some, uint64_t others)
{
    for (uint64_t rest = others ? some : 0; rest; rest &= rest - 1)
        mates[__builtin_ctzll(rest)] |= others;
    for (uint64_t rest = some ? others : 0; rest; rest &= rest - 1)
        mates[__builtin_ctzll(rest)] |= some;
}

/* Finds the mates of the ends below @node. */
static Ends
find_mates(Sweep *sweep, const KilnOrder *node, uint64_t left, uint64_t *mates)
{
    if (node->kind == KILN_ORDER_LEAF) {
        int8_t k = sweep->end_at[node->leaf];
        uint64_t bit = k >= 0 ? UINT64_C(1) << k & left : 0;
        if (bit)
            mates[k] = bit;
        return (Ends){ bit, bit, bit != 0 };
    }
    Ends ends = { 0, 0, true };
    bool in_line = node->kind == KILN_ORDER_LINE;
    uint64_t beside = 0; /* what the next child may lie beside */
    for (uint32_t c = 0; c < node->n; c++) {
        Ends below = find_mates(sweep, node->children[c], left, mates);
        pair_up(mates, below.outer, beside);
        if (!in_line || ends.full)
            ends.outer |= below.outer;
        beside = !in_line || below.full ? beside | below.outer : below.outer;
        ends.all |= below.all;
        ends.full = ends.full && below.full;
    }
    ends.outer |= beside;
    sweep->scratch.work += 2 + node->n;
    return ends;
}

uint32_t
kiln_sweep_mates(Sweep *sweep, const KilnOrder *order, uint64_t left, uint64_t *mates)
{
    find_mates(sweep, order, left, mates);
    int first = -1;
    for (uint64_t rest = left; rest; rest &= rest - 1) {
        int k = __builtin_ctzll(rest);
        if (first < 0 || __builtin_popcountll(mates[k]) < __builtin_popcountll(mates[first]))
            first = k;
    }
    return (uint32_t)first;
}

static void expand(Sweep *sweep, KilnOrder *order, uint64_t ends, uint64_t begins, uint32_t group);

/* Some of the ends, which may be in one group, and what may be added to them. */
typedef struct {
    uint64_t mask, more;
    int64_t sum;
    const uint64_t *mates; /* of each end */
} Group;

/* Tries all that @group may be replaced by. */
static void
match(Sweep *sweep, KilnOrder *order, uint64_t ends, uint64_t begins, uint32_t number,
      const Group *group)
{
    const KilnBoundary *boundary = sweep->boundary;
    KilnOrder *joined = NULL;
    uint32_t at = kiln_boundary_find(boundary, group->sum);
    for (; at < boundary->n_sums && boundary->sums[at].sum == group->sum; at++) {
        uint64_t mask = boundary->sums[at].mask;
        sweep->scratch.work += 2;
        /* Of equal ones the first come first. */
        if ((mask & ~begins) || ((mask & boundary->twins) >> 1 & begins & ~mask))
            continue;
        if (!joined)
            joined = kiln_sweep_join(sweep, boundary, order, group->mask);
        if (!joined)
            return;
        kiln_sweep_set_groups(sweep->end_groups, group->mask, number);
        kiln_sweep_set_groups(sweep->begin_groups, mask, number);
        uint32_t found_max = sweep->found_max;
        int64_t work_max = sweep->work_max, work = sweep->scratch.work;
        if (sweep->kind->wide > 1) { /* one choice may use half of what is left */
            sweep->found_max -= (found_max - sweep->found) / 2;
            sweep->work_max -= (work_max - work) / 2;
        }
        expand(sweep, joined, ends & ~group->mask, begins & ~mask, number + 1);
        sweep->found_max = found_max;
        sweep->work_max = work_max;
        if (is_spent(sweep))
            return;
    }
}

/* Tries all groups of @group and @n_more others. */
static void
grow(Sweep *sweep, KilnOrder *order, uint64_t ends, uint64_t begins, uint32_t number,
     const Group *group, uint32_t n_more)
{
    sweep->scratch.work += 5;
    if (!n_more) {
        if (group->mask != ends)
            match(sweep, order, ends, begins, number, group);
        return;
    }
    for (uint64_t rest = group->more; rest && !is_spent(sweep); rest &= rest - 1) {
        uint32_t k = (uint32_t)__builtin_ctzll(rest);
        const Buffer *buffer = &sweep->search->buffers[sweep->boundary->ends[k]];
        Group more = { .mask = group->mask | UINT64_C(1) << k,
                       .more = rest & (rest - 1) & group->mates[k],
                       .sum = group->sum + buffer->size,
                       .mates = group->mates };
        grow(sweep, order, ends, begins, number, &more, n_more - 1);
    }
}

/* Groups the ends and begins that are left, from group @number on. */
static void
expand(Sweep *sweep, KilnOrder *order, uint64_t ends, uint64_t begins, uint32_t number)
{
    if (is_spent(sweep))
        return;
    if (!ends) {
        add_state(sweep, order, number - 1);
        return;
    }
    uint64_t mates[KILN_BOUNDARY_MAX];
    uint32_t first = kiln_sweep_mates(sweep, order, ends, mates);
    uint64_t bit = UINT64_C(1) << first;
    Group group = { .mask = bit,
                    .more = mates[first] & ~bit,
                    .sum = sweep->search->buffers[sweep->boundary->ends[first]].size,
                    .mates = mates };
    uint32_t n_mates = (uint32_t)__builtin_popcountll(mates[first]);
    for (uint32_t more = 0; more < n_mates && !is_spent(sweep); more++)
        grow(sweep, order, ends, begins, number, &group, more);
    KilnOrder *joined = NULL; /* all in one group */
    if (!is_spent(sweep) && mates[first] == ends)
        joined = kiln_sweep_join(sweep, sweep->boundary, order, ends);
    if (!joined)
        return;
    kiln_sweep_set_groups(sweep->end_groups, ends, number);
    kiln_sweep_set_groups(sweep->begin_groups, begins, number);
    add_state(sweep, joined, number);
}

/* --- from section to section --- */

static int
by_score(gconstpointer a, gconstpointer b)
{
    const State *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->order->hash < y->order->hash ? -1 : x->order->hash > y->order->hash;
}

static void
go_to(Sweep *sweep, uint32_t s)
{
    const KilnBoundary *boundary = &sweep->boundaries->at[s];
    sweep->s = s;
    sweep->boundary = boundary;
    memset(sweep->end_at, -1, sweep->search->n);
    for (uint32_t k = 0; k < boundary->n_ends; k++)
        sweep->end_at[boundary->ends[k]] = (int8_t)k;
}

/* Finds up to @found_max states that follow from one, whose order is @order. */
static void
follow(Sweep *sweep, KilnOrder *order, uint32_t found_max, int64_t work_max)
{
    uint64_t ends = kiln_sweep_all(sweep->boundary->n_ends),
             begins = kiln_sweep_all(sweep->boundary->n_begins);
    sweep->found = 0;
    sweep->found_max = found_max;
    sweep->scratch.work = 0;
    sweep->work_max = work_max;
    if (order->leaves == sweep->boundary->n_ends) { /* nothing stays: any order goes with any */
        kiln_sweep_set_groups(sweep->end_groups, ends, 1);
        kiln_sweep_set_groups(sweep->begin_groups, begins, 1);
        add_state(sweep, order, 1);
    } else {
        expand(sweep, order, ends, begins, 1);
    }
    sweep->search->work += sweep->scratch.work;
}

/* False where nothing follows from @order, as a short search proves. */
static bool
has_future(Sweep *sweep, KilnOrder *order)
{
    sweep->probing = true;
    follow(sweep, order, 1, PROBE_WORK);
    sweep->probing = false;
    return sweep->found || sweep->scratch.work > PROBE_WORK;
}

/* The states of a layer that are kept, and what they are taken from. */
typedef struct {
    GArray *states, *groups;
    uint32_t *siblings; /* kept ones by parent */
    uint32_t siblings_max;
} Keeping;

/* Keeps states of @layer in memory of their own, the best first. Forgets the orders of those that
 * it looked at. */
static void
keep_some(Sweep *sweep, const Layer *layer, uint32_t n_groups, Keeping *keeping)
{
    bool is_last = sweep->s == sweep->boundaries->n_sections;
    for (guint k = 0; k < layer->states->len && keeping->states->len < sweep->kind->width; k++) {
        State *found = &g_array_index(layer->states, State, k), kept = *found;
        if (!kept.order || keeping->siblings[kept.parent] >= keeping->siblings_max)
            continue;
        found->order = NULL;
        if (!is_last && !has_future(sweep, kept.order))
            continue;
        keeping->siblings[kept.parent]++;
        kept.order = kiln_order_copy(&sweep->next, kept.order);
        kept.groups = keeping->groups->len;
        g_array_append_vals(keeping->groups, layer->groups->data + found->groups, n_groups);
        g_array_append_val(keeping->states, kept);
    }
}

/* Keeps the best states of a layer, and goes on to the next section. */
static void
keep_best(Sweep *sweep, Layer *layer)
{
    uint32_t n_groups = sweep->boundary->n_ends + sweep->boundary->n_begins;
    uint32_t n_before = sweep->layers[sweep->s - 1].states->len;
    g_autofree uint32_t *siblings = g_new0(uint32_t, n_before);
    Keeping keeping = { .states = g_array_new(FALSE, FALSE, sizeof(State)),
                        .groups = g_array_new(FALSE, FALSE, 1),
                        .siblings = siblings,
                        .siblings_max = 2 + SIBLINGS_FACTOR * sweep->kind->width / n_before };
    g_array_sort(layer->states, by_score);
    kiln_order_store_reset(&sweep->next);
    go_to(sweep, sweep->s + 1);
    keep_some(sweep, layer, n_groups, &keeping);
    keeping.siblings_max = UINT32_MAX;
    if (sweep->kind->fills)
        keep_some(sweep, layer, n_groups, &keeping);
    g_array_unref(layer->states);
    g_array_unref(layer->groups);
    *layer = (Layer){ keeping.states, keeping.groups };
    KilnOrderStore swapped = sweep->current;
    sweep->current = sweep->next;
    sweep->next = swapped;
}

/* Finds states that follow from each of @before. */
static void
follow_each(Sweep *sweep, const GArray *before)
{
    for (guint k = 0; k < before->len && sweep->search->work <= sweep->search->budget; k++) {
        sweep->parent = k;
        follow(sweep, g_array_index(before, State, k).order,
               MAX(NEXT_MIN, FILL_FACTOR * sweep->kind->width / before->len),
               (int64_t)STATE_WORK * sweep->kind->width / before->len);
    }
}

/* Finds the states behind the boundary before section @s. */
static void
advance(Sweep *sweep, uint32_t s)
{
    const GArray *before = sweep->layers[s - 1].states;
    bool any_stays =
        g_array_index(before, State, 0).order->leaves != sweep->boundaries->at[s].n_ends;
    Layer *layer = &sweep->layers[s];
    *layer = (Layer){ g_array_new(FALSE, FALSE, sizeof(State)), g_array_new(FALSE, FALSE, 1) };
    sweep->seen = g_hash_table_new(NULL, NULL);
    go_to(sweep, s);
    kiln_order_store_reset(&sweep->scratch);
    if (sweep->by_groups && any_stays)
        kiln_sweep_cross(sweep, before);
    else
        follow_each(sweep, before);
    keep_best(sweep, layer);
    g_hash_table_unref(sweep->seen);
}

static KilnOrder *
first_order(Sweep *sweep, KilnOrderStore *store)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    for (uint32_t i = 0; i < sweep->search->n; i++) {
        if (!sweep->boundaries->first[i])
            g_ptr_array_add(list, kiln_sweep_leaf(sweep, store, i));
    }
    return kiln_order_any(store, (KilnOrder *const *)(void *)list->pdata, list->len);
}

/* --- from groups to offsets --- */

static int64_t
least_key(const KilnOrder *node, const int64_t *keys)
{
    if (node->kind == KILN_ORDER_LEAF)
        return keys[node->leaf];
    int64_t key = INT64_MAX;
    for (uint32_t c = 0; c < node->n; c++)
        key = MIN(key, least_key(node->children[c], keys));
    return key;
}

/* Lays buffers from *@at upward, as @node allows, the least keys first. */
static void
lay(Search *search, const KilnOrder *node, const int64_t *keys, int64_t *at)
{
    if (node->kind == KILN_ORDER_LEAF) {
        search->buffers[node->leaf].offset = *at;
        *at += search->buffers[node->leaf].size;
        return;
    }
    g_autofree const KilnOrder **children = g_new(const KilnOrder *, node->n);
    bool is_line = node->kind == KILN_ORDER_LINE;
    bool backward = is_line && least_key(node->children[0], keys) >
                                   least_key(node->children[node->n - 1], keys);
    for (uint32_t c = 0; c < node->n; c++) {
        const KilnOrder *child = node->children[backward ? node->n - 1 - c : c];
        uint32_t k = c;
        for (; !is_line && k > 0 && least_key(child, keys) < least_key(children[k - 1], keys); k--)
            children[k] = children[k - 1];
        children[k] = child;
    }
    for (uint32_t c = 0; c < node->n; c++)
        lay(search, children[c], keys, at);
}

/* The groups of state @k behind the boundary before section @s. */
static const uint8_t *
groups_of(const Sweep *sweep, uint32_t s, uint32_t k)
{
    const Layer *layer = &sweep->layers[s];
    return (const uint8_t *)layer->groups->data + g_array_index(layer->states, State, k).groups;
}

/* Goes through the groups of @path once more; @joined is set to what ended before each section. */
static KilnOrder *
repeat(Sweep *sweep, const uint32_t *path, KilnOrder **joined)
{
    kiln_order_store_reset(&sweep->scratch);
    KilnOrder *order = first_order(sweep, &sweep->scratch);
    for (uint32_t s = 1; s < sweep->boundaries->n_sections; s++) {
        const KilnBoundary *boundary = sweep->boundary = &sweep->boundaries->at[s];
        const uint8_t *groups = groups_of(sweep, s, path[s]);
        uint64_t masks[KILN_BOUNDARY_MAX + 1] = { 0 };
        uint32_t n_groups = 0;
        for (uint32_t k = 0; k < boundary->n_ends; k++) {
            n_groups = MAX(n_groups, groups[k]);
            masks[groups[k]] |= UINT64_C(1) << k;
        }
        for (uint32_t g = 1; g <= n_groups; g++)
            order = kiln_sweep_join(sweep, boundary, order, masks[g]);
        joined[s] = order;
        order = cross(sweep, order, groups, groups + boundary->n_ends, n_groups);
    }
    return order;
}

/* Orders the last section, then each before it: what stays keeps its place, and what ended lies
 * where what replaced it does. */
static void
set_offsets(Sweep *sweep)
{
    Search *search = sweep->search;
    uint32_t n = sweep->boundaries->n_sections;
    g_autofree uint32_t *path = g_new0(uint32_t, n);
    g_autofree KilnOrder **joined = g_new0(KilnOrder *, n);
    g_autofree int64_t *keys = g_new0(int64_t, (size_t)search->n + 1);
    for (uint32_t s = n - 1; s > 1; s--)
        path[s - 1] = g_array_index(sweep->layers[s].states, State, path[s]).parent;
    int64_t at = 0;
    lay(search, repeat(sweep, path, joined), keys, &at);
    for (uint32_t s = n - 1; s > 0; s--) {
        const KilnBoundary *boundary = &sweep->boundaries->at[s];
        const uint8_t *end_groups = groups_of(sweep, s, path[s]);
        const uint8_t *begin_groups = end_groups + boundary->n_ends;
        int64_t places[KILN_BOUNDARY_MAX + 1];
        for (uint32_t g = 0; g <= KILN_BOUNDARY_MAX; g++)
            places[g] = INT64_MAX;
        for (uint32_t k = 0; k < boundary->n_begins; k++) {
            int64_t *place = &places[begin_groups[k]];
            *place = MIN(*place, search->buffers[boundary->begins[k]].offset);
        }
        for (uint32_t i = 0; i < search->n; i++)
            keys[i] = search->buffers[i].offset;
        for (uint32_t k = 0; k < boundary->n_ends; k++)
            keys[boundary->ends[k]] = places[end_groups[k]];
        at = 0;
        lay(search, joined[s], keys, &at);
    }
}

/* --- one attempt --- */

static void
sweep_clear(Sweep *sweep)
{
    for (uint32_t s = 0; s < sweep->boundaries->n_sections; s++) {
        if (sweep->layers[s].states)
            g_array_unref(sweep->layers[s].states);
        if (sweep->layers[s].groups)
            g_array_unref(sweep->layers[s].groups);
    }
    g_free(sweep->layers);
    g_free(sweep->end_at);
    kiln_order_store_clear(&sweep->current);
    kiln_order_store_clear(&sweep->next);
    kiln_order_store_clear(&sweep->scratch);
}

static const SweepKind *
kind_of(uint32_t turn)
{
    const uint32_t n = G_N_ELEMENTS(kinds);
    return &kinds[turn < n ? turn : n - 2 + (turn - n) % 2];
}

KilnPlacement
kiln_place_sweep(Search *search, KilnBoundaries *boundaries, uint32_t turn, int64_t budget)
{
    Sweep sweep = { .search = search,
                    .boundaries = boundaries,
                    .layers = g_new0(Layer, (size_t)boundaries->n_sections + 1),
                    .end_at = g_new(int8_t, (size_t)search->n + 1),
                    .kind = kind_of(turn),
                    .turn = turn,
                    .by_groups = turn > 0 };
    kiln_order_store_init(&sweep.current, search->n);
    kiln_order_store_init(&sweep.next, search->n);
    kiln_order_store_init(&sweep.scratch, search->n);
    search->work = 0;
    search->budget = budget;
    State first = { .order = first_order(&sweep, &sweep.current) };
    sweep.layers[0].states = g_array_new(FALSE, FALSE, sizeof(State));
    g_array_append_val(sweep.layers[0].states, first);
    uint32_t s = 1;
    while (s < boundaries->n_sections && sweep.layers[s - 1].states->len && search->work <= budget)
        advance(&sweep, s++);
    bool found = s == boundaries->n_sections && sweep.layers[s - 1].states->len;
    if (found)
        set_offsets(&sweep);
    sweep_clear(&sweep);
    return found ? KILN_PLACED : KILN_PLACEMENT_UNDECIDED;
}
