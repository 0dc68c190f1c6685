/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling, reductions, softmax and normalisation of the cpu backend against the reference kernels,
 * over shapes that reach every path: rows and columns, short and long, with and without tails. */
#include "backends/cpu/cpu.h"
#include "graph/base/number.h"
#include "ir/tail.h"
#include "ir/target.h"
#include "tests/unit/cpu_case.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <string.h>

static const Tolerance exact = { 0, 0 };
static const Tolerance rounded = { 2e-6, 2e-6 };

typedef struct {
    int rank;
    int64_t dims[6];
} Shape;

/* Puts infinities and a NaN into operand @i, each into a place of its own. */
static void
put_specials(RefCase *c, uint32_t i)
{
    const int64_t n = kiln_type_elements(&c->buffers[i].type);
    float *x = c->data[i];
    x[n / 5] = INFINITY;
    x[n / 3] = -INFINITY;
    x[n - 2] = NAN;
}

/* --- pooling --- */

typedef struct {
    Shape in;
    int64_t kernel[3], stride[3], dilation[3], pads[6]; /* begins, then ends */
    int64_t more; /* windows that hang over the end of the last dim, as ceil_mode has them */
} PoolCase;

static const PoolCase pools[] = {
    { { 4, { 1, 3, 14, 14 } }, { 2, 2 }, { 2, 2 }, { 1, 1 }, { 0 }, 0 },
    { { 4, { 2, 3, 23, 37 } }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 1, 1, 1, 1 }, 0 },
    { { 4, { 1, 2, 11, 40 } }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 0 },
    { { 4, { 1, 2, 13, 13 } }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 0, 0, 0, 0 }, 1 },
    { { 4, { 1, 2, 13, 50 } }, { 3, 2 }, { 1, 3 }, { 2, 3 }, { 2, 0, 1, 3 }, 0 },
    { { 4, { 1, 2, 9, 70 } }, { 2, 5 }, { 3, 1 }, { 1, 1 }, { 0, 4, 0, 4 }, 0 },
    { { 4, { 1, 2, 7, 7 } }, { 7, 7 }, { 1, 1 }, { 1, 1 }, { 0 }, 0 },
    { { 4, { 1, 1, 5, 5 } }, { 2, 2 }, { 4, 4 }, { 1, 1 }, { 3, 3, 3, 3 }, 0 }, /* empty windows */
    { { 3, { 2, 3, 100 } }, { 4 }, { 2 }, { 1 }, { 1, 2 }, 0 },
    { { 5, { 1, 2, 5, 8, 9 } }, { 3, 2, 3 }, { 2, 1, 2 }, { 1, 2, 1 }, { 1, 0, 1, 1, 1, 1 }, 0 },
    { { 4, { 1, 2, 9, 111 } }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 0 }, 0 },
    { { 4, { 1, 2, 6, 112 } }, { 3, 3 }, { 2, 2 }, { 1, 1 }, { 4, 1, 4, 1 }, 0 },
    { { 4, { 1, 2, 10, 97 } }, { 5, 4 }, { 2, 3 }, { 2, 2 }, { 3, 5, 4, 6 }, 0 },
    { { 4, { 1, 40, 28, 28 } }, { 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1, 1, 1 }, 0 },
    { { 4, { 0, 2, 7, 7 } }, { 2, 2 }, { 2, 2 }, { 1, 1 }, { 0 }, 0 },
    /* steps that nothing takes, the longest that verify */
    { { 4, { 1, 2, 3, 40 } }, { 2, 39 }, { 1 << 30, 1 << 30 }, { 1, 1 }, { 0 }, 0 },
    { { 4, { 1, 2, 3, 40 } }, { 1, 1 }, { 1, 1 }, { 1 << 30, 1 << 30 }, { 0 }, 0 },
};

/* f64 has more digits than the tolerance of f32. */
static const Tolerance digits_of_f64 = { 1e-11, 1e-11 };

