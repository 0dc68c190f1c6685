/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzzers share: the rules that hold for bad input of any kind, and the road that a model
 * which was accepted goes on. */
#ifndef KILN_TESTS_FUZZ_FUZZ_H
#define KILN_TESTS_FUZZ_FUZZ_H

#include "runtime/model.h"
#include "runtime/program.h"

/** Ends the process where a function that returned @good breaks a rule: a failure has an error of
 * Kiln's domain with a readable message, a success has none, and nothing is printed. */
void fuzz_expect(bool good, const GError *error);
/** fuzz_expect(), and an error of a pass ends the process: none may fail on a valid model. */
void fuzz_expect_passes(bool good, const GError *error);
/** Compiles @model, whose open dims become small, in one of the @ways there are; runs it if it is
 * small. */
void fuzz_compile(KilnModel *model, unsigned way);
/** The default pipeline on @model, whose results `ref` compares before and after each pass. */
void fuzz_check(const KilnModel *model, unsigned way);
/** Runs @program on seeded inputs, if it is small. */
void fuzz_run(KilnProgram *program);
/** A copy of its own size, so that reading one byte too many is seen. To be freed. */
char *fuzz_copy(const uint8_t *data, size_t size);
/** A file of these bytes, whose name ends in @ending, for readers that ask for a path; borrowed. */
const char *fuzz_file(const char *ending, const uint8_t *data, size_t size);

#endif
