/* SPDX-License-Identifier: Apache-2.0 */
/* Operators for tests, of the domain test.ops: every kind of attribute, inputs that are left out,
 * several outputs, scratch, texts, effects, and kernels and shape functions that fail. */
#include <graph/kiln-op.h>

#include <string.h>

#define OPERATOR(name_, lo_in, hi_in, lo_out, hi_out, flags_, ...)                                 \
    {                                                                                              \
        .size = sizeof(KilnOpDescription), .domain = "test.ops", .name = name_, .first_opset = 1,  \
        .last_opset = 3, .min_inputs = lo_in, .max_inputs = hi_in, .min_outputs = lo_out,          \
        .max_outputs = hi_out, .flags = flags_, __VA_ARGS__                                        \
    }

static gboolean
same_as_input(KilnOpShape *shape)
{
    for (unsigned i = 0; i < kiln_op_shape_n_outputs(shape); i++)
        kiln_op_shape_set_output_like(shape, i, kiln_op_shape_input_dtype(shape, 0), 0);
    return TRUE;
}

/* --- Mix(x…) {scale, shift, weights, offsets, table, mode, names}: (outputs) y, and what it read
 * --- */

static gboolean
mix_infer(KilnOpShape *shape)
{
    const KilnOpAttributes *attributes = kiln_op_shape_attributes(shape);
    const KilnOpTensor *table = kiln_op_attribute_tensor(attributes, "table");
    const KilnDim *one = kiln_op_shape_number(shape, 1);
    if (!table || table->rank != 1 || table->dtype != KILN_DTYPE_f32)
        return kiln_op_shape_fail(shape, "attribute 'table': expected a vector of f32");
    if (strcmp(kiln_op_attribute_text(attributes, "mode"), "plain") != 0)
        return kiln_op_shape_fail(shape, "attribute 'mode': expected plain, found %s",
                                  kiln_op_attribute_text(attributes, "mode"));
    kiln_op_shape_set_output_like(shape, 0, KILN_DTYPE_f32, 0);
    kiln_op_shape_set_output(shape, 1, KILN_DTYPE_i64, 1, &one);
    return TRUE;
}

/* y = scale * (sum of inputs) + shift + sum of weights + sum of offsets + sum of table; the second
 * output counts inputs, and names. */
static const char *
mix_run(const KilnOpCall *call)
{
    const KilnOpAttributes *attributes = kiln_op_call_attributes(call);
    const KilnOpTensor *table = kiln_op_attribute_tensor(attributes, "table");
    const KilnOpTensor *y = kiln_op_call_output(call, 0), *count = kiln_op_call_output(call, 1);
    unsigned n_weights, n_offsets, n_names, n_inputs = 0;
    const float *weights = kiln_op_attribute_floats(attributes, "weights", &n_weights);
    const int64_t *offsets = kiln_op_attribute_ints(attributes, "offsets", &n_offsets);
    kiln_op_attribute_texts(attributes, "names", &n_names);
    double *sums = (double *)kiln_op_call_scratch(call);
    double rest = (double)kiln_op_attribute_int(attributes, "shift");
    for (unsigned i = 0; i < n_weights; i++)
        rest += weights[i];
    for (unsigned i = 0; i < n_offsets; i++)
        rest += (double)offsets[i];
    for (int64_t i = 0; i < table->elements; i++)
        rest += ((const float *)table->data)[i];
    memset(sums, 0, sizeof *sums * (size_t)y->elements);
    for (unsigned k = 0; k < kiln_op_call_n_inputs(call); k++) {
        const KilnOpTensor *x = kiln_op_call_input(call, k);
        n_inputs += x != NULL;
        for (int64_t i = 0; x && i < y->elements; i++)
            sums[i] += ((const float *)x->data)[x->elements == 1 ? 0 : i];
    }
    for (int64_t i = 0; i < y->elements; i++)
        ((float *)y->data)[i] =
            (float)(kiln_op_attribute_float(attributes, "scale") * sums[i] + rest);
    if (count)
        *(int64_t *)count->data = n_inputs * 100 + n_names;
    return NULL;
}

static size_t
mix_scratch(const KilnOpCall *call)
{
    return sizeof(double) * (size_t)kiln_op_call_output(call, 0)->elements;
}

static const KilnOpAttribute mix_attributes[] = {
    { .name = "scale", .kind = KILN_OP_ATTRIBUTE_FLOAT, .otherwise_float = 1 },
    { .name = "shift", .kind = KILN_OP_ATTRIBUTE_INT, .otherwise_int = 7 },
    { .name = "weights", .kind = KILN_OP_ATTRIBUTE_FLOATS },
    { .name = "offsets", .kind = KILN_OP_ATTRIBUTE_INTS },
    { .name = "table", .kind = KILN_OP_ATTRIBUTE_TENSOR, .required = TRUE },
    { .name = "mode", .kind = KILN_OP_ATTRIBUTE_STRING, .otherwise_text = "plain" },
    { .name = "names", .kind = KILN_OP_ATTRIBUTE_STRINGS },
};

