/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a program file: nothing that it says is used before it is checked. */
#include "runtime/program_file.h"

#include "kiln.h"
#include "runtime/targets.h"

#include "graph/base/alloc.h"
#include "ir/target.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static const char magic[] = KILN_PROGRAM_MAGIC;

static const char *const kind_names[] = {
#define X(id, name) name,
    KILN_SECTION_MAP(X)
#undef X
};

/* --- layout --- */

uint64_t
kiln_section_page(uint64_t end)
{
    return (end + KILN_SECTION_PAGE - 1) & ~(uint64_t)(KILN_SECTION_PAGE - 1);
}

uint64_t
kiln_section_offset(uint64_t end, uint64_t size)
{
    return size >= KILN_SECTION_PAGE ? kiln_section_page(end) : kiln_align_up(end);
}

KilnDigest
kiln_program_header_digest(const KilnProgramHeader *header, const KilnSection *sections)
{
    const char *rest = (const char *)&header->file_size;
    size_t size = sizeof *header - offsetof(KilnProgramHeader, file_size);
    KilnDigest digest = kiln_digest(rest, size);
    kiln_digest_add(&digest, sections, header->n_sections * sizeof *sections);
    return digest;
}

char *
kiln_vendor_label(const KilnVendor *vendor)
{
    return vendor ? g_strdup_printf("%s %s", vendor->name, vendor->version) : g_strdup("");
}

/* --- checks --- */

static gboolean
throw_damaged(const KilnProgramFile *file, const char *what, GError **error)
{
    return kiln_throw(error, KILN_ERROR_FORMAT, "%s: the file is damaged: %s", file->name, what);
}

static gboolean
check_size(const KilnProgramFile *file, uint64_t expected, GError **error)
{
    size_t found = g_bytes_get_size(file->bytes);
    return found == expected ||
           kiln_throw(error, KILN_ERROR_FORMAT,
                      "%s: expected a program of %" G_GUINT64_FORMAT " bytes, found %zu: the file "
                      "is cut short or damaged",
                      file->name, expected, found);
}

static gboolean
check_header(KilnProgramFile *file, GError **error)
{
    size_t size;
    const char *data = g_bytes_get_data(file->bytes, &size);
    const KilnProgramHeader *header = (const KilnProgramHeader *)data;
    if (!kiln_program_file_is(file->bytes))
        return kiln_throw(error, KILN_ERROR_FORMAT,
                          "%s: expected a compiled program, found another kind of file",
                          file->name);
    if (size < sizeof *header)
        return check_size(file, sizeof *header, error);
    if (header->format != KILN_PROGRAM_FORMAT)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                          "%s: expected a program file of format %d, found format %u: compile the "
                          "model again",
                          file->name, KILN_PROGRAM_FORMAT, header->format);
    file->header = header;
    file->sections = (const KilnSection *)(data + sizeof *header);
    if ((size - sizeof *header) / sizeof(KilnSection) < header->n_sections)
        return check_size(file, header->file_size, error) &&
               throw_damaged(file, "it is too short for its sections", error);
    KilnDigest digest = kiln_program_header_digest(header, file->sections);
    if (!kiln_digest_equal(&digest, &header->digest))
        return throw_damaged(file, "the checksum of its header is wrong", error);
    return check_size(file, header->file_size, error);
}

static bool
is_zero(const char *from, const char *to)
{
    return from == to || (!*from && memcmp(from, from + 1, (size_t)(to - from) - 1) == 0);
}

/* Each in its place, one behind the other, in order. */
static bool
is_in_place(const KilnProgramFile *file, uint32_t i, uint64_t *end)
{
    const KilnSection *section = &file->sections[i];
    const KilnSection *before = i ? section - 1 : NULL;
    if (section->kind >= KILN_N_SECTION_KINDS || section->same > i ||
        (before && (section->kind < before->kind ||
                    (section->kind == before->kind && section->index <= before->index))))
        return false;
    if (section->same < i) {
        const KilnSection *other = &file->sections[section->same];
        return other->same == section->same && other->offset == section->offset &&
               other->size == section->size;
    }
    if (section->offset != kiln_section_offset(*end, section->size) ||
        section->offset > file->header->file_size ||
        section->size > file->header->file_size - section->offset)
        return false;
    const char *data = g_bytes_get_data(file->bytes, NULL);
    bool clean = is_zero(data + *end, data + section->offset);
    *end = section->offset + section->size;
    return clean;
}

