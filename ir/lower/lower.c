/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering: a graph function of static types becomes a list of instructions over buffers.
 *
 * First a walk backwards marks the values that are wanted as buffers: what shapes and known
 * integers decide alone is not, so that arithmetic on shapes leaves nothing behind. Then a walk
 * forwards emits instructions. A value that an instruction produces and that is returned exactly
 * once is written to the output buffer outright; what else is returned is copied there at the end.
 * Allocs stand before the instruction that writes them and deallocs at the end of the function:
 * passes move them. */
#include "ir/lower/lower_priv.h"

#include "graph/base/budget.h"
#include "graph/dim/dim_defined.h"
#include "graph/module/define.h"
#include "graph/module/flow.h"
#include "graph/module/layout.h"
#include "graph/node.h"
#include "graph/op/offload.h"
#include "graph/op/reshape.h"
#include "graph/op/structure.h"
#include "graph/plugin/plugin.h"
#include "ir/open.h"

#include <string.h>

/* --- errors --- */

gboolean
kiln_lower_throw(const KilnNode *node, KilnError code, GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    return kiln_throw(error, code, "%s (%s): %s", kiln_node_label(node),
                      kiln_op_info(node->op)->name, message);
}

gboolean
kiln_lower_throw_unknown(const KilnNode *node, uint32_t i, GError **error)
{
    return kiln_lower_throw(node, KILN_ERROR_UNSUPPORTED, error,
                            "value of operand %u (%s) is known only at run time", i,
                            kiln_node_operand(node, i)->name);
}

/* --- what is wanted --- */

static bool
defines(const KilnNode *node)
{
    KilnDefined ignored[KILN_DEFINED_MAX];
    return kiln_node_defines(node, ignored) > 0;
}

/* Every result is known: no instruction computes it. */
static bool
is_decided(const KilnNode *node)
{
    if (defines(node))
        return false;
    for (uint32_t r = 0; r < node->n_results; r++) {
        const KilnValue *value = &node->results[r];
        if (!value->known || value->known->n != kiln_type_elements(&value->type))
            return false;
    }
    return node->n_results && node->op != KILN_OP_const;
}

bool
kiln_lower_wants(const KilnLower *l, const KilnNode *node, uint32_t r)
{
    return r < node->n_results && g_hash_table_contains(l->wanted, &node->results[r]);
}

static bool
is_wanted(const KilnLower *l, const KilnNode *node)
{
    if (kiln_op_info(node->op)->traits & (KILN_TRAIT_SIDE_EFFECT | KILN_TRAIT_STATE))
        return true;
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (kiln_lower_wants(l, node, r))
            return true;
    }
    return defines(node); /* dims of other values hang on it */
}

bool
kiln_lower_reads(const KilnNode *node, uint32_t i)
{
    if (i >= 32)
        return true;
    const KilnLowering *lowering = kiln_lowering_of(node->op);
    uint32_t unread = kiln_op_info(node->op)->shape_operands & ~lowering->reads;
    return !((unread | lowering->ignores) >> i & 1);
}

static void
find_wanted(KilnLower *l)
{
    kiln_foreach_node_reverse (node, l->graph) {
        if (!is_wanted(l, node) || is_decided(node))
            continue;
        if (kiln_op_is_flow(node->op)) {
            g_autoptr(GPtrArray) captures = kiln_lower_captures(node);
            for (guint i = 0; i < captures->len; i++)
                g_hash_table_add(l->wanted, g_ptr_array_index(captures, i));
        }
        const bool results = node->op == KILN_OP_return && l->parts;
        for (uint32_t i = results ? l->parts->first_result : 0; i < node->n_operands; i++) {
            KilnValue *value = node->operands[i].value;
            if (value && kiln_lower_reads(node, i))
                g_hash_table_add(l->wanted, value);
        }
    }
}

/* --- what subgraphs read from around them --- */

