/* SPDX-License-Identifier: Apache-2.0 */
/* Values, nodes and uses: the SSA graph.
 *
 * A value is an argument of a function or a result of a node; a node lists its operands as uses,
 * and every value chains its uses, so that "who reads this" and "replace all readers" cost what
 * they touch. Nodes live in an arena of the module, do not move while a pass runs
 * (kiln_module_compact() between passes does that), and are unlinked when they die.
 * `return` is the last node of a function, so that a function result counts as a use like any
 * other. */
#ifndef KILN_GRAPH_NODE_H
#define KILN_GRAPH_NODE_H

#include "graph/op.h"
#include "graph/tensor.h"

G_BEGIN_DECLS

typedef struct KilnNode KilnNode;
typedef struct KilnValue KilnValue;
typedef struct KilnUse KilnUse;
typedef struct KilnModule KilnModule;
typedef struct KilnFolding KilnFolding;

/** When a value is known. What is computed of several is known as late as the last of them: the
 * least. */
typedef enum {
    KILN_CONSTNESS_VARYING, /* an input of every run, and what depends on one */
    KILN_CONSTNESS_RUN,     /* Type 2: known at the first run */
    KILN_CONSTNESS_COMPILE, /* Type 1: known when the program is compiled */
    KILN_CONSTNESS_LITERAL, /* known now: a mark of nodes, not of arguments */
} KilnConstness;

/** Integers of a value that are known while compiling: shapes, axes, and arithmetic on them. */
typedef struct {
    int64_t n;
    int64_t v[];
} KilnKnown;

enum {
    KILN_KNOWN_MAX = 1024
}; /* elements; bigger integer tensors are data, not shapes */

struct KilnUse {
    KilnValue *value; /* NULL: the optional operand is absent */
    KilnNode *user;
    uint32_t index;           /* which operand of the user */
    KilnUse *previous, *next; /* among the uses of the value */
};

/* What walks over uses and patterns read comes first, on one line of a cache: a value begins with
 * one. Names of dims, which few types have, come last. */
struct KilnValue {
    KilnNode *def; /* NULL: an argument */
    KilnUse *first_use, *last_use;
    uint32_t n_uses;
    uint32_t index : 30;    /* which result, or which argument */
    bool made_up : 1;       /* the name was derived: the model's name may take its place */
    bool touched : 1;       /* graph/module/changes.c has it */
    const char *name;       /* unique among the values of its function and of functions around it */
    const KilnKnown *known; /* NULL: not known */
    KilnType type;
};

/* All but the name lies on one line of a cache. */
struct KilnNode {
    KilnOp op : 16;
    KilnConstness mark : 8; /* what analyse-constness found; VARYING where it found nothing */
    bool touched : 1;       /* graph/module/changes.c has it */
    uint32_t id;            /* dense per function: scratch tables are arrays indexed by it */
    uint32_t n_operands, n_results;
    KilnUse *operands;
    KilnValue *results;
    KilnFunction *function;
    KilnNode *previous, *next;
    void *attrs;      /* KilnAttrs_<op>, NULL where the op has none */
    const char *name; /* of the model's node, for messages; NULL: the first result names it */
};

/** The typed attributes of a node of op `id`. */
#define kiln_attrs(node, id) ((KilnAttrs_##id *)(node)->attrs)

static inline KilnValue *
kiln_node_operand(const KilnNode *node, uint32_t i)
{
    return i < node->n_operands ? node->operands[i].value : NULL;
}
static inline KilnValue *
kiln_node_result(KilnNode *node, uint32_t i)
{
    return &node->results[i];
}
/** What to call the node in a message: its own name, else its first result's, else the op's. */
const char *kiln_node_label(const KilnNode *node);
/** Where a random operator keeps the number of its stream: what is unseeded draws from that and the
 * seed of the run, so that two nodes differ, and one draws the same whatever passes do around it.
 * NULL for a node with a seed of its own, and for other operators. */
int64_t *kiln_node_stream(const KilnNode *node);
/** The node that defines @value if it is of @op; else NULL (also for arguments and NULL). */
KilnNode *kiln_value_def_of(const KilnValue *value, KilnOp op);
/** The constant behind @value if a `const` node defines it; else NULL. */
KilnConstant *kiln_value_constant(const KilnValue *value);
/** The integers that are known of @value as a tensor of its element type and shape; NULL where not
 * all of them are known. Small: it does not run out of memory. */
KilnTensor *kiln_value_known_tensor(const KilnValue *value);
/** True where exactly one operand reads @value and that reader is no `return`: guards of fusions.
 */
bool kiln_value_single_use(const KilnValue *value);
/** True where a `return` (of this function or a subgraph) reads @value. */
bool kiln_value_is_returned(const KilnValue *value);

