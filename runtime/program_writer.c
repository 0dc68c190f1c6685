/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/program_writer.h"

#include "graph/base/write_file.h"
#include "ir/kernel.h"
#include "kiln.h"
#include "runtime/digest/digest.h"

void
kiln_program_writer_init(KilnProgramWriter *writer, const KilnProgram *program,
                         const KilnIRModule *ir)
{
    *writer = (KilnProgramWriter){ .program = program,
                                   .ir = ir,
                                   .sections = g_array_new(FALSE, TRUE, sizeof(KilnSection)),
                                   .bytes = g_ptr_array_new_with_free_func(
                                       (GDestroyNotify)g_bytes_unref) };
}

void
kiln_program_writer_clear(KilnProgramWriter *writer)
{
    g_clear_pointer(&writer->sections, g_array_unref);
    g_clear_pointer(&writer->bytes, g_ptr_array_unref);
}

void
kiln_program_writer_add(KilnProgramWriter *writer, KilnSectionKind kind, uint32_t index,
                        GBytes *bytes)
{
    KilnSection section = { .kind = kind, .index = index, .size = g_bytes_get_size(bytes) };
    g_array_append_val(writer->sections, section);
    g_ptr_array_add(writer->bytes, g_bytes_ref(bytes));
}

/* --- places --- */

static guint
hash_place(gconstpointer bytes)
{
    return g_direct_hash(g_bytes_get_data((GBytes *)bytes, NULL));
}

static gboolean
same_place(gconstpointer a, gconstpointer b)
{
    size_t n, m;
    const void *x = g_bytes_get_data((GBytes *)a, &n), *y = g_bytes_get_data((GBytes *)b, &m);
    return x == y && n == m;
}

/* Bytes that several sections have are written once. Returns where the last one ends. */
static uint64_t
place_sections(KilnProgramWriter *writer)
{
    g_autoptr(GHashTable) places = g_hash_table_new(hash_place, same_place);
    uint64_t end = sizeof(KilnProgramHeader) + writer->sections->len * sizeof(KilnSection);
    for (guint i = 0; i < writer->sections->len; i++) {
        KilnSection *section = &g_array_index(writer->sections, KilnSection, i);
        GBytes *bytes = g_ptr_array_index(writer->bytes, i);
        gpointer earlier = g_hash_table_lookup(places, bytes);
        section->same = earlier ? GPOINTER_TO_UINT(earlier) - 1 : i;
        if (earlier) {
            const KilnSection *other = &g_array_index(writer->sections, KilnSection, section->same);
            section->offset = other->offset;
            section->digest = other->digest;
            continue;
        }
        g_hash_table_insert(places, bytes, GUINT_TO_POINTER(i + 1));
        section->offset = kiln_section_offset(end, section->size);
        section->digest = kiln_digest(g_bytes_get_data(bytes, NULL), section->size);
        end = section->offset + section->size;
    }
    return end;
}

/* --- the file --- */

static KilnProgramHeader
make_header(const KilnProgramWriter *writer, uint64_t end)
{
    const KilnProgram *program = writer->program;
    KilnProgramHeader header = { .magic = KILN_PROGRAM_MAGIC,
                                 .format = KILN_PROGRAM_FORMAT,
                                 .n_sections = writer->sections->len,
                                 .file_size = kiln_section_page(end),
                                 .threads = (uint32_t)program->threads,
                                 .proven_optimal = writer->proven_optimal };
    g_strlcpy(header.version, kiln_version(), sizeof header.version);
    g_strlcpy(header.target, program->target->name, sizeof header.target);
    g_strlcpy(header.isa, kiln_isa_name(program->target->isa), sizeof header.isa);
    if (writer->ir->module->declarations->len) {
        g_autofree char *vendor = kiln_vendor_label(program->target->vendor);
        g_strlcpy(header.vendor, vendor, sizeof header.vendor);
    }
    header.digest =
        kiln_program_header_digest(&header, (const KilnSection *)writer->sections->data);
    return header;
}

static void
add_piece(GArray *pieces, uint64_t *end, uint64_t offset, const void *data, uint64_t size)
{
    static const char padding[KILN_SECTION_PAGE];
    KilnFilePiece gap = { padding, offset - *end }, piece = { data, size };
    if (gap.size)
        g_array_append_val(pieces, gap);
    if (size)
        g_array_append_val(pieces, piece);
    *end = offset + size;
}

static gboolean
write_file(const KilnProgramWriter *writer, const char *path, const KilnProgramHeader *header,
           GError **error)
{
    g_autoptr(GArray) pieces = g_array_new(FALSE, FALSE, sizeof(KilnFilePiece));
    uint64_t end = 0;
    add_piece(pieces, &end, 0, header, sizeof *header);
    add_piece(pieces, &end, end, writer->sections->data,
              writer->sections->len * sizeof(KilnSection));
    for (guint i = 0; i < writer->sections->len; i++) {
        const KilnSection *section = &g_array_index(writer->sections, KilnSection, i);
        const void *data = g_bytes_get_data(g_ptr_array_index(writer->bytes, i), NULL);
        if (section->same == i)
            add_piece(pieces, &end, section->offset, data, section->size);
    }
    add_piece(pieces, &end, header->file_size, NULL, 0);
    return kiln_file_write_pieces(path, (const KilnFilePiece *)pieces->data, pieces->len, error);
}

gboolean
kiln_program_writer_write(KilnProgramWriter *writer, const char *path, GError **error)
{
    KilnProgramHeader header = make_header(writer, place_sections(writer));
    return write_file(writer, path, &header, error);
}
