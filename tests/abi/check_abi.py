#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the interface of kiln.h in a built library with the dump that tests/abi has of the first version with its SONAME.

    check_abi.py SOURCE LIBRARY            compares
    check_abi.py SOURCE LIBRARY --renew    writes the dump

Additions pass: functions, fields at the end of structs that may grow, values behind the last one of an enum. What was
removed or changed fails (docs/compatibility.md). Needs abidw and abidiff of libabigail, and types for debuggers in the
library: cmake/library/CMakeLists.txt has them for the files that define functions of kiln.h."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

SKIPPED = 77
# Structs that begin with their size may grow, and these, which the library alone makes.
GROWS = {"KilnMetadata", "KilnUnsupported", "KilnProfileEntry"}
FIXED = {"KilnObject"}  # begins with its size, but compiled objects hold it
COUNTS = {"KILN_N_DTYPES", "KILN_N_ERRORS"}
RENEW = "cmake --build BUILD && tests/abi/check_abi.py . BUILD/lib/libkiln.so --renew"


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols(library, version):
    """Names of the functions that the library exports under a symbol version."""
    lines = run("nm", "-D", "--defined-only", library)
    return re.findall(rf" [TDBR] (kiln_\w+)@@{version}[\w.]*$", lines, re.M)


def dump_of(source, library, folder):
    """Types of kiln.h and of the headers that it includes are public. What plug-ins call is another interface."""
    headers = source / "include/kiln"
    (folder / "headers").mkdir()
    for header in ["kiln.h", *re.findall(r'^#include "(.*)"$', (headers / "kiln.h").read_text(encoding="utf-8"), re.M)]:
        shutil.copy(headers / header, folder / "headers")
    # Except the one function that has codes of errors as a parameter: the enum is in the dump by it.
    plugin = "|".join(name for name in symbols(library, "KILN_PASS_") if name != "kiln_throw")
    ignore = folder / "plugin.abignore"
    ignore.write_text("".join(f"[suppress_{kind}]\n  symbol_name_regexp = ^({plugin})$\n  drop = yes\n"
                              for kind in ("function", "variable")), encoding="utf-8")
    out = folder / "now.abi"
    run("abidw", "--headers-dir", folder / "headers", "--drop-private-types", "--exported-interfaces-only", "--suppressions", ignore,
        "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed", "--type-id-style", "hash",
        "--out-file", out, library)
    return out


def untyped(library, dump):
    """Functions that the dump knows the name of and no more."""
    typed = {re.sub("@.*", "", function.get("elf-symbol-id", "")) for function in ElementTree.parse(dump).iter("function-decl")}
    return sorted(set(symbols(library, "KILN_[0-9]")) - typed)


def fields(struct):
    return [(member.find("var-decl").get("name"), member.get("layout-offset-in-bits")) for member in struct.findall("data-member")]


def whole(root, tag):
    """{name: elements} of the types of that tag whose inside is known. Anonymous structs have the name of their typedef."""
    found = {}
    for element in root.iter(tag):
        if element.get("is-declaration-only") != "yes":
            found.setdefault(element.get("name"), []).append(element)
    return found


def unsized(dump):
    """Functions that write to a struct of their caller's which does not begin with its size."""
    root = ElementTree.parse(dump).getroot()
    target = {element.get("id"): element.get("type-id") for tag in ("pointer-type-def", "typedef-decl") for element in root.iter(tag)}
    structs = {struct.get("id"): struct for structs in whole(root, "class-decl").values() for struct in structs}
    for function in root.iter("function-decl"):
        for parameter in function.findall("parameter"):
            struct = structs.get(target.get(target.get(parameter.get("type-id"))))
            if struct is not None and struct.get("name").startswith("Kiln") and fields(struct)[:1] != [("size", "0")]:
                yield function.get("name"), struct.get("name")


def without_growth(old_dump, new_dump, out):
    """The new dump without what may be added to types of the old one."""
    old, tree = ElementTree.parse(old_dump).getroot(), ElementTree.parse(new_dump)
    old_structs, old_enums = whole(old, "class-decl"), whole(old, "enum-decl")
    for name, structs in whole(tree.getroot(), "class-decl").items():
        if name not in old_structs or name in FIXED:
            continue
        before = old_structs[name][0]
        known = fields(before)
        for struct in structs if name in GROWS or known[:1] == [("size", "0")] else ():
            if fields(struct)[:len(known)] == known:
                struct.set("size-in-bits", before.get("size-in-bits"))
                for member in struct.findall("data-member")[len(known):]:
                    struct.remove(member)
    for name, enums in whole(tree.getroot(), "enum-decl").items():
        for enum in enums if name in old_enums else ():
            known = {value.get("name"): value for value in old_enums[name][0].findall("enumerator")}
            last = max((int(value.get("value")) for key, value in known.items() if key not in COUNTS), default=0)
            for value in enum.findall("enumerator"):
                if value.get("name") in COUNTS & known.keys():
                    value.set("value", known[value.get("name")].get("value"))
                elif value.get("name") not in known and int(value.get("value")) > last:
                    enum.remove(value)
    tree.write(out, encoding="utf-8")


def compare(source, library, renew, folder):
    dump = dump_of(source, library, folder)
    for function in untyped(library, dump):
        print(f"{function}: its types are not known: name its file among those with -g in cmake/library/CMakeLists.txt")
        return 1
    for function, struct in unsized(dump):
        print(f"{function}: expected {struct} to begin with `size_t size`, so that it can grow")
        return 1
    version = re.search(r"soname='libkiln\.so\.([\d.]+)'", dump.read_text(encoding="utf-8")).group(1)
    before = source / f"tests/abi/libkiln-{version}.0.abi"
    if renew:
        shutil.copy(dump, before)
        return 0
    if not before.exists():
        print(f"{before}: expected the dump of version {version}.0, found none. For a new minor version, write it:\n  {RENEW}")
        return 1
    without_growth(before, dump, folder / "known.abi")
    report = subprocess.run(["abidiff", "--no-added-syms", before, folder / "known.abi"],
                            capture_output=True, text=True, check=False)
    if report.returncode:
        print(report.stdout + report.stderr)
        print(f"The interface is not that of {version}.0: programs that were built against it would break (docs/compatibility.md).")
        print(f"Where that is meant, give Kiln another minor version (graph/kiln-version.h), and write its dump:\n  {RENEW}")
        return 1
    print(f"{len(symbols(library, 'KILN_[0-9]'))} functions: each is as in {version}.0, or new")
    return 0


def main(source, library, renew=""):
    missing = [tool for tool in ("abidw", "abidiff", "nm") if not shutil.which(tool)]
    if missing:
        print(f"skipped: expected {' and '.join(missing)} (apt-get install abigail-tools binutils)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        return compare(pathlib.Path(source), library, renew == "--renew", pathlib.Path(folder))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
