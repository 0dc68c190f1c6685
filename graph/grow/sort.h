/* SPDX-License-Identifier: Apache-2.0 */
/* A stable sort whose room comes from the reserve where the system has no memory; GLib's aborts. */
#ifndef KILN_GRAPH_GROW_SORT_H
#define KILN_GRAPH_GROW_SORT_H

#include <glib.h>
#include <stddef.h>

void kiln_sort(void *elements, size_t n, size_t size, GCompareDataFunc compare, gpointer data);
void kiln_sort_plain(void *elements, size_t n, size_t size, GCompareFunc compare);

#endif
