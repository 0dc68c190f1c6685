/* SPDX-License-Identifier: Apache-2.0 */
/* Exact placement: a depth-first search for offsets below a capacity, or for the proof that there
 * are none. After M. Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated
 * Machine Learning", ASPLOS 2023.
 *
 * Time is cut into sections, in each of which the same buffers live. Of the plans that fit, the one
 * whose offsets sum to the least has every buffer on the ground or on another, and no hole that a
 * higher one would fill. The search builds such plans from the bottom up:
 *
 *   - buffers are placed in order of offset, equal ones by rank, each at the lowest offset that
 *     those below it leave: every plan is met once;
 *   - a section whose unplaced buffers do not fit between its floor, where the lowest of them may
 *     lie, and the capacity ends a branch;
 *   - nothing is placed above a space that an unplaced buffer would fill;
 *   - a buffer that no unplaced one overlaps is placed at once: nothing can lift it;
 *   - where no unplaced buffer reaches across a point in time, both sides are solved on their own.
 *
 * How soon the search ends depends on which of equal choices comes first, and varies by orders of
 * magnitude. So it is begun anew again and again, with budgets that grow: under three rankings in
 * turn, and now and then under one of them disturbed by a seeded generator. Most of the work goes
 * to another search (place_fill.c), which is the better one where few gaps are left. Where there
 * can be no gap, most of it goes to a third one (place_sweep.c). The budgets count work, not time:
 * plans are the same everywhere. */
#include "ir/plan/place.h"

#include "graph/base/random.h"
#include "ir/plan/place_boundary.h"
#include "ir/plan/place_priv.h"

#include <stdlib.h>

enum {
    N_RANKINGS = 3,
    FIXED_UNIT = 20000, /* of work: what the first attempt of each ranking may do */
    FIXED_GROWTH = 2,   /* bits, from round to round */
    FILLING_UNIT = 1000000,
    FILLING_SHARE = 4,  /* of work, for one of both others */
    SWEEPING_SHARE = 4, /* of work, for one of all others */
    DISTURBED_UNIT = 500000,
    DISTURBED_SHARE = 4, /* one in so many units of work goes to disturbed rankings */
};

/* --- sections --- */

