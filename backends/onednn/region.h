/* SPDX-License-Identifier: Apache-2.0 */
/* A region as oneDNN runs it: a list of primitives over slots of memory. Private to this backend.
 *
 *     region  = primitive …                     in the order of the lowered body
 *     slot    = an operand of the call | a part of the packed weights | a part of the workspace
 *
 * The builder walks the lowered body. For each buffer it keeps the slots that hold its value, each
 * in some layout. If an operation needs another layout, the builder adds a reorder. Reorders of
 * constants run once, when weights are packed. */
#ifndef KILN_BACKENDS_ONEDNN_REGION_H
#define KILN_BACKENDS_ONEDNN_REGION_H

#include "backends/onednn/guard.h"
#include "exec/custom.h"
#include "ir/compiled.h"
#include "ir/target.h"

#include <pthread.h>

typedef enum {
    SLOT_OPERAND,   /* index: operand of the call */
    SLOT_PACKED,    /* offset in the packed weights */
    SLOT_WORKSPACE, /* offset in the workspace */
    SLOT_ALIAS,     /* bytes of slot `index` from `offset` on */
} SlotPlace;

typedef struct {
    dnnl_memory_desc_t md;
    dnnl_memory_desc_t from; /* packed weights: the layout before packing; else ndims is 0 */
    SlotPlace place;
    uint32_t index;
    size_t offset;
    int64_t first, last; /* steps that touch it; first < 0: none */
} Slot;

/** The runs that have a step: see careful.c. */
typedef enum {
    RUN_ANY,
    RUN_FAST,    /* it masks NaN: only while no NaN is possible */
    RUN_CAREFUL, /* replaces a fast step in other runs */
} RunKind;

/** A primitive of the library, or own kernels. The first run generates its code: programs that are
 * only loaded or printed need none. */
typedef struct {
    dnnl_primitive_desc_t pd;   /* of the primitive; NULL once that is made */
    dnnl_primitive_t primitive; /* NULL before */
    KilnCustom *custom;         /* own kernels; NULL: the primitive */
    uint32_t first_arg, n_args; /* own kernels: operands in order, the scratch last */
    bool small;                 /* too little work for more than one thread */
    RunKind when;
} Step;

typedef struct {
    int arg; /* DNNL_ARG_… */
    uint32_t slot;
} StepArg;

/** A constant that is reordered or copied into the packed weights. A loaded program has packed
 * weights, so code for the reorder is generated only when it is needed. */
typedef struct {
    dnnl_memory_desc_t from;
    uint32_t operand; /* of the call; UINT32_MAX: a literal */
    void *literal;    /* its bytes, owned */
    uint32_t slot;
    int64_t gate; /* LSTM: numbers per gate, to reorder the four gates; 0: no LSTM */
    bool twice;   /* packing adds two sets of gates */
} Pack;

typedef struct Context Context;

typedef struct {
    KilnCompiled compiled; /* first: the rest of Kiln sees only this */
    GArray *slots;         /* Slot */
    GArray *steps;         /* Step */
    GArray *args;          /* StepArg */
    GArray *packs;         /* Pack */
    GArray *guards;        /* Guard; empty: no step masks NaN */
    GArray *bounds;        /* float, by buffer id: of literals, else INFINITY */
    GArray *measured;      /* Measured; the packed weights begin with their bounds (floats) */
    guint n_values;        /* buffers; with guards, the length of bounds */
    GString *description;
    bool *packed_operand; /* by operand of the call */
    char **packed_tags; /* by operand: tag of its packed layout; NULL: no tag, or several layouts */
    uint32_t n_operands;
    size_t workspace_bytes, packed_bytes;
    bool small;                  /* not worth more than one thread */
    _Atomic(Context *) contexts; /* of the sessions that run it */
    pthread_mutex_t making;      /* guards the making of primitives */
    atomic_bool made;
} Region;

