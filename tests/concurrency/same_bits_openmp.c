/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/concurrency/same_bits.c" // NOLINT(bugprone-suspicious-include)
