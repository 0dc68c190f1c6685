/* SPDX-License-Identifier: Apache-2.0 */
/* unique: each element once, in order or as they come first, where no axis makes slices of them.
 * Elements become keys of unsigned integers in the same order. Keys and places are sorted by their
 * bytes, the last byte first: a step counts bytes and moves each element once, and a byte that all
 * keys share needs no step. So equal elements stay as they stand. NaN equals NaN and is greater
 * than all numbers. Operands: values, their count, first places, inverse places, counts, data. */
#include "backends/cpu/kernel.h"
#include "graph/kiln-types.h"
#include "ir/kernel.h"

#include <stdbool.h>

enum {
    DIGITS = 256, /* values of a byte */
};

/* Arrays of n elements in the scratch. */
typedef struct {
    uint64_t *keys, *spare_keys;
    int64_t *places, *spare_places;
    int64_t n;
} Sorted;

/* Of negative numbers all bits are turned, of others the sign. Zeros are equal, and so are NaNs. */
static inline uint64_t
key_of_float(uint64_t bits, uint64_t sign, uint64_t infinity)
{
    const uint64_t size = bits & (sign - 1), ones = 2 * sign - 1;
    const uint64_t key = size != bits && size ? bits ^ ones : size | sign;
    return size > infinity ? ones : key;
}

static void
fill_keys(Sorted *s, KilnDType dtype, const void *data)
{
    const size_t size = kiln_dtype_size(dtype);
    const uint64_t sign = UINT64_C(1) << (8 * size - 1), infinity = cpu_infinity_bits(dtype);
    const uint64_t turned = kiln_dtype_is_signed(dtype) ? sign : 0;
    const bool is_float = kiln_dtype_is_float(dtype);
#define FILL(T)                                                                                    \
    for (int64_t i = 0; i < s->n; i++) {                                                           \
        const uint64_t bits = ((const T *)data)[i];                                                \
        s->keys[i] = is_float ? key_of_float(bits, sign, infinity) : bits ^ turned;                \
    }
    if (size == 1)
        FILL(uint8_t)
    else if (size == 2)
        FILL(uint16_t)
    else if (size == 4)
        FILL(uint32_t)
    else
        FILL(uint64_t)
#undef FILL
    for (int64_t i = 0; i < s->n; i++)
        s->places[i] = i;
}

/* Moves elements to the order of byte @byte, of which @counts are as many. */
static void
sort_by_byte(Sorted *s, int byte, const int64_t counts[DIGITS])
{
    int64_t next[DIGITS], sum = 0;
    for (int digit = 0; digit < DIGITS; digit++) {
        next[digit] = sum;
        sum += counts[digit];
    }
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t to = next[s->keys[i] >> (8 * byte) & (DIGITS - 1)]++;
        s->spare_keys[to] = s->keys[i];
        s->spare_places[to] = s->places[i];
    }
    uint64_t *const keys = s->keys;
    int64_t *const places = s->places;
    s->keys = s->spare_keys;
    s->places = s->spare_places;
    s->spare_keys = keys;
    s->spare_places = places;
}

static void
sort(Sorted *s, int bytes)
{
    int64_t counts[sizeof(uint64_t)][DIGITS] = { 0 };
    for (int64_t i = 0; i < s->n; i++) {
        for (int byte = 0; byte < bytes; byte++)
            counts[byte][s->keys[i] >> (8 * byte) & (DIGITS - 1)]++;
    }
    for (int byte = 0; byte < bytes; byte++) {
        if (counts[byte][s->keys[0] >> (8 * byte) & (DIGITS - 1)] < s->n)
            sort_by_byte(s, byte, counts[byte]);
    }
}

/* Writes to @first the place of the first element that is as each one, and to @rank its place among
 * the unique ones. Returns how many these are. */
static int64_t
group(const Sorted *s, bool in_order, int64_t *first, int64_t *rank)
{
    int64_t count = 0, next = 0;
    for (int64_t k = 0, begin = 0; k < s->n; k++) {
        if (k == 0 || s->keys[k] != s->keys[k - 1]) {
            begin = s->places[k];
            rank[begin] = count++;
        }
        first[s->places[k]] = begin;
    }
    for (int64_t i = 0; !in_order && i < s->n; i++) {
        if (first[i] == i)
            rank[i] = next++;
    }
    return count;
}

static void
copy_element(void *to, int64_t place, const void *from, int64_t i, size_t size)
{
#define COPY(T) ((T *)to)[place] = ((const T *)from)[i]
    if (size == 1)
        COPY(uint8_t);
    else if (size == 2)
        COPY(uint16_t);
    else if (size == 4)
        COPY(uint32_t);
    else
        COPY(uint64_t);
#undef COPY
}

/* An axis of the only dim makes slices of one element each. */
bool
kiln_cpu_unique_supports(const KilnInstr *instr)
{
    const KilnType *x = cpu_type(instr, 5);
    const bool flat = kiln_instr_attrs(instr, unique)->axis == INT64_MIN;
    return !x->layout && (flat || x->rank == 1);
}

size_t
kiln_cpu_unique_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    return (size_t)kiln_type_elements(cpu_type(instr, 5)) * 4 * sizeof(int64_t);
}

const char *
kiln_cpu_unique(const KilnKernelArgs *args)
{
    const KilnType *x = cpu_type(args->instr, 5);
    const int64_t n = kiln_type_elements(x);
    const size_t size = kiln_dtype_size(x->dtype);
    int64_t *indices = args->data[2], *inverse = args->data[3], *counts = args->data[4];
    uint64_t *scratch = args->scratch;
    Sorted s = { .keys = scratch,
                 .spare_keys = scratch + n,
                 .places = (int64_t *)args->scratch + 2 * n,
                 .spare_places = (int64_t *)args->scratch + 3 * n,
                 .n = n };
    if (n > 0) {
        fill_keys(&s, x->dtype, args->data[5]);
        sort(&s, (int)size);
    }
    int64_t *first = s.spare_places, *rank = (int64_t *)(void *)s.spare_keys;
    *(int64_t *)args->data[1] =
        group(&s, kiln_instr_attrs(args->instr, unique)->sorted, first, rank);
    for (int64_t i = 0; i < n; i++) {
        const int64_t place = rank[first[i]];
        if (first[i] == i) {
            copy_element(args->data[0], place, args->data[5], i, size);
            if (indices)
                indices[place] = i;
            if (counts)
                counts[place] = 0;
        }
        if (inverse)
            inverse[i] = place;
        if (counts)
            counts[place]++;
    }
    return NULL;
}
