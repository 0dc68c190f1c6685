/* SPDX-License-Identifier: Apache-2.0 */
/* What is literal falls into chains (exec/chains.h), which are computed by the threads of a team,
 * each from its first node to its last. Values inside a chain live in a pool, which frees them with
 * their last reader; a literal gives its bytes back as soon as all its readers are folded, whatever
 * chain they are in. Then one sweep makes constants of what the rest of the function reads.
 *
 * What is computed is decided before, in the order of the chains and from types alone, and what is
 * said of it is said after, in the order of nodes: the number of threads changes nothing but the
 * time. Best effort: a node whose evaluation fails stays where it is. */
#include "passes/fold/evaluator.h"

#include "exec/chains.h"
#include "exec/eval.h"
#include "graph/base/alloc.h"
#include "graph/base/budget.h"
#include "graph/base/number.h"
#include "graph/module/sweep.h"
#include "passes/fold/constant_pool.h"
#include "passes/fold/constness.h"
#include "passes/fold/fold_compute.h"
#include "passes/fold/fold_plan.h"
#include "passes/pass.h"
#include "passes/query/literal.h"

#include <stdatomic.h>

/* What becomes of a node, by id. */
typedef struct {
    uint32_t item;      /* its number among those that are computed + 1; 0: it stays */
    bool may_run;       /* there is room for what its kernel makes */
    bool done;          /* its results were computed */
    bool refused;       /* by its kernel */
    bool folded;        /* done, and nothing needs the node itself */
    bool charged;       /* it counts, where it was not planned to be stored */
    atomic_uint unread; /* readers that are not folded: of a literal while chains are computed, of
                           what is computed while it is decided */
    KilnTensor **kept;  /* per result, what becomes a constant; NULL before */
} Fate;

typedef struct {
    int64_t peak;          /* bytes of its buffers */
    bool equal_found, ran; /* as of the worker */
    GError *failure;
} ChainState;

/* What the chains that a thread computes share. */
typedef struct {
    KilnLoweredNodes *lowered;
    KilnRecycler *recycler;
} Scratch;

/* One sweep over one function. */
typedef struct {
    KilnEvaluator *folder;
    KilnFunction *function;
    KilnFoldPlan plan;
    Fate *fates;
    KilnNode **nodes; /* that are computed, in order */
    uint32_t n_nodes;
    KilnChains *chains;
    ChainState *states;     /* by chain */
    int64_t *bytes;         /* by chain, from types: what it holds at most, and reads for that */
    int64_t largest, final; /* bytes of a step, and of all that will be stored */
    atomic_bool failed;     /* memory is short: chains that did not begin need not */
    Scratch *scratch;       /* by thread */
    uint32_t *references;   /* by constant id: to constants of the module */
    uint32_t n_references;
    bool retyped; /* a shape was found by computing */
} Sweep;

/* --- chains --- */

/* What is known of the node that makes @value, where it is one that is computed here. */
static Fate *
computed(const Sweep *sweep, const KilnValue *value)
{
    const KilnNode *def = value ? value->def : NULL;
    bool here = def && def->function == sweep->function && def->id < sweep->plan.n;
    return here && sweep->fates[def->id].item ? &sweep->fates[def->id] : NULL;
}

/* The `const` node of this function that makes @value; NULL where another does. */
static const KilnNode *
literal_here(const Sweep *sweep, const KilnValue *value)
{
    const KilnNode *def = kiln_value_def_of(value, KILN_OP_const);
    return def && def->function == sweep->function && def->id < sweep->plan.n ? def : NULL;
}

static void
find_chains(Sweep *sweep)
{
    sweep->fates = g_new0(Fate, (gsize)sweep->plan.n + 1);
    sweep->nodes = g_new(KilnNode *, (gsize)sweep->plan.n + 1);
    kiln_foreach_ordered (node, sweep->function) {
        if (node->op == KILN_OP_const)
            sweep->fates[node->id].unread = node->results[0].n_uses;
        if (!kiln_fold_plan_has(&sweep->plan, node, KILN_CONSTNESS_LITERAL))
            continue;
        sweep->nodes[sweep->n_nodes++] = node;
        sweep->fates[node->id].item = sweep->n_nodes;
    }
    sweep->chains = kiln_chains_new(sweep->n_nodes);
    for (uint32_t i = 0; i < sweep->n_nodes; i++) {
        const KilnNode *node = sweep->nodes[i];
        for (uint32_t k = 0; k < node->n_operands; k++) {
            const Fate *from = computed(sweep, node->operands[k].value);
            if (from)
                kiln_chains_join(sweep->chains, from->item - 1, i);
        }
    }
    kiln_chains_settle(sweep->chains);
    sweep->states = g_new0(ChainState, (gsize)sweep->chains->n + 1);
    sweep->bytes = g_new0(int64_t, (gsize)sweep->chains->n + 1);
}

