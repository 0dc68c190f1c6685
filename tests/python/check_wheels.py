#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/wheels builds both wheels and tests each in a fresh environment, and `pip install ./python` works from a clone.
The status is 77 where PyPI cannot be reached."""
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77


def run(*command, **options):
    print("$", *command, flush=True)
    return subprocess.run([*map(str, command)], check=True, **options)


def main():
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["KILN_SOURCE_DIR"] = str(SOURCE)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        run(sys.executable, "-m", "venv", folder / "venv")
        pip = folder / "venv/bin/pip"
        reach = subprocess.run([pip, "download", "-q", "--no-deps", "-d", folder / "reach", "scikit-build-core"], env=environment)
        if reach.returncode:
            print("skipped: PyPI cannot be reached")
            return SKIPPED
        run(SOURCE / "scripts/wheels", cwd=SOURCE, env=environment)
        run("git", "clone", "-q", "--no-local", SOURCE, folder / "clone")
        run(pip, "install", "-q", "./python", cwd=folder / "clone", env=environment)
        run(folder / "venv/bin/python", "-B", SOURCE / "tests/python/test_run.py", cwd=folder, env=environment)
    return 0


if __name__ == "__main__":
    sys.exit(main())
