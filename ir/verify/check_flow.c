/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of branches and loops: their functions are there, and operands are what these take and
 * give. Dims may differ: those of a body hold for one iteration. */
#include "graph/type.h"
#include "ir/flow.h"
#include "ir/verify/check_priv.h"

/* A weight that @function writes would keep its value from call to call. */
static gboolean
check_stateless(const KilnIRFunction *function, GError **error)
{
    bool any = false;
    for (guint i = 0; i < function->weights->len && !any; i++)
        any = !((const KilnBuffer *)g_ptr_array_index(function->weights, i))->is_const;
    if (!any)
        return TRUE;
    kiln_foreach_instr (instr, function) {
        for (uint32_t i = 0; i < instr->n_operands; i++) {
            KilnBuffer *buffer = instr->operands[i].buffer;
            const bool writes = buffer && instr->operands[i].access != KILN_ACCESS_IN;
            if (writes && kiln_buffer_origin(buffer)->kind == KILN_BUFFER_WEIGHT)
                return kiln_throw(error, KILN_ERROR_INVALID,
                                  "@%s: expected a func that writes to no weight, because a branch "
                                  "or loop runs it, found one that writes to %s",
                                  function->name, kiln_buffer_origin(buffer)->name);
        }
    }
    return TRUE;
}

static gboolean
check_function(const KilnInstr *instr, const KilnIRFunction *function, uint32_t n_inputs,
               uint32_t n_outputs, GError **error)
{
    if (!function)
        return kiln_throw(error, KILN_ERROR_INVALID, "no func of the module has the name of %s",
                          instr->kind == KILN_INSTR_loop ? "its body" : "a branch");
    if (function == instr->function)
        return kiln_throw(error, KILN_ERROR_INVALID, "@%s runs itself", function->name);
    if (function->inputs->len != n_inputs)
        return kiln_throw(error, KILN_ERROR_INVALID, "@%s: expected %u inputs, found %u",
                          function->name, n_inputs, function->inputs->len);
    if (function->outputs->len != n_outputs)
        return kiln_throw(error, KILN_ERROR_INVALID, "@%s: expected %u outputs, found %u",
                          function->name, n_outputs, function->outputs->len);
    if (instr->function->open && !function->open)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "@%s: expected a func with dims, as @%s has them, found one without",
                          function->name, instr->function->name);
    return check_stateless(function, error);
}

/* Operand @i is an element of type @type, or a stack of such where @stacked. */
static gboolean
check_like(const KilnCheck *check, uint32_t i, const KilnType *type, bool stacked, GError **error)
{
    const KilnType *found = kiln_check_type(check, i);
    g_autofree char *text = kiln_type_to_string(type);
    g_autofree char *expected =
        g_strdup_printf(stacked ? "a stack of %s" : "the rank and element type of %s", text);
    if (!found)
        return kiln_throw(error, KILN_ERROR_INVALID, "operand %u is required, found none", i);
    return (found->dtype == type->dtype && found->rank == type->rank + stacked) ||
           kiln_check_throw(check, i, expected, error);
}

static const KilnType *
type_of(const GPtrArray *buffers, uint32_t i)
{
    return &((const KilnBuffer *)g_ptr_array_index(buffers, i))->type;
}

static gboolean
check_list(const KilnCheck *check, uint32_t i, uint32_t n, GError **error)
{
    const KilnType *type = kiln_check_type(check, i);
    return (type && type->dtype == KILN_DTYPE_i64 && type->rank == 1 && type->dims[0] == n) ||
           kiln_check_throw(check, i, "a list of i64, one for each dim or result that is decided",
                            error);
}

/* Direct results are as the function gives them; the others are listed. */
static gboolean
check_results(const KilnCheck *check, const KilnFlowOperands *at, const KilnIRFunction *function,
              uint32_t first, uint32_t first_stacked, GError **error)
{
    const KilnInts *decided = kiln_flow_decided(check->instr);
    uint32_t direct = 0;
    for (uint32_t r = 0; r < at->n_results; r++) {
        if (kiln_flow_is_held(check->instr, r))
            continue;
        if (!check_like(check, direct++, type_of(function->outputs, first + r), r >= first_stacked,
                        error))
            return FALSE;
    }
    for (uint32_t i = 0; i < decided->n; i++) {
        bool ordered = i < 2 || i % 2 || decided->v[i] >= decided->v[i - 2];
        if (decided->n % 2 || !ordered || decided->v[i] < 0 ||
            decided->v[i] >= (i % 2 ? KILN_MAX_RANK : at->n_results))
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "decided: expected pairs of a result and a dim, in order");
    }
    return !at->n_held || (check_list(check, at->counts, decided->n / 2, error) &&
                           check_list(check, at->held, at->n_held, error));
}

