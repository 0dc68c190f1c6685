/* SPDX-License-Identifier: Apache-2.0 */
/* The depthwise plane kernel for AVX2. */
#include "backends/cpu/simd_avx2.h"

#include "backends/cpu/conv_depthwise_plane.h"

void
kiln_depthwise_avx2(const KilnDepthwisePlane *plane)
{
    depthwise_plane(plane);
}
