/* SPDX-License-Identifier: Apache-2.0 */
/* sink-transposes: moves transposes towards the end of the function, where they meet others.
 *
 *        x                x            x       y               x   y
 *        |                |            |       |               |   |
 *    transpose p         op'       transpose transpose          op'
 *        |        =>      |             \     /          =>      |
 *       op            transpose q         op                 transpose
 *        |                |               |                      |
 *
 * What op' is (axes, pads, repeats, shapes, constants beside it in the other order) is planned in
 * passes/permute/permute.h: every element-wise op with one operand or several, clip, prelu, where,
 * cast, quantize_linear, dequantize_linear, rescale_quantized; batch_normalization; lrn where
 * channels stay; layer_ and rms_normalization where the normalized dims stay; softmax and its like,
 * top_k, cum_sum, cum_prod, reductions, arg_max and arg_min; concat, split, slice, pad, tile,
 * expand, gather; reshapes that mix no dims; pools along one spatial dim.
 *
 * Not one node at a time: the pass collects the regions of all that could compute in another order,
 * and takes the part of each that transposes the fewest bytes afterwards. So a value with several
 * readers is followed where they meet again (x · sigmoid(x), residuals), and a transpose is never
 * copied above several readers that end in different places. An operand that is no transpose is
 * transposed for a region where more is saved behind it.
 *
 *          transpose                       x
 *           |     \                      |    \
 *           |   sigmoid       =>         |  sigmoid'
 *           |     /                      |    /
 *             mul                         mul'
 *              |                           |
 *                                       transpose
 *
 * A transpose that reads a value of the region is merged with the one that would be there, so
 * nothing is left of two that undo each other.
 *
 * What decreases with every rewrite, here and in hoist-transposes and merge-transposes: the bytes
 * that are transposed; where they are equal, the number of transposes; where that is equal too,
 * a region moves only if all transposes in front of it disappear and nothing is inserted, so
 * that each new one has fewer nodes on its longest way to the end of the function than one that
 * disappeared (order of multisets). Hoisting takes only steps of the first two kinds, so the two
 * never undo each other. Dims that are not known count as 32.
 *
 * requires nothing, preserves nothing; class E: each element is computed by the same operation of
 * the same operands in the same order. Quantization stays: types are the old ones with their dims
 * moved. */
#include "graph/op/transpose.h"
#include "passes/pass.h"
#include "passes/permute/permute.h"

static const char rule[] = "sink-transpose";

enum {
    TURNS_MAX = 64 /* regions of one turn are weighed against the graph before it */
};

/* --- regions --- */

typedef struct {
    double bytes;
    int64_t transposes;
} Cost;

typedef enum {
    FLIPPED_ENTRY,    /* the result of a transpose */
    FLIPPED_COMPUTED, /* the result of a member */
    FLIPPED_IMPORTED, /* any other value: it has to be transposed for the region */
} FlippedKind;

/* A value that is a transpose of one that the region computes, or starts from. */
typedef struct {
    KilnValue *value;
    KilnPerm perm;
    FlippedKind kind;
    uint32_t n_inside;      /* uses that read the other value instead */
    uint32_t n_plain;       /* uses that need this value unless they are inside */
    bool computed;          /* by a member that is chosen */
    Cost cancelled;         /* transposes that undo it and nothing else */
    KilnValue *replacement; /* the other value, once it is built */
    struct Member *member;  /* any that reads or computes it */
} Flipped;

typedef struct Member Member;
struct Member {
    KilnPermuted plan;
    Flipped **operands; /* per operand: what it is a transpose of, where the plan reads that */
    Flipped **results;  /* NULL: unchanged */
    bool inserts;       /* reshapes, or transposes of other operands */
    bool chosen;
    Member *parent;    /* of the same region; itself: the one that stands for the region */
    GPtrArray *region; /* of that one: all members */
};

/* All of a function that could compute in another order. */
typedef struct {
    KilnFunction *function;
    KilnPassContext *context;
    KilnArena *arena;
    GHashTable *flipped; /* KilnValue → Flipped; looked up */
    GPtrArray *members;  /* operands before users */
    bool *is_member;     /* by id of node */
    bool *may_join;      /* by id of node: it reads what is a transpose, now or in a region */
    GPtrArray *left;     /* KilnNode*: what may be read no more */
    bool imports;        /* other operands may be transposed */
    Cost cost;           /* of the chosen members of a region, against now */
} Search;

