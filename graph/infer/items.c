/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of sequences, optionals and maps. Dims in which the elements of a sequence may
 * differ are not known. Where an element comes out, data decides them, and they have the names that
 * the node defines (graph/module/define.h). */
#include "graph/base/item.h"
#include "graph/dim/dim_defined.h"
#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/op/items.h"

/* --- checks --- */

static gboolean
require_sequence(const KilnInfer *in, uint32_t i, GError **error)
{
    return kiln_infer_require(in, i, KILN_SET(sequence), error);
}

static gboolean
require_position(const KilnInfer *in, uint32_t i, GError **error)
{
    return kiln_infer_require(in, i, KILN_SET_INDICES, error) &&
           kiln_infer_require_scalar(in, i, error);
}

/* The type of operand @i as an element: plain. */
static KilnType
as_element(const KilnInfer *in, uint32_t i)
{
    return kiln_infer_plain(kiln_infer_type(in, i));
}

/* Adds the type of operand @i to that of the elements, *@element. */
static gboolean
merge_operand(const KilnInfer *in, uint32_t i, KilnType *element, GError **error)
{
    const KilnType type = as_element(in, i);
    if (kiln_type_merge(in->arena, element, &type, element))
        return TRUE;
    g_autofree char *expected = kiln_type_to_string(element);
    return kiln_infer_throw_type(in, i, expected, error);
}

/* --- results --- */

/* Dims of result 0 that are not known have the names in @names. */
static void
set_names(KilnInfer *in, const KilnStrings *names)
{
    KilnType *out = &in->out[0];
    for (int d = 0; d < out->rank && (uint32_t)d < names->n; d++) {
        if (!kiln_type_knows_dim(out, d) && *names->v[d])
            out->open[d] = kiln_dim_defined(in->dims, names->v[d]);
    }
}

/* Result 0 is an element of @type. What is certainly empty has none: a branch that asks for it is
 * one that does not run. */
static gboolean
set_element(KilnInfer *in, const KilnType *type, const KilnStrings *names, GError **error)
{
    in->out[0] = *type;
    if (type->rank == KILN_RANK_NONE) {
        in->out[0].rank = KILN_RANK_UNKNOWN;
        if (in->node->function->owner)
            return kiln_infer_throw_shape(in->node, 0, error, "one that has an element");
    }
    set_names(in, names);
    return TRUE;
}

/* --- sequences --- */

KILN_INFER(sequence_empty)
{
    KilnType element = kiln_type_unranked(kiln_attrs(in->node, sequence_empty)->dtype);
    if (kiln_dtype_is_item(element.dtype))
        return kiln_throw(error, KILN_ERROR_TYPE, "dtype: expected an element type, found %s",
                          kiln_dtype_name(element.dtype));
    element.rank = KILN_RANK_NONE;
    in->out[0] = kiln_type_of_items(in->arena, KILN_DTYPE_sequence, &element);
    return TRUE;
}

KILN_INFER(sequence_construct)
{
    if (!kiln_infer_require_present(in, error) || !kiln_infer_require(in, 0, KILN_SET_ANY, error))
        return FALSE;
    KilnType element = as_element(in, 0);
    for (uint32_t i = 1; i < in->node->n_operands; i++) {
        if (!merge_operand(in, i, &element, error))
            return FALSE;
    }
    in->out[0] = kiln_type_of_items(in->arena, KILN_DTYPE_sequence, &element);
    return TRUE;
}

KILN_INFER(sequence_insert)
{
    const KilnType *sequence = kiln_infer_type(in, 0);
    if (!require_sequence(in, 0, error) || !require_position(in, 2, error))
        return FALSE;
    KilnType element = *kiln_type_element(sequence);
    if (!merge_operand(in, 1, &element, error))
        return FALSE;
    in->out[0] = kiln_type_of_items(in->arena, KILN_DTYPE_sequence, &element);
    return TRUE;
}

