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
#include "graph/dim/dim_defined.h"
#include "graph/infer/infer.h"
#include "graph/module.h"
#include "graph/module/define.h"
#include "graph/module/flow.h"
#include "graph/module/flow_types.h"
#include "graph/module/folding.h"
#include "graph/node.h"
#include "graph/op/flow.h"
#include "graph/op/gather.h"
#include "passes/fold/constness.h"

#include <string.h>

/* A function that is called with inputs of the model: the entry, and where constants were folded
 * the functions that do it. */
typedef struct {
    KilnFunction *function;
    const uint32_t *numbers; /* per argument: the value that it takes (graph/module/folding.h);
                                NULL: the input of that place */
    uint32_t first_result, n_results; /* of a fold: the numbers of its results; else none */
} Callee;

/* In the order of their calls: a GArray of Callee. */
static GArray *
list_callees(const KilnModule *module)
{
    const KilnFolding *folding = module->folding;
    GArray *list = g_array_new(FALSE, FALSE, sizeof(Callee));
    for (guint i = 0; folding && i < folding->folds->len; i++) {
        const KilnFold *fold = g_ptr_array_index(folding->folds, i);
        Callee callee = { kiln_module_find_function(module, fold->function), fold->operands,
                          fold->first_result, fold->n_results };
        g_array_append_val(list, callee);
    }
    Callee entry = { kiln_module_entry(module),
                     folding ? (const uint32_t *)folding->entry->data : NULL, 0, 0 };
    g_array_append_val(list, entry);
    return list;
}

/* Of all values, by number. */
static uint32_t
count_values(const KilnModule *module)
{
    return module->folding ? kiln_folding_n_values(module->folding)
                           : kiln_module_inputs(module)->len;
}

static uint32_t
number_of(const Callee *callee, guint argument)
{
    return callee->numbers ? callee->numbers[argument] : argument;
}

/* Marks everything that the values of shape operands are computed from, and what decides which
 * subgraphs run. Walking backwards stops where a value depends on a type alone. */
typedef struct {
    const KilnFunction *function;
    GHashTable *nodes; /* KilnNode*, of subgraphs too; looked up, never iterated */
    bool *arguments;   /* of the function, by index: those of subgraphs are not known ahead */
} Slice;

static void
add_operands(GPtrArray *work, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++)
        g_ptr_array_add(work, node->operands[i].value);
}

static void
mark_backwards(Slice *slice, const KilnValue *from, bool arguments)
{
    g_autoptr(GPtrArray) work = g_ptr_array_new();
    g_ptr_array_add(work, (gpointer)from);
    while (work->len) {
        const KilnValue *value = g_ptr_array_remove_index(work, work->len - 1);
        if (!value || value->known || kiln_dtype_is_item(value->type.dtype))
            continue;
        if (!value->def) {
            if (arguments && ((const KilnArgument *)value)->function == slice->function)
                slice->arguments[value->index] = true;
            continue;
        }
        KilnNode *node = value->def;
        if (kiln_op_reads_type_only(node->op) || !g_hash_table_add(slice->nodes, node))
            continue;
        add_operands(work, node);
        kiln_foreach_region (region, node)
            add_operands(work, kiln_function_return(region));
    }
}

/* --- what data decides --- */

enum {
    KEY_FLOATS = 16 /* elements of a list that may state scales */
};

/* Whether programs are made for each value of @argument: of lists that state shapes, not of data.
 */
static bool
is_key(const KilnType *type)
{
    int64_t n = kiln_type_elements(type);
    return type->rank <= 1 && n <= (kiln_dtype_is_float(type->dtype) ? KEY_FLOATS : KILN_KNOWN_MAX);
}

/* Only the entry and its subgraphs have names that a run finds, and only where no constant is
 * computed by the first run. */
static bool
may_be_live(const KilnFunction *function)
{
    const KilnModule *module = function->module;
    return kiln_function_root(function) == kiln_module_entry(module) && !module->folding;
}

/* An argument of a subgraph, such as the number of an iteration. */
static bool
is_inner_argument(const KilnValue *value)
{
    return !value->def && ((const KilnArgument *)value)->function->owner;
}

/* A run finds out a dim of @type. */
static bool
has_live_dim(const KilnType *type)
{
    for (int d = 0; d < type->rank; d++) {
        if (type->open[d] && kiln_dim_hangs_on_data(type->open[d]))
            return true;
    }
    return false;
}

