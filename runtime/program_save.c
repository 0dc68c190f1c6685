/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a program to disk. */
#include "graph/module.h"
#include "ir/ir.h"
#include "ir/plan.h"
#include "ir/vendor.h"
#include "kiln.h"
#include "runtime/bind.h"
#include "runtime/body_forms.h"
#include "runtime/deferred.h"
#include "runtime/fold_calls.h"
#include "runtime/model.h"
#include "runtime/open/probe.h"
#include "runtime/open/template.h"
#include "runtime/program.h"
#include "runtime/program_file.h"
#include "runtime/program_writer.h"
#include "runtime/scope.h"

#include <string.h>

enum {
    INLINE_BYTES = 256, /* of constants that stand in the text; bigger ones are sections */
};

/* --- text --- */

/* True where weight @i is packed for all calls of @body that read it, and the file has it so. */
static bool
is_packed(const KilnSpecialisation *body, guint i)
{
    return body && !body->n_states && !body->weights[i];
}

/* How often the first @n functions, and regions, read each constant plain. The entry, which is the
 * last, reads sections where its shapes are fixed. @bound: the functions that are bound, or NULL.
 */
static uint32_t *
count_readers(const KilnIRModule *ir, guint n, GHashTable *bound)
{
    uint32_t *readers = g_new0(uint32_t, ir->module->constants->len + 1);
    kiln_offload_count_readers(ir->module, readers);
    for (guint f = 0; f < n; f++) {
        const KilnIRFunction *function = g_ptr_array_index(ir->functions, f);
        const KilnSpecialisation *body = bound ? g_hash_table_lookup(bound, function) : NULL;
        for (guint i = 0; i < function->weights->len; i++) {
            const KilnBuffer *weight = g_ptr_array_index(function->weights, i);
            if (weight->constant && !is_packed(body, i))
                readers[weight->constant->id]++;
        }
    }
    return readers;
}

/* Weights stand in the text without their values, which are in sections. */
static void
keep_weights(const KilnIRFunction *function, KilnConstantForm *forms)
{
    for (guint i = 0; i < function->weights->len; i++) {
        const KilnBuffer *weight = g_ptr_array_index(function->weights, i);
        if (weight->constant && forms[weight->constant->id] == KILN_CONSTANT_LEFT_OUT)
            forms[weight->constant->id] = weight->type.dtype == KILN_DTYPE_string
                                              ? KILN_CONSTANT_WHOLE
                                              : KILN_CONSTANT_EXTERN;
    }
}

/* The text holds what is small or generated; what nothing reads any more was folded away. */
static KilnConstantForm *
choose_forms(const KilnIRModule *ir, const uint32_t *readers)
{
    guint n = ir->module->constants->len;
    KilnConstantForm *forms = g_new(KilnConstantForm, n + 1);
    for (guint i = 0; i < n; i++) {
        const KilnConstant *constant = g_ptr_array_index(ir->module->constants, i);
        bool texts = constant->type.dtype == KILN_DTYPE_string; /* addresses, which no file holds */
        bool big = constant->tensor && kiln_tensor_storage(constant->tensor) > INLINE_BYTES;
        forms[i] = !readers[i]     ? KILN_CONSTANT_LEFT_OUT
                   : big && !texts ? KILN_CONSTANT_EXTERN
                                   : KILN_CONSTANT_WHOLE;
    }
    for (guint f = 0; f < ir->functions->len; f++)
        keep_weights(g_ptr_array_index(ir->functions, f), forms);
    return forms;
}

static gboolean
add_text(KilnProgramWriter *writer, const KilnConstantForm *forms, GError **error)
{
    const KilnPrintOptions options = { .forms = forms };
    GString *text = g_string_new(NULL);
    gboolean printed = kiln_ir_module_print(writer->ir, &options, text, error);
    g_autoptr(GBytes) bytes = g_string_free_to_bytes(text);
    if (printed)
        kiln_program_writer_add(writer, KILN_SECTION_TEXT, 0, bytes);
    return printed;
}

/* --- bytes --- */

/* Once of each region that is called. */
static void
add_operands(KilnProgramWriter *writer, const KilnSpecialisation *made)
{
    g_autoptr(GHashTable) regions = g_hash_table_new(NULL, NULL);
    for (uint32_t c = 0; c < made->n_calls; c++) {
        const KilnInstr *instr = made->calls[c].instr;
        if (instr->kind != KILN_INSTR_call ||
            !g_hash_table_add(regions, (gpointer)instr->declaration))
            continue;
        g_autoptr(GBytes) operands = kiln_stored_operands(instr, made->calls[c].kernel);
        kiln_program_writer_add(writer, KILN_SECTION_OPERANDS, c, operands);
    }
}

