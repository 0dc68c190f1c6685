/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and permutations of dims: what a node must look like to compute, of operands that are
 * permuted, its results permuted.
 *
 *        x                x
 *        |                |
 *    transpose p         op'          op' has other axes, pads, shapes …, and its other operands in
 *        |        =       |           the order of x; q may have fewer dims than p, or be nothing
 *       op            transpose q
 *        |                |
 *
 * Every plan keeps the bits of every element: where an order of summation, or of elements that
 * compare equal, would change, there is none. sink-transposes reads the equation from left to
 * right, hoist-transposes from right to left. */
#ifndef KILN_PASSES_PERMUTE_PERMUTE_H
#define KILN_PASSES_PERMUTE_PERMUTE_H

#include "passes/pass.h"

/** Dim d of a value is dim at[d] of another. */
typedef struct {
    int rank; /* KILN_RANK_UNKNOWN: no permutation */
    int at[KILN_MAX_RANK];
} KilnPerm;

#define KILN_PERM_NONE ((KilnPerm){ .rank = KILN_RANK_UNKNOWN })

/** The permutation of a transpose whose operand is plain and has a rank; none for other nodes. */
KilnPerm kiln_perm_of(const KilnNode *node);
KilnPerm kiln_perm_inverse(const KilnPerm *perm);
/** A transpose by @second of a transpose by @first. */
KilnPerm kiln_perm_compose(const KilnPerm *first, const KilnPerm *second);
bool kiln_perm_equal(const KilnPerm *a, const KilnPerm *b);
bool kiln_perm_is_identity(const KilnPerm *perm);
/** The type of which @type is a transpose by @perm. */
KilnType kiln_perm_type_before(KilnArena *arena, const KilnType *type, const KilnPerm *perm);
/** The type of the transpose by @perm of @type. */
KilnType kiln_perm_type_after(KilnArena *arena, const KilnType *type, const KilnPerm *perm);

/** Bytes of a value, with 32 for each dim that is not known: for comparisons. */
double kiln_perm_bytes(const KilnType *type);

/** True where @value is a literal whose elements kiln_perm_literal() can move. */
bool kiln_perm_can_move(const KilnValue *value);
/** A `const` node of @type with the elements of @literal, seen as of rank perm->rank by dims of 1
 * in front, transposed by @perm. @type differs from that in such dims alone. */
KilnValue *kiln_perm_literal(KilnNode *before, const KilnValue *literal, const KilnPerm *perm,
                             const KilnType *type, GError **error);
/** The same where @literal is seen as of the dims of @split, whatever its own; the result has its
 * type. */
KilnValue *kiln_perm_literal_split(KilnNode *before, const KilnValue *literal,
                                   const KilnType *split, const KilnPerm *perm, GError **error);
/** A transpose of @x by @perm right before @before, of @type (NULL: inferred). */
KilnValue *kiln_perm_transpose(KilnNode *before, KilnValue *x, const KilnPerm *perm,
                               const KilnType *type, GError **error);

/* --- plans --- */

typedef enum {
    KILN_PERMUTED_SAME,    /* read as it is */
    KILN_PERMUTED_FLIPPED, /* what the operand is a transpose of */
    KILN_PERMUTED_INVERSE, /* the same, where somebody has to transpose for it */
    KILN_PERMUTED_LITERAL, /* a constant of the elements in another order */
    KILN_PERMUTED_VIEW,    /* a reshape: only dims of extent 1 move */
    KILN_PERMUTED_INTS,    /* other integers */
} KilnPermutedKind;

typedef struct {
    KilnPermutedKind kind;
    KilnPerm perm; /* FLIPPED, INVERSE: the operand is a transpose by it. LITERAL: of it */
    KilnType type; /* LITERAL, VIEW, INTS */
    KilnInts ints; /* INTS; VIEW: the shape */
} KilnPermutedOperand;

/** In: node, arena, context, rule, from; for hoisting, want. The rest is the plan. */
typedef struct {
    KilnNode *node;
    KilnArena *arena;         /* for everything that the plan refers to */
    KilnPassContext *context; /* for guards */
    const char *rule;
    KilnPerm *from; /* per operand: it is a transpose by this of something, or none */
    KilnPerm want;  /* what result 0 shall be a transpose by; none: as `from` says */
    bool inverse;   /* operands that are no transposes may be transposed */

    KilnOp op;
    void *attrs;
    uint32_t n_operands;
    KilnPermutedOperand *operands;
    KilnPerm *results; /* none: the result is as it was */
    bool has_view;
} KilnPermuted;

/** Fills a plan; false where the node cannot be computed of permuted operands. */
bool kiln_permute_plan(KilnPermuted *plan);
/** Builds the node of a plan right before the old one. @flipped: per operand, what to read where
 * the plan says FLIPPED or INVERSE. */
KilnNode *kiln_permute_build(const KilnPermuted *plan, KilnValue *const *flipped, GError **error);

#endif
