/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a run goes. */
#include "tools/profile.h"

#include <stdio.h>
#include <string.h>

/* Of one run. */
static double
ms_of(const KilnProfileEntry *entry)
{
    return entry->runs ? entry->ms / (double)entry->runs : 0;
}

static double
per_ns(int64_t amount, double ms)
{
    return ms > 0 ? (double)amount / (ms * 1e6) : 0;
}

static int
slowest_first(gconstpointer a, gconstpointer b, gpointer data)
{
    const KilnProfileEntry *entries = data;
    unsigned i = *(const unsigned *)a, k = *(const unsigned *)b;
    double left = ms_of(&entries[i]), right = ms_of(&entries[k]);
    return left != right ? (left < right ? 1 : -1) : (i > k) - (i < k);
}

/* Numbers 0 to @n - 1 of @entries, the slowest first. */
static unsigned *
order_of(const KilnProfileEntry *entries, unsigned n)
{
    unsigned *order = g_new0(unsigned, n + 1);
    for (unsigned i = 0; i < n; i++)
        order[i] = i;
    g_qsort_with_data(order, (gint)n, sizeof *order, slowest_first, (gpointer)entries);
    return order;
}

static void
print_entry(const KilnProfileEntry *entry, double total)
{
    double ms = ms_of(entry);
    g_autofree char *node = kiln_one_line(entry->node);
    fprintf(stderr, "%9.4f %5.1f %9.2f %8.2f  %-20s %-26s %s\n", ms,
            total > 0 ? 100 * ms / total : 0, per_ns(entry->flops, ms), per_ns(entry->bytes, ms),
            entry->instruction, entry->kernel, node);
}

/* Entries of one kind of instruction as one, in order of their first; `kernel` says how many. */
static GArray *
sum_kinds(const KilnProfileEntry *entries, unsigned n)
{
    GArray *kinds = g_array_new(FALSE, FALSE, sizeof(KilnProfileEntry));
    g_autofree unsigned *counts = g_new0(unsigned, n + 1);
    for (unsigned i = 0; i < n; i++) {
        guint k = 0;
        while (k < kinds->len && strcmp(g_array_index(kinds, KilnProfileEntry, k).instruction,
                                        entries[i].instruction) != 0)
            k++;
        if (k == kinds->len) {
            KilnProfileEntry none = { .instruction = entries[i].instruction,
                                      .node = "",
                                      .runs = 1 };
            g_array_append_val(kinds, none);
        }
        KilnProfileEntry *kind = &g_array_index(kinds, KilnProfileEntry, k);
        kind->ms += ms_of(&entries[i]);
        kind->flops += entries[i].flops;
        kind->bytes += entries[i].bytes;
        counts[k]++;
    }
    for (guint k = 0; k < kinds->len; k++)
        g_array_index(kinds, KilnProfileEntry, k).kernel = g_strdup_printf("x %u", counts[k]);
    return kinds;
}

static void
print_kinds(const KilnProfileEntry *entries, unsigned n, double total)
{
    g_autoptr(GArray) kinds = sum_kinds(entries, n);
    KilnProfileEntry *sums = (KilnProfileEntry *)kinds->data;
    g_autofree unsigned *order = order_of(sums, kinds->len);
    for (guint k = 0; k < kinds->len; k++)
        print_entry(&sums[order[k]], total);
    for (guint k = 0; k < kinds->len; k++)
        g_free((char *)sums[k].kernel);
}

void
kiln_profile_print(KilnSession *session, double run_ms, bool quiet)
{
    unsigned n;
    const KilnProfileEntry *entries = kiln_session_profile(session, &n);
    g_autofree unsigned *order = order_of(entries, n);
    double total = 0;
    for (unsigned i = 0; i < n; i++)
        total += ms_of(&entries[i]);
    fprintf(stderr, "%9s %5s %9s %8s  %-20s %-26s %s\n", "ms", "%", "GFLOP/s", "GB/s",
            "instruction", "kernel", "node");
    for (unsigned i = 0; i < n && !quiet; i++)
        print_entry(&entries[order[i]], total);
    if (!quiet)
        fprintf(stderr, "\n");
    print_kinds(entries, n, total);
    fprintf(stderr, "%9.4f ms in %u instructions, of %.4f ms of a run\n", total, n, run_ms);
}

JsonArray *
kiln_profile_json(KilnSession *session)
{
    unsigned n;
    const KilnProfileEntry *entries = kiln_session_profile(session, &n);
    JsonArray *array = json_array_new();
    for (unsigned i = 0; i < n; i++) {
        JsonObject *entry = json_object_new();
        json_object_set_string_member(entry, "instruction", entries[i].instruction);
        json_object_set_string_member(entry, "node", entries[i].node);
        json_object_set_string_member(entry, "kernel", entries[i].kernel);
        json_object_set_double_member(entry, "ms", ms_of(&entries[i]));
        json_object_set_int_member(entry, "flops", entries[i].flops);
        json_object_set_int_member(entry, "bytes", entries[i].bytes);
        json_object_set_int_member(entry, "live_bytes", entries[i].live_bytes);
        json_array_add_object_element(array, entry);
    }
    return array;
}
