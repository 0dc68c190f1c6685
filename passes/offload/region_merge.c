/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes between two regions have levels: what the vendor has stands on even ones, what it lacks
 * on odd ones, and each reads only lower levels and its own. So what is connected on one odd level
 * is convex, and becomes one custom_op; levels in order are an order for the region. */
#include "passes/offload/region_merge.h"

#include "exec/eval.h"
#include "graph/function.h"
#include "graph/module/folding.h"
#include "graph/module/outline.h"
#include "graph/node.h"
#include "graph/op/layout.h"
#include "graph/op/offload.h"
#include "ir/vendor.h"
#include "passes/offload/offload_outline.h"

typedef struct {
    const KilnMerge *merge;
    GHashTable *index; /* KilnNode* → its number in `between`, from 1 on */
    uint32_t *level;   /* by index in `between` */
    uint32_t *group;   /* the same: the first node that it is connected with on its level */
    uint32_t n_levels;
} Levels;

static bool
between_at(const Levels *levels, const KilnValue *value, uint32_t *out)
{
    uint32_t i =
        value && value->def ? GPOINTER_TO_UINT(g_hash_table_lookup(levels->index, value->def)) : 0;
    *out = i - 1;
    return i > 0;
}

/* Node @i on its level is of one group with those that it reads there. */
static void
join_groups(Levels *levels, uint32_t i, uint32_t other)
{
    uint32_t from = MAX(levels->group[i], levels->group[other]);
    uint32_t to = MIN(levels->group[i], levels->group[other]);
    for (uint32_t k = 0; k <= i; k++)
        levels->group[k] = levels->group[k] == from ? to : levels->group[k];
}

static void
levels_clear(Levels *levels)
{
    g_hash_table_unref(levels->index);
    g_free(levels->level);
    g_free(levels->group);
}

static Levels
find_levels(const KilnMerge *merge)
{
    guint n = merge->between->len;
    Levels levels = { .merge = merge,
                      .index = g_hash_table_new(NULL, NULL),
                      .level = g_new0(uint32_t, n + 1),
                      .group = g_new0(uint32_t, n + 1) };
    for (guint i = 0; i < n; i++) {
        KilnNode *node = g_ptr_array_index(merge->between, i);
        uint32_t level = merge->custom[i], other;
        for (uint32_t k = 0; k < node->n_operands; k++) {
            if (between_at(&levels, node->operands[k].value, &other))
                level =
                    MAX(level, levels.level[other] + (merge->custom[i] != merge->custom[other]));
        }
        levels.level[i] = level;
        levels.group[i] = i;
        levels.n_levels = MAX(levels.n_levels, level + 1);
        for (uint32_t k = 0; merge->custom[i] && k < node->n_operands; k++) {
            if (between_at(&levels, node->operands[k].value, &other) &&
                levels.level[other] == level)
                join_groups(&levels, i, other);
        }
        g_hash_table_insert(levels.index, node, GUINT_TO_POINTER(i + 1));
    }
    return levels;
}

uint32_t
kiln_merge_customs(const KilnMerge *merge)
{
    Levels levels = find_levels(merge);
    uint32_t n = 0;
    for (guint i = 0; i < merge->between->len; i++)
        n += merge->custom[i] && levels.group[i] == i;
    levels_clear(&levels);
    return n;
}

/* True if the body of a custom_op copies literal operand @i and does not capture it: it stands for
 * an attribute, is a single number, or has no floats, which the vendor would have to hold. */
static bool
clones(const KilnNode *node, uint32_t i)
{
    const KilnValue *value = node->operands[i].value;
    bool attribute = kiln_op_is_shape_operand(node->op, i);
    return value && kiln_value_constant(value) &&
           (attribute || kiln_type_elements(&value->type) == 1 ||
            !kiln_dtype_is_float(value->type.dtype));
}

/* --- what may be a custom_op --- */

/* Constant in the body of a region, too. */
static bool
is_weight(const KilnValue *value, const KilnFunction *function)
{
    if (value->def)
        return kiln_value_constant(value) || (value->def->op == KILN_OP_unpack &&
                                              is_weight(value->def->operands[0].value, function));
    for (guint i = 0; i < function->arguments->len; i++) {
        const KilnArgument *argument = kiln_function_argument(function, i);
        if (&argument->value == value)
            return argument->constness == KILN_CONSTNESS_COMPILE;
    }
    return false;
}

