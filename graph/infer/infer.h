/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions: they find result types, and integers known while compiling, from operands and
 * attributes.
 *
 * A shape function never looks at users or other nodes. It gives an unranked type or unknown dims,
 * and no error, where a rank or an integer that it needs is not known yet. Inference runs again
 * when the program is specialised. A shape function checks everything that is known. */
#ifndef KILN_GRAPH_INFER_INFER_H
#define KILN_GRAPH_INFER_INFER_H

#include "graph/graph.h"

typedef struct KilnInfer {
    const KilnNode *node;        /* do not read the stored types of its results */
    KilnArena *arena;            /* for names and quantization of the results, and known integers */
    KilnType *out;               /* one per result */
    const KilnKnown **known;     /* one per result, NULL at the start */
    const KilnExtents **extents; /* the same; NULL: nobody asks for them */
    KilnDimTable *dims;          /* of the node's module */
    const KilnType *given;       /* types stated by the builder; NULL where none are */
} KilnInfer;

/** Fills the result types and known integers of @in from operands and attributes. Fails with
 * KILN_ERROR_SHAPE or KILN_ERROR_TYPE; the caller puts the node in front of the message. */
typedef gboolean (*KilnInferFn)(KilnInfer *in, GError **error);

/** Begins the shape function that rows of graph/ops/ call `name`. There is no list of prototypes: a
 * change of it would rebuild every file that infers. */
#define KILN_INFER(name)                                                                           \
    gboolean kiln_infer_##name(KilnInfer *in, GError **error);                                     \
    gboolean kiln_infer_##name(KilnInfer *in, GError **error)

/* Other files tell operators apart by these functions. */
gboolean kiln_infer_none(KilnInfer *in, GError **error);
gboolean kiln_infer_given(KilnInfer *in, GError **error);
gboolean kiln_infer_same(KilnInfer *in, GError **error);
gboolean kiln_infer_reduce(KilnInfer *in, GError **error);
gboolean kiln_infer_plugin(KilnInfer *in, GError **error);

/** The shape function of @op. */
KilnInferFn kiln_infer_function(KilnOp op);
/** Runs the shape function of @in's op, then sees to the quantization of its results. */
gboolean kiln_infer_run(KilnInfer *in, GError **error);

/* --- helpers for shape functions --- */

/** The type of operand @i; NULL where it is absent. */
static inline const KilnType *
kiln_infer_type(const KilnInfer *in, uint32_t i)
{
    const KilnValue *value = kiln_node_operand(in->node, i);
    return value ? &value->type : NULL;
}
/** The known integers of operand @i; NULL where it is absent or not known. */
static inline const KilnKnown *
kiln_infer_known(const KilnInfer *in, uint32_t i)
{
    const KilnValue *value = kiln_node_operand(in->node, i);
    return value ? value->known : NULL;
}
/** Element @k of the integers in operand @i, which has more than @k; NULL where it is not known. */
const KilnDim *kiln_infer_element(const KilnInfer *in, uint32_t i, int64_t k);
/** Finds the elements of small integer results that are expressions, where no number is known. */
void kiln_infer_extents(KilnInfer *in);
/** A zeroed array of @n known integers for result @r. */
KilnKnown *kiln_infer_known_new(KilnInfer *in, uint32_t r, int64_t n);
/** `expected X, found Y` for operand @i's type. Always FALSE. */
gboolean kiln_infer_throw_type(const KilnInfer *in, uint32_t i, const char *expected,
                               GError **error);
/** Broadcasts the shapes of @a and @b as numpy does; element types do not matter. Two expressions
 * give one that selects the extent that is not 1. */
gboolean kiln_infer_broadcast_shapes(const KilnType *a, const KilnType *b, KilnType *out,
                                     GError **error);

/* --- geometry that inference and lowering share --- */

/** Strides, dilations, kernel and explicit pads of a convolution or pooling over @rank spatial
 * dims. */
typedef struct {
    int rank;
    int64_t kernel[KILN_MAX_RANK];
    int64_t strides[KILN_MAX_RANK];
    int64_t dilations[KILN_MAX_RANK];
    int64_t pads_begin[KILN_MAX_RANK]; /* KILN_DIM_UNKNOWN where SAME has no number, */
    int64_t pads_end[KILN_MAX_RANK];
    const KilnDim *open_begin[KILN_MAX_RANK]; /* and where it depends on an open dim, or NULL */
    const KilnDim *open_end[KILN_MAX_RANK];
    int64_t output_padding[KILN_MAX_RANK];
    int64_t out[KILN_MAX_RANK]; /* spatial dims of the result; KILN_DIM_UNKNOWN where not known */
    const KilnDim *open_out[KILN_MAX_RANK]; /* such a dim as an expression, or NULL */
} KilnWindow;

/** Resolves auto_pad, defaults and ceil_mode for conv, conv_transpose, conv_integer, qlinear_conv
 * and the pools. KILN_ERROR_SHAPE where an attribute does not fit. */
gboolean kiln_window_resolve(const KilnNode *node, KilnWindow *out, GError **error);

/** Finds the axes that a reduction reduces: normalised, ascending and unique. An absent or empty
 * axes operand means all axes, or none with noop_with_empty_axes. *@out_known is false where the
 * operand is not known yet. */
gboolean kiln_reduce_axes(const KilnNode *node, bool reduced[KILN_MAX_RANK], bool *out_known,
                          GError **error);

/** The part that a `slice` takes of each dim, clamped as ONNX says. */
typedef struct {
    int64_t start[KILN_MAX_RANK];
    int64_t step[KILN_MAX_RANK];
    int64_t extent[KILN_MAX_RANK];             /* KILN_DIM_UNKNOWN where it has no number */
    const KilnDim *open_start[KILN_MAX_RANK];  /* where the start is no number; NULL: not known */
    const KilnDim *open_extent[KILN_MAX_RANK]; /* the extent of an open axis; NULL: not known */
} KilnSliceBox;
gboolean kiln_slice_resolve(const KilnNode *node, KilnSliceBox *out, bool *out_known,
                            GError **error);

/** Sizes of the @parts of a `split`, one per result, along an axis of @size elements. -1 in @size
 * or @parts: not known. */
gboolean kiln_split_resolve(const KilnNode *node, int64_t size, int64_t *parts, GError **error);

/** Finds the axis of a `dft`. *@out_known is false where the operand or the rank is not known yet.
 */
gboolean kiln_dft_axis(const KilnNode *node, int *out, bool *out_known, GError **error);

/** Fails with KILN_ERROR_SHAPE and names @node where a `gather` reads a known index out of
 * range. */
gboolean kiln_gather_check(const KilnNode *node, GError **error);

/** Pads of a `pad`, begin and end per dim. Negative ones crop. */
gboolean kiln_pad_resolve(const KilnNode *node, int64_t begin[KILN_MAX_RANK],
                          int64_t end[KILN_MAX_RANK], bool *out_known, GError **error);

/** The permutation of a `transpose`: its attribute, or reversed dims. */
gboolean kiln_transpose_perm(const KilnNode *node, int perm[KILN_MAX_RANK], GError **error);

#endif
