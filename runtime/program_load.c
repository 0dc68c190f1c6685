/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a program: its text is parsed and bound like that of any other, but offsets and bytes
 * come from the file. */
#include "kiln.h"
#include "runtime/bind.h"
#include "runtime/body_forms.h"
#include "runtime/deferred.h"
#include "runtime/fold_calls.h"
#include "runtime/model.h"
#include "runtime/options.h"
#include "runtime/program.h"
#include "runtime/program_file.h"
#include "runtime/scope.h"
#include "runtime/targets.h"

#include "ir/ir.h"
#include "ir/kernel.h"
#include "ir/plan/settle.h"
#include "ir/target.h"
#include "ir/text/json.h"
#include "passes/context/options.h"
#include "runtime/fold_file.h"
#include "runtime/open/template.h"
#include "runtime/tensors/file.h"

#include <string.h>

static gboolean
copy_options(const KilnLoadOptions *options, KilnLoadOptions *copy, GError **error)
{
    static const KilnStructKind kind = KILN_STRUCT_KIND(KilnLoadOptions, KILN_LOAD_OPTIONS_INIT);
    const KilnLoadOptions defaults = KILN_LOAD_OPTIONS_INIT;
    return kiln_options_copy(&kind, options ? options : &defaults, copy, error);
}

/* --- constants --- */

gboolean
kiln_program_file_attach(const KilnProgramFile *file, const KilnSection *section,
                         KilnConstant *constant, GError **error)
{
    if (constant->tensor->kind != KILN_TENSOR_EXTERN)
        return TRUE;
    g_autoptr(GBytes) bytes = g_bytes_new_from_bytes(file->bytes, section->offset, section->size);
    if (constant->type.dtype == KILN_DTYPE_string)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "constant %s: expected strings in the text, found bytes", constant->name);
    /* Literals lie there as the model stored them, weights as kernels read them. */
    bool stored = (int64_t)section->size == kiln_tensor_stored_bytes(&constant->type);
    KilnTensor *tensor = stored ? kiln_tensor_new_stored(&constant->type, bytes, error)
                                : kiln_tensor_new_data(&constant->type, bytes, error);
    if (!tensor) {
        kiln_prefix_error(error, "constant %s: ", constant->name);
        return FALSE;
    }
    tensor->mapped = file->mapped;
    tensor->file = g_strdup(file->path);
    tensor->file_offset = (int64_t)section->offset;
    kiln_tensor_free(constant->tensor);
    constant->tensor = tensor;
    return TRUE;
}

static gboolean
attach_constants(const KilnProgramFile *file, const KilnModule *module, GError **error)
{
    uint32_t n_extern = 0;
    for (guint i = 0; i < module->constants->len; i++) {
        KilnConstant *constant = g_ptr_array_index(module->constants, i);
        if (constant->tensor->kind != KILN_TENSOR_EXTERN)
            continue;
        const KilnSection *section =
            kiln_program_file_find(file, KILN_SECTION_CONSTANT, n_extern++);
        if (section && !kiln_program_file_attach(file, section, constant, error))
            return FALSE;
    }
    return kiln_program_file_check(file, KILN_SECTION_CONSTANT, n_extern, error);
}

/* --- the program --- */

static KilnIRModule *
read_text(const KilnProgramFile *file, GError **error)
{
    size_t length = 0;
    g_autoptr(GBytes) text = kiln_program_file_get(file, KILN_SECTION_TEXT, 0);
    const char *data = text ? g_bytes_get_data(text, &length) : "";
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse_alone(data, length, file->name, error);
    if (!ir)
        return NULL;
    if (!ir->functions->len)
        return kiln_throw_null(error, KILN_ERROR_INVALID, "expected a func block, found none");
    return attach_constants(file, ir->module, error) ? g_steal_pointer(&ir) : NULL;
}

