/* SPDX-License-Identifier: Apache-2.0 */
/* State of the C interface: outputs that the next run reads as inputs, such as the keys and values
 * of a decoder. Part of kiln.h, which includes it. */
#ifndef KILN_RUNTIME_KILN_CARRY_H
#define KILN_RUNTIME_KILN_CARRY_H

#include "graph/kiln-types.h"

G_BEGIN_DECLS

struct KilnSession;

/** From now on, input @input of each run is output @output of the run before it. Bind the input
 * before the first run, to the value to begin with. If it is bound later, the next run begins anew
 * with that value.
 *
 * The model may append elements to the input along an axis and return the result. The session then
 * keeps one copy with room for more, and a run writes behind the old elements. The room is the
 * upper bound of the extent. Without a bound it doubles when it is used up.
 *
 * For other values, the memory of the output becomes that of the input, without a copy. An output
 * in bound memory is copied at the next run, so that memory must stay until then.
 *
 * KILN_ERROR_USAGE if there is no such input or output, if one of them is carried already, or if
 * the input is a constant. KILN_ERROR_TYPE if the element types differ or the ranks cannot be
 * equal. */
KILN_API gboolean kiln_session_carry(struct KilnSession *session, unsigned output, unsigned input,
                                     GError **error);
/** Removes the elements that were appended last. The carried value of @input keeps @extent elements
 * along the axis that it grows along. KILN_ERROR_USAGE if it has no such axis, or no value yet.
 * KILN_ERROR_SHAPE if it has fewer elements. */
KILN_API gboolean kiln_session_truncate(struct KilnSession *session, unsigned input, int64_t extent,
                                        GError **error);
/** Forgets all carried values: the next run reads the inputs that are bound. */
KILN_API void kiln_session_reset(struct KilnSession *session);
/** Another session of the same program with the same options, bound inputs and carried values. It
 * has its own memory, and no output is bound. NULL and KILN_ERROR_MEMORY if memory runs out. */
KILN_API struct KilnSession *kiln_session_clone(const struct KilnSession *session, GError **error);
/** Output @i as it lies in memory, valid until the next run: the address of its first element.
 * @strides (8 numbers) gets the elements from one index of each dim to the next.
 * kiln_session_output() copies an output with gaps to memory of its own. Errors: those of that
 * function. */
KILN_API const void *kiln_session_output_strided(struct KilnSession *session, unsigned i,
                                                 int64_t *strides, GError **error);

G_END_DECLS

#endif
