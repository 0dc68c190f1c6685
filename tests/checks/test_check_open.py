# SPDX-License-Identifier: Apache-2.0
"""check_open.py refuses what it is there to refuse, on small trees made for that."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

import check_open

PASS = """static bool
rewrite(const KilnType *x, const KilnType *y)
{
%s
    return true;
}
"""


class Open(unittest.TestCase):
    def check(self, body, *lines):
        """What is said of a pass with @body, and a table of @lines."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in {"passes/graph/a.c": PASS % body, check_open.TABLE: "\n".join(lines)}.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                refused = check_open.main(root)
            self.assertEqual(refused, bool(out.getvalue()))
            return out.getvalue()

    def asks(self, body, who, what):
        """Without a line @body is refused, and with one it is not."""
        self.assertIn(f"passes/graph/a.c: {who} asks for {what}: expected 0", self.check(body))
        self.assertEqual(self.check(body, f"passes/graph/a.c {who} {what}: because"), "")

    def test_each_question(self):
        self.asks("    bool a = kiln_type_is_static(x);", "rewrite", "static")
        self.asks("    int64_t a = kiln_type_elements(x);", "rewrite", "elements")
        self.asks("    int64_t a = kiln_type_bytes(x);", "rewrite", "bytes")
        self.asks("    bool a = x->dims[perm.at[d]] >= 0;", "rewrite", "number")
        self.asks("    bool a = x->dims[d] > 1;", "rewrite", "number")
        self.asks("    bool a = x->dims[d] !=\n        node->results[0].type.dims[d];", "rewrite", "equal")

    def test_a_guard_asks(self):
        self.asks("    GUARD(small, f(x) && kiln_type_elements(x) < 4);", "small", "elements")
        self.asks("    PASS_GUARD(open, !f(x)); bool a = x->dims[0] < 0;", "rewrite", "number")

    def test_what_is_no_question(self):
        self.assertEqual(self.check("    /* kiln_type_is_static(x) */ bool a = x->dims[d] == 1 && kiln_type_equal_dims(x, d, y, d);"), "")

    def test_one_more(self):
        body = "    bool a = x->dims[0] < 0 || x->dims[1] < 0;"
        self.assertIn("expected 1 of it", self.check(body, "passes/graph/a.c rewrite number: because"))
        self.assertEqual(self.check(body, "passes/graph/a.c rewrite number x2: because"), "")

    def test_a_line_without_its_place(self):
        self.assertIn("rewrite asks for static: expected 1", self.check("", "passes/graph/a.c rewrite static: because"))

    def test_a_line_without_a_reason(self):
        self.assertIn("expected `FILE WHO WHAT: reason`", self.check("", "passes/graph/a.c rewrite static:"))

    def test_a_line_twice(self):
        line = "passes/graph/a.c rewrite static: because"
        self.assertIn("found another", self.check("    bool a = kiln_type_is_static(x);", line, line))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
