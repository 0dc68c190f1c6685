/* SPDX-License-Identifier: Apache-2.0 */
/* lower-halves: operators on 16-bit floats that the target has no kernel of its own for are
 * computed in f32.
 *
 *     x : f16                          x : f16
 *        |                                |
 *     layer_normalization     =>     cast to f32
 *        |                                |
 *     y : f16                        layer_normalization
 *        |                                |
 *       gelu                            gelu
 *        |                                |
 *     z : f16                        cast to f16
 *                                         |
 *                                      z : f16
 *
 * Whatever the operator, as long as the target has it on f32: what the passes before have raised or
 * fused stays one operator, so that they find nothing to raise when they run once more.
 *
 * Between two of these operators a value stays in f32. It is rounded where something reads it in 16
 * bits: the caller, an operator that the target has no kernel for in f32 either, a cast to an
 * integer. A cast to 16 bits that the model states stays and rounds. One to f32 or f64 of a value
 * that is there in f32 reads that.
 *
 * What depends on literals and on arguments that are given once is rounded after each operator, as
 * constant-fold does. With rounding=operators, and where bits must not tell literals from inputs
 * (no offload), everything is.
 *
 * Kernels that move elements take 16 bits, too. Such an operator moves f32 where its operand is
 * there in f32 and an operator below it reads f32: the casts around it would take longer than
 * moving more bytes.
 *
 * requires nothing, preserves nothing; class U: values are rounded at fewer places. The target's
 * fallback does not count, as for `lower`, before which this stands: what the target lacks on f32,
 * too, `lower` expresses by other operators. Without a target nothing is lowered. */
#include "graph/infer/infer.h"
#include "graph/op/cast.h"
#include "graph/plugin/plugin.h"
#include "passes/fold/constness.h"
#include "passes/pass.h"

#include <string.h>

#define OPTIONS(OPTION, CHOICE) CHOICE(rounding, "reads", "reads|operators")
PASS_OPTIONS(lower_halves, OPTIONS);

static const char rule[] = "lower-halves";

typedef struct {
    KilnPassContext *context;
    GHashTable *wide;  /* of a value of 16 bits: the same in f32, as computed or cast once */
    GPtrArray *narrow; /* casts of results to 16 bits */
    bool *wants;       /* by node id: computes in f32, or only moves what such a node reads */
    bool rounds;       /* after each operator */
    bool *known;       /* by node id: depends on nothing that varies from run to run */
} Lowering;

static bool
is_half(const KilnType *type)
{
    return kiln_dtype_is_half(type->dtype) && !type->quant && !type->layout;
}

static bool
computes_halves(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (node->operands[i].value && is_half(&node->operands[i].value->type))
            return true;
    }
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (is_half(&node->results[i].type))
            return true;
    }
    return false;
}

/* @value in f32 as it was computed, before it is rounded to 16 bits; NULL where it was not. */
static KilnValue *
unrounded(const Lowering *lowering, const KilnValue *value)
{
    KilnValue *wide = value ? g_hash_table_lookup(lowering->wide, value) : NULL;
    bool cast = wide && wide->def->op == KILN_OP_cast && wide->def->operands[0].value == value;
    return cast ? NULL : wide;
}

/* A cast that keeps what f32 has of 16 bits. */
static bool
widens(const KilnNode *node)
{
    if (node->op != KILN_OP_cast || !is_half(&node->operands[0].value->type))
        return false;
    KilnDType to = node->results[0].type.dtype;
    return to == KILN_DTYPE_f32 || to == KILN_DTYPE_f64;
}

/* A sequence or optional holds elements of the type that all its readers expect. */
static bool
has_items(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && kiln_dtype_is_item(value->type.dtype))
            return true;
    }
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (kiln_dtype_is_item(node->results[i].type.dtype))
            return true;
    }
    return false;
}

/* False where another element type of the operands would be another operator: a region has stated
 * types, a plug-in may take one type alone, and items have what was put into them. */
static bool
takes_other_types(const KilnNode *node)
{
    return kiln_infer_function(node->op) != kiln_infer_given && !kiln_node_is_plugin(node) &&
           !has_items(node);
}

/* Whether @node, whose readers are known to want f32 or not, does. */
static bool
wants_wide(const Lowering *lowering, const KilnNode *node)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    if (info->traits & (KILN_TRAIT_SIDE_EFFECT | KILN_TRAIT_TERMINATOR | KILN_TRAIT_REGION) ||
        !takes_other_types(node) || !computes_halves(node))
        return false;
    if (node->op == KILN_OP_cast)
        return widens(node);
    if (!kiln_pass_target_has(lowering->context, node))
        return true;
    for (uint32_t r = 0; r < node->n_results; r++) {
        kiln_foreach_use (use, &node->results[r]) {
            if (use->user->function == node->function && lowering->wants[use->user->id])
                return true;
        }
    }
    return false;
}

