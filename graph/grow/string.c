/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that grow. */
#include "graph/grow/string.h"

#include "graph/grow/reserve.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_ROOM = 64,
    SHORT = 256 /* bytes of a text that is formatted on the stack */
};

static const char a_text[] = "a text";

static gsize
length_of(const gchar *text, gssize length)
{
    return length < 0 ? strlen(text) : (gsize)length;
}

/* What @string holds is lost. The room goes back to the system, which others need now. */
static void
lose(KilnString *string)
{
    gchar *less = realloc(string->str, LEAST_ROOM);
    string->str = less ? less : string->str;
    string->allocated_len = LEAST_ROOM;
    string->len = 0;
    string->str[0] = '\0';
}

/* Makes room for @more bytes and the zero behind them. False: there is none, and @string is lost.
 */
static bool
make_room(KilnString *string, gsize more)
{
    gsize needed = string->len + more + 1;
    if (needed <= string->allocated_len)
        return true;
    gsize room = MAX(string->allocated_len, (gsize)LEAST_ROOM);
    while (room < needed)
        room *= 2;
    gchar *str = kiln_take_more_or_lose(string->str, room, a_text);
    if (!str) {
        lose(string);
        return false;
    }
    string->str = str;
    string->allocated_len = room;
    return true;
}

KilnString *
kiln_string_sized_new(gsize room)
{
    KilnString *string = kiln_take_zeros(1, sizeof *string, a_text);
    make_room(string, 0); /* what lose() leaves */
    string->str[0] = '\0';
    make_room(string, room);
    return string;
}

KilnString *
kiln_string_new_len(const gchar *text, gssize length)
{
    gsize n = text ? length_of(text, length) : 0;
    KilnString *string = kiln_string_sized_new(n);
    return text ? kiln_string_append_len(string, text, (gssize)n) : string;
}

KilnString *
kiln_string_new(const gchar *text)
{
    return kiln_string_new_len(text, -1);
}

gchar *
kiln_string_free(KilnString *string, gboolean text)
{
    gchar *left = text ? NULL : string->str;
    if (text)
        g_free(string->str);
    g_free(string);
    return left;
}

GBytes *
kiln_string_free_to_bytes(KilnString *string)
{
    gsize length = string->len;
    return g_bytes_new_take(kiln_string_free(string, FALSE), length);
}

/* The place @at; negative: the end. A place in what was lost is the end, too. */
static gsize
place_of(const KilnString *string, gssize at)
{
    return at < 0 ? string->len : MIN((gsize)at, string->len);
}

KilnString *
kiln_string_insert_len(KilnString *string, gssize at, const gchar *text, gssize length)
{
    gsize n = length_of(text, length);
    if (!make_room(string, n))
        return string;
    gsize to = place_of(string, at);
    memmove(string->str + to + n, string->str + to, string->len - to + 1);
    memcpy(string->str + to, text, n);
    string->len += n;
    return string;
}

KilnString *
kiln_string_insert(KilnString *string, gssize at, const gchar *text)
{
    return kiln_string_insert_len(string, at, text, -1);
}

KilnString *
kiln_string_append_len(KilnString *string, const gchar *text, gssize length)
{
    gsize n = length_of(text, length);
    if (!make_room(string, n))
        return string;
    memcpy(string->str + string->len, text, n);
    string->len += n;
    string->str[string->len] = '\0';
    return string;
}

KilnString *
kiln_string_append(KilnString *string, const gchar *text)
{
    return kiln_string_append_len(string, text, -1);
}

KilnString *
kiln_string_append_c(KilnString *string, gchar c)
{
    if (!make_room(string, 1))
        return string;
    string->str[string->len++] = c;
    string->str[string->len] = '\0';
    return string;
}

void
kiln_string_append_vprintf(KilnString *string, const gchar *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    gsize room = string->allocated_len - string->len;
    int n = vsnprintf(string->str + string->len, room, format, args);
    if (n > 0 && (gsize)n >= room) {
        string->str[string->len] = '\0';
        n = make_room(string, (gsize)n)
                ? vsnprintf(string->str + string->len, (gsize)n + 1, format, again)
                : 0;
    }
    va_end(again);
    if (n > 0)
        string->len += (gsize)n;
    string->str[string->len] = '\0';
}

void
kiln_string_append_printf(KilnString *string, const gchar *format, ...)
{
    va_list args;
    va_start(args, format);
    kiln_string_append_vprintf(string, format, args);
    va_end(args);
}

void
kiln_string_printf(KilnString *string, const gchar *format, ...)
{
    va_list args;
    va_start(args, format);
    kiln_string_truncate(string, 0);
    kiln_string_append_vprintf(string, format, args);
    va_end(args);
}

KilnString *
kiln_string_assign(KilnString *string, const gchar *text)
{
    return kiln_string_append(kiln_string_truncate(string, 0), text);
}

KilnString *
kiln_string_erase(KilnString *string, gssize at, gssize length)
{
    gsize from = place_of(string, at);
    gsize n = length < 0 ? string->len - from : MIN((gsize)length, string->len - from);
    memmove(string->str + from, string->str + from + n, string->len - from - n + 1);
    string->len -= n;
    return string;
}

