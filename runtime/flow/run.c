/* SPDX-License-Identifier: Apache-2.0 */
/* Runs branches and loops. */
#include "graph/base/alloc.h"
#include "graph/attr.h"
#include "graph/base/budget.h"
#include "graph/base/item.h"
#include "graph/error.h"
#include "graph/kiln-types.h"
#include "graph/type.h"
#include "ir/ir.h"
#include "ir/kernel.h"
#include "runtime/flow/frame.h"
#include "runtime/open/instance.h"

#include <string.h>

enum {
    CHECKED_EVERY = 64 /* iterations: a body without calls may be cancelled, too */
};

/* --- memory --- */

static gboolean
make_room(KilnRoom *room, size_t bytes, bool keeps, GError **error)
{
    if (room->data && (room->bytes >= bytes || room->borrowed))
        return TRUE;
    size_t grown = room->bytes && bytes <= SIZE_MAX / 4 ? MAX(bytes, 2 * room->bytes) : bytes;
    void *data = kiln_alloc_for("what a loop carries", 1, grown, error);
    if (!data)
        return FALSE;
    if (keeps && room->bytes)
        memcpy(data, room->data, room->bytes);
    kiln_free(room->data);
    *room = (KilnRoom){ data, grown, false };
    return TRUE;
}

static void
copy_bytes(void *to, const void *from, size_t bytes)
{
    if (bytes && to != from)
        memcpy(to, from, bytes);
}

/* --- inner sessions --- */

static const KilnType *
output_type(const KilnInner *inner, uint32_t o)
{
    return &inner->session->made->outputs.types[o];
}

static size_t
output_bytes(const KilnInner *inner, uint32_t o)
{
    return (size_t)inner->session->made->outputs.info[o].bytes;
}

/* True where the size of output @o is known only after the calls. */
static bool
comes_late(const KilnInner *inner, uint32_t o)
{
    return kiln_instance_decides_output(inner->session->made, o);
}

static const void *
output_data(const KilnInner *inner, uint32_t o)
{
    const OutputSlot *slot = &inner->session->outputs[o];
    return slot->user ? slot->user : slot->own;
}

/* What the function reads as input @i is @bytes big, as operand @operand is. */
static gboolean
check_input(const KilnFlowFrame *frame, const KilnInner *inner, uint32_t i, uint32_t operand,
            int64_t bytes, GError **error)
{
    const int64_t expected = inner->session->made->inputs.info[i].bytes;
    return bytes == expected ||
           kiln_throw(error, KILN_ERROR_SHAPE,
                      "operand %s: expected %" G_GINT64_FORMAT
                      " bytes for the function that reads it, found %" G_GINT64_FORMAT,
                      frame->instr->operands[operand].buffer->name, expected, bytes);
}

/* Captures are the inputs from @first on. */
static gboolean
check_captures(const KilnFlowFrame *frame, const KilnInner *inner, uint32_t first, GError **error)
{
    for (uint32_t i = 0; i < frame->at.n_captures; i++) {
        const uint32_t operand = frame->at.captures + i;
        const KilnType *type = &frame->instr->operands[operand].buffer->type;
        if (!check_input(frame, inner, first + i, operand, kiln_type_bytes(type), error))
            return FALSE;
    }
    return TRUE;
}

static void
give_output(KilnInner *inner, uint32_t o, void *data)
{
    inner->session->outputs[o].user = data;
    inner->session->outputs[o].user_bytes = data ? output_bytes(inner, o) : 0;
}

/* A static function works in the scratch memory of its call, an open one in its own. */
static void
use_scratch(KilnInner *inner, const KilnKernelArgs *args)
{
    KilnSession *session = inner->session;
    if (session->made->instance || session->arena == args->scratch)
        return;
    session->arena = session->user_arena = args->scratch;
    session->arena_bytes = session->user_arena_bytes = (size_t)session->made->arena_bytes;
    kiln_session_refill(session, false);
}