static RefCase *
pool_case(KilnInstrKind kind, KilnDType dtype, const PoolCase *p)
{
    RefCase *c = case_new(kind);
    const int n = p->in.rank - 2;
    int64_t dims[6] = { p->in.dims[0], p->in.dims[1] };
    for (int d = 0; d < n; d++) {
        const int64_t reach = (p->kernel[d] - 1) * p->dilation[d] + 1;
        dims[d + 2] = (p->in.dims[d + 2] + p->pads[d] + p->pads[d + n] - reach) / p->stride[d] + 1 +
                      (d == n - 1 ? p->more : 0);
    }
    case_out(c, dtype, p->in.rank, dims);
    case_in(c, dtype, p->in.rank, p->in.dims, NULL);
    cpu_fill(c, 1, 2);
    KilnInstrAttrs_max_pool *attrs = CASE_ATTRS(c, max_pool);
    KilnInts lists[] = { kiln_ints_make(c->arena, p->dilation, (uint32_t)n),
                         kiln_ints_make(c->arena, p->kernel, (uint32_t)n),
                         kiln_ints_make(c->arena, p->pads, (uint32_t)(2 * n)),
                         kiln_ints_make(c->arena, p->stride, (uint32_t)n) };
    if (kind == KILN_INSTR_max_pool) {
        attrs->dilations = lists[0];
        attrs->kernel_shape = lists[1];
        attrs->pads = lists[2];
        attrs->strides = lists[3];
    } else {
        CASE_ATTRS(c, average_pool)->dilations = lists[0];
        CASE_ATTRS(c, average_pool)->kernel_shape = lists[1];
        CASE_ATTRS(c, average_pool)->pads = lists[2];
        CASE_ATTRS(c, average_pool)->strides = lists[3];
    }
    return c;
}

Test(cpu_pool, max_pool)
{
    for (size_t i = 0; i < G_N_ELEMENTS(pools); i++) {
        g_autofree char *what = g_strdup_printf("case %d", (int)i);
        g_autoptr(RefCase) c = pool_case(KILN_INSTR_max_pool, KILN_DTYPE_f32, &pools[i]);
        cpu_agrees(c, exact, what);
        if (pools[i].in.dims[0] == 0)
            continue;
        put_specials(c, 1);
        cpu_agrees(c, exact, what);
    }
}

/* Plain bytes, and quantized ones of which operand and result have the same parameters. */
Test(cpu_pool, max_pool_of_bytes)
{
    static const KilnDType dtypes[] = { KILN_DTYPE_i8, KILN_DTYPE_u8 };
    const KilnQuant quants[] = { { -1, 1, (float[]){ 0.5f }, (int32_t[]){ 3 } },
                                 { -1, 1, (float[]){ 0.5f }, (int32_t[]){ 3 } },
                                 { -1, 1, (float[]){ 0.5f }, (int32_t[]){ 4 } } };
    Random r = { 7 };
    for (size_t i = 0; i < 2 * G_N_ELEMENTS(pools); i++) {
        g_autofree char *what = g_strdup_printf("case %d", (int)i);
        g_autoptr(RefCase) c = pool_case(KILN_INSTR_max_pool, dtypes[i % 2], &pools[i / 2]);
        for (int64_t k = 0; k < kiln_type_elements(&c->buffers[1].type); k++)
            ((uint8_t *)c->data[1])[k] = (uint8_t)below(&r, 256);
        cpu_agrees(c, exact, what);
        c->buffers[0].type.quant = &quants[0];
        c->buffers[1].type.quant = &quants[1];
        cpu_agrees(c, exact, what);
        c->buffers[1].type.quant = &quants[2];
        cr_expect_null(kiln_target_find(kiln_cpu_target(), &c->instr));
    }
}

Test(cpu_pool, average_pool)
{
    for (size_t i = 0; i < 2 * G_N_ELEMENTS(pools); i++) {
        g_autofree char *what = g_strdup_printf("case %d", (int)i);
        g_autoptr(RefCase) c = pool_case(KILN_INSTR_average_pool, KILN_DTYPE_f32, &pools[i / 2]);
        CASE_ATTRS(c, average_pool)->count_include_pad = i % 2;
        cpu_agrees(c, rounded, what);
        g_autoptr(RefCase) wide = pool_case(KILN_INSTR_average_pool, KILN_DTYPE_f64, &pools[i / 2]);
        CASE_ATTRS(wide, average_pool)->count_include_pad = i % 2;
        cpu_agrees(wide, digits_of_f64, what);
        memset(wide->data[1], 0, (size_t)kiln_type_bytes(&wide->buffers[1].type));
        cpu_agrees(wide, exact, what);
    }
}

