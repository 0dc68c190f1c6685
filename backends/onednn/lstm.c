/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM, forward, for which alone the library has kernels. ONNX has gates in the order input,
 * output, forget, cell and a bias for the products of each side; the library has input, forget,
 * cell, output and one bias:
 *
 *     W [1,4H,I], R [1,4H,H]  ──gates in order──▶ [1,1,I,4,H] ──reorder──▶ as the library wants
 *     B [1,8H]                ──the two sets added, in order──▶ [1,1,4,H]
 *
 * once, when weights are packed. The library of this version has no GRU that is allowed: its only
 * one is `ref`. */
#include "backends/onednn/region.h"

#include <string.h>

enum { /* operands of the instruction */
    Y,
    Y_H,
    Y_C,
    X,
    W,
    R,
    B,
    SEQUENCE_LENS,
    H_0,
    C_0,
    N_STATES = 2,
};

typedef struct {
    int64_t steps, batch, in, hidden;
    dnnl_memory_desc_t x, y, state, weights[2], bias; /* weights: as the library wants them */
} Lstm;

static dnnl_memory_desc_t
plain_md(int rank, const int64_t *dims)
{
    KilnType type = kiln_type_make(KILN_DTYPE_f32, rank, dims);
    return kiln_onednn_plain(&type);
}

static Lstm
lstm_of(const KilnInstr *instr)
{
    const KilnType *x = &kiln_instr_operand(instr, X)->type;
    const KilnType *r = &kiln_instr_operand(instr, R)->type;
    Lstm lstm = {
        .steps = x->dims[0], .batch = x->dims[1], .in = x->dims[2], .hidden = r->dims[2]
    };
    lstm.x = kiln_onednn_plain(x);
    lstm.y = plain_md(3, (int64_t[]){ lstm.steps, lstm.batch, lstm.hidden });
    lstm.state = plain_md(4, (int64_t[]){ 1, 1, lstm.batch, lstm.hidden });
    lstm.bias = plain_md(4, (int64_t[]){ 1, 1, 4, lstm.hidden });
    for (int i = 0; i < 2; i++) {
        lstm.weights[i] =
            plain_md(5, (int64_t[]){ 1, 1, i ? lstm.hidden : lstm.in, 4, lstm.hidden });
        lstm.weights[i].format_kind = dnnl_format_kind_any;
    }
    return lstm;
}

/* Gates in the library's order, each a matrix of rows by what is added up: [1,1,in,4,hidden]. */
static dnnl_memory_desc_t
ordered_md(int64_t in, int64_t hidden)
{
    dnnl_memory_desc_t md;
    memset(&md, 0, sizeof md);
    dnnl_memory_desc_init_by_strides(
        &md, 5, (dnnl_dims_t){ 1, 1, in, 4, hidden }, dnnl_f32,
        (dnnl_dims_t){ 4 * hidden * in, 4 * hidden * in, 1, hidden * in, in });
    return md;
}

static dnnl_primitive_desc_t
choose(const KilnInstr *instr, Lstm *lstm, const char **out_name, GError **error)
{
    bool given = kiln_instr_operand(instr, H_0) != NULL;
    bool states = kiln_instr_operand(instr, Y_H) || kiln_instr_operand(instr, Y_C);
    const dnnl_memory_desc_t *from = given ? &lstm->state : NULL;
    const dnnl_memory_desc_t *to = states ? &lstm->state : NULL;
    dnnl_rnn_desc_t op;
    dnnl_status_t status = dnnl_lstm_forward_desc_init(
        &op, dnnl_forward_inference, dnnl_unidirectional_left2right, &lstm->x, from, from,
        &lstm->weights[0], &lstm->weights[1], kiln_instr_operand(instr, B) ? &lstm->bias : NULL,
        &lstm->y, to, to, 0);
    if (!kiln_onednn_check(status, "lstm", error))
        return NULL;
    dnnl_primitive_attr_t attr = kiln_onednn_attr(NULL, false);
    dnnl_primitive_desc_t pd = attr ? kiln_onednn_choose(&op, attr, out_name) : NULL;
    if (attr)
        dnnl_primitive_attr_destroy(attr);
    if (!pd)
        kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                   "oneDNN has no implementation of lstm that is allowed");
    return pd;
}

