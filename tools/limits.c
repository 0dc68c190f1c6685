/* SPDX-License-Identifier: Apache-2.0 */
/* Options that limit the memory, time and nodes of a model, and --untrusted. */
#include "tools/command.h"

#include "graph/base/beside.h"
#include "graph/base/budget.h"
#include "graph/error.h"
#include "passes/pipeline/pipeline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void
kiln_limits_add(GOptionContext *context, KilnOptions *options)
{
    const GOptionEntry entries[] = {
        { "untrusted", 0, 0, G_OPTION_ARG_NONE, &options->untrusted,
          "Set all three limits, and read only one ONNX file, for a model that you do not trust",
          NULL },
        { "memory-limit", 0, 0, G_OPTION_ARG_STRING, &options->memory_limit,
          "Limit the bytes of tensors, weights and arena: 512M, 2G (--untrusted: 1G)", "BYTES" },
        { "time-limit", 0, 0, G_OPTION_ARG_STRING, &options->time_limit,
          "Limit the time of the whole command (--untrusted: 10)", "SECONDS" },
        { "node-limit", 0, 0, G_OPTION_ARG_INT64, &options->node_limit,
          "Limit the nodes and constants of the model (--untrusted: 50000)", "N" },
        G_OPTION_ENTRY_NULL,
    };
    GOptionGroup *group =
        g_option_group_new("limits", "Limits for models that you do not trust (default: none):",
                           "Limits for models of strangers", NULL, NULL);
    g_option_group_add_entries(group, entries);
    g_option_context_add_group(context, group);
}

/* A number with the suffix K, M, G or T, which are powers of 1024, or none. */
static bool
parse_bytes(const char *text, int64_t *out)
{
    const char *suffixes = "KMGT";
    char *end;
    errno = 0;
    *out = g_ascii_strtoll(text, &end, 10);
    const char *suffix = *end ? strchr(suffixes, g_ascii_toupper(*end)) : NULL;
    int shift = suffix ? 10 * (int)(suffix - suffixes + 1) : 0;
    bool good = end != text && !errno && *out > 0 && *out <= INT64_MAX >> shift;
    *out = good ? *out << shift : 0;
    return good && end[suffix != NULL] == '\0';
}

static bool
parse_seconds(const char *text, int64_t *out_ms)
{
    const double most = 1e9;
    char *end;
    double seconds = g_ascii_strtod(text, &end);
    bool good = end != text && !*end && seconds > 0 && seconds <= most;
    *out_ms = good ? (int64_t)ceil(seconds * 1e3) : 0;
    return good;
}

gboolean
kiln_limits_parse(const KilnOptions *options, KilnLimits *out, GError **error)
{
    const KilnLimits untrusted = { KILN_UNTRUSTED_BYTES, KILN_UNTRUSTED_NODES, KILN_UNTRUSTED_MS };
    *out = options->untrusted ? untrusted : (KilnLimits){ 0 };
    if (options->memory_limit && !parse_bytes(options->memory_limit, &out->bytes))
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--memory-limit: expected a number of bytes above 0 such as 512M or 2G, "
                          "found %s",
                          options->memory_limit);
    if (options->time_limit && !parse_seconds(options->time_limit, &out->ms))
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--time-limit: expected a number of seconds above 0, found %s",
                          options->time_limit);
    if (options->node_limit == KILN_NO_LIMIT)
        return TRUE;
    if (options->node_limit <= 0)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--node-limit: expected 1 or more, found %" G_GINT64_FORMAT,
                          options->node_limit);
    out->nodes = options->node_limit;
    return TRUE;
}

/* --- files --- */

/* The real path of the folder that @operand is, or is in; NULL where there is none. */
static char *
folder_of(const char *operand)
{
    g_autofree char *real = realpath(operand, NULL);
    if (!real || g_file_test(real, G_FILE_TEST_IS_DIR))
        return g_steal_pointer(&real);
    return g_path_get_dirname(real);
}

static gboolean
check_pipeline(const char *pipeline, char **operands, GError **error)
{
    g_autofree char *real = kiln_pipeline_shipped(pipeline) ? NULL : realpath(pipeline, NULL);
    for (char **operand = operands; real && operand && *operand; operand++) {
        g_autofree char *folder = folder_of(*operand);
        if (folder && kiln_beside_name(folder, real))
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "--untrusted: expected a pipeline that did not come with the model, "
                              "found %s beside %s",
                              pipeline, *operand);
    }
    return TRUE;
}

gboolean
kiln_limits_check_files(const KilnOptions *options, char **operands, GError **error)
{
    if (!options->untrusted)
        return TRUE;
    if (options->plugins && *options->plugins)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--untrusted: expected no plug-in, found --load-plugin %s",
                          *options->plugins);
    for (char **pipeline = options->pipelines; pipeline && *pipeline; pipeline++) {
        if (!check_pipeline(*pipeline, operands, error))
            return FALSE;
    }
    return TRUE;
}

KilnModelOptions
kiln_limits_model_options(const KilnOptions *options)
{
    KilnModelOptions model = KILN_MODEL_OPTIONS_INIT;
    /* The limits are those of the whole command. */
    model.onnx_only = model.no_external_data = options->untrusted;
    model.accept_newer_opsets = options->newer_opsets;
    return model;
}
