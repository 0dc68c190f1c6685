/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for constant weights: written once, then read-only. A later write, by a kernel or the
 * caller, faults at that instruction, before it spoils the results of all sessions. */
#ifndef KILN_RUNTIME_SEALED_H
#define KILN_RUNTIME_SEALED_H

#include <glib.h>
#include <stddef.h>

/** Makes blocks. Big ones have their own mapping; small ones share mappings. */
typedef struct KilnSealer KilnSealer;

KilnSealer *kiln_sealer_new(void);
/** Seals all blocks that are not sealed yet. */
void kiln_sealer_free(KilnSealer *sealer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KilnSealer, kiln_sealer_free)

/** Allocates @size zero bytes, 64-byte aligned, to be written at *@out until the next
 * kiln_sealer_seal(). NULL and KILN_ERROR_MEMORY on failure. The bytes may outlive @sealer. */
GBytes *kiln_sealer_alloc(KilnSealer *sealer, size_t size, void **out, GError **error);
/** All blocks so far are written. Small ones become read-only with their page, when it is full. */
void kiln_sealer_seal(KilnSealer *sealer);

#endif
