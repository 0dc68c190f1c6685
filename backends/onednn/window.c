/* SPDX-License-Identifier: Apache-2.0 */
/* What takes time in a region by the layout that it computes in: of nodes, which the partitioner
 * weighs, and of instructions, for which the compiler chooses. */
#include "backends/onednn/cost.h"
#include "backends/onednn/region.h"
#include "graph/op/concat.h"
#include "graph/op/conv.h"
#include "graph/op/offload.h"
#include "graph/op/pool.h"

/* Nodes and instructions call kinds and attributes the same. KIND and ATTRS say of which @kind and
 * its attributes are. */
#define FIND_WINDOW(kind_, KIND, ATTRS)                                                            \
    *out = (Window){ .group = 1 };                                                                 \
    switch (kind_) {                                                                               \
    case KIND(conv):                                                                               \
        out->group = ATTRS(conv)->group;                                                           \
        break;                                                                                     \
    case KIND(conv_transpose):                                                                     \
        out->group = ATTRS(conv_transpose)->group;                                                 \
        out->kind = WINDOW_TRANSPOSED;                                                             \
        break;                                                                                     \
    case KIND(average_pool):                                                                       \
        out->kernel = ATTRS(average_pool)->kernel_shape;                                           \
        out->kind = WINDOW_POOL;                                                                   \
        break;                                                                                     \
    case KIND(max_pool):                                                                           \
        out->kernel = ATTRS(max_pool)->kernel_shape;                                               \
        out->kind = WINDOW_POOL;                                                                   \
        break;                                                                                     \
    case KIND(global_average_pool):                                                                \
    case KIND(global_max_pool):                                                                    \
        out->kind = WINDOW_GLOBAL_POOL;                                                            \
        break;                                                                                     \
    default:                                                                                       \
        return false;                                                                              \
    }

bool
kiln_onednn_window_of_node(const KilnNode *node, Window *out)
{
#define KIND(id) KILN_OP_##id
#define ATTRS(id) kiln_attrs(node, id)
    FIND_WINDOW(node->op, KIND, ATTRS)
#undef KIND
#undef ATTRS
    out->x = &node->operands[0].value->type;
    out->y = &node->results[0].type;
    if (out->kind <= WINDOW_TRANSPOSED)
        out->w = &node->operands[1].value->type;
    out->bias = out->kind == WINDOW_TRANSPOSED && kiln_node_operand(node, 2);
    return true;
}

static bool
window_of_instr(const KilnInstr *instr, Window *out)
{
#define KIND(id) KILN_INSTR_##id
#define ATTRS(id) kiln_instr_attrs(instr, id)
    FIND_WINDOW(instr->kind, KIND, ATTRS)
#undef KIND
#undef ATTRS
    out->y = &instr->operands[0].buffer->type;
    out->x = &instr->operands[1].buffer->type;
    if (out->kind <= WINDOW_TRANSPOSED)
        out->w = &instr->operands[2].buffer->type;
    out->bias = out->kind == WINDOW_TRANSPOSED && kiln_instr_operand(instr, 3);
    return true;
}

/* Of what works on @type as it lies: pictures have channels, rows columns. */
static KilnOnednnWork
value_work(const KilnType *type)
{
    int channel = type->rank >= 3 ? 1 : type->rank - 1;
    int64_t channels = type->rank > 0 ? type->dims[channel] : 1;
    return (KilnOnednnWork){ .out = channels,
                             .written = channels ? kiln_type_elements(type) / channels : 0,
                             .block = kiln_onednn_block() };
}

double
kiln_onednn_pass_us(const KilnType *type, Layout layout)
{
    KilnOnednnWork work = value_work(type);
    return kiln_onednn_cost(KILN_ONEDNN_COST_pass, &work, layout == LAYOUT_BLOCKED);
}

double
kiln_onednn_tail_us(const KilnType *type, int64_t operations, bool binary, Layout layout)
{
    KilnOnednnWork work = value_work(type);
    work.taps = binary ? 0 : operations;
    work.groups = binary;
    return kiln_onednn_cost(KILN_ONEDNN_COST_tail, &work, layout == LAYOUT_BLOCKED);
}

static KilnOnednnCostKind
kind_of(const Window *window, const KilnOnednnWork *work)
{
    switch (window->kind) {
    case WINDOW_TRANSPOSED:
        return KILN_ONEDNN_COST_transposed;
    case WINDOW_POOL:
        return KILN_ONEDNN_COST_pool;
    case WINDOW_GLOBAL_POOL:
        return KILN_ONEDNN_COST_global_pool;
    default:
        if (window->group > 1 && window->group == work->in)
            return KILN_ONEDNN_COST_depthwise;
        return work->taps == 1 ? KILN_ONEDNN_COST_pointwise : KILN_ONEDNN_COST_window;
    }
}

