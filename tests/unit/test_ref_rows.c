/* SPDX-License-Identifier: Apache-2.0 */
/* Every row of the reference backend for windows, products, recurrence and movement runs, for every
 * element type that it names: operands of ones (indices of zeros) in, no error out, and every byte
 * of the result written. */
#include "backends/ref/ref.h"
#include "ir/target.h"
#include "ref_case.h"

#include <string.h>

/* The shapes of one instruction. */
typedef struct {
    KilnInstrKind kind;
    const char *types; /* per operand: t (the row's), i (i64), '_' absent */
    const char *dims;  /* per operand, separated by spaces: digits, '-' a scalar */
    const char *attrs; /* "field=value", separated by spaces; lists as digits */
} Row;

/* clang-format off */
#define ROW(id, types, dims, ints)                                                                 \
    {                                                                                              \
        KILN_INSTR_##id, types, dims, ints                                                         \
    }
static const Row rows[] = {
    ROW(average_pool, "tt", "112 114", "kernel_shape=2 strides=2 dilations=1 pads=00"),
    ROW(conv, "tttt", "123 114 212 2", "strides=1 dilations=1 pads=00"),
    ROW(conv_transpose, "tttt", "125 114 122 2", "strides=1 dilations=1 pads=00"),
    ROW(global_average_pool, "tt", "121 122", ""),
    ROW(global_lp_pool, "tt", "121 122", ""),
    ROW(global_max_pool, "tt", "121 122", ""),
    ROW(lp_pool, "tt", "112 114", "kernel_shape=2 strides=2 dilations=1 pads=00"),
    ROW(max_pool, "tti", "112 114 112", "kernel_shape=2 strides=2 dilations=1 pads=00"),
    ROW(max_unpool, "tti", "114 112 112", "kernel_shape=2 strides=2 dilations=1 pads=00"),
    ROW(concat, "ttt", "5 2 3", ""),
    ROW(depth_to_space, "tt", "1122 1411", "blocksize=2"),
    ROW(expand, "tt", "23 3", ""),
    ROW(eye_like, "t", "23", ""),
    ROW(gather, "tti", "22 32 2", ""),
    ROW(gather_elements, "tti", "22 32 22", ""),
    ROW(gather_nd, "tti", "22 32 21", ""),
    ROW(grid_sample, "ttt", "112 113 121", ""),
    ROW(one_hot, "ttt", "23 2 2", ""),
    ROW(pack, "tt", "22 22", ""),
    ROW(pad, "ttt", "4 2 -", "pads=11"),
    ROW(range, "ttt", "3 - -", ""),
    ROW(resize, "tt", "24 22", ""),
    ROW(reverse_sequence, "tti", "23 23 3", ""),
    ROW(scatter_elements, "ttit", "3 3 2 2", ""),
    ROW(scatter_nd, "ttit", "32 32 21 22", ""),
    ROW(slice, "tt", "2 3", "starts=1 steps=1"),
    ROW(space_to_depth, "tt", "1411 1122", "blocksize=2"),
    ROW(tile, "tt", "4 2", ""),
    ROW(transpose, "tt", "32 23", "perm=10"),
    ROW(trilu, "tt", "23 23", ""),
    ROW(unpack, "tt", "22 22", ""),
    ROW(det, "tt", "2 222", ""),
    ROW(einsum, "ttt", "2 23 3", "equation=ij,j->i"),
    ROW(gemm, "tttt", "23 22 23 3", ""),
    ROW(gru, "tttttt_t", "2112 112 213 163 162 1c _ 112", ""),
    ROW(lstm, "ttttttt_ttt", "2112 112 112 213 183 182 1g _ 112 112 16", ""),
    ROW(matmul, "ttt", "23 22 23", ""),
    ROW(rnn, "tttttt_t", "2112 112 213 123 122 14 _ 112", ""),
};
/* clang-format on */

/* One dim: a digit, or a letter from 10 on. */
static int64_t
dim_of(char c)
{
    return g_ascii_isdigit(c) ? c - '0' : c - 'a' + 10;
}

