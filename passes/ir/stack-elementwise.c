/* SPDX-License-Identifier: Apache-2.0 */
/* stack-elementwise: element-wise instructions over one iteration space become one instruction.
 *
 *     %a = alloc : f32[1,8,6,6]
 *     add @out %a, @in @x, @in @bias
 *     %b = alloc : f32[1,8,6,6]            stack @out @y, @in @x, @in @bias
 *     sigmoid @out %b, @in %a         =>         { t0: add @bias; sigmoid; mul(t0, t1) }
 *     mul @out @y, @in %a, @in %b
 *     dealloc %a
 *     dealloc %b
 *
 *     %a = alloc : f32[1,8,6,6]
 *     relu @out %a, @in @x                   stack @out @p, @in @x
 *     global_average_pool @out @p, @in %a =>       { relu; global_average_pool }
 *     dealloc %a
 *
 * A producer joins its consumer, and instructions that read the same operand element for element
 * join each other. What other instructions read is stored as one more result; what none does is
 * never in memory. Members move down to the last of them or, where that is not possible, the last
 * moves up; never past an instruction that touches what they write or writes what they read.
 * Nothing is computed twice. Reductions of the last dims walk through their operand as others do
 * and are last steps: what they give is read by other instructions only.
 *
 * requires nothing, preserves nothing; class E: every step rounds as its instruction did. Behind
 * share-buffers little is left to join: buffers are worked on in place, which fixes the order.
 * The passes that make concats and slices views see stacks as any other instruction. Each walk
 * joins with the nearest members only; walks are repeated until nothing joins. Pairs that the last
 * of them leaves apart are listed with the guard that kept them from moving together downward, and
 * upward where it is another (--print-changed); guards are counted (--stats). */
#include "ir/stack.h"
#include "passes/pass.h"
#include "passes/query_ir/lives.h"
#include "passes/query_ir/stack_draft.h"

#include <string.h>

static const char rule[] = "stack";

enum {
    /* What a reduction leaves to threads: */
    PARTS = 16,            /* enough for those that a program commonly has */
    REDUCED_PIECE = 32768, /* elements of a long group that a kernel takes at once, about */
    SERIAL_FLOPS = 65536,  /* that are not worth a second thread */
    FELLOWS_MAX = 8,       /* readers of one operand that another reader is tried with */
};

typedef struct Group Group;
struct Group {
    Group *into; /* it joined this one; NULL: none */
    KilnInstr *members[KILN_STACK_STEPS_MAX];
    uint32_t n;
    KilnInstr *anchor; /* where the stack will stand */
    KilnType space;
    bool movable; /* nothing between the anchor and here touches what its members touch */
    int depth;    /* the fewest fallbacks that a member's kernel is away */
};

typedef struct {
    KilnIRFunction *function;
    KilnPassContext *context;
    KilnLives *lives;
    GPtrArray *groups;
    GPtrArray *tried; /* groups, by one instruction */
    GPtrArray *apart; /* char *: which pairs the last walk left, and why */
    /* By buffer id, of origins: */
    Group **writer;      /* NULL: no candidate wrote it last */
    GPtrArray **readers; /* groups that read what is there now */
    int64_t *last_write; /* positions; -1: none */
    bool *touched;
    KilnInstr **deallocs;
    bool *moved; /* by step: its instruction moved away */
    int64_t bytes_saved;
    uint32_t n_members, n_stacks;
} Stacking;

static Group *
find(Group *group)
{
    while (group && group->into)
        group = group->into;
    return group;
}

static int64_t
position_of(const Stacking *stacking, const KilnInstr *instr)
{
    return stacking->lives->places[instr->id].position;
}

static int64_t
step_of(const Stacking *stacking, const KilnInstr *instr)
{
    return stacking->lives->places[instr->id].step;
}

/* --- which instructions --- */