/* The instance moves to the numbers of the instruction, and to the dims of what is carried. */
static gboolean
move_inner(KilnInner *inner, const KilnFlowFrame *frame, GError **error)
{
    KilnSession *session = inner->session;
    const KilnInts *stated = kiln_flow_numbers(frame->instr);
    bool changed;
    if (!session->made->instance)
        return TRUE;
    for (uint32_t i = 0; i < stated->n; i++)
        inner->numbers[i] = stated->v[i];
    for (uint32_t i = 0; i < inner->n_own; i++)
        inner->numbers[stated->n + i] =
            frame->carried[inner->own[i].carried].dims[inner->own[i].dim];
    if (!kiln_instance_move_names(session->made, inner->at, inner->numbers, inner->n_names,
                                  &changed, error)) {
        inner->ready = false;
        return FALSE;
    }
    inner->ready &= !changed;
    if (inner->ready)
        return TRUE;
    if (!kiln_session_make_arena(session, (size_t)session->made->arena_bytes, error))
        return FALSE;
    kiln_session_refill(session, false);
    kiln_inner_find_edges(inner);
    inner->ready = true;
    return TRUE;
}

static gboolean
run_inner(KilnInner *inner, uint64_t seed, GError **error)
{
    KilnSession *session = inner->session;
    for (unsigned o = 0; o < session->made->outputs.n; o++) {
        if (!session->outputs[o].user && !kiln_session_make_output(session, o, error))
            return FALSE;
    }
    for (uint32_t i = 0; i < inner->n_edges; i++)
        session->addresses[inner->edges[i]] =
            kiln_session_address(session, &session->made->slots[inner->edges[i]]);
    session->run_seed = seed;
    if (session->profile && !session->entries)
        kiln_session_make_entries(session);
    if (session->profile ? kiln_session_calls_profiled(session, error)
                         : kiln_session_calls(session, error))
        return TRUE;
    inner->ready &= !session->lost;
    session->lost = false;
    return FALSE;
}

/* --- results --- */

static gboolean
throw_size(const KilnFlowFrame *frame, uint32_t i, size_t found, GError **error)
{
    const KilnBuffer *buffer = frame->instr->operands[i].buffer;
    return kiln_throw(error, KILN_ERROR_RUN,
                      "result %s: expected %" G_GINT64_FORMAT " bytes, found %zu", buffer->name,
                      kiln_type_bytes(&buffer->type), found);
}

static bool
is_size(const KilnFlowFrame *frame, uint32_t i, size_t bytes)
{
    return (size_t)kiln_type_bytes(&frame->instr->operands[i].buffer->type) == bytes;
}

/* Result operand @i is @bytes big. */
static gboolean
check_size(const KilnFlowFrame *frame, uint32_t i, size_t bytes, GError **error)
{
    return is_size(frame, i, bytes) || throw_size(frame, i, bytes, error);
}

/* The counts of the dims of result @r that a run decides. */
static void
write_counts(const KilnFlowFrame *frame, uint32_t r, const int64_t *dims, int64_t *counts)
{
    const KilnInts *decided = kiln_flow_decided(frame->instr);
    for (uint32_t i = 0; i + 1 < decided->n; i += 2) {
        if (decided->v[i] == r)
            counts[i / 2] = dims[decided->v[i + 1]];
    }
}

/* Held result @index is in @data. */
static void
hold(KilnFlowFrame *frame, const KilnKernelArgs *args, uint32_t index, const void *data,
     size_t bytes)
{
    int64_t *list = args->data[frame->at.held];
    frame->held[index] = (KilnHeld){ data, bytes };
    list[index] = (int64_t)(uintptr_t)&frame->held[index];
}

/* --- branches --- */

