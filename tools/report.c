/* SPDX-License-Identifier: Apache-2.0 */
/* How commands talk: progress on terminals, JSON documents. */
#include "passes/context/report.h"
#include "tools/command.h"

#include "graph/base/write_file.h"
#include "graph/grow/reserve.h"
#include "passes/rule.h"
#include "tools/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SCHEMA_VERSION = 1, /* of what --json prints */
    QUIET_MS = 500,     /* work that is over sooner shows nothing */
    STEP_MS = 100,
    COLUMNS = 80,   /* of terminals that do not say */
    PERCENTAGE = 6, /* "100 % " */
};

/* As much of @text as one row of the terminal holds behind the percentage: what wraps could not be
 * rewritten. */
static char *
one_row(const char *text)
{
    struct winsize size = { 0 };
    glong columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
    glong room = MAX((columns ? columns : COLUMNS) - PERCENTAGE - 1, 0);
    g_autofree char *line = kiln_one_line(text);
    g_autofree char *valid = g_utf8_make_valid(line, -1);
    return g_utf8_substring(valid, 0, MIN(g_utf8_strlen(valid, -1), room));
}

void
kiln_show_line(KilnOptions *options, double fraction, const char *what)
{
    KilnProgress *progress = &options->progress;
    gint64 now = g_get_monotonic_time() / 1000;
    if (!progress->started)
        progress->started = now;
    if (options->quiet || !isatty(STDERR_FILENO) || now - progress->started < QUIET_MS ||
        now - progress->shown < STEP_MS)
        return;
    progress->shown = now;
    g_autofree char *line = one_row(what);
    fprintf(stderr, "\r\033[K%3d %% %s", (int)(fraction * 100), line);
    fflush(stderr);
}

gboolean
kiln_show_progress(double fraction, const char *what, void *data)
{
    KilnOptions *options = data;
    kiln_trace_step(options->progress.trace, "pass", what);
    kiln_show_line(options, fraction, what);
    return TRUE;
}

void
kiln_clear_progress(KilnOptions *options)
{
    if (options->progress.shown)
        fputs("\r\033[K", stderr);
    options->progress.shown = 0;
}

KilnJson
kiln_report_begin(GString *text)
{
    KilnJson json = { .out = text, .pretty = true };
    kiln_json_object(&json, NULL);
    kiln_json_int(&json, "schema_version", SCHEMA_VERSION);
    return json;
}

gboolean
kiln_report_print(KilnJson *json, GError **error)
{
    kiln_json_end_object(json);
    g_string_append_c(json->out, '\n');
    return kiln_write_result("-", json->out->str, json->out->len, error);
}

char *
kiln_one_line(const char *text)
{
    return kiln_error_escape(text, false);
}

char *
kiln_printable(const char *text)
{
    return kiln_error_escape(text, true);
}

bool
kiln_is_stdout(const char *path)
{
    return strcmp(path, "-") == 0;
}

gboolean
kiln_write_result(const char *path, const void *data, size_t size, GError **error)
{
    if (kiln_is_stdout(path)) {
        if (!kiln_reserve_check_lost(error))
            return FALSE;
        fwrite(data, 1, size, stdout);
        return TRUE;
    }
    fflush(stdout); /* in order, where @path is another name of it */
    return kiln_file_write(path, data, size, error);
}

/* The directory of @path without links; NULL where there is none. */
static char *
real_directory(const char *path)
{
    char *real = path ? realpath(path, NULL) : NULL;
    char *directory = real ? g_path_get_dirname(real) : NULL;
    free(real);
    return directory;
}

/* Where a text will stand that goes to standard output or into what @path links to: in a file
 * that has a name, there. Else nobody knows, and it is to be put beside the model. */
