# SPDX-License-Identifier: Apache-2.0
"""Pipelines: files, inline, printing; and every kind of bad YAML, each with file:line:column and without a crash or hang."""
import re
import unittest

from harness import FAILED, MODEL, SOURCE, USAGE, CliTest, main

MESSY = """graph @messy(%x: f32[2,3]) {
  %same = identity(%x) : f32[2,3]
  %y = exp(%same) : f32[2,3]
  return %y
}
"""
GOOD = """version: 1
graph:
  - &tidy {pass: eliminate-noop}
  - pass: constant-fold
    convergence: until-fixed-point
    max-iterations: 8
    dce: none
    modes: [infer]
    options: {evaluate: compile, max-bytes: 1000}
  - *tidy
  - group: [cse, dce]
    convergence: until-fixed-point
ir:
  - dse
  - pass: share-buffers
"""


class Bad(CliTest):
    def bad(self, text, place, message):
        """Asserts that the file is refused at `place` ("line:column") with `message`, by every command that takes it."""
        path = self.write("p.yaml", text)
        for arguments in ((MODEL,), ("--print-pipeline",)):
            self.fails(FAILED, (f"p.yaml:{place}: ", message), "opt", *arguments, "--pipeline", path)

    def test_every_command_reads_them_alike(self):
        path = self.write("p.yaml", "version: 2\n")
        for command in ("run", "memory", "opt"):
            self.fails(FAILED, "p.yaml:1:10: version: expected 1, found '2'", command, MODEL, "--pipeline", path)
        self.fails(FAILED, "p.yaml:1:10: version: expected 1, found '2'", "verify", MODEL.parent, "--pipeline", path)

    # --- YAML itself ---

    def test_duplicate_keys(self):
        self.bad("version: 1\nversion: 1\n", "2:1", "'version'")
        self.bad("version: 1\ngraph:\n  - {pass: dce, pass: cse}\n", "3:17", "the key 'pass' was given before, at line 3")

    def test_unknown_alias(self):
        self.bad("version: 1\ngraph:\n  - *nothing\n", "3:6", "there is no anchor '&nothing' before this")

    def test_alias_cycle(self):
        self.bad("version: 1\ngraph: &g\n  - *g\n", "3:6", "'*g' is inside its own anchor")
        self.bad("version: 1\ngraph:\n  - &a {group: [*a]}\n", "3:18", "'*a' is inside its own anchor")

    def test_billion_laughs(self):
        lines = ["version: 1", "graph:", "  - &l0 {group: [dce]}"]
        lines += [f"  - &l{i} {{group: [{', '.join([f'*l{i - 1}'] * 10)}]}}" for i in range(1, 12)]
        path = self.write("p.yaml", "\n".join(lines) + "\n")
        self.fails(FAILED, ("p.yaml:", "too many nodes"), "opt", MODEL, "--pipeline", path)

    def test_deep_nesting(self):
        path = self.write("p.yaml", "version: 1\ngraph: " + "[" * 5000 + "]" * 5000 + "\n")
        self.fails(FAILED, "p.yaml:2:", "opt", MODEL, "--pipeline", path)

    def test_merge_keys(self):
        self.bad("version: 1\ngraph:\n  - &a {pass: dce}\n  - {<<: *a, dce: none}\n", "4:6", "merge keys ('<<') are not supported")

    def test_several_documents(self):
        self.bad("version: 1\n---\nversion: 1\n", "2:1", "a pipeline file has one document")

    def test_empty(self):
        for text in ("", "\n\n", "# only a comment\n", "---\n"):
            path = self.write("p.yaml", text)
            self.fails(FAILED, "p.yaml:1:", "opt", MODEL, "--pipeline", path)
        self.bad("", "1:1", "the file is empty")

    def test_null_key(self):
        path = self.write("p.yaml", "version: 1\n? \n: 1\n")  # it has no token: the place is what stands before
        self.fails(FAILED, "p.yaml:1:10: a key is missing", "opt", MODEL, "--pipeline", path)
        self.bad("version: 1\n~: 1\n", "2:1", "a key is missing")

    def test_bytes_that_hang_parsers(self):
        path = self.write("p.yaml", b"%x\xa0")
        self.fails(FAILED, "p.yaml:1:1: ", "opt", MODEL, "--pipeline", path)
        path = self.write("p.yaml", b"version: 1\n\xff\xfe\n")
        self.fails(FAILED, "p.yaml:2:1: this byte is not UTF-8", "opt", MODEL, "--pipeline", path)
        path = self.write("p.yaml", b"version: 1\nflags: [a\0b]\n")
        self.fails(FAILED, "p.yaml:2:10: a zero byte cannot stand here", "opt", MODEL, "--pipeline", path)
        self.bad("%YAML 1.2\n---\nversion: 1\n", "1:1", "directives ('%') are not supported")

    def test_not_yaml(self):
        for text in ("version: [1\n", "version: 1\n\tgraph: []\n", "version: 1\ngraph: - dce\n", "a: b: c\n", "'open\n", "]\n"):
            path = self.write("p.yaml", text)
            result = self.start("opt", MODEL, "--pipeline", path)
            self.assertEqual(result.returncode, FAILED, text)
            self.assertRegex(result.stderr, r"^kiln opt: \S*p\.yaml:\d+:\d+: \S", text)

    def test_tags(self):
        self.bad("version: !!int 1\n", "1:10", "tags ('!') are not supported")

    def test_too_big(self):
        path = self.write("p.yaml", "version: 1\n" + "#" * (2 << 20) + "\n")
        self.fails(FAILED, "p.yaml:1:1: the file is too big for a pipeline", "opt", MODEL, "--pipeline", path)

    # --- what is not a pipeline ---

    def test_version(self):
        self.bad("graph: []\n", "1:1", "'version: 1' is missing")
        self.bad("version: 2\n", "1:10", "version: expected 1, found '2'")
        self.bad("version: '1'\n", "1:10", "version: expected 1")
        self.bad("version: [1]\n", "1:10", "version: expected 1, found a list")

    def test_roots(self):
        for text, found in (("- dce\n", "a list"), ("dce\n", "'dce'"), ("~\n", "nothing")):
            path = self.write("p.yaml", text)
            self.fails(FAILED, ("p.yaml:1:", f"expected a mapping with 'version', found {found}"), "opt", MODEL, "--pipeline", path)

    def test_unknown_keys(self):
        self.bad("version: 1\ngrpah: []\n", "2:1", "a pipeline has no key 'grpah' (did you mean 'graph'?)")
        self.bad("version: 1\ngraph:\n  - {pass: dce, convergance: one-pass}\n", "3:17",
                 "an entry has no key 'convergance' (did you mean 'convergence'?)")

    def test_unknown_passes(self):
        self.bad("version: 1\ngraph:\n  - pass: dcee\n", "3:11", "there is no pass 'dcee' (did you mean 'dce'?)")
        self.bad("version: 1\ngraph:\n  - frobnicate\n", "3:5", "there is no pass 'frobnicate'")
        self.bad("version: 1\ngraph:\n  - group: [cse, frobnicate]\n", "3:18", "there is no pass 'frobnicate'")
        self.bad("version: 1\ngraph: [dse]\n", "2:9", "pass dse is of the ir level and cannot stand under 'graph'")
        self.bad("version: 1\nir: [cse]\n", "2:6", "pass cse is of the graph level and cannot stand under 'ir'")

    def test_options(self):
        entry = "version: 1\ngraph:\n  - {pass: constant-fold, options: {%s}}\n"
        self.bad(entry % "evalute: run", "3:37", "pass constant-fold has no option 'evalute' (did you mean 'evaluate'?)")
        self.bad(entry % "evaluate: never", "3:47", "option 'evaluate' of pass constant-fold: expected run|compile, found 'never'")
        self.bad(entry % "max-bytes: many", "3:48", "option 'max-bytes' of pass constant-fold: expected an integer, found 'many'")
        self.bad(entry % "max-bytes: [1]", "3:48", "expected one value, found '[1]'")
        self.bad(entry % "max_bytes: 1", "3:37", "pass constant-fold has no option 'max_bytes'")
        self.bad(entry % "max-expansion: 1e99", "3:52", "expected a number, found '1e99'")
        self.bad("version: 1\ngraph:\n  - {pass: cse, options: {constants: yes}}\n", "3:38", "expected true or false, found 'yes'")
        self.bad("version: 1\ngraph:\n  - {pass: dce, options: 3}\n", "3:26", "options: expected a mapping, found '3'")
        self.bad("version: 1\ngraph:\n  - {group: [dce], options: {}}\n", "3:29", "options belong to a pass, not to a group")

    def test_values_of_keys(self):
        entry = "version: 1\ngraph:\n  - {pass: dce, %s}\n"
        self.bad(entry % "convergence: twice", "3:30", "convergence: expected one-pass or until-fixed-point, found 'twice'")
        self.bad(entry % "max-iterations: 0", "3:33", "max-iterations: expected a number of 1 to 10000, found '0'")
        self.bad(entry % "max-iterations: 99999", "3:33", "max-iterations: expected a number of 1 to 10000, found '99999'")
        self.bad(entry % "dce: always", "3:22", "dce: expected before-pass or none, found 'always'")
        self.bad(entry % "modes: [infer, test]", "3:32", "modes: expected infer or train, found 'test'")
        self.bad(entry % "modes: []", "3:24", "modes: expected a list of infer and train, found an empty one")
        self.bad(entry % "group: [dce]", "3:5", "an entry is a pass or a group, not both")
        self.bad("version: 1\nir:\n  - {pass: dse, dce: none}\n", "3:22", "dce: the ir level has no such key")
        self.bad("version: 1\nir:\n  - {}\n", "3:5", "an entry of the ir level needs a pass")
        self.bad("version: 1\ngraph: dce\n", "2:8", "graph: expected a list of entries, found 'dce'")
        self.bad("version: 1\nflags: [fast-and-loose]\n", "2:9", "there is no flag 'fast-and-loose'")
        self.bad("version: 1\nflags: [finite-math, finite-math]\n", "2:22", "flag 'finite-math' is there twice")

    def test_all_that_is_wrong_at_once(self):
        path = self.write("p.yaml", "version: 2\nfoo: 1\ngraph:\n  - nosuch\n  - {pass: dce, dce: 1}\n")
        result = self.start("opt", MODEL, "--pipeline", path)
        places = re.findall(r"p\.yaml:(\d+:\d+): ", result.stderr)
        self.assertEqual(places, ["1:10", "2:1", "4:5", "5:22"])

    def test_plugins(self):
        self.bad("version: 1\nplugins: [./nosuch.so]\n", "2:11", "nosuch.so")

    # --- include ---

    def test_include(self):
        self.bad("version: 1\ngraph:\n  - include: nosuch.yaml\n", "3:14", "nosuch.yaml cannot be read")
        self.bad("version: 1\ngraph:\n  - include: p.yaml\n", "3:14", "includes itself")
        self.bad("version: 1\ngraph:\n  - {include: x.yaml, dce: none}\n", "3:5", "an entry with 'include' has no other keys")
        self.write("only-ir.yaml", "version: 1\nir: [dse]\n")
        self.bad("version: 1\ngraph:\n  - include: only-ir.yaml\n", "3:14", "has no 'graph' list")
        self.write("inner.yaml", "version: 1\ngraph: [nosuch]\n")
        path = self.write("p.yaml", "version: 1\ngraph:\n  - include: inner.yaml\n")
        self.fails(FAILED, "inner.yaml:2:9: there is no pass 'nosuch'", "opt", MODEL, "--pipeline", path)


