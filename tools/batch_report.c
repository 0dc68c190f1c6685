/* SPDX-License-Identifier: Apache-2.0 */
/* What a batch says: a bar while it runs, then what failed and how many there were. */
#include "tools/batch.h"

#include "graph/base/json_writer.h"
#include "graph/base/write_file.h"

#include <stdio.h>

enum {
    BAR = 20,   /* cells */
    SHOWN = 10, /* failures; the file has all of them */
};

static double
per_second(const KilnBatchCounts *counts)
{
    return counts->seconds > 0 ? (counts->done + counts->failed) / counts->seconds : 0;
}

void
kiln_batch_show(KilnOptions *options, const KilnBatchCounts *counts, unsigned n)
{
    unsigned over = counts->done + counts->failed + counts->skipped;
    double fraction = (double)over / n, speed = per_second(counts);
    char bar[BAR + 1];
    for (unsigned i = 0; i < BAR; i++)
        bar[i] = i < (unsigned)(fraction * BAR) ? '#' : '.';
    bar[BAR] = '\0';
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_printf(text, "[%s] %u of %u", bar, over, n);
    if (counts->failed)
        g_string_append_printf(text, ", %u failed", counts->failed);
    if (speed > 0)
        g_string_append_printf(text, ", %.1f/s, %.0f s left", speed, (n - over) / speed);
    kiln_show_line(options, fraction, text->str);
}

/* A table with a head line. It is there after each batch, so that it never tells of another one. */
static gboolean
write_failures(const KilnBatch *batch, GError **error)
{
    g_autoptr(GString) text = g_string_new("input\tresult\terror\n");
    for (guint i = 0; i < batch->items->len; i++) {
        const KilnBatchItem *item = g_ptr_array_index(batch->items, i);
        if (!item->failure)
            continue;
        g_autofree char *name = kiln_one_line(item->name), *result = kiln_one_line(item->result),
                        *failure = kiln_one_line(item->failure);
        g_string_append_printf(text, "%s\t%s\t%s\n", name, result, failure);
    }
    g_autofree char *path = kiln_batch_failures_path(batch);
    return kiln_file_write(path, text->str, text->len, error);
}

static void
list_failures(const KilnBatch *batch, unsigned failed)
{
    unsigned shown = 0;
    for (guint i = 0; i < batch->items->len && shown < SHOWN; i++) {
        const KilnBatchItem *item = g_ptr_array_index(batch->items, i);
        if (!item->failure)
            continue;
        g_autofree char *line = kiln_one_line(item->failure);
        fprintf(stderr, "kiln run: %s\n", line);
        shown++;
    }
    if (failed > shown) {
        g_autofree char *path = kiln_batch_failures_path(batch);
        fprintf(stderr, "kiln run: %u more in %s\n", failed - shown, path);
    }
}

static gboolean
print_json(const KilnBatch *batch, const KilnBatchCounts *counts, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    KilnJson json = kiln_report_begin(text);
    kiln_json_int(&json, "inputs", batch->items->len);
    kiln_json_int(&json, "done", counts->done);
    kiln_json_int(&json, "skipped", counts->skipped);
    kiln_json_int(&json, "failed", counts->failed);
    kiln_json_bool(&json, "stopped", counts->signal != 0);
    kiln_json_number(&json, "seconds", counts->seconds);
    kiln_json_number(&json, "files_per_second", per_second(counts));
    kiln_json_array(&json, "failures");
    for (guint i = 0; i < batch->items->len; i++) {
        const KilnBatchItem *item = g_ptr_array_index(batch->items, i);
        if (!item->failure)
            continue;
        kiln_json_object(&json, NULL);
        kiln_json_string(&json, "input", item->name);
        kiln_json_string(&json, "result", item->result);
        kiln_json_string(&json, "error", item->failure);
        kiln_json_end_object(&json);
    }
    kiln_json_end_array(&json);
    return kiln_report_print(&json, error);
}

gboolean
kiln_batch_report(const KilnBatch *batch, const KilnBatchCounts *counts, GError **error)
{
    if (!write_failures(batch, error))
        return FALSE;
    list_failures(batch, counts->failed);
    if (batch->options->json)
        return print_json(batch, counts, error);
    printf("%u inputs: %u done, %u skipped, %u failed, %.2f s, %.1f files/s\n", batch->items->len,
           counts->done, counts->skipped, counts->failed, counts->seconds, per_second(counts));
    return TRUE;
}