/* Whether data computes @value: then names are given to its elements in a run. */
static bool
is_live(const KilnValue *value, const KilnFunction *function)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) work = g_ptr_array_new();
    if (!may_be_live(function))
        return false;
    g_ptr_array_add(work, (gpointer)value);
    while (work->len) {
        const KilnValue *at = g_ptr_array_remove_index(work, work->len - 1);
        if (!at || at->known || kiln_value_constant(at) || !g_hash_table_add(seen, (gpointer)at))
            continue;
        if (kiln_dtype_is_item(at->type.dtype))
            return true;
        if (!at->def && (is_inner_argument(at) || !is_key(&at->type)))
            return true;
        if (!at->def)
            continue;
        if (kiln_op_reads_type_only(at->def->op)) {
            if (has_live_dim(&at->def->operands[0].value->type))
                return true;
            continue;
        }
        if (kiln_op_counts(at->def->op) || kiln_op_is_define(at->def->op) ||
            kiln_op_is_flow(at->def->op))
            return true;
        if (kiln_op_measures(at->def->op) && !kiln_value_constant(at->def->operands[0].value))
            return true;
        add_operands(work, at->def);
    }
    return false;
}

/* Both branches of @node give values of the same ranks, as far as the model says. */
static bool
has_ranks(const KilnNode *node)
{
    bool has = true;
    for (uint32_t r = 0; r < node->n_results; r++)
        has &= node->results[r].type.rank >= 0;
    return has;
}

/* Operand @i of @node, which decides its shape, gets names in a run. */
static bool
is_live_operand(const KilnNode *node, uint32_t i)
{
    const KilnValue *value = node->operands[i].value;
    if (!value || value->known || kiln_value_constant(value))
        return false;
    if (node->op == KILN_OP_if)
        return may_be_live(node->function) && has_ranks(node);
    return node->op == KILN_OP_compress
               ? may_be_live(node->function)
               : kiln_op_defines_operand(node->op, i) && is_live(value, node->function);
}

static void
mark_shape_operands(Slice *slice, const KilnFunction *function)
{
    kiln_foreach_node (node, function) {
        uint32_t operands = kiln_op_info(node->op)->shape_operands;
        for (uint32_t i = 0; i < node->n_operands && i < 32; i++) {
            if ((operands >> i & 1) && !is_live_operand(node, i))
                mark_backwards(slice, node->operands[i].value, true);
        }
        kiln_foreach_region (region, node)
            mark_shape_operands(slice, region);
    }
}

static void
add_live(const KilnFunction *function, GHashTable *live)
{
    kiln_foreach_node (node, function) {
        uint32_t operands = kiln_op_info(node->op)->shape_operands;
        for (uint32_t i = 0; i < node->n_operands && i < 32; i++) {
            if ((operands >> i & 1) && is_live_operand(node, i))
                g_hash_table_add(live, node);
        }
        kiln_foreach_region (region, node)
            add_live(region, live);
    }
}

/* Loops and branches come after what shapes hang on: the values of inputs that decide how often one
 * runs, or which of them, are none that a program is specialised for. */
static void
mark_loops(Slice *slice, const KilnFunction *function)
{
    kiln_foreach_node (node, function) {
        uint32_t n = node->op == KILN_OP_loop ? 2 : node->op == KILN_OP_if ? 1 : 0;
        for (uint32_t i = 0; i < n; i++)
            mark_backwards(slice, kiln_node_operand(node, i), false);
        kiln_foreach_region (region, node)
            mark_loops(slice, region);
    }
}

/* Results that others need to be known are walked back from, too: @wanted, by number. */
static void
slice_init(Slice *slice, const Callee *callee, const bool *wanted)
{
    const KilnFunction *function = callee->function;
    const KilnNode *results = kiln_function_return(function);
    slice->function = function;
    slice->nodes = g_hash_table_new(NULL, NULL);
    slice->arguments = g_new0(bool, function->arguments->len + 1);
    mark_shape_operands(slice, function);
    for (uint32_t r = 0; r < callee->n_results; r++) {
        if (wanted[callee->first_result + r])
            mark_backwards(slice, results->operands[r].value, true);
    }
    mark_loops(slice, function);
}

static void
slice_clear(Slice *slice)
{
    g_hash_table_unref(slice->nodes);
    g_free(slice->arguments);
}

/* What shapes and branches of any function hang on, by number: whoever makes a value is looked at
 * behind those that take it. */
