/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of type string, and blocks that hold them with their texts. */
#include "graph/texts.h"

#include "graph/base/alloc.h"
#include "graph/error.h"

#include <string.h>

/* A text in a block: its head, its bytes, a zero behind them, up to the next head. */
static size_t
room_of(size_t length)
{
    size_t size = sizeof(KilnText) + length + 1, mask = sizeof(KilnText) - 1;
    return length > SIZE_MAX / 2 ? SIZE_MAX / 2 : (size + mask) & ~mask;
}

/* What poison left: no code reads it but by mistake, and the mistake is to be seen, not to crash.
 */
static const KilnText poison = { "\xEF\xBF\xBDpoison", 9 };

KilnText
kiln_text_of(const KilnText *element)
{
    const KilnText empty = { "", 0 };
    return !element ? empty : (uintptr_t)element == UINTPTR_MAX ? poison : *element;
}

bool
kiln_text_equal(const KilnText *a, const KilnText *b)
{
    KilnText x = kiln_text_of(a), y = kiln_text_of(b);
    return a == b || (x.length == y.length && (!x.length || !memcmp(x.text, y.text, x.length)));
}

int
kiln_text_compare(const KilnText *a, const KilnText *b)
{
    KilnText x = kiln_text_of(a), y = kiln_text_of(b);
    size_t common = MIN(x.length, y.length);
    int order = common ? memcmp(x.text, y.text, common) : 0;
    return order ? order : x.length < y.length ? -1 : x.length > y.length;
}

uint64_t
kiln_text_hash(const KilnText *element)
{
    KilnText text = kiln_text_of(element);
    uint64_t hash = UINT64_C(0xCBF29CE484222325); /* FNV-1a */
    for (size_t i = 0; i < text.length; i++)
        hash = (hash ^ (uint8_t)text.text[i]) * UINT64_C(0x100000001B3);
    return hash ^ hash >> 32;
}

/* --- UTF-8 --- */

/* Bytes of the character at @at, of which @left follow; 0: there is none. */
static size_t
character(const uint8_t *at, size_t left)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t n = at[0] < 0x80 ? 1 : at[0] < 0xC2 ? 0 : at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : 4;
    if (n < 2)
        return n;
    if (at[0] > 0xF4 || n > left)
        return 0;
    uint32_t code = at[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3Fu);
    }
    bool surrogate = code >= 0xD800 && code < 0xE000;
    return code < least[n] || code > 0x10FFFF || surrogate ? 0 : n;
}

bool
kiln_text_is_utf8(const char *text, size_t length)
{
    const uint8_t *at = (const uint8_t *)text;
    for (size_t i = 0; i < length;) {
        size_t n = character(at + i, length - i);
        if (!n)
            return false;
        i += n;
    }
    return true;
}

gboolean
kiln_texts_check(const KilnText *const *elements, int64_t n, const char *what, GError **error)
{
    for (int64_t i = 0; i < n; i++) {
        const KilnText text = kiln_text_of(elements[i]);
        if (text.length && (!text.text || !kiln_text_is_utf8(text.text, text.length)))
            return kiln_throw(error, KILN_ERROR_FORMAT,
                              "%s: expected UTF-8, found other bytes in element %" G_GINT64_FORMAT,
                              what, i);
    }
    return TRUE;
}

/* --- blocks --- */

/* A block for @n elements and texts of @room bytes; @out_texts begins the texts. */
static GBytes *
new_block(int64_t n, size_t room, const KilnText ***out_elements, char **out_texts, GError **error)
{
    size_t unit = sizeof(KilnText),
           elements = ((size_t)n * sizeof(KilnText *) + unit - 1) & ~(unit - 1);
    void *memory;
    if (n < 0 || (size_t)n > SIZE_MAX / 4 / sizeof(KilnText *))
        elements = SIZE_MAX / 2;
    g_autoptr(GBytes) block = kiln_bytes_new(1, elements + room, &memory, error);
    if (!block)
        return NULL;
    *out_elements = memory;
    *out_texts = (char *)memory + elements;
    return g_bytes_new_from_bytes(block, 0, (size_t)n * sizeof(KilnText *));
}

/* A text at *@at, which moves on. */
static const KilnText *
put(char **at, const char *text, size_t length)
{
    KilnText *head = (KilnText *)(void *)*at;
    char *bytes = *at + sizeof *head;
    if (!length)
        return NULL;
    *head = (KilnText){ bytes, length };
    memcpy(bytes, text, length);
    bytes[length] = '\0';
    *at += room_of(length);
    return head;
}

