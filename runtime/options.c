/* SPDX-License-Identifier: Apache-2.0 */
/* Option structs of the C interface: callers of other versions of the library pass other sizes. */
#include "runtime/internal.h"

#include <string.h>

gboolean
kiln_options_copy(const KilnOptionsKind *kind, const void *given, void *out, GError **error)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size < sizeof size)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "%s: expected a size, found %zu: initialize the struct with %s",
                          kind->type, size, kind->init);
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
