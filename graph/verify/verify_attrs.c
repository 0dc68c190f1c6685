/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier's view of attributes: values that exist, subgraphs that belong to their node and fit
 * its operands and results, callees that are declared. */
#include "graph/verify/verify_priv.h"

#include "graph/module.h"
#include "graph/module/regions.h"
#include "graph/op/flow.h"
#include "graph/op/offload.h"

#include <string.h>

#define FIELD(T, info, attrs) (*(T const *)((const char *)(attrs) + (info)->offset))

/* --- subgraphs --- */

/* The results of @region from number @from on are those of the node. */
static bool
check_region_results(KilnVerify *verify, const KilnFunction *region, uint32_t from)
{
    const KilnNode *node = verify->node, *last = kiln_function_return(region);
    uint32_t expected = from + node->n_results;
    if (!last)
        return kiln_verify_throw(verify, "subgraph @%s does not return", region->name);
    if (last->n_operands != expected)
        return kiln_verify_throw(verify, "subgraph @%s: expected %u results, found %u",
                                 region->name, expected, last->n_operands);
    for (uint32_t i = 0; i < node->n_results; i++) {
        const KilnValue *inner = last->operands[from + i].value;
        const KilnType *outer = &node->results[i].type;
        if (inner && inner->type.dtype != outer->dtype)
            return kiln_verify_throw(verify, "subgraph @%s, result %u: expected %s, found %s",
                                     region->name, from + i, kiln_dtype_name(outer->dtype),
                                     kiln_dtype_name(inner->type.dtype));
    }
    return true;
}

static bool
check_region_arguments(KilnVerify *verify, const KilnFunction *region, uint32_t expected)
{
    if (region->arguments->len != expected)
        return kiln_verify_throw(verify, "subgraph @%s: expected %u arguments, found %u",
                                 region->name, expected, region->arguments->len);
    return true;
}

/* Results are counted behind arguments. */
static bool
same_types(KilnVerify *verify, const KilnFunction *region, uint32_t i, const KilnType *outer,
           const KilnType *inner)
{
    if (kiln_type_equal(outer, inner))
        return true;
    const uint32_t n = verify->node->n_operands;
    g_autofree char *expected = kiln_type_to_string(outer);
    g_autofree char *found = kiln_type_to_string(inner);
    return kiln_verify_throw(verify, "subgraph @%s, %s %u: expected %s, found %s", region->name,
                             i < n ? "argument" : "result", i < n ? i : i - n, expected, found);
}

/* The body of a region that is computed as a whole has the types of what goes in and comes out: it
 * may take the region's place. */
static bool
check_region_types(KilnVerify *verify, const KilnFunction *region)
{
    const KilnNode *node = verify->node, *last = kiln_function_return(region);
    for (uint32_t i = 0; i < region->arguments->len; i++) {
        const KilnValue *outer = node->operands[i].value;
        if (outer && !same_types(verify, region, i, &outer->type,
                                 &kiln_function_argument(region, i)->value.type))
            return false;
    }
    for (uint32_t i = 0; i < node->n_results; i++) {
        const KilnValue *inner = last->operands[i].value;
        if (inner &&
            !same_types(verify, region, node->n_operands + i, &node->results[i].type, &inner->type))
            return false;
    }
    return true;
}

/* `loop` passes its counter, the condition and what it carries; its body returns the condition
 * first. A bare block sees its operands around it, or takes each as an argument. */
static bool
check_signature(KilnVerify *verify, const KilnFunction *region)
{
    const KilnNode *node = verify->node;
    switch (node->op) {
    case KILN_OP_if:
        return check_region_arguments(verify, region, 0) && check_region_results(verify, region, 0);
    case KILN_OP_loop:
        return check_region_arguments(verify, region, node->n_operands) &&
               check_region_results(verify, region, 1);
    case KILN_OP_scan:
        return check_region_arguments(verify, region, node->n_operands) &&
               check_region_results(verify, region, 0);
    default:
        return (region->arguments->len == 0 ||
                check_region_arguments(verify, region, node->n_operands)) &&
               check_region_results(verify, region, 0) &&
               (node->op != KILN_OP_vendor_graph || check_region_types(verify, region));
    }
}

static bool
is_declared_body(const KilnModule *module, const KilnFunction *function)
{
    for (guint i = 0; i < module->declarations->len; i++) {
        if (((KilnDeclaration *)g_ptr_array_index(module->declarations, i))->body == function)
            return true;
    }
    return false;
}

/* It is a step of a region, and sees what it is given: its kernels are compiled apart. */
static bool
check_custom(KilnVerify *verify, const KilnFunction *body)
{
    const KilnFunction *around = verify->node->function;
    bool inside = around->owner ? around->owner->op == KILN_OP_vendor_graph
                                : is_declared_body(verify->module, around);
    if (!inside)
        return kiln_verify_throw(verify, "expected a region of a vendor around it");
    for (uint32_t i = 0; i < verify->node->n_operands; i++) {
        if (!verify->node->operands[i].value)
            return kiln_verify_throw(verify, "operand %u is missing", i);
    }
    if (!check_region_arguments(verify, body, verify->node->n_operands))
        return false;
    kiln_foreach_node (inner, body) {
        for (uint32_t i = 0; i < inner->n_operands; i++) {
            const KilnValue *value = inner->operands[i].value;
            if (value && kiln_function_find_value(body, value->name) != value)
                return kiln_verify_throw(verify, "its body reads %s, which is around it",
                                         value->name);
        }
    }
    return true;
}

