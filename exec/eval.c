/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluating nodes of a graph one at a time: each is built anew in a module of its own, with shape
 * operands as constants, lowered and run there. */
#include "exec/eval.h"
#include "exec/eval_flow.h"
#include "exec/interpret.h"

#include "graph/binding.h"
#include "graph/function.h"
#include "graph/module.h"
#include "graph/module/define.h"
#include "graph/module/folding.h"
#include "graph/module/layout.h"
#include "graph/node.h"
#include "graph/op/flow.h"
#include "graph/op/flow.h"
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

/* Dims that have no number have one of their own where the node is alone. */
static KilnType
type_alone(const KilnType *type)
{
    KilnType out = *type;
    for (int d = 0; d < type->rank; d++) {
        if (!type->open[d])
            continue;
        out.open[d] = NULL;
        out.dims[d] = KILN_DIM_UNKNOWN;
    }
    return out;
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
        types[r] = operands ? type_alone(&node->results[r].type)
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

/* --- whole functions --- */

const KilnTensor *
kiln_evaluation_tensor(const KilnEvaluation *evaluation, const KilnValue *value)
{
    return value ? g_hash_table_lookup(evaluation->values, value) : NULL;
}

void
kiln_evaluation_set(KilnEvaluation *evaluation, const KilnValue *value, KilnTensor *tensor)
{
    g_hash_table_remove(evaluation->reads, value); /* the reads of an earlier iteration */
    g_hash_table_insert(evaluation->values, (gpointer)value, tensor);
}

/* The function of @value is @at or around it, and no loop is between them. */
static bool
is_read_once(const KilnFunction *at, const KilnValue *value)
{
    const KilnFunction *home =
        value->def ? value->def->function : ((const KilnArgument *)value)->function;
    while (at != home) {
        const KilnNode *owner = at->owner;
        if (!owner || owner->op == KILN_OP_loop || owner->op == KILN_OP_scan)
            return false;
        at = owner->function;
    }
    return true;
}

/* Code of @at has read @value for the last time. The tensor goes with the last reader. */
static void
release(KilnEvaluation *evaluation, const KilnFunction *at, KilnValue *value)
{
    if (!value || !is_read_once(at, value))
        return;
    gsize n = GPOINTER_TO_SIZE(g_hash_table_lookup(evaluation->reads, value)) + 1;
    g_hash_table_insert(evaluation->reads, value, GSIZE_TO_POINTER(n));
    if (n == value->n_uses)
        g_hash_table_remove(evaluation->values, value);
}

void
kiln_evaluation_release_operands(KilnEvaluation *evaluation, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++)
        release(evaluation, node->function, node->operands[i].value);
}

void
kiln_evaluation_release_region(KilnEvaluation *evaluation, const KilnFunction *at,
                               const KilnFunction *region)
{
    kiln_foreach_node (inner, region) {
        for (uint32_t i = 0; i < inner->n_operands; i++)
            release(evaluation, at, inner->operands[i].value);
        kiln_foreach_region (deeper, inner)
            kiln_evaluation_release_region(evaluation, at, deeper);
    }
}

/* @node is not evaluated: nothing reads its results. */
static void
pass_over(KilnEvaluation *evaluation, const KilnNode *node)
{
    kiln_evaluation_release_operands(evaluation, node);
    kiln_foreach_region (region, node)
        kiln_evaluation_release_region(evaluation, node->function, region);
}

/* The body of the declaration. It runs apart, for equal regions share one. */
static const KilnFunction *
executable_body(const KilnNode *node, GError **error)
{
    const char *callee = kiln_attrs(node, vendor_executable)->callee;
    const KilnDeclaration *declaration =
        kiln_module_find_declaration(node->function->module, callee);
    if (declaration && declaration->body)
        return declaration->body;
    kiln_throw(error, KILN_ERROR_UNSUPPORTED, "%s: @%s has no body to run", kiln_node_label(node),
               callee);
    return NULL;
}

static gboolean
evaluate_node(KilnEvaluation *evaluation, const KilnNode *node, GError **error)
{
    if (kiln_op_has(node->op, KILN_TRAIT_REGION))
        return kiln_evaluation_flow(evaluation, node, error);
    const KilnEvaluateOptions options = { .lowered = evaluation->lowered };
    const bool executable = node->op == KILN_OP_vendor_executable;
    const KilnFunction *body = executable ? executable_body(node, error) : NULL;
    if (executable && !body)
        return FALSE;
    g_autofree const KilnTensor **operands = g_new0(const KilnTensor *, node->n_operands + 1);
    g_autofree KilnTensor **results = g_new0(KilnTensor *, node->n_results + 1);
    for (uint32_t i = 0; i < node->n_operands; i++)
        operands[i] = kiln_evaluation_tensor(evaluation, kiln_node_operand(node, i));
    if (body ? !kiln_graph_evaluate(body, evaluation->target, operands, results, error)
             : !kiln_target_evaluate_with(evaluation->target, node, operands, &options, results,
                                          error))
        return FALSE;
    for (uint32_t r = 0; r < node->n_results; r++)
        kiln_evaluation_set(evaluation, &node->results[r], results[r]);
    kiln_evaluation_release_operands(evaluation, node);
    return TRUE;
}

static gboolean
show_results(KilnEvaluation *evaluation, const KilnNode *node, GError **error)
{
    const KilnWatch *watch = evaluation->watch;
    for (uint32_t r = 0; r < node->n_results; r++) {
        KilnTensor *tensor = g_hash_table_lookup(evaluation->values, &node->results[r]);
        KilnTensor *shown = tensor;
        if (!watch->see(&node->results[r], &shown, watch->data, error))
            return FALSE;
        if (shown != tensor)
            kiln_evaluation_set(evaluation, &node->results[r], shown);
    }
    return TRUE;
}

