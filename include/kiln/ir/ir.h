/* SPDX-License-Identifier: Apache-2.0 */
/* The second level: a linear list of instructions over explicit buffers.
 *
 * A function has weights, inputs and outputs, buffers that it allocates and frees, and views of
 * buffers. Each operand of an instruction says what it does to a buffer: @in reads, @out
 * overwrites, @inout does both. Shape operands of the graph have become attributes. Instructions
 * and buffers live in the function's arena and never move.
 *
 * All types have numbers. An open function stands at a binding of its names, and its numbers hold
 * for this binding. A number that may differ has an expression beside it (type.open, KilnInts.open,
 * KilnViewOpen). So costs, plans and the verifier see a static function. Code that decides whether
 * a rewrite is right asks for all bindings (graph/size.h). ir/open.h moves a function to another
 * binding. */
#ifndef KILN_IR_IR_H
#define KILN_IR_IR_H

#include "graph/module.h"
#include "graph/text/text.h"
#include "ir/instr.h"
#include "ir/region.h"

G_BEGIN_DECLS

typedef struct KilnIRFunction KilnIRFunction;
typedef struct KilnBuffer KilnBuffer;
typedef struct KilnInstr KilnInstr;
typedef struct KilnBufferUse KilnBufferUse;
typedef struct KilnStackStep KilnStackStep; /* ir/stack.h */

/** Expressions of the numbers of a view; NULL where the number holds for all bindings. */
typedef struct {
    const KilnDim *offset, *rows, *pitch;
} KilnViewOpen;

typedef enum {
    KILN_BUFFER_WEIGHT, /* a constant of the module, or state, which is mutable until
                           make-weights-const makes it const */
    KILN_BUFFER_INPUT,
    KILN_BUFFER_OUTPUT,
    KILN_BUFFER_ALLOC, /* made by `alloc`, ended by `dealloc` */
    KILN_BUFFER_VIEW,  /* an alias of a part of another buffer: same bytes, another type */
} KilnBufferKind;

/* Walks ask for the first fields. They share one line of a cache, because buffers are aligned to
 * lines. */
struct KilnBuffer {
    KilnBufferKind kind;
    uint32_t id; /* dense per function */
    uint32_t n_uses;
    bool is_const;    /* WEIGHT: never written, may lie in read-only memory; INPUT: its value comes
                         with the first run and stays */
    bool unpacked;    /* OUTPUT: an optional; callers see the tensor in it, which has any rank */
    bool touched;     /* in the function's list of changes */
    bool restated;    /* new, or of another kind: for the list of changes */
    KilnBuffer *base; /* VIEW: the buffer that it aliases, maybe a view */
    int64_t view_offset; /* VIEW: elements of the base's type from its start, dense */
    KilnInstr *def;      /* ALLOC: the `alloc`; VIEW: the `view`; else NULL */
    KilnBufferUse *first_use, *last_use; /* in no order: walk instructions where order matters */
    int64_t offset;   /* ALLOC: bytes from the arena's start after the memory plan; -1 before */
    const char *name; /* without sigil, unique in the function */
    KilnConstant *constant;  /* WEIGHT: where the bytes come from */
    int64_t view_rows;       /* VIEW: the number of its equal runs; 1: it is dense */
    int64_t view_pitch;      /* VIEW of several runs: elements of the base's type from run to run */
    KilnViewOpen *view_open; /* VIEW: NULL where its numbers hold for all bindings */
    KilnIRFunction *function;
    KilnType type; /* has numbers; big, hence last */
};

struct KilnBufferUse {
    KilnBuffer *buffer; /* NULL: an optional operand that is absent (printed `_`) */
    KilnAccess access;
    uint32_t index;
    KilnInstr *user;
    KilnBufferUse *previous, *next;
};

/* The first fields share one line of a cache, as in KilnBuffer. */
struct KilnInstr {
    KilnInstrKind kind;
    uint32_t id; /* dense per function; not the position */
    uint32_t n_operands;
    bool touched;   /* in the function's list of changes */
    bool rewritten; /* new, or with other operands or attributes: for the list */
    KilnIRFunction *function;
    KilnInstr *previous, *next;
    KilnInstr *ahead; /* a hint for walks: the instruction KILN_AHEAD_INSTRS further on at the last
                         look; may be removed since; NULL: not known */
    KilnBufferUse *operands;
    uint64_t place;       /* grows along the list; kiln_ir_place() restores that */
    const char *name;     /* of its ONNX node, for messages, dumps and traces; may be NULL */
    void *attrs;          /* KilnInstrAttrs_<kind>; NULL where it has none */
    KilnStackStep *steps; /* `stack`: its steps */
    uint32_t n_steps;
    const char *callee; /* `call`; kiln_instr_new_call() sets the accesses of its operands */
    const KilnDeclaration *declaration; /* `call`: the declaration that @callee names */
    KilnInstr *behind;                  /* like @ahead, for walks backwards */
};

