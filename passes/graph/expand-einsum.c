/* SPDX-License-Identifier: Apache-2.0 */
/* expand-einsum: sums of products over labelled dims, by transposes, products and sums.
 *
 *     a: [b,q,n,d]   b: [b,k,n,d]              a              b
 *             \        /                       |              |
 *      einsum "bqnd,bknd->bnqk"     =>   to [b,n,q,d]   to [b,n,d,k]
 *                 |                             \          /
 *                                                  matmul
 *
 * Operands are taken from the left. Those dims of an operand that no other has, and not the result,
 * are summed at once. A label that stands twice in a term becomes one by a slice of its diagonal.
 * Labels of two operands are of four kinds:
 *
 *     shared and kept     batch dims of a matrix product
 *     shared and summed   its inner dim; without one the operands are multiplied element by element
 *     of the first        rows
 *     of the second       columns
 *
 * Several labels of a kind are merged by a reshape. If the result ends with labels of one side and
 * then of the other, these are rows and columns, and what stands before them is a batch, broadcast
 * where an operand lacks it. So its order needs no transpose. Else a transpose follows.
 *
 * requires nothing, preserves nothing; class U: a product of several operands is rounded between
 * them. Before the passes that move and merge transposes. Dims may be open, but those of a
 * diagonal; a letter has one dim everywhere. Half floats overflow between three operands, and
 * kernels of narrow integers are missing: these stay. */
#include "graph/dim.h"
#include "graph/op/matmul.h"
#include "graph/op/multiplicative.h"
#include "graph/op/reduce.h"
#include "graph/op/slice.h"
#include "graph/op/transpose.h"
#include "passes/query/movement.h"
#include "passes/rule.h"

enum {
    LETTERS = 52,                     /* A…Z a…z */
    LABELS = LETTERS + KILN_MAX_RANK, /* then the dims of ellipses, aligned at the right */
    MOST_TERMS = 16,
};

/* Labels in order. */
typedef struct {
    int n;
    uint8_t at[LABELS];
} Labels;

/* A value whose dims have labels. */
typedef struct {
    KilnValue *value;
    Labels labels;
} Term;

typedef struct {
    Term terms[MOST_TERMS];
    int n;
    Labels result;
} Einsum;

static int
place(const Labels *labels, uint8_t label)
{
    for (int i = 0; i < labels->n; i++) {
        if (labels->at[i] == label)
            return i;
    }
    return -1;
}

static bool
has(const Labels *labels, uint8_t label)
{
    return place(labels, label) >= 0;
}

static void
add(Labels *labels, uint8_t label)
{
    if (labels->n < (int)G_N_ELEMENTS(labels->at))
        labels->at[labels->n++] = label;
}

static void
append(Labels *labels, const Labels *more)
{
    for (int i = 0; i < more->n; i++)
        add(labels, more->at[i]);
}

/* --- the equation: inference has checked it --- */

