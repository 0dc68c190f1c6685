/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in files: ONNX TensorProto (.pb), NumPy (.npy), bytes (.raw, .bin), pictures (.png, .pgm,
 * .ppm), and random ones. Sequences, optionals and maps are tensors of one element here, in files
 * of ONNX's own messages (.pb). */
#ifndef KILN_RUNTIME_TENSORS_TENSOR_FILE_H
#define KILN_RUNTIME_TENSORS_TENSOR_FILE_H

#include "graph/tensor.h"
#include "runtime/model.h"
#include "runtime/tensors/image.h"

#include <stdbool.h>

/** Loads a tensor by the file's ending. A picture becomes f32 [1,C,H,W] with the channels of @type
 * (grey or RGB), or its own without @type. @type may be NULL. Only pictures, bytes, and values
 * that are no tensors use it; bytes are its row-major payload in the order of this machine. */
KilnTensor *kiln_tensor_file_load(const char *path, const KilnType *type,
                                  const KilnImageOptions *image, GError **error);
/** True if @path has one of the endings that kiln_tensor_file_load() reads. */
bool kiln_tensor_file_has_ending(const char *path);
/** Appends the contents of a file called @path to @out: a TensorProto called @name with raw_data
 * (or a SequenceProto, OptionalProto or MapProto), or .npy, by the file's ending.
 * KILN_ERROR_UNSUPPORTED if the form lacks the type, KILN_ERROR_LIMIT over 2 GiB. */
gboolean kiln_tensor_file_encode(const char *path, const char *name, const KilnTensor *tensor,
                                 GByteArray *out, GError **error);

/** A random tensor of @type (static, as input @i of @model is or was bound). It depends on @seed
 * and the input's name. Floats are normal with standard deviation 1. Integers are uniform in the
 * range that the model's gathers allow. A model and its texts give the same tensor. @types: of all
 * inputs, for gathers from open dims; NULL where these are not known. */
KilnTensor *kiln_model_random_input(const KilnModel *model, unsigned i, const KilnType *type,
                                    const KilnType *types, uint64_t seed, GError **error);

#endif
