/* SPDX-License-Identifier: Apache-2.0 */
/* linear_attention in f32: columns of a state do not depend on each other, so a task takes some
 * columns of one head through all steps. Operands: result, state behind; queries, keys, values,
 * state before, decay, rate. */
#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/recurrent/linear_attention.h"

#include <math.h>
#include <string.h>

enum {
    OUT,
    NEXT,
    QUERY,
    KEY,
    VALUE,
    PAST,
    DECAY,
    RATE,
    COLUMNS = KILN_CPU_RECALL_COLUMNS,
};

typedef struct {
    const KilnKernelArgs *args;
    void (*recall)(const KilnCpuRecall *r);
    int64_t batches, steps, heads, shared; /* heads of keys, and of queries for each of them */
    int64_t depth, width, pieces;          /* pieces: of the columns of a head */
    int64_t decays, rates;                 /* floats of a step */
    float scale;
} Recall;

static Recall
recall_of(const KilnInstr *instr)
{
    const KilnInstrAttrs_linear_attention *attrs = kiln_instr_attrs(instr, linear_attention);
    const KilnType *keys = cpu_type(instr, KEY), *values = cpu_type(instr, VALUE);
    const KilnType *decay = cpu_type(instr, DECAY), *rate = cpu_type(instr, RATE);
    Recall r = { .batches = keys->dims[0],
                 .steps = keys->dims[1],
                 .heads = attrs->kv_num_heads,
                 .shared = attrs->q_num_heads / attrs->kv_num_heads,
                 .depth = keys->dims[2] / attrs->kv_num_heads,
                 .width = values->dims[2] / attrs->kv_num_heads,
                 .decays = decay ? decay->dims[2] : 0,
                 .rates = rate ? rate->dims[2] : 0,
                 .scale = attrs->scale };
    r.pieces = ceil_div(r.width, COLUMNS);
    if (r.scale == 0)
        r.scale = (float)(1 / sqrt((double)r.depth));
    return r;
}

/* The state of a task, and a float for each of its rows. */
static int64_t
task_floats(const Recall *r)
{
    return round_up(r->depth * (COLUMNS + 1), KILN_CPU_LINE_FLOATS);
}

size_t
kiln_cpu_linear_attention_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    const Recall r = recall_of(instr);
    return (size_t)(task_floats(&r) * (threads > 1 ? threads : 1)) * sizeof(float);
}

static void
run_task(const void *data, int64_t task, int thread)
{
    const Recall *r = data;
    const int64_t first = task % r->pieces * COLUMNS, head = task / r->pieces % r->heads;
    const int64_t batch = task / r->pieces / r->heads, row = batch * r->steps;
    const int64_t columns = min_of(COLUMNS, r->width - first);
    const int64_t state = (batch * r->heads + head) * r->depth * r->width + first;
    float *const *operands = (float *const *)r->args->data;
    float *own = (float *)r->args->scratch + thread * task_floats(r);
    const int64_t q_head = head * r->shared, q_heads = r->heads * r->shared;
    KilnCpuRecall c = { .steps = r->steps,
                        .queries = r->shared,
                        .depth = r->depth,
                        .columns = columns,
                        .q = operands[QUERY] + (row * q_heads + q_head) * r->depth,
                        .k = operands[KEY] + (row * r->heads + head) * r->depth,
                        .v = operands[VALUE] + (row * r->heads + head) * r->width + first,
                        .q_step = q_heads * r->depth,
                        .k_step = r->heads * r->depth,
                        .v_step = r->heads * r->width,
                        .decay_step = r->decays,
                        .rate_step = r->rates,
                        .out_step = q_heads * r->width,
                        .decay_each = r->decays != r->heads,
                        .scale = r->scale,
                        .out = operands[OUT] + (row * q_heads + q_head) * r->width + first,
                        .out_head = r->width,
                        .state = own,
                        .kept = own + r->depth * COLUMNS };
    if (r->decays)
        c.decay = operands[DECAY] + row * r->decays + head * (r->decays / r->heads);
    if (r->rates)
        c.rate = operands[RATE] + row * r->rates + (r->rates == 1 ? 0 : head);
    memset(own, 0, (size_t)(r->depth * COLUMNS) * sizeof(float));
    for (int64_t d = 0; cpu_type(r->args->instr, PAST) && d < r->depth; d++)
        memcpy(own + d * COLUMNS, operands[PAST] + state + d * r->width,
               (size_t)columns * sizeof(float));
    r->recall(&c);
    for (int64_t d = 0; cpu_type(r->args->instr, NEXT) && d < r->depth; d++)
        memcpy(operands[NEXT] + state + d * r->width, own + d * COLUMNS,
               (size_t)columns * sizeof(float));
}

const char *
kiln_cpu_linear_attention(const KilnKernelArgs *args)
{
    Recall r = recall_of(args->instr);
    r.args = args;
    r.recall = KILN_CPU_OF_ISA(KILN_CPU_ISA_AUTO, kiln_cpu_recall);
    kiln_cpu_parallel(r.batches * r.heads * r.pieces, args->threads, run_task, &r);
    return NULL;
}
