/* SPDX-License-Identifier: Apache-2.0 */
/* pad with a constant, of any element type; negative pads crop. The border is made of slabs that do
 * not overlap: of dim d, those before and behind what is kept, as wide as what is kept in the dims
 * before d and as the result in the dims behind it. Operands: result, data, value (absent: 0). */
#include "backends/cpu/kernel.h"
#include "backends/cpu/movement/strided.h"

#include <string.h>

/* Elements [from, from + n) of a dim of the operand are [to, to + n) of the result's. */
typedef struct {
    int64_t from, to, n;
    int64_t extent, stride; /* of the result */
} Dim;

typedef struct {
    int rank;
    Dim dims[KILN_MAX_RANK];
    const KilnKernelArgs *args;
    const void *value;
    size_t size;
} Pad;

bool
kiln_cpu_pad_supports(const KilnInstr *instr)
{
    const char *mode = kiln_instr_attrs(instr, pad)->mode;
    return strcmp(mode, "constant") == 0 && kiln_cpu_movement_supports(instr);
}

/* Fills elements [@first, @end) of dim @at. */
static void
fill_slab(const Pad *pad, int at, int64_t first, int64_t end)
{
    int64_t offset = first * pad->dims[at].stride;
    KilnCpuNest nest = { 0 };
    for (int d = 0; d < pad->rank; d++) {
        const Dim *dim = &pad->dims[d];
        int64_t n = d < at ? dim->n : d > at ? dim->extent : end - first;
        if (n <= 0)
            return;
        offset += d < at ? dim->to * dim->stride : 0;
        kiln_cpu_nest_add(&nest, n, dim->stride, 0);
    }
    kiln_cpu_nest_copy(
        &nest, &(KilnCpuEnds){ .to = (char *)pad->args->data[0] + offset * (int64_t)pad->size,
                               .from = pad->value,
                               .size = pad->size,
                               .threads = pad->args->threads });
}

static void
copy_kept(const Pad *pad, const KilnType *in)
{
    int64_t to = 0, from = 0, stride = 1;
    KilnCpuNest nest = { 0 };
    for (int d = pad->rank - 1; d >= 0; d--) {
        const Dim *dim = &pad->dims[d];
        if (dim->n <= 0)
            return;
        kiln_cpu_nest_add(&nest, dim->n, dim->stride, stride);
        to += dim->to * dim->stride;
        from += dim->from * stride;
        stride *= in->dims[d];
    }
    int64_t size = (int64_t)pad->size;
    kiln_cpu_nest_copy(&nest,
                       &(KilnCpuEnds){ .to = (char *)pad->args->data[0] + to * size,
                                       .from = (const char *)pad->args->data[1] + from * size,
                                       .size = pad->size,
                                       .threads = pad->args->threads });
}

const char *
kiln_cpu_pad(const KilnKernelArgs *args)
{
    static const uint64_t zero = 0;
    const KilnInstrAttrs_pad *attrs = kiln_instr_attrs(args->instr, pad);
    const KilnType *out = cpu_type(args->instr, 0), *in = cpu_type(args->instr, 1);
    Pad pad = { .rank = out->rank,
                .args = args,
                .value = cpu_type(args->instr, 2) ? args->data[2] : &zero,
                .size = kiln_dtype_size(out->dtype) };
    int64_t stride = 1;
    for (int d = out->rank - 1; d >= 0; d--) {
        int64_t begin = kiln_ints_at(attrs->pads, (uint32_t)d, 0);
        int64_t end = kiln_ints_at(attrs->pads, (uint32_t)(d + out->rank), 0);
        int64_t n = in->dims[d] + (begin < 0 ? begin : 0) + (end < 0 ? end : 0);
        pad.dims[d] = (Dim){ .from = begin < 0 ? -begin : 0,
                             .to = begin > 0 ? begin : 0,
                             .n = n > 0 ? n : 0,
                             .extent = out->dims[d],
                             .stride = stride };
        stride *= out->dims[d];
    }
    for (int d = 0; d < pad.rank; d++) {
        fill_slab(&pad, d, 0, pad.dims[d].to);
        fill_slab(&pad, d, pad.dims[d].to + pad.dims[d].n, pad.dims[d].extent);
    }
    copy_kept(&pad, in);
    return NULL;
}
