/* SPDX-License-Identifier: Apache-2.0 */
/* einsum: sums of products over labelled dims, straight from the equation.
 *
 * Labels are letters (upper and lower case differ) and the dims under an ellipsis, which are
 * aligned at the right and broadcast. A label that occurs twice in a term walks the diagonal; one
 * that is missing in the result is summed. Without "->" the result has the ellipsis dims, then the
 * labels that occur once, in the order of ASCII. Dims of extent 1 broadcast. */
#include "backends/ref/gemm/inner_loops.h"
#include "backends/ref/kernel.h"
#include "ir/kernel.h"

#include <ctype.h>

enum {
    LETTERS = 52, /* A…Z a…z: the order of ASCII */
    LABELS = LETTERS + KILN_MAX_RANK,
};

typedef struct {
    int64_t extents[LABELS];
    int seen[LABELS];           /* how often in the operands; -1 once in the result */
    int64_t (*strides)[LABELS]; /* scratch: per operand */
    int ellipsis;               /* most dims under an ellipsis */
    int n_out, n;               /* labels in order: those of the result, then summed ones */
    int order[LABELS];
} Einsum;

static const char malformed[] = "the equation does not fit the operands";

static int
label_of(char c)
{
    return isupper((unsigned char)c) ? c - 'A' : c - 'a' + 26;
}

static const char *
skip_spaces(const char *text)
{
    while (*text == ' ')
        text++;
    return text;
}

/* Reads one term as labels, its ellipsis as @ellipsis dims. Returns the number of labels, or -1. */
static int
read_term(const char **text, int ellipsis, int labels[LABELS])
{
    int n = 0;
    bool dots = false;
    const char *at = skip_spaces(*text);
    for (; *at && *at != ',' && *at != '-'; at = skip_spaces(at)) {
        if (strncmp(at, "...", 3) == 0 && !dots) {
            for (int i = 0; i < ellipsis && n < LABELS; i++)
                labels[n++] = LABELS - ellipsis + i;
            dots = true;
            at += 3;
        } else if (isalpha((unsigned char)*at) && n < LABELS) {
            labels[n++] = label_of(*at++);
        } else {
            return -1;
        }
    }
    *text = at;
    return n;
}

/* Labels of operand @i: extents and strides. */
static bool
read_operand(Einsum *e, const char **text, const KilnType *type, int i)
{
    int labels[LABELS];
    const char *again = *text;
    int letters = read_term(text, 0, labels);
    if (letters < 0 || letters > type->rank)
        return false;
    int n = read_term(&again, type->rank - letters, labels);
    if (n != type->rank)
        return false;
    e->ellipsis = MAX(e->ellipsis, n - letters);
    memset(e->strides[i], 0, sizeof e->strides[i]);
    int64_t strides[KILN_MAX_RANK];
    ref_strides(type, strides);
    for (int d = 0; d < n; d++) {
        int label = labels[d];
        int64_t dim = type->dims[d];
        if (e->seen[label] && dim != 1 && e->extents[label] != 1 && dim != e->extents[label])
            return false;
        if (!e->seen[label] || e->extents[label] == 1)
            e->extents[label] = dim;
        e->seen[label]++;
        if (dim != 1)
            e->strides[i][label] += strides[d];
    }
    return true;
}

static bool
add_result_label(Einsum *e, int label)
{
    if (e->seen[label] < 1)
        return false; /* not in an operand, or twice in the result */
    e->seen[label] = -1;
    e->order[e->n_out++] = label;
    return true;
}

static bool
read_result(Einsum *e, const char *text)
{
    if (*text) {
        if (strncmp(text, "->", 2) != 0)
            return false;
        int labels[LABELS];
        text += 2;
        int n = read_term(&text, e->ellipsis, labels);
        for (int i = 0; i < n; i++) {
            if (!add_result_label(e, labels[i]))
                return false;
        }
        return n >= 0 && !*text;
    }
    for (int label = LABELS - e->ellipsis; label < LABELS; label++)
        add_result_label(e, label);
    for (int label = 0; label < LETTERS; label++) {
        if (e->seen[label] == 1)
            add_result_label(e, label);
    }
    return true;
}

