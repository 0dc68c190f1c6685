/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier: what must hold of an IR function after every pass, and of every text that is
 * parsed. One walk in order, with a state and the written byte ranges per buffer; linear but for
 * buffers that are written in many pieces out of order. */
#include "ir/verify/verify_priv.h"

#include "graph/text/text.h"
#include "ir/changes.h"

typedef enum {
    STATE_UNDEFINED,
    STATE_LIVE,
    STATE_DEAD,
} State;

typedef struct {
    const KilnIRFunction *function;
    State *states;    /* by buffer id: allocs and views */
    GArray **written; /* by buffer id of an origin: KilnByteRange */
    KilnArena *arena;
} Verify;

enum {
    ARENA_MAX = 1 << 16, /* sessions keep it */
    USES_AHEAD = 8
};

static const char *
kind_name(KilnBufferKind kind)
{
    static const char *const names[] = { "weight", "input", "output", "alloc", "view" };
    return names[kind];
}

gboolean
kiln_ir_throw(const KilnIRFunction *function, GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    return kiln_throw(error, KILN_ERROR_INVALID, "@%s: %s", function->name, message);
}

gboolean
kiln_instr_throw(const KilnInstr *instr, GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    return kiln_ir_throw(instr->function, error, "%s (%s): %s", kiln_instr_label(instr),
                         kiln_instr_info(instr->kind)->name, message);
}

/* --- buffers --- */

static gboolean
check_type(const KilnBuffer *buffer, GError **error)
{
    const KilnType *type = &buffer->type;
    const char *expected = !kiln_type_is_static(type) ? "expected a static type"
                           : kiln_type_bytes(type) < 0
                               ? "expected a layout that fits and a size in 63 bits"
                               : NULL;
    if (expected) {
        g_autofree char *text = kiln_type_to_string(type);
        return kiln_ir_throw(buffer->function, error, "%s: %s, found %s", buffer->name, expected,
                             text);
    }
    g_autoptr(GError) why = NULL;
    return !type->quant || kiln_quant_check(type, &why) ||
           kiln_ir_throw(buffer->function, error, "%s: %s", buffer->name, why->message);
}

static gboolean
check_weight(const KilnBuffer *buffer, GError **error)
{
    const KilnConstant *constant = buffer->constant;
    if (!constant && buffer->is_const)
        return kiln_ir_throw(buffer->function, error, "@%s: a const weight needs a constant",
                             buffer->name);
    if (!constant || kiln_type_equal(&constant->type, &buffer->type))
        return TRUE;
    g_autofree char *expected = kiln_type_to_string(&constant->type);
    g_autofree char *found = kiln_type_to_string(&buffer->type);
    return kiln_ir_throw(buffer->function, error, "@%s: expected the constant's type %s, found %s",
                         buffer->name, expected, found);
}

/* The buffer's list of uses against the instructions: every entry is an operand that names it. */
gboolean
kiln_buffer_verify_uses(const KilnBuffer *buffer, GError **error)
{
    uint32_t n = 0;
    const KilnBufferUse *previous = NULL, *ahead = buffer->first_use;
    for (int i = 0; ahead && i < USES_AHEAD; i++)
        ahead = ahead->next;
    kiln_foreach_buffer_use (use, buffer) {
        if (ahead) { /* of a weight there may be as many as instructions */
            __builtin_prefetch(ahead->user);
            ahead = ahead->next;
        }
        bool consistent = use->buffer == buffer && use->previous == previous &&
                          use->user->function == buffer->function &&
                          use->index < use->user->n_operands &&
                          &use->user->operands[use->index] == use;
        if (!consistent || ++n > buffer->n_uses)
            return kiln_ir_throw(buffer->function, error, "%s: its list of uses is broken",
                                 buffer->name);
        previous = use;
    }
    if (n != buffer->n_uses || buffer->last_use != previous)
        return kiln_ir_throw(buffer->function, error, "%s: expected %u uses, found %u",
                             buffer->name, buffer->n_uses, n);
    return TRUE;
}

