/* SPDX-License-Identifier: Apache-2.0 */
/* Passes: their table, and the functions with which a pass asks and reports.
 *
 * A pass is one function of one file: passes/graph/<id>.c or passes/ir/<id>.c. It changes the
 * function that it is given and says honestly whether it did. The manager
 * (passes/manager/manager.c) does everything around it: analyses, verification, dumps, timing,
 * counters, numeric checks. */
#ifndef KILN_PASSES_PASS_H
#define KILN_PASSES_PASS_H

#include "graph/function.h"
#include "graph/module.h"
#include "graph/node.h"
#include "graph/order.h"
#include "ir/ir.h"
#include "ir/plan.h"
#include "ir/target.h"

G_BEGIN_DECLS

typedef enum {
    KILN_LEVEL_GRAPH,
    KILN_LEVEL_IR,
} KilnLevel;

/** How far a pass may change numbers (classes E, Z, U, QT, QS, L), from the least to the most. */
typedef enum {
    KILN_NUMERICS_E,  /* bit-exact */
    KILN_NUMERICS_Z,  /* bit-exact except the sign of zeros, under `no-signed-zeros`; else E */
    KILN_NUMERICS_U,  /* rounding within a derived bound */
    KILN_NUMERICS_QT, /* one quantization step, and only where the exact value lies at a tie */
    KILN_NUMERICS_QS, /* a stated quantization step is left out: only under `quant-lossy` */
    KILN_NUMERICS_L,  /* lossy: runs only under the flag that it names */
} KilnNumerics;

/** Flags of a pipeline that allow rewrites of classes QS and L. */
// clang-format off
#define KILN_FLAG_MAP(X) \
    X(fp_reassoc,           "fp-reassoc")           \
    X(no_signed_zeros,      "no-signed-zeros")      \
    X(finite_math,          "finite-math")          \
    X(quant_lossy,          "quant-lossy")          \
    X(quant_param_changes,  "quant-param-changes")  \
    X(quant_saturation,     "quant-saturation")
// clang-format on
typedef enum {
#define X(id, text) KILN_FLAG_BIT_##id,
    KILN_FLAG_MAP(X)
#undef X
    KILN_N_FLAGS
} KilnFlagBit;
#define KILN_FLAG(id) (1u << KILN_FLAG_BIT_##id)

/** Analyses that a pass may require and preserve; recomputed only when lost. */
typedef enum {
    KILN_ANALYSIS_ORDER = 1 << 0,    /* graph: node->id ascends in list order; ir: instr->id does */
    KILN_ANALYSIS_LIVENESS = 1 << 1, /* ir: kiln_pass_liveness() */
    KILN_ANALYSIS_ALL = ~0,
} KilnAnalysis;

typedef struct KilnPassInfo KilnPassInfo;
typedef struct KilnPassContext KilnPassContext;

/** Changes @function; stores in @changed whether it did. Fails only for faults of the program or
 * the machine (out of memory), never because a rewrite does not apply. */
typedef gboolean (*KilnGraphPassFn)(KilnFunction *function, KilnPassContext *context, bool *changed,
                                    GError **error);
typedef gboolean (*KilnIRPassFn)(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                                 GError **error);

/** The options of a pass: typed like attributes; names in kebab-case outside, '_' inside. */
typedef struct {
    const KilnAttrInfo *attrs;
    const char *const *choices; /* per option: "run|compile" where only these values are legal, else
                                   NULL; the whole list may be NULL */
    uint32_t n;
    size_t size; /* of the struct that they are stored in */
} KilnOptionTable;

/** The rules of a pass that is a list of them: passes/rule.h. */
typedef struct KilnRuleList KilnRuleList;

struct KilnPassInfo {
    const char *id; /* kebab-case */
    KilnLevel level;
    uint32_t requires_;
    uint32_t preserves;
    KilnNumerics numerics; /* the widest class of its rewrites */
    const char *summary;
    const KilnOptionTable *options; /* NULL: none */
    /* Exactly one of these is set, as fits the level. */
    const KilnRuleList *rules;
    KilnGraphPassFn run_graph;
    KilnIRPassFn run_ir;
};

/* The file of a pass says this in front of its function, for its row in passes/passes.def:
 *
 *     GRAPH_PASS(cse);
 *
 *     gboolean
 *     kiln_pass_cse(KilnFunction *function, KilnPassContext *context, bool *changed,
 *                   GError **error)
 *
 * A pass that is a list of rules says RULE_PASS behind them instead: passes/rule.h. */
#define GRAPH_PASS(id)                                                                             \
    gboolean kiln_pass_##id(KilnFunction *function, KilnPassContext *context, bool *changed,       \
                            GError **error)
#define IR_PASS(id)                                                                                \
    gboolean kiln_pass_##id(KilnIRFunction *function, KilnPassContext *context, bool *changed,     \
                            GError **error)

/* Options, if the row says OPTIONS: the struct `Options` that kiln_pass_options() returns, and its
 * table. A CHOICE is a string with only these values.
 *
 *     #define OPTIONS(OPTION, CHOICE)  \
 *         OPTION(INT, max_bytes, 4096) \
 *         CHOICE(when, "always", "always|pays")
 *     PASS_OPTIONS(my_pass, OPTIONS); */
