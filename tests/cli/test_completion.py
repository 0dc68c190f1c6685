# SPDX-License-Identifier: Apache-2.0
"""Completion of the command line in bash: what it offers is what the command takes."""
import os
import re
import shutil
import subprocess
import unittest

from harness import ADD, KILN, SOURCE, CliTest, main

SCRIPT = SOURCE / "tools/completion/kiln.bash"
# What the shell does at a tab: words are split at `=` too. Bare words, so that no quoting is needed.
TAB = """source "$1"; kiln=$2; shift 2
COMP_WORDS=(kiln "$@"); COMP_CWORD=$(($# )); COMPREPLY=()
complete -p kiln >/dev/null || exit 1
_kiln "$kiln"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def options_of_help(text):
    return set(re.findall(r"(?m)^  (?:-\w, )?(--[\w-]+)", text)) | set(re.findall(r"(?m)^  (-\w), ", text))


@unittest.skipUnless(shutil.which("bash"), "there is no bash")
class Completion(CliTest):
    def tab(self, *words):
        """What is offered behind `kiln` and these words, the last of which is being typed."""
        result = subprocess.run(["bash", "-u", "-c", TAB, "tab", SCRIPT, KILN, *words], cwd=self.dir, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, check=False, timeout=60, env={**os.environ, "LC_ALL": "C.UTF-8"})
        self.assertEqual((result.returncode, result.stderr), (0, b""), words)
        return [line for line in result.stdout.decode().split("\n") if line]

    def test_commands(self):
        commands = re.findall(r"(?m)^  (\w+) ", self.kiln("--help"))
        self.assertEqual(self.tab(""), [*commands, "help", "--help", "--version"])
        self.assertEqual(self.tab("help", ""), commands)
        self.assertEqual(self.tab("comp"), ["compile", "compare"])
        self.assertEqual(self.tab("frobnicate", ""), [])

    def test_options_of_every_command(self):
        for command in re.findall(r"(?m)^  (\w+) ", self.kiln("--help")):
            self.assertEqual(set(self.tab(command, "-")), options_of_help(self.kiln(command, "--help")), command)
        self.assertEqual(self.tab("run", "model.onnx", "--im"), ["--image-scale", "--image-mean", "--image-std"])

    def test_values_are_what_the_option_takes(self):
        """Every option with alternatives takes each of them, and what is offered are these."""
        model = self.write("add.kiln", ADD)
        count = 0
        for command in ("run", "opt", "check", "compile"):
            for option, values in re.findall(r"(?m)^  (--[\w-]+)=(\w+(?:\|\w+)+) ", self.kiln(command, "--help")):
                self.assertEqual(self.tab(command, option, ""), values.split("|"))
                self.assertEqual(self.tab(command, option, "=", values[0]), [word for word in values.split("|") if word[0] == values[0]])
                count += 1
                for value in values.split("|") if option != "--format" else ():
                    extra = {"run": ("--random", "1"), "compile": ("-o", "a.kiln-program")}.get(command, ())
                    self.kiln(command, model, "--pipeline", "none", option, value, *extra)
        self.assertGreater(count, 12)

    def test_pipelines_and_passes(self):
        self.write("mine.yaml", "version: 1\n")
        offered = self.tab("opt", "--pipeline", "")
        self.assertEqual(offered[0], "mine.yaml")
        for name in ("default", "own", "none"):
            self.assertIn(name, offered)
        for name in offered[1:]:
            self.kiln("opt", "--print-pipeline", "--pipeline", name)
        passes = [entry["name"] for entry in self.json("passes", "--json")["passes"]]
        self.assertEqual(self.tab("opt", "--skip", ""), passes)
        self.assertEqual(self.tab("opt", "--skip", "=", "sink-tra"), ["sink-transposes"])
        self.assertEqual(self.tab("opt", "--only", "dce,sink-tra"), ["dce,sink-transposes"])
        self.assertEqual(self.tab("opt", "--passes", "al"), [])
        self.assertEqual(self.tab("opt", "--print-after", "al"), ["all"])

    def test_files_and_folders(self):
        self.write("model.onnx", b"")
        self.write("mo del/x", b"")
        self.assertEqual(sorted(self.tab("run", "mo")), ["mo del", "model.onnx"])
        self.assertEqual(self.tab("run", "-o", "mo"), ["mo del"])
        self.assertEqual(self.tab("compile", "-o", "model"), ["model.onnx"])
        self.assertEqual(self.tab("run", "--labels", "=", "model"), ["model.onnx"])
        self.assertEqual(self.tab("run", "-i", "x", "=", "model"), ["model.onnx"])
        self.assertEqual(sorted(self.tab("run", "-i", "x", "=")), ["mo del", "model.onnx"])
        self.assertEqual(self.tab("run", "--quiet", "model"), ["model.onnx"])
        self.assertEqual(self.tab("run", "--threads", "m"), [])
        self.assertEqual(self.tab("passes", "m"), [])


if __name__ == "__main__":
    main()
