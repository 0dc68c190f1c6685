/* SPDX-License-Identifier: Apache-2.0 */
/* Branches that are taken, loops that never run, subgraphs that refuse to. */
#include "graph/module/flow.h"

#include "graph/base/item.h"

#include "graph/function.h"
#include "graph/module/outline.h"
#include "graph/module/scan.h"
#include "graph/node.h"
#include "graph/op/flow.h"
#include "graph/op/structure.h"

#include <string.h>

bool
kiln_op_is_flow(KilnOp op)
{
    return op == KILN_OP_if || op == KILN_OP_loop || op == KILN_OP_scan;
}

bool
kiln_value_has_ranks(const KilnValue *value)
{
    return value->def && value->def->op == KILN_OP_if && value->type.rank < 0;
}

KilnStrings *
kiln_flow_dims(const KilnNode *node)
{
    switch (node->op) {
    case KILN_OP_if:
        return &kiln_attrs(node, if)->dims;
    case KILN_OP_loop:
        return &kiln_attrs(node, loop)->dims;
    case KILN_OP_scan:
        return &kiln_attrs(node, scan)->dims;
    default:
        return NULL;
    }
}

bool
kiln_flow_is_listed(const KilnNode *node, const char *name)
{
    const KilnStrings *dims = kiln_flow_dims(node);
    for (uint32_t i = 0; name && dims && i < dims->n; i++) {
        if (strcmp(dims->v[i], name) == 0)
            return true;
    }
    return false;
}

void
kiln_flow_carried(const KilnNode *node, uint32_t *out_first, uint32_t *out_n)
{
    *out_first = node->op == KILN_OP_loop ? 2 : 0;
    if (node->op == KILN_OP_loop)
        *out_n = node->n_operands < 2 ? 0 : node->n_operands - 2;
    else
        *out_n = node->n_operands - (uint32_t)kiln_attrs(node, scan)->num_scan_inputs;
}

/* --- conditions --- */

bool
kiln_value_known_flag(const KilnValue *value, bool *out)
{
    uint8_t element[8] = { 0 };
    const KilnConstant *constant = value ? kiln_value_constant(value) : NULL;
    g_autoptr(KilnTensor) tensor = NULL;
    if (value)
        tensor = constant ? kiln_tensor_copy(constant->tensor) : kiln_value_known_tensor(value);
    if (!tensor || tensor->type.dtype != KILN_DTYPE_bool ||
        !kiln_tensor_is_splat(tensor, 1, element))
        return false;
    *out = element[0] != 0;
    return true;
}

KilnFunction *
kiln_if_taken(const KilnNode *node)
{
    bool taken;
    const KilnAttrs_if *attrs = kiln_attrs(node, if);
    if (!kiln_value_known_flag(kiln_node_operand(node, 0), &taken))
        return NULL;
    return taken ? attrs->then_branch : attrs->else_branch;
}

/* What @region is to @node: the name of the attribute. */
static const char *
region_name(const KilnNode *node, const KilnFunction *region)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    uint32_t i = 0;
    while (i + 1 < info->n_attrs && kiln_node_region(node, i) != region)
        i++;
    return info->attrs[i].name;
}

void
kiln_region_prefix_error(GError **error, const KilnNode *node, const KilnFunction *region)
{
    kiln_prefix_error(error, "%s (%s): %s: ", kiln_node_label(node), kiln_op_info(node->op)->name,
                      region_name(node, region));
}

const char *
kiln_region_refusal(const KilnFunction *region)
{
    const KilnNode *node = region->first;
    bool refused = node && node->op == KILN_OP_unknown && kiln_attrs(node, unknown)->mismatch;
    return refused ? kiln_attrs(node, unknown)->reason : NULL;
}

const KilnFunction *
kiln_function_root(const KilnFunction *function)
{
    while (function->owner)
        function = function->owner->function;
    return function;
}

