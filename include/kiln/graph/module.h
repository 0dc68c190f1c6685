/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and modules: what owns nodes, constants and placeholders. */
#ifndef KILN_GRAPH_MODULE_H
#define KILN_GRAPH_MODULE_H

#include "graph/grow/table.h"
#include "graph/metadata.h"
#include "graph/node.h"

G_BEGIN_DECLS

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
    KilnType type;    /* the tensor's, and quantization or layout on top */
    KilnTensor *tensor;
    KilnModule *module;
    uint32_t id;     /* index in the module's list */
    int64_t charged; /* bytes of it that count against the budget of folding, which computed it */
    int64_t base;    /* bytes of the constants that folding computed it from; -1: it did not */
};

enum {
    KILN_ORDER_DEFS = 3,
    KILN_ORDER_NO_OP = UINT8_MAX,
};
G_STATIC_ASSERT((int)KILN_N_OPS <= (int)KILN_ORDER_NO_OP);

typedef struct {
    KilnNode *node; /* NULL: unlinked since */
    uint32_t id;
    uint8_t op;
    uint8_t defs[KILN_ORDER_DEFS]; /* ops of what defines its first operands; NO_OP: no node does */
} KilnOrderEntry;

/** The nodes of a function in list order, beside their ops and those of what they read: who looks
 * for some ops among many nodes reads a table instead of the nodes. */
typedef struct {
    KilnOrderEntry *entries;
    uint8_t *ops; /* of the entries, for who looks for few ops: a byte of each fits into caches */
    uint32_t n;
    uint32_t *at;                 /* by node id: where its entry is */
    uint32_t n_of_op[KILN_N_OPS]; /* entries by op */
    /* graph/module/order.c's own: */
    bool valid;
    KilnOrderEntry *spare; /* as many as `entries` */
    uint32_t room, at_room;
    GPtrArray *waiting; /* KilnNode*: linked since; NULL: there is no table yet */
} KilnNodeOrder;

/** What was touched since the function was last found valid (graph/module/changes.c). */
typedef struct {
    bool known;                 /* false: anything may have changed */
    GPtrArray *nodes, *values;  /* KilnNode*, KilnValue* */
    uint64_t removed_constants; /* the module's count at that time */
} KilnChanges;

struct KilnFunction {
    const char *name;
    KilnModule *module;
    KilnNode *owner; /* the node whose attribute this subgraph is; NULL: a function of the module */
    GPtrArray *arguments;     /* KilnArgument* */
    KilnNode *first, *last;   /* in order; `return`, once there, is the last */
    KilnNodeOrder order;      /* kiln_function_order() */
    uint32_t n_nodes;         /* linked */
    uint32_t n_region_nodes;  /* of these, with subgraphs */
    uint32_t next_id;         /* > every node->id */
    GPtrArray *result_names;  /* const char*, one per operand of `return`: what the model calls its
                                 outputs */
    bool is_region;           /* made to be a subgraph */
    KilnTable *names;         /* of values: looked up, never iterated */
    KilnTable *name_counters; /* base → the last number that unique_name gave it */
    uint64_t stamp;           /* grows with every change */
    KilnChanges changes;      /* since the last kiln_function_verify_changes() */
    uint64_t swept;           /* the module's stamp when nothing here was dead; 0: not known */
    GPtrArray *doubtful;      /* KilnNode*: what may have died since; NULL: any node may be dead */
};

/** A function that a vendor supplies: `declare @r0(types) -> types`. */
typedef struct {
    const char *name;
    KilnType *operands;
    uint32_t n_operands;
    KilnType *results;
    uint32_t n_results;
    KilnFunction *body; /* the same in operators, of its arguments alone: what is compiled, and what
                           runs where no vendor does; NULL: not known */
    KilnShared *compiled; /* what the vendor made of it; NULL before */
} KilnDeclaration;

typedef enum {
    KILN_MODE_INFER,
    KILN_MODE_TRAIN,
} KilnMode;

struct KilnModule {
    KilnArena *arena;
    KilnArena *nodes, *values, *uses; /* apart, so that a walk over nodes reads nodes only */
    GPtrArray *all_functions;         /* KilnFunction*, subgraphs included: what is freed */
    KilnTable *region_names;          /* hashes of what values of subgraphs were ever called */
    uint32_t name_counter;            /* makes names of constants unique */
    char *path;                       /* of the model file, or NULL */
    GPtrArray *notes;     /* char*, then NULL: what the importer mended; NULL: nothing */
    GPtrArray *functions; /* KilnFunction*, callees first; the last is the entry */
    GPtrArray *constants; /* KilnConstant*, in order of creation */
    KilnTable *constant_by_name;
    GPtrArray *declarations; /* KilnDeclaration* */
    KilnFolding *folding;    /* what is computed ahead of the entry's runs; NULL: nothing */
    KilnMetadata metadata;   /* but for the name of the graph, which the entry has */
    int opset;               /* of the default domain in the model; 0: text */
    KilnMode mode;
    uint64_t seed;       /* where nodes are evaluated: of random operators that have none */
    uint32_t n_nodes;    /* linked, in all functions and subgraphs */
    uint32_t made_nodes; /* since the arenas of nodes are what they are */
    uint64_t stamp;      /* grows with every change of a function and of the list of constants */
    bool doubtful_constants;    /* some may be read by nothing since dce looked */
    uint64_t removed_constants; /* grows with every removal of constants */
};

KilnModule *kiln_module_new(void);
void kiln_module_free(KilnModule *module);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnModule, kiln_module_free)
/** A deep copy that shares tensor bytes. */
KilnModule *kiln_module_clone(const KilnModule *module);

