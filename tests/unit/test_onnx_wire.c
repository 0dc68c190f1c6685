/* SPDX-License-Identifier: Apache-2.0 */
/* The protobuf reader and writer: limits, lengths, offsets, nesting. */
#include "graph/arena.h"
#include "graph/kiln-types.h"
#include "graph/onnx/wire.h"

#include <criterion/criterion.h>
#include <onnx.pb-c.h>
#include <string.h>

static KilnWire
over(const uint8_t *bytes, size_t size)
{
    return kiln_wire(bytes, (KilnSpan){ 0, size });
}

/* Reading one field fails with @message. */
static void
expect_bad(const uint8_t *bytes, size_t size, const char *message)
{
    KilnWire wire = over(bytes, size);
    KilnWireField field;
    g_autoptr(GError) error = NULL;
    while (kiln_wire_next(&wire, &field, &error))
        ;
    cr_assert_not_null(error, "expected '%s'", message);
    cr_expect_eq(error->code, (int)KILN_ERROR_FORMAT);
    cr_expect_str_eq(error->message, message);
}
#define BAD(message, ...)                                                                          \
    expect_bad((const uint8_t[]){ __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ }), message)

Test(onnx_wire, written_fields_read_back)
{
    g_autoptr(GByteArray) out = g_byte_array_new();
    kiln_wire_put_varint(out, 3, UINT64_MAX);
    kiln_wire_put_varint(out, 16, 300);
    kiln_wire_put_f32(out, 2, 1.5F);
    kiln_wire_put_text(out, 0x1FFFFFFF, "text");
    KilnWire wire = over(out->data, out->len);
    KilnWireField field;
    GError *error = NULL;
    cr_assert(kiln_wire_next(&wire, &field, &error));
    cr_expect(field.number == 3 && field.type == KILN_WIRE_VARINT && field.value == UINT64_MAX);
    cr_assert(kiln_wire_next(&wire, &field, &error));
    cr_expect(field.number == 16 && field.value == 300 && field.start == 11);
    cr_assert(kiln_wire_next(&wire, &field, &error));
    cr_expect(field.type == KILN_WIRE_FIXED32 && field.value == 0x3FC00000);
    cr_assert(kiln_wire_next(&wire, &field, &error));
    cr_expect(field.number == 0x1FFFFFFF && field.payload.length == 4);
    cr_expect(memcmp(out->data + field.payload.offset, "text", 4) == 0);
    cr_expect(!kiln_wire_next(&wire, &field, &error));
    cr_expect_null(error);
}

Test(onnx_wire, malformed_fields_are_named_by_offset)
{
    BAD("byte 0: a number is cut short", 0x80);
    BAD("byte 1: a number is cut short", 0x08, 0x80);
    BAD("byte 0: a field has an impossible number", 0x00, 0x01);
    BAD("byte 1: a number has more than 64 bits", 0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0xFF, 0xFF, 0x02);
    BAD("byte 1: a number has more than 64 bits", 0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0xFF, 0xFF, 0x81, 0x00);
    BAD("byte 2: field 1 claims 3 bytes, only 2 are left", 0x08, 0x01, 0x0A, 0x03, 'a', 'b');
    BAD("byte 0: field 1 claims 18446744073709551615 bytes, only 0 are left", 0x0A, 0xFF, 0xFF,
        0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01);
    BAD("byte 1: a number is cut short", 0x0D, 1, 2, 3);
    BAD("byte 1: a number is cut short", 0x09, 1, 2, 3, 4, 5, 6, 7);
    BAD("byte 0: field 1 has the wire type 3", 0x0B);
    BAD("byte 0: field 1 has the wire type 7", 0x0F);
}

/* Checks @out as a TensorProto. */
static void
expect_check(GByteArray *out, const char *message)
{
    g_autoptr(GError) error = NULL;
    bool good = kiln_wire_check(out->data, (KilnSpan){ 0, out->len },
                                &onnx__tensor_proto__descriptor, 0, &error);
    cr_expect_eq(good, message == NULL);
    if (message)
        cr_expect_str_eq(error->message, message);
}

