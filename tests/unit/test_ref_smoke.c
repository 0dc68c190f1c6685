/* SPDX-License-Identifier: Apache-2.0 */
/* Every row of the reference backend's table, with every element type that it states: it is found,
 * it runs, and it writes every byte of its results, since two runs over differently poisoned
 * results agree. What it computes is for the other tests. */
#include "backends/ref/ref.h"
#include "graph/base/number.h"
#include "ir/target.h"

#include "graph/texts.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* An instruction: the types of its operands in order, `_` for an absent one, K for the element type
 * under test; after '|' comes the rest of its text. */
typedef struct {
    const char *instr;
    const char *operands;
} Smoke;

#define STEPS_2D(p, s) "dilations=[1,1], pads=[" p "," p "," p "," p "], strides=[" s "," s "]"
#define WINDOW_2D(k, p, s) "kernel_shape=[" k "," k "], " STEPS_2D(p, s)

// clang-format off
static const Smoke smokes[] = {
    /* convolution and pooling */
    { "average_pool", "K[1,1,2,2]; K[1,1,3,3] | {" WINDOW_2D("2", "0", "1") "}" },
    { "col2im", "K[1,1,3,3]; K[1,4,4] | {block_shape=[2,2]}" },
    { "conv", "K[1,2,2,2]; K[1,2,3,3]; K[2,1,2,2]; K[2] | {" STEPS_2D("0", "1") ", group=2}" },
    { "conv_transpose", "K[1,2,4,4]; K[1,2,3,3]; K[2,1,2,2]; K[2] | {" STEPS_2D("0", "1") ", group=2}" },
    { "deform_conv", "K[1,2,2,2]; K[1,2,3,3]; K[2,1,2,2]; K[1,8,2,2]; K[2]; K[1,4,2,2] | {" STEPS_2D("0", "1") ", group=2}" },
    { "global_average_pool", "K[1,2,1,1]; K[1,2,2,3]" },
    { "global_lp_pool", "K[1,2,1,1]; K[1,2,2,3]" },
    { "global_max_pool", "K[1,2,1,1]; K[1,2,2,3]" },
    { "lp_pool", "K[1,1,2,2]; K[1,1,3,3] | {" WINDOW_2D("2", "0", "1") "}" },
    { "max_pool", "K[1,1,2,2]; K[1,1,3,3]; i64[1,1,2,2] | {" WINDOW_2D("2", "0", "1") "}" },
    { "max_roi_pool", "K[2,1,2,2]; K[3,1,3,3]; K[2,5] | {pooled_shape=[2,2]}" },
    { "max_unpool", "K[1,1,4,4]; K[1,1,2,2]; i64[1,1,2,2] | {" WINDOW_2D("2", "0", "2") "}" },
    /* element-wise; what is not here has one operand and a result of its type */
    { "cast", "f32[2,3]; K[2,3]" },
    { "is_inf", "bool[2,3]; K[2,3]" },
    { "is_nan", "bool[2,3]; K[2,3]" },
    { "add", "K[2,3]; K[2,3]; K[3]" },
    { "and", "K[2,3]; K[2,3]; K[3]" },
    { "bit_shift", "K[2,3]; K[2,3]; K[3]" },
    { "bitwise_and", "K[2,3]; K[2,3]; K[3]" },
    { "bitwise_or", "K[2,3]; K[2,1]; K[2,3]" },
    { "bitwise_xor", "K[2,3]; K[2,1]; K[2,3]" },
    { "clip", "K[2,3]; K[2,3]; K[]; K[]" },
    { "div", "K[2,3]; K[2,1]; K[2,3]" },
    { "equal", "bool[2,3]; K[2,1]; K[3]" },
    { "greater", "bool[2,3]; K[2,1]; K[3]" },
    { "greater_or_equal", "bool[2,3]; K[2,1]; K[3]" },
    { "less", "bool[2,3]; K[2,1]; K[3]" },
    { "less_or_equal", "bool[2,3]; K[2,1]; K[3]" },
    { "max", "K[2,3]; K[2,3]; K[3]; K[]" },
    { "mean", "K[2,3]; K[2,1]; K[2,3]; K[]" },
    { "min", "K[2,3]; K[2,3]; K[3]; K[]" },
    { "mod", "K[2,3]; K[2,1]; K[2,3]" },
    { "mul", "K[2,3]; K[2,3]; K[3]" },
    { "or", "K[2,3]; K[2,3]; K[3]" },
    { "pow", "K[2,3]; K[2,3]; i32[3]" },
    { "prelu", "K[2,3]; K[2,3]; K[3]" },
    { "stack", "bool[2,3]; K[2,1]; K[3] | { equal @b2; xor 1 }" },
    { "sub", "K[2,3]; K[2,1]; K[2,3]" },
    { "sum", "K[2,3]; K[2,1]; K[2,3]; K[]" },
    { "where", "i16[2,3]; K[2,1]; i16[3]; i16[2,3]" },
    { "xor", "K[2,3]; K[2,1]; K[2,3]" },
    /* movement */
    { "image_decoder", "K[0,0,3]; K[4]" },
    { "image_size", "i64[2]; K[4]" },
    { "roi_align", "K[2,1,2,2]; K[3,1,3,3]; K[2,4]; i64[2] | {output_height=2, output_width=2}" },
    { "affine_grid", "K[2,2,3,2]; K[2,2,3]" },
    { "channel_shuffle", "K[2,4]; K[2,4] | {axis=1, group=2}" },
    { "concat", "K[2,3]; K[2,2]; K[2,1] | {axis=1}" },
    { "depth_to_space", "K[1,1,2,2]; K[1,4,1,1] | {blocksize=2}" },
    { "expand", "K[2,3]; K[3]" },
    { "extents", "K[3] | {values=[1,0,1]}" },
    { "eye_like", "K[3,3]" },
    { "gather", "K[2,2]; K[3,2]; i64[2]" },
    { "gather_elements", "K[2,2]; K[3,2]; i64[2,2]" },
    { "gather_nd", "K[2,2]; K[3,2]; i64[2,1]" },
    { "one_hot", "f32[2,3]; K[2]; f32[2] | {axis=1}" },
    { "pack", "K[1,3,2]:aBc2b; K[1,3,2]" },
    { "pad", "K[4,3]; K[2,3]; K[] | {pads=[1,0,1,0]}" },
    { "range", "K[3]; K[]; K[]" },
    /* all of each room is written */
    { "define", "K[1] | {values=[1], most=[-1]}" },
    { "non_zero", "i64[0]; i64[1]; K[2,0]" },
    { "non_max_suppression", "i64[0,3]; i64[1]; K[1,6,4]; K[1,1,6]" },
    { "unique", "K[3]; i64[1]; i64[1]; i64[1]; i64[1]; K[1,3] | {axis=0}" },
    { "grid_sample", "K[1,2,1,3]; K[1,2,2,2]; f32[1,1,3,2]" },
    { "resize", "K[1,1,4,4]; K[1,1,2,2] | {scales=[1,1,2,2]}" },
    { "reverse_sequence", "K[3,2]; K[3,2]; i64[2]" },
    { "scatter_elements", "K[3,2]; K[3,2]; i64[1,2]; K[1,2]" },
    { "scatter_nd", "K[3,2]; K[3,2]; i64[2,1]; K[2,2]" },
    { "slice", "K[1,2]; K[3,2] | {starts=[2,1], steps=[-1,-1]}" },
    { "space_to_depth", "K[1,4,1,1]; K[1,1,2,2] | {blocksize=2}" },
    { "tensor_scatter", "K[2,4,3]; K[2,4,3]; K[2,2,3] | {axis=1}" },
    { "tile", "K[4,3]; K[2,3]" },
    { "transpose", "K[3,2]; K[2,3] | {perm=[1,0]}" },
    { "unpack", "K[1,3,2]; K[1,3,2]:aBc2b" },
    /* normalisation */
    { "batch_normalization", "K[2,3,2]; K[2,3,2]; K[3]; K[3]; K[3]; K[3]; K[3]; K[3] | {training_mode=true}" },
    { "group_normalization", "K[1,4,2]; K[1,4,2]; K[4]; K[4] | {num_groups=2}" },
    { "instance_normalization", "K[2,3,2]; K[2,3,2]; K[3]; K[3]" },
    { "layer_normalization", "K[2,3]; K[2,3]; K[3]; K[3]; f32[2,1]; f32[2,1] | {axis=1}" },
    { "lrn", "K[1,4,2]; K[1,4,2] | {size=3}" },
    { "mean_variance_normalization", "K[2,3,2]; K[2,3,2] | {axes=[0,2]}" },
    { "rms_normalization", "K[2,3]; K[2,3]; K[3] | {axis=1}" },
    /* products and recurrence */
    { "attention", "K[2,5]; K[2,3]; K[4,3]; K[4,5]; K[2,4]" },
    { "det", "K[2]; K[2,3,3]" },
    { "einsum", "K[2,4]; K[2,3]; K[3,4] | {equation=\"ij,jk->ik\"}" },
    { "gemm", "K[2,4]; K[2,3]; K[3,4]; K[4]" },
    { "gru", "K[3,1,2,2]; K[1,2,2]; K[3,2,2]; K[1,6,2]; K[1,6,2]; K[1,12]; i32[2]; K[1,2,2] | {hidden_size=2}" },
    { "linear_attention", "K[1,2,4]; K[1,1,2,4]; K[1,2,2]; K[1,2,2]; K[1,2,4] | {kv_num_heads=1, q_num_heads=1, update_rule=\"linear\"}" },
    { "lstm", "K[3,1,2,2]; K[1,2,2]; K[1,2,2]; K[3,2,2]; K[1,8,2]; K[1,8,2]; K[1,16]; i32[2]; K[1,2,2]; K[1,2,2]; K[1,6] | {hidden_size=2}" },
    { "matmul", "K[2,4]; K[2,3]; K[3,4]" },
    { "rnn", "K[3,1,2,2]; K[1,2,2]; K[3,2,2]; K[1,2,2]; K[1,2,2]; K[1,4]; i32[2]; K[1,2,2] | {hidden_size=2}" },
    /* quantization */
    { "conv_integer", "i32[1,2,2,2]; K[1,2,3,3]; K[2,1,2,2]; K[]; K[2] | {" STEPS_2D("0", "1") ", group=2}" },
    { "dequantize_linear", "f32[2,3]; K[2,3]; f32[3]; K[3] | {axis=1}" },
    { "dynamic_quantize_linear", "u8[4]; f32[]; u8[]; K[4]" },
    { "matmul_integer", "i32[2,4]; K[2,3]; K[3,4]; K[2]; K[4]" },
    { "matmul_nbits", "f32[2,2]; K[2,3]; u8[2,2,1]; f32[2,2]; u8[2,1]; f32[2]; f32[2,2] | {K=3, N=2, bits=4, block_size=2}" },
    { "qlinear_conv", "K[1,2,2,2]; K[1,2,3,3]; f32[]; K[]; K[2,1,2,2]; f32[2]; K[2]; f32[]; K[]; i32[2] | {" STEPS_2D("0", "1") ", group=2}" },
    { "qlinear_matmul", "K[2,4]; K[2,3]; f32[]; K[]; K[3,4]; f32[4]; K[4]; f32[]; K[]" },
    { "quantize_linear", "i8[2,3]; K[2,3]; f32[3]; i8[3] | {axis=1}" },
    /* classical machine learning */
    { "label_encoder", "i16[2,3]; K[2,3]; K[4]; i16[4]; i16[1]" },
    /* strings: each is "1" or "2", and so is each part of it */
    { "token_count", "i64[1]; K[3] | {separators=[\"1\"]}" },
    { "tokenizer", "string[3,2]; K[3] | {tokenexp=\"1+\"}" },
    { "regex_full_match", "bool[2,3]; K[2,3] | {pattern=\"1+\"}" },
    { "string_concat", "K[2,3]; K[2,1]; K[3]" },
    { "string_normalizer", "K[3]; i64[1]; K[2] | {case_change_action=\"UPPER\"}" },
    { "string_parts", "i64[2]; i64[1]; K[2]" },
    { "string_split", "K[2,2]; K[2] | {delimiter=\",\"}" },
    { "pairwise_coupling", "K[2,3]; K[2,3] | {classes=3}" },
    { "squared_distance", "K[2,3]; K[2,4]; K[3,4]" },
    { "tf_idf_vectorizer", "f32[2,2]; K[2,4] | {max_gram_length=2, ngram_counts=[0,1], ngram_indexes=[0,1], pool_int64s=[3,1,3]}" },
    { "tree_ensemble", "K[2,1]; K[2,3]; i32[0]; i32[0]; K[0]; i32[0]; bool[0]; i32[1]; i32[0]; K[0]" },
    /* signals */
    { "dft", "K[2,3,2]; K[2,3,1] | {axis=1, length=[3]}" },
    { "mel_weight_matrix", "f32[3,2]; K[]; K[]; K[]; f32[]; f32[]" },
    /* random */
    { "random_normal", "K[2,3]" },
    { "random_uniform", "K[2,3]" },
    /* reductions */
    { "arg_max", "i64[2,1]; K[2,3] | {axis=1}" },
    { "arg_min", "i64[2]; K[2,3] | {axis=1}" },
    { "cum_prod", "K[2,3]; K[2,3]" },
    { "reduce_l1", "K[2]; K[2,3] | {axes=[1]}" },
    { "reduce_l2", "K[2]; K[2,3] | {axes=[1]}" },
    { "reduce_log_sum", "K[2]; K[2,3] | {axes=[1]}" },
    { "reduce_log_sum_exp", "K[2]; K[2,3] | {axes=[1]}" },
    { "reduce_max", "K[2]; K[2,3] | {axes=[1]}" },
    { "reduce_mean", "K[2]; K[2,3] | {axes=[1]}" },
    { "reduce_min", "K[2]; K[2,3] | {axes=[1]}" },
    { "reduce_prod", "K[2]; K[2,3] | {axes=[1]}" },
    { "reduce_sum", "K[2]; K[2,3] | {axes=[1]}" },
    { "reduce_sum_square", "K[2]; K[2,3] | {axes=[1]}" },
    { "top_k", "K[2,2]; i64[2,2]; K[2,3] | {axis=1}" },
};
// clang-format on

