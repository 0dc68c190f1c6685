/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that make tensors out of little: windows of signal processing, random tensors like
 * another, coin tosses, draws of classes. */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/additive.h"
#include "graph/op/bounds.h"
#include "graph/op/cast.h"
#include "graph/op/generate.h"
#include "graph/op/logic.h"
#include "graph/op/math.h"
#include "graph/op/multiplicative.h"
#include "graph/op/random.h"
#include "graph/op/reduce.h"
#include "graph/op/softmax.h"

#include <math.h>
#include <string.h>

/* More are searched in blocks. */
enum {
    FEW_CLASSES = 64,
};

/* --- range --- */

/* 16-bit floats are added up in f32 since opset 27; each element is computed for itself here. */
gboolean
kiln_onnx_convert_range(KilnOnnxCall *call, GError **error)
{
    int64_t there = 0;
    KilnDType dtype = KILN_DTYPE_f32;
    const KilnValue *start = kiln_onnx_need(call, 0, error);
    if (!start || !kiln_onnx_take_int(call, "stash_type", &there, error) ||
        (there && !kiln_onnx_take_dtype(call, "stash_type", &dtype, error)))
        return FALSE;
    bool matters = start->type.dtype == KILN_DTYPE_f16 || start->type.dtype == KILN_DTYPE_bf16;
    return !matters || dtype == KILN_DTYPE_f32 ||
           kiln_onnx_unsupported(call, error, "stash_type=%s", kiln_dtype_name(dtype));
}

/* --- random --- */

/* ONNX's seed is a float, and left out where any will do: then it is 0, none. */
static gboolean
take_seed(KilnOnnxCall *call, int64_t *out, GError **error)
{
    float seed = NAN;
    uint32_t bits;
    if (!kiln_onnx_take_float(call, "seed", &seed, error))
        return FALSE;
    memcpy(&bits, &seed, sizeof bits);
    *out = isnan(seed) ? 0 : (int64_t)bits + (bits == 0);
    return TRUE;
}

static void
set_seed(KilnOnnxCall *call, int64_t seed)
{
    if (call->op == KILN_OP_random_normal)
        kiln_onnx_attrs(call, random_normal)->seed = seed;
    else
        kiln_onnx_attrs(call, random_uniform)->seed = seed;
}

gboolean
kiln_onnx_convert_random(KilnOnnxCall *call, GError **error)
{
    int64_t seed;
    if (!take_seed(call, &seed, error) || !kiln_onnx_read_attrs(call, error))
        return FALSE;
    set_seed(call, seed);
    return TRUE;
}

/* Shape, and unless told the element type, of operand 0. */
static gboolean
shape_of_operand(KilnOnnxCall *call, KilnInts *out, KilnDType *out_dtype, GError **error)
{
    const KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x)
        return FALSE;
    if (!kiln_type_is_static(&x->type))
        return kiln_onnx_unsupported(call, error, "random numbers for an unknown shape");
    *out = kiln_ints_make(call->function->module->arena, x->type.dims, (uint32_t)x->type.rank);
    *out_dtype = x->type.dtype;
    return TRUE;
}

gboolean
kiln_onnx_convert_random_like(KilnOnnxCall *call, GError **error)
{
    int64_t seed;
    KilnInts shape;
    KilnDType dtype = KILN_DTYPE_f32;
    if (!shape_of_operand(call, &shape, &dtype, error) || !take_seed(call, &seed, error))
        return FALSE;
    if (call->op == KILN_OP_random_normal) {
        kiln_onnx_attrs(call, random_normal)->dtype = dtype;
        kiln_onnx_attrs(call, random_normal)->shape = shape;
    } else {
        kiln_onnx_attrs(call, random_uniform)->dtype = dtype;
        kiln_onnx_attrs(call, random_uniform)->shape = shape;
    }
    set_seed(call, seed);
    call->n_operands = 0;
    return kiln_onnx_read_attrs(call, error);
}

