/* SPDX-License-Identifier: Apache-2.0 */
/* Operands that decide shapes and that data computes: their elements get names. What may be
 * negative is brought into the bounds first, as the operator means it. */
#include "graph/dim/dim_defined.h"
#include "graph/module/define.h"
#include "graph/op/bounds.h"
#include "graph/op/concat.h"
#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/logic.h"
#include "graph/op/math.h"
#include "graph/op/multiplicative.h"
#include "graph/op/additive.h"
#include "graph/op/reduce.h"
#include "graph/op/reshape.h"
#include "graph/op/resize.h"
#include "graph/op/slice.h"
#include "graph/op/cast.h"

/* A place to build in; @error is set once, and all values are NULL from then on. */
typedef struct {
    KilnNode *before;
    GError **error;
} Builder;

static KilnValue *
build(const Builder *b, KilnOp op, const void *attrs, KilnValue *x, KilnValue *y, KilnValue *z)
{
    KilnValue *operands[] = { x, y, z };
    uint32_t n = z ? 3 : y ? 2 : 1;
    if (!x || (n > 1 && !y) || *b->error)
        return NULL;
    return kiln_build(b->before->function, b->before, op, attrs, operands, n, b->error);
}

static KilnValue *
number(const Builder *b, KilnDType dtype, int64_t value)
{
    KilnType type = kiln_type_scalar(dtype);
    return kiln_build_constant(b->before->function, b->before, "number",
                               kiln_tensor_new_splat(&type, (double)value));
}

/* --- names --- */

/* The most that the elements of @value can be: an extent of the operand that is cut. */
static int64_t
most_of(const KilnNode *node)
{
    const KilnType *x = node->n_operands ? &node->operands[0].value->type : NULL;
    int64_t most = 0;
    if (node->op != KILN_OP_top_k && node->op != KILN_OP_slice && node->op != KILN_OP_split)
        return KILN_DIM_MOST;
    for (int d = 0; d < x->rank; d++) {
        int64_t least, extent = x->dims[d] < 0 ? KILN_DIM_MOST : x->dims[d];
        if (x->open[d])
            kiln_dim_range(x->open[d], &least, &extent);
        most = MAX(most, extent);
    }
    if (node->op == KILN_OP_top_k && x->rank > 0) {
        int axis = kiln_type_axis(x, kiln_attrs(node, top_k)->axis);
        most = axis >= 0 && !x->open[axis] ? x->dims[axis] : most;
    }
    return MIN(most, (int64_t)KILN_DIM_MOST);
}

/* True where @node gives each of the @n elements of its operand a name of up to @most. */
static bool
defines_up_to(const KilnNode *node, uint32_t n, int64_t most)
{
    const KilnStrings *names = node->op == KILN_OP_define ? &kiln_attrs(node, define)->names : NULL;
    bool same = names && names->n == n;
    for (uint32_t k = 0; same && k < n; k++) {
        KilnDimFacts facts;
        kiln_dim_facts(kiln_dim_name(node->function->module->dims, names->v[k]), &facts);
        same = facts.hi == most;
    }
    return same;
}

static const char *
name_element(const Builder *b, const KilnValue *value, uint32_t k, int64_t most)
{
    g_autofree char *word = kiln_define_word(value->name);
    g_autofree char *wanted =
        kiln_type_elements(&value->type) > 1 ? g_strdup_printf("%s%u", word, k) : g_strdup(word);
    return kiln_define_name(b->before->function, wanted, most);
}

/* Names for the elements of @value, those that it has already where their bound is the same. */
static KilnValue *
define_all(const Builder *b, KilnValue *value)
{
    uint32_t n = (uint32_t)kiln_type_elements(&value->type);
    const char *names[KILN_MAX_RANK];
    const int64_t most = most_of(b->before);
    kiln_foreach_use (use, value) {
        if (defines_up_to(use->user, n, most))
            return kiln_node_result(use->user, 0);
    }
    for (uint32_t k = 0; k < n; k++)
        names[k] = name_element(b, value, k, most);
    const KilnAttrs_define attrs = { .names = { n, names } };
    return build(b, KILN_OP_define, &attrs, value, NULL, NULL);
}

