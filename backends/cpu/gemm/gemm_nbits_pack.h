/* SPDX-License-Identifier: Apache-2.0 */
/* Packs weights of few bits into panels of columns. Private to the folder. */
#ifndef KILN_BACKENDS_CPU_GEMM_GEMM_NBITS_PACK_H
#define KILN_BACKENDS_CPU_GEMM_GEMM_NBITS_PACK_H

#include "backends/cpu/gemm/gemm_nbits.h"
#include "backends/cpu/gemm/gemm_plan.h"
#include "ir/slice.h"

/** Packs @slice of the column side of @plan to @packed, kiln_gemm_nbits_column() times the pitch of
 * that side. */
void kiln_gemm_nbits_pack(const KilnGemmPlan *plan, const KilnGemmNbits *nbits,
                          const KilnGemmNbitsSource *source, KilnSlice slice, void *packed);

#endif
