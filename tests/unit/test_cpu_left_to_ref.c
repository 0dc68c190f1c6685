/* SPDX-License-Identifier: Apache-2.0 */
/* No operator is slow by surprise: an instruction that ref computes on a type has a kernel of the
 * cpu backend, or a reason in left_to_ref.def. A reason without need is out of place. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/left_to_ref.h"
#include "backends/ref/ref.h"
#include "graph/kiln-types.h"
#include "ir/instr.h"
#include "ir/target.h"

#include <criterion/criterion.h>

/* Kernels for quantized integers stand for those of reals. */
static bool
ref_has(KilnInstrKind kind, KilnDType dtype)
{
    const KilnTarget *ref = kiln_ref_target();
    for (uint32_t i = 0; i < ref->n_kernels; i++) {
        const KilnKernel *kernel = &ref->kernels[i];
        if (kernel->instr == kind && !kernel->quantized && (kernel->dtypes >> dtype & 1))
            return true;
    }
    return false;
}

Test(cpu_left_to_ref, has_a_reason)
{
    for (int kind = 0; kind < KILN_N_INSTRS; kind++) {
        for (int dtype = 0; dtype < KILN_N_DTYPES; dtype++) {
            const KilnInstrKind k = (KilnInstrKind)kind;
            const KilnDType d = (KilnDType)dtype;
            const bool lacks = ref_has(k, d) && !kiln_cpu_has_kernel(kiln_cpu_target(), k, d);
            cr_expect(!lacks || kiln_cpu_left_to_ref(kiln_cpu_target(), k, d),
                      "%s of %s: expected a kernel in backends/cpu, or a reason in left_to_ref.def",
                      kiln_instr_info(k)->name, kiln_dtype_name(d));
        }
    }
}

Test(cpu_left_to_ref, has_no_other_reason)
{
    for (int kind = 0; kind < KILN_N_INSTRS; kind++) {
        bool needed = false, stated = false;
        for (int dtype = 0; dtype < KILN_N_DTYPES; dtype++) {
            const KilnInstrKind k = (KilnInstrKind)kind;
            const KilnDType d = (KilnDType)dtype;
            if (kiln_dtype_is_float(d) && kiln_dtype_size(d) == 2)
                continue; /* the general reason of half floats */
            const bool lacks = ref_has(k, d) && !kiln_cpu_has_kernel(kiln_cpu_target(), k, d);
            needed |= lacks;
            stated |= kiln_cpu_left_to_ref(kiln_cpu_target(), k, d) != NULL;
            cr_expect_not(kiln_cpu_has_kernel(kiln_cpu_target(), k, d) &&
                              kiln_cpu_left_to_ref(kiln_cpu_target(), k, d),
                          "%s of %s has a kernel: expected no row in left_to_ref.def",
                          kiln_instr_info(k)->name, kiln_dtype_name(d));
        }
        cr_expect(needed || !stated, "%s: expected no row in left_to_ref.def",
                  kiln_instr_info((KilnInstrKind)kind)->name);
    }
}
