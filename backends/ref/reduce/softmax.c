/* SPDX-License-Identifier: Apache-2.0 */
/* softmax, log_softmax, cum_sum and cum_prod: along one axis, in double, rounded once per element.
 * In place is allowed: statistics are taken before the first element is written. */
#include "backends/ref/elementwise/scalar.h"
#include "backends/ref/kernel.h"
#include "ir/kernel.h"

#include <math.h>

typedef struct {
    double max, sum; /* of the line; sum of exp(x - max) */
} Statistics;

static Statistics
line_statistics(const KilnKernelArgs *args, RefSplit split, int64_t base)
{
    const KilnDType dtype = ref_type(args, 1)->dtype;
    Statistics line = { -INFINITY, 0 };
    for (int64_t k = 0; k < split.axis; k++)
        line.max = ref_max(line.max, ref_load_float(dtype, args->data[1], base + k * split.inner));
    for (int64_t k = 0; k < split.axis; k++)
        line.sum += exp(ref_load_float(dtype, args->data[1], base + k * split.inner) - line.max);
    return line;
}

static const char *
softmax(const KilnKernelArgs *args, int64_t axis, bool logarithm)
{
    const KilnType *type = ref_type(args, 1);
    const RefSplit split = ref_split(type, axis);
    for (int64_t i = 0; i < split.outer * split.inner; i++) {
        const int64_t base = i / split.inner * split.axis * split.inner + i % split.inner;
        const Statistics line = line_statistics(args, split, base);
        for (int64_t k = 0; k < split.axis; k++) {
            const int64_t at = base + k * split.inner;
            double below = ref_load_float(type->dtype, args->data[1], at) - line.max;
            ref_store_float(type->dtype, args->data[0], at,
                            logarithm ? below - log(line.sum) : exp(below) / line.sum);
        }
    }
    return NULL;
}

const char *
kiln_ref_softmax(const KilnKernelArgs *args)
{
    return softmax(args, kiln_instr_attrs(args->instr, softmax)->axis, false);
}

const char *
kiln_ref_log_softmax(const KilnKernelArgs *args)
{
    return softmax(args, kiln_instr_attrs(args->instr, log_softmax)->axis, true);
}

typedef struct {
    KilnInstrKind op; /* what combines an element with those in front of it */
    int64_t neutral, axis;
    bool exclusive, reverse;
} Running;

/* Running sums and products stay in double (integers: 64 bits): each result is rounded from the
 * exact running number, not from the result before it. */
static const char *
run_along(const KilnKernelArgs *args, const Running *running)
{
    const KilnType *type = ref_type(args, 1);
    const RefClass class = ref_class(type->dtype);
    const RefSplit split = ref_split(type, running->axis);
    const RefBinary *op = kiln_ref_binary_op(running->op);
    for (int64_t i = 0; i < split.outer * split.inner; i++) {
        const int64_t base = i / split.inner * split.axis * split.inner + i % split.inner;
        RefValue all = { .s = running->neutral };
        if (class == REF_FLOAT)
            all.f = (double)running->neutral;
        for (int64_t k = 0; k < split.axis; k++) {
            const int64_t step = running->reverse ? split.axis - 1 - k : k;
            const int64_t at = base + step * split.inner;
            RefValue before = all, x = ref_load(type->dtype, args->data[1], at);
            kiln_ref_apply_binary(op, NULL, class, (RefValue[]){ all, x }, &all);
            ref_store(type->dtype, args->data[0], at, running->exclusive ? before : all);
        }
    }
    return NULL;
}

const char *
kiln_ref_cum_sum(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_cum_sum *attrs = kiln_instr_attrs(args->instr, cum_sum);
    return run_along(
        args, &(Running){ KILN_INSTR_add, 0, attrs->axis, attrs->exclusive, attrs->reverse });
}

const char *
kiln_ref_cum_prod(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_cum_prod *attrs = kiln_instr_attrs(args->instr, cum_prod);
    return run_along(
        args, &(Running){ KILN_INSTR_mul, 1, attrs->axis, attrs->exclusive, attrs->reverse });
}
