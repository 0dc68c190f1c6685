/* SPDX-License-Identifier: Apache-2.0 */
/* close-loop-inductions: a carried integer that grows by the same in each iteration is computed
 * from the number of the iteration.
 *
 *     n   a                              n
 *     |   |                              |
 *     loop body(%i, %c, %x) {            loop body(%i, %c, %x) {
 *       y = gather(table, x)     =>        j = a + i · s
 *       z = add(x, s)                      y = gather(table, j)
 *       return c, z, y                     return c, add(j, s), y
 *     }                                  }
 *     |                                  a + n · s
 *
 *   close-induction   the next value is x + s, s + x or x - s, where s comes from around the loop
 *   close-counter     the next value is i + s or i, and the first one is what i = -1 would give
 *
 * Nothing reads the carried value then, and drop-loop-values removes it. Integers wrap, and so do
 * products and sums of them: the bits are the same for any number of iterations. Floats round, so
 * they stay. Values of more than MOST_ELEMENTS elements stay: one sum is cheaper there than a
 * product and a sum.
 *
 * The number of iterations is the limit of the loop where nothing else ends it. Where the body may
 * end it, a stacked result has a row for each iteration. A value that is read behind the loop stays
 * where neither says the number. A scan does not count its iterations, so its body must not read
 * the value.
 *
 * requires nothing, preserves nothing; class E. Runs behind hoist-from-loops, which moves constants
 * out of bodies, and in front of drop-loop-values. */
#include "graph/function.h"
#include "graph/module/flow_types.h"
#include "graph/op/flow.h"
#include "passes/pass.h"
#include "graph/module/by_name.h"
#include "passes/query/literal.h"
#include "passes/query/loop_view.h"
#include "passes/query/movement.h"

#include <string.h>

enum {
    MOST_ELEMENTS = 64
};

static const char rule[] = "close-induction";

/* Carried value @k of a loop. */
typedef struct {
    KilnPassContext *context;
    KilnLoopView loop;
    uint32_t k;
    KilnValue *start, *argument, *next, *result;
    KilnValue *step; /* NULL: 1 */
    const char *op;  /* add or sub */
    bool read;       /* by the body, for more than the next value */
} Induction;

/* --- questions --- */

/* The step where the next value is a sum or a difference with the argument. */
static bool
find_step(Induction *x)
{
    const KilnNode *update = x->next->def;
    const bool adds = kiln_node_is(update, "add");
    if ((!adds && !kiln_node_is(update, "sub")) || update->function != x->loop.body)
        return false;
    KilnValue *a = update->operands[0].value, *b = update->operands[1].value;
    x->op = adds ? "add" : "sub";
    x->step = NULL;
    if (a == x->argument)
        x->step = b;
    else if (b == x->argument && adds)
        x->step = a;
    return x->step != NULL;
}

/* The value follows the number of the iteration, one iteration behind. */
static bool
is_counter(Induction *x)
{
    const KilnValue *number = kiln_loop_number(&x->loop);
    const KilnNode *update = x->next->def;
    double first, added = 0;
    x->op = "add";
    x->step = NULL;
    if (!number || x->start->type.rank != 0 || !kiln_value_uniform(x->start, &first))
        return false;
    if (x->next != number) {
        if (!kiln_node_is(update, "add"))
            return false;
        const KilnValue *a = update->operands[0].value, *b = update->operands[1].value;
        if ((a != number || !kiln_value_uniform(b, &added)) &&
            (b != number || !kiln_value_uniform(a, &added)))
            return false;
    }
    return first == added - 1;
}

/* True where the body reads @x for more than its next value. */
static bool
body_reads(const Induction *x)
{
    const KilnNode *last = kiln_function_return(x->loop.body);
    kiln_foreach_use (use, x->argument) {
        if (use->user != x->next->def)
            return true;
    }
    if (!x->step)
        return false;
    kiln_foreach_use (use, x->next) {
        if (use->user != last || use->index != x->loop.asks + x->k)
            return x->argument->n_uses > 0;
    }
    return false;
}

static KilnValue *
read_stack(const KilnLoopView *loop)
{
    for (uint32_t r = loop->carried; loop->node->op == KILN_OP_loop && r < loop->node->n_results;
         r++) {
        if (loop->node->results[r].n_uses)
            return &loop->node->results[r];
    }
    return NULL;
}

static bool
knows_trips(const KilnLoopView *loop)
{
    return read_stack(loop) || (kiln_loop_counts(loop->node) &&
                                (loop->node->op == KILN_OP_scan || loop->node->operands[0].value));
}

static bool
is_index_like(const KilnType *type)
{
    const int64_t n = kiln_type_elements(type);
    return n >= 1 && n <= MOST_ELEMENTS;
}

