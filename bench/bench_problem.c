/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench_problem.h"

#include "ir/life.h"

#include <string.h>

enum {
    ID,
    FIRST,
    END,
    SIZE,
    N_FIELDS,
    IGNORED,
};

typedef struct {
    int column[N_FIELDS];
    const char *name[N_FIELDS]; /* of the column */
    int n_columns;
    int64_t after_end; /* 1 where the end is included */
} Header;

static const struct {
    const char *name;
    int field; /* IGNORED: what a plan says, and not the problem */
    bool is_included;
} columns[] = {
    { "id", ID, false },          { "lower", FIRST, false }, { "begin", FIRST, false },
    { "upper", END, false },      { "end", END, true },      { "size", SIZE, false },
    { "offset", IGNORED, false },
};

static gboolean
parse_header(const char *path, char **names, Header *out, GError **error)
{
    *out = (Header){ .column = { -1, -1, -1, -1 } };
    for (; names[out->n_columns]; out->n_columns++) {
        const char *name = names[out->n_columns];
        size_t k = 0;
        while (k < G_N_ELEMENTS(columns) && strcmp(name, columns[k].name) != 0)
            k++;
        if (k == G_N_ELEMENTS(columns))
            return kiln_throw(error, KILN_ERROR_PARSE,
                              "%s:1: expected columns id,lower,upper,size or id,begin,end,size, "
                              "found \"%s\"",
                              path, name);
        if (columns[k].field == IGNORED)
            continue;
        if (out->column[columns[k].field] >= 0)
            return kiln_throw(error, KILN_ERROR_PARSE, "%s:1: column \"%s\" says what another says",
                              path, name);
        out->column[columns[k].field] = out->n_columns;
        out->name[columns[k].field] = columns[k].name;
        out->after_end += columns[k].is_included;
    }
    for (size_t k = 0; k < G_N_ELEMENTS(columns); k++) {
        if (columns[k].field != IGNORED && out->column[columns[k].field] < 0)
            return kiln_throw(error, KILN_ERROR_PARSE, "%s:1: expected a column \"%s\"", path,
                              columns[k].name);
    }
    return TRUE;
}

static gboolean
parse_number(const Header *header, int field, char **cells, int64_t max, int64_t *out,
             GError **error)
{
    const char *text = cells[header->column[field]];
    gint64 value;
    if (!g_ascii_string_to_signed(text, 10, 0, max, &value, NULL))
        return kiln_throw(error, KILN_ERROR_PARSE,
                          "%s: expected a number in 0…%" G_GINT64_FORMAT ", found \"%s\"",
                          header->name[field], max, text);
    *out = value;
    return TRUE;
}

static gboolean
parse_life(const Header *header, char **cells, int64_t room, KilnLife *out, GError **error)
{
    if ((int)g_strv_length(cells) != header->n_columns)
        return kiln_throw(error, KILN_ERROR_PARSE, "expected %d columns, found %u",
                          header->n_columns, g_strv_length(cells));
    int64_t end = 0;
    *out = (KilnLife){ 0 };
    if (!parse_number(header, FIRST, cells, INT64_MAX - 2, &out->first, error) ||
        !parse_number(header, END, cells, INT64_MAX - 2, &end, error) ||
        !parse_number(header, SIZE, cells, INT64_MAX, &out->size, error))
        return FALSE;
    out->last = end + header->after_end - 1;
    if (out->last < out->first)
        return kiln_throw(error, KILN_ERROR_PARSE, "ends before it begins");
    if (out->size > room)
        return kiln_throw(error, KILN_ERROR_PARSE, "the sizes sum to 2^63 or more");
    return TRUE;
}

static gboolean
parse_lines(Problem *problem, const char *path, char **lines, GError **error)
{
    Header header;
    int64_t room = INT64_MAX;
    for (int i = 0; lines[i]; i++) {
        g_strchomp(lines[i]);
        g_auto(GStrv) cells = g_strsplit(lines[i], ",", -1);
        for (char **cell = cells; *cell; cell++)
            g_strstrip(*cell);
        if (i == 0) {
            if (!parse_header(path, cells, &header, error))
                return FALSE;
            continue;
        }
        if (!*lines[i])
            continue;
        KilnLife life;
        if (!parse_life(&header, cells, room, &life, error)) {
            g_prefix_error(error, "%s:%d: ", path, i + 1);
            return FALSE;
        }
        room -= life.size;
        g_array_append_val(problem->lives, life);
        g_ptr_array_add(problem->ids, g_strdup(cells[header.column[ID]]));
    }
    return TRUE;
}

/* The number in A.1048576.csv, or 0. */
static int64_t
capacity_in(const char *name)
{
    g_auto(GStrv) parts = g_strsplit(name, ".", -1);
    guint n = g_strv_length(parts);
    guint64 capacity = 0;
    if (n < 3 || !g_ascii_string_to_unsigned(parts[n - 2], 10, 1, INT64_MAX, &capacity, NULL))
        return 0;
    return (int64_t)capacity;
}

Problem *
problem_new(const char *path)
{
    Problem *problem = g_new0(Problem, 1);
    problem->name = path ? g_path_get_basename(path) : NULL;
    problem->lives = g_array_new(FALSE, FALSE, sizeof(KilnLife));
    problem->ids = g_ptr_array_new_with_free_func(g_free);
    return problem;
}

void
problem_free(Problem *problem)
{
    if (!problem)
        return;
    g_free(problem->name);
    g_array_unref(problem->lives);
    g_ptr_array_unref(problem->ids);
    g_free(problem);
}

Problem *
problem_load(const char *path, int64_t capacity, GError **error)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, error))
        return NULL;
    g_autoptr(Problem) problem = problem_new(path);
    problem->capacity = capacity >= 0 ? capacity : capacity_in(problem->name);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    if (!lines[0])
        return kiln_throw_null(error, KILN_ERROR_PARSE, "%s:1: expected the names of columns",
                               path);
    return parse_lines(problem, path, lines, error) ? g_steal_pointer(&problem) : NULL;
}
