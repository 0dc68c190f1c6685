/* SPDX-License-Identifier: Apache-2.0 */
/* Random functions of the IR level, also with code that lowering never makes: writes over buffers
 * that were read, buffers written in parts, views of views, writes that nothing reads. */
#ifndef KILN_TESTS_UNIT_RANDOM_IR_H
#define KILN_TESTS_UNIT_RANDOM_IR_H

#include "graph/base/random.h"
#include "ir/ir.h"

enum {
    RANDOM_IR_POOL = 64,
    RANDOM_IR_DIMS = 4 /* sizes are multiples of it */
};

typedef struct {
    KilnIRFunction *ir;
    uint64_t seed, counter;
    KilnBuffer *pool[RANDOM_IR_POOL]; /* one-dimensional, all of it written */
    uint32_t n;
} RandomIR;

static inline uint32_t
random_ir_draw(RandomIR *r, uint32_t below)
{
    return (uint32_t)(kiln_random_bits(r->seed, r->counter++) % below);
}

static inline KilnType
random_ir_type(int64_t n)
{
    return kiln_type_make(KILN_DTYPE_f32, 1, &n);
}

static inline int64_t
random_ir_size(const KilnBuffer *buffer)
{
    return buffer->type.dims[0];
}

static inline void
random_ir_push(RandomIR *r, KilnBuffer *buffer)
{
    if (r->n < RANDOM_IR_POOL)
        r->pool[r->n++] = buffer;
}

static inline KilnBuffer *
random_ir_any(RandomIR *r)
{
    return r->pool[random_ir_draw(r, r->n)];
}

static inline KilnBuffer *
random_ir_alloc(RandomIR *r, int64_t n)
{
    KilnType type = random_ir_type(n);
    return kiln_ir_alloc(r->ir, "a", &type, NULL);
}

static inline void
random_ir_emit(RandomIR *r, KilnInstrKind kind, KilnBuffer *const *operands, uint32_t n,
               const void *attrs)
{
    g_autoptr(GError) error = NULL;
    if (!kiln_instr_new(r->ir, kind, operands, n, attrs, NULL, &error))
        g_error("%s", error->message);
}

/* Every result has the same bits at any address, because no two NaNs meet. */
static inline void
random_ir_unary(RandomIR *r, KilnBuffer *to, KilnBuffer *from)
{
    static const KilnInstrKind kinds[] = { KILN_INSTR_relu,  KILN_INSTR_neg,     KILN_INSTR_abs,
                                           KILN_INSTR_floor, KILN_INSTR_sigmoid, KILN_INSTR_copy };
    bool same = kiln_buffer_origin(to) == kiln_buffer_origin(from);
    uint32_t kind = random_ir_draw(r, same ? 5 : 6);
    random_ir_emit(r, kinds[kind], (KilnBuffer *[]){ to, from }, 2, NULL);
}

/* A buffer of the same size with another origin, or @buffer if none was found. */
static inline KilnBuffer *
random_ir_other(RandomIR *r, KilnBuffer *buffer)
{
    for (int tries = 0; tries < 8; tries++) {
        KilnBuffer *other = random_ir_any(r);
        if (random_ir_size(other) == random_ir_size(buffer) &&
            kiln_buffer_origin(other) != kiln_buffer_origin(buffer))
            return other;
    }
    return buffer;
}

/* A buffer to overwrite, no input or constant: @from or another one. NULL: make a new buffer. */
static inline KilnBuffer *
random_ir_target(RandomIR *r, KilnBuffer *from)
{
    KilnBuffer *origin = kiln_buffer_origin(from);
    switch (random_ir_draw(r, 6)) {
    case 0:
        return origin->kind == KILN_BUFFER_INPUT || origin->is_const ? NULL : from;
    case 1: {
        KilnBuffer *other = random_ir_other(r, from);
        const KilnBuffer *in = kiln_buffer_origin(other);
        return other == from || in->kind == KILN_BUFFER_INPUT || in->is_const ? NULL : other;
    }
    default:
        return NULL;
    }
}

