/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions against naive references over whole ranges of small shapes and attributes, and
 * on random nodes: nothing that can be said about operands and attributes may crash them. */
#include "graph/function.h"
#include "graph/infer/infer.h"
#include "graph/module.h"
#include "graph/node.h"
#include "graph/op/additive.h"
#include "graph/op/bounds.h"
#include "graph/op/concat.h"
#include "graph/op/conv.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/layout.h"
#include "graph/op/logic.h"
#include "graph/op/multiplicative.h"
#include "graph/op/pool.h"
#include "graph/op/quantize.h"
#include "graph/op/reshape.h"
#include "graph/op/slice.h"
#include "graph/op/structure.h"

#include <criterion/criterion.h>

static KilnValue *
argument(KilnFunction *function, const char *name, const KilnType *type)
{
    return &kiln_function_add_argument(function, name, type, NULL)->value;
}

static KilnFunction *
function_new(KilnModule *module)
{
    return kiln_function_new(module, "f");
}

/* --- broadcasting --- */

/* All shapes of rank 0 to 3 with dims 0 to 3: @index in [0, 1 + 4 + 16 + 64). */
static KilnType
small_shape(int index)
{
    KilnType type = { .dtype = KILN_DTYPE_f32 };
    for (int count = 1; index >= count; count *= 4) {
        index -= count;
        type.rank++;
    }
    for (int d = 0; d < type.rank; d++, index /= 4)
        type.dims[d] = index % 4;
    return type;
}

/* numpy's rule, dim by dim from the right; false where the shapes do not fit. */
static bool
naive_broadcast(const KilnType *a, const KilnType *b, KilnType *out)
{
    *out = (KilnType){ .dtype = KILN_DTYPE_f32, .rank = MAX(a->rank, b->rank) };
    for (int i = 1; i <= out->rank; i++) {
        int64_t left = i <= a->rank ? a->dims[a->rank - i] : 1;
        int64_t right = i <= b->rank ? b->dims[b->rank - i] : 1;
        if (left != right && left != 1 && right != 1)
            return false;
        out->dims[out->rank - i] = left == 1 ? right : left;
    }
    return true;
}

Test(infer_properties, broadcast_is_numpys)
{
    for (int i = 0; i < 85; i++) {
        for (int j = 0; j < 85; j++) {
            KilnType a = small_shape(i), b = small_shape(j), expected;
            KilnType found = kiln_type_scalar(KILN_DTYPE_f32);
            bool fits = naive_broadcast(&a, &b, &expected);
            g_autoptr(GError) error = NULL;
            gboolean done = kiln_infer_broadcast_shapes(&a, &b, &found, &error);
            cr_assert_eq(done, fits, "shapes %d and %d", i, j);
            cr_assert(!done || kiln_type_equal(&found, &expected), "shapes %d and %d", i, j);
            cr_assert(done || error->code == KILN_ERROR_SHAPE);
        }
    }
}

/* --- slices --- */

/* Python's slice by stepping through it, range(size)[start:end:step], but for a start in front of
 * everything with a negative step: ONNX moves it to 0, where Python finds nothing. */
static int64_t
naive_slice(int64_t size, int64_t start, int64_t end, int64_t step, int64_t *first)
{
    int64_t count = 0;
    start = start < 0 ? start + size : start;
    end = end < 0 ? end + size : end;
    start = step > 0 ? MAX(start, 0) : CLAMP(start, 0, size - 1);
    end = MAX(end, -1);
    for (int64_t i = start; i >= 0 && i < size && (step > 0 ? i < end : i > end); i += step)
        *first = count++ ? *first : i;
    return count;
}

