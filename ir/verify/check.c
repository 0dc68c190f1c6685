/* SPDX-License-Identifier: Apache-2.0 */
/* Operand types and attributes of instructions, by the shape functions of their ops. */
#include "ir/verify/check_priv.h"

#include "graph/infer/infer.h"
#include "graph/op/all.h"
#include "ir/tail.h"
#include "ir/verify/verify_priv.h"

#include <string.h>

/* Instructions that no op stands for; every other one has the op of its name, or this does not
 * compile. */
enum {
    KILN_OP_alloc = KILN_CHECK_NO_OP,
    KILN_OP_dealloc = KILN_CHECK_NO_OP,
    KILN_OP_view = KILN_CHECK_NO_OP,
    KILN_OP_copy = KILN_CHECK_NO_OP,
    KILN_OP_extents = KILN_CHECK_NO_OP,
    KILN_OP_stack = KILN_CHECK_NO_OP,
    KILN_OP_call = KILN_CHECK_NO_OP,
    KILN_OP_branch = KILN_CHECK_NO_OP,
    KILN_OP_take = KILN_CHECK_NO_OP,
    KILN_OP_refuse = KILN_CHECK_NO_OP,
    KILN_OP_string_parts = KILN_CHECK_NO_OP,
    KILN_OP_token_count = KILN_CHECK_NO_OP,
    KILN_OP_item_none = KILN_CHECK_NO_OP,
    KILN_OP_item_list = KILN_CHECK_NO_OP,
    KILN_OP_item_dims = KILN_CHECK_NO_OP,
    KILN_OP_concat_dims = KILN_CHECK_NO_OP,
    KILN_OP_map_length = KILN_CHECK_NO_OP,
};

static const int op_of[KILN_N_INSTRS] = {
#define ATTR(...)
#define INSTR(id, ...) [KILN_INSTR_##id] = (int)KILN_OP_##id,
#include "ir/instrs.def"
};

/* --- errors --- */

gboolean
kiln_check_throw(const KilnCheck *check, uint32_t i, const char *expected, GError **error)
{
    const KilnBuffer *buffer = kiln_instr_operand(check->instr, i);
    g_autofree char *found = kiln_type_to_string(&buffer->type);
    return kiln_throw(error, KILN_ERROR_INVALID, "operand %u (%s): expected %s, found %s", i,
                      buffer->name, expected, found);
}

gboolean
kiln_check_length(const KilnCheck *check, const char *name, uint32_t n, bool may_be_empty,
                  GError **error)
{
    const KilnInstrInfo *info = kiln_instr_info(check->instr->kind);
    const KilnAttrInfo *attr = kiln_attr_find(info->attrs, info->n_attrs, name);
    /* All list kinds begin with their length. */
    uint32_t found = *(const uint32_t *)((const char *)check->instr->attrs + attr->offset);
    if (found == n || (found == 0 && may_be_empty))
        return TRUE;
    return kiln_throw(error, KILN_ERROR_INVALID, "%s: expected %u elements, found %u", name, n,
                      found);
}

gboolean
kiln_check_same_shape(const KilnCheck *check, uint32_t a, uint32_t b, GError **error)
{
    const KilnType *expected = kiln_check_type(check, a);
    if (kiln_type_same_shape(expected, kiln_check_type(check, b)))
        return TRUE;
    g_autofree char *text = kiln_type_to_string(expected);
    g_autofree char *shape = g_strdup_printf("the dims of %s", text);
    return kiln_check_throw(check, b, shape, error);
}

/* --- the node --- */

void *
kiln_check_attr(KilnCheck *check, const char *name)
{
    const KilnOpInfo *info = kiln_op_info(check->node.op);
    return (char *)check->node.attrs + kiln_attr_find(info->attrs, info->n_attrs, name)->offset;
}

static void
set_operand(KilnCheck *check, uint32_t i, const KilnType *type)
{
    KilnValue *value = kiln_arena_new0(check->arena, KilnValue, 1);
    value->name = "operand";
    value->type = *type;
    check->node.operands[i].value = value;
    check->node.n_operands = MAX(check->node.n_operands, i + 1);
}

void
kiln_check_known(KilnCheck *check, uint32_t i, const int64_t *values, int64_t n)
{
    KilnType list = kiln_type_make(KILN_DTYPE_i64, 1, &n);
    KilnKnown *known =
        kiln_arena_alloc(check->arena, sizeof *known + (size_t)n * sizeof known->v[0]);
    known->n = n;
    if (n)
        memcpy(known->v, values, (size_t)n * sizeof *values);
    set_operand(check, i, &list);
    check->node.operands[i].value->known = known;
}

enum {
    KNOWN_OPERANDS_MAX = 4 /* that a check may add */
};

/* The node's operands are the @in operands in order, but for a residual, which the op does not
 * know, and for shape operands, whose places stay empty for the check of the kind to fill. */