/* Most of the time that loading takes goes here: all bytes are read from memory, and their pages
 * mapped. One thread reads them at about 13 GB/s, and two are no faster where the cores are busy.
 */
static gboolean
check_sections(const KilnProgramFile *file, GError **error)
{
    const char *data = g_bytes_get_data(file->bytes, NULL);
    uint64_t table = file->header->n_sections * sizeof(KilnSection);
    uint64_t end = sizeof(KilnProgramHeader) + table;
    for (uint32_t i = 0; i < file->header->n_sections; i++) {
        const KilnSection *section = &file->sections[i];
        if (!is_in_place(file, i, &end))
            return throw_damaged(file, "its sections are in wrong places", error);
        if (section->same < i)
            continue;
        KilnDigest digest = kiln_digest(data + section->offset, section->size);
        if (!kiln_digest_equal(&digest, &section->digest))
            return kiln_throw(error, KILN_ERROR_FORMAT,
                              "%s: the file is damaged: the checksum of %s %u is wrong", file->name,
                              kind_names[section->kind], section->index);
    }
    if (kiln_section_page(end) != file->header->file_size ||
        !is_zero(data + end, data + file->header->file_size))
        return throw_damaged(file, "it has bytes after its sections", error);
    return TRUE;
}

static gboolean
check_maker(const KilnProgramFile *file, GError **error)
{
    const KilnProgramHeader *header = file->header;
    const char *const texts[] = { header->version, header->target, header->isa, header->vendor };
    const size_t rooms[] = { sizeof header->version, sizeof header->target, sizeof header->isa,
                             sizeof header->vendor };
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        if (!memchr(texts[i], 0, rooms[i]))
            return throw_damaged(file, "its header is malformed", error);
    }
    if (strcmp(header->version, kiln_version()) != 0)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                          "%s: expected a program of kiln %s, found one of kiln %s: compile the "
                          "model again",
                          file->name, kiln_version(), header->version);
    const KilnTarget *target = kiln_target_choose(header->target, *header->vendor, error);
    if (!target) {
        kiln_prefix_error(error, "%s: ", file->name);
        return FALSE;
    }
    if (strcmp(header->isa, kiln_isa_name(target->isa)) != 0)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                          "%s: expected a program for a processor with %s kernels, found one for "
                          "%s: compile the model on this machine",
                          file->name, kiln_isa_name(target->isa), header->isa);
    g_autofree char *vendor = kiln_vendor_label(target->vendor);
    if (*header->vendor && strcmp(header->vendor, vendor) != 0)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                          "%s: expected a program that calls %s, found one that calls %s: compile "
                          "the model again",
                          file->name, *vendor ? vendor : "no vendor library", header->vendor);
    return header->threads > 0 && header->threads <= 1024
               ? TRUE
               : throw_damaged(file, "its number of threads is impossible", error);
}

/* --- the whole --- */

bool
kiln_program_file_is(GBytes *bytes)
{
    size_t size;
    const char *data = g_bytes_get_data(bytes, &size);
    return size >= sizeof magic && memcmp(data, magic, sizeof magic) == 0;
}

/* What is not in memory is not there afterwards either: the page that is read now would lie in the
 * way of the big ones that loading asks for. */
