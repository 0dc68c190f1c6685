/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that are not finite, and zeros of both signs, sprinkled over the operands of every
 * instruction: the cpu target gives NaN and infinities where the reference does. */
#include "backends/cpu/cpu.h"
#include "backends/ref/ref.h"
#include "exec/eval.h"
#include "exec/interpret.h"
#include "graph/base/number.h"
#include "ir/target.h"
#include "tests/test_operators.h"
#include "tests/unit/instr_lines.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum {
    MOST = 1 << 16, /* elements of an operand */
    ROUNDS = 6,
    SECONDS = 60, /* under sanitizers */
};

typedef struct {
    uint32_t state;
    uint32_t one_in; /* element is special */
} Draw;

static uint32_t
next(Draw *draw)
{
    draw->state = draw->state * 1664525u + 1013904223u;
    return draw->state >> 8;
}

static double
draw_float(Draw *draw)
{
    static const double special[] = { NAN, INFINITY, -INFINITY, -0.0, 0.0 };
    if (next(draw) % draw->one_in == 0)
        return special[next(draw) % G_N_ELEMENTS(special)];
    return (double)next(draw) / (1 << 22) - 2;
}

static KilnTensor *
make_input(const KilnBuffer *buffer, Draw *draw)
{
    KilnType type = buffer->type;
    g_autoptr(GError) error = NULL;
    if (buffer->type.layout)
        cr_assert(kiln_payload_type(&buffer->type, buffer->name, &type, &error));
    type.quant = NULL;
    type.layout = NULL;
    if (!kiln_dtype_is_float(type.dtype))
        return kiln_tensor_new_splat(&type, 0);
    g_autofree char *data = g_malloc0((gsize)kiln_type_bytes(&type) + 1);
    for (int64_t i = 0; i < kiln_type_elements(&type); i++)
        kiln_element_store_f64(type.dtype, data, i, draw_float(draw));
    KilnTensor *tensor = kiln_tensor_new_copy(&type, data, &error);
    cr_assert(tensor);
    return tensor;
}

static bool
is_small(const KilnIRFunction *function)
{
    for (guint i = 0; i < function->buffers->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(function->buffers, i);
        int64_t n = kiln_type_elements(&buffer->type);
        if (n < 0 || n > MOST)
            return false;
    }
    return true;
}

static bool
run_on(const KilnIRFunction *function, const KilnTarget *target, const GPtrArray *inputs,
       KilnTensor **outputs)
{
    g_autoptr(GError) error = NULL;
    KilnInterpretation run = { .evaluate = kiln_graph_evaluate,
                               .inputs = (const KilnTensor *const *)inputs->pdata,
                               .outputs = outputs,
                               .threads = 2 };
    bool good = kiln_ir_interpret(function, target, &run, &error);
    cr_assert(good || g_error_matches(error, KILN_ERROR, KILN_ERROR_RUN), "%s",
              error ? error->message : "");
    return good;
}

/* Whole numbers of NaN are anybody's. */
static void
expect_same_kind(const KilnTensor *expected, const KilnTensor *found, const char *text)
{
    g_autoptr(GBytes) a = kiln_tensor_view(expected, NULL), b = kiln_tensor_view(found, NULL);
    const KilnType *type = &expected->type;
    for (int64_t i = 0; i < kiln_type_elements(type); i++) {
        double x = kiln_element_as_f64(type->dtype, g_bytes_get_data(a, NULL), i);
        double y = kiln_element_as_f64(type->dtype, g_bytes_get_data(b, NULL), i);
        bool same = isnan(x) ? isnan(y) : isinf(x) ? x == y : isfinite(y);
        cr_expect(same, "%s: element %d: expected %g, found %g", text, (int)i, x, y);
        if (!same)
            return;
    }
}

