/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the graph level: values, nodes and uses (the SSA graph), functions, constants and
 * modules. node.h, function.h and module.h change it.
 *
 * A value is an argument of a function or a result of a node. A node lists its operands as uses.
 * Every value chains its uses, so its readers are found and replaced without a search. Nodes live
 * in an arena of the module and do not move while a pass runs; kiln_module_compact() moves them
 * between passes. A node that dies is unlinked. `return` is the last node of a function, so a
 * function result counts as a use like any other. */
#ifndef KILN_GRAPH_GRAPH_H
#define KILN_GRAPH_GRAPH_H

#include "graph/grow/table.h"
#include "graph/metadata.h"
#include "graph/op.h"
#include "graph/tensor.h"

G_BEGIN_DECLS

typedef struct KilnNode KilnNode;
typedef struct KilnValue KilnValue;
typedef struct KilnUse KilnUse;
typedef struct KilnModule KilnModule;
typedef struct KilnFolding KilnFolding;

/** When a value is known. A value computed from several has the least constness of them. */
typedef enum {
    KILN_CONSTNESS_VARYING, /* an input of every run, or computed from one */
    KILN_CONSTNESS_RUN,     /* Type 2: known at the first run */
    KILN_CONSTNESS_COMPILE, /* Type 1: known when the program is compiled */
    KILN_CONSTNESS_LITERAL, /* known now: a mark of nodes, not of arguments */
} KilnConstness;

/** Integers of a value that are known while compiling: shapes, axes, and arithmetic on them. At a
 * binding, floats have them, too, where all are whole. */
typedef struct {
    int64_t n;
    int64_t v[];
} KilnKnown;

enum {
    KILN_KNOWN_MAX = 1024, /* elements; bigger integer tensors are data, not shapes */
    KILN_EXTENTS_MAX = 64  /* elements that are expressions */
};

/** Numbers of a value as expressions of the dims of inputs. An element that is not known is NULL.
 * At least one element is known. Of integers, at least one is not a number. If all are numbers,
 * KilnKnown has them.
 *
 * Floats may be quotients: element k is v[k] / under[k]. A float holds it exactly where under[k] is
 * a power of two, and has the nearest number elsewhere. */
typedef struct {
    uint32_t n;
    const int64_t *under; /* NULL: 1 for each element, and always for integers */
    const KilnDim *v[];
} KilnExtents;

struct KilnUse {
    KilnValue *value; /* NULL: the optional operand is absent */
    KilnNode *user;
    uint32_t index;           /* which operand of the user */
    KilnUse *previous, *next; /* among the uses of the value */
};

/* Walks over uses and patterns read the first fields. They share one line of a cache, because
 * values are aligned to lines. Open dims, which few types have, come last. */
struct KilnValue {
    KilnNode *def; /* NULL: an argument */
    KilnUse *first_use, *last_use;
    uint32_t n_uses;
    uint32_t index : 30;        /* which result, or which argument */
    bool made_up : 1;           /* the name was derived: a name from the model may replace it */
    bool touched : 1;           /* in the list of graph/module/changes.c */
    const char *name;           /* unique in its function and in functions around it */
    const KilnKnown *known;     /* NULL: not known */
    const KilnExtents *extents; /* NULL: `known` says it, or not known */
    KilnType type;
};

