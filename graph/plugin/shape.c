/* SPDX-License-Identifier: Apache-2.0 */
/* What the shape function of a plug-in may ask and state: kiln-op.h over KilnInfer. */
#include "graph/plugin/shape.h"

#include "graph/dim.h"
#include "graph/error.h"
#include "graph/type.h"

const void *
kiln_op_shape_data(const KilnOpShape *shape)
{
    return shape->attributes.op->data;
}

const KilnOpAttributes *
kiln_op_shape_attributes(const KilnOpShape *shape)
{
    return &shape->attributes;
}

/* --- inputs --- */

unsigned
kiln_op_shape_n_inputs(const KilnOpShape *shape)
{
    return shape->in->node->n_operands;
}

unsigned
kiln_op_shape_n_outputs(const KilnOpShape *shape)
{
    return shape->in->node->n_results;
}

gboolean
kiln_op_shape_has_input(const KilnOpShape *shape, unsigned i)
{
    return kiln_infer_type(shape->in, i) != NULL;
}

KilnDType
kiln_op_shape_input_dtype(const KilnOpShape *shape, unsigned i)
{
    const KilnType *type = kiln_infer_type(shape->in, i);
    return type ? type->dtype : KILN_N_DTYPES;
}

int
kiln_op_shape_input_rank(const KilnOpShape *shape, unsigned i)
{
    const KilnType *type = kiln_infer_type(shape->in, i);
    return type && type->rank >= 0 ? type->rank : -1;
}

/* The IR has a number beside each expression, and is asked for numbers. */
const KilnDim *
kiln_op_shape_input_dim(const KilnOpShape *shape, unsigned i, int d)
{
    const KilnType *type = kiln_infer_type(shape->in, i);
    if (!type || d < 0 || d >= type->rank)
        return NULL;
    return type->dims[d] >= 0 ? kiln_dim_number(shape->in->dims, type->dims[d]) : type->open[d];
}

const KilnDim *
kiln_op_shape_input_element(const KilnOpShape *shape, unsigned i, int64_t k)
{
    const KilnType *type = kiln_infer_type(shape->in, i);
    if (!type || k < 0 || k >= kiln_type_elements(type))
        return NULL;
    return kiln_infer_element(shape->in, i, k);
}

/* --- dims --- */

const KilnDim *
kiln_op_shape_number(KilnOpShape *shape, int64_t number)
{
    return kiln_dim_number(shape->in->dims, number);
}

const KilnDim *
kiln_op_shape_add(KilnOpShape *shape, const KilnDim *a, const KilnDim *b)
{
    return kiln_dim_add(shape->in->dims, a, b);
}

const KilnDim *
kiln_op_shape_subtract(KilnOpShape *shape, const KilnDim *a, const KilnDim *b)
{
    return kiln_dim_sub(shape->in->dims, a, b);
}

const KilnDim *
kiln_op_shape_multiply(KilnOpShape *shape, const KilnDim *a, const KilnDim *b)
{
    return kiln_dim_mul(shape->in->dims, a, b);
}

const KilnDim *
kiln_op_shape_divide_down(KilnOpShape *shape, const KilnDim *a, const KilnDim *b)
{
    return kiln_dim_floor(shape->in->dims, a, b);
}

const KilnDim *
kiln_op_shape_divide_up(KilnOpShape *shape, const KilnDim *a, const KilnDim *b)
{
    return kiln_dim_ceil(shape->in->dims, a, b);
}

const KilnDim *
kiln_op_shape_min(KilnOpShape *shape, const KilnDim *a, const KilnDim *b)
{
    return kiln_dim_min(shape->in->dims, a, b);
}

const KilnDim *
kiln_op_shape_max(KilnOpShape *shape, const KilnDim *a, const KilnDim *b)
{
    return kiln_dim_max(shape->in->dims, a, b);
}

const KilnDim *
kiln_op_shape_broadcast(KilnOpShape *shape, const KilnDim *a, const KilnDim *b)
{
    return kiln_dim_broadcast(shape->in->dims, a, b);
}

gboolean
kiln_op_shape_is_number(const KilnDim *dim, int64_t *out)
{
    return dim && kiln_dim_is_number(dim, out);
}

gboolean
kiln_op_shape_differ(KilnOpShape *shape, const KilnDim *a, const KilnDim *b)
{
    return a && b && kiln_dim_equal(shape->in->dims, a, b) == KILN_ANSWER_NO;
}

/* --- outputs --- */

void
kiln_op_shape_set_output(KilnOpShape *shape, unsigned i, KilnDType dtype, int rank,
                         const KilnDim *const *dims)
{
    if (i >= shape->in->node->n_results)
        return; /* left out */
    if (dtype < 0 || dtype >= KILN_N_DTYPES || rank < -1 || rank > KILN_MAX_RANK) {
        kiln_op_shape_fail(shape, "output %u: its shape function states no type that there is", i);
        return;
    }
    KilnType type = kiln_type_unranked(dtype);
    if (rank >= 0)
        type.rank = rank;
    for (int d = 0; d < rank; d++)
        kiln_type_set_dim(&type, d, dims ? dims[d] : NULL);
    shape->in->out[i] = type;
    shape->stated[i] = true;
}

void
kiln_op_shape_set_output_like(KilnOpShape *shape, unsigned i, KilnDType dtype, unsigned input)
{
    const KilnDim *dims[KILN_MAX_RANK];
    int rank = kiln_op_shape_input_rank(shape, input);
    for (int d = 0; d < rank; d++)
        dims[d] = kiln_op_shape_input_dim(shape, input, d);
    kiln_op_shape_set_output(shape, i, dtype, rank, dims);
}

gboolean
kiln_op_shape_fail(KilnOpShape *shape, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!shape->why) /* the first reason counts */
        shape->why = g_strdup_vprintf(format, args);
    va_end(args);
    return FALSE;
}

gboolean
kiln_op_shape_ask(KilnOpShape *shape, GError **error)
{
    gboolean good = shape->attributes.op->infer(shape);
    if (!good || shape->why)
        return kiln_throw(error, KILN_ERROR_SHAPE, "%s",
                          shape->why ? shape->why : "its shape function fails without a reason");
    for (uint32_t r = 0; r < shape->in->node->n_results; r++) {
        if (!shape->stated[r])
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "output %u: its shape function states no type", r);
        if (kiln_dtype_is_item(shape->in->out[r].dtype))
            return kiln_throw(error, KILN_ERROR_TYPE, "output %u: expected a tensor, found %s", r,
                              kiln_dtype_name(shape->in->out[r].dtype));
    }
    return TRUE;
}
