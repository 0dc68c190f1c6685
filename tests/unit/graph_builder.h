/* SPDX-License-Identifier: Apache-2.0 */
/* Makes small graphs with the C API, so that unit tests of passes do not need the parser. */
#ifndef KILN_TESTS_UNIT_GRAPH_BUILDER_H
#define KILN_TESTS_UNIT_GRAPH_BUILDER_H

#include "graph/function.h"
#include "graph/module.h"
#include "graph/node.h"

#include <criterion/criterion.h>

static inline KilnValue *
add_argument(KilnFunction *function, const char *name, KilnType type)
{
    KilnArgument *argument = kiln_function_add_argument(function, name, &type, NULL);
    cr_assert_not_null(argument);
    return &argument->value;
}

static inline KilnType
f32_2x3(void)
{
    return kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ 2, 3 });
}

/* A node with one result called @name. */
static inline KilnValue *
add_node(KilnFunction *function, KilnOp op, const char *name, const void *attrs, KilnValue *a,
         KilnValue *b)
{
    KilnValue *operands[] = { a, b };
    GError *error = NULL;
    KilnNode *node = kiln_node_new(function,
                                   &(KilnNodeSpec){ .op = op,
                                                    .operands = operands,
                                                    .n_operands = b   ? 2
                                                                  : a ? 1
                                                                      : 0,
                                                    .attrs = attrs,
                                                    .result_name = name },
                                   &error);
    cr_assert_not_null(node, "%s", error ? error->message : "");
    return kiln_node_result(node, 0);
}

static inline void
set_result(KilnFunction *function, KilnValue *value)
{
    cr_assert(kiln_function_set_results(function, &value, NULL, 1, NULL));
}

/* An f32 constant with every element @value. */
static inline KilnValue *
add_splat(KilnFunction *function, const char *name, KilnType type, double value)
{
    return kiln_build_constant(function, NULL, name, kiln_tensor_new_splat(&type, value));
}

/* "relu(x) neg(r)": op names with operand names, in order, to compare structure at a glance. */
static inline char *
describe(const KilnFunction *function)
{
    GString *text = g_string_new(NULL);
    kiln_foreach_node (node, function) {
        if (node->op == KILN_OP_const)
            continue;
        g_string_append_printf(text, "%s%s(", text->len ? " " : "", kiln_op_info(node->op)->name);
        for (uint32_t i = 0; i < node->n_operands; i++)
            g_string_append_printf(text, "%s%s", i ? "," : "",
                                   node->operands[i].value ? node->operands[i].value->name : "_");
        g_string_append_c(text, ')');
    }
    return g_string_free(text, FALSE);
}

#endif