Test(infer_properties, slice_steps_as_python_but_for_starts_in_front)
{
    static const int64_t bounds[] = { G_MININT64, -6, -4, -3, -1, 0, 1, 2, 4, 6, G_MAXINT64 };
    for (int64_t size = 0; size < 5; size++) {
        g_autoptr(KilnModule) module = kiln_module_new();
        KilnFunction *function = function_new(module);
        KilnType type = kiln_type_make(KILN_DTYPE_f32, 1, &size);
        KilnValue *x = argument(function, "x", &type);
        KilnValue *axes = kiln_build_ints(function, NULL, (int64_t[]){ 0 }, 1);
        for (size_t i = 0; i < G_N_ELEMENTS(bounds); i++) {
            KilnValue *start = kiln_build_ints(function, NULL, &bounds[i], 1);
            for (size_t j = 0; j < G_N_ELEMENTS(bounds) * 6; j++) {
                int64_t step = (int64_t)(j % 6) - 3 + (j % 6 > 2), first = 0;
                int64_t end = bounds[j / 6];
                KilnValue *operands[] = { x, start, kiln_build_ints(function, NULL, &end, 1), axes,
                                          kiln_build_ints(function, NULL, &step, 1) };
                KilnValue *y = kiln_build(function, NULL, KILN_OP_slice, NULL, operands, 5, NULL);
                int64_t expected = naive_slice(size, bounds[i], end, step, &first);
                KilnSliceBox box;
                bool known;
                cr_assert(y && kiln_slice_resolve(y->def, &box, &known, NULL) && known);
                cr_assert_eq(y->type.dims[0], expected, "size %d [%d:%d:%d]", (int)size,
                             (int)bounds[i], (int)end, (int)step);
                cr_assert(box.extent[0] == expected && (!expected || box.start[0] == first));
            }
        }
    }
}

/* --- windows --- */

/* Positions of a window by trying them: all of it inside, or (@ceil) the first that reaches beyond
 * the end, if it begins over data or the padding in front. */
static int64_t
naive_windows(int64_t size, int64_t begin, int64_t end, int64_t reach, int64_t stride, bool ceil)
{
    int64_t count = 0, total = size + begin + end;
    for (int64_t at = 0; at + reach <= total; at += stride)
        count++;
    bool partial = count && (count - 1) * stride + reach < total;
    return count + (ceil && partial && count * stride < size + begin);
}

typedef struct {
    int64_t size, kernel, stride, dilation, begin, end;
    bool ceil;
} WindowCase;

static void
check_window(KilnFunction *function, KilnValue *x, const WindowCase *c)
{
    KilnAttrs_max_pool attrs = { .auto_pad = "NOTSET", .ceil_mode = c->ceil };
    int64_t kernel = c->kernel, stride = c->stride, dilation = c->dilation;
    int64_t pads[] = { c->begin, c->end };
    attrs.kernel_shape = (KilnInts){ .n = 1, .v = &kernel };
    attrs.strides = (KilnInts){ .n = 1, .v = &stride };
    attrs.dilations = (KilnInts){ .n = 1, .v = &dilation };
    attrs.pads = (KilnInts){ .n = 2, .v = pads };
    int64_t reach = (kernel - 1) * dilation + 1;
    int64_t expected = naive_windows(c->size, c->begin, c->end, reach, stride, c->ceil);
    KilnValue *y = kiln_build(function, NULL, KILN_OP_max_pool, &attrs, &x, 1, NULL);
    cr_assert_eq(y ? y->type.dims[2] : 0, expected,
                 "size %d kernel %d stride %d dilation %d pads %d %d ceil %d", (int)c->size,
                 (int)kernel, (int)stride, (int)dilation, (int)c->begin, (int)c->end, c->ceil);
}

