/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of linear_attention on some columns of a state, in the vocabulary of simd_ops_*.h. One
 * file per instruction set includes this and names the function RECALL. Every column is computed by
 * itself, in the order of steps and of the elements of a key. */
#ifndef KILN_BACKENDS_CPU_RECURRENT_LINEAR_ATTENTION_LOOPS_H
#define KILN_BACKENDS_CPU_RECURRENT_LINEAR_ATTENTION_LOOPS_H

#include "backends/cpu/recurrent/linear_attention.h"
#include "backends/cpu/simd/vector_math.h"

enum {
    PITCH = KILN_CPU_RECALL_COLUMNS
};

/* What is kept of each row of the state: exp of the decay of step @t. */
static void
find_kept(const KilnCpuRecall *r, int64_t t)
{
    const float *decay = r->decay + t * r->decay_step;
    for (int64_t d = 0; d < r->depth; d += VW) {
        const MASK mask = V_MASK(r->depth - d);
        const V x = r->decay_each ? V_LOAD_SOME(decay + d, mask) : V_SET1(*decay);
        V_STORE_SOME(r->kept + d, mask, vector_exp(x));
    }
}

/* The values of step @t in columns [e, e + VW), or what the state lacks of them. */
static inline V
values_of(const KilnCpuRecall *r, int64_t t, int64_t e)
{
    const float *k = r->k + t * r->k_step;
    float *state = r->state + e;
    const V v = V_LOAD_SOME(r->v + t * r->v_step + e, V_MASK(r->columns - e));
    V stored = V_SET1(0.0f);
    for (int64_t d = 0; (r->decay || r->rate) && d < r->depth; d++) {
        V row = V_LOAD(state + d * PITCH);
        if (r->decay) {
            row = V_MUL(row, V_SET1(r->kept[d]));
            V_STORE(state + d * PITCH, row);
        }
        stored = V_FMA(row, V_SET1(k[d]), stored);
    }
    return r->rate ? V_MUL(V_SET1(r->rate[t * r->rate_step]), V_SUB(v, stored)) : v;
}

static inline void
store_out(const KilnCpuRecall *r, int64_t t, int64_t head, int64_t e, V sum)
{
    float *out = r->out + t * r->out_step + head * r->out_head + e;
    V_STORE_SOME(out, V_MASK(r->columns - e), V_MUL(sum, V_SET1(r->scale)));
}

/* Adds the values to the state; the first head of queries reads each row on the way. */
static inline void
remember(const KilnCpuRecall *r, int64_t t, int64_t e, V v)
{
    const float *k = r->k + t * r->k_step, *q = r->q + t * r->q_step;
    V sum = V_SET1(0.0f);
    for (int64_t d = 0; d < r->depth; d++) {
        float *at = r->state + d * PITCH + e;
        const V row = V_FMA(V_SET1(k[d]), v, V_LOAD(at));
        V_STORE(at, row);
        sum = V_FMA(row, V_SET1(q[d]), sum);
    }
    store_out(r, t, 0, e, sum);
}

static inline void
read_out(const KilnCpuRecall *r, int64_t t, int64_t head, int64_t e)
{
    const float *q = r->q + t * r->q_step + head * r->depth;
    V sum = V_SET1(0.0f);
    for (int64_t d = 0; d < r->depth; d++)
        sum = V_FMA(V_LOAD(r->state + d * PITCH + e), V_SET1(q[d]), sum);
    store_out(r, t, head, e, sum);
}

void
RECALL(const KilnCpuRecall *r)
{
    for (int64_t t = 0; t < r->steps; t++) {
        if (r->decay)
            find_kept(r, t);
        for (int64_t e = 0; e < r->columns; e += VW) {
            remember(r, t, e, values_of(r, t, e));
            for (int64_t head = 1; head < r->queries; head++)
                read_out(r, t, head, e);
        }
    }
}

#endif
