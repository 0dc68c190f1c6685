/* SPDX-License-Identifier: Apache-2.0 */
/* fold-io-conversions: casts of inputs and outputs are left to the caller.
 *
 *     graph(x: f32)             graph(x: f16)              |                 |
 *          |                          |                cast to f32    =>   return
 *     cast to f16        =>           |                    |
 *          |                          |                 return
 *
 * requires nothing, preserves nothing. It changes what the program takes and gives, and does so
 * only where its options ask for it: `inputs`, `outputs`. An input must be read by casts to one
 * type alone. The numbers inside are the same (class E); --check, which gives and compares what the
 * caller sees, objects. State that is kept between runs stays as it is, and so do functions that
 * others contain. */
#include "passes/pass.h"

#include "graph/op/cast.h"

#define OPTIONS(OPTION, CHOICE)                                                                    \
    OPTION(BOOL, inputs, false)                                                                    \
    OPTION(BOOL, outputs, false)
PASS_OPTIONS(fold_io_conversions, OPTIONS);

static const char rule[] = "fold-io-conversion";

static bool
is_cast(const KilnNode *node, const KilnFunction *function)
{
    return node && node->op == KILN_OP_cast && node->function == function &&
           !node->operands[0].value->type.quant;
}

/* All readers are casts to the type that the first of them casts to. */
static bool
is_only_cast(const KilnArgument *argument)
{
    const KilnUse *first = argument->value.first_use;
    kiln_foreach_use (use, &argument->value) {
        if (!is_cast(use->user, argument->function) ||
            kiln_attrs(use->user, cast)->to != kiln_attrs(first->user, cast)->to)
            return false;
    }
    return first != NULL;
}

static bool
fold_input(KilnArgument *argument, KilnPassContext *context)
{
    PASS_GUARD(stateless, !argument->variable);
    PASS_GUARD(only_cast, is_only_cast(argument));
    KilnValue *value = &argument->value;
    KilnDType to = kiln_attrs(value->first_use->user, cast)->to;
    kiln_pass_note(context, rule, "%s is %s", value->name, kiln_dtype_name(to));
    g_autoptr(GPtrArray) casts = g_ptr_array_new();
    kiln_foreach_use (use, value)
        g_ptr_array_add(casts, use->user);
    value->type.dtype = to;
    for (guint i = 0; i < casts->len; i++) {
        KilnNode *cast = g_ptr_array_index(casts, i);
        kiln_value_replace(&cast->results[0], value);
        kiln_node_remove(cast);
    }
    return true;
}

static bool
fold_output(KilnNode *results, uint32_t i, KilnPassContext *context)
{
    KilnValue *value = results->operands[i].value;
    KilnNode *cast = value->def;
    if (!is_cast(cast, results->function))
        return false;
    KilnValue *from = cast->operands[0].value;
    kiln_pass_note(context, rule, "%s is %s", value->name, kiln_dtype_name(from->type.dtype));
    kiln_node_set_operand(results, i, from);
    kiln_node_remove_if_dead(cast);
    return true;
}

GRAPH_PASS(fold_io_conversions);

gboolean
kiln_pass_fold_io_conversions(KilnFunction *function, KilnPassContext *context, bool *changed,
                              GError **error)
{
    const Options *options = kiln_pass_options(context);
    KilnNode *results = kiln_function_return(function);
    bool is_entry = function == kiln_module_entry(function->module);
    (void)error;
    *changed = false;
    for (guint i = 0; options->inputs && is_entry && i < function->arguments->len; i++)
        *changed |= fold_input(kiln_function_argument(function, i), context);
    for (uint32_t i = 0; options->outputs && is_entry && results && i < results->n_operands; i++)
        *changed |= fold_output(results, i, context);
    return TRUE;
}
