/* SPDX-License-Identifier: Apache-2.0 */
/* Mutations of a ModelProto that keep it one: a field is left out, doubled, moved into the place of
 * another of its kind, or gets another value, and the lengths of all messages around it follow. */
#include "graph/op.h"
#include "onnx.pb-c.h"

#include <math.h>
#include <string.h>

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

enum {
    VARINT = 0,
    FIXED64 = 1,
    BYTES = 2,
    FIXED32 = 5,
    MAX_DEPTH = 40,
    MAX_CHANGED = 1 << 12, /* bytes of a payload that are mutated */
};

typedef struct {
    const ProtobufCFieldDescriptor *info; /* NULL: unknown */
    unsigned wire;
    const uint8_t *start, *payload;
    size_t length; /* of the payload, which is the last of it */
    uint64_t value, tag;
} Field;

typedef struct {
    GArray *fields; /* Field: all there are, in order */
    guint chosen, at;
    GRand *random;
} Mutation;

static bool
read_varint(const uint8_t **at, const uint8_t *end, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static void
write_varint(GByteArray *out, uint64_t value)
{
    do {
        uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        g_byte_array_append(out, &byte, 1);
        value >>= 7;
    } while (value);
}

static bool
read_field(const ProtobufCMessageDescriptor *message, const uint8_t **at, const uint8_t *end,
           Field *out)
{
    *out = (Field){ .start = *at };
    if (!read_varint(at, end, &out->tag) || out->tag >> 3 > G_MAXINT32)
        return false;
    out->wire = out->tag & 7;
    out->info = message
                    ? protobuf_c_message_descriptor_get_field(message, (unsigned)(out->tag >> 3))
                    : NULL;
    out->payload = *at;
    uint64_t length = 0;
    if (out->wire == VARINT) {
        if (!read_varint(at, end, &out->value))
            return false;
        length = (uint64_t)(*at - out->payload);
        *at = out->payload;
    } else if (out->wire == BYTES) {
        if (!read_varint(at, end, &length))
            return false;
        out->payload = *at;
    } else if (out->wire == FIXED32 || out->wire == FIXED64) {
        length = out->wire == FIXED32 ? 4 : 8;
    } else {
        return false;
    }
    if (length > (uint64_t)(end - *at))
        return false;
    out->length = length;
    *at += length;
    return true;
}

static const ProtobufCMessageDescriptor *
message_of(const Field *field)
{
    return field->info && field->info->type == PROTOBUF_C_TYPE_MESSAGE && field->wire == BYTES
               ? field->info->descriptor
               : NULL;
}

static bool
collect(const ProtobufCMessageDescriptor *message, const uint8_t *at, size_t size, GArray *fields,
        int depth)
{
    const uint8_t *end = at + size;
    while (at < end) {
        Field field;
        if (depth > MAX_DEPTH || !read_field(message, &at, end, &field))
            return false;
        g_array_append_val(fields, field);
        if (message_of(&field) &&
            !collect(message_of(&field), field.payload, field.length, fields, depth + 1))
            return false;
    }
    return true;
}

/* --- one field --- */

static uint64_t
other_number(GRand *random, uint64_t value)
{
    static const int64_t numbers[] = { 0,        1,          -1,         2,        3,
                                       7,        8,          9,          -2,       16,
                                       100,      1000,       1 << 16,    1 << 30,  1u << 31,
                                       G_MAXINT, G_MAXINT64, G_MININT64, 1l << 40, -(1l << 40),
                                       1l << 62, G_MININT,   10,         11 };
    switch (g_rand_int_range(random, 0, 4)) {
    case 0:
        return value + 1;
    case 1:
        return value - 1;
    case 2:
        return (uint64_t)g_rand_int_range(random, 0, 24);
    default:
        return (uint64_t)numbers[g_rand_int_range(random, 0, G_N_ELEMENTS(numbers))];
    }
}

static float
other_float(GRand *random)
{
    static const float numbers[] = { 0,      1,   -1,   0.5f,     2,         1e30f, -1e30f,
                                     1e-40f, 255, 1e9f, INFINITY, -INFINITY, NAN,   -0.0f };
    return numbers[g_rand_int_range(random, 0, G_N_ELEMENTS(numbers))];
}

static void
write_bytes(GByteArray *out, const Field *field, const void *payload, size_t length)
{
    write_varint(out, field->tag);
    write_varint(out, length);
    g_byte_array_append(out, payload, length);
}

/* Another of the file that could stand here; @field itself where there is none. */
static const Field *
another_like(const Mutation *mutation, const Field *field)
{
    guint n = mutation->fields->len, first = (guint)g_rand_int_range(mutation->random, 0, (int)n);
    for (guint i = 0; field->info && i < n; i++) {
        const Field *other = &g_array_index(mutation->fields, Field, (first + i) % n);
        if (other->info && other != field && other->wire == field->wire &&
            other->info->type == field->info->type &&
            other->info->descriptor == field->info->descriptor)
            return other;
    }
    return field;
}

static void
write_changed(const Mutation *mutation, GByteArray *out, const Field *field)
{
    GRand *random = mutation->random;
    if (field->wire == VARINT) {
        write_varint(out, field->tag);
        write_varint(out, other_number(random, field->value));
        return;
    }
    if (field->wire == FIXED32) {
        float value = other_float(random);
        write_varint(out, field->tag);
        g_byte_array_append(out, (const guint8 *)&value, sizeof value);
        return;
    }
    if (field->info && strcmp(field->info->name, "op_type") == 0 && g_rand_boolean(random)) {
        KilnOp op = (KilnOp)g_rand_int_range(random, 0, KILN_OP_END);
        const char *name = kiln_op_info(op)->onnx;
        if (name && *name) {
            write_bytes(out, field, name, strlen(name));
            return;
        }
    }
    bool keep_form =
        message_of(field) || (field->info && field->info->type == PROTOBUF_C_TYPE_STRING);
    if (keep_form || g_rand_int_range(random, 0, 3) == 0) {
        const Field *other = another_like(mutation, field);
        write_bytes(out, field, other->payload, other->length);
        return;
    }
    uint8_t changed[2 * MAX_CHANGED];
    size_t length = MIN(field->length, MAX_CHANGED);
    memcpy(changed, field->payload, length);
    if (length % 8 == 0 && length && g_rand_boolean(random)) {
        int64_t value = (int64_t)other_number(random, 0); /* shapes, pads, indices … */
        memcpy(changed + 8 * (size_t)g_rand_int_range(random, 0, (int)(length / 8)), &value, 8);
    } else {
        length = LLVMFuzzerMutate(changed, length, sizeof changed);
    }
    write_bytes(out, field, changed, length);
}

static void rewrite(Mutation *mutation, const ProtobufCMessageDescriptor *message,
                    const uint8_t *at, size_t size, GByteArray *out);

static void
write_same(Mutation *mutation, GByteArray *out, const Field *field)
{
    if (!message_of(field)) {
        const uint8_t *end = field->payload + field->length;
        g_byte_array_append(out, field->start, (size_t)(end - field->start));
        return;
    }
    g_autoptr(GByteArray) inner = g_byte_array_new();
    rewrite(mutation, message_of(field), field->payload, field->length, inner);
    write_bytes(out, field, inner->data, inner->len);
}

static void
rewrite(Mutation *mutation, const ProtobufCMessageDescriptor *message, const uint8_t *at,
        size_t size, GByteArray *out)
{
    const uint8_t *end = at + size;
    Field field;
    while (at < end && read_field(message, &at, end, &field)) {
        if (mutation->at++ != mutation->chosen) {
            write_same(mutation, out, &field);
            continue;
        }
        int what = g_rand_int_range(mutation->random, 0, 8);
        mutation->chosen = G_MAXUINT;
        if (what == 1 || what == 2)
            write_same(mutation, out, &field);
        if (what == 1)
            write_same(mutation, out, &field);
        else if (what > 1)
            write_changed(mutation, out, &field);
    }
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    g_autoptr(GArray) fields = g_array_new(FALSE, FALSE, sizeof(Field));
    g_autofree uint8_t *file = g_memdup2(data, size);
    if (seed % 32 == 0 || !collect(&onnx__model_proto__descriptor, file, size, fields, 0) ||
        !fields->len)
        return LLVMFuzzerMutate(data, size, max_size);
    GRand *random = g_rand_new_with_seed(seed);
    Mutation mutation = { fields, (guint)g_rand_int_range(random, 0, (int)fields->len), 0, random };
    g_autoptr(GByteArray) out = g_byte_array_new();
    rewrite(&mutation, &onnx__model_proto__descriptor, file, size, out);
    g_rand_free(random);
    if (out->len > max_size || !out->len)
        return LLVMFuzzerMutate(data, size, max_size);
    memcpy(data, out->data, out->len);
    return out->len;
}