/* All fields but the name lie on one line of a cache. */
struct KilnNode {
    KilnOp op : 16;
    KilnConstness mark : 8; /* found by analyse-constness; VARYING where it found nothing */
    bool touched : 1;       /* in the list of graph/module/changes.c */
    uint32_t id;            /* dense per function: scratch tables are arrays indexed by it */
    uint32_t n_operands, n_results;
    KilnUse *operands;
    KilnValue *results;
    KilnFunction *function;
    KilnNode *previous, *next;
    void *attrs;      /* KilnAttrs_<op>, NULL where the op has none */
    const char *name; /* of the model's node, for messages; NULL: use the first result's */
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

/** The subgraph in attribute @i; NULL where the attribute is no subgraph or is absent. */
static inline KilnFunction *
kiln_node_region(const KilnNode *node, uint32_t i)
{
    const KilnAttrInfo *info = &kiln_op_info(node->op)->attrs[i];
    return info->kind == KILN_ATTR_FUNCTION ? *(KilnFunction **)((char *)node->attrs + info->offset)
                                            : NULL;
}
/** The subgraphs of a node in turn. A `break` only skips to the next one. */
#define kiln_foreach_region(region, node)                                                          \
    for (uint32_t i_##region = 0; i_##region < kiln_op_info((node)->op)->n_attrs; i_##region++)    \
        for (KilnFunction *region = kiln_node_region((node), i_##region); region; region = NULL)

#define kiln_foreach_use(use, value_) for (KilnUse *use = (value_)->first_use; use; use = use->next)
#define kiln_foreach_use_safe(use, value_)                                                         \
    for (KilnUse *use = (value_)->first_use, *next_##use = use ? use->next : NULL; use;            \
         use = next_##use, next_##use = use ? use->next : NULL)

/* --- functions and modules --- */

typedef struct KilnShared KilnShared; /* graph/base/shared.h */

typedef struct {
    KilnValue value;
    KilnConstness constness;
    bool variable;     /* state kept between runs */
    const char *range; /* a domain that random inputs keep to, e.g. "[0,4)"; NULL: none */
    KilnFunction *function;
} KilnArgument;

struct KilnConstant {
    const char *name; /* without '@', unique in the module */
    KilnType type;    /* the tensor's type, with quantization or layout added */
    KilnTensor *tensor;
    KilnModule *module;
    uint32_t id;     /* index in the module's list */
    int64_t charged; /* its bytes that count against the budget of folding, which computed it */
    int64_t base;    /* bytes of the constants that folding computed it from; -1: it did not */
};

enum {
    KILN_ORDER_DEFS = 3,
    KILN_ORDER_OP_BITS = 10, /* bits per op: KILN_ORDER_DEFS ops fit into 32 bits */
    KILN_ORDER_NO_OP = (1 << KILN_ORDER_OP_BITS) - 1,
};
G_STATIC_ASSERT((int)KILN_OP_END <= (int)KILN_ORDER_NO_OP);

typedef struct {
    KilnNode *node; /* NULL: unlinked since */
    uint32_t id;
    uint32_t defs; /* ops that define its first operands; NO_OP: no node does */
} KilnOrderEntry;

/** The op that defines operand @i < KILN_ORDER_DEFS. */
static inline uint32_t
kiln_order_def(const KilnOrderEntry *entry, uint32_t i)
{
    return entry->defs >> i * KILN_ORDER_OP_BITS & KILN_ORDER_NO_OP;
}

/** The nodes of a function in list order, with their ops and the ops that define their operands. A
 * search for some ops among many nodes reads this table instead of the nodes. */
typedef struct {
    KilnOrderEntry *entries;
    KilnOp *ops; /* op of each entry: a search for few ops reads two bytes per node */
    uint32_t n;
    uint32_t *at;                  /* by node id: the index of its entry */
    uint32_t n_of_op[KILN_OP_END]; /* entries by op */
    /* private to graph/module/order.c: */
    bool valid;
    KilnOrderEntry *spare; /* as many as `entries` */
    KilnOp *spare_ops;
    uint32_t room, at_room;
    GPtrArray *waiting; /* KilnNode*, not in the table yet; NULL: there is no table yet */
} KilnNodeOrder;

/** The parts that were touched since the function was last found valid (graph/module/changes.c). */
typedef struct {
    bool known;                 /* false: anything may have changed */
    GPtrArray *nodes, *values;  /* KilnNode*, KilnValue* */
    uint64_t removed_constants; /* the module's count at that time */
} KilnChanges;

struct KilnFunction {
    const char *name;
    KilnModule *module;
    KilnNode *owner; /* the node that this subgraph belongs to; NULL: a function of the module */
    GPtrArray *arguments;     /* KilnArgument* */
    KilnNode *first, *last;   /* in list order; `return` is the last, once it exists */
    KilnNodeOrder order;      /* kiln_function_order() */
    uint32_t n_nodes;         /* linked */
    uint32_t n_region_nodes;  /* of these, nodes with subgraphs */
    uint32_t next_id;         /* > every node->id */
    GPtrArray *result_names;  /* const char*, one per operand of `return`: the model's names of its
                                 outputs */
    bool is_region;           /* made to be a subgraph */
    KilnTable *names;         /* of values: looked up, never iterated */
    KilnTable *name_counters; /* base → the last number that unique_name gave it */
    uint64_t stamp;           /* grows with every change */
    KilnChanges changes;      /* since the last kiln_function_verify_changes() */
    uint64_t swept;           /* the module's stamp when nothing here was dead; 0: not known */
    GPtrArray *doubtful;      /* KilnNode* that may have died since; NULL: any node may be dead */
};

/** A function that a vendor supplies: `declare @r0(types) -> types`. */
typedef struct {
    const char *name;
    KilnType *operands;
    uint32_t n_operands;
    KilnType *results;
    uint32_t n_results;
    KilnFunction *body; /* the same in operators that read only its arguments: Kiln compiles it, and
                           runs it where no vendor does; NULL: not known */
    KilnShared *compiled; /* the vendor's compiled form; NULL before it is made */
} KilnDeclaration;

typedef enum {
    KILN_MODE_INFER,
    KILN_MODE_TRAIN,
} KilnMode;

struct KilnModule {
    KilnArena *arena;
    KilnArena *nodes, *values, *uses; /* apart, so that a walk over nodes reads nodes only */
    GPtrArray *all_functions;         /* KilnFunction* that the module frees, subgraphs included */
    KilnTable *region_names;          /* hashes of all names that values of subgraphs ever had */
    uint32_t name_counter;            /* makes names of constants unique */
    char *path;                       /* of the model file, or NULL */
    GPtrArray *notes;                 /* char*, then NULL: repairs by the importer; NULL: none */
    GPtrArray *functions;             /* KilnFunction*, callees first; the last is the entry */
    GPtrArray *constants;             /* KilnConstant*, in order of creation */
    KilnTable *constant_by_name;
    GPtrArray *declarations; /* KilnDeclaration* */
    KilnFolding *folding;    /* computed ahead of the entry's runs; NULL: nothing */
    KilnMetadata metadata;   /* all except the name of the graph, which the entry has */
    int opset;               /* of the default domain in the model; 0: from text */
    KilnMode mode;
    KilnDimTable *dims;                   /* of all open dims; copies of the module share it */
    const struct KilnDimBinding *binding; /* at which its types have numbers; NULL: open dims have
                                             none */
    uint64_t seed;           /* of random operators without a seed, when nodes are evaluated */
    uint32_t n_nodes;        /* linked, in all functions and subgraphs */
    uint32_t made_nodes;     /* all nodes in the arenas, removed ones included */
    uint64_t stamp;          /* grows with every change of a function or of the list of constants */
    bool doubtful_constants; /* some may have lost all readers since dce looked */
    uint64_t removed_constants; /* grows with every removal of constants */
};

/** The function that runs: the last of the list; NULL in an empty module. */
static inline KilnFunction *
kiln_module_entry(const KilnModule *module)
{
    guint n = module->functions->len;
    return n ? (KilnFunction *)g_ptr_array_index(module->functions, n - 1) : NULL;
}
static inline KilnArgument *
kiln_function_argument(const KilnFunction *function, uint32_t i)
{
    return (KilnArgument *)g_ptr_array_index(function->arguments, i);
}
/** The function whose node or argument @value is. */
static inline KilnFunction *
kiln_value_function(const KilnValue *value)
{
    return value->def ? value->def->function : ((const KilnArgument *)value)->function;
}
/** The `return` node; NULL while the function is being built. */
static inline KilnNode *
kiln_function_return(const KilnFunction *function)
{
    KilnNode *last = function->last;
    return last && last->op == KILN_OP_return ? last : NULL;
}

/** True until @node is removed. */
static inline bool
kiln_node_is_linked(const KilnNode *node)
{
    return node->previous || node->next || node->function->first == node;
}

#define kiln_foreach_node(node, function_)                                                         \
    for (KilnNode *node = (function_)->first; node; node = node->next)
/** The body may remove @node or insert around it. */
#define kiln_foreach_node_safe(node, function_)                                                    \
    for (KilnNode *node = (function_)->first, *next_##node = node ? node->next : NULL; node;       \
         node = next_##node, next_##node = node ? node->next : NULL)
#define kiln_foreach_node_reverse(node, function_)                                                 \
    for (KilnNode *node = (function_)->last, *next_##node = node ? node->previous : NULL; node;    \
         node = next_##node, next_##node = node ? node->previous : NULL)

G_END_DECLS

#endif
