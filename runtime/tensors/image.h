/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures as tensors. */
#ifndef KILN_RUNTIME_TENSORS_IMAGE_H
#define KILN_RUNTIME_TENSORS_IMAGE_H

#include "graph/tensor.h"

/** How a picture becomes numbers: (value / 255 * scale - mean[c]) / std[c] for channel c. */
typedef struct {
    double scale;
    double mean[4], std[4];
    unsigned n_mean, n_std; /* how many are given: 0, 1 for all channels, or one each */
} KilnImageOptions;
#define KILN_IMAGE_OPTIONS_INIT                                                                    \
    {                                                                                              \
        .scale = 1, .std = { 1, 1, 1, 1 }                                                          \
    }

/** A PNG, PGM (P2, P5) or PPM (P3, P6) picture as f32 [1,C,H,W]: see kiln_tensor_file_load(). */
KilnTensor *kiln_image_load(const char *path, const KilnType *type, const KilnImageOptions *options,
                            GError **error);

#endif
