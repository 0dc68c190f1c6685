/* SPDX-License-Identifier: Apache-2.0 */
/* To describe a region to the vendor takes longer than all else that loading does with it, and is
 * for its run alone. Until then a kernel stands for it that knows what the file says of it:
 *
 *     load       scratch, packed weights, name      sections CALLS and OPERANDS
 *     first run  compile the body, compare, run     the body in the text
 *
 * A first run that fails - memory ran out - leaves the region as it was: the next one tries again.
 */
#include "runtime/deferred.h"

#include "graph/base/shared.h"
#include "ir/compiled.h"
#include "ir/kernel.h"
#include "ir/vendor.h"
#include "runtime/digest/digest.h"

#include <string.h>

typedef struct {
    KilnCompiled compiled; /* first; its kernel is the one that stands for the region */
    const KilnTarget *target;
    KilnStoredCall stored;
    char name[sizeof((KilnStoredCall *)0)->kernel + 1];
    uint32_t n_operands;
    bool *packs;         /* per operand */
    GPtrArray *failures; /* char*: what runs that failed said, each text once; under the lock */
} Deferred;

/* Compiling is done one at a time. It reads the module, which is written by nobody by then. */
static pthread_mutex_t describing = PTHREAD_MUTEX_INITIALIZER;

static void
deferred_destroy(KilnShared *shared)
{
    Deferred *deferred = (Deferred *)shared;
    KilnCompiled *made = atomic_load(&deferred->compiled.made);
    if (made)
        kiln_shared_unref(&made->shared);
    g_free(deferred->packs);
    g_ptr_array_unref(deferred->failures);
    g_free(deferred);
}

/* NULL where the region of @instr was compiled when it was resolved. */
static Deferred *
deferred_of(const KilnInstr *instr)
{
    KilnShared *compiled = instr->declaration ? instr->declaration->compiled : NULL;
    return compiled && compiled->destroy == deferred_destroy ? (Deferred *)compiled : NULL;
}

/* --- what is stored --- */

static KilnDigest
describe(const KilnInstr *instr)
{
    const Deferred *deferred = deferred_of(instr);
    if (deferred)
        return deferred->stored.vendor;
    const KilnCompiled *compiled = kiln_call_compiled(instr);
    if (!compiled)
        return (KilnDigest){ 0, 0 };
    g_autoptr(GString) text = g_string_new(NULL);
    compiled->vendor->describe(compiled, text);
    return kiln_digest(text->str, text->len);
}

KilnStoredCall
kiln_stored_call(const KilnInstr *instr, const KilnKernel *kernel, int threads)
{
    KilnStoredCall call = { .scratch = -1,
                            .form = kiln_kernel_form(kernel, instr),
                            .vendor = describe(instr) };
    if (kernel->scratch_bytes)
        call.scratch_bytes = kernel->scratch_bytes(instr, call.form, threads);
    if (instr->kind == KILN_INSTR_call && kernel->packed_bytes)
        call.packed_bytes = kernel->packed_bytes(instr, call.form);
    memcpy(call.kernel, kernel->name, MIN(strlen(kernel->name), sizeof call.kernel));
    return call;
}

GBytes *
kiln_stored_operands(const KilnInstr *instr, const KilnKernel *kernel)
{
    uint8_t *packs = g_new0(uint8_t, instr->n_operands + 1);
    for (uint32_t i = 0; i < instr->n_operands; i++)
        packs[i] = kiln_kernel_packs(kernel, instr, i);
    return g_bytes_new_take(packs, instr->n_operands);
}

/* --- the first run --- */

static gboolean
throw_other(const char *what, uint64_t expected, uint64_t found, GError **error)
{
    return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                      "expected a region with %" G_GUINT64_FORMAT
                      " bytes of %s, found one with %" G_GUINT64_FORMAT ": compile the model again",
                      expected, what, found);
}

