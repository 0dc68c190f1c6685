/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu target's movement of data against the reference kernels, byte by byte: data are random
 * bytes, so floats among them are NaN with payloads. Shapes are small, odd, empty, and large enough
 * for several tasks. */
#include "backends/cpu/cpu.h"
#include "graph/base/number.h"
#include "ir/target.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <string.h>

enum {
    MOST_DIMS = 6,
};

static const KilnDType sizes[] = { KILN_DTYPE_u8, KILN_DTYPE_bf16, KILN_DTYPE_f32, KILN_DTYPE_f64 };

typedef struct {
    int rank;
    int64_t dims[MOST_DIMS];
} Shape;

static void
add_bytes(RefCase *c, KilnDType dtype, const Shape *shape)
{
    case_in(c, dtype, shape->rank, shape->dims, NULL);
    uint32_t i = c->instr.n_operands - 1, state = i + 77;
    uint8_t *bytes = c->data[i];
    for (int64_t k = 0; k < kiln_type_bytes(&c->buffers[i].type); k++) {
        state = state * 1664525u + 1013904223u;
        bytes[k] = (uint8_t)(state >> 24);
    }
}

/* The same bytes as ref's, on 1 … 4 threads and at other addresses, or its error text. */
static void
moves(RefCase *c, const char *name, size_t number)
{
    g_autofree char *what = g_strdup_printf("%s %d", name, (int)number);
    cpu_agrees(c, (Tolerance){ 0, 0 }, what);
    void *out[CASE_MAX_OPERANDS] = { NULL };
    if (!cpu_run(c, &(CpuCall){ .threads = 1 }, out))
        cpu_same_bits(c, (void *[CASE_MAX_OPERANDS]){ c->data[0] },
                      (void *[CASE_MAX_OPERANDS]){ out[0] }, false, what);
    cpu_free(out);
}

#define SHAPE(...)                                                                                 \
    {                                                                                              \
        (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)),                               \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

// clang-format off
static const struct {
    Shape in, perm;
} transposes[] = {
    { { 0, { 0 } }, { 0, { 0 } } },
    { SHAPE(5), SHAPE(0) },
    { SHAPE(3, 4), SHAPE(1, 0) },
    { SHAPE(0, 4), SHAPE(1, 0) },
    { SHAPE(1, 128, 4, 64), SHAPE(0, 2, 1, 3) },
    { SHAPE(1, 4, 37, 64), SHAPE(0, 1, 3, 2) },
    { SHAPE(2, 3, 50, 70), SHAPE(0, 2, 3, 1) },
    { SHAPE(2, 50, 70, 3), SHAPE(0, 3, 1, 2) },
    { SHAPE(201, 307), SHAPE(1, 0) },
    { SHAPE(2, 4097), SHAPE(1, 0) },
    { SHAPE(4097, 2), SHAPE(1, 0) },
    { SHAPE(7, 64, 66), SHAPE(2, 1, 0) },
    { SHAPE(5, 6, 7, 2), SHAPE(2, 1, 0, 3) },
    { SHAPE(6, 34, 35, 2), SHAPE(0, 2, 1, 3) },
    { SHAPE(3, 4, 5, 6, 7), SHAPE(4, 2, 0, 3, 1) },
    { SHAPE(1, 2, 1, 3, 1, 40), SHAPE(5, 4, 3, 2, 1, 0) },
};
// clang-format on

Test(cpu_movement, transpose)
{
    for (size_t i = 0; i < G_N_ELEMENTS(transposes) * G_N_ELEMENTS(sizes); i++) {
        const Shape *in = &transposes[i / 4].in, *perm = &transposes[i / 4].perm;
        g_autoptr(RefCase) c = case_new(KILN_INSTR_transpose);
        CASE_ATTRS(c, transpose)->perm = kiln_ints_make(c->arena, perm->dims, (size_t)perm->rank);
        int64_t dims[MOST_DIMS];
        for (int d = 0; d < in->rank; d++)
            dims[d] = in->dims[perm->dims[d]];
        case_out(c, sizes[i % 4], in->rank, dims);
        add_bytes(c, sizes[i % 4], in);
        moves(c, "transpose", i / 4);
    }
}

