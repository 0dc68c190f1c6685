/* SPDX-License-Identifier: Apache-2.0 */
/* Results in the schema of Google Benchmark. */
#include "bench/bench_json.h"

#include "graph/base/write_file.h"
#include "kiln.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

JsonObject *
bench_json_context(const char *executable)
{
    JsonObject *context = json_object_new();
    g_autoptr(GDateTime) now = g_date_time_new_now_local();
    g_autofree char *date = g_date_time_format_iso8601(now);
    json_object_set_string_member(context, "date", date);
    json_object_set_string_member(context, "host_name", g_get_host_name());
    json_object_set_string_member(context, "executable", executable);
    json_object_set_int_member(context, "num_cpus", sysconf(_SC_NPROCESSORS_ONLN));
    json_object_set_int_member(context, "mhz_per_cpu", 0);
    json_object_set_boolean_member(context, "cpu_scaling_enabled", FALSE);
    json_object_set_array_member(context, "caches", json_array_new());
    double load[3] = { 0 };
    JsonArray *loads = json_array_new();
    for (int i = 0; i < getloadavg(load, 3); i++)
        json_array_add_double_element(loads, load[i]);
    json_object_set_array_member(context, "load_avg", loads);
    json_object_set_string_member(context, "library_version", kiln_build_info());
#ifdef NDEBUG
    json_object_set_string_member(context, "library_build_type", "release");
#else
    json_object_set_string_member(context, "library_build_type", "debug");
#endif
    return context;
}

JsonObject *
bench_json_entry(const char *name, int threads, gint64 iterations, double real_time,
                 double cpu_time)
{
    JsonObject *entry = json_object_new();
    json_object_set_string_member(entry, "name", name);
    json_object_set_string_member(entry, "run_name", name);
    json_object_set_string_member(entry, "run_type", "iteration");
    json_object_set_int_member(entry, "repetitions", 1);
    json_object_set_int_member(entry, "repetition_index", 0);
    json_object_set_int_member(entry, "threads", threads);
    json_object_set_int_member(entry, "iterations", iterations);
    json_object_set_double_member(entry, "real_time", real_time);
    json_object_set_double_member(entry, "cpu_time", cpu_time);
    json_object_set_string_member(entry, "time_unit", "ms");
    return entry;
}

gboolean
bench_json_write(const char *path, JsonObject *context, JsonArray *benchmarks)
{
    JsonObject *root = json_object_new();
    json_object_set_object_member(root, "context", context);
    json_object_set_array_member(root, "benchmarks", benchmarks);
    JsonNode *node = json_node_init_object(json_node_alloc(), root);
    json_object_unref(root);
    g_autofree char *text = json_to_string(node, TRUE);
    json_node_unref(node);
    if (!path)
        return TRUE;
    if (strcmp(path, "-") == 0) {
        puts(text);
        return TRUE;
    }
    g_autoptr(GError) error = NULL;
    if (kiln_file_write(path, text, strlen(text), &error))
        return TRUE;
    fprintf(stderr, "%s\n", error->message);
    return FALSE;
}
