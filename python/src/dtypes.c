/* SPDX-License-Identifier: Apache-2.0 */
/* Element types as others call them: one row each. */
#include "graph/kiln-types.h"
#include "python/src/array.h"

#include <string.h>

/* What DLPack calls the kinds of its types. */
enum {
    DL_INT = 0,
    DL_UINT = 1,
    DL_FLOAT = 2,
    DL_BFLOAT = 4,
    DL_BOOL = 6,
    DL_F8E4M3FN = 10,
    DL_F8E4M3FNUZ = 11,
    DL_F8E5M2 = 12,
    DL_F8E5M2FNUZ = 13,
    DL_F8E8M0 = 14,
    DL_NONE = 255,
};

typedef struct {
    const char *kiln, *numpy, *ml; /* ml: the name in ml_dtypes, else NULL */
    const char *format;            /* of the buffer protocol */
    uint8_t code, bits;            /* of DLPack */
} Row;

static const Row rows[KILN_N_DTYPES] = {
    [KILN_DTYPE_f32] = { "f32", "float32", NULL, "f", DL_FLOAT, 32 },
    [KILN_DTYPE_f64] = { "f64", "float64", NULL, "d", DL_FLOAT, 64 },
    [KILN_DTYPE_f16] = { "f16", "float16", NULL, "e", DL_FLOAT, 16 },
    [KILN_DTYPE_bf16] = { "bf16", "bfloat16", "bfloat16", "H", DL_BFLOAT, 16 },
    [KILN_DTYPE_i8] = { "i8", "int8", NULL, "b", DL_INT, 8 },
    [KILN_DTYPE_i16] = { "i16", "int16", NULL, "h", DL_INT, 16 },
    [KILN_DTYPE_i32] = { "i32", "int32", NULL, "i", DL_INT, 32 },
    [KILN_DTYPE_i64] = { "i64", "int64", NULL, "q", DL_INT, 64 },
    [KILN_DTYPE_u8] = { "u8", "uint8", NULL, "B", DL_UINT, 8 },
    [KILN_DTYPE_u16] = { "u16", "uint16", NULL, "H", DL_UINT, 16 },
    [KILN_DTYPE_u32] = { "u32", "uint32", NULL, "I", DL_UINT, 32 },
    [KILN_DTYPE_u64] = { "u64", "uint64", NULL, "Q", DL_UINT, 64 },
    [KILN_DTYPE_bool] = { "bool", "bool", NULL, "?", DL_BOOL, 8 },
    [KILN_DTYPE_string] = { "string", "object", NULL, "P", DL_NONE, 0 },
    [KILN_DTYPE_f8e4m3fn] = { "f8e4m3fn", "float8_e4m3fn", "float8_e4m3fn", "B", DL_F8E4M3FN, 8 },
    [KILN_DTYPE_f8e4m3fnuz] = { "f8e4m3fnuz", "float8_e4m3fnuz", "float8_e4m3fnuz", "B",
                                DL_F8E4M3FNUZ, 8 },
    [KILN_DTYPE_f8e5m2] = { "f8e5m2", "float8_e5m2", "float8_e5m2", "B", DL_F8E5M2, 8 },
    [KILN_DTYPE_f8e5m2fnuz] = { "f8e5m2fnuz", "float8_e5m2fnuz", "float8_e5m2fnuz", "B",
                                DL_F8E5M2FNUZ, 8 },
    [KILN_DTYPE_f8e8m0] = { "f8e8m0", "float8_e8m0fnu", "float8_e8m0fnu", "B", DL_F8E8M0, 8 },
    [KILN_DTYPE_f6e2m3] = { "f6e2m3", "float6_e2m3fn", "float6_e2m3fn", "B", DL_NONE, 0 },
    [KILN_DTYPE_f6e3m2] = { "f6e3m2", "float6_e3m2fn", "float6_e3m2fn", "B", DL_NONE, 0 },
    [KILN_DTYPE_f4e2m1] = { "f4e2m1", "float4_e2m1fn", "float4_e2m1fn", "B", DL_NONE, 0 },
    [KILN_DTYPE_i4] = { "i4", "int4", "int4", "b", DL_NONE, 0 },
    [KILN_DTYPE_u4] = { "u4", "uint4", "uint4", "B", DL_NONE, 0 },
    [KILN_DTYPE_i2] = { "i2", "int2", "int2", "b", DL_NONE, 0 },
    [KILN_DTYPE_u2] = { "u2", "uint2", "uint2", "B", DL_NONE, 0 },
    /* No array has such elements, so they have no name. */
    [KILN_DTYPE_sequence] = { NULL, NULL, NULL, "P", DL_NONE, 0 },
    [KILN_DTYPE_optional] = { NULL, NULL, NULL, "P", DL_NONE, 0 },
    [KILN_DTYPE_map] = { NULL, NULL, NULL, "P", DL_NONE, 0 },
};

/* Codes of the native integers and floats: their size comes with them, which for 'l' differs
 * between platforms. */
static bool
dtype_of_kind(char kind, Py_ssize_t size, KilnDType *out)
{
    for (int d = 0; d < KILN_N_DTYPES; d++) {
        const Row *row = &rows[d];
        char own = row->code == DL_INT    ? 'i'
                   : row->code == DL_UINT ? 'u'
                   : row->code == DL_BOOL ? '?'
                                          : 'f';
        if (row->ml || row->code == DL_NONE || own != kind || row->bits != size * 8)
            continue;
        *out = (KilnDType)d;
        return true;
    }
    return false;
}

bool
kiln_py_dtype_of_format(const char *format, Py_ssize_t itemsize, KilnDType *out)
{
    if (!format)
        format = "B";
    /* Marks of the order of bytes; that of this machine is little-endian. */
    if (strchr("@=<|", format[0]))
        format++;
    if (!format[0] || format[1])
        return false;
    char kind = strchr("bhilqn", format[0])   ? 'i'
                : strchr("BHILQN", format[0]) ? 'u'
                : strchr("efd", format[0])    ? 'f'
                                              : format[0];
    return dtype_of_kind(kind, itemsize, out);
}

const char *
kiln_py_format(KilnDType dtype)
{
    return rows[dtype].format;
}

bool
kiln_py_dtype_named(const char *name, KilnDType *out)
{
    for (int d = 0; d < KILN_N_DTYPES; d++) {
        const Row *row = &rows[d];
        if (!row->kiln || (strcmp(row->kiln, name) != 0 && strcmp(row->numpy, name) != 0))
            continue;
        *out = (KilnDType)d;
        return true;
    }
    return false;
}

const char *
kiln_py_ml_name(KilnDType dtype)
{
    return rows[dtype].ml;
}

bool
kiln_py_dlpack_of(KilnDType dtype, uint8_t *out_code, uint8_t *out_bits)
{
    *out_code = rows[dtype].code;
    *out_bits = rows[dtype].bits;
    return rows[dtype].code != DL_NONE;
}

bool
kiln_py_dtype_of_dlpack(uint8_t code, uint8_t bits, uint16_t lanes, KilnDType *out)
{
    for (int d = 0; d < KILN_N_DTYPES; d++) {
        if (code == DL_NONE || rows[d].code != code || rows[d].bits != bits || lanes != 1)
            continue;
        *out = (KilnDType)d;
        return true;
    }
    return false;
}