static void
search_clear(Search *search)
{
    g_hash_table_unref(search->flipped);
    g_ptr_array_unref(search->members);
    g_ptr_array_unref(search->left);
    g_free(search->is_member);
    g_free(search->may_join);
    kiln_arena_free(search->arena);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Search, search_clear)

/* A transpose of this function that no region starts from: behind a value that a region computes it
 * merges with the one that would be there. */
static bool
merges(const Search *search, const KilnNode *user)
{
    return user->function == search->function && kiln_perm_of(user).rank >= 0 &&
           !g_hash_table_contains(search->flipped, &user->results[0]);
}

/* What a transpose of @flipped would be of its replacement. */
static KilnPerm
merged_perm(const Flipped *flipped, const KilnNode *transpose)
{
    KilnPerm second = kiln_perm_of(transpose);
    return kiln_perm_compose(&flipped->perm, &second);
}

static bool
is_undone(const Search *search, const Flipped *flipped, const KilnNode *transpose)
{
    KilnPerm perm = merged_perm(flipped, transpose);
    KilnType type = kiln_perm_type_before(search->arena, &flipped->value->type, &flipped->perm);
    return kiln_perm_is_identity(&perm) && kiln_type_equal(&type, &transpose->results[0].type);
}

/* What reads @value may be able to compute in another order. */
static void
invite_readers(Search *search, const KilnValue *value)
{
    kiln_foreach_use (use, value) {
        if (use->user->function == search->function)
            search->may_join[use->user->id] = true;
    }
}

static Flipped *
add_flipped(Search *search, KilnValue *value, const KilnPerm *perm, FlippedKind kind)
{
    Flipped *flipped = kiln_arena_new0(search->arena, Flipped, 1);
    flipped->value = value;
    flipped->perm = *perm;
    flipped->kind = kind;
    kiln_foreach_use (use, value) {
        if (kind == FLIPPED_ENTRY || !merges(search, use->user)) {
            flipped->n_plain++;
        } else if (is_undone(search, flipped, use->user)) {
            flipped->cancelled.bytes += kiln_perm_bytes(&value->type);
            flipped->cancelled.transposes++;
        }
    }
    invite_readers(search, value);
    g_hash_table_insert(search->flipped, value, flipped);
    return flipped;
}

/* --- growing --- */

/* What @value is a transpose by, now or in the region. */
static KilnPerm
perm_of_value(const Search *search, const KilnValue *value)
{
    const Flipped *flipped = value ? g_hash_table_lookup(search->flipped, value) : NULL;
    if (flipped)
        return flipped->perm;
    const KilnNode *def = value ? value->def : NULL;
    if (!def || def->function != search->function || def->op != KILN_OP_transpose ||
        g_hash_table_contains(search->flipped, def->operands[0].value))
        return KILN_PERM_NONE;
    return kiln_perm_of(def);
}

/* No member computes @value, permuted in another way or not at all, and no transpose does, which
 * may merge with another. */
static bool
can_be_imported(const Search *search, const KilnValue *value)
{
    const KilnNode *def = value->def;
    if (g_hash_table_contains(search->flipped, value))
        return false;
    return !def || def->function != search->function ||
           (def->op != KILN_OP_transpose && !search->is_member[def->id]);
}

static bool
plan_member(Search *search, KilnNode *node, KilnPermuted *plan)
{
    *plan = (KilnPermuted){ .node = node,
                            .arena = search->arena,
                            .context = search->context,
                            .rule = rule,
                            .want = KILN_PERM_NONE,
                            .inverse = search->imports };
    plan->from = kiln_arena_new0(search->arena, KilnPerm, node->n_operands + 1);
    bool reads_flipped = false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        plan->from[i] = perm_of_value(search, node->operands[i].value);
        reads_flipped |= plan->from[i].rank >= 0;
    }
    if (!reads_flipped || !kiln_permute_plan(plan))
        return false;
    reads_flipped = false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        reads_flipped |= plan->operands[i].kind == KILN_PERMUTED_FLIPPED;
        if (plan->operands[i].kind == KILN_PERMUTED_INVERSE &&
            !can_be_imported(search, node->operands[i].value))
            return false;
    }
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (g_hash_table_contains(search->flipped, &node->results[r]))
            return false; /* it was imported */
    }
    return reads_flipped;
}

static Member *
region_of(Member *member)
{
    while (member->parent != member) {
        member->parent = member->parent->parent;
        member = member->parent;
    }
    return member;
}

/* Members that share a value are of one region. */
static void
connect(Member *member, Flipped *flipped)
{
    if (flipped->member)
        region_of(member)->parent = region_of(flipped->member);
    flipped->member = member;
}

