/* SPDX-License-Identifier: Apache-2.0 */
/* Specialisation: from a model with open dims, or shapes that depend on the values of inputs, to a
 * module whose types are all static.
 *
 * Shape inference follows integers through shape arithmetic (KilnValue.known); what it does not
 * follow - float scales, unusual operators - is evaluated here, node by node, where the operands
 * are literal and a shape, or which branch is taken, depends on the result. The branch that an `if`
 * takes is inlined on the way: the types of what follows are those of its results. */
#include "runtime/specialise.h"

#include "exec/eval.h"
#include "graph/base/budget.h"
#include "graph/base/item.h"
#include "graph/infer/infer.h"
#include "graph/module.h"
#include "graph/module/define.h"
#include "graph/module/flow.h"
#include "graph/module/flow_types.h"
#include "graph/module/folding.h"
#include "graph/module/loop_ranks.h"
#include "graph/module/sink.h"
#include "graph/node.h"
#include "graph/op/flow.h"
#include "graph/op/gather.h"
#include "runtime/specialise_slice.h"

#include <string.h>

bool *
kiln_value_inputs(const KilnModule *module)
{
    g_autoptr(GArray) callees = kiln_callees_list(module);
    const GPtrArray *inputs = kiln_module_inputs(module);
    bool *wanted = kiln_callees_wanted(module, callees);
    for (guint i = 0; i < inputs->len; i++)
        wanted[i] |= kiln_type_wants_element_rank(
            &((const KilnArgument *)g_ptr_array_index(inputs, i))->value.type);
    return wanted;
}

/* --- binding --- */

gboolean
kiln_binding_throw(const KilnBinding *binding, const char *input, const KilnType *type,
                   GError **error)
{
    KilnType found = kiln_type_make(type->dtype, binding->rank, binding->dims);
    g_autofree char *found_text = kiln_type_to_string(&found);
    g_autofree char *expected = kiln_type_to_string(type);
    bool overflows = kiln_type_is_static(&found) && kiln_type_bytes(&found) < 0;
    return kiln_throw(error, KILN_ERROR_SHAPE, "input %s: expected %s%s, found %s", input, expected,
                      overflows ? " of less than 2^63 bytes" : "", found_text);
}

bool
kiln_binding_fits(const KilnBinding *binding, const KilnType *type)
{
    KilnType found = kiln_type_make(type->dtype, binding->rank, binding->dims);
    bool fits = kiln_type_bytes(&found) >= 0 && (type->rank < 0 || type->rank == binding->rank);
    for (int i = 0; fits && i < type->rank; i++)
        fits = type->dims[i] < 0 || type->dims[i] == binding->dims[i];
    return fits;
}

bool
kiln_binding_is_open(const KilnBinding *binding)
{
    bool open = binding->rank < 0;
    for (int i = 0; i < binding->rank; i++)
        open |= binding->dims[i] < 0;
    return open;
}

bool
kiln_binding_may_fit(const KilnBinding *binding, const KilnType *type)
{
    bool fits = type->rank < 0 || type->rank == binding->rank;
    for (int i = 0; fits && i < type->rank; i++)
        fits = type->dims[i] < 0 || binding->dims[i] < 0 || type->dims[i] == binding->dims[i];
    return fits;
}

/* A name stands for one number wherever it occurs. */
static gboolean
bind_name(GHashTable *numbers, const char *name, int64_t number, GError **error)
{
    gpointer old;
    if (g_hash_table_lookup_extended(numbers, name, NULL, &old) && *(int64_t *)old != number)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "dim %s: expected one number, found %" G_GINT64_FORMAT
                          " and %" G_GINT64_FORMAT,
                          name, *(int64_t *)old, number);
    g_hash_table_replace(numbers, g_strdup(name), g_memdup2(&number, sizeof number));
    return TRUE;
}

