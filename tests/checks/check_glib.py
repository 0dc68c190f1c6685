#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No function of GLib that allocates what grows with a model is called: check_glib.py BINARY…

graph/grow/glib.h has Kiln's own in their place. What a binary imports shows what was forgotten."""
import re
import subprocess
import sys

GROW = re.compile(r"g_(ptr_array|array|byte_array|hash_table|string|tree|sequence|queue|list|slist|string_chunk|slice)_\w+"
                  r"|g_(try_)?(malloc|realloc)\w*|g_memdup2?|g_str(n?dup|dupv|dup_v?printf|concat|split)"
                  r"|g_qsort_with_data|g_bytes_new|g_utf8_make_valid|g_base64_(en|de)code|g_intern_string"
                  r"|g_quark_from_string|json_\w+")


def main(binaries):
    failed = False
    for binary in binaries:
        symbols = subprocess.run(["nm", "-D", "--undefined-only", binary], capture_output=True, text=True, check=True).stdout
        names = {line.split()[-1].partition("@")[0] for line in symbols.splitlines() if line.split()}
        if not any(name.startswith("g_bytes_") for name in names):
            print(f"{binary}: expected functions of GLib among what it imports, found none")
            failed = True
        for name in sorted(filter(GROW.fullmatch, names)):
            print(f"{binary}: calls {name}, which aborts where memory runs out: see graph/grow/glib.h")
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
