/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that is no plug-in. */
int kiln_not_a_plugin(void);

__attribute__((visibility("default"))) int
kiln_not_a_plugin(void)
{
    return 1;
}
