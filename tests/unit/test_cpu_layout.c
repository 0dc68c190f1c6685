/* SPDX-License-Identifier: Apache-2.0 */
/* pack and unpack of the cpu target: the bits of the reference, padding included. */
#include "cpu_case.h"
#include "ir/instr.h"
#include "tests/unit/ref_case.h"

#include <stdlib.h>
#include <string.h>

static void
relayout_agrees(KilnInstrKind kind, KilnDType dtype, int rank, const int64_t *dims, const char *to,
                const char *from)
{
    g_autoptr(RefCase) c = case_new(kind);
    case_out(c, dtype, rank, dims);
    c->buffers[0].type.layout = to;
    c->data[0] = realloc(c->data[0], (size_t)kiln_type_bytes(&c->buffers[0].type) + 1);
    case_in(c, dtype, rank, dims, NULL);
    c->buffers[1].type.layout = from;
    size_t bytes = (size_t)kiln_type_bytes(&c->buffers[1].type);
    c->data[1] = realloc(c->data[1], bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)c->data[1])[i] = (uint8_t)(i * 37 + i / 251);
    g_autofree char *type = kiln_type_to_string(&c->buffers[0].type);
    const char *source = from ? from : "plain";
    cr_assert_str_eq(cpu_kernel(c)->name, "cpu:relayout", "%s from %s", type, source);
    cr_assert_null(case_run(c));
    for (int threads = 1; threads <= 3; threads++) {
        void *out[CASE_MAX_OPERANDS] = { NULL };
        cr_assert_null(cpu_run(c, &(CpuCall){ .threads = threads, .shift = 4 }, out));
        cr_expect_eq(memcmp(out[0], c->data[0], (size_t)kiln_type_bytes(&c->buffers[0].type)), 0,
                     "%s from %s, %d threads", type, source, threads);
        cpu_free(out);
    }
}

Test(cpu_layout, pack_and_unpack_have_the_bits_of_the_reference)
{
    static const struct {
        int rank;
        int64_t dims[5];
        const char *tag;
    } cases[] = {
        { 4, { 1, 64, 14, 14 }, "acdb" },
        { 4, { 2, 58, 7, 7 }, "acdb" },
        { 4, { 2, 64, 9, 5 }, "aBcd16b" },
        { 4, { 1, 58, 7, 7 }, "aBcd16b" },
        { 4, { 3, 5, 1, 1 }, "aBcd8b" },
        { 3, { 2, 35, 11 }, "aBc16b" },
        { 5, { 1, 17, 3, 4, 5 }, "aBcde16b" },
        { 5, { 1, 20, 3, 4, 5 }, "acdeb" },
        { 4, { 48, 37, 3, 3 }, "ABcd16b16a" },
        { 4, { 35, 1, 3, 3 }, "Abcd16a" },
        { 4, { 64, 32, 3, 3 }, "ABcd4b16a4b" },
        { 2, { 40, 21 }, "BA16a16b" },
        { 1, { 21 }, "A16a" },
        { 4, { 0, 16, 3, 3 }, "aBcd16b" },
    };
    static const KilnDType dtypes[] = { KILN_DTYPE_f32, KILN_DTYPE_i8, KILN_DTYPE_f64 };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (size_t k = 0; k < G_N_ELEMENTS(dtypes); k++) {
            relayout_agrees(KILN_INSTR_pack, dtypes[k], cases[i].rank, cases[i].dims, cases[i].tag,
                            NULL);
            relayout_agrees(KILN_INSTR_unpack, dtypes[k], cases[i].rank, cases[i].dims, NULL,
                            cases[i].tag);
        }
    }
    relayout_agrees(KILN_INSTR_pack, KILN_DTYPE_f32, 4, (int64_t[]){ 1, 40, 5, 5 }, "aBcd16b",
                    "acdb");
    relayout_agrees(KILN_INSTR_pack, KILN_DTYPE_f32, 4, (int64_t[]){ 1, 32, 5, 5 }, "aBcd16b",
                    "aBcd8b");
}
