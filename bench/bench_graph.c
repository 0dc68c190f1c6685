/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs put together from blocks. Every block reads f32[1,8,4,4] and ends with %r{i} of that type;
 * beside it stand its constants. Work per element does not matter here, so that tensors are small.
 */
#include "bench/bench_graph.h"

#include "bench/bench_blocks.h"
#include "graph/text/text.h"

static const BenchBlock blocks[] = {
    /* convolution, normalization, activation */
    { "%w{i} = const @w{i}\n%s{i} = const @s{i}\n%b{i} = const @b{i}\n%m{i} = const @m{i}\n"
      "%v{i} = const @v{i}\n%c{i} = conv({x}, %w{i})\n"
      "%n{i} = batch_normalization(%c{i}, %s{i}, %b{i}, %m{i}, %v{i})\n%r{i} = relu(%n{i})\n",
      "@w{i} = random_normal(seed={i}, std=0.3) : f32[8,8,1,1]\n"
      "@s{i} = random_uniform(seed={i}, low=0.5, high=1.5) : f32[8]\n@b{i} = splat(0.5) : f32[8]\n"
      "@m{i} = random_normal(seed={i}, std=1) : f32[8]\n@v{i} = splat(1) : f32[8]\n" },
    /* a padded convolution with a bias and a residual */
    { "%w{i} = const @w{i}\n%p{i} = const @pads\n%q{i} = pad({x}, %p{i})\n%b{i} = const @b{i}\n"
      "%c{i} = conv(%q{i}, %w{i}, %b{i})\n%a{i} = add(%c{i}, {y})\n%r{i} = relu(%a{i})\n",
      "@w{i} = random_normal(seed={i}, std=0.1) : f32[8,8,3,3]\n"
      "@b{i} = random_normal(seed={i}, std=1) : f32[8]\n" },
    /* layouts there and back */
    { "%t{i} = transpose({x}) {perm=[0,2,3,1]}\n%a{i} = relu(%t{i})\n%b{i} = sigmoid(%a{i})\n"
      "%r{i} = transpose(%b{i}) {perm=[0,3,1,2]}\n",
      "" },
    /* channels split, changed and put together again */
    { "%k{i} = const @zero1\n%l{i} = const @four1\n%m{i} = const @eight1\n%o{i} = const @one1\n"
      "%a{i} = slice({x}, %k{i}, %l{i}, %o{i}, %o{i})\n"
      "%b{i} = slice({x}, %l{i}, %m{i}, %o{i}, %o{i})\n%c{i} = relu(%a{i})\n"
      "%r{i} = concat(%b{i}, %c{i}) {axis=1}\n",
      "" },
    /* slices that are put together as they were, a concat of concats */
    { "%a{i}, %b{i} = split({x}) {axis=1, num_outputs=2}\n"
      "%c{i} = concat(%a{i}, %b{i}) {axis=1}\n%d{i} = concat(%c{i}, {y}) {axis=2}\n"
      "%e{i} = concat(%d{i}, %c{i}) {axis=2}\n%k{i} = const @zero1\n%l{i} = const @four1\n"
      "%m{i} = const @two1\n%r{i} = slice(%e{i}, %k{i}, %l{i}, %m{i})\n",
      "" },
    /* arithmetic with constants */
    { "%o{i} = const @one\n%z{i} = const @zero\n%k{i} = const @k{i}\n%a{i} = mul({x}, %o{i})\n"
      "%b{i} = add(%z{i}, %a{i})\n%c{i} = mul(%k{i}, %b{i})\n%d{i} = add(%c{i}, %k{i})\n"
      "%e{i} = sub(%d{i}, %o{i})\n%r{i} = div(%e{i}, %k{i})\n",
      "@k{i} = splat(1.5) : f32[]\n" },
    /* a decomposed layer normalization */
    { "%t{i} = const @two\n%e{i} = const @eps\n%g{i} = const @g{i}\n%h{i} = const @h{i}\n"
      "%x{i} = const @last\n%m{i} = reduce_mean({x}, %x{i})\n%d{i} = sub({x}, %m{i})\n"
      "%p{i} = pow(%d{i}, %t{i})\n%v{i} = reduce_mean(%p{i}, %x{i})\n%a{i} = add(%v{i}, %e{i})\n"
      "%s{i} = sqrt(%a{i})\n%n{i} = div(%d{i}, %s{i})\n%y{i} = mul(%n{i}, %g{i})\n"
      "%r{i} = add(%y{i}, %h{i})\n",
      "@g{i} = random_normal(seed={i}, std=1) : f32[4]\n"
      "@h{i} = random_normal(seed={i}, std=1) : f32[4]\n" },
    /* a decomposed gelu */
    { "%q{i} = const @sqrt2\n%o{i} = const @one\n%h{i} = const @half\n%a{i} = div({x}, %q{i})\n"
      "%b{i} = erf(%a{i})\n%c{i} = add(%b{i}, %o{i})\n%d{i} = mul({x}, %c{i})\n"
      "%r{i} = mul(%d{i}, %h{i})\n",
      "" },
    /* a decomposed softmax, silu and hard swish */
    { "%x{i} = const @last\n%e{i} = exp({x})\n%s{i} = reduce_sum(%e{i}, %x{i})\n"
      "%d{i} = div(%e{i}, %s{i})\n%g{i} = sigmoid(%d{i})\n%u{i} = mul(%d{i}, %g{i})\n"
      "%h{i} = hard_sigmoid(%u{i})\n%r{i} = mul(%h{i}, %u{i})\n",
      "" },
    /* arithmetic on shapes */
    { "%s{i} = shape({x})\n%k{i} = const @zero1\n%l{i} = const @one1\n%a{i} = gather(%s{i}, "
      "%k{i})\n"
      "%b{i} = gather(%s{i}, %l{i})\n%f{i} = const @minus1\n"
      "%t{i} = concat(%a{i}, %b{i}, %f{i}) {axis=0}\n%u{i} = reshape({x}, %t{i})\n"
      "%v{i} = relu(%u{i})\n%r{i} = reshape(%v{i}, %s{i})\n",
      "" },
    /* one value, several readers; the same computed twice; something that nothing reads */
    { "%a{i} = tanh({x})\n%b{i} = tanh({x})\n%c{i} = mul(%a{i}, %b{i})\n%d{i} = add({y}, %a{i})\n"
      "%u{i} = exp(%d{i})\n%r{i} = add(%c{i}, %d{i})\n",
      "" },
    /* clips and activations on top of each other */
    { "%k{i} = const @minus_one\n%l{i} = const @six\n%z{i} = const @zero\n"
      "%a{i} = clip({x}, %k{i}, %l{i})\n%b{i} = relu(%a{i})\n%c{i} = max(%b{i}, %z{i})\n"
      "%d{i} = min(%c{i}, %l{i})\n%r{i} = clip(%d{i}, %z{i}, %l{i})\n",
      "" },
    /* quantized and back */
    { "%s{i} = const @scale\n%z{i} = const @zero_point\n%a{i} = quantize_linear({x}, %s{i}, "
      "%z{i})\n"
      "%b{i} = dequantize_linear(%a{i}, %s{i}, %z{i})\n%c{i} = relu(%b{i})\n"
      "%d{i} = quantize_linear(%c{i}, %s{i}, %z{i})\n"
      "%r{i} = dequantize_linear(%d{i}, %s{i}, %z{i})\n",
      "" },
    /* products with a common operand, and their biases */
    { "%u{i} = const @u{i}\n%v{i} = const @v{i}\n%a{i} = matmul({x}, %u{i})\n"
      "%b{i} = matmul({x}, %v{i})\n%h{i} = const @h{i}\n%c{i} = add(%a{i}, %h{i})\n"
      "%r{i} = sub(%c{i}, %b{i})\n",
      "@u{i} = random_normal(seed={i}, std=0.5) : f32[4,4]\n"
      "@v{i} = random_uniform(seed={i}, low=-1, high=1) : f32[4,4]\n@h{i} = splat(0.25) : "
      "f32[4]\n" },
    /* squeeze and excitation */
    { "%x{i} = const @spatial\n%m{i} = reduce_mean({x}, %x{i})\n%w{i} = const @w{i}\n"
      "%c{i} = conv(%m{i}, %w{i})\n%g{i} = sigmoid(%c{i})\n%r{i} = mul({x}, %g{i})\n",
      "@w{i} = random_normal(seed={i}, std=0.3) : f32[8,8,1,1]\n" },
    /* identities, casts and views in a row */
    { "%a{i} = identity({x})\n%b{i} = cast(%a{i}) {to=f32}\n%k{i} = const @zero1\n"
      "%u{i} = squeeze(%b{i}, %k{i})\n%v{i} = unsqueeze(%u{i}, %k{i})\n"
      "%f{i} = flatten(%v{i}) {axis=2}\n%s{i} = const @shape\n%r{i} = reshape(%f{i}, %s{i})\n",
      "" },
    /* an activation above a pool, a channel shuffle */
    { "%a{i} = relu({x})\n"
      "%p{i} = max_pool(%a{i}) {kernel_shape=[3,3], pads=[1,1,1,1], strides=[1,1]}\n"
      "%g{i} = const @grouped\n%s{i} = const @shape\n%u{i} = reshape(%p{i}, %g{i})\n"
      "%t{i} = transpose(%u{i}) {perm=[0,2,1,3,4]}\n%r{i} = reshape(%t{i}, %s{i})\n",
      "" },
};

