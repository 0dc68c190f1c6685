/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/shapes/texts.h"

#include "graph/type.h"
#include "kiln.h"
#include "runtime/kiln-shapes.h"
#include "runtime/model.h"
#include "runtime/shapes/dims.h"
#include "runtime/specialise.h"

#include <string.h>

/* A dim of --shape: a number, or what is said of an open dim. */
typedef struct {
    int64_t number; /* KILN_DIM_UNKNOWN: the dim is open */
    bool stated;    /* a name or a range */
    char *name;     /* NULL: as the model says */
    char *text;     /* as it was given */
    KilnDimRange facts;
} DimText;

/* NAME=DIMS */
typedef struct {
    char *name; /* of an input, or of an open dim */
    int rank;
    DimText dims[KILN_MAX_RANK];
} ShapeText;

static void
shape_text_clear(gpointer data)
{
    ShapeText *shape = data;
    g_free(shape->name);
    for (int d = 0; d < KILN_MAX_RANK; d++) {
        g_free(shape->dims[d].name);
        g_free(shape->dims[d].text);
    }
}

/* --- parsing --- */

static bool
parse_number(const char *text, int64_t least, int64_t *out)
{
    uint64_t number;
    bool good = g_ascii_string_to_unsigned(text, 10, (uint64_t)least, G_MAXINT64, &number, NULL);
    if (good)
        *out = (int64_t)number;
    return good;
}

/* 1..2048%8, 0..2048 or %8 */
static bool
parse_range(char *text, KilnDimRange *out)
{
    char *percent = strchr(text, '%'), *dots = strstr(text, "..");
    if (percent) {
        *percent = 0;
        if (!parse_number(percent + 1, 1, &out->multiple))
            return false;
    }
    if (percent == text)
        return true;
    if (!dots || (percent && dots > percent))
        return false;
    *dots = 0;
    bool good = parse_number(text, 0, &out->least) && parse_number(dots + 2, 1, &out->most);
    if (good && !out->least)
        out->least = KILN_LEAST_ZERO;
    return good;
}

/* How much of @text is a name. */
static size_t
name_length(const char *text)
{
    size_t n = 0;
    while (g_ascii_isalpha(text[n]) || text[n] == '_' ||
           (n && (g_ascii_isdigit(text[n]) || text[n] == '.')))
        n++;
    return n;
}

static bool
parse_dim(char *text, DimText *out)
{
    size_t n = name_length(text);
    out->number = KILN_DIM_UNKNOWN;
    if (strcmp(text, "?") == 0 || parse_number(text, 0, &out->number))
        return true;
    out->stated = true;
    if (n)
        out->name = g_strndup(text, n);
    if (n && !text[n])
        return true;
    return n ? text[n] == ':' && parse_range(text + n + 1, &out->facts)
             : parse_range(text, &out->facts);
}

static gboolean
parse_shape(const char *text, ShapeText *out, GError **error)
{
    const char *equals = strrchr(text, '=');
    g_auto(GStrv) dims = equals && equals[1] ? g_strsplit(equals + 1, "x", -1) : NULL;
    unsigned n = dims ? g_strv_length(dims) : 0;
    bool good = equals && equals != text && n <= KILN_MAX_RANK;
    for (unsigned d = 0; good && d < n; d++) {
        out->dims[d].text = g_strdup(dims[d]);
        good = parse_dim(dims[d], &out->dims[d]);
    }
    if (!good)
        return kiln_throw(
            error, KILN_ERROR_USAGE,
            "--shape: expected NAME=1x3x224x224, found %s\nA dim is a number, a range "
            "1..2048 or 1..2048%%8, a name N or N:1..2048, or ? as in the model.",
            text);
    out->rank = (int)n;
    out->name = g_strndup(text, (size_t)(equals - text));
    return TRUE;
}

/* ShapeText */
static GArray *
parse_shapes(const KilnShapeTexts *texts, GError **error)
{
    g_autoptr(GArray) shapes = g_array_new(FALSE, TRUE, sizeof(ShapeText));
    g_array_set_clear_func(shapes, shape_text_clear);
    for (char *const *text = texts->shapes; text && *text; text++) {
        g_array_set_size(shapes, shapes->len + 1);
        if (!parse_shape(*text, &g_array_index(shapes, ShapeText, shapes->len - 1), error))
            return NULL;
    }
    return g_steal_pointer(&shapes);
}

