/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: the payload of constants, inputs and outputs. Bytes may be a map of a model file. Splats
 * and seeded generators need no storage until code asks for their bytes. */
#ifndef KILN_GRAPH_TENSOR_H
#define KILN_GRAPH_TENSOR_H

#include "graph/kiln-items.h"
#include "graph/type.h"

G_BEGIN_DECLS

typedef enum {
    KILN_TENSOR_DATA,    /* row-major little-endian payload; maybe misaligned: kiln_tensor_view */
    KILN_TENSOR_PACKED,  /* elements of 2, 4 or 6 bits in a row: kiln_packed_bytes() */
    KILN_TENSOR_SPLAT,   /* every element equal */
    KILN_TENSOR_NORMAL,  /* normal numbers with mean 0 and a standard deviation, from a seed */
    KILN_TENSOR_UNIFORM, /* uniform numbers of [low, high), from a seed */
    KILN_TENSOR_IOTA,    /* 0, 1, 2, … */
    KILN_TENSOR_SPARSE,  /* a sparse payload that a text does not hold */
    KILN_TENSOR_EXTERN,  /* a program file has the bytes, packed for its kernels */
} KilnTensorKind;

/** Immutable. It has a shape and an element type only. Quantization and layout belong to the type
 * of the value. Elements of type string live as long as the tensor and its bytes: whoever makes a
 * tensor of them copies their texts. */
typedef struct {
    KilnTensorKind kind;
    KilnType type;         /* static, plain, unquantized */
    GBytes *bytes;         /* DATA, PACKED; SPLAT of a string: what holds it; else NULL */
    uint8_t splat[8];      /* SPLAT: one element */
    uint64_t seed;         /* NORMAL, UNIFORM */
    double std, low, high; /* NORMAL: std; UNIFORM: low, high */
    char *file;            /* the file of the bytes; NULL: computed */
    int64_t file_offset;
    bool mapped; /* they are a private read-only map of a file: kiln_tensor_drop_pages */
} KilnTensor;

void kiln_tensor_free(KilnTensor *tensor);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnTensor, kiln_tensor_free)

/** Makes another handle on the same payload. */
KilnTensor *kiln_tensor_copy(const KilnTensor *tensor);

/** Takes a reference to @bytes, or copies strings. KILN_ERROR_SHAPE if their size is not that of
 * @type. */
KilnTensor *kiln_tensor_new_data(const KilnType *type, GBytes *bytes, GError **error);
/** Takes a reference to @bytes, as files store them: PACKED for a type of fewer than 8 bits, else
 * DATA. Strings are stored as kiln_texts_store() does, and copied. KILN_ERROR_SHAPE if their size
 * is not kiln_tensor_stored_bytes(). */
KilnTensor *kiln_tensor_new_stored(const KilnType *type, GBytes *bytes, GError **error);
/** The size of that; -1 if it is not known or too big, or if strings decide it. */
int64_t kiln_tensor_stored_bytes(const KilnType *type);
/** @tensor as files store its elements: its own bytes, if they are such. */
GBytes *kiln_tensor_stored(const KilnTensor *tensor, GError **error);
/** Takes @tensor over, and returns it or an equal one that is smaller: for computed tensors. It
 * becomes a splat if it stores several elements with the same bits. Elements of fewer than 8 bits
 * are packed. NULL stays NULL. */
KilnTensor *kiln_tensor_compact(KilnTensor *tensor);
/** Copies @data, which holds the bytes of @type. */
KilnTensor *kiln_tensor_new_copy(const KilnType *type, const void *data, GError **error);
/** A tensor whose elements are all @value, rounded to the element type. */
KilnTensor *kiln_tensor_new_splat(const KilnType *type, double value);
KilnTensor *kiln_tensor_new_splat_bits(const KilnType *type, const void *element);
KilnTensor *kiln_tensor_new_normal(const KilnType *type, uint64_t seed, double std);
KilnTensor *kiln_tensor_new_uniform(const KilnType *type, uint64_t seed, double low, double high);
KilnTensor *kiln_tensor_new_iota(const KilnType *type);
/** A tensor that stands for a sparse payload, which is not read. */
KilnTensor *kiln_tensor_new_sparse(const KilnType *type);
/** A tensor that stands for a payload that the text does not hold. */
KilnTensor *kiln_tensor_new_extern(const KilnType *type);
/** True if elements can be read: not for sparse and extern tensors. */
static inline bool
kiln_tensor_is_readable(const KilnTensor *tensor)
{
    return tensor->kind != KILN_TENSOR_SPARSE && tensor->kind != KILN_TENSOR_EXTERN;
}
/** Copies @n texts. KILN_ERROR_SHAPE if there is not one per element, KILN_ERROR_FORMAT if one is
 * not UTF-8. */
KilnTensor *kiln_tensor_new_texts(const KilnType *type, const KilnText *texts, size_t n,
                                  GError **error);

/** A tensor of rank 0 whose one element is @item, which it becomes an owner of. NULL: an empty one.
 */
KilnTensor *kiln_tensor_new_item(const KilnType *type, KilnItem *item);
/** The element of a tensor of type sequence, optional or map, which owns it. NULL: an empty one. */
KilnItem *kiln_tensor_item(const KilnTensor *tensor);

/** Bytes of a DATA or PACKED payload; 0 for kinds that need no storage. */
int64_t kiln_tensor_storage(const KilnTensor *tensor);

/** The payload as aligned bytes. A DATA payload that is aligned is borrowed. Other bytes are
 * copied or generated for the caller. Fails with KILN_ERROR_MEMORY, or KILN_ERROR_UNSUPPORTED if
 * @tensor is not readable. */
GBytes *kiln_tensor_view(const KilnTensor *tensor, GError **error);

/** Tells that the payload is not read again soon. Pages that are mapped from a file leave the
 * process, not the page cache. A later read brings them back. Does nothing for other memory. */
void kiln_tensor_drop_pages(const KilnTensor *tensor);

/** Writes all elements to @out, which has kiln_type_bytes() bytes. */
gboolean kiln_tensor_write(const KilnTensor *tensor, void *out, GError **error);

/** kiln_tensor_write() of a DATA payload that nobody reads again soon. Pages of a file leave the
 * process during the copy, so that few of them occupy memory beside the copy. */
void kiln_tensor_drain(const KilnTensor *tensor, void *out);

/** True if types and bits are equal, for any kinds. False if one tensor cannot be read. */
bool kiln_tensor_equal(const KilnTensor *a, const KilnTensor *b);
/** Of a tensor of strings that can be read: of the first texts, wherever they lie. Equal tensors
 * have equal ones. */
uint64_t kiln_tensor_hash_texts(const KilnTensor *tensor);

/** True if all elements are known to have the same bits, which go to @element. Reads at most
 * @max_elements elements of a DATA payload. */
bool kiln_tensor_is_splat(const KilnTensor *tensor, int64_t max_elements, uint8_t element[8]);

G_END_DECLS

#endif
