/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of com.microsoft whose operands or attributes do not fit. The import says which, what was
 * expected and what was found. */
#include "graph/kiln-types.h"
#include "tests/unit/onnx_builder.h"

#include <string.h>

enum {
    MAX_ATTRS = 8
};

typedef struct {
    const char *inputs;     /* their types, between semicolons: a letter and dims; "": absent */
    const char *attributes; /* name=value, between spaces */
    KilnError code;         /* KILN_ERROR_UNSUPPORTED: the node becomes `unknown` */
    const char *expected;   /* is part of the message */
} Wrong;

static unsigned
dtype_of(char letter)
{
    switch (letter) {
    case 'u':
        return ONNX_U8;
    case 'i':
        return ONNX_I32;
    case 'l':
        return ONNX_I64;
    case 'b':
        return ONNX_BOOL;
    case 's':
        return ONNX_STRING;
    default:
        return ONNX_F32;
    }
}

/* "n=1" is a number, "n=1,2" a list, "n=0.5" a float, "n=text" a text. */
static GByteArray *
attribute_of(const char *word)
{
    g_auto(GStrv) parts = g_strsplit(word, "=", 2);
    const char *value = parts[1];
    int64_t numbers[8];
    int n = 0;
    if (g_ascii_isalpha(*value))
        return onnx_text(parts[0], value);
    if (strchr(value, '.'))
        return onnx_float(parts[0], (float)g_ascii_strtod(value, NULL));
    if (!strchr(value, ','))
        return onnx_int(parts[0], g_ascii_strtoll(value, NULL, 10));
    g_auto(GStrv) words = g_strsplit(value, ",", -1);
    while (words[n] && n < 8) {
        numbers[n] = g_ascii_strtoll(words[n], NULL, 10);
        n++;
    }
    return onnx_ints(parts[0], n, numbers);
}

static GByteArray *
graph_of(const char *op, const Wrong *wrong)
{
    GByteArray *graph = onnx_graph_new("g"), *attrs[MAX_ATTRS + 1] = { NULL };
    g_autofree char *name = g_strconcat("com.microsoft:", op, NULL);
    g_auto(GStrv) types = g_strsplit(wrong->inputs, ";", -1);
    g_auto(GStrv) words = g_strsplit(wrong->attributes, " ", -1);
    g_autoptr(GString) names = g_string_new(NULL);
    for (int i = 0; types[i]; i++) {
        g_autofree char *input = *types[i] ? g_strdup_printf("i%d", i) : g_strdup("");
        g_string_append_printf(names, "%s%s", i ? "," : "", input);
        if (*types[i])
            onnx_input(graph, input, dtype_of(*types[i]), types[i] + 1);
    }
    for (int i = 0; words[i] && i < MAX_ATTRS; i++)
        attrs[i] = *words[i] ? attribute_of(words[i]) : NULL;
    onnx_output(graph, "z", ONNX_F32, NULL);
    onnx_node(graph, name, names->str, "z", attrs[0], attrs[1], attrs[2], attrs[3], attrs[4],
              attrs[5], attrs[6], attrs[7], NULL);
    return graph;
}

static void
check(const char *op, const Wrong *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (all[i].code != KILN_ERROR_UNSUPPORTED) {
            onnx_expect_error(graph_of(op, &all[i]), 17, all[i].code, all[i].expected);
            continue;
        }
        g_autofree char *found = onnx_imported(onnx_model(graph_of(op, &all[i]), 8, 17));
        cr_expect(strstr(found, "unknown(") && strstr(found, all[i].expected),
                  "expected '%s', found\n%s", all[i].expected, found);
    }
}
#define CHECK(op, ...)                                                                             \
    check((op), (const Wrong[]){ __VA_ARGS__ },                                                    \
          sizeof((const Wrong[]){ __VA_ARGS__ }) / sizeof(Wrong))

#define INVALID KILN_ERROR_INVALID
#define SHAPE KILN_ERROR_SHAPE
#define UNSUPPORTED KILN_ERROR_UNSUPPORTED

