/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluating nodes of a graph one at a time: each is built anew in a module of its own, with shape
 * operands as constants, lowered and run there. */
#include "exec/eval.h"

#include "exec/interpret.h"
#include "graph/base/item.h"
#include "graph/binding.h"
#include "graph/function.h"
#include "graph/module.h"
#include "graph/module/define.h"
#include "graph/module/layout.h"
#include "graph/node.h"
#include "graph/op/offload.h"
#include "graph/op/structure.h"

/* One node alone in a module: its function returns all results of the node. */
typedef struct {
    KilnModule *module;
    KilnFunction *function;
    GPtrArray *inputs; /* const KilnTensor*, one per argument; empty where only types count */
    bool infer_types;  /* the node's own types do not count */
} Alone;

static void
alone_clear(Alone *alone)
{
    g_clear_pointer(&alone->module, kiln_module_free);
    g_clear_pointer(&alone->inputs, g_ptr_array_unref);
}

/* What the graph knows of operand @i as a tensor; NULL where it is known only at run time. */
static KilnTensor *
known_tensor(const KilnNode *node, uint32_t i)
{
    const KilnValue *value = kiln_node_operand(node, i);
    const KilnConstant *constant = kiln_value_constant(value);
    if (constant)
        return kiln_tensor_copy(constant->tensor);
    return kiln_value_known_tensor(value);
}

/* Gives @type, which has a layout, the dims of a payload of @dims. Those in blocks are no open
 * ones.
 */
static void
take_dims(KilnType *type, const int64_t *dims)
{
    const KilnType likely = kiln_type_at_hints(type);
    KilnLayout layout;
    if (!kiln_layout_of(&likely, &layout))
        return;
    for (int d = 0; d < type->rank; d++) {
        if (!type->open[d] || layout.block[d] > 1)
            continue;
        type->dims[d] = dims[layout.outer[d]];
        type->open[d] = NULL;
    }
}

/* The type of operand @i where it is @tensor: its dims, but quantization and layout of the value
 * (whose blocked payload has other dims). Without a tensor, open dims are as their hints. */
static KilnType
operand_type(const KilnNode *node, uint32_t i, const KilnTensor *tensor)
{
    KilnType type = kiln_node_operand(node, i)->type;
    if (!tensor)
        return kiln_type_at_hints(&type);
    if (type.layout) {
        take_dims(&type, tensor->type.dims);
        return type;
    }
    KilnType plain = tensor->type; /* its element type too, where types are inferred */
    plain.quant = type.quant;
    plain.contents = type.contents;
    return plain;
}

/* Dims that were open have numbers now: @type has a scale for each index of its axis. */
static gboolean
has_scales(const KilnNode *node, const KilnType *type, GError **error)
{
    gboolean good = kiln_quant_check(type, error);
    if (!good)
        kiln_prefix_error(error, "%s (%s): ", kiln_node_label(node), kiln_op_info(node->op)->name);
    return good;
}

/* Dims that have no number have one of their own where the node is alone; those of elements of a
 * sequence are not known. */
static KilnType
type_alone(KilnArena *arena, const KilnType *type)
{
    KilnType out = *type;
    for (int d = 0; d < type->rank; d++) {
        if (!type->open[d])
            continue;
        out.open[d] = NULL;
        out.dims[d] = KILN_DIM_UNKNOWN;
    }
    if (!type->contents || type->dtype == KILN_DTYPE_map)
        return out;
    const KilnType element = type_alone(arena, kiln_type_element(type));
    return kiln_type_of_items(arena, type->dtype, &element);
}

/* @type, of an item, with the rank that all tensors in @given (NULL: not known) have. */
static KilnType
item_type(KilnArena *arena, const KilnType *type, const KilnTensor *given)
{
    const KilnType alone = type_alone(arena, type);
    if (!given || !kiln_type_wants_element_rank(&alone))
        return alone;
    return kiln_type_with_element_rank(arena, &alone,
                                       kiln_item_element_rank(kiln_tensor_item(given)));
}

/* Operand @i of the node alone: a constant for what decides shapes, else an argument. */
static KilnValue *
add_operand(Alone *alone, const KilnNode *node, uint32_t i, const KilnTensor *const *operands,
            GError **error)
{
    const KilnTensor *given = operands ? operands[i] : NULL;
    g_autofree char *name = g_strdup_printf("operand_%u", i);
    if (kiln_op_is_shape_operand(node->op, i)) {
        KilnTensor *tensor = given ? kiln_tensor_copy(given) : known_tensor(node, i);
        if (tensor)
            return kiln_build_constant(alone->function, NULL, name, tensor);
    }
    KilnType type = operand_type(node, i, given);
    if (type.contents)
        type = item_type(alone->module->arena, &type, given);
    if (!has_scales(node, &type, error))
        return NULL;
    g_ptr_array_add(alone->inputs, (gpointer)given);
    KilnArgument *argument = kiln_function_add_argument(alone->function, name, &type, error);
    return argument ? &argument->value : NULL;
}

