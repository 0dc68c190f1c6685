/* SPDX-License-Identifier: Apache-2.0 */
/* Loads TensorProto and TypeProto. Payload in the model file or beside it stays mapped; only lists
 * of numbers are converted. */
#ifndef KILN_GRAPH_ONNX_TENSOR_H
#define KILN_GRAPH_ONNX_TENSOR_H

#include "graph/module.h"
#include "graph/onnx/model.h"
#include "graph/tensor.h"

/** The places of payload: the model's bytes, and files beside the model. */
typedef struct {
    GBytes *bytes;     /* borrowed */
    const char *path;  /* of the file that `bytes` maps; NULL: none */
    char *directory;   /* of the model, resolved; NULL until an external tensor asks for it */
    GPtrArray *names;  /* external files mapped so far, */
    GPtrArray *mapped; /* and their GBytes */
    bool alone;        /* true: a model may not name files */
} KilnOnnxFiles;

void kiln_onnx_files_init(KilnOnnxFiles *files, GBytes *bytes, const char *path);
void kiln_onnx_files_clear(KilnOnnxFiles *files);

/** The bytes [@offset, @offset + @length) of the file @location beside the model; @length -1: to
 * its end. KILN_ERROR_FORMAT for absolute paths, `..` and links that lead out of the model's
 * directory. @out_path: the file's path, owned by @files. */
GBytes *kiln_onnx_files_slice(KilnOnnxFiles *files, const char *location, uint64_t offset,
                              int64_t length, const char **out_path, GError **error);

/** Loads a tensor that shares mapped bytes. KILN_ERROR_FORMAT if it contradicts itself,
 * KILN_ERROR_UNSUPPORTED for element types and ranks that Kiln lacks. */
KilnTensor *kiln_onnx_tensor_load(const KilnOnnxTensor *tensor, KilnOnnxFiles *files,
                                  GError **error);
/** A tensor of @n strings. */
KilnTensor *kiln_onnx_texts_load(const KilnType *type, const ProtobufCBinaryData *data, size_t n,
                                 GError **error);
/** Loads a sparse tensor as a dense one. Its indices count elements, or have a coordinate for each
 * dim. KILN_ERROR_FORMAT unless they lie inside and ascend. */
KilnTensor *kiln_onnx_sparse_load(const KilnOnnxSparse *sparse, KilnOnnxFiles *files,
                                  GError **error);

typedef enum {
    KILN_ONNX_TYPE_NONE,   /* left out */
    KILN_ONNX_TYPE_TENSOR, /* KilnType can hold it */
    KILN_ONNX_TYPE_OTHER,  /* an element type or rank out of range, or a kind that Kiln lacks */
} KilnOnnxTypeKind;

/** Loads a type of @module. @dim_names maps names of dims to names that the text form can spell,
 * and grows. Its keys and values live in the module's arena. */
KilnOnnxTypeKind kiln_onnx_type_load(const Onnx__TypeProto *proto, GHashTable *dim_names,
                                     KilnModule *module, KilnType *out);

/** What ONNX calls element type @number: "int4". The number itself, if it has no name. */
char *kiln_onnx_dtype_text(int64_t number);
/** Says why kiln_onnx_type_load() found KILN_ONNX_TYPE_OTHER in @proto. */
char *kiln_onnx_type_trouble(const Onnx__TypeProto *proto);

/** Names the dims of @input's type that the model leaves open without a name: `x_0`. Call it when
 * all names that the model states are in @dim_names. */
void kiln_onnx_name_dims(const char *input, GHashTable *dim_names, KilnModule *module,
                         KilnType *type);

#endif
