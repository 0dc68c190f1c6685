/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test_operators.h"

#include "graph/kiln-op.h"
#include "graph/plugin/plugin.h"

const KilnOpPlugin *kiln_op_plugin(void);

void
test_operators_register(void)
{
    const KilnOpPlugin *plugin = kiln_op_plugin();
    GError *error = NULL;
    if (!kiln_plugin_register(plugin->operators, plugin->n_operators, "the tests", &error))
        g_error("%s", error->message);
}