/* 1 with the probability that the operand's element says: uniform numbers below it. */
gboolean
kiln_onnx_convert_bernoulli(KilnOnnxCall *call, GError **error)
{
    KilnAttrs_random_uniform uniform = { .high = 1, .low = 0 };
    KilnAttrs_cast cast = kiln_cast_to(KILN_DTYPE_f32);
    if (!shape_of_operand(call, &uniform.shape, &uniform.dtype, error) ||
        !take_seed(call, &uniform.seed, error))
        return FALSE;
    cast.to = uniform.dtype;
    if (!kiln_onnx_take_dtype(call, "dtype", &cast.to, error))
        return FALSE;
    KilnValue *dice = kiln_onnx_build(call, KILN_OP_random_uniform, &uniform, NULL, 0, error);
    KilnValue *below =
        dice ? kiln_onnx_build2(call, KILN_OP_less, NULL, dice, call->operands[0], error) : NULL;
    return below &&
           kiln_onnx_set_result(call, 0, kiln_onnx_build1(call, KILN_OP_cast, &cast, below, error));
}

/* The sums of the probabilities of classes, [batch, classes], and of all of them times uniform
 * numbers, [batch, samples, 1], in f64: a class is drawn if the number lies in its part. */
static gboolean
draw(const KilnOnnxSteps *s, KilnValue *x, const KilnAttrs_random_uniform *uniform,
     KilnValue **out_sums, KilnValue **out_numbers)
{
    const int64_t two = 2, classes = x->type.dims[1];
    const KilnAttrs_softmax last = { .axis = -1 };
    const bool half = kiln_dtype_is_half(x->type.dtype);
    KilnValue *axis = kiln_onnx_scalar(s->call, "axis", KILN_DTYPE_i64, 1);
    KilnValue *p = kiln_onnx_step1(s, KILN_OP_softmax, &last,
                                   half ? kiln_onnx_step_cast(s, x, KILN_DTYPE_f32) : x);
    KilnValue *sums =
        kiln_onnx_step2(s, KILN_OP_cum_sum, NULL, kiln_onnx_step_cast(s, p, KILN_DTYPE_f64), axis);
    KilnValue *all = kiln_onnx_step_slice(s, sums, 1, classes - 1, classes, 1);
    KilnValue *dice = kiln_onnx_build(s->call, KILN_OP_random_uniform, uniform, NULL, 0, s->error);
    *out_numbers = kiln_onnx_step_unsqueeze(s, kiln_onnx_step_mul(s, dice, all), &two, 1);
    *out_sums = sums;
    return *out_sums && *out_numbers;
}

/* How many of the last dim of @sums are at most as large as @numbers: i64 [batch, samples]. */
static KilnValue *
count_up_to(const KilnOnnxSteps *s, KilnValue *sums, KilnValue *numbers)
{
    KilnValue *up_to = kiln_onnx_step2(s, KILN_OP_less_or_equal, NULL, sums, numbers);
    return kiln_onnx_step_sum(s, kiln_onnx_step_cast(s, up_to, KILN_DTYPE_i64), 2, false);
}

/* @sums, [batch, n], as [batch, blocks, length]. What is missing is infinite, and never counted. */
static KilnValue *
in_blocks(const KilnOnnxSteps *s, KilnValue *sums, int64_t blocks, int64_t length)
{
    const int64_t batch = sums->type.dims[0], n = sums->type.dims[1];
    const int64_t pads[] = { 0, 0, 0, blocks * length - n };
    const KilnOnnxExtent shape[] = { KILN_ONNX_NUMBER(batch), KILN_ONNX_NUMBER(blocks),
                                     KILN_ONNX_NUMBER(length) };
    if (pads[3] > 0)
        sums = kiln_onnx_step_pad_with(
            s, sums, kiln_onnx_ints(s->call, "pads", pads, G_N_ELEMENTS(pads)),
            kiln_onnx_scalar(s->call, "none", KILN_DTYPE_f64, (double)INFINITY));
    return kiln_onnx_step_reshape(s, sums, shape, G_N_ELEMENTS(shape));
}

