/* SPDX-License-Identifier: Apache-2.0 */
/* optimize-insert: a scatter that overwrites all of its data, in order, is what it writes.
 *
 *     data   [[0],[1],[2]]   u                       u
 *         \       |         /             =>         |
 *            scatter_nd                           reshape
 *
 *   whole-scatter-nd        the indices name every position of the data once, in row-major order
 *   whole-scatter-elements  every index is its own coordinate along the axis
 *
 * requires nothing, preserves nothing; class E: elements are moved. The data is not read any more:
 * where it was made to be overwritten (zeros of an `empty_like`), it goes. Indices that leave a
 * position out keep the data, and those that name one twice keep the scatter: which of the two is
 * written last is its business. Negative indices count from the end. */
#include "graph/op/gather.h"
#include "passes/query/literal.h"
#include "passes/query/movement.h"
#include "passes/rule.h"

#include <string.h>

enum {
    INDICES_MAX = 1 << 16 /* elements of indices that are looked at */
};

/* The indices as numbers; NULL where they are not literal or too many. */
static double *
read_indices(const KilnNode *node, GError **error)
{
    const KilnValue *indices = node->operands[1].value;
    int64_t n = kiln_type_elements(&indices->type);
    return n >= 0 && n <= INDICES_MAX ? kiln_literal_read(indices, error) : NULL;
}

static bool
is_index(double number, int64_t index, int64_t extent)
{
    return number == (double)index || number + (double)extent == (double)index;
}

/* --- scatter_nd --- */

/* Positions in the first dims of the data that the indices have one coordinate each of; -1 where
 * those are open. */
static int64_t
positions(const KilnType *data, int coordinates)
{
    int64_t n = 1;
    for (int d = 0; d < coordinates; d++) {
        if (data->dims[d] < 0 || __builtin_mul_overflow(n, data->dims[d], &n))
            return -1;
    }
    return n;
}

/* Tuple @at of the indices is position @at in row-major order. */
static bool
is_position(const KilnType *data, const double *tuple, int coordinates, int64_t at)
{
    for (int d = coordinates - 1; d >= 0; d--) {
        if (!is_index(tuple[d], at % data->dims[d], data->dims[d]))
            return false;
        at /= data->dims[d];
    }
    return true;
}

static bool
scatter_nd(KilnMatch *match)
{
    KilnNode *node = match->root;
    const KilnType *data = &node->operands[0].value->type;
    const KilnType *list = &node->operands[1].value->type;
    KilnValue *updates = node->operands[2].value;
    GUARD(overwrites, strcmp(kiln_attrs(node, scatter_nd)->reduction, "none") == 0);
    GUARD(plain, !data->layout && !updates->type.layout);
    g_autofree double *indices = read_indices(node, match->error);
    if (*match->error)
        return false;
    GUARD(literal, indices != NULL);
    int coordinates = (int)list->dims[list->rank - 1];
    int64_t n = coordinates > 0 ? kiln_type_elements(list) / coordinates : 0;
    GUARD(covers, coordinates > 0 && n == positions(data, coordinates));
    for (int64_t i = 0; i < n; i++)
        GUARD(in_order, is_position(data, indices + i * coordinates, coordinates, i));
    const KilnType *type = &node->results[0].type;
    KilnValue *value = kiln_type_equal(&updates->type, type)
                           ? updates
                           : kiln_reshape_build(node->function, node, updates, type, match->error);
    return kiln_match_replace(match, value);
}

/* --- scatter_elements --- */

static bool
scatter_elements(KilnMatch *match)
{
    const KilnNode *node = match->root;
    const KilnAttrs_scatter_elements *attrs = kiln_attrs(node, scatter_elements);
    const KilnType *data = &node->operands[0].value->type;
    const KilnType *list = &node->operands[1].value->type;
    GUARD(overwrites, strcmp(attrs->reduction, "none") == 0);
    g_autofree double *indices = read_indices(node, match->error);
    if (*match->error)
        return false;
    GUARD(literal, indices != NULL);
    GUARD(covers, kiln_type_same_shape(list, data));
    int axis = kiln_type_axis(data, attrs->axis);
    int64_t inner = 1;
    for (int d = axis + 1; d < data->rank; d++)
        inner *= data->dims[d];
    for (int64_t i = 0, n = kiln_type_elements(list); i < n; i++)
        GUARD(in_order, is_index(indices[i], i / inner % data->dims[axis], data->dims[axis]));
    return kiln_match_replace(match, node->operands[2].value);
}

static const KilnRule rules[] = {
    RULE("whole-scatter-nd", E, "(scatter_nd ? ? ?)", scatter_nd),
    RULE("whole-scatter-elements", E, "(scatter_elements ? ? ?)", scatter_elements),
};

RULE_PASS(optimize_insert, FORWARD);
