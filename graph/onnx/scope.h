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
    bool newer_opsets;     /* see KilnOnnxOptions */
    size_t n_calls;        /* of functions so far */
    int64_t nchwc_block;   /* of kiln_onnx_nchwc_block(); 0: not known yet */
    GHashTable *dim_names; /* see kiln_onnx_type_load */
    GHashTable *doubts;    /* KilnValue* → KilnOnnxDoubt; looked up, never iterated */
} KilnOnnxImport;

/** Doubts about the type of a value. */
typedef enum {
    KILN_ONNX_GUESSED = 1, /* an unknown operator computed it, and the model has no type */
    KILN_ONNX_OTHER = 2,   /* a sequence, a map, an element type that Kiln does not have */
} KilnOnnxDoubt;

/** A call of one of the model's functions, whose nodes are imported in place of the call. */
typedef struct KilnOnnxFrame KilnOnnxFrame;
struct KilnOnnxFrame {
    const KilnOnnxFrame *caller; /* NULL: the model's graph */
    const KilnOnnxFunction *function;
    const KilnOnnxNode *call; /* with the attributes of the function */
    const char *prefix;       /* of the names of nodes and values: "call/" */
};

enum {
    KILN_ONNX_MAX_DEPTH = 128 /* of graphs and functions inside each other */
};

/** A graph being imported, and the names that its nodes can see. */
typedef struct KilnOnnxScope KilnOnnxScope;
struct KilnOnnxScope {
    KilnOnnxScope *outer;
    const KilnOnnxFrame *frame; /* NULL: the model's graph, and what is inside */
    bool closed;                /* the body of a function: names of `outer` mean nothing here */
    int depth;                  /* of scopes around it */
    KilnOnnxImport *import;
    const KilnOnnxGraph *graph;
    KilnFunction *function;
    GHashTable *values; /* name in the model → KilnValue*; NULL: an operand that was left out */
    GHashTable *types;  /* name → Onnx__TypeProto*: declared by the graph */
    GHashTable *read;   /* names that nodes or outputs read; made when first asked for */
};

/** The value that @name means in @scope; NULL if nothing (so far) defines it. */
KilnValue *kiln_onnx_lookup(const KilnOnnxScope *scope, const char *name);
/** True if @name is a parameter of a function, and its caller leaves the operand out. */
bool kiln_onnx_is_left_out(const KilnOnnxScope *scope, const char *name);
/** The scope around @scope whose names can be seen in it; NULL: none. */
static inline const KilnOnnxScope *
kiln_onnx_around(const KilnOnnxScope *scope)
{
    return scope->closed ? NULL : scope->outer;
}
/** What @name is called outside of the model's file. Names in functions have those of calls in
 * front.
 */
const char *kiln_onnx_shown(const KilnOnnxScope *scope, const char *name);
/** The version of operator set @domain that nodes of @scope mean; 0: none. */
int64_t kiln_onnx_scope_opset(const KilnOnnxScope *scope, const char *domain);
/** @node, with what the call of the function says in place of attributes that refer to it. */
const KilnOnnxNode *kiln_onnx_resolve(const KilnOnnxScope *scope, const KilnOnnxNode *node);
/** Makes @name mean @value, and names the value so if the name is free. */
gboolean kiln_onnx_define(KilnOnnxScope *scope, const char *name, KilnValue *value, GError **error);
/** Renames a value of @function that the importer named @name itself: the model's names come first.
 */
void kiln_onnx_free_name(KilnFunction *function, const char *name);
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
