/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs of quantized values: as text, for that is how types are stated. */
#include "tests/random/random_graph.h"

#include "graph/text/text.h"

#include <string.h>

enum {
    STEPS = 24,
    SHOWN = 6, /* of the last values, that are results */
};

static const char *const types[] = { "i8", "u8", "i8", "i16", "u8", "i8", "i8" };
static const char *const quants[] = {
    "q(0.1,3)", "q(0.1,128)", "q(0.05,-128)", "q(0.001,-7)", "q(0.2,0)", "q(0.1,3)", "q(0.3,-5)",
};

enum {
    FLOAT = G_N_ELEMENTS(types) /* the type of a value beside the quantized ones */
};

typedef struct {
    uint64_t state;
    GString *text;
    int type[STEPS + 8]; /* of the value %v<i> */
    int n;
} Generator;

static int
below(Generator *g, int n)
{
    g->state = g->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((g->state >> 33) % (uint64_t)n);
}

/* A value of reals or of stored integers; the last ones more often. -1: there is none. */
static int
pick(Generator *g, bool real)
{
    for (int tries = 0; tries < 20; tries++) {
        int i = MAX(below(g, g->n), below(g, g->n));
        if ((g->type[i] == FLOAT) == real)
            return i;
    }
    return -1;
}

static void
print_type(Generator *g, int type)
{
    if (type == FLOAT)
        g_string_append(g->text, " : f32[1,1,4,4]\n");
    else
        g_string_append_printf(g->text, " : %s[1,1,4,4] %s\n", types[type], quants[type]);
}

/* %v<n> = op(%v<a>[, %v<b>]) rest : type */
static void
add(Generator *g, const char *op, int a, int b, const char *rest, int type)
{
    if (a < 0)
        return;
    g_string_append_printf(g->text, "  %%v%d = %s(%%v%d", g->n, op, a);
    if (b >= 0)
        g_string_append_printf(g->text, ", %%v%d", b);
    g_string_append_printf(g->text, "%s", rest);
    print_type(g, type);
    g->type[g->n++] = type;
}

/* Two halves of a concat of rows, joined and cut again. */
static void
add_concat(Generator *g, int a, int b, int type)
{
    if (a < 0 || b < 0)
        return;
    const char *dtype = type == FLOAT ? "f32" : types[type];
    const char *quant = type == FLOAT ? "" : quants[type];
    g_string_append_printf(g->text, "  %%c%d = concat(%%v%d, %%v%d) {axis=2} : %s[1,1,8,4] %s\n",
                           g->n, a, b, dtype, quant);
    g_string_append_printf(g->text, "  %%v%d = slice(%%c%d, %%two, %%six, %%two)", g->n, g->n);
    print_type(g, type);
    g->type[g->n++] = type;
}

/* A concat of another type in a concat, cut where both of its parts and the third meet. */
static void
add_nested_concat(Generator *g, int type)
{
    int a = pick(g, false), b = pick(g, false), c = pick(g, false), middle = below(g, FLOAT);
    if (a < 0 || b < 0 || c < 0)
        return;
    g_string_append_printf(g->text, "  %%m%d = concat(%%v%d, %%v%d) {axis=2} : %s[1,1,8,4] %s\n",
                           g->n, a, b, types[middle], quants[middle]);
    g_string_append_printf(g->text, "  %%c%d = concat(%%m%d, %%v%d) {axis=2} : %s[1,1,12,4] %s\n",
                           g->n, g->n, c, types[type], quants[type]);
    g_string_append_printf(g->text, "  %%v%d = slice(%%c%d, %%six, %%ten, %%two)", g->n, g->n);
    print_type(g, type);
    g->type[g->n++] = type;
}

