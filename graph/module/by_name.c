/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/module/by_name.h"

#include "graph/node.h"

#include <string.h>

bool
kiln_node_is(const KilnNode *node, const char *op)
{
    return node && strcmp(kiln_op_info(node->op)->name, op) == 0;
}

static const KilnAttrInfo *
find_attr(KilnOp op, const char *name, KilnAttrKind kind)
{
    const KilnOpInfo *info = kiln_op_info(op);
    const KilnAttrInfo *attr = kiln_attr_find(info->attrs, info->n_attrs, name);
    g_assert(attr && attr->kind == kind);
    (void)kind;
    return attr;
}

const void *
kiln_attr_field(const KilnNode *node, const char *name, KilnAttrKind kind)
{
    return (const char *)node->attrs + find_attr(node->op, name, kind)->offset;
}

static size_t
size_of(KilnAttrKind kind)
{
    switch (kind) {
    case KILN_ATTR_INT:
        return sizeof(KilnC_INT);
    case KILN_ATTR_BOOL:
        return sizeof(KilnC_BOOL);
    case KILN_ATTR_INTS:
        return sizeof(KilnC_INTS);
    case KILN_ATTR_DTYPE:
        return sizeof(KilnC_DTYPE);
    default:
        g_assert_not_reached();
    }
}

KilnValue *
kiln_build_named(KilnNode *before, const KilnNamed *named, KilnValue *const *operands, uint32_t n,
                 GError **error)
{
    KilnFunction *function = before->function;
    KilnOp op = 0;
    const bool known = kiln_op_from_name(named->op, &op);
    g_assert(known);
    (void)known;
    void *attrs = kiln_op_attrs_new(op, function->module->arena);
    for (size_t i = 0; i < G_N_ELEMENTS(named->attrs) && named->attrs[i].name; i++) {
        const KilnNamedAttr *attr = &named->attrs[i];
        memcpy((char *)attrs + find_attr(op, attr->name, attr->kind)->offset, attr->value,
               size_of(attr->kind));
    }
    return kiln_build(function, before, op, attrs, operands, n, error);
}

KilnValue *
kiln_build_along(KilnNode *before, const char *op, KilnValue *value, int64_t axis, GError **error)
{
    return kiln_build_pair(before, op, value, kiln_build_ints(before->function, before, &axis, 1),
                           error);
}

KilnValue *
kiln_build_pair(KilnNode *before, const char *op, KilnValue *a, KilnValue *b, GError **error)
{
    KilnValue *operands[] = { a, b };
    return kiln_build_named(before, &(KilnNamed){ .op = op }, operands, 2, error);
}
