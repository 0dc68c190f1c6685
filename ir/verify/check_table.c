/* SPDX-License-Identifier: Apache-2.0 */
/* What the check of each kind of instruction adds to inference: shape operands that became
 * attributes, lists that must be complete. What has no row is checked by inference alone. */
#include "graph/module/define.h"
#include "ir/verify/check_priv.h"

#include "graph/infer/common.h"
#include "graph/op/plugin.h"

#include <math.h>

static const KilnInts *
ints(const KilnCheck *check, const char *name)
{
    const KilnInstrInfo *info = kiln_instr_info(check->instr->kind);
    const KilnAttrInfo *attr = kiln_attr_find(info->attrs, info->n_attrs, name);
    return (const KilnInts *)((const char *)check->instr->attrs + attr->offset);
}

/* --- along axes --- */

static gboolean
prepare_reduce(KilnCheck *check, GError **error)
{
    (void)error;
    const KilnInts *axes = ints(check, "axes");
    kiln_check_known(check, 1, axes->v, axes->n);
    *(bool *)kiln_check_attr(check, "noop_with_empty_axes") = true;
    *(bool *)kiln_check_attr(check, "keepdims") =
        kiln_check_type(check, 0)->rank == kiln_check_type(check, 1)->rank;
    return TRUE;
}

static gboolean
prepare_arg(KilnCheck *check, GError **error)
{
    (void)error;
    *(bool *)kiln_check_attr(check, "keepdims") =
        kiln_check_type(check, 0)->rank == kiln_check_type(check, 1)->rank;
    return TRUE;
}

/* cum_sum and cum_prod have their attributes in the same places. */
static gboolean
prepare_cumulative(KilnCheck *check, GError **error)
{
    (void)error;
    const KilnInstrInfo *info = kiln_instr_info(check->instr->kind);
    const KilnAttrInfo *attr = kiln_attr_find(info->attrs, info->n_attrs, "axis");
    kiln_check_known(check, 1, (const int64_t *)((const char *)check->instr->attrs + attr->offset),
                     1);
    return TRUE;
}

/* The extent of @type along @axis; 0 where it has none, for inference to complain. */
static int64_t
extent(const KilnType *type, int64_t axis)
{
    int d = kiln_type_axis(type, axis);
    return d < 0 ? 0 : type->dims[d];
}

static gboolean
prepare_top_k(KilnCheck *check, GError **error)
{
    (void)error;
    int64_t k = extent(kiln_check_type(check, 0), kiln_instr_attrs(check->instr, top_k)->axis);
    kiln_check_known(check, 1, &k, 1);
    return TRUE;
}

static gboolean
prepare_one_hot(KilnCheck *check, GError **error)
{
    (void)error;
    int64_t depth =
        extent(kiln_check_type(check, 0), kiln_instr_attrs(check->instr, one_hot)->axis);
    kiln_check_known(check, 1, &depth, 1);
    return TRUE;
}

static gboolean
prepare_mean_variance(KilnCheck *check, GError **error)
{
    uint32_t n = kiln_instr_attrs(check->instr, mean_variance_normalization)->axes.n;
    return kiln_check_length(check, "axes", MAX(n, 1), false, error);
}

/* --- windows --- */

/* The lists of a window over operand 1, but for the size of the kernel. */
static gboolean
check_steps(KilnCheck *check, GError **error)
{
    int rank = kiln_check_type(check, 1)->rank - 2;
    if (rank < 1)
        return kiln_check_throw(check, 1, "rank 3 or more", error);
    uint32_t n = (uint32_t)rank;
    return kiln_check_length(check, "strides", n, true, error) &&
           kiln_check_length(check, "dilations", n, true, error) &&
           kiln_check_length(check, "pads", 2 * n, true, error);
}

static gboolean
check_window(KilnCheck *check, GError **error)
{
    return check_steps(check, error) &&
           kiln_check_length(check, "kernel_shape", (uint32_t)kiln_check_type(check, 1)->rank - 2,
                             false, error);
}

