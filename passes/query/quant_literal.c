/* SPDX-License-Identifier: Apache-2.0 */
/* Converts literals between quantized and plain types, element by element. */
#include "graph/base/alloc.h"
#include "graph/base/number.h"
#include "graph/node.h"
#include "passes/query/quant_range.h"

/* Which grid an element belongs to: @inner elements share one, and @n of them follow each other. */
typedef struct {
    int64_t inner, n;
} Stride;

static Stride
stride_of(const KilnType *type)
{
    Stride stride = { 1, 1 };
    if (!type->quant || type->quant->axis < 0)
        return stride;
    for (int d = type->quant->axis + 1; d < type->rank; d++)
        stride.inner *= type->dims[d];
    stride.n = type->quant->n;
    return stride;
}

typedef struct {
    const KilnType *from, *to;
    Stride in, out;
} Conversion;

static Conversion
conversion_of(const KilnType *from, const KilnType *to)
{
    return (Conversion){ from, to, stride_of(from), stride_of(to) };
}

static KilnGrid
grid_at(const KilnType *type, Stride stride, int64_t i)
{
    return kiln_quant_grid(type, (uint32_t)(i / stride.inner % stride.n));
}

/* Element @i of @bytes into element @i of @made. */
static void
convert(const Conversion *conversion, const void *bytes, void *made, int64_t i)
{
    const KilnType *from = conversion->from, *to = conversion->to;
    double result;
    if (!from->quant) {
        KilnGrid grid = grid_at(to, conversion->out, i);
        float x = (float)kiln_element_as_f64(from->dtype, bytes, i);
        result = (double)kiln_grid_quantize(&grid, x);
    } else {
        KilnGrid grid = grid_at(from, conversion->in, i);
        KilnGrid other = to->quant ? grid_at(to, conversion->out, i) : grid;
        int64_t stored = kiln_element_as_i64(from->dtype, bytes, i);
        result = to->quant ? (double)kiln_grid_rescale(&grid, &other, stored)
                           : (double)kiln_grid_dequantize(&grid, stored);
    }
    kiln_element_store_f64(to->dtype, made, i, result);
}

static bool
is_f32_or_less(KilnDType dtype)
{
    return dtype == KILN_DTYPE_f32 || dtype == KILN_DTYPE_f16 || dtype == KILN_DTYPE_bf16;
}

/* The tensor of a literal that can be converted. */
static const KilnTensor *
tensor_for(const KilnValue *literal, const KilnType *to)
{
    const KilnConstant *constant = kiln_value_constant(literal);
    const KilnType *from = &literal->type;
    if (!constant || from->layout || to->layout || (!from->quant && !to->quant))
        return NULL;
    if (from->quant ? !kiln_quant_is_regular(from) : !is_f32_or_less(from->dtype))
        return NULL;
    if (to->quant ? !kiln_quant_is_regular(to) : !is_f32_or_less(to->dtype))
        return NULL;
    return kiln_tensor_is_readable(constant->tensor) ? constant->tensor : NULL;
}

bool
kiln_quant_converts_splat(const KilnValue *literal, const KilnType *to)
{
    const KilnTensor *tensor = tensor_for(literal, to);
    return tensor && tensor->kind == KILN_TENSOR_SPLAT && !kiln_quant_is_per_axis(&literal->type) &&
           !kiln_quant_is_per_axis(to);
}

KilnTensor *
kiln_quant_convert(const KilnValue *literal, const KilnType *to, GError **error)
{
    const KilnTensor *tensor = tensor_for(literal, to);
    if (!tensor)
        return NULL;
    Conversion conversion = conversion_of(&literal->type, to);
    KilnType stored = *to;
    stored.quant = NULL;
    if (kiln_quant_converts_splat(literal, to)) {
        uint64_t element = 0; /* room for any */
        convert(&conversion, tensor->splat, &element, 0);
        return kiln_tensor_new_splat_bits(&stored, &element);
    }
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, error);
    size_t size = (size_t)kiln_type_bytes(&stored);
    void *out;
    g_autoptr(GBytes) made = bytes ? kiln_bytes_new(1, size, &out, error) : NULL;
    if (!made)
        return NULL;
    for (int64_t i = 0, n = kiln_type_elements(to); i < n; i++)
        convert(&conversion, g_bytes_get_data(bytes, NULL), out, i);
    kiln_tensor_drop_pages(tensor);
    return kiln_tensor_compact(kiln_tensor_new_data(&stored, made, error));
}