Test(onnx_wire, fields_are_checked_against_the_schema)
{
    g_autoptr(GByteArray) out = g_byte_array_new();
    kiln_wire_put_varint(out, 1, 2);            /* dims, one by one */
    kiln_wire_put_bytes(out, 1, "\x02\x03", 2); /* and packed */
    kiln_wire_put_bytes(out, 4, "\0\0\0\0", 4); /* float_data, packed */
    kiln_wire_put_f32(out, 4, 1);               /* and single */
    kiln_wire_put_text(out, 12, "\xFF");        /* doc_string: any encoding */
    kiln_wire_put_bytes(out, 9, "\xFF\xFE", 2); /* raw_data */
    kiln_wire_put_varint(out, 99, 1);           /* of a later version */
    expect_check(out, NULL);
    guint good = out->len;

    kiln_wire_put_text(out, 8, "\xC3");
    expect_check(out, "byte 27: field name is not UTF-8 text");
    g_byte_array_set_size(out, good);
    kiln_wire_put_bytes(out, 8, "a\0b", 3);
    expect_check(out, "byte 27: field name is not UTF-8 text");
    g_byte_array_set_size(out, good);
    kiln_wire_put_varint(out, 8, 1);
    expect_check(out, "byte 27: field name: expected wire type 2, found 0");
    g_byte_array_set_size(out, good);
    kiln_wire_put_f32(out, 2, 1);
    expect_check(out, "byte 27: field data_type: expected wire type 0, found 5");
    g_byte_array_set_size(out, good);
    kiln_wire_put_bytes(out, 4, "\0\0\0", 3);
    expect_check(out, "byte 29: packed numbers are cut short");
    g_byte_array_set_size(out, good);
    kiln_wire_put_bytes(out, 7, "\x80", 1);
    expect_check(out, "byte 29: a number is cut short");
}

/* A TypeProto of sequences in sequences. */
static GByteArray *
nested(int depth)
{
    GByteArray *inner = g_byte_array_new();
    for (int i = 0; i < depth; i++) {
        g_autoptr(GByteArray) sequence = g_byte_array_new();
        g_autoptr(GByteArray) type = g_byte_array_new();
        kiln_wire_put_message(sequence, 1, inner);
        kiln_wire_put_message(type, 4, sequence);
        g_byte_array_unref(inner);
        inner = g_steal_pointer(&type);
    }
    return inner;
}

Test(onnx_wire, nesting_is_bounded)
{
    g_autoptr(KilnArena) arena = kiln_arena_new();
    g_autoptr(GByteArray) shallow = nested(KILN_WIRE_MAX_DEPTH / 2);
    g_autoptr(GByteArray) deep = nested(KILN_WIRE_MAX_DEPTH / 2 + 1);
    g_autoptr(GError) error = NULL;
    cr_expect_not_null(kiln_wire_unpack(shallow->data, (KilnSpan){ 0, shallow->len }, NULL,
                                        &onnx__type_proto__descriptor, arena, &error));
    cr_expect_null(kiln_wire_unpack(deep->data, (KilnSpan){ 0, deep->len }, NULL,
                                    &onnx__type_proto__descriptor, arena, &error));
    cr_expect(strstr(error->message, "messages are nested too deeply") != NULL);
}

Test(onnx_wire, unpacking_leaves_out_holes)
{
    g_autoptr(KilnArena) arena = kiln_arena_new();
    g_autoptr(GByteArray) out = g_byte_array_new();
    kiln_wire_put_varint(out, 1, 4);
    KilnSpan first = { out->len, 0 };
    kiln_wire_put_bytes(out, 9, "0123456789", 10);
    first.length = out->len - first.offset;
    kiln_wire_put_text(out, 8, "name");
    KilnSpan second = { out->len, 0 };
    kiln_wire_put_bytes(out, 9, "0123456789", 10);
    second.length = out->len - second.offset;
    g_autoptr(GArray) holes = g_array_new(FALSE, FALSE, sizeof(KilnSpan));
    g_array_append_val(holes, first);
    g_array_append_val(holes, second);
    GError *error = NULL;
    const Onnx__TensorProto *tensor =
        kiln_wire_unpack(out->data, (KilnSpan){ 0, out->len }, holes,
                         &onnx__tensor_proto__descriptor, arena, &error);
    cr_assert_not_null(tensor);
    cr_expect(tensor->n_dims == 1 && tensor->dims[0] == 4);
    cr_expect_str_eq(tensor->name, "name");
    cr_expect(!tensor->has_raw_data);
}
