/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/fold/constant_pool.h"

#include "graph/base/alloc.h"
#include "graph/base/number.h"
#include "graph/node.h"

#include <string.h>

typedef struct {
    KilnTensor *tensor;
    GBytes *array;    /* aligned elements, where something asked for them */
    uint32_t readers; /* not released yet */
    int64_t bytes;    /* that count as live */
} Buffer;

struct KilnConstantPool {
    KilnModule *module;
    GHashTable *buffers; /* KilnValue* → Buffer; looked up only */
    KilnRecycler *recycler;
    int64_t live, peak;
    guint constants; /* of the module when a rule was entered */
    bool in_rule;
};

static void
buffer_free(gpointer data)
{
    Buffer *buffer = data;
    g_clear_pointer(&buffer->tensor, kiln_tensor_free);
    g_clear_pointer(&buffer->array, g_bytes_unref);
    g_free(buffer);
}

KilnConstantPool *
kiln_constant_pool_new(KilnModule *module, KilnRecycler *recycler)
{
    KilnConstantPool *pool = g_new0(KilnConstantPool, 1);
    pool->module = module;
    pool->recycler = recycler;
    pool->buffers = g_hash_table_new_full(NULL, NULL, NULL, buffer_free);
    return pool;
}

void
kiln_constant_pool_free(KilnConstantPool *pool)
{
    if (!pool)
        return;
    g_hash_table_unref(pool->buffers);
    g_free(pool);
}

/* --- buffers --- */

static void
count(KilnConstantPool *pool, Buffer *buffer, int64_t bytes)
{
    buffer->bytes += bytes;
    pool->live += bytes;
    pool->peak = MAX(pool->peak, pool->live);
}

static Buffer *
attach(KilnConstantPool *pool, const KilnValue *value, KilnTensor *tensor)
{
    Buffer *buffer = g_new0(Buffer, 1);
    buffer->tensor = tensor;
    buffer->readers = value->n_uses;
    g_hash_table_insert(pool->buffers, (gpointer)value, buffer);
    return buffer;
}

static Buffer *
find(KilnConstantPool *pool, const KilnValue *value)
{
    Buffer *buffer = g_hash_table_lookup(pool->buffers, value);
    if (buffer)
        return buffer;
    const KilnConstant *constant = kiln_value_constant(value);
    KilnTensor *tensor =
        constant ? kiln_tensor_copy(constant->tensor) : kiln_value_known_tensor(value);
    return tensor ? attach(pool, value, tensor) : NULL;
}

const KilnTensor *
kiln_constant_pool_get(KilnConstantPool *pool, const KilnValue *value)
{
    const Buffer *buffer = find(pool, value);
    const KilnTensor *tensor = buffer ? buffer->tensor : NULL;
    return tensor && kiln_tensor_is_readable(tensor) ? tensor : NULL;
}

const void *
kiln_constant_pool_array(KilnConstantPool *pool, const KilnValue *value, GError **error)
{
    if (!kiln_constant_pool_get(pool, value))
        return kiln_throw_null(error, KILN_ERROR_UNSUPPORTED, "%s: expected a dense literal",
                               value->name);
    Buffer *buffer = find(pool, value);
    if (!buffer->array) {
        buffer->array = kiln_tensor_view(buffer->tensor, error);
        if (!buffer->array)
            return NULL;
        if (buffer->array != buffer->tensor->bytes)
            count(pool, buffer, (int64_t)g_bytes_get_size(buffer->array));
    }
    return g_bytes_get_data(buffer->array, NULL);
}

KilnTensor *
kiln_constant_pool_allocate(KilnConstantPool *pool, const KilnType *type, bool widest,
                            void **out_array, GError **error)
{
    KilnDType dtype = widest ? kiln_dtype_widest(type->dtype) : type->dtype;
    KilnType stored = kiln_type_make(dtype, type->rank, type->dims);
    int64_t size = kiln_type_bytes(&stored);
    g_autoptr(GBytes) bytes =
        kiln_bytes_recycle(pool->recycler, 1, size < 0 ? SIZE_MAX : (size_t)size, out_array, error);
    return bytes ? kiln_tensor_new_data(&stored, bytes, error) : NULL;
}

void
kiln_constant_pool_store(KilnConstantPool *pool, const KilnValue *value, KilnTensor *buffer)
{
    count(pool, attach(pool, value, buffer), kiln_tensor_storage(buffer));
}

