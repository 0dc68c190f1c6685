/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu backend's pad by elements, trilu, eye_like, one_hot, reverse_sequence, gather_nd, resize,
 * scatter_elements and scatter_nd against the reference, for every element type. */
#include "graph/base/number.h"
#include "graph/kiln-types.h"
#include "ir/instr.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <string.h>

static const Tolerance exact = { 0, 0 }, rounded = { 1e-5, 1e-5 };

static const KilnDType types[] = {
    KILN_DTYPE_f32, KILN_DTYPE_f64, KILN_DTYPE_f16, KILN_DTYPE_bf16, KILN_DTYPE_bool,
    KILN_DTYPE_i8,  KILN_DTYPE_i16, KILN_DTYPE_i32, KILN_DTYPE_i64,  KILN_DTYPE_u8,
    KILN_DTYPE_u16, KILN_DTYPE_u32, KILN_DTYPE_u64,
};

static void
filled(RefCase *c, KilnDType dtype, int rank, const int64_t *dims, uint32_t seed)
{
    case_in(c, dtype, rank, dims, NULL);
    cpu_fill(c, c->instr.n_operands - 1, seed);
}

/* --- pad --- */

typedef struct {
    int rank;
    int64_t dims[4], pads[8];
} Padding;

static const Padding paddings[] = {
    { 1, { 5 }, { 3, 2 } },
    { 1, { 5 }, { 17, 23 } },
    { 1, { 1 }, { 2, 3 } },
    { 1, { 9 }, { -2, 4 } },
    { 2, { 4, 70 }, { 1, 2, 3, 0 } },
    { 3, { 3, 4, 5 }, { 0, 2, 0, 1, 1, 0 } },
    { 3, { 2, 60, 61 }, { 0, 3, 5, 0, 3, 5 } },
    { 3, { 2, 6, 5 }, { 1, -2, 0, 1, 3, 0 } },
    { 4, { 2, 3, 4, 5 }, { 0, 1, 0, 0, 0, 2, 0, 0 } },
    { 2, { 3, 4 }, { 0, 0, 0, 0 } },
};

static void
check_pad(const Padding *p, const char *mode, KilnDType dtype)
{
    int64_t out[4] = { 0 };
    g_autoptr(RefCase) c = case_new(KILN_INSTR_pad);
    for (int d = 0; d < p->rank; d++)
        out[d] = p->dims[d] + p->pads[d] + p->pads[d + p->rank];
    CASE_ATTRS(c, pad)->mode = mode;
    CASE_ATTRS(c, pad)->pads = kiln_ints_make(c->arena, p->pads, 2 * (uint32_t)p->rank);
    case_out(c, dtype, p->rank, out);
    filled(c, dtype, p->rank, p->dims, 1);
    cpu_agrees(c, exact, mode);
}

Test(cpu_positions, pads)
{
    for (size_t i = 0; i < G_N_ELEMENTS(paddings); i++) {
        for (size_t t = 0; t < G_N_ELEMENTS(types); t++) {
            check_pad(&paddings[i], "reflect", types[t]);
            check_pad(&paddings[i], "edge", types[t]);
            check_pad(&paddings[i], "wrap", types[t]);
        }
    }
}

Test(cpu_positions, nothing_to_pad_with)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_pad);
    CASE_ATTRS(c, pad)->mode = "edge";
    CASE_ATTRS(c, pad)->pads = CASE_INTS(c, -3, 5);
    case_out(c, KILN_DTYPE_f32, DIMS(5));
    case_in(c, KILN_DTYPE_f32, DIMS(3), VALUES(1, 2, 3));
    cpu_agrees(c, exact, "nothing left");
    cr_expect_str_eq(case_run(c), "there is no element left to pad with");
}

/* --- trilu, eye_like --- */

Test(cpu_positions, triangles)
{
    static const int64_t ks[] = { INT64_MIN, -70, -7, -2, -1, 0, 1, 3, 7, 70, INT64_MAX };
    const int64_t dims[] = { 3, 5, 7 }, large[] = { 2, 190, 130 };
    for (size_t i = 0; i < G_N_ELEMENTS(ks); i++) {
        for (size_t t = 0; t < 2 * G_N_ELEMENTS(types); t++) {
            const KilnDType dtype = types[t / 2];
            g_autoptr(RefCase) c = case_new(KILN_INSTR_trilu);
            CASE_ATTRS(c, trilu)->k = ks[i];
            CASE_ATTRS(c, trilu)->upper = t % 2;
            case_out(c, dtype, 3, t < 4 ? large : dims);
            filled(c, dtype, 3, t < 4 ? large : dims, 1);
            cpu_agrees(c, exact, "triangle");
            g_autoptr(RefCase) eye = case_new(KILN_INSTR_eye_like);
            CASE_ATTRS(eye, eye_like)->k = ks[i];
            case_out(eye, dtype, 2, dims + t % 2);
            if (ks[i] > -1000 && ks[i] < 1000)
                cpu_agrees(eye, exact, "eye");
        }
    }
}

