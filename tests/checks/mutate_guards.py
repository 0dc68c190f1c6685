#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every guard of the passes, switched off, changes what some golden comes out as.

    mutate_guards.py SOURCE_DIR GOLDEN_TESTS [--notes NOTES] [PASS | SHARED_FILE...]

A guard is a rule and a name: GUARD(name, …) in a function stands for one guard of each rule that the function, or one that
calls it, rewrites for. One of a file that passes share must be noticed for one of them. A case that is about a guard
(`# guard: PASS/NAME`) is run with it switched off by the goldens themselves, which note what they saw: NOTES is the folder
of notes of a run of all goldens (KILN_GOLDEN_NOTES, tests/golden/golden.h), which is made here where it is not given. A
guard without such a case is switched off here, for all goldens of its pass. Prints a table of the guards and the case that
notices; exits with 1 where nothing does."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import guards


def run_goldens(binary, **settings):
    """Whether goldens pass under these settings. A crash is no passing."""
    environment = {name: value for name, value in os.environ.items() if name not in ("KILN_UPDATE", "KILN_GOLDEN")}
    done = subprocess.run([binary], env={**environment, **settings}, capture_output=True, check=False)
    if b"no case of this name" in done.stderr:
        sys.exit(f"{settings}: there are no such goldens")
    return done.returncode == 0


def find_noticing(binary, noted, folder, rule, guard):
    """The case that says that it is about the guard, and notices, else any of the folder."""
    if (folder, f"{rule}/{guard}") in noted:
        return noted[folder, f"{rule}/{guard}"]
    passes_without = run_goldens(binary, KILN_GOLDEN=folder, KILN_DISABLE_GUARD=f"{rule}/{guard}")
    return None if passes_without else "another case"


def show(place, guard, noticing):
    print(f"{place:22} {guard:45} {noticing or 'NOTHING NOTICES'}", flush=True)
    return noticing is None


def check(binary, noted, source):
    return sum(
        show(source.name, f"{rule}/{guard}", find_noticing(binary, noted, source.name, rule, guard))
        for rule, guard in sorted(set(guards.own_guards(source)))
    )


def check_shared(binary, noted, file, guard, users):
    pairs = [(folder, rule) for folder in sorted(users) for rule in sorted(users[folder])]
    # Those that are noted stand first: nothing needs to be run for them.
    for folder, rule in sorted(pairs, key=lambda pair: (pair[0], f"{pair[1]}/{guard}") not in noted):
        noticing = find_noticing(binary, noted, folder, rule, guard)
        if noticing:
            return show(f"{file}.c", guard, f"{folder}/{noticing}")
    return show(f"{file}.c", guard, None)


def read_notes(binary, notes):
    """(folder, rule/guard) -> the case that notices."""
    with tempfile.TemporaryDirectory() as made:
        if not notes and not run_goldens(binary, KILN_GOLDEN_NOTES=made):
            sys.exit("the goldens fail as they are")
        return {(folder, guard): case for folder, case, _, guard in guards.notes_of(notes or made, "guard")}


def main(arguments):
    noted = read_notes(arguments.golden_tests, arguments.notes)
    passes, shared = guards.sources(arguments.source_dir)
    wanted = arguments.wanted
    unnoticed = sum(
        check(arguments.golden_tests, noted, source)
        for source in passes if source.guards() and (not wanted or source.name in wanted)
    )
    unnoticed += sum(
        check_shared(arguments.golden_tests, noted, file, guard, users)
        for (file, guard), users in sorted(guards.shared_guards(passes, shared).items())
        if not wanted or file in wanted
    )
    if unnoticed:
        print(f"{unnoticed} guards that no golden notices: a case is missing, or the guard is superfluous")
    return bool(unnoticed)


def read_arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("source_dir")
    parser.add_argument("golden_tests")
    parser.add_argument("--notes")
    parser.add_argument("wanted", nargs="*")
    return parser.parse_intermixed_args()


if __name__ == "__main__":
    sys.exit(main(read_arguments()))
