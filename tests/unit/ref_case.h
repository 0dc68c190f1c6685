/* SPDX-License-Identifier: Apache-2.0 */
/* One instruction with its own operands and data, for unit tests of the reference backend. Values
 * are written and read as doubles. Buffers have exactly their size, so that AddressSanitizer finds
 * accesses beside them. */
#ifndef KILN_TESTS_UNIT_REF_CASE_H
#define KILN_TESTS_UNIT_REF_CASE_H

#include "backends/ref/ref.h"
#include "graph/base/number.h"
#include "graph/texts.h"
#include "ir/target.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    CASE_MAX_OPERANDS = 16
};

typedef struct {
    KilnArena *arena;
    KilnInstr instr;
    KilnBufferUse uses[CASE_MAX_OPERANDS];
    KilnBuffer buffers[CASE_MAX_OPERANDS];
    void *data[CASE_MAX_OPERANDS];
    KilnTextHeap *texts; /* that runs make */
} RefCase;

/** Dims and values of an operand; SCALAR has no dims. */
#define DIMS(...)                                                                                  \
    (int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[])                       \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define SCALAR 0, NULL
#define VALUES(...)                                                                                \
    (double[])                                                                                     \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
/** The attributes. They start as defaults; set one by CASE_ATTRS(c, softmax)->axis = 0. */
#define CASE_ATTRS(c, id) ((KilnInstrAttrs_##id *)(c)->instr.attrs)
#define CASE_INTS(c, ...)                                                                          \
    kiln_ints_make((c)->arena, (int64_t[]){ __VA_ARGS__ },                                         \
                   sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))

static inline void
case_free(RefCase *c)
{
    for (uint32_t i = 0; i < c->instr.n_operands; i++)
        free(c->data[i]);
    kiln_arena_free(c->arena);
    kiln_text_heap_free(c->texts);
    g_free(c);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RefCase, case_free)

static inline RefCase *
case_new(KilnInstrKind kind)
{
    RefCase *c = g_new0(RefCase, 1);
    c->arena = kiln_arena_new();
    c->texts = kiln_text_heap_new();
    c->instr.kind = kind;
    c->instr.attrs = kiln_instr_attrs_new(kind, c->arena);
    c->instr.operands = c->uses;
    return c;
}

/** Adds an operand. If @values is NULL, every byte is 0xa5. */
static inline void
case_add(RefCase *c, KilnDType dtype, int rank, const int64_t *dims, const double *values)
{
    uint32_t i = c->instr.n_operands++;
    cr_assert_lt(i, CASE_MAX_OPERANDS);
    c->buffers[i].type = kiln_type_make(dtype, rank, dims);
    c->uses[i].buffer = &c->buffers[i];
    bool optional;
    kiln_instr_access(c->instr.kind, i, &c->uses[i].access, &optional);
    int64_t n = kiln_type_elements(&c->buffers[i].type);
    size_t size = (size_t)kiln_type_bytes(&c->buffers[i].type);
    c->data[i] = malloc(size ? size : 1);
    memset(c->data[i], 0xa5, size);
    for (int64_t k = 0; values && k < n; k++)
        kiln_element_store_f64(dtype, c->data[i], k, values[k]);
}

static inline void
case_in(RefCase *c, KilnDType dtype, int rank, const int64_t *dims, const double *values)
{
    case_add(c, dtype, rank, dims, values);
}

/** An operand of strings. */
static inline void
case_texts(RefCase *c, int rank, const int64_t *dims, const char *const *texts)
{
    case_add(c, KILN_DTYPE_string, rank, dims, NULL);
    uint32_t i = c->instr.n_operands - 1;
    const KilnText **elements = c->data[i];
    for (int64_t k = 0; k < kiln_type_elements(&c->buffers[i].type); k++)
        cr_assert(kiln_text_new_copy(c->texts, texts[k], strlen(texts[k]), &elements[k]));
}
#define TEXTS(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static inline void
case_out(RefCase *c, KilnDType dtype, int rank, const int64_t *dims)
{
    case_add(c, dtype, rank, dims, NULL);
    c->uses[c->instr.n_operands - 1].access = KILN_ACCESS_OUT; /* stack states its own access */
}

/** Adds an absent optional operand. */
static inline void
case_absent(RefCase *c)
{
    c->data[c->instr.n_operands++] = NULL;
}

/** The reference kernel for the instruction; NULL if there is none. */
static inline const KilnKernel *
case_kernel(const RefCase *c)
{
    return kiln_target_find(kiln_ref_target(), &c->instr);
}

/** Runs the instruction. Returns the error text of the kernel, or NULL. */
static inline const char *
case_run(RefCase *c)
{
    const KilnKernel *kernel = case_kernel(c);
    cr_assert(kernel, "no kernel for %s", kiln_instr_info(c->instr.kind)->name);
    size_t bytes = kernel->scratch_bytes ? kernel->scratch_bytes(&c->instr, 0, 1) : 0;
    void *scratch = bytes ? malloc(bytes) : NULL;
    void *prepared = kernel->prepare ? malloc(kernel->prepared_bytes(&c->instr) + 1) : NULL;
    if (prepared)
        kernel->prepare(&c->instr, prepared);
    KilnKernelArgs args = { .instr = &c->instr,
                            .data = c->data,
                            .scratch = scratch,
                            .prepared = prepared,
                            .threads = 1,
                            .texts = c->texts };
    const char *error = kernel->run(&args);
    free(scratch);
    free(prepared);
    return error;
}

/** Runs, and expects the first strings of operand 0 to be the @n of @expected. */
static inline void
case_gives_texts(RefCase *c, int64_t n, const char *const *expected)
{
    const char *error = case_run(c);
    const KilnText *const *found = c->data[0];
    cr_assert_null(error, "%s: %s", kiln_instr_info(c->instr.kind)->name, error);
    for (int64_t k = 0; k < n; k++) {
        const KilnText text = kiln_text_of(found[k]), wanted = { expected[k], strlen(expected[k]) };
        cr_expect(kiln_text_equal(found[k], &wanted), "element %d: expected '%s', found '%.*s'",
                  (int)k, expected[k], (int)text.length, text.text);
    }
}

/** Compares operand @i with an absolute @tolerance. NaN is equal to NaN. */
static inline void
case_expect(RefCase *c, uint32_t i, const double *expected, double tolerance)
{
    const KilnType *type = &c->buffers[i].type;
    int64_t n = kiln_type_elements(type);
    for (int64_t k = 0; k < n; k++) {
        double found = kiln_element_as_f64(type->dtype, c->data[i], k);
        bool same = isnan(expected[k]) ? isnan(found) : found == expected[k];
        cr_expect(same || fabs(found - expected[k]) <= tolerance,
                  "%s, operand %u, element %d: expected %.17g, found %.17g",
                  kiln_instr_info(c->instr.kind)->name, i, (int)k, expected[k], found);
    }
}

/** Runs and expects operand 0 to hold @expected. */
static inline void
case_gives(RefCase *c, const double *expected, double tolerance)
{
    const char *error = case_run(c);
    cr_assert_null(error, "%s: %s", kiln_instr_info(c->instr.kind)->name, error);
    case_expect(c, 0, expected, tolerance);
}

#endif
