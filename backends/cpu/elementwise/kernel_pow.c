/* SPDX-License-Identifier: Apache-2.0 */
/* pow in f32 and f64: one exponent for all, of any number type, or exponents of the type of the
 * base with numpy broadcasting.
 * Squares, cubes, roots and reciprocals are computed as such: rounded once, but the cube, which is
 * rounded twice. Operands: result, base, exponent. */
#include "backends/cpu/elementwise/broadcast.h"
#include "backends/cpu/elementwise/elementwise_find.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/movement/strided_operands.h"
#include "graph/base/number.h"

#include <math.h>

typedef struct {
    KilnCpuUnaryRow row; /* NULL: powf */
    float exponent;      /* of all */
    float *out;
    const float *base, *exponents;
} Pow;

static void
run_pow(const void *data, const KilnCpuRun *run)
{
    const Pow *p = data;
    float *out = p->out + run->at;
    const float *base = p->base + run->from[0], *exponents = p->exponents + run->from[1];
    for (int64_t i = 0; i < run->n; i++)
        out[i] = powf(base[i * run->step[0]], exponents[i * run->step[1]]);
}

static void
run_power(const void *data, const KilnCpuRun *run)
{
    const Pow *p = data;
    const KilnCpuParams none = { 0, 0 };
    float *out = p->out + run->at;
    const float *base = p->base + run->from[0];
    if (p->row) {
        p->row(out, base, run->n, &none);
        return;
    }
    for (int64_t i = 0; i < run->n; i++)
        out[i] = powf(base[i], p->exponent);
}

/* --- f64 --- */

typedef struct {
    double exponent; /* of all */
    double *out;
    const double *base, *exponents;
} WidePow;

static void
run_wide_pow(const void *data, const KilnCpuRun *run)
{
    const WidePow *p = data;
    double *out = p->out + run->at;
    const double *base = p->base + run->from[0], *exponents = p->exponents + run->from[1];
    for (int64_t i = 0; i < run->n; i++)
        out[i] = pow(base[i * run->step[0]], exponents[i * run->step[1]]);
}

/* The root of -0 is 0, and that of -infinity is infinity, as pow has them. */
static void
run_wide_power(const void *data, const KilnCpuRun *run)
{
    const WidePow *p = data;
    const double exponent = p->exponent, *base = p->base + run->from[0];
    double *out = p->out + run->at;
    for (int64_t i = 0; exponent == 2 && i < run->n; i++)
        out[i] = base[i] * base[i];
    for (int64_t i = 0; exponent == 3 && i < run->n; i++)
        out[i] = base[i] * base[i] * base[i];
    for (int64_t i = 0; exponent == -1 && i < run->n; i++)
        out[i] = 1 / base[i];
    for (int64_t i = 0; exponent == 0.5 && i < run->n; i++)
        out[i] = base[i] == (double)-INFINITY ? (double)INFINITY : sqrt(base[i]) + 0.0;
    const bool quick = exponent == 2 || exponent == 3 || exponent == -1 || exponent == 0.5;
    for (int64_t i = 0; !quick && i < run->n; i++)
        out[i] = pow(base[i], exponent);
}

int
kiln_cpu_find_power(double exponent)
{
    static const struct {
        double exponent;
        KilnCpuUnary op;
    } powers[] = { { 2, KILN_CPU_UNARY_pow_square },
                   { 0.5, KILN_CPU_UNARY_pow_root },
                   { 3, KILN_CPU_UNARY_pow_cube },
                   { -1, KILN_CPU_UNARY_reciprocal } };
    for (size_t i = 0; i < G_N_ELEMENTS(powers); i++) {
        if (powers[i].exponent == exponent)
            return powers[i].op;
    }
    return -1;
}

bool
kiln_cpu_pow_supports(const KilnInstr *instr)
{
    const KilnType *out = cpu_type(instr, 0), *base = cpu_type(instr, 1);
    const KilnType *exponent = cpu_type(instr, 2);
    bool whole = kiln_dtype_is_integer(exponent->dtype) && kiln_type_elements(exponent) == 1;
    return !out->layout && !base->layout && !exponent->layout && out->dtype == base->dtype &&
           (exponent->dtype == base->dtype || whole);
}

const char *
kiln_cpu_pow(const KilnKernelArgs *args)
{
    const KilnCpuOperand in[] = { kiln_cpu_operand(args->instr, 1),
                                  kiln_cpu_operand(args->instr, 2) };
    Pow p = { .out = args->data[0], .base = args->data[1], .exponents = args->data[2] };
    WidePow w = { .out = args->data[0], .base = args->data[1], .exponents = args->data[2] };
    const bool is_wide = in[0].type->dtype == KILN_DTYPE_f64;
    bool one = kiln_type_elements(in[1].type) == 1;
    if (one) { /* the base has all elements of the result */
        double exponent = kiln_element_as_f64(in[1].type->dtype, args->data[2], 0);
        p.exponent = (float)exponent;
        w.exponent = exponent;
        const int op = kiln_cpu_find_power(exponent);
        if (op >= 0)
            p.row = kiln_cpu_rows(KILN_CPU_ISA_AUTO)->unary[op];
    }
    KilnCpuBroadcast b = kiln_cpu_broadcast(kiln_cpu_operand(args->instr, 0), in, one ? 1 : 2);
    if (is_wide)
        kiln_cpu_broadcast_run(&b, args->threads, one ? run_wide_power : run_wide_pow, &w);
    else
        kiln_cpu_broadcast_run(&b, args->threads, one ? run_power : run_pow, &p);
    return NULL;
}
