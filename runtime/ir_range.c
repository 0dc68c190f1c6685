/* SPDX-License-Identifier: Apache-2.0 */
/* Which integers an input of an IR function may hold: what kiln_argument_range() says of a graph.
 */
#include "runtime/tensor_file.h"

/* The table that an instruction indexes with operand @index, and the extent that limits it; -1:
 * none. */
static int64_t
limit_of(const KilnInstr *instr, uint32_t index)
{
    bool gather = instr->kind == KILN_INSTR_gather,
         elements = instr->kind == KILN_INSTR_gather_elements;
    if ((!gather && !elements) || index != 2)
        return -1;
    const KilnType *table = &instr->operands[1].buffer->type;
    int64_t axis = gather ? kiln_instr_attrs(instr, gather)->axis
                          : kiln_instr_attrs(instr, gather_elements)->axis;
    int at = kiln_type_axis(table, axis);
    return at < 0 ? -1 : table->dims[at];
}

static bool
moves(const KilnInstr *instr)
{
    return kiln_instr_info(instr->kind)->flags & KILN_INSTR_MOVEMENT ||
           instr->kind == KILN_INSTR_cast;
}

void
kiln_ir_input_range(const KilnIRFunction *function, guint i, int64_t *out_low, int64_t *out_high)
{
    /* Instructions stand in order of execution: one walk follows the input through all that only
     * moves it. */
    g_autofree bool *follows = g_new0(bool, function->buffers->len + 1);
    follows[((KilnBuffer *)g_ptr_array_index(function->inputs, i))->id] = true;
    int64_t bound = INT64_MAX;
    kiln_foreach_instr (instr, function) {
        for (uint32_t k = 0; k < instr->n_operands; k++) {
            KilnBuffer *buffer = instr->operands[k].buffer;
            if (!buffer || !follows[kiln_buffer_origin(buffer)->id])
                continue;
            int64_t limit = limit_of(instr, k);
            if (limit > 0)
                bound = MIN(bound, limit);
            else if (k > 0 && moves(instr))
                follows[kiln_buffer_origin(instr->operands[0].buffer)->id] = true;
        }
    }
    *out_low = 0;
    *out_high = bound == INT64_MAX ? 8 : bound;
}
