/* SPDX-License-Identifier: Apache-2.0 */
/* The windows of max_pool and average_pool, in one to three spatial dims: those that are missing
 * stand in front, with extent 1. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_REDUCE_POOL_WINDOWS_H
#define KILN_BACKENDS_CPU_REDUCE_POOL_WINDOWS_H

#include "backends/cpu/kernel.h"

typedef struct {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3], pad_end[3];
    int64_t planes, channels;
    int64_t in_image, out_image; /* elements from one image to the next */
    bool average, count_padding;
} KilnCpuPool;

/** Of an instruction whose rank is 3 to 5. */
KilnCpuPool kiln_cpu_pool_of(const KilnInstr *instr);

#endif
