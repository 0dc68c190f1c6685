/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of what makes elements from shapes, counts or seeds. */
#include "graph/infer/common.h"

#include "graph/base/number.h"
#include "graph/dim/dim_defined.h"
#include "graph/graph.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"

#include <float.h>
#include <math.h>

/* --- shape and size --- */

KILN_INFER(shape)
{
    (void)error;
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnAttrs_shape *attrs = kiln_attrs(in->node, shape);
    in->out[0] = kiln_infer_unknown(KILN_DTYPE_i64, 1);
    if (x->rank < 0)
        return TRUE;
    int start = kiln_infer_shape_bound(attrs->start, x->rank);
    int end = MAX(kiln_infer_shape_bound(attrs->end, x->rank), start);
    kiln_dim_set(&in->out[0], 0, end - start);
    for (int d = start; d < end; d++) {
        if (x->dims[d] < 0)
            return TRUE;
    }
    int64_t *to = kiln_known_result(in, 0);
    for (int d = start; d < end; d++)
        to[d - start] = x->dims[d];
    return TRUE;
}

KILN_INFER(size)
{
    (void)error;
    int64_t elements = kiln_type_elements(kiln_infer_type(in, 0)); /* extents.c has open ones */
    in->out[0] = kiln_type_scalar(KILN_DTYPE_i64);
    if (elements >= 0)
        kiln_known_result(in, 0)[0] = elements;
    return TRUE;
}

/* --- constant_of_shape --- */

static gboolean
fill_value(const KilnInfer *in, KilnDType *dtype, int64_t *integer, bool *readable, GError **error)
{
    const KilnConstant *value = kiln_attrs(in->node, constant_of_shape)->value;
    *dtype = value ? value->type.dtype : KILN_DTYPE_f32;
    *integer = 0;
    *readable = true;
    if (!value)
        return TRUE;
    if (kiln_type_elements(&value->type) != 1) {
        g_autofree char *found = kiln_type_to_string(&value->type);
        return kiln_throw(error, KILN_ERROR_SHAPE, "value: expected one element, found %s", found);
    }
    g_autoptr(GBytes) bytes = kiln_tensor_view(value->tensor, NULL);
    *readable = bytes;
    if (bytes)
        *integer = kiln_element_as_i64(*dtype, g_bytes_get_data(bytes, NULL), 0);
    return TRUE;
}

KILN_INFER(constant_of_shape)
{
    int64_t rank = kiln_infer_list_length(in, 0), value;
    KilnDType dtype;
    bool readable;
    if (!kiln_infer_require_list(in, 0, KILN_SET(i64), false, error) ||
        !kiln_infer_check_rank(rank, error) || !fill_value(in, &dtype, &value, &readable, error))
        return FALSE;
    KilnType out = kiln_infer_unknown(dtype, rank);
    for (int d = 0; d < out.rank; d++) {
        if (!kiln_dim_set_open(&out, d, kiln_infer_element(in, 0, d), error))
            return FALSE;
    }
    in->out[0] = out;
    int64_t *to = readable ? kiln_known_result(in, 0) : NULL;
    for (int64_t k = 0; to && k < in->known[0]->n; k++)
        to[k] = value;
    return TRUE;
}

/* --- range --- */

/* Distances that doubles count with exactly, as float_range() does. */
static const int64_t EXACT = INT64_C(1) << (DBL_MANT_DIG - 1);

static gboolean
throw_delta(GError **error)
{
    return kiln_throw(error, KILN_ERROR_SHAPE, "delta: expected a number other than 0, found 0");
}

static gboolean
integer_range(KilnInfer *in, GError **error)
{
    int64_t start = kiln_infer_known(in, 0)->v[0], limit = kiln_infer_known(in, 1)->v[0];
    int64_t delta = kiln_infer_known(in, 2)->v[0];
    if (delta == 0)
        return throw_delta(error);
    KilnWide distance = delta > 0 ? (KilnWide)limit - start : (KilnWide)start - limit;
    KilnWide by = delta > 0 ? (KilnWide)delta : -(KilnWide)delta;
    if (!kiln_dim_set_wide(&in->out[0], 0, distance > 0 ? (distance + by - 1) / by : 0, error))
        return FALSE;
    int64_t *to = kiln_known_result(in, 0);
    for (int64_t k = 0; to && k < in->known[0]->n; k++)
        to[k] = (int64_t)(start + (KilnWide)k * delta);
    return TRUE;
}