/* A value that the function of a subgraph makes itself. */
static bool
is_own(const KilnValue *value)
{
    return value->def && (value->def->op == KILN_OP_const || is_decided(value->def));
}

GPtrArray *
kiln_lower_captures(const KilnNode *node)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    g_autoptr(GHashTable) wanted = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    GPtrArray *captures = g_ptr_array_new();
    kiln_foreach_region (region, node) {
        KilnLower inner = { .graph = region, .wanted = wanted };
        find_wanted(&inner);
    }
    kiln_node_add_captures(node, all);
    for (guint i = 0; i < all->len; i++) {
        KilnValue *value = g_ptr_array_index(all, i);
        if (g_hash_table_contains(wanted, value) && !is_own(value) && g_hash_table_add(seen, value))
            g_ptr_array_add(captures, value);
    }
    return captures;
}

/* --- weights --- */

KilnBuffer *
kiln_lower_weight(KilnLower *l, const char *name, KilnTensor *tensor, const KilnType *type)
{
    return kiln_ir_add_constant(l->ir, name, tensor, type);
}

static gboolean
lower_const(KilnLower *l, const KilnNode *node, GError **error)
{
    KilnConstant *constant = kiln_attrs(node, const)->value;
    KilnTensorKind kind = constant->tensor->kind;
    if (!kiln_tensor_is_readable(constant->tensor))
        return kiln_lower_throw(node, KILN_ERROR_UNSUPPORTED, error,
                                "%s tensors are not supported, found constant @%s",
                                kind == KILN_TENSOR_SPARSE ? "sparse" : "extern", constant->name);
    KilnBuffer *buffer = g_hash_table_lookup(l->weights, constant);
    if (!buffer) {
        buffer = kiln_ir_add_weight(l->ir, constant);
        g_hash_table_insert(l->weights, constant, buffer);
    }
    g_hash_table_insert(l->buffers, &node->results[0], buffer);
    return TRUE;
}

/* Integers that depend on open dims. */
static gboolean
lower_extents(KilnLower *l, const KilnNode *node, uint32_t r, GError **error)
{
    const KilnValue *value = &node->results[r];
    int n = (int)value->known->n;
    KilnInstrAttrs_extents attrs = { .values = kiln_lower_ints_open(l, value->known->v,
                                                                    value->extents->v, n) };
    KilnBuffer *result = kiln_lower_result(l, node, r);
    return kiln_lower_emit(l, node, KILN_INSTR_extents, &result, 1, &attrs, error);
}

/* Results that are known become const weights, those of them that something reads. */
static gboolean
lower_decided(KilnLower *l, const KilnNode *node, GError **error)
{
    for (uint32_t r = 0; r < node->n_results; r++) {
        KilnValue *value = &node->results[r];
        if (!kiln_lower_wants(l, node, r))
            continue;
        if (value->extents) {
            if (!lower_extents(l, node, r, error))
                return FALSE;
            continue;
        }
        KilnBuffer *buffer =
            kiln_lower_weight(l, value->name, kiln_value_known_tensor(value), &value->type);
        g_hash_table_insert(l->buffers, value, buffer);
    }
    return TRUE;
}

/* --- steps --- */

KilnBuffer *
kiln_lower_operand(KilnLower *l, const KilnNode *node, uint32_t i)
{
    KilnValue *value = kiln_node_operand(node, i);
    if (!value)
        return NULL;
    bool flat = l->laid && kiln_layout_follows(node, i, l->laid);
    return kiln_lower_form(l, value, g_hash_table_lookup(l->buffers, value), flat);
}

KilnType
kiln_lower_type(const KilnLower *l, const KilnType *type)
{
    return type->rank < 0 ? kiln_type_of_items(l->ir->arena, KILN_DTYPE_optional, type) : *type;
}

