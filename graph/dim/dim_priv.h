/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of expressions: how they are stored, and sums while they are built. */
#ifndef KILN_GRAPH_DIM_DIM_PRIV_H
#define KILN_GRAPH_DIM_DIM_PRIV_H

#include "graph/dim.h"

enum {
    KILN_DIM_TERMS = 24, /* of a sum; a bigger one is not known */
    KILN_DIM_DEGREE = 6, /* atoms of a product */
    KILN_DIM_DEPTH = 24, /* of atoms inside atoms */
};

/* The order of the rows is the order of atoms in a sum. */
typedef enum {
    KILN_DIM_NUMBER,
    KILN_DIM_NAME,
    KILN_DIM_FLOOR,  /* args: dividend, divisor */
    KILN_DIM_MIN,    /* args: two */
    KILN_DIM_MAX,    /* args: two */
    KILN_DIM_SELECT, /* args: a, b, x, y: x where a = b, else y */
    KILN_DIM_SUM,
} KilnDimOp;

/** @coefficient times the product of @n atoms, which are in order; an atom repeats for a power. */
typedef struct {
    int64_t coefficient;
    uint32_t n;
    const KilnDim *atoms[KILN_DIM_DEGREE];
} KilnDimTerm;

struct KilnDim {
    KilnDimOp op;
    uint32_t n; /* args, or terms */
    uint32_t depth;
    uint64_t hash;
    KilnDimTable *table; /* that owns it */
    int64_t number;      /* NUMBER: itself; SUM: the constant */
    union {
        struct {
            const char *text;
            KilnDimFacts facts;
            int64_t guess; /* 0: none */
            bool defined;  /* data decides it */
        } name;
        const KilnDim *args[4];
        const KilnDimTerm *terms;
    } u;
};

/** A sum that is being built. Terms are in order, and no coefficient is zero. */
typedef struct {
    int64_t constant;
    uint32_t n;
    bool too_big; /* a number or a count overflowed: the sum is not known */
    KilnDimTerm terms[KILN_DIM_TERMS];
} KilnDimSum;

__extension__ typedef __int128 KilnDimWide;

/** The greatest common divisor of numbers that are 0 or more; gcd(0, n) is n. */
static inline int64_t
kiln_dim_gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/** The number of arguments of an atom of @op. */
uint32_t kiln_dim_arity(KilnDimOp op);
/** Interns an atom of @op over @args; NULL where one is NULL or it is nested too deep. */
const KilnDim *kiln_dim_atom(KilnDimTable *table, KilnDimOp op, const KilnDim *const *args);
/** Interns a sum; NULL where it is too big. */
const KilnDim *kiln_dim_of_sum(KilnDimTable *table, const KilnDimSum *sum);

void kiln_dim_sum_start(KilnDimSum *sum);
void kiln_dim_sum_add_number(KilnDimSum *sum, int64_t number);
/** Adds @term times @by. */
void kiln_dim_sum_add_term(KilnDimSum *sum, const KilnDimTerm *term, int64_t by);
/** Adds @dim times @by. */
void kiln_dim_sum_add(KilnDimSum *sum, const KilnDim *dim, int64_t by);
/** *@out = @a · @b, as terms. False where it is too big. */
bool kiln_dim_term_multiply(const KilnDimTerm *a, const KilnDimTerm *b, KilnDimTerm *out);
/** Orders products of atoms: longer ones first, then atom by atom. Coefficients do not count. */
int kiln_dim_term_compare(const KilnDimTerm *a, const KilnDimTerm *b);

/** Expressions that inference takes for equal (graph/dim/dim_equal.h). */
typedef struct {
    const KilnDim *a, *b;
} KilnDimPair;
void kiln_dim_table_add_pair(KilnDimTable *table, const KilnDim *a, const KilnDim *b);
/** Pair @i of @table, in the order of their statements; false behind the last one. */
bool kiln_dim_table_pair(KilnDimTable *table, guint i, KilnDimPair *out);

/** Bounds in 128 bits, cut off at ±2^100. */
void kiln_dim_wide_range(const KilnDim *dim, KilnDimWide *lo, KilnDimWide *hi);
/** kiln_dim_range() where names for which nobody stated an upper bound have @most_of_name. */
void kiln_dim_range_within(const KilnDim *dim, int64_t most_of_name, int64_t *lo, int64_t *hi);
/** Whether it is assumed that names of @table are small; @assumes: it is from now on. */
bool kiln_dim_table_small(KilnDimTable *table, bool assumes);
/** kiln_dim_guess(): graph/dim/dim_guess.h. */
void kiln_dim_table_guess(KilnDimTable *table, const char *name, int64_t number);
/** graph/dim/dim_defined.h: kiln_dim_define(). */
const KilnDim *kiln_dim_table_define(KilnDimTable *table, const char *wanted, int64_t most);
/** graph/dim/dim_defined.h: kiln_dim_defined(). */
const KilnDim *kiln_dim_table_defined(KilnDimTable *table, const char *name);
/** Whether the sum is certainly at least 0, by ranges and by what atoms are between. */
bool kiln_dim_sum_is_natural(const KilnDimSum *sum);

#endif
