/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of each operator. An op whose dims correspond to those of its operand one to one -
 * `aligned` below - is followed by the transpose that was in front of it; one that drops, adds or
 * merges dims by another, which follows from where each dim went.
 *
 * Guards say what is refused; their names are those of the pass that asks. */
#include "passes/permute.h"

#include "graph/infer/infer.h"

#include <string.h>

typedef bool (*Planner)(KilnPermuted *plan);

/* --- parts of plans --- */

static const KilnType *
operand_type(const KilnPermuted *plan, uint32_t i)
{
    const KilnValue *value = kiln_node_operand(plan->node, i);
    return value ? &value->type : NULL;
}

static const KilnKnown *
operand_known(const KilnPermuted *plan, uint32_t i)
{
    const KilnValue *value = kiln_node_operand(plan->node, i);
    return value ? value->known : NULL;
}

/* The field of the new attributes that is called @name; NULL where the op has none. */
static void *
attr_field(const KilnPermuted *plan, const char *name)
{
    const KilnOpInfo *info = kiln_op_info(plan->op);
    const KilnAttrInfo *attr = kiln_attr_find(info->attrs, info->n_attrs, name);
    return attr ? (char *)plan->attrs + attr->offset : NULL;
}

/* @perm for a value of @rank, the last dims being the same. */
static KilnPerm
widened(const KilnPerm *perm, int rank)
{
    KilnPerm wide = { .rank = rank };
    int more = rank - perm->rank;
    for (int d = 0; d < rank; d++)
        wide.at[d] = d < more ? d : perm->at[d - more] + more;
    return wide;
}

/* @perm for the last @rank dims; none where they do not stay among themselves. */
static KilnPerm
narrowed(const KilnPerm *perm, int rank)
{
    KilnPerm narrow = { .rank = rank };
    int less = perm->rank - rank;
    for (int d = 0; d < perm->rank; d++) {
        if (d < less ? perm->at[d] != d : perm->at[d] < less)
            return KILN_PERM_NONE;
        if (d >= less)
            narrow.at[d - less] = perm->at[d] - less;
    }
    return narrow;
}

static void
set_ints(KilnPermuted *plan, uint32_t i, KilnDType dtype, const int64_t *values, uint32_t n)
{
    KilnPermutedOperand *operand = &plan->operands[i];
    operand->kind = KILN_PERMUTED_INTS;
    operand->ints = kiln_ints_make(plan->arena, values, n);
    operand->type = kiln_type_make(dtype, 1, (int64_t[]){ n });
}

/* All results are transposes by what the node's data is a transpose by. */
static bool
aligned(KilnPermuted *plan, const KilnPerm *perm)
{
    for (uint32_t r = 0; r < plan->node->n_results; r++)
        plan->results[r] = *perm;
    return true;
}

static bool
is_quantized_per_axis(const KilnType *type)
{
    return type->quant && type->quant->axis >= 0;
}

/* The one operand of data that an op with axes has. */
static bool
data_perm(KilnPermuted *plan, KilnPerm *perm)
{
    KilnPermutedOperand *data = &plan->operands[0];
    KilnPerm from = plan->from[0];
    const KilnType *x = operand_type(plan, 0);
    if (plan->want.rank >= 0) {
        if (x->rank != plan->want.rank)
            return false;
        data->kind =
            kiln_perm_equal(&from, &plan->want) ? KILN_PERMUTED_FLIPPED : KILN_PERMUTED_INVERSE;
        data->perm = *perm = plan->want;
        return true;
    }
    if (from.rank < 0)
        return false;
    data->kind = KILN_PERMUTED_FLIPPED;
    data->perm = *perm = from;
    return true;
}

/* Which dim of the other value each dim of a result is; labels are dims of the operand, those of
 * other values are greater than any. */
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

/* --- several operands that share their dims --- */

/* The dims of the literal or value @type, of which the operand is a transpose by @perm; dims of 1
 * in front that it did not have are left out. */