#define kiln_instr_attrs(instr, id) ((KilnInstrAttrs_##id *)(instr)->attrs)

/* The parts that were touched since the function was last found valid: see ir/changes.h. */
typedef struct {
    GPtrArray *instrs;  /* KilnInstr*, removed ones too; each once */
    GPtrArray *buffers; /* KilnBuffer*, new ones and those with other uses or kind; each once */
    bool known;         /* false: anything may have been touched */
} KilnIRChanges;

struct KilnIRFunction {
    const char *name;
    KilnModule *module; /* constants and declarations; borrowed */
    KilnArena *arena;
    KilnArena *instr_arena; /* apart, so that a walk over instructions reads them only */
    KilnArena *buffer_arena;
    GPtrArray *buffers; /* KilnBuffer*, by id; NULL for removed ones */
    GPtrArray *weights; /* KilnBuffer*, in order */
    GPtrArray *inputs;
    GPtrArray *outputs;
    KilnInstr *first, *last;
    uint32_t n_instrs;
    uint32_t next_id;
    KilnTable *names;          /* of buffers: looked up, never iterated */
    KilnTable *name_counters;  /* base → the last number appended to it */
    int64_t arena_bytes;       /* after the memory plan; -1 before */
    struct KilnOpen *open;     /* the binding at which it stands; NULL: it is static */
    const GPtrArray *siblings; /* KilnIRFunction*: where branches and loops find their functions;
                                  borrowed from the module of the IR; NULL: there are none */
    uint64_t stamp;
    bool is_placed; /* the places of instructions grow along the list */
    KilnIRChanges changes;
};

/** The IR of a module. `kiln opt --stage ir` prints it. */
typedef struct {
    KilnModule *module;   /* owned */
    GPtrArray *functions; /* KilnIRFunction*, callees first */
} KilnIRModule;

KilnIRModule *kiln_ir_module_new(KilnModule *module); /* takes @module over */
void kiln_ir_module_free(KilnIRModule *ir);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnIRModule, kiln_ir_module_free)
/** The function of that name; NULL if there is none. */
KilnIRFunction *kiln_ir_module_find_function(const KilnIRModule *ir, const char *name);

KilnIRFunction *kiln_ir_function_new(KilnModule *module, const char *name);
void kiln_ir_function_free(KilnIRFunction *function);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnIRFunction, kiln_ir_function_free)

/* --- building and rewriting --- */

/** A weight, input or output. Names are made unique. */
KilnBuffer *kiln_ir_add_buffer(KilnIRFunction *function, KilnBufferKind kind, const char *name,
                               const KilnType *type);
/** Says that the values of @input come with the first run and stay. */
void kiln_ir_fix_input(KilnBuffer *input);
/** True where the entry has such an input. */
bool kiln_ir_takes_fixed(const KilnIRModule *ir);
/** A const weight: a constant of the module. */
KilnBuffer *kiln_ir_add_weight(KilnIRFunction *function, KilnConstant *constant);
/** The same for a new constant, named after @base. Takes @tensor over; @type NULL: the tensor's. */
KilnBuffer *kiln_ir_add_constant(KilnIRFunction *function, const char *base, KilnTensor *tensor,
                                 const KilnType *type);
/** The buffer of that name; NULL if there is none. */
KilnBuffer *kiln_ir_find_buffer(const KilnIRFunction *function, const char *name);
/** Turns @input, whose bytes are known, into a const weight of @constant, which has its type. */
void kiln_ir_make_weight(KilnBuffer *input, KilnConstant *constant);
/** Marks a weight that nothing writes: its bytes may lie in read-only memory. */
void kiln_ir_make_const(KilnBuffer *weight);
/** Removes a weight, input or output without uses from the function. */
void kiln_ir_remove_buffer(KilnBuffer *buffer);
/** `%name = alloc : type` before @before (NULL: at the end). */
KilnBuffer *kiln_ir_alloc(KilnIRFunction *function, const char *name, const KilnType *type,
                          KilnInstr *before);
KilnInstr *kiln_ir_dealloc(KilnBuffer *buffer, KilnInstr *before);
/** `%name = view %base {offset=…} : type`: the bytes of @base from @element_offset on, as @type. */
KilnBuffer *kiln_ir_view(KilnIRFunction *function, const char *name, KilnBuffer *base,
                         int64_t element_offset, const KilnType *type, KilnInstr *before);
