/* SPDX-License-Identifier: Apache-2.0 */
/* Dims as expressions: integers that are known once the dims of the inputs have numbers.
 *
 * An expression is a sum of products of atoms with whole coefficients. Atoms are names, quotients
 * that are rounded down, minima, maxima and selections. The canonical form makes equal sums equal
 * pointers: `N + N` and `2*N` are one object. A table owns its expressions and interns them; copies
 * of a module share the table.
 *
 * NULL is a number that nobody knows. Each constructor takes NULL and gives NULL then. It also
 * gives NULL where a number leaves 64 bits or the expression becomes too big. So a caller loses
 * knowledge, and never gets a wrong expression. */
#ifndef KILN_GRAPH_DIM_H
#define KILN_GRAPH_DIM_H

#include "graph/error.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

G_BEGIN_DECLS

typedef struct KilnDim KilnDim;
typedef struct KilnDimTable KilnDimTable;

/** The answer to a question about expressions, for all values of the names that the facts allow. */
typedef enum {
    KILN_ANSWER_UNKNOWN,
    KILN_ANSWER_NO,  /* false for every value */
    KILN_ANSWER_YES, /* true for every value */
} KilnAnswer;

enum {
    KILN_DIM_HINT = 64,     /* of a name without a hint and without an upper bound */
    KILN_DIM_MOST = 1 << 24 /* the upper bound of a name for which nobody stated one: f32 counts so
                               far */
};

/** The facts that are known about a name. Bounds are inclusive, and the divisor is at least 1. A
 * hint is a likely value, or 0. Only cost models read it, so it changes no result. */
typedef struct {
    int64_t lo, hi, divisor, hint;
} KilnDimFacts;

/* --- tables --- */

KilnDimTable *kiln_dim_table_new(void);
/** Another owner of @table. */
KilnDimTable *kiln_dim_table_ref(KilnDimTable *table);
void kiln_dim_table_unref(KilnDimTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnDimTable, kiln_dim_table_unref)
/** The table that owns @dim. */
KilnDimTable *kiln_dim_table_of(const KilnDim *dim);

/* --- constructors: any thread may call them --- */

const KilnDim *kiln_dim_number(KilnDimTable *table, int64_t number);
/** A name, with facts [1, KILN_DIM_MOST], divisor 1 and no hint until others are stated. */
const KilnDim *kiln_dim_name(KilnDimTable *table, const char *name);
const KilnDim *kiln_dim_add(KilnDimTable *table, const KilnDim *a, const KilnDim *b);
const KilnDim *kiln_dim_sub(KilnDimTable *table, const KilnDim *a, const KilnDim *b);
const KilnDim *kiln_dim_mul(KilnDimTable *table, const KilnDim *a, const KilnDim *b);
/** @a times the number @by. */
const KilnDim *kiln_dim_scale(KilnDimTable *table, const KilnDim *a, int64_t by);
/** a / b, rounded down. NULL unless @b is certainly 1 or more. */
const KilnDim *kiln_dim_floor(KilnDimTable *table, const KilnDim *a, const KilnDim *b);
/** a / b, rounded up. NULL unless @b is certainly 1 or more. */
const KilnDim *kiln_dim_ceil(KilnDimTable *table, const KilnDim *a, const KilnDim *b);
/** The remainder of a / b, from 0 to b - 1. NULL unless @b is certainly 1 or more. */
const KilnDim *kiln_dim_remainder(KilnDimTable *table, const KilnDim *a, const KilnDim *b);
/** a / b where @b is a factor of the expression @a; NULL otherwise. The quotient holds where @b is
 * not zero. */
const KilnDim *kiln_dim_divide(KilnDimTable *table, const KilnDim *a, const KilnDim *b);
const KilnDim *kiln_dim_min(KilnDimTable *table, const KilnDim *a, const KilnDim *b);
const KilnDim *kiln_dim_max(KilnDimTable *table, const KilnDim *a, const KilnDim *b);
/** The extent of a dim that broadcasts @a with @b: each of them is 1, or they are equal. */
const KilnDim *kiln_dim_broadcast(KilnDimTable *table, const KilnDim *a, const KilnDim *b);
/** @x where a = b, else @y. */
const KilnDim *kiln_dim_select(KilnDimTable *table, const KilnDim *a, const KilnDim *b,
                               const KilnDim *x, const KilnDim *y);

/** Returns the expression that replaces @name. NULL makes the whole expression unknown. */
typedef const KilnDim *(*KilnDimReplace)(void *data, const KilnDim *name);
/** @dim, which may be of another table, as an expression of @table with each name replaced. */
const KilnDim *kiln_dim_replace(KilnDimTable *table, const KilnDim *dim, KilnDimReplace replace,
                                void *data);

/* --- facts --- */

/** States facts of @name, which replace earlier ones. Expressions that exist keep the
 * form that the old facts gave them, so facts may only become narrower once the name is used.
 * Fails with KILN_ERROR_USAGE where bounds are empty or negative, or the divisor is below 1. */
gboolean kiln_dim_state(KilnDimTable *table, const char *name, const KilnDimFacts *facts,
                        GError **error);
/** The names of @table with stated facts: KilnDim*, in the order of kiln_dim_compare(). */
GPtrArray *kiln_dim_table_stated(KilnDimTable *table);
/** The facts of @dim, which is a name; false if it is not. */
bool kiln_dim_facts(const KilnDim *dim, KilnDimFacts *out);

/* --- questions --- */

/** True if @dim is the number *@out. */
bool kiln_dim_is_number(const KilnDim *dim, int64_t *out);
/** The text of @dim, which is a name; NULL if it is not. */
const char *kiln_dim_as_name(const KilnDim *dim);
/** True for the same expression, also of different tables. False for NULL. */
bool kiln_dim_same(const KilnDim *a, const KilnDim *b);
/** A total order that depends on the expressions alone; NULL is first. */
int kiln_dim_compare(const KilnDim *a, const KilnDim *b);
/** Equal expressions have equal hashes in every process. */
uint64_t kiln_dim_hash(const KilnDim *dim);
KilnAnswer kiln_dim_equal(KilnDimTable *table, const KilnDim *a, const KilnDim *b);
/** a ≤ b? */
KilnAnswer kiln_dim_at_most(KilnDimTable *table, const KilnDim *a, const KilnDim *b);
/** Is @dim a multiple of @by ≥ 1? */
KilnAnswer kiln_dim_divides(int64_t by, const KilnDim *dim);
/** Bounds of @dim by interval arithmetic; numbers beyond 64 bits become the least or biggest. */
void kiln_dim_range(const KilnDim *dim, int64_t *lo, int64_t *hi);

/* --- values --- */

/** Finds the number of name @name; false where it has none. */
typedef bool (*KilnDimLookup)(void *data, const char *name, int64_t *out);
/** The number of @dim, computed in 128 bits. Fails with KILN_ERROR_SHAPE where a name has no number
 * or a number leaves 64 bits, and names the expression. */
gboolean kiln_dim_evaluate(const KilnDim *dim, KilnDimLookup lookup, void *data, int64_t *out,
                           GError **error);
/** A likely value of @dim: by the hints of its names, else the middle of their bounds, else
 * KILN_DIM_HINT. */
int64_t kiln_dim_hint(const KilnDim *dim);

/** Appends the text form: `2*N + floor((M + 1)/2)` without blanks; `?` for NULL. */
void kiln_dim_print(const KilnDim *dim, GString *out);
/** The text form as a new string, for messages. */
char *kiln_dim_to_string(const KilnDim *dim);

G_END_DECLS

#endif