/** Layouts of activations. The cost model chooses one for a whole region. */
typedef enum {
    LAYOUT_PLAIN,         /* nchw */
    LAYOUT_CHANNELS_LAST, /* nhwc */
    LAYOUT_BLOCKED,       /* nChw16c, without AVX-512 nChw8c */
    N_LAYOUTS
} Layout;

enum {
    FEW_CHANNELS = 4, /* in blocks, a convolution of so few channels reads plain pictures */
};

/** A part of a concat that is computed in place. It has whole blocks of channels. */
typedef struct {
    const KilnInstr *concat; /* NULL: no concat */
    int64_t channel;         /* its first channel */
} Join;

typedef struct {
    Region *region;
    const KilnIRFunction *function;
    const KilnTarget *target; /* its kernels run operators that the library lacks */
    int threads;
    const bool *constant;
    Join *joins;               /* by buffer id: of parts of concats */
    GArray **values;           /* by buffer id: slots that hold its value; NULL: not computed yet */
    const KilnBuffer **laid;   /* by buffer id: the constant that it is unpacked from */
    bool *done;                /* by instruction id: absorbed or computed */
    bool *computed;            /* by buffer id: computed before the steps that are being added */
    const KilnInstr **scaling; /* by buffer id: the mul whose scale goes into weights */
    uint32_t n_out;            /* outputs come first among the operands of the call */
    Layout layout;
    int64_t step; /* the step that is being made */
    bool small;   /* primitives are made for one thread */
    RunKind when; /* of the steps that are added, except reorders */
    GError **error;
} Builder;

/* --- engine (engine.c) --- */

/** The one engine of the process; NULL if the library has none. */
dnnl_engine_t kiln_onednn_engine(void);
/** Channels of a block, one per float of a vector: 16 with AVX-512, else 8. */
int64_t kiln_onednn_block(void);
/** True if the library has an allowed product of matrices. */
bool kiln_onednn_has_products(void);
/** False if @status is an error: KILN_ERROR_MEMORY or KILN_ERROR_UNSUPPORTED, which names @what. */
bool kiln_onednn_check(dnnl_status_t status, const char *what, GError **error);
/** The first allowed implementation of an operation; NULL if there is none. @out_name: its name. */
dnnl_primitive_desc_t kiln_onednn_choose(const_dnnl_op_desc_t operation,
                                         const_dnnl_primitive_attr_t attr, const char **out_name);
/** The name of the only implementation of @pd. If it is not allowed: destroys @pd and returns NULL
 * with an error. The region then goes back inline. */
const char *kiln_onednn_implementation(dnnl_primitive_desc_t pd, const char *what, GError **error);

/** The reorder from @from to @to. The caller gives its scratchpad. */
dnnl_status_t kiln_onednn_reorder_pd(const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to,
                                     dnnl_primitive_desc_t *out);

/* --- layouts at the edges (edge_layouts.c) --- */

/** The layout that the tag of @type names; plain if it names none of them. */
Layout kiln_onednn_layout_of_tag(const KilnType *type);
const char *kiln_onednn_layout_tag(uint32_t layout, int rank);
/** Layout @i of the vendor's table, which leaves out the plain one. Below: its inverse. */
Layout kiln_onednn_layout_at(uint32_t i);
uint32_t kiln_onednn_layout_index(Layout layout);
/** @md as a tag; NULL if it has none. @from describes the plain bytes of @type with the dims of
 * @md. The caller frees the tag. */
char *kiln_onednn_tag(const KilnType *type, const dnnl_memory_desc_t *from,
                      const dnnl_memory_desc_t *md);
bool kiln_onednn_lies_in(const KilnFunction *body, const KilnValue *value, uint32_t layout);

/* --- building (build.c) --- */

dnnl_memory_desc_t kiln_onednn_plain(const KilnType *type);
/** True if the library computes with @type: f32 of fixed shape, not quantized, not blocked. */
bool kiln_onednn_is_float(const KilnType *type);
/** @type in @layout; plain if its rank has no other layout. */
dnnl_memory_desc_t kiln_onednn_md(const KilnType *type, Layout layout);
/** @type in the layout of its tag. */
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
/** The same for weights of an LSTM: four gates of @gate numbers each, in the order of ONNX. @from
 * describes them in the library's order. @twice: adds two sets of gates. */
