/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/random/opened.h"

#include "graph/function.h"
#include "graph/node.h"
#include "graph/op/structure.h"
#include "passes/manager/numerics.h"
#include "passes/manager/results.h"
#include "tests/random/given.h"

#include <string.h>

enum {
    MOST_NAMES = 12,
    LARGEST = 300,       /* of a name */
    MOST_WORK = 1 << 21, /* multiplications and elements of a graph at large numbers */
};

/* --- names --- */

/* The first dim is a batch and the last ones are rows, columns and times; channels seldom vary. */
static bool
may_vary(const char *input, const KilnType *type, int d, uint64_t seed)
{
    static const uint32_t percent[5][4] = {
        { 0 }, { 60 }, { 85, 40 }, { 85, 40, 50 }, { 85, 12, 60, 60 },
    };
    g_autofree char *name = g_strdup_printf("%s/%d", input, d);
    uint32_t chance = percent[MIN(type->rank, 4)][MIN(d, 3)];
    return type->dims[d] > 0 && given_draw(name, seed, 100) < chance;
}

/* Most equal dims have one name, as where a graph needs them to be equal. */
static char *
make_name(const char *input, const KilnType *type, int d, uint64_t seed)
{
    g_autofree char *name = g_strdup_printf("%s:%d", input, d);
    if (given_draw(name, seed, 5) < 3)
        return g_strdup_printf("n%" G_GINT64_FORMAT, type->dims[d]);
    return g_strdup_printf("%s_%d", input, d);
}

static int8_t
index_of_name(Opened *opened, char *name)
{
    for (guint i = 0; i < opened->names->len; i++) {
        if (strcmp(g_ptr_array_index(opened->names, i), name) == 0) {
            g_free(name);
            return (int8_t)i;
        }
    }
    g_ptr_array_add(opened->names, name);
    return (int8_t)(opened->names->len - 1);
}

static void
choose_names(Opened *opened, const KilnFunction *function)
{
    guint n = function->arguments->len;
    opened->name_of = g_new(int8_t, (gsize)n * KILN_MAX_RANK + 1);
    memset(opened->name_of, -1, (gsize)n * KILN_MAX_RANK);
    for (guint i = 0; i < n; i++) {
        const KilnValue *value = &kiln_function_argument(function, i)->value;
        for (int d = 0; d < value->type.rank; d++) {
            if (opened->names->len < MOST_NAMES && !value->type.quant &&
                may_vary(value->name, &value->type, d, opened->seed))
                opened->name_of[i * KILN_MAX_RANK + (guint)d] =
                    index_of_name(opened, make_name(value->name, &value->type, d, opened->seed));
        }
    }
}

static int64_t
number_of(const Opened *opened, int name, Numbers numbers)
{
    static const int64_t primes[] = { 3, 5, 2, 7, 11, 13 };
    int n = (int)opened->names->len, chosen = (int)(opened->seed / 7 % (uint64_t)MAX(n, 1));
    int64_t prime = primes[((uint64_t)name + opened->seed / 3) % G_N_ELEMENTS(primes)];
    switch (numbers) {
    case NUMBERS_ONES:
        return 1;
    case NUMBERS_EQUAL:
        return 4 + (int64_t)(opened->seed % 5);
    case NUMBERS_LARGE:
        return name == chosen ? opened->large : prime;
    case NUMBERS_ZERO:
        return name == chosen ? 0 : prime;
    case NUMBERS_ZEROS:
        return name == chosen || (opened->seed % 2 && name == (chosen + 1) % n) ? 0 : prime + 1;
    default:
        return prime;
    }
}

KilnBinding *
opened_bindings(const Opened *opened, Numbers numbers)
{
    const KilnFunction *function = kiln_module_entry(opened->module);
    guint n = function->arguments->len;
    KilnBinding *bindings = g_new0(KilnBinding, n + 1);
    for (guint i = 0; i < n; i++) {
        const KilnType *type = &kiln_function_argument(function, i)->value.type;
        bindings[i].rank = type->rank;
        for (int d = 0; d < type->rank; d++) {
            signed char name = opened->name_of[i * KILN_MAX_RANK + (guint)d];
            bindings[i].dims[d] = name < 0 ? type->dims[d] : number_of(opened, name, numbers);
        }
    }
    return bindings;
}

