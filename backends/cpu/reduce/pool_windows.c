/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/reduce/pool_windows.h"

#include "backends/cpu/movement/strided_operands.h"

/* The four lists that both instructions have. */
typedef struct {
    KilnInts dilations, kernel_shape, pads, strides;
} Lists;

KilnCpuPool
kiln_cpu_pool_of(const KilnInstr *instr)
{
    const KilnType *out = cpu_type(instr, 0), *in = cpu_type(instr, 1);
    KilnCpuPool p = { .planes = in->dims[0] * in->dims[1],
                      .channels = in->dims[1],
                      .in_image = kiln_cpu_pitch(instr, 1, in->dims[0]),
                      .out_image = kiln_cpu_pitch(instr, 0, in->dims[0]),
                      .average = instr->kind != KILN_INSTR_max_pool };
    Lists l;
    if (p.average) {
        const KilnInstrAttrs_average_pool *a = kiln_instr_attrs(instr, average_pool);
        l = (Lists){ a->dilations, a->kernel_shape, a->pads, a->strides };
        p.count_padding = a->count_include_pad;
    } else {
        const KilnInstrAttrs_max_pool *a = kiln_instr_attrs(instr, max_pool);
        l = (Lists){ a->dilations, a->kernel_shape, a->pads, a->strides };
    }
    const int spatial = in->rank - 2;
    for (int d = 0; d < 3; d++) {
        const int from = d - (3 - spatial);
        const uint32_t i = (uint32_t)from;
        p.in[d] = from < 0 ? 1 : in->dims[from + 2];
        p.out[d] = from < 0 ? 1 : out->dims[from + 2];
        p.kernel[d] = from < 0 ? 1 : kiln_ints_at(l.kernel_shape, i, 1);
        /* Steps that nothing takes may be as long as they like. */
        p.stride[d] = p.out[d] < 2 ? 1 : kiln_ints_at(l.strides, i, 1);
        p.dilation[d] = p.kernel[d] < 2 ? 1 : kiln_ints_at(l.dilations, i, 1);
        p.pad[d] = from < 0 ? 0 : kiln_ints_at(l.pads, i, 0);
        p.pad_end[d] = from < 0 ? 0 : kiln_ints_at(l.pads, i + (uint32_t)spatial, 0);
    }
    return p;
}