/* Names for numbers that add up to @whole. The last one says how much more they are, so it must be
 * 0 in a run. */
static KilnValue *
define_parts(const Builder *b, KilnValue *parts, KilnValue *whole)
{
    uint32_t n = (uint32_t)kiln_type_elements(&parts->type);
    const char *names[KILN_MAX_RANK];
    KilnValue *sum = build(b, KILN_OP_reduce_sum, NULL, parts, NULL, NULL);
    KilnValue *over = build(b, KILN_OP_sub, NULL, sum, whole, NULL);
    KilnValue *list = build(b, KILN_OP_concat, NULL, parts, over, NULL);
    if (!list)
        return NULL;
    for (uint32_t k = 0; k < n; k++)
        names[k] = name_element(b, parts, k, most_of(b->before));
    g_autofree char *word = kiln_define_word(parts->name);
    g_autofree char *left = g_strconcat(word, "_too_many", NULL);
    names[n] = kiln_define_name(b->before->function, left, 0);
    const KilnAttrs_define attrs = { .names = { n + 1, names } };
    return build(b, KILN_OP_define, &attrs, list, whole, NULL);
}

/* Element @k of @value needs no name. */
static bool
is_known_element(const KilnValue *value, uint32_t k)
{
    const KilnExtents *extents = value->extents;
    return extents && extents->v[k] && (!extents->under || extents->under[k] == 1);
}

/* No element of @value needs one. */
static bool
has_all_elements(const KilnValue *value)
{
    bool all = value->extents != NULL;
    for (uint32_t k = 0; all && k < value->extents->n; k++)
        all = is_known_element(value, k);
    return all;
}

static KilnValue *
sliced(const Builder *b, KilnValue *list, int64_t from, int64_t to)
{
    KilnFunction *function = b->before->function;
    KilnValue *start = kiln_build_ints(function, b->before, (int64_t[]){ from }, 1);
    KilnValue *end = kiln_build_ints(function, b->before, (int64_t[]){ to }, 1);
    return build(b, KILN_OP_slice, NULL, list, start, end);
}

/* The elements of @stated stay where they are known. The others are those of @meant and get names.
 */
static KilnValue *
define(const Builder *b, KilnValue *stated, KilnValue *meant)
{
    KilnValue *whole = NULL;
    uint32_t n = (uint32_t)kiln_type_elements(&stated->type);
    if (stated->known)
        return stated;
    if (!stated->extents || stated->type.rank != 1)
        return define_all(b, meant);
    for (uint32_t from = 0, to; from < n && !*b->error; from = to) {
        bool known = is_known_element(stated, from);
        for (to = from + 1; to < n && is_known_element(stated, to) == known;)
            to++;
        KilnValue *part = sliced(b, known ? stated : meant, from, to);
        part = part && !known ? define_all(b, part) : part;
        whole = whole ? build(b, KILN_OP_concat, NULL, whole, part, NULL) : part;
    }
    return whole;
}

/* --- what operators mean --- */

static KilnValue *
wide(const Builder *b, KilnValue *list)
{
    const KilnAttrs_cast attrs = kiln_cast_to(KILN_DTYPE_i64);
    return build(b, KILN_OP_cast, &attrs, list, NULL, NULL);
}

static KilnValue *
chosen(const Builder *b, KilnValue *condition, KilnValue *yes, KilnValue *no)
{
    return condition && yes && no ? build(b, KILN_OP_where, NULL, condition, yes, no) : NULL;
}

/* The first @n extents of @x, with 0 for those that it has not. */
static KilnValue *
extents_of(const Builder *b, KilnValue *x, int64_t n)
{
    const int64_t zeros[KILN_MAX_RANK] = { 0 };
    KilnValue *shape = build(b, KILN_OP_shape, NULL, x, NULL, NULL);
    if (n <= x->type.rank)
        return shape ? sliced(b, shape, 0, n) : NULL;
    KilnValue *more =
        kiln_build_ints(b->before->function, b->before, zeros, (uint32_t)(n - x->type.rank));
    return build(b, KILN_OP_concat, NULL, shape, more, NULL);
}

