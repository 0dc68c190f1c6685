/* SPDX-License-Identifier: Apache-2.0 */
/* A walk over the text of data.json, which needs no tree: json-glib aborts where memory runs out.
 */
#include "tools/tolerance.h"

#include "graph/error.h"

#include <math.h>
#include <string.h>

enum {
    DEPTH_MAX = 64
};

typedef struct {
    const char *text, *at;
} Walk;

static void
skip_space(Walk *walk)
{
    walk->at += strspn(walk->at, " \t\r\n");
}

static bool
accept(Walk *walk, char c)
{
    skip_space(walk);
    if (*walk->at != c)
        return false;
    walk->at++;
    return true;
}

static bool
skip_string(Walk *walk)
{
    if (!accept(walk, '"'))
        return false;
    for (; *walk->at && *walk->at != '"'; walk->at++) {
        if (*walk->at == '\\' && walk->at[1])
            walk->at++;
    }
    return accept(walk, '"');
}

static bool skip_value(Walk *walk, int depth);

/* The elements of a list, or the members of an object, to @end. */
static bool
skip_elements(Walk *walk, char end, int depth)
{
    walk->at++;
    if (accept(walk, end))
        return true;
    do {
        if (end == '}' && (!skip_string(walk) || !accept(walk, ':')))
            return false;
        if (!skip_value(walk, depth + 1))
            return false;
    } while (accept(walk, ','));
    return accept(walk, end);
}

static bool
skip_value(Walk *walk, int depth)
{
    skip_space(walk);
    if (depth > DEPTH_MAX)
        return false;
    if (*walk->at == '"')
        return skip_string(walk);
    if (*walk->at == '[' || *walk->at == '{')
        return skip_elements(walk, *walk->at == '[' ? ']' : '}', depth);
    size_t n = strspn(walk->at, "+-.0123456789abcdefghijklmnopqrstuvwxyzE");
    walk->at += n;
    return n > 0;
}

static gboolean
throw_malformed(const Walk *walk, GError **error)
{
    return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: malformed JSON",
                      (size_t)(walk->at - walk->text));
}

/* The value that @walk stands at: a number that a tolerance can be. */
static gboolean
read_number(Walk *walk, const char *key, double *out, GError **error)
{
    skip_space(walk);
    const char *start = walk->at;
    bool number = *start == '-' || g_ascii_isdigit(*start);
    if (!skip_value(walk, 0))
        return throw_malformed(walk, error);
    char *end;
    double value = number ? g_ascii_strtod(start, &end) : -1;
    if (!number || end != walk->at || !(value >= 0) || isinf(value))
        return kiln_throw(error, KILN_ERROR_FORMAT,
                          "%s: expected a number of 0 or more, found %.*s", key,
                          (int)(walk->at - start), start);
    *out = value;
    return TRUE;
}

static gboolean
read_member(Walk *walk, double *rtol, double *atol, GError **error)
{
    skip_space(walk);
    bool is_rtol = g_str_has_prefix(walk->at, "\"rtol\"");
    bool is_atol = g_str_has_prefix(walk->at, "\"atol\"");
    if (!skip_string(walk) || !accept(walk, ':'))
        return throw_malformed(walk, error);
    if (is_rtol || is_atol)
        return read_number(walk, is_rtol ? "rtol" : "atol", is_rtol ? rtol : atol, error);
    return skip_value(walk, 0) || throw_malformed(walk, error);
}

static gboolean
read_members(Walk *walk, double *rtol, double *atol, GError **error)
{
    if (!accept(walk, '{'))
        return kiln_throw(error, KILN_ERROR_FORMAT, "expected an object");
    bool end = accept(walk, '}');
    while (!end) {
        if (!read_member(walk, rtol, atol, error))
            return FALSE;
        end = accept(walk, '}');
        if (!end && !accept(walk, ','))
            return throw_malformed(walk, error);
    }
    skip_space(walk);
    return !*walk->at || throw_malformed(walk, error);
}

gboolean
kiln_tolerance_read(const char *path, double *rtol, double *atol, GError **error)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) inner = NULL;
    Walk walk = { 0 };
    if (g_file_get_contents(path, &text, NULL, &inner)) {
        walk = (Walk){ text, text };
        if (read_members(&walk, rtol, atol, &inner))
            return TRUE;
    }
    return kiln_throw(error, KILN_ERROR_FORMAT, "%s: %s", path, inner->message);
}
