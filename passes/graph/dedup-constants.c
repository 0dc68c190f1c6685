/* SPDX-License-Identifier: Apache-2.0 */
/* dedup-constants: of several constants with equal type and equal bits, nodes read the first of the
 * module.
 *
 *     const @a   const @b          const @a   const @a
 *        |          |        =>       |          |          and cse merges the two nodes
 *
 * requires nothing, preserves nothing; class E. Equality is of types (quantization and layout
 * included) and of all bits; a hash of a few bytes only picks the candidates, so that the pages of
 * big mapped weights are touched only where two of them look alike. Generated constants are equal
 * where their generators are. `max-elements` leaves bigger constants alone (0: no limit). */
#include "passes/pass.h"

#include <string.h>

static const char rule[] = "merge-constants";

enum {
    SAMPLE = 8 /* elements at each end that the hash sees */
};

typedef struct {
    const KilnConstant *constant;
    uint32_t hash;
} Candidate;

static uint32_t
mix(uint32_t hash, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return hash;
}

static bool
is_generated(const KilnTensor *tensor)
{
    return tensor->kind != KILN_TENSOR_DATA && tensor->kind != KILN_TENSOR_SPLAT;
}

/* What a generator is made of stands for its elements: they are not made to be compared. */
static uint32_t
generator_hash(const KilnTensor *tensor, uint32_t hash)
{
    const double numbers[] = { tensor->std, tensor->low, tensor->high };
    hash = mix(hash, (const uint8_t *)&tensor->kind, sizeof tensor->kind);
    hash = mix(hash, (const uint8_t *)&tensor->seed, sizeof tensor->seed);
    return mix(hash, (const uint8_t *)numbers, sizeof numbers);
}

/* The same for equal elements, in storage or splat. */
static uint32_t
constant_hash(const KilnConstant *constant)
{
    const KilnTensor *tensor = constant->tensor;
    int64_t n = kiln_type_elements(&constant->type);
    size_t size = kiln_dtype_size(constant->type.dtype);
    uint32_t hash =
        mix(2166136261u, (const uint8_t *)&n, sizeof n) + (uint32_t)constant->type.dtype;
    if (is_generated(tensor))
        return generator_hash(tensor, hash);
    int64_t sampled = MIN(n, (int64_t)SAMPLE);
    const uint8_t *data =
        tensor->kind == KILN_TENSOR_DATA ? g_bytes_get_data(tensor->bytes, NULL) : NULL;
    for (int64_t i = 0; i < sampled; i++) {
        const uint8_t *low = data ? data + (size_t)i * size : tensor->splat;
        const uint8_t *high = data ? data + (size_t)(n - 1 - i) * size : tensor->splat;
        hash = mix(mix(hash, low, size), high, size);
    }
    return hash;
}

static guint
candidate_hash(gconstpointer data)
{
    return ((const Candidate *)data)->hash;
}

static gboolean
candidate_equal(gconstpointer left, gconstpointer right)
{
    const Candidate *a = left, *b = right;
    const KilnTensor *x = a->constant->tensor, *y = b->constant->tensor;
    if (a->hash != b->hash || !kiln_type_equal(&a->constant->type, &b->constant->type))
        return FALSE;
    if (is_generated(x) || is_generated(y))
        return x->kind == y->kind && x->seed == y->seed && x->std == y->std && x->low == y->low &&
               x->high == y->high;
    return kiln_tensor_equal(x, y);
}

static bool
may_merge(const KilnConstant *constant, int64_t max_elements)
{
    KilnTensorKind kind = constant->tensor->kind;
    bool has_bits = kind != KILN_TENSOR_SPARSE && kind != KILN_TENSOR_STRINGS;
    return has_bits && (max_elements == 0 || kiln_type_elements(&constant->type) <= max_elements);
}

/* For each constant of the module the first that equals it: the same answer for every function. */
static const KilnConstant **
find_first(const KilnModule *module, int64_t max_elements)
{
    guint n = module->constants->len;
    const KilnConstant **first = g_new(const KilnConstant *, n + 1);
    g_autofree Candidate *candidates = g_new(Candidate, n + 1);
    g_autoptr(GHashTable) seen = g_hash_table_new(candidate_hash, candidate_equal);
    for (guint i = 0; i < n; i++) {
        const KilnConstant *constant = g_ptr_array_index(module->constants, i);
        first[i] = constant;
        if (!may_merge(constant, max_elements))
            continue;
        candidates[i] = (Candidate){ constant, constant_hash(constant) };
        const Candidate *found = g_hash_table_lookup(seen, &candidates[i]);
        if (found)
            first[i] = found->constant;
        else
            g_hash_table_add(seen, &candidates[i]);
    }
    return first;
}

gboolean
kiln_pass_dedup_constants(KilnFunction *function, KilnPassContext *context, bool *changed,
                          GError **error)
{
    (void)error;
    *changed = false;
    int64_t max_elements = kiln_pass_options(context, dedup_constants)->max_elements;
    g_autofree const KilnConstant **first = find_first(function->module, max_elements);
    kiln_foreach_node (node, function) {
        const KilnOpInfo *info = kiln_op_info(node->op);
        for (uint32_t i = 0; i < info->n_attrs; i++) {
            if (info->attrs[i].kind != KILN_ATTR_CONSTANT)
                continue;
            KilnConstant **field = (KilnConstant **)((char *)node->attrs + info->attrs[i].offset);
            if (!*field || first[(*field)->id] == *field)
                continue;
            kiln_pass_note(context, rule, "@%s equals @%s", (*field)->name,
                           first[(*field)->id]->name);
            *field = (KilnConstant *)first[(*field)->id];
            kiln_function_touch(function);
            *changed = true;
        }
    }
    return TRUE;
}