static gboolean
check_conv(KilnCheck *check, GError **error)
{
    const KilnInstrAttrs_conv *attrs = kiln_instr_attrs(check->instr, conv);
    return check_steps(check, error) &&
           kiln_infer_one_of("algorithm", attrs->algorithm, "direct winograd", error);
}

static gboolean
prepare_col2im(KilnCheck *check, GError **error)
{
    const KilnType *out = kiln_check_type(check, 0);
    const KilnInts *block = ints(check, "block_shape");
    if (out->rank < 3)
        return kiln_check_throw(check, 0, "rank 3 or more", error);
    if (!kiln_check_length(check, "block_shape", (uint32_t)out->rank - 2, false, error))
        return FALSE;
    kiln_check_known(check, 1, out->dims + 2, out->rank - 2);
    kiln_check_known(check, 2, block->v, block->n);
    return TRUE;
}

/* How far a transposed convolution reaches is for the result's type to say: output_padding and
 * output_shape went into it. */
static gboolean
prepare_conv_transpose(KilnCheck *check, GError **error)
{
    const KilnType *out = kiln_check_type(check, 0);
    if (!check_steps(check, error))
        return FALSE;
    if (out->rank != kiln_check_type(check, 1)->rank)
        return kiln_check_throw(check, 0, "the rank of the data", error);
    *(KilnInts *)kiln_check_attr(check, "output_shape") =
        kiln_ints_make(check->arena, out->dims + 2, (uint32_t)out->rank - 2);
    *(KilnInts *)kiln_check_attr(check, "pads") = (KilnInts){ 0 };
    return TRUE;
}

static gboolean
prepare_max_unpool(KilnCheck *check, GError **error)
{
    const KilnType *out = kiln_check_type(check, 0);
    kiln_check_known(check, 2, out->dims, out->rank);
    return check_window(check, error);
}

/* Whether sizes were rounded up is for the result's type to say. */
static gboolean
check_pool(KilnCheck *check, GError **error)
{
    if (!check_window(check, error))
        return FALSE;
    bool *ceil = kiln_check_attr(check, "ceil_mode");
    g_autoptr(GError) why = NULL;
    *ceil = false;
    if (kiln_check_infer(check, &why))
        return TRUE;
    *ceil = true;
    if (kiln_check_infer(check, NULL))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&why));
    return FALSE;
}

/* --- recurrence --- */

static gboolean
prepare_recurrent(KilnCheck *check, GError **error)
{
    KilnInstrKind kind = check->instr->kind;
    uint32_t x = kind == KILN_INSTR_lstm ? 3 : 2;
    uint32_t gates = kind == KILN_INSTR_lstm ? 3 : kind == KILN_INSTR_gru ? 2 : 1;
    const KilnType *recurrence = kiln_check_type(check, x + 2);
    if (recurrence->rank != 3)
        return kiln_check_throw(check, x + 2, "rank 3", error);
    if (*(const int64_t *)kiln_check_attr(check, "hidden_size") != recurrence->dims[2])
        return kiln_check_throw(check, x + 2, "hidden_size as its last dim", error);
    bool both = recurrence->dims[0] == 2;
    return kiln_check_length(check, "activations", gates * (both ? 2 : 1), true, error);
}

/* --- movement --- */

static gboolean
check_copy(KilnCheck *check, GError **error)
{
    const KilnType *out = kiln_check_type(check, 0);
    if (kiln_type_equal(out, kiln_check_type(check, 1)))
        return TRUE;
    g_autofree char *expected = kiln_type_to_string(out);
    return kiln_check_throw(check, 1, expected, error);
}

static gboolean
prepare_transpose(KilnCheck *check, GError **error)
{
    return kiln_check_length(check, "perm", (uint32_t)kiln_check_type(check, 1)->rank, false,
                             error);
}

static gboolean
prepare_expand(KilnCheck *check, GError **error)
{
    (void)error;
    const KilnType *out = kiln_check_type(check, 0);
    kiln_check_known(check, 1, out->dims, out->rank);
    return TRUE;
}

