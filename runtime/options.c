/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of the C interface that have a size: callers of other versions of the library pass other
 * sizes. */
#include "runtime/options.h"

#include "graph/base/budget.h"
#include "graph/error.h"

#include <string.h>

/* No version has larger structs: whoever passes more has left the size unset. */
#define MAX_STRUCT 4096

static gboolean
read_size(const KilnStructKind *kind, const void *given, size_t *size, GError **error)
{
    memcpy(size, given, sizeof *size);
    return (*size >= sizeof *size && *size <= MAX_STRUCT) ||
           kiln_throw(error, KILN_ERROR_USAGE,
                      "%s: expected a size, found %zu: initialize the struct with %s", kind->type,
                      *size, kind->init);
}

gboolean
kiln_options_copy(const KilnStructKind *kind, const void *given, void *out, GError **error)
{
    size_t size;
    if (!read_size(kind, given, &size, error))
        return FALSE;
    if (size > kind->size)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "%s: expected a size of at most %zu, found %zu: the caller was built for "
                          "a later version of Kiln, or did not use %s",
                          kind->type, kind->size, size, kind->init);
    memset(out, 0, kind->size);
    memcpy(out, given, size);
    memcpy(out, &kind->size, sizeof kind->size);
    return TRUE;
}

gboolean
kiln_report_copy(const KilnStructKind *kind, const void *from, void *out, GError **error)
{
    size_t size;
    if (!read_size(kind, out, &size, error))
        return FALSE;
    memset(out, 0, size);
    memcpy(out, from, MIN(size, kind->size));
    memcpy(out, &size, sizeof size);
    return TRUE;
}

/* --- limits --- */

gboolean
kiln_limit_check(const char *what, int64_t limit, GError **error)
{
    return limit >= 0 || kiln_throw(error, KILN_ERROR_USAGE,
                                    "%s: expected 0 or more, found %" G_GINT64_FORMAT, what, limit);
}

gboolean
kiln_limits_check(const KilnLimits *limits, GError **error)
{
    return kiln_limit_check("total limit", limits->bytes, error) &&
           kiln_limit_check("node limit", limits->nodes, error) &&
           kiln_limit_check("time limit", limits->ms, error);
}

void
kiln_model_options_untrusted(KilnModelOptions *options)
{
    options->total_limit = KILN_UNTRUSTED_BYTES;
    options->node_limit = KILN_UNTRUSTED_NODES;
    options->time_limit = KILN_UNTRUSTED_MS;
    options->onnx_only = options->no_external_data = TRUE;
}

void
kiln_compile_options_untrusted(KilnCompileOptions *options)
{
    options->total_limit = KILN_UNTRUSTED_BYTES;
    options->node_limit = KILN_UNTRUSTED_NODES;
    options->time_limit = KILN_UNTRUSTED_MS;
}

void
kiln_session_options_untrusted(KilnSessionOptions *options)
{
    options->time_limit = KILN_UNTRUSTED_MS;
}