static gboolean
bind_argument(KilnArgument *argument, const KilnBinding *binding, GHashTable *numbers,
              GError **error)
{
    KilnType *type = &argument->value.type;
    if (binding->constness)
        argument->constness = binding->constness;
    if (kiln_dtype_is_item(type->dtype) && binding->data) {
        int64_t rank;
        memcpy(&rank, binding->data, sizeof rank);
        *type = kiln_type_with_element_rank(argument->function->module->arena, type, (int)rank);
    }
    if (binding->rank < 0)
        return TRUE;
    if (!(kiln_binding_is_open(binding) ? kiln_binding_may_fit : kiln_binding_fits)(binding, type))
        return kiln_binding_throw(binding, argument->value.name, type, error);
    for (int i = 0; i < type->rank; i++) {
        const char *name = binding->dims[i] < 0 ? NULL : kiln_type_dim_name(type, i);
        if (name && !bind_name(numbers, name, binding->dims[i], error)) {
            kiln_prefix_error(error, "input %s: ", argument->value.name);
            return FALSE;
        }
    }
    for (int i = 0; i < binding->rank; i++) {
        if (type->rank >= 0 && binding->dims[i] < 0)
            continue;
        type->dims[i] = binding->dims[i];
        type->open[i] = NULL;
    }
    type->rank = binding->rank;
    return TRUE;
}

/* An input whose name for a dim another input has settled gets that number too. */
static void
apply_names(const GPtrArray *arguments, GHashTable *numbers)
{
    for (guint i = 0; i < arguments->len; i++) {
        KilnType *type = &((KilnArgument *)g_ptr_array_index(arguments, i))->value.type;
        for (int d = 0; d < type->rank; d++) {
            const char *name = kiln_type_dim_name(type, d);
            const int64_t *number = name ? g_hash_table_lookup(numbers, name) : NULL;
            if (number) {
                type->dims[d] = *number;
                type->open[d] = NULL;
            }
        }
    }
}

static bool
look_up(void *numbers, const char *name, int64_t *out)
{
    const int64_t *number = g_hash_table_lookup(numbers, name);
    if (number)
        *out = *number;
    return number != NULL;
}

/* Dim @d of @argument, which the model states as an expression: the names say what it is. */
static gboolean
apply_expression(KilnArgument *argument, int d, const KilnDim *stated, GHashTable *numbers,
                 GError **error)
{
    KilnType *type = &argument->value.type;
    int64_t number;
    if (!kiln_dim_evaluate(stated, look_up, numbers, &number, NULL))
        return TRUE; /* a name has no number yet */
    if (type->dims[d] >= 0 && type->dims[d] != number) {
        g_autofree char *text = kiln_dim_to_string(stated);
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "input %s: dim %d: expected %s = %" G_GINT64_FORMAT
                          ", found %" G_GINT64_FORMAT,
                          argument->value.name, d, text, number, type->dims[d]);
    }
    type->dims[d] = number;
    type->open[d] = NULL;
    return TRUE;
}

/* @stated: the types of @arguments in the model. */
static gboolean
apply_expressions(const GPtrArray *arguments, const KilnType *stated, GHashTable *numbers,
                  GError **error)
{
    for (guint i = 0; i < arguments->len; i++) {
        for (int d = 0; d < stated[i].rank; d++) {
            const KilnDim *dim = kiln_type_dim_name(&stated[i], d) ? NULL : stated[i].open[d];
            if (dim && !apply_expression(g_ptr_array_index(arguments, i), d, dim, numbers, error))
                return FALSE;
        }
    }
    return TRUE;
}

/* Readers of the argument read a literal with the bytes of @tensor, which is taken over; the
 * argument stays in the signature. */
static gboolean
bind_tensor(KilnFunction *function, KilnArgument *argument, KilnTensor *tensor, GError **error)
{
    KilnValue *value = &argument->value;
    KilnAttrs_const attrs = { .value = kiln_module_add_constant(function->module, value->name,
                                                                tensor, &value->type) };
    KilnNodeSpec spec = {
        .op = KILN_OP_const, .attrs = &attrs, .before = function->first, .result_name = value->name
    };
    KilnNode *literal = kiln_node_new(function, &spec, error);
    if (literal)
        kiln_value_replace(value, kiln_node_result(literal, 0));
    return literal != NULL;
}

