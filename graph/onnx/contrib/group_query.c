/* SPDX-License-Identifier: Apache-2.0 */
/* GroupQueryAttention of com.microsoft: each head of keys and values serves several heads of
 * queries. It becomes
 *
 *   softmax(q . transpose(k) * scale + bias) . v
 *
 * on [batch, heads of keys, heads of queries for each, rows, head size]. The bias hides tokens that
 * come later, that are too far back, and rows of the cache without a token. The softmax may have
 * a score more, to which no value belongs (a sink). Open sizes stay open. */
#include "graph/base/alloc.h"
#include "graph/graph.h"
#include "graph/node.h"
#include "graph/tensor.h"
#include "graph/onnx/contrib/cache.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/rotary.h"
#include "graph/onnx/steps.h"
#include "graph/op/bounds.h"
#include "graph/op/logic.h"
#include "graph/op/norm.h"
#include "graph/op/softmax.h"

#include <math.h>
#include <string.h>

enum {
    QUERY,
    KEY,
    VALUE,
    PAST_KEY,
    PAST_VALUE,
    LENGTHS,
    TOTAL,
    COS,
    SIN,
    POSITIONS,
    BIAS,
    SINK,
    KEY_SCALE,
    VALUE_SCALE,
    QUERY_NORM,
    KEY_NORM,
    ROWS
};

typedef struct {
    KilnOnnxSteps s;
    KilnOnnxCall *call;
    KilnDType dtype;
    int64_t heads, kv_heads, turns, interleaved, causal, window, smooth, shown;
    float scale, softcap; /* 0: one over the root of the head size; no cap */
    float epsilons[2];    /* of the normalizations of queries and of keys */
    int64_t size;         /* of a head */
    KilnValue *q, *k, *v; /* [batch, rows, heads, size], then [batch, heads, rows, size] */
    KilnOnnxTokens tokens;
    KilnValue *visible;  /* which keys a row sees */
    KilnTensor *layouts; /* of SparseAttention: [layouts, blocks of rows, blocks of keys] */
    int64_t block;       /* rows and keys of a block there */
} Group;

/* --- attributes --- */

static gboolean
read_epsilons(Group *g, GError **error)
{
    float both = 1e-6F;
    if (!kiln_onnx_take_float(g->call, "qk_norm_epsilon", &both, error))
        return FALSE;
    g->epsilons[0] = g->epsilons[1] = both;
    return kiln_onnx_take_float(g->call, "q_norm_epsilon", &g->epsilons[0], error) &&
           kiln_onnx_take_float(g->call, "k_norm_epsilon", &g->epsilons[1], error);
}

/* Caches of integers, and those that hold a window alone. */
static gboolean
refuse_caches(KilnOnnxCall *call, GError **error)
{
    static const char *const names[] = { "k_quant_type", "v_quant_type" };
    int64_t bits = 0, sliding = 0;
    if (!kiln_onnx_take_int(call, "kv_cache_bit_width", &bits, error) ||
        !kiln_onnx_take_flag(call, "sliding_window_cache", &sliding, error))
        return FALSE;
    if (sliding)
        return kiln_onnx_unsupported(call, error, "sliding_window_cache=%" G_GINT64_FORMAT,
                                     sliding);
    for (int i = 0; i < 2; i++) {
        const char *kind = "NONE";
        if (!kiln_onnx_take_text(call, names[i], &kind, error))
            return FALSE;
        if (strcmp(kind, "NONE") != 0)
            return kiln_onnx_unsupported(call, error, "%s=%s", names[i], kind);
    }
    return (!kiln_onnx_operand(call, KEY_SCALE) && !kiln_onnx_operand(call, VALUE_SCALE)) ||
           kiln_onnx_unsupported(call, error, "a scale of the cache");
}

static gboolean
take_attrs(Group *g, GError **error)
{
    KilnOnnxCall *call = g->call;
    return kiln_onnx_take_int(call, "num_heads", &g->heads, error) &&
           kiln_onnx_take_int(call, "kv_num_heads", &g->kv_heads, error) &&
           kiln_onnx_take_flag(call, "do_rotary", &g->turns, error) &&
           kiln_onnx_take_flag(call, "rotary_interleaved", &g->interleaved, error) &&
           kiln_onnx_take_flag(call, "causal", &g->causal, error) &&
           kiln_onnx_take_int(call, "local_window_size", &g->window, error) &&
           kiln_onnx_take_int(call, "smooth_softmax", &g->smooth, error) &&
           kiln_onnx_take_int(call, "qk_output", &g->shown, error) &&
           kiln_onnx_take_float(call, "scale", &g->scale, error) &&
           kiln_onnx_take_float(call, "softcap", &g->softcap, error) && read_epsilons(g, error) &&
           refuse_caches(call, error);
}