/* Reads literals, and arguments that are given once, alone. Before the runs, constant-fold computes
 * it of literals, operator by operator: bits must not tell those from arguments. */
static bool
is_known(const Lowering *lowering, const KilnNode *node)
{
    bool known = !kiln_node_draws(node) && !kiln_op_has(node->op, KILN_TRAIT_REGION);
    for (uint32_t i = 0; known && i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (!value || (value->def && value->def->op == KILN_OP_const))
            continue;
        known = value->def
                    ? value->def->function == node->function && lowering->known[value->def->id]
                    : kiln_value_constness(value) != KILN_CONSTNESS_VARYING;
    }
    return known;
}

static void
classify(Lowering *lowering, KilnFunction *function)
{
    const KilnNodeOrder *order = kiln_function_order(function);
    for (uint32_t i = 0; i < order->n; i++) {
        const KilnNode *node = order->entries[i].node;
        lowering->known[node->id] = is_known(lowering, node);
    }
    for (uint32_t i = order->n; i-- > 0;) {
        const KilnNode *node = order->entries[i].node;
        lowering->wants[node->id] = wants_wide(lowering, node);
    }
}

static KilnValue *
cast_before(KilnNode *node, KilnValue *value, KilnDType to, GError **error)
{
    KilnAttrs_cast attrs = kiln_cast_to(to);
    return kiln_build(node->function, node, KILN_OP_cast, &attrs, &value, 1, error);
}

/* The operands of @node in f32; false after an error. */
static bool
widen_operands(Lowering *lowering, KilnNode *node, KilnValue **operands, GError **error)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *value = node->operands[i].value;
        operands[i] = value;
        if (!value || !is_half(&value->type))
            continue;
        /* A cast to integers must not tell 2.9999 from the 3 that it is in 16 bits. */
        bool rounded = node->op == KILN_OP_cast && unrounded(lowering, value);
        operands[i] = rounded ? NULL : g_hash_table_lookup(lowering->wide, value);
        if (operands[i])
            continue;
        operands[i] = cast_before(node, value, KILN_DTYPE_f32, error);
        if (!operands[i])
            return false;
        if (!rounded)
            g_hash_table_insert(lowering->wide, value, operands[i]);
    }
    return true;
}

/* The node on f32, right before @node. Its types are inferred, or stated where those of @node say
 * what inference cannot know: quantization. */
static KilnNode *
build_wide(Lowering *lowering, KilnNode *node, GError **error)
{
    g_autofree KilnValue **operands = g_new0(KilnValue *, node->n_operands + 1);
    g_autofree KilnType *types = g_new(KilnType, node->n_results);
    const KilnValue *first = kiln_node_operand(node, 0);
    bool stated = first && first->type.quant;
    for (uint32_t i = 0; i < node->n_results; i++) {
        types[i] = node->results[i].type;
        stated |= types[i].quant != NULL;
        if (is_half(&types[i]))
            types[i].dtype = KILN_DTYPE_f32;
    }
    if (!widen_operands(lowering, node, operands, error))
        return NULL;
    KilnNodeSpec spec = { .op = node->op,
                          .name = node->name,
                          .operands = operands,
                          .n_operands = node->n_operands,
                          .n_results = node->n_results,
                          .attrs = node->attrs,
                          .types = stated ? types : NULL,
                          .before = node };
    return kiln_node_new(node->function, &spec, error);
}

/* Casts the results of @wide that are read to the types of those of @node. */
static bool
narrow_results(KilnNode *node, KilnNode *wide, KilnValue **results, GError **error)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        const KilnValue *result = &node->results[i];
        results[i] = &wide->results[i];
        if (result->n_uses && !kiln_type_equal(&result->type, &results[i]->type))
            results[i] = cast_before(node, results[i], result->type.dtype, error);
        if (!results[i])
            return false;
    }
    return true;
}

static bool
has_all(const KilnPassContext *context, const KilnNode *node, const KilnNode *wide,
        KilnValue *const *results)
{
    bool all = kiln_pass_target_has(context, wide);
    for (uint32_t i = 0; all && i < node->n_operands; i++) {
        const KilnValue *read = wide->operands[i].value;
        all = read == node->operands[i].value || kiln_pass_target_has(context, read->def);
    }
    for (uint32_t i = 0; all && i < node->n_results; i++)
        all = results[i]->def == wide || kiln_pass_target_has(context, results[i]->def);
    return all;
}

