/* SPDX-License-Identifier: Apache-2.0 */
/* Shape function of rnn, gru and lstm. Operands: X, W [D,G·H,I], R [D,G·H,H], B [D,2·G·H],
 * sequence lengths [B], initial H, and for lstm initial C and peepholes P [D,3·H]; D directions, G
 * gates, H hidden units, B batch, S steps. X is [S,B,I] in layout 0 and [B,S,I] in layout 1, where
 * states are [B,D,H] instead of [D,B,H]. */
#include "graph/infer/common.h"
#include "graph/op/recurrent.h"

enum {
    X,
    W,
    R,
    BIAS,
    LENGTHS,
    INITIAL_H,
    INITIAL_C,
    PEEPHOLES
};

typedef struct {
    int64_t directions, gates, hidden;
    int64_t layout;
} Recurrence;

static gboolean
check_activations(const KilnInfer *in, const Recurrence *r, GError **error)
{
    static const char choices[] = "Relu Tanh Sigmoid Affine LeakyRelu ThresholdedRelu ScaledTanh "
                                  "HardSigmoid Elu Softsign Softplus";
    const KilnStrings *names = kiln_infer_attr(in->node, "activations", KILN_ATTR_STRINGS);
    int64_t per_direction = in->node->op == KILN_OP_lstm ? 3 : in->node->op == KILN_OP_gru ? 2 : 1;
    int64_t expected = per_direction * r->directions;
    if (names->n && names->n != expected)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "activations: expected %" G_GINT64_FORMAT " names, found %u", expected,
                          names->n);
    for (uint32_t i = 0; i < names->n; i++) {
        if (!kiln_infer_one_of("activations", names->v[i], choices, error))
            return FALSE;
    }
    return TRUE;
}

/* hidden_size, or the last dim of R where it is not stated. */
static gboolean
find_hidden(const KilnInfer *in, Recurrence *r, GError **error)
{
    const KilnType *recurrence = kiln_infer_type(in, R);
    int64_t own = recurrence->rank == 3 ? recurrence->dims[2] : KILN_DIM_UNKNOWN;
    int64_t stated = kiln_infer_attr_int(in->node, "hidden_size", 0);
    if (stated < 0 || stated > 1 << 30)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "hidden_size: expected a number from 1 to 2^30, found "
                          "%" G_GINT64_FORMAT,
                          stated);
    r->hidden = stated ? stated : own;
    if (own > 1 << 30)
        return kiln_infer_throw_shape(in->node, R, error, "at most 2^30 hidden units");
    return kiln_infer_require_dim(in, R, 2, r->hidden, error);
}

static gboolean
read_attrs(const KilnInfer *in, Recurrence *r, GError **error)
{
    const char *const *direction = kiln_infer_attr(in->node, "direction", KILN_ATTR_STRING);
    if (!kiln_infer_one_of("direction", *direction, "forward reverse bidirectional", error))
        return FALSE;
    r->directions = g_str_equal(*direction, "bidirectional") ? 2 : 1;
    r->gates = in->node->op == KILN_OP_lstm ? 4 : in->node->op == KILN_OP_gru ? 3 : 1;
    r->layout = kiln_infer_attr_int(in->node, "layout", 0);
    if (r->layout != 0 && r->layout != 1)
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "layout: expected 0 or 1, found %" G_GINT64_FORMAT, r->layout);
    return check_activations(in, r, error) && find_hidden(in, r, error);
}

/* Operand @i has rank @rank and the @dims that are not negative. */
static gboolean
check_dims(const KilnInfer *in, uint32_t i, int rank, const int64_t *dims, GError **error)
{
    if (!kiln_infer_require_rank(in, i, rank, rank, error))
        return FALSE;
    for (int d = 0; d < rank; d++) {
        if (!kiln_infer_require_dim(in, i, d, dims[d], error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
check_operands(const KilnInfer *in, const Recurrence *r, const KilnType *x, GError **error)
{
    int64_t h = r->hidden, gates = h < 0 ? h : r->gates * h, d = r->directions;
    int64_t batch = x->dims[r->layout ? 0 : 1], input = x->dims[2];
    int64_t state[3] = { d, batch, h };
    if (r->layout) {
        state[0] = batch;
        state[1] = d;
    }
    return check_dims(in, W, 3, (int64_t[]){ d, gates, input }, error) &&
           check_dims(in, R, 3, (int64_t[]){ d, gates, h }, error) &&
           check_dims(in, BIAS, 2, (int64_t[]){ d, h < 0 ? h : 2 * gates }, error) &&
           check_dims(in, LENGTHS, 1, (int64_t[]){ batch }, error) &&
           check_dims(in, INITIAL_H, 3, state, error) &&
           check_dims(in, INITIAL_C, 3, state, error) &&
           check_dims(in, PEEPHOLES, 2, (int64_t[]){ d, h < 0 ? h : 3 * h }, error);
}

static gboolean
check_types(const KilnInfer *in, GError **error)
{
    if (!kiln_infer_require(in, X, KILN_SET_FLOATS, error) ||
        !kiln_infer_require(in, LENGTHS, KILN_SET(i32), error))
        return FALSE;
    for (uint32_t i = 1; i < in->node->n_operands; i++) {
        if (i != LENGTHS && !kiln_infer_require_like(in, i, X, error))
            return FALSE;
    }
    return TRUE;
}

KILN_INFER(recurrent)
{
    const KilnType *given = kiln_infer_type(in, X);
    KilnType x = given->rank == 3 ? *given : kiln_infer_unknown(given->dtype, 3);
    Recurrence r = { .hidden = KILN_DIM_UNKNOWN };
    if (!check_types(in, error) || !kiln_infer_require_rank(in, X, 3, 3, error) ||
        !read_attrs(in, &r, error) || !check_operands(in, &r, &x, error))
        return FALSE;
    int batch = r.layout ? 0 : 1, steps = r.layout ? 1 : 0;
    KilnType all = kiln_infer_unknown(x.dtype, 4), last = kiln_infer_unknown(x.dtype, 3);
    kiln_dim_copy(&all, r.layout ? 0 : 2, &x, batch);
    kiln_dim_copy(&all, r.layout ? 1 : 0, &x, steps);
    kiln_dim_set(&all, r.layout ? 2 : 1, r.directions);
    kiln_dim_set(&all, 3, r.hidden);
    if (r.hidden < 0 && kiln_infer_type(in, R)->rank == 3)
        kiln_dim_copy(&all, 3, kiln_infer_type(in, R), 2);
    kiln_dim_copy(&last, r.layout ? 0 : 1, &x, batch);
    kiln_dim_set(&last, r.layout ? 1 : 0, r.directions);
    kiln_dim_copy(&last, 2, &all, 3);
    for (uint32_t i = 0; i < in->node->n_results; i++)
        in->out[i] = i == 0 ? all : last;
    return TRUE;
}
