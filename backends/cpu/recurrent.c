/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of steps, packed weights and scratch of lstm and gru. A product's packed form depends on
 * its number of rows, so all blocks have as many steps: the last one begins early enough and
 * projects some steps again. */
#include "backends/cpu/recurrent.h"

#include "backends/cpu/parallel.h"

#include <string.h>
#include <strings.h>

enum {
    BLOCK_ROWS = 256,    /* of inputs projected at once: keeps scratch small for long sequences */
    TASK_ELEMENTS = 4096 /* of a state, per task of the cell */
};

static int64_t
ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Floats up to a multiple of 64 bytes. */
static int64_t
aligned(int64_t floats)
{
    return ceil_div(floats, 16) * 16;
}

/* --- what is computed --- */

bool
kiln_cpu_recurrent_supports(const KilnInstr *instr, const char *const *defaults)
{
    /* The rows of gru and lstm begin with the fields of rnn. */
    const KilnInstrAttrs_rnn *attrs = kiln_instr_attrs(instr, rnn);
    bool lstm = instr->kind == KILN_INSTR_lstm;
    if (attrs->clip != 0 || attrs->layout != 0 || cpu_type(instr, lstm ? 7 : 6))
        return false;
    uint32_t n = lstm ? 3 : 2;
    for (uint32_t i = 0; i < attrs->activations.n; i++) {
        if (strcasecmp(attrs->activations.v[i], defaults[i % n]) != 0)
            return false;
    }
    return cpu_all_plain(instr, KILN_DTYPE_f32);
}

static void
add_product(KilnCpuRecurrent *net, KilnCpuGemm gemm, bool of_state, int64_t first)
{
    gemm.b_row = 1;
    gemm.b_col = gemm.k;
    gemm.b_packed = true;
    gemm.tail.residual = of_state;
    KilnCpuGateProduct *product = &net->products[net->n_products++];
    *product = (KilnCpuGateProduct){ .gemm = gemm,
                                     .of_state = of_state,
                                     .first_gate = first,
                                     .packed_at = net->direction_bytes,
                                     .packed_bytes = kiln_cpu_gemm_pack_b_size(&gemm) };
    net->direction_bytes += 4 * aligned(ceil_div(product->packed_bytes, 4));
}

KilnCpuRecurrent
kiln_cpu_recurrent_new(const KilnInstr *instr, int64_t gates)
{
    KilnCpuRecurrent net = { .instr = instr,
                             .first_in = instr->kind == KILN_INSTR_lstm ? 3 : 2,
                             .gates = gates };
    const KilnType *x = cpu_type(instr, net.first_in), *r = cpu_type(instr, net.first_in + 2);
    net.steps = x->dims[0];
    net.batch = x->dims[1];
    net.input = x->dims[2];
    net.directions = r->dims[0];
    net.hidden = r->dims[2];
    net.reverse = strcmp(kiln_instr_attrs(instr, rnn)->direction, "reverse") == 0;
    int64_t most = net.batch > 0 && net.batch < BLOCK_ROWS ? BLOCK_ROWS / net.batch : 1;
    net.block = net.steps > 0 ? ceil_div(net.steps, ceil_div(net.steps, most)) : 0;
    add_product(&net, kiln_cpu_gemm_dense(net.block * net.batch, gates * net.hidden, net.input),
                false, 0);
    return net;
}

void
kiln_cpu_recurrent_add(KilnCpuRecurrent *net, int64_t first, int64_t n)
{
    KilnCpuGemm gemm = kiln_cpu_gemm_dense(net->batch, n * net->hidden, net->hidden);
    gemm.out_row = net->gates * net->hidden;
    add_product(net, gemm, true, first);
}

/* --- weights --- */

size_t
kiln_cpu_recurrent_packed(const KilnCpuRecurrent *net)
{
    return (size_t)(net->directions * net->direction_bytes);
}

