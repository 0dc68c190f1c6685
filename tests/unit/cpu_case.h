/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the instructions of ref_case.h on the cpu target and compares results with the reference.
 * Bits must be the same for other thread counts, other addresses and results that overwrite
 * operands. ctest runs these tests once per instruction set (KILN_CPU_ISA). */
#ifndef KILN_TESTS_UNIT_CPU_CASE_H
#define KILN_TESTS_UNIT_CPU_CASE_H

#include "backends/cpu/cpu.h"
#include "graph/base/number.h"
#include "ir/target.h"
#include "tests/unit/exact_memory.h"
#include "tests/unit/ref_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** The random numbers of a test. */
typedef struct {
    uint32_t state;
} Random;

/** The next number, in 0 … @n - 1. */
static inline int64_t
below(Random *r, uint32_t n)
{
    r->state = r->state * 1664525u + 1013904223u;
    return (int64_t)((uint64_t)(r->state >> 4) * n >> 28);
}

/** Fills a float operand with values in -3 … 3, others with whole numbers in 0 … 7. */
static inline void
cpu_fill(RefCase *c, uint32_t i, uint32_t seed)
{
    const KilnType *type = &c->buffers[i].type;
    uint32_t state = seed * 2654435761u + 12345;
    for (int64_t k = 0; k < kiln_type_elements(type); k++) {
        state = state * 1664525u + 1013904223u;
        double unit = (double)(state >> 8) / (double)(1 << 24);
        double value = kiln_dtype_is_float(type->dtype) ? 6 * unit - 3 : (double)(state >> 20 & 7);
        kiln_element_store_f64(type->dtype, c->data[i], k, value);
    }
}

/** Adds an operand of f32 with random values. */
static inline void
cpu_in(RefCase *c, int rank, const int64_t *dims)
{
    case_in(c, KILN_DTYPE_f32, rank, dims, NULL);
    cpu_fill(c, c->instr.n_operands - 1, c->instr.n_operands);
}

/** The kernel of the cpu target. It must exist: other tests cover the fallback. */
static inline const KilnKernel *
cpu_kernel(const RefCase *c)
{
    const KilnKernel *kernel = kiln_target_find(kiln_cpu_target(), &c->instr);
    cr_assert(kernel, "no cpu kernel for %s", kiln_instr_info(c->instr.kind)->name);
    return kernel;
}

/** How the kernel is called. */
typedef struct {
    int threads;
    uint32_t shift;           /* bytes from a multiple of 64 to the start of every buffer */
    uint32_t alias;           /* operand that the result overwrites; 0: none */
    bool packed;              /* with the weights of kernel->packs packed */
    uint32_t form;            /* of them */
    const KilnFitted *fitted; /* packs them; NULL: the kernel's pack() */
} CpuCall;

/** Packs the weights in @n slices, the last one first. */
static inline void *
cpu_pack_in(const RefCase *c, const KilnKernel *kernel, uint32_t form, const void *const *sources,
            int64_t n)
{
    size_t bytes = kernel->packed_bytes(&c->instr, form);
    void *packed = memset(exact_memory((int64_t)bytes), 0, bytes);
    for (int64_t i = n; i-- > 0;)
        cr_assert_null(kernel->pack(&c->instr, form, sources, packed, (KilnSlice){ i, n }));
    return packed;
}

static inline void *
cpu_pack(const RefCase *c, const KilnKernel *kernel, uint32_t form, void **data)
{
    size_t bytes = kernel->packed_bytes ? kernel->packed_bytes(&c->instr, form) : 0;
    if (bytes == 0)
        return NULL;
    const void *sources[CASE_MAX_OPERANDS] = { NULL };
    for (uint32_t i = 0; i < c->instr.n_operands; i++) {
        if (!(kernel->packs >> i & 1))
            continue;
        sources[i] = data[i];
        data[i] = NULL; /* run() does not read it */
    }
    void *packed = cpu_pack_in(c, kernel, form, sources, 1);
    for (int64_t n = 2; n <= 7; n += 5) {
        void *sliced = cpu_pack_in(c, kernel, form, sources, n);
        cr_expect_eq(memcmp(packed, sliced, bytes), 0, "%d slices", (int)n);
        free(sliced);
    }
    return packed;
}

