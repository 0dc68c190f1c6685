/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of operands and attributes, broadcasting, and dims: see common.h. */
#include "graph/infer/common.h"

#include "graph/base/number.h"
#include "graph/node.h"

#include <string.h>

/* --- errors --- */

static gboolean
throw_operand(const KilnNode *node, uint32_t i, KilnError code, const char *expected,
              GError **error)
{
    const KilnValue *value = kiln_node_operand(node, i);
    g_autofree char *found = value ? kiln_type_to_string(&value->type) : g_strdup("none");
    return kiln_throw(error, code, "operand %u: expected %s, found %s", i, expected, found);
}

gboolean
kiln_infer_throw_type(const KilnInfer *in, uint32_t i, const char *expected, GError **error)
{
    return throw_operand(in->node, i, KILN_ERROR_TYPE, expected, error);
}

gboolean
kiln_infer_throw_shape(const KilnNode *node, uint32_t i, GError **error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *expected = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    return throw_operand(node, i, KILN_ERROR_SHAPE, expected, error);
}

/* --- checks of operands --- */

static char *
set_to_string(KilnDTypeSet set)
{
    GString *text = g_string_new(NULL);
    for (int i = 0; i < KILN_N_DTYPES; i++) {
        if (set & 1u << i)
            g_string_append_printf(text, "%s%s", text->len ? ", " : "", kiln_dtype_name(i));
    }
    if (set & KILN_SET_QUANTIZED)
        g_string_append(text, " or a quantized type");
    return g_string_free(text, FALSE);
}

gboolean
kiln_infer_require(const KilnInfer *in, uint32_t i, KilnDTypeSet set, GError **error)
{
    const KilnType *type = kiln_infer_type(in, i);
    if (!type || set & 1u << type->dtype)
        return TRUE;
    if (set & KILN_SET_QUANTIZED && type->quant && kiln_dtype_is_integer(type->dtype))
        return TRUE;
    g_autofree char *expected = set_to_string(set);
    return kiln_infer_throw_type(in, i, expected, error);
}

gboolean
kiln_infer_require_like(const KilnInfer *in, uint32_t i, uint32_t like, GError **error)
{
    const KilnType *type = kiln_infer_type(in, i), *other = kiln_infer_type(in, like);
    if (!type || !other || type->dtype == other->dtype)
        return TRUE;
    g_autofree char *expected =
        g_strdup_printf("%s as in operand %u", kiln_dtype_name(other->dtype), like);
    return kiln_infer_throw_type(in, i, expected, error);
}

gboolean
kiln_infer_require_present(const KilnInfer *in, GError **error)
{
    for (uint32_t i = 0; i < in->node->n_operands; i++) {
        if (!kiln_infer_type(in, i))
            return kiln_infer_throw_type(in, i, "a value", error);
    }
    return TRUE;
}

