#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Passes fire on open dims as on numbers: what asks for a number is listed with its reason.

A place is a file, the guard or function that asks, and what it asks:

- `static`    kiln_type_is_static()
- `elements`  kiln_type_elements()
- `bytes`     kiln_type_bytes()
- `number`    a dim is compared with 0 or 1 by order: -1 stands for a dim without a number
- `equal`     a dim is compared with another one as numbers: two dims without numbers would be equal
- `place`     a number of a view or a region is compared or written

tests/checks/open_guards.txt has a line for each place, `FILE WHO WHAT: why a number is needed there`. A place that asks the
same several times has ` xN` in front of the colon. A place without a line is refused, and a line without its place.

Types of instructions have numbers, which hold at one binding. So a pass of instructions may ask for them where it weighs costs,
and asks graph/size.h where it decides whether a rewrite is right."""
import collections
import pathlib
import re
import sys

from guards import FUNCTION

FOLDERS = ("fold", "graph", "ir", "offload", "permute", "query", "query_ir", "rules")
TABLE = "tests/checks/open_guards.txt"
INDEX = r"\[(?:[^][]|\[[^][]*\])*\]"
ASKS = {
    "static": re.compile(r"\bkiln_type_is_static\("),
    "elements": re.compile(r"\bkiln_type_elements\("),
    "bytes": re.compile(r"\bkiln_type_bytes\("),
    "number": re.compile(rf"\bdims{INDEX}\s*[<>]=?\s*[01]\b"),
    "place": re.compile(r"(?:\bview_(?:offset|rows|pitch)|(?:\.|->)(?:rows|run|pitch|offset)) *(?:%|/|[-+*]?=|[<>!=]=|[<>] )"),
    "equal": re.compile(rf"\bdims{INDEX}\s*[!=]=\s*[^;&|?,]*?\bdims\["),
}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
GUARD = re.compile(r"\b(?:PASS_)?GUARD\((\w+),")
LINE = re.compile(r"(\S+) (\S+) (\w+)(?: x(\d+))?: (\S.*)")


def guard_spans(body):
    """(start, end, name) of each guard in @body."""
    spans = []
    for match in GUARD.finditer(body):
        depth, at = 1, body.index("(", match.start()) + 1
        while depth and at < len(body):
            depth += {"(": 1, ")": -1}.get(body[at], 0)
            at += 1
        spans.append((match.start(), at, match.group(1)))
    return spans


def asked_in(text):
    """How often the whole file asks: what functions do not ask is asked by macros."""
    return collections.Counter({what: len(pattern.findall(text)) for what, pattern in ASKS.items()})


def places_of(path, name):
    """{(file, who, what): how often} in one file."""
    text = COMMENT.sub("", path.read_text(encoding="utf-8"))
    found = collections.Counter()
    outside = asked_in(text)
    for function, _, body in FUNCTION.findall(text):
        spans = guard_spans(body)
        for what, pattern in ASKS.items():
            for match in pattern.finditer(body):
                who = next((guard for start, end, guard in spans if start <= match.start() < end), function)
                found[name, who, what] += 1
                outside[what] -= 1
    for what, count in outside.items():
        if count > 0:
            found[name, "-", what] = count
    return found


def read_table(path):
    """{(file, who, what): how often}, and what is wrong with the lines."""
    listed, problems = collections.Counter(), []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        if not match:
            problems.append(f"{TABLE}:{number}: expected `FILE WHO WHAT: reason`, found `{line}`")
        elif match.group(1, 2, 3) in listed:
            problems.append(f"{TABLE}:{number}: expected one line for a place, found another for {match.group(2)}")
        else:
            listed[match.group(1, 2, 3)] = int(match.group(4) or 1)
    return listed, problems


def main(root):
    """True where something is refused."""
    root = pathlib.Path(root)
    listed, problems = read_table(root / TABLE)
    found = collections.Counter()
    for folder in FOLDERS:
        for path in sorted((root / "passes" / folder).glob("*.[ch]")):
            found += places_of(path, path.relative_to(root).as_posix())
    for place in sorted(found.keys() | listed.keys()):
        file, who, what = place
        if found[place] != listed[place]:
            problems.append(f"{file}: {who} asks for {what}: expected {listed[place]} of it, as {TABLE} says, found {found[place]}")
    print("\n".join(problems), end="\n" if problems else "")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
