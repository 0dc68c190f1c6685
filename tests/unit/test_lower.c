/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering: what each family of ops becomes, where results are written, and what is refused. Each
 * lowered function passes the verifier. */
#include "graph/binding.h"
#include "graph/function.h"
#include "graph/node.h"
#include "graph/op/cast.h"
#include "graph/op/conv.h"
#include "graph/op/gather.h"
#include "graph/op/generate.h"
#include "graph/op/offload.h"
#include "graph/op/pool.h"
#include "graph/op/recurrent.h"
#include "graph/op/reduce.h"
#include "graph/op/reshape.h"
#include "graph/op/resize.h"
#include "graph/op/slice.h"
#include "graph/op/structure.h"
#include "ir/ir.h"
#include "tests/unit/op_named.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct {
    KilnModule *module;
    KilnFunction *graph;
    KilnIRFunction *ir;
} Fixture;

static Fixture
fixture(void)
{
    Fixture f = { .module = kiln_module_new() };
    f.graph = kiln_function_new(f.module, "main");
    return f;
}

static void
fixture_free(Fixture *f)
{
    kiln_ir_function_free(f->ir);
    kiln_module_free(f->module);
}

static KilnType
typed(KilnDType dtype, int rank, const int64_t *dims)
{
    return kiln_type_make(dtype, rank, dims);
}
#define F32(...)                                                                                   \
    typed(KILN_DTYPE_f32, sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t),                    \
          (int64_t[]){ __VA_ARGS__ })

static KilnValue *
argument(Fixture *f, const char *name, KilnType type)
{
    KilnArgument *made = kiln_function_add_argument(f->graph, name, &type, NULL);
    cr_assert_not_null(made);
    return &made->value;
}

#define INTS(f, ...)                                                                               \
    kiln_build_ints((f)->graph, NULL, (int64_t[]){ __VA_ARGS__ },                                  \
                    sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))

static KilnNode *
node(Fixture *f, KilnOp op, const char *name, const void *attrs, uint32_t n_results,
     uint32_t n_operands, KilnValue *const *operands)
{
    g_autoptr(GError) error = NULL;
    KilnNode *made = kiln_node_new(f->graph,
                                   &(KilnNodeSpec){ .op = op,
                                                    .operands = operands,
                                                    .n_operands = n_operands,
                                                    .n_results = n_results,
                                                    .attrs = attrs,
                                                    .result_name = name },
                                   &error);
    cr_assert_not_null(made, "%s", error ? error->message : "");
    return made;
}
#define NODE(f, op, name, attrs, n_results, ...)                                                   \
    node(f, op_named(#op), name, attrs, n_results,                                                 \
         sizeof((KilnValue *[]){ __VA_ARGS__ }) / sizeof(KilnValue *),                             \
         (KilnValue *[]){ __VA_ARGS__ })
#define VALUE(f, op, name, attrs, ...) kiln_node_result(NODE(f, op, name, attrs, 1, __VA_ARGS__), 0)
#define RETURN(f, ...)                                                                             \
    cr_assert(kiln_function_set_results(                                                           \
        (f)->graph, (KilnValue *[]){ __VA_ARGS__ }, NULL,                                          \
        sizeof((KilnValue *[]){ __VA_ARGS__ }) / sizeof(KilnValue *), NULL))

/* The instructions but for their types: `relu a x; copy y a`. */
static char *
listing(const KilnIRFunction *ir)
{
    GString *out = g_string_new(NULL);
    kiln_foreach_instr (instr, ir) {
        if (instr->kind == KILN_INSTR_alloc || instr->kind == KILN_INSTR_dealloc)
            continue;
        g_string_append_printf(out, "%s%s", out->len ? "; " : "",
                               kiln_instr_info(instr->kind)->name);
        for (uint32_t i = 0; i < instr->n_operands; i++)
            g_string_append_printf(
                out, " %s", instr->operands[i].buffer ? instr->operands[i].buffer->name : "_");
    }
    return g_string_free(out, FALSE);
}

static void
lower(Fixture *f, const char *expected)
{
    g_autoptr(GError) error = NULL;
    f->ir = kiln_lower(f->graph, &error);
    cr_assert_not_null(f->ir, "%s", error ? error->message : "");
    cr_assert(kiln_ir_verify(f->ir, &error), "%s", error ? error->message : "");
    g_autofree char *found = listing(f->ir);
    cr_assert_str_eq(found, expected);
}

static void
refuse(Fixture *f, KilnError code, const char *part)
{
    g_autoptr(GError) error = NULL;
    f->ir = kiln_lower(f->graph, &error);
    cr_assert_null(f->ir);
    cr_assert(g_error_matches(error, KILN_ERROR, (int)code), "%s", error->message);
    cr_assert_not_null(strstr(error->message, part), "%s", error->message);
}

static KilnInstr *
find(const Fixture *f, KilnInstrKind kind)
{
    kiln_foreach_instr (instr, f->ir) {
        if (instr->kind == kind)
            return instr;
    }
    return NULL;
}

static void
expect_ints(KilnInts found, uint32_t n, const int64_t *expected)
{
    cr_assert_eq(found.n, n);
    for (uint32_t i = 0; i < n; i++)
        cr_assert_eq(found.v[i], expected[i], "element %u is %ld", i, (long)found.v[i]);
}
#define EXPECT_INTS(found, ...)                                                                    \
    expect_ints(found, sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t),                       \
                (int64_t[]){ __VA_ARGS__ })

