/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of a batch. Each thread has a session of the one program and takes the next item that
 * has no result. It holds the inputs and outputs of one run at a time. */
#include "tools/batch.h"

#include "graph/base/budget.h"
#include "graph/base/write_file.h"
#include "graph/error.h"
#include "graph/kiln-types.h"
#include "graph/tensor.h"
#include "graph/type.h"
#include "kiln.h"
#include "runtime/targets.h"
#include "runtime/tensors/tensor_file.h"
#include "tools/execute.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
    SHOW_NS = 100 * 1000 * 1000, /* between two looks at the state */
};

/* What the threads share. */
typedef struct {
    const KilnBatch *batch;
    KilnProgram *program;
    const KilnSessionOptions *session;
    KilnBudget *budget;   /* of the command */
    GPtrArray *todo;      /* KilnBatchItem*, borrowed */
    bool *shared;         /* per input: no item has a file for it */
    atomic_uint next;     /* of todo */
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    unsigned running; /* threads */
    KilnBatchCounts counts;
    GError *broken; /* why a thread has no session; NULL: all have one */
} Work;

/* --- signals --- */

static const int stopping[] = { SIGINT, SIGTERM, SIGHUP };

/* The signal that asks for an end; 0: none. */
static atomic_int stop;

static void
note_signal(int signal)
{
    atomic_store(&stop, signal);
}

/* The first signal ends the batch after the runs that are under way. A second one ends the process
 * at once, as it would without this. */
