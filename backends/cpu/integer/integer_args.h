/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of convolutions and matrix products of bytes, beside their shapes. Private to the
 * folder. */
#ifndef KILN_BACKENDS_CPU_INTEGER_INTEGER_ARGS_H
#define KILN_BACKENDS_CPU_INTEGER_INTEGER_ARGS_H

#include "backends/cpu/integer/integer_store.h"

/* Zero points and scales. */
typedef struct {
    int32_t left_zero;
    const int32_t *zeros; /* of the right side, as stored: one, or one per channel */
    bool one_zero;
    KilnIntegerOut store;
} KilnIntegerParams;

typedef struct {
    const uint8_t *left, *right;
    const void *packed;  /* the packed right side; NULL: @right is packed in scratch */
    const int32_t *bias; /* per channel of the right side; may be NULL */
    KilnIntegerParams params;
    void *out, *scratch;
    int threads;
} KilnIntegerArgs;

#endif