gboolean
kiln_if_inline(KilnNode *node, const KilnFunction *branch, GError **error)
{
    const char *refusal = kiln_region_refusal(branch);
    gboolean good = refusal ? kiln_throw(error, KILN_ERROR_SHAPE, "%s", refusal)
                            : kiln_node_inline(node, branch, error);
    if (!good)
        kiln_region_prefix_error(error, node, branch);
    return good;
}

/* --- loops --- */

bool
kiln_loop_is_idle(const KilnValue *trips, const KilnValue *condition)
{
    bool goes_on;
    if (kiln_value_known_flag(condition, &goes_on) && !goes_on)
        return true;
    return trips && trips->known && trips->known->n == 1 && trips->known->v[0] <= 0;
}

bool
kiln_loop_idle_type(const KilnType *type, KilnType *out)
{
    int64_t dims[KILN_MAX_RANK] = { 0 };
    for (int d = 1; d < type->rank; d++)
        dims[d] = MAX(type->dims[d], 0);
    *out = kiln_type_make(type->dtype, MAX(type->rank, 0), dims);
    return type->rank > 0;
}

gboolean
kiln_loop_skip(KilnNode *node, bool *gone, GError **error)
{
    uint32_t carried = node->n_operands < 2 ? 0 : node->n_operands - 2;
    *gone = true;
    for (uint32_t i = carried; i < node->n_results; i++) {
        KilnType type;
        *gone &= kiln_loop_idle_type(&node->results[i].type, &type);
    }
    for (uint32_t i = 0; *gone && i < node->n_results; i++) {
        KilnValue *result = &node->results[i], *value = kiln_node_operand(node, i + 2);
        if (i >= carried) {
            KilnType type;
            (void)kiln_loop_idle_type(&result->type, &type);
            value = kiln_build_constant(node->function, node, result->name,
                                        kiln_tensor_new_splat(&type, 0));
        }
        if (!value)
            return kiln_throw(error, KILN_ERROR_INVALID, "%s (loop): operand %u is missing",
                              kiln_node_label(node), i + 2);
        result->type = value->type;
        kiln_value_replace(result, value);
    }
    if (*gone)
        kiln_node_remove(node);
    return TRUE;
}

/* --- what refuses to run --- */

bool
kiln_error_is_mismatch(const GError *error)
{
    return g_error_matches(error, KILN_ERROR, KILN_ERROR_SHAPE) ||
           g_error_matches(error, KILN_ERROR, KILN_ERROR_TYPE);
}

gboolean
kiln_region_refuse(KilnFunction *region, const KilnType *types, uint32_t n, const char *reason,
                   GError **error)
{
    kiln_function_clear(region);
    KilnAttrs_unknown attrs = { .op_type = "", .domain = "", .reason = reason, .mismatch = true };
    KilnNodeSpec spec = { .op = KILN_OP_unknown,
                          .attrs = &attrs,
                          .n_results = n,
                          .result_name = "refused",
                          .types = types };
    KilnNode *node = kiln_node_new(region, &spec, error);
    if (!node)
        return FALSE;
    g_autofree KilnValue **results = g_new0(KilnValue *, n + 1);
    for (uint32_t i = 0; i < n; i++)
        results[i] = kiln_node_result(node, i);
    return kiln_function_set_results(region, results, NULL, n, error);
}

/* --- types --- */

KilnType
kiln_type_join(KilnArena *arena, const KilnType *a, const KilnType *b)
{
    KilnType merged;
    if (a->contents)
        return kiln_type_merge(arena, a, b, &merged) ? merged : *a;
    if (a->rank != b->rank)
        return kiln_type_unranked(a->dtype);
    KilnType type = *a;
    type.layout = NULL;
    type.quant = NULL;
    for (int i = 0; i < type.rank; i++) {
        if (!kiln_type_equal_dims(a, i, b, i))
            kiln_type_set_dim(&type, i, NULL);
    }
    return type;
}

/* The type of result @i of an `if` from those of the branches that run, and from what is stated
 * where these say less. True where it is another one now. */
