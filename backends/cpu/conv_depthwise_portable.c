/* SPDX-License-Identifier: Apache-2.0 */
/* The depthwise plane kernel for any processor. */
#include "backends/cpu/simd_portable.h"

#include "backends/cpu/conv_depthwise_plane.h"

void
kiln_depthwise_portable(const KilnDepthwisePlane *plane)
{
    depthwise_plane(plane);
}
