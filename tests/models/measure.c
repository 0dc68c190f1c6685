/* SPDX-License-Identifier: Apache-2.0 */
/* measure COMMAND…: runs it and prints, as the last line, the seconds it took and its peak bytes of
 * memory. A program of its own because the kernel counts what forks a child, up to its exec, as the
 * child's: an interpreter would be most of the figure. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double
now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int
main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: measure COMMAND...\n");
        return 2;
    }
    double start = now();
    pid_t child = vfork();
    if (child == 0) {
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (child < 0 || wait4(child, &status, 0, &usage) != child) {
        perror(argv[1]);
        return 1;
    }
    printf("%.6f %ld\n", now() - start, usage.ru_maxrss * 1024);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