static gboolean
build_results(Alone *alone, KilnNode *copy, GError **error)
{
    g_autofree KilnValue **values = g_new0(KilnValue *, copy->n_results + 1);
    for (uint32_t r = 0; r < copy->n_results; r++) {
        values[r] = kiln_node_result(copy, r);
        if (!has_scales(copy, &values[r]->type, error))
            return FALSE;
    }
    return kiln_function_set_results(alone->function, values, NULL, copy->n_results, error);
}

/* Where data decides a dim, the function is open. */
static gboolean
stand(Alone *alone, GError **error)
{
    if (!kiln_module_defines(alone->module))
        return TRUE;
    const KilnDimBinding *binding = kiln_dim_binding_typical(alone->module, 0, 1);
    return binding ? kiln_module_stand_at(alone->module, binding, error)
                   : kiln_throw(error, KILN_ERROR_SHAPE, "expected a bound of what data decides");
}

/* @operands NULL: types and known values of the graph are all there is. */
static gboolean
build_alone(Alone *alone, const KilnNode *node, const KilnTensor *const *operands, GError **error)
{
    alone->module = kiln_module_new();
    alone->inputs = g_ptr_array_new();
    alone->function = kiln_function_new(alone->module, kiln_node_label(node));
    alone->module->mode = node->function->module->mode;
    alone->module->seed = node->function->module->seed;
    if (kiln_op_has(node->op, KILN_TRAIT_REGION))
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "%s (%s): subgraphs are not evaluated",
                          kiln_node_label(node), kiln_op_info(node->op)->name);
    g_autofree KilnValue **values = g_new0(KilnValue *, node->n_operands + 1);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        bool absent = !kiln_node_operand(node, i) || (operands && !operands[i]);
        if (!absent && !(values[i] = add_operand(alone, node, i, operands, error)))
            return FALSE;
    }
    g_autofree KilnType *types = g_new0(KilnType, node->n_results + 1);
    for (uint32_t r = 0; r < node->n_results; r++)
        types[r] = operands ? type_alone(alone->module->arena, &node->results[r].type)
                            : kiln_type_at_hints(&node->results[r].type);
    bool counts = kiln_op_counts(node->op), defines = kiln_op_is_define(node->op);
    KilnNodeSpec spec = { .op = defines ? KILN_OP_identity : node->op,
                          .name = kiln_node_label(node),
                          .operands = values,
                          .n_operands = node->n_operands,
                          .n_results = node->n_results,
                          .attrs = defines ? NULL : node->attrs,
                          .result_name = node->n_results ? node->results[0].name : NULL,
                          .types = alone->infer_types || counts ? NULL : types };
    KilnNode *copy = kiln_node_new(alone->function, &spec, error);
    if (copy && counts && kiln_node_forget_count(copy)) {
        if (!kiln_node_reinfer(copy, error) ||
            (kiln_node_define(copy) && !kiln_node_reinfer(copy, error)))
            return FALSE;
    }
    return copy && build_results(alone, copy, error) && stand(alone, error);
}

bool
kiln_target_supports(const KilnTarget *target, const KilnNode *node, char **reason)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRFunction) ir = NULL;
    Alone alone = { 0 };
    bool good = build_alone(&alone, node, NULL, &error);
    if (good)
        good = (ir = kiln_lower(alone.function, &error)) != NULL;
    for (const KilnInstr *instr = good ? ir->first : NULL; good && instr; instr = instr->next) {
        good = kiln_instr_is_bookkeeping(instr) || kiln_target_find(target, instr);
        if (!good && reason)
            *reason = g_strdup_printf("target %s has no kernel for %s", target->name,
                                      kiln_instr_info(instr->kind)->name);
    }
    if (error && reason)
        *reason = g_strdup(error->message);
    alone_clear(&alone);
    return good;
}

gboolean
kiln_target_evaluate(const KilnTarget *target, const KilnNode *node,
                     const KilnTensor *const *operands, KilnTensor **results, GError **error)
{
    const KilnEvaluateOptions options = { 0 };
    return kiln_target_evaluate_with(target, node, operands, &options, results, error);
}