/* --- results --- */

Test(lower, results_are_written_in_place_of_an_alloc)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(4));
    KilnValue *a = VALUE(&f, relu, "a", NULL, x);
    KilnValue *y = VALUE(&f, neg, "y", NULL, a);
    RETURN(&f, y);
    lower(&f, "relu a x; neg y a");
    cr_assert_eq(f.ir->first->kind, KILN_INSTR_alloc);
    cr_assert_eq(f.ir->last->kind, KILN_INSTR_dealloc);
    fixture_free(&f);
}

Test(lower, readers_of_a_result_read_the_output)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(4));
    KilnValue *a = VALUE(&f, relu, "a", NULL, x);
    KilnValue *y = VALUE(&f, neg, "y", NULL, a);
    RETURN(&f, y, a);
    lower(&f, "relu a x; neg y a");
    cr_assert_eq(((KilnBuffer *)f.ir->outputs->pdata[1])->kind, KILN_BUFFER_OUTPUT);
    cr_assert_eq(f.ir->n_instrs, 2);
    fixture_free(&f);
}

Test(lower, other_results_are_copied)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(2, 2));
    KilnValue *w = kiln_build_constant(f.graph, NULL, "w", kiln_tensor_new_splat(&x->type, 2));
    KilnValue *a = VALUE(&f, relu, "a", NULL, x);
    KilnValue *v = VALUE(&f, flatten, "v", &(KilnAttrs_flatten){ .axis = 0 }, a);
    const char *names[] = { "r0", "r1", "r2", "r3", "r4" };
    KilnValue *values[] = { x, w, a, a, v };
    cr_assert(kiln_function_set_results(f.graph, values, names, 5, NULL));
    lower(&f, "relu a x; view v a; copy r0 x; copy r1 w; copy r2 a; copy r3 a; copy r4 v");
    fixture_free(&f);
}

Test(lower, an_output_that_is_a_constant_keeps_both_names)
{
    Fixture f = fixture();
    KilnType type = F32(2);
    KilnValue *w = kiln_build_constant(f.graph, NULL, "w", kiln_tensor_new_splat(&type, 2));
    RETURN(&f, w);
    lower(&f, "copy w w_1");
    KilnBuffer *weight = g_ptr_array_index(f.ir->weights, 0);
    cr_assert_str_eq(weight->constant->name, "w");
    cr_assert(weight->is_const);
    fixture_free(&f);
}

Test(lower, dead_nodes_leave_nothing)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(4));
    KilnType four = F32(4);
    KilnValue *w = kiln_build_constant(f.graph, NULL, "w", kiln_tensor_new_splat(&four, 1));
    VALUE(&f, add, "dead", NULL, x, w);
    KilnValue *y = VALUE(&f, neg, "y", NULL, x);
    RETURN(&f, y);
    lower(&f, "neg y x");
    cr_assert_eq(f.ir->weights->len, 0);
    fixture_free(&f);
}

