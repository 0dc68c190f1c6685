/* SPDX-License-Identifier: Apache-2.0 */
/* Chrome traces: the JSON that chrome://tracing and Perfetto open. Instructions run one after the
 * other, so that each event starts where the one before it ended. */
#include "tools/trace.h"

#include <string.h>

gboolean
kiln_trace_write(const char *path, KilnSession *session, GError **error)
{
    unsigned n;
    const KilnProfileEntry *entries = kiln_session_profile(session, &n);
    JsonArray *events = json_array_new();
    double start_us = 0;
    for (unsigned i = 0; i < n; i++) {
        double us = entries[i].runs ? entries[i].ms * 1e3 / (double)entries[i].runs : 0;
        JsonObject *event = json_object_new(), *args = json_object_new();
        json_object_set_string_member(event, "name", entries[i].node);
        json_object_set_string_member(event, "cat", entries[i].instruction);
        json_object_set_string_member(event, "ph", "X");
        json_object_set_int_member(event, "pid", 1);
        json_object_set_int_member(event, "tid", 1);
        json_object_set_double_member(event, "ts", start_us);
        json_object_set_double_member(event, "dur", us);
        json_object_set_string_member(args, "kernel", entries[i].kernel);
        json_object_set_int_member(args, "flops", entries[i].flops);
        json_object_set_int_member(args, "bytes", entries[i].bytes);
        json_object_set_object_member(event, "args", args);
        json_array_add_object_element(events, event);
        start_us += us;
    }
    JsonObject *root = json_object_new();
    json_object_set_array_member(root, "traceEvents", events);
    json_object_set_string_member(root, "displayTimeUnit", "ms");
    JsonNode *node = json_node_init_object(json_node_alloc(), root);
    json_object_unref(root);
    g_autofree char *text = json_to_string(node, FALSE);
    json_node_unref(node);
    g_autoptr(GError) inner = NULL;
    if (!g_file_set_contents(path, text, (gssize)strlen(text), &inner))
        return kiln_throw(error, KILN_ERROR_IO, "%s: cannot be written: %s", path, inner->message);
    return TRUE;
}
