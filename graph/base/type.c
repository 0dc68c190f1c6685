/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, shapes, layouts, quantization: construction, equality, sizes and the text form. */
#include "graph/type.h"

#include "graph/base/names.h"
#include "graph/base/number.h"

#include <math.h>
#include <string.h>

typedef enum {
    CLASS_FLOAT,
    CLASS_SIGNED,
    CLASS_UNSIGNED,
    CLASS_BOOL,
    CLASS_STRING,
    CLASS_ITEM
} DTypeClass;

static const struct {
    const char *name;
    int onnx;
    size_t size;
    DTypeClass class_;
} dtypes[KILN_N_DTYPES] = {
#define X(id, onnx_number, bytes, kind)                                                            \
    [KILN_DTYPE_##id] = { #id, onnx_number, bytes, CLASS_##kind },
    KILN_DTYPE_MAP(X)
#undef X
};

const char *
kiln_dtype_name(KilnDType dtype)
{
    return (unsigned)dtype < KILN_N_DTYPES ? dtypes[dtype].name : "?";
}

bool
kiln_dtype_from_name(const char *name, KilnDType *out)
{
    for (int i = 0; i < KILN_N_DTYPES; i++) {
        if (kiln_name_equal(name, dtypes[i].name)) {
            *out = (KilnDType)i;
            return true;
        }
    }
    return false;
}

int
kiln_dtype_to_onnx(KilnDType dtype)
{
    return dtypes[dtype].onnx;
}

bool
kiln_dtype_from_onnx(int number, KilnDType *out)
{
    for (int i = 0; i < KILN_N_DTYPES && number > 0; i++) {
        if (dtypes[i].onnx == number) {
            *out = (KilnDType)i;
            return true;
        }
    }
    return false;
}

size_t
kiln_dtype_size(KilnDType dtype)
{
    return (unsigned)dtype < KILN_N_DTYPES ? dtypes[dtype].size : 0;
}

bool
kiln_dtype_is_float(KilnDType dtype)
{
    return dtypes[dtype].class_ == CLASS_FLOAT;
}

bool
kiln_dtype_is_half(KilnDType dtype)
{
    return dtype == KILN_DTYPE_f16 || dtype == KILN_DTYPE_bf16;
}

unsigned
kiln_dtype_bits(KilnDType dtype)
{
    switch (dtype) {
#define X(id, bits)                                                                                \
    case KILN_DTYPE_##id:                                                                          \
        return bits;
        KILN_FEW_BITS_MAP(X)
#undef X
    case KILN_DTYPE_string: /* no number */
    case KILN_DTYPE_sequence:
    case KILN_DTYPE_optional:
    case KILN_DTYPE_map:
        return 0;
    default:
        return 8 * (unsigned)kiln_dtype_size(dtype);
    }
}

bool
kiln_dtype_is_low_float(KilnDType dtype)
{
    return kiln_dtype_is_float(dtype) && dtypes[dtype].size == 1;
}

bool
kiln_dtype_is_integer(KilnDType dtype)
{
    return dtypes[dtype].class_ == CLASS_SIGNED || dtypes[dtype].class_ == CLASS_UNSIGNED;
}

bool
kiln_dtype_is_signed(KilnDType dtype)
{
    return dtypes[dtype].class_ == CLASS_SIGNED;
}

bool
kiln_dtype_is_item(KilnDType dtype)
{
    return dtypes[dtype].class_ == CLASS_ITEM;
}

bool
kiln_dtype_is_address(KilnDType dtype)
{
    return dtype == KILN_DTYPE_string || kiln_dtype_is_item(dtype);
}

KilnType
kiln_type_make(KilnDType dtype, int rank, const int64_t *dims)
{
    KilnType type = { .dtype = dtype, .rank = rank };
    for (int i = 0; i < rank; i++)
        type.dims[i] = dims[i];
    return type;
}

KilnType
kiln_type_scalar(KilnDType dtype)
{
    return (KilnType){ .dtype = dtype };
}

KilnType
kiln_type_unranked(KilnDType dtype)
{
    return (KilnType){ .dtype = dtype, .rank = KILN_RANK_UNKNOWN };
}

KilnType
kiln_type_of_items(KilnArena *arena, KilnDType dtype, const KilnType *element)
{
    const KilnContents contents = { .type = *element };
    KilnType type = kiln_type_scalar(dtype);
    type.contents = kiln_arena_copy(arena, &contents, sizeof contents);
    return type;
}

KilnType
kiln_type_of_map(KilnArena *arena, KilnDType key, KilnDType value)
{
    const KilnContents contents = { .type = kiln_type_scalar(value), .key = key };
    KilnType type = kiln_type_scalar(KILN_DTYPE_map);
    type.contents = kiln_arena_copy(arena, &contents, sizeof contents);
    return type;
}

bool
kiln_quant_equal(const KilnQuant *a, const KilnQuant *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->axis != b->axis || a->n != b->n)
        return false;
    return memcmp(a->scales, b->scales, a->n * sizeof *a->scales) == 0 &&
           memcmp(a->zero_points, b->zero_points, a->n * sizeof *a->zero_points) == 0;
}

