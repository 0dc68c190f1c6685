/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/symbol.h"

#include "graph/infer/infer.h"
#include "graph/op/additive.h"
#include "graph/op/cast.h"
#include "graph/op/concat.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/logic.h"
#include "graph/op/multiplicative.h"
#include "graph/op/reshape.h"
#include "graph/op/slice.h"
#include "graph/op/structure.h"

#include <string.h>

struct KilnSymbolTable {
    GHashTable *by_value; /* KilnValue* → KilnSymbols*: looked up, never iterated */
};

KilnSymbolTable *
kiln_symbol_table_new(void)
{
    KilnSymbolTable *table = g_new0(KilnSymbolTable, 1);
    table->by_value = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    return table;
}

void
kiln_symbol_table_free(KilnSymbolTable *table)
{
    if (!table)
        return;
    g_hash_table_unref(table->by_value);
    g_free(table);
}

/* --- symbols --- */

static const KilnSymbol unknown = { .kind = KILN_SYMBOL_UNKNOWN };

static KilnSymbol
number(int64_t value)
{
    return (KilnSymbol){ .kind = KILN_SYMBOL_NUMBER, .number = value };
}

static bool
is_number(const KilnSymbol *symbol, int64_t value)
{
    return symbol->kind == KILN_SYMBOL_NUMBER && symbol->number == value;
}

KilnSymbol
kiln_symbol_extent(KilnValue *value, int axis)
{
    if (value->type.dims[axis] >= 0)
        return number(value->type.dims[axis]);
    return (KilnSymbol){ .kind = KILN_SYMBOL_EXTENT, .value = value, .axis = axis };
}

static const char *
extent_name(const KilnSymbol *symbol)
{
    return symbol->value->type.dim_names[symbol->axis];
}

bool
kiln_symbol_equal(const KilnSymbol *a, const KilnSymbol *b)
{
    if (a->kind != b->kind || a->kind == KILN_SYMBOL_UNKNOWN)
        return false;
    if (a->kind == KILN_SYMBOL_NUMBER)
        return a->number == b->number;
    if (a->value == b->value && a->axis == b->axis)
        return true;
    return extent_name(a) && extent_name(b) && g_str_equal(extent_name(a), extent_name(b));
}

/* --- the table --- */

static KilnSymbols *
symbols_new(KilnSymbolTable *table, const KilnValue *value, int64_t n)
{
    if (n < 0 || n > KILN_SYMBOLS_MAX)
        return NULL;
    KilnSymbols *symbols = g_malloc0(sizeof *symbols + (size_t)n * sizeof symbols->v[0]);
    symbols->n = (uint32_t)n;
    g_hash_table_insert(table->by_value, (gpointer)value, symbols);
    return symbols;
}

static bool
is_short_vector(const KilnType *type)
{
    bool integers = kiln_dtype_is_integer(type->dtype) || type->dtype == KILN_DTYPE_bool;
    int64_t n = type->rank == 0 || type->rank == 1 ? kiln_type_elements(type) : -1;
    return integers && n >= 0 && n <= KILN_SYMBOLS_MAX;
}

const KilnSymbols *
kiln_symbols_of(KilnSymbolTable *table, const KilnValue *value)
{
    if (!value || !is_short_vector(&value->type))
        return NULL;
    const KilnSymbols *found = g_hash_table_lookup(table->by_value, value);
    int64_t n = kiln_type_elements(&value->type);
    if (found || !value->known || value->known->n != n)
        return found;
    KilnSymbols *symbols = symbols_new(table, value, n);
    for (uint32_t i = 0; i < symbols->n; i++)
        symbols->v[i] = number(value->known->v[i]);
    return symbols;
}

/* --- movement --- */

/* The first extent that a `shape` gives. */
static int
shape_start(const KilnNode *node, int rank)
{
    int64_t start = kiln_attrs(node, shape)->start;
    start += start < 0 && start >= -rank ? rank : 0;
    return (int)CLAMP(start, 0, rank);
}

