/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of the IR level. */
#include "text_files.h"

#include "ir/ir.h"

#include <string.h>

static KilnIRModule *
parse(const char *text, const char *path)
{
    g_autoptr(GError) error = NULL;
    KilnIRModule *ir = kiln_ir_module_parse(text, strlen(text), path, &error);
    cr_assert(ir, "%s in:\n%s", error ? error->message : "", text);
    return ir;
}

static char *
print(const KilnIRModule *ir)
{
    GString *out = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_ir_module_print(ir, NULL, out, &error), "%s", error ? error->message : "");
    return g_string_free(out, FALSE);
}

Test(ir_text, printed_text_reads_back_to_itself)
{
    g_autoptr(GPtrArray) files = text_files(true);
    cr_assert_geq(files->len, 3);
    for (guint i = 0; i < files->len; i++) {
        const TextFile *file = g_ptr_array_index(files, i);
        g_autoptr(KilnIRModule) ir = parse(file->text, file->path);
        g_autofree char *again = print(ir);
        cr_assert_str_eq(again, file->text, "%s:\n%s", file->path, again);
    }
}

/* --- what is refused --- */

static void
expect_error(const char *text, KilnError code, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, strlen(text), "e.kiln", &error);
    cr_assert_null(ir, "parsed: %s", text);
    cr_assert_str_eq(error->message, message);
    cr_assert(g_error_matches(error, KILN_ERROR, code), "code %d: %s", error->code, error->message);
}

#define SIGNATURE                                                                                  \
    "func @f {\n  input @x : f32[4]\n  output @y : f32[4]\n  weight @w : f32[4] const\n"
#define CONSTANTS "}\nconstants { @w = splat(1) : f32[4] }"

Test(ir_text, errors_name_their_place)
{
    static const struct {
        const char *body, *message;
    } cases[] = {
        { "  rely @out @y, @in @x\n", "5:3: expected an instruction, found 'rely'" },
        { "  relu @y, @in @x\n", "5:8: expected @in, @out, @inout or _, found '@y'" },
        { "  relu @out y, @in @x\n", "5:13: expected a %buffer or @buffer, found 'y'" },
        { "  relu @out @z, @in @x\n",
          "5:13: expected a weight, input or output that is listed above, found '@z'" },
        { "  relu @out %y, @in @x\n", "5:13: expected a buffer that is made above, found '%y'" },
        { "  relu @in @y, @in @x\n", "5:3: relu: operand 0: expected @out, found @in" },
        { "  relu @out @y, @inout @x\n", "5:3: relu: operand 1: expected @in, found @inout" },
        { "  relu @out @y, @in @x {alpha=1}\n",
          "5:25: expected the name of an attribute of relu, found 'alpha'" },
        { "  %a = allot : f32[4]\n", "5:8: expected 'alloc' or 'view', found 'allot'" },
        { "  %a = alloc at -1 : f32[4]\n",
          "5:17: expected an integer from 0 to 9223372036854775807, found '-1'" },
        { "  %a = alloc : f32[4]\n  %a = alloc : f32[4]\n", "6:3: two buffers are called %a" },
        { "  %x = alloc : f32[4]\n", "5:3: two buffers are called %x" },
        { "  %v = view @x {offset 3} : f32[1]\n", "5:24: expected '=', found '3'" },
        { "  stack @out @y, @in @x { }\n",
          "5:27: expected an element-wise instruction or a reduction, found '}'" },
        { "  stack @out @y, @in @x { add @w }\n",
          "5:31: expected an @in operand of the stack, found '@w'" },
        { "  stack @out @y, @in @x { mul 0x1 }\n", "5:31: expected a number, found '0x1'" },
        { "  stack @out @y, @in @x { mul t0 }\n",
          "5:31: expected an operand, a number or the name of an earlier step, found 't0'" },
        { "  stack @out @y, @in @x { t0: mul t0 }\n",
          "5:35: expected an operand, a number or the name of an earlier step, found 't0'" },
        { "  stack @out @y, @in @x { t0: abs; t0: abs }\n", "5:36: two steps are called t0" },
        { "  stack @out @y, @in @x { nan: abs }\n",
          "5:27: expected a name that is no number, found 'nan'" },
        { "  stack @out @y, @in @x { a: b }\n",
          "5:30: expected an element-wise instruction or a reduction, found 'b'" },
        { "  stack @out @y, @in @x { add(@x, @x }\n", "5:38: expected ')', found '}'" },
        { "  stack @out @y, @in @x { where 1, 2, 3 }\n",
          "5:39: expected no further source, found '3'" },
        { "  stack @out @y, @in @x { cast; abs }\n",
          "5:27: cast: expected the element type of its result, as in ': f32'" },
        { "  stack @out @y, @in @x { cast : f; abs }\n",
          "5:34: expected an element type such as f32, found 'f'" },
        { "  stack @out @y, @in @x { abs -> @x }\n",
          "5:34: expected an @out operand of the stack, found '@x'" },
        { "  stack @out @y { abs }\n", "5:3: stack: expected @out operands, then @in operands" },
        { "  stack @out @y, _ { abs }\n", "5:3: stack: expected @out operands, then @in operands" },
        { "  stack @out @y, @in @x, @out @y { abs }\n",
          "5:3: stack: operand 2: expected @in, found @out" },
        { "  call r0 @out @y, @in @x\n", "5:8: expected the @name of a region, found 'r0'" },
        { "  call @r0 @out @y, @in @x, @out @w\n",
          "5:12: call: operand 2: expected @in, found @out" },
        { "  weight @v : f32[4]\n",
          "5:10: expected a constant called @v, or '= _' for state without one" },
        { "  weight @v = @u : f32[4]\n", "5:15: expected a constant of the module, found '@u'" },
        { "  arena x\n", "5:9: expected an integer from 0 to 9223372036854775807, found 'x'" },
        { "  relu @out @y, @in @x loc(3)\n",
          "5:28: expected the name of a node as a string, found '3'" },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strconcat(SIGNATURE, cases[i].body, CONSTANTS, NULL);
        g_autofree char *message = g_strconcat("e.kiln:", cases[i].message, NULL);
        expect_error(text, KILN_ERROR_PARSE, message);
    }
    expect_error("func @f {}\nfunc @f {}", KILN_ERROR_PARSE, "e.kiln:2:6: two funcs are called @f");
    expect_error("func @f {", KILN_ERROR_PARSE,
                 "e.kiln:1:10: expected the block of line 1 to be closed, found the end of the "
                 "text");
}

