/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as C: the entry function with its offsets written out, and the header of what it is
 * linked into. */
#ifndef KILN_TOOLS_OBJECT_H
#define KILN_TOOLS_OBJECT_H

#include "runtime/program.h"
#include "tools/command.h"

/** An identifier of C from the name of a file: what stands before the suffix, with '_' in place of
 * what C does not allow. To be freed. */
char *kiln_object_name(const char *path);

/** Writes @program as an object file to @path, and its header beside it with the suffix .h: both or
 * none. Its symbols begin with @name. Needs the system's C compiler, `cc` or what CC names. */
gboolean kiln_object_write(KilnProgram *program, const char *name, const char *path,
                           GError **error);
/** The same as source: @path, its header, and the program file that @path includes, with the suffix
 * .kiln-program, all of them or none. */
gboolean kiln_object_write_source(KilnProgram *program, const char *name, const char *path,
                                  GError **error);

#endif