class Inline(CliTest):
    def test_errors_have_a_place(self):
        for text, message in (
                ("nosuch", "--passes:1:1: there is no pass 'nosuch'"), ("dce,,cse", "--passes:1:5: expected the name of a pass"),
                ("dce cse", "--passes:1:5: expected ',' or the end, found 'c'"),
                ("constant-fold{evaluate}", "--passes:1:23: expected '=', found '}'"),
                ("constant-fold{evaluate=}", "--passes:1:24: expected a value, found '}'"),
                ("constant-fold{evaluate=run", "--passes:1:27: expected ',' or '}', found the end"),
                ("constant-fold{evaluate=run,evaluate=run}", "--passes:1:28: option 'evaluate' is there twice"),
                ("constant-fold{evaluate=never}", "--passes:1:24: option 'evaluate' of pass constant-fold: expected run|compile"),
                ("cse{x=1}", "--passes:1:5: pass cse has no option 'x'"),
                ("dce{convergence=x}", "--passes:1:17: convergence: expected one-pass or until-fixed-point"),
                ("dse{dce=none}", "--passes:1:9: dce: expected no such key at the ir level"),
                ('dce{modes="', "--passes:1:12: expected '\"', found the end")):
            self.fails(USAGE, message, "opt", MODEL, "--passes", text)

    def test_same_as_a_file(self):
        text = self.kiln("opt", "--print-pipeline", "--passes",
                         "eliminate-noop, constant-fold{evaluate=compile, max-iterations=7, convergence=until-fixed-point}, dse")
        path = self.write("p.yaml", text)
        self.assertEqual(self.kiln("opt", "--print-pipeline", "--pipeline", path), text)
        self.assertIn("max-iterations: 7", text)
        self.assertRegex(text, r"(?s)graph:.*constant-fold.*ir:.*dse")

    def test_empty_is_none(self):
        model = self.write("messy.kiln", MESSY)
        self.assertEqual(self.kiln("opt", model, "--passes", ""), MESSY)


