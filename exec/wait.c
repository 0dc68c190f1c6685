/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/wait.h"

#include <limits.h>
#include <time.h>

#if defined(__linux__) && !defined(KILN_WITHOUT_FUTEX)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* An interrupted sleep, or one whose word changed before it began, is an early return. */
static void
sleep_on(KilnWord *word, unsigned old)
{
    syscall(SYS_futex, &word->value, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
}

static void
wake(KilnWord *word, unsigned n)
{
    syscall(SYS_futex, &word->value, FUTEX_WAKE_PRIVATE, n > INT_MAX ? INT_MAX : (int)n, NULL, NULL,
            0);
}
#else
#include <pthread.h>

/* One for all words: those that wait for another look again, and sleep again. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void
sleep_on(KilnWord *word, unsigned old)
{
    pthread_mutex_lock(&lock);
    if (atomic_load(&word->value) == old)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void
wake(KilnWord *word, unsigned n)
{
    (void)word;
    (void)n;
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}
#endif

enum {
    LOOKS = 32 /* between two readings of the clock */
};

int64_t
kiln_now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

unsigned
kiln_word_spin(const KilnWord *word, unsigned old, int64_t spin_ns)
{
    int64_t end = 0;
    for (;;) {
        for (int i = 0; i < LOOKS; i++) {
            unsigned value = kiln_word_get(word);
            if (value != old)
                return value;
            kiln_relax();
        }
        int64_t now = kiln_now_ns();
        if (end == 0)
            end = now + spin_ns;
        else if (now >= end)
            return old;
    }
}

/* Whoever changes the word looks at the sleepers afterwards; whoever sleeps is counted before the
 * kernel looks at the word. One of the two sees the other. */
void
kiln_word_sleep(KilnWord *word, unsigned old)
{
    atomic_fetch_add(&word->sleepers, 1);
    if (atomic_load(&word->value) == old)
        sleep_on(word, old);
    atomic_fetch_sub(&word->sleepers, 1);
}

unsigned
kiln_word_await(KilnWord *word, unsigned old)
{
    unsigned value = kiln_word_spin(word, old, KILN_SPIN_NS);
    while (value == old) {
        kiln_word_sleep(word, old);
        value = kiln_word_get(word);
    }
    return value;
}

void
kiln_word_wake(KilnWord *word, unsigned n)
{
    if (atomic_load(&word->sleepers) > 0)
        wake(word, n);
}

void
kiln_word_set(KilnWord *word, unsigned value)
{
    atomic_store(&word->value, value);
    kiln_word_wake(word, UINT_MAX);
}
