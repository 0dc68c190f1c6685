/* SPDX-License-Identifier: Apache-2.0 */
/* Program files with damage, and with right checksums of what is wrong. */
#ifndef KILN_TESTS_UNIT_PROGRAM_DAMAGE_H
#define KILN_TESTS_UNIT_PROGRAM_DAMAGE_H

#include "kiln.h"
#include "runtime/digest/digest.h"
#include "runtime/program_file.h"
#include "tests/unit/runtime_case.h"

#include <criterion/criterion.h>
#include <string.h>

/* A copy of a file, aligned, to be damaged. */
typedef struct {
    char *data;
    size_t size;
    KilnProgramHeader *header;
    KilnSection *sections;
} Damaged;

static inline Damaged
copy_of(GBytes *file)
{
    Damaged copy;
    const void *data = g_bytes_get_data(file, &copy.size);
    copy.data = memcpy(g_aligned_alloc(1, copy.size, 64), data, copy.size);
    copy.header = (KilnProgramHeader *)copy.data;
    copy.sections = (KilnSection *)(copy.data + sizeof *copy.header);
    return copy;
}

/* Makes the checksums of a damaged file right again: what is left to find is nonsense. */
static inline void
sign(Damaged *copy)
{
    for (uint32_t i = 0; i < copy->header->n_sections; i++) {
        KilnSection *section = &copy->sections[i];
        section->digest = kiln_digest(copy->data + section->offset, section->size);
    }
    copy->header->digest = kiln_program_header_digest(copy->header, copy->sections);
}

/* The program of @copy with right checksums. */
static inline KilnProgram *
load_signed(Damaged *copy, GError **error)
{
    sign(copy);
    g_autoptr(GBytes) bytes = g_bytes_new_static(copy->data, copy->size);
    return kiln_program_load_bytes(bytes, "file", NULL, error);
}

static inline void
refuses(const Damaged *copy, size_t size, KilnError code, const char *text)
{
    GError *error = NULL;
    /* A block of its own, so that reading past its end is found. */
    char *block = g_aligned_alloc(1, size + 1, 64);
    memcpy(block, copy->data, size);
    g_autoptr(GBytes) bytes = g_bytes_new_with_free_func(block, size, g_aligned_free, block);
    g_autoptr(KilnProgram) program = kiln_program_load_bytes(bytes, "file", NULL, &error);
    cr_assert_null(program, "expected the error '%s'", text);
    expect_error(&error, code, text);
}

#endif
