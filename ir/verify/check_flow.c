/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of branches and loops: their functions are there, and operands are what these take and
 * give. Dims of what is carried may differ: those of a body hold for one iteration. Lengths that
 * are scanned are compared in a run, for a function may stand at the numbers of another one. */
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

/* Operand @i is an element of type @type, or a stack of such where @stacked. Dims that are numbers
 * for all runs are those of @type where it is @exact. */
static gboolean
check_like(const KilnCheck *check, uint32_t i, const KilnType *type, bool stacked, bool exact,
           GError **error)
{
    const KilnBuffer *buffer = kiln_instr_operand(check->instr, i);
    if (!buffer)
        return kiln_throw(error, KILN_ERROR_INVALID, "operand %u is required, found none", i);
    if (kiln_buffer_is_strided(buffer))
        return kiln_check_throw(check, i, "a dense buffer, not rows with gaps", error);
    const KilnType *found = &buffer->type;
    bool same =
        found->dtype == type->dtype && found->rank == type->rank + stacked &&
        (stacked ? !found->layout && !type->layout : g_strcmp0(found->layout, type->layout) == 0);
    for (int d = 0; same && exact && d < type->rank; d++) {
        int at = d + stacked;
        same = type->open[d] || found->open[at] || type->dims[d] == found->dims[at];
    }
    if (same)
        return TRUE;
    g_autofree char *text = kiln_type_to_string(type);
    g_autofree char *expected = g_strconcat(
        stacked ? "a stack of " : "", exact ? "" : "the rank and element type of ", text, NULL);
    return kiln_check_throw(check, i, expected, error);
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

/* The operands that are written, which are the first ones. */
static uint32_t
n_written(const KilnInstr *instr)
{
    uint32_t n = 0;
    while (n < instr->n_operands && instr->operands[n].access == KILN_ACCESS_OUT)
        n++;
    return n;
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
                        false, error))
            return FALSE;
    }
    for (uint32_t i = 0; i + 1 < decided->n; i += 2) {
        uint32_t r = (uint32_t)decided->v[i];
        int rank = type_of(function->outputs, first + r)->rank + (r >= first_stacked);
        if (decided->v[i + 1] >= rank)
            return kiln_throw(
                error, KILN_ERROR_INVALID,
                "decided: result %u: expected a dim below its rank %d, found %" G_GINT64_FORMAT, r,
                rank, decided->v[i + 1]);
    }
    return TRUE;
}

/* Pairs of a result and a dim, in order, and lists with room for them. */
static gboolean
check_decided(const KilnCheck *check, const KilnFlowOperands *at, GError **error)
{
    const KilnInts *decided = kiln_flow_decided(check->instr);
    bool good = decided->n % 2 == 0;
    for (uint32_t i = 0; good && i < decided->n; i += 2)
        good = decided->v[i] >= 0 && decided->v[i] < at->n_results && decided->v[i + 1] >= 0 &&
               (!i || decided->v[i] > decided->v[i - 2] ||
                (decided->v[i] == decided->v[i - 2] && decided->v[i + 1] > decided->v[i - 1]));
    if (!good)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "decided: expected pairs of a result and a dim, in order");
    if (!at->n_held)
        return TRUE;
    if (at->n_direct + 2 > n_written(check->instr))
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "expected two lists behind the results, found %u results",
                          n_written(check->instr));
    return check_list(check, at->counts, decided->n / 2, error) &&
           check_list(check, at->held, at->n_held, error);
}

static gboolean
check_names(const KilnInstr *instr, GError **error)
{
    uint32_t names = kiln_flow_names(instr)->n, numbers = kiln_flow_numbers(instr)->n;
    return names == numbers ||
           kiln_throw(error, KILN_ERROR_INVALID, "expected a number for each of %u names, found %u",
                      names, numbers);
}

/* One element of @dtype in all runs. */
static bool
is_one(const KilnType *type, KilnDType dtype)
{
    bool one = type && type->dtype == dtype && !type->layout;
    for (int d = 0; one && d < type->rank; d++)
        one = !type->open[d] && type->dims[d] == 1;
    return one;
}

static gboolean
check_scalar(const KilnCheck *check, uint32_t i, KilnDType dtype, GError **error)
{
    return i == UINT32_MAX || is_one(kiln_check_type(check, i), dtype) ||
           kiln_check_throw(check, i, dtype == KILN_DTYPE_bool ? "one bool" : "one i64", error);
}