/* What is measured alone finds its weights in a cache. In a network big ones come from memory, and
 * the kernels of windows wait for them, other than own kernels, which read theirs one after the
 * other: the last stage of a ResNet-18, 33 MB of them, took 2.3 ms longer than its operators by
 * themselves. */
static double
far_weights_us(const KilnOnednnWork *work, const KilnType *weights)
{
    enum {
        NEAR_BYTES = 2 << 20 /* the costs are fitted to windows whose weights are bigger */
    };
    bool far = kiln_type_bytes(weights) > NEAR_BYTES;
    return far ? kiln_onednn_cost(KILN_ONEDNN_COST_far_weights, work, false) / (double)work->groups
               : 0;
}

static double
window_us(const Window *window, Layout layout)
{
    const KilnType *x = window->x, *y = window->y;
    bool blocked = layout == LAYOUT_BLOCKED;
    KilnOnednnWork work = { .in = x->dims[1],
                            .out = y->dims[1],
                            .groups = window->group,
                            .taps = 1,
                            .read = x->dims[0],
                            .written = y->dims[0],
                            .block = kiln_onednn_block() };
    for (int i = 2; i < y->rank; i++) {
        work.taps *= window->w                            ? window->w->dims[i]
                     : window->kind == WINDOW_GLOBAL_POOL ? x->dims[i]
                                                          : window->kernel.v[i - 2];
        work.read *= x->dims[i];
        work.written *= y->dims[i];
    }
    double us = 0;
    if (window->kind == WINDOW_TRANSPOSED) {
        int64_t read = work.read;
        work.read = work.written;
        work.written = read;
        us = window->bias ? kiln_onednn_pass_us(y, layout) : 0;
    }
    KilnOnednnCostKind kind = kind_of(window, &work);
    if (kind == KILN_ONEDNN_COST_window)
        us = far_weights_us(&work, window->w);
    return us + kiln_onednn_cost(kind, &work, blocked);
}

double
kiln_onednn_reorder_us(const KilnType *type, Layout layout)
{
    if (type->rank < 3 || kiln_type_elements(type) == 0)
        return 0;
    KilnOnednnWork work = { .in = type->dims[1],
                            .read = type->dims[0],
                            .block = kiln_onednn_block() };
    for (int i = 2; i < type->rank; i++)
        work.read *= type->dims[i];
    return kiln_onednn_cost(KILN_ONEDNN_COST_reorder, &work, layout == LAYOUT_BLOCKED);
}

/* Parts of whole blocks are computed where they will lie; what is none is brought out of blocks, to
 * be joined channels-last. */
static double
concat_us(const KilnType *y, bool whole_blocks, Layout layout)
{
    bool blocked = layout == LAYOUT_BLOCKED;
    if (blocked && y->dims[0] == 1 && whole_blocks)
        return 0;
    double parts = blocked && !whole_blocks ? kiln_onednn_reorder_us(y, layout) : 0;
    KilnOnednnWork work = value_work(y);
    return parts + kiln_onednn_cost(KILN_ONEDNN_COST_concat, &work, blocked && whole_blocks);
}

/* Own kernels take the same in every layout that they can work on; else there are reorders. */
static double
custom_us(const KilnNode *node, Layout layout)
{
    g_autoptr(GHashTable) laid = kiln_onednn_custom_laid(kiln_attrs(node, custom_op)->body, layout);
    double us = 0;
    for (uint32_t i = 0; !laid && i < node->n_operands; i++)
        us += kiln_onednn_reorder_us(&node->operands[i].value->type, layout);
    for (uint32_t r = 0; !laid && r < node->n_results; r++)
        us += kiln_onednn_reorder_us(&node->results[r].type, layout);
    return us;
}

double
kiln_onednn_node_us(const KilnNode *node, Layout layout)
{
    Window window;
    if (node->op == KILN_OP_custom_op)
        return custom_us(node, layout);
    if (kiln_onednn_window_of_node(node, &window))
        return window_us(&window, layout);
    if (node->op != KILN_OP_concat)
        return 0;
    bool whole = true;
    for (uint32_t i = 0; i < node->n_operands; i++)
        whole &= node->operands[i].value->type.dims[1] % kiln_onednn_block() == 0;
    return concat_us(&node->results[0].type, whole, layout);
}