/* Zeros have the sign that the reference kernel gives them, wherever in the image a window lies. */
Test(cpu_pool, average_pool_of_zeros)
{
    for (size_t i = 0; i < 4 * G_N_ELEMENTS(pools); i++) {
        g_autoptr(RefCase) c = pool_case(KILN_INSTR_average_pool, KILN_DTYPE_f32, &pools[i / 4]);
        void *out[CASE_MAX_OPERANDS] = { NULL };
        float *x = c->data[1];
        CASE_ATTRS(c, average_pool)->count_include_pad = i % 2;
        for (int64_t k = 0; k < kiln_type_elements(&c->buffers[1].type); k++)
            x[k] = i & 2 && k * 7 % 31 < 2 ? 0.0f : -0.0f;
        cr_assert_null(case_run(c));
        cr_assert_null(cpu_run(c, &(CpuCall){ .threads = 1 }, out));
        for (int64_t k = 0; k < kiln_type_elements(&c->buffers[0].type); k++)
            cr_assert_eq(((uint32_t *)out[0])[k], ((uint32_t *)c->data[0])[k],
                         "case %d, element %d: expected %g, found %g", (int)i, (int)k,
                         (double)((float *)c->data[0])[k], (double)((float *)out[0])[k]);
        cpu_free(out);
    }
}

Test(cpu_pool, global_pools)
{
    static const Shape shapes[] = { { 4, { 1, 1000, 7, 7 } },    { 4, { 2, 3, 112, 113 } },
                                    { 3, { 2, 5, 1 } },          { 2, { 3, 4 } },
                                    { 5, { 1, 2, 33, 34, 35 } }, { 4, { 1, 2, 0, 7 } },
                                    { 4, { 0, 2, 7, 7 } } };
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        int64_t dims[6] = { shapes[i].dims[0], shapes[i].dims[1], 1, 1, 1, 1 };
        for (int k = 0; k < 2; k++) {
            const KilnDType dtype = k ? KILN_DTYPE_f64 : KILN_DTYPE_f32;
            g_autoptr(RefCase) average = case_new(KILN_INSTR_global_average_pool);
            case_out(average, dtype, shapes[i].rank, dims);
            case_in(average, dtype, shapes[i].rank, shapes[i].dims, NULL);
            cpu_fill(average, 1, 2);
            cpu_agrees(average, rounded, "global");
            g_autoptr(RefCase) max = case_new(KILN_INSTR_global_max_pool);
            case_out(max, dtype, shapes[i].rank, dims);
            case_in(max, dtype, shapes[i].rank, shapes[i].dims, NULL);
            cpu_fill(max, 1, 2);
            cpu_agrees(max, exact, "global");
        }
    }
}

/* --- reductions --- */

static const KilnInstrKind reductions[] = {
    KILN_INSTR_reduce_l1,         KILN_INSTR_reduce_l2,  KILN_INSTR_reduce_max,
    KILN_INSTR_reduce_mean,       KILN_INSTR_reduce_min, KILN_INSTR_reduce_sum,
    KILN_INSTR_reduce_sum_square,
};

/* @axes has a bit per reduced dim. */
static RefCase *
reduce_case(KilnInstrKind kind, const Shape *s, uint32_t axes)
{
    RefCase *c = case_new(kind);
    int64_t dims[6], list[6];
    uint32_t n = 0;
    for (int d = 0; d < s->rank; d++) {
        dims[d] = axes >> d & 1 ? 1 : s->dims[d];
        if (axes >> d & 1)
            list[n++] = d;
    }
    case_out(c, KILN_DTYPE_f32, s->rank, dims);
    cpu_in(c, s->rank, s->dims);
    CASE_ATTRS(c, reduce_sum)->axes = kiln_ints_make(c->arena, list, n);
    return c;
}

Test(cpu_pool, reductions)
{
    static const Shape shapes[] = { { 0, { 0 } },           { 1, { 19 } },
                                    { 4, { 3, 4, 5, 17 } }, { 5, { 2, 3, 1, 4, 70 } },
                                    { 3, { 4, 0, 3 } },     { 3, { 3, 140, 33 } } };
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        for (uint32_t axes = 0; axes < 1u << shapes[i].rank; axes++) {
            for (size_t k = 0; k < G_N_ELEMENTS(reductions); k++) {
                bool extreme = reductions[k] == KILN_INSTR_reduce_max ||
                               reductions[k] == KILN_INSTR_reduce_min;
                g_autofree char *what = g_strdup_printf("case %d, axes %u", (int)i, axes);
                g_autoptr(RefCase) c = reduce_case(reductions[k], &shapes[i], axes);
                cpu_agrees(c, extreme ? exact : (Tolerance){ 2e-4, 2e-6 }, what);
                if (kiln_type_elements(&c->buffers[1].type) < 10)
                    continue;
                put_specials(c, 1);
                cpu_agrees(c, extreme ? exact : (Tolerance){ 2e-4, 2e-6 }, what);
            }
        }
    }
}

