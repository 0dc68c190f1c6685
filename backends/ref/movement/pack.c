/* SPDX-License-Identifier: Apache-2.0 */
/* pack and unpack: the same elements in another layout. The padding of a blocked layout is zero.
 * Either side may be plain or blocked, so that both instructions are one kernel. */
#include "backends/ref/movement/blocked.h"
#include "backends/ref/movement/nest.h"

#include <ctype.h>
#include <string.h>

/* A layout as loops in the order of memory: loop l walks dim[l], whose index it divides by
 * divisor[l] (inner blocks) and takes modulo extent[l] (for blocks). */
typedef struct {
    int rank;
    int dim[REF_MAX_LOOPS];
    int64_t divisor[REF_MAX_LOOPS];
    int64_t extent[REF_MAX_LOOPS];
    int64_t stride[REF_MAX_LOOPS];
} Layout;

static bool
layout_of(const KilnType *type, Layout *layout)
{
    int64_t extents[REF_MAX_LOOPS], inner[KILN_MAX_RANK];
    *layout = (Layout){ .rank = type->rank };
    for (int d = 0; d < type->rank; d++) {
        layout->dim[d] = d;
        extents[d] = type->dims[d];
        inner[d] = 1;
    }
    if (type->layout) {
        if (!kiln_layout_physical(type, &layout->rank, extents, NULL))
            return false;
        const char *tag = type->layout;
        for (int l = 0; l < layout->rank; l++) {
            while (!isalpha((unsigned char)*tag))
                tag++;
            layout->dim[l] = tolower((unsigned char)*tag++) - 'a';
        }
    }
    int64_t stride = 1;
    for (int l = layout->rank - 1; l >= 0; l--) {
        layout->extent[l] = extents[l];
        layout->divisor[l] = inner[layout->dim[l]];
        layout->stride[l] = stride;
        inner[layout->dim[l]] *= extents[l];
        stride *= extents[l];
    }
    return true;
}

static int64_t
layout_offset(const Layout *layout, const int64_t *index)
{
    int64_t offset = 0;
    for (int l = 0; l < layout->rank; l++)
        offset +=
            index[layout->dim[l]] / layout->divisor[l] % layout->extent[l] * layout->stride[l];
    return offset;
}

bool
kiln_ref_relayout_data(const KilnType *to_type, void *to, const KilnType *from_type,
                       const void *from)
{
    size_t size = kiln_dtype_size(to_type->dtype);
    Layout to_layout, from_layout;
    if (!layout_of(to_type, &to_layout) || !layout_of(from_type, &from_layout))
        return false;
    if (ref_elements(to_type) == 0)
        return true;
    int64_t index[KILN_MAX_RANK] = { 0 };
    memset(to, 0, (size_t)kiln_type_bytes(to_type));
    do {
        ref_copy_element(to, layout_offset(&to_layout, index), from,
                         layout_offset(&from_layout, index), size);
    } while (ref_next(index, to_type->dims, to_type->rank));
    return true;
}

const char *
kiln_ref_relayout(const KilnKernelArgs *args)
{
    bool fits =
        kiln_ref_relayout_data(ref_type(args, 0), args->data[0], ref_type(args, 1), args->data[1]);
    return fits ? NULL : "a layout tag does not fit its type";
}