void
kiln_cpu_recurrent_prepack(const KilnCpuRecurrent *net, const void *const *data, void *packed,
                           KilnSlice slice)
{
    for (int64_t d = 0; d < net->directions; d++) {
        for (int i = 0; i < net->n_products; i++) {
            const KilnCpuGateProduct *product = &net->products[i];
            int64_t row = (d * net->gates + product->first_gate) * net->hidden;
            const char *weight = data[net->first_in + (product->of_state ? 2 : 1)];
            char *to = (char *)packed + d * net->direction_bytes + product->packed_at;
            KilnCpuGemm plain = product->gemm;
            kiln_cpu_gemm_pack_b(&plain, weight + 4 * row * plain.k, (float *)to, slice);
        }
    }
}

/* --- scratch --- */

/* The next @floats of @base, of which *@used are taken; NULL where there is no base yet. */
static float *
take(float *base, int64_t *used, int64_t floats)
{
    float *taken = base ? base + *used : NULL;
    *used += aligned(floats);
    return taken;
}

static int64_t
gemm_floats(const KilnCpuRecurrent *net, int threads)
{
    int64_t most = 0;
    for (int i = 0; i < net->n_products; i++) {
        int64_t bytes = kiln_cpu_gemm_scratch_size(&net->products[i].gemm, threads);
        most = bytes > most ? bytes : most;
    }
    return ceil_div(most, 4);
}

/* Sets the parts of the scratch at @base; returns how many floats they take. */
static int64_t
divide_scratch(KilnCpuRecurrent *net, float *base, int threads)
{
    int64_t state = net->batch * net->hidden, gates = net->gates * net->hidden, used = 0;
    net->gemm_scratch = take(base, &used, gemm_floats(net, threads));
    net->projected = take(base, &used, net->block * net->batch * gates);
    net->bias = take(base, &used, gates);
    net->state_bias = take(base, &used, gates);
    net->h = take(base, &used, state);
    net->c = take(base, &used, state);
    net->extra = take(base, &used, net->batch * gates);
    return used;
}

size_t
kiln_cpu_recurrent_scratch(const KilnCpuRecurrent *net, int threads)
{
    KilnCpuRecurrent unplaced = *net;
    bool packed =
        cpu_is_const(net->instr, net->first_in + 1) && cpu_is_const(net->instr, net->first_in + 2);
    size_t bytes = 4 * (size_t)divide_scratch(&unplaced, NULL, threads);
    return bytes + (packed ? 0 : kiln_cpu_recurrent_packed(net));
}

/* --- running --- */

static void *
operand(const KilnCpuRecurrent *net, uint32_t i)
{
    return cpu_type(net->instr, i) ? net->args->data[i] : NULL;
}

/* W's and R's biases are added once; a separate state keeps R's bias of the last gate. */
static void
add_biases(const KilnCpuRecurrent *net, int64_t direction)
{
    int64_t n = net->gates * net->hidden, kept = net->separate ? n - net->hidden : n;
    const float *b = operand(net, net->first_in + 3);
    memset(net->state_bias, 0, (size_t)n * sizeof *net->state_bias);
    memset(net->bias, 0, (size_t)n * sizeof *net->bias);
    if (!b)
        return;
    b += 2 * direction * n;
    for (int64_t j = 0; j < n; j++) {
        net->bias[j] = j < kept ? b[j] + b[n + j] : b[j];
        net->state_bias[j] = j < kept ? 0 : b[n + j];
    }
}

static void
load_state(const KilnCpuRecurrent *net, float *state, uint32_t initial, int64_t direction)
{
    int64_t n = net->batch * net->hidden;
    const float *from = operand(net, initial);
    if (from)
        memcpy(state, from + direction * n, (size_t)n * sizeof *state);
    else
        memset(state, 0, (size_t)n * sizeof *state);
}

