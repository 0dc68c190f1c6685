#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks who includes whom: folders point downwards only, and no files include each other in a circle.

A file here is a unit: a source together with the headers that declare what it defines. `x.h` and `x_priv.h` belong to
`x.c` beside them; an installed header, include/kiln/F/x.h, belongs to the one `x.c` below F, and to F where there is none.

The picture is the table in docs/architecture.md, section "Folders and arrows". A row says what its folders or
files may include beside themselves. A folder without a row belongs to the nearest folder around it that has one. `F/` stands
for F with all rows inside it. What lies in F itself may be included by all folders inside F."""
import pathlib
import re
import subprocess
import sys

INSTALLED = "include/kiln/"
PICTURE = "docs/architecture.md"
LIBRARY = {"graph", "ir", "exec", "passes", "backends", "runtime"}


def picture(text):
    """{row: what it may include}, from the table of the section."""
    section = re.search(r"^## Folders and arrows$(.*?)(?=^## |\Z)", text, re.M | re.S)
    arrows = {}
    for line in section.group(1).splitlines() if section else ():
        cells = [re.findall(r"`([^`]+)`", cell) for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and cells[0]:
            rows, allowed = ([re.sub(r"\.[ch]$", "", name.removeprefix(INSTALLED)) for name in cell] for cell in cells[:2])
            for row in rows:
                arrows[row] = set(rows) | set(allowed)
    return arrows


def includes(root):
    """{file, as an include names it: (its path, [(line, what it includes)])} of all files under Git."""
    names = subprocess.run(["git", "ls-files", "*.c", "*.h", "*.def", "*.cc"], cwd=root, capture_output=True, text=True,
                           check=True)
    found = {}
    for name in names.stdout.split():
        path = pathlib.Path(root, name)
        if not path.exists():
            continue
        lines = enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        found[name.removeprefix(INSTALLED)] = name, [(number, match.group(1)) for number, line in lines
                                                     if (match := re.match(r'\s*#\s*include "([^"]+)"', line))]
    return found


def units(files):
    """{file: the unit that it belongs to}."""
    sources = {name.rsplit(".", 1)[0] for name in files if name.endswith((".c", ".cc"))}
    below = {}
    for stem in sources:
        below.setdefault((stem.split("/")[0], stem.rsplit("/", 1)[-1]), []).append(stem)

    def unit(name):
        stem = name.rsplit(".", 1)[0]
        if not name.endswith((".c", ".cc", ".h")):
            return name
        for own in (stem, stem.removesuffix("_priv")):
            if own in sources:
                return own
        alike = below.get((stem.split("/")[0], stem.rsplit("/", 1)[-1]), [])
        top = files[name][0].startswith(INSTALLED) and name.count("/") == 1
        return alike[0] if top and len(alike) == 1 else name

    return {name: unit(name) for name in files}


def row_of(unit, arrows):
    if unit == "kiln.h":
        return "runtime"
    return next((row for row in sorted(arrows, key=len, reverse=True) if unit.rsplit(".", 1)[0] == row or
                 unit == row or unit.startswith(row + "/")), None)


def may_include(home, target, arrows):
    return any(target == allowed or (target + "/").startswith(allowed) and allowed.endswith("/")
               for allowed in arrows[home] | {home}) or home.startswith(target + "/")


def upward(files, unit_of, arrows):
    for name, (path, lines) in files.items():
        home = row_of(unit_of[name], arrows)
        for number, included in lines if home else ():
            target = row_of(unit_of.get(included, included), arrows)
            if target and not may_include(home, target, arrows):
                yield f"{path}:{number}: {home} must not include {included}, which belongs to {target}"


def edges_of(files, unit_of):
    """{unit: {unit that it includes: where}}."""
    edges = {}
    for name, (path, lines) in files.items():
        for number, included in lines:
            target = unit_of.get(included)
            if target and target != unit_of[name]:
                edges.setdefault(unit_of[name], {}).setdefault(target, f"{path}:{number}: includes {included}")
    return edges


def way(edges, start, end):
    """The shortest list of units from @start to @end; None where there is none."""
    before, todo = {start: None}, [start]
    for unit in todo:
        for target in edges.get(unit, ()):
            if target == end:
                todo = [end, unit]
                while before[todo[-1]] is not None:
                    todo.append(before[todo[-1]])
                return todo[::-1]
            if target not in before:
                before[target] = unit
                todo.append(target)
    return None


def circles(files, unit_of):
    """A shortest circle of units for each unit that is in one and in none that was listed."""
    edges, listed = edges_of(files, unit_of), set()
    for unit in sorted(edges):
        found = None if unit in listed else way(edges, unit, unit)
        if found:
            listed.update(found)
            yield "\n    ".join(["circle of files: " + " -> ".join(found),
                                 *(edges[a][b] for a, b in zip(found, found[1:]))])


def main(root):
    files = includes(root)
    unit_of = units(files)
    arrows = picture(pathlib.Path(root, PICTURE).read_text(encoding="utf-8"))
    problems = [*upward(files, unit_of, arrows), *circles(files, unit_of)]
    problems += [f"{PICTURE}: 'Folders and arrows' has no row for {top}"
                 for top in sorted(LIBRARY & {name.split("/")[0] for name in files})
                 if not any((row + "/").startswith(top + "/") for row in arrows)]
    for problem in problems:
        print(problem)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