/* --- shapes --- */

static int
find_input(const KilnModel *model, const char *name)
{
    for (unsigned i = 0; i < model->inputs.n; i++) {
        if (strcmp(model->inputs.info[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

void
kiln_shapes_free(KilnShape *shapes, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        g_free((char *)shapes[i].input);
    g_free(shapes);
}

KilnShape *
kiln_shapes_of_texts(const KilnShapeTexts *given, const KilnModel *model, unsigned *out_n,
                     GError **error)
{
    g_autoptr(GArray) texts = parse_shapes(given, error);
    if (!texts)
        return NULL;
    KilnShape *shapes = g_new0(KilnShape, texts->len + 1);
    *out_n = 0;
    for (guint s = 0; s < texts->len; s++) {
        const ShapeText *text = &g_array_index(texts, ShapeText, s);
        KilnShape *shape = &shapes[*out_n];
        if (find_input(model, text->name) < 0) /* of a dim: the model knows it */
            continue;
        shape->input = g_strdup(text->name);
        shape->rank = text->rank;
        for (int d = 0; d < text->rank; d++)
            shape->dims[d] = text->dims[d].number;
        ++*out_n;
    }
    return shapes;
}

/* --- names and ranges --- */

/* The dims as they were given. */
static char *
join_dims(const ShapeText *shape, const char *between)
{
    GString *text = g_string_new(NULL);
    for (int d = 0; d < shape->rank; d++)
        g_string_append_printf(text, "%s%s", d ? between : "", shape->dims[d].text);
    return g_string_free(text, FALSE);
}

/* A run would refuse it, so every command does. */
static gboolean
check_input(const KilnModel *model, const ShapeText *text, const KilnType *type, GError **error)
{
    bool fits = type->rank < 0 || type->rank == text->rank;
    for (int d = 0; fits && d < text->rank && type->rank >= 0; d++)
        fits =
            text->dims[d].number < 0 || type->dims[d] < 0 || text->dims[d].number == type->dims[d];
    if (fits)
        return TRUE;
    g_autofree char *expected = kiln_type_to_string(type);
    g_autofree char *found = join_dims(text, ",");
    return kiln_throw(error, KILN_ERROR_SHAPE, "%s: input %s: expected %s, found %s[%s]",
                      model->name, text->name, expected, kiln_dtype_name(type->dtype), found);
}

/* Whether an open dim has that name, in the model or by a --shape. */
static bool
is_dim(const KilnModel *model, const GArray *texts, const char *name)
{
    bool found = false;
    for (unsigned i = 0; i < model->inputs.n; i++) {
        const KilnType *type = &model->inputs.types[i];
        for (int d = 0; d < type->rank; d++)
            found |= g_strcmp0(kiln_type_dim_name(type, d), name) == 0;
    }
    for (guint s = 0; s < texts->len; s++) {
        const ShapeText *text = &g_array_index(texts, ShapeText, s);
        for (int d = 0; d < text->rank; d++)
            found |= g_strcmp0(text->dims[d].name, name) == 0;
    }
    return found;
}

static void
append_name(GString *names, const char *name)
{
    g_string_append_printf(names, "%s%s", names->len ? ", " : "", name);
}

/* "the inputs x, y and the open dims N, M" */
static char *
list_names(const KilnModel *model)
{
    g_autoptr(GString) inputs = g_string_new(NULL);
    g_autoptr(GString) dims = g_string_new(NULL);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (unsigned i = 0; i < model->inputs.n; i++) {
        const KilnType *type = &model->inputs.types[i];
        append_name(inputs, model->inputs.info[i].name);
        for (int d = 0; d < type->rank; d++) {
            const char *name = kiln_type_dim_name(type, d);
            if (name && g_hash_table_add(seen, (gpointer)name))
                append_name(dims, name);
        }
    }
    return dims->len ? g_strdup_printf("one of the inputs %s or of the open dims %s", inputs->str,
                                       dims->str)
                     : g_strdup_printf("one of the inputs %s", inputs->str);
}

static gboolean
state_named(const KilnModel *model, const GArray *texts, const ShapeText *text, GArray *out,
            GError **error)
{
    const DimText *dim = &text->dims[0];
    KilnDimStatement statement = { .what = "--shape", .name = text->name, .facts = dim->facts };
    if (!is_dim(model, texts, text->name)) {
        g_autofree char *names = list_names(model);
        return kiln_throw(error, KILN_ERROR_USAGE, "--shape: expected %s, found %s", names,
                          text->name);
    }
    if (text->rank != 1 || dim->name || dim->number == 0) {
        g_autofree char *found = join_dims(text, "x");
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--shape: expected a number of 1 or more or a range for the dim %s, "
                          "found %s",
                          text->name, found);
    }
    if (dim->number > 0)
        statement.facts.least = statement.facts.most = dim->number;
    g_array_append_val(out, statement);
    return TRUE;
}

static gboolean
state_input(const KilnModel *model, const KilnType *type, const ShapeText *text, GArray *out,
            GError **error)
{
    if (!check_input(model, text, type, error))
        return FALSE;
    for (int d = 0; d < text->rank; d++) {
        KilnDimStatement statement = { "--shape", text->name,         text->rank,
                                       d,         text->dims[d].name, text->dims[d].facts };
        if (text->dims[d].stated)
            g_array_append_val(out, statement);
    }
    return TRUE;
}

static gboolean
state_shapes(const KilnModel *model, const GArray *texts, GArray *out, GError **error)
{
    for (guint s = 0; s < texts->len; s++) {
        const ShapeText *text = &g_array_index(texts, ShapeText, s);
        int input = find_input(model, text->name);
        if (input < 0 ? !state_named(model, texts, text, out, error)
                      : !state_input(model, &model->inputs.types[input], text, out, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
state_hints(const KilnShapeTexts *texts, GPtrArray *names, GArray *out, GError **error)
{
    for (char *const *text = texts->hints; text && *text; text++) {
        const char *equals = strrchr(*text, '=');
        KilnDimStatement statement = { .what = "--shape-hint" };
        if (!equals || equals == *text || !parse_number(equals + 1, 1, &statement.facts.hint))
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "--shape-hint: expected DIM=N with N of 1 or more, found %s", *text);
        g_ptr_array_add(names, g_strndup(*text, (size_t)(equals - *text)));
        statement.name = g_ptr_array_index(names, names->len - 1);
        g_array_append_val(out, statement);
    }
    return TRUE;
}

KilnModel *
kiln_model_with_texts(KilnModel *model, const KilnShapeTexts *given, GError **error)
{
    g_autoptr(GArray) texts = parse_shapes(given, error);
    g_autoptr(GArray) statements = g_array_new(FALSE, FALSE, sizeof(KilnDimStatement));
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    if (!texts || !state_shapes(model, texts, statements, error) ||
        !state_hints(given, names, statements, error))
        return NULL;
    return kiln_model_with_dims(model, (const KilnDimStatement *)statements->data, statements->len,
                                error);
}

gboolean
kiln_program_pin_texts(KilnProgram *program, const KilnShapeTexts *given, GError **error)
{
    unsigned n = 0;
    if (!given->shapes)
        return TRUE;
    if (!program->open)
        return kiln_throw(error, KILN_ERROR_USAGE,
                          "--shape: expected a model, found %s, which is compiled already",
                          program->model->name);
    g_autoptr(KilnModel) checked = kiln_model_with_texts(program->model, given, error);
    KilnShape *shapes = checked ? kiln_shapes_of_texts(given, checked, &n, error) : NULL;
    g_autofree KilnBinding *bindings = g_new0(KilnBinding, (gsize)program->inputs.n + 1);
    gboolean good = shapes && kiln_program_read_shapes(program, shapes, n, bindings, error) &&
                    kiln_program_pin(program, bindings, error);
    kiln_shapes_free(shapes, n);
    return good;
}
