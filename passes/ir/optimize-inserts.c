/* SPDX-License-Identifier: Apache-2.0 */
/* optimize-inserts: concat and pad in place: what is joined or padded is made where it will lie.
 *
 *     %a = alloc : f32[1,2,8]             %r = alloc : f32[1,5,8]
 *     relu @out %a, @in @x                %a = view %r {offset=0} : f32[1,2,8]
 *     %r = alloc : f32[1,5,8]       =>    relu @out %a, @in @x
 *     concat @out %r, @in %a, @in @z      %z = view %r {offset=16} : f32[1,3,8]
 *     dealloc %a                          copy @out %z, @in @z
 *
 * An operand that is all of an alloc becomes a view of the result; neighbours that are all of one
 * alloc together do too, as where one concat repeats another one's operands. Where the extents
 * before the axis are not all 1 - a batch of several images - it lies there in rows:
 *
 *     %a = view %r {rows=4, pitch=40} : f32[4,2,8]
 *
 * if every kernel that works on it says that it can. What stays apart - inputs, weights, what is
 * there a second time - is copied. Readers of an operand that come later stay right while nothing
 * writes over the result.
 *
 * requires nothing, preserves nothing; class E. The result lives longer then, from its first
 * operand's first write on. Operands are left apart, those that are made first before others, until
 * no more lives at once than did before the pass. Kernels take addresses that are aligned to an
 * element; what calls want is not known, so that a call's buffers stay aligned as allocs are, and
 * dense. */
#include "graph/base/alloc.h"
#include "ir/define.h"
#include "passes/pass.h"
#include "passes/query_ir/lives.h"
#include "passes/query_ir/strided_use.h"

#include <string.h>

static const char rule[] = "concat-in-place"; /* and pad */

/* Where things are joined: one row for each index of the dims before the axis. */
typedef struct {
    KilnBuffer *origin;
    KilnRegion region; /* of the result in its origin */
    int axis;
    KilnSize rows, pitch; /* bytes from row to row of the result */
} Joint;

/* Operands that follow each other. */
typedef struct {
    uint32_t first, n;      /* among the operands of the concat */
    KilnBuffer *origin;     /* of all of them */
    KilnSize offset, width; /* bytes of a row: from its start, and how many */
    bool in_place;
} Piece;

typedef struct {
    KilnLives *lives;
    KilnPassContext *context;
    KilnBuffer *zero; /* of the type that was padded last; NULL: none yet */
    int64_t *taken;   /* by buffer id: the number of the look that found a place for it */
    int64_t n_looks;
    const KilnDefines *defines; /* NULL: data decides no dim */
} Inserts;

/* --- which concats --- */

static Joint
joint_of(const KilnInstr *instr, int axis)
{
    KilnBuffer *result = instr->operands[0].buffer;
    Joint joint = { kiln_buffer_origin(result), kiln_buffer_region(result), axis,
                    kiln_type_product(&result->type, 0, axis), kiln_size_make(0) };
    KilnSize bytes = kiln_type_size_bytes(&result->type);
    if (bytes.n == 0) /* other extents may be of any size */
        joint.rows = kiln_size_make(0);
    if (joint.rows.n)
        joint.pitch = kiln_size_divide(bytes, joint.rows);
    return joint;
}

/* @width bytes of each row from @offset on, in the result's origin. False where that is no region.
 */
static bool
place_of(const Joint *joint, KilnSize offset, KilnSize width, KilnRegion *out)
{
    KilnRegion part = kiln_region_of_sizes(offset, joint->rows, width, joint->pitch);
    return kiln_region_part(&joint->region, &part, out) && !out->lost;
}

/* Stored integers stand for the same reals everywhere: joining only moves them. */
static bool
means_the_same(const KilnInstr *concat)
{
    const KilnType *result = &concat->operands[0].buffer->type;
    bool same = !result->quant || result->quant->axis < 0;
    for (uint32_t i = 1; i < concat->n_operands && same; i++) {
        const KilnBuffer *operand = concat->operands[i].buffer;
        same = !operand || (operand->type.dtype == result->dtype &&
                            kiln_quant_equal(operand->type.quant, result->quant));
    }
    return same;
}

