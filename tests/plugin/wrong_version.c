/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in that was built against another version of the header. */
#include <passes/kiln-pass.h>

__attribute__((visibility("default"))) const KilnPassPlugin *kiln_pass_plugin(void);

const KilnPassPlugin *
kiln_pass_plugin(void)
{
    static const KilnPassPlugin plugin = { KILN_PASS_API_VERSION + 1, sizeof(KilnPassInfo), NULL,
                                           0 };
    return &plugin;
}