KilnBuffer *
kiln_lower_result(KilnLower *l, const KilnNode *node, uint32_t r)
{
    KilnValue *value = &node->results[r];
    KilnBuffer *buffer = g_hash_table_lookup(l->outputs, value);
    if (!buffer) {
        KilnType type = kiln_lower_type(l, &value->type);
        if (type.layout)
            kiln_layout_flatten(&value->type, &type);
        buffer = kiln_ir_alloc(l->ir, value->name, &type, NULL);
    }
    g_hash_table_insert(l->buffers, value, buffer);
    return kiln_lower_form(l, value, buffer, l->laid);
}

/* The dim that a reshape states as -1 has no number where the others have a product of 0. */
static void
require_quotient(KilnLower *l, const KilnNode *node, const KilnValue *value)
{
    const KilnValue *target = node->op == KILN_OP_reshape ? kiln_node_operand(node, 1) : NULL;
    const KilnKnown *known = target ? target->known : NULL;
    KilnSize rest = kiln_size_make(1), one = kiln_size_make(1);
    bool infers = false;
    for (uint32_t d = 0; known && d < known->n; d++) {
        infers |= known->v[d] == -1;
        if (known->v[d] != -1)
            rest = kiln_size_mul(rest, kiln_type_size(&value->type, (int)d));
    }
    if (!infers || !rest.dim)
        return;
    KilnDimTable *table = l->ir->module->dims;
    const KilnDim *least = kiln_dim_min(table, rest.dim, kiln_dim_number(table, 1));
    kiln_open_require_equal(l->ir, kiln_size_open(MIN(rest.n, 1), least), one,
                            kiln_node_label(node));
}

/* Only the data of a run shows that @value has as many elements as @buffer. */
static bool
may_differ(const KilnLower *l, const KilnValue *value, const KilnBuffer *buffer)
{
    const KilnSize a = kiln_type_size_elements(&value->type);
    const KilnSize b = kiln_type_size_elements(&buffer->type);
    return l->ir->open && !kiln_size_equal(a, b) &&
           (kiln_dim_hangs_on_data(a.dim) || kiln_dim_hangs_on_data(b.dim));
}

static KilnType
line_of(const KilnType *type)
{
    const KilnSize size = kiln_type_size_elements(type);
    KilnType line = kiln_type_make(type->dtype, 1, &size.n);
    line.open[0] = size.dim;
    return line;
}

/* A view is no part of @buffer at numbers that no run has. So the elements are copied, as many as
 * @value has: none is left out and none is added, as a rule says. */
static gboolean
copy_elements(KilnLower *l, const KilnNode *node, const KilnValue *value, KilnBuffer **io_buffer,
              GError **error)
{
    KilnDimTable *table = l->ir->module->dims;
    const KilnType from = line_of(&(*io_buffer)->type), to = line_of(&value->type);
    const int64_t pads[] = { 0, to.dims[0] - from.dims[0] };
    const KilnDim *more =
        kiln_dim_sub(table, kiln_type_dim(&to, 0, table), kiln_type_dim(&from, 0, table));
    const KilnDim *const open[] = { NULL, more };
    const KilnInstrAttrs_pad attrs = { .pads = kiln_lower_ints_open(l, pads, open, 2),
                                       .mode = "constant" };
    g_autofree char *name = g_strconcat(value->name, "_copy", NULL);
    KilnBuffer *copy = kiln_ir_alloc(l->ir, name, &to, NULL);
    KilnBuffer *operands[] = { copy, kiln_ir_view(l->ir, name, *io_buffer, 0, &from, NULL) };
    *io_buffer = copy;
    return kiln_lower_emit(l, node, KILN_INSTR_pad, operands, 2, &attrs, error);
}