/* Every section has a number that stands for something here. */
static gboolean
check_numbers(const KilnProgramFile *file, const KilnSpecialisation *made, uint32_t n_forms,
              GError **error)
{
    const uint32_t n[KILN_N_SECTION_KINDS] = {
        [KILN_SECTION_TEXT] = 1,
        [KILN_SECTION_CALLS] = 1,
        [KILN_SECTION_FORMS] = n_forms > 0,
        [KILN_SECTION_OPERANDS] = made->n_calls,
        [KILN_SECTION_PACKED] = made->n_calls + n_forms,
        [KILN_SECTION_WEIGHT] = made->n_weights,
        [KILN_SECTION_STATE] = made->n_states,
        [KILN_SECTION_CONSTANT] = UINT32_MAX, /* attach_constants() has looked */
        [KILN_SECTION_VALUE] = made->inputs.n,
        [KILN_SECTION_OUTPUT] = made->outputs.n,
    };
    for (int kind = 0; kind < KILN_N_SECTION_KINDS; kind++) {
        if (!kiln_program_file_check(file, (KilnSectionKind)kind, n[kind], error))
            return FALSE;
    }
    return TRUE;
}

/* Nothing is bound to an input whose value is known: no call may read it. */
static gboolean
check_values(const KilnProgramFile *file, const KilnSpecialisation *made, GError **error)
{
    g_autofree bool *read = g_new0(bool, made->inputs.n + 1);
    for (unsigned i = 0; made->folder && i < made->inputs.n; i++)
        read[i] = made->folder->reads[i];
    for (uint32_t s = 0; s < made->n_slots; s++) {
        if (made->slots[s].kind == KILN_SLOT_INPUT)
            read[made->slots[s].index] = true;
    }
    for (unsigned i = 0; i < made->inputs.n; i++) {
        const KilnSection *section = kiln_program_file_find(file, KILN_SECTION_VALUE, i);
        const KilnTensorInfo *info = &made->inputs.info[i];
        if (section && (read[i] || section->size != (uint64_t)info->bytes))
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "input %s: expected a value of %" G_GINT64_FORMAT
                              " bytes that no call reads, found %" G_GUINT64_FORMAT " bytes%s",
                              info->name, info->bytes, section->size,
                              read[i] ? " of an input that is read" : "");
    }
    return TRUE;
}

/* Of those whose buffers could not have the names of the model. */
static gboolean
name_outputs(const KilnProgramFile *file, KilnInfoList *outputs, KilnArena *arena, GError **error)
{
    for (unsigned i = 0; i < outputs->n; i++) {
        g_autoptr(GBytes) bytes = kiln_program_file_get(file, KILN_SECTION_OUTPUT, i);
        size_t size = 0;
        const char *name = bytes ? g_bytes_get_data(bytes, &size) : NULL;
        if (!bytes)
            continue;
        if (!size || name[size - 1])
            return kiln_throw(error, KILN_ERROR_INVALID, "output %u: its name does not end", i);
        outputs->info[i].name = kiln_arena_strdup(arena, name);
    }
    return kiln_program_file_check(file, KILN_SECTION_OUTPUT, outputs->n, error);
}

/* --- open programs --- */

/* The kernel of that name for @instr, in the target or its fallbacks; NULL where there is none. */
static const KilnKernel *
find_kernel(const KilnTarget *target, const KilnInstr *instr, const KilnStoredForm *form)
{
    if (!memchr(form->kernel, 0, sizeof form->kernel))
        return NULL;
    for (; target; target = target->fallback) {
        for (uint32_t i = 0; i < target->n_kernels; i++) {
            const KilnKernel *kernel = &target->kernels[i];
            if (kernel->instr == instr->kind && strcmp(kernel->name, form->kernel) == 0)
                return kernel;
        }
    }
    return NULL;
}

