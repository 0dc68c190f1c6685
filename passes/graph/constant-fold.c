/* SPDX-License-Identifier: Apache-2.0 */
/* constant-fold: nodes whose operands are all literal are evaluated now; their results become
 * constants.
 *
 *     const a   const b             const a+b
 *          \    /                      |
 *           add          =>           relu        only what a node that stays reads becomes a
 *            |                                    constant: values inside the folded part are
 *          relu                                   freed with their last use
 *
 * requires nothing, preserves nothing; class E on the target that evaluates, which is the one that
 * the program runs on: folded and unfolded bits agree. One forward sweep. Best effort: a node whose
 * evaluation fails stays where it is; where memory runs out, the pass fails. A subgraph that reads
 * a value folded here is swept again, since its nodes may have become literal.
 *
 * Never folded: random and stateful ops, side effects, subgraphs; quantize_linear (the business of
 * quantize-constants); a dequantize or cast that only grows its operand; results that would bring
 * what was folded in the module to more than `max-bytes`, or over `max-expansion` times their
 * operands (results of at most 4 KiB are always worth it). Results whose elements are all equal
 * need no storage and count nothing; where an op only moves equal elements, they are not even
 * computed. */
#include "passes/pass.h"

#include <string.h>

static const char rule[] = "fold";

enum {
    SMALL = 4096 /* bytes */
};

/* What all functions of one run share. */
typedef struct {
    KilnPassContext *context;
    const KilnPassOptions_constant_fold *options;
    const KilnTarget *target; /* NULL: only what needs no kernel is folded */
    int64_t bytes;    /* of constants that folding made, and of values inside folded parts */
    bool out_of_room; /* something was refused by max-bytes alone */
    bool changed;
    GError *failure; /* memory ran out */
} Fold;

/* One sweep over one function. Results have numbers: those of a node follow each other. */
typedef struct {
    Fold *fold;
    KilnFunction *function;
    uint32_t n;           /* nodes that have an id below this */
    bool *needed;         /* by node id: something that stays reads it, through whatever chain */
    bool *folded;         /* by node id */
    uint32_t *number;     /* by node id: of its first result */
    KilnTensor **literal; /* by number: of a folded node, until its last reader was visited */
    uint32_t *waiting;    /* by number: readers that were not visited yet */
} Sweep;

static void sweep_function(Fold *fold, KilnFunction *function);

/* --- literals --- */

/* A value that shape inference knows is literal too, whatever it was computed from. */
static bool
is_known(const KilnValue *value)
{
    return value->known && value->known->n == kiln_type_elements(&value->type) &&
           !value->type.quant && !value->type.layout;
}

/* Values of other functions have numbers of their own, constants made here have none. */
static bool
has_number(const Sweep *sweep, const KilnValue *value)
{
    return value->def && value->def->function == sweep->function && value->def->id < sweep->n;
}

static uint32_t
number_of(const Sweep *sweep, const KilnValue *value)
{
    return sweep->number[value->def->id] + value->index;
}

/* What this sweep folded @value to; NULL where it stays. */
static KilnTensor *
folded_to(const Sweep *sweep, const KilnValue *value)
{
    return value && has_number(sweep, value) ? sweep->literal[number_of(sweep, value)] : NULL;
}

static KilnTensor *
literal_of(const Sweep *sweep, const KilnValue *value)
{
    const KilnConstant *constant = kiln_value_constant(value);
    if (constant)
        return constant->type.quant || constant->type.layout ? NULL
                                                             : kiln_tensor_copy(constant->tensor);
    const KilnTensor *folded = folded_to(sweep, value);
    if (folded)
        return kiln_tensor_copy(folded);
    return is_known(value) ? kiln_value_known_tensor(value) : NULL;
}

static void
free_operands(KilnTensor **operands, uint32_t n)
{
    for (uint32_t i = 0; operands && i < n; i++)
        kiln_tensor_free(operands[i]);
    g_free(operands);
}

/* All operands as tensors; NULL where one is not literal. */
static KilnTensor **
literal_operands(const Sweep *sweep, const KilnNode *node)
{
    KilnTensor **operands = g_new0(KilnTensor *, node->n_operands + 1);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (!value)
            continue;
        operands[i] = literal_of(sweep, value);
        if (!operands[i]) {
            free_operands(operands, node->n_operands);
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
           node->op != KILN_OP_vendor_executable && node->n_results > 0 &&
           !(kiln_op_info(node->op)->traits & apart);
}

static bool
plain_results(KilnPassContext *context, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        const KilnType *type = &node->results[i].type;
        if (kiln_type_bytes(type) < 0)
            return false; /* its extents hang on data: there is no evaluating it alone */
        GUARD(plain_result, !type->quant && !type->layout);
    }
    return true;
}

