/* SPDX-License-Identifier: Apache-2.0 */
/* Shape function of einsum: one term of letters (and at most one `...`) per operand, then the
 * result's term, which is implied where the equation has no `->`: the dims of the ellipsis and the
 * letters that occur once, in alphabetical order. */
#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/op/matmul.h"

#include <string.h>

enum {
    N_LETTERS = 52
};

typedef struct {
    KilnType letter[N_LETTERS]; /* rank 1 once an operand has it */
    int occurrences[N_LETTERS];
    KilnType ellipsis; /* the broadcast of what the ellipses stand for; may be unranked */
    bool has_ellipsis;
} Einsum;

/* One term as written: letters and the place of the ellipsis. */
typedef struct {
    int letters[2 * KILN_MAX_RANK];
    int n;
    int ellipsis; /* letters in front of it; -1: none */
} Term;

/* Uppercase sorts before lowercase, as in numpy. */
static int
letter_index(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

static char
letter_name(int index)
{
    return (char)(index < 26 ? 'A' + index : 'a' + index - 26);
}

/* Reads a term up to a comma, an arrow or the end. */
static gboolean
read_term(const char **at, Term *term, GError **error)
{
    *term = (Term){ .ellipsis = -1 };
    for (; **at && **at != ',' && **at != '-'; (*at)++) {
        if (**at == ' ')
            continue;
        if (strncmp(*at, "...", 3) == 0 && term->ellipsis < 0) {
            term->ellipsis = term->n;
            *at += 2;
            continue;
        }
        int letter = letter_index(**at);
        if (letter < 0 || term->n == KILN_MAX_RANK)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "equation: expected at most %d letters and one ellipsis in a term, "
                              "found '%.16s'",
                              KILN_MAX_RANK, *at);
        term->letters[term->n++] = letter;
    }
    return TRUE;
}

static gboolean
bind_operand(const KilnInfer *in, uint32_t i, const Term *term, Einsum *sum, GError **error)
{
    const KilnType *x = kiln_infer_type(in, i);
    int hidden = x->rank - term->n;
    if (x->rank >= 0 && (hidden < 0 || (hidden > 0 && term->ellipsis < 0)))
        return kiln_infer_throw_shape(in->node, i, error, "rank %d as in the equation", term->n);
    for (int l = 0; l < term->n; l++) {
        int letter = term->letters[l];
        sum->occurrences[letter]++;
        KilnType *dim = &sum->letter[letter];
        if (dim->rank == 0)
            *dim = kiln_infer_unknown(x->dtype, 1);
        if (x->rank < 0)
            continue;
        int d = term->ellipsis >= 0 && l >= term->ellipsis ? l + hidden : l;
        int64_t expected = dim->dims[0];
        if (!kiln_dim_merge(dim, 0, x, d))
            return kiln_infer_throw_shape(in->node, i, error,
                                          "dim %d ('%c') to be %" G_GINT64_FORMAT, d,
                                          letter_name(letter), expected);
    }
    if (term->ellipsis < 0)
        return TRUE;
    sum->has_ellipsis = true;
    KilnType covered = kiln_type_unranked(x->dtype);
    if (x->rank >= 0) {
        covered.rank = hidden;
        for (int d = 0; d < hidden; d++)
            kiln_dim_copy(&covered, d, x, term->ellipsis + d);
    }
    return kiln_infer_broadcast_shapes(&sum->ellipsis, &covered, &sum->ellipsis, error);
}

static void
imply_result(const Einsum *sum, Term *term)
{
    *term = (Term){ .ellipsis = sum->has_ellipsis ? 0 : -1 };
    for (int letter = 0; letter < N_LETTERS; letter++) {
        if (sum->occurrences[letter] == 1 && term->n < (int)G_N_ELEMENTS(term->letters))
            term->letters[term->n++] = letter;
    }
}

static gboolean
check_result(const Einsum *sum, const Term *term, GError **error)
{
    bool seen[N_LETTERS] = { false };
    for (int l = 0; l < term->n; l++) {
        int letter = term->letters[l];
        if (!sum->occurrences[letter] || seen[letter])
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "equation: expected letters of the operands, each once, in the "
                              "result, found '%c'",
                              letter_name(letter));
        seen[letter] = true;
    }
    if (sum->has_ellipsis != (term->ellipsis >= 0))
        return kiln_throw(error, KILN_ERROR_SHAPE,
                          "equation: expected an ellipsis in operands and result or in neither, "
                          "found one in the %s only",
                          sum->has_ellipsis ? "operands" : "result");
    return TRUE;
}

static gboolean
result_shape(const Einsum *sum, const Term *term, KilnType *out, GError **error)
{
    if (sum->has_ellipsis && sum->ellipsis.rank < 0) {
        *out = kiln_type_unranked(out->dtype);
        return TRUE;
    }
    int hidden = sum->has_ellipsis ? sum->ellipsis.rank : 0;
    if (!kiln_infer_check_rank(term->n + hidden, error))
        return FALSE;
    out->rank = 0;
    for (int l = 0; l <= term->n; l++) {
        for (int d = 0; l == term->ellipsis && d < hidden; d++)
            kiln_dim_copy(out, out->rank++, &sum->ellipsis, d);
        if (l < term->n)
            kiln_dim_copy(out, out->rank++, &sum->letter[term->letters[l]], 0);
    }
    return TRUE;
}

KILN_INFER(einsum)
{
    const char *equation = kiln_attrs(in->node, einsum)->equation;
    const char *at = equation ? equation : "";
    Einsum sum = { .has_ellipsis = false };
    Term term;
    if (!kiln_infer_require_present(in, error) ||
        !kiln_infer_require(in, 0, KILN_SET_NUMBERS, error) || !kiln_infer_require_alike(in, error))
        return FALSE;
    for (uint32_t i = 0; i < in->node->n_operands; i++) {
        if (!read_term(&at, &term, error) || !bind_operand(in, i, &term, &sum, error))
            return FALSE;
        bool last = i + 1 == in->node->n_operands;
        if (!last && *at != ',')
            return kiln_throw(error, KILN_ERROR_SHAPE, "equation: expected %u terms, found %u",
                              in->node->n_operands, i + 1);
        at += !last;
    }
    if (*at == '\0') {
        imply_result(&sum, &term);
    } else {
        if (strncmp(at, "->", 2) != 0)
            return kiln_throw(error, KILN_ERROR_SHAPE,
                              "equation: expected '->' after the term of operand %u, found '%.16s'",
                              in->node->n_operands - 1, at);
        at += 2;
        if (!read_term(&at, &term, error))
            return FALSE;
        if (*at)
            return kiln_throw(error, KILN_ERROR_SHAPE, "equation: expected its end, found '%.16s'",
                              at);
        if (!check_result(&sum, &term, error))
            return FALSE;
    }
    in->out[0].dtype = kiln_infer_type(in, 0)->dtype;
    return result_shape(&sum, &term, &in->out[0], error);
}