/* The zero points that a storage type holds; false where nothing is stored in @dtype. */
static bool
storage_range(KilnDType dtype, int64_t *low, int64_t *high)
{
    bool in_bytes = kiln_dtype_bits(dtype) == 8 || kiln_dtype_bits(dtype) == 16;
    if (dtype != KILN_DTYPE_i32 && (!kiln_dtype_is_integer(dtype) || !in_bytes))
        return false;
    int64_t values = (int64_t)1 << (8 * dtypes[dtype].size);
    *low = kiln_dtype_is_signed(dtype) ? -values / 2 : 0;
    *high = *low + values - 1;
    return true;
}

static bool
scales_fit(const KilnType *type)
{
    const KilnQuant *quant = type->quant;
    if (quant->axis < 0)
        return quant->n == 1;
    if (type->rank < 0)
        return true;
    int64_t size = quant->axis < type->rank ? type->dims[quant->axis] : 0;
    return size < 0 || (size == quant->n && quant->axis < type->rank);
}

gboolean
kiln_quant_check(const KilnType *type, GError **error)
{
    const KilnQuant *quant = type->quant;
    int64_t low, high;
    if (!quant)
        return TRUE;
    if (!storage_range(type->dtype, &low, &high))
        return kiln_throw(error, KILN_ERROR_TYPE,
                          "expected a quantized type of i8, u8, i16, u16 or i32, found %s",
                          kiln_dtype_name(type->dtype));
    if (!scales_fit(type)) {
        g_autofree char *text = kiln_type_to_string(type);
        return kiln_throw(error, KILN_ERROR_TYPE,
                          "expected one scale per index of the quantization axis, found %s", text);
    }
    for (uint32_t i = 0; i < quant->n; i++) {
        if (!isfinite(quant->scales[i]) || quant->scales[i] <= 0)
            return kiln_throw(error, KILN_ERROR_TYPE, "expected a finite scale above 0, found %g",
                              (double)quant->scales[i]);
        if (quant->zero_points[i] < low || quant->zero_points[i] > high)
            return kiln_throw(error, KILN_ERROR_TYPE, "expected a zero point of %s, found %d",
                              kiln_dtype_name(type->dtype), quant->zero_points[i]);
    }
    return TRUE;
}

bool
kiln_type_same_shape(const KilnType *a, const KilnType *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++) {
        bool same = a->open[i] == b->open[i] || kiln_dim_same(a->open[i], b->open[i]);
        if (a->dims[i] != b->dims[i] || !same)
            return false;
    }
    return true;
}

bool
kiln_type_equal_dims(const KilnType *a, int d, const KilnType *b, int e)
{
    return a->open[d] || b->open[e] ? kiln_dim_same(a->open[d], b->open[e])
                                    : a->dims[d] >= 0 && a->dims[d] == b->dims[e];
}

bool
kiln_type_equal_shape(const KilnType *a, const KilnType *b)
{
    bool equal = a->rank >= 0 && a->rank == b->rank;
    for (int d = 0; equal && d < a->rank; d++)
        equal = kiln_type_equal_dims(a, d, b, d);
    return equal;
}

/* The product of all dims; NULL where it is not known. */
static const KilnDim *
all_elements(const KilnType *type, KilnDimTable *table)
{
    const KilnDim *product = type->rank >= 0 ? kiln_dim_number(table, 1) : NULL;
    for (int d = 0; d < type->rank; d++)
        product = kiln_dim_mul(table, product, kiln_type_dim(type, d, table));
    return product;
}

bool
kiln_type_same_elements(const KilnType *a, const KilnType *b)
{
    const KilnDim *open = NULL;
    int64_t n = kiln_type_elements(a);
    if (kiln_type_equal_shape(a, b))
        return true;
    for (int d = 0; d < MAX(a->rank, b->rank) && !open; d++)
        open = d < a->rank && a->open[d] ? a->open[d] : d < b->rank ? b->open[d] : NULL;
    if (!open)
        return n >= 0 && n == kiln_type_elements(b);
    KilnDimTable *table = kiln_dim_table_of(open);
    return kiln_dim_equal(table, all_elements(a, table), all_elements(b, table)) == KILN_ANSWER_YES;
}