/* --- one_hot --- */

Test(cpu_positions, one_hot)
{
    const int64_t dims[] = { 3, 90 };
    for (int axis = 0; axis < 3; axis++) {
        for (size_t t = 0; t < G_N_ELEMENTS(types); t++) {
            for (int indices = 0; indices < 3; indices++) {
                static const KilnDType of[] = { KILN_DTYPE_i64, KILN_DTYPE_u8, KILN_DTYPE_f32 };
                g_autoptr(RefCase) c = case_new(KILN_INSTR_one_hot);
                int64_t out[3];
                for (int d = 0, from = 0; d < 3; d++)
                    out[d] = d == axis ? 300 : dims[from++];
                CASE_ATTRS(c, one_hot)->axis = axis;
                case_out(c, types[t], 3, out);
                case_in(c, of[indices], 2, dims, NULL);
                for (int64_t i = 0; i < 270; i++)
                    kiln_element_store_f64(of[indices], c->data[1], i,
                                           indices == 1 ? (double)(i % 256)
                                                        : (double)(3 * i - 400));
                case_in(c, types[t], DIMS(2), VALUES(0, 1));
                cpu_agrees(c, exact, "one hot");
            }
        }
    }
}

/* --- reverse_sequence --- */

Test(cpu_positions, sequences)
{
    const int64_t dims[] = { 4, 5, 3 }, n[] = { 4, 5 };
    for (int time = 0; time < 2; time++) {
        for (size_t t = 0; t < G_N_ELEMENTS(types); t++) {
            g_autoptr(RefCase) c = case_new(KILN_INSTR_reverse_sequence);
            CASE_ATTRS(c, reverse_sequence)->time_axis = time;
            CASE_ATTRS(c, reverse_sequence)->batch_axis = 1 - time;
            case_out(c, types[t], 3, dims);
            filled(c, types[t], 3, dims, 1);
            case_in(c, KILN_DTYPE_i64, 1, &n[1 - time], VALUES(0, 1, 3, 4, 2));
            cpu_agrees(c, exact, "lengths");
            ((int64_t *)c->data[2])[1] = 6;
            cpu_agrees(c, exact, "too long");
        }
    }
}

/* --- scatters and gathers --- */

static const char *const reductions[] = { "none", "add", "mul", "max", "min" };

/* Indices in -@extent … @extent - 1. */
static void
indices(RefCase *c, bool wide, int rank, const int64_t *dims, int64_t extent)
{
    Random r = { 7 };
    case_in(c, wide ? KILN_DTYPE_i64 : KILN_DTYPE_i32, rank, dims, NULL);
    const uint32_t i = c->instr.n_operands - 1;
    for (int64_t k = 0; k < kiln_type_elements(&c->buffers[i].type); k++)
        kiln_element_store_f64(c->buffers[i].type.dtype, c->data[i], k,
                               (double)(below(&r, (uint32_t)(2 * extent)) - extent));
}

static bool
is_half(KilnDType dtype)
{
    return dtype == KILN_DTYPE_f16 || dtype == KILN_DTYPE_bf16;
}

static void
check_elements(KilnDType dtype, const char *reduction, int axis)
{
    const int64_t dims[] = { 6, 6, 40 }, some[] = { 4, 6, 33 }, none[] = { 0, 6, 33 };
    for (int empty = 0; empty < 2; empty++) {
        g_autoptr(RefCase) c = case_new(KILN_INSTR_scatter_elements);
        CASE_ATTRS(c, scatter_elements)->axis = axis;
        CASE_ATTRS(c, scatter_elements)->reduction = reduction;
        case_out(c, dtype, 3, dims);
        filled(c, dtype, 3, dims, 1);
        indices(c, empty || dtype == KILN_DTYPE_f32, 3, empty ? none : some, dims[axis]);
        filled(c, dtype, 3, empty ? none : some, 2);
        cpu_agrees(c, rounded, reduction);
        if (!empty) {
            kiln_element_store_f64(c->buffers[2].type.dtype, c->data[2], 100, 40);
            cpu_agrees(c, exact, "out of range");
        }
    }
}

Test(cpu_positions, scatter_elements)
{
    for (size_t t = 0; t < G_N_ELEMENTS(types); t++) {
        for (size_t r = 0; r < G_N_ELEMENTS(reductions); r++) {
            for (int axis = 0; axis < 3 && (r == 0 || !is_half(types[t])); axis++)
                check_elements(types[t], reductions[r], axis);
        }
    }
}

