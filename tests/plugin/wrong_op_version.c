/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in with operators that was built against another version of the header. */
#include <graph/kiln-op.h>

__attribute__((visibility("default"))) const KilnOpPlugin *kiln_op_plugin(void);

const KilnOpPlugin *
kiln_op_plugin(void)
{
    static const KilnOpPlugin plugin = { KILN_OP_API_VERSION + 1, sizeof(KilnOpDescription), NULL,
                                         0 };
    return &plugin;
}
