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
 * passes/permute.h: every element-wise op with one operand or several, clip, prelu, where, cast,
 * quantize_linear, dequantize_linear, rescale_quantized; batch_normalization and lrn where channels
 * stay; layer_normalization where the normalized dims stay; softmax and its like, top_k, cum_sum,
 * reductions, arg_max and arg_min; concat, split, slice, pad, tile, expand, gather; reshapes that
 * mix no dims; pools along one spatial dim.
 *
 * Not one node at a time: from a transpose the pass collects the region of all that could compute
 * in the other order, and takes the part of it that transposes the fewest bytes afterwards. So a
 * value with several readers is followed where they meet again (x · sigmoid(x), residuals), and a
 * transpose is never copied above several readers that end in different places.
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
 * a region moves only if all transposes in front of it disappear and no reshape is inserted, so
 * that each new one has fewer nodes on its longest way to the end of the function than one that
 * disappeared (order of multisets). Hoisting takes only steps of the first two kinds, so the two
 * never undo each other. Dims that are not known count as 32.
 *
 * requires nothing, preserves nothing; class E: each element is computed by the same operation of
 * the same operands in the same order. Quantization stays: types are the old ones with their dims
 * moved. */
#include "passes/permute.h"

#include <string.h>

static const char rule[] = "sink-transpose";

enum {
    REGION_MAX = 1024 /* nodes: what is looked at from one transpose */
};

/* --- regions --- */

typedef struct {
    double bytes;
    int64_t transposes;
} Cost;

/* A value that is a transpose of one that the region computes, or starts from. */
typedef struct {
    KilnValue *value;
    KilnPerm perm;
    bool entry;             /* the result of a transpose */
    uint32_t n_inside;      /* uses that read the other value instead */
    uint32_t n_plain;       /* uses that need this value unless they are inside */
    bool computed;          /* by a member that is chosen */
    Cost cancelled;         /* transposes that undo it and nothing else */
    KilnValue *replacement; /* the other value, once it is built */
} Flipped;

typedef struct {
    KilnPermuted plan;
    Flipped **operands; /* per operand: what it is a transpose of, where the plan reads that */
    Flipped **results;  /* NULL: unchanged */
    bool chosen;
} Member;

typedef struct {
    KilnFunction *function;
    KilnPassContext *context;
    KilnArena *arena;
    GHashTable *flipped;   /* KilnValue → Flipped */
    GHashTable *is_member; /* of nodes */
    GPtrArray *members;    /* Member, operands before users */
    GPtrArray *entries;    /* Flipped */
    Cost cost;             /* of the chosen members, against now */
} Region;

static void
region_clear(Region *region)
{
    g_hash_table_unref(region->flipped);
    g_hash_table_unref(region->is_member);
    g_ptr_array_unref(region->members);
    g_ptr_array_unref(region->entries);
    kiln_arena_free(region->arena);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Region, region_clear)

static bool
is_linked(const KilnNode *node)
{
    return node->previous || node->next || node->function->first == node;
}

/* A transpose of this function that the region does not start from: behind a value that the region
 * computes it merges with the one that would be there. */
static bool
merges(const Region *region, const KilnNode *user)
{
    return user->function == region->function && kiln_perm_of(user).rank >= 0 &&
           !g_hash_table_contains(region->flipped, &user->results[0]);
}

/* What a transpose of @flipped would be of its replacement. */
static KilnPerm
merged_perm(const Flipped *flipped, const KilnNode *transpose)
{
    KilnPerm second = kiln_perm_of(transpose);
    return kiln_perm_compose(&flipped->perm, &second);
}

static bool
is_undone(const Region *region, const Flipped *flipped, const KilnNode *transpose)
{
    KilnPerm perm = merged_perm(flipped, transpose);
    KilnType type = kiln_perm_type_before(region->arena, &flipped->value->type, &flipped->perm);
    return kiln_perm_is_identity(&perm) && kiln_type_equal(&type, &transpose->results[0].type);
}

