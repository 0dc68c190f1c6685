/* SPDX-License-Identifier: Apache-2.0 */
/* Values in layouts: the loops of tags, and operators on what lies in a layout against the same
 * ones on plain values. */
#include "graph/module/layout.h"
#include "graph/type.h"
#include "kiln.h"
#include "tests/unit/runtime_case.h"

#include <math.h>
#include <string.h>

/* --- loops --- */

Test(layouts, loops_of_tags)
{
    KilnType type = kiln_type_make(KILN_DTYPE_f32, 4, (int64_t[]){ 2, 60, 7, 5 });
    KilnLayout layout;
    type.layout = "aBcd16b";
    cr_assert(kiln_layout_of(&type, &layout));
    cr_expect_eq(layout.rank, 5);
    cr_expect_eq(layout.extent[1], 4);
    cr_expect_eq(layout.dim[4], 1);
    cr_expect_eq(layout.block[1], 16);
    cr_expect_not(kiln_layout_is_whole(&type, &layout));
    type.layout = "acdb";
    KilnType flat;
    cr_assert(kiln_layout_flatten(&type, &flat));
    cr_expect_eq(flat.rank, 4);
    cr_expect_eq(flat.dims[3], 60);
    cr_expect_null(flat.layout);
    type.layout = "ab";
    cr_expect_not(kiln_layout_of(&type, &layout));
    type.layout = NULL;
    type.dims[0] = KILN_DIM_UNKNOWN;
    cr_expect_not(kiln_layout_of(&type, &layout));
}

/* --- operators --- */

static const char operators[] =
    "  %%a = relu(%%p) : f32[1,32,6,6]%s\n"
    "  %%b = mul(%%a, %%q) : f32[1,32,6,6]%s\n"
    "  %%c = concat(%%b, %%p) {axis=1} : f32[1,64,6,6]%s\n"
    "  %%d = slice(%%c, %%begin, %%end) : f32[1,32,4,6]%s\n"
    "  %%e = pad(%%d, %%pads) : f32[1,32,7,7]%s\n"
    "  %%f = reduce_max(%%e, %%axes) : f32[1,32,1,1]%s\n"
    "  %%g = sub(%%e, %%f) : f32[1,32,7,7]%s\n"
    "  %%h = %s(%%g)%s : f32[1,32,7,7]%s\n"
    "  %%i = clip(%%h, %%low) : f32[1,32,7,7]%s\n"
    "  %%j, %%k = split(%%i) {axis=1} : f32[1,16,7,7]%s, f32[1,16,7,7]%s\n"
    "  %%l = concat(%%k, %%j) {axis=1} : f32[1,32,7,7]%s\n";

/* The operators on values in @tag: packed before, unpacked behind; NULL: plain. */
static char *
text_in(const char *tag, bool shuffle)
{
    g_autofree char *colon = tag ? g_strconcat(":", tag, NULL) : g_strdup("");
    const char *op = shuffle ? "channel_shuffle" : "tanh", *attrs = shuffle ? " {group=4}" : "";
    GString *text = g_string_new("graph @f(%x: f32[1,32,6,6], %y: f32[1,32,1,1]) {\n"
                                 "  %begin = const @begin : i64[4]\n"
                                 "  %end = const @end : i64[4]\n"
                                 "  %pads = const @pads : i64[8]\n"
                                 "  %axes = const @axes : i64[2]\n"
                                 "  %low = const @low : f32[]\n");
    g_string_append_printf(text, "  %%p = %s(%%x) : f32[1,32,6,6]%s\n", tag ? "pack" : "identity",
                           colon);
    g_string_append_printf(text, "  %%q = %s(%%y) : f32[1,32,1,1]%s\n", tag ? "pack" : "identity",
                           colon);
    g_string_append_printf(text, operators, colon, colon, colon, colon, colon, colon, colon, op,
                           attrs, colon, colon, colon, colon, colon);
    g_string_append_printf(text, "  %%z = %s(%%l) : f32[1,32,7,7]\n", tag ? "unpack" : "identity");
    g_string_append(text, "  return %z\n}\n"
                          "constants {\n"
                          "  @begin = [0, 16, 1, 0] : i64[4]\n"
                          "  @end = [1, 48, 5, 6] : i64[4]\n"
                          "  @pads = [0, 0, 1, 0, 0, 0, 2, 1] : i64[8]\n"
                          "  @axes = [2, 3] : i64[2]\n"
                          "  @low = splat(-0.5) : f32[]\n"
                          "}\n");
    return g_string_free(text, FALSE);
}

static void
compute(const char *text, const char *backend, float *out)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    GError *error = NULL;
    options.target = backend;
    g_autoptr(KilnPipeline) pipeline = kiln_pipeline_load("none", &error);
    cr_assert(pipeline, "%s", error ? error->message : "");
    options.pipeline = pipeline;
    g_autoptr(KilnProgram) program = program_of(text, &options);
    g_autoptr(KilnSession) session = kiln_session_new(program, NULL, &error);
    cr_assert(session, "%s", error ? error->message : "");
    float x[32 * 36], y[32];
    for (int i = 0; i < 32 * 36; i++)
        x[i] = sinf((float)i * 0.37f);
    for (int i = 0; i < 32; i++)
        y[i] = cosf((float)i);
    must(kiln_session_bind_input(session, 0, x, sizeof x, &error), error);
    must(kiln_session_bind_input(session, 1, y, sizeof y, &error), error);
    must(kiln_session_bind_output(session, 0, out, 32 * 49 * sizeof *out, &error), error);
    must(kiln_session_run(session, &error), error);
}

Test(layouts, operators_mean_the_same_in_every_layout)
{
    static const char *const tags[] = { "acdb", "aBcd16b", "aBcd8b", "aBcd4b" };
    static const char *const backends[] = { "ref", "cpu" };
    static float plain[32 * 49], laid[32 * 49];
    for (size_t b = 0; b < G_N_ELEMENTS(backends); b++) {
        for (size_t i = 0; i < G_N_ELEMENTS(tags); i++) {
            bool shuffle = i == 0; /* moves channels: not among blocks */
            g_autofree char *plain_text = text_in(NULL, shuffle);
            g_autofree char *laid_text = text_in(tags[i], shuffle);
            compute(plain_text, backends[b], plain);
            compute(laid_text, backends[b], laid);
            cr_expect_eq(memcmp(plain, laid, sizeof plain), 0, "%s on %s", tags[i], backends[b]);
        }
    }
}
