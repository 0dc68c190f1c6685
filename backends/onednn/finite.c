/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a run may go on with the library's forms, which mask NaN. Of each value of a region there
 * is a bound of its absolute values, computed of those of its operands:
 *
 *     |conv(x, w) + b|  <=  products * |x| * |w| + |b|
 *
 * An operand whose bound is too great, or not known, as that of an argument, is looked at where it
 * lies: that gives a bound again. While bounds are finite no step has met a NaN or an infinity, and
 * none could have made one. Where looking does not help, the run begins anew, with own kernels.
 * Looking reads a value once every ten convolutions or so: bounds grow by the number of products.
 */
#include "backends/onednn/finite.h"

#include "backends/onednn/careful.h"
#include "graph/base/alloc.h"
#include "ir/kernel.h"

#include <math.h>
#include <string.h>

/* Well below the greatest float: sums are rounded on the way. */
static const float limit = 1e37f;

/* Squares of these, and sums of squares, are far from the greatest float. */
static const float greatest_square = 1e15f;

/* --- what is looked at --- */

/* The greatest absolute value of @n floats, at any address, at least 1; INFINITY where one of them
 * is not finite. By their bits, whose order is that of what they stand for. */
static inline __attribute__((always_inline)) float
greatest_of(const void *data, size_t n)
{
    const uint32_t infinity = 0x7f800000;
    int32_t most = 0x3f800000; /* 1 */
    for (size_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, (const char *)data + i * sizeof bits, sizeof bits);
        bits &= INT32_MAX;
        most = bits > most ? bits : most;
    }
    float result = INFINITY;
    if ((uint32_t)most < infinity)
        memcpy(&result, &most, sizeof result);
    return result;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static float
greatest_avx2(const void *data, size_t n)
{
    return greatest_of(data, n);
}
#endif

static float
greatest_absolute(const void *data, size_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return greatest_avx2(data, n);
#endif
    return greatest_of(data, n);
}

/* --- bounds of results --- */

typedef struct {
    Builder *builder;
    guint step; /* before which they are asked for */
} Where;

static uint32_t
id_of(const KilnBuffer *buffer)
{
    return buffer ? buffer->id : UINT32_MAX;
}

/* Where @buffer lies when @step begins; it stays until then. */
static uint32_t
place_of(const Where *where, const KilnBuffer *buffer)
{
    Builder *builder = where->builder;
    if (!buffer || !builder->computed[buffer->id] || !builder->values[buffer->id])
        return UINT32_MAX;
    uint32_t number = kiln_onednn_slot(builder, buffer);
    kiln_onednn_keep(builder, number, where->step);
    return number;
}

/* Adds @guard for @y (NULL: what must be finite is no value), whose operands are @x (NULL: none).
 */
static void
add(const Where *where, Guard guard, const KilnBuffer *y, const KilnBuffer *const x[3])
{
    guard.step = where->step;
    guard.y = id_of(y);
    for (int i = 0; i < 3; i++) {
        guard.x[i] = id_of(x[i]);
        guard.slot[i] = place_of(where, x[i]);
    }
    g_array_append_val(where->builder->region->guards, guard);
}

static void
add_products(const Where *where, const KilnInstr *instr, int64_t products)
{
    const KilnBuffer *x[3];
    for (uint32_t i = 0; i < 3; i++)
        x[i] = kiln_instr_operand(instr, i + 1);
    add(where, (Guard){ .factor = (float)products, .cap = INFINITY }, instr->operands[0].buffer, x);
}

/* @plus: what is added at most. @cap: what the result is at most, of any operand. */
static void
add_map(const Where *where, const KilnInstr *instr, float factor, float plus, float cap)
{
    const KilnBuffer *x[] = { instr->operands[1].buffer, NULL, NULL };
    Guard guard = { .factor = factor, .plus = plus, .cap = cap, .masks = kiln_onednn_masks(instr) };
    add(where, guard, instr->operands[0].buffer, x);
}

static void
add_binary(const Where *where, const KilnInstr *instr)
{
    const KilnBuffer *a = kiln_instr_operand(instr, 1), *b = kiln_instr_operand(instr, 2);
    bool mul = instr->kind == KILN_INSTR_mul;
    const KilnBuffer *x[] = { a, mul ? b : NULL, mul ? NULL : b };
    add(where, (Guard){ .factor = 1, .cap = INFINITY }, instr->operands[0].buffer, x);
}

/* The greatest of all parts: each adds itself. */
static void
add_concat(const Where *where, const KilnInstr *instr)
{
    for (uint32_t i = 1; i < instr->n_operands; i++) {
        const KilnBuffer *x[] = { instr->operands[i].buffer, NULL, NULL };
        Guard guard = { .factor = 1, .cap = INFINITY, .joins = i > 1 };
        add(where, guard, instr->operands[0].buffer, x);
    }
}