static gboolean
run_branch(KilnFlowFrame *frame, const KilnKernelArgs *args, GError **error)
{
    const KilnFlowOperands *at = &frame->at;
    const bool taken = *(const uint8_t *)args->data[at->condition];
    KilnInner *inner = &frame->inner[!taken];
    uint32_t direct = 0, index = 0;
    if (!inner->session && !kiln_inner_make(inner, frame, error))
        return FALSE;
    for (uint32_t i = 0; i < at->n_captures; i++)
        inner->session->data[i] = args->data[at->captures + i];
    use_scratch(inner, args);
    if (!move_inner(inner, frame, error) || !check_captures(frame, inner, 0, error))
        return FALSE;
    for (uint32_t r = 0; r < at->n_results; r++) {
        bool held = kiln_flow_is_held(frame->instr, r);
        give_output(inner, r, NULL);
        if (held)
            continue;
        uint32_t i = direct++;
        /* What has another size is refused behind the calls, which may say more. */
        if (!comes_late(inner, r) && is_size(frame, i, output_bytes(inner, r)))
            give_output(inner, r, args->data[i]);
    }
    if (!run_inner(inner, *args->run_seed, error))
        return FALSE;
    direct = 0;
    for (uint32_t r = 0; r < at->n_results; r++) {
        if (kiln_flow_is_held(frame->instr, r)) {
            hold(frame, args, index++, output_data(inner, r), output_bytes(inner, r));
            write_counts(frame, r, output_type(inner, r)->dims, args->data[at->counts]);
            continue;
        }
        uint32_t i = direct++;
        if (!check_size(frame, i, output_bytes(inner, r), error))
            return FALSE;
        copy_bytes(args->data[i], output_data(inner, r), output_bytes(inner, r));
    }
    return TRUE;
}

const char *
kiln_flow_run_branch(KilnFlowRunner *runner, const KilnKernelArgs *args)
{
    KilnFlowFrame *frame = (KilnFlowFrame *)runner;
    return run_branch(frame, args, &frame->error) ? NULL : kiln_flow_failed;
}

/* --- loops --- */

/* A run of a loop. */
typedef struct {
    KilnFlowFrame *frame;
    const KilnKernelArgs *args;
    int64_t limit;
    uint32_t asks; /* outputs of the body in front of the results */
    int64_t i;     /* the iteration */
    uint8_t goes_on;
    size_t mark; /* of items that the loop did not make */
} Loop;

static uint32_t
n_stacked(const KilnFlowFrame *frame)
{
    return frame->at.n_results - frame->at.n_carried;
}

/* The operand of result @r; UINT32_MAX where it is held. */
static uint32_t
direct_operand(const KilnFlowFrame *frame, uint32_t r)
{
    uint32_t direct = 0;
    if (kiln_flow_is_held(frame->instr, r))
        return UINT32_MAX;
    for (uint32_t k = 0; k < r; k++)
        direct += !kiln_flow_is_held(frame->instr, k);
    return direct;
}

static const KilnType *
operand_type(const KilnFlowFrame *frame, uint32_t i)
{
    return &frame->instr->operands[i].buffer->type;
}

/* The most iterations: what limits the loop, or the length that it scans. */
static gboolean
count_iterations(const KilnFlowFrame *frame, const KilnKernelArgs *args, int64_t *out,
                 GError **error)
{
    const KilnFlowOperands *at = &frame->at;
    int64_t limit = at->limit == UINT32_MAX ? INT64_MAX : *(const int64_t *)args->data[at->limit];
    if (!kiln_flow_scanned_length(frame->instr, out, error))
        return FALSE;
    *out = CLAMP(limit, 0, *out);
    return TRUE;
}

/* A result is room @i of @value. The room that was there is kept as the other one. */
static void
lend_room(KilnCarriedValue *value, int i, void *data)
{
    if (value->rooms[!i].data)
        kiln_free(value->rooms[i].data);
    else
        value->rooms[!i] = value->rooms[i];
    value->rooms[i] = (KilnRoom){ data, value->bytes, true };
}

/* What is carried begins in its operand. A result of known size is one of its two places: the one
 * that the last iteration writes, if it is known which that is. */
