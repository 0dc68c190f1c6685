/* SPDX-License-Identifier: Apache-2.0 */
/* Prototypes, elements and indices for the reference kernels.
 *
 * The reference backend promises for every element type:
 *  - Floats: an operation is evaluated in double, and its result is rounded once to the element
 *    type. For f32 and + - * / sqrt the bits are those of IEEE single arithmetic, because a
 *    double has more than twice the digits. Sums and products over many elements are accumulated
 *    in double and rounded once. Functions of libm are correctly rounded, except in rare ties.
 *    f16 rounds from the double directly, bf16 through f32.
 *  - Integers wrap in two's complement. Division truncates. Division by zero is an error text.
 *  - A bool is 0 or 1 in a byte. Any other value reads as 1.
 * A kernel that computes otherwise says so at its top. */
#ifndef KILN_BACKENDS_REF_KERNEL_H
#define KILN_BACKENDS_REF_KERNEL_H

#include "graph/base/number.h"
#include "ir/target.h"

#include <string.h>

#define KERNEL(instr, dtypes, fn) const char *kiln_ref_##fn(const KilnKernelArgs *args);
#define KERNEL_IF(instr, dtypes, fn, test)                                                         \
    KERNEL(instr, dtypes, fn) bool kiln_ref_##test(const KilnInstr *instr_);
#define KERNEL_SCRATCH(instr, dtypes, fn, bytes)                                                   \
    KERNEL(instr, dtypes, fn)                                                                      \
    size_t kiln_ref_##bytes(const KilnInstr *instr_, uint32_t form, int threads);
#define KERNEL_PREPARED(instr, dtypes, fn)                                                         \
    KERNEL(instr, dtypes, fn)                                                                      \
    size_t kiln_ref_##fn##_scratch(const KilnInstr *instr_, uint32_t form, int threads);           \
    size_t kiln_ref_##fn##_prepared(const KilnInstr *instr_);                                      \
    void kiln_ref_##fn##_prepare(const KilnInstr *instr_, void *prepared);
#define KERNEL_REDUCES(instr, dtypes, fn)                                                          \
    KERNEL(instr, dtypes, fn)                                                                      \
    bool kiln_ref_##fn##_equal(const KilnInstr *instr_, const void *element, void *result);
#include "backends/ref/kernels.def"

/* --- operands --- */

static inline bool
ref_has(const KilnKernelArgs *args, uint32_t i)
{
    return i < args->instr->n_operands && args->instr->operands[i].buffer;
}

/** Returns the type of operand @i, which must be present. */
static inline const KilnType *
ref_type(const KilnKernelArgs *args, uint32_t i)
{
    return &args->instr->operands[i].buffer->type;
}

static inline int64_t
ref_elements(const KilnType *type)
{
    return kiln_type_elements(type);
}

/* --- elements --- */

/** An element, widened for operations. */
typedef union {
    double f;   /* floats */
    int64_t s;  /* i8…i64 */
    uint64_t u; /* u8…u64, bool */
} RefValue;

typedef enum {
    REF_FLOAT,
    REF_SIGNED,
    REF_UNSIGNED,
} RefClass;

static inline RefClass
ref_class(KilnDType dtype)
{
    if (kiln_dtype_is_float(dtype))
        return REF_FLOAT;
    return kiln_dtype_is_signed(dtype) ? REF_SIGNED : REF_UNSIGNED;
}

/** Loads element @i of an array of floats. */
static inline double
ref_load_float(KilnDType dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case KILN_DTYPE_f32:
        return ((const float *)data)[i];
    case KILN_DTYPE_f64:
        return ((const double *)data)[i];
    case KILN_DTYPE_f16:
        return kiln_f16_to_f32(((const uint16_t *)data)[i]);
    case KILN_DTYPE_bf16:
        return kiln_bf16_to_f32(((const uint16_t *)data)[i]);
    default:
        return kiln_low_float_to_f32(dtype, ((const uint8_t *)data)[i]);
    }
}

static inline void
ref_store_float(KilnDType dtype, void *data, int64_t i, double value)
{
    switch (dtype) {
    case KILN_DTYPE_f32:
        ((float *)data)[i] = (float)value;
        break;
    case KILN_DTYPE_f64:
        ((double *)data)[i] = value;
        break;
    case KILN_DTYPE_f16:
        ((uint16_t *)data)[i] = kiln_f64_to_f16(value);
        break;
    case KILN_DTYPE_bf16:
        ((uint16_t *)data)[i] = kiln_f32_to_bf16((float)value);
        break;
    default:
        kiln_element_store_f64(dtype, data, i, value);
        break;
    }
}

/** Loads element @i of an array of integers or bools. A u64 from 2^63 on becomes negative. */
static inline int64_t
ref_load_int(KilnDType dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case KILN_DTYPE_i8:
        return ((const int8_t *)data)[i];
    case KILN_DTYPE_i16:
        return ((const int16_t *)data)[i];
    case KILN_DTYPE_i32:
        return ((const int32_t *)data)[i];
    case KILN_DTYPE_u8:
        return ((const uint8_t *)data)[i];
    case KILN_DTYPE_u16:
        return ((const uint16_t *)data)[i];
    case KILN_DTYPE_u32:
        return ((const uint32_t *)data)[i];
    case KILN_DTYPE_bool:
        return ((const uint8_t *)data)[i] != 0;
    case KILN_DTYPE_i4:
    case KILN_DTYPE_u4:
    case KILN_DTYPE_i2:
    case KILN_DTYPE_u2:
        return kiln_element_as_i64(dtype, data, i);
    default:
        return ((const int64_t *)data)[i];
    }
}