Test(lower, one_weight_per_constant)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(4));
    KilnType four = F32(4);
    KilnValue *w = kiln_build_constant(f.graph, NULL, "w", kiln_tensor_new_splat(&four, 1));
    KilnAttrs_const same = { .value = kiln_value_constant(w) };
    KilnValue *again = kiln_node_result(node(&f, KILN_OP_const, "again", &same, 1, 0, NULL), 0);
    KilnValue *a = VALUE(&f, add, "a", NULL, x, w);
    KilnValue *y = VALUE(&f, add, "y", NULL, a, again);
    RETURN(&f, y);
    lower(&f, "add a x w; add y a w");
    fixture_free(&f);
}

/* --- what shapes and known integers decide --- */

Test(lower, shape_arithmetic_leaves_no_instructions)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(2, 3, 4));
    KilnValue *s = VALUE(&f, shape, "s", NULL, x);
    KilnValue *n = VALUE(&f, gather, "n", NULL, s, INTS(&f, 0));
    KilnValue *t = VALUE(&f, concat, "t", NULL, n, INTS(&f, -1));
    KilnValue *y = VALUE(&f, reshape, "v", NULL, x, t);
    KilnValue *z = VALUE(&f, relu, "z", NULL, y);
    RETURN(&f, z);
    lower(&f, "view v x; relu z v");
    cr_assert_eq(f.ir->weights->len, 0);
    fixture_free(&f);
}

Test(lower, known_values_that_are_read_become_weights)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(2, 3));
    KilnValue *s = VALUE(&f, shape, "s", NULL, x);
    KilnValue *c = VALUE(&f, cast, "c", (KilnAttrs_cast[]){ kiln_cast_to(KILN_DTYPE_f32) }, s);
    RETURN(&f, c, s);
    lower(&f, "cast c s_1; copy s s_1");
    KilnConstant *constant = ((KilnBuffer *)f.ir->weights->pdata[0])->constant;
    int64_t values[2];
    cr_assert(kiln_tensor_write(constant->tensor, values, NULL));
    cr_assert(values[0] == 2 && values[1] == 3);
    fixture_free(&f);
}

/* --- families --- */

Test(lower, views)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(1, 4, 1));
    KilnValue *a = VALUE(&f, squeeze, "a", NULL, x, INTS(&f, 0));
    KilnValue *b = VALUE(&f, unsqueeze, "b", NULL, a, INTS(&f, 2));
    KilnValue *c = VALUE(&f, identity, "c", NULL, b);
    KilnValue *y = VALUE(&f, relu, "y", NULL, c);
    RETURN(&f, y);
    lower(&f, "view a x; view b a; relu y b");
    fixture_free(&f);
}

Test(lower, dropout_does_nothing_in_inference)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(4));
    KilnNode *drop = NODE(&f, dropout, "d", NULL, 2, x);
    KilnValue *y = VALUE(&f, relu, "y", NULL, kiln_node_result(drop, 0));
    RETURN(&f, y, kiln_node_result(drop, 1));
    lower(&f, "relu y x; copy d_1 d_1_1");
    KilnConstant *mask = ((KilnBuffer *)f.ir->weights->pdata[0])->constant;
    uint8_t element[8];
    cr_assert(kiln_tensor_is_splat(mask->tensor, 8, element) && element[0] == 1);
    fixture_free(&f);
}

Test(lower, dropout_in_training_is_refused)
{
    Fixture f = fixture();
    KilnType flag = kiln_type_scalar(KILN_DTYPE_bool);
    KilnValue *x = argument(&f, "x", F32(4));
    KilnValue *on = kiln_build_constant(f.graph, NULL, "on", kiln_tensor_new_splat(&flag, 1));
    KilnValue *y = VALUE(&f, dropout, "y", NULL, x, NULL, on);
    RETURN(&f, y);
    refuse(&f, KILN_ERROR_UNSUPPORTED, "training_mode with ratio 0.5");
    fixture_free(&f);
}

Test(lower, conv_pads_and_kernel_are_resolved)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(1, 3, 7, 7));
    KilnValue *w = argument(&f, "w", F32(4, 3, 3, 2));
    KilnAttrs_conv attrs = { .auto_pad = "SAME_UPPER", .group = 1 };
    KilnValue *y = VALUE(&f, conv, "y", &attrs, x, w);
    RETURN(&f, y);
    lower(&f, "conv y x w");
    KilnInstrAttrs_conv *conv = kiln_instr_attrs(find(&f, KILN_INSTR_conv), conv);
    EXPECT_INTS(conv->pads, 1, 0, 1, 1);
    cr_assert_eq(conv->strides.n, 0); /* the default */
    cr_assert_eq(conv->dilations.n, 0);
    cr_assert_eq(conv->group, 1);
    fixture_free(&f);
}

