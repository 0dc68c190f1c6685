/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of rewrite rules: a worklist of nodes, and per node the rules whose root is its op.
 *
 * A rewrite can only enable others near it: at readers of what it built or replaced, as far up as
 * the deepest pattern reaches, and at the one reader left of a value that lost the others. These
 * go back on the list, so that a pass costs what it changes. Which nodes a rewrite built is seen
 * from their ids; what died is removed here, never by a rewrite. */
#include "graph/base/budget.h"
#include "graph/module/sweep.h"
#include "passes/context/context.h"
#include "passes/rule.h"
#include "passes/rules/pattern.h"

#include <string.h>

enum {
    REWRITES_PER_NODE = 64,
    REWRITES_MORE = 1024,
};

/* Of a node. */
enum {
    UNSEEN,
    QUEUED,
    SEEN,
};

typedef struct {
    KilnFunction *function;
    const KilnRule *rules;
    KilnPattern **patterns; /* by rule */
    GArray *by_op;          /* uint32_t: numbers of rules, grouped by root op, in rule order */
    uint32_t start[KILN_OP_END + 1];
    uint32_t depth;   /* of the deepest pattern */
    GPtrArray *queue; /* KilnNode*; read from `head` on */
    guint head;
    GByteArray *state; /* by node id */
    GPtrArray *lost;   /* KilnValue*: lost a reader in the current rewrite */
    uint64_t rewrites, limit;
    KilnMatch match;
    bool changed;
} Driver;

/* --- rules by op --- */

static gboolean
compile(Driver *driver, uint32_t n, GError **error)
{
    uint32_t slots = 0;
    KilnTerm any = { 0 }; /* has the ops of all roots */
    driver->patterns = g_new0(KilnPattern *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        driver->patterns[i] = kiln_pattern_parse(driver->rules[i].pattern, error);
        if (!driver->patterns[i]) {
            kiln_prefix_error(error, "rule %s: ", driver->rules[i].name);
            return FALSE;
        }
        slots = MAX(slots, driver->patterns[i]->n_slots);
        driver->depth = MAX(driver->depth, driver->patterns[i]->depth);
        for (uint32_t w = 0; w < KILN_OP_WORDS; w++)
            any.ops[w] |= driver->patterns[i]->terms[0].ops[w];
    }
    driver->match.values = g_new0(KilnValue *, slots + 1);
    driver->by_op = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (uint32_t op = 0; op < KILN_OP_END; op++) {
        driver->start[op] = driver->by_op->len;
        for (uint32_t i = 0; kiln_term_has_op(&any, op) && i < n; i++) {
            if (kiln_term_has_op(&driver->patterns[i]->terms[0], op))
                g_array_append_val(driver->by_op, i);
        }
    }
    driver->start[KILN_OP_END] = driver->by_op->len;
    return TRUE;
}

static void
driver_clear(Driver *driver, uint32_t n)
{
    for (uint32_t i = 0; driver->patterns && i < n; i++)
        kiln_pattern_free(driver->patterns[i]);
    g_free(driver->patterns);
    g_free(driver->match.values);
    g_clear_pointer(&driver->by_op, g_array_unref);
    g_ptr_array_unref(driver->match.touched);
    g_ptr_array_unref(driver->queue);
    g_ptr_array_unref(driver->lost);
    g_byte_array_unref(driver->state);
}

/* --- the worklist --- */

static bool
has_rules(const Driver *driver, KilnOp op)
{
    return driver->start[op] != driver->start[op + 1];
}

/* Room for nodes that rewrites make. */
static void
grow_state(Driver *driver, uint32_t id)
{
    guint old = driver->state->len;
    g_byte_array_set_size(driver->state, MAX(id + 1, old * 2));
    memset(driver->state->data + old, UNSEEN, driver->state->len - old);
}

static void
push(Driver *driver, KilnNode *node)
{
    if (!has_rules(driver, node->op) || node->function != driver->function ||
        !kiln_node_is_linked(node))
        return;
    if (node->id >= driver->state->len)
        grow_state(driver, node->id);
    if (driver->state->data[node->id] == QUEUED)
        return;
    driver->state->data[node->id] = QUEUED;
    g_ptr_array_add(driver->queue, node);
}

static KilnNode *
pop(Driver *driver)
{
    KilnNode *node = g_ptr_array_index(driver->queue, driver->head++);
    driver->state->data[node->id] = SEEN;
    if (driver->head >= 1024 && driver->head * 2 > driver->queue->len) {
        g_ptr_array_remove_range(driver->queue, 0, driver->head);
        driver->head = 0;
    }
    return node;
}

/* @node and its readers, up to @levels steps. */
static void
push_with_readers(Driver *driver, KilnNode *node, uint32_t levels)
{
    push(driver, node);
    if (levels == 0)
        return;
    for (uint32_t i = 0; i < node->n_results; i++) {
        kiln_foreach_use (use, &node->results[i])
            push_with_readers(driver, use->user, levels - 1);
    }
}

