#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every source includes what it uses, and nothing else.

Read are the tokens of files, without a preprocessor. A name is a macro, a type, an enumerator, a function or a variable that a
header of the project declares at its outermost level. Where a header pastes names from the rows of a table, the rows of the
.def file are read for them. A file is refused for

- a name of a header that it reaches only through other headers
- a function that it defines without the header that declares it
- a header of the project of which it uses nothing
- a name of the C library in STANDARD whose header it does not include, and such a header of which it uses nothing

An own header counts with what it includes itself. It is the header of the same name, and one that declares what the source
defines. So does a header that stands for others, see stands_for()."""
import collections
import pathlib
import re
import subprocess
import sys

INSTALLED = "include/kiln/"
# CMake puts it in front of each source: what it includes is there without being named.
FORCED = "graph/grow/glib.h"
# Private headers that stand for another one.
STANDS_FOR = {
    # the helpers of KILN_INFER
    "graph/infer/common.h": {"graph/infer/infer.h"},
    # without the guard the vendor's functions may end the process: it goes with their names
    "backends/onednn/region.h": {"backends/onednn/guard.h"},
    # two halves of the vectors of an instruction set: what differs, and what it means for both
    "backends/cpu/integer/integer_simd_avx2.h": {"backends/cpu/integer/integer_simd_x86.h"},
    "backends/cpu/integer/integer_simd_avx512.h": {"backends/cpu/integer/integer_simd_x86.h"},
}
# The headers of the C library whose names are told from others safely.
STANDARD = {header: re.compile(rf"(?:{names})\Z") for header, names in {
    "string.h": "(?:mem(?:cpy|move|set|cmp|chr|mem|rchr)|str(?:n?len|n?cmp|n?cpy|n?cat|r?chr|str|c?spn|pbrk|tok(?:_r)?|"
                "error(?:_r)?|n?dup|coll|signal|sep|casestr|chrnul))",
    "math.h": "(?:(?:sqrt|cbrt|pow|exp2?|expm1|log(?:2|10|1p|b)?|a?(?:sin|cos|tan)h?|atan2|hypot|fabs|fmod|remainder|fm(?:ax|in|a)|"
              "fdim|floor|ceil|l?l?r(?:ound|int)|trunc|nearbyint|frexp|[ls]?[cd]?ldexp|modf|scalbl?n|ilogb|copysign|next(?:after|toward)|"
              "erfc?|[lt]gamma|nan)[fl]?|is(?:nan|inf|finite|normal|(?:un|less|greater)\\w+)|signbit|fpclassify|NAN|INFINITY|"
              "HUGE_VALF?|M_[A-Z0-9_]+|FP_[A-Z_]+)",
    "stdlib.h": "(?:[mc]alloc|realloc(?:array)?|free|aligned_alloc|posix_memalign|abort|exit|_Exit|at(?:_quick_)?exit|(?:un)?setenv|"
                "(?:secure_)?getenv|putenv|clearenv|system|qsort(?:_r)?|bsearch|l?l?abs|l?l?div|ato[ifl]l?|strto(?:d|f|ld|u?ll?)|s?rand|"
                "random|mk[sd]temps?|realpath|EXIT_(?:SUCCESS|FAILURE)|RAND_MAX)",
    "stdio.h": "(?:v?[fsd]?n?printf|v?asprintf|v?[fs]?scanf|f?puts|f?put(?:c|char)|f?get[cs]|getc(?:har)?|getline|ungetc|f(?:open|close|"
               "read|write|seeko?|tello?|flush|error|eof|ileno|dopen|reopen|memopen)|open_memstream|popen|pclose|perror|rewind|"
               "remove|rename|setv?buf|tmpfile|FILE|std(?:in|out|err)|EOF|SEEK_[A-Z]+|BUFSIZ|_IO[A-Z]BF)",
}.items()}

COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]+(["<])([^">]+)[">]')
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|##|->|[^\s\w]")
WORD = re.compile(r"[A-Za-z_]\w*\Z")
MACRO_CALL = re.compile(r"[A-Z_][A-Z_0-9]+\Z")
PREFIXED = re.compile(r"kiln|Kiln|KILN")
AGGREGATES = {"struct", "union", "enum"}


def without_comments(text, strings):
    """@text without comments, its lines where they were, and with empty strings unless @strings."""
    def blank(match):
        found = match.group()
        if found[0] in "\"'":
            return found if strings else '""' if found[0] == '"' else "0"
        return " " + "\n" * found.count("\n")
    return COMMENT.sub(blank, text)


def outer_words(tokens):
    """The words of @tokens outside all brackets."""
    depth = 0
    for token in tokens:
        depth += (token in "([{") - (token in ")]}")
        if depth == 0 and WORD.match(token):
            yield token


class File:
    """What a file includes, declares and uses."""

    def __init__(self, name, text):
        self.name = name.removeprefix(INSTALLED)
        self.path, self.header, self.table = name, name.endswith(".h"), name.endswith(".def")
        self.installed = name.startswith(INSTALLED)
        commented = without_comments(text, True)
        self.includes = [(number, match.group(2), match.group(1) == '"') for number, line in enumerate(commented.split("\n"), 1)
                         if (match := INCLUDE.match(line))]
        self.tables = re.findall(r'"([\w/]+\.def)"', commented)
        self.declares, self.static = set(), set()  # all names, and those that no other file sees
        self.pasted = set()  # (prefix, suffix) of the names that it declares by ##
        self.prefixes = {}  # {prefix of names that it uses by ##: line}
        self.uses, self.calls = {}, {}  # {name: line}
        self.fields, self.accesses = set(), set()  # of its structs; of any
        self.words = set()  # of rows
        text = without_comments(text, False)
        guard = re.match(r"\s*#\s*ifndef\s+(\w+)\s*\n\s*#\s*define \1\b", text)
        self.guard = guard.group(1) if guard and self.header else None
        # The text of its includer, which may give it a meaning by macros.
        self.part = not self.guard
        self.read(text.replace("\\\n", " \v"))

    def read(self, text):
        tokens, lines, number = [], [], 1
        for line in text.split("\n"):
            if not re.match(r"\s*#", line):
                found = TOKEN.findall(line)
                tokens += found
                lines += [number] * len(found)
            elif not INCLUDE.match(line):
                self.read_directive(line, number)
            number += 1 + line.count("\v")
        self.read_uses(tokens, lines)
        self.read_declarations(tokens)

    def read_directive(self, line, number):
        define = re.match(r"\s*#\s*define\s+(\w+)(?:\(([^)]*)\))?(.*)", line, re.S)
        if not define:
            directive = re.match(r"\s*#\s*(\w+)(.*)", line, re.S)
            if directive and directive.group(1) == "undef":
                self.declares.discard(directive.group(2).strip())
            elif directive and directive.group(1) in ("if", "elif", "ifdef", "ifndef"):
                tokens = [token for token in TOKEN.findall(directive.group(2)) if token != self.guard]
                self.read_uses(tokens, [number] * len(tokens))
            return
        name, tokens = define.group(1), TOKEN.findall(define.group(3))
        if name != self.guard:
            self.declares.add(name)
        parameters = set(re.findall(r"\w+", define.group(2) or ""))
        self.read_pasted(tokens, parameters)
        tokens = ["0" if token in parameters else token for token in tokens]
        self.read_uses(tokens, [number] * len(tokens))

    def read_pasted(self, tokens, parameters):
        """A name that stands where a declaration has it: after a type or first, and before what may follow a name."""
        tokens = ["", "", *tokens, "", "", ""]
        for i in range(2, len(tokens) - 3):
            before, prefix, parameter = tokens[i - 2], tokens[i - 1], tokens[i + 1]
            if tokens[i] != "##" or not WORD.match(prefix) or prefix in parameters or parameter not in parameters:
                continue
            suffix, after = (tokens[i + 3], tokens[i + 4]) if tokens[i + 2] == "##" else ("", tokens[i + 2])
            if (not before or WORD.match(before) or before in "*}") and (not after or after in ",(;=["):
                self.pasted.add((prefix, suffix))

    def read_uses(self, tokens, lines):
        before = ""
        for token, after, number in zip(tokens, [*tokens[1:], ""], lines):
            if WORD.match(token) and before not in (".", "->", "##", *AGGREGATES):
                (self.prefixes if after == "##" else self.uses).setdefault(token, number)
                if after == "(":
                    self.calls.setdefault(token, number)
            elif before in (".", "->"):
                self.accesses.add(token)
            before = token
        self.words.update(token for token in tokens if WORD.match(token))

    def read_declarations(self, tokens):
        """Splits @tokens into statements of the outermost level; the bodies of functions are left out."""
        depth, statement, enum, before = 0, [], False, ""
        for token in tokens:
            if token == "{":
                depth += 1
                if depth == 1:
                    enum = "enum" in statement and "(" not in statement
                    statement.append("{")
            elif token == "}" and depth:
                depth -= 1
                if depth == 0:
                    statement.append("}")
                    data = AGGREGATES & set(statement) and "(" not in statement
                    if not data and "=" not in statement and statement[0] != "typedef":
                        self.read_statement(statement)
                        statement = []
            elif depth == 0 and token == ";":
                self.read_statement(statement)
                statement = []
            elif depth == 0:
                statement.append(token)
            elif enum and depth == 1 and WORD.match(token) and before in "{,)":
                self.declares.add(token)
            elif not enum and AGGREGATES & set(statement[:2]):
                self.fields.add(token)
            before = token

    def read_statement(self, tokens):
        while tokens and (tokens[0] in ("G_BEGIN_DECLS", "G_END_DECLS") or
                          len(tokens) > 1 and MACRO_CALL.match(tokens[0]) and tokens[1] == "("):
            depth, end = 0, 0
            if tokens[0] not in ("G_BEGIN_DECLS", "G_END_DECLS"):
                for end, token in enumerate(tokens):
                    depth += (token == "(") - (token == ")")
                    if token == ")" and depth == 0:
                        break
            tokens = tokens[end + 1:]
        if not tokens:
            return
        typedef = tokens[0] == "typedef"
        if "{" in tokens and AGGREGATES & set(tokens[:2]):
            tag = tokens[tokens.index("{") - 1]
            self.declares |= {tag} - AGGREGATES
        if not typedef and "=" in tokens:
            tokens = tokens[:tokens.index("=")]
        elif not typedef and "(" in tokens:
            depth = 0
            for before, token in zip(["", *tokens], tokens):
                if token == "(" and depth == 0 and WORD.match(before) and before not in ("__attribute__", tokens[0]):
                    return self.declare(before, tokens)
                depth += (token == "(") - (token == ")")
            return None
        pointer = re.search(r"\( \* (\w+) \)", " ".join(tokens)) if typedef else None
        words = [pointer.group(1)] if pointer else list(outer_words(tokens))
        if typedef or len(words) > (2 if words and words[0] in AGGREGATES else 1):
            self.declare(words[-1], tokens)
        return None

    def declare(self, name, tokens):
        self.declares.add(name)
        if "static" in tokens:
            self.static.add(name)


class Tree:
    """All files under Git, and who gives which name."""

    def __init__(self, root):
        names = subprocess.run(["git", "ls-files", "*.c", "*.h", "*.def", "*.cc", "*.cpp"], cwd=root, capture_output=True,
                               text=True, check=True)
        files = [File(name, path.read_text(encoding="utf-8")) for name in names.stdout.split()
                 if (path := pathlib.Path(root, name)).exists()]
        self.files = {file.name: file for file in files}
        for file in files:
            beside = str(pathlib.PurePath(file.name).parent)
            file.includes_ours = [(number, self.files[path]) for number, name, quoted in file.includes
                                  for path in [name, f"{beside}/{name}"][:1 + quoted] if path in self.files]
        self.reached, self.named, self.left_over = {}, {}, {}
        self.givers, self.holders, self.pasters = collections.defaultdict(set), collections.defaultdict(set), []
        for file in files:
            self.collect(file)
        self.forced = self.reach(self.files[FORCED]) | {self.files[FORCED]} if FORCED in self.files else set()

    def collect(self, file):
        file.gives = set()
        if not file.header:
            return
        rows = set()
        for table in [*(table for _, table in file.includes_ours), *map(self.files.get, file.tables)]:
            if table and table.table:
                rows |= table.words.union(*(part.words for _, part in table.includes_ours))
        pasted = file.pasted.union(*(part.pasted for _, part in file.includes_ours if part.part))
        file.gives = {name for name in file.declares if len(name) > 1}
        file.gives |= {prefix + row + suffix for prefix, suffix in pasted for row in rows}
        for name in file.gives:
            self.givers[name].add(file)
        for name in file.fields:
            self.holders[name].add(file)
        if not rows:
            self.pasters += [(re.compile(prefix + r"\w+" + suffix + r"\Z"), file) for prefix, suffix in pasted
                             if PREFIXED.match(prefix)]

    def givers_of(self, name):
        """The headers that declare @name."""
        if name not in self.named:
            pasters = {file for pattern, file in self.pasters if pattern.match(name)} if PREFIXED.match(name) else set()
            self.named[name] = self.givers.get(name) or pasters
        return self.named[name]

    def reach(self, file):
        """All files that @file includes, directly or not."""
        if file not in self.reached:
            self.reached[file] = set()
            below = [part for _, part in file.includes_ours]
            self.reached[file] = set(below).union(*(self.reach(part) for part in below))
        return self.reached[file]

    def stands_for(self, file):
        """@file and the files that count as included with it.

        Installed headers are the interface in layers: each stands for the installed ones that it includes. A header that declares
        nothing stands for all that it includes. The text of a part belongs to its includer."""
        below = [part for _, part in file.includes_ours
                 if file.part or file.header and not file.declares or file.installed and part.installed or
                 part.name in STANDS_FOR.get(file.name, ())]
        return {file}.union(*(self.stands_for(part) for part in below))

    @staticmethod
    def own(file):
        """The headers of @file: of the same name, or one that declares what it defines."""
        stem = re.sub(r"(_priv)?\.\w+$", "", pathlib.PurePath(file.name).name)
        return [header for _, header in file.includes_ours if header.header and (
            re.sub(r"(_priv)?\.h$", "", pathlib.PurePath(header.name).name) == stem or
            not file.header and header.gives & (file.declares - file.static))]

    def included(self, file):
        """All that counts as included by @file itself."""
        directly = [part for _, part in file.includes_ours]
        for header in self.own(file):
            directly += [part for _, part in header.includes_ours]
        return self.forced.union({file}, *(self.stands_for(part) for part in directly))

    def missing(self, file):
        """(line, name, headers that declare it) of names that come to @file only by way of other headers."""
        included = self.included(file)
        for name, number in file.uses.items():
            sure = PREFIXED.match(name) or MACRO_CALL.match(name) or name in file.calls
            if len(name) < 3 or not sure or name in file.declares:
                continue
            givers = self.givers_of(name) & self.reach(file)
            if givers and not self.givers_of(name) & included:
                yield number, name, sorted(header.name for header in givers)

    def undeclared(self, file):
        """(line, name, header) of what a C source defines without reaching a header that declares it."""
        folder = pathlib.PurePath(file.name).parent
        for name in sorted(file.declares - file.static) if file.path.endswith(".c") else ():
            givers = {header for header in self.givers.get(name, ())
                      if PREFIXED.match(name) or pathlib.PurePath(header.name).parent == folder}
            if givers and name in file.calls and not givers & self.reach(file):
                yield file.uses[name], name, sorted(header.name for header in givers)[0]

    def left(self, file):
        """The names that a header leaves to its includer: it does not reach a header that declares them."""
        if file not in self.left_over:
            seen = self.reach(file) | {file} | self.forced
            names = {name for name in file.uses if self.givers_of(name) and not self.givers_of(name) & seen}
            self.left_over[file] = names.union(*(self.left(part) for _, part in file.includes_ours))
        return self.left_over[file]

    def unused(self, file):
        """(line, header) of includes that @file does not use."""
        names = set(file.uses) | file.declares
        names = names.union(*(self.left(part) for _, part in file.includes_ours))
        for number, header in file.includes_ours if file.declares or not file.header else ():
            if header.part or file.header and header in self.stands_for(file):
                continue
            given = set().union(*(part.gives for part in self.stands_for(header)))
            pasters = [pattern for pattern, paster in self.pasters if paster is header]
            fields = any(self.holders.get(name) == {header} for name in file.accesses)
            if not (fields or given & names or any(name.startswith(prefix) for prefix in file.prefixes for name in given) or
                    any(pattern.match(name) for pattern in pasters for name in names)):
                yield number, header.name

    def standard(self, file):
        """(line, what is wrong) of the headers in STANDARD."""
        own = [name for header in [file, *self.own(file)] for _, name, _ in header.includes]
        names = {**{name: number for name, number in file.uses.items() if not name.islower() or not name.isalpha()}, **file.calls}
        lent = set(file.uses).union(*(part.uses for _, part in file.includes_ours if part.part))
        for header, pattern in STANDARD.items():
            used = [(number, name) for name, number in names.items() if pattern.match(name) and name not in file.declares]
            used += [(file.uses[name], name) for name in ("stdin", "stdout", "stderr") if name in file.uses and pattern.match(name)]
            if used and header not in own:
                yield min(used)[0], f"uses {min(used)[1]}, but does not include {header}"
            if not used and not any(pattern.match(name) for name in lent):
                yield from ((number, f"includes {header}, but uses nothing of it") for number, name, _ in file.includes if name == header)


def problems(root):
    tree = Tree(root)
    for file in tree.files.values():
        if file.table or file.name == FORCED:
            continue
        found = [(number, f"includes {header}, but uses nothing of it") for number, header in tree.unused(file)]
        if file.guard or not file.header:
            by_header = {}
            for number, name, givers in tree.missing(file):
                by_header.setdefault(givers[0], (number, name))
            found += [(number, f"uses {name}, but does not include {giver}") for giver, (number, name) in by_header.items()]
            found += [(number, f"defines {name}, but does not include {giver}") for number, name, giver in tree.undeclared(file)]
        if file.path.endswith((".c", ".h")):
            found += tree.standard(file)
        yield from (f"{file.path}:{number}: {text}" for number, text in sorted(found))


def main(root):
    found = list(problems(root))
    for problem in found:
        print(problem)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
