/* SPDX-License-Identifier: Apache-2.0 */
/* What a target lacks for a model: all of it, before anything runs. */
#include "kiln.h"

#include "exec/eval.h"
#include "graph/node.h"
#include "graph/module/flow.h"
#include "graph/op/flow.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/layout.h"
#include "graph/op/random.h"
#include "graph/op/slice.h"
#include "graph/op/structure.h"
#include "graph/plugin/plugin.h"
#include "ir/target.h"
#include "passes/fold/constant_rules.h"
#include "passes/fold/constness.h"
#include "runtime/model.h"
#include "runtime/scope.h"
#include "runtime/targets.h"

#include <string.h>

typedef struct {
    const KilnTarget *target;
    int opset;
    GArray *found;         /* KilnUnsupported */
    KilnArena *texts;      /* what the entries point to; copied behind them at the end */
    GHashTable *undecided; /* KilnValue*: not known before the program runs; looked up */
    GHashTable *varying;   /* KilnValue*: elements of inputs decide them; looked up */
} Check;

/* The texts of @entry need to live for the call only. */
static void
append(Check *check, const KilnUnsupported *entry)
{
    KilnUnsupported kept = *entry;
    kept.op = kiln_arena_strdup(check->texts, entry->op);
    kept.node = kiln_arena_strdup(check->texts, entry->node);
    kept.reason = kiln_arena_strdup(check->texts, entry->reason);
    g_array_append_val(check->found, kept);
}

static void
add(Check *check, const KilnNode *node, const char *op, int opset, const char *reason)
{
    const char *dtype = "";
    if (node->n_operands && node->operands[0].value)
        dtype = kiln_dtype_name(node->operands[0].value->type.dtype);
    else if (node->n_results)
        dtype = kiln_dtype_name(node->results[0].type.dtype);
    append(check, &(KilnUnsupported){ .op = op,
                                      .opset = opset,
                                      .dtype = dtype,
                                      .node = kiln_node_label(node),
                                      .reason = reason });
}

static bool
is_static(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && !kiln_type_is_static(&value->type))
            return false;
    }
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (!kiln_type_is_static(&node->results[i].type))
            return false;
    }
    return true;
}

/* A shape operand whose value comes with the inputs: the program is specialised for it at its first
 * run. */
static bool
waits_for_values(const KilnNode *node)
{
    uint32_t operands = kiln_op_info(node->op)->shape_operands;
    for (uint32_t i = 0; i < node->n_operands && i < 32; i++) {
        const KilnValue *value = node->operands[i].value;
        if ((operands >> i & 1) && value && !value->known && !kiln_value_constant(value))
            return true;
    }
    return false;
}

/* With open shapes lowering cannot be asked: an instruction of the op's name with a kernel for the
 * element type must do. */
static bool
has_kernel_by_name(const KilnTarget *target, const KilnNode *node)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    KilnInstrKind kind;
    if (info->traits & KILN_TRAIT_VIEW || node->op == KILN_OP_const || node->op == KILN_OP_shape ||
        node->op == KILN_OP_size || node->op == KILN_OP_constant_of_shape ||
        node->op == KILN_OP_dropout || node->op == KILN_OP_split || node->op == KILN_OP_compress ||
        node->op == KILN_OP_regression)
        return true;
    if (!kiln_instr_from_name(info->name, &kind))
        return false;
    const KilnValue *key = node->n_operands ? node->operands[0].value : NULL;
    KilnDType dtype = key ? key->type.dtype : node->results[0].type.dtype;
    for (; target; target = target->fallback) {
        for (uint32_t i = 0; i < target->n_kernels; i++) {
            if (target->kernels[i].instr == kind && target->kernels[i].dtypes >> dtype & 1)
                return true;
        }
    }
    return false;
}

static bool
reads_any(GHashTable *values, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (g_hash_table_contains(values, node->operands[i].value))
            return true;
    }
    return false;
}

