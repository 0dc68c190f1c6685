# SPDX-License-Identifier: Apache-2.0
"""Which files kiln reads, writes and replaces: nothing that a stranger's text or a link in a folder chooses."""
import os
import subprocess
import tempfile

from harness import FAILED, KILN, MODEL, USAGE, CliTest, main

TEXT = """graph @f(%x: u8[100]) {{
  %w = const @w : u8[100]
  return %w
}}
constants {{ @w = file("{}", 0, 100) : u8[100] }}
"""
FOLDED = """graph @f(%x: f32[64,64], %w: f32[64,64] constant=run) {
  %a = sin(%w) : f32[64,64]
  %y = add(%x, %a) : f32[64,64]
  return %y
}
"""


class Texts(CliTest):
    def test_a_text_reads_files_beside_it_alone(self):
        secret = self.write("secret", bytes(100))
        self.write("texts/data.bin", bytes(100))
        os.symlink(secret, self.dir / "texts/link")
        os.symlink("data.bin", self.dir / "texts/inner")
        for name in (secret, "../secret", "link", "./../secret"):
            text = self.write("texts/f.kiln", TEXT.format(name))
            self.fails(FAILED, "expected a path below the text's directory", "check", text)
        for name in ("data.bin", "inner"):
            self.kiln("check", self.write("texts/f.kiln", TEXT.format(name)))

    def test_a_text_from_a_pipe_points_nowhere(self):
        self.write("data.bin", bytes(100))
        result = subprocess.run([KILN, "check", "-"], input=TEXT.format("data.bin").encode(), cwd=self.dir,
                                capture_output=True, check=False)
        self.assertEqual(result.returncode, FAILED)
        self.assertIn(b"which lies beside the file of file(...), found one from memory or standard input", result.stderr)

    def test_a_text_from_standard_input_points_nowhere(self):
        """However it came there: no folder is beside it, /dev least of all."""
        self.write("data.bin", bytes(100))
        text = self.write("f.kiln", TEXT.format("data.bin"))
        for name in "-", "/dev/stdin", "/proc/self/fd/0":
            with open(text, "rb") as file:
                result = subprocess.run([KILN, "check", name], stdin=file, cwd=self.dir, capture_output=True, check=False)
            self.assertEqual(result.returncode, FAILED)
            self.assertIn(b"found one from memory or standard input", result.stderr)
        self.kiln("check", text)

    def test_a_program_names_no_file(self):
        self.write("data.bin", bytes(100))
        self.kiln("compile", self.write("f.kiln", TEXT.format("data.bin")), "-o", "p")
        self.assertNotIn(b"file(", (self.dir / "p").read_bytes())


