/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of random_rows.def become text. After each row the whole text is parsed: the parser
 * infers the types of the results, which later rows take as operands. */
#include "tests/random/random_rows.h"

#include "backends/ref/ref.h"
#include "graph/function.h"
#include "graph/node.h"
#include "graph/text/text.h"
#include "ir/instr.h"
#include "ir/target.h"
#include "tests/random/random_graph_priv.h"

#include <string.h>

enum {
    MOST_ELEMENTS = 400, /* of an operand that exists */
    MOST_ARGUMENTS = 8,
};

#define D(id) (1u << KILN_DTYPE_##id)
#define TENSORS (((1u << KILN_N_DTYPES) - 1) & ~(D(sequence) | D(optional) | D(map)))

typedef struct {
    bool every;        /* or only the types of the reference kernels */
    uint32_t left_out; /* of these types */
} Types;
// clang-format off
#define KERNELS { false, 0 }
#define KERNELS_BUT(types) { false, types }
#define EVERY { true, 0 }
#define EVERY_BUT(types) { true, types }
#define ONLY(types) EVERY_BUT(~(types))
// clang-format on

typedef struct {
    const char *op;
    Types types;
    const char *operands, *lines;
    bool of_data; /* which decides a shape */
} Row;

static const Row rows[] = {
#define ROW(op, types, operands, lines) { #op, types, operands, lines, false },
#define ROW_OF_DATA(op, types, operands, lines) { #op, types, operands, lines, true },
#include "tests/random/random_rows.def"
};

static const struct {
    const char *op, *reason;
} left_out[] = {
#define LEFT_OUT(op, reason) { #op, reason },
#include "tests/random/random_rows.def"
};

/* --- the table --- */

uint32_t
random_rows_count(void)
{
    return G_N_ELEMENTS(rows);
}

const char *
random_rows_op(uint32_t row)
{
    return rows[row].op;
}

const char *
random_rows_left_out(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(left_out); i++) {
        if (strcmp(left_out[i].op, name) == 0)
            return left_out[i].reason;
    }
    return NULL;
}

uint32_t
random_rows_types(uint32_t row)
{
    const KilnTarget *ref = kiln_ref_target();
    KilnInstrKind kind;
    uint32_t types = 0;
    if (rows[row].types.every || !kiln_instr_from_name(rows[row].op, &kind))
        return TENSORS & ~rows[row].types.left_out;
    for (uint32_t i = 0; i < ref->n_kernels; i++) {
        if (ref->kernels[i].instr == kind && !ref->kernels[i].quantized)
            types |= ref->kernels[i].dtypes;
    }
    return types & TENSORS & ~rows[row].types.left_out;
}

/* --- a text that grows --- */

typedef struct {
    RandomGraph g; /* for its numbers */
    GString *arguments, *lines, *constants;
    KilnModule *module; /* of the text so far; NULL: it is empty */
    unsigned names, n_arguments;
} Text;

static void
text_init(Text *text, uint64_t seed)
{
    *text = (Text){ .g = { .state = seed * UINT64_C(0x2545f4914f6cdd1d) + 7, .most = 4096 },
                    .arguments = g_string_new(NULL),
                    .lines = g_string_new(NULL),
                    .constants = g_string_new(NULL) };
}

