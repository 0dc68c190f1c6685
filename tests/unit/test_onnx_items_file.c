/* SPDX-License-Identifier: Apache-2.0 */
/* SequenceProto, OptionalProto and MapProto: what is written is read again, and what contradicts
 * itself is refused. */
#include "graph/error.h"
#include "graph/kiln-items.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/wire.h"
#include "graph/type.h"

#include <criterion/criterion.h>
#include <string.h>

static KilnType
kind(KilnDType dtype)
{
    return kiln_type_scalar(dtype);
}

static GBytes *
bytes_of(GByteArray *message)
{
    return g_byte_array_free_to_bytes(message);
}

static KilnItem *
floats(int64_t n, float first)
{
    float values[4] = { first, first + 1, first + 2, first + 3 };
    KilnItem *item = kiln_item_new_tensor(KILN_DTYPE_f32, 1, &n, values, NULL);
    cr_assert_not_null(item);
    return item;
}

static KilnItem *
numbered_map(void)
{
    const int64_t keys[] = { -3, 7 }, n = 2;
    g_autoptr(KilnItem) k = kiln_item_new_tensor(KILN_DTYPE_i64, 1, &n, keys, NULL);
    g_autoptr(KilnItem) v = floats(2, 0.5f);
    return kiln_item_new_map(k, v, NULL);
}

static KilnItem *
worded_map(void)
{
    const KilnText a = { "a", 1 }, empty = { "", 0 };
    const KilnText *const keys[] = { &a, &empty };
    const int64_t n = 2;
    g_autoptr(KilnItem) k = kiln_item_new_tensor(KILN_DTYPE_string, 1, &n, keys, NULL);
    g_autoptr(KilnItem) v = kiln_item_new_tensor(KILN_DTYPE_string, 1, &n, keys, NULL);
    return kiln_item_new_map(k, v, NULL);
}

/* Takes @item over. */
static void
expect_back(KilnItem *item)
{
    cr_assert_not_null(item);
    const KilnType type = kind(kiln_item_dtype(item));
    GByteArray *out = g_byte_array_new();
    g_autoptr(GError) error = NULL;
    cr_assert(kiln_onnx_item_write(item, type.dtype, "x", out, &error));
    g_autoptr(GBytes) bytes = bytes_of(out);
    g_autoptr(KilnItem) back = kiln_onnx_item_parse(bytes, NULL, &type, &error);
    cr_assert(back, "%s", error ? error->message : "");
    cr_expect(kiln_item_equal(item, back));
    for (size_t n = 1; n < g_bytes_get_size(bytes); n++) { /* no part of it breaks the reader */
        g_autoptr(GBytes) cut = g_bytes_new_from_bytes(bytes, 0, n);
        g_autoptr(GError) why = NULL;
        g_autoptr(KilnItem) part = kiln_onnx_item_parse(cut, NULL, &type, &why);
        cr_expect(!part == (why != NULL));
    }
    kiln_item_unref(item);
}

static KilnItem *
sequence_of(KilnItem *a, KilnItem *b)
{
    KilnItem *items[] = { a, b };
    KilnItem *sequence = kiln_item_new_sequence(items, 2, NULL);
    kiln_item_unref(a);
    kiln_item_unref(b);
    return sequence;
}

static KilnItem *
optional_of(KilnItem *item)
{
    KilnItem *optional = kiln_item_new_optional(item, NULL);
    kiln_item_unref(item);
    return optional;
}

Test(onnx_items_file, all_kinds_are_read_again)
{
    expect_back(sequence_of(floats(3, 1), floats(0, 0)));
    expect_back(sequence_of(numbered_map(), numbered_map()));
    expect_back(kiln_item_new_sequence(NULL, 0, NULL));
    expect_back(optional_of(floats(2, 1)));
    expect_back(optional_of(sequence_of(floats(1, 1), floats(2, 2))));
    expect_back(optional_of(numbered_map()));
    expect_back(kiln_item_new_optional(NULL, NULL));
    expect_back(numbered_map());
    expect_back(worded_map());
}