class Links(CliTest):
    def test_standard_output_without_a_name(self):
        """As /dev/stdout is, in a folder that may be broken."""
        link = self.dir / "stdout"
        os.symlink("/proc/self/fd/1", link)
        expected = self.kiln("opt", MODEL, "--emit", "json").encode()
        with tempfile.TemporaryFile() as out:
            result = self.start("opt", MODEL, "--emit", "json", "-o", link, stdout=out)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            out.seek(0)
            self.assertEqual(out.read(), expected)
            out.truncate(0)
            self.assertEqual(self.start("opt", MODEL, "-o", link, stdout=out).returncode, 0)
        self.assertEqual(os.readlink(link), "/proc/self/fd/1")
        self.assertEqual(self.files(), ["stdout"])

    def test_a_link_to_a_file(self):
        file, link = self.write("file", "before" * 100000), self.dir / "link"
        os.symlink("file", link)
        inode = os.stat(file).st_ino
        self.kiln("opt", MODEL, "--emit", "json", "-o", link)
        self.assertEqual(os.stat(file).st_ino, inode)
        self.assertEqual((self.dir / "file").read_text(), self.kiln("opt", MODEL, "--emit", "json"))

    def test_standard_output_goes_on_where_it_stands(self):
        """Into a log that is appended to, and behind what others have written."""
        link = self.dir / "stdout"
        os.symlink("/proc/self/fd/1", link)
        text = self.kiln("opt", MODEL, "--emit", "json").encode()
        self.kiln("compile", MODEL, "-o", "program")
        program = (self.dir / "program").read_bytes()
        for expected, command in (text, ("opt", MODEL, "--emit", "json", "-o")), (program, ("compile", MODEL, "-o")):
            for name in "-", link, "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1":
                for mode in "ab", "r+b":
                    (self.dir / "log").write_bytes(b"before\n")
                    with open(self.dir / "log", mode) as log:
                        log.seek(0, os.SEEK_END)
                        result = subprocess.run([KILN, *map(str, command), name], stdout=log, stderr=subprocess.PIPE, cwd=self.dir, check=False)
                    self.assertEqual((result.returncode, result.stderr), (0, b""), (name, mode))
                    self.assertEqual((self.dir / "log").read_bytes(), b"before\n" + expected, (command, name, mode))
        self.assertEqual(self.files(), ["log", "program", "stdout"])

    def test_a_text_through_a_pipe_is_whole(self):
        """With --inline, the text of a model with big weights is read back by `kiln run -`, which finds no file beside it."""
        text = subprocess.run([KILN, "opt", MODEL], stdout=subprocess.PIPE, cwd=self.dir, check=True).stdout
        self.assertIn(b"file(", text)
        result = subprocess.run([KILN, "run", "-", "--random", "1"], input=text, cwd=self.dir, capture_output=True, check=False)
        self.assertEqual(result.returncode, FAILED)
        self.assertIn(b"kiln opt --inline writes a text", result.stderr)
        self.fails(USAGE, "--inline: expected --emit text, found --emit dot", "opt", MODEL, "--inline", "--emit", "dot")
        for name in "-", "/dev/stdout":
            text = subprocess.run([KILN, "opt", MODEL, "--inline", "-o", name], stdout=subprocess.PIPE, cwd=self.dir, check=True).stdout
            self.assertIn(b"base64(", text)
            self.assertNotIn(b"file(", text)
            result = subprocess.run([KILN, "run", "-", "--random", "1", "--pipeline", "none"], input=text, cwd=self.dir, capture_output=True, check=False)
            self.assertEqual((result.returncode, result.stderr), (0, b""))
            self.kiln("opt", MODEL, "-o", "opt.kiln")
            self.assertEqual(result.stdout.decode(), self.kiln("run", "opt.kiln", "--random", "1", "--pipeline", "none"))

    def test_no_new_folder_in_system_folders(self):
        os.symlink("/dev", self.dir / "link")
        for path in "/dev/kiln-test", "/dev/kiln-test/deep", "/proc/kiln-test", "link/kiln-test":
            for command in ("opt", MODEL, "--dump-dir", path), ("run", MODEL, "--random", "1", "-o", path), ("run", MODEL, "--random", "1", "--dump-values", path), \
                    ("run", self.write("f.kiln", FOLDED), "--random", "1", "--cache-dir", path):
                self.fails(FAILED, f"{path}: cannot be made: Operation not permitted", *command)
        self.assertFalse(os.path.lexists("/dev/kiln-test"))

    def test_dumps_are_written_as_all_else(self):
        """A link is followed and stays one, a mode stays, and nothing half written is left."""
        self.kiln("opt", MODEL, "--dump-dir", "d")
        first = sorted(os.listdir(self.dir / "d"))[0]
        path, expected = self.dir / "d" / first, (self.dir / "d" / first).read_text()
        names = self.files()
        path.unlink()
        os.symlink("/proc/kiln-test", path)
        self.fails(FAILED, f"d/{first}: cannot be written", "opt", MODEL, "--dump-dir", "d")
        self.assertTrue(path.is_symlink())
        path.unlink()
        os.symlink(self.write("file", "before"), path)
        self.kiln("opt", MODEL, "--dump-dir", "d")
        self.assertTrue(path.is_symlink())
        self.assertEqual((self.dir / "file").read_text(), expected)
        self.assertEqual(self.files(), sorted([*names, "file"]))

    def test_nothing_new_in_system_folders(self):
        os.symlink("/proc/kiln-test", self.dir / "link")
        for path in ("/dev/kiln-test", "/proc/kiln-test", "link"):
            self.fails(FAILED, "cannot be written", "opt", MODEL, "--emit", "json", "-o", path)
        self.assertFalse(os.path.lexists("/dev/kiln-test"))


class Cache(CliTest):
    def fold(self, status=0):
        return self.kiln_err("run", self.write("f.kiln", FOLDED), "--random", "1", "--const", "run:w", "--cache-dir", "c",
                             "--quiet", status=status)

    def test_only_regular_files(self):
        self.fold()
        (name,) = os.listdir(self.dir / "c")
        path, victim = self.dir / "c" / name, self.write("victim", "precious")
        path.unlink()
        os.symlink(victim, path)
        self.fold()
        self.assertEqual((self.dir / "victim").read_text(), "precious")
        self.assertTrue(path.is_symlink())
        path.unlink()
        os.mkfifo(path)
        self.fold()
        self.assertTrue(path.is_fifo())

    def test_only_the_users_directory(self):
        os.mkdir(self.dir / "c")
        os.chmod(self.dir / "c", 0o777)
        self.assertIn("c: expected a directory of user", self.fold(FAILED))
        os.chmod(self.dir / "c", 0o755)
        self.fold()


if __name__ == "__main__":
    main()