KILN_INFER(sequence_erase)
{
    if (!require_sequence(in, 0, error) || !require_position(in, 1, error))
        return FALSE;
    in->out[0] = *kiln_infer_type(in, 0);
    return TRUE;
}

KILN_INFER(sequence_at)
{
    if (!require_sequence(in, 0, error) || !require_position(in, 1, error))
        return FALSE;
    return set_element(in, kiln_type_element(kiln_infer_type(in, 0)),
                       &kiln_attrs(in->node, sequence_at)->dims, error);
}

KILN_INFER(sequence_length)
{
    in->out[0] = kiln_type_scalar(KILN_DTYPE_i64);
    return require_sequence(in, 0, error);
}

/* How many elements along the axis all parts have: -1 where that is not known, or differs. */
static int64_t
part_extent(const KilnInfer *in, int axis)
{
    const KilnType *x = kiln_infer_type(in, 0), *split = kiln_infer_type(in, 1);
    const KilnKnown *known = kiln_infer_known(in, 1);
    if (!split)
        return 1;
    if (!known || known->n == 0)
        return -1;
    for (int64_t i = 1; i < known->n; i++) {
        if (known->v[i] != known->v[0])
            return -1;
    }
    if (split->rank != 0) /* the parts are listed */
        return known->v[0];
    return x->dims[axis] >= 0 && known->v[0] > 0 && x->dims[axis] % known->v[0] == 0 ? known->v[0]
                                                                                     : -1;
}

KILN_INFER(split_to_sequence)
{
    const KilnAttrs_split_to_sequence *attrs = kiln_attrs(in->node, split_to_sequence);
    const KilnType *x = kiln_infer_type(in, 0);
    int axis = 0;
    if (!kiln_infer_require(in, 0, KILN_SET_ANY, error) ||
        !kiln_infer_require_rank(in, 0, 1, KILN_MAX_RANK, error) ||
        !kiln_infer_require_list(in, 1, KILN_SET_INDICES, true, error) ||
        (x->rank >= 0 && !kiln_infer_axis(x->rank, attrs->axis, &axis, error)))
        return FALSE;
    KilnType element = as_element(in, 0);
    if (x->rank >= 0)
        kiln_dim_set(&element, axis, part_extent(in, axis));
    if (x->rank >= 0 && !kiln_infer_type(in, 1) && !attrs->keepdims) {
        element.rank--;
        for (int d = axis; d < element.rank; d++)
            kiln_dim_copy(&element, d, x, d + 1);
    }
    in->out[0] = kiln_type_of_items(in->arena, KILN_DTYPE_sequence, &element);
    return TRUE;
}

KILN_INFER(concat_from_sequence)
{
    const KilnAttrs_concat_from_sequence *attrs = kiln_attrs(in->node, concat_from_sequence);
    if (!require_sequence(in, 0, error))
        return FALSE;
    const KilnType *element = kiln_type_element(kiln_infer_type(in, 0));
    const int more = attrs->new_axis ? 1 : 0, rank = element->rank + more;
    KilnType out = kiln_type_unranked(element->dtype);
    if (element->rank >= 0) {
        int axis, from = 0;
        if (rank < 1)
            return kiln_infer_throw_shape(in->node, 0, error, "elements of rank 1 or more");
        if (!kiln_infer_check_rank(rank, error) ||
            !kiln_infer_axis(rank, attrs->axis, &axis, error))
            return FALSE;
        out.rank = rank;
        for (int d = 0; d < rank; d++) {
            if (d == axis)
                kiln_dim_set(&out, d, KILN_DIM_UNKNOWN);
            else
                kiln_dim_copy(&out, d, element, from);
            from += d != axis || !more;
        }
    }
    return set_element(in, &out, &attrs->dims, error);
}

/* --- optionals --- */

