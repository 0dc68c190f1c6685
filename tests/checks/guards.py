# SPDX-License-Identifier: Apache-2.0
"""The guards of the passes, read from the sources: GUARD(name, condition), PASS_GUARD(name, condition).

A guard of a pass's own file is called PASS/name. One of a file that passes share (passes/query/affine.c) belongs to every pass
that gets to it, by calls or through tables of functions, and is called after any of them: the condition is the same, so
that it is enough that one of these passes has a case that notices."""
import pathlib
import re

FUNCTION = re.compile(r"^(?:static )?[\w *]+\n(\w+)\(([^{;]*)\)\n\{\n(.*?)^\}", re.M | re.S)
TABLE = re.compile(r"^static const [\w *]+?\*?(\w+)(?:\[\w*\])+ = \{\n(.*?)^\};", re.M | re.S)
RULE_ROW = re.compile(r'(?:LOSSY_|FLAGGED_)?RULE\(\s*"([\w-]+)".*?,\s*(\w+)\s*\)', re.S)
GUARD = re.compile(r"\b(?:PASS_)?GUARD\((\w+),")
WORD = re.compile(r"\b[a-z]\w+\b")


class Source:
    """Functions of a file, and tables of functions, by name."""

    def __init__(self, path):
        self.path = path
        self.name = path.stem
        self.text = path.read_text(encoding="utf-8")
        self.bodies = {name: body for name, _, body in FUNCTION.findall(self.text)}
        rules = self.text.find("static const KilnRule rules[]")
        self.rule_rows = RULE_ROW.findall(self.text[rules:]) if rules >= 0 else []
        self.tables = {name: body for name, body in TABLE.findall(self.text) if name != "rules"}
        self.words = {name: set(WORD.findall(body)) for name, body in {**self.bodies, **self.tables}.items()}
        # A rule whose rewrite is a shared function gets to it without a function of the file.
        self.words |= {f'"{rule}"': {function} for rule, function in self.rule_rows if function not in self.bodies}

    def guards(self):
        """(function, guard)"""
        return [(name, guard) for name, body in self.bodies.items() for guard in GUARD.findall(body)]

    def callers(self, name):
        """The function and everything of the file that gets to it."""
        found, new = {name}, {name}
        while new:
            new = {other for other, words in self.words.items() if words & new} - found
            found |= new
        return found

    def rules_behind(self, name):
        """The rules that function @name rewrites for."""
        if name.startswith('"'):
            return {name.strip('"')}
        own = re.search(r'static const char rule\[\] = "([\w-]+)"', self.bodies[name])
        if own:
            return {own.group(1)}
        callers = self.callers(name)
        rules = {rule for rule, function in self.rule_rows if function in callers}
        of_file = re.search(r'^static const char rule\[\] = "([\w-]+)"', self.text, re.M)
        return rules or ({of_file.group(1)} if of_file else set())


def sources(root):
    """The files of the passes, and those that they share."""
    root = pathlib.Path(root) / "passes"
    return [Source(path) for level in ("graph", "ir") for path in sorted((root / level).glob("*.c"))], [
        Source(path) for path in sorted(path for path in root.rglob("*.c") if path.parent.name not in ("graph", "ir"))
    ]


def own_guards(source):
    """(rule, guard) of a pass's file, as often as it stands there: one name, one condition."""
    found = []
    for name, guard in source.guards():
        rules = source.rules_behind(name)
        if not rules:
            raise SystemExit(f"{source.path}: guard {guard}: no rule found for {name}()")
        found += [(rule, guard) for rule in rules]
    return sorted(found)


def reached_from(source, shared):
    """Which functions of the shared files each function of a pass gets to: {(file, function): {own functions}}."""
    homes = {}
    for other in shared:
        for name in other.bodies:
            homes.setdefault(name, []).append(other)
    reached = {}
    for own, words in source.words.items():
        found, new = set(), {(other.name, name) for name in words - set(source.bodies) for other in homes.get(name, [])
                             if name.startswith("kiln_")}
        while new:
            found |= new
            step = set()
            for file, name in new:
                other = next(candidate for candidate in shared if candidate.name == file)
                for word in other.words[name]:
                    if word in other.words:
                        step.add((file, word))
                    elif word.startswith("kiln_"):
                        step |= {(home.name, word) for home in homes.get(word, [])}
            new = step - found
        for key in found:
            reached.setdefault(key, set()).add(own)
    return reached


def shared_guards(passes, shared):
    """{(file, guard): {pass: {rules}}} of the files that passes share."""
    found = {(other.name, guard): {} for other in shared for _, guard in other.guards()}
    for source in passes:
        reached = reached_from(source, shared)
        for other in shared:
            for name, guard in other.guards():
                rules = set()
                for own in reached.get((other.name, name), ()):
                    if own not in source.tables:
                        rules |= source.rules_behind(own)
                if rules:
                    found[other.name, guard].setdefault(source.name, set()).update(rules)
    return found


def notes_of(directory, kind):
    """(folder, case, pass, rule or guard) of each note of that kind, as tests/golden/golden.h describes them."""
    found = []
    for file in sorted(pathlib.Path(directory).iterdir()):
        for line in file.read_text(encoding="utf-8").splitlines():
            of_kind, rest = line.split(" ", 1)
            path, identifier, what = rest.rsplit(" ", 2)
            if of_kind == kind:
                found.append((file.name, pathlib.Path(path).stem, identifier, what))
    return found