static void
visit_shape(KilnNode *node, KilnSymbols *out)
{
    KilnValue *x = node->operands[0].value;
    if (x->type.rank < 0)
        return;
    int start = shape_start(node, x->type.rank);
    for (uint32_t i = 0; i < out->n && start + (int)i < x->type.rank; i++)
        out->v[i] = kiln_symbol_extent(x, start + (int)i);
}

static void
visit_gather(KilnSymbolTable *table, const KilnNode *node, KilnSymbols *out)
{
    const KilnSymbols *from = kiln_symbols_of(table, node->operands[0].value);
    const KilnSymbols *indices = kiln_symbols_of(table, node->operands[1].value);
    for (uint32_t i = 0; from && indices && i < MIN(out->n, indices->n); i++) {
        int64_t index = indices->v[i].number;
        index += index < 0 ? from->n : 0;
        if (indices->v[i].kind == KILN_SYMBOL_NUMBER && index >= 0 && index < from->n)
            out->v[i] = from->v[index];
    }
}

static void
visit_slice(KilnSymbolTable *table, const KilnNode *node, KilnSymbols *out)
{
    const KilnSymbols *from = kiln_symbols_of(table, node->operands[0].value);
    KilnSliceBox box;
    bool known;
    g_autoptr(GError) unfit = NULL;
    if (!from || node->operands[0].value->type.rank != 1 ||
        !kiln_slice_resolve(node, &box, &known, &unfit) || !known)
        return;
    for (uint32_t i = 0; i < out->n && i < box.extent[0]; i++)
        out->v[i] = from->v[box.start[0] + i * box.step[0]];
}

static void
visit_split(KilnSymbolTable *table, KilnNode *node)
{
    const KilnSymbols *from = kiln_symbols_of(table, node->operands[0].value);
    uint32_t at = 0;
    for (uint32_t r = 0; from && r < node->n_results; r++) {
        const KilnValue *result = &node->results[r];
        KilnSymbols *out = is_short_vector(&result->type)
                               ? symbols_new(table, result, kiln_type_elements(&result->type))
                               : NULL;
        if (!out || out->n > from->n - at)
            return;
        memcpy(out->v, from->v + at, out->n * sizeof out->v[0]);
        at += out->n;
    }
}

static void
visit_concat(KilnSymbolTable *table, const KilnNode *node, KilnSymbols *out)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *operand = node->operands[i].value;
        const KilnSymbols *from = kiln_symbols_of(table, operand);
        int64_t n = kiln_type_elements(&operand->type);
        if (n < 0 || n > out->n - at)
            return;
        if (from)
            memcpy(out->v + at, from->v, from->n * sizeof out->v[0]);
        at += (uint32_t)n;
    }
}

/* The elements are those of operand 0 in the same order. */
static void
visit_copy(KilnSymbolTable *table, const KilnNode *node, KilnSymbols *out)
{
    const KilnSymbols *from = kiln_symbols_of(table, node->operands[0].value);
    if (from && from->n == out->n && node->operands[0].value->type.dtype == KILN_DTYPE_i64)
        memcpy(out->v, from->v, out->n * sizeof out->v[0]);
}

/* --- arithmetic on i64 --- */

static KilnSymbol
calculate(KilnOp op, int64_t a, int64_t b)
{
    int64_t result;
    switch (op) {
    case KILN_OP_add:
        return __builtin_add_overflow(a, b, &result) ? unknown : number(result);
    case KILN_OP_sub:
        return __builtin_sub_overflow(a, b, &result) ? unknown : number(result);
    case KILN_OP_mul:
        return __builtin_mul_overflow(a, b, &result) ? unknown : number(result);
    case KILN_OP_div:
        return b == 0 || b == -1 ? unknown : number(a / b);
    case KILN_OP_equal:
        return number(a == b);
    default:
        return unknown;
    }
}

