/* SPDX-License-Identifier: Apache-2.0 */
/* The type of a value: element type, shape, layout, quantization. Equal types agree in all four. */
#ifndef KILN_GRAPH_TYPE_H
#define KILN_GRAPH_TYPE_H

#include "graph/arena.h"
#include "graph/dim.h"
#include "graph/error.h"

#include <stdint.h>

G_BEGIN_DECLS

enum {
    KILN_MAX_RANK = 8,
    KILN_RANK_UNKNOWN = -1, /* printed f32[*]; specialisation makes it known */
    KILN_RANK_NONE = -2,    /* of the elements of a sequence that is certainly empty: f32[-] */
    KILN_DIM_UNKNOWN = -1,  /* a dim without a number; it may have an expression */
};

/** Scales and zero points: one pair per tensor (axis < 0) or one per index of @axis. */
typedef struct {
    int axis;
    uint32_t n;
    const float *scales;
    const int32_t *zero_points;
} KilnQuant;

/** Layout and quantization are borrowed. They live in the arena of the module or IR function that
 * owns the type. kiln_type_copy copies a type into another arena. Expressions of open dims live in
 * the module's table, which copies of the module share. */
typedef struct {
    KilnDType dtype;
    int rank;
    const KilnQuant *quant;
    const char *layout; /* NULL: plain row-major; else a blocked tag such as "aBcd16b" */
    const struct KilnContents *contents; /* of a sequence, optional or map; else NULL */
    int64_t dims[KILN_MAX_RANK];
    const KilnDim *open[KILN_MAX_RANK]; /* of an open dim. The graph has no number for it, and the
                                           IR has the number at one binding. NULL: the number
                                           holds, or nothing is known ("?") */
} KilnType;

/** What a sequence, optional or map has: the type of all its elements, or of the values of a map,
 * which are scalars. A sequence has rank 0, like all values of these types. Dims in which elements
 * may differ are not known, and have no expression. */
typedef struct KilnContents {
    KilnType type;
    KilnDType key; /* of a map: i64 or string */
} KilnContents;

/* --- element types --- */

bool kiln_dtype_from_name(const char *name, KilnDType *out);
/** The number of onnx.TensorProto.DataType, both ways. */
int kiln_dtype_to_onnx(KilnDType dtype);
bool kiln_dtype_from_onnx(int number, KilnDType *out);
bool kiln_dtype_is_float(KilnDType dtype);
/** f16 and bf16. */
bool kiln_dtype_is_half(KilnDType dtype);
/** The floats of 4, 6 and 8 bits. */
bool kiln_dtype_is_low_float(KilnDType dtype);
/** Bits of an element that count: fewer than eight for some types whose elements take a byte. 0 for
 * string. */
unsigned kiln_dtype_bits(KilnDType dtype);
/** i8…u64 and the integers of 2 and 4 bits, not bool. */
bool kiln_dtype_is_integer(KilnDType dtype);
bool kiln_dtype_is_signed(KilnDType dtype);
/** sequence, optional, map. */
bool kiln_dtype_is_item(KilnDType dtype);
/** Types whose elements are addresses: string and those of items. */
bool kiln_dtype_is_address(KilnDType dtype);

/* --- types --- */

KilnType kiln_type_make(KilnDType dtype, int rank, const int64_t *dims);
KilnType kiln_type_scalar(KilnDType dtype);
KilnType kiln_type_unranked(KilnDType dtype);
/** A sequence or optional of @element, in @arena. */
KilnType kiln_type_of_items(KilnArena *arena, KilnDType dtype, const KilnType *element);
/** A map from @key to @value. */
KilnType kiln_type_of_map(KilnArena *arena, KilnDType key, KilnDType value);
/** The type of the elements of a sequence or optional. */
static inline const KilnType *
kiln_type_element(const KilnType *type)
{
    return &type->contents->type;
}
bool kiln_type_equal(const KilnType *a, const KilnType *b);
/** Equal parameters, bit by bit; both may be NULL. */
bool kiln_quant_equal(const KilnQuant *a, const KilnQuant *b);
/** Fails with KILN_ERROR_TYPE if the quantization of @type does not fit the rest of it. */
gboolean kiln_quant_check(const KilnType *type, GError **error);
/** True if rank and dims of both have the same text form. Two dims that are not known count as
 * equal. */
