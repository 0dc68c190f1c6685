/* SPDX-License-Identifier: Apache-2.0 */
/* constant-fold: nodes whose operands are all literal are evaluated now; their results become
 * constants.
 *
 *     const a   const b             const a+b
 *          \    /                      |
 *           add          =>           relu's reader     (only what a node that stays reads becomes
 * a constant: |                                           values inside the folded part are freed
 * with their last use) relu …
 *
 * requires nothing, preserves nothing; class E on the target that evaluates, which is the one that
 * the program runs on: folded and unfolded bits agree. One forward sweep. Best effort: a node whose
 * evaluation fails stays where it is.
 *
 * Never folded: random and stateful ops, side effects, subgraphs; quantize_linear (the business of
 * quantize-constants); a dequantize or cast that only grows its operand; results over `max-bytes`
 * altogether, or over `max-expansion` times their operands (results of at most 4 KiB are always
 * worth it). Results whose elements are all equal need no storage and count nothing. */
#include "passes/pass.h"

#include <string.h>

static const char rule[] = "fold";

enum {
    SMALL = 4096,             /* bytes */
    LOOK_FOR_SPLAT = 1 << 22, /* elements */
};

typedef struct {
    KilnFunction *function;
    KilnPassContext *context;
    const KilnPassOptions_constant_fold *options;
    const KilnTarget *target;
    KilnTensor ***folded; /* by node id: the results of a folded node; NULL where it stays */
    uint32_t *waiting;    /* by node id: readers of its results that were not visited yet */
    uint32_t n;           /* nodes that have an id below this */
    int64_t bytes;        /* of constants made so far */
    bool changed;
} Fold;

/* --- literals --- */

/* A value that shape inference knows is literal too, whatever it was computed from. */
static bool
is_known(const KilnValue *value)
{
    return value->known && kiln_type_is_static(&value->type) && !value->type.quant &&
           !value->type.layout;
}

static KilnTensor *
known_tensor(const KilnValue *value)
{
    if (!is_known(value))
        return NULL;
    KilnType type = kiln_type_make(value->type.dtype, value->type.rank, value->type.dims);
    size_t size = kiln_dtype_size(type.dtype);
    g_autofree uint8_t *bytes = g_malloc0((size_t)value->known->n * size + 8);
    for (int64_t i = 0; i < value->known->n; i++)
        memcpy(bytes + (size_t)i * size, &value->known->v[i],
               size); /* little-endian: the low bytes */
    return kiln_tensor_new_copy(&type, bytes, NULL);
}

static KilnTensor *
literal_of(const Fold *fold, const KilnValue *value)
{
    const KilnConstant *constant = kiln_value_constant(value);
    if (constant)
        return constant->type.quant || constant->type.layout ? NULL
                                                             : kiln_tensor_copy(constant->tensor);
    const KilnNode *node = value->def;
    if (node && node->id < fold->n && fold->folded[node->id])
        return kiln_tensor_copy(fold->folded[node->id][value->index]);
    return known_tensor(value);
}

static void
free_tensors(KilnTensor **tensors, uint32_t n)
{
    for (uint32_t i = 0; tensors && i < n; i++)
        kiln_tensor_free(tensors[i]);
    g_free(tensors);
}

/* All operands as tensors, NULL where one is not literal. */
static KilnTensor **
literal_operands(const Fold *fold, const KilnNode *node)
{
    KilnTensor **operands = g_new0(KilnTensor *, node->n_operands + 1);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (!value)
            continue;
        operands[i] = literal_of(fold, value);
        if (!operands[i]) {
            free_tensors(operands, node->n_operands);
            return NULL;
        }
    }
    return operands;
}

/* --- what may fold --- */

static bool
is_candidate(const KilnNode *node)
{
    const uint32_t apart =
        KILN_TRAIT_RANDOM | KILN_TRAIT_STATE | KILN_TRAIT_SIDE_EFFECT | KILN_TRAIT_REGION;
    return node->op != KILN_OP_const && node->op != KILN_OP_quantize_linear &&
           node->op != KILN_OP_vendor_executable && !(kiln_op_info(node->op)->traits & apart);
}

static int64_t
payload(const KilnTensor *tensor)
{
    return tensor ? MAX(kiln_type_bytes(&tensor->type), (int64_t)0) : 0;
}

static bool
within_budget(Fold *fold, const KilnNode *node, KilnTensor *const *operands)
{
    KilnPassContext *context = fold->context;
    int64_t in = 0, out = 0;
    for (uint32_t i = 0; i < node->n_operands; i++)
        in += payload(operands[i]);
    for (uint32_t i = 0; i < node->n_results; i++) {
        int64_t bytes = kiln_type_bytes(&node->results[i].type);
        GUARD(static_result,
              bytes >= 0 && !node->results[i].type.quant && !node->results[i].type.layout);
        GUARD(countable, !__builtin_add_overflow(out, bytes, &out));
    }
    bool small = out <= SMALL;
    bool grows = (node->op == KILN_OP_dequantize_linear || node->op == KILN_OP_cast) && out > in;
    GUARD(only_grows, small || !grows);
    GUARD(max_expansion, small || (double)out <= (double)fold->options->max_expansion *
                                                     (double)MAX(in, (int64_t)1));
    GUARD(max_bytes, small || out <= fold->options->max_bytes - fold->bytes);
    return true;
}

