/* SPDX-License-Identifier: Apache-2.0 */
/* The reference backend's convolutions, against sums written element by element. */
#include "graph/base/number.h"
#include "ir/instr.h"
#include "ref_case.h"

#include <string.h>

typedef struct {
    int rank; /* spatial dims */
    int64_t n, in_channels, out_channels, group;
    int64_t in[4], kernel[4], strides[4], dilations[4], begin[4], end[4];
    bool bias;
    KilnDType dtype;
} Conv;

/* Small whole numbers: sums of their products are exact in every float type that is tested. */
static double
number(int64_t i, int64_t range)
{
    return (double)((i * 7919 + i / 3 * 31 + 5) % (2 * range + 1) - range);
}

static void
add_numbers(RefCase *c, KilnDType dtype, int rank, const int64_t *dims)
{
    case_in(c, dtype, rank, dims, NULL);
    uint32_t i = c->instr.n_operands - 1;
    int64_t n = kiln_type_elements(&c->buffers[i].type);
    for (int64_t k = 0; k < n; k++)
        kiln_element_store_f64(dtype, c->data[i], k, number(k + i, 3));
}

static void
spatial(int64_t *dims, int64_t first, int64_t second, const int64_t *rest)
{
    dims[0] = first;
    dims[1] = second;
    memcpy(dims + 2, rest, 4 * sizeof *rest);
}

/* Extents of a convolution's result. */
static void
conv_extents(const Conv *p, int64_t *out)
{
    for (int d = 0; d < p->rank; d++)
        out[d] = (p->in[d] + p->begin[d] + p->end[d] - (p->kernel[d] - 1) * p->dilations[d] - 1) /
                     p->strides[d] +
                 1;
}

static void
transpose_extents(const Conv *p, int64_t *out)
{
    for (int d = 0; d < p->rank; d++)
        out[d] = (p->in[d] - 1) * p->strides[d] + (p->kernel[d] - 1) * p->dilations[d] + 1 -
                 p->begin[d] - p->end[d];
}

static RefCase *
make(const Conv *p, bool transposed)
{
    RefCase *c = case_new(transposed ? KILN_INSTR_conv_transpose : KILN_INSTR_conv);
    int64_t x[6], w[6], y[6], extents[4] = { 0 }, pads[8];
    uint32_t rank = (uint32_t)p->rank;
    (transposed ? transpose_extents : conv_extents)(p, extents);
    spatial(x, p->n, p->in_channels, p->in);
    spatial(y, p->n, p->out_channels, extents);
    if (transposed)
        spatial(w, p->in_channels, p->out_channels / p->group, p->kernel);
    else
        spatial(w, p->out_channels, p->in_channels / p->group, p->kernel);
    memcpy(pads, p->begin, rank * sizeof *pads);
    memcpy(pads + rank, p->end, rank * sizeof *pads);
    /* Both rows begin with the same fields. */
    KilnInstrAttrs_conv *attrs = CASE_ATTRS(c, conv);
    attrs->dilations = kiln_ints_make(c->arena, p->dilations, rank);
    attrs->strides = kiln_ints_make(c->arena, p->strides, rank);
    attrs->pads = kiln_ints_make(c->arena, pads, 2 * rank);
    attrs->group = p->group;
    case_out(c, p->dtype, p->rank + 2, y);
    add_numbers(c, p->dtype, p->rank + 2, x);
    add_numbers(c, p->dtype, p->rank + 2, w);
    if (p->bias)
        add_numbers(c, p->dtype, 1, &p->out_channels);
    return c;
}

static double
at(const RefCase *c, uint32_t operand, const int64_t *index)
{
    const KilnType *type = &c->buffers[operand].type;
    int64_t offset = 0;
    for (int d = 0; d < type->rank; d++) {
        if (index[d] < 0 || index[d] >= type->dims[d])
            return 0;
        offset = offset * type->dims[d] + index[d];
    }
    return kiln_element_as_f64(type->dtype, c->data[operand], offset);
}

static bool
next(int64_t *index, const int64_t *dims, int rank)
{
    int d = rank - 1;
    while (d >= 0 && ++index[d] == dims[d])
        index[d--] = 0;
    return d >= 0;
}