// clang-format off
static const struct {
    int64_t axis;
    Shape out;
    int n;
    int64_t parts[4];
} concats[] = {
    { 0, SHAPE(5, 3), 2, { 2, 3 } },
    { 1, SHAPE(2, 4, 1), 3, { 1, 0, 3 } },
    { -1, SHAPE(40, 3), 3, { 1, 1, 1 } },
    { 1, SHAPE(2, 90, 28, 28), 3, { 40, 30, 20 } },
    { 2, SHAPE(3, 3, 5), 1, { 5 } },
    { 1, SHAPE(0, 3), 2, { 1, 2 } },
    { 0, SHAPE(3, 0), 2, { 1, 2 } },
};
// clang-format on

Test(cpu_movement, concat)
{
    for (size_t i = 0; i < G_N_ELEMENTS(concats) * G_N_ELEMENTS(sizes); i++) {
        Shape out = concats[i / 4].out;
        g_autoptr(RefCase) c = case_new(KILN_INSTR_concat);
        CASE_ATTRS(c, concat)->axis = concats[i / 4].axis;
        case_out(c, sizes[i % 4], out.rank, out.dims);
        for (int k = 0; k < concats[i / 4].n; k++) {
            int64_t axis = concats[i / 4].axis;
            out.dims[axis < 0 ? axis + out.rank : axis] = concats[i / 4].parts[k];
            add_bytes(c, sizes[i % 4], &out);
        }
        moves(c, "concat", i / 4);
    }
}

// clang-format off
static const struct {
    Shape in, out, starts, steps;
} slices[] = {
    { SHAPE(3, 4), SHAPE(2, 2), SHAPE(1, 3), SHAPE(1, -2) },
    { SHAPE(3), SHAPE(0), SHAPE(3), SHAPE(1) },
    { SHAPE(100), SHAPE(100), SHAPE(99), SHAPE(-1) },
    { SHAPE(4, 64, 28, 28), SHAPE(4, 32, 28, 28), SHAPE(0, 32, 0, 0), SHAPE(1, 1, 1, 1) },
    { SHAPE(2, 57, 61), SHAPE(2, 29, 31), SHAPE(0, 0, 0), SHAPE(1, 2, 2) },
    { SHAPE(300, 5), SHAPE(300, 1), SHAPE(0, 2), SHAPE(1, 1) },
    { SHAPE(300, 64), SHAPE(300, 2), SHAPE(0, 7), SHAPE(1, 1) },
    { SHAPE(5, 40, 3), SHAPE(5, 20, 3), SHAPE(4, 39, 2), SHAPE(-1, -2, -1) },
};
// clang-format on

Test(cpu_movement, slice)
{
    for (size_t i = 0; i < G_N_ELEMENTS(slices) * G_N_ELEMENTS(sizes); i++) {
        const Shape *starts = &slices[i / 4].starts, *steps = &slices[i / 4].steps;
        g_autoptr(RefCase) c = case_new(KILN_INSTR_slice);
        CASE_ATTRS(c, slice)->starts = kiln_ints_make(c->arena, starts->dims, (size_t)starts->rank);
        CASE_ATTRS(c, slice)->steps = kiln_ints_make(c->arena, steps->dims, (size_t)steps->rank);
        case_out(c, sizes[i % 4], slices[i / 4].out.rank, slices[i / 4].out.dims);
        add_bytes(c, sizes[i % 4], &slices[i / 4].in);
        moves(c, "slice", i / 4);
    }
}

// clang-format off
static const struct {
    KilnInstrKind kind;
    Shape in, out;
} repeats[] = {
    { KILN_INSTR_expand, SHAPE(2, 1), SHAPE(2, 2, 3) },
    { KILN_INSTR_expand, { 0, { 0 } }, SHAPE(3, 50) },
    { KILN_INSTR_expand, SHAPE(1, 64, 1, 1), SHAPE(4, 64, 30, 31) },
    { KILN_INSTR_expand, SHAPE(70), SHAPE(300, 70) },
    { KILN_INSTR_expand, SHAPE(1, 3), SHAPE(0, 3) },
    { KILN_INSTR_expand, SHAPE(5, 1, 7, 1), SHAPE(5, 6, 7, 8) },
    { KILN_INSTR_tile, SHAPE(2, 2), SHAPE(4, 4) },
    { KILN_INSTR_tile, SHAPE(2, 2), SHAPE(0, 4) },
    { KILN_INSTR_tile, SHAPE(1, 3, 20), SHAPE(100, 6, 60) },
    { KILN_INSTR_tile, SHAPE(1), SHAPE(70000) },
    { KILN_INSTR_tile, SHAPE(3, 1, 2), SHAPE(3, 50, 2) },
    { KILN_INSTR_tile, { 0, { 0 } }, { 0, { 0 } } },
};
// clang-format on

