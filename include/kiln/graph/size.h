/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes at one binding of the names, with the expression that they have for all bindings.
 *
 * The IR of an open program stands at a binding. Each number is right for this binding, and has an
 * expression beside it for all others. Arithmetic on sizes keeps both. A size is lost if its
 * expression is not known, or if it leaves 64 bits. A lost size is right at this binding only, and
 * equals no other size. */
#ifndef KILN_GRAPH_SIZE_H
#define KILN_GRAPH_SIZE_H

#include "graph/dim.h"
#include "graph/type.h"

G_BEGIN_DECLS

typedef struct {
    int64_t n;          /* at the binding */
    const KilnDim *dim; /* NULL: n for all bindings, unless it is lost */
    bool lost;
} KilnSize;

KilnSize kiln_size_make(int64_t n);
/** @n with its expression; @dim NULL: n for all bindings. */
KilnSize kiln_size_open(int64_t n, const KilnDim *dim);
KilnSize kiln_size_add(KilnSize a, KilnSize b);
KilnSize kiln_size_sub(KilnSize a, KilnSize b);
KilnSize kiln_size_mul(KilnSize a, KilnSize b);
/** a / b, lost where @b does not certainly divide @a. @b must not be 0. */
KilnSize kiln_size_divide(KilnSize a, KilnSize b);
/** True where both are equal for all bindings. */
bool kiln_size_equal(KilnSize a, KilnSize b);
/** True where a <= b for all bindings. */
bool kiln_size_at_most(KilnSize a, KilnSize b);
/** True where @size is a multiple of @by >= 1 for all bindings. */
bool kiln_size_is_multiple(KilnSize size, int64_t by);
static inline bool
kiln_size_is(KilnSize size, int64_t n)
{
    return size.n == n && !size.dim && !size.lost;
}

/** Dim @d of @type, which has numbers. */
KilnSize kiln_type_size(const KilnType *type, int d);
/** The product of dims @first to @end - 1. */
KilnSize kiln_type_product(const KilnType *type, int first, int end);
/** All elements of @type. */
KilnSize kiln_type_size_elements(const KilnType *type);
/** Payload bytes of @type, with the padding of a blocked layout. */
KilnSize kiln_type_size_bytes(const KilnType *type);
/** True where both have equally many bytes, for all bindings. */
bool kiln_type_same_bytes(const KilnType *a, const KilnType *b);

G_END_DECLS

#endif
