/* SPDX-License-Identifier: Apache-2.0 */
/* The graph level as an ONNX file: one graph, constants as initializers in front of the nodes,
 * names as they are. */
#include "graph/op/generate.h"
#include "graph/onnx/export.h"

#include "graph/grow/reserve.h"
#include "graph/kiln-version.h"
#include "graph/module/decompose.h"
#include "graph/node.h"
#include "graph/onnx/fields.h"
#include "graph/onnx/onnx.h"
#include "graph/onnx/wire.h"
#include "graph/op/qproduct.h"
#include "graph/plugin/plugin.h"

gboolean
kiln_onnx_throw_export(const KilnNode *node, const char *why, GError **error)
{
    return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "%s (%s): %s", kiln_node_label(node),
                      kiln_op_info(node->op)->name, why);
}

gboolean
kiln_onnx_append(GByteArray *out, uint32_t field, const GByteArray *message, GError **error)
{
    if ((uint64_t)out->len + message->len + 16 > G_MAXINT32)
        return kiln_throw(error, KILN_ERROR_LIMIT,
                          "the model is bigger than 2 GiB, the most that an ONNX file can hold");
    kiln_wire_put_message(out, field, message);
    return kiln_reserve_check_lost(error);
}

static const char *
name_of(const KilnOnnxExport *export_, const KilnValue *value)
{
    return g_hash_table_lookup(export_->names, value);
}

/* --- types --- */

static void
put_dim(const KilnType *type, int d, GByteArray *shape)
{
    g_autoptr(GByteArray) dim = g_byte_array_new();
    if (type->dims[d] >= 0) {
        kiln_wire_put_varint(dim, DIM_VALUE, (uint64_t)type->dims[d]);
    } else if (type->open[d]) {
        g_autofree char *text = kiln_dim_as_name(type->open[d])
                                    ? g_strdup(kiln_dim_as_name(type->open[d]))
                                    : kiln_dim_to_string(type->open[d]);
        kiln_wire_put_text(dim, DIM_PARAM, text);
    }
    kiln_wire_put_message(shape, SHAPE_DIM, dim);
}

static void
put_tensor(const KilnType *type, GByteArray *out)
{
    g_autoptr(GByteArray) tensor = g_byte_array_new();
    g_autoptr(GByteArray) shape = g_byte_array_new();
    for (int d = 0; d < type->rank; d++)
        put_dim(type, d, shape);
    kiln_wire_put_varint(tensor, TYPE_TENSOR_ELEM_TYPE, (uint64_t)kiln_dtype_to_onnx(type->dtype));
    if (type->rank >= 0)
        kiln_wire_put_message(tensor, TYPE_TENSOR_SHAPE, shape);
    kiln_wire_put_message(out, TYPE_TENSOR, tensor);
}

void
kiln_onnx_put_type(const KilnType *type, GByteArray *out)
{
    if (!type->contents) {
        put_tensor(type, out);
        return;
    }
    const bool map = type->dtype == KILN_DTYPE_map;
    g_autoptr(GByteArray) message = g_byte_array_new();
    g_autoptr(GByteArray) inner = g_byte_array_new();
    kiln_onnx_put_type(&type->contents->type, inner);
    if (map)
        kiln_wire_put_varint(message, TYPE_MAP_KEY_TYPE,
                             (uint64_t)kiln_dtype_to_onnx(type->contents->key));
    kiln_wire_put_message(message, map ? TYPE_MAP_VALUE_TYPE : TYPE_ELEM_TYPE, inner);
    kiln_wire_put_message(out,
                          map                                  ? TYPE_MAP
                          : type->dtype == KILN_DTYPE_sequence ? TYPE_SEQUENCE
                                                               : TYPE_OPTIONAL,
                          message);
}

