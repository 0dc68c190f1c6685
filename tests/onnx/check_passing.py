#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX's backend suite and holds it against two lists: a case that stops passing, any that fails, or one that is
skipped for a reason that its list does not have, is an error. `--update` adds what passes now, which only grows, and
writes what is skipped. `--reasons` counts the reasons of what is skipped.

    check_passing.py KILN [--newest DIR] [--update] [--reasons] [ARGUMENTS OF KILN…]

The suite is that of Debian's package, with passing.txt and skipped.txt. With `--newest` it is the one that
write_newest.py wrote to DIR, with passing_newest.txt and skipped_newest.txt. scripts/write_support.py writes the reasons
into docs/onnx-support.md."""
import argparse
import collections
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
DEBIAN = pathlib.Path("/usr/share/libonnx-testdata/data")


def run(kiln, corpus, suites, arguments):
    for suite in suites:
        command = [kiln, "verify", "--json", *arguments, str(corpus / suite)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode not in (0, 1):
            sys.exit(f"{' '.join(command)}: exit status {result.returncode}: {result.stderr}")
        for case in json.loads(result.stdout)["cases"]:
            yield f"{suite}/{case['name']}", case["status"], case["reason"]


def print_reasons(cases):
    counts = collections.Counter(reason for _, status, reason in cases if status == "skip")
    for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        print(f"{count:5} {reason.splitlines()[0]}")


def read_skipped(path):
    """Reasons by case. Those of cases whose expected data is wrong are `suspect`: suspect.txt has them."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return dict(line.split(": ", 1) for line in lines)


def skipped_now(cases):
    return {name: "suspect" if reason.startswith("suspect: ") else reason.splitlines()[0]
            for name, status, reason in cases if status == "skip"}


def compare_skipped(found, expected, path):
    """Prints what differs, and returns whether something does."""
    for name in sorted(found.keys() | expected.keys()):
        now, listed = found.get(name, "not skipped"), expected.get(name, "not listed")
        if found.get(name) != expected.get(name):
            print(f"SKIPPED {name}: {now}; {path.name}: {listed} (--update writes the list)")
    return found != expected


def compare(cases, expected):
    """Prints what is wrong and the counts. Returns what passed, and whether something is wrong."""
    passed = {name for name, status, _ in cases if status == "pass"}
    failed = [(name, reason) for name, status, reason in cases if status == "fail"]
    reasons = {name: f"{status}: {reason}" for name, status, reason in cases}
    lost = sorted(expected - passed)
    for name, reason in failed:
        print(f"FAIL {name}: {reason}")
    for name in lost:
        print(f"LOST {name}: {reasons.get(name, 'not in the corpus')}")
    counts = {status: sum(1 for _, s, _ in cases if s == status) for status in ("pass", "fail", "skip")}
    node = sum(1 for name in passed if name.startswith("node/"))
    print(f"{counts['pass']} passed ({node} of them node cases), {counts['fail']} failed, {counts['skip']} skipped; "
          f"{len(passed - expected)} pass that the list does not have")
    return passed, bool(failed or lost)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("kiln")
    parser.add_argument("--newest", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--reasons", action="store_true")
    options, arguments = parser.parse_known_args()
    corpus, suites, version = DEBIAN, ("node", "simple", "pytorch-operator", "pytorch-converted"), ""
    missing = f"{corpus} is not there (apt install libonnx-testdata)"
    if options.newest:
        corpus, suites, version = options.newest, (*suites, "light"), "_newest"
        missing = f"{corpus} is not there (tests/onnx/write_newest.py writes it)"
    if not (corpus / suites[-1]).is_dir():
        print(f"SKIP: {missing}")
        return 77
    listed, skips = HERE / f"passing{version}.txt", HERE / f"skipped{version}.txt"
    expected = set(listed.read_text(encoding="utf-8").split()) if listed.exists() else set()
    cases = list(run(options.kiln, corpus, suites, arguments))
    passed, wrong = compare(cases, expected)
    skipped = skipped_now(cases)
    if options.reasons:
        print_reasons(cases)
    if options.update:
        listed.write_text("".join(f"{name}\n" for name in sorted(expected | passed)), encoding="utf-8")
        skips.write_text("".join(f"{name}: {reason}\n" for name, reason in sorted(skipped.items())), encoding="utf-8")
    elif compare_skipped(skipped, read_skipped(skips), skips):
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
