/* SPDX-License-Identifier: Apache-2.0 */
/* label_encoder: a table in scratch has the place of each key, at the hash of the key or behind it.
 * The last of equal keys counts, so that keys are entered from the last on. Tasks look elements up.
 * Operands: result; elements, keys, values, the value of elements without a key. */
#include "backends/cpu/extents.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/parallel.h"
#include "graph/base/number.h"
#include "graph/texts.h"

#include <math.h>
#include <string.h>

enum {
    TASK_ELEMENTS = 1 << 12,
    OUT = 0,
    X,
    KEYS,
    VALUES,
    OTHERWISE
};

typedef struct {
    const KilnKernelArgs *args;
    KilnDType dtype;
    size_t size; /* bytes of a value */
    int64_t n, n_keys;
    uint64_t mask;   /* slots - 1, which is a power of two - 1 */
    uint32_t *slots; /* the key's number + 1; 0: free */
} Labels;

static uint64_t
slots_of(int64_t n_keys)
{
    uint64_t slots = 4;
    while (slots < 2 * (uint64_t)n_keys)
        slots *= 2;
    return slots;
}

size_t
kiln_cpu_label_encoder_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads;
    return slots_of(cpu_type(instr, KEYS)->dims[0]) * sizeof(uint32_t);
}

/* More keys have no number of 32 bits. */
bool
kiln_cpu_label_encoder_supports(const KilnInstr *instr)
{
    bool plain = true;
    for (uint32_t i = 0; i < instr->n_operands; i++)
        plain &= !cpu_type(instr, i)->layout && !cpu_type(instr, i)->quant;
    return plain && cpu_type(instr, KEYS)->dims[0] < G_MAXINT32;
}

/* Equal numbers have equal bits here: both zeros, and all NaNs. */
static uint64_t
bits_of(KilnDType dtype, const void *data, int64_t i)
{
    if (!kiln_dtype_is_float(dtype))
        return (uint64_t)kiln_element_as_i64(dtype, data, i);
    double value = kiln_element_as_f64(dtype, data, i) + 0.0;
    uint64_t bits;
    if (isnan(value))
        return UINT64_MAX;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static const KilnText *
text_at(const void *data, int64_t i)
{
    return ((const KilnText *const *)data)[i];
}

static uint64_t
hash_at(const Labels *labels, const void *data, int64_t i)
{
    if (labels->dtype == KILN_DTYPE_string)
        return kiln_text_hash(text_at(data, i));
    uint64_t bits = bits_of(labels->dtype, data, i) * UINT64_C(0x9E3779B97F4A7C15);
    return bits ^ bits >> 32;
}

static bool
is_key(const Labels *labels, const void *data, int64_t i, int64_t key)
{
    const void *keys = labels->args->data[KEYS];
    if (labels->dtype == KILN_DTYPE_string)
        return kiln_text_equal(text_at(data, i), text_at(keys, key));
    return bits_of(labels->dtype, data, i) == bits_of(labels->dtype, keys, key);
}

/* The slot of element @i of @data, or the free one where it would be. */
static uint64_t
find(const Labels *labels, const void *data, int64_t i)
{
    uint64_t slot = hash_at(labels, data, i) & labels->mask;
    while (labels->slots[slot] && !is_key(labels, data, i, labels->slots[slot] - 1))
        slot = (slot + 1) & labels->mask;
    return slot;
}

static void
enter_keys(const Labels *labels)
{
    const void *keys = labels->args->data[KEYS];
    memset(labels->slots, 0, (labels->mask + 1) * sizeof *labels->slots);
    for (int64_t k = labels->n_keys - 1; k >= 0; k--) {
        uint64_t slot = find(labels, keys, k);
        if (!labels->slots[slot])
            labels->slots[slot] = (uint32_t)k + 1;
    }
}

static void
look_up(const void *data, int64_t task, int thread)
{
    const Labels *labels = data;
    void *const *operands = labels->args->data;
    const size_t size = labels->size;
    int64_t from = task * TASK_ELEMENTS, end = min_of(from + TASK_ELEMENTS, labels->n);
    (void)thread;
    for (int64_t i = from; i < end; i++) {
        const uint32_t key = labels->slots[find(labels, operands[X], i)];
        const char *value =
            key ? (const char *)operands[VALUES] + (key - 1) * size : operands[OTHERWISE];
        memcpy((char *)operands[OUT] + (size_t)i * size, value, size);
    }
}

const char *
kiln_cpu_label_encoder(const KilnKernelArgs *args)
{
    const KilnType *x = cpu_type(args->instr, X);
    const int64_t n_keys = cpu_type(args->instr, KEYS)->dims[0];
    const Labels labels = { .args = args,
                            .dtype = x->dtype,
                            .size = kiln_dtype_size(cpu_type(args->instr, OUT)->dtype),
                            .n = kiln_type_elements(x),
                            .n_keys = n_keys,
                            .mask = slots_of(n_keys) - 1,
                            .slots = args->scratch };
    enter_keys(&labels);
    kiln_cpu_parallel(ceil_div(labels.n, TASK_ELEMENTS), args->threads, look_up, &labels);
    return NULL;
}
