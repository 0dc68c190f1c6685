/* SPDX-License-Identifier: Apache-2.0 */
/* What instances of an open program will want, found by instances at likely numbers. */
#ifndef KILN_RUNTIME_OPEN_PROBE_H
#define KILN_RUNTIME_OPEN_PROBE_H

#include "runtime/bind.h"
#include "runtime/open/template.h"

/** The packed weights that instances want at hints, at the binding of the function, and at the
 * least and the most numbers: KILN_MAX_FORMS per call, the likeliest first. They depend on the
 * program alone, not on what sessions did with it. NULL with an error where no instance can be
 * made. Free them with kiln_probe_free(). */
KilnPackedForm *kiln_probe_forms(KilnTemplate *origin, const KilnBindOptions *options,
                                 GError **error);
void kiln_probe_free(KilnPackedForm *forms, uint32_t n_calls);

#endif
