#!/usr/bin/env python3
"""No sentence of a comment has more than 25 words: sentences.py REPOSITORY

A comment is a run of `//` or `///` lines, or of `#` lines in Python, shell and CMake, without what stands behind code. An indented line is
code, an empty one and a list's dash begin a new sentence. A sentence ends with a full stop, a question mark or an exclamation mark.
"""
import pathlib
import re
import subprocess
import sys

WORDS_AT_MOST = 25
MARKERS = {".h": "//", ".cpp": "//", ".cu": "//", ".cuh": "//", ".inc": "//", ".capnp": "#", ".py": "#", ".sh": "#", ".cmake": "#"}
ABBREVIATIONS = re.compile(r"\b(?:e\.g|i\.e|et al|vs|cf|Sec|Eq|no)\.$")


def comments(lines, marker):
    """Yields (line number, text) for each piece of a comment that may hold several sentences."""
    start, words = 0, []
    for number, line in enumerate(lines + [""], 1):
        text = line.strip()
        inside = text.startswith(marker) and not text.startswith("#!")
        body = text.lstrip(marker[0] + "<") if inside else ""
        begins = not body.strip() or body.startswith("  ") or re.match(r" ?(?:[-*] |\d+\. |@|\|)", body)
        if begins and words:
            yield start, " ".join(words)
            words = []
        if not body.strip() or body.startswith("    "):
            continue
        if not words:
            start = number
        words.append(body.strip())


def sentences(text):
    """The sentences of a piece."""
    begun = []
    for word in text.split():
        begun.append(word)
        if re.search(r"[.!?][)\"'`]*$", word) and not ABBREVIATIONS.search(" ".join(begun[-2:])):
            yield " ".join(begun)
            begun = []
    if begun:
        yield " ".join(begun)


def main():
    root = pathlib.Path(sys.argv[1])
    listed = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n")
    found = 0
    for name in listed:
        path = root / name
        marker = "#" if path.name == "CMakeLists.txt" else MARKERS.get(path.suffix)
        if marker is None or not path.is_file():
            continue
        for line, text in comments(path.read_text(errors="replace").splitlines(), marker):
            for sentence in sentences(text):
                count = sum(1 for word in sentence.split() if re.search(r"\w", word))
                if count > WORDS_AT_MOST:
                    found += 1
                    print(f"{name}:{line}: {count} words: {sentence}")
    return 1 if found else 0


sys.exit(main())