/* SAME covers the data with ceil(size / stride) windows and no more padding than that needs. */
static void
check_same(KilnFunction *function, KilnValue *x, const WindowCase *c, bool lower)
{
    KilnAttrs_max_pool attrs = { .auto_pad = lower ? "SAME_LOWER" : "SAME_UPPER" };
    int64_t kernel = c->kernel, stride = c->stride, dilation = c->dilation;
    attrs.kernel_shape = (KilnInts){ .n = 1, .v = &kernel };
    attrs.strides = (KilnInts){ .n = 1, .v = &stride };
    attrs.dilations = (KilnInts){ .n = 1, .v = &dilation };
    KilnValue *y = kiln_build(function, NULL, KILN_OP_max_pool, &attrs, &x, 1, NULL);
    KilnWindow window;
    cr_assert(y && kiln_window_resolve(y->def, &window, NULL));
    int64_t out = (c->size + stride - 1) / stride, reach = (kernel - 1) * dilation + 1;
    int64_t total = window.pads_begin[0] + window.pads_end[0];
    int64_t spare = window.pads_end[0] - window.pads_begin[0];
    cr_assert_eq(y->type.dims[2], out);
    cr_assert_eq(total, MAX(0, (out - 1) * stride + reach - c->size));
    cr_assert_eq(spare, lower ? -(total % 2) : total % 2);
}

Test(infer_properties, windows_are_counted)
{
    for (int64_t size = 1; size < 7; size++) {
        g_autoptr(KilnModule) module = kiln_module_new();
        KilnFunction *function = function_new(module);
        KilnType type = kiln_type_make(KILN_DTYPE_f32, 3, (int64_t[]){ 1, 1, size });
        KilnValue *x = argument(function, "x", &type);
        for (int64_t i = 0; i < 4 * 4 * 2 * 3 * 3 * 2; i++) {
            WindowCase c = { .size = size,
                             .kernel = 1 + i % 4,
                             .stride = 1 + i / 4 % 4,
                             .dilation = 1 + i / 16 % 2,
                             .begin = i / 32 % 3,
                             .end = i / 96 % 3,
                             .ceil = i / 288 % 2 };
            check_window(function, x, &c);
            check_same(function, x, &c, c.ceil);
        }
    }
}

/* A transposed convolution undoes the sizes of the convolution with the same window. */
static void
check_spread(KilnFunction *function, KilnValue *x, KilnValue *weights, int64_t i)
{
    int64_t stride = 1 + i % 3, dilation = 1 + i / 3 % 2, extra = i / 6 % stride;
    int64_t pads[] = { i / 18 % 2, i / 36 % 3 };
    KilnInts strides = { .n = 1, .v = &stride }, dilations = { .n = 1, .v = &dilation };
    KilnAttrs_conv_transpose spread = { .auto_pad = "NOTSET",
                                        .group = 1,
                                        .strides = strides,
                                        .dilations = dilations,
                                        .output_padding = { .n = 1, .v = &extra },
                                        .pads = { .n = 2, .v = pads } };
    KilnAttrs_conv slide = { .auto_pad = "NOTSET",
                             .group = 1,
                             .strides = strides,
                             .dilations = dilations,
                             .pads = { .n = 2, .v = pads } };
    KilnValue *y = kiln_build(function, NULL, KILN_OP_conv_transpose, &spread,
                              (KilnValue *[]){ x, weights }, 2, NULL);
    int64_t reach = (weights->type.dims[2] - 1) * dilation + 1;
    if (!y || y->type.dims[2] + pads[0] + pads[1] < reach)
        return; /* padding ate all of it */
    KilnValue *back =
        kiln_build(function, NULL, KILN_OP_conv, &slide, (KilnValue *[]){ y, weights }, 2, NULL);
    cr_assert(back && back->type.dims[2] == x->type.dims[2], "case %d", (int)i);

    /* The size stated outright gives the same padding back. */
    spread.output_shape = (KilnInts){ .n = 1, .v = &y->type.dims[2] };
    spread.pads.n = 0;
    spread.auto_pad = "SAME_UPPER";
    KilnValue *stated = kiln_build(function, NULL, KILN_OP_conv_transpose, &spread,
                                   (KilnValue *[]){ x, weights }, 2, NULL);
    KilnWindow window;
    cr_assert(stated && kiln_window_resolve(stated->def, &window, NULL));
    cr_assert_eq(stated->type.dims[2], y->type.dims[2]);
    cr_assert_eq(window.pads_begin[0] + window.pads_end[0], pads[0] + pads[1]);
    cr_assert_eq(window.pads_begin[0], (pads[0] + pads[1]) / 2);
}