gboolean
kiln_lower_alias(KilnLower *l, const KilnNode *node, uint32_t r, KilnBuffer *buffer, GError **error)
{
    KilnValue *value = &node->results[r];
    if (l->laid) { /* the same form of the same bytes */
        g_hash_table_insert(l->buffers, value, buffer);
        return TRUE;
    }
    if (g_strcmp0(value->type.layout, buffer->type.layout) != 0)
        return kiln_lower_throw(node, KILN_ERROR_UNSUPPORTED, error,
                                "it changes the shape of %s, whose layout is blocked",
                                buffer->name);
    if (l->ir->open) {
        kiln_open_require_equal(l->ir, kiln_type_size_elements(&value->type),
                                kiln_type_size_elements(&buffer->type), kiln_node_label(node));
        require_quotient(l, node, value);
    }
    if (may_differ(l, value, buffer) && !copy_elements(l, node, value, &buffer, error))
        return FALSE;
    if (!kiln_type_equal(&value->type, &buffer->type))
        buffer = kiln_ir_view(l->ir, value->name, buffer, 0, &value->type, NULL);
    g_hash_table_insert(l->buffers, value, buffer);
    return TRUE;
}

void
kiln_lower_name(KilnLower *l, const KilnNode *node, KilnInstr *instr)
{
    const char *label = kiln_node_label(node);
    if (node->name || strcmp(kiln_instr_label(instr), label) != 0)
        instr->name = kiln_arena_strdup(l->ir->arena, label);
}

gboolean
kiln_lower_emit(KilnLower *l, const KilnNode *node, KilnInstrKind kind, KilnBuffer *const *operands,
                uint32_t n, const void *attrs, GError **error)
{
    if (l->laid)
        attrs = kiln_lower_flat_attrs(l, kind, attrs, l->laid);
    KilnInstr *instr = kiln_instr_new(l->ir, kind, operands, n, attrs, NULL, error);
    if (!instr) {
        kiln_prefix_error(error, "%s (%s): ", kiln_node_label(node), kiln_op_info(node->op)->name);
        return FALSE;
    }
    kiln_lower_name(l, node, instr);
    return TRUE;
}

gboolean
kiln_lower_generic(KilnLower *l, const KilnNode *node, KilnInstrKind kind, const void *attrs,
                   GError **error)
{
    g_autoptr(GPtrArray) operands = g_ptr_array_new();
    KilnAccess access;
    bool optional;
    uint32_t result = 0, operand = 0;
    for (uint32_t i = 0; kiln_instr_access(kind, i, &access, &optional); i++) {
        if (access == KILN_ACCESS_OUT) {
            bool write =
                result < node->n_results && (!optional || kiln_lower_wants(l, node, result));
            g_ptr_array_add(operands, write ? kiln_lower_result(l, node, result) : NULL);
            result++;
            continue;
        }
        while (operand < node->n_operands && !kiln_lower_reads(node, operand))
            operand++;
        bool variadic_end = operand >= node->n_operands && optional;
        if (variadic_end && result >= node->n_results)
            break;
        g_ptr_array_add(operands, kiln_lower_operand(l, node, operand++));
    }
    while (operands->len && !g_ptr_array_index(operands, operands->len - 1))
        g_ptr_array_set_size(operands, (int)operands->len - 1);
    return kiln_lower_emit(l, node, kind, (KilnBuffer *const *)operands->pdata, operands->len,
                           attrs, error);
}

void *
kiln_lower_field(KilnInstrKind kind, void *attrs, const char *name)
{
    const KilnInstrInfo *info = kiln_instr_info(kind);
    return (char *)attrs + kiln_attr_find(info->attrs, info->n_attrs, name)->offset;
}

/* --- nodes --- */

static gboolean
check_type(const KilnType *type, GError **error)
{
    if (kiln_type_bytes(type) >= 0)
        return TRUE;
    g_autofree char *text = kiln_type_to_string(type);
    return kiln_throw(error, KILN_ERROR_SHAPE, "expected %s, found %s",
                      kiln_type_is_static(type) ? "less than 2^63 bytes" : "a static type", text);
}