/* What the operands of @kind of a member are transposes of. */
static void
find_operands(Search *search, Member *member, KilnPermutedKind kind)
{
    const KilnPermuted *plan = &member->plan;
    for (uint32_t i = 0; i < plan->node->n_operands; i++) {
        KilnValue *value = plan->node->operands[i].value;
        if (plan->operands[i].kind != kind)
            continue;
        Flipped *flipped = g_hash_table_lookup(search->flipped, value);
        if (!flipped)
            flipped = add_flipped(search, value, &plan->operands[i].perm,
                                  kind == KILN_PERMUTED_FLIPPED ? FLIPPED_ENTRY : FLIPPED_IMPORTED);
        member->operands[i] = flipped;
        member->inserts |= flipped->kind == FLIPPED_IMPORTED;
        connect(member, flipped);
    }
}

static void
try_join(Search *search, KilnNode *node)
{
    KilnPermuted plan;
    if (search->is_member[node->id] || !plan_member(search, node, &plan))
        return;
    search->is_member[node->id] = true;
    Member *member = kiln_arena_new0(search->arena, Member, 1);
    member->plan = plan;
    member->parent = member;
    member->inserts = plan.has_view;
    member->operands = kiln_arena_new0(search->arena, Flipped *, node->n_operands + 1);
    member->results = kiln_arena_new0(search->arena, Flipped *, node->n_results);
    find_operands(search, member, KILN_PERMUTED_FLIPPED); /* first: what is read of them is no */
    find_operands(search, member, KILN_PERMUTED_INVERSE); /* transpose that an import replaces */
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (plan.results[r].rank < 0)
            continue;
        member->results[r] =
            add_flipped(search, &node->results[r], &plan.results[r], FLIPPED_COMPUTED);
        connect(member, member->results[r]);
    }
    g_ptr_array_add(search->members, member);
}

/* Everything that could compute of what some transpose reads: first what needs nothing else, then
 * what needs other operands transposed. Of all other nodes nothing is read. */
static void
grow(Search *search)
{
    const KilnNodeOrder *order = kiln_function_order(search->function);
    for (uint32_t i = 0; i < order->n; i++) {
        if (order->ops[i] == KILN_OP_transpose)
            invite_readers(search, &order->entries[i].node->results[0]);
    }
    for (int round = 0; round < 2; round++) {
        search->imports = round > 0;
        for (uint32_t i = 0; i < order->n; i++) {
            if (search->may_join[order->entries[i].id])
                try_join(search, order->entries[i].node);
        }
    }
}

/* --- choosing --- */

static int
compare_costs(Cost a, Cost b)
{
    if (a.bytes != b.bytes)
        return a.bytes < b.bytes ? -1 : 1;
    return a.transposes < b.transposes ? -1 : a.transposes > b.transposes;
}

/* Adds @sign times what @flipped costs, with the members that are chosen now. */
static void
count(Search *search, const Flipped *flipped, int sign)
{
    double bytes = kiln_perm_bytes(&flipped->value->type);
    int transposes = flipped->n_plain > flipped->n_inside;
    if (flipped->kind == FLIPPED_COMPUTED ? !flipped->computed : flipped->n_inside == 0)
        return;
    if (flipped->kind == FLIPPED_ENTRY)
        transposes--;
    else if (flipped->kind == FLIPPED_IMPORTED)
        transposes = 1;
    search->cost.bytes += sign * (transposes * bytes - flipped->cancelled.bytes);
    search->cost.transposes += sign * (transposes - flipped->cancelled.transposes);
}

static void
choose(Search *search, Member *member, bool chosen)
{
    const KilnNode *node = member->plan.node;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (!member->operands[i])
            continue;
        count(search, member->operands[i], -1);
        member->operands[i]->n_inside += chosen ? 1 : -1u;
        count(search, member->operands[i], 1);
    }
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (!member->results[r])
            continue;
        count(search, member->results[r], -1);
        member->results[r]->computed = chosen;
        count(search, member->results[r], 1);
    }
    member->chosen = chosen;
}

static bool
is_read_inside(const Member *member)
{
    for (uint32_t r = 0; r < member->plan.node->n_results; r++) {
        if (member->results[r] && member->results[r]->n_inside)
            return true;
    }
    return false;
}

static bool
can_be_computed(const Member *member)
{
    for (uint32_t i = 0; i < member->plan.node->n_operands; i++) {
        const Flipped *operand = member->operands[i];
        if (operand && operand->kind == FLIPPED_COMPUTED && !operand->computed)
            return false;
    }
    return true;
}

