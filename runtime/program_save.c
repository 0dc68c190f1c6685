/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a program to disk. */
#include "ir/plan.h"
#include "kiln.h"
#include "runtime/bind.h"
#include "runtime/deferred.h"
#include "runtime/model.h"
#include "runtime/program.h"
#include "runtime/program_file.h"
#include "runtime/scope.h"

#include "graph/base/write_file.h"
#include "ir/vendor.h"
#include "runtime/digest/digest.h"

#include <string.h>

enum {
    INLINE_BYTES = 256, /* of constants that stand in the text; bigger ones are sections */
};

typedef struct {
    const KilnProgram *program;
    const KilnSpecialisation *made;
    const KilnIRModule *ir;
    GArray *sections; /* KilnSection: without place and checksum at first */
    GPtrArray *bytes; /* GBytes*, per section */
} Writer;

static void
add_section(Writer *writer, KilnSectionKind kind, uint32_t index, GBytes *bytes)
{
    KilnSection section = { .kind = kind, .index = index, .size = g_bytes_get_size(bytes) };
    g_array_append_val(writer->sections, section);
    g_ptr_array_add(writer->bytes, g_bytes_ref(bytes));
}

/* --- text --- */

/* How often functions that are called before the entry, and regions, read each constant; the entry
 * reads sections. */
static uint32_t *
count_readers(const KilnIRModule *ir)
{
    uint32_t *readers = g_new0(uint32_t, ir->module->constants->len + 1);
    kiln_offload_count_readers(ir->module, readers);
    for (guint f = 0; f + 1 < ir->functions->len; f++) {
        const KilnIRFunction *function = g_ptr_array_index(ir->functions, f);
        for (guint i = 0; i < function->weights->len; i++) {
            const KilnBuffer *weight = g_ptr_array_index(function->weights, i);
            if (weight->constant)
                readers[weight->constant->id]++;
        }
    }
    return readers;
}

/* The text holds what is small or generated; what nothing reads any more was folded away. */
static KilnConstantForm *
choose_forms(const KilnIRModule *ir, const uint32_t *readers)
{
    guint n = ir->module->constants->len;
    const KilnIRFunction *entry = g_ptr_array_index(ir->functions, ir->functions->len - 1);
    KilnConstantForm *forms = g_new(KilnConstantForm, n + 1);
    for (guint i = 0; i < n; i++) {
        const KilnConstant *constant = g_ptr_array_index(ir->module->constants, i);
        bool big = constant->tensor && kiln_tensor_storage(constant->tensor) > INLINE_BYTES;
        forms[i] = !readers[i] ? KILN_CONSTANT_LEFT_OUT
                   : big       ? KILN_CONSTANT_EXTERN
                               : KILN_CONSTANT_WHOLE;
    }
    for (guint i = 0; i < entry->weights->len; i++) {
        const KilnBuffer *weight = g_ptr_array_index(entry->weights, i);
        if (weight->constant && forms[weight->constant->id] == KILN_CONSTANT_LEFT_OUT)
            forms[weight->constant->id] = KILN_CONSTANT_EXTERN;
    }
    return forms;
}

static gboolean
add_text(Writer *writer, const KilnConstantForm *forms, GError **error)
{
    const KilnPrintOptions options = { .forms = forms };
    GString *text = g_string_new(NULL);
    gboolean printed = kiln_ir_module_print(writer->ir, &options, text, error);
    g_autoptr(GBytes) bytes = g_string_free_to_bytes(text);
    if (printed)
        add_section(writer, KILN_SECTION_TEXT, 0, bytes);
    return printed;
}

/* --- bytes --- */

/* Once of each region that is called. */
static void
add_operands(Writer *writer)
{
    const KilnSpecialisation *made = writer->made;
    g_autoptr(GHashTable) regions = g_hash_table_new(NULL, NULL);
    for (uint32_t c = 0; c < made->n_calls; c++) {
        const KilnInstr *instr = made->calls[c].instr;
        if (instr->kind != KILN_INSTR_call ||
            !g_hash_table_add(regions, (gpointer)instr->declaration))
            continue;
        g_autoptr(GBytes) operands = kiln_stored_operands(instr, made->calls[c].kernel);
        add_section(writer, KILN_SECTION_OPERANDS, c, operands);
    }
}

