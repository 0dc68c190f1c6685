/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/base/item.h"

#include "graph/base/alloc.h"
#include "graph/base/item_priv.h"
#include "graph/error.h"

#include <string.h>

enum {
    FIRST_ROOM = 8 /* items */
};

/* Items that sequences have parts of. Those behind `used` are not there yet. */
struct KilnItemList {
    gint refs;
    size_t room, used;
    KilnItem *items[];
};

struct KilnItem {
    gint refs;
    KilnDType dtype;
    int rank;
    int64_t dims[KILN_MAX_RANK];
    void *data;         /* of a tensor */
    GBytes *holder;     /* of the texts of a tensor, and of its elements then */
    size_t bytes;       /* of the elements */
    KilnItemList *list; /* of other items; NULL: they have none */
    size_t first, n;
    KilnAccount *account; /* counts @charged bytes; NULL: nobody does */
    size_t charged;
};

/* --- accounts --- */

KilnAccount *
kiln_account_new(void)
{
    KilnAccount *account = g_new0(KilnAccount, 1);
    account->refs = 1;
    return account;
}

void
kiln_account_unref(KilnAccount *account)
{
    if (account && g_atomic_int_dec_and_test(&account->refs))
        g_free(account);
}

static bool
charge(KilnAccount *account, size_t bytes, GError **error)
{
    if (!account)
        return true;
    size_t before = __atomic_fetch_add(&account->bytes, bytes, __ATOMIC_RELAXED);
    if (account->limit && (bytes > account->limit || before > account->limit - bytes)) {
        __atomic_fetch_sub(&account->bytes, bytes, __ATOMIC_RELAXED);
        return kiln_throw(error, KILN_ERROR_LIMIT,
                          "sequences: expected %zu bytes at most, found %zu", account->limit,
                          before + bytes);
    }
    return true;
}

static void
discharge(KilnAccount *account, size_t bytes)
{
    if (account)
        __atomic_fetch_sub(&account->bytes, bytes, __ATOMIC_RELAXED);
}

/* --- owners --- */

KilnItem *
kiln_item_ref(KilnItem *item)
{
    if (item)
        g_atomic_int_inc(&item->refs);
    return item;
}

static void
list_unref(KilnItemList *list)
{
    if (!list || !g_atomic_int_dec_and_test(&list->refs))
        return;
    for (size_t i = 0; i < list->used; i++)
        kiln_item_unref(list->items[i]);
    kiln_free(list);
}

void
kiln_item_unref(KilnItem *item)
{
    if (!item || !g_atomic_int_dec_and_test(&item->refs))
        return;
    list_unref(item->list);
    if (item->holder)
        g_bytes_unref(item->holder);
    else
        kiln_free(item->data);
    discharge(item->account, item->charged);
    kiln_account_unref(item->account);
    kiln_free(item);
}

/* --- new items, which the caller owns --- */

/* An item that takes @bytes more than itself. */
static KilnItem *
item_new(KilnAccount *account, KilnDType dtype, size_t bytes, GError **error)
{
    size_t charged = bytes <= SIZE_MAX - sizeof(KilnItem) ? bytes + sizeof(KilnItem) : SIZE_MAX;
    if (!charge(account, charged, error))
        return NULL;
    KilnItem *item = kiln_alloc_for("a sequence", 1, sizeof *item, error);
    if (!item) {
        discharge(account, charged);
        return NULL;
    }
    *item = (KilnItem){ .refs = 1, .dtype = dtype, .account = account, .charged = charged };
    if (account)
        g_atomic_int_inc(&account->refs);
    return item;
}

static KilnItem *
tensor_new(KilnAccount *account, const KilnType *type, GError **error)
{
    int64_t bytes = kiln_type_bytes(type);
    if (bytes < 0) {
        kiln_throw(error, KILN_ERROR_LIMIT, "a tensor of a sequence: it has too many elements");
        return NULL;
    }
    KilnItem *item = item_new(account, type->dtype, (size_t)bytes, error);
    if (!item)
        return NULL;
    item->rank = type->rank;
    memcpy(item->dims, type->dims, sizeof item->dims);
    item->bytes = (size_t)bytes;
    return item;
}

