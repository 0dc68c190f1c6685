/* SPDX-License-Identifier: Apache-2.0 */
/* A stable sort. Without memory from the system it uses the reserve, where GLib's sort aborts. */
#ifndef KILN_GRAPH_GROW_SORT_H
#define KILN_GRAPH_GROW_SORT_H

#include <glib.h>
#include <stddef.h>

void kiln_sort(void *elements, size_t n, size_t size, GCompareDataFunc compare, gpointer data);
void kiln_sort_plain(void *elements, size_t n, size_t size, GCompareFunc compare);

#endif
