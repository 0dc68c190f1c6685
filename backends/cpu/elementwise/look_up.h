/* SPDX-License-Identifier: Apache-2.0 */
/* Looks bytes up in a table of 256 bytes, per instruction set. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_ELEMENTWISE_LOOK_UP_H
#define KILN_BACKENDS_CPU_ELEMENTWISE_LOOK_UP_H

#include <stdint.h>

/** to[i] = table[x[i]] for @n bytes. @to may be @x. */
typedef void (*KilnCpuLookUp)(uint8_t *to, const uint8_t *x, int64_t n, const uint8_t *table);

/** Returns the fastest of this machine that KILN_CPU_ISA allows. */
KilnCpuLookUp kiln_cpu_look_up_bytes(void);

void kiln_cpu_look_up_portable(uint8_t *to, const uint8_t *x, int64_t n, const uint8_t *table);
#if defined(__x86_64__)
void kiln_cpu_look_up_avx2(uint8_t *to, const uint8_t *x, int64_t n, const uint8_t *table);
void kiln_cpu_look_up_avx512(uint8_t *to, const uint8_t *x, int64_t n, const uint8_t *table);
/* For processors with VBMI. */
void kiln_cpu_look_up_avx512vbmi(uint8_t *to, const uint8_t *x, int64_t n, const uint8_t *table);
#endif

#endif
