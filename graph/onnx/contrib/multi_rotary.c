/* SPDX-License-Identifier: Apache-2.0 */
/* MRotaryEmbedding of com.microsoft: a row has three positions (time, height, width), and each
 * angle is that of one of them. `mrope_section` says how many angles each has: in three runs, or in
 * turns (`mrope_layout` 1), where those of the first fill what is left. */
#include "graph/graph.h"
#include "graph/tensor.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/rotary.h"
#include "graph/onnx/steps.h"
#include "graph/op/logic.h"

enum {
    X,
    POSITIONS,
    COS,
    SIN,
    MAX_PAIRS = 4096
};

typedef struct {
    KilnOnnxRotary turn;
    KilnOnnxCall *call;
    int64_t heads, layout, pairs;
    int64_t sections[3];
    bool flat;        /* x is [batch, rows, hidden], else [batch, heads, rows, size] */
    KilnValue *at;    /* [3, batch, rows] */
    KilnValue *is[3]; /* bool[pairs]: the angles of a position; not of the first */
} Multi;

static gboolean
take_attrs(Multi *m, GError **error)
{
    KilnOnnxCall *call = m->call;
    KilnInts sections = { 0 };
    bool there = false;
    int64_t packed = 0;
    float scale = 1;
    if (!kiln_onnx_take_int(call, "num_heads", &m->heads, error) ||
        !kiln_onnx_take_int(call, "rotary_embedding_dim", &m->turn.turned, error) ||
        !kiln_onnx_take_flag(call, "interleaved", &m->turn.interleaved, error) ||
        !kiln_onnx_take_flag(call, "mrope_layout", &m->layout, error) ||
        !kiln_onnx_take_flag(call, "is_packed_batching", &packed, error) ||
        !kiln_onnx_take_float(call, "scale", &scale, error) ||
        !kiln_onnx_take_ints(call, "mrope_section", &sections, &there, error))
        return FALSE;
    if (sections.n != 3)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "mrope_section: expected 3 numbers, found %u", sections.n);
    for (int i = 0; i < 3; i++)
        m->sections[i] = sections.v[i];
    if (m->heads < 0 || m->turn.turned < 0)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected num_heads and rotary_embedding_dim of 0 or more, found "
                               "%" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                               m->heads, m->turn.turned);
    return scale == 1 ||
           kiln_onnx_unsupported(call, error, "scale=%g, which no kernel applies", (double)scale);
}

static gboolean
check_operands(Multi *m, GError **error)
{
    const KilnOnnxCall *call = m->call;
    for (uint32_t i = X; i <= SIN; i++) {
        if (!kiln_onnx_need(call, i, error))
            return FALSE;
    }
    const KilnType *x = &call->operands[X]->type, *cos = &call->operands[COS]->type;
    if (!kiln_onnx_require_rank(call, X, 3, 4, error) ||
        !KILN_ONNX_REQUIRE_DIMS(call, POSITIONS, error, 3, x->dims[0], x->dims[x->rank - 2]) ||
        !kiln_onnx_require_rank(call, COS, 2, 2, error) ||
        !kiln_onnx_require_shape(call, SIN, cos->dims, 2, error))
        return FALSE;
    m->flat = x->rank == 3;
    m->pairs = cos->dims[1];
    const int64_t last = x->dims[x->rank - 1];
    if (m->flat && !m->heads)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "num_heads: expected 1 or more beside rows of rank 3, found 0");
    if (last < 0 || m->pairs < 0 || m->pairs > MAX_PAIRS)
        return kiln_onnx_unsupported(call, error, "an unknown size of heads");
    m->turn.size = m->flat ? last / m->heads : last;
    if (m->turn.size < 1 || (m->flat && last % m->heads != 0))
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "num_heads: expected a divisor of the hidden size %" G_GINT64_FORMAT
                               ", found %" G_GINT64_FORMAT,
                               last, m->heads);
    m->heads = last / m->turn.size;
    m->turn.turned = m->turn.turned ? m->turn.turned : m->turn.size;
    return kiln_onnx_rotary_check(&m->turn, error);
}

static gboolean
check_sections(const Multi *m, GError **error)
{
    int64_t all = 0;
    bool good = m->turn.turned / 2 == m->pairs;
    for (int i = 0; i < 3; i++) {
        good &= m->sections[i] >= 0 && m->sections[i] <= m->pairs;
        all += good ? m->sections[i] : 0;
    }
    return (good && all == m->pairs) ||
           kiln_onnx_throw(
               m->call, KILN_ERROR_INVALID, error,
               "mrope_section: expected %" G_GINT64_FORMAT " angles of %" G_GINT64_FORMAT
               " columns, found %" G_GINT64_FORMAT ", %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
               m->turn.turned / 2, m->pairs, m->sections[0], m->sections[1], m->sections[2]);
}

/* Which angles position @i has. */
static KilnValue *
angles_of(const Multi *m, int i)
{
    bool is[MAX_PAIRS];
    int64_t first = 0;
    for (int k = 0; k < i; k++)
        first += m->sections[k];
    for (int64_t p = 0; p < m->pairs; p++)
        is[p] = m->layout ? p % 3 == i && p < 3 * m->sections[i]
                          : p >= first && p < first + m->sections[i];
    const KilnType type = kiln_type_make(KILN_DTYPE_bool, 1, &m->pairs);
    g_autoptr(GBytes) bytes = g_bytes_new(is, (size_t)m->pairs);
    return kiln_onnx_helper(m->call, "angles", kiln_tensor_new_data(&type, bytes, NULL));
}

/* Rows of @table by the three positions, each in its angles. */
static KilnValue *
looked_up(const Multi *m, uint32_t table)
{
    const KilnOnnxSteps *s = &m->turn.s;
    KilnValue *rows = kiln_onnx_step_gather(s, m->call->operands[table], m->at, 0), *all = NULL;
    for (int i = 0; i < 3; i++) {
        KilnValue *which = kiln_onnx_scalar(m->call, "which", KILN_DTYPE_i64, i);
        KilnValue *part = kiln_onnx_step_gather(s, rows, which, 0);
        all = i ? kiln_onnx_step3(s, KILN_OP_where, NULL, m->is[i], part, all) : part;
    }
    return kiln_onnx_rotary_angles(s, all, NULL, m->flat ? 2 : 1);
}

/* (x, positions, cosines, sines) */
gboolean
kiln_onnx_convert_multi_rotary(KilnOnnxCall *call, GError **error)
{
    Multi m = { .turn = { .s = { call, error } }, .call = call };
    if (!take_attrs(&m, error) || !check_operands(&m, error) || !check_sections(&m, error))
        return FALSE;
    m.is[1] = angles_of(&m, 1);
    m.is[2] = angles_of(&m, 2);
    m.at = kiln_onnx_step_from_front(&m.turn.s, call->operands[COS], 0, call->operands[POSITIONS]);
    m.turn.cos = m.at ? looked_up(&m, COS) : NULL;
    m.turn.sin = m.turn.cos ? looked_up(&m, SIN) : NULL;
    if (!m.turn.sin)
        return FALSE;
    return kiln_onnx_set_result(call, 0,
                                kiln_onnx_step_rotate_heads(&m.turn, call->operands[X], m.heads));
}
