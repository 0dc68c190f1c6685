/* SPDX-License-Identifier: Apache-2.0 */
/* What a node costs: the cost of the instruction of the same name on the types of its operands and
 * results. The instruction is made here on the stack and stands in no function. */
#include "ir/lower_priv.h"
#include "ir/target.h"

typedef struct {
    GArray *uses;       /* KilnBufferUse */
    GPtrArray *buffers; /* KilnBuffer*: a type and nothing else */
} Operands;

static void
add(Operands *operands, const KilnValue *value, KilnAccess access)
{
    KilnBuffer *buffer = NULL;
    if (value) {
        buffer = g_new0(KilnBuffer, 1);
        buffer->type = value->type;
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
is_countable(const KilnNode *node)
{
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnValue *value = node->operands[i].value;
        if (value && kiln_type_bytes(&value->type) < 0)
            return false;
    }
    bool known = node->n_results > 0;
    for (uint32_t i = 0; i < node->n_results; i++) {
        if (kiln_type_bytes(&node->results[i].type) < 0)
            return false;
        known &= node->results[i].known != NULL;
    }
    return !known;
}

KilnCost
kiln_node_cost(const KilnNode *node)
{
    KilnInstrKind kind;
    if (!kiln_lower_namesake(node, &kind) || !is_countable(node))
        return (KilnCost){ 0, 0 };
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
    KilnCost cost = kiln_instr_cost(&instr);
    g_array_unref(operands.uses);
    g_ptr_array_unref(operands.buffers);
    return cost;
}