static Flipped *
add_flipped(Region *region, KilnValue *value, const KilnPerm *perm, bool entry)
{
    Flipped *flipped = kiln_arena_new0(region->arena, Flipped, 1);
    flipped->value = value;
    flipped->perm = *perm;
    flipped->entry = entry;
    kiln_foreach_use (use, value) {
        if (entry || !merges(region, use->user)) {
            flipped->n_plain++;
        } else if (is_undone(region, flipped, use->user)) {
            flipped->cancelled.bytes += kiln_perm_bytes(&value->type);
            flipped->cancelled.transposes++;
        }
    }
    g_hash_table_insert(region->flipped, value, flipped);
    if (entry)
        g_ptr_array_add(region->entries, flipped);
    return flipped;
}

/* --- growing --- */

/* What @value is a transpose by, now or in the region. */
static KilnPerm
perm_of_value(const Region *region, const KilnValue *value)
{
    const Flipped *flipped = value ? g_hash_table_lookup(region->flipped, value) : NULL;
    if (flipped)
        return flipped->perm;
    const KilnNode *def = value ? value->def : NULL;
    if (!def || def->function != region->function || def->op != KILN_OP_transpose ||
        g_hash_table_contains(region->flipped, def->operands[0].value))
        return KILN_PERM_NONE;
    return kiln_perm_of(def);
}

static bool
plan_member(Region *region, KilnNode *node, KilnPermuted *plan)
{
    *plan = (KilnPermuted){ .node = node,
                            .arena = region->arena,
                            .context = region->context,
                            .rule = rule,
                            .want = KILN_PERM_NONE };
    plan->from = kiln_arena_new0(region->arena, KilnPerm, node->n_operands + 1);
    for (uint32_t i = 0; i < node->n_operands; i++)
        plan->from[i] = perm_of_value(region, node->operands[i].value);
    if (!kiln_permute_plan(plan))
        return false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (plan->operands[i].kind == KILN_PERMUTED_FLIPPED)
            return true;
    }
    return false;
}

static void
try_join(Region *region, KilnNode *node, GPtrArray *queue)
{
    KilnPermuted plan;
    if (node->function != region->function || node->op == KILN_OP_transpose ||
        g_hash_table_contains(region->is_member, node) || !plan_member(region, node, &plan))
        return;
    Member *member = kiln_arena_new0(region->arena, Member, 1);
    member->plan = plan;
    member->operands = kiln_arena_new0(region->arena, Flipped *, node->n_operands + 1);
    member->results = kiln_arena_new0(region->arena, Flipped *, node->n_results);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *value = node->operands[i].value;
        if (plan.operands[i].kind != KILN_PERMUTED_FLIPPED)
            continue;
        member->operands[i] = g_hash_table_lookup(region->flipped, value);
        if (member->operands[i])
            continue;
        member->operands[i] = add_flipped(region, value, &plan.from[i], true);
        g_ptr_array_add(queue, member->operands[i]);
    }
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (plan.results[r].rank < 0)
            continue;
        member->results[r] = add_flipped(region, &node->results[r], &plan.results[r], false);
        g_ptr_array_add(queue, member->results[r]);
    }
    g_hash_table_add(region->is_member, node);
    g_ptr_array_add(region->members, member);
}