static KilnType
side_type(const KilnPermuted *plan, const KilnType *type, const KilnPerm *perm)
{
    KilnType wide = *type;
    int more = perm->rank - type->rank;
    wide.rank = perm->rank;
    for (int d = perm->rank - 1; d >= 0; d--) {
        wide.dims[d] = d < more ? 1 : type->dims[d - more];
        wide.dim_names[d] = d < more ? NULL : type->dim_names[d - more];
    }
    KilnType side = kiln_perm_type_before(plan->arena, &wide, perm);
    while (side.rank > type->rank && side.dims[0] == 1) {
        side.rank--;
        memmove(side.dims, side.dims + 1, sizeof *side.dims * (size_t)side.rank);
        memmove(side.dim_names, side.dim_names + 1, sizeof *side.dim_names * (size_t)side.rank);
    }
    return side;
}

/* Whether the dims of @type that may be other than 1 stand in the same order without @perm. */
static bool
keeps_order(const KilnType *type, const KilnPerm *perm)
{
    int more = perm->rank - type->rank, last = -1;
    for (int d = more; d < perm->rank; d++) {
        if (type->dims[d - more] == 1)
            continue;
        if (perm->at[d] < last)
            return false;
        last = perm->at[d];
    }
    return true;
}

static bool
same_dims(const KilnType *a, const KilnType *b)
{
    if (a->rank != b->rank)
        return false;
    for (int d = 0; d < a->rank; d++) {
        if (a->dims[d] != b->dims[d] || g_strcmp0(a->dim_names[d], b->dim_names[d]) != 0)
            return false;
    }
    return true;
}

/* A reshape to @type; one dim may be open. */
static bool
view_plan(KilnPermuted *plan, KilnPermutedOperand *operand, const KilnType *type)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    int open = 0, empty = 0;
    for (int d = 0; d < type->rank; d++) {
        open += type->dims[d] < 0;
        empty += type->dims[d] == 0;
    }
    GUARD(shape_of_view, open == 0 || (open == 1 && !empty));
    operand->kind = KILN_PERMUTED_VIEW;
    operand->type = *type;
    operand->ints = kiln_ints_make(plan->arena, type->dims, (uint32_t)type->rank);
    plan->has_view = true;
    return true;
}

/* An operand that is no transpose by @perm: read as it is where that is the same, else permuted
 * while compiling or by a reshape. */
static bool
side_plan(KilnPermuted *plan, uint32_t i, const KilnPerm *perm)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    KilnPermutedOperand *operand = &plan->operands[i];
    const KilnValue *value = kiln_node_operand(plan->node, i);
    const KilnType *type = &value->type;
    if (type->rank < 0 || type->layout || type->rank > perm->rank)
        return false;
    KilnType side = side_type(plan, type, perm);
    bool in_order = keeps_order(type, perm);
    if (in_order && same_dims(&side, type))
        return true;
    if (kiln_perm_can_move(value)) {
        operand->kind = KILN_PERMUTED_LITERAL;
        operand->perm = kiln_perm_inverse(perm);
        operand->type = side;
        return true;
    }
    if (in_order && !is_quantized_per_axis(type))
        return view_plan(plan, operand, &side);
    operand->kind = KILN_PERMUTED_INVERSE;
    operand->perm = narrowed(perm, type->rank);
    GUARD(operand_permuted, plan->inverse && operand->perm.rank >= 0);
    return true;
}

/* Operands @first … of a node whose result, of rank perm->rank, is a transpose by @perm. */
static bool
operands_plan(KilnPermuted *plan, uint32_t n, const KilnPerm *perm)
{
    for (uint32_t i = 0; i < n; i++) {
        const KilnType *type = operand_type(plan, i);
        if (!type)
            continue;
        const KilnPerm *from = &plan->from[i];
        KilnPerm wide = from->rank >= 0 && from->rank <= perm->rank ? widened(from, perm->rank)
                                                                    : KILN_PERM_NONE;
        if (kiln_perm_equal(&wide, perm)) {
            plan->operands[i].kind = KILN_PERMUTED_FLIPPED;
            plan->operands[i].perm = *from;
        } else if (!side_plan(plan, i, perm)) {
            return false;
        }
    }
    return true;
}

/* What all operands are to be transposes by: what the first that is one is. */
static bool
shared_perm(const KilnPermuted *plan, KilnPerm *perm)
{
    int rank = plan->node->results[0].type.rank;
    if (plan->want.rank >= 0) {
        *perm = plan->want;
        return true;
    }
    for (uint32_t i = 0; i < plan->node->n_operands; i++) {
        if (plan->from[i].rank < 0 || plan->from[i].rank > rank)
            continue;
        *perm = widened(&plan->from[i], rank);
        return true;
    }
    return false;
}

