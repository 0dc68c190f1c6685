/* SPDX-License-Identifier: Apache-2.0 */
/* A clone is equal to the last name, shares bytes, and shares nothing else. */
#include "graph/node.h"
#include "text_files.h"

#include "graph/text/text.h"

#include <string.h>

static KilnModule *
parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    KilnModule *module = kiln_module_parse(text, strlen(text), "clone.kiln", &error);
    cr_assert(module, "%s", error ? error->message : "");
    return module;
}

static char *
print(const KilnModule *module)
{
    GString *out = g_string_new(NULL);
    cr_assert(kiln_module_print(module, NULL, out, NULL));
    return g_string_free(out, FALSE);
}

Test(clone, every_text_prints_the_same_from_its_clone)
{
    g_autoptr(GPtrArray) files = text_files(false);
    for (guint i = 0; i < files->len; i++) {
        const TextFile *file = g_ptr_array_index(files, i);
        KilnModule *module = parse(file->text);
        g_autoptr(KilnModule) clone = kiln_module_clone(module);
        kiln_module_free(module); /* nothing of the clone lies in it */
        g_autoptr(GError) error = NULL;
        cr_assert(kiln_module_verify(clone, &error), "%s: %s", file->path,
                  error ? error->message : "");
        g_autofree char *text = print(clone);
        cr_assert_str_eq(text, file->text);
    }
}

static const char text[] = "graph @f(%c: bool[], %x: f32[2] constant=run, %s: f32[2] variable) {\n"
                           "  %w = const @w : f32[2]\n"
                           "  %k = const @k : i64[2]\n"
                           "  %d = relu(%x) : f32[2]\n"
                           "  %y = add(%w, %x) : f32[2]\n"
                           "  %z = if(%c) then {\n"
                           "    %a = mul(%x, %w) : f32[2]\n"
                           "    return %a\n"
                           "  } else {\n"
                           "    return %y\n"
                           "  } : f32[2]\n"
                           "  return %z, %y as \"sum\"\n"
                           "}\n"
                           "constants { @w = [1, 2] : f32[2]\n @k = [3, 4] : i64[2] }\n";

Test(clone, shares_bytes_and_keeps_what_is_known)
{
    g_autoptr(KilnModule) module = parse(text);
    module->mode = KILN_MODE_TRAIN;
    module->opset = 17;
    g_autoptr(KilnModule) clone = kiln_module_clone(module);
    cr_assert_eq(clone->mode, KILN_MODE_TRAIN);
    cr_assert_eq(clone->opset, 17);
    cr_assert_str_eq(clone->path, "clone.kiln");
    const KilnConstant *w = kiln_module_find_constant(module, "w");
    const KilnConstant *copy = kiln_module_find_constant(clone, "w");
    cr_assert_neq(w, copy);
    cr_assert_eq(w->tensor->bytes, copy->tensor->bytes);
    const KilnFunction *function = kiln_module_entry(clone);
    cr_assert_eq(kiln_function_argument(function, 1)->constness, KILN_CONSTNESS_RUN);
    cr_assert(kiln_function_argument(function, 2)->variable);
    const KilnValue *k = kiln_function_find_value(function, "k");
    cr_assert_eq(kiln_value_constant(k), kiln_module_find_constant(clone, "k"));
    cr_assert(k->known);
    cr_assert_eq(k->known->n, 2);
    cr_assert_eq(k->known->v[1], 4);
    cr_assert_neq(k->known, kiln_function_find_value(kiln_module_entry(module), "k")->known);
}

static void
expect_same_readers(const KilnValue *a, const KilnValue *b)
{
    const KilnUse *use = b->first_use;
    kiln_foreach_use (mine, a) {
        cr_assert(use);
        cr_assert_eq(mine->index, use->index);
        cr_assert_neq(mine->user, use->user);
        cr_assert_str_eq(kiln_node_label(mine->user), kiln_node_label(use->user));
        use = use->next;
    }
    cr_assert_null(use);
    cr_assert_eq(a->n_uses, b->n_uses);
}

Test(clone, readers_stay_in_their_order_and_dead_nodes_stay_behind)
{
    g_autoptr(KilnModule) module = parse(text);
    KilnFunction *function = kiln_module_entry(module);
    /* Bring the readers of %x out of the order of nodes, and leave a gap among the ids. */
    KilnValue *x = kiln_function_find_value(function, "x");
    KilnNode *add = kiln_function_find_value(function, "y")->def;
    kiln_node_remove(kiln_function_find_value(function, "d")->def);
    kiln_node_set_operand(add, 1, x);
    g_autoptr(KilnModule) clone = kiln_module_clone(module);
    const KilnFunction *copy = kiln_module_entry(clone);
    cr_assert(kiln_module_verify(clone, NULL));
    cr_assert_eq(copy->next_id, copy->n_nodes);
    cr_assert_lt(copy->next_id, function->next_id);
    expect_same_readers(x, kiln_function_find_value(copy, "x"));
    expect_same_readers(kiln_function_find_value(function, "w"),
                        kiln_function_find_value(copy, "w"));
    cr_assert_eq(kiln_function_find_value(copy, "y")->def->operands[1].value,
                 kiln_function_find_value(copy, "x"));
}

Test(clone, changes_stay_apart_and_derived_names_go_on_alike)
{
    g_autoptr(KilnModule) module = parse(text);
    KilnFunction *function = kiln_module_entry(module);
    cr_assert_str_eq(kiln_function_unique_name(function, "y"), "y_1");
    g_autoptr(KilnModule) clone = kiln_module_clone(module);
    g_autofree char *before = print(module);
    KilnFunction *copy = kiln_module_entry(clone);
    cr_assert_str_eq(kiln_function_unique_name(copy, "y"), "y_2");
    kiln_value_rename(copy, kiln_function_find_value(copy, "z"), "renamed");
    KilnNode *d = kiln_function_find_value(copy, "d")->def;
    kiln_node_remove(d);
    g_autofree char *after = print(module);
    cr_assert_str_eq(before, after);
    cr_assert(kiln_module_verify(module, NULL));
    cr_assert(kiln_module_verify(clone, NULL));
}