static void
add_clip(const Where *where, const KilnInstr *instr)
{
    PostOp op = { 0 };
    kiln_onednn_elementwise(instr, &op);
    float low = fabsf(op.alpha), high = fabsf(op.beta);
    float cap = low > high ? low : high;
    float plus = (isfinite(low) ? low : 0) + (isfinite(high) ? high : 0);
    add_map(where, instr, 1, plus, cap);
}

/* Squares are summed: a mean and a variance are finite where those are. */
static void
add_layer_normalization(const Where *where, const KilnInstr *instr)
{
    const KilnBuffer *x[] = { kiln_instr_operand(instr, 1), NULL, NULL };
    const KilnBuffer *scale[] = { kiln_instr_operand(instr, 2), NULL,
                                  kiln_instr_operand(instr, 3) };
    if (!(kiln_instr_attrs(instr, layer_normalization)->epsilon > 0))
        return;
    add(where, (Guard){ .factor = limit / greatest_square, .cap = INFINITY }, NULL, x);
    float columns = (float)kiln_type_elements(&scale[0]->type);
    add(where, (Guard){ .factor = sqrtf(columns), .cap = INFINITY }, instr->operands[0].buffer,
        scale);
}

static int64_t
products_of(const KilnInstr *instr)
{
    const KilnType *y = &instr->operands[0].buffer->type, *x = &instr->operands[1].buffer->type;
    if (instr->kind == KILN_INSTR_matmul || instr->kind == KILN_INSTR_gemm)
        return x->dims[x->rank - 1];
    return kiln_type_elements(&instr->operands[2].buffer->type) / MAX(y->dims[1], 1) + 1;
}

void
kiln_onednn_add_guards(Builder *builder, const KilnInstr *instr, guint step)
{
    const Where where = { builder, step };
    switch (instr->kind) {
    case KILN_INSTR_conv:
    case KILN_INSTR_conv_transpose:
    case KILN_INSTR_matmul:
    case KILN_INSTR_gemm:
        add_products(&where, instr, products_of(instr));
        return;
    case KILN_INSTR_add:
    case KILN_INSTR_sub:
    case KILN_INSTR_mul:
        add_binary(&where, instr);
        return;
    case KILN_INSTR_concat:
        add_concat(&where, instr);
        return;
    case KILN_INSTR_clip:
        add_clip(&where, instr);
        return;
    case KILN_INSTR_layer_normalization:
        add_layer_normalization(&where, instr);
        return;
    case KILN_INSTR_sigmoid:
    case KILN_INSTR_tanh:
    case KILN_INSTR_softmax:
        add_map(&where, instr, 1, 0, 1);
        return;
    case KILN_INSTR_leaky_relu:
        add_map(&where, instr, 1 + fabsf(kiln_instr_attrs(instr, leaky_relu)->alpha), 0, INFINITY);
        return;
    case KILN_INSTR_elu:
        add_map(&where, instr, 1, fabsf(kiln_instr_attrs(instr, elu)->alpha), INFINITY);
        return;
    case KILN_INSTR_reduce_sum:
        add_map(&where, instr, (float)kiln_type_elements(&instr->operands[1].buffer->type), 0,
                INFINITY);
        return;
    case KILN_INSTR_alloc:
    case KILN_INSTR_dealloc:
    case KILN_INSTR_call: /* own kernels may do anything: their results are looked at */
    case KILN_INSTR_lstm:
        return;
    default: /* no result is greater than all operands */
        add_map(&where, instr, 1, 0, INFINITY);
        return;
    }
}

/* INFINITY of what is no literal. */
static float
literal_bound(const KilnBuffer *buffer)
{
    float value;
    if (buffer->kind != KILN_BUFFER_WEIGHT || !buffer->constant ||
        buffer->type.dtype != KILN_DTYPE_f32)
        return INFINITY;
    if (kiln_onednn_scalar(buffer, &value))
        return greatest_absolute(&value, 1);
    size_t bytes = (size_t)kiln_type_bytes(&buffer->type);
    void *values = kiln_alloc(1, bytes, NULL);
    bool known = values && kiln_tensor_write(buffer->constant->tensor, values, NULL);
    float bound = known ? greatest_absolute(values, bytes / sizeof(float)) : INFINITY;
    kiln_free(values);
    return bound;
}

