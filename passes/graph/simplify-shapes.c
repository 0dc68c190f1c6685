/* SPDX-License-Identifier: Apache-2.0 */
/* simplify-shapes: shape arithmetic becomes what it computes.
 *
 *      x [2,3,4]                x [N,3,4]                     x [N,3,4]
 *      |     \                  |     \                       |     \
 *      |    shape               |    shape                    |    shape
 *      |      |                 |      |                      |      |
 *      |   gather 0             |   gather 0                  |   gather 0
 *      |      |                 |      |                      |      |
 *      |   unsqueeze  -1        |   unsqueeze  12             |   unsqueeze   M
 *      |         \    /         |         \    /              |         \    /
 *      |         concat         |         concat              |         concat
 *      |        /               |        /                    |            |
 *      reshape                  reshape                       |          range, …
 *
 *      reshape [2,-1]           reshape [0,12]                concat(shape{0:1}, M)
 *
 *   known-value     every element is a number: the value is a constant
 *   small-value     an element is not an integer on its way (scales of a resize): the node is
 *                   evaluated, as constant-fold would
 *   reshape-target  elements that are the operand's extents at the same place become 0, one that is
 *                   not known -1
 *   expand-target   elements that are the operand's extents become 1
 *   shape-range     a vector of neighbouring extents of one value is one `shape` of them
 *   concat-run      of a concat that stays, operands in a row that come to a constant or to one
 *                   `shape` are joined
 *
 * requires nothing, preserves nothing; class E. Inference works out what is known with open
 * extents, element by element (graph/infer/extents.c). With every extent known nothing that
 * computes shapes is left once dce has run. Types behind a target that is literal now say more than
 * before, and so may shape arithmetic that starts there: one forward sweep takes both along. A
 * second sweep, backwards, builds what the nodes that stay read, so that nothing is built for
 * chains that vanish.
 *
 * -1 must not stand beside a 0 that copies an extent which may be empty: then the -1 says nothing.
 * Subgraphs are swept when their node is: what they read of the functions around them
 * is known then. */
#include "exec/eval.h"
#include "graph/module/flow.h"
#include "graph/module/sweep.h"
#include "graph/op/additive.h"
#include "graph/op/bounds.h"
#include "graph/op/cast.h"
#include "graph/op/concat.h"
#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/math.h"
#include "graph/op/multiplicative.h"
#include "graph/op/reshape.h"
#include "graph/op/slice.h"
#include "graph/op/structure.h"
#include "passes/pass.h"

typedef struct {
    KilnPassContext *context;
    GHashTable *stale; /* nodes that read what says more now; looked up, never iterated */
    GError *failure;   /* memory ran out: the pass fails */
    bool changed;
} Simplify;

static gboolean sweep(Simplify *simplify, KilnFunction *function, GError **error);

static void
mark_readers(Simplify *simplify, const KilnValue *value)
{
    kiln_foreach_use (use, value)
        g_hash_table_add(simplify->stale, use->user);
}

/* --- what is literal --- */

/* Not a constant, but the same as one. Numbers are those of plain tensors. */
static bool
is_settled(const KilnValue *value)
{
    return value && value->def && value->def->op != KILN_OP_const && value->known &&
           value->known->n == kiln_type_elements(&value->type) && !value->type.quant &&
           !value->type.layout;
}

static void
replace(Simplify *simplify, const char *rule, KilnValue *from, KilnValue *to)
{
    KilnNode *def = from->def;
    kiln_pass_note(simplify->context, rule, "%s (%s)", kiln_node_label(def),
                   kiln_op_info(def->op)->name);
    mark_readers(simplify, from);
    kiln_value_replace(from, to);
    kiln_node_remove_if_dead(def);
    simplify->changed = true;
}

static void
settle(Simplify *simplify, KilnValue *value)
{
    KilnTensor *tensor = kiln_value_known_tensor(value);
    if (!tensor)
        return;
    KilnValue *constant =
        kiln_build_constant(value->def->function, value->def, value->name, tensor);
    replace(simplify, "known-value", value, constant);
}

/* --- small values that are no integers on their way --- */