class Printing(CliTest):
    def test_round_trip(self):
        self.write("good.yaml", GOOD)
        self.write("includes.yaml", "version: 1\ngraph:\n  - include: good.yaml\n  - dce\nir:\n  - include: good.yaml\n")
        shipped = [path.stem for path in (SOURCE / "pipelines").glob("*.yaml")]
        self.assertIn("default", shipped)
        for name in (*shipped, "good.yaml", "includes.yaml", *(SOURCE / "pipelines").glob("*.yaml")):
            text = self.kiln("opt", "--print-pipeline", "--pipeline", name)
            self.assertTrue(text.startswith("version: 1\n"))
            path = self.write("printed.yaml", text)
            self.assertEqual(self.kiln("opt", "--print-pipeline", "--pipeline", path), text)
            self.assertEqual(self.kiln("opt", MODEL, "--stage", "ir", "--pipeline", path),
                             self.kiln("opt", MODEL, "--stage", "ir", "--pipeline", name))

    def test_includes_and_anchors_are_resolved(self):
        self.write("sub/good.yaml", GOOD)
        path = self.write("p.yaml", "version: 1\ngraph:\n  - cse\n  - include: sub/good.yaml\n")
        text = self.kiln("opt", "--print-pipeline", "--pipeline", path)
        self.assertEqual(re.findall(r"pass: ([\w-]+)", text),
                         ["cse", "eliminate-noop", "constant-fold", "eliminate-noop", "cse", "dce"])
        for word in ("until-fixed-point", "max-iterations: 8", "dce: none", "modes: [infer]", "evaluate: \"compile\"", "max-bytes: 1000"):
            self.assertIn(word, text)

    def test_output_file(self):
        self.kiln("opt", "--print-pipeline", "-o", "p.yaml")
        self.assertEqual((self.dir / "p.yaml").read_text(), self.kiln("opt", "--print-pipeline"))

    def test_file_beside_a_name(self):
        """A word without dot or slash is a shipped pipeline, whatever files there are."""
        self.write("default", "version: 1\n")
        self.assertIn("eliminate-noop", self.kiln("opt", "--print-pipeline", "--pipeline", "default"))
        self.assertEqual(self.kiln("opt", "--print-pipeline", "--pipeline", "./default"), "version: 1\n")
        self.fails(FAILED, "nosuch: expected a file or one of ", "opt", "--print-pipeline", "--pipeline", "nosuch")
        self.fails(FAILED, "(did you mean 'default'?)", "opt", "--print-pipeline", "--pipeline", "defalt")


if __name__ == "__main__":
    main()
