/* SPDX-License-Identifier: Apache-2.0 */
/* The block size of com.microsoft.nchwc. ONNX Runtime orders filters for the machine that writes
 * the file, in blocks of 8 or 16 channels, and does not say which. Kiln finds out:
 *
 *   1. by numbers of channels that only one size allows,
 *   2. by the weights. Those of one output channel have a scale of their own. The likelihood of all
 *      filters is greater under the order that they have: sum of log(mean square) over channels.
 *
 * All filters of a model have the same order. */
#include "graph/onnx/contrib/nchwc.h"

#include "graph/base/budget.h"
#include "graph/graph.h"
#include "graph/onnx/convert.h"
#include "graph/onnx/model.h"
#include "graph/onnx/scope.h"
#include "graph/onnx/tensor.h"

#include <math.h>
#include <string.h>

/* The least mean square of a channel: those that fill up a block are 0. */
#define LEAST_SQUARE 1e-30
/* How much the likelihoods must differ, for the root of the number of channels. Weights without
 * scales of their own differ by about 1. */
#define DECISIVE 16

typedef struct {
    KilnOnnxCall *call;
    GHashTable *weights;   /* name → KilnOnnxTensor */
    GHashTable *producers; /* name → KilnOnnxNode */
    bool excluded[2];      /* blocks of 8, of 16 */
    double likelihood;     /* how much greater that of 16 is */
    int64_t channels;
} Search;

static bool
is_nchwc(const KilnOnnxNode *node, const char *op)
{
    return g_strcmp0(node->proto->domain, "com.microsoft.nchwc") == 0 &&
           (!op || strcmp(node->proto->op_type, op) == 0);
}

static int64_t
int_attr(const KilnOnnxNode *node, const char *name, int64_t otherwise)
{
    for (size_t i = 0; i < node->n_attrs; i++) {
        if (strcmp(node->attrs[i].proto->name, name) == 0)
            return node->attrs[i].proto->i;
    }
    return otherwise;
}

static void
list_names(Search *search, const KilnOnnxGraph *graph)
{
    for (guint i = 0; i < graph->initializers->len; i++) {
        KilnOnnxTensor *tensor = &g_array_index(graph->initializers, KilnOnnxTensor, i);
        if (tensor->proto->name)
            g_hash_table_insert(search->weights, tensor->proto->name, tensor);
    }
    for (guint i = 0; i < graph->nodes->len; i++) {
        KilnOnnxNode *node = &g_array_index(graph->nodes, KilnOnnxNode, i);
        for (size_t k = 0; k < node->proto->n_output; k++)
            g_hash_table_insert(search->producers, node->proto->output[k], node);
    }
}

/* The filter of a convolution; NULL where it is no initializer of rank 3 or more. */
static const KilnOnnxTensor *
filter_of(const Search *search, const KilnOnnxNode *node)
{
    const KilnOnnxTensor *tensor = node->proto->n_input > 1
                                       ? g_hash_table_lookup(search->weights, node->proto->input[1])
                                       : NULL;
    return tensor && tensor->proto->n_dims >= 3 ? tensor : NULL;
}

/* --- numbers of channels --- */

/* Channels are filled up to whole blocks. Where there are fewer than a block, they stand as they
 * were. */
static void
look_at_filter(Search *search, const KilnOnnxNode *node, const KilnOnnxTensor *filter)
{
    const int64_t out = filter->proto->dims[0], in = filter->proto->dims[1];
    const bool one_group = int_attr(node, "group", 1) == 1;
    search->excluded[0] |= out % 8 != 0 || (one_group && in >= 8 && in % 8 != 0);
    search->excluded[1] |= out % 16 != 0 || (one_group && in >= 16 && in % 16 != 0);
}

/* The convolution that gives @name its channels. @left bounds the way. */
static const KilnOnnxNode *
source_of(const Search *search, const char *name)
{
    for (int left = 16; left > 0; left--) {
        const KilnOnnxNode *node = g_hash_table_lookup(search->producers, name);
        if (!node || !is_nchwc(node, NULL) || is_nchwc(node, "Conv") || node->proto->n_input < 1)
            return node && is_nchwc(node, "Conv") ? node : NULL;
        name = node->proto->input[0];
    }
    return NULL;
}