/* The same for kernels that take quantized types. */
// clang-format off
static const Smoke quantized_smokes[] = {
    { "dequantize_linear", "f32[2,3]; K[2,3] q(axis=1,[0.5,1,2],[0,1,2])" },
    { "lookup_table", "u16[2,3] q(0.5,3); K[2,3] q(0.25,1); u16[256] q(0.5,3)" },
    { "quantize_linear", "i8[2,3] q(0.5,3); K[2,3]" },
    { "rescale_quantized", "i8[2,3] q(0.5,3); K[2,3] q(0.25,1)" },
    { "stack", "i8[2,3] q(0.5,1); K[2,1] | { cast : f32; mul 2; quantize_linear }" },
};
// clang-format on

static const char *
operands_of(const KilnKernel *row)
{
    const char *instr = kiln_instr_info(row->instr)->name;
    if (strcmp(row->name, "ref:cast_to_string") == 0)
        return "string[2,3]; K[2,3]";
    for (size_t i = 0; i < G_N_ELEMENTS(quantized_smokes) && row->quantized; i++) {
        if (strcmp(quantized_smokes[i].instr, instr) == 0)
            return quantized_smokes[i].operands;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(smokes); i++) {
        if (strcmp(smokes[i].instr, instr) == 0)
            return smokes[i].operands;
    }
    return row->quantized ? "K[2,3] q(0.5,3); K[2,3] q(0.25,1)" : "K[2,3]; K[2,3]";
}