/* Memory was planned, and weights are packed, as the file says. */
static gboolean
check_same(const Deferred *deferred, const KilnInstr *instr, KilnCompiled *made, GError **error)
{
    KilnDeclaration callee = *instr->declaration;
    callee.compiled = &made->shared;
    KilnInstr call = *instr;
    call.declaration = &callee;
    const KilnStoredCall *stored = &deferred->stored;
    KilnStoredCall found = kiln_stored_call(&call, &made->kernel, deferred->compiled.threads);
    if (found.scratch_bytes > stored->scratch_bytes)
        return throw_other("scratch", stored->scratch_bytes, found.scratch_bytes, error);
    if (found.packed_bytes != stored->packed_bytes)
        return throw_other("packed weights", stored->packed_bytes, found.packed_bytes, error);
    for (uint32_t i = 0; i < call.n_operands; i++) {
        if (kiln_kernel_packs(&made->kernel, &call, i) != deferred->packs[i])
            return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                              "expected a region that reads operand %u %s, found another: compile "
                              "the model again",
                              i, deferred->packs[i] ? "packed" : "as it is");
    }
    if (kiln_digest_equal(&found.vendor, &stored->vendor) &&
        memcmp(found.kernel, stored->kernel, sizeof found.kernel) == 0)
        return TRUE;
    return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                      "expected kernel %s as it was when the program was compiled, found %s: "
                      "compile the model again",
                      deferred->name, made->kernel.name);
}

static KilnCompiled *
compile(const Deferred *deferred, const KilnInstr *instr, GError **error)
{
    KilnCompiled *made = kiln_kernel_cache_get(deferred->target, instr->declaration->body,
                                               deferred->compiled.threads, NULL, error);
    if (!made || check_same(deferred, instr, made, error))
        return made;
    kiln_shared_unref(&made->shared);
    return NULL;
}

/* @message as a text that lives as long as @deferred: other threads may still read earlier ones. */
static const char *
note_failure(Deferred *deferred, const char *message)
{
    guint known;
    if (g_ptr_array_find_with_equal_func(deferred->failures, message, g_str_equal, &known))
        return g_ptr_array_index(deferred->failures, known);
    char *text = g_strdup(message);
    g_ptr_array_add(deferred->failures, text);
    return text;
}

/* What the region of @instr is compiled to, at the first call; NULL and the reason in @out_why
 * where that failed. */
static const KilnCompiled *
get(Deferred *deferred, const KilnInstr *instr, const char **out_why)
{
    KilnCompiled *made = atomic_load_explicit(&deferred->compiled.made, memory_order_acquire);
    if (made)
        return made;
    pthread_mutex_lock(&describing);
    made = atomic_load_explicit(&deferred->compiled.made, memory_order_relaxed);
    if (!made) {
        g_autoptr(GError) error = NULL;
        made = compile(deferred, instr, &error);
        atomic_store_explicit(&deferred->compiled.made, made, memory_order_release);
        if (!made)
            *out_why = note_failure(deferred, error->message);
    }
    pthread_mutex_unlock(&describing);
    return made;
}

static const char *
run(const KilnKernelArgs *args)
{
    const char *why = NULL;
    const KilnCompiled *made = get(deferred_of(args->instr), args->instr, &why);
    if (!made)
        return why;
    KilnKernelArgs of_region = *args;
    of_region.kernel = &made->kernel;
    return made->kernel.run(&of_region);
}

/* --- before --- */

static size_t
scratch_bytes(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads; /* as compiled */
    return deferred_of(instr)->stored.scratch_bytes;
}

static size_t
packed_bytes(const KilnInstr *instr, uint32_t form)
{
    (void)form;
    return deferred_of(instr)->stored.packed_bytes;
}

static bool
packs_operand(const KilnInstr *instr, uint32_t i)
{
    const Deferred *deferred = deferred_of(instr);
    return i < deferred->n_operands && deferred->packs[i];
}

static const char *
pack(const KilnInstr *instr, uint32_t form, const void *const *data, void *packed, KilnSlice slice)
{
    const char *why = NULL;
    const KilnCompiled *made = get(deferred_of(instr), instr, &why);
    return made ? made->kernel.pack(instr, form, data, packed, slice) : why;
}

