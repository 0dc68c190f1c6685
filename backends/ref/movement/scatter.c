/* SPDX-License-Identifier: Apache-2.0 */
/* scatter_elements, scatter_nd, tensor_scatter: the data with some elements replaced by updates, or
 * combined with them. Updates are applied in the order of the indices: of duplicates the last one
 * stays, sums take all. Sums and products of floats are kept in double and rounded once at the end;
 * max and min give NaN where either side is; on bool, add and max are "or", mul and min are "and".
 * An index out of range is an error text. */
#include "backends/ref/kernel.h"

#include <math.h>

static const char out_of_range[] = "an index is out of range";

typedef enum {
    NONE,
    ADD,
    MUL,
    MAXIMUM,
    MINIMUM,
} Reduction;

static Reduction
reduction_of(const char *name)
{
    return strcmp(name, "add") == 0   ? ADD
           : strcmp(name, "mul") == 0 ? MUL
           : strcmp(name, "max") == 0 ? MAXIMUM
           : strcmp(name, "min") == 0 ? MINIMUM
                                      : NONE;
}

/* Where updates go: the result itself, or doubles that are rounded into it at the end. */
typedef struct {
    KilnDType dtype;
    Reduction reduction;
    void *result;
    double *wide; /* NULL: combine in the result */
    const void *updates;
} Scatter;

static double
combine_floats(Reduction reduction, double a, double b)
{
    switch (reduction) {
    case ADD:
        return a + b;
    case MUL:
        return a * b;
    case MAXIMUM:
        return isnan(a) || a > b ? a : b;
    case MINIMUM:
        return isnan(a) || a < b ? a : b;
    default:
        return b;
    }
}

static RefValue
combine_ints(const Scatter *to, RefValue a, RefValue b)
{
    bool less = ref_class(to->dtype) == REF_SIGNED ? a.s < b.s : a.u < b.u;
    if (to->dtype == KILN_DTYPE_bool && (to->reduction == ADD || to->reduction == MUL))
        return (RefValue){ .u = to->reduction == ADD ? a.u | b.u : a.u & b.u };
    switch (to->reduction) {
    case ADD:
        return (RefValue){ .u = a.u + b.u };
    case MUL:
        return (RefValue){ .u = a.u * b.u };
    case MAXIMUM:
        return less ? b : a;
    case MINIMUM:
        return less ? a : b;
    default:
        return b;
    }
}

/* Applies update @from to element @at. */
static void
apply(const Scatter *to, int64_t at, int64_t from)
{
    if (to->reduction == NONE) {
        ref_copy_element(to->result, at, to->updates, from, kiln_dtype_size(to->dtype));
        return;
    }
    RefValue update = ref_load(to->dtype, to->updates, from);
    if (to->wide) {
        to->wide[at] = combine_floats(to->reduction, to->wide[at], update.f);
        return;
    }
    RefValue value = ref_load(to->dtype, to->result, at);
    if (kiln_dtype_is_float(to->dtype))
        value.f = combine_floats(to->reduction, value.f, update.f);
    else
        value = combine_ints(to, value, update);
    ref_store(to->dtype, to->result, at, value);
}

static bool
needs_wide(const KilnInstr *instr, const char *reduction)
{
    Reduction kind = reduction_of(reduction);
    return (kind == ADD || kind == MUL) &&
           kiln_dtype_is_float(kiln_instr_operand(instr, 0)->type.dtype);
}

static size_t
wide_bytes(const KilnInstr *instr, const char *reduction)
{
    if (!needs_wide(instr, reduction))
        return 0;
    return (size_t)kiln_type_elements(&kiln_instr_operand(instr, 0)->type) * sizeof(double);
}

size_t
kiln_ref_scatter_elements_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    return wide_bytes(instr, kiln_instr_attrs(instr, scatter_elements)->reduction);
}

size_t
kiln_ref_scatter_nd_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    return wide_bytes(instr, kiln_instr_attrs(instr, scatter_nd)->reduction);
}

