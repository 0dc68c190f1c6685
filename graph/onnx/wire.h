/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the protobuf wire format. The reader trusts nothing. Offsets count from the
 * start of the file, so that messages can name them. */
#ifndef KILN_GRAPH_ONNX_WIRE_H
#define KILN_GRAPH_ONNX_WIRE_H

#include "graph/arena.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>

/** A range of bytes of the file. */
typedef struct {
    size_t offset, length;
} KilnSpan;

typedef enum {
    KILN_WIRE_VARINT = 0,
    KILN_WIRE_FIXED64 = 1,
    KILN_WIRE_BYTES = 2,
    KILN_WIRE_FIXED32 = 5,
} KilnWireType;

/** Walks the fields of one message. */
typedef struct {
    const uint8_t *base; /* of the file */
    size_t at, end;
} KilnWire;

typedef struct {
    uint32_t number;
    KilnWireType type;
    size_t start;     /* of the tag */
    KilnSpan payload; /* BYTES: without tag and length; else the encoded number */
    uint64_t value;   /* VARINT, FIXED64, FIXED32 */
} KilnWireField;

enum {
    KILN_WIRE_MAX_DEPTH = 64
}; /* messages nest at most so deep: subgraphs, element types */

static inline KilnWire
kiln_wire(const uint8_t *base, KilnSpan message)
{
    return (KilnWire){ base, message.offset, message.offset + message.length };
}

/** Reads the next field into @out. False at the end of the message, or with @error set if it is
 * malformed (KILN_ERROR_FORMAT, with the offset). */
bool kiln_wire_next(KilnWire *wire, KilnWireField *out, GError **error);

/** Checks @message against @descriptor: wire types, lengths, UTF-8 of names, nesting. protobuf-c
 * has no limits of its own, so only checked messages may be unpacked. */
gboolean kiln_wire_check(const uint8_t *base, KilnSpan message,
                         const ProtobufCMessageDescriptor *descriptor, int depth, GError **error);

/** Checks @message and unpacks it into @arena, which owns the result. Skips the fields that @holes
 * cover (ascending, none overlapping). */
void *kiln_wire_unpack(const uint8_t *base, KilnSpan message, const GArray *holes,
                       const ProtobufCMessageDescriptor *descriptor, KilnArena *arena,
                       GError **error);

/* --- writing --- */

void kiln_wire_put_varint(GByteArray *out, uint32_t number, uint64_t value);
void kiln_wire_put_f32(GByteArray *out, uint32_t number, float value);
void kiln_wire_put_bytes(GByteArray *out, uint32_t number, const void *data, size_t length);
void kiln_wire_put_text(GByteArray *out, uint32_t number, const char *text);
void kiln_wire_put_message(GByteArray *out, uint32_t number, const GByteArray *message);

#endif
