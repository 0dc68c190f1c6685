/* SPDX-License-Identifier: Apache-2.0 */
/* Opens libkiln with local symbols, as an interpreter opens a module, and loads a plug-in.
 *   open_locally LIBKILN.so PLUGIN.so */
#include <dlfcn.h>
#include <stdio.h>

typedef void *(*New)(void);
typedef int (*LoadPlugin)(void *pipeline, const char *path, void *error);
typedef void (*Unref)(void *pipeline);

static void *
find(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    if (!symbol)
        fprintf(stderr, "%s\n", dlerror());
    return symbol;
}

int
main(int argc, char **argv)
{
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "%s\n", argc == 3 ? dlerror() : "expected LIBKILN PLUGIN");
        return 1;
    }
    New pipeline_new = (New)find(library, "kiln_pipeline_new");
    LoadPlugin load_plugin = (LoadPlugin)find(library, "kiln_pipeline_load_plugin");
    Unref unref = (Unref)find(library, "kiln_pipeline_unref");
    if (!pipeline_new || !load_plugin || !unref)
        return 1;
    void *pipeline = pipeline_new();
    int loaded = load_plugin(pipeline, argv[2], NULL);
    if (!loaded)
        fprintf(stderr, "%s: was not loaded\n", argv[2]);
    unref(pipeline);
    return !loaded;
}