Test(onnx_contrib_wrong, attention)
{
    CHECK(
        "Attention",
        { "f2,3,6;f6,24", "num_heads=0", INVALID, "num_heads: expected 1 or more, found 0" },
        { "f2,3,6;f6,24", "num_heads=2 unidirectional=2", INVALID,
          "unidirectional: expected 0 or 1, found 2" },
        { "f2,3,6;f6,25", "num_heads=2", SHAPE,
          "operand 1: expected columns in multiples of 3, found 25" },
        { "f2,3,6;f6,24", "num_heads=2 qkv_hidden_sizes=8,8", INVALID,
          "qkv_hidden_sizes: expected 3 numbers, found 2" },
        { "f2,3,6;f6,24", "num_heads=2 qkv_hidden_sizes=8,4,12", INVALID,
          "the same for queries and keys, found 8, 4 and 12" },
        { "f2,3,6;f6,16", "num_heads=2 qkv_hidden_sizes=8,8,0", INVALID, "found 8, 8 and 0" },
        { "f2,3,6;f6,24", "num_heads=2 qkv_hidden_sizes=8,8,-8", INVALID, "found 8, 8 and -8" },
        { "f2,3,6;f6,24", "num_heads=3", INVALID, "expected hidden sizes in multiples of 3 heads" },
        { "f2,3,6;f6,30", "num_heads=2 qkv_hidden_sizes=8,8,8", SHAPE,
          "operand 1: expected [6,24], found f32[6,30]" },
        { "f2,3,6;f5,24", "num_heads=2", SHAPE, "operand 1: expected [6,24], found f32[5,24]" },
        { "f2,3,6;f6,24;f1", "num_heads=2", SHAPE, "operand 2: expected [24], found f32[1]" },
        { "f2,3,6;f6,24;;i3", "num_heads=2", SHAPE,
          "expected a mask of 1, 2 or 3 numbers (and 2 more) for each of 2 samples, found 3" },
        { "f2,3,6;f6,24;;i1,3", "num_heads=2", SHAPE, "operand 3: expected [2,3], found i32[1,3]" },
        { "f2,3,6;f6,24;;i2,1,3", "num_heads=2", SHAPE,
          "operand 3: expected [2,3,3], found i32[2,1,3]" },
        { "f2,3,6;f6,24;;i2,1,8,8", "num_heads=2", UNSUPPORTED, "a mask of rank 4" },
        { "f2,3,6;f6,24;;;f3,2,2,5,4", "num_heads=2", SHAPE,
          "operand 4: expected [2,2,2,?,4], found f32[3,2,2,5,4]" },
        { "f2,3,6;f6,32;;;f2,2,2,5,4", "num_heads=2 qkv_hidden_sizes=8,8,16", INVALID,
          "expected keys and values of one hidden size beside a past, found 8 and 16" },
        { "f2,3,6;f6,24;;;;f2,2,1,3", "num_heads=2", SHAPE,
          "operand 5: expected [2,2,3,3], found f32[2,2,1,3]" });
    CHECK("QAttention", { "u2,3,6;u6,24;f23;f;f", "num_heads=2", SHAPE,
                          "operand 2: expected [24], found f32[23]" });
}

Test(onnx_contrib_wrong, attention_of_projections)
{
    CHECK("MultiHeadAttention",
          { "f2,3,8;f2,5,8;f2,5,8", "num_heads=3", SHAPE,
            "expected a hidden size in multiples of 3 heads, found 8" },
          { "f2,3,8;f2,5,6;f2,5,8", "num_heads=2", SHAPE,
            "operand 1: expected [2,?,8], found f32[2,5,6]" },
          { "f2,3,8;f1,5,8;f2,5,8", "num_heads=2", SHAPE,
            "operand 1: expected [2,?,8], found f32[1,5,8]" },
          { "f2,3,8;f2,5,8;f2,4,8", "num_heads=2", SHAPE,
            "operand 2: expected [2,5,?], found f32[2,4,8]" },
          { "f2,3,8;f2,5,8;f2,5,8;f17", "num_heads=2", SHAPE,
            "operand 3: expected [24], found f32[17]" },
          { "f2,3,8;f2,5,8;f2,5,8;;i2,1", "num_heads=2", SHAPE,
            "operand 4: expected [2,5], found i32[2,1]" },
          { "f2,3,8;f2,5,8;f2,5,8;;;f1,3,3,5", "num_heads=2", SHAPE,
            "operand 5: expected [1,2,3,5], found f32[1,3,3,5]" },
          { "f2,3,8;f2,5,8;f2,5,8;;;;f2,2,6,3;f2,2,6,4", "num_heads=2", SHAPE,
            "operand 6: expected [2,2,?,4], found f32[2,2,6,3]" },
          { "f2,3,8;f2,5,8;f2,5,8;;;;f2,2,6,4;f2,2,5,4", "num_heads=2", SHAPE,
            "operand 7: expected [2,2,6,4], found f32[2,2,5,4]" },
          { "f2,3,8;f2,2,5,4;f2,2,5,4;;;;f2,2,6,4;f2,2,6,4", "num_heads=2", INVALID,
            "operand 6: expected none beside keys of rank 4" },
          { "f2,3,8;f2,3,5,4;f2,2,5,4", "num_heads=2", SHAPE,
            "operand 1: expected [2,2,?,4], found f32[2,3,5,4]" },
          { "f2,3,2,2,4", "num_heads=2", SHAPE,
            "operand 0: expected [?,?,2,3,?], found f32[2,3,2,2,4]" },
          { "f2,3,8;f2,5,2,3,4", "num_heads=2", SHAPE,
            "operand 1: expected [2,?,2,2,4], found f32[2,5,2,3,4]" },
          { "f2,3,8;f2,5,2,2,4;f2,5,8", "num_heads=2", INVALID,
            "operand 2: expected none beside packed values" },
          { "f2,1,8;f2,1,8;f2,1,8;;;;f2,2,6,4;f2,2,6,4;i1;i1,2,5", "num_heads=2", SHAPE,
            "operand 9: expected [?,?,6], found i32[1,2,5]" });
    CHECK("DecoderMaskedMultiHeadAttention",
          { "f2,3,8;f2,3,8;f2,3,8;;;f2,2,6,4;f2,2,6,4;i1",
            "num_heads=2 past_present_share_buffer=1", SHAPE,
            "operand 0: expected [?,1,?], found f32[2,3,8]" },
          { "f2,1,8;f2,1,8;f2,1,8;;;f2,2,6,4;f2,2,6,4;i1", "num_heads=2", INVALID,
            "past_present_share_buffer: expected 1 beside operand 5, found 0" });
}

