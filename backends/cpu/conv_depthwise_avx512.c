/* SPDX-License-Identifier: Apache-2.0 */
/* The depthwise plane kernel for AVX-512. */
#include "backends/cpu/simd_avx512.h"

#include "backends/cpu/conv_depthwise_plane.h"

void
kiln_depthwise_avx512(const KilnDepthwisePlane *plane)
{
    depthwise_plane(plane);
}
