/* SPDX-License-Identifier: Apache-2.0 */
/* A walk over the text of data.json, which needs no tree: json-glib aborts where memory runs out.
 */
#include "tools/tolerance.h"

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

/* The value that @walk stands at: a number that a tolerance can be. */
static gboolean
read_number(Walk *walk, const char *key, double *out, GError **error)
{
    skip_space(walk);
    const char *start = walk->at;
    bool number = *start == '-' || g_ascii_isdigit(*start);
    if (!skip_value(walk, 0))
        return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: malformed JSON",
                          (size_t)(walk->at - walk->text));
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
read_members(Walk *walk, double *rtol, double *atol, GError **error)
{
    if (!accept(walk, '{'))
        return kiln_throw(error, KILN_ERROR_FORMAT, "expected an object");
    bool good = accept(walk, '}');
    if (!good) {
        do {
            skip_space(walk);
            const char *key = walk->at;
            double ignored, *out = g_str_has_prefix(key, "\"rtol\"")   ? rtol
                                   : g_str_has_prefix(key, "\"atol\"") ? atol
                                                                       : &ignored;
            if (!skip_string(walk) || !accept(walk, ':'))
                break;
            if (out == &ignored ? !skip_value(walk, 0)
                                : !read_number(walk, out == rtol ? "rtol" : "atol", out, error))
                break;
        } while (accept(walk, ','));
        good = accept(walk, '}');
    }
    if (error && *error)
        return FALSE;
    skip_space(walk);
    if (!good || *walk->at)
        return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: malformed JSON",
                          (size_t)(walk->at - walk->text));
    return TRUE;
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