Test(onnx_items_file, nothing_is_an_empty_one)
{
    const KilnDType kinds[] = { KILN_DTYPE_sequence, KILN_DTYPE_optional };
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        const KilnType type = kind(kinds[i]);
        GByteArray *out = g_byte_array_new();
        cr_assert(kiln_onnx_item_write(NULL, type.dtype, "x", out, NULL));
        g_autoptr(GBytes) bytes = bytes_of(out);
        g_autoptr(KilnItem) back = kiln_onnx_item_parse(bytes, NULL, &type, NULL);
        cr_assert_not_null(back);
        cr_expect(kiln_item_length(back) == 0);
        g_autoptr(GBytes) none = g_bytes_new(NULL, 0);
        g_autoptr(KilnItem) also = kiln_onnx_item_parse(none, NULL, &type, NULL);
        cr_assert_not_null(also);
    }
}

/* --- messages of others --- */

static void
put_floats(GByteArray *out, uint32_t field, const char *dims, const float *values, size_t n)
{
    g_autoptr(GByteArray) tensor = g_byte_array_new();
    for (const char *dim = dims; *dim; dim++)
        kiln_wire_put_varint(tensor, 1, (uint64_t)(*dim - '0'));
    kiln_wire_put_varint(tensor, 2, 1);
    kiln_wire_put_bytes(tensor, 9, values, n * sizeof *values);
    kiln_wire_put_message(out, field, tensor);
}

/* A map with keys 1 and 2, packed or not, and one tensor for all values. */
static GByteArray *
map_of_one_tensor(bool packed, const char *dims, size_t n)
{
    static const float numbers[] = { 5, 6, 7 };
    GByteArray *map = g_byte_array_new();
    g_autoptr(GByteArray) values = g_byte_array_new();
    kiln_wire_put_varint(values, 2, 1);
    put_floats(values, 3, dims, numbers, n);
    kiln_wire_put_message(map, 5, values);
    if (packed) {
        kiln_wire_put_bytes(map, 3, "\1\2", 2);
    } else {
        kiln_wire_put_varint(map, 3, 1);
        kiln_wire_put_varint(map, 3, 2);
    }
    kiln_wire_put_varint(map, 2, 7);
    return map;
}

static void
expect_map_of_one_tensor(bool packed)
{
    const KilnType type = kind(KILN_DTYPE_map);
    g_autoptr(GBytes) bytes = bytes_of(map_of_one_tensor(packed, "2", 2));
    g_autoptr(KilnItem) map = kiln_onnx_item_parse(bytes, NULL, &type, NULL);
    cr_assert_not_null(map);
    const int64_t *keys = kiln_item_data(kiln_item_get(map, 0));
    const float *values = kiln_item_data(kiln_item_get(map, 1));
    cr_expect(keys[0] == 1 && keys[1] == 2 && values[0] == 5 && values[1] == 6);
}

Test(onnx_items_file, values_of_a_map_may_be_one_tensor)
{
    expect_map_of_one_tensor(false);
    expect_map_of_one_tensor(true);
}

/* Takes @message over. */
static void
expect_refused(KilnDType dtype, GByteArray *message, int code, const char *text)
{
    const KilnType type = kind(dtype);
    g_autoptr(GBytes) bytes = bytes_of(message);
    g_autoptr(GError) error = NULL;
    g_autoptr(KilnItem) item = kiln_onnx_item_parse(bytes, "dir/x.pb", &type, &error);
    cr_assert_null(item);
    cr_expect_eq(error->code, code, "%s", error->message);
    cr_expect(g_str_has_prefix(error->message, "dir/x.pb: "), "%s", error->message);
    cr_expect(strstr(error->message, text), "%s", error->message);
}

