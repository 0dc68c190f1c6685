/* SPDX-License-Identifier: Apache-2.0 */
/* order-instructions: the order of instructions in which the least bytes live at once.
 *
 *     expand @out %a, @in @x   (big)        expand @out %a, @in @x
 *     expand @out %b, @in @x   (big)        reduce_sum @out %c, @in %a
 *     reduce_sum @out %c, @in %a       =>   dealloc %a
 *     reduce_sum @out %d, @in %b            expand @out %b, @in @x
 *     dealloc %a                            reduce_sum @out %d, @in %b
 *     dealloc %b                            dealloc %b
 *
 * requires nothing, preserves nothing; class E: reads and writes of one buffer, views included, and
 * calls keep their order. Instructions that are before or after all others cut the function into
 * cells, whose orders do not depend on each other. A cell keeps its order unless another one has a
 * lower peak: depth-first, post-order, least increase first, and for small cells an exact search
 * over the sets of instructions that have run, within a number of nodes. The function stays as it
 * is unless its peak falls. Where one instruction alone needs as much as lives at the peak no order
 * helps: the statistics and the log say so. Allocs and views stand right before the first use then,
 * deallocs behind the last. */
#include "ir/plugin.h"
#include "passes/pass.h"

#include "ir/define.h"

#include <string.h>

static const char rule[] = "order";

enum {
    EXACT_MAX = 64,       /* instructions of a cell: bits of a set */
    EXACT_NODES = 1 << 14 /* per search */
};

typedef struct {
    int from, to;
} Edge;

/* Lists of numbers, one behind the other: those of i are items[start[i]] … items[start[i + 1]]. */
typedef struct {
    int *start, *items;
} Lists;

typedef struct {
    int n;              /* instructions that do work, numbered as they stand */
    KilnInstr **instrs; /* by number */
    int64_t *scratch;   /* by number */
    Lists after, before;
    Lists slots; /* by number: the allocs that it touches, each once */
    Lists users; /* by slot: the instructions that touch it */
    int n_slots;
    KilnBuffer **buffers; /* by slot */
    int64_t *sizes;       /* by slot */
    int *seen;            /* by slot: how many of its users have run */
    /* Of one cell, by number */
    int *waits;      /* instructions of the cell that must run first */
    int64_t *growth; /* bytes that running it now would add */
    int *rank;       /* where it stands in the order that is tried to be beaten */
} Order;

static int
count(const Lists *lists, int i)
{
    return lists->start[i + 1] - lists->start[i];
}