/* Arithmetic and movement as shape arithmetic has them. */
static bool
is_arithmetic(KilnOp op)
{
    switch (op) {
    case KILN_OP_cast:
    case KILN_OP_add:
    case KILN_OP_sub:
    case KILN_OP_mul:
    case KILN_OP_div:
    case KILN_OP_pow:
    case KILN_OP_mod:
    case KILN_OP_min:
    case KILN_OP_max:
    case KILN_OP_neg:
    case KILN_OP_sqrt:
    case KILN_OP_reciprocal:
    case KILN_OP_floor:
    case KILN_OP_ceil:
    case KILN_OP_round:
    case KILN_OP_concat:
    case KILN_OP_slice:
    case KILN_OP_gather:
    case KILN_OP_identity:
    case KILN_OP_reshape:
    case KILN_OP_squeeze:
    case KILN_OP_unsqueeze:
        return true;
    default:
        return false;
    }
}

static KilnTensor *
literal_of(const KilnValue *value)
{
    const KilnConstant *constant = kiln_value_constant(value);
    if (value->type.quant || value->type.layout)
        return NULL;
    if (constant)
        return kiln_tensor_copy(constant->tensor);
    return is_settled(value) ? kiln_value_known_tensor(value) : NULL;
}

static bool
evaluate(const KilnTarget *target, Simplify *simplify, KilnNode *node, KilnTensor **result)
{
    g_autoptr(GPtrArray) literals =
        g_ptr_array_new_with_free_func((GDestroyNotify)kiln_tensor_free);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *operand = node->operands[i].value;
        KilnTensor *literal = operand ? literal_of(operand) : NULL;
        if (operand && !literal)
            return false;
        g_ptr_array_add(literals, literal);
    }
    g_autoptr(GError) why = NULL; /* a node that cannot be evaluated stays */
    if (kiln_target_evaluate(target, node, (const KilnTensor *const *)literals->pdata, result,
                             &why))
        return true;
    if (!simplify->failure && g_error_matches(why, KILN_ERROR, KILN_ERROR_MEMORY))
        simplify->failure = g_steal_pointer(&why);
    return false;
}

static void
evaluate_small(Simplify *simplify, KilnNode *node)
{
    const KilnTarget *target = kiln_pass_target(simplify->context);
    KilnValue *result = node->n_results == 1 ? &node->results[0] : NULL;
    if (!target || !result || !is_arithmetic(node->op) || is_settled(result) || !result->n_uses ||
        result->type.quant || result->type.layout)
        return;
    int64_t n = kiln_type_elements(&result->type);
    KilnTensor *tensor = NULL;
    if (n < 0 || n > KILN_EXTENTS_MAX || !evaluate(target, simplify, node, &tensor))
        return;
    KilnValue *constant =
        kiln_build_constant(node->function, node, result->name, kiln_tensor_compact(tensor));
    replace(simplify, "small-value", result, constant);
}

/* --- targets --- */

/* Operand @i becomes a constant of the numbers in @target. */
static gboolean
set_target(Simplify *simplify, const char *rule, KilnNode *node, const int64_t *target, uint32_t n,
           GError **error)
{
    KilnValue *old = node->operands[1].value;
    kiln_pass_note(simplify->context, rule, "%s (%s)", kiln_node_label(node),
                   kiln_op_info(node->op)->name);
    kiln_node_set_operand(node, 1, kiln_build_ints(node->function, node, target, n));
    kiln_node_remove_if_dead(old->def);
    simplify->changed = true;
    bool refined;
    if (!kiln_node_refine(node, &refined, error))
        return FALSE;
    if (refined)
        mark_readers(simplify, &node->results[0]);
    return TRUE;
}

/* The elements of a target that is computed by a node of this graph. */
static const KilnExtents *
computed_target(const KilnNode *node)
{
    const KilnValue *target = node->operands[1].value;
    return target->def ? target->extents : NULL;
}

/* Element @i is the extent of dim @d of @x, which has no number. */
static bool
is_extent_of(const KilnExtents *extents, uint32_t i, const KilnType *x, int d)
{
    return d >= 0 && d < x->rank && x->dims[d] < 0 && kiln_dim_same(extents->v[i], x->open[d]);
}

