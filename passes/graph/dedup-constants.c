/* SPDX-License-Identifier: Apache-2.0 */
/* dedup-constants: of several constants with equal type and equal bits, nodes read the first of the
 * module.
 *
 *     const @a   const @b          const @a   const @a
 *        |          |        =>       |          |          and cse merges the two nodes
 *
 * requires nothing, preserves nothing; class E. Equality is of types (quantization and layout
 * included) and of all bits; a hash of a few bytes only picks the candidates, so that the pages of
 * big mapped weights are touched only where two of them look alike. Generated constants are equal
 * where their generators are. `max-elements` leaves bigger constants alone (0: no limit). */
#include "graph/module/sweep.h"
#include "passes/pass.h"
#include "passes/query/equal_constants.h"

#define OPTIONS(OPTION, CHOICE) OPTION(INT, max_elements, 0)
PASS_OPTIONS(dedup_constants, OPTIONS);

static const char rule[] = "merge-constants";

static bool
may_merge(const KilnConstant *constant, int64_t max_elements)
{
    return max_elements == 0 || kiln_type_elements(&constant->type) <= max_elements;
}

GRAPH_PASS(dedup_constants);

gboolean
kiln_pass_dedup_constants(KilnFunction *function, KilnPassContext *context, bool *changed,
                          GError **error)
{
    (void)error;
    *changed = false;
    const Options *options = kiln_pass_options(context);
    kiln_foreach_ordered (node, function) {
        const KilnOpInfo *info = kiln_op_info(node->op);
        for (uint32_t i = 0; i < info->n_attrs; i++) {
            if (info->attrs[i].kind != KILN_ATTR_CONSTANT)
                continue;
            KilnConstant **field = (KilnConstant **)((char *)node->attrs + info->attrs[i].offset);
            if (!*field || !may_merge(*field, options->max_elements))
                continue;
            const KilnConstant *first = kiln_pass_first_equal(context, *field);
            if (first == *field)
                continue;
            kiln_pass_note(context, rule, "@%s equals @%s", (*field)->name, first->name);
            *field = (KilnConstant *)first;
            kiln_node_touch(node);
            *changed = true;
        }
    }
    return TRUE;
}
