/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps of texts: blocks that are filled from the front. A heap that was reset has one block of all
 * bytes that it had, so that runs of one kind soon ask for no more memory. Items have memory of
 * their own. The heap lists those that it owns. */
#include "graph/texts.h"

#include "graph/base/alloc.h"
#include "graph/base/item.h"
#include "graph/base/item_priv.h"
#include "graph/error.h"

#include <pthread.h>
#include <string.h>

enum {
    FIRST_BLOCK = 16 * 1024, /* bytes */
    FIRST_ITEMS = 64,
};

typedef struct Block Block;
struct Block {
    Block *next;
    size_t size, used; /* with this head */
};

struct KilnTextHeap {
    pthread_mutex_t mutex;
    Block *blocks; /* the first is being filled */
    size_t bytes;  /* of all blocks */
    size_t limit;  /* 0: none */
    GError *error;
    KilnItem **items; /* that the heap owns, in the order in which it came to own them */
    size_t n_items, items_room;
    KilnAccount *account; /* of the items; NULL: there was none yet */
};

KilnTextHeap *
kiln_text_heap_new(void)
{
    KilnTextHeap *heap = g_new0(KilnTextHeap, 1);
    pthread_mutex_init(&heap->mutex, NULL);
    return heap;
}

static void
free_blocks(KilnTextHeap *heap)
{
    while (heap->blocks) {
        Block *next = heap->blocks->next;
        kiln_free(heap->blocks);
        heap->blocks = next;
    }
    heap->bytes = 0;
}

void
kiln_text_heap_free(KilnTextHeap *heap)
{
    if (!heap)
        return;
    free_blocks(heap);
    kiln_item_drop(heap, 0);
    kiln_free(heap->items);
    kiln_account_unref(heap->account);
    g_clear_error(&heap->error);
    pthread_mutex_destroy(&heap->mutex);
    g_free(heap);
}

void
kiln_text_heap_limit(KilnTextHeap *heap, int64_t bytes)
{
    heap->limit = (size_t)bytes;
    if (heap->account)
        heap->account->limit = heap->limit;
}

/* A block of @size bytes in front; false: there is none. */
static bool
add_block(KilnTextHeap *heap, size_t size)
{
    Block *block = NULL;
    bool fits = !heap->limit || (heap->bytes <= heap->limit && size <= heap->limit - heap->bytes);
    if (heap->error)
        return false;
    if (fits)
        block = kiln_alloc_for("strings", 1, size, &heap->error);
    else
        kiln_throw(&heap->error, KILN_ERROR_LIMIT, "strings: expected %zu bytes at most, found %zu",
                   heap->limit, heap->bytes + size);
    if (!block)
        return false;
    *block = (Block){ heap->blocks, size, sizeof *block };
    heap->blocks = block;
    heap->bytes += size;
    return true;
}

void
kiln_text_heap_reset(KilnTextHeap *heap)
{
    size_t bytes = heap->bytes;
    g_clear_error(&heap->error);
    kiln_item_drop(heap, 0);
    if (heap->blocks && heap->blocks->next) {
        free_blocks(heap);
        if (!add_block(heap, bytes))
            g_clear_error(&heap->error); /* the run asks again, for what it needs */
    }
    if (heap->blocks)
        heap->blocks->used = sizeof(Block);
}

/* @size bytes of the first block, or of a new one. */
static char *
take(KilnTextHeap *heap, size_t size)
{
    Block *block = heap->blocks;
    if (!block || block->size - block->used < size) {
        size_t least = size > SIZE_MAX / 4 ? SIZE_MAX / 2 : size + sizeof(Block);
        size_t wanted = MAX(least, MAX(heap->bytes, (size_t)FIRST_BLOCK));
        if (heap->limit && heap->bytes < heap->limit)
            wanted = MAX(least, MIN(wanted, heap->limit - heap->bytes));
        if (!add_block(heap, wanted))
            return NULL;
        block = heap->blocks;
    }
    char *memory = (char *)block + block->used;
    block->used += size;
    return memory;
}

bool
kiln_text_new(KilnTextHeap *heap, size_t length, const KilnText **out, char **out_bytes)
{
    const size_t unit = sizeof(KilnText);
    static char nothing[1];
    *out = NULL;
    *out_bytes = nothing;
    if (!length)
        return true;
    size_t size = length > SIZE_MAX / 4 ? SIZE_MAX / 2 : (2 * unit + length) / unit * unit;
    pthread_mutex_lock(&heap->mutex);
    char *memory = take(heap, size);
    pthread_mutex_unlock(&heap->mutex);
    if (!memory)
        return false;
    KilnText *text = (KilnText *)(void *)memory;
    *text = (KilnText){ memory + unit, length };
    memory[unit + length] = '\0';
    *out = text;
    *out_bytes = memory + unit;
    return true;
}

bool
kiln_text_new_copy(KilnTextHeap *heap, const char *text, size_t length, const KilnText **out)
{
    char *bytes;
    if (!kiln_text_new(heap, length, out, &bytes))
        return false;
    if (length)
        memcpy(bytes, text, length);
    return true;
}

GError *
kiln_text_heap_take_error(KilnTextHeap *heap)
{
    return heap ? g_steal_pointer(&heap->error) : NULL;
}

/* --- items --- */

KilnAccount *
kiln_text_heap_account(KilnTextHeap *heap)
{
    if (heap && !heap->account) {
        heap->account = kiln_account_new();
        heap->account->limit = heap->limit;
    }
    return heap ? heap->account : NULL;
}

GError **
kiln_text_heap_error(KilnTextHeap *heap)
{
    return heap && !heap->error ? &heap->error : NULL;
}

size_t
kiln_item_mark(const KilnTextHeap *heap)
{
    return heap ? heap->n_items : 0;
}

void
kiln_item_drop(KilnTextHeap *heap, size_t mark)
{
    while (heap && heap->n_items > mark)
        kiln_item_unref(heap->items[--heap->n_items]);
}

bool
kiln_item_give(KilnTextHeap *heap, KilnItem *item)
{
    if (heap->n_items == heap->items_room) {
        size_t room = heap->items_room ? 2 * heap->items_room : FIRST_ITEMS;
        KilnItem **items =
            kiln_alloc_for("a list of items", room, sizeof(KilnItem *), kiln_text_heap_error(heap));
        if (!items)
            return false;
        if (heap->n_items)
            memcpy(items, heap->items, heap->n_items * sizeof(KilnItem *));
        kiln_free(heap->items);
        heap->items = items;
        heap->items_room = room;
    }
    heap->items[heap->n_items++] = item;
    return true;
}
