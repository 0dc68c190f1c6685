/* SPDX-License-Identifier: Apache-2.0 */
/* The loop over directions, sequences and steps. States stay in double from step to step and are
 * rounded where they are stored. A sequence that is shorter than the data leaves zeros in Y behind
 * its end, and its last state in Y_h; going in reverse starts at its end. The state of an empty
 * sequence is the initial one. */
#include "backends/ref/recurrent/recurrent.h"

#include "backends/ref/kernel.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static double
relu(double x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return x < 0 ? 0 : x;
}

static double
tangent(double x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return tanh(x);
}

static double
sigmoid(double x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return 1 / (1 + exp(-x));
}

static double
affine(double x, double alpha, double beta)
{
    return alpha * x + beta;
}

static double
leaky_relu(double x, double alpha, double beta)
{
    (void)beta;
    return x < 0 ? alpha * x : x;
}

static double
thresholded_relu(double x, double alpha, double beta)
{
    (void)beta;
    return x < alpha ? 0 : x;
}

static double
scaled_tanh(double x, double alpha, double beta)
{
    return alpha * tanh(beta * x);
}

static double
hard_sigmoid(double x, double alpha, double beta)
{
    double y = alpha * x + beta;
    return y < 0 ? 0 : y > 1 ? 1 : y;
}

static double
elu(double x, double alpha, double beta)
{
    (void)beta;
    return x < 0 ? alpha * expm1(x) : x;
}

static double
softsign(double x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return x / (1 + fabs(x));
}

