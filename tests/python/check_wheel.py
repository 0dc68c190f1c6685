#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A wheel as users have it: `check_wheel.py NAME` in the virtual environment where it was installed. Digits are read, pictures
are decoded, the extension has no symbols of GLib and no library but those of every Linux system, and the tests of the tree pass."""
import importlib.metadata
import os
import pathlib
import re
import subprocess
import sys

from case import DIGITS, SOURCE, kiln_nn, seven

# Libraries that auditwheel leaves to the system; they have no part in what Kiln computes.
SYSTEM = re.compile(r"(linux-vdso|ld-linux-x86-64|libc|libm|libpthread|libdl|librt|libgcc_s|libstdc\+\+|libz)\.so[.\d]*")
TESTS = ("run", "arrays", "errors", "pickle", "passes", "ort")


def libraries(path):
    lines = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split()[0] for line in lines]


def check(condition, text):
    if not condition:
        sys.exit(f"check_wheel.py: expected {text}")


def check_beside(packages):
    """Debian's python3 may have PyGObject, whose GLib is not the wheel's."""
    if pathlib.Path("/usr/bin/python3").exists() and sys.version_info[:2] == (3, 11):
        found = subprocess.run(["/usr/bin/python3", "-B", SOURCE / "tests/python/test_beside.py"], capture_output=True,
                               env={**os.environ, "PYTHONPATH": str(packages)}, text=True)
        check(found.returncode in (0, 77), f"a run beside PyGObject, found {found.stderr}")


def main(name):
    package = pathlib.Path(kiln_nn.__file__).parent
    check("site-packages" in package.parts, f"an installed package, found {package}")
    check(importlib.metadata.version(name) == kiln_nn.__version__, "the version of the library as that of the wheel")
    session = kiln_nn.load(DIGITS).compile().session()
    check(session.run({"image": seven()})["probabilities"].argmax() == 7, "a seven")
    extension = package / "_kiln.abi3.so"
    vendor = any("dnnl" in library for library in libraries(extension))
    check(vendor == name.endswith("onednn"), f"oneDNN in kiln-nn-onednn alone, found {libraries(extension)}")
    foreign = [library for library in libraries(extension) if not SYSTEM.fullmatch(pathlib.Path(library).name)
               and not re.search(r"-[0-9a-f]{8}\.so", library)]
    check(not foreign, f"libraries of the wheel or of every system, found {foreign}")
    symbols = subprocess.run(["nm", "-D", "--defined-only", extension], capture_output=True, text=True, check=True).stdout
    foreign = [name for name in re.findall(r" [A-Z] (\w+)@", symbols) if not re.fullmatch(r"kiln_\w+|PyInit__kiln", name)]
    check("PyInit__kiln" in symbols and not foreign, f"no symbols but those of Kiln, found {foreign}")
    licenses = list((package.parent / next(package.parent.glob("kiln_nn*.dist-info")) / "licenses").rglob("*"))
    check(any("glib" in path.name for path in licenses), "the licence of GLib")
    check(not list(package.glob("README*")), "no document of the tree in the package")
    check_beside(package.parent)
    for test in TESTS:
        subprocess.run([sys.executable, "-B", SOURCE / f"tests/python/test_{test}.py"], check=True, capture_output=True)


if __name__ == "__main__":
    main(sys.argv[1])