static bool
read_equation(Einsum *e, const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0);
    const char *text = kiln_instr_attrs(args->instr, einsum)->equation;
    int operands = (int)args->instr->n_operands - 1;
    for (int i = 0; i < operands; i++) {
        if (!read_operand(e, &text, ref_type(args, (uint32_t)i + 1), i))
            return false;
        if (i + 1 < operands && *text++ != ',')
            return false;
    }
    if (!read_result(e, text) || e->n_out != out->rank)
        return false;
    for (int d = 0; d < out->rank; d++) {
        if (e->extents[e->order[d]] != out->dims[d])
            return false;
    }
    e->n = e->n_out;
    for (int label = 0; label < LABELS; label++) {
        if (e->seen[label] > 0)
            e->order[e->n++] = label;
    }
    return true;
}

/* Scratch: strides per operand, then one row of products along the innermost summed label. There
 * are no products with an operand of no elements, however long its other dims are. */
size_t
kiln_ref_einsum_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    int64_t longest = 1;
    for (uint32_t i = 1; i < instr->n_operands; i++) {
        const KilnType *type = &kiln_instr_operand(instr, i)->type;
        for (int d = 0; d < type->rank && ref_elements(type) > 0; d++)
            longest = MAX(longest, type->dims[d]);
    }
    return instr->n_operands * sizeof(int64_t[LABELS]) + (size_t)longest * sizeof(RefValue);
}

/* Adds the products along @inner (-1: a single one) at a position of the other labels. */
static void
add_products(const Einsum *e, const KilnKernelArgs *args, const int64_t *index, RefValue *sum)
{
    KilnDType dtype = ref_type(args, 0)->dtype;
    const RefRows *rows = kiln_ref_rows(dtype);
    RefValue *row = (RefValue *)(e->strides + args->instr->n_operands);
    bool summed = e->n > e->n_out;
    int others = summed ? e->n - 1 : e->n;
    int64_t n = summed ? e->extents[e->order[others]] : 1;
    for (uint32_t i = 1; i < args->instr->n_operands; i++) {
        const int64_t *strides = e->strides[i - 1];
        int64_t at = 0;
        for (int l = 0; l < others; l++)
            at += index[l] * strides[e->order[l]];
        RefLane lane = { ref_at(args->data[i], at, kiln_dtype_size(dtype)),
                         summed ? strides[e->order[others]] : 1 };
        if (i == 1)
            rows->load(row, lane, n);
        else
            rows->multiply(row, lane, n);
    }
    rows->sum(sum, row, n);
}

const char *
kiln_ref_einsum(const KilnKernelArgs *args)
{
    const KilnType *out = ref_type(args, 0);
    Einsum e = { .strides = args->scratch };
    if (!read_equation(&e, args))
        return malformed;
    if (ref_elements(out) == 0)
        return NULL;
    const RefRows *rows = kiln_ref_rows(out->dtype);
    int64_t index[LABELS] = { 0 }, extents[LABELS], summands = 1;
    for (int l = 0; l < e.n; l++)
        extents[l] = e.extents[e.order[l]];
    int outer = e.n > e.n_out ? e.n - 1 - e.n_out : 0; /* summed labels but the innermost */
    for (int l = e.n_out; l < e.n; l++)
        summands *= extents[l];
    for (int64_t i = 0; i < ref_elements(out); i++) {
        RefValue sum = { .u = 0 };
        while (summands > 0) {
            add_products(&e, args, index, &sum);
            if (!ref_next(index + e.n_out, extents + e.n_out, outer))
                break;
        }
        rows->store(ref_at_out(args->data[0], i, kiln_dtype_size(out->dtype)), &sum, 1);
        ref_next(index, extents, e.n_out);
    }
    return NULL;
}