static int
compare_steps(gconstpointer a, gconstpointer b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* The index of @step among the section bounds, which hold it. */
static uint32_t
section_at(const int64_t *bounds, uint32_t n, int64_t step)
{
    uint32_t low = 0, high = n;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        if (bounds[middle] <= step)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* A section begins where a buffer's life does, or behind the end of one. */
static void
find_sections(Search *search)
{
    g_autofree int64_t *bounds = g_new(int64_t, 2 * (size_t)search->n + 1);
    uint32_t n = 0, distinct = 0;
    for (uint32_t i = 0; i < search->n; i++) {
        bounds[n++] = search->buffers[i].life->first;
        bounds[n++] = search->buffers[i].life->last + 1;
    }
    qsort(bounds, n, sizeof *bounds, compare_steps);
    for (uint32_t i = 0; i < n; i++) {
        if (!distinct || bounds[distinct - 1] != bounds[i])
            bounds[distinct++] = bounds[i];
    }
    for (uint32_t i = 0; i < search->n; i++) {
        Buffer *buffer = &search->buffers[i];
        buffer->first = section_at(bounds, distinct, buffer->life->first);
        buffer->last = section_at(bounds, distinct, buffer->life->last);
    }
    search->n_sections = distinct;
}

/* Lists the members of each section, and sums their sizes. */
static void
find_members(Search *search)
{
    search->sections = g_new0(Section, search->n_sections + 1);
    for (uint32_t i = 0; i < search->n; i++) {
        for (uint32_t s = search->buffers[i].first; s <= search->buffers[i].last; s++) {
            search->sections[s].rest += search->buffers[i].size;
            search->sections[s].n_members++;
        }
    }
    uint32_t total = 0;
    for (uint32_t s = 0; s < search->n_sections; s++) {
        search->sections[s].first_member = total;
        total += search->sections[s].n_members;
        search->sections[s].n_members = 0;
    }
    search->members = g_new(uint32_t, (size_t)total + 1);
    for (uint32_t i = 0; i < search->n; i++) {
        for (uint32_t s = search->buffers[i].first; s <= search->buffers[i].last; s++) {
            Section *section = &search->sections[s];
            if (!section->n_members)
                section->lowest = i;
            search->members[section->first_member + section->n_members++] = i;
        }
    }
    search->work += 2 * (int64_t)total;
}

static void
find_neighbours(Search *search)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (uint32_t i = 0; i < search->n; i++) {
        Buffer *buffer = &search->buffers[i];
        buffer->neighbours = list->len;
        uint32_t k = 0; /* the buffers are in order of their first sections */
        for (; k < search->n && search->buffers[k].first <= buffer->last; k++) {
            if (k != i && buffer->first <= search->buffers[k].last)
                g_array_append_val(list, k);
        }
        buffer->n_neighbours = list->len - buffer->neighbours;
        search->work += k;
    }
    search->neighbours = (uint32_t *)(void *)g_array_free(list, FALSE);
}

/* --- rankings: what comes first of equal offsets --- */

typedef struct {
    double keys[3]; /* greatest first */
    uint32_t buffer;
} Ranked;

static int
by_keys(gconstpointer a, gconstpointer b)
{
    const Ranked *x = a, *y = b;
    for (int k = 0; k < 3; k++) {
        if (x->keys[k] != y->keys[k])
            return x->keys[k] > y->keys[k] ? -1 : 1;
    }
    return x->buffer < y->buffer ? -1 : x->buffer > y->buffer;
}

double
kiln_place_disturbance(uint32_t turn, uint32_t buffer)
{
    uint64_t z = ((uint64_t)turn << 32 | buffer) + UINT64_C(0x9e3779b97f4a7c15);
    return 0.5 + (double)(kiln_random_mix(z) >> 11) * 0x1p-53;
}

/* Width is the length of a life, area its product with the size, total the most that lives at once
 * during it. */
static void
rank(Search *search, uint32_t turn, bool disturbed)
{
    uint32_t ranking = turn % N_RANKINGS;
    static const uint8_t order[N_RANKINGS][3] = { { 1, 0, 2 }, { 2, 0, 1 }, { 0, 1, 2 } };
    g_autofree Ranked *ranked = g_new(Ranked, search->n + 1);
    for (uint32_t i = 0; i < search->n; i++) {
        const Buffer *buffer = &search->buffers[i];
        double factor = disturbed ? kiln_place_disturbance(turn, i) : 1;
        double width = (double)(buffer->life->last - buffer->life->first + 1);
        int64_t total = 0;
        for (uint32_t s = buffer->first; s <= buffer->last; s++)
            total = MAX(total, search->sections[s].rest);
        const double keys[] = { width * factor, width * (double)buffer->size * factor,
                                (double)total * factor };
        for (int k = 0; k < 3; k++)
            ranked[i].keys[k] = keys[order[ranking][k]];
        ranked[i].buffer = i;
    }
    qsort(ranked, search->n, sizeof *ranked, by_keys);
    for (uint32_t i = 0; i < search->n; i++)
        search->buffers[ranked[i].buffer].rank = i;
}

/* --- placing one, and taking it back --- */

static void
place(Search *search, uint32_t i, int64_t offset)
{
    Buffer *buffer = &search->buffers[i];
    buffer->placed = true;
    buffer->offset = offset;
    int64_t end = offset + buffer->size;
    g_array_append_val(search->trail, i);
    for (uint32_t s = buffer->first; s <= buffer->last; s++)
        search->sections[s].rest -= buffer->size;
    for (uint32_t k = 0; k < buffer->n_neighbours; k++) {
        uint32_t other = search->neighbours[buffer->neighbours + k];
        Buffer *above = &search->buffers[other];
        if (above->placed || above->lowest >= end)
            continue;
        Undo undo = { other, i, above->lowest };
        g_array_append_val(search->undo, undo);
        above->lowest = end;
    }
    search->work += buffer->n_neighbours + buffer->last - buffer->first + 1;
}

/* Takes back the last placement. */
static void
take_back_one(Search *search)
{
    uint32_t i = g_array_index(search->trail, uint32_t, search->trail->len - 1);
    Buffer *buffer = &search->buffers[i];
    buffer->placed = false;
    for (uint32_t s = buffer->first; s <= buffer->last; s++)
        search->sections[s].rest += buffer->size;
    while (search->floor_undo->len) {
        const FloorUndo *undo =
            &g_array_index(search->floor_undo, FloorUndo, search->floor_undo->len - 1);
        if (undo->by != i)
            break;
        search->sections[undo->section].floor = undo->floor;
        search->sections[undo->section].lowest = undo->lowest;
        g_array_set_size(search->floor_undo, search->floor_undo->len - 1);
    }
    while (search->undo->len) {
        const Undo *undo = &g_array_index(search->undo, Undo, search->undo->len - 1);
        if (undo->by != i)
            break;
        search->buffers[undo->buffer].lowest = undo->lowest;
        g_array_set_size(search->undo, search->undo->len - 1);
    }
    g_array_set_size(search->trail, search->trail->len - 1);
}

static void
take_back(Search *search, guint mark)
{
    while (search->trail->len > mark)
        take_back_one(search);
}

/* --- one node --- */

/* A part of the time, all of whose unplaced buffers are @members, in order of their first sections.
 */
typedef struct {
    uint32_t *members;
    uint32_t n;
    uint32_t first, last; /* sections */
    int64_t offset;       /* of what was placed last */
    uint32_t rank;
} Part;

/* Finds the floor of a section anew after placing @by; it only rises. */
static void
raise_floor(Search *search, uint32_t s, uint32_t by)
{
    Section *section = &search->sections[s];
    FloorUndo undo = { s, by, section->lowest, section->floor };
    g_array_append_val(search->floor_undo, undo);
    int64_t floor = INT64_MAX;
    for (uint32_t m = 0; m < section->n_members && floor > undo.floor; m++) {
        uint32_t i = search->members[section->first_member + m];
        const Buffer *buffer = &search->buffers[i];
        if (!buffer->placed && buffer->lowest < floor) {
            floor = buffer->lowest;
            section->lowest = i;
        }
        search->work++;
    }
    section->floor = floor;
}

/* False where the rest of a section between @first and @last does not fit between its floor, which
 * is not below @offset, and the capacity. */
static bool
may_fit(Search *search, uint32_t first, uint32_t last, int64_t offset, uint32_t by)
{
    search->work += last - first + 1;
    for (uint32_t s = first; s <= last; s++) {
        Section *section = &search->sections[s];
        if (!section->rest)
            continue;
        const Buffer *lowest = &search->buffers[section->lowest];
        if (lowest->placed || lowest->lowest > section->floor)
            raise_floor(search, s, by);
        if (MAX(section->floor, offset) > search->capacity - section->rest)
            return false;
    }
    return true;
}

typedef struct {
    int64_t offset;
    uint32_t rank, buffer;
} Choice;

static int
by_offset(gconstpointer a, gconstpointer b)
{
    const Choice *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* What may be placed next, lowest first. */
static uint32_t
find_choices(Search *search, const Part *part, Choice *choices)
{
    int64_t hole = INT64_MAX; /* what lies here or above leaves room for some buffer below */
    for (uint32_t m = 0; m < part->n; m++) {
        const Buffer *buffer = &search->buffers[part->members[m]];
        hole = MIN(hole, buffer->lowest + buffer->size);
    }
    uint32_t n = 0;
    for (uint32_t m = 0; m < part->n; m++) {
        const Buffer *buffer = &search->buffers[part->members[m]];
        bool in_order = buffer->lowest > part->offset ||
                        (buffer->lowest == part->offset && buffer->rank > part->rank);
        if (in_order && buffer->lowest < hole)
            choices[n++] = (Choice){ buffer->lowest, buffer->rank, part->members[m] };
    }
    search->work += 2 * part->n;
    qsort(choices, n, sizeof *choices, by_offset);
    return n;
}

static bool
is_lonely(const Search *search, const Buffer *buffer)
{
    for (uint32_t k = 0; k < buffer->n_neighbours; k++) {
        if (!search->buffers[search->neighbours[buffer->neighbours + k]].placed)
            return false;
    }
    return true;
}

static KilnPlacement solve(Search *search, const Part *part);

/* Solves what is left of @part after a placement, piece by piece where nothing reaches across. */
static KilnPlacement
solve_rest(Search *search, const Part *part, int64_t offset, uint32_t last_rank)
{
    g_autofree uint32_t *rest = g_new(uint32_t, (size_t)part->n + 1);
    uint32_t n = 0;
    for (uint32_t m = 0; m < part->n; m++) {
        if (!search->buffers[part->members[m]].placed)
            rest[n++] = part->members[m];
    }
    for (uint32_t begin = 0, end; begin < n; begin = end) {
        uint32_t reach;
        end = kiln_place_reach(search->buffers, rest, begin, n, &reach);
        Part piece = { rest + begin, end - begin, search->buffers[rest[begin]].first,
                       reach,        offset,      last_rank };
        KilnPlacement found = solve(search, &piece);
        if (found != KILN_PLACED)
            return found;
    }
    return KILN_PLACED;
}

static KilnPlacement
solve(Search *search, const Part *part)
{
    g_autofree Choice *choices = g_new(Choice, part->n + 1);
    uint32_t n = find_choices(search, part, choices);
    for (uint32_t c = 0; c < n; c++) {
        if (search->work > search->budget)
            return KILN_PLACEMENT_UNDECIDED;
        guint mark = search->trail->len;
        uint32_t i = choices[c].buffer;
        bool lonely = is_lonely(search, &search->buffers[i]);
        place(search, i, choices[c].offset);
        KilnPlacement found = may_fit(search, part->first, part->last, choices[c].offset, i)
                                  ? solve_rest(search, part, choices[c].offset, choices[c].rank)
                                  : KILN_PLACEMENT_IMPOSSIBLE;
        if (found == KILN_PLACED)
            return found;
        take_back(search, mark);
        if (found == KILN_PLACEMENT_UNDECIDED || lonely)
            return found;
    }
    return KILN_PLACEMENT_IMPOSSIBLE;
}

/* --- the search --- */

static int
by_first_step(gconstpointer a, gconstpointer b, gpointer data)
{
    const KilnLife *lives = data;
    const KilnLife *x = &lives[*(const uint32_t *)a], *y = &lives[*(const uint32_t *)b];
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void
search_init(Search *search, KilnLife *lives, uint32_t n, int64_t capacity)
{
    g_autofree uint32_t *order = g_new(uint32_t, n + 1);
    uint32_t used = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (lives[i].size)
            order[used++] = i;
    }
    g_qsort_with_data(order, (gint)used, sizeof *order, by_first_step, lives);
    *search = (Search){ .n = used,
                        .capacity = capacity,
                        .failure = 1,
                        .buffers = g_new0(Buffer, used + 1),
                        .trail = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                        .undo = g_array_new(FALSE, FALSE, sizeof(Undo)),
                        .floor_undo = g_array_new(FALSE, FALSE, sizeof(FloorUndo)) };
    for (uint32_t i = 0; i < used; i++) {
        search->buffers[i].life = &lives[order[i]];
        search->buffers[i].size = lives[order[i]].size;
    }
    find_sections(search);
    find_neighbours(search);
    find_members(search);
}

static void
search_clear(Search *search)
{
    g_free(search->buffers);
    g_free(search->neighbours);
    g_free(search->sections);
    g_free(search->members);
    g_array_unref(search->floor_undo);
    g_array_unref(search->trail);
    g_array_unref(search->undo);
}

/* One attempt, from nothing placed. */
static KilnPlacement
attempt(Search *search, int64_t budget)
{
    search->work = 0;
    search->budget = budget;
    for (uint32_t s = 0; s < search->n_sections; s++) {
        if (search->sections[s].rest > search->capacity)
            return KILN_PLACEMENT_IMPOSSIBLE;
    }
    g_autofree uint32_t *members = g_new(uint32_t, (size_t)search->n + 1);
    for (uint32_t i = 0; i < search->n; i++)
        members[i] = i;
    /* Before anything is placed every offset and rank is in order. */
    Part all = { members, search->n, 0, search->n_sections - 1, -1, 0 };
    return solve_rest(search, &all, all.offset, all.rank);
}

/* Attempts that follow one another: how long each may be, and what all of them have done. */
typedef struct {
    int64_t unit; /* of work */
    bool disturbed;
    uint32_t turn;
    int64_t done;
} Schedule;

/* 1 1 2 1 1 2 4 …: of all sequences that know nothing of the search, Luby's loses least. */
static int64_t
luby(uint32_t i)
{
    for (uint32_t k = i + 2;;) { /* the (i + 1)th of a sequence that is counted from 1 */
        uint32_t power = 1;
        while (2 * power <= k)
            power *= 2;
        if (power == k)
            return power / 2;
        k -= power - 1;
    }
}

static KilnPlacement
next_attempt(Search *search, Schedule *schedule, int64_t left)
{
    uint32_t round = schedule->turn / N_RANKINGS;
    int64_t factor =
        schedule->disturbed ? luby(round) : INT64_C(1) << MIN(round * FIXED_GROWTH, 40);
    take_back(search, 0);
    rank(search, schedule->turn++, schedule->disturbed);
    KilnPlacement found = attempt(search, MIN(schedule->unit * factor, left));
    schedule->done += search->work;
    return found;
}

static KilnPlacement
next_filling(Search *search, Schedule *schedule, int64_t left)
{
    take_back(search, 0);
    int64_t budget = MIN(schedule->unit * luby(schedule->turn), left);
    KilnPlacement found = kiln_place_fill(search, schedule->turn++, budget);
    schedule->done += search->work;
    return found;
}

/* The attempts of place_sweep.c: forward in time and backward in turn. */
typedef struct {
    KilnBoundaries *boundaries[2];
    bool none; /* there are gaps */
    uint32_t turn;
    int64_t done;
} Sweeping;

static KilnPlacement
next_sweep(Search *search, Sweeping *sweeping, int64_t left)
{
    take_back(search, 0);
    search->work = 0;
    bool backward = sweeping->turn % 2;
    KilnBoundaries **boundaries = &sweeping->boundaries[backward];
    bool is_first = !*boundaries;
    if (is_first)
        *boundaries = kiln_boundaries_new(search, backward, left);
    sweeping->none = !*boundaries;
    if (sweeping->none)
        return KILN_PLACEMENT_UNDECIDED;
    KilnPlacement found = kiln_place_sweep(search, *boundaries, sweeping->turn++ / 2, left);
    search->work += is_first ? (*boundaries)->work : 0;
    sweeping->done += search->work;
    return found;
}

typedef enum {
    FILL = 1 << 0,
    BY_OFFSET = 1 << 1,
    SWEEP = 1 << 2,
} Method;

static KilnPlacement
place_by(KilnLife *lives, uint32_t n, int64_t capacity, int64_t *work, int methods)
{
    if (n > KILN_PLACE_EXACT_MAX)
        return KILN_PLACEMENT_UNDECIDED;
    Schedule fixed = { .unit = FIXED_UNIT };
    Schedule filling = { .unit = FILLING_UNIT };
    Sweeping sweeping = { .none = false };
    Schedule disturbed = { .unit = DISTURBED_UNIT, .disturbed = true };
    Search search;
    search_init(&search, lives, n, capacity);
    *work -= search.work;
    KilnPlacement found = KILN_PLACEMENT_UNDECIDED;
    while (found == KILN_PLACEMENT_UNDECIDED && *work > 0) {
        int64_t by_offset = FILLING_SHARE * (fixed.done + disturbed.done);
        bool fills = fixed.turn >= N_RANKINGS && filling.done <= by_offset;
        bool is_behind = disturbed.done * (DISTURBED_SHARE - 1) < fixed.done;
        Schedule *next = is_behind ? &disturbed : &fixed;
        fills = methods & BY_OFFSET ? fills : methods == FILL;
        bool sweeps =
            fixed.turn >= N_RANKINGS && (methods & SWEEP) && !sweeping.none &&
            sweeping.done <= SWEEPING_SHARE * (fixed.done + disturbed.done + filling.done);
        if (sweeps)
            found = next_sweep(&search, &sweeping, *work);
        else
            found =
                fills ? next_filling(&search, &filling, *work) : next_attempt(&search, next, *work);
        *work -= search.work;
    }
    if (found == KILN_PLACED) {
        for (uint32_t i = 0; i < n; i++)
            lives[i].offset = 0; /* of what has no size */
        for (uint32_t i = 0; i < search.n; i++)
            search.buffers[i].life->offset = search.buffers[i].offset;
    }
    kiln_boundaries_free(sweeping.boundaries[false]);
    kiln_boundaries_free(sweeping.boundaries[true]);
    search_clear(&search);
    return found;
}

KilnPlacement
kiln_place_within(KilnLife *lives, uint32_t n, int64_t capacity, int64_t *work)
{
    return place_by(lives, n, capacity, work, FILL | BY_OFFSET | SWEEP);
}

KilnPlacement
kiln_place_by_filling(KilnLife *lives, uint32_t n, int64_t capacity, int64_t *work)
{
    return place_by(lives, n, capacity, work, FILL);
}
