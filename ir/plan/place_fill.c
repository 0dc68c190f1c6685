/* SPDX-License-Identifier: Apache-2.0 */
/* Exact placement by filling valleys: for plans with few gaps or none, where the search by offset
 * (place_exact.c) learns too late that a gap was left.
 *
 * The floor of a section is where the lowest of its unplaced buffers may lie. A valley is a run of
 * sections with one floor, between higher ones. What may lie on the floor of a valley lies inside
 * it, so that nothing unplaced can come below. A buffer that may lie there does, or it lies on
 * another unplaced one: then where it may lie lowest rises, and so may the floor.
 *
 *   - the search decides about the section with the fewest buffers that may lie on its floor, of
 *     any valley. Sections that failed before come sooner: failures count there, late ones more;
 *   - a section whose unplaced buffers do not fit between floor and capacity ends a branch;
 *   - what lies on the floor of a valley lies side by side in rows from its left to its right, with
 *     holes only where the capacity has room for them: what is in no such row lies higher;
 *   - a buffer that leaves no gap beside it comes first, and, in every other attempt, before it one
 *     that ends level with what stands beside it: where sizes are of many kinds, heights seldom
 * meet by chance;
 *   - buffers of equal lives and sizes are decided about together;
 *   - where nothing unplaced reaches across a point in time, both sides are solved on their own;
 *   - what was left to place when a branch failed is remembered by its hash: another way to the
 *     same rest is not tried. A failure that rests on a hash is no proof.
 */
#include "graph/base/random.h"
#include "ir/plan/place_priv.h"

#include <string.h>

enum {
    N_ORDERS = 4,
    MEMORY_BITS = 16,
    LEVEL_FACTOR = 1000, /* of a buffer's score, where it ends level with what is beside it */
    WALL_FACTOR = 3,     /* where something higher is beside it */
    FAILURE_FACTOR = 10, /* of a section's failures, by which its choices are divided */
};

/* What a failure counts for more than the one before. */
static const double GROWTH = 1.01;
/* Counts are made small again here. */
static const double COUNT_MAX = 1e100;

typedef struct {
    int64_t lowest;
    double score;  /* greatest is tried first */
    uint32_t kind; /* the first of those of equal life and size */
    bool placed;
} Item;

typedef struct {
    int64_t floor, next; /* where the lowest unplaced may lie, and the next one, or below */
    int64_t rest;        /* bytes that are not placed */
    uint32_t n_lowest;   /* unplaced buffers that may lie on the floor */
} Strip;

/* Which section is decided about, of those with as few choices, or of all. */
typedef enum {
    FAILED_OF_FEWEST,
    LOW_OF_FEWEST,
    FEWEST_OF_LOW,
    N_TASTES,
} Taste;

typedef enum {
    ITEM_LOWEST,
    ITEM_PLACED,
    STRIP_FLOOR,
} Change;

typedef struct {
    Change change;
    uint32_t at, n_lowest;
    int64_t value, next;
} Entry;

typedef struct {
    Search *search;
    Item *items;   /* of the buffers */
    Strip *strips; /* of the sections */
    GArray *trail; /* Entry */
    GArray *dirty; /* uint32_t: strips whose floor is to be found anew */
    int64_t least; /* of all sizes */
    Taste taste;
    double level_factor;
    uint32_t *starts; /* of each section: the first buffer that begins there */
    bool *from_left, *to_right;
    uint64_t *failed; /* hashes */
    bool used_hash;
} Fill;

/* A part of the time, all of whose unplaced buffers are @members, in order of their first sections.
 */
typedef struct {
    uint32_t *members;
    uint32_t n, first, last;
} Piece;

/* --- changes, and taking them back --- */

static void
note(Fill *fill, Change change, uint32_t at, int64_t value)
{
    Entry entry = { .change = change, .at = at, .value = value };
    g_array_append_val(fill->trail, entry);
}

static void
note_floor(Fill *fill, uint32_t s)
{
    const Strip *strip = &fill->strips[s];
    Entry entry = { STRIP_FLOOR, s, strip->n_lowest, strip->floor, strip->next };
    g_array_append_val(fill->trail, entry);
}

