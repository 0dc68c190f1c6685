/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend's rnn, gru and lstm against the formulas of the specification, written here
 * with one sequence and full matrices, and properties that tie variants to each other. */
#include "graph/base/number.h"
#include "ir/instr.h"
#include "ref_case.h"

#include <math.h>
#include <string.h>

enum {
    STEPS = 4,
    BATCH = 3,
    INPUT = 2,
    HIDDEN = 3,
};

typedef struct {
    KilnInstrKind kind;
    int gates, directions;
    const char *direction;
    bool bias, lengths, initial, peepholes, batch_first, variant;
    double clip;
    KilnDType dtype;
} Net;

/* Operands by role, whatever the instruction. */
typedef struct {
    uint32_t y, y_h, y_c, x, w, r, b, lengths, h, c, p;
} Roles;

static Roles
roles(const Net *net)
{
    if (net->kind == KILN_INSTR_lstm)
        return (Roles){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
    return (Roles){ 0, 1, 99, 2, 3, 4, 5, 6, 7, 99, 99 };
}

static const int64_t sequence_lengths[BATCH] = { 4, 0, 2 };

static void
add_noise(RefCase *c, const Net *net, int rank, const int64_t *dims)
{
    case_in(c, net->dtype, rank, dims, NULL);
    uint32_t o = c->instr.n_operands - 1;
    for (int64_t i = 0; i < kiln_type_elements(&c->buffers[o].type); i++)
        kiln_element_store_f64(net->dtype, c->data[o], i,
                               (double)((i * 37 + o * 17 + i / 5) % 23 - 11) / 8);
}

static void
set_attrs(RefCase *c, const Net *net)
{
    /* The rows begin with the same fields. */
    KilnInstrAttrs_rnn *attrs = CASE_ATTRS(c, rnn);
    attrs->direction = net->direction;
    attrs->clip = (float)net->clip;
    attrs->hidden_size = HIDDEN;
    attrs->layout = net->batch_first;
    if (net->kind == KILN_INSTR_gru)
        CASE_ATTRS(c, gru)->linear_before_reset = net->variant;
    if (net->kind == KILN_INSTR_lstm)
        CASE_ATTRS(c, lstm)->input_forget = net->variant;
}

static RefCase *
make(const Net *net)
{
    RefCase *c = case_new(net->kind);
    int64_t d = net->directions, g = net->gates;
    bool lstm = net->kind == KILN_INSTR_lstm, front = net->batch_first;
    int64_t y[] = { STEPS, d, BATCH, HIDDEN }, front_y[] = { BATCH, STEPS, d, HIDDEN };
    int64_t state[] = { d, BATCH, HIDDEN }, front_state[] = { BATCH, d, HIDDEN };
    set_attrs(c, net);
    case_out(c, net->dtype, 4, front ? front_y : y);
    for (int i = 0; i < (lstm ? 2 : 1); i++)
        case_out(c, net->dtype, 3, front ? front_state : state);
    if (front)
        add_noise(c, net, DIMS(BATCH, STEPS, INPUT));
    else
        add_noise(c, net, DIMS(STEPS, BATCH, INPUT));
    add_noise(c, net, DIMS(d, g * HIDDEN, INPUT));
    add_noise(c, net, DIMS(d, g * HIDDEN, HIDDEN));
    if (net->bias)
        add_noise(c, net, DIMS(d, 2 * g * HIDDEN));
    else
        case_absent(c);
    if (net->lengths) {
        case_in(c, KILN_DTYPE_i32, DIMS(BATCH), VALUES(4, 0, 2));
    } else {
        case_absent(c);
    }
    for (int i = 0; i < (lstm ? 2 : 1); i++) {
        if (net->initial)
            add_noise(c, net, 3, front ? front_state : state);
        else
            case_absent(c);
    }
    if (lstm && net->peepholes)
        add_noise(c, net, DIMS(d, 3 * HIDDEN));
    return c;
}

static double
value(const RefCase *c, uint32_t o, int64_t i)
{
    if (o >= c->instr.n_operands || !c->data[o])
        return 0;
    return kiln_element_as_f64(c->buffers[o].type.dtype, c->data[o], i);
}

/* One direction and batch entry, as the formulas read. */
typedef struct {
    const RefCase *c;
    const Net *net;
    Roles at;
    int64_t d, b;
    double h[HIDDEN], cell[HIDDEN];
} Run;

static double
clipped(const Run *run, double x)
{
    return run->net->clip > 0 ? fmax(-run->net->clip, fmin(run->net->clip, x)) : x;
}

static double
sigmoid(const Run *run, double x)
{
    return 1 / (1 + exp(-clipped(run, x)));
}

/* Row @j of gate @g: the input's half with its bias, and the state's half with its own. */
static double
from_input(const Run *run, int64_t step, int64_t g, int64_t j)
{
    int64_t row = run->d * run->net->gates * HIDDEN + g * HIDDEN + j;
    int64_t x = run->net->batch_first ? run->b * STEPS + step : step * BATCH + run->b;
    double sum = value(run->c, run->at.b, run->d * 2 * run->net->gates * HIDDEN + g * HIDDEN + j);
    for (int64_t i = 0; i < INPUT; i++)
        sum += value(run->c, run->at.w, row * INPUT + i) * value(run->c, run->at.x, x * INPUT + i);
    return sum;
}

static double
from_state(const Run *run, const double *h, int64_t g, int64_t j)
{
    int64_t row = run->d * run->net->gates * HIDDEN + g * HIDDEN + j;
    double sum =
        value(run->c, run->at.b, (run->d * 2 + 1) * run->net->gates * HIDDEN + g * HIDDEN + j);
    for (int64_t i = 0; i < HIDDEN; i++)
        sum += value(run->c, run->at.r, row * HIDDEN + i) * h[i];
    return sum;
}

static void
step_rnn(Run *run, int64_t t, double *h)
{
    for (int64_t j = 0; j < HIDDEN; j++)
        h[j] = tanh(clipped(run, from_input(run, t, 0, j) + from_state(run, run->h, 0, j)));
}

static void
step_gru(Run *run, int64_t t, double *h)
{
    double z[HIDDEN], r[HIDDEN], reset[HIDDEN];
    for (int64_t j = 0; j < HIDDEN; j++) {
        z[j] = sigmoid(run, from_input(run, t, 0, j) + from_state(run, run->h, 0, j));
        r[j] = sigmoid(run, from_input(run, t, 1, j) + from_state(run, run->h, 1, j));
        reset[j] = r[j] * run->h[j];
    }
    for (int64_t j = 0; j < HIDDEN; j++) {
        double recurrent =
            run->net->variant ? r[j] * from_state(run, run->h, 2, j) : from_state(run, reset, 2, j);
        double n = tanh(clipped(run, from_input(run, t, 2, j) + recurrent));
        h[j] = (1 - z[j]) * n + z[j] * run->h[j];
    }
}

static void
step_lstm(Run *run, int64_t t, double *h)
{
    for (int64_t j = 0; j < HIDDEN; j++) {
        double gate[4], p[3];
        for (int64_t g = 0; g < 4; g++)
            gate[g] = from_input(run, t, g, j) + from_state(run, run->h, g, j);
        for (int64_t k = 0; k < 3; k++)
            p[k] = value(run->c, run->at.p, (run->d * 3 + k) * HIDDEN + j);
        double i = sigmoid(run, gate[0] + p[0] * run->cell[j]);
        double f = run->net->variant ? 1 - i : sigmoid(run, gate[2] + p[2] * run->cell[j]);
        run->cell[j] = f * run->cell[j] + i * tanh(clipped(run, gate[3]));
        h[j] = sigmoid(run, gate[1] + p[1] * run->cell[j]) * tanh(clipped(run, run->cell[j]));
    }
}

static void
expect_row(const Run *run, uint32_t o, int64_t row, const double *expected)
{
    double tolerance = run->net->dtype == KILN_DTYPE_f64 ? 1e-14 : 1e-6;
    for (int64_t j = 0; j < HIDDEN; j++) {
        double found = value(run->c, o, row * HIDDEN + j);
        cr_expect(fabs(found - expected[j]) <= tolerance,
                  "operand %u, row %d, unit %d: expected %.9g, found %.9g", o, (int)row, (int)j,
                  expected[j], found);
    }
}

static int64_t
y_row(const Run *run, int64_t t)
{
    return run->net->batch_first ? (run->b * STEPS + t) * run->net->directions + run->d
                                 : (t * run->net->directions + run->d) * BATCH + run->b;
}

static void
check_sequence(Run *run)
{
    const Net *net = run->net;
    bool reverse = run->d == 1 || strcmp(net->direction, "reverse") == 0;
    int64_t length = net->lengths ? sequence_lengths[run->b] : STEPS;
    int64_t row = net->batch_first ? run->b * net->directions + run->d : run->d * BATCH + run->b;
    for (int64_t j = 0; j < HIDDEN; j++) {
        run->h[j] = value(run->c, run->at.h, row * HIDDEN + j);
        run->cell[j] = value(run->c, run->at.c, row * HIDDEN + j);
    }
    for (int64_t i = 0; i < length; i++) {
        int64_t t = reverse ? length - 1 - i : i;
        double h[HIDDEN];
        (net->kind == KILN_INSTR_rnn   ? step_rnn
         : net->kind == KILN_INSTR_gru ? step_gru
                                       : step_lstm)(run, t, h);
        memcpy(run->h, h, sizeof h);
        expect_row(run, run->at.y, y_row(run, t), h);
    }
    for (int64_t t = length; t < STEPS; t++)
        expect_row(run, run->at.y, y_row(run, t), (const double[HIDDEN]){ 0 });
    expect_row(run, run->at.y_h, row, run->h);
    if (net->kind == KILN_INSTR_lstm)
        expect_row(run, run->at.y_c, row, run->cell);
}

static void
check(const Net *net)
{
    g_autoptr(RefCase) c = make(net);
    const char *error = case_run(c);
    cr_assert_null(error, "%s", error);
    for (int64_t d = 0; d < net->directions; d++) {
        for (int64_t b = 0; b < BATCH; b++)
            check_sequence(&(Run){ .c = c, .net = net, .at = roles(net), .d = d, .b = b });
    }
}

#define F32 KILN_DTYPE_f32
#define F64 KILN_DTYPE_f64

/* bias, lengths, initial, peepholes, batch_first, variant, clip */
static const Net nets[] = {
    { KILN_INSTR_rnn, 1, 1, "forward", 0, 0, 0, 0, 0, 0, 0, F32 },
    { KILN_INSTR_rnn, 1, 1, "reverse", 1, 1, 1, 0, 1, 0, 0, F64 },
    { KILN_INSTR_rnn, 1, 2, "bidirectional", 1, 1, 1, 0, 0, 0, 0.5, F32 },
    { KILN_INSTR_gru, 3, 1, "forward", 1, 0, 1, 0, 0, 0, 0, F64 },
    { KILN_INSTR_gru, 3, 1, "reverse", 1, 1, 0, 0, 0, 1, 0, F32 },
    { KILN_INSTR_gru, 3, 2, "bidirectional", 1, 1, 1, 0, 1, 1, 0.25, F64 },
    { KILN_INSTR_lstm, 4, 1, "forward", 0, 0, 0, 0, 0, 0, 0, F32 },
    { KILN_INSTR_lstm, 4, 1, "reverse", 1, 1, 1, 1, 0, 0, 0, F64 },
    { KILN_INSTR_lstm, 4, 2, "bidirectional", 1, 1, 1, 1, 1, 1, 0, F64 },
    { KILN_INSTR_lstm, 4, 2, "bidirectional", 1, 0, 1, 1, 0, 0, 0.375, F32 },
};

Test(ref_recurrent, formulas)
{
    for (size_t i = 0; i < G_N_ELEMENTS(nets); i++)
        check(&nets[i]);
}

/* Results may be absent, each of them. */
Test(ref_recurrent, absent_results)
{
    for (uint32_t keep = 0; keep < 3; keep++) {
        g_autoptr(RefCase) all = make(&nets[8]);
        g_autoptr(RefCase) one = make(&nets[8]);
        for (uint32_t i = 0; i < 3; i++) {
            if (i == keep)
                continue;
            one->uses[i].buffer = NULL;
            g_clear_pointer(&one->data[i], free);
        }
        cr_assert_null(case_run(all));
        cr_assert_null(case_run(one));
        cr_expect_arr_eq(all->data[keep], one->data[keep],
                         (size_t)kiln_type_bytes(&all->buffers[keep].type));
    }
}

/* An rnn of one unit with weights 1 and 0 is its activation function. */
static double
activate(const char *name, KilnFloats alpha, KilnFloats beta, double x)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_rnn);
    CASE_ATTRS(c, rnn)->activations = (KilnStrings){ 1, &name };
    CASE_ATTRS(c, rnn)->activation_alpha = alpha;
    CASE_ATTRS(c, rnn)->activation_beta = beta;
    case_out(c, F64, DIMS(1, 1, 1, 1));
    case_absent(c);
    case_in(c, F64, DIMS(1, 1, 1), &x);
    case_in(c, F64, DIMS(1, 1, 1), VALUES(1));
    case_in(c, F64, DIMS(1, 1, 1), VALUES(0));
    const char *error = case_run(c);
    cr_assert_null(error, "%s", error);
    return *(double *)c->data[0];
}