static void
text_clear(Text *text)
{
    g_string_free(text->arguments, TRUE);
    g_string_free(text->lines, TRUE);
    g_string_free(text->constants, TRUE);
    g_clear_pointer(&text->module, kiln_module_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Text, text_clear)

static KilnModule *
parsed(const Text *text, const char *results, GError **error)
{
    g_autofree char *whole =
        g_strdup_printf("graph @random(%s) {\n%s  return %s\n}\n\nconstants {\n%s}\n",
                        text->arguments->str, text->lines->str, results, text->constants->str);
    KilnModule *module = kiln_module_parse(whole, strlen(whole), NULL, error);
    if (!module)
        g_prefix_error(error, "%s\n", whole);
    return module;
}

/* Adds an argument of @type. @domain: "in [a,b)", a quantization, or nothing. */
static char *
add_argument(Text *text, const char *type, const char *domain)
{
    char *name = g_strdup_printf("%%x%u", text->names++);
    g_string_append_printf(text->arguments, "%s%s: %s%s", text->n_arguments++ ? ", " : "", name,
                           type, domain);
    return name;
}

static char *
add_constant(Text *text, const char *type, const char *payload)
{
    unsigned number = text->names++;
    g_string_append_printf(text->lines, "  %%k%u = const @k%u : %s\n", number, number, type);
    g_string_append_printf(text->constants, "  @k%u = %s : %s\n", number, payload, type);
    return g_strdup_printf("%%k%u", number);
}

/* --- one row --- */

typedef struct {
    Text *text;
    KilnDType dtype;     /* what T is */
    int64_t extents[26]; /* by letter; 0: not drawn yet */
    char *operands[26];  /* names in the text, by letter */
    KilnType first;      /* of the first operand; its rank is -1 where there is none */
    unsigned number;     /* in the names of the results */
    int64_t axis;        /* what $axis is; only if has_axis */
    bool has_axis;
} Draw;

static void
draw_clear(Draw *draw)
{
    for (size_t i = 0; i < G_N_ELEMENTS(draw->operands); i++)
        g_free(draw->operands[i]);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Draw, draw_clear)

/* A count of the form 3, c, 2c, c+2 or 2c+1: factor · extent + rest. A letter of 0 is none. */
typedef struct {
    int64_t factor, rest;
    char letter;
} Count;

static Count
count_from(const char *text)
{
    char *at;
    Count count = { .factor = g_ascii_strtoll(text, &at, 10) };
    if (!g_ascii_isalpha(*at))
        return (Count){ .rest = count.factor };
    count.factor = at == text ? 1 : count.factor;
    count.letter = *at++;
    count.rest = *at == '+' ? g_ascii_strtoll(at + 1, NULL, 10) : 0;
    return count;
}

static int64_t *
extent_of(Draw *draw, Count count)
{
    return &draw->extents[count.letter - 'a'];
}

/* Draws the extent if it has none yet. */
static int64_t
value_of(Draw *draw, Count count)
{
    static const int64_t extents[] = { 1, 2, 2, 3, 4 };
    if (!count.letter)
        return count.rest;
    int64_t *extent = extent_of(draw, count);
    *extent = *extent ? *extent : extents[rg_below(&draw->text->g, G_N_ELEMENTS(extents))];
    return count.factor * *extent + count.rest;
}

/* Whether @value is what @count says, or gives the extent a number that makes it so. */
static bool
count_fits(Draw *draw, Count count, int64_t value)
{
    if (!count.letter)
        return value == count.rest;
    int64_t *extent = extent_of(draw, count), over = value - count.rest;
    if (!*extent && over > 0 && over % count.factor == 0)
        *extent = over / count.factor;
    return *extent && count.factor * *extent + count.rest == value;
}

/* --- what stands for a $ --- */

static const char *
integer_like(KilnDType dtype)
{
    static const KilnDType integers[] = {
        [1] = KILN_DTYPE_u8, [2] = KILN_DTYPE_i16, [4] = KILN_DTYPE_i32, [8] = KILN_DTYPE_i64
    };
    return kiln_dtype_name(integers[kiln_dtype_size(dtype)]);
}

/* Of f32, f64, f16 and bf16. */
static bool
is_wide_float(KilnDType dtype)
{
    return kiln_dtype_is_float(dtype) && !kiln_dtype_is_low_float(dtype);
}

static const char *
choose(Draw *draw, const char *const *among, int n)
{
    return among[rg_below(&draw->text->g, n)];
}

static void
append_word(Draw *draw, const char *word, GString *out)
{
    static const char *const bools[] = { "false", "true" };
    static const char *const modes[] = { "nearest", "linear", "cubic" };
    static const char *const reductions[] = { "none", "add", "mul", "max", "min" };
    bool real = is_wide_float(draw->dtype);
    if (g_str_equal(word, "axis")) {
        int rank = MAX(draw->first.rank, 1);
        draw->axis = draw->has_axis ? draw->axis : rg_below(&draw->text->g, 2 * rank) - rank;
        draw->has_axis = true;
        g_string_append_printf(out, "%" G_GINT64_FORMAT, draw->axis);
    } else if (g_str_equal(word, "bool")) {
        g_string_append(out, choose(draw, bools, 2));
    } else if (g_str_equal(word, "row")) {
        g_string_append_printf(out, "%u", draw->number);
    } else if (g_str_equal(word, "float")) {
        g_string_append(out, real ? "true" : choose(draw, bools, 2));
    } else if (g_str_equal(word, "keys")) {
        bool text = draw->dtype == KILN_DTYPE_string;
        g_string_append(out, text ? "\"a\", \"\", \"b c\"" : "0, 2, 1");
    } else if (g_str_equal(word, "mode")) {
        g_string_append(out, choose(draw, modes, real ? 3 : 1));
    } else if (g_str_equal(word, "reduction")) {
        bool number =
            real || (kiln_dtype_is_integer(draw->dtype) && kiln_dtype_bits(draw->dtype) >= 8);
        g_string_append(out, choose(draw, reductions, number ? 5 : 1));
    } else {
        g_assert(g_str_equal(word, "T") || g_str_equal(word, "I"));
        g_string_append(out,
                        *word == 'T' ? kiln_dtype_name(draw->dtype) : integer_like(draw->dtype));
    }
}

/* Appends what stands at @at, behind a $, and returns what follows it. */
static const char *
append_drawn(Draw *draw, const char *at, GString *out)
{
    if (*at == '(' || *at == '{') {
        const char *end = strchr(at, *at == '(' ? ')' : '}');
        g_autofree char *inside = g_strndup(at + 1, (size_t)(end - at - 1));
        g_auto(GStrv) among = g_strsplit(inside, "|", -1);
        if (*at == '(')
            g_string_append(out,
                            choose(draw, (const char *const *)among, (int)g_strv_length(among)));
        else
            g_string_append_printf(out, "%" G_GINT64_FORMAT, value_of(draw, count_from(inside)));
        return end + 1;
    }
    const char *end = at;
    while (g_ascii_isalpha(*end))
        end++;
    g_autofree char *word = g_strndup(at, (size_t)(end - at));
    append_word(draw, word, out);
    return end;
}

/* Appends the operand or result that is named at @at, behind a %, and returns what follows it. */
static const char *
append_name(Draw *draw, const char *at, GString *out)
{
    if (g_ascii_isupper(*at)) {
        g_string_append_printf(out, "%%r%u%c", draw->number, g_ascii_tolower(*at));
    } else {
        const char *operand = draw->operands[*at - 'a'];
        if (!operand)
            g_error("random_rows.def: %s: no operand", at);
        g_string_append(out, operand);
    }
    return at + 1;
}

static char *
written(Draw *draw, const char *template)
{
    GString *out = g_string_new(NULL);
    for (const char *at = template; *at;) {
        if (*at == '$')
            at = append_drawn(draw, at + 1, out);
        else if (*at == '%')
            at = append_name(draw, at + 1, out);
        else
            g_string_append_c(out, *at++);
    }
    return g_string_free(out, FALSE);
}

/* --- operands --- */

/* NAME:TYPE DIMS SOURCE, as the head of random_rows.def has it. */
typedef struct {
    char name;
    KilnDType dtype;
    char shape; /* one of * + ~ =, or [ with dims */
    Count counts[KILN_MAX_RANK];
    int rank;
    const char *source; /* in the text of the row */
} Declaration;

static Declaration
declared(const Draw *draw, const char *text)
{
    text += strspn(text, " ");
    Declaration found = { .name = text[0], .dtype = draw->dtype };
    size_t length = strcspn(text + 2, "[*+~=");
    g_autofree char *type = g_strndup(text + 2, length);
    if (!g_str_equal(type, "T") && !kiln_dtype_from_name(type, &found.dtype))
        g_error("random_rows.def: %s: no element type", text);
    const char *at = text + 2 + length;
    found.shape = *at++;
    if (found.shape == '[') {
        for (; *at != ']'; at += *at == ',') {
            found.counts[found.rank++] = count_from(at);
            at += strcspn(at, ",]");
        }
        at++;
    }
    found.source = at + strspn(at, " ");
    return found;
}

static bool
shape_fits(Draw *draw, const Declaration *wanted, const KilnType *type)
{
    int64_t before[G_N_ELEMENTS(draw->extents)];
    memcpy(before, draw->extents, sizeof before);
    bool fits = type->rank <= 4;
    switch (wanted->shape) {
    case '+':
        return fits && type->rank > 0;
    case '~':
        return fits && kiln_type_may_broadcast(type, &draw->first);
    case '=':
        return kiln_type_same_shape(type, &draw->first);
    case '[':
        fits = type->rank == wanted->rank;
        for (int d = 0; fits && d < type->rank; d++)
            fits = count_fits(draw, wanted->counts[d], type->dims[d]);
        if (!fits)
            memcpy(draw->extents, before, sizeof before);
        return fits;
    default:
        return fits;
    }
}

/* The shape of a new operand. */
static KilnType
new_type(Draw *draw, const Declaration *wanted)
{
    RandomGraph *g = &draw->text->g;
    KilnType type = { .dtype = wanted->dtype, .rank = wanted->rank };
    switch (wanted->shape) {
    case '[':
        for (int d = 0; d < type.rank; d++)
            type.dims[d] = value_of(draw, wanted->counts[d]);
        break;
    case '=':
    case '~':
        type = kiln_type_make(wanted->dtype, draw->first.rank, draw->first.dims);
        for (int d = 0; d < type.rank && wanted->shape == '~'; d++)
            type.dims[d] = rg_one_in(g, 3) ? 1 : type.dims[d];
        break;
    default:
        type.rank = wanted->shape == '*' && rg_one_in(g, 6) ? 0 : 1 + rg_below(g, 4);
        for (int d = 0; d < type.rank; d++)
            type.dims[d] = 1 + rg_below(g, 4);
    }
    return type;
}

/* A value of the text that @wanted allows; NULL if none was found. */
static KilnValue *
existing(Draw *draw, const Declaration *wanted, bool exact)
{
    Text *text = draw->text;
    const KilnFunction *function = text->module ? kiln_module_entry(text->module) : NULL;
    g_autoptr(GPtrArray) values = g_ptr_array_new();
    for (guint i = 0; function && i < function->arguments->len; i++)
        g_ptr_array_add(values, &kiln_function_argument(function, i)->value);
    if (function && !exact) {
        kiln_foreach_node (node, function) {
            for (uint32_t r = 0; r < node->n_results && node->op != KILN_OP_const; r++)
                g_ptr_array_add(values, &node->results[r]);
        }
    }
    for (int tries = 0; values->len && tries < 8; tries++) {
        KilnValue *value = g_ptr_array_index(values, (guint)rg_below(&text->g, (int)values->len));
        const KilnType *type = &value->type;
        int64_t n = type->dtype == wanted->dtype && !type->quant ? kiln_type_elements(type) : -1;
        if (n > 0 && n <= MOST_ELEMENTS && shape_fits(draw, wanted, type))
            return value;
    }
    return NULL;
}

static char *
type_text(const KilnType *type)
{
    GString *text = g_string_new(kiln_dtype_name(type->dtype));
    g_string_append_c(text, '[');
    for (int d = 0; d < type->rank; d++)
        g_string_append_printf(text, "%s%" G_GINT64_FORMAT, d ? "," : "", type->dims[d]);
    g_string_append_c(text, ']');
    return g_string_free(text, FALSE);
}

static char *
add_number(Text *text, KilnDType dtype, double number)
{
    KilnType scalar = kiln_type_scalar(dtype);
    g_autofree char *type = type_text(&scalar);
    g_autofree char *payload = g_strdup_printf("splat(%g)", number);
    return add_constant(text, type, payload);
}

/* Elements from @low to @high: a constant, or an argument that is cut, which rounds nothing.
 * Integers are below @high. */
static char *
add_between(Text *text, const KilnType *of, double low, double high)
{
    g_autofree char *type = type_text(of);
    if (!kiln_dtype_is_float(of->dtype)) {
        int least = kiln_dtype_is_signed(of->dtype) ? (int)low : MAX(0, (int)low);
        g_autofree char *domain = g_strdup_printf(" in [%d,%d)", least, MAX(least + 1, (int)high));
        return add_argument(text, type, domain);
    }
    if (rg_one_in(&text->g, 3)) {
        g_autofree char *payload = g_strdup_printf("random_uniform(seed=%d, low=%g, high=%g)",
                                                   rg_below(&text->g, 9), low, high);
        return add_constant(text, type, payload);
    }
    g_autofree char *least = add_number(text, of->dtype, low);
    g_autofree char *most = add_number(text, of->dtype, high);
    g_autofree char *x = add_argument(text, type, "");
    unsigned number = text->names++;
    g_string_append_printf(text->lines, "  %%a%u = %s(%s)\n  %%c%u = clip(%%a%u, %s, %s)\n", number,
                           low < 0 ? "identity" : "abs", x, number, number, least, most);
    return g_strdup_printf("%%c%u", number);
}

/* A new value that any element may have. */
static char *
add_any(Text *text, const KilnType *of)
{
    g_autofree char *type = type_text(of);
    bool constant = text->n_arguments >= MOST_ARGUMENTS && is_wide_float(of->dtype);
    return constant ? add_constant(text, type, "random_uniform(seed=1, low=-1, high=1)")
                    : add_argument(text, type, "");
}

/* A bound of a range: a number or an extent. */
static double
bound(Draw *draw, const char *text)
{
    return strpbrk(text, "abcdefghijklmnopqrstuvwxyz") ? (double)value_of(draw, count_from(text))
                                                       : g_ascii_strtod(text, NULL);
}

static void
add_operand(Draw *draw, const char *declaration)
{
    Text *text = draw->text;
    Declaration wanted = declared(draw, declaration);
    const char *source = wanted.source;
    KilnValue *value = NULL;
    KilnType type;
    char *name;
    bool exact = *source == '!';
    if ((exact || !*source) && !rg_one_in(&text->g, 3))
        value = existing(draw, &wanted, exact);
    type = value ? value->type : new_type(draw, &wanted);
    if (draw->first.rank < 0)
        draw->first = type;
    if (value) {
        name = g_strdup_printf("%%%s", value->name);
    } else if (g_str_has_prefix(source, "in ")) {
        g_auto(GStrv) bounds = g_strsplit(source + 3, ",", 2);
        name = add_between(text, &type, bound(draw, bounds[0]), bound(draw, bounds[1]));
    } else if (*source == '=') {
        g_autofree char *list = written(draw, source + 2);
        g_autofree char *payload = g_strdup_printf("[%s]", list);
        g_autofree char *spelled = type_text(&type);
        name = add_constant(text, spelled, payload);
    } else if (*source == 'q') {
        g_autofree char *plain = type_text(&type);
        g_autofree char *spelled = g_strdup_printf("%s %s", plain, source);
        name = add_argument(text, spelled, "");
    } else {
        name = add_any(text, &type);
    }
    draw->operands[wanted.name - 'a'] = name;
}

/* --- rows --- */

/* The names in front of the `=` of the last line. */
static char *
results_of(const char *lines)
{
    const char *last = strrchr(lines, '\n');
    last = last ? last + 1 : lines;
    return g_strndup(last, strcspn(last, "="));
}

/* Adds @row. Where it does not fit, the text stays as it was. */
static gboolean
add_row(Text *text, const Row *row, KilnDType dtype, GError **error)
{
    const gsize lengths[] = { text->arguments->len, text->lines->len, text->constants->len };
    const unsigned n_arguments = text->n_arguments;
    g_auto(Draw)
        draw = { .text = text, .dtype = dtype, .first = { .rank = -1 }, .number = text->names++ };
    g_auto(GStrv) operands = g_strsplit(row->operands, ";", -1);
    for (char **operand = operands; *operand; operand++)
        add_operand(&draw, *operand);
    g_autofree char *lines = written(&draw, row->lines);
    g_auto(GStrv) each = g_strsplit(lines, "\n", -1);
    for (char **line = each; *line; line++)
        g_string_append_printf(text->lines, "  %s\n", *line);
    g_autofree char *results = results_of(lines);
    KilnModule *module = parsed(text, results, error);
    if (!module) {
        g_string_truncate(text->arguments, lengths[0]);
        g_string_truncate(text->lines, lengths[1]);
        g_string_truncate(text->constants, lengths[2]);
        text->n_arguments = n_arguments;
        return FALSE;
    }
    g_clear_pointer(&text->module, kiln_module_free);
    text->module = module;
    return TRUE;
}

KilnModule *
random_rows_one(uint32_t row, KilnDType dtype, uint64_t seed, GError **error)
{
    g_auto(Text) text;
    text_init(&text, seed);
    return add_row(&text, &rows[row], dtype, error) ? g_steal_pointer(&text.module) : NULL;
}

/* --- a whole graph --- */

/* A type of @row: one that the graph has already, if there is one and a throw says so. */
static KilnDType
draw_dtype(Text *text, uint32_t row)
{
    const uint32_t types = random_rows_types(row);
    uint32_t there = 0;
    const KilnFunction *function = text->module ? kiln_module_entry(text->module) : NULL;
    if (function && !rg_one_in(&text->g, 3)) {
        kiln_foreach_node (node, function) {
            for (uint32_t r = 0; r < node->n_results; r++)
                there |= 1u << node->results[r].type.dtype;
        }
    }
    there = there & types ? there & types : types;
    int dtype = rg_below(&text->g, KILN_N_DTYPES);
    while (!(there >> dtype & 1))
        dtype = (dtype + 1) % KILN_N_DTYPES;
    return (KilnDType)dtype;
}

/* Values that the families of random_graph.h can take, of one element type. */
static GPtrArray *
values_of(const KilnFunction *function, KilnDType dtype)
{
    GPtrArray *values = g_ptr_array_new();
    for (guint i = 0; i < function->arguments->len; i++)
        g_ptr_array_add(values, &kiln_function_argument(function, i)->value);
    kiln_foreach_node (node, function) {
        for (uint32_t r = 0; r < node->n_results; r++)
            g_ptr_array_add(values, &node->results[r]);
    }
    for (guint i = values->len; i-- > 0;) {
        const KilnType *type = &((KilnValue *)g_ptr_array_index(values, i))->type;
        bool fits = dtype == KILN_N_DTYPES ||
                    (type->dtype == dtype && !type->quant && type->rank <= 4 &&
                     kiln_type_elements(type) >= 0 && kiln_type_elements(type) <= MOST_ELEMENTS);
        if (!fits)
            g_ptr_array_remove_index(values, i);
    }
    return values;
}

/* Nodes of the other families behind those of the rows. */
static void
add_families(RandomGraph *g)
{
    static const KilnDType dtypes[] = { KILN_DTYPE_f32, KILN_DTYPE_f32, KILN_DTYPE_f64,
                                        KILN_DTYPE_f16, KILN_DTYPE_i64, KILN_DTYPE_bf16,
                                        KILN_DTYPE_i32 };
    for (int i = rg_below(g, 5); i > 0; i--) {
        g->dtype = dtypes[rg_below(g, G_N_ELEMENTS(dtypes))];
        g->values = values_of(g->function, g->dtype);
        if (g->values->len)
            rg_step(g);
        g_ptr_array_unref(g->values);
    }
}

KilnModule *
random_rows_graph(uint64_t seed)
{
    g_auto(Text) text;
    text_init(&text, seed);
    int left = 3 + rg_below(&text.g, 8);
    while (left > 0) {
        uint32_t row = (uint32_t)rg_below(&text.g, G_N_ELEMENTS(rows));
        if (rows[row].of_data && !RANDOM_ROWS_OF_DATA(seed))
            continue;
        left -= add_row(&text, &rows[row], draw_dtype(&text, row), NULL);
    }
    RandomGraph g = text.g;
    g.module = g_steal_pointer(&text.module);
    g.function = kiln_module_entry(g.module);
    add_families(&g);
    g.values = values_of(g.function, KILN_N_DTYPES);
    return rg_end(&g, 3);
}
