#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows Doxygen a public header as it wants it: comments of the head and of fields are marked, so are names of parameters, and
the rows of tables stand where they are used.

    filter.py HEADER"""
import pathlib
import re
import sys

TABLE = re.compile(r"#define (KILN_\w+)\(X\) *\\\n((?:.*\\\n)*.*\n)")
USE = re.compile(r"#define X\(([\w, ]+)\) (.*)\n *(KILN_\w+)\(X\)\n#undef X\n")
ROW = re.compile(r'X\(((?:[^()"]|"[^"]*"|\([^()]*\))*)\)')


def expanded(text):
    """Uses of tables are their rows; a sentence in a row becomes a comment."""
    tables = {name: ROW.findall(rows) for name, rows in TABLE.findall(text)}

    def rows(use):
        names, body, table = use[1].split(", "), use[2], use[3]
        lines = []
        for row in tables[table]:
            values = dict(zip(names, (value.strip() for value in row.split(", ", len(names) - 1))))
            line = re.sub(r"(?:##)?\b(" + "|".join(names) + r")\b", lambda name, values=values: values[name[1]], body).replace("##", "")
            sentence = re.match(r'"(.*)"$', values.get("sentence", ""))
            lines.append(line + (f" /**< {sentence[1]} */" if sentence else ""))
        return "\n".join(lines) + "\n"

    return USE.sub(rows, text)


def marked(text):
    text = re.sub(r"\A(/\* SPDX.*\*/\n)/\* ", r"\1/** \\file\n * ", expanded(text))
    text = re.sub(r"([;,]) */\* ", r"\1 /**< ", text)
    text = re.sub(r"(?<![\w.])\*?@(\w+)", r"\\p \1", text)
    text = re.sub(r"(?<=[ (])#(?=if)", "", text)
    return re.sub(r"\bKILN_(OBJECT_)?API ", "", text)


if __name__ == "__main__":
    print(marked(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")), end="")
