/* SPDX-License-Identifier: Apache-2.0 */
/* JSON, value by value. A document grows with the model that it describes, so its text is the only
 * memory that writing takes. */
#include "graph/base/json_writer.h"

#include "graph/base/number.h"

#include <math.h>
#include <string.h>

enum {
    INDENT = 2,
    DELETE = 0x7f,
    LAST_CONTROL = 0x9f /* of those behind DELETE */
};

static bool
is_control(gunichar c)
{
    return c < ' ' || (c >= DELETE && c <= LAST_CONTROL);
}

static void
append_escaped(GString *out, gunichar c)
{
    static const char named[] = "\b\f\n\r\t\"\\", letters[] = "bfnrt\"\\";
    const char *at = c && c < DELETE ? strchr(named, (int)c) : NULL;
    if (at)
        g_string_append_printf(out, "\\%c", letters[at - named]);
    else
        g_string_append_printf(out, "\\u%04x", c);
}

/* @length bytes of UTF-8. */
static void
append_valid(GString *out, const char *text, size_t length)
{
    const char *plain = text, *end = text + length;
    for (const char *c = text; c < end; c = g_utf8_next_char(c)) {
        gunichar one = g_utf8_get_char(c);
        if (!is_control(one) && one != '"' && one != '\\')
            continue;
        g_string_append_len(out, plain, c - plain);
        append_escaped(out, one);
        plain = g_utf8_next_char(c);
    }
    g_string_append_len(out, plain, end - plain);
}

/* g_utf8_make_valid() would replace zeros, too. Each piece between zeros is made valid by itself.
 */
static void
append_string(GString *out, const char *text, size_t length)
{
    const char *end = text + length;
    g_string_append_c(out, '"');
    for (const char *at = text; at < end; at++) {
        const char *zero = memchr(at, '\0', (size_t)(end - at));
        const char *stop = zero ? zero : end;
        g_autofree char *piece = g_utf8_make_valid(at, stop - at);
        append_valid(out, piece, strlen(piece));
        if (zero)
            append_escaped(out, 0);
        at = stop;
    }
    g_string_append_c(out, '"');
}

static void
new_line(KilnJson *json)
{
    if (json->pretty)
        g_string_append_printf(json->out, "\n%*s", (int)json->depth * INDENT, "");
}

/* What stands before a value. */
static void
begin_value(KilnJson *json, const char *key)
{
    if (json->filled)
        g_string_append_c(json->out, ',');
    if (json->depth)
        new_line(json);
    json->filled = true;
    if (!key)
        return;
    append_string(json->out, key, strlen(key));
    g_string_append(json->out, json->pretty ? " : " : ":");
}

static void
begin(KilnJson *json, const char *key, char bracket)
{
    begin_value(json, key);
    g_string_append_c(json->out, bracket);
    json->depth++;
    json->filled = false;
}

static void
end(KilnJson *json, char bracket)
{
    json->depth--;
    if (json->filled)
        new_line(json);
    g_string_append_c(json->out, bracket);
    json->filled = true;
}

void
kiln_json_object(KilnJson *json, const char *key)
{
    begin(json, key, '{');
}

void
kiln_json_end_object(KilnJson *json)
{
    end(json, '}');
}

void
kiln_json_array(KilnJson *json, const char *key)
{
    begin(json, key, '[');
}

void
kiln_json_end_array(KilnJson *json)
{
    end(json, ']');
}

void
kiln_json_string(KilnJson *json, const char *key, const char *value)
{
    begin_value(json, key);
    if (value)
        append_string(json->out, value, strlen(value));
    else
        g_string_append(json->out, "null");
}

void
kiln_json_text(KilnJson *json, const char *key, const char *value, size_t length)
{
    begin_value(json, key);
    append_string(json->out, value, length);
}

void
kiln_json_int(KilnJson *json, const char *key, int64_t value)
{
    begin_value(json, key);
    g_string_append_printf(json->out, "%" G_GINT64_FORMAT, value);
}

void
kiln_json_number(KilnJson *json, const char *key, double value)
{
    if (!isfinite(value)) {
        kiln_json_null(json, key);
        return;
    }
    begin_value(json, key);
    gsize start = json->out->len;
    kiln_print_f64(json->out, value);
    /* A reader that tells numbers from integers sees a number, whatever the value. */
    if (json->out->len > start && !strpbrk(json->out->str + start, ".e"))
        g_string_append(json->out, ".0");
}

void
kiln_json_bool(KilnJson *json, const char *key, bool value)
{
    begin_value(json, key);
    g_string_append(json->out, value ? "true" : "false");
}

void
kiln_json_null(KilnJson *json, const char *key)
{
    begin_value(json, key);
    g_string_append(json->out, "null");
}

void
kiln_json_type(KilnJson *json, const char *key, const KilnType *type)
{
    g_autofree char *text = kiln_type_to_string(type);
    kiln_json_string(json, key, text);
}
