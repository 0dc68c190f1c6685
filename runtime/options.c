/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of the C interface that have a size: callers of other versions of the library pass other
 * sizes. */
#include "runtime/internal.h"

#include "graph/base/alloc.h"

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

static gboolean
check_limit(const char *what, int64_t limit, GError **error)
{
    return limit >= 0 || kiln_throw(error, KILN_ERROR_USAGE,
                                    "%s: expected 0 or more, found %" G_GINT64_FORMAT, what, limit);
}

gboolean
kiln_limits_check(const KilnLimits *limits, GError **error)
{
    return check_limit("total limit", limits->bytes, error) &&
           check_limit("node limit", limits->nodes, error) &&
           check_limit("time limit", limits->ms, error);
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

/* --- sessions --- */

gboolean
kiln_session_options_copy(const KilnProgram *program, const KilnSessionOptions *options,
                          KilnSessionOptions *copy, GError **error)
{
    static const KilnStructKind kind =
        KILN_STRUCT_KIND(KilnSessionOptions, KILN_SESSION_OPTIONS_INIT);
    if (!kiln_options_copy(&kind, options, copy, error))
        return FALSE;
    if (copy->threads < 0 || copy->threads > program->threads)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "threads: expected 0 to %d, as compiled, found %d", program->threads,
                          copy->threads);
    if ((uintptr_t)copy->arena % KILN_ALIGNMENT)
        return kiln_throw(error, KILN_ERROR_USAGE, "arena: expected an address aligned to %d bytes",
                          KILN_ALIGNMENT);
    return check_limit("time limit", copy->time_limit, error);
}
