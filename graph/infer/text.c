/* SPDX-License-Identifier: Apache-2.0 */
/* Shape functions of strings. Data decides a dim of string_split, tokenizer and string_normalizer:
 * it is open, and has the name that the node defines (graph/module/define.h). */
#include "graph/base/regex.h"
#include "graph/graph.h"
#include "graph/infer/common.h"
#include "graph/op/text.h"

KILN_INFER(string_concat)
{
    if (!kiln_infer_require_present(in, error) ||
        !kiln_infer_require(in, 0, KILN_SET(string), error) ||
        !kiln_infer_require(in, 1, KILN_SET(string), error))
        return FALSE;
    in->out[0].dtype = KILN_DTYPE_string;
    return kiln_infer_broadcast_operands(in, 0, &in->out[0], error);
}

/* Dim @d of result 0 has the name @count, where there is one. */
static void
set_count(KilnInfer *in, int d, const char *count)
{
    kiln_dim_set(&in->out[0], d, KILN_DIM_UNKNOWN);
    in->out[0].open[d] = count ? kiln_dim_name(in->dims, count) : NULL;
}

KILN_INFER(string_split)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnAttrs_string_split *attrs = kiln_attrs(in->node, string_split);
    if (!kiln_infer_require(in, 0, KILN_SET(string), error) ||
        !kiln_infer_require_rank(in, 0, 0, KILN_MAX_RANK - 1, error))
        return FALSE;
    in->out[0] = kiln_infer_plain(x);
    if (x->rank >= 0) {
        in->out[0].rank = x->rank + 1;
        set_count(in, x->rank, attrs->count);
    }
    if (in->node->n_results > 1) {
        in->out[1] = kiln_infer_plain(x);
        in->out[1].dtype = KILN_DTYPE_i64;
    }
    return TRUE;
}

/* An empty string stands for none. */
static void
set_one_or_more(KilnInfer *in, int d)
{
    KilnType *type = &in->out[0];
    int64_t least, most;
    if (!kiln_type_knows_dim(type, d))
        return;
    kiln_type_dim_range(type, d, &least, &most);
    if (least < 1)
        kiln_type_set_dim(
            type, d,
            kiln_dim_max(in->dims, kiln_type_dim(type, d, in->dims), kiln_dim_number(in->dims, 1)));
}

KILN_INFER(string_normalizer)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnAttrs_string_normalizer *attrs = kiln_attrs(in->node, string_normalizer);
    if (!kiln_infer_require(in, 0, KILN_SET(string), error) ||
        !kiln_infer_require_rank(in, 0, 1, 2, error) ||
        !kiln_infer_one_of("case_change_action", attrs->case_change_action, "NONE LOWER UPPER",
                           error) ||
        (x->rank == 2 && !kiln_infer_require_dim(in, 0, 0, 1, error)))
        return FALSE;
    in->out[0] = kiln_infer_plain(x);
    if (x->rank == 2)
        kiln_dim_set(&in->out[0], 0, 1);
    if (x->rank >= 1 && attrs->stopwords.n)
        set_count(in, x->rank - 1, attrs->count);
    else if (x->rank >= 1)
        set_one_or_more(in, x->rank - 1);
    return TRUE;
}

static gboolean
require_pattern(const char *what, const char *pattern, GError **error)
{
    g_autoptr(KilnRegex) regex = kiln_regex_compile(pattern, error);
    if (!regex)
        kiln_prefix_error(error, "%s: ", what);
    return regex != NULL;
}

gboolean
kiln_infer_tokens(KilnStrings separators, const char *tokenexp, int64_t mincharnum, GError **error)
{
    for (uint32_t i = 0; i < separators.n; i++) {
        if (!require_pattern("separators", separators.v[i], error))
            return FALSE;
    }
    if (separators.n > KILN_INFER_SEPARATORS)
        return kiln_throw(error, KILN_ERROR_UNSUPPORTED, "expected at most %d separators, found %u",
                          KILN_INFER_SEPARATORS, separators.n);
    if (mincharnum < 1)
        return kiln_throw(error, KILN_ERROR_INVALID,
                          "mincharnum: expected 1 or more, found %" G_GINT64_FORMAT, mincharnum);
    return require_pattern("tokenexp", tokenexp, error);
}

KILN_INFER(tokenizer)
{
    const KilnType *x = kiln_infer_type(in, 0);
    const KilnAttrs_tokenizer *attrs = kiln_attrs(in->node, tokenizer);
    if (!kiln_infer_require(in, 0, KILN_SET(string), error) ||
        !kiln_infer_require_rank(in, 0, 1, 2, error) ||
        !kiln_infer_tokens(attrs->separators, attrs->tokenexp, attrs->mincharnum, error))
        return FALSE;
    in->out[0] = kiln_infer_plain(x);
    if (x->rank >= 0) {
        in->out[0].rank = x->rank + 1;
        set_count(in, x->rank, attrs->count);
    }
    return TRUE;
}

KILN_INFER(regex_full_match)
{
    if (!kiln_infer_require(in, 0, KILN_SET(string), error) ||
        !require_pattern("pattern", kiln_attrs(in->node, regex_full_match)->pattern, error))
        return FALSE;
    in->out[0] = kiln_infer_plain(kiln_infer_type(in, 0));
    in->out[0].dtype = KILN_DTYPE_bool;
    return TRUE;
}