static int
letter_of(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

/* Reads a term, whose ellipsis stands for @hidden dims. */
static void
read_term(const char **at, int hidden, Labels *out)
{
    for (; **at && **at != ',' && **at != '-'; (*at)++) {
        const int letter = letter_of(**at);
        if (letter >= 0)
            add(out, (uint8_t)letter);
        if (**at != '.')
            continue;
        *at += 2;
        for (int i = 0; i < hidden; i++)
            add(out, (uint8_t)(LABELS - hidden + i));
    }
}

/* The ellipsis, then letters that occur once. */
static void
imply_result(Einsum *e)
{
    int found[LABELS] = { 0 };
    for (int i = 0; i < e->n; i++) {
        for (int l = 0; l < e->terms[i].labels.n; l++)
            found[e->terms[i].labels.at[l]]++;
    }
    for (int label = LETTERS; label < LABELS; label++) {
        if (found[label])
            add(&e->result, (uint8_t)label);
    }
    for (int label = 0; label < LETTERS; label++) {
        if (found[label] == 1)
            add(&e->result, (uint8_t)label);
    }
}

/* False if a rank is not known or too high. */
static bool
read_equation(const KilnNode *node, Einsum *e)
{
    const char *at = kiln_attrs(node, einsum)->equation;
    int hidden = 0;
    if (node->n_operands > MOST_TERMS)
        return false;
    for (uint32_t i = 0; i < node->n_operands; i++, e->n++) {
        Term *term = &e->terms[i];
        Labels letters = { 0 };
        const char *again = at;
        term->value = node->operands[i].value;
        read_term(&again, 0, &letters);
        if (term->value->type.rank < letters.n)
            return false;
        read_term(&at, term->value->type.rank - letters.n, &term->labels);
        hidden = MAX(hidden, term->value->type.rank - letters.n);
        at += *at == ',';
    }
    if (*at == '\0') {
        imply_result(e);
    } else {
        at += 2;
        read_term(&at, hidden, &e->result);
    }
    return true;
}

/* Letters have one dim everywhere. Dims of ellipses may be 1 in some operand. */
static bool
letters_are_alike(const Einsum *e)
{
    for (int i = 0; i < e->n; i++) {
        for (int l = 0; l < e->terms[i].labels.n; l++) {
            const uint8_t label = e->terms[i].labels.at[l];
            if (!kiln_type_knows_dim(&e->terms[i].value->type, l))
                return false;
            for (int k = 0; k <= i && label < LETTERS; k++) {
                const int at = place(&e->terms[k].labels, label);
                if (at >= 0 && !kiln_type_equal_dims(&e->terms[k].value->type, at,
                                                     &e->terms[i].value->type, l))
                    return false;
            }
        }
    }
    return true;
}

/* --- steps: each leaves a NULL as it is, so that a failure passes through --- */

static KilnValue *
permuted(const KilnMatch *match, const Term *term, const Labels *order)
{
    int64_t perm[KILN_MAX_RANK];
    bool moves = false;
    for (int i = 0; i < order->n; i++) {
        perm[i] = place(&term->labels, order->at[i]);
        moves |= perm[i] != i;
    }
    KilnAttrs_transpose attrs = { .perm = { .n = (uint32_t)order->n, .v = perm } };
    if (!term->value || !moves)
        return term->value;
    return kiln_match_build(match, KILN_OP_transpose, &attrs, &(KilnValue *){ term->value }, 1);
}

/* A type that grows dim by dim. */
typedef struct {
    KilnType type;
    KilnDimTable *table;
    bool fits;
} Shape;

static Shape
shape_of(const KilnMatch *match, KilnDType dtype)
{
    Shape shape = { .type = kiln_type_scalar(dtype),
                    .table = match->root->function->module->dims,
                    .fits = true };
    return shape;
}

/* Appends the product of the dims that @labels have in @term; those that it lacks count as 1. */
static void
add_dim(Shape *shape, const Term *term, const uint8_t *labels, int n)
{
    const KilnDim *dim = kiln_dim_number(shape->table, 1);
    for (int i = 0; dim && i < n; i++) {
        const int at = place(&term->labels, labels[i]);
        if (at >= 0)
            dim = kiln_dim_mul(shape->table, dim,
                               kiln_type_dim(&term->value->type, at, shape->table));
    }
    shape->fits &= dim && shape->type.rank < KILN_MAX_RANK;
    if (shape->fits)
        kiln_type_set_dim(&shape->type, shape->type.rank++, dim);
}

static KilnValue *
reshaped(const KilnMatch *match, KilnValue *value, const Shape *shape)
{
    if (!value || !shape->fits)
        return NULL;
    if (kiln_type_equal_shape(&value->type, &shape->type))
        return value;
    return kiln_reshape_build(match->root->function, match->root, value, &shape->type,
                              match->error);
}

/* Sums the dims of @term whose labels are not in @kept. */
static void
sum_out(const KilnMatch *match, Term *term, const Labels *kept)
{
    int64_t axes[KILN_MAX_RANK];
    uint32_t n = 0;
    Labels left = { 0 };
    for (int i = 0; i < term->labels.n; i++) {
        if (has(kept, term->labels.at[i]))
            add(&left, term->labels.at[i]);
        else
            axes[n++] = i;
    }
    term->labels = left;
    if (n == 0 || !term->value)
        return;
    KilnAttrs_reduce_sum attrs = { .keepdims = false };
    KilnValue *operands[] = { term->value,
                              kiln_build_ints(match->root->function, match->root, axes, n) };
    term->value = kiln_match_build(match, KILN_OP_reduce_sum, &attrs, operands, 2);
}

/* The labels of a term without repetitions. */
static Labels
distinct(const Labels *labels)
{
    Labels out = { 0 };
    for (int i = 0; i < labels->n; i++) {
        if (!has(&out, labels->at[i]))
            add(&out, labels->at[i]);
    }
    return out;
}

/* Moves dims @first and @second behind the others, whose labels become @rest. */
static KilnValue *
diagonal_to_end(const KilnMatch *match, const Term *term, int first, int second, Labels *rest)
{
    int64_t perm[KILN_MAX_RANK];
    for (int i = 0; i < term->labels.n; i++) {
        if (i == first || i == second)
            continue;
        perm[rest->n] = i;
        add(rest, term->labels.at[i]);
    }
    perm[rest->n] = first;
    perm[rest->n + 1] = second;
    if (first + 2 == term->labels.n)
        return term->value;
    KilnAttrs_transpose attrs = { .perm = { .n = (uint32_t)term->labels.n, .v = perm } };
    return kiln_match_build(match, KILN_OP_transpose, &attrs, &(KilnValue *){ term->value }, 1);
}

/* The first label that stands twice goes to the end, with both dims; elements of its diagonal are
 * one more than its extent apart. */
static bool
take_diagonal(const KilnMatch *match, Term *term, bool *found)
{
    int first = -1, second = -1;
    for (int i = 0; i < term->labels.n && second < 0; i++) {
        for (int k = i + 1; k < term->labels.n && second < 0; k++) {
            if (term->labels.at[i] == term->labels.at[k])
                first = i, second = k;
        }
    }
    *found = second >= 0;
    if (!*found)
        return true;
    const int64_t extent = term->value->type.dims[first];
    const uint8_t label = term->labels.at[first];
    Labels rest = { 0 };
    KilnValue *value = diagonal_to_end(match, term, first, second, &rest);
    Shape shape = shape_of(match, term->value->type.dtype);
    add(&rest, label);
    for (int i = 0; i + 1 < rest.n; i++)
        add_dim(&shape, term, &rest.at[i], 1);
    const uint8_t both[] = { label, label };
    add_dim(&shape, term, both, 2);
    value = reshaped(match, value, &shape);
    if (!value)
        return false;
    KilnFunction *function = match->root->function;
    KilnNode *root = match->root;
    KilnValue *operands[] = { value, kiln_build_ints(function, root, (int64_t[]){ 0 }, 1),
                              kiln_build_ints(function, root, (int64_t[]){ extent * extent }, 1),
                              kiln_build_ints(function, root, (int64_t[]){ rest.n - 1 }, 1),
                              kiln_build_ints(function, root, (int64_t[]){ extent + 1 }, 1) };
    term->value = kiln_match_build(match, KILN_OP_slice, NULL, operands, 5);
    term->labels = rest;
    return term->value != NULL;
}

static bool
diagonals_are_static(const Einsum *e)
{
    for (int i = 0; i < e->n; i++) {
        const Labels *labels = &e->terms[i].labels;
        for (int l = 0; l < labels->n; l++) {
            const int64_t dim = e->terms[i].value->type.dims[l];
            if (place(labels, labels->at[l]) != l && (dim < 0 || dim > INT32_MAX))
                return false;
        }
    }
    return true;
}

/* --- two operands --- */

/* @term with its dims in the order of @all, and dims of 1 where it lacks a label behind its first.
 */
static KilnValue *
spread_over(const KilnMatch *match, const Term *term, const Labels *all)
{
    Labels order = { 0 };
    Shape shape = shape_of(match, term->value->type.dtype);
    for (int i = 0; i < all->n; i++) {
        if (has(&term->labels, all->at[i]))
            add(&order, all->at[i]);
        if (order.n > 0)
            add_dim(&shape, term, &all->at[i], 1);
    }
    return reshaped(match, permuted(match, term, &order), &shape);
}

static Term
multiply(const KilnMatch *match, const Term *a, const Term *b, const Labels *kept)
{
    KilnValue *operands[] = { spread_over(match, a, kept), spread_over(match, b, kept) };
    Term product = { .labels = *kept };
    if (operands[0] && operands[1])
        product.value = kiln_match_build(match, KILN_OP_mul, NULL, operands, 2);
    return product;
}

typedef struct {
    const Term *a, *b;
    Labels batch, left, right, inner; /* left: rows; right: columns */
} Product;

/* Reads rows and columns off the end of @kept. False if one of them is missing there. */
static bool
follow_order(Product *p, const Labels *kept)
{
    int at = kept->n, columns, rows;
    bool of_a = false, of_b = false;
    for (int i = 0; i < kept->n; i++) {
        of_a |= !has(&p->b->labels, kept->at[i]);
        of_b |= !has(&p->a->labels, kept->at[i]);
    }
    while (at > 0 && !has(&p->a->labels, kept->at[at - 1]))
        at--;
    columns = at;
    while (at > 0 && !has(&p->b->labels, kept->at[at - 1]))
        at--;
    rows = at;
    p->batch = p->left = p->right = (Labels){ 0 };
    for (int i = 0; i < kept->n; i++)
        add(i < rows ? &p->batch : i < columns ? &p->left : &p->right, kept->at[i]);
    return (!of_a || p->left.n > 0) && (!of_b || p->right.n > 0);
}

static void
plan_product(Product *p, const Labels *kept)
{
    if (follow_order(p, kept))
        return;
    Product swapped = { .a = p->b, .b = p->a, .inner = p->inner };
    if (follow_order(&swapped, kept)) {
        *p = swapped;
        return;
    }
    p->batch = p->left = p->right = (Labels){ 0 };
    for (int i = 0; i < kept->n; i++) {
        const bool of_a = has(&p->a->labels, kept->at[i]), of_b = has(&p->b->labels, kept->at[i]);
        add(of_a && of_b ? &p->batch : of_a ? &p->left : &p->right, kept->at[i]);
    }
}

/* The matrices of one side: its batch, then the dims of @first and of @second as one each. Rows
 * that no batch stands before stay as they are: a product broadcasts its second matrix over them.
 */
static KilnValue *
matrices(const KilnMatch *match, const Term *term, const Labels *batch, const Labels *first,
         const Labels *second, bool rows_stay)
{
    Labels order = { 0 };
    Shape shape = shape_of(match, term->value->type.dtype);
    for (int i = 0; i < batch->n; i++) {
        if (has(&term->labels, batch->at[i]))
            add(&order, batch->at[i]);
        if (order.n > 0)
            add_dim(&shape, term, &batch->at[i], 1);
    }
    append(&order, first);
    append(&order, second);
    for (int i = 0; rows_stay && i < first->n; i++)
        add_dim(&shape, term, &first->at[i], 1);
    if (!rows_stay || first->n == 0)
        add_dim(&shape, term, first->at, first->n);
    add_dim(&shape, term, second->at, second->n);
    return reshaped(match, permuted(match, term, &order), &shape);
}

/* The operand that has @label, with more than one element where that is known. */
static const Term *
owner(const Product *p, uint8_t label)
{
    const int at = place(&p->a->labels, label);
    const bool one = at >= 0 && p->a->value->type.dims[at] == 1 && has(&p->b->labels, label);
    return at >= 0 && !one ? p->a : p->b;
}

static Term
contract(const KilnMatch *match, const Term *a, const Term *b, const Labels *kept,
         const Labels *inner)
{
    Product p = { .a = a, .b = b, .inner = *inner };
    plan_product(&p, kept);
    const bool rows_stay = p.batch.n == 0;
    KilnValue *operands[] = {
        matrices(match, p.a, &p.batch, &p.left, inner, rows_stay),
        matrices(match, p.b, &p.batch, inner, &p.right, false),
    };
    Term product = { .labels = p.batch };
    append(&product.labels, &p.left);
    append(&product.labels, &p.right);
    if (!operands[0] || !operands[1])
        return product;
    Shape shape = shape_of(match, a->value->type.dtype);
    for (int i = 0; i < product.labels.n; i++)
        add_dim(&shape, owner(&p, product.labels.at[i]), &product.labels.at[i], 1);
    product.value =
        reshaped(match, kiln_match_build(match, KILN_OP_matmul, NULL, operands, 2), &shape);
    return product;
}

/* Labels of the two that @later has, in the order of the result if that has the same ones. */
static Labels
kept_labels(const Einsum *e, const Term *a, const Term *b, const Labels *later, bool last)
{
    Labels kept = { 0 };
    if (last)
        return e->result;
    for (int i = 0; i < a->labels.n; i++) {
        if (has(later, a->labels.at[i]))
            add(&kept, a->labels.at[i]);
    }
    for (int i = 0; i < b->labels.n; i++) {
        if (has(later, b->labels.at[i]) && !has(&kept, b->labels.at[i]))
            add(&kept, b->labels.at[i]);
    }
    return kept;
}

/* The labels of the result and of the terms from @first on, but for term @except. */
static Labels
needed(const Einsum *e, int first, int except)
{
    Labels all = e->result;
    for (int i = first; i < e->n; i++) {
        for (int l = 0; l < e->terms[i].labels.n && i != except; l++) {
            if (!has(&all, e->terms[i].labels.at[l]) && all.n < (int)G_N_ELEMENTS(all.at))
                add(&all, e->terms[i].labels.at[l]);
        }
    }
    return all;
}

static Term
fold_terms(const KilnMatch *match, const Einsum *e)
{
    Term sum = e->terms[0];
    for (int i = 1; i < e->n && sum.value; i++) {
        const Term *next = &e->terms[i];
        const Labels later = needed(e, i + 1, -1);
        const Labels kept = kept_labels(e, &sum, next, &later, i + 1 == e->n);
        Labels inner = { 0 };
        for (int l = 0; l < sum.labels.n; l++) {
            if (has(&next->labels, sum.labels.at[l]) && !has(&kept, sum.labels.at[l]))
                add(&inner, sum.labels.at[l]);
        }
        sum = inner.n > 0 ? contract(match, &sum, next, &kept, &inner)
                          : multiply(match, &sum, next, &kept);
    }
    return sum;
}

static bool
has_products(KilnDType dtype)
{
    return kiln_dtype_is_float(dtype) || kiln_dtype_size(dtype) >= 4;
}

static bool
expand(KilnMatch *match)
{
    const KilnNode *node = match->root;
    const KilnType *type = &node->results[0].type;
    Einsum e = { 0 };
    if (!read_equation(node, &e))
        return false;
    GUARD(one_dim_a_letter, letters_are_alike(&e));
    GUARD(diagonal_static, diagonals_are_static(&e));
    GUARD(has_products, has_products(type->dtype));
    GUARD(wide_enough, e.n < 3 || type->dtype != KILN_DTYPE_f16);
    for (int i = 0; i < e.n; i++) {
        bool found = true;
        while (found) {
            if (!take_diagonal(match, &e.terms[i], &found))
                return false;
        }
    }
    for (int i = 0; i < e.n; i++) {
        const Labels others = needed(&e, 0, i);
        e.terms[i].labels = distinct(&e.terms[i].labels);
        sum_out(match, &e.terms[i], &others);
    }
    const Term sum = fold_terms(match, &e);
    return kiln_match_replace(match, permuted(match, &sum, &e.result));
}

static const KilnRule rules[] = {
    RULE("expand-einsum", U, "(einsum ? ...)", expand),
};

RULE_PASS(expand_einsum, FORWARD);
