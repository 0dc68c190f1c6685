/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the cpu backend on operands in rows: the same bits as on dense copies of them,
 * whatever the number of threads, and no byte written between the rows. */
#include "backends/cpu/cpu.h"
#include "backends/ref/ref.h"
#include "exec/eval.h"
#include "exec/interpret.h"
#include "exec/strided_copies.h"

#include "graph/base/number.h"
#include "graph/base/random.h"
#include "ir/target.h"

#include <criterion/criterion.h>
#include <string.h>

/* Parameters and instructions; outputs are filled first, for rows leave gaps. */
static const char *const cases[] = {
    /* convolutions: pointwise, with a halo, strided, grouped, depthwise, swapped, Winograd */
    "  input @x : f32[3,20,12,11]\n"
    "  input @w : f32[5,8,1,1]\n"
    "  output @y : f32[3,9,12,11]\n"
    "  expand @out @y, @in @zero\n"
    "  %v = view @x {offset=528, rows=3, pitch=2640} : f32[3,8,12,11]\n"
    "  %r = view @y {rows=3, pitch=1188} : f32[3,5,12,11]\n"
    "  conv @out %r, @in %v, @in @w\n",
    "  input @x : f32[3,20,12,11]\n"
    "  input @w : f32[5,8,3,3]\n"
    "  output @y : f32[3,9,12,11]\n"
    "  expand @out @y, @in @zero\n"
    "  %v = view @x {offset=528, rows=3, pitch=2640} : f32[3,8,12,11]\n"
    "  %r = view @y {offset=264, rows=3, pitch=1188} : f32[3,5,12,11]\n"
    "  conv @out %r, @in %v, @in @w {pads=[1,1,1,1]}\n",
    "  input @x : f32[3,20,12,11]\n"
    "  input @w : f32[6,4,3,2]\n"
    "  output @y : f32[3,9,6,6]\n"
    "  expand @out @y, @in @zero\n"
    "  %v = view @x {offset=528, rows=3, pitch=2640} : f32[3,8,12,11]\n"
    "  %r = view @y {rows=3, pitch=324} : f32[3,6,6,6]\n"
    "  conv @out %r, @in %v, @in @w {group=2, pads=[1,1,1,0], strides=[2,2]}\n",
    "  input @x : f32[3,20,12,11]\n"
    "  input @w : f32[8,1,3,3]\n"
    "  output @y : f32[3,9,12,11]\n"
    "  expand @out @y, @in @zero\n"
    "  %v = view @x {offset=528, rows=3, pitch=2640} : f32[3,8,12,11]\n"
    "  %r = view @y {rows=3, pitch=1188} : f32[3,8,12,11]\n"
    "  conv @out %r, @in %v, @in @w {group=8, pads=[1,1,1,1]}\n",
    "  input @x : f32[3,20,12,11]\n"
    "  input @w : f32[16,1,5,5]\n"
    "  input @s : f32[3,17,12,11]\n"
    "  output @y : f32[3,19,12,11]\n"
    "  expand @out @y, @in @zero\n"
    "  %v = view @x {offset=528, rows=3, pitch=2640} : f32[3,8,12,11]\n"
    "  %a = view @s {offset=132, rows=3, pitch=2244} : f32[3,16,12,11]\n"
    "  %r = view @y {rows=3, pitch=2508} : f32[3,16,12,11]\n"
    "  conv @out %r, @in %v, @in @w, _, @in %a {group=8, pads=[2,2,2,2], activation=\"relu\"}\n",
    "  input @x : f32[3,20,2,2]\n"
    "  input @w : f32[48,8,1,1]\n"
    "  input @s : f32[3,48,2,2]\n"
    "  output @y : f32[3,50,2,2]\n"
    "  expand @out @y, @in @zero\n"
    "  %v = view @x {offset=16, rows=3, pitch=80} : f32[3,8,2,2]\n"
    "  %r = view @y {rows=3, pitch=200} : f32[3,48,2,2]\n"
    "  conv @out %r, @in %v, @in @w, _, @in @s\n",
    "  input @x : f32[3,20,16,17]\n"
    "  input @w : f32[5,8,3,3]\n"
    "  input @s : f32[3,6,16,17]\n"
    "  output @y : f32[3,9,16,17]\n"
    "  expand @out @y, @in @zero\n"
    "  %v = view @x {offset=272, rows=3, pitch=5440} : f32[3,8,16,17]\n"
    "  %a = view @s {offset=272, rows=3, pitch=1632} : f32[3,5,16,17]\n"
    "  %r = view @y {rows=3, pitch=2448} : f32[3,5,16,17]\n"
    "  conv @out %r, @in %v, @in @w, _, @in %a {pads=[1,1,1,1], algorithm=\"winograd\"}\n",
    "  input @x : f32[3,20,6,5]\n"
    "  input @w : f32[8,4,2,2]\n"
    "  output @y : f32[3,9,12,10]\n"
    "  expand @out @y, @in @zero\n"
    "  %v = view @x {offset=30, rows=3, pitch=600} : f32[3,8,6,5]\n"
    "  %r = view @y {offset=120, rows=3, pitch=1080} : f32[3,4,12,10]\n"
    "  conv_transpose @out %r, @in %v, @in @w {strides=[2,2]}\n",
    /* pools: read from the image, and through folded rows */
    "  input @x : f32[3,7,24,40]\n"
    "  output @y : f32[3,5,12,20]\n"
    "  expand @out @y, @in @zero\n"
    "  %v = view @x {offset=960, rows=3, pitch=6720} : f32[3,4,24,40]\n"
    "  %r = view @y {offset=240, rows=3, pitch=1200} : f32[3,4,12,20]\n"
    "  max_pool @out %r, @in %v {kernel_shape=[2,2], strides=[2,2]}\n",
    "  input @x : f32[3,7,9,8]\n"
    "  output @y : f32[3,5,9,8]\n"
    "  expand @out @y, @in @zero\n"
    "  %v = view @x {offset=72, rows=3, pitch=504} : f32[3,4,9,8]\n"
    "  %r = view @y {offset=72, rows=3, pitch=360} : f32[3,4,9,8]\n"
    "  average_pool @out %r, @in %v {kernel_shape=[3,3], pads=[1,1,1,1]}\n",
    /* element by element: short rows and long ones, broadcast operands, in place, several results
     */
    "  input @x : f32[3,7,4,5]\n"
    "  input @b : f32[4,1,1]\n"
    "  output @y : f32[3,5,4,5]\n"
    "  output @z : f32[3,4,4,5]\n"
    "  expand @out @y, @in @zero\n"
    "  expand @out @z, @in @zero\n"
    "  %v = view @x {offset=20, rows=3, pitch=140} : f32[3,4,4,5]\n"
    "  %r = view @y {offset=20, rows=3, pitch=100} : f32[3,4,4,5]\n"
    "  stack @out %r, @out @z, @in %v, @in @b { t0: add(%v, @b); sigmoid(t0) -> %r; mul(t0, %v) -> "
    "@z }\n",
    "  input @x : f32[3,1200]\n"
    "  output @y : f32[3,900]\n"
    "  expand @out @y, @in @zero\n"
    "  %v = view @x {offset=20, rows=3, pitch=1200} : f32[3,850]\n"
    "  %r = view @y {offset=20, rows=3, pitch=900} : f32[3,850]\n"
    "  stack @out %r, @in %v { exp; mul 0.5 }\n"
    "  relu @out %r, @in %r\n",
    "  input @x : f32[3,40]\n"
    "  input @z : f32[3,20]\n"
    "  input @one : f32[]\n"
    "  output @y : f32[3,40]\n"
    "  expand @out @y, @in @zero\n"
    "  %v = view @x {offset=20, rows=3, pitch=40} : f32[3,20]\n"
    "  %r = view @y {rows=3, pitch=40} : f32[3,20]\n"
    "  %s = view @y {offset=20, rows=3, pitch=40} : f32[3,20]\n"
    "  sub @out %r, @in %v, @in @z\n"
    "  clip @out %s, @in %v, _, @in @one\n"
    "  pow @out %r, @in %s, @in @one\n"
    "  max @out %s, @in %v, @in @z, @in %r\n",
    "  input @x : f32[3,40]\n"
    "  input @z : f32[3,20]\n"
    "  output @y : f32[3,20]\n"
    "  expand @out @y, @in @zero\n"
    "  %v = view @x {offset=20, rows=3, pitch=40} : f32[3,20]\n"
    "  %c = alloc : bool[3,60]\n"
    "  %r = view %c {offset=20, rows=3, pitch=60} : bool[3,20]\n"
    "  greater @out %r, @in %v, @in @z\n"
    "  where @out @y, @in %r, @in %v, @in @z\n"
    "  dealloc %c\n",
    /* movement */
    "  input @x : f32[3,40]\n"
    "  output @y : f32[6,30]\n"
    "  output @z : f32[3,20]\n"
    "  expand @out @y, @in @zero\n"
    "  expand @out @z, @in @zero\n"
    "  %v = view @x {offset=20, rows=3, pitch=40} : f32[3,20]\n"
    "  %h = view @x {offset=10, rows=6, pitch=20} : f32[6,10]\n"
    "  %r = view @y {rows=3, pitch=60} : f32[3,20]\n"
    "  %q = view @y {offset=20, rows=6, pitch=30} : f32[6,10]\n"
    "  copy @out %r, @in %v\n"
    "  copy @out %q, @in %h\n"
    "  copy @out @z, @in %r\n"
    "  %p = view %v : f32[6,10]\n"
    "  copy @out %q, @in %p\n",
    "  input @x : f32[3,4,40]\n"
    "  input @b : f32[1,20]\n"
    "  output @y : f32[3,4,50]\n"
    "  output @t : f32[5,3,20]\n"
    "  expand @out @y, @in @zero\n"
    "  expand @out @t, @in @zero\n"
    "  %v = view @x {offset=20, rows=12, pitch=40} : f32[3,4,20]\n"
    "  %r = view @y {rows=12, pitch=50} : f32[3,4,40]\n"
    "  %q = view @y {offset=20, rows=3, pitch=200} : f32[3,1,20]\n"
    "  %s = view @t {rows=4, pitch=60} : f32[4,3,20]\n"
    "  concat @out %r, @in %v, @in %v {axis=2}\n"
    "  slice @out %q, @in %v {starts=[0,1,0], steps=[1,1,1]}\n"
    "  transpose @out %s, @in %v {perm=[1,0,2]}\n"
    "  %e = view @t {rows=5, pitch=60} : f32[5,20]\n"
    "  expand @out %e, @in @b\n",
};