uint32_t kiln_onednn_packed_gates(Builder *builder, const KilnBuffer *buffer, int64_t gate,
                                  bool twice, const dnnl_memory_desc_t *from,
                                  const dnnl_memory_desc_t *md);
/** A slot with the bytes of @slot, seen as @md. Returns UINT32_MAX if @slot is UINT32_MAX. */
uint32_t kiln_onednn_alias(Builder *builder, uint32_t slot, const dnnl_memory_desc_t *md);
/** Makes further primitives for one thread (@small) or for all. Returns the old setting. */
bool kiln_onednn_set_small(Builder *builder, bool small);
/** Adds a step that brings the value of slot @from into slot @to. */
bool kiln_onednn_reorder(Builder *builder, uint32_t from, uint32_t to, const char *what);
/** The slot of @buffer, which has a join: a part of its concat's result. */
uint32_t kiln_onednn_part(Builder *builder, const KilnBuffer *buffer);
/** Keeps the contents of @slot until @step begins. */
void kiln_onednn_keep(Builder *builder, uint32_t slot, int64_t step);
/** A new slot for @buffer: the call's operand if @buffer is a result that lies as @md. */
uint32_t kiln_onednn_result(Builder *builder, const KilnBuffer *buffer,
                            const dnnl_memory_desc_t *md);
/** A slot for a result that nobody reads. */
uint32_t kiln_onednn_unread(Builder *builder, const dnnl_memory_desc_t *md);
/** Notes that @slot holds @buffer from now on. */
void kiln_onednn_enter(Builder *builder, const KilnBuffer *buffer, uint32_t slot);
bool kiln_onednn_is_constant(const Builder *builder, const KilnBuffer *buffer);
/** The number of a literal with one element; false for other buffers. */
bool kiln_onednn_scalar(const KilnBuffer *buffer, float *out);
/** Adds the primitive of @pd with its scratchpad. Takes @pd over. */
bool kiln_onednn_add(Builder *builder, dnnl_primitive_desc_t pd, const StepArg *args, uint32_t n,
                     const char *what, const char *implementation);
/** Appends to @args (of StepArg). False if @slot is UINT32_MAX. */
bool kiln_onednn_add_arg(GArray *args, int arg, uint32_t slot);
/** Adds own kernels with their scratch. Takes @custom over. @slots: one per operand, results
 * first. */
void kiln_onednn_add_custom(Builder *builder, KilnCustom *custom, const uint32_t *slots,
                            uint32_t n);

/* --- operations that a primitive applies to its result (post.c) --- */

enum {
    POST_MAX = 8
};

typedef struct {
    bool is_binary;
    dnnl_alg_kind_t alg;
    float alpha, beta;
    const KilnBuffer *other;    /* binary: the further operand */
    bool swapped;               /* the further operand is the left one */
    dnnl_memory_desc_t md;      /* the layout that it must have */
    dnnl_memory_desc_t seen_as; /* how the operation describes the same bytes */
    const KilnInstr *instr;     /* the instruction that it computes */
} PostOp;

typedef struct {
    PostOp ops[POST_MAX];
    uint32_t n;
    const KilnInstr *own;     /* behind them, by own kernels in place; NULL: none */
    const KilnBuffer *result; /* of the last of them */
} PostOps;

/** True if @instr is element-wise and oneDNN has it; fills @out. */
bool kiln_onednn_elementwise(const KilnInstr *instr, PostOp *out);
/** The element-wise instructions behind @buffer, each the only reader. Marks them as done.
 * @binaries: also those with a further operand. */
