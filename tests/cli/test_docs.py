# SPDX-License-Identifier: Apache-2.0
"""What the documents say of the command is true: every option is described and exists, and every command that they show
prints what they show.

A block ```console holds commands after `$ ` and what each printed. Numbers and the width of blanks may differ (times,
instruction sets), a line `…` stands for any lines. KILN_UPDATE=1 writes the output of commands without `…` anew."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "checks"))
import check_prose
from harness import KILN, SOURCE, CliTest, main

COMMANDS = re.findall(r"(?m)^  (\w+) ", subprocess.run([KILN, "--help"], stdout=subprocess.PIPE, check=True, text=True).stdout)
DOCUMENTS = [*(SOURCE / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")), *sorted((SOURCE / "docs").glob("*.md"))]
FOLDERS = ("backends", "bench", "cmake", "examples", "exec", "graph", "include", "ir", "passes", "pipelines", "runtime", "tests", "tools")
UPDATE = os.environ.get("KILN_UPDATE") == "1"


def options_of_help(text):
    return set(re.findall(r"(?m)^  (?:-\w, )?--([\w-]+)", text))


def blocks(text):
    """Yields (start, end, lines) of each console block."""
    for match in re.finditer(r"(?ms)^```console\n(.*?)^```$", text):
        yield match.start(1), match.end(1), match.group(1).splitlines()


def anchors(text):
    """What a link to a section says behind `#`: its heading in small letters, without marks, `-` for blanks."""
    headings = re.findall(r"(?m)^#+ (.*)$", re.sub(r"(?ms)^```.*?^```$", "", text))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(lines):
    """Splits a block into (command, lines that it printed)."""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith("\\"):
            found[-1] = (found[-1][0] + "\n" + line, [])
        else:
            found[-1][1].append(line)
    return found


def shape_of(line):
    """A line without what may differ: numbers, blanks."""
    return re.sub(r"\s+", " ", re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "0", line)).strip()


def matches(found, expected):
    if "…" not in expected:
        return [shape_of(line) for line in found] == [shape_of(line) for line in expected]
    pattern = "".join("(?:.*\n)*?" if line == "…" else re.escape(shape_of(line)) + "\n" for line in expected)
    return re.fullmatch(pattern, "".join(shape_of(line) + "\n" for line in found)) is not None


def refreshed(found, expected):
    """What matching @expected shows of @found."""
    shown, at = [], 0
    for line in expected:
        if line != "…":
            while shape_of(found[at]) != shape_of(line):
                at += 1
            line, at = found[at].rstrip(), at + 1
        shown.append(line)
    return shown


class Sources(CliTest):
    GUIDES = {
        "add-a-constant-rule.md": (3, ("passes/fold/constant_rules.def", "passes/fold/constant_rules.c")),
        "add-a-pass.md": (7, ("passes/passes.def", "passes/graph/merge-transposes.c", "passes/graph/cse.c",
                              "passes/graph/narrow-weights.c", "passes/graph/sink-rescale.c", "tests/plugin/my-transposes.c")),
        "sequences.md": (2, ("tests/unit/test_runtime_items.c",)),
        "add-an-op.md": (4, ("include/kiln/graph/ops/norm.def", "graph/onnx/opsets.def", "include/kiln/ir/instrs.def", "backends/ref/kernels.def")),
    }

    def test_guides_show_what_is_there(self):
        """Code that a guide shows stands in the sources, but for blanks and the `;` of a prototype."""
        for name, (count, files) in self.GUIDES.items():
            sources = " ".join(" ".join((SOURCE / file).read_text(encoding="utf-8").split()) for file in files)
            shown = re.findall(r"(?ms)^```c\n(.*?)^```$", (SOURCE / "docs" / name).read_text(encoding="utf-8"))
            self.assertEqual(len(shown), count, name)
            for code in shown:
                self.assertTrue(re.sub(r"\);$", ")", " ".join(code.split())) in sources, f"{name}: not in the sources:\n{code}")


    def test_functions_and_fields_exist(self):
        """Documents name no function that no header declares, and no option of the interface that it lacks."""
        headers = "".join(path.read_text(encoding="utf-8") for folder in ("include", "graph", "ir", "exec", "passes", "backends", "runtime")
                          for path in (SOURCE / folder).rglob("*.h"))
        sources = "".join(path.read_text(encoding="utf-8") for folder in ("passes", "backends") for path in (SOURCE / folder).rglob("*.c"))
        public = (SOURCE / "include/kiln/kiln.h").read_text(encoding="utf-8")
        for path in DOCUMENTS:
            text = path.read_text(encoding="utf-8")
            for function in re.findall(r"\bkiln_[a-z_0-9]+(?=\()", text):
                self.assertTrue(re.search(rf"\b{function}\b", headers + sources), f"{path.name}: {function}")
            for options, field in re.findall(r"\b(Kiln\w+Options|KilnMemoryReport)\.(\w+)", text):
                body = re.search(rf"typedef struct \{{((?:(?!typedef).)*?)\}} {options};", public, re.S)
                self.assertTrue(body and re.search(rf"\b{field};", body.group(1)), f"{path.name}: {options}.{field}")


    def test_index_of_places(self):
        """Each row of docs/architecture.md, "Where to find it": steps before one name it, and the last holds the function."""
        text = (SOURCE / "docs/architecture.md").read_text(encoding="utf-8")
        table = text[text.index("## Where to find it"):]
        rows = [row.split(" | ") for row in re.findall(r"(?m)^\| (.* \| \[.*)\|$", table[:table.index("\n## ", 1)])]
        self.assertGreater(len(rows), 7)
        for place, *steps in rows:
            paths = [re.search(r"\]\(\.\./([^)]+)\)|`([\w/.-]+)`", step).expand(r"\1\2") for step in steps]
            known = ""
            for here, there in zip(paths, paths[1:]):
                known += (SOURCE / here).read_text(encoding="utf-8")
                name = there.removesuffix("/README.md").rsplit("/", 1)[-1]
                self.assertTrue(re.search(rf"\b{re.escape(name)}\b", known), f"{place}: up to {here} no step names {name}")
            for function in re.findall(r"`(\w+)\(\)`", steps[-1]):
                self.assertRegex((SOURCE / paths[-1]).read_text(encoding="utf-8"), rf"(?m)^{function}\(", place)


class Options(CliTest):
    def test_every_option_is_described(self):
        """In the reference and in the manual, for each command; and they describe no others."""
        reference = (SOURCE / "docs/command-line.md").read_text(encoding="utf-8")
        manual = (SOURCE / "docs/kiln.1").read_text(encoding="utf-8")
        helps = {command: options_of_help(self.kiln(command, "--help")) for command in COMMANDS}
        every = set().union(*helps.values())
        self.assertGreater(len(every), 30)
        self.assertEqual(sorted(every - set(re.findall(r"`(?:-\w, )?--([\w-]+)", reference))), [])
        self.assertEqual(sorted(every - set(re.findall(r"(?m)^\.It (?:Fl \w , )?Fl -([\w-]+)", manual))), [])
        self.assertEqual(sorted(set(re.findall(r"(?m)^\| `(?:-\w, )?--([\w-]+)", reference)) - every), [])
        self.assertEqual(sorted(set(re.findall(r"(?m)^\.It (?:Fl \w , )?Fl -([\w-]+)", manual)) - every), [])
        for path in [*DOCUMENTS, SOURCE / "docs/kiln.1"]:
            for command, rest in re.findall(r"\bkiln (\w+)\b([^`\n;|]*)", path.read_text(encoding="utf-8")):
                for option in re.findall(r"(?<![\w-])--([a-z][\w-]+)", rest) if command in helps else []:
                    self.assertIn(option, helps[command], f"{path.name}: kiln {command}{rest}")

    def test_help_is_plain(self):
        """Help and the manual keep the rules of prose that the documents keep."""
        texts = [line for command in COMMANDS for line in re.split(r"\n|  +", self.kiln(command, "--help"))]
        manual = (SOURCE / "docs/kiln.1").read_text(encoding="utf-8").split(".Sh DESCRIPTION")[1]
        texts += re.split(r"\n\.(?:Pp|Sh|Ss|It|Bl|El).*", re.sub(r"(?m)^\.(?!Pp|Sh|Ss|It|Bl|El)[A-Z]\w .*?([.,:;]?)$", r"code\1", manual))
        self.assertGreater(len(texts), 500)
        self.assertEqual([message for text in texts if text.strip() for message in check_prose.of_sentences(text.split("\n"))], [])

    def test_every_command_is_described(self):
        self.assertGreater(len(COMMANDS), 10)
        reference = (SOURCE / "docs/command-line.md").read_text(encoding="utf-8")
        manual = (SOURCE / "docs/kiln.1").read_text(encoding="utf-8")
        for command in COMMANDS:
            self.assertRegex(reference, rf"(?m)^## `kiln {command}\b")
            self.assertRegex(manual, rf"(?m)^\.Ss kiln {command}\b")


class Examples(CliTest):
    def setUp(self):
        super().setUp()
        for name in ("examples", "pipelines", "tests", "docs"):
            os.symlink(SOURCE / name, self.dir / name)
        self.environment = {**os.environ, "PATH": f"{pathlib.Path(KILN).parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}

    def run_one(self, command):
        result = subprocess.run(["sh", "-c", command], cwd=self.dir, env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=300, check=False)
        self.assertLess(result.returncode, 5, command)
        return result.stdout.decode("utf-8").rstrip("\n").split("\n") if result.stdout.strip() else []

    def check_document(self, path):
        text = path.read_text(encoding="utf-8")
        updated, at, count = "", 0, 0
        for start, end, lines in blocks(text):
            body = ""
            for command, expected in commands(lines):
                found = self.run_one(command)
                count += 1
                if UPDATE and "…" not in expected:
                    expected = [line.rstrip() for line in found]
                elif UPDATE and matches(found, expected):
                    expected = refreshed(found, expected)
                elif not matches(found, expected):
                    self.fail(f"{path.name}: $ {command}\nexpected:\n" + "\n".join(expected) + "\nfound:\n" + "\n".join(found))
                body += "".join(f"{line}\n" for line in (f"$ {command}", *expected))
            updated += text[at:start] + body
            at = end
        if UPDATE and count:
            path.write_text(updated + text[at:], encoding="utf-8")
        return count

    def test_documents(self):
        counts = {path: self.check_document(path) for path in DOCUMENTS}
        self.assertGreater(counts[SOURCE / "README.md"], 5)
        self.assertGreater(counts[SOURCE / "docs/command-line.md"], 10)

    def test_links(self):
        """Links between the documents lead to a file that is there, and to a heading that it has."""
        for path in [*DOCUMENTS, *(path for folder in FOLDERS for path in sorted((SOURCE / folder).rglob("README.md")))]:
            for target, section in re.findall(r"\]\(([^)#:]*)(?:#([\w-]+))?\)", path.read_text(encoding="utf-8")):
                there = path.parent / target if target else path
                self.assertTrue(there.exists(), f"{path}: {target}")
                if section:
                    self.assertIn(section, anchors(there.read_text(encoding="utf-8")), f"{path}: {target}")


if __name__ == "__main__":
    main()
