/* SPDX-License-Identifier: Apache-2.0 */
/* Permutations of dims: a node on permuted operands that computes permuted results.
 *
 *        x                x
 *        |                |
 *    transpose p         op'          op' has other axes, pads, shapes …, and its other operands in
 *        |        =       |           the order of x; q may have fewer dims than p, or be nothing
 *       op            transpose q
 *        |                |
 *
 * A plan keeps the bits of every element. There is no plan if the order of a sum, or of elements
 * that compare equal, would change. sink-transposes reads the equation from left to right,
 * hoist-transposes from right to left. */
#ifndef KILN_PASSES_PERMUTE_PERMUTE_H
#define KILN_PASSES_PERMUTE_PERMUTE_H

#include "passes/pass.h"

/** Dim d of one value is dim at[d] of another. */
typedef struct {
    int rank; /* KILN_RANK_UNKNOWN: no permutation */
    int at[KILN_MAX_RANK];
} KilnPerm;

#define KILN_PERM_NONE ((KilnPerm){ .rank = KILN_RANK_UNKNOWN })

/** The permutation of a transpose whose operand is plain and has a rank; none for other nodes. */
KilnPerm kiln_perm_of(const KilnNode *node);
KilnPerm kiln_perm_inverse(const KilnPerm *perm);
/** A transpose by @first, then by @second. */
KilnPerm kiln_perm_compose(const KilnPerm *first, const KilnPerm *second);
bool kiln_perm_equal(const KilnPerm *a, const KilnPerm *b);
bool kiln_perm_is_identity(const KilnPerm *perm);
/** The type X such that @type is X transposed by @perm. */
KilnType kiln_perm_type_before(KilnArena *arena, const KilnType *type, const KilnPerm *perm);
/** @type transposed by @perm. */
KilnType kiln_perm_type_after(KilnArena *arena, const KilnType *type, const KilnPerm *perm);

/** Bytes of a value, for comparisons. Each unknown dim counts as 32. */
double kiln_perm_bytes(const KilnType *type);

/** True if @value is a literal whose elements kiln_perm_literal() can move. */
bool kiln_perm_can_move(const KilnValue *value);
/** A `const` node with the elements of @literal transposed by @perm. Dims of 1 in front first
 * extend @literal to rank perm->rank. @type may differ from that result in such dims only. */
KilnValue *kiln_perm_literal(KilnNode *before, const KilnValue *literal, const KilnPerm *perm,
                             const KilnType *type, GError **error);
/** kiln_perm_literal() with the dims of @split for @literal. The result has the type of @literal.
 */
KilnValue *kiln_perm_literal_split(KilnNode *before, const KilnValue *literal,
                                   const KilnType *split, const KilnPerm *perm, GError **error);
/** Transposes @x by @perm right before @before. The result has @type (NULL: inferred). */
KilnValue *kiln_perm_transpose(KilnNode *before, KilnValue *x, const KilnPerm *perm,
                               const KilnType *type, GError **error);

/* --- plans --- */

typedef enum {
    KILN_PERMUTED_SAME,    /* read as it is */
    KILN_PERMUTED_FLIPPED, /* the value that the operand is a transpose of */
    KILN_PERMUTED_INVERSE, /* the same, but a new transpose must make it */
    KILN_PERMUTED_LITERAL, /* a constant of the elements in another order */
    KILN_PERMUTED_VIEW,    /* a reshape: only dims of extent 1 move */
    KILN_PERMUTED_INTS,    /* other integers */
    KILN_PERMUTED_EXTENTS, /* the dims of a type, open ones included */
} KilnPermutedKind;

typedef struct {
    KilnPermutedKind kind;
    KilnPerm perm; /* FLIPPED, INVERSE: operand is a transpose by it. LITERAL: of it */
    KilnType type; /* LITERAL, VIEW, INTS; EXTENTS: whose dims they are */
    KilnInts ints; /* INTS */
} KilnPermutedOperand;

/** Inputs: node, arena, context, rule, from; want for hoisting. The other fields are the plan. */
typedef struct {
    KilnNode *node;
    KilnArena *arena;         /* owns the data of the plan */
    KilnPassContext *context; /* for guards */
    const char *rule;
    KilnPerm *from; /* per operand: it is a transpose by this, or none */
    KilnPerm want;  /* result 0 shall be a transpose by this; none: follow `from` */
    bool inverse;   /* operands that are no transposes may be transposed */

    KilnOp op;
    void *attrs;
    uint32_t n_operands;
    KilnPermutedOperand *operands;
    KilnPerm *results; /* none: the result does not change */
    bool has_view;
} KilnPermuted;

/** Fills a plan. False if the node cannot be computed on permuted operands. */
bool kiln_permute_plan(KilnPermuted *plan);
/** Builds the node of a plan right before the old one. @flipped: per operand, the value to read if
 * the plan says FLIPPED or INVERSE. */
KilnNode *kiln_permute_build(const KilnPermuted *plan, KilnValue *const *flipped, GError **error);

#endif
