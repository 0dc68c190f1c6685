/* SPDX-License-Identifier: Apache-2.0 */
/* One forward sweep. Values inside the folded part live in a pool, which frees them with their last
 * reader; constants that only folded nodes read give their bytes back as soon as the last of these
 * is done. Best effort: a node whose evaluation fails stays where it is. */
#include "passes/fold_evaluate.h"

#include "passes/constant_rules.h"
#include "passes/literal.h"

#include <string.h>

/* One sweep over one function. */
typedef struct {
    KilnEvaluator *folder;
    KilnFunction *function;
    KilnFoldPlan plan;
    KilnConstantPool *pool;
    KilnLoweredNodes *lowered;
    bool *folded;         /* by node id */
    uint32_t *references; /* by constant id: to constants of the module; made when first needed */
    uint32_t n_references;
    bool retyped; /* a shape was found by computing */
} Sweep;

/* --- operands --- */

/* The buffer of an operand; zeros where only its type is read. NULL where it has none. */
static const KilnTensor *
operand_tensor(Sweep *sweep, const KilnNode *node, uint32_t i)
{
    const KilnValue *value = node->operands[i].value;
    const KilnConstant *constant = kiln_value_constant(value);
    if (constant && constant->type.quant)
        return NULL; /* a number only with its parameters */
    const KilnTensor *tensor = kiln_constant_pool_get(sweep->pool, value);
    if (tensor || !kiln_op_reads_type_only(node->op))
        return tensor;
    KilnType plain = kiln_type_make(value->type.dtype, value->type.rank, value->type.dims);
    kiln_constant_pool_store(sweep->pool, value, kiln_tensor_new_splat(&plain, 0));
    return kiln_constant_pool_get(sweep->pool, value);
}

static bool
find_operands(Sweep *sweep, const KilnNode *node, const KilnTensor **operands)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (node->operands[i].value && !(operands[i] = operand_tensor(sweep, node, i)))
            return false;
    }
    return true;
}

static void
free_tensors(KilnTensor **tensors, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        g_clear_pointer(&tensors[i], kiln_tensor_free);
}

/* --- evaluating --- */

static bool
is_shape_operand(const KilnNode *node, uint32_t i)
{
    return i < 32 && (kiln_op_info(node->op)->shape_operands >> i & 1);
}

/* Operands of the element types that the node has (@widest false), or of the widest; what is so
 * already is shared. False where memory is short. */
static bool
convert_operands(const KilnNode *node, const KilnTensor *const *operands, bool widest,
                 KilnTensor **converted, GError **error)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (!operands[i])
            continue;
        KilnDType dtype = node->operands[i].value->type.dtype;
        if (widest && !is_shape_operand(node, i))
            dtype = kiln_dtype_widest(dtype);
        converted[i] = operands[i]->type.dtype == dtype
                           ? kiln_tensor_copy(operands[i])
                           : kiln_tensor_convert(operands[i], dtype, error);
        if (!converted[i])
            return false;
    }
    return true;
}

static bool
run(Sweep *sweep, const KilnNode *node, KilnTensor *const *operands, bool infer,
    KilnTensor **results, GError **error)
{
    const KilnEvaluator *folder = sweep->folder;
    const KilnEvaluateOptions options = { .threads = folder->threads,
                                          .infer_types = infer,
                                          .recycler = kiln_constant_pool_recycler(sweep->pool),
                                          .lowered = sweep->lowered };
    return kiln_target_evaluate_with(folder->target, node, (const KilnTensor *const *)operands,
                                     &options, results, error);
}

/* In the widest element types, where kernels for them give results of the widest. */
static bool
run_wide(Sweep *sweep, const KilnNode *node, const KilnTensor *const *operands,
         KilnTensor **results, GError **error)
{
    g_autofree KilnTensor **wide = g_new0(KilnTensor *, node->n_operands + 1);
    bool good = convert_operands(node, operands, true, wide, error) &&
                run(sweep, node, wide, true, results, error);
    free_tensors(wide, node->n_operands);
    for (uint32_t i = 0; good && i < node->n_results; i++)
        good = results[i]->type.dtype == kiln_dtype_widest(node->results[i].type.dtype);
    if (!good)
        free_tensors(results, node->n_results);
    return good;
}

static bool
run_strict(Sweep *sweep, const KilnNode *node, const KilnTensor *const *operands, bool infer,
           KilnTensor **results, GError **error)
{
    g_autofree KilnTensor **narrow = g_new0(KilnTensor *, node->n_operands + 1);
    bool good = convert_operands(node, operands, false, narrow, error) &&
                run(sweep, node, narrow, infer, results, error);
    free_tensors(narrow, node->n_operands);
    return good;
}

