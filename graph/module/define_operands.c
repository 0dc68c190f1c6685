/* SPDX-License-Identifier: Apache-2.0 */
/* Operands that decide shapes and that data computes: their elements get names. What may be
 * negative is brought into the bounds first, as the operator means it. */
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
define(const Builder *b, KilnValue *value)
{
    uint32_t n = (uint32_t)kiln_type_elements(&value->type);
    const char *names[KILN_DEFINED_MAX];
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
    const char *names[KILN_DEFINED_MAX];
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

/* --- what operators mean --- */

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
    const KilnAttrs_cast wide = kiln_cast_to(KILN_DTYPE_i64);
    widen_slice(b);
    KilnValue *list = kiln_build_ints(b->before->function, b->before, counted, (uint32_t)n);
    KilnValue *shape = build(b, KILN_OP_shape, NULL, kiln_node_operand(b->before, 0), NULL, NULL);
    KilnValue *extents = build(b, KILN_OP_gather, NULL, shape, list, NULL);
    KilnValue *zero = number(b, KILN_DTYPE_i64, 0);
    KilnValue *stated = build(b, KILN_OP_cast, &wide, bounds, NULL, NULL);
    KilnValue *negative = build(b, KILN_OP_less, NULL, stated, zero, NULL);
    KilnValue *turned = build(b, KILN_OP_add, NULL, stated, extents, NULL);
    KilnValue *counts =
        negative && turned ? build(b, KILN_OP_where, NULL, negative, turned, stated) : NULL;
    KilnValue *least = build(b, KILN_OP_max, NULL, counts, zero, NULL);
    return build(b, KILN_OP_min, NULL, least, extents, NULL);
}

/* Elements [@begin, @end) of @list. */
static KilnValue *
part_of(const Builder *b, KilnValue *list, int64_t begin, int64_t end)
{
    KilnValue *from = kiln_build_ints(b->before->function, b->before, &begin, 1);
    KilnValue *to = kiln_build_ints(b->before->function, b->before, &end, 1);
    return build(b, KILN_OP_slice, NULL, list, from, to);
}

/* The last part is what the others leave, so that types see that all of them are the whole. */
static KilnValue *
split_parts(const Builder *b, KilnValue *parts)
{
    const KilnValue *x = kiln_node_operand(b->before, 0);
    int64_t n = kiln_type_elements(&parts->type);
    int64_t axis =
        x->type.rank < 0 ? -1 : kiln_type_axis(&x->type, kiln_attrs(b->before, split)->axis);
    if (n < 2 || n >= KILN_DEFINED_MAX || axis < 0)
        return NULL;
    KilnValue *place = kiln_build_ints(b->before->function, b->before, &axis, 1);
    KilnValue *shape = build(b, KILN_OP_shape, NULL, kiln_node_operand(b->before, 0), NULL, NULL);
    KilnValue *whole = build(b, KILN_OP_gather, NULL, shape, place, NULL);
    KilnValue *defined = define_parts(b, parts, whole);
    KilnValue *first = part_of(b, defined, 0, n - 1);
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
    { KILN_OP_expand, 1, NULL },
    { KILN_OP_tile, 1, NULL },
    { KILN_OP_pad, 1, NULL },
    { KILN_OP_top_k, 1, NULL },
    { KILN_OP_one_hot, 1, NULL },
    { KILN_OP_split, 1, split_parts },
    { KILN_OP_resize, 3, NULL },
    { KILN_OP_image_decoder, 1, NULL },
    { KILN_OP_range, 1, range_limit },
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
    int64_t n = value && !value->known && !value->extents ? kiln_type_elements(&value->type) : -1;
    return n > 0 && n <= KILN_DEFINED_MAX && !kiln_value_constant(value) &&
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
        KilnValue *meant = rows[i].mean ? rows[i].mean(&builder, value) : value;
        const bool done = meant && !why && rows[i].mean == split_parts;
        KilnValue *defined = done ? meant : meant && !why ? define(&builder, meant) : NULL;
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
    if (result) {
        kiln_value_replace(kiln_node_result(node, 0), result);
        kiln_node_remove(node);
    }
    if (why)
        g_propagate_error(error, g_steal_pointer(&why));
    return result != NULL;
}