/* --- Count(x): x plus the number of runs so far, an effect --- */

static int n_runs;

static const char *
count_run(const KilnOpCall *call)
{
    const KilnOpTensor *x = kiln_op_call_input(call, 0), *y = kiln_op_call_output(call, 0);
    const int n = g_atomic_int_add(&n_runs, 1);
    for (int64_t i = 0; i < y->elements; i++)
        ((float *)y->data)[i] = ((const float *)x->data)[i] + (float)n;
    return NULL;
}

/* --- Shout(x): strings in capitals --- */

static const char *
shout_run(const KilnOpCall *call)
{
    const KilnOpTensor *x = kiln_op_call_input(call, 0), *y = kiln_op_call_output(call, 0);
    for (int64_t i = 0; i < y->elements; i++) {
        const KilnText *from = ((const KilnText *const *)x->data)[i];
        char *bytes;
        const KilnText *to = kiln_op_call_new_text(call, from ? from->length : 0, &bytes);
        if (!to)
            return "no memory for a text";
        for (size_t k = 0; from && k < from->length; k++)
            bytes[k] = g_ascii_toupper(from->text[k]);
        ((const KilnText **)y->data)[i] = to;
    }
    return NULL;
}

/* --- Blocks(x, size): elements in rows of the numbers in `size`, known before the run --- */

static gboolean
blocks_infer(KilnOpShape *shape)
{
    const KilnDim *dims[2] = { kiln_op_shape_input_element(shape, 1, 0),
                               kiln_op_shape_input_element(shape, 1, 1) };
    kiln_op_shape_set_output(shape, 0, kiln_op_shape_input_dtype(shape, 0), 2, dims);
    return TRUE;
}

static const char *
blocks_run(const KilnOpCall *call)
{
    const KilnOpTensor *x = kiln_op_call_input(call, 0), *y = kiln_op_call_output(call, 0);
    for (int64_t i = 0; i < y->elements; i++)
        ((float *)y->data)[i] = x->elements ? ((const float *)x->data)[i % x->elements] : 0;
    return NULL;
}

/* --- Half(x): x / 2, element by element, in place --- */

static const char *
half_run(const KilnOpCall *call)
{
    const KilnOpTensor *x = kiln_op_call_input(call, 0), *y = kiln_op_call_output(call, 0);
    for (int64_t i = 0; i < y->elements; i++)
        ((float *)y->data)[i] = ((const float *)x->data)[i] / 2;
    return NULL;
}

static gboolean
half_infer(KilnOpShape *shape)
{
    if (kiln_op_shape_input_dtype(shape, 0) != KILN_DTYPE_f32)
        return kiln_op_shape_fail(shape, "input 0: expected f32");
    return same_as_input(shape);
}

static const KilnOpInPlace half_in_place[] = { { 0, 0 } };

/* --- Echo(x): x, of any type whose elements are no addresses --- */

static const char *
echo_run(const KilnOpCall *call)
{
    const KilnOpTensor *x = kiln_op_call_input(call, 0), *y = kiln_op_call_output(call, 0);
    memcpy(y->data, x->data, (size_t)x->elements * kiln_dtype_size(x->dtype));
    return NULL;
}

/* --- failures --- */

static const char *
refuse_run(const KilnOpCall *call)
{
    (void)call;
    return "expected other data";
}

static gboolean
silent_infer(KilnOpShape *shape)
{
    (void)shape;
    return TRUE;
}

static const KilnOpDescription operators[] = {
    OPERATOR("Mix", 1, KILN_OP_ANY_NUMBER, 1, 2, KILN_OP_PURE, .attributes = mix_attributes,
             .n_attributes = G_N_ELEMENTS(mix_attributes), .infer = mix_infer, .run = mix_run,
             .scratch_bytes = mix_scratch),
    OPERATOR("Count", 1, 1, 1, 1, 0, .infer = same_as_input, .run = count_run),
    OPERATOR("Shout", 1, 1, 1, 1, KILN_OP_PURE, .infer = same_as_input, .run = shout_run),
    OPERATOR("Blocks", 2, 2, 1, 1, KILN_OP_PURE, .infer = blocks_infer, .run = blocks_run),
    OPERATOR("Half", 1, 1, 1, 1, KILN_OP_PURE, .in_place = half_in_place, .n_in_place = 1,
             .infer = half_infer, .run = half_run),
    OPERATOR("Echo", 1, 1, 1, 1, KILN_OP_PURE, .infer = same_as_input, .run = echo_run),
    OPERATOR("Refuse", 1, 1, 1, 1, KILN_OP_PURE, .infer = same_as_input, .run = refuse_run),
    OPERATOR("Silent", 1, 1, 1, 1, KILN_OP_PURE, .infer = silent_infer, .run = refuse_run),
};
KILN_OP_PLUGIN(operators)
