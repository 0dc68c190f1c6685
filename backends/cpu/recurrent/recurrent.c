/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of steps, packed weights and scratch of recurrent nets. All blocks have as many steps, so
 * that one problem stands for the products of all: the last one begins early enough and projects
 * some steps again. */
#include "backends/cpu/recurrent/recurrent.h"

#include "backends/cpu/extents.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/parallel.h"
#include "exec/team.h"

#include <string.h>
#include <strings.h>

enum {
    BLOCK_ROWS = 256, /* of inputs projected at once: keeps scratch small for long sequences */
    TEAM_PRODUCTS = 1 << 15, /* of a step, that are worth a meeting of the team */
    PACK_BYTES = 64 * 1024,  /* packed at a time by a thread, where that is done in each run */
};

/* --- what is computed --- */

bool
kiln_cpu_net_supports(const KilnInstr *instr, const char *const *defaults, uint32_t n)
{
    /* The rows of gru and lstm begin with the fields of rnn. */
    const KilnInstrAttrs_rnn *attrs = kiln_instr_attrs(instr, rnn);
    uint32_t first_in = instr->kind == KILN_INSTR_lstm ? 3 : 2;
    if (attrs->clip != 0 || attrs->layout != 0)
        return false;
    for (uint32_t i = 0; i < attrs->activations.n; i++) {
        if (strcasecmp(attrs->activations.v[i], defaults[i % n]) != 0)
            return false;
    }
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnType *type = cpu_type(instr, i);
        const KilnDType dtype = i == first_in + 4 ? KILN_DTYPE_i32 : KILN_DTYPE_f32;
        if (type && (type->dtype != dtype || type->layout))
            return false;
    }
    return true;
}

/* The product of a block of steps. With lengths it has fewer rows, as the case may be, and reads
 * the same packed weights: so the extents here choose their form, once. */
static void
project_inputs(KilnCpuRecurrent *net, KilnCpuGemmForm form)
{
    net->inputs =
        kiln_cpu_gemm_dense(net->block * net->batch, net->gates * net->hidden, net->input);
    net->inputs.b_row = 1;
    net->inputs.b_col = net->input;
    net->inputs.b_packed = true;
    net->inputs.bias_col = 1;
    net->inputs.form = form;
    if (form == KILN_CPU_GEMM_BEST)
        net->inputs.form = kiln_cpu_gemm_best_form(&net->inputs);
    net->direction_bytes = round_up(kiln_cpu_gemm_pack_b_size(&net->inputs), KILN_CPU_LINE);
}

KilnCpuRecurrent
kiln_cpu_net_new(const KilnInstr *instr, int64_t gates, KilnCpuGemmForm form)
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
    net.row_blocks = ceil_div(net.batch, kiln_cpu_cells(KILN_CPU_ISA_AUTO)->max_rows);
    project_inputs(&net, form);
    return net;
}

void
kiln_cpu_net_add(KilnCpuRecurrent *net, KilnCpuStage code)
{
    KilnCpuRecurrentStage *stage = &net->stages[net->n_stages];
    const KilnCpuRecurrentStage *last = net->n_stages > 0 ? stage - 1 : NULL;
    int64_t width = code.vectors * kiln_cpu_cells(KILN_CPU_ISA_AUTO)->vector;
    *stage = (KilnCpuRecurrentStage){ .code = code,
                                      .first_gate = last ? last->first_gate + last->code.gates : 0,
                                      .width = width,
                                      .panels = ceil_div(net->hidden, width),
                                      .panel_floats = net->hidden * code.gates * width,
                                      .packed_at = net->direction_bytes,
                                      .of_scaled = last };
    net->direction_bytes += 4 * round_up(stage->panels * stage->panel_floats, KILN_CPU_LINE_FLOATS);
    net->n_stages++;
}

/* --- weights --- */

size_t
kiln_cpu_net_packed(const KilnCpuRecurrent *net)
{
    return (size_t)(net->directions * net->direction_bytes);
}

/* One panel: [hidden][gates][width] of the rows of R at @weight, which may be misaligned, in pieces
   of depth that stay in the first-level cache. */
