/* SPDX-License-Identifier: Apache-2.0 */
/* Program files. Checksums would stop nearly every mutation: the mutator changes what lies in one
 * section, or one number of the header or of the table, and lays the file out anew; the run puts
 * the checksums right. */
#include "kiln.h"
#include "runtime/program.h"
#include "tests/fuzz/fuzz.h"

#include "graph/base/alloc.h"
#include "runtime/digest/digest.h"
#include "runtime/program_file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* The table of the file in @data, where it has room for one; else NULL. */
static KilnSection *
table_of(uint8_t *data, size_t size)
{
    const KilnProgramHeader *header = (const KilnProgramHeader *)data;
    bool whole = size >= sizeof *header &&
                 (size - sizeof *header) / sizeof(KilnSection) >= header->n_sections;
    return whole ? (KilnSection *)(data + sizeof *header) : NULL;
}

static void
put_checksums_right(uint8_t *data, size_t size)
{
    KilnProgramHeader *header = (KilnProgramHeader *)data;
    KilnSection *sections = table_of(data, size);
    for (uint32_t i = 0; sections && i < header->n_sections; i++) {
        KilnSection *section = &sections[i];
        if (section->offset <= size && section->size <= size - section->offset)
            section->digest = kiln_digest(data + section->offset, section->size);
    }
    if (sections)
        header->digest = kiln_program_header_digest(header, sections);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    void *copy;
    g_autoptr(GBytes) bytes = kiln_bytes_new(1, size, &copy, NULL);
    if (size)
        memcpy(copy, data, size);
    put_checksums_right(copy, size);
    g_autoptr(KilnProgram) program = kiln_program_load_bytes(bytes, NULL, NULL, &error);
    fuzz_expect(program, error);
    if (program)
        fuzz_run(program);
    return 0;
}

/* Appends the sections of the file in @data to @out, each where it belongs, with the contents of
 * number @changed replaced. */
static void
lay_out(GByteArray *out, const uint8_t *data, const KilnSection *sections, uint32_t n,
        uint32_t changed, const uint8_t *content, size_t length)
{
    for (uint32_t i = 0; i < n; i++) {
        KilnSection section = sections[i];
        const uint8_t *from = i == changed ? content : data + section.offset;
        section.size = i == changed ? length : section.size;
        section.offset = kiln_section_offset(out->len, section.size);
        if (section.same < i) {
            const KilnSection *other =
                (const KilnSection *)(out->data + sizeof(KilnProgramHeader)) + section.same;
            section.offset = other->offset;
            section.size = other->size;
        } else {
            guint end = out->len;
            g_byte_array_set_size(out, (guint)section.offset);
            memset(out->data + end, 0, section.offset - end);
            if (section.size)
                g_byte_array_append(out, from, section.size);
        }
        memcpy(out->data + sizeof(KilnProgramHeader) + i * sizeof section, &section,
               sizeof section);
    }
    guint end = out->len;
    g_byte_array_set_size(out, (guint)kiln_section_page(end));
    memset(out->data + end, 0, out->len - end);
    ((KilnProgramHeader *)out->data)->file_size = out->len;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    g_autofree uint8_t *file = g_memdup2(data, size);
    const KilnProgramHeader *header = (const KilnProgramHeader *)file;
    const KilnSection *sections = file ? table_of(file, size) : NULL;
    bool whole = sections && header->n_sections;
    for (uint32_t i = 0; whole && i < header->n_sections; i++)
        whole = sections[i].offset <= size && sections[i].size <= size - sections[i].offset &&
                sections[i].same <= i;
    if (!whole || seed % 64 == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    size_t head = sizeof *header + header->n_sections * sizeof *sections;
    if (seed % 8 == 0) {
        LLVMFuzzerMutate(data, head, head);
        return size;
    }
    /* Small sections have the text and the numbers, which decide more than weights. */
    uint32_t changed =
        seed / 64 % 2 ? seed / 128 % header->n_sections : seed / 128 % MIN(header->n_sections, 3);
    size_t length = sections[changed].size, room = length + 256;
    g_autofree uint8_t *content = g_malloc(room);
    memcpy(content, file + sections[changed].offset, length);
    length = LLVMFuzzerMutate(content, length, room);
    g_autoptr(GByteArray) out = g_byte_array_new();
    g_byte_array_append(out, file, head);
    lay_out(out, file, sections, header->n_sections, changed, content, length);
    if (out->len > max_size)
        return LLVMFuzzerMutate(data, size, max_size);
    memcpy(data, out->data, out->len);
    return out->len;
}
