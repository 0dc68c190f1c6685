/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/binding.h"

#include "graph/dim/dim_defined.h"
#include "graph/module/define.h"
#include "graph/module/flow.h"
#include "graph/module/folding.h"

#include <string.h>

bool
kiln_dim_binding_lookup(void *binding, const char *name, int64_t *out)
{
    const KilnDimBinding *self = binding;
    for (uint32_t i = 0; i < self->n; i++) {
        if (strcmp(self->names[i].name, name) == 0) {
            *out = self->names[i].number;
            return true;
        }
    }
    return false;
}

KilnDimBinding *
kiln_dim_binding_copy(KilnArena *arena, const KilnDimBinding *binding)
{
    KilnDimBinding *copy = kiln_arena_copy(arena, binding, sizeof *binding);
    copy->names = kiln_arena_copy(arena, binding->names, binding->n * sizeof *binding->names);
    for (uint32_t i = 0; i < copy->n; i++)
        copy->names[i].name = kiln_arena_strdup(arena, copy->names[i].name);
    return copy;
}

/* --- typical numbers --- */

static bool
is_prime(int64_t number)
{
    for (int64_t by = 2; by * by <= number; by++) {
        if (number % by == 0)
            return false;
    }
    return number >= 2;
}

/* The least number from @from on that is a prime (twice a prime where @even) times @by, and that no
 * name has. */
static int64_t
next_typical(const KilnDimBinding *binding, int64_t from, int64_t by, bool even)
{
    for (int64_t at = from / by;; at++) {
        bool taken = !is_prime(even ? at / 2 : at) || (even && at % 2) || at * by < from;
        for (uint32_t i = 0; i < binding->n && !taken; i++)
            taken = binding->names[i].number == at * by;
        if (!taken)
            return at * by;
    }
}

/* Where bounds leave no multiple of a scale: another number for each variant, if there are so many.
 */
static int64_t
number_within(const KilnDimFacts *facts, unsigned variant)
{
    int64_t by = facts->divisor, lo = (facts->lo + by - 1) / by * by;
    return MAX(facts->hi - facts->hi % by - (int64_t)variant * by, lo);
}

/* Variant 0 has primes from the hint on, variant 1 even numbers below it, variant 2 the least. */
static int64_t
number_of(const KilnDimBinding *binding, const KilnDim *name, unsigned variant, int64_t scale)
{
    enum {
        FAR = 1 << 20 /* numbers beyond it are not looked through */
    };
    KilnDimFacts facts;
    kiln_dim_facts(name, &facts);
    int64_t hint = MIN(kiln_dim_hint(name), (int64_t)FAR);
    int64_t by = facts.divisor % scale == 0 ? facts.divisor : facts.divisor * scale;
    int64_t from = variant == 0 ? MAX(hint - 3, 2) : MAX(hint / 2, 2);
    int64_t number = variant == 2 ? (facts.lo + by - 1) / by * by
                                  : next_typical(binding, MAX(from, facts.lo), by, variant == 1);
    if (number > facts.hi)
        number = facts.hi - facts.hi % by;
    if (number == 0 && variant != 2) /* nothing is typical of what is empty */
        number = facts.hi;
    return number >= facts.lo ? number : number_within(&facts, variant);
}

static void
add_name(KilnDimBinding *binding, const KilnDim *dim, unsigned variant, int64_t scale)
{
    const char *name = kiln_dim_as_name(dim);
    int64_t number;
    if (name && !kiln_dim_binding_lookup(binding, name, &number)) {
        number = number_of(binding, dim, variant, scale);
        binding->names[binding->n++] = (KilnBoundName){ name, number };
    }
}

/* True where the names give each dim of @type a number. */
static bool
has_numbers(const KilnType *type, KilnDimBinding *binding)
{
    int64_t number;
    bool known = type->rank >= 0;
    for (int d = 0; d < type->rank && known; d++) {
        const KilnDim *open = type->open[d];
        known = open ? kiln_dim_evaluate(open, kiln_dim_binding_lookup, binding, &number, NULL)
                     : type->dims[d] >= 0;
    }
    return known;
}

typedef struct {
    KilnDimBinding *binding; /* NULL: names are counted only */
    size_t n;
    unsigned variant;
    int64_t scale;
} Names;

/* The most that each of @n dims of a tensor typically is, where nothing bounds it: many dims are
 * small. */
