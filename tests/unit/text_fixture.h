/* SPDX-License-Identifier: Apache-2.0 */
/* A module read from text for each test of a suite, and its values by name. */
#ifndef KILN_TESTS_UNIT_TEXT_FIXTURE_H
#define KILN_TESTS_UNIT_TEXT_FIXTURE_H

#include "graph/text/text.h"

#include <criterion/criterion.h>
#include <string.h>

static KilnModule *module;
static KilnFunction *function; /* the entry of module */

static inline void
read_module(const char *text, const char *file)
{
    g_autoptr(GError) error = NULL;
    module = kiln_module_parse(text, strlen(text), file, &error);
    cr_assert(module, "%s", error ? error->message : "");
    function = kiln_module_entry(module);
}

static inline void
free_module(void)
{
    kiln_module_free(module);
}

static inline KilnValue *
value(const char *name)
{
    KilnValue *found = kiln_function_find_value(function, name);
    cr_assert(found, "%s", name);
    return found;
}

#endif