/* Everything that could compute of what @transpose reads. */
static void
grow(Region *region, KilnNode *transpose)
{
    KilnPerm perm = kiln_perm_of(transpose);
    g_autoptr(GPtrArray) queue = g_ptr_array_new();
    g_ptr_array_add(queue, add_flipped(region, &transpose->results[0], &perm, true));
    for (guint at = 0; at < queue->len && region->members->len < REGION_MAX; at++) {
        const Flipped *flipped = g_ptr_array_index(queue, at);
        kiln_foreach_use (use, flipped->value)
            try_join(region, use->user, queue);
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

/* Adds @sign times what @flipped costs, in the region as it is chosen now, to its cost. */
static void
count(Region *region, const Flipped *flipped, int sign)
{
    double bytes = kiln_perm_bytes(&flipped->value->type);
    int transposes = flipped->n_plain > flipped->n_inside;
    if (flipped->entry ? flipped->n_inside == 0 : !flipped->computed)
        return;
    if (flipped->entry)
        transposes--;
    region->cost.bytes += sign * (transposes * bytes - flipped->cancelled.bytes);
    region->cost.transposes += sign * (transposes - flipped->cancelled.transposes);
}

static void
choose(Region *region, Member *member, bool chosen)
{
    const KilnNode *node = member->plan.node;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        if (!member->operands[i])
            continue;
        count(region, member->operands[i], -1);
        member->operands[i]->n_inside += chosen ? 1 : -1u;
        count(region, member->operands[i], 1);
    }
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (!member->results[r])
            continue;
        count(region, member->results[r], -1);
        member->results[r]->computed = chosen;
        count(region, member->results[r], 1);
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
        if (operand && !operand->entry && !operand->computed)
            return false;
    }
    return true;
}

static Member *
member_at(const Region *region, guint i)
{
    return g_ptr_array_index(region->members, i);
}

/* The cheapest beginning of the region, then node by node from its end what costs no more without
 * it, then from the start what costs no more with it: as far down as it goes for nothing. */
static void
choose_members(Region *region)
{
    guint best = 0, n = region->members->len;
    Cost least = { 0, 0 };
    for (guint i = 0; i < n; i++) {
        choose(region, member_at(region, i), true);
        if (compare_costs(region->cost, least) <= 0) {
            least = region->cost;
            best = i + 1;
        }
    }
    for (guint i = n; i-- > best;)
        choose(region, member_at(region, i), false);
    for (guint i = best; i-- > 0;) {
        Cost with = region->cost;
        if (is_read_inside(member_at(region, i)))
            continue;
        choose(region, member_at(region, i), false);
        if (compare_costs(region->cost, with) > 0)
            choose(region, member_at(region, i), true);
    }
    for (guint i = 0; i < n; i++) {
        Member *member = member_at(region, i);
        Cost without = region->cost;
        if (member->chosen || !can_be_computed(member))
            continue;
        choose(region, member, true);
        if (compare_costs(region->cost, without) > -(int)member->plan.has_view)
            choose(region, member, false);
    }
}

/* --- applying --- */

/* What is read instead of @flipped. */
static KilnValue *
replacement_of(const Flipped *flipped)
{
    return flipped->entry ? flipped->value->def->operands[0].value : flipped->replacement;
}

static gboolean
build_members(Region *region, GError **error)
{
    for (guint i = 0; i < region->members->len; i++) {
        const Member *member = member_at(region, i);
        KilnNode *node = member->plan.node;
        if (!member->chosen)
            continue;
        g_autofree KilnValue **flipped = g_new0(KilnValue *, node->n_operands + 1);
        for (uint32_t k = 0; k < node->n_operands; k++)
            flipped[k] = member->operands[k] ? replacement_of(member->operands[k]) : NULL;
        KilnNode *built = kiln_permute_build(&member->plan, flipped, error);
        if (!built)
            return FALSE;
        for (uint32_t r = 0; r < node->n_results; r++) {
            if (member->results[r])
                member->results[r]->replacement = &built->results[r];
            else if (node->results[r].n_uses)
                kiln_value_replace(&node->results[r], &built->results[r]);
        }
    }
    return TRUE;
}

