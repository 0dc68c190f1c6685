/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of tests/plugin/operators.c in the test program itself. */
#ifndef KILN_TESTS_TEST_OPERATORS_H
#define KILN_TESTS_TEST_OPERATORS_H

/** Registers them; again changes nothing. */
void test_operators_register(void);

#endif