KilnType
kiln_type_at_hints(const KilnType *type)
{
    KilnType likely = *type;
    for (int d = 0; d < type->rank; d++) {
        if (type->dims[d] >= 0)
            continue;
        likely.dims[d] = MAX(kiln_dim_hint(type->open[d]), (int64_t)1);
        likely.open[d] = NULL;
    }
    return likely;
}

const char *
kiln_type_dim_name(const KilnType *type, int d)
{
    return kiln_dim_as_name(type->open[d]);
}

void
kiln_type_set_dim(KilnType *type, int d, const KilnDim *dim)
{
    bool is_number = kiln_dim_is_number(dim, &type->dims[d]);
    type->open[d] = is_number ? NULL : dim;
    if (!is_number)
        type->dims[d] = KILN_DIM_UNKNOWN;
}

void
kiln_type_dim_range(const KilnType *type, int d, int64_t *lo, int64_t *hi)
{
    *lo = *hi = type->dims[d];
    if (type->dims[d] < 0)
        kiln_dim_range(type->open[d], lo, hi);
}

const KilnDim *
kiln_type_dim(const KilnType *type, int d, KilnDimTable *table)
{
    if (type->open[d] || type->dims[d] < 0)
        return type->open[d];
    return kiln_dim_number(table, type->dims[d]);
}

static bool
same_contents(const KilnContents *a, const KilnContents *b)
{
    return a == b || (a && b && a->key == b->key && kiln_type_equal(&a->type, &b->type));
}

bool
kiln_type_equal(const KilnType *a, const KilnType *b)
{
    return a->dtype == b->dtype && kiln_type_same_shape(a, b) &&
           same_contents(a->contents, b->contents) && g_strcmp0(a->layout, b->layout) == 0 &&
           kiln_quant_equal(a->quant, b->quant);
}

bool
kiln_type_is_static(const KilnType *type)
{
    for (int i = 0; i < type->rank; i++) {
        if (type->dims[i] < 0)
            return false;
    }
    return type->rank >= 0;
}

KilnType
kiln_type_numbers(const KilnType *type)
{
    KilnType numbers = *type;
    memset(numbers.open, 0, sizeof numbers.open);
    return numbers;
}

bool
kiln_type_is_known(const KilnType *type)
{
    for (int i = 0; i < type->rank; i++) {
        if (!kiln_type_knows_dim(type, i))
            return false;
    }
    return type->rank >= 0;
}

/* @unit times all extents. Those that are not zero must not overflow even where one is: strides and
 * parts of the tensor are made of them. */
static int64_t
product(int64_t unit, const int64_t *dims, int rank)
{
    int64_t result = unit;
    bool zero = false;
    for (int i = 0; i < rank; i++) {
        zero |= dims[i] == 0;
        if (dims[i] < 0 || (dims[i] > 0 && __builtin_mul_overflow(result, dims[i], &result)))
            return -1;
    }
    return zero ? 0 : result;
}

int64_t
kiln_type_elements(const KilnType *type)
{
    return type->rank < 0 ? -1 : product(1, type->dims, type->rank);
}

int64_t
kiln_type_likely_elements(const KilnType *type)
{
    const KilnType likely = kiln_type_at_hints(type);
    return kiln_type_elements(&likely);
}

int64_t
kiln_type_bytes(const KilnType *type)
{
    const int64_t *dims = type->dims;
    int rank = type->rank;
    int64_t physical[2 * KILN_MAX_RANK];
    if (type->layout) {
        if (!kiln_layout_physical(type, &rank, physical, NULL))
            return -1;
        dims = physical;
    }
    return rank < 0 ? -1 : product((int64_t)dtypes[type->dtype].size, dims, rank);
}

bool
kiln_type_may_broadcast(const KilnType *from, const KilnType *to)
{
    int shift = to->rank - from->rank;
    bool fits = shift >= 0;
    for (int d = 0; fits && d < from->rank; d++) {
        int64_t dim = from->dims[d], extent = to->dims[d + shift];
        fits = dim < 0 || dim == 1 || extent < 0 || dim == extent;
    }
    return fits;
}

int
kiln_type_axis(const KilnType *type, int64_t axis)
{
    if (axis < -type->rank || axis >= type->rank)
        return -1;
    return (int)(axis < 0 ? axis + type->rank : axis);
}

KilnType
kiln_type_copy(KilnArena *arena, const KilnType *type)
{
    KilnType copy = *type;
    copy.layout = kiln_arena_strdup(arena, type->layout);
    if (type->contents) {
        KilnContents *contents = kiln_arena_copy(arena, type->contents, sizeof *contents);
        contents->type = kiln_type_copy(arena, &contents->type);
        copy.contents = contents;
    }
    if (type->quant) {
        KilnQuant *quant = kiln_arena_copy(arena, type->quant, sizeof *quant);
        quant->scales = kiln_arena_copy(arena, quant->scales, quant->n * sizeof *quant->scales);
        quant->zero_points =
            kiln_arena_copy(arena, quant->zero_points, quant->n * sizeof *quant->zero_points);
        copy.quant = quant;
    }
    return copy;
}

