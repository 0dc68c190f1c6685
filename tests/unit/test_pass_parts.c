/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the pass manager alone: analyses and their masks, content hashes, equal constants. */
#include "graph/tensor.h"
#include "passes/context/context.h"
#include "passes/context/options.h"
#include "passes/manager/analysis.h"
#include "passes/manager/hash.h"

#include "passes/manager/unit.h"
#include "passes/pass.h"
#include "passes/query/equal_constants.h"
#include "tests/unit/graph_builder.h"

#include <string.h>

Test(pass_parts, analyses_are_kept_until_a_mask_says_that_they_are_lost)
{
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    g_autoptr(KilnModule) module = kiln_module_new();
    KilnFunction *f = kiln_function_new(module, "f");
    set_result(f, add_argument(f, "x", f32_2x3()));
    KilnUnit unit = { .level = KILN_LEVEL_GRAPH, .module = module, .graph = f };
    g_autoptr(KilnAnalyses) analyses = kiln_analyses_new(&options);
    for (int i = 0; i < 3; i++)
        kiln_analyses_assure(analyses, &unit, KILN_ANALYSIS_ORDER);
    cr_assert_eq(kiln_analyses_computed(analyses), 1);
    kiln_analyses_keep_only(analyses, &unit, (uint32_t)KILN_ANALYSIS_ALL);
    kiln_analyses_assure(analyses, &unit, KILN_ANALYSIS_ORDER);
    cr_assert_eq(kiln_analyses_computed(analyses), 1);
    kiln_analyses_keep_only(analyses, &unit, KILN_ANALYSIS_LIVENESS);
    kiln_analyses_assure(analyses, &unit, KILN_ANALYSIS_ORDER);
    cr_assert_eq(kiln_analyses_computed(analyses), 2);
    kiln_analyses_assure(analyses, &unit, 0);
    cr_assert_eq(kiln_analyses_computed(analyses), 2);
}

Test(pass_parts, equal_text_gives_equal_hashes)
{
    static const char text[] = "graph @f(%x: f32[2,N]) {\n"
                               "  %w = const @w : f32[1]\n"
                               "  %a = add(%x, %w) : f32[2,N]\n"
                               "  return %a\n"
                               "}\n"
                               "constants { @w = splat(1) : f32[1] }\n";
    static const char *const others[][2] = {
        { "%a", "%b" },
        { "@w", "@v" },
        { "f32[2,N]", "f32[2,M]" },
        { "add", "mul" },
        { "(%x, %w)", "(%w, %x)" },
        { "@f", "@g" },
        { "%x", "%y" },
    };
    g_autoptr(KilnIRModule) a = kiln_ir_module_parse(text, strlen(text), "a", NULL);
    g_autoptr(KilnIRModule) b = kiln_ir_module_parse(text, strlen(text), "b", NULL);
    cr_assert(a && b);
    uint64_t hash = kiln_hash_function(kiln_module_entry(a->module)).named;
    cr_assert_eq(hash, kiln_hash_function(kiln_module_entry(b->module)).named);
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
        g_auto(GStrv) parts = g_strsplit(text, others[i][0], -1);
        g_autofree char *changed = g_strjoinv(others[i][1], parts);
        g_autoptr(KilnIRModule) c = kiln_ir_module_parse(changed, strlen(changed), "c", NULL);
        cr_assert_not_null(c, "%s", changed);
        cr_assert_neq(hash, kiln_hash_function(kiln_module_entry(c->module)).named, "%s", changed);
    }
}

/* Texts lie elsewhere in each module, and are no part of the hash by their address. */
Test(pass_parts, hash_of_strings)
{
    static const char form[] = "graph @f(%%x: string[2]) {\n"
                               "  %%w = const @w : string[2]\n"
                               "  %%y = string_concat(%%x, %%w) : string[2]\n"
                               "  return %%y\n"
                               "}\n"
                               "constants { @w = %s : string[2] }\n";
    static const char *const values[] = { "[\"u\", \"v\"]", "[\"u\", \"v\"]", "[\"u\", \"w\"]",
                                          "splat(\"u\")" };
    uint64_t hashes[G_N_ELEMENTS(values)];
    for (size_t i = 0; i < G_N_ELEMENTS(values); i++) {
        g_autofree char *text = g_strdup_printf(form, values[i]);
        g_autoptr(KilnIRModule) module = kiln_ir_module_parse(text, strlen(text), "m", NULL);
        cr_assert_not_null(module, "%s", text);
        hashes[i] = kiln_hash_module(module->module).named;
    }
    cr_expect_eq(hashes[0], hashes[1]);
    cr_expect_neq(hashes[0], hashes[2]);
    cr_expect_neq(hashes[0], hashes[3]);
}

static KilnConstant *
constant(KilnModule *module, const char *name, double number)
{
    KilnType type = f32_2x3();
    return kiln_module_add_constant(module, name, kiln_tensor_new_splat(&type, number), NULL);
}

static void
declare(KilnModule *module, const char *name)
{
    KilnFunction *body = kiln_function_new_region(module, name);
    set_result(body, add_argument(body, "x", f32_2x3()));
    cr_assert_not_null(kiln_module_declare(module, name, body));
}

/* Hashing again with what is known gives the hash that is found anew, and another one than before.
 */
static void
expect_new_hash(const KilnModule *module, KilnKnownHashes *known, KilnHashes *last)
{
    KilnHashes again = kiln_hash_module_again(module, known), anew = kiln_hash_module(module);
    cr_expect_eq(again.named, anew.named);
    cr_expect_eq(again.structure, anew.structure);
    cr_expect_neq(again.named, last->named);
    *last = again;
    again = kiln_hash_module_again(module, known);
    cr_expect_eq(again.named, last->named);
}

Test(pass_parts, known_hashes_hold_until_something_is_added_or_removed)
{
    g_autoptr(KilnModule) module = kiln_module_new();
    KilnKnownHashes known = { .n_constants = 0 };
    KilnHashes last = { 0 };
    expect_new_hash(module, &known, &last);
    constant(module, "a", 1);
    expect_new_hash(module, &known, &last);
    declare(module, "d");
    expect_new_hash(module, &known, &last);
    kiln_module_remove_constants(module, (bool[]){ true });
    constant(module, "b", 2); /* as many as before */
    expect_new_hash(module, &known, &last);
    kiln_module_keep_declarations(module, (bool[]){ false });
    declare(module, "e");
    expect_new_hash(module, &known, &last);
    kiln_function_new(module, "f");
    expect_new_hash(module, &known, &last);
}

Test(pass_parts, the_first_equal_constant_is_found_after_additions_and_removals)
{
    g_autoptr(KilnModule) module = kiln_module_new();
    KilnPassContext context = { .n_recent = 0 };
    const KilnConstant *a = constant(module, "a", 1), *b = constant(module, "b", 2);
    const KilnConstant *c = constant(module, "c", 1);
    cr_expect_eq(kiln_pass_first_equal(&context, c), a);
    cr_expect_eq(kiln_pass_first_equal(&context, b), b);
    const KilnConstant *d = constant(module, "d", 2);
    cr_expect_eq(kiln_pass_first_equal(&context, d), b);
    kiln_module_remove_constants(module, (bool[]){ true, true, false, false });
    const KilnConstant *e = constant(module, "e", 1);
    cr_expect_eq(kiln_pass_first_equal(&context, e), c);
    cr_expect_eq(kiln_pass_first_equal(&context, d), d);
    kiln_equal_constants_free(context.equal_constants);
}
