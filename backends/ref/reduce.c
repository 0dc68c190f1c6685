/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_*: the elements of each group in row-major order into one.
 *
 * Floats are accumulated in double and rounded once. Integers are accumulated in 64 bits, which
 * wrap; roots and logarithms of integers go through double, truncated and saturated; the mean of
 * integers truncates. Over no elements: 0 for sums, 1 for the product, the least (greatest) value
 * of the type for max (min), log 0 for the logarithms, 0/0 for the mean: NaN, or for integers an
 * error. Without axes every element is a group of its own. */
#include "backends/ref/reduce.h"

#include "backends/ref/groups.h"
#include "backends/ref/scalar.h"

#include <math.h>

/* --- floats --- */

static double
log_sum_exp(double max, double sum)
{
    return isinf(max) ? max : max + log(sum);
}

double
kiln_ref_fold(KilnInstrKind kind, double folded, double x)
{
    switch (kind) {
    case KILN_INSTR_reduce_l1:
        return folded + fabs(x);
    case KILN_INSTR_reduce_l2:
    case KILN_INSTR_reduce_sum_square:
        return folded + x * x;
    case KILN_INSTR_reduce_max:
    case KILN_INSTR_global_max_pool:
        return ref_max(folded, x);
    case KILN_INSTR_reduce_min:
        return ref_min(folded, x);
    case KILN_INSTR_reduce_prod:
        return folded * x;
    default:
        return folded + x;
    }
}

double
kiln_ref_fold_start(KilnInstrKind kind)
{
    switch (kind) {
    case KILN_INSTR_reduce_max:
    case KILN_INSTR_global_max_pool:
        return -INFINITY;
    case KILN_INSTR_reduce_min:
        return INFINITY;
    default:
        return kind == KILN_INSTR_reduce_prod;
    }
}

double
kiln_ref_fold_finish(KilnInstrKind kind, double folded, int64_t count)
{
    switch (kind) {
    case KILN_INSTR_reduce_l2:
        return sqrt(folded);
    case KILN_INSTR_reduce_log_sum:
        return log(folded);
    case KILN_INSTR_reduce_mean:
    case KILN_INSTR_global_average_pool:
        return folded / (double)count;
    default:
        return folded;
    }
}

static double
element_as_double(const RefGroup *group, int64_t offset)
{
    return kiln_element_as_f64(group->dtype, group->data, offset);
}

/* The largest element is taken out of the exponents, so that they do not overflow. */
static double
reduce_log_sum_exp(const RefGroup *group)
{
    double max = -INFINITY, sum = 0;
    ref_foreach_element (group, offset)
        max = ref_max(max, element_as_double(group, offset));
    ref_foreach_element (group, offset)
        sum += exp(element_as_double(group, offset) - max);
    return log_sum_exp(max, sum);
}

static double
reduce_float(KilnInstrKind kind, const RefGroup *group)
{
    if (kind == KILN_INSTR_reduce_log_sum_exp)
        return reduce_log_sum_exp(group);
    double folded = kiln_ref_fold_start(kind);
    ref_foreach_element (group, offset)
        folded = kiln_ref_fold(kind, folded, ref_load_float(group->dtype, group->data, offset));
    return kiln_ref_fold_finish(kind, folded, group->count);
}

/* --- integers and bools --- */

static uint64_t
fold_int(KilnInstrKind kind, bool is_signed, uint64_t folded, uint64_t x)
{
    switch (kind) {
    case KILN_INSTR_reduce_l1:
        return folded + (is_signed && (int64_t)x < 0 ? 0 - x : x);
    case KILN_INSTR_reduce_l2:
    case KILN_INSTR_reduce_sum_square:
        return folded + x * x;
    case KILN_INSTR_reduce_max:
        return (is_signed ? (int64_t)x > (int64_t)folded : x > folded) ? x : folded;
    case KILN_INSTR_reduce_min:
        return (is_signed ? (int64_t)x < (int64_t)folded : x < folded) ? x : folded;
    case KILN_INSTR_reduce_prod:
        return folded * x;
    default:
        return folded + x;
    }
}

static uint64_t
start_int(KilnInstrKind kind, KilnDType dtype)
{
    const unsigned bits = dtype == KILN_DTYPE_bool ? 1 : 8 * (unsigned)kiln_dtype_size(dtype);
    const uint64_t ones = UINT64_MAX >> (64 - bits);
    const bool is_signed = kiln_dtype_is_signed(dtype);
    switch (kind) {
    case KILN_INSTR_reduce_max:
        return is_signed ? ~(ones >> 1) : 0;
    case KILN_INSTR_reduce_min:
        return is_signed ? ones >> 1 : ones;
    default:
        return kind == KILN_INSTR_reduce_prod;
    }
}

static const char *
reduce_int(KilnInstrKind kind, const RefGroup *group, void *out, int64_t i)
{
    const bool is_signed = kiln_dtype_is_signed(group->dtype);
    if (kind == KILN_INSTR_reduce_log_sum_exp) {
        kiln_element_store_f64(group->dtype, out, i, reduce_log_sum_exp(group));
        return NULL;
    }
    uint64_t folded = start_int(kind, group->dtype);
    ref_foreach_element (group, offset)
        folded = fold_int(kind, is_signed, folded,
                          (uint64_t)ref_load_int(group->dtype, group->data, offset));
    const double as_double = is_signed ? (double)(int64_t)folded : (double)folded;
    switch (kind) {
    case KILN_INSTR_reduce_l2:
    case KILN_INSTR_reduce_log_sum:
        kiln_element_store_f64(group->dtype, out, i,
                               kiln_ref_fold_finish(kind, as_double, group->count));
        return NULL;
    case KILN_INSTR_reduce_mean:
        if (group->count == 0)
            return "mean of no integers";
        folded = is_signed ? (uint64_t)((int64_t)folded / group->count)
                           : folded / (uint64_t)group->count;
        break;
    default:
        break;
    }
    ref_store_int(group->dtype, out, i, (int64_t)folded);
    return NULL;
}

const char *
kiln_ref_reduce(const KilnKernelArgs *args)
{
    const KilnInstrKind kind = args->instr->kind;
    const KilnType *type = ref_type(args, 1);
    /* The attributes of all reductions are the axes alone. */
    const KilnInts axes = kiln_instr_attrs(args->instr, reduce_sum)->axes;
    RefGroups groups = ref_groups(type, args->data[1], axes);
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < groups.count; i++, ref_next(index, groups.dims, groups.rank)) {
        groups.group.base = ref_offset(index, groups.strides, groups.rank);
        if (kiln_dtype_is_float(type->dtype)) {
            ref_store_float(type->dtype, args->data[0], i, reduce_float(kind, &groups.group));
            continue;
        }
        const char *error = reduce_int(kind, &groups.group, args->data[0], i);
        if (error)
            return error;
    }
    return NULL;
}
