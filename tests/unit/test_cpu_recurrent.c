/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu target's rnn, lstm and gru against the reference kernels: directions, absent operands and
 * results, batches, sequences of several lengths, more steps than a block; and what falls back. */
#include "backends/cpu/cpu.h"
#include "ir/target.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/exact_memory.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums of a few hundred products, carried through the steps. */
static const Tolerance near = { 3e-6, 3e-6 };

typedef struct {
    int64_t steps, batch, input, hidden;
    const char *direction;
    bool bias, h, c;          /* operands that are there */
    bool no_y, no_h, no_c;    /* results that are not */
    bool linear_before_reset; /* gru */
    bool relu;                /* rnn */
    bool lengths;
    int64_t only; /* with lengths: steps of the first sequence, others have none; 0: several */
} Net;

// clang-format off
static const Net nets[] = {
    { 1, 1, 1, 1, "forward", .bias = true, .h = true, .c = true },
    { 5, 1, 7, 16, "forward", .bias = true, .h = false, .c = false },
    { 5, 1, 7, 19, "reverse", .bias = false, .h = true, .c = true },
    { 6, 3, 5, 9, "bidirectional", .bias = true, .h = true, .c = true },
    { 6, 2, 5, 33, "bidirectional", .bias = false, .h = false, .c = false, .no_y = true },
    { 4, 5, 3, 17, "reverse", .bias = true, .h = false, .c = true, .no_y = true, .no_c = true },
    { 4, 5, 3, 17, "forward", .bias = true, .h = true, .c = false, .no_h = true, .no_c = true },
    { 4, 5, 3, 17, "forward", .bias = true, .h = true, .c = true, .no_y = true, .no_h = true },
    { 300, 1, 3, 5, "bidirectional", .bias = true, .h = true, .c = true },
    { 7, 100, 4, 6, "reverse", .bias = true, .h = true, .c = true },
    { 2, 300, 4, 40, "bidirectional", .bias = true, .h = false, .c = true },
    { 3, 4, 96, 128, "forward", .bias = true, .h = true, .c = true },
    { 3, 2, 0, 8, "forward", .bias = true, .h = true, .c = true },
    { 0, 2, 3, 8, "bidirectional", .bias = true, .h = true, .c = true },
    { 0, 2, 3, 8, "forward", .bias = true, .h = false, .c = false },
    { 3, 0, 2, 8, "forward", .bias = true, .h = true, .c = true },
    { 5, 2, 3, 20, "bidirectional", .bias = true, .h = true, .c = true, .linear_before_reset = true },
    { 40, 9, 30, 50, "reverse", .bias = false, .h = true, .c = true, .linear_before_reset = true },
    { 9, 1, 16, 130, "bidirectional", .bias = true, .h = true, .c = true },
    { 6, 13, 8, 75, "reverse", .bias = true, .h = true, .c = true, .no_y = true },
    { 300, 1, 8, 112, "forward", .bias = true, .h = true, .c = true },
    { 5, 11, 8, 112, "forward", .bias = true, .h = true, .c = true, .linear_before_reset = true },
    { 5, 2, 7, 19, "bidirectional", .bias = true, .h = true, .relu = true },
    { 24, 4, 256, 5, "bidirectional", .bias = true, .h = true, .c = true, .only = 3 },
    { 24, 4, 256, 6, "forward", .bias = false, .h = true, .c = true, .only = 3 },
    { 24, 4, 256, 17, "reverse", .bias = true, .h = true, .c = true, .only = 3 },
    { 25, 4, 256, 32, "forward", .bias = true, .h = false, .c = false, .only = 3 },
    { 3, 300, 40, 9, "reverse", .bias = true, .h = true, .c = true, .only = 2 },
};
// clang-format on

static void
add_out(RefCase *c, bool absent, int rank, const int64_t *dims)
{
    if (absent)
        case_absent(c);
    else
        case_out(c, KILN_DTYPE_f32, rank, dims);
}

/* Values within ±@most, so that gates do not saturate. */
static void
add_in(RefCase *c, bool absent, int rank, const int64_t *dims, double most)
{
    if (absent) {
        case_absent(c);
        return;
    }
    cpu_in(c, rank, dims);
    float *x = c->data[c->instr.n_operands - 1];
    for (int64_t i = 0; i < kiln_type_elements(&c->buffers[c->instr.n_operands - 1].type); i++)
        x[i] *= (float)most / 3;
}

static const char *relus[] = { "Relu", "relu" };

