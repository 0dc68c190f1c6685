/* SPDX-License-Identifier: Apache-2.0 */
/* hoist-dealloc: each buffer is freed right after its last use, through views too.
 *
 *     relu @out %b, @in %a            relu @out %b, @in %a
 *     exp @out %c, @in %b       =>    dealloc %a
 *     dealloc %a                      exp @out %c, @in %b
 *
 * requires nothing, preserves nothing; class E. Deallocs behind one instruction stand in the order
 * of their allocs, so that a second run changes nothing. Never raises the peak: lives only get
 * shorter. */
#include "passes/pass.h"

static const char rule[] = "hoist";

/* Where a buffer is used last: by the instruction that works with it or a view of it, or makes a
 * view of it. */
typedef struct {
    KilnInstr *last, *dealloc;
    uint32_t position; /* of the last use */
    uint32_t id;       /* of the buffer */
} Life;

/* By order of the last uses, then of the allocs. */
static int
by_end(gconstpointer a, gconstpointer b)
{
    const Life *x = a, *y = b;
    if (x->position != y->position)
        return x->position < y->position ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The lives that a dealloc ends, in the order in which the deallocs shall stand. */
static GArray *
find_lives(const KilnIRFunction *function)
{
    g_autofree Life *lives = g_new0(Life, function->buffers->len + 1); /* by buffer id */
    uint32_t position = 0;
    kiln_foreach_instr (instr, function) {
        if (instr->kind == KILN_INSTR_dealloc) {
            lives[instr->operands[0].buffer->id].dealloc = instr;
            continue;
        }
        position++;
        for (uint32_t i = 0; i < instr->n_operands; i++) {
            KilnBuffer *buffer = instr->operands[i].buffer;
            if (!buffer)
                continue;
            Life *life = &lives[kiln_buffer_origin(buffer)->id];
            life->last = instr;
            life->position = position;
        }
    }
    GArray *ended = g_array_new(FALSE, FALSE, sizeof(Life));
    for (uint32_t id = 0; id < function->buffers->len; id++) {
        lives[id].id = id;
        if (lives[id].dealloc)
            g_array_append_val(ended, lives[id]);
    }
    g_array_sort(ended, by_end);
    return ended;
}

IR_PASS(hoist_dealloc);

gboolean
kiln_pass_hoist_dealloc(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                        GError **error)
{
    (void)error;
    *changed = false;
    g_autoptr(GArray) lives = find_lives(function);
    KilnInstr *behind = NULL; /* where the next dealloc shall stand */
    for (guint i = 0; i < lives->len; i++) {
        const Life *life = &g_array_index(lives, Life, i);
        if (i == 0 || life->last != g_array_index(lives, Life, i - 1).last)
            behind = life->last;
        if (behind->next != life->dealloc) {
            kiln_instr_move(life->dealloc, behind->next);
            kiln_pass_note(context, rule, "%%%s behind %s", life->dealloc->operands[0].buffer->name,
                           kiln_instr_label(life->last));
            *changed = true;
        }
        behind = life->dealloc;
    }
    return TRUE;
}
