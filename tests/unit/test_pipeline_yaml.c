/* SPDX-License-Identifier: Apache-2.0 */
/* Pipeline files: what they say, what is refused and where, and that no text crashes or hangs. */
#include "graph/base/random.h"
#include "passes/context/context.h"
#include "passes/pipeline/pipeline.h"
#include "passes/rule.h"

#include <criterion/criterion.h>

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

/* --- a pass with an option of every kind, registered where options are tested --- */

typedef struct {
    int64_t count;
    bool deep;
    float factor;
    const char *name;
    const char *kind;
    KilnInts axes;
    KilnFloats scales;
    KilnStrings through;
    KilnDType to;
} AllOptions;

static const KilnAttrInfo all_options[] = {
    { "max_count", KILN_ATTR_INT, offsetof(AllOptions, count), { .i = 7 } },
    { "deep", KILN_ATTR_BOOL, offsetof(AllOptions, deep), { .i = true } },
    { "factor", KILN_ATTR_FLOAT, offsetof(AllOptions, factor), { .f = 0.5 } },
    { "name", KILN_ATTR_STRING, offsetof(AllOptions, name), { .s = "n" } },
    { "kind", KILN_ATTR_STRING, offsetof(AllOptions, kind), { .s = "run" } },
    { "axes", KILN_ATTR_INTS, offsetof(AllOptions, axes), { .i = 0 } },
    { "scales", KILN_ATTR_FLOATS, offsetof(AllOptions, scales), { .i = 0 } },
    { "through", KILN_ATTR_STRINGS, offsetof(AllOptions, through), { .i = 0 } },
    { "to", KILN_ATTR_DTYPE, offsetof(AllOptions, to), { .i = KILN_DTYPE_f32 } },
};
static const char *const all_choices[] = { NULL, NULL, NULL, NULL, "run|compile",
                                           NULL, NULL, NULL, NULL };

static gboolean
does_nothing(KilnFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)function, (void)context, (void)error;
    *changed = false;
    return TRUE;
}

static gboolean
does_nothing_ir(KilnIRFunction *function, KilnPassContext *context, bool *changed, GError **error)
{
    (void)function, (void)context, (void)error;
    *changed = false;
    return TRUE;
}

static const KilnOptionTable all_options_table = { all_options, all_choices,
                                                   G_N_ELEMENTS(all_options), sizeof(AllOptions) };
static const KilnPassInfo test_pass = {
    .id = "all-options",
    .level = KILN_LEVEL_GRAPH,
    .summary = "for tests",
    .options = &all_options_table,
    .run_graph = does_nothing,
};
static const KilnPassInfo test_ir_pass = {
    .id = "test-ir", .level = KILN_LEVEL_IR, .summary = "for tests", .run_ir = does_nothing_ir
};

static KilnPassPipeline *
pipeline_with_passes(void)
{
    KilnPassPipeline *pipeline = kiln_pass_pipeline_new();
    cr_assert(kiln_pass_pipeline_register(pipeline, &test_pass, NULL));
    cr_assert(kiln_pass_pipeline_register(pipeline, &test_ir_pass, NULL));
    return pipeline;
}

/* The file form, with the two passes above known. */
static KilnPassPipeline *
parse(const char *text, GError **error)
{
    g_autoptr(KilnPassPipeline) pipeline = pipeline_with_passes();
    return kiln_pipeline_read_yaml(pipeline, text, strlen(text), "p.yaml", error)
               ? g_steal_pointer(&pipeline)
               : NULL;
}

static KilnPassPipeline *
parse_inline(const char *text, GError **error)
{
    g_autoptr(KilnPassPipeline) pipeline = pipeline_with_passes();
    return kiln_pipeline_read_inline(pipeline, text, error) ? g_steal_pointer(&pipeline) : NULL;
}

static KilnPassPipeline *
good(const char *text)
{
    GError *error = NULL;
    KilnPassPipeline *pipeline = parse(text, &error);
    cr_assert_not_null(pipeline, "%s\n%s", text, error ? error->message : "");
    return pipeline;
}

static const KilnPipelineEntry *
entry_at(const KilnPassPipeline *pipeline, guint i)
{
    cr_assert_lt(i, pipeline->graph->len);
    return g_ptr_array_index(pipeline->graph, i);
}

static void
bad(const char *text, const char *message)
{
    g_autoptr(GError) error = NULL;
    KilnPassPipeline *pipeline = parse(text, &error);
    cr_assert_null(pipeline, "accepted:\n%s", text);
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_PIPELINE));
    cr_assert(strstr(error->message, message), "text:\n%s\nexpected: %s\nfound:    %s", text,
              message, error->message);
}

