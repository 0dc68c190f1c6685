/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/query_ir/strided_use.h"

enum {
    LOOK_MAX = 256
};

typedef struct {
    const KilnTarget *target;
    const KilnInstr *except;
    int left; /* uses to look at */
} Look;

static bool
all_take(Look *look, const KilnBuffer *buffer, const KilnRegion *region)
{
    kiln_foreach_buffer_use (use, buffer) {
        const KilnInstr *user = use->user;
        bool names = user == buffer->def || user->kind == KILN_INSTR_dealloc;
        if (user == look->except || names)
            continue;
        bool nests = user->kind == KILN_INSTR_view && buffer->kind == KILN_BUFFER_VIEW;
        if ((region->rows > 1 || nests) && look->left-- <= 0)
            return false;
        if (user->kind == KILN_INSTR_view) {
            const KilnBuffer *view = user->operands[0].buffer;
            const int64_t unit = (int64_t)kiln_dtype_size(view->type.dtype);
            KilnRegion part = kiln_view_part(view);
            if (!kiln_region_part(region, &part, &part) || part.lost ||
                !kiln_region_is_aligned(&part, unit) || !all_take(look, view, &part))
                return false;
        } else if (region->rows > 1 &&
                   !kiln_target_takes_strided(look->target, user, use->index, region->rows)) {
            return false;
        }
    }
    return true;
}

bool
kiln_strided_taken(const KilnTarget *target, const KilnBuffer *buffer, const KilnRegion *region,
                   const KilnInstr *except)
{
    Look look = { target, except, LOOK_MAX };
    return all_take(&look, buffer, region);
}
