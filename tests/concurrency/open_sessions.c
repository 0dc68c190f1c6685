/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of one open program on several threads, each at shapes of its own: the program is
 * compiled once, its weights are packed once, and all results have the bits that one thread gets.
 */
#include "graph/graph.h"
#include "graph/tensor.h"
#include "graph/type.h"
#include "kiln.h"
#include "passes/manager/results.h"
#include "passes/pass.h"
#include "runtime/specialise.h"
#include "tests/concurrency/concurrency.h"
#include "tests/random/given.h"
#include "tests/random/opened.h"
#include "tests/random/random_graph.h"

#include <pthread.h>
#include <stdio.h>

enum {
    THREADS = 8,
    GRAPHS = 200,
    PARTS = 2,
    LARGE = 20, /* the numbers of each thread are near it */
    ROUNDS = 2,
};

/* What one thread runs. */
typedef struct {
    Opened opened; /* with the numbers of the thread; borrows all else */
    KilnProgram *program;
    pthread_barrier_t *start;
    KilnBinding *bindings[N_NUMBERS];
    GPtrArray *inputs[N_NUMBERS];     /* KilnTensor* */
    KilnResults *expected[N_NUMBERS]; /* NULL: the run fails */
    int shift;                        /* where it begins among its shapes */
} Work;

static KilnResults *
run(KilnSession *session, const KilnBinding *bindings, const GPtrArray *inputs)
{
    GBytes *bytes[KILN_MAX_RANK * 2];
    REQUIRE(inputs->len <= G_N_ELEMENTS(bytes));
    for (guint i = 0; i < inputs->len; i++) {
        bytes[i] = kiln_tensor_view(g_ptr_array_index(inputs, i), NULL);
        REQUIRE(bytes[i]);
        REQUIRE(kiln_session_bind_input_shaped(session, i, g_bytes_get_data(bytes[i], NULL),
                                               bindings[i].rank, bindings[i].dims, NULL));
    }
    KilnResults *results = kiln_session_run(session, NULL) ? given_results(session, NULL) : NULL;
    for (guint i = 0; i < inputs->len; i++)
        g_bytes_unref(bytes[i]);
    return results;
}

static KilnSession *
session_of(KilnProgram *program)
{
    KilnSessionOptions options = KILN_SESSION_OPTIONS_INIT;
    options.seeded = TRUE;
    KilnSession *session = kiln_session_new(program, &options, NULL);
    REQUIRE(session);
    return session;
}

static void *
work(void *data)
{
    const Work *mine = data;
    pthread_barrier_wait(mine->start);
    KilnSession *session = session_of(mine->program);
    for (int i = 0; i < ROUNDS * N_NUMBERS; i++) {
        int n = (i + mine->shift) % N_NUMBERS;
        g_autoptr(KilnResults) found = run(session, mine->bindings[n], mine->inputs[n]);
        REQUIRE(!found == !mine->expected[n]);
        REQUIRE(!found || kiln_results_compare(mine->expected[n], found, KILN_NUMERICS_E, NULL));
    }
    kiln_session_free(session);
    return NULL;
}

/* --- one graph --- */

static void
prepare(Work *mine, const Opened *opened, KilnProgram *alone, int thread)
{
    mine->opened = *opened;
    mine->opened.seed += (uint64_t)thread * 3;
    mine->opened.large = MIN(opened->large, LARGE) + thread;
    mine->shift = thread;
    KilnSession *session = session_of(alone);
    for (int n = 0; n < N_NUMBERS; n++) {
        mine->bindings[n] = opened_bindings(&mine->opened, (Numbers)n);
        mine->inputs[n] = opened_inputs(&mine->opened, mine->bindings[n], NULL);
        REQUIRE(mine->inputs[n]);
        mine->expected[n] = run(session, mine->bindings[n], mine->inputs[n]);
    }
    kiln_session_free(session);
}

static void
clear(Work *mine)
{
    for (int n = 0; n < N_NUMBERS; n++) {
        g_free(mine->bindings[n]);
        g_ptr_array_unref(mine->inputs[n]);
        kiln_results_free(mine->expected[n]);
    }
}

static void
run_together(const Opened *opened, KilnProgram *alone, KilnProgram *shared)
{
    Work works[THREADS] = { 0 };
    pthread_t threads[THREADS];
    pthread_barrier_t start;
    REQUIRE(pthread_barrier_init(&start, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++) {
        prepare(&works[i], opened, alone, i);
        works[i].program = shared;
        works[i].start = &start;
    }
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, work, &works[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        clear(&works[i]);
    pthread_barrier_destroy(&start);
}

/* Each eighth graph is for a vendor library, which gets all that it takes. */
static bool
try_graph(uint64_t seed)
{
    const bool vendor = seed % 8 == 5;
    g_autoptr(KilnModule) module = vendor ? random_vendor_graph(seed) : random_graph(seed);
    g_autoptr(KilnPipeline) pipeline = kiln_pipeline_load(vendor ? "offload" : "default", NULL);
    g_auto(Opened) opened = { 0 };
    if (!opened_init(&opened, module, seed))
        return false;
    KilnModel *model = given_load(opened.module, NULL);
    REQUIRE(model);
    KilnCompileOptions options = KILN_COMPILE_OPTIONS_INIT;
    options.threads = 2;
    options.pipeline = pipeline;
    REQUIRE(pipeline);
    KilnProgram *alone = kiln_program_compile(model, &options, NULL);
    KilnProgram *shared = kiln_program_compile(model, &options, NULL);
    REQUIRE(alone && shared);
    run_together(&opened, alone, shared);
    kiln_program_unref(alone);
    kiln_program_unref(shared);
    kiln_model_unref(model);
    return true;
}

/* open_sessions PART: half of the graphs, those of every other seed. */
int
main(int argc, char **argv)
{
    int tried = 0;
    const uint64_t first = argc > 1 ? g_ascii_strtoull(argv[1], NULL, 10) : 0;
    for (uint64_t seed = 1 + first; tried < GRAPHS / PARTS; seed += PARTS)
        tried += try_graph(seed);
    printf("%d graphs\n", tried);
    return 0;
}
