/* SPDX-License-Identifier: Apache-2.0 */
/* Random inputs. Index inputs are kept to what the function's gathers allow, found by following
 * their readers through operators that move or cast integers. */
#include "exec/random_input.h"

#include "exec/random_items.h"
#include "graph/base/alloc.h"
#include "graph/base/number.h"
#include "graph/base/random.h"
#include "graph/binding.h"
#include "graph/module.h"
#include "graph/module/folding.h"
#include "graph/op/cast.h"
#include "graph/op/concat.h"
#include "graph/op/expand.h"
#include "graph/op/gather.h"
#include "graph/op/items.h"
#include "graph/op/slice.h"
#include "graph/op/transpose.h"

#include <math.h>

enum {
    SMALL = 8,        /* integers that index nothing: [-8, 8) or [0, 8) */
    LEAST_LENGTH = 1, /* of sequences, unless they are empty */
    MAX_VISITS = 64   /* readers that are followed from one input */
};

/* --- the graph level --- */

/* Numbers that an index may be: @low … @high - 1. @high -1: nothing says. */
typedef struct {
    int64_t low, high;
} Span;

static void
narrow(Span *span, int64_t low, int64_t high)
{
    span->low = MAX(span->low, low);
    if (high >= 0)
        span->high = span->high < 0 ? high : MIN(span->high, high);
}

/* The number of @dim at @binding; -1 where nobody knows it. */
static int64_t
number_at(const KilnDim *dim, const KilnDimBinding *binding)
{
    int64_t number;
    return dim && binding &&
                   kiln_dim_evaluate(dim, kiln_dim_binding_lookup, (void *)binding, &number, NULL)
               ? number
               : -1;
}

static int64_t
dim_at(const KilnType *type, int d, const KilnDimBinding *binding)
{
    return type->dims[d] >= 0 ? type->dims[d] : number_at(type->open[d], binding);
}

static int64_t
extent(const KilnValue *value, int64_t axis, const KilnDimBinding *binding)
{
    int at = value ? kiln_type_axis(&value->type, axis) : -1;
    return at >= 0 ? dim_at(&value->type, at, binding) : -1;
}

static int64_t
least_extent(const KilnValue *data, const KilnDimBinding *binding)
{
    int64_t least = -1;
    for (int d = 0; data && d < data->type.rank; d++) {
        int64_t number = dim_at(&data->type, d, binding);
        if (number >= 0)
            least = least < 0 ? number : MIN(least, number);
    }
    return least;
}

/* The only element of @value. */
static int64_t
element(const KilnValue *value, const KilnDimBinding *binding)
{
    if (value && value->known && value->known->n == 1)
        return value->known->v[0];
    bool open = value && value->extents && value->extents->n == 1;
    return open ? number_at(value->extents->v[0], binding) : -1;
}

/* How many items a sequence has at least, unless it is empty. */
static int64_t
least_length(const KilnValue *sequence)
{
    const KilnNode *def = sequence ? sequence->def : NULL;
    if (sequence && !def)
        return KILN_RANDOM_MIN_ITEMS;
    return def && def->op == KILN_OP_sequence_construct ? (int64_t)def->n_operands : LEAST_LENGTH;
}

/* The least number that operand @i of @node may take. */
static int64_t
index_start(const KilnNode *node, uint32_t i)
{
    const KilnValue *value = kiln_node_operand(node, i);
    return node->op == KILN_OP_split_to_sequence && i == 1 && value->type.rank == 0 ? 1 : 0;
}

/* How many indices operand @i of @node may take; -1 where it is no index or the number is open. */
static int64_t
index_extent(const KilnNode *node, uint32_t i, const KilnDimBinding *binding)
{
    const KilnValue *data = kiln_node_operand(node, 0);
    switch (node->op) {
    case KILN_OP_gather:
        return i == 1 ? extent(data, kiln_attrs(node, gather)->axis, binding) : -1;
    case KILN_OP_gather_elements:
        return i == 1 ? extent(data, kiln_attrs(node, gather_elements)->axis, binding) : -1;
    case KILN_OP_scatter_elements:
        return i == 1 ? extent(data, kiln_attrs(node, scatter_elements)->axis, binding) : -1;
    case KILN_OP_gather_nd:
    case KILN_OP_scatter_nd:
        return i == 1 ? least_extent(data, binding) : -1;
    case KILN_OP_one_hot:
        return i == 0 ? element(kiln_node_operand(node, 1), binding) : -1;
    case KILN_OP_sequence_at:
    case KILN_OP_sequence_erase:
        return i == 1 ? least_length(data) : -1;
    case KILN_OP_sequence_insert:
        return i == 2 ? least_length(data) : -1;
    case KILN_OP_split_to_sequence:
        return index_start(node, i) > 0 ? 1 + SMALL : -1;
    default:
        return -1;
    }
}