void
kiln_cpu_recurrent_multiply(const KilnCpuRecurrent *net, int i, int64_t direction,
                            const KilnCpuGemmArgs *operands)
{
    const KilnCpuGateProduct *product = &net->products[i];
    KilnCpuGemm gemm = product->gemm;
    gemm.bias_col = 1;
    KilnCpuGemmArgs args = *operands;
    args.b = net->packed + direction * net->direction_bytes + product->packed_at;
    args.scratch = net->gemm_scratch;
    args.threads = net->args->threads;
    kiln_cpu_gemm_run(&gemm, &args);
}

typedef struct {
    const KilnCpuRecurrent *net;
    KilnCpuCell cell;
    KilnCpuCellRow first;
    int64_t rows_per_task;
} Rows;

static void
run_rows(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Rows *rows = data;
    const KilnCpuRecurrent *net = rows->net;
    int64_t n = net->hidden, begin = task * rows->rows_per_task, end = begin + rows->rows_per_task;
    for (int64_t b = begin; b < end && b < net->batch; b++) {
        KilnCpuCellRow row = rows->first;
        row.gates += b * net->gates * n;
        row.recurrent = row.recurrent ? row.recurrent + b * net->gates * n : NULL;
        row.before += b * n;
        row.h += b * n;
        row.c = row.c ? row.c + b * n : NULL;
        row.update = row.update ? row.update + b * n : NULL;
        rows->cell(&row);
    }
}

void
kiln_cpu_recurrent_rows(const KilnCpuRecurrent *net, KilnCpuCell cell, const KilnCpuCellRow *first)
{
    Rows rows = { net, cell, *first, ceil_div(TASK_ELEMENTS, net->hidden) };
    kiln_cpu_parallel(ceil_div(net->batch, rows.rows_per_task), net->args->threads, run_rows,
                      &rows);
}

/* The states after a step are the rows of Y where it is asked for, else stay in scratch. */
static void
run_direction(const KilnCpuRecurrent *net, KilnCpuStep *at)
{
    bool backwards = net->reverse || at->direction == 1;
    int64_t state = net->batch * net->hidden, gates = net->batch * net->gates * net->hidden;
    const float *x = operand(net, net->first_in);
    float *y = operand(net, 0);
    at->before = net->h;
    for (int64_t first = 0; first < net->steps; first += net->block) {
        int64_t last = net->steps - net->block, begin = first < last ? first : last;
        int64_t low = backwards ? last - begin : begin;
        kiln_cpu_recurrent_multiply(net, 0, at->direction,
                                    &(KilnCpuGemmArgs){ .a = x + low * net->batch * net->input,
                                                        .out = net->projected,
                                                        .bias = net->bias });
        for (int64_t i = first; i < first + net->block && i < net->steps; i++) {
            int64_t t = backwards ? net->steps - 1 - i : i;
            at->gates = net->projected + (t - low) * gates;
            at->h = y ? y + (t * net->directions + at->direction) * state : net->h;
            net->step(net, at);
            at->before = at->h;
        }
    }
}

void
kiln_cpu_recurrent_run(KilnCpuRecurrent *net, const KilnKernelArgs *args, uint32_t y_c)
{
    if (net->hidden == 0 || net->batch == 0)
        return;
    net->args = args;
    int64_t used = divide_scratch(net, args->scratch, args->threads);
    net->packed = args->packed;
    if (!net->packed) {
        float *packed = (float *)args->scratch + used;
        kiln_cpu_recurrent_prepack(net, (const void *const *)args->data, packed, KILN_SLICE_WHOLE);
        net->packed = (const char *)packed;
    }
    int64_t state = net->batch * net->hidden;
    float *last_h = operand(net, 1), *last_c = y_c ? operand(net, y_c) : NULL;
    for (int64_t d = 0; d < net->directions; d++) {
        KilnCpuStep at = { .direction = d, .c = last_c ? last_c + d * state : net->c };
        add_biases(net, d);
        load_state(net, net->h, net->first_in + 5, d);
        if (y_c)
            load_state(net, at.c, net->first_in + 6, d);
        run_direction(net, &at);
        if (last_h)
            memcpy(last_h + d * state, at.before, (size_t)state * sizeof *last_h);
    }
}
