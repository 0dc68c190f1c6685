/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of com.microsoft on streams, of which a row has several branches: [.., branches,
 * columns], or [.., branches * columns] where `num_branches` says so. They are computed in f32. */
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/steps.h"
#include "graph/op/norm.h"

typedef struct {
    KilnOnnxSteps s;
    KilnOnnxCall *call;
    int64_t branches, columns;
    bool flat;    /* operand 0 has both in one dim */
    KilnValue *x; /* [.., branches, columns] in f32 */
} Streams;

static KilnValue *
in_f32(const Streams *m, uint32_t i)
{
    return kiln_onnx_step_cast(&m->s, kiln_onnx_operand(m->call, i), KILN_DTYPE_f32);
}

/* @x, whose last dim has branches and columns, with a dim for each. */
static KilnValue *
grouped(const Streams *m, KilnValue *x)
{
    KilnOnnxExtent extents[KILN_MAX_RANK + 1];
    const int rank = x ? x->type.rank : 0;
    for (int d = 0; d < rank - 1; d++)
        extents[d] = (KilnOnnxExtent)KILN_ONNX_DIM(x, d);
    if (!x)
        return NULL;
    extents[rank - 1] = (KilnOnnxExtent)KILN_ONNX_NUMBER(m->branches);
    extents[rank] = (KilnOnnxExtent)KILN_ONNX_NUMBER(m->columns);
    return kiln_onnx_step_reshape(&m->s, x, extents, (uint32_t)rank + 1);
}

static gboolean
begin(Streams *m, GError **error)
{
    KilnOnnxCall *call = m->call;
    int64_t branches = 0;
    if (!kiln_onnx_need(call, 0, error) ||
        !kiln_onnx_take_int(call, "num_branches", &branches, error) ||
        !kiln_onnx_require_rank(call, 0, branches ? 1 : 2, KILN_MAX_RANK - 1, error))
        return FALSE;
    const KilnType *x = &call->operands[0]->type;
    m->flat = branches != 0;
    m->branches = m->flat ? branches : x->dims[x->rank - 2];
    m->columns = x->dims[x->rank - 1];
    if (m->columns < 0 || (!m->flat && m->branches < 0))
        return kiln_onnx_unsupported(call, error, "an unknown number of branches or columns");
    if (m->branches < 1 || m->columns < 1 || (m->flat && m->columns % m->branches != 0))
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "num_branches: expected a divisor of %" G_GINT64_FORMAT
                               " columns, found %" G_GINT64_FORMAT,
                               m->columns, m->branches);
    m->columns /= m->flat ? m->branches : 1;
    m->x = m->flat ? grouped(m, in_f32(m, 0)) : in_f32(m, 0);
    return m->x != NULL;
}

/* Operand @i, [.., branches] with 1 or columns behind, as it broadcasts to the streams. */
static KilnValue *
gate_of(const Streams *m, uint32_t i)
{
    static const int64_t last[] = { -1 };
    KilnValue *gate = kiln_onnx_need(m->call, i, m->s.error);
    const int rank = m->x->type.rank;
    int64_t dims[KILN_MAX_RANK];
    if (!gate || !kiln_onnx_require_rank(m->call, i, rank - 1, rank, m->s.error))
        return NULL;
    for (int d = 0; d < rank; d++)
        dims[d] = m->x->type.dims[d];
    const bool row = gate->type.rank == rank - 1;
    const int64_t found = gate->type.dims[rank - 2];
    if (row && m->flat && found == m->branches * m->columns && found != m->branches)
        return grouped(m, in_f32(m, i));
    dims[rank - 1] = kiln_onnx_one_or(m->call, i, rank - 1, m->columns);
    if (!kiln_onnx_require_shape(m->call, i, dims, row ? rank - 1 : rank, m->s.error))
        return NULL;
    gate = in_f32(m, i);
    return row ? kiln_onnx_step_unsqueeze(&m->s, gate, last, 1) : gate;
}

/* Sets the result: @y in the type of operand 0, and in its dims. */
static gboolean
finish(const Streams *m, KilnValue *y)
{
    KilnOnnxExtent extents[KILN_MAX_RANK];
    KilnValue *x = m->call->operands[0];
    y = kiln_onnx_step_cast(&m->s, y, x->type.dtype);
    for (int d = 0; d < x->type.rank; d++)
        extents[d] = (KilnOnnxExtent)KILN_ONNX_DIM(x, d);
    if (m->flat)
        y = kiln_onnx_step_reshape(&m->s, y, extents, (uint32_t)x->type.rank);
    return kiln_onnx_set_result(m->call, 0, y);
}

