/* SPDX-License-Identifier: Apache-2.0 */
/* A function that was printed with its memory plan goes through the passes again: what they change
 * has lives of its own, so the old offsets are forgotten instead of held against the passes. */
#include "ir/ir.h"
#include "kiln.h"
#include "passes/context/options.h"
#include "passes/manager/manager.h"
#include "passes/pipeline/pipeline.h"

#include <criterion/criterion.h>
#include <string.h>

/* share-buffers puts %b into %a's place, so %a lives as long as %b does: over %c, at %a's offset.
 */
static const char text[] = "func @f {\n"
                           "  arena 128\n"
                           "  input @x : f32[16]\n"
                           "  output @y : f32[16]\n"
                           "  %a = alloc at 0 : f32[16]\n"
                           "  relu @out %a, @in @x\n"
                           "  %b = alloc at 64 : f32[16]\n"
                           "  neg @out %b, @in %a\n"
                           "  dealloc %a\n"
                           "  %c = alloc at 0 : f32[16]\n"
                           "  exp @out %c, @in %b\n"
                           "  add @out @y, @in %b, @in %c\n"
                           "  dealloc %b\n"
                           "  dealloc %c\n"
                           "}\n";

static const KilnIRFunction *
only_function(const KilnIRModule *ir)
{
    return g_ptr_array_index(ir->functions, 0);
}

static KilnIRModule *
after(const char *passes)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, strlen(text), "planned.kiln", &error);
    cr_assert(ir, "%s", error ? error->message : "");
    g_autoptr(KilnPassPipeline) pipeline = kiln_pass_pipeline_parse_inline(passes, &error);
    cr_assert(pipeline, "%s", error ? error->message : "");
    KilnPassOptions options = KILN_PASS_OPTIONS_INIT;
    cr_assert(kiln_pipeline_run_ir(pipeline, ir, &options, NULL, &error), "%s",
              error ? error->message : "");
    return g_steal_pointer(&ir);
}

Test(planned_text, a_change_forgets_the_plan)
{
    g_autoptr(KilnIRModule) ir = after("share-buffers");
    cr_expect_eq(only_function(ir)->arena_bytes, -1);
    g_autoptr(GError) error = NULL;
    cr_expect(kiln_ir_verify(only_function(ir), &error), "%s", error ? error->message : "");
}

Test(planned_text, no_change_keeps_it)
{
    g_autoptr(KilnIRModule) ir = after("dse,make-weights-const");
    cr_expect_eq(only_function(ir)->arena_bytes, 128);
}

Test(planned_text, compiles_and_runs)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) bytes = g_bytes_new_static(text, strlen(text));
    g_autoptr(KilnModel) model = kiln_model_load_bytes(bytes, "planned.kiln", &error);
    cr_assert(model, "%s", error ? error->message : "");
    g_autoptr(KilnProgram) program = kiln_program_compile(model, NULL, &error);
    cr_assert(program, "%s", error ? error->message : "");
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    cr_assert(session, "%s", error ? error->message : "");
    float x[16] = { 0 };
    cr_assert(kiln_session_bind_input(session, 0, x, sizeof x, &error));
    cr_assert(kiln_session_run(session, &error));
    const float *y = kiln_session_output(session, 0, NULL, &error);
    cr_assert(y);
    cr_expect_eq(y[0], 1.0f);
}