/* A func of one instruction; buffer @b<i> is operand i. */
static char *
smoke_text(const KilnKernel *row, KilnDType dtype)
{
    KilnInstrKind kind = row->instr;
    static const char *const accesses[] = { "in", "out", "inout" };
    const char *name = kiln_instr_info(kind)->name;
    g_auto(GStrv) parts = g_strsplit(operands_of(row), "|", 2);
    g_auto(GStrv) types = g_strsplit(parts[0], ";", -1);
    g_autoptr(GString) buffers = g_string_new(NULL);
    g_autoptr(GString) uses = g_string_new(NULL);
    for (uint32_t i = 0; types[i]; i++) {
        KilnAccess access;
        bool optional;
        if (kind == KILN_INSTR_stack)
            access = i ? KILN_ACCESS_IN : KILN_ACCESS_OUT;
        else
            cr_assert(kiln_instr_access(kind, i, &access, &optional), "%s has no operand %u", name,
                      i);
        g_auto(GStrv) around_k = g_strsplit(g_strstrip(types[i]), "K", -1);
        g_autofree char *type = g_strjoinv(kiln_dtype_name(dtype), around_k);
        g_string_append_printf(buffers, "  %s @b%u : %s\n",
                               access == KILN_ACCESS_IN ? "input" : "output", i, type);
        g_string_append_printf(uses, "%s @%s @b%u", i ? "," : "", accesses[access], i);
    }
    return g_strdup_printf("func @f {\n%s  %s%s %s\n}\n", buffers->str, name, uses->str,
                           parts[1] ? parts[1] : "");
}