GBytes *
kiln_texts_copy(const KilnText *const *elements, int64_t n, GError **error)
{
    size_t room = 0;
    const KilnText **copies;
    char *at;
    for (int64_t i = 0; i < n; i++) {
        const KilnText text = kiln_text_of(elements[i]);
        bool again = i && elements[i] == elements[i - 1];
        room += text.length && !again ? room_of(text.length) : 0;
    }
    g_autoptr(GBytes) bytes = new_block(n, room, &copies, &at, error);
    for (int64_t i = 0; bytes && i < n; i++) {
        const KilnText text = kiln_text_of(elements[i]);
        bool again = i && elements[i] == elements[i - 1];
        copies[i] = again ? copies[i - 1] : put(&at, text.text, text.length);
    }
    return g_steal_pointer(&bytes);
}

GBytes *
kiln_texts_repeat(const KilnText *element, int64_t n, GError **error)
{
    const KilnText text = kiln_text_of(element), **copies;
    char *at;
    g_autoptr(GBytes) bytes =
        new_block(n, text.length ? room_of(text.length) : 0, &copies, &at, error);
    for (int64_t i = 0; bytes && i < n; i++)
        copies[i] = i ? copies[0] : put(&at, text.text, text.length);
    return g_steal_pointer(&bytes);
}

GBytes *
kiln_texts_own(const KilnText *element)
{
    const KilnText text = kiln_text_of(element);
    const size_t head = sizeof(KilnText); /* room of the element, too */
    char *block = g_malloc0(2 * head + text.length + 1), *at = block + head;
    const KilnText *copy = put(&at, text.text, text.length);
    memcpy(block, &copy, sizeof copy);
    return g_bytes_new_with_free_func(block, sizeof copy, g_free, block);
}

GBytes *
kiln_texts_store(const KilnText *const *elements, int64_t n, GError **error)
{
    size_t head = ((size_t)n + 1) * sizeof(uint64_t), size = head;
    void *memory;
    for (int64_t i = 0; i < n; i++)
        size += kiln_text_of(elements[i]).length;
    g_autoptr(GBytes) bytes = kiln_bytes_new(1, size, &memory, error);
    if (!bytes)
        return NULL;
    uint64_t *offsets = memory;
    char *texts = (char *)memory + head;
    offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        const KilnText text = kiln_text_of(elements[i]);
        if (text.length)
            memcpy(texts + offsets[i], text.text, text.length);
        offsets[i + 1] = offsets[i] + text.length;
    }
    return g_steal_pointer(&bytes);
}

static uint64_t
offset_at(const void *stored, int64_t i)
{
    uint64_t offset; /* a file may have it at any address */
    memcpy(&offset, (const char *)stored + (size_t)i * sizeof offset, sizeof offset);
    return offset;
}

/* The stored offsets rise from 0 to the number of bytes behind them; *@room: of the texts. */
static bool
check_offsets(const void *stored, size_t size, int64_t n, size_t *room)
{
    size_t head = ((size_t)n + 1) * sizeof(uint64_t);
    *room = 0;
    if (n < 0 || (size_t)n >= SIZE_MAX / sizeof(uint64_t) - 1 || size < head ||
        offset_at(stored, 0) != 0 || offset_at(stored, n) != size - head)
        return false;
    for (int64_t i = 0; i < n; i++) {
        uint64_t begin = offset_at(stored, i), end = offset_at(stored, i + 1);
        if (begin > end || end > size - head)
            return false;
        *room += end > begin ? room_of(end - begin) : 0;
    }
    return true;
}

GBytes *
kiln_texts_load(const void *stored, size_t size, int64_t n, GError **error)
{
    size_t room;
    const KilnText **elements;
    char *at;
    if (!check_offsets(stored, size, n, &room))
        return kiln_throw_null(error, KILN_ERROR_FORMAT,
                               "expected offsets of %" G_GINT64_FORMAT " strings and their bytes",
                               n);
    g_autoptr(GBytes) bytes = new_block(n, room, &elements, &at, error);
    const char *texts = (const char *)stored + ((size_t)n + 1) * sizeof(uint64_t);
    for (int64_t i = 0; bytes && i < n; i++) {
        uint64_t begin = offset_at(stored, i);
        elements[i] = put(&at, texts + begin, offset_at(stored, i + 1) - begin);
    }
    return bytes && kiln_texts_check(elements, n, "a stored string", error)
               ? g_steal_pointer(&bytes)
               : NULL;
}
