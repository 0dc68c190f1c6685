/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of the graph level: what is printed reads back to the same text and the same bits,
 * what is written by hand is normalised, and what is wrong is refused with its place. */
#include "graph/node.h"
#include "text_files.h"

#include "graph/base/alloc.h"
#include "graph/text/text.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static KilnModule *
parse(const char *text, const char *path)
{
    g_autoptr(GError) error = NULL;
    KilnModule *module = kiln_module_parse(text, strlen(text), path, &error);
    cr_assert(module, "%s in:\n%s", error ? error->message : "", text);
    return module;
}

static char *
print_with(const KilnModule *module, const KilnPrintOptions *options)
{
    GString *out = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_module_print(module, options, out, &error), "%s", error ? error->message : "");
    return g_string_free(out, FALSE);
}

static char *
print(const KilnModule *module)
{
    return print_with(module, NULL);
}

/* --- what is printed --- */

Test(text, printed_text_reads_back_to_itself)
{
    g_autoptr(GPtrArray) files = text_files(false);
    cr_assert_geq(files->len, 10);
    for (guint i = 0; i < files->len; i++) {
        const TextFile *file = g_ptr_array_index(files, i);
        g_autoptr(KilnModule) module = parse(file->text, file->path);
        g_autofree char *again = print(module);
        cr_assert_str_eq(again, file->text, "%s:\n%s", file->path, again);
        /* A function alone prints as it does in its module. */
        for (guint k = 0; k < module->functions->len; k++) {
            g_autoptr(GString) alone = g_string_new(NULL);
            kiln_function_print(g_ptr_array_index(module->functions, k), alone);
            cr_assert(strstr(file->text, alone->str), "%s", alone->str);
        }
    }
}

/* A random operator keeps its stream where it is renamed: the text says which where the name does
 * not. */
Test(text, streams_of_random_operators)
{
    static const char text[] = "graph @f() {\n"
                               "  %a = random_normal() {shape=[4], stream=7} : f32[4]\n"
                               "  %b = random_uniform() {shape=[4]} : f32[4]\n"
                               "  %c = random_uniform() {seed=1, shape=[4]} : f32[4]\n"
                               "  return %a, %b, %c\n"
                               "}\n";
    g_autoptr(KilnModule) module = parse(text, "f.kiln");
    g_autofree char *again = print(module);
    cr_expect_str_eq(again, text);
    KilnNode *b = NULL;
    kiln_foreach_node (node, kiln_module_entry(module)) {
        if (strcmp(kiln_node_label(node), "b") == 0)
            b = node;
    }
    cr_assert(b);
    *kiln_node_stream(b) = 7;
    g_autofree char *moved = print(module);
    cr_expect(strstr(moved, "%b = random_uniform() {shape=[4], stream=7}"), "%s", moved);
}

Test(text, hand_written_text_is_normalised)
{
    static const char *const cases[][2] = {
        /* Types may be left to inference; defaults that are stated vanish; blocks come in any
         * order, several of each kind. */
        { "constants{@k=[1,2]:f32[2]} # a comment\r\ngraph @g(%x: f32[1,2]){%c=const @k "
          "%y=add(%x,%c){} "
          "%z=softmax(%y){axis=-1}:f32[?,?] return %z as \"ok\"}constants{@m=[]:i64[0]}",
          "graph @g(%x: f32[1,2]) {\n"
          "  %c = const @k : f32[2]\n"
          "  %y = add(%x, %c) : f32[1,2]\n"
          "  %z = softmax(%y) : f32[1,2]\n"
          "  return %z as ok\n"
          "}\n"
          "\n"
          "constants {\n"
          "  @k = [1, 2] : f32[2]\n"
          "  @m = [] : i64[0]\n"
          "}\n" },
        { "graph @g(%i: i64[3] variable in [ 0 , 4 ) constant=run, %\"plain\": f32[\"N\"]) "
          "{ return %i as \"i\" }",
          "graph @g(%i: i64[3] constant=run variable in [0,4), %plain: f32[N]) {\n"
          "  return %i\n"
          "}\n" },
        { "graph @d(%x: f32[ceil(N/2),mod(N,4),mod(N,1)]) { return %x as \"a\\rb\" }",
          "graph @d(%x: f32[N-floor(N/2),N-4*floor(N/4),0]) {\n"
          "  return %x as \"a\\rb\"\n"
          "}\n" },
        { "constants { @x = [1.0, 1e0, 0.5e1, 100000000000000000000, -0.0] : f32[5]\n"
          "@h = [0.1, 1.00048828125] : f16[2] @n = [nan(0x7fc00000)] : f32[1] }",
          "constants {\n"
          "  @x = [1, 1, 5, 1e+20, -0] : f32[5]\n"
          "  @h = [0.1, 1] : f16[2]\n"
          "  @n = [nan] : f32[1]\n"
          "}\n" },
        /* Lists of quantizations that begin and end alike, once more, and in lines of their own. */
        { "graph @q(%a: i8[3] q(axis=0,[1,2,3],[4,5,6]), %b: i8[3] q(axis=0,[1,2,3],[4,5,6]), "
          "%c: u8[1,3] q(axis=1,[1,2,3],[4,5,6]),%d: i8[3] q(axis=0,[1,7,3],[4,5,6]),\n"
          "%e: i8[3] q(axis=0,[1,\n2,3],[4,5,6]), %f: i8[3] q(axis=0,[1,\n2,3],[4,5,6])) "
          "{ return }",
          "graph @q(%a: i8[3] q(axis=0,[1,2,3],[4,5,6]), %b: i8[3] q(axis=0,[1,2,3],[4,5,6]), "
          "%c: u8[1,3] q(axis=1,[1,2,3],[4,5,6]), %d: i8[3] q(axis=0,[1,7,3],[4,5,6]), "
          "%e: i8[3] q(axis=0,[1,2,3],[4,5,6]), %f: i8[3] q(axis=0,[1,2,3],[4,5,6])) {\n"
          "  return\n"
          "}\n" },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(KilnModule) module = parse(cases[i][0], "hand.kiln");
        g_autofree char *printed = print(module);
        cr_assert_str_eq(printed, cases[i][1]);
    }
}

