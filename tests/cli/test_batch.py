# SPDX-License-Identifier: Apache-2.0
"""`kiln run --batch-of`: a result for each input, written whole; what fails is listed and the rest done."""
import os
import pty
import re
import select
import signal
import subprocess
import time

from harness import ADD, DIGITS, FAILED, KILN, MODEL, OK, PARTIAL, RELU, SANITIZERS, SOURCE, USAGE, CliTest, floats, main, npy

# Milliseconds for each run, so that a signal comes in the middle.
SLOW = """graph @slow(%x: f32[256,256]) {
  %w = const @w : f32[256,256]
  %a = matmul(%x, %w) : f32[256,256]
  %b = matmul(%a, %w) : f32[256,256]
  %c = matmul(%b, %w) : f32[256,256]
  %d = matmul(%c, %w) : f32[256,256]
  %y = tanh(%d) : f32[256,256]
  return %y
}
constants { @w = random_normal(seed=7, std=0.05) : f32[256,256] }
"""
TWO = """graph @two(%x: f32[2,3]) {
  %a = relu(%x) : f32[2,3]
  %b = neg(%x) : f32[2,3]
  return %a, %b
}
"""
RANDOM = """graph @random(%x: f32[2,3]) {
  %r = random_normal() {shape=[2,3]} : f32[2,3]
  %y = add(%x, %r) : f32[2,3]
  return %y
}
"""
HEAD = "input\tresult\terror\n"


def six(first):
    return npy("<f4", (2, 3), floats(*(first + i for i in range(6))))


def values(data):
    return data[-24:]