static void
bad_inline(const char *text, const char *message)
{
    g_autoptr(GError) error = NULL;
    KilnPassPipeline *pipeline = parse_inline(text, &error);
    cr_assert_null(pipeline, "accepted: %s", text);
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_PIPELINE));
    cr_assert_str_eq(error->message, message);
}

/* --- what files say --- */

Test(pipeline_yaml, entries_have_the_defaults_of_the_design)
{
    g_autoptr(KilnPassPipeline) p = good("version: 1\ngraph:\n  - pass: dce\n  - {}\n  - dce\n");
    cr_assert_eq(p->graph->len, 3);
    cr_assert_eq(p->ir->len, 0);
    cr_assert_eq(p->flags, 0);
    const KilnPipelineEntry *entry = entry_at(p, 0);
    cr_assert_str_eq(entry->pass->id, "dce");
    cr_assert_eq(entry->convergence, KILN_ONE_PASS);
    cr_assert_eq(entry->max_iterations, 64);
    cr_assert(entry->dce_before);
    cr_assert_eq(entry->modes, 3);
    cr_assert_str_eq(entry->where, "p.yaml:3:5");
    cr_assert_str_eq(entry_at(p, 1)->pass->id, "empty");
    cr_assert_str_eq(entry_at(p, 2)->pass->id, "dce");
}

Test(pipeline_yaml, every_key)
{
    g_autoptr(KilnPassPipeline) p =
        good("version: 1\n"
             "flags: [no-signed-zeros, quant-lossy]\n"
             "graph:\n"
             "  - pass: all-options\n"
             "    convergence: until-fixed-point\n"
             "    max-iterations: 10000\n"
             "    dce: none\n"
             "    modes: [train]\n"
             "    options: {max-count: -9, deep: false, factor: 1.5e-3, name: \"12\",\n"
             "              kind: compile, axes: [0, -1], scales: [0.5, inf],\n"
             "              through: [select, quantize_linear], to: i8}\n"
             "ir:\n"
             "  - test-ir\n");
    cr_assert_eq(p->flags, KILN_FLAG(no_signed_zeros) | KILN_FLAG(quant_lossy));
    const KilnPipelineEntry *entry = entry_at(p, 0);
    const AllOptions *o = entry->options;
    cr_assert_eq(entry->convergence, KILN_UNTIL_FIXED_POINT);
    cr_assert_eq(entry->max_iterations, 10000);
    cr_assert_not(entry->dce_before);
    cr_assert_eq(entry->modes, 1u << KILN_MODE_TRAIN);
    cr_assert_eq(o->count, -9);
    cr_assert_not(o->deep);
    cr_assert_float_eq(o->factor, 1.5e-3f, 0);
    cr_assert_str_eq(o->name, "12");
    cr_assert_str_eq(o->kind, "compile");
    cr_assert(o->axes.n == 2 && o->axes.v[1] == -1);
    cr_assert_eq(o->scales.n, 2);
    cr_assert(o->through.n == 2 && strcmp(o->through.v[1], "quantize_linear") == 0);
    cr_assert_eq(o->to, KILN_DTYPE_i8);
    cr_assert_eq(p->ir->len, 1);
}

Test(pipeline_yaml, anchors_and_groups)
{
    g_autoptr(KilnPassPipeline) p =
        good("version: 1\n"
             "graph:\n"
             "  - &tidy {pass: dce, convergence: until-fixed-point}\n"
             "  - group: [empty, *tidy, {pass: empty, dce: before-pass}]\n"
             "    dce: none\n"
             "    convergence: until-fixed-point\n"
             "  - *tidy\n");
    cr_assert_eq(p->graph->len, 3);
    const KilnPipelineEntry *group = entry_at(p, 1);
    cr_assert_null(group->pass);
    cr_assert_eq(group->group->len, 3);
    const KilnPipelineEntry *first = g_ptr_array_index(group->group, 0);
    const KilnPipelineEntry *last = g_ptr_array_index(group->group, 2);
    cr_assert_not(first->dce_before); /* the group's, where the member does not say */
    cr_assert(last->dce_before);
    cr_assert_eq(entry_at(p, 2)->convergence, KILN_UNTIL_FIXED_POINT);
}

static char *
print(const KilnPassPipeline *pipeline)
{
    GString *text = g_string_new(NULL);
    kiln_pass_pipeline_print(pipeline, text);
    return g_string_free(text, FALSE);
}

