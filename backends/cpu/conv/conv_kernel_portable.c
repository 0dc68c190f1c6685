/* SPDX-License-Identifier: Apache-2.0 */
/* The direct convolution kernels for any processor. */
#include "backends/cpu/simd/simd_portable.h"

#include "backends/cpu/conv/conv_depthwise_plane.h"
#include "backends/cpu/conv/conv_kernel.h"

#define V_ZIP(low, high, a, b)                                                                     \
    do {                                                                                           \
        low = (V){ a[0], b[0], a[1], b[1] };                                                       \
        high = (V){ a[2], b[2], a[3], b[3] };                                                      \
    } while (0)
#include "backends/cpu/conv/conv_loops.h"

static void
halo_row(const KilnHaloRow *r)
{
    for (int64_t q = 0; q < r->length; q++)
        r->dst[q] = q >= r->lo && q < r->hi ? r->src[q * r->stride] : 0.0f;
}

const KilnConvKernels kiln_conv_kernels_portable = {
    .halo_row = halo_row, .add = add_rows, .weave = weave, .plane = depthwise_plane
};