/* The result is all that is written here, for the first time. */
static bool
may_hold(const Inserts *inserts, const KilnInstr *instr)
{
    KilnPassContext *context = inserts->context;
    KilnBuffer *result = instr->operands[0].buffer;
    const KilnBuffer *origin = kiln_buffer_origin(result);
    int64_t step = inserts->lives->places[instr->id].step;
    PASS_GUARD(plain_layout, !result->type.layout);
    PASS_GUARD(same_quantization, means_the_same(instr));
    PASS_GUARD(result_not_state, origin->kind != KILN_BUFFER_WEIGHT);
    PASS_GUARD(result_born_here, kiln_lives_facts(inserts->lives, origin)->first == step);
    return true;
}

/* The outermost axis that is padded, and how far in front of it and behind. */
static int
padded_axis(const KilnInstr *pad, int64_t out_pads[2])
{
    const KilnInts *pads = &kiln_instr_attrs(pad, pad)->pads;
    uint32_t rank = (uint32_t)pad->operands[0].buffer->type.rank;
    out_pads[0] = out_pads[1] = 0;
    for (uint32_t d = 0; d < rank; d++) {
        out_pads[0] = kiln_ints_at(*pads, d, 0);
        out_pads[1] = kiln_ints_at(*pads, rank + d, 0);
        if (out_pads[0] || out_pads[1])
            return (int)d;
    }
    return 0;
}

static int
joined_axis(const KilnInstr *instr)
{
    int64_t pads[2];
    if (instr->kind == KILN_INSTR_pad)
        return padded_axis(instr, pads);
    return kiln_type_axis(&instr->operands[0].buffer->type, kiln_instr_attrs(instr, concat)->axis);
}

static bool
pads_one_axis(const KilnInstr *pad)
{
    const KilnType *to = &pad->operands[0].buffer->type, *from = &pad->operands[1].buffer->type;
    int64_t pads[2];
    bool same = true;
    for (int d = padded_axis(pad, pads) + 1; d < to->rank; d++)
        same &= kiln_type_equal_dims(to, d, from, d) &&
                kiln_ints_at(kiln_instr_attrs(pad, pad)->pads, (uint32_t)d, 0) == 0;
    return same;
}

static bool
may_pad(const Inserts *inserts, const KilnInstr *pad)
{
    KilnPassContext *context = inserts->context;
    int64_t pads[2];
    padded_axis(pad, pads);
    PASS_GUARD(pad_by_numbers, !kiln_instr_attrs(pad, pad)->pads.open);
    PASS_GUARD(pad_of_one_value, strcmp(kiln_instr_attrs(pad, pad)->mode, "constant") == 0);
    PASS_GUARD(pad_one_axis, pads_one_axis(pad));
    PASS_GUARD(pad_cuts_nothing, pads[0] >= 0 && pads[1] >= 0);
    return may_hold(inserts, pad);
}

/* --- which operands --- */

/* Which bytes of its origin's rows @buffer is, in an origin of @rows rows. */
static bool
find_columns(const KilnBuffer *buffer, KilnSize rows, KilnSize *begin, KilnSize *end)
{
    KilnSize whole = kiln_type_size_bytes(&kiln_buffer_origin((KilnBuffer *)buffer)->type);
    KilnRegion region = kiln_buffer_region(buffer);
    if (rows.n == 0)
        return false;
    KilnSize row = kiln_size_divide(whole, rows), run = kiln_region_run(&region);
    if (row.lost)
        return false;
    *begin = kiln_region_offset(&region);
    bool all = kiln_size_is(*begin, 0) && kiln_size_equal(run, whole);
    *end = kiln_size_add(*begin, all ? row : run);
    if (kiln_size_is(rows, 1))
        return kiln_size_is(kiln_region_rows(&region), 1);
    return all || (kiln_size_equal(kiln_region_rows(&region), rows) &&
                   kiln_size_equal(kiln_region_pitch(&region), row) && begin->n < row.n &&
                   kiln_size_at_most(*begin, row));
}

/* Bytes of @buffer in each row. */
static KilnSize
width_of(const Joint *joint, const KilnBuffer *buffer)
{
    return joint->rows.n ? kiln_size_divide(kiln_type_size_bytes(&buffer->type), joint->rows)
                         : kiln_size_make(0);
}

