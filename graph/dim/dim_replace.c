/* SPDX-License-Identifier: Apache-2.0 */
/* Names in expressions: other expressions in their place, in the same table or in another one; and
 * whether some are there. */
#include "graph/dim.h"

#include "graph/dim/dim_defined.h"
#include "graph/dim/dim_priv.h"

typedef struct {
    KilnDimTable *table;
    KilnDimReplace replace;
    void *data;
} Replacing;

static const KilnDim *replaced(const Replacing *replacing, const KilnDim *dim);

static const KilnDim *
replaced_sum(const Replacing *replacing, const KilnDim *dim)
{
    const KilnDim *sum = kiln_dim_number(replacing->table, dim->number);
    for (uint32_t i = 0; i < dim->n; i++) {
        const KilnDimTerm *term = &dim->u.terms[i];
        const KilnDim *product = kiln_dim_number(replacing->table, term->coefficient);
        for (uint32_t k = 0; k < term->n; k++)
            product = kiln_dim_mul(replacing->table, product, replaced(replacing, term->atoms[k]));
        sum = kiln_dim_add(replacing->table, sum, product);
    }
    return sum;
}

static const KilnDim *
replaced(const Replacing *replacing, const KilnDim *dim)
{
    KilnDimTable *table = replacing->table;
    const KilnDim *args[4];
    for (uint32_t i = 0; i < kiln_dim_arity(dim->op); i++)
        args[i] = replaced(replacing, dim->u.args[i]);
    switch (dim->op) {
    case KILN_DIM_NUMBER:
        return kiln_dim_number(table, dim->number);
    case KILN_DIM_NAME:
        return replacing->replace(replacing->data, dim);
    case KILN_DIM_SUM:
        return replaced_sum(replacing, dim);
    case KILN_DIM_FLOOR:
        return kiln_dim_floor(table, args[0], args[1]);
    case KILN_DIM_MIN:
        return kiln_dim_min(table, args[0], args[1]);
    case KILN_DIM_MAX:
        return kiln_dim_max(table, args[0], args[1]);
    default:
        return kiln_dim_select(table, args[0], args[1], args[2], args[3]);
    }
}

const KilnDim *
kiln_dim_replace(KilnDimTable *table, const KilnDim *dim, KilnDimReplace replace, void *data)
{
    const Replacing replacing = { table, replace, data };
    return dim ? replaced(&replacing, dim) : NULL;
}

bool
kiln_dim_any_name(const KilnDim *dim, bool (*matches)(void *data, const char *name), void *data)
{
    bool found = dim && dim->op == KILN_DIM_NAME && matches(data, dim->u.name.text);
    for (uint32_t i = 0; dim && !found && i < kiln_dim_arity(dim->op); i++)
        found = kiln_dim_any_name(dim->u.args[i], matches, data);
    for (uint32_t i = 0; dim && dim->op == KILN_DIM_SUM && !found && i < dim->n; i++) {
        const KilnDimTerm *term = &dim->u.terms[i];
        for (uint32_t k = 0; k < term->n && !found; k++)
            found = kiln_dim_any_name(term->atoms[k], matches, data);
    }
    return found;
}