static void
hold_signals(struct sigaction *before)
{
    const struct sigaction note = { .sa_handler = note_signal,
                                    .sa_flags = SA_RESTART | (int)SA_RESETHAND };
    atomic_store(&stop, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(stopping); i++) {
        sigaction(stopping[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(stopping[i], &note, NULL);
    }
}

static void
release_signals(const struct sigaction *before)
{
    for (size_t i = 0; i < G_N_ELEMENTS(stopping); i++)
        sigaction(stopping[i], &before[i], NULL);
}

/* --- one run --- */

/* Binds what all runs share, once. */
static gboolean
open_session(const Work *work, KilnExecution *execution, GError **error)
{
    const KilnBatch *batch = work->batch;
    execution->program = kiln_program_ref(work->program);
    if (!kiln_execution_open(execution, NULL, NULL, work->session, error))
        return FALSE;
    for (unsigned i = 0; i < work->program->inputs.n; i++) {
        if (!work->shared[i] || work->program->values[i])
            continue;
        const char *file;
        g_autoptr(KilnTensor) tensor = kiln_inputs_tensor(
            batch->inputs, batch->model, i, work->program->inputs.types, &file, error);
        if (!tensor)
            return FALSE;
        if (!kiln_execution_bind(execution, i, tensor, error)) {
            if (file)
                kiln_prefix_error(error, "%s: ", file);
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean
bind_item(const Work *work, KilnExecution *execution, const KilnBatchItem *item, GError **error)
{
    const KilnBatch *batch = work->batch;
    const KilnType *types = work->program->inputs.types;
    for (unsigned i = 0; i < work->program->inputs.n; i++) {
        if (work->shared[i])
            continue;
        const char *file = g_ptr_array_index(item->files, i);
        g_autoptr(KilnTensor) tensor =
            file ? kiln_tensor_file_load(file, &types[i], &batch->inputs->image, error)
                 : kiln_inputs_tensor(batch->inputs, batch->model, i, types, &file, error);
        if (!tensor)
            return FALSE;
        if (!kiln_execution_bind(execution, i, tensor, error)) {
            if (file)
                kiln_prefix_error(error, "%s: ", file);
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean
write_outputs(const Work *work, KilnExecution *execution, const KilnBatchItem *item, GError **error)
{
    g_autoptr(GPtrArray) outputs = kiln_execution_outputs(execution, error);
    g_autoptr(GPtrArray) paths = kiln_batch_results(work->batch, item);
    g_autofree char *folder = paths->len ? g_path_get_dirname(paths->pdata[0]) : NULL;
    return outputs && (!folder || kiln_folder_make(folder, 0777, error)) &&
           kiln_tensors_write(paths, &work->program->outputs, outputs, error);
}

static void
run_item(const Work *work, KilnExecution *execution, KilnBatchItem *item)
{
    g_autoptr(GError) error = NULL;
    guint n_shared = execution->views->len;
    if (kiln_checkpoint(&error) && bind_item(work, execution, item, &error) &&
        kiln_execution_run(execution, 1, &error))
        write_outputs(work, execution, item, &error);
    g_ptr_array_set_size(execution->views, (int)n_shared);
    if (error)
        item->failure = g_str_has_prefix(error->message, item->name)
                            ? g_strdup(error->message)
                            : g_strdup_printf("%s: %s", item->name, error->message);
}

static void
count_item(Work *work, const KilnBatchItem *item)
{
    pthread_mutex_lock(&work->lock);
    work->counts.done += !item->failure;
    work->counts.failed += item->failure != NULL;
    pthread_mutex_unlock(&work->lock);
}

/* --- threads --- */

static KilnBatchItem *
next_item(Work *work)
{
    unsigned i = atomic_load(&stop) ? work->todo->len : atomic_fetch_add(&work->next, 1);
    return i < work->todo->len ? g_ptr_array_index(work->todo, i) : NULL;
}

static void *
run_items(void *data)
{
    Work *work = data;
    KilnBudget *before = kiln_budget_enter(work->budget);
    g_autoptr(GError) error = NULL;
    {
        g_auto(KilnExecution) execution = { 0 };
        KilnBatchItem *item;
        bool open = false; /* with the first item that was found whole */
        while (!error && (item = next_item(work))) {
            if (!item->failure && !open)
                open = open_session(work, &execution, &error);
            if (!item->failure && open)
                run_item(work, &execution, item);
            if (!error)
                count_item(work, item);
        }
    }
    kiln_budget_leave(before);
    pthread_mutex_lock(&work->lock);
    work->running--;
    if (error && !work->broken)
        work->broken = g_steal_pointer(&error);
    pthread_cond_signal(&work->changed);
    pthread_mutex_unlock(&work->lock);
    return NULL;
}

static double
seconds_since(gint64 start)
{
    return (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
}

/* Shows the state until all threads have ended. */
static void
watch(Work *work, gint64 start)
{
    KilnOptions *options = work->batch->options;
    bool told = false;
    pthread_mutex_lock(&work->lock);
    while (work->running) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += SHOW_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&work->changed, &work->lock, &until);
        KilnBatchCounts counts = work->counts;
        pthread_mutex_unlock(&work->lock);
        counts.seconds = seconds_since(start);
        kiln_batch_show(options, &counts, work->batch->items->len);
        if (atomic_load(&stop) && !told && !options->quiet) {
            kiln_clear_progress(options);
            fprintf(stderr, "kiln run: stops after the runs that are under way; a second signal "
                            "stops it at once\n");
            told = true;
        }
        pthread_mutex_lock(&work->lock);
    }
    pthread_mutex_unlock(&work->lock);
}

/* Fewer threads than @n where the system has no more; the caller's is one where it has none. */
static void
run_threads(Work *work, unsigned n)
{
    g_autofree pthread_t *threads = g_new0(pthread_t, n);
    unsigned made = 0;
    gint64 start = g_get_monotonic_time();
    work->running = n;
    while (made < n && pthread_create(&threads[made], NULL, run_items, work) == 0)
        made++;
    pthread_mutex_lock(&work->lock);
    work->running -= n - made;
    pthread_mutex_unlock(&work->lock);
    if (made) {
        watch(work, start);
    } else {
        work->running = 1;
        run_items(work);
    }
    for (unsigned i = 0; i < made; i++)
        pthread_join(threads[i], NULL);
    work->counts.seconds = seconds_since(start);
    kiln_clear_progress(work->batch->options);
}

/* --- the batch --- */

/* True if @item has results already. A file without content is what a system that crashed left. */
static bool
has_results(const KilnBatch *batch, const KilnBatchItem *item)
{
    g_autoptr(GPtrArray) paths = kiln_batch_results(batch, item);
    struct stat status;
    for (guint i = 0; i < paths->len; i++) {
        if (stat(paths->pdata[i], &status) != 0 || !S_ISREG(status.st_mode) || !status.st_size)
            return false;
    }
    return true;
}

static void
work_init(Work *work)
{
    const KilnBatch *batch = work->batch;
    const GPtrArray *items = batch->items;
    work->budget = kiln_budget_current();
    work->todo = g_ptr_array_new();
    work->shared = g_new(bool, batch->model->inputs.n + 1);
    memset(work->shared, true, batch->model->inputs.n + 1);
    pthread_mutex_init(&work->lock, NULL);
    pthread_cond_init(&work->changed, NULL);
    for (guint i = 0; i < items->len; i++) {
        KilnBatchItem *item = g_ptr_array_index(items, i);
        for (unsigned k = 0; k < item->files->len; k++)
            work->shared[k] &= !item->files->pdata[k];
        if (batch->overwrite || !has_results(batch, item))
            g_ptr_array_add(work->todo, item);
        else
            work->counts.skipped++;
    }
}

static void
work_clear(Work *work)
{
    pthread_mutex_destroy(&work->lock);
    pthread_cond_destroy(&work->changed);
    g_ptr_array_unref(work->todo);
    g_free(work->shared);
    g_clear_error(&work->broken);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Work, work_clear)

static int
end(Work *work, GError **error)
{
    KilnBatchCounts *counts = &work->counts;
    unsigned over = counts->done + counts->failed;
    counts->signal = over < work->todo->len ? atomic_load(&stop) : 0;
    if (over < work->todo->len && !counts->signal) {
        g_propagate_error(error, g_steal_pointer(&work->broken));
        return KILN_EXIT_FAILED;
    }
    if (!kiln_batch_report(work->batch, counts, error))
        return KILN_EXIT_FAILED;
    if (counts->signal)
        kiln_throw(error, KILN_ERROR_CANCELLED,
                   "stopped by a signal (%s) with %u of %u inputs left: the same command does the "
                   "rest",
                   g_strsignal(counts->signal), work->todo->len - over, work->batch->items->len);
    return counts->failed ? KILN_EXIT_PARTIAL : KILN_EXIT_OK;
}

int
kiln_batch_run(KilnBatch *batch, KilnProgram *program, const KilnSessionOptions *session,
               GError **error)
{
    if (!kiln_folder_make(batch->out_dir, 0777, error))
        return KILN_EXIT_FAILED;
    g_auto(Work) work = { .batch = batch, .program = program, .session = session };
    work_init(&work);
    int jobs = batch->jobs ? batch->jobs : kiln_processor_count() / MAX(session->threads, 1);
    struct sigaction before[G_N_ELEMENTS(stopping)];
    hold_signals(before);
    if (work.todo->len)
        run_threads(&work, MIN((unsigned)MAX(jobs, 1), work.todo->len));
    release_signals(before);
    return end(&work, error);
}