/* Scales and zero points stand along an axis, or are one number. */
static bool
plan_linear(KilnPermuted *plan)
{
    const KilnType *x = operand_type(plan, 0), *scale = operand_type(plan, 1);
    const KilnType *zero_point = operand_type(plan, 2);
    int64_t *axis = attr_field(plan, "axis");
    KilnPerm perm;
    if (!data_perm(plan, &perm))
        return false;
    bool one_number =
        kiln_type_elements(scale) == 1 && (!zero_point || kiln_type_elements(zero_point) == 1);
    int d = kiln_type_axis(x, *axis);
    if (!one_number && d < 0)
        return false;
    if (!one_number)
        *axis = perm.at[d];
    return aligned(plan, &perm);
}

static bool
plan_first_operand(KilnPermuted *plan)
{
    KilnPerm perm;
    return data_perm(plan, &perm) && aligned(plan, &perm);
}

static bool
plan_broadcast(KilnPermuted *plan)
{
    KilnPerm perm;
    return shared_perm(plan, &perm) && operands_plan(plan, plan->node->n_operands, &perm) &&
           aligned(plan, &perm);
}

static bool
plan_concat(KilnPermuted *plan)
{
    int64_t *axis = attr_field(plan, "axis");
    KilnPerm perm;
    if (!shared_perm(plan, &perm) || !operands_plan(plan, plan->node->n_operands, &perm))
        return false;
    *axis = perm.at[kiln_type_axis(&plan->node->results[0].type, *axis)];
    return aligned(plan, &perm);
}

/* --- along an axis --- */

/* softmax and its like, split, top_k: an attribute names the axis. */
static bool
plan_axis(KilnPermuted *plan)
{
    int64_t *axis = attr_field(plan, "axis");
    KilnPerm perm;
    if (!data_perm(plan, &perm))
        return false;
    *axis = perm.at[kiln_type_axis(operand_type(plan, 0), *axis)];
    return aligned(plan, &perm);
}

/* The axis is an operand. */
static bool
plan_cum_sum(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    const KilnKnown *known = operand_known(plan, 1);
    const KilnType *type = operand_type(plan, 1);
    KilnPerm perm;
    if (!data_perm(plan, &perm))
        return false;
    GUARD(axes_known, known && known->n == 1);
    int64_t axis = perm.at[kiln_type_axis(operand_type(plan, 0), known->v[0])];
    set_ints(plan, 1, type->dtype, &axis, 1);
    plan->operands[1].type = kiln_type_make(type->dtype, type->rank, type->dims);
    return aligned(plan, &perm);
}

/* The dims that are left of @type's without those that are @gone (where they are not kept as 1),
 * as labels, in its own order and in that of what it is a transpose of. */
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

static bool
plan_arg_reduce(KilnPermuted *plan)
{
    int64_t *axis = attr_field(plan, "axis");
    bool keepdims = *(bool *)attr_field(plan, "keepdims");
    KilnPerm perm;
    if (!data_perm(plan, &perm) || (plan->inverse && !keepdims))
        return false;
    bool gone[KILN_MAX_RANK] = { false };
    int d = kiln_type_axis(operand_type(plan, 0), *axis);
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

static bool
plan_reduce(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    bool keepdims = *(bool *)attr_field(plan, "keepdims"), known, before[KILN_MAX_RANK];
    const KilnType *x = operand_type(plan, 0);
    KilnPerm perm;
    if (!data_perm(plan, &perm) || (plan->inverse && !keepdims) ||
        !kiln_reduce_axes(plan->node, before, &known, NULL))
        return false;
    GUARD(axes_known, known);
    bool exact = kiln_dtype_is_integer(x->dtype) && !x->quant;
    GUARD(same_order, exact || reduces_in_order(x, &perm, before));
    int64_t axes[KILN_MAX_RANK];
    KilnPerm inverse = kiln_perm_inverse(&perm);
    uint32_t n = 0;
    for (int d = 0; d < perm.rank; d++) {
        if (before[inverse.at[d]])
            axes[n++] = d;
    }
    if (operand_type(plan, 1) && kiln_type_elements(operand_type(plan, 1)) != 0)
        set_ints(plan, 1, KILN_DTYPE_i64, axes, n);
    plan->results[0] = keepdims ? perm : perm_without(&perm, before);
    return true;
}

/* --- movement --- */

/* Operand @i holds axes; false where they are not known. */
static bool
permuted_axes(KilnPermuted *plan, uint32_t i, const KilnPerm *perm)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    const KilnKnown *known = operand_known(plan, i);
    GUARD(axes_known, known && known->n <= KILN_MAX_RANK);
    int64_t axes[KILN_MAX_RANK];
    for (int64_t k = 0; k < known->n; k++)
        axes[k] = perm->at[kiln_type_axis(operand_type(plan, 0), known->v[k])];
    set_ints(plan, i, operand_type(plan, i)->dtype, axes, (uint32_t)known->n);
    return true;
}