static gboolean
prepare_pad(KilnCheck *check, GError **error)
{
    const KilnInts *pads = ints(check, "pads");
    uint32_t n = 2 * (uint32_t)kiln_check_type(check, 1)->rank;
    static const int64_t none[2 * KILN_MAX_RANK] = { 0 };
    if (!kiln_check_length(check, "pads", n, true, error))
        return FALSE;
    kiln_check_known(check, 1, pads->n ? pads->v : none, n);
    return TRUE;
}

static gboolean
check_alike(const KilnCheck *check, GError **error)
{
    const KilnType *out = kiln_check_type(check, 0), *in = kiln_check_type(check, 1);
    if (out->dtype != in->dtype)
        return kiln_check_throw(check, 0, "the element type of operand 1", error);
    if (out->rank != in->rank)
        return kiln_check_throw(check, 0, "the rank of operand 1", error);
    return TRUE;
}

/* The first and last element that is taken of each dim lie inside. */
static gboolean
check_slice(KilnCheck *check, GError **error)
{
    const KilnType *out = kiln_check_type(check, 0), *in = kiln_check_type(check, 1);
    const KilnInts *starts = ints(check, "starts"), *steps = ints(check, "steps");
    uint32_t rank = (uint32_t)in->rank;
    if (!check_alike(check, error) || !kiln_check_length(check, "starts", rank, true, error) ||
        !kiln_check_length(check, "steps", rank, true, error))
        return FALSE;
    for (uint32_t d = 0; d < rank; d++) {
        int64_t start = kiln_ints_at(*starts, d, 0), step = kiln_ints_at(*steps, d, 1), last;
        bool inside = step != 0 && start >= 0 && start < in->dims[d] &&
                      !__builtin_mul_overflow(out->dims[d] - 1, step, &last) &&
                      !__builtin_add_overflow(start, last, &last) && last >= 0 &&
                      last < in->dims[d];
        if (out->dims[d] && !inside)
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "dim %u: %" G_GINT64_FORMAT " elements from %" G_GINT64_FORMAT
                              " in steps of %" G_GINT64_FORMAT
                              " do not lie inside %" G_GINT64_FORMAT,
                              d, out->dims[d], start, step, in->dims[d]);
    }
    return TRUE;
}

/* Whether the update is longer than the cache is for the kernel to say: dims may be open. */
static gboolean
check_tensor_scatter(KilnCheck *check, GError **error)
{
    const KilnInstrAttrs_tensor_scatter *attrs = kiln_instr_attrs(check->instr, tensor_scatter);
    const KilnType *cache = kiln_check_type(check, 1), *update = kiln_check_type(check, 2);
    const KilnType *at = kiln_check_type(check, 3);
    if (!check_copy(check, error) ||
        !kiln_infer_one_of("mode", attrs->mode, "linear circular", error))
        return FALSE;
    if (attrs->axis < 1 || attrs->axis >= cache->rank)
        return kiln_check_throw(check, 1, "the axis behind dim 0", error);
    KilnType expected = *cache;
    if (update->rank == cache->rank)
        kiln_dim_copy(&expected, (int)attrs->axis, update, (int)attrs->axis);
    if (!kiln_type_equal(&expected, update)) {
        g_autofree char *text = kiln_type_to_string(&expected);
        return kiln_check_throw(check, 2, text, error);
    }
    bool fits =
        !at || (at->dtype == KILN_DTYPE_i64 && at->rank == 1 && at->dims[0] == cache->dims[0]);
    return fits || kiln_check_throw(check, 3, "an i64 for each sample", error);
}

static gboolean
check_tile(KilnCheck *check, GError **error)
{
    const KilnType *out = kiln_check_type(check, 0), *in = kiln_check_type(check, 1);
    if (!check_alike(check, error))
        return FALSE;
    for (int d = 0; d < in->rank; d++) {
        if (in->dims[d] ? out->dims[d] % in->dims[d] != 0 : out->dims[d] != 0)
            return kiln_check_throw(check, 0, "multiples of operand 1's dims", error);
    }
    return TRUE;
}

