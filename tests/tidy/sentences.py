#!/usr/bin/env python3
"""Sentences are short: sentences.py REPOSITORY

None of a comment, a docstring or a table's text has more than 25 words. None of a page has more than 30: README.md, CHANGELOG.md,
docs, docs/guide, docs/adr, and the README.md files of examples and bench.
A comment is a run of `//` or `///` lines, or of `#` lines in Python, shell and CMake, without what stands behind code. An indented line is
code, an empty one and a list's dash begin a new sentence. A sentence ends with a full stop, a question mark or an exclamation mark.
A docstring is read as a comment; the tables are *.inc files, of which each string is a text.
In Markdown, a link counts as its text; tables, headings, fenced code, `<!-- -->` and the generated tables of keys are left out.
"""
import ast
import itertools
import pathlib
import re
import subprocess
import sys

WORDS_AT_MOST = 25
WORDS_AT_MOST_ON_A_PAGE = 30
MARKERS = {".h": "//", ".cpp": "//", ".cu": "//", ".cuh": "//", ".inc": "//", ".capnp": "#", ".py": "#", ".sh": "#", ".cmake": "#"}
PAGE = re.compile(r"CHANGELOG\.md|(?:(?:examples|bench)/(?:[^/]+/)*)?README\.md|docs/(?:(?:guide|adr)/)?[^/]+\.md")
NO_PROSE = {"```": "```", "<!-- made by": "<!-- end", "<!--": "-->"}  # how a stretch of a page that has none begins and ends
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
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


def docstrings(source):
    """Yields (line number, text) for each piece of the docstrings of a Python program."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (text := ast.get_docstring(node)):
            for line, piece in comments([f"# {line}" for line in text.splitlines()], "#"):
                yield node.body[0].lineno + line - 1, piece


def table_texts(lines):
    """Yields (line number, text) for each string of a table."""
    for number, line in enumerate(lines, 1):
        if not line.lstrip().startswith("//"):
            for text in re.findall(r'"((?:[^"\\]|\\.)*)"', line):
                yield number, text


def prose(lines):
    """The lines of a page; empty instead of its tables, headings, code, comments and generated tables of keys."""
    end = None
    for line in lines:
        text = line.strip()
        begin = None if end else next((mark for mark in NO_PROSE if text.startswith(mark)), None)
        if begin:
            end, text = NO_PROSE[begin], text.removeprefix(begin)
        yield "" if end or text.startswith(("|", "#")) else text
        if end and end in text:
            end = None


def paragraphs(lines):
    """Yields (line number, text) for each paragraph and each item of a list on a page."""
    start, words = 0, []
    for number, text in enumerate([*prose(lines), ""], 1):
        if words and (not text or re.match(r"(?:[-*+]|\d+[.)]) ", text)):
            yield start, LINK.sub(r"\1", " ".join(words))
            words = []
        if text:
            start = start if words else number
            words.append(text)


def sentences(text):
    """The sentences of a piece."""
    begun = []
    for word in text.split():
        begun.append(word)
        if re.search(r"[.!?][])\"'`*_]*$", word) and not ABBREVIATIONS.search(" ".join(begun[-2:])):
            yield " ".join(begun)
            begun = []
    if begun:
        yield " ".join(begun)


def pieces(path, name):
    """How many words a sentence of the file may have, and the file's texts with their lines."""
    marker = "#" if path.name == "CMakeLists.txt" else MARKERS.get(path.suffix)
    source = path.read_text(errors="replace") if path.is_file() else ""
    lines = source.splitlines()
    if PAGE.fullmatch(name):
        return WORDS_AT_MOST_ON_A_PAGE, paragraphs(lines)
    more = docstrings(source) if path.suffix == ".py" else table_texts(lines) if path.suffix == ".inc" else ()
    return WORDS_AT_MOST, itertools.chain(comments(lines, marker) if marker else (), more)


def main():
    root = pathlib.Path(sys.argv[1])
    listed = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=True).stdout.split("\n")
    found = 0
    for name in listed:
        at_most, texts = pieces(root / name, name)
        for line, text in texts:
            for sentence in sentences(text):
                count = sum(1 for word in sentence.split() if re.search(r"\w", word))
                if count > at_most:
                    found += 1
                    print(f"{name}:{line}: {count} words: {sentence}")
    return 1 if found else 0


sys.exit(main())