static const char shared_constants[] = //
    "@pads = [0, 0, 1, 1, 0, 0, 1, 1] : i64[8]\n@zero1 = [0] : i64[1]\n@one1 = [1] : i64[1]\n"
    "@two1 = [2] : i64[1]\n@four1 = [4] : i64[1]\n@eight1 = [8] : i64[1]\n@minus1 = [-1] : i64[1]\n"
    "@last = [-1] : i64[1]\n@spatial = [2, 3] : i64[2]\n@shape = [1, 8, 4, 4] : i64[4]\n"
    "@grouped = [1, 2, 4, 4, 4] : i64[5]\n@one = splat(1) : f32[]\n@zero = splat(0) : f32[]\n"
    "@two = splat(2) : f32[]\n@half = splat(0.5) : f32[]\n@six = splat(6) : f32[]\n"
    "@minus_one = splat(-1) : f32[]\n@eps = splat(0.00001) : f32[]\n"
    "@sqrt2 = splat(1.4142135) : f32[]\n@scale = splat(0.05) : f32[]\n@zero_point = [3] : i8[]\n";

KilnModule *
bench_graph(unsigned nodes, uint64_t seed, GError **error)
{
    BenchBuilder builder;
    bench_builder_init(&builder, blocks, G_N_ELEMENTS(blocks), seed, "%in");
    g_autoptr(GString) text = g_string_new("graph @synthetic(");
    for (int i = 0; i < BENCH_LIVE; i++)
        g_string_append_printf(text, "%s%s: f32[1,8,4,4]", i ? ", " : "", builder.live[i]);
    g_string_append(text, ") {\n");
    while (builder.body_lines < nodes)
        bench_builder_add(&builder);
    g_string_append(text, builder.body->str);
    g_string_append(text, "return");
    for (int i = 0; i < BENCH_LIVE; i++)
        g_string_append_printf(text, "%s %s as y%d", i ? "," : "", builder.live[i], i);
    g_string_append_printf(text, "\n}\nconstants {\n%s%s}\n", shared_constants,
                           builder.beside->str);
    bench_builder_clear(&builder);
    return kiln_module_parse(text->str, text->len, "synthetic", error);
}