GPtrArray *
opened_inputs(const Opened *opened, const KilnBinding *bindings, GError **error)
{
    g_autoptr(KilnModule) clone = kiln_module_clone(opened->module);
    const KilnFunction *function = kiln_module_entry(clone);
    for (guint i = 0; i < function->arguments->len; i++) {
        KilnType *type = &kiln_function_argument(function, i)->value.type;
        memcpy(type->dims, bindings[i].dims, sizeof type->dims);
        memset(type->open, 0, sizeof type->open);
    }
    return kiln_random_inputs(function, NULL, 1, error);
}

/* --- types --- */

/* Gives the inputs the numbers of @numbers, or open dims for N_NUMBERS. */
static void
set_inputs(Opened *opened, Numbers numbers)
{
    KilnFunction *function = kiln_module_entry(opened->module);
    for (guint i = 0; i < function->arguments->len; i++) {
        KilnType *type = &kiln_function_argument(function, i)->value.type;
        for (int d = 0; d < type->rank; d++) {
            signed char name = opened->name_of[i * KILN_MAX_RANK + (guint)d];
            if (name < 0)
                continue;
            type->open[d] = NULL;
            type->dims[d] = numbers < N_NUMBERS ? number_of(opened, name, numbers) : -1;
            if (numbers == N_NUMBERS)
                kiln_type_set_dim(type, d,
                                  kiln_dim_name(opened->module->dims,
                                                g_ptr_array_index(opened->names, (guint)name)));
        }
    }
    kiln_function_touch(function);
}

/* --- repairs: what makes a node fit other numbers --- */

static KilnValue *
constant_of_one(KilnNode *before, const KilnValue *like)
{
    KilnType type = kiln_type_make(like->type.dtype, like->type.rank, like->type.dims);
    for (int d = 0; d < type.rank; d++)
        type.dims[d] = 1;
    return kiln_build_constant(before->function, before, "one",
                               kiln_tensor_new_splat(&type, 1 + given_draw(like->name, 1, 3)));
}

static bool
with_constants_of_one(KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        KilnValue *operand = node->operands[i].value;
        const KilnConstant *constant = operand ? kiln_value_constant(operand) : NULL;
        if (constant && !operand->type.quant && !constant->type.layout &&
            kiln_type_elements(&operand->type) > 1 && !kiln_op_is_shape_operand(node->op, i))
            kiln_node_set_operand(node, i, constant_of_one(node, operand));
    }
    return kiln_node_reinfer(node, NULL);
}

static bool
repair(KilnNode *node, uint64_t seed)
{
    return with_constants_of_one(node) || opened_compute_shape(node, seed);
}

/* --- nodes that have no place at some numbers --- */

static bool
reads_dead(const KilnNode *node, GHashTable *dead)
{
    bool found = false;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        found |= value && value->def && g_hash_table_contains(dead, value->def);
    }
    return found;
}

static bool
is_useless(const KilnNode *node)
{
    bool useless = node->op != KILN_OP_return;
    for (uint32_t r = 0; r < node->n_results; r++)
        useless &= node->results[r].n_uses == 0;
    return useless;
}

/* The results that are left, and values that nothing reads any more. */
static bool
set_results(KilnFunction *function, GHashTable *dead, const GPtrArray *more)
{
    g_autoptr(GPtrArray) values = g_ptr_array_new();
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const KilnNode *last = kiln_function_return(function);
    for (uint32_t i = 0; i < last->n_operands; i++) {
        KilnValue *value = last->operands[i].value;
        if (!value->def || !g_hash_table_contains(dead, value->def))
            g_ptr_array_add(values, value);
    }
    kiln_foreach_node (node, function) {
        bool ends = node->op != KILN_OP_const && is_useless(node) &&
                    !g_hash_table_contains(dead, node) && !reads_dead(node, dead);
        if (ends && values->len < 8 && kiln_dtype_size(node->results[0].type.dtype))
            g_ptr_array_add(values, &node->results[0]);
    }
    for (guint i = 0; more && i < more->len; i++)
        g_ptr_array_add(values, g_ptr_array_index(more, i));
    for (guint i = 0; i < values->len; i++)
        g_ptr_array_add(names, g_strdup_printf("result %u", i));
    return values->len &&
           kiln_function_set_results(function, (KilnValue *const *)values->pdata,
                                     (const char *const *)names->pdata, values->len, NULL);
}