static gboolean
begin_carried(const Loop *loop, GError **error)
{
    KilnFlowFrame *frame = loop->frame;
    for (uint32_t k = 0; k < frame->at.n_carried; k++) {
        KilnCarriedValue *value = &frame->carried[k];
        const KilnType *type = operand_type(frame, frame->at.carried + k);
        uint32_t direct = direct_operand(frame, k);
        value->data = loop->args->data[frame->at.carried + k];
        value->bytes = (size_t)kiln_type_bytes(type);
        value->room = -1;
        memcpy(value->dims, type->dims, sizeof value->dims);
        if (direct == UINT32_MAX)
            continue;
        if (!check_size(frame, direct, value->bytes, error))
            return FALSE;
        if (!comes_late(&frame->inner[0],
                        loop->asks + k)) /* the first iteration writes to room 0 */
            lend_room(value, !value->in_place && loop->limit % 2 == 0, loop->args->data[direct]);
    }
    return TRUE;
}

/* Room @room may be what a result lent in an earlier run. */
static void
take_back_rooms(const KilnFlowFrame *frame)
{
    for (uint32_t k = 0; k < frame->at.n_carried; k++) {
        for (int i = 0; i < 2; i++) {
            if (frame->carried[k].rooms[i].borrowed)
                frame->carried[k].rooms[i] = (KilnRoom){ NULL, 0, false };
        }
    }
}

/* The room that an iteration writes a carried value of @bytes to. */
static int
next_room(const KilnCarriedValue *value, size_t bytes)
{
    return value->room == 0 && !(value->in_place && value->bytes == bytes);
}

static gboolean
give_carried(const Loop *loop, GError **error)
{
    KilnFlowFrame *frame = loop->frame;
    KilnInner *inner = &frame->inner[0];
    for (uint32_t k = 0; k < frame->at.n_carried; k++) {
        KilnCarriedValue *value = &frame->carried[k];
        uint32_t o = loop->asks + k;
        KilnRoom *room = &value->rooms[next_room(value, output_bytes(inner, o))];
        give_output(inner, o, NULL);
        if (comes_late(inner, o))
            continue;
        if (room->borrowed && output_bytes(inner, o) != room->bytes)
            return throw_size(frame, direct_operand(frame, k), output_bytes(inner, o), error);
        if (!make_room(room, output_bytes(inner, o), false, error))
            return FALSE;
        give_output(inner, o, room->data);
    }
    return TRUE;
}

/* There is no memory for items from @from on, which nobody owns. */
static gboolean
throw_items(KilnFlowFrame *frame, uint32_t from, uint32_t n, GError **error)
{
    GError *why = kiln_text_heap_take_error(frame->inner[0].session->texts);
    for (uint32_t i = from; i < n; i++)
        kiln_item_unref(frame->items[i]);
    g_propagate_error(error, why);
    return FALSE;
}

/* What the iteration made goes, but for the items that it carries on: the heap owns these. Those
 * that it carried before may go with it. */
static gboolean
drop_items(const Loop *loop, size_t mark, GError **error)
{
    KilnFlowFrame *frame = loop->frame;
    KilnTextHeap *texts = frame->inner[0].session->texts;
    uint32_t n = 0;
    if (kiln_item_mark(texts) == mark)
        return TRUE;
    for (uint32_t k = 0; k < frame->at.n_carried; k++) {
        if (kiln_dtype_is_item(output_type(&frame->inner[0], loop->asks + k)->dtype))
            frame->items[n++] = kiln_item_ref(kiln_item_of(frame->carried[k].data));
    }
    kiln_item_drop(texts, mark);
    for (uint32_t i = 0; i < n; i++) {
        if (frame->items[i] && !kiln_item_give(texts, frame->items[i]))
            return throw_items(frame, i, n, error);
    }
    return TRUE;
}