Test(lower, optional_results_are_left_out)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(1, 3, 8, 8));
    KilnAttrs_max_pool attrs = { .auto_pad = "NOTSET",
                                 .kernel_shape = { .n = 2, .v = (int64_t[]){ 2, 2 } },
                                 .strides = { .n = 2, .v = (int64_t[]){ 2, 2 } } };
    KilnNode *unread = NODE(&f, max_pool, "a", &attrs, 2, x);
    KilnNode *read = NODE(&f, max_pool, "b", &attrs, 2, x);
    RETURN(&f, kiln_node_result(unread, 0), kiln_node_result(read, 1));
    lower(&f, "max_pool a x; max_pool b x b_1");
    fixture_free(&f);
}

Test(lower, recurrent_operands_and_results)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(5, 1, 3));
    KilnValue *w = argument(&f, "w", F32(2, 16, 3));
    KilnValue *r = argument(&f, "r", F32(2, 16, 4));
    KilnValue *h = argument(&f, "h", F32(2, 1, 4));
    KilnAttrs_lstm attrs = { .direction = "bidirectional" };
    KilnNode *lstm = NODE(&f, lstm, "y", &attrs, 3, x, w, r, NULL, NULL, h);
    RETURN(&f, kiln_node_result(lstm, 1));
    lower(&f, "lstm _ y_1 _ x w r _ _ h");
    KilnInstrAttrs_lstm *made = kiln_instr_attrs(find(&f, KILN_INSTR_lstm), lstm);
    cr_assert_eq(made->hidden_size, 4);
    cr_assert_eq(made->activations.n, 6);
    cr_assert_str_eq(made->activations.v[3], "Sigmoid");
    cr_assert_str_eq(made->activations.v[5], "Tanh");
    fixture_free(&f);
}

Test(lower, reductions_know_their_axes)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(2, 3, 4));
    KilnValue *a = VALUE(&f, reduce_sum, "a", NULL, x, INTS(&f, -1, 0));
    KilnValue *b = VALUE(&f, reduce_mean, "b", NULL, x);
    KilnAttrs_reduce_max noop = { .keepdims = true, .noop_with_empty_axes = true };
    KilnValue *c = VALUE(&f, reduce_max, "c", &noop, x);
    KilnValue *d = VALUE(&f, relu, "d", NULL, c);
    RETURN(&f, a, b, d);
    lower(&f, "reduce_sum a x; reduce_mean b x; relu d x");
    EXPECT_INTS(kiln_instr_attrs(find(&f, KILN_INSTR_reduce_sum), reduce_sum)->axes, 0, 2);
    EXPECT_INTS(kiln_instr_attrs(find(&f, KILN_INSTR_reduce_mean), reduce_mean)->axes, 0, 1, 2);
    fixture_free(&f);
}

/* Over no axes every element is a group of its own: some reductions change it. */
Test(lower, reductions_over_no_axes)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(2, 3));
    KilnAttrs_reduce_l1 noop = { .keepdims = true, .noop_with_empty_axes = true };
    KilnValue *a = VALUE(&f, reduce_sum_square, "a", &noop, x);
    KilnValue *b = VALUE(&f, reduce_log_sum, "b", &noop, x);
    KilnValue *c = VALUE(&f, reduce_l1, "c", &noop, x);
    KilnValue *d = VALUE(&f, reduce_l2, "d", &noop, x);
    KilnValue *e = VALUE(&f, reduce_prod, "e", &noop, x);
    RETURN(&f, a, b, c, d, e);
    lower(&f, "reduce_sum_square a x; reduce_log_sum b x; reduce_l1 c x; reduce_l2 d x; copy e x");
    fixture_free(&f);
}