static void
store_results(Sweep *sweep, const KilnNode *node, KilnTensor **results)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        KilnTensor *tensor = kiln_tensor_compact(g_steal_pointer(&results[i]));
        sweep->folder->equal_found |= tensor->kind == KILN_TENSOR_SPLAT;
        kiln_constant_pool_store(sweep->pool, &node->results[i], tensor);
    }
}

/* False where the kernel refuses, which is no error, or memory is short, which is one. */
static bool
evaluate(Sweep *sweep, const KilnNode *node, const KilnTensor *const *operands)
{
    KilnEvaluator *folder = sweep->folder;
    g_autofree KilnTensor **results = g_new0(KilnTensor *, node->n_results + 1);
    g_autoptr(GError) why = NULL;
    bool done = folder->wide && run_wide(sweep, node, operands, results, NULL);
    if (!done && !run_strict(sweep, node, operands, false, results, &why)) {
        if (g_error_matches(why, KILN_ERROR, KILN_ERROR_MEMORY))
            folder->failure = g_steal_pointer(&why);
        else
            kiln_pass_refuse(folder->context, folder->rule, "evaluates");
        return false;
    }
    store_results(sweep, node, results);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (operands[i])
            kiln_tensor_drop_pages(operands[i]);
    }
    return true;
}

/* --- results that take no storage --- */

/* One element of each operand, computed once, for equal elements. */
static bool
evaluate_element(Sweep *sweep, const KilnNode *node, const KilnTensor *const *operands,
                 uint8_t element[8], KilnDType *dtype)
{
    const int64_t ones[KILN_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    g_autofree KilnTensor **single = g_new0(KilnTensor *, node->n_operands + 1);
    bool good = sweep->folder->target != NULL;
    for (uint32_t i = 0; good && i < node->n_operands; i++) {
        uint8_t bits[8];
        if (!operands[i])
            continue;
        KilnType type = kiln_type_make(operands[i]->type.dtype, operands[i]->type.rank, ones);
        good = kiln_tensor_is_splat(operands[i], 1, bits);
        single[i] = good ? kiln_tensor_new_splat_bits(&type, bits) : NULL;
    }
    KilnTensor *result = NULL;
    const KilnTensor *const *alone = (const KilnTensor *const *)single;
    good = good && ((sweep->folder->wide && run_wide(sweep, node, alone, &result, NULL)) ||
                    run_strict(sweep, node, alone, true, &result, NULL));
    good = good && kiln_tensor_is_splat(result, 1, element);
    if (good)
        *dtype = result->type.dtype;
    kiln_tensor_free(result);
    free_tensors(single, node->n_operands);
    return good;
}

/* Where @node gives equal elements (the plan says so). */
static bool
store_splats(Sweep *sweep, const KilnNode *node, const KilnTensor *const *operands)
{
    uint8_t element[8];
    KilnDType dtype;
    if (kiln_op_only_moves(node->op)) {
        if (!kiln_tensor_is_splat(operands[0], 1, element))
            return false;
        dtype = operands[0]->type.dtype;
    } else if (!evaluate_element(sweep, node, operands, element, &dtype)) {
        return false;
    }
    for (uint32_t i = 0; i < node->n_results; i++) {
        const KilnType *type = &node->results[i].type;
        KilnType plain = kiln_type_make(dtype, type->rank, type->dims);
        kiln_constant_pool_store(sweep->pool, &node->results[i],
                                 kiln_tensor_new_splat_bits(&plain, element));
    }
    return true;
}

/* What has a rule of its own. */
static bool
apply_rule(Sweep *sweep, const KilnNode *node)
{
    KilnConstantRuleFn rule = kiln_constant_rule(node->op);
    if (!rule || node->results[0].type.layout)
        return false;
    kiln_constant_pool_enter_rule(sweep->pool);
    KilnRuleOutcome outcome = rule(sweep->pool, node, &sweep->folder->failure);
    kiln_constant_pool_leave_rule(sweep->pool);
    return outcome == KILN_RULE_STORES;
}

/* Its extents hang on data: a kernel cannot be asked for it alone. */
static bool
result_is_open(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (kiln_type_bytes(&node->results[i].type) < 0)
            return true;
    }
    return false;
}