Test(pipeline_yaml, printing_reads_back)
{
    static const char *const texts[] = {
        "version: 1\n",
        "version: 1\ngraph: []\nir: []\n",
        "version: 1\nflags: [fp-reassoc]\ngraph: [dce, {}, {pass: empty, dce: none}]\n",
        "version: 1\ngraph:\n  - {group: [dce, {group: [empty], modes: [train]}], "
        "convergence: until-fixed-point, max-iterations: 3, modes: [infer]}\n",
        "version: 1\ngraph:\n  - pass: all-options\n    options: {name: \"a\\\"b\\\\c\\n\\t: {é\", "
        "factor: 0.1, axes: [1, 2, 3], through: [\"a b\", \"1\", \"\"], to: u64, deep: false, "
        "scales: [0.1, -inf], max-count: 9223372036854775807}\n",
        "version: 1\nir: [test-ir, {pass: test-ir, max-iterations: 2}]\n",
    };
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(KilnPassPipeline) once = good(texts[i]);
        g_autofree char *first = print(once);
        g_autoptr(KilnPassPipeline) twice = good(first);
        g_autofree char *second = print(twice);
        cr_assert_str_eq(first, second);
        cr_assert_eq(once->graph->len, twice->graph->len);
        cr_assert_eq(once->ir->len, twice->ir->len);
    }
}

Test(pipeline_yaml, printing_keeps_option_bits)
{
    g_autoptr(KilnPassPipeline) once = good(
        "version: 1\ngraph:\n  - pass: all-options\n    options: {name: \"a\\\"b\\\\\\n\\x01 é\", "
        "factor: 0.1}\n");
    g_autofree char *text = print(once);
    g_autoptr(KilnPassPipeline) twice = good(text);
    const AllOptions *a = entry_at(once, 0)->options, *b = entry_at(twice, 0)->options;
    cr_assert_str_eq(a->name, "a\"b\\\n\x01 é");
    cr_assert_str_eq(a->name, b->name);
    cr_assert_eq(memcmp(&a->factor, &b->factor, sizeof a->factor), 0);
}

/* --- inline --- */

Test(pipeline_yaml, inline_form)
{
    GError *error = NULL;
    g_autoptr(KilnPassPipeline) p = parse_inline(
        "dce, test-ir ,all-options{max-count=3,through=[a,\"b,}\"], name = \"x=\\\"y\\\"\","
        "dce=none,convergence=until-fixed-point,max-iterations=5,modes=train},empty{}",
        &error);
    cr_assert_not_null(p, "%s", error ? error->message : "");
    cr_assert_eq(p->graph->len, 3);
    cr_assert_eq(p->ir->len, 1);
    const KilnPipelineEntry *entry = entry_at(p, 1);
    const AllOptions *o = entry->options;
    cr_assert_eq(o->count, 3);
    cr_assert_str_eq(o->through.v[1], "b,}");
    cr_assert_str_eq(o->name, "x=\"y\"");
    cr_assert_not(entry->dce_before);
    cr_assert_eq(entry->convergence, KILN_UNTIL_FIXED_POINT);
    cr_assert_eq(entry->max_iterations, 5);
    cr_assert_eq(entry->modes, 1u << KILN_MODE_TRAIN);
    g_autofree char *yaml = print(p);
    g_autoptr(KilnPassPipeline) again = good(yaml);
    g_autofree char *second = print(again);
    cr_assert_str_eq(yaml, second);
}

Test(pipeline_yaml, inline_of_nothing)
{
    g_autoptr(KilnPassPipeline) p = parse_inline("  ", NULL);
    cr_assert_not_null(p);
    cr_assert_eq(p->graph->len + p->ir->len, 0);
}

Test(pipeline_yaml, inline_errors)
{
    bad_inline("dec", "passes:1:1: there is no pass 'dec' (did you mean 'dce'?)");
    bad_inline("dce,,empty", "passes:1:5: expected the name of a pass, found ','");
    bad_inline("dce,", "passes:1:5: expected the name of a pass, found the end");
    bad_inline("dce empty", "passes:1:5: expected ',' or the end, found 'e'");
    bad_inline("dce{", "passes:1:5: expected the name of an option, found the end");
    bad_inline("dce{x=1}", "passes:1:5: pass dce has no option 'x'");
    bad_inline(
        "all-options{max-cuont=1}",
        "passes:1:13: pass all-options has no option 'max-cuont' (did you mean 'max-count'?)");
    bad_inline(
        "all-options{max_count=1}",
        "passes:1:13: pass all-options has no option 'max_count' (did you mean 'max-count'?)");
    bad_inline(
        "all-options{max-count=x}",
        "passes:1:23: option 'max-count' of pass all-options: expected an integer, found 'x'");
    bad_inline(
        "all-options{max-count=\"1\"}",
        "passes:1:23: option 'max-count' of pass all-options: expected an integer, found '1'");
    bad_inline("all-options{kind=sometimes}", "passes:1:18: option 'kind' of pass all-options: "
                                              "expected run|compile, found 'sometimes'");
    bad_inline("all-options{deep=1}",
               "passes:1:18: option 'deep' of pass all-options: expected true or false, found '1'");
    bad_inline("all-options{axes=1}",
               "passes:1:18: option 'axes' of pass all-options: expected a list, found '1'");
    bad_inline("all-options{factor=1e99}",
               "passes:1:20: option 'factor' of pass all-options: expected a number, found '1e99'");
    bad_inline("all-options{max-count=9223372036854775808}",
               "passes:1:23: option 'max-count' of pass all-options: expected an integer, found "
               "'9223372036854775808'");
    bad_inline("all-options{deep=true,deep=true}", "passes:1:23: option 'deep' is there twice");
    bad_inline("all-options{name=\"x}", "passes:1:21: expected '\"', found the end");
    bad_inline("all-options{axes=[1,2}", "passes:1:22: expected ',' or ']', found '}'");
    bad_inline("all-options{axes=[,]}", "passes:1:19: expected a value, found ','");
    bad_inline("all-options{deep}", "passes:1:17: expected '=', found '}'");
    bad_inline("all-options{deep=true", "passes:1:22: expected ',' or '}', found the end");
    bad_inline("dce{max-iterations=0}",
               "passes:1:20: max-iterations: expected a number of 1 to 10000");
    bad_inline("dce{modes=test}", "passes:1:11: modes: expected infer, train or a list of them");
    bad_inline("test-ir{dce=none}", "passes:1:13: dce: expected no such key at the ir level");
    bad_inline("dce,\n  dec", "passes:2:3: there is no pass 'dec' (did you mean 'dce'?)");
}