/* Copies the data to where the updates will go. operands: result, data, indices, updates */
static Scatter
begin(const KilnKernelArgs *args, const char *reduction)
{
    const KilnType *type = ref_type(args, 0);
    Scatter to = { .dtype = type->dtype,
                   .reduction = reduction_of(reduction),
                   .result = args->data[0],
                   .wide = needs_wide(args->instr, reduction) ? args->scratch : NULL,
                   .updates = args->data[3] };
    int64_t n = ref_elements(type);
    for (int64_t i = 0; to.wide && i < n; i++)
        to.wide[i] = ref_load_float(to.dtype, args->data[1], i);
    if (args->data[0] != args->data[1] && n > 0)
        memcpy(args->data[0], args->data[1], (size_t)n * kiln_dtype_size(type->dtype));
    return to;
}

static void
end(const Scatter *to, int64_t n)
{
    for (int64_t i = 0; to->wide && i < n; i++)
        ref_store_float(to->dtype, to->result, i, to->wide[i]);
}

const char *
kiln_ref_scatter_elements(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_scatter_elements *attrs = kiln_instr_attrs(args->instr, scatter_elements);
    const KilnType *data = ref_type(args, 1), *indices = ref_type(args, 2);
    int axis = kiln_type_axis(data, attrs->axis);
    int64_t strides[KILN_MAX_RANK], index[KILN_MAX_RANK] = { 0 };
    ref_strides(data, strides);
    Scatter to = begin(args, attrs->reduction);
    int64_t n = ref_elements(indices), extent = data->dims[axis];
    for (int64_t i = 0; i < n; i++) {
        int64_t at = ref_load_int(indices->dtype, args->data[2], i);
        if (at < -extent || at >= extent)
            return out_of_range;
        at += at < 0 ? extent : 0;
        apply(&to, ref_offset(index, strides, data->rank) + (at - index[axis]) * strides[axis], i);
        ref_next(index, indices->dims, indices->rank);
    }
    end(&to, ref_elements(data));
    return NULL;
}

/* Each tuple of the indices' last dim names a slice of the data, which takes a slice of updates. */
const char *
kiln_ref_scatter_nd(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_scatter_nd *attrs = kiln_instr_attrs(args->instr, scatter_nd);
    const KilnType *data = ref_type(args, 1), *indices = ref_type(args, 2);
    int64_t depth = indices->dims[indices->rank - 1];
    int64_t tuples = ref_count(indices->dims, 0, indices->rank - 1);
    int64_t slice = ref_count(data->dims, (int)depth, data->rank);
    Scatter to = begin(args, attrs->reduction);
    for (int64_t t = 0; t < tuples; t++) {
        int64_t at = 0;
        for (int64_t k = 0; k < depth; k++) {
            int64_t extent = data->dims[k];
            int64_t coordinate = ref_load_int(indices->dtype, args->data[2], t * depth + k);
            if (coordinate < -extent || coordinate >= extent)
                return out_of_range;
            at = at * extent + coordinate + (coordinate < 0 ? extent : 0);
        }
        for (int64_t i = 0; i < slice; i++)
            apply(&to, at * slice + i, t * slice + i);
    }
    end(&to, ref_elements(data));
    return NULL;
}

/* The update of a sample begins where the sample's index says; a circular one goes on at the begin.
 */
const char *
kiln_ref_tensor_scatter(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_tensor_scatter *attrs = kiln_instr_attrs(args->instr, tensor_scatter);
    const KilnType *cache = ref_type(args, 1), *update = ref_type(args, 2);
    const bool circular = strcmp(attrs->mode, "circular") == 0;
    const RefSplit to = ref_split(cache, attrs->axis), from = ref_split(update, attrs->axis);
    const size_t row = (size_t)to.inner * kiln_dtype_size(cache->dtype);
    const int64_t per_sample = cache->dims[0] ? to.outer / cache->dims[0] : 0;
    if (from.axis > to.axis)
        return out_of_range;
    if (args->data[0] != args->data[1] && row > 0)
        memcpy(args->data[0], args->data[1], (size_t)(to.outer * to.axis) * row);
    for (int64_t i = 0; i < to.outer * from.axis; i++) {
        const int64_t outer = i / from.axis, step = i % from.axis;
        int64_t at = 0;
        if (ref_has(args, 3))
            at = ref_load_int(KILN_DTYPE_i64, args->data[3], outer / per_sample);
        if (circular)
            at = ((at % to.axis) + to.axis) % to.axis;
        if (at < 0 || (!circular && at > to.axis - from.axis))
            return out_of_range;
        ref_copy_element(args->data[0], outer * to.axis + (at + step) % to.axis, args->data[2], i,
                         row);
    }
    return NULL;
}
