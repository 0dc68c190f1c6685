# SPDX-License-Identifier: Apache-2.0
"""kiln itself: commands, help, and the options that every command takes."""
import fcntl
import json
import os
import pty
import re
import resource
import signal
import struct
import subprocess
import tempfile
import termios
import unittest

from harness import ADD, FAILED, KILN, MODEL, OK, SHARED, USAGE, CliTest, main

COMMANDS = ("run", "opt", "verify", "info", "check", "memory", "compile", "passes", "ops")
try:
    os.close(os.open(tempfile.gettempdir(), os.O_TMPFILE | os.O_WRONLY))
    NAMELESS = True
except OSError:
    NAMELESS = False
ONE_MODEL = ("run", "opt", "info", "check", "memory", "compile")


class Commands(CliTest):
    def test_no_command_is_usage(self):
        result = self.start()
        self.assertEqual((result.returncode, result.stdout), (USAGE, b""))
        self.assertIn("Usage: kiln COMMAND", result.stderr)

    def test_help_lists_every_command(self):
        for flag in ("--help", "-h", "help"):
            text = self.kiln(flag)
            for command in COMMANDS:
                self.assertRegex(text, rf"(?m)^  {command}\b")
            self.assertIn("Exit status: 0 ok, 1 failed, 2 wrong usage, 3 unsupported operators, 4 mismatch, 5 some inputs of a batch failed.", text)

    def test_version_names_version_compiler_and_kernels(self):
        self.assertRegex(self.kiln("--version"), r"^kiln \d+\.\d+\.\d+, .+, .+ kernels, (oneDNN [\d.]+|without oneDNN)\n$")

    def test_unknown_commands_are_usage(self):
        for name in ("frobnicate", "", "--no-such-option"):
            result = self.start(name)
            self.assertEqual((result.returncode, result.stdout), (USAGE, b""))
            self.assertIn(f"kiln: expected a command, found {name}", result.stderr)
            self.assertIn("`kiln --help` lists them.", result.stderr)

    def test_slips_get_a_suggestion(self):
        self.assertIn("found verfy (did you mean 'verify'?)", self.start("verfy").stderr)

    def test_help_of_every_command(self):
        for command in COMMANDS:
            for flag in ("--help", "-h"):
                text = self.kiln(command, flag)
                self.assertIn(f"kiln {command} [OPTION…]", text)
                for option in ("pipeline", "passes", "backend", "no-offload", "threads", "mode", "const", "shape", "prefer",
                               "no-verify", "accept-newer-opsets", "json", "quiet", "trace", "help"):
                    self.assertRegex(text, rf"--{option}\b")

    def test_help_is_a_command_too(self):
        for command in COMMANDS:
            self.assertEqual(self.kiln("help", command), self.kiln(command, "--help"))
        self.assertIn("expected a command, found frobnicate", self.start("help", "frobnicate").stderr)

    def test_help_needs_no_operand_and_does_nothing_else(self):
        self.assertIn("Usage:", self.kiln("run", "--help", "no-such-model.onnx"))


