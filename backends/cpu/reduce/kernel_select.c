/* SPDX-License-Identifier: Apache-2.0 */
/* arg_max, arg_min, hardmax and top_k. Elements become keys (select.h), a block at a time.
 *
 * arg_max keeps the best key: of a line where lines lie in a row, else of many columns at once.
 * top_k collects the keys that are larger than the k-th so far. Few of them are kept sorted. Many
 * are put down until 2 k are there, and a stable sort leaves the first k: by insertion, or by their
 * digits (radix). Equal elements keep the order of their indices, since they are collected in it.
 */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/reduce/select.h"
#include "ir/kernel.h"

#include <string.h>

enum {
    BLOCK = 256,  /* keys */
    COLUMNS = 64, /* lines of top_k side by side */
    TASK_ELEMENTS = 16384,
    SORTED_BY_INSERTION = 48,
    FEWEST_ITEMS = 8,
    KEPT_SORTED = 16, /* items, at most */
    EIGHT = 8,        /* flags that are looked at together */
};

/* The data is [outer, extent, inner]. */
typedef struct {
    const KilnCpuSelectRows *rows;
    KilnCpuKeysRow keys;
    KilnDType dtype;
    KilnCpuKeyOrder order;
    bool wide, last;
    size_t size; /* of an element */
    const char *from;
    int64_t outer, extent, inner;
    int64_t lines, pieces; /* a task: lines of outer, or one of pieces of inner */
    int64_t *at;           /* results of arg_max */
    char *hot;             /* results of hardmax */
} Select;

static Select
select_of(const KilnKernelArgs *args, uint32_t operand, int64_t axis, KilnCpuKeyOrder order)
{
    const KilnType *type = cpu_type(args->instr, operand);
    const CpuAround around = cpu_around(type, axis);
    Select s = { .rows = kiln_cpu_select(),
                 .dtype = type->dtype,
                 .order = order,
                 .size = kiln_dtype_size(type->dtype),
                 .from = args->data[operand],
                 .outer = around.outer,
                 .extent = around.axis,
                 .inner = around.inner };
    s.keys = s.rows->keys[type->dtype];
    s.wide = s.size == 8;
    return s;
}

static uint64_t
key_at(const Select *s, const void *keys, int64_t i)
{
    return s->wide ? ((const uint64_t *)keys)[i] : ((const uint32_t *)keys)[i];
}

/* --- the best of a line --- */

/* The index of the key in @keys that is @key: the first, or the last. */
static int64_t
find_key(const Select *s, const void *keys, int64_t n, uint64_t key)
{
    int64_t i = s->last ? n - 1 : 0;
    while (key_at(s, keys, i) != key)
        i += s->last ? -1 : 1;
    return i;
}

static int64_t
best_of_line(const Select *s, const char *line)
{
    uint64_t keys[BLOCK], best = 0;
    int64_t at = -1;
    for (int64_t i = 0; i < s->extent; i += BLOCK) {
        const int64_t n = min_of(BLOCK, s->extent - i);
        s->keys(keys, line + (size_t)i * s->size, n, s->order);
        const uint64_t here = s->rows->largest[s->wide](keys, n);
        if (at < 0 || here > best || (here == best && s->last)) {
            best = here;
            at = i + find_key(s, keys, n, here);
        }
    }
    return at;
}

/* Of @n lines side by side. */
static void
best_of_columns(const Select *s, const char *from, int64_t n, int64_t at[BLOCK])
{
    uint64_t keys[BLOCK], best[BLOCK];
    s->keys(best, from, n, s->order);
    memset(at, 0, (size_t)n * sizeof *at);
    for (int64_t step = 1; step < s->extent; step++) {
        s->keys(keys, from + (size_t)(step * s->inner) * s->size, n, s->order);
        s->rows->improve[s->wide](best, at, keys, n, step, s->last);
    }
}

/* 1 of each float type. */
static void
store_one(const Select *s, char *to)
{
    const float one = 1;
    const double wide = 1;
    const uint16_t f16 = 0x3c00, bf16 = 0x3f80;
    memcpy(to,
           s->dtype == KILN_DTYPE_f64   ? (const void *)&wide
           : s->dtype == KILN_DTYPE_f32 ? (const void *)&one
           : s->dtype == KILN_DTYPE_f16 ? (const void *)&f16
                                        : (const void *)&bf16,
           s->size);
}

