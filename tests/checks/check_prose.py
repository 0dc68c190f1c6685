#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents (all .md files) keep the rules of prose that a machine can see:

- A line has at most 100 columns. Tables, code and the targets of links do not count.
- A paragraph has at most eight lines, an item of a list at most three sentences.
- A sentence has at most 25 words. It ends at a full stop, a colon or a semicolon. Code counts as one word.
- A sentence does not begin with its object, and no phrase of PHRASES occurs.
- A path in backticks exists.

`check_prose.py ROOT FILE…` checks these files alone."""
import pathlib
import re
import subprocess
import sys

COLUMNS, LINES, WORDS, SENTENCES = 100, 8, 25, 3

# (pattern of a sentence, what to do instead)
PHRASES = [(re.compile(pattern), advice) for pattern, advice in (
    (r"^What (?!.*\?$)", "name the thing in place of 'What …'"),
    (r"\b(is|are|does|do) what\b", "name the thing in place of 'what …'"),
    (r"\bcomputes? what it computes\b", "say which operators"),
    (r"\bwhat (is|was|are|were) (left|there|given|made|said|done|meant|known|read|written)\b",
     "name the thing in place of 'what is …'"),
    (r"^(Of|Whose|Whom|To whom|From which|In whose) (?!course)", "begin with the subject"),
    (r"\bof (those|them) (that|which|the)\b", "begin with the subject"),
    (r"^(Nor|Neither|Never|Not|So (is|are|does|do)|Only then|Else|But for) ", "begin with the subject"),
    (r"\b[Bb]ut for\b", "write 'except'"),
    (r"\b[Aa]ll but\b", "write 'all except'"),
    (r"\bin whose place\b", "write 'in place of'"),
    (r"\b(what|which) there (is|are|was|were)\b", "name the thing"),
    (r"\bof one's own\b", "write 'your own'"),
    (r", for (it|they|he|that|this|these|those|there)\b", "write 'because'"),
)]

TOPS = "backends|bench|cmake|docs|examples|exec|graph|include|ir|passes|pipelines|runtime|scripts|tests|tools"
PATH = re.compile(rf"`((?:{TOPS})/[\w./+-]*)`")
PLACEHOLDER = re.compile(r"(^|[/_-])(?!README|LICENSE)[A-Z]+\b")


def blocks(text):
    """Yields (line number, lines) of each paragraph, list item, heading or row of a table; code is left out."""
    found, fenced, begin = [], False, 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        fence = line.lstrip().startswith("```")
        item = re.match(r"\s*([-*]|\d+\.) ", line)
        alone = line.startswith(("|", "#"))
        indented = line.startswith("    ") and not found
        if found and (fence or item or alone or not line.strip()):
            yield begin, found
            found = []
        if fence:
            fenced = not fenced
        elif not fenced and not indented and line.strip():
            begin = number if not found else begin
            found.append(line)
            if alone:
                yield begin, found
                found = []


def sentences(lines):
    """The sentences of a block, without marks; a piece of code is the word `code`."""
    text = re.sub(r"^\s*([-*]|\d+\.) ", "", " ".join(line.strip() for line in lines))
    text = re.sub(r"^\*\*[^*]*\.\*\* ", "", text)  # a label is no sentence
    text = re.sub(r"``.+?``|`[^`]+`", "code", text)
    text = re.sub(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"[*_]{1,2}([^*_]+)[*_]{1,2}", r"\1", text)
    for cell in text.strip("|").split(" | ") if text.startswith("|") else [text]:
        for sentence in re.split(r"(?<=[.?!:;])\s+", cell.strip()):
            yield sentence.strip("() ")


def of_sentences(lines):
    for sentence in sentences(lines):
        words = sentence.split()
        if len(words) > WORDS:
            yield f"expected at most {WORDS} words in a sentence, found {len(words)}: {' '.join(words[:6])} …"
        for pattern, advice in PHRASES:
            found = pattern.search(sentence.strip(".,:;"))
            if found:
                yield f"'{found.group(0)}': {advice}: {sentence[:60]}"


def of_block(begin, lines):
    kind = lines[0][0]
    for number, line in enumerate(lines, begin):
        width = len(re.sub(r"\]\([^)]*\)", "]", line))
        if kind != "|" and width > COLUMNS:
            yield number, f"expected at most {COLUMNS} columns, found {width}"
    if len(lines) > LINES:
        yield begin, f"expected a paragraph of at most {LINES} lines, found {len(lines)}"
    if kind == "#":
        return
    ends = [sentence for sentence in sentences(lines) if sentence.endswith((".", "?", "!"))]
    if re.match(r"\s*([-*]|\d+\.) ", lines[0]) and len(ends) > SENTENCES:
        yield begin, f"expected at most {SENTENCES} sentences in an item, found {len(ends)}: {ends[0][:40]} …"
    yield from ((begin, message) for message in of_sentences(lines))


def of_paths(root, text):
    for number, line in enumerate(text.split("\n"), 1):
        for name in PATH.findall(line):
            if not PLACEHOLDER.search(name) and not (root / name).exists():
                yield number, f"expected a path of the tree, found {name}"


def main(root, *given):
    root = pathlib.Path(root)
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=root, capture_output=True,
                           text=True, check=True).stdout.split()
    failed = False
    for name in given or names:
        path = root / name
        if not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        found = [*of_paths(root, text), *(each for block in blocks(text) for each in of_block(*block))]
        for number, message in sorted(found):
            print(f"{name}:{number}: {message}")
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
