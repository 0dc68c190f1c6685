/* SPDX-License-Identifier: Apache-2.0 */
/* A region as oneDNN runs it: a list of primitives over slots of memory. The inside of this
 * backend.
 *
 *     region  = primitive …                     in the order of the lowered body
 *     slot    = an operand of the call | a part of the packed weights | a part of the workspace
 *
 * The builder walks the lowered body. It keeps, for each buffer, the slots that hold its value in
 * one layout or another; who wants a layout that is not there gets a reorder, which for a constant
 * runs once, when weights are packed. So reorders are left only where neighbours disagree. */
#ifndef KILN_BACKENDS_ONEDNN_REGION_H
#define KILN_BACKENDS_ONEDNN_REGION_H

#include "ir/vendor.h"

#include <oneapi/dnnl/dnnl.h>

typedef enum {
    SLOT_OPERAND,   /* index: of the call */
    SLOT_PACKED,    /* offset in the packed weights */
    SLOT_WORKSPACE, /* offset in the workspace */
    SLOT_ALIAS,     /* index: the slot with the same bytes, from offset on */
} SlotPlace;

typedef struct {
    dnnl_memory_desc_t md;
    SlotPlace place;
    uint32_t index;
    size_t offset;
    int64_t first, last; /* steps that touch it; first < 0: none */
} Slot;

typedef struct {
    dnnl_primitive_t primitive;
    uint32_t first_arg, n_args;
} Step;

typedef struct {
    int arg; /* DNNL_ARG_… */
    uint32_t slot;
} StepArg;

/** A constant on its way into the packed weights: by a reorder, or copied. A program that is loaded
 * has its weights packed already, so that code for the reorder is generated when it is needed. */
typedef struct {
    dnnl_primitive_desc_t reorder; /* NULL: the layouts are equal */
    dnnl_memory_desc_t from, scratch;
    uint32_t operand; /* of the call; UINT32_MAX: a literal */
    void *literal;    /* its bytes, owned */
    uint32_t slot;
} Pack;

typedef struct Context Context;

typedef struct {
    KilnCompiled compiled; /* first: what the rest of Kiln sees */
    GArray *slots;         /* Slot */
    GArray *steps;         /* Step */
    GArray *args;          /* StepArg */
    GArray *packs;         /* Pack */
    GString *description;
    bool *packed_operand; /* by operand of the call */
    char **packed_tags;   /* by operand: how it is packed, where that has a tag and is one way */
    uint32_t n_operands;
    size_t workspace_bytes, packed_bytes;
    bool small;                  /* not worth more than one thread */
    _Atomic(Context *) contexts; /* of the sessions that run it */
    atomic_int pack_status;      /* of the first reorder that failed; 0: none did */
} Region;

/** Layouts of activations: of a whole region, by the cost model. */
typedef enum {
    LAYOUT_PLAIN,         /* nchw */
    LAYOUT_CHANNELS_LAST, /* nhwc */
    LAYOUT_BLOCKED,       /* nChw16c */
    N_LAYOUTS
} Layout;

/** A part of a concat of whole blocks of channels, which is computed where it will lie. */
typedef struct {
    const KilnInstr *concat; /* NULL: of none */
    int64_t channel;         /* where it begins */
} Join;

typedef struct {
    Region *region;
    const KilnIRFunction *function;
    const bool *constant;
    Join *joins;             /* by buffer id: of parts of concats */
    GArray **values;         /* by buffer id: slots that hold its value; NULL: not computed yet */
    const KilnBuffer **laid; /* by buffer id: the constant in a layout that it is unpacked from */
    bool *done;              /* by instruction id: absorbed or computed */
    uint32_t n_out;          /* outputs come first among the operands of the call */
    Layout layout;
    int64_t step; /* that is being made */
    GError **error;
} Builder;

/* --- engine (engine.c) --- */

/** The one engine of the process; NULL where the library has none. */
dnnl_engine_t kiln_onednn_engine(void);
/** False where @status says so: KILN_ERROR_UNSUPPORTED names @what. */
bool kiln_onednn_check(dnnl_status_t status, const char *what, GError **error);
/** False for implementations that are slow, or whose bits depend on the number of threads. */
bool kiln_onednn_allowed(const char *implementation);
/** The first allowed implementation of an operation; NULL where there is none. @out_name: of it. */
dnnl_primitive_desc_t kiln_onednn_choose(const_dnnl_op_desc_t operation,
                                         const_dnnl_primitive_attr_t attr, const char **out_name);
/** The name of what @pd is computed by, of an operation that has no choice; destroys @pd and gives
 * NULL where that is not allowed: the region goes back inline. */
const char *kiln_onednn_implementation(dnnl_primitive_desc_t pd, const char *what, GError **error);

/* --- layouts at the edges (layout.c) --- */

/** The layout that the tag of @type names; plain where it names none of them. */
Layout kiln_onednn_layout_of_tag(const KilnType *type);
const char *kiln_onednn_layout_tag(uint32_t layout, int rank);
double kiln_onednn_layout_us(const KilnFunction *body, uint32_t layout);
/** @md, of dims as @from describes the plain bytes of @type by, as a tag; NULL where it has none.
 * The caller's. */
char *kiln_onednn_tag(const KilnType *type, const dnnl_memory_desc_t *from,
                      const dnnl_memory_desc_t *md);
bool kiln_onednn_lies_in(const KilnFunction *body, const KilnValue *value, uint32_t layout);

/* --- building (build.c) --- */

