/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier of what changed. A function that was valid can only have become invalid at what was
 * touched since, and at what hangs on it:
 *
 *   an instruction that was linked or moved
 *       stands behind what defines its operands, in front of what uses the buffer that it defines
 *   a new one, or one with other operands or attributes
 *       is looked at as the whole verifier does; for a view so are the users, whose bytes moved
 *       with it
 *   a buffer with other uses, name or kind
 *       is looked at as the whole verifier does; one that was removed has no uses
 *   the origins of all of these
 *       one dealloc, behind all uses; every read, also through views, is of bytes written before
 *
 * Which of two instructions comes first is told by their places, which the functions that link them
 * keep. A function with a memory plan has its offsets checked as a whole. */
#include "ir/changes.h"
#include "ir/ir.h"
#include "ir/verify/verify_priv.h"

enum {
    FURTHER = 32 /* notes */
};

typedef struct {
    KilnIRFunction *function;
    KilnArena *arena;
    GPtrArray *origins; /* KilnBuffer*: whose lives are looked at */
    bool *seen;         /* by buffer id: it is among them */
    GArray *touches;    /* Touch: of one origin */
    GPtrArray *views;   /* KilnBuffer*: an origin, and what views it */
} Look;

/* An operand through which an origin is read or written. */
typedef struct {
    uint64_t place;
    const KilnBufferUse *use;
} Touch;

static bool
is_own(const KilnIRFunction *function, const KilnBuffer *buffer)
{
    return buffer->function == function && buffer->id < function->buffers->len &&
           g_ptr_array_index(function->buffers, buffer->id) == buffer;
}

static bool
defines(const KilnInstr *instr)
{
    return instr->kind == KILN_INSTR_alloc || instr->kind == KILN_INSTR_view;
}

/* --- instructions by themselves, and beside what defines their operands --- */

static gboolean
check_place(const KilnInstr *instr, GError **error)
{
    const KilnIRFunction *function = instr->function;
    const KilnInstr *before = instr->previous, *after = instr->next;
    bool front =
        before ? before->next == instr && before->place < instr->place : function->first == instr;
    bool back =
        after ? after->previous == instr && instr->place < after->place : function->last == instr;
    return (front && back && instr->id < function->next_id) ||
           kiln_ir_throw(function, error, "the list of instructions is broken at %s",
                         kiln_instr_label(instr));
}

static gboolean
throw_undefined(const KilnInstr *user, const KilnBuffer *buffer, GError **error)
{
    return kiln_instr_throw(user, error, "%%%s is used before it is defined", buffer->name);
}

static gboolean
check_defined(const KilnInstr *instr, uint32_t i, GError **error)
{
    const KilnBuffer *buffer = instr->operands[i].buffer;
    if (!buffer || (i == 0 && defines(instr)))
        return TRUE;
    if (!is_own(instr->function, buffer))
        return kiln_instr_throw(instr, error, "operand %u: %s was removed", i, buffer->name);
    const KilnInstr *def = buffer->def;
    return buffer->kind < KILN_BUFFER_ALLOC ||
           (def && kiln_instr_is_linked(def) && def->place < instr->place) ||
           throw_undefined(instr, buffer, error);
}

static gboolean
check_users(const KilnInstr *def, GError **error)
{
    const KilnBuffer *buffer = def->operands[0].buffer;
    kiln_foreach_buffer_use (use, buffer) {
        if (use->user != def && use->user->place <= def->place)
            return throw_undefined(use->user, buffer, error);
    }
    return TRUE;
}

static gboolean
check_order(const KilnInstr *instr, GError **error)
{
    if (!kiln_instr_is_linked(instr)) {
        for (uint32_t i = 0; i < instr->n_operands; i++) {
            if (instr->operands[i].buffer)
                return kiln_instr_throw(instr, error, "it was removed, but is among the uses of %s",
                                        instr->operands[i].buffer->name);
        }
        return TRUE;
    }
    if (!check_place(instr, error) || !kiln_instr_verify_operands(instr, error))
        return FALSE;
    if (kiln_instr_is_bookkeeping(instr) && !kiln_instr_verify_bookkeeping(instr, error))
        return FALSE;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (!check_defined(instr, i, error))
            return FALSE;
    }
    return !defines(instr) || check_users(instr, error);
}

