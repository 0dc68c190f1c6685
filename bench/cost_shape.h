/* SPDX-License-Identifier: Apache-2.0 */
/* What kiln-fit-costs measures: operators of one shape, in each way that they can be computed. */
#ifndef KILN_BENCH_COST_SHAPE_H
#define KILN_BENCH_COST_SHAPE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    SHAPE_CONV,
    SHAPE_DEPTHWISE,
    SHAPE_CONV_TRANSPOSE, /* as many taps as the stride, no padding */
    SHAPE_MAX_POOL,
    SHAPE_GLOBAL_AVERAGE_POOL,
    SHAPE_MATMUL,  /* [extent,in] · [in,out] */
    SHAPE_REORDER, /* of a picture, row-major, into another layout */
    SHAPE_SOFTMAX, /* [extent,in], along in */
    SHAPE_LAYER_NORMALIZATION,
    SHAPE_REDUCTION,
    SHAPE_LSTM, /* [extent,1,in], with out states */
    SHAPE_ADD,  /* of two pictures */
    SHAPE_SIGMOID,
    SHAPE_SWISH,
    SHAPE_TAIL_ADD, /* what a convolution of one tap takes longer for it on its way out */
    SHAPE_TAIL_SWISH,
    SHAPE_CONCAT,      /* of the two halves of the channels */
    SHAPE_BIAS,        /* one number per channel added to a picture in place */
    SHAPE_FAR_WEIGHTS, /* what a convolution takes longer whose weights come from memory */
    N_SHAPE_KINDS,
} ShapeKind;
const char *cost_shape_kind(ShapeKind kind);

/** Ways to compute one: columns of the file. */
typedef enum {
    WAY_DIRECT,   /* own kernels */
    WAY_WINOGRAD, /* own, of convolutions that have it */
    WAY_LAST,     /* the vendor's, channels last; of products the only one */
    WAY_BLOCKED,  /* the vendor's, channels in blocks */
    N_WAYS,
} ShapeWay;
const char *cost_shape_way(ShapeWay way);

/** Of square pictures in a batch of one, padded so that windows lie around their positions. */
typedef struct {
    ShapeKind kind;
    int in, out, kernel, stride, extent;
    int block;         /* channels of a block of the vendor's, as it was measured */
    double us[N_WAYS]; /* microseconds on one thread; 0: not computed that way */
} Shape;

/** What is measured is by how much one thing takes longer than another. */
bool cost_shape_is_difference(ShapeKind kind);
/** True where ways are alternatives, of which models choose one. */
bool cost_shape_has_choice(ShapeKind kind);
/** True where the vendor has it in more than one layout. */
bool cost_shape_has_layouts(ShapeKind kind);
/** Extent of the result. */
int cost_shape_result(const Shape *shape);
/** Positions of padding before a dim; behind it there are as many, or what windows need. */
int cost_shape_pad(const Shape *shape);

/** Runs something; false where that fails. */
typedef bool (*CostRun)(void *data);
/** The least microseconds of a run of @data in about @min_time seconds; of a difference the median
 * of several, beside the least of @base, with which it takes turns. 0 where a run fails or nothing
 * is left. */
double cost_shape_time(const Shape *shape, CostRun run, void *data, void *base, double min_time);

/** Names of kinds, with commas between them, as bits. */
gboolean cost_shapes_kinds(const char *text, uint32_t *out, GError **error);

/** A CSV file, one shape a line. */
gboolean cost_shapes_write(const char *path, const GArray *shapes, GError **error);
gboolean cost_shapes_read(const char *path, GArray *shapes, GError **error);

#endif
