/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel of a plug-in may ask. */
#include "graph/plugin/plugin.h"

const char *
kiln_op_call_run(const KilnOpCall *call)
{
    const KilnOpDescription *op = call->attributes->op;
    return op ? op->run(call) : KILN_PLUGIN_HINT;
}

const void *
kiln_op_call_data(const KilnOpCall *call)
{
    return call->attributes->op->data;
}

const KilnOpAttributes *
kiln_op_call_attributes(const KilnOpCall *call)
{
    return call->attributes;
}

unsigned
kiln_op_call_n_inputs(const KilnOpCall *call)
{
    return call->n_inputs;
}

unsigned
kiln_op_call_n_outputs(const KilnOpCall *call)
{
    return call->n_outputs;
}

static const KilnOpTensor *
there(const KilnOpTensor *tensor)
{
    return tensor->rank >= 0 ? tensor : NULL;
}

const KilnOpTensor *
kiln_op_call_input(const KilnOpCall *call, unsigned i)
{
    return i < call->n_inputs ? there(&call->tensors[call->n_outputs + i]) : NULL;
}

const KilnOpTensor *
kiln_op_call_output(const KilnOpCall *call, unsigned i)
{
    return i < call->n_outputs ? there(&call->tensors[i]) : NULL;
}

void *
kiln_op_call_scratch(const KilnOpCall *call)
{
    return call->scratch;
}

int
kiln_op_call_threads(const KilnOpCall *call)
{
    return call->threads;
}

void
kiln_op_call_parallel(const KilnOpCall *call, int64_t n, KilnOpTask task, const void *data)
{
    if (call->parallel && call->threads > 1 && n > 1) {
        call->parallel(n, call->threads, task, data);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        task(data, i, 0);
}

const KilnText *
kiln_op_call_new_text(const KilnOpCall *call, size_t length, char **out_bytes)
{
    const KilnText *text = NULL;
    if (!call->texts || !kiln_text_new(call->texts, length, &text, out_bytes))
        return NULL;
    return text;
}