static const KilnText digits[] = { { "1", 1 }, { "2", 1 } };

/* Inputs hold 1 and 2: divisors, indices of dims of 3 and lengths alike; bools 0 and 1. */
static void *
smoke_data(const KilnBuffer *buffer, int poison)
{
    const KilnType *type = &buffer->type;
    const size_t size = (size_t)kiln_type_bytes(type);
    void *data = malloc(size ? size : 1);
    memset(data, poison, size);
    for (size_t i = 0; buffer->kind == KILN_BUFFER_INPUT && i < size / kiln_dtype_size(type->dtype);
         i++) {
        kiln_element_store_f64(type->dtype, data, (int64_t)i,
                               (double)(type->dtype == KILN_DTYPE_bool ? i % 2 : 1 + i % 2));
        if (type->dtype == KILN_DTYPE_string)
            ((const KilnText **)data)[i] = &digits[i % 2];
    }
    return data;
}

static void
smoke_run(const KilnKernel *kernel, const KilnInstr *instr, void **data, int poison,
          KilnTextHeap *texts)
{
    size_t bytes = kernel->scratch_bytes ? kernel->scratch_bytes(instr, 0, 1) : 0;
    void *scratch = bytes ? malloc(bytes) : NULL;
    if (scratch)
        memset(scratch, poison, bytes);
    void *prepared = kernel->prepare ? malloc(kernel->prepared_bytes(instr)) : NULL;
    if (prepared)
        kernel->prepare(instr, prepared);
    KilnKernelArgs args = { .instr = instr,
                            .data = data,
                            .scratch = scratch,
                            .prepared = prepared,
                            .threads = 1,
                            .texts = texts };
    const char *error = kernel->run(&args);
    cr_expect_null(error, "%s: %s", kernel->name, error);
    free(scratch);
    free(prepared);
}