class Options(CliTest):
    def test_operands_are_counted(self):
        for command in ONE_MODEL:
            self.fails(USAGE, ("expected one operand (MODEL), found 0", f"`kiln {command} --help` shows the options."), command)
            self.fails(USAGE, "expected one operand (MODEL), found 2", command, "a.onnx", "b.onnx")
        self.fails(USAGE, "expected DIR…, found none", "verify")
        self.fails(USAGE, "expected no operand, found x", "passes", "x")
        self.fails(USAGE, "expected no operand, found x", "ops", "x")

    def test_unknown_option(self):
        for command in COMMANDS:
            self.fails(USAGE, ("Unknown option --frobnicate\n", f"`kiln {command} --help`"), command, "--frobnicate")
        for slip, option in (("--pipelin", "--pipeline"), ("--thread=2", "--threads"), ("--no-ofload", "--no-offload")):
            self.fails(USAGE, f"(did you mean '{option}'?)\n", "run", "--quiet", slip, "--", "--frob")
        # Words of three letters that share one are no slips of each other.
        for other in ("--cpu", "--gpu", "--x", "--a"):
            self.fails(USAGE, f"Unknown option {other}\n", "run", other)
        self.fails(USAGE, "(did you mean '--npy'?)\n", "run", "--npz")

    def test_values_of_common_options(self):
        model = self.write("add.kiln", ADD)
        for arguments, message in (
                (("--threads", "two"), "two"),
                (("--threads", "-1"), "--threads: expected 0 to 1024, found -1"),
                (("--threads", "1025"), "--threads: expected 0 to 1024, found 1025"),
                (("--threads", "99999999999999999999"), "99999999999999999999"),
                (("--threads",), "Missing argument"),
                (("--backend", "gpu"), "expected a backend (cpu, ref), found gpu"),
                (("--mode", "test"), "--mode: expected infer or train, found test"),
                (("--prefer", "cheap"), "--prefer: expected speed or memory, found cheap"),
                (("--pipeline", "none", "--passes", "dce"), "--pipeline and --passes: expected one of them, found both")):
            for command in ("run", "opt", "check", "memory"):
                self.fails(USAGE, message, command, model, *arguments)

    def test_constness(self):
        model = self.write("add.kiln", ADD)
        for command in ("run", "opt", "check", "memory"):
            self.fails(USAGE, "--const: expected compile:NAME or run:NAME, found x", command, model, "--const", "x")
            self.fails(USAGE, "--const: expected compile:NAME or run:NAME, found never:x", command, model, "--const", "never:x")
            self.fails(USAGE, "--const: the model has no input q", command, model, "--const", "compile:q")
        self.assertIn("%x: f32[2,3] constant=compile, %y: f32[2,3] constant=run",
                      self.kiln("opt", model, "--const", "compile:x", "--const", "run:y"))
        text = self.write("ir.kiln", self.kiln("opt", model, "--stage", "ir"))
        self.fails(USAGE, "--const: expected a model at the graph level, found", "run", text, "--const", "run:x")

    def test_shapes(self):
        model = self.write("add.kiln", ADD)
        for text in ("x", "=1x2", "x=a-x3", "x=2x", "x=2x-3", "x=2,3", "x=2..x3", "x=1..4%x3", "x=1..4%0x3", "x=%8..16x3", "x=N:x3", "x=N:4x3", "x=1x1x1x1x1x1x1x1x1",
                     "x=99999999999999999999"):
            for command in ("run", "opt", "memory"):
                self.fails(USAGE, f"--shape: expected NAME=1x3x224x224, found {text}", command, model, "--shape", text)
        for command in ("run", "opt", "memory"):
            self.fails(USAGE, "expected one of the inputs x, y, found q", command, model, "--shape", "q=1")
            self.fails(FAILED, ("input x: expected f32[2,3], found f32[2,4]", "add.kiln"), command, model, "--shape", "x=2x4")

    def test_options_take_no_effect_on_the_result(self):
        model = self.write("add.kiln", ADD)
        expected = self.kiln("run", model, "--random", "1")
        for option in (("--no-offload",), ("--prefer", "speed"), ("--prefer", "memory"), ("--threads", "1"), ("--threads", "4"),
                       ("--mode", "infer"), ("--mode", "train"), ("--no-verify",), ("--quiet",), ("-q",), ("--backend", "ref"),
                       ("--pipeline", "none"), ("--passes", "")):
            self.assertEqual(self.kiln("run", model, "--random", "1", *option), expected, option)

    def test_names_that_are_not_ascii(self):
        model = self.write("n.kiln", 'graph @n(%"größe": f32[N]) {\n  %y = relu(%"größe") : f32[N]\n  return %y\n}\n')
        for locale in ("C", "C.UTF-8"):
            environment = {**os.environ, "LC_ALL": locale}
            result = self.start("run", model, "--random", "1", "--shape", "größe=4", env=environment)
            self.assertEqual((result.returncode, result.stderr), (OK, ""))


class Names(CliTest):
    """Names of a model or of a file may hold anything."""

    def test_names_do_not_command_the_terminal(self):
        model = self.write("m.kiln", 'graph @m(%"a\\x1b[31mb\\n": f32[2]) {\n  %"c\\x1b[31md" = tanh(%"a\\x1b[31mb\\n") : f32[2]\n'
                                     '  %e = exp(%"c\\x1b[31md") : f32[2]\n  return %e, %"c\\x1b[31md"\n}\n')
        commands = ("run", model), ("run", model, "--random", "1"), ("memory", model, "--passes", ""), ("compare", model), \
            ("opt", model), ("bisect", model)
        for command in commands:
            result = self.start(*command)
            said = result.stdout.decode() + result.stderr
            self.assertNotIn("\x1b", said, command)
            if command[0] in ("run", "opt", "memory"):
                self.assertIn("\\x1b[31m", said)

    def test_json_is_utf_8_whatever_a_file_is_called(self):
        folder = os.fsencode(self.dir)
        os.mkdir(folder + b"/cases\xff")
        os.mkdir(folder + b"/cases\xff/one\xfe")
        os.mkdir(folder + b"/cases\xff/one\xfe/test_data_set_0")
        with open(folder + b"/cases\xff/one\xfe/model.onnx", "wb") as model:
            model.write(b"none")
        result = subprocess.run([KILN, "verify", b"cases\xff", "--json"], cwd=self.dir, capture_output=True, check=False)
        self.assertEqual(result.returncode, FAILED)
        self.assertEqual([case["name"] for case in json.loads(result.stdout)["cases"]], ["one\ufffd"])
        with open(folder + b"/add\xff.kiln", "w", encoding="utf-8") as model:
            model.write(ADD)
        subprocess.run([KILN, "run", b"add\xff.kiln", "--random", "1", "--trace", "t.json"], cwd=self.dir, stdout=subprocess.DEVNULL,
                       check=True)
        self.assertIn("add\ufffd.kiln", [event["name"] for event in json.loads((self.dir / "t.json").read_text("utf-8"))["traceEvents"]])


