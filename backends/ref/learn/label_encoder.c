/* SPDX-License-Identifier: Apache-2.0 */
/* label_encoder: the value of the last key that an element is equal to, where NaN is equal to NaN.
 * Operands: result; elements, keys, values, the value of elements without a key. */
#include "backends/ref/kernel.h"

#include <math.h>

enum {
    OUT,
    X,
    KEYS,
    VALUES,
    OTHERWISE
};

/* True if element @i of the operand is equal to key @k. */
static bool
has_key(const KilnKernelArgs *args, int64_t i, int64_t k)
{
    const KilnDType dtype = ref_type(args, X)->dtype;
    if (dtype == KILN_DTYPE_string)
        return kiln_text_equal(((const KilnText *const *)args->data[X])[i],
                               ((const KilnText *const *)args->data[KEYS])[k]);
    const RefValue a = ref_load(dtype, args->data[X], i), b = ref_load(dtype, args->data[KEYS], k);
    return kiln_dtype_is_float(dtype) ? a.f == b.f || (isnan(a.f) && isnan(b.f)) : a.s == b.s;
}

const char *
kiln_ref_label_encoder(const KilnKernelArgs *args)
{
    const KilnType *x = ref_type(args, X), *out = ref_type(args, OUT);
    const size_t size = kiln_dtype_size(out->dtype);
    const int64_t n = ref_elements(x);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = ref_type(args, KEYS)->dims[0] - 1;
        while (k >= 0 && !has_key(args, i, k))
            k--;
        ref_copy_element(args->data[OUT], i, args->data[k < 0 ? OTHERWISE : VALUES], k < 0 ? 0 : k,
                         size);
    }
    return NULL;
}
