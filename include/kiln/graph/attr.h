/* SPDX-License-Identifier: Apache-2.0 */
/* Typed attributes. Rows of ops.def and instrs.def declare them: ATTR(owner, KIND, field, default).
 * Each row becomes a struct field for code, and a description for generic code: parser, printer,
 * verifier, CSE, importer, exporter, lowering. */
#ifndef KILN_GRAPH_ATTR_H
#define KILN_GRAPH_ATTR_H

#include "graph/type.h"

G_BEGIN_DECLS

typedef struct KilnFunction KilnFunction;
typedef struct KilnConstant KilnConstant;

/** Lists live in the arena of their owner. An empty INTS stands for a list as long as the rank,
 * filled with the default of the row. Where a number depends on open dims, @open has its
 * expression. */
typedef struct {
    uint32_t n;
    int64_t *v;
    const KilnDim **open; /* per number: NULL where it is the same for all dims; NULL: all are */
} KilnInts;
typedef struct {
    uint32_t n;
    float *v;
} KilnFloats;
typedef struct {
    uint32_t n;
    const char **v;
} KilnStrings;

/* The C type of each kind. KILN_OTHERWISE_… describes the default of a row. */
typedef int64_t KilnC_INT;
typedef bool KilnC_BOOL;
typedef float KilnC_FLOAT;
typedef const char *KilnC_STRING;
typedef KilnInts KilnC_INTS;
typedef KilnFloats KilnC_FLOATS;
typedef KilnStrings KilnC_STRINGS;
typedef KilnDType KilnC_DTYPE;
typedef KilnConstant *KilnC_CONSTANT;
typedef KilnFunction *KilnC_FUNCTION;

typedef enum {
    KILN_ATTR_INT,
    KILN_ATTR_BOOL, /* true, false */
    KILN_ATTR_FLOAT,
    KILN_ATTR_STRING, /* NULL default: absent */
    KILN_ATTR_INTS,   /* the default is the fill value of the list */
    KILN_ATTR_FLOATS,
    KILN_ATTR_STRINGS,
    KILN_ATTR_DTYPE,
    KILN_ATTR_CONSTANT, /* a constant of the module, or absent */
    KILN_ATTR_FUNCTION, /* a subgraph */
} KilnAttrKind;

typedef struct {
    const char *name;
    KilnAttrKind kind;
    size_t offset; /* of the field in the owner's struct */
    struct {
        int64_t i; /* INT, BOOL, DTYPE, INTS */
        double f;  /* FLOAT */
        const char *s;
    } otherwise;
} KilnAttrInfo;

#define KILN_OTHERWISE_INT(d)                                                                      \
    {                                                                                              \
        .i = (d)                                                                                   \
    }
#define KILN_OTHERWISE_BOOL(d)                                                                     \
    {                                                                                              \
        .i = (d)                                                                                   \
    }
#define KILN_OTHERWISE_FLOAT(d)                                                                    \
    {                                                                                              \
        .f = (d)                                                                                   \
    }
#define KILN_OTHERWISE_STRING(d)                                                                   \
    {                                                                                              \
        .s = (d)                                                                                   \
    }
#define KILN_OTHERWISE_INTS(d)                                                                     \
    {                                                                                              \
        .i = (d)                                                                                   \
    }
#define KILN_OTHERWISE_FLOATS(d)                                                                   \
    {                                                                                              \
        .i = 0                                                                                     \
    }
#define KILN_OTHERWISE_STRINGS(d)                                                                  \
    {                                                                                              \
        .i = 0                                                                                     \
    }
#define KILN_OTHERWISE_DTYPE(d)                                                                    \
    {                                                                                              \
        .i = KILN_DTYPE_##d                                                                        \
    }
#define KILN_OTHERWISE_CONSTANT(d)                                                                 \
    {                                                                                              \
        .i = 0                                                                                     \
    }
#define KILN_OTHERWISE_FUNCTION(d)                                                                 \
    {                                                                                              \
        .i = 0                                                                                     \
    }

/** Sets every field of a zeroed attribute struct to its default. */
void kiln_attrs_init(const KilnAttrInfo *infos, uint32_t n, void *attrs);
/** Deep copy into @arena; constants and functions are shared, not copied. */
void kiln_attrs_copy(const KilnAttrInfo *infos, uint32_t n, void *to, const void *from,
                     KilnArena *arena);
/** Copies the fields that both sides declare with the same name and kind: lowering's default. */
void kiln_attrs_copy_matching(const KilnAttrInfo *to_infos, uint32_t n_to, void *to,
                              const KilnAttrInfo *from_infos, uint32_t n_from, const void *from,
                              KilnArena *arena);
/** Compares field by field: floats by bits, constants by identity. */
bool kiln_attrs_equal(const KilnAttrInfo *infos, uint32_t n, const void *a, const void *b);
bool kiln_attr_is_default(const KilnAttrInfo *info, const void *attrs);
uint32_t kiln_attrs_hash(const KilnAttrInfo *infos, uint32_t n, const void *attrs);
const KilnAttrInfo *kiln_attr_find(const KilnAttrInfo *infos, uint32_t n, const char *name);

/** Copies @n values. kiln_ints_at() gives element @i, or @otherwise past the end. */
KilnInts kiln_ints_make(KilnArena *arena, const int64_t *values, uint32_t n);
/** The same with expressions: @open has one per number, NULL where there is none. */
KilnInts kiln_ints_make_open(KilnArena *arena, const int64_t *values, const KilnDim *const *open,
                             uint32_t n);
/** The expression of element @i; NULL where it is a number. */
static inline const KilnDim *
kiln_ints_open(KilnInts list, uint32_t i)
{
    return list.open && i < list.n ? list.open[i] : NULL;
}
static inline int64_t
kiln_ints_at(KilnInts list, uint32_t i, int64_t otherwise)
{
    return i < list.n ? list.v[i] : otherwise;
}
/** True if every entry is @value, or if there is none. */
bool kiln_ints_all(KilnInts list, int64_t value);

G_END_DECLS

#endif
