/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN as the vendor of the cpu target. Built only if the library is installed. */
#ifndef KILN_BACKENDS_ONEDNN_ONEDNN_H
#define KILN_BACKENDS_ONEDNN_ONEDNN_H

#include "ir/vendor.h"

const KilnVendor *kiln_onednn_vendor(void);

#endif