dnnl_memory_desc_t kiln_onednn_plain(const KilnType *type);
/** True for what the library computes with: f32 of a fixed shape, neither quantized nor blocked. */
bool kiln_onednn_is_float(const KilnType *type);
/** @type in @layout; plain where its rank has no other. */
dnnl_memory_desc_t kiln_onednn_md(const KilnType *type, Layout layout);
/** @type as its tag says. */
dnnl_memory_desc_t kiln_onednn_edge(const KilnType *type);
bool kiln_onednn_is_available(const Builder *builder, const KilnBuffer *buffer);
/** The slot that holds @buffer as it was computed. */
uint32_t kiln_onednn_slot(const Builder *builder, const KilnBuffer *buffer);
const dnnl_memory_desc_t *kiln_onednn_slot_md(const Builder *builder, uint32_t slot);
/** A slot that holds @buffer as @md; UINT32_MAX with the builder's error set. */
uint32_t kiln_onednn_slot_as(Builder *builder, const KilnBuffer *buffer,
                             const dnnl_memory_desc_t *md);
/** A slot of the packed weights that holds constant @buffer as @md; its plain bytes are @from. */
uint32_t kiln_onednn_packed(Builder *builder, const KilnBuffer *buffer,
                            const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *md);
/** The bytes of @slot as @md. UINT32_MAX stays what it is. */
uint32_t kiln_onednn_alias(Builder *builder, uint32_t slot, const dnnl_memory_desc_t *md);
/** A step that brings the value of slot @from into slot @to. */
bool kiln_onednn_reorder(Builder *builder, uint32_t from, uint32_t to, const char *what);
/** The part of its concat's result that is the place of @buffer, which has a join. */
uint32_t kiln_onednn_part(Builder *builder, const KilnBuffer *buffer);
/** A new slot for the value of @buffer: the call's operand where it is a result in @md. */
uint32_t kiln_onednn_result(Builder *builder, const KilnBuffer *buffer,
                            const dnnl_memory_desc_t *md);
/** @buffer lies in @slot from now on. */
void kiln_onednn_enter(Builder *builder, const KilnBuffer *buffer, uint32_t slot);
bool kiln_onednn_is_constant(const Builder *builder, const KilnBuffer *buffer);
/** The one number of a literal; false where it is none. */
bool kiln_onednn_scalar(const KilnBuffer *buffer, float *out);
/** Adds the primitive of @pd, which is taken over, with its scratchpad. */
bool kiln_onednn_add(Builder *builder, dnnl_primitive_desc_t pd, const StepArg *args, uint32_t n,
                     const char *what, const char *implementation);

/* --- what follows an operation on the way (post.c) --- */

enum {
    POST_MAX = 8
};

typedef struct {
    bool is_binary;
    dnnl_alg_kind_t alg;
    float alpha, beta;
    const KilnBuffer *other;    /* binary: the further operand */
    bool swapped;               /* the further operand is the left one */
    dnnl_memory_desc_t md;      /* how it is to lie */
    dnnl_memory_desc_t seen_as; /* how the operation describes the same bytes */
} PostOp;

typedef struct {
    PostOp ops[POST_MAX];
    uint32_t n;
    const KilnBuffer *result; /* of the last of them */
} PostOps;

/** True where @instr is element-wise and oneDNN has it; fills @out. */
bool kiln_onednn_elementwise(const KilnInstr *instr, PostOp *out);
/** What follows @buffer that nothing else reads, up to @max: marks it as done. */
PostOps kiln_onednn_absorb(Builder *builder, const KilnBuffer *buffer, uint32_t max);
/** Says of the further operands how they are to lie where the result lies in @layout: as it does,
 * or plain where they broadcast. */
void kiln_onednn_post_layout(PostOps *post, Layout layout);
/** Attributes with a scratchpad of the caller's and @post (NULL: none). @sum: the first of them
 * adds to what lies in the result. NULL where the library lacks one. */
dnnl_primitive_attr_t kiln_onednn_attr(const PostOps *post, bool sum);
/** Appends the further operands of @post to @args (of StepArg), reordered where they must be. */
bool kiln_onednn_post_args(Builder *builder, const PostOps *post, bool sum, GArray *args);

/* --- operators (conv.c, ops.c) --- */

bool kiln_onednn_build_conv(Builder *builder, const KilnInstr *instr);
bool kiln_onednn_build_conv_transpose(Builder *builder, const KilnInstr *instr);
/** What the time of a convolution depends on. */
typedef struct {
    const KilnType *x, *w, *y;
    int64_t group;
    bool transposed;
} ConvShape;
ConvShape kiln_onednn_conv_shape(const KilnNode *node);
/** Estimated microseconds on one thread in @layout. */
double kiln_onednn_conv_us(const ConvShape *shape, Layout layout);
bool kiln_onednn_build_product(Builder *builder, const KilnInstr *instr);
bool kiln_onednn_build_pool(Builder *builder, const KilnInstr *instr);
bool kiln_onednn_build_elementwise(Builder *builder, const KilnInstr *instr);
bool kiln_onednn_build_concat(Builder *builder, const KilnInstr *instr);
/** Finds the concats whose parts can be computed in place. */
void kiln_onednn_find_joins(Builder *builder);
bool kiln_onednn_build_copy(Builder *builder, const KilnInstr *instr);
/** pack and unpack, at the edges: another layout of the same value. */
bool kiln_onednn_build_relayout(Builder *builder, const KilnInstr *instr);

/* --- the whole (region.c), running (run.c) --- */

KilnCompiled *kiln_onednn_compile(const KilnIRFunction *function, const bool *constant, int threads,
                                  GError **error);
void kiln_onednn_contexts_free(Region *region);
const char *kiln_onednn_run(const KilnKernelArgs *args);
void kiln_onednn_pack(const KilnInstr *instr, const void *const *data, void *packed,
                      KilnSlice slice);

/** Sets the OpenMP threads of the calling thread; returns what they were. */
int kiln_onednn_set_threads(int threads);

#endif