Test(lower, axes_count_from_the_front)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(2, 3, 4));
    KilnValue *a = VALUE(&f, softmax, "a", NULL, x);
    KilnValue *b = VALUE(&f, cum_sum, "b", NULL, x, INTS(&f, -2));
    RETURN(&f, a, b);
    lower(&f, "softmax a x; cum_sum b x");
    cr_assert_eq(kiln_instr_attrs(find(&f, KILN_INSTR_softmax), softmax)->axis, 2);
    cr_assert_eq(kiln_instr_attrs(find(&f, KILN_INSTR_cum_sum), cum_sum)->axis, 1);
    fixture_free(&f);
}

Test(lower, split_becomes_slices_of_what_is_read)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(2, 9));
    KilnNode *split =
        NODE(&f, split, "s", &(KilnAttrs_split){ .axis = -1 }, 3, x, INTS(&f, 2, 3, 4));
    RETURN(&f, kiln_node_result(split, 2), kiln_node_result(split, 1));
    lower(&f, "slice s_1 x; slice s_2 x");
    KilnInstr *first = find(&f, KILN_INSTR_slice);
    EXPECT_INTS(kiln_instr_attrs(first, slice)->starts, 0, 2);
    EXPECT_INTS(kiln_instr_attrs(first->next, slice)->starts, 0, 5);
    EXPECT_INTS(kiln_instr_attrs(first, slice)->steps, 1, 1);
    fixture_free(&f);
}

Test(lower, slice_and_pad_and_transpose)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(4, 6));
    KilnValue *a =
        VALUE(&f, slice, "a", NULL, x, INTS(&f, -1), INTS(&f, -100), INTS(&f, 1), INTS(&f, -2));
    KilnValue *b = VALUE(&f, pad, "b", NULL, a, INTS(&f, 1, 0, 2, -1));
    KilnValue *c = VALUE(&f, transpose, "c", NULL, b);
    RETURN(&f, c);
    lower(&f, "slice a x; pad b a; transpose c b");
    EXPECT_INTS(kiln_instr_attrs(find(&f, KILN_INSTR_slice), slice)->starts, 0, 5);
    EXPECT_INTS(kiln_instr_attrs(find(&f, KILN_INSTR_slice), slice)->steps, 1, -2);
    EXPECT_INTS(kiln_instr_attrs(find(&f, KILN_INSTR_pad), pad)->pads, 1, 0, 2, -1);
    EXPECT_INTS(kiln_instr_attrs(find(&f, KILN_INSTR_transpose), transpose)->perm, 1, 0);
    fixture_free(&f);
}

Test(lower, constant_of_shape_expands_a_scalar)
{
    Fixture f = fixture();
    KilnValue *y = VALUE(&f, constant_of_shape, "y", NULL, INTS(&f, 2, 3));
    RETURN(&f, y);
    lower(&f, "expand y y_value");
    fixture_free(&f);
}

Test(lower, compress_becomes_gather)
{
    Fixture f = fixture();
    KilnType three = kiln_type_make(KILN_DTYPE_bool, 1, (int64_t[]){ 3 });
    KilnValue *x = argument(&f, "x", F32(3, 2));
    g_autoptr(GBytes) bits = g_bytes_new("\1\0\1", 3);
    KilnValue *c =
        kiln_build_constant(f.graph, NULL, "c", kiln_tensor_new_data(&three, bits, NULL));
    KilnValue *y = VALUE(&f, compress, "y", &(KilnAttrs_compress){ .axis = 0 }, x, c);
    KilnValue *z = VALUE(&f, compress, "z", NULL, x, c);
    RETURN(&f, y, z);
    lower(&f, "gather y x y_indices; view z_1 x; gather z z_1 z_indices");
    int64_t indices[2];
    KilnConstant *list = ((KilnBuffer *)f.ir->weights->pdata[0])->constant;
    cr_assert(kiln_tensor_write(list->tensor, indices, NULL));
    cr_assert(indices[0] == 0 && indices[1] == 2);
    fixture_free(&f);
}

Test(lower, resize_has_a_scale_per_dim)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(1, 1, 2, 4));
    KilnAttrs_resize attrs = { .axes = { .n = 2, .v = (int64_t[]){ 3, 2 } },
                               .coordinate_transformation_mode = "asymmetric",
                               .keep_aspect_ratio_policy = "not_larger",
                               .mode = "nearest",
                               .nearest_mode = "floor" };
    KilnValue *y = VALUE(&f, resize, "y", &attrs, x, NULL, NULL, INTS(&f, 12, 4));
    RETURN(&f, y);
    lower(&f, "resize y x");
    KilnFloats scales = kiln_instr_attrs(find(&f, KILN_INSTR_resize), resize)->scales;
    cr_assert_eq(scales.n, 4);
    cr_assert(scales.v[0] == 1 && scales.v[1] == 1 && scales.v[2] == 2 && scales.v[3] == 2);
    fixture_free(&f);
}

