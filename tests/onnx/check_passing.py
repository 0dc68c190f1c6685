#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX's backend suite and holds it against tests/onnx/passing.txt: a case that stops passing, or any that fails, is
an error. `--update` adds what passes now; the list only grows.

    check_passing.py KILN [--update] [ARGUMENTS OF KILN…]
"""
import json
import pathlib
import subprocess
import sys

CORPUS = pathlib.Path("/usr/share/libonnx-testdata/data")
SUITES = ("node", "simple", "pytorch-operator", "pytorch-converted")
LIST = pathlib.Path(__file__).with_name("passing.txt")


def run(kiln, arguments):
    for suite in SUITES:
        command = [kiln, "verify", "--json", *arguments, str(CORPUS / suite)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode not in (0, 1):
            sys.exit(f"{' '.join(command)}: exit status {result.returncode}: {result.stderr}")
        for case in json.loads(result.stdout)["cases"]:
            yield f"{suite}/{case['name']}", case["status"], case["reason"]


def main():
    arguments = sys.argv[1:]
    kiln = arguments.pop(0)
    update = "--update" in arguments
    arguments = [argument for argument in arguments if argument != "--update"]
    if not CORPUS.is_dir():
        print(f"SKIP: {CORPUS} is not there (apt install libonnx-testdata)")
        return 77
    expected = set(LIST.read_text(encoding="utf-8").split()) if LIST.exists() else set()
    cases = list(run(kiln, arguments))
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
    if update:
        LIST.write_text("".join(f"{name}\n" for name in sorted(expected | passed)), encoding="utf-8")
    return 1 if failed or lost else 0


if __name__ == "__main__":
    sys.exit(main())