static void
check_nd(KilnDType dtype, const char *reduction, int64_t depth, int64_t row)
{
    const int64_t dims[] = { 5, 5, row }, some[] = { 3, 4, depth }, none[] = { 0, 4, depth };
    for (int empty = 0; empty < 2; empty++) {
        const int64_t *of = empty ? none : some;
        const int64_t updates[] = { of[0], of[1], depth == 1 ? 5 : row, row };
        g_autoptr(RefCase) c = case_new(KILN_INSTR_scatter_nd);
        CASE_ATTRS(c, scatter_nd)->reduction = reduction;
        case_out(c, dtype, 3, dims);
        filled(c, dtype, 3, dims, 1);
        indices(c, true, 3, of, depth == 3 ? MIN(row, 5) : 5);
        filled(c, dtype, depth == 3 ? 2 : depth == 2 ? 3 : 4, updates, 2);
        cpu_agrees(c, rounded, reduction);
        if (!empty) {
            ((int64_t *)c->data[2])[1] = -6000;
            cpu_agrees(c, exact, "out of range");
        }
    }
}

Test(cpu_positions, scatter_nd)
{
    for (size_t t = 0; t < G_N_ELEMENTS(types); t++) {
        for (size_t r = 0; r < G_N_ELEMENTS(reductions); r++) {
            for (int64_t depth = 1; depth < 4 && (r == 0 || !is_half(types[t])); depth++) {
                check_nd(types[t], reductions[r], depth, 7);
                check_nd(types[t], reductions[r], depth, 2600);
            }
        }
    }
}

/* Rows of @last elements and more: among them rows of four bytes for each size of an element. */
static void
check_gather_nd(KilnDType dtype, bool wide, int64_t batch, int64_t depth, int64_t last)
{
    const int64_t dims[] = { 4, 5, 6, last };
    g_autoptr(RefCase) c = case_new(KILN_INSTR_gather_nd);
    int64_t out[6], of[4];
    int rank = 0;
    for (int d = 0; d < batch; d++)
        of[d] = out[rank++] = dims[d];
    of[batch] = out[rank++] = 70;
    of[batch + 1] = depth;
    for (int64_t d = batch + depth; d < 4; d++)
        out[rank++] = dims[d];
    CASE_ATTRS(c, gather_nd)->batch_dims = batch;
    case_out(c, dtype, rank, out);
    filled(c, dtype, 4, dims, 1);
    indices(c, wide, (int)batch + 2, of, 3);
    cpu_agrees(c, exact, "tuples");
    kiln_element_store_f64(c->buffers[2].type.dtype, c->data[2], 3, 99);
    cpu_agrees(c, exact, "out of range");
}

Test(cpu_positions, gather_nd)
{
    for (size_t t = 0; t < G_N_ELEMENTS(types); t++) {
        for (int64_t batch = 0; batch < 3; batch++) {
            for (int64_t depth = 1; depth + batch < 5; depth++) {
                for (int64_t last = 1; last < 5; last++)
                    check_gather_nd(types[t], t % 2, batch, depth, last);
            }
        }
    }
}

/* --- resize by taps --- */

typedef struct {
    int rank;
    int64_t in[4], out[4];
    bool antialias, exclude;
} Resizing;

static const Resizing resizings[] = {
    { 1, { 5 }, { 13 }, false, false },
    { 2, { 5, 7 }, { 5, 7 }, false, false },
    { 2, { 5, 7 }, { 9, 3 }, true, false },
    { 3, { 4, 6, 5 }, { 9, 3, 11 }, false, true },
    { 4, { 2, 3, 9, 8 }, { 2, 3, 4, 3 }, true, true },
    { 4, { 2, 9, 8, 3 }, { 2, 18, 17, 3 }, false, false },
    { 4, { 1, 2, 70, 3 }, { 1, 2, 30, 2600 }, true, false },
    { 4, { 1, 1, 1, 1 }, { 1, 1, 3, 4 }, false, false },
};

static void
check_resize(const Resizing *r, const char *mode, const char *coordinates)
{
    g_autoptr(RefCase) c = case_new(KILN_INSTR_resize);
    KilnInstrAttrs_resize *attrs = CASE_ATTRS(c, resize);
    float roi[] = { 0.1f, 0.2f, -0.3f, 0, 0.8f, 1.3f, 1, 0.9f };
    attrs->mode = mode;
    attrs->coordinate_transformation_mode = coordinates;
    attrs->antialias = r->antialias;
    attrs->exclude_outside = r->exclude;
    attrs->extrapolation_value = 7;
    if (strcmp(coordinates, "tf_crop_and_resize") == 0 && r->rank == 4)
        attrs->roi = (KilnFloats){ 8, roi };
    case_out(c, KILN_DTYPE_f32, r->rank, r->out);
    filled(c, KILN_DTYPE_f32, r->rank, r->in, 1);
    cpu_agrees(c, rounded, coordinates);
}

Test(cpu_positions, resizes)
{
    static const char *const coordinates[] = { "half_pixel",    "half_pixel_symmetric",
                                               "asymmetric",    "pytorch_half_pixel",
                                               "align_corners", "tf_crop_and_resize" };
    for (size_t i = 0; i < G_N_ELEMENTS(resizings); i++) {
        for (size_t k = 0; k < G_N_ELEMENTS(coordinates); k++) {
            check_resize(&resizings[i], "linear", coordinates[k]);
            check_resize(&resizings[i], "cubic", coordinates[k]);
        }
    }
}