Test(cpu_movement, expand_and_tile)
{
    for (size_t i = 0; i < G_N_ELEMENTS(repeats) * G_N_ELEMENTS(sizes); i++) {
        g_autoptr(RefCase) c = case_new(repeats[i / 4].kind);
        case_out(c, sizes[i % 4], repeats[i / 4].out.rank, repeats[i / 4].out.dims);
        add_bytes(c, sizes[i % 4], &repeats[i / 4].in);
        moves(c, "case", i / 4);
    }
}

// clang-format off
static const struct {
    Shape in;
    int64_t pads[2 * MOST_DIMS];
    bool value;
} pads[] = {
    { SHAPE(3), { 2, 1 }, true },
    { SHAPE(3), { 2, 1 }, false },
    { SHAPE(3, 4), { -1, 2, 2, -1 }, true },
    { SHAPE(3, 4), { -2, 3, -1, 0 }, true },
    { SHAPE(3, 4), { -3, 1, 5, 1 }, true },
    { SHAPE(0, 4), { 1, 0, 2, 0 }, true },
    { SHAPE(1, 64, 28, 28), { 0, 0, 1, 1, 0, 0, 1, 1 }, true },
    { SHAPE(2, 3, 20, 20), { 0, 0, -2, -3, 0, 0, -1, -4 }, false },
    { SHAPE(2, 1, 5), { 1, 2, 0, 0, 3, 0 }, true },
    { SHAPE(4, 5), { 0, 0, -4, 0 }, true },
    { { 0, { 0 } }, { 0 }, true },
};
// clang-format on

Test(cpu_movement, pad)
{
    for (size_t i = 0; i < G_N_ELEMENTS(pads) * G_N_ELEMENTS(sizes); i++) {
        const Shape *in = &pads[i / 4].in;
        g_autoptr(RefCase) c = case_new(KILN_INSTR_pad);
        CASE_ATTRS(c, pad)->pads = kiln_ints_make(c->arena, pads[i / 4].pads, 2 * (size_t)in->rank);
        int64_t dims[MOST_DIMS];
        for (int d = 0; d < in->rank; d++)
            dims[d] = in->dims[d] + pads[i / 4].pads[d] + pads[i / 4].pads[d + in->rank];
        case_out(c, sizes[i % 4], in->rank, dims);
        add_bytes(c, sizes[i % 4], in);
        if (pads[i / 4].value)
            add_bytes(c, sizes[i % 4], &(Shape){ 0, { 0 } });
        moves(c, "pad", i / 4);
    }
}

/* Whole numbers in [-extent, extent). */
static void
add_indices(RefCase *c, KilnDType dtype, const Shape *shape, int64_t extent)
{
    case_in(c, dtype, shape->rank, shape->dims, NULL);
    uint32_t o = c->instr.n_operands - 1, state = 5;
    for (int64_t i = 0; i < kiln_type_elements(&c->buffers[o].type); i++) {
        state = state * 1664525u + 1013904223u;
        kiln_element_store_f64(dtype, c->data[o], i,
                               (double)((int64_t)(state >> 8) % (2 * extent) - extent));
    }
}

// clang-format off
static const struct {
    int64_t axis;
    Shape data, indices;
} gathers[] = {
    { 0, SHAPE(10), SHAPE(7) },
    { 0, SHAPE(10), { 0, { 0 } } },
    { 0, SHAPE(1000, 30), SHAPE(5, 128) },
    { 1, SHAPE(3, 10, 4), SHAPE(2, 2) },
    { -1, SHAPE(300, 90), SHAPE(150) },
    { 1, SHAPE(3, 10, 0), SHAPE(4) },
    { 1, SHAPE(3, 10), SHAPE(0) },
    { 1, SHAPE(0, 10), SHAPE(3) },
    { 2, SHAPE(2, 3, 4, 700), { 0, { 0 } } },
};
static const struct {
    int64_t axis;
    Shape data, indices;
} element_gathers[] = {
    { 0, SHAPE(10), SHAPE(27) },
    { 0, SHAPE(4, 3), SHAPE(6, 2) },
    { 1, SHAPE(4, 3), SHAPE(2, 9) },
    { -2, SHAPE(3, 40, 50), SHAPE(3, 70, 50) },
    { 2, SHAPE(40, 30, 20), SHAPE(40, 25, 100) },
    { 1, SHAPE(4, 3), SHAPE(2, 0) },
};
// clang-format on

