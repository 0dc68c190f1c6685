/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled patterns: terms in preorder, slots in place of names, sets of ops in place of op names
 * and traits. include/kiln/passes/rule.h describes the language. */
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
    KILN_PATTERN_COMMUTES = 6,  /* `~` per pattern: each doubles the orders to try */
    KILN_PATTERN_TERMS = 256,   /* terms per pattern */
    KILN_PATTERN_OPERANDS = 64, /* operands per node of a pattern */
};

typedef struct {
    KilnTermKind kind;
    uint64_t ops[KILN_OP_WORDS]; /* NODE: a bit per op */
    uint32_t result;             /* NODE: which result */
    bool single_use;             /* `!` */
    bool rest;                   /* `...` after the last operand */
    int commutes;                /* which `~` of the pattern; -1: operands keep their order */
    uint32_t dtypes;             /* bit per KilnDType */
    bool quantized;              /* the type must carry quantization */
    bool plain;                  /* it must not: the pattern names a class of element types */
    int slot;                    /* of the name; -1: unnamed */
    uint32_t n_children;
    uint32_t size; /* of the subtree in terms: the distance to the next sibling */
} KilnTerm;

typedef struct KilnPattern {
    KilnTerm *terms;
    uint32_t n_terms;
    char **names; /* by slot */
    uint32_t n_slots;
    uint32_t n_commutes;
    uint32_t depth; /* of nested nodes: the distance at which a change can affect a root */
} KilnPattern;

KilnPattern *kiln_pattern_parse(const char *text, GError **error);
void kiln_pattern_free(KilnPattern *pattern);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnPattern, kiln_pattern_free)

static inline bool
kiln_term_has_op(const KilnTerm *term, KilnOp op)
{
    return term->ops[op / 64] >> (op % 64) & 1;
}

/** False if @pattern cannot match the node of @entry. Looks only at the ops of the nodes that make
 * its first operands. */
bool kiln_pattern_may_match(const KilnPattern *pattern, const KilnOrderEntry *entry);

/** True if @pattern matches at @root. Stores the values of its names in @values, by slot. */
bool kiln_pattern_match(const KilnPattern *pattern, KilnNode *root, KilnValue **values);

#endif