/* A stated -1. */
static bool
infers(const KilnValue *list, int64_t n)
{
    bool found = false;
    for (int64_t i = 0; list->extents && i < n; i++) {
        int64_t number = 0;
        found |= kiln_dim_is_number(list->extents->v[i], &number) && number == -1;
    }
    return found;
}

/* @stated without its last element that is not known: the others leave it, and inference has an
 * expression for it. */
static KilnValue *
without_last(const Builder *b, KilnValue *stated, int64_t n)
{
    int64_t last = n - 1;
    while (last > 0 && is_known_element(stated, (uint32_t)last))
        last--;
    KilnValue *list = kiln_build_ints(b->before->function, b->before, (int64_t[]){ -1 }, 1);
    KilnValue *front = last > 0 ? sliced(b, stated, 0, last) : NULL;
    KilnValue *back = last < n - 1 ? sliced(b, stated, last + 1, n) : NULL;
    list = last > 0 ? build(b, KILN_OP_concat, NULL, front, list, NULL) : list;
    return last < n - 1 ? build(b, KILN_OP_concat, NULL, list, back, NULL) : list;
}

/* No element of @list is below 0. */
static bool
never_negative(const KilnValue *list)
{
    const KilnNode *max = kiln_value_def_of(list, KILN_OP_max);
    for (uint32_t i = 0; max && i < max->n_operands; i++) {
        const KilnKnown *known = max->operands[i].value->known;
        if (known && known->n == 1 && known->v[0] >= 0)
            return true;
    }
    return false;
}

/* A 0 copies the extent, and any dim that data computes may be -1: what the others leave. Names are
 * for those that are neither known nor left over. */
static KilnValue *
reshape_dims(const Builder *b, KilnValue *stated)
{
    KilnValue *x = kiln_node_operand(b->before, 0);
    int64_t n = kiln_type_elements(&stated->type);
    if (x->type.rank < 0 || n > KILN_MAX_RANK)
        return NULL;
    const bool exact = kiln_attrs(b->before, reshape)->allowzero;
    if (exact && never_negative(stated)) /* a run checks the number of elements */
        return define_all(b, stated);
    KilnValue *zero = number(b, KILN_DTYPE_i64, 0), *one = number(b, KILN_DTYPE_i64, 1);
    KilnValue *dims = stated;
    if (!exact)
        dims = chosen(b, build(b, KILN_OP_equal, NULL, stated, zero, NULL), extents_of(b, x, n),
                      stated);
    KilnValue *negative = build(b, KILN_OP_less, NULL, dims, zero, NULL);
    KilnValue *others = chosen(b, negative, one, dims);
    KilnValue *product = build(b, KILN_OP_reduce_prod, NULL, others, NULL, NULL);
    KilnValue *divisor = build(b, KILN_OP_max, NULL, product, one, NULL);
    KilnValue *all = build(b, KILN_OP_size, NULL, x, NULL, NULL);
    KilnValue *meant = chosen(b, negative, build(b, KILN_OP_div, NULL, all, divisor, NULL), dims);
    if (!meant)
        return NULL;
    KilnValue *list = infers(stated, n) ? stated : without_last(b, stated, n);
    return list ? define(b, list, meant) : NULL;
}

/* A limit below 0 gives no element, as 0 does where the start is 0 or more. */
static KilnValue *
range_limit(const Builder *b, KilnValue *limit)
{
    const KilnValue *start = kiln_node_operand(b->before, 0),
                    *step = kiln_node_operand(b->before, 2);
    bool upwards = start->known && start->known->v[0] >= 0 && step->known && step->known->v[0] > 0;
    return upwards ? build(b, KILN_OP_max, NULL, limit, number(b, limit->type.dtype, 0), NULL)
                   : NULL;
}