Test(infer_properties, transposed_windows_undo_windows)
{
    for (int64_t i = 0; i < 5 * 4; i++) {
        g_autoptr(KilnModule) module = kiln_module_new();
        KilnFunction *function = function_new(module);
        KilnType data = kiln_type_make(KILN_DTYPE_f32, 3, (int64_t[]){ 1, 1, 1 + i % 5 });
        KilnType kernel = kiln_type_make(KILN_DTYPE_f32, 3, (int64_t[]){ 1, 1, 1 + i / 5 });
        KilnValue *x = argument(function, "x", &data), *w = argument(function, "w", &kernel);
        for (int64_t k = 0; k < 108; k++)
            check_spread(function, x, w, k);
    }
}

/* --- folded arithmetic --- */

static int64_t
naive_i8(KilnOp op, int a, int b)
{
    int sign = (a % b != 0 && (a < 0) != (b < 0)) ? b : 0; /* Python's remainder */
    switch (op) {
    case KILN_OP_add:
        return (int8_t)(a + b);
    case KILN_OP_sub:
        return (int8_t)(a - b);
    case KILN_OP_mul:
        return (int8_t)(a * b);
    case KILN_OP_div:
        return (int8_t)(a / b);
    case KILN_OP_mod:
        return (int8_t)(a % b + sign);
    case KILN_OP_max:
        return MAX(a, b);
    case KILN_OP_less:
        return a < b;
    default:
        return a >= b;
    }
}

Test(infer_properties, bytes_fold_as_in_c)
{
    static const KilnOp ops[] = {
        KILN_OP_add, KILN_OP_sub, KILN_OP_mul,  KILN_OP_div,
        KILN_OP_mod, KILN_OP_max, KILN_OP_less, KILN_OP_greater_or_equal
    };
    int8_t row[256];
    KilnType type = kiln_type_make(KILN_DTYPE_i8, 1, (int64_t[]){ 256 });
    for (int i = 0; i < 256; i++)
        row[i] = (int8_t)(i - 128);
    for (int b = -128; b < 128; b++) {
        g_autoptr(KilnModule) module = kiln_module_new();
        KilnFunction *function = function_new(module);
        KilnType one = kiln_type_scalar(KILN_DTYPE_i8);
        int8_t right = (int8_t)b;
        KilnValue *operands[] = {
            kiln_build_constant(function, NULL, "a", kiln_tensor_new_copy(&type, row, NULL)),
            kiln_build_constant(function, NULL, "b", kiln_tensor_new_copy(&one, &right, NULL))
        };
        for (size_t i = 0; b && i < G_N_ELEMENTS(ops); i++) {
            KilnValue *y = kiln_build(function, NULL, ops[i], NULL, operands, 2, NULL);
            cr_assert(y && y->known && y->known->n == 256);
            for (int k = 0; k < 256; k++)
                cr_assert_eq(y->known->v[k], naive_i8(ops[i], row[k], b), "%s %d %d",
                             kiln_op_info(ops[i])->name, row[k], b);
        }
    }
}

/* --- random nodes --- */

typedef struct {
    uint64_t state;
    KilnModule *module;
    KilnFunction *function;
} Random;

static uint64_t
pick(Random *random, uint64_t n)
{
    random->state = random->state * 6364136223846793005u + 1442695040888963407u;
    return (random->state >> 33) % n;
}