KilnString *
kiln_string_truncate(KilnString *string, gsize length)
{
    string->len = MIN(length, string->len);
    string->str[string->len] = '\0';
    return string;
}

guint
kiln_string_replace(KilnString *string, const gchar *find, const gchar *by, guint limit)
{
    gsize n_find = strlen(find), n_by = strlen(by);
    guint n = 0;
    gsize at = 0;
    for (const gchar *found; n_find && (!limit || n < limit); n++) {
        found = strstr(string->str + at, find);
        if (!found)
            break;
        gssize where = found - string->str;
        kiln_string_erase(string, where, (gssize)n_find);
        kiln_string_insert_len(string, where, by, (gssize)n_by);
        at = place_of(string, where + (gssize)n_by);
    }
    return n;
}

/* --- pieces of memory --- */

static const char a_block[] = "a block";

/* What overflows is more than there is. */
static gsize
product(gsize count, gsize size)
{
    gsize bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes;
}

gpointer
kiln_malloc(gsize size)
{
    return kiln_take(size, a_block);
}

gpointer
kiln_malloc0(gsize size)
{
    return kiln_take_zeros(1, size, a_block);
}

gpointer
kiln_malloc_n(gsize count, gsize size)
{
    return kiln_take(product(count, size), a_block);
}

gpointer
kiln_malloc0_n(gsize count, gsize size)
{
    return kiln_take_zeros(count, size, a_block);
}

gpointer
kiln_realloc_n(gpointer memory, gsize count, gsize size)
{
    return kiln_take_more(memory, product(count, size), a_block);
}

gpointer
kiln_memdup(gconstpointer memory, gsize size)
{
    if (!memory || !size)
        return NULL;
    return memcpy(kiln_take(size, a_block), memory, size);
}

gchar *
kiln_strndup(const gchar *text, gsize n)
{
    if (!text)
        return NULL;
    gsize length = strnlen(text, n);
    gchar *copy = kiln_take(length + 1, a_text);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

gchar *
kiln_strdup(const gchar *text)
{
    return kiln_strndup(text, SIZE_MAX);
}

gchar *
kiln_strdup_vprintf(const gchar *format, va_list args)
{
    char on_stack[SHORT];
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(on_stack, sizeof on_stack, format, args);
    gsize length = n > 0 ? (gsize)n : 0;
    gchar *text = kiln_take(length + 1, a_text);
    if (length < sizeof on_stack)
        memcpy(text, on_stack, length + 1);
    else
        vsnprintf(text, length + 1, format, again);
    va_end(again);
    return text;
}

gchar *
kiln_strdup_printf(const gchar *format, ...)
{
    va_list args;
    va_start(args, format);
    gchar *text = kiln_strdup_vprintf(format, args);
    va_end(args);
    return text;
}

gchar *
kiln_strconcat(const gchar *first, ...)
{
    KilnString *whole = kiln_string_new(NULL);
    va_list args;
    va_start(args, first);
    for (const gchar *text = first; text; text = va_arg(args, const gchar *))
        kiln_string_append(whole, text);
    va_end(args);
    return kiln_string_free(whole, FALSE);
}

gchar **
kiln_strdupv(gchar **texts)
{
    if (!texts)
        return NULL;
    gsize n = g_strv_length(texts);
    gchar **copy = kiln_take((n + 1) * sizeof *copy, a_text);
    for (gsize i = 0; i <= n; i++)
        copy[i] = kiln_strdup(texts[i]);
    return copy;
}

gchar **
kiln_strsplit(const gchar *text, const gchar *delimiter, gint limit)
{
    gsize n_delimiter = strlen(delimiter);
    gsize n = 0, room = 8;
    gchar **parts = kiln_take(room * sizeof *parts, a_text);
    for (const gchar *end; *text; text = end + n_delimiter) {
        if (n + 3 > room) /* the last one, an empty one behind it, and the end */
            parts = kiln_take_more(parts, (room *= 2) * sizeof *parts, a_text);
        bool last = limit > 0 && n + 1 == (gsize)limit;
        end = last ? NULL : strstr(text, delimiter);
        parts[n++] = kiln_strndup(text, end ? (gsize)(end - text) : SIZE_MAX);
        if (!end)
            break;
        if (!end[n_delimiter])
            parts[n++] = kiln_strdup("");
    }
    parts[n] = NULL;
    return parts;
}

gchar *
kiln_utf8_make_valid(const gchar *text, gssize length)
{
    gsize left = length_of(text, length);
    KilnString *valid = kiln_string_sized_new(left);
    while (left) {
        const gchar *end;
        gboolean all = g_utf8_validate(text, (gssize)left, &end);
        kiln_string_append_len(valid, text, end - text);
        left -= (gsize)(end - text);
        if (all || !left)
            break;
        kiln_string_append(valid, "\357\277\275");
        text = end + 1;
        left--;
    }
    return kiln_string_free(valid, FALSE);
}

GBytes *
kiln_bytes_copy(gconstpointer data, gsize size)
{
    return g_bytes_new_take(kiln_memdup(data, size), size);
}