/* What the iteration wrote is what the next one reads. */
static void
carry_on(const Loop *loop)
{
    KilnFlowFrame *frame = loop->frame;
    KilnInner *inner = &frame->inner[0];
    for (uint32_t k = 0; k < frame->at.n_carried; k++) {
        KilnCarriedValue *value = &frame->carried[k];
        uint32_t o = loop->asks + k;
        OutputSlot *slot = &inner->session->outputs[o];
        int room = slot->user ? next_room(value, output_bytes(inner, o)) : value->room == 0;
        if (!slot->user) { /* it lies in the memory of the inner session, which gets other memory */
            KilnRoom made = { slot->own, slot->own_bytes, false };
            slot->own = value->rooms[room].data;
            slot->own_bytes = value->rooms[room].bytes;
            value->rooms[room] = made;
        }
        value->room = room;
        value->data = value->rooms[room].data;
        value->bytes = output_bytes(inner, o);
        memcpy(value->dims, output_type(inner, o)->dims, sizeof value->dims);
    }
}

/* Where the element of iteration i of stacked result @s lies among the others. */
static int64_t
place_of(const Loop *loop, uint32_t s)
{
    bool backwards = kiln_flow_goes_backwards(loop->frame->instr, loop->frame->at.n_scanned + s);
    return backwards ? loop->limit - 1 - loop->i : loop->i;
}

static gboolean
check_element(const Loop *loop, uint32_t s, GError **error)
{
    KilnFlowFrame *frame = loop->frame;
    const KilnType *type = output_type(&frame->inner[0], loop->asks + frame->at.n_carried + s);
    bool same = true;
    for (int d = 0; d < type->rank && loop->i; d++)
        same &= frame->stacked[s][d] == type->dims[d];
    if (!same)
        return kiln_throw(error, KILN_ERROR_RUN,
                          "stacked result %u: expected values of one shape, found another one", s);
    memcpy(frame->stacked[s], type->dims, sizeof frame->stacked[s]);
    frame->stacked_bytes[s] = output_bytes(&frame->inner[0], loop->asks + frame->at.n_carried + s);
    return TRUE;
}

/* Room for the element of this iteration; *@out is where. */
static gboolean
stack_room(const Loop *loop, uint32_t s, size_t bytes, char **out, GError **error)
{
    KilnFlowFrame *frame = loop->frame;
    uint32_t direct = direct_operand(frame, frame->at.n_carried + s);
    size_t n = (size_t)(loop->limit < INT64_MAX &&
                                kiln_flow_goes_backwards(frame->instr, frame->at.n_scanned + s)
                            ? loop->limit
                            : loop->i + 1);
    size_t at, end, all;
    if (__builtin_mul_overflow((size_t)place_of(loop, s), bytes, &at) ||
        __builtin_add_overflow(at, bytes, &end) || __builtin_mul_overflow(n, bytes, &all))
        return kiln_throw(error, KILN_ERROR_LIMIT,
                          "stacked result %u is too big: %zu values of %zu "
                          "bytes",
                          s, n, bytes);
    if (direct == UINT32_MAX) {
        KilnRoom *room = &frame->stacks[s];
        if (!make_room(room, all, true, error))
            return FALSE;
        *out = (char *)room->data + at;
        return TRUE;
    }
    if (end > (size_t)kiln_type_bytes(operand_type(frame, direct)))
        return throw_size(frame, direct, end, error);
    *out = (char *)loop->args->data[direct] + at;
    return TRUE;
}

static gboolean
give_stacked(const Loop *loop, GError **error)
{
    KilnFlowFrame *frame = loop->frame;
    KilnInner *inner = &frame->inner[0];
    for (uint32_t s = 0; s < n_stacked(frame); s++) {
        uint32_t o = loop->asks + frame->at.n_carried + s;
        char *place;
        give_output(inner, o, NULL);
        if (comes_late(inner, o))
            continue;
        if (!check_element(loop, s, error) ||
            !stack_room(loop, s, output_bytes(inner, o), &place, error))
            return FALSE;
        give_output(inner, o, place);
    }
    return TRUE;
}

