/* SPDX-License-Identifier: Apache-2.0 */
/* Many runs of one program, for `kiln run --batch-of`: batch_items.c finds them, batch.c runs them
 * and batch_report.c says how it went. */
#ifndef KILN_TOOLS_BATCH_H
#define KILN_TOOLS_BATCH_H

#include "kiln.h"
#include "runtime/model.h"
#include "runtime/program.h"
#include "tools/command.h"
#include "tools/inputs.h"

/** One run, and its state. */
typedef struct {
    char *name;       /* the file or folder, as given */
    char *result;     /* the name of the result, without an ending */
    GPtrArray *files; /* char*, one for each input of the model; NULL: it has none for it */
    char *failure;    /* why it has no result; NULL: it has one, or was not run */
} KilnBatchItem;

/** A batch: set the fields, call kiln_batch_find() and then kiln_batch_run(). */
typedef struct {
    KilnOptions *options;
    const KilnInputs *inputs; /* those that all runs share */
    const KilnModel *model;
    const char *path;    /* of the model */
    const char *of;      /* a folder, or a list of files */
    const char *out_dir; /* where results go */
    bool npy, overwrite;
    int jobs;         /* runs at once, at most; 0: as many as keep all processors busy */
    GPtrArray *items; /* KilnBatchItem*, in order */
} KilnBatch;

/** What became of a batch. */
typedef struct {
    unsigned done, skipped, failed;
    double seconds;
    int signal; /* that stopped it; 0: none */
} KilnBatchCounts;

void kiln_batch_clear(KilnBatch *batch);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(KilnBatch, kiln_batch_clear)

/** Lists the items. KILN_ERROR_USAGE if a result would replace a file that is read, or two items
 * have results of one name. */
gboolean kiln_batch_find(KilnBatch *batch, GError **error);
/** The files of the results of @item: char*, one for each output. */
GPtrArray *kiln_batch_results(const KilnBatch *batch, const KilnBatchItem *item);
/** Runs the items that have no result yet, each in a session with the options @session, and
 * reports. Returns the exit status. */
int kiln_batch_run(KilnBatch *batch, KilnProgram *program, const KilnSessionOptions *session,
                   GError **error);

/** Shows @counts of @n runs on a terminal. */
void kiln_batch_show(KilnOptions *options, const KilnBatchCounts *counts, unsigned n);
/** Writes DIR/failures.tsv, lists failures on standard error and prints @counts. */
gboolean kiln_batch_report(const KilnBatch *batch, const KilnBatchCounts *counts, GError **error);
/** The file of failures. */
char *kiln_batch_failures_path(const KilnBatch *batch);

#endif
