/* SPDX-License-Identifier: Apache-2.0 */
/* Each shape is written as text. Element-wise operators of different constants are not equal to
 * each other, and `sin` has no rule, so that passes leave the shape what it is. */
#include "bench/bench_shapes.h"

#include "graph/text/text.h"

#include <string.h>

enum {
    NEST_DEPTH = 24, /* an exponential walk takes minutes at this depth */
};

typedef struct {
    GString *head, *body, *constants;
} Text;

static void
add_constant(Text *text, unsigned i)
{
    g_string_append_printf(text->body, "%%k%u = const @k%u\n", i, i);
    g_string_append_printf(text->constants, "@k%u = splat(%u.5) : f32[]\n", i, i + 1);
}

/* Adds pairs until one of the values v0 … is left, and returns that. */
static void
add_tree(Text *text, unsigned n)
{
    const char *of = "v";
    for (unsigned level = 0; n > 1; level++) {
        unsigned half = n / 2;
        g_autofree char *name = g_strdup_printf("t%u_", level);
        g_autofree char *from = level ? g_strdup_printf("t%u_", level - 1) : g_strdup(of);
        for (unsigned i = 0; i < half; i++)
            g_string_append_printf(text->body, "%%%s%u = add(%%%s%u, %%%s%u)\n", name, i, from,
                                   2 * i, from, 2 * i + 1);
        if (n % 2)
            g_string_append_printf(text->body, "%%%s%u = neg(%%%s%u)\n", name, half, from, n - 1);
        n = half + n % 2;
        if (n == 1)
            g_string_append_printf(text->body, "return %%%s0 as y\n", name);
    }
}

/* One value, read by all others. */
static void
write_fan_out(Text *text, unsigned nodes)
{
    unsigned n = MAX(nodes / 4, 2);
    g_string_append(text->head, "%x: f32[2,3]");
    g_string_append(text->body, "%u = sin(%x)\n");
    for (unsigned i = 0; i < n; i++) {
        add_constant(text, i);
        g_string_append_printf(text->body, "%%w%u = mul(%%u, %%k%u)\n%%v%u = sin(%%w%u)\n", i, i, i,
                               i);
    }
    g_string_append(text->body, "%y = concat(%v0");
    for (unsigned i = 1; i < n; i++)
        g_string_append_printf(text->body, ", %%v%u", i);
    g_string_append(text->body, ") {axis=0}\nreturn %y\n");
}

/* One value, read at every step of a chain. */
static void
write_fan_along(Text *text, unsigned nodes)
{
    g_string_append(text->head, "%x: f32[2,3]");
    g_string_append(text->body, "%v0 = sin(%x)\n");
    for (unsigned i = 1; i <= nodes / 2; i++)
        g_string_append_printf(text->body, "%%w%u = sin(%%v%u)\n%%v%u = add(%%w%u, %%x)\n", i,
                               i - 1, i, i);
    g_string_append_printf(text->body, "return %%v%u as y\n", nodes / 2);
}

/* A balanced tree of sums over leaves that all wait for it. */
static void
write_fan_in(Text *text, unsigned nodes)
{
    unsigned n = MAX(nodes / 4, 2);
    g_string_append(text->head, "%x: f32[2,3]");
    for (unsigned i = 0; i < n; i++) {
        add_constant(text, i);
        g_string_append_printf(text->body, "%%v%u = mul(%%x, %%k%u)\n", i, i);
    }
    add_tree(text, n);
}

/* A chain, all of whose values are read again in reverse order. */
static void
write_long_lives(Text *text, unsigned nodes)
{
    unsigned n = MAX(nodes / 2, 1);
    g_string_append(text->head, "%v0: f32[2,3]");
    for (unsigned i = 1; i <= n; i++)
        g_string_append_printf(text->body, "%%v%u = sin(%%v%u)\n", i, i - 1);
    g_string_append_printf(text->body, "%%s%u = sin(%%v%u)\n", n, n);
    for (unsigned i = n; i-- > 0;)
        g_string_append_printf(text->body, "%%s%u = add(%%s%u, %%v%u)\n", i, i + 1, i);
    g_string_append(text->body, "return %s0 as y\n");
}