/* What @node computes is known only when it runs, whatever shapes and inputs are. */
static bool
is_undecided(GHashTable *undecided, const KilnNode *node)
{
    const uint32_t never = KILN_TRAIT_RANDOM | KILN_TRAIT_STATE | KILN_TRAIT_SIDE_EFFECT;
    if (kiln_op_reads_type_only(node->op))
        return false;
    if ((kiln_op_info(node->op)->traits & never) ||
        (kiln_op_has(node->op, KILN_TRAIT_REGION) && node->op != KILN_OP_if) ||
        reads_any(undecided, node))
        return true;
    kiln_foreach_region (branch, node) {
        if (reads_any(undecided, kiln_function_return(branch)))
            return true;
    }
    return false;
}

static void
find_undecided(GHashTable *undecided, const KilnFunction *function)
{
    for (guint i = 0; function->owner && i < function->arguments->len; i++) /* of an iteration */
        g_hash_table_add(undecided, &kiln_function_argument(function, i)->value);
    kiln_foreach_node (node, function) {
        kiln_foreach_region (region, node)
            find_undecided(undecided, region);
        bool any = is_undecided(undecided, node);
        for (uint32_t i = 0; any && i < node->n_results; i++) {
            if (!node->results[i].known)
                g_hash_table_add(undecided, &node->results[i]);
        }
    }
}

/* Values that hang on more than constants and the shapes of inputs. Those of subgraphs do. */
static void
find_varying(Check *check, const KilnFunction *function)
{
    for (guint i = 0; i < function->arguments->len; i++)
        g_hash_table_add(check->varying, &kiln_function_argument(function, i)->value);
    kiln_foreach_node (node, function) {
        kiln_foreach_region (region, node)
            find_varying(check, region);
        bool region = function->owner || kiln_op_has(node->op, KILN_TRAIT_REGION);
        bool varies = region || reads_any(check->varying, node) ||
                      reads_any(check->undecided, node) || is_undecided(check->undecided, node);
        for (uint32_t i = 0; varies && i < node->n_results; i++) {
            if (!node->results[i].known && !kiln_op_reads_type_only(node->op))
                g_hash_table_add(check->varying, &node->results[i]);
        }
    }
}

/* An operator that only constant folding computes, with operands that are constant once the shapes
 * of inputs are known: the program does without it. */
static bool
is_folded(const Check *check, const KilnNode *node)
{
    return kiln_constant_rule_finds_shape(node->op) && !reads_any(check->varying, node);
}

/* The operator of a plug-in; NULL for others. */
static char *
name_of_plugin(const KilnNode *node)
{
    if (!kiln_node_is_plugin(node))
        return NULL;
    const KilnPluginColumns columns = kiln_node_plugin_columns(node);
    return kiln_plugin_name(columns.domain, columns.op_type);
}

static void check_function(Check *check, const KilnFunction *function);

static void
check_node(Check *check, const KilnNode *node)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    if (node->op == KILN_OP_unknown) {
        const KilnAttrs_unknown *attrs = kiln_attrs(node, unknown);
        g_autofree char *name = *attrs->domain
                                    ? g_strdup_printf("%s:%s", attrs->domain, attrs->op_type)
                                    : g_strdup(attrs->op_type);
        /* Known operators behind unknown ones are not at fault. */
        if (!attrs->untyped && !attrs->mismatch)
            add(check, node, name, (int)attrs->opset,
                attrs->reason ? attrs->reason : KILN_PLUGIN_NONE);
        return;
    }
    if (node->op == KILN_OP_return)
        return;
    kiln_foreach_region (region, node)
        check_function(check, region);
    if (node->op == KILN_OP_const) {
        KilnTensorKind kind = kiln_attrs(node, const)->value->tensor->kind;
        if (!kiln_tensor_is_readable(kiln_attrs(node, const)->value->tensor))
            add(check, node, "Constant", check->opset,
                kind == KILN_TENSOR_SPARSE ? "the constant is sparse" : "the constant is extern");
        return;
    }
    if (kiln_op_is_flow(node->op)) /* a run decides what of its subgraphs runs */
        return;
    if (is_folded(check, node))
        return;
    g_autofree char *own = name_of_plugin(node);
    const char *name = own ? own : *info->onnx ? info->onnx : info->name;
    g_autofree char *reason = NULL;
    if (is_static(node) && !waits_for_values(node)) {
        if (!kiln_target_supports(check->target, node, &reason))
            add(check, node, name, check->opset, reason ? reason : "no kernel");
    } else if (!has_kernel_by_name(check->target, node)) {
        add(check, node, name, check->opset, "no kernel for this operator and element type");
    }
}