Test(text, a_node_prints_alone)
{
    const char *text =
        "graph @g(%c: bool[], %x: f32[2]) {\n"
        "  %y = if(%c) then {\n    return %x\n  } else {\n    return %x\n  } : f32[2]\n"
        "  %z = relu(%y) loc(\"R\")\n  return %z\n}\n";
    g_autoptr(KilnModule) module = parse(text, NULL);
    const KilnFunction *function = kiln_module_entry(module);
    g_autoptr(GString) out = g_string_new(NULL);
    kiln_node_print(function->first, out);
    cr_assert_str_eq(out->str,
                     "%y = if(%c) then {\n  return %x\n} else {\n  return %x\n} : f32[2]");
    g_string_truncate(out, 0);
    kiln_node_print(function->first->next, out);
    cr_assert_str_eq(out->str, "%z = relu(%y) : f32[2] loc(\"R\")");
    cr_assert_str_eq(function->first->next->name, "R");
    cr_assert_null(function->first->name);
}

Test(text, options_leave_constants_out_or_collect_their_bytes)
{
    g_autoptr(GString) text = g_string_new("constants {\n  @a = [1] : u8[1]\n");
    for (int k = 0; k < 2; k++) {
        g_string_append_printf(text, "  @big%d = [", k);
        for (int i = 0; i < 65; i++)
            g_string_append_printf(text, i ? ", %d" : "%d", i + k);
        g_string_append(text, "] : u8[65]\n");
    }
    g_string_append(text, "  @s = splat(3) : f32[1000]\n}\n");
    g_autoptr(KilnModule) module = parse(text->str, NULL);
    KilnPrintOptions none = { .no_constants = true };
    g_autofree char *without = print_with(module, &none);
    cr_assert_str_eq(without, "");
    KilnPrintOptions collect = { .data_name = "F.bin", .data = g_byte_array_new() };
    g_autofree char *with = print_with(module, &collect);
    cr_assert_str_eq(with, "constants {\n"
                           "  @a = [1] : u8[1]\n"
                           "  @big0 = file(\"F.bin\", 0, 65) : u8[65]\n"
                           "  @big1 = file(\"F.bin\", 128, 65) : u8[65]\n"
                           "  @s = splat(3) : f32[1000]\n"
                           "}\n");
    cr_assert_eq(collect.data->len, 128 + 65);
    cr_assert_eq(collect.data->data[64], 64);
    cr_assert_eq(collect.data->data[65], 0);
    cr_assert_eq(collect.data->data[128 + 64], 65);
    g_byte_array_unref(collect.data);
}

/* --- constants in files --- */

typedef struct {
    char *directory, *data, *text;
} Folder;

static Folder
folder_new(void)
{
    Folder folder = { .directory = g_dir_make_tmp("kiln-text-XXXXXX", NULL) };
    cr_assert(folder.directory);
    folder.data = g_build_filename(folder.directory, "F.bin", NULL);
    folder.text = g_build_filename(folder.directory, "f.kiln", NULL);
    char bytes[300];
    for (int i = 0; i < 300; i++)
        bytes[i] = (char)i;
    cr_assert(g_file_set_contents(folder.data, bytes, sizeof bytes, NULL));
    return folder;
}

static void
folder_free(Folder *folder)
{
    g_unlink(folder->data);
    g_rmdir(folder->directory);
    g_free(folder->directory);
    g_free(folder->data);
    g_free(folder->text);
}