/* The same through matrix products, which no chain of element-wise operators takes in. */
static void
write_long_products(Text *text, unsigned nodes)
{
    unsigned n = MAX(nodes / 4, 1);
    g_string_append(text->head, "%v0: f32[4,4]");
    g_string_append(text->constants, "@w = random_normal(seed=1, std=0.1) : f32[4,4]\n");
    g_string_append(text->body, "%w = const @w\n");
    for (unsigned i = 1; i <= n; i++)
        g_string_append_printf(text->body, "%%m%u = matmul(%%v%u, %%w)\n%%v%u = softmax(%%m%u)\n",
                               i, i - 1, i, i);
    g_string_append_printf(text->body, "%%s%u = sin(%%v%u)\n", n, n);
    for (unsigned i = n; i-- > 0;)
        g_string_append_printf(text->body, "%%p%u = matmul(%%s%u, %%v%u)\n%%s%u = softmax(%%p%u)\n",
                               i, i + 1, i, i, i);
    g_string_append(text->body, "return %s0 as y\n");
}

/* All parts of a split are alive until a concat puts them together in reverse order. */
static void
write_split(Text *text, unsigned nodes)
{
    g_string_append_printf(text->head, "%%x: f32[%u,4]", nodes);
    for (unsigned i = 0; i < nodes; i++)
        g_string_append_printf(text->body, "%s%%v%u", i ? ", " : "", i);
    g_string_append_printf(text->body, " = split(%%x) {axis=0, num_outputs=%u}\n", nodes);
    for (unsigned i = 0; i < nodes; i++)
        g_string_append_printf(text->body, "%%u%u = sin(%%v%u)\n", i, i);
    for (unsigned i = nodes; i-- > 0;)
        g_string_append_printf(text->body, "%s%%u%u", i == nodes - 1 ? "%y = concat(" : ", ", i);
    g_string_append(text->body, ") {axis=0}\nreturn %y\n");
}

/* A chain, all of whose values skip to one concat at the end. */
static void
write_skips(Text *text, unsigned nodes)
{
    g_string_append(text->head, "%v0: f32[2,3]");
    for (unsigned i = 1; i <= nodes; i++)
        g_string_append_printf(text->body, "%%v%u = sin(%%v%u)\n", i, i - 1);
    for (unsigned i = 0; i <= nodes; i++)
        g_string_append_printf(text->body, "%s%%v%u", i ? ", " : "%y = concat(", i);
    g_string_append(text->body, ") {axis=1}\nreturn %y\n");
}

/* Every value is an output. */
static void
write_outputs(Text *text, unsigned nodes)
{
    g_string_append(text->head, "%v0: f32[2,3]");
    for (unsigned i = 1; i <= nodes; i++)
        g_string_append_printf(text->body, "%%v%u = sin(%%v%u)\n", i, i - 1);
    for (unsigned i = 1; i <= nodes; i++)
        g_string_append_printf(text->body, "%s%%v%u as y%u", i > 1 ? ", " : "return ", i, i);
    g_string_append_c(text->body, '\n');
}

static void
write_nest(Text *text, unsigned depth, unsigned i)
{
    if (depth == 0) {
        g_string_append_printf(text->body, "%%o%u_0 = sin(%%v%u)\n", i, i);
        return;
    }
    g_string_append_printf(text->body, "%%o%u_%u = if(%%c) then {\n", i, depth);
    write_nest(text, depth - 1, i);
    g_string_append_printf(text->body,
                           "return %%o%u_%u\n} else {\n%%e%u_%u = neg(%%v%u)\nreturn %%e%u_%u\n"
                           "} : f32[2,3]\n",
                           i, depth - 1, i, depth, i, i, depth);
}

/* Deep branches within branches, one such nest after the other. */
static void
write_nests(Text *text, unsigned nodes)
{
    unsigned n = MAX(nodes / (4 * NEST_DEPTH), 1);
    g_string_append(text->head, "%v0: f32[2,3], %c: bool[]");
    for (unsigned i = 0; i < n; i++) {
        write_nest(text, NEST_DEPTH, i);
        g_string_append_printf(text->body, "%%v%u = sin(%%o%u_%d)\n", i + 1, i, NEST_DEPTH);
    }
    g_string_append_printf(text->body, "return %%v%u as y\n", n);
}

/* The nodes of one branch: a fan, and a chain that reads it. */
static void
write_branch(Text *text, unsigned n, const char *last)
{
    g_string_append(text->body, "%s0 = sin(%x)\n");
    for (unsigned i = 0; i < n; i++)
        g_string_append_printf(text->body, "%%w%u = mul(%%x, %%k%u)\n%%s%u = add(%%s%u, %%w%u)\n",
                               i, i, i + 1, i, i);
    g_string_append_printf(text->body, "%%r = %s(%%s%u)\nreturn %%r\n", last, n);
}