/* Stored integers: a convolution, depthwise and not, and a pool. */
static const char *const stored_cases[] = {
    "  input @x : u8[3,20,12,11] q(0.02,128)\n"
    "  input @w : i8[8,1,3,3] q(0.01,0)\n"
    "  input @n : i8[] q(0.05,3)\n"
    "  output @y : i8[3,9,12,11] q(0.05,3)\n"
    "  expand @out @y, @in @n\n"
    "  %v = view @x {offset=528, rows=3, pitch=2640} : u8[3,8,12,11] q(0.02,128)\n"
    "  %r = view @y {rows=3, pitch=1188} : i8[3,8,12,11] q(0.05,3)\n"
    "  conv @out %r, @in %v, @in @w {group=8, pads=[1,1,1,1]}\n",
    "  input @x : u8[3,20,12,11] q(0.02,128)\n"
    "  input @w : i8[5,8,3,3] q(0.01,0)\n"
    "  input @n : i8[] q(0.05,3)\n"
    "  output @y : i8[3,9,12,11] q(0.05,3)\n"
    "  expand @out @y, @in @n\n"
    "  %v = view @x {offset=528, rows=3, pitch=2640} : u8[3,8,12,11] q(0.02,128)\n"
    "  %r = view @y {offset=264, rows=3, pitch=1188} : i8[3,5,12,11] q(0.05,3)\n"
    "  conv @out %r, @in %v, @in @w {pads=[1,1,1,1]}\n",
    "  input @x : u8[3,7,24,40] q(0.02,128)\n"
    "  input @n : u8[] q(0.02,128)\n"
    "  output @y : u8[3,5,12,20] q(0.02,128)\n"
    "  expand @out @y, @in @n\n"
    "  %v = view @x {offset=960, rows=3, pitch=6720} : u8[3,4,24,40] q(0.02,128)\n"
    "  %r = view @y {offset=240, rows=3, pitch=1200} : u8[3,4,12,20] q(0.02,128)\n"
    "  max_pool @out %r, @in %v {kernel_shape=[2,2], strides=[2,2]}\n",
};