/* Elements whose size came with the calls are copied to their stack. */
static gboolean
keep_stacked(const Loop *loop, GError **error)
{
    KilnFlowFrame *frame = loop->frame;
    KilnInner *inner = &frame->inner[0];
    for (uint32_t s = 0; s < n_stacked(frame); s++) {
        uint32_t o = loop->asks + frame->at.n_carried + s;
        char *place;
        if (inner->session->outputs[o].user)
            continue;
        if (!check_element(loop, s, error) ||
            !stack_room(loop, s, output_bytes(inner, o), &place, error))
            return FALSE;
        copy_bytes(place, output_data(inner, o), output_bytes(inner, o));
    }
    return TRUE;
}

/* What the iteration reads of scanned operand @s. */
static const void *
scanned_element(const Loop *loop, uint32_t s, int64_t *out_bytes)
{
    const KilnFlowFrame *frame = loop->frame;
    const KilnType *type = operand_type(frame, frame->at.scanned + s);
    int64_t n = type->dims[0];
    int64_t i = kiln_flow_goes_backwards(frame->instr, s) ? n - 1 - loop->i : loop->i;
    *out_bytes = kiln_type_bytes(type) / MAX(n, 1);
    return (const char *)loop->args->data[frame->at.scanned + s] + i * *out_bytes;
}

static gboolean
set_inputs(Loop *loop, GError **error)
{
    KilnFlowFrame *frame = loop->frame;
    const KilnInner *inner = &frame->inner[0];
    const KilnFlowOperands *at = &frame->at;
    const void **data = inner->session->data;
    uint32_t n = 0;
    data[n++] = &loop->i;
    data[n++] = &loop->goes_on;
    for (uint32_t k = 0; k < at->n_carried; k++) {
        data[n] = frame->carried[k].data;
        if (!check_input(frame, inner, n++, at->carried + k, (int64_t)frame->carried[k].bytes,
                         error))
            return FALSE;
    }
    for (uint32_t s = 0; s < at->n_scanned; s++) {
        int64_t bytes;
        data[n] = scanned_element(loop, s, &bytes);
        if (!check_input(frame, inner, n++, at->scanned + s, bytes, error))
            return FALSE;
    }
    if (!check_captures(frame, inner, n, error))
        return FALSE;
    for (uint32_t i = 0; i < at->n_captures; i++)
        data[n++] = loop->args->data[at->captures + i];
    return TRUE;
}

static gboolean
check_end(const Loop *loop, GError **error)
{
    const KilnSession *session = loop->frame->inner[0].session;
    if (loop->i % CHECKED_EVERY)
        return TRUE;
    if (kiln_session_cancelled(session))
        return kiln_throw(error, KILN_ERROR_CANCELLED, "cancelled");
    return kiln_budget_check_time(error);
}

static gboolean
iterate(Loop *loop, GError **error)
{
    KilnInner *inner = &loop->frame->inner[0];
    if (!check_end(loop, error) || !move_inner(inner, loop->frame, error))
        return FALSE;
    uint8_t goes_on = 1;
    if (loop->asks)
        give_output(inner, 0, &goes_on);
    if (!set_inputs(loop, error) || !give_carried(loop, error) || !give_stacked(loop, error) ||
        !run_inner(inner, kiln_flow_seed(*loop->args->run_seed, loop->i), error) ||
        !keep_stacked(loop, error))
        return FALSE;
    carry_on(loop);
    loop->goes_on = goes_on;
    return drop_items(loop, loop->mark, error);
}

