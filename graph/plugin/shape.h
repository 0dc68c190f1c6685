/* SPDX-License-Identifier: Apache-2.0 */
/* A question to a plug-in for the types of results, between graph/infer and the plug-in. */
#ifndef KILN_GRAPH_PLUGIN_SHAPE_H
#define KILN_GRAPH_PLUGIN_SHAPE_H

#include "graph/infer/infer.h"
#include "graph/plugin/plugin.h"

struct KilnOpShape {
    KilnInfer *in;
    KilnOpAttributes attributes;
    bool *stated; /* per result: the plug-in has stated its type */
    char *why;    /* it failed; owned */
};

/** Asks the plug-in for the types of all results. It stands beside the functions that the plug-in
 * calls, so that a static library brings them. */
gboolean kiln_op_shape_ask(KilnOpShape *shape, GError **error);

#endif
