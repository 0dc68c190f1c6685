/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of left_to_ref.def beside the table of kernels. */
#include "backends/cpu/left_to_ref.h"

#include "ir/target.h"

#define D(id) (1u << KILN_DTYPE_##id)
#define HALVES (D(f16) | D(bf16))
#define INTS (D(i8) | D(i16) | D(i32) | D(i64) | D(u8) | D(u16) | D(u32) | D(u64))
#define ALL ((1u << KILN_N_DTYPES) - 1)

static const struct {
    KilnInstrKind kind;
    uint32_t dtypes;
    const char *reason;
} rows[] = {
#define LEFT(instr, dtypes, reason) { KILN_INSTR_##instr, dtypes, reason },
#include "backends/cpu/left_to_ref.def"
#undef LEFT
};

bool
kiln_cpu_has_kernel(const KilnTarget *cpu, KilnInstrKind kind, KilnDType dtype)
{
    for (uint32_t i = 0; i < cpu->n_kernels; i++) {
        if (cpu->kernels[i].instr == kind && (cpu->kernels[i].dtypes >> dtype & 1))
            return true;
    }
    return false;
}

const char *
kiln_cpu_left_to_ref(const KilnTarget *cpu, KilnInstrKind kind, KilnDType dtype)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].kind == kind && rows[i].dtypes >> dtype & 1)
            return rows[i].reason;
    }
    if ((HALVES >> dtype & 1) && kiln_cpu_has_kernel(cpu, kind, KILN_DTYPE_f32))
        return "computed in f32 (passes/graph/lower-halves.c)";
    return NULL;
}
