/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is written once and then read-only, for constant weights: whoever writes to one
 * afterwards, a kernel or the caller, meets a fault at that instruction instead of wrong results in
 * all sessions. */
#ifndef KILN_RUNTIME_SEALED_H
#define KILN_RUNTIME_SEALED_H

#include <glib.h>
#include <stddef.h>

/** Blocks that are filled one after the other: big ones are mappings of their own, small ones share
 * some. */
typedef struct KilnSealer KilnSealer;

KilnSealer *kiln_sealer_new(void);
/** Seals what is not sealed yet. */
void kiln_sealer_free(KilnSealer *sealer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnSealer, kiln_sealer_free)

/** @size bytes of zeros, 64-byte aligned, to be written until the next call for @sealer; NULL and
 * KILN_ERROR_MEMORY where there are none. */
void *kiln_sealer_alloc(KilnSealer *sealer, size_t size, GError **error);
/** The block that was allocated last, as bytes that free it. They may outlive @sealer. */
GBytes *kiln_sealer_take(KilnSealer *sealer);

#endif
