/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_*: the elements of each group in row-major order into one.
 *
 * Floats are accumulated in double and rounded once. Integers are accumulated in 64 bits, which
 * wrap; roots and logarithms of integers go through double, truncated and saturated; the mean of
 * integers truncates. Over no elements: 0 for sums, 1 for the product, the least (greatest) value
 * of the type for max (min), log 0 for the logarithms, 0/0 for the mean: NaN, or for integers an
 * error. Without axes every element is a group of its own. */
#include "backends/ref/reduce/reduce.h"

#include "backends/ref/elementwise/scalar.h"
#include "backends/ref/kernel.h"
#include "backends/ref/reduce/groups.h"
#include "ir/kernel.h"

#include <float.h>
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

/* Stores the result of a group whose elements come to @folded. */
static const char *
finish_int(KilnInstrKind kind, const RefGroup *group, uint64_t folded, void *out, int64_t i)
{
    const bool is_signed = kiln_dtype_is_signed(group->dtype);
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
    return finish_int(kind, group, folded, out, i);
}

/* --- equal elements --- */

enum {
    MOST_STEPS = 1 << 24 /* a moment */
};

static bool
same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* How many further additions of @step, which is exact, leave @sum below the next power of two. */
static int64_t
steps_to_next_power(double sum, double step)
{
    int exponent;
    frexp(sum, &exponent);
    const double last_place = ldexp(1, MAX(exponent - DBL_MANT_DIG, DBL_MIN_EXP - DBL_MANT_DIG));
    const double below = ldexp(1, exponent) - last_place;
    return (int64_t)((below - fabs(sum)) / last_place) / (int64_t)(fabs(step) / last_place);
}

/* The sum that adding @t @n times to @sum comes to, each time rounded. As long as the sum stays
 * between two powers of two, its last place is the same. Once two additions in a row have made the
 * same step, all that follow do: what is left to be rounded is the same, and a tie goes to an even
 * place each time. */
static double
add_repeatedly(double sum, double t, int64_t n)
{
    while (n > 0) {
        const double first = sum + t, second = first + t, third = second + t;
        if (same_bits(first, second)) /* as all further ones are */
            return first;
        sum = n < 3 ? first : third;
        n -= n < 3 ? 1 : 3;
        const bool alike = isfinite(third) && ilogb(first) == ilogb(third);
        if (!alike || sum != third || second - first != third - second)
            continue;
        const int64_t steps = MIN(n, steps_to_next_power(third, third - second));
        sum += (double)steps * (third - second);
        n -= steps;
    }
    return sum;
}

/* False where it takes too many steps. */
static bool
fold_equal(KilnInstrKind kind, double x, int64_t n, double *out)
{
    const double start = kiln_ref_fold_start(kind);
    *out = kiln_ref_fold(kind, start, x);
    switch (kind) {
    case KILN_INSTR_reduce_max:
    case KILN_INSTR_reduce_min:
        return true;
    case KILN_INSTR_reduce_prod:
        break;
    default:
        *out = add_repeatedly(start, *out, n);
        return true;
    }
    /* Products of many factors come to 0, an infinity or NaN, or change sign for ever. */
    for (int64_t i = 1; i < n; i++) {
        const double next = kiln_ref_fold(kind, *out, x);
        const double further = kiln_ref_fold(kind, next, x);
        if (same_bits(*out, further)) {
            *out = (n - i) % 2 ? next : *out;
            return true;
        }
        *out = next;
        if (i == MOST_STEPS)
            return false;
    }
    return true;
}

static double
log_sum_exp_equal(double x, int64_t n)
{
    const double max = ref_max(-INFINITY, x);
    return log_sum_exp(max, add_repeatedly(0, exp(x - max), n));
}

static uint64_t
fold_int_equal(KilnInstrKind kind, bool is_signed, uint64_t start, uint64_t x, int64_t n)
{
    uint64_t once = fold_int(kind, is_signed, start, x);
    switch (kind) {
    case KILN_INSTR_reduce_max:
    case KILN_INSTR_reduce_min:
        return once;
    case KILN_INSTR_reduce_prod:
        for (once = start; n > 0; n /= 2, x *= x)
            once = n % 2 ? once * x : once;
        return once;
    default:
        return once * (uint64_t)n; /* of sums, which begin at 0 and wrap */
    }
}

bool
kiln_ref_reduce_equal(const KilnInstr *instr, const void *element, void *result)
{
    const KilnInstrKind kind = instr->kind;
    const KilnType *type = &kiln_instr_operand(instr, 1)->type;
    const RefGroup group =
        ref_groups(type, element, kiln_instr_attrs(instr, reduce_sum)->axes).group;
    const bool is_float = kiln_dtype_is_float(type->dtype);
    const double x = kiln_element_as_f64(type->dtype, element, 0);
    if (kind == KILN_INSTR_reduce_log_sum_exp) {
        const double folded = log_sum_exp_equal(x, group.count);
        if (is_float)
            ref_store_float(type->dtype, result, 0, folded);
        else
            kiln_element_store_f64(type->dtype, result, 0, folded);
        return true;
    }
    if (!is_float) {
        const bool is_signed = kiln_dtype_is_signed(type->dtype);
        const uint64_t folded =
            fold_int_equal(kind, is_signed, start_int(kind, type->dtype),
                           (uint64_t)ref_load_int(type->dtype, element, 0), group.count);
        return !finish_int(kind, &group, folded, result, 0);
    }
    double folded;
    if (!fold_equal(kind, ref_load_float(type->dtype, element, 0), group.count, &folded))
        return false;
    ref_store_float(type->dtype, result, 0, kiln_ref_fold_finish(kind, folded, group.count));
    return true;
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