static gboolean
bind_value(KilnFunction *function, KilnArgument *argument, const void *data, GError **error)
{
    if (kiln_dtype_is_item(argument->value.type.dtype)) /* the rank of its elements is bound */
        return TRUE;
    KilnTensor *tensor = kiln_tensor_new_copy(&argument->value.type, data, error);
    return tensor && bind_tensor(function, argument, tensor, error);
}

/* --- evaluation of what inference does not follow --- */

static KilnTensor *
literal_tensor(const KilnValue *value)
{
    const KilnConstant *constant = kiln_value_constant(value);
    return constant ? kiln_tensor_copy(constant->tensor) : kiln_value_known_tensor(value);
}

static void
free_tensors(KilnTensor **tensors, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        kiln_tensor_free(tensors[i]);
    g_free(tensors);
}

static gboolean
evaluate(KilnNode *node, const KilnTarget *target, GError **error)
{
    KilnTensor **operands = g_new0(KilnTensor *, node->n_operands + 1);
    KilnTensor **results = g_new0(KilnTensor *, node->n_results + 1);
    bool literal = !(kiln_op_info(node->op)->traits & (KILN_TRAIT_RANDOM | KILN_TRAIT_SIDE_EFFECT |
                                                       KILN_TRAIT_STATE | KILN_TRAIT_REGION));
    literal &= !kiln_dtype_is_item(node->results[0].type.dtype); /* no constant holds one */
    for (uint32_t i = 0; literal && i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        operands[i] = value ? literal_tensor(value) : NULL;
        literal = !value || operands[i];
    }
    gboolean fine = TRUE;
    if (literal) {
        fine =
            kiln_target_evaluate(target, node, (const KilnTensor *const *)operands, results, error);
        for (uint32_t i = 0; fine && i < node->n_results; i++) {
            KilnValue *old = &node->results[i];
            KilnValue *value =
                kiln_build_constant(node->function, node, old->name, g_steal_pointer(&results[i]));
            old->type = value->type; /* inference may have known less */
            kiln_value_replace(old, value);
        }
    }
    free_tensors(operands, node->n_operands);
    free_tensors(results, node->n_results);
    return fine;
}

/* --- types --- */

typedef struct {
    KilnShapeSlice slice;
    const KilnTarget *target;
    GHashTable *live; /* KilnNode* with operands that get names; looked up only */
    bool moved;       /* nodes moved into branches */
} Settle;

static gboolean settle_node(Settle *settle, KilnNode *node, GError **error);

static gboolean
settle_nodes(KilnFunction *function, void *data, GError **error)
{
    kiln_foreach_node_safe (node, function) {
        if (!settle_node(data, node, error) || !kiln_checkpoint(error))
            return FALSE;
    }
    return TRUE;
}

/* The body of a loop, or a copy of it, whose nodes nobody has marked. */
static gboolean
settle_body(KilnFunction *body, void *data, GError **error)
{
    Settle *settle = data;
    if (settle->live)
        kiln_live_add(body, settle->slice.stated, settle->live);
    kiln_shape_slice_add_shapes(&settle->slice, body);
    kiln_shape_slice_add_loops(&settle->slice, body);
    return settle_nodes(body, data, error);
}

/* The types in the branch first, so that what is inlined fits. Nobody looks at the other one. */
static gboolean
settle_taken(Settle *settle, KilnNode *node, KilnFunction *branch, GError **error)
{
    if (settle_nodes(branch, settle, error))
        return kiln_if_inline(node, branch, error);
    kiln_region_prefix_error(error, node, branch);
    return FALSE;
}

/* An operand of @node, whose types are inferred, decides its shape and is computed from dims that
 * a run finds out, in a way that inference does not follow. */
