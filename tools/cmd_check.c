/* SPDX-License-Identifier: Apache-2.0 */
/* kiln check: everything that a model asks for and the backend lacks. */
#include "kiln.h"
#include "runtime/model.h"
#include "tools/command.h"

#include <stdio.h>

static gboolean
print_json(KilnUnsupported *const *found, unsigned n, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    KilnJson json = kiln_report_begin(text);
    kiln_json_array(&json, "unsupported");
    for (unsigned i = 0; i < n; i++) {
        kiln_json_object(&json, NULL);
        kiln_json_string(&json, "op", found[i]->op);
        kiln_json_int(&json, "opset", found[i]->opset);
        kiln_json_string(&json, "dtype", found[i]->dtype);
        kiln_json_string(&json, "node", found[i]->node);
        kiln_json_string(&json, "reason", found[i]->reason);
        kiln_json_end_object(&json);
    }
    kiln_json_end_array(&json);
    return kiln_report_print(&json, error);
}

static unsigned
count_nodes(const KilnModel *model)
{
    unsigned n = 0;
    for (guint i = 0; model->ir && i < model->ir->functions->len; i++)
        n += ((const KilnIRFunction *)g_ptr_array_index(model->ir->functions, i))->n_instrs;
    for (guint i = 0; i < model->module->functions->len; i++) {
        const KilnFunction *function = g_ptr_array_index(model->module->functions, i);
        kiln_foreach_node (node, function)
            n += node->op != KILN_OP_const && node->op != KILN_OP_return;
    }
    return n;
}

static int
check(KilnOptions *options, char **operands, void *data, GError **error)
{
    (void)data;
    const char *path = operands[0];
    g_autoptr(KilnModel) model = kiln_options_load(options, path, NULL, error);
    if (!model)
        return KILN_EXIT_FAILED;
    unsigned n;
    g_autofree KilnUnsupported **found = kiln_model_check(model, options->backend, &n, error);
    if (!found)
        return KILN_EXIT_FAILED;
    if (options->json && !print_json(found, n, error))
        return KILN_EXIT_FAILED;
    for (unsigned i = 0; !options->json && i < n; i++) {
        g_autofree char *op = kiln_one_line(found[i]->op), *node = kiln_one_line(found[i]->node);
        printf("%s (opset %d, %s) at %s: %s\n", op, found[i]->opset, found[i]->dtype, node,
               found[i]->reason);
    }
    if (!options->json && !options->quiet)
        printf("%s: %u %s, %u not supported\n", path, count_nodes(model),
               model->ir ? "instructions" : "nodes", n);
    return n ? KILN_EXIT_UNSUPPORTED : KILN_EXIT_OK;
}

int
kiln_command_check(int argc, char **argv)
{
    const KilnUsage usage = {
        .command = "check",
        .operands = "MODEL",
        .n_operands = KILN_OPERANDS_ONE,
        .summary = "Lists every unsupported operator with its opset, element type and node. "
                   "Exits with status 3 if there is one.",
        .work = check,
    };
    return kiln_command(&usage, argc, argv, NULL);
}