static const KilnNode *
node_of_chain(const Sweep *sweep, uint32_t i)
{
    return sweep->nodes[sweep->chains->items[i]];
}

/* --- what may be computed --- */

/* What @node reads becomes constants, for it stays. */
static void
charge_operands(Sweep *sweep, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        Fate *from = computed(sweep, value);
        if (!from || from->charged || !from->done)
            continue;
        from->charged = true;
        kiln_fold_plan_accepts(&sweep->plan, value->def);
    }
}

static bool
has_operands(const Sweep *sweep, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        const Fate *from = value ? computed(sweep, value) : NULL;
        if (value && (from ? !from->done : !kiln_fold_is_readable(value)))
            return false;
    }
    return true;
}

/* Bytes of the literals that @node reads. */
static int64_t
literal_bytes(const KilnNode *node)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnConstant *constant = kiln_value_constant(node->operands[i].value);
        if (constant && constant->tensor->kind != KILN_TENSOR_SPLAT)
            bytes += MAX(kiln_type_bytes(&constant->type), (int64_t)0);
    }
    return bytes;
}

/* What @node reads and writes. */
static int64_t
step_bytes(const Sweep *sweep, const KilnNode *node)
{
    int64_t bytes = kiln_add_capped(sweep->plan.nodes[node->id].bytes, literal_bytes(node));
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (computed(sweep, value))
            bytes = kiln_add_capped(bytes, sweep->plan.nodes[value->def->id].bytes);
    }
    return bytes;
}

/* What reads what @node reads is one fewer; bytes that nothing reads any more. */
static int64_t
freed_bytes(const Sweep *sweep, const KilnNode *node)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        Fate *from = value ? computed(sweep, value) : NULL;
        if (from && --from->unread == 0)
            bytes += sweep->plan.nodes[value->def->id].bytes;
    }
    return bytes;
}

/* Whether @node, with @live bytes of its chain beside it, is computed if nothing fails. */
static bool
decide_node(Sweep *sweep, const KilnNode *node, int64_t live)
{
    KilnEvaluator *folder = sweep->folder;
    Fate *fate = &sweep->fates[node->id];
    fate->may_run = true;
    if (kiln_node_is_known(node) || !kiln_fold_takes_kernel(&sweep->plan, node))
        return kiln_node_is_known(node) || has_operands(sweep, node);
    fate->may_run = has_operands(sweep, node) && folder->target &&
                    folder->may_hold(folder, &sweep->plan, node, live);
    return fate->may_run;
}

static void
decide_chain(Sweep *sweep, uint32_t chain)
{
    int64_t live = 0, result = 0, *most = &sweep->bytes[chain];
    for (uint32_t i = sweep->chains->begin[chain]; i < sweep->chains->begin[chain + 1]; i++) {
        const KilnNode *node = node_of_chain(sweep, i);
        const KilnFoldNode *info = &sweep->plan.nodes[node->id];
        Fate *fate = &sweep->fates[node->id];
        fate->done = decide_node(sweep, node, live);
        if (!fate->done) {
            charge_operands(sweep, node);
            continue;
        }
        for (uint32_t r = 0; r < node->n_results; r++)
            fate->unread += node->results[r].n_uses;
        int64_t made = kiln_add_capped(live, info->bytes), read = literal_bytes(node);
        *most = MAX(*most, kiln_add_capped(made, read));
        result = MAX(result, info->bytes);
        sweep->largest = MAX(sweep->largest, step_bytes(sweep, node));
        sweep->final = kiln_add_capped(sweep->final, info->end ? info->bytes : 0);
        bool stays = kiln_fold_plan_has(&sweep->plan, node, KILN_CONSTNESS_VARYING);
        int64_t freed = stays ? 0 : freed_bytes(sweep, node);
        live = made - MIN(made, freed);
    }
    *most = kiln_add_capped(*most, result); /* the recycler keeps one besides */
}

/* --- computing --- */

/* All readers of literal @def were folded: its bytes go now, and the node with the dead ones at the
 * end. */