/* Element @best of the line that begins at @line is 1, the others are 0. @n lines lie side by side.
 */
static void
store_hot(const Select *s, int64_t line, const int64_t *best, int64_t n)
{
    if (s->inner == 1)
        memset(s->hot + (size_t)line * s->size, 0, (size_t)s->extent * s->size);
    for (int64_t step = 0; s->inner > 1 && step < s->extent; step++)
        memset(s->hot + (size_t)(line + step * s->inner) * s->size, 0, (size_t)n * s->size);
    for (int64_t i = 0; i < n; i++)
        store_one(s, s->hot + (size_t)(line + i + best[i] * s->inner) * s->size);
}

static void
run_lines(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Select *s = data;
    const int64_t end = min_of((task + 1) * s->lines, s->outer);
    for (int64_t line = task * s->lines; line < end; line++) {
        const int64_t best = best_of_line(s, s->from + (size_t)(line * s->extent) * s->size);
        if (s->at)
            s->at[line] = best;
        else if (s->extent > 0)
            store_hot(s, line * s->extent, &best, 1);
    }
}

static void
run_columns(const void *data, int64_t task, int thread)
{
    (void)thread;
    const Select *s = data;
    const int64_t outer = task / s->pieces, first = task % s->pieces * BLOCK;
    const int64_t n = min_of(BLOCK, s->inner - first);
    const int64_t begin = outer * s->extent * s->inner + first;
    int64_t at[BLOCK];
    best_of_columns(s, s->from + (size_t)begin * s->size, n, at);
    if (s->at)
        memcpy(s->at + outer * s->inner + first, at, (size_t)n * sizeof *at);
    else
        store_hot(s, begin, at, n);
}

static void
run_best(Select *s, int threads)
{
    if (s->inner == 1) {
        s->lines = units_per_task(TASK_ELEMENTS, s->extent);
        kiln_cpu_parallel(ceil_div(s->outer, s->lines), threads, run_lines, s);
        return;
    }
    s->pieces = ceil_div(s->inner, BLOCK);
    kiln_cpu_parallel(s->outer * s->pieces, threads, run_columns, s);
}

bool
kiln_cpu_select_supports(const KilnInstr *instr)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (cpu_type(instr, i)->layout)
            return false;
    }
    return true;
}

static const char *
arg_reduce(const KilnKernelArgs *args, int64_t axis, KilnCpuKeyOrder order, bool last)
{
    Select s = select_of(args, 1, axis, order);
    if (s.extent == 0 && s.outer * s.inner > 0)
        return "arg_max or arg_min of no elements";
    s.last = last;
    s.at = args->data[0];
    run_best(&s, args->threads);
    return NULL;
}

const char *
kiln_cpu_arg_max(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_arg_max *a = kiln_instr_attrs(args->instr, arg_max);
    return arg_reduce(args, a->axis, KILN_CPU_KEYS_UP, a->select_last_index);
}

const char *
kiln_cpu_arg_min(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_arg_min *a = kiln_instr_attrs(args->instr, arg_min);
    return arg_reduce(args, a->axis, KILN_CPU_KEYS_DOWN_BUT_NAN, a->select_last_index);
}

/* In place is allowed: a line is read before it is written. */
const char *
kiln_cpu_hardmax(const KilnKernelArgs *args)
{
    Select s = select_of(args, 1, kiln_instr_attrs(args->instr, hardmax)->axis, KILN_CPU_KEYS_UP);
    s.hot = args->data[0];
    if (kiln_type_elements(cpu_type(args->instr, 1)) > 0)
        run_best(&s, args->threads);
    return NULL;
}

/* --- the first k of a line --- */

typedef struct {
    uint64_t key;
    int64_t index;
} Item;

