/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of ops whose results have other dims than their operand: dims are dropped, added, split or
 * merged, and where each went gives the transpose behind the op. */
#include "passes/permute/permute_priv.h"

#include "graph/function.h"
#include "graph/infer/infer.h"
#include "graph/module.h"
#include "graph/op/reshape.h"
#include "passes/pass.h"
#include "passes/query/quant_range.h"

/* Which dim of the other value each dim of a result is, by the labels that they share. */
static KilnPerm
perm_between(const int *labels, const int *other, int rank)
{
    KilnPerm perm = { .rank = rank };
    for (int d = 0; d < rank; d++) {
        for (int e = 0; e < rank; e++) {
            if (other[e] == labels[d])
                perm.at[d] = e;
        }
    }
    return kiln_perm_is_identity(&perm) ? KILN_PERM_NONE : perm;
}

/* --- reductions --- */

/* The permutation of the dims that are left without those that are @gone. */
static KilnPerm
perm_without(const KilnPerm *perm, const bool *gone)
{
    KilnPerm inverse = kiln_perm_inverse(perm);
    int labels[KILN_MAX_RANK], other[KILN_MAX_RANK], rank = 0, n = 0;
    for (int d = 0; d < perm->rank; d++) {
        if (!gone[d])
            labels[rank++] = d;
        if (!gone[inverse.at[d]])
            other[n++] = inverse.at[d];
    }
    return perm_between(labels, other, rank);
}

bool
kiln_permute_plan_arg_reduce(KilnPermuted *plan)
{
    int64_t *axis = kiln_permuted_attr(plan, "axis");
    bool keepdims = *(bool *)kiln_permuted_attr(plan, "keepdims");
    KilnPerm perm;
    if (!kiln_permuted_data(plan, &perm) || (plan->want.rank >= 0 && !keepdims))
        return false;
    bool gone[KILN_MAX_RANK] = { false };
    int d = kiln_type_axis(kiln_permuted_type(plan, 0), *axis);
    *axis = perm.at[d];
    gone[d] = !keepdims;
    plan->results[0] = keepdims ? perm : perm_without(&perm, gone);
    return true;
}

/* Sums round by their order, and the first of equal elements stays: dims that are reduced together
 * must be met in the same order. */
static bool
reduces_in_order(const KilnType *x, const KilnPerm *perm, const bool *reduced)
{
    int last = -1;
    for (int d = 0; d < x->rank; d++) {
        if (!reduced[d] || x->dims[d] == 1)
            continue;
        if (perm->at[d] < last)
            return false;
        last = perm->at[d];
    }
    return true;
}

bool
kiln_permute_plan_reduce(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    bool keepdims = *(bool *)kiln_permuted_attr(plan, "keepdims"), known, before[KILN_MAX_RANK];
    const KilnType *x = kiln_permuted_type(plan, 0);
    KilnPerm perm;
    if (!kiln_permuted_data(plan, &perm) || (plan->want.rank >= 0 && !keepdims) ||
        !kiln_reduce_axes(plan->node, before, &known, NULL))
        return false;
    PASS_GUARD(reduced_axes_known, known);
    bool exact = kiln_dtype_is_integer(x->dtype) && !x->quant;
    PASS_GUARD(reduced_in_order, exact || reduces_in_order(x, &perm, before));
    int64_t axes[KILN_MAX_RANK];
    KilnPerm inverse = kiln_perm_inverse(&perm);
    uint32_t n = 0;
    for (int d = 0; d < perm.rank; d++) {
        if (before[inverse.at[d]])
            axes[n++] = d;
    }
    if (kiln_permuted_type(plan, 1) && kiln_type_elements(kiln_permuted_type(plan, 1)) != 0)
        kiln_permuted_set_ints(plan, 1, KILN_DTYPE_i64, axes, n);
    plan->results[0] = keepdims ? perm : perm_without(&perm, before);
    return true;
}

/* --- gather --- */