gboolean
kiln_infer_require_alike(const KilnInfer *in, GError **error)
{
    const KilnType *first = kiln_infer_type(in, 0);
    for (uint32_t i = 1; i < in->node->n_operands; i++) {
        const KilnType *type = kiln_infer_type(in, i);
        if (type && first->quant && !type->quant)
            return kiln_infer_throw_type(in, i, "a quantized type as in operand 0", error);
        if (type && type->quant && !first->quant)
            return kiln_infer_throw_type(in, i, "a type that is not quantized, as in operand 0",
                                         error);
        if (!first->quant && !kiln_infer_require_like(in, i, 0, error))
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_infer_require_rank(const KilnInfer *in, uint32_t i, int min, int max, GError **error)
{
    const KilnType *type = kiln_infer_type(in, i);
    if (!type || type->rank < 0 || (type->rank >= min && type->rank <= max))
        return TRUE;
    if (min == max)
        return kiln_infer_throw_shape(in->node, i, error, "rank %d", min);
    if (max >= KILN_MAX_RANK)
        return kiln_infer_throw_shape(in->node, i, error, "rank %d or more", min);
    return kiln_infer_throw_shape(in->node, i, error, "a rank from %d to %d", min, max);
}

gboolean
kiln_infer_require_scalar(const KilnInfer *in, uint32_t i, GError **error)
{
    const KilnType *type = kiln_infer_type(in, i);
    if (!type || type->rank <= 0 || (type->rank == 1 && (type->dims[0] < 0 || type->dims[0] == 1)))
        return TRUE;
    return kiln_infer_throw_shape(in->node, i, error, "one element");
}

gboolean
kiln_infer_require_list(const KilnInfer *in, uint32_t i, KilnDTypeSet set, bool or_scalar,
                        GError **error)
{
    return kiln_infer_require(in, i, set, error) &&
           kiln_infer_require_rank(in, i, or_scalar ? 0 : 1, 1, error);
}

gboolean
kiln_infer_require_vector(const KilnInfer *in, uint32_t i, const KilnType *type, int dim,
                          GError **error)
{
    if (!kiln_infer_require_rank(in, i, 1, 1, error))
        return FALSE;
    return type->rank <= dim || kiln_infer_require_dim(in, i, 0, type->dims[dim], error);
}

gboolean
kiln_infer_require_dim(const KilnInfer *in, uint32_t i, int d, int64_t expected, GError **error)
{
    const KilnType *type = kiln_infer_type(in, i);
    if (!type || type->rank <= d || type->dims[d] < 0 || expected < 0 || type->dims[d] == expected)
        return TRUE;
    return kiln_infer_throw_shape(in->node, i, error, "dim %d to be %" G_GINT64_FORMAT, d,
                                  expected);
}

gboolean
kiln_infer_require_broadcast_to(const KilnInfer *in, uint32_t i, const KilnType *type,
                                GError **error)
{
    const KilnType *from = kiln_infer_type(in, i);
    if (!from || from->rank < 0 || type->rank < 0 || kiln_type_may_broadcast(from, type))
        return TRUE;
    g_autofree char *expected = kiln_type_to_string(type);
    return kiln_infer_throw_shape(in->node, i, error, "a shape that broadcasts to %s", expected);
}

int64_t
kiln_infer_list_length(const KilnInfer *in, uint32_t i)
{
    const KilnKnown *known = kiln_infer_known(in, i);
    const KilnType *type = kiln_infer_type(in, i);
    return known ? known->n : type ? kiln_type_elements(type) : -1;
}

/* --- attributes --- */

const void *
kiln_infer_attr(const KilnNode *node, const char *name, KilnAttrKind kind)
{
    const KilnOpInfo *op = kiln_op_info(node->op);
    const KilnAttrInfo *info = kiln_attr_find(op->attrs, op->n_attrs, name);
    return info && info->kind == kind ? (const char *)node->attrs + info->offset : NULL;
}

bool
kiln_infer_attr_bool(const KilnNode *node, const char *name, bool otherwise)
{
    const bool *field = kiln_infer_attr(node, name, KILN_ATTR_BOOL);
    return field ? *field : otherwise;
}

int64_t
kiln_infer_attr_int(const KilnNode *node, const char *name, int64_t otherwise)
{
    const int64_t *field = kiln_infer_attr(node, name, KILN_ATTR_INT);
    return field ? *field : otherwise;
}

KilnInts
kiln_infer_attr_ints(const KilnNode *node, const char *name)
{
    const KilnInts *field = kiln_infer_attr(node, name, KILN_ATTR_INTS);
    return field ? *field : (KilnInts){ .n = 0, .v = NULL };
}

gboolean
kiln_infer_one_of(const char *name, const char *value, const char *choices, GError **error)
{
    size_t length = value ? strlen(value) : 0;
    for (const char *at = choices; length && *at;) {
        size_t word = strcspn(at, " ");
        if (word == length && memcmp(at, value, length) == 0)
            return TRUE;
        at += word + (at[word] == ' ');
    }
    return kiln_throw(error, KILN_ERROR_TYPE, "%s: expected one of %s, found %s", name, choices,
                      value ? value : "none");
}

gboolean
kiln_infer_axis(int rank, int64_t axis, int *out, GError **error)
{
    *out = 0;
    if (axis < -rank || axis >= rank)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "axis: expected a number from %d to %d for rank %d, found "
                          "%" G_GINT64_FORMAT,
                          -rank, rank - 1, rank, axis);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return TRUE;
}

gboolean
kiln_infer_mark_axes(const int64_t *axes, int64_t n, int rank, bool marked[KILN_MAX_RANK],
                     GError **error)
{
    memset(marked, 0, sizeof(bool) * KILN_MAX_RANK);
    for (int64_t i = 0; i < n; i++) {
        int axis;
        if (!kiln_infer_axis(rank, axes[i], &axis, error))
            return FALSE;
        if (marked[axis])
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "axes: expected every axis once, found %d twice", axis);
        marked[axis] = true;
    }
    return TRUE;
}

