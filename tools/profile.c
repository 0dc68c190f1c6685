/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a run goes. */
#include "tools/trace.h"

#include "graph/base/json_writer.h"
#include "graph/binding.h"
#include "kiln.h"
#include "passes/manager/draws.h"
#include "runtime/session.h"
#include "tools/command.h"

#include <stdio.h>
#include <string.h>

/* Of one run. */
static double
ms_of(const KilnProfileEntry *entry)
{
    return entry->runs ? entry->ms / (double)entry->runs : 0;
}

/* In one run: more than one in a loop. */
static double
calls_of(const KilnProfileEntry *entry)
{
    return entry->runs ? (double)entry->calls / (double)entry->runs : 0;
}

static double
per_ns(int64_t amount, double ms)
{
    return ms > 0 ? (double)amount / (ms * 1e6) : 0;
}

static int
slowest_first(gconstpointer a, gconstpointer b, gpointer data)
{
    const KilnProfileEntry *const *entries = data;
    unsigned i = *(const unsigned *)a, k = *(const unsigned *)b;
    double left = ms_of(entries[i]), right = ms_of(entries[k]);
    return left != right ? (left < right ? 1 : -1) : (i > k) - (i < k);
}

/* Numbers 0 to @n - 1 of @entries, the slowest first. */
static unsigned *
order_of(const KilnProfileEntry *const *entries, unsigned n)
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
    double ms = ms_of(entry), calls = calls_of(entry);
    g_autofree char *node = kiln_one_line(entry->node);
    g_autofree char *times = calls == 1 ? g_strdup("") : g_strdup_printf(", %.9g times", calls);
    fprintf(stderr, "%9.4f %5.1f %9.2f %8.2f  %-20s %-26s %s%s\n", ms,
            total > 0 ? 100 * ms / total : 0, per_ns(entry->flops, ms), per_ns(entry->bytes, ms),
            entry->instruction, entry->kernel, node, times);
}

static void
free_kind(gpointer data)
{
    KilnProfileEntry *kind = data;
    g_free((char *)kind->kernel);
    g_free(kind);
}

/* KilnProfileEntry*: entries of one kind of instruction as one, in order of their first; `kernel`
 * says how many. */
static GPtrArray *
sum_kinds(const KilnProfileEntry *const *entries, unsigned n)
{
    GPtrArray *kinds = g_ptr_array_new_with_free_func(free_kind);
    g_autofree unsigned *counts = g_new0(unsigned, n + 1);
    for (unsigned i = 0; i < n; i++) {
        KilnProfileEntry *kind = NULL;
        guint k = 0;
        for (; k < kinds->len; k++) {
            kind = g_ptr_array_index(kinds, k);
            if (strcmp(kind->instruction, entries[i]->instruction) == 0)
                break;
        }
        if (k == kinds->len) {
            kind = g_new0(KilnProfileEntry, 1);
            *kind = (KilnProfileEntry){
                .instruction = entries[i]->instruction, .node = "", .runs = 1, .calls = 1
            };
            g_ptr_array_add(kinds, kind);
        }
        kind->ms += ms_of(entries[i]);
        kind->flops += entries[i]->flops;
        kind->bytes += entries[i]->bytes;
        counts[k]++;
    }
    for (guint k = 0; k < kinds->len; k++)
        ((KilnProfileEntry *)g_ptr_array_index(kinds, k))->kernel =
            g_strdup_printf("x %u", counts[k]);
    return kinds;
}

static void
print_entries(const KilnProfileEntry *const *entries, unsigned n, double total)
{
    g_autofree unsigned *order = order_of(entries, n);
    for (unsigned i = 0; i < n; i++)
        print_entry(entries[order[i]], total);
}

void
kiln_profile_print(KilnSession *session, double run_ms, const KilnDimBinding *numbers, bool quiet)
{
    unsigned n;
    const KilnProfileEntry *const *entries = kiln_session_profile(session, &n);
    g_autoptr(GPtrArray) kinds = sum_kinds(entries, n);
    double total = 0;
    for (unsigned i = 0; i < n; i++)
        total += ms_of(entries[i]);
    fprintf(stderr, "%9s %5s %9s %8s  %-20s %-26s %s\n", "ms", "%", "GFLOP/s", "GB/s",
            "instruction", "kernel", "node");
    if (!quiet) {
        print_entries(entries, n, total);
        fprintf(stderr, "\n");
    }
    print_entries((const KilnProfileEntry *const *)kinds->pdata, kinds->len, total);
    g_autofree char *text = kiln_binding_to_string(numbers);
    g_autofree char *with = *text ? kiln_one_line(text) : NULL;
    fprintf(stderr, "%9.4f ms in %u instructions, of %.4f ms of a run%s%s\n", total, n, run_ms,
            with ? " with " : "", with ? with : "");
}

void
kiln_profile_write(KilnJson *json, const char *key, KilnSession *session)
{
    unsigned n;
    const KilnProfileEntry *const *entries = kiln_session_profile(session, &n);
    kiln_json_array(json, key);
    for (unsigned i = 0; i < n; i++) {
        kiln_json_object(json, NULL);
        kiln_json_string(json, "instruction", entries[i]->instruction);
        kiln_json_string(json, "node", entries[i]->node);
        kiln_json_string(json, "kernel", entries[i]->kernel);
        kiln_json_number(json, "ms", ms_of(entries[i]));
        kiln_json_number(json, "calls", calls_of(entries[i]));
        kiln_json_int(json, "flops", entries[i]->flops);
        kiln_json_int(json, "bytes", entries[i]->bytes);
        kiln_json_int(json, "live_bytes", entries[i]->live_bytes);
        kiln_json_end_object(json);
    }
    kiln_json_end_array(json);
}
