/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins in C: operators for all models, and the functions that plug-ins call (names/names.c). */
#include "graph/error.h"
#include "graph/onnx/plugin/plugins.h"
#include "kiln.h"
#include "python/src/objects.h"
#include "python/src/state.h"

#include <dlfcn.h>
#include <pthread.h>

/* --- functions for plug-ins --- */

static char problem[256]; /* "": there is none */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Both libraries stay open for ever: plug-ins with operators do so, too. */
static void
open_names(void)
{
    Dl_info here;
    void *extension = dladdr((void *)(uintptr_t)kiln_plugin_show_functions, &here) && here.dli_fname
                          ? dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD)
                          : NULL;
    g_autofree char *folder = extension ? g_path_get_dirname(here.dli_fname) : g_strdup("");
    g_autofree char *path = g_build_filename(folder, "_names.so", NULL);
    void *names = extension ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    const char *(*set)(void *) = NULL;
    if (names)
        *(void **)&set = dlsym(names, "kiln_names_set");
    const char *missing = set ? set(extension) : NULL;
    const char *why = set ? NULL : dlerror();
    if (!set)
        g_strlcpy(problem, why ? why : "the extension was not found", sizeof problem);
    else if (missing)
        g_snprintf(problem, sizeof problem, "%s: the extension has no %s", path, missing);
}

gboolean
kiln_plugin_show_functions(GError **error)
{
    pthread_once(&once, open_names);
    return !*problem || kiln_throw(error, KILN_ERROR_PIPELINE, "%s", problem);
}

/* --- operators --- */

PyObject *
kiln_py_load_plugin(KilnPyState *state, PyObject *path)
{
    PyObject *text, *encoded;
    if (!kiln_py_path(path, &text, &encoded))
        return NULL;
    GError *error = NULL;
    gboolean good = kiln_op_load_plugin(PyBytes_AsString(encoded), &error);
    PyObject *result =
        good ? kiln_py_support(state, "note_plugin", "(O)", text) : kiln_py_raise(state, error);
    Py_DECREF(text);
    Py_DECREF(encoded);
    return result;
}