/* The same with memory for its elements. */
static KilnItem *
tensor_new_empty(KilnAccount *account, const KilnType *type, GError **error)
{
    KilnItem *item = tensor_new(account, type, error);
    if (item && !(item->data = kiln_alloc_for("a tensor of a sequence", 1, item->bytes, error)))
        g_clear_pointer(&item, kiln_item_unref);
    return item;
}

static KilnItem *
tensor_new_copy(KilnAccount *account, const KilnType *type, const void *data, GError **error)
{
    if (type->dtype != KILN_DTYPE_string) {
        KilnItem *item = tensor_new_empty(account, type, error);
        if (item && item->bytes)
            memcpy(item->data, data, item->bytes);
        return item;
    }
    KilnItem *item = tensor_new(account, type, error);
    if (!item)
        return NULL;
    item->holder = kiln_texts_copy(data, kiln_type_elements(type), error);
    if (!item->holder) {
        kiln_item_unref(item);
        return NULL;
    }
    item->data = (void *)g_bytes_get_data(item->holder, NULL);
    return item;
}

/* A list with room for @room items, the first @n of which are @items. */
static KilnItemList *
list_new(KilnItem *const *items, size_t n, size_t room, GError **error)
{
    const size_t unit = sizeof(KilnItem *);
    KilnItemList *list = kiln_alloc_for("a sequence", sizeof *list / unit + room, unit, error);
    if (!list)
        return NULL;
    list->refs = 1;
    list->room = room;
    list->used = n;
    for (size_t i = 0; i < n; i++)
        list->items[i] = kiln_item_ref(items[i]);
    return list;
}

/* An item with items @first … @first + @n - 1 of @list, which it takes over. */
static KilnItem *
list_item(KilnAccount *account, KilnDType dtype, KilnItemList *list, size_t first, size_t n,
          GError **error)
{
    KilnItem *item = item_new(account, dtype, 0, error);
    if (!item) {
        list_unref(list);
        return NULL;
    }
    item->list = list;
    item->first = first;
    item->n = n;
    return item;
}

static KilnItem *
list_item_new(KilnAccount *account, KilnDType dtype, KilnItem *const *items, size_t n,
              GError **error)
{
    KilnItemList *list = n ? list_new(items, n, n, error) : NULL;
    return list || !n ? list_item(account, dtype, list, 0, n, error) : NULL;
}

/* --- items of a run --- */

static KilnItem *
given(KilnTextHeap *heap, KilnItem *item)
{
    if (item && !kiln_item_give(heap, item))
        g_clear_pointer(&item, kiln_item_unref);
    return item;
}

void *
kiln_item_scratch(KilnTextHeap *heap, size_t n)
{
    return kiln_alloc_for("a sequence", n, sizeof(void *), kiln_text_heap_error(heap));
}

KilnItem *
kiln_item_make_tensor(KilnTextHeap *heap, const KilnType *type, void **out_data)
{
    KilnItem *item =
        tensor_new_empty(kiln_text_heap_account(heap), type, kiln_text_heap_error(heap));
    *out_data = item ? item->data : NULL;
    return given(heap, item);
}

KilnItem *
kiln_item_make_copy(KilnTextHeap *heap, const KilnType *type, const void *data)
{
    return given(heap, tensor_new_copy(kiln_text_heap_account(heap), type, data,
                                       kiln_text_heap_error(heap)));
}

KilnItem *
kiln_item_make_list(KilnTextHeap *heap, KilnDType dtype, KilnItem *const *items, size_t n)
{
    return given(heap, list_item_new(kiln_text_heap_account(heap), dtype, items, n,
                                     kiln_text_heap_error(heap)));
}

/* A list that begins with those of @sequence before @at, has @item (NULL: nothing) there, and those
 * from @from on behind it. There is room for as many again. */