static gboolean
check_attrs(const Group *g, GError **error)
{
    const KilnOnnxCall *call = g->call;
    if (g->smooth < -1 || g->smooth > 1)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "smooth_softmax: expected -1 to 1, found %" G_GINT64_FORMAT,
                               g->smooth);
    if (g->heads < 1 || g->heads > INT32_MAX || g->kv_heads < 1 || g->heads % g->kv_heads != 0)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "expected heads of queries in multiples of those of keys, found "
                               "%" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                               g->heads, g->kv_heads);
    if (g->window < -1 || g->window == 0 || (g->window > 0 && !g->causal))
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "local_window_size: expected -1%s, found %" G_GINT64_FORMAT,
                               g->causal ? ", or 1 or more" : " where causal is 0", g->window);
    if (g->shown < 0 || g->shown > 2)
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "qk_output: expected 0 to 2, found %" G_GINT64_FORMAT, g->shown);
    return g->shown || !kiln_onnx_result_read(call, 3) ||
           kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "result 3 is there, but qk_output is 0");
}

/* Operands that come in pairs, and their ranks. */
static gboolean
check_operands(const Group *g, GError **error)
{
    static const uint32_t pairs[][2] = {
        { KEY, VALUE }, { PAST_KEY, PAST_VALUE }, { COS, SIN }, { QUERY_NORM, KEY_NORM }
    };
    const KilnOnnxCall *call = g->call;
    for (size_t i = 0; i < G_N_ELEMENTS(pairs); i++) {
        const uint32_t a = pairs[i][0], b = pairs[i][1];
        if (!kiln_onnx_operand(call, a) != !kiln_onnx_operand(call, b))
            return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                                   "expected operands %u and %u, found one of them", a, b);
    }
    if (g->turns && !kiln_onnx_operand(call, COS))
        return kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                               "do_rotary: lacks operands %d and %d", COS, SIN);
    return kiln_onnx_require_rank(call, QUERY, 3, 3, error) &&
           kiln_onnx_require_rank(call, LENGTHS, 1, 2, error) &&
           kiln_onnx_require_rank(call, TOTAL, 0, 1, error) &&
           kiln_onnx_require_rank(call, COS, 2, 2, error);
}

/* --- queries, keys and values --- */

static gboolean
find_size(Group *g, GError **error)
{
    const KilnOnnxCall *call = g->call;
    const int64_t all = call->operands[QUERY]->type.dims[2];
    const int64_t heads = kiln_onnx_operand(call, KEY) ? g->heads : g->heads + 2 * g->kv_heads;
    if (all < 0)
        return kiln_onnx_unsupported(call, error, "operand 0 of an unknown hidden size");
    if (all == 0 || all % heads != 0)
        return kiln_onnx_throw(call, KILN_ERROR_SHAPE, error,
                               "operand 0: expected a hidden size in multiples of %" G_GINT64_FORMAT
                               " heads, found %" G_GINT64_FORMAT,
                               heads, all);
    g->size = all / heads;
    if (g->scale == 0)
        g->scale = 1 / sqrtf((float)g->size);
    return TRUE;
}