/* One element of the result of either instruction, as the definition has it. */
static double
expected(const RefCase *c, const Conv *p, bool transposed, const int64_t *y)
{
    int64_t per_in = p->in_channels / p->group, per_out = p->out_channels / p->group;
    int64_t group = y[1] / per_out, k[5] = { 0 }, extents[5] = { per_in };
    double sum = p->bias ? at(c, 3, &y[1]) : 0;
    memcpy(extents + 1, p->kernel, sizeof p->kernel);
    do {
        int64_t x[6] = { y[0], group * per_in + k[0] }, w[6];
        bool meets = true;
        for (int d = 0; d < p->rank; d++) {
            int64_t position = k[d + 1] * p->dilations[d];
            if (!transposed) {
                x[d + 2] = y[d + 2] * p->strides[d] - p->begin[d] + position;
                continue;
            }
            int64_t from = y[d + 2] + p->begin[d] - position;
            meets &= from >= 0 && from % p->strides[d] == 0;
            x[d + 2] = from / p->strides[d];
        }
        spatial(w, transposed ? x[1] : y[1], transposed ? y[1] % per_out : k[0], k + 1);
        if (meets)
            sum += at(c, 1, x) * at(c, 2, w);
    } while (next(k, extents, p->rank + 1));
    return sum;
}

static void
check(const Conv *p, bool transposed)
{
    g_autoptr(RefCase) c = make(p, transposed);
    const char *error = case_run(c);
    cr_assert_null(error);
    const KilnType *out = &c->buffers[0].type;
    int64_t y[KILN_MAX_RANK] = { 0 };
    for (int64_t i = 0; i < kiln_type_elements(out); i++) {
        double found = kiln_element_as_f64(out->dtype, c->data[0], i);
        double want = expected(c, p, transposed, y);
        cr_expect_eq(found, want, "element %d: expected %g, found %g", (int)i, want, found);
        next(y, out->dims, out->rank);
    }
}

/* clang-format off */
static const Conv cases[] = {
    /* rank n ic oc g  in              kernel      strides     dilations   begin       end      bias dtype */
    { 1, 2, 2, 3, 1, { 9 },          { 3 },      { 2 },      { 2 },      { 2 },      { 1 },      true,  KILN_DTYPE_f32 },
    { 1, 1, 1, 1, 1, { 5 },          { 1 },      { 3 },      { 1 },      { 0 },      { 0 },      false, KILN_DTYPE_f64 },
    { 2, 1, 1, 1, 1, { 5, 4 },       { 3, 3 },   { 1, 1 },   { 1, 1 },   { 1, 1 },   { 1, 1 },   false, KILN_DTYPE_f32 },
    { 2, 2, 4, 6, 2, { 7, 6 },       { 3, 2 },   { 2, 1 },   { 1, 2 },   { 0, 1 },   { 2, 0 },   true,  KILN_DTYPE_f32 },
    { 2, 1, 3, 3, 3, { 6, 6 },       { 3, 3 },   { 1, 2 },   { 1, 1 },   { 1, 1 },   { 1, 1 },   true,  KILN_DTYPE_f16 },
    { 2, 1, 2, 6, 2, { 4, 5 },       { 2, 2 },   { 3, 3 },   { 2, 1 },   { 1, 3 },   { 1, 2 },   true,  KILN_DTYPE_bf16 },
    { 2, 1, 1, 2, 1, { 2, 2 },       { 5, 5 },   { 1, 1 },   { 1, 1 },   { 4, 4 },   { 4, 4 },   false, KILN_DTYPE_f32 },
    { 3, 1, 2, 2, 1, { 3, 4, 5 },    { 2, 2, 3 },{ 1, 2, 1 },{ 1, 1, 2 },{ 1, 0, 2 },{ 0, 1, 2 },true,  KILN_DTYPE_f32 },
    { 4, 1, 2, 2, 2, { 3, 2, 3, 2 }, { 2, 1, 2, 2 }, { 1, 1, 2, 1 }, { 1, 1, 1, 1 }, { 1, 0, 1, 1 }, { 0, 0, 1, 0 }, true, KILN_DTYPE_f64 },
};
/* clang-format on */

Test(ref_conv, conv)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        check(&cases[i], false);
}

Test(ref_conv, conv_transpose)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Conv p = cases[i];
        for (int d = 0; d < p.rank; d++) {
            p.begin[d] = MIN(p.begin[d], 1);
            p.end[d] = MIN(p.end[d], 1) - (d == 0); /* -1: output_padding */
        }
        check(&p, true);
    }
}

/* The sum of 2^24 and two ones: lost in single precision, exact when it is rounded once. */
Test(ref_conv, sums_are_rounded_once)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_conv);
    case_out(c, KILN_DTYPE_f32, DIMS(1, 1, 1));
    case_in(c, KILN_DTYPE_f32, DIMS(1, 1, 3), VALUES(16777216, 1, 1));
    case_in(c, KILN_DTYPE_f32, DIMS(1, 1, 3), VALUES(1, 1, 1));
    case_gives(c, VALUES(16777218), 0);
}

