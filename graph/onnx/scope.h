/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an import: the model, the module, and the meaning of names in the current graph. */
#ifndef KILN_GRAPH_ONNX_SCOPE_H
#define KILN_GRAPH_ONNX_SCOPE_H

#include "graph/graph.h"
#include "graph/onnx/model.h"
#include "graph/onnx/tensor.h"

typedef struct {
    KilnOnnxModel *model;
    KilnModule *module;
    KilnOnnxFiles files;
    GHashTable *dim_names; /* see kiln_onnx_type_load */
    GHashTable *doubts;    /* KilnValue* → KilnOnnxDoubt; looked up, never iterated */
} KilnOnnxImport;

/** Doubts about the type of a value. */
typedef enum {
    KILN_ONNX_GUESSED = 1, /* an unknown operator computed it, and the model has no type */
    KILN_ONNX_OTHER = 2,   /* a sequence, a map, an element type that Kiln does not have */
} KilnOnnxDoubt;

/** A graph being imported, and the names that its nodes can see. */
typedef struct KilnOnnxScope KilnOnnxScope;
struct KilnOnnxScope {
    KilnOnnxScope *outer;
    KilnOnnxImport *import;
    const KilnOnnxGraph *graph;
    KilnFunction *function;
    GHashTable *values; /* name in the model → KilnValue* */
    GHashTable *types;  /* name → Onnx__TypeProto*: declared by the graph */
    GHashTable *read;   /* names that nodes or outputs read; made when first asked for */
};

/** The value that @name means in @scope; NULL if nothing (so far) defines it. */
KilnValue *kiln_onnx_lookup(const KilnOnnxScope *scope, const char *name);
/** Makes @name mean @value, and names the value so if the name is free. */
gboolean kiln_onnx_define(KilnOnnxScope *scope, const char *name, KilnValue *value, GError **error);
/** Renames a value that the importer named @name itself: the model's names come first. */
void kiln_onnx_free_name(KilnOnnxScope *scope, const char *name);
/** True if a node of the graph (or of its subgraphs) or an output reads @name. */
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

#endif