static void
add_calls(KilnProgramWriter *writer, const KilnSpecialisation *made)
{
    g_autofree KilnStoredCall *calls = g_new0(KilnStoredCall, made->n_calls + 1);
    for (uint32_t c = 0; c < made->n_calls; c++) {
        const KilnBoundCall *call = &made->calls[c];
        calls[c] = kiln_stored_call(call->instr, call->kernel, writer->program->threads);
        calls[c].scratch = call->scratch_offset;
        calls[c].fitted = call->fitted;
    }
    g_autoptr(GBytes) bytes = g_bytes_new(calls, made->n_calls * sizeof *calls);
    kiln_program_writer_add(writer, KILN_SECTION_CALLS, 0, bytes);
    add_operands(writer, made);
}

/* Of the entry, and behind it of branches and loops. */
static void
add_packed(KilnProgramWriter *writer, const KilnSpecialisation *made)
{
    g_autoptr(GPtrArray) packed = g_ptr_array_new();
    g_autoptr(GBytes) forms = kiln_body_forms(writer->ir, made, packed);
    if (forms)
        kiln_program_writer_add(writer, KILN_SECTION_FORMS, 0, forms);
    for (uint32_t c = 0; c < made->n_calls; c++) {
        if (made->calls[c].packed)
            kiln_program_writer_add(writer, KILN_SECTION_PACKED, c, made->calls[c].packed);
    }
    for (guint i = 0; i < packed->len; i++)
        kiln_program_writer_add(writer, KILN_SECTION_PACKED, made->n_calls + i,
                                g_ptr_array_index(packed, i));
}

static void
add_array(KilnProgramWriter *writer, KilnSectionKind kind, GBytes *const *array, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (array[i])
            kiln_program_writer_add(writer, kind, i, array[i]);
    }
}

/* Nothing reads these values any more, only their size: zeros stand for the addresses of strings.
 */
static void
add_values(KilnProgramWriter *writer)
{
    const KilnProgram *program = writer->program;
    for (unsigned i = 0; i < program->inputs.n; i++) {
        GBytes *value = program->values[i];
        gsize size = value ? g_bytes_get_size(value) : 0;
        g_autoptr(GBytes) zeros = NULL;
        if (!value)
            continue;
        if (program->inputs.info[i].dtype == KILN_DTYPE_string)
            value = zeros = g_bytes_new_take(g_malloc0(size), size);
        kiln_program_writer_add(writer, KILN_SECTION_VALUE, i, value);
    }
}

/* What others than the entry read. Extern constants are numbered as the text has them. */
static void
add_constants(KilnProgramWriter *writer, const KilnConstantForm *forms, const uint32_t *readers)
{
    const GPtrArray *constants = writer->ir->module->constants;
    uint32_t n_extern = 0;
    for (guint i = 0; i < constants->len; i++) {
        const KilnConstant *constant = g_ptr_array_index(constants, i);
        if (forms[i] != KILN_CONSTANT_EXTERN)
            continue;
        uint32_t index = n_extern++;
        if (readers[i] && constant->tensor && constant->tensor->bytes)
            kiln_program_writer_add(writer, KILN_SECTION_CONSTANT, index, constant->tensor->bytes);
    }
}

/* What the model calls its outputs, where buffers could not be called the same. */
static void
add_output_names(KilnProgramWriter *writer, const KilnIRFunction *function,
                 const KilnInfoList *outputs)
{
    for (unsigned i = 0; i < outputs->n; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(function->outputs, i);
        const char *name = outputs->info[i].name;
        if (strcmp(name, buffer->name) == 0)
            continue;
        g_autoptr(GBytes) bytes = g_bytes_new(name, strlen(name) + 1);
        kiln_program_writer_add(writer, KILN_SECTION_OUTPUT, i, bytes);
    }
}

/* --- open programs --- */

