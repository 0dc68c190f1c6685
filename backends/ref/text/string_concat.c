/* SPDX-License-Identifier: Apache-2.0 */
/* string_concat: each string of operand 1 with that of operand 2 behind it. Neighbours of the same
 * two strings share the result: constants of equal strings have one. equal, of strings: equal
 * bytes. */
#include "backends/ref/kernel.h"

/* The string of operand @k that belongs to @index of the result. */
static const KilnText *
load(const KilnKernelArgs *args, uint32_t k, const int64_t *index)
{
    const int64_t i = ref_broadcast_offset(ref_type(args, k), index, ref_type(args, 0)->rank);
    return ((const KilnText *const *)args->data[k])[i];
}

const char *
kiln_ref_string_concat(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0);
    const KilnText **result = args->data[0];
    const int64_t n = ref_elements(out);
    int64_t index[KILN_MAX_RANK] = { 0 };
    const KilnText *left = NULL, *right = NULL;
    for (int64_t i = 0; i < n; i++, ref_next(index, out->dims, out->rank)) {
        const bool again = i && left == load(args, 1, index) && right == load(args, 2, index);
        left = load(args, 1, index);
        right = load(args, 2, index);
        const KilnText a = kiln_text_of(left), b = kiln_text_of(right);
        char *bytes;
        if (again) {
            result[i] = result[i - 1];
            continue;
        }
        if (!a.length || !b.length) {
            result[i] = a.length ? left : right;
            continue;
        }
        if (!kiln_text_new(args->texts, a.length + b.length, &result[i], &bytes))
            return "no memory for strings";
        memcpy(bytes, a.text, a.length);
        memcpy(bytes + a.length, b.text, b.length);
    }
    return NULL;
}

const char *
kiln_ref_equal_strings(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0);
    uint8_t *result = args->data[0];
    const int64_t n = ref_elements(out);
    int64_t index[KILN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < n; i++, ref_next(index, out->dims, out->rank))
        result[i] = kiln_text_equal(load(args, 1, index), load(args, 2, index));
    return NULL;
}
