/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel runs an instruction: the first row that fits, here or in the fallbacks. */
#include "ir/target.h"

#include "ir/compiled.h"
#include "ir/flow.h"

/* The operand by which kernels are chosen: the first @in, else the first @out. */
static const KilnBuffer *
key_operand(const KilnInstr *instr)
{
    const KilnBuffer *written = NULL;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBufferUse *use = &instr->operands[i];
        if (!use->buffer)
            continue;
        if (use->access != KILN_ACCESS_OUT)
            return use->buffer;
        if (!written)
            written = use->buffer;
    }
    return written;
}

static bool
layout_fits(const char *taken, const char *found)
{
    return g_strcmp0(taken, "*") == 0 || g_strcmp0(taken, found) == 0;
}

/* Equal bytes are equal reals in both types. A byte of i8 is another number as u8, with equal
 * parameters too. Parameters per axis differ where a part is moved along the axis. */
static bool
stands_for_the_same(const KilnType *a, const KilnType *b)
{
    return a->dtype == b->dtype && (a->quant->axis >= 0 || kiln_quant_equal(a->quant, b->quant));
}

/* What stored integers stand for matters to the instruction: operands are quantized, and it does
 * more than move elements. */
static bool
computes_quantized(const KilnInstr *instr)
{
    bool moves = kiln_instr_info(instr->kind)->flags & KILN_INSTR_MOVEMENT ||
                 instr->kind == KILN_INSTR_where || instr->kind == KILN_INSTR_top_k;
    const KilnType *first = NULL;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBuffer *buffer = instr->operands[i].buffer;
        if (!buffer || !buffer->type.quant)
            continue;
        if (!moves || (first && !stands_for_the_same(first, &buffer->type)))
            return true;
        first = &buffer->type;
    }
    return false;
}

static bool
kernel_fits(const KilnKernel *kernel, const KilnInstr *instr, const KilnType *key, KilnIsa isa)
{
    return kernel->instr == instr->kind && kernel->isa <= isa &&
           (kernel->quantized || !computes_quantized(instr)) &&
           (kernel->dtypes >> key->dtype & 1) && layout_fits(kernel->layout, key->layout) &&
           (!kernel->supports || kernel->supports(instr));
}

const KilnKernel *
kiln_target_find(const KilnTarget *target, const KilnInstr *instr)
{
    if (instr->kind == KILN_INSTR_call)
        return kiln_call_kernel(instr);
    if (kiln_instr_is_flow(instr->kind))
        return kiln_flow_kernel(instr->kind);
    const KilnBuffer *key = kiln_instr_is_bookkeeping(instr) ? NULL : key_operand(instr);
    if (!key)
        return NULL;
    for (; target; target = target->fallback) {
        for (uint32_t i = 0; i < target->n_kernels; i++) {
            if (kernel_fits(&target->kernels[i], instr, &key->type, target->isa))
                return &target->kernels[i];
        }
    }
    return NULL;
}

uint32_t
kiln_target_choices(const KilnTarget *target, KilnInstr *instr,
                    KilnChoice choices[KILN_MAX_CHOICES])
{
    static const char *const algorithms[KILN_MAX_CHOICES] = { "direct", "winograd" };
    if (instr->kind != KILN_INSTR_conv)
        return 0;
    const char **algorithm = &kiln_instr_attrs(instr, conv)->algorithm, *kept = *algorithm;
    uint32_t n = 0;
    for (uint32_t i = 0; i < KILN_MAX_CHOICES; i++) {
        *algorithm = algorithms[i]; /* kernels are asked about instructions */
        const KilnKernel *kernel = kiln_target_find(target, instr);
        /* What a target does not know it computes directly. */
        if (kernel && (n == 0 || kernel != choices[0].kernel))
            choices[n++] =
                (KilnChoice){ algorithms[i], kernel, kernel->cost ? kernel->cost(instr) : -1 };
    }
    *algorithm = kept;
    return n;
}

const KilnTarget *
kiln_target_owner(const KilnTarget *target, const KilnKernel *kernel)
{
    while (target && !(kernel >= target->kernels && kernel < target->kernels + target->n_kernels))
        target = target->fallback;
    return target;
}

int
kiln_target_depth(const KilnTarget *target, const KilnKernel *kernel)
{
    const KilnTarget *owner = kiln_target_owner(target, kernel);
    int depth = 0;
    for (; target != owner; target = target->fallback)
        depth++;
    return depth;
}

bool
kiln_target_takes_strided(const KilnTarget *target, const KilnInstr *instr, uint32_t i,
                          int64_t rows)
{
    const KilnKernel *kernel =
        target && instr->kind != KILN_INSTR_call ? kiln_target_find(target, instr) : NULL;
    return kernel && kernel->takes_strided && kernel->takes_strided(instr, i, rows);
}
