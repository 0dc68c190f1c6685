#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Demands of every case of ONNX's backend suite that runs, and of the models beside the source tree, with the default
pipeline and without, that its memory plan is proved optimal and made in at most 50 ms.

    check_plans.py KILN [SHARED_DIR]

Prints the cases whose optimum lies above what is live at once: there exact search is the proof."""
import json
import pathlib
import subprocess
import sys

CORPUS = pathlib.Path("/usr/share/libonnx-testdata/data")
SUITES = ("node", "simple", "pytorch-operator", "pytorch-converted")
PLAN_MS_MAX = 50


def plans(kiln, folder, *arguments):
    done = subprocess.run([kiln, "verify", "--json", *arguments, str(folder)], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{folder}: exit status {done.returncode}: {done.stderr}")
    return {f"{folder.name}/{case['name']}": case["memory"] for case in json.loads(done.stdout)["cases"] if "memory" in case}


def main():
    kiln = sys.argv[1]
    if not CORPUS.is_dir():
        print(f"SKIP: {CORPUS} is not there (apt install libonnx-testdata)")
        return 77
    folders = [CORPUS / suite for suite in SUITES]
    if len(sys.argv) > 2 and (pathlib.Path(sys.argv[2]) / "models").is_dir():
        folders.append(pathlib.Path(sys.argv[2]) / "models")
    failed = total = above = 0
    slowest = 0.0
    for arguments in ((), ("--pipeline", "none")):
        for folder in folders:
            found = plans(kiln, folder, *arguments)
            # The machine may have been busy with something else: what was slow is timed again.
            if any(plan["plan_ms"] > PLAN_MS_MAX for plan in found.values()):
                for name, plan in plans(kiln, folder, *arguments).items():
                    found[name]["plan_ms"] = min(found[name]["plan_ms"], plan["plan_ms"])
            for name, plan in found.items():
                total += 1
                slowest = max(slowest, plan["plan_ms"])
                text = f"{' '.join((name, *arguments))}: lb_live {plan['lb_live']}, arena {plan['arena']}"
                if not plan["proven_optimal"] or plan["plan_ms"] > PLAN_MS_MAX:
                    print(f"FAIL {text}, proved: {plan['proven_optimal']}, {plan['plan_ms']} ms")
                    failed += 1
                elif plan["arena"] > plan["lb_live"]:
                    print(f"ABOVE {text}: the search found that nothing is lower")
                    above += 1
    print(f"{total} plans, {total - failed} proved optimal, {above} of them above lb_live; the slowest took {slowest} ms")
    return 1 if failed or total < 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
