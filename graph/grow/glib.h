/* SPDX-License-Identifier: Apache-2.0 */
/* GLib as Kiln uses it. The build puts this header in front of every source of Kiln. GLib aborts if
 * it gets no memory, so this folder replaces its containers and its malloc() under their known
 * names. The memory is the system's: g_free() frees it. A test (`check.glib`) finds a growing
 * function of GLib that has no line here. */
#ifndef KILN_GRAPH_GROW_GLIB_H
#define KILN_GRAPH_GROW_GLIB_H

#include "graph/grow/array.h"
#include "graph/grow/list.h"
#include "graph/grow/sort.h"
#include "graph/grow/string.h"
#include "graph/grow/table.h"
#include "graph/grow/tree.h"

/* GLib has some of these as macros already. */
#undef g_ptr_array_new
#undef g_ptr_array_new_with_free_func
#undef g_ptr_array_unref
#undef g_ptr_array_free
#undef g_ptr_array_set_free_func
#undef g_ptr_array_set_size
#undef g_ptr_array_insert
#undef g_ptr_array_extend
#undef g_ptr_array_remove_index
#undef g_ptr_array_steal_index
#undef g_ptr_array_remove_range
#undef g_ptr_array_remove
#undef g_ptr_array_find
#undef g_ptr_array_find_with_equal_func
#undef g_ptr_array_sort
#undef g_ptr_array_sort_with_data
#undef g_ptr_array_add
#undef g_array_new
#undef g_array_copy
#undef g_array_unref
#undef g_array_free
#undef g_array_set_clear_func
#undef g_array_append_vals
#undef g_array_insert_vals
#undef g_array_set_size
#undef g_array_remove_index
#undef g_array_remove_range
#undef g_array_sort
#undef g_array_sort_with_data
#undef g_byte_array_new
#undef g_byte_array_unref
#undef g_byte_array_append
#undef g_byte_array_set_size
#undef g_byte_array_free_to_bytes
#undef g_hash_table_new
#undef g_hash_table_new_full
#undef g_hash_table_unref
#undef g_hash_table_size
#undef g_hash_table_lookup
#undef g_hash_table_lookup_extended
#undef g_hash_table_contains
#undef g_hash_table_insert
#undef g_hash_table_replace
#undef g_hash_table_add
#undef g_hash_table_remove
#undef g_hash_table_remove_all
#undef g_hash_table_foreach_remove
#undef g_hash_table_iter_init
#undef g_hash_table_iter_next
#undef g_hash_table_iter_replace
#undef g_string_new
#undef g_string_new_len
#undef g_string_sized_new
#undef g_string_free
#undef g_string_free_to_bytes
#undef g_string_append
#undef g_string_append_len
#undef g_string_append_c
#undef g_string_append_printf
#undef g_string_append_vprintf
#undef g_string_printf
#undef g_string_assign
#undef g_string_insert
#undef g_string_insert_len
#undef g_string_erase
#undef g_string_truncate
#undef g_string_replace
#undef g_tree_new_full
#undef g_tree_unref
#undef g_tree_nnodes
#undef g_tree_insert
#undef g_tree_remove
#undef g_tree_lower_bound
#undef g_tree_node_first
#undef g_tree_node_last
#undef g_tree_node_previous
#undef g_tree_node_key
#undef g_malloc
#undef g_malloc0
#undef g_malloc_n
#undef g_malloc0_n
#undef g_realloc_n
#undef g_strdup
#undef g_strndup
#undef g_strdup_vprintf
#undef g_strdup_printf
#undef g_strconcat
#undef g_strdupv
#undef g_strsplit
#undef g_qsort_with_data
#undef g_utf8_make_valid
#undef g_memdup2
#undef g_bytes_new

#define GPtrArray KilnList
#define g_ptr_array_new kiln_list_new
#define g_ptr_array_new_with_free_func kiln_list_new_with_free_func
#define g_ptr_array_unref kiln_list_unref
#define g_ptr_array_free kiln_list_free
#define g_ptr_array_set_free_func kiln_list_set_free_func
#define g_ptr_array_set_size kiln_list_set_size
#define g_ptr_array_insert kiln_list_insert
#define g_ptr_array_extend kiln_list_extend
#define g_ptr_array_remove_index kiln_list_remove_index
#define g_ptr_array_steal_index kiln_list_steal_index
#define g_ptr_array_remove_range kiln_list_remove_range
#define g_ptr_array_remove kiln_list_remove
#define g_ptr_array_find kiln_list_find
#define g_ptr_array_find_with_equal_func kiln_list_find_with_equal_func
#define g_ptr_array_sort kiln_list_sort
#define g_ptr_array_sort_with_data kiln_list_sort_with_data
#define g_ptr_array_add kiln_list_add