Test(cpu_movement, gather)
{
    for (size_t i = 0; i < G_N_ELEMENTS(gathers) * 8; i++) {
        const Shape *data = &gathers[i / 8].data, *indices = &gathers[i / 8].indices;
        g_autoptr(RefCase) c = case_new(KILN_INSTR_gather);
        int64_t axis = gathers[i / 8].axis, dims[MOST_DIMS];
        CASE_ATTRS(c, gather)->axis = axis;
        axis = axis < 0 ? axis + data->rank : axis;
        int rank = 0;
        for (int d = 0; d < data->rank; d++) {
            for (int k = 0; d == axis && k < indices->rank; k++)
                dims[rank++] = indices->dims[k];
            if (d != axis)
                dims[rank++] = data->dims[d];
        }
        case_out(c, sizes[i % 4], rank, dims);
        add_bytes(c, sizes[i % 4], data);
        add_indices(c, i % 8 < 4 ? KILN_DTYPE_i64 : KILN_DTYPE_i32, indices, data->dims[axis]);
        moves(c, "gather", i / 8);
    }
}

Test(cpu_movement, gather_elements)
{
    for (size_t i = 0; i < G_N_ELEMENTS(element_gathers) * 8; i++) {
        const Shape *data = &element_gathers[i / 8].data,
                    *indices = &element_gathers[i / 8].indices;
        g_autoptr(RefCase) c = case_new(KILN_INSTR_gather_elements);
        int64_t axis = element_gathers[i / 8].axis;
        CASE_ATTRS(c, gather_elements)->axis = axis;
        case_out(c, sizes[i % 4], indices->rank, indices->dims);
        add_bytes(c, sizes[i % 4], data);
        add_indices(c, i % 8 < 4 ? KILN_DTYPE_i64 : KILN_DTYPE_i32, indices,
                    data->dims[axis < 0 ? axis + data->rank : axis]);
        moves(c, "gather_elements", i / 8);
    }
}

/* The reference's text, whatever the size of what is gathered. */
Test(cpu_movement, indices_out_of_range)
{
    const KilnInstrKind kinds[] = { KILN_INSTR_gather, KILN_INSTR_gather_elements };
    const double wrong[] = { 4, -5, 1e18, -1e18 };
    for (size_t i = 0; i < 8; i++) {
        g_autoptr(RefCase) c = case_new(kinds[i % 2]);
        case_out(c, KILN_DTYPE_f32, DIMS(2));
        case_in(c, KILN_DTYPE_f32, DIMS(4), VALUES(0, 1, 2, 3));
        case_in(c, KILN_DTYPE_i64, DIMS(2), VALUES(-4, wrong[i / 2]));
        cr_assert_not_null(case_run(c));
        moves(c, "index", i);
    }
}

Test(cpu_movement, depth_to_space_and_back)
{
    static const struct {
        const char *mode;
        int64_t block;
        Shape deep;
    } cases[] = {
        { "DCR", 2, SHAPE(1, 8, 1, 1) },    { "CRD", 2, SHAPE(2, 12, 5, 7) },
        { "DCR", 2, SHAPE(2, 64, 20, 17) }, { "CRD", 3, SHAPE(1, 27, 33, 34) },
        { "DCR", 1, SHAPE(2, 3, 4, 5) },    { "DCR", 2, SHAPE(0, 4, 2, 2) },
        { "DCR", 2, SHAPE(1, 6, 2, 2) },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases) * 8; i++) {
        const int64_t *deep = cases[i / 8].deep.dims, block = cases[i / 8].block;
        Shape flat = SHAPE(deep[0], deep[1] / (block * block), deep[2] * block, deep[3] * block);
        bool back = i % 8 >= 4;
        g_autoptr(RefCase) c =
            case_new(back ? KILN_INSTR_space_to_depth : KILN_INSTR_depth_to_space);
        if (back) {
            CASE_ATTRS(c, space_to_depth)->blocksize = block;
            CASE_ATTRS(c, space_to_depth)->mode = cases[i / 8].mode;
        } else {
            CASE_ATTRS(c, depth_to_space)->blocksize = block;
            CASE_ATTRS(c, depth_to_space)->mode = cases[i / 8].mode;
        }
        case_out(c, sizes[i % 4], 4, back ? deep : flat.dims);
        add_bytes(c, sizes[i % 4], back ? &flat : &cases[i / 8].deep);
        moves(c, "depth", i / 8);
    }
}

