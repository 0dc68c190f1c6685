/* SPDX-License-Identifier: Apache-2.0 */
/* Private to open functions. */
#ifndef KILN_IR_OPEN_PRIV_H
#define KILN_IR_OPEN_PRIV_H

#include "ir/open.h"

/** Lets go of the regions that kiln_open_set_region() gave to calls. */
void kiln_open_free_regions(KilnOpen *open);

#endif
