/* SPDX-License-Identifier: Apache-2.0 */
/* kiln-random-graphs: properties of passes on random typed graphs.
 *
 *     kiln-random-graphs [--first SEED] [--graphs N] [--forever]
 *                        [--passes LIST | --ways | --offload | --qdq | --open | --flow] [--rows]
 *                        [--store DIR]
 *
 * Every pass of the table alone, with and without lossy rewrites; two random sequences; the default
 * pipeline; and a shipped pipeline with one pass left out; and, of one graph in seven, programs
 * whose constants are given as literals, to compile, at the first run and as inputs. One graph in
 * eight is of quantized values. One draws from every operator and element type, and programs of it
 * run as those of --flow; with --rows all do. Beside one seed in OFFLOAD_SHARE stands a graph of
 * what a vendor library takes: the passes of the offload road, and programs that the library
 * computes in. With --qdq all graphs are models as quantizers write them, under `default` and under
 * `none`. With --open dims of inputs get names, and one program runs at several numbers. With
 * --flow graphs are nests of branches, loops and scans. A failure is shrunk, printed as a golden,
 * and with --store written to DIR. */
#include "passes/pass.h"
#include "tests/random/flow.h"
#include "tests/random/offload.h"
#include "tests/random/open_shapes.h"
#include "tests/random/property.h"
#include "tests/random/qdq.h"
#include "tests/random/random_graph.h"
#include "tests/random/random_rows.h"
#include "tests/random/shrink.h"
#include "tests/random/subject.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    gint64 first, graphs;
    gboolean forever, ways, offload, qdq, open, flow, print, rows;
    char *passes, *store;
} Options;

typedef struct {
    GPtrArray *properties; /* Property* that hold of every graph */
    GPtrArray *fired;      /* guint64* beside them: how often each changed something */
    Options options;
    uint64_t graphs, nodes, runs;
    GPtrArray *road;  /* Property* that hold of graphs for a vendor */
    OffloadSeen seen; /* of these graphs' programs */
    QdqSeen qdq;      /* of quantized models' programs */
    OpenSeen open;    /* of open programs */
    FlowSeen flow;    /* of programs of nests */
    uint64_t ways[2]; /* graphs that were given constants in every way, and those that have some */
    unsigned failures;
} Run;

enum {
    FAILURES_MAX = 10,
    WAYS_SHARE = 7, /* of so many graphs one is compiled with its constants given in every way */
    OFFLOAD_SHARE = 50,
};

/* --- what is tried --- */

/* Options that make a pass do here what it does in pipelines. */
static const char *
spelled(const char *id)
{
    return strcmp(id, "constant-fold") == 0 ? "constant-fold{evaluate=compile}" : id;
}

/* Their results differ from the graph's by design: in type, or in the mode they are meant for. */
static bool
is_left_out(const char *id)
{
    static const char *const ids[] = { "fold-io-conversions" };
    for (size_t i = 0; i < G_N_ELEMENTS(ids); i++) {
        if (strcmp(ids[i], id) == 0)
            return true;
    }
    return false;
}

static Property *
must(const char *passes)
{
    g_autoptr(GError) error = NULL;
    Property *property = property_new(passes, &error);
    if (!property)
        g_error("%s: %s", passes, error->message); /* the lists are ours */
    return property;
}

static void
add(Run *run, const char *passes, bool idempotent, bool lossy, bool lean)
{
    Property *property = must(passes);
    property->idempotent = idempotent;
    property->lossy = lossy;
    property->lean = lean;
    g_ptr_array_add(run->properties, property);
    g_ptr_array_add(run->fired, g_new0(guint64, 1));
}

/* What outlines, merges and lays out regions, and a vendor that takes them. */
static void
add_road(Run *run)
{
#define LAYOUTS                                                                                    \
    "propagate-layouts,analyse-constness,constant-fold{evaluate=compile,functions=three},"         \
    "compile-offload{min-us=0},dce"
    static const char *const lists[] = {
        "partition-offload{when=always}",
        "partition-offload{when=always},merge-offload{when=always}," LAYOUTS,
        "partition-offload{when=always,policy=single}," LAYOUTS,
        "partition-offload{min-us=0},merge-offload{min-us=0}," LAYOUTS,
    };
#undef LAYOUTS
    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
        Property *property = must(lists[i]);
        property->vendor = true;
        g_ptr_array_add(run->road, property);
    }
}

