#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks who includes whom: folders point downwards only, and no file includes itself through others.

ARROWS is the picture in docs/architecture.md: a folder may include itself, the folders inside it, and the folders in its row.
A folder that lies in another one and has no row of its own belongs to the nearest folder around it that has one. An installed
header, include/kiln/F/h, belongs to the folder F."""
import pathlib
import re
import subprocess
import sys

ARROWS = {
    "graph": set(),
    "ir": {"graph"},
    "exec": {"ir", "graph"},
    "passes": {"exec", "ir", "graph"},
    "backends/ref": {"exec", "ir", "graph"},
    "backends/cpu": {"exec", "ir", "graph"},
    "backends/onednn": {"exec", "ir", "graph"},
    "runtime": {"backends/ref", "backends/cpu", "backends/onednn", "passes", "exec", "ir", "graph"},
}
INSTALLED = "include/kiln/"


def inside(name, folder):
    return name.startswith(folder + "/")


def folder_of(name):
    """The row of ARROWS that a file belongs to; kiln.h belongs to the runtime."""
    if "/" not in name:
        return "runtime" if name == "kiln.h" else None
    return next((f for f in sorted(ARROWS, key=len, reverse=True) if inside(name, f)), None)


def may_include(home, target):
    return any(target == folder or inside(target, folder) for folder in {home} | ARROWS[home])


def includes(root):
    """{file, as an include names it: [(its path, line, what it includes)]} of all files under Git."""
    names = subprocess.run(["git", "ls-files", "*.c", "*.h", "*.def", "*.cc"], cwd=root, capture_output=True, text=True,
                           check=True)
    found = {}
    for name in names.stdout.split():
        path = pathlib.Path(root, name)
        if not path.exists():
            continue
        lines = enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        found[name.removeprefix(INSTALLED)] = [(name, number, match.group(1)) for number, line in lines
                                               if (match := re.match(r'\s*#include "([^"]+)"', line))]
    return found


def upward(files):
    for name, lines in files.items():
        home = folder_of(name)
        for path, number, included in lines if home else ():
            target = folder_of(included)
            if target and not may_include(home, target):
                yield f"{path}:{number}: {home} must not include {included}"


def circles(files):
    """Each circle of includes once, by depth-first search."""
    done, stack, on_stack = set(), [], set()

    def visit(name):
        stack.append(name)
        on_stack.add(name)
        for _, _, included in files.get(name, ()):
            if included in on_stack:
                yield " -> ".join([*stack[stack.index(included):], included])
            elif included not in done:
                yield from visit(included)
        on_stack.discard(stack.pop())
        done.add(name)

    for name in files:
        if name not in done:
            yield from visit(name)


def main(root):
    files = includes(root)
    problems = [*upward(files), *(f"circle of includes: {circle}" for circle in circles(files))]
    for problem in problems:
        print(problem)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