/* The operands from @first on that are neighbours in one buffer and, together, may be all of it;
 * where they are not, the first alone. */
static Piece
piece_at(const KilnInstr *concat, const Joint *joint, uint32_t first, KilnSize offset)
{
    KilnBuffer *buffer = concat->operands[first].buffer;
    KilnSize begin, end, next_begin, next_end;
    Piece piece = { first, 1, kiln_buffer_origin(buffer), offset, width_of(joint, buffer), false };
    if (!find_columns(buffer, joint->rows, &begin, &end) || !kiln_size_is(begin, 0))
        return piece;
    KilnSize whole = width_of(joint, piece.origin);
    uint32_t n = 1;
    for (; end.n < whole.n && first + n < concat->n_operands; n++) {
        KilnBuffer *next = concat->operands[first + n].buffer;
        if (kiln_buffer_origin(next) != piece.origin ||
            !find_columns(next, joint->rows, &next_begin, &next_end) ||
            !kiln_size_equal(next_begin, end))
            break;
        end = next_end;
    }
    if (kiln_size_equal(end, whole)) {
        piece.n = n;
        piece.width = whole;
    }
    return piece;
}

static bool
is_all(const KilnInstr *instr, const Joint *joint, const Piece *piece)
{
    KilnSize begin, end;
    return find_columns(instr->operands[piece->first].buffer, joint->rows, &begin, &end) &&
           kiln_size_is(begin, 0) &&
           kiln_size_equal(kiln_size_mul(piece->width, joint->rows),
                           kiln_type_size_bytes(&piece->origin->type));
}

static bool
is_aligned(const KilnRegion *place, const KilnType *type)
{
    return kiln_region_is_aligned(place, (int64_t)kiln_dtype_size(type->dtype));
}

static bool
may_move(const Inserts *inserts, const KilnInstr *concat, const Joint *joint, const Piece *piece)
{
    KilnPassContext *context = inserts->context;
    const KilnBuffer *result = joint->origin;
    const KilnTarget *target = kiln_pass_target(context);
    int64_t step = inserts->lives->places[concat->id].step;
    const KilnFacts *from = kiln_lives_facts(inserts->lives, piece->origin);
    const KilnFacts *to = kiln_lives_facts(inserts->lives, result);
    KilnRegion place;
    if (!place_of(joint, piece->offset, piece->width, &place))
        return false;
    PASS_GUARD(operand_local, piece->origin->kind == KILN_BUFFER_ALLOC);
    PASS_GUARD(operand_whole, is_all(concat, joint, piece));
    PASS_GUARD(place_known_in_time, kiln_defines_in_time(inserts->defines, concat, piece->origin));
    PASS_GUARD(first_place, inserts->taken[piece->origin->id] != inserts->n_looks);
    PASS_GUARD(operand_complete, from->last_write < step);
    PASS_GUARD(result_not_overwritten, from->last <= step || to->last_write <= step);
    PASS_GUARD(aligned_for_calls,
               !from->called || kiln_size_is_multiple(kiln_region_offset(&place), KILN_ALIGNMENT));
    PASS_GUARD(whole_elements,
               is_aligned(&place, &result->type) && is_aligned(&place, &piece->origin->type));
    PASS_GUARD(takes_rows, kiln_strided_taken(target, piece->origin, &place, concat));
    return true;
}

static GArray *
find_pieces(Inserts *inserts, const KilnInstr *concat, const Joint *joint)
{
    GArray *pieces = g_array_new(FALSE, FALSE, sizeof(Piece));
    inserts->n_looks++;
    KilnSize offset = kiln_size_make(0);
    for (uint32_t i = 1; i < concat->n_operands;) {
        Piece piece = piece_at(concat, joint, i, offset);
        piece.in_place = piece.width.n > 0 && may_move(inserts, concat, joint, &piece);
        if (piece.in_place)
            inserts->taken[piece.origin->id] = inserts->n_looks;
        g_array_append_val(pieces, piece);
        offset = kiln_size_add(offset, piece.width);
        i += piece.n;
    }
    return pieces;
}