static KilnIRModule *
parse(const char *body)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strdup_printf("func @f {\n  weight @zero : f32[] const\n%s}\n"
                                            "constants {\n  @zero = splat(0) : f32[]\n}\n",
                                            body);
    KilnIRModule *ir = kiln_ir_module_parse(text, strlen(text), "test", &error);
    cr_assert(ir, "%s%s", body, error ? error->message : "");
    return ir;
}

/* The cpu backend, with the reference's copies. */
static KilnTarget
target_for_copies(KilnKernel *kernels, uint32_t n)
{
    KilnTarget target = *kiln_cpu_target();
    const KilnKernel *all = target.kernels;
    cr_assert_leq(target.n_kernels, n);
    n = 0;
    for (uint32_t i = 0; i < target.n_kernels; i++) {
        if (all[i].instr != KILN_INSTR_copy)
            kernels[n++] = all[i];
    }
    target.kernels = kernels;
    target.n_kernels = n;
    target.fallback = kiln_ref_target();
    return target;
}

static void
copy(KilnBuffer *to, KilnBuffer *from, KilnInstr *before)
{
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_instr_new(to->function, KILN_INSTR_copy, (KilnBuffer *[]){ to, from }, 2, NULL,
                             before, &error));
}

/* Each instruction works on dense copies of what it named in rows, one for equal operands. */
static void
copy_rows(KilnIRFunction *function)
{
    kiln_foreach_instr_safe (instr, function) {
        KilnInstr *after = instr->next;
        if (kiln_instr_is_bookkeeping(instr) || instr->kind == KILN_INSTR_copy)
            continue;
        for (uint32_t i = 0; i < instr->n_operands; i++) {
            KilnBuffer *rows = instr->operands[i].buffer;
            if (!rows || !kiln_buffer_is_strided(rows))
                continue;
            bool written = false;
            KilnBuffer *dense = kiln_ir_alloc(function, "dense", &rows->type, instr);
            for (uint32_t k = i; k < instr->n_operands; k++) {
                if (instr->operands[k].buffer != rows)
                    continue;
                if (instr->operands[k].access != KILN_ACCESS_OUT)
                    copy(dense, rows, instr);
                written |= instr->operands[k].access != KILN_ACCESS_IN;
                kiln_instr_set_operand(instr, k, dense);
            }
            if (written)
                copy(rows, dense, after);
            kiln_ir_dealloc(dense, after);
        }
    }
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_ir_verify(function, &error), "%s", error ? error->message : "");
}