Test(cpu_movement, channel_shuffle)
{
    static const struct {
        int64_t axis, group;
        Shape shape;
    } cases[] = {
        { 1, 2, SHAPE(1, 116, 28, 28) }, { 1, 3, SHAPE(2, 12, 5, 7) }, { 3, 4, SHAPE(3, 2, 5, 40) },
        { 0, 5, SHAPE(5, 2, 3, 1) },     { 2, 1, SHAPE(2, 3, 4, 5) },  { 1, 2, SHAPE(2, 4, 0, 3) },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases) * 4; i++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_channel_shuffle);
        CASE_ATTRS(c, channel_shuffle)->axis = cases[i / 4].axis;
        CASE_ATTRS(c, channel_shuffle)->group = cases[i / 4].group;
        case_out(c, sizes[i % 4], 4, cases[i / 4].shape.dims);
        add_bytes(c, sizes[i % 4], &cases[i / 4].shape);
        moves(c, "shuffle", i / 4);
    }
}

/* --- resize --- */

// clang-format off
static const struct {
    Shape in, out;
    float scales[4]; /* 0: sizes were given */
} resizes[] = {
    { SHAPE(1, 3, 4, 5), SHAPE(1, 3, 8, 10), { 1, 1, 2, 2 } },
    { SHAPE(2, 40, 32, 32), SHAPE(2, 40, 64, 64), { 0 } },
    { SHAPE(2, 3, 9, 7), SHAPE(2, 3, 4, 3), { 0 } },
    { SHAPE(1, 2, 5, 5), SHAPE(1, 2, 13, 11), { 1, 1, 2.6f, 2.3f } },
    { SHAPE(1, 1, 1, 1), SHAPE(1, 1, 3, 2), { 0 } },
    { SHAPE(1, 2, 6, 6), SHAPE(1, 2, 1, 1), { 0 } },
    { SHAPE(7, 9), SHAPE(7, 20), { 0 } },
    { SHAPE(0, 1, 2, 2), SHAPE(0, 1, 4, 4), { 0 } },
    { SHAPE(1, 1, 0, 2), SHAPE(1, 1, 0, 4), { 0 } },
};
static const char *const coordinates[] = { "half_pixel", "pytorch_half_pixel", "align_corners",
                                           "asymmetric" };
static const char *const nearest_modes[] = { "floor", "ceil", "round_prefer_floor",
                                             "round_prefer_ceil" };
// clang-format on

static RefCase *
resize_case(size_t i, const char *mode, KilnDType dtype)
{
    const Shape *in = &resizes[i / 16].in, *out = &resizes[i / 16].out;
    RefCase *c = case_new(KILN_INSTR_resize);
    KilnInstrAttrs_resize *attrs = CASE_ATTRS(c, resize);
    attrs->mode = mode;
    attrs->coordinate_transformation_mode = coordinates[i % 4];
    attrs->nearest_mode = nearest_modes[i / 4 % 4];
    if (resizes[i / 16].scales[0] > 0)
        attrs->scales = (KilnFloats){ 4, (float *)resizes[i / 16].scales };
    case_out(c, dtype, out->rank, out->dims);
    add_bytes(c, dtype, in);
    return c;
}

Test(cpu_movement, resize_nearest)
{
    for (size_t i = 0; i < G_N_ELEMENTS(resizes) * 16; i++) {
        g_autoptr(RefCase) c = resize_case(i, "nearest", sizes[i / 4 % 4]);
        moves(c, "resize", i);
    }
}

Test(cpu_movement, resize_linear)
{
    for (size_t i = 0; i < G_N_ELEMENTS(resizes) * 16; i++) {
        g_autoptr(RefCase) c = resize_case(i, "linear", KILN_DTYPE_f32);
        cpu_fill(c, 1, 3);
        g_autofree char *what = g_strdup_printf("resize %d", (int)i);
        cpu_agrees(c, (Tolerance){ 2e-6, 1e-6 }, what);
    }
}

/* Where its weight is 0, and elsewhere as the reference has it. */
Test(cpu_movement, resize_linear_beside_infinities)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_resize);
    CASE_ATTRS(c, resize)->mode = "linear";
    CASE_ATTRS(c, resize)->coordinate_transformation_mode = "asymmetric";
    case_out(c, KILN_DTYPE_f32, DIMS(8, 8));
    case_in(c, KILN_DTYPE_f32, DIMS(4, 4),
            VALUES(1, INFINITY, 2, 3, INFINITY, 4, -INFINITY, 5, 6, 7, 8, NAN, 9, 1, INFINITY, 2));
    cpu_agrees(c, (Tolerance){ 1e-6, 1e-6 }, "infinities");
}

