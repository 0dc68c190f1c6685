/* SPDX-License-Identifier: Apache-2.0 */
/* dft: every number of the result as a sum over the whole signal, in double, rounded once.
 * Operands: result, signal. The last dim has the real part of a number, and its imaginary part. A
 * number that is not finite makes NaN of its line. */
#include "backends/ref/kernel.h"
#include "ir/kernel.h"

#include <math.h>

/* A line of the signal or of the result: numbers of @parts elements, @stride elements apart. */
typedef struct {
    int64_t extent, stride, parts;
} Line;

typedef struct {
    const KilnKernelArgs *args;
    KilnDType dtype;
    Line in, out;
    int64_t length;                /* of the whole signal */
    bool inverse, half;            /* half: the signal is the first half of a symmetric spectrum */
    const double *cosines, *sines; /* of each 2πi / length */
} Dft;

size_t
kiln_ref_dft_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    return 2 * (size_t)kiln_instr_attrs(instr, dft)->length.v[0] * sizeof(double);
}

static Line
line_of(const KilnType *type, int64_t axis)
{
    const int64_t parts = type->dims[type->rank - 1];
    return (Line){ type->dims[axis], ref_count(type->dims, (int)axis + 1, type->rank), parts };
}

/* Σ x(j) e^(±2πi jk / length) for one k. */
static void
sum_up(const Dft *d, int64_t from, int64_t k, double out[2])
{
    const int64_t n = d->length, most = d->half ? n / 2 + 1 : n;
    const double sign = d->inverse ? 1 : -1;
    out[0] = out[1] = 0;
    for (int64_t j = 0, turn = 0; j < d->in.extent && j < most; j++) {
        const int64_t at = from + j * d->in.stride;
        const bool alone = j == 0 || 2 * j == n;
        double a = ref_load_float(d->dtype, d->args->data[1], at), b = 0;
        if (d->in.parts == 2)
            b = ref_load_float(d->dtype, d->args->data[1], at + 1);
        if (d->half) { /* with its mirror image, whose imaginary part has the other sign */
            a *= alone ? 1 : 2;
            b *= alone ? 0 : 2;
        }
        const double c = d->cosines[turn], s = sign * d->sines[turn];
        out[0] += a * c - b * s;
        out[1] += a * s + b * c;
        turn += k;
        turn -= turn >= n ? n : 0;
    }
}

/* Whether the transform reads finite numbers alone. */
static bool
is_finite(const Dft *d, int64_t from)
{
    const int64_t most = d->half ? d->length / 2 + 1 : d->length;
    for (int64_t j = 0; j < d->in.extent && j < most; j++) {
        for (int64_t p = 0; p < d->in.parts; p++) {
            if (!isfinite(ref_load_float(d->dtype, d->args->data[1], from + j * d->in.stride + p)))
                return false;
        }
    }
    return true;
}

const char *
kiln_ref_dft(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_dft *attrs = kiln_instr_attrs(args->instr, dft);
    const KilnType *out = ref_type(args, 0), *in = ref_type(args, 1);
    const int64_t n = attrs->length.v[0];
    double *table = args->scratch;
    for (int64_t i = 0; i < n; i++) {
        table[i] = cos(2 * G_PI * (double)i / (double)n);
        table[n + i] = sin(2 * G_PI * (double)i / (double)n);
    }
    const Dft d = { .args = args,
                    .dtype = in->dtype,
                    .in = line_of(in, attrs->axis),
                    .out = line_of(out, attrs->axis),
                    .length = n,
                    .inverse = attrs->inverse,
                    .half = attrs->inverse && attrs->onesided,
                    .cosines = table,
                    .sines = table + n };
    const int64_t inner = d.in.stride / d.in.parts;
    const int64_t lines = ref_count(in->dims, 0, (int)attrs->axis) * inner;
    const double by = attrs->inverse ? 1 / (double)n : 1;
    for (int64_t line = 0; line < lines; line++) {
        const int64_t outer = line / inner, i = line % inner;
        const int64_t from = outer * d.in.extent * d.in.stride + i * d.in.parts;
        const int64_t to = outer * d.out.extent * d.out.stride + i * d.out.parts;
        const bool finite = is_finite(&d, from);
        for (int64_t k = 0; k < d.out.extent; k++) {
            double sum[2] = { NAN, NAN };
            if (finite)
                sum_up(&d, from, k, sum);
            for (int64_t p = 0; p < d.out.parts; p++)
                ref_store_float(d.dtype, args->data[0], to + k * d.out.stride + p, sum[p] * by);
        }
    }
    return NULL;
}