static bool
passes_integers_on(const KilnNode *node)
{
    return kiln_op_has(node->op, KILN_TRAIT_VIEW) || node->op == KILN_OP_cast ||
           node->op == KILN_OP_transpose || node->op == KILN_OP_slice ||
           node->op == KILN_OP_concat || node->op == KILN_OP_split || node->op == KILN_OP_expand;
}

/* The indices that all that is reached from @value allows. */
static Span
reached_span(const KilnValue *value, const KilnDimBinding *binding)
{
    const KilnValue *work[MAX_VISITS];
    uint32_t n = 0;
    Span span = { 0, -1 };
    work[n++] = value;
    for (uint32_t i = 0; i < n; i++) {
        kiln_foreach_use (use, work[i]) {
            narrow(&span, index_start(use->user, use->index),
                   index_extent(use->user, use->index, binding));
            for (uint32_t r = 0; passes_integers_on(use->user) && r < use->user->n_results; r++) {
                if (n < MAX_VISITS)
                    work[n++] = &use->user->results[r];
            }
        }
    }
    return span;
}

/* "[0,4)" as the parser stores it. */
static bool
parse_range(const char *range, bool integer, KilnDomain *out)
{
    if (!range)
        return false;
    char *end;
    double low = g_ascii_strtod(range + 1, &end);
    if (*end != ',')
        return false;
    double high = g_ascii_strtod(end + 1, &end);
    if (integer && *range == '(')
        low = floor(low) + 1;
    if (*end == ']')
        high = integer ? floor(high) + 1 : nextafter(high, INFINITY);
    *out = (KilnDomain){ false, low, high };
    return true;
}

/* All that is stored of a quantized type, and of i32 what sums of bytes come to. */
static KilnDomain
stored_domain(KilnDType dtype)
{
    double values = dtype == KILN_DTYPE_i32 ? 0x1p16 : ldexp(1, 8 * (int)kiln_dtype_size(dtype));
    double low = kiln_dtype_is_signed(dtype) ? -values / 2 : 0;
    return (KilnDomain){ false, low, low + values };
}

static KilnDomain
default_domain(const KilnType *type, Span span)
{
    KilnDType dtype = type->dtype;
    if (type->quant)
        return stored_domain(dtype);
    if (dtype == KILN_DTYPE_f8e8m0) /* scales: powers of two above 0 */
        return (KilnDomain){ false, 0x1p-4, 0x1p4 };
    if (kiln_dtype_is_float(dtype))
        return (KilnDomain){ .normal = true };
    if (dtype == KILN_DTYPE_bool)
        return (KilnDomain){ false, 0, 2 };
    if (span.high > 0)
        return (KilnDomain){ false, (double)span.low, (double)MAX(span.high, span.low + 1) };
    return (KilnDomain){ false, kiln_dtype_is_signed(dtype) ? -SMALL : 0, SMALL };
}

KilnDomain
kiln_argument_domain(const KilnArgument *argument, const KilnDimBinding *binding)
{
    KilnDomain domain;
    KilnDType dtype = argument->value.type.dtype;
    if (parse_range(argument->range, !kiln_dtype_is_float(dtype), &domain))
        return domain;
    const Span any = { 0, -1 };
    return default_domain(&argument->value.type, kiln_dtype_is_integer(dtype)
                                                     ? reached_span(&argument->value, binding)
                                                     : any);
}

/* What arguments of @function that take value @number allow, too. */
static void
narrow_domain(KilnDomain *domain, const KilnFunction *function, const uint32_t *takes,
              uint32_t number, const KilnDimBinding *binding)
{
    for (guint k = 0; k < function->arguments->len; k++) {
        if (takes[k] != number)
            continue;
        KilnDomain also = kiln_argument_domain(kiln_function_argument(function, k), binding);
        if (!also.normal) {
            domain->low = MAX(domain->low, also.low);
            domain->high = MIN(domain->high, also.high);
        }
    }
}