/* Descending; equal keys stay in order. @other has room for as many. */
static void
sort_items(Item *items, Item *other, int64_t n, int bytes)
{
    if (n <= SORTED_BY_INSERTION) {
        for (int64_t i = 1; i < n; i++) {
            const Item item = items[i];
            int64_t at = i;
            for (; at > 0 && items[at - 1].key < item.key; at--)
                items[at] = items[at - 1];
            items[at] = item;
        }
        return;
    }
    Item *from = items, *to = other;
    for (int byte = 0; byte < bytes; byte++) {
        int64_t counts[256] = { 0 };
        for (int64_t i = 0; i < n; i++)
            counts[~(from[i].key >> 8 * byte) & 255]++;
        if (counts[~(from[0].key >> 8 * byte) & 255] == n)
            continue; /* one digit */
        for (int64_t digit = 0, sum = 0; digit < 256; digit++) {
            const int64_t count = counts[digit];
            counts[digit] = sum;
            sum += count;
        }
        for (int64_t i = 0; i < n; i++)
            to[counts[~(from[i].key >> 8 * byte) & 255]++] = from[i];
        Item *swap = from;
        from = to;
        to = swap;
    }
    if (from != items)
        memcpy(items, from, (size_t)n * sizeof *items);
}

typedef struct {
    Select in;
    char *values;
    int64_t *indices;
    int64_t k, room, pieces;
    char *scratch;
    size_t part; /* bytes of scratch of a thread */
} TopK;

/* The first k items so far. If they are few, they stay sorted. Else they are unsorted behind the
 * first k, until there are as many as there is room for. */
typedef struct {
    Item *items, *other;
    int64_t n, k, room;
    uint64_t bound; /* larger keys may be among the first; any before there are k */
    int bytes;
} First;

static void
shrink(First *f)
{
    sort_items(f->items, f->other, f->n, f->bytes);
    f->n = min_of(f->n, f->k);
    if (f->n == f->k)
        f->bound = f->items[f->k - 1].key;
}

/* Puts @item behind those that are as large. The last one goes where there are k. */
static void
insert(First *f, Item item)
{
    int64_t at = f->n < f->k ? f->n++ : f->k - 1;
    for (; at > 0 && f->items[at - 1].key < item.key; at--)
        f->items[at] = f->items[at - 1];
    f->items[at] = item;
    if (f->n == f->k)
        f->bound = f->items[f->k - 1].key;
}

static void
take(First *f, Item item)
{
    if (f->k <= KEPT_SORTED) {
        insert(f, item);
        return;
    }
    f->items[f->n++] = item;
    if (f->n == f->room)
        shrink(f);
}

/* Takes @n keys, at most a block, of the elements from @index on. */
static void
collect(First *f, const Select *s, const void *keys, int64_t n, int64_t index)
{
    uint8_t flags[BLOCK + sizeof(uint64_t)];
    int64_t i = 0;
    for (; i < n && f->n < f->k; i++)
        take(f, (Item){ key_at(s, keys, i), index + i });
    if (i == n || !s->rows->flag_larger[s->wide](keys, n, f->bound, flags))
        return;
    memset(flags, 0, (size_t)i);
    memset(flags + n, 0, sizeof(uint64_t));
    for (i -= i % EIGHT; i < n; i += EIGHT) {
        uint64_t eight; /* the low bytes come first */
        memcpy(&eight, flags + i, sizeof eight);
        for (; eight != 0; eight &= eight - 1) {
            const int64_t at = i + __builtin_ctzll(eight) / 8;
            const uint64_t key = key_at(s, keys, at);
            if (key > f->bound)
                take(f, (Item){ key, index + at });
        }
    }
}

static First
first_of(const TopK *t, int thread)
{
    Item *items = (Item *)(void *)(t->scratch + (size_t)thread * t->part);
    return (First){ .items = items,
                    .other = items + t->room,
                    .k = t->k,
                    .room = t->room,
                    .bytes = t->in.wide ? 8 : 4 };
}

/* Line @inner of @outer: values and indices, one every inner elements. */
static void
store_first(const TopK *t, First *f, int64_t outer, int64_t inner)
{
    const Select *s = &t->in;
    const char *from = s->from + (size_t)(outer * s->extent * s->inner + inner) * s->size;
    const int64_t to = outer * t->k * s->inner + inner;
    if (t->k > KEPT_SORTED)
        shrink(f);
    for (int64_t i = 0; i < t->k; i++) {
        const int64_t at = to + i * s->inner, index = f->items[i].index;
        memcpy(t->values + (size_t)at * s->size, from + (size_t)(index * s->inner) * s->size,
               s->size);
        t->indices[at] = index;
    }
}

