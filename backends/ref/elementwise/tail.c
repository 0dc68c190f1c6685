/* SPDX-License-Identifier: Apache-2.0 */
/* Tails of convolutions and products, element by element: each may lie where its residual lay. */
#include "backends/ref/elementwise/tail.h"

#include "backends/ref/elementwise/scalar.h"
#include "backends/ref/kernel.h"
#include "ir/tail.h"

/* @x rounded to the element type. */
static RefValue
rounded(KilnDType dtype, RefValue x)
{
    uint64_t bits = 0;
    ref_store(dtype, &bits, 0, x);
    return ref_load(dtype, &bits, 0);
}

static RefValue
activate(const KilnTail *tail, RefValue x)
{
    if (tail->activation == KILN_INSTR_clip)
        return (RefValue){ .f = ref_min(ref_max(x.f, (double)tail->params[0]),
                                        (double)tail->params[1]) };
    return kiln_ref_apply_unary(kiln_ref_unary_op(tail->activation), &tail->attrs, REF_FLOAT, x);
}

void
kiln_ref_store_sums(const KilnKernelArgs *args, const RefRows *rows, int64_t first,
                    const RefValue *sums, int64_t n)
{
    const KilnDType dtype = ref_type(args, 0)->dtype;
    const KilnTail tail = kiln_instr_tail(args->instr);
    const uint32_t residual = kiln_tail_operand(args->instr->kind);
    if (!tail.residual && tail.activation == KILN_N_INSTRS) {
        rows->store(ref_at_out(args->data[0], first, kiln_dtype_size(dtype)), sums, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        RefValue x = rounded(dtype, sums[i]);
        if (tail.residual) {
            x.f += ref_load_float(dtype, args->data[residual], first + i);
            x = rounded(dtype, x);
        }
        if (tail.activation != KILN_N_INSTRS)
            x = activate(&tail, x);
        ref_store(dtype, args->data[0], first + i, x);
    }
}
