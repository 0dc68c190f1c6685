/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between an object of `kiln compile --format object` and libkiln. The command writes
 * these declarations into the source of the object, which then needs no header. kiln.h includes
 * them. */
#ifndef KILN_RUNTIME_KILN_OBJECT_H
#define KILN_RUNTIME_KILN_OBJECT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct KilnProgram;
struct _GError;

/** A bound call: its kernel, packed weights and threads. */
typedef struct KilnCall KilnCall;

/** The memory of a run. */
typedef struct {
    const KilnCall *calls; /* of the program, in order */
    char *arena;
    const void *const *inputs;
    void *const *outputs;
    void *const *states;       /* weights that the program writes */
    const void *const *folded; /* constants that the first run folded */
} KilnFrame;

/** A linked program: its file (kiln_program_save()) inside the object, and its entry function. */
typedef struct {
    size_t size;      /* sizeof(KilnObject) */
    const char *name; /* in messages */
    const void *bytes;
    size_t n_bytes;
    unsigned n_calls;
    /** Runs all calls. Returns NULL, or the reason that call number *@at cannot compute. NULL where
     * shapes come with a run: a session makes the calls then. */
    const char *(*run)(const KilnFrame *frame, unsigned *at);
} KilnObject;

#define KILN_OBJECT_API extern __attribute__((visibility("default")))

/** Runs call @i of @calls on @data, the addresses of its operands, and @scratch. */
KILN_OBJECT_API const char *kiln_call_run(const KilnCall *calls, unsigned i, void *const *data,
                                          void *scratch);
/** kiln_program_load_bytes() for the content of @object. Sessions run its entry function. */
KILN_OBJECT_API struct KilnProgram *kiln_program_load_object(const KilnObject *object,
                                                             struct _GError **error);

#ifdef __cplusplus
}
#endif

#endif
