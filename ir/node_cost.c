/* SPDX-License-Identifier: Apache-2.0 */
/* What a node costs: the cost of the instruction of the same name on the types of its operands and
 * results. Open dims cost as at their hints. The instruction is made here on the stack and stands
 * in no function. */
#include "graph/module/folding.h"
#include "graph/node.h"
#include "ir/lower/lower_priv.h"
#include "ir/target.h"

typedef struct {
    GArray *uses;       /* KilnBufferUse */
    GPtrArray *buffers; /* KilnBuffer*: a type, and whether it is constant */
} Operands;

/* What is asked about the instruction that stands for a node. */
typedef double (*Question)(KilnInstr *instr, void *data);

static void
add(Operands *operands, const KilnValue *value, KilnAccess access)
{
    KilnBuffer *buffer = NULL;
    if (value) {
        buffer = g_new0(KilnBuffer, 1);
        buffer->type = kiln_type_at_hints(&value->type);
        buffer->is_const = kiln_value_constant(value) || kiln_value_is_fixed(value);
        buffer->kind = buffer->is_const ? KILN_BUFFER_WEIGHT : KILN_BUFFER_ALLOC;
        g_ptr_array_add(operands->buffers, buffer);
    }
    KilnBufferUse use = { .buffer = buffer, .access = access };
    g_array_append_val(operands->uses, use);
}

/* Results and operands in the order of the instruction's signature, as lowering puts them. */
static void
collect(const KilnNode *node, KilnInstrKind kind, Operands *operands)
{
    KilnAccess access;
    bool optional;
    uint32_t result = 0, operand = 0;
    for (uint32_t r = 0; kiln_instr_states_access(kind) && r < node->n_results; r++)
        add(operands, &node->results[r], KILN_ACCESS_OUT);
    for (uint32_t i = 0; kiln_instr_states_access(kind) && i < node->n_operands; i++)
        add(operands, kiln_node_operand(node, i), KILN_ACCESS_IN);
    for (uint32_t i = 0; kiln_instr_access(kind, i, &access, &optional); i++) {
        if (access == KILN_ACCESS_OUT) {
            bool read = result < node->n_results && (!optional || node->results[result].n_uses);
            add(operands, read ? &node->results[result] : NULL, access);
            result++;
            continue;
        }
        while (operand < node->n_operands && !kiln_lower_reads(node, operand))
            operand++;
        if (operand >= node->n_operands)
            break;
        add(operands, kiln_node_operand(node, operand++), access);
    }
}

static bool
has_bytes(const KilnType *type)
{
    const KilnType likely = kiln_type_at_hints(type);
    return kiln_type_bytes(&likely) >= 0;
}

static bool
is_countable(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && !has_bytes(&value->type))
            return false;
    }
    bool known = node->n_results > 0;
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (!has_bytes(&node->results[i].type))
            return false;
        known &= node->results[i].known != NULL;
    }
    return !known;
}

/* The answer, or @none where @node lowers to nothing that can be asked. */
static double
ask(const KilnNode *node, double none, Question question, void *data)
{
    KilnInstrKind kind;
    if (!kiln_lower_namesake(node, &kind) || !is_countable(node))
        return none;
    g_autoptr(KilnArena) arena = kiln_arena_new();
    Operands operands = { g_array_new(FALSE, TRUE, sizeof(KilnBufferUse)),
                          g_ptr_array_new_with_free_func(g_free) };
    collect(node, kind, &operands);
    const KilnOpInfo *op = kiln_op_info(node->op);
    const KilnInstrInfo *info = kiln_instr_info(kind);
    KilnInstr instr = { .kind = kind,
                        .n_operands = operands.uses->len,
                        .operands = (KilnBufferUse *)operands.uses->data,
                        .attrs = kiln_instr_attrs_new(kind, arena) };
    if (instr.attrs)
        kiln_attrs_copy_matching(info->attrs, info->n_attrs, instr.attrs, op->attrs, op->n_attrs,
                                 node->attrs, arena);
    double answer = question(&instr, data);
    g_array_unref(operands.uses);
    g_ptr_array_unref(operands.buffers);
    return answer;
}

static double
count_work(KilnInstr *instr, void *data)
{
    *(KilnCost *)data = kiln_instr_cost(instr);
    return 0;
}

KilnCost
kiln_node_cost(const KilnNode *node)
{
    KilnCost cost = { 0, 0 };
    ask(node, 0, count_work, &cost);
    return cost;
}

const KilnRates *
kiln_target_rates(const KilnTarget *target)
{
    static const KilnRates any = { .flop = 1 / 160e3,
                                   .byte = 1 / 40e3,
                                   .tail_flop = 1 / 60e3,
                                   .tail_byte = 1 / 80e3,
                                   .relayout_byte = 1 / 17.5e3 };
    while (target && !target->rates)
        target = target->fallback;
    return target ? target->rates : &any;
}

double
kiln_target_work_us(const KilnTarget *target, const KilnCost *work)
{
    const KilnRates *rates = kiln_target_rates(target);
    return MAX(rates->flop * (double)work->flops, rates->byte * (double)work->bytes) + rates->call;
}

double
kiln_kernel_us(const KilnTarget *target, const KilnKernel *kernel, const KilnInstr *instr,
               int threads)
{
    const double naive_flop = 1e-3, naive_byte = 5e-3; /* one at a time */
    const KilnCost work = kiln_instr_cost(instr);
    const KilnTarget *owner = kiln_target_owner(target, kernel);
    if (!kernel->cost && owner && !owner->rates)
        return MAX(naive_flop * (double)work.flops, naive_byte * (double)work.bytes);
    const double us = kernel->cost ? kernel->cost(instr) : kiln_target_work_us(target, &work);
    return kiln_cost_is_parallel(&work) ? us / MAX(threads, 1) : us;
}

typedef struct {
    const KilnTarget *target;
    bool any_algorithm;
} Timing;

static double
fastest(KilnInstr *instr, void *data)
{
    const Timing *timing = data;
    KilnChoice choices[KILN_MAX_CHOICES];
    uint32_t n = kiln_target_choices(timing->target, instr, choices);
    const KilnKernel *kernel = n ? choices[0].kernel : kiln_target_find(timing->target, instr);
    KilnCost work = kiln_instr_cost(instr);
    double us =
        kernel && kernel->cost ? kernel->cost(instr) : kiln_target_work_us(timing->target, &work);
    for (uint32_t i = 1; timing->any_algorithm && i < n; i++)
        us = choices[i].cost >= 0 ? MIN(us, choices[i].cost) : us;
    return us;
}

double
kiln_node_us(const KilnTarget *target, const KilnNode *node, bool any_algorithm)
{
    Timing timing = { target, any_algorithm };
    return ask(node, 0, fastest, &timing);
}