/** `%name = view %base {offset=…, rows=…, pitch=…} : type`: the region @part of @base. Regions
 * count bytes as if @base were dense, in whole elements of both types. @part must not be lost. */
KilnBuffer *kiln_ir_view_part(KilnIRFunction *function, const char *name, KilnBuffer *base,
                              const KilnRegion *part, const KilnType *type, KilnInstr *before);
/** A compute instruction; its row gives the accesses. @attrs are copied (NULL: defaults). Checks
 * arity. */
KilnInstr *kiln_instr_new(KilnIRFunction *function, KilnInstrKind kind, KilnBuffer *const *operands,
                          uint32_t n_operands, const void *attrs, KilnInstr *before,
                          GError **error);
/** `call @callee @out …, @in …`: the first @n_out operands are results. */
KilnInstr *kiln_instr_new_call(KilnIRFunction *function, const char *callee,
                               KilnBuffer *const *operands, uint32_t n_operands, uint32_t n_out,
                               KilnInstr *before);
/** A `branch`, `loop` or `plugin_op`: the first @n_out operands are results. @attrs are copied. */
KilnInstr *kiln_instr_new_stated(KilnIRFunction *function, KilnInstrKind kind,
                                 KilnBuffer *const *operands, uint32_t n_operands, uint32_t n_out,
                                 const void *attrs, KilnInstr *before);
void kiln_instr_set_operand(KilnInstr *instr, uint32_t i, KilnBuffer *buffer);
/** Unlinks. The buffer that an `alloc` or `view` defines goes too and must have no uses left. */
void kiln_instr_remove(KilnInstr *instr);
void kiln_instr_move(KilnInstr *instr, KilnInstr *before); /* NULL: to the end */
/** Says that fields of @instr, or of the view that it defines, were written directly. */
void kiln_instr_touch(KilnInstr *instr);
/** Says that anything in @function may have been written directly. */
void kiln_ir_touch(KilnIRFunction *function);

/** Takes the offsets of a memory plan out of @function. Call it when the order or the lives of
 * buffers change. */
void kiln_memory_plan_forget(KilnIRFunction *function);

/** Follows views to the weight, input, output or alloc below. */
static inline KilnBuffer *
kiln_buffer_origin(KilnBuffer *buffer)
{
    while (buffer->kind == KILN_BUFFER_VIEW)
        buffer = buffer->base;
    return buffer;
}
/** Where a buffer of a verified function lies in its origin. */
KilnRegion kiln_buffer_region(const KilnBuffer *buffer);
/** Where a view lies in its base, as kiln_ir_view_part() takes it. */
KilnRegion kiln_view_part(const KilnBuffer *view);
static inline bool
kiln_buffer_is_strided(const KilnBuffer *buffer)
{
    return buffer->kind == KILN_BUFFER_VIEW && kiln_buffer_region(buffer).rows > 1;
}
/** Whether two buffers may have a byte in common, for some binding. */
bool kiln_buffer_meets(KilnBuffer *a, KilnBuffer *b);
/** Whether two buffers are the same bytes in the same order, for all bindings. */
bool kiln_buffer_coincides(KilnBuffer *a, KilnBuffer *b);
/** Bytes from the origin's start to the view's first byte. */
int64_t kiln_buffer_origin_offset(const KilnBuffer *buffer);
/** Whether @buffer is its origin's bytes, all of them, for all bindings. */
bool kiln_buffer_is_whole(KilnBuffer *buffer);
/** Puts the numbers and expressions of @part, in bytes, into @view. False if they are not known for
 * other bindings. */
bool kiln_view_set_part(KilnBuffer *view, const KilnRegion *part);
static inline KilnBuffer *
kiln_instr_operand(const KilnInstr *instr, uint32_t i)
{
    return i < instr->n_operands ? instr->operands[i].buffer : NULL;
}
/** Where an instruction that draws from the seed of the run keeps the number of its stream, as in
 * kiln_node_stream(); NULL for others. */
int64_t *kiln_instr_stream(const KilnInstr *instr);
enum {
    KILN_SHARE_OPERANDS = 32 /* later operands share nothing */
};
/** True if operand @in may share its bytes with operand @out, by the instruction's row and the two
 * types. In a stack, @in must have elements of the same size and be read element for element. No
 * reduction and no step behind the one that writes @out may read @in. */
bool kiln_instr_may_share(const KilnInstr *instr, uint32_t out, uint32_t in);
const char *kiln_instr_label(const KilnInstr *instr);
/** True for alloc, dealloc and view: bookkeeping without work at run time. */
static inline bool
kiln_instr_is_bookkeeping(const KilnInstr *instr)
{
    return instr->kind == KILN_INSTR_alloc || instr->kind == KILN_INSTR_dealloc ||
           instr->kind == KILN_INSTR_view;
}

