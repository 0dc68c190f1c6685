/* SPDX-License-Identifier: Apache-2.0 */
/* State of the C interface: outputs that the next run reads as inputs, such as the keys and values
 * of a decoder. Part of kiln.h, which includes it. */
#ifndef KILN_RUNTIME_KILN_CARRY_H
#define KILN_RUNTIME_KILN_CARRY_H

#include "graph/kiln-types.h"

G_BEGIN_DECLS

typedef struct KilnSession KilnSession;

/** Each run from now on reads as input @input what the run before it wrote as output @output.
 * Before the first run the input is bound as others are, with the value to begin with. Bound later,
 * it begins anew with that value.
 *
 * Where the model appends something to the input along an axis, and the output is the result, the
 * session keeps one copy with room for more, and a run writes behind what is there. With an upper
 * bound of the extent the room is that; without one it doubles when it is used up. Other values
 * change places with the input, without a copy; what a run wrote to bound memory is copied, so that
 * memory must stay until the next run.
 *
 * KILN_ERROR_USAGE where there is no such input or output, where one of them is carried already, or
 * where the value of the input is a constant. KILN_ERROR_TYPE where the element types differ or the
 * ranks cannot be equal. */
KILN_API gboolean kiln_session_carry(KilnSession *session, unsigned output, unsigned input,
                                     GError **error);
/** Takes back what was appended last: the carried value of @input keeps @extent elements along the
 * axis that it grows along. KILN_ERROR_USAGE where it has no such axis, or no value yet.
 * KILN_ERROR_SHAPE where it has fewer elements. */
KILN_API gboolean kiln_session_truncate(KilnSession *session, unsigned input, int64_t extent,
                                        GError **error);
/** Forgets all carried values: the next run reads the inputs that are bound. */
KILN_API void kiln_session_reset(KilnSession *session);
/** Another session of the same program with the same options, bound inputs and carried values. Its
 * memory is its own, and so are its outputs: none are bound. NULL and KILN_ERROR_MEMORY where there
 * is no memory. */
KILN_API KilnSession *kiln_session_clone(const KilnSession *session, GError **error);
/** Output @i as it lies in memory, valid until the next run: the address of its first element, and
 * in @strides (8 numbers), the elements from one index of each dim to the next.
 * kiln_session_output() copies an output with gaps to memory of its own. Errors as there. */
KILN_API const void *kiln_session_output_strided(KilnSession *session, unsigned i, int64_t *strides,
                                                 GError **error);

G_END_DECLS

#endif