/* What says where a slice begins and ends is of one type. That of the extents is i64. */
static void
widen_slice(const Builder *b)
{
    const KilnAttrs_cast wide = kiln_cast_to(KILN_DTYPE_i64);
    for (uint32_t i = 1; i < b->before->n_operands; i++) {
        KilnValue *list = kiln_node_operand(b->before, i);
        if (!list || list->type.dtype == KILN_DTYPE_i64)
            continue;
        list = build(b, KILN_OP_cast, &wide, list, NULL, NULL);
        if (list)
            kiln_node_set_operand(b->before, i, list);
    }
}

/* Other operators stand for @node where this operand is not known. */
static KilnValue *
stays(const Builder *b, KilnValue *value)
{
    (void)b;
    (void)value;
    return NULL;
}

/* Negative bounds count from the end; then they are clamped. */
static KilnValue *
slice_bounds(const Builder *b, KilnValue *bounds)
{
    KilnValue *axes = kiln_node_operand(b->before, 3);
    const KilnValue *steps = kiln_node_operand(b->before, 4);
    int64_t n = kiln_type_elements(&bounds->type), counted[KILN_MAX_RANK];
    for (int64_t i = 0; i < n; i++) {
        counted[i] = axes && axes->known ? axes->known->v[i] : i;
        if ((axes && !axes->known) || (steps && (!steps->known || steps->known->v[i] < 1)))
            return NULL;
    }
    widen_slice(b);
    KilnValue *list = kiln_build_ints(b->before->function, b->before, counted, (uint32_t)n);
    KilnValue *shape = build(b, KILN_OP_shape, NULL, kiln_node_operand(b->before, 0), NULL, NULL);
    KilnValue *extents = build(b, KILN_OP_gather, NULL, shape, list, NULL);
    KilnValue *zero = number(b, KILN_DTYPE_i64, 0);
    KilnValue *stated = wide(b, bounds);
    KilnValue *negative = build(b, KILN_OP_less, NULL, stated, zero, NULL);
    KilnValue *turned = build(b, KILN_OP_add, NULL, stated, extents, NULL);
    KilnValue *counts = chosen(b, negative, turned, stated);
    KilnValue *least = build(b, KILN_OP_max, NULL, counts, zero, NULL);
    return build(b, KILN_OP_min, NULL, least, extents, NULL);
}

/* The last part is what the others leave, so that types see that all of them are the whole. */
static KilnValue *
split_parts(const Builder *b, KilnValue *parts)
{
    const KilnValue *x = kiln_node_operand(b->before, 0);
    int64_t n = kiln_type_elements(&parts->type);
    int64_t axis =
        x->type.rank < 0 ? -1 : kiln_type_axis(&x->type, kiln_attrs(b->before, split)->axis);
    if (n < 2 || n >= KILN_MAX_RANK || axis < 0)
        return NULL;
    KilnValue *place = kiln_build_ints(b->before->function, b->before, &axis, 1);
    KilnValue *shape = build(b, KILN_OP_shape, NULL, kiln_node_operand(b->before, 0), NULL, NULL);
    KilnValue *whole = build(b, KILN_OP_gather, NULL, shape, place, NULL);
    KilnValue *defined = define_parts(b, parts, whole);
    KilnValue *first = sliced(b, defined, 0, n - 1);
    KilnValue *sum = build(b, KILN_OP_reduce_sum, NULL, first, NULL, NULL);
    KilnValue *left = build(b, KILN_OP_sub, NULL, whole, sum, NULL);
    return build(b, KILN_OP_concat, NULL, first, left, NULL);
}

/* Elements are selected from so many, or lie between bounds within so many. */
KilnSize
kiln_define_most_by_readers(const KilnNode *node, uint32_t i)
{
    KilnSize most = kiln_size_make(0);
    most.lost = true;
    kiln_foreach_use (use, &node->results[0]) {
        const KilnNode *reader = use->user;
        const KilnType *x = &kiln_node_operand(reader, 0)->type;
        int64_t axis = G_MININT64;
        if (reader->op == KILN_OP_top_k && use->index == 1)
            axis = kiln_attrs(reader, top_k)->axis;
        if (reader->op == KILN_OP_slice && (use->index == 1 || use->index == 2)) {
            const KilnValue *axes = kiln_node_operand(reader, 3);
            axis = !axes ? i : axes->known && i < axes->known->n ? axes->known->v[i] : G_MININT64;
        }
        const int d = axis == G_MININT64 || x->rank < 0 ? -1 : kiln_type_axis(x, axis);
        if (d >= 0 && kiln_type_knows_dim(x, d))
            return kiln_size_open(MAX(x->dims[d], 0), x->open[d]);
    }
    return most;
}

