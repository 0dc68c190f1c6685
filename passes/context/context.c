/* SPDX-License-Identifier: Apache-2.0 */
/* The context of a pass: options, flags, notes, refusals and guards. */
#include "passes/context/context.h"

#include "exec/eval.h"

#include <string.h>

const KilnPassInfo *
kiln_pass_running(const KilnPassContext *context)
{
    return context->pass;
}

const void *
kiln_pass_options(const KilnPassContext *context)
{
    return context->pass_options;
}

const KilnTarget *
kiln_pass_target(const KilnPassContext *context)
{
    return context->options->target;
}

bool
kiln_pass_target_has(const KilnPassContext *context, const KilnNode *node)
{
    const KilnTarget *target = kiln_pass_target(context);
    if (!target)
        return false;
    KilnTarget own = *target;
    own.fallback = NULL;
    return kiln_target_supports(&own, node, NULL);
}

int
kiln_pass_threads(const KilnPassContext *context)
{
    return MAX(context->options->threads, 1);
}

KilnMode
kiln_pass_mode(const KilnPassContext *context)
{
    return context->options->mode;
}

bool
kiln_pass_prefers_memory(const KilnPassContext *context)
{
    return context->options->prefer_memory;
}

bool
kiln_pass_one_algorithm(const KilnPassContext *context)
{
    return context->options->one_algorithm;
}

bool
kiln_pass_allows(const KilnPassContext *context, uint32_t flags)
{
    return (context->flags & flags) == flags;
}

const KilnMemoryPlan *
kiln_pass_liveness(const KilnPassContext *context)
{
    return context->liveness;
}

void
kiln_pass_widen(KilnPassContext *context, KilnNumerics numerics)
{
    context->numerics = MAX(context->numerics, numerics);
}

void
kiln_pass_evaluated(KilnPassContext *context, KilnNumerics elsewhere)
{
    context->elsewhere = MAX(context->elsewhere, elsewhere);
}

/* --- counting --- */

static KilnRuleStats *
rule_stats(KilnPassContext *context, const char *rule)
{
    if (!context->stats)
        return NULL;
    GPtrArray *rules = context->stats->rules;
    for (guint i = 0; i < rules->len; i++) {
        KilnRuleStats *stats = g_ptr_array_index(rules, i);
        if (strcmp(stats->name, rule) == 0)
            return stats;
    }
    KilnRuleStats *stats = g_new0(KilnRuleStats, 1);
    stats->name = g_strdup(rule);
    stats->refusals = g_ptr_array_new();
    g_ptr_array_add(rules, stats);
    return stats;
}

static bool
is_logged(const KilnPassContext *context)
{
    return context->options->log_rewrites && context->options->log;
}

static void
log_line(const KilnPassContext *context, const char *rule, const char *what)
{
    const KilnPassOptions *options = context->options;
    if (!is_logged(context))
        return;
    g_autofree char *line =
        g_strdup_printf("%s: %s: %s\n", context->pass ? context->pass->id : "rules", rule, what);
    options->log(line, options->data);
}

void
kiln_pass_remark(KilnPassContext *context, const char *rule, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);
    log_line(context, rule, what);
}

void
kiln_pass_note(KilnPassContext *context, const char *rule, const char *format, ...)
{
    KilnRuleStats *stats = rule_stats(context, rule);
    if (stats) {
        stats->fired++;
        stats->last_fired = context->implicit ? stats->last_fired : context->application;
    }
    if (context->implicit && !is_logged(context))
        return; /* nobody reads it, and what dies is much */
    va_list args;
    va_start(args, format);
    g_autofree char *what = g_strdup_vprintf(format, args);
    va_end(args);
    log_line(context, rule, what);
    if (context->implicit)
        return;
    char **slot = &context->recent[context->n_recent++ % KILN_RECENT_MAX];
    g_free(*slot);
    *slot = g_strconcat(rule, ": ", what, NULL);
}

void
kiln_pass_about(KilnPassContext *context, const KilnNode *node, int64_t bytes)
{
    context->subject = node;
    context->subject_bytes = bytes;
}

/* "%e (expand): 8000000 bytes", once however often a pass runs. */
static void
note_subject(const KilnPassContext *context, KilnRefusal *refusal)
{
    if (!context->subject)
        return;
    char *what =
        g_strdup_printf("%s (%s): %" G_GINT64_FORMAT " bytes", kiln_node_label(context->subject),
                        kiln_op_info(context->subject->op)->name, context->subject_bytes);
    if (!refusal->subjects) {
        refusal->subjects = g_ptr_array_new_with_free_func(g_free);
        refusal->seen = g_hash_table_new(g_str_hash, g_str_equal);
    }
    if (g_hash_table_contains(refusal->seen, what)) {
        g_free(what);
        return;
    }
    g_hash_table_add(refusal->seen, what);
    g_ptr_array_add(refusal->subjects, what);
}

/* @guard, as long as @context is not cleared. */
static const char *
intern(KilnPassContext *context, const char *guard)
{
    if (!context->refusals)
        context->refusals = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    gpointer kept = g_hash_table_lookup(context->refusals, guard);
    if (!kept) {
        kept = g_strdup(guard);
        g_hash_table_insert(context->refusals, kept, kept);
    }
    return kept;
}

void
kiln_pass_refuse(KilnPassContext *context, const char *rule, const char *guard)
{
    context->last_refusal = intern(context, guard);
    KilnRuleStats *stats = rule_stats(context, rule);
    if (!stats)
        return;
    for (guint i = 0; i < stats->refusals->len; i++) {
        KilnRefusal *refusal = g_ptr_array_index(stats->refusals, i);
        if (strcmp(refusal->guard, guard) == 0) {
            refusal->count++;
            note_subject(context, refusal);
            return;
        }
    }
    KilnRefusal *refusal = g_new0(KilnRefusal, 1);
    refusal->guard = g_strdup(guard);
    refusal->count = 1;
    note_subject(context, refusal);
    g_ptr_array_add(stats->refusals, refusal);
}

/* True where @disabled is "rule/guard". */
static bool
names_guard(const char *disabled, const char *rule, const char *guard)
{
    size_t length = strlen(rule);
    return strncmp(disabled, rule, length) == 0 && disabled[length] == '/' &&
           strcmp(disabled + length + 1, guard) == 0;
}

bool
kiln_pass_guard(KilnPassContext *context, const char *rule, const char *guard, bool holds)
{
    const char *disabled = context->options->disabled_guard;
    if (holds || (disabled && names_guard(disabled, rule, guard)))
        return true;
    kiln_pass_refuse(context, rule, guard);
    return false;
}

const char *
kiln_pass_last_refusal(const KilnPassContext *context)
{
    return context->last_refusal;
}

/* --- the last rewrites --- */

void
kiln_pass_context_clear_recent(KilnPassContext *context)
{
    for (uint32_t i = 0; i < KILN_RECENT_MAX; i++)
        g_clear_pointer(&context->recent[i], g_free);
    context->n_recent = 0;
    context->last_refusal = NULL;
    g_clear_pointer(&context->refusals, g_hash_table_unref);
}

char *
kiln_pass_context_recent(const KilnPassContext *context)
{
    if (context->n_recent == 0)
        return g_strdup("none were noted");
    GString *text = g_string_new(NULL);
    uint32_t kept = MIN(context->n_recent, (uint32_t)KILN_RECENT_MAX);
    for (uint32_t i = context->n_recent - kept; i != context->n_recent; i++)
        g_string_append_printf(text, "%s%s", text->len ? "; " : "",
                               context->recent[i % KILN_RECENT_MAX]);
    return g_string_free(text, FALSE);
}
