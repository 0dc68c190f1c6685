/* SPDX-License-Identifier: Apache-2.0 */
/* The version of Kiln: the only place that has its numbers. CMake reads them from here. Part of
 * kiln.h, which includes it. */
#ifndef KILN_GRAPH_KILN_VERSION_H
#define KILN_GRAPH_KILN_VERSION_H

#include <glib.h>

/** The version of this header. kiln_version() is that of the library that runs. */
#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 2
#define KILN_VERSION_MICRO 0
/** The same as a text, "0.2.0". */
#define KILN_VERSION                                                                               \
    G_STRINGIFY(KILN_VERSION_MAJOR)                                                                \
    "." G_STRINGIFY(KILN_VERSION_MINOR) "." G_STRINGIFY(KILN_VERSION_MICRO)

/** True if this header is of that version or a later one. For #if, too. */
#define KILN_CHECK_VERSION(major, minor, micro)                                                    \
    (KILN_VERSION_MAJOR > (major) ||                                                               \
     (KILN_VERSION_MAJOR == (major) && KILN_VERSION_MINOR > (minor)) ||                            \
     (KILN_VERSION_MAJOR == (major) && KILN_VERSION_MINOR == (minor) &&                            \
      KILN_VERSION_MICRO >= (micro)))

#endif