static void
set_attrs(RefCase *c, const Row *row)
{
    const KilnInstrInfo *info = kiln_instr_info(row->kind);
    g_auto(GStrv) settings = g_strsplit(row->attrs, " ", -1);
    for (char **setting = settings; *setting; setting++) {
        g_auto(GStrv) parts = g_strsplit(*setting, "=", 2);
        const KilnAttrInfo *attr = kiln_attr_find(info->attrs, info->n_attrs, parts[0]);
        cr_assert(attr, "%s", parts[0]);
        void *field = (char *)c->instr.attrs + attr->offset;
        int64_t list[8];
        uint32_t n = 0;
        for (const char *d = parts[1]; *d && attr->kind == KILN_ATTR_INTS; d++)
            list[n++] = dim_of(*d);
        if (attr->kind == KILN_ATTR_INTS)
            *(KilnInts *)field = kiln_ints_make(c->arena, list, n);
        else if (attr->kind == KILN_ATTR_INT)
            *(int64_t *)field = dim_of(*parts[1]);
        else
            *(const char **)field = kiln_arena_strdup(c->arena, parts[1]);
    }
}

static RefCase *
make(const Row *row, KilnDType dtype)
{
    RefCase *c = case_new(row->kind);
    double ones[64], zeros[64] = { 0 };
    for (int i = 0; i < 64; i++)
        ones[i] = 1;
    set_attrs(c, row);
    g_auto(GStrv) shapes = g_strsplit(row->dims, " ", -1);
    for (size_t o = 0; row->types[o]; o++) {
        int64_t dims[KILN_MAX_RANK];
        int rank = 0;
        for (const char *d = shapes[o]; *d && *d != '-' && *d != '_'; d++)
            dims[rank++] = dim_of(*d);
        KilnAccess access;
        bool optional;
        kiln_instr_access(row->kind, (uint32_t)o, &access, &optional);
        char type = row->types[o];
        if (type == '_')
            case_absent(c);
        else
            case_in(c, type == 'i' ? KILN_DTYPE_i64 : dtype, rank, dims,
                    access == KILN_ACCESS_OUT ? NULL
                    : type == 'i'             ? zeros
                                              : ones);
    }
    return c;
}

/* True where the two runs wrote the same into operand @o, whatever it held before. */
static bool
all_written(const Row *row, KilnDType dtype, uint32_t o)
{
    g_autoptr(RefCase) first = make(row, dtype);
    g_autoptr(RefCase) second = make(row, dtype);
    size_t bytes = (size_t)kiln_type_bytes(&first->buffers[o].type);
    memset(second->data[o], 0x3c, bytes);
    const char *error = case_run(first);
    cr_assert_null(error, "%s of %s: %s", kiln_instr_info(row->kind)->name, kiln_dtype_name(dtype),
                   error);
    cr_assert_null(case_run(second));
    return memcmp(first->data[o], second->data[o], bytes) == 0;
}

static void
check(const Row *row, KilnDType dtype)
{
    for (uint32_t o = 0; row->types[o]; o++) {
        KilnAccess access;
        bool optional;
        kiln_instr_access(row->kind, o, &access, &optional);
        if (access == KILN_ACCESS_OUT && row->types[o] != '_')
            cr_expect(all_written(row, dtype, o), "%s of %s leaves bytes of operand %u",
                      kiln_instr_info(row->kind)->name, kiln_dtype_name(dtype), o);
    }
}

Test(ref_rows, every_type_of_every_row_runs)
{
    const KilnTarget *target = kiln_ref_target();
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        uint32_t ran = 0;
        for (uint32_t k = 0; k < target->n_kernels; k++) {
            const KilnKernel *kernel = &target->kernels[k];
            for (KilnDType dtype = 0; dtype < KILN_DTYPE_string; dtype++) {
                if (kernel->instr != rows[i].kind || kernel->quantized ||
                    !(kernel->dtypes >> dtype & 1))
                    continue;
                check(&rows[i], dtype);
                ran++;
            }
        }
        cr_expect_geq(ran, 4, "%s: %u types", kiln_instr_info(rows[i].kind)->name, ran);
    }
}
