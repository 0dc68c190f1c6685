/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute structs handled through their descriptions. */
#include "graph/attr.h"

#include "graph/base/names.h"

#include <string.h>

#define FIELD(T, info, attrs) ((T *)((char *)(attrs) + (info)->offset))
#define CFIELD(T, info, attrs) ((const T *)((const char *)(attrs) + (info)->offset))

void
kiln_attrs_init(const KilnAttrInfo *infos, uint32_t n, void *attrs)
{
    for (uint32_t i = 0; i < n; i++) {
        const KilnAttrInfo *info = &infos[i];
        switch (info->kind) {
        case KILN_ATTR_INT:
            *FIELD(KilnC_INT, info, attrs) = info->otherwise.i;
            break;
        case KILN_ATTR_BOOL:
            *FIELD(KilnC_BOOL, info, attrs) = info->otherwise.i != 0;
            break;
        case KILN_ATTR_FLOAT:
            *FIELD(KilnC_FLOAT, info, attrs) = (float)info->otherwise.f;
            break;
        case KILN_ATTR_STRING:
            *FIELD(KilnC_STRING, info, attrs) = info->otherwise.s;
            break;
        case KILN_ATTR_DTYPE:
            *FIELD(KilnC_DTYPE, info, attrs) = (KilnDType)info->otherwise.i;
            break;
        default: /* lists, constants and functions start empty */
            break;
        }
    }
}

KilnInts
kiln_ints_make(KilnArena *arena, const int64_t *values, uint32_t n)
{
    return (KilnInts){ .n = n, .v = kiln_arena_copy(arena, values, n * sizeof *values), NULL };
}

KilnInts
kiln_ints_make_open(KilnArena *arena, const int64_t *values, const KilnDim *const *open, uint32_t n)
{
    KilnInts list = kiln_ints_make(arena, values, n);
    for (uint32_t i = 0; open && i < n; i++) {
        if (open[i] && !list.open)
            list.open = kiln_arena_copy(arena, open, n * sizeof *open);
    }
    return list;
}

bool
kiln_ints_all(KilnInts list, int64_t value)
{
    for (uint32_t i = 0; i < list.n; i++) {
        if (list.v[i] != value)
            return false;
    }
    return true;
}

static void
copy_field(const KilnAttrInfo *to_info, void *to, const KilnAttrInfo *info, const void *from,
           KilnArena *arena)
{
    switch (info->kind) {
    case KILN_ATTR_INT:
        *FIELD(KilnC_INT, to_info, to) = *CFIELD(KilnC_INT, info, from);
        break;
    case KILN_ATTR_BOOL:
        *FIELD(KilnC_BOOL, to_info, to) = *CFIELD(KilnC_BOOL, info, from);
        break;
    case KILN_ATTR_FLOAT:
        *FIELD(KilnC_FLOAT, to_info, to) = *CFIELD(KilnC_FLOAT, info, from);
        break;
    case KILN_ATTR_STRING:
        *FIELD(KilnC_STRING, to_info, to) =
            kiln_arena_strdup(arena, *CFIELD(KilnC_STRING, info, from));
        break;
    case KILN_ATTR_INTS: {
        const KilnInts *list = CFIELD(KilnInts, info, from);
        *FIELD(KilnInts, to_info, to) = kiln_ints_make_open(arena, list->v, list->open, list->n);
        break;
    }
    case KILN_ATTR_FLOATS: {
        const KilnFloats *list = CFIELD(KilnFloats, info, from);
        *FIELD(KilnFloats, to_info, to) =
            (KilnFloats){ list->n, kiln_arena_copy(arena, list->v, list->n * sizeof *list->v) };
        break;
    }
    case KILN_ATTR_STRINGS: {
        const KilnStrings *list = CFIELD(KilnStrings, info, from);
        KilnStrings copy = { list->n, kiln_arena_new0(arena, const char *, list->n) };
        for (uint32_t i = 0; i < list->n; i++)
            copy.v[i] = kiln_arena_strdup(arena, list->v[i]);
        *FIELD(KilnStrings, to_info, to) = copy;
        break;
    }
    case KILN_ATTR_DTYPE:
        *FIELD(KilnC_DTYPE, to_info, to) = *CFIELD(KilnC_DTYPE, info, from);
        break;
    case KILN_ATTR_CONSTANT:
        *FIELD(KilnC_CONSTANT, to_info, to) = *CFIELD(KilnC_CONSTANT, info, from);
        break;
    case KILN_ATTR_FUNCTION:
        *FIELD(KilnC_FUNCTION, to_info, to) = *CFIELD(KilnC_FUNCTION, info, from);
        break;
    }
}