static void
give_back(Sweep *sweep, const KilnNode *def)
{
    KilnConstant *constant = kiln_attrs(def, const)->value;
    if (constant->id >= sweep->n_references || sweep->references[constant->id] != 1)
        return;
    KilnTensor *empty = kiln_tensor_new_splat(&constant->tensor->type, 0);
    kiln_tensor_free(constant->tensor);
    constant->tensor = empty;
    sweep->fates[def->id].folded = true;
}

/* A reader of literal @def, in whatever chain, was folded. Small ones stay in @pool for the next
 * reader; big ones wait for nobody. */
static void
release_literal(Sweep *sweep, KilnConstantPool *pool, const KilnNode *def)
{
    bool big = kiln_tensor_storage(kiln_attrs(def, const)->value->tensor) > KILN_FOLD_SMALL;
    kiln_constant_pool_release(pool, &def->results[0]);
    if (big)
        kiln_constant_pool_drop(pool, &def->results[0]);
    if (atomic_fetch_sub(&sweep->fates[def->id].unread, 1) == 1)
        give_back(sweep, def);
}

/* @node was folded: what nothing else reads goes. */
static void
release_operands(Sweep *sweep, KilnConstantPool *pool, const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        const KilnNode *literal = literal_here(sweep, value);
        if (literal)
            release_literal(sweep, pool, literal);
        else if (computed(sweep, value))
            kiln_constant_pool_release(pool, value);
    }
}

/* What is left in @pool that nodes outside the chain read, as the final tensors. */
static void
keep_results(Sweep *sweep, uint32_t chain, KilnConstantPool *pool, GError **failure)
{
    for (uint32_t i = sweep->chains->begin[chain]; i < sweep->chains->begin[chain + 1]; i++) {
        const KilnNode *node = node_of_chain(sweep, i);
        Fate *fate = &sweep->fates[node->id];
        for (uint32_t r = 0; r < node->n_results && fate->folded && !*failure; r++) {
            const KilnValue *value = &node->results[r];
            if (!value->n_uses || !kiln_constant_pool_has(pool, value))
                continue;
            if (!fate->kept)
                fate->kept = g_new0(KilnTensor *, node->n_results);
            fate->kept[r] = kiln_constant_pool_take(pool, value, failure);
        }
    }
}

static void
compute_node(Sweep *sweep, KilnFoldWorker *worker, const KilnNode *node)
{
    Fate *fate = &sweep->fates[node->id];
    if (!kiln_budget_check_time(&worker->failure))
        return;
    KilnFoldOutcome outcome = kiln_fold_compute(worker, node, fate->may_run);
    fate->done = outcome == KILN_FOLD_STORED;
    fate->refused = outcome == KILN_FOLD_REFUSED;
    fate->folded = fate->done && !kiln_fold_plan_has(&sweep->plan, node, KILN_CONSTNESS_VARYING);
    if (fate->folded)
        release_operands(sweep, worker->pool, node);
}

/* A KilnChainFn. */
static void
compute_chain(void *data, uint32_t chain, int worker_index, int threads)
{
    Sweep *sweep = data;
    ChainState *state = &sweep->states[chain];
    Scratch *scratch = &sweep->scratch[worker_index];
    if (atomic_load(&sweep->failed))
        return;
    if (!scratch->lowered) {
        scratch->lowered = kiln_lowered_nodes_new();
        scratch->recycler = kiln_recycler_new();
    }
    g_autoptr(KilnConstantPool) pool =
        kiln_constant_pool_new(sweep->function->module, scratch->recycler);
    KilnFoldWorker worker = { .target = sweep->folder->target,
                              .wide = sweep->folder->wide,
                              .plan = &sweep->plan,
                              .pool = pool,
                              .lowered = scratch->lowered,
                              .threads = threads };
    for (uint32_t i = sweep->chains->begin[chain];
         i < sweep->chains->begin[chain + 1] && !worker.failure; i++)
        compute_node(sweep, &worker, node_of_chain(sweep, i));
    keep_results(sweep, chain, pool, &worker.failure);
    if (worker.failure)
        atomic_store(&sweep->failed, true);
    *state = (ChainState){ kiln_constant_pool_peak(pool), worker.equal_found, worker.ran,
                           worker.failure };
}

