/* SPDX-License-Identifier: Apache-2.0 */
/* The table of expressions: interning, names and their facts, order, hash. */
#include "graph/dim.h"

#include "graph/arena.h"
#include "graph/dim/dim_priv.h"
#include "graph/grow/table.h"

#include <pthread.h>
#include <string.h>

struct KilnDimTable {
    gint n_owners;
    pthread_mutex_t lock; /* of everything below */
    KilnArena *arena;
    KilnTable *all; /* KilnDim*, by what they say */
    bool small;     /* graph/dim/dim_small.h */
    GArray *equal;  /* KilnDimPair */
};

uint32_t
kiln_dim_arity(KilnDimOp op)
{
    switch (op) {
    case KILN_DIM_FLOOR:
    case KILN_DIM_MIN:
    case KILN_DIM_MAX:
        return 2;
    case KILN_DIM_SELECT:
        return 4;
    default:
        return 0;
    }
}

/* --- order and hash: of what expressions say, never of addresses --- */

static uint64_t
mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t
hash_of(const KilnDim *dim)
{
    uint64_t hash = mix(dim->op + 1, (uint64_t)dim->number);
    switch (dim->op) {
    case KILN_DIM_NUMBER:
        return hash;
    case KILN_DIM_NAME:
        for (const char *at = dim->u.name.text; *at; at++)
            hash = mix(hash, (unsigned char)*at);
        return hash;
    case KILN_DIM_SUM:
        for (uint32_t i = 0; i < dim->n; i++) {
            const KilnDimTerm *term = &dim->u.terms[i];
            hash = mix(hash, (uint64_t)term->coefficient);
            for (uint32_t k = 0; k < term->n; k++)
                hash = mix(hash, term->atoms[k]->hash);
        }
        return hash;
    default:
        for (uint32_t i = 0; i < dim->n; i++)
            hash = mix(hash, dim->u.args[i]->hash);
        return hash;
    }
}

uint64_t
kiln_dim_hash(const KilnDim *dim)
{
    return dim ? dim->hash : 0;
}

static int
compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int
kiln_dim_term_compare(const KilnDimTerm *a, const KilnDimTerm *b)
{
    int order = compare_numbers(b->n, a->n);
    for (uint32_t i = 0; !order && i < a->n; i++)
        order = kiln_dim_compare(a->atoms[i], b->atoms[i]);
    return order;
}

static int
compare_sums(const KilnDim *a, const KilnDim *b)
{
    int order = compare_numbers(a->n, b->n);
    for (uint32_t i = 0; !order && i < a->n; i++) {
        order = kiln_dim_term_compare(&a->u.terms[i], &b->u.terms[i]);
        if (!order)
            order = compare_numbers(a->u.terms[i].coefficient, b->u.terms[i].coefficient);
    }
    return order ? order : compare_numbers(a->number, b->number);
}

int
kiln_dim_compare(const KilnDim *a, const KilnDim *b)
{
    if (a == b)
        return 0;
    if (!a || !b)
        return a ? 1 : -1;
    int order = compare_numbers(a->op, b->op);
    if (order)
        return order;
    switch (a->op) {
    case KILN_DIM_NUMBER:
        return compare_numbers(a->number, b->number);
    case KILN_DIM_NAME:
        return strcmp(a->u.name.text, b->u.name.text);
    case KILN_DIM_SUM:
        return compare_sums(a, b);
    default:
        for (uint32_t i = 0; !order && i < a->n; i++)
            order = kiln_dim_compare(a->u.args[i], b->u.args[i]);
        return order;
    }
}

bool
kiln_dim_same(const KilnDim *a, const KilnDim *b)
{
    return a && b && (a == b || (a->hash == b->hash && kiln_dim_compare(a, b) == 0));
}

static guint
entry_hash(gconstpointer key)
{
    return (guint)(((const KilnDim *)key)->hash >> 32);
}

static gboolean
entry_equal(gconstpointer a, gconstpointer b)
{
    return kiln_dim_same(a, b);
}

/* --- tables --- */

KilnDimTable *
kiln_dim_table_new(void)
{
    KilnDimTable *table = g_new0(KilnDimTable, 1);
    table->n_owners = 1;
    pthread_mutex_init(&table->lock, NULL);
    table->arena = kiln_arena_new();
    table->all = kiln_table_new(entry_hash, entry_equal);
    table->equal = g_array_new(FALSE, FALSE, sizeof(KilnDimPair));
    return table;
}

KilnDimTable *
kiln_dim_table_ref(KilnDimTable *table)
{
    g_atomic_int_inc(&table->n_owners);
    return table;
}