gboolean
kiln_evaluation_nodes(KilnEvaluation *evaluation, const KilnFunction *function, GError **error)
{
    kiln_foreach_node (node, function) {
        if (node->op == KILN_OP_return)
            continue;
        if (kiln_node_is_dead(node)) {
            pass_over(evaluation, node);
            continue;
        }
        if (!evaluate_node(evaluation, node, error))
            return FALSE;
        if (evaluation->watch && !show_results(evaluation, node, error))
            return FALSE;
        for (uint32_t r = 0; r < node->n_results; r++) {
            if (node->results[r].n_uses == 0)
                g_hash_table_remove(evaluation->values, &node->results[r]);
        }
    }
    return TRUE;
}

gboolean
kiln_evaluation_check(const KilnValue *argument, const KilnTensor *tensor, GError **error)
{
    const KilnType *type = &argument->type, *found = &tensor->type;
    bool fits = type->rank < 0 || type->layout || type->rank == found->rank;
    for (int d = 0; fits && !type->layout && d < type->rank; d++)
        fits = type->dims[d] < 0 || type->dims[d] == found->dims[d];
    if (fits && type->dtype == found->dtype)
        return TRUE;
    g_autofree char *expected_text = kiln_type_to_string(type);
    g_autofree char *found_text = kiln_type_to_string(found);
    return kiln_throw(error, fits ? KILN_ERROR_TYPE : KILN_ERROR_SHAPE, "%s: expected %s, found %s",
                      argument->name, expected_text, found_text);
}

/* @outputs may be NULL: somebody has seen the values. */
static gboolean
evaluate_function(KilnEvaluation *evaluation, KilnTensor **outputs, GError **error)
{
    const KilnFunction *function = evaluation->function;
    const KilnTensor *const *inputs = evaluation->inputs;
    const KilnNode *results = kiln_function_return(function);
    if (!results)
        return kiln_throw(error, KILN_ERROR_INVALID, "@%s: it returns nothing", function->name);
    evaluation->reads = g_hash_table_new(NULL, NULL);
    evaluation->values = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)kiln_tensor_free);
    gboolean good = TRUE;
    for (guint i = 0; good && i < function->arguments->len; i++) {
        const KilnValue *argument = &kiln_function_argument(function, i)->value;
        good = kiln_evaluation_check(argument, inputs[i], error);
        if (good)
            kiln_evaluation_set(evaluation, argument, kiln_tensor_copy(inputs[i]));
    }
    good = good && kiln_evaluation_nodes(evaluation, function, error);
    for (uint32_t i = 0; good && outputs && i < results->n_operands; i++)
        outputs[i] =
            kiln_tensor_copy(kiln_evaluation_tensor(evaluation, results->operands[i].value));
    g_hash_table_unref(evaluation->values);
    g_hash_table_unref(evaluation->reads);
    kiln_lowered_nodes_free(evaluation->lowered);
    return good;
}

gboolean
kiln_graph_evaluate(const KilnFunction *function, const KilnTarget *target,
                    const KilnTensor *const *inputs, KilnTensor **outputs, GError **error)
{
    return kiln_graph_watch(function, target, inputs, NULL, outputs, error);
}

gboolean
kiln_graph_watch(const KilnFunction *function, const KilnTarget *target,
                 const KilnTensor *const *inputs, const KilnWatch *watch, KilnTensor **outputs,
                 GError **error)
{
    KilnEvaluation evaluation = {
        .target = target, .function = function, .inputs = inputs, .watch = watch
    };
    return evaluate_function(&evaluation, outputs, error);
}

/* --- modules --- */

typedef struct {
    const KilnTarget *target;
    const KilnWatch *watch;
    KilnTensor **values; /* by number */
} ModuleEvaluation;

/* Evaluates @function on the values that @takes numbers. */
static gboolean
evaluate_call(const ModuleEvaluation *run, const KilnFunction *function, const uint32_t *takes,
              KilnTensor **outputs, GError **error)
{
    g_autofree const KilnTensor **inputs = g_new0(const KilnTensor *, function->arguments->len + 1);
    for (guint i = 0; i < function->arguments->len; i++)
        inputs[i] = run->values[takes[i]];
    return kiln_graph_watch(function, run->target, inputs, run->watch, outputs, error);
}

gboolean
kiln_module_watch(const KilnModule *module, const KilnTarget *target,
                  const KilnTensor *const *inputs, const KilnWatch *watch, KilnTensor **outputs,
                  GError **error)
{
    const KilnFolding *folding = module->folding;
    const KilnFunction *entry = kiln_module_entry(module);
    if (!folding)
        return kiln_graph_watch(entry, target, inputs, watch, outputs, error);
    uint32_t n = kiln_folding_n_values(folding);
    g_autofree KilnTensor **values = g_new0(KilnTensor *, n + 1);
    const ModuleEvaluation run = { target, watch, values };
    for (guint i = 0; i < folding->signature->len; i++)
        values[i] = kiln_tensor_copy(inputs[i]);
    gboolean good = TRUE;
    for (guint i = 0; good && i < folding->folds->len; i++) {
        const KilnFold *fold = g_ptr_array_index(folding->folds, i);
        good = evaluate_call(&run, kiln_module_find_function(module, fold->function),
                             fold->operands, values + fold->first_result, error);
    }
    good =
        good && evaluate_call(&run, entry, (const uint32_t *)folding->entry->data, outputs, error);
    for (uint32_t i = 0; i < n; i++)
        kiln_tensor_free(values[i]);
    return good;
}