/* The instructions of a graph in the text form, whose last dims data decides. */
static void
expect_lowered(const char *text, const char *expected)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = kiln_module_parse(text, strlen(text), "e.kiln", &error);
    cr_assert(module, "%s", error ? error->message : "");
    const KilnDimBinding *binding = kiln_dim_binding_typical(module, 0, 1);
    cr_assert(binding && kiln_module_stand_at(module, binding, &error));
    g_autoptr(KilnIRFunction) ir = kiln_lower(kiln_module_entry(module), &error);
    cr_assert(ir, "%s", error ? error->message : "");
    g_autoptr(GString) found = g_string_new(NULL);
    kiln_foreach_instr (instr, ir) {
        if (!kiln_instr_is_bookkeeping(instr) || instr->kind == KILN_INSTR_define)
            g_string_append_printf(found, "%s ", kiln_instr_info(instr->kind)->name);
    }
    cr_expect_str_eq(found->str, expected, "%s", found->str);
}

Test(lower, dims_of_what_comes_out_of_a_sequence_are_measured_first)
{
    expect_lowered("graph @f(%s: sequence(f32[?,3]), %i: i64[]) {\n"
                   "  %y = sequence_at(%s, %i) {dims=[\"k\",\"\"]} : f32[k,3]\n"
                   "  return %y\n}\n",
                   "item_dims define sequence_at ");
    expect_lowered("graph @f(%s: sequence(f32[?,3])) {\n"
                   "  %y = concat_from_sequence(%s) {dims=[\"k\",\"\"]} : f32[k,3]\n"
                   "  return %y\n}\n",
                   "concat_dims define concat_from_sequence ");
    expect_lowered("graph @f(%o: optional(f32[?])) {\n"
                   "  %y = optional_get_element(%o) {dims=[\"k\"]} : f32[k]\n"
                   "  return %y\n}\n",
                   "item_dims define optional_get_element ");
    expect_lowered("graph @f(%m: map(i64,f32)) {\n"
                   "  %y = cast_map(%m) {dims=[\"\",\"k\"]} : f32[1,k]\n"
                   "  return %y\n}\n",
                   "map_length define cast_map ");
    expect_lowered("graph @f(%s: sequence(f32[2,3]), %i: i64[]) {\n"
                   "  %y = sequence_at(%s, %i) : f32[2,3]\n"
                   "  return %y\n}\n",
                   "sequence_at ");
}

Test(lower, operands_that_shapes_read_only_stay_out)
{
    Fixture f = fixture();
    KilnType i64 = kiln_type_make(KILN_DTYPE_i64, 1, (int64_t[]){ 3 });
    KilnType two = F32(2);
    KilnValue *x = argument(&f, "x", i64);
    KilnValue *m = argument(&f, "m", F32(3, 3));
    KilnValue *on = kiln_build_constant(f.graph, NULL, "on", kiln_tensor_new_iota(&two));
    KilnValue *y = VALUE(&f, one_hot, "y", NULL, x, INTS(&f, 5), on);
    KilnNode *k = NODE(&f, top_k, "k", NULL, 2, m, INTS(&f, 2));
    KilnValue *e = VALUE(&f, eye_like, "e", &(KilnAttrs_eye_like){ .dtype = KILN_DTYPE_f32 }, m);
    KilnValue *t = VALUE(&f, trilu, "t", NULL, m, INTS(&f, 1));
    RETURN(&f, y, kiln_node_result(k, 0), e, t);
    lower(&f, "one_hot y x on; top_k k k_1 m; eye_like e; trilu t m");
    cr_assert_eq(kiln_instr_attrs(find(&f, KILN_INSTR_one_hot), one_hot)->axis, 1);
    fixture_free(&f);
}