static bool
remove_dead(KilnFunction *function, GHashTable *dead)
{
    if (g_hash_table_size(dead) && !set_results(function, dead, NULL))
        return false;
    kiln_foreach_node_reverse (node, function) {
        if (g_hash_table_contains(dead, node) || is_useless(node))
            kiln_node_remove(node);
    }
    return true;
}

/* Infers all types at @numbers, or for open dims. A node that does not fit is repaired, if @repairs
 * says so, or goes with all that reads it. False where nothing is left. */
static bool
infer_at(Opened *opened, Numbers numbers, bool repairs)
{
    KilnFunction *function = kiln_module_entry(opened->module);
    g_autoptr(GHashTable) dead = g_hash_table_new(NULL, NULL);
    set_inputs(opened, numbers);
    kiln_foreach_node_safe (node, function) {
        if (node->op == KILN_OP_return || node->op == KILN_OP_const)
            continue;
        if (reads_dead(node, dead) ||
            (!kiln_node_reinfer(node, NULL) && !(repairs && repair(node, opened->seed))))
            g_hash_table_add(dead, node);
    }
    return remove_dead(function, dead);
}

/* --- large numbers --- */

static double
work_of(const KilnFunction *function)
{
    double work = 0;
    for (guint i = 0; i < function->arguments->len; i++)
        work += (double)kiln_type_elements(&kiln_function_argument(function, i)->value.type);
    kiln_foreach_node (node, function) {
        for (uint32_t r = 0; r < node->n_results; r++)
            work += (double)MAX(kiln_type_elements(&node->results[r].type), 0) *
                    MAX(kiln_node_terms(node, NULL), 1);
    }
    return work;
}

static bool
choose_large(Opened *opened)
{
    bool fits = true;
    opened->large = LARGEST;
    do {
        fits = infer_at(opened, NUMBERS_LARGE, false);
        if (fits && work_of(kiln_module_entry(opened->module)) <= MOST_WORK)
            return true;
        opened->large = opened->large * 2 / 3;
    } while (fits && opened->large > 4);
    return fits;
}

/* --- the whole --- */

void
opened_clear(Opened *opened)
{
    g_clear_pointer(&opened->module, kiln_module_free);
    g_clear_pointer(&opened->names, g_ptr_array_unref);
    g_clear_pointer(&opened->name_of, g_free);
}

static bool
add_chains(Opened *opened)
{
    KilnFunction *function = kiln_module_entry(opened->module);
    g_autoptr(GPtrArray) ends = g_ptr_array_new();
    g_autoptr(GHashTable) none = g_hash_table_new(NULL, NULL);
    opened_add_chains(function, opened->seed, ends);
    return !ends->len || set_results(function, none, ends);
}

/* Names of inputs that nothing reads say nothing. */
static bool
varies(const Opened *opened)
{
    const KilnFunction *function = kiln_module_entry(opened->module);
    bool found = false;
    for (guint i = 0; i < function->arguments->len; i++) {
        const KilnValue *value = &kiln_function_argument(function, i)->value;
        found |= value->n_uses && kiln_type_is_open(&value->type);
    }
    return found;
}

bool
opened_init(Opened *out, const KilnModule *module, uint64_t seed)
{
    *out = (Opened){ .module = kiln_module_clone(module),
                     .seed = seed,
                     .names = g_ptr_array_new_with_free_func(g_free),
                     .large = LARGEST };
    choose_names(out, kiln_module_entry(out->module));
    return out->names->len && infer_at(out, NUMBERS_PRIMES, true) && add_chains(out) &&
           (seed % 8 == 0 || infer_at(out, NUMBERS_ONES, false)) &&
           infer_at(out, NUMBERS_EQUAL, false) && choose_large(out) &&
           infer_at(out, N_NUMBERS, false) && varies(out);
}