static bool
join_result(KilnNode *node, uint32_t i)
{
    const KilnAttrs_if *attrs = kiln_attrs(node, if);
    const KilnFunction *branches[] = { attrs->then_branch, attrs->else_branch };
    KilnType *stated = &node->results[i].type, joined = *stated;
    bool any = false;
    for (size_t b = 0; b < G_N_ELEMENTS(branches); b++) {
        const KilnType *type = &kiln_function_return(branches[b])->operands[i].value->type;
        if (kiln_region_refusal(branches[b]))
            continue;
        joined = any ? kiln_type_join(node->function->module->arena, &joined, type) : *type;
        any = true;
    }
    if (joined.rank < 0 || stated->contents) /* kiln_if_settle() finds those of sequences */
        return false;
    for (int d = 0; stated->rank == joined.rank && d < joined.rank; d++) {
        if (!kiln_type_knows_dim(&joined, d) ||
            kiln_flow_is_listed(node, kiln_type_dim_name(stated, d))) {
            joined.dims[d] = stated->dims[d];
            joined.open[d] = stated->open[d];
        }
    }
    if (kiln_type_equal(stated, &joined))
        return false;
    *stated = joined;
    kiln_node_touch(node);
    return true;
}

/* --- subgraphs --- */

/* A branch that is not taken, the body of a loop without an iteration. */
static bool
may_not_run(const KilnNode *node, const KilnFunction *region)
{
    return node->op == KILN_OP_loop || (node->op == KILN_OP_if && kiln_if_taken(node) != region);
}

/* As many results, of the same types, as the subgraph had: its readers are not affected. */
static gboolean
refuse(KilnFunction *region, const GError *failure, GError **error)
{
    const KilnNode *results = kiln_function_return(region);
    uint32_t n = results->n_operands;
    g_autofree KilnType *types = g_new0(KilnType, n + 1);
    for (uint32_t i = 0; i < n; i++)
        types[i] = kiln_type_unranked(results->operands[i].value->type.dtype);
    return kiln_region_refuse(region, types, n, failure->message, error);
}

gboolean
kiln_node_visit_regions(KilnNode *node, KilnRegionVisit visit, void *data, bool *changed,
                        GError **error)
{
    uint32_t n = 0, refused = 0;
    *changed = false;
    kiln_foreach_region (region, node) {
        GError *failure = NULL;
        if (!visit(region, data, &failure)) {
            if (!may_not_run(node, region) || !kiln_error_is_mismatch(failure)) {
                kiln_region_prefix_error(&failure, node, region);
                g_propagate_error(error, failure);
                return FALSE;
            }
            gboolean good = refuse(region, failure, error);
            g_clear_error(&failure);
            if (!good)
                return FALSE;
            *changed = true;
        }
        n++;
        refused += kiln_region_refusal(region) != NULL;
    }
    if (node->op != KILN_OP_if)
        return TRUE;
    if (refused == n)
        return kiln_throw(error, KILN_ERROR_SHAPE, "%s (if): neither branch can run: %s; %s",
                          kiln_node_label(node),
                          kiln_region_refusal(kiln_attrs(node, if)->then_branch),
                          kiln_region_refusal(kiln_attrs(node, if)->else_branch));
    for (uint32_t i = 0; i < node->n_results; i++)
        *changed |= join_result(node, i);
    return TRUE;
}

static gboolean
refine_region(KilnFunction *region, void *data, GError **error)
{
    (void)data;
    return kiln_function_refine(region, error);
}

gboolean
kiln_function_refine(KilnFunction *function, GError **error)
{
    kiln_foreach_node (node, function) {
        bool refined;
        if (node->op == KILN_OP_scan && !kiln_scan_check_node(node, error)) {
            kiln_prefix_error(error, "%s (scan): ", kiln_node_label(node));
            return FALSE;
        }
        if (!kiln_node_refine(node, &refined, error) ||
            !kiln_node_visit_regions(node, refine_region, NULL, &refined, error))
            return FALSE;
    }
    return TRUE;
}
