/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs as quantizers of ONNX models write them: float operators, each between
 * dequantize_linear and quantize_linear with scales and zero points as operands. Neighbours have
 * scales of their own, bytes have either sign, weights and some values have a scale per channel.
 * Ranges are measured while a graph grows, so that stored numbers fill their types. */
#include "exec/eval.h"
#include "graph/function.h"
#include "graph/node.h"
#include "tests/random/random_graph.h"
#include "tests/random/random_graph_priv.h"

#include "backends/ref/ref.h"
#include "graph/base/number.h"
#include "graph/op/activation.h"
#include "graph/op/additive.h"
#include "graph/op/bounds.h"
#include "graph/op/concat.h"
#include "graph/op/conv.h"
#include "graph/op/expand.h"
#include "graph/op/math.h"
#include "graph/op/matmul.h"
#include "graph/op/multiplicative.h"
#include "graph/op/pool.h"
#include "graph/op/quantize.h"
#include "graph/op/reshape.h"
#include "graph/op/slice.h"
#include "graph/op/softmax.h"
#include "graph/op/transpose.h"
#include "passes/manager/results.h"

#include <math.h>

enum {
    STEPS = 12,
    MOST = 1024, /* elements of a value */
};

/* How a value was stored. */
typedef struct {
    KilnDType dtype;
    float scale;
    int zero_point;
} Grid;

typedef struct {
    KilnValue *real, *stored; /* stored: NULL where the real was not quantized */
    Grid grid;                /* one scale, or that of the first channel */
    bool whole;               /* one scale */
} Entry;

typedef struct {
    RandomGraph g;
    GHashTable *tensors; /* KilnValue* → KilnTensor* */
    GArray *entries;     /* Entry */
} Generator;

/* --- nodes --- */

static const KilnTensor *
tensor_of(const Generator *q, const KilnValue *value)
{
    const KilnConstant *constant = kiln_value_constant(value);
    return constant ? constant->tensor : g_hash_table_lookup(q->tensors, value);
}

/* A node, and what it computes; NULL where inference refuses it. */
static KilnValue *
add(Generator *q, KilnOp op, const void *attrs, KilnValue *const *operands, uint32_t n)
{
    KilnValue *value = rg_add(&q->g, op, attrs, 1, n, operands);
    g_autofree const KilnTensor **tensors = g_new0(const KilnTensor *, n);
    KilnTensor *result = NULL;
    g_autoptr(GError) error = NULL;
    for (uint32_t i = 0; i < n; i++)
        tensors[i] = operands[i] ? tensor_of(q, operands[i]) : NULL;
    if (!value)
        return NULL;
    if (!kiln_target_evaluate(kiln_ref_target(), value->def, tensors, &result, &error))
        g_error("%s", error->message); /* the reference has every operator */
    g_hash_table_insert(q->tensors, value, result);
    return kiln_type_elements(&value->type) <= MOST ? value : NULL;
}

static KilnValue *
unary(Generator *q, KilnOp op, const void *attrs, KilnValue *x)
{
    return add(q, op, attrs, &x, 1);
}

static KilnValue *
binary(Generator *q, KilnOp op, const void *attrs, KilnValue *x, KilnValue *y)
{
    return add(q, op, attrs, (KilnValue *[]){ x, y }, 2);
}

static KilnValue *
constant(Generator *q, const KilnType *type, const void *data)
{
    return kiln_build_constant(q->g.function, NULL, "k", kiln_tensor_new_copy(type, data, NULL));
}

/* In [0, 1). */
static double
unit(Generator *q)
{
    return (double)(rg_next(&q->g) >> 11) * 0x1p-53;
}

static int
below(Generator *q, int n)
{
    return rg_below(&q->g, n);
}

/* --- quantization --- */

static void
range_of(const Generator *q, const KilnValue *value, double *low, double *high)
{
    const KilnTensor *tensor = tensor_of(q, value);
    g_autoptr(GBytes) bytes = kiln_tensor_view(tensor, NULL);
    *low = *high = 0;
    for (int64_t i = 0; i < kiln_type_elements(&tensor->type); i++) {
        double x = kiln_element_as_f64(tensor->type.dtype, g_bytes_get_data(bytes, NULL), i);
        *low = isfinite(x) ? MIN(*low, x) : *low;
        *high = isfinite(x) ? MAX(*high, x) : *high;
    }
}

