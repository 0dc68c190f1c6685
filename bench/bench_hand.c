/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench_hand.h"

#include "backends/cpu/isa.h"

#include <stddef.h>
#include <string.h>

static const BenchHand *
table(void)
{
#if defined(__x86_64__)
    switch (kiln_cpu_isa_best()) {
    case KILN_CPU_ISA_AVX512:
        return bench_hand_avx512;
    case KILN_CPU_ISA_AVX2:
        return bench_hand_avx2;
    default:
        break;
    }
#endif
    return bench_hand_portable;
}

const BenchHand *
bench_hand_find(const char *name)
{
    for (const BenchHand *hand = table(); hand->name; hand++) {
        if (strcmp(hand->name, name) == 0)
            return hand;
    }
    return NULL;
}