static gboolean
check_range(KilnCheck *check, GError **error)
{
    const KilnType *out = kiln_check_type(check, 0);
    if (out->rank != 1)
        return kiln_check_throw(check, 0, "rank 1", error);
    for (uint32_t i = 1; i <= 2; i++) {
        const KilnType *scalar = kiln_check_type(check, i);
        if (scalar->dtype != out->dtype || kiln_type_elements(scalar) != 1)
            return kiln_check_throw(check, i, "one element of the result's type", error);
    }
    return TRUE;
}

static gboolean
check_extents(KilnCheck *check, GError **error)
{
    const KilnType *out = kiln_check_type(check, 0);
    if (out->dtype != KILN_DTYPE_i64 && out->dtype != KILN_DTYPE_i32 &&
        out->dtype != KILN_DTYPE_bool && out->dtype != KILN_DTYPE_f32 &&
        out->dtype != KILN_DTYPE_f64)
        return kiln_check_throw(check, 0, "i64, i32, bool, f32 or f64", error);
    return kiln_check_length(check, "values", (uint32_t)kiln_type_elements(out), true, error);
}

static gboolean
check_define(KilnCheck *check, GError **error)
{
    const KilnType *numbers = kiln_check_type(check, 0);
    int64_t n = kiln_type_elements(numbers);
    if (numbers->dtype != KILN_DTYPE_i64 && numbers->dtype != KILN_DTYPE_i32)
        return kiln_check_throw(check, 0, "i64 or i32", error);
    if (n > KILN_DEFINED_MAX)
        return kiln_check_throw(check, 0, "at most 64 elements", error);
    return kiln_check_length(check, "values", (uint32_t)n, false, error) &&
           kiln_check_length(check, "most", (uint32_t)n, false, error);
}

/* Operand @i is one i64: how many elements there are. */
static gboolean
check_count(const KilnCheck *check, uint32_t i, GError **error)
{
    const KilnType *count = kiln_check_type(check, i);
    return (count->dtype == KILN_DTYPE_i64 && kiln_type_elements(count) == 1) ||
           kiln_check_throw(check, i, "one element of i64", error);
}

/* Operand @i has rank 1, the type @dtype, and room for @n elements. */
static gboolean
check_room(const KilnCheck *check, uint32_t i, KilnDType dtype, int64_t n, GError **error)
{
    const KilnType *room = kiln_check_type(check, i);
    if (!room || (room->dtype == dtype && room->rank == 1 && room->dims[0] == n))
        return TRUE;
    g_autofree char *expected =
        g_strdup_printf("%s[%" G_GINT64_FORMAT "]", kiln_dtype_name(dtype), n);
    return kiln_check_throw(check, i, expected, error);
}

static gboolean
check_non_zero(KilnCheck *check, GError **error)
{
    const KilnType *x = kiln_check_type(check, 2);
    return check_count(check, 1, error) &&
           check_room(check, 0, KILN_DTYPE_i64, x->rank * kiln_type_elements(x), error);
}

static gboolean
check_suppression(KilnCheck *check, GError **error)
{
    const KilnType *boxes = kiln_check_type(check, 2), *scores = kiln_check_type(check, 3);
    if (boxes->rank != 3 || boxes->dims[2] != 4)
        return kiln_check_throw(check, 2, "dims of [batches,boxes,4]", error);
    if (scores->rank != 3 || scores->dims[0] != boxes->dims[0] || scores->dims[2] != boxes->dims[1])
        return kiln_check_throw(check, 3, "dims of [batches,classes,boxes]", error);
    for (uint32_t i = 4; i < check->instr->n_operands; i++) {
        const KilnType *scalar = kiln_check_type(check, i);
        if (scalar && (kiln_type_elements(scalar) != 1 ||
                       scalar->dtype != (i == 4 ? KILN_DTYPE_i64 : KILN_DTYPE_f32)))
            return kiln_check_throw(check, i, i == 4 ? "one element of i64" : "one element of f32",
                                    error);
    }
    const KilnType *room = kiln_check_type(check, 0);
    bool fits = room->dtype == KILN_DTYPE_i64 && room->rank == 2 && room->dims[1] == 3;
    return check_count(check, 1, error) && (fits || kiln_check_throw(check, 0, "i64[n,3]", error));
}

