/* SPDX-License-Identifier: Apache-2.0 */
/* A picture of a memory plan. */
#ifndef KILN_TOOLS_MEMORY_SVG_H
#define KILN_TOOLS_MEMORY_SVG_H

#include "ir/plan.h"

/** Draws a rectangle per buffer: steps across, addresses up. Names show on hover. The peak step and
 * its instruction are marked. Scratch of kernels is paler. */
gboolean kiln_memory_svg_write(const char *path, const KilnMemoryPlan *plan,
                               const KilnMemoryPeak *peak, GError **error);

#endif
