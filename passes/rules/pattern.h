/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled patterns: the terms of a pattern in preorder, names resolved to slots, op names and
 * traits to a set of ops. The language is described in include/kiln/passes/rule.h. */
#ifndef KILN_PASSES_RULES_PATTERN_H
#define KILN_PASSES_RULES_PATTERN_H

#include "graph/module.h"

typedef enum {
    KILN_TERM_NODE,    /* (op …) */
    KILN_TERM_VALUE,   /* ?x */
    KILN_TERM_LITERAL, /* $w */
    KILN_TERM_ABSENT,  /* _ */
} KilnTermKind;

enum {
    KILN_OP_WORDS = (KILN_OP_END + 63) / 64,
    KILN_PATTERN_DEPTH = 32,    /* of nested nodes */
    KILN_PATTERN_COMMUTES = 6,  /* `~` per pattern: each doubles the orders that are tried */
    KILN_PATTERN_TERMS = 256,   /* terms per pattern */
    KILN_PATTERN_OPERANDS = 64, /* operands per node of a pattern */
};

typedef struct {
    KilnTermKind kind;
    uint64_t ops[KILN_OP_WORDS]; /* NODE: a bit per op */
    uint32_t result;             /* NODE: which result */
    bool single_use;             /* `!` */
    bool rest;                   /* `...` after the last operand */
    int commutes;                /* which `~` of the pattern; -1: operands stand as written */
    uint32_t dtypes;             /* bit per KilnDType */
    bool quantized;              /* the type must carry quantization */
    bool plain;                  /* it must not: a class of element types was named */
    int slot;                    /* of the name; -1: unnamed */
    uint32_t n_children;
    uint32_t size; /* of the subtree in terms: the next sibling stands that far on */
} KilnTerm;

typedef struct KilnPattern {
    KilnTerm *terms;
    uint32_t n_terms;
    char **names; /* by slot */
    uint32_t n_slots;
    uint32_t n_commutes;
    uint32_t depth; /* of nested nodes: how far a change can be from the roots that it affects */
} KilnPattern;

KilnPattern *kiln_pattern_parse(const char *text, GError **error);
void kiln_pattern_free(KilnPattern *pattern);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnPattern, kiln_pattern_free)

static inline bool
kiln_term_has_op(const KilnTerm *term, KilnOp op)
{
    return term->ops[op / 64] >> (op % 64) & 1;
}

/** False where the ops of a node and of what defines its first operands tell that @pattern does not
 * match there. */
bool kiln_pattern_may_match(const KilnPattern *pattern, const KilnOrderEntry *entry);

/** True where @pattern matches at @root; stores in @values what stands for its names, by slot. */
bool kiln_pattern_match(const KilnPattern *pattern, KilnNode *root, KilnValue **values);

#endif