/* --- results --- */

KilnType
kiln_infer_unknown(KilnDType dtype, int64_t rank)
{
    if (rank < 0 || rank > KILN_MAX_RANK)
        return kiln_type_unranked(dtype);
    KilnType type = { .dtype = dtype, .rank = (int)rank };
    for (int d = 0; d < type.rank; d++)
        type.dims[d] = KILN_DIM_UNKNOWN;
    return type;
}

gboolean
kiln_infer_check_rank(int64_t rank, GError **error)
{
    if (rank <= KILN_MAX_RANK)
        return TRUE;
    return kiln_throw(error, KILN_ERROR_SHAPE,
                      "expected a result of rank %d at most, found %" G_GINT64_FORMAT,
                      KILN_MAX_RANK, rank);
}

bool
kiln_dim_merge(KilnType *to, int d, const KilnType *from, int from_d)
{
    int64_t a = to->dims[d], b = from->dims[from_d];
    if (a >= 0)
        return b < 0 || a == b;
    if (b >= 0 || !to->open[d])
        kiln_dim_copy(to, d, from, from_d);
    return true;
}

gboolean
kiln_dim_set_wide(KilnType *to, int d, KilnWide value, GError **error)
{
    if (value < 0 || value > INT64_MAX)
        return kiln_throw(error, KILN_ERROR_SHAPE, "dim %d: expected a size from 0 to 2^63-1, %s",
                          d, value < 0 ? "found a negative one" : "found a bigger one");
    kiln_dim_set(to, d, (int64_t)value);
    return TRUE;
}

gboolean
kiln_dim_set_open(KilnType *to, int d, const KilnDim *dim, GError **error)
{
    int64_t lo, hi;
    kiln_dim_range(dim, &lo, &hi);
    if (hi < 0)
        return kiln_dim_set_wide(to, d, hi, error);
    kiln_type_set_dim(to, d, dim);
    return TRUE;
}

gboolean
kiln_dim_set_scaled(KilnType *to, int d, const KilnType *from, int from_d, int64_t times,
                    KilnWide more, GError **error)
{
    const KilnDim *open = from->open[from_d];
    if (from->dims[from_d] >= 0)
        return kiln_dim_set_wide(to, d, (KilnWide)from->dims[from_d] * times + more, error);
    if (!open || more < INT64_MIN || more > INT64_MAX) {
        kiln_dim_set(to, d, KILN_DIM_UNKNOWN);
        return TRUE;
    }
    KilnDimTable *table = kiln_dim_table_of(open);
    const KilnDim *scaled = kiln_dim_scale(table, open, times);
    return kiln_dim_set_open(
        to, d, kiln_dim_add(table, scaled, kiln_dim_number(table, (int64_t)more)), error);
}

gboolean
kiln_dim_product(KilnType *to, int d, const KilnType *from, int first, int n, GError **error)
{
    bool zero = false, big = false;
    int64_t product = 1;
    int n_open = 0;
    const KilnDim *open = NULL; /* the product of those without a number */
    for (int i = first; i < first + n; i++) {
        const KilnDim *factor = from->open[i];
        if (from->dims[i] < 0) {
            open = !n_open++        ? factor
                   : open && factor ? kiln_dim_mul(kiln_dim_table_of(factor), open, factor)
                                    : NULL;
            continue;
        }
        zero |= from->dims[i] == 0;
        big |= __builtin_mul_overflow(product, from->dims[i], &product);
    }
    if (zero) {
        kiln_dim_set(to, d, 0);
        return TRUE;
    }
    if (big && !n_open) /* else one of those may still be zero */
        return kiln_dim_set_wide(to, d, (KilnWide)INT64_MAX + 1, error);
    kiln_dim_set(to, d, n_open ? KILN_DIM_UNKNOWN : product);
    if (open && !big)
        kiln_type_set_dim(to, d, kiln_dim_scale(kiln_dim_table_of(open), open, product));
    return TRUE;
}

/* --- broadcasting --- */

/* Dim @d of @out with dim @e of @type: false where they do not broadcast. */
static bool
broadcast_dim(KilnType *out, int d, const KilnType *type, int e)
{
    int64_t a = out->dims[d], b = type->dims[e];
    if (b == 1)
        return true;
    if (a == 1) {
        kiln_dim_copy(out, d, type, e);
        return true;
    }
    if (a >= 0 && b >= 0)
        return a == b;
    if (a >= 0)
        return true; /* the other can only be 1 or the same */
    if (b >= 0) {
        kiln_dim_copy(out, d, type, e);
    } else {
        const KilnDim *left = out->open[d], *right = type->open[e];
        if (left != right)
            kiln_type_set_dim(
                out, d, left ? kiln_dim_broadcast(kiln_dim_table_of(left), left, right) : NULL);
    }
    return true;
}