static Member *
member_at(const GPtrArray *region, guint i)
{
    return g_ptr_array_index(region, i);
}

/* The cheapest beginning of the region, then node by node from its end what costs no more without
 * it, then from the start what costs no more with it: as far down as it goes for nothing. */
static void
choose_members(Search *search, const GPtrArray *region)
{
    guint best = 0;
    Cost least = { 0, 0 };
    search->cost = least;
    for (guint i = 0; i < region->len; i++) {
        choose(search, member_at(region, i), true);
        if (compare_costs(search->cost, least) <= 0) {
            least = search->cost;
            best = i + 1;
        }
    }
    for (guint i = region->len; i-- > best;)
        choose(search, member_at(region, i), false);
    for (guint i = best; i-- > 0;) {
        Cost with = search->cost;
        if (is_read_inside(member_at(region, i)))
            continue;
        choose(search, member_at(region, i), false);
        if (compare_costs(search->cost, with) > 0)
            choose(search, member_at(region, i), true);
    }
    for (guint i = 0; i < region->len; i++) {
        Member *member = member_at(region, i);
        Cost without = search->cost;
        if (member->chosen || !can_be_computed(member))
            continue;
        choose(search, member, true);
        if (compare_costs(search->cost, without) > -(int)member->inserts)
            choose(search, member, false);
    }
}

/* --- applying --- */

/* Transposes of the value read its replacement; those that undo it are that. */
static gboolean
merge_transposes(const Search *search, const Flipped *flipped, bool undone_only, GError **error)
{
    kiln_foreach_use_safe (use, flipped->value) {
        KilnNode *user = use->user;
        KilnValue *old = &user->results[0], *merged = flipped->replacement;
        if (!merges(search, user) || old == merged)
            continue;
        KilnPerm perm = merged_perm(flipped, user);
        bool undone = is_undone(search, flipped, user);
        if (!undone && undone_only)
            continue;
        if (!undone)
            merged = kiln_perm_transpose(user, merged, &perm, &old->type, error);
        if (!merged)
            return FALSE;
        kiln_value_replace(old, merged);
        kiln_node_remove(user);
    }
    return TRUE;
}

/* A transpose right behind the value, for the region and for all that did the same. */
static gboolean
import(const Search *search, Flipped *flipped, GError **error)
{
    const KilnNode *def = flipped->value->def;
    bool own = def && def->function == search->function;
    KilnNode *before = own ? def->next : search->function->first;
    KilnPerm inverse = kiln_perm_inverse(&flipped->perm);
    KilnType type = kiln_perm_type_before(search->arena, &flipped->value->type, &flipped->perm);
    flipped->replacement = kiln_perm_transpose(before, flipped->value, &inverse, &type, error);
    return flipped->replacement && merge_transposes(search, flipped, true, error);
}

/* Imports of all operands come before any is read: they replace transposes. */
static gboolean
import_operands(const Search *search, const Member *member, GError **error)
{
    for (uint32_t i = 0; i < member->plan.node->n_operands; i++) {
        Flipped *operand = member->operands[i];
        if (operand && operand->kind == FLIPPED_IMPORTED && !operand->replacement &&
            !import(search, operand, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
build_member(const Search *search, const Member *member, GError **error)
{
    KilnNode *node = member->plan.node;
    g_autofree KilnValue **flipped = g_new0(KilnValue *, node->n_operands + 1);
    if (!import_operands(search, member, error))
        return FALSE;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const Flipped *operand = member->operands[i];
        if (operand)
            flipped[i] = operand->kind == FLIPPED_ENTRY ? operand->value->def->operands[0].value
                                                        : operand->replacement;
    }
    KilnNode *built = kiln_permute_build(&member->plan, flipped, error);
    if (!built)
        return FALSE;
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (member->results[r])
            member->results[r]->replacement = &built->results[r];
        else if (node->results[r].n_uses)
            kiln_value_replace(&node->results[r], &built->results[r]);
    }
    return TRUE;
}

/* Readers of @flipped read its replacement: transposes merge, others get a transpose. */
static gboolean
replace(const Search *search, const Flipped *flipped, GError **error)
{
    KilnValue *value = flipped->value;
    if (!merge_transposes(search, flipped, false, error))
        return FALSE;
    if (!value->n_uses)
        return TRUE;
    KilnValue *transposed =
        kiln_perm_transpose(value->def, flipped->replacement, &flipped->perm, &value->type, error);
    if (transposed)
        kiln_value_replace(value, transposed);
    return transposed != NULL;
}

static gboolean
replace_member(const Search *search, const Member *member, GError **error)
{
    KilnNode *node = member->plan.node;
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (member->results[r] && !replace(search, member->results[r], error))
            return FALSE;
    }
    kiln_pass_note(search->context, rule, "below %s (%s)", kiln_node_label(node),
                   kiln_op_info(node->op)->name);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && value->def)
            g_ptr_array_add(search->left, value->def);
    }
    kiln_node_remove(node);
    return TRUE;
}

