/* SPDX-License-Identifier: Apache-2.0 */
/* What works along rows: softmax, layer normalization, and reductions over the last dims. The
 * library sees all of them as matrices. */
#include "backends/onednn/careful.h"
#include "backends/onednn/region.h"

static dnnl_memory_desc_t
as_rows(const KilnType *type, int64_t columns)
{
    KilnType matrix =
        kiln_type_make(type->dtype, 2, (int64_t[]){ kiln_type_elements(type) / columns, columns });
    return kiln_onednn_plain(&matrix);
}

/* The row-major value of @buffer as @md. */
static uint32_t
read_as(Builder *builder, const KilnBuffer *buffer, const dnnl_memory_desc_t *md)
{
    dnnl_memory_desc_t plain = kiln_onednn_plain(&buffer->type);
    return kiln_onednn_alias(builder, kiln_onednn_slot_as(builder, buffer, &plain), md);
}

static uint32_t
write_as(Builder *builder, const KilnBuffer *buffer, const dnnl_memory_desc_t *md)
{
    dnnl_memory_desc_t plain = kiln_onednn_plain(&buffer->type);
    return kiln_onednn_alias(builder, kiln_onednn_result(builder, buffer, &plain), md);
}

typedef struct {
    const KilnBuffer *y, *x;
    dnnl_memory_desc_t y_md, x_md;
} Rows;

static bool
add_rows(Builder *builder, const KilnInstr *instr, const Rows *rows, const_dnnl_op_desc_t op,
         GArray *args)
{
    uint32_t from = read_as(builder, rows->x, &rows->x_md);
    if (!kiln_onednn_add_arg(args, DNNL_ARG_SRC, from))
        return false;
    uint32_t to = write_as(builder, rows->y, &rows->y_md);
    kiln_onednn_add_arg(args, DNNL_ARG_DST, to);
    const char *what = kiln_instr_info(instr->kind)->name;
    if (!kiln_onednn_masks(instr))
        return kiln_onednn_add_operation(builder, op, NULL, args, what);
    return kiln_onednn_add_fast(builder, op, args, what) &&
           kiln_onednn_add_careful_rows(builder, instr, rows->x_md.dims[1], from, to);
}

static bool
build_softmax(Builder *builder, const KilnInstr *instr, Rows *rows)
{
    int64_t axis = kiln_instr_attrs(instr, softmax)->axis;
    rows->x_md = rows->y_md = as_rows(&rows->x->type, rows->x->type.dims[axis]);
    dnnl_softmax_v2_desc_t op;
    g_autoptr(GArray) args = g_array_new(FALSE, FALSE, sizeof(StepArg));
    return kiln_onednn_check(dnnl_softmax_v2_forward_desc_init(&op, dnnl_forward_inference,
                                                               dnnl_softmax_accurate, &rows->x_md,
                                                               &rows->y_md, 1),
                             "softmax", builder->error) &&
           add_rows(builder, instr, rows, &op, args);
}

static bool
build_layer_normalization(Builder *builder, const KilnInstr *instr, Rows *rows)
{
    const KilnInstrAttrs_layer_normalization *attrs = kiln_instr_attrs(instr, layer_normalization);
    const KilnBuffer *scale = kiln_instr_operand(instr, 2), *shift = kiln_instr_operand(instr, 3);
    int64_t columns = kiln_type_elements(&scale->type);
    rows->x_md = rows->y_md = as_rows(&rows->x->type, columns);
    KilnType row = kiln_type_make(KILN_DTYPE_f32, 1, &columns);
    dnnl_memory_desc_t row_md = kiln_onednn_plain(&row);
    dnnl_layer_normalization_desc_t op;
    unsigned flags = dnnl_use_scale | (shift ? dnnl_use_shift : 0);
    if (!kiln_onednn_check(dnnl_layer_normalization_forward_desc_init(&op, dnnl_forward_inference,
                                                                      &rows->x_md, NULL,
                                                                      attrs->epsilon, flags),
                           "layer_normalization", builder->error))
        return false;
    g_autoptr(GArray) args = g_array_new(FALSE, FALSE, sizeof(StepArg));
    return kiln_onednn_add_arg(args, DNNL_ARG_SCALE, read_as(builder, scale, &row_md)) &&
           (!shift ||
            kiln_onednn_add_arg(args, DNNL_ARG_SHIFT, read_as(builder, shift, &row_md))) &&
           add_rows(builder, instr, rows, &op, args);
}

static dnnl_alg_kind_t
reduction_of(KilnInstrKind kind)
{
    switch (kind) {
    case KILN_INSTR_reduce_max:
        return dnnl_reduction_max;
    case KILN_INSTR_reduce_min:
        return dnnl_reduction_min;
    case KILN_INSTR_reduce_mean:
        return dnnl_reduction_mean;
    default:
        return dnnl_reduction_sum;
    }
}

static bool
build_reduction(Builder *builder, const KilnInstr *instr, Rows *rows)
{
    int64_t columns = kiln_type_elements(&rows->x->type) / kiln_type_elements(&rows->y->type);
    rows->x_md = as_rows(&rows->x->type, columns);
    rows->y_md = as_rows(&rows->y->type, 1);
    dnnl_reduction_desc_t op;
    g_autoptr(GArray) args = g_array_new(FALSE, FALSE, sizeof(StepArg));
    return kiln_onednn_check(dnnl_reduction_desc_init(&op, reduction_of(instr->kind), &rows->x_md,
                                                      &rows->y_md, 0, 0),
                             "reduction", builder->error) &&
           add_rows(builder, instr, rows, &op, args);
}

bool
kiln_onednn_build_rows(Builder *builder, const KilnInstr *instr)
{
    Rows rows = { .y = kiln_instr_operand(instr, 0), .x = kiln_instr_operand(instr, 1) };
    switch (instr->kind) {
    case KILN_INSTR_softmax:
        return build_softmax(builder, instr, &rows);
    case KILN_INSTR_layer_normalization:
        return build_layer_normalization(builder, instr, &rows);
    default:
        return build_reduction(builder, instr, &rows);
    }
}