/* Readers of @flipped read its replacement: transposes merge, others get a transpose. */
static gboolean
replace(const Region *region, const Flipped *flipped, GError **error)
{
    KilnValue *value = flipped->value;
    kiln_foreach_use_safe (use, value) {
        KilnNode *user = use->user;
        if (!merges(region, user))
            continue;
        KilnValue *old = &user->results[0], *merged = flipped->replacement;
        KilnPerm perm = merged_perm(flipped, user);
        if (!is_undone(region, flipped, user))
            merged = kiln_perm_transpose(user, merged, &perm, &old->type, error);
        if (!merged)
            return FALSE;
        kiln_value_replace(old, merged);
        kiln_node_remove(user);
    }
    if (!value->n_uses)
        return TRUE;
    KilnValue *transposed =
        kiln_perm_transpose(value->def, flipped->replacement, &flipped->perm, &value->type, error);
    if (transposed)
        kiln_value_replace(value, transposed);
    return transposed != NULL;
}

static gboolean
apply(Region *region, GError **error)
{
    if (!build_members(region, error))
        return FALSE;
    g_autoptr(GPtrArray) left = g_ptr_array_new(); /* what may be read no more */
    for (guint i = region->members->len; i-- > 0;) {
        const Member *member = member_at(region, i);
        KilnNode *node = member->plan.node;
        if (!member->chosen)
            continue;
        for (uint32_t r = 0; r < node->n_results; r++) {
            if (member->results[r] && !replace(region, member->results[r], error))
                return FALSE;
        }
        kiln_pass_note(region->context, rule, "below %s (%s)", kiln_node_label(node),
                       kiln_op_info(node->op)->name);
        for (uint32_t k = 0; k < node->n_operands; k++) {
            const KilnValue *value = node->operands[k].value;
            if (value && value->def)
                g_ptr_array_add(left, value->def);
        }
        kiln_node_remove(node);
    }
    for (guint i = 0; i < left->len; i++) {
        KilnNode *node = g_ptr_array_index(left, i);
        if (node->function == region->function)
            kiln_node_remove_if_dead(node);
    }
    return TRUE;
}

/* --- the pass --- */

static bool
has_chosen(const Region *region)
{
    for (guint i = 0; i < region->members->len; i++) {
        if (member_at(region, i)->chosen)
            return true;
    }
    return false;
}

static bool
inserts_views(const Region *region)
{
    for (guint i = 0; i < region->members->len; i++) {
        if (member_at(region, i)->chosen && member_at(region, i)->plan.has_view)
            return true;
    }
    return false;
}

static bool
keeps_entries(const Region *region)
{
    for (guint i = 0; i < region->entries->len; i++) {
        const Flipped *entry = g_ptr_array_index(region->entries, i);
        if (entry->n_inside && entry->n_inside < entry->n_plain)
            return true;
    }
    return false;
}

static bool
sink(KilnNode *transpose, KilnPassContext *context, GError **error)
{
    g_auto(Region) region = { .function = transpose->function,
                              .context = context,
                              .arena = kiln_arena_new(),
                              .flipped = g_hash_table_new(NULL, NULL),
                              .is_member = g_hash_table_new(NULL, NULL),
                              .members = g_ptr_array_new(),
                              .entries = g_ptr_array_new() };
    grow(&region, transpose);
    choose_members(&region);
    if (!has_chosen(&region))
        return false;
    bool less = compare_costs(region.cost, (Cost){ 0, 0 }) < 0;
    GUARD(none_stays, less || !keeps_entries(&region));
    GUARD(no_views, less || !inserts_views(&region));
    return apply(&region, error);
}

gboolean
kiln_pass_sink_transposes(KilnFunction *function, KilnPassContext *context, bool *changed,
                          GError **error)
{
    *changed = false;
    for (bool again = true; again;) {
        again = false;
        g_autoptr(GPtrArray) transposes = g_ptr_array_new();
        kiln_foreach_node (node, function) {
            if (kiln_perm_of(node).rank >= 0)
                g_ptr_array_add(transposes, node);
        }
        for (guint i = 0; i < transposes->len; i++) {
            GError *why = NULL;
            KilnNode *transpose = g_ptr_array_index(transposes, i);
            if (is_linked(transpose) && sink(transpose, context, &why))
                again = *changed = true;
            if (why) {
                g_propagate_error(error, why);
                return FALSE;
            }
        }
    }
    return TRUE;
}
