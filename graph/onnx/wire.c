/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, checking, unpacking and writing of the protobuf wire format. */
#include "graph/onnx/wire.h"

#include "graph/error.h"

#include <string.h>

/* --- reading --- */

static bool
malformed(GError **error, size_t offset, const char *what)
{
    return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: %s", offset, what);
}

static bool
read_varint(KilnWire *wire, uint64_t *out, GError **error)
{
    size_t start = wire->at;
    *out = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (wire->at == wire->end)
            return malformed(error, start, "a number is cut short");
        uint8_t byte = wire->base[wire->at++];
        if (shift < 63 || byte <= 1)
            *out |= (uint64_t)(byte & 0x7F) << shift;
        else
            return malformed(error, start, "a number has more than 64 bits");
        if (!(byte & 0x80))
            return true;
    }
    return malformed(error, start, "a number has more than 64 bits");
}

static bool
read_fixed(KilnWire *wire, size_t size, uint64_t *out, GError **error)
{
    if (wire->end - wire->at < size)
        return malformed(error, wire->at, "a number is cut short");
    *out = 0;
    for (size_t i = 0; i < size; i++)
        *out |= (uint64_t)wire->base[wire->at + i] << (8 * i);
    wire->at += size;
    return true;
}

bool
kiln_wire_next(KilnWire *wire, KilnWireField *out, GError **error)
{
    if (wire->at == wire->end)
        return false;
    *out = (KilnWireField){ .start = wire->at };
    uint64_t tag;
    if (!read_varint(wire, &tag, error))
        return false;
    if (tag >> 3 == 0 || tag >> 3 > 0x1FFFFFFF)
        return malformed(error, out->start, "a field has an impossible number");
    out->number = (uint32_t)(tag >> 3);
    out->type = (KilnWireType)(tag & 7);
    size_t start = wire->at;
    switch (out->type) {
    case KILN_WIRE_VARINT:
        if (!read_varint(wire, &out->value, error))
            return false;
        break;
    case KILN_WIRE_FIXED64:
        if (!read_fixed(wire, 8, &out->value, error))
            return false;
        break;
    case KILN_WIRE_FIXED32:
        if (!read_fixed(wire, 4, &out->value, error))
            return false;
        break;
    case KILN_WIRE_BYTES: {
        uint64_t length;
        if (!read_varint(wire, &length, error))
            return false;
        if (length > wire->end - wire->at)
            return kiln_throw(error, KILN_ERROR_FORMAT,
                              "byte %zu: field %u claims %" G_GUINT64_FORMAT
                              " bytes, only %zu are left",
                              out->start, out->number, length, wire->end - wire->at);
        start = wire->at;
        wire->at += (size_t)length;
        break;
    }
    default:
        return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: field %u has the wire type %u",
                          out->start, out->number, (unsigned)out->type);
    }
    out->payload = (KilnSpan){ start, wire->at - start };
    return true;
}

/* --- checking against a descriptor --- */

static KilnWireType
expected_type(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return KILN_WIRE_FIXED32;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return KILN_WIRE_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return KILN_WIRE_BYTES;
    default:
        return KILN_WIRE_VARINT;
    }
}

