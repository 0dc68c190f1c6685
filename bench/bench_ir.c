/* SPDX-License-Identifier: Apache-2.0 */
/* IR put together from blocks. Every block reads f32[1,8,4,4] and ends with %r{i} of that type;
 * beside it stand the deallocations of its buffers, which come last of all. */
#include "bench/bench_ir.h"

#include "bench/bench_blocks.h"

static const BenchBlock blocks[] = {
    /* convolution and activation */
    { "%c{i} = alloc : f32[1,8,4,4]\nconv @out %c{i}, @in {x}, @in @w1\n"
      "%r{i} = alloc : f32[1,8,4,4]\nrelu @out %r{i}, @in %c{i}\n",
      "dealloc %c{i}\ndealloc %r{i}\n" },
    /* a residual */
    { "%c{i} = alloc : f32[1,8,4,4]\n"
      "conv @out %c{i}, @in {x}, @in @w3, @in @b {pads=[1,1,1,1]}\n"
      "%a{i} = alloc : f32[1,8,4,4]\nadd @out %a{i}, @in %c{i}, @in {y}\n"
      "%r{i} = alloc : f32[1,8,4,4]\nrelu @out %r{i}, @in %a{i}\n",
      "dealloc %c{i}\ndealloc %a{i}\ndealloc %r{i}\n" },
    /* a dense block */
    { "%k{i} = alloc : f32[1,16,4,4]\nconcat @out %k{i}, @in {x}, @in {y} {axis=1}\n"
      "%c{i} = alloc : f32[1,8,4,4]\nconv @out %c{i}, @in %k{i}, @in @w2\n"
      "%d{i} = alloc : f32[1,16,4,4]\nconcat @out %d{i}, @in %c{i}, @in {x} {axis=1}\n"
      "%r{i} = alloc : f32[1,8,4,4]\nconv @out %r{i}, @in %d{i}, @in @w2\n",
      "dealloc %k{i}\ndealloc %c{i}\ndealloc %d{i}\ndealloc %r{i}\n" },
    /* channels split, changed and put together again */
    { "%a{i} = alloc : f32[1,4,4,4]\n"
      "slice @out %a{i}, @in {x} {starts=[0,0,0,0], steps=[1,1,1,1]}\n"
      "%b{i} = alloc : f32[1,4,4,4]\n"
      "slice @out %b{i}, @in {x} {starts=[0,4,0,0], steps=[1,1,1,1]}\n"
      "%c{i} = alloc : f32[1,4,4,4]\nrelu @out %c{i}, @in %a{i}\n"
      "%r{i} = alloc : f32[1,8,4,4]\nconcat @out %r{i}, @in %b{i}, @in %c{i} {axis=1}\n",
      "dealloc %a{i}\ndealloc %b{i}\ndealloc %c{i}\ndealloc %r{i}\n" },
    /* branches that meet */
    { "%a{i} = alloc : f32[1,8,4,4]\nconv @out %a{i}, @in {x}, @in @w1\n"
      "%b{i} = alloc : f32[1,8,4,4]\nconv @out %b{i}, @in {x}, @in @w3 {pads=[1,1,1,1]}\n"
      "%c{i} = alloc : f32[1,8,4,4]\n"
      "max_pool @out %c{i}, @in {x} {kernel_shape=[3,3], pads=[1,1,1,1], strides=[1,1]}\n"
      "%d{i} = alloc : f32[1,8,4,4]\nadd @out %d{i}, @in %a{i}, @in %b{i}\n"
      "%r{i} = alloc : f32[1,8,4,4]\nadd @out %r{i}, @in %d{i}, @in %c{i}\n",
      "dealloc %a{i}\ndealloc %b{i}\ndealloc %c{i}\ndealloc %d{i}\ndealloc %r{i}\n" },
    /* arithmetic, element by element */
    { "%a{i} = alloc : f32[1,8,4,4]\nmul @out %a{i}, @in {x}, @in @s\n"
      "%b{i} = alloc : f32[1,8,4,4]\nadd @out %b{i}, @in %a{i}, @in {y}\n"
      "%c{i} = alloc : f32[1,8,4,4]\ntanh @out %c{i}, @in %b{i}\n"
      "%d{i} = alloc : f32[1,8,4,4]\nsigmoid @out %d{i}, @in %b{i}\n"
      "%r{i} = alloc : f32[1,8,4,4]\nmul @out %r{i}, @in %c{i}, @in %d{i}\n",
      "dealloc %a{i}\ndealloc %b{i}\ndealloc %c{i}\ndealloc %d{i}\ndealloc %r{i}\n" },
    /* layouts there and back */
    { "%t{i} = alloc : f32[1,4,4,8]\ntranspose @out %t{i}, @in {x} {perm=[0,2,3,1]}\n"
      "%a{i} = alloc : f32[1,4,4,8]\nsigmoid @out %a{i}, @in %t{i}\n"
      "%r{i} = alloc : f32[1,8,4,4]\ntranspose @out %r{i}, @in %a{i} {perm=[0,3,1,2]}\n",
      "dealloc %t{i}\ndealloc %a{i}\ndealloc %r{i}\n" },
    /* views and a copy */
    { "%u{i} = view {x} : f32[8,16]\n%s{i} = alloc : f32[8,16]\n"
      "softmax @out %s{i}, @in %u{i}\n%v{i} = view %s{i} : f32[1,8,4,4]\n"
      "%r{i} = alloc : f32[1,8,4,4]\ncopy @out %r{i}, @in %v{i}\n",
      "dealloc %s{i}\ndealloc %r{i}\n" },
};

static const char weights[] = "weight @w1 : f32[8,8,1,1] const\nweight @w2 : f32[8,16,1,1] const\n"
                              "weight @w3 : f32[8,8,3,3] const\nweight @b : f32[8] const\n"
                              "weight @s : f32[] const\n";
static const char constants[] = "constants {\n@w1 = random_normal(seed=1, std=0.3) : f32[8,8,1,1]\n"
                                "@w2 = random_normal(seed=2, std=0.2) : f32[8,16,1,1]\n"
                                "@w3 = random_normal(seed=3, std=0.1) : f32[8,8,3,3]\n"
                                "@b = splat(0.5) : f32[8]\n@s = splat(1.5) : f32[]\n}\n";

KilnIRModule *
bench_ir(unsigned instrs, uint64_t seed, GError **error)
{
    BenchBuilder builder;
    bench_builder_init(&builder, blocks, G_N_ELEMENTS(blocks), seed, "@in");
    g_autoptr(GString) text = g_string_new("func @synthetic {\n");
    g_string_append(text, weights);
    for (int i = 0; i < BENCH_LIVE; i++)
        g_string_append_printf(text, "input %s : f32[1,8,4,4]\n", builder.live[i]);
    for (int i = 0; i < BENCH_LIVE; i++)
        g_string_append_printf(text, "output @y%d : f32[1,8,4,4]\n", i);
    while (builder.body_lines + builder.beside_lines + BENCH_LIVE < instrs)
        bench_builder_add(&builder);
    g_string_append(text, builder.body->str);
    for (int i = 0; i < BENCH_LIVE; i++)
        g_string_append_printf(text, "copy @out @y%d, @in %s\n", i, builder.live[i]);
    g_string_append_printf(text, "%s}\n%s", builder.beside->str, constants);
    bench_builder_clear(&builder);
    return kiln_ir_module_parse(text->str, text->len, "synthetic", error);
}
