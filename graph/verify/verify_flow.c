/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier's view of branches and loops: what decides them has the right type, and what goes in
 * and out of their subgraphs has the same element type on both sides. Arguments and results were
 * counted before. Dims may differ: those of a body hold for one iteration. */
#include "graph/module.h"
#include "graph/module/define.h"
#include "graph/module/flow.h"
#include "graph/module/scan.h"
#include "graph/node.h"
#include "graph/op/flow.h"
#include "graph/verify/verify_priv.h"

/* @value: NULL, or one element of @dtype. */
static bool
check_scalar(KilnVerify *verify, const char *what, const KilnValue *value, KilnDType dtype)
{
    if (!value)
        return true;
    const KilnType *type = &value->type;
    int64_t n = kiln_type_is_static(type) ? kiln_type_elements(type) : 1;
    if (type->dtype == dtype && n == 1)
        return true;
    g_autofree char *found = kiln_type_to_string(type);
    return kiln_verify_throw(verify, "%s: expected one %s, found %s", what, kiln_dtype_name(dtype),
                             found);
}

/* Argument @i of @body is operand @i, or an element of it where it is @scanned. */
static bool
check_argument(KilnVerify *verify, const KilnFunction *body, uint32_t i, bool scanned)
{
    const KilnValue *outer = verify->node->operands[i].value;
    const KilnType *inner = &kiln_function_argument(body, i)->value.type;
    if (!outer)
        return kiln_verify_throw(verify, "operand %u is missing", i);
    bool ranks =
        !scanned || outer->type.rank < 0 || inner->rank < 0 || outer->type.rank == inner->rank + 1;
    if (outer->type.dtype == inner->dtype && ranks)
        return true;
    g_autofree char *expected = kiln_type_to_string(&outer->type);
    g_autofree char *found = kiln_type_to_string(inner);
    return kiln_verify_throw(verify, "subgraph @%s, argument %u: expected %s %s, found %s",
                             body->name, i, scanned ? "an element of" : "the element type of",
                             expected, found);
}

/* Result @r stacks what @body returns as number @from. */
static bool
check_stacked(KilnVerify *verify, const KilnFunction *body, uint32_t r, uint32_t from)
{
    const KilnType *whole = &verify->node->results[r].type;
    const KilnType *part = &kiln_function_return(body)->operands[from].value->type;
    if (whole->rank < 0 || part->rank < 0 || whole->rank == part->rank + 1)
        return true;
    g_autofree char *expected = kiln_type_to_string(part);
    g_autofree char *found = kiln_type_to_string(whole);
    return kiln_verify_throw(verify, "result %u: expected a stack of %s, found %s", r, expected,
                             found);
}

static bool
check_loop(KilnVerify *verify)
{
    const KilnNode *node = verify->node;
    const KilnFunction *body = kiln_attrs(node, loop)->body;
    if (node->n_operands < 2)
        return kiln_verify_throw(verify,
                                 "expected a trip count, a condition and what is carried, found "
                                 "%u operands",
                                 node->n_operands);
    if (node->n_results < node->n_operands - 2)
        return kiln_verify_throw(verify,
                                 "expected a result for each of %u carried values, found %u",
                                 node->n_operands - 2, node->n_results);
    if (!check_scalar(verify, "operand 0, the trip count", node->operands[0].value,
                      KILN_DTYPE_i64) ||
        !check_scalar(verify, "operand 1, the condition", node->operands[1].value,
                      KILN_DTYPE_bool) ||
        !check_scalar(verify, "argument 0 of the body, the iteration",
                      &kiln_function_argument(body, 0)->value, KILN_DTYPE_i64) ||
        !check_scalar(verify, "argument 1 of the body, the condition",
                      &kiln_function_argument(body, 1)->value, KILN_DTYPE_bool) ||
        !check_scalar(verify, "result 0 of the body, the condition",
                      kiln_function_return(body)->operands[0].value, KILN_DTYPE_bool))
        return false;
    for (uint32_t i = 2; i < node->n_operands; i++) {
        if (!check_argument(verify, body, i, false))
            return false;
    }
    for (uint32_t r = node->n_operands - 2; r < node->n_results; r++) {
        if (!check_stacked(verify, body, r, r + 1))
            return false;
    }
    return true;
}

static bool
check_scan(KilnVerify *verify)
{
    const KilnNode *node = verify->node;
    const KilnFunction *body = kiln_attrs(node, scan)->body;
    g_autoptr(GError) why = NULL;
    if (!kiln_scan_check_node(node, &why))
        return kiln_verify_throw(verify, "%s", why->message);
    uint32_t first, states;
    kiln_flow_carried(node, &first, &states);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (!check_argument(verify, body, i, i >= states))
            return false;
    }
    for (uint32_t r = states; r < node->n_results; r++) {
        const KilnType *whole = &node->results[r].type;
        int64_t axis = kiln_ints_at(kiln_attrs(node, scan)->scan_output_axes, r - states, 0);
        if (!check_stacked(verify, body, r, r))
            return false;
        if (whole->rank >= 0 && kiln_type_axis(whole, axis) < 0)
            return kiln_verify_throw(verify,
                                     "result %u: expected an axis of rank %d to stack along, found "
                                     "axis %" G_GINT64_FORMAT,
                                     r, whole->rank, axis);
    }
    return true;
}

bool
kiln_verify_flow(KilnVerify *verify)
{
    const KilnNode *node = verify->node;
    const KilnStrings *dims = kiln_flow_dims(node);
    if (!dims)
        return true;
    if (dims->n > KILN_DEFINED_MAX)
        return kiln_verify_throw(verify, "dims: expected at most %d names, found %u",
                                 KILN_DEFINED_MAX, dims->n);
    switch (node->op) {
    case KILN_OP_loop:
        return check_loop(verify);
    case KILN_OP_scan:
        return check_scan(verify);
    default:
        return check_scalar(verify, "operand 0, the condition", node->operands[0].value,
                            KILN_DTYPE_bool);
    }
}
