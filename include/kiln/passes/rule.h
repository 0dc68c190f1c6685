/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrite rules: a pattern in text, guards, and a replacement, so that a pass file reads as the
 * list of its rules.
 *
 *     static const KilnRule rules[] = {
 *         RULE("merge-transposes", E, "(transpose#outer (transpose#inner ?x))", merge),
 *         RULE("identity-transpose", E, "(transpose#t ?x)", drop_identity),
 *     };
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
 *   (relu!#r ?x)            `!`: the value has this single use and is no result of the function:
 *                           what a fusion may swallow
 *   (add|sub#a ?x ?y)       one of several ops
 *   (@ELEMENTWISE#n ?x)     any op with the trait
 *   (add~ ?x (mul ?y ?z))   `~`: the two operands may stand in either order
 *   ?x:f32  (relu ?):float  a dtype, or a class of them: number (float or int), float, int, signed,
 *                           unsigned; not quantized, for then integers stand for reals
 *   ?x:quantized            a quantized type
 *   (split#s.1 ?x)          result 1 of the node (default 0); at the root, the one to be replaced
 *
 * The name of a node is also the name of the value of it that matched. Patterns are compiled once
 * into a matcher indexed by root op, so that the cost of a sweep does not grow with rules times
 * nodes. Matching never looks through `return`, and in a subgraph it sees the values of the
 * functions around it (literals too) but not their nodes, which run at other times. */
#ifndef KILN_PASSES_RULE_H
#define KILN_PASSES_RULE_H

#include "passes/pass.h"

G_BEGIN_DECLS

typedef struct KilnMatch KilnMatch;

/** Rewrites what @match found, or returns false and leaves the graph as it was (GUARD does that;
 * nodes and constants built before a refusal are removed by the driver). Builds new nodes before
 * the root and replaces the root's result with kiln_match_replace(); removes nothing itself: what
 * dies with the root is removed by the driver. @error only for what must stop the pass. */
typedef bool (*KilnRewriteFn)(KilnMatch *match, KilnPassContext *context, const char *rule,
                              GError **error);

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

/** A rule that keeps to its class and yet runs under flags only: class Z under `no-signed-zeros`;
 * class QS under `quant-lossy`, and with `quant-param-changes` where it chooses other parameters.
 */
#define FLAGGED_RULE(name, class_, flags, pattern, rewrite)                                        \
    {                                                                                              \
        name, KILN_NUMERICS_##class_, pattern, rewrite, flags                                      \
    }

/** What the names of the pattern stand for. A name that the pattern lacks is our bug (asserted). */
KilnValue *kiln_match_value(const KilnMatch *match, const char *name);
KilnNode *kiln_match_node(const KilnMatch *match, const char *name);
KilnNode *kiln_match_root(const KilnMatch *match);
KilnFunction *kiln_match_function(const KilnMatch *match);
/** Builds a node right before the root: kiln_build() with the match's function. Types come from
 * inference; for quantized or laid-out results use kiln_node_new(). */
KilnValue *kiln_match_build(const KilnMatch *match, KilnOp op, const void *attrs,
                            KilnValue *const *operands, uint32_t n_operands, GError **error);
/** The same with a result of @type, which states what inference cannot know: quantization. */
KilnValue *kiln_match_build_typed(const KilnMatch *match, KilnOp op, const void *attrs,
                                  KilnValue *const *operands, uint32_t n_operands,
                                  const KilnType *type, GError **error);
/** Replaces the root's result by @value and logs one line under the rule's name. Refuses (false, as
 * a guard named `type`) where the types differ. */
bool kiln_match_replace(KilnMatch *match, KilnPassContext *context, const char *rule,
                        KilnValue *value);
/** Builds a node of @op right before the root, with default attributes, and replaces the root's
 * result by its result. */
bool kiln_match_replace_by_op(KilnMatch *match, KilnPassContext *context, const char *rule,
                              KilnOp op, KilnValue *const *operands, uint32_t n_operands,
                              GError **error);
/** Replaces the root's result by a constant of its type, all of @number; refuses (as a guard named
 * `static_shape`) where the type is not static. */
bool kiln_match_replace_by_splat(KilnMatch *match, KilnPassContext *context, const char *rule,
                                 double number);
/** The same for any result of the root, where several of them are replaced at once. Refusing the
 * later ones would leave the rewrite half done: look at their types first. */
bool kiln_match_replace_result(KilnMatch *match, KilnPassContext *context, const char *rule,
                               uint32_t result, KilnValue *value);

typedef enum {
    KILN_SWEEP_FORWARD, /* in list order; nodes built before the cursor are visited when they are
                           users' operands again */
    KILN_SWEEP_REVERSE,
} KilnSweep;

/** Applies @rules to every node until none fires any more: a worklist, so that only neighbours of a
 * rewrite are looked at again. The first rule of the list that matches and is not refused wins.
 * Capped at 64 rewrites per node of the function at the start plus 1024: more is KILN_ERROR_LIMIT
 * naming the rules that fired last. */
gboolean kiln_rules_run(const KilnRule *rules, uint32_t n, KilnFunction *function, KilnSweep sweep,
                        KilnPassContext *context, bool *changed, GError **error);

/** Every rule of a pass, for `kiln passes --rules PASS`: a pass file registers them with
 *  `const KilnRule *kiln_pass_rules_<id>(uint32_t *n)`, listed in passes/rules/rules.def. */
const KilnRule *kiln_pass_rules(const char *pass_id, uint32_t *n);

/** The widest numerics class of what @pass may do under the flags of a pipeline: where its lossy
 * rules are not allowed, that of its others; where zeros have signs, never Z. */
KilnNumerics kiln_pass_numerics(const KilnPassInfo *pass, uint32_t flags);

/* The prototypes that rules.def promises. */
#define RULES(id, text) const KilnRule *kiln_pass_rules_##id(uint32_t *n);
#include "passes/rules/rules.def"

/** Checks that a pattern parses; for tests and for the matcher's compilation. */
gboolean kiln_pattern_check(const char *pattern, GError **error);

G_END_DECLS

#endif