/* Whether a reduction's groups are elements that follow each other; true of other instructions. */
static bool
reduces_last_dims(const KilnInstr *instr)
{
    const KilnBuffer *in = kiln_instr_operand(instr, 1);
    return !kiln_stack_reduces(instr->kind) ||
           kiln_stack_reduced_dims(instr->kind, instr->attrs, in->type.rank) > 0;
}

static bool
may_stack(const Stacking *stacking, const KilnInstr *instr)
{
    KilnPassContext *context = stacking->context;
    if (kiln_instr_is_bookkeeping(instr) ||
        !(kiln_instr_info(instr->kind)->flags & KILN_INSTR_DATA_PARALLEL ||
          kiln_stack_reduces(instr->kind)))
        return false;
    bool plain = true;
    for (uint32_t i = 0; i < instr->n_operands; i++)
        plain &= !instr->operands[i].buffer || !instr->operands[i].buffer->type.layout;
    PASS_GUARD(element_types, kiln_stack_takes(instr));
    PASS_GUARD(plain_layout, plain);
    PASS_GUARD(last_dims, reduces_last_dims(instr));
    const KilnType space = kiln_stack_space_of(instr);
    PASS_GUARD(not_empty, kiln_type_elements(&space) > 0);
    return true;
}

/* --- which join --- */

/* The members of both, in the order of the function; false where they are too many. */
static bool
unite(const Stacking *stacking, const Group *a, const Group *b, Group *both)
{
    uint32_t i = 0, k = 0;
    if (a->n + b->n > KILN_STACK_STEPS_MAX)
        return false;
    both->n = 0;
    while (i < a->n || k < b->n) {
        bool first = k == b->n || (i < a->n && position_of(stacking, a->members[i]) <
                                                   position_of(stacking, b->members[k]));
        both->members[both->n++] = first ? a->members[i++] : b->members[k++];
    }
    both->depth = MIN(a->depth, b->depth);
    return true;
}

/* The one member of @b, an instruction that is visited, may stand where @a stands. */
static bool
may_hoist(const Stacking *stacking, const Group *a, const Group *b)
{
    const KilnInstr *instr = b->anchor;
    int64_t to = position_of(stacking, a->anchor);
    for (uint32_t i = 0; i < instr->n_operands && b->n == 1; i++) {
        if (!instr->operands[i].buffer)
            continue;
        uint32_t id = kiln_buffer_origin(instr->operands[i].buffer)->id;
        const Group *writer = find(stacking->writer[id]); /* may have moved behind @a */
        int64_t written = writer ? position_of(stacking, writer->anchor) : stacking->last_write[id];
        if (instr->operands[i].access != KILN_ACCESS_IN ? stacking->touched[id]
                                                        : writer != a && written >= to)
            return false;
    }
    return b->n == 1;
}

/* More than one step, of which one computes each element, or several reduce what they read once:
 * copies alone are for copy propagation. */
static bool
pays(const Group *group, const KilnStackDraft *draft)
{
    uint32_t n_reduce = 0;
    bool computes = false;
    for (uint32_t i = 0; i < group->n; i++) {
        const KilnInstr *member = group->members[i];
        n_reduce += kiln_stack_reduces(member->kind);
        computes |= member->kind != KILN_INSTR_copy && !kiln_stack_reduces(member->kind);
    }
    return draft->instr.n_steps > 1 && (computes || n_reduce > 1);
}

/* Kernels cut a reduction into its groups, and long groups into pieces: where they are few, steps
 * that cost much are faster apart, on more threads. */
static bool
keeps_parallel(const KilnStackDraft *draft)
{
    int64_t parts = INT64_MAX;
    const KilnCost cost = kiln_instr_cost(&draft->instr);
    for (uint32_t i = 0; i < draft->n_out; i++) {
        if (!kiln_stack_is_reduced(&draft->instr, i))
            continue;
        const int64_t groups = kiln_type_elements(&draft->operands[i]->type);
        parts = MIN(parts, groups);
    }
    KilnType space;
    kiln_stack_space(&draft->instr, &space);
    parts = MAX(parts, kiln_type_elements(&space) / REDUCED_PIECE);
    return parts >= PARTS || cost.flops <= SERIAL_FLOPS;
}

