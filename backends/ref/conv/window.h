/* SPDX-License-Identifier: Apache-2.0 */
/* The windows that convolution and pooling slide over the spatial dims, from attributes and shapes.
 * A tensor without spatial dims gets one of extent 1, so that kernels need no case for it. */
#ifndef KILN_BACKENDS_REF_CONV_WINDOW_H
#define KILN_BACKENDS_REF_CONV_WINDOW_H

#include "graph/attr.h"

typedef struct {
    int rank; /* spatial dims, at least 1 */
    int64_t kernel[KILN_MAX_RANK];
    int64_t stride[KILN_MAX_RANK];
    int64_t dilation[KILN_MAX_RANK];
    int64_t pad[KILN_MAX_RANK];     /* before the first element */
    int64_t pad_end[KILN_MAX_RANK]; /* after the last element */
    int64_t small[KILN_MAX_RANK];   /* side with one element per window: a convolution's result */
    int64_t large[KILN_MAX_RANK];   /* side that the windows slide over */
} RefWindow;

/** The four lists among the attributes of windowed instructions. */
typedef struct {
    KilnInts dilations, kernel_shape, pads, strides;
} RefWindowAttrs;

/* For an instruction with weights: their shape has the kernel's size. */
#define REF_WINDOW_OF_WEIGHTS(attrs, weights)                                                      \
    ((RefWindowAttrs){                                                                             \
        (attrs)->dilations,                                                                        \
        { .n = (uint32_t)MAX((weights)->rank - 2, 0), .v = (int64_t *)(weights)->dims + 2 },       \
        (attrs)->pads,                                                                             \
        (attrs)->strides })
#define REF_WINDOW_ATTRS(attrs)                                                                    \
    ((RefWindowAttrs){ (attrs)->dilations, (attrs)->kernel_shape, (attrs)->pads, (attrs)->strides })

/** Returns the windows from @large to @small. Dims from the third on are spatial on both sides. */
static inline RefWindow
ref_window(RefWindowAttrs attrs, const KilnType *small, const KilnType *large)
{
    int rank = large->rank - 2;
    RefWindow window = { .rank = rank < 1 ? 1 : rank };
    for (int i = 0; i < window.rank; i++) {
        uint32_t at = (uint32_t)i;
        window.kernel[i] = kiln_ints_at(attrs.kernel_shape, at, 1);
        window.stride[i] = kiln_ints_at(attrs.strides, at, 1);
        window.dilation[i] = kiln_ints_at(attrs.dilations, at, 1);
        window.pad[i] = kiln_ints_at(attrs.pads, at, 0);
        window.pad_end[i] = kiln_ints_at(attrs.pads, at + (uint32_t)window.rank, 0);
        window.small[i] = i < rank ? small->dims[i + 2] : 1;
        window.large[i] = i < rank ? large->dims[i + 2] : 1;
    }
    return window;
}

/** Returns the index of element @k of window @at on the large side, in dim @d. It may lie in the
 * padding. */
static inline int64_t
ref_window_at(const RefWindow *window, int d, int64_t at, int64_t k)
{
    return at * window->stride[d] - window->pad[d] + k * window->dilation[d];
}

/** Finds the windows [*first, *last) whose element @k lies inside dim @d. */
static inline void
ref_window_range(const RefWindow *window, int d, int64_t k, int64_t *first, int64_t *last)
{
    int64_t origin = ref_window_at(window, d, 0, k), stride = window->stride[d];
    int64_t room = window->large[d] - origin;
    *first = origin >= 0 ? 0 : (-origin + stride - 1) / stride;
    *last = room <= 0 ? 0 : (room + stride - 1) / stride;
    if (*last > window->small[d])
        *last = window->small[d];
    if (*first > *last)
        *first = *last;
}

#endif