static double
softplus(double x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

/* Parameters are taken from the lists by the functions that have them, in order; what the lists
 * lack has the default of the operator of that name. */
typedef struct {
    const char *name;
    RefActivation with_defaults;
    bool takes_alpha, takes_beta;
} ActivationRow;

static const ActivationRow activations[] = {
    { "Relu", { relu, 0, 0 }, false, false },
    { "Tanh", { tangent, 0, 0 }, false, false },
    { "Sigmoid", { sigmoid, 0, 0 }, false, false },
    { "Affine", { affine, 1, 0 }, true, true },
    { "LeakyRelu", { leaky_relu, (double)0.01f, 0 }, true, false },
    { "ThresholdedRelu", { thresholded_relu, 1, 0 }, true, false },
    { "ScaledTanh", { scaled_tanh, 1, 1 }, true, true },
    { "HardSigmoid", { hard_sigmoid, (double)0.2f, 0.5 }, true, true },
    { "Elu", { elu, 1, 0 }, true, false },
    { "Softsign", { softsign, 0, 0 }, false, false },
    { "Softplus", { softplus, 0, 0 }, false, false },
};

/* How far the two lists are used up. */
typedef struct {
    uint32_t alpha, beta;
} Taken;

static bool
make_activation(const RefRecurrent *net, const char *name, Taken *taken, RefActivation *out)
{
    const KilnFloats *alphas = &net->attrs.activation_alpha, *betas = &net->attrs.activation_beta;
    for (size_t i = 0; i < G_N_ELEMENTS(activations); i++) {
        const ActivationRow *row = &activations[i];
        if (strcasecmp(row->name, name) != 0)
            continue;
        *out = row->with_defaults;
        if (row->takes_alpha && taken->alpha < alphas->n)
            out->alpha = (double)alphas->v[taken->alpha++];
        if (row->takes_beta && taken->beta < betas->n)
            out->beta = (double)betas->v[taken->beta++];
        return true;
    }
    return false;
}

/* The functions of the current direction; those of the directions before it use up parameters. */
static bool
choose_activations(RefRecurrent *net)
{
    Taken taken = { 0, 0 };
    for (int64_t d = 0; d <= net->direction; d++) {
        for (int i = 0; i < net->n_activations; i++) {
            uint32_t at = (uint32_t)(d * net->n_activations + i);
            const char *name =
                at < net->attrs.activations.n ? net->attrs.activations.v[at] : net->defaults[i];
            if (!make_activation(net, name, &taken, &net->activations[i]))
                return false;
        }
    }
    return true;
}

double
kiln_ref_recurrent_activate(const RefRecurrent *net, int which, double x)
{
    const RefActivation *activation = &net->activations[which];
    double clip = net->attrs.clip;
    if (clip > 0 && fabs(x) > clip)
        x = copysign(clip, x);
    return activation->fn(x, activation->alpha, activation->beta);
}

/* @n rows of weights from row @row on, times a vector of @length. */
typedef struct {
    const void *weights;
    int64_t row, length;
    const RefValue *vector;
} GateProduct;

static void
add_product(const RefRecurrent *net, const GateProduct *product, RefValue *to, int64_t n)
{
    int64_t length = product->length;
    for (int64_t j = 0; j < n; j++) {
        const void *at = ref_at(product->weights, (product->row + j) * length, net->size);
        net->rows->dot(&to[j], product->vector, (RefLane){ at, 1 }, length);
    }
}

void
kiln_ref_recurrent_add(const RefRecurrent *net, int gate, const RefValue *state, RefValue *to)
{
    int64_t all = net->n_gates * net->hidden, first = gate * net->hidden;
    for (int64_t j = 0; net->b && j < net->hidden; j++)
        to[j].f += ref_load_float(net->dtype, net->b, (2 * net->direction + 1) * all + first + j);
    add_product(net, &(GateProduct){ net->r, net->direction * all + first, net->hidden, state }, to,
                net->hidden);
}

/* The input's part of all gates. */
static void
begin_gates(const RefRecurrent *net, int64_t step, int64_t b)
{
    int64_t all = net->n_gates * net->hidden;
    int64_t row = net->attrs.batch_first ? b * net->steps + step : step * net->batch + b;
    net->rows->load(net->in, (RefLane){ ref_at(net->x, row * net->input, net->size), 1 },
                    net->input);
    for (int64_t j = 0; j < all; j++)
        net->gates[j].f =
            net->b ? ref_load_float(net->dtype, net->b, 2 * net->direction * all + j) : 0;
    add_product(net, &(GateProduct){ net->w, net->direction * all, net->input, net->in },
                net->gates, all);
}

static void
load_state(const RefRecurrent *net, RefValue *state, const void *initial, int64_t row)
{
    if (initial)
        net->rows->load(state, (RefLane){ ref_at(initial, row * net->hidden, net->size), 1 },
                        net->hidden);
    else
        memset(state, 0, (size_t)net->hidden * sizeof *state);
}

static void
store_state(const RefRecurrent *net, void *to, int64_t row, const RefValue *state)
{
    if (to)
        net->rows->store(ref_at_out(to, row * net->hidden, net->size), state, net->hidden);
}

static int64_t
y_row(const RefRecurrent *net, int64_t step, int64_t b)
{
    if (net->attrs.batch_first)
        return (b * net->steps + step) * net->directions + net->direction;
    return (step * net->directions + net->direction) * net->batch + b;
}

static void
run_sequence(RefRecurrent *net, int64_t b, int64_t length)
{
    bool reverse = net->direction == 1 || strcmp(net->attrs.direction, "reverse") == 0;
    int64_t row = net->attrs.batch_first ? b * net->directions + net->direction
                                         : net->direction * net->batch + b;
    load_state(net, net->h, net->initial_h, row);
    load_state(net, net->c, net->initial_c, row);
    for (int64_t i = 0; i < length; i++) {
        int64_t step = reverse ? length - 1 - i : i;
        begin_gates(net, step, b);
        net->cell(net);
        store_state(net, net->y, y_row(net, step, b), net->h);
    }
    store_state(net, net->y_h, row, net->h);
    store_state(net, net->y_c, row, net->c);
    memset(net->h, 0, (size_t)net->hidden * sizeof *net->h);
    for (int64_t step = length; step < net->steps; step++)
        store_state(net, net->y, y_row(net, step, b), net->h);
}

/* x is [steps, batch, input], or [batch, steps, input]; r is [directions, gates × hidden, hidden].
 */
static void
read_shapes(RefRecurrent *net)
{
    const KilnType *x = ref_type(net->args, net->first_in);
    const KilnType *r = ref_type(net->args, net->first_in + 2);
    net->dtype = x->dtype;
    net->size = kiln_dtype_size(x->dtype);
    net->rows = kiln_ref_rows(x->dtype);
    net->steps = x->dims[net->attrs.batch_first ? 1 : 0];
    net->batch = x->dims[net->attrs.batch_first ? 0 : 1];
    net->input = x->dims[2];
    net->hidden = r->dims[2];
    net->directions = r->dims[0];
    net->in = net->args->scratch;
    net->h = net->in + net->input;
    net->c = net->h + net->hidden;
    net->extra = net->c + net->hidden;
    net->gates = net->extra + net->hidden;
}

size_t
kiln_ref_recurrent_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    const bool lstm = instr->kind == KILN_INSTR_lstm;
    const int n_gates = lstm ? 4 : instr->kind == KILN_INSTR_gru ? 3 : 1;
    const uint32_t first_in = lstm ? 3 : 2;
    int64_t input = kiln_instr_operand(instr, first_in)->type.dims[2];
    int64_t hidden = kiln_instr_operand(instr, first_in + 2)->type.dims[2];
    return (size_t)(input + (3 + n_gates) * hidden) * sizeof(RefValue);
}

const char *
kiln_ref_recurrent_run(RefRecurrent *net)
{
    uint32_t lengths = net->first_in + 4;
    read_shapes(net);
    if (net->hidden == 0)
        return NULL;
    for (int64_t b = 0; ref_has(net->args, lengths) && b < net->batch; b++) {
        int64_t length = ref_load_int(KILN_DTYPE_i32, net->args->data[lengths], b);
        if (length < 0 || length > net->steps)
            return "a sequence length is negative or over the number of steps";
    }
    for (net->direction = 0; net->direction < net->directions; net->direction++) {
        if (!choose_activations(net))
            return "an activation function is not known";
        for (int64_t b = 0; b < net->batch; b++) {
            int64_t length = ref_has(net->args, lengths)
                                 ? ref_load_int(KILN_DTYPE_i32, net->args->data[lengths], b)
                                 : net->steps;
            run_sequence(net, b, length);
        }
    }
    return NULL;
}
