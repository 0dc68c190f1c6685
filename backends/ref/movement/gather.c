/* SPDX-License-Identifier: Apache-2.0 */
/* gather, gather_elements, gather_nd: elements chosen by indices of i32 or i64, which count from
 * the end where they are negative. An index out of range is an error text. */
#include "backends/ref/kernel.h"
#include "backends/ref/movement/nest.h"

static const char out_of_range[] = "an index is out of range";

/* Index @i of @data in [0, extent), or -1. */
static int64_t
index_at(const KilnType *type, const void *data, int64_t i, int64_t extent)
{
    int64_t index = ref_load_int(type->dtype, data, i);
    if (index < -extent || index >= extent)
        return -1;
    return index < 0 ? index + extent : index;
}

/* The result has the dims of the indices in place of the axis. */
const char *
kiln_ref_gather(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_gather *attrs = kiln_instr_attrs(args->instr, gather);
    const KilnType *data = ref_type(args, 1), *indices = ref_type(args, 2);
    size_t size = kiln_dtype_size(data->dtype);
    RefSplit split = ref_split(data, attrs->axis);
    int64_t n = ref_elements(indices);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = index_at(indices, args->data[2], i, split.axis);
        if (at < 0)
            return out_of_range;
        RefNest nest = { 0 };
        ref_nest_add(&nest, split.outer, n * split.inner, split.axis * split.inner);
        ref_nest_add(&nest, split.inner, 1, 1);
        kiln_ref_nest_copy(&nest, ref_at_out(args->data[0], i * split.inner, size),
                           ref_at(args->data[1], at * split.inner, size), size);
    }
    return NULL;
}

/* The result has the shape of the indices: each replaces its own coordinate along the axis. */
const char *
kiln_ref_gather_elements(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_gather_elements *attrs = kiln_instr_attrs(args->instr, gather_elements);
    const KilnType *data = ref_type(args, 1), *indices = ref_type(args, 2);
    size_t size = kiln_dtype_size(data->dtype);
    int axis = kiln_type_axis(data, attrs->axis);
    int64_t from[KILN_MAX_RANK], index[KILN_MAX_RANK] = { 0 };
    ref_strides(data, from);
    int64_t n = ref_elements(indices);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = index_at(indices, args->data[2], i, data->dims[axis]);
        if (at < 0)
            return out_of_range;
        int64_t offset = ref_offset(index, from, data->rank) + (at - index[axis]) * from[axis];
        ref_copy_element(args->data[0], i, args->data[1], offset, size);
        ref_next(index, indices->dims, indices->rank);
    }
    return NULL;
}

/* The last dim of the indices holds coordinates of the first dims of the data after the batch dims;
 * each tuple chooses the slice of the dims that it leaves. */
const char *
kiln_ref_gather_nd(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_gather_nd *attrs = kiln_instr_attrs(args->instr, gather_nd);
    const KilnType *data = ref_type(args, 1), *indices = ref_type(args, 2);
    int batch_dims = (int)attrs->batch_dims, rank = indices->rank - 1;
    int64_t depth = indices->dims[rank];
    int64_t batches = ref_count(data->dims, 0, batch_dims);
    int64_t tuples = ref_count(indices->dims, batch_dims, rank); /* per batch */
    int64_t batch_size = ref_count(data->dims, batch_dims, data->rank);
    int64_t slice = ref_count(data->dims, batch_dims + (int)depth, data->rank);
    size_t size = kiln_dtype_size(data->dtype);
    for (int64_t t = 0; t < batches * tuples; t++) {
        int64_t at = 0;
        for (int64_t k = 0; k < depth; k++) {
            int64_t extent = data->dims[batch_dims + k];
            int64_t coordinate = index_at(indices, args->data[2], t * depth + k, extent);
            if (coordinate < 0)
                return out_of_range;
            at = at * extent + coordinate;
        }
        if (slice > 0)
            memcpy(ref_at_out(args->data[0], t * slice, size),
                   ref_at(args->data[1], t / tuples * batch_size + at * slice, size),
                   (size_t)slice * size);
    }
    return NULL;
}