/* How many of @sums, which ascend, are at most as large as @numbers. The blocks whose last sum is
 * counted are counted whole, so that only one block is compared sum by sum. */
static KilnValue *
count_in_blocks(const KilnOnnxSteps *s, KilnValue *sums, KilnValue *numbers)
{
    const int64_t one = 1, two = 2, n = sums->type.dims[1];
    const int64_t length = (int64_t)ceil(sqrt((double)n)), blocks = (n + length - 1) / length;
    if (n <= FEW_CLASSES)
        return count_up_to(s, kiln_onnx_step_unsqueeze(s, sums, &one, 1), numbers);
    const KilnOnnxExtent flat[] = { KILN_ONNX_NUMBER(sums->type.dims[0]), KILN_ONNX_NUMBER(1),
                                    KILN_ONNX_NUMBER(blocks) };
    KilnValue *all = in_blocks(s, sums, blocks, length);
    KilnValue *ends = kiln_onnx_step_slice(s, all, 2, length - 1, length, 1);
    ends = kiln_onnx_step_reshape(s, ends, flat, G_N_ELEMENTS(flat));
    KilnValue *whole =
        kiln_onnx_step_at_most(s, count_up_to(s, ends, numbers), (double)(blocks - 1));
    KilnValue *block =
        kiln_onnx_step_gather_nd(s, all, kiln_onnx_step_unsqueeze(s, whole, &two, 1), 1);
    return kiln_onnx_step_add(s, kiln_onnx_step_mul_number(s, whole, (double)length),
                              count_up_to(s, block, numbers));
}

/* A sample is the number of classes whose parts end before its number. */
KilnValue *
kiln_onnx_step_draw_classes(const KilnOnnxSteps *s, KilnValue *x, int64_t samples, int64_t seed,
                            KilnDType dtype)
{
    KilnAttrs_random_uniform uniform = { .dtype = KILN_DTYPE_f64, .high = 1, .low = 0 };
    KilnValue *sums, *numbers;
    if (!x)
        return NULL;
    if (!kiln_type_is_static(&x->type)) {
        kiln_onnx_unsupported(s->call, s->error, "random numbers for an unknown shape");
        return NULL;
    }
    uniform.seed = seed;
    uniform.shape = kiln_ints_make(s->call->function->module->arena,
                                   (int64_t[]){ x->type.dims[0], samples }, 2);
    if (!draw(s, x, &uniform, &sums, &numbers))
        return NULL;
    KilnValue *n = kiln_onnx_step_cast(s, count_in_blocks(s, sums, numbers), dtype);
    return kiln_onnx_step_at_most(s, n, (double)(x->type.dims[1] - 1));
}

/* Classes by the probabilities whose logarithms the operand has. */
gboolean
kiln_onnx_convert_multinomial(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    int64_t samples = 1, seed;
    KilnDType dtype = KILN_DTYPE_i32, ignored;
    KilnInts shape = { 0 };
    if (!shape_of_operand(call, &shape, &ignored, error) || !take_seed(call, &seed, error) ||
        !kiln_onnx_take_int(call, "sample_size", &samples, error) ||
        !kiln_onnx_take_dtype(call, "dtype", &dtype, error) ||
        !kiln_onnx_require_rank(call, 0, 2, 2, error))
        return FALSE;
    if (samples < 0 || shape.v[1] < 1 || (dtype != KILN_DTYPE_i32 && dtype != KILN_DTYPE_i64))
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected samples of a class or more as i32 or i64, "
                               "found %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " as %s",
                               samples, shape.v[1], kiln_dtype_name(dtype));
    return kiln_onnx_set_result(
        call, 0, kiln_onnx_step_draw_classes(&s, call->operands[0], samples, seed, dtype));
}

/* --- windows --- */

/* Sums of cosines, a0 - a1 cos(2πn/N) + a2 cos(4πn/N): */
static const struct {
    const char *name;
    double a[3];
} windows[] = {
    { "HannWindow", { 0.5, 0.5, 0 } },
    { "HammingWindow", { 25.0 / 46.0, 21.0 / 46.0, 0 } },
    { "BlackmanWindow", { 0.42, 0.5, 0.08 } },
};