static bool *
find_wanted(const KilnModule *module, const GArray *callees)
{
    bool *wanted = g_new0(bool, count_values(module) + 1);
    for (guint c = callees->len; c-- > 0;) {
        const Callee *callee = &g_array_index(callees, Callee, c);
        Slice slice;
        slice_init(&slice, callee, wanted);
        for (guint i = 0; i < callee->function->arguments->len; i++)
            wanted[number_of(callee, i)] |= slice.arguments[i];
        slice_clear(&slice);
    }
    return wanted;
}

bool *
kiln_value_inputs(const KilnModule *module)
{
    g_autoptr(GArray) callees = list_callees(module);
    const GPtrArray *inputs = kiln_module_inputs(module);
    bool *wanted = find_wanted(module, callees);
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
    Slice slice;
    const KilnTarget *target;
    GHashTable *live; /* KilnNode* with operands that get names; looked up only */
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
        add_live(body, settle->live);
    mark_shape_operands(&settle->slice, body);
    mark_loops(&settle->slice, body);
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
hangs_on_dims(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands && i < 32; i++) {
        const KilnValue *value = node->operands[i].value;
        if (kiln_op_defines_operand(node->op, i) && value && is_live_operand(node, i))
            return true;
    }
    return false;
}

/* Gives names to what data decides in @node, whose types are inferred. */
static gboolean
define_dims(const Settle *settle, KilnNode *node, GError **error)
{
    bool changed = kiln_node_define(node);
    if (settle->live && may_be_live(node->function) && !kiln_concat_define(node, &changed, error))
        return FALSE;
    if (settle->live && (g_hash_table_contains(settle->live, node) || hangs_on_dims(node))) {
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

static gboolean
settle_node(Settle *settle, KilnNode *node, GError **error)
{
    bool ignored,
        wanted = node->op != KILN_OP_const && g_hash_table_contains(settle->slice.nodes, node);
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
        return kiln_loop_settle(node, settle_body, settle, error);
    if (!kiln_node_visit_regions(node, settle_nodes, settle, &ignored, error))
        return FALSE;
    return kiln_if_settle(node, error);
}

static gboolean
settle_types(const Callee *callee, const bool *wanted, GHashTable *live, const KilnTarget *target,
             GError **error)
{
    Settle settle = { .target = target, .live = live };
    slice_init(&settle.slice, callee, wanted);
    gboolean fine = settle_nodes(callee->function, &settle, error);
    slice_clear(&settle.slice);
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
        const Callee *callee = &g_array_index(callees, Callee, c);
        for (guint i = 0; i < callee->function->arguments->len; i++) {
            const KilnArgument *input = number_of(callee, i) < inputs->len
                                            ? g_ptr_array_index(inputs, number_of(callee, i))
                                            : NULL;
            if (input)
                kiln_function_argument(callee->function, i)->value.type = input->value.type;
        }
    }
    return TRUE;
}

static gboolean
bind_values(const Callee *callee, const KilnBinding *bindings, guint n_inputs, GError **error)
{
    for (guint i = 0; i < callee->function->arguments->len; i++) {
        uint32_t number = number_of(callee, i);
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
hand_on(const Callee *callee, guint i, const KilnValue *result, bool wanted, GError **error)
{
    KilnArgument *argument = kiln_function_argument(callee->function, i);
    argument->value.type = result->type;
    KilnTensor *tensor = wanted ? literal_tensor(result) : NULL;
    return !tensor || bind_tensor(callee->function, argument, tensor, error);
}

/* The results of @maker, which is settled, are what others take. */
static gboolean
hand_on_results(const Callee *maker, const bool *wanted, const GArray *callees, GError **error)
{
    const KilnNode *results = kiln_function_return(maker->function);
    for (guint c = 0; results && c < callees->len; c++) {
        const Callee *callee = &g_array_index(callees, Callee, c);
        for (guint i = 0; i < callee->function->arguments->len; i++) {
            uint32_t number = number_of(callee, i), r = number - maker->first_result;
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
    add_live(kiln_module_entry(module), live);
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
    g_autoptr(GArray) callees = list_callees(clone);
    g_autofree bool *wanted = find_wanted(clone, callees);
    g_autoptr(GHashTable) live = find_live(clone);
    guint n = kiln_module_inputs(clone)->len;
    if (!bind_inputs(clone, callees, bindings, error))
        return NULL;
    for (guint c = 0; c < callees->len; c++) {
        const Callee *callee = &g_array_index(callees, Callee, c);
        if (bindings && !bind_values(callee, bindings, n, error))
            return NULL;
        if (!settle_types(callee, wanted, live, target, error) ||
            (c + 1 < callees->len && !hand_on_results(callee, wanted, callees, error)))
            return NULL;
    }
    return g_steal_pointer(&clone);
}