Test(text, bytes_of_files_are_mapped_not_copied)
{
    Folder folder = folder_new();
    static const char text[] = "constants {\n"
                               "  @a = file(\"F.bin\", 3, 280) : f32[70]\n"
                               "  @b = file(\"./F.bin\", 4, 70) : u8[70]\n"
                               "  @c = file(\"F.bin\", 0, 0) : f32[0]\n"
                               "  @d = file(\"F.bin\", 200, 100) : u8[100]\n"
                               "}\n";
    g_autoptr(KilnModule) module = parse(text, folder.text);
    const KilnTensor *a = kiln_module_find_constant(module, "a")->tensor;
    const KilnTensor *b = kiln_module_find_constant(module, "b")->tensor;
    const KilnTensor *d = kiln_module_find_constant(module, "d")->tensor;
    cr_assert_str_eq(a->file, folder.data);
    cr_assert_eq(a->file_offset, 3);
    const char *from = g_bytes_get_data(a->bytes, NULL), *end = g_bytes_get_data(d->bytes, NULL);
    cr_assert_eq(from[0], 3);
    cr_assert_eq((uintptr_t)(from - 3) % 4096, 0, "the map of a file begins a page");
    cr_assert_eq(end - from, 197, "one map for one path");
    cr_assert_eq(((const char *)g_bytes_get_data(b->bytes, NULL))[0], 4);
    /* Printed for that folder, they point into the file again; what is small is inline. */
    const KilnPrintOptions here = { .directory = folder.directory };
    g_autofree char *printed = print_with(module, &here);
    cr_assert_str_eq(printed, "constants {\n"
                              "  @a = file(\"F.bin\", 3, 280) : f32[70]\n"
                              "  @b = file(\"F.bin\", 4, 70) : u8[70]\n"
                              "  @c = [] : f32[0]\n"
                              "  @d = file(\"F.bin\", 200, 100) : u8[100]\n"
                              "}\n");
    /* For another, the text holds the bytes itself. */
    g_autofree char *below = g_build_filename(folder.directory, "F", NULL);
    const KilnPrintOptions there = { .directory = below };
    g_autofree char *whole = print_with(module, &there);
    cr_assert(strstr(whole, "@a = base64("));
    cr_assert_null(strstr(whole, "file("));
    folder_free(&folder);
}

static void
expect_error_at(const char *text, const char *path, KilnError code, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnModule) module = kiln_module_parse(text, strlen(text), path, &error);
    cr_assert_null(module, "parsed: %s", text);
    cr_assert(error);
    cr_assert(g_error_matches(error, KILN_ERROR, code), "code %d: %s", error->code, error->message);
    cr_assert_str_eq(error->message, message);
}

Test(text, files_that_do_not_fit_are_errors)
{
    Folder folder = folder_new();
    const struct {
        const char *payload;
        KilnError code;
        const char *why; /* behind `path:1:1x: `; %s: the folder */
    } cases[] = {
        { "file(\"F.bin\", 0, 7) : f32[2]", KILN_ERROR_PARSE, "24: expected 8 bytes, found 7" },
        { "file(\"F.bin\", 293, 8) : f32[2]", KILN_ERROR_IO,
          "24: %s/F.bin: expected at least 8 bytes from 293 on, found a file of 300" },
        { "file(\"F.bin\", 9223372036854775807, 8) : f32[2]", KILN_ERROR_IO,
          "24: %s/F.bin: expected at least 8 bytes from 9223372036854775807 on, found a file of "
          "300" },
        { "file(\"F.bin\", -1, 8) : f32[2]", KILN_ERROR_PARSE,
          "33: expected an integer from 0 to 9223372036854775807, found '-1'" },
        { "file(\"G.bin\", 0, 8) : f32[2]", KILN_ERROR_IO, "24: %s/G.bin: no such file" },
        { "file(\"\", 0, 8) : f32[2]", KILN_ERROR_PARSE,
          "24: expected a path below the text's directory, found ''" },
        { "file(\"../F.bin\", 0, 8) : f32[2]", KILN_ERROR_PARSE,
          "24: expected a path below the text's directory, found '../F.bin'" },
        { "file(\"a/../../F.bin\", 0, 8) : f32[2]", KILN_ERROR_PARSE,
          "24: expected a path below the text's directory, found "
          "'a/../../F.bin'" },
        { "file(\"/dev/zero\", 0, 8) : f32[2]", KILN_ERROR_PARSE,
          "24: expected a path below the text's directory, found '/dev/zero'" },
        { "file(\".\", 0, 8) : f32[2]", KILN_ERROR_IO, "24: %s/.: no such file" },
        { "file(\"out\", 0, 8) : f32[2]", KILN_ERROR_PARSE,
          "24: expected a path below the text's directory, found 'out', a link that leads out of "
          "it" },
        { "file(3, 0, 8) : f32[2]", KILN_ERROR_PARSE,
          "24: expected a path as a string, found '3'" },
    };
    g_autofree char *out = g_build_filename(folder.directory, "out", NULL);
    cr_assert_eq(symlink("/etc/passwd", out), 0);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf("constants { @x1 = %s }", cases[i].payload);
        g_auto(GStrv) parts = g_strsplit(cases[i].why, "%s", -1);
        g_autofree char *why = g_strjoinv(folder.directory, parts);
        g_autofree char *message = g_strdup_printf("%s:1:%s", folder.text, why);
        expect_error_at(text, folder.text, cases[i].code, message);
    }
    g_unlink(out);
    folder_free(&folder);
}

