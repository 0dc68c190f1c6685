# SPDX-License-Identifier: Apache-2.0
"""Completion of the command line in bash, fish and zsh: what it offers is what the command takes."""
import os
import pty
import re
import select
import shutil
import subprocess
import time
import unittest

from harness import ADD, KILN, SOURCE, CliTest, main

SCRIPTS = SOURCE / "tools/completion"
SCRIPT = SCRIPTS / "kiln.bash"
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


@unittest.skipUnless(shutil.which("fish"), "there is no fish")
class Fish(CliTest):
    def tab(self, line):
        """What is offered behind a line, without descriptions. fish sorts it."""
        shutil.copy(KILN, self.dir / "kiln") if not (self.dir / "kiln").exists() else None
        result = subprocess.run(["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", SCRIPTS / "kiln.fish", f"./{line}"],
                                cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60,
                                env={**os.environ, "LC_ALL": "C.UTF-8", "HOME": str(self.dir)})
        self.assertEqual((result.returncode, result.stderr), (0, b""), line)
        return [offered.split("\t")[0] for offered in result.stdout.decode().split("\n") if offered]

    def test_commands_and_options(self):
        commands = re.findall(r"(?m)^  (\w+) ", self.kiln("--help"))
        self.assertEqual(set(self.tab("kiln ")), {*commands, "help", "--help", "--version"})
        self.assertEqual(set(self.tab("kiln help ")), set(commands))
        self.assertEqual(self.tab("kiln --v"), ["--version"])
        for command in ("run", "opt", "passes"):
            self.assertEqual(set(self.tab(f"kiln {command} -")), options_of_help(self.kiln(command, "--help")), command)
        self.assertEqual(self.tab("kiln frobnicate "), [])

    def test_values(self):
        self.assertEqual(self.tab("kiln opt --emit "), ["dot", "json", "onnx", "text"])
        self.assertEqual(self.tab("kiln opt --emit=js"), ["--emit=json"])
        self.assertEqual(self.tab("kiln opt --only dce,sink-tra"), ["dce,sink-transposes"])
        self.assertEqual(self.tab("kiln opt --skip=sink-tra"), ["--skip=sink-transposes"])
        self.assertIn("all", self.tab("kiln opt --print-after al"))
        passes = [entry["name"] for entry in self.json("passes", "--json")["passes"]]
        self.assertEqual(set(self.tab("kiln opt --skip ")), set(passes))
        self.assertEqual(self.tab("kiln opt --pipeline defa"), ["default"])

    def test_files_and_folders(self):
        self.write("model.onnx", b"")
        self.write("modes/x", b"")
        self.assertEqual(self.tab("kiln run mod"), ["model.onnx", "modes/"])
        self.assertEqual(self.tab("kiln run -o mod"), ["modes/"])
        self.assertEqual(self.tab("kiln run -i x=model"), ["x=model.onnx"])
        self.assertEqual(self.tab("kiln run --labels=model"), ["--labels=model.onnx"])
        self.assertEqual(self.tab("kiln run --threads m"), [])
        self.assertEqual(self.tab("kiln passes m"), [])


# Writes what is offered to a file.
ZSH = """setopt extended_glob; PS1= PS2= RPS1= ; unsetopt prompt_cr prompt_sp beep auto_list auto_menu; fpath=({functions} $fpath); autoload -Uz compinit; compinit -u -D
compadd() {{
  local word; local -a offered
  for word; do
    [[ $word = (-|--) ]] && break
    [[ $word = -[a-zA-Z]#[OAD] ]] && {{ builtin compadd "$@"; return; }}
  done
  builtin compadd -O offered "$@"; (( $#offered )) && print -rl -- $offered >>{out}; builtin compadd "$@"
}}
zstyle ':completion:*' completer _complete; bindkey '^I' complete-word '^Xk' kill-whole-line; print -r ready >>{out}
"""


@unittest.skipUnless(shutil.which("zsh"), "there is no zsh")
class Zsh(CliTest):
    def setUp(self):
        super().setUp()
        functions = self.dir / "functions"
        functions.mkdir()
        shutil.copy(SCRIPTS / "kiln.zsh", functions / "_kiln")
        self.offers = self.dir / "offers"
        self.offers.touch()
        (self.dir / "bin").mkdir()
        (self.dir / "bin/kiln").symlink_to(KILN)
        (self.dir / "set-up").write_text(ZSH.format(functions=functions, out=self.offers), encoding="utf-8")
        self.terminal, other = pty.openpty()
        self.shell = subprocess.Popen(["zsh", "-f", "-i"], cwd=self.dir, stdin=other, stdout=other, stderr=other, start_new_session=True,
                                      env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "dumb", "HOME": str(self.dir),
                                           "PATH": f"{self.dir}/bin:{os.environ['PATH']}"})
        os.close(other)
        self.addCleanup(self.stop)
        self.type("source ./set-up\n", "ready")

    def stop(self):
        self.shell.kill()
        self.shell.wait()
        os.close(self.terminal)

    def type(self, keys, last):
        """Types, and waits for a line in the file of offers."""
        os.write(self.terminal, keys.encode())
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if select.select([self.terminal], [], [], 0.02)[0]:
                os.read(self.terminal, 65536)
            lines = self.offers.read_text(encoding="utf-8").split("\n")
            if last in lines:
                self.offers.write_text("", encoding="utf-8")
                return [line for line in lines[:lines.index(last)] if line]
        raise AssertionError(f"zsh: expected {last!r} after {keys!r}, found {lines!r}")

    def tab(self, line):
        # The line is taken back by a key that is none of the terminal's own; the next line marks the end of the offers.
        return self.type(f"{line}\t\x18kprint -r end >>{self.offers}\n", "end")

    def test_commands_and_options(self):
        commands = re.findall(r"(?m)^  (\w+) ", self.kiln("--help"))
        self.assertEqual({*commands, "help"} - set(self.tab("kiln ")), set())
        self.assertEqual(self.tab("kiln comp"), ["compile", "compare"])
        for command in ("run", "opt", "passes"):
            found = {option.rstrip("=") for option in self.tab(f"kiln {command} -")}
            self.assertEqual(found, options_of_help(self.kiln(command, "--help")), command)
        self.assertEqual(self.tab("kiln frobnicate "), [])

    def test_values(self):
        self.assertEqual(self.tab("kiln opt --emit "), ["text", "onnx", "dot", "json"])
        self.assertEqual(self.tab("kiln opt --emit=js"), ["json"])
        self.assertEqual(self.tab("kiln opt --only dce,sink-tra"), ["sink-transposes"])
        self.assertEqual(self.tab("kiln opt --print-after al"), ["all"])
        self.assertEqual(self.tab("kiln opt --pipeline defa"), ["default"])

    def test_files_and_folders(self):
        self.write("model.onnx", b"")
        self.write("modes/x", b"")
        self.assertEqual(set(self.tab("kiln run mod")), {"model.onnx", "modes"})
        self.assertEqual(set(self.tab("kiln run -o mod")), {"modes"})
        self.assertEqual(self.tab("kiln run -i x=model"), ["model.onnx"])
        self.assertEqual(self.tab("kiln passes m"), [])


if __name__ == "__main__":
    main()