bool
kiln_permute_plan_gather(KilnPermuted *plan)
{
    const KilnType *indices = kiln_permuted_type(plan, 1);
    int64_t *axis = kiln_permuted_attr(plan, "axis");
    KilnPerm perm;
    if (plan->want.rank >= 0 || !kiln_permuted_data(plan, &perm) || indices->rank < 0 ||
        perm.rank - 1 + indices->rank > KILN_MAX_RANK)
        return false;
    KilnPerm inverse = kiln_perm_inverse(&perm);
    int labels[KILN_MAX_RANK], other[KILN_MAX_RANK], rank = 0, n = 0;
    int gathered = kiln_type_axis(kiln_permuted_type(plan, 0), *axis);
    for (int d = 0; d < perm.rank; d++) {
        int e = inverse.at[d];
        for (int k = 0; d == gathered && k < indices->rank; k++)
            labels[rank++] = KILN_MAX_RANK + k;
        for (int k = 0; e == gathered && k < indices->rank; k++)
            other[n++] = KILN_MAX_RANK + k;
        if (d != gathered)
            labels[rank++] = d;
        if (e != gathered)
            other[n++] = e;
    }
    *axis = perm.at[gathered];
    plan->results[0] = perm_between(labels, other, rank);
    return true;
}

/* --- reshapes --- */

/* Runs of dims of the operand that become runs of dims of the result. */
typedef struct {
    int n;
    int in[KILN_MAX_RANK + 1], out[KILN_MAX_RANK + 1]; /* where each run starts; then the ranks */
} Runs;

static bool
is_one(const KilnType *type, int d)
{
    return type->dims[d] == 1;
}

/* Where all dims are numbers: extends a run until both sides have the same number of elements. */
static bool
close_static_run(const KilnType *in, const KilnType *out, int *i, int *k)
{
    int64_t left = in->dims[(*i)++], right = out->dims[(*k)++];
    while (left != right) {
        int64_t *less = left < right ? &left : &right;
        const KilnType *type = left < right ? in : out;
        int *at = left < right ? i : k;
        if (*at == type->rank)
            return false;
        *less *= type->dims[(*at)++];
    }
    return true;
}

/* The elements of the dims of a run, from the first to before @end. */
typedef struct {
    const KilnType *type;
    int *end;
    const KilnDim *elements;
} Side;

static bool
take_dim(Side *side, KilnDimTable *dims)
{
    if (*side->end == side->type->rank)
        return false;
    const KilnDim *dim = kiln_type_dim(side->type, (*side->end)++, dims);
    side->elements = side->elements ? kiln_dim_mul(dims, side->elements, dim) : dim;
    return side->elements != NULL;
}

/* True where a run of @less may go on and become as long as that of @more. */
static bool
is_part(const Side *less, const Side *more, KilnDimTable *dims)
{
    int64_t a, b;
    if (!kiln_dim_is_number(less->elements, &a))
        return kiln_dim_divide(dims, more->elements, less->elements) != NULL;
    return kiln_dim_is_number(more->elements, &b)
               ? a < b
               : a > 0 && kiln_dim_divides(a, more->elements) == KILN_ANSWER_YES;
}

/* The same with expressions: the shorter side divides the longer one. */
static bool
close_run(const KilnType *in, const KilnType *out, int *i, int *k, KilnDimTable *dims)
{
    Side left = { in, i, NULL }, right = { out, k, NULL };
    if (!take_dim(&left, dims) || !take_dim(&right, dims))
        return false;
    while (!kiln_dim_same(left.elements, right.elements)) {
        Side *less = is_part(&left, &right, dims)   ? &left
                     : is_part(&right, &left, dims) ? &right
                                                    : NULL;
        if (!less || !take_dim(less, dims))
            return false;
    }
    return true;
}