static bool
store_known(Sweep *sweep, const KilnNode *node)
{
    if (!kiln_node_is_known(node))
        return false;
    for (uint32_t i = 0; i < node->n_results; i++)
        kiln_constant_pool_store(sweep->pool, &node->results[i],
                                 kiln_value_known_tensor(&node->results[i]));
    return true;
}

static bool
try_fold(Sweep *sweep, const KilnNode *node)
{
    if (store_known(sweep, node))
        return true;
    g_autofree const KilnTensor **operands = g_new0(const KilnTensor *, node->n_operands + 1);
    if (!find_operands(sweep, node, operands))
        return false;
    if (sweep->plan.nodes[node->id].splat && store_splats(sweep, node, operands))
        return true;
    if (apply_rule(sweep, node))
        return true;
    KilnEvaluator *folder = sweep->folder;
    if (folder->failure || !folder->target || result_is_open(node))
        return false;
    int64_t live = kiln_constant_pool_live(sweep->pool);
    return folder->may_hold(folder, &sweep->plan, node, live) && evaluate(sweep, node, operands);
}

/* --- constants that go --- */

static void
count_references(Sweep *sweep)
{
    const KilnModule *module = sweep->function->module;
    sweep->n_references = module->constants->len;
    sweep->references = g_new0(uint32_t, sweep->n_references + 1);
    for (guint f = 0; f < module->all_functions->len; f++) {
        kiln_foreach_node (node, (KilnFunction *)g_ptr_array_index(module->all_functions, f)) {
            const KilnOpInfo *info = kiln_op_info(node->op);
            for (uint32_t i = 0; i < info->n_attrs; i++) {
                const KilnConstant *constant =
                    info->attrs[i].kind == KILN_ATTR_CONSTANT
                        ? *(KilnConstant **)((char *)node->attrs + info->attrs[i].offset)
                        : NULL;
                if (constant && constant->id < sweep->n_references)
                    sweep->references[constant->id]++;
            }
        }
    }
}

/* The last reader of @value, a literal, was folded: its bytes go now, and the node with the dead
 * ones at the end. */
static void
give_back(Sweep *sweep, const KilnValue *value)
{
    KilnConstant *constant = kiln_value_constant(value);
    if (!sweep->references)
        count_references(sweep);
    if (constant->id >= sweep->n_references || sweep->references[constant->id] != 1)
        return;
    KilnTensor *empty = kiln_tensor_new_splat(&constant->tensor->type, 0);
    kiln_tensor_free(constant->tensor);
    constant->tensor = empty;
    sweep->folded[value->def->id] = true;
}

/* Nodes that were folded and the literals that only they read: backwards, so that readers go first.
 */
static void
remove_folded(Sweep *sweep)
{
    KilnModule *module = sweep->function->module;
    guint n = module->constants->len;
    g_autofree bool *unread = g_new0(bool, n + 1);
    bool any = false;
    kiln_foreach_node_reverse (node, sweep->function) {
        if (node->id >= sweep->plan.n || !sweep->folded[node->id] || !kiln_node_is_dead(node))
            continue;
        if (node->op == KILN_OP_const) {
            unread[kiln_attrs(node, const)->value->id] = true;
            any = true;
        }
        kiln_node_remove(node);
        sweep->folder->changed = true;
    }
    if (any)
        kiln_module_remove_constants(module, unread);
}

/* --- the sweep --- */

/* The last reader of a folded value lets its bytes go; nodes in subgraphs read when their owner
 * does. A literal is done with once nothing but folded nodes has read it. */
static void
release_operands(Sweep *sweep, const KilnNode *node, bool folded)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        const KilnNode *def = value ? value->def : NULL;
        bool literal = def && def->op == KILN_OP_const && def->function == sweep->function &&
                       def->id < sweep->plan.n;
        if (literal && folded && kiln_constant_pool_release(sweep->pool, value))
            give_back(sweep, value);
        else if (kiln_constant_pool_has(sweep->pool, value))
            kiln_constant_pool_release(sweep->pool, value);
    }
    kiln_foreach_region (region, node) {
        kiln_foreach_node (inner, region)
            release_operands(sweep, inner, false);
    }
}

/* The shape of @value is known only now that it was computed. */
static void
settle_type(Sweep *sweep, KilnValue *value, const KilnTensor *tensor)
{
    if (kiln_type_is_static(&value->type))
        return;
    value->type = kiln_type_make(tensor->type.dtype, tensor->type.rank, tensor->type.dims);
    kiln_node_touch(value->def);
    sweep->retyped = true;
}

