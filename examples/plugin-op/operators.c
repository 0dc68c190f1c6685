/* SPDX-License-Identifier: Apache-2.0 */
/* Two operators from outside Kiln's tree, of the domain com.example:
 *
 *     Softsign2(x) {alpha=1.0}      x / (alpha + |x|), element by element
 *     PairSum(x)                    f32[…,n] → f32[…,floor(n/2)]: sums of neighbours
 */
#include <graph/kiln-op.h>

#include <math.h>

/* --- Softsign2 --- */

static gboolean
softsign2_infer(KilnOpShape *shape)
{
    if (kiln_op_shape_input_dtype(shape, 0) != KILN_DTYPE_f32)
        return kiln_op_shape_fail(shape, "input 0: expected f32, found %s",
                                  kiln_dtype_name(kiln_op_shape_input_dtype(shape, 0)));
    if (!(kiln_op_attribute_float(kiln_op_shape_attributes(shape), "alpha") > 0))
        return kiln_op_shape_fail(shape, "attribute 'alpha': expected a number above 0");
    kiln_op_shape_set_output_like(shape, 0, KILN_DTYPE_f32, 0);
    return TRUE;
}

enum {
    BLOCK = 4096 /* elements of a task */
};

typedef struct {
    const float *x;
    float *y;
    int64_t n;
    float alpha;
} Softsign2;

static void
softsign2_block(const void *data, int64_t i, int thread)
{
    const Softsign2 *work = (const Softsign2 *)data;
    const int64_t end = (i + 1) * BLOCK < work->n ? (i + 1) * BLOCK : work->n;
    (void)thread;
    for (int64_t k = i * BLOCK; k < end; k++)
        work->y[k] = work->x[k] / (work->alpha + fabsf(work->x[k]));
}

static const char *
softsign2_run(const KilnOpCall *call)
{
    const KilnOpTensor *x = kiln_op_call_input(call, 0), *y = kiln_op_call_output(call, 0);
    const KilnOpAttributes *attributes = kiln_op_call_attributes(call);
    const Softsign2 work = { (const float *)x->data, (float *)y->data, x->elements,
                             kiln_op_attribute_float(attributes, "alpha") };
    kiln_op_call_parallel(call, (work.n + BLOCK - 1) / BLOCK, softsign2_block, &work);
    return NULL;
}

static double
softsign2_cost(const KilnOpCall *call)
{
    return 3.0 * (double)kiln_op_call_input(call, 0)->elements;
}

/* --- PairSum --- */

static gboolean
pair_sum_infer(KilnOpShape *shape)
{
    const KilnDim *dims[8];
    const int rank = kiln_op_shape_input_rank(shape, 0);
    if (kiln_op_shape_input_dtype(shape, 0) != KILN_DTYPE_f32)
        return kiln_op_shape_fail(shape, "input 0: expected f32, found %s",
                                  kiln_dtype_name(kiln_op_shape_input_dtype(shape, 0)));
    if (rank == 0)
        return kiln_op_shape_fail(shape, "input 0: expected a rank of 1 or more, found 0");
    for (int d = 0; d < rank; d++)
        dims[d] = kiln_op_shape_input_dim(shape, 0, d);
    if (rank > 0)
        dims[rank - 1] =
            kiln_op_shape_divide_down(shape, dims[rank - 1], kiln_op_shape_number(shape, 2));
    kiln_op_shape_set_output(shape, 0, KILN_DTYPE_f32, rank, dims);
    return TRUE;
}

static const char *
pair_sum_run(const KilnOpCall *call)
{
    const KilnOpTensor *x = kiln_op_call_input(call, 0), *y = kiln_op_call_output(call, 0);
    const int64_t n = x->dims[x->rank - 1], half = n / 2;
    const int64_t rows = half ? y->elements / half : 0;
    const float *from = (const float *)x->data;
    float *to = (float *)y->data;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < half; i++)
            to[r * half + i] = from[r * n + 2 * i] + from[r * n + 2 * i + 1];
    }
    return NULL;
}

/* --- the table --- */

static const KilnOpAttribute softsign2_attributes[] = {
    { .name = "alpha", .kind = KILN_OP_ATTRIBUTE_FLOAT, .otherwise_float = 1 },
};
static const KilnOpInPlace softsign2_in_place[] = { { .output = 0, .input = 0 } };

static const KilnOpDescription operators[] = {
    { .size = sizeof(KilnOpDescription),
      .domain = "com.example",
      .name = "Softsign2",
      .summary = "x / (alpha + |x|)",
      .first_opset = 1,
      .min_inputs = 1,
      .max_inputs = 1,
      .min_outputs = 1,
      .max_outputs = 1,
      .attributes = softsign2_attributes,
      .n_attributes = G_N_ELEMENTS(softsign2_attributes),
      .in_place = softsign2_in_place,
      .n_in_place = G_N_ELEMENTS(softsign2_in_place),
      .flags = KILN_OP_PURE,
      .infer = softsign2_infer,
      .run = softsign2_run,
      .cost = softsign2_cost },
    { .size = sizeof(KilnOpDescription),
      .domain = "com.example",
      .name = "PairSum",
      .summary = "sums of neighbours along the last axis",
      .first_opset = 1,
      .min_inputs = 1,
      .max_inputs = 1,
      .min_outputs = 1,
      .max_outputs = 1,
      .flags = KILN_OP_PURE,
      .infer = pair_sum_infer,
      .run = pair_sum_run },
};
KILN_OP_PLUGIN(operators)
