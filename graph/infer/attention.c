/* SPDX-License-Identifier: Apache-2.0 */
/* The shape function of scaled dot-product attention: queries [.., m, d], keys [.., s, d], values
 * [.., s, e] and a mask that broadcasts to the scores [.., m, s]; the dims in front are broadcast.
 */
#include "graph/infer/common.h"
#include "graph/type.h"

/* Broadcasts the dims of operand @i that stand in front of its matrix to @batch. */
static gboolean
broadcast_batch(const KilnInfer *in, uint32_t i, KilnType *batch, GError **error)
{
    KilnType own = kiln_infer_plain(kiln_infer_type(in, i)), both = own;
    own.rank -= 2;
    if (!kiln_infer_broadcast_shapes(batch, &own, &both, error))
        return FALSE;
    *batch = both;
    return TRUE;
}

KILN_INFER(attention)
{
    const KilnType *q = kiln_infer_type(in, 0), *k = kiln_infer_type(in, 1);
    const KilnType *v = kiln_infer_type(in, 2);
    if (!kiln_infer_require(in, 0, KILN_SET_FLOATS, error) || !kiln_infer_require_alike(in, error))
        return FALSE;
    in->out[0] = kiln_type_unranked(q->dtype);
    for (uint32_t i = 0; i < 3; i++) {
        if (!kiln_infer_require_rank(in, i, 2, KILN_MAX_RANK, error))
            return FALSE;
        if (kiln_infer_type(in, i)->rank < 0)
            return TRUE;
    }
    KilnType batch = kiln_type_scalar(q->dtype), out, scores;
    if (!kiln_infer_require_dim(in, 1, k->rank - 1, q->dims[q->rank - 1], error) ||
        !kiln_infer_require_dim(in, 2, v->rank - 2, k->dims[k->rank - 2], error) ||
        !broadcast_batch(in, 0, &batch, error) || !broadcast_batch(in, 1, &batch, error) ||
        !broadcast_batch(in, 2, &batch, error))
        return FALSE;
    out = scores = batch;
    kiln_dim_copy(&out, out.rank++, q, q->rank - 2);
    kiln_dim_copy(&out, out.rank++, v, v->rank - 1);
    kiln_dim_copy(&scores, scores.rank++, q, q->rank - 2);
    kiln_dim_copy(&scores, scores.rank++, k, k->rank - 2);
    in->out[0] = out;
    return kiln_infer_require_broadcast_to(in, 3, &scores, error);
}