void
kiln_attrs_copy(const KilnAttrInfo *infos, uint32_t n, void *to, const void *from, KilnArena *arena)
{
    for (uint32_t i = 0; i < n; i++)
        copy_field(&infos[i], to, &infos[i], from, arena);
}

void
kiln_attrs_copy_matching(const KilnAttrInfo *to_infos, uint32_t n_to, void *to,
                         const KilnAttrInfo *from_infos, uint32_t n_from, const void *from,
                         KilnArena *arena)
{
    for (uint32_t i = 0; i < n_to; i++) {
        const KilnAttrInfo *info = kiln_attr_find(from_infos, n_from, to_infos[i].name);
        if (info && info->kind == to_infos[i].kind)
            copy_field(&to_infos[i], to, info, from, arena);
    }
}

static bool
list_equal(uint32_t n_a, const void *a, uint32_t n_b, const void *b, size_t size)
{
    return n_a == n_b && (n_a == 0 || memcmp(a, b, n_a * size) == 0);
}

static bool
open_equal(const KilnInts *a, const KilnInts *b)
{
    bool equal = true;
    for (uint32_t i = 0; equal && i < a->n && (a->open || b->open); i++) {
        const KilnDim *x = a->open ? a->open[i] : NULL, *y = b->open ? b->open[i] : NULL;
        equal = x == y || kiln_dim_same(x, y);
    }
    return equal;
}

static bool
field_equal(const KilnAttrInfo *info, const void *a, const void *b)
{
    switch (info->kind) {
    case KILN_ATTR_INT:
        return *CFIELD(KilnC_INT, info, a) == *CFIELD(KilnC_INT, info, b);
    case KILN_ATTR_BOOL:
        return *CFIELD(KilnC_BOOL, info, a) == *CFIELD(KilnC_BOOL, info, b);
    case KILN_ATTR_FLOAT:
        return memcmp(CFIELD(char, info, a), CFIELD(char, info, b), sizeof(float)) == 0;
    case KILN_ATTR_STRING:
        return g_strcmp0(*CFIELD(KilnC_STRING, info, a), *CFIELD(KilnC_STRING, info, b)) == 0;
    case KILN_ATTR_INTS: {
        const KilnInts *x = CFIELD(KilnInts, info, a), *y = CFIELD(KilnInts, info, b);
        return list_equal(x->n, x->v, y->n, y->v, sizeof *x->v) && open_equal(x, y);
    }
    case KILN_ATTR_FLOATS: {
        const KilnFloats *x = CFIELD(KilnFloats, info, a), *y = CFIELD(KilnFloats, info, b);
        return list_equal(x->n, x->v, y->n, y->v, sizeof *x->v);
    }
    case KILN_ATTR_STRINGS: {
        const KilnStrings *x = CFIELD(KilnStrings, info, a), *y = CFIELD(KilnStrings, info, b);
        bool equal = x->n == y->n;
        for (uint32_t i = 0; equal && i < x->n; i++)
            equal = strcmp(x->v[i], y->v[i]) == 0;
        return equal;
    }
    case KILN_ATTR_DTYPE:
        return *CFIELD(KilnC_DTYPE, info, a) == *CFIELD(KilnC_DTYPE, info, b);
    case KILN_ATTR_CONSTANT:
        return *CFIELD(KilnC_CONSTANT, info, a) == *CFIELD(KilnC_CONSTANT, info, b);
    case KILN_ATTR_FUNCTION:
        return *CFIELD(KilnC_FUNCTION, info, a) == *CFIELD(KilnC_FUNCTION, info, b);
    }
    return false;
}

