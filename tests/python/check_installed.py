#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package of the build tree as a wheel in a fresh virtual environment: digits are read. check_installed.py BUILD

No network is used: NumPy is the system's. scripts/wheels makes the wheels that users download, and check_wheel.py tests those."""
import base64
import csv
import hashlib
import io
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
# What a user writes. The picture is one of the ten digits, as an array.
PROGRAM = """
import kiln_nn
session = kiln_nn.load({model!r}).compile().session()
print(session.run({{"image": case.digit({picture!r})}})["probabilities"].argmax())
"""
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def run(*command, **options):
    return subprocess.run([*map(str, command)], check=True, text=True, **options)


def version():
    text = (SOURCE / "include/kiln/graph/kiln-version.h").read_text(encoding="utf-8")
    return ".".join(re.findall(r"VERSION_(?:MAJOR|MINOR|MICRO) (\d+)", text))


def metadata(project):
    """METADATA of what pyproject.toml states."""
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version()}", f"Summary: {project['description']}",
             f"Requires-Python: {project['requires-python']}", *(f"Requires-Dist: {name}" for name in project["dependencies"])]
    return "\n".join(lines) + "\n"


def make_wheel(build, folder):
    """A wheel of the files that `cmake --install` and pyproject.toml name."""
    config = tomllib.loads((SOURCE / "python/pyproject.toml").read_text(encoding="utf-8"))
    staged = folder / "staged"
    run("cmake", "--install", build, "--component", "python", "--prefix", staged, "--strip", stdout=subprocess.DEVNULL)
    excluded = {pathlib.PurePath(name).name for name in config["tool"]["scikit-build"]["wheel"]["exclude"]}
    name, tag = f"kiln_nn-{version()}", f"cp311-abi3-{sysconfig.get_platform().replace('-', '_')}"
    files = {str(path.relative_to(staged)): path.read_bytes() for path in staged.rglob("*") if path.is_file()}
    files |= {f"kiln_nn/{path.name}": path.read_bytes() for path in (SOURCE / "python/kiln_nn").iterdir()
              if path.is_file() and path.name not in excluded}
    files[f"{name}.dist-info/METADATA"] = metadata(config["project"]).encode()
    files[f"{name}.dist-info/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = io.StringIO()
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        csv.writer(record, lineterminator="\n").writerow((path, f"sha256={digest}", len(content)))
    files[f"{name}.dist-info/RECORD"] = (record.getvalue() + f"{name}.dist-info/RECORD,,\n").encode()
    wheel = folder / f"{name}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return wheel


def read_digits(python, folder, environment):
    """Runs PROGRAM on each picture of the example, as a file in an empty folder."""
    script = folder / "digits.py"
    lines = "".join(PROGRAM.format(model=str(SOURCE / "examples/digits/digits.onnx"),
                                   picture=str(SOURCE / f"examples/digits/{name}.png")) for name in DIGITS)
    script.write_text(f"import sys\nsys.path.append({str(SOURCE / 'tests/python')!r})\nimport case\n{lines}", encoding="utf-8")
    return run(python, "-B", script, cwd=folder, env=environment, stdout=subprocess.PIPE).stdout.split()


def main(build):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PIP_"))}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        made = subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", folder / "venv"], capture_output=True, text=True)
        python = folder / "venv/bin/python"
        if made.returncode:
            print(f"skipped: no virtual environment is made here (apt install python3-venv): {made.stdout}{made.stderr}")
            return SKIPPED
        if subprocess.run([python, "-c", "import numpy"], capture_output=True, env=environment).returncode:
            print("skipped: there is no NumPy (apt install python3-numpy)")
            return SKIPPED
        run(python, "-m", "pip", "install", "-q", "--no-index", "--no-cache-dir", make_wheel(build, folder), env=environment)
        where = run(python, "-c", "import kiln_nn; print(kiln_nn.__file__, kiln_nn.__version__)", cwd=folder, env=environment,
                    stdout=subprocess.PIPE).stdout.split()
        if not where[0].startswith(str(folder)) or where[1] != version():
            sys.exit(f"expected kiln_nn {version()} in {folder}, found {where}")
        found = read_digits(python, folder, environment)
        if found != [str(i) for i in range(10)]:
            sys.exit(f"expected the digits from 0 to 9, found {found}")
        run(python, "-m", "pip", "uninstall", "-q", "-y", "kiln-nn", env=environment)
        left = [path for path in (folder / "venv").rglob("*kiln*")]
        if left:
            sys.exit(f"expected nothing after uninstalling, found {left}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