gboolean
kiln_buffer_verify(const KilnBuffer *buffer, GError **error)
{
    const KilnIRFunction *function = buffer->function;
    if (g_hash_table_lookup(function->names, buffer->name) != buffer)
        return kiln_ir_throw(function, error, "%s: two buffers have this name", buffer->name);
    return check_type(buffer, error) && kiln_buffer_verify_uses(buffer, error) &&
           (buffer->kind != KILN_BUFFER_WEIGHT || check_weight(buffer, error));
}

static gboolean
check_list(const KilnIRFunction *function, const GPtrArray *list, KilnBufferKind kind,
           uint32_t *n_listed, GError **error)
{
    for (guint i = 0; i < list->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(list, i);
        bool own = buffer->id < function->buffers->len &&
                   g_ptr_array_index(function->buffers, buffer->id) == buffer;
        if (!own || buffer->kind != kind)
            return kiln_ir_throw(function, error, "@%s: expected %s of this function, found %s",
                                 buffer->name, kind_name(kind), kind_name(buffer->kind));
    }
    *n_listed += list->len;
    return TRUE;
}

static gboolean
check_buffers(const KilnIRFunction *function, GError **error)
{
    uint32_t n_listed = 0, n_external = 0;
    if (!check_list(function, function->weights, KILN_BUFFER_WEIGHT, &n_listed, error) ||
        !check_list(function, function->inputs, KILN_BUFFER_INPUT, &n_listed, error) ||
        !check_list(function, function->outputs, KILN_BUFFER_OUTPUT, &n_listed, error))
        return FALSE;
    for (guint i = 0; i < function->buffers->len; i++) {
        const KilnBuffer *buffer = g_ptr_array_index(function->buffers, i);
        kiln_prefetch_buffers(function->buffers, i);
        if (!buffer)
            continue;
        if (buffer->id != i || buffer->function != function)
            return kiln_ir_throw(function, error, "%s: it belongs to another function",
                                 buffer->name);
        if (!kiln_buffer_verify(buffer, error))
            return FALSE;
        n_external += buffer->kind < KILN_BUFFER_ALLOC;
    }
    if (n_listed != n_external)
        return kiln_ir_throw(function, error,
                             "expected %u weights, inputs and outputs, found %u listed", n_external,
                             n_listed);
    return TRUE;
}

/* --- written ranges --- */

static bool
is_written(const Verify *verify, KilnBuffer *buffer)
{
    const KilnBuffer *origin = kiln_buffer_origin(buffer);
    if (origin->kind == KILN_BUFFER_WEIGHT || origin->kind == KILN_BUFFER_INPUT)
        return true;
    const KilnRegion region = kiln_buffer_region(buffer);
    return kiln_ranges_cover(verify->written[origin->id], &region);
}

/* --- instructions --- */

static gboolean
check_operand(const KilnInstr *instr, uint32_t i, GError **error)
{
    const KilnBufferUse *use = &instr->operands[i];
    KilnAccess access = use->access;
    bool optional = instr->kind == KILN_INSTR_plugin_op && access == KILN_ACCESS_IN;
    if (use->user != instr || use->index != i)
        return kiln_instr_throw(instr, error, "operand %u: its use is broken", i);
    if (!kiln_instr_states_access(instr->kind) &&
        !kiln_instr_access(instr->kind, i, &access, &optional))
        return kiln_instr_throw(instr, error, "expected %u operands, found %u", i,
                                instr->n_operands);
    if (access != use->access)
        return kiln_instr_throw(instr, error, "operand %u: its access is not that of the row", i);
    if (!use->buffer && !optional)
        return kiln_instr_throw(instr, error, "operand %u is required, found none", i);
    if (use->buffer && use->buffer->function != instr->function)
        return kiln_instr_throw(instr, error, "operand %u is of another function", i);
    return TRUE;
}

gboolean
kiln_instr_verify_operands(const KilnInstr *instr, GError **error)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (!check_operand(instr, i, error))
            return FALSE;
    }
    KilnAccess access;
    bool optional;
    if (!kiln_instr_states_access(instr->kind) &&
        kiln_instr_access(instr->kind, instr->n_operands, &access, &optional) && !optional)
        return kiln_instr_throw(instr, error, "operand %u is required, found %u operands",
                                instr->n_operands, instr->n_operands);
    return TRUE;
}

