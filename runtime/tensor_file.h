/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in files: ONNX TensorProto (.pb), NumPy (.npy), pictures (.png, .pgm, .ppm), and random
 * ones. */
#ifndef KILN_RUNTIME_TENSOR_FILE_H
#define KILN_RUNTIME_TENSOR_FILE_H

#include "runtime/internal.h"

/** How a picture becomes numbers: (value / 255 * scale - mean[c]) / std[c] for channel c. */
typedef struct {
    double scale;
    double mean[4], std[4];
} KilnImageOptions;
#define KILN_IMAGE_OPTIONS_INIT                                                                    \
    {                                                                                              \
        .scale = 1, .std = { 1, 1, 1, 1 }                                                          \
    }

/** By the file's ending. A picture becomes an f32 [1,C,H,W] with the channels that @type asks for
 * (grey or RGB; without
 *  @type its own). @type may be NULL, and is only used for pictures. */
KilnTensor *kiln_tensor_file_load(const char *path, const KilnType *type,
                                  const KilnImageOptions *image, GError **error);
/** Appends to @out what a file called @path is to hold: a TensorProto called @name with raw_data,
 * or .npy, by the file's ending. KILN_ERROR_UNSUPPORTED where the form lacks the type,
 * KILN_ERROR_LIMIT over 2 GiB. */
gboolean kiln_tensor_file_encode(const char *path, const char *name, const KilnTensor *tensor,
                                 GByteArray *out, GError **error);

/** A static tensor of @type from a seed and a name: floats are normal with standard deviation 1,
 * integers uniform in [low, high), booleans fair. */
KilnTensor *kiln_tensor_random(const KilnType *type, uint64_t seed, const char *name, int64_t low,
                               int64_t high);
/** The range of integers that argument @i of @function can take without any gather on it leaving
 * its table: the smallest extent that it indexes, looking through what only moves it; [0, 2) at
 * least, [0, 8) where nothing limits it. */
void kiln_argument_range(const KilnFunction *function, guint i, int64_t *out_low,
                         int64_t *out_high);

/** The same of input @i of an IR function. */
void kiln_ir_input_range(const KilnIRFunction *function, guint i, int64_t *out_low,
                         int64_t *out_high);

/** Element by element: |got - want| <= atol + rtol * |want|, NaN equals NaN, infinities must match.
 * Shape and type must be equal. The largest differences go to @out_abs and @out_rel (may be NULL).
 * KILN_ERROR_MISMATCH says what and where. */
gboolean kiln_tensor_compare(const KilnTensor *got, const KilnTensor *want, double rtol,
                             double atol, double *out_abs, double *out_rel, GError **error);

#endif