static inline void
random_ir_step_elementwise(RandomIR *r)
{
    static const KilnInstrKind kinds[] = { KILN_INSTR_add, KILN_INSTR_mul, KILN_INSTR_max };
    KilnBuffer *a = random_ir_any(r), *b = random_ir_other(r, a), *to = random_ir_target(r, a);
    bool binary = random_ir_draw(r, 2) && kiln_buffer_origin(a) != kiln_buffer_origin(b);
    bool meets = to && to != a && binary && kiln_buffer_origin(to) == kiln_buffer_origin(b);
    if (!to || meets)
        random_ir_push(r, to = random_ir_alloc(r, random_ir_size(a)));
    if (!binary)
        random_ir_unary(r, to, a);
    else if (random_ir_draw(r, 2))
        random_ir_emit(r, kinds[random_ir_draw(r, 3)], (KilnBuffer *[]){ to, a, b }, 3, NULL);
    else
        random_ir_emit(r, kinds[random_ir_draw(r, 3)], (KilnBuffer *[]){ to, b, a }, 3, NULL);
}

/* Views @rows runs of @n elements as one dim, if they are also rows in the origin of @whole. */
static inline void
random_ir_view_part(RandomIR *r, KilnBuffer *whole, int64_t first, int64_t rows, int64_t n)
{
    KilnType type = random_ir_type(rows * n);
    int64_t unit = sizeof(float), pitch = random_ir_size(whole) / rows;
    KilnRegion base = kiln_buffer_region(whole);
    KilnRegion part = kiln_region_make(first * unit, rows, n * unit, pitch * unit), at;
    if (kiln_region_part(&base, &part, &at))
        random_ir_push(r, kiln_ir_view_part(r->ir, "v", whole, &part, &type, NULL));
}

static inline void
random_ir_step_view(RandomIR *r)
{
    KilnBuffer *whole = random_ir_any(r);
    int64_t units = random_ir_size(whole) / RANDOM_IR_DIMS;
    int64_t first = random_ir_draw(r, (uint32_t)units);
    int64_t n = 1 + random_ir_draw(r, (uint32_t)(units - first));
    random_ir_view_part(r, whole, first * RANDOM_IR_DIMS, 1, n * RANDOM_IR_DIMS);
}

/* A part of each of several rows. */
static inline void
random_ir_step_rows(RandomIR *r)
{
    KilnBuffer *whole = random_ir_any(r);
    int64_t pitch = random_ir_size(whole) / RANDOM_IR_DIMS;
    int64_t first = random_ir_draw(r, (uint32_t)pitch);
    int64_t n = 1 + random_ir_draw(r, (uint32_t)(pitch - first));
    random_ir_view_part(r, whole, first, RANDOM_IR_DIMS, n);
}

/* A buffer that is written through views, in any order. */
static inline void
random_ir_step_parts(RandomIR *r)
{
    KilnBuffer *parts[3], *views[3];
    uint32_t n = 2 + random_ir_draw(r, 2);
    int64_t size = 0, at = 0;
    for (uint32_t i = 0; i < n; i++)
        size += random_ir_size(parts[i] = random_ir_any(r));
    KilnBuffer *whole = random_ir_alloc(r, size);
    for (uint32_t i = 0; i < n; i++) {
        views[i] = kiln_ir_view(r->ir, "p", whole, at, &parts[i]->type, NULL);
        at += random_ir_size(parts[i]);
    }
    for (uint32_t i = 0, first = random_ir_draw(r, n); i < n; i++)
        random_ir_unary(r, views[(first + i) % n], parts[(first + i) % n]);
    random_ir_push(r, whole);
}

static inline void
random_ir_step_movement(RandomIR *r)
{
    KilnBuffer *a = random_ir_any(r), *b = random_ir_any(r);
    int64_t n = random_ir_size(a), begin = RANDOM_IR_DIMS * random_ir_draw(r, 3);
    int64_t pads[] = { begin, RANDOM_IR_DIMS * random_ir_draw(r, 3) };
    int64_t start = random_ir_draw(r, (uint32_t)(n / RANDOM_IR_DIMS)) * RANDOM_IR_DIMS;
    KilnInstrAttrs_slice slice = { .starts = { .n = 1, .v = &start } };
    KilnInstrAttrs_pad pad = { .pads = { .n = 2, .v = pads }, .mode = "constant" };
    KilnInstrAttrs_softmax softmax = { .axis = 0 };
    KilnBuffer *to;
    switch (random_ir_draw(r, 4)) {
    case 0:
        to = random_ir_alloc(r, n + random_ir_size(b));
        random_ir_emit(r, KILN_INSTR_concat, (KilnBuffer *[]){ to, a, b }, 3, NULL);
        break;
    case 1:
        to = random_ir_alloc(r, n - start);
        random_ir_emit(r, KILN_INSTR_slice, (KilnBuffer *[]){ to, a }, 2, &slice);
        break;
    case 2:
        to = random_ir_alloc(r, n + pads[0] + pads[1]);
        random_ir_emit(r, KILN_INSTR_pad, (KilnBuffer *[]){ to, a }, 2, &pad);
        break;
    default:
        to = random_ir_alloc(r, n);
        random_ir_emit(r, KILN_INSTR_softmax, (KilnBuffer *[]){ to, a }, 2, &softmax);
        break;
    }
    random_ir_push(r, to);
}