/* Removes what was built in vain: casts of results, @wide, and casts that only it reads. */
static void
take_back(Lowering *lowering, const KilnNode *node, KilnNode *wide, KilnValue *const *results)
{
    g_autofree KilnValue **read = g_new(KilnValue *, node->n_operands);
    for (uint32_t i = 0; i < node->n_operands; i++)
        read[i] = wide->operands[i].value;
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (results[i]->def != wide)
            kiln_node_remove(results[i]->def);
    }
    kiln_node_remove(wide);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *value = node->operands[i].value;
        if (read[i] == value || read[i]->n_uses)
            continue;
        bool shared = g_hash_table_lookup(lowering->wide, value) == read[i];
        if (shared)
            g_hash_table_remove(lowering->wide, value);
        if (shared || node->op == KILN_OP_cast)
            kiln_node_remove(read[i]->def);
    }
}

/* Puts @results in place of those of @node where the target has kernels for all of it. */
static bool
replace(Lowering *lowering, KilnNode *node, KilnNode *wide, KilnValue *const *results)
{
    KilnPassContext *context = lowering->context;
    PASS_GUARD(target_has, has_all(context, node, wide, results));
    kiln_pass_note(context, rule, "%s", kiln_node_label(node));
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (node->results[i].n_uses)
            kiln_value_replace(&node->results[i], results[i]);
        if (results[i]->def == wide || lowering->rounds || lowering->known[node->id])
            continue;
        g_ptr_array_add(lowering->narrow, results[i]->def);
        g_hash_table_insert(lowering->wide, results[i], &wide->results[i]);
    }
    kiln_node_remove(node);
    return true;
}

/* Moves what is there in f32 to where it is read in f32. */
static bool
moves_wide(const Lowering *lowering, const KilnNode *node)
{
    bool there = false;
    for (uint32_t i = 0; i < node->n_operands && !there; i++)
        there = unrounded(lowering, node->operands[i].value) != NULL;
    return there && lowering->wants[node->id];
}

/* A cast to f32 or f64 of what is there in f32. */
static bool
read_unrounded(Lowering *lowering, KilnNode *cast, GError **error)
{
    KilnValue *wide = unrounded(lowering, cast->operands[0].value);
    if (!wide)
        return false;
    KilnDType to = cast->results[0].type.dtype;
    if (to != KILN_DTYPE_f32)
        wide = cast_before(cast, wide, to, error);
    if (!wide)
        return false;
    kiln_pass_note(lowering->context, rule, "%s", kiln_node_label(cast));
    kiln_value_replace(&cast->results[0], wide);
    kiln_node_remove(cast);
    return true;
}

static bool
lower(Lowering *lowering, KilnNode *node, GError **error)
{
    KilnPassContext *context = lowering->context;
    const KilnOpInfo *info = kiln_op_info(node->op);
    if (info->traits & KILN_TRAIT_SIDE_EFFECT || !computes_halves(node))
        return false;
    if (widens(node))
        return read_unrounded(lowering, node, error);
    PASS_GUARD(types_inferred, takes_other_types(node));
    PASS_GUARD(target_lacks, !kiln_pass_target_has(context, node) || moves_wide(lowering, node));
    g_autofree KilnValue **results = g_new(KilnValue *, node->n_results);
    KilnNode *wide = build_wide(lowering, node, error);
    if (!wide || !narrow_results(node, wide, results, error))
        return false;
    bool replaced = replace(lowering, node, wide, results);
    if (!replaced)
        take_back(lowering, node, wide, results);
    return replaced;
}

GRAPH_PASS(lower_halves);

gboolean
kiln_pass_lower_halves(KilnFunction *function, KilnPassContext *context, bool *changed,
                       GError **error)
{
    *changed = false;
    if (!kiln_pass_target(context))
        return TRUE;
    g_autoptr(GHashTable) wide = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) narrow = g_ptr_array_new();
    g_autofree bool *wants = g_new0(bool, function->next_id + 1);
    g_autofree bool *known = g_new0(bool, function->next_id + 1);
    const Options *options = kiln_pass_options(context);
    Lowering lowering = { .context = context,
                          .wide = wide,
                          .narrow = narrow,
                          .wants = wants,
                          .known = known,
                          .rounds = kiln_pass_one_algorithm(context) ||
                                    strcmp(options->rounding, "operators") == 0 };
    classify(&lowering, function);
    kiln_foreach_node_safe (node, function) {
        GError *why = NULL;
        *changed |= lower(&lowering, node, &why);
        if (why) {
            g_propagate_error(error, why);
            return FALSE;
        }
    }
    for (guint i = narrow->len; i-- > 0;) {
        KilnNode *cast = g_ptr_array_index(narrow, i);
        if (!cast->results[0].n_uses)
            kiln_node_remove(cast);
    }
    return TRUE;
}
