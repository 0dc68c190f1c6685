/* SPDX-License-Identifier: Apache-2.0 */
/* The largest bytes of windows, per instruction set. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_INTEGER_BYTE_WINDOWS_H
#define KILN_BACKENDS_CPU_INTEGER_BYTE_WINDOWS_H

#include <stdint.h>

/** Windows side by side, all of which lie inside the image. */
typedef struct {
    uint8_t *out;
    const uint8_t *x; /* the first byte of the first one */
    int64_t n, stride;
    int64_t spare;          /* bytes behind the results that may be written too */
    int64_t rows, pitch;    /* of a window; bytes from one to the next */
    int64_t taps, dilation; /* of a row */
    uint8_t flip;           /* bits that are flipped for comparing: 0x80 of i8 */
} KilnCpuByteWindows;

/** Reads no byte that is in no window. There is at least one row, and one tap. */
typedef void (*KilnCpuLargestBytes)(const KilnCpuByteWindows *w);

/** The fastest of this machine, within what KILN_CPU_ISA allows. */
KilnCpuLargestBytes kiln_cpu_largest_bytes(void);

void kiln_cpu_largest_bytes_portable(const KilnCpuByteWindows *w);
#if defined(__x86_64__)
void kiln_cpu_largest_bytes_avx2(const KilnCpuByteWindows *w);
void kiln_cpu_largest_bytes_avx512(const KilnCpuByteWindows *w);
#endif

#endif
