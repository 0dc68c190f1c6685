/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/module/hints.h"

#include "graph/dim.h"
#include "graph/dim/dim_guess.h"
#include "graph/function.h"
#include "graph/node.h"
#include "graph/type.h"

typedef bool (*VisitFn)(KilnType *type);

/* Calls @visit for the types of @function and of its subgraphs, until it returns false. */
static bool
visit_types(const KilnFunction *function, VisitFn visit)
{
    for (guint i = 0; i < function->arguments->len; i++) {
        if (!visit(&kiln_function_argument(function, i)->value.type))
            return false;
    }
    kiln_foreach_node (node, function) {
        for (uint32_t r = 0; r < node->n_results; r++) {
            if (!visit(&node->results[r].type))
                return false;
        }
        kiln_foreach_region (body, node) {
            if (!visit_types(body, visit))
                return false;
        }
    }
    return true;
}

/* The same for all types that @function reads, too: a subgraph reads values around it. @visit does
 * the same whenever it comes to a type again. */
static void
visit_all(const KilnFunction *function, VisitFn visit)
{
    visit_types(function, visit);
    if (!function->owner)
        return;
    g_autoptr(GPtrArray) captures = g_ptr_array_new();
    kiln_node_add_captures(function->owner, captures);
    for (guint i = 0; i < captures->len; i++)
        visit(&((KilnValue *)g_ptr_array_index(captures, i))->type);
}

static bool
is_closed(KilnType *type)
{
    return !kiln_type_is_open(type);
}

bool
kiln_function_is_open(const KilnFunction *function)
{
    return !visit_types(function, is_closed);
}

static bool
stand(KilnType *type)
{
    for (int d = 0; d < type->rank; d++) {
        if (type->open[d])
            type->dims[d] = MAX(kiln_dim_hint(type->open[d]), (int64_t)1);
    }
    return true;
}

void
kiln_function_stand_at_hints(KilnFunction *function)
{
    visit_all(function, stand);
}

static bool
leave(KilnType *type)
{
    for (int d = 0; d < type->rank; d++) {
        if (type->open[d])
            type->dims[d] = KILN_DIM_UNKNOWN;
    }
    return true;
}

void
kiln_function_leave_hints(KilnFunction *function)
{
    visit_all(function, leave);
}

/* --- guesses --- */

enum {
    PICTURE = 224, /* rows and columns of pictures that networks are trained with */
    COLORS = 4     /* at most, in a picture */
};

static void
guess(const KilnType *type, int d, int64_t number)
{
    const char *name = kiln_type_dim_name(type, d);
    if (name)
        kiln_dim_guess(kiln_dim_table_of(type->open[d]), name, number);
}

/* Whether @type has open rows and columns from dim @rows on, and colors in dim @colors. */
static bool
is_picture(const KilnType *type, int rows, int colors)
{
    return type->rank == 4 && type->open[rows] && type->open[rows + 1] && type->dims[colors] >= 1 &&
           type->dims[colors] <= COLORS;
}

void
kiln_guess_hints(const KilnType *type)
{
    const int rows = is_picture(type, 2, 1) ? 2 : is_picture(type, 1, 3) ? 1 : 0;
    if (!rows)
        return;
    guess(type, 0, 1);
    for (int d = rows; d < rows + 2; d++)
        guess(type, d, PICTURE);
}