#define PASS_OPTIONS(id, LIST)                                                                     \
    typedef struct {                                                                               \
        LIST(KILN_OPTION_FIELD, KILN_CHOICE_FIELD)                                                 \
    } Options;                                                                                     \
    static const KilnAttrInfo option_attrs[] = { LIST(KILN_OPTION_ATTR, KILN_CHOICE_ATTR) };       \
    static const char *const option_choices[] = { LIST(KILN_OPTION_VALUES, KILN_CHOICE_VALUES) };  \
    extern const KilnOptionTable kiln_pass_options_##id;                                           \
    const KilnOptionTable kiln_pass_options_##id = { option_attrs, option_choices,                 \
                                                     G_N_ELEMENTS(option_attrs), sizeof(Options) }
#define KILN_OPTION_FIELD(kind, field, otherwise) KilnC_##kind field;
#define KILN_CHOICE_FIELD(field, otherwise, choices) KILN_OPTION_FIELD(STRING, field, otherwise)
#define KILN_OPTION_ATTR(kind, field, otherwise)                                                   \
    { #field, KILN_ATTR_##kind, offsetof(Options, field), KILN_OTHERWISE_##kind(otherwise) },
#define KILN_CHOICE_ATTR(field, otherwise, choices) KILN_OPTION_ATTR(STRING, field, otherwise)
#define KILN_OPTION_VALUES(kind, field, otherwise) NULL,
#define KILN_CHOICE_VALUES(field, otherwise, choices) choices,

/** The table of built-in passes. The pipeline that loaded a plug-in has the plug-in's passes:
 * kiln_pass_pipeline_find(). */
const KilnPassInfo *kiln_pass_find(const char *id);
uint32_t kiln_pass_count(void);
const KilnPassInfo *kiln_pass_at(uint32_t i);

/* --- questions and reports of a pass --- */

/** The row of the running pass, as its table has it: a pass that is registered from a program finds
 * its own data beside its row. NULL between passes. */
const KilnPassInfo *kiln_pass_running(const KilnPassContext *context);
/** The options of the running entry, as a struct of KilnOptionTable.size bytes; NULL where the pass
 * has none. */
const void *kiln_pass_options(const KilnPassContext *context);

/** The target that the program will run on; NULL where none is known (a bare `kiln opt`). */
const KilnTarget *kiln_pass_target(const KilnPassContext *context);
/** True where the target's own kernels run the instruction that @node lowers to. Kernels of its
 * fallback do not count, because they are not faster. False without a target. */
bool kiln_pass_target_has(const KilnPassContext *context, const KilnNode *node);
/** Says that the application at hand is at least of class @numerics, as its options ask. */
void kiln_pass_widen(KilnPassContext *context, KilnNumerics numerics);
/** Says that the application at hand computed values with kernels of kiln_pass_target(). A check on
 * another target compares as @elsewhere allows. */
void kiln_pass_evaluated(KilnPassContext *context, KilnNumerics elsewhere);
/** The number of threads that the program is compiled for, at least 1. */
int kiln_pass_threads(const KilnPassContext *context);
KilnMode kiln_pass_mode(const KilnPassContext *context);
/** True where less memory is worth more than speed. */
bool kiln_pass_prefers_memory(const KilnPassContext *context);
/** True where each instruction has one algorithm, whatever is known of its operands. Literals and
 * inputs then give the same bits. */
bool kiln_pass_one_algorithm(const KilnPassContext *context);
/** True where the pipeline sets all of @flags. */
bool kiln_pass_allows(const KilnPassContext *context, uint32_t flags);
/** Lives of the function's buffers, for passes that require KILN_ANALYSIS_LIVENESS. */
const KilnMemoryPlan *kiln_pass_liveness(const KilnPassContext *context);

/** Counts @rule as fired and logs one line: which rule, which nodes. */
void kiln_pass_note(KilnPassContext *context, const char *rule, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/** Logs one line about a finding, without a rewrite. */
void kiln_pass_remark(KilnPassContext *context, const char *rule, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/** Says that refusals are about @node, whose results take @bytes, until the pass ends. The report
 * lists each of them once. */
void kiln_pass_about(KilnPassContext *context, const KilnNode *node, int64_t bytes);
/** Counts @rule as refused by @guard. */
void kiln_pass_refuse(KilnPassContext *context, const char *rule, const char *guard);
/** The guard that refused last; NULL before any did. */
const char *kiln_pass_last_refusal(const KilnPassContext *context);

/** Returns false, as a refusal, unless @condition holds. A script lists the guards of the sources.
 * A test can switch one off (KilnPassOptions.disabled_guard) to show that another test notices.
 * PASS_GUARD is for passes without rules; it needs a `context` and a `rule` (const char *) in
 * scope. Rewrites of rules have GUARD (passes/rule.h). */
#define PASS_GUARD(name, condition)                                                                \
    do {                                                                                           \
        if (!kiln_pass_guard(context, rule, #name, (condition)))                                   \
            return false;                                                                          \
    } while (0)
bool kiln_pass_guard(KilnPassContext *context, const char *rule, const char *guard, bool holds);

G_END_DECLS

#endif