static gboolean
read_operands(Deferred *deferred, const KilnProgramFile *file, uint32_t index, GError **error)
{
    g_autoptr(GBytes) bytes = kiln_program_file_get(file, KILN_SECTION_OPERANDS, index);
    size_t size = 0;
    const uint8_t *packs = bytes ? g_bytes_get_data(bytes, &size) : NULL;
    if (size != deferred->n_operands)
        return kiln_throw(error, KILN_ERROR_INVALID, "expected %u operands, found %zu",
                          deferred->n_operands, size);
    for (uint32_t i = 0; i < deferred->n_operands; i++) {
        if (packs[i] > 1)
            return kiln_throw(error, KILN_ERROR_INVALID, "operand %u: expected 0 or 1, found %u", i,
                              packs[i]);
        deferred->packs[i] = packs[i];
    }
    return TRUE;
}

static gboolean
defer(KilnInstr *instr, const KilnProgramFile *file, uint32_t index, const KilnTarget *target,
      GError **error)
{
    const KilnStoredCall *stored = kiln_program_file_calls(file, NULL) + index;
    int64_t arena = instr->function->arena_bytes;
    if (stored->scratch_bytes > (uint64_t)MAX(arena, 0))
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "expected scratch in an arena of %" G_GINT64_FORMAT
                          " bytes, found %" G_GUINT64_FORMAT " bytes of it",
                          arena, stored->scratch_bytes);
    Deferred *deferred = g_new0(Deferred, 1);
    atomic_init(&deferred->compiled.shared.references, 1);
    deferred->compiled.shared.destroy = deferred_destroy;
    deferred->compiled.deferred = true;
    deferred->compiled.vendor = target->vendor;
    deferred->compiled.threads = (int)file->header->threads;
    deferred->target = target;
    deferred->stored = *stored;
    memcpy(deferred->name, stored->kernel, sizeof stored->kernel);
    deferred->n_operands = instr->n_operands;
    deferred->packs = g_new0(bool, instr->n_operands + 1);
    deferred->failures = g_ptr_array_new_with_free_func(g_free);
    deferred->compiled.kernel = (KilnKernel){ .instr = KILN_INSTR_call,
                                              .name = deferred->name,
                                              .run = run,
                                              .scratch_bytes = scratch_bytes,
                                              .packed_bytes = packed_bytes,
                                              .pack = stored->packed_bytes ? pack : NULL,
                                              .packs_operand = packs_operand };
    KilnDeclaration *callee = kiln_module_find_declaration(instr->function->module, instr->callee);
    callee->compiled = &deferred->compiled.shared;
    return read_operands(deferred, file, index, error);
}

gboolean
kiln_defer_regions(KilnIRModule *ir, const KilnProgramFile *file, const KilnTarget *target,
                   GError **error)
{
    uint64_t n;
    kiln_program_file_calls(file, &n);
    uint32_t index = 0;
    kiln_foreach_instr (
        instr, (KilnIRFunction *)g_ptr_array_index(ir->functions, ir->functions->len - 1)) {
        if (kiln_instr_is_bookkeeping(instr))
            continue;
        bool open = instr->kind == KILN_INSTR_call && instr->declaration &&
                    instr->declaration->body && !instr->declaration->compiled;
        if (target->vendor && open && index < n && !defer(instr, file, index, target, error)) {
            kiln_prefix_error(error, "%s (call): ", kiln_instr_label(instr));
            return FALSE;
        }
        index++;
    }
    return TRUE;
}

gboolean
kiln_describe_regions(const KilnIRModule *ir, GError **error)
{
    for (guint i = 0; i < ir->functions->len; i++) {
        kiln_foreach_instr (instr, (KilnIRFunction *)g_ptr_array_index(ir->functions, i)) {
            Deferred *deferred = deferred_of(instr);
            const char *why = NULL;
            if (deferred && !get(deferred, instr, &why))
                return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "%s (call): %s",
                                  kiln_instr_label(instr), why);
        }
    }
    return TRUE;
}