static bool
check_region(KilnVerify *verify, const KilnAttrInfo *info)
{
    const KilnFunction *region = FIELD(KilnC_FUNCTION, info, verify->node->attrs);
    if (!region)
        return kiln_verify_throw(verify, "subgraph %s is missing", info->name);
    if (region->owner != verify->node)
        return kiln_verify_throw(verify, "subgraph @%s belongs to another node", region->name);
    return check_signature(verify, region) &&
           (verify->node->op != KILN_OP_custom_op || check_custom(verify, region));
}

/* --- callees --- */

static bool
check_types(KilnVerify *verify, const KilnDeclaration *declaration, bool results)
{
    const KilnNode *node = verify->node;
    uint32_t n = results ? node->n_results : node->n_operands;
    uint32_t expected = results ? declaration->n_results : declaration->n_operands;
    const KilnType *types = results ? declaration->results : declaration->operands;
    const char *what = results ? "result" : "operand";
    if (n != expected)
        return kiln_verify_throw(verify, "@%s is declared with %u %ss, found %u", declaration->name,
                                 expected, what, n);
    for (uint32_t i = 0; i < n; i++) {
        const KilnValue *value = results ? &node->results[i] : node->operands[i].value;
        if (value && kiln_type_equal(&value->type, &types[i]))
            continue;
        g_autofree char *found = value ? kiln_type_to_string(&value->type) : g_strdup("none");
        g_autofree char *wanted = kiln_type_to_string(&types[i]);
        return kiln_verify_throw(verify, "%s %u: expected %s as @%s is declared, found %s", what, i,
                                 wanted, declaration->name, found);
    }
    return true;
}

static bool
check_callee(KilnVerify *verify, const char *callee)
{
    if (!callee)
        return kiln_verify_throw(verify, "the name of what it calls is missing");
    if (verify->node->op != KILN_OP_vendor_executable)
        return true;
    const KilnDeclaration *declaration = kiln_module_find_declaration(verify->module, callee);
    if (declaration)
        return check_types(verify, declaration, false) && check_types(verify, declaration, true);
    return kiln_verify_throw(verify, "@%s is not declared", callee);
}

/* --- attributes --- */

static bool
check_constant(KilnVerify *verify, const KilnAttrInfo *info)
{
    const KilnConstant *constant = FIELD(KilnC_CONSTANT, info, verify->node->attrs);
    const GPtrArray *constants = verify->module->constants;
    if (!constant)
        return verify->node->op != KILN_OP_const ||
               kiln_verify_throw(verify, "the constant is missing");
    if (constant->module != verify->module || constant->id >= constants->len ||
        g_ptr_array_index(constants, constant->id) != constant)
        return kiln_verify_throw(verify, "%s is no constant of the module", info->name);
    return true;
}

static bool
check_list(KilnVerify *verify, const KilnAttrInfo *info, uint32_t n, const void *v)
{
    return n == 0 || v || kiln_verify_throw(verify, "%s is a list without elements", info->name);
}

static bool
check_attr(KilnVerify *verify, const KilnAttrInfo *info)
{
    const void *attrs = verify->node->attrs;
    switch (info->kind) {
    case KILN_ATTR_INTS: {
        KilnInts list = FIELD(KilnInts, info, attrs);
        return check_list(verify, info, list.n, list.v);
    }
    case KILN_ATTR_FLOATS: {
        KilnFloats list = FIELD(KilnFloats, info, attrs);
        return check_list(verify, info, list.n, list.v);
    }
    case KILN_ATTR_STRINGS: {
        KilnStrings list = FIELD(KilnStrings, info, attrs);
        return check_list(verify, info, list.n, list.v);
    }
    case KILN_ATTR_DTYPE:
        return (unsigned)FIELD(KilnC_DTYPE, info, attrs) < KILN_N_DTYPES ||
               kiln_verify_throw(verify, "%s is no element type", info->name);
    case KILN_ATTR_CONSTANT:
        return check_constant(verify, info);
    case KILN_ATTR_FUNCTION:
        return check_region(verify, info);
    case KILN_ATTR_STRING:
        return strcmp(info->name, KILN_ATTR_CALLEE) != 0 ||
               check_callee(verify, FIELD(KilnC_STRING, info, attrs));
    default:
        return true;
    }
}

bool
kiln_verify_attrs(KilnVerify *verify)
{
    const KilnOpInfo *info = kiln_op_info(verify->node->op);
    if (info->n_attrs && !verify->node->attrs)
        return kiln_verify_throw(verify, "the attributes are missing");
    for (uint32_t i = 0; i < info->n_attrs; i++) {
        if (!check_attr(verify, &info->attrs[i]))
            return false;
    }
    return kiln_verify_flow(verify);
}
