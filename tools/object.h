/* SPDX-License-Identifier: Apache-2.0 */
/* Writes programs as objects or C source: an entry function with constant offsets, and the header
 * for its callers. */
#ifndef KILN_TOOLS_OBJECT_H
#define KILN_TOOLS_OBJECT_H

#include "runtime/program.h"

/** Returns a C identifier from the name of a file without its suffix. '_' replaces characters that
 * C does not allow. The caller frees it. */
char *kiln_object_name(const char *path);

/** Writes @program as an object file to @path, and its header beside it with the suffix .h: both or
 * none. Its symbols begin with @name. It runs the system's C compiler: `cc`, or the value of CC. */
gboolean kiln_object_write(KilnProgram *program, const char *name, const char *path,
                           GError **error);
/** Writes source to @path, its header, and the program file that @path includes, with the suffix
 * .kiln-program: all of them or none. */
gboolean kiln_object_write_source(KilnProgram *program, const char *name, const char *path,
                                  GError **error);

#endif
