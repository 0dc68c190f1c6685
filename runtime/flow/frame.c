/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/flow/frame.h"

#include "graph/attr.h"
#include "graph/base/alloc.h"
#include "graph/dim.h"
#include "graph/type.h"
#include "ir/instr.h"
#include "ir/ir.h"
#include "runtime/bind.h"
#include "runtime/flow/bodies.h"
#include "runtime/flow/flow.h"
#include "runtime/open/instance.h"
#include "runtime/open/template.h"

#include <string.h>

struct KilnFlows {
    uint32_t n;
    KilnFlowFrame **frames; /* per call */
};

/* --- inner sessions --- */

void
kiln_inner_find_edges(KilnInner *inner)
{
    const KilnSpecialisation *made = inner->session->made;
    inner->n_edges = 0;
    for (uint32_t i = 0; i < made->n_slots; i++) {
        if (made->slots[i].kind == KILN_SLOT_INPUT || made->slots[i].kind == KILN_SLOT_OUTPUT)
            inner->edges[inner->n_edges++] = i;
    }
}

/* The place of @name in the binding of @origin; its length where it is no name of it. */
static uint32_t
place_of(const KilnTemplate *origin, const char *name)
{
    uint32_t i = 0;
    while (i < origin->binding->n && strcmp(origin->binding->names[i].name, name) != 0)
        i++;
    return i;
}

/* Names in the inputs that are no names of the instruction. */
static void
find_own_names(KilnInner *inner, const KilnFlowFrame *frame, const KilnTemplate *origin)
{
    const KilnStrings *stated = kiln_flow_names(frame->instr);
    uint32_t first = frame->instr->kind == KILN_INSTR_loop ? 2 : 0;
    for (uint32_t k = 0; k < frame->at.n_carried; k++) {
        const KilnBuffer *input = g_ptr_array_index(origin->function->inputs, first + k);
        for (int d = 0; d < input->type.rank; d++) {
            const char *name = kiln_type_dim_name(&input->type, d);
            bool known = !name;
            for (uint32_t i = 0; !known && i < stated->n; i++)
                known = strcmp(stated->v[i], name) == 0;
            uint32_t at = known ? 0 : place_of(origin, name);
            if (known || at == origin->binding->n)
                continue;
            inner->own[inner->n_own++] = (KilnOwnName){ k, d };
            inner->at[inner->n_names++] = at;
        }
    }
}

static gboolean
find_names(KilnInner *inner, const KilnFlowFrame *frame, const KilnTemplate *origin, GError **error)
{
    const KilnStrings *stated = kiln_flow_names(frame->instr);
    gsize room = (gsize)stated->n + (gsize)frame->at.n_carried * KILN_MAX_RANK + 1;
    inner->at = g_new0(uint32_t, room);
    inner->numbers = g_new0(int64_t, room);
    inner->own = g_new0(KilnOwnName, room);
    for (uint32_t i = 0; i < stated->n; i++) {
        inner->at[inner->n_names] = place_of(origin, stated->v[i]);
        if (inner->at[inner->n_names++] == origin->binding->n)
            return kiln_throw(error, KILN_ERROR_INVALID, "@%s: dim %s: no name of the program",
                              origin->function->name, stated->v[i]);
    }
    find_own_names(inner, frame, origin);
    return TRUE;
}

static void
clear_inner(KilnInner *inner)
{
    kiln_session_free_inner(inner->session);
    g_free(inner->edges);
    g_free(inner->at);
    g_free(inner->numbers);
    g_free(inner->own);
    *inner = (KilnInner){ .body = inner->body, .outer = inner->outer };
}

gboolean
kiln_inner_make(KilnInner *inner, const KilnFlowFrame *frame, GError **error)
{
    const KilnBody *body = inner->body;
    KilnSpecialisation *made =
        body->made
            ? kiln_specialisation_ref(body->made)
            : kiln_instance_new_body(body->origin, kiln_instance_options(inner->outer->made));
    inner->session = kiln_session_new_inner(inner->outer, made, error);
    if (!inner->session)
        return FALSE;
    inner->edges = g_new0(uint32_t, (gsize)made->n_slots + 1);
    if (body->made)
        kiln_inner_find_edges(inner);
    if (body->made || find_names(inner, frame, body->origin, error))
        return TRUE;
    clear_inner(inner);
    return FALSE;
}

/* --- frames --- */

static void
free_room(KilnRoom *room)
{
    if (!room->borrowed)
        kiln_free(room->data);
}

