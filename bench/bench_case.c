/* SPDX-License-Identifier: Apache-2.0 */
/* Lines to models: every operand `@name: type` is declared as what its access says, and the line
 * without the types is the instruction. */
#include "bench/bench_case.h"

#include "graph/type.h"
#include "runtime/tensors/file.h"

#include <string.h>

const char bench_case_format[] =
    "A file of cases has one instruction of the IR on each line. The type of an operand follows "
    "its\n"
    "name. `const` after the type makes the operand a weight. `hand=NAME` before the instruction\n"
    "compares it with a hand-written loop. # begins a comment.\n"
    "\n"
    "  add @out @y: f32[8,64,56,56], @in @a: f32[8,64,56,56], @in @b: f32[64,1,1]\n"
    "  conv @out @y: f32[1,8,9,9], @in @x: f32[1,3,9,9], @in @w: f32[8,3,3,3] const "
    "{pads=[1,1,1,1]}";

void
bench_case_free(BenchCase *one)
{
    g_free(one->name);
    g_free(one->hand);
    g_clear_pointer(&one->model, kiln_model_unref);
    g_free(one);
}

/* What the model is put together from. */
typedef struct {
    GString *declared, *instr, *constants;
    unsigned n_constants;
} Text;

/* The end of the type that begins at @text: what follows the operand, outside of brackets. */
static const char *
end_of_type(const char *text)
{
    int depth = 0;
    for (; *text; text++) {
        depth += (*text == '[' || *text == '(') - (*text == ']' || *text == ')');
        if (depth == 0 && (*text == ',' || *text == '{' || *text == '#'))
            break;
    }
    return text;
}

static const char *
end_of_name(const char *text)
{
    if (*text != '"')
        return text + strspn(text, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_.");
    const char *end = strchr(text + 1, '"');
    return end ? end + 1 : text + strlen(text);
}

/* Floats are drawn; of integers, which may be indices or zero points, all are 1. */
static void
add_constant(Text *text, const char *name, const char *type)
{
    unsigned seed = ++text->n_constants;
    bool is_float = type[0] == 'f' || type[0] == 'b';
    if (is_float && !g_str_has_prefix(type, "bool"))
        g_string_append_printf(text->constants, "  %s = random_normal(seed=%u, std=0.1) : %s\n",
                               name, seed, type);
    else
        g_string_append_printf(text->constants, "  %s = splat(1) : %s\n", name, type);
}

/* One operand from its name on; @access is the word before it. Returns what follows its type. */
static const char *
add_operand(Text *text, const char *access, const char *from, GError **error)
{
    const char *end = end_of_name(from + 1);
    g_autofree char *name = g_strndup(from, (gsize)(end - from));
    end += strspn(end, " ");
    if (*end != ':') {
        kiln_throw(error, KILN_ERROR_PARSE, "%s: expected a type behind the operand's name", name);
        return NULL;
    }
    const char *begin = end + 1;
    end = end_of_type(begin);
    g_autofree char *type = g_strstrip(g_strndup(begin, (gsize)(end - begin)));
    bool is_const = g_str_has_suffix(type, " const");
    if (is_const)
        type[strlen(type) - strlen(" const")] = '\0';
    const char *kind = is_const ? "weight" : strcmp(access, "@in") == 0 ? "input" : "output";
    g_string_append_printf(text->declared, "  %s %s : %s%s\n", kind, name, type,
                           is_const ? " const" : "");
    if (is_const)
        add_constant(text, name, type);
    g_string_append(text->instr, name);
    return end;
}

/* The letters of the access that begins at @text; 0: it is an operand. */
static gsize
access_length(const char *text)
{
    static const char *const accesses[] = { "@in ", "@out ", "@inout " };
    for (size_t i = 0; i < G_N_ELEMENTS(accesses); i++) {
        if (g_str_has_prefix(text, accesses[i]))
            return strlen(accesses[i]) - 1;
    }
    return 0;
}

static gboolean
add_operands(Text *text, const char *at, GError **error)
{
    g_autofree char *access = g_strdup("");
    while (*at && *at != '{') {
        if (*at != '@') {
            g_string_append_c(text->instr, *at++);
            continue;
        }
        gsize length = access_length(at);
        if (length) {
            g_free(access);
            access = g_strndup(at, length);
            g_string_append(text->instr, access);
            at += length;
        } else if (!(at = add_operand(text, access, at, error))) {
            return FALSE;
        } else if (*at == '{') {
            g_string_append_c(text->instr, ' ');
        }
    }
    g_string_append(text->instr, at); /* attributes or steps, which name operands as they are */
    return TRUE;
}

static KilnModel *
model_of(const char *instr, GError **error)
{
    Text text = { g_string_new("func @case {\n"), g_string_new("  "), g_string_new("constants {\n"),
                  0 };
    KilnModel *model = NULL;
    if (add_operands(&text, instr, error)) {
        g_string_append_printf(text.declared, "%s\n}\n", text.instr->str);
        if (text.n_constants)
            g_string_append_printf(text.declared, "%s}\n", text.constants->str);
        g_autoptr(GBytes) bytes = g_bytes_new(text.declared->str, text.declared->len);
        model = kiln_model_load_bytes(bytes, "case.kiln", error);
    }
    g_string_free(text.declared, TRUE);
    g_string_free(text.instr, TRUE);
    g_string_free(text.constants, TRUE);
    return model;
}

BenchCase *
bench_case_new(const char *line, GError **error)
{
    g_autoptr(BenchCase) one = g_new0(BenchCase, 1);
    g_autofree char *copy = g_strstrip(g_strdup(line));
    const char *instr = copy;
    if (g_str_has_prefix(instr, "hand=")) {
        gsize length = strcspn(instr, " ");
        one->hand = g_strndup(instr + strlen("hand="), length - strlen("hand="));
        instr += length + strspn(instr + length, " ");
    }
    one->name = g_strdup(instr);
    one->model = model_of(instr, error);
    return one->model ? g_steal_pointer(&one) : NULL;
}

gboolean
bench_cases_read(const char *path, GPtrArray *out, GError **error)
{
    g_autoptr(GBytes) bytes = kiln_file_map(path, error);
    if (!bytes)
        return FALSE;
    gsize size;
    const char *data = g_bytes_get_data(bytes, &size);
    g_autofree char *text = g_strndup(data ? data : "", size);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (unsigned i = 0; lines[i]; i++) {
        char *comment = strchr(lines[i], '#');
        if (comment)
            *comment = '\0';
        if (!*g_strstrip(lines[i]))
            continue;
        BenchCase *one = bench_case_new(lines[i], error);
        if (!one) {
            g_prefix_error(error, "%s:%u: ", path, i + 1);
            return FALSE;
        }
        g_ptr_array_add(out, one);
    }
    return TRUE;
}