Test(ir_text, functions_are_verified)
{
    expect_error(SIGNATURE "  relu @out @y\n" CONSTANTS, KILN_ERROR_INVALID,
                 "e.kiln:5:3: relu: operand 1 is required, found 1 operands");
    g_autoptr(GError) error = NULL;
    const char *text = SIGNATURE "  dealloc @x\n" CONSTANTS;
    cr_assert_null(kiln_ir_module_parse(text, strlen(text), "e.kiln", &error));
    cr_assert(g_str_has_prefix(error->message, "e.kiln:1:6: @f: "), "%s", error->message);
}

Test(ir_text, graphs_stand_beside_functions)
{
    const char *text = "func @f {\n  input @x : f32[2]\n  output @y : f32[2]\n"
                       "  relu @out @y, @in @x\n}\n"
                       "graph @g(%x: f32[N]) { %y = relu(%x) return %y }\n";
    g_autoptr(KilnIRModule) ir = parse(text, NULL);
    cr_assert_eq(ir->functions->len, 1);
    cr_assert_eq(ir->module->functions->len, 1);
    cr_assert_str_eq(kiln_module_entry(ir->module)->name, "g");
}

Test(ir_text, an_instruction_prints_alone)
{
    g_autoptr(KilnIRModule) ir = parse("func @f {\n  input @x : f32[2]\n  output @y : f32[2]\n"
                                       "  celu @out @y, @in @x {alpha=0.5} loc(\"n\")\n}\n",
                                       NULL);
    const KilnIRFunction *function = g_ptr_array_index(ir->functions, 0);
    g_autoptr(GString) out = g_string_new(NULL);
    kiln_instr_print(function->first, out);
    cr_assert_str_eq(out->str, "celu @out @y, @in @x {alpha=0.5} loc(\"n\")");
    cr_assert_str_eq(kiln_instr_label(function->first), "n");
}