/* Defined before and, through views, not freed yet. */
static gboolean
check_alive(const Verify *verify, const KilnInstr *instr, KilnBuffer *buffer, GError **error)
{
    for (KilnBuffer *at = buffer; at->kind >= KILN_BUFFER_ALLOC; at = at->base) {
        if (verify->states[at->id] == STATE_UNDEFINED)
            return kiln_instr_throw(instr, error, "%%%s is used before it is defined", at->name);
        if (verify->states[at->id] == STATE_DEAD)
            return kiln_instr_throw(instr, error, "%%%s is used after its dealloc", at->name);
        if (at->kind == KILN_BUFFER_ALLOC)
            break;
    }
    return TRUE;
}

gboolean
kiln_instr_verify_bookkeeping(const KilnInstr *instr, GError **error)
{
    const KilnBuffer *buffer = instr->operands[0].buffer;
    switch (instr->kind) {
    case KILN_INSTR_alloc:
        return (buffer->kind == KILN_BUFFER_ALLOC && buffer->def == instr) ||
               kiln_instr_throw(instr, error, "%s is not what it allocates", buffer->name);
    case KILN_INSTR_dealloc:
        return buffer->kind == KILN_BUFFER_ALLOC ||
               kiln_instr_throw(instr, error, "expected an alloc, found %s %s",
                                kind_name(buffer->kind), buffer->name);
    default:
        return (buffer->kind == KILN_BUFFER_VIEW && buffer->def == instr &&
                buffer->base == instr->operands[1].buffer) ||
               kiln_instr_throw(instr, error, "%s is not the view that it defines", buffer->name);
    }
}

/* Whole rows with room between them. */
static gboolean
check_rows(const KilnInstr *instr, const KilnBuffer *view, GError **error)
{
    const KilnBuffer *base = view->base;
    int64_t rows = view->view_rows, unit = (int64_t)kiln_dtype_size(base->type.dtype), pitch;
    if (rows == 1)
        return view->view_pitch == 0 ||
               kiln_instr_throw(instr, error,
                                "expected no pitch of one row, found %" G_GINT64_FORMAT,
                                view->view_pitch);
    int64_t elements = kiln_type_elements(&view->type);
    g_autofree char *type = kiln_type_to_string(&view->type);
    if (view->type.layout || base->type.layout)
        return kiln_instr_throw(instr, error, "expected plain layouts of a view in rows, found %s",
                                type);
    if (rows < 1 || elements == 0 || elements % rows)
        return kiln_instr_throw(
            instr, error, "expected rows that divide the elements of %s, found %" G_GINT64_FORMAT,
            type, rows);
    bool sized = !__builtin_mul_overflow(view->view_pitch, unit, &pitch) &&
                 pitch >= kiln_type_bytes(&view->type) / rows &&
                 pitch % (int64_t)kiln_dtype_size(view->type.dtype) == 0;
    return sized ||
           kiln_instr_throw(instr, error, "pitch %" G_GINT64_FORMAT " does not hold a row of %s",
                            view->view_pitch, type);
}

/* From the first byte to the last. */
static bool
lies_inside(const KilnBuffer *view)
{
    int64_t unit = (int64_t)kiln_dtype_size(view->base->type.dtype), begin, end, rows;
    return view->view_offset >= 0 && !__builtin_mul_overflow(view->view_offset, unit, &begin) &&
           !__builtin_mul_overflow(view->view_rows - 1, view->view_pitch * unit, &rows) &&
           !__builtin_add_overflow(begin, rows, &end) &&
           !__builtin_add_overflow(end, kiln_type_bytes(&view->type) / view->view_rows, &end) &&
           end <= kiln_type_bytes(&view->base->type);
}