static bool
kernel_is_as_good(const Stacking *stacking, const Group *both, const KilnStackDraft *draft)
{
    const KilnTarget *target = kiln_pass_target(stacking->context);
    if (!target)
        return true;
    const KilnKernel *kernel = kiln_target_find(target, &draft->instr);
    return kernel && kiln_target_depth(target, kernel) <= both->depth;
}

/* @both gets the members of both, @draft their stack. */
static bool
may_join(const Stacking *stacking, const Group *a, const Group *b, bool sink, Group *both,
         KilnStackDraft *draft)
{
    KilnPassContext *context = stacking->context;
    PASS_GUARD(same_space, kiln_type_same_shape(&a->space, &b->space));
    PASS_GUARD(order, sink ? a->movable : may_hoist(stacking, a, b));
    KilnStackDrafting drafting = KILN_STACK_TOO_BIG;
    if (unite(stacking, a, b, both))
        drafting = kiln_stack_draft(both->members, both->n, stacking->lives, draft);
    if (drafting == KILN_STACK_TOO_BIG) {
        kiln_pass_refuse(context, rule, "size");
        return false;
    }
    PASS_GUARD(reads_reduced, drafting != KILN_STACK_READS_REDUCED);
    PASS_GUARD(space_kept, drafting != KILN_STACK_LOSES_SPACE);
    PASS_GUARD(aliasing, drafting != KILN_STACK_OVERLAPS);
    PASS_GUARD(pays, pays(both, draft));
    PASS_GUARD(parallel, keeps_parallel(draft));
    PASS_GUARD(kernel, kernel_is_as_good(stacking, both, draft));
    return true;
}

/* --- lives --- */

typedef struct {
    KilnFacts *facts;
    int32_t first, last; /* before */
} Change;

typedef struct {
    Change list[KILN_STACK_OPERANDS_MAX + 2 * KILN_STACK_STEPS_MAX];
    uint32_t n;
    int64_t between; /* bytes more that live while none of the members runs */
} Changes;

static void
change(Stacking *stacking, Changes *changes, KilnBuffer *buffer, const int64_t life[2],
       const int64_t range[2])
{
    KilnFacts *facts = kiln_lives_facts(stacking->lives, kiln_buffer_origin(buffer));
    changes->list[changes->n++] = (Change){ facts, facts->first, facts->last };
    int64_t middle = range[0] + 1;
    changes->between += facts->size * (life[0] <= middle && middle <= life[1]);
    changes->between -= facts->size * (facts->first <= middle && middle <= facts->last);
    kiln_lives_add(stacking->lives, facts->first, facts->last, -facts->size);
    kiln_lives_add(stacking->lives, life[0], life[1], facts->size);
    facts->first = (int32_t)life[0];
    facts->last = (int32_t)life[1];
}

static void
revert(Stacking *stacking, const Changes *changes)
{
    for (uint32_t i = changes->n; i-- > 0;) {
        const Change *undone = &changes->list[i];
        KilnFacts *facts = undone->facts;
        kiln_lives_add(stacking->lives, facts->first, facts->last, -facts->size);
        kiln_lives_add(stacking->lives, undone->first, undone->last, facts->size);
        facts->first = undone->first;
        facts->last = undone->last;
    }
}

/* What lives how long when the members that stood at step @range[0] (with @sink) or @range[1] have
 * moved to the other. */
static void
change_lives(Stacking *stacking, const KilnStackDraft *draft, bool sink, const int64_t range[2],
             Changes *changes)
{
    for (uint32_t i = 0; i < draft->instr.n_operands; i++) {
        KilnBuffer *buffer = draft->operands[i];
        const KilnFacts *facts = kiln_lives_facts(stacking->lives, kiln_buffer_origin(buffer));
        int64_t life[] = { facts->first, facts->last };
        if (i >= draft->n_out)
            life[1] = sink ? MAX(life[1], range[1]) : life[1];
        else if (!sink)
            life[0] = MIN(life[0], range[0]);
        else if (life[0] == range[0])
            life[0] = range[1];
        change(stacking, changes, buffer, life, range);
    }
    for (uint32_t i = 0; i < draft->n_gone; i++)
        change(stacking, changes, draft->gone[i], (const int64_t[]){ 0, -1 }, range);
}