static gboolean
check_node(const KilnNode *node, GError **error)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    uint32_t needed = info->shape_operands & ~kiln_lowering_of(node->op)->known_at_run;
    for (uint32_t i = 0; i < node->n_operands && i < 32; i++) {
        const KilnValue *value = node->operands[i].value;
        bool open = value && (needed >> i & 1) && !value->known && !kiln_value_constant(value);
        if (open && kiln_type_elements(&value->type) != 0)
            return kiln_lower_throw_unknown(node, i, error);
    }
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (kiln_value_has_ranks(&node->results[r]))
            continue; /* it lies in an optional */
        if (!check_type(&node->results[r].type, error)) {
            kiln_prefix_error(error, "%s (%s): result %s: ", kiln_node_label(node), info->name,
                              node->results[r].name);
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean
throw_op(const KilnNode *node, GError **error)
{
    if (node->op != KILN_OP_unknown)
        return kiln_lower_throw(node, KILN_ERROR_UNSUPPORTED, error,
                                "this operator has no instruction");
    const KilnAttrs_unknown *attrs = kiln_attrs(node, unknown);
    if (attrs->mismatch)
        return kiln_throw(error, KILN_ERROR_SHAPE, "%s", attrs->reason);
    return kiln_lower_throw(node, KILN_ERROR_UNSUPPORTED, error,
                            "operator %s of domain \"%s\" in opset %" G_GINT64_FORMAT ": %s",
                            attrs->op_type, attrs->domain, attrs->opset,
                            attrs->reason ? attrs->reason : KILN_PLUGIN_HINT);
}

static gboolean
lower_to_namesake(KilnLower *l, const KilnNode *node, KilnInstrKind kind, GError **error)
{
    const KilnOpInfo *op = kiln_op_info(node->op);
    const KilnInstrInfo *instr = kiln_instr_info(kind);
    const KilnLowering *lowering = kiln_lowering_of(node->op);
    void *attrs = kiln_instr_attrs_new(kind, l->ir->arena);
    if (attrs)
        kiln_attrs_copy_matching(instr->attrs, instr->n_attrs, attrs, op->attrs, op->n_attrs,
                                 node->attrs, l->ir->arena);
    if (lowering->attrs && !lowering->attrs(l, node, attrs, error))
        return FALSE;
    return kiln_lower_generic(l, node, kind, attrs, error);
}

static gboolean
lower_node(KilnLower *l, const KilnNode *node, GError **error)
{
    KilnInstrKind kind = KILN_INSTR_copy;
    const KilnLowering *lowering = kiln_lowering_of(node->op);
    if (node->op == KILN_OP_const)
        return TRUE; /* in the first walk, so that weights keep their names */
    if (is_decided(node))
        return lower_decided(l, node, error);
    if (!lowering->lower && !kiln_lower_namesake(node, &kind))
        return throw_op(node, error);
    if (!check_node(node, error))
        return FALSE;
    l->laid = kiln_lower_is_flat(node) ? &node->results[0].type : NULL;
    gboolean good =
        lowering->lower ? lowering->lower(l, node, error) : lower_to_namesake(l, node, kind, error);
    l->laid = NULL;
    return good;
}

/* --- the function --- */

/* Inputs that are none of the graph function. */
static void
add_extra_input(KilnLower *l, const char *name, KilnDType dtype)
{
    const KilnType type = kiln_type_scalar(dtype);
    kiln_ir_add_buffer(l->ir, KILN_BUFFER_INPUT, name, &type);
}

static gboolean
add_captures(KilnLower *l, GError **error)
{
    for (guint i = 0; l->captures && i < l->captures->len; i++) {
        KilnValue *value = g_ptr_array_index(l->captures, i);
        if (!check_type(&value->type, error)) {
            kiln_prefix_error(error, "@%s: value %s: ", l->graph->name, value->name);
            return FALSE;
        }
        g_hash_table_insert(
            l->buffers, value,
            kiln_ir_add_buffer(l->ir, KILN_BUFFER_INPUT, value->name, &value->type));
    }
    return TRUE;
}

static gboolean
add_inputs(KilnLower *l, GError **error)
{
    if (l->parts && l->parts->counts) {
        add_extra_input(l, "iteration", KILN_DTYPE_i64);
        add_extra_input(l, "condition", KILN_DTYPE_bool);
    }
    for (guint i = 0; i < l->graph->arguments->len; i++) {
        KilnArgument *argument = kiln_function_argument(l->graph, i);
        const KilnValue *value = &argument->value;
        if (argument->variable)
            return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                              "@%s: argument %s: state kept between runs is not supported",
                              l->graph->name, value->name);
        if (!check_type(&value->type, error)) {
            kiln_prefix_error(error, "@%s: argument %s: ", l->graph->name, value->name);
            return FALSE;
        }
        KilnBuffer *buffer =
            kiln_ir_add_buffer(l->ir, KILN_BUFFER_INPUT, value->name, &value->type);
        g_hash_table_insert(l->buffers, &argument->value, buffer);
    }
    return add_captures(l, error);
}

