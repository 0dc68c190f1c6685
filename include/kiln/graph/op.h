/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about operators. Their ids and attributes come by family, from graph/op/<family>.h: a new
 * row rebuilds only the files that name operators of its family. */
#ifndef KILN_GRAPH_OP_H
#define KILN_GRAPH_OP_H

#include "graph/attr.h"

G_BEGIN_DECLS

/** A KILN_OP_<id>. Some numbers between two families are free. */
typedef uint16_t KilnOp;

enum {
    /* Every graph needs these two: rows of CORE_OP in graph/ops/structure.def. */
    KILN_OP_const,
    KILN_OP_return,
#define FAMILY(id, room) KILN_OPS_##id, KILN_OPS_LAST_##id = KILN_OPS_##id + (room)-1,
#include "graph/ops/families.def"
    KILN_OP_END /* the length of an array by op */
};

typedef struct {
    KilnC_CONSTANT value;
} KilnAttrs_const;
typedef struct {
    char no_padding[0];
} KilnAttrs_return;

typedef enum {
    KILN_TRAIT_ELEMENTWISE = 1 << 0,
    KILN_TRAIT_COMMUTATIVE = 1 << 1,
    KILN_TRAIT_LAYOUT_FREE = 1 << 2,
    KILN_TRAIT_INPLACE = 1 << 3,
    KILN_TRAIT_MONOTONE = 1 << 4,
    KILN_TRAIT_SIDE_EFFECT = 1 << 5,
    KILN_TRAIT_RANDOM = 1 << 6,
    KILN_TRAIT_EXPANDS = 1 << 7,
    KILN_TRAIT_VIEW = 1 << 8,
    KILN_TRAIT_REGION = 1 << 9,
    KILN_TRAIT_TERMINATOR = 1 << 10,
    KILN_TRAIT_STATE = 1 << 11,
    KILN_TRAIT_QUANTIZED = 1 << 12,
    KILN_TRAIT_KEEPS_QUANTIZATION = 1 << 13,
    KILN_TRAIT_REDUCES = 1 << 14, /* folds groups of elements, along axes, to one each */
} KilnTrait;

enum {
    KILN_MANY = 255
};

typedef struct {
    const char *name; /* in the text form */
    const char *onnx; /* "" where ONNX has no such op */
    int since;
    int min_operands, max_operands; /* KILN_MANY: no bound */
    int min_results, max_results;
    uint32_t traits;
    uint32_t shape_operands; /* bit i: operand i decides shapes, axes, counts, branches */
    const KilnAttrInfo *attrs;
    uint32_t n_attrs;
    size_t attrs_size;
} KilnOpInfo;

/** For @op < KILN_OP_END; a free number has no name, no traits and no attributes. */
const KilnOpInfo *kiln_op_info(KilnOp op);
/** Moves @op to the next existing operator, which may be @op itself; false where none is left. */
bool kiln_op_find(KilnOp *op);
/** All operators, by family. */
#define kiln_foreach_op(op) for (KilnOp op = 0; kiln_op_find(&op); op++)
static inline bool
kiln_op_has(KilnOp op, uint32_t traits)
{
    return (kiln_op_info(op)->traits & traits) == traits;
}
/** True where operand @i decides shapes, axes, counts or branches. Any @i is allowed. */
static inline bool
kiln_op_is_shape_operand(KilnOp op, uint32_t i)
{
    return i < 32 && kiln_op_info(op)->shape_operands >> i & 1;
}
/** By the spelling of the text form. */
bool kiln_op_from_name(const char *name, KilnOp *out);

/** Counts from @lowest to @highest as "2", "1 to 3" or "1 or more"; freed with g_free(). */
char *kiln_arity_text(uint32_t lowest, uint32_t highest);

/** New default attributes of @op in @arena; NULL for ops without attributes. */
void *kiln_op_attrs_new(KilnOp op, KilnArena *arena);

G_END_DECLS

#endif