Test(onnx_contrib_wrong, positions)
{
    CHECK("RotaryEmbedding",
          { "f2,3,16;l2,3;f64,4;f64,4", "num_heads=-1", INVALID,
            "num_heads: expected 0 or more, found -1" },
          { "f2,3,16;l2,3;f64,4;f64,4", "num_heads=3", SHAPE,
            "num_heads: expected a divisor of the hidden size 16, found 3" },
          { "f2,3,16;l2,3;f64,4;f64,4", "num_heads=4", SHAPE,
            "operand 2: expected 2 angles a position, found 4" },
          { "f2,3,16;l2,3;f64,2;f64,2", "num_heads=3 rotary_embedding_dim=4", SHAPE,
            "num_heads: expected a divisor of the hidden size 16, found 3" },
          { "f2,3,16;l2,3;f64,2;f64,2", "num_heads=2 rotary_embedding_dim=-4", INVALID,
            "rotary_embedding_dim: expected 0 or more, found -4" },
          { "f2,3,16;l2,3;f64,4;f64,4", "interleaved=2", INVALID,
            "interleaved: expected 0 or 1, found 2" },
          { "f2,3,16;l2,3;f64,0;f64,0", "", SHAPE, "expected heads of 1 element or more, found 0" },
          { "f2,3,16;l2,3;f64,4;f60,4", "", SHAPE, "operand 3: expected [64,4], found f32[60,4]" },
          { "f2,3,16;l2,3;f64,4;f64,1", "", SHAPE, "operand 3: expected [64,4], found f32[64,1]" },
          { "f2,3,16;l1,3;f64,4;f64,4", "", SHAPE, "operand 1: expected [2,3], found i64[1,3]" },
          { "f2,3,16;l3;f64,4;f64,4", "", SHAPE, "operand 1: expected [1], found i64[3]" },
          { "fB,S,H;lB,S;f64,2;f64,2", "num_heads=2 rotary_embedding_dim=4", UNSUPPORTED,
            "an unknown size of heads" },
          { "fB,2,S,D;lB,S;f64,2;f64,2", "num_heads=2 rotary_embedding_dim=4", UNSUPPORTED,
            "an unknown size of heads" });
}

