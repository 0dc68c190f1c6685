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
 * requires nothing, preserves nothing; class E. What may be known with open extents is worked out
 * element by element (passes/query/symbol.h). With every extent known nothing that computes shapes
 * is left once dce has run. Types behind a target that is literal now say more than before, and so
 * may shape arithmetic that starts there: one forward sweep takes both along. A second sweep,
 * backwards, builds what the nodes that stay read, so that nothing is built for chains that vanish.
 *
 * -1 must not stand beside a 0 that copies an open extent: where that turns out to be empty, the -1
 * says nothing. Subgraphs are swept when their node is: what they read of the functions around them
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

#include "passes/query/movement.h"
#include "passes/query/symbol.h"

#include <string.h>

typedef struct {
    KilnPassContext *context;
    KilnSymbolTable *symbols;
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

static bool
all_numbers(const KilnSymbols *symbols)
{
    for (uint32_t i = 0; symbols && i < symbols->n; i++) {
        if (symbols->v[i].kind != KILN_SYMBOL_NUMBER)
            return false;
    }
    return symbols != NULL;
}

static bool
is_known(const KilnValue *value)
{
    return value->known && value->known->n == kiln_type_elements(&value->type) &&
           !value->type.quant && !value->type.layout;
}

/* Not a constant, but the same as one. Numbers are those of plain tensors. */
static bool
is_settled(Simplify *simplify, const KilnValue *value)
{
    return value && value->def && value->def->op != KILN_OP_const && !value->type.quant &&
           !value->type.layout &&
           (is_known(value) || all_numbers(kiln_symbols_of(simplify->symbols, value)));
}

static KilnTensor *
numbers_tensor(Simplify *simplify, const KilnType *type, const KilnSymbols *symbols)
{
    KilnType plain = kiln_type_make(type->dtype, type->rank, type->dims);
    size_t size = kiln_dtype_size(type->dtype);
    g_autofree uint8_t *data = g_malloc0(symbols->n * size + 1);
    for (uint32_t i = 0; i < symbols->n; i++)
        memcpy(data + i * size, &symbols->v[i].number, size); /* little-endian: the low bytes */
    KilnTensor *tensor =
        kiln_tensor_new_copy(&plain, data, simplify->failure ? NULL : &simplify->failure);
    return kiln_tensor_compact(tensor);
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
    KilnTensor *tensor =
        is_known(value)
            ? kiln_value_known_tensor(value)
            : numbers_tensor(simplify, &value->type, kiln_symbols_of(simplify->symbols, value));
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
literal_of(Simplify *simplify, const KilnValue *value)
{
    const KilnConstant *constant = kiln_value_constant(value);
    if (value->type.quant || value->type.layout)
        return NULL;
    if (constant)
        return kiln_tensor_copy(constant->tensor);
    if (!is_settled(simplify, value))
        return NULL;
    return is_known(value)
               ? kiln_value_known_tensor(value)
               : numbers_tensor(simplify, &value->type, kiln_symbols_of(simplify->symbols, value));
}

static bool
evaluate(const KilnTarget *target, Simplify *simplify, KilnNode *node, KilnTensor **result)
{
    g_autoptr(GPtrArray) literals =
        g_ptr_array_new_with_free_func((GDestroyNotify)kiln_tensor_free);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *operand = node->operands[i].value;
        KilnTensor *literal = operand ? literal_of(simplify, operand) : NULL;
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
    if (!target || !result || !is_arithmetic(node->op) || is_settled(simplify, result) ||
        !result->n_uses || result->type.quant || result->type.layout)
        return;
    int64_t n = kiln_type_elements(&result->type);
    KilnTensor *tensor = NULL;
    if (n < 0 || n > KILN_SYMBOLS_MAX || !evaluate(target, simplify, node, &tensor))
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
static const KilnSymbols *
computed_target(Simplify *simplify, const KilnNode *node)
{
    KilnValue *target = node->operands[1].value;
    if (!target->def || target->def->op == KILN_OP_const || is_settled(simplify, target))
        return NULL;
    return kiln_symbols_of(simplify->symbols, target);
}

/* Element @i is the extent of dim @d of @x. */
static bool
is_extent_of(const KilnSymbols *symbols, uint32_t i, KilnValue *x, int d)
{
    if (d < 0 || d >= x->type.rank || x->type.dims[d] >= 0)
        return false;
    KilnSymbol extent = kiln_symbol_extent(x, d);
    return kiln_symbol_equal(&symbols->v[i], &extent);
}

static bool
reshape_target(KilnPassContext *context, const KilnNode *node, const KilnSymbols *symbols,
               int64_t target[KILN_SYMBOLS_MAX])
{
    static const char rule[] = "reshape-target";
    uint32_t copied = 0, zeros = 0, inferred = 0, open = 0;
    for (uint32_t i = 0; i < symbols->n; i++) {
        const KilnSymbol *symbol = &symbols->v[i];
        bool copies = is_extent_of(symbols, i, node->operands[0].value, (int)i);
        bool stated = symbol->kind == KILN_SYMBOL_NUMBER;
        target[i] = stated ? symbol->number : copies ? 0 : -1;
        copied += copies;
        open += !copies && !stated;
        zeros += stated && symbol->number == 0;
        inferred += stated && symbol->number == -1;
    }
    /* 0 is a size under allowzero, and copies elsewhere. */
    PASS_GUARD(zero_means_one_thing, !zeros || !kiln_attrs(node, reshape)->allowzero);
    PASS_GUARD(one_open, open + inferred <= 1);
    PASS_GUARD(nothing_empty, open == 0 || (copied == 0 && zeros == 0));
    return true;
}

static gboolean
try_reshape(Simplify *simplify, KilnNode *node, GError **error)
{
    int64_t target[KILN_SYMBOLS_MAX];
    const KilnSymbols *symbols = computed_target(simplify, node);
    if (!symbols || !reshape_target(simplify->context, node, symbols, target))
        return TRUE;
    kiln_attrs(node, reshape)->allowzero = false;
    kiln_node_touch(node);
    return set_target(simplify, "reshape-target", node, target, symbols->n, error);
}

static bool
expand_target(KilnPassContext *context, const KilnNode *node, const KilnSymbols *symbols,
              int64_t target[KILN_SYMBOLS_MAX])
{
    static const char rule[] = "expand-target";
    KilnValue *x = node->operands[0].value;
    for (uint32_t i = 0; i < symbols->n; i++) {
        const KilnSymbol *symbol = &symbols->v[i];
        bool stated = symbol->kind == KILN_SYMBOL_NUMBER;
        bool kept = is_extent_of(symbols, i, x, (int)i - (int)symbols->n + x->type.rank);
        PASS_GUARD(stated_or_kept, stated || kept);
        target[i] = stated ? symbol->number : 1;
    }
    return true;
}

static gboolean
try_expand(Simplify *simplify, KilnNode *node, GError **error)
{
    int64_t target[KILN_SYMBOLS_MAX];
    const KilnSymbols *symbols = computed_target(simplify, node);
    if (!symbols || !expand_target(simplify->context, node, symbols, target))
        return TRUE;
    return set_target(simplify, "expand-target", node, target, symbols->n, error);
}

/* --- what nodes that stay read --- */

static const KilnFunction *
function_of(const KilnValue *value)
{
    return value->def ? value->def->function : ((const KilnArgument *)value)->function;
}

/* The neighbouring extents of one value of @function that @symbols are; NULL where they are not. */
static KilnValue *
extents_of(const KilnFunction *function, const KilnSymbol *symbols, uint32_t n, int *axis)
{
    for (uint32_t i = 0; i < n; i++) {
        if (symbols[i].kind != KILN_SYMBOL_EXTENT || symbols[i].value != symbols[0].value ||
            symbols[i].axis != symbols[0].axis + (int)i)
            return NULL;
    }
    if (n == 0 || function_of(symbols[0].value) != function)
        return NULL;
    *axis = symbols[0].axis;
    return symbols[0].value;
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
    const KilnSymbols *symbols = kiln_symbols_of(simplify->symbols, value);
    KilnValue *x = symbols ? extents_of(value->def->function, symbols->v, symbols->n, &axis) : NULL;
    if (!x)
        return TRUE;
    KilnValue *shape = build_shape(value->def, x, axis, symbols->n, error);
    if (!shape)
        return FALSE;
    kiln_symbols_visit(simplify->symbols, shape->def);
    if (kiln_type_equal(&shape->type, &value->type))
        replace(simplify, "shape-range", value, shape);
    return TRUE;
}

/* --- concats that stay --- */

/* Operand @next of @concat goes on where the one before it ends: numbers after numbers, or extents
 * in a row. */
static bool
goes_on(Simplify *simplify, const KilnNode *concat, uint32_t next)
{
    const KilnSymbols *a = kiln_symbols_of(simplify->symbols, concat->operands[next - 1].value);
    const KilnSymbols *b = kiln_symbols_of(simplify->symbols, concat->operands[next].value);
    int before, after;
    if (!a || !b)
        return false;
    if (all_numbers(a) && all_numbers(b))
        return true;
    const KilnValue *x = extents_of(concat->function, a->v, a->n, &before);
    return x && x == extents_of(concat->function, b->v, b->n, &after) &&
           after == before + (int)a->n;
}

/* Operands [first, end) as one value: a constant, or a `shape`. */
static KilnValue *
join(Simplify *simplify, KilnNode *concat, uint32_t first, uint32_t end, GError **error)
{
    g_autoptr(GArray) numbers = g_array_new(FALSE, FALSE, sizeof(int64_t));
    int axis = 0;
    KilnValue *x = NULL;
    for (uint32_t i = end; i-- > first;) {
        const KilnSymbols *part = kiln_symbols_of(simplify->symbols, concat->operands[i].value);
        x = extents_of(concat->function, part->v, part->n, &axis);
        for (uint32_t k = part->n; k-- > 0;)
            g_array_prepend_val(numbers, part->v[k].number);
    }
    KilnValue *joined = x ? build_shape(concat, x, axis, numbers->len, error)
                          : kiln_build_ints(concat->function, concat,
                                            (const int64_t *)(void *)numbers->data, numbers->len);
    if (joined)
        kiln_symbols_visit(simplify->symbols, joined->def);
    return joined;
}

static gboolean
try_concat(Simplify *simplify, KilnNode *concat, GError **error)
{
    const KilnType *type = &concat->results[0].type;
    g_autoptr(GPtrArray) operands = g_ptr_array_new();
    if (type->rank != 1 || type->dtype != KILN_DTYPE_i64)
        return TRUE;
    for (uint32_t i = 0, end; i < concat->n_operands; i = end) {
        for (end = i + 1; end < concat->n_operands && goes_on(simplify, concat, end);)
            end++;
        KilnValue *part =
            end - i == 1 ? concat->operands[i].value : join(simplify, concat, i, end, error);
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
    kiln_symbols_visit(simplify->symbols, node);
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

/* A literal that decides a shape, which inference did not see: the types of what follows say more
 * from here on. */
static void
settle_shape_operands(Simplify *simplify, const KilnNode *node)
{
    uint32_t operands = kiln_op_info(node->op)->shape_operands;
    for (uint32_t i = 0; operands && i < node->n_operands && i < 32; i++) {
        KilnValue *operand = node->operands[i].value;
        if ((operands >> i & 1) && is_settled(simplify, operand) && !is_known(operand))
            settle(simplify, operand);
    }
}

static gboolean
visit(Simplify *simplify, KilnNode *node, GError **error)
{
    bool refined = false;
    settle_shape_operands(simplify, node);
    bool stale = g_hash_table_size(simplify->stale) && g_hash_table_contains(simplify->stale, node);
    if (stale && !kiln_node_refine(node, &refined, error))
        return FALSE;
    for (uint32_t i = 0; refined && i < node->n_results; i++)
        mark_readers(simplify, &node->results[i]);
    simplify->changed |= refined;
    kiln_symbols_visit(simplify->symbols, node);
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
vanishes(Simplify *simplify, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (!is_settled(simplify, &node->results[i]))
            return false;
    }
    return node->n_results > 0;
}

static gboolean
read_simply(Simplify *simplify, KilnNode *node, GError **error)
{
    if (vanishes(simplify, node))
        return TRUE;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *operand = node->operands[i].value;
        if (is_settled(simplify, operand) && operand->def->op != KILN_OP_const)
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
    g_autoptr(KilnSymbolTable) symbols = kiln_symbol_table_new();
    g_autoptr(GHashTable) stale = g_hash_table_new(NULL, NULL);
    Simplify simplify = { .context = context, .symbols = symbols, .stale = stale };
    gboolean ok = sweep(&simplify, function, error);
    *changed = simplify.changed;
    if (ok && simplify.failure) {
        g_propagate_error(error, simplify.failure);
        return FALSE;
    }
    g_clear_error(&simplify.failure);
    return ok;
}