KilnDomain
kiln_module_input_domain(const KilnModule *module, guint i, const KilnDimBinding *binding)
{
    const KilnFolding *folding = module->folding;
    KilnDomain domain =
        kiln_argument_domain(g_ptr_array_index(kiln_module_inputs(module), i), binding);
    if (!folding || domain.normal)
        return domain;
    const KilnArgument *argument = g_ptr_array_index(folding->signature, i);
    if (argument->range)
        return domain;
    domain = (KilnDomain){ false, -HUGE_VAL, HUGE_VAL };
    narrow_domain(&domain, kiln_module_entry(module), (uint32_t *)folding->entry->data, i, binding);
    for (guint f = 0; f < folding->folds->len; f++) {
        const KilnFold *fold = g_ptr_array_index(folding->folds, f);
        narrow_domain(&domain, kiln_module_find_function(module, fold->function), fold->operands, i,
                      binding);
    }
    return domain;
}

/* --- the IR level --- */

static int64_t
buffer_extent(const KilnBuffer *buffer, int64_t axis)
{
    int at = buffer ? kiln_type_axis(&buffer->type, axis) : -1;
    return at >= 0 ? buffer->type.dims[at] : -1;
}

static int64_t
instr_index_start(const KilnInstr *instr, uint32_t i)
{
    return instr->kind == KILN_INSTR_split_to_sequence && i == 2 &&
                   instr->operands[i].buffer->type.rank == 0
               ? 1
               : 0;
}

static int64_t
instr_index_extent(const KilnInstr *instr, uint32_t i)
{
    const KilnBuffer *data = kiln_instr_operand(instr, 1);
    switch (instr->kind) {
    case KILN_INSTR_gather:
        return i == 2 ? buffer_extent(data, kiln_instr_attrs(instr, gather)->axis) : -1;
    case KILN_INSTR_gather_elements:
        return i == 2 ? buffer_extent(data, kiln_instr_attrs(instr, gather_elements)->axis) : -1;
    case KILN_INSTR_scatter_elements:
        return i == 2 ? buffer_extent(data, kiln_instr_attrs(instr, scatter_elements)->axis) : -1;
    case KILN_INSTR_gather_nd:
    case KILN_INSTR_scatter_nd: {
        int64_t least = -1;
        for (int d = 0; i == 2 && data && d < data->type.rank; d++)
            least = least < 0 ? data->type.dims[d] : MIN(least, data->type.dims[d]);
        return least;
    }
    case KILN_INSTR_one_hot: {
        const KilnBuffer *out = kiln_instr_operand(instr, 0);
        return i == 1 ? buffer_extent(out, kiln_instr_attrs(instr, one_hot)->axis) : -1;
    }
    case KILN_INSTR_item_dims:
    case KILN_INSTR_sequence_at:
    case KILN_INSTR_sequence_erase:
        return i == 2 ? LEAST_LENGTH : -1;
    case KILN_INSTR_sequence_insert:
        return i == 3 ? LEAST_LENGTH : -1;
    case KILN_INSTR_split_to_sequence:
        return instr_index_start(instr, i) > 0 ? 1 + SMALL : -1;
    default:
        return -1;
    }
}

KilnDomain
kiln_ir_input_domain(const KilnBuffer *input)
{
    const KilnBuffer *work[MAX_VISITS];
    uint32_t n = 0;
    Span span = { 0, -1 };
    work[n++] = input;
    for (uint32_t i = 0; i < n && kiln_dtype_is_integer(input->type.dtype); i++) {
        kiln_foreach_buffer_use (use, work[i]) {
            const KilnInstr *user = use->user;
            narrow(&span, instr_index_start(user, use->index),
                   instr_index_extent(user, use->index));
            const KilnBuffer *out = kiln_instr_operand(user, 0);
            bool moves = kiln_instr_info(user->kind)->flags & KILN_INSTR_MOVEMENT ||
                         user->kind == KILN_INSTR_view || user->kind == KILN_INSTR_cast;
            if (moves && use->index > 0 && out && n < MAX_VISITS)
                work[n++] = out;
        }
    }
    return default_domain(&input->type, span);
}

/* --- tensors --- */

