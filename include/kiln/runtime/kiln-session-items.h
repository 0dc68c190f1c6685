/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and outputs of sessions that are sequences, optionals or maps. Installed beside kiln.h,
 * which includes it. */
#ifndef KILN_RUNTIME_KILN_SESSION_ITEMS_H
#define KILN_RUNTIME_KILN_SESSION_ITEMS_H

#include "graph/kiln-items.h"

G_BEGIN_DECLS

struct KilnSession;

/** Reads input @i from @item at every run from now on. The session becomes an owner of @item until
 * another one is bound. NULL: an empty sequence or optional. KILN_ERROR_USAGE if input @i is a
 * tensor. Each run checks the types: KILN_ERROR_TYPE or KILN_ERROR_SHAPE where an item is none that
 * the model asks for. */
KILN_API gboolean kiln_session_bind_input_item(struct KilnSession *session, unsigned i,
                                               KilnItem *item, GError **error);
/** What the last run wrote to output @i, a sequence, optional or map. The caller owns it, and it
 * outlives the session. NULL and KILN_ERROR_USAGE if output @i is a tensor, or where
 * kiln_session_output() fails; NULL and KILN_ERROR_MEMORY. */
KILN_API KilnItem *kiln_session_output_item(struct KilnSession *session, unsigned i,
                                            GError **error);

G_END_DECLS

#endif