/* --- operands --- */

static const struct {
    KilnOp op;
    uint32_t operand;
    KilnValue *(*mean)(const Builder *b, KilnValue *value); /* NULL: nothing is negative */
} rows[] = {
    { KILN_OP_constant_of_shape, 0, NULL },
    { KILN_OP_reshape, 1, reshape_dims },
    { KILN_OP_expand, 1, NULL },
    { KILN_OP_tile, 1, NULL },
    { KILN_OP_pad, 1, NULL },
    { KILN_OP_top_k, 1, NULL },
    { KILN_OP_one_hot, 1, NULL },
    { KILN_OP_split, 1, split_parts },
    { KILN_OP_resize, 3, NULL },
    { KILN_OP_image_decoder, 1, NULL },
    { KILN_OP_range, 0, stays },
    { KILN_OP_range, 1, range_limit },
    { KILN_OP_range, 2, stays },
    { KILN_OP_slice, 1, slice_bounds },
    { KILN_OP_slice, 2, slice_bounds },
};

bool
kiln_op_defines_operand(KilnOp op, uint32_t i)
{
    for (size_t k = 0; k < G_N_ELEMENTS(rows); k++) {
        if (rows[k].op == op && rows[k].operand == i)
            return true;
    }
    return false;
}

static bool
may_define(const KilnValue *value)
{
    int64_t n = value && !value->known ? kiln_type_elements(&value->type) : -1;
    return n > 0 && n <= KILN_MAX_RANK && !has_all_elements(value) && !kiln_value_constant(value) &&
           (value->type.dtype == KILN_DTYPE_i64 || value->type.dtype == KILN_DTYPE_i32);
}

gboolean
kiln_node_define_operands(KilnNode *node, bool *out_changed, GError **error)
{
    g_autoptr(GError) why = NULL;
    const Builder builder = { node, &why };
    *out_changed = false;
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        KilnValue *value = rows[i].op == node->op ? kiln_node_operand(node, rows[i].operand) : NULL;
        if (!may_define(value))
            continue;
        KilnValue *meant = rows[i].mean ? rows[i].mean(&builder, value) : value, *defined = meant;
        if (meant && !why && rows[i].mean != split_parts && rows[i].mean != reshape_dims)
            defined = define(&builder, meant, meant);
        if (why) {
            g_propagate_error(error, g_steal_pointer(&why));
            return FALSE;
        }
        if (defined)
            kiln_node_set_operand(node, rows[i].operand, defined);
        *out_changed |= defined != NULL;
    }
    return TRUE;
}

/* --- operators that others stand for --- */

/* @node becomes @value, of the same type as far as that is known. */
static void
replace(KilnNode *node, KilnValue *value)
{
    kiln_value_replace(kiln_node_result(node, 0), value);
    kiln_node_remove(node);
}

/* How many numbers lie from @start to in front of @limit: the quotient of doubles, rounded up. */
static KilnValue *
count_steps(const Builder *b, KilnValue *start, KilnValue *limit, KilnValue *step)
{
    const KilnAttrs_cast real = kiln_cast_to(KILN_DTYPE_f64);
    KilnValue *distance = build(b, KILN_OP_sub, NULL, limit, start, NULL);
    KilnValue *over = build(b, KILN_OP_cast, &real, distance, NULL, NULL);
    KilnValue *under = build(b, KILN_OP_cast, &real, step, NULL, NULL);
    KilnValue *quotient = build(b, KILN_OP_div, NULL, over, under, NULL);
    KilnValue *whole = wide(b, build(b, KILN_OP_ceil, NULL, quotient, NULL, NULL));
    return build(b, KILN_OP_max, NULL, whole, number(b, KILN_DTYPE_i64, 0), NULL);
}