static gboolean
write_value(const char *name, const KilnType *type, GByteArray *out, uint32_t field, GError **error)
{
    if (type->layout || type->quant) {
        g_autofree char *text = kiln_type_to_string(type);
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "%s: ONNX has no type %s", name, text);
    }
    g_autoptr(GByteArray) info = g_byte_array_new();
    g_autoptr(GByteArray) outer = g_byte_array_new();
    kiln_onnx_put_type(type, outer);
    kiln_wire_put_text(info, VALUE_NAME, name);
    kiln_wire_put_message(info, VALUE_TYPE, outer);
    return kiln_onnx_append(out, field, info, error);
}

/* --- nodes --- */

/* Constants are initializers, but for those that are results: these are Constant nodes. */
static bool
is_initializer(const KilnNode *node)
{
    return node->op == KILN_OP_const && !kiln_value_is_returned(&node->results[0]);
}

static gboolean
write_initializer(const KilnOnnxExport *export_, const KilnNode *node, GByteArray *out,
                  GError **error)
{
    const KilnConstant *constant = kiln_attrs(node, const)->value;
    const KilnType *type = &node->results[0].type;
    g_autoptr(GByteArray) tensor = g_byte_array_new();
    if (type->layout || type->quant)
        return kiln_onnx_throw_export(node, "ONNX has no such type", error);
    if (!kiln_onnx_tensor_write(constant->tensor, name_of(export_, &node->results[0]), tensor,
                                error)) {
        kiln_prefix_error(error, "%s: ", kiln_node_label(node));
        return FALSE;
    }
    return kiln_onnx_append(out, GRAPH_INITIALIZER, tensor, error);
}

/* ONNX itself has no products with weights of few bits: ONNX Runtime does. Only those are left that
 * kiln_onnx_state_nbits() cannot say with other operators. */
static gboolean
write_contrib(KilnOnnxExport *export_, GByteArray *message, GError **error)
{
    static const char domain[] = "com.microsoft";
    kiln_wire_put_text(message, NODE_DOMAIN, domain);
    return kiln_onnx_note_domain(export_, &(KilnOpset){ domain, 1 }, error);
}

/* Operand 4 of MatMulNBits has groups, which graph/ops lacks: there the bias follows. */
static void
write_inputs(const KilnOnnxExport *export_, const KilnNode *node, GByteArray *message)
{
    uint32_t n = node->n_operands;
    bool counted = kiln_op_has(node->op, KILN_TRAIT_REGION); /* by the arguments of its body */
    while (!counted && n && !node->operands[n - 1].value)
        n--;
    for (uint32_t i = 0; i < n; i++) {
        const KilnValue *value = node->operands[i].value;
        if (node->op == KILN_OP_matmul_nbits && i == 4)
            kiln_wire_put_text(message, NODE_INPUT, "");
        kiln_wire_put_text(message, NODE_INPUT, value ? name_of(export_, value) : "");
    }
}

static gboolean
write_node(KilnOnnxExport *export_, const KilnNode *node, GByteArray *out, GError **error)
{
    const KilnOpInfo *info = kiln_op_info(node->op);
    const bool is_plugin = kiln_node_is_plugin(node);
    if (!*info->onnx && !is_plugin)
        return kiln_onnx_throw_export(node, "no operator of ONNX", error);
    g_autoptr(GByteArray) message = g_byte_array_new();
    write_inputs(export_, node, message);
    for (uint32_t i = 0; i < node->n_results; i++)
        kiln_wire_put_text(message, NODE_OUTPUT, name_of(export_, &node->results[i]));
    if (node->name)
        kiln_wire_put_text(message, NODE_NAME, node->name);
    if (!is_plugin)
        kiln_wire_put_text(message, NODE_OP_TYPE, info->onnx);
    if (node->op == KILN_OP_matmul_nbits && !write_contrib(export_, message, error))
        return FALSE;
    if (!(is_plugin ? kiln_onnx_write_plugin(export_, node, message, error)
                    : kiln_onnx_write_attrs(export_, node, message, error))) {
        kiln_prefix_error(error, "%s: ", kiln_node_label(node));
        return FALSE;
    }
    return kiln_onnx_append(out, GRAPH_NODE, message, error);
}

