/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of a program file, collected and then written. */
#ifndef KILN_RUNTIME_PROGRAM_WRITER_H
#define KILN_RUNTIME_PROGRAM_WRITER_H

#include "ir/ir.h"
#include "runtime/program.h"
#include "runtime/program_file.h"

typedef struct {
    const KilnProgram *program;
    const KilnIRModule *ir;
    GArray *sections; /* KilnSection: without place and checksum at first */
    GPtrArray *bytes; /* GBytes*, per section */
    bool proven_optimal;
} KilnProgramWriter;

void kiln_program_writer_init(KilnProgramWriter *writer, const KilnProgram *program,
                              const KilnIRModule *ir);
void kiln_program_writer_clear(KilnProgramWriter *writer);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KilnProgramWriter, kiln_program_writer_clear)
/** Adds a section, in order of kind and index. */
void kiln_program_writer_add(KilnProgramWriter *writer, KilnSectionKind kind, uint32_t index,
                             GBytes *bytes);
/** Writes all to @path, or nothing. */
gboolean kiln_program_writer_write(KilnProgramWriter *writer, const char *path, GError **error);

#endif