static bool
hangs_on_dims(const KilnNode *node, const KilnModule *stated)
{
    for (uint32_t i = 0; i < node->n_operands && i < 32; i++) {
        const KilnValue *value = node->operands[i].value;
        if (kiln_op_defines_operand(node->op, i) && value && kiln_live_operand(node, i, stated))
            return true;
    }
    return false;
}

/* Gives names to what data decides in @node, whose types are inferred. */
static gboolean
define_dims(const Settle *settle, KilnNode *node, GError **error)
{
    bool changed = kiln_node_define(node);
    if (settle->live && kiln_live_may_be(node->function) &&
        !kiln_concat_define(node, &changed, error))
        return FALSE;
    if (settle->live &&
        (g_hash_table_contains(settle->live, node) || hangs_on_dims(node, settle->slice.stated))) {
        if (node->op == KILN_OP_compress)
            return kiln_compress_define(node, error);
        if (!kiln_node_define_by_others(node, error))
            return FALSE;
        if (!kiln_node_is_linked(node))
            return TRUE;
        if (!kiln_node_define_operands(node, &changed, error))
            return FALSE;
    }
    return !changed || kiln_node_reinfer(node, error);
}

/* @to, a copy of @from, is marked as that is, and so are the nodes in its subgraphs. */
static void
mark_copy(Settle *settle, const KilnNode *from, KilnNode *to)
{
    if (g_hash_table_contains(settle->slice.nodes, from))
        g_hash_table_add(settle->slice.nodes, to);
    if (settle->live && g_hash_table_contains(settle->live, from))
        g_hash_table_add(settle->live, to);
    for (uint32_t i = 0; i < kiln_op_info(from->op)->n_attrs; i++) {
        const KilnFunction *region = kiln_node_region(from, i);
        KilnNode *copy = region ? kiln_node_region(to, i)->first : NULL;
        for (const KilnNode *node = region ? region->first : NULL; node && copy;
             node = node->next) {
            mark_copy(settle, node, copy);
            copy = copy->next;
        }
    }
}

static gboolean
settle_copy(KilnNode *copy, const KilnNode *original, void *data, GError **error)
{
    Settle *settle = data;
    if (copy != original)
        mark_copy(settle, original, copy);
    return settle_node(data, copy, error) && kiln_checkpoint(error);
}

static bool
comes_before(const KilnNode *node, const KilnNode *other)
{
    while (node && node != other)
        node = node->next;
    return node != NULL;
}

/* The first `if` of its function, but for @other, whose readers cannot be typed around it and whose
 * result @node reads. */
static KilnNode *
find_hidden(const Settle *settle, const KilnNode *node, const KilnNode *other)
{
    g_autoptr(GPtrArray) values = g_ptr_array_new();
    KilnNode *first = NULL;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (node->operands[i].value)
            g_ptr_array_add(values, node->operands[i].value);
    }
    kiln_node_add_captures(node, values);
    for (guint i = 0; i < values->len; i++) {
        const KilnValue *value = g_ptr_array_index(values, i);
        KilnNode *owner = value->def;
        if (!owner || owner == other || owner->function != node->function ||
            !g_hash_table_contains(settle->live, owner) || !kiln_if_hides_rank(value))
            continue;
        if (!first || comes_before(owner, first))
            first = owner;
    }
    return first;
}

/* @node moves into the `if` that it reads a value of unknown rank of; *@out_gone tells if it did.
 * Where it reads such values of several, the later ones move into the first one before. */
static gboolean
sink(Settle *settle, KilnNode *node, bool *out_gone, GError **error)
{
    KilnNode *owner = NULL, *other;
    *out_gone = false;
    if (!settle->live || !g_hash_table_size(settle->live) || node->op == KILN_OP_return ||
        !(owner = find_hidden(settle, node, NULL)))
        return TRUE;
    while (owner) {
        other = find_hidden(settle, node, owner);
        owner = kiln_if_sink(owner, other ? other : node, settle_copy, settle, error);
        if (!owner)
            return FALSE;
        g_hash_table_add(settle->live, owner);
        if (!other)
            break;
    }
    *out_gone = settle->moved = true;
    return TRUE;
}