static void
add_all(Run *run)
{
    static const char *const sequences[] = {
        "dedup-constants,cse",
        "constant-fold{evaluate=compile,max-bytes=300,max-expansion=2}",
        "share-buffers,ir-peephole,share-buffers,dse,delete-dead-allocs",
        "sink-allocs,hoist-dealloc,share-buffers,sink-allocs,hoist-dealloc",
        "stack-elementwise,share-buffers,optimize-inserts,stack-elementwise",
    };
    if (run->options.passes) {
        add(run, run->options.passes, true, false, false);
        add(run, run->options.passes, true, true, false);
    }
    if (run->options.passes || run->options.ways || run->options.offload || run->options.qdq ||
        run->options.open || run->options.flow)
        return;
    for (uint32_t i = 0; i < kiln_pass_count(); i++) {
        const KilnPassInfo *info = kiln_pass_at(i);
        if (is_left_out(info->id))
            continue;
        add(run, spelled(info->id), true, false, false);
        if (info->level == KILN_LEVEL_GRAPH)
            add(run, spelled(info->id), false, true, false);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(sequences); i++)
        add(run, sequences[i], i < 2, false, false);
    add(run, "lower", true, false, true);
    add(run, "lower-halves", true, false, true);
    add(run, "lower-quantized", true, false, true);
    add(run, "default", true, false, false);
}

/* --- trying --- */

static void
report(Run *run, const Property *property, const KilnModule *module, uint64_t seed,
       const GError *error)
{
    Property quiet = *property;
    quiet.seen = NULL;
    quiet.open_seen = NULL;
    quiet.flow_seen = NULL;
    g_autoptr(KilnModule) small = shrink(&quiet, module);
    g_autofree char *golden = shrink_to_golden(property, small, seed);
    printf("graph %" G_GUINT64_FORMAT ", %s%s%s%s%s: %s\n%s\n", seed, property->passes,
           property->lossy ? ", lossy" : "",
           property->lean     ? ", lean target"
           : property->vendor ? ", test vendor"
                              : "",
           property->skip ? " without " : "", property->skip ? property->skip : "", error->message,
           golden);
    run->failures++;
    if (!run->options.store)
        return;
    g_autofree char *name = g_strdup_printf("random-%" G_GUINT64_FORMAT ".kiln", seed);
    g_autofree char *path = g_build_filename(run->options.store, name, NULL);
    g_autoptr(GError) why = NULL;
    if (!g_file_set_contents(path, golden, -1, &why))
        printf("%s\n", why->message);
}

static char crash_note[256];

/* A crash is a failure too: say of what. */
static void
on_crash(int number)
{
    ssize_t written = write(STDERR_FILENO, crash_note, strlen(crash_note));
    (void)written;
    signal(number, SIG_DFL);
    raise(number);
}

static void
try_property(Run *run, const Property *property, Subject *subject, uint64_t seed, guint64 *fired)
{
    bool changed;
    g_autoptr(GError) error = NULL;
    g_snprintf(crash_note, sizeof crash_note, "crashed at graph %" G_GUINT64_FORMAT ", %s\n", seed,
               property->passes);
    run->runs++;
    if (!property_holds(property, subject, &changed, &error))
        report(run, property, subject->module, seed, error);
    else if (fired)
        *fired += changed;
}

static uint32_t
draw(uint64_t *state, uint32_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % n;
}

/* Three to six passes of the graph level in any order. */
static void
try_sequence(Run *run, Subject *subject, uint64_t seed, uint64_t *state)
{
    g_autoptr(GString) passes = g_string_new(NULL);
    for (uint32_t left = 3 + draw(state, 4); left > 0;) {
        const KilnPassInfo *info = kiln_pass_at(draw(state, kiln_pass_count()));
        if (info->level != KILN_LEVEL_GRAPH || is_left_out(info->id))
            continue;
        g_string_append_printf(passes, "%s%s", passes->len ? "," : "", spelled(info->id));
        left--;
    }
    g_autoptr(Property) property = must(passes->str);
    try_property(run, property, subject, seed, NULL);
}

static void
try_without_one(Run *run, Subject *subject, uint64_t seed, uint64_t *state)
{
    static const char *const pipelines[] = { "default", "default", "glow", "fold", "lossy" };
    g_autoptr(Property) property = must(pipelines[draw(state, G_N_ELEMENTS(pipelines))]);
    property->skip = kiln_pass_at(draw(state, kiln_pass_count()))->id;
    try_property(run, property, subject, seed, NULL);
}

static void
try_ways(Run *run, Subject *subject, uint64_t seed)
{
    g_autoptr(Property) property = property_new_ways(seed);
    run->ways[0]++;
    try_property(run, property, subject, seed, &run->ways[1]);
}

static bool
start_graph(Run *run, uint64_t seed, KilnModule *module, Subject *subject)
{
    g_autoptr(GError) error = NULL;
    run->nodes += kiln_module_entry(module)->n_nodes;
    run->graphs++;
    if (run->options.print) {
        g_autoptr(GString) text = g_string_new(NULL);
        kiln_module_print(module, NULL, text, NULL);
        printf("%s", text->str);
        return false;
    }
    if (subject_init(subject, module, &error))
        return true;
    printf("graph %" G_GUINT64_FORMAT ": %s\n", seed, error->message);
    run->failures++;
    return false;
}