/* What a calibration makes of the range, more or less: some values saturate. */
static Grid
calibrate(Generator *q, const KilnValue *value)
{
    double low, high, about = below(q, 3) ? 0.9 + 0.4 * unit(q) : 0.5 + 2 * unit(q);
    range_of(q, value, &low, &high);
    if (high - low < 1e-6)
        high = low + 1;
    Grid grid = { .dtype = below(q, 2) ? KILN_DTYPE_i8 : KILN_DTYPE_u8 };
    const double lowest = grid.dtype == KILN_DTYPE_i8 ? -128 : 0;
    if (below(q, 3)) {
        grid.scale = (float)((high - low) * about / 255);
        grid.zero_point = (int)CLAMP(rint(lowest - low / (double)grid.scale), lowest, lowest + 255);
    } else {
        grid.scale = (float)(MAX(-low, high) * about / 127);
        grid.zero_point = grid.dtype == KILN_DTYPE_i8 ? 0 : 128;
    }
    return grid;
}

/* One, or one per channel; these may differ. */
static KilnValue *
zero_points(Generator *q, KilnDType dtype, const int64_t *dims, int rank, int zero_point)
{
    const KilnType type = kiln_type_make(dtype, rank, dims);
    const int vary = below(q, 3) ? 0 : 9;
    uint8_t bytes[64] = { (uint8_t)zero_point };
    for (int64_t i = 1; rank && i < dims[0]; i++)
        bytes[i] = (uint8_t)(zero_point + (vary ? below(q, vary) * (zero_point < 50 ? 1 : -1) : 0));
    return constant(q, &type, bytes);
}

/* Scales of up to 64 channels around one, or one. */
static KilnValue *
scales(Generator *q, float scale, const int64_t *dims, int rank)
{
    const KilnType type = kiln_type_make(KILN_DTYPE_f32, rank, dims);
    float numbers[64] = { scale };
    for (int64_t i = 1; rank && i < dims[0]; i++)
        numbers[i] = scale * (float)(0.4 + 1.2 * unit(q));
    return constant(q, &type, numbers);
}

/* @value stored and read again; offered as an operand. */
static KilnValue *
requantize(Generator *q, KilnValue *value)
{
    const int near = (int)q->entries->len;
    Entry entry = { .grid = calibrate(q, value), .whole = true };
    const Entry *other = near ? &g_array_index(q->entries, Entry, below(q, near)) : NULL;
    if (other && other->stored && below(q, 6) == 0)
        entry.grid = other->grid; /* now and then types are equal */
    else if (other && other->stored && below(q, 12) == 0)
        entry.grid.scale = other->grid.scale * (below(q, 2) ? 2 : 0.5f);
    const bool per_axis = value->type.rank > 1 && value->type.dims[1] <= 64 && below(q, 16) == 0;
    const int64_t *dims = per_axis ? &value->type.dims[1] : NULL;
    const KilnAttrs_quantize_linear to = { .axis = 1, .saturate = true };
    const KilnAttrs_dequantize_linear from = { .axis = 1 };
    KilnValue *scale = scales(q, entry.grid.scale, dims, per_axis);
    KilnValue *zero = zero_points(q, entry.grid.dtype, dims, per_axis, entry.grid.zero_point);
    entry.whole = !per_axis;
    entry.stored = add(q, KILN_OP_quantize_linear, &to, (KilnValue *[]){ value, scale, zero }, 3);
    entry.real = entry.stored ? add(q, KILN_OP_dequantize_linear, &from,
                                    (KilnValue *[]){ entry.stored, scale, zero }, 3)
                              : NULL;
    if (entry.real)
        g_array_append_val(q->entries, entry);
    return entry.real;
}

/* --- operands --- */

static Entry
any(Generator *q)
{
    int n = (int)q->entries->len, i = MAX(below(q, n), below(q, n));
    return g_array_index(q->entries, Entry, i);
}