class Terminals(CliTest):
    def test_progress_stays_in_its_row(self):
        """A row that wraps could not be written again: checking each pass of a network takes long enough to show some."""
        model = SHARED / "models/resnet18/model.onnx"
        if not model.exists():
            self.skipTest("no models beside the source tree")
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 20, 0, 0))
        command = KILN, "opt", model, "--passes", "dedup-constants,cse", "--check", "-o", "/dev/null"
        with subprocess.Popen(command, stderr=theirs, cwd=self.dir) as process:
            os.close(theirs)
            said = b""
            while True:
                try:
                    said += os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
        os.close(ours)
        self.assertEqual(process.returncode, OK)
        rows = [row for row in said.decode().split("\r\x1b[K") if row]
        self.assertTrue(rows)
        self.assertEqual([row for row in rows if len(row) > 19 or not re.match(r" *\d+ % ", row)], [])


class Streams(CliTest):
    """`-` is standard input and output."""

    def piped(self, data, *arguments):
        """The command's output on `data` from a pipe."""
        result = subprocess.run([KILN, *map(str, arguments)], input=data, capture_output=True, cwd=self.dir, timeout=300, check=False)
        self.assertEqual((result.returncode, result.stderr), (OK, b""), arguments)
        return result.stdout

    def test_models_and_programs_from_a_pipe(self):
        run = "run", "-", "--random", "1"
        expected = self.start("run", MODEL, "--random", "1").stdout
        self.assertEqual(self.piped(MODEL.read_bytes(), *run), expected)
        program = self.piped(MODEL.read_bytes(), "compile", "-", "-o", "-")
        self.assertEqual(self.piped(program, *run), expected)
        self.assertEqual(self.piped(program, "run", "/dev/stdin", "--random", "1"), expected)
        self.assertEqual(self.piped(program, "memory", "-"), self.piped(program, "memory", "/dev/stdin"))
        text = self.piped(MODEL.read_bytes(), "opt", "-", "-o", "-")
        self.assertEqual(self.piped(text, *run), expected)
        self.assertEqual(self.files(), [])

    def test_a_program_from_a_pipe_is_settled(self):
        self.kiln("compile", MODEL, "-o", "p")
        with open(self.dir / "p", "rb") as program:
            result = subprocess.run([KILN, "run", "-", "--passes", "dce"], stdin=program, capture_output=True, check=False)
        self.assertEqual(result.returncode, USAGE)
        self.assertIn(b"--passes: expected a model, found /dev/stdin, which is compiled already", result.stderr)

    def test_a_program_goes_to_a_file_of_the_shell(self):
        self.kiln("compile", MODEL, "-o", "named")
        with open(self.dir / "piped", "wb") as out:
            self.start("compile", MODEL, "-o", "-", stdout=out)
        self.assertEqual((self.dir / "piped").read_bytes(), (self.dir / "named").read_bytes())

    def test_plans_in_place_of_the_report(self):
        for option in "--csv", "--svg":
            self.kiln("memory", MODEL, option, "file")
            for more in (), ("--json",):
                self.assertEqual(self.kiln("memory", MODEL, option, "-", *more), (self.dir / "file").read_text())
        self.fails(USAGE, "--csv and --svg: expected one of them to be -, found both", "memory", MODEL, "--csv", "-", "--svg", "-")

    def test_traces(self):
        self.assertIn("traceEvents", json.loads(self.kiln("opt", MODEL, "-o", "m.kiln", "--trace", "-")))
        self.fails(USAGE, "--json and --trace -: expected one", "run", MODEL, "--random", "1", "--json", "--trace", "-")
        self.fails(USAGE, "--trace: expected a file, found standard output", "opt", MODEL, "--trace", "-")

    def test_what_is_killed_while_it_writes_leaves_nothing(self):
        """A limit on the size of files kills with a signal in the midst of a write."""
        for command in ("compile", MODEL, "-o", "p"), ("opt", MODEL, "-o", "m.kiln"), ("opt", MODEL, "--emit", "onnx", "-o", "m.onnx"):
            result = subprocess.run([KILN, *map(str, command)], cwd=self.dir, capture_output=True, check=False,
                                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
            self.assertEqual(result.returncode, -signal.SIGXFSZ, command)
            if not NAMELESS:
                self.skipTest("this file system has no files without a name")
            self.assertEqual(self.files(), [])


class Traces(CliTest):
    def test_every_command_writes_one(self):
        model = self.write("add.kiln", ADD)
        case = {"run": (model, "--random", "1"), "opt": (model,), "check": (model,), "memory": (model,)}
        for command, arguments in case.items():
            path = self.dir / "trace.json"
            self.kiln(command, *arguments, "--trace", path)
            events = json.loads(path.read_text())["traceEvents"]
            self.assertTrue(events)
            for event in events:
                self.assertGreaterEqual(event["ts"], 0)
                if event["cat"] == "memory":
                    self.keys(event, "name", "cat", "ph", "pid", "ts", "args")
                    self.assertEqual(event["ph"], "C")
                    continue
                self.keys(event, "name", "cat", "ph", "pid", "tid", "ts", "dur")
                self.assertEqual(event["ph"], "X")
                self.assertGreaterEqual(event["dur"], 0)
            kinds = {event["cat"] for event in events}
            self.assertIn("load", kinds)
            if command in ("run", "opt", "memory"):
                self.assertIn("pass", kinds)
            if command == "run":
                adds = [event for event in events if event["cat"] == "add"]
                self.assertEqual(len(adds), 1)
                self.keys(adds[0]["args"], "kernel", "flops", "bytes")
            path.unlink()

    def test_live_bytes_are_those_of_the_plan(self):
        """One point per instruction: what of the arena holds something then, scratch included; the most is the arena."""
        models = [MODEL, *sorted((SHARED / "models").glob("*/model.onnx"))]
        for model in models:
            path = self.dir / "trace.json"
            self.kiln("run", model, "--random", "1", "--threads", "1", "--trace", path)
            events = json.loads(path.read_text())["traceEvents"]
            counter = [event for event in events if event["ph"] == "C"]
            run = [event for event in events if event["ph"] == "X" and event["tid"] == 2]
            plan = json.loads(self.kiln("memory", model, "--threads", "1", "--json"))
            live = [sum(b["size"] for b in plan["buffers"] if b["def"] <= step <= b["last_use"]) for step in range(len(run))]
            self.assertEqual([point["args"]["bytes"] for point in counter], [*live, 0], model)
            self.assertEqual(max(live), plan["lb_live"], model)
            self.assertEqual((plan["proven_optimal"], plan["arena"]), (True, plan["lb_live"]), model)
            self.assertEqual([point["ts"] for point in counter[:-1]], [event["ts"] for event in run], model)
            for event in run:
                self.keys(event["args"], "kernel", "flops", "bytes")
                self.assertTrue(event["name"], model)
                self.assertGreater(event["args"]["bytes"], 0, model)

    def test_unwritable(self):
        model = self.write("add.kiln", ADD)
        result = self.start("run", model, "--random", "1", "--trace", "/nonexistent/trace.json")
        self.assertEqual(result.returncode, FAILED)
        self.assertIn("/nonexistent/trace.json: cannot be written: No such file or directory", result.stderr)


class StandardOutput(CliTest):
    def test_full_disk_is_a_failure(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        model = self.write("add.kiln", ADD)
        for arguments in (("opt", model), ("ops",), ("--help",), ("run", model, "--random", "1")):
            with open("/dev/full", "wb") as full:
                result = self.start(*arguments, stdout=full)
            self.assertEqual(result.returncode, FAILED, arguments)
            self.assertIn("standard output: cannot be written: ", result.stderr)

    def test_reader_that_leaves(self):
        with subprocess.Popen([KILN, "ops"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")

    def test_nothing_but_the_result(self):
        """A terminal would show progress; a pipe gets the result alone and standard error stays empty."""
        model = self.write("add.kiln", ADD)
        result = self.start("run", model, "--random", "1")
        self.assertEqual(result.stderr, "")
        self.assertTrue(re.fullmatch(rb"z: f32\[2,3\] min \S+ max \S+ mean \S+\n", result.stdout), result.stdout)


if __name__ == "__main__":
    main()