/* --- what is refused --- */

static const struct {
    const char *text, *message;
} syntax_errors[] = {
    { "hello", "1:1: expected 'graph', 'fold', 'constants', 'declare', 'dims' or 'metadata', found "
               "'hello'" },
    { "metadata {",
      "1:11: expected producer_name, producer_version, domain, doc_string, ir_version, "
      "model_version, opset, property or '}', found the end of the text" },
    { "metadata { opset 3 = 4 }", "1:18: expected a string, found '3'" },
    { "metadata { property \"a\" }", "1:25: expected '=', found '}'" },
    { "metadata { domain = \"a\" } metadata { domain = \"b\" }",
      "1:36: expected one block 'metadata', found '{'" },
    { "graph @f(%x: sequence[2]) { return }", "1:22: expected '(', found '['" },
    { "graph @f(%x: sequence()) { return }",
      "1:23: expected a type such as f32[2,N,3], found ')'" },
    { "graph @f(%x: sequence(f32)) { return }", "1:26: expected '[', found ')'" },
    { "graph @f(%x: sequence(f32[2],f32[2])) { return }", "1:29: expected ')', found ','" },
    { "graph @f(%x: f32[-]) { return }", "1:19: expected a dim, found ']'" },
    { "graph @f(%x: map(f32,f32)) { return }", "1:18: expected i64 or string, found 'f32'" },
    { "graph @f(%x: map(i64)) { return }", "1:21: expected ',', found ')'" },
    { "graph @f(%x: map(i64,f32[2])) { return }", "1:25: expected ')', found '['" },
    { "graph @f(%x: sequence(optional(sequence(optional(f32[2]))))) { return }",
      "1:49: expected at most three types inside each other, found '('" },
    { "dims", "1:5: expected '{', found the end of the text" },
    { "dims { 3", "1:8: expected the name of a dim or '}', found '3'" },
    { "dims { N }", "1:10: expected ':', found '}'" },
    { "dims { N: }", "1:11: expected least, most, multiple or hint, found '}'" },
    { "dims { N: least=-1 }",
      "1:17: expected an integer from 0 to 9223372036854775807, found '-1'" },
    { "dims { N: hint=0 }", "1:16: expected an integer from 1 to 2147483647, found '0'" },
    { "dims { N: least=4, most=3 }", "1:8: dim N: expected bounds 0 or more in order, found 4..3" },
    { "dims { N: least=9, most=15, multiple=16 }",
      "1:8: dim N: expected a multiple of 16 from 9 to 15, found none" },
    { "dims { N: most=8, hint=9 }", "1:8: dim N: expected a hint within the bounds" },
    { "dims { N: most=8 N: most=9 }", "1:18: dim N is stated twice" },
    { "func @f {}",
      "1:1: expected 'graph', 'fold', 'constants', 'declare', 'dims' or 'metadata', found 'func'" },
    { "graph", "1:6: expected the block of line 1 to be closed, found the end of the text" },
    { "graph @f() {\n}", "2:1: expected a node or 'return', found '}'" },
    { "graph @f() { return", "1:20: expected the block of line 1 to be closed, found the end "
                             "of the text" },
    { "graph @f()}", "1:11: expected the block of line 1 to be closed, found '}' before '{'" },
    { "graph f() { return }", "1:7: expected the @name of a graph, found 'f'" },
    { "graph @f() { return }\ngraph @f() { return }", "2:7: two graphs are called @f" },
    { "graph @f(x: f32[]) { return }", "1:10: expected a %name, found 'x'" },
    { "graph @f(%x f32[]) { return }", "1:13: expected ':', found 'f32'" },
    { "graph @f(%x: f33[]) { return }", "1:14: expected a type such as f32[2,N,3], found "
                                        "'f33'" },
    { "graph @f(%x: f32) { return }", "1:17: expected '[', found ')'" },
    { "graph @f(%x: f32[2 3]) { return }", "1:20: expected ']', found '3'" },
    { "graph @f(%x: f32[-1]) { return }", "1:18: expected a dim of 0 or more, found -1" },
    { "graph @f(%x: f32[N+]) { return }", "1:20: expected a dim, found ']'" },
    { "graph @f(%x: f32[floor(N)]) { return }", "1:25: expected '/', found ')'" },
    { "graph @f(%x: f32[floor(N/0)]) { return }", "1:18: expected an expression of 64-bit numbers "
                                                  "with divisors of 1 or more" },
    { "graph @f(%x: f32[log(N)]) { return }", "1:18: expected floor, ceil, min, max, mod or "
                                              "select, found 'log'" },
    { "graph @f(%x: f32[select(N,1,2,3)]) { return }", "1:26: expected '=', found ','" },
    { "graph @f(%x: f32[1,1,1,1,1,1,1,1,1]) { return }", "1:34: expected at most 8 dims, found "
                                                         "'1'" },
    { "graph @f(%x: i8[2] q(axis=1,[1],[0])) { return }", "1:21: expected an axis below the "
                                                          "rank 1, found 1" },
    { "graph @f(%x: i8[2] q(axis=0,[1],[0])) { return }", "1:21: expected 2 scales, found 1" },
    { "graph @f(%x: i8[2] q(axis=0,[1,1],[0])) { return }", "1:21: expected as many zero points "
                                                            "as scales (2), found 1" },
    { "graph @f(%x: i8[2] q(axis=0,[1,1],[0,0]), %y: i8[3] q(axis=0,[1,1],[0,0])) { return }",
      "1:54: expected 3 scales, found 2" },
    { "graph @f(%x: i8[2] q(axis=0,[1,1],[0,0]), %y: i8[2] q(axis=0,[1,1],[0,0]), z) { return }",
      "1:76: expected a %name, found 'z'" },
    { "graph @f(%x: f32[] constant=never) { return }", "1:29: expected 'compile' or 'run', "
                                                       "found 'never'" },
    { "graph @f(%x: f32[] in [4,0)) { return }", "1:26: expected a domain whose end is not "
                                                 "below its start" },
    { "graph @f(%x: f32[], %x: f32[]) { return }", "1:21: two values are called %x" },
    { "graph @f() {\n  %y = rely()\n return }", "2:8: expected an operator, found 'rely'" },
    { "graph @f() {\n  %y = relu(%x)\n return }", "2:13: expected a value that is defined "
                                                  "above, found '%x'" },
    { "graph @f(%x: f32[]) {\n  relu(%x)\n return }", "2:3: expected '%name =' before relu, "
                                                      "which has results" },
    { "graph @f(%x: f32[]) {\n  %x = relu(%x)\n return }", "2:3: two values are called %x" },
    { "graph @f(%x: f32[]) {\n  %y, %y = unknown(%x) : f32[], f32[]\n return }",
      "2:3: two values are called %y" },
    { "graph @f(%x: f32[]) {\n  %y = relu(%x) {axis=1}\n return }",
      "2:18: expected the name of an attribute of relu, found 'axis'" },
    { "graph @f(%x: f32[2]) {\n  %y = softmax(%x) {axis=0, axis=0}\n return }",
      "2:29: attribute axis is stated twice" },
    { "graph @f(%x: f32[2]) {\n  %y = softmax(%x) {axis=0.5}\n return }",
      "2:26: expected an integer, found '0.5'" },
    { "graph @f(%x: f32[2]) {\n  %y = cast(%x) {to=f31}\n return }",
      "2:21: expected an element type such as f32, found 'f31'" },
    { "graph @f(%x: f32[2]) {\n  %y = gelu(%x) {approximate=3}\n return }",
      "2:30: expected a string, found '3'" },
    { "graph @f() {\n  %y = const @w\n return }",
      "2:14: expected a constant of the module, found '@w'" },
    { "graph @f(%x: f32[2]) {\n  %y = relu(%x) : f32[2], f32[2]\n return }",
      "2:3: expected as many types as results (1), found 2" },
    { "graph @f(%c: bool[]) {\n  %y = if(%c) {} {}\n return }",
      "2:18: expected 'then', found '{'" },
    { "graph @f() { return } }",
      "1:23: expected 'graph', 'fold', 'constants', 'declare', 'dims' or 'metadata', found '}'" },
    { "graph @f(%x: f32[]) { return %x as 3 }", "1:36: expected the name of a result, found "
                                                "'3'" },
    { "graph @f(%x: f32[]) { return _ }", "1:30: expected a %value, found '_'" },
    { "graph @\xc3\xa4() {}", "1:7: expected the @name of a graph, found a sigil without a name" },
    { "graph @f(%\"\xc3\xa4\" f32[]) { return }", "1:15: expected ':', found 'f32'" },
    { "constants { @a = [1, 2] : f32[3] }", "1:18: expected 3 elements, found 2" },
    { "constants { @a = [] : f32[] }", "1:18: expected 1 elements, found 0" },
    { "constants { @a = [1,] : f32[2] }", "1:21: expected a number, found ']'" },
    { "constants { @a = [1 2] : f32[1] }", "1:21: expected ']', found '2'" },
    { "constants { @a = [300] : u8[1] }", "1:19: expected an integer from 0 to 255, found "
                                          "'300'" },
    { "constants { @a = [-129] : i8[1] }", "1:19: expected an integer from -128 to 127, found "
                                           "'-129'" },
    { "constants { @a = [18446744073709551616] : u64[1] }",
      "1:19: expected an integer from 0 to 18446744073709551615, found "
      "'18446744073709551616'" },
    { "constants { @a = [1e39] : f32[1] }", "1:19: expected a number that f32 can hold, found a "
                                            "bigger one" },
    { "constants { @a = [65520] : f16[1] }", "1:19: expected a number that f16 can hold, found "
                                             "a bigger one" },
    { "constants { @a = [1e999] : f64[1] }", "1:19: expected a number, found '1e999'" },
    { "constants { @a = [0x10] : f32[1] }", "1:19: expected a number, found '0x10'" },
    { "constants { @a = [nan(0x3f800000)] : f32[1] }",
      "1:19: expected the bits of a NaN of f32, found others" },
    { "constants { @a = [nan(7)] : f32[1] }", "1:23: expected the bits of a NaN as 0x…, found "
                                              "'7'" },
    { "constants { @a = [2, x] : bool[2] }", "1:22: expected true or false, found 'x'" },
    { "constants { @a = [1] : string[1] }", "1:19: expected a string, found '1'" },
    { "constants { @a = [\"x\"] : string[2] }", "1:18: expected 2 elements, found 1" },
    { "constants { @a = splat(1) : f32[N] }",
      "1:13: @a: expected a type whose size is known, found another" },
    { "constants { @a = splat(1) : f32[4294967296,4294967296] }",
      "1:13: @a: expected a type whose size is known, found another" },
    { "constants { @a = splat(1) : f32[2,6]:aB4b }",
      "1:18: @a: expected stored bytes for the padding of layout aB4b, found a generated payload" },
    { "constants { @a = splot(1) : f32[2] }",
      "1:18: expected a payload such as [1, 2] or splat(0.5), found 'splot'" },
    { "constants { @a = : f32[2] }",
      "1:18: expected a payload such as [1, 2] or splat(0.5), found ':'" },
    { "constants { @a = [1 }", "1:21: expected the payload to go on, or ': type', found '}'" },
    { "constants { @a = iota 3 : f32[2] }", "1:23: expected ':', found '3'" },
    { "constants { @a = random_normal(std=1) : f32[2] }", "1:32: expected 'seed', found "
                                                          "'std'" },
    { "constants { @a = base64(\"AAA\") : u8[2] }", "1:25: expected 2 bytes in base64, found no "
                                                    "base64" },
    { "constants { @a = base64(\"AAAA\") : u8[2] }", "1:25: expected 2 bytes in base64, found "
                                                     "another number" },
    { "constants { @a = base64(\"A*==\") : u8[1] }", "1:25: expected 1 bytes in base64, found "
                                                     "no base64" },
    { "constants { @a = iota : f32[2] @a = iota : f32[2] }", "1:32: two constants are called @a" },
    { "constants { %a = iota : f32[2] }", "1:13: expected the @name of a constant, or '}', "
                                          "found '%a'" },
    { "declare @r() -> f32[]\ndeclare @r() -> f32[]", "2:9: @r is declared twice" },
    { "declare @r() f32[]", "1:14: expected '->', found 'f32'" },
    { "graph @f() {\n return \"ab\n}", "2:9: expected a token, found a string without its "
                                       "closing quote" },
    { "constants { @a = & }", "1:18: expected a payload such as [1, 2] or splat(0.5), found a "
                              "character that begins no token" },
    { "constants { @a = base64(3) : u8[2] }", "1:25: expected a string in base64, found '3'" },
    { "graph @f(%x: f32[], %x: f32[]) { return }", "1:21: two values are called %x" },
    { "graph @f() {\n  %y = a_word_that_is_longer_than_a_message_should_be()\n return }",
      "2:8: expected an operator, found 'a_word_that_is_longer_than_a_message_sh…'" },
    { "graph @f() { return }\nfold() { }\nfold() { }",
      "3:5: expected one block 'fold', found another" },
};