static inline KilnBuffer *
random_ir_rows(RandomIR *r, KilnBuffer *buffer)
{
    KilnType type = kiln_type_make(
        KILN_DTYPE_f32, 2, (int64_t[]){ random_ir_size(buffer) / RANDOM_IR_DIMS, RANDOM_IR_DIMS });
    return kiln_ir_view(r->ir, "m", buffer, 0, &type, NULL);
}

/* Views @buffer as RANDOM_IR_DIMS rows. */
static inline KilnBuffer *
random_ir_columns(RandomIR *r, KilnBuffer *buffer)
{
    KilnType type = kiln_type_make(
        KILN_DTYPE_f32, 2, (int64_t[]){ RANDOM_IR_DIMS, random_ir_size(buffer) / RANDOM_IR_DIMS });
    return kiln_ir_view(r->ir, "c", buffer, 0, &type, NULL);
}

/* A concat, slice or pad of every row. */
static inline void
random_ir_step_columns(RandomIR *r)
{
    KilnBuffer *a = random_ir_columns(r, random_ir_any(r)), *to;
    KilnBuffer *b = random_ir_columns(r, random_ir_any(r));
    int64_t n = a->type.dims[1], start[] = { 0, random_ir_draw(r, (uint32_t)n) };
    int64_t pads[] = { 0, random_ir_draw(r, 3), 0, random_ir_draw(r, 3) };
    KilnInstrAttrs_concat concat = { .axis = 1 };
    KilnInstrAttrs_slice slice = { .starts = { .n = 2, .v = start } };
    KilnInstrAttrs_pad pad = { .pads = { .n = 4, .v = pads }, .mode = "constant" };
    KilnType type = a->type;
    uint32_t kind = random_ir_draw(r, 3);
    type.dims[1] = kind == 0   ? n + b->type.dims[1]
                   : kind == 1 ? n - start[1]
                               : n + pads[1] + pads[3];
    to = kiln_ir_alloc(r->ir, "j", &type, NULL);
    if (kind == 0)
        random_ir_emit(r, KILN_INSTR_concat, (KilnBuffer *[]){ to, a, b }, 3, &concat);
    else if (kind == 1)
        random_ir_emit(r, KILN_INSTR_slice, (KilnBuffer *[]){ to, a }, 2, &slice);
    else
        random_ir_emit(r, KILN_INSTR_pad, (KilnBuffer *[]){ to, a }, 2, &pad);
    type = random_ir_type(RANDOM_IR_DIMS * type.dims[1]);
    random_ir_push(r, kiln_ir_view(r->ir, "v", to, 0, &type, NULL));
}

/* A product of rows, and its possible tail: sums with other rows, activations. */
static inline void
random_ir_step_product(RandomIR *r)
{
    KilnBuffer *from = random_ir_any(r), *rows = random_ir_rows(r, from);
    KilnType whole = random_ir_type(random_ir_size(from));
    KilnBuffer *at = kiln_ir_alloc(r->ir, "p", &rows->type, NULL);
    KilnBuffer *w = kiln_ir_find_buffer(r->ir, "w");
    random_ir_emit(r, KILN_INSTR_matmul, (KilnBuffer *[]){ at, rows, w }, 3, NULL);
    for (uint32_t left = random_ir_draw(r, 4); left > 0; left--) {
        KilnBuffer *to = random_ir_draw(r, 4) ? kiln_ir_alloc(r->ir, "t", &rows->type, NULL) : at;
        KilnBuffer *other = random_ir_draw(r, 2) ? random_ir_other(r, from) : NULL;
        KilnBuffer *residual = other ? random_ir_rows(r, other) : NULL;
        if (residual && random_ir_draw(r, 2))
            random_ir_emit(r, KILN_INSTR_add, (KilnBuffer *[]){ to, residual, at }, 3, NULL);
        else if (residual)
            random_ir_emit(r, KILN_INSTR_add, (KilnBuffer *[]){ to, at, residual }, 3, NULL);
        else
            random_ir_unary(r, to, at);
        at = to;
    }
    random_ir_push(r, kiln_ir_view(r->ir, "v", at, 0, &whole, NULL));
}