/* Bytes of a row for one index of the axis. */
static KilnSize
of_one(const Joint *joint, const KilnType *type)
{
    return kiln_size_divide(joint->pitch, kiln_type_size(type, joint->axis));
}

/* What is padded lies behind the first border. */
static GArray *
padded_piece(Inserts *inserts, const KilnInstr *pad, const Joint *joint)
{
    GArray *pieces = g_array_new(FALSE, FALSE, sizeof(Piece));
    KilnBuffer *result = pad->operands[0].buffer, *operand = pad->operands[1].buffer;
    int64_t pads[2];
    padded_axis(pad, pads);
    Piece piece = {
        1, 1, kiln_buffer_origin(operand), kiln_size_make(0), kiln_size_make(0), false
    };
    if (result->type.rank > 0 && result->type.dims[joint->axis])
        piece.offset = kiln_size_mul(kiln_size_make(pads[0]), of_one(joint, &result->type));
    piece.width = width_of(joint, operand);
    inserts->n_looks++;
    piece.in_place = piece.width.n > 0 && may_move(inserts, pad, joint, &piece);
    g_array_append_val(pieces, piece);
    return pieces;
}

/* --- what it costs --- */

/* What is in place moves into the result, or, with @sign -1, out of it again. */
static void
count_bytes(Inserts *inserts, const KilnBuffer *result, GPtrArray *moving, int64_t sign)
{
    KilnLives *lives = inserts->lives;
    const KilnFacts *to = kiln_lives_facts(lives, result);
    int64_t first = to->first, last = to->last;
    for (guint i = 0; i < moving->len; i++) {
        const Piece *piece = g_ptr_array_index(moving, i);
        const KilnFacts *from = kiln_lives_facts(lives, piece->origin);
        kiln_lives_add(lives, from->first, from->last, -sign * from->size);
        first = MIN(first, from->first);
        last = MAX(last, from->last);
    }
    kiln_lives_add(lives, first, to->first - 1, sign * to->size);
    kiln_lives_add(lives, to->last + 1, last, sign * to->size);
}

static bool
fits(const Inserts *inserts)
{
    KilnPassContext *context = inserts->context;
    PASS_GUARD(peak_kept, kiln_lives_fits(inserts->lives));
    return true;
}