bool kiln_type_same_shape(const KilnType *a, const KilnType *b);
/** True if the rank and every dim are numbers. */
bool kiln_type_is_static(const KilnType *type);
/** True if dim @d is a number or an expression. */
static inline bool
kiln_type_knows_dim(const KilnType *type, int d)
{
    return type->dims[d] >= 0 || type->open[d];
}
/** True if some dim has an expression. */
static inline bool
kiln_type_is_open(const KilnType *type)
{
    bool open = false;
    for (int d = 0; d < type->rank; d++)
        open |= type->open[d] != NULL;
    return open;
}
/** @type with its numbers alone, without expressions. */
KilnType kiln_type_numbers(const KilnType *type);
/** True if the rank is known, and every dim is a number or an expression. */
bool kiln_type_is_known(const KilnType *type);
/** True if dim @d of @a and dim @e of @b are certainly equal: one number, or one expression. */
bool kiln_type_equal_dims(const KilnType *a, int d, const KilnType *b, int e);
/** True if ranks and all dims are certainly equal. A dim that is not known equals no other dim. */
bool kiln_type_equal_shape(const KilnType *a, const KilnType *b);
/** True if both certainly have as many elements. */
bool kiln_type_same_elements(const KilnType *a, const KilnType *b);
/** @type with a likely number in place of each open dim. Only costs may depend on it. */
KilnType kiln_type_at_hints(const KilnType *type);
/** The name of dim @d; NULL if the dim is a number, unknown, or another expression. */
const char *kiln_type_dim_name(const KilnType *type, int d);
/** Bounds of dim @d, as kiln_dim_range() has them; equal for a number. */
void kiln_type_dim_range(const KilnType *type, int d, int64_t *lo, int64_t *hi);
/** Gives dim @d the number or the expression @dim; NULL: not known. */
void kiln_type_set_dim(KilnType *type, int d, const KilnDim *dim);
/** Dim @d as an expression of @table; NULL where it is not known. */
const KilnDim *kiln_type_dim(const KilnType *type, int d, KilnDimTable *table);
/** Elements of a static type. -1 if a dim is not known, or if the product of the dims that are not
 * zero overflows. So a product of some of the dims never overflows if the type has a size. */
int64_t kiln_type_elements(const KilnType *type);
/** Elements with likely numbers in place of open dims, for costs. -1 as above, or if the rank is
 * not known. */
int64_t kiln_type_likely_elements(const KilnType *type);
/** Payload bytes of a static type, with the padding of a blocked layout; -1 if not known or too
 * many. */
int64_t kiln_type_bytes(const KilnType *type);
/** False if @from cannot broadcast to @to, aligned at the last dim. Unknown extents may. Both ranks
 * must be known. */
bool kiln_type_may_broadcast(const KilnType *from, const KilnType *to);
/** Maps @axis from [-rank, rank) to [0, rank). -1 if it is out of range. */
int kiln_type_axis(const KilnType *type, int64_t axis);
/** Copies @type and all that it borrows into @arena. */
KilnType kiln_type_copy(KilnArena *arena, const KilnType *type);

/** Appends the text form: `f32[2,N,3]`, `i8[2,3] q(0.1,3)`, `f32[1,64,56,56]:aBcd16b`,
 * `sequence(f32[?,3])`, `map(i64,f32)`. */
void kiln_type_print(const KilnType *type, GString *out);
/** Appends element type and quantization only: `f32`, `i8 q(0.1,3)`. */
void kiln_type_print_element(const KilnType *type, GString *out);
/** The text form as a new string, for messages. */
char *kiln_type_to_string(const KilnType *type);

/** The physical dims of a blocked layout: aBcd16b of [1,60,7,7] gives [1,4,7,7,16]. A tag names
 * every dim once, in order of memory. A capital letter is a dim with blocks. A number with a letter
 * is a block of that dim. */
gboolean kiln_layout_physical(const KilnType *type, int *out_rank,
                              int64_t out_dims[2 * KILN_MAX_RANK], GError **error);

G_END_DECLS

#endif