Test(ref_recurrent, activations)
{
    float a = 0.5f, b = 2;
    KilnFloats none = { 0, NULL }, alpha = { 1, &a }, beta = { 1, &b };
    const struct {
        const char *name;
        bool set; /* alpha 0.5, beta 2; else defaults */
        double x, expected;
    } rows[] = {
        { "Relu", false, -2, 0 },
        { "relu", false, 2, 2 },
        { "Tanh", false, 1, tanh(1) },
        { "Sigmoid", true, 0, 0.5 },
        { "Affine", true, 3, 3.5 },
        { "Affine", false, 3, 3 },
        { "LeakyRelu", true, -2, -1 },
        { "LeakyRelu", false, -2, -2 * (double)0.01f },
        { "ThresholdedRelu", false, 0.75, 0 },
        { "ThresholdedRelu", true, 0.75, 0.75 },
        { "ScaledTanh", true, 1, 0.5 * tanh(2) },
        { "HardSigmoid", false, 1, (double)0.2f + 0.5 },
        { "HardSigmoid", true, -5, 0 },
        { "HardSigmoid", true, 1, 1 },
        { "Elu", true, -1, 0.5 * (exp(-1) - 1) },
        { "Elu", false, 3, 3 },
        { "Softsign", false, -3, -0.75 },
        { "Softplus", false, 0, log(2) },
        { "Softplus", false, 1000, 1000 },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        double found = activate(rows[i].name, rows[i].set ? alpha : none, rows[i].set ? beta : none,
                                rows[i].x);
        cr_expect_float_eq(found, rows[i].expected, 1e-15, "%s(%g): expected %.17g, found %.17g",
                           rows[i].name, rows[i].x, rows[i].expected, found);
    }
}

