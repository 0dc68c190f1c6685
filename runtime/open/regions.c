/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/open/regions.h"

#include "exec/custom.h"
#include "graph/base/alloc.h"
#include "graph/base/shared.h"
#include "graph/error.h"
#include "graph/module.h"
#include "ir/vendor.h"
#include "runtime/digest/digest.h"

#include <pthread.h>
#include <string.h>

enum {
    GONE_BYTES = KILN_REGION_BYTES / 8 /* of regions that went: free memory is given back then */
};

typedef struct {
    const KilnDeclaration *declaration;
    uint64_t names;   /* a bit per name of the numbers that the region depends on */
    int64_t *numbers; /* of all names */
    KilnCompiled *compiled;
} Entry;

struct KilnRegions {
    pthread_mutex_t lock;
    GArray *entries; /* Entry, the last one that was used at the end */
    size_t bytes;
    size_t gone; /* bytes of those that went since free memory was given back */
};

static void
entry_clear(void *data)
{
    Entry *entry = data;
    kiln_shared_unref(&entry->compiled->shared);
    g_free(entry->numbers);
}

KilnRegions *
kiln_regions_new(void)
{
    KilnRegions *regions = g_new0(KilnRegions, 1);
    pthread_mutex_init(&regions->lock, NULL);
    regions->entries = g_array_new(FALSE, FALSE, sizeof(Entry));
    g_array_set_clear_func(regions->entries, entry_clear);
    return regions;
}

void
kiln_regions_free(KilnRegions *regions)
{
    if (!regions)
        return;
    g_array_unref(regions->entries);
    pthread_mutex_destroy(&regions->lock);
    g_free(regions);
}

/* --- the cache --- */

static bool
has_numbers(const Entry *entry, const KilnDimBinding *numbers)
{
    for (uint32_t i = 0; i < numbers->n; i++) {
        bool counts = entry->names >> MIN(i, 63u) & 1;
        if (counts && entry->numbers[i] != numbers->names[i].number)
            return false;
    }
    return true;
}

static KilnCompiled *
look_up(KilnRegions *regions, const KilnDeclaration *declaration, const KilnDimBinding *numbers)
{
    for (guint i = regions->entries->len; i-- > 0;) {
        Entry entry = g_array_index(regions->entries, Entry, i);
        if (entry.declaration != declaration || !has_numbers(&entry, numbers))
            continue;
        Entry *entries = &g_array_index(regions->entries, Entry, 0);
        memmove(entries + i, entries + i + 1, (regions->entries->len - 1 - i) * sizeof *entries);
        entries[regions->entries->len - 1] = entry;
        kiln_shared_ref(&entry.compiled->shared);
        return entry.compiled;
    }
    return NULL;
}

/* The regions that were used longest ago go where there are too many. */
static void
add(KilnRegions *regions, const Entry *entry)
{
    guint n = 0;
    kiln_shared_ref(&entry->compiled->shared);
    g_array_append_val(regions->entries, *entry);
    regions->bytes += entry->compiled->bytes;
    const size_t before = regions->bytes;
    while (regions->bytes > KILN_REGION_BYTES && n + 1 < regions->entries->len)
        regions->bytes -= g_array_index(regions->entries, Entry, n++).compiled->bytes;
    regions->gone += before - regions->bytes;
    g_array_remove_range(regions->entries, 0, n);
    if (regions->gone < GONE_BYTES)
        return;
    regions->gone = 0;
    kiln_give_back(); /* code and memory of regions have many sizes, which leave gaps */
}

/* --- making --- */

/* Numbers that note which of them are asked for. */
typedef struct {
    const KilnDimBinding *numbers;
    uint64_t names;
} Asked;

static bool
number_of(void *data, const char *name, int64_t *out)
{
    Asked *asked = data;
    for (uint32_t i = 0; i < asked->numbers->n; i++) {
        if (strcmp(asked->numbers->names[i].name, name) != 0)
            continue;
        asked->names |= (uint64_t)1 << MIN(i, 63u);
        *out = asked->numbers->names[i].number;
        return true;
    }
    return false;
}