static gboolean
apply(const Search *search, const GPtrArray *region, GError **error)
{
    for (guint i = 0; i < region->len; i++) {
        if (member_at(region, i)->chosen && !build_member(search, member_at(region, i), error))
            return FALSE;
    }
    for (guint i = region->len; i-- > 0;) {
        if (member_at(region, i)->chosen && !replace_member(search, member_at(region, i), error))
            return FALSE;
    }
    return TRUE;
}

/* --- the pass --- */

static bool
has_chosen(const GPtrArray *region)
{
    for (guint i = 0; i < region->len; i++) {
        if (member_at(region, i)->chosen)
            return true;
    }
    return false;
}

static bool
inserts_nodes(const GPtrArray *region)
{
    for (guint i = 0; i < region->len; i++) {
        if (member_at(region, i)->chosen && member_at(region, i)->inserts)
            return true;
    }
    return false;
}

static bool
keeps_entries(const GPtrArray *region)
{
    for (guint i = 0; i < region->len; i++) {
        const Member *member = member_at(region, i);
        for (uint32_t k = 0; k < member->plan.node->n_operands; k++) {
            const Flipped *entry = member->operands[k];
            if (entry && entry->kind == FLIPPED_ENTRY && entry->n_inside &&
                entry->n_inside < entry->n_plain)
                return true;
        }
    }
    return false;
}

static bool
sink_region(Search *search, const GPtrArray *region, GError **error)
{
    KilnPassContext *context = search->context;
    choose_members(search, region);
    if (!has_chosen(region))
        return false;
    bool less = compare_costs(search->cost, (Cost){ 0, 0 }) < 0;
    PASS_GUARD(none_stays, less || !keeps_entries(region));
    PASS_GUARD(nothing_inserted, less || !inserts_nodes(region));
    return apply(search, region, error);
}

/* The members of each region, kept at the one that stands for it. */
static GPtrArray *
split_into_regions(const Search *search)
{
    GPtrArray *regions = g_ptr_array_new_with_free_func((GDestroyNotify)g_ptr_array_unref);
    for (guint i = 0; i < search->members->len; i++) {
        Member *root = region_of(member_at(search->members, i));
        if (!root->region) {
            root->region = g_ptr_array_new();
            g_ptr_array_add(regions, root->region);
        }
        g_ptr_array_add(root->region, member_at(search->members, i));
    }
    return regions;
}

static gboolean
sink_all(Search *search, bool *changed, GError **error)
{
    grow(search);
    g_autoptr(GPtrArray) regions = split_into_regions(search);
    for (guint i = 0; i < regions->len; i++) {
        GError *why = NULL;
        *changed |= sink_region(search, g_ptr_array_index(regions, i), &why);
        if (why) {
            g_propagate_error(error, why);
            return FALSE;
        }
    }
    for (guint i = 0; i < search->left->len; i++) {
        KilnNode *node = g_ptr_array_index(search->left, i);
        if (node->function == search->function)
            kiln_node_remove_if_dead(node);
    }
    return TRUE;
}

GRAPH_PASS(sink_transposes);

gboolean
kiln_pass_sink_transposes(KilnFunction *function, KilnPassContext *context, bool *changed,
                          GError **error)
{
    *changed = false;
    bool again = kiln_function_order(function)->n_of_op[KILN_OP_transpose] > 0;
    for (int turn = 0; again && turn < TURNS_MAX; turn++) {
        g_auto(Search) search = { .function = function,
                                  .context = context,
                                  .arena = kiln_arena_new(),
                                  .flipped = g_hash_table_new(NULL, NULL),
                                  .members = g_ptr_array_new(),
                                  .left = g_ptr_array_new(),
                                  .is_member = g_new0(bool, function->next_id + 1),
                                  .may_join = g_new0(bool, function->next_id + 1) };
        again = false;
        if (!sink_all(&search, &again, error))
            return FALSE;
        *changed |= again;
    }
    return TRUE;
}