/* Weights of @rank dims in bytes, dequantized; with a scale per index of @axis, or one. Sums of
 * @terms products have the size of what they multiply. */
static KilnValue *
weights(Generator *q, int rank, const int64_t *dims, int64_t terms, int axis, float *scale)
{
    const bool per_axis = axis >= 0 && dims[axis] <= 64 && below(q, 2);
    const KilnDType dtype = below(q, 3) ? KILN_DTYPE_i8 : KILN_DTYPE_u8;
    const KilnType type = kiln_type_make(dtype, rank, dims);
    const KilnAttrs_dequantize_linear attrs = { .axis = MAX(axis, 0) };
    g_autofree uint8_t *bytes = g_malloc((gsize)kiln_type_elements(&type) + 1);
    for (int64_t i = 0; i < kiln_type_elements(&type); i++)
        bytes[i] = (uint8_t)(below(q, 255) - 127);
    *scale = (float)((0.5 + unit(q)) / (75 * sqrt((double)terms)));
    int zero_point = dtype == KILN_DTYPE_u8 ? 120 + below(q, 16)
                     : below(q, 3)          ? 0
                                            : below(q, 9) - 4;
    KilnValue *operands[] = {
        constant(q, &type, bytes), scales(q, *scale, per_axis ? &dims[axis] : NULL, per_axis),
        zero_points(q, dtype, per_axis ? &dims[axis] : NULL, per_axis, zero_point)
    };
    return add(q, KILN_OP_dequantize_linear, &attrs, operands, 3);
}

/* A bias in steps of the sums, as quantizers write it, or of floats; or none. */
static KilnValue *
bias(Generator *q, int64_t n, float x_scale, KilnValue *w)
{
    KilnType type = kiln_type_make(KILN_DTYPE_f32, 1, &n);
    const int kind = below(q, 4);
    float floats[64] = { 0 };
    int32_t steps[64] = { 0 };
    if (kind == 0 || n > 64)
        return NULL;
    const KilnTensor *scale = tensor_of(q, w->def->operands[1].value);
    g_autoptr(GBytes) bytes = kiln_tensor_view(scale, NULL);
    const int64_t n_scales = kiln_type_elements(&scale->type);
    float sums[64];
    for (int64_t i = 0; i < n; i++) {
        sums[i] = x_scale * ((const float *)g_bytes_get_data(bytes, NULL))[i % n_scales];
        floats[i] = (float)(unit(q) - 0.5);
        steps[i] = (int32_t)(floats[i] / sums[i]);
    }
    if (kind == 1)
        return constant(q, &type, floats);
    type.dtype = KILN_DTYPE_i32;
    const KilnType scale_type = kiln_type_make(KILN_DTYPE_f32, n_scales == n, &n);
    const KilnAttrs_dequantize_linear attrs = { .axis = 0 };
    if (n_scales != 1 && n_scales != n)
        return NULL;
    return binary(q, KILN_OP_dequantize_linear, &attrs, constant(q, &type, steps),
                  constant(q, &scale_type, sums));
}

/* --- operators --- */

static KilnValue *
conv(Generator *q, const Entry *x)
{
    const int64_t channels = x->real->type.dims[1], kernel = below(q, 2) ? 3 : 1;
    if (x->real->type.rank != 4 || channels > 64)
        return NULL;
    const bool depthwise = below(q, 3) == 0;
    const int64_t out = depthwise ? channels : 1 + below(q, 8);
    const int64_t dims[] = { out, depthwise ? 1 : channels, kernel, kernel };
    int64_t pads[] = { kernel / 2, kernel / 2, kernel / 2, kernel / 2 }, ones[] = { 1, 1 };
    int64_t strides[] = { 1 + below(q, 2), 1 + below(q, 2) }, shape[] = { kernel, kernel };
    KilnAttrs_conv attrs = { .auto_pad = "NOTSET",
                             .dilations = { .n = 2, .v = ones },
                             .group = depthwise ? channels : 1,
                             .kernel_shape = { .n = 2, .v = shape },
                             .pads = { .n = 4, .v = pads },
                             .strides = { .n = 2, .v = strides } };
    float scale;
    KilnValue *w = weights(q, 4, dims, dims[1] * kernel * kernel, 0, &scale);
    KilnValue *b = w ? bias(q, out, x->grid.scale, w) : NULL;
    return w ? add(q, KILN_OP_conv, &attrs, (KilnValue *[]){ x->real, w, b }, b ? 3 : 2) : NULL;
}

