/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of instructions on sequences, optionals and maps: their kinds, and the ranks of what the
 * instructions write. What an item has is checked when a run reads it. */
#include "graph/infer/common.h"
#include "ir/verify/check_priv.h"

static gboolean
require(const KilnCheck *check, uint32_t i, KilnDTypeSet set, const char *expected, GError **error)
{
    return (set >> kiln_check_type(check, i)->dtype & 1) ||
           kiln_check_throw(check, i, expected, error);
}

static gboolean
require_item(const KilnCheck *check, uint32_t i, KilnDTypeSet set, GError **error)
{
    return require(check, i, set, set == KILN_SET(map) ? "a map" : "a sequence or optional", error);
}

static bool
is_there(const KilnCheck *check, uint32_t i)
{
    return kiln_instr_operand(check->instr, i) != NULL;
}

static gboolean
require_number(const KilnCheck *check, uint32_t i, GError **error)
{
    const KilnType *type = is_there(check, i) ? kiln_check_type(check, i) : NULL;
    bool fits = !type || ((KILN_SET_INDICES >> type->dtype & 1) && kiln_type_elements(type) == 1);
    return fits || kiln_check_throw(check, i, "one integer", error);
}

static gboolean
require_scalar(const KilnCheck *check, uint32_t i, KilnDType dtype, GError **error)
{
    const KilnType *type = kiln_check_type(check, i);
    return (type->dtype == dtype && type->rank == 0) ||
           kiln_check_throw(check, i, dtype == KILN_DTYPE_i64 ? "i64[]" : "bool[]", error);
}

/* Operand 0 has an element for each listed dim, each of which is one of a tensor. */
static gboolean
require_dims(const KilnCheck *check, const KilnInts *dims, GError **error)
{
    const KilnType *type = kiln_check_type(check, 0);
    for (uint32_t i = 0; i < dims->n; i++) {
        if (dims->v[i] < 0 || dims->v[i] >= KILN_MAX_RANK)
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "dims: expected numbers from 0 to %d, found %" G_GINT64_FORMAT,
                              KILN_MAX_RANK - 1, dims->v[i]);
    }
    return (type->dtype == KILN_DTYPE_i64 && type->rank == 1 && type->dims[0] == dims->n) ||
           kiln_check_throw(check, 0, "an i64 for each of dims", error);
}

/* @least: 0 or, where axes also count from the end, -@rank. */
static gboolean
require_axis(int64_t axis, int least, int rank, GError **error)
{
    return (axis >= least && axis < rank) ||
           kiln_throw(error, KILN_ERROR_INVALID,
                      "axis: expected a number from %d to %d, found %" G_GINT64_FORMAT, least,
                      rank - 1, axis);
}

static gboolean
check_none(KilnCheck *check, GError **error)
{
    return require_item(check, 0, KILN_SET_ITEMS, error);
}

static gboolean
check_list(KilnCheck *check, GError **error)
{
    const bool optional = kiln_check_type(check, 0)->dtype == KILN_DTYPE_optional;
    const uint32_t n = check->instr->n_operands;
    if (!require_item(check, 0, KILN_SET(sequence) | KILN_SET(optional), error))
        return FALSE;
    if (n < 2 || (optional && n != 2))
        return kiln_throw(error, KILN_ERROR_INVALID, "expected %s to be put in, found %u",
                          optional ? "one value" : "values", n - 1);
    for (uint32_t i = 1; i < n; i++) {
        bool fits = is_there(check, i) && !kiln_check_type(check, i)->layout &&
                    kiln_check_type(check, i)->dtype != KILN_DTYPE_optional;
        if (!fits)
            return kiln_throw(error, KILN_ERROR_INVALID,
                              "operand %u: expected a plain tensor, a sequence or a map", i);
    }
    return TRUE;
}

static gboolean
check_dims(KilnCheck *check, GError **error)
{
    return require_dims(check, &kiln_instr_attrs(check->instr, item_dims)->dims, error) &&
           require_item(check, 1, KILN_SET(sequence) | KILN_SET(optional), error) &&
           require_number(check, 2, error);
}

static gboolean
check_at(KilnCheck *check, GError **error)
{
    return require_item(check, 1, KILN_SET(sequence), error) && require_number(check, 2, error);
}

static gboolean
check_insert(KilnCheck *check, GError **error)
{
    return require_item(check, 0, KILN_SET(sequence), error) &&
           require_item(check, 1, KILN_SET(sequence), error) && require_number(check, 3, error) &&
           require(check, 2, KILN_SET_ANY | KILN_SET(map), "a tensor or a map", error);
}

static gboolean
check_erase(KilnCheck *check, GError **error)
{
    return require_item(check, 0, KILN_SET(sequence), error) && check_at(check, error);
}

static gboolean
check_length(KilnCheck *check, GError **error)
{
    return require_scalar(check, 0, KILN_DTYPE_i64, error) &&
           require_item(check, 1, KILN_SET(sequence), error);
}

