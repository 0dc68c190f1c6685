/* SPDX-License-Identifier: Apache-2.0 */
/* The names of Kiln's functions for plug-ins, which link to nothing of Kiln and find its functions
 * among the global symbols.
 *
 * Python opens the extension with local symbols. If those became global, so would the symbols of
 * all libraries that it needs, and other packages of the process would call them instead of their
 * own. So this library has the names alone. It is opened with global symbols, and each name stands
 * for the function of the extension: the dynamic linker calls its resolver when a plug-in is
 * opened. The address is the function's own one, so that nothing is slower. */
#include <dlfcn.h>
#include <stddef.h>

typedef void (*Function)(void);

enum {
#define X(name) AT_##name,
#include "names.inc"
#undef X
    N_NAMES
};

static void *functions[N_NAMES];

/** Finds the functions in @library, a handle of dlopen(). Returns the name of one that is missing,
 * or NULL. Call it before plug-ins are opened. */
__attribute__((visibility("default"))) const char *kiln_names_set(void *library);

const char *
kiln_names_set(void *library)
{
    static const char *const names[] = {
#define X(name) #name,
#include "names.inc"
#undef X
    };
    for (size_t i = 0; i < N_NAMES; i++) {
        functions[i] = dlsym(library, names[i]);
        if (!functions[i])
            return names[i];
    }
    return NULL;
}

#define X(name)                                                                                    \
    __attribute__((used)) static Function resolve_##name(void)                                     \
    {                                                                                              \
        return (Function)functions[AT_##name];                                                     \
    }                                                                                              \
    __attribute__((visibility("default"), ifunc("resolve_" #name))) void name(void);
#include "names.inc"