Test(onnx_contrib_wrong, group_query)
{
    static const char two[] = "num_heads=4 kv_num_heads=2";
    CHECK("GroupQueryAttention",
          { "f1,3,32;f1,3,16;f1,3,16;;;i1", two, INVALID, "lacks operand 6" },
          { "f1,3,32;f1,3,16;f1,3,16;;;;i", two, INVALID, "lacks operand 5" },
          { "f1,3,32;f1,3,8;f1,3,16;;;i1;i", two, SHAPE,
            "operand 1: expected [1,?,16], found f32[1,3,8]" },
          { "f1,3,32;f1,3,16;f1,4,16;;;i1;i", two, SHAPE,
            "operand 2: expected [1,3,16], found f32[1,4,16]" },
          { "f1,3,32;f1,4,16;f1,4,16;f1,2,9,8;f1,2,9,8;i1;i", two, SHAPE,
            "operand 1: expected [1,3,16], found f32[1,4,16]" },
          { "f1,3,32;f1,3,16;f1,3,16;f1,4,9,8;f1,2,9,8;i1;i", two, SHAPE,
            "operand 3: expected [1,2,?,8], found f32[1,4,9,8]" },
          { "f1,3,32;f1,3,16;f1,3,16;f1,2,9,8;f1,2,7,8;i1;i", two, SHAPE,
            "operand 4: expected [1,2,9,8], found f32[1,2,7,8]" },
          { "f1,3,32;f1,3,16;f1,3,16;;;i2;i", two, SHAPE, "operand 5: expected [1], found i32[2]" },
          { "f1,3,32;f1,3,16;f1,3,16;;;i1;i;f64,4;f64,1", "num_heads=4 kv_num_heads=2 do_rotary=1",
            SHAPE, "operand 8: expected [64,4], found f32[64,1]" },
          { "f1,3,32;f1,3,16;f1,3,16;;;i1;i;;;;f1,4,1,3", two, SHAPE,
            "operand 10: expected [1,4,3,?], found f32[1,4,1,3]" },
          { "f1,3,32;f1,3,16;f1,3,16;;;i1;i;;;;f2,4,3,3", two, SHAPE,
            "operand 10: expected [1,4,3,?], found f32[2,4,3,3]" },
          { "f1,3,32;f1,3,16;f1,3,16;;;i1;i;;;;;f1", two, SHAPE,
            "operand 11: expected [4], found f32[1]" },
          { "f1,3,32;f1,3,16;f1,3,16;;;i1;i", "num_heads=4 kv_num_heads=2 causal=2", INVALID,
            "causal: expected 0 or 1, found 2" },
          { "f1,3,32;f1,3,16;f1,3,16;;;i1;i", "num_heads=4 kv_num_heads=2 smooth_softmax=2",
            INVALID, "smooth_softmax: expected -1 to 1, found 2" },
          { "f1,3,32;f1,3,16;f1,3,16;;;i1;i", "num_heads=4 kv_num_heads=2 local_window_size=0",
            INVALID, "local_window_size: expected -1, or 1 or more, found 0" });
}

Test(onnx_contrib_wrong, experts)
{
    static const char gate[] = "activation_type=swiglu";
    CHECK(
        "MoE",
        { "f5,8;f5,3;f4,6,8;;f4,8,6", "k=2", SHAPE, "operand 1: expected [5,4], found f32[5,3]" },
        { "f5,8;f1,4;f4,6,8;;f4,8,6", "k=2", SHAPE, "operand 1: expected [5,4], found f32[1,4]" },
        { "f2,3,8;f5,4;f4,6,8;;f4,8,6", "k=2", SHAPE, "operand 1: expected [6,4], found f32[5,4]" },
        { "f5,8;f5,4;f4,6,9;;f4,8,6", "k=2", SHAPE,
          "operand 2: expected weights of [4,6,8], found [4,6,9]" },
        { "f5,8;f5,4;f4,6,8;;f3,8,6", "k=2", SHAPE,
          "operand 4: expected weights of [4,8,6], found [3,8,6]" },
        { "f5,8;f5,4;f4,6,8;f4,1;f4,8,6", "k=2", SHAPE,
          "operand 3: expected [4,6], found f32[4,1]" },
        { "f5,8;f5,4;f4,6,8;f6;f4,8,6", "k=2", SHAPE, "operand 3: expected rank 2, found f32[6]" },
        { "f5,8;f5,4;f4,6,8;;f4,8,6;f1,8", "k=2", SHAPE,
          "operand 5: expected [4,8], found f32[1,8]" },
        { "f5,8;f5,4;f4,6,8;;f4,8,6;;f4,6,7", "k=2", SHAPE,
          "operand 6: expected weights of [4,6,8], found [4,6,7]" },
        { "f5,8;f5,4;f4,6,8;;f4,8,6;;;f4,6", "k=2", INVALID,
          "operand 7: expected weights beside it" },
        { "f5,8;f5,4;f4,12,8;;f4,8,6", gate, INVALID,
          "swiglu_fusion: expected 1 or 2 without operand 6, found 0" },
        { "f5,8;f5,4;f4,6,8;;f4,8,6;;f4,6,8", "activation_type=swiglu swiglu_fusion=1", INVALID,
          "swiglu_fusion: expected 0 beside operand 6, found 1" },
        { "f5,8;f5,4;f4,12,8;;f4,8,6", "activation_type=swiglu swiglu_fusion=3", INVALID,
          "swiglu_fusion: expected 0 to 2, found 3" },
        { "f5,8;f5,4;f4,12,8;;f4,8,6", "activation_type=swiglu swiglu_fusion=1 swiglu_limit=-0.5",
          INVALID, "swiglu_limit: expected 0 or more, found -0.5" },
        { "f5,8;f5,4;f4,6,8;;f4,8,6", "normalize_routing_weights=2", INVALID,
          "normalize_routing_weights: expected 0 or 1, found 2" });
    CHECK("QMoE",
          { "f5,32;f5,4;u4,32,16;f4,32;;u4,32,16;f4,32", "weights_prepacked=1", UNSUPPORTED,
            "weights that are packed for another machine" },
          { "f5,32;f5,4;u4,32,16;f4,32;;u4,32,16;f4,32", "block_size=24", INVALID,
            "block_size: expected 0 or a power of 2 from 16 on, found 24" },
          { "f5,32;f5,4;u4,32,16;f4,32;;u4,32,16;f4,32", "block_size=8", INVALID, "found 8" },
          { "f5,32;f5,4;u4,32,16;f4,32,2;;u4,32,16;f4,32,2", "", SHAPE,
            "operand 3: expected [4,32,1], found f32[4,32,2]" },
          { "f5,32;f5,4;u4,32,16;f4,32,1;;u4,32,16;f4,32,2", "block_size=16", SHAPE,
            "operand 3: expected [4,32,2], found f32[4,32,1]" },
          { "f5,32;f5,4;u4,32,16;f4,31;;u4,32,16;f4,32", "", SHAPE,
            "operand 3: expected [4,32], found f32[4,31]" },
          { "f5,32;f5,4;u4,32,16;;;u4,32,16;f4,32", "", INVALID, "lacks operand 3" },
          { "f5,32;f5,4;u4,32,16;f4,32;f4,1;u4,32,16;f4,32", "", SHAPE,
            "operand 4: expected [4,32], found f32[4,1]" },
          { "f5,32;f5,4;u4,32,16;f4,32;;u4,32,16;f4,32;;;;;u4,17", "", SHAPE,
            "operand 11: expected [4,16], found u8[4,17]" },
          { "f5,32;f5,4;u4,32,16;f4,32;;u4,32,16;f4,32;;;;;u", "", SHAPE,
            "operand 11: expected rank 2, found u8[]" },
          { "f5,32;f5,4;u4,32,15;f4,32;;u4,32,16;f4,32", "", SHAPE,
            "operand 2: expected weights of [4,32,32], found [4,32,30]" },
          { "f5,32;f5,4;u4,32,16;f4,32;;u4,32,16;f4,32;;;;;;;;f5,3", "", SHAPE,
            "operand 14: expected [5,4], found f32[5,3]" });
}

