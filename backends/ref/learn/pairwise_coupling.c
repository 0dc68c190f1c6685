/* SPDX-License-Identifier: Apache-2.0 */
/* pairwise_coupling: probabilities p of classes from those of pairs, r[s,t] = 1 - r[t,s], that
 * class s is right if one of both is. p minimizes p' Q p where its sum is 1, with Q[t,t] = Σ
 * r[s,t]² over the others s, and Q[s,t] = -r[s,t] r[t,s]. It is found by improving one p[t] after
 * the other. The rounds end once no (Q p)[t] is further than 0.005 / classes from p' Q p, or after
 * 100: both are part of the meaning. (Wu, Lin and Weng: Probability estimates for multi-class
 * classification by pairwise coupling, 2004, algorithm 2.) */
#include "backends/ref/kernel.h"

#include <math.h>

enum {
    ROUNDS = 100
};

typedef struct {
    int64_t n;
    double *q, *p, *qp; /* n × n, n, n */
} Coupling;

size_t
kiln_ref_pairwise_coupling_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    const size_t n = (size_t)kiln_instr_attrs(instr, pairwise_coupling)->classes;
    return (n * n + 2 * n) * sizeof(double);
}

static void
set_matrix(const Coupling *c, KilnDType dtype, const void *pairs, int64_t pair)
{
    for (int64_t i = 0; i < c->n; i++)
        c->q[i * c->n + i] = 0;
    for (int64_t s = 0; s < c->n; s++) {
        for (int64_t t = s + 1; t < c->n; t++, pair++) {
            const double first = ref_load_float(dtype, pairs, pair), second = 1 - first;
            c->q[s * c->n + t] = c->q[t * c->n + s] = -first * second;
            c->q[t * c->n + t] += first * first;
            c->q[s * c->n + s] += second * second;
        }
    }
}

/* Returns p' Q p, and stores Q p. */
static double
multiply(const Coupling *c)
{
    double form = 0;
    for (int64_t t = 0; t < c->n; t++) {
        c->qp[t] = 0;
        for (int64_t j = 0; j < c->n; j++)
            c->qp[t] += c->q[t * c->n + j] * c->p[j];
        form += c->p[t] * c->qp[t];
    }
    return form;
}

/* Moves p[t] to where the form is least, scales p to a sum of 1, and keeps Q p. */
static double
improve(const Coupling *c, int64_t t, double form)
{
    const double own = c->q[t * c->n + t], by = (form - c->qp[t]) / own, scale = 1 + by;
    form = (form + by * (by * own + 2 * c->qp[t])) / (scale * scale);
    c->p[t] += by;
    for (int64_t j = 0; j < c->n; j++) {
        c->qp[j] = (c->qp[j] + by * c->q[t * c->n + j]) / scale;
        c->p[j] /= scale;
    }
    return form;
}

static void
solve(const Coupling *c)
{
    for (int64_t t = 0; t < c->n; t++)
        c->p[t] = 1 / (double)c->n;
    for (int round = 0; round < ROUNDS; round++) {
        double form = multiply(c), worst = 0;
        for (int64_t t = 0; t < c->n; t++)
            worst = fmax(worst, fabs(c->qp[t] - form));
        if (worst < 0.005 / (double)c->n)
            return;
        for (int64_t t = 0; t < c->n; t++)
            form = improve(c, t, form);
    }
}

const char *
kiln_ref_pairwise_coupling(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0);
    const int64_t n = out->dims[1];
    double *scratch = args->scratch;
    const Coupling c = { n, scratch, scratch + n * n, scratch + n * n + n };
    for (int64_t row = 0; row < out->dims[0]; row++) {
        set_matrix(&c, out->dtype, args->data[1], row * (n * (n - 1) / 2));
        solve(&c);
        for (int64_t t = 0; t < n; t++)
            ref_store_float(out->dtype, args->data[0], row * n + t, c.p[t]);
    }
    return NULL;
}
