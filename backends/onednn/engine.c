/* SPDX-License-Identifier: Apache-2.0 */
/* The library's engine, and which of its implementations Kiln takes. */
#include "backends/onednn/region.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static dnnl_engine_t engine;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The library keeps the code of this many primitives for the process. Regions keep theirs, so the
 * library's own cache is there for layers that are alike within one model. */
enum {
    DEFAULT_CAPACITY = 1024, /* of the library, where nobody sets another one */
    CAPACITY = 64
};

static void
limit_cache(void)
{
    int capacity = 0;
    bool is_set =
        getenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY") || getenv("DNNL_PRIMITIVE_CACHE_CAPACITY");
    if (!is_set && dnnl_get_primitive_cache_capacity(&capacity) == dnnl_success &&
        capacity == DEFAULT_CAPACITY)
        dnnl_set_primitive_cache_capacity(CAPACITY);
}

static void
make_engine(void)
{
    limit_cache();
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
        engine = NULL;
}

dnnl_engine_t
kiln_onednn_engine(void)
{
    pthread_once(&once, make_engine);
    return engine;
}

int64_t
kiln_onednn_block(void)
{
    unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
    return (isa & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core ? 16 : 8;
}

bool
kiln_onednn_check(dnnl_status_t status, const char *what, GError **error)
{
    if (status == dnnl_out_of_memory)
        return kiln_throw(error, KILN_ERROR_MEMORY, "oneDNN: %s: no memory", what);
    return status == dnnl_success ||
           kiln_throw(error, KILN_ERROR_UNSUPPORTED, "oneDNN: %s: status %d", what, (int)status);
}

/* Found by running about a thousand problems with 1 to 16 threads: these give other bits with other
 * numbers of threads, or are what the library does without a kernel, a hundred times slower.
 * `brgconv` chooses by the number of threads where it takes a sum up again; `brgconv_1x1` has
 * nothing to choose. `brdgmm` adds something else than the residual behind an activation. */
static const char *const denied[] = { "ref", "gemm", "inner_product", "brgconv:", "brdgmm" };

static bool
is_allowed(const char *implementation)
{
    if (g_str_has_prefix(implementation, "brgemm")) /* of an LSTM: products of blocks, no `gemm` */
        return true;
    for (size_t i = 0; i < G_N_ELEMENTS(denied); i++) {
        if (strstr(implementation, denied[i]))
            return false;
    }
    return true;
}

dnnl_primitive_desc_t
kiln_onednn_choose(const_dnnl_op_desc_t operation, const_dnnl_primitive_attr_t attr,
                   const char **out_name)
{
    dnnl_primitive_desc_iterator_t candidates;
    if (dnnl_primitive_desc_iterator_create(&candidates, operation, attr, engine, NULL) !=
        dnnl_success)
        return NULL;
    dnnl_primitive_desc_t chosen = NULL;
    do {
        dnnl_primitive_desc_t pd = dnnl_primitive_desc_iterator_fetch(candidates);
        if (!pd)
            break;
        if (dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, out_name) == dnnl_success &&
            is_allowed(*out_name))
            chosen = pd;
        else
            dnnl_primitive_desc_destroy(pd);
    } while (!chosen && dnnl_primitive_desc_iterator_next(candidates) == dnnl_success);
    dnnl_primitive_desc_iterator_destroy(candidates);
    return chosen;
}

static bool products;
static pthread_once_t products_once = PTHREAD_ONCE_INIT;

/* By one of any shape: which kernels there are depends on the instruction set. */
static void
find_products(void)
{
    KilnType square = kiln_type_make(KILN_DTYPE_f32, 2, (int64_t[]){ 64, 64 });
    dnnl_memory_desc_t plain = kiln_onednn_plain(&square), weights = plain;
    weights.format_kind = dnnl_format_kind_any;
    dnnl_matmul_desc_t op;
    const char *name;
    if (!kiln_onednn_engine() ||
        dnnl_matmul_desc_init(&op, &plain, &weights, NULL, &plain) != dnnl_success)
        return;
    dnnl_primitive_desc_t pd = kiln_onednn_choose(&op, NULL, &name);
    products = pd != NULL;
    if (pd)
        dnnl_primitive_desc_destroy(pd);
}

bool
kiln_onednn_has_products(void)
{
    pthread_once(&products_once, find_products);
    return products;
}

const char *
kiln_onednn_implementation(dnnl_primitive_desc_t pd, const char *what, GError **error)
{
    const char *name = "";
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    if (is_allowed(name))
        return name;
    kiln_throw(error, KILN_ERROR_UNSUPPORTED, "oneDNN has only %s for %s, which is not allowed",
               name, what);
    dnnl_primitive_desc_destroy(pd);
    return NULL;
}

dnnl_status_t
kiln_onednn_reorder_pd(const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to,
                       dnnl_primitive_desc_t *out)
{
    dnnl_primitive_attr_t attr;
    dnnl_status_t status = dnnl_primitive_attr_create(&attr);
    if (status != dnnl_success)
        return status;
    dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    status = dnnl_reorder_primitive_desc_create(out, from, engine, to, engine, attr);
    dnnl_primitive_attr_destroy(attr);
    return status;
}
