/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome traces: steps of the command (loading, each pass application, running) and, where a
 * session was profiled, its instructions and the bytes of the arena that live while they run. Steps
 * and instructions run one after the other, so that one ends where the next begins. */
#include "tools/trace.h"

#include "graph/binding.h"
#include "kiln.h"
#include "passes/manager/draws.h"
#include "runtime/session.h"

#include <string.h>

struct KilnTrace {
    gint64 start; /* us */
    JsonArray *events;
    char *open; /* name of the step that is open; NULL: none */
    const char *category;
    gint64 since; /* us */
};

enum {
    THREAD_STEPS = 1,
    THREAD_INSTRUCTIONS = 2,
};

KilnTrace *
kiln_trace_new(void)
{
    KilnTrace *trace = g_new0(KilnTrace, 1);
    trace->start = g_get_monotonic_time();
    trace->events = json_array_new();
    return trace;
}

void
kiln_trace_free(KilnTrace *trace)
{
    if (!trace)
        return;
    json_array_unref(trace->events);
    g_free(trace->open);
    g_free(trace);
}

static JsonObject *
event_new(const char *name, const char *category, int thread)
{
    JsonObject *event = json_object_new();
    json_object_set_string_member(event, "name", name);
    json_object_set_string_member(event, "cat", category);
    json_object_set_string_member(event, "ph", "X");
    json_object_set_int_member(event, "pid", 1);
    json_object_set_int_member(event, "tid", thread);
    return event;
}

static void
set_times(JsonObject *event, double start_us, double us)
{
    json_object_set_double_member(event, "ts", start_us);
    json_object_set_double_member(event, "dur", us);
}

void
kiln_trace_step(KilnTrace *trace, const char *category, const char *name)
{
    if (!trace)
        return;
    gint64 now = g_get_monotonic_time();
    if (trace->open) {
        JsonObject *event = event_new(trace->open, trace->category, THREAD_STEPS);
        set_times(event, (double)(trace->since - trace->start), (double)(now - trace->since));
        json_array_add_object_element(trace->events, event);
    }
    g_free(trace->open);
    trace->open = g_strdup(name);
    trace->category = category;
    trace->since = now;
}

/* A point of the track of live bytes. */
static void
add_live(KilnTrace *trace, double at_us, int64_t bytes)
{
    JsonObject *event = json_object_new(), *args = json_object_new();
    json_object_set_int_member(args, "bytes", bytes);
    json_object_set_string_member(event, "name", "live bytes");
    json_object_set_string_member(event, "cat", "memory");
    json_object_set_string_member(event, "ph", "C");
    json_object_set_int_member(event, "pid", 1);
    json_object_set_double_member(event, "ts", at_us);
    json_object_set_object_member(event, "args", args);
    json_array_add_object_element(trace->events, event);
}

/* Around the instructions of a run. */
static void
add_numbers(KilnTrace *trace, double at_us, double us, const KilnDimBinding *numbers)
{
    g_autofree char *name = kiln_binding_to_string(numbers);
    JsonObject *event = event_new(name, "dims", THREAD_INSTRUCTIONS);
    JsonObject *args = json_object_new();
    for (uint32_t i = 0; i < numbers->n; i++)
        json_object_set_int_member(args, numbers->names[i].name, numbers->names[i].number);
    set_times(event, at_us, us);
    json_object_set_object_member(event, "args", args);
    json_array_add_object_element(trace->events, event);
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
        add_numbers(trace, at, total, numbers);
    for (unsigned i = 0; i < n; i++) {
        double us = entries[i]->runs ? entries[i]->ms * 1e3 / (double)entries[i]->runs : 0;
        JsonObject *event =
            event_new(entries[i]->node, entries[i]->instruction, THREAD_INSTRUCTIONS);
        set_times(event, at, us);
        JsonObject *args = json_object_new();
        json_object_set_string_member(args, "kernel", entries[i]->kernel);
        json_object_set_int_member(args, "flops", entries[i]->flops);
        json_object_set_int_member(args, "bytes", entries[i]->bytes);
        json_object_set_object_member(event, "args", args);
        json_array_add_object_element(trace->events, event);
        add_live(trace, at, entries[i]->live_bytes);
        at += us;
    }
    if (n)
        add_live(trace, at, 0);
}

gboolean
kiln_trace_write(KilnTrace *trace, const char *path, GError **error)
{
    kiln_trace_step(trace, NULL, NULL);
    JsonObject *root = json_object_new();
    json_object_set_array_member(root, "traceEvents", json_array_ref(trace->events));
    json_object_set_string_member(root, "displayTimeUnit", "ms");
    g_autofree char *text = kiln_json_text(root, false);
    return kiln_write_result(path, text, strlen(text), error);
}