void
kiln_dim_table_unref(KilnDimTable *table)
{
    if (!table || !g_atomic_int_dec_and_test(&table->n_owners))
        return;
    kiln_table_unref(table->all);
    g_array_unref(table->equal);
    kiln_arena_free(table->arena);
    pthread_mutex_destroy(&table->lock);
    g_free(table);
}

/* The one object that says what @dim says. What @dim borrows is copied where it is new. The table
 * is locked. */
static KilnDim *
intern_locked(KilnDimTable *table, KilnDim *dim)
{
    dim->hash = hash_of(dim);
    dim->table = table;
    KilnDim *found = kiln_table_lookup(table->all, dim);
    if (!found) {
        found = kiln_arena_copy(table->arena, dim, sizeof *dim);
        if (dim->op == KILN_DIM_NAME)
            found->u.name.text = kiln_arena_strdup(table->arena, dim->u.name.text);
        if (dim->op == KILN_DIM_SUM)
            found->u.terms =
                kiln_arena_copy(table->arena, dim->u.terms, dim->n * sizeof *dim->u.terms);
        kiln_table_add(table->all, found);
    }
    return found;
}

static KilnDim *
intern(KilnDimTable *table, KilnDim *dim)
{
    pthread_mutex_lock(&table->lock);
    KilnDim *found = intern_locked(table, dim);
    pthread_mutex_unlock(&table->lock);
    return found;
}

KilnDimTable *
kiln_dim_table_of(const KilnDim *dim)
{
    return dim->table;
}

const KilnDim *
kiln_dim_number(KilnDimTable *table, int64_t number)
{
    return intern(table, &(KilnDim){ .op = KILN_DIM_NUMBER, .number = number });
}

static KilnDim *
name_of(KilnDimTable *table, const char *name)
{
    KilnDim dim = { .op = KILN_DIM_NAME };
    dim.u.name.text = name;
    dim.u.name.facts = (KilnDimFacts){ .lo = 1, .hi = KILN_DIM_MOST, .divisor = 1 };
    return intern(table, &dim);
}

const KilnDim *
kiln_dim_name(KilnDimTable *table, const char *name)
{
    return name_of(table, name);
}

const KilnDim *
kiln_dim_table_defined(KilnDimTable *table, const char *name)
{
    KilnDim *dim = name_of(table, name);
    pthread_mutex_lock(&table->lock);
    dim->u.name.defined = true;
    pthread_mutex_unlock(&table->lock);
    return dim;
}

const KilnDim *
kiln_dim_table_define(KilnDimTable *table, const char *wanted, int64_t most)
{
    const KilnDimFacts facts = { .lo = 0, .hi = MAX(most, 0), .divisor = 1 };
    g_autoptr(GString) text = g_string_new(wanted);
    KilnDim *found = NULL;
    pthread_mutex_lock(&table->lock);
    for (unsigned i = 2; !found; i++) {
        KilnDim dim = { .op = KILN_DIM_NAME };
        dim.u.name.text = text->str;
        dim.hash = hash_of(&dim);
        const KilnDim *before = kiln_table_lookup(table->all, &dim);
        const KilnDimFacts *has = before ? &before->u.name.facts : &facts;
        if (has->lo == facts.lo && has->hi == facts.hi && has->divisor == facts.divisor) {
            found = intern_locked(table, &dim);
            found->u.name.facts = *has;
        }
        g_string_printf(text, "%s.%u", wanted, i);
    }
    pthread_mutex_unlock(&table->lock);
    return found;
}

const KilnDim *
kiln_dim_atom(KilnDimTable *table, KilnDimOp op, const KilnDim *const *args)
{
    KilnDim dim = { .op = op, .n = kiln_dim_arity(op) };
    for (uint32_t i = 0; i < dim.n; i++) {
        if (!args[i])
            return NULL;
        dim.u.args[i] = args[i];
        dim.depth = MAX(dim.depth, args[i]->depth + 1);
    }
    return dim.depth > KILN_DIM_DEPTH ? NULL : intern(table, &dim);
}

const KilnDim *
kiln_dim_of_sum(KilnDimTable *table, const KilnDimSum *sum)
{
    if (sum->too_big)
        return NULL;
    if (!sum->n)
        return kiln_dim_number(table, sum->constant);
    const KilnDimTerm *first = &sum->terms[0];
    if (sum->n == 1 && !sum->constant && first->coefficient == 1 && first->n == 1)
        return first->atoms[0];
    KilnDim dim = { .op = KILN_DIM_SUM, .n = sum->n, .number = sum->constant };
    dim.u.terms = sum->terms;
    for (uint32_t i = 0; i < sum->n; i++) {
        for (uint32_t k = 0; k < sum->terms[i].n; k++)
            dim.depth = MAX(dim.depth, sum->terms[i].atoms[k]->depth);
    }
    return intern(table, &dim);
}

