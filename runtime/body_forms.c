/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/body_forms.h"

#include "graph/error.h"
#include "ir/compiled.h"
#include "ir/kernel.h"
#include "runtime/flow/bodies.h"
#include "runtime/open/template.h"
#include "runtime/program_file.h"

#include <string.h>

static void
name_kernel(const KilnPackedForm *form, char *name, size_t size)
{
    memset(name, 0, size);
    g_strlcpy(name, form->kernel ? form->kernel->name : KILN_REGION_FORM, size);
}

/* --- writing --- */

static void
add_bound(GHashTable *bound, const KilnSpecialisation *made)
{
    for (guint i = 0; made->bodies && i < made->bodies->len; i++) {
        const KilnBody *body = g_ptr_array_index(made->bodies, i);
        if (body->made && g_hash_table_insert(bound, body->function, body->made))
            add_bound(bound, body->made);
    }
}

GHashTable *
kiln_bound_bodies(const KilnSpecialisation *made)
{
    GHashTable *bound = g_hash_table_new(NULL, NULL);
    add_bound(bound, made);
    return bound;
}

GBytes *
kiln_body_forms(const KilnIRModule *ir, const KilnSpecialisation *made, GPtrArray *out_packed)
{
    g_autoptr(GHashTable) bound = kiln_bound_bodies(made);
    g_autoptr(GArray) stored = g_array_new(FALSE, TRUE, sizeof(KilnStoredForm));
    uint32_t first = 0;
    for (guint f = 0; f + 1 < ir->functions->len; f++) {
        const KilnIRFunction *function = g_ptr_array_index(ir->functions, f);
        const KilnSpecialisation *body = g_hash_table_lookup(bound, function);
        for (uint32_t c = 0; body && c < body->n_calls; c++) {
            const KilnBoundCall *call = &body->calls[c];
            if (!call->packed)
                continue;
            const KilnPackedForm form = kiln_template_form(call);
            KilnStoredForm entry = { first + c, form.form, form.fitted, 0, "" };
            name_kernel(&form, entry.kernel, sizeof entry.kernel);
            g_array_append_val(stored, entry);
            g_ptr_array_add(out_packed, call->packed);
        }
        first += kiln_count_calls(function);
    }
    return stored->len ? g_bytes_new(stored->data, stored->len * sizeof(KilnStoredForm)) : NULL;
}

/* --- reading --- */

static const KilnStoredForm *
stored_forms(const KilnProgramFile *file, size_t *out_bytes)
{
    const KilnSection *section = kiln_program_file_find(file, KILN_SECTION_FORMS, 0);
    *out_bytes = section ? section->size : 0;
    return section ? (const KilnStoredForm *)((const char *)g_bytes_get_data(file->bytes, NULL) +
                                              section->offset)
                   : NULL;
}

/* The number of the first call of @function. */
static uint32_t
first_call(const KilnIRFunction *function)
{
    uint32_t first = 0;
    for (guint f = 0; f < function->siblings->len; f++) {
        const KilnIRFunction *before = g_ptr_array_index(function->siblings, f);
        if (before == function)
            break;
        first += kiln_count_calls(before);
    }
    return first;
}

gboolean
kiln_body_forms_check(const KilnProgramFile *file, const KilnIRFunction *entry, uint32_t *out_n,
                      GError **error)
{
    size_t bytes;
    const KilnStoredForm *stored = stored_forms(file, &bytes);
    *out_n = (uint32_t)MIN(bytes / sizeof(KilnStoredForm), UINT32_MAX);
    if (bytes % sizeof(KilnStoredForm))
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "forms: expected a multiple of %zu bytes, found %zu",
                          sizeof(KilnStoredForm), bytes);
    uint64_t n_entry;
    const uint32_t n_inside = first_call(entry);
    kiln_program_file_calls(file, &n_entry);
    for (uint32_t i = 0; i < *out_n; i++) {
        if (stored[i].call >= n_inside)
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "forms: expected a call below %u, found %u", n_inside,
                              stored[i].call);
        if (!kiln_program_file_find(file, KILN_SECTION_PACKED, (uint32_t)(n_entry + i)))
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "forms: expected packed weights of call %u, found none",
                              stored[i].call);
    }
    return TRUE;
}

/* Whether the kernel of @wanted packs as @stored says. A region that is compiled in its first run
 * is compared with the file then. */
static bool
packs_alike(const KilnBoundCall *wanted, const KilnStoredForm *stored)
{
    const KilnPackedForm form = kiln_template_form(wanted);
    char name[sizeof stored->kernel];
    name_kernel(&form, name, sizeof name);
    return memcmp(name, stored->kernel, sizeof name) == 0 && stored->fitted <= 1 &&
           (!stored->fitted || wanted->kernel->fitted) &&
           (form.form == stored->form || kiln_call_is_deferred(wanted->instr));
}

static gboolean
throw_other(const KilnBoundCall *call, const KilnStoredForm *stored, GError **error)
{
    return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                      "%s: packed weights: expected form %u of %.*s, found form %u of %s: compile "
                      "the model again",
                      kiln_instr_label(call->instr), stored->form, (int)sizeof stored->kernel,
                      stored->kernel, kiln_template_form(call).form, call->kernel->name);
}

/* Packed weights @index of @file, which @stored describes. */
static gboolean
take(KilnBoundCall *call, const KilnProgramFile *file, const KilnStoredForm *stored, uint32_t index,
     GError **error)
{
    KilnBoundCall wanted = *call;
    wanted.fitted = stored->fitted;
    if (!call->packed_bytes || call->late || call->packed || !packs_alike(&wanted, stored))
        return throw_other(&wanted, stored, error);
    g_autoptr(GBytes) packed = kiln_program_file_get(file, KILN_SECTION_PACKED, index);
    size_t size;
    const void *data = g_bytes_get_data(packed, &size);
    const KilnFitted *fitted = stored->fitted ? call->kernel->fitted : NULL;
    if (fitted && !fitted->is_sound(call->instr, call->form, data, size))
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "%s: packed weights: expected what %s packs, found %zu other bytes",
                          kiln_instr_label(call->instr), call->kernel->name, size);
    if (!fitted && size != call->packed_bytes)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "%s: packed weights: expected %zu bytes, found %zu",
                          kiln_instr_label(call->instr), call->packed_bytes, size);
    call->packed = g_steal_pointer(&packed);
    call->packed_bytes = size;
    call->fitted = stored->fitted;
    return TRUE;
}

gboolean
kiln_body_forms_take(KilnBinder *binder, const KilnProgramFile *file, GError **error)
{
    size_t bytes;
    uint64_t n_entry;
    KilnSpecialisation *out = binder->out;
    const KilnStoredForm *stored = stored_forms(file, &bytes);
    const uint32_t first = first_call(out->function);
    kiln_program_file_calls(file, &n_entry);
    for (size_t i = 0; i < bytes / sizeof *stored; i++) {
        if (stored[i].call < first || stored[i].call - first >= out->n_calls)
            continue;
        KilnBoundCall *call = &out->calls[stored[i].call - first];
        if (!take(call, file, &stored[i], (uint32_t)(n_entry + i), error))
            return FALSE;
        out->weight_bytes += (int64_t)call->packed_bytes;
    }
    return TRUE;
}
