/* SPDX-License-Identifier: Apache-2.0 */
/* kiln-bench-kernels: how fast one instruction runs, a problem a line.
 *
 * Each problem runs on the cpu backend, by the hand-written loop that it names, and on the
 * reference kernels where that does not take long. The first two alternate, so that whatever else
 * the machine does meets both; their ratio is the median of the ratios of neighbours. What is
 * possible is the longer of two times: of the arithmetic at the measured FMA peak, and of the bytes
 * at the measured bandwidth of a working set of that size. */
#include "bench/bench_case.h"
#include "bench/bench_hand.h"
#include "bench/bench_json.h"
#include "bench/bench_peak.h"
#include "bench/bench_side.h"
#include "bench/bench_stats.h"
#include "graph/base/alloc.h"
#include "ir/target.h"
#include "kiln.h"
#include "runtime/bind.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    int threads;
    double min_time;
    gboolean no_ref;
    char *json, *filter;
    char **files, **cases;
} Options;

enum {
    MIN_ROUNDS = 11,
    MAX_ROUNDS = 20000,
    REF_ROUNDS = 3,
    MAX_DATA = 32,
};

/* Below this many seconds a sample is several runs. */
static const double SAMPLE = 50e-6;
/* The reference kernels take about this long for an operation, or for a byte that is moved. */
static const double REF_FLOP = 0.4e-9, REF_BYTE = 50e-9, REF_LIMIT = 0.1;

/* --- what runs --- */

/* The hand-written loop on the cpu side's inputs, with a result of its own. */
typedef struct {
    const BenchHand *hand;
    float *data[MAX_DATA];
    int64_t rows, n;
    size_t bytes; /* of the result */
} HandRun;

/* Rows are what lies behind the first two dims of a picture, else all elements. */
static void
set_rows(HandRun *run, const KilnType *type)
{
    run->rows = 1;
    for (int d = 0; d < type->rank - 2; d++)
        run->rows *= d < 2 ? type->dims[d] : 1;
    run->n = run->rows ? kiln_type_elements(type) / run->rows : 0;
}

static gboolean
open_hand(HandRun *run, const BenchCase *one, const BenchSide *side, GError **error)
{
    run->hand = bench_hand_find(one->hand);
    if (!run->hand)
        return kiln_throw(error, KILN_ERROR_USAGE, "hand=%s: there is no such loop", one->hand);
    KilnTensorInfo info = KILN_TENSOR_INFO_INIT;
    if (!kiln_session_output(side->session, 0, &info, error))
        return FALSE;
    if (run->hand->n_data != (int)side->inputs->len + 1)
        return kiln_throw(error, KILN_ERROR_USAGE, "hand=%s: expected %d inputs, found %u",
                          one->hand, run->hand->n_data - 1, side->inputs->len);
    run->bytes = (size_t)info.bytes;
    run->data[0] = kiln_alloc(1, run->bytes, error);
    for (guint i = 0; i < side->inputs->len; i++)
        run->data[i + 1] = (float *)g_bytes_get_data(g_ptr_array_index(side->inputs, i), NULL);
    set_rows(run, &side->program->outputs.types[0]);
    return run->data[0] != NULL;
}

/* A loop that computes something else is measured for nothing. */
static gboolean
check_hand(const HandRun *run, const BenchSide *side, GError **error)
{
    const void *found = kiln_session_output(side->session, 0, NULL, error);
    if (!found)
        return FALSE;
    run->hand->loop(run->data, run->rows, run->n);
    if (memcmp(found, run->data[0], run->bytes) == 0)
        return TRUE;
    return kiln_throw(error, KILN_ERROR_RUN, "hand=%s: other bits than those of the kernel",
                      run->hand->name);
}

/* --- measuring --- */

typedef struct {
    BenchStats cpu, hand, ref; /* seconds; n is 0 for what was not run */
    double hand_ratio;         /* cpu over hand */
    double cpu_seconds;        /* of processor time per run */
    double limit;              /* seconds that the machine's peaks allow */
    bool memory_bound;
    KilnCost cost;
    const char *kernel;
} Result;

static double
time_hand(const HandRun *run, int repeats)
{
    double start = bench_now();
    for (int i = 0; i < repeats; i++)
        run->hand->loop(run->data, run->rows, run->n);
    return (bench_now() - start) / repeats;
}

static gboolean
time_both(const Options *options, const BenchSide *cpu, const HandRun *hand, Result *result,
          GError **error)
{
    g_autofree double *samples = g_new(double, 3 * MAX_ROUNDS);
    double *hands = samples + MAX_ROUNDS, *ratios = hands + MAX_ROUNDS;
    double once;
    if (!bench_side_time(cpu, 1, &once, error))
        return FALSE;
    const int repeats = once < SAMPLE ? (int)(SAMPLE / MAX(once, 1e-7)) + 1 : 1;
    unsigned n = 0, runs = 0;
    double begin = bench_now(), processor = 0;
    while (n < MIN_ROUNDS || (n < MAX_ROUNDS && bench_now() - begin < options->min_time)) {
        double cpu_begin = bench_cpu_now();
        if (!bench_side_time(cpu, repeats, &samples[n], error))
            return FALSE;
        processor += bench_cpu_now() - cpu_begin;
        runs += (unsigned)repeats;
        if (hand->hand) {
            hands[n] = time_hand(hand, repeats);
            ratios[n] = samples[n] / hands[n];
        }
        n++;
    }
    result->cpu = bench_stats(samples, n);
    result->cpu_seconds = processor / runs;
    if (hand->hand) {
        result->hand = bench_stats(hands, n);
        result->hand_ratio = bench_stats(ratios, n).median;
    }
    return TRUE;
}

