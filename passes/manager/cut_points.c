/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/manager/cut_points.h"

#include "exec/eval.h"
#include "graph/arena.h"
#include "graph/op/quantize.h"
#include "passes/manager/numerics.h"
#include "passes/manager/ties.h"
#include "passes/pass.h"

/* --- recording --- */

typedef struct {
    KilnTensor *tensor;
    double step; /* of quantized data that it was computed of */
    KilnReal real;
    KilnOp op;
    uint32_t n_operands;
    const char **operands; /* their names, of the record's arena */
} Value;

static void
value_free(gpointer data)
{
    Value *value = data;
    kiln_tensor_free(value->tensor);
    kiln_tensor_free(value->real.tensor);
    g_free(value);
}

KilnRecord *
kiln_record_new(KilnResults *results)
{
    KilnRecord *record = g_new0(KilnRecord, 1);
    record->results = results;
    record->roundings = 1;
    record->arena = kiln_arena_new();
    record->values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, value_free);
    record->times = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return record;
}

void
kiln_record_free(KilnRecord *record)
{
    if (!record)
        return;
    kiln_results_free(record->results);
    g_hash_table_unref(record->values);
    g_hash_table_unref(record->times);
    kiln_arena_free(record->arena);
    g_free(record);
}

/* The key of a value that is called @name, and has the place and the type of @value. */
static char *
key_named(const char *name, const KilnValue *value)
{
    g_autofree char *type = kiln_type_to_string(&value->type);
    GString *key = g_string_new(name);
    g_string_append_printf(key, " : %s", type);
    const KilnFunction *function = value->def->function;
    for (; function->owner; function = function->owner->function)
        g_string_append_printf(key, " in %s", kiln_node_label(function->owner));
    g_string_append_printf(key, " in @%s", function->name);
    return g_string_free(key, FALSE);
}

/* Where @value stands, what it is called, and of what type it is; NULL for what is not computed. */
static char *
key_of(const KilnValue *value)
{
    return value->def->op == KILN_OP_const ? NULL : key_named(value->name, value);
}

/* How many values of @key there were so far. */
static guint
times_of(GHashTable *times, const char *key)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(times, key));
}

/* @key of the value that was the @n-th of it, from 0: a loop computes one in each iteration. The
 * first has @key itself. */
static char *
key_in_iteration(const char *key, guint n)
{
    return n ? g_strdup_printf("%s, iteration %u", key, n) : g_strdup(key);
}

/* @last: what a loop noted of the node before, or NULL. */
static void
note_operands(const KilnRecord *record, const KilnNode *node, const Value *last, Value *out)
{
    out->op = node->op;
    out->n_operands = node->n_operands;
    out->operands =
        last ? last->operands : kiln_arena_new0(record->arena, const char *, node->n_operands + 1);
    for (uint32_t i = 0; !last && i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value)
            out->operands[i] = kiln_arena_strdup(record->arena, value->name);
    }
}

static gboolean
note_value(const KilnValue *value, KilnTensor **io_tensor, void *data, GError **error)
{
    (void)error;
    const KilnRecord *record = data;
    GHashTable *values = record->values;
    g_autofree char *key = key_of(value);
    if (!key)
        return TRUE;
    Value *noted = g_new0(Value, 1);
    noted->tensor = kiln_tensor_copy(*io_tensor);
    noted->step = kiln_node_step(value->def);
    note_operands(record, value->def, g_hash_table_lookup(values, key), noted);
    const KilnValue *real = kiln_real_quantized(value);
    g_autofree char *of = real ? key_of(real) : NULL;
    guint n = times_of(record->times, key), n_of = of ? times_of(record->times, of) : 0;
    g_autofree char *of_now = n_of ? key_in_iteration(of, n_of - 1) : NULL;
    const Value *read = of_now ? g_hash_table_lookup(values, of_now) : NULL;
    if (read)
        noted->real = kiln_real_make(real, &record->numbers, kiln_tensor_copy(read->tensor));
    g_hash_table_replace(values, key_in_iteration(key, n), noted);
    g_hash_table_replace(record->times, g_steal_pointer(&key), GUINT_TO_POINTER(n + 1));
    return TRUE;
}

KilnRecord *
kiln_record_graph(const KilnFunction *function, const KilnTarget *target, const GPtrArray *inputs,
                  GError **error)
{
    KilnRecord *record = kiln_record_new(NULL);
    record->inputs = inputs;
    if (inputs)
        record->numbers = kiln_results_numbers(record->arena, function, inputs);
    const KilnWatch watch = { .see = note_value, .data = record };
    record->results = kiln_results_watched(function, target, inputs, &watch, error);
    if (record->results)
        return record;
    kiln_record_free(record);
    return NULL;
}

/* --- cutting --- */

typedef struct {
    const KilnRecord *before;
    KilnNumerics numerics;
    double terms;
    GHashTable *times; /* KilnValue* → how many of it there were */
    GHashTable *wrong; /* KilnValue*: out of its bound, and what is computed of such */
    GHashTable *reals; /* KilnValue* → KilnTensor*: what is quantized */
} Cut;

