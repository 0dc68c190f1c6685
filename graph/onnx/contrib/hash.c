/* SPDX-License-Identifier: Apache-2.0 */
/* MurmurHash3 of com.microsoft: the hash of each number, from its 4 or 8 bytes.
 *
 *     for each word k of 4 bytes, from the lowest on:
 *         k = rotate(k * before, 15) * behind
 *         h = rotate(h ^ k, 13) * 5 + more
 *     h = h ^ number of bytes, and its bits are mixed */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"

enum {
    WORD = 32 /* bits */
};
/* The numbers of the algorithm, which is in the public domain. */
static const double before = 0xCC9E2D51, behind = 0x1B873593, more = 0xE6546B64;
static const double mix[] = { 0x85EBCA6B, 0xC2B2AE35 };

/* @x with its bits @n places higher, and those that fall out at the low end. */
static KilnValue *
rotate(const KilnOnnxSteps *s, KilnValue *x, int n)
{
    return kiln_onnx_step_xor(s, kiln_onnx_step_higher(s, x, n),
                              kiln_onnx_step_lower(s, x, WORD - n));
}

/* The hash @h with word @k. */
static KilnValue *
add_word(const KilnOnnxSteps *s, KilnValue *h, KilnValue *k)
{
    k = rotate(s, kiln_onnx_step_mul_number(s, k, before), 15);
    h = rotate(s, kiln_onnx_step_xor(s, h, kiln_onnx_step_mul_number(s, k, behind)), 13);
    return kiln_onnx_step_add_number(s, kiln_onnx_step_mul_number(s, h, 5), more);
}

/* @x ^ its bits @n places lower */
static KilnValue *
fold(const KilnOnnxSteps *s, KilnValue *x, int n)
{
    return kiln_onnx_step_xor(s, x, kiln_onnx_step_lower(s, x, n));
}

gboolean
kiln_onnx_convert_murmur_hash(KilnOnnxCall *call, GError **error)
{
    const KilnOnnxSteps s = { call, error };
    int64_t positive = 1, seed = 0;
    KilnValue *x = kiln_onnx_need(call, 0, error);
    if (!x || !kiln_onnx_take_flag(call, "positive", &positive, error) ||
        !kiln_onnx_take_int(call, "seed", &seed, error))
        return FALSE;
    const size_t bytes = kiln_dtype_size(x->type.dtype);
    if (x->type.dtype == KILN_DTYPE_string || (bytes != 4 && bytes != 8))
        return kiln_onnx_unsupported(call, error, "elements of type %s",
                                     kiln_dtype_name(x->type.dtype));
    KilnValue *h = kiln_onnx_scalar(call, "seed", KILN_DTYPE_u32, (double)(uint32_t)seed);
    x = kiln_onnx_step_bits(&s, x, bytes == 4 ? KILN_DTYPE_u32 : KILN_DTYPE_u64);
    if (bytes == 8) {
        KilnValue *low = kiln_onnx_step_lower(&s, kiln_onnx_step_higher(&s, x, WORD), WORD);
        h = add_word(&s, h, kiln_onnx_step_cast(&s, low, KILN_DTYPE_u32));
        x = kiln_onnx_step_cast(&s, kiln_onnx_step_lower(&s, x, WORD), KILN_DTYPE_u32);
    }
    h = add_word(&s, h, x);
    h = kiln_onnx_step_xor(&s, h, kiln_onnx_scalar(call, "bytes", KILN_DTYPE_u32, (double)bytes));
    h = kiln_onnx_step_mul_number(&s, fold(&s, h, 16), mix[0]);
    h = fold(&s, kiln_onnx_step_mul_number(&s, fold(&s, h, 13), mix[1]), 16);
    return kiln_onnx_set_result(call, 0, positive ? h : kiln_onnx_step_bits(&s, h, KILN_DTYPE_i32));
}
