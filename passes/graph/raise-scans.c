/* SPDX-License-Identifier: Apache-2.0 */
/* raise-scans: what a scan or counted loop computes step by step is computed by one operator.
 *
 *     s0  x: f32[n,4]                     s0  x
 *      |  |                                |  |
 *     scan body(%s, %row) {             unsqueeze
 *       t = add(s, row)        =>          |  |
 *       return t, t                       concat
 *     }                                     |
 *      |  |                              cum_sum
 *                                         / \
 *                                    last    [1:]
 *
 *     scan body(%row) {
 *       t = exp(row)           =>        exp(x)
 *       return t
 *     }
 *
 *   raise-running   a state that each iteration adds to, or multiplies
 *   raise-map       a stacked result of element-wise operators and products of matrices
 *
 * What is added or multiplied lifts: it is computed for all iterations at once, from operands that
 * are scanned, from rows that a loop gathers by its number, and from what comes from around
 * (passes/query/lift.h). So do results that read the state. A state goes only if all results that
 * are left do without it. A state that begins with the neutral number needs no concat. A sum of
 * which only the last value is read is a `reduce_sum`.
 *
 * A value of all iterations may be `max-growth` bytes bigger than all that the loop reads and
 * gives. Sums of outer products stay in their loop, and so do rows that a product makes smaller
 * again.
 *
 * Running numbers keep the order of the operands: rows of an operand that is scanned backwards are
 * taken from the last one on. `reduce_sum` may add in another order. Kernels keep running numbers
 * of floats in double, and the loop rounds each of them. So a float that leaves its range on the
 * way, or vanishes, may come back here. Integers wrap, and keep their bits. Element-wise operators
 * keep theirs.
 *
 * requires nothing, preserves nothing; class U. Runs behind close-loop-inductions, in front of
 * unroll-short-loops. drop-loop-values removes states and loops that nothing reads any more. */
#include "graph/function.h"
#include "graph/module/flow_types.h"
#include "passes/pass.h"
#include "graph/module/by_name.h"
#include "passes/query/lift.h"
#include "passes/query/literal.h"
#include "passes/query/loop_view.h"
#include "passes/query/movement.h"

#include <math.h>

#define OPTIONS(OPTION, CHOICE) OPTION(INT, max_growth, 1048576)
PASS_OPTIONS(raise_scans, OPTIONS);

/* State @k of a loop. */
typedef struct {
    KilnPassContext *context;
    const KilnLoopView *loop;
    KilnLift *lift;
    uint32_t k;
    bool product; /* not a sum */
    KilnValue *start, *argument, *next, *result;
    KilnValue *term; /* of the body: what an iteration adds */
} Running;

/* --- running sums and products --- */

static bool
find_term(Running *x)
{
    const KilnNode *update = x->next->def;
    x->product = kiln_node_is(update, "mul");
    if ((!x->product && !kiln_node_is(update, "add")) || update->function != x->loop->body)
        return false;
    KilnValue *a = update->operands[0].value, *b = update->operands[1].value;
    x->term = a == x->argument ? b : b == x->argument ? a : NULL;
    return x->term != NULL;
}

static bool
has_kernel(KilnDType dtype)
{
    return dtype == KILN_DTYPE_f32 || dtype == KILN_DTYPE_f64 || dtype == KILN_DTYPE_i32 ||
           dtype == KILN_DTYPE_i64 || dtype == KILN_DTYPE_u32 || dtype == KILN_DTYPE_u64;
}

static bool
may_run(const Running *x)
{
    static const char rule[] = "raise-running";
    KilnPassContext *context = x->context;
    const KilnType *type = &x->argument->type;
    PASS_GUARD(dtype, has_kernel(type->dtype) && !type->quant);
    PASS_GUARD(same_shape,
               kiln_loop_keeps_type(x->loop, x->k) && kiln_type_equal(&x->term->type, type));
    return true;
}

/* Rows [@begin, @end) of @value. */
static KilnValue *
build_rows(KilnNode *before, KilnValue *value, int64_t begin, int64_t end, GError **error)
{
    const int64_t axis = 0;
    KilnFunction *function = before->function;
    KilnValue *operands[] = { value, kiln_build_ints(function, before, &begin, 1),
                              kiln_build_ints(function, before, &end, 1),
                              kiln_build_ints(function, before, &axis, 1) };
    return kiln_build_named(before, &(KilnNamed){ .op = "slice" }, operands, G_N_ELEMENTS(operands),
                            error);
}

static KilnValue *
build_running(const Running *x, KilnValue *rows, bool exclusive, GError **error)
{
    KilnNode *before = x->loop->node;
    const KilnType scalar = kiln_type_scalar(KILN_DTYPE_i64);
    const KilnNamed running = { x->product ? "cum_prod" : "cum_sum",
                                { KILN_NAMED(BOOL, "exclusive", exclusive),
                                  KILN_NAMED(BOOL, "reverse", x->lift->reverse) } };
    KilnValue *operands[] = { rows, kiln_literal_build_splat(before->function, before, "axis",
                                                             &scalar, 0) };
    return kiln_build_named(before, &running, operands, 2, error);
}