/* Rows that are cut into pieces, columns that are cut into tasks. */
Test(cpu_pool, long_reductions)
{
    static const Shape shapes[] = { { 2, { 3, 70001 } },
                                    { 2, { 700, 601 } },
                                    { 3, { 2, 3, 40000 } } };
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        for (uint32_t axes = 1; axes < 1u << shapes[i].rank; axes++) {
            g_autoptr(RefCase) sum = reduce_case(KILN_INSTR_reduce_mean, &shapes[i], axes);
            cpu_agrees(sum, rounded, "long");
            g_autoptr(RefCase) max = reduce_case(KILN_INSTR_reduce_max, &shapes[i], axes);
            cpu_agrees(max, exact, "long");
        }
    }
}

/* --- softmax --- */

/* The same values as in the case @of. */
static void
check_softmax_of_f64(RefCase *of, const int64_t *dims, int rank, int logarithm)
{
    g_autoptr(RefCase) c = case_new(of->instr.kind);
    case_out(c, KILN_DTYPE_f64, rank, dims);
    case_in(c, KILN_DTYPE_f64, rank, dims, NULL);
    CASE_ATTRS(c, softmax)->axis = CASE_ATTRS(of, softmax)->axis;
    for (int specials = 0; specials < 2; specials++) {
        for (int64_t i = 0; i < kiln_type_elements(&c->buffers[1].type); i++)
            ((double *)c->data[1])[i] = (double)((const float *)of->data[1])[i];
        for (int64_t i = 0; specials && i < kiln_type_elements(&c->buffers[1].type); i += 97)
            ((double *)c->data[1])[i] = i % 2 ? -INFINITY : i % 3 ? 1000 : NAN;
        cpu_agrees(c, (Tolerance){ 1e-14 * logarithm, 4e-15 }, "f64");
    }
}

Test(cpu_pool, softmax)
{
    static const Shape shapes[] = { { 2, { 3, 1000 } },  { 4, { 2, 4, 30, 128 } },
                                    { 3, { 5, 7, 3 } },  { 4, { 1, 21, 13, 17 } },
                                    { 2, { 2, 10001 } }, { 1, { 1 } },
                                    { 3, { 2, 0, 5 } },  { 3, { 3, 2, 200 } } };
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        for (int axis = 0; axis < shapes[i].rank; axis++) {
            for (int logarithm = 0; logarithm < 2; logarithm++) {
                g_autofree char *what = g_strdup_printf("case %d, axis %d", (int)i, axis);
                g_autoptr(RefCase) c =
                    case_new(logarithm ? KILN_INSTR_log_softmax : KILN_INSTR_softmax);
                case_out(c, KILN_DTYPE_f32, shapes[i].rank, shapes[i].dims);
                cpu_in(c, shapes[i].rank, shapes[i].dims);
                CASE_ATTRS(c, softmax)->axis = axis;
                cpu_agrees(c, (Tolerance){ 1e-6 * logarithm, 2e-6 }, what);
                check_softmax_of_f64(c, shapes[i].dims, shapes[i].rank, logarithm);
                if (kiln_type_elements(&c->buffers[1].type) < 10)
                    continue;
                put_specials(c, 1);
                cpu_agrees(c, (Tolerance){ 1e-6 * logarithm, 2e-6 }, what);
            }
        }
    }
}

/* --- normalisation --- */

/* Moves the values of operand @i to about @center. */
static void
move_to(RefCase *c, uint32_t i, double center)
{
    const KilnType *type = &c->buffers[i].type;
    for (int64_t k = 0; k < kiln_type_elements(type); k++)
        kiln_element_store_f64(type->dtype, c->data[i], k,
                               kiln_element_as_f64(type->dtype, c->data[i], k) + center);
}

/* Adds an operand of the type of the result with random values. */
static void
like_result(RefCase *c, int rank, const int64_t *dims)
{
    case_in(c, c->buffers[0].type.dtype, rank, dims, NULL);
    cpu_fill(c, c->instr.n_operands - 1, c->instr.n_operands);
}

static const KilnDType normalized[] = { KILN_DTYPE_f32, KILN_DTYPE_f64 };

