/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the lowerings of op families: the state of one kiln_lower(), and the steps of a
 * lowering. The driver and the table are in lower.c and lower_table.c. */
#ifndef KILN_IR_LOWER_LOWER_PRIV_H
#define KILN_IR_LOWER_LOWER_PRIV_H

#include "ir/ir.h"

/** What the function of a subgraph has beside its own arguments and results. */
typedef struct {
    bool counts;           /* the number of an iteration and a condition are its first inputs */
    uint32_t first_result; /* results before it are left out */
    uint32_t n_results;    /* from there on */
    const KilnType *types; /* of these, as the node around has them; NULL: as the subgraph says */
} KilnRegionParts;

typedef struct {
    const KilnFunction *graph;
    KilnIRFunction *ir;
    GPtrArray *functions;         /* those of the module of the IR; NULL: there must be no flow */
    const KilnRegionParts *parts; /* of a subgraph; NULL: of a function of the module */
    const GPtrArray *captures;    /* KilnValue*: inputs behind the arguments; NULL: none */
    GHashTable *wanted;   /* set of KilnValue*: some instruction or `return` reads it as a buffer */
    GHashTable *buffers;  /* KilnValue* → KilnBuffer* */
    GHashTable *outputs;  /* KilnValue* → its output, if it is returned exactly once */
    GHashTable *weights;  /* KilnConstant* → KilnBuffer* */
    GHashTable *forms;    /* KilnValue* → its other form, see below */
    const KilnType *laid; /* result of the node that is now lowered on physical dims; else NULL */
} KilnLower;

typedef gboolean (*KilnLowerFn)(KilnLower *l, const KilnNode *node, GError **error);
/** Completes the attributes of the one instruction that a node lowers to. Attributes of the same
 * name and kind are already copied. */
typedef gboolean (*KilnLowerAttrsFn)(KilnLower *l, const KilnNode *node, void *attrs,
                                     GError **error);

/** How an op is lowered. If all fields are empty: to the instruction of the same name. */
typedef struct {
    KilnLowerFn lower;      /* NULL: one instruction, operands and results in order */
    KilnLowerAttrsFn attrs; /* for that one instruction; NULL: copies by name suffice */
    uint32_t ignores;       /* bit per operand that nothing reads (only its type counts) */
    uint32_t reads;         /* bit per shape operand that the instruction reads all the same */
    uint32_t known_at_run;  /* bit per shape operand that may be unknown */
} KilnLowering;

const KilnLowering *kiln_lowering_of(KilnOp op);
/** True if the lowering of @node reads operand @i as a buffer. */
bool kiln_lower_reads(const KilnNode *node, uint32_t i);

/* --- layouts (lower_layout.c) ---
 *
 * A value in a layout has two forms. Calls, pack and unpack use the form of its type. The flat form
 * is a plain buffer with a dim per loop over memory. Ops that compute on the loops alone are
 * lowered on flat buffers, so passes and kernels see only plain ones. */

/** True if @node is lowered on flat buffers. */
bool kiln_lower_is_flat(const KilnNode *node);
/** @buffer, which holds @value, in the flat form (@flat) or in the form of its type. */
KilnBuffer *kiln_lower_form(KilnLower *l, const KilnValue *value, KilnBuffer *buffer, bool flat);
/** @attrs of @kind for the flat form of @result: axes, starts, steps and pads count loops, not
 * dims. */
const void *kiln_lower_flat_attrs(KilnLower *l, KilnInstrKind kind, const void *attrs,
                                  const KilnType *result);

/* --- steps --- */

/** The buffer of operand @i; NULL if it is absent. */
KilnBuffer *kiln_lower_operand(KilnLower *l, const KilnNode *node, uint32_t i);
/** The buffer to write result @r to: an output or a new alloc. */
KilnBuffer *kiln_lower_result(KilnLower *l, const KilnNode *node, uint32_t r);
/** The type of the buffer for a value of @type. A value whose rank a run decides lies in an
 * optional. */
KilnType kiln_lower_type(const KilnLower *l, const KilnType *type);
/** True if something reads result @r. */
bool kiln_lower_wants(const KilnLower *l, const KilnNode *node, uint32_t r);
/** Result @r has the bytes of @buffer. Emits nothing, or a view if the types differ. */
gboolean kiln_lower_alias(KilnLower *l, const KilnNode *node, uint32_t r, KilnBuffer *buffer,
                          GError **error);
/** A new buffer of @n elements of @dtype, named after the first result of @node. */
KilnBuffer *kiln_lower_line(KilnLower *l, const KilnNode *node, const char *what, KilnDType dtype,
                            KilnSize n);
/** The elements of @numbers become those of the names that @node defines. */
gboolean kiln_lower_numbers(KilnLower *l, const KilnNode *node, KilnBuffer *numbers,
                            GError **error);
/** A const weight with a constant of its own. Takes @tensor over. @type NULL: the tensor's. */
KilnBuffer *kiln_lower_weight(KilnLower *l, const char *name, KilnTensor *tensor,
                              const KilnType *type);