static void
push_operand_defs(Driver *driver, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && value->def)
            push(driver, value->def);
    }
}

/* --- around a rewrite --- */

/* Removes @node and what only it read, noting whose readers became fewer. */
static void
remove_dead(Driver *driver, KilnNode *node)
{
    g_autoptr(GPtrArray) work = g_ptr_array_new();
    g_ptr_array_add(work, node);
    while (work->len) {
        KilnNode *top = g_ptr_array_remove_index(work, work->len - 1);
        if (top->function != driver->function || !kiln_node_is_linked(top) ||
            !kiln_node_is_dead(top))
            continue;
        for (uint32_t i = 0; i < top->n_operands; i++) {
            KilnValue *value = top->operands[i].value;
            if (!value)
                continue;
            g_ptr_array_add(driver->lost, value);
            if (value->def)
                g_ptr_array_add(work, value->def);
        }
        kiln_node_remove(top);
    }
}

/* What a rewrite may leave behind is measured from here. */
typedef struct {
    uint32_t next_id;
    guint n_constants;
} Mark;

/* Nodes with ids from @mark on, in list order. They stand right before the root unless the rewrite
 * chose another place. */
static GPtrArray *
new_nodes(const Driver *driver, const KilnNode *root, Mark mark)
{
    KilnFunction *function = driver->function;
    uint32_t wanted = function->next_id - mark.next_id;
    GPtrArray *nodes = g_ptr_array_new();
    const KilnNode *first = root;
    for (KilnNode *node = root->previous; node && node->id >= mark.next_id; node = node->previous)
        first = node;
    for (const KilnNode *node = first; node != root; node = node->next)
        g_ptr_array_add(nodes, (KilnNode *)node);
    if (nodes->len == wanted)
        return nodes;
    g_ptr_array_set_size(nodes, 0);
    kiln_foreach_node (node, function) {
        if (node->id >= mark.next_id)
            g_ptr_array_add(nodes, node);
    }
    return nodes;
}

/* A rewrite that was refused half-way has left nodes and constants that nothing reads. */
static void
undo(Driver *driver, const KilnNode *root, Mark mark)
{
    KilnModule *module = driver->function->module;
    if (driver->function->next_id != mark.next_id) {
        g_autoptr(GPtrArray) nodes = new_nodes(driver, root, mark);
        for (guint i = nodes->len; i-- > 0;)
            remove_dead(driver, g_ptr_array_index(nodes, i));
        g_ptr_array_set_size(driver->lost, 0);
    }
    if (module->constants->len == mark.n_constants)
        return;
    g_autofree bool *remove = g_new0(bool, module->constants->len);
    for (guint i = mark.n_constants; i < module->constants->len; i++)
        remove[i] = true;
    kiln_module_remove_constants(module, remove);
}

static void
requeue(Driver *driver, KilnNode *root, Mark mark)
{
    g_autoptr(GPtrArray) nodes = new_nodes(driver, root, mark);
    GPtrArray *touched = driver->match.touched;
    for (guint i = 0; i < touched->len; i++)
        remove_dead(driver, g_ptr_array_index(touched, i));
    remove_dead(driver, root);
    for (guint i = 0; i < nodes->len; i++) {
        KilnNode *node = g_ptr_array_index(nodes, i);
        if (!kiln_node_is_linked(node))
            continue;
        push_with_readers(driver, node, driver->depth - 1);
        push_operand_defs(driver, node);
    }
    for (guint i = 0; i < touched->len; i++)
        push_with_readers(driver, g_ptr_array_index(touched, i), driver->depth - 1);
    for (guint i = 0; i < driver->lost->len; i++) {
        KilnValue *value = g_ptr_array_index(driver->lost, i);
        if (value->def)
            push(driver, value->def);
        if (value->n_uses == 1)
            push_with_readers(driver, value->first_use->user, driver->depth - 1);
    }
    if (kiln_node_is_linked(root))
        push_with_readers(driver, root, driver->depth - 1);
}

/* --- rewriting --- */

static bool
is_allowed(const Driver *driver, const KilnRule *rule)
{
    if (kiln_pass_allows(driver->match.context, rule->flags) &&
        (rule->numerics < KILN_NUMERICS_QS || rule->flags))
        return true;
    kiln_pass_refuse(driver->match.context, rule->name, "flags");
    return false;
}

/* Whether @node would have been passed over where @pattern matches: for an assertion. */
G_GNUC_UNUSED static bool
is_overlooked(const KilnPattern *pattern, const KilnNode *node)
{
    const KilnNodeOrder *order = &node->function->order;
    uint32_t at = order->at[node->id];
    return at < order->n && order->entries[at].node == node &&
           !kiln_pattern_may_match(pattern, &order->entries[at]);
}

static bool
match_at(Driver *driver, const KilnPattern *pattern, KilnNode *node)
{
    driver->match.pattern = pattern;
    driver->match.root = node;
    return kiln_pattern_match(pattern, node, driver->match.values);
}

