/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in files: ONNX TensorProto (.pb), NumPy (.npy), bytes (.raw, .bin), pictures (.png, .pgm,
 * .ppm), and random ones. */
#ifndef KILN_RUNTIME_TENSORS_TENSOR_FILE_H
#define KILN_RUNTIME_TENSORS_TENSOR_FILE_H

#include "runtime/model.h"
#include "runtime/tensors/image.h"
#include "runtime/tensors/tensor_compare.h"

/** By the file's ending. A picture becomes an f32 [1,C,H,W] with the channels that @type asks for
 * (grey or RGB; without
 *  @type its own). @type may be NULL, and is only used for pictures and for bytes, which are its
 * row-major payload in the order of this machine. */
KilnTensor *kiln_tensor_file_load(const char *path, const KilnType *type,
                                  const KilnImageOptions *image, GError **error);
/** Appends to @out what a file called @path is to hold: a TensorProto called @name with raw_data,
 * or .npy, by the file's ending. KILN_ERROR_UNSUPPORTED where the form lacks the type,
 * KILN_ERROR_LIMIT over 2 GiB. */
gboolean kiln_tensor_file_encode(const char *path, const char *name, const KilnTensor *tensor,
                                 GByteArray *out, GError **error);

/** A tensor of @type (static, as input @i of @model is or was bound) from a seed and the input's
 * name: floats are normal with standard deviation 1, integers uniform in what the model's gathers
 * allow. The same for a model and its texts. */
KilnTensor *kiln_model_random_input(const KilnModel *model, unsigned i, const KilnType *type,
                                    uint64_t seed, GError **error);

#endif
