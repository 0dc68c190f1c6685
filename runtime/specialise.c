/* SPDX-License-Identifier: Apache-2.0 */
/* Specialisation: from a model with open dims, or shapes that depend on the values of inputs, to a
 * module whose types are all static.
 *
 * Shape inference follows integers through shape arithmetic (KilnValue.known); what it does not
 * follow - float scales, unusual operators - is evaluated here, node by node, where the operands
 * are literal and a shape depends on the result. */
#include "runtime/internal.h"

#include <string.h>

/* Marks everything that the values of shape operands are computed from. Walking backwards stops
 * where a value depends on a type alone. Marks are per value: nodes by id, arguments by index. */
typedef struct {
    bool *nodes;
    bool *arguments;
} Slice;

static void
mark_backwards(Slice *slice, const KilnValue *from)
{
    g_autoptr(GPtrArray) work = g_ptr_array_new();
    g_ptr_array_add(work, (gpointer)from);
    while (work->len) {
        const KilnValue *value = g_ptr_array_remove_index(work, work->len - 1);
        if (!value || value->known)
            continue;
        if (!value->def) {
            slice->arguments[value->index] = true;
            continue;
        }
        KilnNode *node = value->def;
        bool type_only =
            node->op == KILN_OP_shape || node->op == KILN_OP_size || node->op == KILN_OP_eye_like;
        if (slice->nodes[node->id] || type_only)
            continue;
        slice->nodes[node->id] = true;
        for (uint32_t i = 0; i < node->n_operands; i++)
            g_ptr_array_add(work, node->operands[i].value);
    }
}

static void
slice_init(Slice *slice, const KilnFunction *function)
{
    slice->nodes = g_new0(bool, function->next_id + 1);
    slice->arguments = g_new0(bool, function->arguments->len + 1);
    kiln_foreach_node (node, function) {
        uint32_t operands = kiln_op_info(node->op)->shape_operands;
        for (uint32_t i = 0; i < node->n_operands && i < 32; i++) {
            if (operands >> i & 1)
                mark_backwards(slice, node->operands[i].value);
        }
    }
}

bool *
kiln_value_arguments(const KilnFunction *function)
{
    Slice slice;
    slice_init(&slice, function);
    g_free(slice.nodes);
    return slice.arguments;
}

/* --- binding --- */

static gboolean
throw_binding(const KilnArgument *argument, const KilnBinding *binding, GError **error)
{
    KilnType found = kiln_type_make(argument->value.type.dtype, binding->rank, binding->dims);
    g_autofree char *found_text = kiln_type_to_string(&found);
    g_autofree char *expected = kiln_type_to_string(&argument->value.type);
    return kiln_throw(error, KILN_ERROR_SHAPE, "input %s: expected %s, found %s",
                      argument->value.name, expected, found_text);
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
    if (binding->rank < 0)
        return TRUE;
    if (!kiln_binding_fits(binding, type))
        return throw_binding(argument, binding, error);
    for (int i = 0; i < type->rank; i++) {
        const char *name = type->dims[i] < 0 ? type->dim_names[i] : NULL;
        if (name && !bind_name(numbers, name, binding->dims[i], error)) {
            g_prefix_error(error, "input %s: ", argument->value.name);
            return FALSE;
        }
    }
    type->rank = binding->rank;
    for (int i = 0; i < binding->rank; i++) {
        type->dims[i] = binding->dims[i];
        type->dim_names[i] = NULL;
    }
    return TRUE;
}

/* An input whose name for a dim another input has settled gets that number too. */
static void
apply_names(KilnFunction *function, GHashTable *numbers)
{
    for (guint i = 0; i < function->arguments->len; i++) {
        KilnType *type = &kiln_function_argument(function, i)->value.type;
        for (int d = 0; d < type->rank; d++) {
            const int64_t *number =
                type->dim_names[d] ? g_hash_table_lookup(numbers, type->dim_names[d]) : NULL;
            if (type->dims[d] < 0 && number) {
                type->dims[d] = *number;
                type->dim_names[d] = NULL;
            }
        }
    }
}

/* Readers of the argument read a literal with the bound bytes; the argument stays in the signature.
 */
static gboolean
bind_value(KilnFunction *function, KilnArgument *argument, const void *data, GError **error)
{
    KilnValue *value = &argument->value;
    KilnTensor *tensor = kiln_tensor_new_copy(&value->type, data, error);
    if (!tensor)
        return FALSE;
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

static gboolean
settle_types(KilnFunction *function, const KilnTarget *target, GError **error)
{
    Slice slice;
    slice_init(&slice, function);
    uint32_t marked = function->next_id;
    gboolean fine = TRUE;
    kiln_foreach_node_safe (node, function) {
        fine = kiln_node_reinfer(node, error);
        bool wanted = node->id < marked && slice.nodes[node->id] && node->op != KILN_OP_const;
        if (fine && wanted && !node->results[0].known)
            fine = evaluate(node, target, error);
        if (!fine)
            break;
    }
    g_free(slice.nodes);
    g_free(slice.arguments);
    return fine;
}

KilnModule *
kiln_specialise(const KilnModule *module, const KilnBinding *bindings, const KilnTarget *target,
                GError **error)
{
    g_autoptr(KilnModule) clone = kiln_module_clone(module);
    KilnFunction *entry = kiln_module_entry(clone);
    g_autoptr(GHashTable) numbers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    guint n = entry->arguments->len;
    for (guint i = 0; bindings && i < n; i++) {
        if (!bind_argument(kiln_function_argument(entry, i), &bindings[i], numbers, error))
            return NULL;
    }
    apply_names(entry, numbers);
    for (guint i = 0; bindings && i < n; i++) {
        KilnArgument *argument = kiln_function_argument(entry, i);
        if (bindings[i].data && !bind_value(entry, argument, bindings[i].data, error))
            return NULL;
    }
    return settle_types(entry, target, error) ? g_steal_pointer(&clone) : NULL;
}
