/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes whose data decides a dim: it gets a name, and what follows has expressions of it. */
#ifndef KILN_GRAPH_MODULE_DEFINE_H
#define KILN_GRAPH_MODULE_DEFINE_H

#include "graph/module.h"
#include "graph/node.h"
#include "graph/size.h"

enum {
    KILN_DEFINED_MAX = 64 /* names of one node */
};

/** A name that a run finds the number of, and the most that it can be. */
typedef struct {
    const KilnDim *name;
    KilnSize most; /* lost: nobody knows */
} KilnDefined;

/** The list `dims` of @node, out of which a tensor comes; NULL for other operators. */
KilnStrings *kiln_node_item_dims(const KilnNode *node);
/** True for operators with an attribute `count` or `dims`: names of dims that data decides. */
bool kiln_op_counts(KilnOp op);
/** True for `define`. */
bool kiln_op_is_define(KilnOp op);
/** True for operators whose result states a shape that their data has, however small that is. */
bool kiln_op_measures(KilnOp op);
/** The name of @count; NULL where there is none yet. */
const char *kiln_node_count(const KilnNode *node);
/** Takes the name away; false where the operator has none. */
bool kiln_node_forget_count(KilnNode *node);
/** Gives the dim that the data of @node decides a name, where it has none and a bound is known.
 * True where it did: then the types of its results must be inferred again. */
bool kiln_node_define(KilnNode *node);
/** A name for what is decided by value @name, as the text form spells dims. */
char *kiln_define_word(const char *name);
/** A name for a number up to @most that data of @function decides: @wanted, or like it where the
 * module has that already, in an argument or a subgraph, too. A run gives each name one number. */
const char *kiln_define_name(KilnFunction *function, const char *wanted, int64_t most);
/** True where operand @i of @op decides shapes and may get names. */
bool kiln_op_defines_operand(KilnOp op, uint32_t i);
/** Gives names to the elements of operands that decide the shape of @node and are not known, where
 * that is possible. *@out_changed: then its types must be inferred again. */
gboolean kiln_node_define_operands(KilnNode *node, bool *out_changed, GError **error);
/** Puts other operators in place of @node, which goes, where its operands alone cannot say what
 * data decides: a range from a start or by steps that are not known, a slice that goes backwards.
 */
gboolean kiln_node_define_by_others(KilnNode *node, GError **error);
/** Where @node is a `concat`, gives operands the dims of the others where data decides that they
 * are the same: a run checks that. *@out_changed: then its types must be inferred again. */
gboolean kiln_concat_define(KilnNode *node, bool *out_changed, GError **error);
/** Puts elements at the places where its condition is true in place of @node, a `compress`, which
 * goes, unless the condition is known. */
gboolean kiln_compress_define(KilnNode *node, GError **error);
enum {
    KILN_LIST_RANK_MAX = 6 /* the product of more names is no expression */
};

/* Nodes in front of @before, by which a tensor is the list of its elements and that of its shape.
 */

/** The elements of @value, and its shape. */
KilnValue *kiln_list_flat(KilnNode *before, KilnValue *value, GError **error);
KilnValue *kiln_list_shape(KilnNode *before, KilnValue *value, GError **error);
/** Element @i of @list. */
KilnValue *kiln_list_element(KilnNode *before, KilnValue *list, int64_t i, GError **error);
/** The tensor of rank @rank, at most KILN_LIST_RANK_MAX, with elements @flat and shape @shape. */
KilnValue *kiln_list_tensor(KilnNode *before, KilnValue *flat, KilnValue *shape, int rank,
                            GError **error);
/** Whether @value, an integer, is below @limit. */
KilnValue *kiln_list_below(KilnNode *before, KilnValue *value, int64_t limit, GError **error);

/** The extent that the readers of element @i of what @node, a `define`, gives names to allow. Lost
 * where nobody reads it so. */
KilnSize kiln_define_most_by_readers(const KilnNode *node, uint32_t i);
/** Writes the names that @node defines to @out, and returns their number. */
uint32_t kiln_node_defines(const KilnNode *node, KilnDefined out[KILN_DEFINED_MAX]);
/** True where a node of the entry of @module may define one, for some shapes. */
bool kiln_module_may_define(const KilnModule *module);
/** True where a node of the entry of @module defines a name. */
bool kiln_module_defines(const KilnModule *module);

#endif