class Batch(CliTest):
    def results(self, folder="out"):
        root = self.dir / folder
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}

    def tensors(self, folder="out"):
        return {name: data for name, data in self.results(folder).items() if name != "failures.tsv"}

    def batch(self, *arguments, status=OK):
        """Runs; returns the line of counts without times."""
        line = self.kiln("run", *arguments, status=status).splitlines()[-1]
        return re.fullmatch(r"(.*), \d+\.\d\d s, \d+\.\d files/s", line).group(1)

    def inputs(self, n, folder="in"):
        for i in range(n):
            self.write(f"{folder}/i{i:03}.npy", six(i))
        return folder

    # --- inputs and results ---

    def test_pictures_are_as_of_single_runs(self):
        self.assertEqual(self.batch(MODEL, "--batch-of", DIGITS, "-o", "out", "--quiet"), "11 inputs: 11 done, 0 skipped, 0 failed")
        self.assertEqual(len(self.tensors()), 11)
        for name in ("seven", "test_data_set_0"):
            file = DIGITS / (f"{name}.png" if name == "seven" else f"{name}/input_0.pb")
            self.kiln("run", MODEL, "-i", f"image={file}", "-o", "single", "--threads", "1")
            self.assertEqual(self.results()[f"{name}.pb"], self.results("single")["output_0.pb"])
        self.assertEqual(self.results()["failures.tsv"].decode(), HEAD)

    def test_the_number_of_jobs_changes_no_byte(self):
        model, folder = self.write("relu.kiln", RELU), self.inputs(40)
        for jobs in ("1", "3", "64"):
            self.batch(model, "--batch-of", folder, "-o", f"out{jobs}", "--npy", "--jobs", jobs)
        self.batch(model, "--batch-of", folder, "-o", "threads", "--npy", "--jobs", "2", "--threads", "2")
        self.assertEqual(len(self.results("out1")), 41)
        for other in ("out3", "out64", "threads"):
            self.assertEqual(self.results("out1"), self.results(other))

    def test_pictures_of_different_sizes(self):
        model = SOURCE / "docs/examples/picture.kiln"
        for i, (width, height) in enumerate(((8, 8), (16, 9), (40, 7), (8, 8), (31, 64))):
            self.write(f"in/{i}.ppm", b"P6\n%d %d\n255\n" % (width, height) + bytes(range(3)) * (width * height))
        self.batch(model, "--batch-of", "in", "-o", "out", "--jobs", "2")
        for i in range(5):
            self.kiln("run", model, "-i", f"image=in/{i}.ppm", "-o", "single", "--threads", "1")
            self.assertEqual(self.results()[f"{i}.pb"], self.results("single")["output_0.pb"], i)

    def test_compiled_programs(self):
        model, folder = self.write("relu.kiln", RELU), self.inputs(5)
        self.kiln("compile", model, "-o", "relu.kiln-program")
        self.batch(model, "--batch-of", folder, "-o", "out")
        self.batch("relu.kiln-program", "--batch-of", folder, "-o", "out2")
        self.assertEqual(self.results(), self.results("out2"))

    def test_several_inputs(self):
        """By their names, by numbers as in ONNX's test data, one for all, and in a list."""
        model = self.write("add.kiln", ADD)
        self.write("in/names/x.npy", six(1))
        self.write("in/names/y.npy", six(2))
        self.write("in/numbers/input_0.npy", six(10))
        self.write("in/numbers/input_1.npy", six(20))
        self.write("in/numbers/output_0.pb", b"not read")
        self.batch(model, "--batch-of", "in", "-o", "out", "--npy")
        sums = {name: values(data) for name, data in self.tensors().items()}
        self.assertEqual(sums, {"names.npy": floats(*range(3, 15, 2)), "numbers.npy": floats(*range(30, 42, 2))})
        self.batch(model, "--batch-of", self.inputs(2, "xs"), "-i", "y=in/names/y.npy", "-o", "fixed", "--npy")
        self.assertEqual(values(self.results("fixed")["i001.npy"]), floats(*range(3, 15, 2)))
        self.write("list", "x=in/names/x.npy\ty=in/names/y.npy\r\n\nin/numbers\n")
        self.batch(model, "--batch-of", "list", "-o", "listed", "--npy")
        self.assertEqual(self.tensors("listed")["x.npy"], self.tensors()["names.npy"])
        self.assertEqual(self.tensors("listed")["numbers.npy"], self.tensors()["numbers.npy"])

    def test_numbers_go_before_names(self):
        """A folder with input_0 is in the order of the model, whatever its inputs are called."""
        model = self.write("sub.kiln", ADD.replace("%x", "%input_1").replace("%y", "%input_2").replace("add(", "sub("))
        self.write("in/numbers/input_0.npy", six(5))
        self.write("in/numbers/input_1.npy", six(1))
        self.write("in/names/input_1.npy", six(7))
        self.write("in/names/input_2.npy", six(1))
        self.batch(model, "--batch-of", "in", "-o", "out", "--npy")
        self.assertEqual(values(self.results()["numbers.npy"]), floats(*[4] * 6))
        self.assertEqual(values(self.results()["names.npy"]), floats(*[6] * 6))

    def test_several_outputs(self):
        model, folder = self.write("two.kiln", TWO), self.inputs(2)
        self.batch(model, "--batch-of", folder, "-o", "out", "--npy")
        names = ["i000/output_0.npy", "i000/output_1.npy", "i001/output_0.npy", "i001/output_1.npy"]
        self.assertEqual(list(self.tensors()), names)
        (self.dir / "out/i001/output_1.npy").unlink()
        self.assertEqual(self.batch(model, "--batch-of", folder, "-o", "out", "--npy"), "2 inputs: 1 done, 1 skipped, 0 failed")
        self.assertEqual(list(self.tensors()), names)

    def test_random_numbers_are_those_of_the_seed(self):
        model, folder = self.write("random.kiln", RANDOM), self.inputs(12)
        for jobs in ("1", "4"):
            self.batch(model, "--batch-of", folder, "-o", f"out{jobs}", "--seed", "3", "--jobs", jobs)
        self.assertEqual(self.results("out1"), self.results("out4"))
        self.kiln("run", model, "-i", "x=in/i007.npy", "-o", "single", "--seed", "3")
        self.assertEqual(self.results("single")["output_0.pb"], self.results("out1")["i007.pb"])

    def test_memory_is_that_of_the_runs_under_way(self):
        model = self.write("relu.kiln", RELU.replace("2,3", "512,512"))
        data = npy("<f4", (512, 512), bytes(512 * 512 * 4))
        for i in range(40):
            self.write(f"in/{i}.npy", data)
        self.assertEqual(self.batch(model, "--batch-of", "in", "-o", "out", "--npy", "--jobs", "2", "--memory-limit", "16M"),
                         "40 inputs: 40 done, 0 skipped, 0 failed")

    # --- failures ---

    def test_failures_are_listed_and_the_rest_is_done(self):
        model, folder = self.write("relu.kiln", RELU), self.inputs(6)
        self.write("in/i000.npy", b"damaged")
        self.write("in/i002.npy", npy("<f8", (2, 3), bytes(48)))
        self.write("in/i004.npy", npy("<f4", (3, 2), bytes(24)))
        self.write("in/empty/readme", "")
        self.write("in/notes.txt", "")
        result = self.start("run", model, "--batch-of", folder, "-o", "out", "--jobs", "2")
        self.assertEqual(result.returncode, PARTIAL, result.stderr)
        self.assertIn(b"7 inputs: 3 done, 0 skipped, 4 failed, ", result.stdout)
        self.assertIn("left out files of other kinds: 1, such as in/notes.txt", result.stderr)
        self.assertEqual(list(self.tensors()), ["i001.pb", "i003.pb", "i005.pb"])
        lines = self.results()["failures.tsv"].decode().splitlines()
        self.assertEqual([line.split("\t")[:2] for line in lines], [["input", "result", "error"][:2], ["in/empty", "empty"],
                         ["in/i000.npy", "i000"], ["in/i002.npy", "i002"], ["in/i004.npy", "i004"]])
        for line in lines[1:]:
            name, _, error = line.split("\t")
            self.assertTrue(error.startswith(f"{name}: "), line)
            self.assertIn(f"kiln run: {error}\n", result.stderr)
        document = self.json("run", model, "--batch-of", folder, "-o", "out", "--json", status=PARTIAL)
        self.assertEqual([document[key] for key in ("inputs", "done", "skipped", "failed", "stopped")], [7, 0, 3, 4, False])
        self.assertEqual(document["failures"][1]["input"], "in/i000.npy")
        for i in (0, 2, 4):
            self.write(f"in/i00{i}.npy", six(i))
        self.write("in/empty/x.npy", six(0))
        self.assertEqual(self.batch(model, "--batch-of", folder, "-o", "out"), "7 inputs: 4 done, 3 skipped, 0 failed")
        self.assertEqual(self.results()["failures.tsv"].decode(), HEAD)

    def test_many_failures_are_counted(self):
        model = self.write("relu.kiln", RELU)
        for i in range(30):
            self.write(f"in/{i:02}.npy", b"damaged")
        text = self.kiln_err("run", model, "--batch-of", "in", "-o", "out", status=PARTIAL)
        self.assertEqual(text.count("\n"), 11)
        self.assertIn("kiln run: 20 more in out/failures.tsv", text)
        self.assertEqual(self.results()["failures.tsv"].count(b"\n"), 31)

    def test_a_line_without_a_file_fails_alone(self):
        model, folder = self.write("relu.kiln", RELU), self.inputs(2)
        self.write("list", f"{folder}/i000.npy\nmissing.npy\n{folder}/i001.npy\n")
        self.assertEqual(self.batch(model, "--batch-of", "list", "-o", "out", status=PARTIAL), "3 inputs: 2 done, 0 skipped, 1 failed")
        self.assertIn(b"missing.npy\tmissing\tmissing.npy: ", self.results()["failures.tsv"])

    def test_inputs_of_which_none_is_whole(self):
        """The failure of each is told, not that of a session that nothing needs."""
        model = self.write("relu.kiln", RELU)
        (self.dir / "in/a").mkdir(parents=True)
        text = self.kiln_err("run", model, "--batch-of", "in", "-o", "out", status=PARTIAL)
        self.assertIn("in/a: expected files called input_0.pb", text)

    def test_what_is_wrong_before_the_work(self):
        """Nothing is written then."""
        relu, add, folder = self.write("relu.kiln", RELU), self.write("add.kiln", ADD), self.inputs(2)
        self.write("clash/a.npy", six(0))
        self.write("clash/a.pb", b"")
        self.write("binary", b"\0")
        self.write("none", "\n")
        self.write("list", "z=in/i000.npy\ty=in/i000.npy\n")
        (self.dir / "bare").mkdir()
        before = self.files()
        for message, *arguments in (
                (["clash/a.pb", "that of clash/a.npy"], relu, "--batch-of", "clash", "-o", "out"),
                ("expected another file than those that are read", relu, "--batch-of", folder, "-o", folder, "--npy"),
                ("in/i000.npy: expected a folder with a file for each input", add, "--batch-of", folder, "-o", "out"),
                ("list:1: expected NAME=FILE", add, "--batch-of", "list", "-o", "out"),
                ("bare: expected files of inputs", relu, "--batch-of", "bare", "-o", "out"),
                ("none: expected a file on each line", relu, "--batch-of", "none", "-o", "out"),
                ("expected -o DIR", relu, "--batch-of", folder),
                ("--batch-of and --expect", relu, "--batch-of", folder, "-o", "out", "--expect", "o"),
                ("--batch-of and --runs", relu, "--batch-of", folder, "-o", "out", "--runs", "2"),
                ("--jobs: expected --batch-of", relu, "--random", "1", "--jobs", "2"),
                ("--overwrite: expected --batch-of", relu, "--random", "1", "--overwrite"),
                ("--jobs: expected 0 to 1024, found -1", relu, "--batch-of", folder, "-o", "out", "--jobs", "-1")):
            self.fails(USAGE, message, "run", *arguments)
        self.fails(FAILED, "binary: expected a folder or a list", "run", relu, "--batch-of", "binary", "-o", "out")
        self.fails(FAILED, "nowhere", "run", relu, "--batch-of", "nowhere", "-o", "out")
        self.assertEqual(self.files(), before)

    def test_what_all_runs_lack_is_one_error(self):
        model, folder = self.write("add.kiln", ADD), self.inputs(3)
        self.fails(FAILED, "missing.npy: ", "run", model, "--batch-of", folder, "-i", "y=missing.npy", "-o", "out")
        self.assertEqual(self.tensors(), {})

    # --- results that are there ---

    def test_results_stay_unless_they_are_to_be_overwritten(self):
        model, folder = self.write("relu.kiln", RELU), self.inputs(3)
        self.batch(model, "--batch-of", folder, "-o", "out", "--npy")
        whole = self.results()
        self.write("out/i000.npy", "old")
        self.write("out/i001.npy", "")
        self.assertEqual(self.batch(model, "--batch-of", folder, "-o", "out", "--npy"), "3 inputs: 1 done, 2 skipped, 0 failed")
        self.assertEqual(self.results(), {**whole, "i000.npy": b"old"})
        self.batch(model, "--batch-of", folder, "-o", "out", "--npy", "--overwrite")
        self.assertEqual(self.results(), whole)

    # --- signals ---

    def begin(self, n, *more, **options):
        """Starts a batch of milliseconds for each run; returns the process once some results are there."""
        model = self.write("slow.kiln", SLOW)
        payload = floats(*(i % 7 - 3 for i in range(65536)))
        for i in range(n):
            self.write(f"in/{i:03}.npy", npy("<f4", (256, 256), payload[i * 4:] + payload[:i * 4]))
        self.command = ["run", model, "--batch-of", "in", "-o", "out", "--npy", "--jobs", "2"]
        process = subprocess.Popen([KILN, *self.command, *more], cwd=self.dir, **options)
        self.addCleanup(process.kill)
        end = time.monotonic() + 120
        while len(list(self.dir.glob("out/*.npy"))) < 5 and time.monotonic() < end:
            time.sleep(0.005)
        return process

    def resume(self, n):
        """What is there is whole, and the same command does the rest."""
        first = self.tensors()
        self.assertLessEqual({len(data) for name, data in first.items() if name.endswith(".npy")}, {128 + 262144})
        kept = [name for name in first if name.endswith(".npy")]
        self.assertEqual(self.batch(*self.command[1:]), f"{n} inputs: {n - len(kept)} done, {len(kept)} skipped, 0 failed")
        self.batch(*self.command[1:5], "whole", "--npy")
        resumed = {name: data for name, data in self.tensors().items() if name.endswith(".npy")}
        self.assertEqual(resumed, self.tensors("whole"))

    def test_killed_in_the_middle(self):
        process = self.begin(150, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        process.kill()
        self.assertEqual(process.wait(), -signal.SIGKILL)
        self.resume(150)

    def test_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.begin(150, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            process.send_signal(number)
            out, text = process.communicate(timeout=120)
            self.assertEqual(process.returncode, FAILED, text)
            self.assertNotRegex(text, SANITIZERS)
            left = re.search(r"stopped by a signal \(.+\) with (\d+) of 150 inputs left: the same command does the rest\n$", text)
            self.assertTrue(left, text)
            done = 150 - int(left.group(1))
            self.assertIn(f"150 inputs: {done} done, 0 skipped, 0 failed, ", out)
            self.assertEqual(len(self.tensors()), done)
            self.resume(150)
            for path in [*self.dir.glob("out/*"), *self.dir.glob("whole/*")]:
                path.unlink()

    def terminal(self, *more):
        """What a terminal shows of a batch."""
        main_end, other = pty.openpty()
        process = self.begin(400, *more, stdout=subprocess.DEVNULL, stderr=other)
        os.close(other)
        # What takes less than half a second shows nothing, so a fast machine is held up.
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.6)
        process.send_signal(signal.SIGCONT)
        shown = b""
        while select.select([main_end], [], [], 120)[0]:
            try:
                part = os.read(main_end, 4096)
            except OSError:
                break
            if not part:
                break
            shown += part
        os.close(main_end)
        self.assertEqual(process.wait(), OK)
        return shown.decode()

    def test_a_terminal_shows_a_bar(self):
        self.assertRegex(self.terminal("--jobs", "1"), r"\r\x1b\[K *\d+ % \[[#.]{20}\] \d+ of 400, \d+\.\d/s, \d+ s left")
        self.assertEqual(self.terminal("--quiet", "--overwrite"), "")


if __name__ == "__main__":
    main()
