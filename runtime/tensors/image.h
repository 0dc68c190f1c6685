/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures as tensors. */
#ifndef KILN_RUNTIME_TENSORS_IMAGE_H
#define KILN_RUNTIME_TENSORS_IMAGE_H

#include "runtime/tensors/tensor_file.h"

/** A PNG, PGM (P2, P5) or PPM (P3, P6) picture as f32 [1,C,H,W]: see kiln_tensor_file_load(). */
KilnTensor *kiln_image_load(const char *path, const KilnType *type, const KilnImageOptions *options,
                            GError **error);

#endif
