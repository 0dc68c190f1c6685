/* SPDX-License-Identifier: Apache-2.0 */
#include "backends/ref/items/items.h"
#include "graph/kiln-items.h"
#include "graph/kiln-types.h"
#include "ir/kernel.h"

const char *
kiln_ref_optional_has_element(const KilnKernelArgs *args)
{
    *(uint8_t *)args->data[0] = kiln_item_length(ref_item(args, 1)) != 0;
    return NULL;
}

const char *
kiln_ref_optional_get_element(const KilnKernelArgs *args)
{
    const KilnItem *optional = ref_item(args, 1);
    return kiln_item_length(optional) ? kiln_ref_take_out(args, kiln_item_get(optional, 0))
                                      : "the optional is empty";
}