/* Whether only members stand between the steps. */
static bool
adjoins(const Stacking *stacking, const int64_t range[2])
{
    for (int64_t step = range[0] + 1; step < range[1]; step++) {
        if (!stacking->moved[step] || step - range[0] > KILN_STACK_STEPS_MAX)
            return false;
    }
    return true;
}

static bool
lives_fit(const Stacking *stacking, const Changes *changes, const int64_t range[2])
{
    KilnPassContext *context = stacking->context;
    PASS_GUARD(lives_kept, changes->between <= 0 || adjoins(stacking, range));
    PASS_GUARD(peak_kept, kiln_lives_fits(stacking->lives));
    return true;
}

static bool
keep_lives(Stacking *stacking, const Group *a, const Group *b, bool sink,
           const KilnStackDraft *draft)
{
    const int64_t range[] = { step_of(stacking, a->anchor), step_of(stacking, b->anchor) };
    Changes changes = { .n = 0 };
    change_lives(stacking, draft, sink, range, &changes);
    if (!lives_fit(stacking, &changes, range)) {
        revert(stacking, &changes);
        return false;
    }
    stacking->moved[range[sink ? 0 : 1]] = true;
    return true;
}

/* --- joining --- */

/* @b, the later one, stays where it is with @sink, else @a does. */
static bool
join(Stacking *stacking, Group *a, Group *b, bool sink)
{
    Group both = { 0 };
    KilnStackDraft draft;
    if (!may_join(stacking, a, b, sink, &both, &draft) || !keep_lives(stacking, a, b, sink, &draft))
        return false;
    Group *stays = sink ? b : a, *goes = sink ? a : b;
    memcpy(stays->members, both.members, both.n * sizeof *both.members);
    stays->n = both.n;
    stays->depth = both.depth;
    goes->into = stays;
    return true;
}

/* The group that wrote @buffer. */
static Group *
producer(const Stacking *stacking, KilnBuffer *buffer)
{
    return find(stacking->writer[kiln_buffer_origin(buffer)->id]);
}

static bool
reads(const Group *group, const KilnBuffer *buffer)
{
    for (uint32_t i = 0; i < group->n; i++) {
        const KilnInstr *member = group->members[i];
        for (uint32_t k = 0; k < member->n_operands; k++) {
            if (member->operands[k].buffer == buffer &&
                member->operands[k].access == KILN_ACCESS_IN)
                return true;
        }
    }
    return false;
}

/* Joins @own with @other, unless that was tried before. */
static void
try_join(Stacking *stacking, Group *other, Group *own)
{
    if (!other || other == own || own->into || g_ptr_array_find(stacking->tried, other, NULL))
        return;
    g_ptr_array_add(stacking->tried, other);
    if (join(stacking, other, own, true))
        return;
    const char *down = kiln_pass_last_refusal(stacking->context);
    if (join(stacking, other, own, false))
        return;
    const char *up = kiln_pass_last_refusal(stacking->context);
    g_autofree char *both =
        g_str_equal(down, up) ? g_strdup(down) : g_strdup_printf("%s, upward %s", down, up);
    g_ptr_array_add(stacking->apart,
                    g_strdup_printf("%s and %s stay apart: %s", kiln_instr_label(other->anchor),
                                    kiln_instr_label(own->anchor), both));
}