KILN_INFER(optional)
{
    const KilnType *x = kiln_infer_type(in, 0);
    if (!x || x->dtype == KILN_DTYPE_optional)
        return kiln_infer_throw_type(in, 0, "a tensor or a sequence", error);
    const KilnType element = as_element(in, 0);
    in->out[0] = kiln_type_of_items(in->arena, KILN_DTYPE_optional, &element);
    return TRUE;
}

KILN_INFER(optional_has_element)
{
    in->out[0] = kiln_type_scalar(KILN_DTYPE_bool);
    return kiln_infer_require(in, 0, KILN_SET(optional), error);
}

KILN_INFER(optional_get_element)
{
    if (!kiln_infer_require(in, 0, KILN_SET(optional), error))
        return FALSE;
    return set_element(in, kiln_type_element(kiln_infer_type(in, 0)),
                       &kiln_attrs(in->node, optional_get_element)->dims, error);
}

/* --- maps --- */

/* One of two lists of keys has elements. *@out_key: its element type. */
static gboolean
check_keys(const char *what, uint32_t numbers, uint32_t texts, KilnDType *out_key, GError **error)
{
    *out_key = texts ? KILN_DTYPE_string : KILN_DTYPE_i64;
    return (numbers != 0) != (texts != 0) ||
           kiln_throw(error, KILN_ERROR_INVALID,
                      "%s: expected one list, of integers or of strings, found %s", what,
                      texts ? "both" : "none");
}

KILN_INFER(zip_map)
{
    const KilnAttrs_zip_map *attrs = kiln_attrs(in->node, zip_map);
    const KilnType *x = kiln_infer_type(in, 0);
    const uint32_t numbers = attrs->classlabels_int64s.n, texts = attrs->classlabels_strings.n;
    KilnDType key;
    if (!kiln_infer_require(in, 0, KILN_SET(f32), error) ||
        !kiln_infer_require_rank(in, 0, 1, 2, error) ||
        !check_keys("class labels", numbers, texts, &key, error) ||
        (x->rank > 0 && !kiln_infer_require_dim(in, 0, x->rank - 1, numbers + texts, error)))
        return FALSE;
    const KilnType map = kiln_type_of_map(in->arena, key, KILN_DTYPE_f32);
    in->out[0] = kiln_type_of_items(in->arena, KILN_DTYPE_sequence, &map);
    return TRUE;
}

KILN_INFER(cast_map)
{
    const KilnAttrs_cast_map *attrs = kiln_attrs(in->node, cast_map);
    if (!kiln_infer_require(in, 0, KILN_SET(map), error))
        return FALSE;
    if (kiln_infer_type(in, 0)->contents->key != KILN_DTYPE_i64)
        return kiln_infer_throw_type(in, 0, "a map from i64", error);
    KilnType out = kiln_infer_unknown(attrs->to, 2);
    kiln_dim_set(&out, 0, 1);
    if (attrs->max_map > 0)
        kiln_dim_set(&out, 1, attrs->max_map);
    return set_element(in, &out, &attrs->dims, error);
}

KILN_INFER(dict_vectorizer)
{
    const KilnAttrs_dict_vectorizer *attrs = kiln_attrs(in->node, dict_vectorizer);
    const uint32_t numbers = attrs->int64_vocabulary.n, texts = attrs->string_vocabulary.n;
    KilnDType key;
    if (!kiln_infer_require(in, 0, KILN_SET(map), error) ||
        !check_keys("vocabulary", numbers, texts, &key, error))
        return FALSE;
    const KilnContents *contents = kiln_infer_type(in, 0)->contents;
    if (contents->key != key)
        return kiln_infer_throw_type(in, 0, "a map from the type of the vocabulary", error);
    in->out[0] = kiln_infer_unknown(contents->type.dtype, 2);
    kiln_dim_set(&in->out[0], 0, 1);
    kiln_dim_set(&in->out[0], 1, numbers + texts);
    return TRUE;
}
