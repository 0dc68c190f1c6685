/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query/extents.h"

#include "graph/node.h"
#include "graph/op/concat.h"
#include "graph/op/generate.h"

enum {
    SEARCHED = 64 /* values behind another one among which a dim is looked for */
};

/* A dim of a value; no value: the dim is a number, or it is inferred. */
typedef struct {
    KilnValue *value;
    int axis;
} Source;

typedef struct {
    const KilnType *type;
    int d;
    Source found;
    int searched;
} Search;

bool
kiln_dims_are_positive(const KilnType *type, int but)
{
    for (int d = 0; d < type->rank; d++) {
        int64_t lo, hi;
        kiln_type_dim_range(type, d, &lo, &hi);
        if (d != but && lo < 1)
            return false;
    }
    return type->rank >= 0;
}

static bool
look_at(Search *search, KilnValue *value)
{
    for (int e = 0; e < value->type.rank; e++) {
        if (!kiln_type_equal_dims(search->type, search->d, &value->type, e))
            continue;
        search->found = (Source){ value, e };
        return true;
    }
    return false;
}

static bool
look_behind(Search *search, KilnValue *value)
{
    if (!value || search->searched++ >= SEARCHED)
        return false;
    if (look_at(search, value))
        return true;
    for (uint32_t i = 0; value->def && i < value->def->n_operands; i++) {
        if (look_behind(search, kiln_node_operand(value->def, i)))
            return true;
    }
    return false;
}

/* Arguments are seen from everywhere, so they are asked first. */
static bool
find(Search *search, const KilnFunction *function, KilnValue *near)
{
    for (const KilnFunction *f = function; f; f = f->owner ? f->owner->function : NULL) {
        for (guint i = 0; i < f->arguments->len; i++) {
            if (look_at(search, &((KilnArgument *)g_ptr_array_index(f->arguments, i))->value))
                return true;
        }
    }
    return look_behind(search, near);
}

/* The value that has the dim before @d has this one, too. */
static bool
goes_on(const Source *before, const KilnType *type, int d)
{
    int next = before->axis + 1;
    return before->value && next < before->value->type.rank &&
           kiln_type_equal_dims(type, d, &before->value->type, next);
}

/* Where each dim of @type comes from. */
static bool
find_all(const KilnFunction *function, KilnValue *near, const KilnType *type, bool infer,
         Source sources[KILN_MAX_RANK])
{
    int inferred = 0, last = -1;
    for (int d = 0; d < type->rank; d++) {
        Search search = { .type = type, .d = d };
        if (d > 0 && type->dims[d] < 0 && goes_on(&sources[d - 1], type, d))
            search.found = (Source){ sources[d - 1].value, sources[d - 1].axis + 1 };
        else if (type->dims[d] < 0 && !find(&search, function, near)) {
            inferred++;
            last = d;
        }
        sources[d] = search.found;
    }
    /* A -1 beside a dim that turns out to be empty would say nothing. */
    return type->rank >= 0 &&
           (inferred == 0 || (inferred == 1 && infer && kiln_dims_are_positive(type, last)));
}

bool
kiln_extents_can_build(const KilnFunction *function, KilnValue *near, const KilnType *type,
                       bool infer)
{
    Source sources[KILN_MAX_RANK] = { 0 };
    return find_all(function, near, type, infer, sources);
}

/* Dims [first, end), which are numbers, or neighbours of one value. */
static KilnValue *
build_run(KilnFunction *function, KilnNode *before, const KilnType *type, const Source *sources,
          int first, int end, GError **error)
{
    Source from = sources[first];
    if (!from.value)
        return kiln_build_ints(function, before, type->dims + first, (uint32_t)(end - first));
    int last = from.axis + end - first;
    KilnAttrs_shape attrs = { .start = from.axis,
                              .end = last == from.value->type.rank ? G_MAXINT64 : last };
    return kiln_build(function, before, KILN_OP_shape, &attrs, &from.value, 1, error);
}

static bool
continues(const Source *a, const Source *b)
{
    return a->value == b->value && (!a->value || b->axis == a->axis + 1);
}

KilnValue *
kiln_extents_build(KilnFunction *function, KilnNode *before, KilnValue *near, const KilnType *type,
                   bool infer, GError **error)
{
    Source sources[KILN_MAX_RANK] = { 0 };
    KilnValue *runs[KILN_MAX_RANK];
    uint32_t n = 0;
    if (!find_all(function, near, type, infer, sources))
        return NULL;
    for (int d = 0, end; d < type->rank; d = end) {
        for (end = d + 1; end < type->rank && continues(&sources[end - 1], &sources[end]);)
            end++;
        runs[n] = build_run(function, before, type, sources, d, end, error);
        if (!runs[n++])
            return NULL;
    }
    if (n == 0)
        return kiln_build_ints(function, before, NULL, 0);
    return n == 1 ? runs[0]
                  : kiln_build(function, before, KILN_OP_concat, &(KilnAttrs_concat){ .axis = 0 },
                               runs, n, error);
}

KilnValue *
kiln_range_build(KilnNode *before, KilnValue *start, KilnValue *limit, KilnValue *step,
                 GError **error)
{
    KilnValue *operands[] = { start, limit, step };
    return kiln_build(before->function, before, KILN_OP_range, NULL, operands, 3, error);
}