/* --- facts --- */

gboolean
kiln_dim_state(KilnDimTable *table, const char *name, const KilnDimFacts *facts, GError **error)
{
    if (facts->lo < 0 || facts->hi < facts->lo)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "%s: expected bounds 0 or more in order, found %" G_GINT64_FORMAT
                          "..%" G_GINT64_FORMAT,
                          name, facts->lo, facts->hi);
    if (facts->divisor < 1)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "%s: expected a divisor of 1 or more, found %" G_GINT64_FORMAT, name,
                          facts->divisor);
    /* The nearest multiples inside: bounds that no value reaches say less than they could. */
    int64_t lo = facts->lo + (facts->divisor - facts->lo % facts->divisor) % facts->divisor;
    int64_t hi = facts->hi - facts->hi % facts->divisor;
    if (lo > hi)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "%s: expected a multiple of %" G_GINT64_FORMAT " from %" G_GINT64_FORMAT
                          " to %" G_GINT64_FORMAT ", found none",
                          name, facts->divisor, facts->lo, facts->hi);
    KilnDim *dim = name_of(table, name);
    pthread_mutex_lock(&table->lock);
    dim->u.name.facts = *facts;
    dim->u.name.facts.lo = lo;
    dim->u.name.facts.hi = hi;
    pthread_mutex_unlock(&table->lock);
    return TRUE;
}

void
kiln_dim_table_guess(KilnDimTable *table, const char *name, int64_t number)
{
    KilnDim *dim = name_of(table, name);
    pthread_mutex_lock(&table->lock);
    dim->u.name.guess = number;
    pthread_mutex_unlock(&table->lock);
}

bool
kiln_dim_facts(const KilnDim *dim, KilnDimFacts *out)
{
    if (!dim || dim->op != KILN_DIM_NAME)
        return false;
    *out = dim->u.name.facts;
    return true;
}

static gint
compare_names(gconstpointer a, gconstpointer b)
{
    return kiln_dim_compare(*(const KilnDim *const *)a, *(const KilnDim *const *)b);
}

GPtrArray *
kiln_dim_table_stated(KilnDimTable *table)
{
    GPtrArray *names = g_ptr_array_new();
    KilnTableIter iter;
    gpointer key;
    pthread_mutex_lock(&table->lock);
    kiln_table_iter_init(&iter, table->all);
    while (kiln_table_iter_next(&iter, &key, NULL)) {
        const KilnDim *dim = key;
        const KilnDimFacts *facts = &dim->u.name.facts;
        if (dim->op == KILN_DIM_NAME &&
            (facts->lo != 1 || facts->hi != KILN_DIM_MOST || facts->divisor != 1 || facts->hint))
            g_ptr_array_add(names, key);
    }
    pthread_mutex_unlock(&table->lock);
    g_ptr_array_sort(names, compare_names);
    return names;
}

bool
kiln_dim_is_number(const KilnDim *dim, int64_t *out)
{
    if (!dim || dim->op != KILN_DIM_NUMBER)
        return false;
    *out = dim->number;
    return true;
}

const char *
kiln_dim_as_name(const KilnDim *dim)
{
    return dim && dim->op == KILN_DIM_NAME ? dim->u.name.text : NULL;
}

bool
kiln_dim_table_small(KilnDimTable *table, bool assumes)
{
    pthread_mutex_lock(&table->lock);
    bool small = table->small |= assumes;
    pthread_mutex_unlock(&table->lock);
    return small;
}

void
kiln_dim_table_add_pair(KilnDimTable *table, const KilnDim *a, const KilnDim *b)
{
    const KilnDimPair pair = { a, b };
    bool known = !a || !b || a == b;
    pthread_mutex_lock(&table->lock);
    for (guint i = 0; i < table->equal->len && !known; i++) {
        const KilnDimPair *other = &g_array_index(table->equal, KilnDimPair, i);
        known = other->a == a && other->b == b;
    }
    if (!known)
        g_array_append_val(table->equal, pair);
    pthread_mutex_unlock(&table->lock);
}

bool
kiln_dim_table_pair(KilnDimTable *table, guint i, KilnDimPair *out)
{
    pthread_mutex_lock(&table->lock);
    bool found = i < table->equal->len;
    if (found)
        *out = g_array_index(table->equal, KilnDimPair, i);
    pthread_mutex_unlock(&table->lock);
    return found;
}