bool
kiln_attrs_equal(const KilnAttrInfo *infos, uint32_t n, const void *a, const void *b)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!field_equal(&infos[i], a, b))
            return false;
    }
    return true;
}

bool
kiln_attr_is_default(const KilnAttrInfo *info, const void *attrs)
{
    switch (info->kind) {
    case KILN_ATTR_INT:
        return *CFIELD(KilnC_INT, info, attrs) == info->otherwise.i;
    case KILN_ATTR_BOOL:
        return *CFIELD(KilnC_BOOL, info, attrs) == (info->otherwise.i != 0);
    case KILN_ATTR_FLOAT: {
        float otherwise = (float)info->otherwise.f;
        return memcmp(CFIELD(char, info, attrs), &otherwise, sizeof otherwise) == 0;
    }
    case KILN_ATTR_STRING:
        return g_strcmp0(*CFIELD(KilnC_STRING, info, attrs), info->otherwise.s) == 0;
    case KILN_ATTR_INTS:
        return CFIELD(KilnInts, info, attrs)->n == 0;
    case KILN_ATTR_FLOATS:
        return CFIELD(KilnFloats, info, attrs)->n == 0;
    case KILN_ATTR_STRINGS:
        return CFIELD(KilnStrings, info, attrs)->n == 0;
    case KILN_ATTR_DTYPE:
        return *CFIELD(KilnC_DTYPE, info, attrs) == (KilnDType)info->otherwise.i;
    case KILN_ATTR_CONSTANT:
        return !*CFIELD(KilnC_CONSTANT, info, attrs);
    case KILN_ATTR_FUNCTION:
        return !*CFIELD(KilnC_FUNCTION, info, attrs);
    }
    return false;
}

static uint32_t
mix(uint32_t hash, const void *bytes, size_t size)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ byte[i]) * 16777619u;
    return hash;
}

uint32_t
kiln_attrs_hash(const KilnAttrInfo *infos, uint32_t n, const void *attrs)
{
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < n; i++) {
        const KilnAttrInfo *info = &infos[i];
        switch (info->kind) {
        case KILN_ATTR_INT:
            hash = mix(hash, CFIELD(char, info, attrs), sizeof(int64_t));
            break;
        case KILN_ATTR_FLOAT:
            hash = mix(hash, CFIELD(char, info, attrs), sizeof(float));
            break;
        case KILN_ATTR_BOOL:
            hash = mix(hash, CFIELD(char, info, attrs), sizeof(bool));
            break;
        case KILN_ATTR_DTYPE:
            hash = mix(hash, CFIELD(char, info, attrs), sizeof(KilnDType));
            break;
        case KILN_ATTR_STRING: {
            const char *text = *CFIELD(KilnC_STRING, info, attrs);
            hash = text ? mix(hash, text, strlen(text)) : hash;
            break;
        }
        case KILN_ATTR_INTS: {
            const KilnInts *list = CFIELD(KilnInts, info, attrs);
            hash = mix(hash, list->v, list->n * sizeof *list->v);
            break;
        }
        case KILN_ATTR_FLOATS: {
            const KilnFloats *list = CFIELD(KilnFloats, info, attrs);
            hash = mix(hash, list->v, list->n * sizeof *list->v);
            break;
        }
        case KILN_ATTR_STRINGS: {
            const KilnStrings *list = CFIELD(KilnStrings, info, attrs);
            for (uint32_t k = 0; k < list->n; k++)
                hash = mix(hash, list->v[k], strlen(list->v[k]) + 1);
            break;
        }
        default: /* what has identity only is left to equality: addresses must not steer an order */
            break;
        }
    }
    return hash;
}

const KilnAttrInfo *
kiln_attr_find(const KilnAttrInfo *infos, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (kiln_name_equal(infos[i].name, name))
            return &infos[i];
    }
    return NULL;
}
