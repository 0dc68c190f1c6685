/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products of atoms: the canonical form of all arithmetic on expressions. */
#include "graph/dim.h"

#include "graph/dim/dim_priv.h"

#include <string.h>

void
kiln_dim_sum_start(KilnDimSum *sum)
{
    sum->constant = 0;
    sum->n = 0;
    sum->too_big = false;
}

void
kiln_dim_sum_add_number(KilnDimSum *sum, int64_t number)
{
    sum->too_big |= __builtin_add_overflow(sum->constant, number, &sum->constant);
}

static void
remove_term(KilnDimSum *sum, uint32_t at)
{
    sum->n--;
    memmove(&sum->terms[at], &sum->terms[at + 1], (sum->n - at) * sizeof sum->terms[0]);
}

void
kiln_dim_sum_add_term(KilnDimSum *sum, const KilnDimTerm *term, int64_t by)
{
    int64_t coefficient;
    sum->too_big |= __builtin_mul_overflow(term->coefficient, by, &coefficient);
    if (sum->too_big || !coefficient)
        return;
    if (!term->n) {
        kiln_dim_sum_add_number(sum, coefficient);
        return;
    }
    uint32_t at = 0;
    int order = 1;
    while (at < sum->n && (order = kiln_dim_term_compare(&sum->terms[at], term)) < 0)
        at++;
    if (at < sum->n && order == 0) {
        int64_t *mine = &sum->terms[at].coefficient;
        sum->too_big |= __builtin_add_overflow(*mine, coefficient, mine);
        if (!*mine)
            remove_term(sum, at);
        return;
    }
    if (sum->n == KILN_DIM_TERMS) {
        sum->too_big = true;
        return;
    }
    memmove(&sum->terms[at + 1], &sum->terms[at], (sum->n - at) * sizeof sum->terms[0]);
    sum->terms[at] = *term;
    sum->terms[at].coefficient = coefficient;
    sum->n++;
}

void
kiln_dim_sum_add(KilnDimSum *sum, const KilnDim *dim, int64_t by)
{
    int64_t constant;
    if (dim->op == KILN_DIM_NUMBER || dim->op == KILN_DIM_SUM) {
        sum->too_big |= __builtin_mul_overflow(dim->number, by, &constant);
        kiln_dim_sum_add_number(sum, sum->too_big ? 0 : constant);
        for (uint32_t i = 0; dim->op == KILN_DIM_SUM && i < dim->n; i++)
            kiln_dim_sum_add_term(sum, &dim->u.terms[i], by);
        return;
    }
    KilnDimTerm term = { .coefficient = 1, .n = 1, .atoms = { dim } };
    kiln_dim_sum_add_term(sum, &term, by);
}

bool
kiln_dim_term_multiply(const KilnDimTerm *a, const KilnDimTerm *b, KilnDimTerm *out)
{
    if (a->n + b->n > KILN_DIM_DEGREE ||
        __builtin_mul_overflow(a->coefficient, b->coefficient, &out->coefficient))
        return false;
    uint32_t i = 0, k = 0;
    for (out->n = 0; i < a->n || k < b->n; out->n++) {
        bool from_a = k == b->n || (i < a->n && kiln_dim_compare(a->atoms[i], b->atoms[k]) <= 0);
        out->atoms[out->n] = from_a ? a->atoms[i++] : b->atoms[k++];
    }
    return true;
}

/* Adds @a times @term. */
static void
add_product(KilnDimSum *sum, const KilnDimSum *a, const KilnDimTerm *term)
{
    KilnDimTerm product;
    kiln_dim_sum_add_term(sum, term, a->constant);
    for (uint32_t i = 0; i < a->n && !sum->too_big; i++) {
        if (kiln_dim_term_multiply(&a->terms[i], term, &product))
            kiln_dim_sum_add_term(sum, &product, 1);
        else
            sum->too_big = true;
    }
}

static const KilnDim *
add_scaled(KilnDimTable *table, const KilnDim *a, const KilnDim *b, int64_t by)
{
    if (!a || !b)
        return NULL;
    KilnDimSum sum;
    kiln_dim_sum_start(&sum);
    kiln_dim_sum_add(&sum, a, 1);
    kiln_dim_sum_add(&sum, b, by);
    return kiln_dim_of_sum(table, &sum);
}

const KilnDim *
kiln_dim_add(KilnDimTable *table, const KilnDim *a, const KilnDim *b)
{
    return add_scaled(table, a, b, 1);
}

const KilnDim *
kiln_dim_sub(KilnDimTable *table, const KilnDim *a, const KilnDim *b)
{
    return add_scaled(table, a, b, -1);
}

const KilnDim *
kiln_dim_scale(KilnDimTable *table, const KilnDim *a, int64_t by)
{
    if (!a)
        return NULL;
    KilnDimSum sum;
    kiln_dim_sum_start(&sum);
    kiln_dim_sum_add(&sum, a, by);
    return kiln_dim_of_sum(table, &sum);
}

const KilnDim *
kiln_dim_mul(KilnDimTable *table, const KilnDim *a, const KilnDim *b)
{
    if (!a || !b)
        return NULL;
    if (a->op == KILN_DIM_NUMBER)
        return kiln_dim_scale(table, b, a->number);
    if (b->op == KILN_DIM_NUMBER)
        return kiln_dim_scale(table, a, b->number);
    KilnDimSum left, right, sum;
    kiln_dim_sum_start(&left);
    kiln_dim_sum_start(&right);
    kiln_dim_sum_start(&sum);
    kiln_dim_sum_add(&left, a, 1);
    kiln_dim_sum_add(&right, b, 1);
    KilnDimTerm constant = { .coefficient = right.constant };
    add_product(&sum, &left, &constant);
    for (uint32_t i = 0; i < right.n && !sum.too_big; i++)
        add_product(&sum, &left, &right.terms[i]);
    return kiln_dim_of_sum(table, &sum);
}