/* Two branches, all of whose nodes but the last are equal. */
static void
write_branches(Text *text, unsigned nodes)
{
    unsigned n = MAX(nodes / 5, 1);
    g_string_append(text->head, "%x: f32[2,3], %c: bool[]");
    for (unsigned i = 0; i < n; i++)
        add_constant(text, i);
    g_string_append(text->body, "%y = if(%c) then {\n");
    write_branch(text, n, "sin");
    g_string_append(text->body, "} else {\n");
    write_branch(text, n, "neg");
    g_string_append(text->body, "} : f32[2,3]\nreturn %y\n");
}

/* A loop that carries many values, all but one of which it hands on as it got them. */
static void
write_carried(Text *text, unsigned nodes)
{
    unsigned n = MAX(nodes / 3, 2);
    g_string_append(text->head, "%n: i64[], %x: f32[2,3]");
    for (unsigned i = 0; i < n; i++) {
        add_constant(text, i);
        g_string_append_printf(text->body, "%%v%u = mul(%%x, %%k%u)\n", i, i);
    }
    for (unsigned i = 0; i < n; i++)
        g_string_append_printf(text->body, "%s%%y%u", i ? ", " : "", i);
    g_string_append(text->body, " = loop(%n, _");
    for (unsigned i = 0; i < n; i++)
        g_string_append_printf(text->body, ", %%v%u", i);
    g_string_append(text->body, ") body(%i: i64[], %go: bool[]");
    for (unsigned i = 0; i < n; i++)
        g_string_append_printf(text->body, ", %%a%u: f32[2,3]", i);
    g_string_append(text->body, ") {\n%s0 = sin(%a0)\n");
    for (unsigned i = 1; i < n; i++)
        g_string_append_printf(text->body, "%%s%u = add(%%s%u, %%a%u)\n", i, i - 1, i);
    g_string_append_printf(text->body, "return %%go, %%s%u", n - 1);
    for (unsigned i = 1; i < n; i++)
        g_string_append_printf(text->body, ", %%a%u", i);
    g_string_append(text->body, "\n} : f32[2,3]");
    for (unsigned i = 1; i < n; i++)
        g_string_append(text->body, ", f32[2,3]");
    g_string_append(text->body, "\nreturn %y0 as y\n");
}

static const struct {
    const char *name, *summary;
    void (*write)(Text *text, unsigned nodes);
    bool graph_only;
} shapes[] = {
    { "fan-out", "one value that all other nodes read", write_fan_out, false },
    { "fan-along", "one value that every step of a chain reads", write_fan_along, false },
    { "fan-in", "a balanced tree of sums over many leaves", write_fan_in, false },
    { "long-lives", "a chain whose values are all read again in reverse order", write_long_lives,
      false },
    { "long-products", "the same chain through matrix products and softmax", write_long_products,
      false },
    { "split", "a split whose parts all live until a concat", write_split, false },
    { "skips", "a chain whose values are all read by one concat at the end", write_skips, false },
    { "outputs", "a chain whose values are all outputs", write_outputs, false },
    { "nests", "branches within branches, 24 deep", write_nests, true },
    { "branches", "two branches that compute nearly the same", write_branches, true },
    { "carried", "a loop that hands on nearly all of its values", write_carried, true },
};

const char *
bench_shape_name(unsigned i)
{
    return i < G_N_ELEMENTS(shapes) ? shapes[i].name : NULL;
}

const char *
bench_shape_summary(unsigned i)
{
    return shapes[i].summary;
}

/* The number of a shape; G_N_ELEMENTS(shapes) where there is none of that name. */
static unsigned
find(const char *name)
{
    unsigned i = 0;
    while (i < G_N_ELEMENTS(shapes) && strcmp(shapes[i].name, name) != 0)
        i++;
    return i;
}

bool
bench_shape_exists(const char *name)
{
    return find(name) < G_N_ELEMENTS(shapes);
}

bool
bench_shape_is_graph_only(const char *name)
{
    return shapes[find(name)].graph_only;
}

KilnModule *
bench_shape(const char *name, unsigned nodes, GError **error)
{
    Text text = { g_string_new("graph @shape("), g_string_new(NULL), g_string_new(NULL) };
    shapes[find(name)].write(&text, nodes);
    g_string_append_printf(text.head, ") {\n%s}\nconstants {\n%s}\n", text.body->str,
                           text.constants->str);
    KilnModule *module = kiln_module_parse(text.head->str, text.head->len, name, error);
    g_string_free(text.head, TRUE);
    g_string_free(text.body, TRUE);
    g_string_free(text.constants, TRUE);
    return module;
}