/* The shapes of operands, once the size of heads is known. */
static gboolean
check_shapes(const Group *g, GError **error)
{
    const KilnOnnxCall *call = g->call;
    const int64_t *q = call->operands[QUERY]->type.dims, hidden = g->kv_heads * g->size;
    const KilnValue *past = kiln_onnx_operand(call, PAST_KEY);
    const KilnValue *k = kiln_onnx_operand(call, KEY), *cos = kiln_onnx_operand(call, COS);
    const KilnValue *lengths = kiln_onnx_need(call, LENGTHS, error);
    const int64_t rows = past && past->type.rank == 4 ? past->type.dims[2] : -1;
    if (!lengths || !kiln_onnx_need(call, TOTAL, error))
        return FALSE;
    return KILN_ONNX_REQUIRE_DIMS(call, KEY, error, q[0], past ? q[1] : -1, hidden) &&
           KILN_ONNX_REQUIRE_DIMS(call, VALUE, error, q[0], k ? k->type.dims[1] : -1, hidden) &&
           KILN_ONNX_REQUIRE_DIMS(call, PAST_KEY, error, q[0], g->kv_heads, -1, g->size) &&
           KILN_ONNX_REQUIRE_DIMS(call, PAST_VALUE, error, q[0], g->kv_heads, rows, g->size) &&
           (lengths->type.rank == 2 || KILN_ONNX_REQUIRE_DIMS(call, LENGTHS, error, q[0])) &&
           (!cos || kiln_onnx_require_shape(call, SIN, cos->type.dims, 2, error)) &&
           KILN_ONNX_REQUIRE_DIMS(call, POSITIONS, error, q[0], -1) &&
           KILN_ONNX_REQUIRE_DIMS(call, BIAS, error, kiln_onnx_one_or(call, BIAS, 0, q[0]),
                                  kiln_onnx_one_or(call, BIAS, 1, g->heads), q[1], -1) &&
           KILN_ONNX_REQUIRE_DIMS(call, SINK, error, g->heads) &&
           KILN_ONNX_REQUIRE_DIMS(call, QUERY_NORM, error, g->size) &&
           KILN_ONNX_REQUIRE_DIMS(call, KEY_NORM, error, g->size) &&
           KILN_ONNX_REQUIRE_DIMS(call, ROWS, error, q[0]);
}

/* @heads heads of @x, [batch, rows, hidden], as [batch, rows, heads, size]. */
static KilnValue *
with_heads(const Group *g, KilnValue *x, int64_t heads)
{
    if (!x)
        return NULL;
    const KilnOnnxExtent extents[] = { KILN_ONNX_DIM(x, 0), KILN_ONNX_DIM(x, 1),
                                       KILN_ONNX_NUMBER(heads), KILN_ONNX_NUMBER(g->size) };
    return kiln_onnx_step_reshape(&g->s, x, extents, 4);
}

/* Operand @i; of packed operands, the heads from @first on. */
static KilnValue *
part(const Group *g, uint32_t i, int64_t first, int64_t heads)
{
    KilnValue *x = g->call->operands[kiln_onnx_operand(g->call, KEY) ? i : QUERY];
    if (!kiln_onnx_operand(g->call, KEY))
        x = kiln_onnx_step_slice(&g->s, x, 2, first * g->size, (first + heads) * g->size, 1);
    return with_heads(g, x, heads);
}

static KilnValue *
normalized(const Group *g, KilnValue *x, uint32_t i)
{
    const KilnAttrs_rms_normalization attrs = { .axis = -1,
                                                .epsilon = g->epsilons[i - QUERY_NORM] };
    KilnValue *scale = kiln_onnx_operand(g->call, i);
    return scale ? kiln_onnx_step2(&g->s, KILN_OP_rms_normalization, &attrs, x, scale) : x;
}

/* The first columns of operand POSITIONS, one for each row. */
static KilnValue *
first_columns(const Group *g)
{
    const KilnOnnxSteps *s = &g->s;
    KilnValue *ids = g->call->operands[POSITIONS], *x = g->call->operands[QUERY];
    const KilnOnnxExtent shape[] = { KILN_ONNX_DIM(x, 0), KILN_ONNX_DIM(x, 1) };
    if (kiln_type_equal_dims(&ids->type, 0, &x->type, 0) &&
        kiln_type_equal_dims(&ids->type, 1, &x->type, 1))
        return ids;
    ids = kiln_onnx_step_slice_to(s, ids, 1, 0, kiln_onnx_step_extents(s, x, 1));
    return kiln_onnx_step_reshape(s, ids, shape, 2);
}

/* Where the operand says that the rows stand; those of a first prompt count from its first number.
 */
static KilnValue *
stated_positions(const Group *g)
{
    const KilnOnnxSteps *s = &g->s;
    static const int64_t front[] = { 0 };
    KilnValue *ids = first_columns(g), *x = g->call->operands[QUERY];
    if (kiln_onnx_operand(g->call, ROWS))
        return ids;
    KilnValue *rows = kiln_onnx_step_extent(s, x, 1);
    KilnValue *prompt = kiln_onnx_step2(s, KILN_OP_equal, NULL, rows, g->tokens.total);
    KilnValue *first =
        kiln_onnx_step_slice(s, kiln_onnx_step_slice(s, ids, 0, 0, 1, 1), 1, 0, 1, 1);
    KilnValue *counted = kiln_onnx_step_add(
        s, first, kiln_onnx_step_unsqueeze(s, kiln_onnx_count_to(s, rows), front, 1));
    return kiln_onnx_step3(s, KILN_OP_where, NULL, prompt, counted, ids);
}

