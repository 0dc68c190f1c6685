/* SPDX-License-Identifier: Apache-2.0 */
/* Symbolic integers: each element of a small integer value is a number, or an unknown extent of a
 * value. This is for shape arithmetic with open dims. KilnValue.known suffices if every extent is a
 * number. */
#ifndef KILN_PASSES_QUERY_SYMBOL_H
#define KILN_PASSES_QUERY_SYMBOL_H

#include "graph/module.h"

enum {
    KILN_SYMBOLS_MAX = 64 /* elements; longer values are not shapes */
};

typedef enum {
    KILN_SYMBOL_UNKNOWN,
    KILN_SYMBOL_NUMBER,
    KILN_SYMBOL_EXTENT, /* dim `axis` of `value`, which has no number; at least 0 */
} KilnSymbolKind;

typedef struct {
    KilnSymbolKind kind;
    int64_t number;
    KilnValue *value;
    int axis;
} KilnSymbol;

/** The elements of a scalar or a vector. */
typedef struct {
    uint32_t n;
    KilnSymbol v[];
} KilnSymbols;

typedef struct KilnSymbolTable KilnSymbolTable;
KilnSymbolTable *kiln_symbol_table_new(void);
void kiln_symbol_table_free(KilnSymbolTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnSymbolTable, kiln_symbol_table_free)

/** Computes the results of @node from its operands. Their nodes must be visited before. */
void kiln_symbols_visit(KilnSymbolTable *table, KilnNode *node);

/** The elements of @value; NULL if it is no short vector of integers. Valid as long as @table. */
const KilnSymbols *kiln_symbols_of(KilnSymbolTable *table, const KilnValue *value);

/** True if both are certainly equal: the same number, the same extent, or extents of the same name.
 */
bool kiln_symbol_equal(const KilnSymbol *a, const KilnSymbol *b);
/** The extent of dim @axis of @value, as a number if it has one. */
KilnSymbol kiln_symbol_extent(KilnValue *value, int axis);

#endif
