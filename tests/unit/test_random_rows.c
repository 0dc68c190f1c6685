/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs draw from every operator, for every element type that a reference kernel has: an
 * operator has a row in tests/random/random_rows.def, or a reason why it has none. */
#include "graph/graph.h"
#include "graph/op.h"
#include "ir/target.h"
#include "tests/random/random_rows.h"
#include "tests/random/subject.h"

#include <criterion/criterion.h>
#include <string.h>

enum {
    SEEDS = 4 /* of each row and type */
};

static bool
has_row(const char *name)
{
    for (uint32_t row = 0; row < random_rows_count(); row++) {
        if (strcmp(random_rows_op(row), name) == 0)
            return true;
    }
    return false;
}

Test(random_rows, every_operator_has_a_row_or_a_reason)
{
    kiln_foreach_op (op) {
        const char *name = kiln_op_info(op)->name;
        const bool row = has_row(name), reason = random_rows_left_out(name) != NULL;
        cr_expect(row || reason, "%s: expected a row or a reason in random_rows.def", name);
        cr_expect_not(row && reason, "%s: expected a row or a reason, found both", name);
    }
}

Test(random_rows, every_row_is_of_an_operator)
{
    for (uint32_t row = 0; row < random_rows_count(); row++) {
        KilnOp op;
        const char *name = random_rows_op(row);
        cr_expect(kiln_op_from_name(name, &op), "%s: no operator", name);
        cr_expect(random_rows_types(row), "%s: expected an element type", name);
        for (uint32_t other = 0; other < row; other++)
            cr_expect(strcmp(name, random_rows_op(other)) != 0, "%s: expected one row", name);
    }
}

/* The graph of a row has its operator, whose work can be counted, and runs. */
static void
try_row(uint32_t row, KilnDType dtype, uint64_t seed)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = random_rows_one(row, dtype, seed, &error);
    const char *name = random_rows_op(row);
    cr_expect(module, "%s of %s, seed %d: %s", name, kiln_dtype_name(dtype), (int)seed,
              error ? error->message : "");
    if (!module)
        return;
    bool found = false;
    kiln_foreach_node (node, kiln_module_entry(module)) {
        found |= strcmp(kiln_op_info(node->op)->name, name) == 0;
        cr_expect_geq(kiln_node_cost(node).flops, 0, "%s of %s", name, kiln_dtype_name(dtype));
    }
    cr_expect(found, "%s of %s: not in its graph", name, kiln_dtype_name(dtype));
    g_auto(Subject) subject = { 0 };
    cr_expect(subject_init(&subject, module, &error), "%s of %s, seed %d: %s", name,
              kiln_dtype_name(dtype), (int)seed, error ? error->message : "");
}

Test(random_rows, every_row_fits_and_runs)
{
    for (uint32_t row = 0; row < random_rows_count(); row++) {
        for (int dtype = 0; dtype < KILN_N_DTYPES; dtype++) {
            for (uint64_t seed = 1; seed <= SEEDS && random_rows_types(row) >> dtype & 1; seed++)
                try_row(row, (KilnDType)dtype, seed);
        }
    }
}

Test(random_rows, graphs_draw_from_every_row)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (uint64_t seed = 1; seed <= 600; seed++) {
        g_autoptr(KilnModule) module = random_rows_graph(seed);
        kiln_foreach_node (node, kiln_module_entry(module))
            g_hash_table_add(seen, (gpointer)kiln_op_info(node->op)->name);
    }
    for (uint32_t row = 0; row < random_rows_count(); row++)
        cr_expect(g_hash_table_contains(seen, random_rows_op(row)), "%s: not drawn",
                  random_rows_op(row));
}