/* A repeated number may come packed: many in one stretch of bytes. */
static gboolean
check_packed(const uint8_t *base, KilnSpan span, KilnWireType type, GError **error)
{
    size_t unit = type == KILN_WIRE_FIXED32 ? 4 : 8;
    if (type != KILN_WIRE_VARINT)
        return span.length % unit == 0 ||
               malformed(error, span.offset, "packed numbers are cut short");
    KilnWire wire = kiln_wire(base, span);
    uint64_t value;
    while (wire.at < wire.end) {
        if (!read_varint(&wire, &value, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
check_field(const uint8_t *base, const KilnWireField *field, const ProtobufCFieldDescriptor *row,
            int depth, GError **error)
{
    KilnWireType expected = expected_type(row->type);
    if (row->label == PROTOBUF_C_LABEL_REPEATED && field->type == KILN_WIRE_BYTES &&
        expected != KILN_WIRE_BYTES)
        return check_packed(base, field->payload, expected, error);
    if (field->type != expected)
        return kiln_throw(error, KILN_ERROR_FORMAT,
                          "byte %zu: field %s: expected wire type %u, found %u", field->start,
                          row->name, expected, field->type);
    if (row->type == PROTOBUF_C_TYPE_MESSAGE)
        return kiln_wire_check(base, field->payload, row->descriptor, depth + 1, error);
    /* Notes for humans may be in any encoding; everything else is looked up or printed. */
    if (row->type == PROTOBUF_C_TYPE_STRING && strcmp(row->name, "doc_string") != 0 &&
        !g_utf8_validate((const char *)base + field->payload.offset, (gssize)field->payload.length,
                         NULL))
        return kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: field %s is not UTF-8 text",
                          field->start, row->name);
    return TRUE;
}

gboolean
kiln_wire_check(const uint8_t *base, KilnSpan message, const ProtobufCMessageDescriptor *descriptor,
                int depth, GError **error)
{
    if (depth > KILN_WIRE_MAX_DEPTH)
        return malformed(error, message.offset, "messages are nested too deeply");
    KilnWire wire = kiln_wire(base, message);
    KilnWireField field;
    g_autoptr(GError) failure = NULL;
    while (kiln_wire_next(&wire, &field, &failure)) {
        const ProtobufCFieldDescriptor *row =
            protobuf_c_message_descriptor_get_field(descriptor, field.number);
        if (row && !check_field(base, &field, row, depth, error))
            return FALSE;
    }
    if (!failure)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
}

/* --- unpacking --- */

static void *
arena_allocate(void *arena, size_t size)
{
    return kiln_arena_alloc(arena, size);
}

static void
arena_forget(void *arena, void *memory)
{
    (void)arena;
    (void)memory;
}

/* Fields are self-contained: a message is also what remains when some are cut out. */
static const uint8_t *
without_holes(const uint8_t *base, KilnSpan message, const GArray *holes, KilnArena *arena,
              size_t *out_length)
{
    *out_length = message.length;
    if (!holes || !holes->len)
        return base + message.offset;
    for (guint i = 0; i < holes->len; i++)
        *out_length -= g_array_index(holes, KilnSpan, i).length;
    uint8_t *rest = kiln_arena_alloc(arena, *out_length + 1);
    size_t at = message.offset, used = 0;
    for (guint i = 0; i <= holes->len; i++) {
        const KilnSpan *hole = i < holes->len ? &g_array_index(holes, KilnSpan, i) : NULL;
        size_t end = hole ? hole->offset : message.offset + message.length;
        memcpy(rest + used, base + at, end - at);
        used += end - at;
        at = hole ? end + hole->length : end;
    }
    return rest;
}

void *
kiln_wire_unpack(const uint8_t *base, KilnSpan message, const GArray *holes,
                 const ProtobufCMessageDescriptor *descriptor, KilnArena *arena, GError **error)
{
    size_t at = message.offset;
    for (guint i = 0; holes && i <= holes->len; i++) {
        const KilnSpan *hole = i < holes->len ? &g_array_index(holes, KilnSpan, i) : NULL;
        size_t end = hole ? hole->offset : message.offset + message.length;
        if (!kiln_wire_check(base, (KilnSpan){ at, end - at }, descriptor, 0, error))
            return NULL;
        at = hole ? end + hole->length : end;
    }
    if (!holes && !kiln_wire_check(base, message, descriptor, 0, error))
        return NULL;
    size_t length;
    const uint8_t *bytes = without_holes(base, message, holes, arena, &length);
    ProtobufCAllocator allocator = { arena_allocate, arena_forget, arena };
    void *result = protobuf_c_message_unpack(descriptor, &allocator, length, bytes);
    if (!result)
        kiln_throw(error, KILN_ERROR_FORMAT, "byte %zu: a malformed %s", message.offset,
                   descriptor->short_name);
    return result;
}

/* --- writing --- */

static void
put_number(GByteArray *out, uint64_t value)
{
    uint8_t bytes[10];
    guint n = 0;
    do {
        bytes[n] = (uint8_t)((value & 0x7F) | (value > 0x7F ? 0x80 : 0));
        n++;
        value >>= 7;
    } while (value);
    g_byte_array_append(out, bytes, n);
}

void
kiln_wire_put_varint(GByteArray *out, uint32_t number, uint64_t value)
{
    put_number(out, (uint64_t)number << 3 | KILN_WIRE_VARINT);
    put_number(out, value);
}

void
kiln_wire_put_f32(GByteArray *out, uint32_t number, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = GUINT32_TO_LE(bits);
    put_number(out, (uint64_t)number << 3 | KILN_WIRE_FIXED32);
    g_byte_array_append(out, (const guint8 *)&bits, sizeof bits);
}

void
kiln_wire_put_bytes(GByteArray *out, uint32_t number, const void *data, size_t length)
{
    put_number(out, (uint64_t)number << 3 | KILN_WIRE_BYTES);
    put_number(out, length);
    g_byte_array_append(out, data, length);
}

void
kiln_wire_put_text(GByteArray *out, uint32_t number, const char *text)
{
    kiln_wire_put_bytes(out, number, text, strlen(text));
}

void
kiln_wire_put_message(GByteArray *out, uint32_t number, const GByteArray *message)
{
    kiln_wire_put_bytes(out, number, message->data, message->len);
}