Test(onnx_contrib_wrong, scales_and_zero_points)
{
    CHECK("QLinearAdd",
          { "u2,3,4;f3;u3;u2,3,4;f;u;f;u", "", SHAPE, "operand 1: expected [1], found f32[3]" },
          { "u2,3,4;f;u3;u2,3,4;f;u;f;u", "", SHAPE, "operand 2: expected [1], found u8[3]" },
          { "u2,3,4;f;u;u2,3,4;f;u;f3;u", "", SHAPE, "operand 6: expected [1], found f32[3]" },
          { "u2,3,4;f;u;u2,3,4;f;u;f;u0", "", SHAPE, "operand 7: expected [1], found u8[0]" });
    CHECK("QLinearSigmoid",
          { "u2,3,4;f;u3;f;u", "", SHAPE, "operand 2: expected [1], found u8[3]" });
    CHECK("QLinearWhere",
          { "b4;u4;f4;u4;u4;f;u;f;u", "", SHAPE, "operand 2: expected [1], found f32[4]" });
    CHECK("QLinearReduceMean", { "u2,4;f4;u4;f;u", "axes=1,0 keepdims=1", SHAPE,
                                 "operand 1: expected [1], found f32[4]" });
    CHECK("MatMulIntegerToFloat",
          { "u5,6;u6,4;f;f;u5;u", "", SHAPE, "operand 4: expected [1], found u8[5]" },
          { "u5,6;u6,4;f5;f", "", SHAPE, "operand 2: expected [1], found f32[5]" },
          { "u5,6;u6,4;f;f;u;u;f1", "", SHAPE, "operand 6: expected [4], found f32[1]" });
    CHECK("DynamicQuantizeMatMul",
          { "f5,6;u6,4;f;u;f1", "", SHAPE, "operand 4: expected [4], found f32[1]" });
    CHECK("QAttention", { "u2,3,6;u6,24;f24;f;f;;u3", "num_heads=2", SHAPE,
                          "operand 6: expected [1], found u8[3]" });
}

