#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Examples in Python of README.md, docs/python.md and docs/sequences.md run, and print what the documents say."""
import contextlib
import io
import os
import re
import unittest

from case import DIGITS, SOURCE, kiln_nn, main, np, seven, text_model

try:
    import PIL
except ImportError:
    PIL = None


def examples(name):
    text = (SOURCE / name).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)


def printed(code, names):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, names)  # pylint: disable=exec-used
    return out.getvalue().strip()


class Examples(unittest.TestCase):
    def setUp(self):
        before = os.getcwd()
        os.chdir(SOURCE)
        self.addCleanup(os.chdir, before)

    @unittest.skipIf(PIL is None, "python3-pil is absent")
    def test_readme(self):
        code, = examples("README.md")
        self.assertEqual(printed(code, {}), re.search(r"print\(.*# (.*)", code).group(1))

    def test_python_md(self):
        model = text_model((SOURCE / "docs/examples/picture.kiln").read_text(encoding="utf-8"))
        session = kiln_nn.load(DIGITS).compile().session()
        names = {"picture": seven(), "numpy": np, "kiln_nn": kiln_nn, "session": session, "program": session.program,
                 "paths": ["one", "two"], "read": lambda path: seven(), "model": model}
        sevens = 0
        for code in examples("docs/python.md"):
            with self.subTest(code=code):
                if "table" in code or "model.onnx" in code:
                    compile(code, "docs/python.md", "exec")
                elif code.startswith(">>> "):
                    self.check_session(code, dict(names))
                else:
                    sevens += printed(code, dict(names)).count("7")
        self.assertEqual(sevens, 3)

    def test_sequences_md(self):
        code, = examples("docs/sequences.md")
        self.check_session(code, {"split": kiln_nn.load("docs/examples/split.kiln").compile().session()})

    def check_session(self, code, names):
        line, expected = code[4:].strip().split("\n", 1)
        try:
            found = repr(eval(line, names))  # pylint: disable=eval-used
        except kiln_nn.Error as error:
            found = f"kiln_nn.{type(error).__name__}: {error}"
        self.assertEqual(found, expected)


if __name__ == "__main__":
    main()
