/* SPDX-License-Identifier: Apache-2.0 */
/* The sweep through time at one boundary: a beam search of its own.
 *
 * Twenty buffers that end at once may form groups in very many ways. A list of these in any fixed
 * order, cut off at a limit, misses the best ones.
 *
 * A step puts some of the ends into one group and replaces them by what begins there. Partial
 * states are those between two such steps. They are sorted into buckets by how many ends are left.
 * The search goes from the bucket where all are left to that where none is. It keeps the best of
 * each bucket, so that the best groupings are found without all being listed.
 *
 * What may follow from one partial state is too much where many buffers end. So a step tries the
 * smallest groups, and the biggest ones: long lists of ends and begins fit together in many ways,
 * and few big groups leave most of the others free.
 *
 * The score of a partial state is its number of orders (place_tree.h), and a bonus for what may
 * still begin, so that partial states of few and of many begins compare. */
#include "ir/plan/place_priv.h"
#include "ir/plan/place_sweep.h"

#include <string.h>

enum {
    DISTURBANCE = 5 * 65536, /* in the unit of freedom */
    PARTIAL_WORK = 30000,    /* for finding what follows from one partial state */
    FINAL = 10,              /* states behind the boundary, over the width */
    SLACK = 4,               /* candidates that a bucket holds before the worst are dropped */
    CANDIDATE_WORK = 30,     /* of making and sorting one */
    BUILD_WORK = 60,         /* of copying a partial state */
};

/* Some ends are in groups, which are replaced. */
typedef struct {
    KilnOrder *order;
    uint64_t ends, begins; /* that are left */
    uint32_t parent;       /* the state before the boundary */
    uint32_t n_groups;
    uint8_t end_groups[KILN_BOUNDARY_MAX], begin_groups[KILN_BOUNDARY_MAX];
} Partial;

/* A partial state that is not built yet: one more group. */
typedef struct {
    double score;
    uint64_t ends, begins; /* of the group */
    uint32_t from;         /* the partial state before */
} Candidate;

typedef struct {
    Sweep *sweep;
    GArray *partials;                       /* Partial */
    GArray *buckets[KILN_BOUNDARY_MAX + 1]; /* Candidate; by the number of ends left */
    KilnOrder *begun;                       /* a leaf in the place of what begins */
    int64_t work_max;
    /* What follows is of one partial state. */
    uint32_t from;
    Partial partial;
    int64_t sum; /* of the ends that are left */
    uint64_t mates[KILN_BOUNDARY_MAX];
} Crossing;

static int
by_score(gconstpointer a, gconstpointer b)
{
    const Candidate *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->ends != y->ends)
        return x->ends < y->ends ? -1 : 1;
    return x->begins < y->begins ? -1 : x->begins > y->begins;
}

/* How many partial states are kept that have @left ends left. */
static guint
kept_of(const Sweep *sweep, uint32_t left)
{
    return sweep->kind->width * (left ? sweep->kind->wide : FINAL);
}

/* Makes a group of the ends @mask and puts @by there; NULL where they cannot lie side by side. */
static KilnOrder *
swap(Sweep *sweep, KilnOrder *order, uint64_t mask, KilnOrder *by)
{
    const KilnBoundary *boundary = sweep->boundary;
    KilnOrder *replacements[2] = { NULL, by };
    KilnOrder *joined = kiln_sweep_join(sweep, boundary, order, mask);
    if (!joined)
        return NULL;
    for (uint64_t rest = mask; rest; rest &= rest - 1)
        sweep->scratch.groups[boundary->ends[__builtin_ctzll(rest)]] = 1;
    KilnOrder *swapped = kiln_order_replace(&sweep->scratch, joined, replacements);
    for (uint64_t rest = mask; rest; rest &= rest - 1)
        sweep->scratch.groups[boundary->ends[__builtin_ctzll(rest)]] = 0;
    return swapped;
}