/* Rows behind the last token are padding. They take its place, so that tables are long enough. */
static KilnValue *
counted_positions(const Group *g)
{
    static const int64_t last[] = { 1 };
    const KilnOnnxSteps *s = &g->s;
    KilnValue *at = kiln_onnx_token_positions(s, &g->tokens, g->call->operands[QUERY]);
    KilnValue *end = kiln_onnx_step_sub_number(s, g->tokens.lengths, 1);
    end = kiln_onnx_step_at_least(s, end, 0);
    return kiln_onnx_step2(s, KILN_OP_min, NULL, at, kiln_onnx_step_unsqueeze(s, end, last, 1));
}

static gboolean
turn(Group *g, GError **error)
{
    const int64_t pairs = g->call->operands[COS]->type.dims[1];
    if (pairs < 0)
        return kiln_onnx_unsupported(g->call, error, "an unknown number of angles");
    KilnOnnxRotary r = {
        .s = g->s, .size = g->size, .turned = 2 * pairs, .interleaved = g->interleaved
    };
    if (!kiln_onnx_rotary_check(&r, error))
        return FALSE;
    KilnValue *at =
        kiln_onnx_operand(g->call, POSITIONS) ? stated_positions(g) : counted_positions(g);
    if (kiln_onnx_operand(g->call, POSITIONS))
        at = kiln_onnx_step_from_front(&g->s, g->call->operands[COS], 0, at);
    if (!at)
        return FALSE;
    r.cos = kiln_onnx_rotary_angles(&g->s, g->call->operands[COS], at, 2);
    r.sin = kiln_onnx_rotary_angles(&g->s, g->call->operands[SIN], at, 2);
    g->q = kiln_onnx_step_rotate(&r, g->q);
    g->k = kiln_onnx_step_rotate(&r, g->k);
    return g->q && g->k;
}

static KilnValue *
heads_first(const Group *g, KilnValue *x)
{
    static const int64_t perm[] = { 0, 2, 1, 3 };
    return kiln_onnx_step_transpose(&g->s, x, perm, 4);
}

/* Results 1 and 2 are all keys and values. */
static gboolean
find_tensors(Group *g, GError **error)
{
    g->q = part(g, QUERY, 0, g->heads);
    g->k = part(g, KEY, g->heads, g->kv_heads);
    g->v = part(g, VALUE, g->heads + g->kv_heads, g->kv_heads);
    if (!g->q || !g->k || !g->v || !(g->q = normalized(g, g->q, QUERY_NORM)) ||
        !(g->k = normalized(g, g->k, KEY_NORM)) || (g->turns && !turn(g, error)))
        return FALSE;
    g->q = heads_first(g, g->q);
    g->k = kiln_onnx_into_cache(&g->s, &g->tokens, PAST_KEY, heads_first(g, g->k));
    g->v = kiln_onnx_into_cache(&g->s, &g->tokens, PAST_VALUE, heads_first(g, g->v));
    return g->q && g->k && g->v &&
           (g->call->n_results < 2 || kiln_onnx_set_result(g->call, 1, g->k)) &&
           (g->call->n_results < 3 || kiln_onnx_set_result(g->call, 2, g->v));
}

/* --- what a row sees --- */

/* [batch, 1, 1, rows, 1]: the places of the rows. Without a cache, all samples begin at 0. */
static KilnValue *
row_places(const Group *g)
{
    static const int64_t axes[] = { 1, 2, 4 };
    return kiln_onnx_step_unsqueeze(
        &g->s, kiln_onnx_token_positions(&g->s, &g->tokens, g->call->operands[QUERY]), axes, 3);
}

static KilnValue *
row_places_of_prompt(const Group *g)
{
    static const int64_t axes[] = { 1 };
    return kiln_onnx_step_unsqueeze(
        &g->s, kiln_onnx_count_to(&g->s, kiln_onnx_step_extent(&g->s, g->q, 2)), axes, 1);
}