/* A region on own kernels. */
typedef struct {
    KilnCompiled compiled;
    KilnCustom *custom;
} OwnRegion;

static void
own_free(KilnShared *shared)
{
    OwnRegion *region = (OwnRegion *)shared;
    kiln_shared_unref(kiln_custom_shared(region->custom));
    g_free(region);
}

static const char *
own_run(const KilnKernelArgs *args)
{
    const OwnRegion *region = (const OwnRegion *)kiln_call_compiled(args->instr);
    return kiln_custom_run(region->custom, args->data, args->scratch, args->threads);
}

static size_t
own_scratch(const KilnInstr *instr, uint32_t form, int threads)
{
    (void)form;
    (void)threads; /* as compiled */
    return kiln_custom_scratch(((const OwnRegion *)kiln_call_compiled(instr))->custom);
}

static KilnCompiled *
compile_own(const KilnDeclaration *declaration, Asked *asked, const KilnTarget *target, int threads,
            GError **error)
{
    g_autoptr(KilnModule) module =
        kiln_region_module_at(declaration->body, number_of, asked, error);
    KilnCustom *custom =
        module ? kiln_custom_get(kiln_module_entry(module), NULL, 0, target, threads, error) : NULL;
    if (!custom)
        return NULL;
    OwnRegion *region = g_new0(OwnRegion, 1);
    atomic_init(&region->compiled.shared.references, 1);
    region->compiled.shared.destroy = own_free;
    region->compiled.vendor = target->vendor;
    region->compiled.threads = threads;
    region->compiled.bytes = sizeof *region;
    region->compiled.kernel = (KilnKernel){
        .instr = KILN_INSTR_call, .name = "own:region", .run = own_run, .scratch_bytes = own_scratch
    };
    region->custom = custom;
    return &region->compiled;
}

static KilnCompiled *
compile(const KilnDeclaration *declaration, Asked *asked, const KilnTarget *target, int threads,
        GError **error)
{
    g_autoptr(GError) why = NULL;
    KilnCompiled *compiled = target->vendor
                                 ? kiln_kernel_cache_get_at(target, declaration->body, number_of,
                                                            asked, threads, NULL, &why)
                                 : NULL;
    if (compiled || !why || g_error_matches(why, KILN_ERROR, KILN_ERROR_UNSUPPORTED))
        return compiled ? compiled : compile_own(declaration, asked, target, threads, error);
    g_propagate_error(error, g_steal_pointer(&why));
    return NULL;
}

KilnCompiled *
kiln_regions_get(KilnRegions *regions, const KilnDeclaration *declaration,
                 const KilnDimBinding *numbers, const KilnTarget *target, int threads,
                 GError **error)
{
    pthread_mutex_lock(&regions->lock);
    KilnCompiled *compiled = look_up(regions, declaration, numbers);
    if (!compiled) {
        Asked asked = { numbers, 0 };
        compiled = compile(declaration, &asked, target, threads, error);
        if (compiled) {
            Entry entry = { declaration, asked.names, g_new(int64_t, (gsize)numbers->n + 1),
                            compiled };
            for (uint32_t i = 0; i < numbers->n; i++)
                entry.numbers[i] = numbers->names[i].number;
            add(regions, &entry);
        } else {
            kiln_prefix_error(error, "@%s: ", declaration->name);
        }
    }
    pthread_mutex_unlock(&regions->lock);
    return compiled;
}

size_t
kiln_regions_bytes(const KilnRegions *regions)
{
    return regions->bytes;
}

/* --- packed weights --- */

uint32_t
kiln_regions_form(const KilnCompiled *compiled)
{
    size_t size = 0;
    const void *data =
        compiled && compiled->packing ? g_bytes_get_data(compiled->packing, &size) : NULL;
    return (uint32_t)kiln_digest(data, size).low;
}
