/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of converters. A converter brings one ONNX node to the canonical form of graph/ops.
 *
 * A row of opsets.def names the canonical op and, if the node's form differs from it, a converter.
 * The converter takes the attributes that the canonical op does not have, changes the operands, or
 * builds several nodes. The importer does the rest: attributes of the same name, operands, the node
 * itself. An attribute that nobody takes is an error. */
#ifndef KILN_GRAPH_ONNX_CONVERT_H
#define KILN_GRAPH_ONNX_CONVERT_H

#include "graph/graph.h"
#include "graph/onnx/converters.h"
#include "graph/onnx/model.h"
#include "graph/onnx/scope.h"

struct KilnOnnxCall {
    KilnOnnxImport *import;
    KilnOnnxScope *scope;
    KilnFunction *function; /* nodes are made at its end */
    const KilnOnnxNode *node;
    const char *label;    /* of the node, for messages */
    const char *base;     /* begins the names that converters add */
    int opset;            /* of the model */
    KilnOp op;            /* converters may choose another before attributes are read */
    KilnValue **operands; /* NULL: absent; room for KILN_ONNX_SPARE more than the node has */
    uint32_t n_operands;
    uint32_t n_results; /* up to the last that has a name */
    void *attrs;        /* of `op`: defaults, and the node's once they are read */
    bool attrs_read;
    bool *taken;           /* one per attribute of the node */
    const KilnType *types; /* of the results, for ops that cannot infer them; else NULL */
    KilnValue **results;   /* set by converters that build the nodes themselves; else NULL */
    GPtrArray *regions;    /* KilnFunction* made on the way */
};

enum {
    KILN_ONNX_SPARE = 4
};

/* --- errors: all messages begin with the node --- */

gboolean kiln_onnx_throw(const KilnOnnxCall *call, KilnError code, GError **error,
                         const char *format, ...) G_GNUC_PRINTF(4, 5);
/** The node becomes `unknown`, with this reason. */
#define kiln_onnx_unsupported(call, error, ...)                                                    \
    kiln_onnx_throw((call), KILN_ERROR_UNSUPPORTED, (error), __VA_ARGS__)

/* --- attributes --- */

/** The attribute, marked as taken; NULL if the node lacks it. */
const KilnOnnxAttr *kiln_onnx_take(KilnOnnxCall *call, const char *name);
/** These do not change @out if the node lacks the attribute. */
gboolean kiln_onnx_take_int(KilnOnnxCall *call, const char *name, int64_t *out, GError **error);
/** An int that is 0 or 1; *@out must be one of these. */
gboolean kiln_onnx_take_flag(KilnOnnxCall *call, const char *name, int64_t *out, GError **error);
gboolean kiln_onnx_take_float(KilnOnnxCall *call, const char *name, float *out, GError **error);
gboolean kiln_onnx_take_text(KilnOnnxCall *call, const char *name, const char **out,
                             GError **error);
gboolean kiln_onnx_take_texts(KilnOnnxCall *call, const char *name, KilnStrings *out,
                              GError **error);
gboolean kiln_onnx_take_ints(KilnOnnxCall *call, const char *name, KilnInts *out, bool *out_there,
                             GError **error);
gboolean kiln_onnx_take_floats(KilnOnnxCall *call, const char *name, KilnFloats *out,
                               GError **error);
gboolean kiln_onnx_take_dtype(KilnOnnxCall *call, const char *name, KilnDType *out, GError **error);
/** True for an attribute of graph/ops that ONNX's operator lacks: a model file must not have it. */
bool kiln_onnx_attr_is_own(KilnOp op, const char *name);
/** Reads the attributes that are left into call->attrs, by name, if the canonical op has them. */
gboolean kiln_onnx_read_attrs(KilnOnnxCall *call, GError **error);
/** Fails if the node has an attribute that nobody took. */
gboolean kiln_onnx_check_taken(const KilnOnnxCall *call, GError **error);
/** The typed attributes of the call. */
#define kiln_onnx_attrs(call, id) ((KilnAttrs_##id *)(call)->attrs)

/* --- operands and nodes --- */

static inline KilnValue *
kiln_onnx_operand(const KilnOnnxCall *call, uint32_t i)
{
    return i < call->n_operands ? call->operands[i] : NULL;
}
/** Operand @i; NULL and an error if it is absent. */
KilnValue *kiln_onnx_need(const KilnOnnxCall *call, uint32_t i, GError **error);
/** Sets operand @i. If there are fewer operands, absent ones fill the gap. */
void kiln_onnx_set_operand(KilnOnnxCall *call, uint32_t i, KilnValue *value);
/** True if the node names result @i and something reads it. */
bool kiln_onnx_result_read(const KilnOnnxCall *call, uint32_t i);

/** Constants named after the node: "<base>.<suffix>". */
KilnValue *kiln_onnx_ints(KilnOnnxCall *call, const char *suffix, const int64_t *values,
                          uint32_t n);
KilnValue *kiln_onnx_scalar(KilnOnnxCall *call, const char *suffix, KilnDType dtype, double value);
/** The same of @tensor, which it takes over. */
KilnValue *kiln_onnx_helper(KilnOnnxCall *call, const char *suffix, KilnTensor *tensor);
/** The tensor of an attribute as a constant of the module. */
KilnConstant *kiln_onnx_constant(KilnOnnxCall *call, const char *name, const KilnOnnxTensor *tensor,
                                 GError **error);
/** A helper node with one result. */
KilnValue *kiln_onnx_build(KilnOnnxCall *call, KilnOp op, const void *attrs,
                           KilnValue *const *operands, uint32_t n_operands, GError **error);
#define kiln_onnx_build1(call, op, attrs, a, error)                                                \
    kiln_onnx_build((call), (op), (attrs), (KilnValue *[]){ (a) }, 1, (error))
#define kiln_onnx_build2(call, op, attrs, a, b, error)                                             \
    kiln_onnx_build((call), (op), (attrs), (KilnValue *[]){ (a), (b) }, 2, (error))
/** Sets result @i, for a converter that builds the nodes itself. FALSE if @value is NULL: the
 * builder has set the error. */
gboolean kiln_onnx_set_result(KilnOnnxCall *call, uint32_t i, KilnValue *value);

/** Imports a subgraph. The @n @argument_types (dtype KILN_N_DTYPES: not known) complete the types
 * of its inputs. */
KilnFunction *kiln_onnx_import_region(KilnOnnxCall *call, const char *attr_name,
                                      const KilnType *argument_types, uint32_t n, GError **error);

/** Imports the nodes of @function in place of @call, which names it. Its outputs are the call's
 * results. */
gboolean kiln_onnx_inline_call(KilnOnnxCall *call, const KilnOnnxFunction *function,
                               GError **error);

/** Sets a result for each of @n values of a graph that is imported in place of @call. */
gboolean kiln_onnx_set_inlined(KilnOnnxCall *call, KilnValue *const *values, uint32_t n,
                               GError **error);

/** What the subgraph of an attribute makes of @x, as nodes of the call's own function. @x itself,
 * if the node lacks the attribute; NULL if it fails. */
KilnValue *kiln_onnx_apply_graph(KilnOnnxCall *call, const char *attr_name, KilnValue *x,
                                 GError **error);

/** Imports a subgraph without inputs as nodes of the call's own function, with its own scope of
 * names. Its outputs are the call's results. */
gboolean kiln_onnx_import_inline(KilnOnnxCall *call, const char *attr_name, GError **error);

#endif