/* Dims of 1 at the end of a run belong to it. */
static bool
find_runs(const KilnType *in, const KilnType *out, Runs *runs, KilnDimTable *dims)
{
    bool numbers = kiln_type_is_static(in) && kiln_type_is_static(out);
    int i = 0, k = 0;
    runs->n = 0;
    while (i < in->rank && k < out->rank) {
        runs->in[runs->n] = i;
        runs->out[runs->n++] = k;
        if (!(numbers ? close_static_run(in, out, &i, &k) : close_run(in, out, &i, &k, dims)))
            return false;
        while (i < in->rank && is_one(in, i))
            i++;
        while (k < out->rank && is_one(out, k))
            k++;
    }
    runs->in[runs->n] = in->rank;
    runs->out[runs->n] = out->rank;
    return i == in->rank && k == out->rank && runs->n > 0;
}

/* Where the dims of run @r, those of 1 aside, stand in what the operand is a transpose of; false
 * where they are not side by side there and in order. */
static bool
run_place(const Runs *runs, int r, const KilnType *in, const KilnPerm *perm, int *place)
{
    KilnPerm inverse = kiln_perm_inverse(perm);
    int last = -1;
    *place = -1;
    for (int d = runs->in[r]; d < runs->in[r + 1]; d++) {
        if (is_one(in, d))
            continue;
        for (int e = last + 1; last >= 0 && e < perm->at[d]; e++) {
            if (!is_one(in, inverse.at[e]))
                return false;
        }
        if (perm->at[d] < last)
            return false;
        *place = last < 0 ? perm->at[d] : *place;
        last = perm->at[d];
    }
    return true;
}

/* The runs in the order of their places; one of dims of 1 alone stays behind the one before it. */
static bool
sort_runs(const Runs *runs, const KilnType *in, const KilnPerm *perm, int *order)
{
    int places[KILN_MAX_RANK];
    for (int r = 0; r < runs->n; r++)
        order[r] = r;
    for (int r = 0; r < runs->n; r++) {
        if (!run_place(runs, r, in, perm, &places[r]))
            return false;
        if (places[r] < 0)
            places[r] = r > 0 ? places[r - 1] : -1;
        int to = r;
        for (; to > 0 && places[order[to - 1]] > places[r]; to--)
            order[to] = order[to - 1];
        order[to] = r;
    }
    return true;
}

/* The target of a reshape to @type: a single open dim is -1. */
static bool
set_target(KilnPermuted *plan, const KilnType *type)
{
    int open = 0;
    bool stated = true;
    for (int d = 0; d < type->rank; d++)
        open += type->dims[d] < 0;
    if (open <= 1)
        kiln_permuted_set_ints(plan, 1, KILN_DTYPE_i64, type->dims, (uint32_t)type->rank);
    else if (!kiln_permuted_set_extents(plan, 1, type, true, &stated))
        return false;
    *(bool *)kiln_permuted_attr(plan, "allowzero") = open > 1 && stated;
    return true;
}

bool
kiln_permute_plan_reshape(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    const KilnType *in = kiln_permuted_type(plan, 0), *out = &plan->node->results[0].type;
    Runs runs;
    KilnPerm perm;
    int order[KILN_MAX_RANK], labels[KILN_MAX_RANK], other[KILN_MAX_RANK], n = 0;
    KilnDimTable *dims = plan->node->function->module->dims;
    KilnType moved = *out;
    bool empty = false;
    if (plan->want.rank >= 0 || kiln_quant_is_per_axis(in) || !kiln_permuted_data(plan, &perm))
        return false;
    PASS_GUARD(side_by_side, find_runs(in, out, &runs, dims) && sort_runs(&runs, in, &perm, order));
    for (int r = 0; r < runs.n; r++) {
        for (int d = runs.out[order[r]]; d < runs.out[order[r] + 1]; d++) {
            labels[n] = n;
            other[n] = d;
            moved.dims[n] = out->dims[d];
            moved.open[n++] = out->open[d];
            empty |= out->dims[d] == 0;
        }
    }
    PASS_GUARD(shape_of_view, !empty);
    plan->op = KILN_OP_reshape;
    plan->attrs = kiln_op_attrs_new(KILN_OP_reshape, plan->arena);
    plan->n_operands = 2;
    if (!set_target(plan, &moved))
        return false;
    plan->results[0] = perm_between(labels, other, n);
    return true;
}