/* Buffer @i leaves the floor of its strips, if it may lie there, for @next. */
static void
leave_floor(Fill *fill, uint32_t i, int64_t next)
{
    const Buffer *buffer = &fill->search->buffers[i];
    for (uint32_t s = buffer->first; s <= buffer->last; s++) {
        Strip *strip = &fill->strips[s];
        if (strip->floor != fill->items[i].lowest)
            continue;
        note_floor(fill, s);
        strip->next = MIN(strip->next, next);
        if (!--strip->n_lowest)
            g_array_append_val(fill->dirty, s);
    }
    fill->search->work += buffer->last - buffer->first + 1;
}

static void
lift(Fill *fill, uint32_t i, int64_t lowest)
{
    if (fill->items[i].lowest >= lowest)
        return;
    leave_floor(fill, i, lowest);
    note(fill, ITEM_LOWEST, i, fill->items[i].lowest);
    fill->items[i].lowest = lowest;
}

/* Places @i where it may lie lowest. */
static void
put(Fill *fill, uint32_t i)
{
    Search *search = fill->search;
    Buffer *buffer = &search->buffers[i];
    int64_t end = fill->items[i].lowest + buffer->size;
    leave_floor(fill, i, INT64_MAX);
    note(fill, ITEM_PLACED, i, 0);
    fill->items[i].placed = true;
    buffer->offset = fill->items[i].lowest;
    for (uint32_t s = buffer->first; s <= buffer->last; s++)
        fill->strips[s].rest -= buffer->size;
    for (uint32_t k = 0; k < buffer->n_neighbours; k++) {
        uint32_t other = search->neighbours[buffer->neighbours + k];
        if (!fill->items[other].placed)
            lift(fill, other, end);
    }
    search->work += buffer->n_neighbours;
}

static void
undo_to(Fill *fill, guint mark)
{
    while (fill->trail->len > mark) {
        const Entry *entry = &g_array_index(fill->trail, Entry, fill->trail->len - 1);
        const Buffer *buffer = &fill->search->buffers[entry->at];
        switch (entry->change) {
        case ITEM_LOWEST:
            fill->items[entry->at].lowest = entry->value;
            break;
        case ITEM_PLACED:
            fill->items[entry->at].placed = false;
            for (uint32_t s = buffer->first; s <= buffer->last; s++)
                fill->strips[s].rest += buffer->size;
            break;
        case STRIP_FLOOR:
            fill->strips[entry->at].floor = entry->value;
            fill->strips[entry->at].next = entry->next;
            fill->strips[entry->at].n_lowest = entry->n_lowest;
            break;
        }
        g_array_set_size(fill->trail, fill->trail->len - 1);
    }
    g_array_set_size(fill->dirty, 0);
}

static void
find_floor(Fill *fill, uint32_t s)
{
    Strip *strip = &fill->strips[s];
    const Section *section = &fill->search->sections[s];
    note_floor(fill, s);
    strip->floor = strip->next = INT64_MAX;
    strip->n_lowest = 0;
    for (uint32_t m = 0; m < section->n_members; m++) {
        const Item *item = &fill->items[fill->search->members[section->first_member + m]];
        if (item->placed)
            continue;
        if (item->lowest > strip->floor) {
            strip->next = MIN(strip->next, item->lowest);
            continue;
        }
        if (item->lowest < strip->floor)
            strip->next = strip->floor;
        strip->n_lowest = item->lowest == strip->floor ? strip->n_lowest + 1 : 1;
        strip->floor = item->lowest;
    }
    fill->search->work += section->n_members;
}

static void
count_failure(Search *search, uint32_t at)
{
    search->sections[at].failures += search->failure;
    search->failure *= GROWTH;
    if (search->failure < COUNT_MAX)
        return;
    for (uint32_t s = 0; s < search->n_sections; s++)
        search->sections[s].failures /= COUNT_MAX;
    search->failure /= COUNT_MAX;
}

/* Finds floors anew where they may have risen; false where a strip's rest does not fit. */
static bool
settle(Fill *fill)
{
    for (guint k = 0; k < fill->dirty->len; k++) {
        uint32_t s = g_array_index(fill->dirty, uint32_t, k);
        Strip *strip = &fill->strips[s];
        find_floor(fill, s);
        if (strip->rest && strip->floor > fill->search->capacity - strip->rest) {
            count_failure(fill->search, s);
            return false;
        }
    }
    g_array_set_size(fill->dirty, 0);
    return true;
}

/* --- what failed before --- */