static int64_t
pick_integer(Random *random)
{
    static const int64_t extremes[] = { G_MININT64,         G_MAXINT64, G_MININT64 + 1,
                                        (int64_t)1 << 31,   INT32_MAX,  (int64_t)1 << 30,
                                        -((int64_t)1 << 32) };
    return pick(random, 12) ? (int64_t)pick(random, 9) - 3
                            : extremes[pick(random, G_N_ELEMENTS(extremes))];
}

/* A sequence, optional or map of tensors of the dims of @type. */
static KilnType
with_contents(Random *random, KilnType type)
{
    const KilnDType dtype = type.dtype;
    KilnArena *arena = random->module->arena;
    if (dtype == KILN_DTYPE_map)
        return kiln_type_of_map(arena, pick(random, 2) ? KILN_DTYPE_i64 : KILN_DTYPE_string,
                                KILN_DTYPE_f32);
    type.dtype = KILN_DTYPE_f32;
    return kiln_type_of_items(arena, dtype, &type);
}

static KilnType
pick_type(Random *random)
{
    static const KilnDType likely[] = { KILN_DTYPE_f32, KILN_DTYPE_i64, KILN_DTYPE_u8 };
    KilnType type = { .dtype = pick(random, 4) ? likely[pick(random, 3)]
                                               : (KilnDType)pick(random, KILN_N_DTYPES) };
    type.rank = pick(random, 10) ? (int)pick(random, 6) : (int)pick(random, 10) - 1;
    for (int d = 0; d < type.rank; d++) {
        int64_t dim = pick_integer(random);
        type.dims[d] = dim < 0 ? KILN_DIM_UNKNOWN : dim;
        type.open[d] = dim < 0 && pick(random, 2) ? kiln_dim_name(random->module->dims, "N") : NULL;
    }
    return kiln_dtype_is_item(type.dtype) ? with_contents(random, type) : type;
}

static KilnValue *
pick_operand(Random *random)
{
    if (pick(random, 3) == 0) {
        int64_t values[6];
        uint32_t n = (uint32_t)pick(random, 7);
        for (uint32_t i = 0; i < n; i++)
            values[i] = pick_integer(random);
        return kiln_build_ints(random->function, NULL, values, n);
    }
    if (pick(random, 12) == 0) {
        KilnType type = kiln_type_make(KILN_DTYPE_f32, 1, (int64_t[]){ (int64_t)pick(random, 9) });
        KilnTensor *tensor = kiln_tensor_new_normal(&type, random->state, 1e3);
        return kiln_build_constant(random->function, NULL, "c", tensor);
    }
    KilnType type = pick_type(random);
    g_autofree char *name = g_strdup_printf("x%u", random->function->arguments->len);
    return argument(random->function, name, &type);
}

static void
pick_attr(Random *random, const KilnAttrInfo *info, void *field)
{
    static const char *const words[] = { "SAME_UPPER", "VALID",     "NOTSET", "bidirectional",
                                         "reflect",    "ij,jk->ik", "...i,i", "nearest",
                                         "",           NULL };
    KilnArena *arena = random->module->arena;
    uint32_t n = (uint32_t)pick(random, 7);
    switch (info->kind) {
    case KILN_ATTR_INT:
        *(int64_t *)field = pick_integer(random);
        break;
    case KILN_ATTR_BOOL:
        *(bool *)field = pick(random, 2);
        break;
    case KILN_ATTR_STRING:
        *(const char **)field = words[pick(random, G_N_ELEMENTS(words))];
        break;
    case KILN_ATTR_DTYPE:
        *(KilnDType *)field = (KilnDType)pick(random, KILN_N_DTYPES);
        break;
    case KILN_ATTR_INTS:
        *(KilnInts *)field = (KilnInts){ .n = n, .v = kiln_arena_new0(arena, int64_t, n) };
        for (uint32_t i = 0; i < n; i++)
            ((KilnInts *)field)->v[i] = pick_integer(random);
        break;
    default:
        break;
    }
}