static gboolean
find_visible(Group *g)
{
    static const int64_t axes[] = { 1, 2, 3, 4 };
    const KilnOnnxSteps *s = &g->s;
    KilnValue *keys = kiln_onnx_count_to(s, kiln_onnx_step_extent(s, g->k, 2));
    if (!g->causal) {
        g->visible = kiln_onnx_step2(s, KILN_OP_less, NULL, keys,
                                     kiln_onnx_step_unsqueeze(s, g->tokens.lengths, axes, 4));
        return g->visible != NULL;
    }
    KilnValue *rows =
        kiln_onnx_operand(g->call, PAST_KEY) ? row_places(g) : row_places_of_prompt(g);
    g->visible = kiln_onnx_step2(s, KILN_OP_less_or_equal, NULL, keys, rows);
    if (g->window > 0 && g->visible) {
        KilnValue *first = kiln_onnx_step_sub_number(s, rows, (double)g->window);
        KilnValue *near = kiln_onnx_step2(s, KILN_OP_greater, NULL, keys, first);
        g->visible = kiln_onnx_step2(s, KILN_OP_and, NULL, g->visible, near);
    }
    return g->visible != NULL;
}

/* --- blocks of SparseAttention --- */

/* Blocks of @at, whose numbers are places of tokens. Those behind the last block count as it. */
static KilnValue *
blocks_of(const Group *g, KilnValue *at)
{
    const KilnType *type = &g->layouts->type;
    at = kiln_onnx_step_div_number(&g->s, at, (double)g->block);
    return kiln_onnx_step_number(&g->s, KILN_OP_min, at, (double)(type->dims[1] - 1));
}

/* Heads take the layouts in turns. Narrows what rows see. */
static gboolean
narrow_to_blocks(Group *g)
{
    static const int64_t perm[] = { 1, 0, 2, 3 }, front[] = { 1 };
    const KilnOnnxSteps *s = &g->s;
    const int64_t n = g->layouts->type.dims[0];
    KilnValue *layouts = kiln_onnx_helper(g->call, "layouts", g->layouts);
    KilnValue *rows = kiln_onnx_token_positions(s, &g->tokens, g->call->operands[QUERY]);
    KilnValue *keys = kiln_onnx_count_to(s, kiln_onnx_step_extent(s, g->k, 2));
    KilnValue *seen = kiln_onnx_step_gather(s, layouts, blocks_of(g, rows), 1);
    seen = kiln_onnx_step_gather(s, seen, blocks_of(g, keys), 3);
    seen = kiln_onnx_step_unsqueeze(s, kiln_onnx_step_transpose(s, seen, perm, 4), front, 1);
    if (!seen)
        return FALSE;
    const KilnOnnxExtent each[] = { KILN_ONNX_DIM(seen, 0), KILN_ONNX_NUMBER(g->heads / n),
                                    KILN_ONNX_NUMBER(n), KILN_ONNX_DIM(seen, 3),
                                    KILN_ONNX_DIM(seen, 4) };
    const KilnOnnxExtent grouped[] = { KILN_ONNX_DIM(seen, 0), KILN_ONNX_NUMBER(g->kv_heads),
                                       KILN_ONNX_NUMBER(g->heads / g->kv_heads),
                                       KILN_ONNX_DIM(seen, 3), KILN_ONNX_DIM(seen, 4) };
    if (n > 1)
        seen = kiln_onnx_step_reshape(s, kiln_onnx_step_expand(s, seen, each, 5), grouped, 5);
    g->visible = kiln_onnx_step2(s, KILN_OP_and, NULL, g->visible, seen);
    return g->visible != NULL;
}

/* The bias of the operator, [1 or batch, 1 or heads, rows, tokens], with dims for both kinds of
 * heads. The cache may have more rows than there are tokens. */
static KilnValue *
stated_bias(const Group *g)
{
    const KilnOnnxSteps *s = &g->s;
    KilnValue *bias = g->call->operands[BIAS];
    const int64_t heads = bias->type.dims[1];
    if (heads < 0) {
        kiln_onnx_unsupported(g->call, s->error, "a bias of an unknown number of heads");
        return NULL;
    }
    bias = kiln_onnx_as_long(s, bias, 3, g->k, 2);
    if (!bias)
        return NULL;
    const KilnOnnxExtent extents[] = { KILN_ONNX_DIM(bias, 0),
                                       KILN_ONNX_NUMBER(heads == 1 ? 1 : g->kv_heads),
                                       KILN_ONNX_NUMBER(heads == 1 ? 1 : g->heads / g->kv_heads),
                                       KILN_ONNX_DIM(bias, 2), KILN_ONNX_DIM(bias, 3) };
    return kiln_onnx_step_reshape(s, bias, extents, 5);
}

