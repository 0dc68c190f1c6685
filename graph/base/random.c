/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based random numbers. */
#include "graph/base/random.h"

#include <math.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/random.h>
#endif

uint64_t
kiln_random_bits(uint64_t seed, uint64_t index)
{
    return kiln_random_mix(seed * UINT64_C(0xd1342543de82ef95) +
                           (index + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

double
kiln_random_unit(uint64_t seed, uint64_t index)
{
    return (double)(kiln_random_bits(seed, index) >> 11) * 0x1p-53;
}

double
kiln_random_normal(uint64_t seed, uint64_t index)
{
    double radius =
        1.0 - kiln_random_unit(seed, 2 * index); /* (0, 1]: the logarithm stays finite */
    double angle = kiln_random_unit(seed, 2 * index + 1);
    return sqrt(-2.0 * log(radius)) * cos(2.0 * 3.14159265358979323846 * angle);
}

uint64_t
kiln_random_seed(uint64_t seed, const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    /* Mixed, and not merely joined: the seeds of neighbouring names must not be each other's. */
    return kiln_random_bits(seed, hash);
}

int64_t
kiln_random_stream(const char *name)
{
    uint64_t number = kiln_random_seed(0, name) & INT64_MAX;
    return (int64_t)number + (number == 0);
}

uint64_t
kiln_random_seed_of(int64_t seed, int64_t stream, uint64_t run)
{
    return seed ? (uint64_t)seed : kiln_random_bits(run, (uint64_t)stream);
}

uint64_t
kiln_random_fresh(void)
{
#ifdef __linux__
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
        return seed;
#endif
    struct timespec now; /* right after the machine was started, or where a sandbox forbids it */
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t time = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    return kiln_random_bits(time, (uint64_t)getpid());
}