static char *
text_directory(const char *path, const KilnModule *module)
{
    const char *opened = kiln_is_stdout(path) ? "/proc/self/fd/1" : path;
    struct stat status;
    bool named = stat(opened, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink;
    return real_directory(named ? opened : module->path);
}

gboolean
kiln_write_text(const char *path, const KilnModule *module, const KilnIRModule *ir, bool alone,
                GError **error)
{
    /* Beside a device or pipe no file can lie, nor beside a link of the system to an open file. */
    bool beside = !alone && !kiln_is_stdout(path) && kiln_file_has_place(path);
    g_autofree char *data_path = beside ? g_strconcat(path, ".bin", NULL) : NULL;
    g_autofree char *data_name = beside ? g_path_get_basename(data_path) : NULL;
    g_autoptr(GByteArray) data = beside ? g_byte_array_new() : NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *directory =
        beside || alone ? NULL : text_directory(path, ir ? ir->module : module);
    KilnPrintOptions print = { .data_name = data_name, .data = data, .directory = directory };
    if (!(ir ? kiln_ir_module_print(ir, &print, text, error)
             : kiln_module_print(module, &print, text, error)))
        return FALSE;
    if (!data || !data->len)
        return kiln_write_result(path, text->str, text->len, error);
    const KilnFileContent files[] = { { data_path, data->data, data->len },
                                      { path, text->str, text->len } };
    return kiln_files_write(files, G_N_ELEMENTS(files), error);
}

/* What the runs of a pass themselves added or removed. */
static void
print_cost(const KilnUnitCost *delta)
{
    if (delta->flops)
        fprintf(stderr, "        %+.6g MFLOP\n", (double)delta->flops * 1e-6);
    if (delta->constant_bytes)
        fprintf(stderr, "        %+" G_GINT64_FORMAT " bytes of constants\n",
                delta->constant_bytes);
}

static void
print_total(const KilnPassReport *report)
{
    const KilnPassStats *first = g_ptr_array_index(report->passes, 0);
    const KilnUnitCost *before = &first->cost_before, *after = &report->cost;
    fprintf(stderr,
            "%.6g MFLOP and %" G_GINT64_FORMAT
            " bytes of constants before, %.6g and %" G_GINT64_FORMAT " after\n",
            (double)before->flops * 1e-6, before->constant_bytes, (double)after->flops * 1e-6,
            after->constant_bytes);
}

/* What was refused, where the pass says it. */
static void
print_subjects(const KilnRuleStats *rule)
{
    for (guint i = 0; i < rule->refusals->len; i++) {
        const KilnRefusal *refusal = g_ptr_array_index(rule->refusals, i);
        for (guint k = 0; refusal->subjects && k < refusal->subjects->len; k++)
            fprintf(stderr, "            %s: %s\n", refusal->guard,
                    (const char *)g_ptr_array_index(refusal->subjects, k));
    }
}

static void
print_rules(const KilnPassStats *pass)
{
    for (guint r = 0; r < pass->rules->len; r++) {
        const KilnRuleStats *rule = g_ptr_array_index(pass->rules, r);
        fprintf(stderr, "        %-24s fired %u", rule->name, rule->fired);
        for (guint i = 0; i < rule->refusals->len; i++) {
            const KilnRefusal *refusal = g_ptr_array_index(rule->refusals, i);
            fprintf(stderr, "%s%s %u", i ? ", " : ", refused by ", refusal->guard, refusal->count);
        }
        fputc('\n', stderr);
        print_subjects(rule);
    }
}

void
kiln_print_pass_table(const KilnPassReport *report, bool rules)
{
    fprintf(stderr, "%-5s  %-22s %5s %8s %8s %8s %6s %9s\n", "level", "pass", "runs", "changed",
            "before", "after", "delta", "ms");
    double ms = 0;
    for (guint i = 0; i < report->passes->len; i++) {
        const KilnPassStats *pass = g_ptr_array_index(report->passes, i);
        fprintf(stderr,
                "%-5s  %-22s %5u %8u %8" G_GINT64_FORMAT " %8" G_GINT64_FORMAT " %6" G_GINT64_FORMAT
                " %9.3f\n",
                pass->level == KILN_LEVEL_GRAPH ? "graph" : "ir", pass->id, pass->runs,
                pass->changed, pass->nodes_before, pass->nodes_after, pass->delta, pass->ms);
        ms += pass->ms;
        if (rules)
            print_rules(pass);
        if (rules)
            print_cost(&pass->cost_delta);
    }
    fprintf(stderr, "%u applications, %.3f ms\n", report->applications, ms);
    if (rules && report->measured && report->passes->len)
        print_total(report);
}
