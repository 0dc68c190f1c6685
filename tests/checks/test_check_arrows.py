# SPDX-License-Identifier: Apache-2.0
"""check_arrows.py refuses what it is there to refuse, on small trees made for that."""
import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_arrows

PICTURE = """# Architecture

## Folders and arrows

| folders | may include | what they hold |
| --- | --- | --- |
| `low` | | numbers |
| `high` | `low` | nodes |
| `high/inner`, `high/other` | `high`, `low` | kernels |
| `top` | `high/` | programs |

## More
"""


class Arrows(unittest.TestCase):
    def check(self, files):
        """Whether the tree is refused, and what is said of it."""
        with tempfile.TemporaryDirectory() as root:
            for name, text in {"docs/architecture.md": PICTURE, **files}.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            subprocess.run(["git", "init", "-q"], cwd=root, check=True)
            subprocess.run(["git", "add", "."], cwd=root, check=True)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                refused = check_arrows.main(root)
            return refused, out.getvalue()

    def accepts(self, files):
        self.assertEqual(self.check(files), (False, ""))

    def refuses(self, files, *texts):
        refused, said = self.check(files)
        self.assertTrue(refused)
        for text in texts:
            self.assertIn(text, said)

    def test_a_folder_includes_what_is_below(self):
        self.accepts({"low/a.h": "", "high/b.c": '#include "low/a.h"\n', "top/c.c": '#include "high/inner/d.h"\n',
                      "high/inner/d.h": '#include "high/b.h"\n#include "high/other/e.h"\n', "high/b.h": "",
                      "high/other/e.h": ""})

    def test_an_arrow_upwards(self):
        self.refuses({"high/b.h": "", "low/a.c": '\n#include "high/b.h"\n'},
                     "low/a.c:2: low must not include high/b.h, which belongs to high")

    def test_an_arrow_into_a_nested_folder(self):
        self.refuses({"high/inner/d.h": "", "high/b.c": '#include "high/inner/d.h"\n'},
                     "high/b.c:1: high must not include high/inner/d.h, which belongs to high/inner")

    def test_an_installed_header_belongs_to_its_source(self):
        self.refuses({"include/kiln/high/d.h": "", "high/inner/d.c": '#include "high/d.h"\n',
                      "high/b.c": '#include "high/d.h"\n'},
                     "high/b.c:1: high must not include high/d.h, which belongs to high/inner")

    def test_a_circle_of_headers(self):
        self.refuses({"low/a.h": '#include "low/b.h"\n', "low/b.h": '#include "low/a.h"\n'},
                     "circle of files: low/a.h -> low/b.h -> low/a.h", "low/b.h:1: includes low/a.h")

    def test_a_circle_by_way_of_sources(self):
        self.refuses({"low/a.h": "", "low/a.c": '#include "low/a.h"\n#include "low/b.h"\n', "low/b.h": "",
                      "low/b.c": '#include "low/b.h"\n#include "low/a_priv.h"\n', "low/a_priv.h": ""},
                     "circle of files: low/a -> low/b -> low/a", "low/a.c:2: includes low/b.h",
                     "low/b.c:2: includes low/a_priv.h")

    def test_a_header_without_a_source_ends_a_circle(self):
        self.accepts({"low/data.h": "", "low/a.h": '#include "low/data.h"\n', "low/a.c": '#include "low/b.h"\n',
                      "low/b.h": '#include "low/data.h"\n', "low/b.c": '#include "low/b.h"\n'})

    def test_a_folder_without_a_row(self):
        self.refuses({"runtime/a.c": ""}, "'Folders and arrows' has no row for runtime")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=1))
