/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of expressions, which graph/text/parse_dims.c reads. */
#include "graph/dim.h"

#include "graph/base/names.h"
#include "graph/dim/dim_priv.h"

static const char *const functions[] = {
    [KILN_DIM_FLOOR] = "floor",
    [KILN_DIM_MIN] = "min",
    [KILN_DIM_MAX] = "max",
    [KILN_DIM_SELECT] = "select",
};

/* A dividend or divisor; sums in parentheses, for `/` binds them. */
static void
print_side(const KilnDim *dim, GString *out)
{
    bool is_sum = dim->op == KILN_DIM_SUM;
    g_string_append(out, is_sum ? "(" : "");
    kiln_dim_print(dim, out);
    g_string_append(out, is_sum ? ")" : "");
}

static void
print_atom(const KilnDim *dim, GString *out)
{
    g_string_append_printf(out, "%s(", functions[dim->op]);
    if (dim->op == KILN_DIM_FLOOR) {
        print_side(dim->u.args[0], out);
        g_string_append_c(out, '/');
        print_side(dim->u.args[1], out);
    } else {
        for (uint32_t i = 0; i < dim->n; i++) {
            bool compared = dim->op == KILN_DIM_SELECT && i == 1;
            g_string_append(out, !i ? "" : compared ? "=" : ",");
            kiln_dim_print(dim->u.args[i], out);
        }
    }
    g_string_append_c(out, ')');
}

static void
print_term(const KilnDimTerm *term, bool first, GString *out)
{
    int64_t coefficient = term->coefficient;
    if (coefficient == -1)
        g_string_append_c(out, '-');
    else if (coefficient > 0 && !first)
        g_string_append_c(out, '+');
    if (coefficient != 1 && coefficient != -1)
        g_string_append_printf(out, "%" G_GINT64_FORMAT "*", coefficient);
    for (uint32_t i = 0; i < term->n; i++) {
        g_string_append(out, i ? "*" : "");
        kiln_dim_print(term->atoms[i], out);
    }
}

void
kiln_dim_print(const KilnDim *dim, GString *out)
{
    if (!dim) {
        g_string_append_c(out, '?');
        return;
    }
    switch (dim->op) {
    case KILN_DIM_NUMBER:
        g_string_append_printf(out, "%" G_GINT64_FORMAT, dim->number);
        return;
    case KILN_DIM_NAME:
        kiln_word_print(dim->u.name.text, out);
        return;
    case KILN_DIM_SUM:
        for (uint32_t i = 0; i < dim->n; i++)
            print_term(&dim->u.terms[i], i == 0, out);
        if (dim->number)
            g_string_append_printf(
                out, dim->number < 0 ? "%" G_GINT64_FORMAT : "+%" G_GINT64_FORMAT, dim->number);
        return;
    default:
        print_atom(dim, out);
    }
}

char *
kiln_dim_to_string(const KilnDim *dim)
{
    GString *out = g_string_new(NULL);
    kiln_dim_print(dim, out);
    return g_string_free(out, FALSE);
}