static KilnValue *
product(Generator *q, const Entry *x)
{
    const KilnType *type = &x->real->type;
    if (type->rank < 2)
        return NULL;
    const int64_t k = type->dims[type->rank - 1], n = 1 + below(q, 12);
    float scale;
    if (type->rank == 2 && below(q, 2)) {
        KilnAttrs_gemm attrs = { .alpha = 1, .beta = 1, .transB = below(q, 2) };
        const int64_t dims[] = { attrs.transB ? n : k, attrs.transB ? k : n };
        KilnValue *w = weights(q, 2, dims, k, attrs.transB ? 0 : 1, &scale);
        KilnValue *b = w ? bias(q, n, x->grid.scale, w) : NULL;
        return w ? add(q, KILN_OP_gemm, &attrs, (KilnValue *[]){ x->real, w, b }, b ? 3 : 2) : NULL;
    }
    if (below(q, 3) == 0) { /* two values, as attention has them */
        int64_t perm[KILN_MAX_RANK];
        for (int d = 0; d < type->rank; d++)
            perm[d] = d < type->rank - 2 ? d : 2 * type->rank - 3 - d;
        KilnAttrs_transpose attrs = { .perm = { .n = (uint32_t)type->rank, .v = perm } };
        KilnValue *turned = unary(q, KILN_OP_transpose, &attrs, x->real);
        KilnValue *stored = turned && below(q, 2) ? requantize(q, turned) : turned;
        return stored ? binary(q, KILN_OP_matmul, NULL, x->real, stored) : NULL;
    }
    KilnValue *w = weights(q, 2, (int64_t[]){ k, n }, k, 1, &scale);
    return w ? binary(q, KILN_OP_matmul, NULL, x->real, w) : NULL;
}

/* A value of the same shape; weights that broadcast where there is none. */
static KilnValue *
partner(Generator *q, const Entry *x)
{
    float scale;
    for (int tries = 0; tries < 8; tries++) {
        const Entry other = any(q);
        if (kiln_type_same_shape(&other.real->type, &x->real->type))
            return other.real;
    }
    const int rank = MIN(x->real->type.rank, 1 + below(q, 2));
    int64_t dims[2] = { 1, 1 };
    for (int d = 0; d < rank; d++)
        dims[d] = below(q, 3) ? x->real->type.dims[x->real->type.rank - rank + d] : 1;
    return weights(q, rank, dims, 4, -1, &scale);
}

static KilnValue *
arithmetic(Generator *q, const Entry *x)
{
    static const KilnOp ops[] = { KILN_OP_add, KILN_OP_add, KILN_OP_add, KILN_OP_sub,
                                  KILN_OP_mul, KILN_OP_mul, KILN_OP_max, KILN_OP_min };
    const KilnOp op = ops[below(q, G_N_ELEMENTS(ops))];
    KilnValue *y = partner(q, x);
    return y ? below(q, 2) ? binary(q, op, NULL, x->real, y) : binary(q, op, NULL, y, x->real)
             : NULL;
}

static KilnValue *
pool(Generator *q, const Entry *x)
{
    int64_t kernel = 2 + below(q, 2), pad = below(q, 2);
    int64_t shape[] = { kernel, kernel }, pads[] = { pad, pad, pad, pad }, ones[] = { 1, 1 };
    int64_t strides[] = { 1 + below(q, 2), 1 + below(q, 2) };
    const KilnType *type = &x->real->type;
    if (type->rank != 4 || type->dims[2] < kernel || type->dims[3] < kernel)
        return NULL;
    if (below(q, 4) == 0)
        return unary(q, below(q, 2) ? KILN_OP_global_average_pool : KILN_OP_global_max_pool, NULL,
                     x->real);
    KilnAttrs_max_pool most = { .auto_pad = "NOTSET",
                                .dilations = { .n = 2, .v = ones },
                                .kernel_shape = { .n = 2, .v = shape },
                                .pads = { .n = 4, .v = pads },
                                .strides = { .n = 2, .v = strides } };
    KilnAttrs_average_pool mean = { .auto_pad = "NOTSET",
                                    .count_include_pad = below(q, 2),
                                    .dilations = { .n = 2, .v = ones },
                                    .kernel_shape = { .n = 2, .v = shape },
                                    .pads = { .n = 4, .v = pads },
                                    .strides = { .n = 2, .v = strides } };
    return below(q, 2) ? unary(q, KILN_OP_max_pool, &most, x->real)
                       : unary(q, KILN_OP_average_pool, &mean, x->real);
}

