/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of the C library, as the copy of libfyaml inside the extension calls them:
 * python/static.cmake. */
#include <stdio.h>

extern FILE *kiln_py_stdin, *kiln_py_stdout, *kiln_py_stderr;

FILE *kiln_py_stdin, *kiln_py_stdout, *kiln_py_stderr;

__attribute__((constructor)) static void
set_streams(void)
{
    kiln_py_stdin = stdin;
    kiln_py_stdout = stdout;
    kiln_py_stderr = stderr;
}