static int64_t
typical_of(uint32_t n)
{
    static const int64_t most[] = { INT64_MAX, INT64_MAX, INT64_MAX, 16, 8, 6 };
    return n < G_N_ELEMENTS(most) ? most[n] : 4;
}

/* How many names a tensor of a type that @node defines has beside @name, and this one. Those of a
 * `define` are dims of one tensor. */
static uint32_t
n_beside(const KilnNode *node, const KilnDim *name, uint32_t n_defined)
{
    uint32_t most = 1;
    if (kiln_op_is_define(node->op))
        return n_defined;
    for (uint32_t r = 0; r < node->n_results; r++) {
        const KilnType *type = &node->results[r].type;
        uint32_t n = 0;
        bool has = false;
        for (int d = 0; d < type->rank; d++) {
            has |= type->open[d] == name;
            n += type->open[d] && kiln_dim_as_name(type->open[d]);
        }
        most = has ? MAX(most, n) : most;
    }
    return most;
}

/* Names that @node defines, within what bounds them at the numbers of the names before. False where
 * a bound has no number. */
static bool
add_defined(Names *names, const KilnNode *node)
{
    KilnDefined defined[KILN_DEFINED_MAX];
    KilnDimBinding *binding = names->binding;
    uint32_t n = kiln_node_defines(node, defined);
    names->n += n;
    for (uint32_t i = 0; binding && i < n; i++) {
        int64_t most = defined[i].most.lost ? typical_of(n_beside(node, defined[i].name, n))
                                            : defined[i].most.n;
        if (defined[i].most.dim &&
            !kiln_dim_evaluate(defined[i].most.dim, kiln_dim_binding_lookup, binding, &most, NULL))
            return false;
        uint32_t before = binding->n;
        add_name(binding, defined[i].name, names->variant, names->scale);
        if (binding->n > before)
            binding->names[before].number = MIN(binding->names[before].number, most);
    }
    return true;
}

/* The dims of arguments of a subgraph: what a loop carries has names of its own. */
static void
add_arguments(Names *names, const KilnFunction *region)
{
    for (guint i = 0; i < region->arguments->len; i++) {
        const KilnType *type = &kiln_function_argument(region, i)->value.type;
        for (int d = 0; d < type->rank; d++) {
            names->n += type->open[d] != NULL;
            if (names->binding && type->open[d])
                add_name(names->binding, type->open[d], names->variant, names->scale);
        }
    }
}

/* Where data decides dim @d of @type, which repeats to the @extent of another operand or is as
 * long, nothing else is typical of it. */
static void
meet_extent(const Names *names, const KilnType *type, int d, int64_t extent)
{
    const char *name = kiln_type_dim_name(type, d);
    if (extent < 2 || !name || !kiln_dim_hangs_on_data(type->open[d]))
        return;
    for (uint32_t i = 0; i < names->binding->n; i++) {
        if (strcmp(names->binding->names[i].name, name) == 0)
            names->binding->names[i].number = extent;
    }
}

/* The number of dim @d of @type; where it is a name that data decides, only if it is @decided. 0:
 * another expression. */
static int64_t
extent_of(const Names *names, const KilnType *type, int d, bool decided)
{
    const char *name = kiln_type_dim_name(type, d);
    int64_t number = 0;
    if (!type->open[d])
        return type->dims[d];
    if (name && (decided || !kiln_dim_hangs_on_data(type->open[d])))
        kiln_dim_binding_lookup(names->binding, name, &number);
    return number;
}

/* The operands of @node, which computes elements, meet each other dim by dim, the last ones first.
 */
static void
meet_operands(const Names *names, const KilnNode *node)
{
    if (!names->binding || !kiln_op_has(node->op, KILN_TRAIT_ELEMENTWISE))
        return;
    for (uint32_t i = 0; i < node->n_operands; i++) {
        const KilnType *a = node->operands[i].value ? &node->operands[i].value->type : NULL;
        for (uint32_t k = 0; a && k < node->n_operands; k++) {
            const KilnType *b = node->operands[k].value ? &node->operands[k].value->type : NULL;
            for (int d = 1; b && d <= MIN(a->rank, b->rank); d++)
                meet_extent(names, a, a->rank - d, extent_of(names, b, b->rank - d, k < i));
        }
    }
}