Test(lower, range_reads_its_start_and_step)
{
    Fixture f = fixture();
    KilnType scalar = kiln_type_scalar(KILN_DTYPE_f32);
    KilnValue *v[3];
    double numbers[] = { 1, 4, 0.5 };
    for (int i = 0; i < 3; i++)
        v[i] = kiln_build_constant(f.graph, NULL, "v", kiln_tensor_new_splat(&scalar, numbers[i]));
    KilnValue *y = VALUE(&f, range, "y", NULL, v[0], v[1], v[2]);
    RETURN(&f, y);
    lower(&f, "range y v v_2");
    fixture_free(&f);
}

Test(lower, variadic_ops_of_one_operand_are_views)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(3));
    KilnValue *a = VALUE(&f, sum, "a", NULL, x);
    KilnValue *b = VALUE(&f, max, "b", NULL, a, x, x);
    RETURN(&f, b);
    lower(&f, "max b x x x");
    fixture_free(&f);
}

/* --- refusals --- */

Test(lower, run_time_shape_operand)
{
    Fixture f = fixture();
    KilnType list = kiln_type_make(KILN_DTYPE_i64, 1, (int64_t[]){ 2 });
    KilnValue *x = argument(&f, "x", F32(4));
    KilnValue *s = argument(&f, "s", list);
    KilnValue *y = VALUE(&f, reshape, "y", NULL, x, s);
    RETURN(&f, y);
    refuse(&f, KILN_ERROR_UNSUPPORTED,
           "y (reshape): value of operand 1 (s) is known only at run time");
    fixture_free(&f);
}

Test(lower, open_types)
{
    Fixture f = fixture();
    KilnType open = F32(4);
    open.dims[0] = KILN_DIM_UNKNOWN;
    open.open[0] = kiln_dim_name(f.module->dims, "N");
    KilnValue *x = argument(&f, "x", open);
    KilnValue *y = VALUE(&f, relu, "y", NULL, x);
    RETURN(&f, y);
    refuse(&f, KILN_ERROR_SHAPE, "argument x: expected a static type, found f32[N]");
    fixture_free(&f);
}

Test(lower, dims_of_data_without_a_name)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(4));
    KilnValue *y = VALUE(&f, non_zero, "y", NULL, x);
    RETURN(&f, y);
    refuse(&f, KILN_ERROR_SHAPE, "y (non_zero): result y: expected a static type, found i64[1,?]");
    fixture_free(&f);
}

Test(lower, unknown_ops)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(4));
    KilnAttrs_unknown attrs = { .op_type = "Fancy", .domain = "acme", .opset = 1 };
    KilnNodeSpec spec = { .op = op_named("unknown"),
                          .operands = &x,
                          .n_operands = 1,
                          .attrs = &attrs,
                          .types = &x->type,
                          .result_name = "y" };
    KilnNode *unknown = kiln_node_new(f.graph, &spec, NULL);
    RETURN(&f, kiln_node_result(unknown, 0));
    refuse(&f, KILN_ERROR_UNSUPPORTED,
           "operator Fancy of domain \"acme\" in opset 1: not known, and "
           "no plug-in has it (--load-plugin, kiln_op_load_plugin())");
    fixture_free(&f);
}

Test(lower, variables)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(4));
    kiln_function_argument(f.graph, 0)->variable = true;
    RETURN(&f, VALUE(&f, relu, "y", NULL, x));
    refuse(&f, KILN_ERROR_UNSUPPORTED, "argument x: state kept between runs");
    fixture_free(&f);
}

Test(lower, calls_of_vendor_code)
{
    Fixture f = fixture();
    KilnValue *x = argument(&f, "x", F32(4));
    KilnAttrs_vendor_executable attrs = { .callee = "r0" };
    KilnNodeSpec spec = { .op = op_named("vendor.executable"),
                          .operands = &x,
                          .n_operands = 1,
                          .attrs = &attrs,
                          .types = &x->type,
                          .result_name = "y" };
    KilnDeclaration r0 = {
        .name = "r0", .operands = &x->type, .n_operands = 1, .results = &x->type, .n_results = 1
    };
    g_ptr_array_add(f.module->declarations, &r0);
    KilnNode *call = kiln_node_new(f.graph, &spec, NULL);
    RETURN(&f, kiln_node_result(call, 0));
    lower(&f, "call y x");
    cr_assert_str_eq(find(&f, KILN_INSTR_call)->callee, "r0");
    fixture_free(&f);
}