gboolean
kiln_instr_verify_view(const KilnInstr *instr, GError **error)
{
    const KilnBuffer *view = instr->operands[0].buffer, *base = instr->operands[1].buffer;
    bool addresses =
        kiln_dtype_is_address(view->type.dtype) || kiln_dtype_is_address(base->type.dtype);
    if (addresses && view->type.dtype != base->type.dtype)
        return kiln_instr_throw(
            instr, error, "only numbers may be seen as another type: expected %s, found %s",
            kiln_dtype_name(base->type.dtype), kiln_dtype_name(view->type.dtype));
    if (!check_rows(instr, view, error))
        return FALSE;
    if (!lies_inside(view)) {
        g_autofree char *whole = kiln_type_to_string(&base->type);
        g_autofree char *part = kiln_type_to_string(&view->type);
        return kiln_instr_throw(instr, error,
                                "%s at element %" G_GINT64_FORMAT " does not lie inside %s", part,
                                view->view_offset, whole);
    }
    KilnRegion region = kiln_buffer_region(base), part = kiln_view_part(view);
    if (!kiln_region_part(&region, &part, &region))
        return kiln_instr_throw(instr, error, "its bytes are no rows of %s, which has gaps",
                                base->name);
    const int64_t unit = (int64_t)kiln_dtype_size(view->type.dtype);
    if (region.offset % unit)
        return kiln_instr_throw(instr, error, "byte %" G_GINT64_FORMAT " is misaligned for %s",
                                region.offset, kiln_dtype_name(view->type.dtype));
    return region.rows == 1 || region.pitch % unit == 0 ||
           kiln_instr_throw(instr, error, "a pitch of %" G_GINT64_FORMAT " bytes misaligns %s",
                            region.pitch, kiln_dtype_name(view->type.dtype));
}

static gboolean
visit_bookkeeping(Verify *verify, const KilnInstr *instr, GError **error)
{
    KilnBuffer *buffer = instr->operands[0].buffer;
    State *state = &verify->states[buffer->id];
    if (!kiln_instr_verify_bookkeeping(instr, error))
        return FALSE;
    if (instr->kind == KILN_INSTR_alloc && *state != STATE_UNDEFINED)
        return kiln_instr_throw(instr, error, "%%%s is allocated twice", buffer->name);
    KilnBuffer *needed = instr->kind == KILN_INSTR_view      ? instr->operands[1].buffer
                         : instr->kind == KILN_INSTR_dealloc ? buffer
                                                             : NULL;
    if (needed && !check_alive(verify, instr, needed, error))
        return FALSE;
    *state = instr->kind == KILN_INSTR_dealloc ? STATE_DEAD : STATE_LIVE;
    return instr->kind != KILN_INSTR_view || kiln_instr_verify_view(instr, error);
}

/* Two operands of one instruction may meet only where the row says so and they coincide. */
static gboolean
check_overlap(const KilnInstr *instr, uint32_t written, uint32_t other, GError **error)
{
    KilnBuffer *a = instr->operands[written].buffer, *b = instr->operands[other].buffer;
    KilnRegion x = kiln_buffer_region(a), y = kiln_buffer_region(b);
    if (kiln_buffer_origin(a) != kiln_buffer_origin(b) || !kiln_region_meet_here(&x, &y))
        return TRUE;
    bool reads = instr->operands[other].access == KILN_ACCESS_IN;
    if (reads && kiln_buffer_coincides(a, b) && kiln_instr_may_share(instr, written, other))
        return TRUE;
    return kiln_instr_throw(instr, error,
                            "operand %u (%s) may not share bytes with operand %u (%s)", other,
                            b->name, written, a->name);
}

gboolean
kiln_instr_verify_write(const KilnInstr *instr, uint32_t i, GError **error)
{
    const KilnBuffer *origin = kiln_buffer_origin(instr->operands[i].buffer);
    if (origin->kind == KILN_BUFFER_INPUT ||
        (origin->kind == KILN_BUFFER_WEIGHT && origin->is_const))
        return kiln_instr_throw(instr, error, "writes %s @%s",
                                origin->kind == KILN_BUFFER_WEIGHT ? "const weight"
                                                                   : kind_name(origin->kind),
                                origin->name);
    if (origin->kind == KILN_BUFFER_WEIGHT && kiln_dtype_is_address(origin->type.dtype))
        return kiln_instr_throw(instr, error, "writes %s to @%s, which outlives the run",
                                origin->type.dtype == KILN_DTYPE_string ? "strings" : "items",
                                origin->name);
    for (uint32_t k = 0; k < instr->n_operands; k++) {
        bool seen = k < i && instr->operands[k].access != KILN_ACCESS_IN; /* met from the other */
        if (k == i || seen || !instr->operands[k].buffer)
            continue;
        if (!check_overlap(instr, i, k, error))
            return FALSE;
    }
    return TRUE;
}