static int64_t
add_capped(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static bool
within_budget(Fold *fold, const KilnNode *node, KilnTensor *const *operands)
{
    KilnPassContext *context = fold->context;
    int64_t in = 0, out = 0;
    for (uint32_t i = 0; i < node->n_operands; i++)
        in = add_capped(in, operands[i] ? kiln_type_bytes(&operands[i]->type) : 0);
    for (uint32_t i = 0; i < node->n_results; i++)
        out = add_capped(out, kiln_type_bytes(&node->results[i].type));
    bool small = out <= SMALL;
    bool grows = (node->op == KILN_OP_dequantize_linear || node->op == KILN_OP_cast) && out > in;
    GUARD(only_grows, small || !grows);
    GUARD(max_expansion, small || (double)out <= (double)fold->options->max_expansion *
                                                     (double)MAX(in, (int64_t)1));
    bool fits = small || out <= fold->options->max_bytes - fold->bytes;
    fold->out_of_room |= !fits;
    GUARD(max_bytes, fits);
    return true;
}

/* --- evaluating --- */

/* Ops that put elements of operand 0 elsewhere, whatever the others are. */
static bool
only_moves(const KilnNode *node)
{
    switch (node->op) {
    case KILN_OP_identity:
    case KILN_OP_reshape:
    case KILN_OP_flatten:
    case KILN_OP_squeeze:
    case KILN_OP_unsqueeze:
    case KILN_OP_transpose:
    case KILN_OP_split:
    case KILN_OP_slice:
    case KILN_OP_expand:
    case KILN_OP_tile:
    case KILN_OP_depth_to_space:
    case KILN_OP_space_to_depth:
    case KILN_OP_channel_shuffle:
        return true;
    default:
        return false;
    }
}

/* The one element that all results consist of, where that is seen without evaluating. */
static bool
moved_element(const KilnNode *node, KilnTensor *const *operands, uint8_t element[8])
{
    if (node->op == KILN_OP_constant_of_shape) {
        const KilnConstant *value = kiln_attrs(node, constant_of_shape)->value;
        memset(element, 0, 8);
        return !value || kiln_tensor_is_splat(value->tensor, 1, element);
    }
    return only_moves(node) && kiln_tensor_is_splat(operands[0], 1, element);
}

static void
make_splats(const KilnNode *node, const uint8_t element[8], KilnTensor **results)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        const KilnType *type = &node->results[i].type;
        KilnType plain = kiln_type_make(type->dtype, type->rank, type->dims);
        results[i] = kiln_tensor_new_splat_bits(&plain, element);
    }
}

static bool
evaluate(Fold *fold, const KilnNode *node, KilnTensor *const *operands, KilnTensor **results)
{
    uint8_t element[8];
    if (!plain_results(fold->context, node))
        return false;
    if (moved_element(node, operands, element)) {
        make_splats(node, element, results);
        return true;
    }
    if (!fold->target || !within_budget(fold, node, operands))
        return false;
    g_autoptr(GError) why = NULL;
    if (!kiln_target_evaluate(fold->target, node, (const KilnTensor *const *)operands, results,
                              &why)) {
        if (g_error_matches(why, KILN_ERROR, KILN_ERROR_MEMORY))
            fold->failure = g_steal_pointer(&why);
        else
            kiln_pass_refuse(fold->context, rule, "evaluates");
        return false;
    }
    for (uint32_t i = 0; i < node->n_results; i++)
        results[i] = kiln_tensor_compact(results[i]);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (operands[i])
            kiln_tensor_drop_pages(operands[i]);
    }
    return true;
}

static bool
all_known(const KilnNode *node, KilnTensor **results)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (!is_known(&node->results[i]))
            return false;
    }
    for (uint32_t i = 0; i < node->n_results; i++)
        results[i] = kiln_value_known_tensor(&node->results[i]);
    return true;
}

static void
release(Sweep *sweep, uint32_t number)
{
    sweep->fold->bytes -= kiln_tensor_storage(sweep->literal[number]);
    g_clear_pointer(&sweep->literal[number], kiln_tensor_free);
}

static void
try_fold(Sweep *sweep, const KilnNode *node)
{
    uint32_t number = sweep->number[node->id];
    KilnTensor **results = &sweep->literal[number];
    bool done = all_known(node, results);
    if (!done) {
        KilnTensor **operands = literal_operands(sweep, node);
        done = operands && evaluate(sweep->fold, node, operands, results);
        free_operands(operands, node->n_operands);
    }
    sweep->folded[node->id] = done;
    for (uint32_t i = 0; i < node->n_results && done; i++) {
        sweep->fold->bytes += kiln_tensor_storage(results[i]);
        if (sweep->waiting[number + i] == 0)
            release(sweep, number + i);
    }
}

/* --- the sweep --- */

/* The last reader of a folded value lets its bytes go; nodes in subgraphs read when their owner
 * does. */