/* With the last groups that read @buffer as @own does: element for element, and not to copy it. */
static void
join_fellows(Stacking *stacking, KilnBuffer *buffer, Group *own)
{
    const GPtrArray *readers = stacking->readers[kiln_buffer_origin(buffer)->id];
    if (!readers || own->members[0]->kind == KILN_INSTR_copy ||
        !kiln_type_same_elements(&buffer->type, &own->space))
        return;
    for (guint n = 0; n < MIN(readers->len, FELLOWS_MAX) && !own->into; n++) {
        Group *other = find(g_ptr_array_index(readers, readers->len - 1 - n));
        if (other->members[0]->kind != KILN_INSTR_copy && reads(other, buffer))
            try_join(stacking, other, own);
    }
}

/* With producers of its operands first, then with those that read the same. */
static void
join_all(Stacking *stacking, const KilnInstr *instr, Group *own)
{
    g_ptr_array_set_size(stacking->tried, 0);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        KilnBuffer *buffer = instr->operands[i].buffer;
        if (buffer && instr->operands[i].access == KILN_ACCESS_IN)
            try_join(stacking, producer(stacking, buffer), own);
    }
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        KilnBuffer *buffer = instr->operands[i].buffer;
        if (buffer && instr->operands[i].access == KILN_ACCESS_IN)
            join_fellows(stacking, buffer, own);
    }
}

static Group *
new_group(Stacking *stacking, KilnInstr *instr)
{
    const KilnTarget *target = kiln_pass_target(stacking->context);
    const KilnKernel *kernel = target ? kiln_target_find(target, instr) : NULL;
    Group *group = g_new0(Group, 1);
    group->members[group->n++] = group->anchor = instr;
    group->space = kiln_stack_space_of(instr);
    group->movable = true;
    group->depth = kernel ? kiln_target_depth(target, kernel) : G_MAXINT;
    g_ptr_array_add(stacking->groups, group);
    return group;
}

/* --- the walk --- */

static void
fix(Group *group, const Group *own)
{
    group = find(group);
    if (group && group != own)
        group->movable = false;
}

/* What @instr, of group @own if it is in one, does to others' freedom to move. */
static void
touch(Stacking *stacking, const KilnInstr *instr, Group *own)
{
    int64_t position = position_of(stacking, instr);
    for (uint32_t i = 0; i < instr->n_operands; i++) {
        if (!instr->operands[i].buffer)
            continue;
        uint32_t id = kiln_buffer_origin(instr->operands[i].buffer)->id;
        GPtrArray **readers = &stacking->readers[id];
        fix(stacking->writer[id], own);
        stacking->touched[id] = true;
        if (instr->operands[i].access == KILN_ACCESS_IN) {
            if (own && !*readers)
                *readers = g_ptr_array_new();
            if (own)
                g_ptr_array_add(*readers, own);
            continue;
        }
        stacking->last_write[id] = position;
        stacking->writer[id] = own;
        for (guint k = 0; *readers && k < (*readers)->len; k++)
            fix(g_ptr_array_index(*readers, k), own);
        if (*readers)
            g_ptr_array_set_size(*readers, 0);
    }
}

static void
walk(Stacking *stacking)
{
    kiln_foreach_instr (instr, stacking->function) {
        if (instr->kind == KILN_INSTR_dealloc)
            stacking->deallocs[instr->operands[0].buffer->id] = instr;
        if (kiln_instr_is_bookkeeping(instr))
            continue;
        Group *own = may_stack(stacking, instr) ? new_group(stacking, instr) : NULL;
        if (own)
            join_all(stacking, instr, own);
        touch(stacking, instr, find(own));
    }
}

/* --- rewriting --- */

static void
lower_dealloc(Stacking *stacking, KilnBuffer *buffer, KilnInstr *stack, int64_t position)
{
    KilnInstr *dealloc = stacking->deallocs[kiln_buffer_origin(buffer)->id];
    KilnStanding *at = dealloc ? &stacking->lives->places[dealloc->id] : NULL;
    if (at && at->position < position) {
        kiln_instr_move(dealloc, stack->next);
        at->position = (int32_t)position;
    }
}