/* 0 to in front of @n, which gets a name, times @step, and @start added. */
static KilnValue *
counted(const Builder *b, KilnValue *n, KilnValue *start, KilnValue *step)
{
    const KilnAttrs_cast own = kiln_cast_to(start->type.dtype);
    KilnValue *zero = number(b, KILN_DTYPE_i64, 0), *one = number(b, KILN_DTYPE_i64, 1);
    KilnValue *length = n ? define_all(b, n) : NULL;
    KilnValue *places = build(b, KILN_OP_range, NULL, zero, length, one);
    KilnValue *typed = build(b, KILN_OP_cast, &own, places, NULL, NULL);
    KilnValue *scaled = build(b, KILN_OP_mul, NULL, typed, step, NULL);
    return build(b, KILN_OP_add, NULL, scaled, start, NULL);
}

static bool
is_settled(const KilnValue *value)
{
    return value->known || kiln_value_constant(value) || has_all_elements(value);
}

/* A range of which more than the limit is not known, or whose limit may lie below its start. */
static KilnValue *
counted_range(const Builder *b)
{
    const KilnNode *node = b->before;
    KilnValue *start = kiln_node_operand(node, 0), *limit = kiln_node_operand(node, 1),
              *step = kiln_node_operand(node, 2);
    bool upwards = start->known && start->known->v[0] >= 0 && step->known && step->known->v[0] > 0;
    if (upwards || (is_settled(start) && is_settled(limit) && is_settled(step)))
        return NULL;
    return counted(b, count_steps(b, start, limit, step), start, step);
}

/* The places that entry @i of the lists of a slice names, on an axis of @extent elements. */
static KilnValue *
sliced_places(const Builder *b, int64_t i, KilnValue *extent, int64_t by)
{
    KilnValue *zero = number(b, KILN_DTYPE_i64, 0), *one = number(b, KILN_DTYPE_i64, 1);
    KilnValue *last = by < 0 ? build(b, KILN_OP_sub, NULL, extent, one, NULL) : extent, *bounds[2];
    for (uint32_t k = 0; k < 2; k++) {
        KilnValue *list = wide(b, kiln_node_operand(b->before, k + 1));
        KilnValue *stated = list ? sliced(b, list, i, i + 1) : NULL;
        KilnValue *negative = build(b, KILN_OP_less, NULL, stated, zero, NULL);
        KilnValue *turned = build(b, KILN_OP_add, NULL, stated, extent, NULL);
        KilnValue *least = number(b, KILN_DTYPE_i64, k == 0 || by > 0 ? 0 : -1);
        KilnValue *place = chosen(b, negative, turned, stated);
        bounds[k] = build(b, KILN_OP_min, NULL, build(b, KILN_OP_max, NULL, place, least, NULL),
                          last, NULL);
    }
    KilnValue *scalar = kiln_build_ints(b->before->function, b->before, NULL, 0), *ends[2];
    for (uint32_t k = 0; k < 2; k++)
        ends[k] = build(b, KILN_OP_reshape, NULL, bounds[k], scalar, NULL);
    KilnValue *step = number(b, KILN_DTYPE_i64, by);
    KilnValue *n = ends[0] && ends[1] ? count_steps(b, ends[0], ends[1], step) : NULL;
    return n ? counted(b, n, ends[0], step) : NULL;
}

/* A slice that data bounds and that goes backwards on an axis: one axis after the other, by their
 * places. */