/* A `fold` block behind the functions that it may call. */
static const struct {
    const char *block;
    KilnError code;
    const char *message;
} fold_errors[] = {
    { "fold(x) { }", KILN_ERROR_PARSE, "7:6: expected a %name, found 'x'" },
    { "fold(%w: f32[2] constant=run, %x: f32[2]) { f = run @g(%w) }", KILN_ERROR_PARSE,
      "7:45: expected a %value, found 'f'" },
    { "fold(%w: f32[2] constant=run, %x: f32[2]) { %w = run @g(%w) }", KILN_ERROR_PARSE,
      "7:45: two values are called %w" },
    { "fold(%w: f32[2] constant=run, %x: f32[2]) { %f = soon @g(%w) }", KILN_ERROR_PARSE,
      "7:50: expected 'compile' or 'run', found 'soon'" },
    { "fold(%w: f32[2] constant=run, %x: f32[2]) { %f = run g(%w) }", KILN_ERROR_PARSE,
      "7:54: expected the @name of a graph, found 'g'" },
    { "fold(%w: f32[2] constant=run, %x: f32[2]) { %f = run @g(%v) }", KILN_ERROR_PARSE,
      "7:57: expected an argument of the model or a result of a call above, found %v" },
    { "fold(%w: f32[2] constant=run) { %f = run @g(%w) }", KILN_ERROR_PARSE,
      "7:5: nothing makes the argument %x of the entry" },
    { "fold(%w: f32[2] constant=run, %x: f32[2]) { %f = run @f(%w) }", KILN_ERROR_INVALID,
      "fold: expected a graph in front of the entry, found @f" },
    { "fold(%w: f32[2] constant=run, %x: f32[2]) { %f = run @g(%w, %w) }", KILN_ERROR_INVALID,
      "fold: @g: expected 1 arguments, found 2" },
    { "fold(%w: f32[2] constant=run, %x: f32[2]) { %f, %e = run @g(%w) }", KILN_ERROR_INVALID,
      "fold: @g: expected 1 results, found 2" },
    { "fold(%w: f32[3] constant=run, %x: f32[2]) { %f = run @g(%w) }", KILN_ERROR_INVALID,
      "fold: argument %w of @g: expected f32[3] as %w is, found f32[2]" },
    { "fold(%w: f32[2] constant=run, %x: f32[2]) { %f = run @g(%w) %e = compile @g(%w) }",
      KILN_ERROR_INVALID, "fold: @g is called while compiling, after a call at the first run" },
};

