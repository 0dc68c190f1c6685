/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors: payload of constants, inputs and outputs. Bytes may be a map of a model file; splats and
 * seeded generators need no storage until something asks for their bytes. */
#ifndef KILN_GRAPH_TENSOR_H
#define KILN_GRAPH_TENSOR_H

#include "graph/type.h"

G_BEGIN_DECLS

typedef enum {
    KILN_TENSOR_DATA, /* row-major little-endian payload; possibly misaligned (see kiln_tensor_view)
                       */
    KILN_TENSOR_SPLAT,   /* every element equal */
    KILN_TENSOR_NORMAL,  /* normal numbers with mean 0 and a standard deviation, from a seed */
    KILN_TENSOR_UNIFORM, /* uniform numbers of [low, high), from a seed */
    KILN_TENSOR_IOTA,    /* 0, 1, 2, … */
    KILN_TENSOR_SPARSE,  /* a sparse initializer: known to be there, not supported */
    KILN_TENSOR_STRINGS, /* elements are texts */
    KILN_TENSOR_EXTERN,  /* a program file has the bytes, packed for its kernels */
} KilnTensorKind;

/** Immutable once made. Shape and element type only: quantization and layout belong to the value's
 * type. */
typedef struct {
    KilnTensorKind kind;
    KilnType type;         /* static, plain, unquantized */
    GBytes *bytes;         /* DATA */
    uint8_t splat[8];      /* SPLAT: one element */
    uint64_t seed;         /* NORMAL, UNIFORM */
    double std, low, high; /* NORMAL: std; UNIFORM: low, high */
    char **strings;        /* STRINGS: NULL-terminated */
    char *file;            /* where DATA lies on disk, or NULL where it was computed */
    int64_t file_offset;
    bool mapped; /* DATA lies in a private read-only map of a file: see kiln_tensor_drop_pages */
} KilnTensor;

void kiln_tensor_free(KilnTensor *tensor);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnTensor, kiln_tensor_free)

/** Another handle on the same payload. */
KilnTensor *kiln_tensor_copy(const KilnTensor *tensor);

/** Takes a reference on @bytes, whose size must be that of @type (KILN_ERROR_SHAPE otherwise). */
KilnTensor *kiln_tensor_new_data(const KilnType *type, GBytes *bytes, GError **error);
/** Takes @tensor over and returns it, or a splat in its place where it stores several elements that
 * all have the same bits: for what was computed. NULL stays NULL. */
KilnTensor *kiln_tensor_compact(KilnTensor *tensor);
/** Copies @data, which holds the bytes of @type. */
KilnTensor *kiln_tensor_new_copy(const KilnType *type, const void *data, GError **error);
/** Every element is @value rounded to the element type. */
KilnTensor *kiln_tensor_new_splat(const KilnType *type, double value);
KilnTensor *kiln_tensor_new_splat_bits(const KilnType *type, const void *element);
KilnTensor *kiln_tensor_new_normal(const KilnType *type, uint64_t seed, double std);
KilnTensor *kiln_tensor_new_uniform(const KilnType *type, uint64_t seed, double low, double high);
KilnTensor *kiln_tensor_new_iota(const KilnType *type);
/** Stands for a payload in a sparse form, which is not read. */
KilnTensor *kiln_tensor_new_sparse(const KilnType *type);
/** Stands for a payload that the text does not hold. */
KilnTensor *kiln_tensor_new_extern(const KilnType *type);
/** True where elements can be read: of no sparse, string or extern tensor. */
static inline bool
kiln_tensor_is_readable(const KilnTensor *tensor)
{
    return tensor->kind != KILN_TENSOR_SPARSE && tensor->kind != KILN_TENSOR_STRINGS &&
           tensor->kind != KILN_TENSOR_EXTERN;
}
/** Takes @strings over: NULL-terminated, one per element (KILN_ERROR_SHAPE otherwise). */
KilnTensor *kiln_tensor_new_strings(const KilnType *type, char **strings, GError **error);

/** Bytes that a DATA payload occupies; 0 for what needs no storage. */
int64_t kiln_tensor_storage(const KilnTensor *tensor);

/** The payload as aligned bytes: borrowed where a DATA payload is aligned already, else made
 * (copied or generated) for the caller. Fails with KILN_ERROR_MEMORY, or KILN_ERROR_UNSUPPORTED for
 * what is not readable. */
GBytes *kiln_tensor_view(const KilnTensor *tensor, GError **error);

/** The payload is not read again soon: where it is mapped from a file, its pages leave the process
 * (not the page cache) and come back when something reads them after all. Does nothing for memory
 * of any other kind. */
void kiln_tensor_drop_pages(const KilnTensor *tensor);

/** Writes all elements to @out, kiln_type_bytes() big. */
gboolean kiln_tensor_write(const KilnTensor *tensor, void *out, GError **error);

/** kiln_tensor_write() of a DATA payload that nothing else reads soon: pages of a file leave the
 * process while they are copied, so that few of them are there beside the copy. */
void kiln_tensor_drain(const KilnTensor *tensor, void *out);

/** Equal type and equal bits, whatever the kinds; false where one cannot be read. */
bool kiln_tensor_equal(const KilnTensor *a, const KilnTensor *b);

/** True where all elements are known to have the same bits; stores them in @element. Looks at the
 * bytes of at most @max_elements elements of a DATA payload. */
bool kiln_tensor_is_splat(const KilnTensor *tensor, int64_t max_elements, uint8_t element[8]);

G_END_DECLS

#endif