static KilnSymbol
combine(KilnOp op, const KilnSymbol *a, const KilnSymbol *b)
{
    if (a->kind == KILN_SYMBOL_NUMBER && b->kind == KILN_SYMBOL_NUMBER)
        return calculate(op, a->number, b->number);
    switch (op) {
    case KILN_OP_add:
        return is_number(b, 0) ? *a : is_number(a, 0) ? *b : unknown;
    case KILN_OP_sub:
        return is_number(b, 0) ? *a : kiln_symbol_equal(a, b) ? number(0) : unknown;
    case KILN_OP_mul:
        return is_number(b, 1) ? *a : is_number(a, 1) ? *b : unknown;
    case KILN_OP_div:
        return is_number(b, 1) ? *a : unknown;
    case KILN_OP_equal:
        if (kiln_symbol_equal(a, b))
            return number(1);
        /* No extent is negative: how a target's -1 is told apart. */
        if ((a->kind == KILN_SYMBOL_EXTENT && b->kind == KILN_SYMBOL_NUMBER && b->number < 0) ||
            (b->kind == KILN_SYMBOL_EXTENT && a->kind == KILN_SYMBOL_NUMBER && a->number < 0))
            return number(0);
        return unknown;
    default:
        return unknown;
    }
}

/* Element @i of operand @operand, broadcast. */
static const KilnSymbol *
element(KilnSymbolTable *table, const KilnNode *node, uint32_t operand, uint32_t i)
{
    const KilnSymbols *from = kiln_symbols_of(table, node->operands[operand].value);
    if (!from || (from->n != 1 && i >= from->n))
        return &unknown;
    return &from->v[from->n == 1 ? 0 : i];
}

static void
visit_binary(KilnSymbolTable *table, const KilnNode *node, KilnSymbols *out)
{
    if (node->operands[0].value->type.dtype != KILN_DTYPE_i64)
        return;
    for (uint32_t i = 0; i < out->n; i++)
        out->v[i] = combine(node->op, element(table, node, 0, i), element(table, node, 1, i));
}

static void
visit_where(KilnSymbolTable *table, const KilnNode *node, KilnSymbols *out)
{
    for (uint32_t i = 0; i < out->n; i++) {
        const KilnSymbol *condition = element(table, node, 0, i);
        const KilnSymbol *a = element(table, node, 1, i), *b = element(table, node, 2, i);
        if (condition->kind == KILN_SYMBOL_NUMBER)
            out->v[i] = condition->number ? *a : *b;
        else if (kiln_symbol_equal(a, b))
            out->v[i] = *a;
    }
}

void
kiln_symbols_visit(KilnSymbolTable *table, KilnNode *node)
{
    if (node->op == KILN_OP_split) {
        visit_split(table, node);
        return;
    }
    const KilnValue *result = node->n_results == 1 ? &node->results[0] : NULL;
    if (!result || result->known || !is_short_vector(&result->type))
        return;
    KilnSymbols *out = symbols_new(table, result, kiln_type_elements(&result->type));
    switch (node->op) {
    case KILN_OP_shape:
        visit_shape(node, out);
        break;
    case KILN_OP_gather:
        visit_gather(table, node, out);
        break;
    case KILN_OP_slice:
        visit_slice(table, node, out);
        break;
    case KILN_OP_concat:
        visit_concat(table, node, out);
        break;
    case KILN_OP_identity:
    case KILN_OP_reshape:
    case KILN_OP_squeeze:
    case KILN_OP_unsqueeze:
    case KILN_OP_cast:
        if (result->type.dtype == KILN_DTYPE_i64)
            visit_copy(table, node, out);
        break;
    case KILN_OP_add:
    case KILN_OP_sub:
    case KILN_OP_mul:
    case KILN_OP_div:
    case KILN_OP_equal:
        visit_binary(table, node, out);
        break;
    case KILN_OP_where:
        visit_where(table, node, out);
        break;
    default:
        break;
    }
}