static uint32_t
first_result(const KilnLower *l)
{
    return l->parts ? l->parts->first_result : 0;
}

/* The type of result @i of the function, as those around it see it. */
static const KilnType *
type_of_result(const KilnLower *l, uint32_t i, const KilnValue *value)
{
    const KilnType *type =
        l->parts && l->parts->types ? &l->parts->types[i - first_result(l)] : NULL;
    return type && type->rank < 0 ? type : &value->type;
}

/* One output per result; what is returned twice, or not made by an instruction, is copied there
 * later. */
static void
add_outputs(KilnLower *l, const KilnNode *results)
{
    g_autoptr(GHashTable) twice = g_hash_table_new(NULL, NULL);
    for (uint32_t i = first_result(l); i < results->n_operands; i++) {
        KilnValue *value = results->operands[i].value;
        const char *name = g_ptr_array_index(l->graph->result_names, i);
        const KilnType *stated = type_of_result(l, i, value);
        const KilnType type = kiln_lower_type(l, stated);
        KilnBuffer *buffer = kiln_ir_add_buffer(l->ir, KILN_BUFFER_OUTPUT, name, &type);
        buffer->unpacked = stated->rank < 0 && !l->parts;
        if (g_hash_table_contains(l->outputs, value) || stated->rank != value->type.rank)
            g_hash_table_add(twice, value);
        g_hash_table_insert(l->outputs, value, buffer);
    }
    for (uint32_t i = first_result(l); i < results->n_operands; i++) {
        if (g_hash_table_contains(twice, results->operands[i].value))
            g_hash_table_remove(l->outputs, results->operands[i].value);
    }
}

static gboolean
copy_results(KilnLower *l, const KilnNode *results, GError **error)
{
    for (uint32_t i = first_result(l); i < results->n_operands; i++) {
        KilnBuffer *output = g_ptr_array_index(l->ir->outputs, i - first_result(l));
        KilnBuffer *buffer = kiln_lower_operand(l, results, i);
        const bool packs = output->type.contents && !buffer->type.contents;
        const KilnInstrKind kind = packs ? KILN_INSTR_item_list : KILN_INSTR_copy;
        if (buffer != output &&
            !kiln_instr_new(l->ir, kind, (KilnBuffer *[]){ output, buffer }, 2, NULL, NULL, error))
            return FALSE;
    }
    return TRUE;
}

/* Constants around a subgraph, and what is known there, as its function has them. */
static gboolean
lower_around(KilnLower *l, GError **error)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    kiln_node_add_captures(l->graph->owner, all);
    for (guint i = 0; i < all->len; i++) {
        const KilnValue *value = g_ptr_array_index(all, i);
        if (!is_own(value) || !is_wanted(l, value->def) ||
            !g_hash_table_add(seen, (gpointer)value->def))
            continue;
        if (!(value->def->op == KILN_OP_const ? lower_const(l, value->def, error)
                                              : lower_decided(l, value->def, error)))
            return FALSE;
    }
    return TRUE;
}