/** What @fitted packs of the weights; NULL where pack() does better. */
static inline void *
cpu_pack_fitted(const RefCase *c, const KilnFitted *fitted, uint32_t form,
                const void *const *sources)
{
    g_autoptr(GByteArray) head = g_byte_array_new();
    size_t bytes = fitted->measure(&c->instr, form, sources, 1, head);
    if (bytes == 0)
        return NULL;
    void *packed = memset(exact_memory((int64_t)bytes), 0, bytes);
    if (head->len > 0)
        memcpy(packed, head->data, head->len);
    fitted->pack(&c->instr, form, sources, packed, KILN_SLICE_WHOLE);
    cr_assert(fitted->is_sound(&c->instr, form, packed, bytes));
    return packed;
}

static inline bool
cpu_fits(const RefCase *c, const KilnFitted *fitted, uint32_t form)
{
    void *packed = cpu_pack_fitted(c, fitted, form, (const void *const *)c->data);
    free(packed);
    return packed != NULL;
}

static inline void *
cpu_prepare(const RefCase *c, const KilnKernel *kernel)
{
    if (!kernel->prepare)
        return NULL;
    void *prepared = exact_memory((int64_t)kernel->prepared_bytes(&c->instr));
    kernel->prepare(&c->instr, prepared);
    return prepared;
}

/* Floats in it are NaN, so that a read before a write shows. */
static inline void *
cpu_scratch(size_t bytes)
{
    return memset(exact_memory((int64_t)bytes), 0xff, bytes);
}

/** Runs on copies of the operands. Stores new copies of the results in @out, for cpu_free(). */
static inline const char *
cpu_run(const RefCase *c, const CpuCall *call, void *out[CASE_MAX_OPERANDS])
{
    const KilnKernel *kernel = cpu_kernel(c);
    void *data[CASE_MAX_OPERANDS] = { NULL }, *memory[CASE_MAX_OPERANDS] = { NULL };
    for (uint32_t i = 0; i < c->instr.n_operands; i++) {
        if (!c->uses[i].buffer)
            continue;
        size_t bytes = (size_t)kiln_type_bytes(&c->buffers[i].type);
        data[i] = memory[i] = (char *)exact_memory((int64_t)bytes + call->shift) + call->shift;
        if (c->uses[i].access == KILN_ACCESS_OUT)
            memset(data[i], 0xff, bytes);
        else
            memcpy(data[i], c->data[i], bytes);
    }
    if (call->alias) {
        size_t bytes = (size_t)kiln_type_bytes(&c->buffers[0].type);
        memcpy(data[0], data[call->alias], bytes);
        data[call->alias] = data[0];
    }
    size_t scratch =
        kiln_kernel_own_scratch(kernel, &c->instr, call->form, call->fitted, call->threads);
    for (int fewer = 1; scratch && fewer < call->threads; fewer++)
        cr_assert_leq(kiln_kernel_own_scratch(kernel, &c->instr, call->form, call->fitted, fewer),
                      scratch, "%d threads", fewer);
    void *fitted = NULL;
    if (call->fitted)
        fitted = cpu_pack_fitted(c, call->fitted, call->form, (const void *const *)data);
    KilnKernelArgs args = { .instr = &c->instr,
                            .data = data,
                            .scratch = scratch ? cpu_scratch(scratch) : NULL,
                            .fitted = fitted != NULL,
                            .packed = fitted         ? fitted
                                      : call->packed ? cpu_pack(c, kernel, call->form, data)
                                                     : NULL,
                            .form = call->form,
                            .prepared = cpu_prepare(c, kernel),
                            .threads = call->threads,
                            .texts = c->texts };
    const char *error = kernel->run(&args);
    free(args.scratch);
    free((void *)args.packed);
    free((void *)args.prepared);
    for (uint32_t i = 0; i < c->instr.n_operands; i++) {
        out[i] = NULL;
        if (!memory[i])
            continue;
        if (c->uses[i].access != KILN_ACCESS_IN)
            out[i] = memcpy(malloc((size_t)kiln_type_bytes(&c->buffers[i].type) + 1), memory[i],
                            (size_t)kiln_type_bytes(&c->buffers[i].type));
        free((char *)memory[i] - call->shift);
    }
    return error;
}