Test(ref_conv, halves_round_once)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_conv);
    case_out(c, KILN_DTYPE_f16, DIMS(1, 1, 1));
    case_in(c, KILN_DTYPE_f16, DIMS(1, 1, 3), VALUES(2048, 1, 1));
    case_in(c, KILN_DTYPE_f16, DIMS(1, 1, 3), VALUES(1, 1, 1));
    case_gives(c, VALUES(2050), 0);
}

Test(ref_conv, nothing_in_gives_bias)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_conv);
    case_out(c, KILN_DTYPE_f32, DIMS(1, 2, 2));
    case_in(c, KILN_DTYPE_f32, DIMS(1, 0, 2), NULL);
    case_in(c, KILN_DTYPE_f32, DIMS(2, 0, 1), NULL);
    case_in(c, KILN_DTYPE_f32, DIMS(2), VALUES(3, 4));
    case_gives(c, VALUES(3, 3, 4, 4), 0);
}

Test(ref_conv, no_images)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_conv);
    case_out(c, KILN_DTYPE_f32, DIMS(0, 2, 2, 2));
    case_in(c, KILN_DTYPE_f32, DIMS(0, 1, 2, 2), NULL);
    case_in(c, KILN_DTYPE_f32, DIMS(2, 1, 1, 1), VALUES(1, 1));
    cr_assert_null(case_run(c));
}

/* --- deform_conv --- */

/* Each window reads one element, moved by its offset: by half, over the edge, and outside. */
Test(ref_conv, deform_conv)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_deform_conv);
    CASE_ATTRS(c, deform_conv)->group = 1;
    CASE_ATTRS(c, deform_conv)->offset_group = 1;
    case_out(c, KILN_DTYPE_f32, DIMS(1, 1, 1, 4));
    case_in(c, KILN_DTYPE_f32, DIMS(1, 1, 1, 4), VALUES(1, 2, 4, 8));
    case_in(c, KILN_DTYPE_f32, DIMS(1, 1, 1, 1), VALUES(10));
    case_in(c, KILN_DTYPE_f32, DIMS(1, 2, 1, 4), VALUES(0, 0, 0.25, -1, 0.5, -1.75, 0, 0));
    case_in(c, KILN_DTYPE_f32, DIMS(1), VALUES(1));
    case_in(c, KILN_DTYPE_f32, DIMS(1, 1, 1, 4), VALUES(1, 0.5, 2, 1));
    case_gives(c, VALUES(16, 2.25, 61, 1), 1e-6);
}

/* The offset moves the window in the element type; kernel elements are counted from there. */
Test(ref_conv, deform_conv_places_are_rounded_as_by_onnx)
{
    const double tiny = 0x1p-24, large = 0x1p24;
    for (int wide = 0; wide < 2; wide++) {
        const KilnDType dtype = wide ? KILN_DTYPE_f64 : KILN_DTYPE_f32;
        g_autoptr(RefCase) c = case_new(KILN_INSTR_deform_conv);
        CASE_ATTRS(c, deform_conv)->group = 1;
        CASE_ATTRS(c, deform_conv)->offset_group = 1;
        case_out(c, dtype, DIMS(1, 1, 1, 3));
        case_in(c, dtype, DIMS(1, 1, 1, 4), VALUES(0, 0, large, 0));
        case_in(c, dtype, DIMS(1, 1, 1, 2), VALUES(1, 10));
        case_in(c, dtype, DIMS(1, 4, 1, 3),
                VALUES(0, 0, 0, tiny, tiny, tiny, 0, 0, 0, tiny, tiny, tiny));
        if (wide)
            case_gives(c, VALUES(10, 1 + 10 * (large - 1), large - 1), 1e-6);
        else
            case_gives(c, VALUES(10, 10 * large, large), 1e-6);
    }
}

/* Kernel elements have offsets of their own; in one dim there is one number each. */
Test(ref_conv, deform_conv_in_one_dim)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_deform_conv);
    CASE_ATTRS(c, deform_conv)->group = 1;
    CASE_ATTRS(c, deform_conv)->offset_group = 1;
    case_out(c, KILN_DTYPE_f32, DIMS(1, 1, 2));
    case_in(c, KILN_DTYPE_f32, DIMS(1, 1, 3), VALUES(1, 2, 4));
    case_in(c, KILN_DTYPE_f32, DIMS(1, 1, 2), VALUES(1, 10));
    case_in(c, KILN_DTYPE_f32, DIMS(1, 2, 2), VALUES(1, 0, 0, -1));
    case_gives(c, VALUES(22, 22), 1e-6);
}