/* @x combined with a number. */
static KilnValue *
with_number(KilnOnnxCall *call, KilnOp op, KilnValue *x, double number, GError **error)
{
    if (!x)
        return NULL;
    KilnValue *constant = kiln_onnx_scalar(call, "number", x->type.dtype, number);
    return kiln_onnx_build2(call, op, NULL, x, constant, error);
}

/* factor × cos(multiple × angle) */
static KilnValue *
cosine(KilnOnnxCall *call, KilnValue *angle, double multiple, double factor, GError **error)
{
    KilnValue *x = with_number(call, KILN_OP_mul, angle, multiple, error);
    x = x ? kiln_onnx_build1(call, KILN_OP_cos, NULL, x, error) : NULL;
    return with_number(call, KILN_OP_mul, x, factor, error);
}

/* 2πn / N for n = 0…size-1, in f32; N is size, or size - 1 where both ends are to be alike. */
static KilnValue *
angles(KilnOnnxCall *call, KilnValue *size, bool periodic, GError **error)
{
    KilnDType dtype = size->type.dtype;
    KilnAttrs_cast to_f32 = kiln_cast_to(KILN_DTYPE_f32);
    KilnValue *bounds[] = { kiln_onnx_scalar(call, "first", dtype, 0), size,
                            kiln_onnx_scalar(call, "step", dtype, 1) };
    KilnValue *n = kiln_onnx_build(call, KILN_OP_range, NULL, bounds, 3, error);
    n = n ? kiln_onnx_build1(call, KILN_OP_cast, &to_f32, n, error) : NULL;
    n = with_number(call, KILN_OP_mul, n, 2 * G_PI, error);
    KilnValue *period = n && !periodic ? with_number(call, KILN_OP_sub, size, 1, error) : size;
    period = n && period ? kiln_onnx_build1(call, KILN_OP_cast, &to_f32, period, error) : NULL;
    return period ? kiln_onnx_build2(call, KILN_OP_div, NULL, n, period, error) : NULL;
}

gboolean
kiln_onnx_convert_window(KilnOnnxCall *call, GError **error)
{
    const double *a = windows[0].a;
    for (size_t i = 0; i < G_N_ELEMENTS(windows); i++) {
        if (strcmp(windows[i].name, call->node->proto->op_type) == 0)
            a = windows[i].a;
    }
    int64_t periodic = 1;
    KilnAttrs_cast cast = kiln_cast_to(KILN_DTYPE_f32);
    KilnValue *size = kiln_onnx_need(call, 0, error);
    if (!size || !kiln_onnx_take_int(call, "periodic", &periodic, error) ||
        !kiln_onnx_take_dtype(call, "output_datatype", &cast.to, error))
        return FALSE;
    KilnValue *angle = angles(call, size, periodic != 0, error);
    KilnValue *x = angle ? cosine(call, angle, 1, -a[1], error) : NULL;
    x = with_number(call, KILN_OP_add, x, a[0], error);
    if (x && a[2] != 0) {
        KilnValue *second = cosine(call, angle, 2, a[2], error);
        x = second ? kiln_onnx_build2(call, KILN_OP_add, NULL, x, second, error) : NULL;
    }
    return x &&
           kiln_onnx_set_result(call, 0, kiln_onnx_build1(call, KILN_OP_cast, &cast, x, error));
}

/* --- pictures --- */

/* The data decide the size, which is a value of its own: what follows may be shaped by it. */
gboolean
kiln_onnx_convert_image_decoder(KilnOnnxCall *call, GError **error)
{
    KilnValue *bytes = kiln_onnx_need(call, 0, error);
    KilnValue *size = bytes ? kiln_onnx_build1(call, KILN_OP_image_size, NULL, bytes, error) : NULL;
    if (!size)
        return FALSE;
    kiln_onnx_set_operand(call, 1, size);
    return TRUE;
}
