/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/module/loop_ranks.h"

#include "graph/function.h"
#include "graph/module.h"
#include "graph/module/define.h"
#include "graph/module/flow_types.h"
#include "graph/module/outline.h"
#include "graph/node.h"
#include "graph/op/flow.h"

#include <string.h>

static bool
is_one(int32_t ranks)
{
    return (ranks & (ranks - 1)) == 0;
}

/* The lower half of @ranks. */
static int32_t
low_half(int32_t ranks)
{
    int32_t low = 0, left = ranks;
    for (int n = __builtin_popcount((uint32_t)ranks) / 2; n > 0; n--) {
        low |= left & -left;
        left &= left - 1;
    }
    return low;
}

static int
least_rank(int32_t ranks)
{
    return __builtin_ctz((uint32_t)ranks);
}

static KilnValue *tensor_of_ranks(KilnNode *before, KilnValue *flat, KilnValue *shape,
                                  KilnValue *rank, int32_t ranks, GError **error);

/* A branch for @ranks. */
static KilnFunction *
branch_of_ranks(const char *name, KilnValue *flat, KilnValue *shape, KilnValue *rank, int32_t ranks,
                GError **error)
{
    const KilnType type = kiln_type_unranked(flat->type.dtype);
    KilnFunction *branch = kiln_function_new_region(rank->def->function->module, name);
    if (least_rank(ranks) > KILN_LIST_RANK_MAX) {
        g_autofree char *reason =
            g_strdup_printf("a carried value: expected a rank of %d at most where it changes, "
                            "found %d or more",
                            KILN_LIST_RANK_MAX, least_rank(ranks));
        return kiln_region_refuse(branch, &type, 1, reason, error) ? branch : NULL;
    }
    if (!kiln_function_set_results(branch, NULL, NULL, 0, error))
        return NULL;
    KilnValue *value =
        tensor_of_ranks(kiln_function_return(branch), flat, shape, rank, ranks, error);
    return value && kiln_function_set_results(branch, &value, NULL, 1, error) ? branch : NULL;
}

/* The same for one of @ranks, which @rank, a value, tells: a half of them in each branch. */
static KilnValue *
tensor_of_ranks(KilnNode *before, KilnValue *flat, KilnValue *shape, KilnValue *rank, int32_t ranks,
                GError **error)
{
    if (is_one(ranks))
        return kiln_list_tensor(before, flat, shape, least_rank(ranks), error);
    const int32_t low = low_half(ranks), high = ranks & ~low;
    KilnValue *condition = kiln_list_below(before, rank, least_rank(high), error);
    if (!condition)
        return NULL;
    const KilnAttrs_if attrs = { .then_branch =
                                     branch_of_ranks("low", flat, shape, rank, low, error),
                                 .else_branch =
                                     branch_of_ranks("high", flat, shape, rank, high, error) };
    const KilnType type = kiln_type_unranked(flat->type.dtype);
    return attrs.then_branch && attrs.else_branch
               ? kiln_build_typed(before, KILN_OP_if, &attrs, &condition, 1, &type, error)
               : NULL;
}

static KilnValue *
tensor_of(KilnNode *before, KilnValue *flat, KilnValue *shape, int32_t ranks, GError **error)
{
    if (is_one(ranks))
        return tensor_of_ranks(before, flat, shape, NULL, ranks, error);
    KilnValue *length = kiln_list_shape(before, shape, error);
    KilnValue *rank = length ? kiln_list_element(before, length, 0, error) : NULL;
    return rank ? tensor_of_ranks(before, flat, shape, rank, ranks, error) : NULL;
}

/* --- the loop --- */

/* A loop that is replaced. */
typedef struct {
    KilnNode *node;
    const KilnRankSettle *settle;
    int32_t *ranks;              /* per carried value */
    uint32_t first, carried;     /* operands */
    KilnValue **flats, **shapes; /* per carried value: in front of the loop; NULL: not spread */
} Spread;

static bool
is_spread(const Spread *spread, uint32_t k)
{
    return !is_one(spread->ranks[k]);
}

/* Settles the nodes from @from up to @end. */
static gboolean
settle_nodes(const Spread *spread, KilnNode *from, KilnNode *end, GError **error)
{
    KilnNode *next;
    for (KilnNode *node = from; node != end; node = next) {
        next = node->next;
        if (!spread->settle->settle(node, node, spread->settle->data, error))
            return FALSE;
    }
    return TRUE;
}

/* The lists that the loop begins with. */
static gboolean
build_first(Spread *spread, GError **error)
{
    KilnNode *node = spread->node, *before = node->previous;
    for (uint32_t k = 0; k < spread->carried; k++) {
        KilnValue *value = node->operands[spread->first + k].value;
        if (!is_spread(spread, k) || spread->flats[k])
            continue;
        if (!(spread->flats[k] = kiln_list_flat(node, value, error)) ||
            !(spread->shapes[k] = kiln_list_shape(node, value, error)))
            return FALSE;
    }
    return settle_nodes(spread, before ? before->next : node->function->first, node, error);
}