static void
build_node(KilnCheck *check)
{
    const KilnInstr *instr = check->instr;
    const KilnInstrInfo *info = kiln_instr_info(instr->kind);
    const KilnOpInfo *op = kiln_op_info(check->node.op);
    check->node.operands =
        kiln_arena_new0(check->arena, KilnUse, instr->n_operands + KNOWN_OPERANDS_MAX);
    uint32_t next = 0, outs = 0, last_out = 0, residual = kiln_residual_operand(instr->kind);
    for (uint32_t i = 0; i < instr->n_operands && (!residual || i < residual); i++) {
        const KilnBuffer *buffer = instr->operands[i].buffer;
        if (instr->operands[i].access == KILN_ACCESS_OUT) {
            outs++;
            last_out = buffer ? outs : last_out;
            continue;
        }
        while (kiln_op_is_shape_operand(check->node.op, next))
            next++;
        if (buffer)
            set_operand(check, next, &buffer->type);
        next++;
    }
    check->node.n_results = MAX(last_out, (uint32_t)MAX(op->min_results, 1));
    check->node.attrs = kiln_op_attrs_new(check->node.op, check->arena);
    if (check->node.attrs && info->n_attrs)
        kiln_attrs_copy_matching(op->attrs, op->n_attrs, check->node.attrs, info->attrs,
                                 info->n_attrs, instr->attrs, check->arena);
}

static bool
dims_agree(const KilnType *inferred, const KilnType *found)
{
    if (inferred->dtype != found->dtype || inferred->rank != found->rank ||
        !kiln_quant_equal(inferred->quant, found->quant))
        return false;
    return inferred->rank == 0 ||
           memcmp(inferred->dims, found->dims, sizeof(int64_t) * (size_t)found->rank) == 0;
}

/* Which element types an instruction takes is the kernels' business (they take more than ONNX asks
 * for); how its operands' types hang together is not. So where the op refuses an element type, that
 * of operand 0 is taken for f32: everywhere, or, where indices happen to have it too, in operand 0
 * and the first result alone. What is f32 itself is taken for that type then, for the two must not
 * look alike. */
typedef enum {
    TYPES_AS_STATED,
    TYPES_F32_EVERYWHERE,
    TYPES_F32_FIRST,
    N_TYPES
} Types;

static KilnDType
taken_for(KilnDType dtype, bool first, KilnDType key, Types types)
{
    if (types == TYPES_AS_STATED)
        return dtype;
    if (dtype == KILN_DTYPE_f32)
        return key;
    bool f32 = types == TYPES_F32_EVERYWHERE || first;
    return f32 && dtype == key ? KILN_DTYPE_f32 : dtype;
}

/* The types of the @out operands, in order; of absent ones nothing. */
static void
stated_results(const KilnCheck *check, KilnDType key, Types types, KilnType *given)
{
    const KilnInstr *instr = check->instr;
    for (uint32_t i = 0, r = 0; i < instr->n_operands && r < check->node.n_results; i++) {
        const KilnType *stated = kiln_check_type(check, i);
        if (instr->operands[i].access != KILN_ACCESS_OUT)
            continue;
        if (stated) {
            given[r] = *stated;
            given[r].dtype = taken_for(stated->dtype, r == 0, key, types);
        }
        r++;
    }
}

static gboolean
infer_with(KilnCheck *check, KilnDType key, Types types, GError **error)
{
    const KilnInstr *instr = check->instr;
    uint32_t n = check->node.n_results;
    KilnType *given = kiln_arena_new0(check->arena, KilnType, n);
    stated_results(check, key, types, given);
    KilnInfer in = { .node = &check->node,
                     .arena = check->arena,
                     .out = kiln_arena_new0(check->arena, KilnType, n),
                     .known = kiln_arena_new0(check->arena, const KilnKnown *, n),
                     .dims = instr->function->module->dims,
                     .given = given };
    for (uint32_t i = 0; types != TYPES_AS_STATED && i < check->node.n_operands; i++) {
        KilnValue *value = check->node.operands[i].value;
        if (value && !value->known)
            value->type.dtype = taken_for(value->type.dtype, i == 0, key, types);
    }
    if (!kiln_infer_run(&in, error)) {
        /* The shape function counts operands without results. */
        if (error && g_str_has_prefix((*error)->message, "operand "))
            kiln_prefix_error(error, "@in ");
        return FALSE;
    }
    for (uint32_t i = 0, r = 0; i < instr->n_operands && r < n; i++) {
        if (instr->operands[i].access != KILN_ACCESS_OUT)
            continue;
        const KilnType *inferred = &in.out[r], *stated = kiln_check_type(check, i);
        bool first = r++ == 0;
        if (!stated)
            continue;
        KilnType found = *stated;
        found.dtype = taken_for(found.dtype, first, key, types);
        if (dims_agree(inferred, &found))
            continue;
        KilnType plain = *inferred;
        plain.layout = NULL;
        g_autofree char *expected = kiln_type_to_string(&plain);
        return kiln_check_throw(check, i, expected, error);
    }
    return TRUE;
}