/* Words of a few letters. Most tensors have some of them twice. */
static KilnTensor *
random_words(const KilnType *type, uint64_t stream, GError **error)
{
    enum {
        LETTERS = 5,
        LONGEST = 4
    };
    size_t n = (size_t)kiln_type_elements(type);
    g_autofree KilnText *texts = g_new(KilnText, n + 1);
    g_autofree char *letters = g_new(char, n *LONGEST + 1);
    for (size_t i = 0; i < n; i++) {
        uint64_t draw = (uint64_t)(kiln_random_unit(stream, i) * 0x1p32);
        char *word = letters + i * LONGEST;
        texts[i] = (KilnText){ word, 1 + draw % LONGEST };
        for (size_t k = 0; k < texts[i].length; k++) {
            draw /= LETTERS;
            word[k] = (char)('a' + draw % LETTERS);
        }
    }
    return kiln_tensor_new_texts(type, texts, n, error);
}

/* An item has a domain of the type of its own elements. */
static KilnTensor *
random_element(const KilnType *type, const char *name, uint64_t seed, GError **error)
{
    const KilnDomain domain = default_domain(type, (Span){ 0, -1 });
    return kiln_random_tensor(type, &domain, name, seed, error);
}

KilnTensor *
kiln_random_tensor(const KilnType *type, const KilnDomain *domain, const char *name, uint64_t seed,
                   GError **error)
{
    if (kiln_dtype_is_item(type->dtype)) {
        g_autoptr(KilnItem) item = kiln_random_item(type, random_element, name, seed, error);
        return item ? kiln_tensor_new_item(type, item) : NULL;
    }
    KilnType plain = *type;
    plain.layout = NULL;
    plain.quant = NULL;
    int64_t elements = kiln_type_elements(&plain);
    size_t size = kiln_dtype_size(type->dtype);
    if (elements < 0)
        return kiln_throw_null(error, KILN_ERROR_SHAPE, "%s: its shape is not known", name);
    if (type->dtype == KILN_DTYPE_string)
        return random_words(&plain, kiln_random_seed(seed, name), error);
    void *data;
    g_autoptr(GBytes) bytes = kiln_bytes_new((size_t)elements, size, &data, error);
    if (!bytes)
        return NULL;
    uint64_t stream = kiln_random_seed(seed, name);
    bool whole = !kiln_dtype_is_float(type->dtype);
    for (int64_t i = 0; i < elements; i++) {
        double value = domain->normal ? kiln_random_normal(stream, (uint64_t)i)
                                      : domain->low + kiln_random_unit(stream, (uint64_t)i) *
                                                          (domain->high - domain->low);
        kiln_element_store_f64(type->dtype, data, i, whole ? floor(value) : value);
    }
    return kiln_tensor_new_data(&plain, bytes, error);
}

int64_t
kiln_random_dim(const KilnDim *name)
{
    KilnDimFacts facts;
    int64_t draw = (int64_t)(kiln_random_seed(0, kiln_dim_as_name(name)) % 3);
    if (!kiln_dim_facts(name, &facts))
        return 2 + draw;
    int64_t multiple = facts.divisor, most = facts.hi / multiple;
    int64_t least = facts.lo / multiple + (facts.lo % multiple != 0);
    return multiple * MIN(MAX(2, least) + draw, most);
}

typedef struct {
    const KilnDimBinding *binding;
    KilnDimTable *table;
} Numbers;

static bool
random_lookup(void *data, const char *name, int64_t *out)
{
    const Numbers *numbers = data;
    if (!numbers->binding || !kiln_dim_binding_lookup((void *)numbers->binding, name, out))
        *out = kiln_random_dim(kiln_dim_name(numbers->table, name));
    return true;
}

KilnType
kiln_random_type(const KilnType *type, const KilnDimBinding *binding)
{
    KilnType bound = *type;
    for (int i = 0; i < type->rank; i++) {
        int64_t extent = 2; /* of dims of which nothing is known */
        Numbers numbers = { binding, type->open[i] ? kiln_dim_table_of(type->open[i]) : NULL };
        if (type->open[i] &&
            !kiln_dim_evaluate(type->open[i], random_lookup, &numbers, &extent, NULL))
            extent = 2;
        if (type->dims[i] < 0)
            bound.dims[i] = MAX(extent, 0);
        bound.open[i] = NULL;
    }
    return bound;
}