static KilnValue *
add_argument(KilnFunction *body, const KilnValue *like, const char *what, KilnDType dtype,
             GError **error)
{
    const KilnType type = kiln_type_make(dtype, 1, (int64_t[]){ KILN_DIM_UNKNOWN });
    g_autofree char *wanted = g_strdup_printf("%s_%s", like->name, what);
    KilnArgument *argument =
        kiln_function_add_argument(body, kiln_function_unique_name(body, wanted), &type, error);
    return argument ? &argument->value : NULL;
}

/* The body takes lists: those of elements in place of the tensors, those of shapes behind what it
 * carries. */
static gboolean
take_lists(const Spread *spread, KilnFunction *body, GError **error)
{
    const uint32_t n = body->arguments->len;
    g_autoptr(GPtrArray) taken = g_ptr_array_new();
    g_autoptr(GPtrArray) shapes = g_ptr_array_new();
    for (uint32_t i = 0; i < n; i++) {
        KilnValue *value = &kiln_function_argument(body, i)->value;
        if (i < spread->first || !is_spread(spread, i - spread->first)) {
            g_ptr_array_add(taken, value);
            continue;
        }
        KilnValue *flat = add_argument(body, value, "elements", value->type.dtype, error);
        KilnValue *shape = flat ? add_argument(body, value, "shape", KILN_DTYPE_i64, error) : NULL;
        KilnValue *tensor =
            shape ? tensor_of(body->first, flat, shape, spread->ranks[i - spread->first], error)
                  : NULL;
        if (!tensor)
            return FALSE;
        value->type = tensor->type;
        kiln_value_replace(value, tensor);
        g_ptr_array_add(taken, flat);
        g_ptr_array_add(shapes, shape);
    }
    g_ptr_array_extend(taken, shapes, NULL, NULL);
    kiln_function_keep_arguments(body, (KilnArgument **)taken->pdata, taken->len);
    return TRUE;
}

/* The body gives lists in the same order. */
static gboolean
give_lists(const Spread *spread, KilnFunction *body, GError **error)
{
    KilnNode *last = kiln_function_return(body);
    const uint32_t n = last->n_operands;
    g_autofree KilnValue **values = g_new0(KilnValue *, (gsize)n + spread->carried);
    g_autofree const char **names = g_new0(const char *, (gsize)n + spread->carried);
    uint32_t at = 1 + spread->carried;
    for (uint32_t i = 0; i < n; i++) {
        const bool tensor = i >= 1 && i <= spread->carried && is_spread(spread, i - 1);
        const uint32_t to = i <= spread->carried ? i : at++;
        values[to] =
            tensor ? kiln_list_flat(last, last->operands[i].value, error) : last->operands[i].value;
        names[to] = tensor ? NULL : g_ptr_array_index(body->result_names, i);
        if (!values[to])
            return FALSE;
        if (i < spread->carried)
            continue;
        for (uint32_t k = 0; i == spread->carried && k < spread->carried; k++) {
            if (!is_spread(spread, k))
                continue;
            values[at] = kiln_list_shape(last, last->operands[1 + k].value, error);
            if (!values[at++])
                return FALSE;
        }
    }
    return kiln_function_set_results(body, values, names, at, error);
}

/* The loop of lists, in front of the other one. */
static KilnNode *
build_loop(const Spread *spread, GError **error)
{
    KilnNode *node = spread->node;
    KilnFunction *body =
        kiln_body_copy(node->function->module, kiln_attrs(node, loop)->body, false, error);
    if (!body || !take_lists(spread, body, error) || !give_lists(spread, body, error))
        return NULL;
    const uint32_t stacked = node->n_results - spread->carried;
    const KilnType shape = kiln_type_make(KILN_DTYPE_i64, 1, (int64_t[]){ KILN_DIM_UNKNOWN });
    const uint32_t room = node->n_operands + node->n_results + spread->carried;
    g_autofree KilnValue **operands = g_new0(KilnValue *, room);
    g_autofree KilnType *types = g_new0(KilnType, room);
    g_autofree const char **names = g_new0(const char *, room);
    uint32_t in = node->n_operands, out = spread->carried;
    for (uint32_t i = 0; i < node->n_operands; i++)
        operands[i] = node->operands[i].value;
    for (uint32_t k = 0; k < spread->carried; k++) {
        types[k] = node->results[k].type;
        names[k] = node->results[k].name;
        if (!is_spread(spread, k))
            continue;
        operands[spread->first + k] = spread->flats[k];
        operands[in++] = spread->shapes[k];
        types[k] = spread->flats[k]->type;
        kiln_type_set_dim(&types[k], 0, NULL);
        names[out] = "shape";
        types[out++] = shape;
    }
    for (uint32_t s = 0; s < stacked; s++) {
        types[out] = node->results[spread->carried + s].type;
        names[out++] = node->results[spread->carried + s].name;
    }
    const KilnAttrs_loop attrs = { .body = body };
    return kiln_node_new(node->function,
                         &(KilnNodeSpec){ .op = KILN_OP_loop,
                                          .name = node->name,
                                          .operands = operands,
                                          .n_operands = in,
                                          .n_results = out,
                                          .attrs = &attrs,
                                          .types = types,
                                          .result_names = names,
                                          .before = node },
                         error);
}

