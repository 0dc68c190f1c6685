/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and values: questions about them, building, rewriting and removing. Use lists are exact
 * after every call. */
#ifndef KILN_GRAPH_NODE_H
#define KILN_GRAPH_NODE_H

#include "graph/graph.h"

G_BEGIN_DECLS

/** The name of the node in a message: its own, else its first result's, else the op's. */
const char *kiln_node_label(const KilnNode *node);
/** Where a random operator keeps the number of its stream. An operator without a seed draws from
 * this number and the seed of the run. So two nodes draw different numbers, and passes around a
 * node do not change its numbers. NULL for a node with its own seed and for other operators. */
int64_t *kiln_node_stream(const KilnNode *node);
/** True for quantize_linear and dequantize_linear with a scale for each block along an axis. */
bool kiln_node_has_blocks(const KilnNode *node);
/** The node that defines @value if it is of @op; else NULL (also for arguments and NULL). */
KilnNode *kiln_value_def_of(const KilnValue *value, KilnOp op);
/** The constant behind @value if a `const` node defines it; else NULL. */
KilnConstant *kiln_value_constant(const KilnValue *value);
/** The known integers of @value as a tensor of its element type and shape; NULL unless all are
 * known. Small: it does not run out of memory. */
KilnTensor *kiln_value_known_tensor(const KilnValue *value);
/** True where exactly one operand reads @value and its node is no `return`: for fusions. */
bool kiln_value_single_use(const KilnValue *value);
/** True where a `return` (of this function or a subgraph) reads @value. */
bool kiln_value_is_returned(const KilnValue *value);
/** Adds to @out the values (KilnValue*) that subgraphs of @node, however deep, read from around it.
 * A value is added once per read. */
void kiln_node_add_captures(const KilnNode *node, GPtrArray *out);

/* --- building and rewriting --- */

typedef struct {
    KilnOp op;
    const char *name;           /* of the node; may be NULL */
    KilnValue *const *operands; /* NULL entries: absent */
    uint32_t n_operands;
    uint32_t n_results;              /* 0: one, or none for ops without results */
    const void *attrs;               /* copied; NULL: defaults */
    KilnNode *before;                /* NULL: at the end, before `return` if there is one */
    const char *result_name;         /* base for the names of the results; NULL: from the op */
    const char *const *result_names; /* the name of each result; NULL: derived from the base */
    const KilnType *types;           /* of the results, copied; NULL: inferred */
} KilnNodeSpec;

/** Makes a node and links it. Infers the result types, or checks them against @spec->types. Makes
 * names unique. NULL and @error, with nothing linked, where arity, attributes or types are wrong.
 * Ops whose shape function is `given` need @spec->types. */
KilnNode *kiln_node_new(KilnFunction *function, const KilnNodeSpec *spec, GError **error);

/** Shorthand for passes: one or two operands, one result, default or given attributes. */
KilnValue *kiln_build(KilnFunction *function, KilnNode *before, KilnOp op, const void *attrs,
                      KilnValue *const *operands, uint32_t n_operands, GError **error);
/** The same with a result of @type: inference cannot know its quantization. */
KilnValue *kiln_build_typed(KilnNode *before, KilnOp op, const void *attrs,
                            KilnValue *const *operands, uint32_t n_operands, const KilnType *type,
                            GError **error);
/** A `const` node of an i64 vector, or of any tensor, which it takes over. */
KilnValue *kiln_build_ints(KilnFunction *function, KilnNode *before, const int64_t *values,
                           uint32_t n);
KilnValue *kiln_build_constant(KilnFunction *function, KilnNode *before, const char *base_name,
                               KilnTensor *tensor);
/** The same as a value of @type, which adds quantization and layout to the tensor's shape and
 * element type. */
KilnValue *kiln_build_constant_as(KilnFunction *function, KilnNode *before, const char *base_name,
                                  KilnTensor *tensor, const KilnType *type);

void kiln_node_set_operand(KilnNode *node, uint32_t i, KilnValue *value);
/** Infers the result types again after operands or attributes changed. Users keep their types. */
gboolean kiln_node_reinfer(KilnNode *node, GError **error);
/** The same, but keeps all facts of the stored types. Sets *@refined to whether a type or known
 * integers say more now. */
gboolean kiln_node_refine(KilnNode *node, bool *refined, GError **error);
/** Infers types and known integers again, in @scratch, and compares them with the stored ones.
 * Fails with KILN_ERROR_SHAPE or _TYPE where they contradict. */
gboolean kiln_node_check_types(const KilnNode *node, KilnArena *scratch, GError **error);
/** Makes all readers of @from read @to, whose type is equal or leaves fewer dims open. A name that
 * the model gave @from moves to @to, if a node defines @to and its name is made up. */
void kiln_value_replace(KilnValue *from, KilnValue *to);
/** Unlinks a node that has no readers and drops its own uses. */
void kiln_node_remove(KilnNode *node);
/** Moves @node before @before (of the same function). */
void kiln_node_move(KilnNode *node, KilnNode *before);
/** Removes @node if nothing reads it and it may go; then does the same for its operands. */
void kiln_node_remove_if_dead(KilnNode *node);
bool kiln_node_is_dead(const KilnNode *node);
/** Says that attributes of @node or the types of its results were written directly. */
void kiln_node_touch(KilnNode *node);

G_END_DECLS

#endif