/* Of what is left to place, and where. Buffers that can be exchanged count alike. */
static uint64_t
hash_of(Fill *fill, const Piece *piece)
{
    uint64_t hash = 0;
    for (uint32_t m = 0; m < piece->n; m++) {
        const Item *item = &fill->items[piece->members[m]];
        hash += kiln_random_mix(kiln_random_mix(item->kind + UINT64_C(0x9e3779b97f4a7c15)) +
                                (uint64_t)item->lowest);
    }
    fill->search->work += piece->n;
    return hash | 1; /* 0: nothing */
}

/* --- choices --- */

/* The end of the run of strips with the floor of @s. */
static uint32_t
run_end(const Fill *fill, const Piece *piece, uint32_t s)
{
    uint32_t end = s + 1;
    while (end <= piece->last && fill->strips[end].floor == fill->strips[s].floor)
        end++;
    return end;
}

static bool
is_valley(const Fill *fill, const Piece *piece, uint32_t s, uint32_t end)
{
    const Strip *strips = fill->strips;
    return strips[s].floor != INT64_MAX &&
           (s == piece->first || strips[s - 1].floor > strips[s].floor) &&
           (end > piece->last || strips[end].floor > strips[s].floor);
}

/* The best strip to decide about so far. */
typedef struct {
    uint32_t at;
    double first, second; /* keys */
} Best;

/* Whether nothing need lie on the floor of @strip. */
static bool
may_stay_empty(const Fill *fill, const Strip *strip)
{
    int64_t above = MIN(strip->next, strip->floor + fill->least);
    return above <= fill->search->capacity - strip->rest;
}

static void
consider(const Fill *fill, uint32_t s, Best *best)
{
    const Strip *strip = &fill->strips[s];
    double failures = fill->search->sections[s].failures / fill->search->failure;
    double choices = strip->n_lowest + may_stay_empty(fill, strip);
    if (choices > 1)
        choices = 1 + choices / (1 + FAILURE_FACTOR * failures);
    double first = choices, second = (double)strip->floor; /* least is best */
    if (fill->taste == FAILED_OF_FEWEST) {
        second = -failures;
    } else if (fill->taste == FEWEST_OF_LOW && choices > 1) {
        first = 2 + second;
        second = choices;
    }
    if (first < best->first || (first == best->first && second < best->second))
        *best = (Best){ s, first, second };
}

/* The strip to decide about: on the floor of a valley. */
static uint32_t
choose_strip(Fill *fill, const Piece *piece)
{
    Best best = { piece->first, G_MAXDOUBLE, G_MAXDOUBLE };
    for (uint32_t s = piece->first, end; s <= piece->last; s = end) {
        end = run_end(fill, piece, s);
        bool chosen_from = is_valley(fill, piece, s, end);
        for (uint32_t k = s; chosen_from && k < end; k++)
            consider(fill, k, &best);
    }
    fill->search->work += piece->last - piece->first + 1;
    return best.at;
}

/* The score of placing @i on the floor, beside which lies the floor @beside. */
static double
score_beside(const Fill *fill, uint32_t i, int64_t beside, double score)
{
    int64_t lowest = fill->items[i].lowest;
    if (beside == lowest + fill->search->buffers[i].size)
        score *= fill->level_factor;
    return beside > lowest ? score * WALL_FACTOR : score;
}

static uint32_t
choose_buffer(Fill *fill, uint32_t s)
{
    const Search *search = fill->search;
    const Section *section = &search->sections[s];
    double most = -1;
    uint32_t best = 0;
    for (uint32_t m = 0; m < section->n_members; m++) {
        uint32_t i = search->members[section->first_member + m];
        const Item *item = &fill->items[i];
        const Buffer *buffer = &search->buffers[i];
        if (item->placed || item->lowest != fill->strips[s].floor)
            continue;
        int64_t left = buffer->first ? fill->strips[buffer->first - 1].floor : INT64_MAX;
        double score = score_beside(fill, i, left, item->score);
        score = score_beside(fill, i, fill->strips[buffer->last + 1].floor, score);
        if (score > most) {
            most = score;
            best = i;
        }
    }
    fill->search->work += section->n_members;
    return best;
}

/* Buffer @i does not lie where it may lie lowest, nor does one equal to it: each lies on another
 * unplaced one. */