/* What a body takes or returns beside what it is given. */
static gboolean
check_own(const KilnIRFunction *body, const GPtrArray *buffers, uint32_t i, const char *what,
          KilnDType dtype, GError **error)
{
    const KilnType *type = type_of(buffers, i);
    if (is_one(type, dtype))
        return TRUE;
    g_autofree char *found = kiln_type_to_string(type);
    return kiln_throw(error, KILN_ERROR_INVALID, "@%s: %s: expected one %s, found %s", body->name,
                      what, kiln_dtype_name(dtype), found);
}

/* As many operands as the attributes say, and none that is written behind those that are read. */
static gboolean
check_sides(const KilnInstr *instr, const KilnFlowOperands *at, GError **error)
{
    if (at->captures > instr->n_operands)
        return kiln_throw(error, KILN_ERROR_INVALID, "expected %u operands or more, found %u",
                          at->captures, instr->n_operands);
    for (uint32_t i = n_written(instr); i < instr->n_operands; i++) {
        if (instr->operands[i].access != KILN_ACCESS_IN)
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "operand %u: expected @in behind the results, found another access",
                              i);
    }
    return TRUE;
}

gboolean
kiln_check_branch(KilnCheck *check, GError **error)
{
    const KilnInstr *instr = check->instr;
    const KilnFlowOperands at = kiln_flow_operands(instr);
    if (!check_names(instr, error) || !check_sides(instr, &at, error) ||
        !check_decided(check, &at, error) ||
        !check_scalar(check, at.condition, KILN_DTYPE_bool, error))
        return FALSE;
    for (int b = 0; b < 2; b++) {
        const KilnIRFunction *function = kiln_flow_function(instr, b);
        if (!check_function(instr, function, at.n_captures, at.n_results, error) ||
            !check_results(check, &at, function, 0, at.n_results, error))
            return FALSE;
        for (uint32_t i = 0; i < at.n_captures; i++) {
            if (!check_like(check, at.captures + i, type_of(function->inputs, i), false, true,
                            error))
                return FALSE;
        }
    }
    return TRUE;
}

/* A flag for each scanned operand and stacked result. What is stacked backwards needs the number of
 * iterations before the first one. */
static gboolean
check_backwards(const KilnInstr *instr, const KilnFlowOperands *at, GError **error)
{
    const KilnInstrAttrs_loop *attrs = kiln_instr_attrs(instr, loop);
    const KilnInts list = attrs->backwards;
    uint32_t expected = at->n_scanned + at->n_results - at->n_carried;
    bool stacks = false;
    if (list.n && list.n != expected)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "backwards: expected a flag for each of %u scanned operands and stacked "
                          "results, found %u",
                          expected, list.n);
    for (uint32_t i = 0; i < list.n; i++) {
        if (list.v[i] != 0 && list.v[i] != 1)
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "backwards: expected 0 or 1, found %" G_GINT64_FORMAT, list.v[i]);
        stacks |= i >= at->n_scanned && list.v[i];
    }
    return !stacks || (at->n_scanned && !attrs->limited && !attrs->tested && !attrs->asks) ||
           kiln_throw(error, KILN_ERROR_INVALID,
                      "backwards: expected a loop that scans to the end, found one that may end "
                      "before");
}