/* Tries the rules at @node until one fires. */
static gboolean
visit(Driver *driver, KilnNode *node, bool *fired, GError **error)
{
    *fired = false;
    for (uint32_t i = driver->start[node->op]; i < driver->start[node->op + 1]; i++) {
        uint32_t number = g_array_index(driver->by_op, uint32_t, i);
        const KilnRule *rule = &driver->rules[number];
        if (!match_at(driver, driver->patterns[number], node) || !is_allowed(driver, rule))
            continue;
        g_assert(!is_overlooked(driver->patterns[number], node));
        Mark mark = { driver->function->next_id, driver->function->module->constants->len };
        g_ptr_array_set_size(driver->match.touched, 0);
        g_ptr_array_set_size(driver->lost, 0);
        GError *why = NULL;
        driver->match.rule = rule->name;
        driver->match.error = &why;
        bool done = rule->rewrite(&driver->match);
        if (why) {
            g_propagate_prefixed_error(error, why, "rule %s: ", rule->name);
            return FALSE;
        }
        if (!done) {
            undo(driver, node, mark);
            continue;
        }
        requeue(driver, node, mark);
        driver->changed = *fired = true;
        return TRUE;
    }
    return TRUE;
}

static gboolean
run(Driver *driver, GError **error)
{
    while (driver->head < driver->queue->len) {
        kiln_prefetch_nodes((KilnNode *const *)driver->queue->pdata + driver->head,
                            driver->queue->len - driver->head);
        KilnNode *node = pop(driver);
        bool fired;
        if (!kiln_node_is_linked(node) || kiln_node_is_dead(node))
            continue;
        if (!visit(driver, node, &fired, error) || !kiln_checkpoint(error))
            return FALSE;
        if (fired && ++driver->rewrites > driver->limit) {
            g_autofree char *recent = kiln_pass_context_recent(driver->match.context);
            return kiln_throw(error, KILN_ERROR_LIMIT,
                              "rewriting does not end: %" G_GUINT64_FORMAT
                              " rewrites; the last were: %s",
                              driver->rewrites, recent);
        }
    }
    return TRUE;
}

/* False where no rule can match because of the ops at hand: those of a node and of what defines its
 * first operands. */
static bool
may_match(const Driver *driver, KilnOp op, const KilnOrderEntry *entry)
{
    for (uint32_t i = driver->start[op]; i < driver->start[op + 1]; i++) {
        uint32_t number = g_array_index(driver->by_op, uint32_t, i);
        if (kiln_pattern_may_match(driver->patterns[number], entry))
            return true;
    }
    return false;
}

/* What was not looked at yet and may match. Reads the table of ops alone: most passes have nothing
 * to do with most nodes, and many with none. */
static void
push_unseen(Driver *driver, KilnSweep sweep)
{
    const KilnNodeOrder *order = kiln_function_order(driver->function);
    bool has_rule[KILN_OP_END];
    uint32_t left = 0;
    for (uint32_t op = 0; op < KILN_OP_END; op++) {
        has_rule[op] = has_rules(driver, op);
        left += has_rule[op] ? order->n_of_op[op] : 0;
    }
    if (left && driver->state->len < driver->function->next_id)
        grow_state(driver, driver->function->next_id - 1);
    for (uint32_t i = 0; left; i++) {
        uint32_t at = sweep == KILN_SWEEP_FORWARD ? i : order->n - 1 - i;
        if (!has_rule[order->ops[at]])
            continue;
        left--;
        const KilnOrderEntry *entry = &order->entries[at];
        if (driver->state->data[entry->id] == UNSEEN && may_match(driver, order->ops[at], entry))
            push(driver, entry->node);
    }
}

/* Rewrites may have changed what others read that were passed over. */
static gboolean
run_all(Driver *driver, KilnSweep sweep, GError **error)
{
    driver->limit = (uint64_t)REWRITES_PER_NODE * driver->function->n_nodes + REWRITES_MORE;
    uint64_t stamp;
    do {
        stamp = driver->function->stamp;
        push_unseen(driver, sweep);
        if (!run(driver, error))
            return FALSE;
    } while (driver->function->stamp != stamp);
    return TRUE;
}

gboolean
kiln_rules_run(const KilnRuleList *list, KilnFunction *function, KilnPassContext *context,
               bool *changed, GError **error)
{
    *changed = false;
    Driver driver = { .function = function, .rules = list->rules, .match.context = context };
    driver.queue = g_ptr_array_new();
    driver.state = g_byte_array_new();
    driver.lost = g_ptr_array_new();
    driver.match.touched = g_ptr_array_new();
    gboolean ok = compile(&driver, list->n, error) &&
                  (!driver.by_op->len || run_all(&driver, list->sweep, error));
    *changed = driver.changed;
    driver_clear(&driver, list->n);
    return ok;
}