/* Weights first: allocs make way for their names. */
static gboolean
lower_nodes(KilnLower *l, GError **error)
{
    const KilnNode *results = kiln_function_return(l->graph);
    if (l->parts && !lower_around(l, error))
        return FALSE;
    kiln_foreach_node (node, l->graph) {
        if (node->op == KILN_OP_const && is_wanted(l, node) && !lower_const(l, node, error))
            return FALSE;
    }
    kiln_foreach_node (node, l->graph) {
        if (node != results && is_wanted(l, node) && !lower_node(l, node, error))
            return FALSE;
        if (!kiln_checkpoint(error))
            return FALSE;
    }
    return TRUE;
}

/* By itself it is its body. Those who make kernels of it make it a call before. */
gboolean
kiln_lower_custom(KilnLower *l, const KilnNode *node, GError **error)
{
    const KilnFunction *around = l->graph, *body = kiln_attrs(node, custom_op)->body;
    const KilnNode *results = kiln_function_return(body);
    for (uint32_t i = 0; i < node->n_operands; i++)
        g_hash_table_insert(l->buffers, &kiln_function_argument(body, i)->value,
                            kiln_lower_operand(l, node, i));
    for (uint32_t r = 0; r < node->n_results; r++) {
        KilnBuffer *output = g_hash_table_lookup(l->outputs, &node->results[r]);
        if (output)
            g_hash_table_insert(l->outputs, results->operands[r].value, output);
    }
    l->graph = body;
    find_wanted(l);
    gboolean good = lower_nodes(l, error);
    for (uint32_t r = 0; good && r < node->n_results; r++)
        g_hash_table_insert(l->buffers, &node->results[r], kiln_lower_operand(l, results, r));
    l->graph = around;
    return good;
}

static gboolean
lower_function(KilnLower *l, GError **error)
{
    const KilnNode *results = kiln_function_return(l->graph);
    if (!results)
        return kiln_throw(error, KILN_ERROR_INVALID, "@%s: it returns nothing", l->graph->name);
    find_wanted(l);
    if (!add_inputs(l, error))
        return FALSE;
    add_outputs(l, results);
    if (!lower_nodes(l, error) || !copy_results(l, results, error))
        return FALSE;
    for (guint i = 0; i < l->ir->buffers->len; i++) {
        KilnBuffer *buffer = g_ptr_array_index(l->ir->buffers, i);
        if (buffer->kind == KILN_BUFFER_ALLOC)
            kiln_ir_dealloc(buffer, NULL);
    }
    return TRUE;
}

/* Lowers @function as @shape says: all but its tables, which are made here. */
static KilnIRFunction *
lower_as(const KilnLower *shape, const char *name, GError **error)
{
    const KilnFunction *function = shape->graph;
    g_autoptr(KilnIRFunction) ir = kiln_ir_function_new(function->module, name);
    KilnLower l = *shape;
    l.ir = ir;
    l.wanted = g_hash_table_new(NULL, NULL);
    l.buffers = g_hash_table_new(NULL, NULL);
    l.outputs = g_hash_table_new(NULL, NULL);
    l.weights = g_hash_table_new(NULL, NULL);
    l.forms = g_hash_table_new(NULL, NULL);
    ir->siblings = l.functions;
    if (function->module->binding)
        kiln_open_begin(ir, function->module->binding);
    gboolean good = lower_function(&l, error);
    g_hash_table_unref(l.wanted);
    g_hash_table_unref(l.buffers);
    g_hash_table_unref(l.outputs);
    g_hash_table_unref(l.weights);
    g_hash_table_unref(l.forms);
    return good ? g_steal_pointer(&ir) : NULL;
}

KilnIRFunction *
kiln_lower(const KilnFunction *function, GError **error)
{
    const KilnLower shape = { .graph = function };
    return lower_as(&shape, function->name, error);
}

