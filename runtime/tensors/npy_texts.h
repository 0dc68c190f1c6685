/* SPDX-License-Identifier: Apache-2.0 */
/* Strings of NumPy: elements of one width, with zeros behind each string. */
#ifndef KILN_RUNTIME_TENSORS_NPY_TEXTS_H
#define KILN_RUNTIME_TENSORS_NPY_TEXTS_H

#include "graph/tensor.h"

/** Characters of four bytes ('<U'), or bytes of UTF-8 ('|S'). */
typedef struct {
    bool wide;
    size_t width; /* characters of an element */
} KilnNpyTexts;

/** True where @descr, up to its quote, is such a type. */
bool kiln_npy_texts_parse(const char *descr, KilnNpyTexts *out);
/** The strings of @payload. @type has their shape. */
KilnTensor *kiln_npy_texts_load(const KilnType *type, KilnNpyTexts texts, GBytes *payload,
                                GError **error);
/** The type that holds all of @n strings. KILN_ERROR_UNSUPPORTED where one ends with a zero, which
 * NumPy takes for none of it. */
gboolean kiln_npy_texts_of(const KilnText *const *elements, int64_t n, KilnNpyTexts *out,
                           GError **error);
/** Appends the elements as @texts has them. */
void kiln_npy_texts_save(const KilnText *const *elements, int64_t n, KilnNpyTexts texts,
                         GByteArray *out);

#endif