static gboolean
float_range(KilnInfer *in, const double v[3], GError **error)
{
    if (v[2] == 0)
        return throw_delta(error);
    double n = ceil((v[1] - v[0]) / v[2]);
    if (isnan(n) || n >= 0x1p63)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "expected a range of less than 2^63 elements, found %g to %g by %g", v[0],
                          v[1], v[2]);
    kiln_dim_set(&in->out[0], 0, n > 0 ? (int64_t)n : 0);
    return TRUE;
}

/* How many numbers of a range lie between expressions; its step is a number. */
static gboolean
open_range(KilnInfer *in, GError **error)
{
    KilnDType dtype = kiln_infer_type(in, 0)->dtype;
    KilnDimTable *dims = in->dims;
    KilnRatio v[3];
    int64_t delta, lo, hi;
    for (uint32_t i = 0; i < 3; i++) {
        v[i] = kiln_infer_ratio(in, i, 0);
        if (!v[i].over || (kiln_dtype_is_float(dtype) && !kiln_ratio_is_exact(v[i], dtype)))
            return TRUE;
    }
    if (!kiln_dim_is_number(v[2].over, &delta) || delta == INT64_MIN)
        return TRUE;
    if (delta == 0)
        return throw_delta(error);
    int64_t under = MAX(v[0].under, v[1].under), divisor; /* powers of two */
    const KilnDim *distance =
        kiln_dim_sub(dims, kiln_dim_scale(dims, v[1].over, under / v[1].under),
                     kiln_dim_scale(dims, v[0].over, under / v[0].under));
    distance = kiln_dim_scale(dims, distance, delta < 0 ? -v[2].under : v[2].under);
    kiln_dim_range(distance, &lo, &hi);
    if (__builtin_mul_overflow(under, ABS(delta), &divisor) ||
        (kiln_dtype_is_float(dtype) && (lo < -EXACT || hi > EXACT)))
        return TRUE;
    const KilnDim *count = kiln_dim_ceil(dims, distance, kiln_dim_number(dims, divisor));
    return kiln_dim_set_open(&in->out[0], 0, kiln_dim_max(dims, count, kiln_dim_number(dims, 0)),
                             error);
}

KILN_INFER(range)
{
    KilnDTypeSet types = KILN_SET_FLOATS | KILN_SET(i16) | KILN_SET_INDICES;
    double values[3];
    bool integers = true, floats = true;
    if (!kiln_infer_require(in, 0, types, error) || !kiln_infer_require_alike(in, error))
        return FALSE;
    for (uint32_t i = 0; i < 3; i++) {
        const KilnKnown *known = kiln_infer_known(in, i);
        int64_t n = 0;
        if (!kiln_infer_require_scalar(in, i, error))
            return FALSE;
        integers &= known && known->n == 1;
        floats &= kiln_infer_floats(kiln_node_operand(in->node, i), &values[i], 1, &n) && n == 1;
    }
    in->out[0] = kiln_infer_unknown(kiln_infer_type(in, 0)->dtype, 1);
    if (integers)
        return integer_range(in, error);
    return floats ? float_range(in, values, error) : open_range(in, error);
}

/* --- one_hot, eye_like, random --- */

KILN_INFER(one_hot)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnKnown *known = kiln_infer_known(in, 1);
    double real = -1;
    int64_t depth = -1, n;
    int axis;
    if (!kiln_infer_require(in, 0, KILN_SET_NUMBERS, error) ||
        !kiln_infer_require(in, 1, KILN_SET_NUMBERS, error) ||
        !kiln_infer_require_scalar(in, 1, error) || !kiln_infer_require_rank(in, 2, 1, 1, error) ||
        !kiln_infer_require_dim(in, 2, 0, 2, error))
        return FALSE;
    if (known && known->n == 1)
        depth = known->v[0];
    else if (kiln_infer_floats(kiln_node_operand(in->node, 1), &real, 1, &n) && n == 1)
        depth = real >= 0 && real < 0x1p62 ? (int64_t)real : -2;
    if (depth < -1 || (known && depth < 0))
        return kiln_throw(error, KILN_ERROR_SHAPE, "depth: expected 0 or more, found less");
    KilnType out =
        kiln_infer_unknown(kiln_infer_type(in, 2)->dtype, x->rank < 0 ? -1 : x->rank + 1);
    if (x->rank >= 0) {
        if (!kiln_infer_check_rank(x->rank + 1, error) ||
            !kiln_infer_axis(x->rank + 1, kiln_attrs(in->node, one_hot)->axis, &axis, error))
            return FALSE;
        for (int d = 0, from = 0; d < out.rank; d++) {
            if (d != axis)
                kiln_dim_copy(&out, d, x, from++);
            else if (depth >= 0)
                kiln_dim_set(&out, d, depth);
            else if (!kiln_dim_set_open(&out, d, kiln_infer_element(in, 1, 0), error))
                return FALSE;
        }
    }
    in->out[0] = out;
    return TRUE;
}