static KilnValue *
bound(Generator *q, double number)
{
    const KilnType type = kiln_type_scalar(KILN_DTYPE_f32);
    return constant(q, &type, &(float){ (float)number });
}

static KilnValue *
activation(Generator *q, KilnValue *x)
{
    static const KilnOp ops[] = { KILN_OP_relu,       KILN_OP_relu,       KILN_OP_sigmoid,
                                  KILN_OP_tanh,       KILN_OP_leaky_relu, KILN_OP_hard_sigmoid,
                                  KILN_OP_hard_swish, KILN_OP_gelu,       KILN_OP_softplus,
                                  KILN_OP_elu,        KILN_OP_abs,        KILN_OP_neg };
    const int kind = below(q, 16);
    const KilnAttrs_softmax soft = { .axis = -1 };
    if (kind == 0)
        return unary(q, KILN_OP_softmax, &soft, x);
    if (kind == 1) { /* swish as it is written */
        KilnValue *s = unary(q, KILN_OP_sigmoid, NULL, x);
        s = s && below(q, 2) ? requantize(q, s) : s;
        return s ? binary(q, KILN_OP_mul, NULL, x, s) : NULL;
    }
    if (kind < 5)
        return add(q, KILN_OP_clip, NULL,
                   (KilnValue *[]){ x, bound(q, below(q, 2) ? 0 : -unit(q)), bound(q, unit(q)) },
                   3);
    return unary(q, ops[below(q, G_N_ELEMENTS(ops))], NULL, x);
}

static KilnValue *
joined(Generator *q, const Entry *x)
{
    KilnValue *parts[] = { x->real, NULL, NULL };
    uint32_t n = 1;
    for (int tries = 0; tries < 8 && n < 3; tries++) {
        const Entry other = any(q);
        if (kiln_type_same_shape(&other.real->type, &x->real->type))
            parts[n++] = other.real;
    }
    const KilnAttrs_concat attrs = { .axis = below(q, MAX(x->real->type.rank, 1)) };
    return n > 1 ? add(q, KILN_OP_concat, &attrs, parts, n) : NULL;
}

static KilnValue *
movement(Generator *q, const Entry *x)
{
    const KilnType *type = &x->real->type;
    int64_t perm[KILN_MAX_RANK], dims[] = { type->rank ? type->dims[0] : 1, -1 };
    int64_t pads[2 * KILN_MAX_RANK] = { 0 };
    const KilnAttrs_flatten flat = { .axis = 1 };
    KilnAttrs_transpose turn = { .perm = { .n = (uint32_t)type->rank, .v = perm } };
    const KilnAttrs_pad pad = { .mode = "constant" };
    for (int d = 0; d < type->rank; d++)
        perm[d] = type->rank - 1 - d;
    switch (below(q, 5)) {
    case 0:
        return unary(q, KILN_OP_flatten, &flat, x->real);
    case 1:
        return unary(q, KILN_OP_transpose, &turn, x->real);
    case 2:
        return binary(q, KILN_OP_reshape, NULL, x->real, rg_ints(&q->g, dims, 2));
    case 3:
        if (type->rank < 1)
            return NULL;
        pads[type->rank - 1] = 1;
        return binary(q, KILN_OP_pad, &pad, x->real,
                      rg_ints(&q->g, pads, (uint32_t)(2 * type->rank)));
    default:
        if (type->rank < 1 || type->dims[type->rank - 1] < 3)
            return NULL;
        return add(q, KILN_OP_slice, NULL,
                   (KilnValue *[]){ x->real, rg_ints(&q->g, (int64_t[]){ 1 }, 1),
                                    rg_ints(&q->g, (int64_t[]){ 3 }, 1),
                                    rg_ints(&q->g, (int64_t[]){ type->rank - 1 }, 1) },
                   4);
    }
}