static KilnValue *
bias_of(const Group *g)
{
    KilnValue *hidden = kiln_onnx_step3(&g->s, KILN_OP_where, NULL, g->visible,
                                        kiln_onnx_scalar(g->call, "seen", g->dtype, 0),
                                        kiln_onnx_scalar(g->call, "hidden", g->dtype, -INFINITY));
    return kiln_onnx_operand(g->call, BIAS) && hidden
               ? kiln_onnx_step_add(&g->s, hidden, stated_bias(g))
               : hidden;
}

/* --- attention --- */

static KilnValue *
scores_of(const Group *g)
{
    static const int64_t swap[] = { 0, 1, 2, 4, 3 }, group[] = { 2 };
    const KilnOnnxSteps *s = &g->s;
    const KilnOnnxExtent extents[] = { KILN_ONNX_DIM(g->q, 0), KILN_ONNX_NUMBER(g->kv_heads),
                                       KILN_ONNX_NUMBER(g->heads / g->kv_heads),
                                       KILN_ONNX_DIM(g->q, 2), KILN_ONNX_NUMBER(g->size) };
    KilnValue *q = kiln_onnx_step_reshape(s, g->q, extents, 5);
    KilnValue *k =
        kiln_onnx_step_transpose(s, kiln_onnx_step_unsqueeze(s, g->k, group, 1), swap, 5);
    KilnValue *scores =
        kiln_onnx_step_mul_number(s, kiln_onnx_step_matmul(s, q, k), (double)g->scale);
    if (g->softcap > 0)
        scores = kiln_onnx_step_capped(s, scores, (double)g->softcap);
    return kiln_onnx_step_add(s, scores, bias_of(g));
}

/* The score of the sink for each row, [batch, heads, heads, rows, 1]. */
static KilnValue *
sink_of(const Group *g, KilnValue *scores)
{
    const KilnOnnxSteps *s = &g->s;
    KilnValue *sink = kiln_onnx_operand(g->call, SINK);
    const KilnOnnxExtent heads[] = { KILN_ONNX_NUMBER(g->kv_heads),
                                     KILN_ONNX_NUMBER(g->heads / g->kv_heads), KILN_ONNX_NUMBER(1),
                                     KILN_ONNX_NUMBER(1) };
    const KilnOnnxExtent rows[] = { KILN_ONNX_DIM(scores, 0), KILN_ONNX_NUMBER(g->kv_heads),
                                    KILN_ONNX_NUMBER(g->heads / g->kv_heads),
                                    KILN_ONNX_DIM(scores, 3), KILN_ONNX_NUMBER(1) };
    sink = sink ? kiln_onnx_step_reshape(s, sink, heads, 4)
                : kiln_onnx_scalar(g->call, "sink", g->dtype, 0);
    return kiln_onnx_step_expand(s, sink, rows, 5);
}

static KilnValue *
softmax_of(const Group *g, KilnValue *scores)
{
    const KilnOnnxSteps *s = &g->s;
    const KilnAttrs_softmax last = { .axis = -1 };
    const bool sink = g->smooth > 0 || kiln_onnx_operand(g->call, SINK);
    if (!scores || !sink)
        return kiln_onnx_step1(s, KILN_OP_softmax, &last, scores);
    scores = kiln_onnx_step_concat(s, scores, sink_of(g, scores), -1);
    return kiln_onnx_step_slice(s, kiln_onnx_step1(s, KILN_OP_softmax, &last, scores), -1, 0, -1,
                                1);
}

/* Sets result 3: @scores, 0 where a row does not see the key, for as many keys as there are
 * tokens. */