static void
pack_panel(const KilnCpuRecurrent *net, const KilnCpuRecurrentStage *stage, int64_t panel,
           const char *weight, float *to)
{
    enum {
        PIECE = 64
    };
    int64_t n = net->hidden, pitch = stage->code.gates * stage->width;
    for (int64_t first = 0; first < n; first += PIECE) {
        int64_t end = first + PIECE < n ? first + PIECE : n;
        for (int64_t i = 0; i < pitch; i++) {
            int64_t gate = stage->first_gate + i / stage->width;
            int64_t unit = panel * stage->width + i % stage->width;
            const char *row = weight + 4 * (gate * n + unit) * n;
            for (int64_t k = first; k < end; k++) {
                float x = 0;
                if (unit < n)
                    memcpy(&x, row + 4 * k, sizeof x);
                to[k * pitch + i] = x;
            }
        }
    }
}

void
kiln_cpu_net_prepack(const KilnCpuRecurrent *net, const void *const *data, void *packed,
                     KilnSlice slice)
{
    KilnCpuGemm plain = net->inputs;
    plain.b_packed = false;
    for (int64_t d = 0; d < net->directions; d++) {
        char *to = (char *)packed + d * net->direction_bytes;
        int64_t rows = d * net->gates * net->hidden;
        const char *w = data[net->first_in + 1], *r = data[net->first_in + 2];
        kiln_cpu_gemm_pack_b(&plain, w + 4 * rows * net->input, (float *)to, slice);
        for (int i = 0; i < net->n_stages; i++) {
            const KilnCpuRecurrentStage *stage = &net->stages[i];
            float *panels = (float *)(to + stage->packed_at);
            int64_t end = kiln_slice_end(slice, stage->panels);
            for (int64_t j = kiln_slice_begin(slice, stage->panels); j < end; j++)
                pack_panel(net, stage, j, r + 4 * rows * net->hidden,
                           panels + j * stage->panel_floats);
        }
    }
}

/* --- scratch --- */

/* The next @floats of @base, of which *@used are taken; NULL where there is no base yet. */
static float *
take(float *base, int64_t *used, int64_t floats)
{
    float *taken = base ? base + *used : NULL;
    *used += round_up(floats, KILN_CPU_LINE_FLOATS);
    return taken;
}

static bool
has_lengths(const KilnCpuRecurrent *net)
{
    return cpu_type(net->instr, net->first_in + 4) != NULL;
}

/* Sets the parts of the scratch at @base but for the last two: weights that are packed there, and
 * what the product needs. Returns how many floats they take. */
static int64_t
divide_scratch(KilnCpuRecurrent *net, float *base)
{
    int64_t state = net->batch * net->hidden, gates = net->gates * net->hidden, used = 0;
    bool lengths = has_lengths(net);
    net->projected = take(base, &used, net->block * net->batch * gates);
    net->bias = take(base, &used, gates);
    net->state_bias = take(base, &used, net->hidden);
    net->h[0] = take(base, &used, state);
    net->h[1] = take(base, &used, state);
    net->c = take(base, &used, state);
    net->update = take(base, &used, state);
    net->scaled = take(base, &used, state);
    net->chosen = take(base, &used, lengths ? net->block * net->batch * net->input : 0);
    int64_t rows = lengths ? net->block * (int64_t)(sizeof(KilnCpuStepRows) / sizeof(float)) : 0;
    net->rows = (KilnCpuStepRows *)take(base, &used, rows);
    return used;
}

size_t
kiln_cpu_net_scratch(const KilnCpuRecurrent *net, int threads)
{
    KilnCpuRecurrent unplaced = *net;
    int64_t product = has_lengths(net) ? kiln_cpu_gemm_scratch_up_to(&net->inputs, threads)
                                       : kiln_cpu_gemm_scratch_size(&net->inputs, threads);
    return 4 * (size_t)divide_scratch(&unplaced, NULL) + (size_t)product;
}

/* --- running --- */

static void *
operand(const KilnCpuRecurrent *net, uint32_t i)
{
    return cpu_type(net->instr, i) ? net->args->data[i] : NULL;
}