/* Lengths of all sequences. Some have no steps, as a rule. */
static void
add_lengths(RefCase *c, const Net *n)
{
    case_in(c, KILN_DTYPE_i32, 1, &n->batch, NULL);
    int32_t *lengths = c->data[c->instr.n_operands - 1];
    for (int64_t i = 0; i < n->batch; i++)
        lengths[i] = n->only == 0 ? (int32_t)((i * 7 + n->steps - 1) % (n->steps + 1))
                     : i == 0     ? (int32_t)n->only
                                  : 0;
}

static RefCase *
net_case(KilnInstrKind kind, const Net *n)
{
    bool lstm = kind == KILN_INSTR_lstm;
    int64_t d = strcmp(n->direction, "bidirectional") == 0 ? 2 : 1;
    int64_t gates = lstm ? 4 : kind == KILN_INSTR_gru ? 3 : 1;
    int64_t state[] = { d, n->batch, n->hidden };
    RefCase *c = case_new(kind);
    CASE_ATTRS(c, rnn)->direction = n->direction;
    CASE_ATTRS(c, rnn)->hidden_size = n->hidden;
    if (kind == KILN_INSTR_gru)
        CASE_ATTRS(c, gru)->linear_before_reset = n->linear_before_reset;
    if (n->relu)
        CASE_ATTRS(c, rnn)->activations = (KilnStrings){ 2, relus };
    add_out(c, n->no_y, DIMS(n->steps, d, n->batch, n->hidden));
    add_out(c, n->no_h, 3, state);
    if (lstm)
        add_out(c, n->no_c, 3, state);
    double most = 1.5 / sqrt((double)(n->hidden + 1));
    double most_w = 1.5 / sqrt((double)(MAX(n->hidden, n->input) + 1));
    add_in(c, false, DIMS(n->steps, n->batch, n->input), 1.5);
    add_in(c, false, DIMS(d, gates * n->hidden, n->input), most_w);
    add_in(c, false, DIMS(d, gates * n->hidden, n->hidden), most);
    add_in(c, !n->bias, DIMS(d, 2 * gates * n->hidden), 0.5);
    if (n->lengths)
        add_lengths(c, n);
    else
        case_absent(c);
    add_in(c, !n->h, 3, state, 1.0);
    if (lstm)
        add_in(c, !n->c, 3, state, 1.0);
    return c;
}

static void
check(KilnInstrKind kind)
{
    for (size_t i = 0; i < G_N_ELEMENTS(nets); i++) {
        bool other = (nets[i].linear_before_reset && kind != KILN_INSTR_gru) ||
                     (nets[i].relu && kind != KILN_INSTR_rnn);
        if (other)
            continue;
        Net net = nets[i];
        for (int lengths = 0; lengths < 2; lengths++) {
            net.lengths = lengths;
            g_autoptr(RefCase) c = net_case(kind, &net);
            g_autofree char *what =
                g_strdup_printf("net %d%s", (int)i, lengths ? " with lengths" : "");
            cpu_agrees(c, near, what);
        }
    }
}

Test(cpu_recurrent, lstm)
{
    check(KILN_INSTR_lstm);
}

Test(cpu_recurrent, gru)
{
    check(KILN_INSTR_gru);
}

Test(cpu_recurrent, rnn)
{
    check(KILN_INSTR_rnn);
}

/* Lengths alone say how many rows are left out: neither the number of threads nor scratch does. */
Test(cpu_recurrent, lengths_on_many_threads)
{
    static const int threads[] = { 2, 8, 16 };
    for (size_t i = 0; i < G_N_ELEMENTS(nets); i++) {
        Net net = nets[i];
        net.lengths = true;
        g_autoptr(RefCase) c = net_case(net.relu                  ? KILN_INSTR_rnn
                                        : net.linear_before_reset ? KILN_INSTR_gru
                                                                  : KILN_INSTR_lstm,
                                        &net);
        void *first[CASE_MAX_OPERANDS] = { NULL };
        cr_assert_null(cpu_run(c, &(CpuCall){ .threads = 1 }, first));
        for (size_t j = 0; j < G_N_ELEMENTS(threads); j++) {
            g_autofree char *what = g_strdup_printf("net %d, %d threads", (int)i, threads[j]);
            void *other[CASE_MAX_OPERANDS] = { NULL };
            cr_assert_null(cpu_run(c, &(CpuCall){ .threads = threads[j] }, other));
            cpu_same_bits(c, first, other, false, what);
            cpu_free(other);
        }
        cpu_free(first);
    }
}

/* simplify-recurrent removes lengths of all steps and promises the same bits. Some tiles sum few
 * rows in another order: those of the last block, and of as many rows as leave few for a panel. */