static gboolean
show(const Group *g, KilnValue *scores)
{
    static const int64_t front[] = { 0 };
    const KilnOnnxSteps *s = &g->s;
    KilnOnnxCall *call = g->call;
    if (call->n_results < 4)
        return TRUE;
    KilnValue *shown = kiln_onnx_step3(s, KILN_OP_where, NULL, g->visible, scores,
                                       kiln_onnx_scalar(call, "unseen", g->dtype, 0));
    if (!shown)
        return FALSE;
    const KilnOnnxExtent extents[] = { KILN_ONNX_DIM(shown, 0), KILN_ONNX_NUMBER(g->heads),
                                       KILN_ONNX_DIM(shown, 3), KILN_ONNX_DIM(shown, 4) };
    shown = kiln_onnx_step_reshape(s, shown, extents, 4);
    if (kiln_onnx_operand(call, PAST_KEY)) {
        KilnValue *end = kiln_onnx_step_unsqueeze(s, g->tokens.total, front, 1);
        shown = kiln_onnx_step_slice_to(s, shown, 3, 0, end);
    }
    return kiln_onnx_set_result(call, 3, shown);
}

/* [batch, rows, hidden] */
static KilnValue *
attend(const Group *g)
{
    static const int64_t group[] = { 2 }, back[] = { 0, 2, 1, 3 };
    const KilnOnnxSteps *s = &g->s;
    KilnValue *scores = scores_of(g);
    if (!scores || (g->shown == 1 && !show(g, scores)))
        return NULL;
    KilnValue *shares = softmax_of(g, scores);
    if (!shares || (g->shown == 2 && !show(g, shares)))
        return NULL;
    KilnValue *y = kiln_onnx_step_matmul(s, shares, kiln_onnx_step_unsqueeze(s, g->v, group, 1));
    if (!y)
        return NULL;
    const KilnOnnxExtent heads[] = { KILN_ONNX_DIM(y, 0), KILN_ONNX_NUMBER(g->heads),
                                     KILN_ONNX_DIM(y, 3), KILN_ONNX_NUMBER(g->size) };
    const KilnOnnxExtent flat[] = { KILN_ONNX_DIM(y, 0), KILN_ONNX_DIM(y, 3),
                                    KILN_ONNX_NUMBER(g->heads * g->size) };
    y = kiln_onnx_step_transpose(s, kiln_onnx_step_reshape(s, y, heads, 4), back, 4);
    return kiln_onnx_step_reshape(s, y, flat, 3);
}

gboolean
kiln_onnx_convert_group_query_attention(KilnOnnxCall *call, GError **error)
{
    KilnValue *query = kiln_onnx_need(call, QUERY, error);
    if (!query)
        return FALSE;
    Group g = {
        .s = { call, error }, .call = call, .dtype = query->type.dtype, .causal = 1, .window = -1
    };
    return take_attrs(&g, error) && check_attrs(&g, error) && check_operands(&g, error) &&
           find_size(&g, error) && check_shapes(&g, error) &&
           kiln_onnx_read_tokens(&g.s, query, LENGTHS, 1, TOTAL, ROWS, &g.tokens) &&
           find_tensors(&g, error) && find_visible(&g) && kiln_onnx_set_result(call, 0, attend(&g));
}

/* --- SparseAttention --- */

enum {
    MAX_BLOCKS = 4096
};

/* The numbers of operand @i, a constant of rank 2. NULL: it failed. */
static GBytes *
known_numbers(KilnOnnxCall *call, uint32_t i, GError **error)
{
    const KilnValue *value = kiln_onnx_need(call, i, error);
    const KilnConstant *constant = value ? kiln_value_constant(value) : NULL;
    if (!value)
        return NULL;
    if (!constant || constant->type.dtype != KILN_DTYPE_i32 || constant->type.rank != 2) {
        kiln_onnx_unsupported(call, error, "operand %u: blocks that are not known", i);
        return NULL;
    }
    return kiln_tensor_view(constant->tensor, error);
}

/* Writes 1 for the blocks of keys that block @row of layout @layout sees. */
static gboolean
mark_row(const Group *g, const int32_t *starts, const int32_t *columns, int64_t n_columns,
         uint8_t *out, int64_t n, GError **error)
{
    for (int64_t i = starts[0]; i < starts[1]; i++) {
        if (i < 0 || i >= n_columns || columns[i] < 0 || columns[i] >= n)
            return kiln_onnx_throw(g->call, KILN_ERROR_INVALID, error,
                                   "expected blocks from 0 to %" G_GINT64_FORMAT
                                   ", found others in operands 5 and 6",
                                   n - 1);
        out[columns[i]] = 1;
    }
    return TRUE;
}