gboolean
kiln_check_infer(KilnCheck *check, GError **error)
{
    const KilnValue *first = kiln_node_operand(&check->node, 0);
    KilnDType key = first ? first->type.dtype : KILN_DTYPE_f32;
    g_autofree KilnDType *stated = g_new0(KilnDType, check->node.n_operands + 1);
    for (uint32_t i = 0; i < check->node.n_operands; i++) {
        const KilnValue *value = check->node.operands[i].value;
        stated[i] = value ? value->type.dtype : KILN_DTYPE_f32;
    }
    g_autoptr(GError) why = NULL;
    for (Types types = TYPES_AS_STATED; types < N_TYPES; types++) {
        for (uint32_t i = 0; i < check->node.n_operands; i++) {
            if (check->node.operands[i].value)
                check->node.operands[i].value->type.dtype = stated[i];
        }
        if (infer_with(check, key, types, why ? NULL : &why))
            return TRUE;
        if (!g_error_matches(why, KILN_ERROR, KILN_ERROR_TYPE))
            break;
    }
    g_propagate_error(error, g_steal_pointer(&why));
    return FALSE;
}

/* --- layouts --- */

/* Kernels are chosen by the layout of one operand: element-wise, all that have the result's dims
 * must have its layout, or elements would not meet. */
static gboolean
check_layouts(const KilnInstr *instr, GError **error)
{
    const KilnBuffer *out = kiln_instr_operand(instr, 0);
    if (!(kiln_instr_info(instr->kind)->flags & KILN_INSTR_DATA_PARALLEL))
        return TRUE;
    for (uint32_t i = 1; i < instr->n_operands; i++) {
        const KilnBuffer *in = instr->operands[i].buffer;
        if (in && kiln_type_same_shape(&in->type, &out->type) &&
            g_strcmp0(in->type.layout, out->type.layout) != 0)
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "operand %u (%s): expected layout %s, found %s", i, in->name,
                              out->type.layout ? out->type.layout : "plain",
                              in->type.layout ? in->type.layout : "plain");
    }
    return TRUE;
}

/* What the op asks for and a variadic signature does not. */
static gboolean
check_required(const KilnCheck *check, GError **error)
{
    const KilnOpInfo *op = kiln_op_info(check->node.op);
    for (uint32_t i = 0; i < (uint32_t)op->min_operands; i++) {
        bool decided = kiln_op_is_shape_operand(check->node.op, i);
        if (!decided && !kiln_node_operand(&check->node, i))
            return kiln_throw(error, KILN_ERROR_INVALID, "@in operand %u is required, found none",
                              i);
    }
    return TRUE;
}

static gboolean
check_tail(const KilnCheck *check, GError **error)
{
    const KilnInstr *instr = check->instr;
    uint32_t operand = kiln_residual_operand(instr->kind);
    if (!operand)
        return TRUE;
    KilnTailFields fields = kiln_tail_fields(instr->kind, instr->attrs);
    if (fields.activation && !kiln_tail_check(&fields, error))
        return FALSE;
    const KilnType *out = kiln_check_type(check, 0), *residual = kiln_check_type(check, operand);
    bool active = fields.activation && strcmp(*fields.activation, "none") != 0;
    if (!residual && !active)
        return TRUE;
    if (!kiln_dtype_is_float(out->dtype) || out->quant)
        return kiln_check_throw(check, 0, "floats in front of an activation or residual", error);
    if (!residual || kiln_type_equal(residual, out))
        return TRUE;
    g_autofree char *expected = kiln_type_to_string(out);
    return kiln_check_throw(check, operand, expected, error);
}

/* All instructions compute with tensors but for a few, whose rows say so. */
static gboolean
check_tensors(const KilnCheck *check, GError **error)
{
    for (uint32_t i = 0; i < check->instr->n_operands; i++) {
        const KilnType *type = kiln_check_type(check, i);
        if (type && kiln_dtype_is_item(type->dtype))
            return kiln_check_throw(check, i, "a tensor", error);
    }
    return TRUE;
}

static gboolean
run_check(KilnCheck *check, GError **error)
{
    const KilnInstrCheck *row = kiln_instr_check_of(check->instr->kind);
    if (!row->items && !check_tensors(check, error))
        return FALSE;
    if (row->alone)
        return row->alone(check, error);
    if (!check_required(check, error))
        return FALSE;
    if (row->prepare && !row->prepare(check, error))
        return FALSE;
    return kiln_check_infer(check, error) && check_tail(check, error);
}

gboolean
kiln_instr_check(const KilnInstr *instr, KilnArena *arena, GError **error)
{
    int op = op_of[instr->kind];
    KilnCheck check = { .instr = instr, .arena = arena };
    if (op != KILN_CHECK_NO_OP) {
        check.node.op = (KilnOp)op;
        build_node(&check);
    }
    g_autoptr(GError) inner = NULL;
    if (run_check(&check, &inner) && check_layouts(instr, &inner))
        return TRUE;
    if (g_error_matches(inner, KILN_ERROR, KILN_ERROR_UNSUPPORTED)) { /* no plug-in has it */
        g_propagate_error(error, g_steal_pointer(&inner));
        kiln_prefix_error(error, "@%s: %s (%s): ", instr->function->name, kiln_instr_label(instr),
                          kiln_instr_info(instr->kind)->name);
        return FALSE;
    }
    return kiln_instr_throw(instr, error, "%s", inner->message);
}