static uint64_t
mix(uint64_t z)
{
    z = (z ^ (z >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return z ^ (z >> 32);
}

/* Puts a candidate into its bucket. @freedom is that of the order where one thing begins. */
static void
propose(Crossing *crossing, uint64_t ends, uint64_t begins, int64_t freedom)
{
    Sweep *sweep = crossing->sweep;
    const Partial *partial = &crossing->partial;
    int n_begins = __builtin_popcountll(begins), n_rest = __builtin_popcountll(partial->begins);
    uint32_t left = (uint32_t)__builtin_popcountll(partial->ends & ~ends);
    uint64_t hash = mix(mix(partial->order->hash + ends) + begins);
    double disturbance = kiln_place_disturbance(sweep->turn, (uint32_t)hash) - 1;
    freedom += sweep->scratch.factorials[n_begins] + sweep->kind->bonus * (n_rest - n_begins);
    Candidate candidate = { (double)freedom + DISTURBANCE * disturbance, ends, begins,
                            crossing->from };
    GArray *bucket = crossing->buckets[left];
    guint kept = kept_of(sweep, left);
    g_array_append_val(bucket, candidate);
    sweep->scratch.work += CANDIDATE_WORK;
    if (bucket->len < SLACK * kept)
        return;
    g_array_sort(bucket, by_score);
    g_array_set_size(bucket, SLACK / 2 * kept);
}

/* A group of ends. */
typedef struct {
    uint64_t mask;
    KilnOrder *swapped; /* the order where one thing begins there; NULL: not known yet */
} Group;

/* Proposes that @begins replace @group. False where its ends cannot lie side by side. */
static bool
try_begins(Crossing *crossing, Group *group, uint64_t begins)
{
    const uint64_t left = crossing->partial.begins, twins = crossing->sweep->boundary->twins;
    /* Of equal ones the first come first. */
    if ((begins & ~left) || ((begins & twins) >> 1 & left & ~begins))
        return true;
    if (!group->swapped)
        group->swapped =
            swap(crossing->sweep, crossing->partial.order, group->mask, crossing->begun);
    if (group->swapped)
        propose(crossing, group->mask, begins, group->swapped->freedom);
    return group->swapped != NULL;
}

/* Proposes all sets of begins with the sum @sum for @group, or what they leave of all begins. */
static void
try_sum(Crossing *crossing, Group *group, int64_t sum, bool rest)
{
    const KilnBoundary *boundary = crossing->sweep->boundary;
    uint64_t left = crossing->partial.begins;
    bool may = true;
    for (uint32_t at = kiln_boundary_find(boundary, sum);
         may && at < boundary->n_sums && boundary->sums[at].sum == sum; at++) {
        uint64_t mask = boundary->sums[at].mask;
        crossing->sweep->scratch.work += 2;
        if (!(mask & ~left))
            may = try_begins(crossing, group, rest ? left & ~mask : mask);
    }
}

/* Proposes all that the ends @mask, whose sizes sum to @sum, may be replaced by. Where not all sets
 * of begins are listed, the listed ones are small. Then a big set is found as the rest of one. */
static void
try_group(Crossing *crossing, uint64_t mask, int64_t sum)
{
    Sweep *sweep = crossing->sweep;
    size_t block = sweep->scratch.block, used = sweep->scratch.used;
    Group group = { mask, NULL };
    if (mask == crossing->partial.ends) {
        try_begins(crossing, &group, crossing->partial.begins);
    } else {
        try_sum(crossing, &group, sum, false);
        if (sweep->kind->big && sweep->boundary->n_sums >= sweep->boundaries->subsets_max)
            try_sum(crossing, &group, crossing->sum - sum, true);
    }
    kiln_order_store_rewind(&sweep->scratch, block, used);
}

/* Tries all groups of the ends @mask and @n_more of @more. */
static void
grow(Crossing *crossing, uint64_t mask, uint64_t more, int64_t sum, uint32_t n_more)
{
    Sweep *sweep = crossing->sweep;
    sweep->scratch.work += 5;
    if (!n_more) {
        if (mask != crossing->partial.ends)
            try_group(crossing, mask, sum);
        return;
    }
    for (; more && sweep->scratch.work <= crossing->work_max; more &= more - 1) {
        uint32_t k = (uint32_t)__builtin_ctzll(more);
        int64_t size = sweep->search->buffers[sweep->boundary->ends[k]].size;
        grow(crossing, mask | UINT64_C(1) << k, more & (more - 1) & crossing->mates[k], sum + size,
             n_more - 1);
    }
}

/* Tries all groups of the ends @mask and @rest without @n_less of these. */
static void
shrink(Crossing *crossing, uint64_t mask, uint64_t rest, int64_t sum, uint32_t n_less)
{
    Sweep *sweep = crossing->sweep;
    sweep->scratch.work += 2;
    if (!rest) {
        if (!n_less && mask != crossing->partial.ends)
            try_group(crossing, mask, sum);
        return;
    }
    uint32_t k = (uint32_t)__builtin_ctzll(rest);
    int64_t size = sweep->search->buffers[sweep->boundary->ends[k]].size;
    rest &= rest - 1;
    shrink(crossing, mask | UINT64_C(1) << k, rest & crossing->mates[k], sum + size, n_less);
    if (n_less && sweep->scratch.work <= crossing->work_max)
        shrink(crossing, mask, rest, sum, n_less - 1);
}

static int64_t
sum_of_ends(const Sweep *sweep, uint64_t mask)
{
    int64_t sum = 0;
    for (; mask; mask &= mask - 1)
        sum += sweep->search->buffers[sweep->boundary->ends[__builtin_ctzll(mask)]].size;
    return sum;
}

/* Adds a partial state and proposes what follows from it: small groups, and where the
 * kind of the attempt says so, big ones for half of the work. */
static void
add_partial(Crossing *crossing, const Partial *partial)
{
    Sweep *sweep = crossing->sweep;
    crossing->from = crossing->partials->len;
    crossing->partial = *partial;
    crossing->sum = sum_of_ends(sweep, partial->ends);
    g_array_append_val(crossing->partials, *partial);
    sweep->scratch.work = 0;
    crossing->work_max = sweep->kind->big ? PARTIAL_WORK / 2 : PARTIAL_WORK;
    uint32_t first = kiln_sweep_mates(sweep, partial->order, partial->ends, crossing->mates);
    uint64_t bit = UINT64_C(1) << first, others = crossing->mates[first] & ~bit;
    if ((bit | others) == partial->ends)
        try_group(crossing, partial->ends, crossing->sum);
    int64_t size = sum_of_ends(sweep, bit);
    uint32_t n = 1 + (uint32_t)__builtin_popcountll(others);
    for (uint32_t more = 0; more < n && sweep->scratch.work <= crossing->work_max; more++)
        grow(crossing, bit, others, size, more);
    bool is_cut = sweep->kind->big && sweep->scratch.work > crossing->work_max;
    crossing->work_max = PARTIAL_WORK;
    for (uint32_t less = 0; is_cut && less < n && sweep->scratch.work <= PARTIAL_WORK; less++)
        shrink(crossing, bit, others, size, less);
    sweep->search->work += sweep->scratch.work;
}

/* Makes the partial state of @candidate. */
static Partial
build(Crossing *crossing, const Candidate *candidate)
{
    Sweep *sweep = crossing->sweep;
    Partial partial = g_array_index(crossing->partials, Partial, candidate->from);
    partial.n_groups++;
    kiln_sweep_set_groups(partial.end_groups, candidate->ends, partial.n_groups);
    kiln_sweep_set_groups(partial.begin_groups, candidate->begins, partial.n_groups);
    partial.ends &= ~candidate->ends;
    partial.begins &= ~candidate->begins;
    KilnOrder *list[KILN_BOUNDARY_MAX];
    uint32_t n = 0;
    for (uint64_t rest = candidate->begins; rest; rest &= rest - 1)
        list[n++] =
            kiln_sweep_leaf(sweep, &sweep->scratch, sweep->boundary->begins[__builtin_ctzll(rest)]);
    sweep->scratch.work = BUILD_WORK;
    partial.order =
        swap(sweep, partial.order, candidate->ends, kiln_order_any(&sweep->scratch, list, n));
    sweep->search->work += sweep->scratch.work;
    return partial;
}

/* Builds the best of a bucket. Those of equal orders are one. */
static void
empty_bucket(Crossing *crossing, uint32_t left)
{
    Sweep *sweep = crossing->sweep;
    GArray *bucket = crossing->buckets[left];
    guint kept = kept_of(sweep, left), n = 0;
    g_array_sort(bucket, by_score);
    g_hash_table_remove_all(sweep->seen);
    for (guint k = 0; k < bucket->len && n < kept; k++) {
        if (sweep->search->work > sweep->search->budget)
            return;
        Partial partial = build(crossing, &g_array_index(bucket, Candidate, k));
        if (left && !g_hash_table_add(sweep->seen, GSIZE_TO_POINTER(partial.order->hash)))
            continue;
        n++;
        if (left) {
            add_partial(crossing, &partial);
            continue;
        }
        memcpy(sweep->end_groups, partial.end_groups, sizeof partial.end_groups);
        memcpy(sweep->begin_groups, partial.begin_groups, sizeof partial.begin_groups);
        sweep->parent = partial.parent;
        sweep->scratch.work = 0;
        kiln_sweep_add(sweep, partial.order);
        sweep->search->work += sweep->scratch.work;
    }
}

void
kiln_sweep_cross(Sweep *sweep, const GArray *before)
{
    uint32_t n_ends = sweep->boundary->n_ends;
    Crossing crossing = { .sweep = sweep, .partials = g_array_new(FALSE, FALSE, sizeof(Partial)) };
    crossing.begun = kiln_sweep_leaf(sweep, &sweep->scratch, sweep->boundary->begins[0]);
    for (uint32_t left = 0; left <= n_ends; left++)
        crossing.buckets[left] = g_array_new(FALSE, FALSE, sizeof(Candidate));
    for (guint k = 0; k < before->len; k++) {
        Partial whole = { .order = g_array_index(before, State, k).order,
                          .ends = kiln_sweep_all(n_ends),
                          .begins = kiln_sweep_all(sweep->boundary->n_begins),
                          .parent = k };
        add_partial(&crossing, &whole);
    }
    for (uint32_t left = n_ends; left-- > 0;)
        empty_bucket(&crossing, left);
    for (uint32_t left = 0; left <= n_ends; left++)
        g_array_unref(crossing.buckets[left]);
    g_array_unref(crossing.partials);
}