/* Weights that own kernels would pack are not packed in a custom_op. */
static bool
reads_weights(const KilnNode *node)
{
    if (kiln_op_has(node->op, KILN_TRAIT_ELEMENTWISE))
        return false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && is_weight(value, node->function) && !clones(node, i))
            return true;
    }
    return false;
}

bool
kiln_merge_may_be_custom(const KilnTarget *target, const KilnNode *node)
{
    uint32_t apart = KILN_TRAIT_REGION | KILN_TRAIT_STATE | KILN_TRAIT_RANDOM |
                     KILN_TRAIT_SIDE_EFFECT | KILN_TRAIT_TERMINATOR;
    if (!target->vendor->takes_custom || kiln_op_info(node->op)->traits & apart ||
        node->op == KILN_OP_vendor_executable || reads_weights(node))
        return false;
    for (uint32_t r = 0; r < node->n_results; r++) {
        const KilnType *type = &node->results[r].type;
        if (!kiln_type_is_static(type) || type->quant || type->layout || node->results[r].known)
            return false;
    }
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && !kiln_type_is_static(&value->type))
            return false;
    }
    return target->vendor->takes_custom(node) && kiln_target_supports(target, node, NULL);
}

/* --- bodies --- */

/* A subgraph that is being filled: what is not in it yet is captured. */
typedef struct {
    KilnFunction *body;
    GHashTable *values;  /* of what is around, or copied → of the body */
    GPtrArray *captured; /* KilnValue*, one per argument */
    bool of_entry;       /* the region stands in it: values of the first run are constants */
} Fill;

static Fill
fill_new(KilnModule *module, bool of_entry)
{
    return (Fill){ kiln_function_new_region(module, "body"), g_hash_table_new(NULL, NULL),
                   g_ptr_array_new(), of_entry };
}

static void
fill_clear(Fill *fill)
{
    g_hash_table_unref(fill->values);
    g_ptr_array_unref(fill->captured);
}

static KilnValue *
value_in(Fill *fill, KilnValue *value, GError **error)
{
    KilnValue *inner = g_hash_table_lookup(fill->values, value);
    if (inner)
        return inner;
    inner = kiln_offload_capture(fill->body, value, fill->values, fill->captured, error);
    if (inner && fill->of_entry && kiln_value_is_fixed(value))
        ((KilnArgument *)inner)->constness = KILN_CONSTNESS_COMPILE;
    return inner;
}

static bool
copy_into(Fill *fill, const KilnNode *node, GError **error)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *value = node->operands[i].value;
        if (!value || g_hash_table_contains(fill->values, value))
            continue;
        bool good = clones(node, i) ? kiln_node_copy(fill->body, value->def, fill->values, NULL,
                                                     NULL, error) != NULL
                                    : value_in(fill, value, error) != NULL;
        if (!good)
            return false;
    }
    return kiln_node_copy(fill->body, node, fill->values, NULL, NULL, error) != NULL;
}

/* Goes on with the body of region @node, which need not be copied for that. */
static Fill
fill_from(const KilnNode *node)
{
    Fill fill = { kiln_attrs(node, vendor_graph)->body, g_hash_table_new(NULL, NULL),
                  g_ptr_array_new(), !node->function->owner };
    const KilnNode *results = kiln_function_return(fill.body);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *value = node->operands[i].value;
        g_hash_table_insert(fill.values, value, &kiln_function_argument(fill.body, i)->value);
        g_ptr_array_add(fill.captured, value);
    }
    for (uint32_t r = 0; r < node->n_results; r++)
        g_hash_table_insert(fill.values, (gpointer)&node->results[r], results->operands[r].value);
    return fill;
}

/* The operators of region @node, its operands those of the region that is made. */
static bool
copy_region(Fill *fill, const KilnNode *node, GError **error)
{
    const KilnFunction *body = kiln_attrs(node, vendor_graph)->body;
    const KilnNode *results = kiln_function_return(body);
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *value = value_in(fill, node->operands[i].value, error);
        if (!value)
            return false;
        g_hash_table_insert(fill->values, &kiln_function_argument(body, i)->value, value);
    }
    kiln_foreach_node (inner, body) {
        if (inner != results && !kiln_node_copy(fill->body, inner, fill->values, NULL, NULL, error))
            return false;
    }
    for (uint32_t r = 0; r < node->n_results; r++)
        g_hash_table_insert(fill->values, (gpointer)&node->results[r],
                            g_hash_table_lookup(fill->values, results->operands[r].value));
    return true;
}

/* --- custom_ops --- */