static bool
read_start(int file, char start[sizeof magic])
{
    struct iovec whole = { start, sizeof magic };
    posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM); /* nothing ahead */
    ssize_t n = preadv2(file, &whole, 1, 0, RWF_NOWAIT);
    if (n < 0) {
        bool absent = errno == EAGAIN;
        n = pread(file, start, sizeof magic, 0);
        if (absent)
            posix_fadvise(file, 0, KILN_SECTION_PAGE, POSIX_FADV_DONTNEED);
    }
    return n == (ssize_t)sizeof magic;
}

bool
kiln_program_is_at(const char *path)
{
    char start[sizeof magic];
    int file = g_file_test(path, G_FILE_TEST_IS_REGULAR) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    bool whole = file >= 0 && read_start(file, start);
    if (file >= 0)
        close(file);
    return whole && memcmp(start, magic, sizeof magic) == 0;
}

/* Sections are read where they lie. */
static GBytes *
aligned_copy(GBytes *bytes, GError **error)
{
    size_t size;
    const void *data = g_bytes_get_data(bytes, &size);
    if ((uintptr_t)data % KILN_ALIGNMENT == 0)
        return g_bytes_ref(bytes);
    void *to;
    GBytes *copy = kiln_bytes_new(1, size, &to, error);
    if (copy)
        memcpy(to, data, size);
    return copy;
}

/* All of it is read, for the checksums if for nothing else. A hint: where the file is in memory in
 * small pages already, they stay. */
static void
read_in_big_pages(GBytes *bytes)
{
    size_t size;
    const void *data = g_bytes_get_data(bytes, &size);
#ifdef MADV_HUGEPAGE
    madvise((void *)data, size, MADV_HUGEPAGE);
#endif
}

KilnProgramFile *
kiln_program_file_open(GBytes *bytes, const char *name, bool mapped, GError **error)
{
    g_autoptr(KilnProgramFile) file = g_new0(KilnProgramFile, 1);
    file->name = g_strdup(name);
    file->bytes = aligned_copy(bytes, error);
    file->mapped = mapped && file->bytes == bytes;
    if (file->mapped) {
        file->path = g_canonicalize_filename(name, NULL);
        read_in_big_pages(file->bytes);
    }
    if (!file->bytes || !check_header(file, error) || !check_maker(file, error) ||
        !check_sections(file, error))
        return NULL;
    return g_steal_pointer(&file);
}

void
kiln_program_file_free(KilnProgramFile *file)
{
    if (!file)
        return;
    g_clear_pointer(&file->bytes, g_bytes_unref);
    g_free(file->name);
    g_free(file->path);
    g_free(file);
}

const KilnSection *
kiln_program_file_find(const KilnProgramFile *file, KilnSectionKind kind, uint32_t index)
{
    uint32_t low = 0, high = file->header->n_sections;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const KilnSection *section = &file->sections[middle];
        if (section->kind == kind && section->index == index)
            return section;
        bool before = section->kind < kind || (section->kind == kind && section->index < index);
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

GBytes *
kiln_program_file_get(const KilnProgramFile *file, KilnSectionKind kind, uint32_t index)
{
    const KilnSection *section = kiln_program_file_find(file, kind, index);
    return section ? g_bytes_new_from_bytes(file->bytes, section->offset, section->size) : NULL;
}

const KilnStoredCall *
kiln_program_file_calls(const KilnProgramFile *file, uint64_t *out_n)
{
    const KilnSection *section = kiln_program_file_find(file, KILN_SECTION_CALLS, 0);
    if (out_n)
        *out_n = section ? section->size / sizeof(KilnStoredCall) : 0;
    const char *data = g_bytes_get_data(file->bytes, NULL);
    return (const KilnStoredCall *)(section ? data + section->offset : NULL);
}

gboolean
kiln_program_file_check(const KilnProgramFile *file, KilnSectionKind kind, uint32_t n,
                        GError **error)
{
    for (uint32_t i = 0; i < file->header->n_sections; i++) {
        const KilnSection *section = &file->sections[i];
        if (section->kind == kind && section->index >= n)
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "%s: expected a number below %u, found section %u", kind_names[kind],
                              n, section->index);
    }
    return TRUE;
}