/* --- what files must not say --- */

Test(pipeline_yaml, wrong_structure)
{
    bad("", "p.yaml:1:1: the file is empty");
    bad("# only a comment\n", "p.yaml:1:1: the file is empty");
    bad("---\n", "expected a mapping with 'version', found nothing");
    bad("[1]\n", "p.yaml:1:1: expected a mapping with 'version', found a list");
    bad("graph: []\n", "p.yaml:1:1: 'version: 1' is missing");
    bad("version: 2\n", "p.yaml:1:10: version: expected 1, found '2'");
    bad("version: \"1\"\n", "p.yaml:1:10: version: expected 1, found '1'");
    bad("version: [1]\n", "p.yaml:1:10: version: expected 1, found a list");
    bad("version: 1\ngarph: []\n",
        "p.yaml:2:1: a pipeline has no key 'garph' (did you mean 'graph'?)");
    bad("version: 1\ngraph: dce\n", "p.yaml:2:8: graph: expected a list of entries, found 'dce'");
    bad("version: 1\ngraph:\n", "graph: expected a list of entries, found nothing");
    bad("version: 1\ngraph:\n  -\n", "expected the name of a pass, found nothing");
    bad("version: 1\ngraph: [[dce]]\n", "p.yaml:2:9: expected the name of a pass, found a list");
    bad("version: 1\nversion: 1\n", "p.yaml:2:1: the key 'version' was given before, at line 1");
    bad("version: 1\n---\nversion: 1\n", "p.yaml:2:1: a pipeline file has one document");
    bad("version: 1\n...\nversion: 1\n", "a pipeline file has one document");
}