static bool
is_in_group(const Levels *levels, const KilnNode *node, uint32_t group)
{
    uint32_t i = GPOINTER_TO_UINT(g_hash_table_lookup(levels->index, node));
    return i > 0 && levels->merge->custom[i - 1] && levels->group[i - 1] == group;
}

/* Results of the group that others read. */
static GPtrArray *
group_results(const Levels *levels, uint32_t group)
{
    GPtrArray *results = g_ptr_array_new();
    for (guint i = group; i < levels->merge->between->len; i++) {
        KilnNode *node = g_ptr_array_index(levels->merge->between, i);
        for (uint32_t r = 0; is_in_group(levels, node, group) && r < node->n_results; r++) {
            bool read = false;
            kiln_foreach_use (use, &node->results[r])
                read |= !is_in_group(levels, use->user, group);
            if (read)
                g_ptr_array_add(results, &node->results[r]);
        }
    }
    return results;
}

static bool
add_custom_node(Fill *around, const Fill *inside, const GPtrArray *results, uint32_t number,
                GError **error)
{
    g_autofree KilnType *types = g_new0(KilnType, results->len + 1);
    g_autofree const char **names = g_new0(const char *, results->len + 1);
    g_autofree KilnValue **returned = g_new0(KilnValue *, results->len + 1);
    g_autofree KilnValue **operands = g_new0(KilnValue *, inside->captured->len + 1);
    for (guint r = 0; r < results->len; r++) {
        KilnValue *value = g_ptr_array_index(results, r);
        types[r] = value->type;
        names[r] = value->name;
        returned[r] = g_hash_table_lookup(inside->values, value);
    }
    for (guint i = 0; i < inside->captured->len; i++) {
        operands[i] = value_in(around, g_ptr_array_index(inside->captured, i), error);
        if (!operands[i])
            return false;
    }
    if (!kiln_function_set_results(inside->body, returned, NULL, results->len, error))
        return false;
    g_autofree char *name = g_strdup_printf("c%u", number);
    KilnAttrs_custom_op attrs = { .callee = name, .body = inside->body };
    KilnNodeSpec spec = { .op = KILN_OP_custom_op,
                          .operands = operands,
                          .n_operands = inside->captured->len,
                          .n_results = results->len,
                          .attrs = &attrs,
                          .result_names = names,
                          .types = types };
    KilnNode *node = kiln_node_new(around->body, &spec, error);
    for (guint r = 0; node && r < results->len; r++)
        g_hash_table_insert(around->values, g_ptr_array_index(results, r), &node->results[r]);
    return node != NULL;
}

static bool
add_custom(Fill *around, const Levels *levels, uint32_t group, uint32_t number, GError **error)
{
    Fill inside = fill_new(around->body->module, around->of_entry);
    g_autoptr(GPtrArray) results = group_results(levels, group);
    bool good = true;
    for (guint i = group; good && i < levels->merge->between->len; i++) {
        const KilnNode *node = g_ptr_array_index(levels->merge->between, i);
        if (is_in_group(levels, node, group))
            good = copy_into(&inside, node, error);
    }
    good = good && add_custom_node(around, &inside, results, number, error);
    fill_clear(&inside);
    return good;
}

KilnNode *
kiln_merge_wrap(KilnNode *node, uint32_t number, GError **error)
{
    Fill around = { node->function, g_hash_table_new(NULL, NULL), g_ptr_array_new(), false };
    Fill inside = fill_new(node->function->module, false);
    g_autoptr(GPtrArray) results = g_ptr_array_new(), read = g_ptr_array_new();
    KilnNode *custom = NULL;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *value = node->operands[i].value;
        if (value && !clones(node, i))
            g_hash_table_insert(around.values, value, value);
        if (value && value->def && !g_ptr_array_find(read, value->def, NULL))
            g_ptr_array_add(read, value->def);
    }
    for (uint32_t r = 0; r < node->n_results; r++)
        g_ptr_array_add(results, &node->results[r]);
    if (copy_into(&inside, node, error) &&
        add_custom_node(&around, &inside, results, number, error)) {
        const KilnValue *made = g_hash_table_lookup(around.values, g_ptr_array_index(results, 0));
        custom = made->def;
        kiln_node_move(custom, node);
        for (guint r = 0; r < results->len; r++)
            kiln_value_replace(g_ptr_array_index(results, r), &custom->results[r]);
        kiln_node_remove(node);
        for (guint i = 0; i < read->len; i++)
            kiln_node_remove_if_dead(g_ptr_array_index(read, i));
    }
    fill_clear(&inside);
    fill_clear(&around);
    return custom;
}