/* What it does to its operands. Behind check_order() of all that was touched: views of views end at
 * an origin. */
static gboolean
check_work(Look *look, const KilnInstr *instr, GError **error)
{
    if (!instr->rewritten || !kiln_instr_is_linked(instr))
        return TRUE;
    if (kiln_instr_is_bookkeeping(instr))
        return instr->kind != KILN_INSTR_view || kiln_instr_verify_view(instr, error);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        const KilnBufferUse *use = &instr->operands[i];
        if (use->buffer && use->access != KILN_ACCESS_IN &&
            !kiln_instr_verify_write(instr, i, error))
            return FALSE;
    }
    return kiln_instr_verify_types(instr, &look->arena, error);
}

/* --- buffers --- */

static gboolean
check_buffer(const KilnIRFunction *function, const KilnBuffer *buffer, GError **error)
{
    if (!is_own(function, buffer))
        return (!buffer->n_uses && !buffer->first_use) ||
               kiln_ir_throw(function, error, "%s: it was removed, but has uses", buffer->name);
    if (function->arena_bytes < 0 && buffer->kind == KILN_BUFFER_ALLOC && buffer->offset >= 0)
        return kiln_ir_throw(function, error, "%%%s lies at %" G_GINT64_FORMAT " of no arena",
                             buffer->name, buffer->offset);
    if (buffer->kind >= KILN_BUFFER_ALLOC && !(buffer->def && kiln_instr_is_linked(buffer->def)))
        return kiln_ir_throw(function, error, "%%%s has no defining instruction", buffer->name);
    return buffer->restated ? kiln_buffer_verify(buffer, error)
                            : kiln_buffer_verify_uses(buffer, error);
}

/* All that reads or writes @origin, also through views: in look->touches. Stores the dealloc. */
static gboolean
collect(Look *look, KilnBuffer *origin, const KilnInstr **out_dealloc, GError **error)
{
    g_array_set_size(look->touches, 0);
    g_ptr_array_set_size(look->views, 0);
    g_ptr_array_add(look->views, origin);
    for (guint i = 0; i < look->views->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(look->views, i);
        kiln_foreach_buffer_use (use, buffer) {
            const KilnInstr *user = use->user;
            Touch touch = { user->place, use };
            if (user->kind == KILN_INSTR_alloc)
                continue;
            if (user->kind == KILN_INSTR_dealloc) {
                if (*out_dealloc)
                    return kiln_instr_throw(user, error, "%%%s is used after its dealloc",
                                            buffer->name);
                *out_dealloc = user;
            } else if (user->kind != KILN_INSTR_view) {
                g_array_append_val(look->touches, touch);
            } else if (use->index == 1) {
                g_ptr_array_add(look->views, user->operands[0].buffer);
            }
        }
    }
    return TRUE;
}

