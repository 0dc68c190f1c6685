/* SPDX-License-Identifier: Apache-2.0 */
/* Times runs of a model through kiln.h, for check_overhead.py:
 *   kiln-python-calls MODEL RUNS
 * prints the median of the runs in microseconds. The model has one input and one output. */
#include <kiln.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double
now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static KilnSession *
open_session(const char *path, GError **error)
{
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = 1;
    g_autoptr(KilnModel) model = kiln_model_load(path, error);
    g_autoptr(KilnProgram) program = model ? kiln_program_compile(model, &options, error) : NULL;
    return program ? kiln_session_new(program, NULL, error) : NULL;
}

static gboolean
bind(KilnSession *session, const KilnModel *model, GError **error)
{
    size_t in = (size_t)kiln_model_input(model, 0)->bytes;
    size_t out = (size_t)kiln_model_output(model, 0)->bytes;
    return kiln_session_bind_input(session, 0, calloc(in, 1), in, error) &&
           kiln_session_bind_output(session, 0, calloc(out, 1), out, error);
}

int
main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    int n = argc == 3 ? atoi(argv[2]) : 0;
    if (n < 1) {
        fprintf(stderr, "usage: kiln-python-calls MODEL RUNS\n");
        return 2;
    }
    g_autofree double *times = g_new0(double, n);
    g_autoptr(KilnSession) session = open_session(argv[1], &error);
    g_autoptr(KilnModel) model = session ? kiln_model_load(argv[1], &error) : NULL;
    gboolean good = model && bind(session, model, &error);
    for (int i = 0; good && i < n; i++) {
        double start = now_us();
        good = kiln_session_run(session, &error);
        times[i] = now_us() - start;
    }
    if (!good) {
        fprintf(stderr, "%s\n", error->message);
        return 1;
    }
    qsort(times, (size_t)n, sizeof *times, compare);
    printf("%.3f\n", times[n / 2]);
    return 0;
}