Test(onnx_contrib_wrong, blocks)
{
    static const char nbits[] = "K=40 N=7 bits=4 block_size=16";
    CHECK("MatMulNBits",
          { "f2,40;u7,3,7;f7,3", nbits, SHAPE, "operand 1: expected [7,3,8], found u8[7,3,7]" },
          { "f2,40;u7,3,8;f20", nbits, SHAPE, "operand 2: expected [21], found f32[20]" },
          { "f2,40;u7,3,8;f", nbits, SHAPE, "operand 2: expected rank 1 to 3, found f32[]" },
          { "f2,40;u7,3,8;f7,3;u7,3", nbits, SHAPE, "operand 3: expected [7,2], found u8[7,3]" },
          { "f2,40;u7,3,8;f7,3;u", nbits, SHAPE, "operand 3: expected rank 1 to 3, found u8[]" },
          { "f2,40;u7,3,8;f7,3;f20", nbits, SHAPE, "operand 3: expected [21], found f32[20]" },
          { "f2,40;u7,3,8;f7,3;;i41", nbits, SHAPE, "operand 4: expected [40], found i32[41]" },
          { "f2,40;u7,3,8;f7,3;;;f1", nbits, SHAPE, "operand 5: expected [7], found f32[1]" },
          { "f2,40;u7,3,8;f7,3", "K=3000000000 N=7 bits=4 block_size=16", INVALID,
            "expected K, N and block_size from 1 to 2147483647, found 3000000000, 7 and 16" },
          { "f2,40;u7,3,8;f7,3", "K=40 N=0 bits=4 block_size=16", INVALID,
            "expected K, N and block_size from 1 to 2147483647, found 40, 0 and 16" },
          { "f2,1300000000;u1300000000,1300000000,1;f1300000000,1300000000",
            "K=1300000000 N=1300000000 bits=8 block_size=1", INVALID,
            "expected packed weights of less than 2^63 bytes, found K=1300000000" });
    CHECK("MatMulBnb4", { "f2,40;u140;f18", "K=40 N=3000000000 block_size=16 quant_type=0", INVALID,
                          "expected K, N and block_size from 1 to 2147483647, found 40, "
                          "3000000000 and 16" });
    CHECK("GatherBlockQuantized",
          { "u9,32;l3;f8,4", "bits=4 block_size=16", SHAPE,
            "operand 2: expected [9,4], found f32[8,4]" },
          { "u9,32;l3;f9,4;u9,3", "bits=4 block_size=16", SHAPE,
            "operand 3: expected [9,2], found u8[9,3]" },
          { "u9,32;l3;f9,4;u", "bits=4 block_size=16", SHAPE,
            "operand 3: expected rank 2, found u8[]" },
          { "u32,9;l3;f2,9", "bits=4 block_size=16 quantize_axis=0 gather_axis=1", INVALID,
            "quantize_axis: expected the last axis of packed numbers, found 0" },
          { "u9,32;l3;f9,3", "bits=4 block_size=24", INVALID,
            "block_size: expected a power of 2 from 16 on, found 24" });
}

Test(onnx_contrib_wrong, gates)
{
    CHECK(
        "GatedAdd",
        { "f2,3,8;f2,3,1;f2,3,1", "", SHAPE, "operand 1: expected [2,3,8], found f32[2,3,1]" },
        { "f2,3,8;f2,3,8;f2,1,1", "", SHAPE, "operand 2: expected [2,3,1], found f32[2,1,1]" },
        { "f2,3,8;f2,3,8;f2,3,4;f4,1", "", UNSUPPORTED, "operand 3, the projection of the gate" });
    CHECK("GatedRMSNorm",
          { "f2,3,8;f3;f2,3,8", "", SHAPE,
            "expected rows in multiples of the scale's 3 numbers, found 8" },
          { "f2,3,8;f4;f2,3,4", "", SHAPE, "operand 2: expected [2,3,8], found f32[2,3,4]" },
          { "f2,3,8;f4;f2,3,8", "activation=tanh", INVALID,
            "activation: expected silu, swish or sigmoid, found tanh" });
    CHECK("ScaledSiLU", { "f2,3;f1", "", SHAPE, "operand 1: expected rank 0, found f32[1]" });
    CHECK("LinearAttentionGate",
          { "f2,3,4;f1;f4", "", SHAPE, "operand 1: expected [4], found f32[1]" });
    CHECK("EngramGate", { "f2,3,2,8;f2,3,1,8;f2,3,8;f2,8;f2,8", "", SHAPE,
                          "operand 1: expected [2,3,2,8], found f32[2,3,1,8]" });
}

Test(onnx_contrib_wrong, streams)
{
    CHECK("BranchwiseRMSNorm",
          { "f2,20", "num_branches=3", INVALID,
            "num_branches: expected a divisor of 20 columns, found 3" },
          { "f2,20", "num_branches=-4", INVALID,
            "num_branches: expected a divisor of 20 columns, found -4" },
          { "f2,4,5;f4", "", SHAPE, "operand 1: expected [20], found f32[4]" });
    CHECK("HyperConnectionPreMix",
          { "f2,4,5;f2,5", "", SHAPE, "operand 1: expected [2,4], found f32[2,5]" },
          { "f2,4,5;f2,20", "", SHAPE, "operand 1: expected [2,4], found f32[2,20]" });
    CHECK(
        "HyperConnectionPostMix",
        { "f2,4,5;f2,1;f2,4", "", SHAPE, "operand 1: expected [2,5], found f32[2,1]" },
        { "f2,4,5;f2,5;f2,4;f2,4,5", "", SHAPE, "operand 3: expected [2,4,4], found f32[2,4,5]" });
    CHECK("MRotaryEmbedding",
          { "f2,3,32;l3,2,3;f9,8;f9,8", "num_heads=2 mrope_section=4,2", INVALID,
            "mrope_section: expected 3 numbers, found 2" },
          { "f2,3,32;l3,2,3;f9,8;f9,8", "num_heads=2 mrope_section=4,2,3", INVALID,
            "mrope_section: expected 8 angles of 8 columns, found 4, 2 and 3" },
          { "f2,3,32;l3,2,3;f9,8;f9,8", "mrope_section=4,2,2", INVALID,
            "num_heads: expected 1 or more beside rows of rank 3, found 0" },
          { "f2,3,32;l2,2,3;f9,8;f9,8", "num_heads=2 mrope_section=4,2,2", SHAPE,
            "operand 1: expected [3,2,3], found i64[2,2,3]" });
}

