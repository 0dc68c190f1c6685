/* SPDX-License-Identifier: Apache-2.0 */
/* What whoever runs a pipeline chooses. */
#ifndef KILN_PASSES_CONTEXT_OPTIONS_H
#define KILN_PASSES_CONTEXT_OPTIONS_H

#include "passes/pass.h"

/** Called with text to show (a dump, a note), whole lines; silent where NULL. */
typedef void (*KilnTextFn)(const char *text, void *data);

typedef struct {
    const KilnTarget *target;       /* may be NULL for graph passes that evaluate nothing */
    const KilnTarget *check_target; /* what --check runs on (`ref`); NULL: `target` */
    KilnMode mode;
    int threads;
    bool prefer_memory; /* nothing is made faster that makes weights grow */
    bool one_algorithm; /* nothing is made faster that computes other bits of a literal operand than
                           of any other */
    bool verify;        /* after every pass; on by default in KILN_PASS_OPTIONS_INIT */
    bool check_changed; /* hash before and after, fail a pass that lies */
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