/* Each branch is normalized by itself. The scale may be one of all branches. */
gboolean
kiln_onnx_convert_branchwise_rms_norm(KilnOnnxCall *call, GError **error)
{
    Streams m = { .s = { call, error }, .call = call };
    KilnAttrs_rms_normalization attrs = { .axis = -1, .epsilon = 1e-5F, .stash_type = 1 };
    if (!kiln_onnx_take_float(call, "epsilon", &attrs.epsilon, error) || !begin(&m, error) ||
        !kiln_onnx_require_rank(call, 1, 1, 2, error))
        return FALSE;
    KilnValue *one = kiln_onnx_scalar(call, "one", KILN_DTYPE_f32, 1), *scale = in_f32(&m, 1);
    KilnValue *y = kiln_onnx_step2(&m.s, KILN_OP_rms_normalization, &attrs, m.x, one);
    if (scale && scale->type.rank == 2 &&
        !KILN_ONNX_REQUIRE_DIMS(call, 1, error, m.branches, m.columns))
        return FALSE;
    if (scale && scale->type.rank == 1 && scale->type.dims[0] != m.columns) {
        if (!KILN_ONNX_REQUIRE_DIMS(call, 1, error, m.branches * m.columns))
            return FALSE;
        scale = grouped(&m, scale);
    }
    return finish(&m, scale ? kiln_onnx_step_mul(&m.s, y, scale) : y);
}

/*   reduction_scale * sum of the branches, each times its gate */
gboolean
kiln_onnx_convert_hyper_pre_mix(KilnOnnxCall *call, GError **error)
{
    Streams m = { .s = { call, error }, .call = call };
    float scale = 1;
    if (!kiln_onnx_take_float(call, "reduction_scale", &scale, error) || !begin(&m, error))
        return FALSE;
    KilnValue *gated = kiln_onnx_step_mul(&m.s, m.x, gate_of(&m, 1));
    KilnValue *y = kiln_onnx_step_sum(&m.s, gated, -2, false);
    if (scale != 1)
        y = kiln_onnx_step_mul_number(&m.s, y, (double)scale);
    return kiln_onnx_set_result(call, 0,
                                kiln_onnx_step_cast(&m.s, y, call->operands[0]->type.dtype));
}

/* The streams mixed by operand 3, [.., from, to], where there is one. */
static KilnValue *
mixed(const Streams *m)
{
    const int rank = m->x->type.rank;
    int64_t perm[KILN_MAX_RANK], dims[KILN_MAX_RANK];
    if (!kiln_onnx_operand(m->call, 3))
        return m->x;
    for (int d = 0; d < rank; d++) {
        perm[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
        dims[d] = d < rank - 2 ? m->x->type.dims[d] : m->branches;
    }
    if (!kiln_onnx_require_shape(m->call, 3, dims, rank, m->s.error))
        return NULL;
    KilnValue *mix = kiln_onnx_step_transpose(&m->s, in_f32(m, 3), perm, (uint32_t)rank);
    return kiln_onnx_step_matmul(&m->s, mix, m->x);
}

/*   mixed streams + gate of each branch * the output of a block; (streams, output, gates, mix) */
gboolean
kiln_onnx_convert_hyper_post_mix(KilnOnnxCall *call, GError **error)
{
    static const int64_t branch[] = { -2 };
    Streams m = { .s = { call, error }, .call = call };
    int64_t dims[KILN_MAX_RANK];
    if (!begin(&m, error) || !kiln_onnx_need(call, 1, error))
        return FALSE;
    const int rank = m.x->type.rank;
    for (int d = 0; d < rank - 2; d++)
        dims[d] = m.x->type.dims[d];
    dims[rank - 2] = m.columns;
    if (!kiln_onnx_require_shape(call, 1, dims, rank - 1, error))
        return FALSE;
    KilnValue *block = kiln_onnx_step_unsqueeze(&m.s, in_f32(&m, 1), branch, 1);
    KilnValue *injected = kiln_onnx_step_mul(&m.s, gate_of(&m, 2), block);
    return finish(&m, injected ? kiln_onnx_step_add(&m.s, mixed(&m), injected) : NULL);
}
