#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/onnx-support.md: the tables of operators, and what is skipped of ONNX's backend suites.

    write_support.py ROOT KILN              writes the page
    write_support.py --check ROOT KILN      exit status 1 where the page differs, except in measured ratios

It reads graph/onnx/opsets.def, the lists of tests/onnx, the ratios of bench/peers/operators.json, and `kiln ops`. With
KILN_UPDATE=1, --check writes the page. Standard library only."""
import argparse
import collections
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys

PAGE = "docs/onnx-support.md"
DOMAINS = {  # rows of opsets.def: heading, column of versions
    "ROW": ("ONNX", "opsets"), "ML": ("ai.onnx.ml", "versions"), "CONTRIB": ("com.microsoft", "versions"),
    "NCHWC": ("com.microsoft.nchwc", "versions"), "PREVIEW": ("ai.onnx.preview", "versions"),
    "TRAINING": ("ai.onnx.preview.training", "versions"),
}
SUITES = {"": ("onnx 1.12 (Debian's `libonnx-testdata`)", "1.12"), "_newest": ("onnx 1.23.2 (PyPI)", "1.23.2")}
WIDENED = "computed in f32"  # how the reason for halves begins
HEAD = """# ONNX support

You can look up each operator of ONNX here: which versions Kiln reads, for which element types it
has kernels, and how fast these are. The last tables name each case of ONNX's backend suites that
Kiln skips, with the reason. `scripts/write_support.py` writes this page, and a test fails when it
is stale. [operators.md](operators.md) has notes on single operators.

- **Opsets** and **versions** are those from which Kiln reads the operator, each until the next one.
  A version that only admits more types has no number of its own.
- **In Kiln** is the operator that gives the result. Kiln turns some operators into several.
- **Element types** are the types of the first operand that a kernel computes. Types that ONNX does
  not allow there hold [quantized values](quantization.md). `all` are those of the
  [text form](text-form.md).
- **Kernel** is `cpu` where vectors and threads compute, and `ref` with the reason where the exact
  and slow reference does. Halves without a kernel of their own are computed in f32. A `-` stands
  where compiling replaces the operator or computes its result.
- **Ratio** is Kiln's time divided by that of ONNX Runtime {runtime}: the smallest and the largest
  over the shapes and types that `bench/peers/operators.py` measures. Both take turns on one thread
  of {machine}. Kiln is faster where the ratio is below 1.
"""
SUITES_HEAD = """
## ONNX's backend suites

Each case has a model, inputs and expected outputs. `kiln verify` runs it, and compares the outputs.
A test fails when a case is lost, and when one is skipped that the next table does not name.

| suite | cases | pass | skipped |
| --- | --: | --: | --: |
"""
SKIPS_HEAD = """
### Skipped cases

