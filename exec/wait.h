/* SPDX-License-Identifier: Apache-2.0 */
/* Waits until a word of memory changes. A waiter spins first, because to sleep and wake costs more
 * than most waits. It spins for a bounded time, because the other thread may need this processor.
 * Then it sleeps in the kernel: a futex on Linux, a condition variable elsewhere. */
#ifndef KILN_EXEC_WAIT_H
#define KILN_EXEC_WAIT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

enum {
    KILN_SPIN_NS = 50 * 1000
};

/** The value and the number of sleepers share one cache line. Both change rarely. */
typedef struct {
    alignas(64) atomic_uint value;
    atomic_uint sleepers;
} KilnWord;

static inline void
kiln_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/** Nanoseconds of a monotonic clock. */
int64_t kiln_now_ns(void);

static inline unsigned
kiln_word_get(const KilnWord *word)
{
    return atomic_load_explicit(&word->value, memory_order_acquire);
}

/** Returns when @word is not @old, or after @spin_ns. Writes before the change are visible then.
 * Returns the value that it saw last. */
unsigned kiln_word_spin(const KilnWord *word, unsigned old, int64_t spin_ns);
/** Sleeps until @word is not @old. May return early. */
void kiln_word_sleep(KilnWord *word, unsigned old);
/** Returns when @word is not @old: spins for KILN_SPIN_NS, then sleeps. Returns the new value. */
unsigned kiln_word_await(KilnWord *word, unsigned old);
/** Wakes up to @n threads that sleep on @word. Call it after a change of @word. */
void kiln_word_wake(KilnWord *word, unsigned n);
/** Sets @word and wakes all sleepers. */
void kiln_word_set(KilnWord *word, unsigned value);

#endif
