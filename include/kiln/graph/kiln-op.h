/* SPDX-License-Identifier: Apache-2.0 */
/* For authors of operators outside this tree: describe, find shapes, compute.
 *
 * A plug-in is a shared object with one function, and links to nothing:
 *
 *     #include <graph/kiln-op.h>
 *
 *     static gboolean infer(KilnOpShape *shape) { … }
 *     static const char *run(const KilnOpCall *call) { … }
 *
 *     static const KilnOpDescription operators[] = {
 *         { .size = sizeof(KilnOpDescription), .domain = "com.example", .name = "Scale",
 *           .first_opset = 1, .min_inputs = 1, .max_inputs = 1, .min_outputs = 1,
 *           .max_outputs = 1, .flags = KILN_OP_PURE, .infer = infer, .run = run },
 *     };
 *     KILN_OP_PLUGIN(operators)
 *
 * A program with operators of its own gives each to kiln_op_register() of kiln.h.
 *
 * Operators belong to the process. What is registered stays, and never changes: nodes that a model
 * has resolved mean the same for ever. Any thread may register, and load models, at any time. A
 * model sees the operators that are registered when it is loaded. A plug-in with operators is never
 * unloaded. docs/add-an-operator.md is the guide. */
#ifndef KILN_GRAPH_KILN_OP_H
#define KILN_GRAPH_KILN_OP_H

#include "graph/kiln-types.h"

G_BEGIN_DECLS

#define KILN_OP_API_VERSION 1

enum {
    KILN_OP_ANY_NUMBER = 255 /* of inputs or outputs */
};

/** A dim: a number, or an expression of the dims of the model's inputs. NULL: not known. */
typedef struct KilnDim KilnDim;
/** A question for the types of results. */
typedef struct KilnOpShape KilnOpShape;
/** A run of a kernel. */
typedef struct KilnOpCall KilnOpCall;
/** The attributes of a node, and defaults for those that it leaves out. */
typedef struct KilnOpAttributes KilnOpAttributes;

typedef enum {
    KILN_OP_ATTRIBUTE_INT,
    KILN_OP_ATTRIBUTE_FLOAT,
    KILN_OP_ATTRIBUTE_STRING,
    KILN_OP_ATTRIBUTE_INTS,
    KILN_OP_ATTRIBUTE_FLOATS,
    KILN_OP_ATTRIBUTE_STRINGS,
    KILN_OP_ATTRIBUTE_TENSOR,
} KilnOpAttributeKind;

/** An attribute that the operator reads. A node with others, or of other kinds, is an error. */
typedef struct {
    const char *name;
    KilnOpAttributeKind kind;
    gboolean required;          /* a node without it is an error */
    int64_t otherwise_int;      /* what a node has that leaves it out. Lists are empty, */
    float otherwise_float;      /* and tensors NULL */
    const char *otherwise_text; /* NULL: none */
} KilnOpAttribute;

/** A tensor of a run, row-major without gaps, aligned to its element. An element of type string is
 * a const KilnText *. Later versions may append fields. */
typedef struct {
    KilnDType dtype;
    int rank;
    const int64_t *dims;
    int64_t elements;
    void *data; /* of an input or attribute: not to be written */
} KilnOpTensor;

/** An output that may lie in the bytes of an input of the same type. The kernel then reads element
 * i of it before it writes element i, and no other element later. */
typedef struct {
    unsigned output, input;
} KilnOpInPlace;

enum {
    /* Equal inputs and attributes give equal outputs, and nothing else happens. Such nodes may be
     * computed before the run, once for several, or not at all. */
    KILN_OP_PURE = 1 << 0,
};