/** Errors at @instr name @node: @instr gets its name, or that of its result where the node has no
 * name and the instruction writes to another buffer. */
void kiln_lower_name(KilnLower *l, const KilnNode *node, KilnInstr *instr);
/** An instruction at the end, named after @node. */
gboolean kiln_lower_emit(KilnLower *l, const KilnNode *node, KilnInstrKind kind,
                         KilnBuffer *const *operands, uint32_t n, const void *attrs,
                         GError **error);
/** Emits one instruction of @kind. Its @out operands are the results, its @in operands those
 * operands that are not shape operands. @attrs: of @kind. */
gboolean kiln_lower_generic(KilnLower *l, const KilnNode *node, KilnInstrKind kind,
                            const void *attrs, GError **error);

/** `label (op): …`. Always FALSE. */
gboolean kiln_lower_throw(const KilnNode *node, KilnError code, GError **error, const char *format,
                          ...) G_GNUC_PRINTF(4, 5);
/** "value of operand i is known only at run time". Always FALSE. */
gboolean kiln_lower_throw_unknown(const KilnNode *node, uint32_t i, GError **error);

/** True if elements of @value are expressions: its numbers hold at one binding. */
static inline bool
kiln_lower_is_open(const KilnValue *value)
{
    return value && value->extents;
}
/** An INTS attribute of @n values in the function's arena. */
static inline KilnInts
kiln_lower_ints(KilnLower *l, const int64_t *values, int n)
{
    return kiln_ints_make(l->ir->arena, values, (uint32_t)n);
}
/** The instruction that has the name of the node's op; false if there is none. */
static inline bool
kiln_lower_namesake(const KilnNode *node, KilnInstrKind *out)
{
    return kiln_instr_from_name(kiln_op_info(node->op)->name, out);
}
/** The same with expressions, where the numbers have some. */
static inline KilnInts
kiln_lower_ints_open(KilnLower *l, const int64_t *values, const KilnDim *const *open, int n)
{
    return kiln_ints_make_open(l->ir->arena, values, open, (uint32_t)n);
}
/** The field @name of instruction attributes, which must have it. */
void *kiln_lower_field(KilnInstrKind kind, void *attrs, const char *name);

/* --- subgraphs --- */

/** The values that subgraphs of @node read from around it and that are computed there: KilnValue*,
 * each once. */
GPtrArray *kiln_lower_captures(const KilnNode *node);
/** A new function for @region of @node, at the end of those of the module. */
KilnIRFunction *kiln_lower_region(KilnLower *l, const KilnNode *node, const KilnFunction *region,
                                  const KilnRegionParts *parts, const GPtrArray *captures,
                                  GError **error);

/** The same for a branch that does not fit, for @reason: it fails where it runs. */
KilnIRFunction *kiln_lower_refused(KilnLower *l, const KilnNode *node, const KilnFunction *region,
                                   const char *reason, const GPtrArray *captures, GError **error);

/* --- lowerings, by family --- */

gboolean kiln_lower_alias_first(KilnLower *l, const KilnNode *node, GError **error);
/** The elements of operand 0, rescaled if the result is quantized in another way. */
gboolean kiln_lower_unchanged(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_dropout(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_variadic(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_reduce(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_pad(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_split(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_compress(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_constant_of_shape(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_define(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_non_zero(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_non_max_suppression(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_unique(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_if(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_loop(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_string_split(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_tokenizer(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_string_normalizer(KilnLower *l, const KilnNode *node, GError **error);
/** An empty sequence or optional; one that has the operands; a tensor that comes out of one. */
gboolean kiln_lower_item_none(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_item_list(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_item_out(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_concat_from_sequence(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_cast_map(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_call(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_custom(KilnLower *l, const KilnNode *node, GError **error);
gboolean kiln_lower_plugin(KilnLower *l, const KilnNode *node, GError **error);

/* --- attributes, by family --- */

#define KILN_LOWER_ATTRS(name)                                                                     \
    gboolean kiln_lower_attrs_##name(KilnLower *l, const KilnNode *node, void *attrs,              \
                                     GError **error);
KILN_LOWER_ATTRS(axis)     /* `axis` of operand 0 */
KILN_LOWER_ATTRS(one_hot)  /* `axis` of the result */
KILN_LOWER_ATTRS(quantize) /* `axis`, if scales are per axis */
KILN_LOWER_ATTRS(window)
KILN_LOWER_ATTRS(col2im)
KILN_LOWER_ATTRS(cum_sum) /* `axis` of operand 1, for cum_prod, too */
KILN_LOWER_ATTRS(dft)
KILN_LOWER_ATTRS(mean_variance)
KILN_LOWER_ATTRS(recurrent)
KILN_LOWER_ATTRS(transpose)
KILN_LOWER_ATTRS(slice)
KILN_LOWER_ATTRS(trilu)
KILN_LOWER_ATTRS(resize)
#undef KILN_LOWER_ATTRS

#endif
