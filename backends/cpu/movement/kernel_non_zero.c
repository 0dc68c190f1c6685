/* SPDX-License-Identifier: Apache-2.0 */
/* non_zero: tasks count the elements of their part that are not 0, and then each writes its
 * columns. Elements are bits: -0 is told by the bits without the sign. Operands: result, count, x.
 */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"

enum {
    TASK_ELEMENTS = 1 << 16
};

typedef struct {
    const void *x;
    const KilnType *type;
    int64_t *to;
    int64_t *begins; /* per task: its first column; before that, how many columns it has */
    int64_t n, found;
} NonZero;

/* Calls LOOP(type, mask) for the elements of @dtype. */
#define FOR_BITS(dtype, LOOP)                                                                      \
    switch (dtype) {                                                                               \
    case KILN_DTYPE_f64:                                                                           \
        LOOP(uint64_t, (uint64_t)INT64_MAX) break;                                                 \
    case KILN_DTYPE_f32:                                                                           \
        LOOP(uint32_t, INT32_MAX) break;                                                           \
    case KILN_DTYPE_f16:                                                                           \
    case KILN_DTYPE_bf16:                                                                          \
        LOOP(uint16_t, INT16_MAX) break;                                                           \
    case KILN_DTYPE_i64:                                                                           \
    case KILN_DTYPE_u64:                                                                           \
        LOOP(uint64_t, UINT64_MAX) break;                                                          \
    case KILN_DTYPE_i32:                                                                           \
    case KILN_DTYPE_u32:                                                                           \
        LOOP(uint32_t, UINT32_MAX) break;                                                          \
    case KILN_DTYPE_i16:                                                                           \
    case KILN_DTYPE_u16:                                                                           \
        LOOP(uint16_t, UINT16_MAX) break;                                                          \
    default:                                                                                       \
        LOOP(uint8_t, UINT8_MAX) break;                                                            \
    }

static inline int64_t
end_of(const NonZero *self, int64_t task)
{
    int64_t end = (task + 1) * TASK_ELEMENTS;
    return end < self->n ? end : self->n;
}

#define COUNT(bits, mask)                                                                          \
    for (int64_t i = from; i < end; i++)                                                           \
        found += (((const bits *)self->x)[i] & (mask)) != 0;

static void
count_task(const void *data, int64_t task, int thread)
{
    const NonZero *self = data;
    int64_t from = task * TASK_ELEMENTS, end = end_of(self, task);
    uint32_t found = 0; /* a task has fewer elements */
    (void)thread;
    FOR_BITS(self->type->dtype, COUNT)
    self->begins[task] = found;
}

/* Writes the place in the row of each element from @from to @end - 1 that is not 0, up to column
 * @last. Each is written, and the next one overwrites it if it is 0. */
#define LIST(bits, mask)                                                                           \
    for (int64_t i = from; i < end && column < last; i++) {                                        \
        to[column] = i - row;                                                                      \
        column += (((const bits *)self->x)[i] & (mask)) != 0;                                      \
    }

static int64_t
list_row(const NonZero *self, int64_t row, int64_t from, int64_t end, int64_t column, int64_t last)
{
    int64_t *to = self->to + (self->type->rank - 1) * self->found;
    FOR_BITS(self->type->dtype, LIST)
    return column;
}

static void
list_task(const void *data, int64_t task, int thread)
{
    const NonZero *self = data;
    const KilnType *type = self->type;
    int64_t width = type->dims[type->rank - 1], column = self->begins[task];
    int64_t last = self->begins[task + 1], end = end_of(self, task);
    (void)thread;
    for (int64_t at = task * TASK_ELEMENTS; at < end && column < last;) {
        int64_t row = at / width, next = (row + 1) * width, first = column;
        column = list_row(self, row * width, at, next < end ? next : end, column, last);
        at = next;
        for (int d = type->rank - 2; d >= 0; d--) {
            int64_t index = row % type->dims[d];
            row /= type->dims[d];
            for (int64_t c = first; c < column; c++)
                self->to[d * self->found + c] = index;
        }
    }
}

bool
kiln_cpu_non_zero_supports(const KilnInstr *instr)
{
    return !cpu_type(instr, 2)->layout && cpu_type(instr, 2)->rank > 0;
}

size_t
kiln_cpu_non_zero_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    int64_t n = kiln_type_elements(cpu_type(instr, 2));
    (void)form;
    (void)threads;
    return (size_t)(ceil_div(n, TASK_ELEMENTS) + 1) * sizeof(int64_t);
}

const char *
kiln_cpu_non_zero(const KilnKernelArgs *args)
{
    const KilnType *type = cpu_type(args->instr, 2);
    NonZero self = { .x = args->data[2],
                     .type = type,
                     .to = args->data[0],
                     .begins = args->scratch,
                     .n = kiln_type_elements(type) };
    int64_t n_tasks = ceil_div(self.n, TASK_ELEMENTS);
    kiln_cpu_parallel(n_tasks, args->threads, count_task, &self);
    for (int64_t t = 0; t < n_tasks; t++) {
        int64_t columns = self.begins[t];
        self.begins[t] = self.found;
        self.found += columns;
    }
    self.begins[n_tasks] = self.found;
    kiln_cpu_parallel(n_tasks, args->threads, list_task, &self);
    *(int64_t *)args->data[1] = self.found;
    return NULL;
}
