/* SPDX-License-Identifier: Apache-2.0 */
/* Declares KILN_OP_<id> and KilnAttrs_<id> of the rows in KILN_FAMILY_ROWS, which the header of a
 * family names; operators without attributes have an empty struct's worth of nothing. */
#include "graph/op.h"

G_BEGIN_DECLS

#define OP(id, ...) OP_AS(id, #id, __VA_ARGS__)
#define CORE_OP(...)

enum {
    G_PASTE(KILN_OPS_BEFORE_, KILN_FAMILY) = G_PASTE(KILN_OPS_, KILN_FAMILY) - 1,
#define ATTR(...)
#define OP_AS(id, ...) KILN_OP_##id,
#include KILN_FAMILY_ROWS
#undef ATTR
#undef OP_AS
    G_PASTE(KILN_OPS_END_, KILN_FAMILY)
};
/* Where this fails, the family needs more room in graph/ops/families.def. */
G_STATIC_ASSERT(G_PASTE(KILN_OPS_END_, KILN_FAMILY) <= G_PASTE(KILN_OPS_LAST_, KILN_FAMILY) + 1);

#define ATTR(op, kind, field, otherwise) KilnC_##kind field;
#define OP_AS(id, text, onnx, since, lo, hi, lo_out, hi_out, traits, shapes, infer, attrs)         \
    typedef struct {                                                                               \
        char no_padding[0];                                                                        \
        attrs                                                                                      \
    } KilnAttrs_##id;
#include KILN_FAMILY_ROWS
#undef ATTR
#undef OP_AS

#undef OP
#undef CORE_OP
#undef KILN_FAMILY
#undef KILN_FAMILY_ROWS

G_END_DECLS