/* Operands 5 and 6 list the blocks that each block of rows sees, row after row. */
static gboolean
find_layouts(Group *g, GError **error)
{
    g_autoptr(GBytes) rows = known_numbers(g->call, 5, error);
    g_autoptr(GBytes) columns = rows ? known_numbers(g->call, 6, error) : NULL;
    if (!columns)
        return FALSE;
    const KilnType *a = &g->call->operands[5]->type, *b = &g->call->operands[6]->type;
    const int64_t layouts = a->dims[0], n = a->dims[1] - 1, width = b->dims[1];
    if (layouts < 1 || n < 1 || n > MAX_BLOCKS || b->dims[0] != layouts || g->heads % layouts != 0)
        return kiln_onnx_throw(g->call, KILN_ERROR_SHAPE, error,
                               "operands 5 and 6: expected the same number of layouts, a divisor "
                               "of %" G_GINT64_FORMAT " heads, found %" G_GINT64_FORMAT
                               " and %" G_GINT64_FORMAT,
                               g->heads, layouts, b->dims[0]);
    void *data;
    const KilnType type = kiln_type_make(KILN_DTYPE_bool, 3, (int64_t[]){ layouts, n, n });
    g_autoptr(GBytes) bytes = kiln_bytes_new((size_t)(layouts * n * n), 1, &data, error);
    if (!bytes)
        return FALSE;
    memset(data, 0, (size_t)(layouts * n * n));
    for (int64_t i = 0; i < layouts * n; i++) {
        const int64_t layout = i / n;
        const int32_t *starts = (const int32_t *)g_bytes_get_data(rows, NULL) + i + layout;
        const int32_t *numbers = (const int32_t *)g_bytes_get_data(columns, NULL) + layout * width;
        if (!mark_row(g, starts, numbers, width, (uint8_t *)data + i * n, n, error))
            return FALSE;
    }
    g->layouts = kiln_tensor_new_data(&type, bytes, error);
    return g->layouts != NULL;
}

static gboolean
take_sparse_attrs(Group *g, GError **error)
{
    KilnOnnxCall *call = g->call;
    if (!kiln_onnx_take_int(call, "num_heads", &g->heads, error) ||
        !kiln_onnx_take_int(call, "kv_num_heads", &g->kv_heads, error) ||
        !kiln_onnx_take_flag(call, "do_rotary", &g->turns, error) ||
        !kiln_onnx_take_flag(call, "rotary_interleaved", &g->interleaved, error) ||
        !kiln_onnx_take_float(call, "scale", &g->scale, error) ||
        !kiln_onnx_take_int(call, "sparse_block_size", &g->block, error))
        return FALSE;
    return (g->block >= 1 && g->block <= INT32_MAX) ||
           kiln_onnx_throw(call, KILN_ERROR_INVALID, error,
                           "sparse_block_size: expected 1 or more, found %" G_GINT64_FORMAT,
                           g->block);
}

/* (query, key, value, past key, past value, rows of blocks, columns of blocks, total length,
 * lengths of samples, cosines, sines): the operands become those of GroupQueryAttention. */
gboolean
kiln_onnx_convert_sparse_attention(KilnOnnxCall *call, GError **error)
{
    KilnValue *query = kiln_onnx_need(call, QUERY, error);
    if (!query || !kiln_onnx_need(call, PAST_KEY, error) ||
        !kiln_onnx_need(call, PAST_VALUE, error))
        return FALSE;
    Group g = {
        .s = { call, error }, .call = call, .dtype = query->type.dtype, .causal = 1, .window = -1
    };
    if (!take_sparse_attrs(&g, error) || !check_attrs(&g, error) || !find_layouts(&g, error))
        return FALSE;
    KilnValue *operands[] = { kiln_onnx_operand(call, 8), kiln_onnx_operand(call, 7),
                              kiln_onnx_operand(call, 9), kiln_onnx_operand(call, 10) };
    for (uint32_t i = 0; i < 4; i++)
        kiln_onnx_set_operand(call, LENGTHS + i, operands[i]);
    call->n_operands = SIN + 1;
    const gboolean good = check_operands(&g, error) && find_size(&g, error) &&
                          check_shapes(&g, error) &&
                          kiln_onnx_read_tokens(&g.s, query, LENGTHS, 0, TOTAL, ROWS, &g.tokens) &&
                          find_tensors(&g, error) && find_visible(&g) && narrow_to_blocks(&g);
    return good && kiln_onnx_set_result(call, 0, attend(&g));
}
