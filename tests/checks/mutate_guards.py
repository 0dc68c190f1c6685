#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Switches every guard of the passes off, one at a time, and demands that some golden notices.

    mutate_guards.py SOURCE_DIR GOLDEN_TESTS [PASS | SHARED_FILE...]

A guard is a rule and a name: GUARD(name, …) in a function stands for one guard of each rule that the function, or one that
calls it, rewrites for. One of a file that passes share must be noticed for one of them. Prints a table of the guards and the
case that notices; exits with 1 where nothing does."""
import os
import pathlib
import subprocess
import sys

import guards


def passes_without(binary, golden, guard):
    """Whether a golden, or all of a folder, pass with the guard switched off. A crash is no passing."""
    environment = {**os.environ, "KILN_GOLDEN": golden, "KILN_DISABLE_GUARD": guard}
    environment.pop("KILN_UPDATE", None)
    done = subprocess.run([binary, "--jobs", "1"], env=environment, capture_output=True, check=False)
    return done.returncode == 0


def find_named(binary, goldens, folder, rule, guard):
    """The case that says that it is about the guard, and notices."""
    for case in sorted((goldens / folder).glob("*.kiln")):
        named = f"# guard: {folder}/{guard}\n" in case.read_text(encoding="utf-8")
        if named and not passes_without(binary, f"{folder}/{case.stem}", f"{rule}/{guard}"):
            return case.stem
    return None


def find_noticing(binary, goldens, folder, rule, guard):
    """That case, else any of the folder."""
    named = find_named(binary, goldens, folder, rule, guard)
    return named or (None if passes_without(binary, folder, f"{rule}/{guard}") else "another case")


def show(place, guard, noticing):
    print(f"{place:22} {guard:45} {noticing or 'NOTHING NOTICES'}", flush=True)
    return noticing is None


def check(binary, goldens, source):
    if not passes_without(binary, source.name, "none/none"):
        print(f"{source.name}: its goldens fail as they are")
        return 1
    return sum(
        show(source.name, f"{rule}/{guard}", find_noticing(binary, goldens, source.name, rule, guard))
        for rule, guard in sorted(set(guards.own_guards(source)))
    )


def check_shared(binary, goldens, file, guard, users):
    for find in (find_named, find_noticing):
        for folder in sorted(users):
            for rule in sorted(users[folder]):
                noticing = find(binary, goldens, folder, rule, guard)
                if noticing:
                    return show(f"{file}.c", guard, f"{folder}/{noticing}")
    return show(f"{file}.c", guard, None)


def main(root, binary, *wanted):
    goldens = pathlib.Path(root) / "tests/golden"
    passes, shared = guards.sources(root)
    unnoticed = sum(
        check(binary, goldens, source) for source in passes if source.guards() and (not wanted or source.name in wanted)
    )
    unnoticed += sum(
        check_shared(binary, goldens, file, guard, users)
        for (file, guard), users in sorted(guards.shared_guards(passes, shared).items())
        if not wanted or file in wanted
    )
    if unnoticed:
        print(f"{unnoticed} guards that no golden notices: a case is missing, or the guard is superfluous")
    return bool(unnoticed)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
