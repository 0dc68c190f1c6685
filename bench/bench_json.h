/* SPDX-License-Identifier: Apache-2.0 */
/* Writes results in the schema of Google Benchmark, which its compare.py and similar tools read. */
#ifndef KILN_BENCH_BENCH_JSON_H
#define KILN_BENCH_BENCH_JSON_H

#include <json-glib/json-glib.h>

/** Returns `context`: date, host, processors, build. */
JsonObject *bench_json_context(const char *executable);
/** Returns an entry of `benchmarks`. @real_time and @cpu_time are milliseconds per iteration. The
 * caller adds counters. */
JsonObject *bench_json_entry(const char *name, int threads, gint64 iterations, double real_time,
                             double cpu_time);
/** Writes {context, benchmarks} to @path ("-": standard output; NULL: nowhere). Takes ownership of
 * both. On an error it returns FALSE and prints to standard error. */
gboolean bench_json_write(const char *path, JsonObject *context, JsonArray *benchmarks);

#endif