enum {
    KILN_AHEAD_INSTRS = 8,
    KILN_AHEAD_USES = 3, /* of each instruction */
};

/* A big function does not fit into caches, so a walk along its list waits for each instruction.
 * So a walk prefetches later instructions. It finds them by hints that earlier walks over all
 * instructions left. Each step reads memory that an earlier step prefetched. */
static inline void
kiln_instr_prefetch(const KilnInstr *near, const KilnInstr *far)
{
    __builtin_prefetch(far->operands);
    for (uint32_t i = 0; i < near->n_operands && i < KILN_AHEAD_USES; i++)
        __builtin_prefetch(near->operands[i].buffer);
}

static inline KilnInstr *
kiln_instr_visit(KilnInstr *instr)
{
    const KilnInstr *near = instr ? instr->ahead : NULL, *far = near ? near->ahead : NULL;
    if (far) {
        __builtin_prefetch(far->ahead);
        kiln_instr_prefetch(near, far);
    }
    return instr;
}

static inline KilnInstr *
kiln_instr_visit_back(KilnInstr *instr)
{
    const KilnInstr *near = instr ? instr->behind : NULL, *far = near ? near->behind : NULL;
    if (far && far->behind) {
        __builtin_prefetch(far->behind);
        __builtin_prefetch(&far->behind->behind);
        kiln_instr_prefetch(near, far);
    }
    return instr;
}

#define kiln_foreach_instr(instr, function_)                                                       \
    for (KilnInstr *instr = kiln_instr_visit((function_)->first); instr;                           \
         instr = kiln_instr_visit(instr->next))
#define kiln_foreach_instr_safe(instr, function_)                                                  \
    for (KilnInstr *instr = (function_)->first, *next_##instr = instr ? instr->next : NULL; instr; \
         instr = kiln_instr_visit(next_##instr), next_##instr = instr ? instr->next : NULL)
#define kiln_foreach_instr_reverse(instr, function_)                                               \
    for (KilnInstr *instr = (function_)->last, *next_##instr = instr ? instr->previous : NULL;     \
         instr; instr = kiln_instr_visit_back(next_##instr),                                       \
                   next_##instr = instr ? instr->previous : NULL)
#define kiln_foreach_buffer_use(use, buffer_)                                                      \
    for (KilnBufferUse *use = (buffer_)->first_use; use; use = use->next)
#define kiln_foreach_buffer_use_safe(use, buffer_)                                                 \
    for (KilnBufferUse *use = (buffer_)->first_use, *next_##use = use ? use->next : NULL; use;     \
         use = next_##use, next_##use = use ? use->next : NULL)

/** Checks everything that must hold, in linear time:
 * - Names are unique, and each buffer is defined before its use.
 * - Each alloc has one dealloc, and no use lies outside a life.
 * - Each read is of initialised bytes. Each output is written, and no const weight is.
 * - Operands share bytes only where the row allows it. Types are as the row asks.
 * - Planned offsets are aligned and disjoint. */
gboolean kiln_ir_verify(const KilnIRFunction *function, GError **error);
/** The same for a function that was valid. Looks only at parts touched since then, or at all if
 * these are not known. Afterwards touched parts are known. */
gboolean kiln_ir_verify_changes(KilnIRFunction *function, GError **error);

/* --- lowering --- */

/** The IR of graph function @function. Its types must be static (KILN_ERROR_SHAPE names the first
 * that is not) and its shape operands known. KILN_ERROR_UNSUPPORTED names an op without
 * instruction. */
KilnIRFunction *kiln_lower(const KilnFunction *function, GError **error);
/** The same at the end of the functions of @ir, behind those of its branches and loops. */
gboolean kiln_lower_into(KilnIRModule *ir, const KilnFunction *function, GError **error);

/* --- text --- */

void kiln_ir_print(const KilnIRFunction *function, GString *out);
void kiln_instr_print(const KilnInstr *instr, GString *out);
void kiln_instr_dump(const KilnInstr *instr); /* for gdb */
/** Prints functions, declarations and constants of @ir, which kiln_ir_module_parse() reads back. */
gboolean kiln_ir_module_print(const KilnIRModule *ir, const KilnPrintOptions *options, GString *out,
                              GError **error);
/** A file of graph, func, constants and declare blocks; every function is verified. */
KilnIRModule *kiln_ir_module_parse(const char *text, size_t length, const char *path,
                                   GError **error);

G_END_DECLS

#endif