Test(text, fold_blocks_that_do_not_fit)
{
    for (size_t i = 0; i < G_N_ELEMENTS(fold_errors); i++) {
        g_autofree char *text = g_strdup_printf("graph @g(%%w: f32[2] constant=run) {\n"
                                                "  %%f = neg(%%w)\n  return %%f\n}\n"
                                                "graph @f(%%x: f32[2], %%f: f32[2]) {\n"
                                                "  return %%x, %%f }\n%s\n",
                                                fold_errors[i].block);
        g_autoptr(GError) error = NULL;
        g_autoptr(KilnModule) module = kiln_module_parse(text, strlen(text), "o", &error);
        cr_assert(!module, "%s", fold_errors[i].block);
        cr_expect(g_error_matches(error, KILN_ERROR, fold_errors[i].code), "%s", error->message);
        cr_expect(strstr(error->message, fold_errors[i].message), "%s\nexpected: %s",
                  error->message, fold_errors[i].message);
    }
}

Test(text, errors_name_their_place)
{
    for (size_t i = 0; i < G_N_ELEMENTS(syntax_errors); i++) {
        g_autofree char *message = g_strdup_printf("e.kiln:%s", syntax_errors[i].message);
        expect_error_at(syntax_errors[i].text, "e.kiln", KILN_ERROR_PARSE, message);
    }
}