static KilnItemList *
list_spliced(const KilnItem *sequence, size_t at, KilnItem *item, size_t from, GError **error)
{
    KilnItem *const *items =
        sequence && sequence->list ? sequence->list->items + sequence->first : NULL;
    size_t n = sequence ? sequence->n : 0, all = at + (item ? 1 : 0) + (n - from);
    KilnItemList *list = list_new(items, at, MAX(2 * all, (size_t)FIRST_ROOM), error);
    if (!list)
        return NULL;
    if (item)
        list->items[list->used++] = kiln_item_ref(item);
    for (size_t i = from; i < n; i++)
        list->items[list->used++] = kiln_item_ref(items[i]);
    return list;
}

/* True where the next item of @list may become the last of @sequence. Only the run that made the
 * list may say so, and it runs on one thread. */
static bool
may_append(const KilnItem *sequence, const KilnAccount *account)
{
    const KilnItemList *list = sequence ? sequence->list : NULL;
    return list && account && sequence->account == account &&
           list->used == sequence->first + sequence->n && list->used < list->room;
}

KilnItem *
kiln_item_insert(KilnTextHeap *heap, const KilnItem *sequence, size_t at, KilnItem *item)
{
    KilnAccount *account = kiln_text_heap_account(heap);
    GError **error = kiln_text_heap_error(heap);
    size_t n = sequence ? sequence->n : 0;
    if (at == n && may_append(sequence, account)) {
        KilnItemList *list = sequence->list;
        list->items[list->used] = kiln_item_ref(item);
        list->used++;
        g_atomic_int_inc(&list->refs);
        return given(heap,
                     list_item(account, KILN_DTYPE_sequence, list, sequence->first, n + 1, error));
    }
    KilnItemList *list = list_spliced(sequence, at, item, at, error);
    return list ? given(heap, list_item(account, KILN_DTYPE_sequence, list, 0, n + 1, error))
                : NULL;
}

KilnItem *
kiln_item_erase(KilnTextHeap *heap, const KilnItem *sequence, size_t at)
{
    KilnAccount *account = kiln_text_heap_account(heap);
    GError **error = kiln_text_heap_error(heap);
    KilnItemList *list = sequence->list;
    size_t n = sequence->n, first = 0;
    if (at == 0 || at == n - 1) {
        g_atomic_int_inc(&list->refs);
        first = sequence->first + (at == 0 ? 1 : 0);
    } else if (!(list = list_spliced(sequence, at, NULL, at + 1, error))) {
        return NULL;
    }
    return given(heap, list_item(account, KILN_DTYPE_sequence, list, first, n - 1, error));
}

/* --- items of a caller --- */

static bool
check_tensor(KilnDType dtype, int rank, const int64_t *dims, GError **error)
{
    if ((unsigned)dtype >= KILN_N_DTYPES || kiln_dtype_is_item(dtype))
        return kiln_throw(error, KILN_ERROR_USAGE, "an item: expected an element type, found %d",
                          (int)dtype);
    if (rank < 0 || rank > KILN_MAX_RANK)
        return kiln_throw(error, KILN_ERROR_LIMIT, "an item: expected 0 to %d dims, found %d",
                          KILN_MAX_RANK, rank);
    for (int d = 0; d < rank; d++) {
        if (dims[d] < 0)
            return kiln_throw(error, KILN_ERROR_USAGE,
                              "an item: dim %d: expected 0 or more, found %" G_GINT64_FORMAT, d,
                              dims[d]);
    }
    return true;
}

KilnItem *
kiln_item_new_tensor(KilnDType dtype, int rank, const int64_t *dims, const void *data,
                     GError **error)
{
    if (!check_tensor(dtype, rank, dims, error))
        return NULL;
    const KilnType type = kiln_type_make(dtype, rank, dims);
    if (dtype == KILN_DTYPE_string && kiln_type_elements(&type) > 0 &&
        !kiln_texts_check(data, kiln_type_elements(&type), "an item", error))
        return NULL;
    return tensor_new_copy(NULL, &type, data, error);
}