/** One operator. It and all that it points to must live as long as the process. */
typedef struct KilnOpDescription {
    size_t size;          /* sizeof(KilnOpDescription) */
    const char *domain;   /* "com.example" */
    const char *name;     /* op_type of the nodes */
    const char *summary;  /* for `kiln ops`; may be NULL */
    int first_opset;      /* of the domain, from 1 on */
    int last_opset;       /* 0: all later ones */
    unsigned min_inputs;  /* these are always there. Later ones may be left out, */
    unsigned max_inputs;  /* also between others */
    unsigned min_outputs; /* at least 1 */
    unsigned max_outputs;
    const KilnOpAttribute *attributes;
    unsigned n_attributes;
    const KilnOpInPlace *in_place;
    unsigned n_in_place;
    unsigned flags;
    /** Finds the types of all outputs. Any thread may call it, often. It depends on nothing but
     * @shape. FALSE: kiln_op_shape_fail() said why. */
    gboolean (*infer)(KilnOpShape *shape);
    /** Computes. Returns NULL, or a static text that says why it cannot. Several threads may call
     * it at the same time. It does not end the process, whatever the data are. */
    const char *(*run)(const KilnOpCall *call);
    /** Scratch bytes for a run on up to kiln_op_call_threads() threads. Tensors of @call have no
     * data. More threads never need less. NULL: none. */
    size_t (*scratch_bytes)(const KilnOpCall *call);
    /** Operations of a run, to choose its threads and for reports. Tensors of @call have no data.
     * NULL: one per element of output 0. */
    double (*cost)(const KilnOpCall *call);
    const void *data; /* for the functions, which get it back */
} KilnOpDescription;

typedef struct {
    uint32_t api_version;      /* KILN_OP_API_VERSION */
    uint32_t description_size; /* sizeof(KilnOpDescription) */
    const KilnOpDescription *operators;
    uint32_t n_operators;
} KilnOpPlugin;

/** The symbol `kiln_op_plugin`: it returns a table that lives as long as the process. A plug-in may
 * bring passes, too (passes/kiln-pass.h). */
typedef const KilnOpPlugin *(*KilnOpPluginFn)(void);
#define KILN_OP_PLUGIN_SYMBOL "kiln_op_plugin"

#define KILN_OP_PLUGIN(table)                                                                      \
    G_BEGIN_DECLS /* its name is the same in C++ */                                                \
        __attribute__((visibility("default"))) const KilnOpPlugin *                                \
        kiln_op_plugin(void);                                                                      \
    G_END_DECLS                                                                                    \
    const KilnOpPlugin *kiln_op_plugin(void)                                                       \
    {                                                                                              \
        static const KilnOpPlugin plugin = { KILN_OP_API_VERSION, sizeof(KilnOpDescription),       \
                                             table, G_N_ELEMENTS(table) };                         \
        return &plugin;                                                                            \
    }

/* --- shapes --- */

KILN_API const void *kiln_op_shape_data(const KilnOpShape *shape);
KILN_API const KilnOpAttributes *kiln_op_shape_attributes(const KilnOpShape *shape);
/** How many the node has, up to the last that is there. */
KILN_API unsigned kiln_op_shape_n_inputs(const KilnOpShape *shape);
KILN_API unsigned kiln_op_shape_n_outputs(const KilnOpShape *shape);
/** FALSE where input @i is left out. */
KILN_API gboolean kiln_op_shape_has_input(const KilnOpShape *shape, unsigned i);
/** The input must be there. A rank of -1 is not known. */
KILN_API KilnDType kiln_op_shape_input_dtype(const KilnOpShape *shape, unsigned i);
KILN_API int kiln_op_shape_input_rank(const KilnOpShape *shape, unsigned i);
/** Dim @d of input @i; NULL where it is not known. */
KILN_API const KilnDim *kiln_op_shape_input_dim(const KilnOpShape *shape, unsigned i, int d);
/** Element @k of the integers of input @i as a dim, where it is known before the run; else NULL. An
 * output whose dims depend on it has no known dims then. */
KILN_API const KilnDim *kiln_op_shape_input_element(const KilnOpShape *shape, unsigned i,
                                                    int64_t k);

/** Arithmetic on dims. NULL where an operand is NULL, or where the result is not certainly one
 * number. Divisors must be certainly 1 or more. */
KILN_API const KilnDim *kiln_op_shape_number(KilnOpShape *shape, int64_t number);
KILN_API const KilnDim *kiln_op_shape_add(KilnOpShape *shape, const KilnDim *a, const KilnDim *b);
KILN_API const KilnDim *kiln_op_shape_subtract(KilnOpShape *shape, const KilnDim *a,
                                               const KilnDim *b);
KILN_API const KilnDim *kiln_op_shape_multiply(KilnOpShape *shape, const KilnDim *a,
                                               const KilnDim *b);
KILN_API const KilnDim *kiln_op_shape_divide_down(KilnOpShape *shape, const KilnDim *a,
                                                  const KilnDim *b);
KILN_API const KilnDim *kiln_op_shape_divide_up(KilnOpShape *shape, const KilnDim *a,
                                                const KilnDim *b);
