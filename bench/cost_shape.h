/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of one shape that kiln-fit-costs measures, in each way to compute them. */
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
    SHAPE_TAIL_ADD, /* the extra time of a convolution of one tap that also adds */
    SHAPE_TAIL_SWISH,
    SHAPE_CONCAT,      /* of the two halves of the channels */
    SHAPE_BIAS,        /* one number per channel added to a picture in place */
    SHAPE_FAR_WEIGHTS, /* the extra time of a convolution whose weights come from memory */
    N_SHAPE_KINDS,
} ShapeKind;
const char *cost_shape_kind(ShapeKind kind);

/** Ways to compute a shape: columns of the file. */
typedef enum {
    WAY_DIRECT,   /* own kernels */
    WAY_WINOGRAD, /* own, for convolutions that have it */
    WAY_LAST,     /* the vendor's, channels last; its only way for products */
    WAY_BLOCKED,  /* the vendor's, channels in blocks */
    N_WAYS,
} ShapeWay;
const char *cost_shape_way(ShapeWay way);

/** Square pictures in a batch of one, padded so that windows lie around their positions. */
typedef struct {
    ShapeKind kind;
    int in, out, kernel, stride, extent;
    int block;         /* channels of the vendor's block when it was measured */
    double us[N_WAYS]; /* microseconds on one thread; 0: not computed that way */
} Shape;

/** True if the measured time is how much longer one run takes than another. */
bool cost_shape_is_difference(ShapeKind kind);
/** True if models choose one of the ways. */
bool cost_shape_has_choice(ShapeKind kind);
/** True if the vendor has it in more than one layout. */
bool cost_shape_has_layouts(ShapeKind kind);
/** Extent of the result. */
int cost_shape_result(const Shape *shape);
/** Padding before a dim. The padding behind it is the same, or as much as windows need. */
int cost_shape_pad(const Shape *shape);

/** Runs something; false if that fails. */
typedef bool (*CostRun)(void *data);
/** The least microseconds of a run of @data in about @min_time seconds. @base (or NULL) takes turns
 * with @data and its least time is subtracted. Then the result is the median of several
 * differences. 0 if a run fails or the difference is not positive. */
double cost_shape_time(const Shape *shape, CostRun run, void *data, void *base, double min_time);

/** Names of kinds, with commas between them, as bits. */
gboolean cost_shapes_kinds(const char *text, uint32_t *out, GError **error);

/** A CSV file, one shape a line. */
gboolean cost_shapes_write(const char *path, const GArray *shapes, GError **error);
gboolean cost_shapes_read(const char *path, GArray *shapes, GError **error);

#endif