static gboolean
add_form(const KilnProgramFile *file, KilnTemplate *template, const KilnInstr *const *calls,
         const KilnStoredForm *stored, uint32_t index, GError **error)
{
    if (stored->call >= template->n_calls)
        return kiln_throw(error, KILN_ERROR_INVALID, "forms: expected a call below %u, found %u",
                          template->n_calls, stored->call);
    const KilnTarget *target =
        kiln_target_choose(file->header->target, *file->header->vendor, error);
    const bool region = calls[stored->call]->kind == KILN_INSTR_call &&
                        strncmp(stored->kernel, KILN_REGION_FORM, sizeof stored->kernel) == 0;
    const KilnKernel *kernel =
        target && !region ? find_kernel(target, calls[stored->call], stored) : NULL;
    g_autoptr(GBytes) packed = kiln_program_file_get(file, KILN_SECTION_PACKED, index);
    if (!packed)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "forms: expected packed weights %u, found none", index);
    if (!kernel && !region)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                          "%s: expected kernel %.*s as it was when the program was compiled, found "
                          "none: compile the model again",
                          kiln_instr_label(calls[stored->call]), (int)sizeof stored->kernel,
                          stored->kernel);
    kiln_template_add_form(template, stored->call,
                           &(KilnPackedForm){ kernel, stored->form, packed, stored->fitted });
    return TRUE;
}

/* The likeliest forms stand first, as they do in the file. */
static gboolean
add_forms(const KilnProgramFile *file, KilnTemplate *template, GError **error)
{
    g_autoptr(GBytes) bytes = kiln_program_file_get(file, KILN_SECTION_FORMS, 0);
    g_autofree const KilnInstr **calls = g_new0(const KilnInstr *, (gsize) template->n_calls + 1);
    size_t size = 0, c = 0;
    const KilnStoredForm *stored = bytes ? g_bytes_get_data(bytes, &size) : NULL;
    size_t n = size / sizeof *stored;
    if (size % sizeof *stored)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "forms: expected a multiple of %zu bytes, found %zu", sizeof *stored,
                          size);
    if (n / KILN_MAX_FORMS > template->n_calls)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "forms: expected at most %d per call, found %zu", KILN_MAX_FORMS, n);
    kiln_foreach_instr (instr, template->function) {
        if (!kiln_instr_is_bookkeeping(instr))
            calls[c++] = instr;
    }
    for (size_t i = n; i-- > 0;) {
        if (!add_form(file, template, calls, &stored[i], (uint32_t)i, error))
            return FALSE;
    }
    return kiln_program_file_check(file, KILN_SECTION_PACKED, (uint32_t)n, error);
}

/* Weights that lie in the file are read there. Small ones stand in the text. */
static void
add_weights(const KilnProgramFile *file, KilnTemplate *template)
{
    size_t size;
    const char *start = g_bytes_get_data(file->bytes, &size);
    for (uint32_t i = 0; i < template->n_weights; i++) {
        const KilnBuffer *weight = g_ptr_array_index(template->function->weights, i);
        const KilnTensor *tensor = weight->constant ? weight->constant->tensor : NULL;
        GBytes *bytes = tensor && tensor->kind == KILN_TENSOR_DATA ? tensor->bytes : NULL;
        const char *data = bytes ? g_bytes_get_data(bytes, NULL) : NULL;
        if (data && data >= start && data < start + size)
            template->weights[i] = g_bytes_ref(bytes);
    }
}

/* Sections that only programs of fixed shapes have. */
static gboolean
check_open(const KilnProgramFile *file, const KilnIRModule *ir, GError **error)
{
    static const KilnSectionKind fixed[] = { KILN_SECTION_CALLS, KILN_SECTION_OPERANDS,
                                             KILN_SECTION_WEIGHT, KILN_SECTION_STATE };
    if (ir->module->folding)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "expected an open function alone, found folds beside it");
    for (size_t i = 0; i < G_N_ELEMENTS(fixed); i++) {
        if (!kiln_program_file_check(file, fixed[i], 0, error))
            return FALSE;
    }
    return kiln_program_file_check(file, KILN_SECTION_FORMS, 1, error) &&
           kiln_program_file_check(file, KILN_SECTION_TEXT, 1, error);
}

/* Values that were known when the program was compiled are literals of the function, which has no
 * use for these inputs. */
