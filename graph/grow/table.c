/* SPDX-License-Identifier: Apache-2.0 */
/* Entries lie in a row, in the order in which they came. An index of twice their room, with linear
 * probing, says where. An entry that was removed stays in the row until the table is built again,
 * but leaves the index at once: a key that comes and goes often would be searched through all its
 * earlier entries. */
#include "graph/grow/table.h"

#include "graph/grow/reserve.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    LEAST_ROOM = 8 /* entries; a power of two */
};

typedef struct {
    gpointer key, value;
    uint32_t hash;
    bool removed;
} Entry;

struct KilnTable {
    Entry *entries;
    uint32_t *index;  /* number of the entry + 1; 0: free. 2 × room of them */
    uint32_t used;    /* entries, removed ones included */
    uint32_t removed; /* entries */
    uint32_t room;    /* 0: nothing was ever added */
    GHashFunc hash;   /* NULL: of the pointer */
    GEqualFunc equal; /* NULL: the same pointer */
    GDestroyNotify free_key, free_value;
};

static const char a_table[] = "a table";

KilnTable *
kiln_table_new_full(GHashFunc hash, GEqualFunc equal, GDestroyNotify free_key,
                    GDestroyNotify free_value)
{
    KilnTable *table = kiln_take_zeros(1, sizeof *table, a_table);
    table->hash = hash == g_direct_hash ? NULL : hash;
    table->equal = equal == g_direct_equal ? NULL : equal;
    table->free_key = free_key;
    table->free_value = free_value;
    return table;
}

KilnTable *
kiln_table_new(GHashFunc hash, GEqualFunc equal)
{
    return kiln_table_new_full(hash, equal, NULL, NULL);
}

static void
free_entry(const KilnTable *table, const Entry *entry)
{
    if (table->free_key)
        table->free_key(entry->key);
    if (table->free_value)
        table->free_value(entry->value);
}

void
kiln_table_remove_all(KilnTable *table)
{
    Entry *entries = g_steal_pointer(&table->entries);
    uint32_t used = table->used;
    g_clear_pointer(&table->index, g_free);
    table->used = table->removed = table->room = 0;
    bool frees = table->free_key || table->free_value;
    for (uint32_t i = 0; frees && i < used; i++) {
        if (!entries[i].removed)
            free_entry(table, &entries[i]);
    }
    g_free(entries);
}

void
kiln_table_unref(KilnTable *table)
{
    kiln_table_remove_all(table);
    g_free(table);
}

guint
kiln_table_size(KilnTable *table)
{
    return table->used - table->removed;
}

