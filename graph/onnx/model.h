/* SPDX-License-Identifier: Apache-2.0 */
/* The structure of an ONNX file. Code of ours walks the outer messages over the mapped bytes.
 * protobuf-c unpacks the leaves into one arena. Weights stay in the file, known by offset and
 * length. This header does not know the meaning of operators. */
#ifndef KILN_GRAPH_ONNX_MODEL_H
#define KILN_GRAPH_ONNX_MODEL_H

#include "graph/metadata.h"
#include "graph/onnx/wire.h"

#include <onnx.pb-c.h>

typedef struct KilnOnnxGraph KilnOnnxGraph;

typedef struct {
    const Onnx__TensorProto *proto; /* without the field of `payload` */
    KilnSpan payload;               /* raw_data, or one packed run of floats or doubles */
    int payload_field;              /* its field number; 0: none */
    size_t offset;                  /* of the message */
} KilnOnnxTensor;

typedef struct {
    const char *name; /* of the values; NULL in attributes */
    KilnOnnxTensor values;
    KilnOnnxTensor indices;
    const int64_t *dims;
    size_t n_dims;
} KilnOnnxSparse;

typedef struct {
    const Onnx__AttributeProto *proto; /* without tensors and graphs */
    int kind;                          /* AttributeProto.AttributeType, deduced where left out */
    KilnOnnxTensor *tensor;
    KilnOnnxSparse *sparse;
    KilnOnnxGraph *graph;
} KilnOnnxAttr;

typedef struct {
    const Onnx__NodeProto *proto; /* without attributes */
    KilnOnnxAttr *attrs;
    size_t n_attrs;
    const char *overload; /* of the function that is called; "" where left out */
    size_t offset;
} KilnOnnxNode;

struct KilnOnnxGraph {
    const char *name;     /* "" where left out */
    GArray *nodes;        /* KilnOnnxNode */
    GArray *initializers; /* KilnOnnxTensor */
    GArray *sparse;       /* KilnOnnxSparse */
    GPtrArray *inputs;    /* Onnx__ValueInfoProto* */
    GPtrArray *outputs;   /* the same */
    GPtrArray *values;    /* the same: value_info */
    size_t offset;
};

/** A function of the model's own. `graph` has its inputs, outputs and nodes; none has a type. */
typedef struct {
    const char *domain, *name, *overload; /* together they name it; "" where left out */
    KilnOnnxGraph *graph;
    GPtrArray *attrs;  /* char*: names of attributes without a default */
    GArray *defaults;  /* KilnOnnxAttr */
    GPtrArray *opsets; /* Onnx__OperatorSetIdProto* */
} KilnOnnxFunction;

typedef struct {
    KilnArena *arena;             /* owns the unpacked messages */
    GPtrArray *arrays, *pointers; /* own the lists of graphs */
    GBytes *bytes;
    const uint8_t *base;
    GPtrArray *opsets;     /* Onnx__OperatorSetIdProto* */
    KilnMetadata metadata; /* borrows the opsets and properties from the lists here */
    GArray *properties;    /* KilnProperty */
    size_t n_devices;      /* annotations of devices: of the model and of nodes */
    KilnOnnxGraph *graph;
    GPtrArray *functions; /* KilnOnnxFunction* */
    GHashTable *by_id;    /* the same, by what names them */
} KilnOnnxModel;

/** Parses a ModelProto and keeps a reference to @bytes. KILN_ERROR_FORMAT names the byte offset of
 * a defect. */
KilnOnnxModel *kiln_onnx_model_new(GBytes *bytes, GError **error);
void kiln_onnx_model_free(KilnOnnxModel *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnOnnxModel, kiln_onnx_model_free)

/** Parses one TensorProto at @span of @base. */
gboolean kiln_onnx_tensor_scan(const uint8_t *base, KilnSpan span, KilnArena *arena,
                               KilnOnnxTensor *out, GError **error);

/** The version of operator set @domain in @opsets ("" and "ai.onnx" are the default one); 0: none.
 */
int64_t kiln_onnx_opset(const GPtrArray *opsets, const char *domain);
int64_t kiln_onnx_model_opset(const KilnOnnxModel *model, const char *domain);

/** The function that @node calls; NULL: none, @node is an operator. */
const KilnOnnxFunction *kiln_onnx_model_function(const KilnOnnxModel *model,
                                                 const KilnOnnxNode *node);

#endif