static bool
may_close(Induction *x)
{
    KilnPassContext *context = x->context;
    if (!find_step(x) && !is_counter(x))
        return false;
    x->read = body_reads(x);
    if (!x->read && !x->result->n_uses)
        return false;
    const KilnType *type = &x->argument->type;
    PASS_GUARD(integers, kiln_dtype_is_integer(type->dtype) && kiln_dtype_bits(type->dtype) >= 8 &&
                             !type->quant);
    PASS_GUARD(same_step, !x->step || !kiln_loop_makes(&x->loop, x->step));
    PASS_GUARD(index_like, kiln_loop_keeps_type(&x->loop, x->k) && is_index_like(type));
    PASS_GUARD(counted, !x->read || kiln_loop_number(&x->loop));
    PASS_GUARD(trips_known, !x->result->n_uses || knows_trips(&x->loop));
    return true;
}

/* --- closed forms --- */

static KilnValue *
as_scalar(KilnNode *before, KilnValue *value, GError **error)
{
    const KilnType type = kiln_type_scalar(value->type.dtype);
    return value->type.rank == 0
               ? value
               : kiln_reshape_build(before->function, before, value, &type, error);
}

/* How often the body ran, in front of @before; NULL fails. */
static KilnValue *
build_trips(const KilnLoopView *loop, KilnNode *before, GError **error)
{
    const KilnAttrs_scan *scan =
        loop->node->op == KILN_OP_scan ? kiln_attrs(loop->node, scan) : NULL;
    KilnValue *of = scan ? kiln_loop_operand(loop, loop->carried) : read_stack(loop);
    const bool counts = !scan && kiln_loop_counts(loop->node) && loop->node->operands[0].value;
    if (counts) {
        KilnValue *limit = as_scalar(before, loop->node->operands[0].value, error);
        if (!limit)
            return NULL;
        KilnValue *zero =
            kiln_literal_build_splat(before->function, before, "zero", &limit->type, 0);
        return kiln_build_pair(before, "max", limit, zero, error);
    }
    const int axis =
        scan ? kiln_type_axis(&of->type, kiln_ints_at(scan->scan_input_axes, 0, 0)) : 0;
    const int64_t end = axis + 1 == of->type.rank ? G_MAXINT64 : axis + 1;
    const KilnNamed shape = { "shape",
                              { KILN_NAMED(INT, "start", axis), KILN_NAMED(INT, "end", end) } };
    KilnValue *dims = kiln_build_named(before, &shape, &of, 1, error);
    return dims ? as_scalar(before, dims, error) : NULL;
}

/* The value in iteration @number, an i64. NULL fails. */
static KilnValue *
build_closed(const Induction *x, KilnNode *before, KilnValue *number, GError **error)
{
    const KilnType *type = &x->argument->type;
    double step = 1, start;
    KilnValue *far = number;
    if (type->dtype != number->type.dtype) {
        const KilnNamed cast = { "cast", { KILN_NAMED(DTYPE, "to", type->dtype) } };
        far = kiln_build_named(before, &cast, &number, 1, error);
    }
    if (far && x->step && (!kiln_value_uniform(x->step, &step) || step != 1))
        far = kiln_build_pair(before, "mul", far, x->step, error);
    const bool from_zero = far && strcmp(x->op, "add") == 0 && kiln_type_equal(&far->type, type) &&
                           kiln_value_uniform(x->start, &start) && start == 0;
    return !far || from_zero ? far : kiln_build_pair(before, x->op, x->start, far, error);
}

static gboolean
close_one(const Induction *x, GError **error)
{
    KilnNode *behind = x->loop.node->next;
    if (x->read) {
        KilnValue *inside = build_closed(x, x->loop.body->first, kiln_loop_number(&x->loop), error);
        if (!inside)
            return FALSE;
        kiln_value_replace(x->argument, inside);
    }
    if (!x->result->n_uses)
        return TRUE;
    KilnValue *trips = build_trips(&x->loop, behind, error);
    KilnValue *last = trips ? build_closed(x, behind, trips, error) : NULL;
    if (last)
        kiln_value_replace(x->result, last);
    return last != NULL;
}

static gboolean
close_all(KilnPassContext *context, const KilnLoopView *loop, bool *changed, GError **error)
{
    Induction x = { .context = context, .loop = *loop };
    for (uint32_t k = 0; k < x.loop.carried; k++) {
        x.k = k;
        x.start = kiln_loop_operand(&x.loop, k);
        x.argument = kiln_loop_argument(&x.loop, k);
        x.next = kiln_loop_returned(&x.loop, k);
        x.result = &loop->node->results[k];
        if (!may_close(&x))
            continue;
        kiln_pass_note(context, x.step ? rule : "close-counter", "%s of %s", x.argument->name,
                       kiln_node_label(loop->node));
        *changed = true;
        if (!close_one(&x, error))
            return FALSE;
    }
    return TRUE;
}

GRAPH_PASS(close_loop_inductions);

gboolean
kiln_pass_close_loop_inductions(KilnFunction *function, KilnPassContext *context, bool *changed,
                                GError **error)
{
    return kiln_loops_visit(function, context, close_all, changed, error);
}