static bool
well_formed(const KilnValue *value)
{
    const KilnType *type = &value->type;
    bool fits = type->rank >= KILN_RANK_UNKNOWN && type->rank <= KILN_MAX_RANK;
    for (int d = 0; fits && d < type->rank; d++)
        fits = type->dims[d] >= KILN_DIM_UNKNOWN && (type->dims[d] < 0 || !type->open[d]);
    return fits && (!value->known || value->known->n == kiln_type_elements(type));
}

static void
try_random_node(Random *random, KilnOp op)
{
    const KilnOpInfo *info = kiln_op_info(op);
    KilnValue *operands[12];
    g_autoptr(GError) error = NULL;
    uint32_t most = (uint32_t)MIN(info->max_operands, 8), n = (uint32_t)info->min_operands;
    cr_assert_leq(n, G_N_ELEMENTS(operands), "%s", info->name);
    n += most > n ? (uint32_t)pick(random, most - n + 1) : 0;
    for (uint32_t i = 0; i < n; i++) {
        bool absent = i >= (uint32_t)info->min_operands && pick(random, 4) == 0;
        /* Operands of one type get further than operands of different ones. */
        operands[i] = absent                      ? NULL
                      : i && pick(random, 3) == 0 ? operands[0]
                                                  : pick_operand(random);
    }
    void *attrs = kiln_op_attrs_new(op, random->module->arena);
    for (uint32_t i = 0; i < info->n_attrs; i++) {
        if (pick(random, 4) == 0)
            pick_attr(random, &info->attrs[i], (char *)attrs + info->attrs[i].offset);
    }
    uint32_t results = (uint32_t)MIN(info->max_results, 4);
    KilnNodeSpec spec = { .op = op,
                          .operands = operands,
                          .n_operands = n,
                          .n_results = (uint32_t)MAX(info->min_results, 1) + (results > 1 ? 1 : 0),
                          .attrs = attrs };
    KilnNode *node = kiln_node_new(random->function, &spec, &error);
    cr_assert(node || error, "%s failed without an error", info->name);
    for (uint32_t r = 0; node && r < node->n_results; r++)
        cr_assert(well_formed(&node->results[r]), "%s: result %u is malformed", info->name, r);
}

Test(infer_properties, random_nodes_do_no_harm)
{
    Random random = { .state = 42 };
    for (int round = 0; round < 150; round++) {
        g_autoptr(KilnModule) module = kiln_module_new();
        random.module = module;
        random.function = function_new(module);
        kiln_foreach_op (op) {
            bool skip = op == KILN_OP_return || op == KILN_OP_const;
            for (int i = 0; !skip && i < 4; i++)
                try_random_node(&random, op);
        }
    }
}

/* --- specialisation --- */

/* A chain as exporters write it: flatten by shape, gather, concat, reshape. */
Test(infer_properties, binding_a_dim_decides_what_depends_on_it)
{
    g_autoptr(KilnModule) module = kiln_module_new();
    KilnFunction *function = function_new(module);
    KilnType type = kiln_type_make(KILN_DTYPE_f32, 3, (int64_t[]){ KILN_DIM_UNKNOWN, 3, 4 });
    type.open[0] = kiln_dim_name(module->dims, "N");
    KilnArgument *x = kiln_function_add_argument(function, "x", &type, NULL);
    KilnValue *value = &x->value;
    KilnValue *shape = kiln_build(function, NULL, KILN_OP_shape, NULL, &value, 1, NULL);
    KilnValue *zero = kiln_build_ints(function, NULL, (int64_t[]){ 0 }, 1);
    KilnValue *rest = kiln_build_ints(function, NULL, (int64_t[]){ -1 }, 1);
    KilnValue *batch =
        kiln_build(function, NULL, KILN_OP_gather, NULL, (KilnValue *[]){ shape, zero }, 2, NULL);
    KilnValue *wanted =
        kiln_build(function, NULL, KILN_OP_concat, NULL, (KilnValue *[]){ batch, rest }, 2, NULL);
    KilnValue *y = kiln_build(function, NULL, KILN_OP_reshape, NULL,
                              (KilnValue *[]){ value, wanted }, 2, NULL);
    cr_assert(y && y->type.rank == 2 && y->type.dims[0] < 0 && y->type.dims[1] == 12);
    cr_assert(kiln_type_equal_dims(&y->type, 0, &x->value.type, 0));
    x->value.type.dims[0] = 5;
    x->value.type.open[0] = NULL;
    cr_assert(kiln_function_reinfer(function, NULL));
    cr_assert(wanted->known && wanted->known->v[0] == 5 && wanted->known->v[1] == -1);
    cr_assert(y->type.dims[0] == 5 && y->type.dims[1] == 12);
}