static GByteArray *
parts(uint64_t elem_type, uint32_t field, int n)
{
    static const float number = 1;
    GByteArray *out = g_byte_array_new();
    kiln_wire_put_varint(out, 2, elem_type);
    for (int i = 0; i < n; i++)
        put_floats(out, field, "", &number, 1);
    return out;
}

Test(onnx_items_file, sequences_that_contradict_themselves)
{
    const KilnDType sequence = KILN_DTYPE_sequence, optional = KILN_DTYPE_optional;
    expect_refused(sequence, parts(4, 3, 1), KILN_ERROR_FORMAT,
                   "expected maps by its elem_type, found tensors");
    expect_refused(sequence, parts(0, 3, 1), KILN_ERROR_FORMAT, "expected nothing by");
    expect_refused(sequence, parts(99, 3, 1), KILN_ERROR_FORMAT, "parts of an unknown kind");
    expect_refused(sequence, parts(2, 4, 1), KILN_ERROR_UNSUPPORTED, "found sparse tensors");
    expect_refused(sequence, parts(3, 5, 1), KILN_ERROR_UNSUPPORTED, "found sequences");
    expect_refused(sequence, parts(5, 7, 1), KILN_ERROR_UNSUPPORTED, "found optionals");
    expect_refused(optional, parts(5, 7, 1), KILN_ERROR_UNSUPPORTED, "found optionals");
    expect_refused(optional, parts(1, 3, 2), KILN_ERROR_FORMAT, "expected one value, found 2");
    GByteArray *two = parts(1, 3, 1);
    put_floats(two, 6, "", (const float[]){ 1 }, 1);
    expect_refused(sequence, two, KILN_ERROR_FORMAT, "found fields 3 and 6");
    GByteArray *number = g_byte_array_new();
    kiln_wire_put_varint(number, 3, 1);
    expect_refused(sequence, number, KILN_ERROR_FORMAT, "field 3: expected a message");
    GByteArray *types = parts(1, 3, 1);
    kiln_wire_put_bytes(types, 3, "\x10\x07\x4a\x08\0\0\0\0\0\0\0\0", 12);
    expect_refused(sequence, types, KILN_ERROR_FORMAT, "found i64 behind f32");
    GByteArray *cut = parts(1, 3, 1);
    put_floats(cut, 3, "2", (const float[]){ 1 }, 1);
    expect_refused(sequence, cut, KILN_ERROR_FORMAT, "item 1: byte ");
}

Test(onnx_items_file, maps_that_contradict_themselves)
{
    const KilnDType map = KILN_DTYPE_map;
    expect_refused(map, g_byte_array_new(), KILN_ERROR_UNSUPPORTED,
                   "expected keys of int64 or string, found undefined");
    expect_refused(map, map_of_one_tensor(true, "3", 3), KILN_ERROR_FORMAT,
                   "expected a value for each of 2 keys, found 3");
    expect_refused(map, map_of_one_tensor(true, "12", 2), KILN_ERROR_FORMAT,
                   "value 0: expected a tensor of one element");
    GByteArray *mixed = map_of_one_tensor(true, "2", 2);
    kiln_wire_put_text(mixed, 4, "a");
    expect_refused(map, mixed, KILN_ERROR_FORMAT, "expected keys of numbers, found strings");
    GByteArray *cut = map_of_one_tensor(true, "2", 2);
    kiln_wire_put_bytes(cut, 3, "\x80", 1);
    expect_refused(map, cut, KILN_ERROR_FORMAT, "a packed key is cut off");
    GByteArray *twice = map_of_one_tensor(true, "2", 2);
    kiln_wire_put_bytes(twice, 5, "", 0);
    expect_refused(map, twice, KILN_ERROR_FORMAT, "a map has values twice");
    GByteArray *texts = g_byte_array_new();
    kiln_wire_put_varint(texts, 2, 8);
    kiln_wire_put_bytes(texts, 4, "\xff", 1);
    expect_refused(map, texts, KILN_ERROR_FORMAT, "the keys of a map");
}
