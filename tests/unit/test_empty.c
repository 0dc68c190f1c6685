/* SPDX-License-Identifier: Apache-2.0 */
/* Extents of 0, beside extents of any size: every instruction, each of its extents 0 in turn and
 * each other one huge in turn, on the reference and on the cpu target. What has no results is done
 * at once, whatever the other extents are; what has some of nothing (the sum of no elements, a
 * product over no depth) is the same on both. Each kernel of cpu takes extents of 0, too. */
#include "backends/cpu/cpu.h"
#include "backends/ref/ref.h"
#include "exec/eval.h"
#include "exec/interpret.h"
#include "graph/base/number.h"
#include "ir/target.h"
#include "tests/test_operators.h"
#include "tests/unit/exact_memory.h"
#include "tests/unit/instr_lines.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HUGE_EXTENT INT64_C(1000000000000)
enum {
    SMALL = 4,      /* any other extent */
    MOST = 1 << 16, /* elements of an operand, else the extents are not tried */
    SECONDS = 20,   /* under sanitizers; a loop over a huge extent takes hours */
};

/* Floats are 0.5, integers 0. */
static KilnTensor *
make_input(const KilnBuffer *buffer)
{
    KilnType type = buffer->type;
    bool is_float = kiln_dtype_is_float(type.dtype);
    type.quant = NULL;
    type.layout = NULL;
    KilnTensor *splat = kiln_tensor_new_splat(&type, is_float ? 0.5 : 0);
    g_autoptr(GError) error = NULL;
    if (!buffer->type.layout)
        return splat;
    KilnType payload;
    cr_assert(kiln_payload_type(&buffer->type, buffer->name, &payload, &error));
    kiln_tensor_free(splat);
    return kiln_tensor_new_splat(&payload, 0.5);
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

/* The outputs; false, and nothing, where the data cannot be computed: an index of no element. */
static bool
run_on(const KilnIRFunction *function, const KilnTarget *target, KilnTensor **outputs)
{
    g_autoptr(GPtrArray) inputs = g_ptr_array_new_with_free_func((GDestroyNotify)kiln_tensor_free);
    for (guint i = 0; i < function->inputs->len; i++)
        g_ptr_array_add(inputs, make_input(g_ptr_array_index(function->inputs, i)));
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

static void
expect_equal(const KilnTensor *expected, const KilnTensor *found, const char *text)
{
    const KilnType *type = &expected->type;
    if (kiln_dtype_is_address(type->dtype)) {
        cr_expect(kiln_tensor_equal(expected, found), "%s", text);
        return;
    }
    g_autoptr(GBytes) a = kiln_tensor_view(expected, NULL), b = kiln_tensor_view(found, NULL);
    for (int64_t i = 0; i < kiln_type_elements(type); i++) {
        double x = kiln_element_as_f64(type->dtype, g_bytes_get_data(a, NULL), i);
        double y = kiln_element_as_f64(type->dtype, g_bytes_get_data(b, NULL), i);
        bool same = x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= 1e-5 * fabs(x) + 1e-6;
        cr_expect(same, "%s: element %d: expected %g, found %g", text, (int)i, x, y);
    }
}

/* Runs the instruction on both targets; false where there is no such instruction. */
static bool
try_program(const char *text, bool *ran)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, strlen(text), "empty", &error);
    const KilnIRFunction *function = ir ? g_ptr_array_index(ir->functions, 0) : NULL;
    if (!function || !is_small(function) || !kiln_target_find(kiln_ref_target(), function->first))
        return false;
    KilnTarget cpu = *kiln_cpu_target();
    cpu.fallback = kiln_ref_target();
    KilnTensor *expected[MAX_OPERANDS] = { NULL }, *found[MAX_OPERANDS] = { NULL };
    bool good = run_on(function, kiln_ref_target(), expected);
    cr_expect_eq(good, run_on(function, &cpu, found), "%s", text);
    for (guint i = 0; i < function->outputs->len; i++) {
        if (expected[i] && found[i])
            expect_equal(expected[i], found[i], text);
        g_clear_pointer(&expected[i], kiln_tensor_free);
        g_clear_pointer(&found[i], kiln_tensor_free);
    }
    ran[function->first->kind] = true;
    return true;
}

static void *
zeros(int64_t bytes)
{
    return memset(exact_memory(bytes), 0, (size_t)MAX(bytes, 0));
}

/* Zeros for an operand. */
static void *
make_operand(const KilnBuffer *buffer)
{
    KilnType type;
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_payload_type(&buffer->type, buffer->name, &type, &error));
    return zeros(kiln_type_bytes(&type));
}