static void
run_line(const void *data, int64_t task, int thread)
{
    const TopK *t = data;
    const Select *s = &t->in;
    const char *line = s->from + (size_t)(task * s->extent) * s->size;
    First f = first_of(t, thread);
    uint64_t keys[BLOCK];
    if (t->k == 1) {
        const int64_t best = best_of_line(s, line);
        memcpy(t->values + (size_t)task * s->size, line + (size_t)best * s->size, s->size);
        t->indices[task] = best;
        return;
    }
    for (int64_t i = 0; i < s->extent; i += BLOCK) {
        const int64_t n = min_of(BLOCK, s->extent - i);
        s->keys(keys, line + (size_t)i * s->size, n, s->order);
        collect(&f, s, keys, n, i);
    }
    store_first(t, &f, task, 0);
}

/* Lines side by side: keys of a row of them are computed at once, and kept by line. */
static void
run_side_by_side(const void *data, int64_t task, int thread)
{
    const TopK *t = data;
    const Select *s = &t->in;
    const int64_t outer = task / t->pieces, begin = task % t->pieces * COLUMNS;
    const int64_t n = min_of(COLUMNS, s->inner - begin);
    const char *from = s->from + (size_t)(outer * s->extent * s->inner + begin) * s->size;
    uint64_t *by_line = (uint64_t *)(void *)(t->scratch + (size_t)thread * t->part +
                                             2 * (size_t)t->room * sizeof(Item));
    uint64_t row[COLUMNS];
    for (int64_t step = 0; step < s->extent; step++) {
        s->keys(row, from + (size_t)(step * s->inner) * s->size, n, s->order);
        for (int64_t i = 0; i < n; i++) {
            if (s->wide)
                by_line[i * s->extent + step] = row[i];
            else
                ((uint32_t *)by_line)[i * s->extent + step] = ((const uint32_t *)row)[i];
        }
    }
    for (int64_t i = 0; i < n; i++) {
        First f = first_of(t, thread);
        const char *keys = (const char *)by_line + (size_t)(i * s->extent) * (s->wide ? 8 : 4);
        for (int64_t step = 0; step < s->extent; step += BLOCK)
            collect(&f, s, keys + (size_t)step * (s->wide ? 8 : 4), min_of(BLOCK, s->extent - step),
                    step);
        store_first(t, &f, outer, begin + i);
    }
}

/* Items of a thread: twice as many as are wanted, but no more than there are. */
static int64_t
room_of(int64_t k, int64_t extent)
{
    return MAX(FEWEST_ITEMS, min_of(2 * k, extent + 1));
}

static size_t
part_of(const KilnType *in, const KilnType *out, int64_t axis)
{
    const int at = (int)(axis < 0 ? axis + in->rank : axis);
    int64_t inner = 1;
    for (int d = at + 1; d < in->rank; d++)
        inner *= in->dims[d];
    const size_t items = 2 * (size_t)room_of(out->dims[at], in->dims[at]) * sizeof(Item);
    const size_t keys = inner > 1 ? COLUMNS * (size_t)in->dims[at] * sizeof(uint64_t) : 0;
    return (items + keys + 63) / 64 * 64;
}

size_t
kiln_cpu_top_k_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    return (size_t)threads *
           part_of(cpu_type(instr, 2), cpu_type(instr, 0), kiln_instr_attrs(instr, top_k)->axis);
}

/* Sorted in any case: without `sorted` every order is right. Operands: values, indices, data. */
const char *
kiln_cpu_top_k(const KilnKernelArgs *args)
{
    const KilnInstrAttrs_top_k *a = kiln_instr_attrs(args->instr, top_k);
    const KilnType *in = cpu_type(args->instr, 2), *out = cpu_type(args->instr, 0);
    TopK t = { .in =
                   select_of(args, 2, a->axis, a->largest ? KILN_CPU_KEYS_UP : KILN_CPU_KEYS_DOWN),
               .values = args->data[0],
               .indices = args->data[1],
               .k = out->dims[a->axis < 0 ? a->axis + in->rank : a->axis],
               .scratch = args->scratch,
               .part = part_of(in, out, a->axis) };
    if (t.k > t.in.extent)
        return "top_k of fewer than k elements";
    if (t.k == 0)
        return NULL;
    t.room = room_of(t.k, t.in.extent);
    t.pieces = ceil_div(t.in.inner, COLUMNS);
    if (t.in.inner == 1)
        kiln_cpu_parallel(t.in.outer, args->threads, run_line, &t);
    else
        kiln_cpu_parallel(t.in.outer * t.pieces, args->threads, run_side_by_side, &t);
    return NULL;
}
