/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution or a transposed convolution: its extents, and the addresses of one run. Every
 * algorithm of the folder takes these. */
#ifndef KILN_BACKENDS_CPU_CONV_CONV_PROBLEM_H
#define KILN_BACKENDS_CPU_CONV_CONV_PROBLEM_H

#include "backends/cpu/isa.h"
#include "backends/cpu/stack/tail.h"

#include <stdint.h>

/** How packed weights lie. */
typedef enum {
    KILN_CONV_BEST,     /* as is best for the extents: one of the others */
    KILN_CONV_STRAIGHT, /* positions are vectorised */
    KILN_CONV_TURNED,   /* channels are */
    KILN_CONV_TAPS,     /* channels are, tap by tap (conv_taps.h) */
} KilnConvForm;

/**
 * There are three spatial dims. Missing dims stand in front with extent 1 (out, kernel, stride and
 * dilation 1, pad 0). The padding behind follows from out. Channels count all groups.
 * Weights: [oc, ic / groups, kernel]; of a transposed convolution [ic, oc / groups, kernel].
 */
typedef struct {
    int64_t batch, ic, oc, groups;
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3];
    int64_t pad[3]; /* in front; may be negative (a crop) */
    KilnCpuTail tail;
    bool weights_packed; /* by kiln_cpu_conv_pack or kiln_cpu_conv_transpose_pack */
    bool pads;           /* may read padding, for some extents of the image */
    KilnConvForm form;   /* of packed weights; a transposed convolution has no taps */
    KilnCpuIsa isa;
} KilnCpuConv;

typedef struct {
    const float *in;
    const void *weights; /* packed, or floats at any byte address */
    float *out;
    const float *bias;     /* [oc] or NULL */
    const float *residual; /* laid out as out, may be out; NULL: the tail has none */
    float *scratch;        /* …_scratch_size bytes, 64-byte aligned */
    int threads;           /* does not change a bit of the result */
    /* Floats from one image to the next; 0: images follow each other. */
    int64_t in_image, out_image, residual_image;
} KilnCpuConvArgs;

static inline int64_t
kiln_conv_in_image(const KilnCpuConv *c, const KilnCpuConvArgs *args)
{
    return args->in_image ? args->in_image : c->ic * c->in[0] * c->in[1] * c->in[2];
}

static inline int64_t
kiln_conv_out_image(const KilnCpuConv *c, const KilnCpuConvArgs *args)
{
    return args->out_image ? args->out_image : c->oc * c->out[0] * c->out[1] * c->out[2];
}

static inline int64_t
kiln_conv_residual_image(const KilnCpuConv *c, const KilnCpuConvArgs *args)
{
    return args->residual_image ? args->residual_image : c->oc * c->out[0] * c->out[1] * c->out[2];
}

#endif