gboolean
kiln_instr_verify_types(const KilnInstr *instr, KilnArena **arena, GError **error)
{
    if (kiln_arena_used(*arena) > ARENA_MAX) {
        kiln_arena_free(*arena);
        *arena = kiln_arena_new();
    }
    return kiln_instr_check(instr, *arena, error);
}

static gboolean
visit_compute(Verify *verify, const KilnInstr *instr, GError **error)
{
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        KilnBuffer *buffer = instr->operands[i].buffer;
        if (!buffer)
            continue;
        KilnAccess access = instr->operands[i].access;
        if (!check_alive(verify, instr, buffer, error))
            return FALSE;
        if (access != KILN_ACCESS_OUT && !is_written(verify, buffer))
            return kiln_instr_throw(instr, error, "%s is read before it is written", buffer->name);
        if (access != KILN_ACCESS_IN && !kiln_instr_verify_write(instr, i, error))
            return FALSE;
    }
    if (!kiln_instr_verify_types(instr, &verify->arena, error))
        return FALSE;
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        KilnBuffer *buffer = instr->operands[i].buffer;
        if (!buffer || instr->operands[i].access == KILN_ACCESS_IN)
            continue;
        GArray **written = &verify->written[kiln_buffer_origin(buffer)->id];
        if (!*written)
            *written = kiln_ranges_new();
        const KilnRegion region = kiln_buffer_region(buffer);
        kiln_ranges_add(*written, &region);
    }
    return TRUE;
}

static gboolean
visit(Verify *verify, const KilnInstr *instr, GError **error)
{
    if (!kiln_instr_verify_operands(instr, error))
        return FALSE;
    return kiln_instr_is_bookkeeping(instr) ? visit_bookkeeping(verify, instr, error)
                                            : visit_compute(verify, instr, error);
}

static gboolean
check_end(const Verify *verify, GError **error)
{
    const KilnIRFunction *function = verify->function;
    for (guint i = 0; i < function->buffers->len; i++) {
        KilnBuffer *buffer = g_ptr_array_index(function->buffers, i);
        if (!buffer)
            continue;
        if (buffer->kind >= KILN_BUFFER_ALLOC && verify->states[i] == STATE_UNDEFINED)
            return kiln_ir_throw(function, error, "%%%s has no defining instruction", buffer->name);
        if (buffer->kind == KILN_BUFFER_ALLOC && verify->states[i] != STATE_DEAD)
            return kiln_ir_throw(function, error, "%%%s has no dealloc", buffer->name);
        if (buffer->kind == KILN_BUFFER_OUTPUT && !is_written(verify, buffer))
            return kiln_ir_throw(function, error, "output @%s is not written", buffer->name);
    }
    return TRUE;
}

static gboolean
check_instrs(Verify *verify, GError **error)
{
    const KilnIRFunction *function = verify->function;
    uint32_t n = 0;
    const KilnInstr *previous = NULL;
    KilnAhead ahead = { .n = 0 };
    kiln_foreach_instr (instr, function) {
        kiln_ahead_note(&ahead, instr);
        if (instr->function != function || instr->previous != previous ||
            ++n > function->n_instrs || instr->id >= function->next_id)
            return kiln_ir_throw(function, error, "the list of instructions is broken at %s",
                                 kiln_instr_label(instr));
        if (!visit(verify, instr, error))
            return FALSE;
        previous = instr;
    }
    if (n != function->n_instrs || function->last != previous)
        return kiln_ir_throw(function, error, "expected %u instructions, found %u",
                             function->n_instrs, n);
    return check_end(verify, error);
}

gboolean
kiln_ir_verify(const KilnIRFunction *function, GError **error)
{
    if (!check_buffers(function, error))
        return FALSE;
    guint n = function->buffers->len;
    Verify verify = { .function = function,
                      .arena = kiln_arena_new(),
                      .states = g_new0(State, n + 1),
                      .written = g_new0(GArray *, n + 1) };
    gboolean good = check_instrs(&verify, error);
    for (guint i = 0; i < n; i++) {
        if (verify.written[i])
            g_array_unref(verify.written[i]);
    }
    kiln_arena_free(verify.arena);
    g_free(verify.written);
    g_free(verify.states);
    return good && kiln_flow_verify(function, error) && kiln_defines_verify(function, error) &&
           kiln_verify_plan(function, error);
}