static gboolean
check_names(const KilnInstr *instr, GError **error)
{
    uint32_t names = kiln_flow_names(instr)->n, numbers = kiln_flow_numbers(instr)->n;
    return names == numbers ||
           kiln_throw(error, KILN_ERROR_INVALID, "expected a number for each of %u names, found %u",
                      names, numbers);
}

static gboolean
check_scalar(const KilnCheck *check, uint32_t i, KilnDType dtype, GError **error)
{
    const KilnType *type = i == UINT32_MAX ? NULL : kiln_check_type(check, i);
    if (i == UINT32_MAX || (type && type->dtype == dtype && kiln_type_elements(type) == 1))
        return TRUE;
    return kiln_check_throw(check, i, dtype == KILN_DTYPE_bool ? "one bool" : "one i64", error);
}

static gboolean
check_sides(const KilnInstr *instr, const KilnFlowOperands *at, GError **error)
{
    if (at->captures <= instr->n_operands)
        return TRUE;
    return kiln_throw(error, KILN_ERROR_INVALID, "expected %u operands or more, found %u",
                      at->captures, instr->n_operands);
}

gboolean
kiln_check_branch(KilnCheck *check, GError **error)
{
    const KilnInstr *instr = check->instr;
    const KilnFlowOperands at = kiln_flow_operands(instr);
    if (!check_names(instr, error) || !check_sides(instr, &at, error) ||
        !check_scalar(check, at.condition, KILN_DTYPE_bool, error))
        return FALSE;
    for (int b = 0; b < 2; b++) {
        const KilnIRFunction *function = kiln_flow_function(instr, b);
        if (!check_function(instr, function, at.n_captures, at.n_results, error) ||
            !check_results(check, &at, function, 0, at.n_results, error))
            return FALSE;
        for (uint32_t i = 0; i < at.n_captures; i++) {
            if (!check_like(check, at.captures + i, type_of(function->inputs, i), false, error))
                return FALSE;
        }
    }
    return TRUE;
}

gboolean
kiln_check_loop(KilnCheck *check, GError **error)
{
    const KilnInstr *instr = check->instr;
    const KilnInstrAttrs_loop *attrs = kiln_instr_attrs(instr, loop);
    if (attrs->carried < 0 || attrs->scanned < 0 || attrs->carried > instr->n_operands ||
        attrs->scanned > instr->n_operands)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "expected numbers of operands as carried and scanned");
    const KilnFlowOperands at = kiln_flow_operands(instr);
    const KilnIRFunction *body = kiln_flow_function(instr, false);
    uint32_t own = 2 + at.n_carried + at.n_scanned, asks = attrs->asks ? 1 : 0;
    if (!check_names(instr, error) || !check_sides(instr, &at, error) ||
        !check_scalar(check, at.limit, KILN_DTYPE_i64, error) ||
        !check_scalar(check, at.condition, KILN_DTYPE_bool, error) ||
        !check_function(instr, body, own + at.n_captures, at.n_results + asks, error) ||
        !check_results(check, &at, body, asks, at.n_carried, error))
        return FALSE;
    if (at.n_results < at.n_carried)
        return kiln_throw(error, KILN_ERROR_INVALID, "expected a result for each carried value");
    for (uint32_t i = 0; i < at.n_carried + at.n_scanned + at.n_captures; i++) {
        bool scanned = i >= at.n_carried && i < at.n_carried + at.n_scanned;
        if (!check_like(check, at.carried + i, type_of(body->inputs, 2 + i), scanned, error))
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_check_take(KilnCheck *check, GError **error)
{
    const KilnType *held = kiln_check_type(check, 1);
    int64_t index = kiln_instr_attrs(check->instr, take)->index;
    return (held->dtype == KILN_DTYPE_i64 && held->rank == 1 && index >= 0 &&
            index < held->dims[0]) ||
           kiln_check_throw(check, 1, "a list that has the index", error);
}

gboolean
kiln_check_refuse(KilnCheck *check, GError **error)
{
    const char *reason = kiln_instr_attrs(check->instr, refuse)->reason;
    return (reason && *reason) ||
           kiln_throw(error, KILN_ERROR_INVALID, "reason: expected a text, found none");
}
