/* SPDX-License-Identifier: Apache-2.0 */
/* Weights that are packed at the first run, behind the fold functions: a packing is made with the
 * folded tensors and lies beside them in the entry of the constant cache. */
#include "runtime/fold_calls.h"

#include "backends/cpu/parallel.h"
#include "graph/base/alloc.h"
#include "ir/compiled.h"
#include "runtime/open/regions.h"

#include <string.h>

/* A packing under way. */
typedef struct {
    const KilnLatePacking *packing;
    const void **data;       /* per operand */
    const KilnFitted *spare; /* NULL: the kernel's pack() */
    void *packed;
    unsigned n_slices;
    const char *_Atomic failure; /* what a slice said; NULL: all are packed */
} Work;

/* --- what is to be packed --- */

static void
packing_clear(void *data)
{
    KilnLatePacking *packing = data;
    for (uint32_t i = 0; i < packing->instr->n_operands; i++)
        g_clear_pointer(&packing->sources[i].weight, g_bytes_unref);
    g_free(packing->sources);
}

GArray *
kiln_late_packings_new(void)
{
    GArray *packings = g_array_new(FALSE, FALSE, sizeof(KilnLatePacking));
    g_array_set_clear_func(packings, packing_clear);
    return packings;
}

void
kiln_folder_add_packing(KilnFolder *folder, const KilnLatePacking *packing)
{
    for (uint32_t i = 0; i < packing->instr->n_operands; i++) {
        const KilnPackSource *source = &packing->sources[i];
        if (source->there && !source->weight && source->number < folder->n_inputs)
            folder->reads[source->number] = true;
    }
    g_array_append_val(folder->packings, *packing);
}

/* What pack() reads: nothing of operands that vary, beside the form. A region says how it packs. */
static void
describe(const KilnLatePacking *packing, GString *text)
{
    const KilnInstr *instr = packing->instr;
    const KilnCompiled *region = instr->kind == KILN_INSTR_call ? kiln_call_compiled(instr) : NULL;
    bool all = instr->kind == KILN_INSTR_call && !(region && region->packing);
    uint32_t form = region && region->packing ? kiln_regions_form(region) : packing->form;
    g_string_append_printf(text, "%s %u %zu", packing->kernel->name, form, packing->bytes);
    kiln_instr_print(instr, text);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnPackSource *source = &packing->sources[i];
        const KilnBuffer *buffer = instr->operands[i].buffer;
        if (buffer && (all || source->there))
            kiln_type_print(&buffer->type, text);
        if (source->there)
            g_string_append_printf(text, " from %d %u+%" G_GINT64_FORMAT, source->weight != NULL,
                                   source->number, source->offset);
    }
    g_string_append_c(text, '\n');
}

void
kiln_folder_digest_packings(const KilnFolder *folder, KilnDigest *digest)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint p = 0; p < folder->packings->len; p++) {
        const KilnLatePacking *packing = &g_array_index(folder->packings, KilnLatePacking, p);
        describe(packing, text);
        for (uint32_t i = 0; i < packing->instr->n_operands; i++) {
            size_t size = 0;
            GBytes *weight = packing->sources[i].weight;
            const void *data = weight ? g_bytes_get_data(weight, &size) : NULL;
            kiln_digest_add(digest, data, size);
        }
    }
    kiln_digest_add(digest, text->str, text->len);
    kiln_digest_add(digest, folder->plain, folder->left.results->len * sizeof *folder->plain);
}

/* --- packing --- */

static void
pack_slice(const void *data, int64_t index, int thread)
{
    (void)thread;
    Work *work = (Work *)data;
    const KilnInstr *instr = work->packing->instr;
    KilnSlice slice = { (unsigned)index, work->n_slices };
    const KilnLatePacking *packing = work->packing;
    if (work->spare) {
        work->spare->pack(instr, packing->form, work->data, work->packed, slice);
        return;
    }
    const char *message =
        packing->kernel->pack(instr, packing->form, work->data, work->packed, slice);
    if (message)
        atomic_store(&work->failure, message);
}

static void
find_data(const KilnLatePacking *packing, KilnTensor *const *values, const void **data)
{
    for (uint32_t i = 0; i < packing->instr->n_operands; i++) {
        const KilnPackSource *source = &packing->sources[i];
        if (!source->there)
            continue;
        GBytes *bytes = source->weight ? source->weight : values[source->number]->bytes;
        data[i] = (const char *)g_bytes_get_data(bytes, NULL) + source->offset;
    }
}

static KilnTensor *
pack(const KilnLatePacking *packing, KilnTensor *const *values, int threads, bool *spare,
     GError **error)
{
    const KilnInstr *instr = packing->instr;
    const KilnKernel *kernel = packing->kernel;
    g_autofree const void **data = g_new0(const void *, instr->n_operands + 1);
    g_autoptr(GByteArray) head = g_byte_array_new();
    find_data(packing, values, data);
    size_t bytes =
        kernel->spare ? kernel->spare->measure(instr, packing->form, data, threads, head) : 0;
    Work work = { .packing = packing, .data = data, .spare = bytes ? kernel->spare : NULL };
    *spare = bytes > 0;
    bytes = bytes ? bytes : packing->bytes;
    /* A vendor brings threads of its own. */
    work.n_slices = instr->kind == KILN_INSTR_call
                        ? 1
                        : (unsigned)((bytes + KILN_PACK_SLICE - 1) / KILN_PACK_SLICE);
    g_autoptr(GBytes) packed = kiln_bytes_new(1, bytes, &work.packed, error);
    if (!packed)
        return NULL;
    /* What pack() leaves out is padding, which no run may find other than zero. */
    memset(work.packed, 0, bytes);
    if (head->len)
        memcpy(work.packed, head->data, head->len);
    kiln_cpu_parallel(work.n_slices, bytes < KILN_PACK_ALONE ? 1 : threads, pack_slice, &work);
    const char *message = atomic_load(&work.failure);
    if (message) {
        kiln_throw_not_packed(instr, message, error);
        return NULL;
    }
    KilnType type = kiln_type_make(KILN_DTYPE_u8, 1, (int64_t[]){ (int64_t)bytes });
    return kiln_tensor_new_data(&type, packed, error);
}

gboolean
kiln_folder_pack(const KilnFolder *folder, KilnTensor *const *values, KilnCacheFilled *out,
                 GError **error)
{
    for (guint p = 0; p < folder->packings->len; p++) {
        const KilnLatePacking *packing = &g_array_index(folder->packings, KilnLatePacking, p);
        out[p].tensor = pack(packing, values, folder->options.threads, &out[p].spare, error);
        if (!out[p].tensor) {
            kiln_prefix_error(error, "%s: packed weights: ", kiln_instr_label(packing->instr));
            return FALSE;
        }
    }
    return TRUE;
}