Test(text, errors_of_types_and_rules_keep_their_code_and_get_a_place)
{
    expect_error_at("graph @f(%x: f32[2]:aab) { return }", "a.kiln", KILN_ERROR_TYPE,
                    "a.kiln:1:21: layout aab does not fit rank 1");
    expect_error_at("graph @f(%x: f32[2,2]:aBb) { return }", "a.kiln", KILN_ERROR_TYPE,
                    "a.kiln:1:23: layout aBb does not fit rank 2");
    /* Blocks of 2 to the power of 70 elements. */
    expect_error_at("graph @f(%x: f32[2,2]:aB1024b1024b1024b1024b1024b1024b1024b) { return }",
                    "a.kiln", KILN_ERROR_TYPE,
                    "a.kiln:1:23: layout aB1024b1024b1024b1024b1024b1024b1024b is malformed");
    expect_error_at("graph @f(%x: f32[2], %y: f32[3]) {\n  %z = add(%x, %y)\n  return %z\n}", NULL,
                    KILN_ERROR_SHAPE,
                    "<text>:2:3: z (add): expected shapes that broadcast, found f32[2] and "
                    "f32[3]");
    expect_error_at("graph @f(%x: f32[2]) {\n  %z = relu(%x) : f32[3]\n  return %z\n}", "a.kiln",
                    KILN_ERROR_SHAPE,
                    "a.kiln:2:3: z (relu): result 0: expected f32[2], found f32[3] stated");
    expect_error_at("graph @f(%x: f32[2]) {\n  %z = add(%x)\n  return %z\n}", "a.kiln",
                    KILN_ERROR_INVALID, "a.kiln:2:3: z (add): expected 2 operands, found 1");
    expect_error_at("graph @f(%x: f32[2]) {\n  return %x, %x\n}", "a.kiln", KILN_ERROR_INVALID,
                    "a.kiln: @f: two results are called \"x\"");
    expect_error_at("graph @f(%c: bool[], %x: f32[]) {\n"
                    "  %z = if(%c) then { return %x } else { return } : f32[]\n"
                    "  return %z\n}",
                    "a.kiln", KILN_ERROR_INVALID,
                    "a.kiln:2: @f: z (if): subgraph @else_branch: expected 1 results, found 0");
    expect_error_at("graph @f(%x: f32[2]) {\n"
                    "  %z = vendor.graph @r(%x) body(%a: f32[3]) { return %a } : f32[2]\n"
                    "  return %z\n}",
                    "a.kiln", KILN_ERROR_INVALID,
                    "a.kiln:2: @f: z (vendor.graph): subgraph @body, argument 0: expected f32[2], "
                    "found f32[3]");
    expect_error_at(
        "graph @f(%x: f32[2]) {\n"
        "  %z = vendor.graph @r(%x) { %n = neg(%x) return %n } : f32[2]:a2a\n"
        "  return %z\n}",
        "a.kiln", KILN_ERROR_INVALID,
        "a.kiln:2: @f: z (vendor.graph): subgraph @body, result 0: expected f32[2]:a2a, "
        "found f32[2]");
}