static void
exclude(Fill *fill, uint32_t i)
{
    const Search *search = fill->search;
    const Buffer *buffer = &search->buffers[i];
    int64_t lowest = fill->items[i].lowest, least = search->capacity;
    for (uint32_t k = 0; k < buffer->n_neighbours; k++) {
        uint32_t other = search->neighbours[buffer->neighbours + k];
        if (!fill->items[other].placed)
            least = MIN(least, fill->items[other].lowest + search->buffers[other].size);
    }
    fill->search->work += buffer->n_neighbours;
    uint32_t kind = fill->items[i].kind, k = kind;
    for (; k < search->n && search->buffers[k].first == buffer->first; k++) {
        const Item *item = &fill->items[k];
        if (!item->placed && item->lowest == lowest && item->kind == kind)
            lift(fill, k, least);
    }
}

/* --- what may lie side by side --- */

/* True where buffer @i may lie on the floor @floor. */
static bool
may_lie(const Fill *fill, uint32_t i, int64_t floor)
{
    return !fill->items[i].placed && fill->items[i].lowest == floor;
}

/* Marks the sections of a valley, @first to before @end, which a row of buffers on its floor may
 * reach from the left, and from which it may go on to the right. */
static void
find_rows(Fill *fill, uint32_t first, uint32_t end)
{
    const Search *search = fill->search;
    int64_t floor = fill->strips[first].floor;
    memset(fill->from_left + first, 0, end - first + 1);
    memset(fill->to_right + first, 0, end - first + 1);
    fill->from_left[first] = fill->to_right[end] = true;
    for (uint32_t s = first; s < end; s++) {
        if (!fill->from_left[s])
            continue;
        if (may_stay_empty(fill, &fill->strips[s]))
            fill->from_left[s + 1] = true;
        for (uint32_t i = fill->starts[s]; i < fill->starts[s + 1]; i++) {
            if (may_lie(fill, i, floor))
                fill->from_left[search->buffers[i].last + 1] = true;
        }
    }
    for (uint32_t s = end; s-- > first;) {
        bool goes_on = fill->to_right[s + 1] && may_stay_empty(fill, &fill->strips[s]);
        for (uint32_t i = fill->starts[s]; i < fill->starts[s + 1] && !goes_on; i++)
            goes_on = may_lie(fill, i, floor) && fill->to_right[search->buffers[i].last + 1];
        fill->to_right[s] = goes_on;
    }
    fill->search->work += 2 * (end - first) + 2 * (fill->starts[end] - fill->starts[first]);
}

/* Excludes what is part of no row that fills the valley. False where there is no such row. */
static bool
filter_valley(Fill *fill, uint32_t first, uint32_t end, bool *changed)
{
    const Buffer *buffers = fill->search->buffers;
    int64_t floor = fill->strips[first].floor;
    find_rows(fill, first, end);
    if (!fill->from_left[end]) {
        uint32_t s = end;
        while (!fill->from_left[s])
            s--;
        count_failure(fill->search, s);
        return false;
    }
    for (uint32_t i = fill->starts[first]; i < fill->starts[end]; i++) {
        if (!may_lie(fill, i, floor) ||
            (fill->from_left[buffers[i].first] && fill->to_right[buffers[i].last + 1]))
            continue;
        exclude(fill, i);
        *changed = true;
    }
    return true;
}

static bool
filter(Fill *fill, const Piece *piece)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t s = piece->first, end; s <= piece->last; s = end) {
            end = run_end(fill, piece, s);
            if (is_valley(fill, piece, s, end) && !filter_valley(fill, s, end, &changed))
                return false;
        }
        fill->search->work += piece->last - piece->first + 1;
        if (changed && !settle(fill))
            return false;
    }
    return true;
}

static KilnPlacement solve(Fill *fill, const Piece *piece);

static KilnPlacement
solve_pieces(Fill *fill, const Piece *piece)
{
    const Buffer *buffers = fill->search->buffers;
    g_autofree uint32_t *rest = g_new(uint32_t, (size_t)piece->n + 1);
    uint32_t n = 0;
    for (uint32_t m = 0; m < piece->n; m++) {
        if (!fill->items[piece->members[m]].placed)
            rest[n++] = piece->members[m];
    }
    for (uint32_t begin = 0, end; begin < n; begin = end) {
        uint32_t reach;
        end = kiln_place_reach(buffers, rest, begin, n, &reach);
        Piece part = { rest + begin, end - begin, buffers[rest[begin]].first, reach };
        KilnPlacement found = solve(fill, &part);
        if (found != KILN_PLACED)
            return found;
    }
    return KILN_PLACED;
}