/* @rows with the first value of the state in front of what comes first. */
static KilnValue *
build_begun(const Running *x, KilnValue *rows, GError **error)
{
    KilnNode *before = x->loop->node;
    KilnValue *first = kiln_build_along(before, "unsqueeze", x->start, 0, error);
    KilnValue *forward[] = { first, rows }, *backward[] = { rows, first };
    return first ? kiln_join_build(before->function, before, x->lift->reverse ? backward : forward,
                                   2, 0, error)
                 : NULL;
}

/* True where the state begins with the number that changes nothing. */
static bool
begins_neutral(const Running *x)
{
    double number;
    return kiln_value_uniform(x->start, &number) && number == (x->product ? 1 : 0) &&
           !signbit(number);
}

/* Only the last value of the state is read. */
static bool
is_total(const Running *x)
{
    const KilnNode *node = x->loop->node;
    g_autoptr(GHashTable) readers = kiln_loop_readers(x->loop, x->k);
    for (uint32_t r = 0; r < node->n_results; r++) {
        const bool counts = r < x->loop->carried ? r != x->k : node->results[r].n_uses > 0;
        if (counts && g_hash_table_contains(readers, kiln_loop_returned(x->loop, r)))
            return false;
    }
    return !x->product;
}

static bool
build_total(const Running *x, KilnValue *rows, GError **error)
{
    const int64_t axis = 0;
    KilnNode *before = x->loop->node;
    const KilnNamed total = { "reduce_sum", { KILN_NAMED(BOOL, "keepdims", false) } };
    KilnValue *operands[] = { begins_neutral(x) ? rows : build_begun(x, rows, error),
                              kiln_build_ints(before->function, before, &axis, 1) };
    KilnValue *sum = operands[0] ? kiln_build_named(before, &total, operands, 2, error) : NULL;
    if (sum)
        kiln_value_replace(x->result, sum);
    return sum != NULL;
}

/* Gives the state before and after each iteration to the lift. False fails. */
static bool
build_states(const Running *x, KilnValue *rows, GError **error)
{
    KilnNode *before = x->loop->node;
    const bool last = x->result->n_uses > 0, reverse = x->lift->reverse;
    const bool plain = begins_neutral(x) && (!last || kiln_loop_runs(before));
    KilnValue *all = plain ? rows : build_begun(x, rows, error);
    KilnValue *running = all ? build_running(x, all, false, error) : NULL;
    KilnValue *after = running, *ahead = NULL;
    if (running && plain) {
        ahead = build_running(x, rows, true, error);
    } else if (running) {
        KilnValue *head = build_rows(before, running, 0, -1, error);
        KilnValue *tail = build_rows(before, running, 1, G_MAXINT64, error);
        after = reverse ? head : tail;
        ahead = reverse ? tail : head;
    }
    if (!after || !ahead)
        return false;
    kiln_lift_give(x->lift, x->next, after);
    kiln_lift_give(x->lift, x->argument, ahead);
    if (!last)
        return true;
    KilnValue *row = build_rows(before, running, reverse ? 0 : -1, reverse ? 1 : G_MAXINT64, error);
    KilnValue *end = row ? kiln_build_along(before, "squeeze", row, 0, error) : NULL;
    if (end)
        kiln_value_replace(x->result, end);
    return end != NULL;
}

/* --- results --- */

/* Nodes that were built in front of @node, behind @mark, and that nothing reads. */
static void
drop_unread(KilnNode *node, const KilnNode *mark)
{
    for (KilnNode *at = node->previous, *previous; at && at != mark; at = previous) {
        previous = at->previous;
        if (kiln_node_is_dead(at))
            kiln_node_remove(at);
    }
}

static gboolean
raise_state(const Running *x, GError **error)
{
    KilnValue *rows = kiln_lift_build(x->lift, x->term, error);
    return rows && (is_total(x) ? build_total(x, rows, error) : build_states(x, rows, error));
}

/* --- states that go together --- */

/* The states of a loop that are sums or products: Running. @only: this one; below 0: all. */
static GArray *
find_states(KilnPassContext *context, const KilnLoopView *loop, KilnLift *lift, int64_t only)
{
    GArray *states = g_array_new(FALSE, FALSE, sizeof(Running));
    for (uint32_t k = 0; k < loop->carried; k++) {
        Running x = { .context = context,
                      .loop = loop,
                      .lift = lift,
                      .k = k,
                      .start = kiln_loop_operand(loop, k),
                      .argument = kiln_loop_argument(loop, k),
                      .next = kiln_loop_returned(loop, k),
                      .result = &loop->node->results[k] };
        if ((only < 0 || only == k) && find_term(&x) && may_run(&x))
            g_array_append_val(states, x);
    }
    return states;
}

/* Moves those whose terms lift to the front, in an order in which they do. Returns their number. */
static guint
order_states(GArray *states, KilnLift *lift)
{
    guint n = 0;
    for (guint i = 0; i < states->len;) {
        Running *x = &g_array_index(states, Running, i), *to = &g_array_index(states, Running, n);
        if (i < n || !kiln_lift_can(lift, x->term)) {
            i++;
            continue;
        }
        const Running found = *x;
        *x = *to;
        *to = found;
        kiln_lift_assume(lift, found.argument, found.next);
        i = ++n; /* terms that did not lift may do so now */
    }
    return n;
}