/* Another form is packed where it is wanted, of the plain weights. */
static void
add_forms(KilnProgramWriter *writer, const KilnPackedForm *forms, uint32_t n_calls)
{
    g_autoptr(GArray) stored = g_array_new(FALSE, TRUE, sizeof(KilnStoredForm));
    uint32_t n = n_calls * KILN_MAX_FORMS;
    for (uint32_t i = 0; i < n; i++) {
        const KilnPackedForm *form = &forms[i];
        if (!form->packed)
            continue;
        KilnStoredForm entry = { .call = i / KILN_MAX_FORMS,
                                 .form = form->form,
                                 .fitted = form->fitted };
        g_strlcpy(entry.kernel, form->kernel ? form->kernel->name : KILN_REGION_FORM,
                  sizeof entry.kernel);
        g_array_append_val(stored, entry);
    }
    g_autoptr(GBytes) bytes = g_bytes_new(stored->data, stored->len * sizeof(KilnStoredForm));
    kiln_program_writer_add(writer, KILN_SECTION_FORMS, 0, bytes);
    uint32_t index = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (forms[i].packed)
            kiln_program_writer_add(writer, KILN_SECTION_PACKED, index++, forms[i].packed);
    }
}

/* All numbers of an open program come with a run: only forms and constants are decided. */
static gboolean
write_open(const KilnProgram *program, const KilnTemplate *template, const KilnPackedForm *packed,
           const char *path, GError **error)
{
    const KilnIRModule *ir = template->ir ? template->ir : program->model->ir;
    g_auto(KilnProgramWriter) writer = { 0 };
    kiln_program_writer_init(&writer, program, ir);
    g_autofree uint32_t *readers = count_readers(ir, ir->functions->len, NULL);
    g_autofree KilnConstantForm *forms = choose_forms(ir, readers);
    if (!add_text(&writer, forms, error)) {
        kiln_prefix_error(error, "%s: ", program->model->name);
        return FALSE;
    }
    add_forms(&writer, packed, template->n_calls);
    add_constants(&writer, forms, readers);
    add_values(&writer);
    add_output_names(&writer, template->function, &program->outputs);
    return kiln_program_writer_write(&writer, path, error);
}

/* What is folded for one number of a dim is not what is folded for another one. */
static gboolean
check_folds_nothing(const KilnProgram *program, const KilnTemplate *template, GError **error)
{
    const KilnFolder *folder = template->folder;
    if (!folder)
        return TRUE;
    unsigned i = 0;
    while (i + 1 < program->inputs.n && !folder->reads[i])
        i++;
    return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                      "%s: cannot be saved: expected fixed shapes, or no constants that come with "
                      "the first run, found open shapes and the constant input %s",
                      program->model->name, program->inputs.info[i].name);
}

static gboolean
save_open(KilnProgram *program, const char *path, GError **error)
{
    KilnPackedForm *packed;
    KilnTemplate *template = kiln_program_open_template(program, &packed, error);
    if (!template)
        return FALSE;
    gboolean good = check_folds_nothing(program, template, error);
    good = good && write_open(program, template, packed, path, error);
    kiln_probe_free(packed, template->n_calls);
    kiln_template_unref(template);
    return good;
}

/* --- the whole --- */

static gboolean
save_static(KilnProgram *program, const char *path, GError **error)
{
    const KilnSpecialisation *made = g_ptr_array_index(program->specialisations, 0);
    const KilnIRModule *ir = made->ir ? made->ir : program->model->ir;
    g_auto(KilnProgramWriter) writer = { 0 };
    kiln_program_writer_init(&writer, program, ir);
    writer.proven_optimal = made->plan->proven_optimal;
    g_autoptr(GHashTable) bound = kiln_bound_bodies(made);
    g_autofree uint32_t *readers = count_readers(ir, ir->functions->len - 1, bound);
    g_autofree KilnConstantForm *forms = choose_forms(ir, readers);
    if (!add_text(&writer, forms, error)) {
        kiln_prefix_error(error, "%s: ", program->model->name);
        return FALSE;
    }
    add_calls(&writer, made);
    add_packed(&writer, made);
    for (uint32_t i = 0; i < made->n_weights; i++) {
        if (made->weights[i] && !made->text_weights[i])
            kiln_program_writer_add(&writer, KILN_SECTION_WEIGHT, i, made->weights[i]);
    }
    add_array(&writer, KILN_SECTION_STATE, made->states, made->n_states);
    add_constants(&writer, forms, readers);
    add_values(&writer);
    add_output_names(&writer, made->function, &made->outputs);
    return kiln_program_writer_write(&writer, path, error);
}

gboolean
kiln_program_save(KilnProgram *program, const char *path, GError **error)
{
    G_GNUC_UNUSED g_auto(KilnRunScope) scope =
        kiln_run_scope_enter(program->parallel_for, program->pool);
    return (program->open ? save_open : save_static)(program, path, error);
}