static gboolean
write_value_infos(const KilnOnnxExport *export_, const KilnNode *node, GByteArray *out,
                  GError **error)
{
    for (uint32_t i = 0; i < node->n_results; i++) {
        const KilnValue *value = &node->results[i];
        if (!kiln_value_is_returned(value) &&
            !write_value(name_of(export_, value), &value->type, out, GRAPH_VALUE_INFO, error))
            return FALSE;
    }
    return TRUE;
}

/* --- names ---
 *
 * ONNX has one namespace for values, inputs and outputs, and knows a result by its value's name. So
 * arguments keep their names, and a value that is a result takes the result's name; what has that
 * name otherwise, here or in a subgraph, is called something else. What is no value of this graph,
 * or called so twice, is carried by an Identity. */

static bool
is_visible(const KilnFunction *function, const char *name)
{
    for (; function; function = function->owner ? function->owner->function : NULL) {
        if (kiln_function_find_value(function, name))
            return true;
    }
    return false;
}

/* @wanted, or a name like it that nothing has which can be seen here. */
static char *
claim(KilnOnnxExport *export_, const KilnFunction *function, const char *wanted)
{
    char *name = g_strdup(wanted);
    for (unsigned number = 1;
         g_hash_table_contains(export_->used, name) || (number > 1 && is_visible(function, name));
         number++) {
        g_free(name);
        name = g_strdup_printf("%s_%u", wanted, number);
    }
    g_hash_table_add(export_->used, name);
    return name;
}

static void
claim_value(KilnOnnxExport *export_, const KilnFunction *function, const KilnValue *value,
            const char *wanted)
{
    if (!g_hash_table_contains(export_->names, value))
        g_hash_table_insert(export_->names, (gpointer)value, claim(export_, function, wanted));
}

/* Names for all that @function defines; of the results that an Identity carries in @carried. */
static void
claim_names(KilnOnnxExport *export_, const KilnFunction *function, const KilnNode *end,
            char **carried)
{
    for (guint i = 0; i < function->arguments->len; i++) {
        const KilnValue *value = &kiln_function_argument(function, i)->value;
        claim_value(export_, function, value, value->name);
    }
    for (uint32_t i = 0; i < end->n_operands; i++) {
        const KilnValue *value = kiln_node_operand(end, i);
        const char *name = g_ptr_array_index(function->result_names, i);
        bool here = value->def && value->def->function == function;
        if (here && !g_hash_table_contains(export_->names, value))
            claim_value(export_, function, value, name);
        else
            carried[i] = claim(export_, function, name);
    }
    kiln_foreach_node (node, function) {
        for (uint32_t i = 0; i < node->n_results; i++)
            claim_value(export_, function, &node->results[i], node->results[i].name);
    }
}

/* What @function defines is seen no more. */
static void
release_names(KilnOnnxExport *export_, const KilnFunction *function, const KilnNode *end,
              char **carried)
{
    for (guint i = 0; i < function->arguments->len; i++)
        g_hash_table_remove(export_->used,
                            name_of(export_, &kiln_function_argument(function, i)->value));
    kiln_foreach_node (node, function) {
        for (uint32_t i = 0; i < node->n_results; i++)
            g_hash_table_remove(export_->used, name_of(export_, &node->results[i]));
    }
    for (uint32_t i = 0; i < end->n_operands; i++) {
        if (carried[i])
            g_hash_table_remove(export_->used, carried[i]);
        g_free(carried[i]);
    }
}

/* --- results --- */

static gboolean
write_identity(const char *from, const char *to, GByteArray *out, GError **error)
{
    g_autoptr(GByteArray) message = g_byte_array_new();
    kiln_wire_put_text(message, NODE_INPUT, from);
    kiln_wire_put_text(message, NODE_OUTPUT, to);
    kiln_wire_put_text(message, NODE_OP_TYPE, "Identity");
    return kiln_onnx_append(out, GRAPH_NODE, message, error);
}