static KilnTensor *
random_tensor(const KilnType *type, uint64_t seed)
{
    g_autoptr(GError) error = NULL;
    int64_t n = kiln_type_elements(type);
    g_autofree float *data = g_new0(float, n + 1);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bits = kiln_random_bits(seed, (uint64_t)i);
        if (type->quant)
            ((uint8_t *)data)[i] = (uint8_t)bits;
        else
            data[i] = (float)(int64_t)(bits % 2001) / 1000.0f - 1.0f;
    }
    KilnType plain = *type;
    plain.quant = NULL;
    KilnTensor *tensor = kiln_tensor_new_copy(&plain, data, &error);
    cr_assert(tensor, "%s", error ? error->message : "");
    return tensor;
}

static GPtrArray *
run(const KilnIRFunction *function, const KilnTarget *target, int threads)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) inputs = g_ptr_array_new_with_free_func((GDestroyNotify)kiln_tensor_free);
    GPtrArray *outputs = g_ptr_array_new_with_free_func((GDestroyNotify)kiln_tensor_free);
    for (guint i = 0; i < function->inputs->len; i++) {
        const KilnBuffer *input = g_ptr_array_index(function->inputs, i);
        g_ptr_array_add(inputs, random_tensor(&input->type, i));
    }
    g_ptr_array_set_size(outputs, (gint)function->outputs->len);
    KilnInterpretation how = { .evaluate = kiln_graph_evaluate,
                               .inputs = (const KilnTensor *const *)inputs->pdata,
                               .outputs = (KilnTensor **)outputs->pdata,
                               .threads = threads,
                               .poison = true };
    gboolean good = kiln_ir_interpret(function, target, &how, &error);
    cr_assert(good, "%s", error ? error->message : "");
    return outputs;
}

