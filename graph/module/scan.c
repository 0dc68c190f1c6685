/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/module/scan.h"

#include "graph/node.h"

/* @list: empty, or a number for each of @n @what. */
static gboolean
check_list(const char *name, KilnInts list, uint32_t n, const char *what, GError **error)
{
    return list.n == 0 || list.n == n ||
           kiln_throw(error, KILN_ERROR_INVALID,
                      "%s: expected a number for each of %u %s, found %u", name, n, what, list.n);
}

static gboolean
check_directions(const char *name, KilnInts list, GError **error)
{
    for (uint32_t i = 0; i < list.n; i++) {
        if (list.v[i] != 0 && list.v[i] != 1)
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "%s: expected 0 (forward) or 1 (backward), found %" G_GINT64_FORMAT,
                              name, list.v[i]);
    }
    return TRUE;
}

static gboolean
check_lists(const KilnAttrs_scan *attrs, uint32_t n_scanned, uint32_t n_stacked, GError **error)
{
    static const char in[] = "scanned operands", out[] = "stacked results";
    return check_list("scan_input_axes", attrs->scan_input_axes, n_scanned, in, error) &&
           check_list("scan_input_directions", attrs->scan_input_directions, n_scanned, in,
                      error) &&
           check_list("scan_output_axes", attrs->scan_output_axes, n_stacked, out, error) &&
           check_list("scan_output_directions", attrs->scan_output_directions, n_stacked, out,
                      error) &&
           check_directions("scan_input_directions", attrs->scan_input_directions, error) &&
           check_directions("scan_output_directions", attrs->scan_output_directions, error);
}

/* Operands from @states on have their axes, of one length where that is known. */
static gboolean
check_scanned(const KilnAttrs_scan *attrs, const KilnType *const *types, uint32_t n,
              uint32_t states, GError **error)
{
    int64_t length = -1;
    uint32_t first = 0; /* of the operands, with a length that is known */
    for (uint32_t i = states; i < n; i++) {
        const KilnType *type = types[i];
        int64_t axis = kiln_ints_at(attrs->scan_input_axes, i - states, 0);
        if (type->rank < 0)
            continue;
        int at = type->rank ? kiln_type_axis(type, axis) : -1;
        if (at < 0)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "operand %u: expected an axis of rank %d to scan, found axis "
                              "%" G_GINT64_FORMAT,
                              i, type->rank, axis);
        if (type->dims[at] < 0 || type->open[at])
            continue;
        if (length >= 0 && length != type->dims[at])
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "operand %u: expected length %" G_GINT64_FORMAT
                              " along its axis, as operand %u has, found %" G_GINT64_FORMAT,
                              i, length, first, type->dims[at]);
        first = length < 0 ? i : first;
        length = type->dims[at];
    }
    return TRUE;
}

gboolean
kiln_scan_check(const KilnAttrs_scan *attrs, const KilnType *const *types, uint32_t n,
                uint32_t n_results, GError **error)
{
    if (attrs->num_scan_inputs < 1 || attrs->num_scan_inputs > n)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "num_scan_inputs: expected 1 to %u, the number of operands, found "
                          "%" G_GINT64_FORMAT,
                          n, attrs->num_scan_inputs);
    uint32_t scanned = (uint32_t)attrs->num_scan_inputs, states = n - scanned;
    if (n_results < states)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "expected a result for each of %u states, found %u results", states,
                          n_results);
    for (uint32_t i = 0; i < n; i++) {
        if (!types[i])
            return kiln_throw(error, KILN_ERROR_INVALID, "operand %u is missing", i);
    }
    return check_lists(attrs, scanned, n_results - states, error) &&
           check_scanned(attrs, types, n, states, error);
}

gboolean
kiln_scan_check_node(const KilnNode *node, GError **error)
{
    g_autofree const KilnType **types = g_new0(const KilnType *, (gsize)node->n_operands + 1);
    for (uint32_t i = 0; i < node->n_operands; i++)
        types[i] = node->operands[i].value ? &node->operands[i].value->type : NULL;
    return kiln_scan_check(kiln_attrs(node, scan), types, node->n_operands, node->n_results, error);
}