/** Adds a note about the file of @module: a line without a newline. */
void kiln_module_add_note(KilnModule *module, const char *format, ...) G_GNUC_PRINTF(2, 3);

/** Moves nodes, results and operands to memory of their own in list order where more than half of
 * what there is was removed, numbers nodes as kiln_function_renumber() does, and keeps the rest for
 * what is made next, until kiln_module_trim(). Returns whether it did: pointers to nodes, values
 * of nodes and uses are then those of another life. Linear, against as many removals. */
bool kiln_module_compact(KilnModule *module);
/** Frees what kiln_module_compact() kept. */
void kiln_module_trim(KilnModule *module);

KilnFunction *kiln_function_new(KilnModule *module, const char *name);
/** A subgraph: a function that is not in the module's list; its nodes may read values around it. */
KilnFunction *kiln_function_new_region(KilnModule *module, const char *name);
KilnFunction *kiln_module_find_function(const KilnModule *module, const char *name);
/** The function that runs: the last of the list; NULL in an empty module. */
KilnFunction *kiln_module_entry(const KilnModule *module);

/** NULL where nothing of that name is declared. */
KilnDeclaration *kiln_module_find_declaration(const KilnModule *module, const char *name);
/** Declares @name, which must be free, with the signature of @body, which becomes the
 * declaration's. */
KilnDeclaration *kiln_module_declare(KilnModule *module, const char *name, KilnFunction *body);
/** Forgets the declarations that are not marked in @keep (one flag per declaration). */
void kiln_module_keep_declarations(KilnModule *module, const bool *keep);

/** Adds a constant, taking @tensor over; @name is made unique. @type NULL: the tensor's own. */
KilnConstant *kiln_module_add_constant(KilnModule *module, const char *name, KilnTensor *tensor,
                                       const KilnType *type);
KilnConstant *kiln_module_find_constant(const KilnModule *module, const char *name);
/** Forgets the constants whose id is marked in @remove (one flag per constant) and renumbers the
 * rest: for passes that know that no `const` node or attribute refers to them. */
void kiln_module_remove_constants(KilnModule *module, const bool *remove);

/** Says that anything may have changed in @function: for changes made past the functions below. */
void kiln_function_touch(KilnFunction *function);
/** Says that attributes of @node or the types of its results were written directly. */
void kiln_node_touch(KilnNode *node);
/** Adds an argument; NULL and an error where the name is taken. */
KilnArgument *kiln_function_add_argument(KilnFunction *function, const char *name,
                                         const KilnType *type, GError **error);
/** Keeps the arguments of the list (a subset, in any order), in its order; nothing may read the
 * others. */
void kiln_function_keep_arguments(KilnFunction *function, KilnArgument *const *kept, uint32_t n);
static inline KilnArgument *
kiln_function_argument(const KilnFunction *function, uint32_t i)
{
    return (KilnArgument *)g_ptr_array_index(function->arguments, i);
}
/** Sets (or replaces) the results: makes the `return` node. @names may be NULL: the values' own. */
gboolean kiln_function_set_results(KilnFunction *function, KilnValue *const *values,
                                   const char *const *names, uint32_t n, GError **error);
/** Valid until a node is linked, unlinked or moved; then the next call patches it, at the cost of
 * what changed and of a sweep over the table. */
const KilnNodeOrder *kiln_function_order(KilnFunction *function);
/** Numbers nodes densely in list order. */
void kiln_function_renumber(KilnFunction *function);
/** The `return` node; NULL while the function is being built. */
KilnNode *kiln_function_return(const KilnFunction *function);
/** A name derived from @base that no value of the function has; interned in the module's arena. */
const char *kiln_function_unique_name(KilnFunction *function, const char *base);
/** @value, which is named, is to be found in @function: what every maker of values ends with. */
void kiln_function_enter_name(KilnFunction *function, KilnValue *value);
/** Renames the values of a subgraph, nested ones included, that are called like a value around it:
 * done when its node is made, for until then it is not known what is around. */
void kiln_function_settle_names(KilnFunction *region);
/** The value of that name in the function (not around it); NULL if there is none. */
KilnValue *kiln_function_find_value(const KilnFunction *function, const char *name);
/** Renames; @name must be free. */
void kiln_value_rename(KilnFunction *function, KilnValue *value, const char *name);
/** Removes all nodes, `return` too: nothing outside may read them. */
void kiln_function_clear(KilnFunction *function);
/** Infers all types again in order, as after binding dims or operand values; subgraphs included. */
gboolean kiln_function_reinfer(KilnFunction *function, GError **error);

#define kiln_foreach_node(node, function_)                                                         \
    for (KilnNode *node = (function_)->first; node; node = node->next)
/** The body may remove @node or insert around it. */
#define kiln_foreach_node_safe(node, function_)                                                    \
    for (KilnNode *node = (function_)->first, *next_##node = node ? node->next : NULL; node;       \
         node = next_##node, next_##node = node ? node->next : NULL)
#define kiln_foreach_node_reverse(node, function_)                                                 \
    for (KilnNode *node = (function_)->last, *next_##node = node ? node->previous : NULL; node;    \
         node = next_##node, next_##node = node ? node->previous : NULL)

/** Everything that must hold of a module or function: unique names, def before use, arity,
 * attribute ranges, use lists, types inferred again == stored, outputs named. Linear. */
gboolean kiln_module_verify(const KilnModule *module, GError **error);
gboolean kiln_function_verify(const KilnFunction *function, GError **error);
/** The same where @function was found valid by an earlier call: looks only at what the functions of
 * graph/ touched since, and at what reads or defines it; whole the first time, where anything may
 * have changed, and where the module has subgraphs. */
gboolean kiln_function_verify_changes(KilnFunction *function, GError **error);

G_END_DECLS

#endif