#define GArray KilnArray
#define g_array_new kiln_array_new
#define g_array_copy kiln_array_copy
#define g_array_unref kiln_array_unref
#define g_array_free kiln_array_free
#define g_array_set_clear_func kiln_array_set_clear_func
#define g_array_append_vals kiln_array_append_vals
#define g_array_insert_vals kiln_array_insert_vals
#define g_array_set_size kiln_array_set_size
#define g_array_remove_index kiln_array_remove_index
#define g_array_remove_range kiln_array_remove_range
#define g_array_sort kiln_array_sort
#define g_array_sort_with_data kiln_array_sort_with_data

#define GByteArray KilnByteArray
#define g_byte_array_new kiln_byte_array_new
#define g_byte_array_unref kiln_byte_array_unref
#define g_byte_array_append kiln_byte_array_append
#define g_byte_array_set_size kiln_byte_array_set_size
#define g_byte_array_free_to_bytes kiln_byte_array_free_to_bytes

#define GHashTable KilnTable

#define GHashTableIter KilnTableIter
#define g_hash_table_new kiln_table_new
#define g_hash_table_new_full kiln_table_new_full
#define g_hash_table_unref kiln_table_unref
#define g_hash_table_size kiln_table_size
#define g_hash_table_lookup kiln_table_lookup
#define g_hash_table_lookup_extended kiln_table_lookup_extended
#define g_hash_table_contains kiln_table_contains
#define g_hash_table_insert kiln_table_insert
#define g_hash_table_replace kiln_table_replace
#define g_hash_table_add kiln_table_add
#define g_hash_table_remove kiln_table_remove
#define g_hash_table_remove_all kiln_table_remove_all
#define g_hash_table_foreach_remove kiln_table_foreach_remove
#define g_hash_table_iter_init kiln_table_iter_init
#define g_hash_table_iter_next kiln_table_iter_next
#define g_hash_table_iter_replace kiln_table_iter_replace

#define GString KilnString
#define g_string_new kiln_string_new
#define g_string_new_len kiln_string_new_len
#define g_string_sized_new kiln_string_sized_new
#define g_string_free kiln_string_free
#define g_string_free_to_bytes kiln_string_free_to_bytes
#define g_string_append kiln_string_append
#define g_string_append_len kiln_string_append_len
#define g_string_append_c kiln_string_append_c
#define g_string_append_printf kiln_string_append_printf
#define g_string_append_vprintf kiln_string_append_vprintf
#define g_string_printf kiln_string_printf
#define g_string_assign kiln_string_assign
#define g_string_insert kiln_string_insert
#define g_string_insert_len kiln_string_insert_len
#define g_string_erase kiln_string_erase
#define g_string_truncate kiln_string_truncate
#define g_string_replace kiln_string_replace

#define GTree KilnTree
#define GTreeNode KilnTreeNode
#define g_tree_new_full kiln_tree_new_full
#define g_tree_unref kiln_tree_unref
#define g_tree_nnodes kiln_tree_nnodes
#define g_tree_insert kiln_tree_insert
#define g_tree_remove kiln_tree_remove
#define g_tree_lower_bound kiln_tree_lower_bound
#define g_tree_node_first kiln_tree_node_first
#define g_tree_node_last kiln_tree_node_last
#define g_tree_node_previous kiln_tree_node_previous
#define g_tree_node_key kiln_tree_node_key

#define g_malloc kiln_malloc
#define g_malloc0 kiln_malloc0
#define g_malloc_n kiln_malloc_n
#define g_malloc0_n kiln_malloc0_n
#define g_realloc_n kiln_realloc_n
#define g_strdup kiln_strdup
#define g_strndup kiln_strndup
#define g_strdup_vprintf kiln_strdup_vprintf
#define g_strdup_printf kiln_strdup_printf
#define g_strconcat kiln_strconcat
#define g_strdupv kiln_strdupv
#define g_strsplit kiln_strsplit
#define g_qsort_with_data kiln_sort
#define g_utf8_make_valid kiln_utf8_make_valid
#define g_memdup2 kiln_memdup
#define g_bytes_new kiln_bytes_copy

#endif
