/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of kiln.h that begin with their size, as callers of any version pass them. */
#ifndef KILN_RUNTIME_OPTIONS_H
#define KILN_RUNTIME_OPTIONS_H

#include "graph/base/budget.h"
#include "kiln.h"

/** A struct that begins with its size: its name in messages, and its initializer. */
typedef struct {
    const char *type, *init;
    size_t size;
} KilnStructKind;
#define KILN_STRUCT_KIND(Type, INIT)                                                               \
    {                                                                                              \
#Type, #INIT, sizeof(Type)                                                                 \
    }
/** Copies the options at @given to @out. Fields that an older and shorter struct lacks become 0.
 * KILN_ERROR_USAGE for a size that no version has had. */
gboolean kiln_options_copy(const KilnStructKind *kind, const void *given, void *out,
                           GError **error);
/** Copies the struct at @from into the caller's struct at @out, as far as its size allows. Fields
 * of a later and longer struct become 0. KILN_ERROR_USAGE for a size of no version. */
gboolean kiln_report_copy(const KilnStructKind *kind, const void *from, void *out, GError **error);
/** KILN_ERROR_USAGE for a @limit below 0; the message calls it @what. */
gboolean kiln_limit_check(const char *what, int64_t limit, GError **error);
/** The same for all of @limits. */
gboolean kiln_limits_check(const KilnLimits *limits, GError **error);

#endif
