/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the largest byte of each window of an image, per instruction set. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_INTEGER_BYTE_WINDOWS_H
#define KILN_BACKENDS_CPU_INTEGER_BYTE_WINDOWS_H

#include <stdint.h>

/** Windows side by side. All of them lie inside the image. */
typedef struct {
    uint8_t *out;
    const uint8_t *x; /* the first byte of the first window */
    int64_t n, stride;
    int64_t spare;          /* bytes behind the results that may be written too */
    int64_t rows, pitch;    /* rows of a window; bytes from one to the next */
    int64_t taps, dilation; /* of a row */
    uint8_t flip;           /* bits that are flipped for comparing: 0x80 for i8 */
} KilnCpuByteWindows;

/** Reads only bytes that are in a window. There is at least one row and one tap. */
typedef void (*KilnCpuLargestBytes)(const KilnCpuByteWindows *w);

/** Returns the fastest of this machine that KILN_CPU_ISA allows. */
KilnCpuLargestBytes kiln_cpu_largest_bytes(void);

void kiln_cpu_largest_bytes_portable(const KilnCpuByteWindows *w);
#if defined(__x86_64__)
void kiln_cpu_largest_bytes_avx2(const KilnCpuByteWindows *w);
void kiln_cpu_largest_bytes_avx512(const KilnCpuByteWindows *w);
#endif

#endif