static bool
reshape_target(KilnPassContext *context, const KilnNode *node, const KilnExtents *extents,
               int64_t target[KILN_EXTENTS_MAX])
{
    static const char rule[] = "reshape-target";
    const KilnType *x = &node->operands[0].value->type;
    uint32_t zeros = 0, inferred = 0, open = 0;
    bool may_be_empty = false;
    for (uint32_t i = 0; i < extents->n; i++) {
        int64_t number = -1, lo, hi;
        bool copies = is_extent_of(extents, i, x, (int)i);
        bool stated = kiln_dim_is_number(extents->v[i], &number);
        target[i] = stated ? number : copies ? 0 : -1;
        kiln_dim_range(extents->v[i], &lo, &hi);
        may_be_empty |= copies && lo < 1;
        open += !copies && !stated;
        zeros += stated && number == 0;
        inferred += stated && number == -1;
    }
    /* 0 is a size under allowzero, and copies elsewhere. */
    PASS_GUARD(zero_means_one_thing, !zeros || !kiln_attrs(node, reshape)->allowzero);
    PASS_GUARD(one_open, open + inferred <= 1);
    PASS_GUARD(nothing_empty, open == 0 || (!may_be_empty && zeros == 0));
    return true;
}

static gboolean
try_reshape(Simplify *simplify, KilnNode *node, GError **error)
{
    int64_t target[KILN_EXTENTS_MAX];
    const KilnExtents *extents = computed_target(node);
    if (!extents || !reshape_target(simplify->context, node, extents, target))
        return TRUE;
    kiln_attrs(node, reshape)->allowzero = false;
    kiln_node_touch(node);
    return set_target(simplify, "reshape-target", node, target, extents->n, error);
}

static bool
expand_target(KilnPassContext *context, const KilnNode *node, const KilnExtents *extents,
              int64_t target[KILN_EXTENTS_MAX])
{
    static const char rule[] = "expand-target";
    const KilnType *x = &node->operands[0].value->type;
    for (uint32_t i = 0; i < extents->n; i++) {
        int64_t number = 1;
        bool stated = kiln_dim_is_number(extents->v[i], &number);
        bool kept = is_extent_of(extents, i, x, (int)i - (int)extents->n + x->rank);
        PASS_GUARD(stated_or_kept, stated || kept);
        target[i] = number;
    }
    return true;
}

static gboolean
try_expand(Simplify *simplify, KilnNode *node, GError **error)
{
    int64_t target[KILN_EXTENTS_MAX];
    const KilnExtents *extents = computed_target(node);
    if (!extents || !expand_target(simplify->context, node, extents, target))
        return TRUE;
    return set_target(simplify, "expand-target", node, target, extents->n, error);
}

/* --- what nodes that stay read --- */

enum {
    SEARCHED = 64 /* nodes behind a value, among which a `shape` is looked for */
};

/* Some neighbouring extents of one value. */
typedef struct {
    const KilnDim *const *v;
    uint32_t n;
    KilnValue *of; /* NULL: not found */
    int axis;
    int searched;
} Neighbours;

static void
look_at(Neighbours *wanted, KilnValue *x)
{
    for (int axis = 0; !wanted->of && axis + (int)wanted->n <= x->type.rank; axis++) {
        uint32_t same = 0;
        while (same < wanted->n && x->type.dims[axis + (int)same] < 0 &&
               kiln_dim_same(wanted->v[same], x->type.open[axis + (int)same]))
            same++;
        if (same != wanted->n)
            continue;
        wanted->of = x;
        wanted->axis = axis;
    }
}

/* Looks for a value of @function whose shape @value is computed from. */
static void
search(Neighbours *wanted, const KilnFunction *function, const KilnValue *value)
{
    const KilnNode *def = value ? value->def : NULL;
    if (!def || def->function != function || wanted->of || wanted->searched++ >= SEARCHED)
        return;
    if (def->op == KILN_OP_shape)
        look_at(wanted, def->operands[0].value);
    for (uint32_t i = 0; def->op != KILN_OP_shape && i < def->n_operands; i++) {
        const KilnValue *operand = kiln_node_operand(def, i);
        if (operand && operand->extents)
            search(wanted, function, operand);
    }
}

