#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may include whom: folders point downwards only."""
import pathlib
import re
import subprocess
import sys

ARROWS = {
    "graph": {"graph"},
    "ir": {"ir", "graph"},
    "passes": {"passes", "ir", "graph"},
    "backends/ref": {"backends/ref", "ir", "graph"},
    "backends/cpu": {"backends/cpu", "ir", "graph"},
    "backends/onednn": {"backends/onednn", "ir", "graph"},
    "runtime": {"runtime", "backends/ref", "backends/cpu", "backends/onednn", "passes", "ir", "graph"},
}


def folder(name):
    return next((f for f in sorted(ARROWS, key=len, reverse=True) if name.startswith(f + "/")), None)


def main(root):
    failed = False
    names = subprocess.run(["git", "ls-files", "*.c", "*.h", "*.def"], cwd=root, capture_output=True, text=True, check=True)
    for name in names.stdout.split():
        home = folder(name)
        path = pathlib.Path(root, name)
        if not home or not path.exists():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            match = re.match(r'\s*#include "([^"]+)"', line)
            target = match and folder(match.group(1))
            if target and target not in ARROWS[home]:
                print(f"{name}:{number}: {home} must not include {match.group(1)}")
                failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