Test(onnx_contrib_wrong, tokens)
{
    CHECK("RelativePositionBias",
          { "f32,3;l1;l1", "max_distance=16", INVALID,
            "max_distance: expected more than the 16 distances that have a bucket each, found 16" },
          { "f32,3;l1;l1", "max_distance=128 is_bidirectional=2", INVALID,
            "is_bidirectional: expected 0 or 1, found 2" },
          { "f32,3;l2;l1", "max_distance=128", SHAPE, "operand 1: expected [1], found i64[2]" },
          { "f1,3;l1;l1", "max_distance=128", INVALID,
            "max_distance: expected more than the 0 distances" });
    CHECK("GatedRelativePositionBias",
          { "f2,5,12;f12;f1,3,5,5;f4,7;f7;f1,3,1,1", "num_heads=3", INVALID,
            "gates of an even number of columns, found 3 and 7" },
          { "f2,5,12;f12;f1,3,5,4;f4,8;f8;f1,3,1,1", "num_heads=3", SHAPE,
            "operand 2: expected [1,3,5,5], found f32[1,3,5,4]" },
          { "f2,5,12;f12;f1,3,5,5;f4,8;f8;f1,3,1,1;i2,5", "num_heads=3", UNSUPPORTED,
            "operand 6, rows without padding" });
    CHECK("BifurcationDetector",
          { "l5;l2;l1", "min_ngram_size=2 max_ngram_size=1", INVALID, "found 2 and 1" },
          { "l5;l2;l1", "min_ngram_size=0 max_ngram_size=1", INVALID, "found 0 and 1" },
          { "l5;l2;l2", "min_ngram_size=1 max_ngram_size=1", SHAPE,
            "operand 2: expected [1], found i64[2]" },
          { "l5;l2;l1", "min_ngram_size=1 max_ngram_size=65", UNSUPPORTED, "max_ngram_size=65" });
    CHECK("UnfoldTensor",
          { "f2,4", "size=5", INVALID,
            "expected a size of 1 to 4 and a step of 1 or more, found 5 and 1" },
          { "f2,4", "size=2 step=0", INVALID, "found 2 and 0" },
          { "f2,4", "size=2 dim=2", INVALID, "dim: expected -2 to 1, found 2" },
          { "f2,N", "size=2", UNSUPPORTED, "an axis of an unknown length" });
    CHECK("MatMulFpQ4", { "f2,64;u84;l2", "blk_quant_type=2", UNSUPPORTED, "blk_quant_type=2" },
          { "f2,64;u84;l2", "", UNSUPPORTED, "operand 2: numbers that are not known" });
}

Test(onnx_contrib_wrong, routers_and_pools)
{
    CHECK("MoEGroupRouter",
          { "f3,8;f8", "top_k=9", INVALID, "top_k: expected 1 to 8 experts, found 9" },
          { "f3,8;f8", "top_k=2 n_group=3", INVALID, "expected n_group to divide 8 experts" },
          { "f3,8;f8", "top_k=2 n_group=4 topk_group=5", INVALID, "found 4, 5 and 2" },
          { "f3,8;f1", "top_k=2", SHAPE, "operand 1: expected [8], found f32[1]" },
          { "f3,8;f8;f8,256", "top_k=2", UNSUPPORTED, "operand 2, the weights of a projection" });
    CHECK("MaxpoolWithMask",
          { "f1,2,9;i1,1,9", "kernel_shape=3,3", INVALID,
            "kernel_shape: expected 1 numbers, found 2" },
          { "f1,2,9,9;i1,1,9,9", "kernel_shape=3,3 pads=3,0,0,0", INVALID, "fewer pads than that" },
          { "f1,2,9,9;i1,1,9,8", "kernel_shape=3,3", SHAPE,
            "operand 1: expected [1,1,9,9], found i32[1,1,9,8]" },
          { "f1,2,9,9;i1,2,9,9", "kernel_shape=3,3", UNSUPPORTED, "a mask of several channels" },
          { "f1,2,2,2;i1,1,2,2", "kernel_shape=3,3", SHAPE,
            "expected a window of at most 2 places, found 3" });
    CHECK("ConvTransposeWithDynamicPads", { "f1,2,5,5;f2,3,3,3", "", INVALID, "lacks operand 2" },
          { "f1,2,5,5;f2,3,3,3;l3", "", SHAPE, "operand 2: expected [4], found i64[3]" },
          { "f1,2,5,5;f2,3,3,3;l4", "", UNSUPPORTED, "pads that are not known" });
}