static void
add_calls(Writer *writer)
{
    const KilnSpecialisation *made = writer->made;
    g_autofree KilnStoredCall *calls = g_new0(KilnStoredCall, made->n_calls + 1);
    for (uint32_t c = 0; c < made->n_calls; c++) {
        const KilnBoundCall *call = &made->calls[c];
        calls[c] = kiln_stored_call(call->instr, call->kernel, writer->program->threads);
        calls[c].scratch = call->scratch_offset;
        calls[c].fitted = call->fitted;
    }
    g_autoptr(GBytes) bytes = g_bytes_new(calls, made->n_calls * sizeof *calls);
    add_section(writer, KILN_SECTION_CALLS, 0, bytes);
    add_operands(writer);
    for (uint32_t c = 0; c < made->n_calls; c++) {
        if (made->calls[c].packed)
            add_section(writer, KILN_SECTION_PACKED, c, made->calls[c].packed);
    }
}

static void
add_array(Writer *writer, KilnSectionKind kind, GBytes *const *array, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (array[i])
            add_section(writer, kind, i, array[i]);
    }
}

/* What others than the entry read. Extern constants are numbered as the text has them. */
static void
add_constants(Writer *writer, const KilnConstantForm *forms, const uint32_t *readers)
{
    const GPtrArray *constants = writer->ir->module->constants;
    uint32_t n_extern = 0;
    for (guint i = 0; i < constants->len; i++) {
        const KilnConstant *constant = g_ptr_array_index(constants, i);
        if (forms[i] != KILN_CONSTANT_EXTERN)
            continue;
        uint32_t index = n_extern++;
        if (readers[i] && constant->tensor && constant->tensor->bytes)
            add_section(writer, KILN_SECTION_CONSTANT, index, constant->tensor->bytes);
    }
}

/* What the model calls its outputs, where buffers could not be called the same. */
static void
add_output_names(Writer *writer)
{
    const KilnInfoList *outputs = &writer->made->outputs;
    for (unsigned i = 0; i < outputs->n; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(writer->made->function->outputs, i);
        const char *name = outputs->info[i].name;
        if (strcmp(name, buffer->name) == 0)
            continue;
        g_autoptr(GBytes) bytes = g_bytes_new(name, strlen(name) + 1);
        add_section(writer, KILN_SECTION_OUTPUT, i, bytes);
    }
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
place_sections(Writer *writer)
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
make_header(const Writer *writer, uint64_t end)
{
    const KilnProgram *program = writer->program;
    const KilnMemoryPlan *plan = writer->made->plan;
    KilnProgramHeader header = { .magic = KILN_PROGRAM_MAGIC,
                                 .format = KILN_PROGRAM_FORMAT,
                                 .n_sections = writer->sections->len,
                                 .file_size = kiln_section_page(end),
                                 .threads = (uint32_t)program->threads,
                                 .proven_optimal = plan->proven_optimal };
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
write_file(const Writer *writer, const char *path, const KilnProgramHeader *header, GError **error)
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
kiln_program_save(KilnProgram *program, const char *path, GError **error)
{
    G_GNUC_UNUSED g_auto(KilnRunScope) scope = kiln_run_scope_enter(NULL, NULL);
    if (program->open)
        return kiln_throw(
            error, KILN_ERROR_USAGE,
            "%s: expected a program with fixed shapes, found shapes that depend on the inputs",
            program->model->name);
    const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
    g_autoptr(GArray) sections = g_array_new(FALSE, TRUE, sizeof(KilnSection));
    g_autoptr(GPtrArray) bytes = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    Writer writer = { program, made, made->ir ? made->ir : program->model->ir, sections, bytes };
    g_autofree uint32_t *readers = count_readers(writer.ir);
    g_autofree KilnConstantForm *forms = choose_forms(writer.ir, readers);
    if (!add_text(&writer, forms, error)) {
        kiln_prefix_error(error, "%s: ", program->model->name);
        return FALSE;
    }
    add_calls(&writer);
    add_array(&writer, KILN_SECTION_WEIGHT, made->weights, made->n_weights);
    add_array(&writer, KILN_SECTION_STATE, made->states, made->n_states);
    add_constants(&writer, forms, readers);
    add_array(&writer, KILN_SECTION_VALUE, program->values, program->inputs.n);
    add_output_names(&writer);
    KilnProgramHeader header = make_header(&writer, place_sections(&writer));
    return write_file(&writer, path, &header, error);
}