static gboolean
take_values(const KilnProgramFile *file, const KilnIRFunction *entry, KilnProgram *program,
            GError **error)
{
    for (unsigned i = 0; i < program->inputs.n; i++) {
        const KilnBuffer *input = g_ptr_array_index(entry->inputs, i);
        const KilnTensorInfo *info = &program->inputs.info[i];
        g_autoptr(GBytes) value = kiln_program_file_get(file, KILN_SECTION_VALUE, i);
        bool read = input->first_use != NULL;
        if (value && (read || (int64_t)g_bytes_get_size(value) != info->bytes))
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "input %s: expected a value of %" G_GINT64_FORMAT
                              " bytes that no call reads, found %zu bytes%s",
                              info->name, info->bytes, g_bytes_get_size(value),
                              read ? " of an input that is read" : "");
        program->values[i] = g_steal_pointer(&value);
    }
    return kiln_program_file_check(file, KILN_SECTION_VALUE, program->inputs.n, error);
}

/* The program of a model that has taken the IR. */
static KilnProgram *
make_open_program(const KilnProgramFile *file, KilnModel *model, const KilnLoadOptions *options,
                  KilnConstantCache *cache, GError **error)
{
    const KilnProgramHeader *header = file->header;
    const KilnIRModule *ir = model->ir;
    KilnIRFunction *entry = g_ptr_array_index(ir->functions, ir->functions->len - 1);
    g_autoptr(KilnProgram) program = kiln_program_new(model);
    if (!check_open(file, ir, error))
        return NULL;
    program->open = true;
    program->target = kiln_target_choose(header->target, *header->vendor, NULL);
    program->threads = (int)header->threads;
    program->cache = kiln_constant_cache_ref(cache);
    program->cache_dir = g_strdup(options->cache_dir);
    program->value_inputs = g_new0(bool, model->inputs.n + 1);
    program->pass_options = (KilnPassOptions)KILN_PASS_OPTIONS_INIT;
    kiln_info_list_copy(&program->inputs, &model->inputs);
    kiln_info_list_copy(&program->outputs, &model->outputs);
    if (!name_outputs(file, &program->outputs, ir->module->arena, error) ||
        !take_values(file, entry, program, error))
        return NULL;
    kiln_open_settle(entry);
    KilnTemplate *template = kiln_template_new_beside(entry, model->inputs.n);
    g_ptr_array_add(program->templates, template);
    add_weights(file, template);
    if (!add_forms(file, template, error))
        return NULL;
    kiln_template_plan(template, program->target, program->threads);
    return g_steal_pointer(&program);
}

/* --- programs of fixed shapes --- */

/* Takes @ir over, but what is bound to it stays the caller's. */
static KilnSpecialisation *
bind(const KilnProgramFile *file, KilnIRModule *ir, const KilnLoadOptions *options,
     KilnConstantCache *cache, GError **error)
{
    const KilnProgramHeader *header = file->header;
    const KilnIRFunction *entry = g_ptr_array_index(ir->functions, ir->functions->len - 1);
    KilnBindOptions bound = { .target = kiln_target_choose(header->target, *header->vendor, error),
                              .threads = (int)header->threads,
                              .cache = cache,
                              .stored = file };
    const KilnFoldOptions fold = { .target = bound.target,
                                   .directory = options->cache_dir,
                                   .threads = bound.threads };
    uint32_t n_forms;
    gboolean good = kiln_body_forms_check(file, entry, &n_forms, error) &&
                    kiln_defer_regions(ir, file, bound.target, error) &&
                    kiln_offload_resolve(ir, bound.target, bound.threads, error) &&
                    (!ir->module->folding || (bound.folder = kiln_folder_new(ir, &fold, error)));
    if (!good) {
        kiln_ir_module_free(ir);
        return NULL;
    }
    g_autoptr(KilnSpecialisation) made = kiln_program_bind(ir, &bound, error);
    good = made && check_numbers(file, made, n_forms, error) && check_values(file, made, error) &&
           name_outputs(file, &made->outputs, made->ir->module->arena, error);
    return good ? g_steal_pointer(&made) : NULL;
}