/* Frees an alloc now. Drops it and its views from the pool. */
static inline void
random_ir_step_free(RandomIR *r)
{
    KilnBuffer *buffer = kiln_buffer_origin(random_ir_any(r));
    if (buffer->kind != KILN_BUFFER_ALLOC)
        return;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        if (kiln_buffer_origin(r->pool[i]) != buffer)
            r->pool[kept++] = r->pool[i];
    }
    r->n = kept;
    kiln_ir_dealloc(buffer, NULL);
}

static inline void
random_ir_outputs(RandomIR *r)
{
    uint32_t n = 1 + random_ir_draw(r, 3);
    for (uint32_t i = 0; i < n; i++) {
        KilnBuffer *from = random_ir_any(r);
        KilnBuffer *to = kiln_ir_add_buffer(r->ir, KILN_BUFFER_OUTPUT, "y", &from->type);
        random_ir_unary(r, to, from);
        if (random_ir_draw(r, 2))
            random_ir_push(r, to);
    }
}

static inline void
random_ir_free_rest(RandomIR *r)
{
    g_autofree bool *freed = g_new0(bool, r->ir->buffers->len + 1);
    kiln_foreach_instr (instr, r->ir) {
        if (instr->kind == KILN_INSTR_dealloc)
            freed[instr->operands[0].buffer->id] = true;
    }
    for (guint i = 0, n = r->ir->buffers->len; i < n; i++) {
        KilnBuffer *buffer = g_ptr_array_index(r->ir->buffers, i);
        if (buffer && buffer->kind == KILN_BUFFER_ALLOC && !freed[i])
            kiln_ir_dealloc(buffer, NULL);
    }
}

/* The function of @seed: the same on every machine. */
static inline KilnIRModule *
random_ir(uint64_t seed)
{
    KilnIRModule *module = kiln_ir_module_new(kiln_module_new());
    RandomIR r = { .ir = kiln_ir_function_new(module->module, "f"), .seed = seed };
    KilnType type = random_ir_type(RANDOM_IR_DIMS * (1 + random_ir_draw(&r, 8)));
    g_ptr_array_add(module->functions, r.ir);
    random_ir_push(&r, kiln_ir_add_buffer(r.ir, KILN_BUFFER_INPUT, "x", &type));
    random_ir_push(&r, kiln_ir_add_buffer(r.ir, KILN_BUFFER_INPUT, "x", &type));
    if (random_ir_draw(&r, 2))
        random_ir_push(&r, kiln_ir_add_buffer(r.ir, KILN_BUFFER_WEIGHT, "state", &type));
    type = kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ RANDOM_IR_DIMS, RANDOM_IR_DIMS });
    kiln_ir_add_buffer(r.ir, KILN_BUFFER_INPUT, "w", &type);
    for (uint32_t left = 4 + random_ir_draw(&r, 24); left > 0; left--) {
        switch (random_ir_draw(&r, 12)) {
        case 0:
            random_ir_step_view(&r);
            break;
        case 1:
            random_ir_step_parts(&r);
            break;
        case 2:
        case 3:
            random_ir_step_movement(&r);
            break;
        case 4:
            random_ir_step_free(&r);
            break;
        case 5:
            random_ir_step_product(&r);
            break;
        case 6:
            random_ir_step_rows(&r);
            break;
        case 7:
        case 8:
            random_ir_step_columns(&r);
            break;
        default:
            random_ir_step_elementwise(&r);
            break;
        }
        if (random_ir_draw(&r, 16) == 0)
            random_ir_outputs(&r);
    }
    random_ir_outputs(&r);
    random_ir_free_rest(&r);
    return module;
}

#endif
