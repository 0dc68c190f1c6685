/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an import, for the files of graph/onnx/import_*.c and the converters' helpers. */
#ifndef KILN_GRAPH_ONNX_IMPORT_H
#define KILN_GRAPH_ONNX_IMPORT_H

#include "graph/onnx/convert.h"
#include "graph/onnx/tensor.h"

struct KilnOnnxImport {
    KilnOnnxModel *model;
    KilnModule *module;
    KilnOnnxFiles files;
    GHashTable *dim_names; /* see kiln_onnx_type_load */
    GHashTable *doubts;    /* KilnValue* → KilnOnnxDoubt; looked up, never iterated */
};

/** What is not certain of a value's type. */
typedef enum {
    KILN_ONNX_GUESSED = 1, /* the model does not say, and an unknown operator computed it */
    KILN_ONNX_OTHER = 2,   /* a sequence, a map, an element type that Kiln does not have */
} KilnOnnxDoubt;

/** A graph being imported, and the names that its nodes can see. */
struct KilnOnnxScope {
    KilnOnnxScope *outer;
    KilnOnnxImport *import;
    const KilnOnnxGraph *graph;
    KilnFunction *function;
    GHashTable *values; /* name in the model → KilnValue* */
    GHashTable *types;  /* name → Onnx__TypeProto*: what the graph declares */
    GHashTable *read;   /* names that nodes or outputs read; made when first asked for */
};

/** Nodes of a graph, one after the other. */
gboolean kiln_onnx_import_node(KilnOnnxScope *scope, const KilnOnnxNode *node, GError **error);

/** Imports @graph into @function: arguments, constants, nodes, results. */
gboolean kiln_onnx_import_graph(KilnOnnxImport *import, KilnOnnxScope *outer,
                                const KilnOnnxGraph *graph, KilnFunction *function,
                                const KilnType *argument_types, uint32_t n, GError **error);

/** The same as nodes of the function of @outer, which takes no arguments: stores in @out (one per
 * output of @graph) what the outputs are. */
gboolean kiln_onnx_import_contents(KilnOnnxImport *import, KilnOnnxScope *outer,
                                   const KilnOnnxGraph *graph, KilnValue **out, GError **error);

/** The value that @name means in @scope; NULL where nothing (so far) defines it. */
KilnValue *kiln_onnx_lookup(const KilnOnnxScope *scope, const char *name);
/** Makes @value what @name means, and calls it so where the name is free. */
gboolean kiln_onnx_define(KilnOnnxScope *scope, const char *name, KilnValue *value, GError **error);
/** Renames a value that the importer named @name itself: the model's names come first. */
void kiln_onnx_free_name(KilnOnnxScope *scope, const char *name);
/** True where a node of the graph (or of its subgraphs) or an output reads @name. */
bool kiln_onnx_is_read(KilnOnnxScope *scope, const char *name);

static inline KilnOnnxDoubt
kiln_onnx_doubt(const KilnOnnxImport *import, const KilnValue *value)
{
    return (KilnOnnxDoubt)GPOINTER_TO_UINT(g_hash_table_lookup(import->doubts, value));
}
static inline void
kiln_onnx_set_doubt(KilnOnnxImport *import, KilnValue *value, KilnOnnxDoubt doubt)
{
    g_hash_table_insert(import->doubts, value, GUINT_TO_POINTER((guint)doubt));
}

/** Attributes that a node has and nobody took: an error. */
gboolean kiln_onnx_check_taken(const KilnOnnxCall *call, GError **error);

#endif