Test(onnx_contrib_wrong, ngrams)
{
    static const char two[] = "pad_id=0 n_head_per_ngram=2 max_ngram_size=3";
    CHECK(
        "NGramHashMapping", { "l2,7;l3;l3", two, SHAPE, "operand 2: expected [4], found i64[3]" },
        { "l2,7;l3;l4;l2,3", two, SHAPE, "operand 3: expected [2,2], found i64[2,3]" },
        { "l2,7;l3;l4;;;l", two, UNSUPPORTED, "operand 5, which ends segments" },
        { "l2,7;l3;l4", "pad_id=0 n_head_per_ngram=2 max_ngram_size=1", INVALID, "found 1 and 2" });
}

Test(onnx_contrib_wrong, inverse)
{
    CHECK("Inverse", { "f2,3", "", SHAPE, "operand 0: expected [3,3], found f32[2,3]" },
          { "f4", "", SHAPE, "operand 0: expected rank 2 to" },
          { "f33,33", "", UNSUPPORTED, "matrices of order 33" },
          { "fN,N", "", UNSUPPORTED, "matrices of order -1" });
}

Test(onnx_contrib_wrong, tokens_of_strings)
{
    CHECK("Tokenizer",
          { "s3", "mark=0 mincharnum=1 pad_value=p", INVALID,
            "expected 'separators' or 'tokenexp', found neither" },
          { "s3", "mark=0 mincharnum=1 tokenexp=a", INVALID, "lacks the attribute 'pad_value'" },
          { "s3", "mark=0 mincharnum=0 pad_value=p tokenexp=a", INVALID,
            "mincharnum: expected 1 or more, found 0" },
          { "s3", "mark=0 mincharnum=1 pad_value=p tokenexp=a(", INVALID, "tokenexp: byte 2" },
          { "s3,1,1", "mark=0 mincharnum=1 pad_value=p tokenexp=a", SHAPE, "operand 0" });
    CHECK("MurmurHash3", { "s3", "seed=1", UNSUPPORTED, "elements of type string" },
          { "u3", "seed=1", UNSUPPORTED, "elements of type u8" },
          { "f3", "positive=2", INVALID, "positive: expected 0 or 1, found 2" });
}

Test(onnx_contrib_wrong, on_graphics_cards)
{
    CHECK("SwiGLU", { "f2,5", "limit=1.0", SHAPE, "two halves along the last dim, found 5" },
          { "f2,N", "limit=1.0", UNSUPPORTED, "a last dim that is not known" });
    CHECK(
        "RouterGateUpProj",
        { "f2,4;f4,8", "router_size=3", INVALID, "of 8 columns that two halves are left, found 3" },
        { "f2,4;f4,8", "router_size=0", INVALID, "found 0" },
        { "f2,4;f4,8", "router_size=2 activation=gelu", UNSUPPORTED, "activation=gelu" });
    CHECK("FusedMatMulActivation",
          { "f2,4;f4,8", "activation=Softmax", UNSUPPORTED, "activation Softmax" });
    CHECK("ComplexMul", { "f2,3;f2,2", "", SHAPE, "operand 0: expected a last dim of 2, found 3" },
          { "f;f2,2", "", SHAPE, "operand 0: expected rank 1 to 8" });
    CHECK("Rfft", { "f2,8", "onesided=0", UNSUPPORTED, "onesided=0" },
          { "f2,8", "signal_ndim=2", UNSUPPORTED, "signal_ndim=2" });
    CHECK("Irfft", { "f2,5,2", "onesided=1", INVALID, "lacks the attribute 'signal_ndim'" });
    CHECK("IsAllFinite", { "f2", "isinf_only=1 isnan_only=1", INVALID, "found both" },
          { "f2", "isinf_only=2", INVALID, "isinf_only: expected 0 or 1, found 2" });
    CHECK("BiasDropout", { "f2;f2;;;b", "seed=1", UNSUPPORTED, "training" });
    CHECK("MulInteger", { "u2;u3;u2", "", SHAPE, "operand 1: expected [1], found u8[3]" });
    CHECK("TorchEmbedding", { "f2,3,4;l2", "", SHAPE, "operand 0: expected rank 2" });
    CHECK("RestorePadding", { "f2,3;i6", "", SHAPE, "operand 1: expected rank 2" });
}