static gboolean
check_unique(KilnCheck *check, GError **error)
{
    const KilnType *x = kiln_check_type(check, 5);
    int64_t stated = kiln_instr_attrs(check->instr, unique)->axis;
    int axis = stated == G_MININT64 ? -1 : kiln_type_axis(x, stated);
    if (stated != G_MININT64 && axis < 0)
        return kiln_throw(error, KILN_ERROR_INVALID, "axis: expected one of operand 5");
    int64_t n = axis < 0 ? kiln_type_elements(x) : x->dims[axis];
    for (uint32_t i = 2; i < 5; i++) {
        if (!check_room(check, i, KILN_DTYPE_i64, n, error))
            return FALSE;
    }
    return check_count(check, 1, error) &&
           check_room(check, 0, x->dtype, kiln_type_elements(x), error);
}

static gboolean
check_text(const KilnCheck *check, uint32_t i, GError **error)
{
    return kiln_check_type(check, i)->dtype == KILN_DTYPE_string ||
           kiln_check_throw(check, i, "strings", error);
}

static gboolean
check_string_parts(KilnCheck *check, GError **error)
{
    const KilnType *lengths = kiln_check_type(check, 0);
    return check_text(check, 2, error) && check_count(check, 1, error) &&
           kiln_check_same_shape(check, 2, 0, error) &&
           (lengths->dtype == KILN_DTYPE_i64 || kiln_check_throw(check, 0, "i64", error));
}

static gboolean
check_string_split(KilnCheck *check, GError **error)
{
    const KilnType *out = kiln_check_type(check, 0), *x = kiln_check_type(check, 1);
    bool fits = out->rank == x->rank + 1;
    for (int d = 0; fits && d < x->rank; d++)
        fits = out->dims[d] == x->dims[d];
    return check_text(check, 0, error) && check_text(check, 1, error) &&
           (fits || kiln_check_throw(check, 0, "the dims of operand 1 and one more", error));
}

static gboolean
check_token_count(KilnCheck *check, GError **error)
{
    const KilnInstrAttrs_token_count *attrs = kiln_instr_attrs(check->instr, token_count);
    return check_text(check, 1, error) && check_count(check, 0, error) &&
           kiln_infer_tokens(attrs->separators, attrs->tokenexp, attrs->mincharnum, error);
}

static gboolean
check_tokenizer(KilnCheck *check, GError **error)
{
    const KilnInstrAttrs_tokenizer *attrs = kiln_instr_attrs(check->instr, tokenizer);
    return check_string_split(check, error) &&
           kiln_infer_tokens(attrs->separators, attrs->tokenexp, attrs->mincharnum, error);
}

static gboolean
check_string_normalizer(KilnCheck *check, GError **error)
{
    const KilnType *x = kiln_check_type(check, 2);
    const char *action = kiln_instr_attrs(check->instr, string_normalizer)->case_change_action;
    return check_text(check, 2, error) && check_count(check, 1, error) &&
           kiln_infer_one_of("case_change_action", action, "NONE LOWER UPPER", error) &&
           check_room(check, 0, KILN_DTYPE_string, kiln_type_elements(x) + 1, error);
}

/* The channels, which are part of the size, do not matter. */
static gboolean
prepare_affine_grid(KilnCheck *check, GError **error)
{
    const KilnType *out = kiln_check_type(check, 0);
    int64_t size[KILN_MAX_RANK] = { 0 };
    if (out->rank < 4 || out->rank > 5)
        return kiln_check_throw(check, 0, "rank 4 or 5", error);
    size[0] = out->dims[0];
    for (int d = 1; d < out->rank - 1; d++)
        size[d + 1] = out->dims[d];
    kiln_check_known(check, 1, size, out->rank);
    return TRUE;
}

static gboolean
prepare_image_decoder(KilnCheck *check, GError **error)
{
    const KilnType *out = kiln_check_type(check, 0);
    if (out->rank != 3)
        return kiln_check_throw(check, 0, "rank 3", error);
    kiln_check_known(check, 1, out->dims, 2);
    return TRUE;
}