/* --- nodes that were lowered before --- */

enum {
    LOWERED_MAX = 256, /* then they are forgotten */
};

/* A node that was built alone, and its instructions. */
typedef struct {
    Alone alone;
    const KilnNode *node; /* in there */
    KilnIRFunction *ir;
} Lowered;

struct KilnLoweredNodes {
    GHashTable *by_hash; /* of what decides the instructions → Lowered, the last of that hash */
};

static void
lowered_free(gpointer data)
{
    Lowered *lowered = data;
    g_clear_pointer(&lowered->ir, kiln_ir_function_free);
    alone_clear(&lowered->alone);
    g_free(lowered);
}

KilnLoweredNodes *
kiln_lowered_nodes_new(void)
{
    KilnLoweredNodes *lowered = g_new0(KilnLoweredNodes, 1);
    lowered->by_hash = g_hash_table_new_full(NULL, NULL, NULL, lowered_free);
    return lowered;
}

void
kiln_lowered_nodes_free(KilnLoweredNodes *lowered)
{
    if (!lowered)
        return;
    g_hash_table_unref(lowered->by_hash);
    g_free(lowered);
}

/* Types and attributes of @node say how it is lowered, and no value does. */
static bool
types_decide(const KilnNode *node)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    for (uint32_t i = 0; i < info->n_attrs; i++) {
        if (info->attrs[i].kind == KILN_ATTR_CONSTANT || info->attrs[i].kind == KILN_ATTR_FUNCTION)
            return false;
    }
    return !info->shape_operands;
}

static gpointer
hash_alike(const KilnNode *node, const KilnTensor *const *operands)
{
    gsize hash = (gsize)node->op + 1;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnType *type = operands[i] ? &operands[i]->type : NULL;
        hash = hash * 31 + (type ? (gsize)type->dtype + 2 : 1);
        for (int d = 0; type && d < type->rank; d++)
            hash = hash * 1000003 + (gsize)type->dims[d];
    }
    return GSIZE_TO_POINTER(hash | 1);
}

static bool
is_alike(const Lowered *lowered, const KilnNode *node, const KilnTensor *const *operands,
         bool infer_types)
{
    const KilnNode *other = lowered->node;
    const KilnOpInfo *info = kiln_op_info(node->op);
    if (other->op != node->op || other->n_operands != node->n_operands ||
        other->n_results != node->n_results || lowered->alone.infer_types != infer_types ||
        lowered->alone.module->mode != node->function->module->mode ||
        lowered->alone.module->seed != node->function->module->seed ||
        !kiln_attrs_equal(info->attrs, info->n_attrs, other->attrs, node->attrs))
        return false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = kiln_node_operand(other, i);
        if (!value != !operands[i])
            return false;
        KilnType type = operands[i] ? operand_type(node, i, operands[i]) : (KilnType){ 0 };
        if (value && !kiln_type_equal(&value->type, &type))
            return false;
    }
    for (uint32_t r = 0; r < node->n_results && !infer_types; r++) {
        if (!kiln_type_equal(&other->results[r].type, &node->results[r].type))
            return false;
    }
    return true;
}

/* --- one node --- */

static gboolean
lower_alone(Lowered *lowered, const KilnNode *node, const KilnTensor *const *operands,
            GError **error)
{
    if (!build_alone(&lowered->alone, node, operands, error))
        return FALSE;
    lowered->node = lowered->alone.function->first;
    while (lowered->node->op == KILN_OP_const)
        lowered->node = lowered->node->next;
    lowered->ir = kiln_lower(lowered->alone.function, error);
    return lowered->ir != NULL;
}

/* The one instruction of @ir that computes; NULL where there are several. */
static const KilnInstr *
only_instr(const KilnIRFunction *ir)
{
    const KilnInstr *only = NULL;
    kiln_foreach_instr (instr, ir) {
        if (kiln_instr_is_bookkeeping(instr))
            continue;
        if (only)
            return NULL;
        only = instr;
    }
    return only;
}

/* A reduction of equal elements, which takes no storage: one element of the result is found, where
 * the kernel knows how. */