static gboolean
time_ref(const Options *options, KilnModel *model, Result *result, GError **error)
{
    double expected = (double)result->cost.flops * REF_FLOP + (double)result->cost.bytes * REF_BYTE;
    if (options->no_ref || expected > REF_LIMIT)
        return TRUE;
    BenchSide ref = { .program = NULL };
    double samples[REF_ROUNDS];
    gboolean good = bench_side_open(&ref, model, "ref", 1, error);
    for (int i = 0; good && i < REF_ROUNDS; i++)
        good = bench_side_time(&ref, 1, &samples[i], error);
    if (good)
        result->ref = bench_stats(samples, REF_ROUNDS);
    bench_side_clear(&ref);
    return good;
}

static void
set_limit(const Options *options, double peak, Result *result)
{
    double arithmetic = (double)result->cost.flops / (peak * 1e9 * options->threads);
    double rate = bench_bandwidth(result->cost.bytes, options->threads) * 1e9;
    double traffic = (double)result->cost.bytes / rate;
    result->limit = MAX(arithmetic, traffic);
    result->memory_bound = traffic > arithmetic;
}

static gboolean
measure(const Options *options, const BenchCase *one, double peak, Result *result, GError **error)
{
    BenchSide cpu = { .program = NULL };
    HandRun hand = { .hand = NULL };
    gboolean good = bench_side_open(&cpu, one->model, "cpu", options->threads, error);
    if (good) {
        const KilnSpecialisation *made = g_ptr_array_index(cpu.program->specialisations, 0);
        for (uint32_t i = 0; i < made->n_calls; i++) {
            KilnCost cost = kiln_instr_cost(made->calls[i].instr);
            result->cost.flops += cost.flops;
            result->cost.bytes += cost.bytes;
            result->kernel = made->calls[i].kernel->name;
        }
    }
    if (good && one->hand && options->threads == 1)
        good = open_hand(&hand, one, &cpu, error) && check_hand(&hand, &cpu, error);
    good = good && time_both(options, &cpu, &hand, result, error) &&
           time_ref(options, one->model, result, error);
    if (good)
        set_limit(options, peak, result);
    kiln_free(hand.data[0]);
    bench_side_clear(&cpu);
    return good;
}

/* --- reports --- */

static const char row_format[] = "%9s %9s %8s %8s %6s %6s %8s  %s\n";

static void
print_row(const BenchCase *one, const Result *result)
{
    char us[16], min[16], gflops[16], rate[16], share[16], hand[16] = "-", ref[16] = "-";
    const double median = result->cpu.median;
    g_snprintf(us, sizeof us, "%.2f", median * 1e6);
    g_snprintf(min, sizeof min, "%.2f", result->cpu.min * 1e6);
    g_snprintf(gflops, sizeof gflops, "%.1f", (double)result->cost.flops / median * 1e-9);
    g_snprintf(rate, sizeof rate, "%.1f", (double)result->cost.bytes / median * 1e-9);
    g_snprintf(share, sizeof share, "%.0f%c", 100 * result->limit / median,
               result->memory_bound ? 'm' : 'f');
    if (result->hand.n)
        g_snprintf(hand, sizeof hand, "%.2f", result->hand_ratio);
    if (result->ref.n)
        g_snprintf(ref, sizeof ref, "%.1f", result->ref.median / median);
    printf(row_format, us, min, gflops, rate, share, hand, ref, one->name);
    fflush(stdout);
}

static void
add_entry(JsonArray *benchmarks, const Options *options, const BenchCase *one, const Result *result)
{
    const double median = result->cpu.median;
    JsonObject *entry = bench_json_entry(one->name, options->threads, result->cpu.n, median * 1e3,
                                         result->cpu_seconds * 1e3);
    const struct {
        const char *key;
        double value;
        bool there;
    } counters[] = {
        { "min_ms", result->cpu.min * 1e3, true },
        { "p90_ms", result->cpu.p90 * 1e3, true },
        { "flops", (double)result->cost.flops, true },
        { "bytes", (double)result->cost.bytes, true },
        { "gflops", (double)result->cost.flops / median * 1e-9, true },
        { "bytes_per_second", (double)result->cost.bytes / median, true },
        { "limit_ms", result->limit * 1e3, true },
        { "limit_share", result->limit / median, true },
        { "hand_ms", result->hand.median * 1e3, result->hand.n > 0 },
        { "hand_ratio", result->hand_ratio, result->hand.n > 0 },
        { "ref_ms", result->ref.median * 1e3, result->ref.n > 0 },
    };
    for (size_t i = 0; i < G_N_ELEMENTS(counters); i++) {
        if (counters[i].there)
            json_object_set_double_member(entry, counters[i].key, counters[i].value);
    }
    json_object_set_string_member(entry, "label", result->kernel);
    json_array_add_object_element(benchmarks, entry);
}