/* Those that are made last come first. */
static gint
compare_pieces(gconstpointer a, gconstpointer b, gpointer data)
{
    const KilnLives *lives = data;
    const Piece *x = *(Piece *const *)a, *y = *(Piece *const *)b;
    int64_t p = kiln_lives_facts(lives, x->origin)->first;
    int64_t q = kiln_lives_facts(lives, y->origin)->first;
    if (p != q)
        return p > q ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* The pieces that move: their bytes are counted. */
static GPtrArray *
choose(Inserts *inserts, const KilnInstr *concat, GArray *pieces)
{
    const KilnBuffer *result = kiln_buffer_origin(concat->operands[0].buffer);
    GPtrArray *moving = g_ptr_array_new();
    for (guint i = 0; i < pieces->len; i++) {
        if (g_array_index(pieces, Piece, i).in_place)
            g_ptr_array_add(moving, &g_array_index(pieces, Piece, i));
    }
    g_ptr_array_sort_with_data(moving, compare_pieces, inserts->lives);
    while (moving->len > 0) {
        count_bytes(inserts, result, moving, 1);
        if (fits(inserts))
            break;
        count_bytes(inserts, result, moving, -1);
        guint kept = moving->len - 1 - moving->len / 8; /* few rounds for many operands */
        for (guint i = kept; i < moving->len; i++)
            ((Piece *)g_ptr_array_index(moving, i))->in_place = false;
        g_ptr_array_set_size(moving, (gint)kept);
    }
    return moving;
}

/* --- rewriting --- */

/* @width bytes of each row from @offset on: place_of() has said that they are a region. */
static KilnBuffer *
view_of(const Joint *joint, KilnSize offset, KilnSize width, const KilnBuffer *like,
        KilnInstr *before)
{
    KilnRegion place;
    place_of(joint, offset, width, &place);
    return kiln_ir_view_part(joint->origin->function, like->name, joint->origin, &place,
                             &like->type, before);
}

/* The result is allocated before all that will lie in it. */
static void
hoist_result(Inserts *inserts, KilnBuffer *result, const GPtrArray *moving)
{
    KilnStanding *places = inserts->lives->places;
    for (guint i = 0; i < moving->len && result->kind == KILN_BUFFER_ALLOC; i++) {
        KilnInstr *def = ((const Piece *)g_ptr_array_index(moving, i))->origin->def;
        if (places[def->id].position >= places[result->def->id].position)
            continue;
        kiln_instr_move(result->def, def);
        places[result->def->id].position = places[def->id].position;
    }
}

static gboolean
copy_operands(KilnInstr *concat, const Joint *joint, const Piece *piece, GError **error)
{
    KilnSize offset = piece->offset;
    for (uint32_t i = piece->first; i < piece->first + piece->n; i++) {
        KilnBuffer *source = concat->operands[i].buffer;
        KilnSize width = width_of(joint, source);
        if (width.n == 0)
            continue;
        KilnBuffer *operands[] = { view_of(joint, offset, width, source, concat), source };
        KilnInstr *copy =
            kiln_instr_new(concat->function, KILN_INSTR_copy, operands, 2, NULL, concat, error);
        if (!copy)
            return FALSE;
        copy->name = concat->name;
        offset = kiln_size_add(offset, width);
    }
    return TRUE;
}

/* A scalar that stands for what pads without a value: a stored 0, of the result's quantization. */
static KilnBuffer *
zero_of(Inserts *inserts, const KilnInstr *pad)
{
    const KilnType *type = &pad->operands[0].buffer->type;
    const KilnType plain = kiln_type_scalar(type->dtype);
    KilnType scalar = plain;
    scalar.quant = type->quant;
    if (!inserts->zero || !kiln_type_equal(&inserts->zero->type, &scalar))
        inserts->zero =
            kiln_ir_add_constant(pad->function, "zero", kiln_tensor_new_splat(&plain, 0), &scalar);
    return inserts->zero;
}

/* @n elements of the axis from @first on. */
static gboolean
fill(KilnInstr *pad, const Joint *joint, KilnSize first, int64_t n, KilnBuffer *value,
     GError **error)
{
    KilnBuffer like = *pad->operands[0].buffer;
    KilnSize one = of_one(joint, &like.type), width = kiln_size_mul(one, kiln_size_make(n));
    like.type.dims[joint->axis] = n;
    like.type.open[joint->axis] = NULL;
    if (width.n == 0)
        return TRUE;
    KilnBuffer *border = view_of(joint, kiln_size_mul(first, one), width, &like, pad);
    KilnInstr *expand = kiln_instr_new(pad->function, KILN_INSTR_expand,
                                       (KilnBuffer *[]){ border, value }, 2, NULL, pad, error);
    if (expand)
        expand->name = pad->name;
    return expand != NULL;
}

static gboolean
fill_border(Inserts *inserts, KilnInstr *pad, const Joint *joint, GError **error)
{
    int64_t pads[2];
    padded_axis(pad, pads);
    if (pads[0] == 0 && pads[1] == 0)
        return TRUE;
    KilnBuffer *given = kiln_instr_operand(pad, 2), *value = given ? given : zero_of(inserts, pad);
    KilnSize extent = kiln_type_size(&pad->operands[0].buffer->type, joint->axis);
    KilnSize behind = kiln_size_sub(extent, kiln_size_make(pads[1]));
    return fill(pad, joint, kiln_size_make(0), pads[0], value, error) &&
           fill(pad, joint, behind, pads[1], value, error);
}

static gboolean
join(Inserts *inserts, KilnInstr *instr, const Joint *joint, GArray *pieces,
     const GPtrArray *moving, GError **error)
{
    kiln_pass_note(inserts->context, rule, "%s: %u of %u operands", kiln_instr_label(instr),
                   moving->len, pieces->len);
    hoist_result(inserts, joint->origin, moving);
    if (instr->kind == KILN_INSTR_pad && !fill_border(inserts, instr, joint, error))
        return FALSE;
    for (guint i = 0; i < pieces->len; i++) {
        const Piece *piece = &g_array_index(pieces, Piece, i);
        if (!piece->in_place && !copy_operands(instr, joint, piece, error))
            return FALSE;
    }
    for (guint i = 0; i < pieces->len; i++) {
        const Piece *piece = &g_array_index(pieces, Piece, i);
        if (!piece->in_place)
            continue;
        KilnBuffer *view =
            view_of(joint, piece->offset, piece->width, piece->origin, piece->origin->def);
        kiln_lives_replace(inserts->lives, piece->origin, view, joint->origin);
    }
    kiln_instr_remove(instr);
    return TRUE;
}

/* Nothing is to be placed, or something is for all bindings. One row may be empty at others. */
static bool
stays_as_it_is(const Joint *joint, KilnSize width)
{
    if (width.lost || kiln_size_is(width, 0))
        return !width.lost;
    return kiln_size_at_most(kiln_size_make(1), width) ||
           (width.n > 0 && kiln_size_is(joint->rows, 1));
}

/* Each piece has a place for all bindings. */
static bool
all_known(const KilnInstr *concat, const Joint *joint, const GArray *pieces)
{
    bool known = true;
    for (guint i = 0; i < pieces->len; i++) {
        const Piece *piece = &g_array_index(pieces, Piece, i);
        known &= !piece->offset.lost && stays_as_it_is(joint, piece->width);
        for (uint32_t k = 0; k < piece->n; k++)
            known &=
                stays_as_it_is(joint, width_of(joint, concat->operands[piece->first + k].buffer));
    }
    return known;
}

/* Joins what of @concats may be joined; only those remain that the peak forbids. */
static gboolean
join_concats(Inserts *inserts, GPtrArray *concats, bool *out_any, GError **error)
{
    guint n_waiting = 0;
    *out_any = false;
    for (guint i = 0; i < concats->len; i++) {
        KilnInstr *concat = g_ptr_array_index(concats, i);
        bool is_pad = concat->kind == KILN_INSTR_pad;
        if (!(is_pad ? may_pad(inserts, concat) : may_hold(inserts, concat)))
            continue;
        const Joint joint = joint_of(concat, joined_axis(concat));
        g_autoptr(GArray) pieces =
            is_pad ? padded_piece(inserts, concat, &joint) : find_pieces(inserts, concat, &joint);
        if (!all_known(concat, &joint, pieces))
            continue;
        bool wanted = false;
        for (guint k = 0; k < pieces->len; k++)
            wanted |= g_array_index(pieces, Piece, k).in_place;
        g_autoptr(GPtrArray) moving = choose(inserts, concat, pieces);
        if (moving->len == 0) {
            if (wanted)
                concats->pdata[n_waiting++] = concat;
            continue;
        }
        if (!join(inserts, concat, &joint, pieces, moving, error))
            return FALSE;
        *out_any = true;
    }
    g_ptr_array_set_size(concats, (gint)n_waiting);
    return TRUE;
}

/* Joins what may be joined, as far as one look at the lives tells. */
static gboolean
join_all(KilnIRFunction *function, KilnPassContext *context, bool *out_any, GError **error)
{
    *out_any = false;
    g_autoptr(GPtrArray) concats = g_ptr_array_new();
    kiln_foreach_instr (instr, function) {
        if (instr->kind == KILN_INSTR_concat || instr->kind == KILN_INSTR_pad)
            g_ptr_array_add(concats, instr);
    }
    if (concats->len == 0)
        return TRUE;
    KilnLives *lives = kiln_pass_lives(context, function);
    g_autofree int64_t *taken = g_new0(int64_t, function->buffers->len + 1);
    g_autoptr(KilnDefines) defines = kiln_defines_new(function);
    Inserts inserts = { lives, context, NULL, taken, 0, defines };
    /* A concat that is gone may make room for one that came before. */
    for (bool any = true; any && concats->len > 0;) {
        if (!join_concats(&inserts, concats, &any, error))
            return FALSE;
        *out_any |= any;
    }
    return TRUE;
}

IR_PASS(optimize_inserts);

gboolean
kiln_pass_optimize_inserts(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                           GError **error)
{
    *changed = false;
    /* Lives may be shorter than was kept track of, and the peak lower than the one that forbade
       something. */
    for (bool any = true; any; *changed |= any) {
        if (!join_all(function, context, &any, error))
            return FALSE;
    }
    return TRUE;
}