/* @what: the kind of graph that @make makes. @subject borrows it. NULL where there is nothing to
 * try.
 */
static KilnModule *
make_graph(Run *run, uint64_t seed, const char *what, KilnModule *(*make)(uint64_t seed),
           Subject *subject)
{
    g_snprintf(crash_note, sizeof crash_note, "crashed making %s %" G_GUINT64_FORMAT "\n", what,
               seed);
    g_autoptr(KilnModule) module = make(seed);
    return start_graph(run, seed, module, subject) ? g_steal_pointer(&module) : NULL;
}

static void
try_offload(Run *run, uint64_t seed)
{
    g_auto(Subject) subject = { 0 };
    g_autoptr(KilnModule) module =
        make_graph(run, seed, "graph for a vendor", random_vendor_graph, &subject);
    if (!module)
        return;
    for (guint i = 0; i < run->road->len; i++)
        try_property(run, g_ptr_array_index(run->road, i), &subject, seed, NULL);
    g_autoptr(Property) property = property_new_offload(seed);
    property->seen = &run->seen;
    try_property(run, property, &subject, seed, NULL);
}

/* One graph of @make and one property, which it takes. */
static void
try_one(Run *run, uint64_t seed, const char *what, KilnModule *(*make)(uint64_t seed),
        Property *property)
{
    g_autoptr(Property) owned = property;
    g_auto(Subject) subject = { 0 };
    g_autoptr(KilnModule) module = make_graph(run, seed, what, make, &subject);
    if (module)
        try_property(run, owned, &subject, seed, NULL);
}

static void
try_qdq(Run *run, uint64_t seed)
{
    Property *property = property_new_qdq(seed);
    property->qdq_seen = &run->qdq;
    try_one(run, seed, "quantized model", random_qdq_graph, property);
}

/* Small graphs of all families, and graphs of convolutions, products and recurrent layers. */
static void
try_open(Run *run, uint64_t seed)
{
    Property *property = property_new_open(seed);
    property->open_seen = &run->open;
    try_one(run, seed, "graph to open",
            seed % 8 == 3              ? random_quantized_graph
            : OPEN_IS_FOR_VENDOR(seed) ? random_vendor_graph
                                       : random_graph,
            property);
}

static void
try_flow(Run *run, uint64_t seed)
{
    Property *property = property_new_flow(seed);
    property->flow_seen = &run->flow;
    try_one(run, seed, "nest of loops", random_flow_graph, property);
}

static void
try_graph(Run *run, uint64_t seed)
{
    uint64_t state = seed;
    g_auto(Subject) subject = { 0 };
    const bool rows = run->options.rows || seed % 8 == 5;
    KilnModule *(*make)(uint64_t) = rows            ? random_rows_graph
                                    : seed % 8 == 3 ? random_quantized_graph
                                                    : random_graph;
    g_autoptr(KilnModule) module = make_graph(run, seed, "graph", make, &subject);
    if (!module)
        return;
    if (run->options.ways) {
        try_ways(run, &subject, seed);
        return;
    }
    if (rows && !run->options.passes) {
        g_autoptr(Property) programs = property_new_programs(seed);
        programs->flow_seen = &run->flow;
        try_property(run, programs, &subject, seed, NULL);
        if (RANDOM_ROWS_OF_DATA(seed))
            return;
    }
    for (guint i = 0; i < run->properties->len; i++)
        try_property(run, g_ptr_array_index(run->properties, i), &subject, seed,
                     g_ptr_array_index(run->fired, i));
    if (run->options.passes)
        return;
    try_sequence(run, &subject, seed, &state);
    try_sequence(run, &subject, seed, &state);
    try_without_one(run, &subject, seed, &state);
    if (seed % WAYS_SHARE == 0)
        try_ways(run, &subject, seed);
    if (seed % OFFLOAD_SHARE == 0)
        try_offload(run, seed);
}

/* --- the program --- */

static void
summarize_qdq(const QdqSeen *seen)
{
    const double share = (double)seen->different / (double)MAX(seen->elements, 1);
    printf("  default and none: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
           " elements differ, %.3g in 1000, in %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
           " programs; %" G_GUINT64_FORMAT " ties were rounded the other way\n",
           seen->different, seen->elements, 1000 * share, seen->touched, 2 * seen->graphs,
           seen->ties);
}