static int
by_place(gconstpointer a, gconstpointer b)
{
    const Touch *x = a, *y = b;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* True where what writes all of @origin comes before every read: then nothing need be sorted. */
static bool
is_written_first(const Look *look, const KilnBuffer *origin)
{
    uint64_t written = UINT64_MAX, read = UINT64_MAX;
    for (guint i = 0; i < look->touches->len; i++) {
        const Touch *touch = &g_array_index(look->touches, Touch, i);
        const KilnBufferUse *use = touch->use;
        if (use->access != KILN_ACCESS_OUT)
            read = MIN(read, touch->place);
        else if (use->buffer == origin)
            written = MIN(written, touch->place);
    }
    return written != UINT64_MAX && written < read;
}

/* The touches of one instruction begin at @from: its reads, then its writes. Returns where those of
 * the next begin; 0 and @error where something is read that was not written. */
static guint
step(const Look *look, guint from, GArray *written, GError **error)
{
    const Touch *touches = (const Touch *)look->touches->data;
    guint to = from;
    for (; to < look->touches->len && touches[to].place == touches[from].place; to++) {
        const KilnBufferUse *use = touches[to].use;
        const KilnRegion region = kiln_buffer_region(use->buffer);
        if (use->access == KILN_ACCESS_OUT || kiln_ranges_cover(written, &region))
            continue;
        kiln_instr_throw(use->user, error, "%s is read before it is written", use->buffer->name);
        return 0;
    }
    for (guint i = from; i < to; i++) {
        const KilnRegion region = kiln_buffer_region(touches[i].use->buffer);
        if (touches[i].use->access != KILN_ACCESS_IN)
            kiln_ranges_add(written, &region);
    }
    return to;
}

static gboolean
check_written(Look *look, const KilnBuffer *origin, GError **error)
{
    if (is_written_first(look, origin))
        return TRUE;
    g_array_sort(look->touches, by_place);
    g_autoptr(GArray) written = kiln_ranges_new();
    for (guint i = 0; i < look->touches->len;) {
        i = step(look, i, written, error);
        if (i == 0)
            return FALSE;
    }
    const KilnRegion whole = kiln_buffer_region(origin);
    return origin->kind != KILN_BUFFER_OUTPUT || kiln_ranges_cover(written, &whole) ||
           kiln_ir_throw(look->function, error, "output @%s is not written", origin->name);
}

/* Nothing behind the dealloc; what comes before the alloc was found with that. */
static gboolean
check_dealloc(const Look *look, const KilnBuffer *origin, const KilnInstr *dealloc, GError **error)
{
    if (!dealloc)
        return kiln_ir_throw(look->function, error, "%%%s has no dealloc", origin->name);
    for (guint i = 0; i < look->touches->len; i++) {
        const Touch *touch = &g_array_index(look->touches, Touch, i);
        if (touch->place >= dealloc->place)
            return kiln_instr_throw(touch->use->user, error, "%%%s is used after its dealloc",
                                    origin->name);
    }
    for (guint i = 1; i < look->views->len; i++) {
        const KilnInstr *def = ((const KilnBuffer *)g_ptr_array_index(look->views, i))->def;
        if (def->place >= dealloc->place)
            return kiln_instr_throw(def, error, "%%%s is used after its dealloc", origin->name);
    }
    return TRUE;
}

/* A weight that became const, or an input that became one, must not be written; what writes one
 * that was const is found with the instruction, hence others are not looked at: every
 * instruction may read a weight. */
static gboolean
check_unwritten(const Look *look, GError **error)
{
    for (guint i = 0; i < look->touches->len; i++) {
        const KilnBufferUse *use = g_array_index(look->touches, Touch, i).use;
        if (use->access != KILN_ACCESS_IN && !kiln_instr_verify_write(use->user, use->index, error))
            return FALSE;
    }
    return TRUE;
}

static bool
is_given(const KilnBuffer *origin)
{
    return origin->kind == KILN_BUFFER_WEIGHT || origin->kind == KILN_BUFFER_INPUT;
}

static void
add_origin(Look *look, KilnBuffer *buffer)
{
    KilnBuffer *origin = kiln_buffer_origin(buffer);
    if (look->seen[origin->id] || (is_given(origin) && !origin->restated))
        return;
    look->seen[origin->id] = true;
    g_ptr_array_add(look->origins, origin);
}

static gboolean
check_life(Look *look, KilnBuffer *origin, GError **error)
{
    const KilnInstr *dealloc = NULL;
    if (!collect(look, origin, &dealloc, error))
        return FALSE;
    if (is_given(origin))
        return check_unwritten(look, error);
    if (origin->kind == KILN_BUFFER_ALLOC && !check_dealloc(look, origin, dealloc, error))
        return FALSE;
    return check_written(look, origin, error);
}

/* --- all --- */

/* Notes lie in no order of memory: asks for what the ones further on will be looked at for. */
static void
prefetch(const GPtrArray *instrs, guint i)
{
    if (i + FURTHER >= instrs->len)
        return;
    const KilnInstr *far = g_ptr_array_index(instrs, i + FURTHER);
    const KilnInstr *middle = g_ptr_array_index(instrs, i + FURTHER / 2);
    const KilnInstr *near = g_ptr_array_index(instrs, i + FURTHER / 4);
    __builtin_prefetch(far);
    __builtin_prefetch(middle->operands);
    __builtin_prefetch(middle->previous);
    __builtin_prefetch(middle->next);
    for (uint32_t k = 0; k < near->n_operands && k < KILN_AHEAD_USES; k++)
        __builtin_prefetch(near->operands[k].buffer);
}

/* The bytes of a view move with it: its users are looked at anew, through views of views. */
static void
add_users_of_views(Look *look)
{
    const GPtrArray *instrs = look->function->changes.instrs;
    GPtrArray *views = look->views;
    for (guint i = 0; i < instrs->len; i++) {
        KilnInstr *instr = g_ptr_array_index(instrs, i);
        if (instr->kind == KILN_INSTR_view && instr->rewritten && instr->operands[0].buffer)
            g_ptr_array_add(views, instr->operands[0].buffer);
    }
    for (guint i = 0; i < views->len; i++) {
        const KilnBuffer *view = g_ptr_array_index(views, i);
        kiln_foreach_buffer_use (use, view) {
            KilnInstr *user = use->user;
            const bool seen = user->rewritten;
            kiln_ir_changes_add_instr(user, true);
            if (user->kind == KILN_INSTR_view && use->index == 1 && !seen &&
                user->operands[0].buffer)
                g_ptr_array_add(views, user->operands[0].buffer);
        }
    }
}

static gboolean
check_instrs(Look *look, GError **error)
{
    const GPtrArray *instrs = look->function->changes.instrs;
    add_users_of_views(look);
    for (guint i = 0; i < instrs->len; i++) {
        prefetch(instrs, i);
        if (!check_order(g_ptr_array_index(instrs, i), error))
            return FALSE;
    }
    for (guint i = 0; i < instrs->len; i++) {
        prefetch(instrs, i);
        if (!check_work(look, g_ptr_array_index(instrs, i), error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
check_lives(Look *look, GError **error)
{
    const KilnIRFunction *function = look->function;
    const GPtrArray *instrs = function->changes.instrs, *buffers = function->changes.buffers;
    for (guint i = 0; i < buffers->len; i++) {
        KilnBuffer *buffer = g_ptr_array_index(buffers, i);
        kiln_prefetch_buffers(buffers, i);
        if (is_own(function, buffer))
            add_origin(look, buffer);
    }
    for (guint i = 0; i < instrs->len; i++) {
        const KilnInstr *instr = g_ptr_array_index(instrs, i);
        prefetch(instrs, i);
        for (uint32_t k = 0; k < instr->n_operands; k++) {
            if (instr->operands[k].buffer)
                add_origin(look, instr->operands[k].buffer);
        }
    }
    for (guint i = 0; i < look->origins->len; i++) {
        kiln_prefetch_buffers(look->origins, i);
        if (!check_life(look, g_ptr_array_index(look->origins, i), error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
check_changes(Look *look, GError **error)
{
    const KilnIRFunction *function = look->function;
    const GPtrArray *buffers = function->changes.buffers;
    kiln_ir_place(look->function);
    /* Uses are walked behind their lists' being found whole. */
    for (guint i = 0; i < buffers->len; i++) {
        kiln_prefetch_buffers(buffers, i);
        if (!check_buffer(function, g_ptr_array_index(buffers, i), error))
            return FALSE;
    }
    return check_instrs(look, error) && check_lives(look, error) &&
           kiln_defines_verify(function, error) &&
           (function->arena_bytes < 0 || kiln_verify_plan(function, error));
}

gboolean
kiln_ir_verify_changes(KilnIRFunction *function, GError **error)
{
    gboolean good = TRUE;
    if (function->changes.known) {
        Look look = { .function = function,
                      .arena = kiln_arena_new(),
                      .origins = g_ptr_array_new(),
                      .seen = g_new0(bool, function->buffers->len + 1),
                      .touches = g_array_new(FALSE, FALSE, sizeof(Touch)),
                      .views = g_ptr_array_new() };
        good = check_changes(&look, error);
        g_ptr_array_unref(look.views);
        g_array_unref(look.touches);
        g_ptr_array_unref(look.origins);
        g_free(look.seen);
        kiln_arena_free(look.arena);
    }
    /* Also where users of views became too many to be noted. */
    if (good && !function->changes.known)
        good = kiln_ir_verify(function, error);
    if (good)
        kiln_ir_changes_begin(function);
    return good;
}
