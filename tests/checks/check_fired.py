#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every rule fires in a golden of its pass, and every pass that the client's document describes fires in a golden of a shipped
pipeline.

    check_fired.py KILN NOTES

NOTES is the folder of notes that a run of all goldens left (KILN_GOLDEN_NOTES, tests/golden/golden.h)."""
import collections
import json
import pathlib
import subprocess
import sys

import guards

# The passes of the documents, where they may stand: a lossy one only in `lossy`.
DOCUMENTED = {
    "default": ["dce", "merge-transposes", "transpose-to-reshape", "sink-transposes", "swap-relu-maxpool", "remove-regression",
                "merge-concats", "cse", "dedup-constants", "reduce-mean-to-avg-pool", "fold-arith-chain-into-conv-bn",
                "fold-arith-chain-into-bn", "fold-batchnorm", "optimize-quantization", "quantize-constants",
                "rescale-through-max", "sink-rescale", "remove-max-splat", "postpone-expansion",
                "constant-fold"],
    "lossy": ["combine-rescale-up", "combine-rescale-down"],
}


# Marks are no change of the graph; the goldens of the analysis show them.
CHANGE_NOTHING = ["empty", "analyse-constness"]


def fired(notes):
    """(folder, pass) -> rules that fired there; `-` stands for the pass itself."""
    found = collections.defaultdict(set)
    for folder, _, identifier, rule in guards.notes_of(notes, "fired"):
        found[folder, identifier].add(rule)
    return found


def rules_of(kiln, identifier):
    done = subprocess.run([kiln, "passes", "--rules", identifier, "--json"], capture_output=True, text=True, check=False)
    return [rule["name"] for rule in json.loads(done.stdout)["rules"]] if done.returncode == 0 else []


def main(kiln, notes):
    found = fired(notes)
    listing = subprocess.run([kiln, "passes", "--json"], capture_output=True, text=True, check=True).stdout
    problems, n_rules = [], 0
    for row in json.loads(listing)["passes"]:
        identifier = row["name"]
        if identifier not in CHANGE_NOTHING and not found[identifier, identifier]:
            problems.append(f"{identifier}: it fires in no golden of tests/golden/{identifier}")
        for rule in rules_of(kiln, identifier):
            n_rules += 1
            if rule not in found[identifier, identifier]:
                problems.append(f"{identifier}: rule {rule} fires in no golden of tests/golden/{identifier}")
    for pipeline, passes in DOCUMENTED.items():
        for identifier in passes:
            if not found[pipeline, identifier]:
                problems.append(f"{identifier}: it fires in no golden of tests/golden/{pipeline}")
    print("\n".join(problems) if problems else f"{n_rules} rules, each fires in a golden of its pass")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