/* Values that are reshaped, joined to a value of @type and cut again. */
static void
add_reshaped_concat(Generator *g, int type)
{
    int parts[] = { pick(g, false), pick(g, false) };
    if (parts[0] < 0 || parts[1] < 0)
        return;
    for (int i = 0; i < 2; i++)
        g_string_append_printf(g->text, "  %%p%d_%d = reshape(%%v%d, %%matrix) : %s[4,4] %s\n",
                               g->n, i, parts[i], types[g->type[parts[i]]],
                               quants[g->type[parts[i]]]);
    g_string_append_printf(g->text, "  %%c%d = concat(%%p%d_0, %%p%d_1) {axis=0} : %s[8,4] %s\n",
                           g->n, g->n, g->n, types[type], quants[type]);
    g_string_append_printf(g->text, "  %%s%d = slice(%%c%d, %%two, %%six, %%zero) : %s[4,4] %s\n",
                           g->n, g->n, types[type], quants[type]);
    g_string_append_printf(g->text, "  %%v%d = reshape(%%s%d, %%image)", g->n, g->n);
    print_type(g, type);
    g->type[g->n++] = type;
}

/* A border of real zeros, half of which is cut off. */
static void
add_padded(Generator *g, int a)
{
    if (a < 0)
        return;
    const int type = g->type[a];
    g_string_append_printf(g->text, "  %%p%d = pad(%%v%d, %%border) : %s[1,1,8,4] %s\n", g->n, a,
                           types[type], quants[type]);
    g_string_append_printf(g->text, "  %%v%d = slice(%%p%d, %%two, %%six, %%two)", g->n, g->n);
    print_type(g, type);
    g->type[g->n++] = type;
}

/* What rules look for: conversions of one kind and one type around what is joined or chosen. */
static void
add_idiom(Generator *g, int type)
{
    int first = g->n, a = pick(g, false), r = pick(g, true);
    switch (below(g, 4)) {
    case 0: /* a maximum of values of one type, rescaled */
        add(g, "rescale_quantized", a, -1, ")", type);
        add(g, "rescale_quantized", pick(g, false), -1, ")", type);
        add(g, "max", g->n - first == 2 ? first : -1, first + 1, ")", type);
        add(g, "rescale_quantized", g->n - first == 3 ? first + 2 : -1, -1, ")", below(g, FLOAT));
        break;
    case 1: /* reals of one type, joined */
        add(g, "rescale_quantized", a, -1, ")", type);
        add(g, "dequantize_linear", a < 0 ? -1 : first, -1, ")", FLOAT);
        add(g, "dequantize_linear", a < 0 ? -1 : first, -1, ")", FLOAT);
        add_concat(g, a < 0 ? -1 : first + 1, first + 2, FLOAT);
        break;
    case 2: /* quantized parts, joined */
        add(g, "quantize_linear", r, -1, ")", type);
        add(g, "quantize_linear", pick(g, true), -1, ")", type);
        add_concat(g, g->n - first == 2 ? first : -1, first + 1, type);
        break;
    default: /* an activation of stored integers that may do nothing */
        add(g, "relu", a, -1, ")", a < 0 ? type : g->type[a]);
    }
}

static void
add_quantized(Generator *g, int type)
{
    static const char *const binary[] = { "add", "sub", "mul", "div", "min", "max", "max" };
    static const char *const unary[] = { "relu", "rescale_quantized", "rescale_quantized",
                                         "sigmoid" };
    int a = pick(g, false), b = pick(g, false), same = a < 0 ? FLOAT : g->type[a];
    switch (below(g, 11)) {
    case 0:
    case 1:
        add(g, unary[below(g, G_N_ELEMENTS(unary))], a, -1, ")", type);
        break;
    case 2:
    case 3:
        add(g, binary[below(g, G_N_ELEMENTS(binary))], a, b, ")", below(g, 2) ? same : type);
        break;
    case 4:
        add(g, "transpose", a, -1, ") {perm=[0,1,3,2]}", same);
        break;
    case 5:
        add(g, "max_pool", a, -1, ") {kernel_shape=[3,3], pads=[1,1,1,1]}", same);
        break;
    case 6:
        add(g, "average_pool", a, -1, ") {kernel_shape=[3,3], pads=[1,1,1,1]}", type);
        break;
    case 7:
        add_nested_concat(g, type);
        break;
    case 8:
        add_reshaped_concat(g, type);
        break;
    case 9:
        add_padded(g, a);
        break;
    default:
        add_concat(g, a, b, type);
    }
}

