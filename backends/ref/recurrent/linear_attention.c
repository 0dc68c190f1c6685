/* SPDX-License-Identifier: Apache-2.0 */
/* linear_attention: a matrix for each head of keys remembers which value was stored for which key,
 * and every query reads it. It stays in double over all steps. Operands: result, state behind;
 * queries, keys, values, state before, decay, rate.
 *
 *     S = exp(decay) S;  v = rate (v - Sᵀ k) or v;  S = S + k ⊗ v;  result = scale Sᵀ q */
#include "backends/ref/kernel.h"
#include "ir/kernel.h"

#include <math.h>

enum {
    OUT,
    NEXT,
    QUERY,
    KEY,
    VALUE,
    PAST,
    DECAY,
    RATE
};

typedef struct {
    const KilnKernelArgs *args;
    int64_t steps, heads, shared; /* heads of keys, and of queries for each of them */
    int64_t depth, width;         /* of a key and of a value */
    double scale;
    double *state, *value; /* [depth, width] and [width] */
} Recall;

size_t
kiln_ref_linear_attention_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    const KilnInstrAttrs_linear_attention *attrs = kiln_instr_attrs(instr, linear_attention);
    const KilnType *keys = &kiln_instr_operand(instr, KEY)->type;
    const KilnType *values = &kiln_instr_operand(instr, VALUE)->type;
    const int64_t depth = keys->dims[2] / attrs->kv_num_heads;
    return (size_t)((depth + 1) * (values->dims[2] / attrs->kv_num_heads)) * sizeof(double);
}

static double
load(const Recall *r, uint32_t i, int64_t at)
{
    return ref_load_float(ref_type(r->args, i)->dtype, r->args->data[i], at);
}

/* Element @e of head @head in @row of [rows, heads × each]; one number for all where it has less.
 */
static double
gate(const Recall *r, uint32_t i, int64_t row, int64_t head, int64_t e)
{
    const int64_t last = ref_type(r->args, i)->dims[2];
    const int64_t each = last / r->heads;
    if (last == 1)
        return load(r, i, row);
    return load(r, i, row * last + head * each + (each == 1 ? 0 : e));
}

static void
remember(const Recall *r, int64_t row, int64_t head)
{
    const int64_t key = (row * r->heads + head) * r->depth;
    const int64_t value = (row * r->heads + head) * r->width;
    for (int64_t d = 0; ref_has(r->args, DECAY) && d < r->depth; d++) {
        const double kept = exp(gate(r, DECAY, row, head, d));
        for (int64_t e = 0; e < r->width; e++)
            r->state[d * r->width + e] *= kept;
    }
    for (int64_t e = 0; e < r->width; e++) {
        r->value[e] = load(r, VALUE, value + e);
        if (!ref_has(r->args, RATE))
            continue;
        double stored = 0;
        for (int64_t d = 0; d < r->depth; d++)
            stored += r->state[d * r->width + e] * load(r, KEY, key + d);
        r->value[e] = gate(r, RATE, row, head, 0) * (r->value[e] - stored);
    }
    for (int64_t d = 0; d < r->depth; d++) {
        for (int64_t e = 0; e < r->width; e++)
            r->state[d * r->width + e] += load(r, KEY, key + d) * r->value[e];
    }
}

static void
read_out(const Recall *r, int64_t row, int64_t head)
{
    const KilnType *out = ref_type(r->args, OUT);
    for (int64_t g = head * r->shared; g < (head + 1) * r->shared; g++) {
        const int64_t to = row * r->heads * r->shared + g;
        for (int64_t e = 0; e < r->width; e++) {
            double sum = 0;
            for (int64_t d = 0; d < r->depth; d++)
                sum += r->state[d * r->width + e] * load(r, QUERY, to * r->depth + d);
            ref_store_float(out->dtype, r->args->data[OUT], to * r->width + e, sum * r->scale);
        }
    }
}

static void
run_head(const Recall *r, int64_t batch, int64_t head)
{
    const int64_t n = r->depth * r->width, at = (batch * r->heads + head) * n;
    for (int64_t i = 0; i < n; i++)
        r->state[i] = ref_has(r->args, PAST) ? load(r, PAST, at + i) : 0;
    for (int64_t t = 0; t < r->steps; t++) {
        remember(r, batch * r->steps + t, head);
        read_out(r, batch * r->steps + t, head);
    }
    for (int64_t i = 0; ref_has(r->args, NEXT) && i < n; i++)
        ref_store_float(ref_type(r->args, NEXT)->dtype, r->args->data[NEXT], at + i, r->state[i]);
}

const char *
kiln_ref_linear_attention(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_linear_attention *attrs = kiln_instr_attrs(args->instr, linear_attention);
    const KilnType *keys = ref_type(args, KEY), *values = ref_type(args, VALUE);
    Recall r = { .args = args,
                 .steps = keys->dims[1],
                 .heads = attrs->kv_num_heads,
                 .shared = attrs->q_num_heads / attrs->kv_num_heads,
                 .depth = keys->dims[2] / attrs->kv_num_heads,
                 .width = values->dims[2] / attrs->kv_num_heads,
                 .scale = (double)attrs->scale,
                 .state = args->scratch };
    r.value = r.state + r.depth * r.width;
    if (r.scale == 0)
        r.scale = 1 / sqrt((double)r.depth);
    for (int64_t i = 0; i < keys->dims[0] * r.heads; i++)
        run_head(&r, i / r.heads, i % r.heads);
    return NULL;
}