/* @node is new, and the same as @original. */
static gboolean
settle_new(KilnNode *node, const KilnNode *original, void *data, GError **error)
{
    Settle *settle = data;
    kiln_live_add_node(node, settle->slice.stated, settle->live);
    return settle_copy(node, original, data, error);
}

/* Where the rank of what @node carries changes, another loop stands in its place. */
static gboolean
settle_loop(Settle *settle, KilnNode *node, GError **error)
{
    const KilnRankSettle rank_settle = { settle_new, settle_body, settle };
    g_autofree int32_t *ranks = g_new0(int32_t, node->n_operands + 1);
    g_autoptr(GError) why = NULL;
    if (kiln_loop_settle(node, settle_body, settle, ranks, &why))
        return TRUE;
    g_autoptr(GError) inner = NULL;
    if (node->op == KILN_OP_loop && settle->live && kiln_live_may_be(node->function) &&
        g_error_matches(why, KILN_ERROR, KILN_ERROR_UNSUPPORTED) &&
        kiln_loop_spread_ranks(node, ranks, &rank_settle, &inner))
        return TRUE;
    g_propagate_error(error, inner ? g_steal_pointer(&inner) : g_steal_pointer(&why));
    return FALSE;
}

static gboolean
settle_node(Settle *settle, KilnNode *node, GError **error)
{
    bool ignored, gone,
        wanted = node->op != KILN_OP_const && g_hash_table_contains(settle->slice.nodes, node);
    if (!sink(settle, node, &gone, error))
        return FALSE;
    if (gone)
        return TRUE;
    if (!kiln_node_reinfer(node, error) || !define_dims(settle, node, error))
        return FALSE;
    if (!kiln_node_is_linked(node))
        return TRUE; /* others stand in its place */
    if (node->op == KILN_OP_gather && !kiln_gather_check(node, error))
        return FALSE;
    if (node->op != KILN_OP_if && node->op != KILN_OP_loop && node->op != KILN_OP_scan)
        return !wanted || node->results[0].known || evaluate(node, settle->target, error);
    KilnFunction *branch = node->op == KILN_OP_if ? kiln_if_taken(node) : NULL;
    if (branch)
        return settle_taken(settle, node, branch, error);
    if (node->op == KILN_OP_loop &&
        kiln_loop_is_idle(kiln_node_operand(node, 0), kiln_node_operand(node, 1)))
        return kiln_loop_skip(node, &ignored, error);
    if (node->op != KILN_OP_if)
        return settle_loop(settle, node, error);
    if (!kiln_node_visit_regions(node, settle_nodes, settle, &ignored, error))
        return FALSE;
    return kiln_if_settle(node, error);
}

static gboolean
settle_types(const KilnCallee *callee, const KilnModule *stated, const bool *wanted, Settle settle,
             GError **error)
{
    kiln_shape_slice_init(&settle.slice, callee, stated, wanted);
    gboolean fine = settle_nodes(callee->function, &settle, error);
    settle.moved &= fine;
    if (settle.moved) /* names of dims follow from the names that values have now */
        fine = settle_nodes(callee->function, &settle, error);
    kiln_shape_slice_clear(&settle.slice);
    return fine;
}

/* --- the whole --- */