static KilnPlacement
solve(Fill *fill, const Piece *piece)
{
    if (fill->search->work > fill->search->budget)
        return KILN_PLACEMENT_UNDECIDED;
    uint64_t hash = hash_of(fill, piece);
    uint64_t *memory = &fill->failed[hash >> (64 - MEMORY_BITS)];
    if (*memory == hash) {
        fill->used_hash = true;
        return KILN_PLACEMENT_IMPOSSIBLE;
    }
    while (filter(fill, piece)) {
        uint32_t i = choose_buffer(fill, choose_strip(fill, piece));
        guint mark = fill->trail->len;
        put(fill, i);
        KilnPlacement found = settle(fill) ? solve_pieces(fill, piece) : KILN_PLACEMENT_IMPOSSIBLE;
        if (found == KILN_PLACED)
            return found;
        undo_to(fill, mark);
        if (found == KILN_PLACEMENT_UNDECIDED)
            return found;
        exclude(fill, i);
        if (!settle(fill))
            break;
    }
    *memory = hash;
    return KILN_PLACEMENT_IMPOSSIBLE;
}

/* --- the search --- */

static void
rate(Fill *fill, uint32_t turn)
{
    const Search *search = fill->search;
    for (uint32_t i = 0; i < search->n; i++) {
        const Buffer *buffer = &search->buffers[i];
        double width = (double)(buffer->life->last - buffer->life->first + 1);
        double size = (double)buffer->size;
        const double scores[N_ORDERS] = { width * size, width, size, width * size * size };
        double factor = turn < 2 * N_ORDERS ? 1 : kiln_place_disturbance(turn, i);
        fill->items[i].score = scores[turn / 2 % N_ORDERS] * factor;
        fill->items[i].kind = i;
        for (uint32_t k = i; k > 0 && search->buffers[k - 1].first == buffer->first; k--) {
            const Buffer *other = &search->buffers[k - 1];
            if (other->last == buffer->last && other->size == buffer->size)
                fill->items[i].kind = fill->items[k - 1].kind;
        }
    }
}

KilnPlacement
kiln_place_fill(Search *search, uint32_t turn, int64_t budget)
{
    Fill fill = { .search = search,
                  .items = g_new0(Item, search->n + 1),
                  .strips = g_new0(Strip, search->n_sections + 1),
                  .trail = g_array_new(FALSE, FALSE, sizeof(Entry)),
                  .dirty = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                  .failed = g_new0(uint64_t, (size_t)1 << MEMORY_BITS),
                  .taste = turn % N_TASTES,
                  .level_factor = turn % 2 ? 1 : LEVEL_FACTOR };
    g_autofree uint32_t *members = g_new(uint32_t, (size_t)search->n + 1);
    search->work = 0;
    search->budget = budget;
    rate(&fill, turn);
    fill.least = INT64_MAX;
    for (uint32_t i = 0; i < search->n; i++)
        fill.least = MIN(fill.least, search->buffers[i].size);
    for (uint32_t i = 0; i < search->n; i++)
        members[i] = i;
    for (uint32_t s = 0; s < search->n_sections; s++) {
        fill.strips[s].rest = search->sections[s].rest;
        g_array_append_val(fill.dirty, s);
    }
    fill.starts = g_new0(uint32_t, search->n_sections + 1);
    fill.from_left = g_new0(bool, search->n_sections + 1);
    fill.to_right = g_new0(bool, search->n_sections + 1);
    for (uint32_t i = 0; i < search->n; i++)
        fill.starts[search->buffers[i].first + 1]++;
    for (uint32_t s = 1; s <= search->n_sections; s++)
        fill.starts[s] += fill.starts[s - 1];
    Piece all = { members, search->n, 0, search->n_sections - 1 };
    KilnPlacement found = settle(&fill) ? solve_pieces(&fill, &all) : KILN_PLACEMENT_IMPOSSIBLE;
    if (found == KILN_PLACEMENT_IMPOSSIBLE && fill.used_hash)
        found = KILN_PLACEMENT_UNDECIDED;
    g_free(fill.items);
    g_free(fill.strips);
    g_free(fill.starts);
    g_free(fill.from_left);
    g_free(fill.to_right);
    g_free(fill.failed);
    g_array_unref(fill.trail);
    g_array_unref(fill.dirty);
    return found;
}