/* What the chains found, in order, whoever found it first. */
static void
gather(Sweep *sweep)
{
    KilnEvaluator *folder = sweep->folder;
    bool ran = false;
    for (uint32_t c = 0; c < sweep->chains->n; c++) {
        ChainState *state = &sweep->states[c];
        ran |= state->ran;
        folder->peak = MAX(folder->peak, state->peak);
        folder->equal_found |= state->equal_found;
        if (!folder->failure)
            folder->failure = g_steal_pointer(&state->failure);
        g_clear_error(&state->failure);
    }
    if (ran)
        kiln_pass_evaluated(folder->context, KILN_NUMERICS_U);
    if (ran && folder->wide)
        kiln_pass_widen(folder->context, KILN_NUMERICS_U);
    for (uint32_t i = 0; i < sweep->n_nodes && !folder->failure; i++) {
        const KilnNode *node = sweep->nodes[i];
        const Fate *fate = &sweep->fates[node->id];
        kiln_pass_about(folder->context, node, sweep->plan.nodes[node->id].bytes);
        if (fate->refused)
            kiln_pass_refuse(folder->context, folder->rule, "evaluates");
        if (!fate->done)
            charge_operands(sweep, node);
    }
}

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

static void
compute_chains(Sweep *sweep)
{
    const KilnEvaluator *folder = sweep->folder;
    find_chains(sweep);
    if (!sweep->n_nodes)
        return;
    for (uint32_t c = 0; c < sweep->chains->n; c++)
        decide_chain(sweep, c);
    count_references(sweep);
    kiln_chains_run(sweep->chains, sweep->bytes,
                    kiln_add_capped(sweep->largest, sweep->final / KILN_CHAINS_SPARE),
                    folder->threads, compute_chain, sweep);
    gather(sweep);
}

/* --- nodes that go --- */

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
        if (node->id >= sweep->plan.n || !sweep->fates[node->id].folded || !kiln_node_is_dead(node))
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

/* --- constants that come --- */

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
make_constant(Sweep *sweep, KilnValue *value, KilnTensor *tensor)
{
    KilnEvaluator *folder = sweep->folder;
    KilnNode *def = value->def;
    const KilnFoldNode *info = &sweep->plan.nodes[def->id];
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
        const Fate *from = computed(sweep, value);
        if (!from || !from->kept || !from->kept[value->index])
            continue;
        make_constant(sweep, value, g_steal_pointer(&from->kept[value->index]));
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
    compute_chains(sweep);
    kiln_foreach_node_safe (node, sweep->function) {
        if (node->id >= sweep->plan.n || sweep->folder->failure)
            continue; /* a constant made here */
        const Fate *fate = &sweep->fates[node->id];
        if (kiln_fold_plan_has(&sweep->plan, node, KILN_CONSTNESS_VARYING) ||
            (fate->item && !fate->done))
            read_constants(sweep, node);
    }
    if (sweep->folder->failure)
        return;
    remove_folded(sweep);
    if (sweep->retyped)
        refine_types(sweep);
}

static void
sweep_clear(Sweep *sweep)
{
    for (uint32_t i = 0; i < sweep->n_nodes; i++) {
        const KilnNode *node = sweep->nodes[i];
        KilnTensor **kept = sweep->fates[node->id].kept;
        for (uint32_t r = 0; kept && r < node->n_results; r++)
            kiln_tensor_free(kept[r]);
        g_free(kept);
    }
    for (int i = 0; i < sweep->folder->threads; i++) {
        kiln_lowered_nodes_free(sweep->scratch[i].lowered);
        kiln_recycler_free(sweep->scratch[i].recycler);
    }
    g_free(sweep->scratch);
    kiln_fold_plan_clear(&sweep->plan);
    kiln_chains_free(sweep->chains);
    g_free(sweep->fates);
    g_free(sweep->nodes);
    g_free(sweep->states);
    g_free(sweep->bytes);
    g_free(sweep->references);
}

void
kiln_fold_now(KilnEvaluator *folder, KilnFunction *function)
{
    Sweep sweep = { .folder = folder, .function = function, .plan = folder->plan };
    sweep.scratch = g_new0(Scratch, (gsize)folder->threads);
    sweep.plan.function = function;
    sweep.plan.charged = kiln_charged_bytes(function->module);
    kiln_constness_mark(function);
    kiln_fold_plan_make(&sweep.plan);
    if (sweep.plan.any)
        sweep_function(&sweep);
    folder->out_of_room |= sweep.plan.out_of_room;
    folder->retyped |= sweep.retyped;
    sweep_clear(&sweep);
}