PostOps kiln_onednn_absorb(Builder *builder, const KilnBuffer *buffer, bool binaries);
/** Makes the last operation of @post, behind @buffer, a step again. False if @post is empty. */
bool kiln_onednn_release(Builder *builder, const KilnBuffer *buffer, PostOps *post);
/** Sets the layouts of further operands for a result in @layout: the same, or plain if they
 * broadcast. */
void kiln_onednn_post_layout(PostOps *post, Layout layout);
/** The instruction that computes @buffer; NULL: @buffer is given. */
const KilnInstr *kiln_onednn_writer(const KilnBuffer *buffer);
/** The one instruction that reads @buffer; NULL if there are more, or @buffer is a result. */
const KilnInstr *kiln_onednn_only_reader(const KilnBuffer *buffer);
/** Attributes with @post (NULL: none) and a scratchpad of the caller. @sum: the first operation
 * adds to the old result. NULL if the library lacks an operation. */
dnnl_primitive_attr_t kiln_onednn_attr(const PostOps *post, bool sum);
/** Appends the further operands of @post to @args (of StepArg), reordered if needed. */
bool kiln_onednn_post_args(Builder *builder, const PostOps *post, bool sum, GArray *args);

/* --- operators (conv.c, ops.c, normalize.c, lstm.c) --- */

/** Adds the step of @op by the first allowed implementation, with @post (NULL: nothing) behind it.
 * @args: its other operands and results. */
bool kiln_onednn_add_operation(Builder *builder, const_dnnl_op_desc_t op, const PostOps *post,
                               GArray *args, const char *what);

/** The same, with nothing behind it, as a step of fast runs. */
bool kiln_onednn_add_fast(Builder *builder, const_dnnl_op_desc_t op, GArray *args,
                          const char *what);

bool kiln_onednn_build_conv(Builder *builder, const KilnInstr *instr);
bool kiln_onednn_build_conv_transpose(Builder *builder, const KilnInstr *instr);
bool kiln_onednn_build_product(Builder *builder, const KilnInstr *instr);
bool kiln_onednn_build_pool(Builder *builder, const KilnInstr *instr);
bool kiln_onednn_build_elementwise(Builder *builder, const KilnInstr *instr);
/** One number per channel, in the layout of @result. In a plain layout the library is slow. */
dnnl_memory_desc_t kiln_onednn_channels_md(const KilnType *result, Layout layout);
bool kiln_onednn_is_per_channel(const KilnType *type, const KilnType *result);
/** Adds a step that adds @bias, one number per channel, to @slot in @layout, and applies @post.
 * @post must have no further operands. */
bool kiln_onednn_add_bias(Builder *builder, const KilnBuffer *bias, const PostOps *post,
                          Layout layout, uint32_t slot);
bool kiln_onednn_build_concat(Builder *builder, const KilnInstr *instr);
/** Finds the concats whose parts can be computed in place. */
void kiln_onednn_find_joins(Builder *builder);
/** Softmax, layer normalization, and reductions, each along rows that lie one behind the other. */
bool kiln_onednn_build_rows(Builder *builder, const KilnInstr *instr);
bool kiln_onednn_build_lstm(Builder *builder, const KilnInstr *instr);
bool kiln_onednn_build_copy(Builder *builder, const KilnInstr *instr);
/** pack and unpack at the edges: another layout of the same value. */
bool kiln_onednn_build_relayout(Builder *builder, const KilnInstr *instr);
/** A call of an operator that the library lacks: own kernels (custom.c). They work in the layout of
 * the operands if they can. */
bool kiln_onednn_build_custom(Builder *builder, const KilnInstr *instr);
/** Own kernels for one operator on @n operands. @types describe the bytes of slots, in any way that
 * gives the same result. A new reference; NULL with the builder's error set. */
KilnCustom *kiln_onednn_own(const Builder *builder, KilnOp op, const void *attrs,
                            const KilnType *types, uint32_t n);
/** The same with @literals as the last operands. Takes them over. */
KilnCustom *kiln_onednn_own_with(const Builder *builder, KilnOp op, const void *attrs,
                                 const KilnType *types, uint32_t n, KilnTensor *const *literals,
                                 uint32_t n_literals);
