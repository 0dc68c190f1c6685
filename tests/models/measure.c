/* SPDX-License-Identifier: Apache-2.0 */
/* kiln-measure COMMAND…: runs it and prints, as the last line, the seconds it took and its peak
 * bytes of memory. A program of its own because the kernel counts what forks a child, up to its
 * exec, as the child's: an interpreter would be most of the figure. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: kiln-measure [--] COMMAND [ARGUMENT...]\n"
    "Runs COMMAND and prints, as the last line, the seconds it took and its peak bytes of memory.\n"
    "Exit status: that of COMMAND; 128 and the signal that ended it; 2: wrong usage; 126: COMMAND "
    "cannot\nbe run; 127: there is none.\n";

enum {
    USAGE = 2,
    CANNOT_RUN = 126,
    NOT_FOUND = 127,
    SIGNALLED = 128,
};

static double
now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int
measure(char **command)
{
    volatile int failure = 0; /* the child writes it: up to its exec, memory is one */
    double start = now();
    pid_t child = vfork();
    if (child == 0) {
        execvp(command[0], command);
        failure = errno;
        _exit(NOT_FOUND);
    }
    int status;
    struct rusage usage_of_child;
    if (child < 0 || wait4(child, &status, 0, &usage_of_child) != child)
        failure = errno;
    double seconds = now() - start;
    if (failure) {
        fprintf(stderr, "kiln-measure: cannot run %s: %s\n", command[0], strerror(failure));
        return failure == ENOENT ? NOT_FOUND : CANNOT_RUN;
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "kiln-measure: signal %d ended %s\n", WTERMSIG(status), command[0]);
        return SIGNALLED + WTERMSIG(status);
    }
    printf("%.6f %ld\n", seconds, usage_of_child.ru_maxrss * 1024);
    return WEXITSTATUS(status);
}

int
main(int argc, char **argv)
{
    int first = 1;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--") == 0)
        first = 2;
    else if (argc > 1 && argv[1][0] == '-') {
        fprintf(stderr, "kiln-measure: unknown option %s\n%s", argv[1], usage);
        return USAGE;
    }
    if (first >= argc) {
        fprintf(stderr, "kiln-measure: expected a command\n%s", usage);
        return USAGE;
    }
    return measure(argv + first);
}