| case | suite | reason |
| --- | --- | --- |
"""


def read_operators(root):
    """By domain: the versions of each operator, and the operator in Kiln. Refused ones are left out."""
    tables = {kind: {} for kind in DOMAINS}
    source = (root / "graph/onnx/opsets.def").read_text(encoding="utf-8")
    for kind, name, since, op in re.findall(rf"(?m)^({'|'.join(DOMAINS)})\((\w+), (\d+), (\w+),", source):
        if op != "unknown":
            tables[kind].setdefault(name, ([], op))[0].append(int(since))
    return tables


class Kernels:
    """What `kiln ops` says of kernels."""

    def __init__(self, root, kiln):
        run = lambda *options: subprocess.run([kiln, "ops", *options], check=True, capture_output=True, text=True).stdout
        self.types = {op: types.split() for op, types in re.findall(r"(?m)^(\S+) +\S+ *(.*)$", run())}
        source = (root / "include/kiln/graph/kiln-types.h").read_text(encoding="utf-8")
        source = source.split("#define KILN_DTYPE_MAP")[1].split("/*")[0]
        self.every = len(re.findall(r"(?m)^    X\((?!.*, ITEM\))", source))  # of tensors
        self.slow = collections.defaultdict(dict)
        for row in json.loads(run("--speed", "--json"))["slow"]:
            if not row["reason"].startswith(WIDENED):
                self.slow[row["instruction"]][row["dtype"]] = row["reason"]

    def types_of(self, op):
        types = self.types[op]
        return "all" if len(types) >= self.every else " ".join(types) or "-"

    def kernel_of(self, op):
        types, slow = self.types[op], self.slow[op]
        if not types:
            return "-"
        reasons = collections.defaultdict(list)
        for dtype, reason in slow.items():
            reasons[reason].append(dtype)
        parts = [] if len(slow) >= min(len(types), self.every) else ["`cpu`"]
        for reason, dtypes in reasons.items():
            some = f" ({' '.join(dtypes)})" if parts or len(reasons) > 1 else ""
            parts.append(f"`ref`{some}: {reason}")
        return "; ".join(parts)


def read_ratios(root):
    """The file, and the ratios of each operator."""
    found = json.loads((root / "bench/peers/operators.json").read_text(encoding="utf-8"))
    ratios = collections.defaultdict(list)
    for probe, types in found["ratios"].items():
        ratios[probe.split()[0]] += types.values()
    return found, ratios


def ratio_text(ratios):
    if not ratios:
        return "not measured"
    least, most = f"{min(ratios):.2f}", f"{max(ratios):.2f}"
    return least if least == most else f"{least} to {most}"


def operator_tables(root, kiln, ratios):
    kernels = Kernels(root, kiln)
    for kind, rows in read_operators(root).items():
        heading, versions = DOMAINS[kind]
        measured = ratios if kind == "ROW" else {}
        yield f"\n## {heading}\n\n| operator | {versions} | in Kiln | element types | kernel | ratio |\n"
        yield "| --- | --- | --- | --- | --- | --- |\n"
        for name, (since, op) in rows.items():
            numbers = ", ".join(map(str, sorted(set(since))))
            yield (f"| {name} | {numbers} | `{op}` | {kernels.types_of(op)} | {kernels.kernel_of(op)} | "
                   f"{ratio_text(measured.get(name, []))} |\n")


def suite_tables(root):
    folder = root / "tests/onnx"
    suspect = dict(line.split(": ", 1) for line in (folder / "suspect.txt").read_text(encoding="utf-8").splitlines()
                   if not line.startswith("#"))
    yield SUITES_HEAD
    skips = collections.defaultdict(list)
    for suffix, (name, version) in SUITES.items():
        passing = (folder / f"passing{suffix}.txt").read_text(encoding="utf-8").split()
        skipped = [line.split(": ", 1) for line in (folder / f"skipped{suffix}.txt").read_text(encoding="utf-8").splitlines()]
        yield f"| {name} | {len(passing) + len(skipped)} | {len(passing)} | {len(skipped)} |\n"
        for case, reason in skipped:
            skips[case, suspect[case.split("/")[-1]] if reason == "suspect" else reason].append(version)
    yield SKIPS_HEAD
    for (case, reason), versions in sorted(skips.items()):
        yield f"| `{case}` | {', '.join(versions)} | {reason} |\n"


def page(root, kiln):
    found, ratios = read_ratios(root)
    head = HEAD.format(runtime=found["onnxruntime"], machine=found["machine"])
    return "".join([head, *operator_tables(root, kiln, ratios), *suite_tables(root)])


def without_ratios(text):
    """The page without what was measured: the last column of operators, and the machine."""
    text = re.sub(r"(?m)^(\| \w+ \| [\d, ]+ \|.*) \| [^|]* \|$", r"\1 |", text)
    return re.sub(r"(?ms)^- \*\*Ratio\*\*.*?(?=^$)", "", text)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("kiln")
    options = parser.parse_args()
    path = options.root / PAGE
    new, old = page(options.root, options.kiln), path.read_text(encoding="utf-8") if path.exists() else ""
    if not options.check or os.environ.get("KILN_UPDATE") == "1":
        path.write_text(new, encoding="utf-8")
        return 0
    changes = [line for line in difflib.unified_diff(without_ratios(old).splitlines(), without_ratios(new).splitlines(),
                                                     PAGE, "what the tables say", lineterm="", n=0)]
    for line in changes[:40]:
        print(line)
    if changes:
        print(f"{PAGE} is stale: expected what the tables say. scripts/write_support.py writes it.")
    return 1 if changes else 0


if __name__ == "__main__":
    sys.exit(main())
