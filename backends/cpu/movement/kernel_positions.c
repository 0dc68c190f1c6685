/* SPDX-License-Identifier: Apache-2.0 */
/* trilu, eye_like, one_hot and reverse_sequence of any element type: rows are copied, cleared or
 * filled as wholes, single elements set behind that. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "graph/base/number.h"
#include "ir/kernel.h"

#include <string.h>

enum {
    TASK_BYTES = 1 << 16,
};

static int64_t
within(int64_t x, int64_t least, int64_t most)
{
    return x < least ? least : x > most ? most : x;
}

/* --- trilu --- */

typedef struct {
    char *to;
    const char *from;
    size_t size;
    int64_t rows, columns, all, rows_per_task;
    int64_t k;
    bool upper;
} Trilu;

static void
trilu_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Trilu *t = data;
    const size_t bytes = (size_t)t->columns * t->size;
    const int64_t end = min_of((task + 1) * t->rows_per_task, t->all);
    for (int64_t row = task * t->rows_per_task; row < end; row++) {
        /* The columns before it are those below the diagonal. */
        const int64_t at = within(row % t->rows + t->k + !t->upper, 0, t->columns);
        char *to = t->to + (size_t)row * bytes;
        const size_t before = (size_t)at * t->size;
        if (t->to != t->from)
            memcpy(to, t->from + (size_t)row * bytes, bytes);
        if (t->upper)
            memset(to, 0, before);
        else
            memset(to + before, 0, bytes - before);
    }
}

const char *
kiln_cpu_trilu(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_trilu *attrs = kiln_instr_attrs(args->instr, trilu);
    const KilnType *type = cpu_type(args->instr, 0);
    Trilu t = { .to = args->data[0],
                .from = args->data[1],
                .size = kiln_dtype_size(type->dtype),
                .rows = type->dims[type->rank - 2],
                .columns = type->dims[type->rank - 1],
                .upper = attrs->upper };
    if (kiln_type_elements(type) == 0)
        return NULL;
    t.all = kiln_type_elements(type) / t.columns;
    t.k = within(attrs->k, -t.rows - 1, t.columns);
    t.rows_per_task = units_per_task(TASK_BYTES, t.columns * (int64_t)t.size);
    kiln_cpu_parallel(ceil_div(t.all, t.rows_per_task), args->threads, trilu_task, &t);
    return NULL;
}

/* --- eye_like --- */

typedef struct {
    char *to;
    size_t size;
    uint64_t one; /* its bytes come first */
    int64_t rows, columns, rows_per_task;
    int64_t k;
} Diagonal;

/* Rows are cleared a few at a time, so that the ones go where the processor still has them. */
static void
eye_like_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Diagonal *d = data;
    const int64_t first = task * d->rows_per_task, end = min_of(first + d->rows_per_task, d->rows);
    char *to = d->to + (size_t)(first * d->columns) * d->size;
    memset(to, 0, (size_t)((end - first) * d->columns) * d->size);
    for (int64_t row = within(first, -d->k, end); row < end && row + d->k < d->columns; row++)
        memcpy(d->to + (size_t)(row * d->columns + row + d->k) * d->size, &d->one, d->size);
}

const char *
kiln_cpu_eye_like(const KilnKernelArgs *args)
{
    const KilnType *type = cpu_type(args->instr, 0);
    Diagonal d = { .to = args->data[0],
                   .size = kiln_dtype_size(type->dtype),
                   .rows = type->dims[0],
                   .columns = type->dims[1] };
    d.k = within(kiln_instr_attrs(args->instr, eye_like)->k, -d.rows, d.columns);
    d.rows_per_task = units_per_task(TASK_BYTES, d.columns * (int64_t)d.size);
    kiln_element_store_f64(type->dtype, &d.one, 0, 1);
    kiln_cpu_parallel(ceil_div(d.rows, d.rows_per_task), args->threads, eye_like_task, &d);
    return NULL;
}

/* --- one_hot --- */

/* The result is [outer, depth, inner]; a task is a piece of inner. */
typedef struct {
    char *to;
    const char *values; /* off, on */
    size_t size;
    const void *indices;
    KilnDType dtype; /* of the indices */
    int64_t outer, depth, inner, piece, pieces;
} OneHot;

static void
fill(char *to, const char *value, size_t size, int64_t n)
{
    const size_t bytes = (size_t)n * size;
    size_t done = size;
    if (n == 0)
        return;
    memcpy(to, value, size);
    for (; done < bytes; done *= 2)
        memcpy(to + done, to, done < bytes - done ? done : bytes - done);
}