/* The lists of parameters serve the functions that have some, across both directions. */
Test(ref_recurrent, parameters_are_taken_in_order)
{
    const char *names[] = { "Tanh", "LeakyRelu" };
    float alpha[] = { 0.5f };
    g_autoptr(RefCase) c = case_new(KILN_INSTR_rnn);
    CASE_ATTRS(c, rnn)->activations = (KilnStrings){ 2, names };
    CASE_ATTRS(c, rnn)->activation_alpha = (KilnFloats){ 1, alpha };
    CASE_ATTRS(c, rnn)->direction = "bidirectional";
    case_out(c, F64, DIMS(1, 2, 1, 1));
    case_absent(c);
    case_in(c, F64, DIMS(1, 1, 1), VALUES(-2));
    case_in(c, F64, DIMS(2, 1, 1), VALUES(1, 1));
    case_in(c, F64, DIMS(2, 1, 1), VALUES(0, 0));
    case_gives(c, VALUES(tanh(-2), -1), 1e-15);
}

Test(ref_recurrent, refuses_bad_lengths_and_names)
{
    for (int i = 0; i < 3; i++) {
        g_autoptr(RefCase) c = make(&nets[2]);
        const char *names[] = { "Tanh", "Gauss" };
        if (i < 2)
            ((int32_t *)c->data[6])[1] = i ? -1 : STEPS + 1;
        else
            CASE_ATTRS(c, rnn)->activations = (KilnStrings){ 2, names };
        cr_expect_not_null(case_run(c));
    }
}

Test(ref_recurrent, no_steps_leave_the_initial_state)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_gru);
    case_out(c, F32, DIMS(0, 1, 1, 1));
    case_out(c, F32, DIMS(1, 1, 1));
    case_in(c, F32, DIMS(0, 1, 1), NULL);
    case_in(c, F32, DIMS(1, 3, 1), VALUES(1, 1, 1));
    case_in(c, F32, DIMS(1, 3, 1), VALUES(1, 1, 1));
    case_absent(c);
    case_absent(c);
    case_in(c, F32, DIMS(1, 1, 1), VALUES(0.5));
    cr_assert_null(case_run(c));
    case_expect(c, 1, VALUES(0.5), 0);
}