Test(pipeline_yaml, wrong_keys_and_values)
{
    bad("version: 1\ngraph:\n  - pass: dec\n",
        "p.yaml:3:11: there is no pass 'dec' (did you mean 'dce'?)");
    bad("version: 1\ngraph:\n  - pass: test-ir\n",
        "p.yaml:3:11: pass test-ir is of the ir level and cannot stand under 'graph'");
    bad("version: 1\nir:\n  - pass: dce\n",
        "p.yaml:3:11: pass dce is of the graph level and cannot stand under 'ir'");
    bad("version: 1\nir:\n  - {}\n", "p.yaml:3:5: an entry of the ir level needs a pass");
    bad("version: 1\nir:\n  - {pass: test-ir, dce: none}\n",
        "p.yaml:3:26: dce: the ir level has no such key");
    bad("version: 1\ngraph:\n  - {pas: dce}\n",
        "p.yaml:3:6: an entry has no key 'pas' (did you mean 'pass'?)");
    bad("version: 1\ngraph:\n  - {pass: dce, group: [dce]}\n",
        "p.yaml:3:5: an entry is a pass or a group, not both");
    bad("version: 1\ngraph:\n  - {pass: dce, convergence: forever}\n",
        "p.yaml:3:30: convergence: expected one-pass or until-fixed-point, found 'forever'");
    bad("version: 1\ngraph:\n  - {pass: dce, max-iterations: 0}\n",
        "p.yaml:3:33: max-iterations: expected a number of 1 to 10000, found '0'");
    bad("version: 1\ngraph:\n  - {pass: dce, max-iterations: 10001}\n", "found '10001'");
    bad("version: 1\ngraph:\n  - {pass: dce, max-iterations: 1.5}\n", "found '1.5'");
    bad("version: 1\ngraph:\n  - {pass: dce, max-iterations: [1]}\n", "found a list");
    bad("version: 1\ngraph:\n  - {pass: dce, dce: after}\n",
        "p.yaml:3:22: dce: expected before-pass or none, found 'after'");
    bad("version: 1\ngraph:\n  - {pass: dce, modes: []}\n",
        "p.yaml:3:24: modes: expected a list of infer and train, found an empty one");
    bad("version: 1\ngraph:\n  - {pass: dce, modes: train}\n",
        "p.yaml:3:24: modes: expected a list of infer and train, found 'train'");
    bad("version: 1\ngraph:\n  - {pass: dce, modes: [[train]]}\n", "expected infer or train");
    bad("version: 1\nplugins: lib.so\n", "p.yaml:2:10: plugins: expected a list, found 'lib.so'");
    bad("version: 1\ngraph:\n  - {pass: dce, modes: [test]}\n",
        "p.yaml:3:25: modes: expected infer or train, found 'test'");
    bad("version: 1\ngraph:\n  - {pass: dce, modes: [train, train]}\n", "'train' is there twice");
    bad("version: 1\ngraph:\n  - {group: []}\n",
        "p.yaml:3:13: group: expected a list of passes, found an empty one");
    bad("version: 1\ngraph:\n  - {group: dce}\n", "found 'dce'");
    bad("version: 1\ngraph:\n  - {group: [dce], options: {x: 1}}\n",
        "p.yaml:3:29: options belong to a pass, not to a group");
    bad("version: 1\nflags: [no-signed-zero]\n",
        "p.yaml:2:9: there is no flag 'no-signed-zero' (did you mean 'no-signed-zeros'?)");
    bad("version: 1\nflags: [finite-math, finite-math]\n", "'finite-math' is there twice");
    bad("version: 1\nflags: finite-math\n", "p.yaml:2:8: flags: expected a list");
}

Test(pipeline_yaml, wrong_options)
{
    bad("version: 1\ngraph:\n  - pass: dce\n    options: {x: 1}\n",
        "p.yaml:4:15: pass dce has no option 'x'");
    bad("version: 1\ngraph:\n  - pass: all-options\n    options: {max-cuont: 1}\n",
        "p.yaml:4:15: pass all-options has no option 'max-cuont' (did you mean 'max-count'?)");
    bad("version: 1\ngraph:\n  - pass: all-options\n    options: {max-count: x}\n",
        "p.yaml:4:26: option 'max-count' of pass all-options: expected an integer, found 'x'");
    bad("version: 1\ngraph:\n  - pass: all-options\n    options: {kind: never}\n",
        "p.yaml:4:21: option 'kind' of pass all-options: expected run|compile, found 'never'");
    bad("version: 1\ngraph:\n  - pass: all-options\n    options: {deep: yes}\n",
        "expected true or false, found 'yes'");
    bad("version: 1\ngraph:\n  - pass: all-options\n    options: {to: f33}\n",
        "expected an element type, found 'f33'");
    bad("version: 1\ngraph:\n  - pass: all-options\n    options: {axes: [1, b]}\n",
        "expected a list of integers, found '[1, b]'");
    bad("version: 1\ngraph:\n  - pass: all-options\n    options: {name: [a]}\n",
        "expected one value, found '[a]'");
    bad("version: 1\ngraph:\n  - pass: all-options\n    options: {name: }\n",
        "option 'name': expected a value, found nothing");
    bad("version: 1\ngraph:\n  - pass: all-options\n    options: {name: {a: b}}\n",
        "p.yaml:4:21: option 'name': expected a value, found a mapping");
    bad("version: 1\ngraph:\n  - pass: all-options\n    options: [1]\n",
        "p.yaml:4:14: options: expected a mapping, found a list");
}