static gboolean
check_body(const KilnCheck *check, const KilnFlowOperands *at, const KilnIRFunction *body,
           uint32_t asks, GError **error)
{
    if (!check_function(check->instr, body, 2 + at->n_carried + at->n_scanned + at->n_captures,
                        at->n_results + asks, error) ||
        !check_own(body, body->inputs, 0, "input 0, the iteration", KILN_DTYPE_i64, error) ||
        !check_own(body, body->inputs, 1, "input 1, the condition", KILN_DTYPE_bool, error) ||
        (asks &&
         !check_own(body, body->outputs, 0, "output 0, the condition", KILN_DTYPE_bool, error)))
        return FALSE;
    for (uint32_t i = 0; i < at->n_carried + at->n_scanned + at->n_captures; i++) {
        bool scanned = i >= at->n_carried && i < at->n_carried + at->n_scanned;
        if (!check_like(check, at->carried + i, type_of(body->inputs, 2 + i), scanned, true, error))
            return FALSE;
    }
    for (uint32_t k = 0; k < at->n_carried; k++) {
        const KilnType *before = type_of(body->inputs, 2 + k);
        const KilnType *after = type_of(body->outputs, asks + k);
        if (before->dtype == after->dtype && before->rank == after->rank &&
            g_strcmp0(before->layout, after->layout) == 0)
            continue;
        g_autofree char *expected = kiln_type_to_string(before);
        g_autofree char *found = kiln_type_to_string(after);
        return kiln_throw(
            error, KILN_ERROR_INVALID,
            "@%s: output %u: expected the rank and element type of %s, which the next "
            "iteration reads, found %s",
            body->name, asks + k, expected, found);
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
                          "carried, scanned: expected numbers of operands, of which there are %u, "
                          "found %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                          instr->n_operands, attrs->carried, attrs->scanned);
    const KilnFlowOperands at = kiln_flow_operands(instr);
    const KilnIRFunction *body = kiln_flow_function(instr, false);
    uint32_t asks = attrs->asks ? 1 : 0;
    if (!check_names(instr, error) || !check_sides(instr, &at, error))
        return FALSE;
    if (at.n_results < at.n_carried)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "expected a result for each of %u carried values, found %u results",
                          at.n_carried, at.n_results);
    return check_decided(check, &at, error) &&
           check_scalar(check, at.limit, KILN_DTYPE_i64, error) &&
           check_scalar(check, at.condition, KILN_DTYPE_bool, error) &&
           check_body(check, &at, body, asks, error) &&
           check_results(check, &at, body, asks, at.n_carried, error) &&
           check_backwards(instr, &at, error);
}

/* The branch or loop that alone writes @list, as what it holds; NULL where there is none. */
static const KilnInstr *
holder_of(const KilnBuffer *list)
{
    const KilnInstr *holder = NULL;
    if (list->kind != KILN_BUFFER_ALLOC)
        return NULL;
    kiln_foreach_buffer_use (use, list) {
        const KilnInstr *user = use->user;
        bool reads = use->access == KILN_ACCESS_IN && user->kind == KILN_INSTR_take;
        if (user->kind == KILN_INSTR_alloc || user->kind == KILN_INSTR_dealloc || reads)
            continue;
        if (holder || !kiln_instr_is_flow(user->kind))
            return NULL;
        const KilnFlowOperands at = kiln_flow_operands(user);
        if (!at.n_held || use->index != at.held)
            return NULL;
        holder = user;
    }
    return holder;
}

/* The result of @holder that it holds as number @index. */
static uint32_t
held_result(const KilnInstr *holder, int64_t index)
{
    const KilnInts *decided = kiln_flow_decided(holder);
    uint32_t i = 0;
    for (; i + 2 < decided->n && index; i += 2)
        index -= decided->v[i + 2] != decided->v[i];
    return (uint32_t)decided->v[i];
}

gboolean
kiln_check_take(KilnCheck *check, GError **error)
{
    const KilnType *held = kiln_check_type(check, 1);
    int64_t index = kiln_instr_attrs(check->instr, take)->index;
    const KilnInstr *holder = holder_of(kiln_instr_operand(check->instr, 1));
    if (!holder)
        return kiln_check_throw(check, 1,
                                "a list of held results that a branch or loop alone writes", error);
    if (held->dtype != KILN_DTYPE_i64 || held->rank != 1 || index < 0 || index >= held->dims[0])
        return kiln_check_throw(check, 1, "a list that has the index", error);
    const KilnIRFunction *function = kiln_flow_function(holder, false);
    const uint32_t r = held_result(holder, index);
    const bool loop = holder->kind == KILN_INSTR_loop;
    const uint32_t o = r + (loop && kiln_instr_attrs(holder, loop)->asks ? 1 : 0);
    if (!function || o >= function->outputs->len)
        return kiln_check_throw(check, 1, "a list of results of a function", error);
    return check_like(check, 0, type_of(function->outputs, o),
                      loop && r >= kiln_flow_operands(holder).n_carried, false, error);
}

gboolean
kiln_check_refuse(KilnCheck *check, GError **error)
{
    const char *reason = kiln_instr_attrs(check->instr, refuse)->reason;
    return (reason && *reason) ||
           kiln_throw(error, KILN_ERROR_INVALID, "reason: expected a text, found none");
}