static bool
add_between(Fill *fill, const Levels *levels, uint32_t *number, GError **error)
{
    const KilnMerge *merge = levels->merge;
    for (uint32_t level = 0; level < levels->n_levels; level++) {
        for (guint i = 0; i < merge->between->len; i++) {
            if (levels->level[i] != level)
                continue;
            bool good = true;
            if (!merge->custom[i])
                good = copy_into(fill, g_ptr_array_index(merge->between, i), error);
            else if (levels->group[i] == i)
                good = add_custom(fill, levels, i, (*number)++, error);
            if (!good)
                return false;
        }
    }
    return true;
}

/* --- the whole --- */

static bool
is_part(const Levels *levels, const KilnNode *node)
{
    return node == levels->merge->first || node == levels->merge->last ||
           g_hash_table_contains(levels->index, node);
}

static void
add_results(const Levels *levels, KilnNode *node, GPtrArray *results)
{
    for (uint32_t r = 0; r < node->n_results; r++) {
        bool read = false;
        kiln_foreach_use (use, &node->results[r])
            read |= !is_part(levels, use->user);
        if (read)
            g_ptr_array_add(results, &node->results[r]);
    }
}

/* What reads a part and is none moves behind @merged, in order. */
static void
move_readers(const Levels *levels, KilnNode *merged)
{
    g_autoptr(GHashTable) behind = g_hash_table_new(NULL, NULL);
    KilnNode *before = merged->next, *next;
    for (KilnNode *node = levels->merge->first->next; node != merged; node = next) {
        bool reads = false;
        next = node->next;
        for (uint32_t i = 0; i < node->n_operands; i++) {
            const KilnNode *def = node->operands[i].value ? node->operands[i].value->def : NULL;
            reads |= def &&
                     (def == merged || is_part(levels, def) || g_hash_table_contains(behind, def));
        }
        if (!reads || is_part(levels, node))
            continue;
        g_hash_table_add(behind, node);
        kiln_node_move(node, before);
    }
}

static KilnNode *
make_region(const KilnMerge *merge, const Fill *fill, const GPtrArray *results, GError **error)
{
    g_autofree KilnType *types = g_new0(KilnType, results->len + 1);
    g_autofree KilnValue **returned = g_new0(KilnValue *, results->len + 1);
    for (guint r = 0; r < results->len; r++) {
        KilnValue *value = g_ptr_array_index(results, r);
        types[r] = value->type;
        returned[r] = g_hash_table_lookup(fill->values, value);
    }
    if (!kiln_function_set_results(fill->body, returned, NULL, results->len, error))
        return NULL;
    KilnAttrs_vendor_graph attrs = { .callee = kiln_attrs(merge->first, vendor_graph)->callee,
                                     .body = fill->body };
    KilnNodeSpec spec = { .op = KILN_OP_vendor_graph,
                          .operands = (KilnValue *const *)fill->captured->pdata,
                          .n_operands = fill->captured->len,
                          .n_results = results->len,
                          .attrs = &attrs,
                          .types = types,
                          .before = merge->last };
    KilnNode *merged = kiln_node_new(merge->last->function, &spec, error);
    for (guint r = 0; merged && r < results->len; r++)
        kiln_value_replace(g_ptr_array_index(results, r), &merged->results[r]);
    return merged;
}

KilnNode *
kiln_merge_make(const KilnMerge *merge, uint32_t *number, GError **error)
{
    Levels levels = find_levels(merge);
    Fill fill = fill_from(merge->first);
    g_autoptr(GPtrArray) results = g_ptr_array_new();
    KilnNode *merged = NULL;
    add_results(&levels, merge->first, results);
    for (guint i = 0; i < merge->between->len; i++)
        add_results(&levels, g_ptr_array_index(merge->between, i), results);
    add_results(&levels, merge->last, results);
    if (add_between(&fill, &levels, number, error) && copy_region(&fill, merge->last, error))
        merged = make_region(merge, &fill, results, error);
    if (merged) { /* to which the body belongs now */
        move_readers(&levels, merged);
        kiln_node_remove(merge->last);
        for (guint i = merge->between->len; i > 0; i--)
            kiln_node_remove(g_ptr_array_index(merge->between, i - 1));
        kiln_node_remove(merge->first);
    }
    fill_clear(&fill);
    levels_clear(&levels);
    return merged;
}