/* What the parser library lets through, or worse. */
Test(pipeline_yaml, traps_of_yaml)
{
    bad("%x\xa0", "p.yaml:1:1: directives ('%') are not supported");
    bad("version: 1\n%YAML 1.2\n", "p.yaml:2:1: directives ('%') are not supported");
    bad("version: 1\r%TAG\n", "p.yaml:2:1: directives");
    bad("\xef\xbb\xbf%YAML 1.2\n", "directives");
    bad("version: 1\ngraph: [\xa0]\n", "p.yaml:2:9: this byte is not UTF-8");
    bad("version: 1\ngraph:\n  - *nowhere\n", "p.yaml:3:6: there is no anchor '&nowhere'");
    bad("version: 1\ngraph: &g\n  - *g\n", "p.yaml:3:6: '*g' is inside its own anchor");
    bad("version: 1\ngraph:\n  - &e {options: {x: *e}}\n", "'*e' is inside its own anchor");
    bad("version: 1\ngraph:\n  - &a {pass: dce}\n  - {<<: *a, dce: none}\n",
        "p.yaml:4:6: merge keys ('<<') are not supported");
    bad("version: 1\n? \n: x\n", "a key is missing");
    bad("version: 1\n~: x\n", "p.yaml:2:1: a key is missing");
    bad("version: 1\nnull: x\n", "p.yaml:2:1: a key is missing");
    bad("version: 1\n? [a, b]\n: x\n", "p.yaml:2:3: a key must be a word");
    bad("version: 1\ngraph: !!seq [dce]\n", "tags ('!') are not supported");
    bad("version: 1\ngraph: [dce\n", "p.yaml:");
    bad("version: 1\n graph: []\n", "p.yaml:1:10: ");
    bad("version: 1\ngraph:\n\t- dce\n", "p.yaml:3:1: tabs are not supported");
    bad("? a:\t:", "p.yaml:1:5: tabs are not supported");
    bad("version: 1\ngraph: \"dce\n", "p.yaml:");
}

Test(pipeline_yaml, zero_bytes_are_refused)
{
    static const char text[] = "version: 1\n\0graph: []\n";
    g_autoptr(GError) error = NULL;
    cr_assert_null(kiln_pass_pipeline_parse_yaml(text, sizeof text - 1, "p.yaml", &error));
    cr_assert_str_eq(error->message, "p.yaml:2:1: a zero byte cannot stand here");
}

Test(pipeline_yaml, aliases_that_multiply_are_counted)
{
    g_autoptr(GString) text = g_string_new("version: 1\ngraph:\n  - &a0 {group: [dce]}\n");
    for (int i = 1; i < 12; i++) {
        g_string_append_printf(text, "  - &a%d {group: [", i);
        for (int k = 0; k < 10; k++)
            g_string_append_printf(text, "%s*a%d", k ? ", " : "", i - 1);
        g_string_append(text, "]}\n");
    }
    bad(text->str, "too many nodes (aliases and includes count each time)");
}

Test(pipeline_yaml, depth_is_bounded)
{
    g_autoptr(GString) text = g_string_new("version: 1\ngraph: ");
    for (int i = 0; i < 5000; i++)
        g_string_append_c(text, '[');
    bad(text->str, "p.yaml:2:");
    /* by aliases too, each of which is shallow where it is written */
    g_string_assign(text, "version: 1\ngraph:\n  - &a0 {group: [dce]}\n");
    for (int i = 1; i < 20; i++)
        g_string_append_printf(text, "  - &a%d {group: [*a%d]}\n", i, i - 1);
    bad(text->str, "this is nested too deep");
}

Test(pipeline_yaml, all_that_is_wrong_is_told)
{
    g_autoptr(GError) error = NULL;
    cr_assert_null(parse("version: 1\ngraph:\n  - pass: dec\n  - {pass: dce, dce: no}\n"
                         "  - pass: dce\n    modes: [x]\n",
                         &error));
    cr_assert_str_eq(error->message, "p.yaml:3:11: there is no pass 'dec' (did you mean 'dce'?)\n"
                                     "p.yaml:4:22: dce: expected before-pass or none, found 'no'\n"
                                     "p.yaml:6:13: modes: expected infer or train, found 'x'");
    g_autoptr(GString) many = g_string_new("version: 1\ngraph:\n");
    for (int i = 0; i < 50; i++)
        g_string_append(many, "  - zzz\n");
    bad(many->str, "p.yaml: and 30 more");
}

/* --- includes --- */

typedef struct {
    char *directory;
} Folder;

static Folder
folder_new(void)
{
    Folder folder = { g_dir_make_tmp("kiln-yaml-XXXXXX", NULL) };
    cr_assert_not_null(folder.directory);
    return folder;
}

static char *
write_in(const Folder *folder, const char *name, const char *text)
{
    char *path = g_build_filename(folder->directory, name, NULL);
    cr_assert(g_file_set_contents(path, text, -1, NULL));
    return path;
}

static void
folder_free(Folder *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder->directory, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder->directory, name, NULL);
        g_remove(path);
    }
    g_rmdir(folder->directory);
    g_free(folder->directory);
}

