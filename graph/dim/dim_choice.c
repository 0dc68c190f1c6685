/* SPDX-License-Identifier: Apache-2.0 */
/* Minima, maxima and selections: decided where the order of the operands is certain. */
#include "graph/dim.h"

#include "graph/dim/dim_priv.h"

static const KilnDim *
choose(KilnDimTable *table, KilnDimOp op, const KilnDim *a, const KilnDim *b)
{
    if (!a || !b)
        return NULL;
    if (kiln_dim_at_most(table, a, b) == KILN_ANSWER_YES)
        return op == KILN_DIM_MIN ? a : b;
    if (kiln_dim_at_most(table, b, a) == KILN_ANSWER_YES)
        return op == KILN_DIM_MIN ? b : a;
    bool in_order = kiln_dim_compare(a, b) <= 0;
    const KilnDim *args[] = { in_order ? a : b, in_order ? b : a };
    return kiln_dim_atom(table, op, args);
}

const KilnDim *
kiln_dim_min(KilnDimTable *table, const KilnDim *a, const KilnDim *b)
{
    return choose(table, KILN_DIM_MIN, a, b);
}

const KilnDim *
kiln_dim_max(KilnDimTable *table, const KilnDim *a, const KilnDim *b)
{
    return choose(table, KILN_DIM_MAX, a, b);
}

const KilnDim *
kiln_dim_select(KilnDimTable *table, const KilnDim *a, const KilnDim *b, const KilnDim *x,
                const KilnDim *y)
{
    KilnAnswer equal = kiln_dim_equal(table, a, b);
    if (!a || !b || equal != KILN_ANSWER_UNKNOWN)
        return equal == KILN_ANSWER_YES ? x : equal == KILN_ANSWER_NO ? y : NULL;
    if (x == y)
        return x;
    /* Where a = b, x is y already. */
    if ((x == a && y == b) || (x == b && y == a))
        return y;
    bool in_order = kiln_dim_compare(a, b) <= 0;
    const KilnDim *args[] = { in_order ? a : b, in_order ? b : a, x, y };
    return kiln_dim_atom(table, KILN_DIM_SELECT, args);
}

/* --- broadcasting --- */

enum {
    MEMBERS = 8 /* extents that one dim broadcasts */
};

/* Adds what @dim broadcasts to the @n members, which are in order and differ. False where there are
 * too many. A broadcast is select(m = 1, the others, m) of its first member. */
static bool
add_members(const KilnDim *dim, const KilnDim *members[MEMBERS], uint32_t *n)
{
    int64_t one;
    if (dim->op == KILN_DIM_SELECT && kiln_dim_is_number(dim->u.args[0], &one) && one == 1 &&
        dim->u.args[1] == dim->u.args[3])
        return add_members(dim->u.args[1], members, n) && add_members(dim->u.args[2], members, n);
    uint32_t at = 0;
    while (at < *n && kiln_dim_compare(members[at], dim) < 0)
        at++;
    if (at < *n && members[at] == dim)
        return true;
    if (*n == MEMBERS)
        return false;
    for (uint32_t i = (*n)++; i > at; i--)
        members[i] = members[i - 1];
    members[at] = dim;
    return true;
}

/* Drops members that another one exceeds, where all are 1 or more: such a member is 1, or both are
 * the extent. */
static void
drop_exceeded(KilnDimTable *table, const KilnDim *members[MEMBERS], uint32_t *n)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *n; i++) {
        int64_t lo, hi;
        bool exceeded = false;
        kiln_dim_range(members[i], &lo, &hi);
        for (uint32_t j = 0; lo >= 1 && j < *n && !exceeded; j++) {
            bool gone = j < i && j >= kept;
            exceeded = j != i && !gone &&
                       kiln_dim_at_most(table, members[i], members[j]) == KILN_ANSWER_YES;
        }
        if (!exceeded)
            members[kept++] = members[i];
    }
    *n = kept;
}

const KilnDim *
kiln_dim_broadcast(KilnDimTable *table, const KilnDim *a, const KilnDim *b)
{
    const KilnDim *members[MEMBERS], *one = kiln_dim_number(table, 1), *all = one;
    uint32_t n = 0;
    if (!a || !b || !add_members(a, members, &n) || !add_members(b, members, &n))
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        /* An extent that is not 1 is that of the result. */
        if (kiln_dim_equal(table, members[i], one) == KILN_ANSWER_NO)
            return members[i];
    }
    drop_exceeded(table, members, &n);
    for (uint32_t i = n; i-- > 0;)
        all = kiln_dim_select(table, one, members[i], all, members[i]);
    return all;
}
