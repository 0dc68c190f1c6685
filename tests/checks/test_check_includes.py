# SPDX-License-Identifier: Apache-2.0
"""check_includes.py refuses what it is there to refuse, on small trees made for that."""
import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_includes


def header(text):
    """@text with a guard, from line 3 on."""
    return f"#ifndef KILN_H\n#define KILN_H\n{text}#endif\n"


LOW = header("typedef struct KilnLow {\n    int n_low;\n} KilnLow;\nint kiln_low(const KilnLow *low);\n"
             "enum { KILN_LOW_A, KILN_LOW_B };\n#define KILN_LOW_MAX 3\nstatic inline int\nhalf(int n)\n{\n    return n / 2;\n}\n")
HIGH = header('#include "low.h"\nKilnLow *kiln_high(int n);\n')


class Includes(unittest.TestCase):
    def check(self, files):
        """What is said of a tree with low.h, and high.h, which includes it."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in {"low.h": LOW, "high.h": HIGH, **files}.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            subprocess.run(["git", "init", "-q"], cwd=root, check=True)
            subprocess.run(["git", "add", "."], cwd=root, check=True)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                refused = check_includes.main(root)
            self.assertEqual(refused, bool(out.getvalue()))
            return out.getvalue()

    def accepts(self, files):
        self.assertEqual(self.check(files), "")

    def refuses(self, files, *lines):
        self.assertEqual(self.check(files).splitlines(), list(lines))

    def test_what_is_used_is_included(self):
        self.accepts({"user.c": '#include "high.h"\n#include "low.h"\nint a(void)\n{\n    return kiln_low(kiln_high(1));\n}\n'})

    def test_each_kind_of_name(self):
        for use, name in (("int b = 1 + KILN_LOW_MAX;", "KILN_LOW_MAX"), ("KilnLow *b;", "KilnLow"), ("int b = KILN_LOW_B;", "KILN_LOW_B"),
                          ("int b(void)\n{\n    return kiln_low(0);\n}", "kiln_low"), ("int b(void)\n{\n    return half(2);\n}", "half"),
                          ("#define B kiln_low(0)", "kiln_low")):
            line = 2 + use.count("\n", 0, use.index(name)) + 1
            self.refuses({"user.c": f'#include "high.h"\nvoid *a(void) {{ return kiln_high(1); }}\n{use}\n'},
                         f"user.c:{line}: uses {name}, but does not include low.h")

    def test_a_header_uses_names_too(self):
        self.refuses({"user.h": header('#include "high.h"\nKilnLow *kiln_user(int n);\n#define USER kiln_high(1)\n')},
                     "user.h:4: uses KilnLow, but does not include low.h")

    def test_nothing_is_used(self):
        self.refuses({"user.c": '/* kiln_low */\n#include "low.h"\nconst char *a = "kiln_low";\nint b(int *c) { return c->kiln_low; }\n'},
                     "user.c:2: includes low.h, but uses nothing of it")

    def test_a_definition_without_its_declaration(self):
        self.refuses({"user.c": "int\nkiln_low(const void *low)\n{\n    return !low;\n}\n"},
                     "user.c:2: defines kiln_low, but does not include low.h")

    def test_a_field_is_a_use(self):
        self.accepts({"user.h": header("struct KilnLow;\nconst struct KilnLow *user;\n"),
                      "user.c": '#include "user.h"\n#include "low.h"\nint a(void) { return user->n_low; }\n'})

    def test_an_own_header_counts_with_its_includes(self):
        own = header('#include "low.h"\nint kiln_user(KilnLow *low);\n')
        source = "int\nkiln_user(KilnLow *low)\n{\n    return kiln_low(low);\n}\n"
        self.accepts({"user.h": own, "user.c": '#include "user.h"\n' + source})
        self.accepts({"all_priv.h": own, "user.c": '#include "all_priv.h"\n' + source})
        self.refuses({"all_priv.h": own, "user.c": '#include "all_priv.h"\n' + source.replace("kiln_user", "other")},
                     "user.c:1: includes all_priv.h, but uses nothing of it", "user.c:3: uses KilnLow, but does not include low.h")

    def test_installed_headers_are_layers(self):
        self.accepts({"include/kiln/low2.h": LOW.replace("ow", "ow2").replace("OW", "OW2"),
                      "include/kiln/high2.h": header('#include "low2.h"\nKilnLow2 *kiln_high2(int n);\n'),
                      "user.c": '#include "high2.h"\nint a(void) { return kiln_low2(kiln_high2(1)); }\n'})

    def test_names_of_rows(self):
        rows = {"rows.def": "ROW(add, 2)\nROW(neg, 1)\n",
                "rows.h": header("enum {\n#define ROW(id, n) KILN_ROW_##id,\n#include \"rows.def\"\n#undef ROW\n};\n"),
                "over.h": header('#include "rows.h"\n#define OVER KILN_ROW_neg\n')}
        self.accepts({**rows, "user.c": '#include "rows.h"\nint a = KILN_ROW_add;\n'})
        self.refuses({**rows, "user.c": '#include "over.h"\nint a = OVER, b = KILN_ROW_add;\n'},
                     "user.c:2: uses KILN_ROW_add, but does not include rows.h")

    def test_a_part_uses_what_its_includer_includes(self):
        self.accepts({"part.h": "static int part(void) { return kiln_low(0); }\n",
                      "user.c": '#include "low.h"\n#include "part.h"\nint a(void) { return part(); }\n'})

    def test_the_c_library(self):
        self.accepts({"user.c": "#include <math.h>\n#include <string.h>\nint a(char *b) { memset(b, 0, 1); return isnan(sqrtf(2)); }\n"})
        self.refuses({"user.c": "#include <string.h>\nint a(void)\n{\n    return isnan(1);\n}\n"},
                     "user.c:1: includes string.h, but uses nothing of it", "user.c:4: uses isnan, but does not include math.h")
        self.refuses({"user.c": "int a(void *b)\n{\n    free(b);\n    return printf(\"\");\n}\n"},
                     "user.c:3: uses free, but does not include stdlib.h", "user.c:4: uses printf, but does not include stdio.h")
        self.accepts({"user.c": "static int remove(int b) { return b; }\nint a(int exp) { return exp + remove(1); }\n"})


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