static const Shape images[] = {
    { 3, { 2, 4, 700 } },      { 4, { 2, 6, 5, 7 } },  { 3, { 1, 4, 100 } },
    { 4, { 1, 64, 28, 28 } },  { 2, { 5, 8 } },        { 4, { 0, 6, 5, 7 } },
    { 5, { 1, 2, 3, 4, 50 } }, { 4, { 3, 22, 7, 7 } },
};

Test(cpu_pool, batch_normalization)
{
    for (size_t i = 0; i < 2 * G_N_ELEMENTS(images); i++) {
        const Shape *s = &images[i / 2];
        const KilnDType dtype = normalized[i % 2];
        g_autoptr(RefCase) c = case_new(KILN_INSTR_batch_normalization);
        case_out(c, dtype, s->rank, s->dims);
        like_result(c, s->rank, s->dims);
        int axis = i / 2 % 2 ? 1 : s->rank - 1; /* of half of them the last dim */
        CASE_ATTRS(c, batch_normalization)->axis = axis;
        for (int k = 0; k < 4; k++)
            like_result(c, 1, &s->dims[axis]);
        move_to(c, 5, 4); /* variances are positive */
        cpu_agrees(c, i % 2 ? digits_of_f64 : (Tolerance){ 1e-6, 1e-6 }, "image");
        CASE_ATTRS(c, batch_normalization)->training_mode = true;
        cr_assert_null(kiln_target_find(kiln_cpu_target(), &c->instr));
    }
}

/* A mean far from zero costs no digits of the variance. */
Test(cpu_pool, groups)
{
    for (size_t t = 0; t < G_N_ELEMENTS(normalized); t++) {
        const KilnDType dtype = normalized[t];
        for (size_t i = 0; i < 4 * G_N_ELEMENTS(images); i++) {
            const Shape *s = &images[i / 4];
            const bool instance = i % 4 == 0;
            g_autofree char *what = g_strdup_printf("case %d", (int)i);
            g_autoptr(RefCase) c = case_new(instance ? KILN_INSTR_instance_normalization
                                                     : KILN_INSTR_group_normalization);
            case_out(c, dtype, s->rank, s->dims);
            like_result(c, s->rank, s->dims);
            like_result(c, 1, &s->dims[1]);
            like_result(c, 1, &s->dims[1]);
            move_to(c, 1, i % 4 == 3 ? 1000 : 0);
            if (!instance)
                CASE_ATTRS(c, group_normalization)->num_groups = 2;
            bool one = s->rank == 2 && instance; /* runs of one element: 0 but for rounding */
            cpu_agrees(c, t ? digits_of_f64 : (Tolerance){ one ? 1e-3 : 2e-5, 2e-6 }, what);
        }
    }
}

Test(cpu_pool, layer_normalization)
{
    static const Shape shapes[] = {
        { 3, { 2, 9, 256 } }, { 3, { 4, 5, 6 } }, { 2, { 3, 5000 } }, { 1, { 33 } }
    };
    for (size_t t = 0; t < G_N_ELEMENTS(normalized); t++) {
        const KilnDType dtype = normalized[t];
        for (size_t i = 0; i < G_N_ELEMENTS(shapes) * 8; i++) {
            const Shape *s = &shapes[i / 8];
            const int axis = s->rank - 1 - (int)(i % 2 && s->rank > 1);
            Shape statistics = *s;
            for (int d = axis; d < s->rank; d++)
                statistics.dims[d] = 1;
            g_autoptr(RefCase) c = case_new(KILN_INSTR_layer_normalization);
            CASE_ATTRS(c, layer_normalization)->axis = i % 4 < 2 ? axis : axis - s->rank;
            case_out(c, dtype, s->rank, s->dims);
            like_result(c, s->rank, s->dims);
            move_to(c, 1, i % 4 == 1 ? -300 : 0);
            like_result(c, s->rank - axis, s->dims + axis);
            if (i & 4) {
                case_absent(c);
            } else {
                like_result(c, s->rank - axis, s->dims + axis);
                case_out(c, dtype, s->rank, statistics.dims);
                case_out(c, dtype, s->rank, statistics.dims);
            }
            cpu_agrees(c, t ? digits_of_f64 : (Tolerance){ 4e-6, 2e-6 }, "layer");
        }
    }
}