KILN_INFER(eye_like)
{
    const KilnType *x = kiln_infer_type(in, 0);
    KilnDType dtype = kiln_attrs(in->node, eye_like)->dtype;
    if (!kiln_infer_require(in, 0, KILN_SET_ANY & ~KILN_SET(string), error) ||
        !kiln_infer_require_rank(in, 0, 2, 2, error))
        return FALSE;
    in->out[0] = x->rank < 0 ? kiln_infer_unknown(x->dtype, 2) : kiln_infer_plain(x);
    if (dtype != KILN_DTYPE_string) /* which stands for: as the operand */
        in->out[0].dtype = dtype;
    return TRUE;
}

KILN_INFER(random)
{
    const KilnDType *dtype = kiln_infer_attr(in->node, "dtype", KILN_ATTR_DTYPE);
    KilnInts shape = kiln_infer_attr_ints(in->node, "shape");
    if (!kiln_dtype_is_float(*dtype))
        return kiln_throw(error, KILN_ERROR_TYPE, "dtype: expected a float type, found %s",
                          kiln_dtype_name(*dtype));
    if (!kiln_infer_check_rank(shape.n, error))
        return FALSE;
    KilnType out = kiln_infer_unknown(*dtype, shape.n);
    for (int d = 0; d < out.rank; d++) {
        if (!kiln_dim_set_wide(&out, d, shape.v[d], error))
            return FALSE;
    }
    in->out[0] = out;
    return TRUE;
}

/* --- define --- */

KILN_INFER(define)
{
    const KilnStrings *names = &kiln_attrs(in->node, define)->names;
    int64_t n = kiln_infer_list_length(in, 0);
    if (!kiln_infer_require_list(in, 0, KILN_SET(i64) | KILN_SET(i32), true, error))
        return FALSE;
    if (!kiln_infer_require_list(in, 1, KILN_SET(i64), true, error))
        return FALSE;
    if (names->n > KILN_MAX_RANK)
        return kiln_throw(error, KILN_ERROR_SHAPE, "names: expected at most %d, found %u",
                          KILN_MAX_RANK, names->n);
    if (n >= 0 && n != names->n)
        return kiln_infer_throw_shape(in->node, 0, error, "%u elements, as there are names",
                                      names->n);
    for (uint32_t i = 0; i < names->n; i++)
        kiln_dim_defined(in->dims, names->v[i]);
    in->out[0] = *kiln_infer_type(in, 0);
    return TRUE;
}

/* --- encoded pictures: the size of one is a value, its height and its width --- */

KILN_INFER(image_size)
{
    in->out[0] = kiln_infer_unknown(KILN_DTYPE_i64, 1);
    kiln_dim_set(&in->out[0], 0, 2);
    return kiln_infer_require_list(in, 0, KILN_SET(u8), false, error);
}

KILN_INFER(image_decoder)
{
    const char *format = kiln_attrs(in->node, image_decoder)->pixel_format;
    const int64_t n = kiln_infer_list_length(in, 1);
    if (!kiln_infer_one_of("pixel_format", format, "RGB BGR Grayscale", error) ||
        !kiln_infer_require_list(in, 0, KILN_SET(u8), false, error) ||
        !kiln_infer_require_list(in, 1, KILN_SET(i64), false, error))
        return FALSE;
    if (n >= 0 && n != 2)
        return kiln_infer_throw_shape(in->node, 1, error, "2 extents");
    in->out[0] = kiln_infer_unknown(KILN_DTYPE_u8, 3);
    kiln_dim_set(&in->out[0], 2, format[0] == 'G' ? 1 : 3);
    for (int d = 0; d < 2 && n == 2; d++) {
        if (!kiln_dim_set_open(&in->out[0], d, kiln_infer_element(in, 1, d), error))
            return FALSE;
    }
    return TRUE;
}
