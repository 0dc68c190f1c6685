/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of a pipeline run, and their JSON form. */
#include "passes/context/report.h"

#include <json-glib/json-glib.h>
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
add_subjects(JsonBuilder *json, const KilnRuleStats *rule)
{
    json_builder_set_member_name(json, "refusals");
    json_builder_begin_array(json);
    for (guint i = 0; i < rule->refusals->len; i++) {
        const KilnRefusal *refusal = g_ptr_array_index(rule->refusals, i);
        for (guint k = 0; refusal->subjects && k < refusal->subjects->len; k++) {
            json_builder_begin_object(json);
            json_builder_set_member_name(json, "guard");
            json_builder_add_string_value(json, refusal->guard);
            json_builder_set_member_name(json, "what");
            json_builder_add_string_value(json, g_ptr_array_index(refusal->subjects, k));
            json_builder_end_object(json);
        }
    }
    json_builder_end_array(json);
}

static void
add_rule(JsonBuilder *json, const KilnRuleStats *rule)
{
    json_builder_set_member_name(json, rule->name);
    json_builder_begin_object(json);
    json_builder_set_member_name(json, "fired");
    json_builder_add_int_value(json, rule->fired);
    json_builder_set_member_name(json, "refused");
    json_builder_begin_object(json);
    for (guint i = 0; i < rule->refusals->len; i++) {
        const KilnRefusal *refusal = g_ptr_array_index(rule->refusals, i);
        json_builder_set_member_name(json, refusal->guard);
        json_builder_add_int_value(json, refusal->count);
    }
    json_builder_end_object(json);
    add_subjects(json, rule);
    json_builder_end_object(json);
}

static void
add_int(JsonBuilder *json, const char *name, int64_t value)
{
    json_builder_set_member_name(json, name);
    json_builder_add_int_value(json, value);
}

static void
add_pass(JsonBuilder *json, const KilnPassStats *stats, bool measured)
{
    json_builder_begin_object(json);
    json_builder_set_member_name(json, "name");
    json_builder_add_string_value(json, stats->id);
    json_builder_set_member_name(json, "level");
    json_builder_add_string_value(json, stats->level == KILN_LEVEL_GRAPH ? "graph" : "ir");
    add_int(json, "runs", stats->runs);
    add_int(json, "changed", stats->changed);
    json_builder_set_member_name(json, "ms");
    json_builder_add_double_value(json, stats->ms);
    json_builder_set_member_name(json, "rules");
    json_builder_begin_object(json);
    for (guint i = 0; i < stats->rules->len; i++)
        add_rule(json, g_ptr_array_index(stats->rules, i));
    json_builder_end_object(json);
    add_int(json, "nodes_before", stats->nodes_before);
    add_int(json, "nodes_after", stats->nodes_after);
    add_int(json, "delta", stats->delta);
    if (measured) {
        add_int(json, "flops_before", stats->cost_before.flops);
        add_int(json, "flops_after", stats->cost_after.flops);
        add_int(json, "flops_delta", stats->cost_delta.flops);
        add_int(json, "constant_bytes_before", stats->cost_before.constant_bytes);
        add_int(json, "constant_bytes_after", stats->cost_after.constant_bytes);
        add_int(json, "constant_bytes_delta", stats->cost_delta.constant_bytes);
    }
    json_builder_end_object(json);
}

char *
kiln_pass_report_to_json(const KilnPassReport *report)
{
    g_autoptr(JsonBuilder) json = json_builder_new();
    json_builder_begin_object(json);
    add_int(json, "schema_version", SCHEMA_VERSION);
    json_builder_set_member_name(json, "passes");
    json_builder_begin_array(json);
    for (guint i = 0; i < report->passes->len; i++)
        add_pass(json, g_ptr_array_index(report->passes, i), report->measured);
    json_builder_end_array(json);
    json_builder_end_object(json);
    g_autoptr(JsonNode) root = json_builder_get_root(json);
    return json_to_string(root, TRUE);
}