Test(cpu_pool, rms_normalization)
{
    static const Shape shapes[] = { { 3, { 2, 9, 256 } }, { 3, { 4, 5, 6 } }, { 2, { 3, 5000 } },
                                    { 1, { 33 } },        { 2, { 0, 4 } },    { 2, { 300, 3 } } };
    for (size_t t = 0; t < G_N_ELEMENTS(normalized); t++) {
        const KilnDType dtype = normalized[t];
        for (size_t i = 0; i < G_N_ELEMENTS(shapes) * 2; i++) {
            const Shape *s = &shapes[i / 2];
            const int axis = s->rank - 1 - (int)(i % 2 && s->rank > 1);
            g_autoptr(RefCase) c = case_new(KILN_INSTR_rms_normalization);
            CASE_ATTRS(c, rms_normalization)->axis = axis;
            case_out(c, dtype, s->rank, s->dims);
            like_result(c, s->rank, s->dims);
            like_result(c, s->rank - axis, s->dims + axis);
            cpu_agrees(c, t ? digits_of_f64 : (Tolerance){ 1e-6, 2e-6 }, "rms");
        }
    }
}

/* The bits of a sum and a normalization apart, in place of either term and on several threads. */
Test(cpu_pool, normalization_with_residual)
{
    static const Shape shapes[] = {
        { 3, { 2, 9, 256 } }, { 2, { 300, 7 } }, { 2, { 3, 5000 } }, { 2, { 0, 4 } }
    };
    for (size_t i = 0; i < G_N_ELEMENTS(shapes) * 2; i++) {
        const Shape *s = &shapes[i / 2];
        const bool layer = i % 2 == 0;
        const KilnInstrKind kind =
            layer ? KILN_INSTR_layer_normalization : KILN_INSTR_rms_normalization;
        const CpuCall plain = { .threads = 1 };
        const uint32_t residual = kiln_residual_operand(kind);
        void *sum[CASE_MAX_OPERANDS] = { NULL }, *apart[CASE_MAX_OPERANDS] = { NULL };
        g_autoptr(RefCase) add = case_new(KILN_INSTR_add);
        g_autoptr(RefCase) norm = case_new(kind);
        case_out(add, KILN_DTYPE_f32, s->rank, s->dims);
        cpu_in(add, s->rank, s->dims);
        cpu_in(add, s->rank, s->dims);
        case_out(norm, KILN_DTYPE_f32, s->rank, s->dims);
        cpu_in(norm, s->rank, s->dims);
        cpu_in(norm, 1, &s->dims[s->rank - 1]);
        const size_t bytes = (size_t)kiln_type_bytes(&norm->buffers[0].type);
        cr_assert_null(cpu_run(add, &plain, sum));
        memcpy(norm->data[1], sum[0], bytes);
        cr_assert_null(cpu_run(norm, &plain, apart));
        memcpy(norm->data[1], add->data[1], bytes);
        while (norm->instr.n_operands < residual)
            case_absent(norm);
        cpu_in(norm, s->rank, s->dims);
        memcpy(norm->data[residual], add->data[2], bytes);
        for (int call = 0; call < 6; call++) {
            const uint32_t alias[] = { 0, 1, residual };
            const CpuCall how = { .threads = call < 3 ? 1 : 3, .alias = alias[call % 3] };
            void *fused[CASE_MAX_OPERANDS] = { NULL };
            cr_assert_null(cpu_run(norm, &how, fused));
            cr_expect_eq(memcmp(fused[0], apart[0], bytes), 0, "case %d, call %d", (int)i, call);
            cpu_free(fused);
        }
        cpu_agrees(norm, (Tolerance){ 4e-6, 2e-6 }, "with residual");
        cpu_free(sum);
        cpu_free(apart);
    }
}

Test(cpu_pool, lrn)
{
    static const Shape shapes[] = { { 4, { 2, 7, 5, 9 } }, { 3, { 1, 3, 70 } }, { 2, { 3, 12 } } };
    for (size_t i = 0; i < G_N_ELEMENTS(shapes) * 6; i++) {
        const Shape *s = &shapes[i / 6];
        g_autoptr(RefCase) c = case_new(KILN_INSTR_lrn);
        case_out(c, KILN_DTYPE_f32, s->rank, s->dims);
        cpu_in(c, s->rank, s->dims);
        CASE_ATTRS(c, lrn)->size = (int64_t)(i % 6) + 1;
        CASE_ATTRS(c, lrn)->alpha = 0.5f;
        CASE_ATTRS(c, lrn)->bias = 1.5f;
        cpu_agrees(c, (Tolerance){ 1e-7, 2e-6 }, "lrn");
    }
}