static bool
add_inputs(Builder *builder, const KilnInstr *instr, const Lstm *lstm, GArray *args)
{
    static const int weights[] = { DNNL_ARG_WEIGHTS_LAYER, DNNL_ARG_WEIGHTS_ITER };
    static const int states[] = { DNNL_ARG_SRC_ITER, DNNL_ARG_SRC_ITER_C };
    const KilnBuffer *x = kiln_instr_operand(instr, X), *bias = kiln_instr_operand(instr, B);
    bool good =
        kiln_onednn_add_arg(args, DNNL_ARG_SRC_LAYER, kiln_onednn_slot_as(builder, x, &lstm->x));
    for (uint32_t i = 0; good && i < 2; i++) {
        const KilnBuffer *w = kiln_instr_operand(instr, W + i);
        int64_t in = i ? lstm->hidden : lstm->in;
        dnnl_memory_desc_t from = ordered_md(in, lstm->hidden);
        good = kiln_onednn_add_arg(args, weights[i],
                                   kiln_onednn_packed_gates(builder, w, lstm->hidden * in, false,
                                                            &from, &lstm->weights[i]));
    }
    if (good && bias)
        good = kiln_onednn_add_arg(
            args, DNNL_ARG_BIAS,
            kiln_onednn_packed_gates(builder, bias, lstm->hidden, true, &lstm->bias, &lstm->bias));
    for (uint32_t i = 0; good && i < N_STATES; i++) {
        const KilnBuffer *state = kiln_instr_operand(instr, H_0 + i);
        if (!state)
            continue;
        dnnl_memory_desc_t plain = kiln_onednn_plain(&state->type);
        uint32_t slot = kiln_onednn_slot_as(builder, state, &plain);
        good = kiln_onednn_add_arg(args, states[i], kiln_onednn_alias(builder, slot, &lstm->state));
    }
    return good;
}

/* A place for a result that may be absent. */
static uint32_t
result_as(Builder *builder, const KilnBuffer *buffer, const dnnl_memory_desc_t *md)
{
    if (!buffer)
        return kiln_onednn_unread(builder, md);
    dnnl_memory_desc_t plain = kiln_onednn_plain(&buffer->type);
    return kiln_onednn_alias(builder, kiln_onednn_result(builder, buffer, &plain), md);
}

bool
kiln_onednn_build_lstm(Builder *builder, const KilnInstr *instr)
{
    static const int states[] = { DNNL_ARG_DST_ITER, DNNL_ARG_DST_ITER_C };
    Lstm lstm = lstm_of(instr);
    const char *name = "";
    dnnl_primitive_desc_t pd = choose(instr, &lstm, &name, builder->error);
    if (!pd)
        return false;
    for (int i = 0; i < 2; i++)
        lstm.weights[i] = *dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, i);
    g_autoptr(GArray) args = g_array_new(FALSE, FALSE, sizeof(StepArg));
    if (!add_inputs(builder, instr, &lstm, args)) {
        dnnl_primitive_desc_destroy(pd);
        return false;
    }
    kiln_onednn_add_arg(args, DNNL_ARG_DST_LAYER,
                        result_as(builder, kiln_instr_operand(instr, Y), &lstm.y));
    bool any = kiln_instr_operand(instr, Y_H) || kiln_instr_operand(instr, Y_C);
    for (uint32_t i = 0; any && i < N_STATES; i++) {
        const KilnBuffer *state = kiln_instr_operand(instr, Y_H + i);
        kiln_onednn_add_arg(args, states[i], result_as(builder, state, &lstm.state));
    }
    g_autofree char *type = kiln_type_to_string(&kiln_instr_operand(instr, W)->type);
    g_autofree char *what = g_strdup_printf("lstm %s", type);
    return kiln_onednn_add(builder, pd, (const StepArg *)(const void *)args->data, args->len, what,
                           name);
}