Test(infer_properties, stated_types_follow_their_operand)
{
    g_autoptr(KilnModule) module = kiln_module_new();
    KilnFunction *function = function_new(module);
    KilnType plain = kiln_type_make(KILN_DTYPE_f32, 4, (int64_t[]){ 1, 16, 4, 4 });
    KilnType blocked = plain, other = plain, wrong = plain;
    blocked.layout = "aBcd16b";
    other.dims[3] = 5;
    wrong.dtype = KILN_DTYPE_f64;
    KilnValue *x = argument(function, "x", &plain);
    KilnNodeSpec spec = { .op = KILN_OP_pack, .operands = &x, .n_operands = 1, .types = &blocked };
    KilnNode *pack = kiln_node_new(function, &spec, NULL);
    cr_assert(pack && kiln_type_equal(&pack->results[0].type, &blocked));
    cr_assert(kiln_node_reinfer(pack, NULL));
    cr_assert(kiln_type_equal(&pack->results[0].type, &blocked));

    KilnType bytes = plain;
    bytes.dtype = KILN_DTYPE_i8;
    bytes.quant = &(KilnQuant){ -1, 1, (float[]){ 0.5f }, (int32_t[]){ 3 } };
    KilnNodeSpec quantize = {
        .op = KILN_OP_quantize_linear, .operands = &x, .n_operands = 1, .types = &bytes
    };
    KilnNode *quantized = kiln_node_new(function, &quantize, NULL);
    cr_assert(quantized && kiln_type_equal(&quantized->results[0].type, &bytes));
    cr_assert(kiln_node_reinfer(quantized, NULL));
    cr_assert(kiln_type_equal(&quantized->results[0].type, &bytes));

    g_autoptr(GError) shape_error = NULL, type_error = NULL;
    spec.types = &other;
    cr_assert(!kiln_node_new(function, &spec, &shape_error));
    cr_assert_eq(shape_error->code, KILN_ERROR_SHAPE);
    spec.types = &wrong;
    cr_assert(!kiln_node_new(function, &spec, &type_error));
    cr_assert_eq(type_error->code, KILN_ERROR_TYPE);
}

Test(infer_properties, stated_types_are_taken_as_they_are)
{
    g_autoptr(KilnModule) module = kiln_module_new();
    KilnFunction *function = function_new(module);
    KilnType types[] = { kiln_type_unranked(KILN_DTYPE_i64),
                         kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ 2, KILN_DIM_UNKNOWN }) };
    types[1].open[1] = kiln_dim_name(module->dims, "N");
    KilnAttrs_unknown attrs = { .op_type = "Mystery", .domain = "there" };
    KilnNodeSpec spec = { .op = KILN_OP_unknown, .n_results = 2, .attrs = &attrs, .types = types };
    KilnNode *node = kiln_node_new(function, &spec, NULL);
    cr_assert(node && kiln_type_equal(&node->results[0].type, &types[0]) &&
              kiln_type_equal(&node->results[1].type, &types[1]));
}
