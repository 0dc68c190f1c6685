/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of a pipeline run, and their JSON form. */
#include "passes/context/report.h"

#include "graph/base/json_writer.h"

#include <string.h>

enum {
    SCHEMA_VERSION = 1
};

static void
refusal_free(gpointer data)
{
    KilnRefusal *refusal = data;
    g_free(refusal->guard);
    g_clear_pointer(&refusal->seen, g_hash_table_unref);
    g_clear_pointer(&refusal->subjects, g_ptr_array_unref);
    g_free(refusal);
}

static void
rule_free(gpointer data)
{
    KilnRuleStats *rule = data;
    g_ptr_array_set_free_func(rule->refusals, refusal_free);
    g_ptr_array_unref(rule->refusals);
    g_free(rule->name);
    g_free(rule);
}

static void
stats_free(gpointer data)
{
    KilnPassStats *stats = data;
    g_ptr_array_unref(stats->rules);
    g_free((char *)stats->id);
    g_free(stats);
}

KilnPassReport *
kiln_pass_report_new(void)
{
    KilnPassReport *report = g_new0(KilnPassReport, 1);
    report->passes = g_ptr_array_new_with_free_func(stats_free);
    return report;
}

void
kiln_pass_report_free(KilnPassReport *report)
{
    if (!report)
        return;
    g_ptr_array_unref(report->passes);
    g_free(report->last_application);
    g_free(report);
}

KilnPassStats *
kiln_pass_report_stats(KilnPassReport *report, const KilnPassInfo *pass)
{
    for (guint i = 0; i < report->passes->len; i++) {
        KilnPassStats *stats = g_ptr_array_index(report->passes, i);
        if (stats->level == pass->level && strcmp(stats->id, pass->id) == 0)
            return stats;
    }
    KilnPassStats *stats = g_new0(KilnPassStats, 1);
    stats->id = g_strdup(pass->id); /* the report may outlive the plug-in that names the pass */
    stats->level = pass->level;
    stats->rules = g_ptr_array_new_with_free_func(rule_free);
    g_ptr_array_add(report->passes, stats);
    return stats;
}

/* --- as JSON --- */

/* `refusals: [{guard, what}]`, where a pass names what it refused. */
static void
add_subjects(KilnJson *json, const KilnRuleStats *rule)
{
    kiln_json_array(json, "refusals");
    for (guint i = 0; i < rule->refusals->len; i++) {
        const KilnRefusal *refusal = g_ptr_array_index(rule->refusals, i);
        for (guint k = 0; refusal->subjects && k < refusal->subjects->len; k++) {
            kiln_json_object(json, NULL);
            kiln_json_string(json, "guard", refusal->guard);
            kiln_json_string(json, "what", g_ptr_array_index(refusal->subjects, k));
            kiln_json_end_object(json);
        }
    }
    kiln_json_end_array(json);
}

static void
add_rule(KilnJson *json, const KilnRuleStats *rule)
{
    kiln_json_object(json, rule->name);
    kiln_json_int(json, "fired", rule->fired);
    kiln_json_object(json, "refused");
    for (guint i = 0; i < rule->refusals->len; i++) {
        const KilnRefusal *refusal = g_ptr_array_index(rule->refusals, i);
        kiln_json_int(json, refusal->guard, refusal->count);
    }
    kiln_json_end_object(json);
    add_subjects(json, rule);
    kiln_json_end_object(json);
}

static void
add_pass(KilnJson *json, const KilnPassStats *stats, bool measured)
{
    kiln_json_object(json, NULL);
    kiln_json_string(json, "name", stats->id);
    kiln_json_string(json, "level", stats->level == KILN_LEVEL_GRAPH ? "graph" : "ir");
    kiln_json_int(json, "runs", stats->runs);
    kiln_json_int(json, "changed", stats->changed);
    kiln_json_number(json, "ms", stats->ms);
    kiln_json_object(json, "rules");
    for (guint i = 0; i < stats->rules->len; i++)
        add_rule(json, g_ptr_array_index(stats->rules, i));
    kiln_json_end_object(json);
    kiln_json_int(json, "nodes_before", stats->nodes_before);
    kiln_json_int(json, "nodes_after", stats->nodes_after);
    kiln_json_int(json, "delta", stats->delta);
    if (measured) {
        kiln_json_int(json, "flops_before", stats->cost_before.flops);
        kiln_json_int(json, "flops_after", stats->cost_after.flops);
        kiln_json_int(json, "flops_delta", stats->cost_delta.flops);
        kiln_json_int(json, "constant_bytes_before", stats->cost_before.constant_bytes);
        kiln_json_int(json, "constant_bytes_after", stats->cost_after.constant_bytes);
        kiln_json_int(json, "constant_bytes_delta", stats->cost_delta.constant_bytes);
    }
    kiln_json_end_object(json);
}

char *
kiln_pass_report_to_json(const KilnPassReport *report)
{
    g_autoptr(GString) text = g_string_new(NULL);
    KilnJson json = { .out = text, .pretty = true };
    kiln_json_object(&json, NULL);
    kiln_json_int(&json, "schema_version", SCHEMA_VERSION);
    kiln_json_array(&json, "passes");
    for (guint i = 0; i < report->passes->len; i++)
        add_pass(&json, g_ptr_array_index(report->passes, i), report->measured);
    kiln_json_end_array(&json);
    kiln_json_end_object(&json);
    return g_string_free(g_steal_pointer(&text), FALSE);
}
