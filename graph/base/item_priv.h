/* SPDX-License-Identifier: Apache-2.0 */
/* What items and the heap that owns them share. */
#ifndef KILN_GRAPH_BASE_ITEM_PRIV_H
#define KILN_GRAPH_BASE_ITEM_PRIV_H

#include "graph/texts.h"

typedef struct KilnItemList KilnItemList;

/** Counts the bytes of items, which may live longer than their heap. */
typedef struct {
    gint refs;
    size_t bytes, limit; /* 0: no limit */
} KilnAccount;

KilnAccount *kiln_account_new(void);
void kiln_account_unref(KilnAccount *account);

/** The account of @heap, which borrows it out; NULL: the caller's. */
KilnAccount *kiln_text_heap_account(KilnTextHeap *heap);
/** Where the heap keeps the reason of its first failure; NULL where it has one already. */
GError **kiln_text_heap_error(KilnTextHeap *heap);

#endif