static void
check_function(Check *check, const KilnFunction *function)
{
    kiln_foreach_node (node, function)
        check_node(check, node);
}

/* One block: pointers to the entries, these, then their texts, so that g_free() frees all. */
static KilnUnsupported **
flatten(const GArray *found)
{
    size_t bytes = found->len * (sizeof(void *) + sizeof(KilnUnsupported)) + sizeof(void *);
    for (guint i = 0; i < found->len; i++) {
        const KilnUnsupported *entry = &g_array_index(found, KilnUnsupported, i);
        bytes += strlen(entry->op) + strlen(entry->node) + strlen(entry->reason) + 3;
    }
    KilnUnsupported **entries = g_malloc(bytes);
    KilnUnsupported *flat = (KilnUnsupported *)(entries + found->len + 1);
    char *text = (char *)(flat + found->len);
    for (guint i = 0; i < found->len; i++) {
        flat[i] = g_array_index(found, KilnUnsupported, i);
        entries[i] = &flat[i];
        const char **fields[] = { &flat[i].op, &flat[i].node, &flat[i].reason };
        for (size_t f = 0; f < G_N_ELEMENTS(fields); f++) {
            size_t size = strlen(*fields[f]) + 1;
            *fields[f] = memcpy(text, *fields[f], size);
            text += size;
        }
    }
    entries[found->len] = NULL;
    return entries;
}

/* At the ir level the instructions are what they are: each has a kernel or has none. */
static void
check_instructions(Check *check, const KilnIRFunction *function)
{
    kiln_foreach_instr (instr, function) {
        if (kiln_instr_is_bookkeeping(instr) || kiln_target_find(check->target, instr))
            continue;
        const KilnBuffer *key = NULL;
        for (uint32_t i = 0; i < instr->n_operands && !key; i++)
            key = instr->operands[i].access == KILN_ACCESS_IN ? instr->operands[i].buffer : NULL;
        if (!key)
            key = kiln_instr_operand(instr, 0);
        append(check, &(KilnUnsupported){ .op = kiln_instr_info(instr->kind)->name,
                                          .opset = check->opset,
                                          .dtype = key ? kiln_dtype_name(key->type.dtype) : "",
                                          .node = kiln_instr_label(instr),
                                          .reason = "no kernel for this instruction, element "
                                                    "type and layout" });
    }
}

KilnUnsupported **
kiln_model_check(const KilnModel *model, const char *target, unsigned *out_n, GError **error)
{
    G_GNUC_UNUSED g_auto(KilnRunScope) scope = kiln_run_scope_enter(NULL, NULL);
    *out_n = 0;
    const KilnTarget *found_target = kiln_target_by_name(target ? target : "cpu", error);
    if (!found_target)
        return NULL;
    Check check = { found_target,
                    model->module->opset,
                    g_array_new(FALSE, FALSE, sizeof(KilnUnsupported)),
                    kiln_arena_new(),
                    g_hash_table_new(NULL, NULL),
                    g_hash_table_new(NULL, NULL) };
    for (guint i = 0; i < model->module->functions->len; i++)
        find_undecided(check.undecided, g_ptr_array_index(model->module->functions, i));
    for (guint i = 0; i < model->module->functions->len; i++)
        find_varying(&check, g_ptr_array_index(model->module->functions, i));
    for (guint i = 0; model->ir && i < model->ir->functions->len; i++)
        check_instructions(&check, g_ptr_array_index(model->ir->functions, i));
    for (guint i = 0; !model->ir && i < model->module->functions->len; i++)
        check_function(&check, g_ptr_array_index(model->module->functions, i));
    *out_n = check.found->len;
    KilnUnsupported **entries = flatten(check.found);
    g_array_unref(check.found);
    kiln_arena_free(check.texts);
    g_hash_table_unref(check.undecided);
    g_hash_table_unref(check.varying);
    return entries;
}