#define foreach_item(item, lists, i)                                                               \
    for (int at_##item = (lists)->start[i], item;                                                  \
         at_##item < (lists)->start[(i) + 1] && (item = (lists)->items[at_##item], true);          \
         at_##item++)

/* Of each pair the second under the first; in the order of @edges. */
static Lists
group_edges(const GArray *edges, int n, bool backwards)
{
    Lists lists = { g_new0(int, n + 2), g_new(int, edges->len + 1) };
    for (guint i = 0; i < edges->len; i++) {
        const Edge *edge = &g_array_index(edges, Edge, i);
        lists.start[(backwards ? edge->to : edge->from) + 2]++;
    }
    for (int i = 0; i < n; i++)
        lists.start[i + 2] += lists.start[i + 1];
    for (guint i = 0; i < edges->len; i++) {
        const Edge *edge = &g_array_index(edges, Edge, i);
        int key = backwards ? edge->to : edge->from;
        lists.items[lists.start[key + 1]++] = backwards ? edge->from : edge->to;
    }
    return lists;
}

static void
lists_free(Lists *lists)
{
    g_free(lists->start);
    g_free(lists->items);
}

/* --- what must run before what --- */

typedef struct {
    GArray *edges;
    int *writer;     /* by buffer id of an origin: the last that wrote it; -1: none */
    int *readers;    /* by buffer id: the last entry of the readers since then; -1: none */
    GArray *entries; /* Edge: reader and the entry before */
} Dependences;

static void
add_edge(Dependences *d, int from, int to)
{
    Edge edge = { from, to };
    if (from >= 0 && from != to)
        g_array_append_val(d->edges, edge);
}

static void
depend(Dependences *d, const KilnBufferUse *use, int number)
{
    uint32_t id = kiln_buffer_origin(use->buffer)->id;
    add_edge(d, d->writer[id], number);
    if (use->access == KILN_ACCESS_IN) {
        Edge entry = { number, d->readers[id] };
        d->readers[id] = (int)d->entries->len;
        g_array_append_val(d->entries, entry);
        return;
    }
    for (int at = d->readers[id]; at >= 0; at = g_array_index(d->entries, Edge, at).to)
        add_edge(d, g_array_index(d->entries, Edge, at).from, number);
    d->readers[id] = -1;
    d->writer[id] = number;
}

/* The definitions that were met, by number. */
typedef struct {
    uint32_t n;
    int *at;
} Defined;

/* What needs a dim that data decides stays behind its definition. Definitions keep their order. */
static void
depend_on_dims(Dependences *d, const KilnDefines *defines, const KilnInstr *instr, int number,
               Defined *latest)
{
    if (!defines)
        return;
    uint32_t stage = kiln_defines_stage_of_instr(defines, instr);
    if (instr->kind == KILN_INSTR_define)
        stage = MAX(stage, latest->n);
    if (stage > 0)
        add_edge(d, latest->at[stage - 1], number);
    if (instr->kind == KILN_INSTR_define)
        latest->at[latest->n++] = number;
}

static void
find_dependences(Order *order, const KilnIRFunction *function)
{
    guint n_buffers = function->buffers->len + 1;
    g_autofree int *writer = g_new(int, n_buffers), *readers = g_new(int, n_buffers);
    for (guint i = 0; i < n_buffers; i++)
        writer[i] = readers[i] = -1;
    Dependences d = { g_array_new(FALSE, FALSE, sizeof(Edge)), writer, readers,
                      g_array_new(FALSE, FALSE, sizeof(Edge)) };
    g_autoptr(KilnDefines) defines = kiln_defines_new(function);
    g_autofree int *at = g_new(int, defines ? defines->instrs->len + 1 : 1);
    Defined latest = { 0, at };
    int call = -1;
    for (int i = 0; i < order->n; i++) {
        const KilnInstr *instr = order->instrs[i];
        for (uint32_t k = 0; k < instr->n_operands; k++) {
            if (instr->operands[k].buffer)
                depend(&d, &instr->operands[k], i);
        }
        depend_on_dims(&d, defines, instr, i, &latest);
        if (kiln_instr_has_effect(instr)) {
            add_edge(&d, call, i);
            call = i;
        }
    }
    order->after = group_edges(d.edges, order->n, false);
    order->before = group_edges(d.edges, order->n, true);
    g_array_unref(d.edges);
    g_array_unref(d.entries);
}

/* --- what lives --- */

static void
find_slots(Order *order, const KilnIRFunction *function, const KilnMemoryPlan *plan)
{
    order->sizes = g_new0(int64_t, plan->n_lives + 1);
    order->buffers = g_new0(KilnBuffer *, plan->n_lives + 1);
    g_autofree int *slot_of = g_new0(int, function->buffers->len + 1);
    for (uint32_t i = 0; i < plan->n_lives; i++) {
        const KilnLife *life = &plan->lives[i];
        if (!life->buffer) {
            order->scratch[life->first] += life->size;
            continue;
        }
        order->buffers[order->n_slots] = life->buffer;
        order->sizes[order->n_slots] = life->size;
        slot_of[life->buffer->id] = order->n_slots++;
    }
    g_autoptr(GArray) edges = g_array_new(FALSE, FALSE, sizeof(Edge));
    g_autofree int *last_user = g_new(int, order->n_slots + 1);
    for (int i = 0; i < order->n_slots; i++)
        last_user[i] = -1;
    for (int i = 0; i < order->n; i++) {
        const KilnInstr *instr = order->instrs[i];
        for (uint32_t k = 0; k < instr->n_operands; k++) {
            KilnBuffer *buffer = instr->operands[k].buffer;
            const KilnBuffer *origin = buffer ? kiln_buffer_origin(buffer) : NULL;
            if (!origin || origin->kind != KILN_BUFFER_ALLOC || last_user[slot_of[origin->id]] == i)
                continue;
            Edge edge = { i, slot_of[origin->id] };
            last_user[edge.to] = i;
            g_array_append_val(edges, edge);
        }
    }
    order->slots = group_edges(edges, order->n, false);
    order->users = group_edges(edges, order->n_slots, true);
    order->seen = g_new0(int, order->n_slots + 1);
}

/* Runs @number: bytes that live while it does. */
static int64_t
run(Order *order, int number, int64_t *live)
{
    foreach_item(slot, &order->slots, number) *live +=
        order->seen[slot]++ == 0 ? order->sizes[slot] : 0;
    int64_t most = *live + order->scratch[number];
    foreach_item(slot, &order->slots, number) *live -=
        order->seen[slot] == count(&order->users, slot) ? order->sizes[slot] : 0;
    return most;
}

static void
undo(Order *order, int number, int64_t *live)
{
    foreach_item(slot, &order->slots, number)
    {
        *live += order->seen[slot] == count(&order->users, slot) ? order->sizes[slot] : 0;
        *live -= --order->seen[slot] == 0 ? order->sizes[slot] : 0;
    }
}

static int64_t
run_all(Order *order, const int *numbers, int n, int64_t live)
{
    int64_t most = 0;
    for (int i = 0; i < n; i++) {
        int64_t bytes = run(order, numbers[i], &live);
        most = MAX(most, bytes);
    }
    return most;
}

/* The peak of @numbers, as if they had not run. */
static int64_t
peak_of(Order *order, const int *numbers, int n, int64_t live)
{
    int64_t most = run_all(order, numbers, n, live), ignored = 0;
    for (int i = n - 1; i >= 0; i--)
        undo(order, numbers[i], &ignored);
    return most;
}

/* --- cells --- */

typedef struct {
    int first, n;   /* numbers of the cell in the given order */
    int64_t live;   /* bytes that live when it begins */
    int64_t bound;  /* no order of the function has a lower peak */
    int *best;      /* n numbers */
    int64_t peak;   /* of best */
    int64_t before; /* of the given order */
} Cell;

static bool
inside(const Cell *cell, int number)
{
    return number >= cell->first && number < cell->first + cell->n;
}

static void
start_cell(Order *order, const Cell *cell)
{
    for (int i = 0; i < cell->n; i++) {
        int number = cell->best[i];
        order->rank[number] = i;
        order->waits[number] = 0;
        foreach_item(earlier, &order->before, number) order->waits[number] += inside(cell, earlier);
    }
}

/* The newest that may run runs next. */
static void
depth_first(Order *order, const Cell *cell, int *numbers)
{
    g_autofree int *stack = g_new(int, cell->n);
    int height = 0, n = 0;
    start_cell(order, cell);
    for (int i = cell->n - 1; i >= 0; i--) {
        if (order->waits[cell->best[i]] == 0)
            stack[height++] = cell->best[i];
    }
    while (height > 0) {
        int number = stack[--height];
        numbers[n++] = number;
        foreach_item(later, &order->after, number)
        {
            if (inside(cell, later) && --order->waits[later] == 0)
                stack[height++] = later;
        }
    }
}

/* What nothing waits for, each behind all that it needs. */
static void
post_order(Order *order, const Cell *cell, int *numbers)
{
    g_autofree int *stack = g_new(int, cell->n), *next = g_new(int, cell->n);
    g_autofree bool *met = g_new0(bool, cell->n);
    int n = 0;
    start_cell(order, cell);
    for (int i = 0; i < cell->n; i++) {
        bool wanted = false;
        foreach_item(later, &order->after, cell->best[i]) wanted |= inside(cell, later);
        if (wanted)
            continue;
        int height = 0;
        stack[height] = cell->best[i];
        next[height++] = order->before.start[cell->best[i]];
        met[i] = true;
        while (height > 0) {
            int number = stack[height - 1];
            if (next[height - 1] == order->before.start[number + 1]) {
                numbers[n++] = number;
                height--;
                continue;
            }
            int earlier = order->before.items[next[height - 1]++];
            if (!inside(cell, earlier) || met[order->rank[earlier]])
                continue;
            met[order->rank[earlier]] = true;
            stack[height] = earlier;
            next[height++] = order->before.start[earlier];
        }
    }
}

/* --- least increase first --- */

static gint
compare_growth(gconstpointer a, gconstpointer b, gpointer data)
{
    const Order *order = data;
    int x = GPOINTER_TO_INT(a), y = GPOINTER_TO_INT(b);
    if (order->growth[x] != order->growth[y])
        return order->growth[x] < order->growth[y] ? -1 : 1;
    return order->rank[x] < order->rank[y] ? -1 : order->rank[x] > order->rank[y];
}

static void
lessen(Order *order, GTree *ready, int number, int64_t bytes)
{
    bool listed = g_tree_remove(ready, GINT_TO_POINTER(number));
    order->growth[number] -= bytes;
    if (listed)
        g_tree_insert(ready, GINT_TO_POINTER(number), NULL);
}

/* Who touches what @number made, or is the last to touch something, adds less from now on. */
static void
spread_growth(Order *order, const Cell *cell, GTree *ready, int number)
{
    foreach_item(slot, &order->slots, number)
    {
        bool born = order->seen[slot] == 1;
        bool one_left = order->seen[slot] + 1 == count(&order->users, slot);
        if (!born && !one_left)
            continue;
        foreach_item(user, &order->users, slot)
        {
            if (!inside(cell, user) || order->waits[user] < 0)
                continue;
            lessen(order, ready, user,
                   (born ? order->sizes[slot] : 0) + (one_left ? order->sizes[slot] : 0));
        }
    }
}

static void
least_increase(Order *order, const Cell *cell, int *numbers)
{
    GTree *ready = g_tree_new_full(compare_growth, order, NULL, NULL);
    int64_t live = 0;
    int n = 0;
    start_cell(order, cell);
    for (int i = 0; i < cell->n; i++) {
        int number = cell->best[i];
        order->growth[number] = 0;
        foreach_item(slot, &order->slots, number)
        {
            bool last = order->seen[slot] + 1 == count(&order->users, slot);
            order->growth[number] += order->seen[slot] == 0 ? order->sizes[slot] : 0;
            order->growth[number] -= last ? order->sizes[slot] : 0;
        }
        if (order->waits[number] == 0)
            g_tree_insert(ready, GINT_TO_POINTER(number), NULL);
    }
    while (g_tree_nnodes(ready) > 0) {
        int number = GPOINTER_TO_INT(g_tree_node_key(g_tree_node_first(ready)));
        g_tree_remove(ready, GINT_TO_POINTER(number));
        order->waits[number] = -1;
        numbers[n++] = number;
        run(order, number, &live);
        spread_growth(order, cell, ready, number);
        foreach_item(later, &order->after, number)
        {
            if (inside(cell, later) && --order->waits[later] == 0)
                g_tree_insert(ready, GINT_TO_POINTER(later), NULL);
        }
    }
    while (n > 0)
        undo(order, numbers[--n], &live);
    g_tree_unref(ready);
}

/* --- the exact search --- */

typedef struct {
    Order *order;
    const Cell *cell;
    GHashTable *tried; /* sets of instructions from which no order stays below */
    int64_t below;
    uint64_t needs[EXACT_MAX]; /* by number - first */
    int *numbers;
    int nodes;
} Search;

static bool search(Search *s, uint64_t done, int depth, int64_t live);

/* Runs @i next: 1 where an order below the bound was found, 0 where it runs without need for more
 * than before yet leads nowhere (so that nothing else does), -1 otherwise. */
static int
try_next(Search *s, uint64_t done, int depth, int64_t live, int i)
{
    int number = s->cell->first + i;
    int64_t after = live;
    bool fits = run(s->order, number, &after) < s->below;
    s->numbers[depth] = number;
    bool found = fits && search(s, done | (uint64_t)1 << i, depth + 1, after);
    bool free_of_cost = fits && after <= live;
    undo(s->order, number, &(int64_t){ 0 });
    return found ? 1 : free_of_cost ? 0 : -1;
}

static bool
search(Search *s, uint64_t done, int depth, int64_t live)
{
    if (depth == s->cell->n)
        return true;
    if (--s->nodes < 0 || g_hash_table_contains(s->tried, &done))
        return false;
    for (int k = 0; k < s->cell->n && s->nodes >= 0; k++) {
        int i = s->cell->best[k] - s->cell->first;
        if ((done >> i & 1) || (s->needs[i] & ~done))
            continue;
        int outcome = try_next(s, done, depth, live, i);
        if (outcome > 0)
            return true;
        if (outcome == 0)
            break;
    }
    g_hash_table_add(s->tried, g_memdup2(&done, sizeof done));
    return false;
}

/* An order of @cell with a lower peak than its best one; false where there is none or the nodes are
 * used up. */
static bool
search_cell(Order *order, const Cell *cell, int *numbers)
{
    if (cell->n > EXACT_MAX)
        return false;
    Search s = { .order = order, .cell = cell, .below = cell->peak, .numbers = numbers };
    s.nodes = EXACT_NODES;
    s.tried = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    for (int i = 0; i < cell->n; i++) {
        foreach_item(earlier, &order->before, cell->first + i)
        {
            if (inside(cell, earlier))
                s.needs[i] |= (uint64_t)1 << (earlier - cell->first);
        }
    }
    bool found = search(&s, 0, 0, cell->live);
    g_hash_table_unref(s.tried);
    return found;
}

/* --- the best order --- */

static bool
adopt(Order *order, Cell *cell, const int *numbers)
{
    int64_t peak = peak_of(order, numbers, cell->n, cell->live);
    if (peak >= cell->peak)
        return false;
    memcpy(cell->best, numbers, sizeof *numbers * (size_t)cell->n);
    cell->peak = peak;
    return true;
}

/* Until nothing is lower. */
static void
improve(Order *order, Cell *cell)
{
    g_autofree int *numbers = g_new(int, cell->n);
    bool lower = cell->n > 2;
    while (lower && cell->peak > cell->bound) {
        depth_first(order, cell, numbers);
        lower = adopt(order, cell, numbers);
        post_order(order, cell, numbers);
        lower |= adopt(order, cell, numbers);
        least_increase(order, cell, numbers);
        lower |= adopt(order, cell, numbers);
        if (!lower && search_cell(order, cell, numbers))
            lower = adopt(order, cell, numbers);
    }
}

/* Whether every other instruction runs before or after it, whatever the order. */
static bool *
find_cuts(const Order *order)
{
    bool *cuts = g_new0(bool, order->n + 1);
    int latest = -1, earliest = order->n;
    for (int i = 0; i < order->n; i++) {
        int first = order->n;
        cuts[i] = latest <= i;
        foreach_item(later, &order->after, i) first = MIN(first, later);
        latest = MAX(latest, first);
    }
    for (int i = order->n - 1; i >= 0; i--) {
        int last = -1;
        cuts[i] &= earliest >= i;
        foreach_item(earlier, &order->before, i) last = MAX(last, earlier);
        earliest = MIN(earliest, last);
    }
    return cuts;
}

/* The best order of each cell; the peak of all. */
static int64_t
improve_cells(Order *order, GArray *cells, int *numbers, int64_t bound)
{
    g_autofree bool *cuts = find_cuts(order);
    int64_t live = 0, peak = 0;
    for (int first = 0, end; first < order->n; first = end) {
        end = first + 1;
        while (end < order->n && !cuts[end - 1])
            end++;
        Cell cell = { .first = first, .n = end - first, .live = live, .bound = bound };
        cell.best = numbers + first;
        cell.peak = cell.before = peak_of(order, cell.best, cell.n, live);
        improve(order, &cell);
        for (int i = 0; i < cell.n; i++)
            run(order, first + i, &live);
        peak = MAX(peak, cell.peak);
        g_array_append_val(cells, cell);
    }
    return peak;
}

/* --- moving --- */

/* Each alloc goes before its first use with all its views behind it, as they stood; its dealloc
 * behind the last use. What nothing uses stays in front. */
static void
rearrange(const Order *order, KilnIRFunction *function, const int *numbers)
{
    g_autoptr(GArray) edges = g_array_new(FALSE, FALSE, sizeof(Edge));
    g_autoptr(GPtrArray) views = g_ptr_array_new();
    g_autofree int *slot_of = g_new0(int, function->buffers->len + 1);
    g_autofree KilnInstr **deallocs = g_new0(KilnInstr *, order->n_slots + 1);
    for (int i = 0; i < order->n_slots; i++)
        slot_of[order->buffers[i]->id] = i + 1;
    kiln_foreach_instr (instr, function) {
        KilnBuffer *named = kiln_instr_is_bookkeeping(instr) ? instr->operands[0].buffer : NULL;
        int slot = named ? slot_of[kiln_buffer_origin(named)->id] - 1 : -1;
        if (slot >= 0 && instr->kind == KILN_INSTR_dealloc)
            deallocs[slot] = instr;
        Edge edge = { slot, (int)views->len };
        if (slot < 0 || instr->kind != KILN_INSTR_view)
            continue;
        g_array_append_val(edges, edge);
        g_ptr_array_add(views, instr);
    }
    Lists views_of = group_edges(edges, order->n_slots, false);
    g_autofree int *seen = g_new0(int, order->n_slots + 1);
    for (int i = 0; i < order->n; i++) {
        foreach_item(slot, &order->slots, numbers[i])
        {
            if (seen[slot]++ > 0)
                continue;
            kiln_instr_move(order->buffers[slot]->def, NULL);
            foreach_item(view, &views_of, slot)
                kiln_instr_move(g_ptr_array_index(views, view), NULL);
        }
        kiln_instr_move(order->instrs[numbers[i]], NULL);
        foreach_item(slot, &order->slots, numbers[i])
        {
            if (seen[slot] == count(&order->users, slot) && deallocs[slot])
                kiln_instr_move(deallocs[slot], NULL);
        }
    }
    lists_free(&views_of);
}

/* @again: it has been done before, and need not say why it is not. */
static bool
reorder(Order *order, KilnIRFunction *function, KilnPassContext *context,
        const KilnMemoryPlan *plan, bool again)
{
    g_autofree int *numbers = g_new(int, order->n + 1);
    for (int i = 0; i < order->n; i++)
        numbers[i] = i;
    g_autoptr(GArray) cells = g_array_new(FALSE, FALSE, sizeof(Cell));
    int64_t peak = improve_cells(order, cells, numbers, plan->lb_node);
    if (again && peak >= plan->lb_live)
        return false;
    PASS_GUARD(peak_falls, peak < plan->lb_live);
    for (guint i = 0; i < cells->len; i++) {
        const Cell *cell = &g_array_index(cells, Cell, i);
        for (int k = 0; k < cell->n && cell->before <= peak; k++)
            cell->best[k] = cell->first + k; /* it is not what the peak hangs on */
    }
    rearrange(order, function, numbers);
    kiln_pass_note(context, rule,
                   "%" G_GINT64_FORMAT " bytes live at once instead of %" G_GINT64_FORMAT, peak,
                   plan->lb_live);
    return true;
}

static bool
order_once(KilnIRFunction *function, KilnPassContext *context, bool again)
{
    g_autoptr(KilnMemoryPlan) plan = kiln_liveness(function, kiln_pass_target(context), 1);
    if (plan->lb_live == plan->lb_node || plan->sum == INT64_MAX) {
        if (again)
            return false;
        kiln_pass_refuse(context, rule, "no_order_is_better");
        kiln_pass_remark(context, rule,
                         "no order is better: one instruction needs the %" G_GINT64_FORMAT
                         " bytes that live at the peak",
                         plan->lb_node);
        return false;
    }
    Order order = { .instrs = g_new0(KilnInstr *, plan->n_steps + 1),
                    .scratch = g_new0(int64_t, plan->n_steps + 1) };
    kiln_foreach_instr (instr, function) {
        if (!kiln_instr_is_bookkeeping(instr))
            order.instrs[order.n++] = instr;
    }
    order.waits = g_new0(int, order.n + 1);
    order.rank = g_new0(int, order.n + 1);
    order.growth = g_new0(int64_t, order.n + 1);
    find_dependences(&order, function);
    find_slots(&order, function, plan);
    bool changed = reorder(&order, function, context, plan, again);
    Lists *lists[] = { &order.after, &order.before, &order.slots, &order.users };
    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++)
        lists_free(lists[i]);
    void *arrays[] = { order.instrs, order.scratch, order.sizes,  order.buffers,
                       order.seen,   order.waits,   order.growth, order.rank };
    for (size_t i = 0; i < G_N_ELEMENTS(arrays); i++)
        g_free(arrays[i]);
    return changed;
}

/* Until nothing is lower, so that a second run finds nothing either: where an order stands, others
 * are found than where it was found, for equals are taken as they stand. */
IR_PASS(order_instructions);

gboolean
kiln_pass_order_instructions(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                             GError **error)
{
    (void)error;
    *changed = false;
    while (order_once(function, context, *changed))
        *changed = true;
    return TRUE;
}