/* All names that a run finds, those of a subgraph before those of its node. */
static bool
add_found(Names *names, const KilnFunction *function)
{
    kiln_foreach_node (node, function) {
        meet_operands(names, node);
        kiln_foreach_region (region, node) {
            add_arguments(names, region);
            if (!add_found(names, region))
                return false;
        }
        if (!add_defined(names, node))
            return false;
    }
    return true;
}

KilnDimBinding *
kiln_dim_binding_typical(const KilnModule *module, unsigned variant, int64_t scale)
{
    const GPtrArray *inputs = kiln_module_inputs(module);
    KilnDimBinding *binding = kiln_arena_new0(module->arena, KilnDimBinding, 1);
    Names names = { .variant = variant, .scale = scale };
    add_found(&names, kiln_module_entry(module));
    size_t room = (size_t)inputs->len * KILN_MAX_RANK + names.n;
    binding->names = kiln_arena_new0(module->arena, KilnBoundName, room + 1);
    for (guint i = 0; i < inputs->len; i++) {
        const KilnType *type = &((const KilnArgument *)g_ptr_array_index(inputs, i))->value.type;
        for (int d = 0; d < type->rank; d++) {
            if (type->open[d])
                add_name(binding, type->open[d], variant, scale);
        }
    }
    for (guint i = 0; i < inputs->len; i++) {
        if (!has_numbers(&((const KilnArgument *)g_ptr_array_index(inputs, i))->value.type,
                         binding))
            return NULL;
    }
    names.binding = binding;
    return add_found(&names, kiln_module_entry(module)) ? binding : NULL;
}

/* --- numbers beside expressions --- */

typedef struct {
    KilnModule *module;
    KilnDimBinding *binding;
} Standing;

static gboolean
stand_type(const Standing *standing, KilnType *type, GError **error)
{
    if (!kiln_type_is_known(type)) {
        g_autofree char *text = kiln_type_to_string(type);
        return kiln_throw(error, KILN_ERROR_SHAPE, "expected a known shape, found %s", text);
    }
    for (int d = 0; d < type->rank; d++) {
        if (type->open[d] && !kiln_dim_evaluate(type->open[d], kiln_dim_binding_lookup,
                                                standing->binding, &type->dims[d], error))
            return FALSE;
    }
    return TRUE;
}

static gboolean
stand_elements(const Standing *standing, KilnValue *value, GError **error)
{
    const KilnExtents *extents = value->extents;
    for (uint32_t i = 0; extents && i < extents->n; i++) {
        if (!extents->v[i] || (extents->under && extents->under[i] != 1))
            return TRUE;
    }
    if (!extents)
        return TRUE;
    KilnKnown *known =
        kiln_arena_alloc(standing->module->arena, sizeof *known + extents->n * sizeof known->v[0]);
    known->n = extents->n;
    for (uint32_t i = 0; i < extents->n; i++) {
        if (!kiln_dim_evaluate(extents->v[i], kiln_dim_binding_lookup, standing->binding,
                               &known->v[i], error))
            return FALSE;
    }
    value->known = known;
    return TRUE;
}

static gboolean
stand_value(const Standing *standing, KilnValue *value, GError **error)
{
    if (stand_type(standing, &value->type, error) && stand_elements(standing, value, error))
        return TRUE;
    kiln_prefix_error(error, "%s: ", value->name);
    return FALSE;
}

static gboolean
stand_function(const Standing *standing, KilnFunction *function, GError **error)
{
    for (guint i = 0; i < function->arguments->len; i++) {
        if (!stand_value(standing, &kiln_function_argument(function, i)->value, error))
            return FALSE;
    }
    kiln_foreach_node (node, function) {
        kiln_foreach_region (region, node) {
            if (kiln_op_is_flow(node->op) && !kiln_region_refusal(region) &&
                !stand_function(standing, region, error))
                return FALSE;
        }
        for (uint32_t r = 0; r < node->n_results; r++) {
            KilnValue *value = &node->results[r];
            if (!kiln_value_has_ranks(value) && !stand_value(standing, value, error))
                return FALSE;
        }
    }
    return TRUE;
}

gboolean
kiln_module_stand_at(KilnModule *module, const KilnDimBinding *binding, GError **error)
{
    Standing standing = { module, kiln_dim_binding_copy(module->arena, binding) };
    module->binding = standing.binding;
    for (guint f = 0; f < module->functions->len; f++) {
        if (!stand_function(&standing, g_ptr_array_index(module->functions, f), error))
            return FALSE;
    }
    return TRUE;
}