static bool
reduce_equal(const Lowered *lowered, const KilnTarget *target, const KilnTensor *const *inputs,
             KilnTensor **results)
{
    uint8_t element[8], result[8] = { 0 };
    const KilnInstr *instr = only_instr(lowered->ir);
    const KilnKernel *kernel = instr ? kiln_target_find(target, instr) : NULL;
    if (!kernel || !kernel->of_equal || lowered->ir->inputs->len != 1 ||
        lowered->ir->outputs->len != 1 || inputs[0]->kind != KILN_TENSOR_SPLAT ||
        kiln_instr_operand(instr, 1) != g_ptr_array_index(lowered->ir->inputs, 0))
        return false;
    const KilnType *from = &inputs[0]->type;
    const KilnBuffer *to = g_ptr_array_index(lowered->ir->outputs, 0);
    if (to != kiln_instr_operand(instr, 0) || kiln_type_elements(from) < 1 ||
        kiln_type_elements(&to->type) < 1 || !kiln_tensor_is_splat(inputs[0], 1, element) ||
        !kernel->of_equal(instr, element, result))
        return false;
    KilnType type = kiln_type_make(to->type.dtype, to->type.rank, to->type.dims);
    results[0] = kiln_tensor_new_splat_bits(&type, result);
    return true;
}

static gboolean
run_lowered(const Lowered *lowered, const KilnTarget *target, const KilnEvaluateOptions *options,
            const KilnTensor *const *inputs, KilnTensor **results, GError **error)
{
    KilnInterpretation run = { .evaluate = kiln_graph_evaluate,
                               .inputs = inputs,
                               .outputs = results,
                               .recycler = options->recycler,
                               .threads = options->threads,
                               .seed = lowered->alone.module->seed };
    if (reduce_equal(lowered, target, inputs, results))
        return TRUE;
    return kiln_ir_interpret(lowered->ir, target, &run, error);
}

/* What was lowered before and does what @node does. NULL where there is none. */
static const Lowered *
find_alike(const KilnEvaluateOptions *options, const KilnNode *node,
           const KilnTensor *const *operands)
{
    const Lowered *lowered =
        options->lowered && types_decide(node)
            ? g_hash_table_lookup(options->lowered->by_hash, hash_alike(node, operands))
            : NULL;
    return lowered && is_alike(lowered, node, operands, options->infer_types) ? lowered : NULL;
}

static gboolean
run_alike(const Lowered *lowered, const KilnTarget *target, const KilnNode *node,
          const KilnTensor *const *operands, const KilnEvaluateOptions *options,
          KilnTensor **results)
{
    g_autofree const KilnTensor **inputs = g_new0(const KilnTensor *, node->n_operands + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (operands[i])
            inputs[n++] = operands[i];
    }
    return run_lowered(lowered, target, options, inputs, results, NULL);
}

static void
keep(KilnLoweredNodes *nodes, const KilnNode *node, const KilnTensor *const *operands,
     Lowered *lowered)
{
    if (!nodes || !types_decide(node)) {
        lowered_free(lowered);
        return;
    }
    g_clear_pointer(&lowered->alone.inputs, g_ptr_array_unref);
    if (g_hash_table_size(nodes->by_hash) >= LOWERED_MAX)
        g_hash_table_remove_all(nodes->by_hash);
    g_hash_table_replace(nodes->by_hash, hash_alike(node, operands), lowered);
}

/* A tensor as those that are computed: in a layout it has physical dims. */
static KilnTensor *
constant_tensor(const KilnConstant *constant, GError **error)
{
    if (!constant->type.layout)
        return kiln_tensor_copy(constant->tensor);
    KilnType type;
    g_autoptr(GBytes) bytes = kiln_tensor_view(constant->tensor, error);
    return bytes && kiln_payload_type(&constant->type, constant->name, &type, error)
               ? kiln_tensor_new_data(&type, bytes, error)
               : NULL;
}

gboolean
kiln_target_evaluate_with(const KilnTarget *target, const KilnNode *node,
                          const KilnTensor *const *operands, const KilnEvaluateOptions *options,
                          KilnTensor **results, GError **error)
{
    if (node->op == KILN_OP_const) {
        results[0] = constant_tensor(kiln_attrs(node, const)->value, error);
        return results[0] != NULL;
    }
    const Lowered *alike = find_alike(options, node, operands);
    if (alike && run_alike(alike, target, node, operands, options, results))
        return TRUE; /* where it fails, the error is to name this node */
    Lowered *lowered = g_new0(Lowered, 1);
    lowered->alone.infer_types = options->infer_types;
    if (!lower_alone(lowered, node, operands, error) ||
        !run_lowered(lowered, target, options,
                     (const KilnTensor *const *)lowered->alone.inputs->pdata, results, error)) {
        lowered_free(lowered);
        return FALSE;
    }
    keep(options->lowered, node, operands, lowered);
    return TRUE;
}
