/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of runs, in the C interface. Part of kiln.h, which includes it. */
#ifndef KILN_RUNTIME_KILN_MEMORY_H
#define KILN_RUNTIME_KILN_MEMORY_H

#include "graph/kiln-types.h"
#include "runtime/kiln-shapes.h"

G_BEGIN_DECLS

struct KilnProgram;

/** Bytes; all -1 for a program that is not specialised yet, or that is open
 * (kiln_program_memory_for()). A program with several specialisations reports the one last asked
 * for. */
typedef struct {
    size_t size;     /* sizeof(KilnMemoryReport): set by KILN_MEMORY_REPORT_INIT */
    int64_t sum;     /* activations without sharing */
    int64_t lb_node; /* the most that one instruction needs: no order takes less */
    int64_t lb_live; /* the most that is live at once: no placement takes less */
    int64_t arena;   /* a session allocates as much */
    int64_t weights; /* constants as the program holds them, packed copies included */
    /* arena == lb_live, or a search proved that nothing is lower. */
    gboolean proven_optimal;
    double plan_ms; /* 0 for a loaded program, which brings its plan */
} KilnMemoryReport;
#define KILN_MEMORY_REPORT_INIT KILN_STRUCT_INIT(KilnMemoryReport)
/** Fills @out. */
KILN_API gboolean kiln_program_memory(const struct KilnProgram *program, KilnMemoryReport *out,
                                      GError **error);
/** The same for a run with @shapes. It compiles the program if kiln_program_prepare() did not.
 * Dims that @shapes leave out count as their upper bounds. If all dims have bounds, all runs have
 * one arena, and each buffer has the most bytes there that it can need. Errors: those of
 * kiln_program_prepare(); USAGE where a dim has neither a number nor an upper bound. */
KILN_API gboolean kiln_program_memory_for(struct KilnProgram *program, const KilnShape *shapes,
                                          unsigned n_shapes, KilnMemoryReport *out, GError **error);

G_END_DECLS

#endif