KilnItem *
kiln_item_new_sequence(KilnItem *const *items, size_t n, GError **error)
{
    for (size_t i = 0; i < n; i++) {
        KilnDType dtype = items[i]->dtype, first = items[0]->dtype;
        bool is_element = dtype == KILN_DTYPE_map || !kiln_dtype_is_item(dtype);
        if (is_element && dtype == first)
            continue;
        kiln_throw(error, KILN_ERROR_USAGE,
                   "a sequence: expected tensors of one element type, or maps, found %s behind %s",
                   kiln_dtype_name(dtype), kiln_dtype_name(first));
        return NULL;
    }
    return list_item_new(NULL, KILN_DTYPE_sequence, items, n, error);
}

KilnItem *
kiln_item_new_optional(KilnItem *item, GError **error)
{
    if (item && item->dtype == KILN_DTYPE_optional) {
        kiln_throw(error, KILN_ERROR_USAGE,
                   "an optional: expected a tensor, sequence or map, found an optional");
        return NULL;
    }
    return list_item_new(NULL, KILN_DTYPE_optional, &item, item ? 1 : 0, error);
}

KilnItem *
kiln_item_new_map(KilnItem *keys, KilnItem *values, GError **error)
{
    KilnItem *parts[] = { keys, values };
    bool keyed = keys->dtype == KILN_DTYPE_i64 || keys->dtype == KILN_DTYPE_string;
    if (keyed && !kiln_dtype_is_item(values->dtype) && keys->rank == 1 && values->rank == 1 &&
        keys->dims[0] == values->dims[0])
        return list_item_new(NULL, KILN_DTYPE_map, parts, 2, error);
    kiln_throw(error, KILN_ERROR_USAGE,
               "a map: expected keys of type i64 or string and a value for each, found %s of rank "
               "%d and %s of rank %d",
               kiln_dtype_name(keys->dtype), keys->rank, kiln_dtype_name(values->dtype),
               values->rank);
    return NULL;
}

/* --- parts --- */

KilnDType
kiln_item_dtype(const KilnItem *item)
{
    return item->dtype;
}

size_t
kiln_item_length(const KilnItem *item)
{
    return item ? item->n : 0;
}

KilnItem *
kiln_item_get(const KilnItem *item, size_t i)
{
    return item && i < item->n ? item->list->items[item->first + i] : NULL;
}

const int64_t *
kiln_item_dims(const KilnItem *item, int *out_rank)
{
    *out_rank = item->rank;
    return item->dims;
}

const void *
kiln_item_data(const KilnItem *item)
{
    return item->data;
}

size_t
kiln_item_bytes(const KilnItem *item)
{
    return item->bytes;
}

static bool
same_tensor(const KilnItem *a, const KilnItem *b)
{
    KilnText *const *x = a->data, *const *y = b->data;
    bool same =
        a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
    if (!same || a->dtype != KILN_DTYPE_string)
        return same && (!a->bytes || memcmp(a->data, b->data, a->bytes) == 0);
    for (size_t i = 0; same && i < a->bytes / sizeof *x; i++) {
        KilnText s = kiln_text_of(x[i]), t = kiln_text_of(y[i]);
        same = kiln_text_equal(&s, &t);
    }
    return same;
}

bool
kiln_item_equal(const KilnItem *a, const KilnItem *b)
{
    if (a == b)
        return true;
    if (!a || !b) /* NULL is an empty one */
        return (a ? a : b)->n == 0 && kiln_dtype_is_item((a ? a : b)->dtype);
    if (a->dtype != b->dtype || a->n != b->n)
        return false;
    if (!kiln_dtype_is_item(a->dtype))
        return same_tensor(a, b);
    for (size_t i = 0; i < a->n; i++) {
        if (!kiln_item_equal(kiln_item_get(a, i), kiln_item_get(b, i)))
            return false;
    }
    return true;
}