static void
free_frame(KilnFlowFrame *frame)
{
    if (!frame)
        return;
    for (int b = 0; b < 2; b++)
        clear_inner(&frame->inner[b]);
    for (uint32_t k = 0; k < frame->at.n_carried; k++) {
        free_room(&frame->carried[k].rooms[0]);
        free_room(&frame->carried[k].rooms[1]);
    }
    for (uint32_t r = 0; r < frame->at.n_results; r++)
        free_room(&frame->stacks[r]);
    g_free(frame->carried);
    g_free(frame->stacks);
    g_free(frame->stacked_bytes);
    g_free(frame->stacked);
    g_free(frame->held);
    g_free(frame->items);
    g_clear_error(&frame->error);
    g_free(frame);
}

/* A frame for @instr, whose functions are the bodies from @at on. */
static KilnFlowFrame *
make_frame(KilnSession *session, const KilnInstr *instr, guint at, GError **error)
{
    const GPtrArray *bodies = session->made->bodies;
    const bool loop = instr->kind == KILN_INSTR_loop;
    KilnFlowFrame *frame = g_new0(KilnFlowFrame, 1);
    frame->runner.run = loop ? kiln_flow_run_loop : kiln_flow_run_branch;
    frame->instr = instr;
    frame->at = kiln_flow_operands(instr);
    frame->carried = g_new0(KilnCarriedValue, (gsize)frame->at.n_carried + 1);
    frame->stacks = g_new0(KilnRoom, (gsize)frame->at.n_results + 1);
    frame->held = g_new0(KilnHeld, (gsize)frame->at.n_held + 1);
    frame->stacked_bytes = g_new0(size_t, (gsize)frame->at.n_results + 1);
    frame->stacked = g_malloc0_n((gsize)frame->at.n_results + 1, sizeof *frame->stacked);
    frame->items = g_new0(KilnItem *, (gsize)frame->at.n_carried + 1);
    for (int b = 0; b < kiln_flow_n_functions(instr); b++) {
        const KilnBody *body = g_ptr_array_index((GPtrArray *)bodies, at + (guint)b);
        frame->draws |= body->draws;
        if (loop)
            kiln_flow_find_in_place(frame, body->function);
        frame->inner[b] = (KilnInner){ .body = body, .outer = session };
        if (body->again || kiln_inner_make(&frame->inner[b], frame, error))
            continue;
        free_frame(frame);
        return NULL;
    }
    return frame;
}

/* --- all of a session --- */

KilnFlows *
kiln_flows_new(KilnSession *session, GError **error)
{
    const KilnSpecialisation *made = session->made;
    guint next = 0;
    if (!made->bodies)
        return NULL;
    KilnFlows *flows = g_new0(KilnFlows, 1);
    flows->n = made->n_calls;
    flows->frames = g_new0(KilnFlowFrame *, (gsize)flows->n + 1);
    for (uint32_t c = 0; c < flows->n; c++) {
        const KilnInstr *instr = made->calls[c].instr;
        if (!kiln_flow_n_functions(instr))
            continue;
        flows->frames[c] = make_frame(session, instr, next, error);
        if (!flows->frames[c]) {
            kiln_flows_free(flows);
            return NULL;
        }
        next += (guint)kiln_flow_n_functions(instr);
    }
    return flows;
}

void
kiln_flows_free(KilnFlows *flows)
{
    if (!flows)
        return;
    for (uint32_t c = 0; c < flows->n; c++)
        free_frame(flows->frames[c]);
    g_free(flows->frames);
    g_free(flows);
}

void *
kiln_flows_runner(const KilnFlows *flows, uint32_t c)
{
    return flows->frames[c];
}

KilnSession *
kiln_flows_inner(const KilnFlows *flows, uint32_t c, int b)
{
    return flows->frames[c] ? flows->frames[c]->inner[b].session : NULL;
}

gboolean
kiln_flows_throw(KilnFlows *flows, uint32_t c, GError **error)
{
    KilnFlowFrame *frame = flows->frames[c];
    g_propagate_error(error, g_steal_pointer(&frame->error));
    kiln_prefix_error(error, "%s (%s): ", kiln_instr_label(frame->instr),
                      frame->instr->kind == KILN_INSTR_loop ? "loop" : "if");
    return FALSE;
}

bool
kiln_flows_draw(const KilnFlows *flows)
{
    bool draws = false;
    for (uint32_t c = 0; c < flows->n; c++)
        draws |= flows->frames[c] && flows->frames[c]->draws;
    return draws;
}
