/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, error codes and symbol visibility: the public header and the inside of Kiln share
 * them. Installed beside kiln.h, which includes it. */
#ifndef KILN_GRAPH_KILN_TYPES_H
#define KILN_GRAPH_KILN_TYPES_H

#include <glib.h>
#include <stddef.h>
#include <stdint.h>

G_BEGIN_DECLS

#if defined(KILN_BUILDING)
#define KILN_API __attribute__((visibility("default")))
#else
#define KILN_API extern
#endif

/** A text: @length bytes of UTF-8, any of which may be zero. An element of type string is the
 * address of one, which is never written. NULL stands for the empty text. */
typedef struct {
    const char *text;
    size_t length;
} KilnText;

/** A tensor, a sequence of items, an optional or a map. An element of type sequence, optional or
 * map is the address of one, which is never written: see graph/item.h. NULL stands for an empty
 * one. */
typedef struct KilnItem KilnItem;

/* X(id, number in onnx.TensorProto.DataType, or below 0, bytes per element, class) */
// clang-format off
#define KILN_DTYPE_MAP(X) \
    X(f32,     1, 4, FLOAT)    \
    X(f64,    11, 8, FLOAT)    \
    X(f16,    10, 2, FLOAT)    \
    X(bf16,   16, 2, FLOAT)    \
    X(i8,      3, 1, SIGNED)   \
    X(i16,     5, 2, SIGNED)   \
    X(i32,     6, 4, SIGNED)   \
    X(i64,     7, 8, SIGNED)   \
    X(u8,      2, 1, UNSIGNED) \
    X(u16,     4, 2, UNSIGNED) \
    X(u32,    12, 4, UNSIGNED) \
    X(u64,    13, 8, UNSIGNED) \
    X(bool,    9, 1, BOOL)     \
    X(string,  8, sizeof(const KilnText *), STRING) \
    X(sequence, -1, sizeof(const KilnItem *), ITEM) \
    X(optional, -2, sizeof(const KilnItem *), ITEM) \
    X(map,      -3, sizeof(const KilnItem *), ITEM) \
    X(f8e4m3fn,   17, 1, FLOAT)  \
    X(f8e4m3fnuz, 18, 1, FLOAT)  \
    X(f8e5m2,     19, 1, FLOAT)  \
    X(f8e5m2fnuz, 20, 1, FLOAT)  \
    X(f8e8m0,     24, 1, FLOAT)  \
    X(f6e2m3,     27, 1, FLOAT)  \
    X(f6e3m2,     28, 1, FLOAT)  \
    X(f4e2m1,     23, 1, FLOAT)  \
    X(i4,         22, 1, SIGNED)   \
    X(u4,         21, 1, UNSIGNED) \
    X(i2,         26, 1, SIGNED)   \
    X(u2,         25, 1, UNSIGNED)
/* X(id, bits): the types whose elements have fewer bits than their byte. */
#define KILN_FEW_BITS_MAP(X) \
    X(f6e2m3, 6) X(f6e3m2, 6) X(f4e2m1, 4) X(i4, 4) X(u4, 4) X(i2, 2) X(u2, 2)
// clang-format on

/** Element types. The suffix is the spelling in the text form. */
typedef enum {
#define X(id, onnx, size, class_) KILN_DTYPE_##id,
    KILN_DTYPE_MAP(X)
#undef X
    KILN_N_DTYPES
} KilnDType;

/** "f32", "i64", … */
KILN_API const char *kiln_dtype_name(KilnDType dtype);
/** Bytes per element; those of an address for string. An element of 2, 4 or 6 bits lies in the low
 * bits of a byte of its own, as ml_dtypes has it. Results have zeros in the other bits, and
 * operands may have any. Only the bytes of a literal in a model file are packed, as ONNX packs
 * them. */
KILN_API size_t kiln_dtype_size(KilnDType dtype);

/* X(id, sentence): the table of errors. */
// clang-format off
#define KILN_ERROR_MAP(X) \
    X(IO,          "a file cannot be read or written")              \
    X(FORMAT,      "a file is malformed")                           \
    X(PARSE,       "text does not parse")                           \
    X(INVALID,     "a graph or function breaks a rule")             \
    X(TYPE,        "element types do not fit")                      \
    X(SHAPE,       "shapes do not fit")                             \
    X(UNSUPPORTED, "an operator, type or form is not supported")    \
    X(USAGE,       "an argument or option is wrong")                \
    X(PIPELINE,    "a pipeline file or text is wrong")              \
    X(PASS,        "a pass failed")                                 \
    X(LIMIT,       "a cap or budget was hit")                       \
    X(MEMORY,      "memory could not be had")                       \
    X(MISMATCH,    "results differ from what was expected")         \
    X(RUN,         "an instruction failed while it ran")            \
    X(CANCELLED,   "the caller cancelled")
// clang-format on

/** Codes of the one error domain, KILN_ERROR. */
typedef enum {
#define X(id, sentence) KILN_ERROR_##id,
    KILN_ERROR_MAP(X)
#undef X
    KILN_N_ERRORS
} KilnError;

#define KILN_ERROR (kiln_error_quark())

/** The domain of every GError that Kiln sets. */
KILN_API GQuark kiln_error_quark(void);

/* X(field, its number in onnx.ModelProto): facts that a model's file states about itself. */
#define KILN_METADATA_TEXTS(X)                                                                     \
    X(producer_name, 2)                                                                            \
    X(producer_version, 3)                                                                         \
    X(domain, 4)                                                                                   \
    X(doc_string, 6)
#define KILN_METADATA_NUMBERS(X)                                                                   \
    X(ir_version, 1)                                                                               \
    X(model_version, 5)

/** A set of operators that a model uses. "" is ONNX's own set. */
typedef struct {
    const char *domain;
    int64_t version;
} KilnOpset;

/** One of ONNX's metadata_props. */
typedef struct {
    const char *key, *value;
} KilnProperty;

/** Facts that a model's file states about itself. They do not change any result. Texts are UTF-8. A
 * missing text is "", a missing number 0. Later versions may append fields. */
typedef struct {
    const char *graph_name;
#define X(field, number) const char *field;
    KILN_METADATA_TEXTS(X)
#undef X
#define X(field, number) int64_t field;
    KILN_METADATA_NUMBERS(X)
#undef X
    unsigned n_opsets, n_properties;
    const KilnOpset *opsets;        /* in the file's order */
    const KilnProperty *properties; /* the same */
} KilnMetadata;

/** The value of property @key; the last one if several have this key. NULL if there is none. */
KILN_API const char *kiln_metadata_property(const KilnMetadata *metadata, const char *key);

/** A part of the work of a thread pool. */
typedef void (*KilnParallelTask)(void *task_data, int i);
/** A thread pool of the caller. Calls @task(@task_data, i) once for each i of 0 … @n - 1, on any
 * threads and in any order. Returns when all calls have returned. Calls of different runs may
 * overlap. Results have the same bits as without a pool. */
typedef void (*KilnParallelFor)(void *pool, int n, KilnParallelTask task, void *task_data);

G_END_DECLS

#endif