static KilnValue *
turned_slice(const Builder *b)
{
    const KilnNode *node = b->before;
    KilnValue *x = kiln_node_operand(node, 0), *axes = kiln_node_operand(node, 3);
    const KilnValue *steps = kiln_node_operand(node, 4);
    bool backwards = false, settled = true;
    int64_t n = kiln_type_elements(&node->operands[1].value->type);
    for (int64_t i = 0; steps && steps->known && i < n; i++)
        backwards |= steps->known->v[i] < 0;
    for (uint32_t k = 1; k < 3; k++)
        settled &= is_settled(kiln_node_operand(node, k));
    if (!backwards || settled || n < 1 || x->type.rank < 0 || (axes && !axes->known))
        return NULL;
    KilnFunction *function = node->function;
    for (int64_t i = 0; i < n && x; i++) {
        int axis = kiln_type_axis(&x->type, axes ? axes->known->v[i] : i);
        int64_t by = steps->known->v[i];
        KilnValue *place = kiln_build_ints(function, b->before, (int64_t[]){ axis }, 1);
        KilnValue *shape = build(b, KILN_OP_shape, NULL, x, NULL, NULL);
        KilnValue *extent = build(b, KILN_OP_gather, NULL, shape, place, NULL);
        const KilnAttrs_gather along = { .axis = axis };
        KilnValue *list = axis >= 0 && extent ? sliced_places(b, i, extent, by) : NULL;
        x = list ? build(b, KILN_OP_gather, &along, x, list, NULL) : NULL;
    }
    return x;
}

/* --- dims that only data shows to be equal --- */

static bool
hangs_on_data(const KilnType *type, int d)
{
    return type->open[d] && kiln_dim_hangs_on_data(type->open[d]);
}

/* Dim @d of operand @i of @node, a concat, is that of the result by what data decides alone. */
static bool
must_agree(const KilnNode *node, uint32_t i, int d)
{
    const KilnType *x = &node->operands[i].value->type, *y = &node->results[0].type;
    return !kiln_type_equal_dims(x, d, y, d) && (hangs_on_data(x, d) || hangs_on_data(y, d));
}

/* The operand of @node that the result has dim @d of. */
static uint32_t
source_of(const KilnNode *node, int d)
{
    uint32_t i = 0;
    while (i + 1 < node->n_operands &&
           !kiln_type_equal_dims(&node->operands[i].value->type, d, &node->results[0].type, d))
        i++;
    return i;
}

static KilnValue *
extent_of(const Builder *b, uint32_t i, int d)
{
    KilnValue *shape = build(b, KILN_OP_shape, NULL, kiln_node_operand(b->before, i), NULL, NULL);
    return shape ? sliced(b, shape, d, d + 1) : NULL;
}

gboolean
kiln_concat_define(KilnNode *node, bool *out_changed, GError **error)
{
    const KilnType *y = &node->results[0].type;
    int axis = node->op != KILN_OP_concat || y->rank < 0
                   ? -1
                   : kiln_type_axis(y, kiln_attrs(node, concat)->axis);
    g_autoptr(GError) why = NULL;
    const Builder b = { node, &why };
    for (uint32_t i = 0; axis >= 0 && i < node->n_operands; i++) {
        bool differs = false;
        KilnValue *dims = NULL;
        for (int d = 0; d < y->rank; d++)
            differs |= d != axis && must_agree(node, i, d);
        for (int d = 0; differs && d < y->rank; d++) {
            KilnValue *dim =
                extent_of(&b, d != axis && must_agree(node, i, d) ? source_of(node, d) : i, d);
            dims = d ? build(&b, KILN_OP_concat, NULL, dims, dim, NULL) : dim;
        }
        const KilnAttrs_reshape exact = { .allowzero = true };
        KilnValue *whole = kiln_node_operand(node, i);
        KilnValue *x = dims ? build(&b, KILN_OP_reshape, &exact, whole, dims, NULL) : NULL;
        if (x)
            kiln_node_set_operand(node, i, x);
        *out_changed |= x != NULL;
    }
    if (!why)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&why));
    return FALSE;
}

gboolean
kiln_node_define_by_others(KilnNode *node, GError **error)
{
    g_autoptr(GError) why = NULL;
    const Builder b = { node, &why };
    KilnValue *value = node->op == KILN_OP_range   ? counted_range(&b)
                       : node->op == KILN_OP_slice ? turned_slice(&b)
                                                   : NULL;
    if (why) {
        g_propagate_error(error, g_steal_pointer(&why));
        return FALSE;
    }
    if (value)
        replace(node, value);
    return TRUE;
}