static KilnValue *
any_operator(Generator *q, const Entry *x)
{
    switch (below(q, 12)) {
    case 0:
    case 1:
    case 2:
        return conv(q, x);
    case 3:
    case 4:
        return product(q, x);
    case 5:
    case 6:
        return arithmetic(q, x);
    case 7:
        return pool(q, x);
    case 8:
        return activation(q, x->real);
    case 9:
        return joined(q, x);
    case 10:
        return movement(q, x);
    default:
        return x->real; /* stored anew in other steps */
    }
}

static void
step(Generator *q)
{
    const Entry x = any(q);
    KilnValue *y = any_operator(q, &x);
    if (y && y != x.real && below(q, 3) == 0) {
        KilnValue *active = activation(q, y);
        y = active ? active : y;
    }
    if (!y)
        return;
    if (below(q, 8)) {
        requantize(q, y);
        return;
    }
    const Entry real = { .real = y, .grid = { KILN_DTYPE_u8, 0.01f, 0 } };
    g_array_append_val(q->entries, real); /* what a quantizer left out */
}

/* --- graphs --- */

/* Some reals that are quantized first, as most models have them. */
static void
begin(Generator *q)
{
    const int64_t picture[] = { 1 + below(q, 2), 1 + below(q, 6), 2 + below(q, 7),
                                2 + below(q, 7) };
    const int64_t matrix[] = { 1 + below(q, 6), 1 + below(q, 40) };
    const bool pictures = below(q, 4) != 0;
    const int n = 1 + below(q, 2);
    const KilnType type = pictures ? kiln_type_make(KILN_DTYPE_f32, 4, picture)
                                   : kiln_type_make(KILN_DTYPE_f32, 2, matrix);
    for (int i = 0; i < n; i++)
        rg_argument(&q->g, &type);
    g_autoptr(GPtrArray) inputs = kiln_random_inputs(q->g.function, NULL, 1, NULL);
    for (int i = 0; i < n; i++) {
        KilnValue *argument = &kiln_function_argument(q->g.function, (guint)i)->value;
        g_hash_table_insert(q->tensors, argument,
                            kiln_tensor_copy(g_ptr_array_index(inputs, (guint)i)));
        requantize(q, argument);
    }
}

/* The last values, stored or as reals, and some on the way. */
static void
end(Generator *q)
{
    KilnValue *results[STEPS + 4];
    uint32_t n = 0;
    for (guint i = q->entries->len; i-- > 0 && n < G_N_ELEMENTS(results);) {
        const Entry *entry = &g_array_index(q->entries, Entry, i);
        const bool last = entry->real->n_uses == 0;
        if (last || below(q, 5) == 0)
            results[n++] = entry->stored && below(q, 2) ? entry->stored : entry->real;
    }
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (uint32_t i = 0; i < n; i++)
        g_ptr_array_add(names, g_strdup_printf("y%u", i));
    kiln_function_set_results(q->g.function, results, (const char *const *)names->pdata, n, NULL);
}

static void
tensor_free(gpointer tensor)
{
    kiln_tensor_free(tensor);
}

KilnModule *
random_qdq_graph(uint64_t seed)
{
    Generator q = { .g = { .state = seed * UINT64_C(0xda942042e4dd58b5) + 1,
                           .dtype = KILN_DTYPE_f32,
                           .most = MOST },
                    .tensors = g_hash_table_new_full(NULL, NULL, NULL, tensor_free),
                    .entries = g_array_new(FALSE, FALSE, sizeof(Entry)) };
    rg_begin(&q.g);
    begin(&q);
    for (int left = 3 + below(&q, STEPS - 2); left > 0; left--)
        step(&q);
    end(&q);
    g_hash_table_unref(q.tensors);
    g_array_unref(q.entries);
    g_ptr_array_unref(q.g.values);
    return q.g.module;
}