/* The value of @value's function whose neighbouring extents are the @n elements of @value from
 * @first on; NULL where there is none. */
static KilnValue *
extents_of(const KilnValue *value, uint32_t first, uint32_t n, int *axis)
{
    if (!value->def || !value->extents || n == 0 || first + n > value->extents->n)
        return NULL;
    Neighbours wanted = { .v = value->extents->v + first, .n = n };
    search(&wanted, value->def->function, value);
    *axis = wanted.axis;
    return wanted.of;
}

static KilnValue *
build_shape(KilnNode *before, KilnValue *x, int axis, uint32_t n, GError **error)
{
    KilnAttrs_shape attrs = { .start = axis,
                              .end = axis + (int)n == x->type.rank ? G_MAXINT64 : axis + (int)n };
    return kiln_build(before->function, before, KILN_OP_shape, &attrs, &x, 1, error);
}

static gboolean
try_shape_range(Simplify *simplify, KilnValue *value, GError **error)
{
    int axis;
    if (!value->def || value->def->op == KILN_OP_shape || value->type.rank != 1 ||
        value->type.dtype != KILN_DTYPE_i64)
        return TRUE;
    KilnValue *x = value->extents ? extents_of(value, 0, value->extents->n, &axis) : NULL;
    if (!x)
        return TRUE;
    KilnValue *shape = build_shape(value->def, x, axis, value->extents->n, error);
    if (!shape)
        return FALSE;
    if (kiln_type_equal(&shape->type, &value->type))
        replace(simplify, "shape-range", value, shape);
    return TRUE;
}

/* --- concats that stay --- */

/* How many elements operand @i of @concat has; 0 where they are not known. */
static uint32_t
n_elements(const KilnNode *concat, uint32_t i)
{
    const KilnValue *operand = concat->operands[i].value;
    return operand->known     ? (uint32_t)operand->known->n
           : operand->extents ? operand->extents->n
                              : 0;
}

/* The value whose extents are those of the operands [first, end) of @concat. */
static KilnValue *
joined_extents(const KilnNode *concat, uint32_t first, uint32_t end, int *axis)
{
    const KilnValue *whole = &concat->results[0];
    uint32_t at = 0, n = 0;
    for (uint32_t i = 0; i < end; i++) {
        at += i < first ? n_elements(concat, i) : 0;
        n += i < first ? 0 : n_elements(concat, i);
    }
    return whole->extents ? extents_of(whole, at, n, axis) : NULL;
}

/* True where the operands [first, end) of @concat are one value: numbers, or extents in a row. */
static bool
join(const KilnNode *concat, uint32_t first, uint32_t end)
{
    bool numbers = true, known = true;
    int axis;
    for (uint32_t i = first; i < end; i++) {
        numbers &= concat->operands[i].value->known != NULL;
        known &= n_elements(concat, i) > 0;
    }
    return numbers || (known && joined_extents(concat, first, end, &axis));
}

/* Operands [first, end) as one value: a constant, or a `shape`. */
static KilnValue *
joined_value(KilnNode *concat, uint32_t first, uint32_t end, GError **error)
{
    int axis;
    KilnValue *x = joined_extents(concat, first, end, &axis);
    g_autoptr(GArray) numbers = g_array_new(FALSE, FALSE, sizeof(int64_t));
    uint32_t n = 0;
    for (uint32_t i = first; i < end; i++) {
        const KilnKnown *known = concat->operands[i].value->known;
        n += n_elements(concat, i);
        if (known)
            g_array_append_vals(numbers, known->v, (guint)known->n);
    }
    if (numbers->len != n)
        return build_shape(concat, x, axis, n, error);
    return kiln_build_ints(concat->function, concat, (const int64_t *)(void *)numbers->data, n);
}

