/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench_road.h"

#include "bench/bench_stats.h"
#include "graph/onnx/onnx.h"
#include "graph/text/text.h"
#include "kiln.h"

#include <glib/gstdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *
bench_road_name(BenchRoadStage stage)
{
    static const char *const names[BENCH_ROAD_N] = {
        "print", "parse", "export", "import", "compile", "save", "load", "session",
    };
    return names[stage];
}

/* Seconds since @begin, which becomes now. */
static double
lap(double *begin)
{
    double before = *begin;
    *begin = bench_cpu_now();
    return *begin - before;
}

static gboolean
walk_text(const KilnModule *module, double *seconds, GBytes **out_text, GError **error)
{
    GString *text = g_string_new(NULL);
    g_autofree char *directory = module->path ? g_path_get_dirname(module->path) : NULL;
    char *real = directory ? realpath(directory, NULL) : NULL;
    const KilnPrintOptions options = { .directory = real };
    double at = bench_cpu_now();
    gboolean ok = kiln_module_print(module, &options, text, error);
    seconds[BENCH_ROAD_PRINT] = lap(&at);
    g_autoptr(KilnModule) parsed =
        ok ? kiln_module_parse(text->str, text->len, module->path, error) : NULL;
    free(real);
    seconds[BENCH_ROAD_PARSE] = lap(&at);
    *out_text = g_string_free_to_bytes(text);
    return parsed != NULL;
}

static gboolean
walk_onnx(const KilnModule *module, double *seconds, GError **error)
{
    g_autoptr(GByteArray) proto = g_byte_array_new();
    double at = bench_cpu_now();
    if (!kiln_onnx_export(module, proto, error))
        return FALSE;
    seconds[BENCH_ROAD_EXPORT] = lap(&at);
    g_autoptr(GBytes) bytes = g_byte_array_free_to_bytes(g_steal_pointer(&proto));
    at = bench_cpu_now();
    g_autoptr(KilnModule) imported = kiln_onnx_import(bytes, NULL, error);
    seconds[BENCH_ROAD_IMPORT] = lap(&at);
    return imported != NULL;
}

static gboolean
walk_program(KilnModel *model, const char *path, bool open, double *seconds, GError **error)
{
    double at = bench_cpu_now();
    g_autoptr(KilnProgram) program = kiln_program_compile(model, NULL, error);
    if (!program)
        return FALSE;
    seconds[BENCH_ROAD_COMPILE] = lap(&at);
    if (open)
        return TRUE;
    if (!kiln_program_save(program, path, error))
        return FALSE;
    seconds[BENCH_ROAD_SAVE] = lap(&at);
    g_autoptr(KilnProgram) loaded = kiln_program_load(path, NULL, error);
    if (!loaded)
        return FALSE;
    seconds[BENCH_ROAD_LOAD] = lap(&at);
    g_autoptr(KilnSession) session = kiln_session_new(loaded, NULL, error);
    seconds[BENCH_ROAD_SESSION] = lap(&at);
    return session != NULL;
}

gboolean
bench_road(const KilnModule *module, bool open, double seconds[BENCH_ROAD_N], GError **error)
{
    for (unsigned i = 0; i < BENCH_ROAD_N; i++)
        seconds[i] = -1;
    g_autoptr(GBytes) text = NULL;
    if (!walk_text(module, seconds, &text, error) || !walk_onnx(module, seconds, error))
        return FALSE;
    g_autofree char *path = NULL;
    int file = g_file_open_tmp("kiln-bench-XXXXXX", &path, error);
    if (file < 0)
        return FALSE;
    close(file);
    g_autoptr(KilnModel) model = kiln_model_load_bytes(text, "printed", error);
    gboolean ok = model && walk_program(model, path, open, seconds, error);
    g_unlink(path);
    return ok;
}