gboolean
kiln_lower_into(KilnIRModule *ir, const KilnFunction *function, GError **error)
{
    const KilnLower shape = { .graph = function, .functions = ir->functions };
    KilnIRFunction *lowered = lower_as(&shape, function->name, error);
    if (lowered)
        g_ptr_array_add(ir->functions, lowered);
    return lowered != NULL;
}

static bool
has_function(const GPtrArray *functions, const char *name)
{
    for (guint i = 0; i < functions->len; i++) {
        if (strcmp(((const KilnIRFunction *)g_ptr_array_index(functions, i))->name, name) == 0)
            return true;
    }
    return false;
}

/* The name of a function for @region of @ir that no other has. */
static char *
name_of_region(const KilnLower *l, const KilnFunction *region)
{
    GString *name = g_string_new(NULL);
    g_string_printf(name, "%s.%s", l->ir->name, region->name);
    for (unsigned i = 2; has_function(l->functions, name->str); i++)
        g_string_printf(name, "%s.%s%u", l->ir->name, region->name, i);
    return g_string_free(name, FALSE);
}

/* The result that @node has: 1 where only the run of a branch knows the dim. */
static gboolean
refuse_result(KilnIRFunction *ir, const KilnNode *node, uint32_t r, const char *reason,
              const char *region, GError **error)
{
    KilnType type = node->results[r].type;
    if (type.rank < 0)
        type = kiln_type_of_items(ir->arena, KILN_DTYPE_optional, &node->results[r].type);
    for (int d = 0; d < type.rank; d++) {
        if (type.dims[d] < 0 || kiln_flow_is_listed(node, kiln_type_dim_name(&type, d)))
            kiln_type_set_dim(&type, d, kiln_dim_number(ir->module->dims, 1));
    }
    const KilnInstrAttrs_refuse attrs = { .reason = reason };
    KilnBuffer *output = kiln_ir_add_buffer(ir, KILN_BUFFER_OUTPUT, node->results[r].name, &type);
    KilnInstr *instr = kiln_instr_new(ir, KILN_INSTR_refuse, &output, 1, &attrs, NULL, error);
    if (instr)
        instr->name = kiln_arena_strdup(ir->arena, region);
    return instr != NULL;
}

KilnIRFunction *
kiln_lower_refused(KilnLower *l, const KilnNode *node, const KilnFunction *region,
                   const char *reason, const GPtrArray *captures, GError **error)
{
    g_autofree char *name = name_of_region(l, region);
    g_autoptr(KilnIRFunction) ir = kiln_ir_function_new(region->module, name);
    ir->siblings = l->functions;
    if (region->module->binding)
        kiln_open_begin(ir, region->module->binding);
    for (guint i = 0; i < captures->len; i++) {
        const KilnValue *value = g_ptr_array_index((GPtrArray *)captures, i);
        kiln_ir_add_buffer(ir, KILN_BUFFER_INPUT, value->name, &value->type);
    }
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (!refuse_result(ir, node, r, reason, region->name, error))
            return NULL;
    }
    g_ptr_array_add(l->functions, ir);
    return g_steal_pointer(&ir);
}

KilnIRFunction *
kiln_lower_region(KilnLower *l, const KilnNode *node, const KilnFunction *region,
                  const KilnRegionParts *parts, const GPtrArray *captures, GError **error)
{
    const KilnLower shape = {
        .graph = region, .functions = l->functions, .parts = parts, .captures = captures
    };
    if (!l->functions) {
        kiln_lower_throw(node, KILN_ERROR_UNSUPPORTED, error,
                         "a function alone has no subgraphs that a run decides");
        return NULL;
    }
    g_autofree char *name = name_of_region(l, region);
    KilnIRFunction *lowered = lower_as(&shape, name, error);
    if (lowered)
        g_ptr_array_add(l->functions, lowered);
    else
        kiln_region_prefix_error(error, node, region);
    return lowered;
}