gboolean
kiln_infer_broadcast_shapes(const KilnType *a, const KilnType *b, KilnType *out, GError **error)
{
    if (a->rank < 0 || b->rank < 0) {
        *out = kiln_type_unranked(out->dtype);
        return TRUE;
    }
    const KilnType *longer = a->rank >= b->rank ? a : b, *shorter = longer == a ? b : a;
    KilnType shape = kiln_infer_plain(longer);
    shape.dtype = out->dtype;
    int shift = longer->rank - shorter->rank;
    for (int d = 0; d < shorter->rank; d++) {
        if (!broadcast_dim(&shape, d + shift, shorter, d)) {
            g_autofree char *left = kiln_type_to_string(a), *right = kiln_type_to_string(b);
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "expected shapes that broadcast, found %s and %s", left, right);
        }
    }
    *out = shape;
    return TRUE;
}

/* True where @tag cuts dim @d into blocks. */
static bool
splits(const char *tag, int d)
{
    return strchr(tag, 'A' + d) != NULL;
}

/* An operand in the layout of the result meets it element by element: each dim is the result's, or
 * one element that is repeated, which cannot be cut into blocks. */
static bool
meets(const KilnType *type, const KilnType *out)
{
    if (type->rank < 0 || out->rank < 0)
        return true;
    for (int d = 0; d < type->rank && type->rank == out->rank; d++) {
        bool known = type->dims[d] >= 0 && out->dims[d] >= 0;
        bool repeats = type->dims[d] == 1 && !splits(out->layout, d);
        if (known && type->dims[d] != out->dims[d] && !repeats)
            return false;
    }
    return type->rank == out->rank;
}

/* The layout of an element-wise result is that of its operands in a layout: they have the same one,
 * and plain ones beside them are single elements. */
static gboolean
broadcast_layout(const KilnInfer *in, uint32_t first, KilnType *out, GError **error)
{
    for (uint32_t i = first; i < in->node->n_operands; i++) {
        const KilnType *type = kiln_infer_type(in, i);
        if (type && type->layout && !out->layout)
            out->layout = type->layout;
    }
    for (uint32_t i = first; out->layout && i < in->node->n_operands; i++) {
        const KilnType *type = kiln_infer_type(in, i);
        int64_t elements = type ? kiln_type_elements(type) : 1;
        if (!type || (!type->layout && (elements < 0 || elements == 1)))
            continue;
        if (g_strcmp0(type->layout, out->layout) != 0) {
            g_autofree char *expected = g_strdup_printf("layout %s", out->layout);
            return kiln_infer_throw_type(in, i, expected, error);
        }
        if (!meets(type, out))
            return kiln_infer_throw_shape(
                in->node, i, error,
                "a blocked operand that repeats no dim which is cut into blocks");
    }
    return TRUE;
}

gboolean
kiln_infer_broadcast_operands(const KilnInfer *in, uint32_t first, KilnType *out, GError **error)
{
    KilnType shape = kiln_type_scalar(out->dtype);
    for (uint32_t i = first; i < in->node->n_operands; i++) {
        const KilnType *type = kiln_infer_type(in, i);
        if (type && !kiln_infer_broadcast_shapes(&shape, type, &shape, error))
            return FALSE;
    }
    *out = shape;
    return broadcast_layout(in, first, out, error);
}

/* --- values of operands --- */

bool
kiln_infer_floats(const KilnValue *value, double *out, int64_t max, int64_t *n)
{
    const KilnConstant *constant = value ? kiln_value_constant(value) : NULL;
    if (!constant || !kiln_type_is_static(&constant->type) || constant->type.layout)
        return false;
    int64_t elements = kiln_type_elements(&constant->type);
    if (elements < 0 || elements > max)
        return false;
    g_autoptr(GBytes) bytes = kiln_tensor_view(constant->tensor, NULL);
    if (!bytes)
        return false;
    for (int64_t i = 0; i < elements; i++)
        out[i] = kiln_element_as_f64(constant->type.dtype, g_bytes_get_data(bytes, NULL), i);
    *n = elements;
    return true;
}