static void
smoke_fill(const KilnInstr *instr, void **data, int poison)
{
    for (uint32_t i = 0; i < instr->n_operands; i++)
        data[i] = smoke_data(kiln_instr_operand(instr, i), poison);
}

static void
smoke_free(const KilnInstr *instr, void **data)
{
    for (uint32_t i = 0; i < instr->n_operands; i++)
        free(data[i]);
}

/* All operands but those that are written over hold what they hold in @expected. */
static bool
equal_strings(const KilnText *const *a, const KilnText *const *b, size_t n)
{
    bool equal = true;
    for (size_t i = 0; i < n && equal; i++)
        equal = kiln_text_equal(a[i], b[i]);
    return equal;
}

static void
smoke_compare(const KilnInstr *instr, void **data, void **expected, const char *text)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        size_t size = (size_t)kiln_type_bytes(&kiln_instr_operand(instr, i)->type);
        bool shared = i && data[i] == data[0];
        bool strings = kiln_instr_operand(instr, i)->type.dtype == KILN_DTYPE_string;
        cr_expect(shared ||
                      (strings ? equal_strings(data[i], expected[i], size / sizeof(KilnText *))
                               : memcmp(data[i], expected[i], size) == 0),
                  "operand %u differs:\n%s", i, text);
    }
}

