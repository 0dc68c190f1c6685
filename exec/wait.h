/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a word of memory to change. Whoever waits spins first, because sleeping and being
 * woken costs more than most waits. It spins for a bounded time, because the thread that it waits
 * for may need this processor. Then it sleeps in the kernel: a futex on Linux, a condition variable
 * elsewhere. */
#ifndef KILN_EXEC_WAIT_H
#define KILN_EXEC_WAIT_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

enum {
    KILN_SPIN_NS = 50 * 1000
};

/** What is written and who sleeps are on one line: both are rarely touched while others work. */
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

/** Of a clock that only grows. */
int64_t kiln_now_ns(void);

static inline unsigned
kiln_word_get(const KilnWord *word)
{
    return atomic_load_explicit(&word->value, memory_order_acquire);
}

/** Returns once @word is not @old, or after @spin_ns; what was written before the change is visible
 * then. Returns the value that it saw last. */
unsigned kiln_word_spin(const KilnWord *word, unsigned old, int64_t spin_ns);
/** Sleeps until @word is not @old. May return early. */
void kiln_word_sleep(KilnWord *word, unsigned old);
/** Returns once @word is not @old: spins for KILN_SPIN_NS, then sleeps. Returns the new value. */
unsigned kiln_word_await(KilnWord *word, unsigned old);
/** Wakes up to @n of those that sleep on @word, after it was changed. */
void kiln_word_wake(KilnWord *word, unsigned n);
/** Sets @word and wakes all. */
void kiln_word_set(KilnWord *word, unsigned value);

#endif