/* Takes @key over, which may be NULL. */
static const Value *
find_noted(const Cut *cut, char *key, guint n)
{
    g_autofree char *now = key ? key_in_iteration(key, n) : NULL;
    g_free(key);
    return now ? g_hash_table_lookup(cut->before->values, now) : NULL;
}

/* What @value was before the pass; NULL where that is not known. A pass hands on no derived name to
 * what replaces a value. Then a reader of both values tells it. */
static const Value *
value_before(const Cut *cut, const KilnValue *value)
{
    const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(cut->times, value));
    const Value *was = find_noted(cut, key_of(value), n);
    if (was || !value->made_up || value->def->op == KILN_OP_const)
        return was;
    kiln_foreach_use (use, value) {
        const KilnNode *user = use->user;
        const Value *reader =
            user->n_results ? find_noted(cut, key_of(&user->results[0]), 0) : NULL;
        if (reader && reader->op == user->op && use->index < reader->n_operands &&
            reader->operands[use->index])
            was = find_noted(cut, key_named(reader->operands[use->index], value), n);
        if (was)
            return was;
    }
    return NULL;
}

/* What is computed of a wrong value. Arguments of regions and of what is folded are bound out of
 * sight: there any wrong value counts. */
static bool
is_of_wrong(const Cut *cut, const KilnNode *node)
{
    if (!g_hash_table_size(cut->wrong))
        return false;
    if (kiln_op_has(node->op, KILN_TRAIT_REGION))
        return true;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && (!value->def || g_hash_table_contains(cut->wrong, value)))
            return true;
    }
    return false;
}

static bool
is_quantized(const KilnValue *value)
{
    kiln_foreach_use (use, value) {
        if (use->user->op == KILN_OP_quantize_linear)
            return true;
    }
    return false;
}

/* Within the bound of the class, ties aside. */
static bool
fits(const Cut *cut, const Value *was, const KilnValue *value, const KilnTensor *is)
{
    KilnErrorTerms terms = { .terms = cut->terms,
                             .step = MAX(was->step, kiln_node_step(value->def)) };
    if (kiln_compare_numerics(was->tensor, is, cut->numerics, &terms, NULL))
        return true;
    if (cut->numerics != KILN_NUMERICS_QT)
        return false;
    const KilnValue *real = kiln_real_quantized(value);
    KilnTensor *read = real ? g_hash_table_lookup(cut->reals, real) : NULL;
    const KilnReal now =
        read ? kiln_real_make(real, &cut->before->numbers, read) : (KilnReal){ NULL, 0, 0 };
    for (int i = 0; i < 2; i++) {
        KilnTensor *others =
            kiln_without_ties(was->tensor, is, value->type.quant, i ? &now : &was->real);
        bool good =
            others && kiln_compare_numerics(was->tensor, others, cut->numerics, &terms, NULL);
        kiln_tensor_free(others);
        if (good)
            return true;
    }
    return false;
}

static void
tensor_free(gpointer tensor)
{
    kiln_tensor_free(tensor);
}

static gboolean
cut_value(const KilnValue *value, KilnTensor **io_tensor, void *data, GError **error)
{
    (void)error;
    const Cut *cut = data;
    const Value *was = value_before(cut, value);
    bool wrong = is_of_wrong(cut, value->def);
    if (was && !wrong)
        wrong = !fits(cut, was, value, *io_tensor);
    const guint n = GPOINTER_TO_UINT(g_hash_table_lookup(cut->times, value));
    g_hash_table_insert(cut->times, (gpointer)value, GUINT_TO_POINTER(n + 1));
    if (wrong)
        g_hash_table_add(cut->wrong, (gpointer)value);
    else if (was)
        *io_tensor = kiln_tensor_copy(was->tensor);
    if (kiln_dtype_is_float(value->type.dtype) && is_quantized(value))
        g_hash_table_replace(cut->reals, (gpointer)value, kiln_tensor_copy(*io_tensor));
    return TRUE;
}

gboolean
kiln_record_compare_cut(const KilnRecord *before, const KilnFunction *function,
                        const KilnTarget *target, KilnNumerics numerics, GError **error)
{
    g_autoptr(GHashTable) times = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) wrong = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) reals = g_hash_table_new_full(NULL, NULL, NULL, tensor_free);
    Cut cut = { .before = before,
                .numerics = numerics,
                .terms = MAX(before->results->terms.terms,
                             kiln_error_terms(function, &before->numbers).terms) *
                         before->roundings,
                .times = times,
                .wrong = wrong,
                .reals = reals };
    const KilnWatch watch = { .see = cut_value, .data = &cut };
    g_autoptr(KilnResults) results =
        kiln_results_watched(function, target, before->inputs, &watch, error);
    if (results)
        results->terms.terms = cut.terms;
    return results && kiln_results_compare(before->results, results, numerics, error);
}