/* A condition that data computes selects by the places where it is true. */
gboolean
kiln_compress_define(KilnNode *node, GError **error)
{
    g_autoptr(GError) why = NULL;
    const Builder b = { node, &why };
    const KilnAttrs_compress *stated = kiln_attrs(node, compress);
    KilnValue *x = kiln_node_operand(node, 0), *condition = kiln_node_operand(node, 1);
    const bool flat = stated->axis == G_MININT64;
    const KilnAttrs_gather attrs = { .axis = flat ? 0 : stated->axis };
    if (condition->known || kiln_value_constant(condition) || x->type.rank < 0)
        return TRUE;
    KilnValue *line = kiln_build_ints(node->function, node, (int64_t[]){ -1 }, 1);
    KilnValue *data =
        flat && x->type.rank != 1 ? build(&b, KILN_OP_reshape, NULL, x, line, NULL) : x;
    KilnValue *places = build(&b, KILN_OP_non_zero, NULL, condition, NULL, NULL);
    if (places && kiln_node_define(places->def))
        kiln_node_reinfer(places->def, &why);
    KilnValue *list = build(&b, KILN_OP_reshape, NULL, places, line, NULL);
    KilnValue *result = build(&b, KILN_OP_gather, &attrs, data, list, NULL);
    if (result)
        replace(node, result);
    if (why)
        g_propagate_error(error, g_steal_pointer(&why));
    return result != NULL;
}

/* --- tensors as lists --- */

static KilnValue *
with_ints(const Builder *b, KilnOp op, KilnValue *value, const int64_t *ints, uint32_t n)
{
    return build(b, op, NULL, value, kiln_build_ints(b->before->function, b->before, ints, n),
                 NULL);
}

static KilnValue *
finish(KilnValue *value, GError *why, GError **error)
{
    if (!why)
        return value;
    g_propagate_error(error, why);
    return NULL;
}

KilnValue *
kiln_list_flat(KilnNode *before, KilnValue *value, GError **error)
{
    GError *why = NULL;
    const Builder b = { before, &why };
    return finish(with_ints(&b, KILN_OP_reshape, value, (int64_t[]){ -1 }, 1), why, error);
}

KilnValue *
kiln_list_shape(KilnNode *before, KilnValue *value, GError **error)
{
    GError *why = NULL;
    const Builder b = { before, &why };
    return finish(build(&b, KILN_OP_shape, NULL, value, NULL, NULL), why, error);
}

KilnValue *
kiln_list_element(KilnNode *before, KilnValue *list, int64_t i, GError **error)
{
    GError *why = NULL;
    const Builder b = { before, &why };
    KilnValue *place = number(&b, KILN_DTYPE_i64, i);
    return finish(build(&b, KILN_OP_gather, NULL, list, place, NULL), why, error);
}

KilnValue *
kiln_list_tensor(KilnNode *before, KilnValue *flat, KilnValue *shape, int rank, GError **error)
{
    const int64_t places[KILN_LIST_RANK_MAX] = { 0, 1, 2, 3, 4, 5 };
    const KilnAttrs_reshape exact = { .allowzero = true };
    GError *why = NULL;
    const Builder b = { before, &why };
    if (rank == 0)
        return kiln_list_element(before, flat, 0, error);
    if (rank == 1)
        return flat;
    KilnValue *list = with_ints(&b, KILN_OP_gather, shape, places, (uint32_t)rank);
    KilnValue *dims = build(&b, KILN_OP_max, NULL, list, number(&b, KILN_DTYPE_i64, 0), NULL);
    return finish(build(&b, KILN_OP_reshape, &exact, flat, dims, NULL), why, error);
}

KilnValue *
kiln_list_below(KilnNode *before, KilnValue *value, int64_t limit, GError **error)
{
    GError *why = NULL;
    const Builder b = { before, &why };
    KilnValue *most = number(&b, KILN_DTYPE_i64, limit);
    return finish(build(&b, KILN_OP_less, NULL, value, most, NULL), why, error);
}
