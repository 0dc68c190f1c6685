/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/manager/ties.h"

#include "graph/base/number.h"
#include "graph/binding.h"
#include "graph/op/quantize.h"
#include "passes/manager/numerics.h"
#include "passes/query/quant_range.h"

#include <math.h>

enum {
    DEPTH = 5 /* nodes in a row that roundings are counted of */
};

const KilnValue *
kiln_real_quantized(const KilnValue *value)
{
    if (!value->def || value->def->op != KILN_OP_quantize_linear)
        return NULL;
    const KilnValue *real = value->def->operands[0].value;
    return real->def && kiln_dtype_is_float(real->type.dtype) ? real : NULL;
}

static double
terms_behind(const KilnValue *value, const KilnDimBinding *binding, int depth)
{
    const KilnNode *node = value ? value->def : NULL;
    if (!node || depth == 0 || node->op == KILN_OP_const || !kiln_dtype_is_float(value->type.dtype))
        return 0;
    double terms = kiln_node_terms(node, binding);
    for (uint32_t i = 0; i < node->n_operands && node->op != KILN_OP_dequantize_linear; i++)
        terms += terms_behind(node->operands[i].value, binding, depth - 1);
    return terms;
}

static double
largest(const KilnTensor *tensor)
{
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, NULL);
    double most = 0;
    for (int64_t i = 0; bytes && i < kiln_type_elements(&tensor->type); i++) {
        double x = fabs(kiln_element_as_f64(tensor->type.dtype, g_bytes_get_data(bytes, NULL), i));
        most = isfinite(x) ? MAX(most, x) : most;
    }
    return most;
}

KilnReal
kiln_real_make(const KilnValue *value, const KilnDimBinding *binding, KilnTensor *tensor)
{
    return (KilnReal){ tensor, terms_behind(value, binding, DEPTH) + 2, largest(tensor) };
}

double
kiln_real_slack(const KilnReal *real, double scale)
{
    const double epsilon = kiln_float_format(real->tensor->type.dtype)->epsilon;
    return real->terms * epsilon * MAX(real->most / scale, 0x1p7);
}

bool
kiln_is_tie(double steps, double slack)
{
    return fabs(steps - floor(steps) - 0.5) <= slack;
}

/* The index along its axis of element @i of a tensor of @type; 0 where one scale is for all. */
static uint32_t
grid_of(const KilnType *type, int64_t i)
{
    const int axis = type->quant->axis;
    for (int d = type->rank - 1; axis >= 0 && d > axis; d--)
        i /= type->dims[d];
    return axis < 0 ? 0 : (uint32_t)(i % type->dims[axis]);
}

static bool
may_tell(const KilnType *type, const KilnTensor *was, const KilnReal *real)
{
    return real->tensor && type->quant && kiln_quant_is_regular(type) &&
           was->type.dtype == type->dtype && kiln_type_same_shape(type, &was->type) &&
           kiln_type_same_shape(type, &real->tensor->type);
}

KilnTensor *
kiln_without_ties(const KilnTensor *was, const KilnTensor *is, const KilnQuant *quant,
                  const KilnReal *real)
{
    KilnType type = is->type;
    type.quant = quant;
    if (!may_tell(&type, was, real))
        return NULL;
    g_autoptr(GBytes) before = kiln_tensor_view(was, NULL), after = kiln_tensor_view(is, NULL);
    g_autoptr(GBytes) reals = kiln_tensor_view(real->tensor, NULL);
    if (!before || !after || !reals)
        return NULL;
    g_autofree double *slack = g_new(double, quant->n);
    for (uint32_t k = 0; k < quant->n; k++)
        slack[k] = kiln_real_slack(real, (double)quant->scales[k]);
    gsize size;
    const void *found = g_bytes_get_data(after, &size);
    g_autofree char *bytes = g_memdup2(found, size);
    for (int64_t i = 0; i < kiln_type_elements(&type); i++) {
        const int64_t a = kiln_element_as_i64(type.dtype, g_bytes_get_data(before, NULL), i);
        const int64_t b = kiln_element_as_i64(type.dtype, found, i);
        const uint32_t k = grid_of(&type, i);
        const double steps =
            kiln_element_as_f64(real->tensor->type.dtype, g_bytes_get_data(reals, NULL), i) /
            (double)quant->scales[k];
        if (ABS(a - b) == 1 && kiln_is_tie(steps, slack[k]))
            kiln_element_store_f64(type.dtype, bytes, i, (double)a);
    }
    return kiln_tensor_new_copy(&is->type, bytes, NULL);
}
