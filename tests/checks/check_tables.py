#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every row of the tables has what it promises: a pass its file, its goldens and its row in docs/passes.md; a rule list its
registration; an op its golden; an instruction its reference kernel."""
import pathlib
import re
import sys

import check_arrows
import guards

MIN_GOLDENS = 3
MOST_COMPILED = 40  # sources, by a new row of a family of operators


def check_passes(root):
    table = (root / "passes/passes.def").read_text(encoding="utf-8")
    page = (root / "docs/passes.md").read_text(encoding="utf-8")
    rows = re.findall(r'^(GRAPH|RULES|IR)\((\w+), "([\w-]+)", (?:\w+, \w+, )?(\w+), ".*", (OPTIONS)?\)$', table, re.M)
    if len(rows) != len(re.findall(r"^\w+\(", table, re.M)):
        yield "passes.def: expected rows GRAPH(), RULES() and IR(), one a line"
    for kind, identifier, text, numerics, options in rows:
        level = "ir" if kind == "IR" else "graph"
        source = root / f"passes/{level}/{text}.c"
        if not source.exists():
            yield f"passes.def: {text}: expected the file {source.relative_to(root)}"
        else:
            code = source.read_text(encoding="utf-8")
            own = re.findall(r"^(GRAPH|RULE|IR)_PASS\((\w+)", code, re.M)
            if own != [(kind.removesuffix("S"), identifier)]:
                yield f"{source.relative_to(root)}: expected {kind.removesuffix('S')}_PASS({identifier}), as its row of passes.def says"
            if re.findall(r"^PASS_OPTIONS\((\w+)", code, re.M) != [identifier] * bool(options):
                yield f"{source.relative_to(root)}: expected PASS_OPTIONS({identifier}) where its row of passes.def says OPTIONS, only there"
        goldens = list((root / f"tests/golden/{text}").glob("*.kiln"))
        if text != "empty" and len(goldens) < MIN_GOLDENS:
            yield f"{text}: expected at least {MIN_GOLDENS} goldens in tests/golden/{text}, found {len(goldens)}"
        sentences = re.findall(rf"^\| `{text}` \| ([^|]+) \| {numerics} \|", page, re.M)
        if len(sentences) != 1 or len(sentences[0].split()) < 3:
            yield f"docs/passes.md: expected one row `{text}` with a sentence and the class {numerics}"
    # A row compiles what reads the table: pass.c alone.
    readers = [path.relative_to(root) for folder in ("include", "passes", "runtime", "tools", "tests", "bench")
               for path in (root / folder).rglob("*.[ch]") if '#include "passes/passes.def"' in path.read_text(encoding="utf-8")]
    if list(map(str, readers)) != ["passes/pass.c"]:
        yield f"passes.def: expected that passes/pass.c alone includes it, found {', '.join(map(str, readers))}"
    known = {text for _, _, text, _, _ in rows}
    for name in re.findall(r"^\| `([\w-]+)` \| [^|]+ \| (?:E|Z|U|QT|QS|L) \|", page, re.M):
        if name not in known:
            yield f"docs/passes.md: expected a row of passes.def, found {name}"
    for level in ("graph", "ir"):
        for source in (root / f"passes/{level}").glob("*.c"):
            if source.stem not in known:
                yield f"{source.relative_to(root)}: no row of passes.def names this pass"


def check_guards(root):
    """Each guard is named by some golden: `# guard: pass/guard` in a case that must not fire."""
    named = set()
    for golden in (root / "tests/golden").glob("*/*.kiln"):
        named.update(re.findall(r"^# guard: (\S+)", golden.read_text(encoding="utf-8"), re.M))
    passes, shared = guards.sources(root)
    for source in passes:
        own = guards.own_guards(source)
        for rule, guard in sorted({pair for pair in own if own.count(pair) > 1}):
            yield f"{source.path.relative_to(root)}: guard {rule}/{guard}: expected one condition of that name"
        for guard in sorted({guard for _, guard in source.guards()}):
            if f"{source.name}/{guard}" not in named:
                yield f"{source.path.relative_to(root)}: guard {guard}: expected a golden with `# guard: {source.name}/{guard}`"
    for source in shared:
        names = [guard for _, guard in source.guards()]
        for guard in sorted({guard for guard in names if names.count(guard) > 1}):
            yield f"{source.path.relative_to(root)}: guard {guard}: expected one condition of that name"
    for (file, guard), users in sorted(guards.shared_guards(passes, shared).items()):
        if not users:
            yield f"passes/{file}.c: guard {guard}: no pass gets to it"
        elif not any(f"{user}/{guard}" in named for user in users):
            yield f"passes/{file}.c: guard {guard}: expected a golden with `# guard: PASS/{guard}`, PASS of {', '.join(sorted(users))}"


def compiled_with(files, header):
    """The sources that include @header, through others too."""
    readers = {}
    for name, (_, lines) in files.items():
        for _, included in lines:
            readers.setdefault(included, set()).add(name)
    reached, waiting = set(), [header]
    while waiting:
        new = readers.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return sorted(name for name in reached if name.endswith((".c", ".cc")))


def check_families(root):
    """Lists name every family; a new row of one compiles few files again."""
    folder = root / "include/kiln/graph/ops"
    families = {path.stem for path in folder.glob("*.def")} - {"all", "families"}
    lists = {"families.def": r"^FAMILY\((\w+),", "all.def": r'^#include "graph/ops/(\w+)\.def"',
             "../op/all.h": r'^#include "graph/op/(\w+)\.h"'}
    for name, line in lists.items():
        listed = set(re.findall(line, (folder / name).read_text(encoding="utf-8"), re.M))
        for family in sorted(families ^ listed):
            yield f"{name}: {family}: expected one line for each family of {folder.relative_to(root)}"
    files = check_arrows.includes(root)
    for family in sorted(families):
        sources = set(compiled_with(files, f"graph/op/{family}.h")) | set(compiled_with(files, f"graph/ops/{family}.def"))
        if len(sources) > MOST_COMPILED:
            yield f"graph/op/{family}.h: expected at most {MOST_COMPILED} sources that are compiled with it, found {len(sources)}"


def check_ops(root):
    for path in sorted((root / "include/kiln/graph/ops").glob("*.def")):
        table = path.read_text(encoding="utf-8")
        for name in re.findall(r"^(?:OP|CORE_OP|REDUCE)\((\w+),", table, re.M) + re.findall(r'^OP_AS\(\w+, "([\w.]+)"', table, re.M):
            if not (root / f"tests/golden/ops/{name}.kiln").exists():
                yield f"{path.name}: {name}: expected the golden tests/golden/ops/{name}.kiln"
    instrs = set(re.findall(r"^INSTR\((\w+),", (root / "include/kiln/ir/instrs.def").read_text(encoding="utf-8"), re.M))
    kernels = (root / "backends/ref/kernels.def").read_text(encoding="utf-8")
    for name in sorted(instrs - {"alloc", "dealloc", "view", "call", "branch", "loop"}):
        if not re.search(rf"KERNEL\w*\({name},", kernels):
            yield f"instrs.def: {name}: expected a row of backends/ref/kernels.def"
    # Searched by halving: what is out of place is not found.
    rows = re.findall(r"^ROW\((\w+), +(\d+),", (root / "graph/onnx/opsets.def").read_text(encoding="utf-8"), re.M)
    keys = [(name, int(since)) for name, since in rows]
    for before, after in zip(keys, keys[1:]):
        if before >= after:
            yield f"opsets.def: {after[0]} {after[1]}: expected in front of {before[0]} {before[1]}, by name and opset"


def main(root):
    root = pathlib.Path(root)
    problems = [*check_passes(root), *check_guards(root), *check_ops(root), *check_families(root)]
    for problem in problems:
        print(problem)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