static gboolean
try_concat(Simplify *simplify, KilnNode *concat, GError **error)
{
    const KilnType *type = &concat->results[0].type;
    g_autoptr(GPtrArray) operands = g_ptr_array_new();
    if (type->rank != 1 || type->dtype != KILN_DTYPE_i64)
        return TRUE;
    for (uint32_t i = 0, end; i < concat->n_operands; i = end) {
        for (end = i + 1; end < concat->n_operands && join(concat, i, end + 1);)
            end++;
        KilnValue *part =
            end - i == 1 ? concat->operands[i].value : joined_value(concat, i, end, error);
        if (!part)
            return FALSE;
        g_ptr_array_add(operands, part);
    }
    if (operands->len == concat->n_operands)
        return TRUE;
    KilnNodeSpec spec = { .op = KILN_OP_concat,
                          .name = concat->name,
                          .operands = (KilnValue *const *)operands->pdata,
                          .n_operands = operands->len,
                          .attrs = concat->attrs,
                          .types = type,
                          .before = concat };
    KilnNode *node = kiln_node_new(concat->function, &spec, error);
    if (!node)
        return FALSE;
    if (kiln_type_equal(&node->results[0].type, type))
        replace(simplify, "concat-run", &concat->results[0], &node->results[0]);
    return TRUE;
}

/* --- the sweeps --- */

static gboolean
sweep_region(KilnFunction *region, void *data, GError **error)
{
    return sweep(data, region, error);
}

static gboolean
visit(Simplify *simplify, KilnNode *node, GError **error)
{
    bool refined = false;
    bool stale = g_hash_table_size(simplify->stale) && g_hash_table_contains(simplify->stale, node);
    if (stale && !kiln_node_refine(node, &refined, error))
        return FALSE;
    for (uint32_t i = 0; refined && i < node->n_results; i++)
        mark_readers(simplify, &node->results[i]);
    simplify->changed |= refined;
    if ((node->op == KILN_OP_reshape && !try_reshape(simplify, node, error)) ||
        (node->op == KILN_OP_expand && !try_expand(simplify, node, error)))
        return FALSE;
    if (!kiln_node_visit_regions(node, sweep_region, simplify, &refined, error))
        return FALSE;
    for (uint32_t i = 0; refined && i < node->n_results; i++)
        mark_readers(simplify, &node->results[i]);
    simplify->changed |= refined;
    evaluate_small(simplify, node);
    return TRUE;
}

/* The node itself becomes a constant, so that nothing has to be made for it. */
static bool
vanishes(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (!is_settled(&node->results[i]))
            return false;
    }
    return node->n_results > 0;
}

static gboolean
read_simply(Simplify *simplify, KilnNode *node, GError **error)
{
    if (vanishes(node))
        return TRUE;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *operand = node->operands[i].value;
        if (is_settled(operand) && operand->def->op != KILN_OP_const)
            settle(simplify, operand);
        else if (operand && !try_shape_range(simplify, operand, error))
            return FALSE;
    }
    return node->op != KILN_OP_concat || try_concat(simplify, node, error);
}

static gboolean
sweep(Simplify *simplify, KilnFunction *function, GError **error)
{
    g_autoptr(GPtrArray) nodes = g_ptr_array_new();
    const KilnNodeOrder *order = kiln_function_order(function);
    for (uint32_t i = 0; i < order->n; i++)
        g_ptr_array_add(nodes, order->entries[i].node);
    for (guint i = 0; i < nodes->len; i++) {
        KilnNode *node = g_ptr_array_index(nodes, i);
        kiln_prefetch_nodes((KilnNode *const *)nodes->pdata + i, nodes->len - i);
        if (kiln_node_is_linked(node) && !visit(simplify, node, error))
            return FALSE;
    }
    for (guint i = nodes->len; i-- > 0;) {
        KilnNode *node = g_ptr_array_index(nodes, i);
        if (kiln_node_is_linked(node) && !read_simply(simplify, node, error))
            return FALSE;
    }
    return TRUE;
}

GRAPH_PASS(simplify_shapes);

gboolean
kiln_pass_simplify_shapes(KilnFunction *function, KilnPassContext *context, bool *changed,
                          GError **error)
{
    *changed = false;
    if (function->owner)
        return TRUE; /* swept with the function around it */
    g_autoptr(GHashTable) stale = g_hash_table_new(NULL, NULL);
    Simplify simplify = { .context = context, .stale = stale };
    gboolean ok = sweep(&simplify, function, error);
    *changed = simplify.changed;
    if (ok && simplify.failure) {
        g_propagate_error(error, simplify.failure);
        return FALSE;
    }
    g_clear_error(&simplify.failure);
    return ok;
}