static gboolean
write_results(const KilnOnnxExport *export_, const KilnNode *end, char *const *carried,
              GByteArray *out, GError **error)
{
    for (uint32_t i = 0; i < end->n_operands; i++) {
        const KilnValue *value = kiln_node_operand(end, i);
        const char *name = carried[i] ? carried[i] : name_of(export_, value);
        if (carried[i] && !write_identity(name_of(export_, value), name, out, error))
            return FALSE;
        if (!write_value(name, &value->type, out, GRAPH_OUTPUT, error))
            return FALSE;
    }
    return TRUE;
}

/* --- graphs --- */

static gboolean
write_arguments(const KilnOnnxExport *export_, const KilnFunction *function, GByteArray *out,
                GError **error)
{
    for (guint i = 0; i < function->arguments->len; i++) {
        const KilnArgument *argument = kiln_function_argument(function, i);
        if (argument->variable)
            return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                              "%s: ONNX has no variables that keep their value",
                              argument->value.name);
        if (!write_value(name_of(export_, &argument->value), &argument->value.type, out,
                         GRAPH_INPUT, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
write_named(KilnOnnxExport *export_, const KilnFunction *function, const KilnNode *end,
            char *const *carried, GByteArray *out, GError **error)
{
    kiln_wire_put_text(out, GRAPH_NAME, function->name);
    if (!write_arguments(export_, function, out, error))
        return FALSE;
    kiln_foreach_node (node, function) {
        if (is_initializer(node) && !write_initializer(export_, node, out, error))
            return FALSE;
    }
    kiln_foreach_node (node, function) {
        if (node != end && !is_initializer(node) &&
            (!write_node(export_, node, out, error) ||
             !write_value_infos(export_, node, out, error)))
            return FALSE;
    }
    return write_results(export_, end, carried, out, error);
}

gboolean
kiln_onnx_write_graph(KilnOnnxExport *export_, const KilnFunction *function, GByteArray *out,
                      GError **error)
{
    const KilnNode *end = kiln_function_return(function);
    if (!end)
        return kiln_throw(error, KILN_ERROR_INVALID, "@%s returns nothing", function->name);
    g_autofree char **carried = g_new0(char *, end->n_operands + 1);
    claim_names(export_, function, end, carried);
    gboolean good = write_named(export_, function, end, carried, out, error);
    release_names(export_, function, end, carried);
    return good;
}

/* --- operators that ONNX lacks --- */

static bool
has_decomposable(const KilnFunction *function)
{
    kiln_foreach_node (node, function) {
        if (kiln_node_decomposes(node) || node->op == KILN_OP_define)
            return true;
        kiln_foreach_region (region, node) {
            if (has_decomposable(region))
                return true;
        }
    }
    return false;
}

static gboolean
decompose_all(KilnFunction *function, GError **error)
{
    for (KilnNode *node = function->first, *next; node; node = next) {
        next = node->next;
        kiln_foreach_region (region, node) {
            if (!decompose_all(region, error))
                return FALSE;
        }
        if (node->op == KILN_OP_define) { /* ONNX needs no names for what data decides */
            kiln_value_replace(kiln_node_result(node, 0), kiln_node_operand(node, 0));
            kiln_node_remove(node);
            continue;
        }
        if (!kiln_node_decomposes(node))
            continue;
        GError *why = NULL;
        KilnValue *value = kiln_decompose(node, &why);
        if (why) {
            g_propagate_error(error, why);
            return FALSE;
        }
        if (!value || !kiln_type_equal(&value->type, &node->results[0].type))
            return kiln_onnx_throw_export(
                node, "no operator of ONNX, and shapes are not known to express it", error);
        kiln_value_replace(&node->results[0], value);
        kiln_node_remove(node);
    }
    return TRUE;
}

/* What it says of the model. Of the file, which is another now, Kiln is the producer. */
static gboolean
write_metadata(const KilnMetadata *metadata, GByteArray *out, GError **error)
{
    const struct {
        uint32_t field;
        const char *text;
    } texts[] = { { MODEL_PRODUCER_NAME, "kiln" },
                  { MODEL_PRODUCER_VERSION, KILN_VERSION },
                  { MODEL_DOMAIN, metadata->domain },
                  { MODEL_DOC_STRING, metadata->doc_string } };
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        if (*texts[i].text)
            kiln_wire_put_text(out, texts[i].field, texts[i].text);
    }
    if (metadata->model_version)
        kiln_wire_put_varint(out, MODEL_MODEL_VERSION, (uint64_t)metadata->model_version);
    for (unsigned i = 0; i < metadata->n_properties; i++) {
        g_autoptr(GByteArray) property = g_byte_array_new();
        kiln_wire_put_text(property, PROPERTY_KEY, metadata->properties[i].key);
        kiln_wire_put_text(property, PROPERTY_VALUE, metadata->properties[i].value);
        if (!kiln_onnx_append(out, MODEL_METADATA_PROPS, property, error))
            return FALSE;
    }
    return TRUE;
}

/* The IR version that came with @opset, or the first one with its element types. */
static unsigned
ir_version_of(int opset)
{
    if (opset < 18)
        return 8;
    return opset >= 28 ? 14 : opset >= 25 ? 13 : opset >= 24 ? 12 : opset == 23 ? 11 : 10;
}

static void
put_opset(const char *domain, int64_t version, GByteArray *out)
{
    g_autoptr(GByteArray) opset = g_byte_array_new();
    kiln_wire_put_text(opset, OPSET_DOMAIN, domain);
    kiln_wire_put_varint(opset, OPSET_VERSION, (uint64_t)version);
    kiln_wire_put_message(out, MODEL_OPSET_IMPORT, opset);
}

static gboolean
export_entry(const KilnFunction *entry, GByteArray *out, GError **error)
{
    KilnOnnxExport export_ = { .opset = kiln_onnx_export_opset(entry) };
    export_.names = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    export_.used = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GArray) domains = g_array_new(FALSE, FALSE, sizeof(KilnOpset));
    export_.domains = domains;
    g_autoptr(GByteArray) graph = g_byte_array_new();
    bool good = kiln_onnx_write_graph(&export_, entry, graph, error);
    g_hash_table_unref(export_.used);
    g_hash_table_unref(export_.names);
    if (!good)
        return FALSE;
    kiln_wire_put_varint(out, MODEL_IR_VERSION, ir_version_of(export_.opset));
    if (!write_metadata(&entry->module->metadata, out, error))
        return FALSE;
    put_opset("", export_.opset, out);
    for (guint i = 0; i < domains->len; i++) {
        const KilnOpset *opset = &g_array_index(domains, KilnOpset, i);
        put_opset(opset->domain, opset->version, out);
    }
    return kiln_onnx_append(out, MODEL_GRAPH, graph, error);
}

gboolean
kiln_onnx_export(const KilnModule *module, GByteArray *out, GError **error)
{
    const KilnFunction *entry = kiln_module_entry(module);
    if (!entry || module->functions->len != 1)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED,
                          "an ONNX file holds one function, the module has %u",
                          module->functions->len);
    const bool quantized = kiln_onnx_has_quantized(entry), packed = kiln_onnx_has_nbits(entry);
    if (!has_decomposable(entry) && !quantized && !packed)
        return export_entry(entry, out, error);
    g_autoptr(KilnModule) clone = kiln_module_clone(module);
    KilnFunction *copy = kiln_module_entry(clone);
    return (!quantized || kiln_onnx_state_quantization(copy, error)) &&
           (!packed || kiln_onnx_state_nbits(copy, error)) && decompose_all(copy, error) &&
           export_entry(copy, out, error);
}