double
kiln_onednn_layout_us(const KilnFunction *body, uint32_t layout)
{
    double us = 0;
    kiln_foreach_node (node, body)
        us += kiln_onednn_node_us(node, kiln_onednn_layout_at(layout));
    return us;
}

/* --- of a lowered region, with its edges --- */

/* By buffer id: what is given and what is asked for in the layout of the region. */
typedef struct {
    bool *laid, *wanted;
} Lowered;

static bool
has_layouts(const KilnType *type)
{
    return type->rank >= 3 && type->rank <= 5;
}

static bool
is_taken_so(const KilnType *type, const KilnInstr *instr, Layout layout)
{
    return instr->kind == KILN_INSTR_conv && layout == LAYOUT_BLOCKED &&
           type->dims[1] <= FEW_CHANNELS;
}

/* Own kernels: as their operands lie, if they can. */
static double
visit_custom(const Lowered *lowered, const KilnInstr *call, Layout layout)
{
    const KilnFunction *body = call->declaration->body;
    const KilnNode *results = kiln_function_return(body);
    g_autoptr(GHashTable) inner = kiln_onednn_custom_laid(body, layout);
    bool any = false;
    double us = 0;
    for (uint32_t i = 0; i < call->n_operands; i++)
        any |= lowered->laid[call->operands[i].buffer->id];
    for (uint32_t i = 0; any && i < call->n_operands; i++) {
        const KilnBuffer *buffer = call->operands[i].buffer;
        uint32_t n_out = results->n_operands;
        const KilnValue *value = i < n_out ? results->operands[i].value
                                           : &kiln_function_argument(body, i - n_out)->value;
        bool in_layout = inner && g_hash_table_contains(inner, value);
        lowered->laid[buffer->id] |= i < n_out && in_layout;
        lowered->wanted[buffer->id] |= i >= n_out && in_layout;
        if (!inner && has_layouts(&buffer->type))
            us += kiln_onednn_reorder_us(&buffer->type, layout);
    }
    return us;
}

/* Notes what @instr wants and gives; what it takes beside reorders. */
static double
visit(const Lowered *lowered, const KilnInstr *instr, Layout layout)
{
    Window window;
    const KilnBuffer *y = kiln_instr_operand(instr, 0);
    if (window_of_instr(instr, &window)) {
        const KilnBuffer *x = kiln_instr_operand(instr, 1);
        lowered->laid[y->id] = has_layouts(&y->type);
        lowered->wanted[x->id] |= has_layouts(&x->type) && !is_taken_so(&x->type, instr, layout);
        return window_us(&window, layout);
    }
    if (instr->kind == KILN_INSTR_call)
        return visit_custom(lowered, instr, layout);
    bool concat = instr->kind == KILN_INSTR_concat, whole = true, any = concat;
    PostOp op;
    if (!concat && !kiln_onednn_elementwise(instr, &op))
        return 0;
    for (uint32_t i = 1; i < instr->n_operands; i++) {
        const KilnBuffer *operand = kiln_instr_operand(instr, i);
        any |=
            operand && lowered->laid[operand->id] && kiln_type_same_shape(&operand->type, &y->type);
        whole &= !concat || operand->type.dims[1] % kiln_onednn_block() == 0;
    }
    bool laid = any && has_layouts(&y->type) && (!concat || whole || layout != LAYOUT_BLOCKED);
    for (uint32_t i = 1; laid && i < instr->n_operands; i++) {
        const KilnBuffer *operand = kiln_instr_operand(instr, i);
        if (operand && (concat || kiln_type_same_shape(&operand->type, &y->type)))
            lowered->wanted[operand->id] = true;
    }
    lowered->laid[y->id] = laid;
    return concat && has_layouts(&y->type) ? concat_us(&y->type, whole, layout) : 0;
}

double
kiln_onednn_region_us(const KilnIRFunction *function, const bool *constant, Layout layout)
{
    g_autofree bool *laid = g_new0(bool, function->buffers->len + 1);
    g_autofree bool *wanted = g_new0(bool, function->buffers->len + 1);
    const Lowered lowered = { laid, wanted };
    double us = 0;
    kiln_foreach_instr (instr, function)
        us += visit(&lowered, instr, layout);
    for (guint i = 0; i < function->inputs->len; i++) {
        const KilnBuffer *input = g_ptr_array_index(function->inputs, i);
        if (wanted[input->id] && !constant[i])
            us += kiln_onednn_reorder_us(&input->type, layout);
    }
    for (guint i = 0; i < function->outputs->len; i++) {
        const KilnBuffer *output = g_ptr_array_index(function->outputs, i);
        if (laid[output->id])
            us += kiln_onednn_reorder_us(&output->type, layout);
    }
    return us;
}