static bool
try_program(const char *text, uint32_t seed, bool *ran)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, strlen(text), "special", &error);
    const KilnIRFunction *function = ir ? g_ptr_array_index(ir->functions, 0) : NULL;
    if (!function || !is_small(function) || !kiln_target_find(kiln_ref_target(), function->first))
        return false;
    KilnTarget cpu = *kiln_cpu_target();
    cpu.fallback = kiln_ref_target();
    Draw draw = { seed, seed % 2 ? 7 : 60 };
    g_autoptr(GPtrArray) inputs = g_ptr_array_new_with_free_func((GDestroyNotify)kiln_tensor_free);
    for (guint i = 0; i < function->inputs->len; i++)
        g_ptr_array_add(inputs, make_input(g_ptr_array_index(function->inputs, i), &draw));
    KilnTensor *expected[MAX_OPERANDS] = { NULL }, *found[MAX_OPERANDS] = { NULL };
    bool good = run_on(function, kiln_ref_target(), inputs, expected);
    cr_expect_eq(good, run_on(function, &cpu, inputs, found), "%s", text);
    for (guint i = 0; i < function->outputs->len; i++) {
        if (expected[i] && found[i] && kiln_dtype_is_float(expected[i]->type.dtype))
            expect_same_kind(expected[i], found[i], text);
        g_clear_pointer(&expected[i], kiln_tensor_free);
        g_clear_pointer(&found[i], kiln_tensor_free);
    }
    ran[function->first->kind] = true;
    return true;
}

/* All extents small, all but that of channels long enough for vectors, all of them. */
static int
try_line(const char *line, bool *ran)
{
    static const int64_t sizes[][2] = { { 4, 4 }, { 19, 4 }, { 19, 19 } };
    int tried = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        Extents extents;
        const int64_t *size = sizes[round % G_N_ELEMENTS(sizes)];
        for (int i = 0; i < 26; i++)
            extents.extent[i] = 'A' + i == 'C' ? size[1] : size[0];
        g_autofree char *text = program_text(line, &extents);
        tried += try_program(text, round + 1, ran);
    }
    return tried;
}

static void
try_elementwise(KilnInstrKind kind, bool *ran)
{
    static const char *const dtypes[] = { "f32", "f16", "bf16", "f64" };
    for (size_t k = 0; k < 2 * 3 * G_N_ELEMENTS(dtypes); k++) {
        const char *from = dtypes[k / 6], *to = k & 1 ? "bool" : from;
        g_autoptr(GString) line = g_string_new(NULL);
        g_string_printf(line, "%s o:%s[A,B,C]", kiln_instr_info(kind)->name, to);
        for (size_t i = 0; i <= k / 2 % 3; i++)
            g_string_append_printf(line, " i:%s[A,B,C]", from);
        try_line(line->str, ran);
    }
}

static void
try_reduction(const char *name, bool *ran)
{
    static const char *const forms[] = { "o:f32[A] i:f32[A,B] {axes=[1]}",
                                         "o:f32[B] i:f32[A,B] {axes=[0]}",
                                         "o:f32[] i:f32[A,B] {axes=[0,1]}",
                                         "o:f32[A,C] i:f32[A,B,C] {axes=[1]}" };
    for (size_t i = 0; i < G_N_ELEMENTS(forms); i++) {
        g_autofree char *line = g_strdup_printf("%s %s", name, forms[i]);
        cr_expect_gt(try_line(line, ran), 0, "%s: not tried", line);
    }
}

Test(cpu_not_finite, every_instruction, .timeout = SECONDS)
{
    bool ran[KILN_N_INSTRS] = { false };
    test_operators_register();
    for (size_t i = 0; i < G_N_ELEMENTS(lines); i++)
        cr_expect_gt(try_line(lines[i], ran), 0, "%s: not tried", lines[i]);
    for (int kind = 0; kind < KILN_N_INSTRS; kind++) {
        const KilnInstrInfo *info = kiln_instr_info(kind);
        if (g_str_has_prefix(info->name, "reduce_"))
            try_reduction(info->name, ran);
        else
            try_elementwise((KilnInstrKind)kind, ran);
    }
}