static void
look_at_channels(Search *search, const KilnOnnxNode *node)
{
    const int64_t channels = int_attr(node, "channels", 0);
    const KilnOnnxNode *source =
        node->proto->n_input ? source_of(search, node->proto->input[0]) : NULL;
    const KilnOnnxTensor *filter = source ? filter_of(search, source) : NULL;
    if (!filter || channels < 1 || channels > filter->proto->dims[0])
        return;
    for (int i = 0; i < 2; i++)
        search->excluded[i] |= filter->proto->dims[0] - channels >= (int64_t)8 << i;
}

/* --- weights --- */

/* Adds up the logarithms of the mean squares of channels, if @block of them stand side by side in
 * the @each × @channels weights at @w. */
static double
scales_of(const float *w, int64_t channels, int64_t each, int64_t block)
{
    double sum = 0;
    for (int64_t c = 0; c < channels; c++) {
        const float *first = w + c / block * block * each + c % block;
        double square = 0;
        for (int64_t i = 0; i < each; i++)
            square += (double)first[i * block] * (double)first[i * block];
        sum += log(fmax(square / (double)each, LEAST_SQUARE));
    }
    return sum * (double)each / 2;
}

static gboolean
weigh(Search *search, const KilnOnnxTensor *filter, GError **error)
{
    g_autoptr(KilnTensor) tensor =
        kiln_onnx_tensor_load(filter, &search->call->import->files, error);
    g_autoptr(GBytes) bytes = tensor ? kiln_tensor_view(tensor, error) : NULL;
    if (!bytes)
        return FALSE;
    const int64_t channels = tensor->type.dims[0];
    const int64_t all = (int64_t)(g_bytes_get_size(bytes) / sizeof(float));
    if (tensor->type.dtype != KILN_DTYPE_f32 || channels < 16 || channels % 16 != 0 || !all)
        return TRUE;
    const float *w = g_bytes_get_data(bytes, NULL);
    search->likelihood +=
        scales_of(w, channels, all / channels, 8) - scales_of(w, channels, all / channels, 16);
    search->channels += channels;
    return kiln_checkpoint(error);
}

/* --- the search --- */

static gboolean
look_at_all(Search *search, GError **error)
{
    const GArray *nodes = search->call->scope->graph->nodes;
    for (guint i = 0; i < nodes->len; i++) {
        const KilnOnnxNode *node = &g_array_index(nodes, KilnOnnxNode, i);
        const KilnOnnxTensor *filter = is_nchwc(node, "Conv") ? filter_of(search, node) : NULL;
        if (filter)
            look_at_filter(search, node, filter);
        else if (is_nchwc(node, "ReorderOutput"))
            look_at_channels(search, node);
    }
    for (guint i = 0; i < nodes->len && !search->excluded[0] && !search->excluded[1]; i++) {
        const KilnOnnxNode *node = &g_array_index(nodes, KilnOnnxNode, i);
        const KilnOnnxTensor *filter = is_nchwc(node, "Conv") ? filter_of(search, node) : NULL;
        if (filter && !weigh(search, filter, error))
            return FALSE;
    }
    return TRUE;
}

/* 8 or 16; 0: not known. */
static int64_t
decided(const Search *search)
{
    if (search->excluded[0] != search->excluded[1])
        return search->excluded[0] ? 16 : 8;
    const double limit = DECISIVE * sqrt((double)search->channels);
    if (search->excluded[0] || !(fabs(search->likelihood) > limit))
        return 0;
    return search->likelihood > 0 ? 16 : 8;
}

int64_t
kiln_onnx_nchwc_block(KilnOnnxCall *call, GError **error)
{
    if (!call->import->nchwc_block) {
        g_autoptr(GHashTable) weights = g_hash_table_new(g_str_hash, g_str_equal);
        g_autoptr(GHashTable) producers = g_hash_table_new(g_str_hash, g_str_equal);
        Search search = { .call = call, .weights = weights, .producers = producers };
        list_names(&search, call->scope->graph);
        if (!look_at_all(&search, error))
            return 0;
        call->import->nchwc_block = decided(&search);
    }
    if (!call->import->nchwc_block)
        kiln_onnx_unsupported(call, error,
                              "neither shapes nor weights tell whether blocks have 8 or 16 "
                              "channels");
    return call->import->nchwc_block;
}