static bool
plan_slice(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    const KilnType *starts = operand_type(plan, 1);
    KilnPerm perm;
    if (!data_perm(plan, &perm))
        return false;
    if (operand_type(plan, 3))
        return permuted_axes(plan, 3, &perm) && aligned(plan, &perm);
    int64_t n = kiln_type_elements(starts), axes[KILN_MAX_RANK];
    GUARD(axes_known, n >= 0 && n <= perm.rank);
    for (int64_t k = 0; k < n; k++)
        axes[k] = perm.at[k];
    plan->n_operands = MAX(plan->n_operands, 4);
    set_ints(plan, 3, starts->dtype, axes, (uint32_t)n);
    return aligned(plan, &perm);
}

static bool
plan_pad(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    const KilnKnown *pads = operand_known(plan, 1);
    KilnPerm perm;
    if (!data_perm(plan, &perm))
        return false;
    if (operand_type(plan, 3))
        return permuted_axes(plan, 3, &perm) && aligned(plan, &perm);
    GUARD(numbers_known, pads && pads->n == 2 * perm.rank);
    int64_t both[2 * KILN_MAX_RANK];
    for (int d = 0; d < perm.rank; d++) {
        both[perm.at[d]] = pads->v[d];
        both[perm.rank + perm.at[d]] = pads->v[perm.rank + d];
    }
    set_ints(plan, 1, KILN_DTYPE_i64, both, 2 * (uint32_t)perm.rank);
    return aligned(plan, &perm);
}

static bool
plan_tile(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    const KilnKnown *repeats = operand_known(plan, 1);
    KilnPerm perm;
    if (!data_perm(plan, &perm))
        return false;
    GUARD(numbers_known, repeats && repeats->n == perm.rank);
    int64_t moved[KILN_MAX_RANK];
    for (int d = 0; d < perm.rank; d++)
        moved[perm.at[d]] = repeats->v[d];
    set_ints(plan, 1, KILN_DTYPE_i64, moved, (uint32_t)perm.rank);
    return aligned(plan, &perm);
}

static bool
plan_expand(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    const KilnType *out = &plan->node->results[0].type;
    KilnPerm perm;
    GUARD(numbers_known, kiln_type_is_static(out));
    if (!shared_perm(plan, &perm) || !operands_plan(plan, 1, &perm))
        return false;
    KilnType before = kiln_perm_type_before(plan->arena, out, &perm);
    set_ints(plan, 1, KILN_DTYPE_i64, before.dims, (uint32_t)before.rank);
    return aligned(plan, &perm);
}