/* Nothing needs a proof behind the last step that masks. */
void
kiln_onednn_finish_guards(Builder *builder)
{
    Region *region = builder->region;
    guint n = region->guards->len;
    while (n > 0 && !g_array_index(region->guards, Guard, n - 1).masks)
        n--;
    g_array_set_size(region->guards, n);
    region->n_values = builder->function->buffers->len;
    for (guint i = 0; i < region->n_values && n > 0; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(builder->function->buffers, i);
        float bound = literal_bound(buffer);
        g_array_append_val(region->bounds, bound);
    }
}

/* --- constants --- */

void
kiln_onednn_note_constants(Builder *builder)
{
    Region *region = builder->region;
    const GPtrArray *inputs = builder->function->inputs;
    for (guint i = 0; i < inputs->len && region->guards->len > 0; i++) {
        const KilnBuffer *input = g_ptr_array_index(inputs, i);
        Measured constant = { .value = input->id,
                              .operand = builder->n_out + i,
                              .floats = (size_t)kiln_type_bytes(&input->type) / sizeof(float) };
        if (builder->constant[i] && input->type.dtype == KILN_DTYPE_f32)
            g_array_append_val(region->measured, constant);
    }
}

void
kiln_onednn_measure(const Region *region, const void *const *data, void *packed)
{
    for (guint i = 0; i < region->measured->len; i++) {
        const Measured *constant = &g_array_index(region->measured, Measured, i);
        const void *values = data[constant->operand];
        float greatest = values ? greatest_absolute(values, constant->floats) : NAN;
        memcpy((char *)packed + i * sizeof greatest, &greatest, sizeof greatest);
    }
}

/* --- in a run --- */

void
kiln_onednn_begin_guards(const Region *region, const KilnKernelArgs *args, float *bounds)
{
    memcpy(bounds, region->bounds->data, region->bounds->len * sizeof *bounds);
    for (guint i = 0; i < region->measured->len; i++) {
        const Measured *constant = &g_array_index(region->measured, Measured, i);
        float greatest;
        memcpy(&greatest, (const char *)args->packed + i * sizeof greatest, sizeof greatest);
        if (isnan(greatest)) { /* nobody had its values when weights were packed */
            const void *values = args->data[constant->operand];
            greatest = values ? greatest_absolute(values, constant->floats) : INFINITY;
        }
        bounds[constant->value] = greatest;
    }
}

static float
bound_of(const Guard *guard, const float *bounds)
{
    float bound = guard->factor * bounds[guard->x[0]];
    if (guard->x[1] != UINT32_MAX)
        bound *= bounds[guard->x[1]];
    if (guard->x[2] != UINT32_MAX)
        bound += bounds[guard->x[2]];
    return bound + guard->plus;
}

/* The bounds of results by the guards from @first to @last, which hold in front of one step. False
 * where one is not known to be finite. */
static bool
are_bounded(const Region *region, guint first, guint last, float *bounds)
{
    for (guint i = first; i <= last; i++) {
        const Guard *guard = &g_array_index(region->guards, Guard, i);
        float bound = bound_of(guard, bounds);
        if (!(bound < limit))
            return false;
        bound = MAX(MIN(bound, guard->cap), 1.0f);
        if (guard->y != UINT32_MAX)
            bounds[guard->y] = guard->joins ? MAX(bounds[guard->y], bound) : bound;
    }
    return true;
}

/* Looks at what the guards from @first to @last read, until they hold. A step does not store all
 * that it computes: a product in front of its activation, activations whose scale went into the
 * weights. Such a value cannot be looked at, but the operands of its own guard can. So the nearest
 * operands come first, then those of the guards before. */
static bool
look(const Region *region, guint first, guint last, void *const *addresses, float *bounds)
{
    for (guint g = last + 1; g-- > first;) {
        const Guard *guard = &g_array_index(region->guards, Guard, g);
        for (int i = 0; i < 3; i++) {
            if (guard->slot[i] == UINT32_MAX)
                continue;
            const Slot *slot = &g_array_index(region->slots, Slot, guard->slot[i]);
            size_t n = dnnl_memory_desc_get_size(&slot->md) / sizeof(float);
            float found = greatest_absolute(addresses[guard->slot[i]], n);
            bounds[guard->x[i]] = MIN(bounds[guard->x[i]], found);
            if (are_bounded(region, first, last, bounds))
                return true;
        }
    }
    return false;
}

bool
kiln_onednn_prove(const Region *region, guint step, void *const *addresses, float *bounds,
                  guint *next)
{
    for (guint first = *next; *next < region->guards->len; ++*next) {
        if (g_array_index(region->guards, Guard, *next).step > step)
            return true;
        if (!are_bounded(region, *next, *next, bounds) &&
            !look(region, first, *next, addresses, bounds))
            return false;
    }
    return true;
}
