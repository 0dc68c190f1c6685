/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/concurrency/team.c" // NOLINT(bugprone-suspicious-include)