static gboolean
bind_inputs(KilnModule *module, const GArray *callees, const KilnBinding *bindings, GError **error)
{
    g_autoptr(GHashTable) numbers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    const GPtrArray *inputs = kiln_module_inputs(module);
    g_autofree KilnType *stated = g_new0(KilnType, inputs->len + 1);
    for (guint i = 0; i < inputs->len; i++)
        stated[i] = ((const KilnArgument *)g_ptr_array_index(inputs, i))->value.type;
    for (guint i = 0; bindings && i < inputs->len; i++) {
        if (!bind_argument(g_ptr_array_index(inputs, i), &bindings[i], numbers, error))
            return FALSE;
    }
    apply_names(inputs, numbers);
    if (!apply_expressions(inputs, stated, numbers, error))
        return FALSE;
    /* What other functions take of the signature is of the same types. */
    for (guint c = 0; module->folding && c < callees->len; c++) {
        const KilnCallee *callee = &g_array_index(callees, KilnCallee, c);
        for (guint i = 0; i < callee->function->arguments->len; i++) {
            const KilnArgument *input =
                kiln_callee_number(callee, i) < inputs->len
                    ? g_ptr_array_index(inputs, kiln_callee_number(callee, i))
                    : NULL;
            if (input)
                kiln_function_argument(callee->function, i)->value.type = input->value.type;
        }
    }
    return TRUE;
}

static gboolean
bind_values(const KilnCallee *callee, const KilnBinding *bindings, guint n_inputs, GError **error)
{
    for (guint i = 0; i < callee->function->arguments->len; i++) {
        uint32_t number = kiln_callee_number(callee, i);
        if (number < n_inputs && bindings[number].data &&
            !bind_value(callee->function, kiln_function_argument(callee->function, i),
                        bindings[number].data, error))
            return FALSE;
    }
    return TRUE;
}

/* Argument @i of @callee takes @result: of its type, and as a literal where its value is wanted and
 * known. */
static gboolean
hand_on(const KilnCallee *callee, guint i, const KilnValue *result, bool wanted, GError **error)
{
    KilnArgument *argument = kiln_function_argument(callee->function, i);
    argument->value.type = result->type;
    KilnTensor *tensor = wanted ? literal_tensor(result) : NULL;
    return !tensor || bind_tensor(callee->function, argument, tensor, error);
}

/* The results of @maker, which is settled, are what others take. */
static gboolean
hand_on_results(const KilnCallee *maker, const bool *wanted, const GArray *callees, GError **error)
{
    const KilnNode *results = kiln_function_return(maker->function);
    for (guint c = 0; results && c < callees->len; c++) {
        const KilnCallee *callee = &g_array_index(callees, KilnCallee, c);
        for (guint i = 0; i < callee->function->arguments->len; i++) {
            uint32_t number = kiln_callee_number(callee, i), r = number - maker->first_result;
            if (number >= maker->first_result && r < maker->n_results &&
                !hand_on(callee, i, results->operands[r].value, wanted[number], error))
                return FALSE;
        }
    }
    return TRUE;
}

/* Nodes of the entry and its subgraphs with operands that get names, as the model says before
 * inputs are bound. */
static GHashTable *
find_live(const KilnModule *module)
{
    GHashTable *live = g_hash_table_new(NULL, NULL);
    kiln_live_add(kiln_module_entry(module), module, live);
    return live;
}

bool
kiln_data_may_decide(const KilnModule *module)
{
    g_autoptr(GHashTable) live = find_live(module);
    return g_hash_table_size(live) > 0 || kiln_module_may_define(module);
}

KilnModule *
kiln_specialise(const KilnModule *module, const KilnBinding *bindings, const KilnTarget *target,
                GError **error)
{
    g_autoptr(KilnModule) clone = kiln_module_clone(module);
    g_autoptr(GArray) callees = kiln_callees_list(clone);
    g_autofree bool *wanted = kiln_callees_wanted(clone, callees);
    g_autoptr(GHashTable) live = find_live(clone);
    const Settle settle = { .target = target, .live = live };
    guint n = kiln_module_inputs(clone)->len;
    if (!bind_inputs(clone, callees, bindings, error))
        return NULL;
    for (guint c = 0; c < callees->len; c++) {
        const KilnCallee *callee = &g_array_index(callees, KilnCallee, c);
        if (bindings && !bind_values(callee, bindings, n, error))
            return NULL;
        if (!settle_types(callee, module, wanted, settle, error) ||
            (c + 1 < callees->len && !hand_on_results(callee, wanted, callees, error)))
            return NULL;
    }
    return g_steal_pointer(&clone);
}