static void
expect_same(const char *body, const GPtrArray *expected, const GPtrArray *found)
{
    for (guint i = 0; i < expected->len; i++) {
        const KilnTensor *a = g_ptr_array_index(expected, i), *b = g_ptr_array_index(found, i);
        cr_expect(g_bytes_equal(a->bytes, b->bytes), "%soutput %u differs", body, i);
    }
}

/* Else the copies would be compared with themselves. */
static void
expect_taken(const char *body, const KilnIRFunction *function)
{
    kiln_foreach_instr (instr, function) {
        if (kiln_instr_is_bookkeeping(instr))
            continue;
        const KilnKernel *kernel = kiln_target_find(kiln_cpu_target(), instr);
        cr_expect(kernel && kiln_kernel_entry(kernel, instr) == kernel->run, "%s%s copies", body,
                  kiln_instr_info(instr->kind)->name);
    }
}

static void
expect_as_dense(const char *body)
{
    static KilnKernel kernels[512];
    const KilnTarget dense = target_for_copies(kernels, G_N_ELEMENTS(kernels));
    g_autoptr(KilnIRModule) ir = parse(body);
    g_autoptr(KilnIRModule) copies = parse(body);
    const KilnIRFunction *function = g_ptr_array_index(ir->functions, 0);
    copy_rows(g_ptr_array_index(copies->functions, 0));
    g_autoptr(GPtrArray) expected = run(g_ptr_array_index(copies->functions, 0), &dense, 1);
    for (int threads = 1; threads <= 3; threads += 2) {
        g_autoptr(GPtrArray) found = run(function, kiln_cpu_target(), threads);
        expect_same(body, expected, found);
    }
}

Test(cpu_rows, same_bits_as_dense_copies)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(KilnIRModule) ir = parse(cases[i]);
        expect_taken(cases[i], g_ptr_array_index(ir->functions, 0));
        expect_as_dense(cases[i]);
    }
}

/* Kernels of bytes share instructions with those of floats, and not what these take. */
Test(cpu_rows, stored_integers_in_rows)
{
    for (size_t i = 0; i < G_N_ELEMENTS(stored_cases); i++)
        expect_as_dense(stored_cases[i]);
}

/* The first instruction that has an operand in rows. */
static const KilnInstr *
first_in_rows(const KilnIRFunction *function)
{
    kiln_foreach_instr (instr, function) {
        for (uint32_t i = 0; i < instr->n_operands && !kiln_instr_is_bookkeeping(instr); i++) {
            const KilnBuffer *buffer = instr->operands[i].buffer;
            if (buffer && kiln_buffer_is_strided(buffer))
                return instr;
        }
    }
    cr_assert_fail("nothing is in rows");
    return NULL;
}