static void
print_quant(const KilnQuant *quant, GString *out)
{
    if (quant->axis < 0) {
        g_string_append(out, " q(");
        kiln_print_f32(out, quant->scales[0]);
        g_string_append_printf(out, ",%d)", quant->zero_points[0]);
        return;
    }
    g_string_append_printf(out, " q(axis=%d,[", quant->axis);
    for (uint32_t i = 0; i < quant->n; i++) {
        g_string_append(out, i ? "," : "");
        kiln_print_f32(out, quant->scales[i]);
    }
    g_string_append(out, "],[");
    for (uint32_t i = 0; i < quant->n; i++)
        g_string_append_printf(out, i ? ",%d" : "%d", quant->zero_points[i]);
    g_string_append(out, "])");
}

static void
print_contents(const KilnType *type, GString *out)
{
    g_string_append_printf(out, "%s(", kiln_dtype_name(type->dtype));
    if (type->dtype == KILN_DTYPE_map)
        g_string_append_printf(out, "%s,%s", kiln_dtype_name(type->contents->key),
                               kiln_dtype_name(type->contents->type.dtype));
    else
        kiln_type_print(&type->contents->type, out);
    g_string_append_c(out, ')');
}

void
kiln_type_print_element(const KilnType *type, GString *out)
{
    if (type->contents) {
        print_contents(type, out);
        return;
    }
    g_string_append(out, kiln_dtype_name(type->dtype));
    if (type->quant)
        print_quant(type->quant, out);
}

void
kiln_type_print(const KilnType *type, GString *out)
{
    if (type->contents) {
        print_contents(type, out);
        return;
    }
    g_string_append_printf(out, "%s[", kiln_dtype_name(type->dtype));
    if (type->rank < 0)
        g_string_append_c(out, type->rank == KILN_RANK_NONE ? '-' : '*');
    for (int i = 0; i < type->rank; i++) {
        g_string_append(out, i ? "," : "");
        if (type->dims[i] >= 0 && !type->open[i])
            g_string_append_printf(out, "%" G_GINT64_FORMAT, type->dims[i]);
        else
            kiln_dim_print(type->open[i], out);
    }
    g_string_append_c(out, ']');
    if (type->layout)
        g_string_append_printf(out, ":%s", type->layout);
    if (type->quant)
        print_quant(type->quant, out);
}

char *
kiln_type_to_string(const KilnType *type)
{
    GString *out = g_string_new(NULL);
    kiln_type_print(type, out);
    return g_string_free(out, FALSE);
}

gboolean
kiln_layout_physical(const KilnType *type, int *out_rank, int64_t out_dims[2 * KILN_MAX_RANK],
                     GError **error)
{
    const char *tag = type->layout;
    int64_t blocks[KILN_MAX_RANK];
    bool seen[KILN_MAX_RANK] = { false };
    int outer = 0, rank = 0;
    for (int i = 0; i < KILN_MAX_RANK; i++)
        blocks[i] = 1;
    /* The outer letters come first, then number-letter pairs of the blocks. */
    for (; g_ascii_isalpha(*tag); tag++) {
        int dim = g_ascii_tolower(*tag) - 'a';
        if (dim >= type->rank || seen[dim])
            return kiln_throw(error, KILN_ERROR_TYPE, "layout %s does not fit rank %d",
                              type->layout, type->rank);
        seen[dim] = true;
        out_dims[rank++] = dim;
        outer++;
    }
    while (*tag) {
        char *end;
        int64_t block = g_ascii_strtoll(tag, &end, 10);
        int dim = g_ascii_tolower(*end) - 'a';
        if (end == tag || block < 1 || block > 1024 || dim < 0 || dim >= type->rank ||
            rank == 2 * KILN_MAX_RANK || __builtin_mul_overflow(blocks[dim], block, &blocks[dim]))
            return kiln_throw(error, KILN_ERROR_TYPE, "layout %s is malformed", type->layout);
        out_dims[rank++] = block;
        tag = end + 1;
    }
    if (outer != type->rank)
        return kiln_throw(error, KILN_ERROR_TYPE, "layout %s does not fit rank %d", type->layout,
                          type->rank);
    for (int i = 0; i < outer; i++) {
        int64_t size = type->dims[out_dims[i]], block = blocks[out_dims[i]];
        out_dims[i] = size / block + (size % block != 0);
    }
    *out_rank = rank;
    return TRUE;
}