Test(pipeline_yaml, includes_are_relative_to_the_including_file)
{
    Folder folder = folder_new();
    g_autofree char *inner = write_in(&folder, "inner.yaml",
                                      "version: 1\nflags: [finite-math]\n"
                                      "graph: [dce, {pass: empty, dce: none}]\nir: []\n");
    g_autofree char *outer =
        write_in(&folder, "outer.yaml",
                 "version: 1\nflags: [finite-math]\ngraph:\n  - empty\n  - include: inner.yaml\n"
                 "  - {group: [{include: inner.yaml}]}\n");
    GError *error = NULL;
    g_autoptr(KilnPassPipeline) p = kiln_pass_pipeline_load(outer, &error);
    cr_assert_not_null(p, "%s", error ? error->message : "");
    cr_assert_eq(p->graph->len, 4);
    cr_assert_eq(entry_at(p, 3)->group->len, 2);
    g_autofree char *where = g_strdup_printf("%s:3:9", inner);
    cr_assert_str_eq(entry_at(p, 1)->where, where);
    folder_free(&folder);
}

static void
bad_file(const char *path, const char *message)
{
    g_autoptr(GError) error = NULL;
    cr_assert_null(kiln_pass_pipeline_load(path, &error));
    cr_assert(strstr(error->message, message), "expected: %s\nfound:    %s", message,
              error->message);
}

Test(pipeline_yaml, wrong_includes)
{
    Folder folder = folder_new();
    g_autofree char *self =
        write_in(&folder, "self.yaml", "version: 1\ngraph:\n  - include: ./self.yaml\n");
    g_autofree char *a = write_in(&folder, "a.yaml", "version: 1\ngraph:\n  - include: b.yaml\n");
    g_free(write_in(&folder, "b.yaml", "version: 1\ngraph:\n  - include: a.yaml\n"));
    g_free(write_in(&folder, "lossy.yaml", "version: 1\nflags: [fp-reassoc]\ngraph: []\n"));
    g_free(write_in(&folder, "broken.yaml", "version: 1\ngraph: [dec]\n"));
    g_free(write_in(&folder, "torn.yaml", "version: 1\ngraph: [dce\n"));
    g_free(write_in(&folder, "no-ir.yaml", "version: 1\ngraph: []\n"));
    bad_file(self, "self.yaml:3:14: include: ");
    bad_file(self, "includes itself");
    bad_file(a, "b.yaml:3:14: include: ");
    g_autofree char *main_path = NULL;
    static const char *const cases[][2] = {
        { "  - include: nowhere.yaml\n", "main.yaml:3:14: include: " },
        { "  - include: nowhere\n", "main.yaml:3:14: include: expected a file or one of " },
        { "  - {include: no-ir.yaml, dce: none}\n",
          "main.yaml:3:5: an entry with 'include' has no other keys" },
        { "  - include: [x]\n", "main.yaml:3:14: expected the path of a pipeline file" },
        { "  - include: lossy.yaml\n", "lossy.yaml:2:8: flag 'fp-reassoc' is not set by " },
        { "  - include: broken.yaml\n", "broken.yaml:2:9: there is no pass 'dec'" },
        { "  - include: torn.yaml\n", "torn.yaml:" },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strconcat("version: 1\ngraph:\n", cases[i][0], NULL);
        g_free(main_path);
        main_path = write_in(&folder, "main.yaml", text);
        bad_file(main_path, cases[i][1]);
    }
    g_free(main_path);
    main_path = write_in(&folder, "main.yaml", "version: 1\nir:\n  - include: no-ir.yaml\n");
    bad_file(main_path, "main.yaml:3:14: include: ");
    bad_file(main_path, "no-ir.yaml has no 'ir' list");
    folder_free(&folder);
}

Test(pipeline_yaml, includes_of_includes_are_bounded)
{
    Folder folder = folder_new();
    for (int i = 0; i < 30; i++) {
        g_autofree char *name = g_strdup_printf("f%d.yaml", i);
        g_autofree char *text =
            g_strdup_printf("version: 1\ngraph:\n  - include: f%d.yaml\n", i + 1);
        g_free(write_in(&folder, name, text));
    }
    g_autofree char *first = g_build_filename(folder.directory, "f0.yaml", NULL);
    bad_file(first, "more than 16 files inside files");
    g_autoptr(GString) wide = g_string_new("version: 1\ngraph:\n");
    for (int i = 0; i < 300; i++)
        g_string_append(wide, "  - include: leaf.yaml\n");
    g_free(write_in(&folder, "leaf.yaml", "version: 1\ngraph: []\n"));
    g_autofree char *main_path = write_in(&folder, "wide.yaml", wide->str);
    bad_file(main_path, "more than 256 files");
    folder_free(&folder);
}

Test(pipeline_yaml, a_missing_file_is_an_io_error)
{
    g_autoptr(GError) error = NULL;
    cr_assert_null(kiln_pass_pipeline_load("no/such/pipeline.yaml", &error));
    cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_IO));
}

/* --- pipelines in C, registered passes --- */

