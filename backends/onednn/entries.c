/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/onednn/entries.h"

#if defined(__GLIBC__) || defined(__linux__)
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))

#if defined(__x86_64__)
#define IS_IMPORT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#else
#define IS_IMPORT(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#endif

enum {
    MAX_ENTRIES = 16
};

typedef _Atomic(KilnEntryFn) Slot;

typedef struct {
    uintptr_t base, top;       /* of the library */
    uintptr_t begin, end;      /* pages that are made read-only once it is loaded */
    const ElfW(Dyn) * dynamic; /* NULL: not found */
    uintptr_t of;
} Library;

static uintptr_t
page_of(uintptr_t at)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return at / page * page;
}

static int
look_at(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    Library *library = data;
    Library found = { .base = info->dlpi_addr, .of = library->of };
    bool is_it = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD) {
            is_it |= library->of >= at && library->of < at + part->p_memsz;
            found.top = at + part->p_memsz > found.top ? at + part->p_memsz : found.top;
        }
        if (part->p_type == PT_DYNAMIC)
            found.dynamic = (const ElfW(Dyn) *)at;
        if (part->p_type == PT_GNU_RELRO) {
            found.begin = at;
            found.end = page_of(at + part->p_memsz);
        }
    }
    if (is_it)
        *library = found;
    return is_it;
}

static uintptr_t
dynamic_value(const Library *library, ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *d = library->dynamic; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == tag)
            return d->d_un.d_ptr;
    }
    return 0;
}

/* Slots of @entries among the relocations of @size bytes at @at. */
static void
find_slots(const Library *library, uintptr_t at, uintptr_t size, const KilnEntry *entries, size_t n,
           Slot **out)
{
    const ElfW(Sym) *symbols = (const ElfW(Sym) *)dynamic_value(library, DT_SYMTAB);
    const char *names = (const char *)dynamic_value(library, DT_STRTAB);
    const ElfW(Rela) *first = (const ElfW(Rela) *)at, *end = first + size / sizeof *first;
    for (const ElfW(Rela) *r = first; r < end; r++) {
        if (!IS_IMPORT(ELF64_R_TYPE(r->r_info)))
            continue;
        const char *name = names + symbols[ELF64_R_SYM(r->r_info)].st_name;
        for (size_t i = 0; i < n; i++) {
            if (strcmp(name, entries[i].name) == 0)
                out[i] = (Slot *)(library->base + r->r_offset);
        }
    }
}

static bool
protect(uintptr_t begin, uintptr_t end, int how)
{
    begin = page_of(begin);
    end = page_of(end - 1) + (uintptr_t)sysconf(_SC_PAGESIZE);
    return mprotect((void *)begin, end - begin, how) == 0;
}

static bool
is_sealed(const Library *library, const Slot *slot)
{
    return (uintptr_t)slot >= library->begin && (uintptr_t)slot < library->end;
}

/* What a slot leads to. Before its first call it leads back into the library, to code that looks
 * the function up and writes the slot. */
static KilnEntryFn
target_of(const Library *library, const Slot *slot, const char *name)
{
    KilnEntryFn fn = atomic_load(slot);
    bool found = (uintptr_t)fn < library->base || (uintptr_t)fn >= library->top;
    if (!found)
        *(void **)&fn = dlsym(RTLD_DEFAULT, name);
    return fn;
}

/* Other threads may call through a slot at any time: it changes at once. */
static bool
write_slots(const Library *library, const KilnEntry *entries, size_t n, Slot *const *slots)
{
    bool good = true;
    for (size_t i = 0; good && i < n; i++) {
        uintptr_t at = (uintptr_t)slots[i];
        if (is_sealed(library, slots[i]))
            good = protect(at, at + sizeof *slots[i], PROT_READ | PROT_WRITE);
    }
    for (size_t i = 0; good && i < n; i++) {
        *entries[i].out_before = target_of(library, slots[i], entries[i].name);
        good = *entries[i].out_before != NULL;
    }
    for (size_t i = 0; good && i < n; i++)
        atomic_store(slots[i], entries[i].fn);
    for (size_t i = 0; i < n; i++) {
        uintptr_t at = (uintptr_t)slots[i];
        if (is_sealed(library, slots[i]))
            protect(at, at + sizeof *slots[i], PROT_READ);
    }
    return good;
}

bool
kiln_entries_replace(KilnEntryFn of, const KilnEntry *entries, size_t n)
{
    Library own = { .of = (uintptr_t)kiln_entries_replace };
    Library library = { .of = (uintptr_t)of };
    Slot *slots[MAX_ENTRIES] = { NULL };
    if (n > MAX_ENTRIES || !dl_iterate_phdr(look_at, &library) || !library.dynamic ||
        !dl_iterate_phdr(look_at, &own) || own.base == library.base)
        return false;
    if (dynamic_value(&library, DT_PLTREL) != DT_RELA || !dynamic_value(&library, DT_SYMTAB))
        return false;
    find_slots(&library, dynamic_value(&library, DT_JMPREL), dynamic_value(&library, DT_PLTRELSZ),
               entries, n, slots);
    find_slots(&library, dynamic_value(&library, DT_RELA), dynamic_value(&library, DT_RELASZ),
               entries, n, slots);
    for (size_t i = 0; i < n; i++) {
        if (!slots[i])
            return false;
    }
    return write_slots(&library, entries, n, slots);
}

#else

bool
kiln_entries_replace(KilnEntryFn of, const KilnEntry *entries, size_t n)
{
    (void)of;
    (void)entries;
    (void)n;
    return false;
}

#endif
