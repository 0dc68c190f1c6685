/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome traces: steps of the command (loading, each pass application, running) and, where a
 * session was profiled, its instructions and the bytes of the arena that live while they run. Steps
 * and instructions run one after the other, so that one ends where the next begins. */
#include "tools/trace.h"

#include "graph/base/json_writer.h"
#include "graph/binding.h"
#include "kiln.h"
#include "passes/manager/draws.h"
#include "runtime/session.h"

struct KilnTrace {
    gint64 start; /* us */
    GString *text;
    KilnJson json; /* in the array of events */
    char *open;    /* name of the step that is open; NULL: none */
    const char *category;
    gint64 since; /* us */
};

enum {
    THREAD_STEPS = 1,
    THREAD_INSTRUCTIONS = 2,
};

/* Kinds of events. */
static const char COMPLETE[] = "X", COUNTER[] = "C";

KilnTrace *
kiln_trace_new(void)
{
    KilnTrace *trace = g_new0(KilnTrace, 1);
    trace->start = g_get_monotonic_time();
    trace->text = g_string_new(NULL);
    trace->json = (KilnJson){ .out = trace->text };
    kiln_json_object(&trace->json, NULL);
    kiln_json_array(&trace->json, "traceEvents");
    return trace;
}

void
kiln_trace_free(KilnTrace *trace)
{
    if (!trace)
        return;
    g_string_free(trace->text, TRUE);
    g_free(trace->open);
    g_free(trace);
}

/* Begins an event from @start on, in microseconds. */
static void
begin_event(KilnJson *json, const char *name, const char *category, const char *kind, double start)
{
    kiln_json_object(json, NULL);
    kiln_json_string(json, "name", name);
    kiln_json_string(json, "cat", category);
    kiln_json_string(json, "ph", kind);
    kiln_json_int(json, "pid", 1);
    kiln_json_number(json, "ts", start);
}

void
kiln_trace_step(KilnTrace *trace, const char *category, const char *name)
{
    if (!trace)
        return;
    gint64 now = g_get_monotonic_time();
    if (trace->open) {
        KilnJson *json = &trace->json;
        begin_event(json, trace->open, trace->category, COMPLETE,
                    (double)(trace->since - trace->start));
        kiln_json_int(json, "tid", THREAD_STEPS);
        kiln_json_number(json, "dur", (double)(now - trace->since));
        kiln_json_end_object(json);
    }
    g_free(trace->open);
    trace->open = g_strdup(name);
    trace->category = category;
    trace->since = now;
}

/* A point of the track of live bytes. */
static void
add_live(KilnJson *json, double at_us, int64_t bytes)
{
    begin_event(json, "live bytes", "memory", COUNTER, at_us);
    kiln_json_object(json, "args");
    kiln_json_int(json, "bytes", bytes);
    kiln_json_end_object(json);
    kiln_json_end_object(json);
}

static void
add_instruction(KilnJson *json, const KilnProfileEntry *entry, double at_us, double us)
{
    begin_event(json, entry->node, entry->instruction, COMPLETE, at_us);
    kiln_json_int(json, "tid", THREAD_INSTRUCTIONS);
    kiln_json_number(json, "dur", us);
    kiln_json_object(json, "args");
    kiln_json_string(json, "kernel", entry->kernel);
    kiln_json_int(json, "flops", entry->flops);
    kiln_json_int(json, "bytes", entry->bytes);
    kiln_json_end_object(json);
    kiln_json_end_object(json);
}

/* Around the instructions of a run. */
static void
add_numbers(KilnJson *json, double at_us, double us, const KilnDimBinding *numbers)
{
    g_autofree char *name = kiln_binding_to_string(numbers);
    begin_event(json, name, "dims", COMPLETE, at_us);
    kiln_json_int(json, "tid", THREAD_INSTRUCTIONS);
    kiln_json_number(json, "dur", us);
    kiln_json_object(json, "args");
    for (uint32_t i = 0; i < numbers->n; i++)
        kiln_json_int(json, numbers->names[i].name, numbers->names[i].number);
    kiln_json_end_object(json);
    kiln_json_end_object(json);
}

void
kiln_trace_session(KilnTrace *trace, KilnSession *session, const KilnDimBinding *numbers)
{
    unsigned n;
    const KilnProfileEntry *const *entries = kiln_session_profile(session, &n);
    double at = (double)(g_get_monotonic_time() - trace->start), total = 0;
    for (unsigned i = 0; i < n; i++)
        total += entries[i]->runs ? entries[i]->ms * 1e3 / (double)entries[i]->runs : 0;
    at = MAX(at - total, 0); /* the run is just over */
    if (numbers->n)
        add_numbers(&trace->json, at, total, numbers);
    for (unsigned i = 0; i < n; i++) {
        double us = entries[i]->runs ? entries[i]->ms * 1e3 / (double)entries[i]->runs : 0;
        add_instruction(&trace->json, entries[i], at, us);
        add_live(&trace->json, at, entries[i]->live_bytes);
        at += us;
    }
    if (n)
        add_live(&trace->json, at, 0);
}

gboolean
kiln_trace_write(KilnTrace *trace, const char *path, GError **error)
{
    kiln_trace_step(trace, NULL, NULL);
    kiln_json_end_array(&trace->json);
    kiln_json_string(&trace->json, "displayTimeUnit", "ms");
    kiln_json_end_object(&trace->json);
    return kiln_write_result(path, trace->text->str, trace->text->len, error);
}