/** The allowed difference from the reference: absolute, plus relative to the magnitude. */
typedef struct {
    double absolute, relative;
} Tolerance;

static inline void
cpu_compare(const RefCase *c, uint32_t i, const void *found, Tolerance tolerance, const char *what)
{
    const KilnType *type = &c->buffers[i].type;
    for (int64_t k = 0; k < kiln_type_elements(type); k++) {
        double x = kiln_element_as_f64(type->dtype, c->data[i], k);
        double y = kiln_element_as_f64(type->dtype, found, k);
        bool same = x == y || (isnan(x) && isnan(y)) ||
                    fabs(x - y) <= tolerance.absolute + tolerance.relative * fabs(x);
        cr_assert(same, "%s %s, operand %u, element %d: expected %.9g, found %.9g",
                  kiln_instr_info(c->instr.kind)->name, what, i, (int)k, x, y);
    }
}

/* The loops for packed weights may make other NaNs. */
static inline bool
cpu_same_element(const KilnType *type, const void *a, const void *b, int64_t k, bool any_nan)
{
    size_t size = kiln_dtype_size(type->dtype), at = (size_t)k * size;
    return memcmp((const char *)a + at, (const char *)b + at, size) == 0 ||
           (any_nan && isnan(kiln_element_as_f64(type->dtype, a, k)) &&
            isnan(kiln_element_as_f64(type->dtype, b, k)));
}

static inline void
cpu_same_bits(const RefCase *c, void *const *first, void *const *second, bool any_nan,
              const char *what)
{
    for (uint32_t i = 0; i < c->instr.n_operands; i++) {
        const KilnType *type = &c->buffers[i].type;
        int64_t n = first[i] ? kiln_type_elements(type) : 0;
        for (int64_t k = 0; k < n; k++)
            cr_assert(cpu_same_element(type, first[i], second[i], k, any_nan),
                      "%s %s, operand %u, element %d: other bits",
                      kiln_instr_info(c->instr.kind)->name, what, i, (int)k);
    }
}

static inline void
cpu_free(void **out)
{
    for (int i = 0; i < CASE_MAX_OPERANDS; i++)
        free(out[i]);
}

/** Runs the case on ref and in all ways on cpu; @what names it in messages. */
static inline void
cpu_agrees(RefCase *c, Tolerance tolerance, const char *what)
{
    const KilnKernel *kernel = cpu_kernel(c);
    void *first[CASE_MAX_OPERANDS] = { NULL };
    const char *error = case_run(c), *found = cpu_run(c, &(CpuCall){ .threads = 1 }, first);
    cr_assert_str_eq(found ? found : "none", error ? error : "none");
    for (uint32_t i = 0; !error && i < c->instr.n_operands; i++) {
        if (first[i])
            cpu_compare(c, i, first[i], tolerance, what);
    }
    CpuCall calls[8 + CASE_MAX_OPERANDS] = { { .threads = 2 }, { .threads = 3 }, { .threads = 4 } };
    int n = 3;
    calls[n++] = (CpuCall){ .threads = 1, .shift = 8 };
    if (kernel->packs)
        calls[n++] =
            (CpuCall){ .threads = 2, .packed = true, .form = kiln_kernel_form(kernel, &c->instr) };
    for (uint32_t i = 1; i < c->instr.n_operands; i++) {
        if (kiln_instr_may_share(&c->instr, 0, i))
            calls[n++] = (CpuCall){ .threads = 2, .alias = i };
    }
    for (int i = 0; !error && i < n; i++) {
        g_autofree char *how =
            g_strdup_printf("%s, %d threads, shifted %u, over %u%s", what, calls[i].threads,
                            calls[i].shift, calls[i].alias, calls[i].packed ? ", packed" : "");
        void *other[CASE_MAX_OPERANDS] = { NULL };
        cpu_run(c, &calls[i], other);
        cpu_same_bits(c, first, other, calls[i].packed, how);
        cpu_free(other);
    }
    cpu_free(first);
}

#endif