Test(pipeline_yaml, built_in_c)
{
    g_autoptr(KilnPassPipeline) p = pipeline_with_passes();
    KilnPipelineEntry *entry = kiln_pass_pipeline_add(p, "all-options", NULL);
    cr_assert_not_null(entry);
    cr_assert_eq(((AllOptions *)entry->options)->count, 7);
    cr_assert_not_null(kiln_pass_pipeline_add(p, "test-ir", NULL));
    cr_assert_eq(p->ir->len, 1);
    g_autoptr(GError) error = NULL;
    cr_assert_null(kiln_pass_pipeline_add(p, "all-option", &error));
    cr_assert_str_eq(error->message, "there is no pass 'all-option' (did you mean 'all-options'?)");
}

Test(pipeline_yaml, registering_checks_the_row)
{
    static const KilnOptionTable empty = { .n = 1 };
    static const KilnRuleList no_rules = { NULL, 0, KILN_SWEEP_FORWARD };
    static const KilnPassInfo rows[] = {
        { .id = NULL, .run_graph = does_nothing },
        { .id = "Upper", .run_graph = does_nothing },
        { .id = "under_score", .run_graph = does_nothing },
        { .id = "no-function" },
        { .id = "wrong-function", .level = KILN_LEVEL_IR, .run_graph = does_nothing },
        { .id = "no-options", .run_graph = does_nothing, .options = &empty },
        { .id = "rules-of-ir", .level = KILN_LEVEL_IR, .rules = &no_rules },
        { .id = "dce", .run_graph = does_nothing },
    };
    g_autoptr(KilnPassPipeline) p = kiln_pass_pipeline_new();
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        cr_assert_not(kiln_pass_pipeline_register(p, &rows[i], &error));
        cr_assert(g_error_matches(error, KILN_ERROR, KILN_ERROR_PIPELINE));
    }
}

/* --- any text --- */

static const char *const seeds[] = {
    "version: 1\nflags: [no-signed-zeros]\ngraph:\n  - &tidy {pass: dce}\n  - pass: all-options\n"
    "    convergence: until-fixed-point\n    options: {through: [a, b], name: \"x\\n\"}\n  - "
    "*tidy\n"
    "  - group: [dce, empty]\nir:\n  - pass: test-ir\n",
    "%x\xa0",
    "? [a, *b]\n: &b {<<: !t 'x'}\n--- |\n  text\n...\n",
    "version: 1\ngraph: &g [{options: {x: *g}}, \"\\x41\\u0041\", 'it''s', >-\n folded\n]\n",
};

Test(pipeline_yaml, no_bytes_crash_or_hang)
{
    alarm(120); /* Criterion's own timeout leaks */
    for (size_t s = 0; s < G_N_ELEMENTS(seeds); s++) {
        size_t length = strlen(seeds[s]);
        for (uint64_t round = 0; round < 1500; round++) {
            g_autofree char *text = g_malloc(length + 8);
            memcpy(text, seeds[s], length);
            size_t size = length;
            uint64_t flips = 1 + kiln_random_bits(s, round) % 4;
            for (uint64_t k = 0; k < flips; k++) {
                uint64_t bits = kiln_random_bits(s * 1000003 + round, k);
                size_t at = (size_t)(bits % size);
                static const char special[] = "%&*!?:-[]{}<>|'\"\n\t #,\xa0\0~@`";
                if (bits >> 62 == 0)
                    text[at] ^= (char)(1 << (bits >> 40 & 7));
                else if (bits >> 62 == 1)
                    text[at] = special[(bits >> 40) % (sizeof special - 1)];
                else if (bits >> 62 == 2)
                    size = MAX(at, (size_t)1);
                else if (size < length + 8)
                    memmove(text + at + 1, text + at, size++ - at);
            }
            g_autoptr(GError) error = NULL;
            g_autoptr(KilnPassPipeline) p = pipeline_with_passes();
            gboolean ok = kiln_pipeline_read_yaml(p, text, size, "p.yaml", &error);
            cr_assert_eq(ok, error == NULL);
            cr_assert(ok || g_str_has_prefix(error->message, "p.yaml:"), "%s", error->message);
        }
    }
}

Test(pipeline_yaml, no_inline_text_crashes_or_hangs)
{
    alarm(60);
    static const char seed[] =
        "dce, all-options{max-count=3,through=[a,\"b\"],name=\"x\\\"y\"},empty{}";
    for (uint64_t round = 0; round < 5000; round++) {
        char text[sizeof seed];
        memcpy(text, seed, sizeof seed);
        for (uint64_t k = 0; k < 3; k++) {
            uint64_t bits = kiln_random_bits(round, k);
            text[bits % (sizeof seed - 1)] = (char)(bits >> 32);
        }
        g_autoptr(GError) error = NULL;
        g_autoptr(KilnPassPipeline) p = pipeline_with_passes();
        gboolean ok = kiln_pipeline_read_inline(p, text, &error);
        cr_assert_eq(ok, error == NULL);
    }
}
