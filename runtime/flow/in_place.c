/* SPDX-License-Identifier: Apache-2.0 */
/* Which carried values a body changes in place. The instruction that writes the new value reads the
 * old one, may share its bytes, and nothing reads the old one behind it:
 *
 *     input @cache : f32[1024,64]
 *     output @next : f32[1024,64]
 *     …
 *     scatter_nd @out @next, @in @cache, @in %i, @in %row
 *
 * Then an iteration writes a row, not the whole of the cache. */
#include "graph/attr.h"
#include "graph/type.h"
#include "ir/instr.h"
#include "ir/ir.h"
#include "runtime/flow/frame.h"

/* The one instruction that writes @output, and the operand that it is; NULL: several do, or one
 * that writes a part. */
static const KilnInstr *
writer_of(const KilnBuffer *output, uint32_t *out_index)
{
    const KilnInstr *writer = NULL;
    kiln_foreach_buffer_use (use, output) {
        if (use->user->kind == KILN_INSTR_view)
            return NULL;
        if (use->access == KILN_ACCESS_IN)
            continue;
        if (writer || use->access != KILN_ACCESS_OUT)
            return NULL;
        writer = use->user;
        *out_index = use->index;
    }
    return writer;
}

/* @writer reads @input once, and no instruction behind it does. */
static bool
reads_last(const KilnInstr *writer, const KilnBuffer *input, uint32_t *out_index)
{
    bool reads = false;
    kiln_foreach_buffer_use (use, input) {
        if (use->user->kind == KILN_INSTR_view || (use->user == writer && reads))
            return false;
        if (use->user == writer) {
            reads = true;
            *out_index = use->index;
        }
    }
    for (const KilnInstr *instr = writer->next; reads && instr; instr = instr->next) {
        for (uint32_t i = 0; i < instr->n_operands; i++)
            reads &= instr->operands[i].buffer != input;
    }
    return reads;
}

void
kiln_flow_find_in_place(KilnFlowFrame *frame, const KilnIRFunction *body)
{
    const uint32_t asks = kiln_instr_attrs(frame->instr, loop)->asks ? 1 : 0;
    for (uint32_t k = 0; k < frame->at.n_carried; k++) {
        const KilnBuffer *input = g_ptr_array_index(body->inputs, 2 + k);
        const KilnBuffer *output = g_ptr_array_index(body->outputs, asks + k);
        uint32_t out = 0, in = 0;
        const KilnInstr *writer = writer_of(output, &out);
        frame->carried[k].in_place = writer && kiln_type_equal_shape(&input->type, &output->type) &&
                                     reads_last(writer, input, &in) &&
                                     kiln_instr_may_share(writer, out, in);
    }
}
