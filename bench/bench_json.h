/* SPDX-License-Identifier: Apache-2.0 */
/* Results in the schema of Google Benchmark, so that its compare.py and the tools around it read
 * them. */
#ifndef KILN_BENCH_BENCH_JSON_H
#define KILN_BENCH_BENCH_JSON_H

#include <json-glib/json-glib.h>

/** `context`: date, host, processors, build. */
JsonObject *bench_json_context(const char *executable);
/** One entry of `benchmarks`: @real_time and @cpu_time are milliseconds per iteration. Counters are
 * added by the caller. */
JsonObject *bench_json_entry(const char *name, int threads, gint64 iterations, double real_time,
                             double cpu_time);
/** Writes {context, benchmarks} to @path ("-": standard output; NULL: nowhere); takes both over.
 * FALSE and a message on standard error. */
gboolean bench_json_write(const char *path, JsonObject *context, JsonArray *benchmarks);

#endif