/* W's and R's biases are added once; a separate one of R's last gate is kept. */
static void
add_biases(const KilnCpuRecurrent *net, int64_t direction)
{
    int64_t n = net->gates * net->hidden, kept = net->separate ? n - net->hidden : n;
    const float *b = operand(net, net->first_in + 3);
    memset(net->state_bias, 0, (size_t)net->hidden * sizeof *net->state_bias);
    memset(net->bias, 0, (size_t)n * sizeof *net->bias);
    if (!b)
        return;
    b += 2 * direction * n;
    for (int64_t j = 0; j < n; j++)
        net->bias[j] = j < kept ? b[j] + b[n + j] : b[j];
    for (int64_t j = kept; j < n; j++)
        net->state_bias[j - kept] = b[n + j];
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

/* A block of steps of one direction, numbered in the order in which they are done. */
typedef struct {
    const KilnCpuRecurrent *net;
    int64_t direction;
    bool backwards;
    int64_t begin, end;
    int64_t projected; /* time of the first row of what is projected */
    float *c;
    const int32_t *lengths;             /* of the sequences; NULL: all steps */
    const float *initial_h, *initial_c; /* NULL: zeros */
    float *last_h, *last_c;             /* NULL where they are not asked for */
} Block;

static int64_t
time_of(const Block *block, int64_t i)
{
    return block->backwards ? block->net->steps - 1 - i : i;
}

/* The state after step @i, the initial one after step -1: rows of Y where it is asked for, else
   in scratch. */
static float *
state_after(const Block *block, int64_t i)
{
    const KilnCpuRecurrent *net = block->net;
    float *y = operand(net, 0);
    if (i < 0 || !y)
        return net->h[(i + 1) & 1];
    int64_t row = time_of(block, i) * net->directions + block->direction;
    return y + row * net->batch * net->hidden;
}

/* The rows that step @i computes: from the first sequence that has an element then to the last. */
static KilnCpuStepRows
rows_of(const Block *block, int64_t i)
{
    const KilnCpuRecurrent *net = block->net;
    const int64_t at = time_of(block, i) - block->projected;
    if (block->lengths)
        return net->rows[at];
    return (KilnCpuStepRows){ 0, net->batch, at * net->batch };
}

static void
copy_units(float *to, const float *from, int64_t n)
{
    if (from)
        memcpy(to, from, (size_t)n * sizeof *to);
    else
        memset(to, 0, (size_t)n * sizeof *to);
}

/* Sequences that end before others, at the end of step @i. Backwards they keep the initial state
 * until their last element. Forwards their last state is saved, and what they go on with is not
 * read. */
static void
settle_sequences(const Block *block, int64_t i, const KilnCpuCell *cell, int64_t row, int64_t unit)
{
    const int64_t time = time_of(block, i), n = cell->n, units = cell->units;
    for (int64_t r = 0; r < cell->rows; r++) {
        const int64_t length = block->lengths[row + r], at = (row + r) * n + unit;
        if (block->backwards && time >= length) {
            copy_units(cell->h + r * n, block->initial_h ? block->initial_h + at : NULL, units);
            copy_units(cell->c + r * n, block->initial_c ? block->initial_c + at : NULL, units);
        } else if (!block->backwards && time == length - 1) {
            if (block->last_h)
                copy_units(block->last_h + at, cell->h + r * n, units);
            if (block->last_c)
                copy_units(block->last_c + at, cell->c + r * n, units);
        }
    }
}

/* What one panel does for one block of rows in step @i. */
static void
run_panel(const Block *block, const KilnCpuRecurrentStage *stage, int64_t i, int64_t task)
{
    const KilnCpuRecurrent *net = block->net;
    int64_t panel = task / net->row_blocks, rows = task % net->row_blocks, n = net->hidden;
    int64_t unit = panel * stage->width, gates_row = net->gates * n;
    const int64_t begin = rows * net->batch / net->row_blocks;
    const int64_t end = (rows + 1) * net->batch / net->row_blocks;
    const KilnCpuStepRows some = rows_of(block, i);
    const int64_t first = MAX(begin, some.first), last = MIN(end, some.end);
    const char *packed = net->packed + block->direction * net->direction_bytes + stage->packed_at;
    const float *before = state_after(block, i - 1);
    float *after = state_after(block, i);
    KilnCpuCell cell = {
        .n = n,
        .rows = last - first,
        .units = n - unit < stage->width ? n - unit : stage->width,
        .weights = (const float *)packed + panel * stage->panel_floats,
        .gates_row = gates_row,
        .bias = net->state_bias + unit,
    };
    if (cell.rows > 0) {
        const int64_t at = first * n + unit, row = some.at + first - some.first;
        cell.state = (stage->of_scaled ? net->scaled : before) + first * n;
        cell.gates = net->projected + row * gates_row + stage->first_gate * n + unit;
        cell.before = before + at;
        cell.h = after + at;
        cell.c = block->c + at;
        cell.update = net->update + at;
        cell.scaled = net->scaled + at;
        stage->code.run(&cell);
    }
    if (block->lengths && stage == &net->stages[net->n_stages - 1]) {
        cell.rows = end - begin;
        cell.h = after + begin * n + unit;
        cell.c = block->c + begin * n + unit;
        settle_sequences(block, i, &cell, begin, unit);
    }
}

/* --- the steps of a block: a round of the team for each stage --- */

static const KilnCpuRecurrentStage *
stage_of(const Block *block, unsigned round)
{
    return &block->net->stages[round % (unsigned)block->net->n_stages];
}

static int64_t
step_of(const Block *block, unsigned round)
{
    return block->begin + round / (unsigned)block->net->n_stages;
}

static int64_t
panels_of_round(const void *data, unsigned round)
{
    const Block *block = data;
    return stage_of(block, round)->panels * block->net->row_blocks;
}

/* Every other step goes through the panels from the last to the first: of weights that do not all
   fit in a cache, those that were used last are then used first. */
static bool
goes_backwards(const void *data, unsigned round)
{
    return step_of(data, round) & 1;
}

static void
run_panels_of_round(const void *data, unsigned round, int64_t task, int step, int64_t n, int member)
{
    (void)member;
    const Block *block = data;
    const KilnCpuRecurrentStage *stage = stage_of(block, round);
    const int64_t at = step_of(block, round);
    for (int64_t i = 0; i < n; i++)
        run_panel(block, stage, at, task + i * step);
}

static void
run_steps(const Block *block, int threads)
{
    const KilnTeamRounds rounds = { .n = (unsigned)(block->end - block->begin) *
                                         (unsigned)block->net->n_stages,
                                    .tasks = panels_of_round,
                                    .backwards = goes_backwards,
                                    .run = run_panels_of_round,
                                    .data = block };
    kiln_team_rounds(&rounds, threads);
}

/* What lies behind the end of a sequence is zero in Y. Forwards a sequence without elements ends
 * with the initial state, and backwards all end where the steps do. */
static void
finish_sequences(const Block *block)
{
    const KilnCpuRecurrent *net = block->net;
    const int64_t n = net->hidden;
    float *y = operand(net, 0);
    const float *h = state_after(block, net->steps - 1);
    for (int64_t b = 0; b < net->batch; b++) {
        const bool last = block->backwards, none = block->lengths[b] == 0;
        const float *initial_h = block->initial_h ? block->initial_h + b * n : NULL;
        const float *initial_c = block->initial_c ? block->initial_c + b * n : NULL;
        if (block->last_h && (last || none))
            copy_units(block->last_h + b * n, last ? h + b * n : initial_h, n);
        if (block->last_c && (last || none))
            copy_units(block->last_c + b * n, last ? block->c + b * n : initial_c, n);
    }
    for (int64_t t = 0; y && t < net->steps; t++) {
        for (int64_t b = 0; b < net->batch; b++) {
            const int64_t row = (t * net->directions + block->direction) * net->batch + b;
            if (t >= block->lengths[b])
                copy_units(y + row * n, NULL, n);
        }
    }
}

static const float *
state_operand(const KilnCpuRecurrent *net, uint32_t i, int64_t direction)
{
    const float *state = operand(net, i);
    return state ? state + direction * net->batch * net->hidden : NULL;
}

/* Finds the rows of each step that is projected, and brings their inputs together. Returns their
 * number. Without a row that is left out, all is as it is without lengths, down to the bits. */
static int64_t
choose_rows(const Block *block, const float *x)
{
    const KilnCpuRecurrent *net = block->net;
    int64_t n = 0;
    for (int64_t i = 0; i < net->block; i++) {
        const int64_t time = block->projected + i;
        KilnCpuStepRows rows = { 0, 0, n };
        for (int64_t b = 0; b < net->batch; b++) {
            if (block->lengths[b] <= time)
                continue;
            rows.first = rows.end > 0 ? rows.first : b;
            rows.end = b + 1;
        }
        net->rows[i] = rows;
        copy_units(net->chosen + n * net->input, x + (time * net->batch + rows.first) * net->input,
                   (rows.end - rows.first) * net->input);
        n += rows.end - rows.first;
    }
    return n;
}

/* The inputs' part of the gates of a block of steps. */
static void
project(const Block *block, const float *x)
{
    const KilnCpuRecurrent *net = block->net;
    KilnCpuGemm product = net->inputs;
    KilnCpuGemmArgs args = { .a = x + block->projected * net->batch * net->input,
                             .b = net->packed + block->direction * net->direction_bytes,
                             .out = net->projected,
                             .bias = net->bias,
                             .scratch = net->gemm_scratch,
                             .threads = net->args->threads };
    if (block->lengths) {
        product.m = choose_rows(block, x);
        args.a = net->chosen;
    }
    kiln_cpu_gemm_run(&product, &args);
}

static void
run_direction(const KilnCpuRecurrent *net, int64_t direction, float *c, float *last_c)
{
    const float *x = operand(net, net->first_in);
    int64_t products = net->batch * net->gates * net->hidden * net->hidden;
    int threads = products < TEAM_PRODUCTS ? 1 : net->args->threads;
    const int64_t state = net->batch * net->hidden;
    float *last_h = operand(net, 1);
    Block block = { .net = net,
                    .direction = direction,
                    .backwards = net->reverse || direction == 1,
                    .c = c,
                    .lengths = operand(net, net->first_in + 4),
                    .initial_h = state_operand(net, net->first_in + 5, direction),
                    .last_h = last_h ? last_h + direction * state : NULL,
                    .last_c = last_c };
    if (net->instr->kind == KILN_INSTR_lstm)
        block.initial_c = state_operand(net, net->first_in + 6, direction);
    for (int64_t first = 0; first < net->steps; first += net->block) {
        int64_t last = net->steps - net->block, low = first < last ? first : last;
        block.begin = first;
        block.end = first + net->block < net->steps ? first + net->block : net->steps;
        block.projected = block.backwards ? last - low : low;
        project(&block, x);
        run_steps(&block, threads);
    }
    if (block.lengths)
        finish_sequences(&block);
    else if (block.last_h)
        copy_units(block.last_h, state_after(&block, net->steps - 1), state);
}

typedef struct {
    const KilnCpuRecurrent *net;
    void *packed;
    int64_t slices;
} Packing;

static void
pack_slice(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Packing *packing = data;
    const KilnCpuRecurrent *net = packing->net;
    kiln_cpu_net_prepack(net, (const void *const *)net->args->data, packing->packed,
                         (KilnSlice){ task, packing->slices });
}

void
kiln_cpu_net_run(KilnCpuRecurrent *net, const KilnKernelArgs *args, uint32_t y_c)
{
    if (net->hidden == 0 || net->batch == 0)
        return;
    net->args = args;
    float *rest = (float *)args->scratch + divide_scratch(net, args->scratch);
    net->packed = args->packed;
    if (!net->packed) {
        const int64_t bytes = (int64_t)kiln_cpu_net_packed(net);
        Packing packing = { net, rest, ceil_div(bytes, PACK_BYTES) };
        kiln_cpu_parallel(packing.slices, args->threads, pack_slice, &packing);
        net->packed = packing.packed;
        rest += bytes / 4;
    }
    net->gemm_scratch = rest;
    float *all_c = y_c ? operand(net, y_c) : NULL;
    const bool lengths = operand(net, net->first_in + 4) != NULL;
    for (int64_t d = 0; d < net->directions; d++) {
        float *last_c = all_c ? all_c + d * net->batch * net->hidden : NULL;
        float *c = last_c && !lengths ? last_c : net->c;
        add_biases(net, d);
        load_state(net, net->h[0], net->first_in + 5, d);
        if (y_c)
            load_state(net, c, net->first_in + 6, d);
        run_direction(net, d, c, last_c);
    }
}

void
kiln_lstm_terms(int64_t steps, int64_t batch, int64_t in, int64_t hidden,
                double terms[KILN_CPU_TERMS])
{
    double gates = 4 * (double)steps * (double)batch * (double)hidden;
    for (int i = 4; i < KILN_CPU_TERMS; i++)
        terms[i] = 0;
    terms[0] = gates * (double)in;
    terms[1] = gates * (double)hidden;
    terms[2] = (double)steps;
    terms[3] = 1;
}