static void
release_operands(Sweep *sweep, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        uint32_t number = value && has_number(sweep, value) ? number_of(sweep, value) : UINT32_MAX;
        if (number != UINT32_MAX && --sweep->waiting[number] == 0 && sweep->literal[number])
            release(sweep, number);
    }
    kiln_foreach_region (region, node) {
        kiln_foreach_node (inner, region)
            release_operands(sweep, inner);
    }
}

/* The folded @value becomes a constant, which all its readers read from now on. */
static void
make_constant(Sweep *sweep, KilnValue *value)
{
    KilnNode *def = value->def;
    KilnTensor *tensor = g_steal_pointer(&sweep->literal[number_of(sweep, value)]);
    KilnValue *constant = kiln_build_constant(sweep->function, def, value->name, tensor);
    kiln_value_constant(constant)->computed = true;
    kiln_pass_note(sweep->fold->context, rule, "%s (%s)", kiln_node_label(def),
                   kiln_op_info(def->op)->name);
    kiln_value_replace(value, constant);
    sweep->fold->changed = true;
}

/* Makes constants of the folded values that a node which stays reads. True where it reads such
 * constants, those made before included: then a subgraph has new literals. */
static bool
read_constants(Sweep *sweep, const KilnNode *node)
{
    bool any = false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *value = node->operands[i].value;
        const KilnNode *def = value ? value->def : NULL;
        any |= def && def->function == sweep->function && def->id >= sweep->n;
        if (!folded_to(sweep, value))
            continue;
        make_constant(sweep, value);
        any = true;
    }
    kiln_foreach_region (region, node) {
        bool read = false;
        kiln_foreach_node (inner, region)
            read |= !kiln_node_is_dead(inner) && read_constants(sweep, inner);
        if (read)
            sweep_function(sweep->fold, region);
        any |= read;
    }
    return any;
}

/* Numbers the results and counts their readers; backwards, so that chains which nothing reads at
 * their end are seen not to be worth evaluating. */
static uint32_t
find_needed(Sweep *sweep)
{
    const uint32_t stays = KILN_TRAIT_SIDE_EFFECT | KILN_TRAIT_STATE;
    uint32_t n = 0;
    kiln_foreach_node_reverse (node, sweep->function) {
        sweep->needed[node->id] = (kiln_op_info(node->op)->traits & stays) != 0;
        sweep->number[node->id] = n;
        n += node->n_results;
        for (uint32_t i = 0; i < node->n_results; i++) {
            kiln_foreach_use (use, &node->results[i])
                sweep->needed[node->id] |=
                    use->user->function != sweep->function || sweep->needed[use->user->id];
        }
    }
    return n;
}

static void
count_readers(Sweep *sweep)
{
    kiln_foreach_node (node, sweep->function) {
        for (uint32_t i = 0; i < node->n_results; i++)
            sweep->waiting[sweep->number[node->id] + i] = node->results[i].n_uses;
    }
}

static void
sweep_function(Fold *fold, KilnFunction *function)
{
    uint32_t n = function->next_id;
    g_autofree bool *needed = g_new0(bool, n + 1), *folded = g_new0(bool, n + 1);
    g_autofree uint32_t *number = g_new0(uint32_t, n + 1);
    Sweep sweep = { fold, function, n, needed, folded, number, NULL, NULL };
    uint32_t n_results = find_needed(&sweep);
    g_autofree KilnTensor **literal = g_new0(KilnTensor *, n_results + 1);
    g_autofree uint32_t *waiting = g_new0(uint32_t, n_results + 1);
    sweep.literal = literal;
    sweep.waiting = waiting;
    count_readers(&sweep);
    kiln_foreach_node_safe (node, function) {
        if (node->id >= n)
            continue; /* a constant made here */
        if (needed[node->id] && is_candidate(node))
            try_fold(&sweep, node);
        if (fold->failure)
            break;
        if (needed[node->id] && !folded[node->id])
            read_constants(&sweep, node);
        release_operands(&sweep, node);
    }
    for (uint32_t i = 0; i < n_results; i++) {
        if (literal[i])
            release(&sweep, i);
    }
}

static int64_t
computed_bytes(const KilnModule *module)
{
    int64_t bytes = 0;
    for (guint i = 0; i < module->constants->len; i++) {
        const KilnConstant *constant = g_ptr_array_index(module->constants, i);
        if (constant->computed)
            bytes = add_capped(bytes, kiln_tensor_storage(constant->tensor));
    }
    return bytes;
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
    Fold fold = { .context = context, .options = options, .target = kiln_pass_target(context) };
    /* What had no room beside values that are gone by the end of a sweep may have room now. */
    do {
        fold.changed = fold.out_of_room = false;
        fold.bytes = computed_bytes(function->module);
        sweep_function(&fold, function);
        *changed |= fold.changed;
    } while (fold.changed && fold.out_of_room && !fold.failure);
    if (fold.failure)
        g_propagate_error(error, fold.failure);
    return fold.failure == NULL;
}