/* A row shorter than loops are worth, rows across dims, a normalisation, element-wise kernels that
 * walk by flat index: they get copies. */
Test(cpu_rows, what_is_not_taken_is_copied)
{
    static const char *const copied[] = {
        "  input @x : f32[8,4]\n  output @y : f32[8,2]\n"
        "  %v = view @x {rows=8, pitch=4} : f32[8,2]\n  relu @out @y, @in %v\n",
        "  input @x : f32[8,40]\n  output @y : f32[20,12]\n"
        "  %v = view @x {rows=8, pitch=40} : f32[20,12]\n  relu @out @y, @in %v\n",
        "  input @x : f32[4,40]\n  output @y : f32[4,20]\n"
        "  %v = view @x {rows=4, pitch=40} : f32[4,20]\n  softmax @out @y, @in %v {axis=1}\n",
        "  input @x : f32[3,20]\n  output @y : f32[3,40]\n"
        "  %q = alloc : i8[3,40] q(0.01,3)\n"
        "  %a = view %q {rows=3, pitch=40} : i8[3,20] q(0.01,3)\n"
        "  %b = view %q {offset=20, rows=3, pitch=40} : i8[3,20] q(0.01,3)\n"
        "  quantize_linear @out %a, @in @x\n  quantize_linear @out %b, @in @x\n"
        "  dequantize_linear @out @y, @in %q\n  dealloc %q\n",
        "  input @x : f32[3,40]\n  output @y : f32[3,20]\n"
        "  %q = alloc : i8[3,40] q(0.01,3)\n  quantize_linear @out %q, @in @x\n"
        "  %v = view %q {offset=20, rows=3, pitch=40} : i8[3,20] q(0.01,3)\n"
        "  dequantize_linear @out @y, @in %v\n  dealloc %q\n",
        "  input @x : f32[3,40]\n  output @y : f32[3,20]\n"
        "  %q = alloc : i8[3,40] q(0.01,3)\n  quantize_linear @out %q, @in @x\n"
        "  %v = view %q {offset=20, rows=3, pitch=40} : i8[3,20] q(0.01,3)\n"
        "  %r = alloc : i8[3,20] q(0.05,0)\n  rescale_quantized @out %r, @in %v\n"
        "  dealloc %q\n  dequantize_linear @out @y, @in %r\n  dealloc %r\n",
        "  input @x : f32[3,40]\n  output @y : i32[3,20]\n"
        "  %v = view @x {offset=20, rows=3, pitch=40} : f32[3,20]\n"
        "  cast @out @y, @in %v\n",
    };
    for (size_t i = 0; i < G_N_ELEMENTS(copied); i++) {
        g_autoptr(KilnIRModule) ir = parse(copied[i]);
        const KilnIRFunction *function = g_ptr_array_index(ir->functions, 0);
        const KilnInstr *instr = first_in_rows(function);
        const KilnKernel *kernel = kiln_target_find(kiln_cpu_target(), instr);
        cr_assert(kernel && kiln_kernel_entry(kernel, instr) != kernel->run, "%s", copied[i]);
        cr_assert_gt(kiln_kernel_scratch(kernel, instr, 0, false, 1), 0);
        g_autoptr(GPtrArray) expected = run(function, kiln_ref_target(), 1);
        g_autoptr(GPtrArray) found = run(function, kiln_cpu_target(), 1);
        const KilnTensor *a = g_ptr_array_index(expected, 0), *b = g_ptr_array_index(found, 0);
        const void *x = g_bytes_get_data(a->bytes, NULL), *y = g_bytes_get_data(b->bytes, NULL);
        for (int64_t k = kiln_type_elements(&a->type); k-- > 0;)
            cr_assert_float_eq(kiln_element_as_f64(a->type.dtype, x, k),
                               kiln_element_as_f64(b->type.dtype, y, k), 1e-6, "%s", copied[i]);
    }
}