static void
add_step(Generator *g)
{
    int type = below(g, FLOAT);
    switch (below(g, 12)) {
    case 0:
    case 1:
        add(g, "quantize_linear", pick(g, true), -1, ")", type);
        break;
    case 2:
    case 3:
        add(g, "dequantize_linear", pick(g, false), -1, ")", FLOAT);
        break;
    case 4:
        add(g, below(g, 2) ? "relu" : "tanh", pick(g, true), -1, ")", FLOAT);
        break;
    case 5:
        add(g, "clip", pick(g, true), -1, ", %lo, %hi)", FLOAT);
        break;
    case 6:
        add_concat(g, pick(g, true), pick(g, true), FLOAT);
        break;
    case 7:
    case 8:
    case 9:
        add_idiom(g, type);
        break;
    default:
        add_quantized(g, type);
    }
}

char *
random_quantized_text(uint64_t seed)
{
    Generator g = { .state = seed * 77 + 1, .text = g_string_new("graph @f(%v0: f32[1,1,4,4]") };
    g.type[g.n++] = FLOAT;
    for (; g.n < 4; g.n++) {
        g.type[g.n] = below(&g, FLOAT);
        g_string_append_printf(g.text, ", %%v%d: %s[1,1,4,4] %s in [%s)", g.n, types[g.type[g.n]],
                               quants[g.type[g.n]],
                               types[g.type[g.n]][0] == 'u' ? "0,256" : "-128,128");
    }
    g_string_append(g.text, ") {\n  %lo = const @lo : f32[]\n  %hi = const @hi : f32[]\n"
                            "  %two = const @two : i64[1]\n  %six = const @six : i64[1]\n"
                            "  %zero = const @zero : i64[1]\n  %ten = const @ten : i64[1]\n"
                            "  %matrix = const @matrix : i64[2]\n"
                            "  %image = const @image : i64[4]\n"
                            "  %border = const @border : i64[8]\n");
    int literal = below(&g, FLOAT);
    g_string_append_printf(g.text, "  %%v%d = const @q", g.n);
    print_type(&g, literal);
    g.type[g.n++] = literal;
    while (g.n < STEPS)
        add_step(&g);
    g_string_append(g.text, "  return ");
    for (int i = g.n - SHOWN; i < g.n; i++)
        g_string_append_printf(g.text, i + 1 < g.n ? "%%v%d, " : "%%v%d\n}\n", i);
    g_string_append(g.text, "constants {\n  @lo = [-12.8] : f32[]\n  @hi = [1] : f32[]\n"
                            "  @two = [2] : i64[1]\n  @six = [6] : i64[1]\n"
                            "  @zero = [0] : i64[1]\n  @ten = [10] : i64[1]\n"
                            "  @matrix = [4, 4] : i64[2]\n  @image = [1, 1, 4, 4] : i64[4]\n"
                            "  @border = [0, 0, 2, 0, 0, 0, 2, 0] : i64[8]\n  @q = splat(0)");
    print_type(&g, literal);
    g_string_append(g.text, "}\n");
    return g_string_free(g.text, FALSE);
}

KilnModule *
random_quantized_graph(uint64_t seed)
{
    g_autofree char *text = random_quantized_text(seed);
    g_autoptr(GError) error = NULL;
    KilnModule *module = kiln_module_parse(text, strlen(text), "random", &error);
    if (!module)
        g_error("%s\n%s", error->message, text); /* the text is ours */
    return module;
}
