/* SPDX-License-Identifier: Apache-2.0 */
/* A picture of a memory plan. */
#ifndef KILN_TOOLS_MEMORY_SVG_H
#define KILN_TOOLS_MEMORY_SVG_H

#include "tools/command.h"

/** One rectangle a buffer: steps across, addresses up; names on hover, the peak step marked. */
gboolean kiln_memory_svg_write(const char *path, const KilnMemoryPlan *plan, GError **error);

#endif