static void
replace_members(Stacking *stacking, const Group *group)
{
    KilnStackDraft draft;
    kiln_stack_draft(group->members, group->n, stacking->lives, &draft);
    const KilnInstr *last = group->members[group->n - 1];
    int64_t position = position_of(stacking, group->anchor);
    KilnInstr *stack =
        kiln_instr_new_stack(stacking->function, draft.operands, draft.instr.n_operands,
                             draft.n_out, draft.steps, draft.instr.n_steps, group->anchor);
    stack->name = last->name;
    kiln_pass_note(stacking->context, rule, "%s: %u instructions", kiln_instr_label(stack),
                   group->n);
    stacking->bytes_saved -= kiln_instr_cost(stack).bytes;
    for (uint32_t i = 0; i < group->n; i++) {
        stacking->bytes_saved += kiln_instr_cost(group->members[i]).bytes;
        kiln_instr_remove(group->members[i]);
    }
    for (uint32_t i = 0; i < draft.n_gone; i++) {
        if (stacking->deallocs[draft.gone[i]->id])
            kiln_instr_remove(stacking->deallocs[draft.gone[i]->id]);
        kiln_instr_remove(draft.gone[i]->def);
    }
    for (uint32_t i = 0; i < draft.instr.n_operands; i++) {
        kiln_lives_define_before(stacking->lives, draft.operands[i], stack, position);
        lower_dealloc(stacking, draft.operands[i], stack, position);
    }
    stacking->n_members += group->n;
    stacking->n_stacks++;
}

static bool
replace_groups(Stacking *stacking)
{
    bool any = false;
    for (guint i = 0; i < stacking->groups->len; i++) {
        const Group *group = g_ptr_array_index(stacking->groups, i);
        if (group->into || group->n < 2)
            continue;
        replace_members(stacking, group);
        any = true;
    }
    return any;
}

/* One walk; true where anything joined. */
static bool
stack_once(Stacking *stacking)
{
    guint n = stacking->function->buffers->len;
    KilnLives *lives = kiln_pass_lives(stacking->context, stacking->function);
    g_autoptr(GPtrArray) groups = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) tried = g_ptr_array_new();
    g_autofree Group **writer = g_new0(Group *, n + 1);
    g_autofree GPtrArray **readers = g_new0(GPtrArray *, n + 1);
    g_autofree int64_t *written = g_new(int64_t, n + 1);
    g_autofree bool *touched = g_new0(bool, n + 1);
    g_autofree KilnInstr **deallocs = g_new0(KilnInstr *, n + 1);
    g_autofree bool *moved = g_new0(bool, lives->n_steps + 1);
    for (guint i = 0; i <= n; i++)
        written[i] = -1;
    stacking->lives = lives;
    stacking->groups = groups;
    stacking->tried = tried;
    stacking->writer = writer;
    stacking->readers = readers;
    stacking->touched = touched;
    stacking->last_write = written;
    stacking->deallocs = deallocs;
    stacking->moved = moved;
    g_ptr_array_set_size(stacking->apart, 0);
    walk(stacking);
    bool any = replace_groups(stacking);
    for (guint i = 0; i < n; i++) {
        if (readers[i])
            g_ptr_array_unref(readers[i]);
    }
    return any;
}

IR_PASS(stack_elementwise);

gboolean
kiln_pass_stack_elementwise(KilnIRFunction *function, KilnPassContext *context, bool *changed,
                            GError **error)
{
    (void)error;
    g_autoptr(GPtrArray) apart = g_ptr_array_new_with_free_func(g_free);
    Stacking stacking = { .function = function, .context = context, .apart = apart };
    *changed = false;
    while (stack_once(&stacking))
        *changed = true;
    for (guint i = 0; i < apart->len; i++)
        kiln_pass_remark(context, rule, "%s", (const char *)g_ptr_array_index(apart, i));
    if (*changed)
        kiln_pass_remark(context, rule,
                         "%u instructions became %u stacks: %" G_GINT64_FORMAT
                         " bytes less are read and written",
                         stacking.n_members, stacking.n_stacks, stacking.bytes_saved);
    return TRUE;
}