static void
summarize(const Run *run)
{
    const OffloadSeen *seen = &run->seen;
    printf("%" G_GUINT64_FORMAT " graphs of %.1f nodes, %" G_GUINT64_FORMAT " runs, %u failures\n",
           run->graphs, run->graphs ? (double)run->nodes / (double)run->graphs : 0, run->runs,
           run->failures);
    if (run->options.qdq) {
        summarize_qdq(&run->qdq);
        return;
    }
    if (run->options.open || run->options.flow)
        return;
    for (guint i = 0; i < run->properties->len; i++) {
        const Property *property = g_ptr_array_index(run->properties, i);
        if (!property->lossy)
            printf("  %-40s fired on %" G_GUINT64_FORMAT "%s\n", property->passes,
                   *(const guint64 *)g_ptr_array_index(run->fired, i),
                   property->lean ? " (lean target)" : "");
    }
    printf("  constants given in every way on %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT "\n",
           run->ways[1], run->ways[0]);
    printf("  through the vendor: %" G_GUINT64_FORMAT
           " graphs; of them with regions %" G_GUINT64_FORMAT ", merged ones %" G_GUINT64_FORMAT
           ", custom_ops %" G_GUINT64_FORMAT ", layouts between regions %" G_GUINT64_FORMAT
           ", Winograd beside them %" G_GUINT64_FORMAT ", operators refused %" G_GUINT64_FORMAT
           ", saved %" G_GUINT64_FORMAT "\n",
           seen->graphs, seen->regions, seen->merges, seen->customs, seen->layouts, seen->winograd,
           seen->refused, seen->saved);
}

int
main(int argc, char **argv)
{
    Run run = { .options = { .first = 1, .graphs = 1000 } };
    Options *options = &run.options;
    const GOptionEntry entries[] = {
        { "first", 0, 0, G_OPTION_ARG_INT64, &options->first, "seed of the first graph", "SEED" },
        { "graphs", 0, 0, G_OPTION_ARG_INT64, &options->graphs, "how many", "N" },
        { "forever", 0, 0, G_OPTION_ARG_NONE, &options->forever, "until one fails", NULL },
        { "passes", 0, 0, G_OPTION_ARG_STRING, &options->passes, "only these, in turn", "LIST" },
        { "ways", 0, 0, G_OPTION_ARG_NONE, &options->ways,
          "only programs whose constants are given in every way, of every graph", NULL },
        { "offload", 0, 0, G_OPTION_ARG_NONE, &options->offload,
          "only graphs for a vendor, and programs that it computes in", NULL },
        { "qdq", 0, 0, G_OPTION_ARG_NONE, &options->qdq,
          "only quantized models, under `default` and under `none`", NULL },
        { "open", 0, 0, G_OPTION_ARG_NONE, &options->open, "only open programs at several numbers",
          NULL },
        { "flow", 0, 0, G_OPTION_ARG_NONE, &options->flow,
          "only nests of branches, loops and scans", NULL },
        { "rows", 0, 0, G_OPTION_ARG_NONE, &options->rows,
          "only graphs that draw from every operator and element type", NULL },
        { "print", 0, 0, G_OPTION_ARG_NONE, &options->print, "graphs as text, nothing is tried",
          NULL },
        { "store", 0, 0, G_OPTION_ARG_FILENAME, &options->store, "where goldens go", "DIR" },
        { 0 }
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(GOptionContext) context = g_option_context_new("- properties of passes");
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error) || argc > 1) {
        fprintf(stderr, "kiln-random-graphs: %s\n", error ? error->message : "too many arguments");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGSEGV, on_crash);
    signal(SIGABRT, on_crash);
    signal(SIGFPE, on_crash);
    run.properties = g_ptr_array_new_with_free_func((GDestroyNotify)property_free);
    run.fired = g_ptr_array_new_with_free_func(g_free);
    run.road = g_ptr_array_new_with_free_func((GDestroyNotify)property_free);
    add_all(&run);
    add_road(&run);
    uint64_t graphs = 0, first = (uint64_t)options->first;
    while ((options->forever || graphs < (uint64_t)options->graphs) &&
           run.failures < FAILURES_MAX && !(options->forever && run.failures)) {
        uint64_t seed = first + graphs++;
        if (options->offload)
            try_offload(&run, seed);
        else if (options->qdq)
            try_qdq(&run, seed);
        else if (options->open)
            try_open(&run, seed);
        else if (options->flow)
            try_flow(&run, seed);
        else
            try_graph(&run, seed);
    }
    if (!options->print)
        summarize(&run);
    bool enough = (!options->open || open_summarize(&run.open)) &&
                  (!options->flow || options->print || flow_summarize(&run.flow));
    open_seen_clear(&run.open);
    flow_seen_clear(&run.flow);
    g_ptr_array_unref(run.road);
    g_ptr_array_unref(run.properties);
    g_ptr_array_unref(run.fired);
    g_free(options->passes);
    g_free(options->store);
    return run.failures > 0 || !enough || run.qdq.different * 1000 >= MAX(run.qdq.elements, 1);
}