Test(cpu_recurrent, full_lengths_change_no_bit)
{
    static const Net full[] = {
        { 7, 1, 9, 3, "reverse", .bias = true, .h = true },
        { 6, 3, 5, 9, "bidirectional", .bias = true, .h = true },
        { 1261, 7, 9, 2, "bidirectional", .bias = true, .h = true },
        { 7141, 3, 9, 2, "bidirectional", .bias = true, .h = true },
        { 7, 100, 4, 6, "reverse", .bias = true, .h = true },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(full); i++) {
        Net net = full[i];
        g_autoptr(RefCase) without = net_case(KILN_INSTR_gru, &net);
        net.lengths = true;
        g_autoptr(RefCase) with = net_case(KILN_INSTR_gru, &net);
        int32_t *lengths = with->data[6];
        for (int64_t b = 0; b < net.batch; b++)
            lengths[b] = (int32_t)net.steps;
        void *first[CASE_MAX_OPERANDS] = { NULL }, *second[CASE_MAX_OPERANDS] = { NULL };
        g_autofree char *what = g_strdup_printf("net %d", (int)i);
        cr_assert_null(cpu_run(without, &(CpuCall){ .threads = 1 }, first));
        cr_assert_null(cpu_run(with, &(CpuCall){ .threads = 1 }, second));
        cpu_same_bits(without, first, second, false, what);
        cpu_free(first);
        cpu_free(second);
    }
}

/* Weights of a model may lie at any byte. */
Test(cpu_recurrent, packs_misaligned_weights)
{
    Net net = { 4, 2, 5, 18, "bidirectional", .bias = true, .h = true, .c = true };
    g_autoptr(RefCase) c = net_case(KILN_INSTR_lstm, &net);
    const KilnKernel *kernel = cpu_kernel(c);
    uint32_t form = kiln_kernel_form(kernel, &c->instr);
    size_t bytes = kernel->packed_bytes(&c->instr, form);
    char *packed[2], *copies[2];
    for (int shift = 0; shift < 2; shift++) {
        const void *sources[CASE_MAX_OPERANDS] = { NULL };
        for (uint32_t i = 4; i < 6; i++) {
            size_t size = (size_t)kiln_type_bytes(&c->buffers[i].type);
            copies[i - 4] = malloc(size + 1);
            sources[i] = memcpy(copies[i - 4] + shift, c->data[i], size);
        }
        packed[shift] = exact_memory((int64_t)bytes);
        memset(packed[shift], 0, bytes);
        cr_assert_null(kernel->pack(&c->instr, form, sources, packed[shift], KILN_SLICE_WHOLE));
        free(copies[0]);
        free(copies[1]);
    }
    cr_assert_eq(memcmp(packed[0], packed[1], bytes), 0);
    free(packed[0]);
    free(packed[1]);
}

static bool
takes(const RefCase *c)
{
    return kiln_target_find(kiln_cpu_target(), &c->instr) != NULL;
}

Test(cpu_recurrent, lengths_out_of_range)
{
    Net net = { 4, 2, 5, 18, "forward", .bias = true, .h = true, .c = true, .lengths = true };
    g_autoptr(RefCase) c = net_case(KILN_INSTR_gru, &net);
    ((int32_t *)c->data[6])[1] = 5;
    cpu_agrees(c, near, "too long");
    cr_expect_not_null(case_run(c));
    ((int32_t *)c->data[6])[1] = -1;
    cpu_agrees(c, near, "negative");
}

Test(cpu_recurrent, what_falls_back)
{
    Net net = { 2, 1, 2, 2, "bidirectional", .bias = true, .h = true, .c = true };
    g_autoptr(RefCase) c = net_case(KILN_INSTR_lstm, &net);
    KilnInstrAttrs_lstm *attrs = CASE_ATTRS(c, lstm);
    const char *names[] = { "sigmoid", "tanh", "Tanh", "Sigmoid", "Tanh", "Tanh" };
    attrs->activations = (KilnStrings){ 6, names };
    cr_expect(takes(c), "the defaults by name");
    names[5] = "Relu";
    cr_expect_not(takes(c), "an activation");
    names[5] = "Tanh";
    attrs->clip = 1.0f;
    cr_expect_not(takes(c), "clip");
    attrs->clip = 0.0f;
    attrs->input_forget = true;
    cr_expect_not(takes(c), "input_forget");
    attrs->input_forget = false;
    attrs->layout = 1;
    cr_expect_not(takes(c), "layout");
    attrs->layout = 0;
    add_in(c, false, DIMS(2, 6), 1.0);
    cr_expect_not(takes(c), "peepholes");
    c->uses[10].buffer = NULL;
    cr_expect(takes(c));
    c->buffers[3].type.dtype = KILN_DTYPE_f64;
    cr_expect_not(takes(c), "f64");
}