/* A result of known size lies where it belongs, or is copied there. */
static gboolean
finish_carried(const Loop *loop, uint32_t k, uint32_t *index, GError **error)
{
    KilnFlowFrame *frame = loop->frame;
    KilnCarriedValue *value = &frame->carried[k];
    uint32_t direct = direct_operand(frame, k);
    if (direct != UINT32_MAX) {
        if (!check_size(frame, direct, value->bytes, error))
            return FALSE;
        copy_bytes(loop->args->data[direct], value->data, value->bytes);
        return TRUE;
    }
    if (value->room < 0) { /* the operand may be gone when the result is taken */
        if (!make_room(&value->rooms[0], value->bytes, false, error))
            return FALSE;
        copy_bytes(value->rooms[0].data, value->data, value->bytes);
        value->data = value->rooms[0].data;
    }
    hold(frame, loop->args, (*index)++, value->data, value->bytes);
    write_counts(frame, k, value->dims, loop->args->data[frame->at.counts]);
    return TRUE;
}

/* Without an iteration the dims of an element are those of its type; what is not known there is 0.
 */
static void
find_empty_dims(const Loop *loop, uint32_t s)
{
    KilnFlowFrame *frame = loop->frame;
    uint32_t o = loop->asks + frame->at.n_carried + s;
    const KilnInner *inner = &frame->inner[0];
    const KilnType *type = output_type(inner, o);
    for (int d = 0; d < type->rank; d++)
        frame->stacked[s][d] = inner->session->made->instance ? 0 : type->dims[d];
}

static gboolean
finish_stacked(const Loop *loop, uint32_t s, uint32_t *index, GError **error)
{
    KilnFlowFrame *frame = loop->frame;
    uint32_t r = frame->at.n_carried + s, direct = direct_operand(frame, r);
    int64_t dims[KILN_MAX_RANK] = { loop->i };
    const size_t bytes = (size_t)loop->i * frame->stacked_bytes[s]; /* which is in memory */
    if (direct != UINT32_MAX)
        return loop->i == operand_type(frame, direct)->dims[0]
                   ? check_size(frame, direct, bytes, error)
                   : throw_size(frame, direct, bytes, error);
    if (loop->i == 0) {
        find_empty_dims(loop, s);
        if (!make_room(&frame->stacks[s], 0, false, error))
            return FALSE;
    }
    memcpy(dims + 1, frame->stacked[s], (KILN_MAX_RANK - 1) * sizeof *dims);
    hold(frame, loop->args, (*index)++, frame->stacks[s].data, bytes);
    write_counts(frame, r, dims, loop->args->data[frame->at.counts]);
    return TRUE;
}

static gboolean
run_loop(KilnFlowFrame *frame, const KilnKernelArgs *args, GError **error)
{
    const KilnFlowOperands *at = &frame->at;
    Loop loop = { .frame = frame,
                  .args = args,
                  .asks = kiln_instr_attrs(frame->instr, loop)->asks ? 1 : 0,
                  .goes_on =
                      at->condition == UINT32_MAX || *(const uint8_t *)args->data[at->condition] };
    uint32_t index = 0;
    if (!frame->inner[0].session && !kiln_inner_make(&frame->inner[0], frame, error))
        return FALSE;
    if (!count_iterations(frame, args, &loop.limit, error))
        return FALSE;
    loop.mark = kiln_item_mark(frame->inner[0].session->texts);
    use_scratch(&frame->inner[0], args);
    take_back_rooms(frame);
    if (!begin_carried(&loop, error))
        return FALSE;
    for (; loop.i < loop.limit && loop.goes_on; loop.i++) {
        if (!iterate(&loop, error)) {
            kiln_prefix_error(error, "iteration %" G_GINT64_FORMAT ": ", loop.i);
            return FALSE;
        }
    }
    for (uint32_t k = 0; k < at->n_carried; k++) {
        if (!finish_carried(&loop, k, &index, error))
            return FALSE;
    }
    for (uint32_t s = 0; s < n_stacked(frame); s++) {
        if (!finish_stacked(&loop, s, &index, error))
            return FALSE;
    }
    return TRUE;
}

const char *
kiln_flow_run_loop(KilnFlowRunner *runner, const KilnKernelArgs *args)
{
    KilnFlowFrame *frame = (KilnFlowFrame *)runner;
    return run_loop(frame, args, &frame->error) ? NULL : kiln_flow_failed;
}