static bool
plan_gather(KilnPermuted *plan)
{
    const KilnType *indices = operand_type(plan, 1);
    int64_t *axis = attr_field(plan, "axis");
    KilnPerm perm;
    if (plan->inverse || !data_perm(plan, &perm) || indices->rank < 0 ||
        perm.rank - 1 + indices->rank > KILN_MAX_RANK)
        return false;
    KilnPerm inverse = kiln_perm_inverse(&perm);
    int labels[KILN_MAX_RANK], other[KILN_MAX_RANK], rank = 0, n = 0;
    int gathered = kiln_type_axis(operand_type(plan, 0), *axis);
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

/* Extends a run until both sides have the same number of elements. */
static bool
close_run(const KilnType *in, const KilnType *out, int *i, int *k)
{
    int64_t left = in->dims[(*i)++], right = out->dims[(*k)++];
    if (left < 0 || right < 0)
        return left < 0 && right < 0 && in->dim_names[*i - 1] &&
               g_strcmp0(in->dim_names[*i - 1], out->dim_names[*k - 1]) == 0;
    while (left != right) {
        int64_t *less = left < right ? &left : &right;
        const KilnType *type = left < right ? in : out;
        int *at = left < right ? i : k;
        if (*at == type->rank || type->dims[*at] < 0)
            return false;
        *less *= type->dims[(*at)++];
    }
    return true;
}

/* Dims of 1 at the end of a run belong to it. */
static bool
find_runs(const KilnType *in, const KilnType *out, Runs *runs)
{
    int i = 0, k = 0;
    runs->n = 0;
    while (i < in->rank && k < out->rank) {
        runs->in[runs->n] = i;
        runs->out[runs->n++] = k;
        if (!close_run(in, out, &i, &k))
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

/* reshape, flatten, squeeze, unsqueeze: legal where no run mixes dims that stand apart. */
static bool
plan_reshape(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    const KilnType *in = operand_type(plan, 0), *out = &plan->node->results[0].type;
    Runs runs;
    KilnPerm perm;
    int order[KILN_MAX_RANK], labels[KILN_MAX_RANK], other[KILN_MAX_RANK], n = 0;
    int64_t shape[KILN_MAX_RANK];
    if (plan->inverse || is_quantized_per_axis(in) || !data_perm(plan, &perm))
        return false;
    GUARD(side_by_side, find_runs(in, out, &runs) && sort_runs(&runs, in, &perm, order));
    int open = 0, empty = 0;
    for (int r = 0; r < runs.n; r++) {
        for (int d = runs.out[order[r]]; d < runs.out[order[r] + 1]; d++) {
            labels[n] = n;
            other[n] = d;
            shape[n++] = out->dims[d];
            open += out->dims[d] < 0;
            empty += out->dims[d] == 0;
        }
    }
    GUARD(shape_of_view, empty == 0 && open <= 1);
    plan->op = KILN_OP_reshape;
    plan->attrs = kiln_op_attrs_new(KILN_OP_reshape, plan->arena);
    plan->n_operands = 2;
    set_ints(plan, 1, KILN_DTYPE_i64, shape, (uint32_t)n);
    plan->results[0] = perm_between(labels, other, n);
    return true;
}

/* --- normalization and windows --- */

/* Channels are dim 1, and nothing else of a batch normalization depends on where dims stand. */
static bool
plan_batch_normalization(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    KilnPerm perm;
    if (!data_perm(plan, &perm) || perm.rank < 2)
        return false;
    GUARD(channels_stay, perm.at[1] == 1);
    GUARD(inference, kiln_pass_mode(context) == KILN_MODE_INFER &&
                         !kiln_attrs(plan->node, batch_normalization)->training_mode);
    return aligned(plan, &perm);
}

static bool
plan_lrn(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    KilnPerm perm;
    if (!data_perm(plan, &perm))
        return false;
    GUARD(channels_stay, perm.at[1] == 1);
    return aligned(plan, &perm);
}

/* The dims from the axis on are normalized together and scaled. */
static bool
plan_layer_normalization(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    const KilnType *x = operand_type(plan, 0);
    KilnPerm perm;
    if (!data_perm(plan, &perm))
        return false;
    int axis = kiln_type_axis(x, kiln_attrs(plan->node, layer_normalization)->axis);
    for (int d = axis; d < perm.rank; d++)
        GUARD(normalized_stay, perm.at[d] == d);
    return aligned(plan, &perm);
}

/* Permutes an attribute of one number per spatial dim, or of one for each end. */
static void
permute_spatial(KilnPermuted *plan, const char *name, const KilnPerm *perm)
{
    KilnInts *list = attr_field(plan, name);
    uint32_t spatial = (uint32_t)perm->rank - 2;
    if (!list || !list->n)
        return;
    KilnInts old = *list;
    *list = kiln_ints_make(plan->arena, old.v, old.n);
    for (uint32_t i = 0; i < old.n; i++)
        list->v[i / spatial * spatial + (uint32_t)perm->at[i % spatial + 2] - 2] = old.v[i];
}

/* Elements of a window are summed, or compared, in order: no two of its dims may swap. */
static bool
window_in_order(const KilnInts *kernel, const KilnPerm *perm)
{
    int last = -1;
    for (uint32_t i = 0; i < kernel->n; i++) {
        if (kernel->v[i] == 1)
            continue;
        if (perm->at[i + 2] < last)
            return false;
        last = perm->at[i + 2];
    }
    return true;
}

static bool
plan_pool(KilnPermuted *plan)
{
    KilnPassContext *context = plan->context;
    const char *rule = plan->rule;
    const KilnInts *kernel = attr_field(plan, "kernel_shape");
    KilnPerm perm;
    if (!data_perm(plan, &perm) || perm.rank < 3)
        return false;
    GUARD(channels_stay, perm.at[0] == 0 && perm.at[1] == 1);
    GUARD(same_order, window_in_order(kernel, &perm));
    GUARD(no_indices, plan->node->n_results == 1);
    permute_spatial(plan, "strides", &perm);
    permute_spatial(plan, "dilations", &perm);
    permute_spatial(plan, "pads", &perm);
    permute_spatial(plan, "kernel_shape", &perm);
    return aligned(plan, &perm);
}

/* --- which op has which plan --- */

static Planner
planner_of(KilnOp op)
{
    switch (op) {
    case KILN_OP_quantize_linear:
    case KILN_OP_dequantize_linear:
        return plan_linear;
    case KILN_OP_clip:
        return plan_first_operand; /* bounds are scalars */
    case KILN_OP_softmax:
    case KILN_OP_log_softmax:
    case KILN_OP_hardmax:
    case KILN_OP_lp_normalization:
    case KILN_OP_top_k:
    case KILN_OP_split:
        return plan_axis;
    case KILN_OP_arg_max:
    case KILN_OP_arg_min:
        return plan_arg_reduce;
    case KILN_OP_reduce_l1:
    case KILN_OP_reduce_l2:
    case KILN_OP_reduce_log_sum:
    case KILN_OP_reduce_log_sum_exp:
    case KILN_OP_reduce_max:
    case KILN_OP_reduce_mean:
    case KILN_OP_reduce_min:
    case KILN_OP_reduce_prod:
    case KILN_OP_reduce_sum:
    case KILN_OP_reduce_sum_square:
        return plan_reduce;
    case KILN_OP_cum_sum:
        return plan_cum_sum;
    case KILN_OP_concat:
        return plan_concat;
    case KILN_OP_slice:
        return plan_slice;
    case KILN_OP_pad:
        return plan_pad;
    case KILN_OP_tile:
        return plan_tile;
    case KILN_OP_expand:
        return plan_expand;
    case KILN_OP_gather:
        return plan_gather;
    case KILN_OP_reshape:
    case KILN_OP_flatten:
    case KILN_OP_squeeze:
    case KILN_OP_unsqueeze:
        return plan_reshape;
    case KILN_OP_batch_normalization:
        return plan_batch_normalization;
    case KILN_OP_lrn:
        return plan_lrn;
    case KILN_OP_layer_normalization:
        return plan_layer_normalization;
    case KILN_OP_max_pool:
    case KILN_OP_average_pool:
    case KILN_OP_lp_pool:
        return plan_pool;
    default:
        return kiln_op_has(op, KILN_TRAIT_ELEMENTWISE) ? plan_broadcast : NULL;
    }
}

/* Ranks known, layouts plain: what every plan takes for granted. */
static bool
is_plain(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && value->type.layout)
            return false;
    }
    for (uint32_t r = 0; r < node->n_results; r++) {
        if (node->results[r].type.layout || node->results[r].type.rank < 0)
            return false;
    }
    return node->n_operands > 0 && node->operands[0].value && node->n_results > 0;
}

bool
kiln_permute_plan(KilnPermuted *plan)
{
    const KilnNode *node = plan->node;
    const KilnOpInfo *info = kiln_op_info(node->op);
    Planner planner = planner_of(node->op);
    if (!planner || !is_plain(node) ||
        (plan->want.rank >= 0 && plan->want.rank != node->results[0].type.rank))
        return false;
    plan->op = node->op;
    plan->attrs = kiln_op_attrs_new(node->op, plan->arena);
    if (plan->attrs)
        kiln_attrs_copy(info->attrs, info->n_attrs, plan->attrs, node->attrs, plan->arena);
    plan->n_operands = node->n_operands;
    plan->operands = kiln_arena_new0(plan->arena, KilnPermutedOperand, node->n_operands + 5);
    plan->results = kiln_arena_new0(plan->arena, KilnPerm, node->n_results);
    plan->has_view = false;
    return planner(plan);
}