/** True if own kernels for the activation @instr are worth a pass over its result. The library
 * could apply it without one. */
bool kiln_onednn_own_pays(const Builder *builder, const KilnInstr *instr);
/** Adds a step for post->own, by own kernels in place, on @slot. */
bool kiln_onednn_add_own(Builder *builder, const PostOps *post, uint32_t slot);
/** kiln_custom_laid() for this backend; NULL if @layout is plain. */
GHashTable *kiln_onednn_custom_laid(const KilnFunction *body, Layout layout);

/* --- a scale per channel in weights (scale.c) --- */

/** True if the one convolution that reads @instr had better scale its weights instead. Then defers
 * @instr, a mul. */
bool kiln_onednn_defer_scale(Builder *builder, const KilnInstr *instr);
/** Computes @x, the result of a deferred mul, unless @weights lie in blocks that can be scaled.
 * Does nothing for any other @x. */
bool kiln_onednn_settle_scale(Builder *builder, const KilnBuffer *x,
                              const dnnl_memory_desc_t *weights);
/** The operand that a deferred mul scales, if @x is the mul's result; else @x. */
const KilnBuffer *kiln_onednn_unscaled(const Builder *builder, const KilnBuffer *x);
/** A slot with the weights of @slot times the scale of @x, if @x is a deferred result. UINT32_MAX
 * with the builder's error set. */
uint32_t kiln_onednn_scale_weights(Builder *builder, const KilnBuffer *x, uint32_t slot);

/* --- the time of operators (window.c), in microseconds on one thread --- */

typedef enum {
    WINDOW_CONV,
    WINDOW_TRANSPOSED,
    WINDOW_POOL,
    WINDOW_GLOBAL_POOL,
} WindowKind;

/** The facts that the time of a convolution or a pool depends on. */
typedef struct {
    WindowKind kind;
    const KilnType *x, *w, *y; /* w: NULL for pools */
    KilnInts kernel;           /* of pools with windows */
    int64_t group;
    bool bias; /* of a transposed convolution: a pass of its own */
} Window;

/** False for other operators. */
bool kiln_onednn_window_of_node(const KilnNode *node, Window *out);
/** The time of a tail on a result of @type: @operations for each number, or an operation with a
 * further operand (@binary). */
double kiln_onednn_tail_us(const KilnType *type, int64_t operations, bool binary, Layout layout);
/** The time of a pass over a value of @type in place. */
double kiln_onednn_pass_us(const KilnType *type, Layout layout);
/** The time to bring a value of @type from the plain layout into @layout, or back. */
double kiln_onednn_reorder_us(const KilnType *type, Layout layout);
/** 0 for operators whose time does not depend on the layout. */
double kiln_onednn_node_us(const KilnNode *node, Layout layout);
double kiln_onednn_layout_us(const KilnFunction *body, uint32_t layout);
/** The time of a lowered region that depends on the layout, with reorders at plain edges.
 * @constant: one flag per input. */
double kiln_onednn_region_us(const KilnIRFunction *function, const bool *constant, Layout layout);

/* --- running (run.c) --- */

void kiln_onednn_contexts_free(Region *region);
const char *kiln_onednn_run(const KilnKernelArgs *args);
const char *kiln_onednn_pack(const KilnInstr *instr, uint32_t form, const void *const *data,
                             void *packed, KilnSlice slice);

/** Sets the library's threads for the calling thread. Returns the old number, to set it again. */
int kiln_onednn_set_threads(int threads);
/** True once a parallel part asked for a barrier, which a team does not have. */
bool kiln_onednn_met_barrier(void);

/** Implements KilnVendor.compile() of ir/vendor.h. */
KilnCompiled *kiln_onednn_compile(const KilnIRFunction *function, const KilnTarget *target,
                                  const bool *constant, int threads, const KilnInstr **out_refused,
                                  GError **error);

#endif