static gboolean
check_eye_like(KilnCheck *check, GError **error)
{
    return kiln_check_type(check, 0)->rank == 2 || kiln_check_throw(check, 0, "rank 2", error);
}

static gboolean
check_resize(KilnCheck *check, GError **error)
{
    const KilnInstrAttrs_resize *attrs = kiln_instr_attrs(check->instr, resize);
    const KilnType *out = kiln_check_type(check, 0), *in = kiln_check_type(check, 1);
    const char *transform = attrs->coordinate_transformation_mode;
    uint32_t rank = (uint32_t)in->rank;
    if (!check_alike(check, error) ||
        !kiln_infer_one_of("mode", attrs->mode, "nearest linear cubic", error) ||
        !kiln_infer_one_of("coordinate_transformation_mode", transform,
                           "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners "
                           "asymmetric tf_crop_and_resize tf_half_pixel_for_nn",
                           error) ||
        !kiln_infer_one_of("nearest_mode", attrs->nearest_mode,
                           "round_prefer_floor round_prefer_ceil floor ceil", error) ||
        !kiln_check_length(check, "scales", rank, true, error) ||
        !kiln_check_length(check, "roi", 2 * rank, !g_str_equal(transform, "tf_crop_and_resize"),
                           error))
        return FALSE;
    for (uint32_t d = 0; d < attrs->scales.n; d++) {
        if (!isfinite(attrs->scales.v[d]) || attrs->scales.v[d] <= 0)
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "scales: expected finite numbers above 0, found %g",
                              (double)attrs->scales.v[d]);
    }
    if (kiln_type_elements(out) && !kiln_type_elements(in))
        return kiln_check_throw(check, 0, "no elements, as operand 1 has none", error);
    return TRUE;
}

/* --- signals --- */

static gboolean
prepare_dft(KilnCheck *check, GError **error)
{
    if (!kiln_check_length(check, "length", 1, false, error))
        return FALSE;
    kiln_check_known(check, 1, ints(check, "length")->v, 1);
    kiln_check_known(check, 2, &kiln_instr_attrs(check->instr, dft)->axis, 1);
    return TRUE;
}

static gboolean
check_mel_weight_matrix(KilnCheck *check, GError **error)
{
    if (kiln_check_type(check, 0)->rank != 2)
        return kiln_check_throw(check, 0, "rank 2", error);
    for (uint32_t i = 1; i <= 5; i++) {
        const KilnType *scalar = kiln_check_type(check, i);
        bool integer = scalar->dtype == KILN_DTYPE_i32 || scalar->dtype == KILN_DTYPE_i64;
        if (kiln_type_elements(scalar) != 1 ||
            !(i <= 3 ? integer : kiln_dtype_is_float(scalar->dtype)))
            return kiln_check_throw(check, i, i <= 3 ? "one index" : "one float", error);
    }
    return TRUE;
}

/* --- the rest --- */

static gboolean
prepare_cast(KilnCheck *check, GError **error)
{
    (void)error;
    *(KilnDType *)kiln_check_attr(check, "to") = kiln_check_type(check, 0)->dtype;
    return TRUE;
}

/* The right operand of a product of f32 may be stored in 16 bits: it counts as cast. */
static gboolean
prepare_product(KilnCheck *check, GError **error)
{
    const KilnType *out = kiln_check_type(check, 0), *left = kiln_check_type(check, 1);
    if (kiln_dtype_is_float(out->dtype) && left->dtype != out->dtype)
        return kiln_check_throw(check, 1, "the element type of operand 0", error);
    KilnType *right = &check->node.operands[1].value->type;
    bool stored = right->dtype == KILN_DTYPE_bf16 || right->dtype == KILN_DTYPE_f16;
    if (left->dtype == KILN_DTYPE_f32 && stored && !right->quant)
        right->dtype = KILN_DTYPE_f32;
    return TRUE;
}

static gboolean
check_random(KilnCheck *check, GError **error)
{
    return kiln_dtype_is_float(kiln_check_type(check, 0)->dtype) ||
           kiln_check_throw(check, 0, "floats", error);
}