/* --- the sweep --- */

static void
shrink_splats(KilnTensor **tensors, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint8_t element[8];
        if (tensors[i]->kind != KILN_TENSOR_DATA ||
            !kiln_tensor_is_splat(tensors[i], LOOK_FOR_SPLAT, element))
            continue;
        KilnTensor *splat = kiln_tensor_new_splat_bits(&tensors[i]->type, element);
        kiln_tensor_free(tensors[i]);
        tensors[i] = splat;
    }
}

static void
try_fold(Fold *fold, KilnNode *node)
{
    bool all_known = node->n_results > 0;
    for (uint32_t i = 0; i < node->n_results; i++)
        all_known &= is_known(&node->results[i]);
    KilnTensor **results = g_new0(KilnTensor *, node->n_results + 1);
    if (all_known) {
        for (uint32_t i = 0; i < node->n_results; i++)
            results[i] = known_tensor(&node->results[i]);
        fold->folded[node->id] = results;
        return;
    }
    KilnTensor **operands = literal_operands(fold, node);
    if (operands && within_budget(fold, node, operands)) {
        g_autoptr(GError) inner = NULL;
        if (kiln_target_evaluate(fold->target, node, (const KilnTensor *const *)operands, results,
                                 &inner)) {
            shrink_splats(results, node->n_results);
            for (uint32_t i = 0; i < node->n_results; i++)
                fold->bytes += kiln_tensor_storage(results[i]);
            fold->folded[node->id] = g_steal_pointer(&results);
        } else {
            kiln_pass_refuse(fold->context, rule, "evaluates");
        }
    }
    free_tensors(operands, node->n_operands);
    free_tensors(results, node->n_results);
}

/* The last reader of a folded value lets its bytes go. */
static void
release_operands(Fold *fold, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        const KilnNode *def = value ? value->def : NULL;
        if (!def || def->function != fold->function || def->id >= fold->n ||
            --fold->waiting[def->id] || !fold->folded[def->id])
            continue;
        for (uint32_t r = 0; r < def->n_results; r++)
            fold->bytes -= kiln_tensor_storage(fold->folded[def->id][r]);
        free_tensors(fold->folded[def->id], def->n_results);
        fold->folded[def->id] = NULL;
    }
}

/* Makes constants of the folded values that a node which stays reads, and lets the node read those.
 */
static void
read_constants(Fold *fold, KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *value = node->operands[i].value;
        KilnNode *def = value ? value->def : NULL;
        if (!def || def->function != fold->function || def->id >= fold->n || !fold->folded[def->id])
            continue;
        KilnTensor *tensor = kiln_tensor_copy(fold->folded[def->id][value->index]);
        KilnValue *literal = kiln_build_constant(fold->function, def, value->name, tensor);
        kiln_pass_note(fold->context, rule, "%s (%s)", kiln_node_label(def),
                       kiln_op_info(def->op)->name);
        kiln_value_replace(value, literal);
        fold->changed = true;
    }
}

static void
count_readers(Fold *fold)
{
    kiln_foreach_node (node, fold->function) {
        for (uint32_t i = 0; i < node->n_results; i++)
            fold->waiting[node->id] += node->results[i].n_uses;
    }
}

static void
sweep(Fold *fold)
{
    kiln_foreach_node_safe (node, fold->function) {
        if (node->id >= fold->n)
            continue; /* a constant made here */
        if (is_candidate(node))
            try_fold(fold, node);
        if (!fold->folded[node->id])
            read_constants(fold, node);
        release_operands(fold, node);
    }
}

gboolean
kiln_pass_constant_fold(KilnFunction *function, KilnPassContext *context, bool *changed,
                        GError **error)
{
    *changed = false;
    const KilnPassOptions_constant_fold *options = kiln_pass_options(context, constant_fold);
    if (strcmp(options->evaluate, "compile") != 0)
        return kiln_throw(error, KILN_ERROR_PIPELINE,
                          "constant-fold: evaluate: expected compile, found %s (folding at the "
                          "first run is not available)",
                          options->evaluate);
    Fold fold = { .function = function,
                  .context = context,
                  .options = options,
                  .target = kiln_pass_target(context),
                  .n = function->next_id };
    if (!fold.target)
        return TRUE;
    fold.folded = g_new0(KilnTensor **, fold.n + 1);
    g_autofree uint32_t *waiting = g_new0(uint32_t, fold.n + 1);
    fold.waiting = waiting;
    count_readers(&fold);
    sweep(&fold);
    kiln_foreach_node (node, function) {
        if (node->id < fold.n)
            free_tensors(fold.folded[node->id], node->n_results);
    }
    g_free(fold.folded);
    *changed = fold.changed;
    return TRUE;
}