KILN_API const KilnDim *kiln_op_shape_min(KilnOpShape *shape, const KilnDim *a, const KilnDim *b);
KILN_API const KilnDim *kiln_op_shape_max(KilnOpShape *shape, const KilnDim *a, const KilnDim *b);
/** The extent of @a broadcast with @b, which are equal or 1. */
KILN_API const KilnDim *kiln_op_shape_broadcast(KilnOpShape *shape, const KilnDim *a,
                                                const KilnDim *b);
/** TRUE where @dim is the number *@out. */
KILN_API gboolean kiln_op_shape_is_number(const KilnDim *dim, int64_t *out);
/** TRUE where @a and @b certainly differ: the node is wrong. Open dims often may be equal. */
KILN_API gboolean kiln_op_shape_differ(KilnOpShape *shape, const KilnDim *a, const KilnDim *b);

/** States the type of output @i. A @rank of -1, and a dim of NULL, is not known. Such an output
 * cannot be computed, unless the model states the rest of its type. */
KILN_API void kiln_op_shape_set_output(KilnOpShape *shape, unsigned i, KilnDType dtype, int rank,
                                       const KilnDim *const *dims);
/** The same, with the dims of input @input. */
KILN_API void kiln_op_shape_set_output_like(KilnOpShape *shape, unsigned i, KilnDType dtype,
                                            unsigned input);
/** Says what is wrong with the node: `input 0: expected rank 2, found 3`. Always FALSE. */
KILN_API gboolean kiln_op_shape_fail(KilnOpShape *shape, const char *format, ...)
    G_GNUC_PRINTF(2, 3);

/* --- attributes: the description must have them, of that kind --- */

/** TRUE where the node states it. */
KILN_API gboolean kiln_op_attribute_is_stated(const KilnOpAttributes *attributes, const char *name);
KILN_API int64_t kiln_op_attribute_int(const KilnOpAttributes *attributes, const char *name);
KILN_API float kiln_op_attribute_float(const KilnOpAttributes *attributes, const char *name);
KILN_API const char *kiln_op_attribute_text(const KilnOpAttributes *attributes, const char *name);
KILN_API const int64_t *kiln_op_attribute_ints(const KilnOpAttributes *attributes, const char *name,
                                               unsigned *out_n);
KILN_API const float *kiln_op_attribute_floats(const KilnOpAttributes *attributes, const char *name,
                                               unsigned *out_n);
KILN_API const char *const *kiln_op_attribute_texts(const KilnOpAttributes *attributes,
                                                    const char *name, unsigned *out_n);
/** NULL where the node leaves it out. It has data in a run, elsewhere its type alone. */
KILN_API const KilnOpTensor *kiln_op_attribute_tensor(const KilnOpAttributes *attributes,
                                                      const char *name);

/* --- runs: these allocate nothing and take no lock --- */

KILN_API const void *kiln_op_call_data(const KilnOpCall *call);
KILN_API const KilnOpAttributes *kiln_op_call_attributes(const KilnOpCall *call);
KILN_API unsigned kiln_op_call_n_inputs(const KilnOpCall *call);
KILN_API unsigned kiln_op_call_n_outputs(const KilnOpCall *call);
/** NULL where it is left out. */
KILN_API const KilnOpTensor *kiln_op_call_input(const KilnOpCall *call, unsigned i);
KILN_API const KilnOpTensor *kiln_op_call_output(const KilnOpCall *call, unsigned i);
/** scratch_bytes() bytes, aligned to 64. */
KILN_API void *kiln_op_call_scratch(const KilnOpCall *call);
KILN_API int kiln_op_call_threads(const KilnOpCall *call);
/** Runs @task(@data, i, thread) for i of 0 … @n - 1, on up to kiln_op_call_threads() threads at the
 * same time. @thread is below that number, and tells parts of the scratch apart. Results must not
 * depend on it. */
typedef void (*KilnOpTask)(const void *data, int64_t i, int thread);
KILN_API void kiln_op_call_parallel(const KilnOpCall *call, int64_t n, KilnOpTask task,
                                    const void *data);
/** A text of @length bytes for an output of strings. The caller writes them through *@out_bytes.
 * NULL where memory ran out: then run() returns a text, too. Threads may call it. */
KILN_API const KilnText *kiln_op_call_new_text(const KilnOpCall *call, size_t length,
                                               char **out_bytes);

G_END_DECLS

#endif