/* Calls the kernel of cpu itself. Programs do not where there are no results. */
static void
run_kernel(const KilnInstr *instr)
{
    const KilnKernel *kernel = kiln_target_find(kiln_cpu_target(), instr);
    void *data[MAX_OPERANDS] = { NULL };
    if (!kernel)
        return;
    for (uint32_t i = 0; i < instr->n_operands; i++)
        data[i] = instr->operands[i].buffer ? make_operand(instr->operands[i].buffer) : NULL;
    size_t scratch = kiln_kernel_own_scratch(kernel, instr, 0, false, 2);
    KilnKernelArgs args = {
        .instr = instr,
        .kernel = kernel,
        .data = data,
        .scratch = zeros((int64_t)scratch),
        .prepared = kernel->prepare ? zeros((int64_t)kernel->prepared_bytes(instr)) : NULL,
        .threads = 2,
    };
    if (kernel->prepare)
        kernel->prepare(instr, (void *)args.prepared);
    kernel->run(&args);
    free((void *)args.prepared);
    free(args.scratch);
    for (uint32_t i = 0; i < instr->n_operands; i++)
        free(data[i]);
}

/* The kernels of all element types that the instruction may have in place of f32. */
static void
run_kernels(const char *text)
{
    static const char *const dtypes[] = { "f32", "f64", "f16", "bool", "u8",
                                          "i8",  "i32", "u32", "i64" };
    g_auto(GStrv) parts = g_strsplit(text, "f32", -1);
    for (size_t t = 0; t < G_N_ELEMENTS(dtypes); t++) {
        g_autofree char *typed = g_strjoinv(dtypes[t], parts);
        g_autoptr(GError) error = NULL;
        g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(typed, strlen(typed), "empty", &error);
        const KilnIRFunction *function = ir ? g_ptr_array_index(ir->functions, 0) : NULL;
        if (function && is_small(function))
            run_kernel(function->first);
    }
}

/* Each extent 0, beside others that are small and beside each huge one; how many could be. */
static int
try_line(const char *line, bool *ran)
{
    int tried = 0;
    for (int zero = 'A'; zero <= 'Z' + 1; zero++) {
        for (int huge = 'A' - 1; huge <= 'Z'; huge++) {
            Extents extents;
            for (int i = 0; i < 26; i++)
                extents.extent[i] = 'A' + i == zero ? 0 : 'A' + i == huge ? HUGE_EXTENT : SMALL;
            bool named = strchr(line, zero) || zero > 'Z';
            if (!named || (huge >= 'A' && (huge == zero || !strchr(line, huge))))
                continue;
            g_autofree char *text = program_text(line, &extents);
            tried += try_program(text, ran);
            if (huge < 'A')
                run_kernels(text);
        }
    }
    return tried;
}

/* One element type and one shape for all operands, or bool for the result. */
static void
try_elementwise(KilnInstrKind kind, bool *ran)
{
    static const char *const dtypes[] = { "f32", "i64", "u8", "bool" };
    for (size_t k = 0; k < 2 * 3 * G_N_ELEMENTS(dtypes) && !ran[kind]; k++) {
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
        cr_expect(try_line(line, ran) > 1, "%s: not tried", line);
    }
}

Test(empty, every_instruction, .timeout = SECONDS)
{
    bool ran[KILN_N_INSTRS] = { false };
    test_operators_register();
    for (size_t i = 0; i < G_N_ELEMENTS(lines); i++)
        cr_expect(try_line(lines[i], ran) > 1, "%s: not tried", lines[i]);
    cr_expect_eq(try_line("define i:i64[1] {values=[0], most=[-1]}", ran), 1);
    cr_expect_eq(try_line("map_length o:i64[1] i:map(i64,f32)", ran), 1);
    cr_expect_eq(
        try_line("dict_vectorizer o:f32[1,2] i:map(i64,f32) {int64_vocabulary=[1,2]}", ran), 1);
    cr_expect_eq(try_line("string_normalizer o:string[1] o:i64[1] i:string[0]", ran), 1);
    for (int kind = 0; kind < KILN_N_INSTRS; kind++) {
        const KilnInstrInfo *info = kiln_instr_info(kind);
        if (g_str_has_prefix(info->name, "reduce_"))
            try_reduction(info->name, ran);
        else
            try_elementwise((KilnInstrKind)kind, ran);
        bool computes = !(info->flags & KILN_INSTR_BOOKKEEPING) && kind != KILN_INSTR_call &&
                        !kiln_instr_is_flow(kind) && kind != KILN_INSTR_take &&
                        kind != KILN_INSTR_refuse;
        cr_expect(!computes || ran[kind], "%s: no line", info->name);
    }
}