/* --- grid_sample --- */

static const struct {
    Shape in, out;
} samples[] = {
    { SHAPE(1, 3, 9, 7), SHAPE(1, 3, 13, 11) },     { SHAPE(3, 1, 4, 5), SHAPE(3, 1, 2, 2) },
    { SHAPE(2, 2, 1, 1), SHAPE(2, 2, 3, 3) },       { SHAPE(2, 5, 20), SHAPE(2, 5, 70) },
    { SHAPE(1, 2, 3, 4, 5), SHAPE(1, 2, 6, 5, 4) }, { SHAPE(1, 3, 4, 4), SHAPE(1, 3, 0, 4) },
    { SHAPE(1, 3, 0, 4), SHAPE(1, 3, 2, 2) }, /* an error of both */
};

/* Weights are made in double as the reference makes them, but rounded to float, as are the sums of
 * up to 16 products of numbers of up to 3 with weights whose magnitudes come to 2 at the most. */
static const Tolerance sampled = { 2e-6, 2e-6 };

/* Positions reach from three times the data's extent below to three times above. */
static RefCase *
sample_case(size_t i, const char *mode, const char *padding, bool align)
{
    const Shape *in = &samples[i].in, *out = &samples[i].out;
    RefCase *c = case_new(KILN_INSTR_grid_sample);
    *CASE_ATTRS(c, grid_sample) = (KilnInstrAttrs_grid_sample){ .align_corners = align,
                                                                .mode = mode,
                                                                .padding_mode = padding };
    case_out(c, KILN_DTYPE_f32, out->rank, out->dims);
    cpu_in(c, in->rank, in->dims);
    int64_t grid[KILN_MAX_RANK] = { out->dims[0] };
    memcpy(grid + 1, out->dims + 2, (size_t)(out->rank - 2) * sizeof *grid);
    grid[out->rank - 1] = out->rank - 2;
    cpu_in(c, out->rank, grid);
    return c;
}

static const char *const sample_modes[] = { "nearest", "linear", "cubic" };
static const char *const sample_paddings[] = { "zeros", "border", "reflection" };

Test(cpu_movement, grid_sample)
{
    for (size_t i = 0; i < G_N_ELEMENTS(samples) * 18; i++) {
        const char *mode = sample_modes[i % 3], *padding = sample_paddings[i / 3 % 3];
        g_autoptr(RefCase) c = sample_case(i / 18, mode, padding, i / 9 % 2);
        if (samples[i / 18].in.rank == 5 && i % 3 == 2) {
            cr_expect_null(kiln_target_find(kiln_cpu_target(), &c->instr));
            continue;
        }
        g_autofree char *what =
            g_strdup_printf("grid_sample %s %s %d", mode, padding, (int)(i / 18));
        cpu_agrees(c, sampled, what);
    }
}

/* Positions that are no numbers or far away, beside infinities that weigh nothing. */
Test(cpu_movement, grid_sample_of_strange_positions)
{
    for (size_t i = 0; i < 9; i++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_grid_sample);
        *CASE_ATTRS(c, grid_sample) =
            (KilnInstrAttrs_grid_sample){ .align_corners = true,
                                          .mode = sample_modes[i % 3],
                                          .padding_mode = sample_paddings[i / 3] };
        case_out(c, KILN_DTYPE_f32, DIMS(1, 1, 7));
        case_in(c, KILN_DTYPE_f32, DIMS(1, 1, 5), VALUES(1, INFINITY, 2, 3, INFINITY));
        case_in(c, KILN_DTYPE_f32, DIMS(1, 7, 1),
                VALUES(NAN, INFINITY, -INFINITY, 1e30, -1e30, -1, 0));
        cpu_agrees(c, sampled, sample_paddings[i / 3]);
    }
}

Test(cpu_movement, resize_falls_back)
{
    for (int cubic = 0; cubic < 2; cubic++) {
        const char *mode = cubic ? "cubic" : "linear";
        g_autoptr(RefCase) c = resize_case(0, mode, KILN_DTYPE_f64);
        cr_expect_null(kiln_target_find(kiln_cpu_target(), &c->instr), "%s", mode);
    }
    g_autoptr(RefCase) c = resize_case(0, "nearest", KILN_DTYPE_f64);
    cr_expect(kiln_target_find(kiln_cpu_target(), &c->instr));
    c->buffers[0].type.dims[1] = 6;
    cr_expect_null(kiln_target_find(kiln_cpu_target(), &c->instr), "channels");
}