static gboolean
check_split(KilnCheck *check, GError **error)
{
    const int rank = kiln_check_type(check, 1)->rank;
    const KilnType *lengths = is_there(check, 2) ? kiln_check_type(check, 2) : NULL;
    bool fits = !lengths || ((KILN_SET_INDICES >> lengths->dtype & 1) && lengths->rank <= 1);
    return require_item(check, 0, KILN_SET(sequence), error) &&
           require_axis(kiln_instr_attrs(check->instr, split_to_sequence)->axis, -rank, rank,
                        error) &&
           (fits || kiln_check_throw(check, 2, "a list of integers", error)) &&
           (!lengths || lengths->rank == 1 || require_number(check, 2, error));
}

static gboolean
check_concat_dims(KilnCheck *check, GError **error)
{
    const KilnInstrAttrs_concat_dims *attrs = kiln_instr_attrs(check->instr, concat_dims);
    return require_dims(check, &attrs->dims, error) &&
           require_axis(attrs->axis, 0, KILN_MAX_RANK, error) &&
           require_item(check, 1, KILN_SET(sequence), error);
}

static gboolean
check_concat(KilnCheck *check, GError **error)
{
    return require_axis(kiln_instr_attrs(check->instr, concat_from_sequence)->axis, 0,
                        kiln_check_type(check, 0)->rank, error) &&
           require_item(check, 1, KILN_SET(sequence), error);
}

static gboolean
check_has(KilnCheck *check, GError **error)
{
    return require_scalar(check, 0, KILN_DTYPE_bool, error) &&
           require_item(check, 1, KILN_SET(optional), error);
}

static gboolean
check_get(KilnCheck *check, GError **error)
{
    return require_item(check, 1, KILN_SET(optional), error);
}

static gboolean
check_zip(KilnCheck *check, GError **error)
{
    const KilnInstrAttrs_zip_map *attrs = kiln_instr_attrs(check->instr, zip_map);
    const KilnType *x = kiln_check_type(check, 1);
    const int64_t n = attrs->classlabels_int64s.n + attrs->classlabels_strings.n;
    bool fits = x->dtype == KILN_DTYPE_f32 && (x->rank == 1 || x->rank == 2) &&
                x->dims[x->rank - 1] == n &&
                (!attrs->classlabels_int64s.n || !attrs->classlabels_strings.n);
    return require_item(check, 0, KILN_SET(sequence), error) &&
           (fits || kiln_check_throw(check, 1, "rows of an f32 for each label", error));
}

static gboolean
check_map_length(KilnCheck *check, GError **error)
{
    const KilnInts one = { .n = 1, .v = (int64_t[]){ 0 } };
    return require_dims(check, &one, error) && require_item(check, 1, KILN_SET(map), error);
}

static gboolean
check_cast_map(KilnCheck *check, GError **error)
{
    KilnDTypeSet to = KILN_SET(f32) | KILN_SET(i64) | KILN_SET(string);
    const KilnType *map = kiln_check_type(check, 1);
    return require(check, 0, to, "f32, i64 or strings", error) &&
           require_item(check, 1, KILN_SET(map), error) &&
           (map->contents->key == KILN_DTYPE_i64 ||
            kiln_check_throw(check, 1, "a map from i64", error));
}

static gboolean
check_dict(KilnCheck *check, GError **error)
{
    const KilnInstrAttrs_dict_vectorizer *attrs = kiln_instr_attrs(check->instr, dict_vectorizer);
    const KilnType *out = kiln_check_type(check, 0), *map = kiln_check_type(check, 1);
    const uint32_t numbers = attrs->int64_vocabulary.n, texts = attrs->string_vocabulary.n;
    if (!require_item(check, 1, KILN_SET(map), error))
        return FALSE;
    KilnDType key = texts ? KILN_DTYPE_string : KILN_DTYPE_i64;
    return ((!numbers || !texts) && map->contents->key == key &&
            out->dtype == map->contents->type.dtype &&
            kiln_type_elements(out) == (int64_t)numbers + texts) ||
           kiln_check_throw(check, 0, "a value for each word of one vocabulary", error);
}

// clang-format off
static const struct {
    KilnInstrKind kind;
    gboolean (*check)(KilnCheck *check, GError **error);
} rows[] = {
    { KILN_INSTR_item_none,            check_none },
    { KILN_INSTR_item_list,            check_list },
    { KILN_INSTR_item_dims,            check_dims },
    { KILN_INSTR_sequence_insert,      check_insert },
    { KILN_INSTR_sequence_erase,       check_erase },
    { KILN_INSTR_sequence_at,          check_at },
    { KILN_INSTR_sequence_length,      check_length },
    { KILN_INSTR_split_to_sequence,    check_split },
    { KILN_INSTR_concat_dims,          check_concat_dims },
    { KILN_INSTR_concat_from_sequence, check_concat },
    { KILN_INSTR_optional_has_element, check_has },
    { KILN_INSTR_optional_get_element, check_get },
    { KILN_INSTR_zip_map,              check_zip },
    { KILN_INSTR_map_length,           check_map_length },
    { KILN_INSTR_cast_map,             check_cast_map },
    { KILN_INSTR_dict_vectorizer,      check_dict },
};
// clang-format on

gboolean
kiln_check_items(KilnCheck *check, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].kind == check->instr->kind)
            return rows[i].check(check, error);
    }
    return kiln_throw(error, KILN_ERROR_INVALID, "expected an instruction on items");
}
