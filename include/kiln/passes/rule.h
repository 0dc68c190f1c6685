/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrite rules: a pattern in text, guards, and a replacement, so that a pass file reads as the
 * list of its rules.
 *
 *     static const KilnRule rules[] = {
 *         RULE("merge-transposes", E, "(transpose#outer (transpose#inner ?x))", merge),
 *         RULE("identity-transpose", E, "(transpose#t ?x)", drop_identity),
 *     };
 *     RULE_PASS(merge_transposes, FORWARD);
 *
 * A pattern is an S-expression over op names of the text form:
 *
 *   (conv#c ?x $w ?b)       a node of op conv, called c, with these operands; operands that the
 *                           pattern does not write must be absent
 *   (concat ?x ...)         `...` at the end: any further operands
 *   ?x                      any value, called x; the same name twice must be the same value
 *   ?                       any value
 *   $w                      a literal: a value that a `const` node defines
 *   _                       an absent operand
 *   (relu!#r ?x)            `!`: the value has this single use and is no result of the function,
 *                           so a fusion may swallow it
 *   (add|sub#a ?x ?y)       one of several ops
 *   (@ELEMENTWISE#n ?x)     any op with the trait
 *   (add~ ?x (mul ?y ?z))   `~`: the two operands may stand in either order
 *   ?x:f32  (relu ?):float  a dtype, or a class of them: number (float or int), float, int, signed,
 *                           unsigned; not quantized, for then integers stand for reals
 *   ?x:quantized            a quantized type
 *   (split#s.1 ?x)          result 1 of the node (default 0); at the root, the result to replace
 *
 * The name of a node also names its value that matched. Patterns are compiled once into a matcher
 * indexed by root op, so the cost of a sweep does not grow with rules times nodes. Matching never
 * looks through `return`. In a subgraph it sees values of the functions around it, literals too. It
 * does not see their nodes, which run at other times. */
#ifndef KILN_PASSES_RULE_H
#define KILN_PASSES_RULE_H

#include "passes/pass.h"

G_BEGIN_DECLS

/** The match that a rewrite works on. */
typedef struct {
    KilnPassContext *context;
    const char *rule; /* firing and refusing count under this name */
    GError **error;   /* never NULL, and holds no error yet */
    KilnNode *root;   /* the node that matched */
    /* for the driver: */
    const struct KilnPattern *pattern;
    KilnValue **values; /* the values that the names of the pattern stand for */
    GPtrArray *touched; /* KilnNode*: readers of replaced results; may be NULL */
} KilnMatch;

/** Rewrites the nodes that @match found, or returns false and leaves the graph as it was. A GUARD
 * that fails returns false, too. The driver then removes nodes and constants that were built before
 * it. Builds new nodes before the root, and replaces the root's result with kiln_match_replace().
 * Removes nothing: the driver removes all nodes that die with the root. Sets the match's error only
 * to stop the pass. */
typedef bool (*KilnRewriteFn)(KilnMatch *match);

/** PASS_GUARD for rewrites and for functions that they share; needs a `match` in scope. */
#define GUARD(name, condition)                                                                     \
    do {                                                                                           \
        if (!kiln_pass_guard(match->context, match->rule, #name, (condition)))                     \
            return false;                                                                          \
    } while (0)

typedef struct {
    const char *name;
    KilnNumerics numerics;
    const char *pattern;
    KilnRewriteFn rewrite;
    uint32_t flags; /* KILN_FLAG(…) that a rule of class QS or L needs; 0: none */
} KilnRule;

#define RULE(name, class_, pattern, rewrite)                                                       \
    {                                                                                              \
        name, KILN_NUMERICS_##class_, pattern, rewrite, 0                                          \
    }
#define LOSSY_RULE(name, flags, pattern, rewrite)                                                  \
    {                                                                                              \
        name, KILN_NUMERICS_L, pattern, rewrite, flags                                             \
    }

/** A rule that keeps to its class but runs under flags only. Class Z needs `no-signed-zeros`. Class
 * QS needs `quant-lossy`, and `quant-param-changes` where it chooses other parameters. */
#define FLAGGED_RULE(name, class_, flags, pattern, rewrite)                                        \
    {                                                                                              \
        name, KILN_NUMERICS_##class_, pattern, rewrite, flags                                      \
    }

/** The value or node that the pattern calls @name. It is our bug if there is none (asserted). */
KilnValue *kiln_match_value(const KilnMatch *match, const char *name);
KilnNode *kiln_match_node(const KilnMatch *match, const char *name);
/** Builds a node right before the root, as kiln_build() does; inference gives the types. NULL, and
 * perhaps an error of the match, where that is not possible. */
KilnValue *kiln_match_build(const KilnMatch *match, KilnOp op, const void *attrs,
                            KilnValue *const *operands, uint32_t n_operands);
/** The same with a result of @type: inference cannot know its quantization. */
KilnValue *kiln_match_build_typed(const KilnMatch *match, KilnOp op, const void *attrs,
                                  KilnValue *const *operands, uint32_t n_operands,
                                  const KilnType *type);
/** Builds the node that @spec describes right before the root; returns its first result. */
KilnValue *kiln_match_build_node(const KilnMatch *match, const KilnNodeSpec *spec);

/** Replaces the root's result by @value and logs one line under the rule's name. Refuses (false) a
 * @value of NULL, which could not be built. The guard `type` refuses other types. */
bool kiln_match_replace(KilnMatch *match, KilnValue *value);
/** Replaces the root's result by the value that the pattern calls x: for rules that only drop. */
bool kiln_match_replace_by_x(KilnMatch *match);
/** Builds a node of @op right before the root, with default attributes. Its result replaces the
 * root's. */
bool kiln_match_replace_by_op(KilnMatch *match, KilnOp op, KilnValue *const *operands,
                              uint32_t n_operands);
/** Replaces the root's result by a constant of its type, filled with @number. The guard
 * `static_shape` refuses a type that is not static. */
bool kiln_match_replace_by_splat(KilnMatch *match, double number);
/** kiln_match_replace() for any result of the root, to replace several at once. Look at their types
 * first: to refuse a later one would leave the rewrite half done. */
bool kiln_match_replace_result(KilnMatch *match, uint32_t result, KilnValue *value);
/** Replaces @from, a result of another node than the root, by @value of its type. That node goes if
 * nothing reads it any more. */
void kiln_match_replace_other(KilnMatch *match, KilnValue *from, KilnValue *value);

typedef enum {
    KILN_SWEEP_FORWARD, /* in list order; nodes built before the cursor are visited when they are
                           users' operands again */
    KILN_SWEEP_REVERSE,
} KilnSweep;

struct KilnRuleList {
    const KilnRule *rules;
    uint32_t n;
    KilnSweep sweep;
};
#define RULE_LIST(table, sweep_)                                                                   \
    {                                                                                              \
        table, G_N_ELEMENTS(table), KILN_SWEEP_##sweep_                                            \
    }

/** Makes a pass of the list `rules` of its file, for its row in passes/passes.def. */
#define RULE_PASS(id, sweep)                                                                       \
    extern const KilnRuleList kiln_pass_rules_##id;                                                \
    const KilnRuleList kiln_pass_rules_##id = RULE_LIST(rules, sweep)

/** Applies @list to every node until none of its rules fires any more. A worklist looks again only
 * at neighbours of a rewrite. The first rule that matches and is not refused wins. The cap is 64
 * rewrites per node of the function at the start, plus 1024. KILN_ERROR_LIMIT then names the rules
 * that fired last. */
gboolean kiln_rules_run(const KilnRuleList *list, KilnFunction *function, KilnPassContext *context,
                        bool *changed, GError **error);

/** The widest numerics class of @pass under the flags of a pipeline. Lossy rules count only where
 * flags allow them. Class Z counts only under `no-signed-zeros`. */
KilnNumerics kiln_pass_numerics(const KilnPassInfo *pass, uint32_t flags);

G_END_DECLS

#endif
