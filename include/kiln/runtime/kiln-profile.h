/* SPDX-License-Identifier: Apache-2.0 */
/* Times of the instructions of a session. Installed beside kiln.h, which includes it. */
#ifndef KILN_RUNTIME_KILN_PROFILE_H
#define KILN_RUNTIME_KILN_PROFILE_H

#include "graph/kiln-types.h"

G_BEGIN_DECLS

struct KilnSession;

/** Time of one instruction, summed over the runs since the shapes changed. Bodies of branches and
 * loops come behind their own entry, which has the rest of the time. */
typedef struct {
    const char *instruction;
    const char *node;   /* the ONNX node that it came from */
    const char *kernel; /* "cpu:conv_gemm" */
    int64_t flops, bytes;
    uint64_t runs;
    double ms;
    int64_t live_bytes; /* of the arena while it runs: buffers that hold something, and scratch */
    uint64_t calls;     /* of the kernel in these runs: more than @runs in a loop */
} KilnProfileEntry;
/** In order of execution; *@out_n entries, borrowed until the next run. None without
 * KilnSessionOptions.profile. */
KILN_API const KilnProfileEntry *const *kiln_session_profile(struct KilnSession *session,
                                                             unsigned *out_n);

G_END_DECLS

#endif