static KilnProgram *
make_static_program(const KilnProgramFile *file, KilnModel *model, KilnSpecialisation *made,
                    const char *cache_dir, KilnConstantCache *cache)
{
    const KilnProgramHeader *header = file->header;
    kiln_model_take_ir(model, g_steal_pointer(&made->ir));
    model->ir_text = kiln_program_file_get(file, KILN_SECTION_TEXT, 0);
    KilnProgram *program = kiln_program_new(model);
    program->target = kiln_target_choose(header->target, *header->vendor, NULL);
    program->threads = (int)header->threads;
    program->cache = kiln_constant_cache_ref(cache);
    program->cache_dir = g_strdup(cache_dir);
    program->value_inputs = g_new0(bool, model->inputs.n + 1);
    for (unsigned i = 0; i < model->inputs.n; i++)
        program->values[i] = kiln_program_file_get(file, KILN_SECTION_VALUE, i);
    kiln_info_list_copy(&program->inputs, &made->inputs);
    kiln_info_list_copy(&program->outputs, &made->outputs);
    kiln_info_list_state_contents(&program->outputs, &model->outputs);
    g_ptr_array_add(program->specialisations, made);
    return program;
}

/* Takes @ir over. */
static KilnProgram *
make_program(const KilnProgramFile *file, KilnModel *model, KilnIRModule *ir,
             const KilnLoadOptions *options, GError **error)
{
    const KilnIRFunction *entry = g_ptr_array_index(ir->functions, ir->functions->len - 1);
    KilnConstantCache *cache = options->cache ? options->cache : model->cache;
    if (entry->open) {
        kiln_model_take_ir(model, ir);
        model->ir_text = kiln_program_file_get(file, KILN_SECTION_TEXT, 0);
        return make_open_program(file, model, options, cache, error);
    }
    KilnSpecialisation *made = bind(file, ir, options, cache, error);
    return made ? make_static_program(file, model, made, options->cache_dir, cache) : NULL;
}

static KilnProgram *
load(GBytes *bytes, const char *name, bool mapped, const KilnLoadOptions *given, GError **error)
{
    KilnLoadOptions options;
    if (!copy_options(given, &options, error))
        return NULL;
    if (options.cache_dir && !kiln_fold_directory_make(options.cache_dir, error))
        return NULL;
    g_autoptr(KilnProgramFile) file = kiln_program_file_open(bytes, name, mapped, error);
    if (!file)
        return NULL;
    g_autoptr(KilnModel) model = kiln_model_new(name, error);
    if (!model)
        return NULL;
    KilnIRModule *ir = read_text(file, error);
    KilnProgram *program = ir ? make_program(file, model, ir, &options, error) : NULL;
    if (!program)
        kiln_prefix_error(error, "%s: ", name);
    return program;
}

KilnProgram *
kiln_program_load_bytes(GBytes *bytes, const char *name, const KilnLoadOptions *options,
                        GError **error)
{
    G_GNUC_UNUSED g_auto(KilnRunScope) scope = kiln_run_scope_enter(NULL, NULL);
    return load(bytes, name ? name : "(memory)", false, options, error);
}

KilnProgram *
kiln_program_load_object(const KilnObject *object, GError **error)
{
    G_GNUC_UNUSED g_auto(KilnRunScope) scope = kiln_run_scope_enter(NULL, NULL);
    if (object->size != sizeof *object)
        return kiln_throw_null(error, KILN_ERROR_USAGE,
                               "KilnObject: expected a size of %zu, found %zu", sizeof *object,
                               object->size);
    g_autoptr(GBytes) bytes = g_bytes_new_static(object->bytes, object->n_bytes);
    g_autoptr(KilnProgram) program = load(bytes, object->name, false, NULL, error);
    if (!program)
        return NULL;
    const KilnSpecialisation *made =
        program->open ? NULL : g_ptr_array_index(program->specialisations, 0);
    if (made && made->n_calls != object->n_calls)
        return kiln_throw_null(error, KILN_ERROR_INVALID, "%s: expected %u calls, found %u",
                               object->name, made->n_calls, object->n_calls);
    if (made)
        program->object = object;
    return g_steal_pointer(&program);
}

KilnProgram *
kiln_program_load(const char *path, const KilnLoadOptions *options, GError **error)
{
    G_GNUC_UNUSED g_auto(KilnRunScope) scope = kiln_run_scope_enter(NULL, NULL);
    bool mapped;
    g_autoptr(GBytes) bytes = kiln_file_map_or_read(path, &mapped, error);
    return bytes ? load(bytes, path, mapped, options, error) : NULL;
}
