/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the fuzzers: the rules for bad input of any kind, and the steps that an accepted model
 * goes through. */
#ifndef KILN_TESTS_FUZZ_FUZZ_H
#define KILN_TESTS_FUZZ_FUZZ_H

#include "runtime/model.h"
#include "runtime/program.h"

/** Ends the process if a function that returned @good breaks a rule. A failure has an error of
 * Kiln's domain with a readable message. A success has none. Nothing is printed. */
void fuzz_expect(bool good, const GError *error);
/** Like fuzz_expect(), but an error of a pass ends the process: none may fail on a valid model. */
void fuzz_expect_passes(bool good, const GError *error);
/** Compiles @model in the way of number @way, with small open dims. Runs it if it is small. */
void fuzz_compile(KilnModel *model, unsigned way);
/** Runs the default pipeline on @model. `ref` compares the results before and after each pass. */
void fuzz_check(const KilnModel *model, unsigned way);
/** Runs @program on seeded inputs, if it is small. */
void fuzz_run(KilnProgram *program);
/** Returns a copy of exactly @size bytes, so that reads behind it show. The caller frees it. */
char *fuzz_copy(const uint8_t *data, size_t size);
/** Writes a file of these bytes for readers that need a path. Returns the path, which ends in
 * @ending. Borrowed. */
const char *fuzz_file(const char *ending, const uint8_t *data, size_t size);

#endif