/* Adds the ranks that the body of @made gives what it carries as lists. True where some are new. */
static bool
add_ranks(const Spread *spread, const KilnNode *made, int32_t *found)
{
    const KilnNode *last = kiln_function_return(kiln_attrs(made, loop)->body);
    uint32_t at = 1 + spread->carried;
    bool any = false;
    for (uint32_t k = 0; k < spread->carried; k++) {
        if (is_spread(spread, k))
            found[k] = kiln_flow_ranks(last->operands[at++].value, true);
    }
    for (uint32_t k = 0; k < spread->carried; k++)
        any |= (found[k] & ~spread->ranks[k]) != 0;
    return any;
}

/* The loop of lists with all ranks that its iterations find, settled. */
static KilnNode *
settle_loop(Spread *spread, GError **error)
{
    g_autofree int32_t *found = g_new0(int32_t, 2 * (gsize)spread->carried + 1);
    for (;;) {
        g_autoptr(GError) why = NULL;
        KilnNode *made = build_first(spread, error) ? build_loop(spread, error) : NULL;
        if (!made)
            return NULL;
        memset(found, 0, (2 * (gsize)spread->carried + 1) * sizeof *found);
        const bool good =
            kiln_loop_settle(made, spread->settle->visit, spread->settle->data, found, &why);
        bool any = good && add_ranks(spread, made, found);
        bool unknown = false;
        for (uint32_t k = 0; k < spread->carried; k++) {
            any |= (found[k] & ~spread->ranks[k]) != 0;
            unknown |= found[k] == KILN_RANKS_UNKNOWN;
        }
        if (good && !any)
            return made;
        if (unknown || !any) {
            if (good)
                kiln_throw(&why, KILN_ERROR_UNSUPPORTED,
                           "%s (loop): expected carried values of known ranks, found others",
                           kiln_node_label(spread->node));
            g_propagate_error(error, g_steal_pointer(&why));
            return NULL;
        }
        for (uint32_t k = 0; k < spread->carried; k++)
            spread->ranks[k] |= found[k];
        kiln_node_remove(made);
    }
}

/* Readers of the loop read the results of @made. */
static gboolean
hand_over(const Spread *spread, KilnNode *made, GError **error)
{
    KilnNode *node = spread->node;
    uint32_t shape = spread->carried, n_shapes = made->n_results - node->n_results;
    for (uint32_t r = 0; r < node->n_results; r++) {
        KilnValue *from = &node->results[r];
        KilnValue *to = &made->results[r < spread->carried ? r : r + n_shapes];
        if (r < spread->carried && is_spread(spread, r)) {
            KilnValue *dims = &made->results[shape++];
            if (!from->n_uses)
                continue;
            to = tensor_of(node, to, dims, spread->ranks[r], error);
            if (!to)
                return FALSE;
        }
        from->type = to->type;
        kiln_value_replace(from, to);
    }
    if (!settle_nodes(spread, made->next, node, error))
        return FALSE;
    kiln_node_remove(node);
    return TRUE;
}

gboolean
kiln_loop_spread_ranks(KilnNode *node, int32_t *ranks, const KilnRankSettle *settle, GError **error)
{
    Spread spread = { .node = node, .settle = settle, .ranks = ranks };
    bool any = false;
    kiln_flow_carried(node, &spread.first, &spread.carried);
    for (uint32_t k = 0; k < spread.carried; k++) {
        const int rank = node->operands[spread.first + k].value->type.rank;
        if (ranks[k] == KILN_RANKS_UNKNOWN || rank < 0 || (ranks[k] && rank > KILN_LIST_RANK_MAX))
            return FALSE;
        any |= ranks[k] != 0;
        ranks[k] |= 1 << rank;
    }
    if (!any)
        return FALSE;
    g_autofree KilnValue **flats = g_new0(KilnValue *, spread.carried);
    g_autofree KilnValue **shapes = g_new0(KilnValue *, spread.carried);
    spread.flats = flats;
    spread.shapes = shapes;
    KilnNode *made = settle_loop(&spread, error);
    return made && hand_over(&spread, made, error);
}