/* The result lies in operand @k. Returns 1, or 0 where the types forbid it. */
static int
smoke_in_place(const KilnKernel *kernel, const KilnInstr *instr, uint32_t k, void **expected,
               KilnTextHeap *texts, const char *text)
{
    if (k >= instr->n_operands || !kiln_instr_may_share(instr, 0, k))
        return 0;
    void *data[16];
    smoke_fill(instr, data, 0x3c);
    void *own = data[0];
    data[0] = data[k];
    smoke_run(kernel, instr, data, 0x3c, texts);
    smoke_compare(instr, data, expected, text);
    data[0] = own;
    smoke_free(instr, data);
    return 1;
}

/* Returns how often the result lay in an operand. */
static int
smoke(const KilnKernel *row, KilnDType dtype)
{
    g_autofree char *text = smoke_text(row, dtype);
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnIRModule) ir = kiln_ir_module_parse(text, strlen(text), "smoke", &error);
    cr_assert(ir, "%s\n%s", error ? error->message : "", text);
    const KilnIRFunction *function = g_ptr_array_index(ir->functions, 0);
    const KilnInstr *instr = function->first;
    const KilnKernel *kernel = kiln_target_find(kiln_ref_target(), instr);
    cr_assert(kernel && kernel->run == row->run, "%s does not take\n%s", row->name, text);
    g_autoptr(KilnTextHeap) texts = kiln_text_heap_new();
    void *data[2][16];
    int in_place = 0;
    smoke_fill(instr, data[0], 0x3c);
    smoke_fill(instr, data[1], 0x55);
    smoke_run(kernel, instr, data[0], 0x3c, texts);
    smoke_run(kernel, instr, data[1], 0x55, texts);
    smoke_compare(instr, data[1], data[0], text);
    for (uint32_t k = 1; k < 4; k++)
        in_place += smoke_in_place(kernel, instr, k, data[0], texts, text);
    smoke_free(instr, data[0]);
    smoke_free(instr, data[1]);
    return in_place;
}

Test(ref_smoke, every_row_with_every_type)
{
    const KilnTarget *target = kiln_ref_target();
    int calls = 0, in_place = 0;
    for (uint32_t k = 0; k < target->n_kernels; k++) {
        const KilnKernel *row = &target->kernels[k];
        if (strstr(row->name, ":blocked_") || strstr(row->name, ":quantized_"))
            /* these run the plain rows */
            continue;
        if (row->instr == KILN_INSTR_take || row->instr == KILN_INSTR_refuse ||
            row->instr == KILN_INSTR_plugin_op)
            continue; /* reads an address; fails; is of a plug-in */
        if (row->instr >= KILN_INSTR_item_none && row->instr <= KILN_INSTR_dict_vectorizer)
            continue; /* gives new items, whose addresses differ */
        for (KilnDType dtype = 0; dtype < KILN_N_DTYPES; dtype++) {
            if ((row->dtypes >> dtype & 1) && !kiln_dtype_is_item(dtype)) {
                in_place += smoke(row, dtype);
                calls++;
            }
        }
    }
    cr_expect_gt(calls, 800, "%d calls", calls);
    cr_expect_gt(in_place, 400, "%d in place", in_place);
}

/* Bookkeeping and calls apart, the reference has every instruction. */
Test(ref_smoke, every_instruction_has_a_row)
{
    const KilnTarget *target = kiln_ref_target();
    for (KilnInstrKind kind = 0; kind < KILN_N_INSTRS; kind++) {
        bool found = (kiln_instr_info(kind)->flags & KILN_INSTR_BOOKKEEPING) != 0;
        for (uint32_t k = 0; k < target->n_kernels; k++)
            found |= target->kernels[k].instr == kind;
        cr_expect(found || kind == KILN_INSTR_call || kiln_instr_is_flow(kind), "%s",
                  kiln_instr_info(kind)->name);
    }
}