/* Of all bits, since the index takes the upper ones: pointers differ in few of theirs. */
static uint32_t
hash_of(const KilnTable *table, gconstpointer key)
{
    uint64_t bits = table->hash ? table->hash(key) : (uint64_t)(uintptr_t)key;
    return (uint32_t)((bits * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static uint32_t
first_slot(const KilnTable *table, uint32_t hash)
{
    return hash >> (__builtin_clz(table->room) /* 2 × room is 1 << (32 - clz) */);
}

static bool
is_same(const KilnTable *table, const Entry *entry, gconstpointer key, uint32_t hash)
{
    return entry->hash == hash &&
           (entry->key == key || (table->equal && table->equal(entry->key, key)));
}

static Entry *
find(const KilnTable *table, gconstpointer key, uint32_t hash)
{
    if (!table->room)
        return NULL;
    uint32_t mask = 2 * table->room - 1;
    for (uint32_t slot = first_slot(table, hash); table->index[slot]; slot = (slot + 1) & mask) {
        Entry *entry = &table->entries[table->index[slot] - 1];
        if (is_same(table, entry, key, hash))
            return entry;
    }
    return NULL;
}

static void
enter(KilnTable *table, uint32_t number)
{
    uint32_t mask = 2 * table->room - 1;
    uint32_t slot = first_slot(table, table->entries[number].hash);
    while (table->index[slot])
        slot = (slot + 1) & mask;
    table->index[slot] = number + 1;
}

/* Takes entry @number out of the index. Entries behind it move up if they were displaced. */
static void
leave(KilnTable *table, uint32_t number)
{
    uint32_t mask = 2 * table->room - 1;
    uint32_t hole = first_slot(table, table->entries[number].hash);
    while (table->index[hole] != number + 1)
        hole = (hole + 1) & mask;
    for (uint32_t slot = (hole + 1) & mask; table->index[slot]; slot = (slot + 1) & mask) {
        uint32_t home = first_slot(table, table->entries[table->index[slot] - 1].hash);
        if (((slot - home) & mask) < ((slot - hole) & mask))
            continue; /* its first slot lies behind the hole */
        table->index[hole] = table->index[slot];
        hole = slot;
    }
    table->index[hole] = 0;
}

/* Leaves out what was removed, and grows where little of it was. */
static void
build_again(KilnTable *table)
{
    uint32_t room = MAX(table->room, (uint32_t)LEAST_ROOM);
    if (table->used && table->removed < table->used / 2)
        room *= 2;
    if (room > UINT32_MAX / 4)
        g_error("a table of %u entries has no room for more", table->used);
    if (room != table->room) {
        table->entries = kiln_take_more(table->entries, room * sizeof *table->entries, a_table);
        g_free(table->index);
        table->index = kiln_take_zeros((size_t)room * 2, sizeof *table->index, a_table);
        table->room = room;
    } else {
        memset(table->index, 0, (size_t)room * 2 * sizeof *table->index);
    }
    uint32_t left = 0;
    for (uint32_t i = 0; i < table->used; i++) {
        if (table->entries[i].removed)
            continue;
        table->entries[left] = table->entries[i];
        enter(table, left++);
    }
    table->used = left;
    table->removed = 0;
}

static void
append(KilnTable *table, gpointer key, gpointer value, uint32_t hash)
{
    if (table->used == table->room)
        build_again(table);
    table->entries[table->used] = (Entry){ key, value, hash, false };
    enter(table, table->used++);
}

gboolean
kiln_table_insert(KilnTable *table, gpointer key, gpointer value)
{
    uint32_t hash = hash_of(table, key);
    Entry *entry = find(table, key, hash);
    if (!entry) {
        append(table, key, value, hash);
        return TRUE;
    }
    gpointer old = entry->value;
    entry->value = value;
    if (table->free_key)
        table->free_key(key);
    if (table->free_value)
        table->free_value(old);
    return FALSE;
}

gboolean
kiln_table_replace(KilnTable *table, gpointer key, gpointer value)
{
    uint32_t hash = hash_of(table, key);
    Entry *entry = find(table, key, hash);
    if (!entry) {
        append(table, key, value, hash);
        return TRUE;
    }
    Entry old = *entry;
    entry->key = key;
    entry->value = value;
    free_entry(table, &old);
    return FALSE;
}

gboolean
kiln_table_add(KilnTable *table, gpointer key)
{
    return kiln_table_replace(table, key, key);
}

gpointer
kiln_table_lookup(KilnTable *table, gconstpointer key)
{
    const Entry *entry = find(table, key, hash_of(table, key));
    return entry ? entry->value : NULL;
}

gboolean
kiln_table_lookup_extended(KilnTable *table, gconstpointer key, gpointer *out_key,
                           gpointer *out_value)
{
    const Entry *entry = find(table, key, hash_of(table, key));
    if (entry && out_key)
        *out_key = entry->key;
    if (entry && out_value)
        *out_value = entry->value;
    return entry != NULL;
}

gboolean
kiln_table_contains(KilnTable *table, gconstpointer key)
{
    return find(table, key, hash_of(table, key)) != NULL;
}

static void
drop(KilnTable *table, Entry *entry)
{
    Entry old = *entry;
    leave(table, (uint32_t)(entry - table->entries));
    entry->removed = true;
    entry->key = entry->value = NULL;
    table->removed++;
    free_entry(table, &old);
}

gboolean
kiln_table_remove(KilnTable *table, gconstpointer key)
{
    Entry *entry = find(table, key, hash_of(table, key));
    if (entry)
        drop(table, entry);
    return entry != NULL;
}

guint
kiln_table_foreach_remove(KilnTable *table, GHRFunc is_gone, gpointer data)
{
    guint n = 0;
    for (uint32_t i = 0; i < table->used; i++) {
        Entry *entry = &table->entries[i];
        if (entry->removed || !is_gone(entry->key, entry->value, data))
            continue;
        drop(table, entry);
        n++;
    }
    return n;
}

void
kiln_table_iter_init(KilnTableIter *iter, KilnTable *table)
{
    *iter = (KilnTableIter){ table, 0 };
}

gboolean
kiln_table_iter_next(KilnTableIter *iter, gpointer *key, gpointer *value)
{
    const KilnTable *table = iter->table;
    while (iter->at < table->used && table->entries[iter->at].removed)
        iter->at++;
    if (iter->at == table->used)
        return FALSE;
    const Entry *entry = &table->entries[iter->at++];
    if (key)
        *key = entry->key;
    if (value)
        *value = entry->value;
    return TRUE;
}

void
kiln_table_iter_replace(KilnTableIter *iter, gpointer value)
{
    Entry *entry = &iter->table->entries[iter->at - 1];
    gpointer old = entry->value;
    entry->value = value;
    if (iter->table->free_value)
        iter->table->free_value(old);
}
