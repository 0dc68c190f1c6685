/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is written once and then read-only, for constant weights: whoever writes to one
 * afterwards, a kernel or the caller, meets a fault at that instruction instead of wrong results in
 * all sessions. */
#ifndef KILN_RUNTIME_SEALED_H
#define KILN_RUNTIME_SEALED_H

#include <glib.h>
#include <stddef.h>

/** Makes blocks: big ones are mappings of their own, small ones share some. */
typedef struct KilnSealer KilnSealer;

KilnSealer *kiln_sealer_new(void);
/** Seals what is not sealed yet. */
void kiln_sealer_free(KilnSealer *sealer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnSealer, kiln_sealer_free)

/** @size bytes of zeros, 64-byte aligned, to be written at *@out until the next kiln_sealer_seal();
 * NULL and KILN_ERROR_MEMORY where there are none. They may outlive @sealer. */
GBytes *kiln_sealer_alloc(KilnSealer *sealer, size_t size, void **out, GError **error);
/** All blocks so far are written. Small ones become read-only with their page, when it is full. */
void kiln_sealer_seal(KilnSealer *sealer);

#endif