static void
one_hot_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const OneHot *h = data;
    const int64_t outer = task / h->pieces, first = task % h->pieces * h->piece;
    const int64_t n = min_of(h->piece, h->inner - first);
    char *to = h->to + (size_t)(outer * h->depth * h->inner + first) * h->size;
    const size_t step = (size_t)h->inner * h->size;
    if (n == h->inner) {
        fill(to, h->values, h->size, h->depth * n);
    } else {
        for (int64_t a = 0; a < h->depth; a++)
            fill(to + (size_t)a * step, h->values, h->size, n);
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t hot = kiln_element_as_i64(h->dtype, h->indices, outer * h->inner + first + i);
        if (hot < 0 && h->dtype != KILN_DTYPE_u64)
            hot += hot >= -h->depth ? h->depth : 0;
        if (hot >= 0 && hot < h->depth)
            memcpy(to + (size_t)hot * step + (size_t)i * h->size, h->values + h->size, h->size);
    }
}

bool
kiln_cpu_one_hot_supports(const KilnInstr *instr)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (cpu_type(instr, i)->layout)
            return false;
    }
    return kiln_dtype_size(cpu_type(instr, 0)->dtype) > 0;
}

const char *
kiln_cpu_one_hot(const KilnKernelArgs *args)
{
    const KilnType *type = cpu_type(args->instr, 0);
    const int64_t stated = kiln_instr_attrs(args->instr, one_hot)->axis;
    const int axis = (int)(stated < 0 ? stated + type->rank : stated);
    OneHot h = { .to = args->data[0],
                 .values = args->data[2],
                 .size = kiln_dtype_size(type->dtype),
                 .indices = args->data[1],
                 .dtype = cpu_type(args->instr, 1)->dtype,
                 .outer = 1,
                 .depth = 1,
                 .inner = 1 };
    for (int d = 0; d < type->rank; d++)
        *(d < axis ? &h.outer : d == axis ? &h.depth : &h.inner) *= type->dims[d];
    if (kiln_type_elements(type) == 0)
        return NULL;
    h.piece = min_of(h.inner, units_per_task(TASK_BYTES, h.depth * (int64_t)h.size));
    h.pieces = ceil_div(h.inner, h.piece);
    kiln_cpu_parallel(h.outer * h.pieces, args->threads, one_hot_task, &h);
    return NULL;
}

/* --- reverse_sequence --- */

/* The data is [first, second, row bytes], of which one is the time and the other the batch. */
typedef struct {
    char *to;
    const char *from;
    const void *lengths;
    KilnDType dtype; /* of the lengths */
    bool time_first;
    int64_t first, second, row, rows_per_task;
} Reverse;

static void
reverse_task(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Reverse *r = data;
    const int64_t end = min_of((task + 1) * r->rows_per_task, r->first * r->second);
    for (int64_t i = task * r->rows_per_task; i < end; i++) {
        const int64_t a = i / r->second, b = i % r->second;
        const int64_t time = r->time_first ? a : b, batch = r->time_first ? b : a;
        const int64_t length = kiln_element_as_i64(r->dtype, r->lengths, batch);
        const int64_t back = time < length ? length - 1 - 2 * time : 0;
        const int64_t from = i + back * (r->time_first ? r->second : 1);
        memcpy(r->to + i * r->row, r->from + from * r->row, (size_t)r->row);
    }
}

bool
kiln_cpu_reverse_sequence_supports(const KilnInstr *instr)
{
    const KilnInstrAttrs_reverse_sequence *attrs = kiln_instr_attrs(instr, reverse_sequence);
    const KilnType *type = cpu_type(instr, 0);
    const int batch = kiln_type_axis(type, attrs->batch_axis);
    const int time = kiln_type_axis(type, attrs->time_axis);
    return batch + time == 1 && batch != time && kiln_cpu_one_hot_supports(instr);
}

const char *
kiln_cpu_reverse_sequence(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_reverse_sequence *attrs = kiln_instr_attrs(args->instr, reverse_sequence);
    const KilnType *type = cpu_type(args->instr, 0);
    Reverse r = { .to = args->data[0],
                  .from = args->data[1],
                  .lengths = args->data[2],
                  .dtype = cpu_type(args->instr, 2)->dtype,
                  .time_first = kiln_type_axis(type, attrs->time_axis) == 0,
                  .first = type->dims[0],
                  .second = type->dims[1],
                  .row = (int64_t)kiln_dtype_size(type->dtype) };
    const int64_t batches = r.time_first ? r.second : r.first;
    const int64_t steps = r.time_first ? r.first : r.second;
    for (int64_t i = 0; i < batches; i++) {
        const int64_t length = kiln_element_as_i64(r.dtype, r.lengths, i);
        if (length < 0 || length > steps)
            return "a sequence length is negative or over the time dimension";
    }
    for (int d = 2; d < type->rank; d++)
        r.row *= type->dims[d];
    if (kiln_type_elements(type) == 0)
        return NULL;
    r.rows_per_task = units_per_task(TASK_BYTES, r.row);
    kiln_cpu_parallel(ceil_div(r.first * r.second, r.rows_per_task), args->threads, reverse_task,
                      &r);
    return NULL;
}