static gboolean
check_rescale(KilnCheck *check, GError **error)
{
    return kiln_check_same_shape(check, 0, 1, error);
}

/* One of the two is the blocked form of the other. */
static gboolean
check_pack(KilnCheck *check, GError **error)
{
    return check_alike(check, error) && kiln_check_same_shape(check, 0, 1, error);
}

/* The columns of both ops are alike (graph/ops/plugin.def). */
static gboolean
prepare_plugin(KilnCheck *check, GError **error)
{
    G_STATIC_ASSERT(sizeof(KilnAttrs_plugin_op) == sizeof(KilnAttrs_plugin_effect));
    if (kiln_instr_attrs(check->instr, plugin_op)->effect)
        check->node.op = KILN_OP_plugin_effect;
    if (check->instr->operands[0].access != KILN_ACCESS_OUT)
        return kiln_throw(error, KILN_ERROR_INVALID, "operand 0: expected @out, found @in");
    return TRUE;
}

// clang-format off
static const KilnInstrCheck rows[KILN_N_INSTRS] = {
    [KILN_INSTR_copy]  = { .alone = check_copy, .items = true },
    [KILN_INSTR_stack] = { .alone = kiln_check_stack },
    [KILN_INSTR_call]  = { .alone = kiln_check_call },
    [KILN_INSTR_branch] = { .alone = kiln_check_branch, .items = true },
    [KILN_INSTR_loop]  = { .alone = kiln_check_loop, .items = true },
    [KILN_INSTR_refuse] = { .alone = kiln_check_refuse, .items = true },
    [KILN_INSTR_take]  = { .alone = kiln_check_take, .items = true },
    [KILN_INSTR_cast]  = { .prepare = prepare_cast },
    [KILN_INSTR_matmul] = { .prepare = prepare_product },
    [KILN_INSTR_gemm]   = { .prepare = prepare_product },

    [KILN_INSTR_reduce_l1]          = { .prepare = prepare_reduce },
    [KILN_INSTR_reduce_l2]          = { .prepare = prepare_reduce },
    [KILN_INSTR_reduce_log_sum]     = { .prepare = prepare_reduce },
    [KILN_INSTR_reduce_log_sum_exp] = { .prepare = prepare_reduce },
    [KILN_INSTR_reduce_max]         = { .prepare = prepare_reduce },
    [KILN_INSTR_reduce_mean]        = { .prepare = prepare_reduce },
    [KILN_INSTR_reduce_min]         = { .prepare = prepare_reduce },
    [KILN_INSTR_reduce_prod]        = { .prepare = prepare_reduce },
    [KILN_INSTR_reduce_sum]         = { .prepare = prepare_reduce },
    [KILN_INSTR_reduce_sum_square]  = { .prepare = prepare_reduce },
    [KILN_INSTR_arg_max] = { .prepare = prepare_arg },
    [KILN_INSTR_arg_min] = { .prepare = prepare_arg },
    [KILN_INSTR_cum_prod] = { .prepare = prepare_cumulative },
    [KILN_INSTR_cum_sum] = { .prepare = prepare_cumulative },
    [KILN_INSTR_top_k]   = { .prepare = prepare_top_k },
    [KILN_INSTR_one_hot] = { .prepare = prepare_one_hot },
    [KILN_INSTR_mean_variance_normalization] = { .prepare = prepare_mean_variance },

    [KILN_INSTR_conv]           = { .prepare = check_conv },
    [KILN_INSTR_conv_integer]   = { .prepare = check_steps },
    [KILN_INSTR_qlinear_conv]   = { .prepare = check_steps },
    [KILN_INSTR_deform_conv]    = { .prepare = check_steps },
    [KILN_INSTR_conv_transpose] = { .prepare = prepare_conv_transpose },
    [KILN_INSTR_col2im]         = { .prepare = prepare_col2im },
    [KILN_INSTR_max_pool]       = { .alone = check_pool },
    [KILN_INSTR_average_pool]   = { .alone = check_pool },
    [KILN_INSTR_lp_pool]        = { .alone = check_pool },
    [KILN_INSTR_max_unpool]     = { .prepare = prepare_max_unpool },
    [KILN_INSTR_rnn]  = { .prepare = prepare_recurrent },
    [KILN_INSTR_gru]  = { .prepare = prepare_recurrent },
    [KILN_INSTR_lstm] = { .prepare = prepare_recurrent },

    [KILN_INSTR_transpose] = { .prepare = prepare_transpose },
    [KILN_INSTR_slice]     = { .alone = check_slice },
    [KILN_INSTR_pad]       = { .prepare = prepare_pad },
    [KILN_INSTR_expand]    = { .prepare = prepare_expand },
    [KILN_INSTR_tensor_scatter] = { .alone = check_tensor_scatter },
    [KILN_INSTR_tile]      = { .alone = check_tile },
    [KILN_INSTR_range]     = { .alone = check_range },
    [KILN_INSTR_eye_like]  = { .alone = check_eye_like },
    [KILN_INSTR_extents]   = { .alone = check_extents },
    [KILN_INSTR_define]    = { .alone = check_define },
    [KILN_INSTR_non_zero]  = { .alone = check_non_zero },
    [KILN_INSTR_non_max_suppression] = { .alone = check_suppression },
    [KILN_INSTR_unique]    = { .alone = check_unique },
    [KILN_INSTR_string_parts]      = { .alone = check_string_parts },
    [KILN_INSTR_string_split]      = { .alone = check_string_split },
    [KILN_INSTR_token_count]       = { .alone = check_token_count },
    [KILN_INSTR_tokenizer]         = { .alone = check_tokenizer },
    [KILN_INSTR_string_normalizer] = { .alone = check_string_normalizer },
    [KILN_INSTR_item_none] = { .alone = kiln_check_items, .items = true },
    [KILN_INSTR_item_list] = { .alone = kiln_check_items, .items = true },
    [KILN_INSTR_item_dims] = { .alone = kiln_check_items, .items = true },
    [KILN_INSTR_sequence_insert] = { .alone = kiln_check_items, .items = true },
    [KILN_INSTR_sequence_erase] = { .alone = kiln_check_items, .items = true },
    [KILN_INSTR_sequence_at] = { .alone = kiln_check_items, .items = true },
    [KILN_INSTR_sequence_length] = { .alone = kiln_check_items, .items = true },
    [KILN_INSTR_split_to_sequence] = { .alone = kiln_check_items, .items = true },
    [KILN_INSTR_concat_dims] = { .alone = kiln_check_items, .items = true },
    [KILN_INSTR_concat_from_sequence] = { .alone = kiln_check_items, .items = true },
    [KILN_INSTR_optional_has_element] = { .alone = kiln_check_items, .items = true },
    [KILN_INSTR_optional_get_element] = { .alone = kiln_check_items, .items = true },
    [KILN_INSTR_zip_map] = { .alone = kiln_check_items, .items = true },
    [KILN_INSTR_map_length] = { .alone = kiln_check_items, .items = true },
    [KILN_INSTR_cast_map] = { .alone = kiln_check_items, .items = true },
    [KILN_INSTR_dict_vectorizer] = { .alone = kiln_check_items, .items = true },
    [KILN_INSTR_affine_grid] = { .prepare = prepare_affine_grid },
    [KILN_INSTR_image_decoder] = { .prepare = prepare_image_decoder },
    [KILN_INSTR_resize]    = { .alone = check_resize },
    [KILN_INSTR_pack]      = { .alone = check_pack },
    [KILN_INSTR_unpack]    = { .alone = check_pack },

    [KILN_INSTR_dft] = { .prepare = prepare_dft },
    [KILN_INSTR_mel_weight_matrix] = { .alone = check_mel_weight_matrix },

    [KILN_INSTR_plugin_op] = { .prepare = prepare_plugin },

    [KILN_INSTR_rescale_quantized] = { .alone = check_rescale },
    [KILN_INSTR_random_normal]     = { .alone = check_random },
    [KILN_INSTR_random_uniform]    = { .alone = check_random },
};
// clang-format on

const KilnInstrCheck *
kiln_instr_check_of(KilnInstrKind kind)
{
    return &rows[kind];
}