/** The subgraph that attribute @i is; NULL where it is no subgraph, or an absent one. */
static inline KilnFunction *
kiln_node_region(const KilnNode *node, uint32_t i)
{
    const KilnAttrInfo *info = &kiln_op_info(node->op)->attrs[i];
    return info->kind == KILN_ATTR_FUNCTION ? *(KilnFunction **)((char *)node->attrs + info->offset)
                                            : NULL;
}
/** The subgraphs of a node in turn. A `break` leaves only the one at hand. */
/** Adds to @out the values (KilnValue*) that the subgraphs of @node, however deep, read around it:
 * each as often as it is read. */
void kiln_node_add_captures(const KilnNode *node, GPtrArray *out);

#define kiln_foreach_region(region, node)                                                          \
    for (uint32_t i_##region = 0; i_##region < kiln_op_info((node)->op)->n_attrs; i_##region++)    \
        for (KilnFunction *region = kiln_node_region((node), i_##region); region; region = NULL)

#define kiln_foreach_use(use, value_) for (KilnUse *use = (value_)->first_use; use; use = use->next)
#define kiln_foreach_use_safe(use, value_)                                                         \
    for (KilnUse *use = (value_)->first_use, *next_##use = use ? use->next : NULL; use;            \
         use = next_##use, next_##use = use ? use->next : NULL)

/* --- building and rewriting --- */

typedef struct {
    KilnOp op;
    const char *name;           /* of the node; may be NULL */
    KilnValue *const *operands; /* NULL entries: absent */
    uint32_t n_operands;
    uint32_t n_results;              /* 0 means 1, but for ops without results */
    const void *attrs;               /* copied; NULL: defaults */
    KilnNode *before;                /* NULL: at the end, before `return` if there is one */
    const char *result_name;         /* base of the names of the results; NULL: from the op */
    const char *const *result_names; /* the name of each result; NULL: derived from the base */
    const KilnType *types;           /* of the results, copied; NULL: inferred */
} KilnNodeSpec;

/** Makes a node and links it. Result types are inferred, or checked against @spec->types where
 * given; names are made unique. NULL and @error where arity, attributes or types are wrong (nothing
 * is linked then). Ops whose shape function is `given` need @spec->types. */
KilnNode *kiln_node_new(KilnFunction *function, const KilnNodeSpec *spec, GError **error);

/** Shorthand for passes: one or two operands, one result, default or given attributes. */
KilnValue *kiln_build(KilnFunction *function, KilnNode *before, KilnOp op, const void *attrs,
                      KilnValue *const *operands, uint32_t n_operands, GError **error);
/** The same with a result of @type, which states what inference cannot know: quantization. */
KilnValue *kiln_build_typed(KilnNode *before, KilnOp op, const void *attrs,
                            KilnValue *const *operands, uint32_t n_operands, const KilnType *type,
                            GError **error);
/** A `const` node of an i64 vector, or of any tensor (taken over). */
KilnValue *kiln_build_ints(KilnFunction *function, KilnNode *before, const int64_t *values,
                           uint32_t n);
KilnValue *kiln_build_constant(KilnFunction *function, KilnNode *before, const char *base_name,
                               KilnTensor *tensor);
/** The same as a value of @type: its quantization and layout stand on top of the tensor's shape and
 * element type. */
KilnValue *kiln_build_constant_as(KilnFunction *function, KilnNode *before, const char *base_name,
                                  KilnTensor *tensor, const KilnType *type);

void kiln_node_set_operand(KilnNode *node, uint32_t i, KilnValue *value);
/** Infers the result types again after operands or attributes changed, following no users. */
gboolean kiln_node_reinfer(KilnNode *node, GError **error);
/** The same, but keeps what the stored types say already; stores in @refined whether a type or
 * known integers say more now. */
gboolean kiln_node_refine(KilnNode *node, bool *refined, GError **error);
/** Infers types and known integers once more, in @scratch, and compares them with what is stored:
 * KILN_ERROR_SHAPE or _TYPE where they contradict. */
gboolean kiln_node_check_types(const KilnNode *node, KilnArena *scratch, GError **error);
/** All readers of @from read @to instead, whose type is equal or leaves fewer dims open. A name
 * that the model gave (@from's) moves to @to where @to's def is not an argument and has a made-up
 * name. */
void kiln_value_replace(KilnValue *from, KilnValue *to);
/** Unlinks a node that has no readers and drops its own uses. */
void kiln_node_remove(KilnNode *node);
/** Moves @node before @before (of the same function). */
void kiln_node_move(KilnNode *node, KilnNode *before);
/** Removes @node if nothing reads it and it may go; then the same for what it read. */
void kiln_node_remove_if_dead(KilnNode *node);
bool kiln_node_is_dead(const KilnNode *node);
/** True until @node was removed. */
bool kiln_node_is_linked(const KilnNode *node);

/** For gdb. */
void kiln_node_dump(const KilnNode *node);

G_END_DECLS

#endif