/* The folded @value becomes a constant, which all its readers read from now on. */
static void
make_constant(Sweep *sweep, KilnValue *value)
{
    KilnEvaluator *folder = sweep->folder;
    KilnNode *def = value->def;
    const KilnFoldNode *info = &sweep->plan.nodes[def->id];
    kiln_fold_plan_accepts(&sweep->plan, def); /* counts, where it was not planned to be stored */
    KilnTensor *tensor = kiln_constant_pool_take(sweep->pool, value, &folder->failure);
    if (!tensor)
        return;
    settle_type(sweep, value, tensor);
    tensor->type = kiln_type_make(tensor->type.dtype, value->type.rank, value->type.dims);
    KilnValue *made =
        kiln_build_constant_as(sweep->function, def, value->name, tensor, &value->type);
    kiln_value_constant(made)->charged = MIN(info->charge, kiln_tensor_storage(tensor));
    kiln_value_constant(made)->base = info->base;
    made->made_up = true;
    kiln_pass_note(folder->context, folder->rule, "%s (%s)", kiln_node_label(def),
                   kiln_op_info(def->op)->name);
    kiln_value_replace(value, made);
    folder->changed = true;
}

/* Makes constants of the folded values that a node which stays reads. True where it reads such
 * constants, those made before included: then a subgraph has new literals. */
static bool
read_constants(Sweep *sweep, const KilnNode *node)
{
    bool any = false;
    for (uint32_t i = 0; i < node->n_operands && !sweep->folder->failure; i++) {
        KilnValue *value = node->operands[i].value;
        const KilnNode *def = value ? value->def : NULL;
        any |= def && def->function == sweep->function && def->id >= sweep->plan.n;
        /* What is computed here too is read here. */
        if (!kiln_constant_pool_has(sweep->pool, value) || def->function != sweep->function ||
            kiln_fold_plan_has(&sweep->plan, def, KILN_CONSTNESS_VARYING))
            continue;
        make_constant(sweep, value);
        any = true;
    }
    kiln_foreach_region (region, node) {
        bool read = false;
        kiln_foreach_node (inner, region)
            read |= read_constants(sweep, inner);
        if (read && !sweep->folder->failure)
            kiln_fold_now(sweep->folder, region);
        any |= read;
    }
    return any;
}

static void
visit(Sweep *sweep, KilnNode *node)
{
    bool planned = kiln_fold_plan_has(&sweep->plan, node, KILN_CONSTNESS_LITERAL);
    bool stays = kiln_fold_plan_has(&sweep->plan, node, KILN_CONSTNESS_VARYING);
    bool done = planned && try_fold(sweep, node);
    if (sweep->folder->failure)
        return;
    sweep->folded[node->id] = done && !stays;
    if (stays || (planned && !done))
        read_constants(sweep, node);
    release_operands(sweep, node, done && !stays);
}

/* Shapes that were found make more of what follows known. */
static void
refine_types(Sweep *sweep)
{
    kiln_foreach_node (node, sweep->function) {
        bool refined;
        if (!kiln_node_refine(node, &refined, &sweep->folder->failure))
            return;
    }
}

static void
sweep_function(Sweep *sweep)
{
    kiln_foreach_node_safe (node, sweep->function) {
        if (node->id >= sweep->plan.n)
            continue; /* a constant made here */
        visit(sweep, node);
        if (sweep->folder->failure)
            return;
    }
    remove_folded(sweep);
    if (sweep->retyped)
        refine_types(sweep);
}

void
kiln_fold_now(KilnEvaluator *folder, KilnFunction *function)
{
    g_autoptr(KilnConstantPool) pool = kiln_constant_pool_new(function->module);
    g_autofree bool *folded = g_new0(bool, (gsize)function->next_id + 1);
    Sweep sweep = {
        .folder = folder, .function = function, .plan = folder->plan, .pool = pool, .folded = folded
    };
    sweep.lowered = kiln_lowered_nodes_new();
    sweep.plan.function = function;
    sweep.plan.charged = kiln_charged_bytes(function->module);
    kiln_constness_mark(function);
    kiln_fold_plan_make(&sweep.plan);
    if (sweep.plan.any)
        sweep_function(&sweep);
    folder->out_of_room |= sweep.plan.out_of_room;
    folder->retyped |= sweep.retyped;
    folder->peak = MAX(folder->peak, kiln_constant_pool_peak(pool));
    kiln_fold_plan_clear(&sweep.plan);
    kiln_lowered_nodes_free(sweep.lowered);
    g_free(sweep.references);
}