/** Stores the low bits of @value. A bool is true if any bit is set. */
static inline void
ref_store_int(KilnDType dtype, void *data, int64_t i, int64_t value)
{
    switch (dtype) {
    case KILN_DTYPE_bool:
        ((uint8_t *)data)[i] = value != 0;
        break;
    case KILN_DTYPE_i8:
    case KILN_DTYPE_u8:
        ((uint8_t *)data)[i] = (uint8_t)value;
        break;
    case KILN_DTYPE_i4:
    case KILN_DTYPE_u4:
        ((uint8_t *)data)[i] = value & 15;
        break;
    case KILN_DTYPE_i2:
    case KILN_DTYPE_u2:
        ((uint8_t *)data)[i] = value & 3;
        break;
    case KILN_DTYPE_i16:
    case KILN_DTYPE_u16:
        ((uint16_t *)data)[i] = (uint16_t)value;
        break;
    case KILN_DTYPE_i32:
    case KILN_DTYPE_u32:
        ((uint32_t *)data)[i] = (uint32_t)value;
        break;
    default:
        ((uint64_t *)data)[i] = (uint64_t)value;
        break;
    }
}

static inline RefValue
ref_load(KilnDType dtype, const void *data, int64_t i)
{
    if (kiln_dtype_is_float(dtype))
        return (RefValue){ .f = ref_load_float(dtype, data, i) };
    return (RefValue){ .s = ref_load_int(dtype, data, i) };
}

/** Rounds floats to the element type, wraps integers. */
static inline void
ref_store(KilnDType dtype, void *data, int64_t i, RefValue value)
{
    if (kiln_dtype_is_float(dtype))
        ref_store_float(dtype, data, i, value.f);
    else
        ref_store_int(dtype, data, i, value.s);
}

/** Truncates towards zero and saturates. NaN gives 0. */
static inline int64_t
ref_truncate_signed(double value)
{
    if (!(value > -0x1p63))
        return value != value ? 0 : INT64_MIN;
    return value >= 0x1p63 ? INT64_MAX : (int64_t)value;
}

static inline uint64_t
ref_truncate_unsigned(double value)
{
    if (!(value > 0))
        return 0;
    return value >= 0x1p64 ? UINT64_MAX : (uint64_t)value;
}

/** Copies element @from of @source to element @to of @target. An element has @size bytes. */
static inline void
ref_copy_element(void *target, int64_t to, const void *source, int64_t from, size_t size)
{
    memcpy((char *)target + (size_t)to * size, (const char *)source + (size_t)from * size, size);
}

/** Returns the address of element @i. */
static inline const void *
ref_at(const void *data, int64_t i, size_t size)
{
    return (const char *)data + i * (int64_t)size;
}

static inline void *
ref_at_out(void *data, int64_t i, size_t size)
{
    return (char *)data + i * (int64_t)size;
}

/* --- indices: arrays of KILN_MAX_RANK, row-major, the last dim fastest --- */

/** Computes the elements between neighbours along each dim. */
static inline void
ref_strides(const KilnType *type, int64_t strides[KILN_MAX_RANK])
{
    int64_t step = 1;
    for (int d = type->rank - 1; d >= 0; d--) {
        strides[d] = step;
        step *= type->dims[d];
    }
}

/** Computes strides that read @type as if broadcast to @to (numpy: dims aligned at the right). */
static inline void
ref_broadcast_strides(const KilnType *type, const KilnType *to, int64_t strides[KILN_MAX_RANK])
{
    int64_t step = 1;
    for (int d = to->rank - 1; d >= 0; d--) {
        int from = d - (to->rank - type->rank);
        int64_t dim = from < 0 ? 1 : type->dims[from];
        strides[d] = dim == 1 ? 0 : step;
        step *= dim;
    }
}

/** Returns the element of @type that is read for element @index of a result of @rank dims. @type is
 * broadcast to that result. */
static inline int64_t
ref_broadcast_offset(const KilnType *type, const int64_t *index, int rank)
{
    int64_t offset = 0;
    const int64_t *at = index + (rank - type->rank);
    for (int d = 0; d < type->rank; d++)
        offset = offset * type->dims[d] + (type->dims[d] == 1 ? 0 : at[d]);
    return offset;
}

/** Moves @index to the next element of @dims. After the last it returns false and resets @index. */
static inline bool
ref_next(int64_t *index, const int64_t *dims, int rank)
{
    for (int d = rank - 1; d >= 0; d--) {
        if (++index[d] < dims[d])
            return true;
        index[d] = 0;
    }
    return false;
}

static inline int64_t
ref_offset(const int64_t *index, const int64_t *strides, int rank)
{
    int64_t offset = 0;
    for (int d = 0; d < rank; d++)
        offset += index[d] * strides[d];
    return offset;
}

/** Returns the product of the dims [from, to). */
static inline int64_t
ref_count(const int64_t *dims, int from, int to)
{
    int64_t count = 1;
    for (int d = from; d < to; d++)
        count *= dims[d];
    return count;
}

/** A type as [outer, axis, inner]. Element (o, a, i) lies at (o * axis + a) * inner + i. */
typedef struct {
    int64_t outer, axis, inner;
} RefSplit;

/** Splits @type at @axis, which counts from the end if it is negative. */
static inline RefSplit
ref_split(const KilnType *type, int64_t axis)
{
    RefSplit split = { 1, 1, 1 };
    int at = (int)(axis < 0 ? axis + type->rank : axis);
    for (int d = 0; d < type->rank; d++)
        *(d < at ? &split.outer : d == at ? &split.axis : &split.inner) *= type->dims[d];
    return split;
}

#endif