/* What lifts may be bigger than all that the loop reads and gives: outer products of which a sum is
 * read. */
static bool
is_small(KilnPassContext *context, const KilnLoopView *loop, double bytes)
{
    const Options *options = kiln_pass_options(context);
    return bytes <= kiln_loop_bytes(loop) + (double)options->max_growth;
}

static double
bytes_of(const GArray *states, guint n, const KilnLift *lift)
{
    double most = 0;
    for (guint i = 0; i < n; i++) {
        const Running *x = &g_array_index(states, Running, i);
        const KilnType type = kiln_lift_type(lift, x->argument);
        most = MAX(most, kiln_likely_bytes(&type));
        most = MAX(most, kiln_lift_bytes(lift, x->term));
    }
    return most;
}

static bool
may_raise(KilnPassContext *context, GArray *states, guint n, const KilnLift *lift)
{
    static const char rule[] = "raise-running";
    g_autofree uint32_t *ids = g_new0(uint32_t, n + 1);
    bool read = false;
    for (guint i = 0; i < n; i++) {
        ids[i] = g_array_index(states, Running, i).k;
        read |= kiln_lift_is_read(lift, ids[i]);
    }
    if (!read)
        return false;
    PASS_GUARD(others_do_without, !kiln_lift_leaves_need(lift, ids, n));
    PASS_GUARD(states_growth, is_small(context, lift->loop, bytes_of(states, n, lift)));
    return true;
}

/* *@out_n: the number of states that were looked at. */
static gboolean
raise_together(KilnPassContext *context, const KilnLoopView *loop, int64_t only, guint *out_n,
               bool *changed, GError **error)
{
    const KilnNode *mark = loop->node->previous;
    g_auto(KilnLift) lift = { 0 };
    kiln_lift_init(&lift, loop, kiln_loop_scan_reverse(loop));
    g_autoptr(GArray) states = find_states(context, loop, &lift, only);
    const guint n = order_states(states, &lift);
    *out_n = n;
    if (!n || !may_raise(context, states, n, &lift))
        return TRUE;
    *out_n = 0;
    *changed = true;
    for (guint i = 0; i < n; i++) {
        const Running *x = &g_array_index(states, Running, i);
        kiln_pass_note(context, "raise-running", "%s of %s", x->argument->name,
                       kiln_node_label(loop->node));
        if (!raise_state(x, error))
            return FALSE;
    }
    for (guint i = 0; i < n; i++) {
        if (!kiln_lift_replace_stacks(&lift, g_array_index(states, Running, i).k, error))
            return FALSE;
    }
    drop_unread(loop->node, mark);
    return TRUE;
}

/* All states at once, for results may read several; else each of them. */
static gboolean
raise_states(KilnPassContext *context, const KilnLoopView *loop, bool *changed, GError **error)
{
    guint n, ignored;
    if (!raise_together(context, loop, -1, &n, changed, error))
        return FALSE;
    for (uint32_t k = 0; n > 1 && k < loop->carried; k++) {
        if (!raise_together(context, loop, k, &ignored, changed, error))
            return FALSE;
    }
    return TRUE;
}

/* --- maps --- */

static bool
may_lift(KilnPassContext *context, const KilnLoopView *loop, const KilnLift *lift, uint32_t r)
{
    static const char rule[] = "raise-map";
    const KilnValue *value = kiln_loop_returned(loop, r);
    if (!loop->node->results[r].n_uses || !kiln_loop_makes(loop, value))
        return false;
    PASS_GUARD(lifts, kiln_lift_can_stack(lift, r));
    PASS_GUARD(for_the_stack, !value->def || value->n_uses == 1);
    PASS_GUARD(map_growth,
               is_small(context, loop, kiln_lift_bytes(lift, kiln_loop_returned(loop, r))));
    kiln_pass_note(context, rule, "%s of %s", value->name, kiln_node_label(loop->node));
    return true;
}

static gboolean
raise_maps(KilnPassContext *context, const KilnLoopView *loop, bool *changed, GError **error)
{
    for (uint32_t r = loop->carried; r < loop->node->n_results; r++) {
        g_auto(KilnLift) lift = { 0 };
        kiln_lift_init(&lift, loop, kiln_loop_stack_reverse(loop, r));
        if (!may_lift(context, loop, &lift, r))
            continue;
        *changed = true;
        if (!kiln_lift_replace_stack(&lift, r, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
raise_all(KilnPassContext *context, const KilnLoopView *loop, bool *changed, GError **error)
{
    return raise_states(context, loop, changed, error) && raise_maps(context, loop, changed, error);
}

GRAPH_PASS(raise_scans);

gboolean
kiln_pass_raise_scans(KilnFunction *function, KilnPassContext *context, bool *changed,
                      GError **error)
{
    return kiln_loops_visit(function, context, raise_all, changed, error);
}
