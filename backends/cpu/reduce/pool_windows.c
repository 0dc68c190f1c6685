/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/cpu/reduce/pool_windows.h"

#include "backends/cpu/extents.h"
#include "backends/cpu/movement/strided_operands.h"

/* The four lists that all of the instructions have. */
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
                      .average = instr->kind == KILN_INSTR_average_pool };
    Lists l;
    if (p.average) {
        const KilnInstrAttrs_average_pool *a = kiln_instr_attrs(instr, average_pool);
        l = (Lists){ a->dilations, a->kernel_shape, a->pads, a->strides };
        p.count_padding = a->count_include_pad;
    } else if (instr->kind == KILN_INSTR_lp_pool) {
        const KilnInstrAttrs_lp_pool *a = kiln_instr_attrs(instr, lp_pool);
        l = (Lists){ a->dilations, a->kernel_shape, a->pads, a->strides };
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

KilnCpuSpan
kiln_cpu_pool_span(const KilnCpuPool *p, int64_t k, int64_t first, int64_t n)
{
    const int64_t shift = k * p->dilation[2] - p->pad[2], stride = p->stride[2];
    const int64_t begin = shift < 0 ? ceil_div(-shift, stride) : 0;
    const int64_t last = p->in[2] - 1 - shift, end = last < 0 ? 0 : last / stride + 1;
    KilnCpuSpan span = { begin > first ? begin - first : 0, min_of(end - first, n) };
    span.end = span.end > span.begin ? span.end : span.begin;
    return span;
}

int64_t
kiln_cpu_pool_taps(const KilnCpuPool *p, int d, int64_t at)
{
    int64_t count = 0;
    for (int64_t k = 0; k < p->kernel[d]; k++) {
        const int64_t i = at * p->stride[d] - p->pad[d] + k * p->dilation[d];
        count += p->count_padding ? i < p->in[d] + p->pad_end[d] : i >= 0 && i < p->in[d];
    }
    return count;
}

/* --- costs --- */

static double
volume(const int64_t v[3])
{
    return (double)v[0] * (double)v[1] * (double)v[2];
}

/* What @extent floats are in vectors of sixteen, the widest there are: costs are of these. */
static double
vectors(int64_t extent)
{
    return (double)ceil_div(extent, 16);
}

int64_t
kiln_pool_edges(int64_t in, int64_t out, int64_t reach, int64_t stride, int64_t pad)
{
    int64_t first = ceil_div(pad, stride), end = (in + pad - reach + stride) / stride;
    int64_t inside = (end < out ? end : out) - first;
    return inside > 0 ? out - inside : out;
}

/* The choice of kernel_pool.c between windows of the image and rows that are folded first. */
void
kiln_pool_terms(const KilnCpuPoolShape *s, double terms[KILN_CPU_TERMS])
{
    double rows = (double)s->planes * (double)s->out[0] * (double)s->out[1];
    double folds = (double)s->kernel[0] * (double)s->kernel[1];
    bool folded = s->in[0] > 1 || s->edges > 1;
    terms[0] = folded ? rows * folds * vectors(s->in[2]) : 0;
    terms[1] = rows;
    terms[2] = rows * (folded ? 1 : folds) * (double)s->kernel[2] * vectors(s->out[2]);
    terms[3] = folded ? 0 : rows * (double)s->edges * folds * (double)s->kernel[2];
    terms[4] = 1;
    terms[5] = folded ? rows : 0;
}

void
kiln_global_pool_terms(const KilnCpuPoolShape *s, double terms[KILN_CPU_TERMS])
{
    kiln_cpu_set_terms(terms, 4 * (double)s->planes * volume(s->in), (double)s->planes, 1);
}