Test(text, names_are_unique_in_and_around_subgraphs)
{
    const char *inner = "graph @f(%c: bool[], %x: f32[]) {\n"
                        "  %z = if(%c) then {\n    %x = neg(%c)\n    return %x\n  } else {";
    g_autofree char *whole = g_strconcat(inner, "return %x} : f32[] return %z }", NULL);
    expect_error_at(whole, "a.kiln", KILN_ERROR_PARSE, "a.kiln:3:5: two values are called %x");
    /* The name of an inner value is taken for what comes behind the node, too. */
    expect_error_at("graph @f(%c: bool[], %x: f32[]) {\n"
                    "  %z = if(%c) then { %in = neg(%x) return %in } else { return %x } : f32[]\n"
                    "  %in = relu(%z)\n  return %in\n}",
                    "a.kiln", KILN_ERROR_PARSE, "a.kiln:3:3: two values are called %in");
}

Test(text, bytes_that_are_no_text_are_refused)
{
    static const struct {
        const char *text;
        size_t length;
        const char *message;
    } cases[] = {
        { "graph\n \xff", 8, "b.kiln:2:2: expected UTF-8 without NUL, found byte 0xff" },
        { "# \xc3\xa4\xc3", 5, "b.kiln:1:4: expected UTF-8 without NUL, found byte 0xc3" },
        { "graph\0", 6, "b.kiln:1:6: expected UTF-8 without NUL, found byte 0x00" },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        cr_assert_null(kiln_module_parse(cases[i].text, cases[i].length, "b.kiln", &error));
        cr_assert_str_eq(error->message, cases[i].message);
    }
}

Test(text, nesting_has_a_limit)
{
    for (int depth = 64; depth <= 65; depth++) {
        g_autoptr(GString) text = g_string_new("graph @f(%c: bool[], %x: f32[]) {\n");
        for (int i = 0; i < depth; i++)
            g_string_append_printf(text, "%%v%d = if(%%c) then {\n", i);
        g_string_append(text, "return %x\n");
        for (int i = depth - 1; i >= 0; i--)
            g_string_append_printf(text, "} else { return %%x } : f32[]\nreturn %%v%d\n", i);
        g_string_append(text, "}\n");
        g_autoptr(GError) error = NULL;
        g_autoptr(KilnModule) module = kiln_module_parse(text->str, text->len, "n", &error);
        cr_assert_eq(module != NULL, depth == 64, "%s", error ? error->message : "");
        if (!module)
            cr_assert_str_eq(error->message, "n:66:20: expected subgraphs that are less deeply "
                                             "nested, found '{'");
    }
}

/* A dim may nest as deep as a subgraph may. */
Test(text, dims_nest_to_a_limit)
{
    for (int depth = 60; depth <= 80; depth += 20) {
        g_autoptr(GString) text = g_string_new("graph @f(%x: f32[");
        for (int i = 0; i < depth; i++)
            g_string_append(text, "(");
        g_string_append_c(text, 'N');
        for (int i = 0; i < depth; i++)
            g_string_append(text, ")");
        g_string_append(text, "]) { return }");
        g_autoptr(GError) error = NULL;
        g_autoptr(KilnModule) module = kiln_module_parse(text->str, text->len, "n", &error);
        cr_assert_eq(module != NULL, depth == 60, "%s", error ? error->message : "");
        cr_assert(module || strstr(error->message, "expected a dim of less depth"), "%s",
                  error ? error->message : "");
    }
}

Test(text, a_text_from_memory_names_no_file)
{
    expect_error_at("constants { @a = file(\"F.bin\", 0, 8) : f32[2] }", NULL, KILN_ERROR_PARSE,
                    "<text>:1:23: expected a text from a file, which lies beside the file of "
                    "file(...), found one from memory or standard input (kiln opt --inline writes "
                    "a text that names no file)");
}

Test(text, memory_that_cannot_be_had_is_an_error)
{
    const char *text = "constants {\n  @a = [1, 2] : f32[2]\n}";
    kiln_alloc_inject_failure(1);
    expect_error_at(text, "m.kiln", KILN_ERROR_MEMORY,
                    "m.kiln:2:8: cannot allocate 1 × 8 bytes for a tensor");
}
