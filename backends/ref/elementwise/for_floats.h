/* SPDX-License-Identifier: Apache-2.0 */
/* Includes the file TEMPLATE once per float type, for kernels whose inner loop is worth a copy per
 * type. The template sees T (the stored type), NAME(x) (x with the type's suffix), LOAD(pointer, i)
 * (returns a double) and STORE(pointer, i, value) (rounds a double). There is no include guard:
 * each use expands anew. */
#define REF_PASTE_(a, b) a##_##b
#define REF_PASTE(a, b) REF_PASTE_(a, b)
#define NAME(x) REF_PASTE(x, REF_FLOAT_ID)
#define LOAD(pointer, i) ref_load_float(REF_PASTE(KILN_DTYPE, REF_FLOAT_ID), pointer, i)
#define STORE(pointer, i, value)                                                                   \
    ref_store_float(REF_PASTE(KILN_DTYPE, REF_FLOAT_ID), pointer, i, value)

#define T float
#define REF_FLOAT_ID f32
#include TEMPLATE
#undef T
#undef REF_FLOAT_ID
#define T double
#define REF_FLOAT_ID f64
#include TEMPLATE
#undef T
#undef REF_FLOAT_ID
#define T uint16_t
#define REF_FLOAT_ID f16
#include TEMPLATE
#undef REF_FLOAT_ID
#define REF_FLOAT_ID bf16
#include TEMPLATE
#undef T
#undef REF_FLOAT_ID

#undef REF_PASTE_
#undef REF_PASTE
#undef NAME
#undef LOAD
#undef STORE
#undef TEMPLATE