static int
measure_all(const Options *options, const GPtrArray *cases)
{
    const double peak = bench_fma_peak();
    const bool to_stdout = options->json && strcmp(options->json, "-") == 0;
    JsonArray *benchmarks = json_array_new();
    int failed = 0;
    if (!to_stdout) {
        printf("%s; %d threads, FMA peak %.1f GFLOP/s per thread\n", kiln_build_info(),
               options->threads, peak);
        printf(row_format, "us", "min", "GFLOP/s", "GB/s", "limit%", "/hand", "ref/cpu", "case");
    }
    for (guint i = 0; i < cases->len; i++) {
        const BenchCase *one = g_ptr_array_index(cases, i);
        g_autoptr(GError) error = NULL;
        Result result = { .kernel = "" };
        if (options->filter && !strstr(one->name, options->filter))
            continue;
        if (!measure(options, one, peak, &result, &error)) {
            fprintf(stderr, "%s: %s\n", one->name, error->message);
            failed = 1;
            continue;
        }
        if (!to_stdout)
            print_row(one, &result);
        add_entry(benchmarks, options, one, &result);
    }
    JsonObject *context = bench_json_context("kiln-bench-kernels");
    json_object_set_double_member(context, "fma_peak_gflops", peak);
    return bench_json_write(options->json, context, benchmarks) ? failed : 1;
}

/* Files first, then the cases of the command line. */
static gboolean
read_cases(const Options *options, GPtrArray *cases, GError **error)
{
    for (char **file = options->files; file && *file; file++) {
        if (!bench_cases_read(*file, cases, error))
            return FALSE;
    }
    for (char **line = options->cases; line && *line; line++) {
        BenchCase *one = bench_case_new(*line, error);
        if (!one) {
            g_prefix_error(error, "--case: ");
            return FALSE;
        }
        g_ptr_array_add(cases, one);
    }
    if (cases->len)
        return TRUE;
    return kiln_throw(error, KILN_ERROR_USAGE, "expected a file of cases or --case, found none");
}

static const char description[] =
    "limit% is the speed relative to the limit of the machine. `m` is the limit of memory, `f` "
    "that\n"
    "of arithmetic. /hand is the time relative to the hand-written loop on one thread. ref/cpu is\n"
    "the time of the reference kernel relative to that of the cpu kernel.\n";

int
main(int argc, char **argv)
{
    Options options = { .threads = 1, .min_time = 0.3 };
    const GOptionEntry entries[] = {
        { "threads", 0, 0, G_OPTION_ARG_INT, &options.threads, "Run on N threads (default 1)",
          "N" },
        { "min-time", 0, 0, G_OPTION_ARG_DOUBLE, &options.min_time,
          "Measure each case for at least S seconds (default 0.3)", "S" },
        { "no-ref", 0, 0, G_OPTION_ARG_NONE, &options.no_ref, "Do not time the reference kernels",
          NULL },
        { "case", 0, 0, G_OPTION_ARG_STRING_ARRAY, &options.cases,
          "Measure this case; may be repeated", "LINE" },
        { "filter", 0, 0, G_OPTION_ARG_STRING, &options.filter,
          "Measure only the cases that contain TEXT", "TEXT" },
        { "json", 0, 0, G_OPTION_ARG_FILENAME, &options.json,
          "Write JSON in the format of Google Benchmark; `-` is standard output", "F" },
        { G_OPTION_REMAINING, 0, 0, G_OPTION_ARG_FILENAME_ARRAY, &options.files, NULL,
          "FILE.cases…" },
        G_OPTION_ENTRY_NULL,
    };
    setlocale(LC_CTYPE, ""); /* what --help is written in */
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_summary(context,
                                 "Measures kernels of the cpu backend. Each case is one line.");
    g_autofree char *details = g_strconcat(bench_case_format, "\n\n", description, NULL);
    g_option_context_set_description(context, details);
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(GPtrArray) cases = g_ptr_array_new_with_free_func((GDestroyNotify)bench_case_free);
    g_autoptr(GError) error = NULL;
    int status = 2;
    if (!g_option_context_parse(context, &argc, &argv, &error))
        fprintf(stderr, "kiln-bench-kernels: %s\n", error->message);
    else if (options.threads < 1 || options.threads > 1024)
        fprintf(stderr, "kiln-bench-kernels: --threads: expected 1 to 1024, found %d\n",
                options.threads);
    else if (!read_cases(&options, cases, &error))
        fprintf(stderr, "kiln-bench-kernels: %s\n", error->message);
    else
        status = measure_all(&options, cases);
    g_free(options.json);
    g_free(options.filter);
    g_strfreev(options.files);
    g_strfreev(options.cases);
    return status;
}
