/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a pipeline run. */
#ifndef KILN_PASSES_CONTEXT_OPTIONS_H
#define KILN_PASSES_CONTEXT_OPTIONS_H

#include "passes/pass.h"

/** Receives text to show, such as a dump or a note, in whole lines. NULL: silent. */
typedef void (*KilnTextFn)(const char *text, void *data);

typedef struct {
    const KilnTarget *target;       /* may be NULL for graph passes that evaluate nothing */
    const KilnTarget *check_target; /* --check runs on it (`ref`); NULL: `target` */
    KilnMode mode;
    int threads;
    bool prefer_memory;  /* skip faster forms that make weights grow */
    bool one_algorithm;  /* skip faster forms whose bits differ if an operand is a literal */
    bool verify;         /* after every pass; on by default in KILN_PASS_OPTIONS_INIT */
    bool check_changed;  /* hash before and after; fail a pass whose `changed` is wrong */
    bool check_numerics; /* --check: run before and after on seeded inputs and compare by class */
    bool log_rewrites;   /* send one line per rewrite to `log` */
    bool measure;        /* operations and constant bytes around each pass, for the report */
    const char *const *skip; /* pass ids, NULL-terminated; NULL: none */
    const char *const *only;
    int64_t stop_after;             /* entries; -1: all */
    int64_t bisect_limit;           /* pass applications, DCE included; -1: all */
    const char *const *print_after; /* pass ids or "all" */
    bool print_changed;             /* dump only after applications that changed something */
    const char *dump_dir;           /* a file per application; NULL: none */
    const char *disabled_guard;     /* for tests of tests: "rule/guard" that always holds */
    KilnTextFn dump, log;           /* may be NULL */
    void *data;
    gboolean (*progress)(double fraction, const char *what,
                         void *data); /* FALSE cancels; may be NULL */
} KilnPassOptions;

#define KILN_PASS_OPTIONS_INIT                                                                     \
    {                                                                                              \
        .threads = 1, .verify = true, .stop_after = -1, .bisect_limit = -1                         \
    }

#endif