bool
kiln_constant_pool_has(const KilnConstantPool *pool, const KilnValue *value)
{
    return value && value->def && value->def->op != KILN_OP_const &&
           g_hash_table_contains(pool->buffers, value);
}

bool
kiln_constant_pool_release(KilnConstantPool *pool, const KilnValue *value)
{
    Buffer *buffer = g_hash_table_lookup(pool->buffers, value);
    if (!buffer || (buffer->readers && --buffer->readers))
        return false;
    kiln_constant_pool_drop(pool, value);
    return true;
}

void
kiln_constant_pool_drop(KilnConstantPool *pool, const KilnValue *value)
{
    const Buffer *buffer = g_hash_table_lookup(pool->buffers, value);
    if (!buffer)
        return;
    pool->live -= buffer->bytes;
    g_hash_table_remove(pool->buffers, value);
}

KilnTensor *
kiln_constant_pool_take(KilnConstantPool *pool, const KilnValue *value, GError **error)
{
    Buffer *buffer = g_hash_table_lookup(pool->buffers, value);
    KilnTensor *tensor = buffer->tensor->type.dtype == value->type.dtype
                             ? g_steal_pointer(&buffer->tensor)
                             : kiln_tensor_convert(buffer->tensor, value->type.dtype, error);
    pool->live -= buffer->bytes;
    g_hash_table_remove(pool->buffers, value);
    return tensor;
}

KilnRecycler *
kiln_constant_pool_recycler(KilnConstantPool *pool)
{
    return pool->recycler;
}

/* --- rules --- */

void
kiln_constant_pool_enter_rule(KilnConstantPool *pool)
{
    g_assert(!pool->in_rule);
    pool->in_rule = true;
    pool->constants = pool->module->constants->len;
}

void
kiln_constant_pool_leave_rule(KilnConstantPool *pool)
{
    /* A rule stores buffers; constants are made of those that are left at the end. */
    g_assert(pool->in_rule && pool->constants == pool->module->constants->len);
    pool->in_rule = false;
}

int64_t
kiln_constant_pool_live(const KilnConstantPool *pool)
{
    return pool->live;
}

int64_t
kiln_constant_pool_peak(const KilnConstantPool *pool)
{
    return pool->peak;
}

/* --- element types --- */

KilnDType
kiln_dtype_widest(KilnDType dtype)
{
    if (kiln_dtype_is_float(dtype))
        return KILN_DTYPE_f64;
    if (!kiln_dtype_is_integer(dtype))
        return dtype;
    return kiln_dtype_is_signed(dtype) ? KILN_DTYPE_i64 : KILN_DTYPE_u64;
}

static void
convert_element(KilnDType from, const void *in, KilnDType to, void *out, int64_t i)
{
    if (kiln_dtype_is_float(to)) {
        kiln_element_store_f64(to, out, i, kiln_element_as_f64(from, in, i));
        return;
    }
    int64_t number = kiln_element_as_i64(from, in, i); /* little-endian: the low bytes wrap */
    size_t size = kiln_dtype_size(to);
    if (kiln_dtype_bits(to) < 8)
        number &= (1 << kiln_dtype_bits(to)) - 1;
    memcpy((char *)out + (size_t)i * size, &number, size);
}

KilnTensor *
kiln_tensor_convert(const KilnTensor *tensor, KilnDType dtype, GError **error)
{
    KilnType type = kiln_type_make(dtype, tensor->type.rank, tensor->type.dims);
    if (tensor->kind == KILN_TENSOR_SPLAT) {
        uint8_t element[8] = { 0 };
        convert_element(tensor->type.dtype, tensor->splat, dtype, element, 0);
        return kiln_tensor_new_splat_bits(&type, element);
    }
    g_autoptr(GBytes) from = kiln_tensor_view(tensor, error);
    void *to;
    g_autoptr(GBytes) bytes =
        from ? kiln_bytes_new(1, (size_t)kiln_type_bytes(&type), &to, error) : NULL;
    if (!bytes)
        return NULL;
    const void *data = g_bytes_get_data(from, NULL);
    for (int64_t i = 0, n = kiln_type_elements(&type); i < n; i++)
        convert_element(tensor->type.dtype, data, dtype, to, i);
    return kiln_tensor_new_data(&type, bytes, error);
}
