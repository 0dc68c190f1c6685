#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every line of the checklists of graph passes, of constants and of offload has a test that carries its name, or, of constants,
a row of docs/constants.md that says why not: `| CTF-33 | does not apply: …`.

A golden carries names in its file name, between dashes (`N03-other-operand.kiln`, `GLW-06-n24-other-axis.kiln`); a test of
Criterion or of the command line in its own (`Test(checklist, n14_…)`, `test_glw_p6_…`). Capitals do not matter.

And no class or function of a script has the name of one in front of it, whose tests would not run."""
import ast
import pathlib
import re
import sys

NAMES = [*(f"GLW-{i:02}" for i in range(1, 9)), *(f"GLW-Q{i}" for i in range(1, 12)), *(f"GLW-P{i}" for i in range(1, 8)),
         *(f"N{i:02}" for i in range(1, 31)), *(f"OFF-{i:02}" for i in range(1, 15)),
         *(f"CTF-{i:02}" for i in range(1, 43)), *(f"CP-{i:02}" for i in range(1, 17))]
NAME = re.compile(r"glw_(?:\d\d|[qp]\d+)|n\d\d|(?:off|ctf|cp)_\d\d")
REASON = re.compile(r"^\| ((?:CTF|CP)-\d\d) \| does not apply: ", re.M)


def names_in(text):
    """The checklist's names in a test's name: each begins where the one before ended, so that both of n07_n08 are seen."""
    words, at = text.lower().replace("-", "_").split("_"), 0
    while at < len(words):
        pair = "_".join(words[at:at + 2])
        for candidate in (pair, words[at]):
            if NAME.fullmatch(candidate):
                yield candidate.replace("_", "-").upper()
                break
        at += 1


def tests(root):
    for golden in (root / "tests/golden").glob("*/*.kiln"):
        yield golden.stem
    for source in (root / "tests").rglob("*.c"):
        for name in re.findall(r"^(?:Test|ParameterizedTest)\([^,)]*,\s*(\w+)", source.read_text(encoding="utf-8"), re.M):
            yield name
    for script in (root / "tests").rglob("*.py"):
        for name in re.findall(r"^\s*def test_(\w+)", script.read_text(encoding="utf-8"), re.M):
            yield name


def hidden(text):
    """Line and name of what takes a name that is taken, in a module or a class."""
    for scope in ast.walk(ast.parse(text)):
        names = set()
        for item in scope.body if isinstance(scope, (ast.Module, ast.ClassDef)) else ():
            name = getattr(item, "name", None)
            if name in names:
                yield item.lineno, name
            names.update([name] if name else ())


def main(root):
    found = {name for test in tests(pathlib.Path(root)) for name in names_in(test)}
    found.update(REASON.findall((pathlib.Path(root) / "docs/constants.md").read_text(encoding="utf-8")))
    missing = [name for name in NAMES if name not in found]
    for name in missing:
        print(f"{name}: expected a test of this name: a golden {name}-….kiln, or a test {name.lower().replace('-', '_')}_…")
    twice = [(path, *found) for path in sorted((pathlib.Path(root) / "tests").rglob("*.py"))
             for found in hidden(path.read_text(encoding="utf-8"))]
    for path, line, name in twice:
        print(f"{path}:{line}: {name} hides what has this name in front of it")
    return bool(missing or twice)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
