#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Switches every guard of the passes off, one at a time, and demands that some golden notices.

    mutate_guards.py SOURCE_DIR GOLDEN_TESTS [PASS...]

A guard is a rule and a name: GUARD(name, …) in a function stands for one guard of each rule that the function, or one that
calls it, rewrites for. Prints a table of them and the case that notices; exits with 1 where nothing does."""
import os
import pathlib
import re
import subprocess
import sys

FUNCTION = re.compile(r"^(?:static )?[\w *]+\n(\w+)\(([^{;]*)\)\n\{\n(.*?)^\}", re.M | re.S)
RULE_ROW = re.compile(r'(?:LOSSY_)?RULE\(\s*"([\w-]+)".*?,\s*(\w+)\s*\)', re.S)


def functions_of(text):
    return {name: body for name, _, body in FUNCTION.findall(text)}


def callers_first(functions, name, seen=()):
    """The function and everything that calls it, through any number of steps."""
    found = {name}
    for other, body in functions.items():
        if other not in seen and other != name and re.search(rf"\b{name}\(", body):
            found |= callers_first(functions, other, (*seen, name))
    return found


def rules_of(text, functions, name):
    own = re.search(r'static const char rule\[\] = "([\w-]+)"', functions[name])
    if own:
        return {own.group(1)}
    table = text[text.find("static const KilnRule rules[]") :] if "static const KilnRule rules[]" in text else ""
    callers = callers_first(functions, name)
    rules = {rule for rule, function in RULE_ROW.findall(table) if function in callers}
    of_file = re.search(r'^static const char rule\[\] = "([\w-]+)"', text, re.M)
    return rules or ({of_file.group(1)} if of_file else set())


def guards_of(source):
    text = source.read_text(encoding="utf-8")
    functions = functions_of(text)
    for name, body in functions.items():
        for guard in re.findall(r"\bGUARD\((\w+),", body):
            rules = rules_of(text, functions, name)
            if not rules:
                sys.exit(f"{source}: guard {guard}: no rule found for {name}()")
            yield from ((rule, guard) for rule in rules)


def passes_without(binary, golden, guard):
    """Whether a golden, or all of a folder, pass with the guard switched off. A crash is no passing."""
    environment = {**os.environ, "KILN_GOLDEN": golden, "KILN_DISABLE_GUARD": guard}
    environment.pop("KILN_UPDATE", None)
    done = subprocess.run([binary, "--jobs", "1"], env=environment, capture_output=True, check=False)
    return done.returncode == 0


def find_noticing(binary, goldens, folder, rule, guard):
    """The case that says that it is about the guard and notices, else any case of the folder."""
    for case in sorted((goldens / folder).glob("*.kiln")):
        named = f"# guard: {folder}/{guard}\n" in case.read_text(encoding="utf-8")
        if named and not passes_without(binary, f"{folder}/{case.stem}", f"{rule}/{guard}"):
            return case.stem
    return None if passes_without(binary, folder, f"{rule}/{guard}") else "another case"


def check(binary, goldens, source):
    if not passes_without(binary, source.stem, "none/none"):
        print(f"{source.stem}: its goldens fail as they are")
        return 1
    unnoticed = 0
    for rule, guard in sorted(set(guards_of(source))):
        noticing = find_noticing(binary, goldens, source.stem, rule, guard)
        print(f"{source.stem:22} {rule + '/' + guard:45} {noticing or 'NOTHING NOTICES'}")
        unnoticed += noticing is None
    return unnoticed


def main(root, binary, *passes):
    root = pathlib.Path(root)
    sources = sorted((root / "passes/graph").glob("*.c")) + sorted((root / "passes/ir").glob("*.c"))
    guarded = [s for s in sources if "GUARD(" in s.read_text(encoding="utf-8") and (not passes or s.stem in passes)]
    unnoticed = sum(check(binary, root / "tests/golden", source) for source in guarded)
    if unnoticed:
        print(f"{unnoticed} guards that no golden notices: a case is missing, or the guard is superfluous")
    return bool(unnoticed)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
